// SPDX-License-Identifier: MIT
//
// Heads order keys as string_view does, or leave it open.
#include "crestdb/key_head.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace {

template <class Head>
bool agrees(std::string_view a, std::string_view b) {
    const Head x = Head::of(a), y = Head::of(b);
    if (x != y) return (x < y) == (a < b);
    // What equal heads do say: the keys differ behind them, or in zeros at the end.
    return a.substr(0, Head::bytes).find_last_not_of('\0') ==
           b.substr(0, Head::bytes).find_last_not_of('\0');
}

bool both_agree(std::string_view a, std::string_view b) {
    return agrees<crestdb::key_head>(a, b) && agrees<crestdb::long_key_head>(a, b);
}

TEST(key_head, is_the_first_bytes_big_endian) {
    const auto head = crestdb::long_key_head::of("abcdefgh12345678ABCD");
    EXPECT_EQ(head.first.high, 0x6162636465666768u);
    EXPECT_EQ(head.first.low, 0x3132333435363738u);
    EXPECT_EQ(head.rest, 0x4142434400000000u);
    EXPECT_EQ(crestdb::key_head::of(""), crestdb::key_head{});
}

TEST(key_head, lengths_around_a_word_and_bytes_that_look_signed) {
    std::vector<std::string> keys;
    for (const char c : {'\0', '\1', '\x7f', '\x80', '\xff'})
        for (std::size_t n : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 17u, 23u, 24u, 25u, 40u})
            for (const char last : {'\0', '\1', '\xff'}) keys.push_back(std::string(n, c) + last);
    keys.push_back("");
    for (const auto& a : keys)
        for (const auto& b : keys) ASSERT_TRUE(both_agree(a, b));
}

RC_GTEST_PROP(key_head, orders_as_string_view_does,
              (std::string prefix, std::string a, std::string b)) {
    RC_ASSERT(both_agree(a, b));
    RC_ASSERT(both_agree(prefix + a, prefix + b));
}

} // namespace
