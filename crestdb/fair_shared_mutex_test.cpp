// SPDX-License-Identifier: MIT
#include "crestdb/fair_shared_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

TEST(fair_shared_mutex, writers_are_alone) {
    crestdb::fair_shared_mutex mutex;
    int a = 0, b = 0; // equal unless somebody is at work
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20'000; ++i) {
                if ((i + t) % 4 == 0) {
                    const std::unique_lock alone(mutex);
                    ++a;
                    ++b;
                } else {
                    const std::shared_lock shared(mutex);
                    wrong += a != b;
                }
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(a, 4 * 5'000);
}

// Readers that never leave the lock to itself. A writer that starves never ends this.
TEST(fair_shared_mutex, readers_let_writers_in) {
    crestdb::fair_shared_mutex mutex;
    std::atomic<bool> stop{false};
    std::atomic<unsigned> inside{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < 6; ++t) {
        readers.emplace_back([&] {
            while (!stop) {
                const std::shared_lock shared(mutex);
                // Until another one is in, so that the lock is hardly ever without one, as long as
                // no writer wants it.
                ++inside;
                for (int i = 0; i < 50 && inside < 2; ++i) std::this_thread::yield();
                --inside;
            }
        });
    }
    for (int i = 0; i < 100; ++i) {
        const std::unique_lock alone(mutex);
        EXPECT_EQ(inside, 0u);
    }
    stop = true;
    for (auto& r : readers) r.join();
}

} // namespace
