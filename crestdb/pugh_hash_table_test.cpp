// SPDX-License-Identifier: MIT
//
// Pugh's table by itself, against std::map, and under a witness with a collector that never rests.
#include "crestdb/pugh_hash_table.hpp"

#include "testing/quiet_runtime.hpp"
#include "testing/tier.hpp"
#include "testing/witness.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

template <class Protocol>
using runtime_protocol = std::conditional_t<Protocol::moves_objects, Protocol, obase::arming>;

template <class Protocol>
class pugh : public ::testing::Test {
  public:
    pugh() : runtime(obase::testing::quiet_runtime<runtime_protocol<Protocol>>()) {}
    obase::runtime& runtime;
};

using protocols = ::testing::Types<obase::plain, obase::arming, obase::atc>;
TYPED_TEST_SUITE(pugh, protocols);

template <class Table>
std::string read(const Table& table, std::string_view key) {
    std::string copy = "(absent)";
    table.get(key, [&](std::string_view value) { copy = value; });
    return copy;
}

TYPED_TEST(pugh, keeps_what_it_is_given) {
    crestdb::pugh_hash_table<TypeParam> table(16);
    EXPECT_FALSE(table.contains("a"));
    EXPECT_TRUE(table.put("a", "1"));
    EXPECT_FALSE(table.put("a", "2"));
    EXPECT_FALSE(table.update("b", "x"));
    EXPECT_TRUE(table.update("a", "3"));
    EXPECT_EQ(read(table, "a"), "3");
    EXPECT_EQ(table.size(), 1u);
    EXPECT_TRUE(table.erase("a"));
    EXPECT_FALSE(table.erase("a"));
    EXPECT_EQ(read(table, "a"), "(absent)");
    EXPECT_TRUE(table.put("", ""));
    EXPECT_EQ(read(table, ""), "");
    const std::string large(65536, '\xff');
    EXPECT_TRUE(table.put(large, large));
    EXPECT_EQ(read(table, large), large);
    EXPECT_EQ(table.size(), 2u);
}

// One bucket: every operation walks the same list, and deleted nodes are next to each other.
TYPED_TEST(pugh, agrees_with_a_map_while_objects_move) {
    for (const std::size_t buckets : {1u, 64u}) {
        crestdb::pugh_hash_table<TypeParam> table(buckets);
        std::map<std::string, std::string> model;
        std::uint64_t x = 42;
        for (int step = 0; step < 6000; ++step) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            const std::string key = std::to_string(x % 97);
            const std::string value(x >> 32 & 127, static_cast<char>('a' + x % 26));
            switch (x >> 16 & 3) {
            case 0:
                ASSERT_EQ(table.put(key, value), model.insert_or_assign(key, value).second);
                break;
            case 1:
                ASSERT_EQ(table.erase(key), model.erase(key) == 1);
                break;
            case 2: {
                const bool there = model.count(key) != 0;
                if (there) model[key] = value;
                ASSERT_EQ(table.update(key, value), there);
                break;
            }
            default:
                ASSERT_EQ(read(table, key), model.count(key) != 0 ? model[key] : "(absent)");
            }
            if (step % 500 == 0 && TypeParam::moves_objects) this->runtime.collect_now();
            ASSERT_EQ(table.size(), model.size());
        }
        for (const auto& [key, value] : model) ASSERT_EQ(read(table, key), value);
    }
}

// No stale read and no lost write, whatever the collector does meanwhile.
TYPED_TEST(pugh, witness_finds_nothing) {
    constexpr std::size_t keys = 4096;
    constexpr unsigned writers = 2;
    obase::testing::witness witness(keys, 0, 300);
    // Few buckets, so that lists are long enough for neighbours to be deleted together.
    crestdb::pugh_hash_table<TypeParam> table(keys / 4);
    const std::uint64_t reads = obase::testing::scaled(400'000, 120'000'000, 2'000'000'000);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < writers; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t x = 7 + t;
            while (!stop) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                // Half of the writes go to a few keys; writer t owns the keys that are t mod
                // writers.
                const std::size_t range = (x & 1) != 0 ? 64 : keys;
                const std::size_t key = (x >> 8) % (range / writers) * writers + t;
                const auto ticket = witness.begin_write(key);
                const std::string name = "key" + std::to_string(key);
                if (ticket.erase)
                    table.erase(name);
                else
                    table.put(name, ticket.value);
                witness.end_write(ticket);
            }
        });
    }
    for (unsigned t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            std::uint64_t x = 1000 + t;
            while (witness.reads() < reads) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                const std::size_t range = (x & 1) != 0 ? 64 : keys;
                const std::size_t key = (x >> 8) % range;
                const auto ticket = witness.begin_read(key);
                std::string copy;
                const bool found =
                    table.get("key" + std::to_string(key), [&](std::string_view v) { copy = v; });
                witness.end_read(ticket, found, copy);
            }
            stop = true;
        });
    }
    if constexpr (TypeParam::moves_objects) {
        threads.emplace_back([&] {
            while (!stop) this->runtime.collect_now();
        });
    }
    for (auto& t : threads) t.join();
    std::size_t present = 0;
    for (std::size_t key = 0; key < keys; ++key) {
        const auto ticket = witness.begin_read(key);
        std::string copy;
        const bool found =
            table.get("key" + std::to_string(key), [&](std::string_view v) { copy = v; });
        witness.end_read(ticket, found, copy);
        ASSERT_EQ(found, witness.present(key)) << "a lost write, key " << key;
        present += found;
    }
    EXPECT_EQ(table.size(), present);
    EXPECT_EQ(witness.stale(), 0u);
    EXPECT_EQ(witness.corrupt(), 0u);
    std::printf(
        "%llu reads witnessed, %llu moves\n", static_cast<unsigned long long>(witness.reads()),
        static_cast<unsigned long long>(obase::testing::moves_of(this->runtime.statistics())));
}

} // namespace
