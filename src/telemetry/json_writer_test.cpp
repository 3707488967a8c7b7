// SPDX-License-Identifier: MIT
//
// Everything written is JSON to an independent parser and reads back as what was put in.
#include "telemetry/json_writer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>

using nlohmann::json;
using obase::telemetry::json_writer;

namespace {

std::string one_member(std::string_view key, auto value) {
    json_writer writer;
    writer.begin_object();
    writer.member(key, value);
    writer.end_object();
    return std::move(writer).text();
}

TEST(json_writer, nests_and_separates) {
    json_writer writer;
    writer.begin_object();
    writer.key("empty");
    writer.begin_array();
    writer.end_array();
    writer.key("list");
    writer.begin_array();
    writer.value(std::uint64_t{1});
    writer.begin_object();
    writer.member("a", 0.5);
    writer.member("b", std::string_view("x"));
    writer.end_object();
    writer.value(std::uint64_t{2});
    writer.end_array();
    writer.member("last", std::uint64_t{3});
    writer.end_object();
    EXPECT_EQ(std::move(writer).text(), R"({"empty":[],"list":[1,{"a":0.5,"b":"x"},2],"last":3})");
}

TEST(json_writer, escapes_what_must_be_escaped) {
    const std::string text("quote\" back\\ nul\0 tab\t line\n del\x7f", 34);
    const json parsed = json::parse(one_member(text, std::string_view(text)));
    EXPECT_EQ(parsed.begin().key(), text);
    EXPECT_EQ(parsed.begin().value().get<std::string>(), text);
}

TEST(json_writer, keeps_utf_8_and_replaces_what_is_not) {
    const std::string good = "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF \xED\x9F\xBF";
    EXPECT_EQ(json::parse(one_member("k", std::string_view(good)))["k"].get<std::string>(), good);
    // A stray continuation, an overlong form, a surrogate, beyond the last plane, cut off.
    for (const char* bad : {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
        const std::string text = one_member("k", std::string_view(bad));
        ASSERT_TRUE(json::accept(text)) << text;
        EXPECT_NE(json::parse(text)["k"].get<std::string>().find("\xEF\xBF\xBD"),
                  std::string::npos);
    }
}

RC_GTEST_PROP(json_writer, any_bytes_give_valid_json, (const std::string& text)) {
    RC_ASSERT(json::accept(one_member(text, std::string_view(text))));
}

RC_GTEST_PROP(json_writer, numbers_read_back_exactly, (std::uint64_t whole, double real)) {
    RC_ASSERT(json::parse(one_member("k", whole))["k"].get<std::uint64_t>() == whole);
    RC_ASSERT(json::parse(one_member("k", real))["k"].get<double>() == real);
}

TEST(json_writer, says_null_for_what_is_no_number) {
    for (const double odd :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
        EXPECT_TRUE(json::parse(one_member("k", odd))["k"].is_null());
    }
}

} // namespace
