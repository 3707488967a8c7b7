// SPDX-License-Identifier: MIT
//
// Closed runs. Property: while a run is closed nothing is allocated in it, whichever thread frees
// in it; opened, it goes back to the system if it is empty, and is allocated from if it is not.
#include "heap/space.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace obase::heap {
namespace {

constexpr std::size_t mib = 1U << 20;
constexpr std::size_t size = 1000;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space() {
    std::string why;
    owned_space made(space::create({.range_bytes = 128 * mib}, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

void expect_valid(const space& s) {
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
}

std::vector<void*> allocate(space& s, std::size_t count) {
    std::vector<void*> objects(count);
    for (void*& object : objects) object = s.allocate(size, {});
    return objects;
}

std::size_t run_of(const space& s, const void* object) {
    return static_cast<std::size_t>(static_cast<const char*>(object) - s.range_begin(new_class)) >>
           run_shift;
}

std::vector<std::uint32_t> close_all(space& s) {
    const std::size_t end = s.runs_of(new_class);
    s.close_runs(new_class, [](std::size_t) { return true; });
    std::vector<std::uint32_t> closed;
    for (std::uint32_t run = 0; run < end; ++run)
        if (s.run_closed(new_class, run)) closed.push_back(run);
    return closed;
}

std::size_t open(space& s, const std::vector<std::uint32_t>& runs) {
    pacer ask;
    return s.open_runs(new_class, runs.data(), runs.size(), ask);
}

// Runs of this thread, of one that ended, full ones and ones with room.
struct mixed {
    std::vector<void*> mine, others;

    explicit mixed(space& s) : mine(allocate(s, 3000)) {
        std::thread([&] { others = allocate(s, 3000); }).join();
        for (std::size_t i = 0; i < mine.size(); i += 7) s.free(std::exchange(mine[i], nullptr));
        for (std::size_t i = 0; i < others.size(); i += 90)
            s.free(std::exchange(others[i], nullptr));
    }
    void free(space& s) {
        for (auto* all : {&mine, &others})
            for (void*& object : *all) s.free(std::exchange(object, nullptr));
    }
};

TEST(closed, nothing_is_allocated_in_closed_runs) {
    const owned_space owner = make_space();
    space& s = *owner;
    mixed objects(s);
    const auto runs = close_all(s);
    EXPECT_GT(runs.size(), 80u); // of 94 or so; the current one of this thread is not closed
    objects.free(s);             // by another thread than theirs, and by theirs
    const std::set<std::size_t> closed(runs.begin(), runs.end());
    std::size_t recent = 0; // what the thread freed last, it may take from its cache
    for (void* object : allocate(s, 4000)) recent += closed.count(run_of(s, object));
    EXPECT_LE(recent, 64u);
    // The collector's own objects never are of these.
    for (int i = 0; i < 4000; ++i) {
        void* const object = s.allocate_dense(new_class, size, {});
        ASSERT_NE(object, nullptr);
        EXPECT_EQ(closed.count(run_of(s, object)), 0u);
    }
    expect_valid(s);
    open(s, runs);
    expect_valid(s);
}

// What a thread freed last is in its cache, also if its run has been closed since.
TEST(closed, what_stays_is_not_put_where_the_thread_freed_last) {
    const owned_space owner = make_space();
    space& s = *owner;
    const std::vector<void*> objects = allocate(s, 650);
    const auto runs = close_all(s);
    const std::set<std::size_t> closed(runs.begin(), runs.end());
    std::size_t freed = 0;
    for (std::size_t i = 0; i < 30; ++i) {
        freed += closed.count(run_of(s, objects[i]));
        s.free(objects[i]);
    }
    EXPECT_EQ(freed, 30u);
    for (int i = 0; i < 200; ++i) {
        void* const object = s.allocate_dense(new_class, size, {});
        ASSERT_NE(object, nullptr);
        EXPECT_EQ(closed.count(run_of(s, object)), 0u);
    }
    open(s, runs);
    expect_valid(s);
}

TEST(closed, empty_runs_go_back_at_once) {
    const owned_space owner = make_space();
    space& s = *owner;
    mixed objects(s);
    const auto runs = close_all(s);
    objects.free(s);
    const std::size_t before = s.counters(new_class).extent_bytes;
    const std::size_t bytes = open(s, runs);
    EXPECT_GE(bytes, (runs.size() - 2) * run_bytes);
    EXPECT_EQ(s.counters(new_class).extent_bytes, before - bytes);
    for (const std::uint32_t run : runs) EXPECT_FALSE(s.run_closed(new_class, run));
    expect_valid(s);
}

// What stays keeps its pages, and its run is allocated from again.
TEST(closed, a_run_with_a_rest_is_used_again) {
    const owned_space owner = make_space();
    space& s = *owner;
    std::vector<void*> objects = allocate(s, 650);
    const auto runs = close_all(s);
    ASSERT_GE(runs.size(), 9u);
    std::vector<void*> rest;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        if (i % 65 == 30) {
            std::memset(objects[i], 7, size);
            rest.push_back(objects[i]);
        } else {
            s.free(objects[i]);
        }
    }
    EXPECT_GE(open(s, runs), runs.size() * 12 * 4096);
    expect_valid(s);
    for (void* object : rest)
        EXPECT_EQ(std::count(static_cast<char*>(object), static_cast<char*>(object) + size, 7),
                  size);
    const std::size_t end = s.runs_of(new_class);
    for (void* object : allocate(s, 500)) EXPECT_LT(run_of(s, object), end);
    expect_valid(s);
}

TEST(closed, frees_of_all_threads_at_once) {
    const owned_space owner = make_space();
    space& s = *owner;
    for (int round = 0; round < 20; ++round) {
        std::vector<void*> objects = allocate(s, 4000);
        std::vector<std::thread> threads;
        for (std::size_t number = 0; number < 3; ++number)
            threads.emplace_back([&, number] {
                for (std::size_t i = number; i < objects.size(); i += 3) {
                    s.free(objects[i]);
                    if (i % 5 == 0) s.free(s.allocate(size, {}));
                }
            });
        const auto runs = close_all(s);
        open(s, runs);
        for (std::thread& thread : threads) thread.join();
        expect_valid(s);
    }
    s.decommit_free_memory();
    EXPECT_EQ(s.counters(new_class).live_objects, 0u);
}

// The collector does not exist in the child: what it had closed is open there.
TEST(closed, the_child_of_a_fork_has_them_open) {
    const owned_space owner = make_space();
    space& s = *owner;
    mixed objects(s);
    const auto runs = close_all(s);
    for (std::size_t i = 0; i < objects.mine.size(); i += 2)
        s.free(std::exchange(objects.mine[i], nullptr));
    s.fork_prepare();
    const pid_t child = fork();
    if (child == 0) {
        bool good = s.fork_child();
        for (const std::uint32_t run : runs) good = good && !s.run_closed(new_class, run);
        const std::size_t end = s.runs_of(new_class);
        for (void* object : allocate(s, 1500)) good = good && run_of(s, object) < end;
        objects.free(s);
        s.decommit_free_memory();
        _exit(good && s.validate(nullptr) ? 0 : 1);
    }
    s.fork_parent();
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (const std::uint32_t run : runs) EXPECT_TRUE(s.run_closed(new_class, run));
    open(s, runs);
    objects.free(s);
    expect_valid(s);
}

} // namespace
} // namespace obase::heap
