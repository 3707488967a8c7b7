// SPDX-License-Identifier: MIT
//
// page_allocator<T>: what a std::vector has that is long for a while. From `least_bytes` on its memory is mapped, and
// goes back to the system when the vector is done with it: an allocator would keep the pages, for a collector that
// seldom runs.
//
//     std::vector<interval, os::page_allocator<interval>> touched;
//
// Throws std::bad_alloc, also where there are no more mappings to be had. Cost: four system calls for each block that
// is mapped. Threads: any.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

#include "os/memory.hpp"

namespace obase::os {

template <class T>
class page_allocator {
  public:
    static constexpr std::size_t least_bytes = 4 * page_size;

    using value_type = T;
    page_allocator() noexcept = default;
    template <class U>
    page_allocator(const page_allocator<U>&) noexcept {}

    T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T))
            throw std::bad_array_new_length();
        const std::size_t bytes = count * sizeof(T);
        if (bytes < least_bytes) return static_cast<T*>(::operator new(bytes));
        void* const memory = reserve(mapped(bytes), page_size);
        if (memory == nullptr) throw std::bad_alloc();
        if (commit(memory, mapped(bytes)) == 0) return static_cast<T*>(memory);
        release(memory, mapped(bytes));
        throw std::bad_alloc();
    }
    void deallocate(T* block, std::size_t count) noexcept {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < least_bytes) {
            ::operator delete(block);
            return;
        }
        // In the midst of a mapping, and there are no more to be had: the addresses stay.
        if (release(block, mapped(bytes)) != 0) advise(block, mapped(bytes), advice::dontneed);
    }
    template <class U>
    bool operator==(const page_allocator<U>&) const noexcept {
        return true;
    }

  private:
    static constexpr std::size_t mapped(std::size_t bytes) noexcept {
        return (bytes + page_size - 1) / page_size * page_size;
    }
};

} // namespace obase::os
