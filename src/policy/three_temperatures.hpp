// SPDX-License-Identifier: MIT
//
// policy::three_temperatures: the policy `papers`, the placement of OBASE (Fig. 5) and HADES.
//
//   touched, and in NEW or COLD            -> HOT, unless what is promoted dies young (churn.hpp)
//   untouched for more than C_t windows    -> COLD, unless it is there or must never be
//   everything else                        -> stays
// A newborn object (first visit) stays: its window was not a whole one, and construction is not an
// access. What leaves memory is decided by one number for the whole process, the promotion rate:
// all of COLD that was not touched in the window, while cold_threshold.hpp allows it. Where the process has a budget of
// memory that decides instead: as much of COLD as is over it, idle for longest first (placement.hpp).
//
// What the program expects of an object holds while the object is where it was born and nothing else is known: one
// that is expected to be cold goes to COLD at once unless it was touched, and one that is expected to be hot to
// HOT; one to be used once is not promoted.
//
// While threads that allocate wait for memory, what was not touched goes to COLD at once: from NEW, and when that
// is not enough from HOT, those that have been quiet for longest first (relief.hpp). An early window does not move
// C_t: it has no rate per minute. What it saw of COLD in use counts in the next one that is not early.
//
// CIW semantics: "exceeds C_t" is taken literally, idle > C_t, as in the text and the figures of both
// papers. (OBASE 4.4 calls C_t = 3 "approximately six minutes"; an object is then demoted by the scan
// that ends its fourth untouched window, so the eighth minute is nearer.) A counter with few bits
// saturates: `saturation` is its largest value and an object that reached it counts as beyond every
// threshold, so the test is idle >= min(C_t + 1, saturation). With the five bits of the ATC word (31)
// the thresholds 30, 31 and 32 therefore mean the same.
//
// A never_cold object that has been idle for as long goes from NEW to HOT instead: NEW is for
// objects without a pattern, and being kept warm is a pattern. Of objects that are too large to move the
// policy says the role: COLD when they have been idle for as long and may be cold, else HOT.
#pragma once

#include "policy/churn.hpp"
#include "policy/cold_threshold.hpp"
#include "policy/placement.hpp"
#include "policy/relief.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace obase::policy {

class three_temperatures final : public placement {
  public:
    static constexpr tier_id hot = 1;
    static constexpr tier_id cold = 2;
    static constexpr tier rows[] = {
        {.name = "new"},
        {.name = "hot", .promoted_to = true},
        {.name = "cold", .reclaimable = true, .cold = true, .file_backed = true, .lazy = true}};
    static constexpr tier_table table{rows};
    static_assert(table.valid());

    explicit three_temperatures(const options& settings, unsigned saturation = ~0u) noexcept
        : controller_(controller_settings_of(settings)), saturation_(saturation) {
        configure(settings);
    }

    const tier_table& tiers() const noexcept override { return table; }

    void configure(const options& settings) noexcept override {
        controller_ = cold_threshold_controller(controller_settings_of(settings));
        hold_churn_ = settings.defer_promotion;
        dense_from_ = settings.compaction_live_fraction;
        refresh();
    }

    void begin_window(const window_beginning& now) noexcept override {
        moves_ = now.moves;
        relief_.begin_window(now.wanted_bytes, now.early);
        if (!moves_ || now.early) return;
        const std::uint64_t live = now.live_bytes[hot];
        churn_.begin_window(promoted_, hot_live_ > live ? hot_live_ - live : 0);
        promoted_ = 0;
    }

    void decide(word_facts& word, word_verdict& verdict) noexcept override {
        // Most words: nothing in them that could move, whatever slot it is.
        const bool touched_stay = word.touched == 0 || word.tiers == tier_mask{1} << hot;
        const bool idle_stay = word.oldest < eligible_from_ || word.tiers == tier_mask{1} << cold;
        if ((word.expected_hot | word.expected_cold) == 0)
            if (touched_stay && idle_stay && word.unmoved == 0 && !relief_.active()) return;
        for (std::uint64_t left = word.seen; left != 0; left &= left - 1)
            decide_slot(word, verdict, static_cast<unsigned>(std::countr_zero(left)));
    }

    directives end_of_window(const window_facts& facts) noexcept override {
        if (moves_) note_promotions(facts);
        relief_.end_window();
        // What is in use leaves COLD in the window that sees it, so of early ones each sees others.
        cold_pages_ += facts.tiers[cold].touched_pages;
        most_pages_ = std::max(most_pages_, facts.touched_pages);
        directives next = controller_.current();
        if (!facts.early) {
            next = controller_.end_of_window({facts.length_seconds, most_pages_,
                                              std::exchange(cold_pages_, 0),
                                              facts.tiers[cold].live_bytes});
            most_pages_ = 0;
        }
        refresh();
        has_budget_ = std::isfinite(facts.excess_bytes);
        if (has_budget_) next.pageout_allowed = facts.excess_bytes > 0;
        return next;
    }

    bool leaves(tier_id id, const place& piece) const noexcept override {
        return id == cold && piece.idle_windows != 0 &&
               (has_budget_ || controller_.current().pageout_allowed);
    }

    directives current() const noexcept { return controller_.current(); }

  private:
    void decide_slot(const word_facts& word, word_verdict& verdict, unsigned slot) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << slot;
        const bool in_use = (word.touched & bit) != 0;
        const tier_id at = word.tier[slot];
        bool idle = !in_use && (word.newborn & bit) == 0 && word.idle[slot] >= eligible_from_;
        if (relief_.active() && !in_use && at != cold) idle = relieves(word, slot) || idle;
        if (at == first_tier && (word.unmoved & bit) == 0) {
            const bool new_here = !in_use && word.idle[slot] < eligible_from_;
            if (new_here && (word.expected_cold & bit) != 0) idle = true;
            if (new_here && !idle && (word.expected_hot & bit) != 0) return verdict.send(slot, hot);
            if (in_use && (word.expected_once & bit) != 0) return;
        }
        if ((word.unmoved & bit) != 0) {
            verdict.to[slot] = idle && !word.about->never_cold(slot) ? cold : hot;
            return;
        }
        if (at == (in_use ? hot : cold) || !(in_use || idle)) return;
        const tier_id target = in_use || word.about->never_cold(slot) ? hot : cold;
        if (target == at) return;
        if (at != first_tier || target != hot || !should_defer_promotion(word, slot)) {
            verdict.send(slot, target);
        } else if (word.again || churn_.hold()) {
            verdict.held |= bit;
        } else { // tells how long such objects live, whatever else leaves
            verdict.send(slot, target);
            verdict.sample |= bit;
        }
    }

    // True if the object, which nobody touched, goes because threads wait. What cannot go counts for nothing.
    bool relieves(const word_facts& word, unsigned slot) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << slot;
        const unsigned rank = relief::rank(word.tier[slot] == hot, word.quiet[slot]);
        if ((word.movable & bit) == 0 || word.about->never_cold(slot)) return false;
        if (!word.again && (word.unmoved & bit) == 0) relief_.note(rank, word.about->size(slot));
        return (word.newborn & bit) == 0 && relief_.leaves(rank, word.base / 8 + slot);
    }

    // An object of NEW that would be promoted, but whose place is used again.
    bool should_defer_promotion(const word_facts& word, unsigned slot) const noexcept {
        return hold_churn_ && churn_.holding() && (word.movable >> slot & 1) != 0 &&
               word.about->live_fraction_of_run(slot) >= dense_from_;
    }

    // What early windows move belongs to the window that they are a part of.
    void note_promotions(const window_facts& facts) noexcept {
        const auto& moved = facts.moved_bytes;
        if (!facts.early) {
            promoted_ = moved[first_tier][hot];
            hot_live_ = facts.tiers[hot].live_bytes;
            return;
        }
        promoted_ += moved[first_tier][hot];
        hot_live_ += moved[first_tier][hot] + moved[cold][hot];
        hot_live_ -= std::min(hot_live_, moved[hot][cold]);
    }

    // Kept ready so that a slot is one comparison.
    void refresh() noexcept { eligible_from_ = std::min(controller_.threshold() + 1, saturation_); }

    cold_threshold_controller controller_;
    churn churn_;
    relief relief_;
    unsigned saturation_;
    unsigned eligible_from_ = 0;
    bool hold_churn_ = true;
    double dense_from_ = 0;
    bool moves_ = false;
    bool has_budget_ = false;
    std::uint64_t cold_pages_ = 0,
                  most_pages_ = 0; // touched, since the last window that was not early
    std::uint64_t promoted_ = 0;   // bytes from NEW to HOT, in the last window with moves
    std::uint64_t hot_live_ = 0;   // live bytes of HOT at its end, but for what died since
};

} // namespace obase::policy
