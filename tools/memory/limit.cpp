// SPDX-License-Identifier: MIT
#include "tools/memory/limit.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>

namespace obase::tools {

std::uint64_t bytes_of_limit(const std::string& text, std::uint64_t whole) {
    const auto refuse = [&]() -> std::invalid_argument {
        return std::invalid_argument(
            "--limit " + text +
            ": bytes with an optional suffix K, M, G or T, or a percentage "
            "such as 35%, is expected");
    };
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || !std::isfinite(number) || number <= 0) throw refuse();
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    double scale = 1;
    if (unit == "%")
        scale = static_cast<double>(whole) / 100;
    else if (unit == "K")
        scale = 0x1p10;
    else if (unit == "M")
        scale = 0x1p20;
    else if (unit == "G")
        scale = 0x1p30;
    else if (unit == "T")
        scale = 0x1p40;
    else if (!unit.empty())
        throw refuse();
    const double bytes = number * scale;
    if (bytes >= 0x1p62) throw refuse();
    return static_cast<std::uint64_t>(bytes);
}

void limiter::tighten() {
    if (!wanted_ || in_force_ || !group_.made()) return;
    if (!reclaimable_ && group_.charge() > *wanted_) return;
    if (group_.set_limit(*wanted_).empty()) in_force_ = wanted_;
}

void limiter::insist() {
    tighten();
    if (!wanted_ || in_force_ || !group_.made()) return;
    const std::uint64_t charged = group_.charge();
    if (group_.set_limit(charged).empty()) in_force_ = charged;
}

} // namespace obase::tools
