// SPDX-License-Identifier: MIT
//
// obase::owner<T>: sole ownership of a managed object that is not in a data structure at present.
//
// What it is: what make_guide() returns and guide::release() gives back: like std::unique_ptr, but
// the collector does not know it, so it may live on the stack, in registers and in return values
// (R12). While an owner holds the object, the object does not move and get() needs no scope.
//
//     obase::owner<account> a = obase::make_guide<account>(42);
//     a->balance = 7;                    // not an access: the object is still under construction
//     table[i] = std::move(a);           // a guide takes it over
//
// When not to use it: as a long-lived holder. What an owner holds is never moved and never becomes
// cold.
//
// Threads: as std::unique_ptr.
#pragma once

#include <obase/allocation.hpp>
#include <obase/arming.hpp>
#include <obase/relocatable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol>
class guide;

template <class T, class Protocol = arming>
class owner {
  public:
    using element_type = T;
    using protocol = Protocol;

    constexpr owner() noexcept = default;
    constexpr owner(std::nullptr_t) noexcept {}
    owner(owner&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
    owner& operator=(owner&& other) noexcept {
        if (this != &other) {
            // Out of `other` first: it may lie in the object that ends here (a = std::move(a->next)).
            const word::bits taken = other.release_word();
            reset();
            word_ = taken;
        }
        return *this;
    }
    ~owner() { reset(); }

    T* get() const noexcept { return static_cast<T*>(Protocol::address(word_)); }
    T* operator->() const noexcept { return get(); }
    T& operator*() const noexcept { return *get(); }
    explicit operator bool() const noexcept { return word_ != 0; }

    // Destroys the object and frees its memory at once. No thread may still use it; see retire().
    void reset() noexcept {
        if (T* object = get(); object != nullptr) {
            word_ = 0;
            destroy(object);
        }
    }
    void swap(owner& other) noexcept { std::swap(word_, other.word_); }
    friend void swap(owner& a, owner& b) noexcept { a.swap(b); }

    // For guides and containers: the word to store in a slot; the owner becomes empty.
    word::bits release_word() noexcept { return std::exchange(word_, 0); }
    // For guides and containers: takes over an object by its address, which has been accessed.
    static owner adopt(void* object) noexcept {
        owner result;
        result.word_ = reinterpret_cast<word::bits>(object);
        return result;
    }
    // For guides and containers: takes over a word of release_word() or Protocol::exchange().
    static owner restore(word::bits word) noexcept {
        owner result;
        result.word_ = word;
        return result;
    }
    // For make_guide: takes over an object that nobody has seen.
    static owner adopt_newborn(T* object) noexcept {
        owner result;
        result.word_ = Protocol::newborn(object);
        return result;
    }

    // Ends a T that lies in memory of Protocol::allocate().
    static void destroy(void* object) noexcept {
        static_cast<T*>(object)->~T();
        Protocol::deallocate(object);
    }

  private:
    word::bits word_ = 0; // plain or born address
};

// Makes a T that can be moved, in a place and with room as `how` says. Throws std::bad_alloc, and
// what T's constructor throws; then nothing is left behind. Cost: an allocation in NEW.
template <class T, class Protocol = arming, class... Arguments>
owner<T, Protocol> make_guide_with(allocation how, Arguments&&... arguments) {
    static_assert(!Protocol::moves_objects || is_relocatable_v<T>,
                  "objects of this type cannot be moved byte by byte; see obase/relocatable.hpp "
                  "(for text, use obase::string or obase::bytes)");
    static_assert(alignof(T) <= 4096, "alignments above 4096 are not supported");
    how.alignment = std::max(how.alignment, alignof(T));
    if (how.extra_bytes > SIZE_MAX - sizeof(T)) throw std::bad_alloc();
    void* memory = Protocol::allocate(sizeof(T) + how.extra_bytes, how);
    if (memory == nullptr) throw std::bad_alloc();
    if constexpr (std::is_nothrow_constructible_v<T, Arguments...>) {
        return owner<T, Protocol>::adopt_newborn(::new (memory)
                                                     T(std::forward<Arguments>(arguments)...));
    } else {
        try {
            return owner<T, Protocol>::adopt_newborn(::new (memory)
                                                         T(std::forward<Arguments>(arguments)...));
        } catch (...) {
            Protocol::deallocate(memory);
            throw;
        }
    }
}

// Makes a T that can be moved. The result converts to a guide.
template <class T, class Protocol = arming, class... Arguments>
owner<T, Protocol> make_guide(Arguments&&... arguments) {
    return make_guide_with<T, Protocol>(allocation{}, std::forward<Arguments>(arguments)...);
}

} // namespace obase
