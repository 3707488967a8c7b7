// SPDX-License-Identifier: MIT
//
// reserved_array<T>: an array whose address space is reserved for the largest length at once, and
// whose memory is committed from the front as it is needed. Elements never move and begin as zero
// bytes. They are never destroyed.
//
// The form of all side tables of the heap. A table that covers terabytes costs only the pages that
// are touched.
//
// Elements are zero bytes at first, without a constructor, and are used roughly from the front.
//
// Any thread may call commit_to() at any time, and several may commit the same elements; reading and
// writing committed elements needs no lock. What says to another thread that an element is committed
// is the caller's own release (a run number, an address), never this class.
#pragma once

#include <cstddef>
#include <cstdint>

#include <obase/word/atomic.hpp>

#include "heap/size_class.hpp"
#include "os/memory.hpp"

namespace obase::heap {

template <class T>
class reserved_array {
  public:
    // False: no address space.
    bool reserve(std::size_t elements) noexcept {
        bytes_ = round_up(elements * sizeof(T), os::page_size);
        data_ = static_cast<T*>(os::reserve(bytes_, os::page_size));
        return data_ != nullptr;
    }

    void release() noexcept {
        if (data_ != nullptr) os::release(data_, bytes_);
        data_ = nullptr;
        committed_.store_relaxed(0);
    }

    // Afterwards elements [0, elements) may be used. False: no memory; nothing changed.
    bool commit_to(std::size_t elements) noexcept {
        const std::size_t needed = elements * sizeof(T);
        std::size_t now = committed_.load_acquire();
        if (needed <= now) return true;
        if (needed > bytes_) return false;
        std::size_t target = round_up(needed, commit_step);
        if (target > bytes_) target = bytes_;
        if (os::commit(reinterpret_cast<char*>(data_) + now, target - now) != 0) return false;
        while (now < target && !committed_.cas_acq_rel(now, target)) {
        } // never back
        return true;
    }

    // Gives back the pages that lie wholly in elements [first, last): they read as zero afterwards.
    // No thread may use those elements meanwhile.
    void decommit(std::size_t first, std::size_t last) const noexcept {
        const std::size_t begin = round_up(first * sizeof(T), os::page_size);
        const std::size_t end = last * sizeof(T) & ~(os::page_size - 1);
        if (begin < end)
            os::advise(reinterpret_cast<char*>(data_) + begin, end - begin, os::advice::dontneed);
    }

    bool committed(std::size_t index) const noexcept {
        return (index + 1) * sizeof(T) <= committed_.load_acquire();
    }
    std::size_t committed_bytes() const noexcept { return committed_.load_relaxed(); }

    T& operator[](std::size_t index) const noexcept { return data_[index]; }
    T* data() const noexcept { return data_; }

  private:
    static constexpr std::size_t commit_step = 64 * 1024;

    T* data_ = nullptr;
    std::size_t bytes_ = 0;
    word::native_atomic<std::size_t> committed_;
};

} // namespace obase::heap
