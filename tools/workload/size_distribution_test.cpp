// SPDX-License-Identifier: MIT
#include "tools/workload/size_distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace workload;

TEST(SizeDistribution, OneSizeAndARange) {
    const auto one = size_distribution::parsed("1024");
    EXPECT_EQ(one.at(0), 1024U);
    EXPECT_EQ(one.at(.999999), 1024U);
    EXPECT_EQ(one.mean(), 1024);
    const auto range = size_distribution::parsed("10-19");
    EXPECT_EQ(range.at(0), 10U);
    EXPECT_EQ(range.at(.0999), 10U);
    EXPECT_EQ(range.at(.1001), 11U);
    EXPECT_EQ(range.at(1 - 0x1p-53), 19U);
    EXPECT_EQ(range.largest(), 19U);
    EXPECT_EQ(range.mean(), 14.5);
}

TEST(SizeDistribution, PartsHaveTheirWeights) {
    const auto sizes = size_distribution::parsed("100*9/20480-65536*1");
    EXPECT_EQ(sizes.at(.8999), 100U);
    EXPECT_EQ(sizes.at(.9001), 20480U + 45);
    EXPECT_NEAR(sizes.at(.95), (20480 + 65536) / 2, 2);
    EXPECT_EQ(sizes.largest(), 65536U);
    EXPECT_NEAR(sizes.mean(), 90 + .1 * (20480 + 65536) / 2, 1e-6);
    // A part of no weight is never taken, wherever it is.
    const size_distribution some({{1, 1, 0}, {2, 2, 1}, {3, 3, 0}, {4, 4, 1}, {5, 5, 0}});
    for (double q = 0; q < 1; q += .001) EXPECT_EQ(some.at(q), q < .5 ? 2U : 4U);
    EXPECT_EQ(some.largest(), 4U);
}

// Records by themselves: the quantiles are uniform.
TEST(SizeDistribution, RecordsHaveTheDistribution) {
    const auto sizes = size_distribution::parsed("1*1/2*2/3*7");
    std::map<std::uint32_t, int> seen;
    constexpr int records = 1'000'000;
    for (std::uint64_t id = 0; id < records; ++id) ++seen[sizes.at(record_quantile(id, 5))];
    for (const auto& [size, share] : std::map<std::uint32_t, double>{{1, .1}, {2, .2}, {3, .7}})
        EXPECT_NEAR(seen[size], share * records, 5 * std::sqrt(share * records));
    EXPECT_NE(record_quantile(1, 1), record_quantile(1, 2));
}

// The inverse: a quantile back from its size. P(X > x) = (1 + k (x - theta) / sigma)^(-1/k).
TEST(SizeDistribution, ParetoIsTheInverseOfItsDistribution) {
    for (const double k : {.2615, -.1, 2.517}) {
        const auto sizes = size_distribution::pareto(3, k, 25.45);
        for (const double quantile : {.1, .5, .9, .99}) {
            const double size = sizes.at(quantile);
            const auto above = [&](double x) { return std::pow(1 + k * (x - 3) / 25.45, -1 / k); };
            if (size < sizes.largest()) {
                EXPECT_LE(above(size), 1 - quantile + 1e-12) << k;
                EXPECT_GE(above(size - 1), 1 - quantile - 1e-12) << k;
            }
        }
    }
    const auto exponential = size_distribution::pareto(0, 0, 100);
    EXPECT_EQ(exponential.at(.5), std::ceil(100 * std::log(2.)));
    EXPECT_EQ(size_distribution::pareto(0, 2.5, 100, 5000).at(1 - 0x1p-53), 5000U);
    // The mean of a generalized Pareto is theta + sigma / (1 - k); rounding up adds a half.
    EXPECT_NEAR(size_distribution::parsed("pareto:0/.2615/25.45").mean(), 25.45 / (1 - .2615) + .5,
                .3);
}

TEST(SizeDistribution, RefusesByNameWhatItDoesNotUnderstand) {
    for (const char* text :
         {"",         "x",        "-5",         "10-",          "10-5",           "10*x",
          "10*-1",    "10*0",     "1/",         "/1",           "99999999999",    "1*1/x",
          "pareto:",  "pareto:1", "pareto:1/2", "pareto:1/2/0", "pareto:1/2/3/4", "pareto:1,2,3",
          "10-20-30", "10*nan",   "5-*2",       "5*/2"}) {
        EXPECT_THROW(size_distribution::parsed(text), std::invalid_argument) << text;
    }
    try {
        size_distribution::parsed("abc");
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("abc"), std::string::npos);
    }
    EXPECT_THROW(size_distribution(std::vector<size_distribution::part>()), std::invalid_argument);
}

} // namespace
