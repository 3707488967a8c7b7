// SPDX-License-Identifier: MIT
//
// The 128-bit entry that stands for a record while the order is found: what the issue of moving
// whole records through a device is avoided with (key-value separation).
//
//     127                          64 63            48 47                              0
//     |  key bytes 0..7, big-endian | key bytes 8, 9  |  position of the record         |
//      `----------- prefix ------------------------'
//
// prefix: the key's ten bytes behind the prefix that all keys share; short keys are filled up with
// zeros, keys sorted downwards are complemented. position: where the record begins in the
// concatenated input, so it is unique, and entries are ordered as a stable sort orders the records
// as far as ten bytes tell. Two entries with equal prefixes are ordered by the whole keys.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace wiscsort {

struct alignas(16) entry {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    std::uint64_t position() const { return low & position_mask; }
    bool same_prefix(const entry& other) const {
        return high == other.high && ((low ^ other.low) >> position_bits) == 0;
    }
    friend bool operator<(const entry& a, const entry& b) {
        return a.high != b.high ? a.high < b.high : a.low < b.low;
    }
    friend bool operator==(const entry&, const entry&) = default;

    static constexpr unsigned position_bits = 48;
    static constexpr std::uint64_t position_mask = (1ULL << position_bits) - 1;
};
static_assert(sizeof(entry) == 16);

constexpr std::size_t prefix_bytes = 10;

// The entry of the key's bytes from `skip` on. Precondition: position < 2^48.
inline entry make_entry(std::string_view key, std::size_t skip, bool reverse,
                        std::uint64_t position) {
    unsigned char bytes[16] = {};
    if (skip < key.size())
        std::memcpy(bytes, key.data() + skip, std::min(prefix_bytes, key.size() - skip));
    std::uint64_t high;
    std::uint16_t rest;
    std::memcpy(&high, bytes, 8);
    std::memcpy(&rest, bytes + 8, 2);
    high = __builtin_bswap64(high);
    rest = __builtin_bswap16(rest);
    if (reverse) {
        high = ~high;
        rest = static_cast<std::uint16_t>(~rest);
    }
    return {static_cast<std::uint64_t>(rest) << entry::position_bits | position, high};
}

// Bytes that the two strings begin with alike.
inline std::size_t common_prefix(std::string_view a, std::string_view b) {
    const std::size_t most = std::min(a.size(), b.size());
    std::size_t i = 0;
    for (; i + 8 <= most; i += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, a.data() + i, 8);
        std::memcpy(&y, b.data() + i, 8);
        if (x != y) return i + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
    }
    while (i < most && a[i] == b[i]) ++i;
    return i;
}

} // namespace wiscsort
