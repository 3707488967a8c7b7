// SPDX-License-Identifier: MIT
//
// relief: which objects go to the cold tier at once because threads that allocate wait for memory.
//
//     relief under_pressure;
//     begin_window: under_pressure.begin_window(wanted_bytes);
//     decide:       if (under_pressure.active()) under_pressure.note(idle);   // each that was not touched
//                   if (under_pressure.leaves(idle)) ...                      // such an object goes
//     end_of_window: under_pressure.end_window(live_bytes, live_objects);
//
// Of the objects that were not touched those go that have been idle for longest, as many as have the bytes that
// are wanted. How many there are of each age is known from the window before: so the first window that
// threads wait for only counts, which is all that it could do for objects that were just made. Sizes are
// taken for the mean of all.
//
// The collector stops emptying runs when enough has left, and begins at the lowest addresses, so of one
// age the objects go that were allocated first.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace obase::policy {

class relief {
  public:
    static constexpr unsigned ages = 64; // idle windows from the last on count alike

    // Bytes that should leave; 0: no thread waits.
    void begin_window(std::uint64_t wanted_bytes) noexcept {
        active_ = wanted_bytes != 0;
        threshold_ = none;
        if (!active_) return;
        if (counted_) threshold_ = threshold_for(static_cast<double>(wanted_bytes));
        seen_.fill(0);
        counted_ = true;
    }
    bool active() const noexcept { return active_; }
    // An object that could go, as it will be seen in the next window if nobody touches it.
    void note(unsigned idle_windows) noexcept { ++seen_[std::min(idle_windows, ages - 1)]; }
    // Precondition: the object was not touched.
    bool leaves(unsigned idle_windows) const noexcept { return idle_windows >= threshold_; }

    // Of the tiers that the objects are in.
    void end_window(std::uint64_t live_bytes, std::uint64_t live_objects) noexcept {
        mean_bytes_ = live_objects == 0
                          ? 0
                          : static_cast<double>(live_bytes) / static_cast<double>(live_objects);
        if (active_) return;
        // Nobody counted: what is left is a window older.
        seen_[ages - 1] += seen_[ages - 2];
        std::shift_right(seen_.begin(), seen_.end() - 1, 1);
        seen_[0] = 0;
    }

  private:
    static constexpr unsigned none = ~0u;

    unsigned threshold_for(double wanted) const noexcept {
        double bytes = 0;
        for (unsigned age = ages - 1; age > 0; --age) {
            bytes += static_cast<double>(seen_[age]) * mean_bytes_;
            if (bytes >= wanted) return age;
        }
        return 0;
    }

    std::array<std::uint64_t, ages> seen_{};
    double mean_bytes_ = 0;
    unsigned threshold_ = none;
    bool active_ = false;
    bool counted_ = false; // seen_ has what a window saw
};

} // namespace obase::policy
