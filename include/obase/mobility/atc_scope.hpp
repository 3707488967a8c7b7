// SPDX-License-Identifier: MIT
//
// The part of the ATC protocol that every operation of a user's data structure executes: the entry
// of a scope, and the dereference in the quiet times between two rounds of moves. So it is inline
// and public; the rest is src/mobility/atc_thread.hpp.
//
// The phases of the protocol (OBASE 4.5). Only the collector writes the phase.
//
//   INACTIVE ---- wait --> PREPARE --all scopes entered since--> ACTIVE --finish()--> DRAIN
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
//   ACTIVE    every open scope counts: ATC = 0 means that no thread holds the object, except by a
//             pin. The only phase with migrations.
//   DRAIN     no migrations; scopes that begin now do not count; counting ones may be open.
//
// Internal: programs use basic_scope<atc> and guide<T, atc>.
#pragma once

#include <obase/mobility/scope_slot.hpp>
#include <obase/word/atc.hpp>

#include <cstdint>

namespace obase::mobility {

enum class atc_phase : std::uint32_t { inactive, prepare, active, drain };

// Of a thread's outermost scope, fixed at its entry:
//   silent    it began in INACTIVE or DRAIN. Nothing moves while it is open, because PREPARE waits
//             for it. A dereference sets the access bit, unless it is set, and that is all.
//   counting  it began in PREPARE or ACTIVE. The first touch of a slot adds one to its ATC and
//             notes the slot in the TAG; the end of the scope takes all of them back.
enum class atc_mode : std::uint8_t { undecided, silent, counting }; // undecided outside of scopes

// The global half: Atomic holds an atc_phase.
template <class Atomic>
struct atc_phase_word {
    Atomic phase;

    // Does a scope that begins now count? Asked after the scope has announced itself.
    bool counts() const noexcept {
        const atc_phase now = phase.load_seq_cst();
        return now == atc_phase::prepare || now == atc_phase::active;
    }
    // No thread counts in anything and no TAG holds anything.
    bool is_quiet() const noexcept { return phase.load_seq_cst() == atc_phase::inactive; }
};

// Returns what the exit must be given. Async-signal-safe.
//
// R2: announce the epoch in the thread's record, and only then read the phase. The collector stores
// the phase, advances the epoch, calls membarrier and then reads the records. So either it sees the
// announcement, with an epoch from before the advance, and waits; or the phase is read after the
// membarrier and is the new one. The papers read the phase first: a thread preempted between the
// two would run uncounted in the middle of ACTIVE. (Epoch and phase need not be read again until
// they have not changed: with this order the first reading is already good; an epoch that is
// older than necessary makes the collector wait longer, nothing else.)
template <class Atomic, class PhaseAtomic>
inline epoch_number enter_atc_scope(scope_slot<Atomic>& slot, atc_mode& mode, const Atomic& epoch,
                                    const atc_phase_word<PhaseAtomic>& state) noexcept {
    const epoch_number outer = enter_scope(slot, epoch); // the announcement
    if (outer == 0) mode = state.counts() ? atc_mode::counting : atc_mode::silent;
    word::compiler_fence();
    return outer;
}

// The end of a scope as a program executes it. Where an outermost scope has more to do, because it
// may have counted or has exit_work, end_with_work() ends it.
template <class Atomic, class EndWithWork>
inline void leave_atc_scope(scope_slot<Atomic>& slot, atc_mode& mode, epoch_number outer,
                            EndWithWork&& end_with_work) noexcept {
    if (outer == 0) {
        if (mode != atc_mode::silent || slot.exit_work) [[unlikely]] {
            end_with_work();
            return;
        }
        mode = atc_mode::undecided;
        word::compiler_fence(); // a handler from here on finds a scope of unknown mode
    }
    exit_scope(slot, outer);
}

} // namespace obase::mobility
