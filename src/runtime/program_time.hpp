// SPDX-License-Identifier: MIT
//
// program_time: whether the program has run for long enough since the last window for the next one to say something.
//
//     time.note_window(running_seconds, length_seconds);       // of one that has ended
//     time.is_quiet(running_seconds, since_seconds, length)    // since then: the next one can wait
//     rests(time, running_seconds, since_seconds, length, budget)
//
// What nobody asks for while the program rests is not cold for that. So while memory is not short a window does not
// end before the program has run for a quarter of what it usually does in one, or `longest` windows have passed: what
// a server's clients will ask for in the morning is in memory still.
//
// Usual is what the program ran for, by second, in the busiest window of late; each window takes some from that.
//
// Threads: the collector.
#pragma once

#include "runtime/memory_budget.hpp"

#include <algorithm>

namespace obase::runtime_internal {

class program_time {
  public:
    static constexpr double longest = 8, part = .25, kept = .85;

    void note_window(double running_seconds, double length_seconds) noexcept {
        if (length_seconds > 0) usual_ = std::max(running_seconds / length_seconds, usual_ * kept);
    }
    // `length`: seconds of a window as it should be.
    bool is_quiet(double running_seconds, double since_seconds, double length) const noexcept {
        return since_seconds < longest * length && running_seconds < part * usual_ * length;
    }

  private:
    double usual_ = 0; // seconds by second
};

// Without a budget memory that is not used is to leave, whoever rests.
inline bool rests(const program_time& time, double running_seconds, double since_seconds,
                  double length, const memory_budget& budget) noexcept {
    return budget.allowed != 0 && budget.excess() <= 0 &&
           time.is_quiet(running_seconds, since_seconds, length);
}

} // namespace obase::runtime_internal
