// SPDX-License-Identifier: MIT
//
// Every transition on the arming word, from every state; and the atomic beneath, whose operations
// must do what their names say.
#include <obase/word/arming.hpp>
#include <obase/word/atomic.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace obase::word {
namespace {

using slot = native_atomic<bits>;

constexpr bits a = 0x7fff'ffff'fff0; // the highest user addresses
constexpr bits b = 0x0000'0000'1000;
constexpr std::uint64_t window = 9;

struct state {
    const char* name;
    bits word;
    bits address;
    bool plain, null, armed, born;
};
const state states[] = {
    {"null", 0, 0, true, true, false, false},
    {"plain", a, a, true, false, false, false},
    {"armed", arming::make_armed(a, window), a, false, false, true, false},
    {"armed, stamp 0", arming::make_armed(a, 0), a, false, false, true, false},
    {"armed, all stamp bits", arming::make_armed(a, ~std::uint64_t{0}), a, false, false, true,
     false},
    {"born", arming::make_born(a), a, false, false, false, true},
};

TEST(arming_word, states_are_told_apart) {
    for (const state& s : states) {
        SCOPED_TRACE(s.name);
        EXPECT_EQ(arming::is_plain(s.word), s.plain);
        EXPECT_EQ(arming::is_null(s.word), s.null);
        EXPECT_EQ(arming::is_armed(s.word), s.armed);
        EXPECT_EQ(arming::is_born(s.word), s.born);
        EXPECT_EQ(arming::address(s.word), s.address);
    }
}

// R3: only make_armed() makes an armed word, whatever the address.
TEST(arming_word, fields_do_not_mix) {
    EXPECT_TRUE(rc::check("fields", [](std::uint64_t any_address, std::uint64_t any_window) {
        const bits address = any_address & arming::address_mask;
        const bits armed = arming::make_armed(address, any_window);
        RC_ASSERT(arming::address(armed) == address);
        RC_ASSERT(arming::is_armed(armed) && !arming::is_born(armed) && !arming::is_plain(armed));
        const bits born = arming::make_born(address);
        RC_ASSERT(arming::address(born) == address);
        RC_ASSERT(arming::is_born(born) && !arming::is_armed(born) && !arming::is_plain(born));
        RC_ASSERT(arming::is_null(armed) == (address == 0));
    }));
}

TEST(arming_word, age_counts_windows_modulo_the_stamp) {
    EXPECT_TRUE(rc::check("age", [](std::uint64_t armed_in) {
        const auto windows = *rc::gen::inRange<std::uint64_t>(0, arming::restamp_age * 2);
        RC_ASSERT(arming::age(arming::make_armed(a, armed_in), armed_in + windows) == windows);
    }));
}

TEST(arming_word, touch_makes_plain) {
    for (const state& s : states) {
        SCOPED_TRACE(s.name);
        slot w(s.word);
        const touch_result r = touch(w);
        EXPECT_EQ(r.address, s.address);
        EXPECT_EQ(r.disarmed, !s.plain);
        EXPECT_EQ(w.load_relaxed(), s.address);
        EXPECT_FALSE(touch(w).disarmed) << "the second one finds it plain";
    }
}

TEST(arming_word, arm_takes_the_exact_word) {
    for (const state& s : states) {
        if (s.null) continue; // R17: the mover does not arm null
        SCOPED_TRACE(s.name);
        slot w(s.word);
        EXPECT_TRUE(arm(w, s.word, 77));
        EXPECT_EQ(w.load_relaxed(), arming::make_armed(a, 77));
        for (const state& other : states) {
            if (other.word == s.word) continue;
            slot x(s.word);
            EXPECT_FALSE(arm(x, other.word, 77)) << other.name;
            EXPECT_EQ(x.load_relaxed(), s.word);
        }
    }
}

TEST(arming_word, publish_takes_the_exact_word) {
    const bits source = arming::make_armed(a, window);
    const bits target = arming::make_armed(b, window);
    slot w(source);
    EXPECT_TRUE(publish(w, source, target));
    EXPECT_EQ(w.load_relaxed(), target);
    for (const state& s : states) {
        if (s.word == source) continue;
        slot x(s.word);
        EXPECT_FALSE(publish(x, source, target)) << s.name;
        EXPECT_EQ(x.load_relaxed(), s.word) << s.name;
    }
}

// What comes out goes into another slot as it is: untouched if it was, but never armed (R3).
TEST(arming_word, replace_returns_the_old_object_plain_or_born) {
    for (const state& s : states)
        for (const bits fresh : {bits{0}, b, arming::make_born(b)}) {
            slot w(s.word);
            const bits out = replace(w, fresh);
            EXPECT_EQ(arming::address(out), s.address) << s.name;
            if (s.address != 0) {
                EXPECT_EQ(arming::is_plain(out), s.plain) << s.name;
                EXPECT_EQ(arming::is_born(out), !s.plain) << s.name;
            }
            EXPECT_EQ(w.load_relaxed(), fresh) << s.name;
        }
}

// An object that changes slots is as old as before, and no younger where its stamp means something else in a born word.
TEST(arming_word, replace_keeps_the_age) {
    for (const std::uint64_t armed_in : {0U, 1U, 2U, 3U, 77U, (1U << arming::stamp_bits) - 1}) {
        slot w(arming::make_armed(a, armed_in));
        const bits out = replace(w, bits{0});
        ASSERT_TRUE(arming::is_aged(out) && arming::is_born(out)) << armed_in;
        EXPECT_FALSE(arming::is_armed(out) || arming::is_touched(out) || arming::is_plain(out));
        for (const unsigned later : {0U, 1U, 5U, 1000U}) {
            const unsigned age = arming::age(out, armed_in + later);
            EXPECT_GE(age, later) << armed_in;
            EXPECT_LE(age, later + (armed_in < 2 ? 2 : 0)) << armed_in;
        }
        // Through further slots, and as any born word.
        slot other(out);
        EXPECT_EQ(replace(other, bits{0}), out);
        other.store_relaxed(out);
        EXPECT_EQ(touch(other).address, a);
        EXPECT_EQ(other.load_relaxed(), a);
    }
    EXPECT_FALSE(arming::is_aged(arming::make_born(a)));
    EXPECT_FALSE(arming::is_aged(arming::make_born_touched(a)));
}

TEST(arming_word, compare_replace_ignores_tags) {
    for (const state& s : states)
        for (const bits fresh : {bits{0}, b, arming::make_born(b)}) {
            SCOPED_TRACE(s.name);
            slot w(s.word);
            bits expected = s.address;
            EXPECT_TRUE(compare_replace(w, expected, fresh));
            EXPECT_EQ(w.load_relaxed(), fresh);
        }
}

// R5: an address handed out by a failure is one that a thread may use, so the word is plain.
TEST(arming_word, failed_compare_replace_touches) {
    for (const state& s : states) {
        SCOPED_TRACE(s.name);
        slot w(s.word);
        bits expected = b;
        EXPECT_FALSE(compare_replace(w, expected, arming::make_born(b)));
        EXPECT_EQ(expected, s.address);
        EXPECT_EQ(w.load_relaxed(), s.address);
    }
}

// A sequence of transitions against the plainest model: an address and whether a thread touched it.
TEST(arming_word, any_sequence_keeps_address_and_touch) {
    EXPECT_TRUE(rc::check("sequences", [] {
        slot w(0);
        bits address = 0;
        bool untouched = false;
        const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
        for (const int step : steps) {
            const bits seen = w.load_relaxed();
            const bits other = 16 * (1 + *rc::gen::inRange<bits>(0, 4));
            switch (step) {
            case 0:
                RC_ASSERT(touch(w).address == address);
                untouched = false;
                break;
            case 1:
                if (address == 0) break;
                RC_ASSERT(arm(w, seen, 3));
                untouched = true;
                break;
            case 2:
                RC_ASSERT(
                    publish(w, arming::make_armed(address, 3), arming::make_armed(other, 3)) ==
                    (seen == arming::make_armed(address, 3)));
                if (seen == arming::make_armed(address, 3)) address = other;
                break;
            case 3: {
                const bits out = replace(w, arming::make_born(other));
                RC_ASSERT(arming::address(out) == address);
                RC_ASSERT(arming::is_born(out) == (untouched && address != 0));
                RC_ASSERT(!arming::is_touched(out) || out == address);
            }
                address = other;
                untouched = true;
                break;
            default: {
                bits expected = other;
                const bool done = compare_replace(w, expected, 48);
                RC_ASSERT(done == (address == other));
                if (!done) RC_ASSERT(expected == address);
                if (done) address = 48;
                untouched = false;
            }
            }
            RC_ASSERT(arming::address(w.load_relaxed()) == address);
            RC_ASSERT(arming::is_plain(w.load_relaxed()) == (!untouched || address == 0));
        }
    }));
}

TEST(native_atomic, operations_do_what_they_say) {
    native_atomic<unsigned> x(5);
    EXPECT_EQ(x.load_relaxed(), 5u);
    x.store_relaxed(6);
    EXPECT_EQ(x.load_acquire(), 6u);
    x.store_release(7);
    EXPECT_EQ(x.load_seq_cst(), 7u);
    x.store_seq_cst(8);
    EXPECT_EQ(x.exchange_relaxed(9), 8u);
    EXPECT_EQ(x.exchange_acq_rel(10), 9u);
    EXPECT_EQ(x.exchange_seq_cst(16), 10u);
    EXPECT_EQ(x.fetch_add_relaxed(1), 16u);
    EXPECT_EQ(x.fetch_add_acq_rel(1), 17u);
    EXPECT_EQ(x.fetch_add_seq_cst(1), 18u);
    EXPECT_EQ(x.fetch_sub_relaxed(1), 19u);
    EXPECT_EQ(x.fetch_sub_acq_rel(1), 18u);
    EXPECT_EQ(x.fetch_sub_seq_cst(1), 17u);
    EXPECT_EQ(x.fetch_or_relaxed(1), 16u);
    EXPECT_EQ(x.fetch_or_acq_rel(2), 17u);
    EXPECT_EQ(x.fetch_or_seq_cst(4), 19u);
    EXPECT_EQ(x.fetch_and_relaxed(~1u), 23u);
    EXPECT_EQ(x.fetch_and_acq_rel(~2u), 22u);
    EXPECT_EQ(x.fetch_and_seq_cst(~4u), 20u);
    EXPECT_EQ(x.load_relaxed(), 16u);
}

TEST(native_atomic, compare_exchange_reports_what_it_saw) {
    native_atomic<unsigned> x(1);
    const auto check = [&](auto cas, unsigned next) {
        unsigned expected = 99;
        EXPECT_FALSE(cas(expected, 100u));
        EXPECT_EQ(expected, next - 1);
        EXPECT_TRUE(cas(expected, next));
        EXPECT_EQ(x.load_relaxed(), next);
    };
    check([&](unsigned& e, unsigned d) { return x.cas_relaxed(e, d); }, 2);
    check([&](unsigned& e, unsigned d) { return x.cas_release(e, d); }, 3);
    check([&](unsigned& e, unsigned d) { return x.cas_acq_rel(e, d); }, 4);
    check([&](unsigned& e, unsigned d) { return x.cas_seq_cst(e, d); }, 5);
}

// The debug mode's word reports the next dereference, and still tells of the last one: through a
// change of slots, until the collector arms it.
TEST(arming_word, made_to_report_again_it_keeps_the_touch) {
    const bits address = 0x7f0000001000;
    const bits again = arming::make_born_touched(address);
    EXPECT_TRUE(arming::is_born(again) && !arming::is_armed(again) && !arming::is_plain(again));
    EXPECT_TRUE(arming::is_touched(again) && arming::is_touched(address));
    EXPECT_FALSE(arming::is_touched(arming::make_born(address)));
    EXPECT_FALSE(arming::is_touched(arming::make_armed(address, 1)));
    native_atomic<bits> word(again);
    EXPECT_EQ(replace(word, bits{0}), again);
    word.store_relaxed(again);
    EXPECT_TRUE(arm(word, again, 7));
    EXPECT_EQ(word.load_relaxed(), arming::make_armed(address, 7));
    word.store_relaxed(again);
    const touch_result touched = touch(word);
    EXPECT_TRUE(touched.disarmed);
    EXPECT_EQ(touched.address, address);
}

} // namespace
} // namespace obase::word
