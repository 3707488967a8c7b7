// SPDX-License-Identifier: MIT
//
// sanitized: whether this is built with a sanitizer that keeps a shadow of all memory;
// thread_sanitized and OBASE_THREAD_SANITIZER: whether that is the one for threads.
//
// Used for smaller reservations, and by tests about resident memory or RLIMIT_AS that a shadow
// would falsify.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define OBASE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OBASE_THREAD_SANITIZER 1
#else
#define OBASE_THREAD_SANITIZER 0
#endif
#else
#define OBASE_THREAD_SANITIZER 0
#endif

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

inline constexpr bool thread_sanitized = OBASE_THREAD_SANITIZER != 0;

} // namespace obase::heap
