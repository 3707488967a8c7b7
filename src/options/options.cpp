// SPDX-License-Identifier: MIT
//
// The parser and the printout of obase::options, both driven by the table in options.hpp: a row's
// kind selects a codec below, and nothing here names a single option.
#include <obase/options.hpp>
#include <obase/version.hpp>

#include "options/handles_variables.hpp"
#include "options/memory_limit.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>

namespace obase {

namespace {

std::string number_text(double value) {
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
    if (end.ec != std::errc()) {
        const auto shorter = std::to_chars(buffer, buffer + sizeof buffer, value);
        return {buffer, shorter.ptr};
    }
    return {buffer, end.ptr};
}

// The whole of `text`, nothing around it.
template <class Number>
bool parse_number(std::string_view text, Number& value) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// A NaN is inside no range.
bool inside(double value, double low, double high) { return value >= low && value <= high; }

struct byte_suffix {
    char letter;
    unsigned shift;
};
constexpr byte_suffix byte_suffixes[] = {{'T', 40}, {'G', 30}, {'M', 20}, {'K', 10}};

// Takes a unit off the end: k, K, kB or KiB, all of them 1024, and so on. Returns its shift; 0: there is none.
unsigned take_unit(std::string_view& text) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    std::string_view number = text;
    if (!number.empty() && lower(number.back()) == 'b') {
        number.remove_suffix(1);
        if (!number.empty() && lower(number.back()) == 'i') number.remove_suffix(1);
    }
    for (const auto [letter, shift] : byte_suffixes)
        if (!number.empty() && lower(number.back()) == lower(letter)) {
            text = number.substr(0, number.size() - 1);
            return shift;
        }
    return 0;
}

std::string bytes_text(std::uint64_t value) {
    for (const auto [letter, shift] : byte_suffixes) {
        const std::uint64_t unit = std::uint64_t{1} << shift;
        if (value != 0 && value % unit == 0) return std::to_string(value >> shift) + letter;
    }
    return std::to_string(value);
}

// "a, b or c"
std::string alternatives(std::span<const char* const> words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
        text += words[i];
    }
    return text;
}

// Enumerations whose values count from 0; the words are in the order of the values.
template <class Enum>
struct words_of;
template <>
struct words_of<run_mode> {
    static constexpr const char* list[] = {"off", "observe", "move", "hint"};
};
template <>
struct words_of<controller_kind> {
    static constexpr const char* list[] = {"additive", "multiplicative", "fixed"};
};
template <>
struct words_of<option_origin> {
    static constexpr const char* list[] = {"default", "environment", "code"};
};

template <class Enum>
const char* word(Enum value) noexcept {
    const auto index = static_cast<std::size_t>(value);
    return index < std::size(words_of<Enum>::list) ? words_of<Enum>::list[index] : "?";
}

template <class Enum>
struct enum_codec {
    static bool parse(std::string_view text, Enum& value, double, double) {
        for (std::size_t i = 0; i < std::size(words_of<Enum>::list); ++i) {
            if (text == words_of<Enum>::list[i]) {
                value = static_cast<Enum>(i);
                return true;
            }
        }
        return false;
    }
    static std::string print(Enum value) { return word(value); }
    static std::string expected(double, double) { return alternatives(words_of<Enum>::list); }
};

template <class Kind>
struct codec;
template <>
struct codec<option_kind::mode> : enum_codec<run_mode> {};
template <>
struct codec<option_kind::controller> : enum_codec<controller_kind> {};

template <>
struct codec<option_kind::whole> {
    static bool parse(std::string_view text, std::uint64_t& value, double low, double high) {
        return parse_number(text, value) && inside(static_cast<double>(value), low, high);
    }
    static std::string print(std::uint64_t value) { return std::to_string(value); }
    static std::string expected(double low, double high) {
        return "a whole number from " + number_text(low) + " to " + number_text(high);
    }
};

template <>
struct codec<option_kind::real> {
    static bool parse(std::string_view text, double& value, double low, double high) {
        return parse_number(text, value) && inside(value, low, high);
    }
    static std::string print(double value) { return number_text(value); }
    static std::string expected(double low, double high) {
        return "a number from " + number_text(low) + " to " + number_text(high);
    }
};

template <>
struct codec<option_kind::flag> {
    static bool parse(std::string_view text, bool& value, double, double) {
        for (const char* yes : {"on", "1", "true", "yes"}) {
            if (text == yes) return value = true;
        }
        for (const char* no : {"off", "0", "false", "no"}) {
            if (text == no) {
                value = false;
                return true;
            }
        }
        return false;
    }
    static std::string print(bool value) { return value ? "on" : "off"; }
    static std::string expected(double, double) { return "on or off"; }
};

template <>
struct codec<option_kind::bytes> {
    static bool parse(std::string_view text, std::uint64_t& value, double low, double high) {
        const unsigned shift = take_unit(text);
        if (!parse_number(text, value)) return false;
        if (value > std::numeric_limits<std::uint64_t>::max() >> shift) return false;
        value <<= shift;
        return inside(static_cast<double>(value), low, high);
    }
    static std::string print(std::uint64_t value) { return bytes_text(value); }
    static std::string expected(double low, double high) {
        return "a whole number of bytes, if wanted with K, M, G or T, from " +
               bytes_text(static_cast<std::uint64_t>(low)) + " to " +
               bytes_text(static_cast<std::uint64_t>(high));
    }
};

template <>
struct codec<option_kind::memory> {
    static bool parse(std::string_view text, std::string& value, double, double) {
        if (!parse_memory_limit(text)) return false;
        value = text;
        return true;
    }
    static std::string print(const std::string& value) { return value; }
    static std::string expected(double, double) {
        return "none, bytes (with K, M, G or T if wanted), a percentage such as 40%, or cgroup";
    }
};

template <>
struct codec<option_kind::backing> {
    static bool parse(std::string_view text, std::string& value, double, double) {
        constexpr std::size_t longest = 4096; // PATH_MAX
        const bool file = text.starts_with("file:") && text.size() > 5 && text.size() < longest &&
                          text.find('\0') == std::string_view::npos;
        if (text != "anon" && !file) return false;
        value = text;
        return true;
    }
    static std::string print(const std::string& value) { return value; }
    static std::string expected(double, double) { return "anon or file:DIR"; }
};

template <>
struct codec<option_kind::name> {
    static bool parse(std::string_view text, std::string& value, double, double) {
        constexpr std::size_t longest = 32;
        constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_";
        if (text.empty() || text.size() > longest) return false;
        if (text.find_first_not_of(allowed) != std::string_view::npos) return false;
        value = text;
        return true;
    }
    static std::string print(const std::string& value) { return value; }
    static std::string expected(double, double) { return "a name of a-z, 0-9, - and _"; }
};

template <>
struct codec<option_kind::path> {
    static bool parse(std::string_view text, std::string& value, double, double) {
        constexpr std::size_t longest = 4096; // PATH_MAX
        if (text.size() >= longest || text.find('\0') != std::string_view::npos) return false;
        value = text;
        return true;
    }
    static std::string print(const std::string& value) { return value; }
    static std::string expected(double, double) { return "the name of a file"; }
};

// What the table says about a row, as code.
struct row_code {
    bool (*parse)(options&, std::string_view);
    std::string (*print)(const options&);
};

constexpr row_code codes[] = {
#define OBASE_ROW_CODE(kind, name, built_in, unit, low, high, help)                                \
    {[](options& target, std::string_view text) {                                                  \
         option_kind::kind::type value{};                                                          \
         if (!codec<option_kind::kind>::parse(text, value, low, high)) return false;               \
         target.name = std::move(value);                                                           \
         return true;                                                                              \
     },                                                                                            \
     [](const options& source) { return codec<option_kind::kind>::print(source.name); }},
    OBASE_OPTIONS(OBASE_ROW_CODE)
#undef OBASE_ROW_CODE
};
static_assert(std::size(codes) == option_count);

std::string environment_name(std::string_view name) {
    std::string text = "OBASE_";
    for (const char c : name) text += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return text;
}

// Rows hold views; the strings behind them live here until the process ends.
struct row_texts {
    struct owned {
        std::string environment, expected, built_in;
    };
    std::array<owned, option_count> texts;
    std::array<option_row, option_count> rows;

    row_texts() {
        const options defaults;
        std::size_t at = 0;
        const auto add = [&](std::string_view name, std::string expected, std::string_view unit,
                             std::string_view help) {
            texts[at] = {environment_name(name), std::move(expected), codes[at].print(defaults)};
            rows[at] = {name, texts[at].environment, texts[at].expected, texts[at].built_in, unit,
                        help};
            ++at;
        };
#define OBASE_ROW_TEXT(kind, name, built_in, unit, low, high, help)                                \
    add(#name, codec<option_kind::kind>::expected(low, high), unit, help);
        OBASE_OPTIONS(OBASE_ROW_TEXT)
#undef OBASE_ROW_TEXT
    }
};

std::size_t find_row(std::string_view name) {
    const auto rows = option_rows();
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const option_row& row) {
        return row.name == name || row.environment == name;
    });
    return static_cast<std::size_t>(found - rows.begin());
}

// For messages: the value in quotes, control characters visible, and not longer than a line.
std::string quoted(std::string_view value) {
    constexpr std::size_t most = 80;
    std::string text = "'";
    for (const char c : value.substr(0, most)) {
        const auto code = static_cast<unsigned char>(c);
        if (code >= 0x20 && code != 0x7f) {
            text += c;
        } else {
            constexpr char digits[] = "0123456789abcdef";
            text += {'\\', 'x', digits[code >> 4], digits[code & 15]};
        }
    }
    text += value.size() > most ? "...'" : "'";
    return text;
}

// Edits between two short names (Levenshtein), to suggest the option that was meant.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

std::string suggestion(std::string_view name, bool as_variable) {
    constexpr std::size_t longest = 64, near = 3;
    if (name.size() > longest) return "";
    std::size_t best = near + 1;
    std::string_view meant;
    const auto consider = [&](std::string_view candidate) {
        const std::size_t edits = distance(name, candidate);
        if (edits < best) {
            best = edits;
            meant = candidate;
        }
    };
    for (const option_row& row : option_rows()) consider(as_variable ? row.environment : row.name);
    if (as_variable)
        for (const std::string_view candidate : options_internal::handles_variables)
            consider(candidate);
    return meant.empty() ? "" : "; did you mean " + std::string(meant) + "?";
}

} // namespace

std::span<const option_row> option_rows() {
    static const row_texts* const texts = new row_texts; // read by exit handlers: never destroyed
    return texts->rows;
}

std::string options::assign(std::size_t row, std::string_view value, option_origin from) {
    const option_row& text = option_rows()[row];
    const std::string_view name = from == option_origin::environment ? text.environment : text.name;
    if (!codes[row].parse(*this, value)) {
        return std::string(name) + ": " + quoted(value) + " is not " + std::string(text.expected);
    }
    origins_[row] = from;
    return "";
}

std::string options::set(std::string_view name, std::string_view value) {
    const std::size_t row = find_row(name);
    if (row == option_count) {
        return quoted(name) + " (value " + quoted(value) + ") is not an option" +
               suggestion(name, name.starts_with("OBASE_"));
    }
    return assign(row, value, option_origin::code);
}

std::vector<std::string> options::apply_environment(const char* const* environment) {
    constexpr std::string_view prefix = "OBASE_", of_tests = "OBASE_TEST_";
    std::vector<std::string> messages;
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        const std::string_view entry = *environment;
        const std::size_t equals = entry.find('=');
        if (!entry.starts_with(prefix) || entry.starts_with(of_tests) ||
            equals == std::string_view::npos) {
            continue;
        }
        const std::string_view name = entry.substr(0, equals), value = entry.substr(equals + 1);
        if (options_internal::is_handles_variable(name)) continue;
        const auto rows = option_rows();
        const std::size_t row = find_row(name);
        if (row == option_count) {
            messages.push_back(quoted(name) + " is not a variable of obase" +
                               suggestion(name, true));
            continue;
        }
        std::string error = assign(row, value, option_origin::environment);
        if (!error.empty()) {
            messages.push_back(error + "; keeping " + std::string(get(rows[row].name)));
        }
    }
    return messages;
}

options options::from_environment() {
    options settings;
    // A set-user-ID program must not open files where its caller says.
    if (getauxval(AT_SECURE) != 0) return settings;
    for (const std::string& message : settings.apply_environment(environ)) {
        std::fprintf(stderr, "obase: %s\n", message.c_str());
    }
    return settings;
}

std::string options::get(std::string_view name) const {
    const std::size_t row = find_row(name);
    return row == option_count ? "" : codes[row].print(*this);
}

option_origin options::origin(std::string_view name) const {
    const std::size_t row = find_row(name);
    if (row == option_count) return option_origin::built_in;
    const bool changed = codes[row].print(*this) != option_rows()[row].built_in;
    // A field assigned directly leaves no trace but its value.
    return origins_[row] == option_origin::built_in && changed ? option_origin::code
                                                               : origins_[row];
}

std::vector<std::string> options::out_of_range() const {
    std::vector<std::string> messages;
    options scratch;
    for (const option_row& row : option_rows()) {
        std::string error = scratch.set(row.name, get(row.name));
        if (!error.empty()) messages.push_back(std::move(error));
    }
    return messages;
}

std::string options::text() const {
    std::string text = "obase " + std::string(version()) + " (" + build() + ")\n";
    for (const option_row& row : option_rows()) {
        std::string line = std::string(row.environment) + "=" + get(row.name);
        if (!row.unit.empty()) line += " " + std::string(row.unit);
        line += std::string(" [") + to_string(origin(row.name)) + "]";
        constexpr std::size_t help_column = 58;
        line.append(line.size() < help_column ? help_column - line.size() : 1, ' ');
        text += line + std::string(row.help) + "\n";
    }
    return text;
}

const char* to_string(run_mode mode) noexcept { return word(mode); }
const char* to_string(controller_kind controller) noexcept { return word(controller); }
const char* to_string(option_origin origin) noexcept { return word(origin); }

std::optional<memory_limit> parse_memory_limit(std::string_view text) noexcept {
    memory_limit limit;
    if (text == "none") return limit;
    if (text == "cgroup") {
        limit.kind = memory_limit::of::group;
        return limit;
    }
    if (text.ends_with('%')) {
        limit.kind = memory_limit::of::percent;
        text.remove_suffix(1);
        if (!parse_number(text, limit.percent) || !(limit.percent > 0) || limit.percent > 100)
            return std::nullopt;
        return limit;
    }
    limit.kind = memory_limit::of::bytes;
    if (!codec<option_kind::bytes>::parse(text, limit.bytes, 1, 0x1p63)) return std::nullopt;
    return limit;
}

} // namespace obase
