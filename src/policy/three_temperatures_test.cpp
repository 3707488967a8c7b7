// SPDX-License-Identifier: MIT
//
// The migration diagram of OBASE Fig. 5, the never-cold and newborn rules, and the meaning of CIW
// for counters that saturate; the same for 64 slots at a time; what is held in NEW; what may leave.
#include "policy/three_temperatures.hpp"

#include "policy/policies.hpp"
#include "policy/word_builder_test.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>

using namespace obase;
using namespace obase::policy;

namespace {

constexpr tier_id fresh = first_tier, hot = three_temperatures::hot,
                  cold = three_temperatures::cold;

options starting_at(unsigned threshold) {
    options settings;
    settings.cold_threshold = threshold;
    return settings;
}

slot_facts touched_in(tier_id tier) { return {.tier = tier, .touched = true}; }
slot_facts idle_in(tier_id tier, unsigned windows) { return {.tier = tier, .idle = windows}; }

TEST(three_temperatures, gives_its_tiers_and_their_roles) {
    three_temperatures policy(starting_at(3));
    const tier_table& tiers = policy.tiers();
    ASSERT_EQ(tiers.count(), 3u);
    EXPECT_EQ(tiers.named("new"), first_tier);
    EXPECT_EQ(tiers.named("hot"), hot);
    EXPECT_EQ(tiers.named("cold"), cold);
    EXPECT_EQ(tiers.named("warm"), no_tier);
    EXPECT_EQ(tiers.with(&tier::promoted_to), 1u << hot);
    EXPECT_EQ(tiers.with(&tier::reclaimable), 1u << cold);
    EXPECT_EQ(tiers.with(&tier::file_backed), 1u << cold);
    EXPECT_EQ(tiers.with(&tier::lazy), 1u << cold);
    EXPECT_EQ(policy.state_bits(), 0u);
}

TEST(tier_table, refuses_what_the_other_layers_cannot_work_with) {
    static constexpr tier one[] = {{.name = "a"}};
    static constexpr tier twice[] = {{.name = "a"}, {.name = "a"}};
    static constexpr tier unnamed[] = {{.name = "a"}, {}};
    static constexpr tier first_lazy[] = {{.name = "a", .lazy = true}, {.name = "b"}};
    static constexpr tier first_in_file[] = {{.name = "a", .file_backed = true}, {.name = "b"}};
    static constexpr tier two[] = {{.name = "a"}, {.name = "b", .lazy = true}};
    EXPECT_FALSE(tier_table(one).valid());
    EXPECT_FALSE(tier_table(twice).valid());
    EXPECT_FALSE(tier_table(unnamed).valid());
    EXPECT_FALSE(tier_table(first_lazy).valid());
    EXPECT_FALSE(tier_table(first_in_file).valid());
    EXPECT_TRUE(tier_table(two).valid());
    static constexpr const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                            "i", "j", "k", "l", "m", "n", "o", "p"};
    std::array<tier, 16> many;
    for (unsigned i = 0; i < 16; ++i) many[i].name = names[i];
    EXPECT_FALSE(tier_table(many).valid());
    EXPECT_TRUE(tier_table(std::span(many).first(15)).valid());
}

TEST(three_temperatures, touched_objects_gather_in_hot) {
    three_temperatures policy(starting_at(3));
    EXPECT_EQ(target_of(policy, touched_in(fresh)), hot);
    EXPECT_EQ(target_of(policy, touched_in(cold)), hot);
    EXPECT_EQ(target_of(policy, touched_in(hot)), no_tier);
}

TEST(three_temperatures, idle_objects_go_to_cold_when_they_exceed_the_threshold) {
    three_temperatures policy(starting_at(3));
    for (const tier_id from : {fresh, hot}) {
        EXPECT_EQ(target_of(policy, idle_in(from, 3)), no_tier);
        EXPECT_EQ(target_of(policy, idle_in(from, 4)), cold);
    }
    EXPECT_EQ(target_of(policy, idle_in(cold, 100)), no_tier);
}

TEST(three_temperatures, the_first_visit_moves_only_what_was_touched) {
    three_temperatures policy(starting_at(1));
    slot_facts seen = idle_in(fresh, 9);
    seen.newborn = true;
    EXPECT_EQ(target_of(policy, seen), no_tier);
    seen = touched_in(fresh);
    EXPECT_EQ(target_of(policy, seen), hot);
}

// What the program expects holds until something was seen, and no longer.
TEST(three_temperatures, expectations_are_priors) {
    three_temperatures policy(starting_at(3));
    const auto expected = [](auto what, bool newborn, bool touched, unsigned idle = 0) {
        slot_facts seen{.tier = fresh, .touched = touched, .idle = idle, .newborn = newborn};
        seen.expect = what;
        return seen;
    };
    EXPECT_EQ(target_of(policy, expected(slot_facts::cold, true, false)), cold);
    EXPECT_EQ(target_of(policy, expected(slot_facts::hot, true, false)), hot);
    EXPECT_EQ(target_of(policy, expected(slot_facts::once, true, false)), no_tier);
    EXPECT_EQ(target_of(policy, expected(slot_facts::cold, false, false, 1)), cold);
    // Seen: used though it was to be cold, idle though it was to be hot.
    EXPECT_EQ(target_of(policy, expected(slot_facts::cold, false, true)), hot);
    EXPECT_EQ(target_of(policy, expected(slot_facts::hot, false, false, 4)), cold);
    EXPECT_EQ(target_of(policy, expected(slot_facts::once, false, true)), no_tier) << "never HOT";
    EXPECT_EQ(target_of(policy, expected(slot_facts::once, false, false, 4)), cold);
    // In another tier it has been seen.
    slot_facts moved = expected(slot_facts::cold, false, false, 1);
    moved.tier = hot;
    EXPECT_EQ(target_of(policy, moved), no_tier);
    slot_facts kept = expected(slot_facts::cold, true, false);
    kept.never_cold = true;
    EXPECT_EQ(target_of(policy, kept), hot);
}

TEST(three_temperatures, saturated_counters_are_beyond_every_threshold) {
    constexpr unsigned five_bits = 31;
    for (unsigned threshold = 1; threshold <= 32; ++threshold) {
        three_temperatures narrow(starting_at(threshold), five_bits);
        EXPECT_EQ(target_of(narrow, idle_in(hot, five_bits)), cold) << threshold;
        const unsigned first = std::min(threshold + 1, five_bits);
        EXPECT_EQ(target_of(narrow, idle_in(hot, first - 1)), no_tier) << threshold;
        three_temperatures wide(starting_at(threshold));
        EXPECT_EQ(target_of(wide, idle_in(hot, threshold)), no_tier) << threshold;
        EXPECT_EQ(target_of(wide, idle_in(hot, threshold + 1)), cold) << threshold;
    }
}

window_facts window_with(std::uint64_t touched, std::uint64_t in_cold, std::uint64_t cold_live) {
    window_facts facts;
    facts.length_seconds = 60;
    facts.touched_pages = touched;
    facts.tiers[cold].touched_pages = in_cold;
    facts.tiers[cold].live_bytes = cold_live;
    return facts;
}

TEST(three_temperatures, follows_its_controller) {
    three_temperatures policy(starting_at(3));
    policy.end_of_window(window_with(100, 0, 4096)); // brings the first objects into COLD
    const directives next = policy.end_of_window(window_with(100, 50, 4096));
    EXPECT_EQ(next.cold_threshold, 4u);
    EXPECT_EQ(next.promotion_rate, 0.5);
    EXPECT_EQ(target_of(policy, idle_in(hot, 4)), no_tier);
    EXPECT_EQ(target_of(policy, idle_in(hot, 5)), cold);
    EXPECT_EQ(policy.current().cold_threshold, 4u);
    policy.configure(starting_at(7));
    EXPECT_EQ(target_of(policy, idle_in(hot, 7)), no_tier);
    EXPECT_EQ(target_of(policy, idle_in(hot, 8)), cold);
}

// One number for the whole process decides: the promotion rate.
TEST(three_temperatures, untouched_cold_may_leave_after_two_windows_below_the_target) {
    three_temperatures policy(starting_at(3));
    const place idle{4096, 8192, 1}, in_use{4096, 8192, 0};
    policy.end_of_window(window_with(100, 0, 4096));
    policy.end_of_window(window_with(100, 0, 4096));
    EXPECT_FALSE(policy.leaves(cold, idle));
    policy.end_of_window(window_with(100, 0, 4096));
    EXPECT_TRUE(policy.leaves(cold, idle));
    EXPECT_FALSE(policy.leaves(cold, in_use));
    EXPECT_FALSE(policy.leaves(hot, idle));
    EXPECT_FALSE(policy.leaves(fresh, idle));
    policy.end_of_window(window_with(100, 50, 4096));
    EXPECT_FALSE(policy.leaves(cold, idle));
}

TEST(three_temperatures, gives_large_objects_a_role) {
    three_temperatures policy(starting_at(3));
    const auto role = [&](slot_facts seen) {
        seen.large = true;
        const word_verdict verdict = word_builder(policy.tiers()).put(9, seen).ask(policy);
        EXPECT_EQ(verdict.move, 0u);
        return verdict.to[9];
    };
    EXPECT_EQ(role({.touched = true}), hot);
    EXPECT_EQ(role({.idle = 3}), hot);
    EXPECT_EQ(role({.idle = 4}), cold);
    EXPECT_EQ(role({.idle = 4, .newborn = true}), hot);
    EXPECT_EQ(role({.idle = 40, .never_cold = true}), hot);
}

// Half of what was promoted died: promotion from dense runs is held, except for a sample.
TEST(three_temperatures, what_dies_young_is_held_in_dense_runs_of_new) {
    options settings = starting_at(3);
    three_temperatures policy(settings);
    constexpr std::uint64_t mib = 1 << 20;
    const auto window = [&](std::uint64_t promoted, std::uint64_t live_after,
                            std::uint64_t live_later, bool moves = true) {
        window_beginning beginning;
        beginning.moves = moves;
        window_facts facts;
        facts.length_seconds = 60;
        facts.moved_bytes[fresh][hot] = promoted;
        facts.tiers[hot].live_bytes = live_after;
        policy.end_of_window(facts);
        beginning.live_bytes[hot] = live_later;
        policy.begin_window(beginning);
    };
    window_beginning first;
    first.moves = true;
    policy.begin_window(first);
    const auto held_of_64 = [&](const slot_facts& what) {
        word_builder word(policy.tiers());
        for (unsigned slot = 0; slot < 64; ++slot) word.put(slot, what);
        const word_verdict verdict = word.ask(policy);
        EXPECT_EQ(verdict.held & verdict.move, 0u);
        EXPECT_EQ(verdict.held | verdict.move, word.facts.seen);
        EXPECT_EQ(verdict.sample, verdict.held == 0 ? 0 : verdict.move);
        return std::popcount(verdict.held);
    };
    EXPECT_EQ(held_of_64(touched_in(fresh)), 0);
    window(100 * mib, 100 * mib, 10 * mib); // nine tenths died within the window
    EXPECT_EQ(held_of_64(touched_in(fresh)), 63);
    slot_facts sparse = touched_in(fresh);
    sparse.run_is_live = 0.1;
    EXPECT_EQ(held_of_64(sparse), 0) << "promotion is what empties a sparse run";
    EXPECT_EQ(held_of_64(touched_in(cold)), 0) << "only in NEW";
    settings.defer_promotion = false;
    policy.configure(settings);
    EXPECT_EQ(held_of_64(touched_in(fresh)), 0);
    settings.defer_promotion = true;
    policy.configure(settings);
    EXPECT_EQ(held_of_64(touched_in(fresh)), 63) << "options do not change what it has learned";
}

// An observing window moves nothing, so it says nothing of what is promoted.
TEST(three_temperatures, windows_without_moves_teach_nothing) {
    three_temperatures policy(starting_at(3));
    constexpr std::uint64_t mib = 1 << 20;
    window_beginning beginning;
    policy.begin_window(beginning); // observing
    window_facts facts;
    facts.moved_bytes[fresh][hot] = 100 * mib;
    facts.tiers[hot].live_bytes = 100 * mib;
    policy.end_of_window(facts);
    beginning.moves = true;
    policy.begin_window(beginning);
    word_builder word(policy.tiers());
    for (unsigned slot = 0; slot < 64; ++slot) word.put(slot, touched_in(fresh));
    EXPECT_EQ(word.ask(policy).held, 0u);
}

window_beginning waited_for(std::uint64_t bytes, bool early = true) {
    window_beginning beginning;
    beginning.moves = true;
    beginning.early = early;
    beginning.wanted_bytes = bytes;
    return beginning;
}

// Of objects of 64 bytes: `count` of them, as they are seen in one window.
struct objects_alike {
    slot_facts what;
    unsigned count;
};
void see(three_temperatures& policy, std::initializer_list<objects_alike> all) {
    window_facts facts;
    facts.early = true;
    for (const auto& [what, count] : all) {
        word_builder word(policy.tiers());
        for (unsigned slot = 0; slot < count; ++slot) word.put(slot, what);
        word.ask(policy);
    }
    policy.end_of_window(facts);
}

TEST(three_temperatures, while_threads_wait_the_oldest_go_to_cold) {
    three_temperatures policy(starting_at(3));
    policy.begin_window(waited_for(640));
    EXPECT_EQ(target_of(policy, idle_in(fresh, 3)), no_tier) << "the first such window counts";
    EXPECT_EQ(target_of(policy, idle_in(hot, 4)), cold) << "beyond C_t in any case";
    policy.end_of_window(window_facts());
    policy.begin_window(waited_for(640));
    see(policy, {{{.tier = fresh, .quiet = 2}, 5},
                 {{.tier = hot, .idle = 1, .quiet = 9}, 5},
                 {idle_in(fresh, 0), 5},
                 {idle_in(cold, 3), 64},
                 {touched_in(hot), 64},
                 // Of what cannot go no byte counts.
                 {{.tier = fresh, .quiet = 9, .never_cold = true}, 64},
                 {{.tier = fresh, .quiet = 9, .movable = false}, 64},
                 {{.tier = fresh, .quiet = 9, .large = true}, 64}});
    policy.begin_window(waited_for(640));
    EXPECT_EQ(target_of(policy, {.tier = fresh, .quiet = 2}), cold);
    EXPECT_EQ(target_of(policy, idle_in(fresh, 0)), cold) << "both together have the bytes";
    EXPECT_EQ(target_of(policy, {.tier = hot, .idle = 1, .quiet = 9}), no_tier)
        << "HOT is for later";
    EXPECT_EQ(target_of(policy, touched_in(fresh)), hot);
    EXPECT_EQ(target_of(policy, {.tier = fresh, .quiet = 2, .newborn = true}), no_tier);
    EXPECT_EQ(target_of(policy, {.tier = fresh, .quiet = 2, .never_cold = true}), no_tier);
    see(policy, {{{.tier = fresh, .newborn = true}, 2},
                 {{.tier = hot, .quiet = 7}, 8},
                 {idle_in(hot, 0), 64}});
    policy.begin_window(waited_for(640));
    EXPECT_EQ(target_of(policy, idle_in(fresh, 0)), cold) << "made before the last look";
    EXPECT_EQ(target_of(policy, {.tier = hot, .quiet = 7}), cold);
    EXPECT_EQ(target_of(policy, {.tier = hot, .quiet = 6}), no_tier);
    see(policy, {});
    policy.begin_window(waited_for(0, false));
    EXPECT_EQ(target_of(policy, {.tier = fresh, .quiet = 3}), no_tier) << "nobody waits";
}

// What is asked about again in the same window was counted.
TEST(three_temperatures, counts_what_may_leave_once) {
    three_temperatures policy(starting_at(3));
    policy.begin_window(waited_for(640));
    word_builder word(policy.tiers());
    for (unsigned slot = 0; slot < 10; ++slot) word.put(slot, {.tier = fresh, .quiet = 2});
    word.ask(policy);
    word.facts.again = true;
    word.ask(policy);
    policy.end_of_window(window_facts());
    policy.begin_window(waited_for(641));
    EXPECT_EQ(target_of(policy, idle_in(fresh, 0)), cold) << "ten are not enough";
}

// A window in its turn takes no more than is wanted, and nothing that one of the last two saw in use: nothing would
// stop it when enough has left.
TEST(three_temperatures, relieves_with_care_unless_the_window_is_early) {
    for (const bool early : {true, false})
        for (const tier_id at : {fresh, hot})
            for (const unsigned quiet : {1U, 3U}) {
                three_temperatures policy(starting_at(3));
                policy.begin_window(waited_for(64));
                see(policy, {{{.tier = at, .quiet = early ? quiet : quiet - 1}, 1}});
                policy.begin_window(waited_for(64, early));
                EXPECT_EQ(target_of(policy, {.tier = at, .quiet = quiet}),
                          early || quiet == 3 ? cold : no_tier);
            }
    three_temperatures policy(starting_at(3));
    policy.begin_window(waited_for(1, false));
    see(policy, {{{.tier = hot, .quiet = 3}, 64}});
    policy.begin_window(waited_for(16 * 64, false));
    word_builder word(policy.tiers());
    for (unsigned slot = 0; slot < 64; ++slot) word.put(slot, {.tier = hot, .quiet = 4});
    const int left = std::popcount(word.ask(policy).move);
    EXPECT_GT(left, 4) << "a fourth, drawn";
    EXPECT_LT(left, 32);
}

// With a budget the promotion rate does not decide; how much leaves is bounded by what is over it.
TEST(three_temperatures, a_budget_says_what_leaves_whatever_comes_back) {
    three_temperatures policy(starting_at(3));
    const place idle{4096, 8192, 1}, touched{4096, 8192, 0};
    for (const std::uint64_t of_cold : {std::uint64_t{0}, std::uint64_t{90}}) {
        window_facts facts = window_with(100, of_cold, 4096);
        facts.excess_bytes = -1;
        EXPECT_FALSE(policy.end_of_window(facts).pageout_allowed) << "there is room";
        facts.excess_bytes = 1;
        EXPECT_TRUE(policy.end_of_window(facts).pageout_allowed);
        EXPECT_TRUE(policy.leaves(cold, idle));
        EXPECT_FALSE(policy.leaves(cold, touched));
        EXPECT_FALSE(policy.leaves(hot, idle));
    }
    EXPECT_FALSE(policy.end_of_window(window_with(100, 90, 4096)).pageout_allowed);
    EXPECT_FALSE(policy.leaves(cold, idle)) << "no budget, and much comes back";
}

// What early windows saw of COLD in use is part of the next window's rate.
TEST(three_temperatures, an_early_window_does_not_move_the_threshold) {
    three_temperatures policy(starting_at(3));
    policy.end_of_window(window_with(100, 0, 4096));
    window_facts early = window_with(100, 10, 4096);
    early.early = true;
    early.excess_bytes = 1;
    for (int i = 0; i < 5; ++i) {
        const directives next = policy.end_of_window(early);
        EXPECT_EQ(next.cold_threshold, 3u);
        EXPECT_TRUE(next.pageout_allowed) << "it is over its budget";
    }
    EXPECT_TRUE(policy.leaves(cold, {4096, 8192, 1}));
    three_temperatures at_once(starting_at(3));
    at_once.end_of_window(window_with(100, 0, 4096));
    EXPECT_EQ(policy.end_of_window(window_with(90, 0, 4096)),
              at_once.end_of_window(window_with(100, 50, 4096)));
    EXPECT_EQ(policy.current().cold_threshold, 4u);
    EXPECT_EQ(policy.end_of_window(window_with(60, 1, 4096)),
              at_once.end_of_window(window_with(60, 1, 4096)));
    EXPECT_EQ(
        policy.current().promotion_rate,
        three_temperatures(starting_at(3)).end_of_window(window_with(60, 1, 4096)).promotion_rate)
        << "of this window only";
}

// Of what many short windows and the long one before them promoted, nothing dies, or most.
TEST(three_temperatures, what_early_windows_promote_lives_as_long) {
    for (const bool dies : {false, true}) {
        three_temperatures policy(starting_at(3));
        constexpr std::uint64_t mib = 1 << 20;
        window_beginning beginning;
        beginning.moves = true;
        policy.begin_window(beginning);
        window_facts facts;
        facts.moved_bytes[fresh][hot] = 10 * mib;
        facts.tiers[hot].live_bytes = 10 * mib;
        policy.end_of_window(facts);
        for (int i = 0; i < 9; ++i) {
            policy.begin_window(waited_for(1));
            facts.early = true;
            facts.tiers[hot].live_bytes = 0; // not looked at
            facts.moved_bytes[cold][hot] = 2 * mib;
            facts.moved_bytes[hot][cold] = 1 * mib;
            policy.end_of_window(facts);
        }
        beginning.live_bytes[hot] = (100 + 9 - (dies ? 90 : 0)) * mib;
        policy.begin_window(beginning);
        word_builder word(policy.tiers());
        for (unsigned slot = 0; slot < 64; ++slot) word.put(slot, touched_in(fresh));
        EXPECT_EQ(word.ask(policy).held != 0, dies);
    }
}

slot_facts any_slot() {
    slot_facts seen;
    seen.tier = *rc::gen::inRange(0u, 3u);
    seen.touched = *rc::gen::arbitrary<bool>();
    seen.idle = seen.touched ? 0 : *rc::gen::inRange(0u, 40u);
    seen.newborn = !seen.touched && *rc::gen::arbitrary<bool>();
    seen.never_cold = *rc::gen::arbitrary<bool>();
    seen.large = *rc::gen::weightedElement<bool>({{9, false}, {1, true}});
    return seen;
}

RC_GTEST_PROP(three_temperatures, never_cold_objects_never_go_to_cold, ()) {
    three_temperatures policy(starting_at(*rc::gen::inRange(1u, 33u)));
    slot_facts seen = any_slot();
    seen.large = false;
    seen.never_cold = true;
    const tier_id target = target_of(policy, seen);
    RC_ASSERT(target == no_tier || target == hot);
}

// Each slot gets what it would get alone, whatever the others in the word are.
RC_GTEST_PROP(three_temperatures, a_word_is_the_sum_of_its_slots, ()) {
    three_temperatures policy(starting_at(*rc::gen::inRange(1u, 33u)));
    word_builder word(policy.tiers());
    std::array<slot_facts, 64> slots;
    const auto present = *rc::gen::arbitrary<std::uint64_t>();
    const bool alike = *rc::gen::arbitrary<bool>(); // words that are settled as a whole
    const slot_facts pattern = any_slot();
    for (unsigned slot = 0; slot < 64; ++slot) {
        slots[slot] = alike ? pattern : any_slot();
        if ((present >> slot & 1) != 0) word.put(slot, slots[slot]);
    }
    const word_verdict verdict = word.ask(policy);
    RC_ASSERT((verdict.move & ~word.facts.seen) == 0u);
    for (unsigned slot = 0; slot < 64; ++slot) {
        if ((present >> slot & 1) == 0) continue;
        const bool moves = (verdict.move >> slot & 1) != 0;
        word_builder alone(policy.tiers());
        const word_verdict expected = alone.put(slot, slots[slot]).ask(policy);
        RC_ASSERT(moves == (expected.move != 0));
        if (moves || slots[slot].large) RC_ASSERT(verdict.to[slot] == expected.to[slot]);
        if (moves) RC_ASSERT(verdict.to[slot] != slots[slot].tier && verdict.to[slot] < 3);
    }
}

TEST(policies, are_made_by_name) {
    options settings;
    std::string why;
    const auto made = make_policy(settings, ~0u, &why);
    ASSERT_NE(made, nullptr) << why;
    EXPECT_EQ(made->tiers().count(), 3u);
    settings.policy = "paper";
    EXPECT_EQ(make_policy(settings, ~0u, &why), nullptr);
    EXPECT_EQ(why, "policy (OBASE_POLICY): there is no 'paper'; there are: " + policies().names());
    EXPECT_NE(policies().find("papers"), nullptr);
    EXPECT_EQ(policies().find(""), nullptr);
}

} // namespace
