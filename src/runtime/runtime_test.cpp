// SPDX-License-Identifier: MIT
//
// The runtime as a whole: modes, options, temperature, compaction, statistics, what it reports.
#include "heap/sanitized.hpp"
#include "testing/quiet_runtime.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "os/process.hpp"

namespace {

using obase::collect_result;
using obase::run_mode;

struct item {
    std::uint64_t id;
    std::uint64_t filler[7];
};
using item_guide = obase::guide<item>;

class runtime_of_arming : public ::testing::Test {
  public:
    static obase::runtime& runtime() { return obase::testing::quiet_runtime(); }
    static void configure(void (*change)(obase::options&)) {
        obase::options settings = runtime().settings();
        change(settings);
        ASSERT_EQ(runtime().configure(settings), "");
    }
    void TearDown() override {
        configure([](obase::options& o) {
            o.mode = run_mode::move;
            o.window_seconds = 1e6;
            o.stuck_scope_windows = 1;
            o.cold_threshold = 3;
        });
    }
    static std::vector<item_guide> make_items(std::uint64_t count) {
        std::vector<item_guide> items;
        items.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i)
            items.emplace_back(obase::make_managed<item>(item{i, {}}));
        return items;
    }
    static void touch(const std::vector<item_guide>& items, std::size_t step) {
        obase::scope s;
        for (std::size_t i = 0; i < items.size(); i += step) ASSERT_EQ(items[i]->id, i);
    }
    static void collect() { ASSERT_EQ(runtime().collect_now(), collect_result::done); }
};

// Fig. 5 of OBASE: touched objects go to HOT, objects untouched for more than C_t windows to COLD,
// an object of COLD that is touched returns to HOT, and construction is not a touch.
TEST_F(runtime_of_arming, objects_follow_their_temperature) {
    configure([](obase::options& o) { o.cold_threshold = 3; });
    const auto before = runtime().statistics();
    auto items = make_items(4000);
    collect(); // born -> armed: no thread has touched anything
    EXPECT_EQ(runtime().statistics().touched_guides, before.touched_guides);
    touch(items, 4);
    collect();
    auto now = runtime().statistics();
    EXPECT_EQ(now.moved("new", "hot") - before.moved("new", "hot"), 1000u);
    EXPECT_EQ(now.moved("new", "cold"), before.moved("new", "cold"));
    for (int window = 0; window < 4; ++window) {
        touch(items, 4);
        collect();
    }
    now = runtime().statistics();
    EXPECT_EQ(now.moved("new", "cold") - before.moved("new", "cold"), 3000u);
    touch(items, 2);
    collect();
    now = runtime().statistics();
    EXPECT_EQ(now.moved("cold", "hot") - before.moved("cold", "hot"), 1000u);
    touch(items, 1);
    collect();
    EXPECT_EQ(runtime().statistics().heaps[1].live_objects, 4000u);
}

// The point of it all: after the moves, the touched objects fill the touched pages.
TEST_F(runtime_of_arming, touched_objects_share_pages) {
    auto items = make_items(64000);
    collect();
    for (int window = 0; window < 6; ++window) {
        touch(items, 16);
        collect();
    }
    touch(items, 16);
    collect();
    const auto now = runtime().statistics();
    EXPECT_LE(now.working_set_pages, 4000u * 64 / 4096 + 3);
    EXPECT_LE(now.would_save_pages, 3u);
}

TEST_F(runtime_of_arming, observe_moves_nothing_and_reports_what_moving_would_save) {
    runtime().set_mode(run_mode::observe);
    auto items = make_items(16000);
    collect();
    const auto before = runtime().statistics();
    touch(items, 64);
    collect();
    const auto now = runtime().statistics();
    EXPECT_EQ(obase::testing::moves_of(now), obase::testing::moves_of(before));
    EXPECT_EQ(now.would_move_objects, 250u);
    EXPECT_EQ(now.would_move_bytes, 250u * 64);
    EXPECT_EQ(now.working_set_pages, 250u);
    EXPECT_EQ(now.would_save_pages, 250u - 4u);
    EXPECT_STREQ(now.mode, "observe");
}

TEST_F(runtime_of_arming, off_collects_nothing_until_switched_on) {
    runtime().set_mode(run_mode::off);
    EXPECT_EQ(runtime().mode(), run_mode::off);
    EXPECT_EQ(runtime().collect_now(), collect_result::not_running);
    runtime().set_mode(run_mode::move);
    collect();
    runtime().stop();
    EXPECT_EQ(runtime().collect_now(), collect_result::not_running);
    auto items = make_items(100);
    touch(items, 1);
    EXPECT_EQ(runtime().start(), "");
    collect();
}

TEST_F(runtime_of_arming, never_waits_for_the_scope_of_the_caller) {
    obase::scope s;
    EXPECT_EQ(runtime().collect_now(), collect_result::in_scope);
}

TEST_F(runtime_of_arming, objects_that_asked_for_it_never_become_cold) {
    std::vector<item_guide> items;
    for (std::uint64_t i = 0; i < 1000; ++i)
        items.emplace_back(obase::make_managed_with<item>({.never_cold = i % 2 == 0}, item{i, {}}));
    const auto before = runtime().statistics();
    for (int window = 0; window < 40; ++window) collect();
    const auto now = runtime().statistics();
    EXPECT_EQ(now.moved("new", "cold") - before.moved("new", "cold"), 500u);
}

// Sparse runs are emptied: memory of a mostly deleted class comes back.
TEST_F(runtime_of_arming, holes_are_compacted_and_pages_go_back) {
    auto items = make_items(100000);
    collect();
    touch(items, 1);
    collect();
    const std::uint64_t full = runtime().statistics().heaps[1].extent_bytes;
    ASSERT_GE(full, 100000u * 64);
    for (std::size_t i = 0; i < items.size(); ++i)
        if (i % 10 != 0) items[i].reset();
    for (int window = 0; window < 3; ++window) {
        obase::scope s;
        for (std::size_t i = 0; i < items.size(); i += 10) ASSERT_EQ(items[i]->id, i);
    }
    collect();
    collect();
    const auto now = runtime().statistics();
    EXPECT_LT(now.heaps[1].extent_bytes, full / 5);
    EXPECT_GT(now.compacted + now.moved("hot", "cold"), 0u);
    obase::scope s;
    for (std::size_t i = 0; i < items.size(); i += 10) ASSERT_EQ(items[i]->id, i);
}

bool machine_can_page_out() {
    obase::os::machine here;
    return obase::os::read_machine(&here) && obase::os::can_page_out(here);
}

// Without swap what was asked to leave anonymous memory is still there: its holes cost memory, and are closed.
TEST_F(runtime_of_arming, without_swap_holes_of_idle_memory_are_closed) {
    if (machine_can_page_out()) GTEST_SKIP() << "there is swap";
    configure([](obase::options& o) {
        o.mode = run_mode::hint;
        o.memory = "none";
        o.cold_threshold = 1;
    });
    auto items = make_items(200'000);
    for (int window = 0; window < 8; ++window) collect();
    ASSERT_GE(runtime().statistics().heaps[2].live_objects, 200'000u);
    ASSERT_EQ(runtime().statistics().pageout_allowed, 1u);
    for (std::size_t i = 0; i < items.size(); i += 6) items[i].reset();
    for (int window = 0; window < 4; ++window) collect();
    if (machine_can_page_out()) GTEST_SKIP() << "there is swap now";
    const auto cold = runtime().statistics().heaps[2];
    // .02 and half a MiB are left (docs/options.md).
    EXPECT_LE(cold.extent_bytes, cold.live_bytes + cold.live_bytes / 16 + (512U << 10));
}

TEST_F(runtime_of_arming, a_scope_left_open_is_reported_and_holds_moves_back) {
    configure([](obase::options& o) {
        o.window_seconds = 0.05;
        o.stuck_scope_windows = 1;
    });
    auto items = make_items(100);
    std::atomic<int> stage{0};
    std::thread stuck([&] {
        obase::scope s;
        item* held = items[0].get();
        stage = 1;
        while (stage != 2) std::this_thread::yield();
        EXPECT_EQ(held->id, 0u) << "the object may not have moved";
    });
    while (stage != 1) std::this_thread::yield();
    const auto before = runtime().statistics();
    ::testing::internal::CaptureStderr();
    while (runtime().statistics().stuck_scopes == before.stuck_scopes ||
           runtime().statistics().abandoned_waits == before.abandoned_waits) {
        touch(items, 1);
        std::this_thread::yield();
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("has kept a scope open for at least"), std::string::npos) << said;
    // Free again: windows go on by themselves and move. The wait that is under way may move already.
    const auto moves = obase::testing::moves_of(runtime().statistics());
    stage = 2;
    stuck.join();
    while (obase::testing::moves_of(runtime().statistics()) == moves) {
        touch(items, 1);
        // Not all the time: what is touched between its arming and its publish does not move.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

TEST_F(runtime_of_arming, options_of_the_heaps_are_fixed_by_the_first_object) {
    auto items = make_items(1);
    obase::options settings = runtime().settings();
    settings.heap_reserve = std::uint64_t{1} << 30;
    const std::string error = runtime().configure(settings);
    EXPECT_NE(error.find("heap_reserve"), std::string::npos) << error;
    settings = runtime().settings();
    settings.cold_threshold = 99;
    EXPECT_NE(runtime().configure(settings).find("cold_threshold"), std::string::npos);
}

TEST_F(runtime_of_arming, statistics_are_one_table_in_three_texts) {
    auto items = make_items(100);
    touch(items, 1);
    collect();
    const auto now = runtime().statistics();
    const auto json = nlohmann::json::parse(now.to_json());
    EXPECT_EQ(json.at("windows").get<std::uint64_t>(), now.windows);
    EXPECT_NE(now.to_prometheus().find("# TYPE obase_"), std::string::npos);
    EXPECT_NE(now.to_text().find("scanned_guides"), std::string::npos);
    const auto history = runtime().history();
    ASSERT_FALSE(history.empty());
    EXPECT_EQ(history.back().index, now.windows);
    EXPECT_GE(history.back().values.scanned_guides, 100u);
}

// A guide of an object larger than a dense class takes is tracked, and stays where it is.
TEST_F(runtime_of_arming, the_largest_objects_are_not_copied) {
    std::vector<obase::guide<obase::bytes>> large;
    for (int i = 0; i < 4; ++i) large.emplace_back(obase::make_bytes(std::string(5 << 20, 'x')));
    std::vector<const obase::bytes*> where;
    for (auto& g : large) where.push_back(g.peek());
    for (int window = 0; window < 6; ++window) collect();
    for (std::size_t i = 0; i < large.size(); ++i) EXPECT_EQ(large[i].peek(), where[i]);
}

TEST_F(runtime_of_arming, retired_objects_go_without_anybody_asking) {
    auto items = make_items(10000);
    const auto before = runtime().statistics();
    for (auto& g : items) obase::retire(std::move(g));
    // The collector frees what is left within its tick, though no window is due.
    while (runtime().statistics().windows == before.windows) {
        collect();
    }
    while (true) {
        collect();
        const auto now = runtime().statistics();
        if (now.reclaimed_objects - before.reclaimed_objects >= 10000) break;
    }
}

// A busy machine makes windows longer and never shorter, so what is counted is no limit of time.
TEST_F(runtime_of_arming, the_collector_keeps_to_its_share_of_a_core) {
    auto items = make_items(obase::heap::thread_sanitized ? 30'000 : 300'000);
    touch(items, 1);
    collect();
    configure([](obase::options& o) {
        o.window_seconds = 0.001;
        o.collector_cpu_share = 0.05;
    });
    const auto statistics_after = [&](std::uint64_t windows) {
        auto now = runtime().statistics();
        for (const auto end = now.windows + windows; now.windows < end;
             now = runtime().statistics())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return now;
    };
    const auto first = statistics_after(1);
    const auto begin = std::chrono::steady_clock::now();
    const auto last = statistics_after(4);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    configure([](obase::options& o) { o.collector_cpu_share = 0.25; });
    const double used = last.collector_cpu_seconds - first.collector_cpu_seconds;
    EXPECT_GT(used, 0);
    EXPECT_LT(used / passed.count(), 2 * 0.05);
}

TEST_F(runtime_of_arming, tells_the_heap_of_an_address) {
    auto items = make_items(1);
    const auto heap_now = [&] { return runtime().heap_of(items[0].peek()); };
    EXPECT_EQ(heap_now(), 0);
    touch(items, 1);
    collect();
    EXPECT_EQ(heap_now(), 1);
    for (int window = 0; window < 4; ++window) collect();
    EXPECT_EQ(heap_now(), 2);
    EXPECT_EQ(runtime().heap_of(&items), -1);
    EXPECT_EQ(runtime().heap_of(nullptr), -1);
}

// Construction is no access, but the pages of a new object have been touched all the same.
TEST_F(runtime_of_arming, new_objects_count_as_touched_once) {
    collect();
    auto items = make_items(6400);
    collect();
    const auto made = runtime().statistics();
    EXPECT_EQ(made.heaps[0].touched_bytes, 6400u * sizeof(item));
    EXPECT_GE(made.working_set_pages, 6400u * sizeof(item) / 4096);
    collect();
    EXPECT_EQ(runtime().statistics().heaps[0].touched_bytes, 0u);
}

// By its epoch a scope is told from a later one of the same thread, also where nothing moves: else a
// thread that is in some scope whenever the collector looks would be reported as stuck.
TEST_F(runtime_of_arming, every_window_begins_an_epoch) {
    runtime().set_mode(run_mode::observe);
    auto items = make_items(1);
    const auto epoch_of_a_scope = [] {
        obase::scope s;
        return obase::arming::this_slot()->epoch.load_relaxed();
    };
    collect();
    const auto before = epoch_of_a_scope();
    collect();
    EXPECT_GT(epoch_of_a_scope(), before);
}

// Values that are replaced in every window are not promoted again and again; when they stop being
// replaced, they are.
TEST_F(runtime_of_arming, values_that_die_young_stay_in_new) {
    auto items = make_items(64000);
    const auto replace_all = [&] {
        for (std::size_t i = 0; i < items.size(); ++i)
            items[i] = obase::make_managed<item>(item{i, {}});
    };
    const auto promoted_by_a_window = [&] {
        const auto before = runtime().statistics().moved("new", "hot");
        touch(items, 1);
        collect();
        return runtime().statistics().moved("new", "hot") - before;
    };
    // Whatever the tests before this one have taught the policy, these live.
    std::uint64_t promoted = 0;
    for (int window = 0; window < 12; ++window) promoted += promoted_by_a_window();
    EXPECT_GT(promoted, items.size() / 2);
    for (int window = 0; window < 4; ++window) {
        replace_all();
        promoted_by_a_window();
    }
    const auto held = runtime().statistics().deferred_promotions;
    replace_all();
    EXPECT_LT(promoted_by_a_window(), items.size() / 4);
    EXPECT_GT(runtime().statistics().deferred_promotions, held + items.size() / 2);
    promoted = 0;
    for (int window = 0; window < 12; ++window) promoted += promoted_by_a_window();
    EXPECT_GT(promoted, items.size() / 2);
}

} // namespace
