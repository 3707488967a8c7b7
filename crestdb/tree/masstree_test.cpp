// SPDX-License-Identifier: MIT
//
// What is particular to Masstree: permutations, slices that many keys share, layers thousands deep,
// nodes and layers that come and go under readers and a collector. What it shares with the other
// indexes is in index_test.cpp, small schedules in masstree_schedules_test.cpp.
#include "crestdb/tree/masstree.hpp"

#include "crestdb/index.hpp"
#include "crestdb/tree/tree_test.hpp"
#include "testing/heap_shortage.hpp"
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

// After any sequence of changes the permutation names each slot once, and its entries are those of a
// vector that was changed in the same way.
template <unsigned Width>
void compare_with_a_vector() {
    std::mt19937_64 random(Width);
    crestdb::masstree_permutation<Width> p;
    std::vector<unsigned> model;
    for (int step = 0; step < 5'000; ++step) {
        ASSERT_EQ(p.size(), model.size());
        ASSERT_EQ(p.empty(), model.empty());
        ASSERT_EQ(p.full(), model.size() == Width);
        std::set<unsigned> named;
        for (unsigned i = 0; i < Width; ++i) named.insert(p.slot(i));
        ASSERT_EQ(named.size(), Width);
        ASSERT_EQ(*named.rbegin(), Width - 1);
        for (unsigned i = 0; i < model.size(); ++i) ASSERT_EQ(p.slot(i), model[i]);
        for (unsigned slot = 0; slot < Width; ++slot)
            ASSERT_EQ(p.lists(slot), std::count(model.begin(), model.end(), slot) == 1);
        const auto at = static_cast<unsigned>(random() % (model.size() + 1));
        if (random() % 50 == 0) {
            p = p.cut(at);
            model.resize(at);
        } else if (random() % 2 == 0 && !p.full()) {
            model.insert(model.begin() + at, p.free_slot());
            p = p.inserted(at);
        } else if (at != model.size()) {
            p = p.erased(at);
            // What was freed last is taken last.
            ASSERT_EQ(p.slot(Width - 1), model[at]);
            model.erase(model.begin() + at);
        }
    }
}

TEST(masstree_permutation, agrees_with_a_vector) {
    compare_with_a_vector<1>();
    compare_with_a_vector<2>();
    compare_with_a_vector<3>();
    compare_with_a_vector<10>();
    compare_with_a_vector<14>();
    compare_with_a_vector<15>();
}

// As narrow as nodes can be: a slice fills one, and every other split goes up.
struct narrow_shape : crestdb::masstree_shape {
    static constexpr unsigned border_width = 10;
    static constexpr unsigned interior_width = 2;
};
template <class Protocol>
using narrow_masstree = crestdb::basic_masstree<Protocol, narrow_shape>;

static_assert(crestdb::index<crestdb::masstree<obase::arming>>);
static_assert(crestdb::index<narrow_masstree<obase::plain>>);

template <class Tree>
class masstrees : public crestdb::testing::tree_test<Tree> {};

using trees = ::testing::Types<crestdb::masstree<obase::plain>, crestdb::masstree<obase::arming>,
                               crestdb::masstree<obase::atc>, narrow_masstree<obase::plain>,
                               narrow_masstree<obase::arming>>;
TYPED_TEST_SUITE(masstrees, trees);

// What a tree may have besides when it is empty again: the first node's block of tails.
template <class Tree>
constexpr std::size_t left_behind = sizeof(
    typename crestdb::masstree_nodes<typename Tree::protocol, crestdb::masstree_shape>::tails);

// Keys around the ends of slices: of each length from 0 to 34, of three letters such that zero padding
// makes them alike, behind beginnings of no, some, and eight or more bytes.
std::string key_of_slices(std::mt19937_64& random) {
    static const std::string beginnings[] = {
        "",
        "1234567",
        "12345678",
        "1234567812345678",
        std::string(8, '\0'),
        std::string(16, '\0'),
        std::string(8, '\xff'),
        std::string(24, '\xff'),
        "user" + std::string(20, '0'),
    };
    static const char letters[] = {'\0', 'a', '\xff'};
    std::string key = beginnings[random() % std::size(beginnings)];
    if (random() % 2 == 0)
        key.append(random() % 11, letters[random() % std::size(letters)]);
    else
        for (auto n = random() % 11; n != 0; --n)
            key.push_back(letters[random() % std::size(letters)]);
    return key;
}

TYPED_TEST(masstrees, agree_with_a_map_on_keys_that_share_slices) {
    for (const unsigned seed : {1u, 2u, 3u}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        contents model;
        steps_agree_with_a_map(tree, model,
                               {.key = key_of_slices,
                                .steps = obase::testing::scaled(6000, 300'000, 3'000'000),
                                .turn = 1500,
                                .seed = seed},
                               [this] { this->collect(); });
        std::mt19937_64 random(seed);
        while (!model.empty()) {
            auto at = model.lower_bound(key_of_slices(random));
            if (at == model.end()) at = model.begin();
            ASSERT_TRUE(tree.erase(at->first));
            model.erase(at);
        }
        ASSERT_EQ(tree.size(), 0u);
        ASSERT_LE(tree.index_bytes(), empty + left_behind<TypeParam>);
        ASSERT_EQ(scanned(tree, "", 10), pairs{});
    }
}

// A slice with all the entries it can have, among others: none of them may be separated by a split.
TYPED_TEST(masstrees, keys_of_one_slice_stay_together) {
    std::vector<std::string> keys;
    for (std::size_t n = 0; n <= 12; ++n) keys.emplace_back(n, '\0');
    for (const char c : {'\0', '\1', 'x'})
        for (std::size_t n = 1; n <= 8; ++n) keys.push_back(std::string(n, '\0') + c);
    std::mt19937_64 random(5);
    for (int round = 0; round < 50; ++round) {
        TypeParam tree;
        contents model;
        std::shuffle(keys.begin(), keys.end(), random);
        for (const std::string& key : keys) {
            ASSERT_EQ(tree.put(key, key), model.emplace(key, key).second);
            agree(tree, model);
        }
        std::shuffle(keys.begin(), keys.end(), random);
        for (const std::string& key : keys) {
            ASSERT_EQ(tree.erase(key), model.erase(key) == 1);
            agree(tree, model);
        }
    }
}

std::string number_key(std::uint64_t n) {
    std::string key(8, '\0');
    for (char& c : key) {
        c = static_cast<char>(n >> 56);
        n <<= 8;
    }
    return key;
}

TYPED_TEST(masstrees, take_keys_in_any_order_and_give_the_memory_back) {
    enum { ascending, descending, shuffled };
    constexpr bool is_narrow =
        std::is_same_v<TypeParam, narrow_masstree<typename TypeParam::protocol>>;
    for (const auto order : {ascending, descending, shuffled}) {
        TypeParam tree(0);
        const std::size_t empty = tree.index_bytes();
        std::vector<std::uint64_t> numbers(
            obase::testing::scaled_for_build(20'000, 20'000, 20'000));
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 3 * i;
        if (order == descending) std::reverse(numbers.begin(), numbers.end());
        if (order == shuffled) std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(1));
        for (const auto n : numbers) ASSERT_TRUE(tree.put(number_key(n), std::to_string(n)));
        for (const auto n : numbers) {
            ASSERT_EQ(read(tree, number_key(n)), std::to_string(n));
            ASSERT_FALSE(tree.contains(number_key(n + 1)));
        }
        if (!is_narrow) {
            EXPECT_LT(tree.index_bytes(), numbers.size() * (order == shuffled ? 40 : 26));
        }
        ASSERT_EQ(scanned(tree, number_key(2), 1).at(0).first, number_key(3));
        ASSERT_EQ(scanned(tree, "", SIZE_MAX).size(), numbers.size());
        std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(2));
        for (const auto n : numbers) ASSERT_TRUE(tree.erase(number_key(n)));
        EXPECT_EQ(tree.index_bytes(), empty);
        EXPECT_TRUE(tree.put("a", "b"));
        EXPECT_EQ(read(tree, "a"), "b");
    }
}

// Thousands of layers: no recursion, whether they are made, searched, scanned, taken out from below, or
// destroyed with the tree; and all their memory comes back.
TYPED_TEST(masstrees, may_have_thousands_of_layers) {
    const std::string beginning(32'768, 'x');
    for (const bool destroyed_full : {false, true}) {
        TypeParam tree;
        const std::size_t empty = tree.index_bytes();
        contents model;
        const auto put = [&](const std::string& key) {
            ASSERT_TRUE(tree.put(key, "v"));
            model[key] = "v";
        };
        put(beginning + "a");
        EXPECT_LE(tree.index_bytes(), empty + left_behind<TypeParam>); // one entry, with a tail
        put(beginning + "b");
        put(beginning.substr(0, 20'000));
        put(beginning.substr(0, 20'001) + "y");
        put(beginning.substr(0, 8));
        put("y");
        agree(tree, model);
        ASSERT_EQ(scanned(tree, beginning + "aa", 1).at(0).first, beginning + "b");
        ASSERT_EQ(scanned(tree, beginning.substr(0, 15'000), 1).at(0).first,
                  beginning.substr(0, 20'000));
        ASSERT_EQ(scanned(tree, beginning + "c", 1).at(0).first, beginning.substr(0, 20'001) + "y");
        EXPECT_GT(tree.index_bytes(), 4'000u * 400);
        if (destroyed_full) continue;
        while (!model.empty()) {
            ASSERT_TRUE(tree.erase(model.begin()->first));
            model.erase(model.begin());
            agree(tree, model);
        }
        EXPECT_LE(tree.index_bytes(), empty + left_behind<TypeParam>);
    }
}

// Insertions that need nodes and get none change nothing: neither keys nor memory.
TYPED_TEST(masstrees, make_nodes_before_they_change_any) {
    if (!obase::testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    TypeParam tree;
    contents model;
    std::mt19937_64 random(1);
    std::size_t refused = 0;
    for (int step = 0; step < 4000; ++step) {
        const std::string key = step % 2 == 0 ? key_of_slices(random) : number_key(random() % 5000);
        const std::size_t bytes = tree.index_bytes();
        bool is_new = false;
        try {
            const obase::testing::heap_shortage none;
            is_new = tree.put(key, "1");
        } catch (const std::bad_alloc&) {
            ++refused;
            ASSERT_EQ(tree.index_bytes(), bytes);
            ASSERT_EQ(tree.size(), model.size());
            ASSERT_FALSE(tree.contains(key));
            is_new = tree.put(key, "1");
        }
        ASSERT_EQ(is_new, model.emplace(key, "1").second);
    }
    EXPECT_GT(refused, 100u);
    agree(tree, model);
}

// A search dereferences the value, and the key only if it goes on behind the slice in which it is
// alone; of a key that is not there at most one that agrees in that slice.
TYPED_TEST(masstrees, dereference_nothing_but_what_is_sought) {
    TypeParam tree;
    constexpr std::uint64_t keys = 5'000;
    const auto scattered = [](std::uint64_t n) { return n * 0x9e3779b97f4a7c15u; };
    const auto name = [&](std::uint64_t n) {
        return number_key(scattered(n)) + "and something behind it";
    };
    for (std::uint64_t n = 0; n < keys; ++n) {
        tree.put(number_key(n), "value");
        tree.put(name(n), "value");
    }
    const auto visits = [&](const std::string& key) {
        std::vector<std::size_t> sizes;
        tree.visit_path(key, [&](const void*, std::size_t size) { sizes.push_back(size); });
        return sizes;
    };
    const std::size_t header = sizeof(obase::bytes);
    for (std::uint64_t n = 0; n < keys; ++n) {
        ASSERT_EQ(visits(number_key(n)), std::vector<std::size_t>{header + 5});
        ASSERT_EQ(visits(name(n)), (std::vector<std::size_t>{header + 31, header + 5}));
        ASSERT_TRUE(visits(number_key(keys + n)).empty());
        ASSERT_TRUE(visits(name(keys + n)).empty());
        ASSERT_EQ(visits(name(n) + "!"), std::vector<std::size_t>{header + 31});
    }
}

// Blocks of neighbouring keys come and go, so that nodes and layers do; every 25th key stays.
TYPED_TEST(masstrees, change_under_readers_and_a_collector_that_never_rests) {
    TypeParam tree;
    const std::size_t empty = tree.index_bytes();
    // Tens share a slice, hundreds another; some go on, some end with the slice or before.
    const auto name = [](std::uint64_t i) {
        std::string key = "of" + std::to_string(100'000 + i / 100 * 100) +
                          std::to_string(1'000'000 + i / 10) + "|" + std::to_string(i % 10);
        if (i % 3 == 0) key += "and some more";
        if (i % 7 == 0) key = "at" + std::to_string(100'000 + i);
        return key;
    };
    blocks_come_and_go(tree, obase::testing::scaled(150, 60'000, 1'000'000), name,
                       [this] { this->collect(); });
    EXPECT_LE(tree.index_bytes(), empty + left_behind<TypeParam>);
}

} // namespace
