// SPDX-License-Identifier: MIT
//
// What faults cost, on cases whose answers are known by arithmetic.
#include "tools/ycsb/fault_counts.hpp"

#include <gtest/gtest.h>

namespace {

using namespace obase::tools;

TEST(fault_counts, tell_share_and_stall_of_all_operations) {
    fault_counts counts;
    EXPECT_EQ(counts.share(), 0);
    EXPECT_EQ(counts.stall_ns(), 0);
    // One of eight was looked at.
    counts.operations = 80;
    for (int i = 0; i < 8; ++i) counts.note(0, 500);
    counts.note(1, 10'500);
    counts.note(3, 30'500);
    EXPECT_DOUBLE_EQ(counts.share(), .2);
    EXPECT_DOUBLE_EQ(counts.major_faults_per_operation(), .4);
    EXPECT_DOUBLE_EQ(counts.major_faults_of_all(), 32);
    EXPECT_DOUBLE_EQ(counts.stall_ns(), 40'000 * 8) << "what they took beyond 500 each";
}

TEST(fault_counts, of_a_window_are_the_difference) {
    fault_counts before;
    before.operations = 10;
    before.note(1, 1000);
    fault_counts now = before;
    now.operations = 12;
    now.note(0, 10);
    now.note(2, 5000);
    const fault_counts window = now.since(before);
    EXPECT_EQ(window.operations, 2U);
    EXPECT_DOUBLE_EQ(window.share(), .5);
    EXPECT_DOUBLE_EQ(window.major_faults_of_all(), 2);
    EXPECT_DOUBLE_EQ(window.stall_ns(), 4990);
    fault_counts sum = before;
    sum.add(window);
    EXPECT_EQ(sum.operations, now.operations);
    EXPECT_DOUBLE_EQ(sum.stall_ns(), now.stall_ns());
}

} // namespace
