// SPDX-License-Identifier: MIT
//
// What make_managed accepts and what it refuses to compile (O7, R15). Compiled by ctest, with
// -DREFUSED_TYPE=... once per refusal, whose text it looks for, and once without for all the rest.
#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <any>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cases {

using string = std::string;
using bytes = obase::bytes;
using bounded_array = int[4];
using array_of_strings = std::string[];
struct member_string {
    std::string text;
};
// Points at itself, as its constructors show.
struct self_pointer {
    self_pointer* self = this;
    self_pointer() = default;
    self_pointer(const self_pointer&) : self(this) {}
};
// The same, and it says so by not being copyable at all.
struct uncopyable_self_pointer {
    uncopyable_self_pointer* self = this;
    uncopyable_self_pointer() = default;
    uncopyable_self_pointer(const uncopyable_self_pointer&) = delete;
    uncopyable_self_pointer& operator=(const uncopyable_self_pointer&) = delete;
};
struct with_virtual_destructor {
    virtual ~with_virtual_destructor() = default;
};
// Holds a guide, which may be relocated, but has not said so for itself.
struct silent_about_its_guide {
    obase::guide<int> inner;
};
// A guide of one protocol in an object of the other, wherever it is.
struct mixed_member {
    int before = 0;
    obase::guide<int> one;
    obase::guide<int, obase::atc> other;
};
struct mixed_in_a_member {
    obase::string name;
    std::array<std::pair<int, obase::guide<int>>, 2> some;
    struct {
        int before;
        std::optional<obase::guide<int, obase::atc>> other;
    } inner[2];
};
using mixed_array = std::tuple<int, obase::guide<int, obase::atc>>[];
struct alignas(8192) too_aligned {
    int value = 0;
};

struct plain_struct {
    int a = 0;
    double b = 0;
};
struct opted_in {
    obase::guide<int> inner;
    obase::string name;
};
struct alignas(4096) page {
    int value = 0;
};

} // namespace cases

template <>
struct obase::is_relocatable<cases::opted_in> : std::true_type {};

template <>
struct obase::is_relocatable<cases::mixed_member> : std::true_type {};
template <>
struct obase::is_relocatable<cases::mixed_in_a_member> : std::true_type {};

template <class T, class Protocol>
inline constexpr bool mixes = obase::contains_slots_of_another_protocol<T, Protocol>::value;
namespace cases {
struct takes_everything {
    std::any anything;
    std::function<void()> action;
    std::string text;
    std::vector<obase::guide<int, obase::atc>> elsewhere;
    obase::owner<int, obase::atc> owned;
    obase::guide<int, obase::plain> plain;
    obase::guide<int> one[2];
};
struct of_atc {
    const int& reference;
    obase::guide<int, obase::atc> one;
};
} // namespace cases
static_assert(mixes<cases::mixed_member, obase::arming> && mixes<cases::mixed_member, obase::atc>);
static_assert(mixes<cases::mixed_in_a_member, obase::arming>);
static_assert(mixes<cases::mixed_in_a_member[3], obase::atc>);
static_assert(mixes<const cases::takes_everything, obase::atc>);
static_assert(!mixes<cases::takes_everything, obase::arming>);
static_assert(mixes<cases::of_atc, obase::arming> && !mixes<cases::of_atc, obase::atc>);
static_assert(!mixes<std::string, obase::arming> && !mixes<int, obase::arming>);

template <class... T>
inline constexpr bool none_relocatable = (!obase::is_relocatable_v<T> && ...);
static_assert(none_relocatable<std::string, const std::string, std::list<int>, std::map<int, int>>);
static_assert(none_relocatable<std::mutex, std::condition_variable, std::lock_guard<std::mutex>>);
static_assert(
    none_relocatable<std::string[3], std::array<std::string, 2>, std::optional<std::string>,
                     std::pair<int, std::string>, std::tuple<int, std::string>>);
static_assert(none_relocatable<cases::member_string, cases::self_pointer,
                               cases::uncopyable_self_pointer, cases::uncopyable_self_pointer[2],
                               cases::with_virtual_destructor, cases::silent_about_its_guide>);

// Of arming, so no object of atc.
template <class T>
inline constexpr bool with_guides = mixes<std::remove_extent_t<T>, obase::atc>;

template <class T>
void make() {
    if constexpr (std::is_unbounded_array_v<T>) {
        [[maybe_unused]] auto arming = obase::make_managed<T>(7);
        if constexpr (!with_guides<T>) [[maybe_unused]]
            auto atc = obase::make_managed<T, obase::atc>(7);
    } else {
        [[maybe_unused]] auto arming = obase::make_managed<T>();
        if constexpr (!with_guides<T>) [[maybe_unused]]
            auto atc = obase::make_managed<T, obase::atc>();
    }
}

#if defined(REFUSED_TYPE)
template void make<cases::REFUSED_TYPE>();
#else
template void make<int>();
template void make<std::pair<int, double>>();
template void make<std::atomic<int>>();
template void make<std::vector<std::string>>();
template void make<std::unique_ptr<std::string>>();
template void make<std::shared_ptr<std::string>>();
template void make<obase::string>();
template void make<obase::guide<std::pair<int, int>>>();
template void make<cases::plain_struct>();
template void make<cases::opted_in>();
template void make<cases::page>();
template void make<const cases::plain_struct>();
template void make<int[]>();
template void make<obase::guide<int[]>[]>();
// Where nothing moves, anything goes.
[[maybe_unused]] static auto text() {
    return obase::make_managed<std::string, obase::plain>("text");
}
#endif
