// SPDX-License-Identifier: MIT
//
// Counts of durations in buckets of at most 1/32 relative width, from 1 ns to 146 years; merging is
// adding. Debian 12 has no HdrHistogram; this is the part of it that is needed here.
//
// Threads: one writes, others read only afterwards.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace obase::tools {

class latency_histogram {
  public:
    void add(std::uint64_t ns) noexcept {
        ++counts_[bucket_of(ns)];
        ++total_;
    }
    void merge(const latency_histogram& other) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        total_ += other.total_;
    }
    void clear() noexcept { *this = {}; }
    std::uint64_t count() const noexcept { return total_; }

    // The middle of the bucket below which `share` of the durations lie; 0 when there are none.
    double quantile_ns(double share) const noexcept {
        const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen > wanted || (seen == total_ && seen != 0)) return middle_of(i);
        }
        return 0;
    }

  private:
    static constexpr unsigned sub_bits = 5; // buckets per power of two, as a power of two
    static constexpr std::size_t buckets = (64 - sub_bits + 1) << sub_bits;

    static std::size_t bucket_of(std::uint64_t ns) noexcept {
        const auto magnitude = static_cast<unsigned>(std::bit_width(ns | ((1U << sub_bits) - 1)));
        const unsigned shift = magnitude - sub_bits;
        if (shift == 0) return ns;
        return (std::size_t{shift} << sub_bits) + (ns >> (shift - 1)) - (1U << sub_bits);
    }
    static double middle_of(std::size_t bucket) noexcept {
        const std::size_t row = bucket >> sub_bits;
        if (row == 0) return static_cast<double>(bucket);
        const double width = static_cast<double>(std::uint64_t{1} << (row - 1));
        return (static_cast<double>((bucket & ((1U << sub_bits) - 1)) + (1U << sub_bits)) + 0.5) *
               width;
    }

    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t total_ = 0;
};

} // namespace obase::tools
