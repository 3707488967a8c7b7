// SPDX-License-Identifier: MIT
//
// popularity: which record each access of a measurement asks for, and how often each record is asked
// for in the long run, exactly.
//
//     const auto asked = popularity::zipfian(1'000'000, .99, seed);
//     asked.probability(7); // of record 7, per access
//     auto stream = asked.stream_of(thread, threads);
//     stream.next();        // a record
//
// Records are independent of ranks: the popular ones lie anywhere in the order of loading.
// Threads: not changed once made; a stream belongs to one thread.
#pragma once

#include "tools/workload/distribution.hpp"
#include "tools/workload/hot_set.hpp"
#include "tools/workload/loop_sequence.hpp"
#include "tools/workload/popularity_buckets.hpp"
#include "tools/workload/random.hpp"
#include "tools/workload/trace.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace obase::tools {

class popularity {
  public:
    // Rank r in proportion to 1 / (r + 1)^theta, 0 < theta < 1. Records: 1 to 2^32 - 1 for all.
    static popularity zipfian(std::uint64_t records, double theta, std::uint64_t seed);
    // A share of the accesses to a share of the records, uniform in both parts.
    static popularity hotspot(std::uint64_t records, double data_share, double access_share,
                              std::uint64_t seed);
    // The same with a hot set that is exchanged for another one after every `shift_period` operations of
    // all streams (workload/hot_set.hpp). probability() is that of the beginning.
    static popularity shifting_hotspot(std::uint64_t records, double data_share,
                                       double access_share, std::uint64_t shift_period,
                                       std::uint64_t seed);
    // A measured popularity (workload/popularity_buckets.hpp).
    static popularity buckets(std::uint64_t records, const std::vector<std::uint64_t>& keys,
                              const std::vector<double>& weights, std::uint64_t seed);
    static popularity uniform(std::uint64_t records, std::uint64_t seed);
    // workload::loop_sequence: a fixed sequence again and again, in which `live_share` of the records
    // occur.
    static popularity loop(std::uint64_t records, double live_share, std::uint64_t seed);
    // The accesses of a recorded run, again and again.
    static popularity recorded(std::shared_ptr<const workload::trace> run);

    const std::string& name() const noexcept { return name_; }
    std::uint64_t records() const noexcept { return probability_.size(); }
    double probability(std::uint64_t record) const noexcept { return probability_[record]; }
    // Frees what only probability() and records() need, which may not be called any more.
    void forget_probabilities() {
        probability_.clear();
        probability_.shrink_to_fit();
    }

    class stream {
      public:
        std::uint32_t next();

      private:
        friend class popularity;
        stream(const popularity& of, std::uint64_t seed, std::uint64_t at, std::uint64_t step)
            : of_(&of), random_(seed), at_(at), step_(step) {}
        const popularity* of_;
        workload::random_stream random_;
        std::uint64_t at_;   // in a recorded run, or a loop; the operation, where a hot set moves
        std::uint64_t step_; // to the stream's next operation
    };
    // Streams of different numbers are independent. Of a recorded run, number n of `streams` begins
    // at the n-th part of it, and so of a loop.
    stream stream_of(unsigned number, unsigned streams) const;

  private:
    using ranks = std::variant<workload::uniform_ids, workload::zipfian_ids, workload::hotspot_ids,
                               workload::popularity_buckets>;

    popularity(std::string name, ranks drawn, std::vector<double> by_rank, std::uint64_t seed);

    std::string name_;
    ranks ranks_;
    std::vector<std::uint32_t> record_of_rank_;
    std::vector<double> probability_; // by record
    std::shared_ptr<const workload::trace> run_;
    std::shared_ptr<const workload::loop_sequence> loop_;
    std::shared_ptr<const workload::hot_set> moving_;
    std::uint64_t seed_ = 0;
};

// Why settings that have load, theta, hot_data and hot_accesses do not say a popularity; "" if they do.
template <class Settings>
std::string why_no_popularity(const Settings& s) {
    const auto is_share = [](double x) { return x >= 0 && x <= 1; };
    if (s.load == "zipf" && !(s.theta > 0 && s.theta < 1))
        return fmt::format("--theta {}: more than 0 and less than 1", s.theta);
    if (!is_share(s.hot_data)) return fmt::format("--hot-data {}: from 0 to 1", s.hot_data);
    if (!is_share(s.hot_accesses))
        return fmt::format("--hot-accesses {}: from 0 to 1", s.hot_accesses);
    return "";
}

} // namespace obase::tools
