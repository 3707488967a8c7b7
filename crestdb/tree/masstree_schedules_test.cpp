// SPDX-License-Identifier: MIT
//
// Masstree under the deterministic scheduler: border nodes of three entries and interior nodes of two
// keys, so that a handful of keys splits and removes nodes of all kinds, and keys that share slices,
// so that layers come and go; over plain words and over words that a mover arms.
#include "crestdb/tree/masstree.hpp"

#include "testing/index_schedules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

namespace testing = obase::testing;
using kind = testing::key_operation::kind;

struct smallest_shape : testing::scheduled_surroundings {
    static constexpr unsigned border_width = 3;
    static constexpr unsigned interior_width = 2;
    static constexpr std::size_t alignment = 16;
};

template <class Protocol>
class masstree_schedules : public ::testing::Test {
  public:
    using tree = crestdb::basic_masstree<Protocol, smallest_shape>;
    using recorder = testing::index_recorder<tree>;
    static constexpr std::size_t tails_size =
        sizeof(typename crestdb::masstree_nodes<Protocol, smallest_shape>::tails);

    // The scene spawns threads. When all keys have been erased the tree must be as small as an empty
    // one, whatever happened before.
    template <class Scene>
    static void explore(const std::string& name, const std::vector<std::string>& keys,
                        Scene&& scene, std::uint64_t seeds = 1'500) {
        const testing::result r = testing::explore_index_at_random<tree>(
            name, seeds, keys, [&](tree& t, recorder& record) {
                const std::size_t empty = t.index_bytes();
                scene(t, record);
                testing::run();
                record.check(t);
                for (std::size_t k = 0; k < keys.size(); ++k) record.perform(t, k, kind::erase);
                // The last node may have kept its block of tails.
                testing::require(t.index_bytes() <= empty + tails_size,
                                 "nodes are left without keys");
            });
        ASSERT_TRUE(r.ok) << r.report;
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
TYPED_TEST_SUITE(masstree_schedules, protocols, names);

const std::string same = "12345678"; // a slice

// The fourth key splits the node. A reader looks for keys that stay, that move, and that come.
TYPED_TEST(masstree_schedules, a_border_node_is_split_under_readers_and_writers) {
    this->explore("split", {"b", "c", "d", "e"}, [](auto& t, auto& record) {
        for (const std::size_t k : {0u, 2u, 3u}) record.perform(t, k, kind::put);
        testing::spawn([&] { record.perform(t, 1, kind::put); });
        testing::spawn([&] {
            record.perform(t, 3, kind::put);
            record.perform(t, 3, kind::get);
            record.perform(t, 1, kind::get);
        });
        testing::spawn([&] {
            record.perform(t, 0, kind::modify);
            record.perform(t, 2, kind::erase);
        });
        testing::spawn_mover<TypeParam>();
    });
}

// Ascending, in the middle, descending: interior nodes are split, and the root.
TYPED_TEST(masstree_schedules, the_tree_grows_under_everybody) {
    this->explore(
        "growth", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"},
        [](auto& t, auto& record) {
            for (const std::size_t k : {1u, 3u, 5u, 7u, 8u, 9u}) record.perform(t, k, kind::put);
            testing::spawn([&] {
                record.perform(t, 10, kind::put);
                record.perform(t, 11, kind::put);
            });
            testing::spawn([&] {
                record.perform(t, 4, kind::put);
                record.perform(t, 6, kind::put);
                record.perform(t, 9, kind::get);
            });
            testing::spawn([&] {
                record.perform(t, 0, kind::put);
                record.perform(t, 7, kind::update);
                record.perform(t, 10, kind::get);
            });
        },
        800);
}

// A reader with an old permutation finds another key in the slot.
TYPED_TEST(masstree_schedules, a_slot_is_used_again) {
    this->explore("slot reuse", {"a", "b", "aa"}, [](auto& t, auto& record) {
        for (const std::size_t k : {0u, 1u}) record.perform(t, k, kind::put);
        testing::spawn([&] {
            for (int i = 0; i < 3; ++i) { // the slots go round
                record.perform(t, 0, kind::erase);
                record.perform(t, 2, kind::put);
                record.perform(t, 2, kind::erase);
                record.perform(t, 0, kind::put);
            }
        });
        testing::spawn([&] {
            record.perform(t, 0, kind::get);
            record.perform(t, 2, kind::get);
            record.perform(t, 0, kind::modify);
        });
        testing::spawn([&] { record.perform(t, 2, kind::get); });
        testing::spawn_mover<TypeParam>();
    });
}

// Border nodes are taken out under readers, insertions that come too late, and other removals.
TYPED_TEST(masstree_schedules, border_nodes_disappear) {
    this->explore("removal", {"a", "b", "c", "d", "e", "f", "g"}, [](auto& t, auto& record) {
        for (std::size_t k = 0; k < 7; ++k) record.perform(t, k, kind::put);
        testing::spawn([&] {
            for (const std::size_t k : {2u, 3u, 4u}) record.perform(t, k, kind::erase);
        });
        testing::spawn([&] {
            record.perform(t, 5, kind::erase);
            record.perform(t, 6, kind::erase);
            record.perform(t, 4, kind::put);
        });
        testing::spawn([&] {
            record.perform(t, 3, kind::put);
            record.perform(t, 3, kind::get);
            record.perform(t, 5, kind::get);
        });
    });
}

// The node that goes is its parent's first child: the range goes to a neighbour below another parent,
// while another thread is on the way to it.
TYPED_TEST(masstree_schedules, a_range_goes_to_another_parent) {
    std::vector<std::string> keys;
    for (const char c : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'})
        keys.emplace_back(1, c);
    keys.emplace_back("gg");
    this->explore(
        "another parent", keys,
        [](auto& t, auto& record) {
            for (std::size_t k = 0; k < 12; ++k) record.perform(t, k, kind::put);
            for (const std::size_t k : {3u, 6u, 7u}) record.perform(t, k, kind::erase);
            testing::spawn([&] { record.perform(t, 8, kind::erase); });
            testing::spawn([&] {
                record.perform(t, 12, kind::put);
                record.perform(t, 12, kind::get);
            });
        },
        4'000);
}

// Two erasures, of the last keys but one of two nodes anywhere in the tree: what is left is one border
// node, whichever of the two removed what.
TYPED_TEST(masstree_schedules, no_root_is_left_with_one_child) {
    std::vector<std::string> keys;
    for (char c = 'a'; c <= 'l'; ++c) keys.emplace_back(1, c);
    this->explore(
        "one child", keys,
        [](auto& t, auto& record) {
            const std::size_t empty = t.index_bytes();
            for (std::size_t k = 0; k < 12; ++k) record.perform(t, k, kind::put);
            const std::size_t first = 1 + testing::choose(10);
            const std::size_t second =
                first + 1 + testing::choose(static_cast<unsigned>(11 - first));
            for (std::size_t k = 1; k < 12; ++k)
                if (k != first && k != second) record.perform(t, k, kind::erase);
            testing::spawn([&record, &t, first] { record.perform(t, first, kind::erase); });
            testing::spawn([&record, &t, second] { record.perform(t, second, kind::erase); });
            testing::run();
            testing::require(t.index_bytes() == empty, "interior nodes are left with one child");
        },
        4'000);
}

TYPED_TEST(masstree_schedules, everything_disappears) {
    this->explore(
        "all empty", {"a", "b", "c", "d", "e", "f", "g", "h"},
        [](auto& t, auto& record) {
            for (std::size_t k = 0; k < 8; ++k) record.perform(t, k, kind::put);
            testing::spawn([&] {
                for (const std::size_t k : {0u, 1u, 2u, 3u}) record.perform(t, k, kind::erase);
            });
            testing::spawn([&] {
                for (const std::size_t k : {7u, 6u, 5u, 4u}) record.perform(t, k, kind::erase);
            });
            testing::spawn([&] {
                record.perform(t, 0, kind::get);
                record.perform(t, 2, kind::put);
                record.perform(t, 2, kind::erase);
            });
        },
        800);
}

// Two keys share one slice or three: the first one's value moves to the new layers while it is read
// and written, or while the key is erased.
TYPED_TEST(masstree_schedules, layers_are_made) {
    for (const std::string& shared : {same, same + same + same}) {
        this->explore("new layer", {shared + "a", shared + "b", shared + "behind this", same},
                      [](auto& t, auto& record) {
                          record.perform(t, 0, kind::put);
                          testing::spawn([&] { record.perform(t, 1, kind::put); });
                          testing::spawn([&] {
                              record.perform(t, 0, kind::modify);
                              record.perform(t, 0, kind::get);
                              record.perform(t, 3, kind::put);
                          });
                          testing::spawn([&] {
                              record.perform(t, 2, kind::put);
                              record.perform(t, 0, kind::erase);
                              record.perform(t, 1, kind::get);
                          });
                          testing::spawn_mover<TypeParam>();
                      });
    }
}

// Before the layer is put in place its first key goes, and another one comes into the slot.
TYPED_TEST(masstree_schedules, a_layer_is_not_made_of_a_key_that_has_gone) {
    this->explore("another key", {same + "a", same + "b", same + "c", "2", "3"},
                  [](auto& t, auto& record) {
                      for (const std::size_t k : {0u, 3u, 4u}) record.perform(t, k, kind::put);
                      testing::spawn([&] { record.perform(t, 1, kind::put); });
                      testing::spawn([&] {
                          record.perform(t, 0, kind::erase);
                          record.perform(t, 2, kind::put);
                          record.perform(t, 2, kind::get);
                      });
                  });
}

// The last keys of layers go, and others come.
TYPED_TEST(masstree_schedules, layers_disappear) {
    for (const std::string& shared : {same, same + same + same}) {
        this->explore("old layer", {shared + "a", shared + "b", shared + "c"},
                      [](auto& t, auto& record) {
                          for (const std::size_t k : {0u, 1u}) record.perform(t, k, kind::put);
                          testing::spawn([&] {
                              record.perform(t, 0, kind::erase);
                              record.perform(t, 0, kind::put);
                          });
                          testing::spawn([&] {
                              record.perform(t, 1, kind::erase);
                              record.perform(t, 1, kind::get);
                          });
                          testing::spawn([&] {
                              record.perform(t, 2, kind::put);
                              record.perform(t, 2, kind::get);
                              record.perform(t, 2, kind::erase);
                          });
                      });
    }
}

// The root of a layer is split, and goes again, while the link still leads to the old one.
TYPED_TEST(masstree_schedules, a_layer_grows_and_shrinks) {
    std::vector<std::string> keys;
    for (const char c : {'a', 'b', 'c', 'd', 'e', 'f'}) keys.push_back(same + c);
    this->explore(
        "layer", keys,
        [](auto& t, auto& record) {
            for (const std::size_t k : {0u, 2u, 4u}) record.perform(t, k, kind::put);
            testing::spawn([&] {
                record.perform(t, 1, kind::put);
                record.perform(t, 0, kind::erase);
                record.perform(t, 1, kind::erase);
            });
            testing::spawn([&] {
                record.perform(t, 4, kind::erase);
                record.perform(t, 2, kind::erase);
                record.perform(t, 3, kind::put);
            });
            testing::spawn([&] {
                record.perform(t, 5, kind::put);
                record.perform(t, 3, kind::get);
                record.perform(t, 5, kind::erase);
            });
        },
        4'000);
}

// Everything at once, chosen by the scheduler.
TYPED_TEST(masstree_schedules, any_operations) {
    const std::vector<std::string> keys = {"a", "b", same, same + "a", same + "b", "c"};
    this->explore(
        "any", keys,
        [&](auto& t, auto& record) {
            for (std::size_t k = 0; k < keys.size(); ++k)
                if (testing::choose(2) != 0) record.perform(t, k, kind::put);
            for (int thread = 0; thread < 3; ++thread) {
                testing::spawn([&] {
                    for (int i = 0; i < 3; ++i)
                        record.perform(t, testing::choose(static_cast<unsigned>(keys.size())),
                                       static_cast<kind>(testing::choose(5)));
                });
            }
            if (testing::choose(2) != 0) testing::spawn_mover<TypeParam>();
        },
        2'500);
    if (TypeParam::arms) {
        EXPECT_GT(testing::scheduled_world::moves, 0u);
    }
}

// Keys that stay are shown once each and in order, whatever is split, removed or made a layer beside
// them.
TYPED_TEST(masstree_schedules, scan_neither_misses_nor_repeats) {
    const std::vector<std::string> keys = {
        "a", "b", "c", "d", same + "a", same + "c", same + "e", same + "g", same + "i", "e"};
    const std::vector<std::string> stay = {"a", "d", same + "c", same + "g"};
    this->explore(
        "scan", keys,
        [&](auto& t, auto& record) {
            for (const std::size_t k : {0u, 2u, 3u, 5u, 6u, 7u}) record.perform(t, k, kind::put);
            testing::spawn([&] {
                record.perform(t, 2, kind::erase);
                record.perform(t, 1, kind::put);
                record.perform(t, 8, kind::put);
            });
            testing::spawn([&] {
                record.perform(t, 6, kind::erase);
                record.perform(t, 4, kind::put);
                record.perform(t, 9, kind::put);
                record.perform(t, 7, kind::put);
            });
            testing::spawn([&] {
                const std::vector<std::string> seen = testing::scanned(t);
                for (const std::string& key : stay)
                    testing::require(std::binary_search(seen.begin(), seen.end(), key),
                                     "a key that stays is not missed");
            });
            testing::spawn_mover<TypeParam>();
        },
        1'000);
}

// A node's range grows when its successor goes, also while a scan has seen the one and not the other.
// The key that then comes goes to a slot that was never in use: only the removal tells.
TYPED_TEST(masstree_schedules, scan_of_a_node_whose_range_grows) {
    this->explore(
        "range grows", {"a", "b", "f", "fa", "fb", "g"},
        [](auto& t, auto& record) {
            for (const std::size_t k : {0u, 1u, 2u, 5u, 3u}) record.perform(t, k, kind::put);
            record.perform(t, 2, kind::erase);
            testing::spawn([&] {
                record.perform(t, 3, kind::erase);
                record.perform(t, 4, kind::put);
            });
            testing::spawn([&] { testing::scanned(t); });
        },
        4'000);
}

// A layer goes and another one, or a long key, comes in its place, while a scan is in it.
TYPED_TEST(masstree_schedules, scan_of_a_layer_that_goes) {
    this->explore(
        "layer goes", {same, same + "a", same + "b", same + "c", "2"}, [](auto& t, auto& record) {
            for (const std::size_t k : {0u, 1u, 2u, 4u}) record.perform(t, k, kind::put);
            testing::spawn([&] {
                for (const std::size_t k : {1u, 2u}) record.perform(t, k, kind::erase);
                record.perform(t, 3, kind::put);
                record.perform(t, 1, kind::put);
            });
            testing::spawn([&] {
                const std::vector<std::string> seen = testing::scanned(t);
                testing::require(seen.size() >= 2 && seen.front() == same && seen.back() == "2",
                                 "a key that stays is not missed");
            });
        });
}

} // namespace
