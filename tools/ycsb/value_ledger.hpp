// SPDX-License-Identifier: MIT
//
// value_ledger: what a client knows about the records it wrote, so that lost writes and stale reads
// show. It shares nothing with the store: a word per record holds the version of the last write
// that was acknowledged, and writers of one record take turns by a bit in that word, so versions
// reach the store in their order.
//
//   a read that began after version v was acknowledged must find v or a later one
//   a read that ended before version w was begun must not find w
//   a record that was there from before a read until after it must be found
//
// Threads: any. Cost: a cache miss per operation, and an atomic read-modify-write per write.
#pragma once

#include "tools/ycsb/zeroed_array.hpp"

#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <thread>

namespace obase::tools {

class value_ledger {
  public:
    using entry = std::uint32_t;
    static constexpr entry writing = entry{1} << 31;
    static constexpr entry present = entry{1} << 30;
    static constexpr entry version_bits = present - 1;

    // Records that are never used cost address space only.
    explicit value_ledger(std::size_t capacity) : entries_(capacity) {}
    std::size_t capacity() const noexcept { return entries_.size(); }

    entry look(std::size_t record) const noexcept { return entries_[record].load_acquire(); }

    // Takes the record for writing and returns its entry from before, without `writing`.
    entry begin_write(std::size_t record) noexcept {
        slot& s = entries_[record];
        for (;;) {
            entry seen = s.load_relaxed() & ~writing;
            if (s.cas_acq_rel(seen, seen | writing)) return seen;
            std::this_thread::yield();
        }
    }
    // `now`: what is there after the write, without `writing`.
    void end_write(std::size_t record, entry now) noexcept { entries_[record].store_release(now); }

    // What a read that found `version` between the two looks says about the store.
    static bool stale(entry before, std::uint64_t version) noexcept {
        return version < (before & version_bits) ||
               ((before & present) == 0 && version == (before & version_bits));
    }
    static bool from_the_future(entry after, std::uint64_t version) noexcept {
        return version > (after & version_bits) + 1;
    }
    static bool lost(entry before, entry after) noexcept {
        return (before & present) != 0 && before == after && (before & writing) == 0;
    }

  private:
    using slot = word::native_atomic<entry>;

    zeroed_array<slot> entries_;
};

} // namespace obase::tools
