// SPDX-License-Identifier: MIT
#include "policy/cold_threshold.hpp"

#include <algorithm>
#include <cmath>

namespace obase::policy {

controller_settings controller_settings_of(const options& settings) noexcept {
    controller_settings made;
    made.first = static_cast<unsigned>(settings.cold_threshold);
    made.target = settings.promotion_target;
    made.minute_seconds = settings.scaled_minute_seconds();
    made.rule = settings.controller;
    made.factor = settings.controller_factor;
    return made;
}

double promotion_rate(const promotion_facts& facts, double minute_seconds) noexcept {
    if (facts.touched_pages == 0) return 0;
    // A clock too coarse to see the window must not divide by zero.
    constexpr double shortest_window = 1e-6;
    const double length = std::max(facts.length_seconds, shortest_window);
    const double share =
        static_cast<double>(facts.cold_pages) / static_cast<double>(facts.touched_pages);
    return share * (minute_seconds / length);
}

cold_threshold_controller::cold_threshold_controller(const controller_settings& settings) noexcept
    : settings_(settings) {
    settings_.highest = std::max(settings_.highest, settings_.lowest);
    current_.cold_threshold = std::clamp(settings_.first, settings_.lowest, settings_.highest);
}

unsigned cold_threshold_controller::raised() const noexcept {
    const unsigned now = current_.cold_threshold;
    if (now >= settings_.highest) return settings_.highest;
    unsigned next = now + 1;
    if (settings_.rule == controller_kind::multiplicative) {
        const double grown = std::ceil(static_cast<double>(now) * settings_.factor);
        // Compared as double: the product may be beyond every unsigned, or not a number.
        if (grown >= static_cast<double>(settings_.highest)) return settings_.highest;
        if (grown > static_cast<double>(next)) next = static_cast<unsigned>(grown);
    }
    return next;
}

unsigned cold_threshold_controller::lowered() const noexcept {
    const unsigned now = current_.cold_threshold;
    return now > settings_.lowest ? now - 1 : settings_.lowest;
}

directives cold_threshold_controller::end_of_window(const promotion_facts& facts) noexcept {
    const double rate = promotion_rate(facts, settings_.minute_seconds);
    current_.promotion_rate = rate;
    current_.pageout_after = settings_.pageout_streak - streak_;
    // What could be touched in COLD is what lay there when the window began.
    const bool cold_held_objects = cold_holds_objects_;
    cold_holds_objects_ = facts.cold_live_bytes != 0;
    cold_was_used_ = cold_was_used_ || cold_held_objects;
    if (!cold_was_used_) return current_;

    if (settings_.rule != controller_kind::fixed) {
        if (rate > settings_.target) current_.cold_threshold = raised();
        if (rate < settings_.target) current_.cold_threshold = lowered();
    }
    if (!cold_held_objects) return current_;
    if (rate > settings_.target) {
        streak_ = 0;
    } else if (rate < settings_.target) {
        streak_ = std::min(streak_ + 1, settings_.pageout_streak);
    } else if (streak_ < settings_.pageout_streak) {
        streak_ = 0;
    }
    current_.pageout_allowed = streak_ >= settings_.pageout_streak;
    current_.pageout_after = settings_.pageout_streak - streak_;
    return current_;
}

} // namespace obase::policy
