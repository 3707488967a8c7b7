// SPDX-License-Identifier: MIT
//
// relief: which objects go to the cold tier at once because threads that allocate wait for memory.
//
//     relief under_pressure;
//     begin_window: under_pressure.begin_window(wanted_bytes);   // of an early window; 0: of any other
//     decide:       if (under_pressure.active()) under_pressure.note(rank, bytes);   // each that could go
//                   if (under_pressure.leaves(rank)) ...                             // such an object goes
//     end_of_window: under_pressure.end_window();
//
// Of the objects that were not touched those go that rank highest, as many as have the bytes that are wanted.
// What the policy has not placed yet ranks above what is in use at times, and of both what has been quiet
// for longer. How many bytes there are of each rank is known from the window before: so the first window that
// threads wait for only counts, which is all that it could do for objects that were just made.
//
// The collector stops emptying runs when enough has left, and begins at the lowest addresses, so of one
// rank the objects go that were allocated first.
//
// Threads: the collector.
#pragma once

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

    // Bytes that should leave; 0: no thread waits, or this is a window like others.
    void begin_window(std::uint64_t wanted_bytes) noexcept {
        active_ = wanted_bytes != 0;
        threshold_ = none;
        if (!active_) return;
        if (counted_) threshold_ = threshold_for(wanted_bytes);
        seen_.fill(0);
        counted_ = true;
    }
    bool active() const noexcept { return active_; }
    // An object that could go, as it will be seen in the next window if nobody touches it.
    void note(unsigned rank, std::size_t bytes) noexcept { seen_[rank] += bytes; }
    // Precondition: the object was not touched.
    bool leaves(unsigned rank) const noexcept { return rank >= threshold_; }

    void end_window() noexcept {
        if (active_) return;
        // Nobody counted: what is left is a window older.
        for (unsigned begin = 0; begin < ranks; begin += ages) {
            std::uint64_t* const of = seen_.data() + begin;
            of[ages - 1] += of[ages - 2];
            std::copy_backward(of, of + ages - 2, of + ages - 1);
            of[0] = 0;
        }
    }

  private:
    static constexpr unsigned ranks = 2 * ages;
    static constexpr unsigned none = ~0u;

    unsigned threshold_for(std::uint64_t wanted) const noexcept {
        std::uint64_t bytes = 0;
        for (unsigned rank = ranks - 1; rank > 0; --rank) {
            bytes += seen_[rank];
            if (bytes >= wanted) return rank;
        }
        return 0;
    }

    std::array<std::uint64_t, ranks> seen_{}; // bytes
    unsigned threshold_ = none;
    bool active_ = false;
    bool counted_ = false; // seen_ has what a window saw
};

} // namespace obase::policy
