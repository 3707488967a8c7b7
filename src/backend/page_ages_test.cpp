// SPDX-License-Identifier: MIT
//
// How old pages are, and what a window shows of all of them.
#include "backend/page_ages.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <vector>

using namespace obase;
using namespace obase::backend;

namespace {

constexpr std::uintptr_t base = std::uintptr_t{1} << 40;
constexpr std::size_t page = page_ages::page_bytes;
constexpr unsigned oldest = policy::reuse_ages::oldest;

// As heap::space, in pages.
struct pages_of_a_tier {
    using stretches = std::vector<std::pair<std::size_t, std::size_t>>;
    stretches extents, touched;
    // After a look at the extents these are: births go on meanwhile.
    stretches later;

    static char* at(std::size_t number) { return reinterpret_cast<char*>(base + number * page); }
    char* range_begin(unsigned) const { return at(0); }
    template <class F>
    void for_each_extent(unsigned, F&& visit) const {
        const stretches now = later.empty() || !looked ? extents : later;
        looked = true;
        for (const auto& [first, last] : now) visit(at(first), at(last));
    }
    mutable bool looked = false;
    template <class F>
    void for_each_touched_page(unsigned, F&& visit) const {
        for (const auto& [first, last] : touched) visit(at(first), at(last));
    }
};

struct page_ages_test : testing::Test {
    void end_window(pages_of_a_tier::stretches touched = {}, const intervals& filled = {}) {
        tier.touched = std::move(touched);
        ages.end_window(tier, 3, filled);
    }
    void end_early_window(pages_of_a_tier::stretches touched = {}, const intervals& filled = {}) {
        tier.touched = std::move(touched);
        ages.end_window(tier, 3, filled, true);
    }
    static intervals filling(std::size_t first, std::size_t last) {
        intervals made;
        made.add(base + first * page + 8, base + last * page - 8);
        return made;
    }
    const policy::reuse_ages& seen() const { return ages.window(); }

    pages_of_a_tier tier;
    page_ages ages;
};

// Property: what is born while a window ends has no age before the next one.
TEST_F(page_ages_test, pages_that_come_meanwhile_wait_for_the_next_window) {
    tier.extents = {{0, 4}};
    tier.later = {{0, 4}, {6, 4096}};
    tier.looked = false;
    end_window();
    EXPECT_EQ(seen().pages[0] + seen().pages[1], 4u);
    tier.extents = std::exchange(tier.later, {});
    end_window();
    std::uint64_t all = 0;
    for (const auto pages : seen().pages) all += pages;
    EXPECT_EQ(all, 4094u);
}

TEST_F(page_ages_test, count_windows_without_a_touch) {
    tier.extents = {{0, 4}};
    end_window({{1, 2}});
    EXPECT_EQ(ages.age(0), 1u);
    EXPECT_EQ(ages.age(1), 0u);
    end_window({{2, 4}});
    EXPECT_EQ(ages.age(0), 2u);
    EXPECT_EQ(ages.age(1), 1u);
    EXPECT_EQ(ages.age(2), 0u);
    EXPECT_EQ(ages.age(9), 0u) << "there is none";
    for (unsigned i = 0; i < oldest + 9; ++i) end_window();
    EXPECT_EQ(ages.age(0), oldest);
    EXPECT_EQ(seen().pages[oldest], 4u);
    EXPECT_EQ(seen().exposed[oldest], 4u);
}

TEST_F(page_ages_test, a_touch_is_counted_at_the_age_that_the_page_had) {
    tier.extents = {{0, 8}};
    end_window({{0, 8}});
    EXPECT_EQ(seen().exposed, policy::reuse_ages().exposed) << "new pages were not watched";
    EXPECT_EQ(seen().pages[0], 8u);
    end_window();
    end_window({{0, 2}});
    EXPECT_EQ(seen().touched[1], 2u);
    EXPECT_EQ(seen().exposed[1], 8u);
    EXPECT_EQ(seen().pages[0], 2u);
    EXPECT_EQ(seen().pages[2], 6u);
    end_window({{0, 3}});
    EXPECT_EQ(seen().touched[0], 2u);
    EXPECT_EQ(seen().exposed[0], 2u);
    EXPECT_EQ(seen().touched[2], 1u);
    EXPECT_EQ(seen().exposed[2], 6u);
    EXPECT_EQ(seen().pages[3], 5u);
    EXPECT_EQ(seen().exposed[1], 0u) << "of this window only";
}

TEST_F(page_ages_test, a_page_that_held_nothing_is_new_again) {
    tier.extents = {{0, 3}};
    for (int i = 0; i < 5; ++i) end_window();
    tier.extents = {{0, 1}, {2, 3}};
    end_window({{1, 2}});
    EXPECT_EQ(seen().pages[6], 2u);
    EXPECT_EQ(seen().pages[0], 0u) << "a touch before it was freed";
    tier.extents = {{0, 3}};
    end_window();
    EXPECT_EQ(ages.age(0), 7u);
    EXPECT_EQ(ages.age(1), 1u);
    tier.extents = {{0, 1}};
    end_window();
    EXPECT_EQ(seen().pages[8], 1u);
    EXPECT_EQ(seen().exposed[7], 1u);
    tier.extents = {};
    end_window();
    EXPECT_EQ(seen().pages, policy::reuse_ages().pages);
}

TEST_F(page_ages_test, what_the_mover_wrote_to_is_in_memory) {
    tier.extents = {{0, 6}};
    for (int i = 0; i < 5; ++i) end_window();
    end_window({{1, 2}}, filling(1, 4));
    EXPECT_EQ(ages.age(0), 6u);
    EXPECT_EQ(ages.age(1), 0u) << "also touched";
    EXPECT_EQ(ages.age(2), 1u);
    EXPECT_EQ(ages.age(3), 1u);
    EXPECT_EQ(ages.age(4), 6u);
    EXPECT_EQ(seen().touched[5], 1u);
    EXPECT_EQ(seen().exposed[5], 6u) << "they were watched before";
    EXPECT_EQ(seen().pages[1], 2u);
    end_window({}, filling(5, 60)); // beyond the extents, too
    EXPECT_EQ(ages.age(5), 1u);
}

TEST_F(page_ages_test, early_windows_make_no_page_older) {
    tier.extents = {{0, 4}};
    end_window();
    end_window();
    for (int i = 0; i < 5; ++i) end_early_window({{1, 2}}, filling(3, 4));
    EXPECT_EQ(ages.age(0), 2u);
    EXPECT_EQ(ages.age(1), 0u);
    EXPECT_EQ(ages.age(3), 1u);
    EXPECT_EQ(seen().pages[2], 2u);
    end_window();
    EXPECT_EQ(ages.age(0), 3u);
}

TEST_F(page_ages_test, what_early_windows_saw_touched_counts_in_the_next) {
    tier.extents = {{0, 4}};
    for (int i = 0; i < 3; ++i) end_window();
    end_early_window({{0, 1}});
    end_early_window({{0, 2}});
    EXPECT_EQ(seen().pages[0], 2u) << "both are young";
    EXPECT_EQ(ages.age(0), 0u);
    end_window({{1, 3}});
    EXPECT_EQ(seen().touched[3], 3u);
    EXPECT_EQ(seen().exposed[3], 4u);
    EXPECT_EQ(seen().exposed[0], 0u) << "each page once";
    EXPECT_EQ(seen().pages[0], 3u) << "touched in the window that ended";
    EXPECT_EQ(seen().pages[4], 1u);
    end_window();
    EXPECT_EQ(seen().touched[3], 0u) << "of that window only";
    EXPECT_EQ(seen().exposed[0], 3u);
    EXPECT_EQ(seen().pages[1], 3u);
}

TEST_F(page_ages_test, stretches_are_of_one_age_and_run) {
    tier.extents = {{2, 5}, {14, 33}};
    end_window({{15, 17}});
    std::vector<std::tuple<std::size_t, std::size_t, unsigned>> found;
    ages.for_each_stretch(base, [&](std::uintptr_t begin, std::uintptr_t end, unsigned age) {
        found.emplace_back((begin - base) / page, (end - base) / page, age);
    });
    EXPECT_EQ(found,
              (decltype(found){
                  {2, 5, 1}, {14, 15, 1}, {15, 16, 0}, {16, 17, 0}, {17, 32, 1}, {32, 33, 1}}));
    ages.clear();
    ages.for_each_stretch(base, [](auto...) { FAIL(); });
}

} // namespace
