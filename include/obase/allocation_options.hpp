// SPDX-License-Identifier: MIT
//
// obase::allocation_options: how an object is allocated. Passed to make_managed_with() and to the
// protocols' allocate().
//
//     auto o = obase::make_managed_with<header>({.never_cold = true}, args...);
#pragma once

#include <obase/language.hpp>

#include <cstddef>

namespace obase {

struct allocation_options {
    // Bytes after the object itself, for a type that ends in a variable-sized part. Any size.
    std::size_t extra_bytes = 0;
    // Power of two, 1 to 4096; raised to the type's own alignment where that is larger.
    std::size_t alignment = 1;
    // The object stays out of the COLD class however long it is not touched.
    bool never_cold = false;

    // True if nothing is asked for that every object has not anyway. Known when the program is compiled,
    // for most objects.
    constexpr bool usual() const noexcept {
        return (alignment == 1 || alignment == 2 || alignment == 4 || alignment == 8) &&
               !never_cold;
    }
};

} // namespace obase
