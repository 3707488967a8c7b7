// SPDX-License-Identifier: MIT
//
// What the conformance suite does not reach of the segmented hash table, on threads: growth and
// shrinking by many keys under readers, no memory for a table or a node. Its chosen schedules are
// in segmented_hash_table_schedules_test.cpp.
#include "crestdb/hash/movable_segmented_hash_table.hpp"
#include "crestdb/hash/segmented_hash_table.hpp"

#include "testing/heap_shortage.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>
#include <obase/plain.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

namespace testing = obase::testing;

template <class Index>
class segmented_table : public ::testing::Test {};
using tables = ::testing::Types<crestdb::segmented_hash_table<obase::plain>,
                                crestdb::segmented_hash_table<obase::arming>,
                                crestdb::movable_segmented_hash_table<obase::arming>,
                                crestdb::movable_segmented_hash_table<obase::atc>>;
struct table_names {
    template <class Index>
    static std::string GetName(int) {
        const std::string nodes =
            std::string(Index::name) == "segmented-hash-table" ? "immobile" : "movable";
        return nodes + "_" + Index::protocol::name;
    }
};
TYPED_TEST_SUITE(segmented_table, tables, table_names);

std::string name_of(std::size_t i) { return "user" + std::to_string(i); }

// One thread inserts many keys, which doubles all tables many times, and erases them again; readers
// look for keys that stay, for one that was never there, and the collector never rests.
TYPED_TEST(segmented_table, readers_see_what_stays_while_tables_grow_and_shrink) {
    using protocol = typename TypeParam::protocol;
    auto& runtime = testing::quiet_runtime<
        std::conditional_t<protocol::moves_objects, protocol, obase::arming>>();
    const std::size_t keys = testing::scaled(20'000, 2'000'000, 2'000'000);
    constexpr std::size_t staying = 500;
    TypeParam table(1);
    for (std::size_t i = 0; i < staying; ++i) table.put(name_of(i), name_of(i));
    const std::size_t small = table.index_bytes();
    std::atomic<bool> stop{false};
    std::vector<std::thread> others;
    for (unsigned r = 0; r < 2; ++r) {
        others.emplace_back([&, r] {
            for (std::size_t i = r; !stop; ++i) {
                const std::string name = name_of(i % staying);
                std::string seen;
                ASSERT_TRUE(table.get(name, [&](std::string_view value) { seen = value; }));
                ASSERT_EQ(seen, name);
                ASSERT_FALSE(table.contains("nobody" + std::to_string(i)));
            }
        });
    }
    if (protocol::moves_objects) {
        others.emplace_back([&] {
            while (!stop) runtime.collect_now();
        });
    }
    for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < keys; ++i) {
            ASSERT_TRUE(table.put(name_of(staying + i), "value"));
        }
        EXPECT_EQ(table.size(), staying + keys);
        EXPECT_GE(table.buckets(), table.size());
        EXPECT_LE(table.buckets(), 4 * table.size());
        for (std::size_t i = 0; i < keys; ++i) {
            ASSERT_TRUE(table.erase(name_of(staying + i)));
        }
        EXPECT_EQ(table.size(), staying);
        EXPECT_LE(table.index_bytes(), 4 * small);
    }
    stop = true;
    for (auto& t : others) t.join();
    for (std::size_t i = 0; i < staying; ++i) {
        ASSERT_TRUE(table.erase(name_of(i)));
    }
    EXPECT_EQ(table.index_bytes(), TypeParam(1).index_bytes());
}

// Room for what was announced: nothing grows until there are more.
TYPED_TEST(segmented_table, is_as_large_as_expected) {
    for (const std::size_t expected : {1u, 1000u, 100'000u}) {
        TypeParam table(expected);
        const std::size_t buckets = table.buckets();
        EXPECT_LE(buckets, std::max<std::size_t>(table.segments(), 3 * expected));
        if (expected < 100'000) continue;
        for (std::size_t i = 0; i < expected; ++i) table.put(name_of(i), "");
        EXPECT_EQ(table.buckets(), buckets);
    }
}

// Without memory for a larger table lists get longer, and afterwards the table catches up. (Nodes
// are managed objects here: their memory is not operator new's.)
TEST(movable_segmented_table, one_that_cannot_grow_goes_on) {
    if (!testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    testing::quiet_runtime<obase::arming>();
    crestdb::movable_segmented_hash_table<> table(1);
    const std::size_t buckets = table.buckets();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 400; ++i) names.push_back("k" + std::to_string(i));
    {
        const testing::heap_shortage none;
        for (const std::string& name : names) table.put(name, name);
    }
    EXPECT_EQ(table.buckets(), buckets);
    EXPECT_EQ(table.size(), names.size());
    for (const std::string& name : names) EXPECT_TRUE(table.contains(name));
    for (std::size_t i = 0; i < 400; ++i) table.put("more" + std::to_string(i), "");
    EXPECT_GE(table.buckets(), 400u);
    for (const std::string& name : names) EXPECT_TRUE(table.contains(name));
}

// obase::plain, whose memory runs out.
struct running_out : obase::plain {
    static inline unsigned left = 0;
    static void* allocate(std::size_t bytes, const obase::allocation_options& how) noexcept {
        if (left == 0) return nullptr;
        --left;
        return obase::plain::allocate(bytes, how);
    }
};

TEST(movable_segmented_table, no_memory_for_an_object_changes_nothing) {
    running_out::left = 3;
    crestdb::movable_segmented_hash_table<running_out> table(1);
    EXPECT_TRUE(table.put("there", "value"));
    const std::size_t bytes = table.index_bytes();
    for (unsigned enough = 0; enough < 3; ++enough) { // value, key, node
        running_out::left = enough;
        EXPECT_THROW(table.put("new", "value"), std::bad_alloc);
        EXPECT_FALSE(table.contains("new"));
        EXPECT_EQ(table.size(), 1u);
        EXPECT_EQ(table.index_bytes(), bytes);
    }
    running_out::left = 3;
    EXPECT_TRUE(table.put("new", "value"));
    EXPECT_TRUE(table.erase("there"));
}

} // namespace
