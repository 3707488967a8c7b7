// SPDX-License-Identifier: MIT
//
// The loads of `obase bench kv`: from a name with parameters to records and requests.
//
//   name       parameters                                       which records are asked for
//   A .. F     distribution, live                               YCSB's core workloads
//   uniform                                                     all alike
//   zipf       theta (.99)                                      rank r as 1 / r^theta
//   hot        data (.2), accesses (.8), shift-every, shift     a hot set (tools/workload/hot_set.hpp)
//              (1), data-to, resize-over
//   cachelib   config (a folder)                                a configuration of cachebench
//   mixgraph   get, put, seek, sine-a, sine-b, sine-c,          RocksDB's model of UDB
//              and the formulas' own
//   twitter    statistics (a file), cluster                     synthetic: published statistics
//   trace      file, format                                     recorded operations
//
// uniform, zipf, hot, cachelib and twitter also have
//
//   writes, rmw            share of the operations that update; that read, modify and write
//   sizes, sizes-to, sizes-over     of values: a distribution, another one, and how long until all
//                          writes have it (size_distribution.hpp, value_sizes.hpp)
//   churn                  share of the operations that replaces a record (churn.hpp)
//   delete, delete-at, delete-over  share of the records that is deleted (mass_deletion.hpp)
//   pass-at, pass-every, pass-one-in   reads every record once (read_pass.hpp)
//
// Times are numbers of operations, or seconds at the rate ("30s"). Popular records lie anywhere in
// the order of loading. Which operations there are depends on the seed and the number of clients
// only.
#pragma once

#include "tools/kv/settings.hpp"
#include "tools/ycsb/load.hpp"

namespace obase::tools {

// A rate that is a sine around the one that was asked for (tools/workload/pace.hpp).
struct rate_sine {
    double amplitude = 0, frequency = 0, phase = 0;
};

struct kv_load {
    session_load session;
    rate_sine sine;
    // What a result says of it beside its name: label "synthetic", for one.
    std::string label;
};

// Throws std::invalid_argument for settings that make no sense, std::runtime_error for a file that
// cannot be read or is malformed; each names what it is and what was expected.
kv_load make_kv_load(const kv_settings& settings);

} // namespace obase::tools
