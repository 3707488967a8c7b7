// SPDX-License-Identifier: MIT
//
// `obase bench server`: crestdb beside redis-server and memcached.
//
// All servers run at once, each loaded with the same records; one client program, a single thread with
// many connections over Unix sockets, asks them in turns, so that what else the machine does meets all of
// them. Every reply is compared, byte by byte, with what it must be. A server's CPU time is that of its
// threads by the scheduler's count (/proc/PID/task/*/schedstat).
#pragma once

#include "tools/bench/bench.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace obase::tools {

struct server_bench_settings {
    std::vector<std::string> systems{"crestdb", "crestdb-none", "redis", "memcached"};
    unsigned clients = 50;
    unsigned threads = 1; // that serve them, of crestdb and memcached
    std::vector<unsigned> pipelines{1, 16};
    std::uint64_t records = 100'000;
    std::uint64_t requests = 50'000;
    std::size_t value_bytes = 100;
    std::size_t pairs = 15;
    std::string crestdb_options;
    std::string row = "speed"; // or memory, cold, moving: cold_rows.hpp
    // memory and cold.
    std::uint64_t memory_mib = 96;
    double data_times = 3; // data by memory
    std::string directory = "/var/tmp";
    std::size_t warm_ups = 8;                                  // turns before it is measured
    std::vector<std::string> loads{"loop", "ycsb", "zipfian"}; // of the memory row
    double window_seconds = 1;
    std::string policy; // crestdb's; "": its own default
};

// crestdb, crestdb-none (--protocol none), redis, memcached.
std::vector<std::string> server_systems();

// A system that is not installed is left out, and `left_out` names it. Without redis-server there are
// no ratios: `skipped` says so.
bench_result bench_server(const server_bench_settings& settings);

} // namespace obase::tools
