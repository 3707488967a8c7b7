// SPDX-License-Identifier: MIT
//
// racy_copy: copies an object that a thread may be writing. The danger is in the name.
//
// By the letter of C++ this is a data race, like the read side of a seqlock. It is harmless here,
// and only here, for these reasons:
//   1. The result is used only if the publish that follows succeeds, and that compare-exchange fails
//      if any thread touched the object's word since it was armed. A thread that wrote the object
//      during the copy either touched the word first (veto, the copy is thrown away unread) or holds
//      an address from before the arming, and for such threads the mover has waited (R1, R7).
//   2. The source stays mapped readable until the collector is past it (R7), whatever is freed.
//   3. No thread can reach the destination until the publish.
// So no thread ever acts on a torn value. The function is out of ThreadSanitizer's sight, and
// nothing else in obase is. It is also out of AddressSanitizer's, since an object that is freed
// meanwhile is hidden (heap/poison.hpp). Only the mover's copy may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heap/address_sanitizer.hpp"
#include "heap/sanitized.hpp"

namespace obase::mobility {

// memcpy would be intercepted and checked; volatile keeps the loop from becoming one.
__attribute__((no_sanitize("thread", "address"), noinline)) inline void
copy_unseen(void* to, const void* from, std::size_t size) noexcept {
    auto* target = static_cast<volatile std::uint64_t*>(to);
    const auto* source = static_cast<const volatile std::uint64_t*>(from);
    for (std::size_t i = 0; i < size / 8; ++i) target[i] = source[i];
}

// `size` is a multiple of 8, both addresses are 8-byte aligned, the ranges do not overlap.
inline void racy_copy(void* to, const void* from, std::size_t size) noexcept {
    if (heap::sanitized || heap::asan::present())
        copy_unseen(to, from, size);
    else
        std::memcpy(to, from, size);
}

} // namespace obase::mobility
