// SPDX-License-Identifier: MIT
#include "tools/bench/spread.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

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

namespace {

// The two-sided 95 % quantile of Student's t.
double student_t95(std::size_t degrees) {
    constexpr double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    return degrees <= std::size(table) ? table[degrees - 1]
                                       : 1.96 + 2.5 / static_cast<double>(degrees);
}

} // namespace

spread geometric_spread_of(const std::vector<double>& ratios) {
    spread result;
    const std::size_t n = ratios.size();
    result.samples = n;
    if (n == 0) return result;
    result.median = result.low = result.high = geometric_mean(ratios);
    if (n == 1) return result;
    const double middle = std::log(result.median);
    double squares = 0;
    for (const double ratio : ratios) squares += std::pow(std::log(ratio) - middle, 2);
    const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
    const double reach = student_t95(n - 1) * error;
    result.low = std::exp(middle - reach);
    result.high = std::exp(middle + reach);
    result.trusted = n >= 6;
    return result;
}

double geometric_mean(const std::vector<double>& values) {
    if (values.empty()) return 0;
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

} // namespace obase::tools
