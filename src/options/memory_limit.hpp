// SPDX-License-Identifier: MIT
//
// memory_limit: what the option memory says, as numbers.
//
//     parse_memory_limit("40%")   // {of::percent, 0, 40}
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace obase {

struct memory_limit {
    enum class of : std::uint8_t { nothing, bytes, percent, group };
    of kind = of::nothing;
    std::uint64_t bytes = 0; // of::bytes, at least 1
    double percent = 0;      // of::percent, more than 0, at most 100
};

// Nothing: neither none, BYTES (with K, M, G or T if wanted), PERCENT% nor cgroup.
std::optional<memory_limit> parse_memory_limit(std::string_view text) noexcept;

} // namespace obase
