// SPDX-License-Identifier: MIT
#include "tools/workload/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

namespace {

using namespace workload;

// How unlikely the counts are, in standard deviations: the chi-square sum, made normal with Wilson
// and Hilferty's cube root. Seeds are fixed, so a limit of 4 fails for ever or never.
double surprise(const std::vector<std::uint64_t>& counts, const std::vector<double>& shares) {
    std::uint64_t draws = 0;
    for (const std::uint64_t count : counts) draws += count;
    double sum = 0;
    double cells = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double expected = shares[i] * static_cast<double>(draws);
        EXPECT_GT(expected, 5) << "cell " << i << " is too small for the test";
        const double off = static_cast<double>(counts[i]) - expected;
        sum += off * off / expected;
        cells += 1;
    }
    const double k = cells - 1;
    return (std::cbrt(sum / k) - (1 - 2 / (9 * k))) / std::sqrt(2 / (9 * k));
}

std::vector<std::uint64_t> counts(std::size_t cells, int draws,
                                  const std::function<std::uint64_t()>& draw) {
    std::vector<std::uint64_t> result(cells);
    for (int i = 0; i < draws; ++i) ++result.at(draw());
    return result;
}

TEST(Zeta, IsTheSum) {
    for (const double theta : {.01, .5, .99}) {
        double sum = 0;
        for (std::uint64_t i = 1; i <= 2'000'000; ++i) {
            sum += std::pow(static_cast<double>(i), -theta);
            if (i == 1 || i == 7 || i == 1000 || i == 1001 || i == 50'000 || i == 2'000'000) {
                ASSERT_NEAR(zeta(i, theta) / sum, 1, 1e-11) << i << ", theta " << theta;
            }
        }
    }
}

// The constant that YCSB computed in a long run.
TEST(Zeta, IsWhatYcsbFoundForTenToTheTenth) {
    EXPECT_NEAR(zeta(scrambled_zipfian::ranks, ycsb_theta), scrambled_zipfian::zeta_of_ranks, 1e-9);
}

TEST(Uniform, AllAlike) {
    random_stream random(1);
    const uniform_ids ids(1000);
    const auto seen = counts(1000, 1'000'000, [&] { return ids.next(random); });
    EXPECT_LT(surprise(seen, std::vector<double>(1000, .001)), 4);
}

TEST(Zipfian, TheMethodsOwnProbabilities) {
    for (const std::uint64_t items : {2U, 3U, 10U, 1000U}) {
        random_stream random(items);
        const zipfian_ids ids(items);
        std::vector<double> shares;
        for (std::uint64_t rank = 0; rank < items; ++rank)
            shares.push_back(ids.share_below(rank + 1) - ids.share_below(rank));
        const auto seen = counts(items, 1'000'000, [&] { return ids.next(random); });
        EXPECT_LT(surprise(seen, shares), 4) << items;
    }
}

TEST(Zipfian, IsCloseToZipfsLaw) {
    constexpr std::uint64_t items = 1'000'000;
    const zipfian_ids ids(items);
    const double sum = zeta(items, ycsb_theta);
    EXPECT_DOUBLE_EQ(ids.share_below(1), 1 / sum); // .067 of the requests want one record
    EXPECT_NEAR(ids.share_below(2), zeta(2, ycsb_theta) / sum, 1e-12);
    for (const std::uint64_t rank : {3U, 10U, 100U, 1000U, 100'000U})
        EXPECT_NEAR(ids.share_below(rank), zeta(rank, ycsb_theta) / sum, .02) << rank;
    EXPECT_DOUBLE_EQ(ids.share_below(items), 1);
}

TEST(Zipfian, GrowingIsAsIfItHadBeenThatLarge) {
    for (const std::uint64_t to : {1001U, 1500U, 300'000U}) {
        zipfian_ids grown(1000);
        grown.grow(to);
        const zipfian_ids made(to);
        EXPECT_EQ(grown.items(), to);
        EXPECT_NEAR(grown.zeta_of_items(), made.zeta_of_items(), 1e-11);
        for (const std::uint64_t rank : {1U, 2U, 50U, 999U, 1000U})
            EXPECT_NEAR(grown.share_below(rank), made.share_below(rank), 1e-11);
    }
    zipfian_ids same(1000);
    same.grow(999);
    EXPECT_EQ(same.items(), 1000U);
}

TEST(Zipfian, SmallestSizes) {
    random_stream random(3);
    const zipfian_ids one(1);
    const zipfian_ids two(2);
    std::uint64_t ones = 0;
    for (int i = 0; i < 100'000; ++i) {
        ASSERT_EQ(one.next(random), 0U);
        const std::uint64_t id = two.next(random);
        ASSERT_LT(id, 2U);
        ones += id;
    }
    EXPECT_NEAR(static_cast<double>(ones) / 100'000, .3349, .005); // 2^-.99 / (1 + 2^-.99)
}

TEST(ScrambledZipfian, SharesFollowFromRanksAndHashes) {
    // The popular ranks one by one, and the rest as the hash scatters it: evenly.
    constexpr std::uint64_t items = 1000;
    constexpr std::uint64_t exact = 100'000;
    const scrambled_zipfian ids(items);
    const zipfian_ids& ranks = ids.rank_distribution();
    std::vector<double> shares(items, (1 - ranks.share_below(exact)) / items);
    for (std::uint64_t rank = 0; rank < exact; ++rank)
        shares[ids.id_of_rank(rank)] += ranks.share_below(rank + 1) - ranks.share_below(rank);
    random_stream random(4);
    const auto seen = counts(items, 1'000'000, [&] { return ids.next(random); });
    EXPECT_LT(surprise(seen, shares), 4);

    const std::uint64_t top = ycsb_hash(0) % items;
    EXPECT_NEAR(static_cast<double>(seen[top]) / 1e6, 1 / 26.469 + .0005, .002);
}

TEST(Hotspot, SharesOfHotAndColdRecords) {
    random_stream random(5);
    const hotspot_ids ids(1000);
    EXPECT_EQ(ids.hot_items(), 200U);
    std::vector<double> shares(1000, .2 / 800);
    std::fill_n(shares.begin(), 200, .8 / 200);
    const auto seen = counts(1000, 1'000'000, [&] { return ids.next(random); });
    EXPECT_LT(surprise(seen, shares), 4);
}

TEST(Hotspot, Extremes) {
    random_stream random(6);
    for (const std::uint64_t items : {1U, 2U, 5U})
        for (const double data : {0., .5, 1.})
            for (const double operations : {0., .5, 1.}) {
                const hotspot_ids ids(items, data, operations);
                for (int i = 0; i < 100; ++i) ASSERT_LT(ids.next(random), items);
            }
    const hotspot_ids never_hot(10, .5, 0);
    for (int i = 0; i < 100; ++i) ASSERT_GE(never_hot.next(random), 5U);
}

TEST(Latest, TheNewestMostOften) {
    random_stream random(7);
    latest_ids ids(500);
    const zipfian_ids ages(1000);
    std::vector<double> shares;
    for (std::uint64_t id = 0; id < 1000; ++id)
        shares.push_back(ages.share_below(1000 - id) - ages.share_below(999 - id));
    ASSERT_LT(ids.next(random, 500), 500U);
    const auto seen = counts(1000, 1'000'000, [&] { return ids.next(random, 1000); });
    EXPECT_LT(surprise(seen, shares), 4);
}

TEST(Distributions, TheSameSeedGivesTheSameIds) {
    const scrambled_zipfian ids(1'000'000);
    random_stream first(8);
    random_stream second(8);
    random_stream other(9);
    int equal = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t id = ids.next(first);
        ASSERT_EQ(id, ids.next(second));
        equal += id == ids.next(other);
    }
    EXPECT_LT(equal, 100);
}

TEST(Distributions, AbsurdParametersAreRefused) {
    EXPECT_THROW(zipfian_ids(0), std::invalid_argument);
    EXPECT_THROW(zipfian_ids(10, 1), std::invalid_argument);
    EXPECT_THROW(zipfian_ids(10, 0), std::invalid_argument);
    EXPECT_THROW(zipfian_ids(10, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
    EXPECT_THROW(hotspot_ids(0), std::invalid_argument);
    EXPECT_THROW(hotspot_ids(10, 1.5, .5), std::invalid_argument);
    EXPECT_THROW(hotspot_ids(10, .5, -.1), std::invalid_argument);
}

TEST(Distributions, Names) {
    for (const char* name : {"uniform", "zipfian", "latest", "hotspot", "loop"})
        EXPECT_EQ(name_of(distribution_named(name).value()), name);
    EXPECT_FALSE(distribution_named("Zipfian"));
    EXPECT_FALSE(distribution_named(""));
}

} // namespace
