// SPDX-License-Identifier: MIT
//
// Which objects leave because memory is short: those that rank highest, and no more than are wanted.
#include "policy/relief.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

using obase::policy::relief;

namespace {

TEST(relief, does_nothing_while_nobody_waits) {
    relief r;
    r.begin_window(0, true);
    EXPECT_FALSE(r.active());
    EXPECT_FALSE(r.leaves(1000, 0));
}

TEST(relief, counts_in_the_first_window) {
    relief r;
    r.begin_window(100, true);
    EXPECT_TRUE(r.active());
    EXPECT_FALSE(r.leaves(1000, 0));
}

TEST(relief, takes_the_highest_ranks_that_have_the_bytes) {
    for (const unsigned wanted : {1u, 100u, 101u, 300u, 301u, 600u, 601u, 10'000u}) {
        relief r;
        r.begin_window(1, true);
        for (int i = 0; i < 10; ++i) r.note(relief::rank(false, 3), 10);
        r.note(relief::rank(true, 7), 200);
        for (int i = 0; i < 3; ++i) r.note(relief::rank(true, 0), 100);
        r.end_window();
        r.begin_window(wanted, true);
        EXPECT_TRUE(r.leaves(relief::rank(false, 3), 0));
        EXPECT_EQ(r.leaves(relief::rank(true, 7), 0), wanted > 100) << wanted;
        EXPECT_EQ(r.leaves(relief::rank(true, 0), 0), wanted > 300) << wanted;
    }
}

// What was just made goes before what has a place, however long that was quiet.
TEST(relief, what_has_a_place_goes_last) {
    for (const unsigned quiet : {0u, 1u, relief::ages - 1, relief::ages, 1'000'000u}) {
        EXPECT_LT(relief::rank(true, quiet), relief::rank(false, 0));
        EXPECT_LE(relief::rank(true, quiet), relief::rank(true, quiet + 1));
        EXPECT_LE(relief::rank(false, quiet), relief::rank(false, quiet + 1));
        EXPECT_LT(relief::rank(false, quiet), 2 * relief::ages);
    }
}

TEST(relief, counts_anew_in_each_window) {
    relief r;
    r.begin_window(1, true);
    r.note(7, 10);
    r.end_window();
    r.begin_window(10, true);
    EXPECT_TRUE(r.leaves(7, 0));
    EXPECT_FALSE(r.leaves(6, 0));
    r.note(5, 10);
    r.end_window();
    r.begin_window(10, true);
    EXPECT_TRUE(r.leaves(5, 0));
    EXPECT_FALSE(r.leaves(4, 0));
}

TEST(relief, is_older_after_windows_for_which_nobody_waited) {
    for (const bool placed : {false, true}) {
        relief r;
        r.begin_window(1, true);
        r.note(relief::rank(placed, relief::ages - 2), 10);
        r.note(relief::rank(placed, 1000), 10);
        r.note(relief::rank(placed, 7), 10);
        r.note(relief::rank(placed, 0), 10);
        r.end_window();
        for (int window = 0; window < 2; ++window) {
            r.begin_window(0, true);
            r.end_window();
        }
        relief both = r;
        both.begin_window(20, true);
        EXPECT_TRUE(both.leaves(relief::rank(placed, relief::ages - 1), 0));
        EXPECT_FALSE(both.leaves(relief::rank(placed, relief::ages - 2), 0));
        both = r;
        both.begin_window(30, true);
        EXPECT_TRUE(both.leaves(relief::rank(placed, 9), 0));
        EXPECT_FALSE(both.leaves(relief::rank(placed, 8), 0));
        both = r;
        both.begin_window(40, true);
        EXPECT_TRUE(both.leaves(relief::rank(placed, 2), 0));
        EXPECT_FALSE(both.leaves(relief::rank(placed, 1), 0));
    }
}

// Of objects with one rank, in a window that is not early.
std::set<std::uintptr_t> leavers(const relief& r, unsigned rank, std::uintptr_t places) {
    std::set<std::uintptr_t> all;
    for (std::uintptr_t place = 0; place < places; ++place)
        if (r.leaves(rank, place)) all.insert(place);
    return all;
}

TEST(relief, of_the_last_rank_only_a_share_leaves_unless_the_window_is_early) {
    constexpr std::uintptr_t objects = 100'000;
    relief r;
    r.begin_window(1, false);
    for (std::uintptr_t i = 0; i < objects; ++i) r.note(relief::rank(true, 5), 10);
    r.note(relief::rank(true, 9), 1000);
    r.end_window();
    relief early = r;
    early.begin_window(1000 + objects * 10 / 4, true);
    EXPECT_EQ(leavers(early, relief::rank(true, 5), objects).size(), objects);
    // What is counted is a window older in the next.
    r.begin_window(1000 + objects * 10 / 4, false);
    EXPECT_EQ(leavers(r, relief::rank(true, 10), objects).size(), objects);
    const auto first = leavers(r, relief::rank(true, 6), objects);
    EXPECT_NEAR(static_cast<double>(first.size()), objects / 4., objects / 50.);
    EXPECT_EQ(leavers(r, relief::rank(true, 6), objects), first) << "always the same in a window";
    EXPECT_TRUE(leavers(r, relief::rank(true, 5), objects).empty());
    for (std::uintptr_t i = 0; i < objects; ++i) r.note(relief::rank(true, 5), 10);
    r.end_window();
    r.begin_window(objects * 10 / 4, false);
    EXPECT_NE(leavers(r, relief::rank(true, 6), objects), first) << "others in the next";
}

TEST(relief, takes_nothing_from_what_is_in_use_unless_the_window_is_early) {
    for (const bool placed : {false, true})
        for (const unsigned quiet : {0U, 1U, 2U, relief::ages - 1}) {
            relief r;
            r.begin_window(1, true);
            r.note(relief::rank(placed, quiet), 10);
            r.end_window();
            relief other = r;
            r.begin_window(100, true);
            EXPECT_TRUE(r.leaves(relief::rank(placed, quiet), 7));
            other.begin_window(100, false);
            EXPECT_EQ(other.leaves(relief::rank(placed, quiet), 7), quiet >= 2) << quiet;
        }
}

} // namespace
