// SPDX-License-Identifier: MIT
//
// The B+tree under the deterministic scheduler: nodes of two entries, a few operations at a time,
// and a mover that follows the arming protocol between any two of their steps.
#include "crestdb/tree/occ_btree.hpp"

#include "testing/index_schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using testing::key_operation;
using testing::scenario;

struct smallest_shape : testing::scheduled_surroundings {
    static constexpr unsigned leaf_entries = 2;
    static constexpr unsigned fanout = 3;
};
using protocol = testing::scheduled_protocol<testing::word_kind::arming>;
using tree_type = crestdb::basic_occ_btree<protocol, smallest_shape>;
using recorder = testing::index_recorder<tree_type>;

template <class Scene>
void explore(const char* name, const std::vector<std::string>& keys, Scene&& scene) {
    const testing::result r = testing::explore_index_at_random<tree_type>(name, 3'000, keys, scene);
    EXPECT_TRUE(r.ok) << r.report;
}
void explore(const char* name, const scenario& s) {
    explore(name, s.keys(),
            [&](tree_type& tree, recorder& record) { testing::play(s, tree, record); });
}

// The third key of a leaf splits it, and the third leaf the root.
TEST(btree_schedules, a_leaf_is_split_under_a_reader_and_a_writer) {
    explore("leaf split",
            {.before = {"b", "d"},
             .threads = {
                 {{key_operation::put, "c"}},
                 {{key_operation::put, "d"}, {key_operation::get, "d"}, {key_operation::get, "b"}},
                 {{key_operation::modify, "b"}, {key_operation::erase, "d"}}}});
}

TEST(btree_schedules, the_root_grows_under_everybody) {
    explore("root growth", {.before = {"a", "b", "c", "d", "e"},
                            .threads = {{{key_operation::put, "f"}, {key_operation::put, "g"}},
                                        {{key_operation::put, "bb"}, {key_operation::get, "e"}},
                                        {{key_operation::get, "a"},
                                         {key_operation::update, "e"},
                                         {key_operation::get, "g"}}}});
}

TEST(btree_schedules, erased_and_inserted_again_in_the_same_slot) {
    explore(
        "slot reuse",
        {.before = {"a", "b"},
         .threads = {
             {{key_operation::erase, "a"}, {key_operation::put, "aa"}, {key_operation::get, "aa"}},
             {{key_operation::put, "a"}, {key_operation::get, "a"}},
             {{key_operation::update, "a"}, {key_operation::modify, "a"}}}});
}

TEST(btree_schedules, leaves_disappear_under_readers_and_insertions) {
    explore(
        "empty leaves",
        {.before = {"a", "b", "c", "d", "e", "f"},
         .threads = {
             {{key_operation::erase, "c"},
              {key_operation::erase, "d"},
              {key_operation::erase, "e"}},
             {{key_operation::put, "cc"}, {key_operation::erase, "cc"}, {key_operation::get, "f"}},
             {{key_operation::get, "e"}, {key_operation::put, "d"}, {key_operation::get, "d"}}}});
}

TEST(btree_schedules, everything_disappears) {
    explore("all empty", {.before = {"a", "b", "c", "d"},
                          .threads = {{{key_operation::erase, "a"}, {key_operation::erase, "b"}},
                                      {{key_operation::erase, "d"}, {key_operation::erase, "c"}},
                                      {{key_operation::put, "x"},
                                       {key_operation::get, "a"},
                                       {key_operation::erase, "x"}}}});
}

// Prefixes get longer and shorter, heads are equal.
TEST(btree_schedules, heads_change_under_a_reader) {
    const std::string same(20, 's'), zero(1, '\0');
    explore("heads",
            {.before = {same, same + "b"},
             .threads = {{{key_operation::put, same + "a"}, {key_operation::put, "s"}},
                         {{key_operation::get, same + "b"}, {key_operation::put, same + zero}},
                         {{key_operation::get, same}, {key_operation::erase, same + "b"}}}});
}

// Which operations on which keys is the scheduler's choice, too.
TEST(btree_schedules, any_operations) {
    const std::vector<std::string> keys = {"a", "aa", "b", "c"};
    explore("any operations", keys, [&](tree_type& tree, recorder& record) {
        testing::play(testing::any_scenario(keys), tree, record);
    });
}

// Keys that stay are reported once each and in order, whatever is split and removed beside them.
TEST(btree_schedules, scan_neither_misses_nor_repeats) {
    const std::vector<std::string> stay = {"a", "b", "e", "g"};
    const scenario others = {
        .before = {"a", "b", "c", "d", "e", "f", "g"},
        .threads = {
            {{key_operation::erase, "c"}, {key_operation::erase, "d"}, {key_operation::put, "dd"}},
            {{key_operation::put, "aa"},
             {key_operation::put, "ff"},
             {key_operation::erase, "f"},
             {key_operation::put, "e"}}}};
    explore("scan", others.keys(), [&](tree_type& tree, recorder& record) {
        testing::play(others, tree, record);
        testing::spawn([&] {
            const std::vector<std::string> seen = testing::scanned(tree);
            for (const std::string& key : stay)
                testing::require(std::binary_search(seen.begin(), seen.end(), key),
                                 "a key that stays is not missed");
        });
    });
}

// A leaf's range grows when its neighbours have gone, also after a scan has noted where it ends.
TEST(btree_schedules, scan_of_a_leaf_whose_range_grows) {
    const scenario others = {.before = {"a", "b", "c", "d", "e", "f", "g", "h"},
                             .threads = {{{key_operation::erase, "c"},
                                          {key_operation::erase, "d"},
                                          {key_operation::put, "c"}}},
                             .mover = false};
    explore("range grows", others.keys(), [&](tree_type& tree, recorder& record) {
        testing::play(others, tree, record);
        testing::spawn([&] { testing::scanned(tree); });
    });
}

} // namespace
