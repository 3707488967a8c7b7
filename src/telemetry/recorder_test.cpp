// SPDX-License-Identifier: MIT
//
// A snapshot belongs to one window; the history holds growth of counters and values of gauges, is
// bounded and in order; threads may add, read and end windows at the same time.
#include "telemetry/recorder.hpp"

#include "testing/heap_shortage.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace obase;
using obase::telemetry::recorder;

namespace {

constexpr policy::tier rows[] = {
    {.name = "new"}, {.name = "cold", .reclaimable = true}, {.name = "hot"}};
constexpr policy::tier_table three{rows};

TEST(recorder, publishes_at_the_end_of_a_window_only) {
    recorder record(8, "arming");
    record.set_tiers(three);
    EXPECT_EQ(record.snapshot().windows, 0u);
    EXPECT_STREQ(record.snapshot().protocol, "arming");
    record.live.scanned_guides.add(10);
    record.live.cold_threshold.set(3);
    record.of_heap(1).live_bytes = 77;
    EXPECT_EQ(record.snapshot().scanned_guides, 0u);
    record.end_window("move", 1000.5);
    const statistics now = record.snapshot();
    EXPECT_EQ(now.windows, 1u);
    EXPECT_EQ(now.scanned_guides, 10u);
    EXPECT_EQ(now.cold_threshold, 3u);
    EXPECT_EQ(now.heap_count, 4u);
    EXPECT_EQ(now.reclaimable_tiers, 2u);
    EXPECT_EQ(now.heaps[1].live_bytes, 77u);
    EXPECT_STREQ(now.mode, "move");
}

TEST(recorder, keeps_the_last_window_with_objects) {
    recorder record(8, "arming");
    record.set_tiers(three);
    EXPECT_EQ(record.last_with_objects().windows, 0u);
    record.end_window("move", 1);
    EXPECT_EQ(record.last_with_objects().windows, 1u) << "none yet: as snapshot()";
    record.of_heap(3).live_bytes = 77; // large objects are objects
    record.end_window("move", 2);
    record.of_heap(3).live_bytes = 0;
    record.end_window("move", 3);
    EXPECT_EQ(record.last_with_objects().windows, 2u);
    EXPECT_EQ(record.last_with_objects().heaps[3].live_bytes, 77u);
    EXPECT_EQ(record.snapshot().windows, 3u);
}

// Thousands of early windows do not push the others out.
TEST(recorder, what_early_windows_did_belongs_to_the_next_record) {
    recorder record(2, "arming");
    for (int i = 0; i < 10; ++i) {
        record.live.scanned_guides.add(1);
        record.live.moved_between[0][1].add(1);
        record.end_window("move", 0, i % 5 != 4);
        EXPECT_EQ(record.snapshot().scanned_guides, static_cast<std::uint64_t>(i) + 1);
        EXPECT_EQ(record.snapshot().windows, static_cast<std::uint64_t>(i) + 1);
    }
    const std::vector<window_record> history = record.history();
    ASSERT_EQ(history.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(history[i].index, 5 * (i + 1));
        EXPECT_EQ(history[i].values.scanned_guides, 5u);
        EXPECT_EQ(history[i].values.windows, 5u);
        EXPECT_EQ(history[i].values.moved_between[0][1], 0u) << "no tiers are set";
    }
}

TEST(recorder, history_holds_growth_of_counters_and_values_of_gauges) {
    recorder record(8, "arming");
    for (std::uint64_t window = 1; window <= 3; ++window) {
        record.live.scanned_guides.add(window * 10);
        record.live.wait_seconds.add(0.5);
        record.live.cold_threshold.set(window);
        record.end_window("move", static_cast<double>(window));
    }
    const std::vector<window_record> history = record.history();
    ASSERT_EQ(history.size(), 3u);
    for (std::uint64_t window = 1; window <= 3; ++window) {
        const window_record& one = history[window - 1];
        EXPECT_EQ(one.index, window);
        EXPECT_EQ(one.end_unix_seconds, static_cast<double>(window));
        EXPECT_EQ(one.values.scanned_guides, window * 10);
        EXPECT_EQ(one.values.wait_seconds, 0.5);
        EXPECT_EQ(one.values.cold_threshold, window);
        EXPECT_EQ(one.values.windows, 1u); // a counter like the others
    }
    EXPECT_EQ(record.snapshot().scanned_guides, 60u);
}

TEST(recorder, history_keeps_the_latest_windows_in_order) {
    recorder record(3, "arming");
    for (int window = 0; window < 11; ++window) record.end_window("move", window);
    const std::vector<window_record> history = record.history();
    ASSERT_EQ(history.size(), 3u);
    EXPECT_EQ(history[0].index, 9u);
    EXPECT_EQ(history[1].index, 10u);
    EXPECT_EQ(history[2].index, 11u);
}

TEST(recorder, what_a_window_without_memory_did_belongs_to_the_next_record) {
    if (!obase::testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    recorder record(4, "arming");
    record.end_window("move", 0);
    record.live.scanned_guides.add(3);
    {
        const obase::testing::heap_shortage none;
        record.end_window("move", 1);
    }
    EXPECT_EQ(record.snapshot().scanned_guides, 3u);
    record.live.scanned_guides.add(4);
    record.end_window("move", 2);
    const std::vector<window_record> history = record.history();
    ASSERT_EQ(history.size(), 2u);
    EXPECT_EQ(history[1].index, 3u);
    EXPECT_EQ(history[1].values.scanned_guides, 7u);
    EXPECT_EQ(history[1].values.windows, 2u);
}

TEST(recorder, moves_are_counted_by_direction) {
    recorder record(8, "arming");
    record.set_tiers(three);
    std::uint64_t bytes = 0, moved = 0;
    for (unsigned from = 0; from < 3; ++from)
        for (unsigned to = 1; to < 3; ++to) {
            const statistics before = record.snapshot();
            record.live.count_move(from, to, 100);
            record.end_window("move", 0);
            const statistics now = record.snapshot();
            moved += from != to;
            EXPECT_EQ(now.moved_objects, moved) << from << " to " << to;
            EXPECT_EQ(now.compacted - before.compacted, from == to) << from << " to " << to;
            EXPECT_EQ(now.moved_between[from][to], from != to);
            EXPECT_EQ(now.moved(three[from].name, three[to].name), from != to);
            EXPECT_EQ(record.history().back().values.moved_between[from][to], from != to);
            EXPECT_EQ(now.moved_bytes, bytes += 100);
        }
    record.end_window("move", 0);
    EXPECT_EQ(record.history().back().values.moved("new", "hot"), 0u) << "growth in the window";
    EXPECT_EQ(record.snapshot().moved("new", "hot"), 1u);
    EXPECT_EQ(record.snapshot().moved("new", "tepid"), 0u);
}

// Threads add in pairs, always to both rows and to the second one first. The collector's publishing
// may fall between the two, but readers must see numbers of one publication: windows, the gauge set
// with it, and counters that never go back.
TEST(recorder, readers_see_whole_windows) {
    recorder record(16, "arming");
    std::atomic<bool> stop{false};
    constexpr std::uint64_t windows = 2000;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            while (!stop.load()) record.live.failed_allocations.add();
        });
    }
    std::atomic<std::uint64_t> torn{0}, backwards{0}, reads{0};
    threads.emplace_back([&] {
        statistics before = record.snapshot();
        while (!stop.load()) {
            const statistics now = record.snapshot();
            torn += now.windows != now.working_set_pages || now.windows != now.heaps[2].runs;
            backwards +=
                now.windows < before.windows || now.failed_allocations < before.failed_allocations;
            std::uint64_t next = 0;
            for (const window_record& one : record.history()) {
                torn += next != 0 && one.index != next;
                next = one.index + 1;
            }
            before = now;
            ++reads;
        }
    });
    for (std::uint64_t window = 1; window <= windows || reads.load() < 10; ++window) {
        record.live.working_set_pages.set(window);
        record.of_heap(2).runs = window;
        record.end_window("move", 0);
    }
    stop = true;
    for (std::thread& one : threads) one.join();
    EXPECT_EQ(torn.load(), 0u);
    EXPECT_EQ(backwards.load(), 0u);
}

} // namespace
