// SPDX-License-Identifier: MIT
//
// Page utilization and heat by address, on layouts whose answer is known.
#include "tools/ycsb/object_map.hpp"

#include <gtest/gtest.h>

namespace obase::tools {
namespace {

TEST(Utilization, OfAFullPageIsOne) {
    std::vector<placed_object> objects;
    for (std::uintptr_t i = 0; i < 4; ++i) objects.push_back({0x10000 + i * 1024, 1024, true});
    const utilization u = utilization_of(objects, 4096);
    EXPECT_EQ(u.pages, 1u);
    EXPECT_DOUBLE_EQ(u.share, 1);
}

TEST(Utilization, CountsAnObjectOnTwoPagesOnBoth) {
    const std::vector<placed_object> objects = {{0x10800, 0x1000, true}};
    const utilization u = utilization_of(objects, 4096);
    EXPECT_EQ(u.pages, 2u);
    EXPECT_DOUBLE_EQ(u.share, 0.5);
}

TEST(Utilization, CountsAPageOnceForItsManyObjects) {
    // The second object begins on the page that the first one ends on.
    const std::vector<placed_object> objects = {
        {0x10800, 0x1000, true}, {0x11800, 0x100, true}, {0x12000, 0x10, true}};
    EXPECT_EQ(utilization_of(objects, 4096).pages, 3u);
    EXPECT_EQ(utilization_of(objects, std::uint64_t{2} << 20).pages, 1u);
}

TEST(Utilization, UntouchedObjectsTakeNoPart) {
    const std::vector<placed_object> objects = {{0x10000, 4096, false}, {0x11000, 64, true}};
    const utilization u = utilization_of(objects, 4096);
    EXPECT_EQ(u.pages, 1u);
    EXPECT_EQ(u.bytes, 64u);
    EXPECT_EQ(utilization_of({}, 4096).share, 0);
}

TEST(SortAndJoin, OneThatIsTouchedAnywhereIsTouched) {
    std::vector<placed_object> objects = {
        {0x2000, 8, false}, {0x1000, 8, true}, {0x2000, 8, true}, {0x1000, 8, false}};
    sort_and_join(objects);
    ASSERT_EQ(objects.size(), 2u);
    EXPECT_TRUE(objects[0].touched && objects[1].touched);
    EXPECT_LT(objects[0].address, objects[1].address);
}

TEST(HeatMap, SharesAddUpToTheTouchedBytes) {
    std::vector<placed_object> objects;
    std::uint64_t touched = 0;
    for (std::uintptr_t i = 0; i < 10'000; ++i) {
        objects.push_back({0x100000 + i * 1000, 1000, i % 3 == 0});
        touched += i % 3 == 0 ? 1000 : 0;
    }
    const auto regions = heat_map_of(objects, 64, 1 << 20, [](std::uintptr_t) { return "heap"; });
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_LE(regions[0].cells.size(), 65u);
    double sum = 0;
    for (std::size_t i = 0; i < regions[0].cells.size(); ++i)
        sum += regions[0].cells[i] *
               static_cast<double>(std::min(regions[0].bytes_per_cell,
                                            regions[0].bytes - i * regions[0].bytes_per_cell));
    EXPECT_NEAR(sum, static_cast<double>(touched), 1);
}

TEST(HeatMap, GapsAndNamesBeginRegions) {
    const std::vector<placed_object> objects = {
        {0x100000, 64, true}, {0x110000, 64, false}, {0x10000000, 64, true}};
    const auto name = [](std::uintptr_t a) { return a == 0x110000 ? "cold" : "hot"; };
    const auto regions = heat_map_of(objects, 64, 1 << 20, name);
    ASSERT_EQ(regions.size(), 3u);
    EXPECT_EQ(regions[0].name, "hot");
    EXPECT_EQ(regions[1].name, "cold");
    EXPECT_EQ(regions[1].cells, std::vector<double>{0});
    EXPECT_GT(regions[2].cells.at(0), 0);
}

} // namespace
} // namespace obase::tools
