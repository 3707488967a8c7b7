// SPDX-License-Identifier: MIT
#include "tools/kv/load_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>

namespace obase::tools {
namespace {

// All of the text as a number, or nothing.
std::optional<double> number_in(std::string_view text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

constexpr double most_operations = 0x1p53;

} // namespace

load_spec::load_spec(const std::string& text, double rate) : rate_(rate) {
    const std::size_t colon = text.find(':');
    name_ = text.substr(0, colon);
    if (colon == std::string::npos) return;
    std::string_view rest = std::string_view(text).substr(colon + 1);
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        const std::string_view one = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
        const std::size_t equals = one.find('=');
        if (equals == std::string_view::npos || equals == 0)
            throw std::invalid_argument(fmt::format(
                "--workload {}: expected PARAMETER=VALUE where '{}' stands", text, one));
        const std::string key(one.substr(0, equals));
        if (!parameters_.try_emplace(key, given_value{std::string(one.substr(equals + 1)), false})
                 .second)
            throw std::invalid_argument(
                fmt::format("--workload {}: the parameter {} is given twice", text, key));
    }
}

const std::string* load_spec::take(const std::string& name) {
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) return nullptr;
    found->second.taken = true;
    return &found->second.value;
}

void load_spec::refuse(const std::string& parameter, const std::string& expected) const {
    const auto found = parameters_.find(parameter);
    throw std::invalid_argument(
        found == parameters_.end()
            ? fmt::format("--workload {}: expected {}={}", name_, parameter, expected)
            : fmt::format("--workload {}, {}={}: expected {}", name_, parameter,
                          found->second.value, expected));
}

double load_spec::number(const std::string& parameter, double otherwise, double low, double high) {
    const std::string* const value = take(parameter);
    if (value == nullptr) return otherwise;
    const auto number = number_in(*value);
    if (!number || *number < low || *number > high)
        refuse(parameter, fmt::format("a number from {} to {}", low, high));
    return *number;
}

std::uint64_t load_spec::whole(const std::string& parameter, std::uint64_t otherwise,
                               std::uint64_t low, std::uint64_t high) {
    const std::string* const value = take(parameter);
    if (value == nullptr) return otherwise;
    const auto number = number_in(*value);
    if (!number || *number < static_cast<double>(low) || *number > static_cast<double>(high) ||
        *number != std::floor(*number))
        refuse(parameter, fmt::format("a whole number from {} to {}", low, high));
    return static_cast<std::uint64_t>(*number);
}

std::uint64_t load_spec::operations(const std::string& parameter, std::uint64_t otherwise) {
    const std::string* const value = take(parameter);
    if (value == nullptr) return otherwise;
    const bool seconds = value->ends_with('s');
    if (seconds && !(rate_ > 0)) refuse(parameter, "a number of operations; seconds need --rate");
    const auto number = number_in(std::string_view(*value).substr(0, value->size() - seconds));
    const double operations = number ? *number * (seconds ? rate_ : 1) : -1;
    if (!(operations >= 0 && operations < most_operations))
        refuse(parameter, "a number of operations, or of seconds with an s behind");
    return static_cast<std::uint64_t>(operations);
}

std::string load_spec::text(const std::string& parameter, const std::string& otherwise) {
    const std::string* const value = take(parameter);
    return value == nullptr ? otherwise : *value;
}

std::string load_spec::text(const std::string& parameter) {
    const std::string* const value = take(parameter);
    if (value == nullptr || value->empty()) refuse(parameter, "a text");
    return *value;
}

void load_spec::all_taken() const {
    for (const auto& [name, one] : parameters_)
        if (!one.taken)
            throw std::invalid_argument(
                fmt::format("--workload {}: it has no parameter {}", name_, name));
}

} // namespace obase::tools
