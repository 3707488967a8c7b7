// SPDX-License-Identifier: MIT
//
// sized_records: records whose keys and values have sizes of distributions. What size a record has
// is known from its number.
#pragma once

#include "tools/ycsb/generated_records.hpp"

#include "tools/workload/key_format.hpp"
#include "tools/workload/size_distribution.hpp"
#include "tools/workload/value_sizes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace obase::tools {

struct sized_records_options {
    std::uint64_t count = 0;
    std::uint64_t ids = 0; // that there may ever be
    workload::size_distribution keys = workload::size_distribution::fixed(30);
    workload::value_sizes values{workload::size_distribution::fixed(1024)};
    std::uint64_t seed = 1;
    workload::key_order order = workload::key_order::hashed;
};

class sized_records final : public generated_records {
  public:
    explicit sized_records(sized_records_options options) : options_(std::move(options)) {
        // Keys of one size differ if it has room for all ids.
        while (workload::key_id_limit(smallest_key_, options_.order) < options_.ids)
            ++smallest_key_;
    }
    std::uint64_t count() const noexcept override { return options_.count; }
    std::size_t largest_key() const noexcept override {
        return std::max<std::size_t>(options_.keys.largest(), smallest_key_);
    }
    std::size_t largest_value() const noexcept override { return options_.values.largest(); }

    std::string_view key(std::uint64_t record, std::span<char> buffer) const override {
        const std::size_t size = std::max<std::size_t>(
            options_.keys.at(workload::record_quantile(record, ~options_.seed)), smallest_key_);
        workload::write_key(buffer.first(size), record, options_.order);
        return {buffer.data(), size};
    }

  private:
    std::size_t usual_size(std::uint64_t record) const override {
        return options_.values.first(record);
    }

    sized_records_options options_;
    std::size_t smallest_key_ = workload::min_key_size;
};

} // namespace obase::tools
