// SPDX-License-Identifier: MIT
#include "tools/workload/popularity_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace workload {

popularity_buckets::popularity_buckets(const std::vector<std::uint64_t>& keys,
                                       const std::vector<double>& weights, std::uint64_t records)
    : records_(records) {
    if (records == 0) throw std::invalid_argument("a popularity of 0 records");
    if (keys.empty() || keys.size() != weights.size())
        throw std::invalid_argument("a popularity of " + std::to_string(keys.size()) +
                                    " buckets with " + std::to_string(weights.size()) +
                                    " weights: as many of both are expected, at least one");
    double all_keys = 0, all_weights = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (!(weights[i] >= 0 && std::isfinite(weights[i])))
            throw std::invalid_argument("bucket " + std::to_string(i + 1) + " has the weight " +
                                        std::to_string(weights[i]));
        all_keys += static_cast<double>(keys[i]);
        all_weights += weights[i];
    }
    if (!(all_keys > 0 && all_weights > 0))
        throw std::invalid_argument("a popularity whose buckets are all empty");
    double key = 0, weight = 0;
    for (std::size_t i = 0; i <= keys.size(); ++i) {
        begin_.push_back(key / all_keys * static_cast<double>(records));
        share_.push_back(weight / all_weights);
        if (i == keys.size()) break;
        key += static_cast<double>(keys[i]);
        weight += weights[i];
    }
}

std::uint64_t popularity_buckets::next(random_stream& random) const noexcept {
    const double draw = random.unit();
    // The first that begins above: the bucket before it has the draw, and a weight that is not 0.
    const auto above = std::upper_bound(share_.begin() + 1, share_.end() - 1, draw);
    const auto bucket = static_cast<std::size_t>(above - share_.begin()) - 1;
    const double part = (draw - share_[bucket]) / (share_[bucket + 1] - share_[bucket]);
    const double rank = begin_[bucket] + part * (begin_[bucket + 1] - begin_[bucket]);
    return std::min(static_cast<std::uint64_t>(std::max(rank, 0.)), records_ - 1);
}

double popularity_buckets::share_below(std::uint64_t rank) const noexcept {
    const double at = std::min(static_cast<double>(rank), begin_.back());
    const auto above = std::upper_bound(begin_.begin(), begin_.end(), at);
    if (above == begin_.end()) return 1;
    if (above == begin_.begin()) return 0;
    const auto bucket = static_cast<std::size_t>(above - begin_.begin()) - 1;
    const double part = (at - begin_[bucket]) / (begin_[bucket + 1] - begin_[bucket]);
    return share_[bucket] + part * (share_[bucket + 1] - share_[bucket]);
}

} // namespace workload
