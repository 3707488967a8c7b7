// SPDX-License-Identifier: MIT
//
// One state of a process per reason: the sentence names it; and where memory was freed there is none.
// Each state differs from one in which memory would be freed in one respect only, so the order of the
// questions is tested, too.
#include "runtime/why_not_freed.hpp"

#include "testing/child_process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

using namespace obase;
using namespace obase::runtime_internal;

namespace {

// All that can be asked for is there, and the next window may page out.
struct state {
    options settings;
    system_facts facts;
    statistics seen;

    state() {
        settings.mode = run_mode::hint;
        settings.cold_backing = "file:/mnt/nvme";
        facts.machine.swap_total = facts.machine.swap_free = 0;
        seen.heap_count = 4;
        seen.reclaimable_tiers = 1U << 2;
        seen.heaps[0].live_bytes = 100 << 20;
        seen.heaps[1].live_bytes = 100 << 20;
        seen.heaps[2].live_bytes = 300 << 20;
        seen.windows = 100;
        seen.cold_threshold = 4;
        seen.scanned_guides = 1000;
        seen.touched_guides = 100;
        seen.pageout_allowed = 1;
    }
    std::uint64_t pageout_after = 0;

    std::string why() const { return why_not_freed(settings, facts, seen, pageout_after); }
    void says(std::string_view part) const {
        const std::string sentence = why();
        EXPECT_EQ(sentence.rfind("no cold memory was freed: ", 0), 0u) << sentence;
        EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
        EXPECT_EQ(sentence.find('\n'), std::string::npos) << "one line";
    }
};

// In a process of its own: self_check() says it after the first window, and the statistics at exit end
// with it.
TEST(why_not_freed, is_said_by_self_check_and_at_exit) {
    const auto child = obase::testing::run_in_child([] {
        options settings;
        settings.mode = run_mode::observe;
        settings.show_stats = true;
        runtime& self = runtime::get();
        obase::testing::require(self.configure(settings).empty(), "configure");
        obase::testing::require(std::string_view(self.statistics().mode) == "observe", "mode");
        const guide<int> one = make_managed<int>(1);
        const auto said = [&] {
            for (const std::string& line : self.self_check())
                if (line.find("no cold memory was freed: mode observe") == 0) return true;
            return false;
        };
        obase::testing::require(!said(), "no window has ended");
        obase::testing::require(self.collect_now() == collect_result::done, "a window");
        obase::testing::require(said(), "said by self_check()");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_NE(child.err.find("\nno cold memory was freed: mode observe moves nothing; "),
              std::string::npos)
        << child.err;
}

// What lived in a variable of main is gone when the statistics are printed, and a window may have ended since.
TEST(why_not_freed, at_exit_the_last_window_with_objects_is_judged) {
    const auto child = obase::testing::run_in_child([] {
        options settings;
        settings.mode = run_mode::hint;
        settings.cold_backing = "file:/var/tmp";
        settings.show_stats = true;
        runtime& self = runtime::get();
        obase::testing::require(self.configure(settings).empty(), "configure");
        {
            const guide<int> one = make_managed<int>(1);
            obase::testing::require(self.collect_now() == collect_result::done, "a window");
        }
        obase::testing::require(self.collect_now() == collect_result::done, "a window");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_NE(child.err.find("\nno cold memory was freed: "), std::string::npos) << child.err;
    EXPECT_EQ(child.err.find("there are no managed objects"), std::string::npos) << child.err;
    EXPECT_NE(child.err.find("and 1 have ended"), std::string::npos) << child.err;
}

TEST(why_not_freed, is_silent_where_memory_was_freed) {
    state s;
    s.seen.hint_pageout_bytes = s.seen.paged_out_bytes = 4096;
    EXPECT_EQ(s.why(), "");
    s.settings.mode = run_mode::off; // by now
    EXPECT_EQ(s.why(), "");
}

TEST(why_not_freed, tells_what_was_freed) {
    statistics seen;
    seen.peak_resident_bytes = 231 << 20;
    seen.paged_out_bytes = 184 << 20;
    EXPECT_EQ(what_was_freed(seen, 41 << 20), "41 MiB are resident, 231 MiB were at the peak; 184 "
                                              "MiB of cold pages have left memory");
    EXPECT_EQ(what_was_freed({}, 41 << 20).find("41 MiB are resident, 41 MiB were at the peak"),
              0u);
}

// To ask the kernel frees nothing.
TEST(why_not_freed, what_the_kernel_was_asked_for_is_not_freed) {
    state s;
    s.seen.hint_pageout_bytes = 80 << 20;
    s.says("the kernel kept most of what it was asked to page out");
    s.settings.cold_backing = options().cold_backing;
    s.says("there is no swap, and COLD does not lie in a file");
    s = {};
    s.seen.hint_pageout_bytes = 80 << 20;
    s.seen.paged_out_bytes = 2 << 20;
    s.seen.heaps[3].live_bytes = 600 << 20;
    EXPECT_EQ(s.why().find("little cold memory was freed, 2 MiB: 600 MiB of 1100 MiB are large"),
              0u)
        << s.why();
    s.seen.paged_out_bytes = 10 << 20;
    EXPECT_EQ(s.why(), "");
}

// What would leave without one stays.
TEST(why_not_freed, the_budget) {
    state s;
    s.seen.budget_bytes = 900 << 20;
    s.seen.budget_used_bytes = 500 << 20;
    s.seen.pageout_allowed = 0;
    s.settings.memory = "900M";
    s.says("the process is within its budget, 500 MiB of 900 MiB (OBASE_MEMORY=900M)");
    s.seen.heaps[2].live_bytes = 0;
    s.says("no object has been unused for more than 4 windows");
    s.seen.heaps[2].live_bytes = 300 << 20;
    s.seen.budget_used_bytes = 901 << 20;
    s.says("may leave after some more windows");
}

TEST(why_not_freed, the_mode) {
    state s;
    s.settings.mode = run_mode::off;
    s.says("the mode is off");
    s.settings.mode = run_mode::observe;
    s.seen.would_save_pages = 1234;
    s.seen.working_set_pages = 5000;
    s.says(
        "mode observe moves nothing; laid out densely, the objects in use in a window would take "
        "1234 of 5000 pages less; OBASE_MODE=hint");
    s.settings.mode = run_mode::move;
    s.says("takes cold memory when it needs some; OBASE_MODE=hint frees it");
    s.settings.cold_backing = options().cold_backing;
    s.says("mode move leaves reclaiming to the system, which has no swap");
    s.says("OBASE_MODE=hint OBASE_COLD_BACKING=file:DIR");
    s.facts.machine.swap_total = s.facts.machine.swap_free = 1 << 30;
    s.says("takes cold memory when it needs some");
    s.facts.container.swap_bytes = 0;
    s.says("has no swap");
    s = {};
    s.settings.hint_pageout = false;
    s.says("hint_pageout is off");
}

// What `obase self-check` says beside what cannot work.
TEST(why_not_freed, is_known_before_anything_runs) {
    state s;
    const auto said = [&] { return nothing_leaves_by_itself(s.settings, s.facts); };
    EXPECT_EQ(said(), "") << "mode hint";
    s.settings.mode = run_mode::move;
    s.settings.cold_backing = options().cold_backing;
    EXPECT_EQ(said().find("no cold memory is freed: mode move leaves reclaiming to the system, "
                          "which has no swap"),
              0u)
        << said();
    s.facts.machine.swap_total = s.facts.machine.swap_free = 1 << 30;
    EXPECT_EQ(said(), "");
    s.settings.mode = run_mode::observe;
    EXPECT_EQ(said().find("no cold memory is freed: mode observe moves nothing"), 0u) << said();
    s.settings.mode = run_mode::off;
    EXPECT_EQ(said().find("no cold memory is freed: the mode is off"), 0u) << said();
}

TEST(why_not_freed, the_means) {
    state s;
    s.facts.page_hints = false;
    s.says("refuses MADV_PAGEOUT");
    s = {};
    s.settings.cold_backing = options().cold_backing;
    s.says("there is no swap, and COLD does not lie in a file");
    s.facts.machine.swap_total = s.facts.machine.swap_free = 1 << 30;
    s.says("300 MiB are cold"); // the means are there
    for (int fault = 0; fault < 3; ++fault) {
        s = {};
        if (fault == 0) s.facts.cold_directory.exists = false;
        if (fault == 1) s.facts.cold_directory.open_error = 13;
        if (fault == 2) s.facts.cold_directory.in_memory = true;
        s.says("COLD does not lie in a file on a disk: OBASE_COLD_BACKING=file:/mnt/nvme names no "
               "directory");
    }
    s = {};
    s.seen.hints_stopped = 1;
    s.says("I/O error");
}

TEST(why_not_freed, the_objects) {
    state s;
    s.seen.windows = 0;
    s.settings.window_seconds = 120;
    s.says("no window has ended yet; one takes 120 s");
    s = {};
    for (heap_statistics& heap : s.seen.heaps) heap.live_bytes = 0;
    s.says("there are no managed objects");
    s = {};
    s.seen.heaps[3].live_bytes = 600 << 20;
    s.says("600 MiB of 1100 MiB are large objects (above 16 KiB) that have not moved");
    s.says("for which there is no swap");
    s.facts.machine.swap_total = s.facts.machine.swap_free = 1 << 30;
    EXPECT_EQ(s.why().find("there is no swap"), std::string::npos);
    s.seen.heaps[3].live_bytes = 400 << 20;
    s.says("300 MiB are cold");
}

TEST(why_not_freed, nothing_is_cold) {
    state s;
    s.seen.heaps[2].live_bytes = 0;
    s.says("no object has been unused for more than 4 windows");
    s.seen.touched_guides = 970;
    s.says("everything is hot: 97 %");
    s.seen.write_limit_skips = 1;
    s.settings.cold_write_limit = 1 << 20;
    s.says("OBASE_COLD_WRITE_LIMIT=1M");
    s.seen.no_room_skips = 1;
    s.says("no_room_skips");
    s.seen.abandoned_waits = 100;
    s.says("stuck_scopes");
    s.seen.windows = 4;
    s.says("an object is cold after more than 4 windows without use, and 4 have ended");
}

// Whatever tiers a policy has, and in whatever order.
TEST(why_not_freed, what_is_cold_the_policy_says) {
    state s;
    s.seen.heap_count = 9; // eight tiers
    s.seen.heaps[8] = s.seen.heaps[3];
    s.seen.reclaimable_tiers = 1U << 7;
    s.says("no object has been unused for more than 4 windows");
    s.seen.heaps[7].live_bytes = 50 << 20;
    s.says("50 MiB are cold");
    s.seen.reclaimable_tiers = 1U << 1 | 1U << 2;
    s.says("400 MiB are cold");
    s.seen.heaps[8].live_bytes = 600 << 20;
    s.says("600 MiB of 1150 MiB are large objects");
    s.seen.heaps[8].live_bytes = 0;
    s.seen.reclaimable_tiers = 0;
    s.settings.policy = "eight";
    s.says("the policy 'eight' has no tier whose memory may leave");
}

TEST(why_not_freed, the_policy) {
    state s;
    s.seen.pageout_allowed = 0;
    s.seen.promotion_rate = 0.25;
    s.settings.promotion_target = 0.01;
    s.says("used again: 25 % of the working set per minute came from there in the last window, "
           "and pages leave only below 1 % (promotion_target)");
    s.seen.promotion_rate = 112.92;
    s.says("used again: the whole working set, or more, per minute came from there");
    s.seen.promotion_rate = 0.005;
    s.says("300 MiB are cold and may leave after some more windows in which less than 1 % of");
    s.pageout_after = 2;
    s.says("may leave after 2 more windows in which");
    s.pageout_after = 1;
    s.says("may leave after one more window in which");
    s.settings.policy = "graded";
    s.settings.stall_target = 0.005;
    s.says("more stall of any page that leaves than OBASE_STALL_TARGET=0.005 allows");
    s = {};
    s.says("300 MiB are cold, but not for long enough");
}

} // namespace
