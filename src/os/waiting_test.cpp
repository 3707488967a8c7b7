// SPDX-License-Identifier: MIT
//
// Waiting: no wake-up is lost, whatever the order of the notifier's plain store and the waiter's
// announcement, and a lock lets one thread in at a time and every thread in the end. In schedules a
// thread that sleeps goes on only if it is woken, so a lost wake-up is a test that is stuck.
#include "os/waiting.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

namespace obase::os {
namespace {

using scheduled = testing::deterministic_platform;

void explore(const std::string& name, const std::function<void()>& body,
             testing::membarrier_mode membarrier = testing::membarrier_mode::works) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        testing::exploration e;
        e.seeds = testing::scaled_for_build(3000, 100'000, 2'000'000);
        e.strategy = strategy;
        e.membarrier = membarrier;
        e.depth = 4;
        e.name = name;
        const testing::result r = testing::explore(e, body);
        EXPECT_TRUE(r.ok) << r.report;
        if (!r.ok) return;
    }
}
void explore_threads(const std::string& name, const std::function<void()>& body) {
    const testing::result r = testing::threads_for<native_platform>::explore(
        {.name = name,
         .native_rounds = static_cast<unsigned>(testing::scaled_for_build(100, 2000, 50000))},
        body);
    EXPECT_TRUE(r.ok) << r.report;
}

// Two threads wait for one plain store each, and one wait point serves both: each is woken by its
// own store or asks in vain and sleeps again.
template <class P>
void plain_stores_wake() {
    using threads = testing::threads_for<P>;
    typename P::template atomic<std::uint32_t> first, second;
    wait_point<P> point;
    threads::spawn("waiter 1", [&] {
        point.wait([&] { return first.load_acquire() != 0; });
        threads::require(first.load_acquire() == 1, "went on after the store");
    });
    threads::spawn("waiter 2", [&] {
        point.wait([&] { return second.load_acquire() != 0; });
        threads::require(second.load_acquire() == 1, "went on after the store");
    });
    threads::spawn("notifier", [&] {
        first.store_release(1);
        point.notify();
        second.store_release(1);
        point.notify();
    });
    threads::run();
}
TEST(wait_point, plain_stores_wake_scheduled) {
    explore("plain stores wake", plain_stores_wake<scheduled>);
}
TEST(wait_point, plain_stores_wake_while_membarrier_fails) {
    explore("plain stores wake, fenced", plain_stores_wake<scheduled>,
            testing::membarrier_mode::missing);
    explore("plain stores wake, at times", plain_stores_wake<scheduled>,
            testing::membarrier_mode::unreliable);
}
TEST(wait_point, plain_stores_wake_on_threads) {
    explore_threads("plain stores wake", plain_stores_wake<native_platform>);
}

// A condition that is true for a moment only is not relied on: the waiter goes on at a later one.
template <class P>
void conditions_may_come_and_go() {
    using threads = testing::threads_for<P>;
    typename P::template atomic<std::uint32_t> turn;
    wait_point<P> point;
    threads::spawn("waiter", [&] {
        point.wait([&] { return turn.load_acquire() == 1 || turn.load_acquire() == 3; });
    });
    threads::spawn("notifier", [&] {
        for (std::uint32_t i = 1; i <= 3; ++i) {
            turn.store_release(i);
            point.notify();
        }
    });
    threads::run();
}
TEST(wait_point, conditions_may_come_and_go_scheduled) {
    explore("come and go", conditions_may_come_and_go<scheduled>);
}
TEST(wait_point, conditions_may_come_and_go_on_threads) {
    explore_threads("come and go", conditions_may_come_and_go<native_platform>);
}

template <class P>
void one_at_a_time() {
    using threads = testing::threads_for<P>;
    blocking_lock<P> lock;
    typename P::template atomic<std::uint32_t> inside, done;
    const unsigned rounds = threads::deterministic ? 1 : 2000;
    for (int t = 0; t < 3; ++t)
        threads::spawn([&] {
            for (unsigned i = 0; i < rounds; ++i) {
                lock.lock();
                threads::require(inside.fetch_add_relaxed(1) == 0, "alone");
                inside.fetch_sub_relaxed(1);
                lock.unlock();
                done.fetch_add_relaxed(1);
            }
        });
    threads::run();
    threads::require(done.load_relaxed() == 3 * rounds, "each got in");
    threads::require(lock.try_lock() && !lock.try_lock(), "free in the end");
}
TEST(blocking_lock, one_at_a_time_scheduled) { explore("lock", one_at_a_time<scheduled>); }
TEST(blocking_lock, one_at_a_time_while_membarrier_fails) {
    explore("lock, fenced", one_at_a_time<scheduled>, testing::membarrier_mode::missing);
}
TEST(blocking_lock, one_at_a_time_on_threads) {
    explore_threads("lock", one_at_a_time<native_platform>);
}

} // namespace
} // namespace obase::os
