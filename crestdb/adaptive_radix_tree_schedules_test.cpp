// SPDX-License-Identifier: MIT
//
// The adaptive radix tree under the deterministic scheduler, with nodes that stay and nodes that
// move: nodes that grow, shrink, part and join under readers and writers, and a mover that follows
// the arming protocol between any two of their steps (testing/ordered_index_schedules.hpp says what is checked).
#include "crestdb/adaptive_radix_tree.hpp"

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

struct scheduled_shape {
    template <class T>
    using atomic = platform::atomic<T>;
    static void wait(unsigned) noexcept { platform::pause(); }
};

template <class Links>
class radix_tree_schedules : public ::testing::Test {
  public:
    using tree_type = crestdb::adaptive_radix_tree<testing::scheduled, Links, scheduled_shape>;
    static void explore(const char* what, const scenario& s) {
        explore_all_ways(name(what).c_str(), [&] { testing::run_scenario<tree_type>(s); }, seeds);
    }
    static std::string name(const char* what) {
        return std::string(what) + (Links::movable ? " movable" : "");
    }
    static const std::uint64_t seeds;
};
template <class Links>
const std::uint64_t radix_tree_schedules<Links>::seeds = testing::scaled(1'500, 60'000, 3'000'000);

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
    explore_all_ways(
        this->name("any operations").c_str(),
        [] {
            static const char* const keys[] = {"", "a", "ab", "abcdefghijkl", "abcdefghijkm", "b"};
            scenario s;
            for (const char* key : keys)
                if (testing::choose(2) != 0) s.before.emplace_back(key);
            for (unsigned t = 0; t < 3; ++t) {
                s.threads.emplace_back();
                for (unsigned i = 0; i < 2; ++i)
                    s.threads.back().emplace_back(
                        static_cast<key_operation::kind>(testing::choose(5)),
                        keys[testing::choose(6)]);
            }
            s.mover = testing::choose(2) != 0;
            testing::run_scenario<typename TestFixture::tree_type>(s);
        },
        this->seeds);
}

template <class Tree>
void scan_sees(const Tree& tree, const std::vector<std::string>& stay) {
    std::vector<std::string> seen;
    tree.scan("", SIZE_MAX, [&](std::string_view k, std::string_view v) {
        testing::require(number_in(v) <= 1, "a value that was written");
        seen.emplace_back(k);
    });
    for (std::size_t i = 1; i < seen.size(); ++i)
        testing::require(seen[i - 1] < seen[i], "ascending, none twice");
    for (const std::string& key : stay)
        testing::require(std::binary_search(seen.begin(), seen.end(), key),
                         "a key that stays is not missed");
}

// Keys that stay are reported once each and in order, whatever grows, shrinks, parts and joins
// beside them.
TYPED_TEST(radix_tree_schedules, scan_neither_misses_nor_repeats) {
    explore_all_ways(
        this->name("scan").c_str(),
        [] {
            const execution world;
            typename TestFixture::tree_type tree;
            const std::vector<std::string> stay{"a", "aab", "aac", "b", "d"};
            for (const std::string& key : stay) tree.put(key, "0");
            for (const char* key : {"aad", "c"}) tree.put(key, "0");
            testing::spawn([&] {
                tree.erase("c");
                tree.put("e", "1");
                tree.put("f", "1");
                tree.put("g", "1");
            });
            testing::spawn([&] {
                tree.put("aax", "1");
                tree.erase("aad");
                tree.put("ab", "1");
                tree.erase("aax");
            });
            testing::spawn([&] { scan_sees(tree, stay); });
            testing::spawn("mover", [] { testing::scheduled::move_everything(); });
            testing::run();
            testing::require(testing::everything(tree).size() == 9, "all changes are there");
        },
        this->seeds);
}

// The uppermost node goes, and what was below it is not missed.
TYPED_TEST(radix_tree_schedules, scan_of_a_tree_whose_top_changes) {
    explore_all_ways(
        this->name("top").c_str(),
        [] {
            const execution world;
            typename TestFixture::tree_type tree;
            const std::vector<std::string> stay{"ab1", "ab2"};
            for (const std::string& key : stay) tree.put(key, "0");
            tree.put("c", "0");
            testing::spawn([&] {
                tree.erase("c");
                tree.put("a", "1");
            });
            testing::spawn([&] { scan_sees(tree, stay); });
            testing::spawn("mover", [] { testing::scheduled::move_everything(); });
            testing::run();
            testing::require(testing::everything(tree).size() == 3, "all changes are there");
        },
        this->seeds);
}

} // namespace
} // namespace obase
