// SPDX-License-Identifier: MIT
//
// What `obase bench handles` makes of its measurements: ratios pair by pair, their spread, geometric means, and the rows
// of the table with their targets. Nothing is measured here.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/bench/interleave.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace obase::tools {

// The ways in which a program is built and run, in the order of measured_program::times.
enum class way : std::size_t {
    glibc,   // clang -O3
    same,    // clang -O3 with the allocator of handles
    home,    // handles, nothing moves
    watched, // handles, the collector looks and moves nothing
    policy,  // handles, as they are by default
    away     // handles, everything moves
};
inline constexpr std::size_t ways = 6;

enum class state : std::size_t { home, policy, away };
inline constexpr std::size_t states = 3;
std::string_view name_of(state s) noexcept;
way way_of(state s) noexcept;

struct measured_state {
    std::size_t tests = 0; // answers that were compared with those of clang's program
    std::size_t tests_passed = 0;
    std::uint64_t moved = 0; // objects, in the last run that was timed
};

struct measured_program {
    std::string name;
    std::string group;             // own, lua or sqlite
    interleaved times;             // .ns[way][pair], of processor time; every way has as many pairs
    double instructions_ratio = 0; // at home, to the same allocator; 0: not counted
    double text_ratio = 0;         // of the program's own objects
    std::vector<double> compile_time_ratios;
    std::array<measured_state, states> results{};
};

// `json` has the members of the issue, and "beside_glibc": [{"name", "state", "time_ratio", "ci95"}]; `figures` the rows
// with targets first. `failure` names the first program that gave a wrong answer. Programs without a complete pair are
// left out.
bench_result handles_result(const std::vector<measured_program>& programs);

} // namespace obase::tools
