// SPDX-License-Identifier: MIT
//
// In the running system windows are longer while the program rests, if there is a budget of memory and it is not
// passed. The machine can make windows longer, and never shorter.
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

struct item {
    std::uint64_t id;
};

constexpr double length = .01; // seconds of a window
constexpr double longest = 8;  // as program_time.hpp has it

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

TEST(resting_program, has_few_windows_within_its_budget) {
    auto& runtime = obase::runtime::get();
    obase::options settings = obase::options::from_environment();
    settings.memory = "1000G";
    settings.window_seconds = length;
    ASSERT_EQ(runtime.configure(settings), "");
    std::vector<obase::guide<item>> items;
    for (std::uint64_t i = 0; i < 1000; ++i) items.emplace_back(obase::make_managed<item>(item{i}));
    const auto windows = [&] { return runtime.statistics().windows; };
    const auto run = [&] {
        for (const std::uint64_t until = windows() + 5; windows() < until;)
            for (const auto& one : items) {
                const obase::scope s;
                EXPECT_LT(one->id, items.size());
            }
    };
    const auto rest = [&] { // in one sleep, which takes no time of a processor
        const auto before = windows();
        const double began = now();
        std::this_thread::sleep_for(std::chrono::duration<double>(150 * length));
        const auto passed = static_cast<double>(windows() - before);
        // One was nearly over, and that of the last work is another.
        EXPECT_LE(passed, (now() - began) / (longest * length) + 2);
    };
    for (int i = 0; i < 3; ++i) {
        run(); // ends: while it runs, windows do
        rest();
    }
    runtime.stop();
}

} // namespace
