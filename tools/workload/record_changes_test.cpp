// SPDX-License-Identifier: MIT
//
// What happens to records while a load runs: churn.hpp, mass_deletion.hpp, read_pass.hpp,
// value_sizes.hpp.
#include "tools/workload/churn.hpp"
#include "tools/workload/mass_deletion.hpp"
#include "tools/workload/read_pass.hpp"
#include "tools/workload/value_sizes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <set>
#include <stdexcept>

namespace {

using namespace workload;

// Operation by operation against a set that is changed as told: the ids at the positions are always
// those that are there.
TEST(Churn, PositionsHaveTheRecordsThatAreThere) {
    constexpr std::uint64_t records = 50;
    const churn replacing(records, .3);
    std::set<std::uint64_t> there;
    for (std::uint64_t id = 0; id < records; ++id) there.insert(id);
    std::uint64_t replaced = 0;
    for (std::uint64_t k = 0; k < 2000; ++k) {
        std::set<std::uint64_t> at_positions;
        for (std::uint64_t p = 0; p < records; ++p) {
            at_positions.insert(replacing.id_at(p, k));
            ASSERT_EQ(replacing.position_of(replacing.id_at(p, k)), p);
        }
        ASSERT_EQ(at_positions, there) << k;
        if (!replacing.replaces(k)) continue;
        ++replaced;
        ASSERT_EQ(replacing.oldest(k), *there.begin());
        ASSERT_EQ(there.erase(replacing.oldest(k)), 1U);
        ASSERT_TRUE(there.insert(replacing.newest(k)).second);
    }
    EXPECT_NEAR(static_cast<double>(replaced), 600, 1);
}

TEST(Churn, NoneAndAll) {
    const churn none(10, 0), all(10, 1);
    for (std::uint64_t k = 0; k < 100; ++k) {
        EXPECT_FALSE(none.replaces(k));
        EXPECT_TRUE(all.replaces(k));
        EXPECT_EQ(none.id_at(3, k), 3U);
    }
    EXPECT_THROW(churn(0, .1), std::invalid_argument);
    EXPECT_THROW(churn(1, 1.5), std::invalid_argument);
}

TEST(MassDeletion, ErasesItsShareOnceEachAndKnowsWhatIsGone) {
    constexpr std::uint64_t records = 1000, begin = 100;
    const mass_deletion deletion(
        {.records = records, .share = .7, .begin = begin, .over = 2 * records});
    EXPECT_EQ(deletion.victims(), 700U);
    std::set<std::uint64_t> erased;
    for (std::uint64_t k = 0; k < 3000; ++k) {
        for (std::uint64_t r = 0; k % 50 == 0 && r < records; ++r) {
            ASSERT_EQ(deletion.gone(r, k), erased.contains(r)) << k;
        }
        if (!deletion.erases(k)) continue;
        ASSERT_GE(k, begin);
        ASSERT_LT(k, begin + 2 * records);
        ASSERT_TRUE(erased.insert(deletion.victim(k)).second) << "twice";
        if (k == begin + records) {
            EXPECT_NEAR(static_cast<double>(erased.size()), 350, 2);
        }
    }
    EXPECT_EQ(erased.size(), 700U);
    // Not the first or the last ones.
    EXPECT_NEAR(static_cast<double>(std::distance(erased.begin(), erased.lower_bound(500))), 350,
                60);
}

TEST(MassDeletion, Refuses) {
    EXPECT_THROW(mass_deletion({.records = 10, .share = 1}), std::invalid_argument);
    EXPECT_THROW(mass_deletion({.records = 100, .share = .5, .over = 10}), std::invalid_argument);
    const mass_deletion nothing({.records = 10});
    EXPECT_FALSE(nothing.erases(0));
    EXPECT_FALSE(nothing.gone(3, 100));
}

TEST(ReadPass, ReadsEachRecordOnce) {
    for (const std::uint64_t one_in : {1U, 3U}) {
        const read_pass pass({.records = 100, .begin = 50, .one_in = one_in});
        std::uint64_t next = 0;
        for (std::uint64_t k = 0; k < 1000; ++k)
            if (const auto record = pass.record_of(k)) {
                ASSERT_GE(k, 50U);
                ASSERT_EQ(*record, next++);
                ASSERT_EQ((k - 50) % one_in, 0U);
            }
        EXPECT_EQ(next, 100U);
    }
}

TEST(ReadPass, ComesAgain) {
    const read_pass pass({.records = 10, .begin = 5, .period = 30});
    int reads = 0;
    for (std::uint64_t k = 0; k < 5 + 3 * 30; ++k) reads += pass.record_of(k).has_value();
    EXPECT_EQ(reads, 30);
    EXPECT_EQ(pass.record_of(35), 0U);
    EXPECT_THROW(read_pass({.records = 10, .period = 9}), std::invalid_argument);
    EXPECT_THROW(read_pass({.records = 10, .one_in = 0}), std::invalid_argument);
    EXPECT_THROW(read_pass({.records = 0}), std::invalid_argument);
}

TEST(ValueSizes, ChangeWithTime) {
    const value_sizes sizes(size_distribution::parsed("100-200"),
                            size_distribution::parsed("20000-30000"), 100'000);
    EXPECT_EQ(sizes.largest(), 30'000U);
    const auto changed = [&](std::uint64_t begin) {
        int large = 0;
        for (std::uint64_t k = begin; k < begin + 10'000; ++k) {
            const std::uint32_t size = sizes.at(k % 77, k);
            if (size < 20'000) {
                EXPECT_EQ(size, sizes.first(k % 77)); // as before
            }
            large += size >= 20'000;
        }
        return large;
    };
    EXPECT_NEAR(changed(0), 500, 110); // .05 on average
    EXPECT_NEAR(changed(45'000), 5000, 250);
    EXPECT_EQ(changed(100'000), 10'000);
    EXPECT_EQ(value_sizes(size_distribution::fixed(5)).at(1, 1'000'000), 5U);
    EXPECT_THROW(value_sizes(size_distribution::fixed(5), size_distribution::fixed(5), 0),
                 std::invalid_argument);
}

} // namespace
