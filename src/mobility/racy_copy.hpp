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
//   3. The destination is reachable by nobody until the publish.
// So no thread ever acts on a torn value. The function is out of ThreadSanitizer's sight, and
// nothing else in obase is. When not to use it: for anything but the mover's copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#define OBASE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OBASE_THREAD_SANITIZER 1
#endif
#endif

namespace obase::mobility {

// `size` is a multiple of 8, both addresses are 8-byte aligned, the ranges do not overlap.
#if defined(OBASE_THREAD_SANITIZER)
__attribute__((no_sanitize("thread"), noinline))
#endif
inline void
racy_copy(void* to, const void* from, std::size_t size) noexcept {
#if defined(OBASE_THREAD_SANITIZER)
    // memcpy would be intercepted and checked; volatile keeps the loop from becoming one.
    auto* target = static_cast<volatile std::uint64_t*>(to);
    const auto* source = static_cast<const volatile std::uint64_t*>(from);
    for (std::size_t i = 0; i < size / 8; ++i) target[i] = source[i];
#else
    std::memcpy(to, from, size);
#endif
}

} // namespace obase::mobility
