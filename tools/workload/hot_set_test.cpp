// SPDX-License-Identifier: MIT
#include "tools/workload/hot_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace workload;

constexpr std::uint64_t items = 10'000;

std::vector<bool> hot_records(const hot_set& set, std::uint64_t operation) {
    std::vector<bool> hot(items);
    for (std::uint64_t id = 0; id < items; ++id) hot[id] = set.is_hot(id, operation);
    return hot;
}
std::uint64_t count(const std::vector<bool>& of) {
    return static_cast<std::uint64_t>(std::count(of.begin(), of.end(), true));
}
std::uint64_t common(const std::vector<bool>& a, const std::vector<bool>& b) {
    std::uint64_t both = 0;
    for (std::uint64_t id = 0; id < items; ++id) both += a[id] && b[id];
    return both;
}

// Counts over fixed seeds: five standard deviations.
TEST(HotSet, GetsItsShareOfTheAccessesAndAllWithinAreAlike) {
    for (const double accesses : {.8, .99, .999}) {
        const hot_set set({.records = items, .data_share = .2, .access_share = accesses});
        const std::vector<bool> hot = hot_records(set, 0);
        ASSERT_EQ(count(hot), items / 5);
        constexpr int draws = 2'000'000;
        std::vector<int> seen(items);
        random_stream random(3);
        std::uint64_t to_hot = 0;
        for (int i = 0; i < draws; ++i) {
            const std::uint64_t id = set.next(0, random);
            ++seen[id];
            to_hot += hot[id];
        }
        EXPECT_NEAR(static_cast<double>(to_hot), draws * accesses,
                    5 * std::sqrt(draws * accesses * (1 - accesses)));
        const double each = draws * accesses / (items / 5.);
        const double cold_each = draws * (1 - accesses) / (items * .8);
        for (std::uint64_t id = 0; id < items; ++id) {
            const double expected = hot[id] ? each : cold_each;
            ASSERT_NEAR(seen[id], expected, 5.5 * std::sqrt(expected) + 5) << id;
        }
    }
}

TEST(HotSet, IsScatteredOverTheIds) {
    const hot_set set({.records = items});
    const std::vector<bool> hot = hot_records(set, 0);
    for (std::uint64_t cell = 0; cell < 10; ++cell) {
        const auto begin = hot.begin() + static_cast<std::ptrdiff_t>(cell * items / 10);
        EXPECT_NEAR(static_cast<double>(std::count(begin, begin + items / 10, true)), 200, 65);
    }
}

TEST(HotSet, AShiftExchangesItsShare) {
    const hot_set set(
        {.records = items, .data_share = .2, .shift_period = 1000, .shift_share = .25});
    const std::vector<bool> first = hot_records(set, 0);
    EXPECT_EQ(hot_records(set, 999), first);
    const std::vector<bool> second = hot_records(set, 1000);
    EXPECT_EQ(count(second), items / 5);
    EXPECT_EQ(common(first, second), items / 5 * 3 / 4);
    EXPECT_EQ(common(first, hot_records(set, 2000)), items / 5 / 2);
    EXPECT_EQ(common(first, hot_records(set, 4000)), 0U);
    // Twenty shifts are once around.
    EXPECT_EQ(hot_records(set, 20'000), first);
    // Far away: no overflow.
    const hot_set fast({.records = items, .data_share = .2, .shift_period = 1, .shift_share = .25});
    const std::uint64_t far = (std::uint64_t{1} << 63) - (std::uint64_t{1} << 63) % 20;
    EXPECT_EQ(hot_records(fast, far), hot_records(fast, 0));
    EXPECT_EQ(count(hot_records(set, std::numeric_limits<std::uint64_t>::max())), items / 5);
}

TEST(HotSet, AFullShiftLeavesNothing) {
    const hot_set set({.records = items, .data_share = .2, .shift_period = 1000});
    EXPECT_EQ(common(hot_records(set, 0), hot_records(set, 1000)), 0U);
}

TEST(HotSet, WhatIsDrawnIsHotForThatOperation) {
    const hot_set set({.records = items,
                       .data_share = .1,
                       .access_share = 1,
                       .shift_period = 10,
                       .shift_share = .5});
    random_stream random(1);
    for (std::uint64_t k = 0; k < 10'000; ++k) ASSERT_TRUE(set.is_hot(set.next(k, random), k)) << k;
}

TEST(HotSet, GrowsAndShrinksEvenlyAndStays) {
    for (const double final_share : {.5, .01}) {
        const hot_set set({.records = items,
                           .data_share = .1,
                           .final_data_share = final_share,
                           .resize_over = 1000});
        EXPECT_EQ(set.size_at(0), items / 10);
        EXPECT_NEAR(static_cast<double>(set.size_at(500)), items * (.1 + final_share) / 2, 1);
        EXPECT_NEAR(static_cast<double>(set.size_at(1000)), items * final_share, 1);
        EXPECT_EQ(set.size_at(1'000'000), set.size_at(1000));
        EXPECT_EQ(count(hot_records(set, 500)), set.size_at(500));
    }
}

TEST(HotSet, TheEdges) {
    random_stream random(1);
    const hot_set one({.records = 1});
    EXPECT_EQ(one.next(0, random), 0U);
    const hot_set all({.records = items, .data_share = 1, .access_share = 0});
    EXPECT_EQ(all.size_at(0), items);
    EXPECT_LT(all.next(0, random), items);
    const hot_set none({.records = items, .data_share = 0, .access_share = .5});
    EXPECT_EQ(none.size_at(0), 1U);
}

TEST(HotSet, RefusesWhatMakesNoSense) {
    EXPECT_THROW(hot_set({.records = 0}), std::invalid_argument);
    EXPECT_THROW(hot_set({.records = items, .data_share = 1.5}), std::invalid_argument);
    EXPECT_THROW(hot_set({.records = items, .access_share = -.1}), std::invalid_argument);
    EXPECT_THROW(hot_set({.records = items, .shift_share = 2}), std::invalid_argument);
    EXPECT_THROW(hot_set({.records = items, .final_data_share = .5}), std::invalid_argument);
    EXPECT_THROW(hot_set({.records = items, .final_data_share = 5, .resize_over = 1}),
                 std::invalid_argument);
}

} // namespace
