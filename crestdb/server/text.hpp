// SPDX-License-Identifier: MIT
//
// Numbers and patterns as clients write them: what counts as an integer, a float and a glob is what
// Redis 7 takes for one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crestdb::server {

// Decimal, no sign but a minus, no leading zero, no space.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;
std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept;
// What strtod takes whole, without spaces before it and without NaN.
std::optional<double> parse_double(std::string_view text);
std::optional<long double> parse_long_double(std::string_view text);

// 17 significant digits, "inf", "-inf".
std::string format_double(double value);
// As INCRBYFLOAT writes it: no exponent, no zeros at the end.
std::string format_long_double(long double value);

// Redis's globs: *, ?, [a-z], [^a], \x. Cost: at most the product of the lengths.
bool glob_match(std::string_view pattern, std::string_view text, bool fold_case = false) noexcept;

bool equal_fold(std::string_view a, std::string_view b) noexcept;
std::string lower(std::string_view text);

// For errors and logs: printable, at most `most` bytes.
std::string printable(std::string_view text, std::size_t most = 128);

} // namespace crestdb::server
