// SPDX-License-Identifier: MIT
//
// The B+tree under the deterministic scheduler: nodes of two entries, a few operations at a time,
// and a mover that follows the arming protocol between any two of their steps. What the operations
// returned must be what they return in some order that respects time, and no object may be used after it was moved away or freed.
#include "crestdb/occ_btree.hpp"

#include "testing/deterministic.hpp"
#include "testing/ordered_index_schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace obase {
namespace {

using platform = testing::deterministic_platform;
using testing::explore_all_ways;
using testing::key_operation;
using testing::number_in;
using testing::scenario;
using execution = testing::scheduled_execution;

struct smallest_shape {
    static constexpr unsigned leaf_entries = 2;
    static constexpr unsigned fanout = 3;
    template <class T>
    using atomic = platform::atomic<T>;
    static void wait(unsigned) noexcept { platform::pause(); }
};
using tree_type = crestdb::basic_occ_btree<testing::scheduled, smallest_shape>;

void run_scenario(const scenario& s) { testing::run_scenario<tree_type>(s); }

// The third key of a leaf splits it, and the third leaf the root.
TEST(btree_schedules, a_leaf_is_split_under_a_reader_and_a_writer) {
    explore_all_ways("leaf split", [] {
        run_scenario(
            {.before = {"b", "d"},
             .threads = {
                 {{key_operation::put, "c"}},
                 {{key_operation::put, "d"}, {key_operation::get, "d"}, {key_operation::get, "b"}},
                 {{key_operation::modify, "b"}, {key_operation::erase, "d"}}}});
    });
}

TEST(btree_schedules, the_root_grows_under_everybody) {
    explore_all_ways("root growth", [] {
        run_scenario({.before = {"a", "b", "c", "d", "e"},
                      .threads = {{{key_operation::put, "f"}, {key_operation::put, "g"}},
                                  {{key_operation::put, "bb"}, {key_operation::get, "e"}},
                                  {{key_operation::get, "a"},
                                   {key_operation::update, "e"},
                                   {key_operation::get, "g"}}}});
    });
}

TEST(btree_schedules, erased_and_inserted_again_in_the_same_slot) {
    explore_all_ways("slot reuse", [] {
        run_scenario({.before = {"a", "b"},
                      .threads = {{{key_operation::erase, "a"},
                                   {key_operation::put, "aa"},
                                   {key_operation::get, "aa"}},
                                  {{key_operation::put, "a"}, {key_operation::get, "a"}},
                                  {{key_operation::update, "a"}, {key_operation::modify, "a"}}}});
    });
}

TEST(btree_schedules, leaves_disappear_under_readers_and_insertions) {
    explore_all_ways("empty leaves", [] {
        run_scenario({.before = {"a", "b", "c", "d", "e", "f"},
                      .threads = {{{key_operation::erase, "c"},
                                   {key_operation::erase, "d"},
                                   {key_operation::erase, "e"}},
                                  {{key_operation::put, "cc"},
                                   {key_operation::erase, "cc"},
                                   {key_operation::get, "f"}},
                                  {{key_operation::get, "e"},
                                   {key_operation::put, "d"},
                                   {key_operation::get, "d"}}}});
    });
}

TEST(btree_schedules, everything_disappears) {
    explore_all_ways("all empty", [] {
        run_scenario({.before = {"a", "b", "c", "d"},
                      .threads = {{{key_operation::erase, "a"}, {key_operation::erase, "b"}},
                                  {{key_operation::erase, "d"}, {key_operation::erase, "c"}},
                                  {{key_operation::put, "x"},
                                   {key_operation::get, "a"},
                                   {key_operation::erase, "x"}}}});
    });
}

// Prefixes get longer and shorter, heads are equal.
TEST(btree_schedules, heads_change_under_a_reader) {
    const std::string same(20, 's'), zero(1, '\0');
    explore_all_ways("heads", [&] {
        run_scenario(
            {.before = {same, same + "b"},
             .threads = {{{key_operation::put, same + "a"}, {key_operation::put, "s"}},
                         {{key_operation::get, same + "b"}, {key_operation::put, same + zero}},
                         {{key_operation::get, same}, {key_operation::erase, same + "b"}}}});
    });
}

// Which operations on which keys is the scheduler's choice, too.
TEST(btree_schedules, any_operations) {
    explore_all_ways("any operations", [] {
        static const char* const keys[] = {"a", "aa", "b", "c"};
        scenario s;
        for (const char* key : keys)
            if (testing::choose(2) != 0) s.before.emplace_back(key);
        for (unsigned t = 0; t < 3; ++t) {
            s.threads.emplace_back();
            for (unsigned i = 0; i < 2; ++i)
                s.threads.back().emplace_back(static_cast<key_operation::kind>(testing::choose(5)),
                                              keys[testing::choose(4)]);
        }
        s.mover = testing::choose(2) != 0;
        run_scenario(s);
    });
}

// Keys that stay are reported once each and in order, whatever is split and removed beside them.
TEST(btree_schedules, scan_neither_misses_nor_repeats) {
    explore_all_ways("scan", [] {
        const execution world;
        tree_type tree;
        for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) tree.put(key, "0");
        testing::spawn([&] {
            tree.erase("c");
            tree.erase("d");
            tree.put("dd", "1");
        });
        testing::spawn([&] {
            tree.put("aa", "1");
            tree.put("ff", "1");
            tree.erase("f");
            tree.put("e", "1");
        });
        testing::spawn([&] {
            std::vector<std::string> seen;
            tree.scan("a", SIZE_MAX, [&](std::string_view k, std::string_view v) {
                testing::require(number_in(v) <= 1, "a value that was written");
                seen.emplace_back(k);
            });
            for (std::size_t i = 1; i < seen.size(); ++i)
                testing::require(seen[i - 1] < seen[i], "ascending, none twice");
            for (const char* key : {"a", "b", "e", "g"})
                testing::require(std::binary_search(seen.begin(), seen.end(), key),
                                 "a key that stays is not missed");
        });
        testing::spawn("mover", [] { testing::scheduled::move_everything(); });
        testing::run();
        testing::require(everything(tree).size() == 7, "all changes are there"); // a aa b dd e ff g
    });
}

// A leaf's range grows when its neighbours have gone, also after a scan has noted where it ends.
TEST(btree_schedules, scan_of_a_leaf_whose_range_grows) {
    explore_all_ways("range grows", [] {
        const execution world;
        tree_type tree;
        for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) tree.put(key, "0");
        testing::spawn([&] {
            tree.erase("c");
            tree.erase("d");
            tree.put("c", "1");
        });
        testing::spawn([&] {
            std::string last;
            tree.scan("a", SIZE_MAX, [&](std::string_view k, std::string_view) {
                testing::require(last < k, "ascending, none twice");
                last = k;
            });
        });
        testing::run();
    });
}

} // namespace
} // namespace obase
