// SPDX-License-Identifier: MIT
//
// The policy `graded`: where a rate belongs, when an object moves, what may leave memory; and what
// layout it makes of a heavy tail, beside that of the policy `papers`, in a simulation without a
// runtime: objects with known rates, a touched bit per window, moves that always succeed.
#include "policy/graded.hpp"

#include "policy/policies.hpp"
#include "policy/three_temperatures.hpp"
#include "policy/word_builder_test.hpp"

#include "testing/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace obase;
using namespace obase::policy;

namespace {

TEST(graded, gives_its_tiers_and_their_roles) {
    options settings;
    settings.policy = "graded";
    const auto policy = make_policy(settings, ~0u, nullptr);
    ASSERT_NE(policy, nullptr);
    const tier_table& tiers = policy->tiers();
    EXPECT_EQ(tiers.count(), 9u);
    EXPECT_EQ(tiers.with(&tier::promoted_to), 1u << graded::hottest);
    EXPECT_EQ(tiers.with(&tier::file_backed), 1u << graded::coldest);
    EXPECT_EQ(tiers.with(&tier::lazy), 1u << graded::coldest);
    EXPECT_EQ(tiers.with(&tier::reclaimable), 0x1feu) << "all but the first";
    EXPECT_EQ(tiers.with(&tier::cold), 1u << graded::coldest);
    EXPECT_EQ(tiers.named("rate7"), graded::hottest);
    EXPECT_EQ(policy->state_bits(), 16u);
}

TEST(graded, a_class_is_an_octave) {
    EXPECT_EQ(graded::tier_of_rate(-1000), graded::coldest);
    EXPECT_EQ(graded::tier_of_rate(-1), graded::coldest);
    EXPECT_EQ(graded::tier_of_rate(0), graded::coldest - 1);
    EXPECT_EQ(graded::tier_of_rate(15), graded::coldest - 1);
    EXPECT_EQ(graded::tier_of_rate(16), graded::coldest - 2);
    EXPECT_EQ(graded::tier_of_rate(6 * 16), graded::hottest);
    EXPECT_EQ(graded::tier_of_rate(1000), graded::hottest);
}

// One slot that lives through windows.
struct life {
    explicit life(const options& settings = {}) : policy(settings) {}

    // Where the policy sends it in this window; no_tier: it stays.
    tier_id window(bool touched) {
        idle = touched ? 0 : idle + 1;
        policy.begin_window({.moves = true, .live_bytes = {}});
        word_builder word(policy.tiers());
        what.touched = touched;
        what.idle = idle;
        word.put(3, what);
        word.facts.state[3] = state;
        const word_verdict verdict = word.ask(policy);
        state = word.facts.state[3];
        role = verdict.to[3];
        // Asked again in the same window: the same answer, and no other state counts.
        word.facts.again = true;
        EXPECT_EQ(word.ask(policy).move, verdict.move);
        return verdict.move == 0 ? no_tier : verdict.to[3];
    }
    // The window in which it is sent away, at most `most`; where to is in `to`.
    int windows_until_it_moves(bool touched, int most = 100) {
        for (int w = 1; w <= most; ++w)
            if ((to = window(touched)) != no_tier) return w;
        return 0;
    }

    graded policy;
    slot_facts what;
    std::uint16_t state = 0;
    unsigned idle = 0;
    tier_id to = no_tier;
    tier_id role = no_tier; // of a large object
};

TEST(graded, objects_leave_the_first_tier_when_they_are_proven) {
    life hot, cold;
    EXPECT_EQ(hot.windows_until_it_moves(true), static_cast<int>(graded::windows_to_prove));
    EXPECT_EQ(hot.to, graded::hottest);
    EXPECT_EQ(cold.windows_until_it_moves(false), static_cast<int>(graded::windows_to_prove));
    EXPECT_EQ(cold.to, graded::coldest);
}

// What the program expects of an object holds until it is seen, and moves it at once.
TEST(graded, expectations_are_priors) {
    const auto life_of = [](auto what) {
        life one;
        one.what.expect = what;
        return one;
    };
    life hot = life_of(slot_facts::hot), cold = life_of(slot_facts::cold);
    EXPECT_EQ(hot.window(false), graded::hottest);
    EXPECT_EQ(cold.window(false), graded::coldest);
    // What is seen tells more.
    life used = life_of(slot_facts::cold), kept = life_of(slot_facts::cold);
    EXPECT_EQ(used.windows_until_it_moves(true), static_cast<int>(graded::windows_to_prove));
    EXPECT_EQ(used.to, graded::hottest);
    kept.what.never_cold = true;
    EXPECT_EQ(kept.window(false), no_tier);
    life idle = life_of(slot_facts::hot);
    idle.idle = 3;
    EXPECT_EQ(idle.window(false), no_tier) << "idle, though it was to be hot";
    // In another tier it is like others: wrong hints are forgotten.
    life wrong = life_of(slot_facts::hot);
    wrong.window(false);
    wrong.what.tier = graded::hottest;
    EXPECT_NE(wrong.windows_until_it_moves(false), 0);
    EXPECT_GT(wrong.to, graded::hottest);
    // To be used once: it stays where it was born while it is used, and leaves when it is not.
    life once = life_of(slot_facts::once);
    EXPECT_EQ(once.windows_until_it_moves(true), 0);
    EXPECT_EQ(once.window(false) == no_tier, false);
}

// The windows in the first tier count, however little the estimate is sure of: a run of it is emptied once.
TEST(graded, objects_that_surprise_leave_the_first_tier_like_others) {
    life one;
    for (int w = 1; w < static_cast<int>(graded::windows_to_prove); ++w)
        EXPECT_EQ(one.window(w == 4), no_tier) << w;
    EXPECT_NE(one.window(true), no_tier);
    life forgetful;
    forgetful.what.tier = first_tier;
    for (int w = 0; w < 20; ++w) forgetful.window(false); // sent away, and not moved
    EXPECT_NE(forgetful.window(true), no_tier) << "forgets, and is as old as it is";
}

// What is out of memory is read back for a hotter place only.
TEST(graded, an_object_whose_page_is_out_does_not_become_colder) {
    life cooling, out;
    for (life* one : {&cooling, &out}) {
        one->windows_until_it_moves(true);
        one->what.tier = graded::hottest;
    }
    out.what.out = true;
    EXPECT_NE(cooling.windows_until_it_moves(false), 0);
    EXPECT_GT(cooling.to, graded::hottest);
    EXPECT_EQ(out.windows_until_it_moves(false), 0);
    out.what.tier = graded::coldest;
    EXPECT_NE(out.windows_until_it_moves(true), 0);
    EXPECT_LT(out.to, graded::coldest);
}

window_beginning waited_for(std::uint64_t bytes, bool early = true) {
    window_beginning beginning;
    beginning.moves = true;
    beginning.early = early;
    beginning.wanted_bytes = bytes;
    return beginning;
}

TEST(graded, while_threads_wait_the_oldest_of_new_go_to_the_coldest) {
    graded policy({});
    const auto target = [&](const slot_facts& what) { return target_of(policy, what); };
    policy.begin_window(waited_for(640));
    EXPECT_EQ(target({.idle = 9}), no_tier) << "the first such window counts";
    policy.end_of_window({});
    policy.begin_window(waited_for(640));
    word_builder word(policy.tiers());
    for (unsigned slot = 0; slot < 5; ++slot) word.put(slot, {.quiet = 2, .size = 128});
    for (unsigned slot = 5; slot < 50; ++slot) word.put(slot, {.quiet = 1});
    // Of what cannot go, or is gone from there, no byte counts.
    word.put(50, {.quiet = 9, .never_cold = true, .size = 4096});
    word.put(51, {.quiet = 9, .movable = false, .size = 4096});
    word.put(52, {.tier = graded::hottest, .quiet = 9, .size = 4096});
    word.put(53, {.quiet = 9, .large = true, .size = 8 << 20});
    word.ask(policy);
    word.facts.again = true;
    word.ask(policy);
    window_facts facts;
    facts.early = true;
    policy.end_of_window(facts);
    graded other = policy;
    other.begin_window(waited_for(641));
    EXPECT_EQ(target_of(other, {.quiet = 1}), graded::coldest) << "each counts once";
    policy.begin_window(waited_for(640));
    EXPECT_EQ(target({.quiet = 2}), graded::coldest);
    EXPECT_EQ(target({.quiet = 1}), no_tier);
    EXPECT_EQ(target({.touched = true}), no_tier);
    EXPECT_EQ(target({.quiet = 2, .newborn = true}), no_tier);
    EXPECT_EQ(target({.quiet = 2, .never_cold = true}), no_tier);
    EXPECT_EQ(target({.tier = graded::hottest, .quiet = 2}), no_tier);
    policy.end_of_window(facts);
    policy.begin_window(waited_for(0, false));
    EXPECT_EQ(target({.quiet = 2}), no_tier) << "nobody waits";
}

// A window in its turn does what windows do, whether threads wait or not: nothing would stop it when enough has left.
TEST(graded, only_early_windows_relieve) {
    graded policy({});
    for (const bool early : {true, false}) {
        policy.begin_window(waited_for(64, true));
        target_of(policy, {.quiet = 3});
        policy.end_of_window({});
        policy.begin_window(waited_for(64, early));
        EXPECT_EQ(target_of(policy, {.quiet = 3}), early ? graded::coldest : no_tier);
        policy.end_of_window({});
    }
}

// Four groups of objects, each touched half as often as the one before, none so seldom that it belongs in the coldest
// class. Moves always succeed.
struct groups_by_rate {
    static constexpr unsigned objects = 1024; // of a group
    static constexpr std::array<double, 4> touched{.9, .5, .25, .12};

    explicit groups_by_rate() : policy({}) { tier.fill(first_tier); }

    void windows(int count, std::uint64_t wanted, double excess, bool swap = false) {
        for (; count > 0; --count) {
            policy.begin_window(waited_for(wanted, false));
            for (unsigned first = 0; first < tier.size(); first += 64) {
                word_builder word(policy.tiers());
                for (unsigned slot = 0; slot < 64; ++slot) {
                    const unsigned i = first + slot;
                    const bool used = unit(random) < touched[i / objects];
                    idle[i] = used ? 0 : idle[i] + 1;
                    word.put(slot, {.tier = tier[i], .touched = used, .idle = idle[i]});
                    word.facts.state[slot] = state[i];
                }
                word.facts.base = std::uintptr_t{first} * 8;
                const word_verdict verdict = word.ask(policy);
                for (unsigned slot = 0; slot < 64; ++slot) {
                    state[first + slot] = word.facts.state[slot];
                    if ((verdict.move >> slot & 1) == 0) continue;
                    if (tier[first + slot] == first_tier) state[first + slot] &= 0xfff;
                    tier[first + slot] = verdict.to[slot];
                }
            }
            window_facts facts;
            facts.length_seconds = 1;
            facts.excess_bytes = excess;
            facts.tiers[graded::coldest].can_leave = true;
            for (tier_id id = graded::hottest; id < graded::coldest; ++id)
                facts.tiers[id].can_leave = swap;
            for (const tier_id id : tier)
                facts.tiers[id].live_bytes += 64, ++facts.tiers[id].live_objects;
            policy.end_of_window(facts);
        }
    }
    double cold(unsigned group) const { // share
        const auto begin = tier.begin() + group * objects;
        return static_cast<double>(std::count(begin, begin + objects, graded::coldest)) / objects;
    }

    graded policy;
    std::array<tier_id, 4 * objects> tier;
    std::array<std::uint16_t, 4 * objects> state{};
    std::array<unsigned, 4 * objects> idle{};
    std::mt19937 random{3};
    std::uniform_real_distribution<double> unit{0, 1};
};

// Without swap the coldest class is all that can leave, so it takes what is touched least, as much as is wanted.
TEST(graded, over_its_budget_the_coldest_class_takes_what_the_budget_wants) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    groups_by_rate all;
    all.windows(24, 0, none);
    for (unsigned group = 0; group < 4; ++group) EXPECT_LT(all.cold(group), .1) << group;
    groups_by_rate swapping = all, roomy = all;
    swapping.windows(24, 64 * groups_by_rate::objects, 1, true);
    EXPECT_LT(swapping.cold(3), .1) << "each class can leave";
    roomy.windows(24, 0, -1);
    EXPECT_LT(roomy.cold(3), .1) << "nothing has to";
    for (int window = 0; window < 40 && all.cold(3) < .9; ++window)
        all.windows(1, 64 * groups_by_rate::objects / 2, 1);
    EXPECT_GE(all.cold(3), .9);
    EXPECT_LT(all.cold(2), .5);
    EXPECT_LT(all.cold(1), .02);
    EXPECT_LT(all.cold(0), .001);
    groups_by_rate kept = all;
    kept.windows(24, 0, 1);
    EXPECT_GT(kept.cold(3), .8) << "there is no room yet";
    all.windows(60, 0, -1);
    EXPECT_LT(all.cold(3), .2) << "and with room it takes them back";
    kept.windows(60, 0, none);
    EXPECT_LT(kept.cold(3), .2) << "as without a budget";
}

// It would come back in the next window, and again.
TEST(graded, what_is_always_in_use_stays_though_the_budget_is_smaller) {
    constexpr std::uint64_t everything = 2 * 64 * 4 * groups_by_rate::objects;
    groups_by_rate placed, fresh;
    placed.windows(24, 0, -std::numeric_limits<double>::infinity());
    for (groups_by_rate* const all : {&placed, &fresh}) {
        for (int window = 0; window < 60; ++window) all->windows(1, everything, 1);
        EXPECT_GE(all->cold(3), .9);
        EXPECT_GE(all->cold(2), .9);
        EXPECT_LT(all->cold(0), .01);
    }
}

// What is in NEW counts with the rest, so it does not all go at once.
TEST(graded, what_leaves_new_over_the_budget_is_what_the_budget_wants) {
    groups_by_rate all;
    all.windows(9, 64 * groups_by_rate::objects, 1);
    EXPECT_GE(all.cold(3), .9);
    EXPECT_LT(all.cold(1), .5) << "nine windows tell it from the next hardly";
    EXPECT_LT(all.cold(0), .01);
}

// What went out with hardly a window behind it may look warmer than it is: nothing is known of it. It comes back when
// somebody uses it.
TEST(graded, what_left_for_want_of_memory_stays_until_it_is_used) {
    life out;
    for (int w = 0; w < 2; ++w) out.window(false);
    out.what.tier = graded::coldest;
    int moved = 0;
    for (int w = 0; w < 3; ++w) moved += out.window(false) != no_tier;
    EXPECT_EQ(moved, 0);
    life used = out;
    EXPECT_NE(used.windows_until_it_moves(true), 0);
    EXPECT_LT(used.to, graded::coldest);
    // What is known moves without being used, unless it would be read back.
    for (const bool page_is_out : {false, true}) {
        life warm;
        warm.what.tier = graded::coldest - 1;
        for (int w = 0; w < 30; ++w) warm.window(w % 3 == 0);
        warm.what.tier = graded::coldest;
        warm.what.out = page_is_out;
        bool moves = false;
        for (int w = 0; w < 4; ++w) moves = warm.window(false) != no_tier || moves;
        EXPECT_EQ(moves, !page_is_out);
    }
}

// An object touched once in each window that counts, and seen by early windows in between. A touch that one of
// them has seen counts in the next that counts, whatever the object's age is by then.
TEST(graded, early_windows_change_no_estimate) {
    life plain, with_early;
    const auto early = [&](bool touched) {
        with_early.policy.begin_window(waited_for(1));
        word_builder word(with_early.policy.tiers());
        with_early.what.touched = touched;
        with_early.what.idle = 0;
        word.put(3, with_early.what);
        word.facts.state[3] = with_early.state;
        EXPECT_EQ(word.ask(with_early.policy).move, 0u);
        const std::uint16_t before = with_early.state;
        with_early.state = word.facts.state[3];
        EXPECT_EQ(with_early.state & 0x7fff, before & 0x7fff);
        window_facts facts;
        facts.early = true;
        with_early.policy.end_of_window(facts);
    };
    for (life* one : {&plain, &with_early}) {
        one->what.tier = graded::hottest;
        one->window(true);
    }
    for (int w = 0; w < 40; ++w) {
        const bool used = w % 4 != 3;
        if (used) early(true);
        early(false);
        plain.window(used);
        if (used)
            with_early.idle = w % 3 == 0 ? 1 : ~0u; // 0 or, with ATC, 2 at the end of the window
        with_early.window(false);
        if (used) with_early.idle = 0;
        EXPECT_EQ(with_early.state, plain.state) << w;
    }
    EXPECT_GT(touch_rate::windows(plain.state), 10u);
}

// An object that is first seen in an early window was not touched, as far as is known.
TEST(graded, an_object_made_before_an_early_window_is_as_new) {
    life one;
    one.idle = ~0u;
    EXPECT_EQ(one.window(false), no_tier);
    EXPECT_EQ(touch_rate::windows(one.state), 0u) << "the window of its birth";
    life used;
    used.state = 0x8000; // as the early window left it, which saw it touched
    EXPECT_EQ(used.window(false), no_tier);
    EXPECT_EQ(used.state, one.state);
}

// Whoever makes an object touches it, and so does the load before the collector runs.
TEST(graded, the_window_of_an_objects_birth_does_not_count) {
    for (const bool large : {false, true})
        for (const bool touched : {false, true}) {
            life one;
            one.what.large = large;
            one.what.newborn = !touched;
            EXPECT_EQ(one.window(touched), no_tier);
            EXPECT_EQ(touch_rate::windows(one.state), 0u) << large << touched;
            one.what.newborn = false;
            one.window(true);
            EXPECT_EQ(touch_rate::windows(one.state), 1u) << large << touched;
        }
    life once;
    once.window(true);
    EXPECT_EQ(once.windows_until_it_moves(false), static_cast<int>(graded::windows_to_prove) - 1);
    EXPECT_EQ(once.to, graded::coldest);
}

TEST(graded, never_cold_objects_stay_where_nothing_leaves) {
    life one;
    one.what.never_cold = true;
    EXPECT_NE(one.windows_until_it_moves(false), 0);
    EXPECT_EQ(one.to, graded::hottest);
    one.what.tier = graded::hottest;
    EXPECT_EQ(one.windows_until_it_moves(false), 0);
}

TEST(graded, large_objects_have_a_role_and_stay) {
    life one;
    one.what.large = true;
    word_builder word(one.policy.tiers());
    for (int w = 0; w < 20; ++w) EXPECT_EQ(one.window(false), no_tier);
    one.what.touched = false;
    word.put(0, one.what);
    word.facts.state[0] = one.state;
    EXPECT_EQ(word.ask(one.policy).to[0], graded::coldest);
}

// A rate beside the border of two classes: an object does not go to and fro.
TEST(graded, hysteresis_keeps_objects_at_a_border) {
    std::mt19937_64 random(1);
    // The border of classes 4 and 5.
    const double rate = touch_rate::base_rate * 16;
    std::bernoulli_distribution touched(1 - std::exp(-rate));
    int moves = 0;
    constexpr int slots = 200, windows = 100;
    for (int i = 0; i < slots; ++i) {
        life one;
        for (int w = 0; w < windows; ++w) {
            const tier_id to = one.window(touched(random));
            if (to == no_tier) continue;
            one.what.tier = to;
            moves += w > 20;
        }
    }
    EXPECT_LT(moves, slots * (windows - 20) / 20) << "less than one move in 20 windows";
}

// Whatever the option says, unless it asks for more.
TEST(graded, compacts_what_is_hardly_sparse) {
    graded policy({});
    EXPECT_EQ(policy.compacted_below(.75), graded::dense_enough);
    EXPECT_EQ(policy.compacted_below(.99), .99);
    three_temperatures published({});
    EXPECT_EQ(published.compacted_below(.75), .75);
}

constexpr std::size_t usual_size = 128;
constexpr std::size_t page_bytes = 4096;

struct piece {
    double rate, bytes;
};
double bytes_for(double h, std::vector<piece> units) {
    std::sort(units.begin(), units.end(),
              [](const piece& a, const piece& b) { return a.rate / a.bytes > b.rate / b.bytes; });
    double left = 0, bytes = 0;
    for (const piece& one : units) left += h * one.rate;
    for (std::size_t i = 0; left > 0; ++i) {
        left -= units[i].rate;
        bytes += units[i].bytes;
    }
    return bytes;
}

// Objects of a population, with rates by a law, living through windows under a policy.
class population {
  public:
    population(placement& policy, std::vector<double> rates, unsigned seed,
               std::vector<std::size_t> sizes = {})
        : policy_(policy), rate_(std::move(rates)), size_(std::move(sizes)), touched_(rate_.size()),
          random_(seed), tier_(rate_.size()), place_(rate_.size()), idle_(rate_.size()),
          state_(rate_.size()) {
        size_.resize(rate_.size(), usual_size);
        std::iota(place_.begin(), place_.end(), 0u);
        next_place_ = rate_.size();
    }

    // Returns the share of objects that moved. `length`: of a window in which `rates` are.
    double window(double length = 1) {
        const std::size_t n = rate_.size();
        window_beginning beginning{.moves = true, .live_bytes = {}};
        for (std::size_t i = 0; i < n; ++i) beginning.live_bytes[tier_[i]] += size_[i];
        policy_.begin_window(beginning);
        std::uniform_real_distribution<double> unit;
        struct move {
            tier_id to;
            std::uint64_t from;
            std::size_t object;
        };
        std::vector<move> moves;
        int uses = 0;
        if (operation) {
            touched_.assign(n, false);
            for (std::size_t count = 0;
                 static_cast<double>(count) < length * static_cast<double>(n);)
                operation(random_, [&](std::size_t i) {
                    touched_[i] = true;
                    ++count;
                });
        }
        for (std::size_t base = 0; base < n; base += 64) {
            word_builder word(policy_.tiers());
            word.facts.base = base * 8;
            for (unsigned bit = 0; bit < 64 && base + bit < n; ++bit) {
                const std::size_t i = base + bit;
                if (!operation) {
                    if (i % group == 0)
                        uses = std::poisson_distribution<int>(rate_[i] * length)(random_);
                    touched_[i] = uses != 0 && unit(random_) > std::pow(1 - of_group, uses);
                }
                idle_[i] = touched_[i] ? 0 : idle_[i] + 1;
                word.put(bit, {.tier = tier_[i],
                               .touched = touched_[i],
                               .idle = idle_[i],
                               .size = tells_sizes ? size_[i] : usual_size});
                word.facts.state[bit] = state_[i];
            }
            const word_verdict verdict = word.ask(policy_);
            sizes_asked += word.sizes_asked;
            for (unsigned bit = 0; bit < 64 && base + bit < n; ++bit) {
                state_[base + bit] = word.facts.state[bit];
                if ((verdict.move >> bit & 1) != 0)
                    moves.push_back({verdict.to[bit], place_[base + bit], base + bit});
            }
        }
        std::sort(moves.begin(), moves.end(), [](const move& a, const move& b) {
            return a.to != b.to ? a.to < b.to : a.from < b.from;
        });
        for (const move& m : moves) {
            tier_[m.object] = m.to;
            place_[m.object] = next_place_++;
        }
        window_facts facts;
        facts.length_seconds = 120;
        for (std::size_t i = 0; i < n; ++i) {
            facts.tiers[tier_[i]].live_bytes += size_[i];
            ++facts.tiers[tier_[i]].live_objects;
            if (!touched_[i]) continue;
            ++facts.touched_pages;
            ++facts.tiers[tier_[i]].touched_pages;
        }
        next = policy_.end_of_window(facts);
        return static_cast<double>(moves.size()) / static_cast<double>(n);
    }

    // In which nobody touches anything, and no thread waits.
    void early_window() {
        policy_.begin_window({.moves = true, .early = true, .live_bytes = {}});
        for (std::size_t base = 0; base < rate_.size(); base += 64) {
            word_builder word(policy_.tiers());
            word.facts.base = base * 8;
            for (unsigned bit = 0; bit < 64 && base + bit < rate_.size(); ++bit) {
                const std::size_t i = base + bit;
                word.put(bit, {.tier = tier_[i], .idle = idle_[i], .size = size_[i]});
                word.facts.state[bit] = state_[i];
            }
            EXPECT_EQ(word.ask(policy_).move, 0u);
            for (unsigned bit = 0; bit < 64 && base + bit < rate_.size(); ++bit)
                EXPECT_EQ(word.facts.state[bit], state_[base + bit]);
        }
        window_facts facts;
        facts.early = true;
        for (std::size_t i = 0; i < rate_.size(); ++i) {
            facts.tiers[tier_[i]].live_bytes += size_[i];
            ++facts.tiers[tier_[i]].live_objects;
        }
        policy_.end_of_window(facts);
    }

    void exchange_rates() { std::shuffle(rate_.begin(), rate_.end(), random_); }

    // Page bytes over bytes of the objects with most touches per byte that serve the share h, all tiers packed.
    double inflation(double h) const {
        const std::size_t n = rate_.size();
        std::vector<std::size_t> order(n);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return tier_[a] != tier_[b] ? tier_[a] < tier_[b] : place_[a] < place_[b];
        });
        std::vector<piece> pages, alone;
        std::size_t at = 0;
        for (const std::size_t i : order) {
            alone.push_back({rate_[i], static_cast<double>(size_[i])});
            for (const std::size_t end = at + size_[i]; at < end;) {
                const std::size_t stop = std::min(end, (at / page_bytes + 1) * page_bytes);
                pages.resize(at / page_bytes + 1, {0, page_bytes});
                pages.back().rate +=
                    rate_[i] * static_cast<double>(stop - at) / static_cast<double>(size_[i]);
                at = stop;
            }
        }
        return bytes_for(h, pages) / bytes_for(h, alone);
    }

    // The share of accesses that find all that they use in memory, of which so many pages' worth there is, under
    // CLOCK. `moved`: the objects lie as the policy has them, else as they were allocated. All of one size.
    double clock_hits(double share_in_memory, bool moved) const {
        const std::size_t n = rate_.size();
        std::vector<std::size_t> order(n), page(n);
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (moved)
            std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return tier_[a] != tier_[b] ? tier_[a] < tier_[b] : place_[a] < place_[b];
            });
        for (std::size_t at = 0; at < n; ++at) page[order[at]] = at * usual_size / page_bytes;
        constexpr std::size_t none = ~std::size_t{0};
        const auto pages = n * usual_size / page_bytes;
        const auto frames = static_cast<std::size_t>(share_in_memory * static_cast<double>(pages));
        std::vector<std::size_t> frame_of(pages, none), page_in(frames, none);
        std::vector<bool> used(frames);
        std::size_t hand = 0;
        const auto find = [&](std::size_t wanted) {
            if (frame_of[wanted] != none) return used[frame_of[wanted]] = true, true;
            for (; used[hand]; hand = (hand + 1) % frames) used[hand] = false;
            if (page_in[hand] != none) frame_of[page_in[hand]] = none;
            page_in[hand] = wanted;
            frame_of[wanted] = hand;
            used[hand] = true;
            hand = (hand + 1) % frames;
            return false;
        };
        if (operation) {
            std::mt19937_64 random(11);
            std::size_t hits = 0, done = 0;
            const std::size_t all = 16 * n;
            while (done < all)
                operation(random, [&](std::size_t i) {
                    const bool hit = find(page[i]);
                    if (++done > all / 2) hits += hit;
                });
            return static_cast<double>(hits) / static_cast<double>(done - all / 2);
        }
        std::vector<double> rate_of_groups;
        for (std::size_t i = 0; i < n; i += group) rate_of_groups.push_back(rate_[i]);
        std::discrete_distribution<std::size_t> chosen(rate_of_groups.begin(),
                                                       rate_of_groups.end());
        std::uniform_real_distribution<double> unit;
        std::mt19937_64 random(11);
        const std::size_t accesses = 32 * rate_of_groups.size();
        std::size_t hits = 0;
        for (std::size_t access = 0; access < accesses; ++access) {
            const std::size_t first = chosen(random) * group;
            bool hit = true;
            for (std::size_t i = first; i < first + group; ++i)
                if (unit(random) < of_group && !find(page[i])) hit = false;
            if (access >= accesses / 2) hits += hit;
        }
        return static_cast<double>(hits) / static_cast<double>(accesses - accesses / 2);
    }

    // Objects used together: a use of the first of so many is one of each of them with this chance.
    unsigned group = 1;
    double of_group = 1;
    // Instead of rates: one operation of the load, which calls use(object) for each object that it uses.
    std::function<void(std::mt19937_64&, const std::function<void(std::size_t)>& use)> operation;
    bool tells_sizes = true; // else all are said to be as usual
    std::size_t sizes_asked = 0;
    directives next;

  private:
    placement& policy_;
    std::vector<double> rate_; // touches per window
    std::vector<std::size_t> size_;
    std::vector<bool> touched_;
    std::mt19937_64 random_;
    std::vector<tier_id> tier_;
    std::vector<std::uint64_t> place_;
    std::vector<unsigned> idle_;
    std::vector<std::uint16_t> state_;
    std::uint64_t next_place_ = 0;
};

// One access per object and window.
std::vector<double> zipf(std::size_t n, double theta) {
    std::vector<double> rates(n);
    double all = 0;
    for (std::size_t i = 0; i < n; ++i)
        all += rates[i] = std::pow(static_cast<double>(i + 1), -theta);
    for (double& r : rates) r *= static_cast<double>(n) / all;
    std::shuffle(rates.begin(), rates.end(), std::mt19937_64(7));
    return rates;
}

constexpr std::size_t objects = 1 << 16;

TEST(graded, ranks_a_heavy_tail) {
    graded policy({});
    population heap(policy, zipf(objects, .99), 1);
    const double before = heap.inflation(.9);
    for (int w = 0; w < 32; ++w) heap.window();
    const double after = heap.inflation(.9);
    EXPECT_GT(before, 2);
    EXPECT_LT(after, 1.2);

    three_temperatures published({});
    population other(published, zipf(objects, .99), 1);
    for (int w = 0; w < 32; ++w) other.window();
    EXPECT_GT(other.inflation(.9), after + .03) << "the policy of the papers";
}

// No policy can know more of objects of one size than how often each was touched: inflation if every access is counted for
// ever, and objects are sorted by that, or put into classes of an octave.
double inflation_of_counts(const std::vector<double>& rates, double accesses, bool octaves,
                           double h) {
    std::mt19937_64 random(11);
    std::vector<double> known;
    for (const double rate : rates) {
        const double count = std::poisson_distribution<int>(rate * accesses)(random);
        const double seen = std::max(count, .3) / accesses;
        known.push_back(octaves ? std::clamp(std::floor(std::log2(seen / .03)), -1., 6.) : seen);
    }
    std::vector<std::size_t> order(rates.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
        return known[one] != known[other] ? known[one] > known[other] : one < other;
    });
    std::vector<piece> pages, alone;
    for (std::size_t at = 0; at < order.size(); ++at) {
        if (at % (page_bytes / usual_size) == 0) pages.push_back({0, page_bytes});
        pages.back().rate += rates[order[at]];
        alone.push_back({rates[order[at]], static_cast<double>(usual_size)});
    }
    return bytes_for(h, pages) / bytes_for(h, alone);
}

TEST(graded, is_compared_with_what_counting_could_tell) {
    const std::vector<double> rates = zipf(objects, .99);
    for (const double accesses : {8, 16, 32, 64})
        std::printf("%2.0f accesses per object, inflation at .8, .9, .95, .99: by counts %.3f %.3f "
                    "%.3f %.3f, in octaves %.3f %.3f %.3f %.3f\n",
                    accesses, inflation_of_counts(rates, accesses, false, .8),
                    inflation_of_counts(rates, accesses, false, .9),
                    inflation_of_counts(rates, accesses, false, .95),
                    inflation_of_counts(rates, accesses, false, .99),
                    inflation_of_counts(rates, accesses, true, .8),
                    inflation_of_counts(rates, accesses, true, .9),
                    inflation_of_counts(rates, accesses, true, .95),
                    inflation_of_counts(rates, accesses, true, .99));
    EXPECT_GT(inflation_of_counts(rates, 32, true, .9), inflation_of_counts(rates, 32, false, .9));
    graded policy({});
    population heap(policy, rates, 1);
    for (int w = 0; w < 32; ++w) heap.window();
    const double found = heap.inflation(.9);
    std::printf("graded after 32 windows of one access per object, at .9: %.3f\n", found);
    EXPECT_GT(found, inflation_of_counts(rates, 32, false, .9) - .01) << "nothing knows more";
}

// Objects that are used together were allocated together: the order of allocation is good already, or can be sorted by
// groups.
TEST(graded, what_is_used_together_stays_together) {
    for (const unsigned group : {1u, 8u, 32u})
        for (const double of_group : {1., .5}) {
            if (group == 1 && of_group != 1) continue;
            graded policy({});
            std::vector<double> rates;
            for (const double rate : zipf(objects / 4 / group, .99))
                rates.insert(rates.end(), group, rate);
            population heap(policy, rates, 9);
            heap.group = group;
            heap.of_group = of_group;
            for (int w = 0; w < 48; ++w) heap.window();
            std::printf("%u objects used together, %.0f %% of them at a time; hits under CLOCK, as "
                        "allocated and moved:",
                        group, of_group * 100);
            for (const double share : {.1, .2, .5}) {
                const double before = heap.clock_hits(share, false);
                const double after = heap.clock_hits(share, true);
                std::printf("  %.3f %.3f", before, after);
                EXPECT_GE(after, before - .02) << group << " " << share;
                if (group < 32 && share < .5) {
                    EXPECT_GT(after, before + .05) << group;
                }
            }
            std::printf("\n");
        }
}

// Loads whose order of allocation is good already, for other reasons than that all of a group is used at once. Sorted by
// temperature they are worse by .02 of the hits at most.
TEST(graded, a_good_order_of_allocation_is_hardly_made_worse) {
    using random = std::mt19937_64;
    const auto draw = [](const std::vector<double>& weights) {
        return std::discrete_distribution<std::size_t>(weights.begin(), weights.end());
    };
    std::vector<double> falling(objects);
    for (std::size_t i = 0; i < objects; ++i)
        falling[i] = std::pow(static_cast<double>(i + 1), -.99);
    auto any = draw(zipf(objects, .99)), extent = draw(zipf(objects / 64, .99)),
         oldest = draw(falling);
    using use = std::function<void(std::size_t)>;
    const auto run_of = [&any](random& r, const use& touch, unsigned lengths) {
        const std::size_t first = any(r), end = std::min(objects, first + (1u << r() % lengths));
        for (std::size_t i = first; i < end; ++i) touch(i);
    };
    const struct {
        const char* name;
        std::function<void(random&, const use&)> operation;
    } loads[] = {
        {"runs of 1 to 64", [&](random& r, const use& touch) { run_of(r, touch, 7); }},
        {"runs of 1 to 1024", [&](random& r, const use& touch) { run_of(r, touch, 11); }},
        {"one of an extent of 64",
         [&](random& r, const use& touch) { touch(extent(r) * 64 + r() % 64); }},
        {"popular ones allocated first", [&](random& r, const use& touch) { touch(oldest(r)); }},
        {"a quarter in groups of 32",
         [&](random& r, const use& touch) {
             const std::size_t i = any(r);
             if (i >= objects / 4) return touch(i);
             if (r() % 32 != 0) return;
             for (unsigned k = 0; k < 32; ++k) touch(i / 32 * 32 + k);
         }},
        {"no order", [&](random& r, const use& touch) { touch(any(r)); }}};
    const bool few = obase::testing::tier() == obase::testing::test_tier::ci;
    for (const auto& load : loads) {
        const bool mixed = load.name == std::string("a quarter in groups of 32");
        if (few && !mixed && load.name != std::string("runs of 1 to 64")) continue;
        graded policy({});
        population heap(policy, std::vector<double>(objects), 5);
        heap.operation = load.operation;
        for (int w = 0; w < (few ? 32 : 64); ++w) heap.window();
        std::printf("%s; hits under CLOCK, as allocated and sorted:", load.name);
        for (const double in_memory : {.1, .2, .5}) {
            if (few && in_memory != .1) continue;
            const double allocated = heap.clock_hits(in_memory, false);
            const double sorted = heap.clock_hits(in_memory, true);
            std::printf("  %.3f %.3f", allocated, sorted);
            EXPECT_GT(sorted, allocated - (few && !mixed ? .005 : .02)) << load.name;
            // Those in groups are left together, the others are not.
            if (mixed) {
                EXPECT_GT(sorted, allocated + .04);
            }
        }
        std::printf("\n");
    }
}

// Inflation under very skewed loads by the length of windows, in accesses per object.
TEST(graded, shorter_windows_order_very_skewed_loads) {
    if (obase::testing::tier() == obase::testing::test_tier::ci) GTEST_SKIP() << "prints a table";
    for (const double theta : {1.2, 1.5})
        for (const double length : {4., 1., .25, .0625}) {
            graded policy({});
            population heap(policy, zipf(objects, theta), 1);
            for (double done = 0; done < 32; done += length) heap.window(length);
            std::printf("Zipf %.1f, windows of %.4f: inflation at .9 %.2f, at .99 %.2f\n", theta,
                        length, heap.inflation(.9), heap.inflation(.99));
            if (length < 4) {
                EXPECT_LT(heap.inflation(.99), 1.35);
            }
        }
}

// Of what is used together some would move now and some in a later window, to another place.
TEST(graded, a_word_moves_as_one_where_neighbours_are_used_together) {
    for (const unsigned group : {1u, 32u}) {
        graded policy({});
        population heap(policy, std::vector<double>(objects / 16, .3), 10);
        heap.group = group;
        for (int w = 0; w < 12; ++w) heap.window();
        touch_rate rates;
        std::uint16_t used = 0;
        for (int w = 0; w < 40; ++w) {
            rates.draw();
            used = rates.after(used, true, 0);
        }
        unsigned whole = 0, parts = 0;
        for (int w = 0; w < 4; ++w) {
            policy.begin_window({.moves = true, .live_bytes = {}});
            for (unsigned base = 0; base < 4096; base += 64) {
                word_builder word(policy.tiers());
                word.facts.base = base * 8;
                for (unsigned bit = 0; bit < 64; ++bit) {
                    word.put(bit, {.tier = graded::coldest - 2, .touched = true});
                    word.facts.state[bit] = static_cast<std::uint16_t>(used | 7 << 12);
                }
                const int moved = std::popcount(word.ask(policy).move);
                whole += w != 0 && moved == 64;
                parts += w != 0 && moved != 0 && moved != 64;
            }
        }
        EXPECT_EQ(whole != 0, group == 32);
        EXPECT_EQ(parts != 0, group == 1);
    }
}

// Whoever loads touches one object after the other: nothing was expected of them, so that says nothing of togetherness.
TEST(graded, a_load_does_not_look_like_objects_used_together) {
    graded loaded({}), idle({});
    std::uint16_t alone[2] = {}, beside[2] = {};
    for (int w = 0; w < 24; ++w) {
        for (graded* policy : {&loaded, &idle}) {
            policy->begin_window({.moves = true, .live_bytes = {}});
            for (unsigned base = 64; base < 64 * 500; base += 64) {
                word_builder word(policy->tiers());
                word.facts.base = base * 8;
                for (unsigned bit = 0; bit < 64; ++bit) // others in each window
                    word.put(bit, {.touched = policy == &loaded && (base / 64 + bit / 8) % 3 == 0});
                word.ask(*policy);
            }
            word_builder word(policy->tiers());
            std::uint16_t* const states = policy == &loaded ? beside : alone;
            for (unsigned bit = 0; bit < 2; ++bit) {
                word.put(bit, {.tier = graded::hottest, .touched = bit == 0});
                word.facts.state[bit] = states[bit];
            }
            word.ask(*policy);
            for (unsigned bit = 0; bit < 2; ++bit) states[bit] = word.facts.state[bit];
        }
        EXPECT_EQ(beside[0], alone[0]) << w;
        EXPECT_EQ(beside[1], alone[1]) << w;
    }
}

// An early window does not move what would not have moved, or keep what would have.
TEST(graded, early_windows_change_no_move) {
    graded plain({}), with_early({});
    population one(plain, zipf(objects / 16, .99), 3),
        other(with_early, zipf(objects / 16, .99), 3);
    double all = 0;
    for (int w = 0; w < 24; ++w) {
        if (w == 12) {
            one.exchange_rates();
            other.exchange_rates();
        }
        for (int i = 0; i < w % 3; ++i) other.early_window();
        const double moved = one.window();
        EXPECT_EQ(other.window(), moved) << w;
        all += moved;
    }
    EXPECT_GT(all, 1.2) << "also between classes";
    EXPECT_EQ(one.inflation(.9), other.inflation(.9));
}

// Windows of so many accesses per object that nearly all are touched: a bit for each says nothing. So they get
// shorter, and all is as if a shorter window had been asked for.
TEST(graded, windows_in_which_all_is_touched_are_shortened) {
    for (const double asked : {16., 64.}) { // accesses per object
        double found[2];
        for (const bool follows : {false, true}) {
            graded policy({});
            population heap(policy, zipf(objects, .99), 1);
            double length = asked;
            for (double accesses = 0; accesses < 256; accesses += length) {
                if (follows) length = asked * heap.next.window_factor;
                heap.window(length);
            }
            found[follows] = heap.inflation(.9);
            EXPECT_GT(length, .2) << "and not shorter than need be";
        }
        std::printf(
            "windows of %.0f accesses per object, inflation at .9 after 256: %.2f as asked for, "
            "%.2f shortened\n",
            asked, found[0], found[1]);
        EXPECT_GT(found[0], 1.5);
        EXPECT_LT(found[1], 1.1);
    }
    // Where they are as they should be they stay, also while the load grows: who makes an object touches it.
    graded other({});
    population usual(other, zipf(objects, .99), 1);
    for (int w = 0; w < 8; ++w) {
        usual.window(.5);
        EXPECT_EQ(usual.next.window_factor, 1);
    }
    three_temperatures published({});
    population papers(published, zipf(objects, .99), 1);
    for (int w = 0; w < 8; ++w) papers.window(64);
    EXPECT_EQ(papers.next.window_factor, 1) << "its C_t counts windows of the length asked for";
}

// Median 192 bytes; one in 40 has more than five times as much, or less than a fifth.
std::vector<std::size_t> lognormal_sizes(std::size_t n) {
    std::mt19937_64 random(8);
    std::lognormal_distribution<double> law(std::log(192), .8);
    std::vector<std::size_t> sizes(n);
    for (std::size_t& size : sizes)
        size = std::clamp<std::size_t>(static_cast<std::size_t>(law(random)) & ~std::size_t{7}, 16,
                                       page_bytes);
    return sizes;
}

TEST(graded, ranks_by_touches_per_byte) {
    const auto settle = [](bool tells_sizes) {
        graded policy({});
        population heap(policy, zipf(objects, .99), 5, lognormal_sizes(objects));
        heap.tells_sizes = tells_sizes;
        const double before = heap.inflation(.9);
        for (int w = 0; w < 32; ++w) heap.window();
        const double after = heap.inflation(.9);
        std::printf("sizes %s: inflation at .9 %.3f, before %.3f\n",
                    tells_sizes ? "told" : "not told", after, before);
        return after;
    };
    const double told = settle(true), not_told = settle(false);
    EXPECT_LT(told, 1.2);
    EXPECT_GT(not_told, told + .1);
}

TEST(graded, asks_for_few_sizes) {
    graded policy({});
    population alike(policy, zipf(objects, .99), 6);
    for (int w = 0; w < 3; ++w) alike.window();
    alike.sizes_asked = 0;
    constexpr int windows = 20;
    for (int w = 0; w < windows; ++w) alike.window();
    EXPECT_LT(alike.sizes_asked, objects * windows / 32) << "they are all alike";

    graded other({});
    population heap(other, zipf(objects, .99), 6, lognormal_sizes(objects));
    for (int w = 0; w < 12; ++w) heap.window();
    heap.sizes_asked = 0;
    for (int w = 0; w < windows; ++w) heap.window();
    const double share =
        static_cast<double>(heap.sizes_asked) / static_cast<double>(objects * windows);
    std::printf("sizes asked for: %.2f per object and window\n", share);
    EXPECT_LT(share, .75);
}

TEST(graded, moves_few_objects_once_they_are_sorted) {
    graded policy({});
    population heap(policy, zipf(objects, .99), 2);
    double all = 0;
    for (int w = 0; w < 40; ++w) {
        const double moved = heap.window();
        if (w < 10) continue;
        all += moved;
        // The budget is shared out as the window before wanted to move.
        EXPECT_LE(moved, graded::move_budget * 3) << w;
    }
    EXPECT_LT(all / 30, graded::move_budget * 1.1);
    double later = 0;
    for (int w = 0; w < 20; ++w) later += heap.window() / 20;
    EXPECT_LT(later, graded::move_budget / 4) << "the estimates remember more";
}

// In windows as long as it wants to have them, of one access per object as asked for.
TEST(graded, follows_a_hot_set_that_shifts) {
    graded policy({});
    population heap(policy, zipf(objects, .99), 3);
    double length = 1;
    const auto accesses = [&](double count) {
        for (double done = 0; done < count; done += length) {
            heap.window(length);
            length = heap.next.window_factor;
        }
    };
    accesses(32);
    heap.exchange_rates();
    EXPECT_GT(heap.inflation(.9), 2);
    accesses(4);
    const double soon = heap.inflation(.9);
    accesses(12);
    std::printf("after a shift, inflation at .9: 4 accesses per object %.2f, 16: %.2f\n", soon,
                heap.inflation(.9));
    EXPECT_LT(soon, 1.6);
    EXPECT_LT(heap.inflation(.9), 1.26);
}

// One object of a size, touched in every other window, among objects of 256 bytes.
tier_id class_of_size(std::size_t size, bool large = false) {
    life one;
    window_facts facts;
    facts.tiers[first_tier].live_bytes = 256 * 1000;
    facts.tiers[first_tier].live_objects = 1000;
    one.policy.end_of_window(facts);
    one.what.size = size;
    one.what.large = large;
    if (!large) {
        for (int w = 0; w < 20; ++w)
            if (const tier_id to = one.window(w % 2 == 0); to != no_tier) return to;
        return no_tier;
    }
    for (int w = 0; w < 7; ++w) one.window(w % 2 == 0);
    return one.role;
}

TEST(graded, a_class_is_of_touches_per_byte) {
    const tier_id usual = class_of_size(256);
    EXPECT_EQ(class_of_size(512), usual + 1);
    EXPECT_EQ(class_of_size(128), usual - 1);
    EXPECT_EQ(class_of_size(2048), usual + 3);
    EXPECT_EQ(class_of_size(4096), usual + 4);
    EXPECT_EQ(class_of_size(16384), usual + 4) << "each of its pages is touched as often";
    EXPECT_EQ(class_of_size(std::size_t{1} << 20, true), usual + 4);
    EXPECT_EQ(class_of_size(0), usual) << "freed meanwhile";
}

// Of sizes between two bounds an object is asked for its own only if that decides.
TEST(graded, asks_for_a_size_where_it_decides) {
    graded policy({});
    window_facts facts;
    facts.tiers[first_tier].live_bytes = 256 * 1000;
    facts.tiers[first_tier].live_objects = 1000;
    policy.end_of_window(facts);
    const auto ask = [&policy](std::size_t size, tier_id tier, std::uint16_t state, bool touched,
                               unsigned idle) {
        word_builder word(policy.tiers());
        word.put(0, {.tier = tier, .touched = touched, .idle = idle, .size = size});
        word.facts.state[0] = state;
        word.ask(policy);
        return word.sizes_asked;
    };
    touch_rate rates;
    std::uint16_t always = 0, never = 0, half = 0;
    for (unsigned w = 0; w < 40; ++w) {
        rates.draw();
        always = rates.after(always, true, 0);
        never = rates.after(never, false, w + 1);
        half = rates.after(half, w % 2 == 0, w % 2);
    }
    constexpr std::uint16_t inside = 4 << 12;
    const auto windows = [&](unsigned most, auto&& use) {
        for (unsigned w = 0; w < most; ++w) {
            policy.begin_window({.moves = true, .live_bytes = {}});
            use();
        }
    };
    const tier_id middle = graded::coldest - 4;
    windows(1, [&] {
        EXPECT_NE(ask(128, middle, half | inside, true, 0), 0u) << "nothing is known";
        EXPECT_NE(ask(512, middle, half | inside, true, 0), 0u);
    });
    // From now on an octave to both sides. Each window notes one of 64 sizes besides.
    unsigned hot = 0, cold = 0, idle = 0, early = 0, touched = 0;
    windows(5, [&] {
        touched += ask(128, middle, half | inside, true, 0);
        touched += ask(512, middle, half | inside, true, 0);
        hot += ask(512, graded::hottest, always | inside, true, 0);
        cold += ask(512, graded::coldest, never | inside, false, 4);
        idle += ask(512, middle, half | inside, false, 3);
        early += ask(512, middle, half | inside, false, 2);
    });
    EXPECT_LE(hot, 1u) << "hot whatever its size is";
    EXPECT_LE(cold, 1u) << "cold whatever its size is";
    EXPECT_GE(touched, 10u);
    EXPECT_LE(idle, 1u) << "idle in a third window";
    EXPECT_GE(early, 5u) << "idle in a second window";
    unsigned outside = 0;
    windows(5, [&] {
        ask(128, middle, half | inside, true, 0);
        ask(512, middle, half | inside, true, 0);
        outside += ask(512, middle, half | 3 << 12, false, 3);
    });
    EXPECT_GE(outside, 5u) << "it may be inside again";
}

// Every object wants to move, again and again: 64 of 1024 across six classes, the rest across one.
TEST(graded, the_budget_goes_to_those_with_the_farthest_to_go) {
    graded policy({});
    touch_rate rates;
    std::uint16_t hot = 0;
    for (int w = 0; w < 40; ++w) {
        rates.draw();
        hot = rates.after(hot, true, 0);
    }
    hot |= 7 << 12; // long outside of its class
    for (int w = 0; w < 3; ++w) {
        policy.begin_window({.moves = true, .live_bytes = {}});
        unsigned near = 0, far = 0;
        for (unsigned base = 0; base < 1024; base += 64) {
            word_builder word(policy.tiers());
            word.facts.base = base * 8;
            const tier_id at = base == 0 ? graded::coldest - 1 : graded::hottest + 1;
            for (unsigned bit = 0; bit < 64; ++bit) {
                word.put(bit, {.tier = at, .touched = true});
                word.facts.state[bit] = hot;
            }
            (base == 0 ? far : near) += static_cast<unsigned>(std::popcount(word.ask(policy).move));
        }
        if (w == 0) continue; // nothing is known of what wants to move
        const auto allowed = static_cast<unsigned>(graded::move_budget * 1024); // 51
        EXPECT_EQ(near, 0u);
        EXPECT_NEAR(far, allowed, 13) << "which ones is drawn";
    }
}

// A fifth is touched in every window, the rest never: as good as any policy can be.
TEST(graded, finds_a_sharp_edge) {
    graded policy({});
    std::vector<double> rates(objects, 0);
    for (std::size_t i = 0; i < objects; i += 5) rates[i] = 5;
    population heap(policy, rates, 4);
    for (int w = 0; w < 12; ++w) heap.window();
    EXPECT_LT(heap.inflation(1), 1.01);
}

// Pages of all classes; what each shows is the same in every window.
struct classes_of_pages {
    classes_of_pages() {
        facts.length_seconds = 1;
        facts.running_seconds = 1;
        facts.touched_pages = 10'000;
        for (tier_id id = graded::hottest; id <= graded::coldest; ++id) {
            reuse_ages& seen = ages[id];
            seen.pages[0] = seen.exposed[0] = 400;
            seen.pages[2] = seen.exposed[2] = 600;
            seen.touched[0] = 400 - 45 * (id - 1);
            seen.touched[2] = 300 >> id;
            facts.tiers[id].ages = &ages[id];
            facts.tiers[id].can_leave = true;
            facts.tiers[id].fault_seconds = 1e-3;
            facts.tiers[id].live_bytes = std::uint64_t{1000} * 4096;
            facts.tiers[id].live_objects = 32'000;
        }
    }
    void run(graded& policy, int windows) {
        for (; windows > 0; --windows) next = policy.end_of_window(facts);
    }
    std::array<reuse_ages, graded::classes + 1> ages;
    window_facts facts;
    directives next;
};
constexpr place idle_page{0, 4096, 2}, touched_page{0, 4096, 0};

TEST(graded, pages_leave_as_far_as_the_stall_target_allows) {
    options settings;
    settings.stall_target = .005; // 5 faults of a millisecond in a second of running
    graded policy(settings);
    classes_of_pages heap;
    heap.run(policy, 40);
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page)) << "one fault";
    EXPECT_TRUE(policy.leaves(graded::coldest - 1, idle_page)) << "two";
    EXPECT_FALSE(policy.leaves(graded::coldest - 3, idle_page));
    EXPECT_FALSE(policy.leaves(graded::coldest, touched_page));
    EXPECT_FALSE(policy.leaves(first_tier, idle_page));
    EXPECT_FALSE(policy.leaves(graded::coldest + 1, idle_page)) << "no tier of this policy";
    EXPECT_TRUE(heap.next.pageout_allowed);
    EXPECT_NEAR(heap.next.stall_seconds, .005, .0005);
    EXPECT_NEAR(heap.next.faults, 5, .5);
    EXPECT_NEAR(heap.next.promotion_rate, heap.next.faults / 10'000 * 60, 1e-4);

    heap.facts.running_seconds = 40; // of many threads
    heap.run(policy, 40);
    EXPECT_TRUE(policy.leaves(graded::coldest - 3, idle_page));

    settings.stall_target = 0;
    policy.configure(settings);
    heap.run(policy, 40);
    EXPECT_FALSE(policy.leaves(graded::coldest, idle_page));
    EXPECT_FALSE(heap.next.pageout_allowed);
}

TEST(graded, a_program_that_hardly_runs_may_have_a_few_faults) {
    graded policy({});
    classes_of_pages heap;
    heap.facts.running_seconds = 1e-6;
    heap.facts.length_seconds = 50; // 2 % of it are a second
    heap.run(policy, 40);
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page));
    EXPECT_NEAR(heap.next.faults, 5, .5) << "as if it ran for that second";
}

TEST(graded, what_is_over_the_budget_leaves_whatever_it_costs) {
    options settings;
    settings.stall_target = 0;
    graded policy(settings);
    classes_of_pages heap;
    heap.run(policy, 10);
    EXPECT_FALSE(policy.leaves(graded::coldest, idle_page)) << "it has no budget";
    heap.facts.excess_bytes = 600. * 4096;
    heap.run(policy, 12);
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page));
    EXPECT_GT(heap.next.faults, 0) << "and that is said";
    EXPECT_TRUE(heap.next.pageout_allowed);
    heap.facts.excess_bytes = -1e9;
    heap.run(policy, 40);
    EXPECT_FALSE(policy.leaves(graded::coldest, idle_page)) << "there is room again";
}

TEST(graded, early_windows_teach_nothing_of_pages) {
    graded policy({});
    classes_of_pages heap;
    heap.run(policy, 40);
    const directives before = heap.next;
    ASSERT_TRUE(policy.leaves(graded::coldest, idle_page));
    const auto what_leaves = [&policy] {
        std::vector<std::pair<tier_id, unsigned>> all;
        for (tier_id id = graded::hottest; id <= graded::coldest; ++id)
            for (unsigned age = 0; age < 20; ++age)
                if (policy.leaves(id, {0, 4096, age})) all.emplace_back(id, age);
        return all;
    };
    const auto left_before = what_leaves();
    classes_of_pages early = heap; // all that was seen is touched, and nothing runs
    early.facts.early = true;
    early.facts.running_seconds = 0;
    early.facts.length_seconds = 1e-3;
    early.facts.major_faults = 1'000'000;
    for (tier_id id = graded::hottest; id <= graded::coldest; ++id) {
        early.ages[id].touched = early.ages[id].exposed;
        early.facts.tiers[id].ages = &early.ages[id];
    }
    early.run(policy, 40);
    EXPECT_EQ(what_leaves(), left_before);
    EXPECT_NEAR(early.next.faults, before.faults, .1 * before.faults);
    EXPECT_EQ(early.next.promotion_rate, before.promotion_rate);
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page));
    early.facts.excess_bytes = 600. * 4096;
    for (const auto& [id, age] : left_before)
        early.facts.tiers[id].out_bytes += std::uint64_t{4096} * early.ages[id].pages[age];
    early.run(policy, 12);
    EXPECT_GT(early.next.faults, 2 * before.faults) << "what is over the budget leaves";
}

TEST(graded, what_cannot_leave_is_not_asked_to) {
    options settings;
    settings.stall_target = 10;
    graded policy(settings);
    classes_of_pages heap;
    for (tier_id id = graded::hottest; id < graded::coldest; ++id)
        heap.facts.tiers[id].can_leave = false;
    heap.run(policy, 40);
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page));
    EXPECT_FALSE(policy.leaves(graded::coldest - 1, idle_page));
    heap.facts.tiers[graded::coldest].ages = nullptr;
    heap.run(policy, 1);
    EXPECT_FALSE(policy.leaves(graded::coldest, idle_page));
}

// Before anything was seen, a class is believed to be touched as its rate says.
TEST(graded, the_coldest_leave_before_the_hotter_when_nothing_is_known) {
    options settings;
    settings.stall_target = 1;
    graded policy(settings);
    classes_of_pages heap;
    for (tier_id id = graded::hottest; id <= graded::coldest; ++id) {
        heap.ages[id].clear();
        heap.ages[id].pages[1] = 1000;
    }
    heap.run(policy, 1);
    const place fresh_page{0, 4096, 1};
    EXPECT_TRUE(policy.leaves(graded::coldest, fresh_page));
    EXPECT_FALSE(policy.leaves(graded::hottest, fresh_page));
    EXPECT_FALSE(policy.leaves(graded::hottest + 3, fresh_page));
}

// Pages that nothing touches, one window older in each.
TEST(graded, the_coldest_leave_before_they_were_seen_at_every_age) {
    options settings;
    settings.stall_target = .005;
    const auto windows_until_they_leave = [&settings](tier_id id, double touched,
                                                      std::uint32_t others_touched = 0) {
        graded policy(settings);
        classes_of_pages heap;
        for (tier_id other = graded::hottest; other <= graded::coldest; ++other)
            heap.facts.tiers[other].can_leave = other == id;
        for (unsigned age = 1; age < 30; ++age) {
            heap.ages[id].clear();
            heap.ages[id].pages[age] = heap.ages[id].exposed[age - 1] = 1000;
            heap.ages[id].touched[age - 1] = static_cast<std::uint32_t>(1000 * touched);
            if (others_touched != 0) {
                heap.ages[id].pages[0] = 1000;
                heap.ages[id].exposed[0] += 1000;
                heap.ages[id].touched[0] += others_touched;
            }
            heap.run(policy, 1);
            unsigned leave = 0; // of runs; of a step that cannot be afforded a share leaves
            for (std::uintptr_t run = 0; run < 100; ++run)
                leave += policy.leaves(id, place{run << 16, (run << 16) + 4096, age});
            if (leave > 90) return age;
        }
        return 30u;
    };
    EXPECT_LE(windows_until_they_leave(graded::coldest, 0), 5u);
    EXPECT_GE(windows_until_they_leave(graded::coldest - 1, 0), 8u) << "a rate was seen there";
    EXPECT_GE(windows_until_they_leave(graded::coldest, 0, 300), 8u) << "others were touched";
    EXPECT_EQ(windows_until_they_leave(graded::coldest, .1), 30u) << "100 faults in a window";
}

TEST(graded, measured_faults_correct_the_prediction_slowly) {
    options settings;
    settings.stall_target = .05;
    graded policy(settings);
    classes_of_pages heap;
    heap.run(policy, 40);
    EXPECT_NEAR(heap.next.faults, 50, 1);
    const bool left = policy.leaves(graded::coldest - 4, idle_page);
    heap.facts.major_faults = 200; // four times as many as expected
    heap.run(policy, 1);
    EXPECT_NEAR(heap.next.faults, 50, 1) << "what is allowed stays";
    EXPECT_EQ(policy.leaves(graded::coldest - 4, idle_page), left) << "one window is no proof";
    heap.run(policy, 40);
    EXPECT_FALSE(policy.leaves(graded::coldest - 3, idle_page));
    EXPECT_TRUE(policy.leaves(graded::coldest, idle_page)) << "no more than eight times";
    heap.facts.major_faults = 0; // nothing pages out, or nobody counts
    heap.run(policy, 40);
    EXPECT_FALSE(policy.leaves(graded::coldest - 3, idle_page));
}

} // namespace
