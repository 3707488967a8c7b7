// SPDX-License-Identifier: MIT
//
// Starting, stopping and forking while something else is going on: each test is a way in which a
// lock, a thread or a record was once held by the wrong one. All in child processes.
#include "testing/child_process.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::run_mode;
using obase::testing::require;
using obase::testing::run_in_child;

struct item {
    std::uint64_t id;
};

obase::runtime& configured_runtime() {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = 1e6;
    auto& runtime = obase::runtime::get();
    require(runtime.configure(settings).empty(), "configure");
    return runtime;
}

// True if a thread of this process waits in the kernel.
bool sleeps(long thread) {
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
    std::FILE* file = std::fopen(path.c_str(), "re");
    require(file != nullptr, "stat of a thread");
    char text[512] = "";
    require(std::fgets(text, sizeof text, file) != nullptr, "a line of it");
    std::fclose(file);
    const std::string line = text;
    return line.find(") S") != std::string::npos;
}

// An object whose end is under the test's control.
struct guest {
    static inline std::function<void()> last_words;
    bool armed = false;
    ~guest() {
        if (armed) last_words();
    }
};

// Retires a guest from the main thread and returns when the collector is in its destructor, which
// goes on, with `then`, once this thread sleeps in what it calls next.
void let_the_collector_destroy_a_guest(std::function<void()> then) {
    static std::atomic<bool> inside{false};
    static std::atomic<bool> proceed{false};
    inside = proceed = false;
    const long here = syscall(SYS_gettid);
    guest::last_words = [here, then] {
        inside = true;
        while (!proceed) std::this_thread::yield();
        while (!sleeps(here)) std::this_thread::yield();
        then();
    };
    auto object = obase::make_managed<guest>();
    object->armed = true;
    obase::retire(std::move(object));
    while (!inside) std::this_thread::yield();
    proceed = true;
}

} // namespace

template <>
struct obase::is_relocatable<guest> : std::true_type {};

namespace {

// stop() once held the lock of start() and fork() while it waited for the collector's end, and the
// collector was in a destructor that waited for that lock.
TEST(lifecycle, stop_waits_for_a_destructor_that_uses_the_runtime) {
    const auto child = run_in_child([] {
        auto& runtime = configured_runtime();
        require(runtime.start().empty(), "start");
        static std::atomic<bool> done{false};
        let_the_collector_destroy_a_guest([] {
            auto& self = obase::runtime::get();
            obase::options settings = self.settings();
            (void)self.self_check();
            const pid_t pid = fork();
            if (pid == 0) _exit(0);
            int status = -1;
            require(waitpid(pid, &status, 0) == pid && status == 0, "a fork from a destructor");
            settings.mode = run_mode::off; // so that neither of these starts anything
            require(self.configure(settings).empty(), "configure");
            self.set_mode(run_mode::off);
            require(self.collect_now() == collect_result::in_scope,
                    "the collector waits for itself");
            self.stop(); // from here: no effect
            done = true;
        });
        runtime.stop();
        require(done, "the destructor ran to its end");
        require(runtime.collect_now() == collect_result::not_running, "stopped");
        runtime.set_mode(run_mode::move);
        require(runtime.collect_now() == collect_result::done, "and started again");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// The same at the end of the process, where it is exit() that stops the collector.
TEST(lifecycle, exit_waits_for_a_destructor_that_uses_the_runtime) {
    const auto child = run_in_child([] {
        require(configured_runtime().start().empty(), "start");
        let_the_collector_destroy_a_guest([] { (void)obase::runtime::get().settings(); });
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A start() that comes while a stop() waits wins: stop() returns and the collector stays.
TEST(lifecycle, start_during_stop) {
    const auto child = run_in_child([] {
        auto& runtime = configured_runtime();
        require(runtime.start().empty(), "start");
        let_the_collector_destroy_a_guest(
            [] { require(obase::runtime::get().start().empty(), "start from a destructor"); });
        runtime.stop();
        require(runtime.collect_now() == collect_result::done, "there is a collector");
        runtime.stop();
        require(runtime.collect_now() == collect_result::not_running, "there is none");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST(lifecycle, everybody_starts_stops_configures_and_forks_at_once) {
    const auto child = run_in_child([] {
        auto& runtime = configured_runtime();
        std::vector<obase::guide<item>> items;
        for (std::uint64_t i = 0; i < 1000; ++i)
            items.emplace_back(obase::make_managed<item>(item{i}));
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 6; ++t) {
            threads.emplace_back([&, t] {
                for (unsigned i = 0; i < 40; ++i) {
                    switch ((i + t) % 6) {
                    case 0:
                        runtime.stop();
                        break;
                    case 1:
                        require(runtime.start().empty(), "start");
                        break;
                    case 2:
                        runtime.set_mode(i % 2 == 0 ? run_mode::observe : run_mode::move);
                        break;
                    case 3:
                        (void)runtime.collect_now();
                        break;
                    case 4:
                        require(runtime.configure(runtime.settings()).empty(), "configure");
                        break;
                    default: {
                        const pid_t pid = fork();
                        if (pid == 0) {
                            require(runtime.start().empty(), "start in a child");
                            const bool ok = runtime.collect_now() == collect_result::done;
                            runtime.stop();
                            _exit(ok ? 0 : 1);
                        }
                        int status = -1;
                        require(waitpid(pid, &status, 0) == pid && status == 0, "a child");
                    }
                    }
                    obase::scope s;
                    require(items[i * t % 1000]->id == i * t % 1000, "an object");
                }
            });
        }
        for (auto& t : threads) t.join();
        runtime.set_mode(run_mode::move);
        require(runtime.collect_now() == collect_result::done, "a collector at the end");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Cancelling unwinds the thread; in the middle of a wait inside the runtime it once ended the
// process.
TEST(lifecycle, a_thread_that_waits_for_windows_is_cancelled) {
    const auto child = run_in_child([] {
        auto& runtime = configured_runtime();
        require(runtime.start().empty(), "start");
        for (int round = 0; round < 20; ++round) {
            std::atomic<int> windows{0};
            pthread_t thread;
            const auto collect = [](void* count) -> void* {
                for (;;) {
                    (void)obase::runtime::get().collect_now();
                    static_cast<std::atomic<int>*>(count)->fetch_add(1);
                    pthread_testcancel();
                }
            };
            require(pthread_create(&thread, nullptr, collect, &windows) == 0, "a thread");
            while (windows < 3) std::this_thread::yield();
            require(pthread_cancel(thread) == 0, "cancel");
            void* result = nullptr;
            require(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "join");
        }
        require(runtime.collect_now() == collect_result::done, "the collector goes on");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// What obase does for the first time opens files and makes a thread, within functions that are noexcept.
// A cancellation that was pending then once ended the process; now it waits for the program's own code.
template <class Protocol>
void cancelled_at_the_first(void (*use)()) {
    const auto child = run_in_child([use]() mutable {
        pthread_t thread;
        const auto body = [](void* what) -> void* {
            pthread_cancel(pthread_self());
            (*static_cast<void (**)()>(what))();
            pthread_testcancel();
            return nullptr;
        };
        require(pthread_create(&thread, nullptr, body, &use) == 0, "a thread");
        void* result = nullptr;
        require(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "join");
        const auto object = obase::make_managed<item, Protocol>(item{1});
        require(obase::runtime::of<Protocol>().collect_now() == collect_result::done, "a window");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

template <class Protocol>
void cancelled_at_any_first_use() {
    cancelled_at_the_first<Protocol>([] { (void)obase::make_managed<item, Protocol>(item{1}); });
    cancelled_at_the_first<Protocol>([] { const obase::guide<item, Protocol> none; });
    cancelled_at_the_first<Protocol>([] { (void)obase::runtime::of<Protocol>().start(); });
    cancelled_at_the_first<Protocol>(
        [] { obase::runtime::of<Protocol>().set_mode(run_mode::move); });
    cancelled_at_the_first<Protocol>([] { (void)obase::runtime::of<Protocol>().self_check(); });
    cancelled_at_the_first<Protocol>([] {
        auto& runtime = obase::runtime::of<Protocol>();
        (void)runtime.configure(runtime.settings());
    });
    cancelled_at_the_first<Protocol>([] {
        const obase::guide<item, Protocol> none;
        const pid_t pid = fork();
        if (pid == 0) _exit(0);
        const obase::basic_scope<Protocol> s;
    });
}

TEST(lifecycle, a_thread_with_a_pending_cancellation_is_the_first) {
    cancelled_at_any_first_use<obase::arming>();
    cancelled_at_any_first_use<obase::atc>();
}

// A mode without hints once went on filling the table of large objects, which never emptied and whose
// clock stood still: hints that were switched on later took objects freed long ago for cold ones.
TEST(lifecycle, large_objects_of_a_mode_without_hints_are_not_hinted_later) {
    const auto child = run_in_child([] {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.cold_threshold = 1;
        require(settings.set("controller", "fixed").empty(), "controller");
        settings.mode = run_mode::move;
        auto& runtime = obase::runtime::get();
        require(runtime.configure(settings).empty(), "configure");
        {
            // What is larger than 4 MiB does not move.
            const obase::guide<item> large =
                obase::make_managed_with<item>({.extra_bytes = 5'000'000}, item{1});
            for (int window = 0; window < 5; ++window)
                require(runtime.collect_now() == collect_result::done, "a window of mode move");
        }
        runtime.set_mode(run_mode::hint);
        for (int window = 0; window < 3; ++window)
            require(runtime.collect_now() == collect_result::done, "a window of mode hint");
        const auto now = runtime.statistics();
        require(now.hint_cold_bytes == 0 && now.hint_pageout_bytes == 0, "nothing lives");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// In the child of a fork one thread once got the record that is kept for lack of memory; it is
// never given back, so that thread's scope never ended (O6).
TEST(lifecycle, a_thread_of_a_forked_child_ends_inside_a_scope) {
    const auto child = run_in_child([] {
        auto& runtime = configured_runtime();
        require(runtime.start().empty(), "start");
        std::vector<obase::guide<item>> items;
        items.reserve(3);
        { // this thread has a record, and so has the collector
            obase::scope attach;
        }
        require(runtime.collect_now() == collect_result::done, "a window before the fork");
        const pid_t pid = fork();
        if (pid == 0) {
            require(runtime.start().empty(), "start");
            // After it the new collector has the old one's, and the next one is the one in
            // question.
            require(runtime.collect_now() == collect_result::done, "a first window");
            for (unsigned count : {1u, 8u, 64u}) {
                items.emplace_back(obase::make_managed<item>(item{1})); // for the collector to move
                std::atomic<unsigned> inside{0};
                std::vector<std::thread> threads;
                for (unsigned t = 0; t < count; ++t) {
                    threads.emplace_back([&] {
                        (void)obase::arming::enter();
                        require(items.back()->id == 1, "an object");
                        ++inside;
                        while (inside < count) std::this_thread::yield();
                    });
                }
                for (auto& t : threads) t.join();
                require(runtime.collect_now() == collect_result::done, "no scope is open");
            }
            runtime.stop();
            _exit(0);
        }
        int status = -1;
        require(waitpid(pid, &status, 0) == pid && status == 0, "the child's child");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
