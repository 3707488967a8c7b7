// SPDX-License-Identifier: MIT
//
// A report that differs from its witness is found out, and what was not compared is not "true".
#include "tools/ycsb/agreement.hpp"

#include <gtest/gtest.h>

namespace obase::tools {
namespace {

layout_answers right() {
    layout_answers l;
    l.seen = l.by_address = l.by_kernel = 0.5;
    l.seen_bytes = l.touched_bytes = 1000;
    l.exact = true;
    return l;
}

TEST(Agreement, IsTwoPercentOfTheLarger) {
    EXPECT_TRUE(agree(100, 98));
    EXPECT_TRUE(agree(98, 100));
    EXPECT_FALSE(agree(100, 97.9));
    EXPECT_FALSE(agree(97.9, 100));
    EXPECT_TRUE(agree(3, 1, 2)); // the slack is for small numbers
    EXPECT_FALSE(agree(3.1, 1, 2));
    EXPECT_TRUE(agree(1000, 985, 2));
}

TEST(Agreement, OfTheCollectorAndTheAddresses) {
    layout_answers l = right();
    EXPECT_EQ(utilization_agrees(l), true);
    l.seen = 0.52;
    EXPECT_EQ(utilization_agrees(l), false);
    l.seen = 0.48;
    EXPECT_EQ(utilization_agrees(l), false);
    l.seen.reset();
    EXPECT_EQ(utilization_agrees(l), std::nullopt) << "no page was looked at";
    l = right();
    l.by_address.reset();
    EXPECT_EQ(utilization_agrees(l), std::nullopt);
}

TEST(Agreement, WhereTheTrafficDoesNotKnowAllTheCollectorSawAtLeastItsPart) {
    layout_answers l = right();
    l.exact = false;
    l.seen = 0.9; // the index touched more
    l.seen_bytes = 1500;
    EXPECT_EQ(utilization_agrees(l), true);
    l.seen_bytes = 979;
    EXPECT_EQ(utilization_agrees(l), false);
}

TEST(Agreement, OfTheKernelAndTheAddresses) {
    layout_answers l = right();
    EXPECT_EQ(kernel_agrees(l), true);
    l.by_kernel = 0.45;
    EXPECT_EQ(kernel_agrees(l), false);
    l.written = true;
    EXPECT_EQ(kernel_agrees(l), std::nullopt);
    l.written = false;
    l.exact = false;
    EXPECT_EQ(kernel_agrees(l), std::nullopt);
    l.exact = true;
    l.by_kernel.reset();
    EXPECT_EQ(kernel_agrees(l), std::nullopt);
}

TEST(Agreement, OfStartAndEnd) {
    EXPECT_EQ(both(true, true), true);
    EXPECT_EQ(both(true, false), false);
    EXPECT_EQ(both(false, true), false);
    EXPECT_EQ(both(std::nullopt, false), false);
    EXPECT_EQ(both(false, std::nullopt), false);
    EXPECT_EQ(both(true, std::nullopt), true);
    EXPECT_EQ(both(std::nullopt, std::nullopt), std::nullopt);
}

nlohmann::json right_run() {
    return {{"index", "pugh-hash-table"},
            {"workload", "C"},
            {"protocol", "arming"},
            {"page_utilization", {{"start", 0.3}, {"end", 0.9}, {"kernel", 0.9}}},
            {"used_bytes", {{"start", 2 << 20}, {"end", 1 << 20}}},
            {"witness",
             {{"page_utilization", 0.9},
              {"page_utilization_start", 0.3},
              {"used_bytes", 1 << 20},
              {"used_bytes_start", 2 << 20},
              {"utilization_agrees", true},
              {"kernel_agrees", nullptr},
              {"used_agrees", true},
              {"lost_writes", 0},
              {"stale_reads", 0},
              {"corrupt_values", 0}}}};
}

TEST(Disagreement, IsReportedWithBothAnswers) {
    EXPECT_EQ(disagreement(right_run()), "");
    nlohmann::json run = right_run();
    run["witness"]["utilization_agrees"] = nullptr;
    EXPECT_EQ(disagreement(run), "");
    run["witness"]["utilization_agrees"] = false;
    run["witness"]["page_utilization"] = 0.7;
    EXPECT_EQ(disagreement(run),
              "pugh-hash-table C arming: the witness disagrees: page utilization 0.3 / 0.3 "
              "(start) and 0.9 / 0.7 (end);");
    run = right_run();
    run["witness"]["kernel_agrees"] = false;
    EXPECT_NE(disagreement(run).find("by the kernel 0.9 / 0.9"), std::string::npos);
    run = right_run();
    run["witness"]["used_agrees"] = false;
    EXPECT_NE(disagreement(run).find("used memory 2 / 2 MiB (start) and 1 / 1 MiB (end)"),
              std::string::npos);
    for (const char* what : {"lost_writes", "stale_reads", "corrupt_values"}) {
        run = right_run();
        run["witness"][what] = 3;
        EXPECT_NE(disagreement(run).find(std::string("3 ") + what), std::string::npos);
    }
}

} // namespace
} // namespace obase::tools
