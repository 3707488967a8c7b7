// SPDX-License-Identifier: MIT
//
// Whole sessions, small and with windows of a tenth of a second: every index under every protocol
// loses nothing, and what the collector reports is what its witness finds.
#include "tools/ycsb/session.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/ycsb/load.hpp"

#include <gtest/gtest.h>

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

class Sessions
    : public ::testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(Sessions, LoseNothingAndAreWitnessed) {
    ycsb_settings s = small();
    std::tie(s.index, s.protocol, s.workload) = GetParam();
    if (s.workload == "E" && !crestdb::store::ordered(s.index)) GTEST_SKIP() << "has no order";
    const nlohmann::json r = result_of(s);
    const nlohmann::json& witness = r["witness"];
    EXPECT_EQ(witness["lost_writes"], 0) << witness;
    EXPECT_EQ(witness["stale_reads"], 0) << witness;
    EXPECT_EQ(witness["corrupt_values"], 0) << witness;
    EXPECT_TRUE(witness["utilization_agrees"].get<bool>()) << witness << r["page_utilization"];
    EXPECT_GT(r["throughput_ops"], 0);
    EXPECT_FALSE(r["windows"].empty());
}

INSTANTIATE_TEST_SUITE_P(All, Sessions,
                         ::testing::Combine(::testing::ValuesIn(crestdb::store::indexes()),
                                            ::testing::ValuesIn(crestdb::store::protocols()),
                                            ::testing::Values("A", "D", "E", "F")),
                         [](const auto& which) {
                             std::string name = std::get<0>(which.param) + "_" +
                                                std::get<1>(which.param) + "_" +
                                                std::get<2>(which.param);
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
    EXPECT_TRUE(r["witness"]["utilization_agrees"].get<bool>()) << r["witness"];
}

} // namespace
} // namespace obase::tools
