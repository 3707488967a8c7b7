// SPDX-License-Identifier: MIT
//
// asan: the AddressSanitizer and LeakSanitizer of the program, if it is built with them.
//
// The library need not be: their runtimes are found by weak references, which are null in other programs.
// Every call does nothing then.
//
// Hidden bytes are those that the program must not access: AddressSanitizer reports it as
// use-after-poison. Functions that the library itself is to access hidden bytes with have
// OBASE_SEES_HIDDEN, which counts where the library is built with AddressSanitizer; and they call neither
// memcpy nor memset, which are checked everywhere.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define OBASE_SEES_HIDDEN __attribute__((no_sanitize("address")))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBASE_SEES_HIDDEN __attribute__((no_sanitize("address")))
#endif
#endif
#if !defined(OBASE_SEES_HIDDEN)
#define OBASE_SEES_HIDDEN
#endif

// As <sanitizer/asan_interface.h> and <sanitizer/lsan_interface.h> declare them.
#define OBASE_IF_THERE __attribute__((weak, visibility("default")))
extern "C" {
OBASE_IF_THERE void __asan_poison_memory_region(void const volatile* begin, std::size_t bytes);
OBASE_IF_THERE void __asan_unpoison_memory_region(void const volatile* begin, std::size_t bytes);
OBASE_IF_THERE void __lsan_register_root_region(const void* begin, std::size_t bytes);
OBASE_IF_THERE void __lsan_unregister_root_region(const void* begin, std::size_t bytes);
OBASE_IF_THERE void __lsan_ignore_object(const void* object);
}
#undef OBASE_IF_THERE

namespace obase::heap::asan {

inline bool present() noexcept { return &__asan_poison_memory_region != nullptr; }

inline void hide(const void* begin, std::size_t bytes) noexcept {
    if (present()) __asan_poison_memory_region(begin, bytes);
}
// `begin` lies on a multiple of 8.
inline void show(const void* begin, std::size_t bytes) noexcept {
    if (present()) __asan_unpoison_memory_region(begin, bytes);
}

// What words in the range point at is not leaked, as long as they are not hidden. At exit, what of the
// range is readable is read.
inline void add_leak_roots(const void* begin, std::size_t bytes) noexcept {
    if (&__lsan_register_root_region != nullptr) __lsan_register_root_region(begin, bytes);
}
inline void remove_leak_roots(const void* begin, std::size_t bytes) noexcept {
    if (&__lsan_unregister_root_region != nullptr) __lsan_unregister_root_region(begin, bytes);
}
// An object of malloc's is not leaked, whatever refers to it, nor is what it owns.
inline void never_leaked(const void* object) noexcept {
    if (&__lsan_ignore_object != nullptr) __lsan_ignore_object(object);
}

} // namespace obase::heap::asan
