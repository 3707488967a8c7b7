// SPDX-License-Identifier: MIT
//
// churn: records that are replaced while a load runs. A load of n records has n positions, each with
// a popularity; at a position lies a record for a while, then it is erased and a new one, with a new
// id and key, is inserted in its place. `share` of the operations replace, the oldest record first.
//
//     workload::churn churn(records, .01);
//     if (churn.replaces(k)) { erase(churn.oldest(k)); insert(churn.newest(k)); }
//     else read(churn.id_at(position, k));
//
// Ids of the first records are 0 .. n - 1, later ones follow. All of it is a function of the number
// of the operation: clients need not agree on anything. One that is behind the others may ask for a
// record that is gone, one that is ahead for a record that is not yet there.
//
// Threads: not changed once made. Cost: a few ns.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace workload {

class churn {
  public:
    // Throws std::invalid_argument for no records or a share outside [0, 1].
    churn(std::uint64_t records, double share) : records_(records), share_(share) {
        if (records == 0) throw std::invalid_argument("churn of 0 records");
        if (!(share >= 0 && share <= 1))
            throw std::invalid_argument("a share of " + std::to_string(share) +
                                        " of the operations replaces a record: between 0 and 1 "
                                        "is expected");
    }

    // How many records operations before this one have replaced.
    std::uint64_t replaced_before(std::uint64_t operation) const noexcept {
        return static_cast<std::uint64_t>(static_cast<double>(operation) * share_);
    }
    bool replaces(std::uint64_t operation) const noexcept {
        return replaced_before(operation + 1) != replaced_before(operation);
    }
    // Of an operation that replaces.
    std::uint64_t oldest(std::uint64_t operation) const noexcept {
        return replaced_before(operation);
    }
    std::uint64_t newest(std::uint64_t operation) const noexcept {
        return replaced_before(operation) + records_;
    }
    // Where the oldest record lies.
    std::uint64_t position_of(std::uint64_t id) const noexcept { return id % records_; }

    std::uint64_t id_at(std::uint64_t position, std::uint64_t operation) const noexcept {
        const std::uint64_t replaced = replaced_before(operation);
        const std::uint64_t round = replaced / records_;
        return (round + (position < replaced % records_ ? 1 : 0)) * records_ + position;
    }

  private:
    std::uint64_t records_;
    double share_;
};

} // namespace workload
