// SPDX-License-Identifier: MIT
//
// server::request_parser: requests out of the bytes of a connection, however they are cut into pieces.
//
// Two forms, as in Redis: an array of bulk strings ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), and a line
// of words, some of which may be quoted ("GET k\r\n"). Nothing is copied: arguments are views of the
// bytes that were given. State is kept between calls, so a request that arrives byte by byte is
// read once, not once per byte.
//
// Bounds: a line is at most 64 KiB, a request at most 2^20 arguments (10 before the client has
// authenticated) of at most 512 MiB each (16 KiB before), so a client cannot announce memory that the
// server would set aside: nothing is allocated for what was only announced.
//
// Threads: one at a time. Errors: result::error, with error() as the reply; the connection is then of
// no use any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crestdb::server {

class request_parser {
  public:
    enum class result { complete, incomplete, error };

    static constexpr std::size_t most_line = 64 * 1024;
    static constexpr std::int64_t most_arguments = 1024 * 1024;

    // `from`: all bytes since the last complete request, which are the same bytes as in the call
    // before and perhaps more. complete: arguments() and used() are good, until the bytes go; an empty
    // request (an empty line, "*0") has no arguments.
    result parse(std::string_view from, bool authenticated, std::size_t most_bulk);

    const std::vector<std::string_view>& arguments() const noexcept { return arguments_; }
    // Bytes of the request that is complete.
    std::size_t used() const noexcept { return at_; }
    // Bytes that must be there, counted from the beginning, before parse() can get further.
    std::size_t needed() const noexcept { return needed_; }
    const std::string& error() const noexcept { return error_; }
    void reset() noexcept;
    // After a request of very many arguments, which are of no use any more.
    void release_memory() noexcept {
        std::vector<piece>().swap(pieces_);
        std::vector<std::string_view>().swap(arguments_);
    }

  private:
    enum class state { start, count, bulk_header, bulk, line };

    result fail(std::string why);
    result parse_inline(std::string_view from);
    bool split_words(std::string_view line);

    state state_ = state::start;
    std::size_t at_ = 0;     // everything before is understood
    std::size_t looked_ = 0; // no end of line before
    std::size_t needed_ = 0;
    std::int64_t left_ = 0; // arguments that are to come
    std::size_t bulk_ = 0;
    struct piece {
        std::size_t at, size;
    };
    std::vector<piece> pieces_;
    std::vector<std::string_view> arguments_;
    std::vector<std::string> words_; // of an inline request, unquoted
    std::string error_;
};

} // namespace crestdb::server
