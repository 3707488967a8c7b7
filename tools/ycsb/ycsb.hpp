// SPDX-License-Identifier: MIT
//
// `obase bench ycsb`: one workload on one store, with the layout of its memory before and after.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/ycsb/settings.hpp"

#include <string>

namespace obase::tools {

// Throws std::invalid_argument for settings that make no sense, std::runtime_error when it cannot
// measure. The stores live in processes of their own.
bench_result bench_ycsb(const ycsb_settings& settings);

// The cases of the target table: loop, workloads C, B and A, with COLD in a file in `directory`.
bench_result bench_ycsb_targets(const std::string& directory, bool quick);

} // namespace obase::tools
