// SPDX-License-Identifier: MIT
//
// The checker accepts what some order explains and rejects what none does.
#include "testing/linearizability.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace {

using operation = obase::testing::key_operation;
using history = std::vector<obase::testing::timed<operation>>;
using obase::testing::key_state;
using obase::testing::linearizable;

operation put(std::uint64_t value, bool is_new) { return {operation::put, is_new, 0, value}; }
operation get(std::uint64_t value) { return {operation::get, true, value, 0}; }
operation get_nothing() { return {operation::get, false, 0, 0}; }
operation erase(bool there) { return {operation::erase, there, 0, 0}; }
operation modify(std::uint64_t seen, std::uint64_t stored) {
    return {operation::modify, true, seen, stored};
}

TEST(linearizability, one_after_the_other) {
    EXPECT_TRUE(linearizable(key_state{}, history{}));
    EXPECT_TRUE(linearizable(key_state{}, history{{1, 2, get_nothing()},
                                                  {3, 4, put(7, true)},
                                                  {5, 6, get(7)},
                                                  {7, 8, modify(7, 8)},
                                                  {9, 10, put(9, false)},
                                                  {11, 12, erase(true)},
                                                  {13, 14, erase(false)}}));
}

TEST(linearizability, a_read_may_go_before_or_after_what_it_overlaps) {
    EXPECT_TRUE(linearizable(key_state{}, history{{1, 4, put(7, true)}, {2, 3, get_nothing()}}));
    EXPECT_TRUE(linearizable(key_state{}, history{{1, 4, put(7, true)}, {2, 3, get(7)}}));
}

TEST(linearizability, rejects_a_stale_read) {
    EXPECT_FALSE(linearizable(key_state{}, history{{1, 2, put(7, true)}, {3, 4, get_nothing()}}));
    EXPECT_FALSE(linearizable(key_state{1}, history{{1, 2, put(7, false)}, {3, 4, get(1)}}));
}

TEST(linearizability, rejects_two_reads_that_go_back) {
    EXPECT_FALSE(
        linearizable(key_state{1}, history{{1, 8, put(7, false)}, {2, 3, get(7)}, {4, 5, get(1)}}));
    EXPECT_TRUE(
        linearizable(key_state{1}, history{{1, 8, put(7, false)}, {2, 5, get(7)}, {3, 4, get(1)}}));
}

TEST(linearizability, rejects_a_lost_increment) {
    EXPECT_FALSE(linearizable(key_state{0}, history{{1, 3, modify(0, 1)}, {2, 4, modify(0, 1)}}));
    EXPECT_TRUE(linearizable(key_state{0}, history{{1, 3, modify(0, 1)}, {2, 4, modify(1, 2)}}));
}

TEST(linearizability, rejects_two_winners) {
    EXPECT_FALSE(linearizable(key_state{1}, history{{1, 3, erase(true)}, {2, 4, erase(true)}}));
    EXPECT_FALSE(linearizable(key_state{}, history{{1, 3, put(1, true)}, {2, 4, put(2, true)}}));
    EXPECT_TRUE(linearizable(
        key_state{}, history{{1, 5, put(1, true)}, {2, 6, put(2, true)}, {3, 4, erase(true)}}));
}

TEST(linearizability, rejects_a_write_to_what_was_erased) {
    // The modification returns true after the erasure did, and the key is there again.
    EXPECT_FALSE(linearizable(key_state{1},
                              history{{1, 2, erase(true)}, {3, 4, modify(1, 2)}, {5, 6, get(2)}}));
    EXPECT_FALSE(linearizable(key_state{1},
                              history{{1, 4, modify(1, 2)}, {2, 3, erase(true)}, {5, 6, get(2)}}));
}

TEST(linearizability, says_where_a_history_may_end) {
    const history two{{1, 3, put(5, false)}, {2, 4, put(6, false)}};
    obase::testing::linearizability_search<key_state, operation> search(two);
    EXPECT_EQ(search.final_states(key_state{1}), (std::set<key_state>{5, 6}));
}

// Against the definition: all orders are tried, those that respect time are replayed.
TEST(linearizability, agrees_with_the_definition_on_small_histories) {
    std::uint64_t x = 88172645463325252u;
    const auto random = [&](std::uint64_t n) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        return x % n;
    };
    unsigned accepted = 0;
    for (int round = 0; round < 4000; ++round) {
        history h(2 + random(4));
        std::vector<std::uint64_t> times(2 * h.size());
        std::iota(times.begin(), times.end(), 1);
        for (std::size_t i = times.size() - 1; i > 0; --i)
            std::swap(times[i], times[random(i + 1)]);
        for (std::size_t i = 0; i < h.size(); ++i) {
            h[i].call = std::min(times[2 * i], times[2 * i + 1]);
            h[i].returned = std::max(times[2 * i], times[2 * i + 1]);
            h[i].what = {static_cast<operation::kind>(random(5)), random(2) == 0, random(2),
                         random(2)};
        }
        std::vector<std::size_t> order(h.size());
        std::iota(order.begin(), order.end(), 0);
        bool expected = false;
        do {
            bool fits = true;
            key_state state;
            for (std::size_t i = 0; i < order.size() && fits; ++i) {
                for (std::size_t j = i + 1; j < order.size(); ++j)
                    fits = fits && h[order[j]].returned > h[order[i]].call;
                fits = fits && h[order[i]].what.apply(state);
            }
            expected = expected || fits;
        } while (std::next_permutation(order.begin(), order.end()));
        ASSERT_EQ(linearizable(key_state{}, h), expected) << to_text(h);
        accepted += expected;
    }
    EXPECT_GT(accepted, 100u);
    EXPECT_LT(accepted, 3900u);
}

} // namespace
