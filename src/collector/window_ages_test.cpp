// SPDX-License-Identifier: MIT
//
// How old an object is that was armed at the end of a window, when some windows are early.
#include "collector/window_ages.hpp"

#include <gtest/gtest.h>

#include <vector>

using obase::collector::window_ages;

namespace {

TEST(window_ages, without_early_windows_all_count) {
    window_ages ages;
    for (int i = 0; i < 10; ++i) ages.begin_window(false);
    for (const unsigned windows : {0u, 1u, 9u, 100'000u}) EXPECT_EQ(ages.whole(windows), windows);
}

// Against counting one by one, for as long as is known and beyond.
TEST(window_ages, of_the_windows_from_the_arming_on_all_but_one) {
    for (const unsigned early_between : {1u, 3u, 100u, 2000u}) {
        window_ages ages;
        std::vector<bool> early;
        for (unsigned i = 0; i < 3 * window_ages::known; ++i) {
            early.push_back(i % (early_between + 1) != 0);
            ages.begin_window(early.back());
            if (i % 997 != 0 && i + 1 != 3 * window_ages::known) continue;
            unsigned counted = 0;
            for (unsigned windows = 0; windows <= std::min(i, window_ages::known - 2); ++windows) {
                counted += !early[i - windows];
                ASSERT_EQ(ages.whole(windows), counted == 0 ? 0 : counted - 1)
                    << early_between << " " << i << " " << windows;
            }
        }
        EXPECT_EQ(ages.whole(window_ages::known - 1), ages.whole(window_ages::known - 2));
        EXPECT_EQ(ages.whole(~0u), ages.whole(window_ages::known - 2));
    }
}

} // namespace
