// SPDX-License-Identifier: MIT
//
// processor_share: for how long the collector sleeps, so that it takes no more than its share of the time.
//
//     pace.begin(cpu, now);                                            // of a window
//     if (const double owed = pace.owed(cpu, now, share); owed >= worth_a_sleep) ... sleep for `owed` ...
//
// For a share of a fourth it works some tenth of a millisecond between two sleeps, where its work can be interrupted:
// a thread that finds it on its processor may have to wait as long.
//
// Time in which it used nothing (it waited for a scope, or the process was stopped) is not made up for: a program
// whose threads take all processors would lose one for as long. At most `most_credit` of it counts.
//
// Threads: one. Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::runtime_internal {

class processor_share {
  public:
    static constexpr double worth_a_sleep = 4e5; // of the time that passes, as the next
    static constexpr double most_credit = 5e5;

    // `cpu`: time that the thread has used; `now`: of a clock that does not go back.
    void begin(std::uint64_t cpu, std::uint64_t now) noexcept {
        began_ = last_cpu_ = cpu;
        last_now_ = now;
        owed_ = 0;
    }
    // `share`: above 0, of one processor. What is returned has passed when it is at most `share`. Below 0: credit.
    double owed(std::uint64_t cpu, std::uint64_t now, double share) noexcept {
        owed_ +=
            static_cast<double>(cpu - last_cpu_) / share - static_cast<double>(now - last_now_);
        owed_ = std::max(owed_, -most_credit);
        last_cpu_ = cpu;
        last_now_ = now;
        return owed_;
    }
    // Since begin().
    std::uint64_t used(std::uint64_t cpu) const noexcept { return cpu - began_; }

  private:
    std::uint64_t began_ = 0, last_cpu_ = 0, last_now_ = 0;
    double owed_ = 0;
};

} // namespace obase::runtime_internal
