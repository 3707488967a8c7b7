// SPDX-License-Identifier: MIT
//
// Scopes and epochs by themselves: nesting, records, the wait, and that what a scope has found is
// not freed under it, whatever interrupts the thread.
#include "mobility/world_test.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <set>
#include <thread>
#include <vector>

namespace obase::mobility {
namespace {

using scheduled = testing::deterministic_platform;
using native = os::native_platform;

const auto never = [](const auto&) { return false; };
const auto at_once = [](const auto&) { return true; };

TEST(scope_registry, nested_scopes_keep_the_outermost_epoch) {
    scope_registry<native> registry;
    thread_record<native> r;
    registry.add(r, 1);
    const epoch_number outer = enter_scope(r, registry.epoch());
    const epoch_number first = r.epoch.load_relaxed();
    EXPECT_EQ(outer, 0u);
    EXPECT_EQ(first, registry.epoch().load_relaxed());
    const epoch_number target = registry.advance();
    EXPECT_EQ(target, first + 1);
    const epoch_number inner = enter_scope(r, registry.epoch());
    EXPECT_EQ(r.epoch.load_relaxed(), first) << "R2";
    EXPECT_FALSE(registry.oldest_scope() >= target);
    exit_scope(r, inner);
    EXPECT_EQ(r.epoch.load_relaxed(), first);
    exit_scope(r, outer);
    EXPECT_TRUE(registry.oldest_scope() >= target);
    const epoch_number again = enter_scope(r, registry.epoch());
    EXPECT_TRUE(registry.oldest_scope() >= target) << "a scope opened since then does not count";
    exit_scope(r, again);
}

// R2: what is to be done at the end of a scope is done once, where the outermost one ends.
TEST(scope_registry, work_is_done_when_the_outermost_scope_ends) {
    scope_registry<native> registry;
    thread_record<native> r;
    registry.add(r, 1);
    unsigned done = 0;
    const auto work = [&] {
        ++done;
        r.exit_work = false;
        exit_scope(r, 0);
    };
    const epoch_number outer = enter_scope(r, registry.epoch());
    const epoch_number inner = enter_scope(r, registry.epoch());
    r.exit_work = true;
    leave_scope(r, inner, work);
    EXPECT_EQ(done, 0u);
    EXPECT_NE(r.epoch.load_relaxed(), 0u);
    leave_scope(r, outer, work);
    EXPECT_EQ(done, 1u);
    EXPECT_EQ(r.epoch.load_relaxed(), 0u);
    leave_scope(r, enter_scope(r, registry.epoch()), work);
    EXPECT_EQ(done, 1u);
    EXPECT_EQ(r.epoch.load_relaxed(), 0u);
}

TEST(scope_registry, a_wait_names_the_record_it_waits_for) {
    scope_registry<native> registry;
    thread_record<native> outside, inside;
    registry.add(outside, 11);
    registry.add(inside, 22);
    const epoch_number outer = enter_scope(inside, registry.epoch());
    const epoch_number target = registry.advance();
    std::uint32_t waiting = 0;
    EXPECT_EQ(registry.wait_for(target, nullptr,
                                [&](const auto& r) {
                                    waiting = r.thread_id.load_relaxed();
                                    return true;
                                }),
              wait_result::given_up);
    EXPECT_EQ(waiting, 22u);
    EXPECT_EQ(registry.wait_for(target, &inside, at_once), wait_result::done) << "R14: own scope";
    unsigned asked = 0;
    EXPECT_EQ(registry.wait_for(target, nullptr,
                                [&](const auto&) {
                                    if (++asked == 3) exit_scope(inside, outer);
                                    return false;
                                }),
              wait_result::done);
    EXPECT_EQ(asked, 3u);
}

TEST(scope_registry, records_are_found_by_the_next_thread) {
    scope_registry<native> registry;
    EXPECT_EQ(registry.find_unused(1), nullptr);
    thread_record<native> a, b;
    registry.add(a, 1);
    registry.add(b, 2);
    EXPECT_EQ(registry.find_unused(3), nullptr) << "both are in use";
    enter_scope(a, registry.epoch());
    a.exit_work = true;
    registry.release(a);
    EXPECT_EQ(a.epoch.load_relaxed(), 0u) << "O6: the scope ends with its thread";
    EXPECT_FALSE(a.exit_work);
    EXPECT_EQ(registry.find_unused(4), &a);
    EXPECT_EQ(a.thread_id.load_relaxed(), 4u);
    std::set<const void*> seen;
    registry.for_each_record([&](const auto& r) { seen.insert(&r); });
    EXPECT_EQ(seen, (std::set<const void*>{&a, &b}));
}

TEST(scope_registry, a_forked_child_keeps_its_own_scope_only) {
    scope_registry<native> registry;
    thread_record<native> mine, other;
    registry.add(mine, 1);
    registry.add(other, 2);
    enter_scope(mine, registry.epoch());
    enter_scope(other, registry.epoch());
    registry.forget_other_threads(&mine);
    EXPECT_NE(mine.epoch.load_relaxed(), 0u);
    EXPECT_EQ(mine.in_use.load_relaxed(), 1u);
    EXPECT_EQ(other.epoch.load_relaxed(), 0u);
    EXPECT_EQ(registry.find_unused(3), &other);
}

TEST(scope_registry, without_membarrier_there_is_no_epoch_to_wait_for) {
    scope_registry<native> registry;
    os::membarrier_fail_for_tests(true);
    EXPECT_EQ(registry.advance(), 0u);
    registry.set_fenced(true);
    EXPECT_NE(registry.advance(), 0u) << "R2: fenced scopes need none";
    thread_record<native> r;
    registry.add(r, 1);
    EXPECT_TRUE(r.fenced);
    const epoch_number target = registry.epoch().load_relaxed();
    const epoch_number outer = enter_scope(r, registry.epoch());
    EXPECT_EQ(r.epoch.load_relaxed(), target);
    exit_scope(r, outer);
    os::membarrier_fail_for_tests(false);
}

// Two threads that start at once do not share a record.
template <class P>
void starting_threads_get_records_of_their_own() {
    using threads = testing::threads_for<P>;
    scope_registry<P> registry;
    thread_record<P> unused[2];
    for (auto& r : unused) {
        registry.add(r, 1);
        registry.release(r);
    }
    thread_record<P>* got[3] = {};
    thread_record<P> fresh[3];
    for (unsigned i = 0; i < 3; ++i)
        threads::spawn([&, i] {
            got[i] = registry.find_unused(i);
            if (got[i] == nullptr) {
                registry.add(fresh[i], i);
                got[i] = &fresh[i];
            }
        });
    threads::run();
    for (unsigned i = 0; i < 3; ++i)
        for (unsigned k = 0; k < i; ++k)
            threads::require(got[i] != got[k], "records are not shared");
    unsigned found = 0;
    registry.for_each_record([&](const auto&) { ++found; });
    threads::require(found >= 3 && found <= 5, "all are in the list");
}
TEST(scope_registry, starting_threads_get_records_of_their_own_scheduled) {
    explore_schedules("records", 1000, starting_threads_get_records_of_their_own<scheduled>);
}
TEST(scope_registry, starting_threads_get_records_of_their_own_on_threads) {
    for (int i = 0; i < 50; ++i)
        explore_threads("records", starting_threads_get_records_of_their_own<native>);
}

// O6: thousands of threads over time use as many records as there were threads at a time.
TEST(scope_registry, records_are_as_many_as_threads_at_a_time) {
    scope_registry<native> registry;
    constexpr unsigned at_a_time = 4;
    const auto generations = static_cast<unsigned>(testing::scaled(600, 5000, 100'000));
    std::mutex made_mutex;
    std::vector<std::unique_ptr<thread_record<native>>> made;
    for (unsigned g = 0; g < generations; ++g) {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < at_a_time; ++i)
            threads.emplace_back([&, i] {
                thread_record<native>* r = registry.find_unused(i);
                if (r == nullptr) {
                    auto fresh = std::make_unique<thread_record<native>>();
                    r = fresh.get();
                    const std::lock_guard lock(made_mutex);
                    made.push_back(std::move(fresh));
                    registry.add(*r, i);
                }
                const epoch_number outer = enter_scope(*r, registry.epoch());
                EXPECT_EQ(outer, 0u) << "no scope is left over";
                if (g % 3 != 0) exit_scope(*r, outer);
                registry.release(*r);
            });
        for (auto& t : threads) t.join();
        const epoch_number target = registry.advance();
        EXPECT_GE(registry.oldest_scope(), target);
    }
    unsigned records = 0;
    registry.for_each_record([&](const auto&) { ++records; });
    EXPECT_LE(records, at_a_time);
    EXPECT_EQ(records, made.size());
}

// What a thread has found in its scope is not freed before the scope ends (R1, R2): the reader's
// load and the writer's free meet in the epoch, the reader's slot and membarrier.
template <class P>
struct found_things {
    using threads = testing::threads_for<P>;
    struct thing {
        explicit thing(std::uint64_t v) : value(v) {}
        typename P::template atomic<std::uint64_t> value;
    };

    explicit found_things(bool fenced = false) {
        registry.set_fenced(fenced);
        current.store_seq_cst(heap.template create<thing>("thing", 1u));
        for (auto& r : records) registry.add(r, 1);
    }
    ~found_things() { heap.destroy(current.load_relaxed()); }
    found_things(const found_things&) = delete;
    found_things& operator=(const found_things&) = delete;

    void read(thread_record<P>& r) {
        const epoch_number outer = enter_scope(r, registry.epoch());
        thing* t = current.load_acquire();
        threads::require(t->value.load_relaxed() == 1, "alive");
        const epoch_number inner = enter_scope(r, registry.epoch());
        threads::require(t->value.load_relaxed() == 1, "alive in the inner scope");
        exit_scope(r, inner);
        threads::require(t->value.load_relaxed() == 1, "alive after the inner scope");
        exit_scope(r, outer);
    }
    void replace() {
        thing* old = current.exchange_acq_rel(heap.template create<thing>("thing", 1u));
        const epoch_number target = registry.advance();
        if (target == 0) { // nothing may be freed now: put aside
            leftover.push_back(old);
            return;
        }
        registry.wait_for(target, nullptr, never);
        old->value.store_relaxed(0);
        heap.destroy(old);
    }
    void run(unsigned reads, unsigned replacements) {
        for (unsigned i = 0; i < 2; ++i)
            threads::spawn("reader", [this, i, reads] {
                for (unsigned k = 0; k < reads; ++k) read(records[i]);
            });
        threads::spawn("writer", [this, replacements] {
            for (unsigned k = 0; k < replacements; ++k) replace();
        });
        threads::run();
        for (thing* t : leftover) heap.destroy(t);
    }

    typename threads::heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    scope_registry<P> registry;
    thread_record<P> records[2];
    typename P::template atomic<thing*> current;
    std::vector<thing*> leftover; // the writer's
};

TEST(scope_registry, scopes_hold_back_frees_scheduled) {
    explore_schedules("scopes", 3000, [] {
        found_things<scheduled> f;
        f.run(2, 2);
    });
    explore_schedules("scopes, unreliable membarrier", 2000,
                      [] {
                          found_things<scheduled> f;
                          f.run(2, 2);
                      },
                      {.membarrier = testing::membarrier_mode::unreliable});
    explore_schedules("fenced scopes", 3000,
                      [] {
                          found_things<scheduled> f(true);
                          f.run(2, 2);
                      },
                      {.membarrier = testing::membarrier_mode::missing});
}
TEST(scope_registry, scopes_hold_back_frees_on_threads) {
    for (const bool fenced : {false, true})
        explore_threads("scopes", [fenced] {
            found_things<native> f(fenced);
            f.run(20'000, 500);
        });
}

// The same while signals arrive all the time, whose handler opens a scope on the same record (O6).
found_things<native>* interrupted_things = nullptr;
thread_local thread_record<native>* interrupted_record = nullptr;
word::native_atomic<std::uint64_t> handled{0};

void on_signal(int) {
    thread_record<native>* r = interrupted_record;
    if (r == nullptr) return;
    const epoch_number before = r->epoch.load_relaxed();
    interrupted_things->read(*r);
    found_things<native>::threads::require(r->epoch.load_relaxed() == before,
                                           "the handler leaves the record as it found it");
    handled.fetch_add_relaxed(1);
}

TEST(scope_registry, a_storm_of_signals_leaves_scopes_intact) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    struct sigaction before = {};
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    using threads = testing::threads_for<native>;
    const std::uint64_t wanted = testing::scaled(300, 20'000, 2'000'000);
    const auto r = threads::explore({.name = "signals", .native_rounds = 1}, [wanted] {
        found_things<native> f;
        interrupted_things = &f;
        handled.store_relaxed(0);
        pthread_t target{};
        word::native_atomic<bool> ready(false), done(false);
        threads::spawn([&] {
            interrupted_record = &f.records[0];
            target = pthread_self();
            ready.store_release(true);
            while (!done.load_acquire()) {
                f.read(f.records[0]);
                threads::require(f.records[0].epoch.load_relaxed() == 0, "outside");
            }
            interrupted_record = nullptr;
        });
        threads::spawn([&] {
            while (!ready.load_acquire()) native::yield();
            while (handled.load_relaxed() < wanted) {
                pthread_kill(target, SIGUSR1);
                if (handled.load_relaxed() % 8 == 0) native::yield();
            }
            done.store_release(true);
        });
        threads::spawn([&] {
            while (!done.load_acquire()) f.replace();
        });
        threads::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
    EXPECT_GE(handled.load_relaxed(), wanted);
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

} // namespace
} // namespace obase::mobility
