// SPDX-License-Identifier: MIT
//
// guide<T[]>: an array as one managed object, its length fixed when it is made.
//
//     obase::guide<float[]> samples = obase::make_managed<float[]>(1000); // value-initialized: zeros
//     {
//         obase::scope s;
//         samples[3] = 1;
//         for (float& x : *samples) x *= 2;
//     }
//
// The object is a managed_array<T>: the length, then the elements. guide<T[]> is a guide of it that
// also has [] and size(); owner<T[]>, pin and retire() likewise. The array moves as a whole, up to
// 4 MiB; larger ones stay where they are. T must be relocatable.
//
// Cost: of a dereference per use of the guide; in a loop take `*samples` once.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/arming.hpp>
#include <obase/errors.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/pin.hpp>
#include <obase/relocatable.hpp>
#include <obase/retire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace obase {

// The length and the elements. Made by make_managed<T[]>() only.
template <class T>
class alignas(std::max(alignof(std::size_t), alignof(T))) managed_array {
  public:
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T* data() noexcept { return reinterpret_cast<T*>(this + 1); }
    const T* data() const noexcept { return reinterpret_cast<const T*>(this + 1); }
    T* begin() noexcept { return data(); }
    T* end() noexcept { return data() + size_; }
    const T* begin() const noexcept { return data(); }
    const T* end() const noexcept { return data() + size_; }
    // Precondition: i < size().
    T& operator[](std::size_t i) noexcept { return data()[i]; }
    const T& operator[](std::size_t i) const noexcept { return data()[i]; }

    // For make_managed<T[]>(): there is room for `size` elements behind this.
    explicit managed_array(std::size_t size) : size_(size) {
        std::uninitialized_value_construct_n(data(), size);
    }
    ~managed_array() { std::destroy_n(data(), size_); }
    managed_array(const managed_array&) = delete;
    managed_array& operator=(const managed_array&) = delete;

  private:
    std::size_t size_;
};

template <class T>
struct is_relocatable<managed_array<T>> : is_relocatable<T> {};
template <class T, class Protocol>
struct contains_slots_of_another_protocol<managed_array<T>, Protocol>
    : contains_slots_of_another_protocol<T, Protocol> {};

template <class T, class Protocol>
class owner<T[], Protocol> : public owner<managed_array<T>, Protocol> {
    using whole = owner<managed_array<T>, Protocol>;

  public:
    using whole::whole;
    owner(whole&& from) noexcept : whole(std::move(from)) {}
    // Precondition: not empty; i < size().
    T& operator[](std::size_t i) const noexcept { return (**this)[i]; }
    std::size_t size() const noexcept { return *this ? (**this).size() : 0; }
};

template <class T, class Protocol>
class guide<T[], Protocol> : public guide<managed_array<T>, Protocol> {
    using whole = guide<managed_array<T>, Protocol>;

  public:
    using whole::whole;
    using whole::operator=;
    // Counts as an access. Preconditions: inside a scope; not null; i < size().
    T& operator[](std::size_t i) const noexcept { return (**this)[i]; }
    // 0 for a null guide. Counts as an access. Precondition: inside a scope.
    std::size_t size() const noexcept {
        const managed_array<T>* array = this->get();
        return array != nullptr ? array->size() : 0;
    }
    owner<T[], Protocol> release() noexcept { return whole::release(); }
    owner<T[], Protocol> exchange(owner<managed_array<T>, Protocol> desired) noexcept {
        return whole::exchange(std::move(desired));
    }
};

template <class T, class Protocol>
struct is_relocatable<guide<T[], Protocol>> : std::true_type {};

// `size` elements, value-initialized. Throws std::bad_alloc, and what T's constructor throws.
template <class Array, class Protocol = arming>
    requires std::is_unbounded_array_v<Array>
owner<Array, Protocol> make_managed_with(allocation_options how, std::size_t size) {
    using T = std::remove_extent_t<Array>;
    if (size > (SIZE_MAX - how.extra_bytes) / sizeof(T)) errors::out_of_memory();
    how.extra_bytes += size * sizeof(T);
    return make_managed_with<managed_array<T>, Protocol>(how, size);
}
template <class Array, class Protocol = arming>
    requires std::is_unbounded_array_v<Array>
owner<Array, Protocol> make_managed(std::size_t size) {
    return make_managed_with<Array, Protocol>(allocation_options{}, size);
}

template <class T, class Protocol>
void retire(owner<T[], Protocol>&& taken) noexcept {
    retire(static_cast<owner<managed_array<T>, Protocol>&&>(taken));
}
template <class T, class Protocol>
void retire(guide<T[], Protocol>&& taken) noexcept {
    retire(taken.release());
}

template <class T, class Protocol>
pin(const guide<T[], Protocol>&) -> pin<managed_array<T>, Protocol>;

} // namespace obase
