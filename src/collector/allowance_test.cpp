// SPDX-License-Identifier: MIT
//
// What is queued counts until its batch ends, what has moved until the window does, and what failed not at all.
#include "collector/allowance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace obase::collector {
namespace {

TEST(allowance, is_unlimited_until_it_begins) {
    allowance a;
    EXPECT_FALSE(a.limited());
    a.queue(1000);
    a.take(1000);
    EXPECT_EQ(a.left(), allowance::unlimited);
    EXPECT_TRUE(a.fits(SIZE_MAX));
    EXPECT_TRUE(a.plan(SIZE_MAX, ~0U));
    EXPECT_TRUE(a.plan(SIZE_MAX, ~0U)) << "no overflow counts";
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
    EXPECT_TRUE(a.plan(70, 0));
    EXPECT_FALSE(a.plan(31, 0));
    EXPECT_TRUE(a.plan(30, 0));
    EXPECT_EQ(a.refused(), 31u);
    EXPECT_EQ(a.left(), 100u);
    a.end_batch();
    EXPECT_FALSE(a.plan(1, 0));
    a.begin(100);
    EXPECT_EQ(a.refused(), 0u);
    EXPECT_TRUE(a.plan(100, 0));
}

// As many of those that are asked last as of those that are asked first, once it is known how many there are.
TEST(allowance, draws_lots_where_more_is_wished_for_than_there_is) {
    allowance a;
    const auto planned = [&a] { // of 1000 wishes, each tenth of them
        std::array<int, 10> of{};
        for (std::size_t i = 0; i < 1000; ++i)
            of[i / 100] += a.plan(10, static_cast<std::uint32_t>(i) * 0x9e3779b1u);
        return of;
    };
    a.begin(2500);
    EXPECT_EQ(planned()[9], 0) << "the first that are asked";
    EXPECT_EQ(a.refused(), 7500u);
    for (int window = 0; window < 3; ++window) {
        a.begin(2500);
        for (const int of : planned()) EXPECT_NEAR(of, 25, 8);
    }
    a.begin(20'000);
    for (const int of : planned()) EXPECT_EQ(of, 100) << "there is enough for all";
    a.begin(0);
    for (const int of : planned()) EXPECT_EQ(of, 0);
    a.begin(allowance::unlimited);
    for (const int of : planned()) EXPECT_EQ(of, 100);
    EXPECT_EQ(a.refused(), 0u);
}

} // namespace
} // namespace obase::collector
