// SPDX-License-Identifier: MIT
#include "tools/index/index_bench.hpp"

#include "tools/index/crew.hpp"
#include "tools/index/key_set.hpp"

#include "crestdb/store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace obase::tools {
namespace {

TEST(KeySets, ThereIsOneForEveryIndexOfTheStore) {
    std::set<std::string> of_store, of_bench;
    for (const std::string& index : crestdb::store::indexes()) of_store.insert(index);
    for (const key_set_entry* entry : key_set_entries()) of_bench.insert(entry->index);
    EXPECT_EQ(of_bench, of_store);
    for (const std::string& protocol : crestdb::store::protocols())
        EXPECT_NE(key_set_entries()[0]->open(protocol, 10), nullptr);
    EXPECT_EQ(key_set_entries()[0]->open("magic", 10), nullptr);
    EXPECT_EQ(key_set_entry_named("magic"), nullptr);
}

TEST(KeySets, AreSets) {
    std::vector<std::uint32_t> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const std::vector<std::uint32_t> half(numbers.begin(), numbers.begin() + 500);
    for (const key_set_entry* entry : key_set_entries())
        for (const std::string& protocol : crestdb::store::protocols())
            for (const key_kind keys : {key_kind::integer, key_kind::string}) {
                const auto set = entry->open(protocol, 500);
                set->insert(keys, half);
                set->insert(keys, half);
                EXPECT_EQ(set->size(), 500u) << entry->index;
                EXPECT_EQ(set->touch(keys, numbers), 500u) << entry->index;
                EXPECT_EQ(set->mover() == nullptr, protocol == "none");
                EXPECT_GT(set->index_bytes(), 0u);
            }
}

// The counts say how many keys there must be, and every second update finds nothing to do.
TEST(KeySets, CountWhatTheyDo) {
    const key_set_entry* entry = key_set_entries()[0];
    const auto set = entry->open("arming", 500);
    std::vector<std::uint32_t> numbers(500);
    std::iota(numbers.begin(), numbers.end(), 0u);
    set->insert(key_kind::integer, numbers);
    for (const unsigned updates : {0u, 20u, 100u}) {
        std::atomic<bool> stop{false};
        set_requests requests{key_kind::integer, 1000, updates, workload::random_stream(7)};
        set_counts counts;
        const std::uint64_t before = set->size();
        std::thread worker([&] { counts = set->run(requests, stop); });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stop = true;
        worker.join();
        EXPECT_EQ(set->size(), before + counts.inserted - counts.erased);
        const auto all = static_cast<double>(counts.operations);
        ASSERT_GT(counts.operations, 1000u);
        const double share = static_cast<double>(updates) / 100;
        EXPECT_NEAR(static_cast<double>(counts.inserted + counts.erased) / all, share / 2, 0.1);
        EXPECT_NEAR(static_cast<double>(counts.found) / all, (1 - share) / 2, 0.1);
        if (updates == 0) {
            EXPECT_EQ(counts.inserted + counts.erased, 0u);
        }
    }
}

TEST(Crew, WorksInPiecesAndTellsWhatWentWrong) {
    crew workers(3);
    std::atomic<unsigned> sum{0};
    for (int i = 0; i < 100; ++i) {
        workers.begin([&](unsigned number) { sum += number + 1; });
        workers.wait();
    }
    EXPECT_EQ(sum, 600u);
    workers.begin([](unsigned number) {
        if (number == 1) throw std::runtime_error("one");
    });
    EXPECT_THROW(workers.wait(), std::runtime_error);
    workers.begin([&](unsigned) { ++sum; });
    workers.wait();
    EXPECT_EQ(sum, 603u);
}

TEST(Publications, AreOfIndexesUnderTheirNames) {
    EXPECT_EQ(published_mops("pugh-hash-table", 20), 2.1);
    EXPECT_FALSE(published_mops("pugh-hash-table", 50).has_value());
    EXPECT_FALSE(published_mops("magic", 20).has_value());
}

TEST(IndexBench, RefusesWhatMakesNoSense) {
    const auto refused = [](auto change) {
        index_bench_settings s;
        change(s);
        EXPECT_THROW((void)bench_index(s), std::invalid_argument);
    };
    refused([](auto& s) { s.keys = 0; });
    refused([](auto& s) { s.keys = std::uint64_t{1} << 40; });
    refused([](auto& s) { s.duration_s = 0; });
    refused([](auto& s) { s.duration_s = 1e9; });
}

} // namespace
} // namespace obase::tools
