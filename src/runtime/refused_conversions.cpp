// SPDX-License-Identifier: MIT
//
// Which guides become guides of another class, and which are refused, with which words. Compiled by
// ctest as refused_types.cpp is, with -DREFUSED_CONVERSION=... once per refusal.
#include <obase/obase.hpp>

#include <type_traits>
#include <utility>

namespace cases {

struct shape {
    virtual ~shape() = default;
    int sides = 0;
};
struct named {
    virtual ~named() = default;
    int name = 0;
};
struct plain_base {
    int number = 0;
};

struct circle : shape {
    obase::guide<int> inner;
};
struct second_base : named, shape {};
struct virtual_base : virtual shape {};
struct without_virtual_destructor : plain_base {
    obase::guide<int> inner;
};
struct trivial : plain_base {
    int more = 0;
};
class private_base : shape {};

template <class T>
struct base_of {
    using type = shape;
};
template <>
struct base_of<without_virtual_destructor> {
    using type = plain_base;
};

} // namespace cases

template <>
struct obase::is_relocatable<cases::circle> : std::true_type {};

template <class Base, class Derived>
void convert(obase::owner<Derived> a, obase::guide<Derived> b) {
    obase::owner<Base> owned = std::move(a);
    obase::guide<Base> held = std::move(b);
    held = std::move(owned);
}

#if defined(REFUSED_CONVERSION)
using derived = cases::REFUSED_CONVERSION;
template void convert<cases::base_of<derived>::type>(obase::owner<derived>, obase::guide<derived>);
#else
template void convert<cases::shape>(obase::owner<cases::circle>, obase::guide<cases::circle>);
template void convert<const cases::shape>(obase::owner<cases::circle>, obase::guide<cases::circle>);
template void convert<const int>(obase::owner<int>, obase::guide<int>);
template void convert<cases::plain_base>(obase::owner<cases::trivial>,
                                         obase::guide<cases::trivial>);

template <class To, class From>
inline constexpr bool converts = std::is_convertible_v<obase::owner<From>, obase::owner<To>> &&
                                 std::is_convertible_v<obase::guide<From>, obase::guide<To>>;
static_assert(converts<cases::shape, cases::circle> && converts<const int, int>);
static_assert(!converts<int, const int> && !converts<cases::circle, cases::shape>);
static_assert(!converts<cases::shape, cases::private_base>);
static_assert(!converts<int[], int> && !converts<cases::shape[], cases::circle[]>);
#endif
