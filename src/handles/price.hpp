// SPDX-License-Identifier: MIT
//
// translation_price: what a slow translation costs, as measured. One of many is timed (homes.hpp): some nanoseconds where
// the words are in the caches, and a hundred and more where they are not.
//
// Threads: note() by any, counted about, without a read-modify-write; the rest by the collector.
#pragma once

#include "os/platform.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <cstdint>

namespace obase::handles {

class translation_price {
  public:
    static constexpr double least_ns = 6;             // nothing is far away
    static constexpr double call_ns = 4;              // saved registers, and the way here
    static constexpr std::uint64_t longest_ns = 2000; // beyond, the thread was not running

    void note(std::uint64_t ns) noexcept {
        if (ns > longest_ns) return;
        sum_.store_relaxed(sum_.load_relaxed() + ns);
        count_.store_relaxed(count_.load_relaxed() + 1);
    }

    // Smoothed over some hundred samples.
    double ns() noexcept {
        if (clock_ns_ == 0) clock_ns_ = clock_cost();
        const std::uint64_t sum = sum_.load_relaxed(), count = count_.load_relaxed();
        const double samples = static_cast<double>(count - counted_);
        // Halves of two updates that met: the next time.
        if (count > counted_ && sum >= summed_) {
            const double mean = static_cast<double>(sum - summed_) / samples;
            const double found =
                std::clamp(mean - clock_ns_ + call_ns, least_ns, static_cast<double>(longest_ns));
            const double weight = samples / (samples + smoothing);
            ns_ += weight * (found - ns_);
        }
        summed_ = sum;
        counted_ = count;
        return ns_;
    }

  private:
    static constexpr double smoothing = 200; // samples

    static double clock_cost() noexcept {
        std::uint64_t least = longest_ns;
        for (int i = 0; i < 64; ++i) {
            const std::uint64_t begun = os::monotonic_ns();
            least = std::min(least, os::monotonic_ns() - begun);
        }
        return static_cast<double>(std::max<std::uint64_t>(least, 1));
    }

    os::native_platform::atomic<std::uint64_t> sum_, count_;
    std::uint64_t summed_ = 0, counted_ = 0;
    double clock_ns_ = 0;
    double ns_ = least_ns;
};

} // namespace obase::handles
