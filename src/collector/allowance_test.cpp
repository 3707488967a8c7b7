// SPDX-License-Identifier: MIT
//
// What is queued counts until its batch ends, what has moved until the window does, and what failed not at all.
#include "collector/allowance.hpp"

#include <gtest/gtest.h>

namespace obase::collector {
namespace {

TEST(allowance, is_unlimited_until_it_begins) {
    allowance a;
    EXPECT_FALSE(a.limited());
    a.queue(1000);
    a.take(1000);
    EXPECT_EQ(a.left(), allowance::unlimited);
    EXPECT_TRUE(a.fits(SIZE_MAX));
    EXPECT_TRUE(a.plan(SIZE_MAX));
    EXPECT_TRUE(a.plan(SIZE_MAX)) << "no overflow counts";
    a.add(10);
    EXPECT_FALSE(a.limited());
    a.begin(0);
    EXPECT_TRUE(a.limited());
    EXPECT_FALSE(a.fits(1));
    EXPECT_TRUE(a.fits(0));
}

TEST(allowance, counts_a_batch_until_it_ends_and_moves_until_the_window_does) {
    allowance a;
    a.begin(100);
    a.queue(60);
    EXPECT_TRUE(a.fits(40));
    EXPECT_FALSE(a.fits(41));
    a.queue(40);
    a.take(30); // the others failed
    a.end_batch();
    EXPECT_EQ(a.left(), 70u);
    a.add(30);
    EXPECT_EQ(a.left(), 100u);
    a.take(150); // more than was asked for
    EXPECT_EQ(a.left(), 0u);
    EXPECT_FALSE(a.fits(1));
    a.begin(100);
    EXPECT_EQ(a.left(), 100u);
}

// Plans are another sum: they neither take room nor end with a batch.
TEST(allowance, no_more_is_planned_than_there_is) {
    allowance a;
    a.begin(100);
    EXPECT_TRUE(a.plan(70));
    EXPECT_FALSE(a.plan(31));
    EXPECT_TRUE(a.plan(30));
    EXPECT_EQ(a.left(), 100u);
    a.end_batch();
    EXPECT_FALSE(a.plan(1));
    a.begin(100);
    EXPECT_TRUE(a.plan(100));
}

} // namespace
} // namespace obase::collector
