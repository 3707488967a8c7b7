// SPDX-License-Identifier: MIT
//
// What repeated measurements say: a median and an interval that holds the true median in 95 of 100
// cases, whatever the distribution is (order statistics of the sorted sample).
//
// With fewer than 6 samples the interval is the whole sample, covers less than 95 %, and `trusted`
// is false.
#pragma once

#include <cstddef>
#include <vector>

namespace obase::tools {

struct spread {
    double median = 0;
    double low = 0;
    double high = 0;
    std::size_t samples = 0;
    bool trusted = false; // the interval covers at least 95 %
};

// Of positive values, or of any: only their order counts. All zero for an empty sample.
spread spread_of(std::vector<double> values);

// The value that a quarter of the sample is below. For times of equal slices of work on a shared
// machine: closer to the undisturbed time than the median, and less a matter of luck than the
// minimum.
double lower_quartile(std::vector<double> values);

// Of ratios: the geometric mean, and an interval that holds the true one in 95 of 100 cases if the
// logarithms are about normally distributed (Student's t). For samples whose rare slow members
// belong to the result, as slices in which a collection ran do; a median would leave them out.
spread geometric_spread_of(const std::vector<double>& ratios);

// Of positive values. 0 for an empty sample.
double geometric_mean(const std::vector<double>& values);

} // namespace obase::tools
