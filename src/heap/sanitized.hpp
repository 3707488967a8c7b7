// SPDX-License-Identifier: MIT
//
// sanitized: whether this is built with a sanitizer that keeps a shadow of all memory;
// thread_sanitized: whether that is the one for threads.
//
// Used for smaller reservations, and by tests about resident memory or RLIMIT_AS that a shadow
// would falsify.
#pragma once

namespace obase::heap {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif
#else
inline constexpr bool thread_sanitized = false;
#endif

} // namespace obase::heap
