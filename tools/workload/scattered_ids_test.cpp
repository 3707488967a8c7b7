// SPDX-License-Identifier: MIT
#include "tools/workload/scattered_ids.hpp"

#include "tools/workload/power_law.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using workload::power_law_ids;
using workload::random_stream;
using workload::scattered_ids;

// Seeds are fixed. What YCSB draws would give the first rank half of its share here.
TEST(ScatteredIds, EachRecordHasTheShareOfItsRank) {
    constexpr std::uint64_t records = 500;
    constexpr int draws = 1'000'000;
    const scattered_ids zipf(power_law_ids(records, .99), records, 3);
    double sum = 0;
    for (std::uint64_t r = 1; r <= records; ++r) sum += std::pow(static_cast<double>(r), -.99);
    std::vector<int> seen(records);
    random_stream random(11);
    for (int i = 0; i < draws; ++i) ++seen.at(zipf.next(random));
    for (std::uint64_t r = 0; r < records; ++r) {
        const double expected = draws * std::pow(static_cast<double>(r + 1), -.99) / sum;
        ASSERT_NEAR(seen[zipf.record_of_rank(r)], expected, 5 * std::sqrt(expected) + 5) << r;
    }
}

TEST(ScatteredIds, PopularRecordsLieAnywhere) {
    constexpr std::uint64_t records = 10'000;
    const scattered_ids zipf(power_law_ids(records, .99), records);
    std::uint64_t below = 0;
    for (std::uint64_t r = 0; r < 1000; ++r) below += zipf.record_of_rank(r) < records / 2;
    EXPECT_NEAR(static_cast<double>(below), 500, 80);
    EXPECT_NE(scattered_ids(power_law_ids(records, .99), records, 2).record_of_rank(0),
              zipf.record_of_rank(0));
}

} // namespace
