// SPDX-License-Identifier: MIT
//
// backend::intervals: a set of addresses as sorted, disjoint, non-touching half-open intervals.
//
// How hints remember which memory they have already advised, so that a COLD heap of hundreds of
// gigabytes costs a few entries and no repeated calls.
//
// The cost of every operation is linear in the number of intervals, so the set must not be dense in
// holes. Calls in any order cost memory for twice the intervals that come of them, and some.
//
// Invariant: begin < end in every interval, and each end < the next begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "os/page_allocator.hpp"

namespace obase::backend {

struct interval {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::size_t bytes() const noexcept { return end - begin; }
    friend bool operator==(const interval&, const interval&) = default;
};

class intervals {
  public:
    using list = std::vector<interval, os::page_allocator<interval>>;

    // Adds [begin, end). Amortized O(1) when calls come in address order, which is how the heaps
    // report; otherwise the set is normalized at its next use, or when it has doubled.
    void add(std::uintptr_t begin, std::uintptr_t end);
    // Keeps little memory for the next use.
    void clear() noexcept {
        if (items_.capacity() > 2 * least_normalized) list().swap(items_);
        items_.clear();
        sorted_ = true;
        normalized_at_ = least_normalized;
    }

    bool empty() const noexcept { return items_.empty(); }
    std::size_t bytes() const;
    const list& items() const { return normalized(); }

    intervals united(const intervals& other) const;
    intervals without(const intervals& other) const;
    intervals common(const intervals& other) const;
    // Every interval shrunk to whole multiples of `unit` (a power of two), or grown to them.
    intervals rounded_in(std::size_t unit) const;
    intervals rounded_out(std::size_t unit) const;

  private:
    const list& normalized() const;

    static constexpr std::size_t least_normalized = 1024;

    mutable list items_;
    mutable bool sorted_ = true;
    std::size_t normalized_at_ = least_normalized; // items: it is put in order by itself then
};

} // namespace obase::backend
