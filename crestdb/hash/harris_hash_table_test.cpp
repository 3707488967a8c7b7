// SPDX-License-Identifier: MIT
//
// Harris' hash table under the deterministic scheduler: one bucket, small scenes of operations that
// meet in all ways, over plain words and over words that a mover arms. What all indexes have in
// common is tested by index_test.cpp.
#include "crestdb/hash/harris_hash_table.hpp"

#include "testing/index_schedules.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using kind = testing::key_operation::kind;

template <class Protocol>
class harris_schedules : public ::testing::Test {
  public:
    using protocol = Protocol;
    using table = crestdb::harris_hash_table<Protocol, testing::scheduled_surroundings>;
    using recorder = testing::index_recorder<table>;

    // In the order of their hashes, which is that of the list.
    static const std::vector<std::string>& keys() {
        static const std::vector<std::string> sorted = [] {
            std::vector<std::string> k{"a", "b", "c"};
            const std::hash<std::string_view> h;
            std::sort(k.begin(), k.end(),
                      [&](const auto& x, const auto& y) { return h(x) < h(y); });
            return k;
        }();
        return sorted;
    }

    template <class Scene>
    void explore_at_random(const std::string& name, std::uint64_t seeds, Scene&& scene) {
        const testing::result r =
            testing::explore_index_at_random<table>(name, seeds, keys(), scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
    template <class Scene>
    void explore_all(const std::string& name, Scene&& scene) {
        const testing::result r = testing::explore_index_fully<table>(
            name, testing::scaled(60'000, 6'000'000, 600'000'000), keys(), scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
};

using protocols = ::testing::Types<testing::scheduled_protocol<testing::word_kind::plain>,
                                   testing::scheduled_protocol<testing::word_kind::arming>>;
struct names {
    template <class Protocol>
    static std::string GetName(int) {
        return Protocol::arms ? "arming" : "plain";
    }
};
TYPED_TEST_SUITE(harris_schedules, protocols, names);

// One erasure, one insertion and one operation of each kind on a key that is there.
TYPED_TEST(harris_schedules, three_operations_on_one_key) {
    for (const kind third : {kind::get, kind::put, kind::update, kind::modify, kind::erase}) {
        this->explore_all("three, " + std::to_string(third), [&](auto& t, auto& record) {
            record.perform(t, 1, kind::put);
            testing::spawn([&] { record.perform(t, 1, kind::erase); });
            testing::spawn([&] { record.perform(t, 1, kind::put); });
            testing::spawn([&, third] { record.perform(t, 1, third); });
        });
    }
}

// Neighbours are erased together, so a run of marked nodes is unlinked at once, while another
// thread inserts between them and behind them.
TYPED_TEST(harris_schedules, neighbours_are_erased_together) {
    this->explore_all("neighbours", [&](auto& t, auto& record) {
        record.perform(t, 0, kind::put);
        record.perform(t, 1, kind::put);
        testing::spawn([&] { record.perform(t, 0, kind::erase); });
        testing::spawn([&] { record.perform(t, 1, kind::erase); });
        testing::spawn([&] { record.perform(t, 2, kind::put); });
    });
}

// A reader that stands on what is being erased, and a key that comes back.
TYPED_TEST(harris_schedules, a_reader_among_erasures) {
    this->explore_at_random("reader", 4'000, [](auto& t, auto& record) {
        for (const std::size_t key : {0u, 1u, 2u}) record.perform(t, key, kind::put);
        testing::spawn([&] {
            record.perform(t, 0, kind::erase);
            record.perform(t, 1, kind::erase);
            record.perform(t, 1, kind::put);
        });
        testing::spawn([&] {
            record.perform(t, 1, kind::get);
            record.perform(t, 2, kind::get);
            record.perform(t, 1, kind::get);
        });
        testing::spawn([&] {
            record.perform(t, 0, kind::put);
            record.perform(t, 2, kind::erase);
        });
        testing::spawn_mover<TypeParam>();
    });
}

// Everything at once, chosen by the scheduler.
TYPED_TEST(harris_schedules, any_operations) {
    this->explore_at_random("any", 8'000, [](auto& t, auto& record) {
        for (const std::size_t key : {0u, 1u})
            if (testing::choose(2) != 0) record.perform(t, key, kind::put);
        for (int thread = 0; thread < 3; ++thread) {
            testing::spawn([&] {
                for (int i = 0; i < 3; ++i)
                    record.perform(t, testing::choose(3), static_cast<kind>(testing::choose(5)));
            });
        }
        if (testing::choose(2) != 0) testing::spawn_mover<TypeParam>();
    });
    if (TypeParam::arms) {
        EXPECT_GT(testing::scheduled_world::moves, 0u);
    }
}

} // namespace
