// SPDX-License-Identifier: MIT
//
// masstree_permutation: which slots of a border node are in use, and in which order, in one word (Mao,
// Kohler, Morris, EuroSys 2012, section 4.6.2).
//
//    63 ... 60  ...  11 .... 8   7 .... 4   3 .. 0
//   +---------+-----+----------+----------+-------+
//   | slot 14 | ... | slot 1st | slot 0th | count |
//   +---------+-----+----------+----------+-------+
//
// The first `count` fields name the slots of the node's entries in ascending order, the others the
// free slots, the next one to be taken first. Thus every slot is named once, and an entry is inserted
// by writing its slot, which no thread reads yet, and storing one word.
//
// A slot that becomes free goes behind the other free ones: a reader may still be looking at it, and
// slots that never were in use are better to take (border::insert in masstree_nodes.hpp).
//
// Threads: a value; the word in the node is an atomic.
#pragma once

#include <bit>
#include <cstdint>

namespace crestdb {

template <unsigned Width>
class masstree_permutation {
    static_assert(Width >= 1 && Width <= 15);

  public:
    // Empty; slots are going to be taken in ascending order.
    constexpr masstree_permutation() noexcept = default;
    constexpr explicit masstree_permutation(std::uint64_t word) noexcept : word_(word) {}
    constexpr std::uint64_t word() const noexcept { return word_; }

    constexpr unsigned size() const noexcept { return word_ & 15; }
    constexpr bool empty() const noexcept { return size() == 0; }
    constexpr bool full() const noexcept { return size() == Width; }
    constexpr unsigned slot(unsigned position) const noexcept {
        return fields() >> (4 * position) & 15;
    }
    constexpr unsigned free_slot() const noexcept { return slot(size()); }

    // True if a slot has an entry. The lowest zero field of `different` is found exactly: a borrow
    // into a field begins below it, and below the lowest zero field there is none.
    constexpr bool lists(unsigned slot) const noexcept {
        constexpr std::uint64_t ones = 0x111111111111111;
        const std::uint64_t different = fields() ^ slot * ones;
        const std::uint64_t zeros = (different - ones) & ~different & 8 * ones;
        return static_cast<unsigned>(std::countr_zero(zeros)) / 4 < size();
    }

    // The first free slot becomes the entry at `position`; there is one.
    [[nodiscard]] constexpr masstree_permutation inserted(unsigned position) const noexcept {
        const unsigned n = size();
        const std::uint64_t below = fields() & first(position);
        const std::uint64_t moved = fields() & first(n) & ~first(position);
        const std::uint64_t above = fields() & ~first(n + 1);
        const std::uint64_t taken = std::uint64_t{free_slot()} << (4 * position);
        return of(below | taken | moved << 4 | above, n + 1);
    }
    // The slot at `position` becomes the last free one.
    [[nodiscard]] constexpr masstree_permutation erased(unsigned position) const noexcept {
        const std::uint64_t below = fields() & first(position);
        const std::uint64_t moved = fields() & first(Width) & ~first(position + 1);
        const std::uint64_t unused = fields() & ~first(Width);
        const std::uint64_t freed = std::uint64_t{slot(position)} << (4 * (Width - 1));
        return of(below | moved >> 4 | freed | unused, size() - 1);
    }
    // The entries from `position` on become free.
    [[nodiscard]] constexpr masstree_permutation cut(unsigned position) const noexcept {
        return of(fields(), position);
    }

  private:
    static constexpr std::uint64_t first(unsigned n) noexcept {
        return (std::uint64_t{1} << (4 * n)) - 1;
    }
    static constexpr masstree_permutation of(std::uint64_t fields, unsigned count) noexcept {
        return masstree_permutation(fields << 4 | count);
    }
    constexpr std::uint64_t fields() const noexcept { return word_ >> 4; }

    std::uint64_t word_ = 0xedcba98765432100;
};

} // namespace crestdb
