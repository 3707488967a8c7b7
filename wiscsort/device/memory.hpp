// SPDX-License-Identifier: MIT
//
// Anonymous memory under one budget, and what this machine and this control group have.
#pragma once

#include "wiscsort/format/entry.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace wiscsort::device {

constexpr std::size_t page_size = 4096;

inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

// Zeroed pages of the process, resident as far as they are touched. Movable, not copyable.
class memory_block {
  public:
    memory_block() = default;
    // Throws error where there is no memory. `huge`: worth huge pages.
    explicit memory_block(std::size_t bytes, bool huge = true);
    ~memory_block();
    memory_block(memory_block&& other) noexcept;
    memory_block& operator=(memory_block&& other) noexcept;

    char* data() const { return data_; }
    std::size_t size() const { return size_; }
    // Keeps what is there; the address changes. Throws error.
    void grow(std::size_t bytes);

  private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

// An array of entries that grows up to a capacity. It takes memory as it is filled.
class entry_array {
  public:
    explicit entry_array(std::size_t capacity) : capacity_(capacity) {}
    bool full() const { return size_ == capacity_; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    // Room for `count` more without a look at each of them, as far as the capacity allows: the
    // count there is room for.
    std::size_t reserve_more(std::size_t count);
    // Precondition: reserve_more() found room.
    void push(entry e) { data()[size_++] = e; }
    void clear() { size_ = 0; }
    entry* data() { return reinterpret_cast<entry*>(block_.data()); }
    std::span<entry> all() { return {data(), size_}; }

  private:
    memory_block block_;
    std::size_t size_ = 0;
    std::size_t capacity_;
};

// Bytes of all memory blocks there are, and the most there were since the last reset.
std::uint64_t blocks_now();
std::uint64_t blocks_peak();
void reset_blocks_peak();

struct machine_memory {
    // Bytes that this process can use for itself or as page cache before something is reclaimed that
    // is in use: the least of the machine's and the control group's (v1 and v2).
    std::uint64_t available = 0;
    bool limited_by_group = false;
};
machine_memory look_at_memory();

// Processors that this process may run on.
unsigned processors();

} // namespace wiscsort::device
