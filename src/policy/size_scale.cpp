// SPDX-License-Identifier: MIT
#include "policy/size_scale.hpp"

#include <cmath>

namespace obase::policy {
namespace {

constexpr double octave = 16;

int log_of(double bytes) noexcept {
    return static_cast<int>(std::lround(octave * std::log2(bytes)));
}

} // namespace

size_scale::size_scale() noexcept {
    for (std::size_t i = 0; i < log_.size(); ++i)
        log_[i] =
            static_cast<std::int16_t>(log_of(static_cast<double>(std::max<std::size_t>(i, 1) * 8)));
}

void size_scale::begin_window() noexcept {
    if (next_least_ > next_most_) return; // no size was asked for
    least_ = least_ == -unknown ? next_least_ : std::min(least_ + 1, next_least_);
    most_ = most_ == unknown ? next_most_ : std::max(most_ - 1, next_most_);
    next_least_ = unknown;
    next_most_ = -unknown;
}

void size_scale::end_window(std::uint64_t live_bytes, std::uint64_t live_objects) noexcept {
    if (live_objects == 0 || live_bytes == 0) return;
    const double mean = std::min(
        static_cast<double>(live_bytes) / static_cast<double>(live_objects), double{page_bytes});
    if (mean_bytes_ != 0 && std::abs(std::log2(mean / mean_bytes_)) < 1) return;
    mean_bytes_ = mean;
    log_mean_ = log_of(mean);
    // What was noted goes by another mean.
    least_ = -unknown;
    most_ = unknown;
    next_least_ = unknown;
    next_most_ = -unknown;
}

} // namespace obase::policy
