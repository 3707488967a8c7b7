// SPDX-License-Identifier: MIT
//
// What the planner takes where the paper, or the arithmetic, says what is right; profiles as JSON.
#include "wiscsort/error.hpp"
#include "wiscsort/model/planner.hpp"
#include "wiscsort/units.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace wiscsort::model {

namespace {

situation emulated(std::uint64_t records, double record, std::uint64_t memory) {
    situation s;
    s.records = records;
    s.bytes = static_cast<std::uint64_t>(static_cast<double>(records) * record);
    s.memory = memory;
    s.write_buffer = memory / 4;
    s.threads = 20;
    s.page_cache = false;
    return s;
}

plan_choice chosen(const situation& s, const char* device) {
    return choose(s, find_profile(device), plan_choice::automatic, io_choice::automatic).plan;
}

} // namespace

// Records of some pages on a device that loses nothing by reading anywhere: with many reads in flight moving each
// once pays, with one it does not.
TEST(Planner, ManyReadsInFlightMakeRandomReadsPay) {
    situation s;
    s.records = 100000;
    s.bytes = s.records * 32 * KiB;
    s.memory = 64 * MiB;
    s.write_buffer = 16 * MiB;
    s.threads = 2;
    s.cache = 256 * MiB;
    profile disk = assumed_profile();
    disk.random_share = 1;
    disk.read.latency_seconds = 200e-6;
    const auto plan = [&](io_choice io) { return choose(s, disk, plan_choice::automatic, io); };
    EXPECT_EQ(plan(io_choice::automatic).plan, plan_choice::ems);
    EXPECT_FALSE(plan(io_choice::automatic).batched);
    s.requests_together = 64;
    EXPECT_EQ(plan(io_choice::automatic).plan, plan_choice::onepass);
    EXPECT_TRUE(plan(io_choice::automatic).batched);
    EXPECT_EQ(plan(io_choice::automatic).io, io_choice::direct);
    EXPECT_FALSE(plan(io_choice::mmap).batched);
    // What the cache has costs nothing there.
    s.cache = 8 * GiB;
    s.cached_share = 1;
    EXPECT_FALSE(plan(io_choice::automatic).batched);
}

TEST(Planner, FitsTheDevice) {
    const situation roomy = emulated(1000000, 100, 64 * MiB);
    const situation tight = emulated(4000000, 100, 32 * MiB);
    for (const char* device : {"pmem", "brd", "bard"}) {
        EXPECT_EQ(chosen(roomy, device), plan_choice::onepass) << device;
        EXPECT_EQ(chosen(tight, device), plan_choice::mergepass) << device;
    }
    for (const char* device : {"bd", "ad"})
        EXPECT_EQ(chosen(tight, device), plan_choice::ems) << device;
}

// An input that the page cache cannot hold: gathering reads a page for each record.
TEST(Planner, AvoidsOnePassWhereTheCacheIsTooSmall) {
    situation s;
    s.records = 2000000;
    s.bytes = 200000000;
    s.memory = 50 * MiB;
    s.write_buffer = 12 * MiB;
    s.threads = 2;
    s.cache = 50 * MiB;
    s.cached_share = 0;
    EXPECT_EQ(choose(s, assumed_profile(), plan_choice::automatic, io_choice::automatic).plan,
              plan_choice::ems);
    // Sixteen times the input, page by page: not the 1.8 s of reading it in a row.
    EXPECT_GT(predict(plan_choice::onepass, s, assumed_profile()).seconds, 15);
    s.cache = GiB;
    s.cached_share = 1;
    EXPECT_EQ(choose(s, assumed_profile(), plan_choice::automatic, io_choice::automatic).plan,
              plan_choice::onepass);
}

TEST(Planner, SaysWhatIsNeededWhereMemoryIsTooSmall) {
    const situation s = emulated(1000000, 100, MiB);
    try {
        choose(s, find_profile("pmem"), plan_choice::onepass, io_choice::automatic);
        FAIL();
    } catch (const usage_error& problem) {
        EXPECT_STREQ(problem.what(),
                     "--memory 1.00 MiB: onepass needs at least 15.51 MiB of memory");
    }
}

TEST(Profile, SurvivesJson) {
    for (const profile& p : shipped_profiles()) {
        const profile again = from_json(to_json(p), "test");
        EXPECT_EQ(to_json(again), to_json(p));
        EXPECT_FALSE(p.source.empty());
    }
}

TEST(Profile, RefusesWhatItDoesNotKnow) {
    const auto message = [](auto change) -> std::string {
        nlohmann::json json = to_json(shipped_profiles()[0]);
        change(json);
        try {
            from_json(json, "p.json");
        } catch (const usage_error& problem) {
            return problem.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message([](auto& j) { j["color"] = 1; }), "p.json: the field 'color' is unknown");
    EXPECT_EQ(message([](auto& j) { j["read"]["speed"] = 1; }),
              "p.json: read: the field 'speed' is unknown");
    EXPECT_EQ(message([](auto& j) { j.erase("write"); }), "p.json: write is missing");
    EXPECT_EQ(message([](auto& j) { j["granule"] = "x"; }), "p.json: granule: expected a number");
    EXPECT_EQ(message([](auto& j) { j["random_share"] = 2; }),
              "p.json: random_share: 2 is outside of 1e-06 to 1");
    EXPECT_EQ(message([](auto& j) { j = 3; }), "p.json: expected an object");
}

TEST(Profile, BestThreads) {
    const profile pmem = find_profile("pmem");
    EXPECT_EQ(profile::best_pool(pmem.read, 64).threads, 20U);
    EXPECT_EQ(profile::best_pool(pmem.write, 64).threads, 5U);
    EXPECT_EQ(profile::best_pool(pmem.write, 3).threads, 3U);
    EXPECT_NEAR(profile::best_pool(pmem.write, 3).rate, 3.2e9 * 3 / 5, 1);
}

// Threads that compute half of the time: twice as many keep the device at its peak.
TEST(Profile, BestThreadsAreMoreWhereTheyDoMoreThanTransfer) {
    direction_profile d;
    d.bytes_per_second = 1000;
    d.threads_at_peak = 4;
    d.decline = .1;
    d.floor = .5;
    const double own = 4 / 1000.0;
    EXPECT_EQ(profile::best_pool(d, 64, own).threads, 8U);
    EXPECT_NEAR(profile::best_pool(d, 64, own).rate, 1000, .1);
    // Four have two transfers under way.
    EXPECT_NEAR(profile::best_pool(d, 4, own).rate, 500, .1);
}

} // namespace wiscsort::model
