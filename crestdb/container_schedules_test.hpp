// SPDX-License-Identifier: MIT
//
// What the tests of the containers' schedules have in common: a table of one segment, and executions of
// a body in every strategy, after each of which nothing may be left.
//
//     explore_container("one key", [&] {
//         map m;
//         testing::spawn([&] { m.put("a", "1"); });
//         testing::run();
//     });
#pragma once

#include "testing/index_schedules.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace crestdb::testing {

struct one_segment : obase::testing::scheduled_surroundings {
    static constexpr std::size_t least_segments = 1;
    static constexpr std::size_t most_segments = 1;
    static constexpr std::size_t sparse = 1;
};

// The container must end with `body`.
template <class Body>
void explore_container(const std::string& name, Body&& body) {
    namespace testing = obase::testing;
    for (const auto how : {testing::strategy::bounded_exhaustive, testing::strategy::random,
                           testing::strategy::pct}) {
        testing::exploration e;
        e.strategy = how;
        e.name = name;
        e.max_steps = 400'000;
        e.depth = 4;
        if (how == testing::strategy::bounded_exhaustive) {
            e.memory = testing::memory_model::sequential;
            e.seeds = testing::scaled(8'000, 3'000'000, 300'000'000);
        } else {
            e.seeds = testing::scaled(2'000, 200'000, 20'000'000);
        }
        const testing::result r = testing::explore(e, [&] {
            testing::scheduled_world w;
            body();
            testing::require(w.waiting.empty(), "what was retired was freed");
            w.end_elsewhere();
            testing::require(w.heap.live_blocks() == 0, "no memory is left");
            testing::require(w.slots.empty(), "no slot is left");
        });
        EXPECT_TRUE(r.ok) << r.report;
        if (!r.ok) return;
    }
}

} // namespace crestdb::testing
