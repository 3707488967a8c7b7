// SPDX-License-Identifier: MIT
//
// Skip lists whose searches take no lock, under the deterministic scheduler: small scenes of
// insertions, erasures and searches that meet in all ways, in memory that is reused at once and
// whose every use after its end is a failure. What all indexes have in common is tested by
// index_test.cpp.
#include "crestdb/list/fraser_skip_list.hpp"
#include "crestdb/list/herlihy_skip_list.hpp"

#include "testing/index_schedules.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using kind = testing::key_operation::kind;

struct list_surroundings : testing::scheduled_surroundings {
    static inline std::array<unsigned, testing::max_threads> heights{}; // 0: any
    // Heights 1, 2 and 3, unless the scene says otherwise.
    static std::uint64_t random() noexcept {
        const unsigned fixed = heights[testing::scheduled_world::self()];
        return std::uint64_t{1} << (fixed != 0 ? fixed - 1 : testing::choose(3));
    }
};

template <class List>
class skip_list : public ::testing::Test {
  public:
    // The last one is greater than the head of a node that has been freed and overwritten, so a
    // search for it goes on from there and is caught: heads are no atomics, and comparing them is
    // not watched.
    static inline const std::vector<std::string> keys = {"a", "b", "\xff\xff\xff\xff"};

    template <class Scene>
    static void explore_at_random(const std::string& name, std::uint64_t seeds, Scene&& scene) {
        list_surroundings::heights = {};
        const testing::result r = testing::explore_index_at_random<List>(name, seeds, keys, scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
    // With heights[t] for what thread t inserts.
    template <class Scene>
    static void explore_all(const std::string& name,
                            const std::array<unsigned, testing::max_threads>& heights,
                            Scene&& scene) {
        list_surroundings::heights = heights;
        const testing::result r = testing::explore_index_fully<List>(
            name, testing::scaled(400'000, 40'000'000, 4'000'000'000), keys, scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
};

using plain = testing::scheduled_protocol<testing::word_kind::plain>;
using arming = testing::scheduled_protocol<testing::word_kind::arming>;
using lists = ::testing::Types<crestdb::fraser_skip_list<plain, list_surroundings>,
                               crestdb::fraser_skip_list<arming, list_surroundings>,
                               crestdb::herlihy_skip_list<plain, list_surroundings>,
                               crestdb::herlihy_skip_list<arming, list_surroundings>>;
struct names {
    template <class List>
    static std::string GetName(int) {
        return std::string(List::name) + (List::protocol::arms ? "_arming" : "_plain");
    }
};
TYPED_TEST_SUITE(skip_list, lists, names);

// An inserter links upper levels, or waits for locks, while the key is erased and put by others.
TYPED_TEST(skip_list, insertions_and_erasures_of_one_key) {
    this->explore_at_random("one key", 10'000, [](auto& l, auto& record) {
        testing::spawn([&] {
            record.perform(l, 1, kind::put);
            record.perform(l, 1, kind::get);
        });
        testing::spawn([&] {
            record.perform(l, 1, kind::erase);
            record.perform(l, 1, kind::put);
        });
        testing::spawn([&] {
            record.perform(l, 1, kind::put);
            record.perform(l, 1, kind::erase);
        });
    });
}

// For Fraser's: an inserter that is held up before it links level 1, until its node has been erased
// and is gone from level 0; and held up again behind that. A search that descended from the node
// would miss what was inserted since. A new node with the key comes to stand in front of it, where
// it has to be unlinked all the same. All schedules with two preemptions.
TYPED_TEST(skip_list, a_node_that_is_linked_late) {
    for (const kind last : {kind::get, kind::put}) {
        this->explore_all(last == kind::get ? "late, read" : "late, again", {0, 2, 1, 2},
                          [&](auto& l, auto& record) {
                              testing::spawn([&] { record.perform(l, 1, kind::put); });
                              testing::spawn([&] {
                                  record.perform(l, 1, kind::erase);
                                  record.perform(l, 2, kind::put);
                              });
                              testing::spawn(
                                  [&] { record.perform(l, last == kind::get ? 2 : 1, last); });
                          });
    }
}

// One erasure, one insertion and one operation of each kind on a key that is there, all schedules
// with two preemptions.
TYPED_TEST(skip_list, three_operations_on_one_key) {
    for (const kind third : {kind::get, kind::put, kind::update, kind::modify, kind::erase}) {
        this->explore_all("three, " + std::to_string(third), {2, 2, 2, 2},
                          [&](auto& l, auto& record) {
                              record.perform(l, 1, kind::put);
                              testing::spawn([&] { record.perform(l, 1, kind::erase); });
                              testing::spawn([&] { record.perform(l, 1, kind::put); });
                              testing::spawn([&] { record.perform(l, 1, third); });
                          });
    }
}

// A key that is erased and inserted again, with neighbours on both sides that are erased too, and a
// reader: what it stands on may be long out of the lower levels.
TYPED_TEST(skip_list, a_reader_among_erasures) {
    this->explore_at_random("reader", 10'000, [](auto& l, auto& record) {
        for (const unsigned key : {0u, 1u, 2u}) record.perform(l, key, kind::put);
        testing::spawn([&] {
            record.perform(l, 0, kind::erase);
            record.perform(l, 1, kind::erase);
            record.perform(l, 1, kind::put);
        });
        testing::spawn([&] {
            record.perform(l, 1, kind::get);
            record.perform(l, 2, kind::get);
            record.perform(l, 1, kind::get);
        });
        testing::spawn([&] {
            record.perform(l, 0, kind::put);
            record.perform(l, 2, kind::erase);
        });
    });
}

// Everything at once, chosen by the scheduler.
TYPED_TEST(skip_list, any_operations) {
    this->explore_at_random("any", 20'000, [](auto& l, auto& record) {
        if (testing::choose(2) != 0) record.perform(l, 1, kind::put);
        for (int t = 0; t < 3; ++t) {
            testing::spawn([&] {
                for (int i = 0; i < 3; ++i)
                    record.perform(l, testing::choose(2), static_cast<kind>(testing::choose(5)));
            });
        }
        testing::spawn_mover<typename TypeParam::protocol>();
    });
}

// The scan sees what is there all the time, once and in order, whatever comes and goes around it.
TYPED_TEST(skip_list, scans_among_erasures) {
    this->explore_at_random("scan", 5'000, [this](auto& l, auto& record) {
        for (const unsigned key : {0u, 1u, 2u}) record.perform(l, key, kind::put);
        testing::spawn([&] {
            const std::vector<std::string> seen = testing::scanned(l);
            testing::require(std::binary_search(seen.begin(), seen.end(), this->keys[1]),
                             "the scan missed a key that was there all the time");
        });
        testing::spawn([&] {
            record.perform(l, 0, kind::erase);
            record.perform(l, 0, kind::put);
        });
        testing::spawn([&] {
            record.perform(l, 2, kind::erase);
            record.perform(l, 1, kind::put); // a new value
            record.perform(l, 2, kind::put);
        });
        testing::spawn_mover<typename TypeParam::protocol>();
    });
}

} // namespace
