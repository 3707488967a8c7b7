// SPDX-License-Identifier: MIT
//
// Formats and keys: what is accepted, what is refused, and that encoded keys compare as their fields do.
#include "wiscsort/error.hpp"
#include "wiscsort/format/entry.hpp"
#include "wiscsort/format/key_spec.hpp"
#include "wiscsort/units.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace wiscsort {

namespace {

std::string key(const key_spec::options& options, std::string_view line) {
    const key_spec keys(options, record_format{});
    std::string buffer;
    return std::string(keys.key_of(line, buffer));
}

key_spec::options numeric(bool reverse = false) {
    key_spec::options options;
    options.numeric = true;
    options.reverse = reverse;
    options.stable = true;
    return options;
}

} // namespace

TEST(Format, Names) {
    EXPECT_EQ(record_format::parse("fixed:100").text(), "fixed:100");
    EXPECT_EQ(record_format::parse("lines").text(), "lines");
    EXPECT_EQ(record_format::parse("prefixed:u32le").text(), "prefixed:u32le");
    for (const char* bad : {"", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:1x", "line",
                            "prefixed", "fixed:99999999999999999999"})
        EXPECT_THROW(record_format::parse(bad), usage_error) << bad;
}

TEST(Format, Sizes) {
    EXPECT_EQ(parse_bytes("512M", "x"), 512 * MiB);
    EXPECT_EQ(parse_bytes("1.5GiB", "x"), 3 * GiB / 2);
    EXPECT_EQ(parse_bytes("7", "x"), 7U);
    for (const char* bad : {"", "M", "5X", "-1", "1MM", "nan", "1e400G", "99999999T"})
        EXPECT_THROW(parse_bytes(bad, "x"), usage_error) << bad;
}

// Numbers of the same value have the same key, others compare as the numbers do.
TEST(Key, NumbersCompareByValue) {
    const std::vector<std::vector<std::string>> ascending = {
        {"-1000"},
        {"-999.5", "-0999.50 x"},
        {"-3", "  -3", "-3.0", "-003"},
        {"-.25"},
        {"-.2", "-0.20"},
        {"", "0", "-0", "x", "-", ".", "000", "+1", "-.0", "\2001"},
        {".001"},
        {".01"},
        {"1", "01", "1.", "1e9", "1\2000"},
        {"1.5"},
        {"2"},
        {"10"},
        {std::string(300, '9')},
        {"1" + std::string(300, '0')}};
    for (const bool reverse : {false, true})
        for (std::size_t i = 0; i < ascending.size(); ++i)
            for (const std::string& a : ascending[i])
                for (std::size_t j = 0; j < ascending.size(); ++j)
                    for (const std::string& b : ascending[j]) {
                        const std::string x = key(numeric(reverse), a),
                                          y = key(numeric(reverse), b);
                        const bool less = reverse ? y < x : x < y;
                        EXPECT_EQ(less, i < j) << a << " " << b;
                    }
}

// A field that is shorter comes first, whatever the next field is.
TEST(Key, FieldsDoNotRunIntoEachOther) {
    key_spec::options options;
    options.ranges = {"0:2", "4:2"};
    const auto k = [&](std::string_view line) { return key(options, line); };
    EXPECT_LT(k("a"), k(std::string_view("a\0", 2)));
    EXPECT_LT(k(std::string_view("a\0\0\0zz", 6)), k(std::string_view("a\1\0\0aa", 6)));
    EXPECT_LT(k("ab..a"), k("ab..aa"));
    EXPECT_EQ(k("ab..cdef"), k("abxxcdgh"));
}

TEST(Key, RefusesWhatMakesNoSense) {
    const record_format lines, fixed = record_format::parse("fixed:10");
    const auto refused = [](key_spec::options options, const record_format& format) {
        EXPECT_THROW(key_spec(options, format), usage_error);
    };
    for (const char* bad : {"", "1", ":", "1:", ":1", "1:0", "a:1", "0:-1", "1:2:3"}) {
        key_spec::options options;
        options.ranges = {bad};
        refused(options, lines);
    }
    for (const char* bad : {"0", "", "x", "1.0", "1,", "1,2,3", "1q", "1.x", "1,2.", "1r2"}) {
        key_spec::options options;
        options.fields = {bad};
        refused(options, lines);
    }
    key_spec::options outside;
    outside.ranges = {"8:3"};
    refused(outside, fixed);
    outside.ranges = {"18446744073709551615:1"};
    refused(outside, fixed);
    key_spec::options fields;
    fields.fields = {"1"};
    refused(fields, fixed);
    fields.ranges = {"0:1"};
    refused(fields, lines);
}

TEST(Entry, OrdersAsTenBytesAndThePositionDo) {
    const auto less = [](std::string_view a, std::uint64_t i, std::string_view b, std::uint64_t j,
                         bool reverse = false) {
        return make_entry(a, 0, reverse, i) < make_entry(b, 0, reverse, j);
    };
    EXPECT_TRUE(less("a", 9, "b", 1));
    EXPECT_TRUE(less("abcdefghia", 9, "abcdefghib", 1));
    EXPECT_TRUE(less("abcdefghij", 1, "abcdefghijk", 2));
    EXPECT_TRUE(less("ab", 9, "abc", 1));
    EXPECT_TRUE(less("b", 9, "a", 1, true));
    EXPECT_TRUE(less("a", 1, "a", 2, true));
    EXPECT_TRUE(less("\x7f", 1, "\x80", 0));
    EXPECT_EQ(make_entry("xyz", 5, false, 77).position(), 77U);
    EXPECT_EQ(common_prefix("abcdefghijkl", "abcdefghiXkl"), 9U);
    EXPECT_EQ(common_prefix("abc", "abcd"), 3U);
}

} // namespace wiscsort
