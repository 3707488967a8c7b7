// SPDX-License-Identifier: MIT
//
// policy::three_temperatures over a set that stays the same, in a whole process: what is hot stays where it is, and
// C_t does not cycle. In child processes, each with a runtime of its own.
#include "testing/child_process.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using obase::testing::require;
using obase::testing::run_in_child;

struct value {
    char bytes[400];
};

} // namespace

template <>
struct obase::is_relocatable<value> : std::true_type {};

namespace {

template <class Protocol>
class stationary_set : public ::testing::Test {};
using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(stationary_set, protocols);

// Property: when the set has been found nothing moves any more, HOT has no holes beyond its bound, and C_t falls to its
// lowest and stays there.
TYPED_TEST(stationary_set, stays_where_it_is) {
    const auto child = run_in_child([] {
        constexpr std::size_t count = 20'000, in_use = count / 4;
        constexpr unsigned to_settle = 8, to_watch = 18;
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = obase::run_mode::move;
        auto& runtime = obase::runtime::of<TypeParam>();
        require(runtime.configure(settings).empty(), "configure");
        std::vector<obase::guide<value, TypeParam>> values(count);
        for (auto& one : values) one = obase::make_managed<value, TypeParam>();
        std::vector<std::size_t> set(count);
        for (std::size_t i = 0; i < count; ++i) set[i] = i;
        std::minstd_rand random(1);
        std::shuffle(set.begin(), set.end(), random);
        set.resize(in_use);

        std::uint64_t moved = 0, threshold = 0;
        for (unsigned window = 0; window < to_settle + to_watch; ++window) {
            std::shuffle(set.begin(), set.end(), random);
            for (const std::size_t i : set) {
                const typename TypeParam::scope one;
                values[i]->bytes[0] = 1;
            }
            require(runtime.collect_now() == obase::collect_result::done, "a window");
            const obase::statistics now = runtime.statistics();
            if (window >= to_settle) {
                require(now.moved_objects == moved, "nothing moves");
                require(now.cold_threshold <= threshold, "C_t does not rise");
                require(now.heaps[1].live_objects == in_use, "what is in use is in HOT");
                require(now.heaps[1].hole_bytes < now.heaps[1].live_bytes / 20, "and lies densely");
            }
            moved = now.moved_objects;
            threshold = now.cold_threshold;
        }
        require(threshold == 1, "as low as it goes");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
