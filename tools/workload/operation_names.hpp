// SPDX-License-Identifier: MIT
//
// What traces and statistics call operations (trace.hpp has the table).
#pragma once

#include "tools/workload/operation.hpp"

#include <optional>
#include <string_view>

namespace workload {

// In small or capital letters; nothing for any other text.
std::optional<operation> operation_named(std::string_view name) noexcept;

bool equal_ignoring_case(std::string_view text, std::string_view small) noexcept;

} // namespace workload
