// SPDX-License-Identifier: MIT
#include "tools/workload/power_law.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace workload;

// Each rank within five standard deviations of its exact share; seeds are fixed.
TEST(PowerLaw, EveryRankHasItsShare) {
    constexpr std::uint64_t items = 1000;
    constexpr int draws = 2'000'000;
    for (const double exponent : {0., .3048, .5, .99, 1., 1.0000001, 1.2, 2.6774}) {
        const power_law_ids ranks(items, exponent);
        double sum = 0;
        for (std::uint64_t r = 1; r <= items; ++r)
            sum += std::pow(static_cast<double>(r), -exponent);
        std::vector<int> seen(items);
        random_stream random(11);
        for (int i = 0; i < draws; ++i) ++seen.at(ranks.next(random));
        double squares = 0;
        for (std::uint64_t r = 0; r < items; ++r) {
            const double expected = draws * std::pow(static_cast<double>(r + 1), -exponent) / sum;
            ASSERT_NEAR(seen[r], expected, 5 * std::sqrt(expected) + 5)
                << "rank " << r << ", exponent " << exponent;
            squares += (seen[r] - expected) * (seen[r] - expected) / expected;
        }
        if (exponent <= 1.2) { // beyond, the last cells are too small for this test
            EXPECT_NEAR(squares, items - 1, 5 * std::sqrt(2. * items));
        }
    }
}

TEST(PowerLaw, OneItemAndMany) {
    random_stream random(1);
    EXPECT_EQ(power_law_ids(1, .99).next(random), 0U);
    const power_law_ids many(std::uint64_t{1} << 40, 1.1);
    for (int i = 0; i < 1000; ++i) EXPECT_LT(many.next(random), std::uint64_t{1} << 40);
}

TEST(PowerLaw, Refuses) {
    EXPECT_THROW(power_law_ids(0, 1), std::invalid_argument);
    EXPECT_THROW(power_law_ids(10, -.1), std::invalid_argument);
    EXPECT_THROW(power_law_ids(10, std::numeric_limits<double>::quiet_NaN()),
                 std::invalid_argument);
}

} // namespace
