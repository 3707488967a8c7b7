// SPDX-License-Identifier: MIT
//
// What is particular to the B+trees: nodes that are split, removed, merged and searched at the same
// time, heads and prefixes. What they share with the other indexes is in index_test.cpp.
#include "crestdb/coarse_btree.hpp"
#include "crestdb/occ_btree.hpp"

#include "crestdb/index.hpp"
#include "crestdb/odd_keys.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"
#include "testing/witness.hpp"

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

using crestdb::testing::numbered_key;
using crestdb::testing::odd_key;

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
class btree : public ::testing::Test {
  public:
    using protocol = typename Tree::protocol;
    btree()
        : runtime(obase::testing::quiet_runtime<
                  std::conditional_t<protocol::moves_objects, protocol, obase::arming>>()) {}
    void collect() {
        if (protocol::moves_objects) runtime.collect_now();
    }
    obase::runtime& runtime;
};

using trees =
    ::testing::Types<crestdb::coarse_btree<obase::plain>, crestdb::coarse_btree<obase::arming>,
                     crestdb::coarse_btree<obase::atc>, crestdb::occ_btree<obase::plain>,
                     crestdb::occ_btree<obase::arming>, crestdb::occ_btree<obase::atc>,
                     tiny_coarse_btree<obase::plain>, tiny_coarse_btree<obase::arming>,
                     tiny_coarse_btree<obase::atc>, tiny_occ_btree<obase::plain>,
                     tiny_occ_btree<obase::arming>, tiny_occ_btree<obase::atc>>;
TYPED_TEST_SUITE(btree, trees);

template <class Tree>
std::string read(const Tree& tree, std::string_view key) {
    std::string copy = "(absent)";
    tree.get(key, [&](std::string_view value) { copy = value; });
    return copy;
}

using pairs = std::vector<std::pair<std::string, std::string>>;

template <class Tree>
pairs scanned(const Tree& tree, std::string_view from, std::size_t limit) {
    pairs result;
    const std::size_t n = tree.scan(
        from, limit, [&](std::string_view k, std::string_view v) { result.emplace_back(k, v); });
    EXPECT_EQ(n, result.size());
    return result;
}

pairs expected(const std::map<std::string, std::string>& model, const std::string& from,
               std::size_t limit) {
    pairs result;
    for (auto at = model.lower_bound(from); at != model.end() && result.size() < limit; ++at)
        result.emplace_back(*at);
    return result;
}

TYPED_TEST(btree, agrees_with_a_map_on_odd_keys) {
    for (const unsigned seed : {1u, 2u}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        std::map<std::string, std::string> model;
        std::mt19937_64 random(seed);
        const int steps = static_cast<int>(obase::testing::scaled(4000, 200'000, 2'000'000));
        for (int step = 0; step < steps; ++step) {
            const std::string key = odd_key(random);
            const std::string value = std::to_string(random() % 1000);
            // Growing and shrinking in turns.
            const bool grow = step / 1000 % 2 == 0;
            switch (random() % 8) {
            case 0:
            case 1:
            case 2:
                if (!grow) {
                    ASSERT_EQ(tree.erase(key), model.erase(key) == 1);
                    break;
                }
                [[fallthrough]];
            case 3:
                ASSERT_EQ(tree.put(key, value), model.insert_or_assign(key, value).second);
                break;
            case 4:
                ASSERT_EQ(tree.erase(key), model.erase(key) == 1);
                break;
            case 5: {
                const auto at = model.find(key);
                ASSERT_EQ(tree.modify(key,
                                      [&](std::string_view old) {
                                          EXPECT_EQ(old, at->second);
                                          return old.substr(0, 1);
                                      }),
                          at != model.end());
                if (at != model.end()) at->second = at->second.substr(0, 1);
                break;
            }
            case 6: {
                const std::size_t limit = random() % 20;
                ASSERT_EQ(scanned(tree, key, limit), expected(model, key, limit));
                break;
            }
            default:
                ASSERT_EQ(read(tree, key), model.count(key) != 0 ? model[key] : "(absent)");
                ASSERT_EQ(tree.contains(key), model.count(key) != 0);
            }
            ASSERT_EQ(tree.size(), model.size());
            if (step % 1000 == 0) {
                this->collect();
                ASSERT_EQ(scanned(tree, "", SIZE_MAX), expected(model, "", SIZE_MAX));
            }
        }
        for (const auto& [key, value] : model) ASSERT_EQ(read(tree, key), value);
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
        std::vector<std::uint64_t> numbers(20'000);
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
    constexpr std::uint64_t keys = 3000, stays = 25, block = 250;
    const std::uint64_t rounds = obase::testing::scaled(150, 60'000, 1'000'000);
    TypeParam tree(keys);
    // Some of the keys begin like their neighbours for longer than a head can tell.
    const auto name = [](std::uint64_t i) {
        std::string key = numbered_key(i);
        if (i % 3 == 0) key.insert(20, std::string(40, 'x'));
        if (i % 7 == 0) key.resize(29);
        return key + static_cast<char>(i);
    };
    std::set<std::string, std::less<>> staying;
    for (std::uint64_t i = 0; i < keys; i += stays) {
        tree.put(name(i), name(i));
        staying.insert(name(i));
    }
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> writers, others;
    for (unsigned t = 0; t < 2; ++t) {
        writers.emplace_back([&, t] {
            std::mt19937_64 random(t);
            std::vector<bool> there(keys);
            for (std::uint64_t round = 0; round < rounds; ++round) {
                const std::uint64_t from = random() % keys;
                const bool insert = random() % 2 != 0, backwards = random() % 2 != 0;
                for (std::uint64_t n = 0; n < block; ++n) {
                    const std::uint64_t i = (from + (backwards ? block - n : n)) % keys;
                    if (i % 2 != t) continue;
                    if (i % stays == 0) {
                        wrong += tree.put(name(i), name(i) + std::string(random() % 50, '.'));
                    } else if (insert) {
                        wrong += tree.put(name(i), name(i)) == there[i];
                        there[i] = true;
                    } else {
                        wrong += tree.erase(name(i)) != there[i];
                        there[i] = false;
                    }
                }
            }
        });
        others.emplace_back([&, t] {
            std::mt19937_64 random(100 + t);
            while (!stop) {
                const std::string key = name(random() % (keys / stays) * stays);
                wrong += !tree.get(key, [&](std::string_view v) { wrong += !v.starts_with(key); });
                std::size_t stayed = 0;
                std::string last;
                tree.scan("", SIZE_MAX, [&](std::string_view k, std::string_view v) {
                    wrong += !(last < k) || !v.starts_with(k);
                    last = k;
                    stayed += staying.count(k);
                });
                wrong += stayed != staying.size();
            }
        });
    }
    others.emplace_back([&] {
        while (!stop) this->collect();
    });
    for (auto& w : writers) w.join();
    stop = true;
    for (auto& o : others) o.join();
    EXPECT_EQ(wrong, 0u);
    const pairs left = scanned(tree, "", SIZE_MAX);
    EXPECT_EQ(left.size(), tree.size());
    for (const auto& [key, value] : left) ASSERT_TRUE(tree.erase(key));
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
