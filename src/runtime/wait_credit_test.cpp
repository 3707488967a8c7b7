// SPDX-License-Identifier: MIT
//
// For how long threads may wait for memory, all waits together.
#include "runtime/wait_credit.hpp"

#include <gtest/gtest.h>

using obase::runtime_internal::wait_credit;

namespace {

// Waits of .1 s for as long as there is credit, with so much time between them. The seconds waited until `end`.
double waits(wait_credit& credit, double& now, double between, double end) {
    double waited = 0;
    for (; now < end; now += between) {
        if (!credit.any(now)) continue;
        credit.spend(now, now + .1);
        now += .1;
        waited += .1;
    }
    return waited;
}

TEST(wait_credit, is_spent_and_comes_back_with_time) {
    wait_credit credit;
    double now = 1e6;
    const double first = waits(credit, now, .001, 1e6 + 100);
    EXPECT_LE(first, wait_credit::most_seconds + wait_credit::share * 100 + .1);
    EXPECT_GE(first, wait_credit::most_seconds + wait_credit::share * 90);
    const double then = waits(credit, now, .001, 1e6 + 200);
    EXPECT_NEAR(then, wait_credit::share * 100, .3);
    now += 1e4;
    const double later = waits(credit, now, .001, now + 3);
    EXPECT_NEAR(later, wait_credit::most_seconds, .5) << "it does not grow without end";
}

TEST(wait_credit, grows_with_what_lives) {
    wait_credit credit;
    double now = 0, waited = 0;
    for (std::uint64_t live = 1000; live < 2000; live += 10) {
        credit.earn(live, 10);
        waited += waits(credit, now, .001, now + 1);
    }
    EXPECT_GT(waited, .9 * now);
    const double before = now;
    waited = 0;
    for (int i = 0; i < 100; ++i) {
        credit.earn(1999, 10); // less than a step
        credit.earn(1000, 10); // more than half
        waited += waits(credit, now, .001, now + 1);
    }
    EXPECT_LT(waited, wait_credit::most_seconds + .15 * (now - before));
    credit.earn(990, 10); // half is gone, and it loads anew
    credit.earn(1000, 10);
    EXPECT_GT(waits(credit, now, .001, now + 1), .9);
}

TEST(wait_credit, counts_the_time_of_several_threads_once) {
    wait_credit credit;
    EXPECT_TRUE(credit.any(100));
    for (int thread = 0; thread < 100; ++thread)
        credit.spend(100 + thread * .001, 100.1 + thread * .001);
    EXPECT_TRUE(credit.any(100.2));
    for (int i = 0; i < 22; ++i) credit.spend(101 + i * .1, 101.1 + i * .1);
    EXPECT_FALSE(credit.any(103.2));
}

} // namespace
