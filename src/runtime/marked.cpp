// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the arming protocol.
//
// Two slots for a moment. docs/protocol.md proves a publish safe because the armed word stands alone
// for its object: whoever gets the address without touching the word did so in a scope that the wait
// covers. If the object is in another slot, too, a thread that enters after the wait began can read
// the address there. Say an operation stores X, which it found in A, into B; the collector arms B and
// begins its wait; a reader enters and finds X in A, which is plain; the operation takes X out of A
// and ends; the wait ends. Nobody has touched B, but the reader uses X. So the mover waits twice.
//
// Is that enough? Let X be published from B, and R be a scope that is open then and got X from another
// slot, C. The second wait did not cover R, so C showed X after the first wait had ended. B was armed
// before that wait, and nobody has touched it or stored into it since (R3).
//   - An operation found X in C and stored it into B: before B was armed, so the first wait outlasted
//     it. By its end it had taken X out of C (rule 1), and whoever enters afterwards sees that: its
//     scope ends by a release, which the wait acquires and the next epoch passes on.
//   - An operation found X in B and stored it into C: it had touched B before B was armed, so the first
//     wait outlasted this one, too, and by its end X was out of C.
//   - Two operations found X in the same slot and stored it, one into B, one into C. One of them failed
//     to take it away there and gave up what it had stored; that was C, and R could not load it there
//     (rule 2).
#include <obase/marked.h>

#include "runtime/arming_engine.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/arming.hpp>
#include <obase/word/arming.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace {

struct marked_arming {
    using protocol = obase::arming;
    using engine = obase::runtime_internal::arming_engine;
    using slot = protocol::slot;
    using layout = obase::word::arming;
    using bits = obase::word::bits;

    static void hold(slot&) noexcept {} // each batch waits
    static void put(slot& s, bits word) noexcept { s.store_release(word); }
    static bits take(slot& s, bits word) noexcept { return s.exchange_seq_cst(word); }
    // Only the collector arms (R3).
    static bits owned(bits word) noexcept {
        return layout::is_armed(word) ? layout::make_born(layout::address(word)) : word;
    }
    static void began() noexcept {}
    static void ends() noexcept {}
};

// What compiler/passes/inline_scopes.cpp makes instructions of.
static_assert(offsetof(obase::arming::thread_context, slot) == 0);
static_assert(offsetof(obase::arming::thread_context, epoch) == 8);
static_assert(offsetof(obase::arming::record, epoch) == 0);
static_assert(offsetof(obase::arming::record, fenced) == 8);
static_assert(offsetof(obase::arming::record, exit_work) == 9);

using functions = obase::runtime_internal::marked_pointers<marked_arming>;
using obase::runtime_internal::free_plain;
using obase::runtime_internal::usual_alignment;

} // namespace

#define OBASE_MARKED(name) obase_marked_##name
#include "runtime/marked_functions.inc"
