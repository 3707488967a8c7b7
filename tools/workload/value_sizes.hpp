// SPDX-License-Identifier: MIT
//
// value_sizes: how large a record's value is, and how that changes while a load runs: over
// `change_over` operations more and more of the writes have sizes of the second distribution, until
// all have. A record has the same quantile in both.
//
//     workload::value_sizes sizes(size_distribution::fixed(100),
//                                 size_distribution::parsed("20480-65536"), 1'000'000);
//     sizes.first(id);            // when it is loaded
//     sizes.at(id, operation);    // when that operation writes it
//
// Threads: not changed once made. Cost: 5 to 20 ns.
#pragma once

#include "tools/workload/size_distribution.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace workload {

class value_sizes {
  public:
    explicit value_sizes(size_distribution first, std::uint64_t seed = 1)
        : first_(std::move(first)), seed_(seed) {}
    // Throws std::invalid_argument for a change over 0 operations.
    value_sizes(size_distribution first, size_distribution last, std::uint64_t change_over,
                std::uint64_t seed = 1)
        : first_(std::move(first)), last_(std::move(last)), change_over_(change_over), seed_(seed) {
        if (change_over == 0)
            throw std::invalid_argument("value sizes that change over 0 operations");
    }

    std::uint32_t first(std::uint64_t id) const noexcept {
        return first_.at(record_quantile(id, seed_));
    }
    std::uint32_t at(std::uint64_t id, std::uint64_t operation) const noexcept {
        const bool changed =
            last_ && record_quantile(operation, ~seed_) * static_cast<double>(change_over_) <
                         static_cast<double>(operation);
        return (changed ? *last_ : first_).at(record_quantile(id, seed_));
    }
    std::uint32_t largest() const noexcept {
        return std::max(first_.largest(), last_ ? last_->largest() : 0);
    }
    const size_distribution& first() const noexcept { return first_; }

  private:
    size_distribution first_;
    std::optional<size_distribution> last_;
    std::uint64_t change_over_ = 0;
    std::uint64_t seed_;
};

} // namespace workload
