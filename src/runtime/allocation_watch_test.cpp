// SPDX-License-Identifier: MIT
//
// When threads that take memory look at what the process uses, and how often waiting is tried.
#include "runtime/allocation_watch.hpp"

#include "os/platform.hpp"

#include <gtest/gtest.h>

#include <cstdint>

using namespace obase::runtime_internal;

namespace {

using watch = allocation_watch<obase::os::native_platform>;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t gib = 1 << 30;

memory_budget budget(std::uint64_t allowed, std::uint64_t used) { return {allowed, used, 1}; }

TEST(allocation_watch, one_thread_looks_at_first) {
    watch w;
    EXPECT_TRUE(w.due(0));
    const auto mine = w.claim(7);
    ASSERT_TRUE(mine);
    EXPECT_FALSE(w.claim(7)) << "another one is looking";
    EXPECT_FALSE(w.due(7));
    EXPECT_TRUE(w.due(7 + watch::least_step)) << "of a look that never ended";
    w.settle(*mine, 100 * mib);
    EXPECT_FALSE(w.due(100 * mib - 1));
    EXPECT_FALSE(w.claim(100 * mib - 1));
    EXPECT_TRUE(w.due(100 * mib));
}

TEST(allocation_watch, what_changes_during_a_look_asks_for_another) {
    watch w;
    const auto mine = w.claim(0);
    ASSERT_TRUE(mine);
    w.restart();
    w.settle(*mine, watch::never);
    EXPECT_TRUE(w.due(0));
}

TEST(allocation_watch, the_next_look_is_when_a_share_of_the_room_is_taken) {
    const watch w;
    const memory_budget below = budget(18 * gib, 9 * gib);
    EXPECT_EQ(w.next_after(5, below), 5 + (10 * gib) / 32) << "up to half the way to the limit";
    const memory_budget near = budget(18 * mib, 18 * mib - 1);
    EXPECT_EQ(w.next_after(5, near), 5 + mib);
    const memory_budget beyond = budget(18 * gib, 18 * gib + gib / 2);
    EXPECT_EQ(w.next_after(5, beyond), 5 + gib / 64) << "more often near the limit";
    EXPECT_EQ(w.next_after(5, budget(gib, 3 * gib)), 5 + mib);
}

TEST(allocation_watch, there_is_none_without_a_budget_until_there_is_one) {
    watch w;
    EXPECT_EQ(w.next_after(5, memory_budget()), watch::never);
    w.settle(*w.claim(0), watch::never);
    EXPECT_FALSE(w.due(gib));
    w.note_budget(memory_budget());
    EXPECT_FALSE(w.due(gib));
    w.note_budget(budget(gib, 0));
    EXPECT_TRUE(w.due(0));
}

TEST(allocation_watch, a_budget_that_became_less_is_seen) {
    watch w;
    w.settle(*w.claim(0), gib);
    w.note_budget(budget(gib, gib / 2));
    EXPECT_FALSE(w.due(mib));
    w.note_budget(budget(gib, 2 * gib));
    EXPECT_TRUE(w.due(mib));
}

// 100 MiB are taken, and no window helps: the looks get rare, and do not end.
TEST(allocation_watch, waiting_that_does_not_help_is_tried_less_and_less) {
    watch w;
    const memory_budget full = budget(64 * mib, 128 * mib);
    for (unsigned window = 0; window < watch::patience; ++window) {
        EXPECT_FALSE(w.hopeless());
        EXPECT_EQ(w.next_after(0, full), mib);
        w.note_window(0, full);
    }
    EXPECT_TRUE(w.hopeless());
    unsigned looks = 0;
    for (std::uint64_t taken = 0; taken < 1024 * mib; ++looks) {
        const std::uint64_t next = w.next_after(taken, full);
        EXPECT_GE(next, taken + 2 * mib);
        taken = next;
        w.note_window(watch::least_step - 1, full);
    }
    EXPECT_EQ(looks, 10u);
    for (int window = 0; window < 100; ++window) w.note_window(0, full);
    EXPECT_LT(w.next_after(0, full), watch::never / 2);
    EXPECT_EQ(w.next_after(0, budget(64 * mib, 64 * mib - 1)), mib) << "there is room";
    // A budget that became less is no reason to begin anew.
    w.settle(*w.claim(0), gib);
    w.note_budget(full);
    EXPECT_FALSE(w.due(mib));
    w.note_window(watch::least_step, full);
    EXPECT_FALSE(w.hopeless()) << "it helped";
    EXPECT_EQ(w.next_after(0, full), mib);
}

// Nothing helped, and the next look is far away. Then the program gives memory up, or gets another budget.
TEST(allocation_watch, room_is_a_reason_to_begin_anew) {
    const memory_budget full = budget(64 * mib, 128 * mib);
    for (const bool asked : {false, true}) {
        watch w;
        for (unsigned window = 0; window < 2 * watch::patience; ++window) {
            w.note_budget(full);
            w.note_window(0, full);
        }
        w.settle(*w.claim(0), gib);
        w.note_budget(full);
        EXPECT_FALSE(w.due(mib));
        if (asked)
            w.restart();
        else
            w.note_budget(budget(64 * mib, 64 * mib));
        EXPECT_TRUE(w.due(0));
        EXPECT_FALSE(w.hopeless());
        EXPECT_EQ(w.next_after(0, full), mib);
    }
    watch w;
    w.settle(*w.claim(0), gib);
    w.note_budget(budget(64 * mib, 64 * mib));
    EXPECT_FALSE(w.due(mib)) << "there was hope";
}

TEST(allocation_watch, what_a_window_must_free_is_a_share_of_the_budget) {
    watch w;
    for (unsigned window = 0; window < watch::patience; ++window)
        w.note_window(gib / 256 - 1, budget(gib, 2 * gib));
    EXPECT_TRUE(w.hopeless());
    w.note_window(gib / 256, budget(gib, 2 * gib));
    EXPECT_FALSE(w.hopeless());
}

} // namespace
