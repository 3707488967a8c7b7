// SPDX-License-Identifier: MIT
//
// The store against a std::map, with words stored, erased and moved in any order; what it costs per
// slot for several layouts; what it does without memory.
#include "soda/slot_states.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>

using obase::soda::slot_states;

namespace {

constexpr std::uintptr_t base = std::uintptr_t{1} << 40;
constexpr std::size_t page = std::size_t{1} << slot_states::page_shift;
constexpr std::size_t span = slot_states::word_span;

using model = std::map<std::uintptr_t, std::uint16_t>; // by slot

void expect_same(slot_states& states, const model& expected, std::size_t words) {
    RC_ASSERT(states.validate());
    for (std::size_t word = 0; word < words; ++word) {
        const std::uintptr_t at = base + word * span;
        slot_states::values got;
        states.load(at, ~std::uint64_t{0}, got);
        for (unsigned bit = 0; bit < 64; ++bit) {
            const auto found = expected.find(at + 8 * bit);
            RC_ASSERT(got[bit] == (found == expected.end() ? 0 : found->second));
        }
    }
}

// Masks as programs have them: of arrays, of equal nodes, and any.
std::uint64_t any_mask() {
    switch (*rc::gen::inRange(0, 4)) {
    case 0:
        return 0;
    case 1:
        return ~std::uint64_t{0};
    case 2:
        return 0x0101010101010101u << *rc::gen::inRange(0, 8);
    default:
        return *rc::gen::arbitrary<std::uint64_t>();
    }
}

RC_GTEST_PROP(slot_states, holds_what_a_map_holds, ()) {
    const unsigned bits = *rc::gen::inRange(1u, 17u);
    const auto largest = static_cast<std::uint16_t>((1u << bits) - 1);
    slot_states states(bits);
    model expected;
    // Around the border of two pages, so that moves cross it.
    constexpr std::size_t words = 2 * slot_states::words_per_page;
    constexpr std::size_t low = slot_states::words_per_page - 6, high = low + 12;
    const auto erase_range = [&](std::uintptr_t begin, std::uintptr_t end) {
        expected.erase(expected.lower_bound(begin), expected.lower_bound(end));
    };
    const int steps = *rc::gen::inRange(1, 40);
    for (int step = 0; step < steps; ++step) {
        const std::uintptr_t at = base + *rc::gen::inRange(low, high) * span;
        switch (*rc::gen::inRange(0, 4)) {
        case 0:
        case 1: {
            slot_states::values in{};
            const std::uint64_t mask = any_mask();
            erase_range(at, at + span);
            for (unsigned bit = 0; bit < 64; ++bit) {
                if ((mask >> bit & 1) == 0) continue;
                in[bit] = static_cast<std::uint16_t>(*rc::gen::inRange<unsigned>(0, largest + 1u));
                expected[at + 8 * bit] = in[bit];
            }
            states.store(at, mask, in);
            break;
        }
        case 2: {
            const std::uintptr_t end = at + *rc::gen::inRange<std::size_t>(0, 4) * span;
            states.erase(at, end);
            erase_range(at, end);
            break;
        }
        default: {
            const std::size_t size = 8 * *rc::gen::inRange<std::size_t>(1, 200);
            const std::uintptr_t from = at + 8 * *rc::gen::inRange<std::size_t>(0, 64);
            const std::uintptr_t to = base + *rc::gen::inRange(low, high) * span +
                                      8 * *rc::gen::inRange<std::size_t>(0, 64);
            if (from < to + size && to < from + size) break; // an object does not overlap itself
            states.move(from, to, size);
            model moved;
            for (auto it = expected.lower_bound(from);
                 it != expected.end() && it->first < from + size; ++it)
                moved[it->first - from + to] = it->second;
            erase_range(from, from + size);
            erase_range(to, to + size);
            expected.insert(moved.begin(), moved.end());
        }
        }
        if (*rc::gen::inRange(0, 8) == 0) states.trim(base, base + words * span);
    }
    for (std::size_t word = 0; word < low; ++word)
        RC_ASSERT(expected.lower_bound(base + word * span) ==
                  expected.lower_bound(base + word * span + span));
    expect_same(states, expected, words);
}

// More different masks in a page than there are numbers for patterns, come and gone.
TEST(slot_states, pages_with_many_patterns) {
    for (const std::size_t different : {200u, 254u, 255u, 256u, 300u, 512u}) {
        slot_states states(7);
        model expected;
        for (int round = 0; round < 3; ++round)
            for (std::size_t word = 0; word < slot_states::words_per_page; ++word) {
                slot_states::values in{};
                const std::uint64_t mask =
                    (word % different + 1) * 0x9E3779B97F4A7C15u + static_cast<unsigned>(round);
                const std::uintptr_t at = base + word * span;
                expected.erase(expected.lower_bound(at), expected.lower_bound(at + span));
                for (unsigned bit = 0; bit < 64; ++bit) {
                    in[bit] = static_cast<std::uint16_t>((word + bit) & 127);
                    if ((mask >> bit & 1) != 0) expected[at + 8 * bit] = in[bit];
                }
                states.store(at, mask, in);
            }
        ASSERT_TRUE(states.validate()) << different;
        for (const auto& [slot, state] : expected) {
            slot_states::values got;
            const std::uint64_t bit = std::uint64_t{1} << (slot >> 3 & 63);
            states.load(slot & ~(span - 1), bit, got);
            ASSERT_EQ(got[slot >> 3 & 63], state) << different;
        }
    }
}

// All numbers for patterns are taken, some of them by what is gone: the others get new numbers.
TEST(slot_states, patterns_that_are_gone_give_their_numbers_back) {
    slot_states states(7);
    const auto put = [&](std::size_t word, std::uint64_t mask) {
        slot_states::values in{};
        in.fill(static_cast<std::uint16_t>(word & 127));
        states.store(base + word * span, mask, in);
    };
    for (std::size_t word = 0; word < 255; ++word) put(word, word + 1);
    for (std::size_t word = 0; word < 10; ++word) put(word, 0);
    put(300, 4096);
    ASSERT_TRUE(states.validate());
    for (std::size_t word = 0; word < 255; ++word) {
        slot_states::values got;
        states.load(base + word * span, ~std::uint64_t{0}, got);
        for (unsigned bit = 0; bit < 64; ++bit)
            ASSERT_EQ(got[bit], word >= 10 && ((word + 1) >> bit & 1) != 0 ? word & 127 : 0)
                << word << ' ' << bit;
    }
}

TEST(slot_states, what_is_empty_takes_no_memory) {
    slot_states states(15);
    const std::size_t nothing = states.memory_bytes();
    slot_states::values in{};
    for (std::size_t word = 0; word < 2000; ++word) states.store(base + word * span, 0xff, in);
    EXPECT_GT(states.memory_bytes(), nothing);
    states.erase(base, base + 1000 * span);
    for (std::size_t word = 1000; word < 2000; ++word) states.store(base + word * span, 0, in);
    EXPECT_LT(states.memory_bytes(), nothing + 256); // the map's table
    states.store(base, 1, in);
    states.drop_if([](std::uintptr_t at) { return at == base; });
    slot_states::values got;
    states.load(base, 1, got);
    EXPECT_EQ(got[0], 0);
    EXPECT_LT(states.memory_bytes(), nothing + 256);
}

// The size that most policies have: whole words, the first slots of a word, and any.
TEST(slot_states, sixteen_bits_of_any_slots) {
    slot_states states(16);
    const std::uint64_t masks[] = {
        ~std::uint64_t{0}, 0xff, 0xff00, 0x8000'0000'0000'0001, 0x5555, 1, 2};
    std::size_t word = 0;
    for (const std::uint64_t mask : masks) {
        slot_states::values in;
        for (std::size_t i = 0; i < 64; ++i)
            in[i] = static_cast<std::uint16_t>(0x8001 + 64 * word + i);
        states.store(page + word * span, mask, in);
        ++word;
    }
    word = 0;
    for (const std::uint64_t mask : masks) {
        for (const std::uint64_t wanted : {mask, mask & 0xff, ~std::uint64_t{0}}) {
            slot_states::values got;
            got.fill(0xdead);
            states.load(page + word * span, wanted, got);
            for (std::size_t i = 0; i < 64; ++i) {
                const bool stored = (mask & wanted) >> i & 1;
                ASSERT_EQ(got[i], stored            ? 0x8001 + 64 * word + i
                                  : wanted >> i & 1 ? 0
                                                    : 0xdead)
                    << word << ' ' << i;
            }
        }
        ++word;
    }
    for (word = 0; word < std::size(masks); ++word) states.store(page + word * span, 0, {});
    EXPECT_LT(states.memory_bytes(), 1000U) << "its page has gone";
}

TEST(slot_states, zero_bits_cost_nothing) {
    slot_states states(0);
    slot_states::values in{};
    in.fill(9);
    const std::size_t nothing = states.memory_bytes();
    states.store(base, ~std::uint64_t{0}, in);
    states.move(base, base + page, 512);
    EXPECT_EQ(states.memory_bytes(), nothing);
    slot_states::values got;
    states.load(base, 1, got);
    EXPECT_EQ(got[0], 0);
}

// What is reserved in many steps is memory that the program's malloc keeps.
TEST(slot_states, a_page_like_the_one_before_it_gets_its_memory_at_once) {
    slot_states states(16);
    const slot_states::values in{};
    const auto fill = [&](std::uintptr_t at) {
        for (std::uintptr_t word = 0; word < page / 2; word += span)
            states.store_in_turn(at + word, 0x0101'0101'0101'0101, in);
    };
    const std::size_t none = states.memory_bytes();
    fill(base);
    states.trim(base, base + page);
    const std::size_t one = states.memory_bytes() - none;
    fill(base + page);
    EXPECT_NEAR(static_cast<double>(states.memory_bytes() - none), 2. * static_cast<double>(one),
                256)
        << "it has not been trimmed";
    // Who does not trim gets an eighth more at most.
    slot_states others(16);
    const std::size_t before = others.memory_bytes();
    for (std::uintptr_t word = 0; word < page / 2; word += span)
        others.store(base + word, 0x0101'0101'0101'0101, in);
    EXPECT_LT(others.memory_bytes() - before, one + one / 7 + 256);
    // An object that moves there is one of few, and nobody trims its page until the next window.
    const std::size_t two = states.memory_bytes();
    states.move(base, base + 2 * page, span);
    EXPECT_LT(states.memory_bytes() - two, 1500u);
}

double bytes_per_slot(unsigned bits, std::size_t stride, bool jitter = false) {
    slot_states states(bits);
    slot_states::values in{};
    std::mt19937_64 random(7);
    std::size_t slots = 0;
    constexpr std::size_t bytes = std::size_t{16} << 20;
    std::vector<std::uint64_t> masks(bytes / span);
    for (std::size_t at = 0; at + stride <= bytes; at += stride) {
        const std::size_t slot = jitter ? at + 8 * (random() % (stride / 8)) : at;
        masks[slot / span] |= std::uint64_t{1} << (slot / 8 % 64);
        ++slots;
    }
    for (std::size_t word = 0; word < masks.size(); ++word)
        if (masks[word] != 0) states.store(base + word * span, masks[word], in);
    states.trim(base, base + bytes);
    return static_cast<double>(states.memory_bytes()) / static_cast<double>(slots);
}

// The table in docs/architecture.md.
TEST(slot_states, costs_what_the_document_says) {
    struct {
        const char* layout;
        std::size_t stride;
        bool jitter;
        double most_15, most_12;
    } const rows[] = {
        {"array", 8, false, 1.91, 1.53},
        {"node of 64 bytes", 64, false, 2.05, 1.67},
        {"node of 48 bytes", 48, false, 2.10, 1.72},
        {"one slot anywhere in 64 bytes", 64, true, 2.93, 2.55},
        {"one slot in 1 KiB", 1024, false, 5.0, 5.0},
    };
    for (const auto& row : rows) {
        const double with_15 = bytes_per_slot(15, row.stride, row.jitter);
        const double with_12 = bytes_per_slot(12, row.stride, row.jitter);
        RecordProperty(row.layout, std::to_string(with_15));
        std::printf("%-32s 15 bits: %.3f  12 bits: %.3f bytes per slot\n", row.layout, with_15,
                    with_12);
        EXPECT_LE(with_15, row.most_15) << row.layout;
        EXPECT_LE(with_12, row.most_12) << row.layout;
    }
}

} // namespace
