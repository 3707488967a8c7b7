// SPDX-License-Identifier: MIT
//
// Sizes as users write and read them: 512M, 1.5G, 4096. The units are powers of 1024.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wiscsort {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;
constexpr std::uint64_t GiB = 1024 * MiB;

// "512M" is 536870912. `what` names the option in the message. Throws usage_error.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);
// A decimal number without sign. Throws usage_error.
std::uint64_t parse_count(std::string_view text, std::string_view what);
// Three digits and a unit: "1.50 GiB".
std::string bytes_text(std::uint64_t bytes);

} // namespace wiscsort
