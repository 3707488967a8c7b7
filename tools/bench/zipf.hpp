// SPDX-License-Identifier: MIT
//
// A Zipf-distributed sequence of indices, drawn beforehand so that drawing costs a busy thread
// nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace obase::tools {

// `length` draws from [0, count) with exponent `theta`; which index is how popular is shuffled by
// `seed`.
inline std::vector<std::uint32_t> zipf_sequence(std::size_t count, std::size_t length, double theta,
                                                std::uint64_t seed) {
    std::vector<double> cumulative(count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        sum += 1 / std::pow(static_cast<double>(i + 1), theta);
        cumulative[i] = sum;
    }
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> who(count);
    std::iota(who.begin(), who.end(), 0U);
    std::shuffle(who.begin(), who.end(), random);
    std::uniform_real_distribution<double> uniform(0, sum);
    std::vector<std::uint32_t> sequence(length);
    for (std::uint32_t& index : sequence) {
        const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), uniform(random));
        index = who[std::min<std::size_t>(static_cast<std::size_t>(at - cumulative.begin()),
                                          count - 1)];
    }
    return sequence;
}

} // namespace obase::tools
