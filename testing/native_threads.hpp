// SPDX-License-Identifier: MIT
//
// threads_for<P>: lets one test body, templated on its platform, run in both worlds: under the
// deterministic scheduler, where every interleaving is chosen, and on OS threads, where the
// sanitizers watch and the memory is the machine's.
//
// Example:
//     template <class P> void increments() {
//         using threads = testing::threads_for<P>;
//         typename P::template atomic<int> counter;
//         for (int i = 0; i < 2; ++i) {
//             threads::spawn([&] { counter.fetch_add_relaxed(1); });
//         }
//         threads::run();
//         threads::require(counter.load_relaxed() == 2, "both increments counted");
//     }
//     TEST(counter, deterministic) {
//         auto r = testing::threads_for<testing::deterministic_platform>::explore(
//             {.name = "increments"}, increments<testing::deterministic_platform>);
//         EXPECT_TRUE(r.ok) << r.report;
//     }
//     TEST(counter, native) {
//         auto r = testing::threads_for<os::native_platform>::explore(
//             {.name = "increments"}, increments<os::native_platform>);
//         EXPECT_TRUE(r.ok) << r.report;
//     }
//
// Natively explore() repeats the body exploration::native_rounds times and ignores the strategy;
// a failed require() is remembered and the body goes on to its end, since threads cannot be
// abandoned; heap is malloc, whose errors AddressSanitizer finds, and access() does nothing.
//
// A body whose outcome is certain only under a chosen schedule must not run natively.
#pragma once

#include "testing/deterministic.hpp"
#include "testing/tracked_heap.hpp"

#include <obase/word/atomic.hpp>

#include <latch>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace obase::testing {

namespace detail {

// The state of a native run: one at a time in a process.
struct native_run {
    std::vector<std::function<void()>> work;
    std::mutex failure_mutex;
    std::string failure;
    word::native_atomic<std::uint64_t> clock{0};
    word::native_atomic<std::uint64_t> random{0};
};

inline native_run& native() {
    static native_run the_run;
    return the_run;
}

inline thread_local unsigned native_thread_index = 0;

} // namespace detail

// Memory with tracked_heap's interface, from malloc.
class native_heap {
  public:
    using options = tracked_heap::options;
    native_heap() = default;
    explicit native_heap(options) {}

    [[nodiscard]] void* allocate(std::size_t size, const char* = "", std::size_t alignment = 16) {
        return ::operator new(size, std::align_val_t{alignment});
    }
    void free(void* address, std::size_t alignment = 16) {
        ::operator delete(address, std::align_val_t{alignment});
    }
    template <class T, class... Arguments>
    [[nodiscard]] T* create(const char*, Arguments&&... arguments) {
        return ::new (allocate(sizeof(T), "", alignment_of<T>()))
            T(std::forward<Arguments>(arguments)...);
    }
    template <class T>
    void destroy(T* object) {
        object->~T();
        free(object, alignment_of<T>());
    }

  private:
    template <class T>
    static constexpr std::size_t alignment_of() {
        return alignof(T) < 16 ? 16 : alignof(T);
    }
};

// On OS threads, for any platform but the deterministic one.
template <class P>
struct threads_for {
    static constexpr bool deterministic = false;
    using heap = native_heap;

    static result explore(const exploration& e, const std::function<void()>& body) {
        detail::native_run& n = detail::native();
        result r;
        for (unsigned i = 0; i < e.native_rounds && r.ok; ++i) {
            n.work.clear();
            body();
            ++r.executions;
            if (!n.failure.empty()) {
                r.ok = false;
                r.failure = std::exchange(n.failure, {});
                r.report = e.name + " (native, round " + std::to_string(i) + "): " + r.failure;
            }
        }
        return r;
    }

    static void spawn(std::function<void()> work) {
        detail::native().work.push_back(std::move(work));
    }
    static void spawn(const std::string&, std::function<void()> work) { spawn(std::move(work)); }

    // All threads start together, as far as the machine allows.
    static void run() {
        std::vector<std::function<void()>> work = std::exchange(detail::native().work, {});
        std::latch start(static_cast<std::ptrdiff_t>(work.size()));
        std::vector<std::thread> threads;
        threads.reserve(work.size());
        for (std::size_t i = 0; i < work.size(); ++i) {
            threads.emplace_back([&, i] {
                detail::native_thread_index = static_cast<unsigned>(i) + 1;
                start.arrive_and_wait();
                work[i]();
            });
        }
        for (std::thread& t : threads) {
            t.join();
        }
    }

    static void require(bool condition, const char* what) {
        if (!condition) {
            const std::lock_guard lock(detail::native().failure_mutex);
            if (detail::native().failure.empty()) {
                detail::native().failure = what;
            }
        }
    }

    static unsigned choose(unsigned n) {
        // splitmix64's finalizer over a counter.
        std::uint64_t z = (detail::native().random.fetch_add_relaxed(1) + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        return n <= 1 ? 0 : static_cast<unsigned>((z >> 33) % n);
    }
    static unsigned thread_index() { return detail::native_thread_index; }
    static std::uint64_t now() { return detail::native().clock.fetch_add_seq_cst(1) + 1; }

    static void note(const char*, std::uint64_t = 0) {}
    template <class A>
    static void name(const A&, const std::string&) {}
    static void access(const void*, std::size_t, bool) {}
};

template <>
struct threads_for<deterministic_platform> {
    static constexpr bool deterministic = true;
    using heap = tracked_heap;

    static result explore(const exploration& e, const std::function<void()>& body) {
        return testing::explore(e, body);
    }
    static void spawn(std::function<void()> work) { testing::spawn(std::move(work)); }
    static void spawn(std::string thread_name, std::function<void()> work) {
        testing::spawn(std::move(thread_name), std::move(work));
    }
    static void run() { testing::run(); }
    static void require(bool condition, const char* what) { testing::require(condition, what); }
    static unsigned choose(unsigned n) { return testing::choose(n); }
    static unsigned thread_index() { return testing::thread_index(); }
    static std::uint64_t now() { return testing::now(); }
    static void note(const char* text, std::uint64_t value = 0) { testing::note(text, value); }
    template <class A>
    static void name(const A& object, std::string text) {
        testing::name(object, std::move(text));
    }
    static void access(const void* address, std::size_t size, bool write) {
        testing::access(address, size, write);
    }
};

} // namespace obase::testing
