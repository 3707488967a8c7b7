// SPDX-License-Identifier: MIT
//
// What `obase bench fragmentation --program churn` makes of hours, and which rows have targets.
#include "tools/fragmentation/churn.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace obase::tools {
namespace {

struct hour {
    double live, rss, tables, page_tables;
};

nlohmann::json run_of(const std::vector<hour>& hours) {
    nlohmann::json run{{"cpu_share", .05}, {"hours", nlohmann::json::array()}};
    for (const hour& h : hours)
        run["hours"].push_back({{"live_mib", h.live},
                                {"rss_mib", h.rss},
                                {"tables_mib", h.tables},
                                {"page_tables_mib", h.page_tables}});
    return run;
}

const figure& row(const std::vector<figure>& figures, const std::string& name) {
    for (const figure& f : figures)
        if (f.name == name) return f;
    throw std::runtime_error(name);
}

TEST(ChurnFigures, TablesAreThoseOfTheWorstHour) {
    for (const auto& [tables, expected] : {std::pair{10.0, "met"}, {11.5, "not met"}}) {
        const std::vector<figure> figures = churn_figures(
            {{"obase", {run_of({{100, 120, 1, 1}, {100, 150, tables, 1}, {200, 220, 12, 1}})}}},
            {});
        const figure& f =
            row(figures, "obase, tables and page tables / live, most of an hour's end");
        EXPECT_DOUBLE_EQ(f.value.median, (tables + 1) / 100);
        EXPECT_EQ(verdict(f), expected);
        EXPECT_EQ(row(figures, "obase, RSS / live, most of an hour's end").value.median, 1.5);
        EXPECT_EQ(row(figures, "obase, RSS / live, at the end").value.median, 1.1);
        EXPECT_EQ(verdict(row(figures, "obase, RSS / live, at the end")), "");
    }
}

TEST(ChurnFigures, ResidentMemoryIsComparedTurnByTurn) {
    fragmentation_settings s;
    s.repetitions = 3;
    const auto runs_of = [](std::initializer_list<double> all) {
        std::vector<nlohmann::json> runs;
        for (const double rss : all) runs.push_back(run_of({{100, rss, 0, 1}, {100, 100, 0, 1}}));
        return runs;
    };
    // (100 + 120) / (100 + 100), and so on.
    const std::vector<figure> figures = churn_figures({{"jemalloc", runs_of({100, 300, 100})},
                                                       {"obase-still", runs_of({120, 300, 110})},
                                                       {"obase", runs_of({100, 100, 50})}},
                                                      s);
    const figure& off = row(figures, "obase-still / jemalloc, RSS, mean of the hours");
    EXPECT_DOUBLE_EQ(off.value.median, 1.05);
    EXPECT_EQ(off.value.samples, 3u);
    EXPECT_EQ(off.target, 1.10);
    EXPECT_NE(off.command.find("--pairs 3 --program churn --allocator jemalloc,obase-still "),
              std::string::npos);
    const figure& on = row(figures, "obase / jemalloc, RSS, mean of the hours");
    EXPECT_DOUBLE_EQ(on.value.median, .75);
    EXPECT_EQ(verdict(on), "");
}

TEST(ChurnFigures, AtASmallScaleNothingIsJudged) {
    fragmentation_settings s;
    s.scale = 20;
    EXPECT_EQ(verdict(churn_figures({{"obase", {run_of({{100, 120, 50, 1}})}}}, s)[0]), "");
}

TEST(ChurnFigures, WhatHasNoRunHasNoRow) {
    const std::vector<figure> figures =
        churn_figures({{"glibc", {run_of({{100, 120, 0, 1}})}}}, {});
    ASSERT_EQ(figures.size(), 2u);
    EXPECT_EQ(figures[0].name, "glibc, RSS / live, most of an hour's end");
    EXPECT_TRUE(churn_figures({}, {}).empty());
}

} // namespace
} // namespace obase::tools
