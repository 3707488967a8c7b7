// SPDX-License-Identifier: MIT
//
// The least memory for a share of faults, on cases whose answers are known by arithmetic.
#include "tools/curves/ideal.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace {

using namespace obase::tools;

TEST(ideal, is_the_smallest_set_beyond_which_only_the_faults_lie) {
    const auto alike = curve_of_hottest({{1000, 70}, {1000, 20}, {1000, 10}, {1000, 0}});
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, .1), 2000);
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, .3), 1000);
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, .2), 1500) << "half of the second";
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, 0), 3000) << "what is never accessed is not needed";
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, 1), 0);
    EXPECT_DOUBLE_EQ(ideal_object_bytes(alike, 1.5), 0);
    EXPECT_DOUBLE_EQ(ideal_object_bytes(curve_of_hottest({}), .1), 0);
}

TEST(ideal, prefers_what_has_most_accesses_per_byte) {
    // Per byte: .9, .1, .01. The large one has the most accesses.
    const auto curve = curve_of_hottest({{9000, 90}, {100, 10}, {10, 9}});
    EXPECT_DOUBLE_EQ(ideal_object_bytes(curve, 90.0 / 109), 110);
}

TEST(ideal, of_a_hot_set_is_the_hot_set) {
    // 20 % of 1000 records have .99 of the accesses.
    std::vector<cached_unit> records;
    for (int i = 0; i < 1000; ++i) records.push_back({64, i < 200 ? .99 / 200 : .01 / 800});
    const auto curve = curve_of_hottest(records);
    EXPECT_NEAR(ideal_object_bytes(curve, .01), 200 * 64, 1e-6);
    EXPECT_NEAR(ideal_object_bytes(curve, .005), 600 * 64, 1e-6);
}

TEST(ideal, counts_the_index_on_both_sides_or_on_none) {
    const memory_use use{.used = 300, .index = 100, .ideal_objects = 50};
    EXPECT_DOUBLE_EQ(*used_over_ideal(use), 2);
    EXPECT_DOUBLE_EQ(*objects_over_ideal(use), 4);
    EXPECT_EQ(used_over_ideal({300, 0, 0}), std::nullopt);
    EXPECT_EQ(objects_over_ideal({300, 100, 0}), std::nullopt);
    EXPECT_DOUBLE_EQ(*objects_over_ideal({80, 100, 50}), 0) << "part of the index left memory";
}

} // namespace
