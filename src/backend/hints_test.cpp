// SPDX-License-Identifier: MIT
//
// Which hint goes to which memory, in which order, and what follows from each error. The kernel is
// replaced below src/os by calls that write a log and fail on request.
#include "backend/hints.hpp"

#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace obase;
using namespace obase::backend;

namespace {

constexpr std::size_t page = 4096, huge = hints::huge_bytes;
constexpr std::uintptr_t cold_base = std::uintptr_t{1} << 40, hot_base = std::uintptr_t{1} << 41;

struct call {
    std::string name;
    std::uintptr_t at; // address or file offset
    std::size_t bytes;
    friend bool operator==(const call&, const call&) = default;
};

std::ostream& operator<<(std::ostream& out, const call& c) {
    return out << c.name << "(" << std::hex << c.at << ", " << c.bytes << std::dec << ")";
}

// One kernel for the process, because os::memory_calls are plain functions.
struct fake_kernel {
    std::vector<call> log;
    std::string fails; // the name of the call that fails
    int error = 0;
    std::function<void(const std::string&, void*, std::size_t)> madvised;

    int answer(const std::string& name, std::uintptr_t at, std::size_t bytes) {
        log.push_back({name, at, bytes});
        if (name != fails) return 0;
        return error;
    }
};
fake_kernel* kernel = nullptr;

int by_errno(int error) {
    if (error == 0) return 0;
    errno = error;
    return -1;
}

int fake_madvise(void* at, std::size_t bytes, int what) {
    const char* name = what == MADV_COLD       ? "cold"
                       : what == MADV_PAGEOUT  ? "pageout"
                       : what == MADV_HUGEPAGE ? "hugepage"
                       : what == 25            ? "collapse" // MADV_COLLAPSE
                       : what == 22            ? "populate" // MADV_POPULATE_READ
                                               : "other";
    if (kernel->madvised) kernel->madvised(name, at, bytes);
    return by_errno(kernel->answer(name, reinterpret_cast<std::uintptr_t>(at), bytes));
}
int fake_sync(int, off_t offset, off_t bytes, unsigned flags) {
    const char* name = (flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0 ? "finish" : "start";
    return by_errno(
        kernel->answer(name, static_cast<std::uintptr_t>(offset), static_cast<std::size_t>(bytes)));
}
int fake_fadvise(int, off_t offset, off_t bytes, int) { // reports by its result
    return kernel->answer("drop", static_cast<std::uintptr_t>(offset),
                          static_cast<std::size_t>(bytes));
}

options settings_of(const hint_switches& switches) {
    options settings;
    settings.hint_cold = switches.cold;
    settings.hint_pageout = switches.page_out;
    settings.hint_hugepage = switches.huge;
    return settings;
}

// A window with three tiers. When `page_out_allowed`, the policy asks all of COLD to leave that was not
// touched, as that of the papers does.
void end_window(hints& to, tier_view hot, tier_view cold, const options& settings,
                bool page_out_allowed, std::vector<large_view> large = {},
                const asker& may_continue = {}) {
    hot.role = {.name = "hot", .promoted_to = true};
    cold.role = {.name = "cold", .reclaimable = true, .cold = true};
    if (page_out_allowed) cold.leaving = cold.extents.without(cold.touched);
    for (large_view& one : large) one.leaving = page_out_allowed && one.role == 2;
    window_view window;
    window.tiers = {tier_view(), hot, cold};
    window.tiers[0].role.name = "new";
    window.large = large;
    to.after_window(window, settings, may_continue);
}

class hints_test : public testing::Test {
  protected:
    hints_test() {
        kernel = &fake;
        calls = os::real_memory_calls();
        calls.madvise = fake_madvise;
        calls.sync_file_range = fake_sync;
        calls.fadvise = fake_fadvise;
        os::use_memory_calls(&calls);
    }
    ~hints_test() override {
        os::use_memory_calls(nullptr);
        kernel = nullptr;
    }

    // Ends a window and returns the calls it made.
    std::vector<call> window(bool page_out_allowed = false) {
        fake.log.clear();
        end_window(under_test, hot, cold, settings_of(switches), page_out_allowed, large,
                   may_continue);
        cold.touched.clear();
        cold.filled.clear();
        large.clear();
        return fake.log;
    }
    std::vector<call> page_outs() {
        std::vector<call> found = window(true);
        std::erase_if(found, [](const call& c) { return c.name != "pageout"; });
        return found;
    }
    void note_large(std::uintptr_t at, std::size_t bytes, bool is_cold) {
        large.push_back({at, bytes, is_cold ? 2u : 1u, false});
    }

    fake_kernel fake;
    os::memory_calls calls;
    std::vector<std::string> said;
    hints under_test{[this](const std::string& line) { said.push_back(line); }};
    tier_view hot, cold;
    std::vector<large_view> large;
    hint_switches switches;
    asker may_continue;
};

using log_of = std::vector<call>;

TEST_F(hints_test, new_cold_memory_is_advised_once) {
    cold.extents.add(cold_base, cold_base + 8 * page);
    EXPECT_EQ(window(), (log_of{{"cold", cold_base, 8 * page}}));
    EXPECT_EQ(window(), log_of{});
    cold.extents.add(cold_base + 8 * page, cold_base + 10 * page);
    EXPECT_EQ(window(), (log_of{{"cold", cold_base + 8 * page, 2 * page}}));
    EXPECT_EQ(under_test.done().cold_bytes, 10 * page);
    EXPECT_EQ(under_test.done().failures, 0u);
}

TEST_F(hints_test, memory_that_left_cold_and_came_back_is_advised_again) {
    cold.extents.add(cold_base, cold_base + 4 * page);
    window();
    cold.extents.clear();
    EXPECT_EQ(window(), log_of{});
    cold.extents.add(cold_base, cold_base + 4 * page);
    EXPECT_EQ(window(), (log_of{{"cold", cold_base, 4 * page}}));
}

TEST_F(hints_test, filled_and_touched_pages_are_advised_again) {
    cold.extents.add(cold_base, cold_base + 8 * page);
    window();
    cold.filled.add(cold_base + page + 100, cold_base + page + 108);
    cold.touched.add(cold_base + 4 * page, cold_base + 5 * page);
    EXPECT_EQ(window(),
              (log_of{{"cold", cold_base + page, page}, {"cold", cold_base + 4 * page, page}}));
    EXPECT_EQ(window(), log_of{});
}

TEST_F(hints_test, paging_out_needs_permission_and_spares_touched_pages) {
    cold.extents.add(cold_base, cold_base + 8 * page);
    window();
    cold.touched.add(cold_base + 2 * page, cold_base + 3 * page);
    EXPECT_EQ(window(true), (log_of{{"pageout", cold_base, 2 * page},
                                    {"pageout", cold_base + 3 * page, 5 * page},
                                    {"cold", cold_base + 2 * page, page}}));
    // The touched page follows when it was left alone for a window; the others are out already.
    EXPECT_EQ(window(true), (log_of{{"pageout", cold_base + 2 * page, page}}));
    EXPECT_EQ(window(true), log_of{});
    EXPECT_EQ(under_test.done().page_out_bytes, 8 * page);
}

// One that is used again is in memory again, whatever its role.
TEST_F(hints_test, a_large_object_that_is_touched_is_advised_anew) {
    constexpr std::uintptr_t at = cold_base * 2;
    const log_of out{{"pageout", at, 8 * page}};
    switches.cold = false;
    note_large(at, 8 * page, true);
    EXPECT_EQ(window(true), out);
    note_large(at, 8 * page, true);
    EXPECT_EQ(window(true), log_of{});
    large.push_back({at, 8 * page, 2, false, true});
    EXPECT_EQ(window(false), log_of{});
    note_large(at, 8 * page, true);
    EXPECT_EQ(window(true), out);
}

// What was known of a large object is not taken for another one of its address.
TEST_F(hints_test, another_large_object_at_the_same_address_is_advised_anew) {
    const std::uintptr_t at = cold_base * 2;
    note_large(at, 8 * page, true);
    EXPECT_EQ(window(true), (log_of{{"pageout", at, 8 * page}}));
    note_large(at, 8 * page, true);
    EXPECT_EQ(window(true), log_of{});
    note_large(at, 16 * page, true);
    EXPECT_EQ(window(true), (log_of{{"pageout", at, 16 * page}}));
}

TEST_F(hints_test, each_hint_can_be_switched_off) {
    cold.extents.add(cold_base, cold_base + 8 * page);
    hot.extents.add(hot_base, hot_base + 2 * hints::huge_bytes);
    note_large(cold_base * 2, 8 * page, true);
    switches = {false, false, false};
    EXPECT_EQ(window(true), log_of{});
}

TEST_F(hints_test, hot_gets_whole_huge_pages_once) {
    switches = {true, true, true};
    hot.extents.add(hot_base + page, hot_base + 3 * hints::huge_bytes + page);
    EXPECT_EQ(window(), (log_of{{"hugepage", hot_base + huge, 2 * huge},
                                {"collapse", hot_base + huge, huge},
                                {"collapse", hot_base + 2 * huge, huge}}));
    EXPECT_EQ(window(), log_of{});
    EXPECT_EQ(under_test.done().huge_bytes, 2 * huge);
    EXPECT_EQ(under_test.done().collapsed_bytes, 2 * huge);
}

TEST_F(hints_test, long_work_is_cut_into_pieces_and_continues_after_the_next_window) {
    cold.extents.add(cold_base, cold_base + 3 * hints::piece_bytes);
    int left = 1;
    may_continue = [&] { return left-- > 0; };
    EXPECT_EQ(window(), (log_of{{"cold", cold_base, hints::piece_bytes}}));
    left = 99;
    EXPECT_EQ(window(), (log_of{{"cold", cold_base + hints::piece_bytes, hints::piece_bytes},
                                {"cold", cold_base + 2 * hints::piece_bytes, hints::piece_bytes}}));
}

TEST_F(hints_test, a_file_is_written_before_it_is_unmapped_and_dropped) {
    cold.files = {{cold_base, cold_base + 4 * hints::piece_bytes, 7}};
    cold.file_base = cold_base;
    cold.extents.add(cold_base + 2 * page, cold_base + 4 * page);
    EXPECT_EQ(window(true), (log_of{{"start", 2 * page, 2 * page},
                                    {"finish", 2 * page, 2 * page},
                                    {"pageout", cold_base + 2 * page, 2 * page},
                                    {"drop", 2 * page, 2 * page}}));
    EXPECT_EQ(window(true), log_of{});
    EXPECT_EQ(under_test.done().written_bytes, 2 * page);
    EXPECT_EQ(under_test.done().page_out_bytes, 2 * page);
}

TEST_F(hints_test, writing_is_started_everywhere_before_it_is_waited_for) {
    cold.files = {{cold_base, cold_base + hints::piece_bytes, 7},
                  {cold_base + hints::piece_bytes, cold_base + 3 * hints::piece_bytes, 8}};
    cold.file_base = cold_base;
    cold.extents.add(cold_base, cold_base + 2 * hints::piece_bytes);
    const log_of made = window(true);
    ASSERT_EQ(made.size(), 8u);
    EXPECT_EQ(made[0].name, "start");
    EXPECT_EQ(made[1].name, "start");
    EXPECT_EQ(made[2].name, "finish");
}

// After a fork: the child leaves its parent's file to the parent and the kernel. A page that another
// process may have failed to write must not be dropped either.
TEST_F(hints_test, a_file_without_a_descriptor_is_advised_cold_and_not_paged_out) {
    cold.files = {{cold_base, cold_base + 4 * page, -1},
                  {cold_base + 4 * page, cold_base + 6 * page, 7}};
    cold.file_base = cold_base;
    cold.extents.add(cold_base, cold_base + 6 * page);
    EXPECT_EQ(window(true), (log_of{{"start", 4 * page, 2 * page},
                                    {"finish", 4 * page, 2 * page},
                                    {"pageout", cold_base + 4 * page, 2 * page},
                                    {"drop", 4 * page, 2 * page},
                                    {"cold", cold_base, 4 * page}}));
    EXPECT_EQ(window(true), log_of{});
}

class io_error : public hints_test, public testing::WithParamInterface<int> {};

// A page whose write-back failed must not be dropped: its only good copy is in memory.
TEST_P(io_error, of_the_file_stops_all_hints_for_good_with_one_message) {
    for (const char* failing : {"start", "finish"}) {
        hints fresh([this](const std::string& line) { said.push_back(line); });
        said.clear();
        tier_view view;
        view.files = {{cold_base, cold_base + 4 * hints::piece_bytes, 7}};
        view.file_base = cold_base;
        view.extents.add(cold_base, cold_base + 2 * hints::piece_bytes);
        fake.fails = failing;
        fake.error = GetParam();
        fake.log.clear();
        end_window(fresh, hot, view, settings_of(switches), true);
        for (const call& made : fake.log) {
            EXPECT_NE(made.name, "drop");
            EXPECT_NE(made.name, "pageout");
        }
        fake.log.clear();
        fake.fails.clear();
        end_window(fresh, hot, view, settings_of(switches), true);
        EXPECT_EQ(fake.log, log_of{});
        EXPECT_TRUE(fresh.done().stopped);
        EXPECT_EQ(fresh.done().failures, 1u);
        ASSERT_EQ(said.size(), 1u);
        EXPECT_NE(said[0].find("no further hints"), std::string::npos) << said[0];
    }
}

INSTANTIATE_TEST_SUITE_P(errors, io_error, testing::Values(EIO, ENOSPC));

TEST_F(hints_test, a_refusal_ends_that_hint_only) {
    cold.extents.add(cold_base, cold_base + 2 * hints::piece_bytes);
    fake.fails = "pageout";
    fake.error = EINVAL;
    window(true);
    EXPECT_EQ(fake.log[0].name, "pageout");
    EXPECT_EQ(fake.log[1].name, "cold");
    EXPECT_EQ(fake.log[2].name, "cold");
    EXPECT_EQ(fake.log.size(), 3u);
    EXPECT_EQ(window(true), log_of{});
    EXPECT_EQ(under_test.done().failures, 1u);
    EXPECT_FALSE(under_test.done().stopped);
    EXPECT_EQ(said.size(), 1u);
}

TEST_F(hints_test, a_passing_failure_is_counted_and_tried_again) {
    cold.extents.add(cold_base, cold_base + page);
    fake.fails = "cold";
    fake.error = EAGAIN;
    window();
    EXPECT_EQ(under_test.done().cold_bytes, 0u);
    fake.fails.clear();
    EXPECT_EQ(window(), (log_of{{"cold", cold_base, page}}));
    EXPECT_EQ(under_test.done().failures, 1u);
    EXPECT_TRUE(said.empty());
}

// What was known of memory is not known after a window without hints: objects were freed, memory was
// filled and touched, and only hints are told.
TEST_F(hints_test, nothing_remembered_outlives_a_window_without_hints) {
    cold.extents.add(cold_base, cold_base + 4 * page);
    hot.extents.add(hot_base, hot_base + huge);
    switches.huge = true;
    EXPECT_EQ(window(true), (log_of{{"pageout", cold_base, 4 * page},
                                    {"hugepage", hot_base, huge},
                                    {"collapse", hot_base, huge}}));
    note_large(cold_base * 2, 8 * page, true);
    large.clear();
    under_test.skip_window(); // the object is freed now, and everything was touched
    EXPECT_EQ(window(true), (log_of{{"pageout", cold_base, 4 * page},
                                    {"hugepage", hot_base, huge},
                                    {"collapse", hot_base, huge}}));
    EXPECT_EQ(under_test.done().failures, 0u);
}

TEST_F(hints_test, large_objects_are_hinted_one_by_one_and_once) {
    constexpr std::uintptr_t large_base = std::uintptr_t{1} << 42;
    const auto report = [&](bool is_cold) { note_large(large_base, 5 * page + 100, is_cold); };
    report(false);
    EXPECT_EQ(window(), log_of{});
    report(true);
    EXPECT_EQ(window(), (log_of{{"cold", large_base, 5 * page}}));
    report(true);
    EXPECT_EQ(window(true), (log_of{{"pageout", large_base, 5 * page}}));
    report(true);
    EXPECT_EQ(window(true), log_of{});
    report(false); // used again, then cold again
    EXPECT_EQ(window(true), log_of{});
    report(true);
    EXPECT_EQ(window(false), (log_of{{"cold", large_base, 5 * page}}));
    EXPECT_EQ(window(true), log_of{}); // not visited by this scan: perhaps gone
}

// A unit that became huge left HOT and came back: it has small pages again.
TEST_F(hints_test, memory_that_left_hot_and_came_back_is_collapsed_again) {
    switches.huge = true;
    hot.extents.add(hot_base, hot_base + 2 * huge);
    window();
    hot.extents.clear();
    hot.extents.add(hot_base + page, hot_base + 2 * huge);
    EXPECT_EQ(window(), log_of{});
    hot.extents.clear();
    hot.extents.add(hot_base, hot_base + 2 * huge);
    EXPECT_EQ(window(), (log_of{{"hugepage", hot_base, huge}, {"collapse", hot_base, huge}}));
}

// What a kernel before 6.1 answers, what one without a free huge page, and what one that is using a
// page just now: no counter shows it, and the first alone is not asked again.
TEST_F(hints_test, units_that_cannot_be_collapsed_are_no_failure) {
    for (const int error : {EINVAL, ENOMEM, EBUSY, EAGAIN}) {
        hints fresh([](const std::string& line) { ADD_FAILURE() << line; });
        const auto collapses = [&](int failing_with) {
            fake = {{}, failing_with == 0 ? "" : "collapse", failing_with, {}};
            tier_view three;
            three.extents.add(hot_base, hot_base + 3 * huge);
            end_window(fresh, three, {}, settings_of({.huge = true}), false);
            return std::count_if(fake.log.begin(), fake.log.end(),
                                 [](const call& c) { return c.name == "collapse"; });
        };
        const bool for_all = error == ENOMEM || error == EBUSY;
        EXPECT_EQ(collapses(error), for_all ? 1 : 3) << error;
        EXPECT_EQ(collapses(0), error == EINVAL ? 0 : 3) << error;
        EXPECT_EQ(fresh.done().collapsed_bytes, error == EINVAL ? 0 : 3 * huge) << error;
        EXPECT_EQ(fresh.done().failures, 0u) << error;
        EXPECT_EQ(fresh.done().huge_bytes, 3 * huge);
    }
}

TEST_F(hints_test, collapsing_pauses_between_huge_pages) {
    switches.huge = true;
    hot.extents.add(hot_base, hot_base + 3 * huge);
    int asked = 0;
    may_continue = [&] { return ++asked <= 2; }; // the advice is one piece, then one huge page
    EXPECT_EQ(window(), (log_of{{"hugepage", hot_base, 3 * huge}, {"collapse", hot_base, huge}}));
    may_continue = {};
    EXPECT_EQ(window(), (log_of{{"collapse", hot_base + huge, huge},
                                {"collapse", hot_base + 2 * huge, huge}}));
}

// Of a tier whose pages are not all cold the kernel is told nothing before they leave.
TEST_F(hints_test, only_cold_tiers_are_advised_as_cold) {
    tier_view warm;
    warm.extents.add(cold_base, cold_base + 4 * page);
    warm.role = {.name = "warm", .reclaimable = true};
    window_view told;
    told.tiers = {tier_view(), warm};
    told.large = {{cold_base * 2, 8 * page, 1, false}};
    under_test.after_window(told, options(), {});
    EXPECT_EQ(fake.log, log_of{});
    told.tiers[1].leaving = warm.extents;
    told.large[0].leaving = true;
    under_test.after_window(told, options(), {});
    EXPECT_EQ(fake.log,
              (log_of{{"pageout", cold_base, 4 * page}, {"pageout", cold_base * 2, 8 * page}}));
}

// Memory that the fake kernel can take away and bring back.
class pages_that_leave {
  public:
    pages_that_leave() {
        EXPECT_EQ(os::commit(memory, bytes), 0);
        std::memset(memory, 1, bytes);
    }
    ~pages_that_leave() { os::release(memory, bytes); }
    pages_that_leave(const pages_that_leave&) = delete;
    pages_that_leave& operator=(const pages_that_leave&) = delete;

    // The fake kernel's part of the work.
    void operator()(const std::string& name, void* at, std::size_t length) const {
        if (name == "pageout") ::madvise(at, length, MADV_DONTNEED);
        if (name != "populate") return;
        const std::uint64_t until = os::monotonic_ns() + delay_ns;
        while (os::monotonic_ns() < until) {
        }
        *static_cast<volatile char*>(at) = 1;
    }

    static constexpr std::size_t bytes = 64 * page;
    char* const memory = static_cast<char*>(os::reserve(bytes, page));
    std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(memory); }
    std::uint64_t delay_ns = 1'000'000;
};

std::size_t calls_named(const std::vector<call>& log, const std::string& name) {
    return static_cast<std::size_t>(
        std::count_if(log.begin(), log.end(), [&](const call& c) { return c.name == name; }));
}

TEST_F(hints_test, the_time_of_a_fault_is_measured) {
    pages_that_leave pages;
    fake.madvised = std::ref(pages);
    cold.extents.add(pages.begin(), pages.begin() + pages.bytes);
    EXPECT_EQ(calls_named(window(true), "populate"), 0u) << "nothing is out yet";
    EXPECT_EQ(under_test.done().paged_out_bytes[2], pages.bytes);
    EXPECT_EQ(under_test.done().fault_seconds[2], 0);

    EXPECT_EQ(calls_named(window(true), "populate"), hints::fault_samples);
    const double first = under_test.done().fault_seconds[2];
    EXPECT_GE(first, 1e-3);
    EXPECT_LE(first, hints::slowest_fault);
    EXPECT_EQ(os::resident_in(pages.memory, pages.bytes), 0u) << "what was sampled left again";
    EXPECT_EQ(under_test.done().fault_seconds[1], 0) << "of another tier";

    pages.delay_ns = 9'000'000;
    window(true);
    const double second = under_test.done().fault_seconds[2];
    EXPECT_GE(second, first + (9e-3 - first) * hints::fault_weight - 1e-9);
    EXPECT_LE(second, first + (hints::slowest_fault - first) * hints::fault_weight) << "slowly";
    fake.madvised = {};
}

TEST_F(hints_test, a_page_that_is_in_memory_is_no_sample) {
    pages_that_leave pages;
    fake.madvised = std::ref(pages);
    cold.extents.add(pages.begin(), pages.begin() + pages.bytes);
    window(true);
    std::memset(pages.memory, 1, pages.bytes); // touched since, by whom is not known
    EXPECT_EQ(calls_named(window(true), "populate"), 0u);
    fake.madvised = {};
}

TEST_F(hints_test, a_kernel_that_cannot_measure_is_asked_once) {
    pages_that_leave pages;
    fake.madvised = std::ref(pages);
    cold.extents.add(pages.begin(), pages.begin() + pages.bytes);
    window(true);
    fake.fails = "populate";
    fake.error = EINVAL;
    window(true);
    EXPECT_GE(calls_named(fake.log, "populate"), 1u);
    EXPECT_EQ(calls_named(window(true), "populate"), 0u);
    EXPECT_EQ(under_test.done().fault_seconds[2], 0);
    EXPECT_EQ(under_test.done().failures, 0u) << "nobody misses it";
    fake.madvised = {};
}

// A page that the kernel could not take is asked for again, and no other.
TEST_F(hints_test, what_stayed_is_asked_to_leave_again) {
    pages_that_leave pages;
    std::uintptr_t kept = pages.begin() + 5 * page;
    fake.madvised = [&](const std::string& name, void* at, std::size_t length) {
        if (name != "pageout") return;
        ::madvise(at, length, MADV_DONTNEED);
        if (kept != 0) *reinterpret_cast<volatile char*>(kept) = 1;
    };
    fake.fails = "populate"; // no samples
    fake.error = EINVAL;
    cold.extents.add(pages.begin(), pages.begin() + pages.bytes);
    EXPECT_EQ(page_outs(), (log_of{{"pageout", pages.begin(), pages.bytes}}));
    EXPECT_EQ(page_outs(), (log_of{{"pageout", kept, page}}));
    EXPECT_EQ(under_test.done().paged_out_bytes[2], pages.bytes - page);
    const std::uintptr_t stayed = std::exchange(kept, 0);
    EXPECT_EQ(page_outs(), (log_of{{"pageout", stayed, page}}));
    EXPECT_EQ(page_outs(), log_of{});
    EXPECT_EQ(under_test.done().paged_out_bytes[2], pages.bytes);
    fake.madvised = {};
}

// In a control group that has no swap nothing leaves, however often it is asked.
TEST_F(hints_test, where_nothing_leaves_it_is_asked_three_times) {
    constexpr std::size_t bytes = 1 << 20;
    char* const memory = static_cast<char*>(os::reserve(bytes, page));
    ASSERT_EQ(os::commit(memory, bytes), 0);
    std::memset(memory, 1, bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    cold.extents.add(begin, begin + bytes);
    const auto all = log_of{{"pageout", begin, bytes}};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(page_outs(), all) << i;
    EXPECT_EQ(page_outs(), log_of{});
    EXPECT_EQ(under_test.done().paged_out_bytes[2], 0u);
    // It is asked for again when it was in use since: three times.
    cold.touched.add(begin, begin + page);
    EXPECT_EQ(page_outs(), log_of{});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(page_outs(), (log_of{{"pageout", begin, page}})) << i;
    EXPECT_EQ(page_outs(), log_of{});
    // And after each use.
    for (int i = 0; i < 5; ++i) {
        cold.touched.add(begin, begin + page);
        EXPECT_EQ(page_outs(), log_of{});
        EXPECT_EQ(page_outs(), (log_of{{"pageout", begin, page}})) << i;
    }
    os::release(memory, bytes);
}

// The real kernel makes the units huge, or leaves them, and keeps their contents.
TEST(hints_on_the_kernel, collapsing_changes_no_byte) {
    constexpr std::size_t bytes = 2 * huge;
    char* const memory = static_cast<char*>(os::reserve(bytes, huge));
    ASSERT_NE(memory, nullptr);
    ASSERT_EQ(os::commit(memory, bytes), 0);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<char>(i * 7 + i / 4096);
    tier_view view;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    view.extents.add(begin, begin + bytes);
    hints real([](const std::string&) {}); // a kernel without huge pages says so
    end_window(real, view, tier_view(), settings_of({.huge = true}), false);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong += memory[i] != static_cast<char>(i * 7 + i / 4096);
    EXPECT_EQ(wrong, 0u);
    os::release(memory, bytes);
}

// The real kernel keeps contents: private and file-backed memory reads the same after every hint.
TEST(hints_on_the_kernel, change_no_byte) {
    constexpr std::size_t bytes = 1 << 20;
    const char* directory = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp";
    for (const bool in_file : {false, true}) {
        char* memory = static_cast<char*>(os::reserve(bytes, os::page_size));
        ASSERT_NE(memory, nullptr);
        tier_view view;
        view.file_base = reinterpret_cast<std::uintptr_t>(memory);
        view.extents.add(view.file_base, view.file_base + bytes);
        if (in_file) {
            int fd = -1;
            if (os::open_temporary_file(directory, &fd) != 0) {
                os::release(memory, bytes);
                GTEST_SKIP() << "no unnamed files in " << directory;
            }
            ASSERT_EQ(os::grow_file(fd, bytes), 0);
            ASSERT_EQ(os::allocate_file(fd, 0, bytes), 0);
            ASSERT_EQ(os::map_file(memory, bytes, fd, 0), 0);
            view.files = {{view.file_base, view.file_base + bytes, fd}};
        } else {
            ASSERT_EQ(os::commit(memory, bytes), 0);
        }
        for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<char>(i * 7 + i / 4096);
        hints real([](const std::string& line) { ADD_FAILURE() << line; });
        end_window(real, tier_view(), view, settings_of({true, true, false}), true);
        EXPECT_EQ(real.done().failures, 0u);
        EXPECT_EQ(real.done().page_out_bytes, bytes);
        EXPECT_EQ(real.done().written_bytes, in_file ? bytes : 0);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            wrong += memory[i] != static_cast<char>(i * 7 + i / 4096);
        }
        EXPECT_EQ(wrong, 0u);
        os::release(memory, bytes);
        if (in_file) os::close_file(view.files[0].fd);
    }
}

// A page of the file to which a pipe holds a reference stays, and leaves in the window after that.
TEST(hints_on_the_kernel, a_page_in_use_by_the_kernel_leaves_later) {
    constexpr std::size_t bytes = 1 << 20;
    const char* directory = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp";
    int fd = -1;
    if (os::open_temporary_file(directory, &fd) != 0)
        GTEST_SKIP() << "no unnamed files in " << directory;
    char* const memory = static_cast<char*>(os::reserve(bytes, page));
    ASSERT_EQ(os::grow_file(fd, bytes), 0);
    ASSERT_EQ(os::allocate_file(fd, 0, bytes), 0);
    ASSERT_EQ(os::map_file(memory, bytes, fd, 0), 0);
    ASSERT_EQ(os::advise(memory, bytes, os::advice::random), 0); // as COLD
    tier_view view;
    view.file_base = reinterpret_cast<std::uintptr_t>(memory);
    view.extents.add(view.file_base, view.file_base + bytes);
    view.files = {{view.file_base, view.file_base + bytes, fd}};
    std::memset(memory, 1, bytes);
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    iovec held = {memory + 7 * page, page};
    ASSERT_EQ(::vmsplice(pipe_ends[1], &held, 1, 0), static_cast<ssize_t>(page));
    hints real([](const std::string& line) { ADD_FAILURE() << line; });
    const auto end_windows = [&](int how_many) {
        for (int i = 0; i < how_many && os::resident_in(memory, bytes) != 0; ++i)
            end_window(real, tier_view(), view, settings_of({true, true, false}), true);
    };
    end_windows(1);
    if (os::resident_in(memory, bytes) == bytes) {
        os::release(memory, bytes);
        os::close_file(fd);
        GTEST_SKIP() << "pages of files in " << directory << " do not leave";
    }
    EXPECT_EQ(os::resident_in(memory + 7 * page, page), page);
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
    end_windows(8); // the sampled pages come and go
    EXPECT_EQ(os::resident_in(memory, bytes), 0u);
    os::release(memory, bytes);
    os::close_file(fd);
}

} // namespace
