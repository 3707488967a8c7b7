// SPDX-License-Identifier: MIT
//
// Which record a request asks for: the distributions of YCSB, each drawing from a random_stream, so
// the same seed gives the same requests.
//
//   uniform_ids          every record alike
//   zipfian_ids          record 0 most often, then 1, ...: rank r in proportion to 1 / (r+1)^theta
//   scrambled_zipfian    YCSB's "zipfian": a rank out of 10^10, hashed to a record. The popular
//                        records lie anywhere, and about half of the requests are spread over all
//                        records, since most ranks are beyond the popular ones
//   latest_ids           zipfian_ids backwards from the newest record
//   hotspot_ids          a share of the requests (.8) goes to a share of the records (.2, those of
//                        the lowest ids), the rest to the others; both uniform
//
// (`loop`, the fifth choice of the benchmarks, is loop_sequence.hpp.)
//
// zipfian_ids is the method of Gray et al.: exact for ranks 0 and 1, and a continuous approximation
// beyond, which asks for single low ranks up to a few per cent too often or too seldom. It is kept
// because YCSB's results are made with it.
//
// Where this differs from YCSB's code (0.17), deliberately: latest_ids can draw record 0; when
// items are added, eta is computed for the new number of items; zeta(n) is an Euler-Maclaurin sum,
// equal to the long one to 12 digits, in microseconds instead of minutes.
//
//     workload::scrambled_zipfian ids(records);
//     workload::random_stream random(seed);
//     std::uint64_t id = ids.next(random);
//
// The method needs theta < 1.
//
// Threads: one object per thread (copies are cheap); none is changed by next().
// Cost (workload_bench): uniform 1 ns, hotspot 6, zipfian_ids and latest_ids 25, mostly std::pow,
// scrambled_zipfian 45.
// Source: J. Gray et al., Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994,
// section 4; B. Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, section 4.
#pragma once

#include "tools/workload/random.hpp"
#include "tools/workload/ycsb_hash.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace workload {

enum class distribution { uniform, zipfian, latest, hotspot, loop };

// "uniform", "zipfian", "latest", "hotspot", "loop"; nothing for any other text.
std::optional<distribution> distribution_named(std::string_view name) noexcept;
std::string_view name_of(distribution which) noexcept;

inline constexpr double ycsb_theta = .99;

// The sum of 1 / i^theta for i = 1 .. items, 0 < theta < 1.
double zeta(std::uint64_t items, double theta);

class uniform_ids {
  public:
    // items > 0
    explicit uniform_ids(std::uint64_t items) noexcept : items_(items) {}
    std::uint64_t next(random_stream& random) const noexcept { return random.below(items_); }

  private:
    std::uint64_t items_;
};

class hotspot_ids {
  public:
    // Throws std::invalid_argument for no items, or a fraction outside [0, 1]. The hot records are
    // the first data_fraction * items; at least one, and at least one is not, if both shares of the
    // requests are to have a target.
    explicit hotspot_ids(std::uint64_t items, double data_fraction = .2,
                         double operation_fraction = .8);

    std::uint64_t next(random_stream& random) const noexcept {
        return random.unit() < operation_fraction_
                   ? random.below(hot_)
                   : cold_begin_ + random.below(items_ - cold_begin_);
    }
    std::uint64_t hot_items() const noexcept { return hot_; }

  private:
    std::uint64_t items_;
    std::uint64_t hot_;
    std::uint64_t cold_begin_; // hot_, but 0 if no record is cold
    double operation_fraction_;
};

class zipfian_ids {
  public:
    // Throws std::invalid_argument for no items, or theta outside (0, 1).
    explicit zipfian_ids(std::uint64_t items, double theta = ycsb_theta);
    // For a zeta(items, theta) that is known, or that others have published.
    zipfian_ids(std::uint64_t items, double theta, double zeta_of_items);

    std::uint64_t next(random_stream& random) const noexcept {
        const double u = random.unit();
        const double at = u * zeta_;
        if (at < 1) return 0;
        if (at < first_two_) return 1;
        const double rank = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, alpha_);
        return std::min(static_cast<std::uint64_t>(rank), items_ - 1);
    }

    // From now on draws from `items` ranks. A few: two std::pow and one for each added rank. Fewer
    // than before: changes nothing, as in YCSB, where it means that another thread was faster.
    void grow(std::uint64_t items);

    std::uint64_t items() const noexcept { return items_; }
    double theta() const noexcept { return theta_; }
    double zeta_of_items() const noexcept { return zeta_; }
    // The probability that next() is below `rank`: of this method, not of the ideal distribution.
    double share_below(std::uint64_t rank) const noexcept;

  private:
    void set_eta() noexcept;

    std::uint64_t items_;
    double theta_;
    double alpha_;
    double first_two_; // zeta(2, theta)
    double zeta_;
    double eta_ = 0;
};

class scrambled_zipfian {
  public:
    static constexpr std::uint64_t ranks = 10'000'000'000;
    static constexpr double zeta_of_ranks = 26.46902820178302;

    // items > 0
    explicit scrambled_zipfian(std::uint64_t items)
        : items_(items), ranks_(ranks, ycsb_theta, zeta_of_ranks) {}
    std::uint64_t next(random_stream& random) const noexcept {
        return id_of_rank(ranks_.next(random));
    }
    std::uint64_t id_of_rank(std::uint64_t rank) const noexcept { return ycsb_hash(rank) % items_; }
    const zipfian_ids& rank_distribution() const noexcept { return ranks_; }

  private:
    std::uint64_t items_;
    zipfian_ids ranks_;
};

class latest_ids {
  public:
    // items > 0
    explicit latest_ids(std::uint64_t items) : zipfian_(items) {}
    // `items`: how many records there are now; ids are below it.
    std::uint64_t next(random_stream& random, std::uint64_t items) {
        if (items > zipfian_.items()) zipfian_.grow(items);
        // Fewer than when another record was last drawn: only if the caller says so.
        const std::uint64_t age = zipfian_.next(random);
        return age < items ? items - 1 - age : items - 1;
    }

  private:
    zipfian_ids zipfian_;
};

} // namespace workload
