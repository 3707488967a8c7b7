// SPDX-License-Identifier: MIT
//
// The adaptive radix tree under the deterministic scheduler: a few operations at a time, on nodes that
// grow, shrink, part and join under readers and writers, and a mover that follows the arming protocol
// between any two of their steps.
#include "crestdb/tree/adaptive_radix_tree.hpp"

#include "testing/index_schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using testing::key_operation;
using testing::scenario;

template <class Links>
class radix_tree_schedules : public ::testing::Test {
  public:
    using protocol = testing::scheduled_protocol<testing::word_kind::arming>;
    using tree_type =
        crestdb::adaptive_radix_tree<protocol, Links, testing::scheduled_surroundings>;
    using recorder = testing::index_recorder<tree_type>;

    template <class Scene>
    static void explore(const std::string& name, const std::vector<std::string>& keys,
                        Scene&& scene) {
        const testing::result r = testing::explore_index_at_random<tree_type>(
            name + (Links::movable ? " movable" : ""), 1'500, keys, scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
    static void explore(const char* what, const scenario& s) {
        explore(what, s.keys(),
                [&](tree_type& tree, recorder& record) { testing::play(s, tree, record); });
    }
    // Another thread scans meanwhile, and must not miss these.
    static void explore_scan(const char* what, const scenario& s,
                             const std::vector<std::string>& stay) {
        explore(what, s.keys(), [&](tree_type& tree, recorder& record) {
            testing::play(s, tree, record);
            testing::spawn([&] {
                const std::vector<std::string> seen = testing::scanned(tree);
                for (const std::string& key : stay)
                    testing::require(std::binary_search(seen.begin(), seen.end(), key),
                                     "a key that stays is not missed");
            });
        });
    }
};

using both = ::testing::Types<crestdb::immobile_links, crestdb::movable_links>;
TYPED_TEST_SUITE(radix_tree_schedules, both);

constexpr auto get = key_operation::get;
constexpr auto put = key_operation::put;
constexpr auto update = key_operation::update;
constexpr auto modify = key_operation::modify;
constexpr auto erase = key_operation::erase;

TYPED_TEST(radix_tree_schedules, the_first_key_comes_and_goes) {
    this->explore("first key", {.before = {},
                                .threads = {{{put, "a"}, {erase, "a"}},
                                            {{put, "a"}, {get, "a"}},
                                            {{modify, "a"}, {put, "b"}, {get, "a"}}}});
}

// The fifth child of a node of four.
TYPED_TEST(radix_tree_schedules, a_node_grows_under_a_reader_and_a_writer) {
    this->explore("growth", {.before = {"a", "b", "c", "d"},
                             .threads = {{{put, "e"}},
                                         {{put, "d"}, {get, "d"}, {put, "f"}},
                                         {{get, "b"}, {modify, "b"}, {erase, "a"}}}});
}

TYPED_TEST(radix_tree_schedules, a_node_shrinks_under_a_reader_and_a_writer) {
    this->explore("shrinking", {.before = {"a", "b", "c", "d", "e"},
                                .threads = {{{erase, "a"}, {erase, "b"}},
                                            {{get, "c"}, {put, "b"}, {get, "c"}},
                                            {{erase, "d"}, {get, "e"}}}});
}

// A leaf becomes two below a new node, and one again.
TYPED_TEST(radix_tree_schedules, leaves_part_and_join) {
    this->explore("leaves", {.before = {"same1", "x"},
                             .threads = {{{put, "same2"}, {erase, "same2"}},
                                         {{get, "same1"}, {update, "same1"}, {get, "same1"}},
                                         {{put, "same"}, {erase, "same1"}}}});
}

// Prefixes of more than eight bytes are blocks of memory.
TYPED_TEST(radix_tree_schedules, prefixes_part_and_join) {
    const std::string same(20, 's');
    this->explore("prefixes",
                  {.before = {same + "1", same + "2"},
                   .threads = {{{put, same.substr(0, 10)}, {erase, same.substr(0, 10)}},
                               {{get, same + "1"}, {get, same + "2"}},
                               {{put, same.substr(0, 15) + "x"}, {erase, same + "2"}}}});
}

// Both nodes of a joint are changed by others meanwhile.
TYPED_TEST(radix_tree_schedules, nodes_join_while_they_change) {
    this->explore("joint", {.before = {"ab1", "ab2", "ac"},
                            .threads = {{{erase, "ac"}},
                                        {{erase, "ab1"}, {put, "ab3"}},
                                        {{put, "ad"}, {get, "ab2"}, {get, "ad"}}}});
}

TYPED_TEST(radix_tree_schedules, everything_disappears) {
    this->explore("all empty", {.before = {"a", "ab", "abc"},
                                .threads = {{{erase, "a"}, {erase, "abc"}},
                                            {{erase, "ab"}},
                                            {{put, ""}, {get, "abc"}, {erase, ""}}}});
}

// Which operations on which keys is the scheduler's choice, too.
TYPED_TEST(radix_tree_schedules, any_operations) {
    const std::vector<std::string> keys = {"", "a", "ab", "abcdefghijkl", "abcdefghijkm", "b"};
    this->explore("any operations", keys, [&](auto& tree, auto& record) {
        testing::play(testing::any_scenario(keys), tree, record);
    });
}

// Keys that stay are reported once each and in order, whatever grows, shrinks, parts and joins
// beside them.
TYPED_TEST(radix_tree_schedules, scan_neither_misses_nor_repeats) {
    this->explore_scan("scan",
                       {.before = {"a", "aab", "aac", "b", "d", "aad", "c"},
                        .threads = {{{erase, "c"}, {put, "e"}, {put, "f"}, {put, "g"}},
                                    {{put, "aax"}, {erase, "aad"}, {put, "ab"}, {erase, "aax"}}}},
                       {"a", "aab", "aac", "b", "d"});
}

// The uppermost node goes, and what was below it is not missed.
TYPED_TEST(radix_tree_schedules, scan_of_a_tree_whose_top_changes) {
    this->explore_scan("top",
                       {.before = {"ab1", "ab2", "c"}, .threads = {{{erase, "c"}, {put, "a"}}}},
                       {"ab1", "ab2"});
}

} // namespace
