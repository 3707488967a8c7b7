// SPDX-License-Identifier: MIT
//
// zeroed_array<T>: an array of atomics that are zero, of which only what is used takes memory. For
// arrays that must have room for many more elements than there will be.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace obase::tools {

template <class T>
class zeroed_array {
    static_assert(std::is_trivially_destructible_v<T>);

  public:
    // Throws std::bad_alloc.
    explicit zeroed_array(std::size_t size)
        : size_(size), data_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
        if (data_ == nullptr) throw std::bad_alloc();
    }
    ~zeroed_array() { std::free(data_); }
    zeroed_array(const zeroed_array&) = delete;
    zeroed_array& operator=(const zeroed_array&) = delete;

    T& operator[](std::size_t index) const noexcept { return data_[index]; }
    std::size_t size() const noexcept { return size_; }

  private:
    std::size_t size_;
    T* data_;
};

} // namespace obase::tools
