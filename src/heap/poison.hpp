// SPDX-License-Identifier: MIT
//
// poison(): marks bytes that are freed, so that a use after free shows.
//
// They are overwritten with a pattern (the option poison_freed), or hidden from the program where
// AddressSanitizer is (address_sanitizer.hpp), or both.
//
// Invariant where bytes are hidden: in a run since it was begun, and in LARGE below its frontier, the
// bytes that are not hidden are those of objects; a retired one is an object until it is freed. A heap
// hides a run when it begins, and what is freed before another thread can have it. The space shows
// an object when it hands it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heap/address_sanitizer.hpp"

namespace obase::heap {

inline constexpr unsigned char poison_byte = 0xDB;

enum class poisoning : std::uint8_t { none = 0, overwrite = 1, hide = 2, overwrite_and_hide = 3 };

constexpr bool overwrites(poisoning how) noexcept {
    return (static_cast<unsigned>(how) & static_cast<unsigned>(poisoning::overwrite)) != 0;
}
constexpr bool hides(poisoning how) noexcept {
    return (static_cast<unsigned>(how) & static_cast<unsigned>(poisoning::hide)) != 0;
}
// What there is to do in this process.
inline poisoning poisoning_here(bool overwrite) noexcept {
    const unsigned hide = asan::present() ? static_cast<unsigned>(poisoning::hide) : 0;
    return static_cast<poisoning>((overwrite ? 1U : 0U) | hide);
}

inline void poison(void* begin, std::size_t bytes, poisoning how) noexcept {
    if (overwrites(how)) std::memset(begin, poison_byte, bytes);
    if (hides(how)) asan::hide(begin, bytes);
}

} // namespace obase::heap
