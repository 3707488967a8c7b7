// SPDX-License-Identifier: MIT
//
// Quantiles are right within a bucket, for all magnitudes.
#include "tools/ycsb/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace obase::tools {
namespace {

TEST(LatencyHistogram, QuantilesAreWithinABucketOfTheExactOnes) {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> draw(7, 3);
    latency_histogram histogram;
    std::vector<std::uint64_t> exact;
    for (int i = 0; i < 100'000; ++i) {
        exact.push_back(static_cast<std::uint64_t>(draw(random)));
        histogram.add(exact.back());
    }
    std::sort(exact.begin(), exact.end());
    for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999}) {
        const auto at = static_cast<std::size_t>(share * static_cast<double>(exact.size()));
        const auto right = static_cast<double>(exact[at]);
        EXPECT_NEAR(histogram.quantile_ns(share), right, right / 32 + 1) << share;
    }
    EXPECT_EQ(histogram.count(), exact.size());
}

TEST(LatencyHistogram, TakesAnyNumberAndMerges) {
    latency_histogram a, b;
    EXPECT_EQ(a.quantile_ns(0.5), 0);
    for (unsigned bit = 0; bit < 64; ++bit) a.add(std::uint64_t{1} << bit);
    a.add(~std::uint64_t{0});
    b.add(0);
    b.merge(a);
    EXPECT_EQ(b.count(), 66u);
    EXPECT_EQ(b.quantile_ns(0), 0);
    EXPECT_NEAR(b.quantile_ns(1), std::pow(2.0, 64), std::pow(2.0, 59));
    b.clear();
    EXPECT_EQ(b.count(), 0u);
}

} // namespace
} // namespace obase::tools
