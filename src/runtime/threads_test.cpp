// SPDX-License-Identifier: MIT
//
// Threads, signals, exceptions and forks against a collector that never rests (O6), with both
// protocols.
#include "os/thread.hpp"
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

void expect_intact(const item& i, std::uint64_t id) {
    if (i.id != id || i.copy != ~id) {
        std::fprintf(stderr, "object %lu reads %lu/%lu\n", static_cast<unsigned long>(id),
                     static_cast<unsigned long>(i.id), static_cast<unsigned long>(i.copy));
        std::abort();
    }
}

// A thread that forces one window after another while the test runs.
class continuous_collector {
  public:
    explicit continuous_collector(obase::runtime& runtime)
        : runtime_(runtime), thread_([this] {
              while (!stop_) runtime_.collect_now();
          }) {}
    ~continuous_collector() {
        stop_ = true;
        thread_.join();
    }

  private:
    obase::runtime& runtime_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// What a test needs of its protocol.
template <class Protocol>
class threads_of : public ::testing::Test {
  public:
    using item_guide = obase::guide<item, Protocol>;
    using scope = typename Protocol::scope;

    static obase::runtime& runtime() { return obase::testing::quiet_runtime<Protocol>(); }
    static auto make_item(std::uint64_t id) {
        return obase::make_managed<item, Protocol>(item{id, ~id});
    }
    static std::vector<item_guide> make_items(std::uint64_t count) {
        runtime();
        std::vector<item_guide> items;
        items.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i) items.emplace_back(make_item(i));
        return items;
    }
};

using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(threads_of, protocols);

TYPED_TEST(threads_of, thousands_come_and_go) {
    using self = TestFixture;
    auto items = self::make_items(512);
    continuous_collector collector(self::runtime());
    std::uint64_t rounds = obase::testing::scaled(150, 2000, 20000);
    // That mode ends every scope with the collector's lock.
    if (self::runtime().settings().debug_rearm) rounds /= 10;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&, t] {
                std::vector<typename self::item_guide> own;
                for (std::size_t i = static_cast<std::size_t>(t); i < items.size(); i += 7) {
                    typename self::scope s;
                    expect_intact(*items[i], i);
                    own.emplace_back(self::make_item(i));
                }
                for (auto& g : own) obase::retire(std::move(g));
            });
        }
        for (auto& t : threads) t.join();
    }
}

// pthread_exit unwinds, so the scope ends; a scope entered by hand and never left ends with its
// thread.
TYPED_TEST(threads_of, a_thread_may_end_inside_a_scope) {
    using self = TestFixture;
    auto items = self::make_items(64);
    for (int round = 0; round < 20; ++round) {
        std::thread([&] {
            (void)TypeParam::enter();
            expect_intact(*items[1], 1);
        }).join();
        ASSERT_EQ(self::runtime().collect_now(), obase::collect_result::done);
    }
}

TYPED_TEST(threads_of, an_exception_leaves_the_scope) {
    using self = TestFixture;
    auto items = self::make_items(4);
    try {
        typename self::scope outer;
        typename self::scope inner;
        expect_intact(*items[2], 2);
        throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
    }
    EXPECT_FALSE(TypeParam::in_scope());
    EXPECT_EQ(self::runtime().collect_now(), obase::collect_result::done);
}

template <class Protocol>
std::vector<obase::guide<item, Protocol>>* handler_items = nullptr;
std::atomic<std::uint64_t> handled{0};

template <class Protocol>
void use_guides_in_handler(int) {
    const int saved = errno;
    {
        typename Protocol::scope s;
        for (std::size_t i = 0; i < handler_items<Protocol>->size(); i += 31)
            expect_intact(*(*handler_items<Protocol>)[i], i);
    }
    handled.fetch_add(1);
    errno = saved;
}

// A handler opens scopes of its own anywhere inside the thread's scopes, also between the two
// stores of an entry; nothing it does may hide the thread's scope or end it early.
TYPED_TEST(threads_of, signal_handlers_use_guides) {
    using self = TestFixture;
    auto items = self::make_items(1024);
    handler_items<TypeParam> = &items;
    handled = 0;
    struct sigaction action = {};
    action.sa_handler = use_guides_in_handler<TypeParam>;
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    continuous_collector collector(self::runtime());
    std::atomic<bool> stop{false};
    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    for (int t = 0; t < 2; ++t) {
        workers.emplace_back([&] {
            {
                typename self::scope attach;
            }
            ++ready;
            std::uint64_t n = 0;
            while (!stop) {
                typename self::scope s;
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

std::atomic<std::uint32_t> signalled_thread;
void note_thread(int) { signalled_thread = obase::os::thread_id(); }

// A program that blocks a signal but where it waits for it, as around ppoll(), gets it there: the
// collector's thread does not take it away.
TYPED_TEST(threads_of, a_signal_waits_for_a_thread_of_the_program) {
    auto& runtime = TestFixture::runtime();
    ASSERT_EQ(runtime.collect_now(), obase::collect_result::done); // its thread is there
    signalled_thread = 0;
    std::signal(SIGUSR1, note_thread);
    {
        const obase::os::blocked_signals busy;
        kill(getpid(), SIGUSR1);
        ASSERT_EQ(runtime.collect_now(), obase::collect_result::done);
        EXPECT_EQ(signalled_thread.load(), 0U);
    }
    EXPECT_EQ(signalled_thread.load(), obase::os::thread_id());
    std::signal(SIGUSR1, SIG_DFL);
}

// Destructors and assignments at random, under readers in scopes, everything guarded by a lock per
// slot as a lock-based structure would; the memory with the guides in it goes away, too.
TYPED_TEST(threads_of, guides_are_destroyed_and_reassigned_under_the_collector) {
    using self = TestFixture;
    using guide_type = typename self::item_guide;
    continuous_collector collector(self::runtime());
    struct shard {
        std::mutex lock;
        std::vector<guide_type> guides;
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
                    s.guides.emplace_back(self::make_item(x));
                    break;
                case 1: // the vector's memory goes back to malloc
                    if (s.guides.size() > 64) std::vector<guide_type>().swap(s.guides);
                    break;
                case 2:
                    if (!s.guides.empty()) s.guides.pop_back();
                    break;
                case 3:
                    if (s.guides.size() > 1) std::swap(s.guides.front(), s.guides.back());
                    break;
                case 4:
                    if (!s.guides.empty()) s.guides.front() = self::make_item(x);
                    break;
                default: {
                    typename self::scope inside;
                    for (const guide_type& g : s.guides) expect_intact(*g, g->id);
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
TYPED_TEST(threads_of, a_forked_child_sees_everything_and_can_go_on) {
    using self = TestFixture;
    auto& runtime = self::runtime();
    auto items = self::make_items(20000);
    continuous_collector collector(self::runtime());
    std::atomic<bool> stop{false};
    std::thread worker([&] {
        std::uint64_t n = 0;
        while (!stop) {
            typename self::scope s;
            const std::uint64_t i = (n += 0x9e3779b97f4a7c15u) % items.size();
            expect_intact(*items[i], i);
            obase::retire(self::make_item(i));
        }
    });
    const std::uint64_t forks = obase::testing::scaled(20, 200, 2000);
    for (std::uint64_t f = 0; f < forks; ++f) {
        const bool in_scope = f % 3 == 0;
        const auto outer = in_scope ? TypeParam::enter() : 0;
        const pid_t child = fork();
        if (child == 0) {
            // Only async-signal-safe things are promised after a fork of a threaded process; malloc
            // is safe with glibc, and obase takes care of itself.
            for (std::size_t i = 0; i < items.size(); i += 97) {
                typename self::scope s;
                expect_intact(*items[i], i);
            }
            if (in_scope) TypeParam::leave(outer);
            items[3] = self::make_item(3);
            if (runtime.collect_now() != obase::collect_result::not_running) _exit(3);
            if (!runtime.start().empty()) _exit(4);
            for (int window = 0; window < 3; ++window)
                if (runtime.collect_now() != obase::collect_result::done) _exit(5);
            for (std::size_t i = 0; i < items.size(); i += 13) {
                typename self::scope s;
                expect_intact(*items[i], i);
            }
            runtime.stop();
            _exit(0);
        }
        ASSERT_GT(child, 0);
        if (in_scope) TypeParam::leave(outer);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << "child " << f << ": status " << status;
    }
    stop = true;
    worker.join();
}

} // namespace
