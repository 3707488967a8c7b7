// SPDX-License-Identifier: MIT
//
// Threads, signals, exceptions and forks against a collector that never rests (O6).
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct item {
    std::uint64_t id;
    std::uint64_t copy;
};
using item_guide = obase::guide<item>;

std::vector<item_guide> make_items(std::uint64_t count) {
    std::vector<item_guide> items;
    items.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i)
        items.emplace_back(obase::make_guide<item>(item{i, ~i}));
    return items;
}

void expect_intact(const item& i, std::uint64_t id) {
    if (i.id != id || i.copy != ~id) {
        std::fprintf(stderr, "object %lu reads %lu/%lu\n", static_cast<unsigned long>(id),
                     static_cast<unsigned long>(i.id), static_cast<unsigned long>(i.copy));
        std::abort();
    }
}

// A thread that forces one window after another while the test runs.
class restless_collector {
  public:
    restless_collector()
        : runtime_(obase::testing::quiet_runtime()), thread_([this] {
              while (!stop_) runtime_.collect_now();
          }) {}
    ~restless_collector() {
        stop_ = true;
        thread_.join();
    }

  private:
    obase::runtime& runtime_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

TEST(threads, thousands_come_and_go) {
    obase::testing::quiet_runtime();
    auto items = make_items(512);
    restless_collector collector;
    std::uint64_t rounds = obase::testing::scaled(150, 2000, 20000);
    // That mode ends every scope with the collector's lock.
    if (obase::testing::quiet_runtime().settings().debug_rearm) rounds /= 10;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&, t] {
                std::vector<item_guide> own;
                for (std::size_t i = static_cast<std::size_t>(t); i < items.size(); i += 7) {
                    obase::scope s;
                    expect_intact(*items[i], i);
                    own.emplace_back(obase::make_guide<item>(item{i, ~i}));
                }
                for (auto& g : own) obase::retire(std::move(g));
            });
        }
        for (auto& t : threads) t.join();
    }
}

// pthread_exit unwinds, so the scope ends; a scope entered by hand and never left ends with its
// thread.
TEST(threads, a_thread_may_end_inside_a_scope) {
    auto& runtime = obase::testing::quiet_runtime();
    auto items = make_items(64);
    for (int round = 0; round < 20; ++round) {
        std::thread([&] {
            (void)obase::arming::enter();
            expect_intact(*items[1], 1);
        }).join();
        ASSERT_EQ(runtime.collect_now(), obase::collect_result::done);
    }
}

TEST(threads, an_exception_leaves_the_scope) {
    auto& runtime = obase::testing::quiet_runtime();
    auto items = make_items(4);
    try {
        obase::scope outer;
        obase::scope inner;
        expect_intact(*items[2], 2);
        throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
    }
    EXPECT_FALSE(obase::arming::in_scope());
    EXPECT_EQ(runtime.collect_now(), obase::collect_result::done);
}

std::vector<item_guide>* handler_items = nullptr;
std::atomic<std::uint64_t> handled{0};

void use_guides_in_handler(int) {
    const int saved = errno;
    {
        obase::scope s;
        for (std::size_t i = 0; i < handler_items->size(); i += 31)
            expect_intact(*(*handler_items)[i], i);
    }
    handled.fetch_add(1);
    errno = saved;
}

// A handler opens scopes of its own anywhere inside the thread's scopes, also between the two
// stores of an entry; nothing it does may hide the thread's scope or end it early.
TEST(threads, signal_handlers_use_guides) {
    auto items = make_items(1024);
    handler_items = &items;
    struct sigaction action = {};
    action.sa_handler = use_guides_in_handler;
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    restless_collector collector;
    std::atomic<bool> stop{false};
    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    for (int t = 0; t < 2; ++t) {
        workers.emplace_back([&] {
            {
                obase::scope attach;
            }
            ++ready;
            std::uint64_t n = 0;
            while (!stop) {
                obase::scope s;
                for (int k = 0; k < 8; ++k) {
                    const std::uint64_t i = (n += 0x9e3779b97f4a7c15u) % items.size();
                    expect_intact(*items[i], i);
                }
            }
        });
    }
    while (ready != 2) std::this_thread::yield();
    const std::uint64_t enough = obase::testing::scaled(3000, 100000, 1000000);
    while (handled < enough)
        for (auto& w : workers) pthread_kill(w.native_handle(), SIGUSR1);
    stop = true;
    for (auto& w : workers) w.join();
    std::signal(SIGUSR1, SIG_DFL);
}

// Destructors and assignments at random, under readers in scopes, everything guarded by a lock per
// slot as a lock-based structure would; the memory with the guides in it goes away, too.
TEST(threads, guides_are_destroyed_and_reassigned_under_the_collector) {
    restless_collector collector;
    struct shard {
        std::mutex lock;
        std::vector<item_guide> guides;
    };
    std::vector<shard> shards(16);
    std::vector<std::thread> threads;
    const std::uint64_t steps = obase::testing::scaled(400000, 5000000, 100000000);
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t x = 88172645463325252u + static_cast<unsigned>(t);
            for (std::uint64_t step = 0; step < steps; ++step) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                shard& s = shards[x % shards.size()];
                const std::lock_guard guard(s.lock);
                switch (x >> 8 & 7) {
                case 0:
                    s.guides.emplace_back(obase::make_guide<item>(item{x, ~x}));
                    break;
                case 1: // the vector's memory goes back to malloc
                    if (s.guides.size() > 64) std::vector<item_guide>().swap(s.guides);
                    break;
                case 2:
                    if (!s.guides.empty()) s.guides.pop_back();
                    break;
                case 3:
                    if (s.guides.size() > 1) std::swap(s.guides.front(), s.guides.back());
                    break;
                case 4:
                    if (!s.guides.empty()) s.guides.front() = obase::make_guide<item>(item{x, ~x});
                    break;
                default: {
                    obase::scope scope;
                    for (const item_guide& g : s.guides) expect_intact(*g, g->id);
                    if (!s.guides.empty()) { // in-place update: must not be lost by a move
                        item* last = s.guides.back().get();
                        last->id = x;
                        last->copy = ~x;
                    }
                }
                }
            }
        });
    }
    for (auto& t : threads) t.join();
}

// R14: fork at any moment of the collector's work; the child has all objects and no collector, and
// may start one of its own.
TEST(fork, child_sees_everything_and_can_go_on) {
    auto& runtime = obase::testing::quiet_runtime();
    auto items = make_items(20000);
    restless_collector collector;
    std::atomic<bool> stop{false};
    std::thread worker([&] {
        std::uint64_t n = 0;
        while (!stop) {
            obase::scope s;
            const std::uint64_t i = (n += 0x9e3779b97f4a7c15u) % items.size();
            expect_intact(*items[i], i);
            obase::retire(obase::make_guide<item>(item{i, ~i}));
        }
    });
    const std::uint64_t forks = obase::testing::scaled(20, 200, 2000);
    for (std::uint64_t f = 0; f < forks; ++f) {
        const bool in_scope = f % 3 == 0;
        const auto outer = in_scope ? obase::arming::enter() : 0;
        const pid_t child = fork();
        if (child == 0) {
            // Only async-signal-safe things are promised after a fork of a threaded process; malloc
            // is safe with glibc, and obase takes care of itself.
            for (std::size_t i = 0; i < items.size(); i += 97) {
                obase::scope s;
                expect_intact(*items[i], i);
            }
            if (in_scope) obase::arming::leave(outer);
            items[3] = obase::make_guide<item>(item{3, ~std::uint64_t{3}});
            if (runtime.collect_now() != obase::collect_result::not_running) _exit(3);
            if (!runtime.start().empty()) _exit(4);
            for (int window = 0; window < 3; ++window)
                if (runtime.collect_now() != obase::collect_result::done) _exit(5);
            for (std::size_t i = 0; i < items.size(); i += 13) {
                obase::scope s;
                expect_intact(*items[i], i);
            }
            runtime.stop();
            _exit(0);
        }
        ASSERT_GT(child, 0);
        if (in_scope) obase::arming::leave(outer);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << "child " << f << ": status " << status;
    }
    stop = true;
    worker.join();
}

} // namespace
