// SPDX-License-Identifier: MIT
//
// heap_shortage: while one exists, operator new has no memory for the thread that made it.
//
//     {
//         testing::heap_shortage none;
//         EXPECT_EQ(reclaim(), 0u);
//     }
//
// Including this header replaces operator new, so it is included by one source file of an
// executable. The sanitizers keep their own operator new: there `possible` is false, and the test
// should be skipped.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OBASE_TESTING_HEAP_IS_SANITIZERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OBASE_TESTING_HEAP_IS_SANITIZERS 1
#endif
#endif

namespace obase::testing {

class heap_shortage {
  public:
#if defined(OBASE_TESTING_HEAP_IS_SANITIZERS)
    static constexpr bool possible = false;
#else
    static constexpr bool possible = true;
#endif
    heap_shortage() noexcept { here = true; }
    ~heap_shortage() { here = false; }
    heap_shortage(const heap_shortage&) = delete;
    heap_shortage& operator=(const heap_shortage&) = delete;

    static inline thread_local bool here = false;
};

} // namespace obase::testing

#if !defined(OBASE_TESTING_HEAP_IS_SANITIZERS)
// Not inlined: g++ would take malloc and free for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* p = obase::testing::heap_shortage::here ? nullptr : std::malloc(bytes);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto a = static_cast<std::size_t>(alignment);
    void* p = obase::testing::heap_shortage::here ? nullptr
                                                  : std::aligned_alloc(a, (bytes + a - 1) / a * a);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}
#endif
