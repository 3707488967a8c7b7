// SPDX-License-Identifier: MIT
#include "policy/fragmentation.hpp"
#include "policy/used_runs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace obase::policy {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint32_t run = 65536;

TEST(fragmentation, begins_above_one_bound_and_ends_at_the_other) {
    fragmentation control({.start = 1.5, .stop = 1.1});
    EXPECT_FALSE(control.wants({100 * mib, 149 * mib}));
    EXPECT_TRUE(control.wants({100 * mib, 151 * mib}));
    EXPECT_TRUE(control.wants({100 * mib, 120 * mib})); // on as it was
    EXPECT_FALSE(control.wants({100 * mib, 110 * mib}));
    EXPECT_FALSE(control.wants({100 * mib, 120 * mib})); // and off as it was
    EXPECT_FALSE(control.wants({100, 1000}));            // too little to care
}

TEST(fragmentation, chooses_the_emptiest_and_no_more_than_it_takes) {
    fragmentation control({.start = 1.5, .stop = 1.2});
    const std::vector<run_to_gather> all{
        {5, run / 2, run}, {3, run / 8, run}, {9, run, run}, {1, run / 8, run}, {7, run / 4, run}};
    auto runs = all;
    control.choose(runs, 100, {100 * run, 10'000 * run});
    ASSERT_EQ(runs.size(), 4U); // not the full one; in the order of addresses
    EXPECT_EQ(runs[0].number, 1U);
    EXPECT_EQ(runs[1].number, 3U);
    EXPECT_EQ(runs[3].number, 7U);
    runs = all;
    control.choose(runs, 2, {100 * run, 10'000 * run});
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[1].number, 3U);
    runs = all;
    control.choose(runs, 100, {100 * run, 121 * run}); // one is enough, and a bit of the second
    EXPECT_EQ(runs.size(), 2U);
    runs = all;
    control.choose(runs, 100, {100 * run, 119 * run});
    EXPECT_EQ(runs.size(), 0U);
}

TEST(fragmentation, what_was_in_use_rests_longer_each_time) {
    fragmentation control({.start = 1.5, .stop = 1.2});
    const auto chosen = [&] {
        std::vector<run_to_gather> runs{{1, run / 8, run}};
        control.choose(runs, 100, {100 * run, 10'000 * run});
        return !runs.empty();
    };
    std::vector<unsigned> waits;
    for (int times = 0; times < 4; ++times) {
        EXPECT_EQ(control.is_stubborn(1), times >= 3);
        control.refused(1);
        unsigned rounds = 0;
        while (!chosen()) {
            control.end_of_round();
            ++rounds;
        }
        waits.push_back(rounds);
    }
    EXPECT_EQ(waits, (std::vector<unsigned>{1, 2, 4, 8}));
    control.moved(1);
    EXPECT_FALSE(control.is_stubborn(1));
}

TEST(fragmentation, what_was_used_too_often_rests_longer_each_time) {
    fragmentation control({.start = 1.5, .stop = 1.2});
    const auto rounds_at_rest = [&] {
        control.used_too_often(3);
        for (int rounds = 0;; ++rounds) {
            std::vector<run_to_gather> runs{{3, 1000, 60000}};
            control.choose(runs, 10, {1000, 60000});
            if (!runs.empty()) return rounds;
            control.end_of_round();
        }
    };
    EXPECT_EQ(rounds_at_rest(), 16);
    control.moved(3);
    EXPECT_EQ(rounds_at_rest(), 32);
    EXPECT_FALSE(control.is_stubborn(3));
}

TEST(used_runs, the_most_used_come_home_until_half_the_bound_is_left) {
    const used_runs control({.share = .1, .translation_ns = 10});
    const auto of = [&](std::vector<used_run> runs, std::size_t most = 10) {
        control.choose(runs, 10'000, most); // 1000 ns, so 100 uses
        std::string numbers;
        for (const used_run& r : runs) numbers += std::to_string(r.number) + " ";
        return numbers;
    };
    EXPECT_EQ(of({{1, 40}, {2, 30}, {3, 30}}), "") << "100 uses are allowed";
    EXPECT_EQ(of({{1, 20}, {2, 60}, {3, 25}}), "2 ");
    EXPECT_EQ(of({{1, 20}, {2, 31}, {3, 60}}), "3 2 ");
    EXPECT_EQ(of({{1, 500}, {2, 600}, {3, 700}}, 2), "3 2 ");
    EXPECT_EQ(of({}), "");
}

TEST(fragmentation, takes_its_share_of_a_processor) {
    EXPECT_EQ(fragmentation({.share = 0.25}).rest_ns(1000, 0), 4000U); // earns what it took
    EXPECT_EQ(fragmentation({.share = 0.25}).rest_ns(1000, 1000), 3000U);
    EXPECT_EQ(fragmentation({.share = 1.0}).rest_ns(1000, 1000), 0U);
    fragmentation slow({.share = 0.25, .burst = 0.1, .ns_per_byte = 1}); // no less than its share
    slow.wants({8000, 8000});
    EXPECT_EQ(slow.rest_ns(1000, 0), 3000U);
}

TEST(fragmentation, what_was_not_taken_is_taken_later) {
    fragmentation control({.share = 0.1, .burst = 0.5, .ns_per_byte = 1});
    EXPECT_EQ(control.rest_ns(1000, 10'000), 1000U); // half a processor; nothing is saved or owed
    EXPECT_EQ(control.rest_ns(0, 20'000), 0U);       // of no memory nothing is saved
    EXPECT_EQ(control.rest_ns(1000, 0), 10'000U);
    EXPECT_EQ(control.rest_ns(0, 10'000), 0U);
    control.wants({3000, 3000}); // to move 3000 bytes, in advance
    for (int i = 0; i < 3; ++i) EXPECT_EQ(control.rest_ns(1000, 0), 1000U);
    EXPECT_EQ(control.rest_ns(1000, 0), 10'000U); // and no more
    control.wants({3000, 3000});
    EXPECT_EQ(control.rest_ns(1000, 10'000), 10'000U); // they are not new
    EXPECT_EQ(control.rest_ns(0, 1'000'000), 0U);      // 3000 are saved
    EXPECT_EQ(control.rest_ns(3000, 0), 3000U);
    EXPECT_EQ(control.rest_ns(500, 0), 5000U);
    control.wants({3000, 3400}); // 400 are new
    EXPECT_EQ(control.rest_ns(0, 0), 1000U);
}

// Whatever the load, no more than the share and what was saved before.
TEST(fragmentation, its_share_holds_in_the_long_run) {
    fragmentation control({.share = 0.1, .burst = 0.5});
    std::uint64_t elapsed = 0, worked = 0, rest = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const std::uint64_t work = i * 7919 % 5000;
        worked += work;
        elapsed += work + rest;
        rest = control.rest_ns(work, work + rest);
        EXPECT_LE(static_cast<double>(worked), .1 * static_cast<double>(elapsed + rest) + 1);
    }
    EXPECT_GT(static_cast<double>(worked), .09 * static_cast<double>(elapsed));
}

} // namespace
} // namespace obase::policy
