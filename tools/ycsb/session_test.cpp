// SPDX-License-Identifier: MIT
//
// Whole sessions, small and with windows of a tenth of a second: every index under every protocol
// loses nothing, and what the collector reports is what its witness finds. In the ci tier each index
// once, with protocols and workloads dealt out among them; what an index does under each protocol
// has tests of its own (crestdb/index_test.cpp).
#include "tools/ycsb/session.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/swap_space.hpp"

#include "heap/sanitized.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace obase::tools {
namespace {

nlohmann::json result_of(const ycsb_settings& settings) {
    return in_child_process("session",
                            [&] { return session(settings, make_load(settings), nullptr).run(); });
}

ycsb_settings small() {
    ycsb_settings s;
    s.records = 4000;
    s.duration_s = 1.5;
    s.time_scale = 1200;
    s.value_size = 200;
    return s;
}

using combination = std::tuple<std::string, std::string, std::string>; // index, protocol, workload

std::vector<combination> combinations() {
    const std::vector<std::string> protocols = crestdb::store::protocols();
    const std::vector<std::string> indexes = crestdb::store::indexes();
    std::vector<combination> all, one_each;
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        std::vector<std::string> workloads = {"A", "D", "F"};
        if (crestdb::store::ordered(indexes[i])) workloads.emplace_back("E");
        for (const std::string& protocol : protocols)
            for (const std::string& workload : workloads)
                all.emplace_back(indexes[i], protocol, workload);
        // Every other one under arming, which is the default. Neighbours in the list are alike.
        one_each.emplace_back(indexes[i],
                              i % 2 == 0   ? "arming"
                              : i % 4 == 1 ? "atc"
                                           : "none",
                              workloads[(i + i / workloads.size()) % workloads.size()]);
    }
    return testing::tier() == testing::test_tier::ci ? one_each : all;
}

class Sessions : public ::testing::TestWithParam<combination> {};

TEST_P(Sessions, LoseNothingAndAreWitnessed) {
    ycsb_settings s = small();
    std::tie(s.index, s.protocol, s.workload) = GetParam();
    const nlohmann::json r = result_of(s);
    const nlohmann::json& witness = r["witness"];
    EXPECT_EQ(witness["lost_writes"], 0) << witness;
    EXPECT_EQ(witness["stale_reads"], 0) << witness;
    EXPECT_EQ(witness["corrupt_values"], 0) << witness;
    // Nothing to compare without a collector, and where scans touch what the traffic does not know.
    const bool compared = s.protocol != "none" && s.workload != "E";
    EXPECT_EQ(witness["utilization_agrees"], compared ? nlohmann::json(true) : nlohmann::json())
        << witness << r["page_utilization"];
    EXPECT_GT(r["throughput_ops"], 0);
    EXPECT_TRUE(r["fault_share"].is_number());
    EXPECT_EQ(r["used_over_ideal"].is_null(), s.workload == "E")
        << "the traffic knows no scan's records";
    // A busy machine may give the collector no turn in a session as short as this.
    if (r["windows"].empty()) {
        s.duration_s = 20;
        EXPECT_FALSE(result_of(s)["windows"].empty());
    }
}

INSTANTIATE_TEST_SUITE_P(All, Sessions, ::testing::ValuesIn(combinations()), [](const auto& which) {
    std::string name =
        std::get<0>(which.param) + "_" + std::get<1>(which.param) + "_" + std::get<2>(which.param);
    for (char& c : name) c = c == '-' ? '_' : c;
    return name;
});

TEST(Session, LiveRecordsEndUpTogether) {
    ycsb_settings s = small();
    s.records = 20'000;
    s.distribution = "loop";
    s.duration_s = 3;
    const nlohmann::json r = result_of(s);
    EXPECT_GT(r["page_utilization"]["end"], 0.9) << r["page_utilization"];
    EXPECT_LT(r["page_utilization"]["start"], 0.5);
    EXPECT_EQ(r["witness"]["utilization_agrees"], true) << r["witness"];
    EXPECT_EQ(r["witness"]["kernel_agrees"], true) << r["witness"] << r["page_utilization"];
    const nlohmann::json& used = r["used_bytes"];
    EXPECT_GE(used["peak"], used["start"]);
    EXPECT_GE(used["peak"], used["end"]);
    for (const nlohmann::json& window : r["windows"]) EXPECT_GE(used["peak"], window["used_bytes"]);
}

// A loop needs the records of its sequence, and no more: as many bytes as were touched in a window.
TEST(Session, IdealOfALoopIsItsRecords) {
    ycsb_settings s = small();
    s.protocol = "none";
    s.records = 20'000;
    s.distribution = "loop";
    const nlohmann::json r = result_of(s);
    const double live = r["live_bytes"], index = r["index_bytes"], base = r["base_bytes"];
    EXPECT_NEAR(r["ideal_object_bytes"], live, .01 * live);
    EXPECT_NEAR(r["ideal_bytes"], live + index, .01 * (live + index));
    const double used = r["used_bytes"]["end"].get<double>() - base;
    EXPECT_NEAR(r["used_over_ideal"], used / r["ideal_bytes"].get<double>(), 1e-9);
    EXPECT_NEAR(r["objects_over_ideal"], (used - index) / r["ideal_object_bytes"].get<double>(),
                1e-9);
    EXPECT_GT(r["used_over_ideal"], 1.5) << "plain pointers keep the other records too";
    // A sanitizer's shadow memory is charged, too.
    if (!heap::sanitized && !heap::thread_sanitized) {
        EXPECT_LT(r["used_over_ideal"], 1 / s.live_share + 1);
    }
    EXPECT_LT(r["fault_share"], .01);
}

// What is paged out half-way comes back by faults, which the clients see. So many records that most are
// asked for again only when faults are counted.
TEST(Session, FaultsOfWhatWasPagedOutAreSeen) {
    if (heap::sanitized || heap::thread_sanitized)
        GTEST_SKIP()
            << "a sanitizer's shadow memory is most of what is paged out, and clients are slow";
    ycsb_settings s = small();
    s.protocol = "none";
    s.records = 200'000;
    s.distribution = "uniform";
    s.reclaim = "pageout";
    const swap_space swap({swap_kind::any, std::uint64_t{256} << 20});
    if (!swap.why_not().empty()) GTEST_SKIP() << swap.why_not();
    const nlohmann::json r = result_of(s);
    ASSERT_GT(r["paged_out_bytes"], 0);
    EXPECT_GT(r["fault_share"], 0);
    EXPECT_GT(r["major_faults_per_op"], 0);
    // How long they take has tests of its own (fault_counts_test): on a busy machine requests without a fault
    // may take longer than one of compressed memory.
    EXPECT_TRUE(r["stall_share"].is_number());
}

} // namespace
} // namespace obase::tools
