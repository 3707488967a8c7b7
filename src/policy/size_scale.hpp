// SPDX-License-Identifier: MIT
//
// policy::size_scale: what an object's size counts for where touches per byte decide.
//
// A page is touched as often as all objects in it together. So an object of twice the mean size is worth keeping
// as much as one of the mean size that is touched half as often: its size counts as an octave.
//
//     scale.begin_window(); // once, before the first slot of a window
//     if (!scale.alike()) sixteenths -= scale.of(size);
//     scale.end_window(live_bytes, live_objects);
//
// What is larger than a page counts as a page: each of its pages is touched as often as it is, and no more.
//
// The mean is that of all live objects. All that follows from it is a difference between objects, so it stays as it was
// until the true one is an octave off: otherwise every object would change its class a little while a load grows.
//
// To ask for a size is a look into the heap's tables. So the least and the most of what sizes counted for are
// kept: where both lead to the same answer, nobody needs to ask, and where they are close to each other their
// middle is taken for all sizes. They hold for one window, and are made of what was noted before it: they widen
// at once and narrow by a sixteenth of an octave in a window.
//
// Cost: a table of 1 KiB. Threads: the collector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace obase::policy {

class size_scale {
  public:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr int close = 4; // sixteenths, from the least to the most

    size_scale() noexcept;

    void begin_window() noexcept;
    // Objects of all tiers, as the window left them.
    void end_window(std::uint64_t live_bytes, std::uint64_t live_objects) noexcept;

    // In sixteenths of an octave; 0 while no object is known, or for one that is gone (size 0).
    int of(std::size_t bytes) const noexcept {
        if (mean_bytes_ == 0 || bytes == 0) return 0;
        return log_[(std::min(bytes, page_bytes) + 7) / 8] - log_mean_;
    }
    int of_pages() const noexcept { return of(page_bytes); } // what is larger than a page
    // A size that was asked for counts as this.
    void note(int sixteenths) noexcept {
        next_least_ = std::min(next_least_, sixteenths);
        next_most_ = std::max(next_most_, sixteenths);
    }
    int least() const noexcept { return least_; }
    int most() const noexcept { return most_; }
    bool alike() const noexcept { return most_ - least_ <= close; }
    int middle() const noexcept { return (least_ + most_) / 2; }

    // That counts as nothing; 0: no object is known. At most a page.
    double mean_bytes() const noexcept { return mean_bytes_; }

  private:
    static constexpr int unknown = 1 << 12; // more than any size counts for

    std::array<std::int16_t, page_bytes / 8 + 1> log_; // by size in 8 bytes: 16 log2
    double mean_bytes_ = 0;
    int log_mean_ = 0;
    int least_ = -unknown, most_ = unknown;
    int next_least_ = unknown, next_most_ = -unknown;
};

} // namespace obase::policy
