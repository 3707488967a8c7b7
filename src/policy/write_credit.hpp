// SPDX-License-Identifier: MIT
//
// write_credit: how many bytes may be written into COLD's file now, under a limit of bytes for each second.
//
//     write_credit credit(largest_object);
//     credit.earn(limit, seconds_since, window_seconds);   // when a window begins
//     if (credit.bytes() >= size) { ...; credit.spend(size); }
//
// Credit is kept for two windows, so that one that had nothing to write leaves its share to the next; and until the
// largest object can be written. What was written beyond it is earned first.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::policy {

class write_credit {
  public:
    explicit write_credit(std::uint64_t largest_object) noexcept
        : largest_(static_cast<double>(largest_object)) {}

    void earn(double bytes_per_second, double seconds, double window_seconds) noexcept {
        left_ = std::min(left_ + bytes_per_second * seconds,
                         std::max(2 * bytes_per_second * window_seconds, largest_));
    }
    void spend(std::uint64_t bytes) noexcept { left_ -= static_cast<double>(bytes); }
    // As at first: neither credit nor debt.
    void forget() noexcept { left_ = 0; }
    std::uint64_t bytes() const noexcept {
        return static_cast<std::uint64_t>(std::max(left_, 0.0));
    }

  private:
    double largest_;
    double left_ = 0; // < 0: more was written
};

} // namespace obase::policy
