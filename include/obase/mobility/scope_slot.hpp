// SPDX-License-Identifier: MIT
//
// The word in which a thread announces its scope, and the two transitions on it. This is the part
// of mobility that every operation of a user's data structure executes, so it is inline and public;
// the other half, which waits, is mobility/scope_registry.hpp.
//
// Both halves of the synchronization (R1, R2):
//   enter_scope()  loads the global epoch and stores it in the thread's slot with a plain store and a
//                  compiler fence; then the thread loads guide words.
//   the collector  advances the epoch after everything that must be seen is written, calls membarrier,
//                  then reads the slots. The membarrier makes a slot store that was still in a store
//                  buffer visible; a thread whose store comes later also loads its guide words later
//                  and finds them armed. Without membarrier the slot is marked `fenced` and entry
//                  pays an exchange instead.
//   exit_scope()   release-stores the outer value; the collector's acquire load of it makes all that
//                  the scope did happen before what the collector does next.
// There is no depth counter: a nested entry finds a nonzero word and leaves it alone, and exit puts
// back what entry found, so a signal handler with a scope of its own between any two instructions
// restores exactly what it found. An older epoch in the slot is always safe; the collector only
// waits longer.
//
// Internal: programs use obase::scope, or obase_scope_enter() in C.
#pragma once

#include <obase/word/atomic.hpp>

#include <cstdint>

namespace obase::mobility {

using epoch_number = std::uint64_t;

template <class Atomic>
struct scope_slot {
    Atomic epoch;           // 0 outside of scopes, else the epoch at the outermost entry
    bool fenced = false;    // entry needs a full fence: membarrier is missing
    bool exit_work = false; // owner only: something is to be done when the outermost scope ends
};

// Returns what exit_scope() must be given. Async-signal-safe. Cost: two loads and a store.
template <class Atomic>
inline epoch_number enter_scope(scope_slot<Atomic>& slot, const Atomic& global_epoch) noexcept {
    const epoch_number outer = slot.epoch.load_relaxed();
    if (outer == 0) {
        const epoch_number now =
            global_epoch.load_acquire(); // pairs with scope_registry::advance()
        if (slot.fenced) [[unlikely]]
            slot.epoch.exchange_seq_cst(now);
        else
            slot.epoch.store_release(now); // pairs with scope_registry::wait_for(), by membarrier
    }
    word::compiler_fence();
    return outer;
}

template <class Atomic>
inline void exit_scope(scope_slot<Atomic>& slot, epoch_number outer) noexcept {
    slot.epoch.store_release(outer); // pairs with scope_registry::wait_for()
}

// The end of a scope as a program executes it: exit_scope(), but where an outermost scope ends and
// something is to be done then (exit_work), end_with_work() ends it.
template <class Atomic, class EndWithWork>
inline void leave_scope(scope_slot<Atomic>& slot, epoch_number outer,
                        EndWithWork&& end_with_work) noexcept {
    if (outer == 0 && slot.exit_work) [[unlikely]]
        end_with_work();
    else
        exit_scope(slot, outer);
}

} // namespace obase::mobility
