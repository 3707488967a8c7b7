// SPDX-License-Identifier: MIT
//
// mapped_array<T>: an array in a mapping of its own, whose memory goes back to the system with it.
//
// For large lists that live for a part of a window: an allocator would keep their pages, and the process
// is charged for them. T is trivial; elements begin as zero bytes. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "os/memory.hpp"

namespace obase::os {

template <class T>
class mapped_array {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    mapped_array() noexcept = default;
    ~mapped_array() { release(); }
    mapped_array(const mapped_array&) = delete;
    mapped_array& operator=(const mapped_array&) = delete;

    // What was there is gone. False: no memory; the array is empty.
    bool allocate(std::size_t count) noexcept {
        release();
        if (count == 0) return true;
        if (count > (SIZE_MAX - page_size) / sizeof(T)) return false;
        const std::size_t bytes = (count * sizeof(T) + page_size - 1) & ~(page_size - 1);
        void* const begin = os::reserve(bytes, page_size);
        if (begin == nullptr) return false;
        if (os::commit(begin, bytes) != 0) {
            os::release(begin, bytes);
            return false;
        }
        data_ = static_cast<T*>(begin);
        bytes_ = bytes;
        size_ = count;
        return true;
    }
    void release() noexcept {
        if (data_ != nullptr) os::release(data_, bytes_);
        data_ = nullptr;
        bytes_ = size_ = 0;
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }

  private:
    T* data_ = nullptr;
    std::size_t bytes_ = 0; // of the mapping
    std::size_t size_ = 0;
};

} // namespace obase::os
