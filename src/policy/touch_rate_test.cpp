// SPDX-License-Identifier: MIT
//
// What the estimate says after windows of known rates, how fast it forgets, and that its rounding is
// fair.
#include "policy/touch_rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

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
        rates.draw();
        again(rates, touched);
    }
    // In the same window as another slot.
    void again(touch_rate& rates, bool touched) {
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
    EXPECT_LE(rates.sixteenths(never.state), -2 * 16);
    EXPECT_GT(touch_rate::windows(always.state), 20u);
}

TEST(touch_rate, counts_windows_from_the_first) {
    touch_rate rates;
    slot s;
    for (unsigned w = 1; w <= 6; ++w) {
        s.window(rates, w % 2 == 0);
        EXPECT_EQ(touch_rate::windows(s.state), w);
        EXPECT_NE(s.state, 0) << "0 is a slot of which nothing is known";
    }
}

// Beyond six windows the count goes on by chance, right on average.
TEST(touch_rate, counts_many_windows_on_average) {
    touch_rate rates;
    double sum = 0;
    constexpr int slots = 4000, lived = 30;
    for (int i = 0; i < slots; ++i) {
        slot s;
        for (int w = 0; w < lived; ++w) s.window(rates, true);
        sum += touch_rate::windows(s.state);
    }
    EXPECT_NEAR(sum / slots, lived, 1);
    slot old;
    for (int w = 0; w < 300; ++w) old.window(rates, true);
    EXPECT_EQ(touch_rate::windows(old.state), touch_rate::most_windows);
}

// Slots with rates of a heavy tail, all of them in each window.
struct many_slots {
    explicit many_slots(std::uint64_t seed) : random(seed), slots(4096), touches(4096) {
        for (std::size_t i = 0; i < touches.size(); ++i)
            touches[i] = 300 / static_cast<double>(i + 1);
    }
    void window() {
        std::uniform_real_distribution<double> unit;
        rates.end_window();
        for (std::size_t i = 0; i < slots.size(); ++i)
            slots[i].again(rates, unit(random) < -std::expm1(-touches[i]));
    }
    touch_rate rates;
    std::mt19937_64 random;
    std::vector<slot> slots;
    std::vector<double> touches; // per window
};

TEST(touch_rate, remembers_long_while_the_load_stays_as_it_is) {
    many_slots load(5);
    for (int w = 0; w < 60; ++w) load.window();
    EXPECT_GT(load.rates.memory(), 30);
    EXPECT_NEAR(load.rates.misfit(), 1, .1);
}

TEST(touch_rate, remembers_little_when_the_load_changes) {
    many_slots load(6);
    for (int w = 0; w < 60; ++w) load.window();
    std::shuffle(load.touches.begin(), load.touches.end(), load.random);
    for (int w = 0; w < 2; ++w) load.window();
    EXPECT_GT(load.rates.misfit(), 1.25);
    EXPECT_EQ(load.rates.memory(), touch_rate::least_memory);
    const touch_rate fresh;
    for (const slot& s : load.slots)
        ASSERT_EQ(load.rates.sixteenths(s.state), fresh.sixteenths(s.state)) << "no experience";
    for (const slot& s : load.slots) ASSERT_LE(touch_rate::windows(s.state), 64u);
    load.window();
    for (const slot& s : load.slots) ASSERT_LE(touch_rate::windows(s.state), 8u);
    for (int w = 0; w < 40; ++w) load.window();
    EXPECT_GT(load.rates.memory(), 30) << "it is what it is again";
    EXPECT_LT(load.rates.misfit(), 1.1);
}

// A tenth of the slots is exchanged in every window: less than a shift, and no chance.
TEST(touch_rate, remembers_less_while_the_load_drifts) {
    many_slots load(7);
    for (int w = 0; w < 60; ++w) load.window();
    double memory = 0;
    for (int w = 0; w < 30; ++w) {
        for (std::size_t i = 0; i < load.touches.size() / 20; ++i)
            std::swap(load.touches[load.random() % 4096], load.touches[load.random() % 4096]);
        load.window();
        memory += load.rates.memory() / 30;
    }
    EXPECT_LT(memory, 24);
    EXPECT_LT(load.rates.misfit(), 1.25);
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
        mean += e == 0 ? 0 : std::exp2((e - 255.0) / 24);
    }
    EXPECT_NEAR(mean / slots, .02, .003);
}

// So what is used together stays together.
TEST(touch_rate, objects_with_the_same_windows_have_the_same_state) {
    touch_rate rates;
    std::mt19937_64 random(4);
    std::bernoulli_distribution touched(.1);
    slot one, other;
    for (int w = 0; w < 200; ++w) {
        const bool both = touched(random);
        rates.end_window();
        one.again(rates, both);
        other.again(rates, both);
        ASSERT_EQ(one.state, other.state) << w;
    }
}

// The mean of shares, however often they are joined, and of the windows they are made of.
TEST(touch_rate, joined_states_are_their_mean) {
    touch_rate rates;
    slot often, seldom;
    for (int w = 0; w < 10; ++w) {
        often.window(rates, true);
        seldom.window(rates, w == 5);
    }
    touch_rate::sum all;
    rates.add(all, often.state);
    rates.add(all, seldom.state);
    double mean = 0;
    constexpr int draws = 2000;
    for (int i = 0; i < draws; ++i) {
        rates.draw();
        const std::uint16_t joined = rates.joined(often.state | 0x5000, all);
        EXPECT_EQ(joined & 0xf000, 0x5000) << "the owner's bits";
        EXPECT_EQ(joined & 0xfff, rates.joined(seldom.state, all) & 0xfff);
        mean += std::exp2(((joined & 255) - 255.0) / 24) / draws;
    }
    const double seldom_share = std::exp2(((seldom.state & 255) - 255.0) / 24);
    EXPECT_NEAR(mean, (1 + seldom_share) / 2, .005);
    slot fresh;
    fresh.window(rates, true);
    touch_rate::sum unequal;
    for (int i = 0; i < 3; ++i) rates.add(unequal, often.state);
    rates.add(unequal, fresh.state);
    const unsigned windows = touch_rate::windows(rates.joined(fresh.state, unequal));
    EXPECT_GT(windows, 1u);
    EXPECT_LT(windows, touch_rate::windows(often.state));
    touch_rate::sum none;
    rates.add(none, 0x0100); // one window, no touch
    EXPECT_EQ(rates.joined(0x0100, none), 0x0100);
}

TEST(touch_rate, forgets_when_it_is_surprised) {
    touch_rate rates;
    slot s;
    for (int w = 0; w < 40; ++w) s.window(rates, false);
    const unsigned before = touch_rate::windows(s.state);
    s.window(rates, true);
    EXPECT_LE(touch_rate::windows(s.state), before / 4) << "a touch of what was never touched";
    slot hot;
    for (int w = 0; w < 40; ++w) hot.window(rates, true);
    int windows = 0;
    for (; rates.sixteenths(hot.state) > 4 * 16; ++windows) hot.window(rates, false);
    EXPECT_LE(windows, 8) << "an average of 40 windows alone takes more than 20";
    // What is expected is no surprise.
    std::mt19937_64 random(3);
    std::bernoulli_distribution often(.5);
    slot usual;
    for (int w = 0; w < 20; ++w) usual.window(rates, often(random));
    EXPECT_GE(touch_rate::windows(usual.state), 12u);
}

// A touch by a pass over everything is believed until it is seen that nothing comes of it.
TEST(touch_rate, what_a_state_is_worth_is_measured) {
    touch_rate rates;
    std::vector<slot> slots(20'000);
    const auto window = [&](auto is_touched) {
        rates.end_window();
        for (std::size_t i = 0; i < slots.size(); ++i) slots[i].again(rates, is_touched(i));
    };
    const auto tenth = [](std::size_t i) { return i % 10 == 0; };
    window([](std::size_t) { return true; });
    for (int w = 0; w < 2; ++w) window(tenth);
    const int naive = touch_rate().sixteenths(slots[1].state);
    EXPECT_GT(naive, 3 * 16) << "one touch in three windows";
    for (int w = 0; w < 3; ++w) window(tenth);
    rates.end_window();
    EXPECT_LT(rates.sixteenths(slots[1].state), 0) << "nobody with one touch was touched again";
    EXPECT_GT(rates.sixteenths(slots[0].state), 6 * 16);
    for (int w = 0; w < 3; ++w) window([](std::size_t i) { return i % 4 == 0; });
    slot late = slots[4];
    rates.end_window();
    EXPECT_GT(rates.sixteenths(late.state), 2 * 16) << "and those that were are believed";
}

TEST(touch_rate, what_was_measured_is_forgotten) {
    touch_rate rates;
    const auto after_one_in_four = [&](bool touched_again) {
        std::vector<slot> slots(5000);
        for (int w = 0; w < 5; ++w) {
            rates.end_window();
            for (slot& s : slots) s.again(rates, w == 0 || (w == 4 && touched_again));
        }
        slot one;
        for (int w = 0; w < 4; ++w) one.window(rates, w == 0);
        rates.end_window();
        return rates.sixteenths(one.state);
    };
    const int never = after_one_in_four(false);
    int always = 0;
    for (int turn = 0; turn < 8; ++turn) always = after_one_in_four(true);
    EXPECT_GT(always, never + 3 * 16);
    int again = 0;
    for (int turn = 0; turn < 8; ++turn) again = after_one_in_four(false);
    EXPECT_LT(again, always - 3 * 16);
}

TEST(touch_rate, keeps_the_bits_that_are_not_its_own) {
    touch_rate rates;
    for (unsigned outside = 0; outside < 8; ++outside) {
        const auto state = static_cast<std::uint16_t>(outside << 12 | 0x5a0);
        EXPECT_EQ(rates.after(state, true, 0) >> 12, static_cast<int>(outside));
    }
}

} // namespace
