// SPDX-License-Identifier: MIT
//
// Properties of the controller:
//   bounds      the threshold never leaves [lowest, highest], whatever happens
//   response    above the target it does not fall, below it does not rise, and by the rule's step
//   gate        paging out is allowed exactly after two judged windows in a row below the target
//   scale       time_scale changes nothing about a program that runs that much faster
//   converges   on a load whose objects return after a known pause it settles around that pause
#include "policy/cold_threshold.hpp"

#include "policy/three_temperatures.hpp"
#include "policy/word_builder_test.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace obase;
using namespace obase::policy;

namespace {

promotion_facts window(std::uint64_t cold, std::uint64_t touched, double seconds = 60) {
    return {seconds, touched, cold, 1 << 20};
}

constexpr double target = 0.01;

TEST(promotion_rate, is_the_share_of_cold_pages_per_minute) {
    EXPECT_DOUBLE_EQ(promotion_rate(window(1, 100, 60), 60), 0.01);
    EXPECT_DOUBLE_EQ(promotion_rate(window(1, 100, 120), 60), 0.005); // the papers' window
    EXPECT_DOUBLE_EQ(promotion_rate(window(100, 100, 30), 60), 2.0);  // a rate, not a share
}

TEST(promotion_rate, is_zero_when_nothing_was_touched) {
    EXPECT_EQ(promotion_rate(window(0, 0), 60), 0);
    EXPECT_EQ(promotion_rate(window(0, 0, 0), 60), 0);
}

TEST(promotion_rate, of_a_window_without_length_is_finite) {
    EXPECT_TRUE(std::isfinite(promotion_rate(window(5, 10, 0), 60)));
    EXPECT_TRUE(std::isfinite(promotion_rate(window(5, 10, -1), 60)));
}

RC_GTEST_PROP(promotion_rate, time_scale_divides_window_and_minute_alike, ()) {
    const auto scale = static_cast<double>(*rc::gen::inRange(1, 100000));
    const auto cold = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const auto touched = *rc::gen::inRange<std::uint64_t>(cold, 100000);
    const double real = promotion_rate(window(cold, touched, 120), 60);
    const double scaled = promotion_rate(window(cold, touched, 120 / scale), 60 / scale);
    RC_ASSERT(std::abs(real - scaled) <= 1e-9 * std::max(real, 1.0));
}

TEST(controller_settings, come_from_the_options) {
    options chosen;
    chosen.cold_threshold = 7;
    chosen.time_scale = 10;
    chosen.promotion_target = 0.5;
    chosen.controller = controller_kind::multiplicative;
    chosen.controller_factor = 3;
    const controller_settings made = controller_settings_of(chosen);
    EXPECT_EQ(made.first, 7u);
    EXPECT_DOUBLE_EQ(made.minute_seconds, 6);
    EXPECT_DOUBLE_EQ(made.target, 0.5);
    EXPECT_EQ(made.rule, controller_kind::multiplicative);
    EXPECT_DOUBLE_EQ(made.factor, 3);
    EXPECT_EQ(made.lowest, 1u);
    EXPECT_EQ(made.highest, 32u);
}

controller_settings with(controller_kind rule, double factor = 2) {
    controller_settings settings;
    settings.rule = rule;
    settings.factor = factor;
    return settings;
}

// A controller whose first judged window is the next one: COLD holds something.
cold_threshold_controller started(const controller_settings& settings) {
    cold_threshold_controller controller(settings);
    controller.end_of_window(window(0, 100));
    return controller;
}

unsigned after(cold_threshold_controller& controller, const promotion_facts& facts) {
    return controller.end_of_window(facts).cold_threshold;
}

TEST(cold_threshold, additive_goes_up_one_and_down_one) {
    cold_threshold_controller controller = started(with(controller_kind::additive));
    EXPECT_EQ(controller.threshold(), 3u);
    EXPECT_EQ(after(controller, window(2, 100)), 4u);
    EXPECT_EQ(after(controller, window(2, 100)), 5u);
    EXPECT_EQ(after(controller, window(0, 100)), 4u);
    EXPECT_EQ(after(controller, window(1, 100)), 4u); // exactly at the target
}

TEST(cold_threshold, multiplicative_doubles_and_falls_by_one) {
    cold_threshold_controller controller = started(with(controller_kind::multiplicative));
    for (const unsigned expected : {6u, 12u, 24u, 32u, 32u}) {
        EXPECT_EQ(after(controller, window(2, 100)), expected);
    }
    EXPECT_EQ(after(controller, window(0, 100)), 31u);
}

TEST(cold_threshold, multiplicative_with_a_small_factor_still_rises) {
    for (const double factor : {1.0, 0.0, -5.0, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
        cold_threshold_controller controller =
            started(with(controller_kind::multiplicative, factor));
        EXPECT_EQ(after(controller, window(2, 100)), 4u) << factor;
    }
    cold_threshold_controller huge = started(with(controller_kind::multiplicative, 1e300));
    EXPECT_EQ(after(huge, window(2, 100)), 32u);
}

TEST(cold_threshold, fixed_never_moves_but_the_gate_works) {
    cold_threshold_controller controller = started(with(controller_kind::fixed));
    EXPECT_EQ(after(controller, window(100, 100)), 3u);
    EXPECT_EQ(after(controller, window(0, 100)), 3u);
    EXPECT_TRUE(controller.end_of_window(window(0, 100)).pageout_allowed);
    EXPECT_EQ(controller.end_of_window(window(0, 100)).pageout_after, 0u);
    EXPECT_EQ(controller.end_of_window(window(100, 100)).pageout_after, 2u);
    EXPECT_EQ(controller.end_of_window(window(0, 100)).pageout_after, 1u);
}

promotion_facts with_empty_cold() {
    promotion_facts facts = window(0, 100);
    facts.cold_live_bytes = 0;
    return facts;
}

TEST(cold_threshold, nothing_is_judged_before_cold_was_used) {
    cold_threshold_controller controller(with(controller_kind::additive));
    for (int i = 0; i < 5; ++i) {
        const directives now = controller.end_of_window(with_empty_cold());
        EXPECT_EQ(now.cold_threshold, 3u);
        EXPECT_FALSE(now.pageout_allowed);
    }
    EXPECT_EQ(after(controller, window(0, 100)), 3u); // the first objects come; none was there
    EXPECT_EQ(after(controller, window(0, 100)), 2u);
}

TEST(cold_threshold, later_an_empty_cold_lowers_it_but_permits_nothing) {
    cold_threshold_controller controller = started(with(controller_kind::multiplicative));
    EXPECT_EQ(after(controller, window(50, 100)), 6u);
    promotion_facts drained = with_empty_cold(); // ends empty, but began with objects
    drained.cold_pages = 50;
    EXPECT_EQ(after(controller, drained), 12u);
    for (const unsigned expected : {11u, 10u, 9u, 8u, 7u, 6u, 5u, 4u, 3u, 2u, 1u, 1u}) {
        const directives now = controller.end_of_window(with_empty_cold());
        EXPECT_EQ(now.cold_threshold, expected);
        EXPECT_FALSE(now.pageout_allowed);
    }
}

TEST(cold_threshold, paging_out_waits_for_two_windows_and_stops_at_once) {
    cold_threshold_controller controller = started(with(controller_kind::additive));
    EXPECT_FALSE(controller.end_of_window(window(0, 100)).pageout_allowed);
    EXPECT_TRUE(controller.end_of_window(window(0, 100)).pageout_allowed);
    EXPECT_TRUE(controller.end_of_window(window(1, 100)).pageout_allowed); // at: stays
    EXPECT_FALSE(controller.end_of_window(window(2, 100)).pageout_allowed);
    EXPECT_FALSE(controller.end_of_window(window(0, 100)).pageout_allowed);
    EXPECT_FALSE(controller.end_of_window(window(1, 100)).pageout_allowed); // at: breaks a streak
    EXPECT_FALSE(controller.end_of_window(window(0, 100)).pageout_allowed);
    EXPECT_TRUE(controller.end_of_window(window(0, 100)).pageout_allowed);
}

TEST(cold_threshold, first_value_and_odd_bounds_are_clamped) {
    controller_settings settings;
    settings.first = 99;
    EXPECT_EQ(cold_threshold_controller(settings).threshold(), 32u);
    settings.first = 0;
    EXPECT_EQ(cold_threshold_controller(settings).threshold(), 1u);
    settings.lowest = 5;
    settings.highest = 2;
    EXPECT_EQ(cold_threshold_controller(settings).threshold(), 5u);
}

RC_GTEST_PROP(cold_threshold, bounds_response_and_gate_hold_for_any_history, ()) {
    controller_settings settings;
    settings.lowest = *rc::gen::inRange(1u, 5u);
    settings.highest = *rc::gen::inRange(settings.lowest, 40u);
    settings.first = *rc::gen::inRange(0u, 50u);
    settings.rule = *rc::gen::element(controller_kind::additive, controller_kind::multiplicative,
                                      controller_kind::fixed);
    settings.factor = *rc::gen::inRange(0, 5);
    cold_threshold_controller controller(settings);
    int below_in_a_row = 0;
    bool allowed = false, used = false, holds = false;
    const auto length = *rc::gen::inRange(1, 60);
    for (int i = 0; i < length; ++i) {
        promotion_facts facts = window(holds ? *rc::gen::inRange<std::uint64_t>(0, 4) : 0, 100);
        const bool held = holds; // when the window began
        holds = *rc::gen::inRange(0, 4) != 0;
        if (!holds) facts.cold_live_bytes = 0;
        used = used || held;
        const unsigned before = controller.threshold();
        const directives now = controller.end_of_window(facts);
        RC_ASSERT(now == controller.current());
        RC_ASSERT(now.cold_threshold >= settings.lowest);
        RC_ASSERT(now.cold_threshold <= settings.highest);
        const bool above = facts.cold_pages > 1, below = used && facts.cold_pages < 1;
        if (!above) RC_ASSERT(now.cold_threshold <= before);
        if (!below) RC_ASSERT(now.cold_threshold >= before);
        if (above && settings.rule != controller_kind::fixed) {
            RC_ASSERT(now.cold_threshold > before || before == settings.highest);
        }
        if (below && settings.rule != controller_kind::fixed) {
            RC_ASSERT(now.cold_threshold == std::max(before - 1, settings.lowest));
        }
        // The gate, told once more without the controller's arithmetic.
        if (above) {
            allowed = false;
            below_in_a_row = 0;
        } else if (below && held) {
            allowed = allowed || ++below_in_a_row >= 2;
        } else if (held) {
            below_in_a_row = 0;
        }
        RC_ASSERT(now.pageout_allowed == allowed);
    }
}

// More cold pages touched never leads to a lower threshold in the next window.
RC_GTEST_PROP(cold_threshold, is_monotone_in_the_promotion_rate, ()) {
    const auto rule = *rc::gen::element(controller_kind::additive, controller_kind::multiplicative);
    const auto history =
        *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 4));
    cold_threshold_controller less(with(rule)), more(with(rule));
    for (const std::uint64_t cold : history) {
        less.end_of_window(window(cold, 100));
        more.end_of_window(window(cold, 100));
    }
    const auto a = *rc::gen::inRange<std::uint64_t>(0, 100);
    const auto b = *rc::gen::inRange<std::uint64_t>(a, 101);
    RC_ASSERT(after(less, window(a, 100)) <= after(more, window(b, 100)));
}

options options_with(controller_kind rule) {
    options settings;
    settings.controller = rule;
    return settings;
}

// A small model of a program: each page holds one object; `hot` pages are touched in every window,
// the others in groups, each group every `pause` windows. Demoted objects live in COLD until
// touched.
class synthetic_load {
  public:
    synthetic_load(unsigned hot, unsigned groups_of, unsigned pause, controller_kind rule)
        : pause_(pause), placement_(options_with(rule)) {
        for (unsigned i = 0; i < hot; ++i) pages_.push_back({true, 0});
        for (unsigned i = 0; i < groups_of * pause; ++i) pages_.push_back({false, i % pause});
    }

    directives run_window() {
        window_facts facts;
        facts.length_seconds = 60;
        auto& in_cold = facts.tiers[2];
        for (page& one : pages_) {
            const bool touched = one.always || window_ % pause_ == one.phase;
            one.inactive = touched ? 0 : one.inactive + 1;
            facts.touched_pages += touched;
            in_cold.touched_pages += touched && one.tier == 2;
            const tier_id next =
                target_of(placement_, {.tier = one.tier, .touched = touched, .idle = one.inactive});
            if (next != no_tier) one.tier = next;
            in_cold.live_bytes += one.tier == 2 ? 4096 : 0;
        }
        ++window_;
        return placement_.end_of_window(facts);
    }

  private:
    struct page {
        bool always;
        unsigned phase;
        tier_id tier = 0;
        unsigned inactive = 0;
    };
    unsigned pause_;
    unsigned window_ = 0;
    std::vector<page> pages_;
    three_temperatures placement_;
};

struct behaviour {
    unsigned least = ~0u, most = 0, above_target = 0;
};

// Of the second half of 400 windows, after the start has been forgotten.
behaviour settled(controller_kind rule, unsigned pause) {
    synthetic_load load(1000, 50, pause, rule);
    behaviour seen;
    for (unsigned i = 0; i < 400; ++i) {
        const directives now = load.run_window();
        if (i < 200) continue;
        seen.least = std::min(seen.least, now.cold_threshold);
        seen.most = std::max(seen.most, now.cold_threshold);
        seen.above_target += now.promotion_rate > target;
    }
    return seen;
}

// Objects that return every 12 windows have CIW 11 when they return. With C_t >= 11 none is ever
// demoted, so COLD drains; below, it fills again. The controller must find that from C_t = 3 and
// stay near it, not run to a bound.
TEST(convergence, additive_stays_near_the_pause_of_the_load) {
    constexpr unsigned pause = 12;
    const behaviour seen = settled(controller_kind::additive, pause);
    EXPECT_GE(seen.least, pause - 3);
    EXPECT_LE(seen.most, pause + 6);
}

// Doubling overshoots to the bound, because what is in COLD already goes on returning for a while;
// the price of reclaiming less buys fewer windows above the target.
TEST(convergence, multiplicative_overshoots_and_is_above_the_target_less_often) {
    constexpr unsigned pause = 12;
    const behaviour seen = settled(controller_kind::multiplicative, pause);
    EXPECT_GE(seen.least, pause - 3);
    EXPECT_LE(seen.least, pause);
    const behaviour additive = settled(controller_kind::additive, pause);
    EXPECT_LT(seen.above_target, additive.above_target);
    const behaviour fixed = settled(controller_kind::fixed, pause);
    EXPECT_EQ(fixed.above_target, 200u);
    EXPECT_LT(additive.above_target, fixed.above_target);
}

TEST(cold_threshold, cold_that_stays_cold_brings_it_to_the_lowest) {
    cold_threshold_controller controller = started(with(controller_kind::additive));
    for (int i = 0; i < 10; ++i) controller.end_of_window(window(0, 100));
    EXPECT_EQ(controller.threshold(), 1u);
}

TEST(cold_threshold, target_is_what_the_options_default_to) {
    EXPECT_DOUBLE_EQ(controller_settings().target, target);
    EXPECT_DOUBLE_EQ(options().promotion_target, target);
}

} // namespace
