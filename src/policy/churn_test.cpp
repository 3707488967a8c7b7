// SPDX-License-Identifier: MIT
//
// Promotion is held back while what is promoted dies young, and goes on when it lives.
#include "policy/churn.hpp"

#include <gtest/gtest.h>

using obase::policy::churn;

namespace {

constexpr std::uint64_t mib = 1 << 20;

unsigned held_of(churn& policy, unsigned count) {
    unsigned held = 0;
    for (unsigned i = 0; i < count; ++i) held += policy.hold();
    return held;
}

TEST(churn, promotes_until_it_has_seen_deaths) {
    churn policy;
    policy.begin_window(0, 0);
    EXPECT_EQ(held_of(policy, 1000), 0u);
    policy.begin_window(100 * mib, 0);
    EXPECT_EQ(held_of(policy, 1000), 0u);
    policy.begin_window(100 * mib, 90 * mib);
    EXPECT_TRUE(policy.holding());
}

TEST(churn, lets_a_sample_through_while_it_holds) {
    churn policy;
    policy.begin_window(100 * mib, 100 * mib);
    constexpr unsigned rounds = 25;
    EXPECT_EQ(held_of(policy, rounds * churn::probe_one_in), rounds * (churn::probe_one_in - 1));
}

TEST(churn, releases_when_the_sample_lives) {
    churn policy;
    policy.begin_window(100 * mib, 100 * mib);
    unsigned windows = 0;
    for (; policy.holding(); ++windows) policy.begin_window(6 * mib, 0);
    EXPECT_GT(windows, 1u); // one good window is no trend
    EXPECT_LT(windows, 6u);
    EXPECT_EQ(held_of(policy, 1000), 0u);
}

// Between the two thresholds nothing changes, so the policy does not flutter.
TEST(churn, keeps_its_mind_between_the_thresholds) {
    churn policy;
    for (int i = 0; i < 20; ++i) policy.begin_window(100 * mib, 20 * mib);
    EXPECT_FALSE(policy.holding());
    policy.begin_window(100 * mib, 100 * mib);
    EXPECT_TRUE(policy.holding());
    for (int i = 0; i < 20; ++i) policy.begin_window(100 * mib, 20 * mib);
    EXPECT_TRUE(policy.holding());
}

// In a small heap a sample of one window is too small, and nothing but the sample is promoted.
TEST(churn, releases_a_small_heap_too) {
    churn policy;
    policy.begin_window(100 * mib, 100 * mib);
    unsigned windows = 0;
    for (; policy.holding() && windows < 100; ++windows)
        policy.begin_window(churn::least_promoted / 8, 0);
    EXPECT_GT(windows, 8u);
    EXPECT_LT(windows, 48u);
}

TEST(churn, a_few_bytes_tell_nothing) {
    churn policy;
    policy.begin_window(churn::least_promoted - 1, mib);
    EXPECT_EQ(policy.mortality(), 0);
    // More may die than were promoted: older objects of HOT.
    policy.begin_window(mib, 50 * mib);
    EXPECT_LE(policy.mortality(), 1);
}

} // namespace
