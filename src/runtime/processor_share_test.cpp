// SPDX-License-Identifier: MIT
//
// For how long the collector sleeps.
#include "runtime/processor_share.hpp"

#include <gtest/gtest.h>

using obase::runtime_internal::processor_share;

namespace {

constexpr double share = 0.25;
constexpr std::uint64_t step = 100'000; // ns

// Works in steps, and sleeps when it is told to, until it has used `work`. The time that takes.
std::uint64_t time_for(processor_share& pace, std::uint64_t& cpu, std::uint64_t& now,
                       std::uint64_t work) {
    const std::uint64_t began = now, end = cpu + work;
    while (cpu < end) {
        cpu += step;
        now += step;
        const double owed = pace.owed(cpu, now, share);
        if (owed >= processor_share::worth_a_sleep) now += static_cast<std::uint64_t>(owed);
    }
    return now - began;
}

TEST(processor_share, is_kept) {
    processor_share pace;
    std::uint64_t cpu = 7'000'000, now = 1'000'000'000;
    pace.begin(cpu, now);
    const std::uint64_t took = time_for(pace, cpu, now, 100 * step);
    EXPECT_NEAR(static_cast<double>(took), 100 * step / share, processor_share::worth_a_sleep);
    EXPECT_EQ(pace.used(cpu), 100 * step);
}

// A wait for a scope, or a process that was stopped: no turn of a length that grows with it follows.
TEST(processor_share, that_was_not_used_is_not_made_up_for) {
    processor_share pace;
    std::uint64_t cpu = 0, now = 0;
    pace.begin(cpu, now);
    now += 1'000'000'000;
    const std::uint64_t took = time_for(pace, cpu, now, 100 * step);
    EXPECT_GE(static_cast<double>(took), 100 * step / share - processor_share::most_credit -
                                             2 * processor_share::worth_a_sleep);
}

// Short waits count: else a thread that also waits would stay far below its share.
TEST(processor_share, that_was_not_used_for_a_moment_counts) {
    processor_share pace;
    std::uint64_t cpu = 0, now = 0;
    pace.begin(cpu, now);
    now += static_cast<std::uint64_t>(processor_share::most_credit);
    cpu += static_cast<std::uint64_t>(processor_share::most_credit * share);
    EXPECT_LE(pace.owed(cpu, now, share), 0);
}

TEST(processor_share, begins_anew) {
    processor_share pace;
    pace.begin(0, 0);
    EXPECT_GT(pace.owed(50'000'000, 50'000'000, share), 0);
    pace.begin(50'000'000, 50'000'000);
    EXPECT_EQ(pace.owed(50'000'000, 50'000'000, share), 0);
    EXPECT_EQ(pace.used(50'000'000), 0u);
}

} // namespace
