// SPDX-License-Identifier: MIT
//
// beginnings: both forms against a set of numbers.
#include "heap/beginnings.hpp"

#include "os/platform.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>

namespace {

using namespace obase;
using beginnings = heap::beginnings<os::native_platform>;

constexpr std::size_t bytes = heap::run_bytes;

struct table {
    std::array<beginnings::word, bytes / heap::granule / 64> bits{};
    std::array<beginnings::byte, bytes / beginnings::place> places{};
};

// Objects of random sizes, one behind the other; and questions about each multiple of 8.
void agrees_with_a_set(const beginnings& of, std::size_t least, std::size_t most, std::size_t unit,
                       std::mt19937_64& random) {
    std::set<std::size_t> model;
    std::uniform_int_distribution<std::size_t> sizes(least / unit, most / unit);
    std::size_t fill = 0;
    for (;;) {
        const std::size_t size = sizes(random) * unit;
        if (fill + size > bytes) break;
        of.set(fill);
        model.insert(fill);
        fill += size;
    }
    for (std::size_t offset = 0; offset < bytes; offset += heap::granule) {
        ASSERT_EQ(of.test(offset), model.contains(offset)) << offset;
        if (offset >= fill) continue;
        const auto found = model.upper_bound(offset);
        for (const std::size_t limit : {fill, fill / 2, bytes}) {
            const std::size_t expected = found == model.end() || *found >= limit ? limit : *found;
            if (offset < limit) {
                ASSERT_EQ(of.next(offset, limit), expected) << offset;
            }
        }
    }
    for (const std::size_t offset : model)
        if (random() % 2 == 0) {
            of.clear(offset);
            ASSERT_FALSE(of.test(offset));
            ASSERT_EQ(of.next(0, offset + heap::granule) == offset, false) << offset;
        } else {
            ASSERT_TRUE(of.test(offset)) << "another one was cleared";
        }
}

TEST(beginnings, of_small_objects_are_bits) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 4; ++round) {
        table t;
        agrees_with_a_set({t.bits.data(), heap::granule}, 8, 504, heap::granule, random);
    }
}

TEST(beginnings, of_large_objects_are_bits) {
    std::mt19937_64 random(2);
    table t;
    agrees_with_a_set({t.bits.data(), heap::large_granule}, 128, 16384, heap::large_granule,
                      random);
    EXPECT_FALSE(beginnings(t.bits.data(), heap::large_granule).test(8));
}

TEST(beginnings, of_middle_objects_are_places) {
    std::mt19937_64 random(3);
    for (const std::size_t most : {512U, 520U, 1040U, 16384U}) {
        table t;
        agrees_with_a_set(beginnings(t.places.data()), 512, most, heap::granule, random);
    }
}

// Objects of three quarters of a page at most, none on two pages.
TEST(beginnings, gaps_end_objects_and_are_none) {
    std::mt19937_64 random(4);
    std::uniform_int_distribution<std::size_t> sizes(512 / heap::granule, 3072 / heap::granule);
    table t;
    const beginnings of(t.places.data());
    std::set<std::size_t> objects, gaps;
    std::size_t fill = 0;
    for (;;) {
        const std::size_t size = sizes(random) * heap::granule;
        if (const std::size_t rest = 4096 - fill % 4096; size > rest) {
            of.set_gap(fill);
            gaps.insert(fill);
            fill += rest;
        }
        if (fill + size > bytes) break;
        of.set(fill);
        objects.insert(fill);
        fill += size;
    }
    ASSERT_GT(gaps.size(), 8U);
    EXPECT_EQ(of.count(fill), objects.size());
    for (std::size_t offset = 0; offset < bytes; offset += heap::granule) {
        ASSERT_EQ(of.test(offset), objects.contains(offset)) << offset;
        const auto object = objects.upper_bound(offset), gap = gaps.upper_bound(offset);
        const std::size_t next =
            std::min(object == objects.end() ? bytes : *object, gap == gaps.end() ? bytes : *gap);
        ASSERT_EQ(of.next(offset, bytes), next) << offset;
    }
    for (const std::size_t gap : gaps) of.clear(gap);
    for (const std::size_t gap : gaps) EXPECT_NE(of.next(gap - heap::granule, bytes), gap);
}

} // namespace
