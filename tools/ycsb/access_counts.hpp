// SPDX-License-Identifier: MIT
//
// access_counts: how often each record was asked for while somebody counted. From it follows which
// records it would have been best to keep in memory (tools/curves/ideal.hpp).
//
//     access_counts counts(records);
//     counts.note(7);
//     counts.of(7); // 1
//
// All pages are touched at once, so that what is measured later does not grow by them.
//
// Threads: any. Cost: an atomic read-modify-write, mostly a cache miss.
#pragma once

#include "tools/ycsb/zeroed_array.hpp"

#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace obase::tools {

class access_counts {
  public:
    // Throws std::bad_alloc.
    explicit access_counts(std::size_t records) : of_record_(records) {
        for (std::size_t record = 0; record < records; ++record)
            of_record_[record].store_relaxed(0);
    }
    void note(std::size_t record) noexcept {
        if (record < of_record_.size()) of_record_[record].fetch_add_relaxed(1);
    }
    // A scan accesses records that the traffic does not know of.
    void note_scan() noexcept { scanned_.store_relaxed(1); }

    std::uint32_t of(std::size_t record) const noexcept {
        return of_record_[record].load_relaxed();
    }
    // False: more was accessed than was counted.
    bool complete() const noexcept { return scanned_.load_relaxed() == 0; }
    std::size_t records() const noexcept { return of_record_.size(); }

  private:
    using count = word::native_atomic<std::uint32_t>;

    zeroed_array<count> of_record_;
    word::native_atomic<std::uint8_t> scanned_;
};

} // namespace obase::tools
