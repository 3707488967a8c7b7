// SPDX-License-Identifier: MIT
//
// `obase bench handles`: what programs that were compiled with --handles cost beside clang -O3's.
//
// Each program is compiled by both, and run in turns: with glibc's malloc, with the allocator of handles but no handles,
// and with handles in three states: at home (OBASE_HANDLES=off), as the policy moves them, and away (everything moves,
// every 20 ms). Times are the process's processor time, the collector's thread with it.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/handles/scripts.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace obase::tools {

struct handles_settings {
    std::vector<std::string> programs; // names, or groups of them; all unless given
    std::size_t pairs = 15;
    bool quick = false; // the runs whose instructions are counted are those that are timed
    script_settings scripts;
};

// The names of programs and of their groups.
const std::vector<std::string>& handles_programs();

// A group whose source cannot be had is left out: "left_out" has why, and `skipped`, if nothing is left.
bench_result bench_handles(const handles_settings& settings);

} // namespace obase::tools
