// SPDX-License-Identifier: MIT
//
// The loads of `obase bench kv` without a store: what their requests are.
#include "tools/kv/load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace obase::tools {
namespace {

constexpr std::uint64_t records = 2000;

kv_settings settings_for(const std::string& workload, unsigned clients = 1) {
    kv_settings s;
    s.workload = workload;
    s.rate = 1000;
    s.store.records = records;
    s.store.threads = clients;
    s.store.value_size = 100;
    return s;
}

std::vector<request> requests(request_source& source, std::size_t count) {
    std::vector<request> all;
    while (all.size() < count) {
        all.push_back(source.next());
        if (all.back().what == operation::insert) source.inserted(all.back().record);
    }
    return all;
}
std::vector<request> requests(const std::string& workload, std::size_t count) {
    const kv_load load = make_kv_load(settings_for(workload));
    return requests(*load.session.source(0), count);
}

std::size_t count(const std::vector<request>& all, operation what) {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const request& r) { return r.what == what; }));
}

// The store that the requests leave behind, by record; what is asked for must be there.
TEST(KvLoad, ChurnReplacesWithoutLosingAnything) {
    const kv_load load = make_kv_load(settings_for("uniform:churn=.1"));
    std::set<std::uint64_t> there;
    for (std::uint64_t r = 0; r < records; ++r) there.insert(r);
    const auto source = load.session.source(0);
    for (const request& r : requests(*source, 50'000)) {
        ASSERT_LT(r.record, records + load.session.room_for_inserts);
        if (r.what == operation::insert)
            ASSERT_TRUE(there.insert(r.record).second);
        else if (r.what == operation::erase)
            ASSERT_EQ(there.erase(r.record), 1u);
        else
            ASSERT_TRUE(there.contains(r.record));
    }
    EXPECT_LE(records - there.size(), 1u);
    EXPECT_GT(*there.begin(), 2 * records); // all were replaced, twice
    EXPECT_EQ(load.session.records_now(), *there.rbegin() + 1);
}

TEST(KvLoad, DeletesSeventyPercentAndGoesOnWithTheRest) {
    const auto all = requests("zipf:delete=.7,delete-at=1s,delete-over=10s", 30'000);
    std::set<std::uint64_t> erased;
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].what == operation::erase) {
            ASSERT_GE(k, 1000u);
            ASSERT_LT(k, 11'000u);
            ASSERT_TRUE(erased.insert(all[k].record).second);
        } else {
            ASSERT_FALSE(erased.contains(all[k].record)) << k;
        }
    }
    EXPECT_EQ(erased.size(), records * 7 / 10);
}

TEST(KvLoad, APassReadsEveryKeyOnceAtItsTime) {
    const auto all = requests("hot:accesses=1,data=.1,pass-at=5s", 20'000);
    std::set<std::uint64_t> before, read;
    for (std::size_t k = 0; k < 5000; ++k) before.insert(all[k].record);
    EXPECT_LE(before.size(), records / 10);
    for (std::size_t k = 5000; k < 5000 + records; ++k) {
        ASSERT_EQ(all[k].what, operation::read);
        ASSERT_EQ(all[k].record, k - 5000);
    }
    for (std::size_t k = 5000 + records; k < all.size(); ++k)
        ASSERT_TRUE(before.contains(all[k].record));
}

TEST(KvLoad, TheHotSetShifts) {
    const auto all = requests("hot:accesses=1,data=.1,shift-every=10s,shift=.5", 30'000);
    std::vector<std::set<std::uint64_t>> sets(3);
    for (std::size_t k = 0; k < all.size(); ++k) sets[k / 10'000].insert(all[k].record);
    for (const auto& one : sets) EXPECT_EQ(one.size(), records / 10);
    std::size_t common = 0;
    for (const std::uint64_t r : sets[0]) common += sets[1].contains(r);
    EXPECT_EQ(common, records / 20);
}

TEST(KvLoad, TheHotSetGrows) {
    const auto all = requests("hot:accesses=1,data=.1,data-to=.5,resize-over=10s", 40'000);
    std::set<std::uint64_t> first, last;
    for (std::size_t k = 0; k < 1000; ++k) first.insert(all[k].record);
    for (std::size_t k = 10'000; k < 40'000; ++k) last.insert(all[k].record);
    EXPECT_LT(first.size(), records * 15 / 100);
    EXPECT_EQ(last.size(), records / 2);
}

TEST(KvLoad, SharesOfTheOperations) {
    const auto all = requests("uniform:writes=.3,rmw=.2", 50'000);
    EXPECT_NEAR(static_cast<double>(count(all, operation::update)), 15'000, 520);
    EXPECT_NEAR(static_cast<double>(count(all, operation::read_modify_write)), 10'000, 450);
    EXPECT_NEAR(static_cast<double>(count(all, operation::read)), 25'000, 560);
}

TEST(KvLoad, SizesAreThoseOfTheirDistributionAndChange) {
    const std::string workload =
        "uniform:writes=1,sizes=100-200,sizes-to=20000-30000,sizes-over=10s";
    const kv_load load = make_kv_load(settings_for(workload));
    std::vector<char> buffer(load.session.records->largest_value());
    EXPECT_EQ(buffer.size(), 30'000u);
    double loaded = 0;
    for (std::uint64_t r = 0; r < records; ++r)
        loaded += static_cast<double>(load.session.records->value(r, 1, 0, buffer).size());
    EXPECT_NEAR(loaded / records, 150, 4);
    const auto all = requests(workload, 20'000);
    for (std::size_t k = 10'000; k < all.size(); ++k) ASSERT_GE(all[k].value_size, 20'000u);
    std::size_t large = 0;
    for (std::size_t k = 0; k < 10'000; ++k) large += all[k].value_size >= 20'000;
    EXPECT_NEAR(static_cast<double>(large), 5000, 250);
}

// Clients take turns: together they ask for what one would, at the same operation.
TEST(KvLoad, ClientsShareTheOperations) {
    const std::string workload = "uniform:churn=.2,delete=.3,delete-over=5s,pass-at=6s";
    std::map<std::uint64_t, int> erased_by_one, erased_by_three;
    for (const request& r : requests(workload, 12'000))
        if (r.what == operation::erase) ++erased_by_one[r.record];
    const kv_load load = make_kv_load(settings_for(workload, 3));
    for (unsigned c = 0; c < 3; ++c)
        for (const request& r : requests(*load.session.source(c), 4'000))
            if (r.what == operation::erase) ++erased_by_three[r.record];
    for (const auto& [record, times] : erased_by_three) ASSERT_EQ(times, 1) << record;
    EXPECT_NEAR(static_cast<double>(erased_by_three.size()),
                static_cast<double>(erased_by_one.size()), 20);
}

TEST(KvLoad, TheSameSeedGivesTheSameRequests) {
    for (const char* workload : {"hot", "zipf:theta=1.2,churn=.01", "mixgraph", "A"}) {
        const auto once = requests(workload, 2000), again = requests(workload, 2000);
        for (std::size_t i = 0; i < once.size(); ++i) {
            ASSERT_EQ(once[i].record, again[i].record) << workload;
            ASSERT_EQ(once[i].what, again[i].what);
            ASSERT_EQ(once[i].value_size, again[i].value_size);
        }
    }
}

TEST(KvLoad, KeysDiffer) {
    kv_settings s = settings_for("uniform:churn=.1");
    s.store.key_size = 8;
    const kv_load load = make_kv_load(s);
    std::set<std::string> keys;
    std::vector<char> buffer(load.session.records->largest_key());
    for (std::uint64_t r = 0; r < 2 * records; ++r)
        EXPECT_TRUE(keys.insert(std::string(load.session.records->key(r, buffer))).second);
}

TEST(KvLoad, AConfigurationOfCachebench) {
    const std::string folder = ::testing::TempDir();
    std::ofstream(folder + "config.json") << R"({"test_config": {"keySizeRange": [16, 33],
        "keySizeRangeProbability": [1], "popDistFile": "pop.json", "valSizeDistFile": "sizes.json",
        "getRatio": 0.5, "setRatio": 0.3, "delRatio": 0.1, "loneGetRatio": 0.1}})";
    std::ofstream(folder + "pop.json")
        << R"({"popularityBuckets": [1, 99], "popularityWeights": [60, 40]})";
    std::ofstream(folder + "sizes.json")
        << R"({"valSizeRange": [40, 20000], "valSizeRangeProbability": [3, 1]})";
    const kv_load load = make_kv_load(settings_for("cachelib:config=" + folder));
    const auto all = requests(*load.session.source(0), 50'000);
    std::map<std::uint64_t, int> seen;
    std::size_t lone = 0;
    for (const request& r : all) {
        if (r.record < records)
            ++seen[r.record];
        else
            ++lone;
    }
    EXPECT_NEAR(static_cast<double>(lone), 5000, 340);
    EXPECT_NEAR(static_cast<double>(count(all, operation::update)), 15'000, 520);
    EXPECT_NEAR(static_cast<double>(count(all, operation::erase)), 5'000, 340);
    // A bucket of one key in a hundred is one of twenty records.
    std::vector<int> most;
    for (const auto& [record, times] : seen) most.push_back(times);
    std::sort(most.rbegin(), most.rend());
    double top = 0;
    for (std::size_t i = 0; i < records / 100; ++i) top += most[i];
    EXPECT_NEAR(top / static_cast<double>(all.size() - lone), .6, .02);
    std::vector<char> key(load.session.records->largest_key());
    EXPECT_EQ(key.size(), 32u);
    for (std::uint64_t r = 0; r < records; ++r) {
        EXPECT_GE(load.session.records->key(r, key).size(), 16u);
    }
}

TEST(KvLoad, SyntheticClustersSaySo) {
    const std::string file = ::testing::TempDir() + "stat.md";
    std::ofstream(file) << "| cluster | key size | value size | operation | Zipf alpha |\n"
                           "| cluster3 | 20 | 50 | get:0.90 set:0.10 | 1.2 |\n";
    const kv_load load = make_kv_load(settings_for("twitter:statistics=" + file + ",cluster=3"));
    EXPECT_EQ(load.label, "synthetic");
    EXPECT_EQ(load.session.records->largest_key(), 20u);
    EXPECT_EQ(load.session.records->largest_value(), 50u);
    EXPECT_THROW(make_kv_load(settings_for("twitter:statistics=" + file + ",cluster=4")),
                 std::runtime_error);
}

TEST(KvLoad, MixgraphScansUnlessToldNot) {
    EXPECT_TRUE(make_kv_load(settings_for("mixgraph")).session.scans);
    const kv_load load = make_kv_load(settings_for("mixgraph:seek=0,sine-a=500,sine-b=.1"));
    EXPECT_FALSE(load.session.scans);
    EXPECT_EQ(load.sine.amplitude, 500);
    EXPECT_EQ(load.sine.frequency, .1);
}

TEST(KvLoad, WhatMakesNoSenseIsRefusedByName) {
    for (const char* workload : {"magic",
                                 "",
                                 "G",
                                 "hot:date=1",
                                 "hot:accesses=2",
                                 "hot:data-to=.5",
                                 "zipf:theta=x",
                                 "uniform:writes=.7,rmw=.7",
                                 "uniform:sizes=abc",
                                 "uniform:sizes-to=5",
                                 "trace",
                                 "trace:file=x,format=magic",
                                 "cachelib",
                                 "twitter:cluster=1",
                                 "mixgraph:ranges=100000",
                                 "uniform:delete=.5,delete-over=10",
                                 "uniform:pass-at=0,pass-every=5",
                                 "A:writes=.5",
                                 "hot:shift-every=abc",
                                 "A:distribution=magic"}) {
        try {
            make_kv_load(settings_for(workload));
            ADD_FAILURE() << workload << " was taken";
        } catch (const std::invalid_argument&) {
        }
    }
    EXPECT_THROW(make_kv_load(settings_for("cachelib:config=/nonexistent")), std::runtime_error);
    EXPECT_THROW(make_kv_load(settings_for("trace:file=/nonexistent")), std::runtime_error);
}

} // namespace
} // namespace obase::tools
