// SPDX-License-Identifier: MIT
//
// arming_mover: moves objects under running threads by the arming protocol (docs/protocol.md).
//
// One window of one region, in this order and no other:
//   visit()   every slot, inside a SODA visit: plain -> armed; those worth moving become candidates.
//   wait_for_grace_period()  epoch advance, membarrier, wait until no scope can hold an address
//             from before (R1; for marked pointers all of it twice), then the pins (R9).
//   move()    each candidate: size once, copy, nested slots, visit, publish, source freed (R7, R8,
//             R11).
//   forget()  the candidates die: at the next scan, and after a wait that was given up (R6).
//
// Why a successful publish leaves no thread with the old address: the word was armed when
// wait_for_grace_period() began and is the same armed word now. Only the collector writes armed
// words (R3), so no thread touched it in between; a thread that had touched it before was in a
// scope that has ended, or holds a pin that wait_for_grace_period() has seen.
//
// An object may contain slots, and move with them (O4); its owner may free it at any moment, and then
// the copy is garbage and the publish fails (O5).
//
// Slots is where the slots are: SODA's directory, or the forwarding tables of src/handles, whose words are never inside
// objects and whose memory outlives every visit (handles/evacuator.hpp).
//
// Threads: one mover thread (R13). Templated on platform and heap, so that one body of tests runs
// natively and under the deterministic scheduler. Heap is heap::space or a test's.
#pragma once

#include "heap/scratch_list.hpp"
#include "mobility/contracts.hpp"
#include "mobility/mover_types.hpp"
#include "mobility/pins.hpp"
#include "mobility/racy_copy.hpp"
#include "mobility/scope_registry.hpp"
#include "soda/directory.hpp"

#include <obase/word/arming.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace obase::mobility {

template <class P, object_heap Heap, class Slots = soda::directory<P>>
class arming_mover {
  public:
    using platform = P;
    using heap_type = Heap;
    using slot_atomic = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using layout = word::arming;

    struct candidate {
        slot_atomic* slot;
        std::uint64_t word; // exact armed word
        std::uint32_t target;
    };

    // observation::inactive_windows is a difference of window numbers.
    static constexpr bool ages_are_stamps = true;
    // Candidates in use that wait together, at least: each batch has a wait of its own, and is exposed for it.
    static constexpr std::size_t least_hot_batch = std::size_t{1} << 7;

    arming_mover(scope_registry<P>& registry, Slots& slots, Heap& heap)
        : registry_(registry), slots_(slots), heap_(heap) {
        candidates_.reserve(least_capacity);
    }

    // Inside a visit of the slot's bitmap word.
    observation visit(slot_atomic& slot, window_id window) noexcept {
        observation seen;
        std::uint64_t word = slot.load_acquire();
        if (layout::is_null(word)) return seen;
        const std::uint64_t address = layout::address(word);
        if (!heap_.contains(reinterpret_cast<const void*>(address))) { // R17: never armed
            seen.foreign = true;
            return seen;
        }
        seen.address = address;
        if (layout::is_armed(word)) {
            seen.inactive_windows = layout::age(word, window.number);
            seen.movable = true;
            seen.word = word;
            if (seen.inactive_windows > layout::restamp_age) // before the stamp comes round
                seen.movable = rearm(slot, seen, window.number - layout::restamp_age / 2);
            return seen;
        }
        seen.word = word;
        if (layout::is_aged(word)) {
            // As if this slot had been armed then: but it is armed now, before the wait of any move (R1).
            const unsigned age = layout::age(word, window.number);
            seen.resettled = true;
            seen.movable =
                rearm(slot, seen, window.number - std::min(age, layout::restamp_age / 2));
            if (seen.movable) seen.inactive_windows = age;
            return seen;
        }
        seen.touched = layout::is_touched(word);
        seen.newborn = !seen.touched;
        seen.movable = rearm(slot, seen, window.number);
        return seen;
    }

    // Another visit in the same window: it counts no further window.
    observation revisit(slot_atomic& slot, window_id window) noexcept {
        return visit(slot, window);
    }

    // Room for `count` candidates, so that visits need not allocate. Outside of any visit. False:
    // no memory.
    bool reserve(std::size_t count) noexcept { return candidates_.reserve(count); }

    // Inside the same visit. False when the list is full: the object stays for now.
    bool add_candidate(slot_atomic& slot, const observation& seen, unsigned target) noexcept {
        if (candidates_.size() == candidates_.capacity()) return false;
        candidates_.push_back({&slot, seen.word, target});
        return true;
    }

    heap::scratch_list<candidate>& candidates() noexcept { return candidates_; }

    // After the last visit, outside of any. `self` is the collector's own record or null. When the
    // wait is given up, or membarrier fails, the candidates are gone and nothing may move (R1, R6).
    template <class GiveUp>
    wait_result wait_for_grace_period(const thread_record<P>* self, GiveUp&& give_up) noexcept {
        // R1: every arm precedes the epoch's advance in here; the advance precedes the membarrier;
        // the reads of the scopes come last.
        if (registry_.wait_for_holders(registry_.waits_for_holders(), self, give_up) ==
            wait_result::given_up) {
            forget();
            return wait_result::given_up;
        }
        try {
            collect_pins(registry_, pinned_); // R9: after the wait
        } catch (const std::bad_alloc&) {
            forget();
            return wait_result::given_up;
        }
        return wait_result::done;
    }

    // After wait_for_grace_period(). One candidate, whole, before the next: so the copy and the
    // publish of a parent never have a visit to its own slots between them (R11). `window` stamps
    // the new word.
    move_result move(const candidate& c, std::uint64_t window, moved_object& result) noexcept {
        const std::uint64_t source = layout::address(c.word);
        if (is_pinned(pinned_, source)) return move_result::pinned;
        void* from = reinterpret_cast<void*>(source);
        const auto info = heap_.info(from); // R7: the size is read once
        if (info.size == 0) return move_result::not_alive;
        void* to = heap_.allocate_dense(c.target, info.size, info.attr);
        if (to == nullptr) return move_result::no_room;

        racy_copy(to, from, info.size); // R7: after the wait
        // R11: nested slots are registered at the destination before the publish makes them
        // reachable.
        const std::ptrdiff_t nested = slots_.copy_slots(from, to, info.size);
        const std::uint64_t target = layout::make_armed(reinterpret_cast<std::uint64_t>(to),
                                                        stamp_after_move(c.word, window));
        bool published = false;
        if (nested >= 0 && slots_.begin_visit(c.slot)) { // R8: hazard, then SODA once more
            published = word::publish(*c.slot, c.word, target);
            slots_.end_visit();
        }
        if (!published) {
            if (nested > 0) slots_.clear_unvisited(to, info.size); // R11: only the destination's
            heap_.undo_allocate_dense(to);
            return nested < 0 ? move_result::no_room : move_result::vetoed;
        }
        // R8: first the source's SODA bits, then its memory.
        if (nested > 0) slots_.clear_unvisited(from, info.size);
        heap_.free(from);
        result = {source, reinterpret_cast<std::uint64_t>(to), info.size,
                  static_cast<std::size_t>(nested)};
        return move_result::moved;
    }

    // After wait_for_grace_period(): the object at the address was pinned then (R9).
    bool pinned(std::uint64_t address) const noexcept { return is_pinned(pinned_, address); }

    void forget() noexcept { candidates_.clear(); }

    // Nothing to switch off after a round of moves.
    void finish() noexcept { candidates_.release(); }

  private:
    static constexpr std::size_t least_capacity = 64;

    bool rearm(slot_atomic& slot, observation& seen, std::uint64_t stamp) noexcept {
        if (!word::arm(slot, seen.word, stamp)) {
            seen.touched = true; // a thread was faster
            return false;
        }
        seen.word = layout::make_armed(seen.address, stamp);
        return true;
    }

    // A move is not an access: the object's age stays what it was.
    static std::uint64_t stamp_after_move(std::uint64_t armed, std::uint64_t window) noexcept {
        return window - layout::age(armed, window);
    }

    scope_registry<P>& registry_;
    Slots& slots_;
    Heap& heap_;
    heap::scratch_list<candidate> candidates_;
    std::vector<std::uint64_t> pinned_;
};

} // namespace obase::mobility
