// SPDX-License-Identifier: MIT
#include "tools/workload/trace.hpp"

#include "tools/workload/operation_names.hpp"
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

constexpr std::array<std::pair<std::string_view, trace_format>, 8> format_names = {{
    {"auto", trace_format::automatic},
    {"operations", trace_format::operations},
    {"twitter", trace_format::twitter},
    {"keys", trace_format::keys},
    {"be32", trace_format::be32},
    {"cachelib", trace_format::cachelib},
    {"arc", trace_format::arc},
    {"oracle", trace_format::oracle},
}};

// One line of a trace that stands for many operations.
constexpr std::uint64_t most_repetitions = 1'000'000;

// No line of a trace is so long; without a limit a file without newlines would be buffered whole.
constexpr std::size_t longest_line = 256 * 1024;

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

// Low byte first.
std::uint64_t little_endian(std::string_view bytes) noexcept {
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i > 0; --i)
        number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return number;
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
// The text before the next blanks, which are taken away with it.
std::string_view take_word(std::string_view& line) noexcept {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    return word;
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
    const char* const unit = result_.format_ == trace_format::be32     ? ", id "
                             : result_.format_ == trace_format::oracle ? ", record "
                                                                       : ", line ";
    throw std::runtime_error(name_ + unit + std::to_string(lines_ + 1) + ": expected " + expected +
                             "; found " + quoted(found));
}

void trace_parser::feed(std::string_view piece) {
    if (const std::size_t size = record_size(); size != 0) {
        while (!piece.empty() && wants_more()) {
            const std::size_t missing = std::min(size - begun_.size(), piece.size());
            begun_ += piece.substr(0, missing);
            piece.remove_prefix(missing);
            if (begun_.size() < size) return;
            record(begun_);
            begun_.clear();
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
        if (const std::size_t size = record_size(); size != 0)
            refuse(std::to_string(size) + " bytes: the file is torn", begun_);
        refuse("a newline at the end of the last line: the file is torn", begun_);
    }
    if (result_.entries_.empty() && options_.max_operations > 0)
        throw std::runtime_error(name_ + ": expected operations; found " +
                                 (lines_ == 0 ? "an empty file" : "a header and nothing else"));
    if (result_.format_ == trace_format::automatic) result_.format_ = trace_format::operations;
    return std::move(result_);
}

// Of the formats without lines; 0 for the others.
std::size_t trace_parser::record_size() const noexcept {
    return result_.format_ == trace_format::be32     ? 4
           : result_.format_ == trace_format::oracle ? 24
                                                     : 0;
}

void trace_parser::record(std::string_view bytes) {
    if (result_.format_ == trace_format::be32) {
        std::uint32_t id = 0;
        for (const char c : bytes) id = id << 8 | static_cast<unsigned char>(c);
        add(operation::read, key_of_number(id), 0, 0);
        return;
    }
    // Time, id, size, number of the next access: 4, 8, 4 and 8 bytes.
    add(operation::read, key_of_number(little_endian(bytes.substr(4, 8))), 0,
        little_endian(bytes.substr(12, 4)));
}

void trace_parser::line(std::string_view text) {
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    current_ = text;
    if (lines_ == 0) {
        begin(text);
        if (result_.format_ == trace_format::cachelib) {
            cachelib_header(text);
            ++lines_;
            return;
        }
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
    case trace_format::cachelib:
        cachelib_line(text);
        break;
    case trace_format::arc:
        arc_line(text);
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
        refuse("text (ids of four bytes are read with the format be32 only, binary records of 24 "
               "with oracle)",
               first_line);
    if (first_line.starts_with("op_time,")) {
        result_.format_ = trace_format::cachelib;
        return;
    }
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
    const operation what = operation_of(take_first(text));
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
    const operation what = operation_of(take_last(text));
    number("a client id", take_last(text), any);
    const std::uint64_t value_length =
        number("a value size", take_last(text), std::numeric_limits<std::uint32_t>::max());
    const std::uint64_t key_length =
        number("a key size", take_last(text), std::numeric_limits<std::uint16_t>::max());
    if (text.empty()) refuse("a key in the second column", current_);
    add(what, key_of_text(text), key_length, value_length);
}

// Which columns there are differs between the published files.
void trace_parser::cachelib_header(std::string_view text) {
    const std::string_view whole = text;
    columns_ = columns(text);
    cachelib_columns_ = {};
    for (std::size_t at = 0; at < columns_; ++at) {
        const std::string_view name = take_first(text);
        for (std::size_t i = 0; i < cachelib_names.size(); ++i)
            if (name == cachelib_names[i]) cachelib_columns_[i] = at + 1;
    }
    for (std::size_t i = 0; i < cachelib_names.size(); ++i)
        if (cachelib_columns_[i] == 0)
            refuse("a header with the column " + std::string(cachelib_names[i]), whole);
}

void trace_parser::cachelib_line(std::string_view text) {
    if (columns(text) != columns_)
        refuse(std::to_string(columns_) + " columns, as the header has, not " +
                   std::to_string(columns(text)),
               text);
    std::array<std::string_view, cachelib_names.size()> found;
    for (std::size_t at = 1; at <= columns_; ++at) {
        const std::string_view column = take_first(text);
        for (std::size_t i = 0; i < found.size(); ++i)
            if (cachelib_columns_[i] == at) found[i] = column;
    }
    const auto [key, key_size, op, op_count, size] = found;
    if (key.empty()) refuse("a key", current_);
    const operation what = operation_of(op);
    const std::uint64_t key_length =
        number("a key size", key_size, std::numeric_limits<std::uint16_t>::max());
    const std::uint64_t value_length =
        number("a size", size, std::numeric_limits<std::uint32_t>::max());
    const std::uint64_t count = number("a number of operations", op_count, most_repetitions);
    for (std::uint64_t i = 0; i < count && wants_more(); ++i)
        add(what, key_of_text(key), key_length, value_length);
}

void trace_parser::arc_line(std::string_view text) {
    const std::uint64_t start =
        number("a block number", take_word(text), std::numeric_limits<std::uint64_t>::max() / 2);
    const std::uint64_t count = number("a number of blocks", take_word(text), most_repetitions);
    number("a number", take_word(text), std::numeric_limits<std::uint64_t>::max());
    number("a request's number", take_word(text), std::numeric_limits<std::uint64_t>::max());
    if (!take_word(text).empty()) refuse("four numbers: start, count, ignored, id", current_);
    for (std::uint64_t i = 0; i < count && wants_more(); ++i)
        add(operation::read, key_of_number(start + i), 0, 0);
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

operation trace_parser::operation_of(std::string_view name) const {
    if (const auto what = operation_named(name)) return *what;
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
