// SPDX-License-Identifier: MIT
//
// obase::lru_cache under the deterministic scheduler: puts, erasures and evictions of the same entries,
// with a mover. At the end the order of use knows exactly the entries of the table, the capacity is
// kept, every slot is free that has no entry, and no object is left or freed twice (the schedule's
// heap would tell).
#include <obase/lru_cache.hpp>

#include "crestdb/container_schedules_test.hpp"
#include "testing/index_schedules.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

namespace testing = obase::testing;

using crestdb::testing::one_segment;

template <testing::word_kind Word>
struct variant {
    using protocol = testing::scheduled_protocol<Word>;
    using cache = obase::lru_cache<std::string, std::string, protocol, one_segment>;
};

template <class Variant>
class lru_schedules : public ::testing::Test {
  public:
    using protocol = typename Variant::protocol;
    using cache = typename Variant::cache;

    // What one entry with a key and a value of one byte counts for.
    static std::size_t entry_bytes(cache& c) {
        c.put("z", "z");
        const std::size_t bytes = c.bytes_held();
        testing::require(c.erase("z") && c.bytes_held() == 0, "an erased entry does not count");
        return bytes;
    }

    template <class Scene>
    void explore(const std::string& name, std::size_t capacity, Scene&& scene) {
        crestdb::testing::explore_container(name, [&] {
            cache c({.entries = capacity});
            const std::size_t one = entry_bytes(c);
            scene(c);
            testing::run();
            testing::require(c.size() <= capacity, "the capacity is kept");
            testing::require(c.bytes_held() == c.size() * one,
                             "the order knows the entries of the table");
            std::size_t gone = 0;
            const std::size_t entries = c.size();
            for (const char* key : {"a", "b", "c"}) gone += c.erase(key);
            testing::require(gone == entries && c.size() == 0, "each entry once");
            testing::require(c.bytes_held() == 0, "no entry, no bytes");
            // Each free slot once: as many new entries as there were slots.
            for (const char* key : {"a", "b", "c"}) c.put(key, "1");
            testing::require(c.size() == std::min<std::size_t>(capacity, 3) &&
                                 c.bytes_held() == c.size() * one,
                             "the slots are as good as new");
        });
    }
};
using variants =
    ::testing::Types<variant<testing::word_kind::plain>, variant<testing::word_kind::arming>>;
TYPED_TEST_SUITE(lru_schedules, variants);

// One of the two takes the other's value out of the table, maybe before it is in the order.
TYPED_TEST(lru_schedules, two_puts_of_one_key_and_an_erasure) {
    this->explore("one key", 4, [&](auto& c) {
        testing::spawn([&] { c.put("a", "1"); });
        testing::spawn([&] { c.put("a", "2"); });
        testing::spawn([&] { c.erase("a"); });
        testing::spawn_mover<typename TestFixture::protocol>();
    });
}

// What is to be evicted is replaced, erased or used meanwhile.
TYPED_TEST(lru_schedules, evictions_of_what_others_change) {
    this->explore("evictions", 1, [&](auto& c) {
        c.put("a", "1");
        testing::spawn([&] { c.put("b", "2"); });
        testing::spawn([&] { c.put("a", "3"); });
        testing::spawn([&] {
            c.visit("a", [](std::string_view v) {
                testing::require(v == "1" || v == "3", "a value of this key");
            });
            c.erase("b");
        });
        testing::spawn_mover<typename TestFixture::protocol>();
    });
}

// Slots are used again at once.
TYPED_TEST(lru_schedules, three_puts_into_one_place) {
    this->explore("three puts", 1, [&](auto& c) {
        for (const char* key : {"a", "b", "c"})
            testing::spawn([&c, key] {
                c.put(key, "1");
                c.put(key, "2");
            });
    });
}

} // namespace
