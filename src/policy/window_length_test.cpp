// SPDX-License-Identifier: MIT
//
// How long windows are, by how many objects are touched in one.
#include "policy/window_length.hpp"

#include <gtest/gtest.h>

#include <cmath>

using obase::policy::window_length;

namespace {

double after(window_length& length, double share, int windows, std::uint64_t known = 1'000'000) {
    for (; windows > 0; --windows)
        length.end_window(
            static_cast<std::uint64_t>(std::lround(share * static_cast<double>(known))), known);
    return length.factor();
}

TEST(window_length, stays_where_the_bit_tells_objects_apart) {
    for (const double share : {.06, .12, .19}) {
        window_length length;
        EXPECT_EQ(after(length, share, 20), 1);
        after(length, 1, 1);
        EXPECT_EQ(length.factor(), 1. / 4);
        EXPECT_EQ(after(length, share, 20), 1. / 4) << share;
    }
}

TEST(window_length, is_what_was_asked_for_at_most) {
    window_length length;
    EXPECT_EQ(after(length, 0, 20), 1);
    after(length, 1, 20);
    EXPECT_LT(length.factor(), 1. / 100);
    EXPECT_EQ(after(length, .04, 40), 1);
}

TEST(window_length, shrinks_faster_when_nearly_all_are_touched) {
    window_length few, some, all;
    EXPECT_EQ(after(few, .21, 1), 1. / 2);
    EXPECT_EQ(after(some, .6, 1), 1. / 2);
    EXPECT_EQ(after(all, .9, 1), 1. / 4);
    EXPECT_EQ(after(all, 1, 100), window_length::shortest);
}

// It began before the change did.
TEST(window_length, does_not_judge_the_window_after_a_change) {
    window_length length;
    EXPECT_EQ(after(length, .6, 1), 1. / 2);
    EXPECT_EQ(after(length, .6, 1), 1. / 2);
    EXPECT_EQ(after(length, .6, 1), 1. / 4);
    EXPECT_EQ(after(length, 0, 1), 1. / 4);
    EXPECT_EQ(after(length, 0, 1), 1. / 2);
    EXPECT_EQ(after(length, 0, 1), 1. / 2);
    EXPECT_EQ(after(length, 0, 1), 1);
}

TEST(window_length, few_objects_say_nothing) {
    window_length length;
    EXPECT_EQ(after(length, 1, 10, window_length::enough - 1), 1);
    EXPECT_EQ(after(length, 0, 10, 0), 1);
    EXPECT_EQ(after(length, 1, 1, window_length::enough), 1. / 4);
}

} // namespace
