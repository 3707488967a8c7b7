// SPDX-License-Identifier: MIT
//
// tree_test: what the tests of CrestDB's trees have in common: keys, reading a tree as a map is read,
// random steps that are held against a map, and blocks of keys that come and go under readers.
//
//     class my_tree : public crestdb::testing::tree_test<Tree> {};
//     EXPECT_EQ(scanned(tree, "", 10), expected(model, "", 10));
//     crestdb::testing::steps_agree_with_a_map(tree, model, {.key = odd_key, .steps = 4000}, collect);
//
// What all indexes must do is tested by index_test.cpp.
#pragma once

#include "testing/quiet_runtime.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace crestdb::testing {

using pairs = std::vector<std::pair<std::string, std::string>>;
using contents = std::map<std::string, std::string>;

template <class Tree>
class tree_test : public ::testing::Test {
  public:
    using protocol = typename Tree::protocol;
    tree_test()
        : runtime(obase::testing::quiet_runtime<
                  std::conditional_t<protocol::moves_objects, protocol, obase::arming>>()) {}
    void collect() {
        if (protocol::moves_objects) runtime.collect_now();
    }
    obase::runtime& runtime;
};

// Keys that are hard on heads and prefixes: of few letters, zero bytes among them, prefixes of each
// other, with common beginnings longer than a head, 64 KiB long.
inline std::string odd_key(std::mt19937_64& random) {
    static const std::string beginnings[] = {"",
                                             std::string(1, '\0'),
                                             "user000000",
                                             "user0000001234567",
                                             "\xff\xff\xff",
                                             std::string(4, '\0'),
                                             "user",
                                             std::string(9, '\0'),
                                             "user0000001234567" + std::string(40, '\xff')};
    const std::uint64_t beginning = random() % 200;
    std::string key =
        beginning == 199 ? std::string(65536, 'x') : beginnings[beginning % std::size(beginnings)];
    static const char letters[] = {'\0', 'a', '0', '1', '\xff'};
    for (auto n = random() % 5; n != 0; --n) key.push_back(letters[random() % std::size(letters)]);
    return key;
}

// 30 bytes, digits at the end.
inline std::string numbered_key(std::uint64_t number) {
    std::string digits = std::to_string(number);
    return "user" + std::string(26 - digits.size(), '0') + digits;
}

template <class Tree>
std::string read(const Tree& tree, std::string_view key) {
    std::string copy = "(absent)";
    const bool there = tree.get(key, [&](std::string_view value) { copy = value; });
    EXPECT_EQ(there, tree.contains(key));
    return copy;
}

template <class Tree>
pairs scanned(const Tree& tree, std::string_view from, std::size_t limit) {
    pairs result;
    const std::size_t n = tree.scan(
        from, limit, [&](std::string_view k, std::string_view v) { result.emplace_back(k, v); });
    EXPECT_EQ(n, result.size());
    return result;
}

inline pairs expected(const contents& model, const std::string& from, std::size_t limit) {
    pairs result;
    for (auto at = model.lower_bound(from); at != model.end() && result.size() < limit; ++at)
        result.emplace_back(*at);
    return result;
}

template <class Tree>
void agree(const Tree& tree, const contents& model) {
    ASSERT_EQ(tree.size(), model.size());
    for (const auto& [key, value] : model) ASSERT_EQ(read(tree, key), value);
    ASSERT_EQ(scanned(tree, "", SIZE_MAX), expected(model, "", SIZE_MAX));
}

struct random_steps {
    std::string (*key)(std::mt19937_64&);
    std::uint64_t steps;
    std::uint64_t turn = 1000; // steps in which it grows, and then as many in which it shrinks
    std::uint64_t seed = 1;
};

// Of an empty tree; what it holds at the end is in `model`.
template <class Tree>
void steps_agree_with_a_map(Tree& tree, contents& model, const random_steps& how,
                            const std::function<void()>& collect) {
    std::mt19937_64 random(how.seed);
    for (std::uint64_t step = 0; step < how.steps; ++step) {
        const std::string key = how.key(random);
        const std::string value = std::to_string(random() % 1000);
        const bool grow = step / how.turn % 2 == 0;
        const auto at = model.find(key);
        const bool there = at != model.end();
        switch (random() % 9) {
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
        case 5:
            ASSERT_EQ(tree.modify(key,
                                  [&](std::string_view old) {
                                      EXPECT_EQ(old, at->second);
                                      return old.substr(0, 1);
                                  }),
                      there);
            if (there) at->second = at->second.substr(0, 1);
            break;
        case 6:
            if (there) at->second = value;
            ASSERT_EQ(tree.update(key, value), there);
            break;
        case 7: {
            const std::size_t limit = random() % 50;
            ASSERT_EQ(scanned(tree, key, limit), expected(model, key, limit));
            break;
        }
        default:
            ASSERT_EQ(read(tree, key), there ? at->second : "(absent)");
        }
        ASSERT_EQ(tree.size(), model.size());
        if (step % how.turn == 0) {
            collect();
            agree(tree, model);
        }
    }
    agree(tree, model);
}

// Blocks of neighbouring keys, 3000 in all, come and go by two writers, while others read and scan, and
// another thread collects; every 25th key stays. name(i) is the key with the number i, different
// for each. At the end the tree is empty.
template <class Tree>
void blocks_come_and_go(Tree& tree, std::uint64_t rounds,
                        const std::function<std::string(std::uint64_t)>& name,
                        const std::function<void()>& collect) {
    constexpr std::uint64_t keys = 3000, stays = 25, block = 250;
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(names.insert(name(i)).second);
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
                bool first = true;
                tree.scan("", SIZE_MAX, [&](std::string_view k, std::string_view v) {
                    wrong += !(first || last < k) || !v.starts_with(k);
                    first = false;
                    last = k;
                    stayed += staying.count(k);
                });
                wrong += stayed != staying.size();
            }
        });
    }
    others.emplace_back([&] {
        while (!stop) collect();
    });
    for (auto& w : writers) w.join();
    stop = true;
    for (auto& o : others) o.join();
    EXPECT_EQ(wrong, 0u);
    const pairs left = scanned(tree, "", SIZE_MAX);
    EXPECT_EQ(left.size(), tree.size());
    for (const auto& [key, value] : left) ASSERT_TRUE(tree.erase(key));
}

} // namespace crestdb::testing
