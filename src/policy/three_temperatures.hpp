// SPDX-License-Identifier: MIT
//
// policy::three_temperatures: the placement of OBASE (Fig. 5) and HADES.
//
// What it is:
//   touched, and in NEW or COLD            -> HOT
//   untouched for more than C_t windows    -> COLD, unless it is there or must never be
//   everything else                        -> stays
// A newborn object (first visit) stays: its window was not a whole one, and construction is not an
// access.
//
// When not to use it: for heavy-tailed loads that need more than "touched or not"; put a graded
// policy beside it behind policy::placement.
//
// CIW semantics: "exceeds C_t" is taken literally, inactive_windows > C_t, as in the text and the
// figures of both papers. (OBASE 4.4 calls C_t = 3 "approximately six minutes"; an object is then
// demoted by the scan that ends its fourth untouched window, so the eighth minute is nearer.) A
// counter with few bits saturates: `saturation` is its largest value and an object that reached it
// counts as beyond every threshold, so the test is inactive_windows >= min(C_t + 1, saturation).
// With the five bits of the ATC word (31) the thresholds 30, 31 and 32 therefore mean the same.
//
// A never_cold object that has been idle for as long goes from NEW to HOT instead: NEW is for
// objects without a pattern, and being kept warm is a pattern.
#pragma once

#include "policy/cold_threshold.hpp"
#include "policy/placement.hpp"

#include <algorithm>

namespace obase::policy {

struct temperature_roles { // which class plays which part; the numbers are data
    unsigned fresh = 0;
    unsigned hot = 1;
    unsigned cold = 2;
};

class three_temperatures final : public placement {
  public:
    explicit three_temperatures(const controller_settings& settings, unsigned saturation = ~0u,
                                temperature_roles roles = {}) noexcept
        : controller_(settings), saturation_(saturation), roles_(roles) {
        refresh();
    }

    unsigned classes() const noexcept override { return 3; }

    decision decide(const observation& seen) const noexcept override {
        if (seen.touched) {
            return seen.cls == roles_.hot ? decision::stay() : decision::to(roles_.hot);
        }
        if (seen.newborn || seen.inactive_windows < eligible_from_) return decision::stay();
        if (seen.never_cold) {
            return seen.cls == roles_.hot ? decision::stay() : decision::to(roles_.hot);
        }
        return seen.cls == roles_.cold ? decision::stay() : decision::to(roles_.cold);
    }

    directives end_of_window(const window_facts& facts) noexcept override {
        directives next = controller_.end_of_window(facts);
        refresh();
        return next;
    }

    directives current() const noexcept override { return controller_.current(); }

  private:
    // Kept ready so that decide() is one comparison.
    void refresh() noexcept { eligible_from_ = std::min(controller_.threshold() + 1, saturation_); }

    cold_threshold_controller controller_;
    unsigned saturation_;
    unsigned eligible_from_ = 0;
    temperature_roles roles_;
};

} // namespace obase::policy
