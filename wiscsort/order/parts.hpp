// SPDX-License-Identifier: MIT
//
// Sorted parts, in memory or in mapped runs, seen as one sorted sequence: any slice of it can be merged
// without merging what is before it, so slices are merged in parallel. The splitters of a slice are
// found by selection in all parts at once.
#pragma once

#include "wiscsort/order/keys.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace wiscsort::order {

class sorted_parts {
  public:
    sorted_parts(std::vector<std::span<const entry>> parts, entry_less less);

    std::uint64_t size() const { return size_; }
    std::size_t count() const { return parts_.size(); }
    const entry_less& less() const { return less_; }
    // How many entries of each part are among the first `rank` of all. O(parts log size) comparisons,
    // times the log of the size.
    std::vector<std::uint64_t> cut(std::uint64_t rank) const;
    // The entries [rank, rank + count) in order. Thread-safe. Throws error if keys change meanwhile.
    void merge(std::uint64_t rank, std::uint64_t count, entry* out) const;

  private:
    std::vector<std::span<const entry>> parts_;
    entry_less less_;
    std::uint64_t size_ = 0;
};

// A tournament among `size` sources, of which the smallest is asked for again and again. Less(i, j)
// says if source i is before source j; exhausted sources are behind all others.
template <class Less>
class loser_tree {
  public:
    loser_tree(std::size_t size, Less less) : less_(less), size_(size), losers_(size) {
        winner_ = size == 0 ? 0 : build(1);
    }
    std::size_t winner() const { return winner_; }
    // The winner's source has moved on.
    void replay() {
        std::size_t who = winner_;
        for (std::size_t node = (who + size_) / 2; node >= 1; node /= 2)
            if (less_(losers_[node], who)) std::swap(losers_[node], who);
        winner_ = who;
    }

  private:
    std::size_t build(std::size_t node) {
        if (node >= size_) return node - size_;
        const std::size_t left = build(2 * node), right = build(2 * node + 1);
        const bool right_wins = less_(right, left);
        losers_[node] = right_wins ? left : right;
        return right_wins ? right : left;
    }
    Less less_;
    std::size_t size_;
    std::vector<std::size_t> losers_;
    std::size_t winner_ = 0;
};

} // namespace wiscsort::order
