// SPDX-License-Identifier: MIT
//
// atc_mover: moves objects under running threads by the papers' protocol (OBASE 4.5; docs/atc.md).
// Same face as arming_mover, so the collector is written once.
//
// One window of one region:
//   visit()   every slot, inside a SODA visit: takes the access bit, counts CIW. In INACTIVE it
//             also sets stale ATCs to 0 (I3); in other phases it leaves a slot with ATC != 0 alone.
//   wait_for_grace_period()  first batch: PREPARE, epoch advance, membarrier, wait until every open
//             scope counts, ACTIVE. Later batches of the window need no wait: in ACTIVE every
//             holder is counted, so a candidate's word, which has ATC = 0, says that there is none.
//             Then the pins (R9).
//   move()    lock (first CAS), copy, nested slots, commit (second CAS), source freed.
//   finish()  DRAIN. It does not wait; INACTIVE is entered at the next call that finds every scope
//             of before ended. Until then nothing is swept, and a stuck scope costs only that.
//
// Why a successful commit leaves no thread with the old address. ACTIVE: every open scope counts.
// The word that lock() replaced had ATC = 0 and the candidate's address, visited and not replaced
// since (a replaced one is unvisited): no open scope has touched it and not been counted out. A
// thread that touches it later clears the lock, and no other word equals the locked one: only
// move() sets the lock. Pins of scopes that ended before the lock are visible after it, and pinned
// objects are left alone.
//
// A candidate that was to be moved because it is in use may have been used again since the visit:
// it is taken all the same if ATC is 0 at the moment. Here arming has to give up; it is what
// counting buys. Objects that were to be moved for their idleness are vetoed by any use.
//
// Threads: one mover thread (R13).
#pragma once

#include "heap/scratch_list.hpp"
#include "mobility/atc_thread.hpp"
#include "mobility/contracts.hpp"
#include "mobility/mover_types.hpp"
#include "mobility/pins.hpp"
#include "mobility/racy_copy.hpp"
#include "mobility/scope_registry.hpp"
#include "soda/directory.hpp"

#include <obase/word/atc.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace obase::mobility {

// Heap: heap::space or a test's.
template <class P, object_heap Heap>
class atc_mover {
  public:
    using platform = P;
    using heap_type = Heap;
    using slot_atomic = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using layout = word::atc;

    struct candidate {
        slot_atomic* slot;
        std::uint64_t word; // as the visit left it
        std::uint32_t target;
        bool touched; // a further touch is no reason to leave it
    };

    static constexpr bool ages_are_stamps = false; // but what CIW counted
    // Later batches need no wait. What an object owns should move with it, or before it: a slot that has moved in this
    // window does not let its object move.
    static constexpr std::size_t least_hot_batch = std::size_t{1} << 14;

    atc_mover(scope_registry<P>& registry, soda::directory<P>& slots, Heap& heap,
              atc_state<P>& state)
        : registry_(registry), slots_(slots), heap_(heap), state_(state) {
        candidates_.reserve(least_capacity);
    }

    // Inside a visit of the slot's bitmap word.
    observation visit(slot_atomic& slot, window_id window) noexcept {
        observation seen;
        std::uint64_t word = slot.load_acquire();
        if (layout::is_null(word)) return seen;
        const auto* object = reinterpret_cast<const void*>(layout::address(word));
        if (!heap_.contains(object)) {
            seen.foreign = true;
            return seen;
        }
        seen.address = layout::address(word);
        seen.touched = layout::is_accessed(word);
        seen.newborn = !seen.touched && layout::is_new(word);
        seen.resettled = !seen.touched && !seen.newborn && !layout::is_visited(word);
        const bool sweep = phase() == atc_phase::inactive; // I3
        if (!sweep && layout::count(word) != 0) {
            // In use now, or built in this round: the next scan finds it as it is.
            seen.inactive_windows = seen.touched ? 0 : layout::inactive_windows(word);
            return seen;
        }
        const std::uint64_t next = layout::visited(word, heap_id(object), sweep, window.counts);
        if (next == word || word::record_visit(slot, word, next)) {
            seen.inactive_windows = layout::inactive_windows(next);
            seen.movable = true;
            seen.word = next;
        } else {
            seen.touched = true; // a thread was faster
            seen.newborn = false;
        }
        return seen;
    }

    // Another visit in the same window: CIW does not count it.
    observation revisit(slot_atomic& slot, window_id window) noexcept {
        const std::uint64_t word = slot.load_acquire();
        if (layout::is_null(word) || layout::is_accessed(word) || !layout::is_visited(word) ||
            !heap_.contains(reinterpret_cast<const void*>(layout::address(word))))
            return visit(slot, window_id(window.number, false));
        observation seen;
        seen.address = layout::address(word);
        seen.inactive_windows = layout::inactive_windows(word);
        seen.movable = layout::count(word) == 0;
        seen.word = word;
        return seen;
    }

    // Room for `count` candidates, so that visits need not allocate. Outside of any visit. False:
    // no memory.
    bool reserve(std::size_t count) noexcept { return candidates_.reserve(count); }

    // Inside the same visit. False when the list is full: the object stays for now.
    bool add_candidate(slot_atomic& slot, const observation& seen, unsigned target) noexcept {
        if (candidates_.size() == candidates_.capacity()) return false;
        candidates_.push_back({&slot, seen.word, target, seen.touched});
        return true;
    }

    heap::scratch_list<candidate>& candidates() noexcept { return candidates_; }

    // After the last visit, outside of any. Afterwards no thread holds a candidate's address
    // without being counted. Without candidates: waits until every scope that is open now has ended
    // (for those who unmap what scopes may be reading), and changes nothing.
    template <class GiveUp>
    wait_result wait_for_grace_period(const thread_record<P>* self, GiveUp&& give_up) noexcept {
        self_ = self;
        if (candidates_.empty()) {
            const epoch_number epoch = registry_.advance();
            return epoch == 0 ? wait_result::given_up : registry_.wait_for(epoch, self, give_up);
        }
        // A batch in ACTIVE needs no wait of its own, unless it is the first with slots that need two.
        const unsigned waits = registry_.waits_for_holders();
        if (phase() != atc_phase::active || waits > waited_) {
            // The phase before the epoch, the epoch before the barrier, the barrier before the
            // records are read. (The papers count the epoch up first: a thread could then show the
            // new epoch and have read INACTIVE.)
            if (phase() != atc_phase::active) state_.phase.store_seq_cst(atc_phase::prepare);
            if (registry_.wait_for_holders(waits, self, give_up) == wait_result::given_up) {
                finish();
                return wait_result::given_up;
            }
            waited_ = waits;
            state_.phase.store_seq_cst(atc_phase::active);
        }
        try {
            collect_pins(registry_, pinned_); // R9: after the words of the candidates were read
        } catch (const std::bad_alloc&) {
            forget();
            return wait_result::given_up;
        }
        return wait_result::done;
    }

    // After wait_for_grace_period(). One candidate, whole, before the next (R11).
    move_result move(const candidate& c, std::uint64_t, moved_object& result) noexcept {
        const std::uint64_t source = layout::address(c.word);
        if (is_pinned(pinned_, source)) return move_result::pinned;
        std::uint64_t locked = 0;
        const move_result ready = lock(c, locked);
        if (ready != move_result::moved) return ready;

        void* from = reinterpret_cast<void*>(source);
        const auto info = heap_.info(from); // R7: the size is read once
        if (info.size == 0) {
            unlock(*c.slot, locked);
            return move_result::not_alive;
        }
        void* to = heap_.allocate_dense(c.target, info.size, info.attr);
        if (to == nullptr) {
            unlock(*c.slot, locked);
            return move_result::no_room;
        }
        racy_copy(to, from, info.size); // R7: after the lock
        // R11: nested slots are registered at the destination before the commit makes them
        // reachable.
        const std::ptrdiff_t nested = slots_.copy_slots(from, to, info.size);
        if (nested > 0) make_slots_sticky(to, info.size);
        const std::uint64_t target =
            layout::moved(locked, reinterpret_cast<std::uint64_t>(to), heap_id(to));
        bool committed = false;
        if (nested >= 0 && slots_.begin_visit(c.slot)) { // R8: hazard, then SODA once more
            committed = word::commit_move(*c.slot, locked, target);
            slots_.end_visit();
        }
        if (!committed) {
            if (nested > 0) { // R11: only the destination's
                slots_.clear_unvisited(to, info.size);
                // Where a slot has ended in this round, a TAG may still name its place.
                wait_for_exits<P>(registry_, nullptr, to, static_cast<char*>(to) + info.size);
            }
            heap_.undo_allocate_dense(to);
            unlock(*c.slot, locked);
            return nested < 0 ? move_result::no_room : move_result::vetoed;
        }
        // R8: first the source's SODA bits, then its memory. A scope that is ending may have these
        // nested slots in its TAG: it counts them out under an exit hazard, like every destroyed
        // slot.
        if (nested > 0) {
            slots_.clear_unvisited(from, info.size);
            wait_for_exits<P>(registry_, nullptr, from, static_cast<char*>(from) + info.size);
        }
        heap_.free(from);
        result = {source, reinterpret_cast<std::uint64_t>(to), info.size,
                  static_cast<std::size_t>(nested)};
        return move_result::moved;
    }

    // R6, and a look whether the counting scopes of the window before have ended.
    void forget() noexcept {
        candidates_.clear();
        poll_drain();
    }

    // No more moves in this round.
    void finish() noexcept {
        candidates_.release();
        if (phase() == atc_phase::prepare || phase() == atc_phase::active) {
            state_.phase.store_seq_cst(atc_phase::drain);
            drain_epoch_ = registry_.advance();
        }
        poll_drain();
    }

    atc_phase phase() const noexcept { return state_.phase.load_relaxed(); } // only we write it

  private:
    static constexpr std::size_t least_capacity = 64;

    // The heap as two bits, for words read in a debugger; the address says it exactly.
    unsigned heap_id(const void* object) const noexcept {
        const unsigned cls = heap_.class_of(object);
        return cls < layout::unvisited_heap ? cls : 0; // large objects have no temperature class
    }

    void poll_drain() noexcept {
        if (phase() != atc_phase::drain) return;
        if (drain_epoch_ == 0) drain_epoch_ = registry_.advance(); // membarrier had failed
        if (drain_epoch_ == 0) return;
        const auto no_waiting = [](const thread_record<P>&) { return true; };
        if (registry_.wait_for(drain_epoch_, self_, no_waiting) == wait_result::done)
            state_.phase.store_seq_cst(atc_phase::inactive);
    }

    // First CAS. `moved` means: locked.
    move_result lock(const candidate& c, std::uint64_t& locked) noexcept {
        if (phase() != atc_phase::active || !slots_.begin_visit(c.slot)) return move_result::vetoed;
        const std::uint64_t now = c.slot->load_acquire();
        const bool used_again = c.touched && now == (c.word | layout::access_bit);
        bool done = layout::count(now) == 0 && (now == c.word || used_again) &&
                    word::begin_move(*c.slot, now);
        slots_.end_visit();
        if (!done) return move_result::vetoed;
        locked = now | layout::lock_bit;
        // R9: a thread that used it since wait_for_grace_period() may have pinned it. It has left,
        // so its pin is visible.
        if (used_again && pinned_now(layout::address(now))) {
            unlock(*c.slot, locked);
            return move_result::pinned;
        }
        return move_result::moved;
    }

    void unlock(slot_atomic& slot, std::uint64_t locked) noexcept {
        if (!slots_.begin_visit(&slot)) return;
        word::cancel_move(slot, locked);
        slots_.end_visit();
    }

    bool pinned_now(std::uint64_t address) const noexcept {
        bool found = false;
        registry_.for_each_record([&](const record& r) {
            for (const pin_chunk<P>* chunk = &r.pins; chunk != nullptr;
                 chunk = chunk->next.load_acquire())
                for (const auto& entry : chunk->address)
                    found = found || entry.load_acquire() == address;
        });
        return found;
    }

    // I2: these addresses have just become slots. No thread can reach them yet.
    void make_slots_sticky(void* object, std::size_t size) noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(object);
        slots_.scan_range(begin, begin + size, [](std::uintptr_t base, std::uint64_t bits) {
            for (; bits != 0; bits &= bits - 1) {
                const auto bit = static_cast<unsigned>(__builtin_ctzll(bits));
                reinterpret_cast<slot_atomic*>(base + 8u * bit)
                    ->fetch_or_relaxed(layout::count_mask);
            }
        });
    }

    scope_registry<P>& registry_;
    soda::directory<P>& slots_;
    Heap& heap_;
    atc_state<P>& state_;
    heap::scratch_list<candidate> candidates_;
    std::vector<std::uint64_t> pinned_;
    const thread_record<P>* self_ = nullptr;
    epoch_number drain_epoch_ = 0;
    unsigned waited_ = 0; // waits in this round; meaningful in ACTIVE
};

} // namespace obase::mobility
