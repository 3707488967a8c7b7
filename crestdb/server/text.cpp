// SPDX-License-Identifier: MIT
#include "crestdb/server/text.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace crestdb::server {

namespace {

char folded(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// One element of a pattern against one character.
struct element {
    bool matches;
    std::size_t length; // characters of the pattern
};

element match_element(std::string_view pattern, char c, bool fold) noexcept {
    const auto as = [fold](char x) { return static_cast<unsigned char>(fold ? folded(x) : x); };
    const unsigned char sought = as(c);
    switch (pattern[0]) {
    case '?':
        return {true, 1};
    case '\\':
        if (pattern.size() >= 2) return {as(pattern[1]) == sought, 2};
        return {sought == '\\', 1};
    case '[': {
        std::size_t i = 1;
        const bool negated = i < pattern.size() && pattern[i] == '^';
        if (negated) ++i;
        bool found = false;
        for (;; ++i) {
            if (i >= pattern.size()) {
                --i; // not closed: the class ends with the pattern
                break;
            }
            if (pattern[i] == '\\' && i + 1 < pattern.size()) {
                ++i;
                if (as(pattern[i]) == sought) found = true;
            } else if (pattern[i] == ']') {
                break;
            } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
                unsigned char low = as(pattern[i]), high = as(pattern[i + 2]);
                if (low > high) std::swap(low, high);
                i += 2;
                if (sought >= low && sought <= high) found = true;
            } else if (as(pattern[i]) == sought) {
                found = true;
            }
        }
        return {found != negated, i + 1};
    }
    default:
        return {as(pattern[0]) == sought, 1};
    }
}

} // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
    if (text.empty() || text.size() > 20) return std::nullopt;
    const bool negative = text[0] == '-';
    const std::string_view digits = text.substr(negative ? 1 : 0);
    if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
    if (digits[0] == '0' && (digits.size() > 1 || negative)) return std::nullopt;
    std::int64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept {
    std::uint64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::optional<double> parse_double(std::string_view text) {
    if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
    const std::string copy(text);
    char* end = nullptr;
    errno = 0;
    const double value = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
    if (errno == ERANGE && (std::fabs(value) == HUGE_VAL || value == 0)) return std::nullopt;
    return value;
}

constexpr std::size_t most_long_double_characters = 5 * 1024;

std::optional<long double> parse_long_double(std::string_view text) {
    // What format_long_double() writes is at most so long.
    if (text.empty() || text.size() >= most_long_double_characters ||
        std::isspace(static_cast<unsigned char>(text[0])) != 0)
        return std::nullopt;
    const std::string copy(text);
    char* end = nullptr;
    errno = 0;
    const long double value = std::strtold(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
    if (errno == ERANGE && (std::fabs(value) == HUGE_VALL || value == 0)) return std::nullopt;
    return value;
}

std::string format_double(double value) {
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char text[64];
    const int length = std::snprintf(text, sizeof text, "%.17g", value);
    return {text, static_cast<std::size_t>(length)};
}

std::string format_long_double(long double value) {
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char text[most_long_double_characters];
    int length = std::snprintf(text, sizeof text, "%.17Lf", value);
    std::string result(text, static_cast<std::size_t>(length));
    if (result.find('.') != std::string::npos) {
        while (result.back() == '0') result.pop_back();
        if (result.back() == '.') result.pop_back();
    }
    return result == "-0" ? "0" : result;
}

bool glob_match(std::string_view pattern, std::string_view text, bool fold_case) noexcept {
    // The last star seen takes one character more at every mismatch; an earlier one never has to.
    std::size_t p = 0, t = 0;
    std::size_t star = std::string_view::npos, star_text = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = ++p;
            star_text = t;
            continue;
        }
        if (p < pattern.size()) {
            const element here = match_element(pattern.substr(p), text[t], fold_case);
            if (here.matches) {
                p += here.length;
                ++t;
                continue;
            }
        }
        if (star == std::string_view::npos) return false;
        p = star;
        t = ++star_text;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p >= pattern.size();
}

bool equal_fold(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (folded(a[i]) != folded(b[i])) return false;
    return true;
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = folded(c);
    return result;
}

std::string printable(std::string_view text, std::size_t most) {
    std::string result;
    for (const char c : text.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 32 && byte < 127) {
            result += c;
        } else {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\x%02x", byte);
            result += hex;
        }
    }
    if (text.size() > most) result += "...";
    return result;
}

} // namespace crestdb::server
