// SPDX-License-Identifier: MIT
//
// A verdict is as strong as its interval, and no stronger.
#include "tools/bench/figure.hpp"

#include <gtest/gtest.h>

namespace obase::tools {
namespace {

figure with(double low, double median, double high, bound kind, double target) {
    figure f;
    f.name = "x";
    f.value = {median, low, high, 15, true};
    f.kind = kind;
    f.target = target;
    return f;
}

TEST(Figure, IntervalOnOneSideDecides) {
    EXPECT_EQ(verdict(with(1.00, 1.02, 1.04, bound::at_most, 1.05)), "met");
    EXPECT_EQ(verdict(with(1.06, 1.07, 1.08, bound::at_most, 1.05)), "not met");
    EXPECT_EQ(verdict(with(0.95, 0.97, 0.99, bound::at_least, 0.9)), "met");
    EXPECT_EQ(verdict(with(0.70, 0.80, 0.89, bound::at_least, 0.9)), "not met");
}

TEST(Figure, StraddlingIsUndecidedEvenIfTheMedianIsGood) {
    EXPECT_EQ(verdict(with(1.00, 1.02, 1.06, bound::at_most, 1.05)), "undecided");
    EXPECT_EQ(verdict(with(0.85, 0.95, 0.99, bound::at_least, 0.9)), "undecided");
}

TEST(Figure, WithoutAnIntervalNothingIsDecided) {
    figure f = with(1.00, 1.00, 1.00, bound::at_most, 1.05);
    f.value.trusted = false;
    EXPECT_EQ(verdict(f), "undecided");
    f.kind = bound::none;
    EXPECT_EQ(verdict(f), "");
}

TEST(Figure, SurvivesItsJson) {
    const figure before = with(1, 2, 3, bound::at_least, 0.9);
    const figure after = figure_from_json(nlohmann::json::parse(to_json(before).dump()));
    EXPECT_EQ(to_json(after), to_json(before));
    EXPECT_EQ(to_table({before}), to_table({after}));
}

TEST(figure, a_table_tells_times_readably_and_judges_no_smoke_run) {
    figure f = with(338'200, 338'200, 338'200, bound::at_most, 400'000);
    f.unit = "us";
    EXPECT_NE(to_table({f}).find(" 338 ms"), std::string::npos) << to_table({f});
    EXPECT_NE(to_table({f}).find("<= 400 ms"), std::string::npos) << to_table({f});
    EXPECT_NE(to_table({f}).find("  met"), std::string::npos) << to_table({f});
    EXPECT_EQ(to_table({f}, false).find("  met"), std::string::npos);
    EXPECT_NE(to_table({f}, false).find("not judged"), std::string::npos);
    f.unit = "pages"; // no time
    EXPECT_NE(to_table({f}).find("338.2k pages"), std::string::npos) << to_table({f});
}

} // namespace
} // namespace obase::tools
