// SPDX-License-Identifier: MIT
//
// choices: the table finds what was put in under its whole name, refuses a second row of a name and
// one row too many, and says what there is.
#include "options/choices.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace {

using maker = int (*)();
int one() { return 1; }
int two() { return 2; }

TEST(choices, are_found_by_their_whole_names) {
    const obase::choices<maker> table{{"papers", one}, {"paper", two}};
    EXPECT_EQ(table.find("papers"), &one);
    EXPECT_EQ(table.find("paper"), &two);
    for (const char* absent : {"", "pape", "papers ", "Papers", "paper, papers"})
        EXPECT_EQ(table.find(absent), nullptr) << absent;
}

TEST(choices, keep_the_first_of_two_rows_of_one_name) {
    obase::choices<maker> table{{"papers", one}};
    EXPECT_FALSE(table.add("papers", two));
    EXPECT_EQ(table.find("papers"), &one);
    EXPECT_TRUE(table.add("own", two));
    EXPECT_EQ(table.find("papers"), &one);
    EXPECT_EQ(table.find("own"), &two);
    EXPECT_EQ(table.names(), "papers, own");
}

TEST(choices, refuse_a_row_for_which_there_is_no_room) {
    obase::choices<maker> table{};
    static constexpr std::array<const char*, 8> names{"a", "b", "c", "d", "e", "f", "g", "h"};
    for (const char* name : names) EXPECT_TRUE(table.add(name, one)) << name;
    EXPECT_FALSE(table.add("i", two));
    EXPECT_EQ(table.find("i"), nullptr);
    for (const char* name : names) EXPECT_EQ(table.find(name), &one) << name;
}

TEST(choices, say_what_there_is) {
    const obase::choices<maker> none{};
    EXPECT_EQ(none.names(), "");
    const obase::choices<maker> table{{"papers", one}, {"own", two}};
    EXPECT_EQ(table.unknown("nine"), "there is no 'nine'; there are: papers, own");
}

} // namespace
