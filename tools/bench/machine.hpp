// SPDX-License-Identifier: MIT
//
// Where and under what load a result was taken: it is recorded with every result.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace obase::tools {

// Processor, cores, memory, kernel, load averages, build and version.
nlohmann::json describe_machine();
// The same in one line.
std::string machine_line();
// Of the last-level cache; 0 when the system does not tell.
std::size_t last_level_cache_bytes() noexcept;

} // namespace obase::tools
