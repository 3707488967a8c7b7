// SPDX-License-Identifier: MIT
//
// The interval of a median is what every verdict rests on.
#include "tools/bench/spread.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace obase::tools {
namespace {

TEST(Spread, FifteenValuesGiveTheFourthOfEachEnd) {
    std::vector<double> values;
    for (int i = 15; i >= 1; --i) values.push_back(i);
    const spread s = spread_of(values);
    EXPECT_EQ(s.median, 8);
    EXPECT_EQ(s.low, 4);
    EXPECT_EQ(s.high, 12);
    EXPECT_TRUE(s.trusted);
}

TEST(Spread, FewValuesAreNotTrusted) {
    EXPECT_FALSE(spread_of({}).trusted);
    const spread five = spread_of({5, 1, 2, 4, 3});
    EXPECT_FALSE(five.trusted);
    EXPECT_EQ(five.low, 1);
    EXPECT_EQ(five.high, 5);
    EXPECT_TRUE(spread_of({6, 5, 1, 2, 4, 3}).trusted);
}

TEST(Spread, EvenSamplesHaveTheirMedianInTheMiddle) {
    EXPECT_EQ(spread_of({4, 1, 3, 2}).median, 2.5);
}

TEST(GeometricSpread, IsSymmetricInRatios) {
    const spread s = geometric_spread_of({0.5, 2, 0.5, 2, 0.5, 2});
    EXPECT_NEAR(s.median, 1, 1e-12);
    EXPECT_NEAR(s.low * s.high, 1, 1e-12);
    EXPECT_LT(s.low, 1);
    EXPECT_TRUE(s.trusted);
    EXPECT_FALSE(geometric_spread_of({1, 1.1}).trusted);
    EXPECT_EQ(geometric_spread_of({}).samples, 0u);
    EXPECT_EQ(geometric_spread_of({0.7}).low, geometric_spread_of({0.7}).high);
}

TEST(GeometricSpread, IntervalsCoverTheMean) {
    std::mt19937_64 random(2);
    std::lognormal_distribution<double> draw(0, 0.1);
    int hits = 0;
    for (int sample = 0; sample < 2000; ++sample) {
        std::vector<double> values(15);
        for (double& v : values) v = draw(random);
        const spread s = geometric_spread_of(values);
        hits += s.low <= 1 && 1 <= s.high;
    }
    EXPECT_GT(hits, 1860); // 95 % of 2000, less four standard deviations
    EXPECT_LT(hits, 1940);
}

// The property itself: of many samples of a skewed distribution with median 1, at least 95 % of the
// intervals hold the 1.
TEST(Spread, IntervalsCoverTheMedian) {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> skewed(0.0, 1.0);
    unsigned covered = 0;
    const unsigned samples = 4000;
    for (unsigned i = 0; i < samples; ++i) {
        std::vector<double> values(15);
        for (double& value : values) value = skewed(random);
        const spread s = spread_of(values);
        covered += s.low <= 1 && 1 <= s.high;
    }
    EXPECT_GE(covered, samples * 95 / 100);
    EXPECT_LE(covered, samples * 98 / 100); // 96.5 % in theory: the interval is not idly wide
}

TEST(Spread, QuartileAndMean) {
    EXPECT_EQ(lower_quartile({8, 1, 7, 2, 6, 3, 5, 4}), 3);
    EXPECT_DOUBLE_EQ(geometric_mean({1, 4, 16}), 4);
    EXPECT_EQ(geometric_mean({}), 0);
}

} // namespace
} // namespace obase::tools
