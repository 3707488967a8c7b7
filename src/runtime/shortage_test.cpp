// SPDX-License-Identifier: MIT
//
// Where address space, memory, threads, disk or permissions run short: the program works on, its
// answers are right, one clear message says so, and nothing or less moves. Each case is a process
// of its own.
#include "testing/checked_objects.hpp"
#include "testing/child_process.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/test_directory.hpp"
#include "testing/tier.hpp"
#include "testing/waiting_thread.hpp"

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

// Calls of the C library that fail on demand. The executable's definitions are the ones that
// libobase and libstdc++ find. The sanitizers have definitions of their own, which must stay.
namespace {
constinit std::atomic<bool> no_threads{false};
constinit std::atomic<unsigned> malloc_fails_in_256{0}; // how many of 256 calls
constinit std::atomic<std::uint64_t> malloc_failures{0};
constinit std::atomic<std::uint64_t> malloc_failures_left{UINT64_MAX}; // after them no call fails
constinit thread_local bool memory_is_safe = false;                    // the test's own allocations
constinit thread_local std::uint32_t malloc_dice = 12345;
} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OBASE_TEST_KEEP_MALLOC
#endif
#endif
#else
#define OBASE_TEST_KEEP_MALLOC
#endif

#if !defined(OBASE_TEST_KEEP_MALLOC)
extern "C" {
void* __libc_malloc(std::size_t bytes); // glibc's own, beneath malloc
__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
    if (const unsigned odds = malloc_fails_in_256.load(); odds != 0 && !memory_is_safe) {
        malloc_dice = malloc_dice * 1664525 + 1013904223;
        if ((malloc_dice >> 24) < odds && malloc_failures_left != 0) {
            --malloc_failures_left;
            ++malloc_failures;
            errno = ENOMEM;
            return nullptr;
        }
    }
    return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*start)(void*), void* argument) {
    if (no_threads) return EAGAIN;
    using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, start, argument);
}
}
#endif

namespace {

struct counted_object {
    static inline std::atomic<int> alive{0};
    std::uint64_t number;
    explicit counted_object(std::uint64_t n) : number(n) { ++alive; }
    ~counted_object() {
        --alive;
        number = ~number;
    }
};

} // namespace

template <>
struct obase::is_relocatable<counted_object> : std::true_type {};

namespace {

using obase::collect_result;
using obase::run_mode;
using obase::testing::checked_objects;
using obase::testing::child_result;
using obase::testing::moves_of;
using obase::testing::require;
using obase::testing::run_in_child;
using obase::testing::waiting_thread;

constexpr std::size_t mib = 1U << 20;

// Sets the options of the child's runtime; windows only when asked for.
void configure(void (*change)(obase::options&) = [](obase::options&) {}) {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = 1e6;
    change(settings);
    require(obase::runtime::get().configure(settings).empty(), "configure");
}

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// One message, and it contains `part`.
void expect_message(const child_result& child, const char* part) {
    EXPECT_EQ(child.status, 0) << child.err;
    const auto said = child.messages();
    ASSERT_EQ(said.size(), 1u) << child.err;
    EXPECT_TRUE(contains(said[0], part)) << child.err;
}

// Lets objects be made, used, replaced, moved if they may be, and compares all of them.
void work(checked_objects<>& objects, std::size_t count, int windows, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    objects.grow(count);
    for (int window = 0; window < windows; ++window) {
        objects.verify(3, static_cast<std::size_t>(window % 3));
        objects.change(random, count / 8);
        obase::runtime::get().collect_now();
    }
    objects.verify(1);
    obase::runtime::get().reclaim_now(); // where there is no collector to do it
}

// What works again once there is enough: everything can move.
void require_that_moves_happen(checked_objects<>& objects) {
    auto& runtime = obase::runtime::get();
    const auto before = moves_of(runtime.statistics());
    for (int window = 0; window < 3; ++window) {
        objects.verify(1);
        require(runtime.collect_now() == collect_result::done, "a window is done");
    }
    require(moves_of(runtime.statistics()) > before, "objects move");
    objects.verify(1);
}

// Lowers a soft limit to what is in use now and `more` bytes.
void limit_to_current_and(decltype(RLIMIT_AS) what, std::size_t more) {
    std::size_t pages[6] = {};
    std::FILE* file = std::fopen("/proc/self/statm", "re");
    require(file != nullptr, "statm");
    for (std::size_t& n : pages)
        require(std::fscanf(file, "%zu", &n) == 1, "statm has six numbers");
    std::fclose(file);
    rlimit limit{};
    getrlimit(what, &limit);
    limit.rlim_cur = pages[what == RLIMIT_AS ? 0 : 5] * 4096 + more; // size, data
    require(setrlimit(what, &limit) == 0, "setrlimit");
}
void lift_limit(decltype(RLIMIT_AS) what) {
    rlimit limit{};
    getrlimit(what, &limit);
    limit.rlim_cur = limit.rlim_max;
    require(setrlimit(what, &limit) == 0, "setrlimit");
}

#define SKIP_WITH_SHADOW()                                                                         \
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer's shadow counts against the limit"

TEST(shortage, no_address_space_for_the_heaps) {
    SKIP_WITH_SHADOW();
    const auto child = run_in_child([] {
        configure();
        limit_to_current_and(RLIMIT_AS, 192 * mib);
        checked_objects<> objects(2000);
        work(objects, 2000, 3);
        auto& runtime = obase::runtime::get();
        require(objects.refused() == 0, "malloc is there");
        require(runtime.collect_now() == collect_result::not_running, "nothing to collect");
        require(!runtime.start().empty(), "start() says why");
        require(moves_of(runtime.statistics()) == 0, "nothing moves");
        return 0;
    });
    expect_message(child, "no migration: no address space for the heap");
}

// The map is opened before the heaps, and is the first to fail.
TEST(shortage, no_address_space_for_the_map_of_guides) {
    const auto child = run_in_child([] {
        static obase::os::memory_calls calls = obase::os::real_memory_calls();
        calls.mmap = [](void* at, std::size_t bytes, int protection, int flags, int fd,
                        off_t offset) {
            if (bytes == 64 * mib) {
                errno = ENOMEM;
                return MAP_FAILED;
            }
            return obase::os::real_memory_calls().mmap(at, bytes, protection, flags, fd, offset);
        };
        obase::os::use_memory_calls(&calls);
        configure();
        checked_objects<> objects(2000);
        work(objects, 2000, 3);
        require(obase::runtime::get().collect_now() == collect_result::not_running, "no collector");
        return 0;
    });
    expect_message(child, "no migration: no address space for the map of guides");
}

// Whatever it is that does not fit any more: the root, the heaps, a thread's stack, a leaf, an
// object.
TEST(shortage, any_limit_on_address_space) {
    SKIP_WITH_SHADOW();
    int all_was_well = 0, without_migration = 0;
    for (std::size_t more = 3 * mib; more < 3000 * mib; more += more / 5) {
        for (const bool small : {false, true}) {
            const auto child = run_in_child([&] {
                limit_to_current_and(RLIMIT_AS, more);
                configure(small ? [](obase::options& o) { o.heap_reserve = mib; }
                                : [](obase::options&) {});
                checked_objects<> objects(1000, 100);
                work(objects, 1000, 3);
                return 0;
            });
            EXPECT_EQ(child.status, 0) << more << ' ' << small << '\n' << child.err;
            int no_migration = 0;
            for (const std::string& line : child.messages())
                no_migration += contains(line, "no migration");
            EXPECT_LE(no_migration, 1) << more << ' ' << small << '\n' << child.err;
            all_was_well += child.messages().empty();
            without_migration += no_migration;
        }
    }
    EXPECT_GT(all_was_well, 0);
    EXPECT_GT(without_migration, 10);
}

// RLIMIT_DATA counts what was made writable, as vm.overcommit_memory=2 does for the whole machine:
// the heaps are there and stop growing somewhere.
TEST(shortage, memory_ends_while_heaps_grow) {
    SKIP_WITH_SHADOW();
    std::uint64_t children_with_less_moves = 0;
    for (std::size_t more = mib; more <= 16 * mib; more += mib) {
        const auto child = run_in_child([&] {
            configure();
            checked_objects<> objects(25'000);
            objects.grow(1000);
            limit_to_current_and(RLIMIT_DATA, more);
            work(objects, 25'000, 4);
            auto& runtime = obase::runtime::get();
            const auto squeezed = runtime.statistics();
            lift_limit(RLIMIT_DATA);
            require_that_moves_happen(objects);
            return squeezed.no_room_skips > 0 ? 10 : 0;
        });
        EXPECT_TRUE(child.status == 0 || child.status == 10) << more << '\n' << child.err;
        for (const std::string& line : child.messages())
            EXPECT_TRUE(contains(line, "no room") || contains(line, "no memory")) << line;
        EXPECT_LE(child.messages().size(), 4u) << "one of each kind at most\n" << child.err;
        children_with_less_moves += child.status == 10;
    }
    EXPECT_GE(children_with_less_moves, 1u);
}

// NEW fills up: what comes then is from malloc and stays where it is (R17). HOT and COLD fill up:
// what does not fit stays where it is.
TEST(shortage, every_heap_full) {
    const auto child = run_in_child([] {
        configure([](obase::options& o) {
            o.heap_reserve = mib;
            o.cold_threshold = 1;
            o.controller = obase::controller_kind::fixed;
        });
        struct object {
            std::uint64_t id, rest[127];
        };
        auto& runtime = obase::runtime::get();
        std::vector<obase::guide<object>> objects;
        objects.reserve(6000);
        std::vector<const object*> malloced;
        const auto add = [&](std::size_t count) {
            for (; count > 0; --count)
                objects.emplace_back(obase::make_managed<object>(object{objects.size(), {}}));
        };
        const auto window = [&](bool touching) {
            if (touching) {
                obase::scope s;
                for (std::size_t i = 0; i < objects.size(); ++i)
                    require(objects[i]->id == i && objects[i]->rest[126] == 0, "intact");
            }
            require(runtime.collect_now() == collect_result::done, "done");
            return runtime.statistics();
        };
        add(4000);
        auto now = window(false);
        require(now.heaps[0].live_objects >= 900, "NEW is full");
        require(now.heaps[0].live_objects + now.foreign_objects == 4000, "the others are foreign");
        for (const auto& g : objects) malloced.push_back(g.peek());
        const std::uint64_t fitting = now.heaps[0].live_objects;
        now = window(true);
        require(now.moved("new", "hot") >= fitting * 9 / 10, "what was in NEW is in HOT");
        require(now.foreign_objects == 4000 - fitting, "foreign objects stay foreign");
        for (std::size_t i = fitting; i < objects.size(); ++i)
            require(objects[i].peek() == malloced[i], "and where they are");
        const auto in_hot = now.heaps[1].live_objects;
        add(1000);
        now = window(false);
        const auto skips = now.no_room_skips;
        now = window(true);
        require(now.no_room_skips > skips + 500, "HOT is full");
        require(now.heaps[1].live_objects >= in_hot, "and keeps what it has");
        for (int i = 0; i < 3; ++i) now = window(false);
        require(now.moved("hot", "cold") + now.moved("new", "cold") >= 900,
                "untouched objects go to COLD");
        add(1000);
        for (int i = 0; i < 4; ++i) now = window(false);
        require(now.heaps[2].live_objects >= 900 && now.heaps[2].live_bytes <= mib, "COLD is full");
        window(true);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    const auto said = child.messages();
    ASSERT_EQ(said.size(), 2u)
        << "one for objects that cannot be made, one for those that cannot move";
    EXPECT_TRUE(contains(said[0], "no room in the heaps for a new object")) << child.err;
    EXPECT_TRUE(contains(said[1], "no room for objects in the heap they should move to"))
        << child.err;
}

// System calls beneath the library that fail at random.
struct dice {
    std::atomic<std::uint64_t> state{1};
    std::atomic<unsigned> odds{0}; // of 256
    std::atomic<std::uint64_t> failures{0};
    bool fail(int error) {
        if (odds == 0) return false;
        std::uint64_t x = state.fetch_add(0x9E3779B97F4A7C15U) * 0xBF58476D1CE4E5B9U;
        x ^= x >> 32;
        if ((x & 255) >= odds) return false;
        ++failures;
        errno = error;
        return true;
    }
};
dice thrown;

void use_failing_calls() {
    static obase::os::memory_calls calls = obase::os::real_memory_calls();
    calls.mmap = [](void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
        if (thrown.fail(ENOMEM)) return MAP_FAILED;
        return obase::os::real_memory_calls().mmap(at, bytes, protection, flags, fd, offset);
    };
    calls.mprotect = [](void* at, std::size_t bytes, int protection) {
        return thrown.fail(ENOMEM) ? -1
                                   : obase::os::real_memory_calls().mprotect(at, bytes, protection);
    };
    calls.madvise = [](void* at, std::size_t bytes, int advice) {
        return thrown.fail(EAGAIN) ? -1 : obase::os::real_memory_calls().madvise(at, bytes, advice);
    };
    calls.fallocate = [](int fd, int mode, off_t offset, off_t bytes) {
        return thrown.fail(ENOSPC)
                   ? -1
                   : obase::os::real_memory_calls().fallocate(fd, mode, offset, bytes);
    };
    calls.ftruncate = [](int fd, off_t bytes) {
        return thrown.fail(EIO) ? -1 : obase::os::real_memory_calls().ftruncate(fd, bytes);
    };
    obase::os::use_memory_calls(&calls);
}

constexpr int some_moved = 10; // exit status; a sanitizer's is 1 or 23

// From the first call on: engine, map and heaps are made, or not, or half.
TEST(shortage, system_calls_fail_at_random_from_the_start) {
    const std::uint64_t seeds = obase::testing::scaled(60, 1000, 20'000);
    int moved = 0, not_moved = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto child = run_in_child([&] {
            thrown.state = seed << 20;
            thrown.odds =
                seed % 3 == 0 ? 1 : static_cast<unsigned>(4 + seed % 64); // of the first many move
            use_failing_calls();
            configure();
            checked_objects<> objects(2000);
            work(objects, 2000, 4, seed);
            // Not by exit(): without a record nothing retired is freed, which a leak checker
            // reports.
            _exit(moves_of(obase::runtime::get().statistics()) > 0 ? some_moved : 0);
            return 1;
        });
        EXPECT_TRUE(child.status == 0 || child.status == some_moved) << seed << '\n' << child.err;
        int no_migration = 0;
        for (const std::string& line : child.messages())
            no_migration += contains(line, "no migration");
        EXPECT_LE(no_migration, 1) << child.err;
        moved += child.status == some_moved;
        not_moved += child.status == 0;
    }
    EXPECT_GT(moved, 0);
    EXPECT_GT(not_moved, 0);
}

// In the middle of the work, thousands of times, with threads that come and go only while all is
// well: a thread without a record ends all moves for good, which is a case of its own.
TEST(shortage, system_calls_fail_at_random_under_load) {
    for (const bool in_file : {false, true}) {
        const auto child = run_in_child([&] {
            configure(in_file ? [](obase::options& o) { o.cold_backing = "file:/tmp"; }
                              : [](obase::options&) {});
            checked_objects<> objects(30'000);
            objects.grow(1000);
            require(obase::runtime::get().collect_now() == collect_result::done, "all is well");
            std::mt19937_64 random(7);
            use_failing_calls();
            const std::uint64_t wanted =
                obase::testing::scaled_for_build(4'000, 100'000, 2'000'000);
            for (std::uint64_t round = 1; round < 50 || thrown.failures < wanted; ++round) {
                // Many windows of all kinds: nothing works, much works, all works.
                thrown.odds = round % 3 == 0 ? 0 : round % 3 == 1 ? 256 : 96;
                if (objects.size() == 30'000 || round % 16 == 0) objects.clear();
                work(objects, std::min<std::size_t>(objects.size() + 1500, 30'000), 2, random());
            }
            thrown.odds = 0;
            objects.grow(2000);
            require_that_moves_happen(objects);
            return 0;
        });
        EXPECT_EQ(child.status, 0) << child.err;
        EXPECT_LE(child.messages().size(), 3u) << child.err;
        for (const std::string& line : child.messages())
            EXPECT_TRUE(contains(line, "no room") || contains(line, "tmpfs")) << line;
    }
}

TEST(shortage, no_memory_for_a_threads_record) {
    const auto child = run_in_child([] {
        configure();
        checked_objects<> objects(2000);
        work(objects, 2000, 2);
        auto& runtime = obase::runtime::get();
        static obase::os::memory_calls calls = obase::os::real_memory_calls();
        calls.mmap = [](void*, std::size_t, int, int, int, off_t) {
            errno = ENOMEM;
            return MAP_FAILED;
        };
        obase::os::use_memory_calls(&calls);
        // Two threads at once: the second finds no record that the first gave back.
        std::atomic<int> inside{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                obase::scope s;
                require(objects[0]->id == 0, "objects can be read");
                ++inside;
                while (inside != 4) std::this_thread::yield();
                obase::retire(obase::make_bytes("never freed"));
            });
        for (auto& t : threads) t.join();
        obase::os::use_memory_calls(nullptr);
        const auto before = moves_of(runtime.statistics());
        objects.verify(1);
        require(runtime.collect_now() == collect_result::abandoned, "given up");
        require(moves_of(runtime.statistics()) == before, "nothing moves any more");
        objects.verify(1);
        return 0;
    });
    expect_message(child, "no memory for a thread's record");
}

TEST(shortage, no_memory_for_a_pin) {
    const auto child = run_in_child([] {
        configure();
        checked_objects<> objects(200);
        objects.grow(200);
        obase::runtime::get().collect_now(); // the collector has its record from here on
        static obase::os::memory_calls calls = obase::os::real_memory_calls();
        calls.mmap = [](void*, std::size_t, int, int, int, off_t) {
            errno = ENOMEM;
            return MAP_FAILED;
        };
        obase::os::use_memory_calls(&calls);
        std::vector<decltype(obase::pin(objects[0]))> pins;
        bool refused = false;
        {
            obase::scope s;
            try {
                for (std::size_t i = 0; i < objects.size(); ++i) pins.emplace_back(objects[i]);
            } catch (const std::bad_alloc&) {
                refused = true;
            }
        }
        require(refused && pins.size() >= 31, "the first chunk needs no memory, the second does");
        obase::os::use_memory_calls(nullptr);
        objects.verify(1);
        obase::runtime::get().collect_now();
        for (std::size_t i = 0; i < pins.size(); ++i)
            require(pins[i].get() == objects[i].peek(), "pinned objects stay");
        pins.clear();
        require_that_moves_happen(objects);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

TEST(shortage, no_membarrier_from_the_start) {
    const auto child = run_in_child([] {
        obase::os::membarrier_fail_for_tests(true);
        configure();
        checked_objects<> objects(5000);
        work(objects, 5000, 3);
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (int t = 0; t < 2; ++t)
            threads.emplace_back([&] {
                while (!stop)
                    for (std::size_t i = 0; i < objects.size(); i += 5) {
                        obase::scope s;
                        require(objects[i]->id == i, "objects can be read");
                    }
            });
        for (int window = 0; window < 20; ++window)
            require(obase::runtime::get().collect_now() == collect_result::done, "done");
        stop = true;
        for (auto& t : threads) t.join();
        require_that_moves_happen(objects);
        return 0;
    });
    expect_message(child, "no membarrier");
}

TEST(shortage, membarrier_stops_working_and_works_again) {
    const auto child = run_in_child([] {
        configure();
        checked_objects<> objects(2000);
        objects.grow(2000);
        auto& runtime = obase::runtime::get();
        require_that_moves_happen(objects);
        std::mt19937_64 random(1);
        objects.change(random, 1000);
        runtime.reclaim_now();
        runtime.reclaim_now();
        const auto before = runtime.statistics();
        obase::os::membarrier_fail_for_tests(true);
        objects.change(random, 1000);
        require(runtime.reclaim_now() == 0, "nothing retired is freed");
        for (int window = 0; window < 4; ++window) {
            objects.verify(2);
            require(runtime.collect_now() == collect_result::abandoned, "given up");
        }
        const auto after = runtime.statistics();
        require(moves_of(after) == moves_of(before), "nothing moves");
        require(after.pending_objects > 0, "and is still there");
        obase::os::membarrier_fail_for_tests(false);
        objects.change(random, 1000);
        require_that_moves_happen(objects);
        runtime.reclaim_now();
        runtime.collect_now();
        const auto last = runtime.statistics();
        require(last.reclaimed_objects - before.reclaimed_objects > 1000 &&
                    last.pending_objects == 0,
                "what was retired meanwhile is freed");
        return 0;
    });
    expect_message(child, "membarrier fails");
}

TEST(shortage, no_collector_thread) {
#if defined(OBASE_TEST_KEEP_MALLOC)
    GTEST_SKIP() << "pthread_create is the sanitizer's";
#endif
    const auto child = run_in_child([] {
        no_threads = true;
        configure();
        checked_objects<> objects(2000);
        work(objects, 2000, 3);
        auto& runtime = obase::runtime::get();
        require(runtime.collect_now() == collect_result::not_running, "no collector");
        // What needs no collector: retired objects are freed by those who retire.
        for (int i = 0; i < 3000; ++i) obase::retire(obase::make_bytes("gone"));
        require(runtime.reclaim_now() < 2500, "most are freed already");
        no_threads = false;
        require(runtime.start().empty(), "later there is a thread");
        require_that_moves_happen(objects);
        return 0;
    });
    expect_message(child, "no migration: no collector thread");
}

// malloc fails now and then in every thread, in the collector above all: its lists are
// std::vectors.
TEST(shortage, malloc_fails_at_random) {
#if defined(OBASE_TEST_KEEP_MALLOC)
    GTEST_SKIP() << "malloc is the sanitizer's";
#endif
    const auto child = run_in_child([] {
        memory_is_safe = true; // of this thread, but for the calls below
        configure([](obase::options& o) {
            o.mode = run_mode::hint;
            o.hint_hugepage = true;
            o.cold_threshold = 1;
        });
        auto& runtime = obase::runtime::get();
        checked_objects<> objects(4000);
        objects.grow(4000);
        std::vector<obase::guide<obase::bytes>> large;
        for (int i = 0; i < 50; ++i)
            large.emplace_back(obase::make_bytes(std::string(20'000, 'x')));
        std::mt19937_64 random(3);
        const std::uint64_t wanted = obase::testing::scaled(2'000, 50'000, 1'000'000);
        std::uint64_t abandoned = 0;
        while (malloc_failures < wanted) {
            malloc_fails_in_256 = static_cast<unsigned>(16 + random() % 241);
            objects.verify(1 + random() % 40);
            memory_is_safe = false;
            objects.change(random, 100);
            for (int i = 0; i < 20; ++i) {
                obase::owner<obase::bytes> dropped;
                try {
                    dropped = obase::make_bytes("retired");
                } catch (const std::bad_alloc&) {
                }
                obase::retire(std::move(dropped));
            }
            runtime.reclaim_now();
            memory_is_safe = true;
            abandoned += runtime.collect_now() == collect_result::abandoned;
        }
        malloc_fails_in_256 = 0;
        require(abandoned > 0, "some windows are given up");
        require_that_moves_happen(objects);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    int about_retire = 0, about_windows = 0;
    for (const std::string& line : child.messages()) {
        about_retire += contains(line, "no memory to retire");
        about_windows += contains(line, "windows are cut short");
        EXPECT_TRUE(contains(line, "no memory") || contains(line, "pageout")) << line;
    }
    EXPECT_EQ(about_retire, 1) << child.err;
    EXPECT_EQ(about_windows, 1) << child.err;
}

// What is retired where there is no memory to note it: outside of scopes what waits is freed first, and
// then there may be memory. In a scope, and where that has not helped, the object stays for good, whole:
// a reader may be using it. Either way one message says so, and what is retired later is freed.
TEST(shortage, malloc_fails_while_objects_are_retired) {
#if defined(OBASE_TEST_KEEP_MALLOC)
    GTEST_SKIP() << "malloc is the sanitizer's";
#endif
    const auto child = run_in_child([] {
        memory_is_safe = true;
        configure([](obase::options& o) { o.mode = run_mode::off; });
        auto& runtime = obase::runtime::get();
        const auto make = [] { return obase::make_managed<counted_object>(std::uint64_t{7}); };
        const auto retire_without_memory = [](obase::owner<counted_object> object,
                                              std::uint64_t fails) {
            malloc_fails_in_256 = 256;
            malloc_failures_left = fails;
            memory_is_safe = false;
            obase::retire(std::move(object));
            memory_is_safe = true;
            malloc_fails_in_256 = 0;
            malloc_failures_left = UINT64_MAX;
        };
        obase::retire(make());
        retire_without_memory(make(), 1);
        require(counted_object::alive == 1, "what waited is freed first");
        runtime.reclaim_now();
        require(counted_object::alive == 0, "and then there is room for the other");

        // More than a share destroys, which no scope holds any more.
        waiting_thread reader([](const auto& wait) {
            const obase::scope s;
            wait();
        });
        for (int i = 0; i < 1100; ++i) obase::retire(make());
        reader.end();
        for (int i = 0; i < 32; ++i) obase::retire(make());
        auto lost = make();
        const counted_object* seen = lost.get();
        const int before = counted_object::alive;
        require(before > 512, "the rest of them waits for the next share");
        {
            const obase::scope reading;
            retire_without_memory(std::move(lost), UINT64_MAX);
            require(counted_object::alive == before, "no destructor runs in a scope");
            require(seen->number == 7, "it is there for its readers");
        }
        runtime.reclaim_now();
        require(counted_object::alive == 1, "it alone stays");
        obase::retire(make());
        lost = make();
        const counted_object* after = lost.get();
        retire_without_memory(std::move(lost), UINT64_MAX);
        require(after->number == 7 && seen->number == 7, "both stay");
        require(counted_object::alive == 2, "and what waited was freed for them");
        for (int i = 0; i < 10; ++i) obase::retire(make());
        runtime.reclaim_now();
        require(counted_object::alive == 2, "what is retired later is freed");
        require(runtime.drain().why == obase::drain_end::done, "what stays is not waited for");
        return 0;
    });
    expect_message(child, "no memory to retire an object");
}

// The runtime itself comes to life while malloc fails.
TEST(shortage, malloc_fails_at_the_start) {
#if defined(OBASE_TEST_KEEP_MALLOC)
    GTEST_SKIP() << "malloc is the sanitizer's";
#endif
    const std::uint64_t seeds = obase::testing::scaled(100, 2'000, 20'000);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto child = run_in_child([&] {
            checked_objects<> objects(500, 50);
            malloc_dice = static_cast<std::uint32_t>(seed * 2654435761U);
            malloc_fails_in_256 = seed % 3 == 0 ? 256 : static_cast<unsigned>(8 + seed % 128);
            objects.grow(500);
            obase::runtime::get().set_mode(run_mode::hint);
            obase::runtime::get().collect_now();
            malloc_fails_in_256 = 0;
            work(objects, 500, 3, seed);
            return 0;
        });
        EXPECT_EQ(child.status, 0) << seed << '\n' << child.err;
        int no_migration = 0;
        for (const std::string& line : child.messages())
            no_migration += contains(line, "no migration");
        // The heaps at first use, the thread again when set_mode() tries again.
        EXPECT_LE(no_migration, 2) << child.err;
    }
}

// COLD in a file.

class cold_directory : public ::testing::Test {
  protected:
    void SetUp() override {
        path_ = obase::testing::make_directory("shortage");
        setenv("OBASE_COLD_BACKING", ("file:" + path_).c_str(), 1);
    }
    void TearDown() override {
        unsetenv("OBASE_COLD_BACKING");
        if (mounted_) umount2(path_.c_str(), MNT_DETACH);
        std::filesystem::remove_all(path_);
    }
    // False where mounting is not permitted.
    bool mount_tmpfs(const char* options) {
        mounted_ = mount("none", path_.c_str(), "tmpfs", 0, options) == 0;
        return mounted_;
    }
    // The usual work, with objects that become cold at once.
    static int cold_work() {
        configure([](obase::options& o) { o.cold_threshold = 1; });
        checked_objects<> objects(3000);
        work(objects, 3000, 2);
        for (int window = 0; window < 4; ++window) obase::runtime::get().collect_now();
        objects.verify(1);
        require_that_moves_happen(objects);
        return 0;
    }

    std::string path_;
    bool mounted_ = false;
};

TEST_F(cold_directory, does_not_exist) {
    rmdir(path_.c_str());
    const auto child = run_in_child(cold_work);
    expect_message(child, "COLD stays in anonymous memory");
    EXPECT_TRUE(contains(child.err, path_.c_str()) && contains(child.err, "No such file"))
        << child.err;
}

TEST_F(cold_directory, may_not_be_written) {
    chmod(path_.c_str(), 0555);
    const auto child = run_in_child([] {
        if (getuid() == 0) require(setuid(65534) == 0, "not root any more, who may write anywhere");
        return cold_work();
    });
    expect_message(child, "COLD stays in anonymous memory");
    EXPECT_TRUE(contains(child.err, "Permission denied")) << child.err;
}

TEST_F(cold_directory, on_a_full_disk) {
    if (!mount_tmpfs("size=64k")) GTEST_SKIP() << "may not mount here (needs root)";
    std::ofstream(path_ + "/filler") << std::string(64 << 10, 'x') << std::flush;
    const auto child = run_in_child(cold_work);
    expect_message(child, "COLD stays in anonymous memory");
    EXPECT_TRUE(contains(child.err, "No space left")) << child.err;
}

// A SIGBUS would end the child: a page of a mapped file that finds no room.
TEST_F(cold_directory, disk_fills_up_while_objects_move_there) {
    if (!mount_tmpfs("size=4m")) GTEST_SKIP() << "may not mount here (needs root)";
    const auto child = run_in_child([] {
        configure([](obase::options& o) { o.cold_threshold = 1; });
        checked_objects<> objects(40'000);
        objects.grow(40'000);
        auto& runtime = obase::runtime::get();
        for (int window = 0; window < 4; ++window) runtime.collect_now();
        const auto full = runtime.statistics();
        require(full.no_room_skips > 1000, "many find no room");
        require(full.heaps[2].live_bytes > 3 * mib, "the disk is full of objects");
        require(full.heaps[2].extent_bytes <= 4 * mib, "and of nothing else");
        std::mt19937_64 random(1);
        for (int round = 0; round < 4; ++round) {
            objects.change(random, 4000); // writes into objects on the full disk
            runtime.collect_now();
            objects.verify(1);
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    const auto said = child.messages();
    ASSERT_EQ(said.size(), 2u) << child.err;
    EXPECT_TRUE(contains(said[0], "tmpfs") || contains(said[0], "MiB free")) << child.err;
    EXPECT_TRUE(contains(said[1], "no room for objects")) << child.err;
}

TEST_F(cold_directory, disk_that_fails_to_write_ends_hints_and_nothing_else) {
    const auto child = run_in_child([] {
        configure([](obase::options& o) {
            o.cold_threshold = 1;
            o.mode = run_mode::hint;
            o.memory = "none";
        });
        static obase::os::memory_calls calls = obase::os::real_memory_calls();
        calls.sync_file_range = [](int, off_t, off_t, unsigned) {
            errno = EIO;
            return -1;
        };
        obase::os::use_memory_calls(&calls);
        auto& runtime = obase::runtime::get();
        checked_objects<> objects(5000);
        objects.grow(5000);
        for (int window = 0; window < 8; ++window)
            require(runtime.collect_now() == collect_result::done, "done");
        const auto failed = runtime.statistics();
        require(failed.hints_stopped == 1 && failed.hint_failures == 1,
                "hints end at the first error");
        require(failed.moved("new", "cold") > 0, "objects are in the file");
        obase::os::use_memory_calls(nullptr);
        require_that_moves_happen(objects);
        for (int window = 0; window < 4; ++window) runtime.collect_now();
        const auto later = runtime.statistics();
        require(later.hint_cold_bytes == failed.hint_cold_bytes && later.hint_pageout_bytes == 0 &&
                    later.hint_written_bytes == 0,
                "no hint is given any more");
        objects.verify(1);
        return 0;
    });
    expect_message(child, "write-back of the COLD file failed");
}

// A guide may exist before the first object does, and end after main().
TEST(beginnings, guides_made_before_the_first_object_are_slots) {
    const auto child = run_in_child([] {
        static obase::guide<obase::bytes> in_static_storage;
        std::vector<obase::guide<obase::bytes>> table(100);
        configure();
        for (auto& g : table) g = obase::make_bytes("text");
        in_static_storage = obase::make_bytes("text");
        auto& runtime = obase::runtime::get();
        require(runtime.collect_now() == collect_result::done, "done");
        require(runtime.statistics().scanned_guides >= 101, "all are scanned");
        {
            obase::scope s;
            for (auto& g : table) require(g->view() == "text", "text");
        }
        require(runtime.collect_now() == collect_result::done, "done");
        require(runtime.statistics().moved("new", "hot") == 100, "and their objects move");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
