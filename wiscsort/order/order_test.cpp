// SPDX-License-Identifier: MIT
//
// Slices of sorted parts against a merge of all of them; the tournament.
#include "wiscsort/device/directory_test.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/format/key_spec.hpp"
#include "wiscsort/order/entry_sort.hpp"
#include "wiscsort/order/parts.hpp"

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace wiscsort::order {

TEST(SortedParts, AnySliceIsWhatAMergeOfAllHasThere) {
    const record_format format = record_format::parse("fixed:10");
    const key_spec keys({}, format);
    const key_order order(keys, "");
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::vector<entry>> parts(random() % 9);
        std::vector<entry> all;
        std::uint64_t position = 0;
        for (auto& part : parts) {
            for (std::size_t n = random() % 60; n > 0; --n)
                part.push_back({(random() % 3) << entry::position_bits | position++, random() % 4});
            std::sort(part.begin(), part.end());
            all.insert(all.end(), part.begin(), part.end());
        }
        std::sort(all.begin(), all.end());
        std::vector<std::span<const entry>> spans(parts.begin(), parts.end());
        const sorted_parts merged(spans, {&order, {}});
        ASSERT_EQ(merged.size(), all.size());
        const std::uint64_t begin = all.empty() ? 0 : random() % all.size();
        const std::uint64_t count = all.empty() ? 0 : random() % (all.size() - begin + 1);
        std::vector<entry> slice(count);
        merged.merge(begin, count, slice.data());
        ASSERT_TRUE(std::equal(slice.begin(), slice.end(),
                               all.begin() + static_cast<std::ptrdiff_t>(begin)));
        std::uint64_t sum = 0;
        for (const std::uint64_t part : merged.cut(begin)) sum += part;
        ASSERT_EQ(sum, begin);
    }
}

// Somebody writes the mapped input: comparisons contradict what was sorted. It ends, with entries of the parts or an
// error.
TEST(SortedParts, EndWhereKeysChangeMeanwhile) {
    const testing::temporary_directory folder;
    constexpr std::uint64_t size = 20, count = 2000;
    std::mt19937_64 random(5);
    const auto records = [&] {
        std::string bytes(size * count, 'x'); // ten bytes that are alike, and ten that are not
        for (std::uint64_t i = 0; i < count; ++i)
            for (std::uint64_t j = 10; j < size; ++j)
                bytes[i * size + j] = static_cast<char>('a' + random() % 3);
        return bytes;
    };
    const record_format format = record_format::parse("fixed:20");
    const std::string name = folder.write("in", records());
    device::scratch_space scratch({folder.path()});
    const device::input_set input({name}, {format, true}, scratch);
    const key_spec keys({}, format);
    const key_order order(keys, "");
    const entry_less less{&order, {&input, nullptr, 0, 0}};
    int failed = 0;
    for (int round = 0; round < 40; ++round) {
        const std::size_t number = 1 + static_cast<std::size_t>(round) % 5;
        std::vector<std::vector<entry>> parts(number);
        for (std::uint64_t i = 0; i < count; ++i)
            parts[i % number].push_back(
                make_entry({input.base() + i * size, size}, 0, false, i * size));
        for (auto& part : parts) sort_entries(part, less);
        {
            // In place: it stays the file that is mapped.
            std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
            file << records();
        }
        std::vector<std::span<const entry>> spans(parts.begin(), parts.end());
        const sorted_parts merged(spans, less);
        std::vector<entry> slice(count);
        for (std::uint64_t rank = 0; rank < count; rank += 50) {
            slice.assign(count, {UINT64_MAX, UINT64_MAX});
            try {
                merged.merge(rank, count - rank, slice.data());
                for (std::uint64_t i = 0; i < count - rank; ++i)
                    ASSERT_LT(slice[i].position(), size * count);
            } catch (const error& problem) {
                ++failed;
                EXPECT_NE(std::string(problem.what()).find("was changed"), std::string::npos);
            }
        }
    }
    EXPECT_GT(failed, 0);
}

} // namespace wiscsort::order
