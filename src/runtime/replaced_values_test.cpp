// SPDX-License-Identifier: MIT
//
// Values that are replaced, in a whole process: what NEW takes for them. In child processes, each with a runtime
// of its own.
#include "testing/child_process.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace {

using obase::testing::require;
using obase::testing::run_in_child;

struct value {
    char bytes[1000];
};

} // namespace

template <>
struct obase::is_relocatable<value> : std::true_type {};

namespace {

template <class Protocol>
class replaced_values : public ::testing::Test {
  public:
    using guide = obase::guide<value, Protocol>;
    static constexpr std::size_t count = 20'000;

    static obase::runtime& runtime() {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = obase::run_mode::move;
        auto& made = obase::runtime::of<Protocol>();
        require(made.configure(settings).empty(), "configure");
        return made;
    }
    static guide make() { return obase::make_managed<value, Protocol>(); }
};

using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(replaced_values, protocols);

// Property: after more values than there are now, some in every run, NEW has no more memory than those need, a
// few places aside: though in every run a value was made in the window that ends.
TYPED_TEST(replaced_values, take_what_they_need) {
    const auto child = run_in_child([] {
        using fixture = TestFixture;
        auto& runtime = fixture::runtime();
        std::vector<typename fixture::guide> values(fixture::count);
        std::minstd_rand random(1);
        {
            std::vector<typename fixture::guide> more(fixture::count / 2);
            for (std::size_t i = 0; i < fixture::count; ++i) {
                values[i] = fixture::make();
                if (i % 2 == 0) more[i / 2] = fixture::make();
            }
            for (auto& one : more) obase::retire(one.release());
        }
        for (std::size_t i = 0; i < fixture::count / 8; ++i)
            obase::retire(
                std::exchange(values[random() % fixture::count], fixture::make()).release());
        const auto in_new = [&] { return runtime.statistics().heaps[0]; };
        require(runtime.collect_now() == obase::collect_result::done, "a window");
        require(in_new().live_objects > fixture::count / 10 * 9, "values are in NEW");
        require(in_new().extent_bytes < in_new().live_bytes / 20 * 22 + 1'000'000,
                "free places were given back");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
