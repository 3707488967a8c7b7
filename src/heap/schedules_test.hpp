// SPDX-License-Identifier: MIT
//
// What the tests of the heaps' schedules have in common: a body that is templated on its platform runs
// under the deterministic scheduler and on threads.
//
//     template <class P> void frees_meet_filling() { ... }
//     IN_BOTH_WORLDS(dense_schedules, frees_meet_filling, 3'000)
#pragma once

#include "os/platform.hpp"
#include "testing/deterministic.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace obase::heap {

// `seeds`: schedules of each strategy, in the ci tier. More than `max_steps` in one execution is a failure.
template <class P>
void explore_schedules(const char* name, void (*body)(), std::uint64_t seeds,
                       std::uint64_t max_steps = testing::exploration{}.max_steps) {
    using threads = testing::threads_for<P>;
    const auto strategies = threads::deterministic
                                ? std::vector{testing::strategy::random, testing::strategy::pct}
                                : std::vector{testing::strategy::random};
    for (const auto strategy : strategies) {
        const testing::exploration e{
            .seeds = testing::scaled_schedules(seeds, 30 * seeds, 1000 * seeds),
            .strategy = strategy,
            .name = name,
            .max_steps = max_steps,
            .native_rounds = static_cast<unsigned>(testing::scaled(100, 3'000, 30'000))};
        const auto r = threads::explore(e, body);
        EXPECT_TRUE(r.ok) << r.report;
    }
}

#define IN_BOTH_WORLDS(suite, body, ...)                                                           \
    TEST(suite, body##_in_every_schedule) {                                                        \
        explore_schedules<obase::testing::deterministic_platform>(                                 \
            #body, body<obase::testing::deterministic_platform>, __VA_ARGS__);                     \
    }                                                                                              \
    TEST(suite, body##_natively) {                                                                 \
        explore_schedules<obase::os::native_platform>(#body, body<obase::os::native_platform>,     \
                                                      __VA_ARGS__);                                \
    }

} // namespace obase::heap
