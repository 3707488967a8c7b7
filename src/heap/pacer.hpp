// SPDX-License-Identifier: MIT
//
// pacer: what a heap asks while it gives memory back to the system.
//
// Memory goes back in pieces of at most `piece_bytes`, since the kernel keeps the lock of the
// address space for as long as a call lasts, and mprotect, mmap and fork of all threads wait for it.
// A piece is claimed first: allocating threads cannot see it, and do not need it. No lock of the
// heap is held across the call, and between two pieces the heap is whole: a fork there leaves parent
// and child with valid heaps, and a fork during the call does, too.
//
//     struct every_piece : heap::pacer {
//         bool may_continue() noexcept override { return !stopping; }
//     } ask;
//     space.decommit_free_memory(ask);
#pragma once

#include <cstddef>

namespace obase::heap {

inline constexpr std::size_t piece_bytes = std::size_t{512} << 10;

class pacer {
  public:
    pacer() = default;
    pacer(const pacer&) = delete;
    pacer& operator=(const pacer&) = delete;
    virtual ~pacer() = default;

    // Around a system call during which the process may fork: the place to drop the caller's locks.
    virtual void call_begins() noexcept {}
    virtual void call_ends() noexcept {}
    // Between two pieces. False: the rest is left for the next time.
    virtual bool may_continue() noexcept { return true; }
};

} // namespace obase::heap
