// SPDX-License-Identifier: MIT
//
// `obase bench fragmentation`: resident memory of a heap that a cache has left full of holes, beside other allocators.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/handles/scripts.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace obase::tools {

struct fragmentation_settings {
    std::string program = "synthetic";   // or churn, redis
    std::vector<std::string> allocators; // all that there are for the program unless given
    std::vector<unsigned> seconds{0, 1, 3, 10};
    unsigned scale = 1;          // divides all counts
    unsigned hours = 24;         // churn
    double hour_seconds = 5;     // churn
    double share = 0;            // OBASE_HANDLES_SHARE; 0: its default
    std::size_t repetitions = 1; // of all allocators, in turns
    script_settings scripts;     // redis
};

// glibc, jemalloc, mimalloc, activedefrag (of redis), obase-still (handles that do not move), obase.
const std::vector<std::string>& fragmentation_allocators();

// What makes a program use one of them, as NAME=VALUE.
std::vector<std::string> environment_of(const std::string& allocator,
                                        const fragmentation_settings& settings);

// Throws std::invalid_argument if an allocator is none of the program's.
bench_result bench_fragmentation(const fragmentation_settings& settings);

// The rows of an allocator's runs, at least one, with the targets there are for redis at full size.
std::vector<figure> fragmentation_figures(const std::vector<nlohmann::json>& runs,
                                          const fragmentation_settings& settings);

} // namespace obase::tools
