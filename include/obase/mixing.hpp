// SPDX-License-Identifier: MIT
//
// obase::contains_slots_of_another_protocol<T, Protocol>: does a T contain a guide that is not
// Protocol's?
//
// What make_managed<T, Protocol> refuses. When an object moves, its own protocol takes the guides
// in it along. Another protocol's collector would go on visiting the old place, which soon holds
// something else.
//
//     struct node { obase::guide<leaf, obase::atc> in; };
//     obase::make_managed<node, obase::arming>();       // does not compile
//
// Seen are guides, arrays, std::array, pair, tuple and optional of them, and the members of aggregates
// and of aggregates in them, up to 32 members each and up to a std::string_view. C++20 cannot look into other classes, those with
// constructors or private members. For them a specialization may say it:
//
//     template <class P> struct obase::contains_slots_of_another_protocol<my_node, P>
//         : std::bool_constant<!std::is_same_v<P, obase::atc>> {};
//
// What this check does not see is safe at run time: a guide in memory of the other protocol is not
// registered, so its object stays where it is; one message says so.
#pragma once

#include <obase/language.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol>
class guide;

template <class T, class Protocol>
struct contains_slots_of_another_protocol;

namespace mixing {

// Converts to what a member may be, whatever that is. Not to std::string_view: what is made of text, like
// obase::string, else could be made in two ways.
struct any_member {
    template <class V>
        requires(!std::is_same_v<V, std::string_view>)
    constexpr operator V() const noexcept {
        __builtin_unreachable();
    }
};
// Converts to what must not be in an object of Protocol.
template <class Protocol>
struct other_slots {
    template <class V>
        requires contains_slots_of_another_protocol<std::remove_cv_t<V>, Protocol>::value
    constexpr operator V() const noexcept {
        __builtin_unreachable();
    }
};
// The same in a std::optional, which else could be made in two ways.
template <class Protocol>
struct other_slots_in_optional {
    template <class V>
        requires contains_slots_of_another_protocol<std::remove_cv_t<V>, Protocol>::value
    constexpr operator std::optional<V>() const noexcept {
        __builtin_unreachable();
    }
};
// Converts to nothing: who takes this takes everything, as std::any does.
struct nothing {};

template <std::size_t>
using any_at = any_member;

template <class T, class Probe, std::size_t... Before>
consteval bool takes(std::index_sequence<Before...>) {
    return requires { T{any_at<Before>{}..., Probe{}}; };
}
// The probe is taken as member `Member`, by that member's type.
template <class T, class Protocol, std::size_t Member>
consteval bool member_is_other() {
    constexpr std::make_index_sequence<Member> before;
    return (takes<T, other_slots<Protocol>>(before) ||
            takes<T, other_slots_in_optional<Protocol>>(before)) &&
           !takes<T, nothing>(before);
}
template <class T, class Protocol, std::size_t... Member>
consteval bool any_member_is_other(std::index_sequence<Member...>) {
    return (member_is_other<T, Protocol, Member>() || ...);
}

// A trivially destructible type contains no guide.
template <class T, class Protocol>
consteval bool aggregate_contains_other() {
    if constexpr (!std::is_class_v<T> || std::is_trivially_destructible_v<T> ||
                  !std::is_aggregate_v<T>)
        return false;
    else
        return any_member_is_other<T, Protocol>(
            std::make_index_sequence<(sizeof(T) < 32 ? sizeof(T) : 32)>{});
}

} // namespace mixing

template <class T, class Protocol>
struct contains_slots_of_another_protocol
    : std::bool_constant<mixing::aggregate_contains_other<T, Protocol>()> {};

template <class T, class Protocol>
struct contains_slots_of_another_protocol<const T, Protocol>
    : contains_slots_of_another_protocol<T, Protocol> {};
template <class U, class Own, class Protocol>
struct contains_slots_of_another_protocol<guide<U, Own>, Protocol>
    : std::bool_constant<Own::moves_objects && !std::is_same_v<Own, Protocol>> {};
template <class T, std::size_t N, class Protocol>
struct contains_slots_of_another_protocol<T[N], Protocol>
    : contains_slots_of_another_protocol<T, Protocol> {};
template <class T, std::size_t N, class Protocol>
struct contains_slots_of_another_protocol<std::array<T, N>, Protocol>
    : contains_slots_of_another_protocol<T, Protocol> {};
template <class T, class Protocol>
struct contains_slots_of_another_protocol<std::optional<T>, Protocol>
    : contains_slots_of_another_protocol<T, Protocol> {};
template <class A, class B, class Protocol>
struct contains_slots_of_another_protocol<std::pair<A, B>, Protocol>
    : std::bool_constant<contains_slots_of_another_protocol<A, Protocol>::value ||
                         contains_slots_of_another_protocol<B, Protocol>::value> {};
template <class... T, class Protocol>
struct contains_slots_of_another_protocol<std::tuple<T...>, Protocol>
    : std::bool_constant<(contains_slots_of_another_protocol<T, Protocol>::value || ...)> {};

} // namespace obase
