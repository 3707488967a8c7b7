// SPDX-License-Identifier: MIT
//
// A process of its own, since the heap's counters are the process'.
#include "crestdb/server/served.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

namespace crestdb::server {

namespace {

// Values of all sizes that end and are replaced, while the collector moves what stays: what memory holds beyond live data
// does not grow with time, and a thread does not keep a run of 64 KiB for each of 208 size classes.
TEST(Churn, OfAllSizesLeavesLittleBehind) {
    std::int64_t late = 0;
    obase::options options;
    options.mode = obase::run_mode::move;
    options.window_seconds = 100'000; // by hand
    ASSERT_EQ(managing_runtime().configure(options), "");
    ASSERT_EQ(managing_runtime().start(), "");
    // As a server's I/O threads are none that has started it.
    std::thread([&] {
        served s;
        std::mt19937 random(1);
        for (int round = 0; round < 120; ++round) {
            // Within some windows every size is asked for, and in each some are.
            for (int i = 0; i < 40; ++i) {
                const std::string key = "k" + std::to_string(random() % 200);
                s({"SET", key, std::string(random() % 16'000, 'v'), "PX",
                   std::to_string(1 + random() % 50)});
            }
            s.window();
            s.server.keys.expire_some(10'000, now_ms() + 1000);
            // More than a thread keeps at hand: it is in its slow paths, as a server's threads are.
            for (int i = 0; i < 600; ++i) s({"SET", "small" + std::to_string(i), "v"});
            s({"FLUSHALL"});
            if (round < 80) continue;
            const obase::statistics now = managing_runtime().statistics();
            late = std::max(late, static_cast<std::int64_t>(now.heaps[0].hole_bytes));
        }
    }).join();
    std::printf("holes in NEW: %lld KiB\n", static_cast<long long>(late >> 10));
    EXPECT_LE(late, 6 << 20);
}

} // namespace

} // namespace crestdb::server
