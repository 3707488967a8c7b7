// SPDX-License-Identifier: MIT
//
// server::cold_memory: which objects lie in memory that has left, and how it is read back.
//
//     cold_probe probe(memory);
//     {
//         const std::lock_guard hold(keys.lock_of(part));
//         const managed_scope scope;
//         probe.look(*slot);              // false: it is not resident, and noted
//     }
//     probe.read_noted();                 // the disk is waited for here, where nothing is held
//
// A probe looks at slots, not at objects: it asks the kernel whether the pages of an object are
// resident, which is no access. What it notes are addresses and sizes. If an object moves before
// they are read, its old pages are read for nothing.
//
// Threads: a probe is one thread's; a cold_memory any's.
#pragma once

#include "crestdb/server/managed.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace crestdb::server {

// Whole pages.
struct page_range {
    void* begin;
    std::size_t bytes;
};

class cold_memory {
  public:
    cold_memory() = default;
    virtual ~cold_memory() = default;
    cold_memory(const cold_memory&) = delete;
    cold_memory& operator=(const cold_memory&) = delete;

    // False: no object needs to be looked at.
    virtual bool any_may_leave() const noexcept = 0;
    // True if memory of the object's tier may leave. An address, not accessed.
    virtual bool may_leave(const void* object) const noexcept = 0;
    // Whole pages.
    virtual bool is_resident(const void* begin, std::size_t bytes) const noexcept = 0;
    // Waits for the disk. False: the device could not read it.
    virtual bool read_in(void* begin, std::size_t bytes) noexcept = 0;
    // Begins to read, and does not wait. False: it does not, and read_in() is the way.
    virtual bool begin_read(void* /*begin*/, std::size_t /*bytes*/) noexcept { return false; }
    // By the timer: which tiers there are is known when the collector has begun.
    virtual void refresh() noexcept {}
};

// The kernel's view of the memory of managing_runtime().
std::unique_ptr<cold_memory> kernel_cold_memory();

class cold_probe {
  public:
    // Without `most_looks` it looks as long as it is asked; with it, until that many were looked at
    // or something is cold.
    // Nothing more is read once `given_up` is true.
    explicit cold_probe(cold_memory& memory, std::size_t most_looks = SIZE_MAX,
                        const std::atomic<bool>* given_up = nullptr) noexcept
        : memory_(memory), looks_left_(most_looks), bounded_(most_looks != SIZE_MAX),
          given_up_(given_up) {}

    // In the part and in a scope. True if the slot's object is resident, or that much of it. False: it is
    // noted, or the probe looks at no more.
    bool look(const managed_slot& slot, std::size_t first_bytes = SIZE_MAX);
    // Without a lock: reads what was noted, unless the probe is bounded, which only looks.
    void read_noted() noexcept;

    bool goes_on() const noexcept { return !bounded_ || (looks_left_ > 0 && noted_.empty()); }
    bool found_cold() const noexcept { return !noted_.empty(); }
    // These were seen to be resident just now: the kernel is not asked again.
    void take_as_resident(const page_range& pages) noexcept { seen_ = pages; }
    const std::vector<page_range>& noted() const noexcept { return noted_; }
    // False: something that was noted could not be read.
    bool readable() const noexcept { return readable_; }
    // So much was not there and was asked for.
    std::size_t bytes_read() const noexcept { return bytes_read_; }

  private:
    cold_memory& memory_;
    std::size_t looks_left_;
    bool bounded_;
    const std::atomic<bool>* given_up_;
    bool readable_ = true;
    std::size_t bytes_read_ = 0;
    page_range seen_{nullptr, 0};
    std::vector<page_range> noted_;
};

} // namespace crestdb::server
