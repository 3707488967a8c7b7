// SPDX-License-Identifier: MIT
#include "runtime/program_time.hpp"

#include <gtest/gtest.h>

namespace obase::runtime_internal {
namespace {

constexpr double length = 10;

TEST(program_time, is_quiet_while_the_program_runs_for_less_than_a_quarter_of_the_usual) {
    program_time time;
    EXPECT_FALSE(time.is_quiet(0, length, length)) << "nothing is usual yet";
    time.note_window(8, length);
    EXPECT_TRUE(time.is_quiet(0, length, length));
    EXPECT_TRUE(time.is_quiet(1.9, length, length));
    EXPECT_FALSE(time.is_quiet(2.1, length, length));
}

TEST(program_time, ends_a_window_that_is_long) {
    program_time time;
    time.note_window(8, length);
    EXPECT_TRUE(time.is_quiet(0, 7.9 * length, length));
    EXPECT_FALSE(time.is_quiet(0, 8 * length, length));
}

TEST(program_time, takes_what_a_program_does_for_long_as_usual) {
    program_time time;
    time.note_window(20, length); // two threads
    int windows = 0;
    while (time.is_quiet(1, length, length)) {
        time.note_window(1, length);
        ASSERT_LT(++windows, 100);
    }
    EXPECT_GT(windows, 5);
    EXPECT_LT(windows, 12);
    EXPECT_TRUE(time.is_quiet(.2, length, length));
    time.note_window(80, 8 * length);
    EXPECT_TRUE(time.is_quiet(2.4, length, length)) << "by second: that one was longer";
    EXPECT_FALSE(time.is_quiet(2.6, length, length));
    time.note_window(5, 0); // no time at all
    EXPECT_FALSE(time.is_quiet(2.6, length, length));
}

TEST(program_time, rests_only_within_a_budget) {
    program_time time;
    time.note_window(8, length);
    EXPECT_TRUE(rests(time, 0, length, length, {.allowed = 100, .used = 100}));
    EXPECT_FALSE(rests(time, 0, length, length, {.allowed = 100, .used = 101}));
    EXPECT_FALSE(rests(time, 0, length, length, {.allowed = 0, .used = 100}));
    EXPECT_FALSE(rests(time, 8, length, length, {.allowed = 100, .used = 100}));
}

} // namespace
} // namespace obase::runtime_internal
