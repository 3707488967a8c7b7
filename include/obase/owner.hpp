// SPDX-License-Identifier: MIT
//
// obase::owner<T>: sole ownership of a managed object that is not in a data structure at present.
//
// What make_managed() returns and guide::release() gives back: like std::unique_ptr, but the
// collector does not know it, so it may live on the stack, in registers and in return values (R12).
// While an owner holds the object, the object does not move and get() needs no scope.
//
//     obase::owner<account> a = obase::make_managed<account>(42);
//     a->balance = 7;                    // not an access: the object is still under construction
//     table[i] = std::move(a);           // a guide takes it over
//
// The object of an owner never moves and never becomes cold, so an owner should be short-lived.
//
// Threads: as std::unique_ptr.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/arming.hpp>
#include <obase/conversion.hpp>
#include <obase/errors.hpp>
#include <obase/mixing.hpp>
#include <obase/relocatable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol>
class guide;
class bytes;

template <class T, class Protocol = arming>
class owner {
  public:
    using element_type = T;
    using protocol = Protocol;

    constexpr owner() noexcept = default;
    constexpr owner(std::nullptr_t) noexcept {}
    owner(owner&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
    // From an owner of T without const, or of a class derived from T (obase/conversion.hpp).
    template <class From>
        requires conversion::wanted<T, From>
    owner(owner<From, Protocol>&& other) noexcept : word_(other.release_word()) {
        conversion::check<T, From>();
    }
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
            destroy(const_cast<std::remove_cv_t<T>*>(object));
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
    // For make_managed: takes over an object that no other thread has seen.
    static owner adopt_newborn(T* object) noexcept {
        owner result;
        result.word_ = Protocol::newborn(const_cast<std::remove_cv_t<T>*>(object));
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

namespace detail {

// Gives memory back if the constructor throws. Not by catch: programs may have no exceptions.
template <class Protocol>
struct under_construction {
    void* memory;
    ~under_construction() {
        if (memory != nullptr) Protocol::deallocate(memory);
    }
};

} // namespace detail

// Makes a T that can be moved, in a place and with room as `how` says. Throws std::bad_alloc, and
// what T's constructor throws; then nothing is left behind. Cost: an allocation in NEW.
template <class T, class Protocol = arming, class... Arguments>
    requires(!std::is_unbounded_array_v<T>)
owner<T, Protocol> make_managed_with(allocation_options how, Arguments&&... arguments) {
    static_assert(!std::is_bounded_array_v<T>,
                  "for an array that is one object, use obase::make_managed<T[]>(n) or std::array");
    static_assert(!std::is_same_v<std::remove_cv_t<T>, bytes>,
                  "obase::bytes is made by obase::make_bytes(text)");
    static_assert(
        !Protocol::moves_objects || !std::is_same_v<std::remove_cv_t<T>, std::string>,
        "objects of this type cannot be moved byte by byte: std::string points into itself. "
        "Use obase::make_string(text), which makes an obase::string, or "
        "obase::make_bytes(text), which keeps the text in the object");
    static_assert(
        !Protocol::moves_objects || std::is_same_v<std::remove_cv_t<T>, std::string> ||
            is_relocatable_v<T>,
        "objects of this type cannot be moved byte by byte, as far as obase knows. If T has no "
        "pointer into itself, its address is kept nowhere but in its guide, and no lock in it is "
        "held "
        "outside of a scope, promise it (outside of all namespaces): "
        "template <> struct obase::is_relocatable<T> : std::true_type {}; "
        "(obase/relocatable.hpp; for text there are obase::string and obase::bytes)");
    static_assert(!Protocol::moves_objects ||
                      !contains_slots_of_another_protocol<std::remove_cv_t<T>, Protocol>::value,
                  "an object of one protocol cannot contain guides of another: when it moves, the "
                  "other protocol's collector would go on visiting the guides' old place. Give "
                  "the object and the guides in it the same protocol (obase/mixing.hpp)");
    static_assert(alignof(T) <= 4096, "alignments above 4096 are not supported");
    how.alignment = std::max(how.alignment, alignof(T));
    how.guided = true;
    if (how.extra_bytes > SIZE_MAX - sizeof(T)) errors::out_of_memory();
    detail::under_construction<Protocol> room{Protocol::allocate(sizeof(T) + how.extra_bytes, how)};
    if (room.memory == nullptr) errors::out_of_memory();
    T* const made = ::new (room.memory) T(std::forward<Arguments>(arguments)...);
    room.memory = nullptr;
    return owner<T, Protocol>::adopt_newborn(made);
}

// Makes a T that can be moved. The result converts to a guide.
template <class T, class Protocol = arming, class... Arguments>
    requires(!std::is_unbounded_array_v<T>)
owner<T, Protocol> make_managed(Arguments&&... arguments) {
    return make_managed_with<T, Protocol>(allocation_options{},
                                          std::forward<Arguments>(arguments)...);
}

} // namespace obase
