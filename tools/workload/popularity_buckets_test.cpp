// SPDX-License-Identifier: MIT
#include "tools/workload/popularity_buckets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace {

using namespace workload;

TEST(PopularityBuckets, EachRankHasItsPartOfItsBucket) {
    const popularity_buckets ranks({1, 1, 8, 90}, {40, 30, 20, 10}, 100);
    constexpr int draws = 1'000'000;
    std::vector<int> seen(100);
    random_stream random(1);
    for (int i = 0; i < draws; ++i) ++seen.at(ranks.next(random));
    for (std::uint64_t r = 0; r < 100; ++r) {
        const double share = r == 0 ? .4 : r == 1 ? .3 : r < 10 ? .2 / 8 : .1 / 90;
        ASSERT_NEAR(seen[r], share * draws, 5 * std::sqrt(share * draws)) << r;
        ASSERT_NEAR(ranks.share_below(r + 1) - ranks.share_below(r), share, 1e-12) << r;
    }
    EXPECT_EQ(ranks.share_below(0), 0);
    EXPECT_EQ(ranks.share_below(1000), 1);
}

// A measurement of 100 keys on 1000 records, and on 10: shares of the ranks stay.
TEST(PopularityBuckets, AreStretchedAndSqueezed) {
    const popularity_buckets more({10, 90}, {90, 10}, 1000);
    EXPECT_NEAR(more.share_below(100), .9, 1e-12);
    EXPECT_NEAR(more.share_below(550), .95, 1e-12);
    const popularity_buckets fewer({10, 90}, {90, 10}, 10);
    EXPECT_NEAR(fewer.share_below(1), .9, 1e-12);
    random_stream random(1);
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_LT(more.next(random), 1000U);
        ASSERT_LT(fewer.next(random), 10U);
    }
}

TEST(PopularityBuckets, EmptyBucketsAreNotDrawn) {
    const popularity_buckets ranks({0, 5, 5, 5}, {0, 0, 1, 0}, 15);
    random_stream random(1);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t rank = ranks.next(random);
        ASSERT_GE(rank, 5U);
        ASSERT_LT(rank, 10U);
    }
}

TEST(PopularityBuckets, RefuseWhatIsNoDistribution) {
    EXPECT_THROW(popularity_buckets({}, {}, 1), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({1}, {1}, 0), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({1, 2}, {1}, 1), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({1}, {-1}, 1), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({1}, {0}, 1), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({0}, {1}, 1), std::invalid_argument);
    EXPECT_THROW(popularity_buckets({1}, {std::numeric_limits<double>::infinity()}, 1),
                 std::invalid_argument);
}

} // namespace
