// SPDX-License-Identifier: MIT
#include "tools/workload/loop_sequence.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace workload {

loop_sequence::loop_sequence(std::uint64_t records, double live_share, std::uint64_t seed,
                             unsigned draws_per_record) {
    if (records == 0 || records >> 32 != 0)
        throw std::invalid_argument("a loop over " + std::to_string(records) +
                                    " records: 1 to 4294967295 are possible");
    if (!(live_share > 0 && live_share <= 1))
        throw std::invalid_argument("live share " + std::to_string(live_share) +
                                    ": above 0 and at most 1 is expected");
    // Rounding must not make 31 of 100 records 32: a product an ulp above the number is the number.
    const double exact = live_share * static_cast<double>(records);
    const std::uint64_t wanted = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(std::ceil(exact * (1 - 0x1p-50))), 1, records);

    const scrambled_zipfian distribution(records);
    random_stream random(seed);
    std::vector<bool> seen(records);
    std::uint64_t distinct = 0;
    const std::uint64_t most_draws = records * draws_per_record;
    while (distinct < wanted && ids_.size() < most_draws) {
        const std::uint64_t id = distribution.next(random);
        ids_.push_back(static_cast<std::uint32_t>(id));
        distinct += !seen[id];
        seen[id] = true;
    }

    if (distinct < wanted) {
        std::vector<std::uint32_t> rest;
        for (std::uint64_t id = 0; id < records; ++id)
            if (!seen[id]) rest.push_back(static_cast<std::uint32_t>(id));
        added_ = wanted - distinct;
        for (std::size_t i = 0; i < added_; ++i) {
            std::swap(rest[i], rest[i + random.below(rest.size() - i)]);
            ids_.push_back(rest[i]);
            seen[rest[i]] = true;
        }
        for (std::size_t i = ids_.size(); i > 1; --i) // std::shuffle differs between libraries
            std::swap(ids_[i - 1], ids_[random.below(i)]);
    }

    ids_.shrink_to_fit();
    live_.reserve(wanted);
    for (std::uint64_t id = 0; id < records; ++id)
        if (seen[id]) live_.push_back(static_cast<std::uint32_t>(id));
}

} // namespace workload
