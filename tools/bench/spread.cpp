// SPDX-License-Identifier: MIT
#include "tools/bench/spread.hpp"

#include <algorithm>
#include <cmath>

namespace obase::tools {

spread spread_of(std::vector<double> values) {
    spread result;
    const std::size_t n = values.size();
    result.samples = n;
    if (n == 0) return result;
    std::sort(values.begin(), values.end());
    result.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    // The interval from the k-th smallest to the k-th largest value misses the median when fewer
    // than k of n fair coins show the same side: the largest k for which both sides together stay
    // at 5 %.
    double tail = 0;
    double probability = std::pow(0.5, static_cast<double>(n)); // of exactly i heads
    std::size_t k = 0;
    for (std::size_t i = 0; i < n / 2; ++i) {
        tail += probability;
        if (2 * tail > 0.05) break;
        k = i + 1;
        probability *= static_cast<double>(n - i) / static_cast<double>(i + 1);
    }
    result.trusted = k > 0;
    const std::size_t skip = k > 0 ? k - 1 : 0;
    result.low = values[skip];
    result.high = values[n - 1 - skip];
    return result;
}

double lower_quartile(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

double geometric_mean(const std::vector<double>& values) {
    if (values.empty()) return 0;
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

} // namespace obase::tools
