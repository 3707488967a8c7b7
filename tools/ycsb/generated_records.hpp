// SPDX-License-Identifier: MIT
//
// generated_records: records whose values are made by tools/workload/value_content.hpp, whatever
// their sizes are.
#pragma once

#include "tools/ycsb/record_set.hpp"

#include "tools/workload/value_content.hpp"

namespace obase::tools {

class generated_records : public record_set {
  public:
    std::string_view value(std::uint64_t record, std::uint64_t version, std::size_t size,
                           std::span<char> buffer) const final {
        if (size == 0) size = usual_size(record);
        workload::fill_value(buffer.first(size), record, version);
        return {buffer.data(), size};
    }
    std::optional<std::uint64_t> check(std::uint64_t record, std::string_view value) const final {
        const auto version = workload::check_value(value, record);
        // Too short for a version that does not wrap around.
        if (version && value.size() < 8) return any_version;
        return version;
    }

  protected:
    virtual std::size_t usual_size(std::uint64_t record) const = 0; // of a value
};

} // namespace obase::tools
