// SPDX-License-Identifier: MIT
//
// A fork at every instruction of another thread's allocation and free: the child, where that thread
// does not exist, has a heap whose counts agree with its lists.
//
// The other thread runs in single steps (the processor's trap flag), and its signal handler holds it
// at the chosen instruction while the main thread forks. So every instant is tried, none by luck.
#include "heap/sanitized.hpp"
#include "heap/space.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace obase::heap {
namespace {

std::atomic<unsigned> steps{0}, stop_at{0};
std::atomic<bool> parked{false}, proceed{false};

void at_step(int) {
    if (++steps != stop_at) return;
    parked = true;
    while (!proceed) std::this_thread::yield();
}

// Below the red zone of the function that it is inlined into.
inline void single_steps(bool on) {
    if (on)
        asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; "
                     "lea 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
    else
        asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; "
                     "lea 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

bool valid_in_child(space& s) {
    s.fork_prepare();
    const pid_t child = fork();
    if (child == 0) {
        bool good = s.fork_child();
        std::string what;
        if (!s.validate(&what)) {
            std::fprintf(stderr, "child, at instruction %u: %s\n", stop_at.load(), what.c_str());
            good = false;
        }
        for (int i = 0; i < 200; ++i) good = good && s.allocate(64, {}) != nullptr;
        _exit(good && s.validate(nullptr) ? 0 : 1);
    }
    s.fork_parent();
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(fork_instants, counts_agree_with_lists_in_the_child) {
    if (sanitized) GTEST_SKIP() << "the sanitizers' own code would be stepped through";
    struct sigaction handler{};
    handler.sa_handler = at_step;
    struct sigaction before{};
    sigaction(SIGTRAP, &handler, &before);
    unsigned instants = 0;
    for (unsigned n = 1;; ++n) {
        std::string why;
        space_options options;
        options.range_bytes = 1U << 20;
        const std::unique_ptr<space, void (*)(space*)> owner(space::create(options, &why),
                                                             space::destroy);
        ASSERT_NE(owner, nullptr) << why;
        space& s = *owner;
        steps = 0;
        stop_at = n;
        parked = proceed = false;
        std::atomic<bool> ended{false}, leave{false};
        std::thread other([&] {
            // A run with blocks in its own list, and none that the thread freed last.
            void* held[40];
            for (void*& one : held) one = s.allocate(64, {});
            for (void* one : held) s.free(one);
            for (void*& one : held) one = s.allocate(64, {});
            single_steps(true);
            void* const fresh = s.allocate(64, {});
            s.free(held[0]);
            s.free(fresh);
            single_steps(false);
            ended = true;
            while (!leave) std::this_thread::yield();
            for (int i = 1; i < 40; ++i) s.free(held[i]);
        });
        while (!parked && !ended) std::this_thread::yield();
        const bool in_between = parked;
        const bool good = !in_between || valid_in_child(s);
        proceed = true;
        leave = true;
        other.join();
        EXPECT_TRUE(s.validate(nullptr));
        ASSERT_TRUE(good) << "at instruction " << n;
        if (!in_between) break;
        ++instants;
    }
    sigaction(SIGTRAP, &before, nullptr);
    EXPECT_GE(instants, 20u);
}

} // namespace
} // namespace obase::heap
