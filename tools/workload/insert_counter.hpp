// SPDX-License-Identifier: MIT
//
// insert_counter: hands out the ids of new records, and knows up to which id all records are there.
// Threads insert at the same time and finish in any order; a request for the newest records must
// not ask for one whose insertion has only begun.
//
//     workload::insert_counter ids(records);       // 0 .. records - 1 are loaded
//     const std::uint64_t id = ids.take();
//     store.put(key(id), value);
//     ids.completed(id);
//     ... any thread: store.get(key(random.below(ids.end())))  is there
//
// YCSB's AcknowledgedCounterGenerator without its lock. completed(id) writes id + 1 into slot id
// modulo `window` and then moves the end over all slots that hold what the end is waiting for. A
// slot is never cleared, since the number in it says whose it is. A thread that writes a slot reads
// the end afterwards, and a thread that moves the end reads the next slot afterwards; both in one
// total order, so one of two that meet sees the other, and the end never stops short.
//
// Every id that was taken must be inserted: the end stays below one that is not.
//
// Progress: lock-free, as long as no thread is `window` ids behind. completed() waits for one that
// is, since on a busy machine a thread can be preempted for longer than others need for a quarter
// of a million ids; after `patience` it throws. Threads: all functions by any. Cost: two atomic
// operations and a store. Memory: 1 MiB.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace workload {

class insert_counter {
  public:
    static constexpr std::uint64_t window = std::uint64_t{1} << 18;

    explicit insert_counter(std::uint64_t first,
                            std::chrono::milliseconds patience = std::chrono::minutes(1))
        : next_(first), end_(first), slots_(std::make_unique<slot[]>(window)), patience_(patience) {
    }

    std::uint64_t take() noexcept { return next_.fetch_add(1); }

    // Throws std::runtime_error if the record `window` ids before does not come within the
    // patience.
    void completed(std::uint64_t id) {
        if (id >= end_.load() + window) wait_for_slot(id);
        slots_[id % window].store(mark(id));
        std::uint64_t end = end_.load();
        while (slots_[end % window].load() == mark(end))
            if (end_.compare_exchange_weak(end, end + 1)) ++end;
    }

    // All ids below it are complete, and it is the lowest that is not.
    std::uint64_t end() const noexcept { return end_.load(); }

  private:
    using slot = std::atomic<std::uint32_t>;
    // Different for 2^32 ids; not zero for the first ones, which an unused slot holds.
    static constexpr std::uint32_t mark(std::uint64_t id) noexcept {
        return static_cast<std::uint32_t>(id / window + 1);
    }

    void wait_for_slot(std::uint64_t id) const {
        const auto until = std::chrono::steady_clock::now() + patience_;
        while (id >= end_.load() + window) {
            if (std::chrono::steady_clock::now() > until)
                throw std::runtime_error("record " + std::to_string(end_.load()) +
                                         " is still being inserted while record " +
                                         std::to_string(id) +
                                         " is complete: a thread hangs or did not report");
            std::this_thread::yield();
        }
    }

    alignas(64) std::atomic<std::uint64_t> next_;
    alignas(64) std::atomic<std::uint64_t> end_; // read by every request, written by insertions
    alignas(64) const std::unique_ptr<slot[]> slots_;
    const std::chrono::milliseconds patience_;
};

} // namespace workload
