// SPDX-License-Identifier: MIT
//
// The table against a set, and what SCAN promises while it grows and shrinks.
#include "crestdb/server/scan_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace crestdb::server {

namespace {

struct place {
    std::uint64_t value;
    void begin_from(place& from) noexcept { value = from.value; }
};
using table = scan_table<place>;

std::uint32_t hash_of(std::uint64_t value) {
    value *= 0x9e3779b97f4a7c15u;
    return static_cast<std::uint32_t>(value >> 29);
}

void add(table& t, std::uint64_t value, std::uint32_t hash) { t.insert(hash)->value = value; }
void add(table& t, std::uint64_t value) { add(t, value, hash_of(value)); }
bool has(table& t, std::uint64_t value) {
    return t.find(hash_of(value), [&](place& p) { return p.value == value; }) != nullptr;
}
bool remove(table& t, std::uint64_t value) {
    return t.erase(hash_of(value), [&](place& p) { return p.value == value; }, [](place&) {});
}

std::vector<std::uint64_t> everything(table& t) {
    std::vector<std::uint64_t> all;
    std::uint32_t cursor = 0;
    do {
        cursor = t.scan(cursor, [&](place& p, std::uint32_t) { all.push_back(p.value); });
    } while (cursor != 0);
    return all;
}

TEST(ScanTable, HoldsWhatASetHolds) {
    std::mt19937_64 random(1);
    table t;
    std::unordered_set<std::uint64_t> model;
    for (int phase = 0; phase < 6; ++phase) {
        const bool growing = phase % 2 == 0;
        for (int i = 0; i < 30'000; ++i) {
            const std::uint64_t value = random() % 20'000;
            if (random() % 10 < (growing ? 8u : 2u)) {
                if (model.insert(value).second) add(t, value);
            } else {
                EXPECT_EQ(remove(t, value), model.erase(value) == 1);
            }
        }
        ASSERT_EQ(t.size(), model.size());
        for (std::uint64_t value = 0; value < 20'000; ++value)
            ASSERT_EQ(has(t, value), model.contains(value)) << value;
        const auto all = everything(t);
        EXPECT_EQ(all.size(), model.size()) << "visited once each while nothing changes";
        EXPECT_EQ(std::unordered_set<std::uint64_t>(all.begin(), all.end()), model);
    }
}

// While the table grows and shrinks, and places are used again.
TEST(ScanTable, NotesStayWithTheirEntries) {
    std::mt19937_64 random(5);
    table t;
    std::unordered_map<std::uint64_t, unsigned> model;
    for (int phase = 0; phase < 4; ++phase) {
        for (int i = 0; i < 20'000; ++i) {
            const std::uint64_t value = random() % 10'000;
            if (random() % 10 < (phase % 2 == 0 ? 8u : 2u)) {
                if (model.contains(value)) continue;
                place* p = t.insert(hash_of(value));
                p->value = value;
                ASSERT_EQ(t.note_of(*p), 0u) << "of a new entry";
                model[value] = static_cast<unsigned>(random() % 8);
                t.note(*p, model[value]);
            } else if (model.erase(value) != 0) {
                EXPECT_TRUE(remove(t, value));
            }
        }
        for (const auto& [value, note] : model) {
            place* p =
                t.find(hash_of(value), [&, v = value](place& its) { return its.value == v; });
            ASSERT_NE(p, nullptr);
            ASSERT_EQ(t.note_of(*p), note);
        }
    }
}

TEST(ScanTable, FindsTheOnlyEntryOfAHash) {
    table t;
    EXPECT_EQ(t.find_only(7), nullptr);
    add(t, 1, 7);
    add(t, 2, 8);
    ASSERT_NE(t.find_only(7), nullptr);
    EXPECT_EQ(t.find_only(7)->value, 1u);
    add(t, 3, 7);
    EXPECT_EQ(t.find_only(7), nullptr) << "two";
    add(t, 4, 7);
    EXPECT_EQ(t.find_only(7), nullptr) << "three";
    EXPECT_EQ(t.find_only(8)->value, 2u);
}

TEST(ScanTable, AScanMissesNothingThatStays) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        std::mt19937_64 random(seed);
        table t;
        const std::uint64_t stay = 1000;
        for (std::uint64_t v = 0; v < stay; ++v) add(t, v);
        std::set<std::uint64_t> others;
        std::set<std::uint64_t> seen;
        std::uint32_t cursor = 0;
        bool growing = seed % 2 == 0;
        do {
            cursor = t.scan(cursor, [&](place& p, std::uint32_t) { seen.insert(p.value); });
            // Between two calls the table grows, then shrinks, by far more than a segment.
            if (random() % 16 == 0) growing = !growing;
            for (int i = 0; i < 40; ++i) {
                if (growing) {
                    const std::uint64_t v = stay + random() % 1'000'000;
                    if (others.insert(v).second) add(t, v);
                } else if (!others.empty()) {
                    EXPECT_TRUE(remove(t, *others.begin()));
                    others.erase(others.begin());
                }
            }
        } while (cursor != 0);
        for (std::uint64_t v = 0; v < stay; ++v)
            EXPECT_TRUE(seen.contains(v)) << v << ", seed " << seed;
    }
}

TEST(ScanTable, GivesItsMemoryBack) {
    table t;
    for (std::uint64_t v = 0; v < 100'000; ++v) add(t, v);
    const std::size_t full = t.bytes();
    EXPECT_LT(full, 100'000u * 24) << "at most 24 bytes an entry";
    for (std::uint64_t v = 0; v < 100'000; ++v) EXPECT_TRUE(remove(t, v));
    EXPECT_EQ(t.size(), 0u);
    EXPECT_LT(t.bytes(), full / 100);
}

TEST(ScanTable, EntriesOfOneHashHaveABound) {
    table t;
    for (std::uint64_t v = 0; v < 320; ++v) add(t, v, 7);
    EXPECT_THROW(add(t, 320, 7), std::bad_alloc);
    EXPECT_EQ(t.size(), 320u);
    EXPECT_LT(t.bytes(), 100'000u) << "no directory for bits that all share";
    add(t, 1000, 1u << 31); // others go on
    EXPECT_EQ(everything(t).size(), 321u);
    for (std::uint64_t v = 0; v < 320; ++v)
        EXPECT_TRUE(t.erase(7, [&](place& p) { return p.value == v; }, [](place&) {}));
    EXPECT_EQ(t.size(), 1u);
}

TEST(ScanTable, SamplesAreOfTheTable) {
    table t;
    t.sample(5, 10, [](place&, std::uint32_t) { FAIL(); });
    for (std::uint64_t v = 0; v < 1000; ++v) add(t, v);
    std::mt19937 random(3);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 300; ++i) {
        std::size_t n = 0;
        t.sample(static_cast<std::uint32_t>(random()), 10, [&](place& p, std::uint32_t) {
            ++n;
            seen.insert(p.value);
        });
        EXPECT_GE(n, 10u);
    }
    EXPECT_GT(seen.size(), 700u);
}

} // namespace

} // namespace crestdb::server
