// SPDX-License-Identifier: MIT
//
// relief: which objects go to the cold tier at once because memory is short: threads that allocate wait for some, or
// the process is over its budget, or what is in use in the cold tier finds no room elsewhere.
//
//     relief under_pressure;
//     begin_window: under_pressure.begin_window(wanted_bytes, early);   // 0: nothing is short
//     decide:       if (under_pressure.active()) under_pressure.note(rank, bytes);   // each that could go
//                   if (under_pressure.leaves(rank, place)) ...                      // such an object goes
//     end_of_window: under_pressure.end_window();
//
// Of the objects that were not touched those go that rank highest, as many as have the bytes that are wanted.
// What the policy has not placed yet ranks above what is in use at times, and of both what has been quiet
// for longer. How many bytes there are of each rank is known from the window before: so the first window that
// wants something only counts, which is all that it could do for objects that were just made.
//
// In an early window all of the last rank go: the collector stops emptying runs when enough has left, and begins at the
// lowest addresses, so of one rank the objects go that were allocated first. In a window like others nothing goes that
// was touched in one of the last two, and of the last rank only a share, drawn by place.
//
// Threads: the collector.
#pragma once

#include "policy/lot.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace obase::policy {

class relief {
  public:
    static constexpr unsigned ages =
        32; // windows, early ones included; from the last on they count alike

    static constexpr unsigned rank(bool placed, unsigned quiet_windows) noexcept {
        return (placed ? 0 : ages) + std::min(quiet_windows, ages - 1);
    }

    static constexpr unsigned least_quiet = 2; // windows

    // Bytes that should leave; 0: none.
    void begin_window(std::uint64_t wanted_bytes, bool early) noexcept {
        active_ = wanted_bytes != 0;
        early_ = early;
        threshold_ = none;
        ++turn_;
        if (!active_) return;
        if (!early) grow_older(); // as what was counted is now, if nobody touched it
        if (counted_) set_threshold(wanted_bytes);
        seen_.fill(0);
        counted_ = true;
    }
    bool active() const noexcept { return active_; }
    // An object that could go.
    void note(unsigned rank, std::size_t bytes) noexcept { seen_[rank] += bytes; }
    // Precondition: the object was not touched. `place`: as good as any number, always the same in a window.
    bool leaves(unsigned rank, std::uintptr_t place) const noexcept {
        if (!early_ && rank % ages < least_quiet) return false;
        if (early_ || rank != threshold_) return rank >= threshold_;
        return drawn(lot_of(place, turn_), share_);
    }

    void end_window() noexcept {
        if (!active_) grow_older(); // nobody counted
    }

  private:
    static constexpr unsigned ranks = 2 * ages;
    static constexpr unsigned none = ~0u;

    void grow_older() noexcept {
        for (unsigned begin = 0; begin < ranks; begin += ages) {
            std::uint64_t* const of = seen_.data() + begin;
            of[ages - 1] += of[ages - 2];
            std::copy_backward(of, of + ages - 2, of + ages - 1);
            of[0] = 0;
        }
    }
    void set_threshold(std::uint64_t wanted) noexcept {
        threshold_ = ranks;
        share_ = 1;
        for (std::uint64_t left = wanted; threshold_ > 0; left -= seen_[threshold_]) {
            --threshold_;
            if (seen_[threshold_] < left) continue;
            share_ = static_cast<double>(left) / static_cast<double>(seen_[threshold_]);
            return;
        }
    }

    std::array<std::uint64_t, ranks> seen_{}; // bytes
    unsigned threshold_ = none;
    double share_ = 1; // of the rank threshold_
    std::uint32_t turn_ = 0;
    bool active_ = false;
    bool early_ = false;
    bool counted_ = false; // seen_ has what a window saw
};

} // namespace obase::policy
