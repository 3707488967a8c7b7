// SPDX-License-Identifier: MIT
//
// What a backend is told: views of all tiers, and what the policy asks to leave, page by page.
#include "backend/window_log.hpp"

#include "backend/backends.hpp"
#include "policy/three_temperatures.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

using namespace obase;
using namespace obase::backend;

namespace {

constexpr std::size_t page = 4096, run = 16 * page;
constexpr std::uintptr_t bases[] = {std::uintptr_t{1} << 40, std::uintptr_t{1} << 41,
                                    std::uintptr_t{1} << 42};

using stretches = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>; // offsets

// As heap::space, with what the test puts into it.
struct small_space {
    std::map<unsigned, stretches> extents, touched, files;

    static char* at(std::uintptr_t address) { return reinterpret_cast<char*>(address); }
    char* range_begin(unsigned id) const { return at(bases[id]); }
    template <class F>
    static void walk(const std::map<unsigned, stretches>& all, unsigned id, F&& visit) {
        if (const auto found = all.find(id); found != all.end())
            for (const auto& [begin, end] : found->second)
                visit(at(bases[id] + begin), at(bases[id] + end));
    }
    struct class_counters {
        std::size_t extent_bytes = 0;
    };
    class_counters counters(unsigned id) const {
        class_counters made;
        for_each_extent(id, [&](const char* begin, const char* end) {
            made.extent_bytes += static_cast<std::size_t>(end - begin);
        });
        return made;
    }
    template <class F>
    void for_each_extent(unsigned id, F&& visit) const {
        walk(extents, id, visit);
    }
    template <class F>
    void for_each_touched_page(unsigned id, F&& visit) const {
        walk(touched, id, visit);
    }
    template <class F>
    void for_each_backing(unsigned id, F&& visit) const {
        walk(files, id, [&](char* begin, char* end) { visit(begin, end, 9); });
    }
};

// Asks pages from one age on to leave.
struct by_age final : policy::placement {
    static constexpr policy::tier rows[] = {
        {.name = "new"}, {.name = "a", .promoted_to = true}, {.name = "b", .reclaimable = true}};
    static constexpr policy::tier_table table{rows};
    unsigned from = 2;
    const policy::tier_table& tiers() const noexcept override { return table; }
    void decide(policy::word_facts&, policy::word_verdict&) noexcept override {}
    policy::directives end_of_window(const policy::window_facts&) noexcept override { return {}; }
    bool leaves(policy::tier_id id, const policy::place& piece) const noexcept override {
        return id == 2 && piece.idle_windows >= from;
    }
};

struct window_log_test : testing::Test {
    window_view end_window(std::uint64_t may_leave = UINT64_MAX, bool early = false) {
        window_view view;
        log.end_window(space, early);
        EXPECT_TRUE(log.view(space, policy, view, may_leave));
        log.clear();
        return view;
    }
    static stretches offsets(const intervals& set, unsigned id) {
        stretches found;
        for (const interval& one : set.items())
            found.emplace_back(one.begin - bases[id], one.end - bases[id]);
        return found;
    }
    by_age policy;
    small_space space;
    window_log log{by_age::table};
};

TEST_F(window_log_test, views_hold_what_the_heaps_report) {
    space.extents[1] = {{0, run}};
    space.extents[2] = {{run, 3 * run}};
    space.touched[2] = {{2 * run, 3 * run}};
    space.files[2] = {{0, 4 * run}};
    log.note_filled(2, small_space::at(bases[2] + run + 100), 8);
    const window_view view = end_window();
    ASSERT_EQ(view.tiers.size(), 3u);
    EXPECT_TRUE(view.tiers[1].role.promoted_to);
    EXPECT_EQ(offsets(view.tiers[1].extents, 1), (stretches{{0, run}}));
    EXPECT_TRUE(view.tiers[1].files.empty());
    EXPECT_EQ(offsets(view.tiers[2].extents, 2), (stretches{{run, 3 * run}}));
    EXPECT_EQ(offsets(view.tiers[2].touched, 2), (stretches{{2 * run, 3 * run}}));
    EXPECT_EQ(offsets(view.tiers[2].filled, 2), (stretches{{run + 100, run + 108}}));
    EXPECT_EQ(view.tiers[2].file_base, bases[2]);
    ASSERT_EQ(view.tiers[2].files.size(), 1u);
    EXPECT_EQ(view.tiers[2].files[0].fd, 9);
    EXPECT_TRUE(end_window().tiers[2].filled.empty()) << "filled in that window only";
}

TEST_F(window_log_test, the_policy_is_asked_by_tier_and_place) {
    space.extents[1] = {{0, run}};
    space.extents[2] = {{4096, 2 * run}, {3 * run, 3 * run + 8192}};
    EXPECT_TRUE(end_window().tiers[2].leaving.empty());
    space.touched[2] = {{run + page, run + 3 * page}};
    const window_view view = end_window();
    EXPECT_EQ(offsets(view.tiers[2].leaving, 2),
              (stretches{{page, run + page}, {run + 3 * page, 2 * run}, {3 * run, 3 * run + 8192}}))
        << "of a run with a touch all but the page that was touched";
    EXPECT_TRUE(view.tiers[1].leaving.empty());
    policy.from = 3;
    space.touched.clear();
    EXPECT_EQ(
        offsets(end_window().tiers[2].leaving, 2),
        (stretches{{page, run + page}, {run + 3 * page, 2 * run}, {3 * run, 3 * run + 8192}}));
}

TEST_F(window_log_test, ages_are_kept_of_reclaimable_tiers) {
    space.extents[1] = space.extents[2] = {{0, run}};
    end_window();
    end_window();
    EXPECT_EQ(log.ages(1).age(3), 0u);
    EXPECT_EQ(log.ages(2).age(3), 2u);
    EXPECT_EQ(log.ages(2).window().pages[2], 16u);
}

// What the mover has filled is in memory, however long it had been out.
TEST_F(window_log_test, a_filled_page_leaves_when_it_is_old_enough_again) {
    space.extents[2] = {{0, run}};
    for (int i = 0; i < 5; ++i) end_window();
    log.note_filled(2, small_space::at(bases[2] + 2 * page + 5), 2 * page);
    EXPECT_EQ(offsets(end_window().tiers[2].leaving, 2),
              (stretches{{0, 2 * page}, {5 * page, run}}));
    EXPECT_EQ(offsets(end_window().tiers[2].leaving, 2), (stretches{{0, run}}));
}

TEST_F(window_log_test, says_what_is_out) {
    space.extents[2] = {{0, 3 * run}};
    end_window();
    EXPECT_FALSE(log.page_out(2, 0));
    space.touched[2] = {{0, page}, {run, run + 9 * page}};
    end_window();
    EXPECT_FALSE(log.page_out(2, 0)) << "touched";
    EXPECT_TRUE(log.page_out(2, 1));
    EXPECT_TRUE(log.run_out(2, 0));
    EXPECT_FALSE(log.run_out(2, 1)) << "7 of 16 pages";
    EXPECT_TRUE(log.page_out(2, 16 + 9));
    EXPECT_TRUE(log.run_out(2, 2));
    EXPECT_FALSE(log.run_out(2, 3));
    EXPECT_FALSE(log.page_out(2, 48));
    EXPECT_FALSE(log.page_out(1, 1));
    log.forget_out();
    EXPECT_FALSE(log.page_out(2, 1));
    EXPECT_FALSE(log.run_out(2, 2));
}

TEST_F(window_log_test, says_whether_most_of_a_tier_is_out) {
    EXPECT_FALSE(log.mostly_out(space, 2)) << "of nothing";
    space.extents[2] = {{0, 2 * run}};
    end_window();
    space.touched[2] = {{0, run}};
    end_window();
    EXPECT_EQ(log.out_bytes(2), run);
    EXPECT_FALSE(log.mostly_out(space, 2)) << "half of it";
    space.touched[2] = {{0, run - page}};
    end_window();
    end_window();
    EXPECT_TRUE(log.mostly_out(space, 2)) << log.out_bytes(2);
}

TEST_F(window_log_test, large_objects_are_asked_for_in_their_role) {
    const auto* at = small_space::at(std::uintptr_t{1} << 43);
    log.note_large(at, 20'000, 2, 5);
    log.note_large(at + 65536, 30'000, 2, 1);
    log.note_large(at + 2 * 65536, 40'000, 1, 9);
    const window_view view = end_window();
    ASSERT_EQ(view.large.size(), 3u);
    EXPECT_EQ(view.large[0].begin, std::uintptr_t{1} << 43);
    EXPECT_EQ(view.large[0].bytes, 20'000u);
    EXPECT_TRUE(view.large[0].leaving);
    EXPECT_FALSE(view.large[1].leaving);
    EXPECT_EQ(view.large[2].role, 1u);
    EXPECT_FALSE(view.large[2].leaving);
    EXPECT_TRUE(end_window().large.empty());
}

// A budget: oldest first, at the lowest addresses, and what is out already does not count.
TEST_F(window_log_test, no_more_leaves_than_may) {
    space.extents[2] = {{0, 2 * run}};
    end_window();
    space.touched[2] = {{0, 4 * page}};
    end_window(0);
    space.touched.clear();
    end_window(0);
    EXPECT_TRUE(end_window(0).tiers[2].leaving.empty());
    EXPECT_EQ(log.out_bytes(2), 0u);
    EXPECT_EQ(offsets(end_window(2 * page).tiers[2].leaving, 2), (stretches{{4 * page, 6 * page}}))
        << "those touched last stay";
    EXPECT_EQ(log.out_bytes(2), 2 * page);
    EXPECT_EQ(offsets(end_window(page - 1).tiers[2].leaving, 2), (stretches{{4 * page, 7 * page}}));
    EXPECT_EQ(offsets(end_window(0).tiers[2].leaving, 2), (stretches{{4 * page, 7 * page}}))
        << "what is out stays out";
    space.touched[2] = {{5 * page, 6 * page}};
    EXPECT_EQ(offsets(end_window(0).tiers[2].leaving, 2),
              (stretches{{4 * page, 5 * page}, {6 * page, 7 * page}}));
    space.touched.clear();
    EXPECT_EQ(offsets(end_window(26 * page).tiers[2].leaving, 2),
              (stretches{{0, page}, {4 * page, 5 * page}, {6 * page, 2 * run}}))
        << "what was touched last is last";
    EXPECT_EQ(offsets(end_window().tiers[2].leaving, 2), (stretches{{0, 2 * run}}));
}

// Until it is touched or the mover writes to it, whatever the policy asks for then.
TEST_F(window_log_test, what_is_out_is_known) {
    space.extents[2] = {{0, run}};
    end_window();
    end_window();
    EXPECT_EQ(log.out_bytes(2), run);
    policy.from = 200;
    EXPECT_TRUE(end_window().tiers[2].leaving.empty());
    EXPECT_EQ(log.out_bytes(2), run);
    space.touched[2] = {{0, page}};
    end_window(UINT64_MAX, true);
    EXPECT_EQ(log.out_bytes(2), run - page);
    space.touched.clear();
    log.note_filled(2, small_space::at(bases[2] + 3 * page + 5), page);
    end_window(UINT64_MAX, true);
    EXPECT_EQ(log.out_bytes(2), run - 3 * page);
    space.extents[2] = {{0, 8 * page}};
    end_window();
    EXPECT_EQ(log.out_bytes(2), 5 * page);
}

TEST_F(window_log_test, large_objects_leave_whole_while_any_may) {
    const auto* at = small_space::at(std::uintptr_t{1} << 43);
    const auto window = [&](std::uint64_t may_leave, unsigned idle = 5) {
        log.note_large(at, 20'000, 2, 2);
        log.note_large(at + 65536, 20'000, 2, idle);
        log.note_large(at + 2 * 65536, 20'000, 2, 3);
        const window_view view = end_window(may_leave);
        return view.large[0].leaving * 100 + view.large[1].leaving * 10 + view.large[2].leaving;
    };
    EXPECT_EQ(window(0), 0);
    EXPECT_EQ(window(1), 10);
    EXPECT_EQ(window(0), 10) << "it is out";
    EXPECT_EQ(window(20'000), 11) << "that one is out, and counts for nothing";
    EXPECT_EQ(window(0, 0), 1) << "in use";
    EXPECT_EQ(window(0), 1);
    EXPECT_EQ(window(UINT64_MAX), 111);
}

// They are asked, for who knows, but take nothing of what pages may leave instead.
TEST_F(window_log_test, large_objects_that_cannot_leave_do_not_count) {
    space.extents[2] = {{0, run}};
    for (int i = 0; i < 2; ++i) end_window(0);
    log.end_window(space, false);
    log.note_large(small_space::at(std::uintptr_t{1} << 43), 20'000, 2, 200);
    window_view view;
    EXPECT_TRUE(log.view(space, policy, view, page, false));
    EXPECT_TRUE(view.large[0].leaving);
    EXPECT_EQ(offsets(view.tiers[2].leaving, 2), (stretches{{0, page}}));
}

TEST(backends, are_made_by_name) {
    std::string why;
    EXPECT_NE(make_backend("kernel", {}, &why), nullptr);
    EXPECT_EQ(make_backend("kernels", {}, &why), nullptr);
    EXPECT_EQ(why,
              "backend (OBASE_BACKEND): there is no 'kernels'; there are: " + backends().names());
    EXPECT_NE(backends().find("kernel"), nullptr);
    EXPECT_EQ(backends().find(""), nullptr);
}

} // namespace
