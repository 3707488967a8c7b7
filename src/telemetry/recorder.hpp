// SPDX-License-Identifier: MIT
//
// telemetry::recorder: counters in, snapshots and history out.
//
// `live` holds one relaxed atomic per row of OBASE_STATISTICS; the collector (and, for the few
// counters that threads touch, anyone) adds to it. end_window() turns them into one
// obase::statistics, publishes that under a mutex and appends a record to the history. A reader
// therefore never sees half a window.
//
// Not for the path of a dereference or an allocation: counters of that frequency belong to their
// own layer, which reports a gauge once per window.
//
// Threads: live by any thread; set_class(), end_window() by the collector; snapshot(), history() by
// any thread. fork_*() are called by the fork handlers.
#pragma once

#include "policy/tiers.hpp"

#include <obase/statistics.hpp>
#include <obase/word/atomic.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace obase::telemetry {

// A row while the window runs. Relaxed: no other data is published through a statistic.
template <class T>
class cell {
  public:
    void add(T amount = 1) noexcept { value_.fetch_add_relaxed(amount); }
    void set(T value) noexcept { value_.store_relaxed(value); }
    T get() const noexcept { return value_.load_relaxed(); }

  private:
    word::native_atomic<T> value_;
};

struct live_statistics {
#define OBASE_DECLARE_CELL(kind, type, name, unit, help) cell<statistic_type::type> name;
    OBASE_STATISTICS(OBASE_DECLARE_CELL)
#undef OBASE_DECLARE_CELL

    cell<std::uint64_t> moved_between[statistics::max_tiers][statistics::max_tiers];
    // No row, for why_not_freed(): windows below the promotion target that are missing before pages may leave.
    cell<std::uint64_t> pageout_after;

    // One object of `bytes` moved; from == to is compaction.
    void count_move(policy::tier_id from, policy::tier_id to, std::uint64_t bytes) noexcept {
        if (from == to) {
            compacted.add();
        } else {
            moved_objects.add();
            moved_between[from][to].add();
        }
        moved_bytes.add(bytes);
    }
};

class recorder {
  public:
    // `history_windows` bounds the history; its memory grows only as windows end, by some hundred bytes
    // (packed_record.hpp). What a window did for which there is no memory belongs to the next
    // record.
    explicit recorder(std::size_t history_windows, const char* protocol);

    live_statistics live;

    // Names, number and roles of the heaps: the tiers, then the one of large objects.
    void set_tiers(const policy::tier_table& tiers) noexcept;
    heap_statistics& of_heap(unsigned cls) noexcept { return heaps_[cls]; } // collector only

    // Ends a window. `mode` must be static text. The clock is the caller's, so that tests own it. What an early one
    // did belongs to the next record of the history.
    void end_window(const char* mode, double end_unix_seconds, bool early = false);

    statistics snapshot() const;
    // That of the last window at whose end there were objects; if there was none, as snapshot().
    statistics last_with_objects() const;
    // Oldest first.
    std::vector<window_record> history() const;

    // The child of a fork has only this thread; the holder of the mutex is gone.
    // fork_prepare() takes it, the other two release it.
    void fork_prepare() { mutex_.lock(); }
    void fork_parent() { mutex_.unlock(); }
    void fork_child() { mutex_.unlock(); }

  private:
    const char* const protocol_;
    unsigned heap_count_ = 0;
    policy::tier_mask reclaimable_tiers_ = 0;
    std::array<const char*, statistics::max_heaps> heap_names_{};
    std::array<heap_statistics, statistics::max_heaps> heaps_{};

    mutable std::mutex mutex_; // guards everything below
    std::size_t capacity_;     // 0 when there was no memory for a single record
    statistics published_;
    statistics with_objects_;       // windows == 0: none yet
    statistics recorded_;           // what the last record ended with
    std::vector<std::string> ring_; // at most capacity_ packed records, oldest at oldest_
    window_record reference_;       // of all of them: the first one
    std::size_t oldest_ = 0;
};

} // namespace obase::telemetry
