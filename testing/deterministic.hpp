// SPDX-License-Identifier: MIT
//
// A deterministic scheduler: runs a small concurrent test many times, each time under another
// interleaving that it chooses itself, and can run any of them again.
//
// The threads of a test are fibers of one OS thread, and every operation on a
// deterministic_platform::atomic is a point where the scheduler may continue another one. Memory is
// that of x86: a plain or release store waits in the storing thread's FIFO store buffer and becomes
// visible at a moment which the scheduler chooses too; loads see the own buffer first;
// read-modify-writes, seq_cst stores and membarrier() drain it (membarrier everyone's).
//
// Example (inside namespace obase; a complete set is in deterministic_test.cpp):
//
//     template <class P> struct counter { typename P::template atomic<int> value; };
//
//     TEST(counter, two_increments_count_two) {
//         testing::exploration e{.seeds = testing::scaled(2'000, 50'000, 2'000'000),
//                                .strategy = testing::strategy::pct,
//                                .name = "two increments"};
//         testing::result r = testing::explore(e, [] {
//             counter<testing::deterministic_platform> c;    // set up: this is thread 0
//             testing::name(c.value, "counter");             // for the report
//             for (int i = 0; i < 2; ++i) {
//                 testing::spawn([&] { c.value.fetch_add_relaxed(1); });
//             }
//             testing::run();                                // all threads, to their ends
//             testing::require(c.value.load_relaxed() == 2, "both increments counted");
//         });
//         EXPECT_TRUE(r.ok) << r.report;
//     }
//
// A failing report ends with the schedule and with a line to run that schedule again:
//     OBASE_TEST_REPLAY='two increments/pct:17:3:12'
//
// Rules for the code under test:
//   * The body sets up, spawns, calls run(), and checks. It may spawn and run again. Only between
//     run()'s start and end do threads interleave.
//   * No OS threads, mutexes or condition variables inside: they would block the one OS thread.
//   * thread_local variables are shared by all virtual threads: use thread_index().
//   * A loop that waits for another thread calls P::pause() or P::yield(). The caller is then set
//     behind the others (it runs again soon after memory has changed, or when all others wait
//     too). If all threads only wait, or an execution gets too long, the report says "stuck".
//   * Data which is not in an atomic is not watched, except through testing::access() and
//     tracked_heap (tracked_heap.hpp). Two threads that race on it are found by ThreadSanitizer in
//     the native run of the same body (native_threads.hpp), not here.
//   * An atomic's memory may be given back only after the atomic's destructor, or come from a
//     tracked_heap: a buffered store must have somewhere to go.
//   * A failure abandons the execution where it stands: no destructors run, nothing is thrown, so
//     noexcept code may fail too.
//   * A body must do the same in every execution except for what the schedule changes: no clocks,
//     no real randomness (choose() is the scheduler's), no branches on malloc's addresses.
//
// Limits: it does not find a missing acquire or release, which x86-TSO gives for nothing; system
// calls are not modelled; it says nothing of throughput.
//
// Limits of bounded_exhaustive: a waiting thread looks again only when memory has changed or when
// all others wait too, and schedules that starve a ready thread forever are left out.
//
// Speed (deterministic_bench.cpp, -O3, CPU time of one core of an Intel Xeon, family 6 model 207):
// 33 to 65 ns per step in long executions; a test of two threads with one operation each runs 2.5
// million times per second, three threads with a lock and a heap (140 steps) 120 thousand times.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace testing {} // namespace testing

namespace obase::testing {

// Code inside namespace obase that says testing::Test means GoogleTest's.
using namespace ::testing;

enum class strategy {
    random,             // a random walk; how it weighs threads and flushes varies with the seed
    pct,                // priorities with `depth` - 1 changes (Burckhardt et al., ASPLOS 2010)
    bounded_exhaustive, // every schedule with at most `preemptions` preemptions
};

enum class memory_model {
    tso,        // x86: FIFO store buffers
    sequential, // every store is visible at once
};

enum class membarrier_mode {
    works,
    missing,    // has_membarrier() is false and membarrier() fails
    unreliable, // has_membarrier() is true, and each call may fail
};

struct exploration {
    std::uint64_t seeds = 1000; // executions; at most so many for bounded_exhaustive
    testing::strategy strategy = testing::strategy::random;
    std::string name{};
    testing::memory_model memory = testing::memory_model::tso;
    testing::membarrier_mode membarrier = testing::membarrier_mode::works;
    unsigned depth = 3;               // pct
    unsigned preemptions = 2;         // bounded_exhaustive; flushes are not counted
    std::uint64_t first_seed = 1;     // OBASE_TEST_SEED overrides it
    std::uint64_t max_steps = 50'000; // of one execution; more is a failure
    std::string replay{};             // a result's `replay`: run that schedule only
    unsigned native_rounds = 200;     // native_threads.hpp
};

struct result {
    bool ok = true;
    std::string report{};  // what failed, the schedule, how to replay it; or a summary
    std::string failure{}; // what failed, alone
    std::string replay{};  // of the failed execution
    std::string trace{};   // of the failed execution, its last steps
    std::uint64_t executions = 0;
    std::uint64_t steps = 0;      // of all executions
    std::uint64_t trace_hash = 0; // of the last execution: which threads did what, in which order
    bool complete = false;        // bounded_exhaustive: there is no further schedule
};

// Runs `body` under many schedules, until one fails. Not to be nested.
[[nodiscard]] result explore(const exploration& e, const std::function<void()>& body);

// For bodies and the code they run.

// A new virtual thread. From the body: starts with run(). From a virtual thread: starts at once.
void spawn(std::function<void()> work);
void spawn(std::string thread_name, std::function<void()> work);

// Runs all spawned threads to their ends and drains the store buffers. From the body only.
void run();

// Abandons this execution as failed unless `condition` holds.
void require(bool condition, const char* what);
[[noreturn]] void fail(const std::string& what);

// A number in [0, n), the scheduler's choice: every value is tried.
unsigned choose(unsigned n);

// 0 in the body, 1.. in virtual threads (in the order of spawn, anew for each run()).
unsigned thread_index();
constexpr unsigned max_threads = 32;

// Steps of this execution so far: a logical clock for histories.
std::uint64_t now();

// A line of the caller's own in the trace. `text` is a literal.
void note(const char* text, std::uint64_t value = 0);

// Names memory in reports.
void name(const void* address, std::size_t size, std::string text);
template <class A>
void name(const A& object, std::string text) {
    testing::name(&object, sizeof(object), std::move(text));
}

namespace detail {

#define OBASE_TESTING_OPERATIONS(X)                                                                \
    X(load_relaxed)                                                                                \
    X(load_acquire)                                                                                \
    X(load_seq_cst)                                                                                \
    X(store_relaxed)                                                                               \
    X(store_release)                                                                               \
    X(store_seq_cst)                                                                               \
    X(exchange_relaxed)                                                                            \
    X(exchange_acq_rel)                                                                            \
    X(exchange_seq_cst)                                                                            \
    X(cas_relaxed)                                                                                 \
    X(cas_release)                                                                                 \
    X(cas_acq_rel)                                                                                 \
    X(cas_seq_cst)                                                                                 \
    X(fetch_add_relaxed)                                                                           \
    X(fetch_add_acq_rel)                                                                           \
    X(fetch_add_seq_cst)                                                                           \
    X(fetch_sub_relaxed)                                                                           \
    X(fetch_sub_acq_rel)                                                                           \
    X(fetch_sub_seq_cst)                                                                           \
    X(fetch_or_relaxed)                                                                            \
    X(fetch_or_acq_rel)                                                                            \
    X(fetch_or_seq_cst)                                                                            \
    X(fetch_and_relaxed)                                                                           \
    X(fetch_and_acq_rel)                                                                           \
    X(fetch_and_seq_cst)                                                                           \
    X(initialize)                                                                                  \
    X(flush)                                                                                       \
    X(membarrier)                                                                                  \
    X(membarrier_fails)                                                                            \
    X(pause)                                                                                       \
    X(yield)                                                                                       \
    X(sleep)                                                                                       \
    X(wake)                                                                                        \
    X(spawn)                                                                                       \
    X(end)                                                                                         \
    X(choose)                                                                                      \
    X(note)                                                                                        \
    X(allocate)                                                                                    \
    X(free)                                                                                        \
    X(unmap)                                                                                       \
    X(read)                                                                                        \
    X(write)                                                                                       \
    X(racy_read)                                                                                   \
    X(racy_write)

enum class operation : std::uint8_t {
#define OBASE_TESTING_ENUMERATOR(name) name,
    OBASE_TESTING_OPERATIONS(OBASE_TESTING_ENUMERATOR)
#undef OBASE_TESTING_ENUMERATOR
};

enum class arithmetic : std::uint8_t { replace, add, subtract, bit_or, bit_and };

// Each is one step of the running virtual thread. Outside of an exploration they act on memory
// directly.
std::uint64_t load(operation o, const void* address, unsigned size) noexcept;
void store(operation o, void* address, unsigned size, std::uint64_t value) noexcept;
std::uint64_t modify(operation o, arithmetic a, void* address, unsigned size,
                     std::uint64_t operand) noexcept;
bool compare_exchange(operation o, void* address, unsigned size, std::uint64_t& expected,
                      std::uint64_t desired) noexcept;
void initialize(void* address, unsigned size, std::uint64_t value) noexcept;
void destroy(void* address, unsigned size) noexcept;
bool membarrier() noexcept;
bool has_membarrier() noexcept;
void wait(operation o) noexcept;
void sleep_on(const void* address, std::uint32_t expected) noexcept;
void wake_all(const void* address) noexcept;

} // namespace detail

// word::native_atomic's members over the scheduler's memory. Exactly a T in size, so it may be
// placed anywhere a T may: its store buffer entries, name and history are kept by address.
template <class T>
class deterministic_atomic {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0);

    using op = detail::operation;
    using arith = detail::arithmetic;

  public:
    constexpr deterministic_atomic() noexcept : deterministic_atomic(T{}) {}
    // In a running thread the first value goes through the store buffer like any other store, so
    // value_ must not be written here.
    constexpr explicit deterministic_atomic(T value) noexcept {
        if (std::is_constant_evaluated()) {
            std::construct_at(&value_, value);
        } else {
            detail::initialize(&value_, sizeof(T), to_bits(value));
        }
    }
    ~deterministic_atomic() { detail::destroy(&value_, sizeof(T)); }
    deterministic_atomic(const deterministic_atomic&) = delete;
    deterministic_atomic& operator=(const deterministic_atomic&) = delete;

    T load_relaxed() const noexcept { return load(op::load_relaxed); }
    T load_acquire() const noexcept { return load(op::load_acquire); }
    T load_seq_cst() const noexcept { return load(op::load_seq_cst); }

    void store_relaxed(T value) noexcept { store(op::store_relaxed, value); }
    void store_release(T value) noexcept { store(op::store_release, value); }
    void store_seq_cst(T value) noexcept { store(op::store_seq_cst, value); }

    T exchange_relaxed(T value) noexcept { return swap(op::exchange_relaxed, value); }
    T exchange_acq_rel(T value) noexcept { return swap(op::exchange_acq_rel, value); }
    T exchange_seq_cst(T value) noexcept { return swap(op::exchange_seq_cst, value); }

    bool cas_relaxed(T& expected, T desired) noexcept {
        return cas(op::cas_relaxed, expected, desired);
    }
    bool cas_release(T& expected, T desired) noexcept {
        return cas(op::cas_release, expected, desired);
    }
    bool cas_acq_rel(T& expected, T desired) noexcept {
        return cas(op::cas_acq_rel, expected, desired);
    }
    bool cas_seq_cst(T& expected, T desired) noexcept {
        return cas(op::cas_seq_cst, expected, desired);
    }

    T fetch_add_relaxed(T v) noexcept { return fetch(op::fetch_add_relaxed, arith::add, v); }
    T fetch_add_acq_rel(T v) noexcept { return fetch(op::fetch_add_acq_rel, arith::add, v); }
    T fetch_add_seq_cst(T v) noexcept { return fetch(op::fetch_add_seq_cst, arith::add, v); }

    T fetch_sub_relaxed(T v) noexcept { return fetch(op::fetch_sub_relaxed, arith::subtract, v); }
    T fetch_sub_acq_rel(T v) noexcept { return fetch(op::fetch_sub_acq_rel, arith::subtract, v); }
    T fetch_sub_seq_cst(T v) noexcept { return fetch(op::fetch_sub_seq_cst, arith::subtract, v); }

    T fetch_or_relaxed(T v) noexcept { return fetch(op::fetch_or_relaxed, arith::bit_or, v); }
    T fetch_or_acq_rel(T v) noexcept { return fetch(op::fetch_or_acq_rel, arith::bit_or, v); }
    T fetch_or_seq_cst(T v) noexcept { return fetch(op::fetch_or_seq_cst, arith::bit_or, v); }

    T fetch_and_relaxed(T v) noexcept { return fetch(op::fetch_and_relaxed, arith::bit_and, v); }
    T fetch_and_acq_rel(T v) noexcept { return fetch(op::fetch_and_acq_rel, arith::bit_and, v); }
    T fetch_and_seq_cst(T v) noexcept { return fetch(op::fetch_and_seq_cst, arith::bit_and, v); }

  private:
    static std::uint64_t to_bits(T value) noexcept {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof(T));
        return bits;
    }
    static T from_bits(std::uint64_t bits) noexcept {
        std::array<char, sizeof(T)> bytes;
        std::memcpy(bytes.data(), &bits, sizeof(T));
        return std::bit_cast<T>(bytes);
    }
    T load(op o) const noexcept { return from_bits(detail::load(o, &value_, sizeof(T))); }
    void store(op o, T value) noexcept { detail::store(o, &value_, sizeof(T), to_bits(value)); }
    T swap(op o, T value) noexcept {
        return from_bits(detail::modify(o, arith::replace, &value_, sizeof(T), to_bits(value)));
    }
    T fetch(op o, arith a, T operand) noexcept {
        static_assert(std::is_integral_v<T>);
        return from_bits(detail::modify(o, a, &value_, sizeof(T), to_bits(operand)));
    }
    bool cas(op o, T& expected, T desired) noexcept {
        std::uint64_t seen = to_bits(expected);
        const bool done = detail::compare_exchange(o, &value_, sizeof(T), seen, to_bits(desired));
        if (!done) {
            expected = from_bits(seen);
        }
        return done;
    }

    union {
        T value_;
    };
};

static_assert(sizeof(deterministic_atomic<unsigned long>) == sizeof(unsigned long));

// The platform for code templated on one; os::native_platform has the same members.
struct deterministic_platform {
    template <class T>
    using atomic = deterministic_atomic<T>;

    // The scheduler does not reorder a thread's own program order: nothing to do.
    static void compiler_fence() noexcept {}
    static bool membarrier() noexcept { return detail::membarrier(); }
    static bool has_membarrier() noexcept { return detail::has_membarrier(); }
    static void pause() noexcept { detail::wait(detail::operation::pause); }
    static void yield() noexcept { detail::wait(detail::operation::yield); }
    // Time passes when the scheduler likes.
    static void sleep_ns(std::uint64_t) noexcept { yield(); }
    static constexpr unsigned spins_before_sleep = 1;
    // The thread does not go on before a wake_all(): a wake-up that is lost is a test that is stuck.
    static void sleep_on(const atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
        detail::sleep_on(&word, expected);
    }
    // Time passes when the scheduler likes.
    static void sleep_on_for(const atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept {
        yield();
    }
    static void wake_all(const atomic<std::uint32_t>& word) noexcept { detail::wake_all(&word); }
    static void check(bool ok, const char* what) noexcept { testing::require(ok, what); }
};

} // namespace obase::testing
