// SPDX-License-Identifier: MIT
#include "tools/workload/key_format.hpp"

#include "tools/workload/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using workload::key_id_limit;
using workload::key_order;

std::string key(std::size_t size, std::uint64_t id, key_order order = key_order::hashed) {
    std::string text(size, '?');
    workload::write_key(text, id, order);
    return text;
}

TEST(KeyFormat, YcsbKeysAreItsHashPaddedWithZeros) {
    EXPECT_EQ(key(30, 0), "user00000006284781860667377211");
    EXPECT_EQ(key(24, 1), "user08517097267634966620");
    EXPECT_EQ(key(24, ~std::uint64_t{0}, key_order::by_id), "user18446744073709551615");
    EXPECT_EQ(key(30, 4711, key_order::by_id), "user00000000000000000000004711");
}

RC_GTEST_PROP(KeyFormat, DecimalIsWhatToStringSays, (std::uint64_t id)) {
    const auto padded = [](std::uint64_t number) {
        const std::string text = std::to_string(number);
        return "user" + std::string(26 - text.size(), '0') + text;
    };
    RC_ASSERT(key(30, id) == padded(workload::ycsb_hash(id)));
    RC_ASSERT(key(30, id, key_order::by_id) == padded(id));
}

TEST(KeyFormat, ShortKeysAreDifferentForAllIds) {
    // All of a size that is small enough to enumerate.
    std::vector<std::string> keys;
    for (std::uint64_t id = 0; id < 200'000; ++id) keys.push_back(key(8, id));
    for (std::uint64_t id = key_id_limit(8) - 200'000; id < key_id_limit(8); ++id)
        keys.push_back(key(8, id));
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

RC_GTEST_PROP(KeyFormat, EqualKeysComeFromEqualIds, (std::uint64_t first, std::uint64_t second)) {
    const auto size = *rc::gen::inRange<std::size_t>(8, 24);
    const auto order = *rc::gen::element(key_order::hashed, key_order::by_id);
    const std::uint64_t limit = key_id_limit(size, order);
    RC_ASSERT((key(size, first % limit, order) == key(size, second % limit, order)) ==
              (first % limit == second % limit));
}

// scatter() is a bijection: on a small domain all images are different.
TEST(KeyFormat, ScatteringIsABijection) {
    for (const unsigned bits : {2U, 3U, 7U, 12U, 17U}) {
        std::vector<bool> seen(std::size_t{1} << bits);
        for (std::uint64_t id = 0; id < seen.size(); ++id) {
            const std::uint64_t image = workload::key_detail::scatter(id, bits);
            ASSERT_LT(image, seen.size());
            ASSERT_FALSE(seen[image]) << bits << " bits, id " << id;
            seen[image] = true;
        }
    }
}

RC_GTEST_PROP(KeyFormat, OrderedKeysSortAsTheirIds, (std::uint64_t first, std::uint64_t second)) {
    const auto size = *rc::gen::inRange<std::size_t>(8, 40);
    const std::uint64_t limit = key_id_limit(size, key_order::by_id);
    first %= limit;
    second %= limit;
    RC_ASSERT((key(size, first, key_order::by_id) < key(size, second, key_order::by_id)) ==
              (first < second));
}

TEST(KeyFormat, TooShortKeysAreRefused) {
    EXPECT_THROW(key_id_limit(7), std::invalid_argument);
    EXPECT_EQ(key_id_limit(8), std::uint64_t{1} << 24);
    EXPECT_EQ(key_id_limit(15), ~std::uint64_t{0});
    EXPECT_EQ(key_id_limit(30), std::uint64_t{1} << 32);
}

} // namespace
