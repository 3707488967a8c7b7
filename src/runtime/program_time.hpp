// SPDX-License-Identifier: MIT
//
// program_time: whether the program has done enough since the last window for the next one to say something.
//
//     time.note_window(active_seconds, length_seconds, length);  // of one that has ended, which should be `length` long
//     time.is_quiet(active_seconds, since_seconds, length)       // since then: the next one can wait
//
// What nobody asks for while the program rests is not cold for that. So while memory is not short a window does not
// end before the program was active for a quarter of what it usually is in one, or `longest` of its lengths have passed.
//
// Active is what its threads ran for, and `seconds_of_read` for each page that they read: while a program's hot set
// changes it may wait for the disk and do little else. Usual is, by second, that of the busiest window of late; each window takes some from it. A window of less than half its length, because it was asked for, says nothing of that.
//
// Threads: the collector.
#pragma once

#include <algorithm>

namespace obase::runtime_internal {

class program_time {
  public:
    static constexpr double longest = 8, part = .25, kept = .85;
    static constexpr double seconds_of_read = 1e-4; // of a page, from a disk

    void note_window(double active_seconds, double length_seconds, double length) noexcept {
        if (length_seconds > 0 && length_seconds >= length / 2)
            usual_ = std::max(active_seconds / length_seconds, usual_ * kept);
    }
    // `length`: seconds of a window as it should be.
    bool is_quiet(double active_seconds, double since_seconds, double length) const noexcept {
        return since_seconds < longest * length && active_seconds < part * usual_ * length;
    }

  private:
    double usual_ = 0; // seconds by second
};

} // namespace obase::runtime_internal
