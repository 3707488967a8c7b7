// SPDX-License-Identifier: MIT
#include "tools/workload/mixgraph.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace workload {
namespace {

constexpr double no_weight = 1e-16;

const mixgraph_options& checked(const mixgraph_options& o) {
    if (o.ranges == 0 || o.records < o.ranges)
        throw std::invalid_argument("mixgraph: " + std::to_string(o.records) + " records in " +
                                    std::to_string(o.ranges) +
                                    " key ranges; at least one range and one record in each is "
                                    "expected");
    if (!(o.get >= 0 && o.put >= 0 && o.seek >= 0 && std::isfinite(o.get + o.put + o.seek) &&
          o.get + o.put + o.seek > 0))
        throw std::invalid_argument("mixgraph: shares of get, put and seek of " +
                                    std::to_string(o.get) + ", " + std::to_string(o.put) + ", " +
                                    std::to_string(o.seek));
    if (o.longest_scan == 0) throw std::invalid_argument("mixgraph: scans of length 0");
    return o;
}

double inverse_pareto(double u, double theta, double k, double sigma) noexcept {
    return std::ceil(k == 0 ? theta - sigma * std::log(u)
                            : theta + sigma * (std::pow(u, -k) - 1) / k);
}

// For a number that may be beyond any integer, because u was 0.
std::uint64_t bounded(double number) noexcept {
    return static_cast<std::uint64_t>(std::clamp(number, 0., 0x1p62));
}

} // namespace

std::uint64_t first_of_mt19937_64(std::uint64_t seed) noexcept {
    constexpr std::uint64_t upper = ~std::uint64_t{0} << 31;
    constexpr unsigned middle = 156;
    std::uint64_t word = seed, second = 0;
    for (unsigned i = 1; i <= middle; ++i) {
        word = 6364136223846793005U * (word ^ word >> 62) + i;
        if (i == 1) second = word;
    }
    const std::uint64_t joined = (seed & upper) | (second & ~upper);
    std::uint64_t x = word ^ joined >> 1 ^ ((joined & 1) != 0 ? 0xb5026f5aa96619e9U : 0);
    x ^= x >> 29 & 0x5555555555555555U;
    x ^= x << 17 & 0x71d67fffeda60000U;
    x ^= x << 37 & 0xfff7eee000000000U;
    return x ^ x >> 43;
}

mixgraph::mixgraph(const mixgraph_options& options)
    : options_(checked(options)), range_size_(options.records / options.ranges) {
    const mixgraph_options& o = options_;
    std::vector<std::uint64_t> weights;
    double scale = 0;
    for (std::uint32_t r = o.ranges; r >= 1; --r) { // from the coldest
        double weight = o.range_a * std::exp(o.range_b * r) + o.range_c * std::exp(o.range_d * r);
        if (!(weight >= no_weight)) weight = 0;
        if (scale == 0 && weight > 0) scale = std::floor(1 / weight) + 1;
        weights.push_back(bounded(std::floor(scale * weight)));
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t weight : weights) sum += weight;
    if (sum == 0) throw std::invalid_argument("mixgraph: key ranges that are all of weight 0");
    std::mt19937_64 random(sum); // its seed: equal weights are always shuffled alike
    for (std::size_t i = 0; i < weights.size(); ++i)
        std::swap(weights[i], weights[random() % weights.size()]);
    range_begin_.push_back(0);
    for (const std::uint64_t weight : weights) range_begin_.push_back(range_begin_.back() + weight);

    const double all = o.get + o.put + o.seek;
    const auto thousandths = [all](double share) {
        return static_cast<std::uint64_t>(std::ceil(1000 * (share / all)));
    };
    below_get_ = thousandths(o.get);
    below_put_ = below_get_ + thousandths(o.put);
    below_seek_ = below_put_ + thousandths(o.seek);
}

double mixgraph::share_of_range(std::uint32_t range) const noexcept {
    return static_cast<double>(range_begin_[range + 1] - range_begin_[range]) /
           static_cast<double>(range_begin_.back());
}

mixgraph_request mixgraph::of_number(std::uint64_t n) const noexcept {
    const mixgraph_options& o = options_;
    // The last range that begins at or before it; of several that begin there all but one are empty.
    const auto behind =
        std::upper_bound(range_begin_.begin(), range_begin_.end() - 1, n % range_begin_.back());
    const auto range = static_cast<std::uint64_t>(behind - range_begin_.begin()) - 1;
    std::uint64_t offset = n % range_size_;
    if (o.key_a != 0 && o.key_b != 0) {
        const double u = static_cast<double>(offset) / static_cast<double>(range_size_);
        offset = first_of_mt19937_64(bounded(std::ceil(std::pow(u / o.key_a, 1 / o.key_b)))) %
                 range_size_;
    }
    mixgraph_request request{operation::read, range_size_ * range + offset, 0, 0};
    const std::uint64_t kind = n % below_seek_;
    if (kind < below_get_) return request;
    const double u = static_cast<double>(n) / static_cast<double>(o.records);
    if (kind < below_put_) {
        request.what = operation::update;
        const std::uint64_t size =
            bounded(inverse_pareto(u, o.value_theta, o.value_k, o.value_sigma));
        request.value_size = static_cast<std::uint32_t>(size < least_value   ? least_value
                                                        : size > value_limit ? size % value_limit
                                                                             : size);
    } else {
        request.what = operation::scan;
        request.scan_length = static_cast<std::uint32_t>(
            bounded(inverse_pareto(u, o.scan_theta, o.scan_k, o.scan_sigma)) % o.longest_scan);
    }
    return request;
}

} // namespace workload
