// SPDX-License-Identifier: MIT
#include "tools/workload/hot_set.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace workload {
namespace {

void require_share(const char* what, double value) {
    if (!(value >= 0 && value <= 1))
        throw std::invalid_argument(std::string(what) + " " + std::to_string(value) +
                                    ": between 0 and 1 is expected");
}

const hot_set_options& checked(const hot_set_options& options) {
    if (options.records == 0) throw std::invalid_argument("a hot set of 0 records");
    if (options.records > std::uint64_t{1} << 32)
        throw std::invalid_argument("a hot set of more than 2^32 records");
    require_share("the hot share of the records", options.data_share);
    require_share("the hot share of the accesses", options.access_share);
    require_share("the share of the hot set that a shift exchanges", options.shift_share);
    if (options.final_data_share) {
        require_share("the final hot share of the records", *options.final_data_share);
        if (options.resize_over == 0)
            throw std::invalid_argument("a hot set that changes its size over 0 operations");
    }
    return options;
}

} // namespace

hot_set::hot_set(const hot_set_options& options)
    : options_(checked(options)), scatter_(options.records, options.seed) {
    if (options.shift_period != 0)
        step_ = static_cast<std::uint64_t>(
            std::llround(options.shift_share * static_cast<double>(size_of(options.data_share))));
}

std::uint64_t hot_set::size_of(double share) const noexcept {
    const auto size =
        static_cast<std::uint64_t>(std::llround(share * static_cast<double>(options_.records)));
    const std::uint64_t most =
        share < 1 && options_.records > 1 ? options_.records - 1 : options_.records;
    return std::clamp<std::uint64_t>(size, 1, most);
}

std::uint64_t hot_set::size_at(std::uint64_t operation) const noexcept {
    if (!options_.final_data_share) return size_of(options_.data_share);
    const double part =
        std::min(1., static_cast<double>(operation) / static_cast<double>(options_.resize_over));
    return size_of(options_.data_share + part * (*options_.final_data_share - options_.data_share));
}

} // namespace workload
