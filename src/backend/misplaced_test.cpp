// SPDX-License-Identifier: MIT
//
// What is in swap and should not be: of tiers in memory, but for what was told to leave, where the cold tier lies in a file.
#include "backend/misplaced.hpp"

#include "os/memory.hpp"
#include "policy/placement.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace obase;
using namespace obase::backend;

namespace {

constexpr std::size_t page = 4096, run = 16 * page;

struct tiers_in_memory_and_a_file {
    bool in_file = true;

    static char* base(unsigned id) {
        return reinterpret_cast<char*>((std::uintptr_t{1} << 40) + (std::uintptr_t{id} << 36));
    }
    bool file_backed(unsigned id) const { return in_file && id == 2; }
    char* range_begin(unsigned id) const { return base(id); }
    template <class F>
    void for_each_extent(unsigned id, F&& visit) const { // a run each
        visit(base(id), base(id) + run);
    }
    template <class F>
    void for_each_touched_page(unsigned, F&&) const {}
    template <class F>
    void for_each_backing(unsigned, F&&) const {}
};

struct all_leaves final : policy::placement {
    static constexpr policy::tier rows[] = {
        {.name = "new"},
        {.name = "warm", .promoted_to = true, .reclaimable = true},
        {.name = "cold", .reclaimable = true, .cold = true, .file_backed = true}};
    static constexpr policy::tier_table table{rows};
    const policy::tier_table& tiers() const noexcept override { return table; }
    void decide(policy::word_facts&, policy::word_verdict&) noexcept override {}
    policy::directives end_of_window(const policy::window_facts&) noexcept override { return {}; }
    bool leaves(policy::tier_id, const policy::place&) const noexcept override { return true; }
};

// Of each run the first pages are resident.
std::size_t resident_pages = 0;
int some_resident(void*, std::size_t bytes, unsigned char* seen) {
    for (std::size_t i = 0; i < bytes / page; ++i) seen[i] = i < resident_pages;
    return 0;
}

class misplaced : public ::testing::Test {
  protected:
    void SetUp() override {
        calls = os::real_memory_calls();
        calls.mincore = some_resident;
        os::use_memory_calls(&calls);
    }
    void TearDown() override { os::use_memory_calls(nullptr); }
    std::uint64_t bytes(std::uint64_t swapped) const {
        return misplaced_bytes(space, all_leaves::table, log, swapped);
    }

    os::memory_calls calls{};
    tiers_in_memory_and_a_file space;
    window_log log{all_leaves::table};
};

TEST_F(misplaced, is_what_is_missing_of_tiers_in_memory) {
    resident_pages = 10;
    EXPECT_EQ(bytes(UINT64_MAX), 2 * 6 * page) << "of NEW and the warm tier, not of the file";
    EXPECT_EQ(bytes(3 * page), 3 * page) << "no more than is in swap: some never was resident";
    EXPECT_EQ(bytes(0), 0u);
    resident_pages = 16;
    EXPECT_EQ(bytes(UINT64_MAX), 0u);
}

TEST_F(misplaced, is_nothing_where_cold_objects_go_to_swap) {
    resident_pages = 10;
    space.in_file = false;
    EXPECT_EQ(bytes(UINT64_MAX), 0u);
}

TEST_F(misplaced, is_nothing_that_was_told_to_leave) {
    resident_pages = 10;
    all_leaves policy;
    window_view view;
    for (int window = 0; window < 2; ++window) {
        log.end_window(space);
        ASSERT_TRUE(log.view(space, policy, view));
        log.clear();
    }
    ASSERT_EQ(log.out_bytes(1), run);
    EXPECT_EQ(bytes(UINT64_MAX), 6 * page) << "NEW's";
}

} // namespace
