// SPDX-License-Identifier: MIT
//
// Slices of sorted parts against a merge of all of them; the tournament.
#include "wiscsort/format/key_spec.hpp"
#include "wiscsort/order/parts.hpp"

#include <algorithm>
#include <random>
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

} // namespace wiscsort::order
