// SPDX-License-Identifier: MIT
//
// Memory goes back to the system while threads go on. Property: inside a system call of one thread
// (the fakes here run the test's code in it) any other thread allocates, frees, makes its first
// allocation and forks, and nothing waits for the call's end; what is being returned is handed out to
// none of them; one call covers 512 KiB at most. A lock held across a call shows as a test that never
// ends.
#include "heap/space.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "heap/address_sanitizer.hpp"
#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1;

constexpr std::size_t mib = 1U << 20;
constexpr std::size_t piece = 512U << 10;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space() {
    std::string why;
    owned_space made(space::create({.range_bytes = 256 * mib}, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

// Runs inside the calls; not within itself, nor in the threads it makes.
std::function<void(char*, std::size_t)> inside_madvise; // MADV_DONTNEED only
std::function<void()> inside_mprotect;
bool madvise_fails = false;
std::size_t longest = 0;
std::size_t calls = 0;
bool within = false;

template <class Do>
void once_inside(Do&& act) {
    if (within) return;
    within = true;
    act();
    within = false;
}

int fake_madvise(void* at, std::size_t bytes, int what) {
    if (what == MADV_DONTNEED && !within) {
        longest = std::max(longest, bytes);
        ++calls;
        if (inside_madvise) once_inside([&] { inside_madvise(static_cast<char*>(at), bytes); });
        if (madvise_fails) {
            errno = EINVAL;
            return -1;
        }
    }
    return os::real_memory_calls().madvise(at, bytes, what);
}

int fake_mprotect(void* at, std::size_t bytes, int protection) {
    if (inside_mprotect && !within) once_inside(inside_mprotect);
    return os::real_memory_calls().mprotect(at, bytes, protection);
}

class returning : public ::testing::Test {
  protected:
    void SetUp() override {
        calls_ = os::real_memory_calls();
        calls_.madvise = fake_madvise;
        calls_.mprotect = fake_mprotect;
        os::use_memory_calls(&calls_);
        longest = calls = 0;
        madvise_fails = within = false;
    }
    void TearDown() override {
        os::use_memory_calls(nullptr);
        inside_madvise = nullptr;
        inside_mprotect = nullptr;
    }

  private:
    os::memory_calls calls_{};
};

// Dirty memory of every kind: LARGE, runs of NEW, runs of HOT, and idle runs of NEW with a block each.
void make_dirty(space& s) {
    std::vector<void*> objects;
    for (int i = 0; i < 64; ++i) objects.push_back(s.allocate(100'000, {}));
    for (int i = 0; i < 4'000; ++i) objects.push_back(s.allocate(1'000, {}));
    for (int i = 0; i < 4'000; ++i) objects.push_back(s.allocate_dense(hot_class, 1'000, {}));
    for (void* object : objects) s.free(object);
    std::thread([&] { // its runs have no owner when it has ended
        std::vector<void*> idle;
        for (int i = 0; i < 4'000; ++i) idle.push_back(s.allocate(500, {}));
        for (std::size_t i = 0; i < idle.size(); ++i)
            if (i % 128 != 0) s.free(idle[i]);
    })
        .join();
}

void expect_valid(const space& s) {
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
}

// All but the run of HOT that is open.
void expect_returned(const space& s) {
    EXPECT_EQ(s.counters(s.large_class()).extent_bytes, 0u);
    EXPECT_LE(s.counters(hot_class).extent_bytes, run_bytes);
}

// The operations of a thread, at any time.
void live_on(space& s) {
    std::thread([&] {
        void* const first = s.allocate(64, {}); // the first of its thread
        void* const large = s.allocate(100'000, {});
        EXPECT_NE(first, nullptr);
        EXPECT_NE(large, nullptr);
        s.free(large);
        s.free(first);
        s.fork_prepare();
        const pid_t child = fork();
        if (child == 0) {
            const bool whole = s.fork_child() && s.validate(nullptr);
            void* const mine = s.allocate(100'000, {});
            s.free(mine);
            s.free(s.allocate(1'000, {}));
            s.decommit_free_memory();
            _exit(whole && mine != nullptr && s.validate(nullptr) ? 0 : 1);
        }
        s.fork_parent();
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }).join();
}

TEST_F(returning, threads_go_on_during_every_call) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    inside_madvise = [&](char*, std::size_t) { live_on(s); };
    for (int window = 0; window < 4; ++window) s.decommit_free_memory();
    EXPECT_GT(calls, 30u);
    inside_madvise = nullptr;
    expect_valid(s);
}

TEST_F(returning, one_call_covers_half_a_mebibyte_at_most) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    void* const one = s.allocate(20 * mib, {});
    s.free(one);
    const std::size_t bytes = s.decommit_free_memory();
    EXPECT_EQ(longest, piece);
    EXPECT_GE(bytes, 25 * mib);
    expect_returned(s);
    expect_valid(s);
}

TEST_F(returning, nothing_is_handed_out_while_it_goes_back) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    std::size_t handed_out = 0;
    inside_madvise = [&](char* begin, std::size_t bytes) {
        std::thread([&] {
            // More than is free below the frontier, so every free place is tried.
            std::vector<char*> held;
            for (int i = 0; i < 100; ++i)
                held.push_back(static_cast<char*>(s.allocate(100'000, {})));
            for (int i = 0; i < 5'000; ++i)
                held.push_back(static_cast<char*>(s.allocate(1'000, {})));
            for (int i = 0; i < 5'000; ++i) held.push_back(static_cast<char*>(s.allocate(500, {})));
            for (char* object : held) {
                ASSERT_NE(object, nullptr);
                const std::size_t size = s.usable_size(object);
                handed_out += object < begin + bytes && begin < object + size;
            }
            for (char* object : held) s.free(object);
        }).join();
    };
    for (int window = 0; window < 3; ++window) s.decommit_free_memory();
    EXPECT_GT(calls, 20u);
    EXPECT_EQ(handed_out, 0u);
    inside_madvise = nullptr;
    expect_valid(s);
}

// A run of NEW that waits for its turn is taken by a thread that needs one, rather than new memory.
TEST_F(returning, what_waits_for_its_turn_can_be_allocated) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    std::vector<char*> held;
    inside_madvise = [&](char*, std::size_t bytes) {
        // Not in the calls for pages of one run: those are made before any run waits.
        if (!held.empty() || bytes <= run_bytes) return;
        std::thread([&] {
            for (int i = 0; i < 1'500; ++i)
                held.push_back(static_cast<char*>(s.allocate(1'000, {})));
        }).join();
    };
    const std::size_t before = s.runs_of(new_class);
    s.decommit_free_memory();
    EXPECT_EQ(held.size(), 1'500u);
    EXPECT_EQ(s.runs_of(new_class), before);
    expect_valid(s);
}

struct stops_after final : pacer {
    explicit stops_after(unsigned pieces) : left(pieces) {}
    bool may_continue() noexcept override { return left != 0 && --left != 0; }
    unsigned left;
};

TEST_F(returning, a_stop_leaves_the_rest_for_later) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    std::size_t rounds = 0;
    for (std::size_t before = ~std::size_t{0}; calls != before; ++rounds) {
        before = calls;
        stops_after two(2);
        s.decommit_free_memory(two);
        EXPECT_LE(calls - before, 8u); // a partially decommitted run may take several
        expect_valid(s);
    }
    EXPECT_GT(rounds, 5u);
    // All of NEW first; then a round that stops less often returns the others.
    s.decommit_free_memory();
    expect_returned(s);
}

// The classes that the collector fills come last: a stop among their pieces.
TEST_F(returning, a_stop_leaves_the_rest_of_hot_for_later) {
    const owned_space owner = make_space();
    space& s = *owner;
    std::vector<void*> objects;
    for (int i = 0; i < 4'000; ++i) objects.push_back(s.allocate_dense(hot_class, 1'000, {}));
    for (void* object : objects) s.free(object);
    std::size_t bytes = 0;
    for (std::size_t round = 0; round < 3; ++round) {
        const std::size_t before = calls;
        stops_after some(4);
        bytes += s.decommit_free_memory(some);
        EXPECT_LE(calls - before, 4u);
        EXPECT_GE(calls - before, 1u);
        expect_valid(s);
    }
    EXPECT_LE(bytes, 8 * piece);
    s.decommit_free_memory();
    expect_returned(s);
}

TEST_F(returning, pieces_that_the_system_does_not_take_stay_usable) {
    const owned_space owner = make_space();
    space& s = *owner;
    make_dirty(s);
    madvise_fails = true;
    EXPECT_EQ(s.decommit_free_memory(), 0u);
    EXPECT_EQ(s.decommit_free_memory(), 0u);
    expect_valid(s);
    madvise_fails = false;
    live_on(s);
    EXPECT_GE(s.decommit_free_memory(), 10 * mib);
    expect_valid(s);
}

// Property: what is known of the sizes of blocks goes back with the runs, however few of them at a time.
TEST_F(returning, slack_goes_back_with_runs_that_return_one_by_one) {
    if (asan::present()) GTEST_SKIP() << "the shadow is resident too";
    const owned_space s = make_space();
    std::vector<void*> objects(96 * mib / 512);
    const auto resident_after = [&](std::size_t turns) {
        for (void*& object : objects) object = s->allocate(504, {});
        for (std::size_t turn = 0; turn < turns; ++turn) {
            for (void*& object : objects)
                if (object != nullptr && s->run_of(object) % turns == turn)
                    s->free(std::exchange(object, nullptr));
            s->decommit_free_memory();
        }
        return os::resident_bytes();
    };
    const std::uint64_t at_once = resident_after(1);
    EXPECT_LE(resident_after(3), at_once + 300'000) << "of 786,432 bytes of slack";
}

// Property: where objects of a dense class begin is forgotten with the runs, however few of them at a time, and of no
// others.
TEST_F(returning, beginnings_go_back_with_runs_that_return_one_by_one) {
    if (asan::present() || thread_sanitized) GTEST_SKIP() << "the shadow is resident too";
    const owned_space owner = make_space();
    space& s = *owner;
    std::vector<void*> objects(96 * mib / 64); // whose beginnings take 1.5 MiB
    const auto run_of = [&](const void* object) {
        return static_cast<std::size_t>(static_cast<const char*>(object) -
                                        s.range_begin(hot_class)) >>
               run_shift;
    };
    const auto resident_after = [&](std::size_t turns) {
        for (void*& object : objects) object = s.allocate_dense(hot_class, 64, {});
        for (std::size_t turn = 0; turn < turns; ++turn) {
            for (void*& object : objects)
                if (object != nullptr && run_of(object) % turns == turn)
                    s.free(std::exchange(object, nullptr));
            s.decommit_free_memory();
            for (const void* object : objects)
                if (object != nullptr && run_of(object) % 17 == 0) {
                    EXPECT_EQ(s.info(object).size, 64u);
                }
        }
        return os::resident_bytes();
    };
    const std::uint64_t before = os::resident_bytes();
    EXPECT_LE(resident_after(1), before + 500'000) << "of 1,572,864 bytes";
    EXPECT_LE(resident_after(3), before + 500'000);
    expect_valid(s);
}

// Property: a run that shares a page of marks with one that goes back is not taken for births meanwhile.
TEST_F(returning, births_wait_for_a_page_of_beginnings) {
    const owned_space owner = make_space();
    space& s = *owner;
    s.give_births(expectation::hot, hot_class);
    s.allow_births(hot_class, UINT64_MAX);
    std::vector<std::vector<void*>> runs(8);
    for (auto& run : runs)
        for (std::size_t i = 0; i < run_bytes / 64; ++i)
            run.push_back(s.allocate_dense(hot_class, 64, {}));
    const auto end = [&](std::size_t run) {
        for (void* object : runs[run]) s.free(object);
    };
    for (const std::size_t run : {0UL, 2UL, 3UL}) end(run);
    s.decommit_free_memory();
    end(1);
    std::vector<void*> born;
    inside_madvise = [&](char* begin, std::size_t) {
        if (s.contains(begin))
            return; // the memory, for which a run is refused; it would be refused from then on
        std::thread([&] {
            space::neighbour found;
            born.push_back(
                s.allocate_placed(100, {}, {.expect = expectation::hot, .guided = true}, &found));
        }).join();
    };
    s.decommit_free_memory();
    inside_madvise = nullptr;
    ASSERT_FALSE(born.empty());
    for (void* object : born) EXPECT_EQ(s.info(object).size, 104u);
    expect_valid(s);
    for (void* object : born) s.free(object);
}

// The dirty part of a free extent grows and shrinks with its neighbours.
TEST_F(returning, large_memory_is_returned_once) {
    const owned_space owner = make_space();
    space& s = *owner;
    std::vector<void*> objects;
    for (int i = 0; i < 30; ++i) objects.push_back(s.allocate(100 * os::page_size, {}));
    for (std::size_t i = 0; i < objects.size(); i += 3) s.free(objects[i]);
    EXPECT_EQ(s.decommit_free_memory(), 10 * 100 * os::page_size);
    for (std::size_t i = 1; i < objects.size(); i += 3) s.free(objects[i]);
    expect_valid(s);
    EXPECT_EQ(s.decommit_free_memory(), 10 * 100 * os::page_size);
    EXPECT_EQ(s.decommit_free_memory(), 0u);
    for (std::size_t i = 2; i < objects.size(); i += 3) s.free(objects[i]);
    // Freed on both sides of what is clean: what lies between counts as dirty once more.
    EXPECT_GE(s.decommit_free_memory(), 10 * 100 * os::page_size);
    EXPECT_EQ(s.decommit_free_memory(), 0u);
    EXPECT_EQ(s.counters(s.large_class()).extent_bytes, 0u);
    expect_valid(s);
}

// Property: what LARGE knows of its pages goes back where nothing lies any more, and only there.
TEST_F(returning, what_is_known_of_large_memory_goes_back_with_it) {
    if (asan::present() || thread_sanitized) GTEST_SKIP() << "the shadow is resident too";
    const owned_space owner = make_space();
    space& s = *owner;
    std::vector<void*> objects(8'000);
    for (int turn = 0; turn < 2; ++turn) {
        const std::uint64_t before = os::resident_bytes();
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (objects[i] == nullptr) objects[i] = s.allocate(20'000 + i % 4096, {});
        EXPECT_GT(os::resident_bytes(), before + 1'000'000) << turn;
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (i % 2000 != 7) s.free(std::exchange(objects[i], nullptr));
        s.decommit_free_memory();
        EXPECT_LT(os::resident_bytes(), before + 300'000) << turn;
        expect_valid(s);
        for (std::size_t i = 7; i < objects.size(); i += 2000)
            EXPECT_EQ(s.info(objects[i]).size, round_up(20'000 + i % 4096, large_granule));
    }
}

// Property: while what LARGE knows of its free pages goes back, those pages can be had but for 16 MiB of them; a child
// of a fork has them all, and none of them is resident; and it goes back once.
TEST_F(returning, an_extent_can_be_had_while_its_tables_go_back) {
    const owned_space owner = make_space();
    space& s = *owner;
    constexpr std::size_t most =
        248 * mib; // of 256: LARGE cannot grow by as much as is asked for below
    auto* const all = static_cast<char*>(s.allocate(most, {}));
    ASSERT_NE(all, nullptr);
    s.free(all);
    std::size_t times = 0;
    inside_madvise = [&](char* at, std::size_t) {
        if (at >= all && at < all + most) return; // the memory itself
        if (times++ == 0) {
            s.fork_prepare();
            const pid_t child = fork();
            if (child == 0) {
                const bool whole = s.fork_child() && s.validate(nullptr);
                const bool clean = s.counters(s.large_class()).extent_bytes == 0;
                _exit(!whole ? 1 : !clean ? 2 : s.allocate(most, {}) == nullptr ? 3 : 0);
            }
            s.fork_parent();
            int status = 0;
            waitpid(child, &status, 0);
            EXPECT_EQ(status, 0);
        }
        void* const object = s.allocate(100 * mib, {});
        ASSERT_NE(object, nullptr);
        s.free(object);
    };
    s.decommit_free_memory();
    expect_valid(s);
    // 16 pieces of two tables, and what was freed in between.
    EXPECT_GE(times, 16u);
    inside_madvise = nullptr;
    s.decommit_free_memory();
    const std::size_t before = calls;
    s.decommit_free_memory();
    EXPECT_EQ(calls, before);
}

// Threads that need more memory at the same time each commit it, and one of them adds it.
TEST_F(returning, threads_go_on_while_memory_is_committed) {
    const owned_space owner = make_space();
    space& s = *owner;
    std::size_t times = 0;
    inside_mprotect = [&] {
        ++times;
        live_on(s);
    };
    std::vector<void*> objects;
    for (int i = 0; i < 200; ++i) objects.push_back(s.allocate(100'000, {}));
    for (int i = 0; i < 10'000; ++i) objects.push_back(s.allocate(1'000, {}));
    EXPECT_GT(times, 4u);
    // The heaps of threads are committed, too; those that end leave theirs to others.
    times = 0;
    std::vector<std::thread> threads(50);
    std::atomic<std::size_t> allocated{0};
    std::atomic<bool> over{false};
    for (std::thread& one : threads) {
        const std::size_t before = allocated;
        one = std::thread([&] {
            s.free(s.allocate(64, {}));
            ++allocated;
            allocated.notify_one();
            over.wait(false);
        });
        allocated.wait(before);
    }
    EXPECT_GT(times, 4u);
    over = true;
    over.notify_all();
    for (std::thread& one : threads) one.join();
    inside_mprotect = nullptr;
    for (void* object : objects) EXPECT_NE(object, nullptr);
    std::sort(objects.begin(), objects.end());
    EXPECT_EQ(std::adjacent_find(objects.begin(), objects.end()), objects.end());
    for (void* object : objects) s.free(object);
    expect_valid(s);
}

} // namespace
} // namespace obase::heap
