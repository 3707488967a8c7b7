// SPDX-License-Identifier: MIT
//
// `obase bench kv`: one load on one store, paced or not, and what becomes of memory, faults and hits
// while it runs. Nothing is measured beside the traffic, and the store rests for nothing (bench ycsb
// measures layouts).
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/kv/settings.hpp"

#include <string>

namespace obase::tools {

// What bench_kv will not accept, in a sentence; "" if all is well.
std::string why_not(const kv_settings& settings);

// Throws std::invalid_argument for settings that make no sense, std::runtime_error when it cannot
// measure. The store lives in a process of its own.
bench_result bench_kv(const kv_settings& settings);

} // namespace obase::tools
