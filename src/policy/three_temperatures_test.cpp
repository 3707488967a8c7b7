// SPDX-License-Identifier: MIT
//
// The migration diagram of OBASE Fig. 5, the never-cold and newborn rules, and the meaning of CIW
// for counters that saturate.
#include "policy/three_temperatures.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace obase::policy;

namespace {

constexpr unsigned fresh = 0, hot = 1, cold = 2;

controller_settings starting_at(unsigned threshold) {
    controller_settings settings;
    settings.first = threshold;
    return settings;
}

observation touched_in(unsigned cls) {
    observation seen;
    seen.cls = cls;
    seen.touched = true;
    return seen;
}

observation idle_in(unsigned cls, unsigned windows) {
    observation seen;
    seen.cls = cls;
    seen.inactive_windows = windows;
    return seen;
}

TEST(three_temperatures, touched_objects_gather_in_hot) {
    const three_temperatures policy(starting_at(3));
    EXPECT_EQ(policy.decide(touched_in(fresh)), decision::to(hot));
    EXPECT_EQ(policy.decide(touched_in(cold)), decision::to(hot));
    EXPECT_EQ(policy.decide(touched_in(hot)), decision::stay());
}

TEST(three_temperatures, idle_objects_go_to_cold_when_they_exceed_the_threshold) {
    const three_temperatures policy(starting_at(3));
    for (const unsigned from : {fresh, hot}) {
        EXPECT_EQ(policy.decide(idle_in(from, 3)), decision::stay());
        EXPECT_EQ(policy.decide(idle_in(from, 4)), decision::to(cold));
    }
    EXPECT_EQ(policy.decide(idle_in(cold, 100)), decision::stay());
}

TEST(three_temperatures, the_first_visit_moves_only_what_was_touched) {
    const three_temperatures policy(starting_at(1));
    observation seen = idle_in(fresh, 9);
    seen.newborn = true;
    EXPECT_EQ(policy.decide(seen), decision::stay());
    seen = touched_in(fresh);
    seen.newborn = true;
    EXPECT_EQ(policy.decide(seen), decision::to(hot));
}

TEST(three_temperatures, saturated_counters_are_beyond_every_threshold) {
    constexpr unsigned five_bits = 31;
    for (unsigned threshold = 1; threshold <= 32; ++threshold) {
        const three_temperatures narrow(starting_at(threshold), five_bits);
        EXPECT_EQ(narrow.decide(idle_in(hot, five_bits)), decision::to(cold)) << threshold;
        const unsigned first = std::min(threshold + 1, five_bits);
        EXPECT_EQ(narrow.decide(idle_in(hot, first - 1)), decision::stay()) << threshold;
        const three_temperatures wide(starting_at(threshold));
        EXPECT_EQ(wide.decide(idle_in(hot, threshold)), decision::stay()) << threshold;
        EXPECT_EQ(wide.decide(idle_in(hot, threshold + 1)), decision::to(cold)) << threshold;
    }
}

TEST(three_temperatures, follows_its_controller) {
    three_temperatures policy(starting_at(3));
    policy.end_of_window({60, 100, 0, 4096}); // brings the first objects into COLD
    EXPECT_EQ(policy.end_of_window({60, 100, 50, 4096}).cold_threshold, 4u);
    EXPECT_EQ(policy.decide(idle_in(hot, 4)), decision::stay());
    EXPECT_EQ(policy.decide(idle_in(hot, 5)), decision::to(cold));
    EXPECT_EQ(policy.current().cold_threshold, 4u);
}

TEST(three_temperatures, class_numbers_are_data) {
    const three_temperatures policy(starting_at(3), ~0u, {4, 7, 9});
    EXPECT_EQ(policy.decide(touched_in(4)), decision::to(7));
    EXPECT_EQ(policy.decide(idle_in(7, 4)), decision::to(9));
    EXPECT_EQ(policy.decide(idle_in(9, 4)), decision::stay());
}

RC_GTEST_PROP(three_temperatures, never_cold_objects_never_go_to_cold, ()) {
    const three_temperatures policy(starting_at(*rc::gen::inRange(1u, 33u)));
    observation seen;
    seen.cls = *rc::gen::inRange(0u, 3u);
    seen.touched = *rc::gen::arbitrary<bool>();
    seen.inactive_windows = seen.touched ? 0 : *rc::gen::inRange(0u, 100u);
    seen.newborn = *rc::gen::arbitrary<bool>();
    seen.never_cold = true;
    const decision made = policy.decide(seen);
    RC_ASSERT(!made.move || made.target == hot);
}

RC_GTEST_PROP(three_temperatures, a_move_always_changes_the_class, ()) {
    const three_temperatures policy(starting_at(*rc::gen::inRange(1u, 33u)));
    observation seen;
    seen.cls = *rc::gen::inRange(0u, 3u);
    seen.touched = *rc::gen::arbitrary<bool>();
    seen.inactive_windows = *rc::gen::inRange(0u, 100u);
    seen.newborn = *rc::gen::arbitrary<bool>();
    seen.never_cold = *rc::gen::arbitrary<bool>();
    const decision made = policy.decide(seen);
    RC_ASSERT(!made.move || (made.target != seen.cls && made.target < policy.classes()));
}

} // namespace
