// SPDX-License-Identifier: MIT
//
// What is particular to the B+trees: nodes that are split, removed, merged and searched at the same
// time, heads and prefixes. What they share with the other indexes is in index_test.cpp.
#include "crestdb/tree/coarse_btree.hpp"
#include "crestdb/tree/occ_btree.hpp"

#include "crestdb/index.hpp"
#include "crestdb/tree/tree_test.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tiny { // a member of such a type needs a name that others could use
struct tiny_coarse_shape {
    static constexpr unsigned leaf_entries = 4;
    static constexpr unsigned fanout = 4;
};
template <class Protocol>
using sequential_btree = crestdb::basic_sequential_btree<Protocol, tiny_coarse_shape>;
} // namespace tiny

namespace {

using namespace crestdb::testing;

// Nodes so small that every tenth operation changes inner nodes.
struct tiny_occ_shape : crestdb::occ_btree_shape {
    static constexpr unsigned leaf_entries = 4;
    static constexpr unsigned fanout = 3;
};

template <class Protocol>
using tiny_occ_btree = crestdb::basic_occ_btree<Protocol, tiny_occ_shape>;
template <class Protocol>
using tiny_coarse_btree = crestdb::coarse_index<tiny::sequential_btree, Protocol>;

static_assert(crestdb::index<crestdb::occ_btree<obase::arming>>);
static_assert(crestdb::index<tiny_occ_btree<obase::plain>>);
static_assert(crestdb::index<tiny_coarse_btree<obase::plain>>);

template <class Tree>
class btree : public crestdb::testing::tree_test<Tree> {};

using trees =
    ::testing::Types<crestdb::coarse_btree<obase::plain>, crestdb::coarse_btree<obase::arming>,
                     crestdb::coarse_btree<obase::atc>, crestdb::occ_btree<obase::plain>,
                     crestdb::occ_btree<obase::arming>, crestdb::occ_btree<obase::atc>,
                     tiny_coarse_btree<obase::plain>, tiny_coarse_btree<obase::arming>,
                     tiny_coarse_btree<obase::atc>, tiny_occ_btree<obase::plain>,
                     tiny_occ_btree<obase::arming>, tiny_occ_btree<obase::atc>>;
TYPED_TEST_SUITE(btree, trees);

TYPED_TEST(btree, agrees_with_a_map_on_odd_keys) {
    for (const unsigned seed : {1u, 2u}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        contents model;
        steps_agree_with_a_map(tree, model,
                               {.key = odd_key,
                                .steps = obase::testing::scaled_for_build(4000, 200'000, 2'000'000),
                                .seed = seed},
                               [this] { this->collect(); });
        for (const auto& [key, value] : model) ASSERT_TRUE(tree.erase(key));
        ASSERT_EQ(tree.size(), 0u);
        // One leaf is left; it may have kept a prefix.
        ASSERT_LE(tree.index_bytes(), empty + 66'000);
        ASSERT_EQ(scanned(tree, "", 10), pairs{});
    }
}

TYPED_TEST(btree, takes_keys_in_any_order_and_gives_the_memory_back) {
    enum { ascending, descending, shuffled };
    for (const auto order : {ascending, descending, shuffled}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        std::vector<std::uint64_t> numbers(
            obase::testing::scaled_for_build(20'000, 20'000, 20'000));
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 3 * i;
        if (order == descending) std::reverse(numbers.begin(), numbers.end());
        if (order == shuffled) std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(1));
        for (const auto n : numbers) ASSERT_TRUE(tree.put(numbered_key(n), std::to_string(n)));
        for (const auto n : numbers) {
            ASSERT_EQ(read(tree, numbered_key(n)), std::to_string(n));
            ASSERT_FALSE(tree.contains(numbered_key(n + 1)));
        }
        if (std::is_same_v<TypeParam, crestdb::coarse_btree<typename TypeParam::protocol>>) {
            EXPECT_LT(tree.index_bytes(), numbers.size() * 55);
        }
        if (std::is_same_v<TypeParam, crestdb::occ_btree<typename TypeParam::protocol>>) {
            EXPECT_LT(tree.index_bytes(), numbers.size() * (order == shuffled ? 50 : 30));
        }
        ASSERT_EQ(scanned(tree, numbered_key(2), 1).at(0).first, numbered_key(3));
        ASSERT_EQ(scanned(tree, "", SIZE_MAX).size(), numbers.size());
        std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(2));
        for (const auto n : numbers) ASSERT_TRUE(tree.erase(numbered_key(n)));
        EXPECT_LE(tree.index_bytes(), empty + 64);
        EXPECT_TRUE(tree.put("a", "b"));
        EXPECT_EQ(read(tree, "a"), "b");
    }
}

// Blocks of neighbouring keys come and go, so that nodes of all levels are split and removed all
// the time; keys with other beginnings come between them, so that prefixes change. Every 25th key
// stays.
TYPED_TEST(btree, nodes_come_and_go_under_readers_and_a_collector_that_never_rests) {
    TypeParam tree(0);
    // Some of the keys begin like their neighbours for longer than a head can tell.
    const auto name = [](std::uint64_t i) {
        std::string key = numbered_key(i);
        if (i % 3 == 0) key.insert(20, std::string(40, 'x'));
        if (i % 7 == 0) key.resize(29);
        return key + static_cast<char>(i);
    };
    blocks_come_and_go(tree, obase::testing::scaled(150, 60'000, 1'000'000), name,
                       [this] { this->collect(); });
    EXPECT_LT(tree.index_bytes(), sizeof(tree) + 2048);
}

// The point of heads: neighbours of a key in use stay untouched.
TYPED_TEST(btree, dereferences_the_sought_key_and_its_value_only) {
    TypeParam tree(0);
    constexpr std::uint64_t keys = 20'000;
    // The first and the last leaf of coarse_btree have heads that are all alike here.
    constexpr std::uint64_t others = keys / 25;
    const auto name = [](std::uint64_t i) { return numbered_key(i * 0x9e3779b97f4a7c15u); };
    for (std::uint64_t i = 0; i < keys; ++i) tree.put(name(i), "value");
    std::size_t visits = 0, bytes = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
        tree.visit_path(name(i), [&](const void*, std::size_t size) { ++visits, bytes += size; });
    }
    EXPECT_GE(visits, 2 * keys);
    EXPECT_LE(visits, 2 * keys + others);
    EXPECT_GE(bytes, keys * (2 * sizeof(obase::bytes) + 30 + 5));
    std::size_t of_absent = 0;
    for (std::uint64_t i = 0; i < keys; ++i)
        tree.visit_path(name(keys + i), [&](const void*, std::size_t) { ++of_absent; });
    EXPECT_LE(of_absent, others);
}

} // namespace
