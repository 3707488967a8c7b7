// SPDX-License-Identifier: MIT
//
// The global half of the ATC protocol: whether threads count at present (OBASE 4.5).
//
//   INACTIVE --settle()--> PREPARE --all scopes entered since--> ACTIVE --finish()--> DRAIN
//      ^                      |                                                        |
//      |                      +---- wait given up: no moves ---> DRAIN                 |
//      +------------------- all scopes that may count have ended ----------------------+
//                          (or back to PREPARE, which waits for all of them as well)
//
// The papers go from ACTIVE to INACTIVE in one step. A scope that counted would then still be open
// while dereferences are not counted and counts are taken back; DRAIN is the time until it ends.
//
// What holds in each (docs/atc.md has the arguments):
//   INACTIVE  no scope is open that counts, so every ATC is stale and may be set to 0, and no TAG
//             holds anything. Scopes that begin now do not count for as long as they are open.
//   PREPARE   scopes that begin now count. Older ones are being waited for.
//   ACTIVE    every open scope counts: ATC = 0 means that nobody holds the object but by a pin.
//             The only phase with migrations.
//   DRAIN     no migrations; scopes that begin now do not count; counting ones may be open.
//
// Only the collector writes the phase.
#pragma once

#include "mobility/scope_registry.hpp"

#include <cstdint>

namespace obase::mobility {

enum class atc_phase : std::uint32_t { inactive, prepare, active, drain };

template <class P>
struct atc_state {
    typename P::template atomic<atc_phase> phase;

    // Does a scope that begins now count? Asked after the scope has announced itself.
    bool counts() const noexcept {
        const atc_phase now = phase.load_seq_cst();
        return now == atc_phase::prepare || now == atc_phase::active;
    }
    // No thread counts in anything and no TAG holds anything.
    bool is_quiet() const noexcept { return phase.load_seq_cst() == atc_phase::inactive; }
};

} // namespace obase::mobility
