// SPDX-License-Identifier: MIT
#include "tools/workload/ycsb_mix.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace workload;

constexpr distribution all_distributions[] = {distribution::uniform, distribution::zipfian,
                                              distribution::latest, distribution::hotspot,
                                              distribution::loop};

TEST(YcsbMix, TheCoreWorkloads) {
    EXPECT_EQ(ycsb('A')->operations, (operation_mix{.read = .5, .update = .5}));
    EXPECT_EQ(ycsb('b')->operations, (operation_mix{.read = .95, .update = .05}));
    EXPECT_EQ(ycsb('C')->operations, (operation_mix{.read = 1}));
    EXPECT_EQ(ycsb('d')->operations, (operation_mix{.read = .95, .insert = .05}));
    EXPECT_EQ(ycsb('E')->operations, (operation_mix{.insert = .05, .scan = .95}));
    EXPECT_EQ(ycsb('F')->operations, (operation_mix{.read = .5, .read_modify_write = .5}));
    for (const char letter : {'A', 'B', 'C', 'E', 'F'})
        EXPECT_EQ(ycsb(letter)->ids, distribution::zipfian);
    EXPECT_EQ(ycsb('D')->ids, distribution::latest);
    EXPECT_FALSE(ycsb('G'));
    EXPECT_FALSE(ycsb('\0'));
}

TEST(YcsbMix, OperationsComeInTheirShares) {
    const operation_mix mixes[] = {ycsb('A')->operations,
                                   ycsb('B')->operations,
                                   ycsb('C')->operations,
                                   ycsb('D')->operations,
                                   ycsb('E')->operations,
                                   ycsb('F')->operations,
                                   {.update = .125, .scan = .25, .erase = .625},
                                   {.erase = 1}};
    constexpr int draws = 200'000;
    for (const operation_mix& mix : mixes) {
        request_plan plan({.records = 1000, .operations = mix, .ids = distribution::uniform});
        request_stream stream = plan.stream(0);
        std::array<int, operation_count> seen{};
        for (int i = 0; i < draws; ++i) {
            const request r = stream.next();
            ++seen.at(static_cast<std::size_t>(r.what));
            if (r.what == operation::insert) stream.completed(r.id);
        }
        const double shares[] = {mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write,
                                 mix.erase};
        for (std::size_t i = 0; i < operation_count; ++i) {
            EXPECT_NEAR(seen[i] / double{draws}, shares[i], .005);
            EXPECT_EQ(seen[i] == 0, shares[i] == 0);
            EXPECT_EQ(seen[i] == draws, shares[i] == 1);
        }
    }
}

TEST(YcsbMix, ScansAreUniformInLength) {
    request_plan plan({.records = 1000, .operations = ycsb('E')->operations});
    request_stream stream = plan.stream(0);
    std::array<int, 101> seen{};
    int scans = 0;
    for (int i = 0; i < 200'000; ++i) {
        const request r = stream.next();
        if (r.what != operation::scan) {
            stream.completed(r.id);
            continue;
        }
        ++seen.at(r.scan_length);
        ++scans;
    }
    EXPECT_EQ(seen[0], 0);
    for (std::size_t length = 1; length <= 100; ++length)
        EXPECT_NEAR(seen[length], scans / 100., 250) << length; // 5.8 standard deviations
}

TEST(YcsbMix, LoadedRecordsOnlyWithoutInserts) {
    for (const distribution ids : all_distributions) {
        for (const std::uint64_t records : {1U, 2U, 1000U}) {
            request_plan plan(
                {.records = records, .operations = ycsb('A')->operations, .ids = ids});
            request_stream stream = plan.stream(0);
            for (int i = 0; i < 10'000; ++i) ASSERT_LT(stream.next().id, records) << name_of(ids);
            EXPECT_EQ(plan.records(), records);
        }
    }
}

TEST(YcsbMix, InsertsTakeNewIdsInOrder) {
    for (const distribution ids : all_distributions) {
        request_plan plan({.records = 100,
                           .operations = {.read = .5, .insert = .5},
                           .ids = ids,
                           .expected_inserts = 20'000});
        request_stream stream = plan.stream(0);
        std::uint64_t newest = 100;
        std::uint64_t highest = 0;
        for (int i = 0; i < 20'000; ++i) {
            const request r = stream.next();
            if (r.what == operation::insert) {
                ASSERT_EQ(r.id, newest++);
                stream.completed(r.id);
            } else {
                ASSERT_LT(r.id, newest) << name_of(ids);
                highest = std::max(highest, r.id);
            }
        }
        EXPECT_EQ(plan.records(), newest);
        const bool asks_for_new = ids == distribution::latest || ids == distribution::zipfian;
        EXPECT_EQ(highest >= 100, asks_for_new) << name_of(ids);
    }
}

// Between taking an id and reporting it no request asks for it, whatever comes after it.
TEST(YcsbMix, AnInsertionThatHasOnlyBegunIsNotAskedFor) {
    for (const distribution ids : {distribution::latest, distribution::zipfian}) {
        request_plan plan({.records = 100,
                           .operations = {.read = .5, .insert = .5},
                           .ids = ids,
                           .threads = 2,
                           .expected_inserts = 10'000});
        request_stream slow = plan.stream(0);
        request begun = slow.next();
        while (begun.what != operation::insert) begun = slow.next();
        EXPECT_EQ(begun.id, 100U);
        request_stream fast = plan.stream(1);
        for (int i = 0; i < 10'000; ++i) {
            const request r = fast.next();
            if (r.what == operation::insert)
                fast.completed(r.id);
            else
                ASSERT_LT(r.id, begun.id);
        }
        slow.completed(begun.id);
        EXPECT_GT(plan.records(), 4000U);
    }
}

TEST(YcsbMix, ThreadsWalkTheLoopTogether) {
    request_plan plan({.records = 10'000, .ids = distribution::loop, .threads = 4});
    ASSERT_NE(plan.loop(), nullptr);
    std::set<std::uint64_t> asked;
    for (unsigned thread = 0; thread < 4; ++thread) {
        request_stream stream = plan.stream(thread);
        for (std::size_t i = 0; i < plan.loop()->period() / 4 + 1; ++i)
            asked.insert(stream.next().id);
    }
    EXPECT_EQ(asked.size(), 3100U);
    EXPECT_EQ(std::vector<std::uint32_t>(asked.begin(), asked.end()), plan.loop()->live());
    EXPECT_EQ(request_plan({.records = 10}).loop(), nullptr);
}

TEST(YcsbMix, TheSameSeedGivesTheSameRequests) {
    const auto requests = [](std::uint64_t seed, unsigned thread) {
        request_plan plan({.records = 1'000'000,
                           .operations = ycsb('A')->operations,
                           .threads = 2,
                           .seed = seed});
        request_stream stream = plan.stream(thread);
        std::vector<std::uint64_t> result;
        for (int i = 0; i < 100; ++i) {
            const request r = stream.next();
            result.push_back(r.id * 10 + static_cast<std::uint64_t>(r.what));
        }
        return result;
    };
    EXPECT_EQ(requests(1, 0), requests(1, 0));
    EXPECT_NE(requests(1, 0), requests(2, 0));
    EXPECT_NE(requests(1, 0), requests(1, 1));
}

TEST(YcsbMix, InsertingThreadsTogether) {
    request_plan plan({.records = 1000,
                       .operations = {.read = .5, .insert = .5},
                       .ids = distribution::latest,
                       .threads = 3});
    std::vector<std::thread> running;
    for (unsigned t = 0; t < 3; ++t)
        running.emplace_back([&plan, t] {
            request_stream stream = plan.stream(t);
            for (int i = 0; i < 50'000; ++i) {
                const request r = stream.next();
                if (r.what == operation::insert) stream.completed(r.id);
            }
        });
    for (std::thread& t : running) t.join();
    EXPECT_NEAR(static_cast<double>(plan.records()), 1000 + 75'000, 2000);
}

std::string refusal(const request_options& options) {
    try {
        request_plan plan(options);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(YcsbMix, AbsurdOptionsAreRefusedWithAReason) {
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    EXPECT_PRED2(has, refusal({}), "0 records");
    EXPECT_PRED2(has, refusal({.records = 1, .threads = 0}), "0 threads");
    EXPECT_PRED2(has, refusal({.records = 1, .max_scan_length = 0}), "scans of length 0");
    EXPECT_PRED2(has, refusal({.records = 1, .operations = {.read = .5}}), "sum up to 0.5");
    EXPECT_PRED2(has, refusal({.records = 1, .operations = {.read = 2, .update = -1}}), "-1");
    EXPECT_PRED2(has, refusal({.records = ~std::uint64_t{0}}), "2^63");
    EXPECT_PRED2(has, refusal({.records = 10, .ids = distribution::loop, .live_share = 0}),
                 "live share");
    EXPECT_PRED2(has, refusal({.records = 10, .hot_data_fraction = 2}), "hot share");
    request_plan plan({.records = 1});
    EXPECT_THROW(plan.stream(1), std::invalid_argument);
}

} // namespace
