// SPDX-License-Identifier: MIT
//
// `obase bench m2t`: what it is worth that the parts of a bucket lie together, and what temperature adds (M2T,
// section IV). One chained hash table (crestdb/hash/chained_hash_table.hpp), loaded in random order and asked by one
// thread, in several layouts:
//
//   malloc                  glibc's malloc for every node, key and value; what the others are compared with
//   jemalloc                jemalloc's
//   near                    nodes, keys and values of a bucket together: the paper's
//   near-meta               nodes and keys together, values elsewhere
//   temperature             obase moves values by temperature, nodes and keys lie as they came
//   near-meta+temperature   both
//
// Tiers: `dram` is measured here, as processor time of the thread that asks; `limit` is the same in a memory control
// group with a limit of a share of what `malloc` takes, once everything is loaded, and counts major faults (it makes
// swap where there is none, and a group, which takes root); `model` is tiered_memory_model.hpp over the addresses of the same table.
//
// Transports of tier `dram`: `memory` calls the table; `tcp` serves it (crestdb/store_server) to clients of this process on
// 127.0.0.1, as the paper's server does. There a ratio is of what clients wait for, and cpu_ns_per_op the server's threads'.
//
// Hints: values alone, in an array of guides, loaded with what the loop will ask for said rightly, wrongly or not at all;
// what is cold goes to a file. Memory and time of each window from loading on.
#pragma once

#include "tools/bench/bench.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace obase::tools {

struct m2t_settings {
    std::vector<std::string> layouts; // empty: all
    std::vector<std::string> tiers;   // empty: all that can be had
    std::vector<std::string> transports = {"memory"};
    std::vector<std::string> hints = {"none", "right", "wrong"}; // empty: no such cells
    std::vector<std::size_t> per_bucket = {1, 8, 64, 1024};
    std::vector<std::string> workloads = {"C"}; // A, B, C, D, F
    std::string distribution;                   // "": the workload's own
    double theta = .99; // of Zipf's law; other values than .99: workload C only
    double loop_share = .31;
    double limit_share = .59;   // of what malloc takes
    std::string swap_directory; // of tier limit: a swap file there; "": what there is, or zram
    std::string cold = "file:/var/tmp"; // OBASE_COLD_BACKING of the cells of hints
    std::size_t records = 1'000'000;
    std::size_t value_bytes = 1000;
    std::size_t operations = 0;                     // 0: by the length of the lists
    std::size_t cache_bytes = std::size_t{1} << 20; // of the model
    unsigned connections = 16;                      // of the clients of transport tcp
    unsigned server_threads = 1;                    // of its server
    std::size_t pairs = 5;
};

const std::vector<std::string>& m2t_layouts();

// Throws std::invalid_argument, or std::runtime_error where it cannot measure.
bench_result bench_m2t(const m2t_settings& settings);

} // namespace obase::tools
