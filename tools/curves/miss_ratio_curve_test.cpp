// SPDX-License-Identifier: MIT
//
// Curves and inflation, on cases whose answers are known by arithmetic.
#include "tools/curves/miss_ratio_curve.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace obase::tools;

TEST(miss_ratio_curve, takes_the_most_accessed_per_byte_first) {
    // Per byte: 9, 5, 1.
    const auto curve = curve_of_hottest({{10, 50}, {100, 100}, {2, 18}, {7, 0}});
    EXPECT_DOUBLE_EQ(*curve.bytes_for(18.0 / 168), 2);
    EXPECT_DOUBLE_EQ(*curve.bytes_for(68.0 / 168), 12);
    EXPECT_DOUBLE_EQ(*curve.bytes_for(1), 112) << "what is never accessed is not needed";
    EXPECT_EQ(curve.points().size(), 3u);
    EXPECT_DOUBLE_EQ(*curve.bytes_for(43.0 / 168), 7) << "straight between two units";
    EXPECT_DOUBLE_EQ(*curve.bytes_for(0), 0);
    EXPECT_DOUBLE_EQ(curve.hit_ratio_with(12), 68.0 / 168);
    EXPECT_DOUBLE_EQ(curve.hit_ratio_with(7), 43.0 / 168);
    EXPECT_DOUBLE_EQ(curve.hit_ratio_with(1000), 1);
    EXPECT_DOUBLE_EQ(curve.hit_ratio_with(0), 0);
}

TEST(miss_ratio_curve, of_nothing_serves_nothing) {
    const auto curve = curve_of_hottest({});
    EXPECT_EQ(curve.bytes_for(.5), std::nullopt);
    EXPECT_EQ(curve.hit_ratio_with(100), 0);
    EXPECT_EQ(inflation(curve, curve, .5), std::nullopt);
}

// Each page has one hot object and one cold one: half of the objects serve .9, and .9 of all pages.
TEST(inflation, of_hot_and_cold_objects_in_turns) {
    std::vector<cached_unit> objects, pages;
    for (int i = 0; i < 1000; ++i) {
        objects.push_back({64, 9});
        objects.push_back({64, 1});
        pages.push_back({128, 10});
    }
    const auto of_objects = curve_of_hottest(objects), of_pages = curve_of_hottest(pages);
    EXPECT_NEAR(*inflation(of_objects, of_pages, .9), 1.8, 1e-9);
    EXPECT_NEAR(*inflation(of_objects, of_pages, 1), 1, 1e-9);
    EXPECT_NEAR(*inflation(of_objects, of_objects, .9), 1, 1e-9);
}

} // namespace
