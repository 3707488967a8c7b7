// SPDX-License-Identifier: MIT
//
// What a size counts for, and what is known of all sizes together.
#include "policy/size_scale.hpp"

#include <gtest/gtest.h>

#include <cstddef>

using obase::policy::size_scale;

namespace {

// Objects of a mean size, in one window.
void live(size_scale& scale, std::size_t mean) { scale.end_window(mean * 1000, 1000); }

TEST(size_scale, twice_the_size_is_an_octave) {
    size_scale scale;
    EXPECT_EQ(scale.of(64), 0) << "no object is known";
    scale.end_window(0, 0);
    EXPECT_EQ(scale.mean_bytes(), 0);
    live(scale, 256);
    EXPECT_EQ(scale.of(256), 0);
    EXPECT_EQ(scale.of(512), 16);
    EXPECT_EQ(scale.of(64), -32);
    EXPECT_EQ(scale.of(384), 9) << "log2(1.5) is .585";
    EXPECT_EQ(scale.of(8), -80);
    EXPECT_EQ(scale.of(0), 0) << "gone";
}

TEST(size_scale, more_than_a_page_counts_as_a_page) {
    size_scale scale;
    live(scale, 256);
    EXPECT_EQ(scale.of_pages(), 64);
    for (const std::size_t bytes : {4096u, 4097u, 16384u, 1u << 30})
        EXPECT_EQ(scale.of(bytes), scale.of_pages());
    live(scale, std::size_t{1} << 20);
    EXPECT_EQ(scale.mean_bytes(), 4096);
    EXPECT_EQ(scale.of(std::size_t{1} << 20), 0);
}

TEST(size_scale, the_mean_stays_until_it_is_an_octave_off) {
    size_scale scale;
    live(scale, 256);
    for (const std::size_t mean : {300u, 500u, 130u}) {
        live(scale, mean);
        EXPECT_EQ(scale.of(256), 0) << mean;
    }
    live(scale, 512);
    EXPECT_EQ(scale.of(512), 0);
    live(scale, 256);
    EXPECT_EQ(scale.of(256), 0);
    scale.end_window(0, 0);
    EXPECT_EQ(scale.of(256), 0) << "all objects are gone: nothing new is known";
}

TEST(size_scale, what_sizes_there_are_is_known_from_the_window_before) {
    size_scale scale;
    live(scale, 256);
    scale.begin_window();
    EXPECT_FALSE(scale.alike());
    EXPECT_LT(scale.least(), -1000) << "nothing was asked: any size";
    EXPECT_GT(scale.most(), 1000);
    for (const std::size_t bytes : {64u, 256u, 1024u}) scale.note(scale.of(bytes));
    EXPECT_FALSE(scale.alike());
    scale.begin_window();
    EXPECT_EQ(scale.least(), -32);
    EXPECT_EQ(scale.most(), 32);
    scale.note(scale.of(4096));
    EXPECT_EQ(scale.most(), 32) << "the same in all of a window";
    scale.begin_window();
    EXPECT_EQ(scale.least(), -31) << "narrows slowly";
    EXPECT_EQ(scale.most(), 64) << "widens at once";
    scale.begin_window();
    EXPECT_EQ(scale.most(), 64) << "nothing was asked";
    for (int window = 0; window < 100; ++window) {
        scale.note(scale.of(512));
        scale.begin_window();
    }
    EXPECT_TRUE(scale.alike());
    EXPECT_EQ(scale.middle(), 16);
    scale.note(scale.of(512) + size_scale::close + 2); // while the least rises by one
    scale.begin_window();
    EXPECT_FALSE(scale.alike());
    EXPECT_EQ(scale.middle(), 19);
}

TEST(size_scale, what_was_noted_goes_by_its_mean) {
    size_scale scale;
    live(scale, 256);
    scale.note(scale.of(256));
    scale.begin_window();
    EXPECT_TRUE(scale.alike());
    scale.note(scale.of(256));
    live(scale, 1024);
    scale.begin_window();
    EXPECT_FALSE(scale.alike());
    EXPECT_LT(scale.least(), -1000);
    EXPECT_GT(scale.most(), 1000);
}

} // namespace
