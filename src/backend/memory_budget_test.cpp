// SPDX-License-Identifier: MIT
//
// How much a process may take, and how much it is over that.
#include "backend/memory_budget.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace obase::backend;

namespace {

using obase::parse_memory_limit;

memory_budget budget_by(const char* option, const memory_use& use) {
    return budget_of(parse_memory_limit(option).value(), use);
}

constexpr std::uint64_t mib = 1 << 20;

TEST(memory_budget, of_nothing_is_none) {
    const memory_budget none = budget_by("none", {.process = 100 * mib, .machine = mib});
    EXPECT_EQ(none.allowed, 0u);
    EXPECT_TRUE(std::isinf(none.excess()));
    EXPECT_LT(none.excess(), 0);
    EXPECT_EQ(none.may_grow(), UINT64_MAX);
    EXPECT_EQ(current_budget("nonsense").allowed, 0u);
}

TEST(memory_budget, in_bytes_is_of_the_process) {
    const memory_use use{.process = 100 * mib, .machine = 8000 * mib, .group_charged = 9000 * mib};
    EXPECT_EQ(budget_by("60M", use).excess(), 40. * mib);
    EXPECT_EQ(budget_by("60M", use).may_grow(), 0u);
    EXPECT_EQ(budget_by("160M", use).excess(), -60. * mib) << "it may grow";
    EXPECT_EQ(budget_by("180M", use).may_grow(), 90 * mib) << "a little beyond the budget";
}

TEST(memory_budget, in_percent_is_of_the_smaller_of_limit_and_machine) {
    memory_use use{.process = 100 * mib, .machine = 800 * mib};
    EXPECT_EQ(budget_by("10%", use).excess(), 20. * mib);
    use.group_limit = 400 * mib;
    EXPECT_EQ(budget_by("10%", use).excess(), 60. * mib);
}

TEST(memory_budget, of_the_group_is_shared_by_its_processes) {
    memory_use use{.process = 300 * mib, .machine = 8000 * mib, .group_charged = 1000 * mib};
    EXPECT_EQ(budget_by("cgroup", use).allowed, 0u) << "no limit";
    use.group_limit = 1000 * mib;
    EXPECT_NEAR(budget_by("cgroup", use).excess(), 30. * mib, 1);
    EXPECT_EQ(budget_by("cgroup", use).may_grow(), 0u);
    use.group_limit = 2000 * mib;
    EXPECT_NEAR(budget_by("cgroup", use).excess(), -240. * mib, 1);
    EXPECT_NEAR(static_cast<double>(budget_by("cgroup", use).may_grow()), 270. * mib, 1)
        << "up to .95 of the limit";
    use.process = 1200 * mib; // with pages that others are charged for
    EXPECT_NEAR(budget_by("cgroup", use).excess(), -800. * mib, 1);
}

TEST(memory_budget, says_how_much_may_leave) {
    const auto may_leave = [](const char* option, std::uint64_t used, std::uint64_t pressed = 0) {
        return budget_by(option, {.process = used, .machine = mib}).may_leave(pressed);
    };
    EXPECT_EQ(may_leave("none", 100 * mib), UINT64_MAX);
    EXPECT_EQ(may_leave("64M", 32 * mib), 0u) << "there is room";
    EXPECT_EQ(may_leave("64M", 64 * mib), 0u);
    EXPECT_EQ(may_leave("64M", 66 * mib), 3 * mib) << "what is over it, and a 64th of it";
    EXPECT_EQ(may_leave("64M", 66 * mib, 5 * mib), UINT64_MAX) << "threads wait";
    EXPECT_EQ(may_leave("64M", 60 * mib, 5 * mib), UINT64_MAX);
    EXPECT_EQ(may_leave("64M", 32 * mib, 5 * mib), 0u) << "what the window freed is enough";
    memory_use group{.process = 250 * mib, .group_charged = 1000 * mib, .group_limit = 1000 * mib};
    EXPECT_NEAR(static_cast<double>(budget_by("cgroup", group).may_leave(0)),
                (100 + 900. / 64) * mib / 4, 1)
        << "the share of the process";
}

// What the kernel has put into swap is no room for others, and counts for the process.
TEST(memory_budget, what_is_misplaced_is_used) {
    memory_use use{.process = 100 * mib, .misplaced = 30 * mib, .machine = 800 * mib};
    EXPECT_EQ(budget_by("110M", use).excess(), 20. * mib);
    EXPECT_EQ(budget_by("20%", use).excess(), -30. * mib);
    EXPECT_EQ(budget_by("none", use).used, 0u);
    use.group_charged = 470 * mib;
    use.group_limit = 500 * mib;
    EXPECT_NEAR(budget_by("cgroup", use).excess(), 50. * mib * 130 / 500, 1);
}

TEST(memory_budget, says_what_may_come_back) {
    EXPECT_EQ(budget_by("none", {}).may_return(0, .1), UINT64_MAX);
    EXPECT_EQ(budget_by("72M", {.process = 40 * mib}).may_return(0, 1. / 36), 34 * mib)
        << "there is room, and a part beyond it";
    EXPECT_EQ(budget_by("72M", {.process = 40 * mib}).may_return(0, .5), 36 * mib)
        << "what may grow";
    // Pages of files that are in use count in the process's own use, so what is in them may take their place.
    const memory_budget own = budget_by("64M", {.process = 80 * mib});
    EXPECT_EQ(own.may_return(0, 1. / 16), 0u);
    EXPECT_EQ(own.may_return(3 * mib, 1. / 16), 3 * mib);
    EXPECT_EQ(own.may_return(30 * mib, 1. / 16), 4 * mib);
    memory_use group{.process = 80 * mib, .group_charged = 80 * mib, .group_limit = 80 * mib};
    EXPECT_EQ(budget_by("cgroup", group).may_return(30 * mib, 1. / 16), 0u) << "they do not count";
    group.group_charged = 72 * mib;
    EXPECT_NEAR(static_cast<double>(budget_by("cgroup", group).may_return(0, 1. / 64)),
                72. / 64 * mib, 2)
        << "at the budget";
}

TEST(memory_budget, says_what_changes_places) {
    const memory_budget all = budget_by("64M", {.process = 70 * mib});
    EXPECT_EQ(all.exchange(-1e9, 0, 1. / 16), 0u);
    EXPECT_EQ(all.exchange(6. * mib, 0, 1. / 16), 6 * mib) << "what is still over the budget";
    EXPECT_EQ(all.exchange(-1e9, 3 * mib, 1. / 16), 3 * mib) << "as much as found no room";
    EXPECT_EQ(all.exchange(6. * mib, 100 * mib, 1. / 16), 10 * mib) << "but no more than a 16th";
    EXPECT_EQ(budget_by("none", {}).exchange(6. * mib, mib, 1), 0u);
    const memory_use group{
        .process = 250 * mib, .group_charged = 1000 * mib, .group_limit = 1280 * mib};
    EXPECT_NEAR(static_cast<double>(budget_by("cgroup", group).exchange(0, 999 * mib, 1. / 16)),
                1280 * mib * .9 / 16 / 4, 2)
        << "the share of the process";
}

TEST(memory_budget, reads_what_there_is) {
    EXPECT_EQ(current_budget("none").allowed, 0u);
    EXPECT_EQ(current_budget("1M").allowed, mib);
    EXPECT_GT(current_budget("1M").excess(), 0);
    const memory_use use = gather_memory_use(obase::memory_limit::of::percent);
    EXPECT_GT(use.process, 0u);
    EXPECT_GT(use.machine, use.process);
    EXPECT_GT(use.group_limit, 0u);
}

} // namespace
