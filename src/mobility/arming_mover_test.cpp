// SPDX-License-Identifier: MIT
//
// The mover step by step, one thread: what a visit tells, what a move does to words, bits and
// memory, and every reason for which an object stays where it is (O7 among them).
#include "mobility/world_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace obase::mobility {
namespace {

using native = os::native_platform;
using layout = word::arming;

struct mover : ::testing::Test {
    using world_type = exclusive_world<on_threads<native>, arming_protocol>;
    using slot = world_type::slot;

    ~mover() override { w.detach(self); }

    static std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
    // One window: visits the slot, settles, moves it. `moved` tells where.
    move_result window(slot& s, std::uint64_t number) {
        w.mover.forget();
        const observation seen = w.mover.visit(s, number);
        EXPECT_TRUE(seen.movable);
        EXPECT_TRUE(w.mover.add_candidate(s, seen, 1));
        EXPECT_EQ(wait_for_grace_period(), wait_result::done);
        return w.mover.move(w.mover.candidates()[0], number, moved);
    }
    wait_result wait_for_grace_period() {
        return w.mover.wait_for_grace_period(nullptr, [](const auto&) { return true; });
    }

    world_type w;
    world_type::record& self = w.attach();
    moved_object moved;
};

TEST_F(mover, visits_tell_newborn_touched_and_age) {
    auto* h = w.make_holder(self, w.make(1, 0));
    const auto address = layout::address(h->guide.load_relaxed());
    observation seen = w.mover.visit(h->guide, 5);
    EXPECT_TRUE(seen.newborn);
    EXPECT_FALSE(seen.touched);
    EXPECT_TRUE(seen.movable);
    EXPECT_EQ(seen.address, address);
    EXPECT_EQ(seen.word, h->guide.load_relaxed());
    EXPECT_EQ(seen.word, layout::make_armed(address, 5));

    seen = w.mover.visit(h->guide, 8);
    EXPECT_FALSE(seen.newborn);
    EXPECT_FALSE(seen.touched);
    EXPECT_EQ(seen.inactive_windows, 3u);
    EXPECT_EQ(seen.word, layout::make_armed(address, 5)) << "R16: not written to";

    word::touch(h->guide);
    seen = w.mover.visit(h->guide, 9);
    EXPECT_TRUE(seen.touched);
    EXPECT_FALSE(seen.newborn);
    EXPECT_EQ(seen.inactive_windows, 0u);
    EXPECT_EQ(seen.word, layout::make_armed(address, 9));
    w.destroy(self, h);
}

// A slot that is put elsewhere, as by a table that grows: its object is as old as before, and can be moved as any other.
TEST_F(mover, an_object_is_as_old_in_another_slot) {
    auto* from = w.make_holder(self, w.make(1, 10));
    auto* to = w.make_holder(self, nullptr);
    const auto address = layout::address(from->guide.load_relaxed());
    w.mover.visit(from->guide, 40);
    to->guide.store_relaxed(word::replace(from->guide, 0));
    const observation seen = w.mover.visit(to->guide, 43);
    EXPECT_FALSE(seen.touched || seen.newborn);
    EXPECT_TRUE(seen.resettled && seen.movable);
    EXPECT_EQ(seen.inactive_windows, 3u);
    EXPECT_EQ(seen.word, layout::make_armed(address, 40));
    EXPECT_EQ(to->guide.load_relaxed(), seen.word);
    EXPECT_FALSE(w.mover.visit(to->guide, 44).resettled);
    EXPECT_EQ(w.mover.visit(to->guide, 44).inactive_windows, 4u);
    ASSERT_EQ(window(to->guide, 45), move_result::moved);
    EXPECT_EQ(to->guide.load_relaxed(), layout::make_armed(moved.to, 40));
    // Touched between its arming and its last slot: a touch like any other.
    word::touch(to->guide);
    from->guide.store_relaxed(word::replace(to->guide, 0));
    EXPECT_TRUE(w.mover.visit(from->guide, 46).touched);
    // Older than stamps tell.
    to->guide.store_relaxed(word::replace(from->guide, 0));
    const observation old = w.mover.visit(to->guide, 46 + layout::restamp_age);
    EXPECT_GE(old.inactive_windows, layout::restamp_age);
    EXPECT_GE(w.mover.visit(to->guide, 46 + layout::restamp_age).inactive_windows,
              layout::restamp_age / 2);
    w.destroy(self, from);
    w.destroy(self, to);
}

TEST_F(mover, very_old_words_are_stamped_again_before_their_stamp_comes_round) {
    auto* h = w.make_holder(self, w.make(1, 0));
    w.mover.visit(h->guide, 0);
    unsigned last = 0;
    for (std::uint64_t number = 1; number < 4 * window_step; number += 100) {
        const observation seen = w.mover.visit(h->guide, number);
        ASSERT_TRUE(seen.movable);
        ASSERT_EQ(seen.word, h->guide.load_relaxed());
        ASSERT_GE(seen.inactive_windows + 100, std::min(last, layout::restamp_age / 2));
        last = seen.inactive_windows;
    }
    EXPECT_GE(last, layout::restamp_age / 2);
    w.destroy(self, h);
}

TEST_F(mover, null_is_not_armed) {
    auto* h = w.make_holder(self, nullptr);
    const observation seen = w.mover.visit(h->guide, 1);
    EXPECT_EQ(seen.address, 0u);
    EXPECT_FALSE(seen.movable);
    EXPECT_FALSE(seen.foreign);
    EXPECT_EQ(h->guide.load_relaxed(), 0u);
    w.destroy(self, h);
}

// R17: an object from malloc is never armed, in whatever state its word is.
TEST_F(mover, foreign_objects_stay_as_they_are) {
    alignas(16) std::uint64_t foreign[4] = {};
    for (const std::uint64_t word : {address_of(foreign), layout::make_born(address_of(foreign))}) {
        auto* h = w.make_holder(self, nullptr);
        h->guide.store_relaxed(word);
        const observation seen = w.mover.visit(h->guide, 1);
        EXPECT_TRUE(seen.foreign);
        EXPECT_FALSE(seen.movable);
        EXPECT_EQ(seen.address, 0u);
        EXPECT_EQ(h->guide.load_relaxed(), word);
        h->guide.store_relaxed(0);
        w.destroy(self, h);
    }
}

TEST_F(mover, a_moved_object_is_whole_elsewhere_and_as_old_as_before) {
    auto* child = w.make(2, 20);
    auto* parent = w.make(1, 10);
    w.give_nested(self, parent, child);
    auto* h = w.make_holder(self, parent);
    w.mover.visit(h->guide, 3);
    const std::size_t blocks = w.heap.live_blocks();
    ASSERT_EQ(window(h->guide, 7), move_result::moved);
    EXPECT_EQ(moved.from, address_of(parent));
    EXPECT_NE(moved.to, moved.from);
    EXPECT_EQ(moved.bytes, sizeof(world_type::object));
    EXPECT_EQ(moved.nested_slots, 1u);
    EXPECT_EQ(w.heap.live_blocks(), blocks) << "the old copy was freed";
    EXPECT_EQ(h->guide.load_relaxed(), layout::make_armed(moved.to, 3)) << "a move is no access";
    EXPECT_FALSE(w.slots.test(&parent->nested)) << "R8";
    auto* there = world_type::to_object(moved.to);
    EXPECT_TRUE(w.slots.test(&there->nested)) << "R11";
    w.verify(there, 1, 10);
    w.verify(w.dereference(self, there->nested), 2, 20);
    w.destroy(self, h);
    EXPECT_EQ(w.heap.live_blocks(), 0u);
}

// A visit must not allocate: it holds the hazard. The list takes what there is room for.
TEST_F(mover, candidates_are_limited_by_what_was_reserved) {
    auto* h = w.make_holder(self, w.make(1, 0));
    const observation seen = w.mover.visit(h->guide, 1);
    const std::size_t room = w.mover.candidates().capacity();
    ASSERT_GT(room, 0u);
    for (std::size_t i = 0; i < room; ++i) ASSERT_TRUE(w.mover.add_candidate(h->guide, seen, 1));
    EXPECT_FALSE(w.mover.add_candidate(h->guide, seen, 1));
    EXPECT_EQ(w.mover.candidates().size(), room);
    ASSERT_TRUE(w.mover.reserve(room + 1));
    EXPECT_TRUE(w.mover.add_candidate(h->guide, seen, 1));
    w.destroy(self, h);
}

// Everything that may keep an object where it is leaves words, bits and memory as they were.
struct stays : mover {
    stays() {
        parent = w.make(1, 10);
        w.give_nested(self, parent, w.make(2, 20));
        h = w.make_holder(self, parent);
        w.mover.visit(h->guide, 3);
        w.mover.forget();
        const observation seen = w.mover.visit(h->guide, 3);
        w.mover.add_candidate(h->guide, seen, 1);
        blocks = w.heap.live_blocks();
    }
    void expect_nothing_changed() {
        EXPECT_EQ(layout::address(h->guide.load_relaxed()), address_of(parent));
        EXPECT_TRUE(w.slots.test(&h->guide));
        EXPECT_TRUE(w.slots.test(&parent->nested)) << "R11: the source's bits stay on a veto";
        EXPECT_EQ(w.heap.live_blocks(), blocks) << "the copy was undone";
        EXPECT_EQ(w.registered(), 2u) << "R11: the destination's bits went on a veto";
        w.destroy(self, h);
    }
    move_result move() { return w.mover.move(w.mover.candidates()[0], 3, moved); }

    world_type::object* parent;
    world_type::holder* h;
    std::size_t blocks;
};

TEST_F(stays, when_touched) {
    w.slots.refresh();
    ASSERT_EQ(wait_for_grace_period(), wait_result::done);
    word::touch(h->guide);
    EXPECT_EQ(move(), move_result::vetoed);
    EXPECT_EQ(h->guide.load_relaxed(), address_of(parent));
    expect_nothing_changed();
}

TEST_F(stays, when_its_slot_was_unregistered) {
    w.slots.refresh();
    ASSERT_EQ(wait_for_grace_period(), wait_result::done);
    w.slots.clear(&h->guide);
    EXPECT_EQ(move(), move_result::vetoed);
    w.slots.set(&h->guide);
    expect_nothing_changed();
}

TEST_F(stays, when_pinned) {
    w.slots.refresh();
    auto* pin = claim_pin<native>(self, address_of(parent),
                                  [] { return static_cast<pin_chunk<native>*>(nullptr); });
    ASSERT_EQ(wait_for_grace_period(), wait_result::done);
    EXPECT_EQ(move(), move_result::pinned);
    release_pin(*pin);
    EXPECT_EQ(move(), move_result::pinned)
        << "what wait_for_grace_period() saw holds for its round";
    expect_nothing_changed();
}

TEST_F(stays, when_there_is_no_room) {
    w.slots.refresh();
    ASSERT_EQ(wait_for_grace_period(), wait_result::done);
    w.heap.full = true;
    EXPECT_EQ(move(), move_result::no_room);
    w.heap.full = false;
    expect_nothing_changed();
}

TEST_F(stays, when_the_heap_does_not_know_it) {
    w.slots.refresh();
    ASSERT_EQ(wait_for_grace_period(), wait_result::done);
    auto* freed = w.make(3, 0);
    w.heap.free(freed);
    const auto c =
        world_type::mover_type::candidate{&h->guide, layout::make_armed(address_of(freed), 3), 1};
    EXPECT_EQ(w.mover.move(c, 3, moved), move_result::not_alive);
    expect_nothing_changed();
}

// R6, R1: nothing is left to move.
TEST_F(stays, when_the_wait_is_given_up) {
    w.slots.refresh();
    auto& other = w.attach();
    const auto outer = enter_scope(other, w.registry.epoch());
    EXPECT_EQ(wait_for_grace_period(), wait_result::given_up);
    EXPECT_TRUE(w.mover.candidates().empty());
    exit_scope(other, outer);
    w.detach(other);
    EXPECT_EQ(wait_for_grace_period(), wait_result::done);
    EXPECT_TRUE(w.mover.candidates().empty());
    expect_nothing_changed();
}

TEST_F(stays, when_membarrier_fails) {
    w.slots.refresh();
    os::membarrier_fail_for_tests(true);
    EXPECT_EQ(wait_for_grace_period(), wait_result::given_up);
    os::membarrier_fail_for_tests(false);
    EXPECT_TRUE(w.mover.candidates().empty());
    expect_nothing_changed();
}

// R10: the threads' half looks at SODA inside a scope only, which keeps what it looks at mapped, and
// leaves the thread as it was.
struct scopes_around_soda : ::testing::Test {
    struct directory_in_scopes {
        scopes_around_soda& test;
        bool set(const void* slot) noexcept { return test.look() && test.slots.set(slot); }
        void clear(const void* slot) noexcept {
            if (test.look()) test.slots.clear(slot);
        }
        void clear_range(const void* begin, const void* end) noexcept {
            if (test.look()) test.slots.clear_range(begin, end);
        }
    };
    scopes_around_soda() {
        EXPECT_TRUE(slots.open());
        registry.add(self, 1);
    }
    bool look() noexcept {
        ++looks;
        in_scope = in_scope && self.epoch.load_relaxed() != 0;
        return true;
    }
    // The requirements of arming_threads on the engine.
    scope_registry<native>& threads() noexcept { return registry; }
    directory_in_scopes directory() noexcept { return {*this}; }
    void end_scope(thread_record<native>& r) noexcept { exit_scope(r, 0); }
    bool rearms() noexcept { return true; }
    void record_touch(thread_record<native>&, word::native_atomic<std::uint64_t>&) noexcept {
        ++remembered;
    }

    scope_registry<native> registry;
    thread_record<native> self;
    soda::directory<native> slots;
    arming_threads<native, scopes_around_soda> half{*this};
    unsigned looks = 0;
    unsigned remembered = 0;
    bool in_scope = true;
};

TEST_F(scopes_around_soda, are_there_when_slots_begin_and_end) {
    alignas(16) word::native_atomic<std::uint64_t> s[2];
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(&looks);
    EXPECT_TRUE(half.construct(self, s[0], layout::make_born(address)));
    EXPECT_TRUE(slots.test(&s[0]));
    EXPECT_EQ(half.destroy(self, s[0]), address);
    EXPECT_FALSE(slots.test(&s[0]));
    EXPECT_TRUE(half.construct(self, s[1], layout::make_born(address)));
    half.forget_range(self, s, s + 2);
    EXPECT_FALSE(slots.test(&s[1]));
    EXPECT_EQ(looks, 4u);
    EXPECT_TRUE(in_scope);
    EXPECT_EQ(self.epoch.load_relaxed(), 0u) << "and the thread is outside again";
}

// The debug mode that arms again hears of first touches in a scope, and of no other access.
TEST_F(scopes_around_soda, first_touches_are_remembered) {
    word::native_atomic<std::uint64_t> s;
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(&looks);
    s.store_relaxed(layout::make_armed(address, 7));
    const epoch_number outer = half.enter(self);
    EXPECT_EQ(half.dereference(self, s), address);
    EXPECT_EQ(half.dereference(self, s), address);
    EXPECT_EQ(remembered, 1u);
    half.leave(self, outer);
    s.store_relaxed(layout::make_armed(address, 8));
    EXPECT_EQ(half.first_touch(&self, s), address);
    EXPECT_EQ(half.first_touch(nullptr, s), address);
    EXPECT_EQ(remembered, 1u) << "outside of scopes nothing ends that would arm again";
}

} // namespace
} // namespace obase::mobility
