// SPDX-License-Identifier: MIT
//
// obase::allocation_options: how an object is allocated, and what the program knows of its use. Passed to
// make_managed_with() and to the protocols' allocate().
//
//     auto o = obase::make_managed_with<header>({.never_cold = true}, args...);
//     void* key = obase::arming::allocate(24, {.near = node});               // beside the node
//     void* page = obase::arming::allocate(1000, {.expect = obase::expectation::once});
//
// That objects are used together does not change while a program runs; whether they are used at all does. So
// `near` and `group` are promises that obase keeps while the objects stay where they were born, and `expect` is
// a guess that the first windows begin with, and that what is seen replaces (M2T, section III.A: functional and
// non-functional properties). When it pays: docs/placement.md.
#pragma once

#include <obase/language.hpp>

#include <cstddef>
#include <cstdint>

namespace obase {

// How an object will be used, as far as the program knows.
enum class expectation : std::uint8_t {
    nothing,
    hot,  // soon and often
    cold, // hardly
    once  // read once, and freed with its like: a stream
};

// Objects that lie together, by a name that lives in the program's own memory: a bucket that is no object, say.
// Zero bytes are a group without objects; when its last object is freed it is one again. Never copied while
// in use. Any threads may allocate in one group at once.
struct group {
    std::uint64_t name = 0;
};

struct allocation_options {
    // Bytes after the object itself, for a type that ends in a variable-sized part. Any size.
    std::size_t extra_bytes = 0;
    // Power of two, 1 to 4096; raised to the type's own alignment where that is larger.
    std::size_t alignment = 1;
    // The object stays out of the COLD class however long it is not touched.
    bool never_cold = false;
    // Any live object of obase's heaps, beside which the new one is to lie: on its page while that has room,
    // else with the other objects that were put near it. Objects of at most 4096 bytes are placed so; a larger
    // one, and one near anything else (null is no neighbour; freed, of another allocator, not the
    // beginning of an object, larger than 16 KiB), is an ordinary object, which statistics count
    // (near_missed).
    const void* near = nullptr;
    // Used instead of `near` if not null.
    obase::group* in = nullptr;
    // A value that is none of the four is `nothing`. Objects of more than 4096 bytes: `nothing`.
    expectation expect = expectation::nothing;
    // A guide will refer to the object; make_managed_with() and make_bytes() say so. Then it can come back from where it
    // is born, and may be born where what is expected to be hot or cold lies. Objects that have none are born in memory.
    bool guided = false;

    // True if nothing is asked for that every object has not anyway. Known when the program is compiled,
    // for most objects.
    constexpr bool usual() const noexcept {
        return (alignment == 1 || alignment == 2 || alignment == 4 || alignment == 8) &&
               !never_cold && !placed();
    }
    constexpr bool placed() const noexcept {
        return near != nullptr || in != nullptr || expect != expectation::nothing;
    }
};

} // namespace obase
