// SPDX-License-Identifier: MIT
//
// The quick part of a translation, which calls.S calls in the midst of compiled code. This file is compiled to use general
// registers only, and all that the functions call becomes part of them (handles_test looks at what was made): so nothing but
// those has to be saved. Without an optimizer that is not so, and there the slow part does all.
#include "handles/native.hpp"

using obase::handles::native_handles;

// 0: not so quickly.
extern "C" {
std::uint64_t obase_handles_translate_quickly(std::uint64_t home) noexcept;
std::uint64_t obase_handles_translate_popcnt(std::uint64_t home) noexcept;
// The one for this processor.
std::uint64_t (*obase_handles_translate_chosen)(std::uint64_t) = &obase_handles_translate_quickly;
}

namespace {

template <bool popcnt>
[[gnu::always_inline]] inline std::uint64_t translated(std::uint64_t home) noexcept {
#ifdef __OPTIMIZE__
    native_handles* const all = native_handles::if_made();
    return all == nullptr ? home
                          : native_handles::homes_type::translate_quickly<popcnt>(*all, home);
#else
    return home * 0;
#endif
}

} // namespace

extern "C" __attribute__((flatten)) std::uint64_t
obase_handles_translate_quickly(std::uint64_t home) noexcept {
    return translated<false>(home);
}

extern "C" __attribute__((flatten, target("popcnt"))) std::uint64_t
obase_handles_translate_popcnt(std::uint64_t home) noexcept {
    return translated<true>(home);
}

// While the heap is made: nothing is away yet, so nobody asks.
void obase::handles::choose_translation() noexcept {
    __builtin_cpu_init(); // malloc may be called before its constructor
    if (__builtin_cpu_supports("popcnt"))
        obase_handles_translate_chosen = &obase_handles_translate_popcnt;
}
