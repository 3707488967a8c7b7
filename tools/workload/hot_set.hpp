// SPDX-License-Identifier: MIT
//
// hot_set: which record each operation asks for where a share of the records, scattered over all
// ids, gets a share of the accesses; uniform within both parts. The set may move and change its
// size while the load runs:
//
//     shift     after every `shift_period` operations `shift_share` of the set is exchanged for
//               records that were not in it: those that came first go first
//     size      from `data_share` to `final_data_share`, evenly over `resize_over` operations
//
//     workload::hot_set hot({.records = n, .data_share = .2, .access_share = .99,
//                            .shift_period = 1'000'000, .shift_share = .5});
//     id = hot.next(operation, random);
//
// The set is a window over a permutation of the ids, and where the window lies depends on nothing
// but the number of the operation: clients need not agree, and a run can be repeated.
//
// Once the window has been around, records come back: after 1 / (data_share * shift_share) shifts.
//
// Threads: not changed once made. Cost: 15 to 40 ns.
#pragma once

#include "tools/workload/permutation.hpp"
#include "tools/workload/random.hpp"

#include <cstdint>
#include <optional>

namespace workload {

struct hot_set_options {
    std::uint64_t records = 0;
    double data_share = .2;
    double access_share = .8;
    std::uint64_t shift_period = 0; // operations; 0: no shift
    double shift_share = 1;         // of the set
    std::optional<double> final_data_share = std::nullopt;
    std::uint64_t resize_over = 0; // operations; with final_data_share
    std::uint64_t seed = 1;
};

class hot_set {
  public:
    // Throws std::invalid_argument, and says what was expected, for no records, a share outside
    // [0, 1], a final size without operations to reach it.
    explicit hot_set(const hot_set_options& options);

    std::uint64_t next(std::uint64_t operation, random_stream& random) const noexcept {
        const std::uint64_t hot = size_at(operation);
        const bool is_hot = hot == options_.records || random.unit() < options_.access_share;
        const std::uint64_t in_window =
            is_hot ? random.below(hot) : hot + random.below(options_.records - hot);
        return scatter_.at((offset_at(operation) + in_window) % options_.records);
    }

    // How many records are hot for that operation: at least one, and at least one is not, unless
    // the share is 1.
    std::uint64_t size_at(std::uint64_t operation) const noexcept;
    bool is_hot(std::uint64_t id, std::uint64_t operation) const noexcept {
        const std::uint64_t at = scatter_.index_of(id) + options_.records;
        return (at - offset_at(operation)) % options_.records < size_at(operation);
    }

  private:
    std::uint64_t size_of(double share) const noexcept;
    std::uint64_t offset_at(std::uint64_t operation) const noexcept {
        if (step_ == 0) return 0;
        return (operation / options_.shift_period) % options_.records * step_ % options_.records;
    }

    hot_set_options options_;
    permutation scatter_;
    std::uint64_t step_ = 0; // by which a shift moves the window
};

} // namespace workload
