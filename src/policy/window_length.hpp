// SPDX-License-Identifier: MIT
//
// window_length: how long windows should be, as a share of the length that was asked for, so that a touched bit per
// window tells objects apart.
//
//     window_length length;
//     end_of_window: length.end_window(used, known);   // objects: touched in it, and of which that could be said
//     directives:    length.factor()                   // of the next window
//
// In a window in which nearly all objects are touched the bit says nothing, and one in which hardly any is says it of
// few. Simulation (Zipf .99, 65,536 objects, inflation at .9 after 64 accesses per object; docs/temperature.md):
// any length that touches between a twentieth and a half of the objects ranks them alike in the end, but those that touch
// a fifth or less follow a change in half as many accesses, and tell the hottest apart. So windows are halved
// while more than `most` are touched, or quartered where nearly all are, and doubled again, up to the length asked
// for, while fewer than `least` are. Between the two nothing changes: each change makes all touch rates per window others.
// After a change the next window is not judged: it may have begun before.
//
// They are not made longer than asked for: who asks for a length wants to see a change within it.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::policy {

class window_length {
  public:
    static constexpr double most = 0.2; // of the objects, touched
    static constexpr double nearly_all = 0.8;
    static constexpr double least = 0.05;
    static constexpr double shortest = 1. / 256;
    static constexpr std::uint64_t enough = 256; // objects, to judge by

    void end_window(std::uint64_t used, std::uint64_t known) noexcept {
        if (known < enough) return;
        const double share = static_cast<double>(used) / static_cast<double>(known);
        const double before = factor_;
        if (changed_)
            changed_ = false;
        else if (share > most)
            factor_ = std::max(shortest, factor_ / (share > nearly_all ? 4 : 2));
        else if (share < least)
            factor_ = std::min(1., factor_ * 2);
        changed_ = factor_ != before;
    }
    double factor() const noexcept { return factor_; }

  private:
    double factor_ = 1;
    bool changed_ = false;
};

} // namespace obase::policy
