// SPDX-License-Identifier: MIT
//
// The scheduler is an instrument, so most of these tests give it a program known to be wrong and
// require that it says so, next to the corrected program, which must pass. The litmus tests'
// outcomes are those of x86-TSO (Sewell et al., CACM 2010).
#include "testing/deterministic.hpp"

#include "os/platform.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"
#include "testing/tracked_heap.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>

namespace obase {
namespace {

using platform = testing::deterministic_platform;
template <class T>
using atomic = platform::atomic<T>;
using testing::exploration;
using testing::explore;
using testing::result;
using testing::strategy;

constexpr strategy all_strategies[] = {strategy::random, strategy::pct,
                                       strategy::bounded_exhaustive};

// Everything that a small program can do.
exploration exhaustive(const char* name) {
    return {.seeds = 1'000'000,
            .strategy = strategy::bounded_exhaustive,
            .name = name,
            .preemptions = 1000};
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// Inside namespace obase, testing::Test is GoogleTest's.
class fixture : public testing::Test {};
TEST_F(fixture, googletest_is_found_inside_namespace_obase) { EXPECT_FALSE(HasFatalFailure()); }

// Store buffering: each thread writes its own word and then reads the other's. If both read 0, both
// would enter Dekker's critical section.
enum class fence { none, seq_cst, membarrier };

void dekker(fence first, fence second) {
    atomic<int> x, y;
    int seen[2] = {-1, -1};
    testing::name(x, "x");
    testing::name(y, "y");
    auto side = [&seen](atomic<int>& mine, atomic<int>& other, fence f, int i) {
        if (f == fence::seq_cst) {
            mine.store_seq_cst(1);
        } else {
            mine.store_relaxed(1);
        }
        if (f == fence::membarrier && !platform::membarrier()) {
            return;
        }
        platform::compiler_fence();
        seen[i] = other.load_relaxed();
    };
    testing::spawn([&] { side(x, y, first, 0); });
    testing::spawn([&] { side(y, x, second, 1); });
    testing::run();
    testing::require(!(seen[0] == 0 && seen[1] == 0), "both read 0");
}

TEST(memory_model, stores_wait_in_the_buffer_while_later_loads_go_ahead) {
    for (strategy s : all_strategies) {
        exploration e{.strategy = s, .name = "dekker"};
        const result r = explore(e, [] { dekker(fence::none, fence::none); });
        EXPECT_FALSE(r.ok);
        EXPECT_EQ(r.failure, "both read 0");
        EXPECT_TRUE(contains(r.report, "store_relaxed x")) << r.report;
        EXPECT_TRUE(contains(r.report, "OBASE_TEST_REPLAY='dekker/")) << r.report;
    }
}

TEST(memory_model, one_fence_is_not_enough) {
    EXPECT_FALSE(explore({.name = "dekker"}, [] { dekker(fence::seq_cst, fence::none); }).ok);
}

TEST(memory_model, seq_cst_stores_forbid_it) {
    for (strategy s : all_strategies) {
        const result r = explore({.strategy = s, .name = "dekker"},
                                 [] { dekker(fence::seq_cst, fence::seq_cst); });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(memory_model, membarrier_on_one_side_forbids_it) {
    const result r = explore(exhaustive("dekker"), [] { dekker(fence::none, fence::membarrier); });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_TRUE(r.complete);
}

TEST(memory_model, membarrier_that_fails_orders_nothing) {
    exploration e = exhaustive("membarrier");
    auto ignore_its_result = [] {
        atomic<int> x, y;
        int a = -1, b = -1;
        testing::spawn([&] {
            x.store_relaxed(1);
            a = y.load_relaxed();
        });
        testing::spawn([&] {
            y.store_relaxed(1);
            (void)platform::membarrier();
            b = x.load_relaxed();
        });
        testing::run();
        testing::require(a != 0 || b != 0, "both read 0");
    };
    EXPECT_TRUE(explore(e, ignore_its_result).ok);
    e.membarrier = testing::membarrier_mode::unreliable;
    EXPECT_FALSE(explore(e, ignore_its_result).ok);
    e.membarrier = testing::membarrier_mode::missing;
    EXPECT_FALSE(explore(e, ignore_its_result).ok);
    bool has = true;
    (void)explore(e, [&] { has = platform::has_membarrier(); });
    EXPECT_FALSE(has);
}

TEST(memory_model, sequential_has_no_buffers) {
    exploration e = exhaustive("dekker");
    e.memory = testing::memory_model::sequential;
    const result r = explore(e, [] { dekker(fence::none, fence::none); });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_TRUE(r.complete);
}

// All outcomes of two threads, each a sequence of actions on x and y, that exhaustive search sees.
template <std::size_t N>
std::set<std::array<int, N>>
outcomes(const std::function<void(atomic<int>&, atomic<int>&, std::array<int, N>&)>& first,
         const std::function<void(atomic<int>&, atomic<int>&, std::array<int, N>&)>& second) {
    std::set<std::array<int, N>> all;
    const result r = explore(exhaustive("litmus"), [&] {
        atomic<int> x, y;
        std::array<int, N> seen{};
        testing::spawn([&] { first(x, y, seen); });
        testing::spawn([&] { second(x, y, seen); });
        testing::run();
        all.insert(seen);
    });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_TRUE(r.complete);
    return all;
}

TEST(memory_model, message_passing_is_in_order) {
    const auto all = outcomes<2>(
        [](auto& x, auto& y, auto&) {
            x.store_relaxed(1);
            y.store_relaxed(1);
        },
        [](auto& x, auto& y, auto& seen) {
            seen[0] = y.load_relaxed();
            seen[1] = x.load_relaxed();
        });
    const std::set<std::array<int, 2>> expected{{0, 0}, {0, 1}, {1, 1}};
    EXPECT_EQ(all, expected);
}

// A locked instruction or seq_cst store is not visible before what was stored before it.
TEST(memory_model, draining_operations_come_after_earlier_stores) {
    for (int second = 0; second < 3; ++second) {
        const auto all = outcomes<2>(
            [second](auto& x, auto& y, auto&) {
                x.store_relaxed(1);
                if (second == 0) {
                    y.store_seq_cst(1);
                } else if (second == 1) {
                    y.fetch_add_relaxed(1);
                } else {
                    y.exchange_relaxed(1);
                }
            },
            [](auto& x, auto& y, auto& seen) {
                seen[0] = y.load_relaxed();
                seen[1] = x.load_relaxed();
            });
        const std::set<std::array<int, 2>> expected{{0, 0}, {0, 1}, {1, 1}};
        EXPECT_EQ(all, expected) << second;
    }
}

TEST(memory_model, the_latest_own_store_is_the_one_seen) {
    const result r = explore(exhaustive("latest"), [] {
        atomic<int> x;
        testing::spawn([&] {
            x.store_relaxed(1);
            x.store_relaxed(2);
            testing::require(x.load_relaxed() == 2, "the latest");
        });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(memory_model, more_stores_than_a_buffer_holds) {
    for (strategy s : all_strategies) {
        const result r = explore({.seeds = 200, .strategy = s}, [] {
            std::array<atomic<int>, 100> words;
            testing::spawn([&] {
                for (atomic<int>& w : words) {
                    w.store_relaxed(1);
                }
            });
            testing::run();
            for (atomic<int>& w : words) {
                testing::require(w.load_relaxed() == 1, "no store is lost");
            }
        });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(memory_model, a_thread_sees_its_own_stores_first) {
    const auto all = outcomes<4>(
        [](auto& x, auto& y, auto& seen) {
            x.store_relaxed(1);
            seen[0] = x.load_relaxed();
            seen[1] = y.load_relaxed();
        },
        [](auto& x, auto& y, auto& seen) {
            y.store_relaxed(1);
            seen[2] = y.load_relaxed();
            seen[3] = x.load_relaxed();
        });
    const std::set<std::array<int, 4>> expected{
        {1, 0, 1, 0}, {1, 0, 1, 1}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    EXPECT_EQ(all, expected);
}

TEST(memory_model, loads_are_not_delayed) {
    const auto all = outcomes<2>(
        [](auto& x, auto& y, auto& seen) {
            seen[0] = x.load_relaxed();
            y.store_relaxed(1);
        },
        [](auto& x, auto& y, auto& seen) {
            seen[1] = y.load_relaxed();
            x.store_relaxed(1);
        });
    EXPECT_FALSE(all.contains({1, 1}));
    EXPECT_EQ(all.size(), 3u);
}

TEST(memory_model, a_narrow_load_from_a_wide_buffered_store) {
    const result r = explore(exhaustive("overlap"), [] {
        union words {
            words() : wide(0) {}
            ~words() {}
            atomic<std::uint64_t> wide;
        } w;
        testing::spawn([&] {
            w.wide.store_relaxed(0x0102);
            const auto low = static_cast<unsigned>(
                testing::detail::load(testing::detail::operation::load_relaxed, &w.wide, 1));
            testing::require(low == 2, "the low byte of the own store");
        });
        testing::spawn([&] { w.wide.load_relaxed(); });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

// Locked instructions drain the buffer, also a compare-exchange that does not exchange.
TEST(memory_model, a_failed_compare_exchange_is_a_fence) {
    const result r = explore(exhaustive("failed cas"), [] {
        atomic<int> x, y, unrelated;
        int seen[2] = {-1, -1};
        auto side = [&](atomic<int>& mine, atomic<int>& other, int i) {
            mine.store_relaxed(1);
            int expected = 5;
            unrelated.cas_relaxed(expected, 6);
            seen[i] = other.load_relaxed();
        };
        testing::spawn([&] { side(x, y, 0); });
        testing::spawn([&] { side(y, x, 1); });
        testing::run();
        testing::require(!(seen[0] == 0 && seen[1] == 0), "both read 0");
    });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_TRUE(r.complete);
}

// CPUs pass their barriers one after another. Thread 1 passes its own, stores 2 into its buffer,
// and does not see y, which is in thread 2's buffer until thread 2 passes. Were it one moment for
// all, thread 1 would either have stored 2 before it, or have read y after it. (The plain variables
// are the test's knowledge of what has been stored, not part of the program.)
TEST(memory_model, membarrier_does_not_happen_everywhere_at_once) {
    const result r = explore({.seeds = 200'000, .name = "membarrier"}, [] {
        atomic<int> x, y, step;
        bool x_stored = false, y_stored = false;
        int seen_x = -1, seen_y = -1;
        testing::spawn([&] {
            x.store_relaxed(1);
            x_stored = true;
            x.store_relaxed(2);
            seen_y = y.load_relaxed();
        });
        testing::spawn([&] {
            y.store_relaxed(1);
            y_stored = true;
        });
        testing::spawn([&] {
            (void)step.load_relaxed();
            if (x_stored && y_stored && platform::membarrier()) {
                seen_x = x.load_relaxed();
            }
        });
        testing::run();
        testing::require(seen_x != 0, "a store from before the barrier is not seen after it");
        testing::require(!(seen_x == 1 && seen_y == 0), "thread 1 passed first");
    });
    EXPECT_EQ(r.failure, "thread 1 passed first");
}

TEST(memory_model, construction_is_a_store_in_order) {
    struct object {
        atomic<int> value{7};
    };
    const result r = explore(exhaustive("construct"), [] {
        testing::tracked_heap heap;
        atomic<int> before;
        void* memory = heap.allocate(sizeof(object));
        testing::spawn([&] {
            before.store_relaxed(1);
            ::new (memory) object;
        });
        testing::spawn([&] {
            const auto seen =
                testing::detail::load(testing::detail::operation::load_relaxed, memory, 4);
            const int earlier = before.load_relaxed();
            testing::require(seen != 7 || earlier == 1, "constructed before the earlier store");
        });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_TRUE(r.complete);
}

void increment_twice(bool atomically) {
    atomic<int> counter;
    testing::name(counter, "counter");
    for (int i = 0; i < 2; ++i) {
        testing::spawn([&] {
            if (atomically) {
                counter.fetch_add_relaxed(1);
            } else {
                counter.store_seq_cst(counter.load_seq_cst() + 1);
            }
        });
    }
    testing::run();
    testing::require(counter.load_relaxed() == 2, "both increments counted");
}

TEST(schedules, lost_update) {
    for (strategy s : all_strategies) {
        EXPECT_FALSE(explore({.strategy = s}, [] { increment_twice(false); }).ok);
        const result r = explore({.strategy = s}, [] { increment_twice(true); });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(schedules, every_integer_operation_computes) {
    const result r = explore({.seeds = 1}, [] {
        atomic<std::uint8_t> a{250};
        testing::require(a.fetch_add_acq_rel(10) == 250, "old value");
        testing::require(a.load_acquire() == 4, "wraps at its size");
        testing::require(a.fetch_sub_seq_cst(5) == 4 && a.load_relaxed() == 255, "wraps down");
        testing::require(a.fetch_and_relaxed(0x3c) == 255 && a.load_relaxed() == 0x3c, "and");
        testing::require(a.fetch_or_acq_rel(1) == 0x3c && a.load_relaxed() == 0x3d, "or");
        testing::require(a.exchange_seq_cst(9) == 0x3d && a.load_seq_cst() == 9, "exchange");
        std::uint8_t expected = 8;
        testing::require(!a.cas_seq_cst(expected, 1) && expected == 9, "failed cas tells");
        testing::require(a.cas_release(expected, 1) && a.load_relaxed() == 1, "cas");
        atomic<const char*> p{"x"};
        testing::require(*p.load_relaxed() == 'x', "pointers");
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(schedules, exhaustive_counts_interleavings) {
    auto threads_of = [](int threads, int operations) {
        return [=] {
            atomic<int> x;
            for (int t = 0; t < threads; ++t) {
                testing::spawn([&] {
                    for (int i = 0; i < operations; ++i) {
                        x.fetch_add_relaxed(1);
                    }
                });
            }
            testing::run();
        };
    };
    auto count = [](const exploration& e, const std::function<void()>& body) {
        const result r = explore(e, body);
        EXPECT_TRUE(r.ok && r.complete) << r.report;
        return r.executions;
    };
    exploration e = exhaustive("count");
    EXPECT_EQ(count(e, threads_of(1, 5)), 1u);
    EXPECT_EQ(count(e, threads_of(2, 1)), 2u);
    EXPECT_EQ(count(e, threads_of(2, 2)), 6u);   // 4! / (2! 2!)
    EXPECT_EQ(count(e, threads_of(2, 5)), 252u); // 10! / (5! 5!)
    EXPECT_EQ(count(e, threads_of(3, 2)), 90u);  // 6! / (2! 2! 2!)
    EXPECT_EQ(count(e, threads_of(4, 1)), 24u);

    // AABB BBAA, with one preemption ABBA BAAB, with two ABAB BABA.
    e.preemptions = 0;
    EXPECT_EQ(count(e, threads_of(2, 2)), 2u);
    e.preemptions = 1;
    EXPECT_EQ(count(e, threads_of(2, 2)), 4u);
    e.preemptions = 2;
    EXPECT_EQ(count(e, threads_of(2, 2)), 6u);

    // Two threads of a buffered store each: the store and its flush, in order, are two events.
    EXPECT_EQ(count(exhaustive("count"),
                    [] {
                        atomic<int> x;
                        testing::spawn([&] { x.store_relaxed(1); });
                        testing::spawn([&] { x.store_relaxed(2); });
                        testing::run();
                    }),
              6u);
}

// Three stores of which the second thread sees the first, although the storing thread has not
// ended: one flush and one preemption.
TEST(schedules, flushes_are_not_counted_as_preemptions) {
    exploration e = exhaustive("flushes");
    e.preemptions = 1;
    bool found = false;
    const result r = explore(e, [&] {
        atomic<int> x, other;
        bool ended = false;
        testing::spawn([&] {
            x.store_relaxed(1);
            other.load_relaxed();
            other.load_relaxed();
            ended = true;
        });
        testing::spawn([&] { found |= x.load_relaxed() == 1 && !ended; });
        testing::run();
    });
    EXPECT_TRUE(r.complete);
    EXPECT_TRUE(found);
}

TEST(schedules, reports_show_values_of_the_atomics_size) {
    const result r = explore({.seeds = 1}, [] {
        atomic<std::uint8_t> a{250};
        a.fetch_add_relaxed(10);
        testing::fail("to see the trace");
    });
    EXPECT_TRUE(contains(r.trace, "fetch_add_relaxed atomic1 0xfa -> 4\n")) << r.trace;
}

TEST(schedules, choose_takes_every_value) {
    for (strategy s : all_strategies) {
        std::set<std::pair<unsigned, unsigned>> all;
        const result r = explore({.strategy = s}, [&] {
            const unsigned a = testing::choose(3);
            all.insert({a, testing::choose(2)});
        });
        EXPECT_EQ(all.size(), 6u);
        EXPECT_EQ(r.complete, s == strategy::bounded_exhaustive);
    }
}

TEST(schedules, replay_is_the_same_execution) {
    for (strategy s : all_strategies) {
        exploration e{.strategy = s, .name = "replay"};
        auto body = [] {
            testing::tracked_heap heap;
            auto* word = heap.create<atomic<int>>("word");
            for (int i = 0; i < 3; ++i) {
                testing::spawn([=] {
                    word->store_relaxed(word->load_relaxed() + 1);
                    testing::note("chose", testing::choose(5));
                    platform::pause();
                    word->store_relaxed(word->load_relaxed() + 1);
                });
            }
            testing::run();
            testing::require(word->load_relaxed() > 3, "not too many were lost");
        };
        const result first = explore(e, body);
        ASSERT_FALSE(first.ok);
        e.replay = first.replay;
        for (int i = 0; i < 3; ++i) {
            const result again = explore(e, body);
            EXPECT_FALSE(again.ok);
            EXPECT_EQ(again.executions, 1u);
            EXPECT_EQ(again.trace_hash, first.trace_hash);
            EXPECT_EQ(again.trace, first.trace);
            EXPECT_EQ(again.replay, first.replay);
        }
    }
}

TEST(schedules, seeds_differ) {
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const result r = explore({.seeds = 1, .first_seed = seed}, [] {
            atomic<int> x;
            for (int t = 0; t < 3; ++t) {
                testing::spawn([&] {
                    for (int i = 0; i < 4; ++i) {
                        x.fetch_add_relaxed(1);
                    }
                });
            }
            testing::run();
        });
        hashes.insert(r.trace_hash);
    }
    EXPECT_GT(hashes.size(), 25u);
}

TEST(schedules, a_malformed_replay_is_an_error) {
    for (const char* text : {"nonsense", "random:", "pct:1", "pct:1:2", "exhaustive:"}) {
        const result r = explore({.replay = text}, [] {});
        EXPECT_FALSE(r.ok) << text;
        EXPECT_EQ(r.executions, 0u) << text;
    }
}

TEST(schedules, a_body_that_varies_is_reported) {
    int executions = 0;
    const result r = explore(exhaustive("varies"), [&] {
        (void)testing::choose(executions++ == 0 ? 3 : 4);
        (void)testing::choose(2);
    });
    EXPECT_FALSE(r.ok);
    EXPECT_TRUE(contains(r.failure, "something else")) << r.failure;
}

// A bug that needs two preemptions at exact places in a long execution: what PCT is for.
TEST(schedules, pct_finds_an_ordering_deep_inside) {
    auto body = [] {
        atomic<int> stage, noise;
        testing::spawn([&] {
            for (int i = 0; i < 100; ++i) {
                noise.fetch_add_relaxed(1);
            }
            stage.store_seq_cst(1);
            for (int i = 0; i < 100; ++i) {
                noise.fetch_add_relaxed(1);
            }
            testing::require(stage.load_relaxed() != 2, "passed the second stage");
        });
        testing::spawn([&] {
            int expected = 1;
            stage.cas_seq_cst(expected, 2);
        });
        testing::run();
    };
    EXPECT_FALSE(explore({.seeds = 200, .strategy = strategy::pct, .depth = 2}, body).ok);
}

TEST(progress, deadlock_is_reported) {
    for (strategy s : all_strategies) {
        const result r = explore({.strategy = s}, [] {
            atomic<int> a, b;
            testing::name(a, "a");
            testing::spawn("left", [&] {
                while (a.load_acquire() == 0) {
                    platform::pause();
                }
                b.store_release(1);
            });
            testing::spawn("right", [&] {
                while (b.load_acquire() == 0) {
                    platform::yield();
                }
                a.store_release(1);
            });
            testing::run();
        });
        EXPECT_FALSE(r.ok);
        EXPECT_TRUE(contains(r.failure, "stuck: all threads wait")) << r.failure;
        EXPECT_TRUE(contains(r.failure, "thread 1 (left)")) << r.failure;
    }
}

TEST(progress, spinning_without_pause_is_reported) {
    const result r = explore({.max_steps = 2000}, [] {
        atomic<int> a;
        testing::spawn([&] {
            while (a.load_acquire() == 0) {
            }
        });
        testing::run();
    });
    EXPECT_FALSE(r.ok);
    EXPECT_TRUE(contains(r.failure, "stuck: more than 2000 steps")) << r.failure;
}

void spin_lock(int threads) {
    atomic<int> lock;
    int inside = 0, done = 0;
    for (int t = 0; t < threads; ++t) {
        testing::spawn([&] {
            for (int i = 0; i < 2; ++i) {
                while (lock.exchange_acq_rel(1) != 0) {
                    platform::pause();
                }
                testing::require(inside++ == 0, "mutual exclusion");
                platform::pause();
                --inside;
                ++done;
                lock.store_release(0);
            }
        });
    }
    testing::run();
    testing::require(done == 2 * threads, "everybody got in");
}

TEST(progress, waiting_threads_let_others_run) {
    for (strategy s : all_strategies) {
        const result r = explore({.seeds = testing::scaled(2000, 50'000, 1'000'000), .strategy = s},
                                 [] { spin_lock(3); });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(progress, a_bounded_number_of_looks_is_no_deadlock) {
    for (strategy s : all_strategies) {
        const result r = explore({.strategy = s}, [] {
            atomic<int> never;
            testing::spawn([&] {
                for (int i = 0; i < 500 && never.load_relaxed() == 0; ++i) {
                    platform::pause();
                }
            });
            testing::run();
        });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(progress, every_change_of_memory_starts_the_count_of_looks_anew) {
    const result r = explore({.seeds = 10}, [] {
        atomic<int> never, changes;
        testing::spawn([&] {
            for (int change = 0; change < 5; ++change) {
                for (int i = 0; i < 800 && never.load_relaxed() == 0; ++i) {
                    platform::pause();
                }
                changes.store_seq_cst(change + 1);
            }
        });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

// A thread that waits must be able to see every state of what it waits for, not only the last.
TEST(progress, waiting_threads_wake_while_others_go_on) {
    for (strategy s : all_strategies) {
        bool between = false;
        const result r = explore({.strategy = s}, [&] {
            atomic<int> x;
            bool waited = false, ended = false;
            testing::spawn([&] {
                while (x.load_relaxed() == 0) {
                    waited = true;
                    platform::pause();
                }
                between |= waited && !ended;
            });
            testing::spawn([&] {
                x.store_seq_cst(1);
                x.load_relaxed();
                x.load_relaxed();
                ended = true;
            });
            testing::run();
        });
        EXPECT_TRUE(r.ok) << r.report;
        EXPECT_TRUE(between);
    }
}

// Two threads that wake each other by what they do between looks must not starve the third.
TEST(progress, threads_that_wake_each_other_starve_nobody) {
    for (strategy s : all_strategies) {
        const result r = explore({.seeds = 2000, .strategy = s, .max_steps = 1000}, [] {
            atomic<int> stop, noise;
            for (int t = 0; t < 2; ++t) {
                testing::spawn([&] {
                    while (stop.load_relaxed() == 0) {
                        noise.fetch_add_relaxed(1);
                        platform::pause();
                    }
                });
            }
            testing::spawn([&] { stop.store_seq_cst(1); });
            testing::run();
        });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(threads, run_may_be_called_again_and_threads_spawn_threads) {
    const result r = explore({}, [] {
        atomic<int> x;
        testing::spawn([&] {
            x.fetch_add_relaxed(1);
            testing::spawn([&] { x.fetch_add_relaxed(10); });
            x.fetch_add_relaxed(100);
        });
        testing::run();
        testing::require(x.load_relaxed() == 111, "the inner thread ran");
        testing::require(testing::thread_index() == 0, "the body is thread 0");
        testing::spawn([&] {
            testing::require(testing::thread_index() == 1, "numbered anew");
            x.store_relaxed(5);
        });
        testing::run();
        testing::require(x.load_relaxed() == 5, "buffers are empty after run()");
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(threads, an_exception_that_leaves_a_thread_is_a_failure) {
    const result r = explore({}, [] {
        testing::spawn([] { throw std::runtime_error("thrown on purpose"); });
        testing::run();
    });
    EXPECT_FALSE(r.ok);
    EXPECT_TRUE(contains(r.failure, "thrown on purpose")) << r.failure;
}

// Each thread must find its own exceptions after others have thrown and caught theirs in between.
TEST(threads, exceptions_in_flight_belong_to_their_thread) {
    struct announcing {
        atomic<int>& x;
        ~announcing() {
            x.fetch_add_relaxed(1); // a switch in the middle of unwinding
            testing::require(std::uncaught_exceptions() == 1, "own unwinding");
        }
    };
    const result r = explore({.seeds = 500}, [] {
        atomic<int> x;
        for (int t = 1; t <= 3; ++t) {
            testing::spawn([&x, t] {
                x.fetch_add_relaxed(1);
                try {
                    announcing a{x};
                    throw t;
                } catch (int caught) {
                    x.fetch_add_relaxed(1); // a switch inside the handler
                    testing::require(caught == t, "own exception");
                    try {
                        throw;
                    } catch (int again) {
                        x.fetch_add_relaxed(1);
                        testing::require(again == t, "own exception, rethrown");
                    }
                }
                testing::require(std::uncaught_exceptions() == 0, "all caught");
            });
        }
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(threads, spawning_without_running_is_an_error) {
    EXPECT_FALSE(explore({}, [] { testing::spawn([] {}); }).ok);
}

TEST(threads, a_failure_inside_noexcept_code_abandons_the_execution) {
    bool went_on = false;
    const result r = explore({.seeds = 1}, [&] {
        auto strict = [&]() noexcept {
            testing::require(false, "inside noexcept");
            went_on = true;
        };
        strict();
    });
    EXPECT_EQ(r.failure, "inside noexcept");
    EXPECT_FALSE(went_on);
}

// A crash of the code under test tells which schedule it was.
TEST(threads_death_test, a_crash_tells_how_to_replay_it) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (strategy s : {strategy::random, strategy::bounded_exhaustive}) {
        EXPECT_DEATH(
            {
                const result r = explore({.strategy = s, .name = "crash"}, [] {
                    atomic<int> x;
                    testing::spawn([&] { x.store_relaxed(1); });
                    testing::spawn([&] {
                        if (x.load_relaxed() == 1) {
                            std::abort();
                        }
                    });
                    testing::run();
                });
            },
            "OBASE_TEST_REPLAY='crash/(random:[0-9]+|exhaustive:2:[0-9.]+)'");
    }
}

// Outside of an exploration the platform's atomics are plain memory.
TEST(threads, atomics_work_outside) {
    atomic<int> x{1};
    x.store_relaxed(2);
    EXPECT_EQ(x.fetch_add_relaxed(1), 2);
    int expected = 3;
    EXPECT_TRUE(x.cas_seq_cst(expected, 4));
    EXPECT_FALSE(x.cas_seq_cst(expected, 5));
    EXPECT_EQ(expected, 4);
    EXPECT_TRUE(platform::membarrier());
}

// Treiber's stack. Popping reads `next` of a node that may have been popped and freed by another
// thread meanwhile; that read is permitted here, and what it brought is validated by the CAS on the
// top, which is fooled if the same address is on top again: ABA.
struct treiber_stack {
    struct node {
        int value;
        atomic<node*> next;
        explicit node(int v) : value(v) {}
    };

    atomic<node*> top;

    void push(node* n) {
        node* old = top.load_relaxed();
        do {
            n->next.store_relaxed(old);
        } while (!top.cas_acq_rel(old, n));
    }
    node* pop() {
        node* old = top.load_acquire();
        for (;;) {
            if (old == nullptr) {
                return nullptr;
            }
            node* next = nullptr;
            {
                const testing::permit_freed optimistic;
                next = old->next.load_relaxed();
            }
            if (top.cas_acq_rel(old, next)) {
                return old;
            }
        }
    }
};

void stack_body(testing::address_reuse reuse) {
    testing::tracked_heap heap({.reuse = reuse});
    treiber_stack stack;
    testing::name(stack.top, "top");
    stack.push(heap.create<treiber_stack::node>("node", 1));
    stack.push(heap.create<treiber_stack::node>("node", 2));
    testing::spawn([&] {
        if (treiber_stack::node* n = stack.pop()) {
            heap.destroy(n);
        }
    });
    testing::spawn([&] {
        treiber_stack::node* a = stack.pop();
        treiber_stack::node* b = stack.pop();
        if (b != nullptr) {
            heap.destroy(b);
        }
        if (a != nullptr) {
            heap.destroy(a);
        }
        stack.push(heap.create<treiber_stack::node>("node", 3));
    });
    testing::run();
    while (treiber_stack::node* n = stack.pop()) {
        testing::access(n, sizeof *n, false);
        heap.destroy(n);
    }
    testing::require(heap.live_blocks() == 0, "every node is popped once");
}

TEST(tracked_memory, aba_when_addresses_are_reused) {
    for (strategy s : all_strategies) {
        exploration e{.seeds = 100'000, .strategy = s, .name = "aba"};
        const result r = explore(e, [] { stack_body(testing::address_reuse::last_freed_first); });
        EXPECT_FALSE(r.ok) << r.report;
    }
}

TEST(tracked_memory, no_aba_when_they_are_not) {
    for (strategy s : all_strategies) {
        exploration e{
            .seeds = testing::scaled(5'000, 200'000, 5'000'000), .strategy = s, .name = "no aba"};
        const result r = explore(e, [] { stack_body(testing::address_reuse::never); });
        EXPECT_TRUE(r.ok) << r.report;
    }
}

// A thread frees what another one uses; `use` is what the other does with it.
result
free_against(const std::function<void(atomic<std::uint64_t>*, testing::tracked_heap&)>& use) {
    return explore(exhaustive("free"), [&] {
        testing::tracked_heap heap;
        auto* word = heap.create<atomic<std::uint64_t>>("word", 1u);
        testing::spawn("user", [&] { use(word, heap); });
        testing::spawn("freer", [&] { heap.free(word); });
        testing::run();
    });
}

TEST(tracked_memory, use_after_free_is_found) {
    using word = atomic<std::uint64_t>;
    using heap = testing::tracked_heap;
    const result plain = free_against([](word* w, heap&) { testing::access(w, 8, false); });
    EXPECT_FALSE(plain.ok);
    EXPECT_TRUE(contains(plain.failure, "use after free: read of 8 bytes at word#1"))
        << plain.failure;
    EXPECT_TRUE(contains(plain.failure, "freed by thread 2 (freer)")) << plain.failure;
    EXPECT_FALSE(free_against([](word* w, heap&) { testing::access(w, 8, true); }).ok);
    EXPECT_FALSE(free_against([](word* w, heap&) { w->load_relaxed(); }).ok);
    EXPECT_FALSE(free_against([](word* w, heap&) { w->store_seq_cst(2); }).ok);
    EXPECT_FALSE(free_against([](word* w, heap&) { w->fetch_or_seq_cst(2); }).ok);
    EXPECT_FALSE(free_against([](word* w, heap& h) { h.free(w); }).ok);
    EXPECT_FALSE(free_against([](word* w, heap&) {
                     const testing::permit_freed optimistic;
                     w->fetch_and_relaxed(2); // changes what it must only look at
                 }).ok);
}

TEST(tracked_memory, optimistic_reads_of_freed_memory_are_allowed_on_request) {
    using word = atomic<std::uint64_t>;
    using heap = testing::tracked_heap;
    result r = free_against([](word* w, heap&) { testing::access_racy(w, 8, false); });
    EXPECT_TRUE(r.ok) << r.report;
    r = free_against([](word* w, heap&) {
        const testing::permit_freed optimistic;
        const std::uint64_t seen = w->load_relaxed();
        testing::require(seen == 1 || seen == 0xddddddddddddddddu, "the value, or the filling");
        std::uint64_t expected = 5;
        w->cas_relaxed(expected, 6);
    });
    EXPECT_TRUE(r.ok) << r.report;
    r = free_against([](word* w, heap& h) {
        auto* copy = static_cast<std::uint64_t*>(h.allocate(8));
        testing::racy_copy(copy, w, 8);
        testing::access(copy, 8, false);
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(tracked_memory, a_compare_exchange_that_changes_freed_memory_is_found) {
    EXPECT_FALSE(free_against([](atomic<std::uint64_t>* w, testing::tracked_heap&) {
                     const testing::permit_freed optimistic;
                     std::uint64_t expected = w->load_relaxed();
                     w->cas_relaxed(expected, 6);
                 }).ok);
}

TEST(tracked_memory, unmapped_memory_may_not_even_be_read_optimistically) {
    const result r = explore(exhaustive("unmap"), [] {
        testing::tracked_heap heap;
        void* block = heap.allocate(64);
        testing::spawn([&] { testing::access_racy(block, 8, false); });
        testing::spawn([&] {
            heap.free(block);
            heap.unmap(block, 64);
        });
        testing::run();
    });
    EXPECT_FALSE(r.ok);
    EXPECT_TRUE(contains(r.failure, "read of unmapped memory")) << r.failure;
}

// The freeing thread knows, but not from the program, that the store has been made.
TEST(tracked_memory, a_store_still_buffered_when_its_block_is_freed) {
    auto free_after_store = [](bool ordered) {
        return explore(exhaustive("late store"), [=] {
            testing::tracked_heap heap;
            auto* word = heap.create<atomic<int>>("word");
            atomic<int> flag;
            bool stored = false;
            testing::spawn([&] {
                word->store_relaxed(1);
                stored = true;
                flag.store_relaxed(1);
            });
            testing::spawn([&] {
                const int seen = flag.load_relaxed();
                if (ordered ? seen == 1 : stored) {
                    heap.free(word);
                }
            });
            testing::run();
        });
    };
    const result wrong = free_after_store(false);
    EXPECT_TRUE(contains(wrong.failure, "still buffered")) << wrong.report;
    const result right = free_after_store(true);
    EXPECT_TRUE(right.ok && right.complete) << right.report;
}

TEST(tracked_memory, construction_in_freed_memory_is_found) {
    const result r = explore({.seeds = 1}, [] {
        testing::tracked_heap heap;
        void* memory = heap.allocate(8);
        heap.free(memory);
        ::new (memory) atomic<std::uint64_t>(1u);
    });
    EXPECT_TRUE(contains(r.failure, "use after free: write of 8 bytes")) << r.report;
}

// Ordinary memory: what a thread destroys has its own stores, and must not have others' to come.
TEST(tracked_memory, destroying_an_atomic_with_buffered_stores) {
    const result own = explore(exhaustive("own"), [] {
        alignas(8) unsigned char memory[8];
        testing::spawn([&] {
            auto* word = ::new (memory) atomic<std::uint64_t>(1u);
            word->store_relaxed(2);
            word->~deterministic_atomic();
            std::memset(memory, 7, sizeof memory); // its next use
        });
        testing::run();
        testing::require(memory[0] == 7, "nothing is written after the destruction");
    });
    EXPECT_TRUE(own.ok) << own.report;
    const result others = explore(exhaustive("others"), [] {
        auto word = std::make_unique<atomic<int>>();
        atomic<int> step;
        bool stored = false;
        testing::spawn([&] {
            word->store_relaxed(1);
            stored = true;
        });
        testing::spawn([&] {
            step.load_relaxed();
            if (stored) {
                word.reset();
            }
        });
        testing::run();
    });
    EXPECT_TRUE(contains(others.failure, "atomic destroyed while a store of thread 1"))
        << others.report;
}

TEST(tracked_memory, the_freeing_threads_own_stores_are_done) {
    const result r = explore(exhaustive("own store"), [] {
        testing::tracked_heap heap;
        auto* word = heap.create<atomic<int>>("word");
        testing::spawn([&] {
            word->store_relaxed(1);
            heap.free(word);
        });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(tracked_memory, ends_of_blocks_are_watched) {
    for (const std::size_t offset : {8u, 16u, 24u}) {
        const result r = explore({.seeds = 1}, [=] {
            testing::tracked_heap heap;
            auto* first = static_cast<char*>(heap.allocate(8));
            (void)heap.allocate(8);
            testing::access(first + offset, 8, false);
        });
        EXPECT_EQ(r.ok, false) << offset;
    }
    EXPECT_FALSE(explore({.seeds = 1}, [] {
                     testing::tracked_heap heap;
                     testing::access(heap.allocate(8), 9, false);
                 }).ok);
    EXPECT_FALSE(explore({.seeds = 1}, [] {
                     int local = 0;
                     testing::access(&local, sizeof local, false);
                 }).ok);
}

TEST(tracked_memory, reuse_and_generations) {
    const result r = explore({.seeds = 1}, [] {
        testing::tracked_heap fresh;
        void* a = fresh.allocate(32);
        fresh.free(a);
        testing::require(fresh.allocate(32) != a, "never reused");
        testing::tracked_heap reusing({.reuse = testing::address_reuse::last_freed_first});
        void* b = reusing.allocate(32);
        void* c = reusing.allocate(32);
        reusing.free(c);
        reusing.free(b);
        testing::require(reusing.allocate(32) == b, "the last one first");
        testing::require(reusing.allocate(64) != c && reusing.allocate(16) != c,
                         "only the same size");
        testing::require(reusing.allocate(32) == c, "then the one before");
        testing::require(reusing.generation(b) == 2, "second life");
        testing::require(reusing.live(b) && !fresh.live(a), "liveness");
        testing::require(
            reinterpret_cast<std::uintptr_t>(fresh.allocate(8, "aligned", 65536)) % 65536 == 0,
            "alignment");
    });
    EXPECT_TRUE(r.ok) << r.report;
}

// One body in both worlds.
template <class P>
void handover() {
    using threads = testing::threads_for<P>;
    struct mailbox {
        typename P::template atomic<int> full;
        int letter = 0;
    };
    typename threads::heap heap;
    auto* box = heap.template create<mailbox>("mailbox");
    threads::spawn([=] {
        threads::access(&box->letter, sizeof(int), true);
        box->letter = 42;
        box->full.store_release(1);
    });
    threads::spawn([=] {
        while (box->full.load_acquire() == 0) {
            P::pause();
        }
        threads::access(&box->letter, sizeof(int), false);
        threads::require(box->letter == 42, "the letter arrives with the flag");
    });
    threads::run();
    heap.destroy(box);
}

TEST(both_worlds, deterministic) {
    const result r =
        testing::threads_for<platform>::explore({.name = "handover"}, handover<platform>);
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_GT(r.executions, 1u);
}

TEST(both_worlds, native) {
    const result r = testing::threads_for<os::native_platform>::explore(
        {.name = "handover"}, handover<os::native_platform>);
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_EQ(r.executions, 200u);
}

TEST(both_worlds, native_failures_are_reported) {
    using threads = testing::threads_for<os::native_platform>;
    const result r = threads::explore({.name = "fails"}, [] {
        threads::spawn([] { threads::require(false, "on purpose"); });
        threads::run();
    });
    EXPECT_FALSE(r.ok);
    EXPECT_EQ(r.executions, 1u);
    EXPECT_TRUE(contains(r.report, "on purpose")) << r.report;
}

} // namespace
} // namespace obase
