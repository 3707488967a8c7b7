// SPDX-License-Identifier: MIT
//
// The run word and the run stack, alone: one body, under the deterministic scheduler and natively.
#include "heap/run_word.hpp"

#include <array>

#include <gtest/gtest.h>

#include "heap/run_stack.hpp"
#include "os/platform.hpp"
#include "testing/deterministic.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"

namespace obase::heap {
namespace {

using os::native_platform;
using testing::deterministic_platform;

// A run of `capacity` blocks whose links lie in an array instead of in the blocks.
template <class P, unsigned capacity>
struct model_run {
    run_word<P> word;
    typename P::template atomic<std::uint32_t> link[capacity]; // head that was there before
    typename P::template atomic<std::uint32_t> out[capacity];  // 1 while a thread has the block

    push_result give(std::uint32_t block, std::uint32_t threshold) {
        return word.push_remote(block, 1, threshold,
                                [&](std::uint32_t head) { link[block].store_relaxed(head); });
    }
    // Marks every block of a taken list as in; returns how many there were.
    template <class Threads>
    std::uint32_t collect(std::uint32_t head) {
        std::uint32_t count = 0;
        while (head != 0) {
            Threads::require(head <= capacity, "a link leads out of the run");
            Threads::require(out[head - 1].exchange_acq_rel(0) == 1, "a block came back twice");
            head = link[head - 1].load_relaxed();
            ++count;
        }
        return count;
    }
};

constexpr std::uint32_t me = 7;

// Property: every block given back while the owner grabs, detaches and takes the run back arrives
// exactly once; the count always equals the length of the list; and the run is queued at most once
// per detachment.
template <class P>
void blocks_come_back_once() {
    using threads = testing::threads_for<P>;
    constexpr unsigned capacity = 4;
    model_run<P, capacity> run;
    typename P::template atomic<std::uint32_t> queued;
    typename P::template atomic<std::uint32_t> received;
    run.word.attach(me);
    for (auto& out : run.out) out.store_relaxed(1);
    for (std::uint32_t first = 0; first < capacity; first += 2) {
        threads::spawn([&, first] {
            for (std::uint32_t block = first; block < first + 2; ++block) {
                if (run.give(block, 2) == push_result::queued) {
                    threads::require(queued.fetch_add_acq_rel(1) == 0, "queued twice");
                }
            }
        });
    }
    threads::spawn([&] {
        std::uint32_t count = 0;
        std::uint32_t head = run.word.grab(&count);
        std::uint32_t got = run.template collect<threads>(head);
        threads::require(got == count, "count and list disagree");
        // Nothing is on the local list, so the owner may detach while the remote one is empty too.
        if (run.word.detach(me)) {
            if (run.word.reattach(me, &head, &count)) {
                const std::uint32_t more = run.template collect<threads>(head);
                threads::require(more == count, "count and list disagree after reattach");
                got += more;
            }
        }
        received.store_release(got);
    });
    threads::run();
    const run_view end = run.word.view();
    threads::require((end.state == run_state::queued) == (queued.load_relaxed() == 1),
                     "the thread that made the run QUEUED knows it");
    threads::require(run.template collect<threads>(end.head) == end.count, "count at the end");
    threads::require(received.load_relaxed() + end.count == capacity, "a block is missing");
}

TEST(run_word, blocks_come_back_once_in_every_schedule) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        const testing::exploration e{.seeds = testing::scaled_schedules(3'000, 100'000, 3'000'000),
                                     .strategy = strategy,
                                     .name = "blocks come back once"};
        const auto r = testing::threads_for<deterministic_platform>::explore(
            e, blocks_come_back_once<deterministic_platform>);
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(run_word, blocks_come_back_once_natively) {
    const testing::exploration e{.name = "blocks come back once",
                                 .native_rounds =
                                     static_cast<unsigned>(testing::scaled(300, 10'000, 100'000))};
    const auto r =
        testing::threads_for<native_platform>::explore(e, blocks_come_back_once<native_platform>);
    EXPECT_TRUE(r.ok) << r.report;
}

// Property: a detached run whose blocks all come back from others, without help of the owner, is
// pushed on the stack exactly once, and the thread that pops it finds all its blocks, but those
// that the collector took off its list in between.
template <class P>
void a_deserted_run_is_found() {
    using threads = testing::threads_for<P>;
    constexpr unsigned capacity = 4;
    model_run<P, capacity> run;
    run_stack<P> stack;
    typename P::template atomic<std::uint32_t> next;
    const auto link = [&](std::uint32_t) -> auto& { return next; };
    run.word.attach(me);
    for (auto& out : run.out) out.store_relaxed(1);
    threads::require(run.word.detach(me), "nothing came back yet");
    typename P::template atomic<std::uint32_t> takers;
    for (std::uint32_t first = 0; first < capacity; first += 2) {
        threads::spawn([&, first] {
            for (std::uint32_t block = first; block < first + 2; ++block) {
                if (run.give(block, 1) == push_result::queued) stack.push(0, link);
            }
        });
    }
    threads::spawn([&] {
        if (stack.pop(link) == 0) {
            takers.fetch_add_acq_rel(1);
            run.word.take(me + 1);
        }
    });
    typename P::template atomic<std::uint32_t> collected;
    threads::spawn([&] {
        if (stack.pop(link) != 0) return;
        std::uint32_t count = 0;
        const std::uint32_t head = run.word.grab(&count);
        threads::require(run.template collect<threads>(head) == count, "count and list disagree");
        collected.store_release(count);
        stack.push(0, link);
    });
    threads::run();
    const std::uint32_t popped = stack.pop(link);
    threads::require((popped == 0 ? 1U : 0U) + takers.load_relaxed() == 1, "on the stack once");
    const run_view end = run.word.view();
    const std::uint32_t left = capacity - collected.load_relaxed();
    threads::require(end.count == left, "all other blocks are on its list");
    threads::require(run.template collect<threads>(end.head) == left, "each of them once");
    threads::require(end.state == (popped == 0 ? run_state::queued : run_state::attached), "state");
}

TEST(run_word, a_deserted_run_is_found_in_every_schedule) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        const testing::exploration e{.seeds = testing::scaled_schedules(3'000, 100'000, 3'000'000),
                                     .strategy = strategy,
                                     .name = "a deserted run is found"};
        const auto r = testing::threads_for<deterministic_platform>::explore(
            e, a_deserted_run_is_found<deterministic_platform>);
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(run_word, a_deserted_run_is_found_natively) {
    const testing::exploration e{.name = "a deserted run is found",
                                 .native_rounds =
                                     static_cast<unsigned>(testing::scaled(300, 10'000, 100'000))};
    const auto r =
        testing::threads_for<native_platform>::explore(e, a_deserted_run_is_found<native_platform>);
    EXPECT_TRUE(r.ok) << r.report;
}

// Property: whatever pops and pushes interleave, no number is on the stack twice and none is lost
// (ABA).
template <class P>
void stack_keeps_every_run() {
    using threads = testing::threads_for<P>;
    constexpr unsigned runs = 3;
    run_stack<P> stack;
    typename P::template atomic<std::uint32_t> next[runs];
    typename P::template atomic<std::uint32_t> held[runs];
    const auto link = [&](std::uint32_t run) -> auto& { return next[run]; };
    for (std::uint32_t i = 0; i < runs; ++i) stack.push(i, link);
    for (int thread = 0; thread < 2; ++thread) {
        threads::spawn([&] {
            const std::uint32_t a = stack.pop(link);
            const std::uint32_t b = stack.pop(link);
            for (const std::uint32_t run : {a, b}) {
                if (run == stack.none) continue;
                threads::require(held[run].exchange_acq_rel(1) == 0, "two have one run");
            }
            for (const std::uint32_t run : {a, b}) {
                if (run == stack.none) continue;
                held[run].store_release(0);
                stack.push(run, link);
            }
        });
    }
    threads::spawn([&] {
        std::uint32_t run = stack.take_all();
        while (run != stack.none) {
            const std::uint32_t after = next[run].load_relaxed();
            threads::require(held[run].load_relaxed() == 0, "a taken run is held");
            stack.push(run, link);
            run = after;
        }
    });
    threads::run();
    std::array<bool, runs> seen{};
    for (unsigned i = 0; i < runs; ++i) {
        const std::uint32_t run = stack.pop(link);
        threads::require(run < runs && !seen[run], "each run once");
        seen[run] = true;
    }
    threads::require(stack.empty(), "nothing else");
}

TEST(run_stack, keeps_every_run_in_every_schedule) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        const testing::exploration e{.seeds = testing::scaled_schedules(3'000, 100'000, 3'000'000),
                                     .strategy = strategy,
                                     .name = "stack keeps every run"};
        const auto r = testing::threads_for<deterministic_platform>::explore(
            e, stack_keeps_every_run<deterministic_platform>);
        EXPECT_TRUE(r.ok) << r.report;
    }
}

TEST(run_stack, keeps_every_run_natively) {
    const testing::exploration e{.name = "stack keeps every run",
                                 .native_rounds =
                                     static_cast<unsigned>(testing::scaled(300, 10'000, 100'000))};
    const auto r =
        testing::threads_for<native_platform>::explore(e, stack_keeps_every_run<native_platform>);
    EXPECT_TRUE(r.ok) << r.report;
}

} // namespace
} // namespace obase::heap
