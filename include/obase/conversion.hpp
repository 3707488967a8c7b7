// SPDX-License-Identifier: MIT
//
// When an owner or guide of one class becomes one of another: guide<const T> from guide<T>, guide of
// a base class from a guide of a derived class.
//
//     struct shape { virtual ~shape() = default; };
//     struct circle : shape { ... };
//     obase::guide<shape> g = obase::make_managed<circle>(...);
//
// A word holds one address, where the object begins; heaps, pins and the collector know the object by
// it. So the base must lie at the front of the derived class. The object is later destroyed as the
// base: its destructor must be virtual, or there must be nothing to run. What does not qualify is
// refused at compile time, with the reason.
#pragma once

#include <obase/language.hpp>

#include <concepts>
#include <memory>
#include <type_traits>

namespace obase::conversion {

// Room for an object that is never made: only addresses are asked for.
template <class T>
union room {
    char none;
    T object;
    constexpr room() noexcept : none() {}
    constexpr ~room() {}
};

// True if the Base of a Derived begins where the Derived does. Base is not a virtual base.
template <class Base, class Derived>
consteval bool at_the_front() {
    room<Derived> r;
    const volatile Base* base = std::addressof(r.object);
    return static_cast<const volatile void*>(base) ==
           static_cast<const volatile void*>(std::addressof(r.object));
}

template <class To, class From>
concept wanted = !std::same_as<To, From> && !std::is_void_v<To> && std::convertible_to<From*, To*>;

// Refuses what would be unsafe; does nothing at run time.
template <class To, class From>
constexpr void check() noexcept {
    using base = std::remove_cv_t<To>;
    using derived = std::remove_cv_t<From>;
    if constexpr (!std::same_as<base, derived>) {
        constexpr bool is_static = requires(base* b) { static_cast<derived*>(b); };
        static_assert(is_static,
                      "a guide of a virtual base cannot hold the derived object: the base "
                      "does not lie at the object's address");
        if constexpr (is_static)
            static_assert(at_the_front<base, derived>(),
                          "a guide of this base cannot hold the derived object: the base does not "
                          "lie at the object's address (make it the first base)");
        static_assert(
            std::has_virtual_destructor_v<base> || (std::is_trivially_destructible_v<base> &&
                                                    std::is_trivially_destructible_v<derived>),
            "a guide of this base cannot hold the derived object: the base needs a virtual "
            "destructor, because the object is destroyed as the base");
    }
}

} // namespace obase::conversion
