// SPDX-License-Identifier: MIT
//
// btree_entries: the words of which a B+tree's leaf makes its sorted list: seven bytes of a key,
// its head, and the number of the slot where the leaf has the guides to key and value.
//
//    63 ...................... 8  7 ... 0
//   +---------------------------+--------+
//   |  head (bytes of the key)  |  slot  |
//   +---------------------------+--------+
//
// Words in the order of the heads; equal heads stand in the order of their keys. All keys of a leaf
// begin alike, and heads are the bytes behind that (`skip` of them), so a search looks at few keys.
// Guides stay in their slots while words are moved up and down the list, because storing a guide is
// dear and storing a word is not.
//
// Limit: a leaf has at most 64 entries.
//
// Threads: values.
#pragma once

#include "crestdb/key_head.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crestdb {

template <unsigned LeafEntries>
struct btree_entries {
    using entry = std::uint64_t;

    static constexpr unsigned leaf_entries = LeafEntries;
    static constexpr unsigned slot_bits = 8;
    static constexpr unsigned head_bytes = 7;
    static_assert(leaf_entries >= 2 && leaf_entries <= 64 && std::has_single_bit(leaf_entries));

    // The head of `key` behind `skip` bytes, where it is in an entry.
    static entry head_of(std::string_view key, std::size_t skip) noexcept {
        return detail::head_word(key, skip) >> slot_bits << slot_bits;
    }
    static entry head_of(entry e) noexcept { return e >> slot_bits << slot_bits; }
    static unsigned slot_of(entry e) noexcept { return e & (leaf_entries - 1); }

    // Bytes in which the heads agree.
    static unsigned equal_bytes(entry a, entry b) noexcept {
        const entry different = head_of(a ^ b);
        return different == 0 ? head_bytes : static_cast<unsigned>(std::countl_zero(different)) / 8;
    }
    // The shortest bytes behind `common`, which both keys begin with, that are above the one key
    // and not above the other: where heads first differ the greater one is a byte of its key and
    // not padding. The heads are not equal.
    static std::string separator(std::string_view common, entry below, entry above) {
        std::string text(common);
        for (unsigned i = 0; i <= equal_bytes(below, above); ++i)
            text.push_back(static_cast<char>(above >> (56 - 8 * i)));
        return text;
    }
    // The entry when heads begin `more` bytes earlier; `front` is head_of() those bytes.
    static entry begin_earlier(entry e, entry front, std::size_t more) noexcept {
        const entry back = more < head_bytes ? head_of(e) >> (8 * more) : 0;
        return head_of(front | back) | slot_of(e);
    }
};

} // namespace crestdb
