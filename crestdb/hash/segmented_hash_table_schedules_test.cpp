// SPDX-License-Identifier: MIT
//
// The segmented hash table under the deterministic scheduler: its moves from table to table and its
// unlinkings, with nodes that stay and nodes that a mover moves. What it does on threads is tested
// by segmented_hash_table_test.cpp and index_test.cpp.
#include "crestdb/hash/segmented_hash_table.hpp"

#include "testing/index_schedules.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using kind = testing::key_operation::kind;

// One segment, and a table of one bucket that is doubled by the second key and by the third, and
// shrinks as soon as there are fewer keys than buckets.
struct one_segment : testing::scheduled_surroundings {
    static constexpr std::size_t least_segments = 1;
    static constexpr std::size_t most_segments = 1;
    static constexpr std::size_t sparse = 1;
};

template <testing::word_kind Word, class Nodes>
struct variant {
    using protocol = testing::scheduled_protocol<Word>;
    using table = crestdb::segmented_hash_table<protocol, Nodes, one_segment>;
    static std::string name() {
        return std::string(Nodes::movable ? "movable" : "immobile") +
               (protocol::arms ? "_arming" : "_plain");
    }
};

// Four keys. In a table of four buckets the first two are in one bucket and the others alone; in
// one of two buckets the third is alone.
const std::vector<std::string>& keys() {
    static const std::vector<std::string> chosen = [] {
        std::vector<std::string> k;
        for (const std::uint64_t low : {0u, 4u, 1u, 2u}) {
            for (std::size_t i = 0;; ++i) {
                std::string name = "key" + std::to_string(i);
                if ((std::hash<std::string_view>{}(name) & 7) != low) continue;
                k.push_back(name);
                break;
            }
        }
        return k;
    }();
    return chosen;
}

template <class Variant>
class segmented_schedules : public ::testing::Test {
  public:
    using protocol = typename Variant::protocol;

    template <class Scene>
    void explore_at_random(const std::string& name, std::uint64_t seeds, Scene&& scene) {
        const testing::result r =
            testing::explore_index_at_random<typename Variant::table>(name, seeds, keys(), scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
    template <class Scene>
    void explore_all(const std::string& name, Scene&& scene) {
        const testing::result r = testing::explore_index_fully<typename Variant::table>(
            name, testing::scaled(15'000, 3'000'000, 300'000'000), keys(), scene);
        EXPECT_TRUE(r.ok) << r.report;
    }
};

using testing::word_kind;
using variants = ::testing::Types<variant<word_kind::plain, crestdb::immobile_nodes>,
                                  variant<word_kind::arming, crestdb::immobile_nodes>,
                                  variant<word_kind::plain, crestdb::movable_nodes>,
                                  variant<word_kind::arming, crestdb::movable_nodes>>;
struct names {
    template <class Variant>
    static std::string GetName(int) {
        return Variant::name();
    }
};
TYPED_TEST_SUITE(segmented_schedules, variants, names);

// A reader of a key that stays, while its list goes to another table: whether the key stays behind
// (0) or changes its bucket (2).
TYPED_TEST(segmented_schedules, a_reader_while_the_table_grows) {
    for (const std::size_t sought : {0u, 2u}) {
        this->explore_all("growth, " + std::to_string(sought), [&](auto& t, auto& record) {
            record.perform(t, sought, kind::put);
            testing::spawn([&] { record.perform(t, 2 - sought, kind::put); });
            testing::spawn([&] {
                record.perform(t, sought, kind::get);
                record.perform(t, 1, kind::get);
            });
            testing::spawn_mover<typename TypeParam::protocol>();
        });
    }
}

// The second list that comes into a bucket of the smaller table must not hide the first one.
TYPED_TEST(segmented_schedules, a_reader_while_the_table_shrinks) {
    for (const std::size_t sought : {0u, 3u}) {
        this->explore_all("shrinking, " + std::to_string(sought), [&](auto& t, auto& record) {
            for (const std::size_t key : {0u, 2u, 3u}) record.perform(t, key, kind::put);
            testing::spawn([&] { record.perform(t, 2, kind::erase); });
            testing::spawn([&] {
                record.perform(t, sought, kind::get);
                record.perform(t, 2, kind::get);
            });
            testing::spawn([&] { record.perform(t, 1, kind::put); });
        });
    }
}

// A reader of the last key of a list, while those in front of it are erased: a thread at one of
// them must not take its lost successor for the end.
TYPED_TEST(segmented_schedules, a_reader_of_what_follows_erased_nodes) {
    this->explore_all("erasures", [&](auto& t, auto& record) {
        for (const std::size_t key : {2u, 0u, 1u}) record.perform(t, key, kind::put);
        testing::spawn([&] { record.perform(t, 0, kind::erase); });
        testing::spawn([&] { record.perform(t, 1, kind::get); });
        testing::spawn_mover<typename TypeParam::protocol>();
    });
}

// One erasure, one insertion and one operation of each kind on a key that is there.
TYPED_TEST(segmented_schedules, three_operations_on_one_key) {
    for (const kind third : {kind::get, kind::put, kind::update, kind::modify, kind::erase}) {
        this->explore_all("three, " + std::to_string(third), [&](auto& t, auto& record) {
            record.perform(t, 1, kind::put);
            testing::spawn([&] { record.perform(t, 1, kind::erase); });
            testing::spawn([&] { record.perform(t, 1, kind::put); });
            testing::spawn([&, third] { record.perform(t, 1, third); });
        });
    }
}

// Everything at once, chosen by the scheduler: growth and shrinking come by themselves.
TYPED_TEST(segmented_schedules, any_operations) {
    this->explore_at_random("any", 5'000, [](auto& t, auto& record) {
        for (const std::size_t key : {0u, 1u, 2u, 3u})
            if (testing::choose(2) != 0) record.perform(t, key, kind::put);
        for (int thread = 0; thread < 3; ++thread) {
            testing::spawn([&] {
                for (int i = 0; i < 3; ++i)
                    record.perform(t, testing::choose(4), static_cast<kind>(testing::choose(5)));
            });
        }
        if (testing::choose(2) != 0) testing::spawn_mover<typename TypeParam::protocol>();
    });
    if (TypeParam::protocol::arms) {
        EXPECT_GT(testing::scheduled_world::moves, 0u);
    }
}

} // namespace
