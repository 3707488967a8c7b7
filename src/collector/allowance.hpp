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
// noted than can be had.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace obase::collector {

class allowance {
  public:
    static constexpr std::uint64_t unlimited = UINT64_MAX;

    void begin(std::uint64_t most) noexcept {
        most_ = most;
        taken_ = queued_ = planned_ = 0;
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

    bool plan(std::size_t bytes) noexcept {
        if (limited() && planned_ + bytes > most_) return false;
        planned_ += bytes;
        return true;
    }
    void queue(std::size_t bytes) noexcept { queued_ += bytes; }
    void end_batch() noexcept { queued_ = 0; }
    void take(std::size_t bytes) noexcept { taken_ += bytes; }

  private:
    std::uint64_t most_ = unlimited;
    std::uint64_t taken_ = 0;
    std::uint64_t queued_ = 0;
    std::uint64_t planned_ = 0;
};

} // namespace obase::collector
