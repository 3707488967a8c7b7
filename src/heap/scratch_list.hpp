// SPDX-License-Identifier: MIT
//
// scratch_list<T>: a list that is filled for a while and then gives its memory back to the system.
//
// For lists as long as there is work: an allocator would keep their pages, for the next one who frees and
// allocates as much, and a collector that works for a hundredth of the time would take them for all of it.
//
//     scratch_list<std::uint32_t> runs;
//     if (!runs.reserve(1000)) return;      // the only step that can fail
//     while (...) runs.push_back(run);
//     runs.release();                       // its pages go; reserve() is as it was
//
// T is trivially copyable. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "heap/size_class.hpp"
#include "os/memory.hpp"

namespace obase::heap {

template <class T>
class scratch_list {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    scratch_list() noexcept = default;
    ~scratch_list() {
        if (data_ != nullptr) os::release(data_, bytes_);
    }
    scratch_list(const scratch_list&) = delete;
    scratch_list& operator=(const scratch_list&) = delete;
    scratch_list(scratch_list&& other) noexcept { swap(other); }
    scratch_list& operator=(scratch_list&& other) noexcept {
        swap(other);
        return *this;
    }
    void swap(scratch_list& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(size_, other.size_);
        std::swap(used_, other.used_);
    }

    // Room for `count` elements in all. False: no memory, and nothing changed.
    bool reserve(std::size_t count) noexcept {
        if (count <= capacity()) return true;
        const std::size_t bytes = round_up(count * sizeof(T), os::page_size);
        void* const memory = os::reserve(bytes, os::page_size);
        if (memory == nullptr) return false;
        if (os::commit(memory, bytes) != 0) {
            os::release(memory, bytes);
            return false;
        }
        if (size_ != 0) std::memcpy(memory, data_, size_ * sizeof(T));
        if (data_ != nullptr) os::release(data_, bytes_);
        data_ = static_cast<T*>(memory);
        bytes_ = bytes;
        used_ = size_;
        return true;
    }

    // Precondition: size() < capacity().
    void push_back(const T& value) noexcept {
        data_[size_++] = value;
        if (size_ > used_) used_ = size_;
    }
    // `count` elements, all of them zero bytes. Precondition: count <= capacity().
    void assign_zero(std::size_t count) noexcept {
        release();
        size_ = used_ = count;
    }
    void clear() noexcept { size_ = 0; }
    // Empties it and gives its pages back.
    void release() noexcept {
        size_ = 0;
        if (const std::size_t touched = round_up(used_ * sizeof(T), os::page_size); touched != 0)
            if (os::advise(data_, touched, os::advice::dontneed) != 0)
                std::memset(static_cast<void*>(data_), 0, touched);
        used_ = 0;
    }

    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return bytes_ / sizeof(T); }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + size_; }
    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    // Precondition: i < size(), or for what is filled at random, < capacity().
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    T* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t size_ = 0;
    std::size_t used_ = 0; // elements that may be other than zero
};

} // namespace obase::heap
