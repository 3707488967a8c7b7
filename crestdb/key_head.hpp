// SPDX-License-Identifier: MIT
//
// key_head, long_key_head: the first 16 or 24 bytes of a key as numbers, for nodes that keep them
// inline.
//
// The bytes big-endian, zero padded, so that comparing the numbers compares the keys as
// std::string_view does (bytes unsigned). Different heads decide the order; equal heads decide
// nothing ("a" and "a\0" have the same), and then the key object has to be looked at.
//
//     const auto sought = crestdb::key_head::of(key);
//     if (node.head != sought) return node.head < sought;
//     return node.key->view() < key; // an access to a managed object
//
// Why: a search passes many keys that it does not look for. Each look at a key object is a cache
// miss and tells the runtime that the object is in use, so that neighbours of hot keys would become
// hot. The short one is for nodes that hold heads behind a common prefix, or keys that differ
// early; of the long one keys such as "user" and 26 digits, the first six of them zero, have
// 14 digits to differ in, of the short one six.
//
// Keys that share more bytes than that are compared by their key objects.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace crestdb {

namespace detail {
// Bytes [at, at + 8) of the key as a number; zeros where the key has ended.
inline std::uint64_t head_word(std::string_view key, std::size_t at) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    if (key.size() >= at + sizeof word) {
        std::memcpy(&word, key.data() + at, sizeof word); // of constant size: one load
    } else if (key.size() > at) {
        std::memcpy(&word, key.data() + at, key.size() - at);
    }
    return __builtin_bswap64(word);
}
} // namespace detail

// Bytes in which both begin alike.
inline std::size_t common_bytes(std::string_view a, std::string_view b) noexcept {
    const std::size_t limit = std::min(a.size(), b.size());
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + limit, b.begin()).first -
                                    a.begin());
}

struct key_head {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    static constexpr std::size_t bytes = 16;
    static key_head of(std::string_view key) noexcept {
        return {detail::head_word(key, 0), detail::head_word(key, 8)};
    }
    friend auto operator<=>(const key_head&, const key_head&) noexcept = default;
};

struct long_key_head {
    key_head first;
    std::uint64_t rest = 0;

    static constexpr std::size_t bytes = 24;
    static long_key_head of(std::string_view key) noexcept {
        return {key_head::of(key), detail::head_word(key, key_head::bytes)};
    }
    friend auto operator<=>(const long_key_head&, const long_key_head&) noexcept = default;
};

} // namespace crestdb
