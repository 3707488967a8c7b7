// SPDX-License-Identifier: MIT
//
// stress_heap: where movable objects are born in stress mode (OBASE_HANDLES_STRESS=N), to find what compiled code
// forgets to translate.
//
// Every object is away from birth: it has pages of addresses for itself as its home, which are inaccessible, and its
// bytes are elsewhere, in a copy of exactly its size. Its home begins its page. Every N-th poll of the process
// some objects get another copy; the old one is overwritten with `poison`, so a translation that is used
// beyond a poll reads that. Addresses of freed objects are used again late.
//
// The tables are those of forwarding.hpp, and translations, frees and polls those of any program. What is not:
// objects move in moments in which no thread has a translation, not under running threads.
//
// Objects above 16 KiB are born at home, as always, and do not move.
//
// Threads: allocate() and freed() by any; the others by one that has stopped all threads.
#pragma once

#include "handles/evacuator.hpp"
#include "handles/forwarding.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace obase::handles {

class native_handles;

class stress_heap {
  public:
    using table_type = forwarding_table<os::native_platform>;
    static constexpr unsigned char poison = 0xDB;

    // Homes lie in [begin, end), reserved. `period`: polls.
    stress_heap(native_handles& all, std::uint64_t begin, std::uint64_t end, unsigned long period)
        : all_(all), begin_(begin), end_(end), period_(period) {}

    bool contains(std::uint64_t address) const noexcept { return address - begin_ < end_ - begin_; }
    // 0: no memory. `caller`: who asks for it, for reports.
    std::uint64_t allocate(std::size_t bytes, std::size_t alignment, const void* caller);
    // The object was freed: nothing translates to it any more.
    void freed(std::uint64_t home, std::uint64_t was);

    // Of the object around the address; size 0: none was ever there.
    struct object {
        std::uint64_t home = 0;
        std::size_t size = 0;
        const void* caller = nullptr;
        bool live = false;
    };
    object find(std::uint64_t address);

    bool due() noexcept { return polls_.fetch_add_relaxed(1) % period_ == period_ - 1; }
    // Some of the objects. Pinned ones stay.
    void move_some(const std::vector<std::uint64_t>& pinned);
    // Its bytes are at its home from here on. `objects` is one more if they were not.
    home_result bring_home(std::uint64_t home, const std::vector<std::uint64_t>& pinned,
                           std::uint64_t* objects);

    std::size_t live_bytes() noexcept; // of objects, wherever their bytes are
    std::size_t at_home() noexcept;    // objects that came home and were not freed
    // fork
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

  private:
    struct run {
        std::uint64_t begin;
        std::size_t block; // bytes
        std::size_t used = 0;
        std::size_t freed = 0;
        table_type* table = nullptr;
        std::vector<std::size_t> sizes;
        std::vector<const void*> callers;
    };

    run* run_of(std::uint64_t address) noexcept;
    run* fresh_run(std::size_t block);

    static constexpr unsigned kinds = 3; // homes of 1, 2 and 4 pages

    native_handles& all_;
    std::uint64_t begin_;
    std::uint64_t end_;
    unsigned long period_;
    std::mutex lock_;
    table_memory table_memory_;
    std::deque<run> runs_; // in the order of addresses
    run* filling_[kinds]{};
    std::deque<run*> empty_[kinds]; // all of their objects were freed, the longest ago in front
    std::size_t next_ = 0;          // run to move
    std::size_t live_ = 0;
    std::size_t at_home_ = 0;
    os::native_platform::atomic<unsigned long> polls_;
};

} // namespace obase::handles
