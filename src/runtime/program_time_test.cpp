// SPDX-License-Identifier: MIT
#include "runtime/program_time.hpp"

#include <gtest/gtest.h>

namespace obase::runtime_internal {
namespace {

constexpr double length = 10;

TEST(program_time, is_quiet_while_the_program_does_less_than_a_quarter_of_the_usual) {
    program_time time;
    EXPECT_FALSE(time.is_quiet(0, length, length)) << "nothing is usual yet";
    time.note_window(8, length, length);
    EXPECT_TRUE(time.is_quiet(0, length, length));
    EXPECT_TRUE(time.is_quiet(1.9, length, length));
    EXPECT_FALSE(time.is_quiet(2.1, length, length));
}

TEST(program_time, ends_a_window_that_is_long) {
    program_time time;
    time.note_window(8, length, length);
    EXPECT_TRUE(time.is_quiet(0, 7.9 * length, length));
    EXPECT_FALSE(time.is_quiet(0, 8 * length, length));
}

TEST(program_time, takes_what_a_program_does_for_long_as_usual) {
    program_time time;
    time.note_window(20, length, length); // two threads
    int windows = 0;
    while (time.is_quiet(1, length, length)) {
        time.note_window(1, length, length);
        ASSERT_LT(++windows, 100);
    }
    EXPECT_GT(windows, 5);
    EXPECT_LT(windows, 12);
    EXPECT_TRUE(time.is_quiet(.2, length, length));
    time.note_window(80, 8 * length, length);
    EXPECT_TRUE(time.is_quiet(2.4, length, length)) << "by second: that one was longer";
    EXPECT_FALSE(time.is_quiet(2.6, length, length));
}

TEST(program_time, learns_nothing_from_a_window_that_was_asked_for) {
    program_time time;
    time.note_window(8, length, length);
    for (int i = 0; i < 100; ++i) time.note_window(0, length / 10, length);
    EXPECT_TRUE(time.is_quiet(1.9, length, length)) << "the usual is what it was";
    time.note_window(.004, .0001, length); // a tick of the clock
    time.note_window(5, 0, length);        // no time at all
    EXPECT_FALSE(time.is_quiet(2.1, length, length));
}

} // namespace
} // namespace obase::runtime_internal
