// SPDX-License-Identifier: MIT
#include "tools/workload/ycsb_hash.hpp"

#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace {

using workload::fnv1a64;
using workload::ycsb_hash;

// From the definition, worked out with arbitrary-precision integers.
TEST(YcsbHash, KnownNumbers) {
    EXPECT_EQ(fnv1a64(0), 0xa8c7f832281a39c5U);
    EXPECT_EQ(fnv1a64(1), 0x89cd31291d2aefa4U);
    EXPECT_EQ(ycsb_hash(0), 6284781860667377211U); // user6284781860667377211, YCSB's first record
    EXPECT_EQ(ycsb_hash(1), 8517097267634966620U); // user8517097267634966620, its second
}

// No two numbers of up to `bytes` + 1 bytes have the same hash, nor the same absolute value of it:
// the argument is in the header.
void expect_injective(int bytes) {
    const std::size_t count = std::size_t{1} << (8 * bytes);
    std::vector<std::uint64_t> states(count);
    for (std::size_t number = 0; number < count; ++number) {
        std::uint64_t state = workload::fnv_offset;
        for (int byte = 0; byte < bytes; ++byte)
            state = (state ^ ((number >> (8 * byte)) & 0xff)) * workload::fnv_prime;
        states[number] = state;
    }
    std::sort(states.begin(), states.end());
    for (std::size_t i = 1; i < count; ++i) ASSERT_NE(states[i] >> 8, states[i - 1] >> 8);
    for (const std::uint64_t state : states) {
        // -(s ^ c) for all bytes c: the upper 56 bits are ~s, but for c that makes the byte zero.
        for (const std::uint64_t upper : {~state >> 8, (0 - (state & ~std::uint64_t{0xff})) >> 8}) {
            const auto at = std::lower_bound(states.begin(), states.end(), upper << 8);
            ASSERT_FALSE(at != states.end() && *at >> 8 == upper);
        }
    }
}

TEST(YcsbHash, DifferentForDifferentNumbers) {
    expect_injective(1);
    expect_injective(2);
    if (obase::testing::tier() != obase::testing::test_tier::ci) expect_injective(3);
}

} // namespace
