// SPDX-License-Identifier: MIT
//
// power_law_ids: ranks 0 .. n - 1 in proportion to 1 / (rank + 1)^exponent, exactly, for any exponent
// from 0 on. zipfian_ids (distribution.hpp) is YCSB's approximation and needs one below 1; measured
// popularities of caches go to 2.7.
//
//     const workload::power_law_ids ranks(records, 1.49);
//     rank = ranks.next(random);
//
// Rejection-inversion: a draw from the continuous hat function, rounded, is taken unless it lies in
// the part of the hat that is above the step; more than three of four are.
//
// Threads: not changed once made. Cost: two powers, 60 ns.
// Source: W. Hörmann and G. Derflinger, Rejection-inversion to generate variates from monotone
// discrete distributions, ACM TOMACS 6(3), 1996.
#pragma once

#include "tools/workload/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace workload {

class power_law_ids {
  public:
    // Throws std::invalid_argument for no items, or an exponent outside [0, 20].
    power_law_ids(std::uint64_t items, double exponent) : items_(items), exponent_(exponent) {
        if (items == 0) throw std::invalid_argument("a power law over 0 records");
        if (!(exponent >= 0 && exponent <= 20))
            throw std::invalid_argument("a power law with exponent " + std::to_string(exponent) +
                                        ": 0 to 20 is expected");
        first_ = hat(1.5) - 1;
        last_ = hat(static_cast<double>(items) + .5);
        sure_ = 2 - hat_inverse(hat(2.5) - std::pow(2., -exponent));
    }

    std::uint64_t next(random_stream& random) const noexcept {
        for (;;) {
            const double area = last_ + random.unit() * (first_ - last_);
            const double x = hat_inverse(area);
            const double k = std::clamp(std::floor(x + .5), 1., static_cast<double>(items_));
            if (k - x <= sure_ || area >= hat(k + .5) - std::pow(k, -exponent_))
                return static_cast<std::uint64_t>(k) - 1;
        }
    }

    std::uint64_t items() const noexcept { return items_; }

  private:
    // The integral of x^-exponent from 1 to x. Near exponent 1 the quotient is a difference of
    // nearly equal numbers, so it is computed from what they differ by.
    double hat(double x) const noexcept {
        const double log_x = std::log(x);
        return over((1 - exponent_) * log_x) * log_x;
    }
    double hat_inverse(double area) const noexcept {
        const double t = std::max(area * (1 - exponent_), -1.);
        return std::exp(log_over(t) * area);
    }
    // (e^t - 1) / t, and log(1 + t) / t.
    static double over(double t) noexcept {
        return std::abs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2 * (1 + t / 3);
    }
    static double log_over(double t) noexcept {
        return std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t * (.5 - t / 3);
    }

    std::uint64_t items_;
    double exponent_;
    double first_ = 0;
    double last_ = 0;
    double sure_ = 0;
};

} // namespace workload
