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
    int a = 0, b = 0; // equal unless a writer is inside
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

TEST(fair_shared_mutex, who_comes_to_read_behind_a_waiting_writer_waits_for_it) {
    for (int round = 0; round < 20; ++round) {
        crestdb::fair_shared_mutex mutex;
        std::atomic<bool> written{false}, coming{false}, read{false};
        mutex.lock_shared();
        std::thread writer([&] {
            const std::unique_lock alone(mutex);
            EXPECT_FALSE(read);
            written = true;
        });
        while (mutex.try_lock_shared()) { // until the writer waits
            mutex.unlock_shared();
            std::this_thread::yield();
        }
        EXPECT_FALSE(written);
        std::thread reader([&] {
            coming = true;
            const std::shared_lock shared(mutex);
            EXPECT_TRUE(written);
            read = true;
        });
        while (!coming) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) std::this_thread::yield(); // it has time to do wrong
        mutex.unlock_shared();
        writer.join();
        reader.join();
        EXPECT_TRUE(read);
    }
}

} // namespace
