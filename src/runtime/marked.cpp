// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the arming protocol.
//
// Two slots for a moment. docs/protocol.md proves a publish safe because the armed word stands alone
// for its object: whoever gets the address without touching the word did so in a scope that the wait
// covers. If the object is in another slot, too, a thread that enters after the wait began can read
// the address there. Say an operation stores X, which it found in A, into B; the collector arms B and
// begins its wait; a reader enters and finds X in A, which is plain; the operation takes X out of A
// and ends; the wait ends. Nobody has touched B, but the reader uses X. So when an operation ends,
// each slot into which it stored an address is touched once more if it is armed. Then an armed word
// that survives was written after its operation's end, or before its beginning. After the end, who
// can have read A had entered before it was changed, hence before the arming, and is waited for. (The
// change may be in a store buffer at the operation's end: scope_registry::flush_stores().)
// Before the beginning, B holds X without having been stored into; A must be the slot that the
// operation stored X into and took it out of again. If other threads could see it there meanwhile,
// that is what rule 2 of the header forbids; if they could not, A is nobody else's.
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

    static void put(slot& s, bits word) noexcept { s.store_release(word); }
    static bits take(slot& s, bits word) noexcept { return s.exchange_seq_cst(word); }
    // Only the collector arms (R3).
    static bits owned(bits word) noexcept {
        return layout::is_armed(word) ? layout::make_born(layout::address(word)) : word;
    }
    static void began() noexcept {}
    static void ends() noexcept {}
    static bool settles() noexcept { return true; }
    static void settle(slot& s) noexcept { obase::word::settle(s); }
};

// What compiler/passes/inline_scopes.cpp makes instructions of.
static_assert(offsetof(obase::arming::thread_context, slot) == 0);
static_assert(offsetof(obase::arming::thread_context, epoch) == 8);
static_assert(offsetof(obase::arming::record, epoch) == 0);
static_assert(offsetof(obase::arming::record, fenced) == 8);
static_assert(offsetof(obase::arming::record, exit_work) == 9);

using functions = obase::runtime_internal::marked_pointers<marked_arming>;
using obase::runtime_internal::free_plain;

} // namespace

#define OBASE_MARKED(name) obase_marked_##name
#include "runtime/marked_functions.inc"
