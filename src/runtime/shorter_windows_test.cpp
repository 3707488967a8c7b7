// SPDX-License-Identifier: MIT
//
// In the running system windows in which all is touched get shorter under the policy graded, unless that takes too much
// of the processor. A busy machine makes windows longer and never shorter.
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

struct item {
    std::uint64_t id;
    std::uint64_t filler[7];
};

constexpr double asked = 1; // seconds

void are_as_short_as_the_processor_allows(const char* memory) {
    auto& runtime = obase::runtime::get();
    obase::options settings = obase::options::from_environment();
    settings.policy = "graded";
    settings.memory = memory;
    settings.window_seconds = asked;
    settings.window_cpu_share = 1;
    ASSERT_EQ(runtime.configure(settings), "");
    std::vector<obase::guide<item>> items;
    for (std::uint64_t i = 0; i < 20'000; ++i)
        items.emplace_back(obase::make_managed<item>(item{i, {}}));
    std::atomic<bool> done{false};
    std::thread user([&] {
        while (!done.load()) {
            for (const auto& one : items) {
                const obase::scope s;
                EXPECT_LT(one->id, items.size());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    const auto next = [&] {
        const auto before = runtime.statistics().windows;
        while (runtime.statistics().windows == before)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return runtime.statistics().window_seconds;
    };
    const auto wait_for_short_ones = [&] {
        for (int in_a_row = 0; in_a_row < 3;) in_a_row = next() > asked / 4 ? 0 : in_a_row + 1;
    };
    wait_for_short_ones();
    for (const double share : {0., 1e-6}) {
        settings.window_cpu_share = share;
        EXPECT_EQ(runtime.configure(settings), "");
        next(); // it had begun before
        EXPECT_GE(next(), .99 * asked) << share;
    }
    settings.window_cpu_share = 1;
    EXPECT_EQ(runtime.configure(settings), "");
    wait_for_short_ones();
    done = true;
    user.join();
    runtime.stop();
}

TEST(shorter_windows, as_far_as_the_processor_allows) {
    are_as_short_as_the_processor_allows("none");
}

// A program that rests has longer ones within a budget; this one does not rest.
TEST(shorter_windows, also_within_a_budget) { are_as_short_as_the_processor_allows("1000G"); }

} // namespace
