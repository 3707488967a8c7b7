// SPDX-License-Identifier: MIT
//
// What the estimate says after windows of known rates, how fast it forgets, and that its rounding is
// fair.
#include "policy/touch_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using obase::policy::touch_rate;

namespace {

double octaves_of(double touches_per_window) {
    return std::log2(touches_per_window / touch_rate::base_rate);
}

// One slot, whose object is touched at a rate, window by window.
struct slot {
    std::uint16_t state = 0;
    unsigned idle = 0;

    void window(touch_rate& rates, bool touched) {
        idle = touched ? 0 : idle + 1;
        state = rates.after(state, touched, idle);
    }
};

TEST(touch_rate, is_found_where_it_can_be) {
    touch_rate rates;
    std::mt19937_64 random(1);
    for (const double rate : {.1, .3, 1., 2.}) {
        std::bernoulli_distribution touched(1 - std::exp(-rate));
        double sum = 0;
        constexpr int slots = 2000;
        for (int i = 0; i < slots; ++i) {
            slot s;
            for (int w = 0; w < 64; ++w) s.window(rates, touched(random));
            sum += rates.sixteenths(s.state) / 16.0;
        }
        EXPECT_NEAR(sum / slots, octaves_of(rate), .35) << rate;
    }
}

TEST(touch_rate, tells_always_from_never) {
    touch_rate rates;
    slot always, never;
    for (int w = 0; w < 40; ++w) {
        always.window(rates, true);
        never.window(rates, false);
    }
    EXPECT_GT(rates.sixteenths(always.state), 6 * 16);
    EXPECT_LT(rates.sixteenths(never.state), -2 * 16);
    EXPECT_EQ(touch_rate::windows(always.state), 15u);
}

TEST(touch_rate, counts_windows_from_the_first) {
    touch_rate rates;
    slot s;
    for (unsigned w = 1; w <= 15; ++w) {
        s.window(rates, w % 2 == 0);
        EXPECT_EQ(touch_rate::windows(s.state), w);
        EXPECT_NE(s.state, 0) << "0 is a slot of which nothing is known";
    }
}

// A mean of many steps that are each smaller than a sixteenth of an octave: rounding down would end at
// once at the bottom, rounding up would never move.
TEST(touch_rate, rounds_fairly) {
    touch_rate rates;
    std::mt19937_64 random(2);
    std::bernoulli_distribution touched(.02);
    double mean = 0;
    constexpr int slots = 3000;
    for (int i = 0; i < slots; ++i) {
        slot s;
        for (int w = 0; w < 15; ++w) s.window(rates, touched(random));
        const unsigned e = s.state & 255;
        mean += e == 0 ? 0 : std::exp2((e - 255.0) / 16);
    }
    EXPECT_NEAR(mean / slots, .02, .003);
}

TEST(touch_rate, forgets_when_it_is_surprised) {
    touch_rate rates;
    slot s;
    for (int w = 0; w < 40; ++w) s.window(rates, false);
    s.window(rates, true);
    EXPECT_LE(touch_rate::windows(s.state), 4u) << "a touch of what was never touched";
    slot hot;
    for (int w = 0; w < 40; ++w) hot.window(rates, true);
    int windows = 0;
    for (; rates.sixteenths(hot.state) > 4 * 16; ++windows) hot.window(rates, false);
    EXPECT_LE(windows, 8) << "an average of 16 windows alone takes 11";
    // What is expected is no surprise.
    std::mt19937_64 random(3);
    std::bernoulli_distribution often(.5);
    slot usual;
    for (int w = 0; w < 20; ++w) usual.window(rates, often(random));
    EXPECT_EQ(touch_rate::windows(usual.state), 15u);
}

TEST(touch_rate, keeps_the_bits_that_are_not_its_own) {
    touch_rate rates;
    for (unsigned outside = 0; outside < 8; ++outside) {
        const auto state = static_cast<std::uint16_t>(outside << 12 | 0x5a0);
        EXPECT_EQ(rates.after(state, true, 0) >> 12, static_cast<int>(outside));
    }
}

} // namespace
