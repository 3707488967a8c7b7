// SPDX-License-Identifier: MIT
//
// Whole runs of `obase bench kv`, small, with windows of a tenth of a second.
#include "tools/kv/kv.hpp"

#include "tools/workload/recorded_operations.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace obase::tools {
namespace {

using nlohmann::json;

kv_settings small(const std::string& workload) {
    kv_settings s;
    s.workload = workload;
    s.rate = 20'000;
    s.seconds = 1;
    s.store.records = 2000;
    s.store.value_size = 200;
    s.store.time_scale = 1200;
    return s;
}

json result_of(const kv_settings& settings) {
    const bench_result result = bench_kv(settings);
    EXPECT_EQ(result.failure, "");
    return result.json;
}

TEST(KvRun, SendsAtItsRateAndLosesNothing) {
    for (const char* protocol : {"none", "arming", "atc"}) {
        kv_settings s = small("hot:writes=.1,shift-every=.3s,churn=.01");
        s.store.protocol = protocol;
        const json run = result_of(s);
        EXPECT_NEAR(run["throughput_ops"].get<double>(), 20'000, 2000) << protocol;
        EXPECT_GT(run["hit_ratio"].get<double>(), .99);
        EXPECT_FALSE(run["windows"].empty());
        for (const char* name : {"operations", "page_faults", "used_bytes", "behind"})
            EXPECT_TRUE(run["windows"][0].contains(name)) << name;
        EXPECT_GE(run["used_bytes"]["peak"], run["used_bytes"]["end"]);
        EXPECT_TRUE(run["lateness"].contains("worst_us"));
    }
}

TEST(KvRun, DeletionsAreNotHits) {
    kv_settings s = small("uniform:delete=.7,pass-at=.5s");
    s.rate = 10'000;
    s.store.threads = 1;
    const json run = result_of(s);
    EXPECT_EQ(run["hit_ratio"], 1.0); // asks for what is there only
}

TEST(KvRun, EachPolicy) {
    for (const char* policy : {"papers", "graded"}) {
        kv_settings s = small("zipf");
        s.policy = policy;
        EXPECT_EQ(result_of(s)["policy"], policy);
    }
}

class KvRecording : public ::testing::Test {
  protected:
    std::string path(const char* name) const {
        return ::testing::TempDir() + name + "." + std::to_string(::getpid());
    }
    void TearDown() override {
        for (const char* name : {"first", "second"}) std::filesystem::remove(path(name));
    }
};

// Recorded, played and recorded again: the same operations, in the same order for each client.
TEST_F(KvRecording, IsPlayedExactly) {
    kv_settings s = small("hot:writes=.2,churn=.05,shift-every=.2s,sizes=50-300");
    s.record = path("first");
    const json first = result_of(s);
    kv_settings again;
    again.store.time_scale = 1200;
    again.replay = s.record;
    again.record = path("second");
    const json second = result_of(again);
    EXPECT_EQ(second["operations"], first["operations"]);
    EXPECT_EQ(second["records"], 2000);
    EXPECT_EQ(second["workload"], s.workload);
    const auto recorded = workload::read_recorded_operations(s.record);
    const auto played = workload::read_recorded_operations(again.record);
    EXPECT_EQ(recorded.clients.size(), 2u);
    EXPECT_EQ(recorded.clients, played.clients);
    EXPECT_GT(recorded.clients[0].size(), 5000u);
}

TEST_F(KvRecording, WhatIsWrongIsNamedWithItsPlace) {
    const auto complaint = [&] {
        kv_settings s;
        s.replay = path("first");
        try {
            bench_kv(s);
        } catch (const std::runtime_error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto write = [&](const std::string& header, std::uint64_t record) {
        workload::operation_recorder file(path("first"), header, 1);
        file.add(0, {record, 0, 0, workload::operation::read});
        file.finish();
    };
    EXPECT_NE(complaint().find("cannot be read"), std::string::npos) << complaint();
    write("no json", 1);
    EXPECT_NE(complaint().find("line 1: expected JSON"), std::string::npos) << complaint();
    const std::string rest = R"(,"key_size":30,"value_size":100,"seed":1,"rate":0})";
    write(R"({"workload":"hot","records":10,"clients":2)" + rest, 1);
    EXPECT_NE(complaint().find("expected 1 clients; found 2"), std::string::npos) << complaint();
    write(R"({"workload":"magic","records":10,"clients":1)" + rest, 1);
    EXPECT_NE(complaint().find("line 1: --workload magic"), std::string::npos) << complaint();
    // Numbers are taken as the command line's would be, and no others.
    const auto header = [](const char* workload, const char* records, const char* key_size,
                           const char* value_size, const char* seed, const char* rate) {
        return std::string(R"({"workload":)") + workload + R"(,"records":)" + records +
               R"(,"clients":1,"key_size":)" + key_size + R"(,"value_size":)" + value_size +
               R"(,"seed":)" + seed + R"(,"rate":)" + rate + "}";
    };
    const char* const hot = R"("hot")";
    for (const auto& [text, expected] : std::initializer_list<std::pair<std::string, const char*>>{
             {header(hot, "10", "0", "100", "1", "0"), "--key-size 0: 8 to 65536"},
             {header(hot, "10", "7", "100", "1", "0"), "--key-size 7: 8 to 65536"},
             {header(hot, "10", "65537", "100", "1", "0"), "--key-size 65537: 8 to 65536"},
             {header(hot, "10", "30", "-5", "1", "0"), "expected a whole number from 0 to"},
             {header(hot, "10", "30", "100", "1.5", "0"), "as seed; found 1.5"},
             {header(hot, "1e300", "30", "100", "1", "0"), "as records; found 1e+300"},
             {header(hot, "0", "30", "100", "1", "0"), "--records 0"},
             {header(hot, "4294967295", "30", "1000000", "1", "0"), "of memory"},
             {header(hot, "10", "30", "100", "1", "-1"), "--rate -1"},
             {header(R"("hot\u0000")", "10", "30", "100", "1", "0"), R"(found "hot\u0000")"}}) {
        write(text, 1);
        EXPECT_NE(complaint().find(path("first") + ", line 1: "), std::string::npos) << text;
        EXPECT_NE(complaint().find(expected), std::string::npos) << complaint();
    }
    write(R"({"workload":"hot","records":10,"clients":1)" + rest, 10);
    EXPECT_NE(complaint().find("operation 1 of client 0: expected a record below 10"),
              std::string::npos)
        << complaint();
    std::filesystem::remove(path("first"));
    std::filesystem::create_directory(path("first"));
    EXPECT_NE(complaint().find("found a directory"), std::string::npos) << complaint();
}

TEST_F(KvRecording, IsNotWrittenOverWhileItIsPlayed) {
    kv_settings s;
    s.replay = path("first");
    s.record = ::testing::TempDir() + "/./first." + std::to_string(::getpid());
    EXPECT_NE(why_not(s).find("another file than --replay's"), std::string::npos);
    s.record = path("second");
    EXPECT_EQ(why_not(s), "");
}

TEST(KvSettings, WhatMakesNoSense) {
    kv_settings s = small("mixgraph"); // scans, and the index is a hash table
    EXPECT_THROW(bench_kv(s), std::invalid_argument);
    s = small("mixgraph:seek=0,sine-a=30000");
    EXPECT_THROW(bench_kv(s), std::invalid_argument);
    s = small("hot");
    s.rate = -1;
    EXPECT_THROW(bench_kv(s), std::invalid_argument);
    s = small("hot");
    s.seconds = 0;
    EXPECT_THROW(bench_kv(s), std::invalid_argument);
    s = small("hot");
    s.store.protocol = "none";
    s.policy = "graded";
    EXPECT_THROW(bench_kv(s), std::invalid_argument);
}

} // namespace
} // namespace obase::tools
