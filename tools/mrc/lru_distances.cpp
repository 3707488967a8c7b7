// SPDX-License-Identifier: MIT
#include "tools/mrc/lru_distances.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace obase::tools {
namespace {

// Time stamps between two renumberings, per unit: each costs 8 bytes, and a renumbering n log n.
constexpr std::size_t stamps_per_unit = 2;
constexpr std::size_t least_stamps = 1024;

} // namespace

lru_distances::lru_distances(std::vector<std::uint32_t> bytes_of_unit)
    : bytes_(std::move(bytes_of_unit)), last_(bytes_.size(), never),
      tree_(std::max(least_stamps, stamps_per_unit * bytes_.size()) + 1), hits_(buckets + 1) {
    const auto total = std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
    bucket_bytes_ = std::max<std::uint64_t>(1, (total + buckets - 1) / buckets);
}

void lru_distances::add(std::size_t time, std::int64_t bytes) noexcept {
    for (; time < tree_.size(); time += time & (~time + 1))
        tree_[time] += static_cast<std::uint64_t>(bytes);
}

std::uint64_t lru_distances::bytes_until(std::size_t time) const noexcept {
    std::uint64_t sum = 0;
    for (; time != 0; time &= time - 1) sum += tree_[time];
    return sum;
}

// The units' last accesses become 1, 2, ... in their order.
void lru_distances::renumber() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t unit = 0; unit < last_.size(); ++unit)
        if (last_[unit] != never) order.push_back(unit);
    std::sort(order.begin(), order.end(),
              [this](std::uint32_t a, std::uint32_t b) { return last_[a] < last_[b]; });
    std::fill(tree_.begin(), tree_.end(), 0);
    now_ = 0;
    for (const std::uint32_t unit : order) {
        last_[unit] = ++now_;
        add(now_, bytes_[unit]);
    }
}

std::uint64_t lru_distances::touch(std::uint32_t unit) {
    if (now_ + 1 == tree_.size()) renumber();
    std::uint64_t distance = 0;
    if (last_[unit] == never) {
        resident_ += bytes_[unit];
    } else {
        distance = resident_ - bytes_until(last_[unit] - 1);
        add(last_[unit], -static_cast<std::int64_t>(bytes_[unit]));
    }
    last_[unit] = ++now_;
    add(now_, bytes_[unit]);
    return distance;
}

void lru_distances::access(std::span<const std::uint32_t> units) {
    std::uint64_t farthest = 0;
    bool first = false;
    for (const std::uint32_t unit : units) {
        const std::uint64_t distance = touch(unit);
        first = first || distance == 0;
        farthest = std::max(farthest, distance);
    }
    if (!counting_) return;
    ++counted_;
    if (!first) ++hits_[(farthest + bucket_bytes_ - 1) / bucket_bytes_];
}

miss_ratio_curve lru_distances::curve() const {
    std::vector<miss_ratio_curve::point> points;
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < hits_.size(); ++i) {
        if (hits_[i] == 0) continue;
        hits += hits_[i];
        points.push_back({static_cast<double>(i * bucket_bytes_),
                          static_cast<double>(hits) / static_cast<double>(counted_)});
    }
    return miss_ratio_curve(std::move(points));
}

} // namespace obase::tools
