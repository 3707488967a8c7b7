// SPDX-License-Identifier: MIT
#include "tools/workload/insert_counter.hpp"

#include "tools/workload/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using workload::insert_counter;

TEST(InsertCounter, EndsBeforeTheFirstThatIsMissing) {
    insert_counter ids(10);
    EXPECT_EQ(ids.end(), 10U);
    EXPECT_EQ(ids.take(), 10U);
    EXPECT_EQ(ids.take(), 11U);
    EXPECT_EQ(ids.take(), 12U);
    ids.completed(11);
    EXPECT_EQ(ids.end(), 10U);
    ids.completed(10);
    EXPECT_EQ(ids.end(), 12U);
    ids.completed(12);
    EXPECT_EQ(ids.end(), 13U);
}

// In any order: the end is the lowest id that is not complete. Several windows long, from starts
// around the places where slots are used anew.
RC_GTEST_PROP(InsertCounter, AgreesWithASet, ()) {
    const auto first = *rc::gen::element<std::uint64_t>(0, 5, insert_counter::window - 2,
                                                        3 * insert_counter::window - 1);
    insert_counter ids(first);
    std::vector<std::uint64_t> open;
    std::uint64_t taken = first;
    for (const auto step :
         *rc::gen::container<std::vector<std::uint8_t>>(100, rc::gen::arbitrary<std::uint8_t>())) {
        if (open.empty() || step % 2 == 0) {
            open.push_back(ids.take());
            RC_ASSERT(open.back() == taken++);
        } else {
            const auto at = open.begin() + static_cast<std::ptrdiff_t>(step % open.size());
            ids.completed(*at);
            open.erase(at);
        }
        std::uint64_t lowest = taken;
        for (const std::uint64_t id : open) lowest = std::min(lowest, id);
        RC_ASSERT(ids.end() == lowest);
    }
}

TEST(InsertCounter, AThreadThatHangsIsReported) {
    insert_counter ids(0, std::chrono::milliseconds(10));
    const std::uint64_t never = ids.take();
    for (std::uint64_t i = 1; i < insert_counter::window; ++i) ids.completed(ids.take());
    EXPECT_THROW(ids.completed(ids.take()), std::runtime_error);
    EXPECT_EQ(ids.end(), never);
}

// Found on a busy machine: a thread that was preempted for long is waited for.
TEST(InsertCounter, AThreadThatIsFarBehindIsWaitedFor) {
    insert_counter ids(0);
    const std::uint64_t late = ids.take();
    std::atomic<bool> window_is_full{false};
    std::thread fast([&] {
        for (std::uint64_t i = 1; i < insert_counter::window; ++i) ids.completed(ids.take());
        window_is_full.store(true);
        ids.completed(ids.take());
    });
    while (!window_is_full.load()) std::this_thread::yield();
    EXPECT_EQ(ids.end(), late);
    ids.completed(late);
    fast.join();
    EXPECT_EQ(ids.end(), insert_counter::window + 1);
}

// Threads insert; what is below the end is there, and in the end everything is.
TEST(InsertCounter, NoIdIsReportedTooEarlyNorForgotten) {
    constexpr unsigned threads = 4;
    constexpr std::uint64_t each = 100'000;
    insert_counter ids(0);
    const auto there = std::make_unique<std::atomic<bool>[]>(threads * each);
    std::atomic<int> missing{0};
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            workload::random_stream random(t);
            for (std::uint64_t i = 0; i < each; ++i) {
                const std::uint64_t id = ids.take();
                there[id].store(true);
                ids.completed(id);
                const std::uint64_t end = ids.end();
                if (end > 0 && (!there[end - 1].load() || !there[random.below(end)].load()))
                    ++missing;
            }
        });
    for (std::thread& t : running) t.join();
    EXPECT_EQ(missing.load(), 0);
    EXPECT_EQ(ids.end(), threads * each);
}

} // namespace
