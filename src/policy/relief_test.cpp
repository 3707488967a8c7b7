// SPDX-License-Identifier: MIT
//
// Which objects leave because threads wait for memory: those that rank highest, and no more than are wanted.
#include "policy/relief.hpp"

#include <gtest/gtest.h>

using obase::policy::relief;

namespace {

TEST(relief, does_nothing_while_nobody_waits) {
    relief r;
    r.begin_window(0);
    EXPECT_FALSE(r.active());
    EXPECT_FALSE(r.leaves(1000));
}

TEST(relief, counts_in_the_first_window) {
    relief r;
    r.begin_window(100);
    EXPECT_TRUE(r.active());
    EXPECT_FALSE(r.leaves(1000));
}

TEST(relief, takes_the_highest_ranks_that_have_the_bytes) {
    for (const unsigned wanted : {1u, 100u, 101u, 300u, 301u, 600u, 601u, 10'000u}) {
        relief r;
        r.begin_window(1);
        for (int i = 0; i < 10; ++i) r.note(relief::rank(false, 3), 10);
        r.note(relief::rank(true, 7), 200);
        for (int i = 0; i < 3; ++i) r.note(relief::rank(true, 0), 100);
        r.end_window();
        r.begin_window(wanted);
        EXPECT_TRUE(r.leaves(relief::rank(false, 3)));
        EXPECT_EQ(r.leaves(relief::rank(true, 7)), wanted > 100) << wanted;
        EXPECT_EQ(r.leaves(relief::rank(true, 0)), wanted > 300) << wanted;
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
    r.begin_window(1);
    r.note(7, 10);
    r.end_window();
    r.begin_window(10);
    EXPECT_TRUE(r.leaves(7));
    EXPECT_FALSE(r.leaves(6));
    r.note(5, 10);
    r.end_window();
    r.begin_window(10);
    EXPECT_TRUE(r.leaves(5));
    EXPECT_FALSE(r.leaves(4));
}

TEST(relief, is_older_after_windows_for_which_nobody_waited) {
    for (const bool placed : {false, true}) {
        relief r;
        r.begin_window(1);
        r.note(relief::rank(placed, relief::ages - 2), 10);
        r.note(relief::rank(placed, 1000), 10);
        r.note(relief::rank(placed, 7), 10);
        r.note(relief::rank(placed, 0), 10);
        r.end_window();
        for (int window = 0; window < 2; ++window) {
            r.begin_window(0);
            r.end_window();
        }
        relief both = r;
        both.begin_window(20);
        EXPECT_TRUE(both.leaves(relief::rank(placed, relief::ages - 1)));
        EXPECT_FALSE(both.leaves(relief::rank(placed, relief::ages - 2)));
        both = r;
        both.begin_window(30);
        EXPECT_TRUE(both.leaves(relief::rank(placed, 9)));
        EXPECT_FALSE(both.leaves(relief::rank(placed, 8)));
        both = r;
        both.begin_window(40);
        EXPECT_TRUE(both.leaves(relief::rank(placed, 2)));
        EXPECT_FALSE(both.leaves(relief::rank(placed, 1)));
    }
}

} // namespace
