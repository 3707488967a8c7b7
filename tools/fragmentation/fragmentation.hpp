// SPDX-License-Identifier: MIT
//
// `obase bench fragmentation`: resident memory of a heap that a cache has left full of holes, beside other allocators.
#pragma once

#include "tools/bench/bench.hpp"

#include <string>
#include <vector>

namespace obase::tools {

struct fragmentation_settings {
    std::string program = "synthetic";
    std::vector<std::string> allocators; // all of fragmentation_allocators() unless given
    std::vector<unsigned> seconds{0, 1, 3, 10};
    unsigned scale = 1; // divides all counts
};

// glibc, jemalloc, mimalloc, obase-off (handles that do not move), obase.
const std::vector<std::string>& fragmentation_allocators();

bench_result bench_fragmentation(const fragmentation_settings& settings);

} // namespace obase::tools
