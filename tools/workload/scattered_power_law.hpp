// SPDX-License-Identifier: MIT
//
// scattered_power_law: records of which the r-th most popular is asked for in proportion to r^-exponent, and which is
// how popular is scattered over all of them.
//
//     const workload::scattered_power_law zipf(records, .99);
//     const std::uint64_t record = zipf.next(random);
//
// YCSB's own scatter is another load: it draws one of 10^10 ranks and takes the rank's hash modulo the records
// (scrambled_zipfian, distribution.hpp), so what falls beyond the first `records` ranks is spread evenly. Of 200,000
// records that is two fifths of all requests, and the fourth of the records that is asked for most has .60 of them instead of .89.
//
// Threads: any, each with its own random_stream.
#pragma once

#include "tools/workload/permutation.hpp"
#include "tools/workload/power_law.hpp"

#include <cstdint>

namespace workload {

class scattered_power_law {
  public:
    // Throws std::invalid_argument for no records, or an exponent outside [0, 20].
    scattered_power_law(std::uint64_t records, double exponent, std::uint64_t seed = 1)
        : ranks_(records, exponent), scatter_(records, seed) {}

    std::uint64_t next(random_stream& random) const { return scatter_.at(ranks_.next(random)); }
    std::uint64_t record_of_rank(std::uint64_t rank) const { return scatter_.at(rank); }

  private:
    power_law_ids ranks_;
    permutation scatter_;
};

} // namespace workload
