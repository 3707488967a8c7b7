// SPDX-License-Identifier: MIT
#include "policy/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace obase::policy {

namespace {

constexpr std::uint64_t ms = 1'000'000;
const auto any_run = [](std::uint32_t) { return true; };

std::vector<std::uint32_t> next_of(turns& control, std::uint32_t end) {
    std::vector<std::uint32_t> chosen;
    control.next(end, any_run, chosen);
    if (!chosen.empty()) control.opened();
    return chosen;
}

tracked_run cold_run(std::uint32_t number, double uses_per_second) {
    return {.number = number,
            .windows = 5,
            .objects = 100,
            .objects_begun = 100,
            .live_bytes = 20'000,
            .cold_bytes = 18'000,
            .uses_per_second = uses_per_second};
}

TEST(turns, each_run_has_its_turn) {
    turns control({});
    std::vector<unsigned> had(100);
    for (int tick = 0; tick < 50; ++tick) {
        for (const std::uint32_t run : next_of(control, 100)) ++had[run];
        control.pass(100 * ms, 10'000'000); // too dear: the batch stays small
        control.pass(1'000'000 * ms, 0);    // and is paid for
    }
    const auto [least, most] = std::minmax_element(had.begin(), had.end());
    EXPECT_GE(*least, 1U);
    EXPECT_LE(*most - *least, 1U);
}

TEST(turns, what_was_not_wanted_is_asked_again) {
    turns control({});
    std::vector<std::uint32_t> chosen;
    control.next(10, [](std::uint32_t run) { return run % 2 == 0; }, chosen);
    EXPECT_EQ(chosen, (std::vector<std::uint32_t>{0, 2, 4, 6, 8}));
    chosen.clear();
    control.next(10, any_run, chosen);
    EXPECT_EQ(chosen.size(), 10U);
}

TEST(turns, batches_grow_while_they_cost_little_and_shrink_when_they_cost_much) {
    turns control({.share = 0.01, .translation_ns = 10});
    std::size_t before = control.batch();
    while (before < turns::most_batch) {
        (void)next_of(control, 100'000);
        control.pass(100 * ms, 1000); // 10 us of 1 ms
        ASSERT_EQ(control.batch(), std::min(2 * before, turns::most_batch));
        before = control.batch();
    }
    control.pass(100 * ms, 1000);
    EXPECT_EQ(control.batch(), turns::most_batch) << "none was opened, so nothing was learnt";
    for (int i = 0; i < 10; ++i) control.pass(100 * ms, 150'000); // 1.5 ms of 1
    EXPECT_EQ(control.batch(), turns::least_batch);
}

// The share holds in the long run, however dear a batch turns out.
TEST(turns, what_took_more_than_its_share_is_paid_for_first) {
    turns control({.share = 0.01, .translation_ns = 10});
    control.pass(100 * ms, 0);
    EXPECT_GT(control.may_open(), 0U);
    control.pass(100 * ms, 1'000'000); // 10 ms where 1 was earned
    EXPECT_EQ(control.may_open(), 0U);
    EXPECT_TRUE(next_of(control, 100).empty());
    unsigned ticks = 0;
    for (; control.may_open() == 0; ++ticks) control.pass(100 * ms, 0);
    EXPECT_GE(ticks, 8U);
    EXPECT_LE(ticks, 9U);
}

TEST(turns, a_long_idle_time_earns_no_more_than_a_burst) {
    turns control({.share = 0.01, .translation_ns = 10, .most_credit_ns = 5e6});
    control.pass(3600 * 1000 * ms, 0);
    control.pass(0, 600'000); // 6 ms
    EXPECT_EQ(control.may_open(), 0U);
}

TEST(turns, the_price_is_the_measured_one) {
    turns control({.share = 0.01, .translation_ns = 6});
    control.set_price(200);
    EXPECT_DOUBLE_EQ(control.price_of(1e6), 0.2);
    control.pass(100 * ms, 6000); // 1.2 ms where 1 was earned; at 6 ns it were .04
    EXPECT_EQ(control.may_open(), 0U);
}

TEST(turns, a_run_is_ready_when_enough_of_it_is_cold) {
    turns control({.least_gain = 0.25, .word_bytes = 10});
    tracked_run run = cold_run(1, 0);
    EXPECT_EQ(control.judge(run, 10), turns::verdict::is_ready);
    run.cold_bytes = 6'000; // what its words take is more than the rest
    EXPECT_EQ(control.judge(run, 10), turns::verdict::is_ready);
    run.cold_bytes = 5'999;
    EXPECT_EQ(control.judge(run, 10), turns::verdict::goes_on);
    run.windows = 10;
    EXPECT_EQ(control.judge(run, 10), turns::verdict::ends);
}

TEST(turns, a_turn_ends_where_objects_die) {
    turns control({.most_freed = 0.125});
    tracked_run run = cold_run(1, 0);
    run.objects = 88;
    EXPECT_EQ(control.judge(run, 10), turns::verdict::is_ready);
    run.objects = 87;
    EXPECT_EQ(control.judge(run, 10), turns::verdict::ends);
    run.objects = run.objects_begun = 0;
    EXPECT_EQ(control.judge(run, 10), turns::verdict::ends);
}

TEST(turns, the_least_used_leave_first_and_no_more_than_uses_may_cost) {
    turns control({.leaves = 0.015, .translation_ns = 10});
    // .01, .004, .002, 0 of the program's time
    std::vector<tracked_run> ready{cold_run(1, 1e6), cold_run(2, 4e5), cold_run(3, 2e5),
                                   cold_run(4, 0)};
    ready[1].cold_bytes /= 4; // .016 for the memory that the others give
    control.admit(ready, 0);
    ASSERT_EQ(ready.size(), 3U);
    EXPECT_EQ(ready[0].number, 4U);
    EXPECT_EQ(ready[1].number, 3U);
    EXPECT_EQ(ready[2].number, 1U);
    control.admit(ready, 0.0145);
    ASSERT_EQ(ready.size(), 1U);
    EXPECT_EQ(ready[0].number, 4U);
    control.admit(ready, 0.016);
    EXPECT_TRUE(ready.empty());
}

TEST(turns, rests_double_and_end) {
    turns control({});
    std::uint32_t expected = turns::least_rest;
    for (int i = 0; i < 10; ++i) {
        control.rest(7);
        std::uint32_t windows = 0;
        for (; control.rests(7); ++windows) control.end_of_window();
        EXPECT_EQ(windows, expected);
        expected = std::min(2 * expected, turns::longest_rest);
    }
    control.rest(9, turns::rest_of_used);
    std::vector<std::uint32_t> chosen;
    control.next(10, any_run, chosen);
    EXPECT_EQ(std::count(chosen.begin(), chosen.end(), 9U), 0);
    EXPECT_EQ(chosen.size(), 9U);
}

TEST(turns, a_run_is_seen_enough_by_as_many_uses_as_it_has_objects) {
    EXPECT_EQ(turns::enough(3), turns::least_seen);
    EXPECT_EQ(turns::enough(1000), 1000U);
}

} // namespace

} // namespace obase::policy
