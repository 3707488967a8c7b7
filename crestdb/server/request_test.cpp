// SPDX-License-Identifier: MIT
//
// Requests however they are cut, and what must be refused.
#include "crestdb/server/request.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace crestdb::server {

namespace {

using result = request_parser::result;
constexpr std::size_t most_bulk = 1 << 20;

// All requests of a stream that arrives `step` bytes at a time; the error, if one ended it, is the last.
std::vector<std::vector<std::string>> parse_all(const std::string& stream, std::size_t step,
                                                bool authenticated = true) {
    std::vector<std::vector<std::string>> found;
    request_parser parser;
    std::string kept;
    for (std::size_t at = 0; at < stream.size(); at += step) {
        kept += stream.substr(at, step);
        for (;;) {
            // A copy of its own, so that a view beyond what was given is seen by a sanitizer.
            const std::vector<char> given(kept.begin(), kept.end());
            const result r = parser.parse({given.data(), given.size()}, authenticated, most_bulk);
            if (r == result::error) {
                found.push_back({parser.error()});
                return found;
            }
            if (r == result::incomplete) break;
            std::vector<std::string> args;
            for (const auto arg : parser.arguments()) args.emplace_back(arg);
            found.push_back(args);
            kept.erase(0, parser.used());
            if (kept.empty()) break;
        }
    }
    return found;
}

std::string error_of(const std::string& stream, bool authenticated = true) {
    const auto found = parse_all(stream, 1, authenticated);
    return found.empty() || found.back().size() != 1 ? "" : found.back()[0];
}

TEST(Requests, AreTheSameHoweverTheyAreCut) {
    const std::string stream = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
                               "PING\r\n"
                               "*0\r\n"
                               "\r\n"
                               "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\na\r\nb\n\r\n"
                               "set \"a b\" 'c\\'d' \"\\x41\\n\"\n"
                               "*-1\r\n*1\r\n$4\r\nquit\r\n";
    const std::vector<std::vector<std::string>> expected = {
        {"GET", "k"}, {"PING"}, {}, {}, {"SET", "", "a\r\nb\n"}, {"set", "a b", "c'd", "A\n"},
        {},           {"quit"}};
    for (std::size_t step = 1; step <= stream.size(); ++step)
        EXPECT_EQ(parse_all(stream, step), expected) << "in pieces of " << step;
}

TEST(Requests, WhatIsNoRequestIsRefused) {
    EXPECT_EQ(error_of("*a\r\n"), "ERR Protocol error: invalid multibulk length");
    EXPECT_EQ(error_of("*1048577\r\n"), "ERR Protocol error: invalid multibulk length");
    EXPECT_EQ(error_of("*99999999999999999999\r\n"),
              "ERR Protocol error: invalid multibulk length");
    EXPECT_EQ(error_of("*1\r\n+x\r\n"), "ERR Protocol error: expected '$', got '+'");
    EXPECT_EQ(error_of("*1\r\n$-1\r\n"), "ERR Protocol error: invalid bulk length");
    EXPECT_EQ(error_of("*1\r\n$x\r\n"), "ERR Protocol error: invalid bulk length");
    EXPECT_EQ(error_of("*1\r\n$1048577\r\n"), "ERR Protocol error: invalid bulk length");
    EXPECT_EQ(error_of("get \"a\n"), "ERR Protocol error: unbalanced quotes in request");
    EXPECT_EQ(error_of("get \"a\"b\n"), "ERR Protocol error: unbalanced quotes in request");
}

TEST(Requests, LinesHaveALimit) {
    const std::string line(request_parser::most_line + 1, 'x');
    EXPECT_EQ(parse_all(line, 4096).back()[0], "ERR Protocol error: too big inline request");
    EXPECT_EQ(parse_all("*" + line, 4096).back()[0],
              "ERR Protocol error: too big mbulk count string");
    EXPECT_EQ(parse_all("*1\r\n$" + line, 4096).back()[0],
              "ERR Protocol error: too big bulk count string");
}

TEST(Requests, StrangersMaySendLittle) {
    EXPECT_EQ(error_of("*11\r\n", false), "ERR Protocol error: unauthenticated multibulk length");
    EXPECT_EQ(error_of("*1\r\n$16385\r\n", false),
              "ERR Protocol error: unauthenticated bulk length");
    EXPECT_EQ(error_of("*10\r\n$16384\r\n", false), "");
}

TEST(Requests, AnAnnouncedSizeIsWhatIsNeeded) {
    request_parser parser;
    const std::string head = "*2\r\n$3\r\nGET\r\n$1000\r\nabc";
    EXPECT_EQ(parser.parse(head, true, most_bulk), result::incomplete);
    EXPECT_EQ(parser.needed(), head.size() - 3 + 1000 + 2);
}

} // namespace

} // namespace crestdb::server
