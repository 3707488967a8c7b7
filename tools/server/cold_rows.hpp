// SPDX-License-Identifier: MIT
//
// Rows of `obase bench server` in which data does not fit, or moves:
//
//   memory   data of several times the memory, each server in a control group of its own with that much:
//            crestdb with its cold data in a file, redis-server on a swap file, memcached with its extstore
//            (which drops what it is given faster than it writes: that is written again)
//   cold     crestdb under the same limit: how long hot requests take while a tenth of all requests are for
//            cold keys, beside hot requests alone
//   moving   how long requests take while the collector moves what was just loaded, beside a server
//            without a collector
//
// Files and swap lie in `directory`. Swap is made, with the lock of all benchmarks, and undone; control
// groups need root.
#pragma once

#include "tools/server/server_bench.hpp"

namespace obase::tools {

bench_result bench_server_memory(const server_bench_settings& settings);
bench_result bench_server_cold(const server_bench_settings& settings);
bench_result bench_server_moving(const server_bench_settings& settings);

} // namespace obase::tools
