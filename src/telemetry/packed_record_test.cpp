// SPDX-License-Identifier: MIT
//
// A packed record is the record again, whatever is in it, and takes what is in it.
#include "telemetry/packed_record.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

using namespace obase;
using telemetry::pack;
using telemetry::unpack;

namespace {

constexpr std::size_t words = sizeof(window_record) / 8;

bool same(const window_record& a, const window_record& b) {
    return std::memcmp(static_cast<const void*>(&a), static_cast<const void*>(&b), sizeof a) == 0;
}

// Words at random, of few bits or of many.
window_record any_record(std::uint64_t most_words) {
    window_record record{};
    const auto count = *rc::gen::inRange<std::uint64_t>(0, most_words + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto at = *rc::gen::inRange<std::size_t>(0, words);
        const std::uint64_t word = *rc::gen::arbitrary<std::uint64_t>() >>
                                   *rc::gen::inRange(0, 64) << *rc::gen::inRange(0, 64);
        std::memcpy(reinterpret_cast<char*>(&record) + 8 * at, &word, 8);
    }
    return record;
}

RC_GTEST_PROP(packed_record, is_the_record_again, ()) {
    const window_record record = any_record(2 * words), reference = any_record(words);
    RC_ASSERT(same(unpack(pack(record, reference), reference), record));
}

TEST(packed_record, each_word_is_kept_alone) {
    const window_record none{};
    for (std::size_t at = 0; at < words; ++at) {
        window_record record{};
        const std::uint64_t word = 0x8000'0000'0000'0001;
        std::memcpy(reinterpret_cast<char*>(&record) + 8 * at, &word, 8);
        EXPECT_TRUE(same(unpack(pack(record, none), none), record)) << at;
        EXPECT_TRUE(same(unpack(pack(none, record), record), none)) << at;
    }
}

TEST(packed_record, takes_what_differs_from_the_reference) {
    window_record reference{};
    reference.values.mode = "move";
    reference.values.heap_names[3] = "hot";
    EXPECT_EQ(pack(reference, reference).size(), (words + 7) / 8) << "a bit for each word";
    window_record record = reference;
    record.values.heaps[2].live_bytes = 0x12'3456;
    record.values.scanned_guides = 7;
    EXPECT_EQ(pack(record, reference).size(), (words + 7) / 8 + (1 + 3) + (1 + 1));
    EXPECT_STREQ(unpack(pack(record, reference), reference).values.mode, "move");
}

TEST(packed_record, has_room_for_every_byte) {
    window_record full, none{};
    std::memset(static_cast<void*>(&full), 0xFF, sizeof full);
    const std::string bytes = pack(full, none);
    EXPECT_EQ(bytes.size(), (words + 7) / 8 + 9 * words);
    EXPECT_TRUE(same(unpack(bytes, none), full));
}

} // namespace
