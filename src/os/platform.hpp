// SPDX-License-Identifier: MIT
//
// native_platform: the real machine, as the `P` of code templated on its platform.
//
// The names that concurrency code of obase uses to touch other threads (atomics, the process-wide
// barrier, spinning, sleeping until another thread
// wakes them, checking an invariant). The deterministic
// platform of testing/deterministic.hpp has the same names, so one source runs under both.
//
// Code whose interleavings do not matter calls the functions of src/os directly.
#pragma once

#include "os/thread.hpp"

#include <obase/word/atomic.hpp>

#include <cstdint>

namespace obase::os {

// Registers the process for expedited barriers (once; later calls return the first answer).
// False: the kernel has none, and scope entry must be an exchange (rule R2).
// Any thread. Survives fork: the registration belongs to the address space, which fork copies.
bool membarrier_available() noexcept;

// One expedited barrier in every running thread of the process. False: nothing was ordered, and the
// caller must not move anything (rule R1). Any thread; a system call.
bool membarrier() noexcept;

// Makes the next and later membarrier() calls fail and membarrier_available() say false. Tests
// only.
void membarrier_fail_for_tests(bool fail) noexcept;

void yield() noexcept;

// Sleeps while `word` holds `expected`, until wake_all(word); may return early. The check and the
// beginning of the sleep are one step for wake_all(). Any thread; a system call, which no signal
// handler of the caller outlasts.
void sleep_on(const word::native_atomic<std::uint32_t>& word, std::uint32_t expected) noexcept;
// The same, for at most about `nanoseconds`.
void sleep_on_for(const word::native_atomic<std::uint32_t>& word, std::uint32_t expected,
                  std::uint64_t nanoseconds) noexcept;
// Ends the sleep of every thread of this process that sleeps on `word`. A system call.
void wake_all(const word::native_atomic<std::uint32_t>& word) noexcept;

// Prints `what` to stderr and aborts.
[[noreturn]] void invariant_broken(const char* what) noexcept;

struct native_platform {
    template <class T>
    using atomic = word::native_atomic<T>;

    // Orders this thread's accesses against its own signal handlers and against membarrier() of
    // another thread; no instruction.
    static void compiler_fence() noexcept { asm volatile("" ::: "memory"); }
    static bool membarrier() noexcept { return os::membarrier(); }
    static bool has_membarrier() noexcept { return os::membarrier_available(); }
    static void pause() noexcept { __builtin_ia32_pause(); }
    static void yield() noexcept { os::yield(); }
    static void sleep_ns(std::uint64_t duration) noexcept { os::sleep_ns(duration); }
    // How often a waiter looks, with a pause() after each look, before it sleeps: some microseconds.
    static constexpr unsigned spins_before_sleep = 256;
    static void sleep_on(const atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
        os::sleep_on(word, expected);
    }
    static void sleep_on_for(const atomic<std::uint32_t>& word, std::uint32_t expected,
                             std::uint64_t nanoseconds) noexcept {
        os::sleep_on_for(word, expected, nanoseconds);
    }
    static void wake_all(const atomic<std::uint32_t>& word) noexcept { os::wake_all(word); }
    static void check(bool ok, const char* what) noexcept {
        if (!ok) [[unlikely]]
            invariant_broken(what);
    }
};

} // namespace obase::os
