// SPDX-License-Identifier: MIT
//
// Deferred frees in a whole process: what threads retire is freed without a collector as with one,
// what destructors retire too, and drain() says when no destructor can run any more. In child
// processes, each with a runtime of its own.
#include "runtime/drain_plugin.hpp"
#include "testing/child_process.hpp"
#include "testing/waiting_thread.hpp"

#include <obase/atc.hpp>
#include <obase/obase.h>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <dlfcn.h>
#include <new>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::drain_end;
using obase::run_mode;
using obase::testing::require;
using obase::testing::run_in_child;
using obase::testing::waiting_thread;

struct counted_object {
    static inline std::atomic<long> alive{0};
    counted_object() { ++alive; }
    ~counted_object() { --alive; }
    char bytes[1000];
};

// A list whose nodes retire their successors.
template <class Protocol>
struct node_of {
    static inline std::atomic<long> alive{0};
    obase::guide<node_of, Protocol> next;
    node_of() { ++alive; }
    ~node_of() {
        --alive;
        obase::retire(next.release());
    }
};

// Drains in its destructor, and stays there until it is told to proceed.
template <class Protocol>
struct caller_of {
    static drain_end drained(double seconds) {
        return obase::runtime::of<Protocol>().drain(seconds).why;
    }
    ~caller_of() {
        if (!armed) return;
        answer = drained(10);
        inside = true;
        while (!proceed) std::this_thread::yield();
    }
    bool armed = false;
    static inline std::atomic<bool> inside{false}, proceed{false};
    static inline std::atomic<drain_end> answer{drain_end::done};
};

} // namespace

template <>
struct obase::is_relocatable<counted_object> : std::true_type {};
template <class Protocol>
struct obase::is_relocatable<node_of<Protocol>> : std::true_type {};
template <class Protocol>
struct obase::is_relocatable<caller_of<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class reclaiming : public ::testing::Test {
  public:
    using counted = counted_object;
    using node = node_of<Protocol>;

    static obase::runtime& runtime(run_mode mode) {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = mode;
        auto& made = obase::runtime::of<Protocol>();
        require(made.configure(settings).empty(), "configure");
        return made;
    }
    static auto make() { return obase::make_managed<counted, Protocol>(); }

    // Threads that come and go leave a bounded number behind, not one each; and what a last share can
    // take is gone when they have ended.
    static void come_and_go() {
        for (const int per : {1, 10, 1000}) {
            long most = 0;
            for (int t = 0; t < 100; ++t) {
                std::thread([&] {
                    for (int i = 0; i < per; ++i) obase::retire(make());
                }).join();
                most = std::max(most, counted::alive.load());
                require(per > 10 || most == 0, "what an ended thread has retired is freed");
            }
            require(most <= 2048, "what ended threads have retired is freed");
        }
    }
    static obase::owner<node, Protocol> make_list(int length) {
        obase::guide<node, Protocol> root;
        for (int i = 0; i < length; ++i) {
            auto made = obase::make_managed<node, Protocol>();
            made->next = root.release();
            root = std::move(made);
        }
        return root.release();
    }
};

using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(reclaiming, protocols);

TYPED_TEST(reclaiming, of_threads_that_end_without_a_collector) {
    for (const run_mode mode : {run_mode::off, run_mode::move}) {
        const auto child = run_in_child([mode] {
            auto& runtime = TestFixture::runtime(mode);
            (void)TestFixture::make();
            if (mode != run_mode::off) runtime.stop();
            TestFixture::come_and_go();
            return 0;
        });
        EXPECT_EQ(child.status, 0) << obase::to_string(mode) << ": " << child.err;
    }
}

TYPED_TEST(reclaiming, of_threads_that_end_in_a_forked_child) {
    const auto child = run_in_child([] {
        auto& runtime = TestFixture::runtime(run_mode::move);
        (void)TestFixture::make();
        require(runtime.collect_now() == obase::collect_result::done, "a collector");
        const pid_t forked = fork();
        if (forked == 0) {
            TestFixture::come_and_go();
            require(runtime.drain().why == drain_end::done, "drained");
            require(TestFixture::counted::alive == 0, "all are freed");
            _exit(0);
        }
        int status = 0;
        require(waitpid(forked, &status, 0) == forked, "the child of the fork");
        return WEXITSTATUS(status);
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// One thread that goes on, without a collector: every call does a bounded part, and it is enough.
TYPED_TEST(reclaiming, of_a_thread_that_goes_on_with_the_mode_off) {
    const auto child = run_in_child([] {
        auto& runtime = TestFixture::runtime(run_mode::off);
        waiting_thread reader([](const auto& wait) {
            typename TypeParam::scope s;
            wait();
        });
        constexpr long backlog = 20'000;
        for (long i = 0; i < backlog; ++i) obase::retire(TestFixture::make());
        require(TestFixture::counted::alive == backlog, "the scope holds all");
        reader.end();
        long before = TestFixture::counted::alive;
        for (long i = 0; i < backlog; ++i) {
            {
                typename TypeParam::scope s;
                obase::retire(TestFixture::make());
            }
            const long now = TestFixture::counted::alive;
            require(before - now <= 128, "a call frees a bounded number");
            before = now;
        }
        require(before <= 4096, "and together they free all");
        runtime.reclaim_now();
        require(TestFixture::counted::alive == 0, "nothing is left");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TYPED_TEST(reclaiming, of_a_list_by_reclaim_now) {
    const auto child = run_in_child([] {
        auto& runtime = TestFixture::runtime(run_mode::off);
        obase::retire(TestFixture::make_list(1000));
        require(runtime.reclaim_now() == 1000, "all of them");
        require(TestFixture::node::alive == 0, "all of them");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// An idle program: nothing but the collector's ticks. One node each would take hours.
TYPED_TEST(reclaiming, of_a_list_by_the_collector) {
    const auto child = run_in_child([] {
        TestFixture::runtime(run_mode::move);
        obase::retire(TestFixture::make_list(100'000));
        while (TestFixture::node::alive != 0) usleep(1000);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Property: what is retired when a window begins keeps no run from being emptied in it.
TYPED_TEST(reclaiming, comes_before_the_memory_of_a_window_goes_back) {
    const auto child = run_in_child([] {
        auto& runtime = TestFixture::runtime(run_mode::move);
        constexpr int count = 20'000;
        const auto hot = [&] { return runtime.statistics().heaps[1]; };
        std::vector<obase::guide<counted_object, TypeParam>> guides(count);
        for (auto& guide : guides) guide = TestFixture::make();
        for (int window = 0; window < 3; ++window) {
            for (auto& guide : guides) {
                const typename TypeParam::scope one;
                guide->bytes[0] = 1;
            }
            require(runtime.collect_now() == obase::collect_result::done, "a collector");
        }
        require(hot().live_objects > count / 2, "in HOT");
        for (auto& guide : guides) obase::retire(guide.release());
        require(runtime.collect_now() == obase::collect_result::done, "a collector");
        require(counted_object::alive == 0, "all are freed");
        require(hot().extent_bytes < 200'000, "their memory is given back");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TYPED_TEST(reclaiming, is_drained_in_every_mode) {
    for (const run_mode mode : {run_mode::off, run_mode::observe, run_mode::move}) {
        const auto child = run_in_child([mode] {
            auto& runtime = TestFixture::runtime(mode);
            for (int i = 0; i < 5000; ++i) obase::retire(TestFixture::make());
            obase::retire(TestFixture::make_list(1000));
            std::thread([] { obase::retire(TestFixture::make_list(1000)); }).join();
            const auto result = runtime.drain();
            require(result.why == drain_end::done && result.left == 0, "drained");
            require(TestFixture::counted::alive == 0, "all objects are gone");
            require(TestFixture::node::alive == 0, "and all nodes");
            return 0;
        });
        EXPECT_EQ(child.status, 0) << child.err;
    }
}

TYPED_TEST(reclaiming, is_not_drained_past_scopes_and_pins) {
    const auto child = run_in_child([] {
        auto& runtime = TestFixture::runtime(run_mode::off);
        obase::guide<typename TestFixture::counted, TypeParam> slot = TestFixture::make();
        obase::retire(TestFixture::make());
        {
            typename TypeParam::scope s;
            const auto result = runtime.drain();
            require(result.why == drain_end::in_scope && result.left == 1, "in the caller's scope");
        }
        require(runtime.drain(0).why == drain_end::done, "afterwards");
        typename TypeParam::pin_entry* pin = nullptr;
        {
            typename TypeParam::scope s;
            pin = TypeParam::pin(slot.get());
        }
        obase::retire(std::move(slot));
        const auto pinned = runtime.drain(0);
        require(pinned.why == drain_end::pinned && pinned.left == 1, "pinned");
        waiting_thread reader([](const auto& wait) {
            typename TypeParam::scope s;
            wait();
        });
        obase::retire(TestFixture::make());
        const auto open = runtime.drain(0.01);
        require(open.why == drain_end::scope_open && open.left == 2, "a reader's scope");
        TypeParam::unpin(pin);
        // It waits for as long as it takes.
        std::thread ends([&] { reader.end(); });
        require(runtime.drain(1e9).why == drain_end::done, "it waited for the reader");
        ends.join();
        require(TestFixture::counted::alive == 0, "all are gone");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// By whichever thread: the collector is in the destructor here.
TYPED_TEST(reclaiming, is_not_drained_from_a_destructor) {
    using caller = caller_of<TypeParam>;
    const auto child = run_in_child([] {
        TestFixture::runtime(run_mode::move);
        auto object = obase::make_managed<caller, TypeParam>();
        object->armed = true;
        obase::retire(std::move(object));
        while (!caller::inside) std::this_thread::yield();
        require(caller::answer == drain_end::in_destructor, "says so at once");
        require(caller::drained(0) == drain_end::destructor_running, "another thread's destructor");
        caller::proceed = true;
        require(caller::drained(1e9) == drain_end::done, "and waits for it");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A library whose functions are destroy functions is unloaded after obase_drain(), again and again,
// while a collector is at work. Afterwards its memory is unmapped: a late call would be a crash.
TEST(reclaiming_library, is_unloaded_after_a_drain) {
    const auto child = run_in_child([] {
        require(obase_configure("mode", "move") == nullptr, "configure");
        require(obase_configure("window_seconds", "1000000") == nullptr, "configure");
        require(obase_start() == nullptr, "start");
        std::atomic<long> ended{0};
        constexpr int rounds = 20, each = 200;
        for (int round = 0; round < rounds; ++round) {
            void* const plugin = dlopen(OBASE_TEST_DRAIN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
            require(plugin != nullptr, "the library");
            auto* const destroy =
                reinterpret_cast<void (*)(void*)>(dlsym(plugin, "drain_plugin_destroy"));
            require(destroy != nullptr, "its function");
            const auto retire_some = [&] {
                for (int i = 0; i < each; ++i) {
                    void* const object = obase_alloc(sizeof(drain_plugin_job), nullptr);
                    obase_retire(::new (object) drain_plugin_job{&ended, &obase_free}, destroy);
                }
            };
            std::thread(retire_some).join();
            retire_some();
            std::uint64_t left = 1;
            const std::uint64_t outer = obase_scope_enter();
            require(obase_drain(10, &left) == static_cast<int>(drain_end::in_scope), "in a scope");
            obase_scope_exit(outer);
            require(obase_drain(1e9, &left) == 0 && left == 0, "drained");
            require(ended == 2L * each * (round + 1), "all are destroyed");
            dlclose(plugin);
            require(dlopen(OBASE_TEST_DRAIN_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == nullptr,
                    "the library is gone");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
