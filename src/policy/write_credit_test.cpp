// SPDX-License-Identifier: MIT
//
// What may be written: a limit's share of the time, not saved up without end, and paid back.
#include "policy/write_credit.hpp"

#include <gtest/gtest.h>

using obase::policy::write_credit;

namespace {

TEST(write_credit, grows_with_the_time_and_is_spent) {
    write_credit credit(1);
    EXPECT_EQ(credit.bytes(), 0u);
    credit.earn(100, 2, 10);
    EXPECT_EQ(credit.bytes(), 200u);
    credit.spend(150);
    EXPECT_EQ(credit.bytes(), 50u);
    credit.forget();
    EXPECT_EQ(credit.bytes(), 0u);
}

TEST(write_credit, is_kept_for_two_windows) {
    write_credit credit(1);
    for (int window = 0; window < 5; ++window) credit.earn(100, 10, 10);
    EXPECT_EQ(credit.bytes(), 2'000u);
}

TEST(write_credit, is_kept_until_the_largest_object_can_be_written) {
    write_credit credit(5'000);
    for (int window = 0; window < 10; ++window) credit.earn(100, 10, 10);
    EXPECT_EQ(credit.bytes(), 5'000u);
}

TEST(write_credit, pays_back_what_was_written_beyond_it) {
    write_credit credit(1);
    credit.earn(100, 10, 10);
    credit.spend(1'500);
    EXPECT_EQ(credit.bytes(), 0u);
    credit.earn(100, 10, 10);
    EXPECT_EQ(credit.bytes(), 500u);
    credit.spend(1'000);
    credit.forget(); // debts, too
    credit.earn(100, 1, 10);
    EXPECT_EQ(credit.bytes(), 100u);
}

} // namespace
