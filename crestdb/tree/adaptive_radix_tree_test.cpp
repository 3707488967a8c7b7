// SPDX-License-Identifier: MIT
//
// What is particular to the adaptive radix tree: kinds of nodes, prefixes, keys that are prefixes of
// each other, and what a search touches. What it shares with the other indexes is in index_test.cpp,
// interleavings are in adaptive_radix_tree_schedules_test.cpp.
#include "crestdb/tree/adaptive_radix_tree.hpp"
#include "crestdb/tree/movable_adaptive_radix_tree.hpp"

#include "crestdb/index.hpp"
#include "crestdb/tree/tree_test.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace crestdb::testing;
using namespace std::string_literals;
using crestdb::radix_kind;

static_assert(crestdb::index<crestdb::adaptive_radix_tree<obase::arming>>);
static_assert(crestdb::index<crestdb::movable_adaptive_radix_tree<obase::plain>>);

template <class Tree>
struct node_of;
template <class Protocol, class Links, class Shape>
struct node_of<crestdb::adaptive_radix_tree<Protocol, Links, Shape>> {
    using type = crestdb::radix_node<Protocol, Links, Shape>;
};

template <class Tree>
class radix_tree : public crestdb::testing::tree_test<Tree> {
  public:
    static std::size_t bytes_of(radix_kind kind) { return node_of<Tree>::type::bytes_of(kind); }
};

using trees = ::testing::Types<
    crestdb::adaptive_radix_tree<obase::plain>, crestdb::adaptive_radix_tree<obase::arming>,
    crestdb::adaptive_radix_tree<obase::atc>, crestdb::movable_adaptive_radix_tree<obase::plain>,
    crestdb::movable_adaptive_radix_tree<obase::arming>,
    crestdb::movable_adaptive_radix_tree<obase::atc>>;
TYPED_TEST_SUITE(radix_tree, trees);

// Of many children here and few there; prefixes of each other; common bytes around the eight that a
// node holds itself; 64 KiB.
std::string key_of_bytes(std::mt19937_64& random) {
    static const std::string beginnings[] = {"",
                                             "\0"s,
                                             "1234567",
                                             "12345678",
                                             "123456789",
                                             "\xff\xff\xff",
                                             "user0000001234567",
                                             std::string(9, '\0'),
                                             "user0000001234567" + std::string(40, '\xff')};
    const std::uint64_t beginning = random() % 300;
    if (beginning == 299) return std::string(65530 + random() % 4, 'x');
    std::string key = beginnings[beginning % std::size(beginnings)];
    if (random() % 2 == 0) return key + static_cast<char>(random());
    static const char letters[] = {'\0', 'a', '0', '\xff'};
    for (auto n = random() % 5; n != 0; --n) key.push_back(letters[random() % std::size(letters)]);
    return key;
}

TYPED_TEST(radix_tree, agrees_with_a_map_on_odd_keys) {
    for (const unsigned seed : {1u, 2u}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        contents model;
        steps_agree_with_a_map(tree, model,
                               {.key = key_of_bytes,
                                .steps = obase::testing::scaled_for_build(8000, 200'000, 2'000'000),
                                .turn = 2000,
                                .seed = seed},
                               [this] { this->collect(); });
        for (const auto& [key, value] : model) ASSERT_TRUE(tree.erase(key));
        ASSERT_EQ(tree.size(), 0u);
        ASSERT_EQ(tree.index_bytes(), empty);
        ASSERT_EQ(scanned(tree, "", 10), pairs{});
    }
}

// A node has the kind that its children need; on the way down it changes later than on the way up.
TYPED_TEST(radix_tree, nodes_grow_and_shrink) {
    for (const bool with_own_key : {false, true}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes(), leaf = this->bytes_of(radix_kind::leaf);
        const std::string prefix = "prefix";
        std::vector<unsigned> bytes(256);
        for (unsigned i = 0; i < 256; ++i) bytes[i] = i;
        std::shuffle(bytes.begin(), bytes.end(), std::mt19937_64(5));
        const auto key = [&](unsigned i) { return prefix + static_cast<char>(bytes[i]); };
        std::size_t keys = 0;
        const auto node_bytes = [&] { return tree.index_bytes() - empty - keys * leaf; };
        const auto all_there = [&](unsigned from, unsigned to) {
            for (unsigned i = 0; i < 256; ++i)
                ASSERT_EQ(tree.contains(key(i)), from <= i && i < to) << i;
            ASSERT_EQ(tree.contains(prefix), with_own_key);
            const pairs all = scanned(tree, "", SIZE_MAX);
            ASSERT_EQ(all.size(), keys);
            ASSERT_TRUE(std::is_sorted(all.begin(), all.end()));
        };
        if (with_own_key) keys += tree.put(prefix, "own");
        ASSERT_EQ(node_bytes(), 0u);
        for (unsigned i = 0; i < 256; ++i) {
            keys += tree.put(key(i), "value");
            const radix_kind kind = i + 1 <= 4    ? radix_kind::node4
                                    : i + 1 <= 16 ? radix_kind::node16
                                    : i + 1 <= 48 ? radix_kind::node48
                                                  : radix_kind::node256;
            ASSERT_EQ(node_bytes(), keys == 1 ? 0 : this->bytes_of(kind)) << i;
            if (i % 5 == 0) all_there(0, i + 1);
        }
        this->collect();
        all_there(0, 256);
        for (unsigned i = 0; i < 256; ++i) {
            ASSERT_TRUE(tree.erase(key(i)));
            --keys;
            const unsigned left = 255 - i;
            const radix_kind kind = left <= 3    ? radix_kind::node4
                                    : left <= 12 ? radix_kind::node16
                                    : left <= 37 ? radix_kind::node48
                                                 : radix_kind::node256;
            ASSERT_EQ(node_bytes(), keys <= 1 ? 0 : this->bytes_of(kind)) << i;
            if (i % 5 == 0) all_there(i + 1, 256);
        }
        if (with_own_key) {
            EXPECT_EQ(read(tree, prefix), "own");
            keys -= tree.erase(prefix);
        }
        EXPECT_EQ(tree.index_bytes(), empty);
    }
}

// Where no node has more than four children, what is there depends on the keys alone: a key that came
// and went leaves no trace, wherever it parted prefixes.
TYPED_TEST(radix_tree, a_key_that_came_and_went_leaves_no_trace) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 300; ++round) {
        static const char letters[] = {'\0', 'a', '\xff'};
        const auto any_key = [&] {
            std::string key(random() % 3 == 0 ? random() % 20 : 0, 'p');
            for (auto n = random() % 12; n != 0; --n)
                key.append(random() % 5 == 0 ? 9 : 1, letters[random() % 3]);
            return key;
        };
        TypeParam tree(0);
        std::map<std::string, std::string> model;
        for (auto n = random() % 12; n != 0; --n) {
            const std::string key = any_key();
            tree.put(key, key);
            model[key] = key;
        }
        for (int i = 0; i < 10; ++i) {
            const std::size_t before = tree.index_bytes();
            const std::string key = any_key();
            if (model.count(key) != 0) continue;
            ASSERT_TRUE(tree.put(key, "passing"));
            ASSERT_GT(tree.index_bytes(), before);
            ASSERT_EQ(read(tree, key), "passing");
            for (const auto& [k, v] : model) ASSERT_EQ(read(tree, k), v);
            ASSERT_TRUE(tree.erase(key));
            ASSERT_EQ(tree.index_bytes(), before);
            ASSERT_EQ(scanned(tree, "", SIZE_MAX), expected(model, "", SIZE_MAX));
        }
    }
}

// Long prefixes that part in the middle, and join again.
TYPED_TEST(radix_tree, parts_prefixes_of_64_kib) {
    TypeParam tree(0);
    const std::size_t empty = tree.index_bytes();
    const std::string longest(65536, 'k');
    std::map<std::string, std::string> model;
    const auto put = [&](const std::string& key) {
        ASSERT_TRUE(tree.put(key, "v"));
        model[key] = "v";
        for (const auto& [k, v] : model) ASSERT_EQ(read(tree, k), v);
    };
    put(longest);
    put(longest.substr(0, 65535));
    const std::size_t one_prefix = tree.index_bytes();
    for (const std::size_t at : {60000u, 100u, 8u, 9u, 10u, 30000u, 0u, 65534u}) {
        put(longest.substr(0, at));
        put(longest.substr(0, at) + "x");
        ASSERT_FALSE(tree.contains(longest.substr(0, at) + "y"));
    }
    // The bytes of the prefix are there once.
    EXPECT_LT(tree.index_bytes(), one_prefix + 4096);
    EXPECT_EQ(scanned(tree, "", SIZE_MAX), expected(model, "", SIZE_MAX));
    EXPECT_EQ(scanned(tree, longest.substr(0, 20000), 3),
              expected(model, longest.substr(0, 20000), 3));
    this->collect();
    for (const auto& [key, value] : model) ASSERT_EQ(read(tree, key), value);
    while (model.size() > 2) {
        const auto middle = std::next(model.begin(), static_cast<long>(model.size() / 2));
        ASSERT_TRUE(tree.erase(middle->first));
        model.erase(middle);
        for (const auto& [key, value] : model) ASSERT_EQ(read(tree, key), value);
    }
    for (const auto& [key, value] : model) ASSERT_TRUE(tree.erase(key));
    EXPECT_EQ(tree.index_bytes(), empty);
}

// Each key is the prefix of all longer ones, so each is a node.
TYPED_TEST(radix_tree, is_as_deep_as_keys_are_long) {
    const std::size_t depth = obase::testing::scaled_for_build(3000, 3000, 3000);
    const std::string longest(depth, 'd');
    const auto fill = [&](TypeParam& tree) {
        for (std::size_t n = 0; n <= depth; ++n)
            ASSERT_TRUE(tree.put(longest.substr(0, (n * 7919) % (depth + 1)), "v"));
    };
    TypeParam tree(0);
    const std::size_t empty = tree.index_bytes();
    fill(tree);
    EXPECT_EQ(scanned(tree, "", SIZE_MAX).size(), depth + 1);
    EXPECT_EQ(scanned(tree, longest.substr(0, depth - 1), SIZE_MAX).size(), 2u);
    for (std::size_t n = 0; n <= depth; ++n) ASSERT_TRUE(tree.erase(longest.substr(0, n)));
    EXPECT_EQ(tree.index_bytes(), empty);
    fill(tree); // and the destructor has something to do
}

std::string integer(std::uint64_t i) {
    const std::uint64_t in_order = __builtin_bswap64(i);
    return {reinterpret_cast<const char*>(&in_order), sizeof in_order};
}
std::string numbered(std::uint64_t number) {
    std::string digits = std::to_string(number);
    return "user" + std::string(26 - digits.size(), '0') + digits;
}

// The way down proves the beginning of a key and the leaf knows its last eight bytes: of integers no
// key object is touched, of longer keys the sought one, for absent ones none.
TYPED_TEST(radix_tree, touches_the_value_and_at_most_the_sought_key) {
    constexpr std::uint64_t keys = 5'000;
    for (const bool integers : {true, false}) {
        TypeParam tree(0);
        const auto name = [&](std::uint64_t i) {
            return integers ? integer(i) : numbered(i * 0x9e3779b97f4a7c15u);
        };
        for (std::uint64_t i = 0; i < keys; ++i) tree.put(name(i), "value");
        const auto strings_on_the_way = [&](std::uint64_t i) {
            std::size_t n = 0;
            tree.visit_path(name(i), [&](const void*, std::size_t bytes) {
                n += bytes == sizeof(obase::bytes) + 5 ||
                     bytes == sizeof(obase::bytes) + name(i).size();
            });
            return n;
        };
        for (std::uint64_t i = 0; i < keys; ++i) {
            ASSERT_EQ(strings_on_the_way(i), integers ? 1 : 2);
            ASSERT_EQ(strings_on_the_way(i + keys), 0u);
        }
    }
}

// Keys that begin and end alike.
TYPED_TEST(radix_tree, tells_keys_apart_by_their_middle) {
    TypeParam tree(0);
    const std::string begin(20, 'b'), last = "the last bytes";
    for (std::size_t i = 0; i < 30; ++i) {
        std::string middle(30, 'm');
        EXPECT_TRUE(tree.put(begin + middle + last, middle));
        EXPECT_EQ(read(tree, begin + middle + last), middle);
        middle[i] = 'x';
        EXPECT_EQ(read(tree, begin + middle + last), "(absent)");
        EXPECT_FALSE(tree.update(begin + middle + last, "y"));
        EXPECT_FALSE(tree.erase(begin + middle + last));
        EXPECT_TRUE(tree.put(begin + middle + last, middle));
        EXPECT_EQ(read(tree, begin + middle + last), middle);
        EXPECT_TRUE(tree.erase(begin + std::string(30, 'm') + last));
        EXPECT_EQ(read(tree, begin + std::string(30, 'm') + last), "(absent)");
        EXPECT_TRUE(tree.erase(begin + middle + last));
    }
}

// Managed nodes are reported with their sizes; the leaf and at least one node.
TYPED_TEST(radix_tree, reports_managed_nodes) {
    TypeParam tree(0);
    for (std::uint64_t i = 0; i < 1000; ++i) tree.put(integer(i), "value");
    std::multiset<std::size_t> sizes;
    tree.visit_path(integer(77), [&](const void*, std::size_t bytes) { sizes.insert(bytes); });
    if constexpr (requires { tree.managed_nodes(); })
        EXPECT_EQ(sizes, (std::multiset<std::size_t>{
                             this->bytes_of(radix_kind::node4), this->bytes_of(radix_kind::node256),
                             this->bytes_of(radix_kind::leaf), sizeof(obase::bytes) + 5}));
    else
        EXPECT_EQ(sizes, (std::multiset<std::size_t>{sizeof(obase::bytes) + 5}));
}

// Blocks of neighbouring keys come and go, so that nodes of all kinds grow, shrink, part and join all
// the time. Every 25th key stays.
TYPED_TEST(radix_tree, nodes_come_and_go_under_readers_and_a_collector_that_never_rests) {
    TypeParam tree;
    // Nodes of up to 256 children, long prefixes, and keys that are prefixes of others.
    const auto name = [](std::uint64_t i) {
        if (i % 3 == 0) return "long common prefix" + integer(i) + std::string(12, 'x');
        if (i % 3 == 1) return integer(i / 256 * 256 + i % 256 * 7 % 256);
        return "p" + std::string(i % 200, 'p') + integer(i).substr(6);
    };
    blocks_come_and_go(tree, obase::testing::scaled(150, 60'000, 1'000'000), name,
                       [this] { this->collect(); });
    EXPECT_EQ(tree.index_bytes(), sizeof(tree));
}

} // namespace
