// SPDX-License-Identifier: MIT
//
// size_distribution: sizes of values, or of keys, as the quantile function of their distribution, so
// that a record whose quantile is fixed keeps its size whenever it is asked for.
//
//     const auto sizes = workload::size_distribution::parsed("100*.9/20480-65536*.1");
//     bytes = sizes.at(workload::record_quantile(id, seed));
//
//   text                     sizes
//   1024                     one
//   100-30000                uniform from the first to the second
//   100*9/20480-65536*1      parts with weights, each a size or a uniform range
//   pareto:THETA/K/SIGMA     generalized Pareto: theta + sigma (u^-k - 1) / k, rounded up, at most
//                            1 MiB; as db_bench's mixgraph has it
//
// Threads: not changed once made. Cost: a binary search over the parts; Pareto: a power.
#pragma once

#include "tools/workload/random.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace workload {

// A number in [0, 1) that belongs to the record.
inline double record_quantile(std::uint64_t id, std::uint64_t seed) noexcept {
    return static_cast<double>(mix64(mix64(id + 0x9e3779b97f4a7c15U) ^ seed) >> 11) * 0x1p-53;
}

class size_distribution {
  public:
    struct part {
        std::uint64_t low, high; // both included
        double weight;
    };
    static constexpr std::uint64_t largest_possible = std::uint64_t{1} << 30;

    // Throws std::invalid_argument for no parts, one that begins behind its end or beyond
    // largest_possible, weights that are negative or sum up to 0.
    explicit size_distribution(const std::vector<part>& parts);
    static size_distribution fixed(std::uint64_t size) {
        return size_distribution(std::vector<part>{{size, size, 1}});
    }
    // Throws std::invalid_argument for theta < 0, sigma <= 0, or what is no number.
    static size_distribution pareto(double theta, double k, double sigma,
                                    std::uint64_t limit = std::uint64_t{1} << 20);
    // From the text above. Throws std::invalid_argument, which names the text and what was expected.
    static size_distribution parsed(std::string_view text);

    // The size at a quantile in [0, 1).
    std::uint32_t at(double quantile) const noexcept;
    std::uint32_t largest() const noexcept { return largest_; }
    double mean() const noexcept; // of Pareto: by a sum over the quantiles

  private:
    size_distribution() = default;

    struct bound {
        double before; // share of the parts before
        double low, width;
    };
    std::vector<bound> parts_; // empty: Pareto
    double theta_ = 0, k_ = 0, sigma_ = 0;
    std::uint32_t largest_ = 0;
};

} // namespace workload
