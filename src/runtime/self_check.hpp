// SPDX-License-Identifier: MIT
//
// runtime::self_check: says in plain words what cannot work here.
//
// A pure function from options and facts about the machine to sentences. Facts come from
// gather_facts(), or from a test. Each sentence says what was asked for, what is missing, what will
// happen instead, and what to do.
//
// Nothing here is fatal; every shortage is handled where it occurs (no room means no move).
#pragma once

#include "os/container.hpp"
#include "os/directory.hpp"
#include "os/process.hpp"

#include <obase/options.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace obase::runtime_internal {

// What the machine offers. The defaults describe one on which everything works.
struct system_facts {
    os::machine machine = everything_works();
    os::container_limits container;
    os::directory_state cold_directory = {true, 0, false, UINT64_MAX}; // if one is named
    std::uint64_t address_space_limit = UINT64_MAX;                    // RLIMIT_AS
    bool membarrier = true;
    bool page_hints = true; // MADV_COLD and MADV_PAGEOUT, Linux 5.4
    unsigned processors = 2;
    unsigned heaps = 4; // of the policy that is asked for: its tiers, and the one of large objects

    static os::machine everything_works() noexcept;
};

// Reads the facts; the directory that the settings name is tried.
system_facts gather_facts(const options& settings);

// One sentence per problem, most important first; empty = everything asked for can work.
std::vector<std::string> self_check(const options& settings, const system_facts& facts);

} // namespace obase::runtime_internal
