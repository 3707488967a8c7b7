// SPDX-License-Identifier: MIT
#include "tools/mrc/popularity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace obase::tools {
namespace {

constexpr std::uint64_t between_streams = 0x9e3779b97f4a7c15U; // odd: no two seeds are equal

} // namespace

popularity::popularity(std::string name, ranks drawn, std::vector<double> by_rank,
                       std::uint64_t seed)
    : name_(std::move(name)), ranks_(std::move(drawn)), record_of_rank_(by_rank.size()),
      probability_(by_rank.size()), seed_(seed) {
    std::iota(record_of_rank_.begin(), record_of_rank_.end(), 0u);
    workload::random_stream random(seed);
    std::shuffle(record_of_rank_.begin(), record_of_rank_.end(), random);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
        probability_[record_of_rank_[rank]] = by_rank[rank];
}

popularity popularity::zipfian(std::uint64_t records, double theta, std::uint64_t seed) {
    const workload::zipfian_ids drawn(records, theta);
    std::vector<double> by_rank(records);
    for (std::uint64_t rank = 0; rank < records; ++rank)
        by_rank[rank] = drawn.share_below(rank + 1) - drawn.share_below(rank);
    return {fmt::format("zipf {}", theta), drawn, std::move(by_rank), seed};
}

popularity popularity::hotspot(std::uint64_t records, double data_share, double access_share,
                               std::uint64_t seed) {
    const workload::hotspot_ids drawn(records, data_share, access_share);
    const std::uint64_t hot = drawn.hot_items();
    std::vector<double> by_rank(records);
    for (std::uint64_t rank = 0; rank < records; ++rank)
        by_rank[rank] = hot == records ? 1 / static_cast<double>(records)
                        : rank < hot   ? access_share / static_cast<double>(hot)
                                       : (1 - access_share) / static_cast<double>(records - hot);
    return {fmt::format("hotspot {}/{}", data_share, access_share), drawn, std::move(by_rank),
            seed};
}

popularity popularity::uniform(std::uint64_t records, std::uint64_t seed) {
    return {"uniform", workload::uniform_ids(records),
            std::vector<double>(records, 1 / static_cast<double>(records)), seed};
}

popularity popularity::shifting_hotspot(std::uint64_t records, double data_share,
                                        double access_share, std::uint64_t shift_period,
                                        std::uint64_t seed) {
    auto hot = std::make_shared<const workload::hot_set>(
        workload::hot_set_options{.records = records,
                                  .data_share = data_share,
                                  .access_share = access_share,
                                  .shift_period = shift_period,
                                  .seed = seed});
    popularity made(fmt::format("shifting hotspot {}/{}", data_share, access_share),
                    workload::uniform_ids(records), std::vector<double>(records), seed);
    const auto many = static_cast<double>(hot->size_at(0));
    const auto others = static_cast<double>(records) - many;
    for (std::uint64_t record = 0; record < records; ++record)
        made.probability_[record] = others == 0              ? 1 / many
                                    : hot->is_hot(record, 0) ? access_share / many
                                                             : (1 - access_share) / others;
    made.record_of_rank_ = {};
    made.moving_ = std::move(hot);
    return made;
}

popularity popularity::buckets(std::uint64_t records, const std::vector<std::uint64_t>& keys,
                               const std::vector<double>& weights, std::uint64_t seed) {
    workload::popularity_buckets drawn(keys, weights, records);
    std::vector<double> by_rank(records);
    for (std::uint64_t rank = 0; rank < records; ++rank)
        by_rank[rank] = drawn.share_below(rank + 1) - drawn.share_below(rank);
    return {"buckets", std::move(drawn), std::move(by_rank), seed};
}

popularity popularity::loop(std::uint64_t records, double live_share, std::uint64_t seed) {
    auto sequence = std::make_shared<const workload::loop_sequence>(records, live_share, seed);
    popularity made(fmt::format("loop {}", live_share), workload::uniform_ids(records),
                    std::vector<double>(records), seed);
    for (const std::uint32_t record : sequence->ids())
        made.probability_[record] += 1 / static_cast<double>(sequence->period());
    made.record_of_rank_ = {};
    made.loop_ = std::move(sequence);
    return made;
}

popularity popularity::recorded(std::shared_ptr<const workload::trace> run) {
    popularity made("recorded", workload::uniform_ids(run->keys()),
                    std::vector<double>(run->keys()), 0);
    for (const workload::trace_entry& e : run->entries())
        made.probability_[e.key] += 1 / static_cast<double>(run->entries().size());
    made.run_ = std::move(run);
    return made;
}

popularity::stream popularity::stream_of(unsigned number, unsigned streams) const {
    std::uint64_t begin = 0;
    if (run_ != nullptr) begin = run_->entries().size() * number / std::max(streams, 1u);
    if (loop_ != nullptr) begin = loop_->start(number, std::max(streams, 1u));
    if (moving_ != nullptr) begin = number;
    return {*this, seed_ + between_streams * (number + 1), begin, std::max(streams, 1u)};
}

std::uint32_t popularity::stream::next() {
    if (of_->run_ != nullptr) {
        const auto& entries = of_->run_->entries();
        if (at_ >= entries.size()) at_ = 0;
        return entries[at_++].key;
    }
    if (of_->loop_ != nullptr) {
        const std::uint32_t record = of_->loop_->ids()[at_];
        at_ = of_->loop_->after(at_);
        return record;
    }
    if (of_->moving_ != nullptr) {
        const std::uint64_t operation = at_;
        at_ += step_;
        return static_cast<std::uint32_t>(of_->moving_->next(operation, random_));
    }
    const std::uint64_t rank =
        std::visit([this](const auto& drawn) { return drawn.next(random_); }, of_->ranks_);
    return of_->record_of_rank_[rank];
}

} // namespace obase::tools
