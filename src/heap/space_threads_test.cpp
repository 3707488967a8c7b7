// SPDX-License-Identifier: MIT
//
// The space under threads: remote frees, the collector's frees, thread churn, thread exit, fork.
#include "heap/space.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <obase/word/atomic.hpp>

#include "heap/sanitized.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "testing/tier.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1, cold_class = 2;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space(const space_options& options) {
    std::string why;
    owned_space made(space::create(options, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

constexpr std::size_t mib = 1U << 20;
using slot = word::native_atomic<std::uint64_t*>;

void fill(std::uint64_t* object, std::size_t size) {
    for (std::size_t i = 0; i < size / 8; ++i)
        object[i] = reinterpret_cast<std::uintptr_t>(object) + size;
}
// The size is told by the object's own first word.
bool intact(const std::uint64_t* object) {
    const std::size_t size = object[0] - reinterpret_cast<std::uintptr_t>(object);
    for (std::size_t i = 0; i < size / 8; ++i) {
        if (object[i] != reinterpret_cast<std::uintptr_t>(object) + size) return false;
    }
    return size >= 8 && size <= 100'000;
}

void expect_empty(const space& s) {
    for (unsigned cls = 0; cls <= s.large_class(); ++cls) {
        EXPECT_EQ(s.counters(cls).live_objects, 0U) << "class " << cls;
        EXPECT_EQ(s.counters(cls).live_bytes, 0U) << "class " << cls;
    }
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
}

// Threads resize objects of LARGE of their own while others do, and while memory goes back: all want what lies behind the
// last one.
TEST(space_threads, large_objects_are_resized_by_their_owners) {
    const owned_space owner = make_space({.range_bytes = 512 * mib});
    space& s = *owner;
    word::native_atomic<std::uint64_t> damaged, grown;
    word::native_atomic<unsigned> running;
    constexpr unsigned workers = 4;
    running.store_relaxed(workers);
    const std::uint64_t rounds = testing::scaled(3'000, 100'000, 1'000'000);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < workers; ++t)
        threads.emplace_back([&, t] {
            std::minstd_rand random(t + 1);
            std::vector<std::pair<char*, std::size_t>> own;
            for (std::uint64_t i = 0; i < rounds; ++i) {
                const std::size_t size = max_small_size + 1 + random() % 300'000;
                if (own.size() < 4) {
                    auto* const made = static_cast<char*>(s.allocate(size, {}));
                    if (made == nullptr) continue;
                    made[0] = made[size - 1] = static_cast<char>(t);
                    own.emplace_back(made, size);
                    continue;
                }
                const std::size_t which = random() % own.size();
                auto& [object, before] = own[which];
                if (object[0] != static_cast<char>(t) || object[before - 1] != static_cast<char>(t))
                    damaged.fetch_add_relaxed(1);
                if (s.resize_large(object, size)) {
                    if (size > before) grown.fetch_add_relaxed(1);
                    object[size - 1] = static_cast<char>(t);
                    before = size;
                } else {
                    s.free(object);
                    own.erase(own.begin() + static_cast<std::ptrdiff_t>(which));
                }
            }
            for (const auto& [object, size] : own) s.free(object);
            running.fetch_sub_relaxed(1);
        });
    while (running.load_relaxed() != 0) {
        s.decommit_free_memory();
        std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(damaged.load_relaxed(), 0U);
    EXPECT_GT(grown.load_relaxed(), 0U);
    expect_empty(s);
}

// Threads put objects into shared slots and free what they find there, while the collector thread
// gives memory back, reads counters and asks for information about objects that may be freed at any
// moment. No object is ever damaged, handed out twice (both writers would damage it) or lost.
TEST(space_threads, objects_freed_by_others_come_back_whole) {
    const owned_space owner = make_space({.range_bytes = 512 * mib});
    space& s = *owner;
    std::vector<slot> slots(512);
    word::native_atomic<std::uint64_t> damaged;
    word::native_atomic<unsigned> running;
    const std::uint64_t rounds = testing::scaled(60'000, 2'000'000, 20'000'000);
    std::vector<std::thread> threads;
    running.store_relaxed(3);
    for (unsigned number = 0; number < 3; ++number) {
        threads.emplace_back([&, number] {
            std::minstd_rand random(number + 1);
            for (std::uint64_t i = 0; i < rounds; ++i) {
                const unsigned kind = random() % 64;
                const std::size_t size = kind == 0  ? 20'000 + random() % 50'000 / 8 * 8
                                         : kind < 8 ? 8 + random() % 8000 / 8 * 8
                                                    : 8 + random() % 200 / 8 * 8;
                const attributes attr{static_cast<std::uint8_t>(3 + (random() % 8 == 0 ? 3 : 0)),
                                      false};
                auto* const object = static_cast<std::uint64_t*>(s.allocate(size, attr));
                ASSERT_NE(object, nullptr);
                fill(object, size);
                std::uint64_t* const old = slots[random() % slots.size()].exchange_acq_rel(object);
                if (old == nullptr) continue;
                if (!intact(old)) damaged.fetch_add_relaxed(1);
                s.free(old);
            }
            running.fetch_sub_acq_rel(1);
        });
    }
    for (std::size_t i = 0; running.load_acquire() != 0; ++i) {
        if (const std::uint64_t* const object = slots[i % slots.size()].load_acquire()) {
            const auto info = s.info(object);
            if (s.class_of(object) == new_class) {
                ASSERT_LE(info.size, max_small_size);
                const auto offset = reinterpret_cast<std::uintptr_t>(object) % run_bytes;
                ASSERT_LE(offset + info.size, run_bytes);
            }
        }
        if (i % 1000 == 0) {
            s.decommit_free_memory();
            s.counters(new_class);
        }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(damaged.load_relaxed(), 0U);
    for (slot& at : slots) {
        if (std::uint64_t* const object = at.load_acquire()) s.free(object);
    }
    s.decommit_free_memory();
    expect_empty(s);
}

// Objects in a dense class are freed by threads while the collector goes on filling and undoing in
// the same run: every free takes exactly its own object's bytes off.
TEST(space_threads, dense_objects_freed_while_the_run_is_filled) {
    const owned_space owner = make_space({.range_bytes = 256 * mib});
    space& s = *owner;
    std::vector<slot> slots(64);
    word::native_atomic<bool> done;
    word::native_atomic<std::uint64_t> damaged;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 2; ++number) {
        threads.emplace_back([&, number] {
            std::minstd_rand random(number + 1);
            while (!done.load_acquire()) {
                std::uint64_t* const object =
                    slots[random() % slots.size()].exchange_acq_rel(nullptr);
                if (object == nullptr) continue;
                if (!intact(object) ||
                    s.usable_size(object) != object[0] - reinterpret_cast<std::uintptr_t>(object)) {
                    damaged.fetch_add_relaxed(1);
                }
                s.free(object);
            }
        });
    }
    std::minstd_rand random(77);
    const std::uint64_t rounds = testing::scaled(100'000, 3'000'000, 30'000'000);
    for (std::uint64_t i = 0; i < rounds; ++i) {
        const std::size_t size = 8 + random() % 400 / 8 * 8;
        auto* const object = static_cast<std::uint64_t*>(s.allocate_dense(hot_class, size, {}));
        ASSERT_NE(object, nullptr);
        if (random() % 4 == 0) {
            s.undo_allocate_dense(object);
            continue;
        }
        fill(object, size);
        std::uint64_t* const old = slots[random() % slots.size()].exchange_acq_rel(object);
        if (old != nullptr) s.free(old);
        if (i % 1000 == 0) s.decommit_free_memory();
    }
    done.store_release(true);
    for (std::thread& thread : threads) thread.join();
    for (slot& at : slots) {
        if (std::uint64_t* const object = at.load_acquire()) s.free(object);
    }
    EXPECT_EQ(damaged.load_relaxed(), 0U);
    s.decommit_free_memory();
    expect_empty(s);
}

// A thread that only allocates, and a collector that only frees: runs become free without their
// owner.
TEST(space_threads, runs_whose_objects_moved_away_are_reused_without_their_owner) {
    const owned_space owner = make_space({.range_bytes = 64 * mib});
    space& s = *owner;
    std::vector<void*> objects;
    word::native_atomic<int> phase;
    std::thread allocating([&] {
        for (int i = 0; i < 40'000; ++i) objects.push_back(s.allocate(1024, {}));
        phase.store_release(1);
        while (phase.load_acquire() != 2) std::this_thread::yield();
    });
    while (phase.load_acquire() != 1) std::this_thread::yield();
    for (void* object : objects) {
        ASSERT_NE(object, nullptr);
        s.free(object);
    }
    EXPECT_GE(s.decommit_free_memory(), 36 * mib) << "all but what the idle thread holds";
    EXPECT_LE(s.counters(new_class).runs, 40U);
    // A stranger with other sizes gets that memory.
    for (int i = 0; i < 3'000; ++i) ASSERT_NE(s.allocate(16'000, {}), nullptr);
    phase.store_release(2);
    allocating.join();
    EXPECT_TRUE(s.validate(nullptr));
}

// The same with a thread that freed here and there before, as one that loads a dictionary does. It keeps
// runs with room, and a few blocks that it freed last, each of a run of its own: of these only the pages
// beneath stay. When it goes on it finds every other place free.
TEST(space_threads, pages_that_an_idle_thread_keeps_are_given_back) {
    for (const std::size_t size : {64U, 304U, 1032U, 5000U}) {
        const owned_space owner = make_space({.range_bytes = 64 * mib});
        space& s = *owner;
        const std::size_t block = class_block_size(size_class(size));
        const std::size_t in_run = run_bytes / block;
        constexpr std::size_t runs = 100;
        std::vector<std::uint64_t*> objects;
        word::native_atomic<int> phase;
        const auto wait_for = [&](int wanted) {
            while (phase.load_acquire() != wanted) std::this_thread::yield();
        };
        const auto allocate = [&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                objects.push_back(static_cast<std::uint64_t*>(s.allocate(size, {})));
                fill(objects.back(), size);
            }
        };
        std::thread idle([&] {
            allocate(runs * in_run);
            // Of some runs half the blocks, then one of each.
            for (std::size_t run = 0; run < 20; ++run)
                for (std::size_t i = 0; i < in_run / 2; ++i)
                    s.free(std::exchange(objects[run * in_run + i], nullptr));
            for (std::size_t run = 30; run < runs; ++run)
                s.free(std::exchange(objects[run * in_run], nullptr));
            phase.store_release(1);
            wait_for(2);
            objects.clear();
            allocate(runs * in_run);
            phase.store_release(3);
            wait_for(4);
        });
        wait_for(1);
        for (std::uint64_t* object : objects)
            if (object != nullptr) s.free(object);
        s.decommit_free_memory();
        s.decommit_free_memory(); // what is still as it was is idle
        constexpr std::size_t recent = 64;
        const std::size_t kept = recent * std::max(block + os::page_size, os::page_size * 2);
        EXPECT_LE(s.counters(new_class).extent_bytes, kept + 2 * run_bytes) << size;
        EXPECT_EQ(s.counters(new_class).live_objects, 0U) << size;
        if (!sanitized) {
            EXPECT_LE(os::resident_in(s.range_begin(new_class), runs * run_bytes),
                      kept + 2 * run_bytes)
                << size;
        }
        std::string what;
        EXPECT_TRUE(s.validate(&what)) << what;

        phase.store_release(2);
        wait_for(3);
        EXPECT_TRUE(s.validate(&what)) << what;
        EXPECT_EQ(s.counters(new_class).live_objects, runs * in_run) << size;
        // Away or not, every place was found: few runs more than it takes.
        EXPECT_LE(s.counters(new_class).runs, runs + 2) << size;
        for (const std::uint64_t* object : objects) ASSERT_TRUE(intact(object)) << size;
        // Part of the objects, so that there is something to look at again.
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (i % (4 * in_run) != 0) s.free(std::exchange(objects[i], nullptr));
        for (int round = 0; round < 3; ++round) s.decommit_free_memory();
        EXPECT_TRUE(s.validate(&what)) << what;
        for (std::uint64_t* object : objects) {
            if (object == nullptr) continue;
            ASSERT_TRUE(intact(object)) << size;
            s.free(object);
        }
        phase.store_release(4);
        idle.join();
        s.decommit_free_memory();
        expect_empty(s);
        EXPECT_EQ(s.counters(new_class).extent_bytes, 0U) << size;
    }
}

// A thread that ends may have used up what is listed of such a run, and nothing of what is away.
TEST(space_threads, pages_that_are_away_outlast_a_thread) {
    const owned_space owner = make_space({.range_bytes = 64 * mib});
    space& s = *owner;
    constexpr std::size_t size = 64;
    constexpr std::size_t in_run = run_bytes / size;
    std::vector<void*> objects;
    for (std::size_t i = 0; i < 3 * in_run; ++i) objects.push_back(s.allocate(size, {}));
    void* const first = *std::min_element(objects.begin(), objects.end());
    for (void* object : objects)
        if (object != first) s.free(object);
    s.thread_exit();
    std::size_t returned = s.decommit_free_memory();
    returned += s.decommit_free_memory();
    EXPECT_EQ(returned, 3 * run_bytes - os::page_size);
    EXPECT_EQ(s.counters(new_class).extent_bytes, os::page_size);
    objects.assign({first});
    std::thread([&] {
        for (std::size_t i = 1; i < os::page_size / size; ++i)
            objects.push_back(s.allocate(size, {}));
    }).join();
    EXPECT_EQ(s.counters(new_class).extent_bytes, os::page_size);
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
    std::thread([&] {
        for (std::size_t i = objects.size(); i < in_run; ++i)
            objects.push_back(s.allocate(size, {}));
    }).join();
    EXPECT_EQ(s.counters(new_class).extent_bytes, run_bytes);
    EXPECT_EQ(s.counters(new_class).live_objects, in_run);
    std::sort(objects.begin(), objects.end());
    EXPECT_EQ(std::adjacent_find(objects.begin(), objects.end()), objects.end());
    // And again: what was given back already is not counted when the rest of the run goes.
    for (void* object : objects)
        if (object != first) s.free(object);
    s.decommit_free_memory();
    EXPECT_EQ(s.decommit_free_memory(), run_bytes - os::page_size);
    s.free(first);
    EXPECT_EQ(s.decommit_free_memory(), os::page_size);
    expect_empty(s);
}

// In runs of 5 KiB blocks the last page lies under no block: it is no room.
TEST(space_threads, a_page_under_no_block_is_no_room) {
    for (const std::size_t size : {5000U, 7000U, 12288U, 15000U}) {
        const owned_space owner = make_space({.range_bytes = 64 * mib});
        space& s = *owner;
        const std::size_t in_run = run_bytes / class_block_size(size_class(size));
        std::vector<void*> objects;
        const auto allocate = [&](std::size_t count) {
            std::thread([&] {
                for (; count > 0; --count) objects.push_back(s.allocate(size, {}));
            }).join();
        };
        allocate(in_run);
        for (; objects.size() > 1; objects.pop_back()) s.free(objects.back());
        for (int round = 0; round < 3; ++round) s.decommit_free_memory();
        allocate(in_run - 1);
        std::string what;
        EXPECT_TRUE(s.validate(&what)) << what;
        allocate(1);
        for (void* object : objects) {
            ASSERT_NE(object, nullptr);
            s.free(object);
        }
        s.decommit_free_memory();
        expect_empty(s);
    }
}

// Threads fill and empty what they share, and rest in between, while the collector gives back what it
// finds idle: also of runs that are in use again the next moment.
TEST(space_threads, pages_of_idle_runs_come_and_go) {
    const owned_space owner = make_space({.range_bytes = 256 * mib});
    space& s = *owner;
    std::vector<slot> slots(8'000);
    word::native_atomic<std::uint64_t> damaged;
    word::native_atomic<unsigned> running;
    const std::uint64_t rounds = testing::scaled(8, 1'000, 10'000);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 3; ++number) {
        running.fetch_add_acq_rel(1);
        threads.emplace_back([&, number] {
            std::minstd_rand random(number + 1);
            const auto replace = [&](std::uint64_t* object) {
                std::uint64_t* const old = slots[random() % slots.size()].exchange_acq_rel(object);
                if (old == nullptr) return;
                if (!intact(old)) damaged.fetch_add_relaxed(1);
                s.free(old);
            };
            for (std::uint64_t round = 0; round < rounds; ++round) {
                const std::uint64_t made = 500 + random() % 4'000;
                for (std::uint64_t i = 0; i < made; ++i) {
                    const std::size_t size = 40 + random() % 4 * 300;
                    auto* const object = static_cast<std::uint64_t*>(s.allocate(size, {}));
                    fill(object, size);
                    replace(object);
                }
                for (std::uint64_t i = 0; i < slots.size(); ++i) replace(nullptr);
                for (std::uint64_t i = random() % 200; i > 0; --i) std::this_thread::yield();
            }
            running.fetch_add_acq_rel(~0U);
        });
    }
    std::uint64_t partial = 0;
    while (running.load_acquire() != 0) {
        s.decommit_free_memory();
        partial += s.counters(new_class).extent_bytes % run_bytes != 0 ? 1U : 0U;
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(partial, 0U) << "nothing was idle for long enough";
    EXPECT_EQ(damaged.load_relaxed(), 0U);
    for (slot& at : slots) {
        std::uint64_t* const object = at.load_acquire();
        if (object == nullptr) continue;
        EXPECT_TRUE(intact(object));
        s.free(object);
    }
    s.decommit_free_memory();
    expect_empty(s);
}

// Thousands of threads, few at a time: nothing stays behind, and the number of runs does not grow
// with them.
TEST(space_threads, nothing_leaks_with_a_thread) {
    const owned_space owner = make_space({.range_bytes = 256 * mib});
    space& s = *owner;
    std::vector<slot> slots(256);
    const std::uint64_t waves = testing::scaled(500, 5'000, 50'000);
    std::uint64_t runs_early = 0;
    std::uint64_t metadata_early = 0;
    for (std::uint64_t wave = 0; wave < waves; ++wave) {
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 4; ++number) {
            threads.emplace_back([&, number, wave] {
                std::minstd_rand random(static_cast<unsigned>(wave * 4 + number + 1));
                for (int i = 0; i < 100; ++i) {
                    const std::size_t size = 8 + random() % 500 / 8 * 8;
                    auto* const object = static_cast<std::uint64_t*>(s.allocate(size, {}));
                    ASSERT_NE(object, nullptr);
                    fill(object, size);
                    std::uint64_t* const old =
                        slots[random() % slots.size()].exchange_acq_rel(object);
                    if (old != nullptr) {
                        ASSERT_TRUE(intact(old));
                        s.free(old);
                    }
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        if (wave <= waves / 5) { // the most: threads meet as they please
            runs_early = std::max(runs_early, s.counters(new_class).runs);
            metadata_early = s.metadata_bytes();
        }
    }
    EXPECT_LE(s.counters(new_class).runs, runs_early * 2 + 8);
    EXPECT_LE(s.metadata_bytes(), metadata_early + mib);
    for (slot& at : slots) {
        if (std::uint64_t* const object = at.load_acquire()) s.free(object);
    }
    s.thread_exit();
    s.decommit_free_memory();
    expect_empty(s);
    EXPECT_EQ(s.counters(new_class).runs, 0U);
}

// Destructors of thread-local objects run while a thread exits, and pthread keys' destructors after
// that, again and again: allocating and freeing in any of them works, and still nothing stays
// behind.
pthread_key_t late_key;
space* late_space = nullptr;
word::native_atomic<int> late_calls;

// ThreadSanitizer takes its own state of the thread away in the last round.
constexpr int late_rounds = PTHREAD_DESTRUCTOR_ITERATIONS - (sanitized ? 1 : 0);

void late_destructor(void* value) {
    late_calls.fetch_add_relaxed(1);
    late_space->free(value);
    void* const again = late_space->allocate(48, {});
    ASSERT_NE(again, nullptr);
    // Ask to be called again, as long as the C library grants it; in the last round no thread
    // frees.
    static thread_local int rounds = 0;
    if (++rounds < late_rounds) {
        pthread_setspecific(late_key, again);
    } else {
        late_space->free(again);
    }
}

struct at_exit {
    void* held = nullptr;
    ~at_exit() {
        late_space->free(held);
        late_space->free(late_space->allocate(100, {}));
    }
};

TEST(space_threads, destructors_may_allocate_after_the_thread_gave_its_runs_back) {
    const owned_space owner = make_space({.range_bytes = 64 * mib});
    late_space = owner.get();
    ASSERT_EQ(pthread_key_create(&late_key, late_destructor), 0);
    for (int i = 0; i < 50; ++i) {
        std::thread([&] {
            static thread_local at_exit local;
            local.held = late_space->allocate(64, {});
            pthread_setspecific(late_key, late_space->allocate(48, {}));
        }).join();
    }
    EXPECT_EQ(late_calls.load_relaxed(), 50 * late_rounds);
    pthread_key_delete(late_key);
    expect_empty(*owner);
}

// Runs `check` in a forked child; true when it returned true.
template <class Check>
bool true_in_child(space& s, Check&& check) {
    s.fork_prepare();
    const pid_t child = fork();
    if (child == 0) {
        s.fork_child();
        _exit(check() ? 0 : 1);
    }
    s.fork_parent();
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// fork while runs are looked at: the child finds none half done.
TEST(space_threads, a_fork_waits_while_pages_are_given_back) {
    const owned_space owner = make_space({.range_bytes = 128 * mib});
    space& s = *owner;
    word::native_atomic<bool> done;
    std::thread collector([&] {
        constexpr std::size_t in_run = run_bytes / 8; // the most, so that it takes its time
        std::vector<void*> objects(30 * in_run);
        while (!done.load_acquire()) {
            for (void*& object : objects) object = s.allocate(8, {});
            for (std::size_t i = 0; i < objects.size(); ++i)
                if (i % in_run != 0) s.free(objects[i]);
            for (int round = 0; round < 3; ++round) s.decommit_free_memory();
            for (std::size_t i = 0; i < objects.size(); i += in_run) s.free(objects[i]);
        }
    });
    const std::uint64_t rounds = testing::scaled(40, 1'000, 10'000);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const bool whole = true_in_child(s, [&] {
            std::string what;
            if (s.validate(&what)) return true;
            std::fprintf(stderr, "child: %s\n", what.c_str());
            return false;
        });
        EXPECT_TRUE(whole) << round;
        if (!whole) break;
    }
    done.store_release(true);
    collector.join();
    s.decommit_free_memory();
    expect_empty(s);
}

// As the runtime's collector: a fork waits for it, except in system calls.
class waits_for_forks final : public pacer {
  public:
    explicit waits_for_forks(std::mutex& forks) : forks_(forks) {}
    void call_begins() noexcept override { forks_.unlock(); }
    void call_ends() noexcept override { forks_.lock(); }

  private:
    std::mutex& forks_;
};

// fork at any moment of other threads' allocations: the child has the forking thread's objects as
// they were, its own copy of them, a heap whose lists are whole, and can use and free everything.
TEST(space_threads, a_forked_child_has_a_working_heap) {
    for (const char* const directory : {"", "/tmp"}) {
        const owned_space owner =
            make_space({.range_bytes = 128 * mib, .cold_directory = directory});
        space& s = *owner;
        word::native_atomic<bool> done;
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 2; ++number) {
            threads.emplace_back([&, number] {
                std::minstd_rand random(number + 1);
                std::vector<void*> held(64);
                while (!done.load_acquire()) {
                    void*& at = held[random() % held.size()];
                    s.free(at);
                    at = s.allocate(8 + random() % 2000, {});
                }
                for (void* object : held) s.free(object);
            });
        }
        std::mutex forks;
        threads.emplace_back([&] {
            waits_for_forks ask(forks);
            while (!done.load_acquire()) {
                {
                    const std::lock_guard at_work(forks);
                    s.decommit_free_memory(ask);
                }
                std::this_thread::yield();
            }
        });
        std::vector<std::uint64_t*> mine;
        for (int i = 0; i < 300; ++i) {
            // Dense heaps are one thread's, and it gives memory back.
            const std::lock_guard at_work(forks);
            const std::size_t size = 64 + static_cast<std::size_t>(i) * 8;
            for (void* const object :
                 {s.allocate(size, {}), s.allocate_dense(hot_class, size, {}),
                  s.allocate_dense(cold_class, size, {}), s.allocate(40'000, {})}) {
                ASSERT_NE(object, nullptr);
                fill(static_cast<std::uint64_t*>(object), size);
                mine.push_back(static_cast<std::uint64_t*>(object));
            }
        }
        const std::uint64_t rounds = testing::scaled(20, 500, 5'000);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            std::unique_lock at_fork(forks);
            const bool ok = true_in_child(s, [&] {
                std::string what;
                if (!s.validate(&what)) {
                    std::fprintf(stderr, "child: %s\n", what.c_str());
                    return false;
                }
                for (std::uint64_t* object : mine) {
                    if (!intact(object)) return false;
                    const std::size_t size = object[0] - reinterpret_cast<std::uintptr_t>(object);
                    std::memset(object, 0, size); // must not reach the parent
                    s.free(object);
                }
                for (int i = 0; i < 2000; ++i) {
                    if (s.allocate(8 + static_cast<std::size_t>(i), {}) == nullptr) return false;
                    if (s.allocate_dense(cold_class, 1000, {}) == nullptr) return false;
                }
                s.decommit_free_memory();
                return s.validate(nullptr);
            });
            at_fork.unlock();
            ASSERT_TRUE(ok);
            for (const std::uint64_t* object : mine) ASSERT_TRUE(intact(object));
        }
        done.store_release(true);
        for (std::thread& thread : threads) thread.join();
        for (std::uint64_t* object : mine) s.free(object);
        expect_empty(s);
    }
}

} // namespace
} // namespace obase::heap
