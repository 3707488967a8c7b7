// SPDX-License-Identifier: MIT
//
// Which rows of `obase bench fragmentation` have targets: Redis at full size, with handles that move.
#include "tools/fragmentation/fragmentation.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace obase::tools {
namespace {

nlohmann::json run_of(const std::string& allocator, double after_3, double after_10) {
    return {{"allocator", allocator},
            {"rss_mib", {{"0", 240.0}, {"3", after_3}, {"10", after_10}}},
            {"longest_stall_us", 900.0},
            {"cpu_share", .02}};
}

fragmentation_settings redis() {
    fragmentation_settings s;
    s.program = "redis";
    s.seconds = {0, 3, 10};
    return s;
}

TEST(FragmentationFigures, RedisWithHandlesIsJudgedAfterThreeAndTenSeconds) {
    for (const auto& [after_3, after_10, first, second] :
         {std::tuple{129.0, 126.0, "met", "not met"}, {131.0, 124.0, "not met", "met"}}) {
        const std::vector<figure> figures =
            fragmentation_figures({run_of("obase", after_3, after_10)}, redis());
        ASSERT_EQ(figures.size(), 5u);
        EXPECT_EQ(verdict(figures[0]), "");
        EXPECT_EQ(figures[1].value.median, after_3);
        EXPECT_EQ(verdict(figures[1]), first);
        EXPECT_EQ(figures[2].value.median, after_10);
        EXPECT_EQ(verdict(figures[2]), second);
        EXPECT_EQ(figures[3].unit, "us");
        EXPECT_EQ(figures[3].value.median, 900);
        EXPECT_EQ(figures[4].value.median, .02);
    }
}

TEST(FragmentationFigures, RunsInTurnsHaveASpread) {
    fragmentation_settings s = redis();
    s.repetitions = 3;
    const std::vector<figure> figures = fragmentation_figures(
        {run_of("obase", 131, 100), run_of("obase", 127, 110), run_of("obase", 129, 90)}, s);
    EXPECT_EQ(figures[1].value.median, 129);
    EXPECT_EQ(figures[2].value.median, 100);
    EXPECT_EQ(figures[1].value.samples, 3u);
    EXPECT_NE(figures[1].command.find("--pairs 3 "), std::string::npos);
}

TEST(FragmentationFigures, NothingElseIsJudged) {
    const auto judged = [](const std::string& allocator, const fragmentation_settings& s) {
        int count = 0;
        for (const figure& f : fragmentation_figures({run_of(allocator, 100, 100)}, s))
            count += verdict(f).empty() ? 0 : 1;
        return count;
    };
    EXPECT_EQ(judged("obase", redis()), 2);
    EXPECT_EQ(judged("obase-still", redis()), 0);
    EXPECT_EQ(judged("jemalloc", redis()), 0);
    fragmentation_settings smaller = redis();
    smaller.scale = 20;
    EXPECT_EQ(judged("obase", smaller), 0);
    fragmentation_settings synthetic = redis();
    synthetic.program = "synthetic";
    EXPECT_EQ(judged("obase", synthetic), 0);
}

TEST(FragmentationFigures, AllocatorsAreChosenByTheEnvironment) {
    using words = std::vector<std::string>;
    fragmentation_settings s = redis();
    EXPECT_EQ(environment_of("glibc", s), words{});
    EXPECT_EQ(environment_of("jemalloc", s), words{"LD_PRELOAD=libjemalloc.so.2"});
    EXPECT_EQ(environment_of("obase", s), words{});
    EXPECT_EQ(environment_of("obase-still", s), words{"OBASE_HANDLES_START=1000"});
    s.share = .5;
    EXPECT_EQ(environment_of("obase", s), words{"OBASE_HANDLES_SHARE=0.5"});
    EXPECT_EQ(environment_of("jemalloc", s).size(), 1u);
    EXPECT_NE(fragmentation_figures({run_of("obase", 100, 100)}, s)[0].command.find(" --share 0.5"),
              std::string::npos);
}

TEST(FragmentationFigures, ActivedefragIsRedis) {
    fragmentation_settings s;
    s.allocators = {"activedefrag"};
    EXPECT_THROW(bench_fragmentation(s), std::invalid_argument);
}

} // namespace
} // namespace obase::tools
