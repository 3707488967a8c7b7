// SPDX-License-Identifier: MIT
#include "wiscsort/units.hpp"

#include "wiscsort/error.hpp"

#include <charconv>
#include <limits>

namespace wiscsort {

std::uint64_t parse_count(std::string_view text, std::string_view what) {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size())
        refuse("{}: '{}' is not a whole number from 0 to {}", what, text,
               std::numeric_limits<std::uint64_t>::max());
    return value;
}

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
    double value = 0;
    const auto [end, problem] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    int shift = 0;
    if (!unit.empty() && unit != "B") {
        switch (unit.front() | 0x20) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        case 't':
            shift = 40;
            break;
        default:
            shift = -1;
        }
        unit.remove_prefix(1);
        if (!unit.empty() && unit != "B" && unit != "iB") shift = -1;
    }
    const double bytes = shift < 0 ? -1 : value * static_cast<double>(1ULL << shift);
    if (problem != std::errc{} || !(bytes >= 0) || bytes > 9e18)
        refuse("{}: '{}' is not a size; expected a number with a unit of K, M, G or T, as 512M",
               what, text);
    return static_cast<std::uint64_t>(bytes);
}

std::string bytes_text(std::uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit < 5) {
        value /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

} // namespace wiscsort
