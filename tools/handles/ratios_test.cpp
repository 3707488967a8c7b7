// SPDX-License-Identifier: MIT
//
// The rows of `obase bench handles` are what their definitions say: ratios within a pair, never across pairs.
#include "tools/handles/ratios.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace obase::tools {
namespace {

// Pair i is i+1 times as slow as the first, whatever runs: only ratios within a pair are the factors.
measured_program program(const std::string& name, const std::string& group,
                         const std::array<double, ways>& factors, std::size_t pairs = 15) {
    measured_program p;
    p.name = name;
    p.group = group;
    p.times.ns.resize(ways);
    for (std::size_t w = 0; w < ways; ++w)
        for (std::size_t pair = 0; pair < pairs; ++pair)
            p.times.ns[w].push_back(factors[w] * static_cast<double>(pair + 1));
    p.instructions_ratio = 1.5;
    p.text_ratio = 1.6;
    p.compile_time_ratios = {1.9, 1.7, 1.8};
    p.results = {{{3, 3, 0}, {4, 4, 70}, {5, 5, 900}}};
    return p;
}

const nlohmann::json* row(const nlohmann::json& rows, const std::string& name,
                          const std::string& state) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const nlohmann::json& r) {
        return r.at("name") == name && r.at("state") == state;
    });
    return found == rows.end() ? nullptr : &*found;
}

const figure* named(const bench_result& result, const std::string& name) {
    for (const figure& f : result.figures)
        if (f.name == name) return &f;
    return nullptr;
}

//                                       glibc same home watched policy away
constexpr std::array<double, ways> costs{4, 2, 3, 3.3, 5, 8};

TEST(HandlesRatios, AreToTheSameAllocatorAndBesideGlibc) {
    const bench_result result = handles_result({program("sqlite", "sqlite", costs)});
    const nlohmann::json& rows = result.json.at("programs");
    ASSERT_EQ(rows.size(), 3u);
    for (const auto& [state, to_same, to_glibc, tests, moved] : {std::tuple{"home", 1.5, .75, 3, 0},
                                                                 {"policy", 2.5, 1.25, 4, 70},
                                                                 {"away", 4.0, 2.0, 5, 900}}) {
        const nlohmann::json* r = row(rows, "sqlite", state);
        ASSERT_NE(r, nullptr) << state;
        EXPECT_DOUBLE_EQ(r->at("time_ratio"), to_same) << state;
        EXPECT_EQ(r->at("ci95"), nlohmann::json({to_same, to_same})) << state;
        EXPECT_EQ(r->at("tests"), tests);
        EXPECT_EQ(r->at("tests_passed"), tests);
        EXPECT_EQ(r->at("moved"), moved);
        EXPECT_DOUBLE_EQ(r->at("text_ratio"), 1.6);
        EXPECT_DOUBLE_EQ(r->at("compile_time_ratio"), 1.8);
        const nlohmann::json* beside = row(result.json.at("beside_glibc"), "sqlite", state);
        ASSERT_NE(beside, nullptr) << state;
        EXPECT_DOUBLE_EQ(beside->at("time_ratio"), to_glibc) << state;
        EXPECT_EQ(beside->at("ci95"), nlohmann::json({to_glibc, to_glibc})) << state;
    }
    // They are of the code; what moves changes none of it, and is not counted.
    EXPECT_DOUBLE_EQ(row(rows, "sqlite", "home")->at("instructions_ratio"), 1.5);
    EXPECT_TRUE(row(rows, "sqlite", "policy")->at("instructions_ratio").is_null());
    EXPECT_TRUE(row(rows, "sqlite", "away")->at("instructions_ratio").is_null());
}

TEST(HandlesRatios, HaveTheMembersThatTheIssueNamesAndNoOthers) {
    const bench_result result = handles_result({program("bst", "own", costs)});
    std::vector<std::string> members;
    for (const auto& [name, value] : result.json.at("programs").at(0).items())
        members.push_back(name);
    std::vector<std::string> wanted{
        "name",         "state", "time_ratio",         "ci95",
        "text_ratio",   "tests", "instructions_ratio", "compile_time_ratio",
        "tests_passed", "moved"};
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(members, wanted);
    EXPECT_TRUE(result.json.at("geomean").contains("home"));
    EXPECT_TRUE(result.json.contains("tracking_ratio"));
}

TEST(HandlesRatios, GeometricMeansAreOfAllPrograms) {
    const bench_result result = handles_result(
        {program("list", "own", {1, 1, 1, 1.21, 2, 4}), program("bst", "own", {1, 1, 4, 4, 8, 9})});
    EXPECT_NEAR(result.json.at("geomean").at("home").get<double>(), 2, 1e-12);
    EXPECT_NEAR(result.json.at("geomean").at("policy").get<double>(), 4, 1e-12);
    EXPECT_NEAR(result.json.at("geomean").at("away").get<double>(), 6, 1e-12);
    // Of watching to being at home, not to clang.
    EXPECT_NEAR(result.json.at("tracking_ratio").get<double>(), 1.1, 1e-12);
}

TEST(HandlesRatios, WithoutProgramsThereAreNone) {
    const bench_result result = handles_result({program("list", "own", costs, 0)});
    EXPECT_TRUE(result.json.at("programs").empty());
    EXPECT_TRUE(result.json.at("geomean").at("home").is_null());
    EXPECT_TRUE(result.json.at("tracking_ratio").is_null());
    EXPECT_TRUE(result.figures.empty());
}

TEST(HandlesRatios, TargetsAreJudgedByTheirIntervals) {
    const auto verdict_of = [](const std::string& name, const std::string& group,
                               const std::array<double, ways>& factors,
                               const std::string& figure_name) {
        const bench_result result = handles_result({program(name, group, factors)});
        const figure* f = named(result, figure_name);
        return f == nullptr ? std::string("no such figure") : verdict(*f);
    };
    const std::string same = ": time / clang -O3, same allocator";
    // {glibc, same, home, watched, policy, away}; each just on its side of the target.
    EXPECT_EQ(verdict_of("list", "own", {1, 1, 1.09, 1, 1, 1}, "list, home" + same), "met");
    EXPECT_EQ(verdict_of("list", "own", {9, 1, 1.11, 1, 1, 1}, "list, home" + same), "not met");
    EXPECT_EQ(verdict_of("list-1m", "own", {9, 1, 1.11, 1, 1, 1}, "list-1m, home" + same),
              "not met");
    EXPECT_EQ(verdict_of("bst", "own", {1, 1, 1.24, 1, 1, 1}, "bst, home" + same), "met");
    EXPECT_EQ(verdict_of("bst", "own", {1, 1, 1.26, 1, 1, 1}, "bst, home" + same), "not met");
    for (const auto& [name, group] : {std::pair{"sqlite", "sqlite"}, {"lua-calls", "lua"}}) {
        const std::string what = group;
        EXPECT_EQ(verdict_of(name, group, {1, 1, 1.19, 1, 9, 9}, what + ", home" + same), "met");
        EXPECT_EQ(verdict_of(name, group, {1, 1, 1.21, 1, 1, 1}, what + ", home" + same),
                  "not met");
        EXPECT_EQ(verdict_of(name, group, {1, 1, 9, 1, 1.24, 9}, what + ", policy" + same), "met");
        EXPECT_EQ(verdict_of(name, group, {1, 1, 1, 1, 1.26, 1}, what + ", policy" + same),
                  "not met");
    }
    EXPECT_EQ(verdict_of("sqlite", "sqlite", {1, 1, 1, 1, 1, 1.99}, "sqlite, away" + same), "met");
    EXPECT_EQ(verdict_of("sqlite", "sqlite", {1, 1, 1, 1, 1, 2.01}, "sqlite, away" + same),
              "not met");
    EXPECT_EQ(verdict_of("lua-sort", "lua", {1, 1, 1, 1, 1, 2.49}, "lua, away" + same), "met");
    EXPECT_EQ(verdict_of("lua-sort", "lua", {1, 1, 1, 1, 1, 2.51}, "lua, away" + same), "not met");
    // malloc and free: to glibc's, whatever the same allocator takes.
    const std::string glibc = "pairs, policy: time / clang -O3 with glibc's malloc";
    EXPECT_EQ(verdict_of("pairs", "own", {1, .5, .9, 1, .99, 1}, glibc), "met");
    EXPECT_EQ(verdict_of("pairs", "own", {1, 2, .9, 1, 1.01, 1}, glibc), "not met");
}

TEST(HandlesRatios, TextAndCompileTimeHaveTargetsForSqlite) {
    measured_program p = program("sqlite", "sqlite", costs);
    p.text_ratio = 1.71;
    p.compile_time_ratios.assign(7, 2.1);
    const bench_result large = handles_result({p});
    EXPECT_EQ(verdict(*named(large, "sqlite: text / clang -O3")), "not met");
    EXPECT_EQ(verdict(*named(large, "sqlite: compile time / clang -O3")), "not met");
    p.text_ratio = 1.69;
    p.compile_time_ratios.assign(7, 1.9);
    const bench_result small = handles_result({p});
    EXPECT_EQ(verdict(*named(small, "sqlite: text / clang -O3")), "met");
    EXPECT_EQ(verdict(*named(small, "sqlite: compile time / clang -O3")), "met");
}

// One benchmark that is slow in one pair and another that is slow in the next do not make both pairs slow.
TEST(HandlesRatios, AGroupHasTheMeanOfItsProgramsInEachPair) {
    measured_program a = program("lua-calls", "lua", {1, 1, 1, 1, 1, 1});
    measured_program b = program("lua-sort", "lua", {1, 1, 1, 1, 1, 1});
    for (std::size_t pair = 0; pair < 15; ++pair) {
        a.times.ns[2][pair] *= pair % 2 == 0 ? 4 : 1;
        b.times.ns[2][pair] *= pair % 2 == 0 ? 1 : 4;
    }
    const bench_result result = handles_result({a, b});
    const figure* f = named(result, "lua, home: time / clang -O3, same allocator");
    ASSERT_NE(f, nullptr);
    EXPECT_DOUBLE_EQ(f->value.low, 2);
    EXPECT_DOUBLE_EQ(f->value.high, 2);
    EXPECT_EQ(f->value.samples, 15u);
    // Where one has fewer pairs, those that both have count.
    for (std::vector<double>& values : b.times.ns) values.resize(9);
    EXPECT_EQ(named(handles_result({a, b}), f->name)->value.samples, 9u);
}

TEST(HandlesRatios, AWrongAnswerFails) {
    measured_program p = program("sqlite", "sqlite", costs);
    EXPECT_EQ(handles_result({p}).failure, "");
    p.results[1].tests_passed = 2;
    const std::string failure = handles_result({p}).failure;
    EXPECT_NE(failure.find("sqlite, policy: 2 of 4"), std::string::npos) << failure;
    // Before anything was timed, too.
    for (std::vector<double>& values : p.times.ns) values.clear();
    EXPECT_NE(handles_result({p}).failure, "");
}

TEST(HandlesRatios, NoFigureIsThereTwice) {
    const bench_result result =
        handles_result({program("list", "own", costs), program("sqlite", "sqlite", costs),
                        program("pairs", "own", costs)});
    for (const figure& f : result.figures)
        EXPECT_EQ(std::count_if(result.figures.begin(), result.figures.end(),
                                [&](const figure& g) { return g.name == f.name; }),
                  1)
            << f.name;
    EXPECT_EQ(named(result, "list, home: time / clang -O3, same allocator")->kind, bound::at_most);
}

} // namespace
} // namespace obase::tools
