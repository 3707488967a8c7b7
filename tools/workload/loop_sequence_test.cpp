// SPDX-License-Identifier: MIT
#include "tools/workload/loop_sequence.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

namespace {

using workload::loop_sequence;

std::vector<std::uint32_t> distinct(const std::vector<std::uint32_t>& ids) {
    const std::set<std::uint32_t> unique(ids.begin(), ids.end());
    return {unique.begin(), unique.end()};
}

RC_GTEST_PROP(LoopSequence, TouchesExactlyTheLiveShare, (std::uint64_t seed)) {
    const auto records = *rc::gen::inRange<std::uint64_t>(1, 3000);
    const auto percent = *rc::gen::inRange<std::uint64_t>(1, 101);
    const loop_sequence loop(records, static_cast<double>(percent) / 100, seed);
    RC_ASSERT(loop.live().size() == (percent * records + 99) / 100);
    RC_ASSERT(loop.live() == distinct(loop.ids()));
    RC_ASSERT(loop.live().back() < records);
    RC_ASSERT(loop.period() == loop.ids().size());
}

TEST(LoopSequence, IsSkewedAndOfAShortPeriod) {
    constexpr std::uint64_t records = 100'000;
    const loop_sequence loop(records, .31, 1);
    EXPECT_EQ(loop.live().size(), 31'000U);
    EXPECT_EQ(loop.added(), 0U);
    EXPECT_GT(loop.period(), records / 2);
    EXPECT_LT(loop.period(), 2 * records);
    const auto top = static_cast<std::uint32_t>(workload::ycsb_hash(0) % records);
    const auto asked = static_cast<double>(std::count(loop.ids().begin(), loop.ids().end(), top));
    EXPECT_NEAR(asked / static_cast<double>(loop.period()), 1 / 26.469, .003);
}

// Coupon collecting would take some 30 draws for each record.
TEST(LoopSequence, AWholeShareIsFinishedWithTheRemainder) {
    constexpr std::uint64_t records = 100'000;
    const loop_sequence loop(records, 1, 1);
    EXPECT_EQ(loop.live().size(), records);
    EXPECT_GT(loop.added(), 0U);
    EXPECT_LT(loop.added(), records / 20);
    EXPECT_EQ(loop.period(), 8 * records + loop.added());

    // What was added is nowhere bunched: as many ids come up for the first and only time in either
    // half, about.
    std::vector<int> times(records);
    for (const std::uint32_t id : loop.ids()) ++times[id];
    const auto half = static_cast<std::ptrdiff_t>(loop.period() / 2);
    const auto once = [&](std::uint32_t id) { return times[id] == 1; };
    const auto first = std::count_if(loop.ids().begin(), loop.ids().begin() + half, once);
    const auto second = std::count_if(loop.ids().begin() + half, loop.ids().end(), once);
    EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(second), 1, .1);
}

TEST(LoopSequence, TheSameSeedGivesTheSameSequence) {
    const loop_sequence loop(1000, .5, 7);
    EXPECT_EQ(loop.ids(), loop_sequence(1000, .5, 7).ids());
    EXPECT_NE(loop.ids(), loop_sequence(1000, .5, 8).ids());
}

TEST(LoopSequence, ThreadsStartApart) {
    const loop_sequence loop(1000, .5, 7);
    EXPECT_EQ(loop.start(0, 4), 0U);
    EXPECT_EQ(loop.start(2, 4), loop.period() / 2);
    EXPECT_LT(loop.start(3, 4), loop.period());
    EXPECT_EQ(loop.after(loop.period() - 1), 0U);
    const loop_sequence one(1, 1, 7);
    EXPECT_EQ(one.start(3, 4), 0U);
}

TEST(LoopSequence, AbsurdParametersAreRefused) {
    EXPECT_THROW(loop_sequence(0, .5, 1), std::invalid_argument);
    EXPECT_THROW(loop_sequence(std::uint64_t{1} << 32, .5, 1), std::invalid_argument);
    EXPECT_THROW(loop_sequence(10, 0, 1), std::invalid_argument);
    EXPECT_THROW(loop_sequence(10, 1.01, 1), std::invalid_argument);
    EXPECT_THROW(loop_sequence(10, -1, 1), std::invalid_argument);
    EXPECT_THROW(loop_sequence(10, std::numeric_limits<double>::quiet_NaN(), 1),
                 std::invalid_argument);
}

} // namespace
