// SPDX-License-Identifier: MIT
//
// What the environment says to a program that was compiled for handles. docs/handles.md has the table.
//
// They are no rows of obase/options.hpp, which are read only where objects have temperatures (temperature.hpp): the heap of
// such a program is made by its first malloc, and most need nothing else. A value that is not understood gives a message, and the default stays.
#pragma once

#include "policy/fragmentation.hpp"
#include "policy/used_runs.hpp"

namespace obase::handles {

struct settings {
    bool off = false;                      // OBASE_HANDLES=off
    unsigned long stress = 0;              // OBASE_HANDLES_STRESS, polls; 0: no stress mode
    policy::fragmentation_limits limits{}; // OBASE_HANDLES_START, _STOP, _SHARE
    unsigned long tick_ms = 100;           // OBASE_HANDLES_TICK_MS
    unsigned long mappings = 0; // OBASE_HANDLES_MAPPINGS; 0: a quarter of vm.max_map_count
    policy::used_limits used{}; // OBASE_HANDLES_USED
    double track = 0.01;        // OBASE_HANDLES_TRACK, of the program's time
    bool show = false;          // OBASE_SHOW_STATS

    // Allocates nothing.
    static settings from_environment() noexcept;
};

} // namespace obase::handles
