// SPDX-License-Identifier: MIT
//
// Where a record ends. A file is a sequence of records of one format:
//
//   fixed:N        N bytes each; the file's size is a multiple of N
//   lines          bytes up to and with a terminator ('\n', or NUL with -z). What follows the last
//                  terminator is a record too, and is written with a terminator added
//   prefixed:u32le a little-endian length of four bytes, then as many bytes
//
// The *body* of a record is what keys are taken from: all of a fixed record, a line without its
// terminator, a prefixed record without its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wiscsort {

struct record_format {
    enum class kinds { fixed, lines, prefixed };
    kinds kind = kinds::lines;
    std::uint64_t size = 0; // bytes of a record; fixed only
    char terminator = '\n'; // lines only

    // "fixed:100", "lines", "prefixed:u32le". Throws usage_error.
    static record_format parse(std::string_view text);
    std::string text() const;
    bool fixed() const { return kind == kinds::fixed; }
    // Bytes that every record has at least.
    std::uint64_t least_size() const {
        return kind == kinds::fixed ? size : kind == kinds::lines ? 1 : 4;
    }
};

// A record in memory. `stored` is what the file holds of it; only the last line of a file may lack
// its terminator, and then `written_size` is one more.
struct record_view {
    std::string_view stored;
    std::string_view body;
    std::uint64_t written_size = 0;
};

// What find_record() found at the beginning of some bytes.
enum class found { whole, torn };

// The record that begins at `at`, with `left` bytes until the end of its file. For lines every
// non-empty rest is whole. `torn`: the file ends inside the record (then `view` is not set).
// Precondition: left > 0. Cost: lines, a search for the terminator; otherwise constant.
found find_record(const record_format& format, const char* at, std::uint64_t left,
                  record_view& view);

// A little-endian number of four bytes at any address.
std::uint32_t load_u32le(const char* at);

} // namespace wiscsort
