// SPDX-License-Identifier: MIT
#include "policy/graded.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace obase::policy {
namespace {

constexpr int octave = 16; // in sixteenths
// Beyond the class's own octave before a window counts against it; and before it counts twice.
constexpr int margin = octave / 2;
constexpr int clearly = octave + margin;
constexpr double enough_faults = 16;       // of which a prediction can be judged
constexpr double weight_of_window = 0.125; // of a window's faults, in the correction
constexpr double most_correction = 8;
constexpr double cold_kept =
    7. / 8; // of what was seen of the coldest class, from one window to the next

} // namespace

graded::graded(const options& settings, unsigned) noexcept { configure(settings); }

void graded::configure(const options& settings) noexcept {
    stall_target_ = settings.stall_target;
    minute_seconds_ = settings.scaled_minute_seconds();
}

tier_id graded::tier_of_rate(int sixteenths) noexcept {
    const int cls = (sixteenths >> 4) + 1; // rounds down
    return tier_of(static_cast<unsigned>(std::clamp(cls, 0, static_cast<int>(classes) - 1)));
}

void graded::begin_window(const window_beginning& now) noexcept {
    early_ = now.early;
    relief_.begin_window(now.wanted_bytes);
    if (early_) return;
    set_budget();
    rates_.end_window();
    seen_ = 0;
    wanted_.fill(0);
    turn_ += 0x85ebca6bu;
}

// From what the last window wanted to move: the budget goes to the longest distances.
void graded::set_budget() noexcept {
    double left = move_budget * static_cast<double>(seen_);
    least_distance_ = 1;
    share_at_least_ = 1;
    for (unsigned distance = classes - 1; distance >= 1; --distance) {
        const auto wanted = static_cast<double>(wanted_[distance]);
        if (wanted > left) {
            least_distance_ = distance;
            share_at_least_ = left / wanted;
            return;
        }
        left -= wanted;
    }
}

// The same answer whenever it is asked in a window: a slot is asked about again before it moves.
bool graded::within_budget(unsigned distance, std::uint16_t state, unsigned slot) const noexcept {
    if (distance != least_distance_) return distance > least_distance_;
    const std::uint32_t mixed = (state * 64u + slot + turn_) * 0x9e3779b1u;
    return (mixed >> 16) < share_at_least_ * 65536;
}

// How long the rate has been outside of the class, one window later.
std::uint16_t graded::judged(std::uint16_t state, tier_id at) const noexcept {
    const int rate = rates_.sixteenths(state);
    const int upper = static_cast<int>(class_of(at)) * octave; // the class's octave ends here
    const int lower = upper - octave;
    int outside = (state >> outside_shift & 7) - outside_zero;
    if (state >> outside_shift == 0) outside = 0;
    // What has just left the first tier brings the windows that it was there; inside of its class that ends here.
    int step = 0;
    if (rate > upper + margin && at != hottest)
        step = rate > upper + clearly ? 2 : 1;
    else if (rate < lower - margin && at != coldest)
        step = rate < lower - clearly ? -2 : -1;
    if (step == 0 || (step > 0) != (outside >= 0)) outside = 0;
    outside = std::clamp(outside + step, -outside_most, outside_most);
    return static_cast<std::uint16_t>(
        (state & 0xfff) | static_cast<unsigned>(outside + outside_zero) << outside_shift);
}

void graded::count_window(std::uint16_t& state, bool touched, tier_id at, bool large,
                          unsigned idle) noexcept {
    // The window of its birth was not a whole one, and who makes an object touches it.
    const bool born = state == 0 && (large || at == first_tier);
    if (!born) state = rates_.after(state, touched, idle);
    if (born || (at == first_tier && !large))
        state = older(state);
    else if (!large)
        state = judged(state, at);
}

// One more window in the first tier.
std::uint16_t graded::older(std::uint16_t state) noexcept {
    if (state >> outside_shift >= windows_to_prove) return state;
    return static_cast<std::uint16_t>(state + (1u << outside_shift));
}

// True if the object of the first tier, which nobody touched, goes to the coldest at once.
bool graded::relieves(const word_facts& word, unsigned slot) noexcept {
    if (!word.again) relief_.note(word.idle[slot]);
    return (word.newborn >> slot & 1) == 0 && relief_.leaves(word.idle[slot]) &&
           !word.about->never_cold(slot);
}

void graded::decide(word_facts& word, word_verdict& verdict) noexcept {
    const bool counts = !word.again && !early_;
    if (counts) seen_ += static_cast<std::uint64_t>(std::popcount(word.seen));
    for (std::uint64_t left = word.seen; left != 0; left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        const bool touched = (word.touched >> slot & 1) != 0;
        const bool large = (word.unmoved >> slot & 1) != 0;
        const tier_id at = word.tier[slot];
        std::uint16_t& state = word.state[slot];
        if (counts)
            count_window(state, touched || touched_early(word, slot), at, large, word.idle[slot]);
        tier_id target =
            touch_rate::windows(state) == 0 ? hottest : tier_of_rate(rates_.sixteenths(state));
        if (large) {
            if (target != hottest && word.about->never_cold(slot)) target = hottest;
            verdict.to[slot] = static_cast<std::uint8_t>(target);
            continue;
        }
        if (relief_.active() && at == first_tier && !touched && relieves(word, slot)) {
            verdict.send(slot, coldest);
            continue;
        }
        if (early_ || target == at) continue;
        if (at == first_tier) {
            if (state >> outside_shift < windows_to_prove) continue;
        } else {
            const int outside = (state >> outside_shift & 7) - outside_zero;
            if (outside > -outside_enough && outside < outside_enough) continue;
        }
        if (target != hottest && word.about->never_cold(slot)) {
            target = hottest;
            if (target == at) continue;
        }
        // To read it back would cost more than a colder place gains.
        if (target > at && word.about->out(slot)) continue;
        // Every object leaves the first tier once; the budget is for changes of mind.
        if (at != first_tier) {
            const unsigned distance = target > at ? target - at : at - target;
            if (!word.again && (word.movable >> slot & 1) != 0) ++wanted_[distance];
            if (!within_budget(distance, state, slot)) continue;
        }
        verdict.send(slot, target);
    }
}

// Of a page of the class: its objects are touched by a Poisson process of the class's middle rate.
double graded::assumed_hazard(tier_id id, const window_facts::tier_facts& facts) noexcept {
    if (facts.live_bytes == 0) return 1;
    const double objects = static_cast<double>(facts.live_objects) * fault_price::page_bytes /
                           static_cast<double>(facts.live_bytes);
    const double middle = touch_rate::base_rate * std::exp2(static_cast<int>(class_of(id)) - 0.5);
    return -std::expm1(-std::max(objects, 1.) * middle);
}

// The coldest class has no lower end, so what its pages were seen to do counts for ages that none had yet. Else
// pages would have to be watched at every age before they leave at it.
double graded::cold_hazard(const reuse_ages& ages, double assumed, bool counts) noexcept {
    if (counts) {
        cold_.exposed *= cold_kept;
        cold_.touched *= cold_kept;
        for (unsigned age = 0; age <= reuse_ages::oldest; ++age) {
            cold_.exposed += ages.exposed[age];
            cold_.touched += ages.touched[age];
        }
    }
    const double seen = (cold_.touched + assumed * fault_price::assumed_pages) /
                        (cold_.exposed + fault_price::assumed_pages);
    return std::min(assumed, seen);
}

// Faults that were none (a page still in a cache) and faults that no scan saw.
void graded::correct(double measured, double predicted) noexcept {
    if (measured == 0 || std::max(measured, predicted) < enough_faults) return;
    const double off = std::clamp(measured / std::max(predicted, 1.), 1. / 2, 2.);
    correction_ = std::clamp(correction_ * std::pow(off, weight_of_window), 1 / most_correction,
                             most_correction);
}

directives graded::end_of_window(const window_facts& facts) noexcept {
    relief_.end_window(facts.tiers[first_tier].live_bytes, facts.tiers[first_tier].live_objects);
    if (!facts.early) {
        correct(static_cast<double>(facts.major_faults), correction_ * price_.faults());
        const double running =
            std::max(facts.running_seconds, least_running * facts.length_seconds);
        allowed_stall_ = stall_target_ * running;
    }
    // What was never measured is taken for what others are.
    double usual = 0;
    unsigned measured = 0;
    for (const window_facts::tier_facts& tier : facts.tiers) {
        usual += tier.fault_seconds;
        measured += tier.fault_seconds > 0;
    }
    usual = measured == 0 ? usual_fault_seconds : usual / measured;
    price_.begin();
    for (tier_id id = hottest; id <= coldest; ++id) {
        const window_facts::tier_facts& tier = facts.tiers[id];
        if (tier.ages == nullptr || !tier.can_leave) continue;
        const double seconds = tier.fault_seconds > 0 ? tier.fault_seconds : usual;
        double assumed = assumed_hazard(id, tier);
        if (id == coldest) assumed = cold_hazard(*tier.ages, assumed, !facts.early);
        price_.learn(id, *tier.ages, {.assumed = assumed, .fault_seconds = seconds}, !facts.early);
    }
    price_.choose({.stall_seconds = allowed_stall_ / correction_,
                   .excess_pages = facts.excess_bytes / fault_price::page_bytes});
    current_.faults = correction_ * price_.faults();
    current_.stall_seconds = correction_ * price_.stall_seconds();
    if (!facts.early) {
        const double minutes = facts.length_seconds / minute_seconds_;
        current_.promotion_rate =
            facts.touched_pages == 0 || minutes <= 0
                ? 0
                : price_.faults() / static_cast<double>(facts.touched_pages) / minutes;
    }
    current_.pageout_allowed = false;
    for (tier_id id = hottest; id <= coldest; ++id)
        current_.pageout_allowed =
            current_.pageout_allowed || price_.lower_limit(id) != fault_price::never;
    return current_;
}

} // namespace obase::policy
