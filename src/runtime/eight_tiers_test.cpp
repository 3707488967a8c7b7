// SPDX-License-Identifier: MIT
//
// A policy and a backend that the library does not have, in the real runtime, for both protocols:
// objects spread over eight tiers by how often they are touched; the policy's state follows moved slots
// and ends with them; what leaves memory is asked for by tier and place; nothing is lost.
#include "backend/backends.hpp"
#include "policy/policies.hpp"
#include "testing/eight_tiers.hpp"
#include "testing/noting_backend.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <type_traits>
#include <vector>

using namespace obase;
using obase::testing::eight_tiers;
using obase::testing::noting_backend;

namespace {

constexpr unsigned groups = 8;          // group g is touched in g of 7 windows
constexpr std::size_t per_group = 2000; // several runs

struct item {
    std::uint64_t id;
    std::uint64_t filler[7];
};

template <class Protocol>
struct parent_of {
    std::uint64_t id = 0;
    guide<item, Protocol> children[4];
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<parent_of<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class eight_tiers_of : public ::testing::Test {
  public:
    using item_guide = guide<item, Protocol>;
    using parent = parent_of<Protocol>;
    using parent_guide = guide<parent, Protocol>;

    static runtime& the_runtime() {
        runtime& made = runtime::of<Protocol>();
        static const bool configured = [&] {
            policy::policies().add("eight", eight_tiers::make); // false the second time
            backend::backends().add("noting", noting_backend::make);
            options settings = options::from_environment();
            settings.window_seconds = 1e6;
            settings.policy = "eight";
            settings.backend = "noting";
            settings.memory = "none"; // whatever limit the control group has
            EXPECT_EQ(made.configure(settings), "");
            return true;
        }();
        (void)configured;
        return made;
    }
    void SetUp() override { the_runtime(); }

    static void collect() { ASSERT_EQ(the_runtime().collect_now(), collect_result::done); }
    static void touch(const item_guide& one, std::uint64_t id) { ASSERT_EQ(one->id, id); }
    static bool touched_in(unsigned group, unsigned window) { return window * group % 7 < group; }
    static double mean_tier(const std::vector<item_guide>& items, unsigned group) {
        double sum = 0;
        for (std::size_t i = group; i < items.size(); i += groups)
            sum += the_runtime().heap_of(items[i].peek());
        return sum / static_cast<double>(items.size() / groups);
    }
};

using protocols = ::testing::Types<arming, atc>;
TYPED_TEST_SUITE(eight_tiers_of, protocols);

TYPED_TEST(eight_tiers_of, objects_spread_by_how_often_they_are_touched) {
    using test = eight_tiers_of<TypeParam>;
    std::vector<typename test::item_guide> items;
    items.reserve(groups * per_group);
    const std::uint64_t began = eight_tiers::began;
    for (std::uint64_t i = 0; i < groups * per_group; ++i)
        items.emplace_back(make_managed<item, TypeParam>(item{i, {}}));
    for (unsigned window = 0; window < 28; ++window) {
        {
            const typename TypeParam::scope s;
            for (std::size_t i = 0; i < items.size(); ++i)
                if (test::touched_in(i % groups, window)) test::touch(items[i], i);
        }
        test::collect();
    }
    EXPECT_EQ(eight_tiers::began - began, items.size()) << "each slot began once";
    EXPECT_EQ(test::mean_tier(items, 0), 7);
    EXPECT_EQ(test::mean_tier(items, 7), 1);
    for (unsigned group = 1; group < groups; ++group)
        EXPECT_LE(test::mean_tier(items, group), test::mean_tier(items, group - 1)) << group;
    std::set<int> tiers;
    for (const auto& one : items) tiers.insert(test::the_runtime().heap_of(one.peek()));
    EXPECT_GE(tiers.size(), 5u);
    EXPECT_FALSE(tiers.contains(0)) << "all have left the first tier";

    const statistics now = test::the_runtime().statistics();
    EXPECT_EQ(now.heap_count, 9u);
    EXPECT_EQ(now.heap_name(7), "t7");
    EXPECT_EQ(now.heap_name(8), "large");
    EXPECT_GE(now.moved("new", "t7"), per_group);
    EXPECT_GE(now.moved("new", "t1"), per_group);
    EXPECT_GE(now.moved_objects, items.size());
    EXPECT_GT(now.slot_state_bytes, 0u);
    EXPECT_LE(static_cast<double>(now.slot_state_bytes + now.soda_bytes) /
                  static_cast<double>(items.size()),
              2.5);
    const typename TypeParam::scope s;
    for (std::size_t i = 0; i < items.size(); ++i) test::touch(items[i], i);
}

// Parents move, and their slots with them: no child begins anew.
TYPED_TEST(eight_tiers_of, state_follows_the_slots_of_moved_objects) {
    using test = eight_tiers_of<TypeParam>;
    test::collect(); // the slots of the test before have ended
    std::vector<typename test::parent_guide> parents(500);
    const std::uint64_t began = eight_tiers::began;
    for (std::uint64_t i = 0; i < parents.size(); ++i) {
        parents[i] = make_managed<typename test::parent, TypeParam>();
        const typename TypeParam::scope s;
        parents[i]->id = i;
        for (std::uint64_t k = 0; k < 4; ++k)
            parents[i]->children[k] = make_managed<item, TypeParam>(item{4 * i + k, {}});
    }
    const auto window = [&](bool use_them) {
        if (use_them) {
            const typename TypeParam::scope s;
            for (std::uint64_t i = 0; i < parents.size(); ++i)
                for (std::uint64_t k = 0; k < 4; ++k)
                    test::touch(parents[i]->children[k], 4 * i + k);
        }
        test::collect();
    };
    const std::uint64_t moved = test::the_runtime().statistics().moved_objects;
    // Up to t1, then down a few tiers, with the parents.
    for (int i = 0; i < 6; ++i) window(true);
    for (int i = 0; i < 3; ++i) window(false);
    for (int i = 0; i < 3; ++i) window(true);
    EXPECT_GE(test::the_runtime().statistics().moved_objects - moved, 3 * 5 * parents.size());
    EXPECT_EQ(eight_tiers::began - began, 5 * parents.size());
    window(true);
}

// A slot that begins where another has ended has none of its state.
TYPED_TEST(eight_tiers_of, state_ends_with_its_slot) {
    using test = eight_tiers_of<TypeParam>;
    constexpr std::size_t count = 1000;
    test::collect(); // the slots of the test before have ended
    std::vector<typename test::item_guide> items;
    items.reserve(count);
    const std::uint64_t began = eight_tiers::began;
    for (std::uint64_t round = 1; round <= 3; ++round) {
        items.clear(); // the capacity stays: the same addresses
        for (std::uint64_t i = 0; i < count; ++i)
            items.emplace_back(make_managed<item, TypeParam>(item{i, {}}));
        for (int i = 0; i < 3; ++i) test::collect();
        EXPECT_EQ(eight_tiers::began - began, round * count);
    }
    // Ended before a scan, begun after it.
    const auto begin_again = [&](std::uint64_t first) {
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(first), items.end());
        test::collect();
        for (std::uint64_t i = first; i < count; ++i)
            items.emplace_back(make_managed<item, TypeParam>(item{i, {}}));
        {
            const typename TypeParam::scope s;
            for (std::uint64_t i = 0; i < count; ++i) test::touch(items[i], i);
        }
        test::collect();
    };
    begin_again(0);
    EXPECT_EQ(eight_tiers::began - began, 4 * count) << "also what was touched at once";
    begin_again(1);
    EXPECT_EQ(eight_tiers::began - began, 5 * count - 1)
        << "also where a scan comes upon no word behind the slot that stays";
}

TYPED_TEST(eight_tiers_of, the_backend_is_asked_for_tier_and_place) {
    using test = eight_tiers_of<TypeParam>;
    runtime& runtime = test::the_runtime();
    std::vector<typename test::item_guide> items;
    for (std::uint64_t i = 0; i < 4000; ++i)
        items.emplace_back(make_managed<item, TypeParam>(item{i, {}}));
    for (int i = 0; i < 6; ++i) test::collect();
    EXPECT_EQ(runtime.heap_of(items[0].peek()), 7);
    const std::uint64_t skipped = noting_backend::skipped, told = noting_backend::windows;
    const std::uint64_t asked = noting_backend::asked_to_leave;
    const std::uint64_t seen = eight_tiers::left_bytes_seen;
    test::collect();
    EXPECT_EQ(noting_backend::skipped, skipped + 1) << "mode move";
    runtime.set_mode(run_mode::hint);
    for (int i = 0; i < 3; ++i) test::collect();
    runtime.set_mode(run_mode::move);
    EXPECT_EQ(noting_backend::windows, told + 3);
    EXPECT_EQ(noting_backend::tiers_seen, 8u);
    EXPECT_GE(noting_backend::asked_to_leave - asked, 4000 * sizeof(item));
    EXPECT_GT(runtime.statistics().paged_out_bytes, 0u);
    test::collect();
    EXPECT_EQ(eight_tiers::left_bytes_seen - seen, noting_backend::asked_to_leave - asked)
        << "the policy is told what left";
    const typename TypeParam::scope s;
    for (std::uint64_t i = 0; i < items.size(); ++i) test::touch(items[i], i);
}

TYPED_TEST(eight_tiers_of, policy_and_backend_cannot_change_after_the_first_object) {
    using test = eight_tiers_of<TypeParam>;
    typename test::item_guide one;
    one = make_managed<item, TypeParam>(item{1, {}});
    options settings = test::the_runtime().settings();
    settings.policy = "papers";
    EXPECT_NE(test::the_runtime().configure(settings).find("policy cannot change"),
              std::string::npos);
    settings.policy = "nine";
    EXPECT_NE(
        test::the_runtime().configure(settings).find("policy (OBASE_POLICY): there is no 'nine'"),
        std::string::npos);
}

} // namespace
