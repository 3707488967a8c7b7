// SPDX-License-Identifier: MIT
//
// Size classes of NEW: which block a request gets.
//
// Classes step by 8 bytes up to 256, then sixteen per doubling up to 512 and 32 per doubling up to 16 KiB: 208
// classes, at most 6.25 % lost inside a block, and 3.1 % of one from 512 bytes. (With eight per doubling, values of
// 1 KiB and a header lost 11 %, with sixteen 5 %, which is as much of page utilization.) Because every step is a power of two and every block size a multiple of
// its step, rounding a size up to an alignment first makes the block size a multiple of that
// alignment:
//   - step <= alignment: the rounded size is itself a class size;
//   - step > alignment: the block size is a multiple of the step, hence of the alignment.
// Runs begin on 64 KiB, so all blocks of such a class are aligned.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace obase::heap {

inline constexpr std::size_t granule = 8;            // every object begins on one
inline constexpr std::size_t max_small_size = 16384; // larger objects are born in LARGE
inline constexpr std::size_t large_granule = 128;    // their sizes are multiples of it
inline constexpr std::size_t max_dense_size = std::size_t{4} << 20; // larger ones stay in LARGE
inline constexpr std::size_t run_bytes = 65536; // unit of ownership, reuse and return
inline constexpr unsigned run_shift = 16;
inline constexpr unsigned classes_per_doubling = 16;
inline constexpr std::size_t fine_from = 512; // bytes
inline constexpr unsigned fine_per_doubling = 32;
inline constexpr unsigned fine_classes_begin = 48; // the first class above fine_from
inline constexpr unsigned size_classes = 208;
inline constexpr std::size_t max_exact_class = 128; // up to here a class holds one size only
inline constexpr unsigned exact_classes = 16;

constexpr std::size_t round_up(std::size_t size, std::size_t alignment) noexcept {
    return (size + alignment - 1) & ~(alignment - 1);
}

// Precondition: size is a positive multiple of 8, at most max_small_size.
constexpr unsigned size_class_computed(std::size_t size) noexcept {
    if (size <= max_exact_class) return static_cast<unsigned>(size / granule) - 1;
    const std::size_t last = size - 1;
    const unsigned log = static_cast<unsigned>(std::bit_width(last)) - 1; // 7..13
    if (last >= fine_from)
        return fine_classes_begin + (log - 9) * fine_per_doubling +
               static_cast<unsigned>((last >> (log - 5)) & (fine_per_doubling - 1));
    return exact_classes + (log - 7) * classes_per_doubling +
           static_cast<unsigned>((last >> (log - 4)) & (classes_per_doubling - 1));
}

constexpr std::size_t class_block_size(unsigned index) noexcept {
    if (index < exact_classes) return (index + 1) * granule;
    if (index >= fine_classes_begin) {
        const unsigned above = index - fine_classes_begin;
        const std::size_t doubling = fine_from << (above / fine_per_doubling);
        return doubling + (above % fine_per_doubling + 1) * (doubling / fine_per_doubling);
    }
    const unsigned above = index - exact_classes;
    const std::size_t doubling = std::size_t{128} << (above / classes_per_doubling);
    return doubling + (above % classes_per_doubling + 1) * (doubling / classes_per_doubling);
}

namespace detail {
constexpr auto make_class_table() noexcept {
    std::array<std::uint8_t, max_small_size / granule + 1> table{};
    for (std::size_t size = granule; size <= max_small_size; size += granule) {
        table[size / granule] = static_cast<std::uint8_t>(size_class_computed(size));
    }
    return table;
}
inline constexpr auto class_table = make_class_table();
constexpr auto make_block_table() noexcept {
    std::array<std::uint16_t, size_classes> table{};
    for (unsigned i = 0; i < size_classes; ++i) {
        table[i] = static_cast<std::uint16_t>(class_block_size(i));
    }
    return table;
}
inline constexpr auto block_table = make_block_table();
} // namespace detail

// The class for a size of at most max_small_size, by a table: 0 counts as 1.
inline unsigned size_class(std::size_t size) noexcept {
    return detail::class_table[(size + granule - 1) / granule];
}

static_assert(size_class_computed(8) == 0 && size_class_computed(128) == 15);
static_assert(size_class_computed(136) == 16 && class_block_size(16) == 136);
static_assert(class_block_size(size_class_computed(264)) == 272);
static_assert(size_class_computed(512) == fine_classes_begin - 1);
static_assert(size_class_computed(520) == fine_classes_begin);
static_assert(class_block_size(size_class_computed(1032)) == 1056);
static_assert(size_class_computed(max_small_size) == size_classes - 1);
static_assert(class_block_size(size_classes - 1) == max_small_size);

// The attributes of an object besides its size. Objects of different attributes never share a run:
// hints and alignment hold for whole runs.
struct attributes {
    std::uint8_t log2_alignment = 3; // 3..12
    bool never_cold = false;
    friend bool operator==(const attributes&, const attributes&) = default;
};

inline constexpr unsigned attribute_sets = 20;
constexpr unsigned attribute_index(attributes attr) noexcept {
    return (attr.log2_alignment - 3U) * 2U + (attr.never_cold ? 1U : 0U);
}
constexpr attributes attributes_at(unsigned index) noexcept {
    return {static_cast<std::uint8_t>(index / 2 + 3), (index & 1U) != 0};
}
// The size an object keeps for life (but for space::resize_large), in every class: 0 counts as 1. Near the end of the address space it
// wraps.
constexpr std::size_t object_size(std::size_t requested, attributes attr) noexcept {
    const std::size_t size =
        round_up(requested == 0 ? 1 : requested, std::size_t{1} << attr.log2_alignment);
    return size <= max_small_size ? size : round_up(size, large_granule);
}

} // namespace obase::heap
