// SPDX-License-Identifier: MIT
//
// mixgraph: the model of Facebook's UDB that RocksDB's db_bench sends with --benchmarks=mixgraph, by
// its formulas. One uniform number n below the number of records decides all of a request:
//
//   key range     range r of R has the weight a e^(b r) + c e^(d r), r = 1 .. R; weights are made
//                 whole numbers by dividing by the least, the ranges are shuffled, and n modulo the
//                 sum of the weights falls into one
//   key           u = (n mod K) / K, K keys in a range; the key's offset in the range is the first
//                 number of mt19937_64 seeded with ceil((u / a)^(1 / b)), modulo K
//   operation     n modulo 1000: get, put, seek by their shares
//   value size    generalized Pareto, inverted at n / records: theta + sigma (u^-k - 1) / k
//   scan length   likewise, modulo the longest scan
//
// The defaults are those of the paper's "prefix_dist". Keys are to be in the order of their numbers,
// so that what is hot lies together in an ordered index, as it did in UDB. The rate there is a sine:
// pace.hpp has it.
//
//     const workload::mixgraph model({.records = 5'000'000});
//     const workload::mixgraph_request r = model.next(random);
//
// Threads: not changed once made. Cost: 0.5 us, most of it the seeding.
// Source: Z. Cao et al., Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at
// Facebook, FAST 2020, section 6; RocksDB 7.8, tools/db_bench_tool.cc (the formulas, not the text).
#pragma once

#include "tools/workload/operation.hpp"
#include "tools/workload/random.hpp"

#include <cstdint>
#include <vector>

namespace workload {

struct mixgraph_options {
    std::uint64_t records = 0;
    double key_a = .002312, key_b = .3467; // one of them 0: all keys of a range alike
    double range_a = 14.18, range_b = -2.917, range_c = .0164, range_d = -.08082;
    std::uint32_t ranges = 30;
    double get = .85, put = .14, seek = .01;
    double value_theta = 0, value_k = .2615, value_sigma = 25.45;
    double scan_theta = 0, scan_k = 2.517, scan_sigma = 14.236;
    std::uint32_t longest_scan = 10'000;
};

struct mixgraph_request {
    operation what; // read, update or scan
    std::uint64_t key;
    std::uint32_t value_size;  // of an update, else 0
    std::uint32_t scan_length; // of a scan, else 0
};

// The first number that std::mt19937_64 draws after this seed, without the other 311 words.
std::uint64_t first_of_mt19937_64(std::uint64_t seed) noexcept;

class mixgraph {
  public:
    static constexpr std::uint32_t least_value = 10;
    static constexpr std::uint32_t value_limit = 1 << 20;

    // Throws std::invalid_argument for fewer records than ranges, no ranges, shares that are
    // negative or all 0, weights of the ranges that are all 0, scans of length 0.
    explicit mixgraph(const mixgraph_options& options);

    mixgraph_request next(random_stream& random) const noexcept {
        return of_number(random.below(options_.records));
    }
    // What db_bench does with the number n, below the number of records.
    mixgraph_request of_number(std::uint64_t n) const noexcept;

    std::uint64_t keys_per_range() const noexcept { return range_size_; }
    // The share of the requests that goes to a range, in the order of the keys.
    double share_of_range(std::uint32_t range) const noexcept;

  private:
    mixgraph_options options_;
    std::uint64_t range_size_;
    std::vector<std::uint64_t> range_begin_; // on the scale of the weights; and the sum at the end
    std::uint64_t below_get_, below_put_, below_seek_; // n modulo below_seek_
};

} // namespace workload
