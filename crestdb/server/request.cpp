// SPDX-License-Identifier: MIT
#include "crestdb/server/request.hpp"

#include "crestdb/server/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace crestdb::server {

void request_parser::reset() noexcept {
    state_ = state::start;
    at_ = looked_ = needed_ = bulk_ = 0;
    left_ = 0;
    pieces_.clear();
}

request_parser::result request_parser::fail(std::string why) {
    error_ = "ERR Protocol error: " + why;
    return result::error;
}

request_parser::result request_parser::parse(std::string_view from, bool authenticated,
                                             std::size_t most_bulk) {
    if (state_ == state::start) {
        if (from.empty()) return result::incomplete;
        arguments_.clear();
        pieces_.clear();
        state_ = from[0] == '*' ? state::count : state::line;
        at_ = looked_ = 0;
    }
    if (state_ == state::line) return parse_inline(from);
    for (;;) {
        if (state_ == state::bulk) {
            // The two bytes behind a bulk are skipped without a look, as Redis does.
            needed_ = at_ + bulk_ + 2;
            if (from.size() < needed_) return result::incomplete;
            pieces_.push_back({at_, bulk_});
            at_ = looked_ = needed_;
            --left_;
            state_ = state::bulk_header;
        }
        if (state_ == state::bulk_header && left_ == 0) {
            for (const piece& p : pieces_) arguments_.push_back(from.substr(p.at, p.size));
            state_ = state::start;
            needed_ = 0;
            return result::complete;
        }
        const std::size_t end = looked_ < from.size() ? from.find('\r', looked_) : from.npos;
        if (end == from.npos || end + 1 >= from.size()) {
            looked_ = end == from.npos ? from.size() : end;
            needed_ = from.size() + 1;
            if (from.size() - at_ > most_line)
                return fail(state_ == state::count ? "too big mbulk count string"
                                                   : "too big bulk count string");
            return result::incomplete;
        }
        const std::string_view line = from.substr(at_, end - at_);
        if (state_ == state::count) {
            const auto count = parse_integer(line.substr(1));
            if (!count || *count > most_arguments) return fail("invalid multibulk length");
            if (*count > 10 && !authenticated) return fail("unauthenticated multibulk length");
            left_ = std::max<std::int64_t>(*count, 0);
            at_ = looked_ = end + 2;
            state_ = state::bulk_header;
            continue;
        }
        if (line.empty() || line[0] != '$') {
            const char got = line.empty() ? '\r' : line[0];
            return fail(std::string("expected '$', got '") + got + "'");
        }
        const auto size = parse_integer(line.substr(1));
        if (!size || *size < 0 || static_cast<std::uint64_t>(*size) > most_bulk)
            return fail("invalid bulk length");
        if (*size > 16384 && !authenticated) return fail("unauthenticated bulk length");
        bulk_ = static_cast<std::size_t>(*size);
        at_ = looked_ = end + 2;
        state_ = state::bulk;
    }
}

request_parser::result request_parser::parse_inline(std::string_view from) {
    const std::size_t end = from.find('\n', looked_);
    if (end == from.npos) {
        looked_ = from.size();
        needed_ = from.size() + 1;
        if (from.size() > most_line) return fail("too big inline request");
        return result::incomplete;
    }
    if (end > most_line) return fail("too big inline request");
    std::string_view line = from.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!split_words(line)) return fail("unbalanced quotes in request");
    for (const std::string& word : words_) arguments_.push_back(word);
    at_ = end + 1;
    state_ = state::start;
    return result::complete;
}

bool request_parser::split_words(std::string_view line) {
    const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    const auto hex = [](char c) -> int {
        if (c >= '0' && c <= '9') return c - '0';
        c = static_cast<char>(c | 32);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    words_.clear();
    // A zero byte ends the line, as a string of C.
    line = line.substr(0, line.find('\0'));
    std::size_t i = 0;
    for (;;) {
        while (i < line.size() && is_space(line[i])) ++i;
        if (i >= line.size()) return true;
        std::string word;
        char quote = 0;
        for (;; ++i) {
            if (i >= line.size()) {
                if (quote != 0) return false;
                break;
            }
            const char c = line[i];
            if (quote == '"') {
                if (c == '\\' && i + 3 < line.size() && line[i + 1] == 'x' &&
                    hex(line[i + 2]) >= 0 && hex(line[i + 3]) >= 0) {
                    word += static_cast<char>(hex(line[i + 2]) * 16 + hex(line[i + 3]));
                    i += 3;
                } else if (c == '\\' && i + 1 < line.size()) {
                    ++i;
                    switch (line[i]) {
                    case 'n':
                        word += '\n';
                        break;
                    case 'r':
                        word += '\r';
                        break;
                    case 't':
                        word += '\t';
                        break;
                    case 'b':
                        word += '\b';
                        break;
                    case 'a':
                        word += '\a';
                        break;
                    default:
                        word += line[i];
                    }
                } else if (c == '"') {
                    if (i + 1 < line.size() && !is_space(line[i + 1])) return false;
                    ++i;
                    break;
                } else {
                    word += c;
                }
            } else if (quote == '\'') {
                if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\'') {
                    ++i;
                    word += '\'';
                } else if (c == '\'') {
                    if (i + 1 < line.size() && !is_space(line[i + 1])) return false;
                    ++i;
                    break;
                } else {
                    word += c;
                }
            } else if (is_space(c)) {
                break;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else {
                word += c;
            }
        }
        words_.push_back(std::move(word));
    }
}

} // namespace crestdb::server
