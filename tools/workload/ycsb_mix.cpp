// SPDX-License-Identifier: MIT
#include "tools/workload/ycsb_mix.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace workload {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

// In the order of the enumeration.
std::array<double, operation_count> shares_of(const operation_mix& mix) noexcept {
    std::array<double, operation_count> shares{};
    const auto set = [&](operation what, double share) {
        shares[static_cast<std::size_t>(what)] = share;
    };
    set(operation::read, mix.read);
    set(operation::update, mix.update);
    set(operation::insert, mix.insert);
    set(operation::scan, mix.scan);
    set(operation::read_modify_write, mix.read_modify_write);
    set(operation::erase, mix.erase);
    return shares;
}

std::uint64_t scaled_to_64_bits(double share) noexcept {
    return share >= 1 ? std::numeric_limits<std::uint64_t>::max()
                      : static_cast<std::uint64_t>(share * 0x1p64);
}

// Before any member is made from them, so that the message is about the option.
const request_options& checked(const request_options& options) {
    if (options.records == 0) refuse("0 records: at least one is needed");
    if (options.records > std::numeric_limits<std::uint64_t>::max() / 2 ||
        options.expected_inserts > std::numeric_limits<std::uint64_t>::max() / 2)
        refuse("more than 2^63 records");
    if (options.threads == 0) refuse("0 threads: at least one is needed");
    if (options.max_scan_length == 0) refuse("scans of length 0: at least one record is needed");
    double sum = 0;
    for (const double share : shares_of(options.operations)) {
        if (!(share >= 0)) refuse("a share of the operations is " + std::to_string(share));
        sum += share;
    }
    if (!(std::abs(sum - 1) < 1e-9))
        refuse("the shares of the operations sum up to " + std::to_string(sum) + ", not to 1");
    return options;
}

} // namespace

std::optional<ycsb_workload> ycsb(char letter) noexcept {
    switch (letter) {
    case 'A':
    case 'a':
        return ycsb_workload{{.read = .5, .update = .5}, distribution::zipfian};
    case 'B':
    case 'b':
        return ycsb_workload{{.read = .95, .update = .05}, distribution::zipfian};
    case 'C':
    case 'c':
        return ycsb_workload{{.read = 1}, distribution::zipfian};
    case 'D':
    case 'd':
        return ycsb_workload{{.read = .95, .insert = .05}, distribution::latest};
    case 'E':
    case 'e':
        return ycsb_workload{{.insert = .05, .scan = .95}, distribution::zipfian};
    case 'F':
    case 'f':
        return ycsb_workload{{.read = .5, .read_modify_write = .5}, distribution::zipfian};
    default:
        return std::nullopt;
    }
}

request_plan::request_plan(const request_options& options)
    : options_(checked(options)), uniform_(options.records),
      hotspot_(options.records, options.hot_data_fraction, options.hot_operation_fraction),
      zipfian_(options.records + (options.operations.insert > 0 ? options.expected_inserts : 0)),
      latest_(options.records) {
    const auto shares = shares_of(options.operations);
    double below = 0;
    first_ = operation_count;
    for (std::size_t i = 0; i < operation_count; ++i) {
        limits_[i] = scaled_to_64_bits(below += shares[i]);
        if (shares[i] == 0) continue;
        first_ = std::min(first_, i);
        last_ = i;
    }
    if (options.operations.insert > 0) inserts_ = std::make_unique<insert_counter>(options.records);
    if (options.ids == distribution::loop)
        loop_ = std::make_unique<loop_sequence>(options.records, options.live_share, options.seed);
}

request_stream request_plan::stream(unsigned thread) { return request_stream(*this, thread); }

request_stream::request_stream(request_plan& plan, unsigned thread)
    : plan_(&plan), random_(plan.options_.seed ^ mix64(thread + std::uint64_t{1})),
      latest_(plan.latest_) {
    if (thread >= plan.options_.threads)
        throw std::invalid_argument("stream " + std::to_string(thread) + " of " +
                                    std::to_string(plan.options_.threads));
    if (const loop_sequence* loop = plan.loop()) {
        loop_ids_ = loop->ids().data();
        period_ = loop->period();
        at_ = loop->start(thread, plan.options_.threads);
    }
}

} // namespace workload
