// SPDX-License-Identifier: MIT
//
// Of how many neighbours the objects are used together.
#include "policy/co_access.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <random>

using obase::policy::co_access;

namespace {

// Words of 64 slots in groups, of which each is used with the chance `used`, and its members then with the chance `of_all`;
// expected is what that makes of a slot, times `wrong`.
struct load {
    unsigned group = 1;
    double used = .2;
    double of_all = 1;
    double wrong = 1;
    unsigned slots = 64;
};
void window(co_access& together, const load& what, std::mt19937& random, unsigned words = 200) {
    std::uniform_real_distribution<double> unit;
    for (unsigned word = 0; word < words; ++word) {
        std::array<double, 64> residual, deviation;
        bool used = false;
        const double expected = what.used * what.of_all * what.wrong;
        for (unsigned i = 0; i < what.slots; ++i) {
            if (i % what.group == 0) used = unit(random) < what.used;
            residual[i] = (used && unit(random) < what.of_all) - expected;
            deviation[i] = std::sqrt(expected * (1 - expected));
        }
        together.note(residual.data(), deviation.data(), what.slots);
    }
    together.end_window();
}
unsigned block_after(const load& what, unsigned windows = 10, unsigned words = 200) {
    co_access together;
    std::mt19937 random(1);
    for (; windows > 0; --windows) window(together, what, random, words);
    return together.block();
}

TEST(co_access, knows_nothing_at_first) {
    EXPECT_EQ(co_access().block(), 1u);
    co_access together;
    together.end_window();
    EXPECT_EQ(together.block(), 1u);
}

// Blocks of the size of a group, or smaller, would do; larger ones would not.
TEST(co_access, says_which_blocks_would_do) {
    co_access together;
    std::mt19937 random(1);
    EXPECT_FALSE(together.knows());
    for (int w = 0; w < 10; ++w) window(together, {.group = 16}, random);
    EXPECT_TRUE(together.knows());
    EXPECT_EQ(together.block(), 16u);
    for (const unsigned block : {2u, 8u, 16u}) EXPECT_TRUE(together.joins(block)) << block;
    for (const unsigned block : {32u, 64u}) EXPECT_FALSE(together.joins(block)) << block;
    co_access apart;
    for (int w = 0; w < 10; ++w) window(apart, {}, random);
    EXPECT_TRUE(apart.knows());
    EXPECT_FALSE(apart.joins(2));
    EXPECT_TRUE(apart.joins(1));
}

// What is found in two words is chance.
TEST(co_access, little_says_nothing) {
    int found = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        co_access one;
        std::mt19937 random(seed);
        window(one, {}, random, 2);
        found += one.block() != 1;
    }
    std::printf("%d of 400\n", found);
    EXPECT_LT(found, 100);
}

TEST(co_access, objects_that_are_used_by_themselves_are_no_block) {
    for (const double used : {.01, .2, .8}) EXPECT_EQ(block_after({.used = used}), 1u) << used;
}

TEST(co_access, finds_how_many_are_used_together) {
    for (const unsigned group : {2u, 4u, 8u, 16u, 32u, 64u})
        for (const double of_all : {1., .5, .2})
            EXPECT_EQ(block_after({.group = group, .of_all = of_all}, 20, 2000), group) << of_all;
}

// Groups that are no power of two: blocks of which most have one group.
TEST(co_access, takes_blocks_within_odd_groups) {
    const unsigned of_three = block_after({.group = 3}, 20);
    EXPECT_GE(of_three, 2u);
    EXPECT_LE(of_three, 4u);
    const unsigned of_twenty = block_after({.group = 20}, 20);
    EXPECT_GE(of_twenty, 8u);
    EXPECT_LE(of_twenty, 16u);
}

// More is used of all than was expected.
TEST(co_access, what_all_have_in_common_does_not_count) {
    for (const double wrong : {.5, 2.}) EXPECT_EQ(block_after({.wrong = wrong}), 1u) << wrong;
    EXPECT_EQ(block_after({.group = 8, .wrong = .5}, 20), 8u);
}

TEST(co_access, follows_a_load_that_changes) {
    co_access together;
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) window(together, {.group = 16}, random);
    EXPECT_EQ(together.block(), 16u);
    for (int i = 0; i < 60; ++i) window(together, {}, random);
    EXPECT_EQ(together.block(), 1u);
}

// Words of nodes have fewer slots than bits.
TEST(co_access, blocks_end_with_their_words) {
    EXPECT_EQ(block_after({.group = 10, .slots = 10}, 20), 8u);
}

} // namespace
