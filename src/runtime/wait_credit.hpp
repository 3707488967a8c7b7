// SPDX-License-Identifier: MIT
//
// wait_credit: for how long threads may wait for memory, all waits together.
//
//     if (credit.any(now)) ... wait ...; credit.spend(began, ended);   // a thread that allocates
//     credit.earn(live_bytes, step);                                   // the collector, after an early window
//
// While a program loads more and more, waiting is what holds it at its budget, and may take most of the time. A
// program that replaces what it has may be over its budget for ever; moving out what it made last makes room
// only until it makes the next. So all credit is given anew when live bytes have grown by a step beyond what they ever
// were, or beyond what they were when they had fallen to half. Else waiting takes `most_seconds`, and `share` of
// the time from then on. Time in which several threads wait counts once.
//
// Threads: under one lock of the caller's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::runtime_internal {

class wait_credit {
  public:
    static constexpr double most_seconds = 2;
    static constexpr double share = 0.1;

    // Times are of one clock that does not go back, in seconds.
    bool any(double now) noexcept {
        if (now > filled_at_) {
            left_ = std::min(most_seconds, left_ + share * (now - filled_at_));
            filled_at_ = now;
        }
        return left_ > 0;
    }
    void spend(double began, double ended) noexcept {
        const double from = std::max(began, spent_until_);
        if (ended <= from) return;
        left_ -= ended - from;
        spent_until_ = ended;
    }
    void earn(std::uint64_t live_bytes, std::uint64_t step) noexcept {
        if (live_bytes < most_live_ / 2) most_live_ = live_bytes;
        if (live_bytes < most_live_ + step) return;
        most_live_ = live_bytes;
        left_ = most_seconds;
    }

  private:
    double left_ = most_seconds;
    double filled_at_ = 0;
    double spent_until_ = 0;
    std::uint64_t most_live_ = 0;
};

} // namespace obase::runtime_internal
