// SPDX-License-Identifier: MIT
//
// popularity_buckets: a measured popularity, as CacheLib's cachebench publishes it (popDistFile):
// the ranks are divided into buckets, each of a number of keys and with a weight, the accesses to all
// of them; within a bucket all are alike. For another number of records than was measured the buckets
// are stretched or squeezed evenly.
//
//     const workload::popularity_buckets ranks({1, 1, 98}, {50, 30, 20}, records);
//     rank = ranks.next(random);
//
// Threads: not changed once made. Cost: a binary search in the weights, 30 ns for a thousand buckets.
// Source: B. Berg et al., The CacheLib Caching Engine, OSDI 2020, section 5 (what was measured).
#pragma once

#include "tools/workload/random.hpp"

#include <cstdint>
#include <vector>

namespace workload {

class popularity_buckets {
  public:
    // Throws std::invalid_argument for no records, lists that differ in length or are empty, a
    // weight that is negative or no number, sums of 0.
    popularity_buckets(const std::vector<std::uint64_t>& keys, const std::vector<double>& weights,
                       std::uint64_t records);

    std::uint64_t next(random_stream& random) const noexcept;
    // The share of the accesses that goes to ranks below.
    double share_below(std::uint64_t rank) const noexcept;
    std::uint64_t records() const noexcept { return records_; }

  private:
    std::uint64_t records_;
    // Of each bucket, and one behind the last: where it begins, in ranks of the records, and the
    // share of the accesses before it.
    std::vector<double> begin_;
    std::vector<double> share_;
};

} // namespace workload
