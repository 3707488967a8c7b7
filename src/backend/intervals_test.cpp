// SPDX-License-Identifier: MIT
//
// intervals against a set of bits: after any additions in any order every operation agrees with the
// same operation on bits, and the representation keeps its invariant.
#include "backend/intervals.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bitset>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

using obase::backend::interval;
using obase::backend::intervals;

namespace {

constexpr std::size_t universe = 256;
using bits = std::bitset<universe>;
using additions = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

intervals build(const additions& from) {
    intervals made;
    for (const auto& [begin, end] : from) made.add(begin, end);
    return made;
}

bits model(const additions& from) {
    bits made;
    for (const auto& [begin, end] : from) {
        for (std::uintptr_t at = begin; at < end; ++at) made.set(at);
    }
    return made;
}

bits as_bits(const intervals& set) {
    bits made;
    for (const interval& item : set.items()) {
        for (std::uintptr_t at = item.begin; at < item.end; ++at) made.set(at);
    }
    return made;
}

bool well_formed(const intervals& set) {
    const intervals::list& items = set.items();
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].begin >= items[i].end) return false;
        if (i > 0 && items[i - 1].end >= items[i].begin) return false;
    }
    return true;
}

additions some() {
    const auto position = rc::gen::inRange<std::uintptr_t>(0, universe);
    return *rc::gen::container<additions>(rc::gen::pair(position, position));
}

RC_GTEST_PROP(intervals, agree_with_bits, ()) {
    const additions a = some(), b = some();
    const intervals x = build(a), y = build(b);
    const bits p = model(a), q = model(b);
    RC_ASSERT(well_formed(x));
    RC_ASSERT(as_bits(x) == p);
    RC_ASSERT(x.bytes() == p.count());
    RC_ASSERT(x.empty() == p.none());
    for (const auto& [set, expected] :
         {std::pair{x.united(y), p | q}, {x.without(y), p & ~q}, {x.common(y), p & q}}) {
        RC_ASSERT(well_formed(set));
        RC_ASSERT(as_bits(set) == expected);
    }
}

// Two areas filled in turns, as the mover does with two sizes, are two intervals, and take the memory of few.
TEST(intervals, that_grow_in_turns_take_little_memory) {
    intervals set;
    constexpr std::uintptr_t step = 64, calls = 100'000, second = std::uintptr_t{1} << 32;
    for (std::uintptr_t i = 0; i < calls; ++i) {
        set.add(i * step, (i + 1) * step);
        set.add(second + i * step, second + (i + 1) * step);
    }
    EXPECT_EQ(set.items(), (intervals::list{{0, calls * step}, {second, second + calls * step}}));
    EXPECT_LE(set.items().capacity(), 4096u);
    // What does not join is kept.
    for (std::uintptr_t i = calls; i > 0; --i) set.add(2 * i * step, 2 * i * step + 1);
    EXPECT_EQ(set.items().size(), 2 + calls / 2);
    EXPECT_LE(set.items().capacity(), 4 * calls);
    set.clear();
    EXPECT_LE(set.items().capacity(), 4096u);
}

RC_GTEST_PROP(intervals, rounding_agrees_with_bits, ()) {
    const additions a = some();
    const std::size_t unit = std::size_t{1} << *rc::gen::inRange(0, 6);
    const intervals x = build(a);
    const bits p = model(a);
    bits in, out;
    for (std::size_t block = 0; block < universe; block += unit) {
        std::size_t set = 0;
        for (std::size_t at = block; at < block + unit; ++at) set += p[at];
        for (std::size_t at = block; at < block + unit; ++at) {
            in[at] = set == unit;
            out[at] = set > 0;
        }
    }
    RC_ASSERT(as_bits(x.rounded_in(unit)) == in);
    RC_ASSERT(as_bits(x.rounded_out(unit)) == out);
    RC_ASSERT(well_formed(x.rounded_in(unit)));
    RC_ASSERT(well_formed(x.rounded_out(unit)));
}

TEST(intervals, additions_in_order_extend_the_last_one) {
    intervals set;
    for (std::uintptr_t at = 0; at < 100; at += 10) set.add(at, at + 10);
    EXPECT_EQ(set.items(), (intervals::list{{0, 100}}));
    set.clear();
    EXPECT_TRUE(set.empty());
    EXPECT_EQ(set.bytes(), 0u);
}

TEST(intervals, rounding_in_at_the_end_of_the_address_space_does_not_wrap) {
    constexpr std::uintptr_t last = std::numeric_limits<std::uintptr_t>::max();
    intervals set;
    set.add(last - 10, last);
    EXPECT_TRUE(set.rounded_in(4096).empty());
}

} // namespace
