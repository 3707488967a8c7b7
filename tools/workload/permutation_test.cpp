// SPDX-License-Identifier: MIT
#include "tools/workload/permutation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace workload;

TEST(Permutation, TakesEachNumberOnceAndKnowsTheWayBack) {
    for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U, 100U, 1023U, 1024U, 1025U, 100'000U}) {
        const permutation p(n, n);
        std::vector<bool> seen(n);
        for (std::uint64_t i = 0; i < n; ++i) {
            const std::uint64_t value = p.at(i);
            ASSERT_LT(value, n);
            ASSERT_FALSE(seen[value]) << n << ": " << value << " twice";
            seen[value] = true;
            ASSERT_EQ(p.index_of(value), i);
        }
    }
}

// The first fifth of the ranks: each hundredth of the ids gets about a fifth of its ids.
TEST(Permutation, Scatters) {
    constexpr std::uint64_t n = 100'000;
    const permutation p(n, 7);
    std::vector<int> in_cell(100);
    for (std::uint64_t i = 0; i < n / 5; ++i) ++in_cell[p.at(i) / (n / 100)];
    for (const int count : in_cell) {
        EXPECT_GT(count, 130); // 200, deviation 13
        EXPECT_LT(count, 270);
    }
}

TEST(Permutation, SeedsDiffer) {
    const permutation a(1000, 1), b(1000, 2);
    int same = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) same += a.at(i) == b.at(i);
    EXPECT_LT(same, 20);
}

TEST(Permutation, RefusesNothingAndTooMuch) {
    EXPECT_THROW(permutation(0), std::invalid_argument);
    EXPECT_THROW(permutation((std::uint64_t{1} << 62) + 1), std::invalid_argument);
    const permutation large(std::uint64_t{1} << 62);
    EXPECT_EQ(large.index_of(large.at(12345)), 12345U);
}

} // namespace
