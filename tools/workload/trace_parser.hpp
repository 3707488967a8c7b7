// SPDX-License-Identifier: MIT
//
// trace_parser: makes a trace from its decompressed bytes, which come in pieces of any size. What
// the formats are and what is refused is said in trace.hpp; where the pieces begin and end changes
// nothing (trace_fuzz.cpp holds it to that).
//
//     workload::trace_parser parser("name for messages", options);
//     while (parser.wants_more() && ...) parser.feed(piece);
//     workload::trace t = parser.finish();
//
// Files are read by read_trace().
#pragma once

#include "tools/workload/trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace workload {

class trace_parser {
  public:
    trace_parser(std::string name, const trace_options& options);

    // Both throw std::runtime_error; the parser is of no use then.
    void feed(std::string_view piece);
    trace finish();

    // False once max_operations are there; feed() ignores what comes then, even if it is malformed.
    bool wants_more() const noexcept { return result_.entries_.size() < options_.max_operations; }
    // Lines (of be32: ids, of oracle: records) that were complete so far.
    std::uint64_t lines() const noexcept { return lines_; }

  private:
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };

    static constexpr std::array<std::string_view, 5> cachelib_names = {"key", "key_size", "op",
                                                                       "op_count", "size"};

    [[noreturn]] void refuse(const std::string& expected, std::string_view found) const;
    void line(std::string_view text);
    void begin(std::string_view first_line);
    bool is_header(std::string_view first_line) const;
    void operations_line(std::string_view text);
    void twitter_line(std::string_view text);
    void cachelib_header(std::string_view text);
    void cachelib_line(std::string_view text);
    void arc_line(std::string_view text);
    std::size_t record_size() const noexcept;
    void record(std::string_view bytes);
    std::uint64_t number(std::string_view what, std::string_view text, std::uint64_t limit) const;
    operation operation_of(std::string_view name) const;
    std::uint32_t key_of_text(std::string_view text);
    std::uint32_t key_of_number(std::uint64_t id);
    std::uint32_t next_key() const;
    void add(operation what, std::uint32_t key, std::uint64_t key_length,
             std::uint64_t value_length);

    std::string name_;
    trace_options options_;
    trace result_;
    std::uint64_t lines_ = 0;
    std::string begun_;        // a line, or an id, of which more is to come
    std::string_view current_; // the line, for messages
    std::size_t columns_ = 0;  // cachelib: of the header
    std::array<std::size_t, cachelib_names.size()> cachelib_columns_{}; // counted from 1
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::unordered_map<std::string, std::uint32_t, text_hash, std::equal_to<>> texts_;
};

} // namespace workload
