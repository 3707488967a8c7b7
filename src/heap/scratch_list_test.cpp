// SPDX-License-Identifier: MIT
#include "heap/scratch_list.hpp"

#include "os/process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace {

using namespace obase;
using list = heap::scratch_list<std::uint64_t>;

TEST(scratch_list, keeps_what_is_in_it_when_it_grows) {
    list numbers;
    EXPECT_TRUE(numbers.empty());
    ASSERT_TRUE(numbers.reserve(3));
    for (std::uint64_t i = 0; i < 3; ++i) numbers.push_back(i);
    ASSERT_TRUE(numbers.reserve(10'000));
    EXPECT_GE(numbers.capacity(), 10'000U);
    for (std::uint64_t i = 3; i < 10'000; ++i) numbers.push_back(i);
    ASSERT_EQ(numbers.size(), 10'000U);
    for (std::uint64_t i = 0; i < 10'000; ++i) ASSERT_EQ(numbers[i], i);
    numbers.clear();
    EXPECT_EQ(numbers.begin(), numbers.end());
    EXPECT_GE(numbers.capacity(), 10'000U);
}

TEST(scratch_list, moves) {
    list numbers;
    ASSERT_TRUE(numbers.reserve(1));
    numbers.push_back(7);
    list other = std::move(numbers);
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0], 7U);
    numbers = std::move(other);
    EXPECT_EQ(numbers[0], 7U);
}

TEST(scratch_list, begins_with_zeros_whatever_it_was_used_for) {
    constexpr std::size_t count = 3000;
    list numbers;
    ASSERT_TRUE(numbers.reserve(count));
    for (int round = 0; round < 2; ++round) {
        numbers.assign_zero(count);
        EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(), [](auto n) { return n == 0; }));
        std::fill(numbers.begin(), numbers.end(), 1);
    }
    numbers.clear();
    for (std::size_t i = 0; i < 10; ++i) numbers.push_back(2);
    numbers.assign_zero(count);
    EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(), [](auto n) { return n == 0; }));
}

// Property: what an allocator would keep goes back.
TEST(scratch_list, gives_its_memory_back) {
    constexpr std::size_t count = std::size_t{4} << 20, bytes = count * sizeof(std::uint64_t);
    list numbers;
    ASSERT_TRUE(numbers.reserve(count));
    const std::uint64_t before = os::resident_bytes();
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(i);
    EXPECT_GE(os::resident_bytes(), before + bytes / 8 * 7);
    numbers.clear();
    numbers.release();
    EXPECT_LE(os::resident_bytes(), before + bytes / 8);
    EXPECT_TRUE(numbers.reserve(count));
    EXPECT_LE(os::resident_bytes(), before + bytes / 8) << "reserve() maps it, no more";
}

} // namespace
