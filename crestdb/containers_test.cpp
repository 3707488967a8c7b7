// SPDX-License-Identifier: MIT
//
// obase::hash_map and obase::lru_cache on threads: what each operation means, against models; with a
// witness while the collector never rests; without memory; and that everything of them moves. Chosen
// schedules are in lru_cache_schedules_test.cpp, the table's own in segmented_hash_table*_test.cpp.
#include <obase/hash_map.hpp>
#include <obase/lru_cache.hpp>

#include "testing/heap_shortage.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"
#include "testing/witness.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace testing = obase::testing;

std::string name_of(std::size_t i) { return "user" + std::to_string(i); }

template <class Protocol>
class containers : public ::testing::Test {
  public:
    template <class K, class V>
    using map = obase::hash_map<K, V, Protocol>;
    template <class K, class V>
    using cache = obase::lru_cache<K, V, Protocol>;
    static obase::runtime& runtime() { return testing::quiet_runtime<Protocol>(); }
    static void collect() { ASSERT_EQ(runtime().collect_now(), obase::collect_result::done); }
    static constexpr std::size_t all = SIZE_MAX;
};
struct protocol_names {
    template <class Protocol>
    static std::string GetName(int) {
        return Protocol::name;
    }
};
using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(containers, protocols, protocol_names);

struct point {
    int x, y;
};
// Not trivially copyable, relocatable: three words on the heap of malloc.
using numbers = std::vector<int>;

TYPED_TEST(containers, map_has_what_was_put) {
    typename TestFixture::template map<std::string, std::string> m;
    EXPECT_TRUE(m.empty());
    EXPECT_FALSE(m.get("a"));
    EXPECT_TRUE(m.put("a", "1"));
    EXPECT_FALSE(m.put("a", "2")) << "replaced";
    EXPECT_TRUE(m.put("", "of the empty key"));
    EXPECT_TRUE(m.put(std::string_view("zero\0inside", 11), ""));
    EXPECT_EQ(m.get("a"), "2");
    EXPECT_EQ(m.get(""), "of the empty key");
    EXPECT_EQ(m.get(std::string_view("zero\0inside", 11)), "");
    EXPECT_FALSE(m.get("zero"));
    EXPECT_EQ(m.size(), 3u);
    std::string seen;
    EXPECT_TRUE(m.visit("a", [&](std::string_view v) { seen = v; }));
    EXPECT_EQ(seen, "2");
    EXPECT_FALSE(m.visit("b", [&](std::string_view) { FAIL(); }));
    EXPECT_TRUE(m.contains("a"));
    EXPECT_TRUE(m.erase("a"));
    EXPECT_FALSE(m.erase("a"));
    EXPECT_FALSE(m.contains("a"));
    EXPECT_EQ(m.size(), 2u);
}

TYPED_TEST(containers, map_of_other_types) {
    typename TestFixture::template map<point, numbers> m;
    for (int i = 0; i < 1000; ++i) m.put({i, -i}, numbers(static_cast<std::size_t>(i % 7), i));
    for (int window = 0; window < 3; ++window) {
        for (int i = 0; i < 1000; ++i) {
            ASSERT_EQ(m.get({i, -i}), numbers(static_cast<std::size_t>(i % 7), i));
            EXPECT_FALSE(m.contains({i, i + 1}));
        }
        this->collect();
    }
    // Values that cannot be copied are visited.
    typename TestFixture::template map<std::uint64_t, std::unique_ptr<int>> pointers;
    pointers.put(7, std::make_unique<int>(8));
    EXPECT_TRUE(pointers.visit(7, [](const std::unique_ptr<int>& p) { EXPECT_EQ(*p, 8); }));
    pointers.put(7, std::make_unique<int>(9));
    EXPECT_TRUE(pointers.erase(7));
    // Shared ones are counted: nothing is destroyed twice or left.
    const auto shared = std::make_shared<int>(5);
    {
        typename TestFixture::template map<int, std::shared_ptr<int>> holders;
        for (int i = 0; i < 500; ++i) holders.put(i % 50, shared);
        for (int i = 0; i < 25; ++i) EXPECT_TRUE(holders.erase(i));
        EXPECT_EQ(**holders.get(30), 5);
        this->collect();
    }
    this->runtime().reclaim_now();
    EXPECT_EQ(shared.use_count(), 1);
}

TYPED_TEST(containers, map_is_as_a_model_while_everything_moves) {
    typename TestFixture::template map<std::string, std::string> m;
    std::map<std::string, std::string> model;
    std::mt19937 random(1);
    const std::uint64_t before = testing::moves_of(this->runtime().statistics());
    const int steps = static_cast<int>(testing::scaled(20'000, 2'000'000, 2'000'000));
    for (int i = 0; i < steps; ++i) {
        const std::string key = name_of(random() % 500);
        switch (random() % 4) {
        case 0: {
            const std::string value(random() % 300, static_cast<char>('a' + i % 26));
            ASSERT_EQ(m.put(key, value), model.insert_or_assign(key, value).second);
            break;
        }
        case 1:
            ASSERT_EQ(m.erase(key), model.erase(key) == 1);
            break;
        default: {
            const auto at = model.find(key);
            const auto found = m.get(key);
            ASSERT_EQ(found.has_value(), at != model.end());
            ASSERT_TRUE(!found || *found == at->second);
        }
        }
        ASSERT_EQ(m.size(), model.size());
        if (i % 2000 == 0) this->collect();
    }
    EXPECT_GT(testing::moves_of(this->runtime().statistics()), before);
}

// The model of the order: a list, the front used last.
struct lru_model {
    std::size_t capacity;
    std::list<std::pair<std::string, std::string>> order{};

    auto find(const std::string& key) {
        auto at = order.begin();
        while (at != order.end() && at->first != key) ++at;
        return at;
    }
    bool put(const std::string& key, const std::string& value) {
        const auto at = find(key);
        const bool there = at != order.end();
        if (there) order.erase(at);
        order.emplace_front(key, value);
        if (order.size() > capacity) order.pop_back();
        return !there;
    }
    std::optional<std::string> get(const std::string& key) {
        const auto at = find(key);
        if (at == order.end()) return std::nullopt;
        order.splice(order.begin(), order, at);
        return order.front().second;
    }
    bool erase(const std::string& key) {
        const auto at = find(key);
        if (at == order.end()) return false;
        order.erase(at);
        return true;
    }
};

TYPED_TEST(containers, cache_evicts_what_was_not_used_for_longest) {
    for (const std::size_t capacity : {1u, 2u, 50u}) {
        typename TestFixture::template cache<std::string, std::string> c({.entries = capacity});
        lru_model model{capacity};
        std::mt19937 random(static_cast<unsigned>(capacity));
        for (int i = 0; i < 10'000; ++i) {
            const std::string key = name_of(random() % (capacity + capacity / 2 + 2));
            switch (random() % 8) {
            case 0:
                ASSERT_EQ(c.erase(key), model.erase(key));
                break;
            case 1:
            case 2: {
                const std::string value(random() % 100, 'v');
                ASSERT_EQ(c.put(key, value), model.put(key, value));
                break;
            }
            case 3:
                ASSERT_EQ(c.contains(key), model.find(key) != model.order.end()) << "no use";
                break;
            case 4: {
                const auto expected = model.get(key);
                ASSERT_EQ(c.visit(key, [&](std::string_view v) { ASSERT_EQ(v, *expected); }),
                          expected.has_value());
                break;
            }
            default:
                ASSERT_EQ(c.get(key), model.get(key)) << "step " << i;
            }
            ASSERT_EQ(c.size(), model.order.size());
            if (i % 2000 == 0) this->collect();
        }
    }
}

TYPED_TEST(containers, cache_counts_bytes) {
    constexpr std::size_t capacity = 1 << 20;
    typename TestFixture::template cache<std::string, std::string> c({.bytes = capacity});
    for (int i = 0; i < 10'000; ++i) {
        c.put(name_of(static_cast<std::size_t>(i)), std::string(1000, 'x'));
        ASSERT_LE(c.bytes_held(), capacity);
    }
    EXPECT_GT(c.bytes_held(), capacity - 1100) << "full";
    EXPECT_GT(c.size(), capacity / 1100);
    EXPECT_LT(c.size(), capacity / 1000);
    EXPECT_TRUE(c.put("too large", std::string(capacity, 'x')));
    EXPECT_FALSE(c.contains("too large")) << "goes at once, and so did all the others";
    EXPECT_EQ(c.size(), 0u);
    EXPECT_EQ(c.bytes_held(), 0u);
    // A replaced value no longer counts, an erased one neither.
    c.put("a", std::string(500, 'x'));
    const std::size_t one = c.bytes_held();
    EXPECT_EQ(one, 32u + sizeof(obase::bytes) + 1 + sizeof(obase::containers::cached_text) + 500);
    c.put("a", std::string(600, 'x'));
    EXPECT_EQ(c.bytes_held(), one + 100);
    c.erase("a");
    EXPECT_EQ(c.bytes_held(), 0u);

    typename TestFixture::template cache<std::uint64_t, numbers> other({.entries = 3});
    for (std::uint64_t i = 0; i < 10; ++i) other.put(i, numbers{static_cast<int>(i)});
    EXPECT_EQ(other.get(9), numbers{9});
    EXPECT_FALSE(other.get(6));
    EXPECT_EQ(other.size(), 3u);
}

// Everything that makes an entry is a managed object, and moves: what the collector finds is three
// objects per entry, all of them somewhere else after windows in which all were used.
TYPED_TEST(containers, nodes_keys_and_values_move) {
    constexpr std::size_t entries = 3000;
    typename TestFixture::template cache<std::string, std::string> c({.entries = entries});
    for (std::size_t i = 0; i < entries; ++i) c.put(name_of(i), std::string(100, 'x'));
    const std::uint64_t before = testing::moves_of(this->runtime().statistics());
    for (int window = 0; window < 4; ++window) {
        for (std::size_t i = 0; i < entries; ++i) ASSERT_TRUE(c.get(name_of(i)));
        this->collect();
    }
    EXPECT_GE(testing::moves_of(this->runtime().statistics()) - before, 3 * entries);
}

// Writers of their own keys, a reader of all, and a collector that never rests. What a cache has
// forgotten it may miss; what it shows must not be old.
template <class Store>
void witness_finds_nothing(Store& store, obase::runtime& runtime, bool forgets) {
    constexpr std::size_t keys = 300, writers = 2;
    testing::witness witness(keys, 0, 300);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (std::size_t w = 0; w < writers; ++w) {
        threads.emplace_back([&, w] {
            std::mt19937_64 random(w);
            while (!stop) {
                const std::size_t key = random() % (keys / writers) * writers + w;
                const auto ticket = witness.begin_write(key);
                if (ticket.erase)
                    store.erase(name_of(key));
                else
                    store.put(name_of(key), ticket.value);
                witness.end_write(ticket);
            }
        });
    }
    threads.emplace_back([&] {
        while (!stop) runtime.collect_now();
    });
    std::mt19937_64 random(77);
    std::string copy;
    const std::uint64_t reads = testing::scaled(40'000, 20'000'000, 2'000'000'000);
    std::uint64_t hits = 0;
    // Also until the writers have had a processor.
    for (std::uint64_t i = 0; i < reads || hits < reads / 4; ++i) {
        const std::size_t key = random() % keys;
        const auto ticket = witness.begin_read(key);
        const bool found = store.visit(name_of(key), [&](std::string_view v) { copy.assign(v); });
        if (found || !forgets) witness.end_read(ticket, found, copy);
        hits += found;
    }
    stop = true;
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(witness.stale(), 0u);
    EXPECT_EQ(witness.corrupt(), 0u);
    for (std::size_t key = 0; key < keys; ++key) {
        if (forgets)
            EXPECT_TRUE(witness.present(key) || !store.contains(name_of(key))) << "key " << key;
        else
            EXPECT_EQ(store.contains(name_of(key)), witness.present(key)) << "key " << key;
    }
}

TYPED_TEST(containers, witness_finds_nothing_in_a_map) {
    typename TestFixture::template map<std::string, std::string> m;
    witness_finds_nothing(m, this->runtime(), false);
}
TYPED_TEST(containers, witness_finds_nothing_in_a_cache_that_evicts) {
    typename TestFixture::template cache<std::string, std::string> c({.entries = 200});
    witness_finds_nothing(c, this->runtime(), true);
    EXPECT_LE(c.size(), 200u);
    const std::size_t entries = c.size();
    std::size_t gone = 0;
    for (std::size_t key = 0; key < 300; ++key) gone += c.erase(name_of(key));
    EXPECT_EQ(gone, entries);
    EXPECT_EQ(c.bytes_held(), 0u) << "the order knows what the table knows";
}

TYPED_TEST(containers, without_memory_nothing_has_changed) {
    if (!testing::heap_shortage::possible) GTEST_SKIP() << "operator new is the sanitizer's";
    typename TestFixture::template cache<std::string, std::string> fresh({.entries = 10});
    typename TestFixture::template cache<std::string, std::string> c({.entries = 2000});
    for (std::size_t i = 0; i < 1024; ++i) c.put(name_of(i), "x"); // all slots of the first chunk
    const std::size_t held = c.bytes_held();
    {
        testing::heap_shortage none;
        EXPECT_THROW(fresh.put("a", "b"), std::bad_alloc) << "no chunk of slots";
        EXPECT_THROW(c.put("a", "b"), std::bad_alloc) << "no second chunk";
    }
    EXPECT_EQ(fresh.size(), 0u);
    EXPECT_EQ(c.size(), 1024u);
    EXPECT_EQ(c.bytes_held(), held);
    // A value for which there is no room anywhere: its slot is not lost, or all of the first chunk's
    // would be now, and there is none for a second chunk.
    for (int i = 0; i < 1024; ++i)
        EXPECT_THROW(fresh.put("a", std::string_view("x", SIZE_MAX / 2)), std::bad_alloc);
    testing::heap_shortage none;
    EXPECT_TRUE(fresh.put("a", "b"));
    EXPECT_TRUE(c.erase(name_of(0)));
}

} // namespace
