// SPDX-License-Identifier: MIT
//
// scattered_ids: ranks of any distribution, and which record has which rank is scattered over all of them.
//
//     const workload::scattered_ids zipf(workload::power_law_ids(records, .99), records);
//     const std::uint64_t record = zipf.next(random);
//
// YCSB's own scatter is another load: it draws one of 10^10 ranks and takes the rank's hash modulo the records
// (scrambled_zipfian, distribution.hpp), so what falls beyond the first `records` ranks is spread evenly. Of 200,000
// records that is two fifths of all requests, and the fourth of the records that is asked for most has .60 of them instead of .89.
//
// Threads: any, each with its own random_stream.
#pragma once

#include "tools/workload/permutation.hpp"
#include "tools/workload/random.hpp"

#include <cstdint>
#include <utility>

namespace workload {

template <class Ranks>
class scattered_ids {
  public:
    // `ranks` draws numbers below `records`. Throws std::invalid_argument for no records.
    scattered_ids(Ranks ranks, std::uint64_t records, std::uint64_t seed = 1)
        : ranks_(std::move(ranks)), scatter_(records, seed) {}

    std::uint64_t next(random_stream& random) const { return record_of_rank(ranks_.next(random)); }
    std::uint64_t record_of_rank(std::uint64_t rank) const { return scatter_.at(rank); }

  private:
    Ranks ranks_;
    permutation scatter_;
};

} // namespace workload
