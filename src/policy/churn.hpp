// SPDX-License-Identifier: MIT
//
// churn: whether it pays to promote what was touched in NEW.
//
// OBASE (Fig. 5) promotes every object of NEW that was touched. Where values are replaced rather
// than changed (YCSB's A and B), most of them die before the next window: they were copied for
// nothing, and each leaves a hole in HOT, which is not filled again, where NEW would have used its
// place for the next value. So the mortality of what was promoted is watched, as
//
//     bytes freed in HOT within a window / bytes promoted at the end of the one before
//
// and while it is high, objects stay in NEW as long as their run there is dense; in a sparse one
// promotion is what empties it. One in `probe_one_in` goes on being promoted, so that the
// mortality is known when it falls: few, because they die like the others. While it holds, windows
// with few promotions are taken together until they tell something.
//
// It does not apply to demotion, nor to objects that are in HOT already. The estimate counts the
// deaths of all of HOT, so it errs towards holding back, never towards promoting.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::policy {

class churn {
  public:
    static constexpr double hold_above = 0.3; // mortality from which promotion does not pay
    static constexpr double release_below = 0.1;
    static constexpr unsigned probe_one_in = 64;
    static constexpr std::uint64_t least_promoted = 64 << 10; // bytes; fewer tell nothing

    // Once per window, before its first decision. `promoted`: bytes moved from NEW to HOT in the
    // window before; `died`: bytes freed in HOT since.
    void begin_window(std::uint64_t promoted, std::uint64_t died) noexcept {
        if (promoted == 0) return;
        promoted_ += promoted;
        died_ += died;
        const bool enough = promoted_ >= least_promoted;
        const double mortality =
            std::min(1.0, static_cast<double>(died_) / static_cast<double>(promoted_));
        if (enough || !holding_) promoted_ = died_ = 0;
        if (!enough) return;
        mortality_ = (mortality_ + mortality) / 2;
        if (mortality_ > hold_above)
            holding_ = true;
        else if (mortality_ < release_below)
            holding_ = false;
    }

    // For an object of NEW that would be promoted from a dense run: whether it stays.
    bool hold() noexcept { return holding_ && ++turn_ % probe_one_in != 0; }

    bool holding() const noexcept { return holding_; }
    double mortality() const noexcept { return mortality_; }

  private:
    double mortality_ = 0;                  // half of it is the last window's
    std::uint64_t promoted_ = 0, died_ = 0; // in windows that told nothing each for itself
    unsigned turn_ = 0;
    bool holding_ = false;
};

} // namespace obase::policy
