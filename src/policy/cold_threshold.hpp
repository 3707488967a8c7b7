// SPDX-License-Identifier: MIT
//
// policy::cold_threshold_controller: the feedback loop from promotion rate to C_t.
//
// The controllers of OBASE 3.4/4.4 (up one, down one) and of HADES ("multiplicative increase,
// additive decrease"), and the gate for proactive reclaim: paging out is allowed after two
// consecutive windows below the target and suspended above it.
//
// Decisions where the papers leave room:
// - Until a window has begun with something in COLD, no window is judged: the threshold
// stays
//   at its first value. (The papers begin with premature demotions at C_t = 3; with "below, so one
//   down" from the first window on, C_t would be 1 before the first object could be demoted.) Later
//   an empty COLD is below the target like any other, so that a threshold that rose too far
//   returns.
// - A window at whose start COLD was empty never counts towards paging out, nor against it.
// - A window exactly at the target changes nothing, except that it ends a streak that had not yet
//   reached its two windows.
// - Nothing touched at all is rate 0: an idle program is below the target.
// - The multiplicative step is at least one window, whatever the factor.
//
// Invariant: lowest <= threshold() <= highest, always.
#pragma once

#include "policy/placement.hpp"

#include <obase/options.hpp>

namespace obase::policy {

struct controller_settings {
    unsigned first = 3;
    unsigned lowest = 1;
    unsigned highest = 32;
    double target = 0.01;       // promotion rate, fraction of the working set per minute
    double minute_seconds = 60; // 60 / time_scale
    controller_kind rule = controller_kind::additive;
    double factor = 2;           // for controller_kind::multiplicative
    unsigned pageout_streak = 2; // consecutive windows below the target before paging out
};

// What the controller needs of a window.
struct promotion_facts {
    double length_seconds = 0;         // really elapsed since the end of the previous window
    std::uint64_t touched_pages = 0;   // unique managed pages touched: the working set
    std::uint64_t cold_pages = 0;      // those of them that lie in COLD
    std::uint64_t cold_live_bytes = 0; // live bytes in COLD at its end, after its moves
};

// As the options say.
controller_settings controller_settings_of(const options& settings) noexcept;

// Unique COLD pages over unique managed pages touched in the window, per (scaled) minute. 0 when
// nothing was touched.
double promotion_rate(const promotion_facts& facts, double minute_seconds) noexcept;

class cold_threshold_controller {
  public:
    explicit cold_threshold_controller(const controller_settings& settings) noexcept;

    directives end_of_window(const promotion_facts& facts) noexcept;
    directives current() const noexcept { return current_; }
    unsigned threshold() const noexcept { return current_.cold_threshold; }

  private:
    unsigned raised() const noexcept;
    unsigned lowered() const noexcept;

    controller_settings settings_;
    unsigned streak_ = 0;
    bool cold_holds_objects_ = false; // at the end of the window before
    bool cold_was_used_ = false;
    directives current_;
};

} // namespace obase::policy
