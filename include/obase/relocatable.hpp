// SPDX-License-Identifier: MIT
//
// obase::is_relocatable<T>: may a T be moved by copying its bytes and forgetting the source (R15)?
//
// The trait that make_managed checks at compile time. True for trivially copyable types and for
// those listed below; false for everything else, until its author says otherwise:
//
//     struct node { obase::guide<obase::bytes> key; std::atomic<int> hits; };
//     template <> struct obase::is_relocatable<node> : std::true_type {};
//
// What opting in promises: the type has no pointer into itself, its address is kept nowhere but in
// the guide, and no lock in it is held outside of a scope. Not so, and so not to be opted in: the
// type points into itself (libstdc++'s std::string, std::list, std::map),
// holds a mutex across scopes, or its address is kept elsewhere: in a hash table keyed by address,
// an intrusive list, the kernel, ThreadSanitizer for a std::mutex.
#pragma once

#include <obase/language.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace obase {

// The second half: compilers call a type trivially copyable although all its copies are deleted,
// and such a type (std::mutex, an intrusive node) is usually uncopyable because its address
// matters.
template <class T>
struct is_relocatable
    : std::bool_constant<std::is_trivially_copyable_v<T> &&
                         (std::is_copy_constructible_v<T> || std::is_move_constructible_v<T> ||
                          std::is_copy_assignable_v<T> || std::is_move_assignable_v<T>)> {};

template <class T>
struct is_relocatable<const T> : is_relocatable<T> {};

// An atomic is its value. A thread that could be inside of one of its operations is in a scope, and
// the object does not move then.
template <class T>
struct is_relocatable<std::atomic<T>> : is_relocatable<T> {};

template <class T>
struct is_relocatable<std::unique_ptr<T>> : std::true_type {};
template <class T>
struct is_relocatable<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct is_relocatable<std::weak_ptr<T>> : std::true_type {};
// libstdc++: three pointers to storage outside of the object.
template <class T>
struct is_relocatable<std::vector<T>> : std::true_type {};
template <class T>
struct is_relocatable<std::optional<T>> : is_relocatable<T> {};
template <class A, class B>
struct is_relocatable<std::pair<A, B>>
    : std::bool_constant<is_relocatable<A>::value && is_relocatable<B>::value> {};
template <class... T>
struct is_relocatable<std::tuple<T...>> : std::bool_constant<(is_relocatable<T>::value && ...)> {};
template <class T, std::size_t N>
struct is_relocatable<std::array<T, N>> : is_relocatable<T> {};
template <class T, std::size_t N>
struct is_relocatable<T[N]> : is_relocatable<T> {};

template <class T>
inline constexpr bool is_relocatable_v = is_relocatable<T>::value;

} // namespace obase
