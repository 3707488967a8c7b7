// SPDX-License-Identifier: MIT
//
// mass_deletion: a share of the records is deleted from one operation on, anywhere among all, while
// the load goes on with the others.
//
//     workload::mass_deletion gone({.records = n, .share = .7, .begin = k, .over = 2 * n});
//     if (gone.erases(k)) erase(gone.victim(k));
//     else do position = draw(); while (gone.gone(position, k));
//
// The victims are evenly spread over `over` operations. A function of the number of the operation,
// as churn is (churn.hpp).
//
// Threads: not changed once made. Cost: 10 to 30 ns, of gone() before the beginning 1.
#pragma once

#include "tools/workload/permutation.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace workload {

struct mass_deletion_options {
    std::uint64_t records = 0;
    double share = 0;
    std::uint64_t begin = 0; // operation
    std::uint64_t over = 0;  // operations; 0: as many as there are victims
    std::uint64_t seed = 1;
};

class mass_deletion {
  public:
    // Throws std::invalid_argument for no records, a share outside [0, 1) or more victims than
    // operations to delete them.
    explicit mass_deletion(const mass_deletion_options& options)
        : begin_(options.begin), over_(options.over), order_(options.records, ~options.seed) {
        if (!(options.share >= 0 && options.share < 1))
            throw std::invalid_argument("a share of " + std::to_string(options.share) +
                                        " of the records is deleted: from 0 to below 1 is "
                                        "expected");
        victims_ = static_cast<std::uint64_t>(options.share * static_cast<double>(options.records));
        if (over_ == 0) over_ = victims_;
        if (victims_ > over_)
            throw std::invalid_argument("the deletion of " + std::to_string(victims_) +
                                        " records within " + std::to_string(over_) + " operations");
    }

    // How many records operations before this one have deleted.
    std::uint64_t erased_before(std::uint64_t operation) const noexcept {
        if (operation <= begin_) return 0;
        const std::uint64_t at = operation - begin_;
        if (at >= over_) return victims_;
        return static_cast<std::uint64_t>(static_cast<wide_uint>(at) * victims_ / over_);
    }
    bool erases(std::uint64_t operation) const noexcept {
        return erased_before(operation + 1) != erased_before(operation);
    }
    // Of an operation that erases.
    std::uint64_t victim(std::uint64_t operation) const noexcept {
        return order_.at(erased_before(operation));
    }
    bool gone(std::uint64_t record, std::uint64_t operation) const noexcept {
        const std::uint64_t erased = erased_before(operation);
        return erased != 0 && order_.index_of(record) < erased;
    }
    std::uint64_t victims() const noexcept { return victims_; }

  private:
    std::uint64_t begin_;
    std::uint64_t over_;
    std::uint64_t victims_ = 0;
    permutation order_;
};

} // namespace workload
