// SPDX-License-Identifier: MIT
//
// read_pass: a pass that reads every record once, in the order of loading, in the middle of a load:
// a backup, or an analysis. From operation `begin` on, and again after every `period`, one operation
// in `one_in` belongs to it until all records are read; the others go on as before.
//
//     workload::read_pass pass({.records = n, .begin = 30 * rate});
//     if (auto record = pass.record_of(k)) read(*record);
//
// Threads: not changed once made. Cost: 1 ns; with a period a division more.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace workload {

struct read_pass_options {
    std::uint64_t records = 0;
    std::uint64_t begin = 0;  // operation
    std::uint64_t period = 0; // operations from one pass to the next; 0: there is one
    std::uint64_t one_in = 1;
};

class read_pass {
  public:
    // Throws std::invalid_argument for no records, one in 0, or a period that is shorter than a
    // pass.
    explicit read_pass(const read_pass_options& options) : options_(options) {
        if (options.records == 0 || options.one_in == 0)
            throw std::invalid_argument("a pass over " + std::to_string(options.records) +
                                        " records by one operation in " +
                                        std::to_string(options.one_in));
        length_ = options.records * options.one_in;
        if (options.period != 0 && options.period < length_)
            throw std::invalid_argument("a pass of " + std::to_string(length_) +
                                        " operations every " + std::to_string(options.period));
    }

    // What that operation reads, if it belongs to the pass.
    std::optional<std::uint64_t> record_of(std::uint64_t operation) const noexcept {
        if (operation < options_.begin) return std::nullopt;
        std::uint64_t at = operation - options_.begin;
        if (options_.period != 0) at %= options_.period;
        if (at >= length_ || at % options_.one_in != 0) return std::nullopt;
        return at / options_.one_in;
    }

  private:
    read_pass_options options_;
    std::uint64_t length_;
};

} // namespace workload
