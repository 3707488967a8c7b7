// SPDX-License-Identifier: MIT
#include "policy/graded.hpp"

#include <algorithm>
#include <bit>

namespace obase::policy {
namespace {

constexpr int octave = 16; // in sixteenths
// Beyond the class's own octave before a window counts against it; and before it counts twice.
constexpr int margin = octave / 2;
constexpr int clearly = octave + margin;
constexpr double weight_of_window = 0.25; // in the smoothed numbers

} // namespace

graded::graded(const options& settings, unsigned) noexcept { configure(settings); }

void graded::configure(const options& settings) noexcept {
    target_ = settings.promotion_target;
    minute_seconds_ = settings.scaled_minute_seconds();
}

tier_id graded::tier_of_rate(int sixteenths) noexcept {
    const int cls = (sixteenths >> 4) + 1; // rounds down
    return tier_of(static_cast<unsigned>(std::clamp(cls, 0, static_cast<int>(classes) - 1)));
}

void graded::begin_window(const window_beginning&) noexcept {
    set_budget();
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

void graded::decide(word_facts& word, word_verdict& verdict) noexcept {
    if (!word.again) seen_ += static_cast<std::uint64_t>(std::popcount(word.seen));
    for (std::uint64_t left = word.seen; left != 0; left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        const bool touched = (word.touched >> slot & 1) != 0;
        const bool large = (word.unmoved >> slot & 1) != 0;
        const tier_id at = word.tier[slot];
        std::uint16_t& state = word.state[slot];
        if (!word.again && (word.newborn >> slot & 1) == 0) {
            state = rates_.after(state, touched, word.idle[slot]);
            if (!large && at != first_tier) state = judged(state, at);
        }
        const unsigned windows = touch_rate::windows(state);
        tier_id target = windows == 0 ? hottest : tier_of_rate(rates_.sixteenths(state));
        if (large) {
            if (target != hottest && word.about->never_cold(slot)) target = hottest;
            verdict.to[slot] = static_cast<std::uint8_t>(target);
            continue;
        }
        if (windows < windows_to_prove || target == at) continue;
        if (at != first_tier) {
            const int outside = (state >> outside_shift & 7) - outside_zero;
            if (outside > -outside_enough && outside < outside_enough) continue;
        }
        if (target != hottest && word.about->never_cold(slot)) {
            target = hottest;
            if (target == at) continue;
        }
        // Every object leaves the first tier once; the budget is for changes of mind.
        if (at != first_tier) {
            const unsigned distance = target > at ? target - at : at - target;
            if (!word.again && (word.movable >> slot & 1) != 0) ++wanted_[distance];
            if (!within_budget(distance, state, slot)) continue;
        }
        verdict.send(slot, target);
    }
}

directives graded::end_of_window(const window_facts& facts) noexcept {
    const auto smoothed = [](double& value, double now) {
        value += (now - value) * weight_of_window;
    };
    for (tier_id id = hottest; id <= coldest; ++id)
        smoothed(touched_pages_[id], static_cast<double>(facts.tiers[id].touched_pages));
    smoothed(all_touched_pages_, static_cast<double>(facts.touched_pages));
    const double minutes = facts.length_seconds / minute_seconds_;
    const double allowed = target_ * all_touched_pages_ * minutes;
    double coming_back = 0;
    tier_id stays = coldest;
    while (stays > hottest && coming_back + touched_pages_[stays] <= allowed)
        coming_back += touched_pages_[stays--];
    // One more class at a time: what the last one costs shows in the next windows.
    leaves_above_ = std::max(stays, leaves_above_ > hottest ? leaves_above_ - 1 : hottest);
    double back = 0;
    for (tier_id id = leaves_above_ + 1; id <= coldest; ++id)
        back += static_cast<double>(facts.tiers[id].touched_pages);
    current_.promotion_rate = facts.touched_pages == 0 || minutes <= 0
                                  ? 0
                                  : back / static_cast<double>(facts.touched_pages) / minutes;
    current_.pageout_allowed = leaves_above_ != coldest;
    return current_;
}

} // namespace obase::policy
