// SPDX-License-Identifier: MIT
//
// The quick part of a translation, which calls.S calls in the midst of compiled code. This file is compiled to use general
// registers only, and all that the function calls becomes part of it (handles_test looks at what was made): so nothing but
// those has to be saved. Without an optimizer that is not so, and there the slow part does all.
#include "handles/native.hpp"

using obase::handles::native_handles;

// 0: not so quickly.
extern "C" __attribute__((flatten)) std::uint64_t
obase_handles_translate_quickly(std::uint64_t home) noexcept {
#ifdef __OPTIMIZE__
    native_handles* const all = native_handles::if_made();
    return all == nullptr ? home : all->objects().translate_quickly(home);
#else
    return home * 0;
#endif
}
