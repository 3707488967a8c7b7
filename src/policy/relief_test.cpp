// SPDX-License-Identifier: MIT
//
// Which objects leave because threads wait for memory: those idle for longest, and no more than are wanted.
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

TEST(relief, takes_the_oldest_that_have_the_bytes) {
    for (const unsigned wanted : {1u, 100u, 101u, 300u, 301u, 600u, 601u, 10'000u}) {
        relief r;
        r.begin_window(1);
        for (int i = 0; i < 10; ++i) r.note(7);
        for (int i = 0; i < 20; ++i) r.note(3);
        for (int i = 0; i < 30; ++i) r.note(0);
        r.end_window(600, 60); // 10 bytes each
        r.begin_window(wanted);
        EXPECT_TRUE(r.leaves(7));
        EXPECT_EQ(r.leaves(3), wanted > 100) << wanted;
        EXPECT_EQ(r.leaves(0), wanted > 300) << wanted;
    }
}

TEST(relief, counts_anew_in_each_window) {
    relief r;
    r.begin_window(1);
    r.note(7);
    r.end_window(10, 1);
    r.begin_window(10);
    EXPECT_TRUE(r.leaves(7));
    EXPECT_FALSE(r.leaves(6));
    r.note(5);
    r.end_window(10, 1);
    r.begin_window(10);
    EXPECT_TRUE(r.leaves(5));
    EXPECT_FALSE(r.leaves(4));
}

TEST(relief, is_older_after_windows_for_which_nobody_waited) {
    relief r;
    r.begin_window(1);
    r.note(7);
    r.note(relief::ages - 2);
    r.note(1000);
    r.end_window(30, 3);
    for (int window = 0; window < 2; ++window) {
        r.begin_window(0);
        r.end_window(30, 3);
    }
    r.begin_window(20);
    EXPECT_TRUE(r.leaves(relief::ages - 1));
    EXPECT_FALSE(r.leaves(relief::ages - 2));
    r.end_window(30, 3);
}

TEST(relief, knows_the_age_of_what_it_counted_before) {
    relief r;
    r.begin_window(1);
    r.note(7);
    r.end_window(10, 1);
    r.begin_window(0);
    r.end_window(10, 1);
    r.begin_window(10);
    EXPECT_TRUE(r.leaves(8));
    EXPECT_FALSE(r.leaves(7));
}

} // namespace
