// SPDX-License-Identifier: MIT
//
// obase::hash_map under the deterministic scheduler, with a mover: what a reader is shown lasts until
// visit() returns, whatever is put and erased meanwhile; at the end no object is left or freed twice
// (the schedule's heap would tell). The table's own schedules are in
// segmented_hash_table_schedules_test.cpp.
#include <obase/hash_map.hpp>

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
    using map = obase::hash_map<std::string, std::string, protocol, one_segment>;
};

// Looks at the value twice: other threads run in between.
template <class Map>
bool read(const Map& m, std::string_view key, std::string_view possible) {
    return m.visit(key, [&](std::string_view v) {
        testing::require(v.size() == 1, "a value of one byte");
        testing::access(v.data(), 1, false);
        const char seen = v[0];
        testing::require(possible.find(seen) != possible.npos, "a value of this key");
        testing::access(v.data(), 1, false);
        testing::require(v[0] == seen, "the same value until the end");
    });
}

template <class Variant>
class hash_map_schedules : public ::testing::Test {
  public:
    using protocol = typename Variant::protocol;
    using map = typename Variant::map;

    template <class Scene, class End>
    void explore(const std::string& name, Scene&& scene, End&& end) {
        crestdb::testing::explore_container(name, [&] {
            map m;
            scene(m);
            testing::spawn_mover<protocol>();
            testing::run();
            end(m);
        });
    }
};
using variants =
    ::testing::Types<variant<testing::word_kind::plain>, variant<testing::word_kind::arming>>;
TYPED_TEST_SUITE(hash_map_schedules, variants);

// Readers stand on values that are replaced, twice in a row, so that the memory of the first is used
// again.
TYPED_TEST(hash_map_schedules, readers_of_a_value_that_is_replaced) {
    this->explore(
        "replaced",
        [](auto& m) {
            m.put("a", "1");
            testing::spawn(
                [&] { testing::require(read(m, "a", "123"), "replaced, never absent"); });
            testing::spawn([&] {
                testing::require(!m.put("a", "2"), "replaced");
                testing::require(!m.put("a", "3"), "replaced");
            });
        },
        [](auto& m) {
            testing::require(m.get("a") == "3" && m.size() == 1, "the last one stays");
        });
}

// And on values whose key is erased and put again.
TYPED_TEST(hash_map_schedules, readers_of_a_value_that_is_erased) {
    this->explore(
        "erased",
        [](auto& m) {
            m.put("a", "1");
            testing::spawn([&] { read(m, "a", "12"); });
            testing::spawn([&] {
                testing::require(m.erase("a"), "it was there");
                testing::require(m.put("a", "2"), "it was not there");
            });
        },
        [](auto& m) {
            testing::require(m.get("a") == "2" && m.size() == 1, "the last one stays");
        });
}

// Two writers of one key, one of which may find the other's value.
TYPED_TEST(hash_map_schedules, two_puts_of_one_key) {
    unsigned inserted = 0;
    this->explore(
        "two puts",
        [&](auto& m) {
            inserted = 0;
            testing::spawn([&] { inserted += m.put("a", "1"); });
            testing::spawn([&] { inserted += m.put("a", "2"); });
            testing::spawn([&] { read(m, "a", "12"); });
        },
        [&](auto& m) {
            testing::require(inserted == 1 && m.size() == 1, "one of the two was new");
            const auto last = m.get("a");
            testing::require(last == "1" || last == "2", "one of the two stays");
        });
}

} // namespace
