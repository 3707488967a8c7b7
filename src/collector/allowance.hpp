// SPDX-License-Identifier: MIT
//
// allowance: bytes that the moves of a window may have of something: of holes that they leave, of what they
// write into a file, of what they take out of one.
//
//     allowance writes;
//     writes.begin(limit);
//     if (writes.fits(bytes)) writes.queue(bytes);   // a candidate
//     writes.end_batch();                            // its batch has been moved, as far as it could
//     writes.take(bytes);                            // for each that has moved
//
// A move that fails takes nothing: what is queued counts until its batch ends, what has moved until the window
// does. plan() is for wishes that are carried out later in the window, each asked once: it keeps more from being
// noted than can be had. Where more was wished for in the window before than may be had now, lots may be drawn: else those
// that are asked first would have all of it in every window, and what is wished for in each window, as a hot object is,
// would get no more than what is wished for once.
//
// Threads: the collector.
#pragma once

#include "policy/lot.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace obase::collector {

class allowance {
  public:
    static constexpr std::uint64_t unlimited = UINT64_MAX;

    void begin(std::uint64_t most) noexcept {
        most_ = most;
        share_ = wished_ <= most_ ? 1 : static_cast<double>(most_) / static_cast<double>(wished_);
        taken_ = queued_ = planned_ = wished_ = 0;
    }
    bool limited() const noexcept { return most_ != unlimited; }
    void add(std::uint64_t bytes) noexcept {
        if (limited()) most_ += bytes;
    }
    // What is neither taken nor queued.
    std::uint64_t left() const noexcept {
        return limited() ? most_ - std::min(most_, taken_ + queued_) : unlimited;
    }
    bool fits(std::size_t bytes) const noexcept { return bytes <= left(); }

    // `lot`: of all 32-bit numbers any is as likely as another; without one, who is asked first has it.
    bool plan(std::size_t bytes, std::uint32_t lot = 0) noexcept {
        if (!limited()) return true;
        wished_ += bytes;
        if (planned_ + bytes > most_ || !policy::drawn(lot, share_)) return false;
        planned_ += bytes;
        return true;
    }
    // Wished for in this window, and not to be had.
    std::uint64_t refused() const noexcept { return wished_ - planned_; }
    void queue(std::size_t bytes) noexcept { queued_ += bytes; }
    void end_batch() noexcept { queued_ = 0; }
    void take(std::size_t bytes) noexcept { taken_ += bytes; }

  private:
    std::uint64_t most_ = unlimited;
    double share_ = 1; // of the wishes, that is drawn
    std::uint64_t wished_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t queued_ = 0;
    std::uint64_t planned_ = 0;
};

} // namespace obase::collector
