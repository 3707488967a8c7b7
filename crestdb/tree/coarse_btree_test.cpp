// SPDX-License-Identifier: MIT
//
// The B+tree under one lock, without the lock: whether splits, borrowing and merging leave what
// they should, with memory and without. What it shares with the other trees is in btree_test.cpp.
#include "crestdb/tree/coarse_btree.hpp"

#include "crestdb/tree/tree_test.hpp"
#include "testing/heap_shortage.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace {

using crestdb::testing::numbered_key;
using crestdb::testing::odd_key;

struct tiny_shape {
    static constexpr unsigned leaf_entries = 4;
    static constexpr unsigned fanout = 4;
};

template <class Tree>
class sequential_btree : public ::testing::Test {
  public:
    sequential_btree() { obase::testing::quiet_runtime(); }

    bool put(const std::string& key, const std::string& value) {
        const obase::scope one_operation;
        auto fresh = obase::make_bytes<obase::arming>(value);
        auto* there = tree.insert(key, fresh);
        if (there == nullptr) return true;
        obase::retire(there->exchange(std::move(fresh)));
        return false;
    }
    bool erase(const std::string& key) {
        const obase::scope one_operation;
        return tree.remove(key);
    }
    void expect(const std::map<std::string, std::string>& model, bool short_of_memory) {
        const obase::scope one_operation;
        ASSERT_TRUE(tree.well_formed(short_of_memory));
        ASSERT_EQ(tree.size(), model.size());
        auto next = model.begin();
        tree.walk("", [&](const auto& key, const auto& value) {
            const bool same =
                next != model.end() && key->view() == next->first && value->view() == next->second;
            EXPECT_TRUE(same);
            ++next;
            return same;
        });
        ASSERT_TRUE(next == model.end());
    }

    Tree tree;
};

using trees = ::testing::Types<crestdb::basic_sequential_btree<obase::arming, tiny_shape>,
                               crestdb::sequential_btree<obase::arming>>;
TYPED_TEST_SUITE(sequential_btree, trees);

TYPED_TEST(sequential_btree, every_node_is_as_full_as_it_should_be) {
    std::map<std::string, std::string> model;
    std::mt19937_64 random(1);
    const int steps = static_cast<int>(obase::testing::scaled(20'000, 1'000'000, 10'000'000));
    for (int step = 0; step < steps; ++step) {
        // Growing and shrinking in turns; odd keys between neighbours of one length.
        const bool grow = step / 2000 % 2 == 0;
        const std::string key =
            random() % 4 == 0 ? odd_key(random) : numbered_key(random() % 3000 * 1'000'003);
        if (random() % 4 != 0 ? grow : !grow) {
            const std::string value = std::to_string(random() % 100);
            ASSERT_EQ(this->put(key, value), model.insert_or_assign(key, value).second);
        } else {
            // Erasing meets few keys by chance.
            auto at = model.lower_bound(key);
            if (random() % 8 == 0 || at == model.end()) {
                ASSERT_EQ(this->erase(key), model.erase(key) == 1);
            } else {
                ASSERT_TRUE(this->erase(at->first));
                model.erase(at);
            }
        }
        if (step % 64 == 0) {
            this->expect(model, false);
        }
    }
    for (const auto& [key, value] : model) ASSERT_TRUE(this->erase(key));
    this->expect({}, false);
    EXPECT_EQ(this->tree.index_bytes(), TypeParam().index_bytes());
}

TYPED_TEST(sequential_btree, in_ascending_order_leaves_are_fuller_than_half) {
    constexpr std::size_t keys = 10'000;
    std::map<std::string, std::string> model;
    for (std::size_t i = 0; i < keys; ++i) {
        ASSERT_TRUE(this->put(numbered_key(i), "v"));
        model[numbered_key(i)] = "v";
    }
    this->expect(model, false);
    if (std::is_same_v<TypeParam, crestdb::sequential_btree<obase::arming>>) {
        EXPECT_LT(this->tree.index_bytes(), keys * 45);
    }
    // From the front, so that the first leaf borrows from the right all the time.
    for (std::size_t i = 0; i < keys; ++i) {
        ASSERT_TRUE(this->erase(numbered_key(i)));
        model.erase(numbered_key(i));
        if (i % 50 == 0) {
            this->expect(model, false);
        }
    }
}

// Whatever cannot be had, an insertion is all or nothing and an erasure works; later ones repair
// what was left.
TYPED_TEST(sequential_btree, without_memory_it_is_still_a_tree) {
    if (!obase::testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    std::map<std::string, std::string> model;
    std::mt19937_64 random(2);
    std::size_t refused = 0;
    for (int step = 0; step < 20'000; ++step) {
        const bool grow = step / 2000 % 2 == 0;
        const std::string key = numbered_key(random() % 3000), value = "v";
        const bool none = random() % 4 == 0;
        bool inserted = false, thrown = false, erased = false;
        const bool insert = random() % 4 != 0 ? grow : !grow;
        {
            std::optional<obase::testing::heap_shortage> shortage;
            if (none) shortage.emplace();
            if (insert) {
                try {
                    inserted = this->put(key, value);
                } catch (const std::bad_alloc&) {
                    thrown = true;
                }
            } else {
                erased = this->erase(key);
            }
        }
        refused += thrown;
        if (!insert) {
            ASSERT_EQ(erased, model.erase(key) == 1);
        } else if (!thrown) {
            ASSERT_EQ(inserted, model.insert_or_assign(key, value).second);
        }
        if (step % 64 == 0) {
            this->expect(model, true);
        }
    }
    EXPECT_GT(refused, 0u);
    while (!model.empty()) {
        ASSERT_TRUE(this->erase(model.begin()->first));
        model.erase(model.begin());
    }
    this->expect(model, true);
}

} // namespace
