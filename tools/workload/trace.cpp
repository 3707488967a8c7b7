// SPDX-License-Identifier: MIT
#include "tools/workload/trace.hpp"

#include "tools/workload/trace_parser.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace workload {

namespace {

constexpr std::array<std::pair<std::string_view, trace_format>, 5> format_names = {{
    {"auto", trace_format::automatic},
    {"operations", trace_format::operations},
    {"twitter", trace_format::twitter},
    {"keys", trace_format::keys},
    {"be32", trace_format::be32},
}};

constexpr std::array<std::pair<std::string_view, operation>, 22> operation_names = {{
    {"get", operation::read},
    {"put", operation::update},
    {"set", operation::update},
    {"gets", operation::read},
    {"read", operation::read},
    {"add", operation::update},
    {"replace", operation::update},
    {"cas", operation::update},
    {"update", operation::update},
    {"write", operation::update},
    {"insert", operation::insert},
    {"seek", operation::scan},
    {"scan", operation::scan},
    {"merge", operation::read_modify_write},
    {"incr", operation::read_modify_write},
    {"decr", operation::read_modify_write},
    {"append", operation::read_modify_write},
    {"prepend", operation::read_modify_write},
    {"rmw", operation::read_modify_write},
    {"delete", operation::erase},
    {"erase", operation::erase},
    {"remove", operation::erase},
}};

// No line of a trace is so long; without a limit a file without newlines would be buffered whole.
constexpr std::size_t longest_line = 256 * 1024;

bool equal_ignoring_case(std::string_view text, std::string_view small) noexcept {
    return text.size() == small.size() &&
           std::equal(text.begin(), text.end(), small.begin(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           });
}

// For a message on a terminal: short, and printable.
std::string quoted(std::string_view text) {
    constexpr std::size_t most = 60;
    constexpr char hex[] = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte > 0x7e) {
            result += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        } else {
            result += c;
        }
    }
    return result + (text.size() > most ? "...\"" : "\"");
}

std::size_t columns(std::string_view line) noexcept {
    return 1 + static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
}

// The text up to the next comma, which is taken away with it.
std::string_view take_first(std::string_view& line) noexcept {
    const std::size_t comma = std::min(line.find(','), line.size());
    const std::string_view column = line.substr(0, comma);
    line.remove_prefix(std::min(comma + 1, line.size()));
    return column;
}
std::string_view take_last(std::string_view& line) noexcept {
    const std::size_t comma = line.rfind(',');
    const std::size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    const std::string_view column = line.substr(begin);
    line = line.substr(0, begin == 0 ? 0 : comma);
    return column;
}

} // namespace

std::optional<trace_format> trace_format_named(std::string_view name) noexcept {
    for (const auto& [text, format] : format_names)
        if (text == name) return format;
    return std::nullopt;
}

std::string_view name_of(trace_format format) noexcept {
    for (const auto& [text, value] : format_names)
        if (value == format) return text;
    return "?";
}

trace_parser::trace_parser(std::string name, const trace_options& options)
    : name_(std::move(name)), options_(options) {
    result_.format_ = options.format;
}

void trace_parser::refuse(const std::string& expected, std::string_view found) const {
    const char* const unit = result_.format_ == trace_format::be32 ? ", id " : ", line ";
    throw std::runtime_error(name_ + unit + std::to_string(lines_ + 1) + ": expected " + expected +
                             "; found " + quoted(found));
}

void trace_parser::feed(std::string_view piece) {
    if (result_.format_ == trace_format::be32) {
        while (!piece.empty() && wants_more()) {
            const std::size_t missing = std::min(4 - begun_.size(), piece.size());
            begun_ += piece.substr(0, missing);
            piece.remove_prefix(missing);
            if (begun_.size() < 4) return;
            std::uint32_t id = 0;
            for (const char c : begun_) id = id << 8 | static_cast<unsigned char>(c);
            begun_.clear();
            add(operation::read, key_of_number(id), 0, 0);
            ++lines_;
        }
        return;
    }
    while (!piece.empty() && wants_more()) {
        const std::size_t newline = piece.find('\n');
        const std::string_view part = piece.substr(0, newline);
        if (begun_.size() + part.size() > longest_line) {
            begun_ += part.substr(0, longest_line - begun_.size());
            refuse("a line of at most " + std::to_string(longest_line) + " bytes", begun_);
        }
        if (newline == std::string_view::npos) {
            begun_ += part;
            return;
        }
        if (begun_.empty()) {
            line(part);
        } else {
            begun_ += part;
            line(begun_);
            begun_.clear();
        }
        piece.remove_prefix(newline + 1);
    }
}

trace trace_parser::finish() {
    if (wants_more() && !begun_.empty()) {
        if (result_.format_ == trace_format::be32) refuse("four bytes: the file is torn", begun_);
        refuse("a newline at the end of the last line: the file is torn", begun_);
    }
    if (result_.entries_.empty() && options_.max_operations > 0)
        throw std::runtime_error(name_ + ": expected operations; found " +
                                 (lines_ == 0 ? "an empty file" : "a header and nothing else"));
    if (result_.format_ == trace_format::automatic) result_.format_ = trace_format::operations;
    return std::move(result_);
}

void trace_parser::line(std::string_view text) {
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    current_ = text;
    if (lines_ == 0) {
        begin(text);
        if (is_header(text)) {
            ++lines_;
            return;
        }
    }
    switch (result_.format_) {
    case trace_format::operations:
        operations_line(text);
        break;
    case trace_format::twitter:
        twitter_line(text);
        break;
    default:
        if (text.empty()) refuse("a key", text);
        add(operation::read, key_of_text(text), text.size(), 0);
    }
    ++lines_;
}

// Finds out the format if it was not given.
void trace_parser::begin(std::string_view first_line) {
    if (options_.format != trace_format::automatic) return;
    if (first_line.find('\0') != std::string_view::npos)
        refuse("text (ids of four bytes are read with the format be32 only)", first_line);
    switch (columns(first_line)) {
    case 1:
        result_.format_ = trace_format::keys;
        break;
    case 4:
        result_.format_ = trace_format::operations;
        break;
    case 7:
        result_.format_ = trace_format::twitter;
        break;
    default:
        refuse("1 column (keys), 4 (op,key id,key length,value length) or 7 "
               "(timestamp,key,key size,value size,client id,op,TTL), not " +
                   std::to_string(columns(first_line)),
               first_line);
    }
}

bool trace_parser::is_header(std::string_view first_line) const {
    const std::string_view first = take_first(first_line);
    return (result_.format_ == trace_format::operations && equal_ignoring_case(first, "op")) ||
           (result_.format_ == trace_format::twitter && equal_ignoring_case(first, "timestamp"));
}

void trace_parser::operations_line(std::string_view text) {
    if (columns(text) != 4)
        refuse("op,key id,key length,value length: 4 columns, not " + std::to_string(columns(text)),
               text);
    const operation what = operation_named(take_first(text));
    const std::uint64_t id =
        number("a key id", take_first(text), std::numeric_limits<std::uint64_t>::max());
    const std::uint64_t key_length =
        number("a key length", take_first(text), std::numeric_limits<std::uint16_t>::max());
    const std::uint64_t value_length =
        number("a value length", text, std::numeric_limits<std::uint32_t>::max());
    add(what, key_of_number(id), key_length, value_length);
}

void trace_parser::twitter_line(std::string_view text) {
    if (columns(text) < 7)
        refuse("timestamp,key,key size,value size,client id,op,TTL: 7 columns, not " +
                   std::to_string(columns(text)),
               text);
    constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    number("a timestamp", take_first(text), any);
    number("a TTL", take_last(text), any);
    const operation what = operation_named(take_last(text));
    number("a client id", take_last(text), any);
    const std::uint64_t value_length =
        number("a value size", take_last(text), std::numeric_limits<std::uint32_t>::max());
    const std::uint64_t key_length =
        number("a key size", take_last(text), std::numeric_limits<std::uint16_t>::max());
    if (text.empty()) refuse("a key in the second column", current_);
    add(what, key_of_text(text), key_length, value_length);
}

std::uint64_t trace_parser::number(std::string_view what, std::string_view text,
                                   std::uint64_t limit) const {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end || value > limit)
        refuse(std::string(what) + " from 0 to " + std::to_string(limit) + " where " +
                   quoted(text) + " stands",
               current_);
    return value;
}

operation trace_parser::operation_named(std::string_view name) const {
    for (const auto& [text, what] : operation_names)
        if (equal_ignoring_case(name, text)) return what;
    refuse("an operation (get, put, seek, delete, ...) where " + quoted(name) + " stands",
           current_);
}

std::uint32_t trace_parser::next_key() const {
    if (result_.records_.size() >= std::numeric_limits<std::uint32_t>::max())
        refuse("fewer than 2^32 different keys", current_);
    return static_cast<std::uint32_t>(result_.records_.size());
}

// Both make a record for a key that is new.
std::uint32_t trace_parser::key_of_text(std::string_view text) {
    const auto found = texts_.find(text);
    if (found != texts_.end()) return found->second;
    const std::uint32_t key = next_key();
    texts_.emplace(text, key);
    return key;
}
std::uint32_t trace_parser::key_of_number(std::uint64_t id) {
    return numbers_.try_emplace(id, next_key()).first->second;
}

void trace_parser::add(operation what, std::uint32_t key, std::uint64_t key_length,
                       std::uint64_t value_length) {
    const trace_entry entry{key, static_cast<std::uint32_t>(value_length),
                            static_cast<std::uint16_t>(std::min<std::uint64_t>(
                                key_length, std::numeric_limits<std::uint16_t>::max())),
                            what};
    result_.entries_.push_back(entry);
    if (key == result_.records_.size()) result_.records_.push_back({0, entry.key_length});
    if (result_.records_[key].value_length == 0)
        result_.records_[key].value_length = entry.value_length;
}

trace read_trace(const std::string& path, const trace_options& options) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        throw std::runtime_error(path + ": expected a trace; found a directory");

    const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
    if (reader == nullptr) throw std::bad_alloc();
    const auto fail = [&](std::uint64_t lines) {
        const char* const reason = archive_error_string(reader.get());
        throw std::runtime_error(
            path + (lines == 0 ? "" : ", after line " + std::to_string(lines)) +
            ": cannot be read: " + (reason != nullptr ? reason : std::strerror(EIO)));
    };
    // One file without a name inside, whatever it is compressed with.
    archive_read_support_filter_gzip(reader.get());
    archive_read_support_filter_xz(reader.get());
    archive_read_support_filter_zstd(reader.get());
    archive_read_support_format_raw(reader.get());
    archive_read_support_format_empty(reader.get());
    if (archive_read_open_filename(reader.get(), path.c_str(), 1 << 18) != ARCHIVE_OK) fail(0);

    trace_parser parser(path, options);
    archive_entry* entry = nullptr;
    const int header = archive_read_next_header(reader.get(), &entry);
    if (header == ARCHIVE_EOF) return parser.finish();
    if (header != ARCHIVE_OK && header != ARCHIVE_WARN) fail(0);
    std::vector<char> buffer(1 << 18);
    while (parser.wants_more()) {
        const la_ssize_t bytes = archive_read_data(reader.get(), buffer.data(), buffer.size());
        if (bytes < 0) fail(parser.lines());
        if (bytes == 0) break;
        parser.feed({buffer.data(), static_cast<std::size_t>(bytes)});
    }
    return parser.finish();
}

} // namespace workload
