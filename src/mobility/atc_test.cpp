// SPDX-License-Identifier: MIT
//
// The ATC word, the index of threads, and the phases of the protocol, one step after another in one
// thread. What happens between threads is atc_obligations_test.cpp.
#include "mobility/world_test.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <sys/mman.h>
#include <vector>

namespace obase::mobility {
namespace {

using layout = word::atc;
using P = os::native_platform;
using world_type = exclusive_world<on_threads<P>, atc_protocol>;

const auto never = [](const thread_record<P>&) { return false; };
const auto at_once = [](const thread_record<P>&) { return true; };

constexpr std::uint64_t address = 0x7f12'3456'7890;

RC_GTEST_PROP(atc_word, a_transition_changes_its_own_fields_only, (std::uint64_t number)) {
    // RapidCheck's numbers are small ones at first: spread them over all fields. Every other word
    // has a count at one of its ends.
    std::uint64_t word = (number + 1) * 0x9e37'79b9'7f4a'7c15;
    if (number % 4 == 1) word |= layout::count_mask;
    if (number % 4 == 3) word &= ~layout::count_mask;
    const std::uint64_t in = layout::counted_in(word);
    RC_ASSERT(layout::address(in) == layout::address(word));
    RC_ASSERT(layout::inactive_windows(in) == layout::inactive_windows(word));
    RC_ASSERT(layout::heap(in) == layout::heap(word));
    RC_ASSERT(layout::is_accessed(in));
    RC_ASSERT(!layout::is_locked(in));
    RC_ASSERT(layout::count(in) == std::min(layout::count(word) + 1, 127u));

    const std::uint64_t out = layout::counted_out(word);
    const unsigned count = layout::count(word);
    RC_ASSERT((out & ~layout::count_mask) == (word & ~layout::count_mask));
    RC_ASSERT(layout::count(out) == (count == 0 || count == 127 ? count : count - 1));

    for (const bool sweep : {false, true}) {
        const std::uint64_t seen = layout::visited(word, 2, sweep, true);
        RC_ASSERT(layout::address(seen) == layout::address(word));
        RC_ASSERT(layout::heap(seen) == 2u);
        RC_ASSERT(layout::count(seen) == (sweep ? 0 : count));
        RC_ASSERT(!layout::is_accessed(seen));
        RC_ASSERT(layout::is_locked(seen) == layout::is_locked(word));
        const unsigned idle = layout::is_accessed(word) || layout::is_new(word)
                                  ? 0
                                  : std::min(layout::inactive_windows(word) + 1, 31u);
        RC_ASSERT(layout::inactive_windows(seen) == idle);
        // In a window that does not count: the same, but it makes nothing older that was idle before.
        const std::uint64_t part = layout::visited(word, 2, sweep, false);
        RC_ASSERT((part & ~layout::idle_mask) == (seen & ~layout::idle_mask));
        RC_ASSERT(layout::inactive_windows(part) ==
                  (idle > 1 ? layout::inactive_windows(word) : idle));
    }
}

// An object that changes slots is as old as before: at the next visit of a window that counts, one older.
TEST(atc_word, an_object_is_as_old_in_another_slot) {
    std::uint64_t visited = layout::visited(layout::make_born(address), 2, true, true);
    for (int i = 0; i < 4; ++i) visited = layout::visited(visited, 2, true, true);
    ASSERT_EQ(layout::inactive_windows(visited), 4u);
    const std::uint64_t owned = layout::leaving(visited);
    const std::uint64_t entered = layout::entering(owned);
    EXPECT_FALSE(layout::is_new(entered) || layout::is_visited(entered) ||
                 layout::is_accessed(entered));
    EXPECT_EQ(layout::inactive_windows(entered), 4u);
    EXPECT_EQ(layout::leaving(entered), owned);
    EXPECT_EQ(layout::inactive_windows(layout::visited(entered, 2, true, true)), 5u);
    EXPECT_EQ(layout::inactive_windows(layout::visited(entered, 2, true, false)), 4u);
    EXPECT_EQ(
        layout::inactive_windows(layout::visited(entered | layout::access_bit, 2, true, true)), 0u);
    EXPECT_EQ(layout::leaving(entered | layout::access_bit), address) << "a touch comes along";
    EXPECT_TRUE(layout::is_new(layout::entering(layout::make_born(address))));
}

// The 127th holder makes the count sticky, the 128th and all others leave the word as it is, and
// a thread that leaves takes nothing away.
TEST(atc_word, the_count_saturates_and_stays) {
    word::native_atomic<std::uint64_t> slot(layout::make_born(address));
    for (unsigned i = 1; i <= 300; ++i) {
        EXPECT_EQ(word::count_in(slot).address, address);
        EXPECT_EQ(layout::count(slot.load_relaxed()), std::min(i, 127u));
        EXPECT_EQ(layout::inactive_windows(slot.load_relaxed()), 0u);
    }
    for (unsigned i = 0; i < 300; ++i)
        EXPECT_EQ(word::count_out(slot), word::count_out_result::stays);
    EXPECT_TRUE(layout::is_sticky(slot.load_relaxed()));
}

TEST(atc_word, counts_go_up_and_down) {
    word::native_atomic<std::uint64_t> slot(layout::make_born(address));
    for (unsigned i = 0; i < 126; ++i) word::count_in(slot);
    for (unsigned i = 0; i < 126; ++i)
        EXPECT_EQ(word::count_out(slot), word::count_out_result::counted);
    EXPECT_EQ(word::count_out(slot), word::count_out_result::not_counted);
    EXPECT_EQ(slot.load_relaxed(), layout::make_born(address) | layout::access_bit);
}

TEST(atc_word, silent_touches_write_once) {
    word::native_atomic<std::uint64_t> slot(layout::make_born(address));
    EXPECT_TRUE(word::mark_access(slot).changed);
    EXPECT_FALSE(word::mark_access(slot).changed);
    EXPECT_EQ(word::mark_access(slot).address, address);
    word::native_atomic<std::uint64_t> null(layout::count_mask | layout::heap_mask);
    EXPECT_EQ(word::mark_access(null).address, 0u);
    EXPECT_FALSE(layout::is_accessed(null.load_relaxed()));
}

// Changing slots is no access, and does not undo one.
TEST(atc_word, objects_keep_their_access_between_slots) {
    const auto quiet = [] { return true; };
    word::native_atomic<std::uint64_t> a(layout::entering(layout::make_born(address)));
    word::native_atomic<std::uint64_t> b(layout::entering(0));
    EXPECT_FALSE(layout::is_accessed(a.load_relaxed()));
    EXPECT_FALSE(layout::is_accessed(b.load_relaxed()));
    word::swap_object(b, word::swap_object(a, 0, quiet), quiet);
    EXPECT_EQ(b.load_relaxed(), layout::make_born(address));
    word::mark_access(b);
    const std::uint64_t owned = word::swap_object(b, 0, quiet);
    EXPECT_EQ(owned, address);
    EXPECT_EQ(word::swap_object(a, owned, quiet), 0u);
    EXPECT_EQ(a.load_relaxed(), layout::make_born(address) | layout::access_bit);
}

// The commit is over the locked word (OBASE 4.5). The word from before the lock, with which
// Algorithm 1 compares, is not there.
TEST(atc_word, the_lock_is_part_of_the_word_that_commits) {
    word::native_atomic<std::uint64_t> slot(layout::make_born(address) & ~layout::heap_mask);
    const std::uint64_t unlocked = slot.load_relaxed();
    const std::uint64_t locked = unlocked | layout::lock_bit;
    const std::uint64_t moved = layout::moved(locked, address + 64, 1);
    ASSERT_TRUE(word::begin_move(slot, unlocked));
    EXPECT_FALSE(word::commit_move(slot, unlocked, moved));
    EXPECT_TRUE(word::commit_move(slot, locked, moved));
    EXPECT_FALSE(layout::is_locked(slot.load_relaxed()));
    EXPECT_EQ(layout::address(slot.load_relaxed()), address + 64);
    EXPECT_EQ(layout::heap(slot.load_relaxed()), 1u);
}

// A window after the object's construction, its touch, and its idleness, as the policy sees them.
TEST(atc_mover, visits_tell_newborn_touched_and_idle) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    observation seen = w.mover.visit(h->guide, 0);
    EXPECT_TRUE(seen.newborn && !seen.touched && seen.movable);
    EXPECT_EQ(seen.inactive_windows, 0u);
    seen = w.mover.visit(h->guide, 1);
    EXPECT_TRUE(!seen.newborn && !seen.touched && seen.movable);
    EXPECT_EQ(seen.inactive_windows, 1u);
    {
        const world_type::scope in(w, self);
        w.dereference(self, h->guide);
    }
    seen = w.mover.visit(h->guide, 2);
    EXPECT_TRUE(!seen.newborn && seen.touched && seen.movable);
    const unsigned idle = seen.inactive_windows;
    seen = w.mover.revisit(h->guide, 2); // of the same window
    EXPECT_EQ(seen.inactive_windows, idle);
    EXPECT_TRUE(seen.movable);
    EXPECT_FALSE(seen.touched);
    for (unsigned window = 1; window <= 40; ++window) {
        seen = w.mover.visit(h->guide, window + 2);
        EXPECT_FALSE(seen.touched);
        EXPECT_EQ(seen.inactive_windows, std::min(window, 31u)); // saturates
        EXPECT_EQ(layout::count(h->guide.load_relaxed()), 0u);
    }
    w.destroy(self, h);
    w.detach(self);
}

// Moves do happen, to idle and to used objects, in the first batch of a window and in later ones.
TEST(atc_mover, moves_objects) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    for (unsigned window = 0; window < 4; ++window) {
        auto* before = w.to_object(layout::address(h->guide.load_relaxed()));
        EXPECT_EQ(w.collect(window_step, 3, nullptr, never), 3u);
        EXPECT_EQ(w.mover.phase(), atc_phase::inactive);
        const world_type::scope in(w, self);
        auto* after = w.dereference(self, h->guide);
        EXPECT_NE(before, after);
        w.verify(after, 1, window);
        w.update(after, 1, window + 1);
    }
    w.destroy(self, h);
    EXPECT_EQ(w.heap.live_blocks(), 0u);
    w.detach(self);
}

// Settles around `work`, which runs in ACTIVE.
template <class Work>
void in_active(world_type& w, Work&& work) {
    w.mover.forget();
    w.scan();
    ASSERT_EQ(w.mover.wait_for_grace_period(nullptr, never), wait_result::done);
    ASSERT_EQ(w.mover.phase(), atc_phase::active);
    work();
    w.mover.finish();
}

// 200 operations hold the object: it does not move until the last is over and the next window has
// swept the count; CIW is what it was.
TEST(atc_mover, more_holders_than_the_count_has_numbers) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::vector<world_type::user*> many;
    for (int i = 0; i < 200; ++i) many.push_back(&w.attach());
    in_active(w, [&] {
        for (auto* e : many) {
            w.threads.enter(e->record, e->context);
            w.dereference(*e, h->guide);
        }
        EXPECT_EQ(layout::count(h->guide.load_relaxed()), 127u);
        EXPECT_EQ(layout::inactive_windows(h->guide.load_relaxed()), 0u);
        EXPECT_EQ(w.move_all(), 0u);
        for (std::size_t i = 0; i < 150; ++i) w.threads.leave(many[i]->record, many[i]->context, 0);
        w.scan();
        EXPECT_TRUE(w.mover.candidates().empty());
    });
    EXPECT_EQ(w.mover.phase(), atc_phase::drain); // 50 are still inside
    w.mover.forget();
    w.scan();
    EXPECT_TRUE(w.mover.candidates().empty()); // nothing is swept in DRAIN
    for (std::size_t i = 150; i < 200; ++i) w.threads.leave(many[i]->record, many[i]->context, 0);
    EXPECT_EQ(w.collect(window_step, 1, nullptr, never), 1u);
    for (auto* e : many) w.detach(*e);
    w.destroy(self, h);
    w.detach(self);
}

TEST(atc_mover, a_use_by_somebody_who_left_is_no_veto_if_use_was_the_reason) {
    world_type w;
    auto& self = w.attach();
    auto* used = w.make_holder(self, w.make(1, 0));
    auto* idle = w.make_holder(self, w.make(2, 0));
    const auto use = [&](world_type::holder* h) {
        const world_type::scope in(w, self);
        w.dereference(self, h->guide);
    };
    use(used);
    in_active(w, [&] {
        use(used);
        use(idle);
        moved_object result;
        ASSERT_EQ(w.mover.candidates().size(), 2u);
        for (const auto& c : w.mover.candidates())
            EXPECT_EQ(w.mover.move(c, 0, result),
                      c.slot == &used->guide ? move_result::moved : move_result::vetoed);
        EXPECT_FALSE(layout::is_locked(idle->guide.load_relaxed()));
    });
    w.destroy(self, used);
    w.destroy(self, idle);
    w.detach(self);
}

// A round began with one wait, and then there are slots that need two: they are waited for in ACTIVE.
TEST(atc_mover, a_batch_waits_if_the_round_has_waited_too_little_for_it) {
    world_type w;
    auto& self = w.attach();
    auto& other = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    in_active(w, [&] {
        const world_type::scope in(w, other);
        w.scan();
        EXPECT_EQ(w.mover.wait_for_grace_period(nullptr, at_once), wait_result::done);
    });
    in_active(w, [&] {
        const world_type::scope in(w, other);
        w.registry.expect_addresses_in_two_slots();
        w.scan();
        EXPECT_EQ(w.mover.wait_for_grace_period(nullptr, at_once), wait_result::given_up);
    });
    in_active(w, [&] {
        const world_type::scope in(w, other);
        w.scan();
        EXPECT_EQ(w.mover.wait_for_grace_period(nullptr, at_once), wait_result::done);
    });
    w.destroy(self, h);
    w.detach(other);
    w.detach(self);
}

// A pin claimed by that thread counts.
TEST(atc_mover, a_pin_claimed_after_settling_is_seen) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    const auto use = [&] {
        const world_type::scope in(w, self);
        return w.dereference(self, h->guide);
    };
    use();
    in_active(w, [&] {
        P::atomic<std::uint64_t>* pin = nullptr;
        {
            const world_type::scope in(w, self);
            pin = claim_pin(self.record, w.to_address(w.dereference(self, h->guide)),
                            []() -> pin_chunk<P>* { return nullptr; });
        }
        moved_object result;
        ASSERT_EQ(w.mover.candidates().size(), 1u);
        EXPECT_EQ(w.mover.move(w.mover.candidates()[0], 0, result), move_result::pinned);
        EXPECT_FALSE(layout::is_locked(h->guide.load_relaxed()));
        release_pin(*pin);
        EXPECT_EQ(w.mover.move(w.mover.candidates()[0], 0, result), move_result::moved);
    });
    w.destroy(self, h);
    w.detach(self);
}

TEST(atc_mover, a_full_heap_leaves_no_lock_behind) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    in_active(w, [&] {
        w.heap.full = true;
        moved_object result;
        EXPECT_EQ(w.mover.move(w.mover.candidates()[0], 0, result), move_result::no_room);
        EXPECT_FALSE(layout::is_locked(h->guide.load_relaxed()));
        w.heap.full = false;
        EXPECT_EQ(w.mover.move(w.mover.candidates()[0], 0, result), move_result::moved);
    });
    w.destroy(self, h);
    w.detach(self);
}

// A scope that does not end keeps the mover from ACTIVE; afterwards nothing moves in that window,
// and everything works in the one after its end.
TEST(atc_mover, a_stuck_scope_costs_its_window_only) {
    world_type w;
    auto& self = w.attach();
    auto& stuck = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.threads.enter(stuck.record, stuck.context);
    auto* held = w.dereference(stuck, h->guide);
    EXPECT_EQ(w.collect(window_step, 2, nullptr, at_once), 0u);
    EXPECT_EQ(w.mover.phase(), atc_phase::drain);
    EXPECT_EQ(w.collect(window_step, 2, nullptr, at_once), 0u);
    w.verify(held, 1, 0);
    w.threads.leave(stuck.record, stuck.context, 0);
    EXPECT_EQ(w.collect(window_step, 2, nullptr, at_once), 2u);
    w.detach(stuck);
    w.destroy(self, h);
    w.detach(self);
}

// A thread that ends inside a scope takes back what it counted.
TEST(atc_threads, a_thread_ends_inside_a_scope) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    in_active(w, [&] {
        auto& leaving = w.attach();
        w.threads.enter(leaving.record, leaving.context);
        w.dereference(leaving, h->guide);
        EXPECT_EQ(layout::count(h->guide.load_relaxed()), 1u);
        w.detach(leaving);
        EXPECT_EQ(layout::count(h->guide.load_relaxed()), 0u);
    });
    EXPECT_EQ(w.mover.phase(), atc_phase::inactive);
    w.destroy(self, h);
    w.detach(self);
}

// The mode is the outermost scope's, whatever the phase is at an inner entry.
TEST(atc_threads, inner_scopes_change_nothing) {
    world_type w;
    auto& self = w.attach();
    auto& other = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    epoch_number outer = 0;
    in_active(w, [&] {
        outer = w.threads.enter(other.record, other.context);
        w.dereference(other, h->guide);
    });
    EXPECT_EQ(w.mover.phase(), atc_phase::drain);
    const epoch_number inner = w.threads.enter(other.record, other.context);
    EXPECT_NE(inner, 0u);
    EXPECT_EQ(other.context.mode, atc_mode::counting);
    w.threads.leave(other.record, other.context, inner);
    EXPECT_EQ(layout::count(h->guide.load_relaxed()), 1u);
    w.threads.leave(other.record, other.context, outer);
    EXPECT_EQ(layout::count(h->guide.load_relaxed()), 0u);
    w.detach(other);
    w.destroy(self, h);
    w.detach(self);
}

// A handler that interrupts a scope's entry, or a change of the TAG, makes what it touches sticky;
// in quiet times it needs nothing (O6).
TEST(atc_threads, handlers_at_awkward_moments) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    const auto interrupted = [&] { // announced, and the mode not yet decided
        const epoch_number outer = enter_scope(self.record, w.registry.epoch());
        const epoch_number inner = w.threads.enter(self.record, self.context);
        w.dereference(self, h->guide);
        w.threads.leave(self.record, self.context, inner);
        w.threads.leave(self.record, self.context, outer);
    };
    interrupted();
    EXPECT_EQ(layout::count(h->guide.load_relaxed()), 0u);
    in_active(w, [&] {
        interrupted();
        EXPECT_TRUE(layout::is_sticky(h->guide.load_relaxed()));
        EXPECT_TRUE(self.context.tag.empty());
    });
    in_active(w, [&] {
        const world_type::scope outer(w, self);
        self.context.changing = true;
        w.dereference(self, h->guide);
        EXPECT_TRUE(layout::is_sticky(h->guide.load_relaxed()));
        EXPECT_TRUE(self.context.tag.empty());
        self.context.changing = false;
    });
    w.destroy(self, h);
    w.detach(self);
}

// An operation may touch more slots than there is memory to note: those are sticky.
TEST(atc_threads, what_is_not_noted_is_sticky) {
    os::memory_calls without_memory = os::real_memory_calls();
    without_memory.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
        errno = ENOMEM;
        return MAP_FAILED;
    };
    world_type w;
    auto& self = w.attach();
    std::vector<world_type::holder*> many;
    for (std::uint64_t i = 0; i < 200; ++i) many.push_back(w.make_holder(self, w.make(i, 0)));
    in_active(w, [&] {
        {
            const world_type::scope in(w, self);
            os::use_memory_calls(&without_memory);
            for (auto* h : many) w.dereference(self, h->guide);
            os::use_memory_calls(nullptr);
            EXPECT_EQ(self.context.tag.size(), 64u);
            for (auto* h : many) EXPECT_NE(layout::count(h->guide.load_relaxed()), 0u);
            EXPECT_EQ(w.move_all(), 0u);
        }
        w.scan();
        EXPECT_EQ(w.move_all(), 64u);
    });
    EXPECT_EQ(w.collect(window_step, 1, nullptr, never), 200u);
    for (auto* h : many) w.destroy(self, h);
    w.detach(self);
}

// I2: every way in which an object gets into a slot while a thread may count.
TEST(atc_threads, objects_that_arrive_in_a_round_stay_for_it) {
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    EXPECT_EQ(layout::count(h->guide.load_relaxed()), 0u);
    in_active(w, [&] {
        auto* made = w.make_holder(self, w.make(2, 0));
        EXPECT_TRUE(layout::is_sticky(made->guide.load_relaxed()));
        const world_type::scope in(w, self);
        w.heap.free(w.exchange(self, h->guide, w.make(3, 0)));
        EXPECT_TRUE(layout::is_sticky(h->guide.load_relaxed()));
        auto* expected = w.dereference(self, made->guide);
        auto* o = w.make(4, 0);
        EXPECT_TRUE(w.compare_exchange(self, made->guide, expected, o));
        w.heap.free(expected);
        EXPECT_EQ(w.move_all(), 0u);
        w.destroy(self, made);
    });
    EXPECT_EQ(w.collect(window_step, 1, nullptr, never), 1u);
    w.destroy(self, h);
    EXPECT_EQ(w.heap.live_blocks(), 0u);
    w.detach(self);
}

// I2: a scope is ending and has left a parent, but not yet the slot inside it. The parent moves;
// another parent comes to lie in the same place, and a thread increments the count of the slot
// inside that one. The end of the first scope must not decrement it.
TEST(atc_mover, nested_slots_at_a_new_place_are_not_those_of_before) {
    world_type w;
    auto& self = w.attach();
    auto& leaving = w.attach();
    auto& staying = w.attach();
    world_type::holder* h[2];
    for (auto& one : h) {
        auto* parent = w.make(1, 0);
        w.give_nested(self, parent, w.make(2, 0));
        one = w.make_holder(self, parent);
    }
    const auto parent_of = [&](int i) {
        return w.to_object(layout::address(h[i]->guide.load_relaxed()));
    };
    in_active(w, [&] {
        auto* place = parent_of(0);
        w.threads.enter(leaving.record, leaving.context);
        w.dereference(leaving, h[0]->guide);
        w.dereference(leaving, parent_of(0)->nested);
        word::count_out(h[0]->guide); // the first half of the scope's end
        leaving.context.tag.remove(reinterpret_cast<std::uintptr_t>(&h[0]->guide));
        w.mover.forget();
        w.scan();
        moved_object result;
        for (const int i : {0, 1})
            for (const auto& c : w.mover.candidates())
                if (c.slot == &h[i]->guide) {
                    EXPECT_EQ(w.mover.move(c, 0, result), move_result::moved);
                }
        ASSERT_EQ(parent_of(1), place); // the second is where the first was

        w.threads.enter(staying.record, staying.context);
        auto* child = w.dereference(staying, w.dereference(staying, h[1]->guide)->nested);
        w.threads.leave(leaving.record, leaving.context, 0); // the second half
        w.mover.forget();
        w.scan();
        w.move_all();
        EXPECT_EQ(w.dereference(staying, place->nested), child);
        w.verify(child, 2, 0);
        w.threads.leave(staying.record, staying.context, 0);
    });
    for (auto* one : h) w.destroy(self, one);
    EXPECT_EQ(w.heap.live_blocks(), 0u);
    for (auto* e : {&leaving, &staying, &self}) w.detach(*e);
}

// One place for all: a thread that collides gets a place of its own, and the places of those who
// ended are used again.
TEST(activity_index, a_collision_hides_nobody) {
    world_type w;
    std::set<world_type::user*> all;
    std::vector<world_type::user*> in_order;
    for (int i = 0; i < 40; ++i) {
        in_order.push_back(&w.attach());
        all.insert(in_order.back());
        w.threads.enter(in_order.back()->record, in_order.back()->context);
    }
    EXPECT_EQ(all.size(), 40u);
    unsigned inside = 0;
    w.registry.for_each_record([&](const thread_record<P>& r) {
        inside += r.epoch.load_relaxed() != 0;
        EXPECT_NE(r.protocol_data, nullptr);
    });
    EXPECT_EQ(inside, 40u);
    w.threads.leave(in_order[0]->record, in_order[0]->context, 0);
    w.detach(*in_order[0]);
    EXPECT_EQ(&w.attach(), in_order[0]);
    unsigned records = 0;
    w.registry.for_each_record([&](const thread_record<P>&) { ++records; });
    EXPECT_EQ(records, 40u);
}

TEST(activity_index, hashes_spread_and_probing_finds_every_place) {
    using index_type = activity_index<P, atc_entry<P>, 64>;
    std::set<std::size_t> homes;
    for (std::uint32_t id = 1000; id < 1064; ++id) homes.insert(index_type::home_of(id));
    EXPECT_GT(homes.size(), 32u);
    scope_registry<P> registry;
    auto index = std::make_unique<index_type>();
    std::set<atc_entry<P>*> all;
    for (std::uint32_t id = 0; id < 64; ++id) // all with one hash
        all.insert(index->claim(registry, 7, []() -> index_type::place* { return nullptr; }));
    EXPECT_EQ(all.size(), 64u);
    EXPECT_EQ(all.count(nullptr), 0u);
    EXPECT_EQ(index->claim(registry, 7, []() -> index_type::place* { return nullptr; }), nullptr);
}

} // namespace
} // namespace obase::mobility
