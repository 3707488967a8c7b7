// SPDX-License-Identifier: MIT
//
// The load of `obase bench fragmentation --program redis`: a server with maxmemory 100mb, allkeys-lru and one sample;
// `debug populate` of 700000 values of 240 bytes, then of 170000 of 492, which evict others.
//
// Time begins when the server is below its maxmemory again. From then on a client asks for one value after the other; its
// longest wait is the stall.
#pragma once

#include "tools/fragmentation/fragmentation.hpp"

#include <string>

namespace obase::tools {

struct redis_servers {
    std::string plain;        // with the C library's malloc
    std::string handles;      // the same, compiled with --handles
    std::string activedefrag; // with its own jemalloc
};

// One run, in the form that the issue of handles gives it. Throws std::runtime_error; interruption.
nlohmann::json run_redis(const redis_servers& servers, const std::string& allocator,
                         const fragmentation_settings& settings);

} // namespace obase::tools
