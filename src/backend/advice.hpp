// SPDX-License-Identifier: MIT
//
// backend::advice: the kernel calls that hints are made of, behind one small interface.
//
// What it is: five calls, each 0 or the errno. os_advice forwards to src/os; tests put a fake in
// its place and make the calls fail.
//
// When not to use it: for calls whose failure changes what memory holds (commit, return): those are
// the heap's. Everything here leaves the contents of memory as they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::backend {

class advice {
  public:
    virtual ~advice() = default;
    virtual int cold(void* begin, std::size_t bytes) noexcept = 0;     // MADV_COLD
    virtual int page_out(void* begin, std::size_t bytes) noexcept = 0; // MADV_PAGEOUT
    virtual int huge(void* begin, std::size_t bytes) noexcept = 0;     // MADV_HUGEPAGE
    // Starts writing a file's dirty pages and returns.
    virtual int start_write(int fd, std::uint64_t offset, std::size_t bytes) noexcept = 0;
    // Returns when they are on the device, with EIO or ENOSPC if any could not be written.
    virtual int finish_write(int fd, std::uint64_t offset, std::size_t bytes) noexcept = 0;
    // Drops clean, unmapped pages from the page cache.
    virtual int drop(int fd, std::uint64_t offset, std::size_t bytes) noexcept = 0;
};

// The real calls.
advice& os_advice() noexcept;

} // namespace obase::backend
