// SPDX-License-Identifier: MIT
#include "tools/workload/mixgraph.hpp"

#include "tools/workload/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using namespace workload;

TEST(Mixgraph, KnowsTheGeneratorOfItsKeys) {
    for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, 689ULL, 40'000'000ULL, ~0ULL})
        EXPECT_EQ(first_of_mt19937_64(seed), std::mt19937_64(seed)()) << seed;
}

// The two-term exponential, in whole multiples of the least weight; the shuffle changes the order
// only.
TEST(Mixgraph, RangesHaveTheirWeights) {
    const mixgraph model({.records = 3'000'000});
    std::vector<double> expected, found;
    const auto weight = [](int r) {
        return 14.18 * std::exp(-2.917 * r) + .0164 * std::exp(-.08082 * r);
    };
    double sum = 0;
    for (int r = 1; r <= 30; ++r) {
        expected.push_back(std::floor(weight(r) * (std::floor(1 / weight(30)) + 1)));
        sum += expected.back();
    }
    EXPECT_EQ(expected.back(), 1);
    for (std::uint32_t r = 0; r < 30; ++r) found.push_back(model.share_of_range(r) * sum);
    EXPECT_FALSE(std::is_sorted(found.begin(), found.end()));
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    for (std::size_t r = 0; r < 30; ++r) EXPECT_NEAR(found[r], expected[r], 1e-6) << r;
    EXPECT_GT(found.back() / sum, .8);
}

// All numbers once: exact shares of operations, keys in their ranges, sizes by the formula.
TEST(Mixgraph, EachNumberIsWhatTheFormulasSay) {
    constexpr std::uint64_t records = 300'000;
    const mixgraph model({.records = records});
    EXPECT_EQ(model.keys_per_range(), 10'000U);
    std::array<std::uint64_t, operation_count> seen{};
    for (std::uint64_t n = 0; n < records; ++n) {
        const mixgraph_request r = model.of_number(n);
        ++seen.at(static_cast<std::size_t>(r.what));
        ASSERT_LT(r.key, records);
        const double u = static_cast<double>(n) / records;
        if (n % 1000 == 7) {
            const double in_range = static_cast<double>(n % 10'000) / 10'000;
            const auto seed =
                static_cast<std::uint64_t>(std::ceil(std::pow(in_range / .002312, 1 / .3467)));
            ASSERT_EQ(r.key % 10'000, std::mt19937_64(seed)() % 10'000) << n;
        }
        if (r.what == operation::update && n > 0) {
            const double size = std::ceil(25.45 * (std::pow(u, -.2615) - 1) / .2615);
            ASSERT_EQ(r.value_size, std::max(size, 10.)) << n;
        }
        if (r.what == operation::scan) {
            ASSERT_LT(r.scan_length, 10'000U);
        }
    }
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::read)], records / 1000 * 850);
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::update)], records / 1000 * 140);
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::scan)], records / 1000 * 10);
}

TEST(Mixgraph, UniformWithinARangeWithoutAKeyDistribution) {
    const mixgraph model({.records = 3000, .key_a = 0});
    for (std::uint64_t n = 0; n < 3000; ++n) EXPECT_EQ(model.of_number(n).key % 100, n % 100);
}

TEST(Mixgraph, Refuses) {
    EXPECT_THROW(mixgraph({.records = 29}), std::invalid_argument);
    EXPECT_THROW(mixgraph({.records = 100, .ranges = 0}), std::invalid_argument);
    EXPECT_THROW(mixgraph({.records = 100, .get = -1}), std::invalid_argument);
    EXPECT_THROW(mixgraph({.records = 100, .get = 0, .put = 0, .seek = 0}), std::invalid_argument);
    EXPECT_THROW(mixgraph({.records = 100, .longest_scan = 0}), std::invalid_argument);
    EXPECT_THROW(mixgraph({.records = 100, .range_a = 0, .range_c = 0}), std::invalid_argument);
}

// What db_bench itself sent: the same ranges, keys and sizes.
class MixgraphTrace : public ::testing::Test {
  protected:
    void SetUp() override {
        const char* folder = std::getenv("OBASE_TEST_DATA");
        if (folder == nullptr) GTEST_SKIP() << "OBASE_TEST_DATA is not set";
        path_ = std::filesystem::path(folder) /
                "mixgraph/dbbench7.8.3_prefix_dist_num5M_1Mops_seed1.csv.zst";
        if (!std::filesystem::exists(path_)) GTEST_SKIP() << "no mixgraph trace";
    }
    std::filesystem::path path_;
};

// Keys of a trace are numbered by their first appearance, so what is compared is how often the most
// frequent are asked for, and the sizes.
TEST_F(MixgraphTrace, HasTheModelsPopularityAndSizes) {
    const trace recorded = read_trace(path_.string());
    const std::uint64_t operations = recorded.entries().size();
    const mixgraph model({.records = 5'000'000});
    random_stream random(1);
    std::vector<std::uint32_t> in_trace(recorded.keys()), in_model(5'000'000);
    double trace_bytes = 0, model_bytes = 0;
    std::uint64_t trace_puts = 0, model_puts = 0, model_seeks = 0;
    for (const trace_entry& e : recorded.entries()) {
        ++in_trace[e.key];
        if (e.what != operation::update) continue;
        ++trace_puts;
        trace_bytes += e.value_length;
    }
    for (std::uint64_t i = 0; i < operations; ++i) {
        const mixgraph_request r = model.next(random);
        ++in_model[r.key];
        model_seeks += r.what == operation::scan;
        if (r.what != operation::update) continue;
        ++model_puts;
        model_bytes += r.value_size;
    }
    EXPECT_NEAR(static_cast<double>(trace_puts), static_cast<double>(model_puts), 2500);
    EXPECT_NEAR(static_cast<double>(model_seeks), 10'155, 600);
    EXPECT_NEAR(trace_bytes / static_cast<double>(trace_puts),
                model_bytes / static_cast<double>(model_puts), 1);
    std::sort(in_trace.rbegin(), in_trace.rend());
    std::sort(in_model.rbegin(), in_model.rend());
    std::uint64_t from_trace = 0, from_model = 0;
    std::size_t rank = 0;
    for (const std::size_t top : {1U, 10U, 100U, 1000U, 10'000U, 100'000U}) {
        for (; rank < top; ++rank) {
            from_trace += in_trace[rank];
            from_model += in_model[rank];
        }
        EXPECT_NEAR(static_cast<double>(from_trace), static_cast<double>(from_model),
                    5 * std::sqrt(2. * static_cast<double>(from_model)))
            << "the " << top << " most popular";
    }
}

} // namespace
