// SPDX-License-Identifier: MIT
//
// `obase bench index`: CrestDB's indexes as sets (key_set.hpp), as the literature measures them. Per
// index and kind of key one process with a set per protocol, which take turns, a slice each, under
// every number of threads and every share of updates.
//
// While slices are timed the collector rests: before, it has moved everything that was touched to
// where it belongs, and everything has been touched since its last window. So a ratio is what guides
// cost a thread that works; what the collector costs it besides is in `obase bench compare`.
//
// The result: cells, one per index, kind of key, protocol, threads and share of updates, with
// million operations per second and their ratio to plain pointers (more is better); per number of
// threads the geometric mean of the ratios, and the same over that of the fewest threads: below one,
// the overhead grows with threads. Cells of a size that has been published carry that figure and a
// verdict. `mops_cpu` is the sum over the threads of operations per second of processor time: on a
// busy machine nearer than `mops` to what a quiet one would do, but blind to threads that sleep.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/index/key_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace obase::tools {

struct index_bench_settings {
    std::vector<std::string> indexes;   // empty: all of the store
    std::vector<std::string> protocols; // empty: all of the store
    std::vector<std::string> key_kinds; // empty: integer and string
    std::vector<unsigned> threads = {1, 2};
    std::vector<unsigned> updates = {0, 20, 50}; // percent
    std::uint64_t keys = 1'000'000;              // in the set; the range has twice as many
    double duration_s = 1;                       // of a cell's slices together
    std::size_t pairs = 15;
};

// Throws std::invalid_argument for settings that make no sense, std::runtime_error when it cannot
// measure, or when a set does not hold what was inserted and not erased.
bench_result bench_index(const index_bench_settings& settings);

// What has been published for an index: million operations per second with a million keys of eight
// bytes and two threads. Nothing for other shares of updates, and for other indexes.
std::optional<double> published_mops(std::string_view index, unsigned updates);

} // namespace obase::tools
