// SPDX-License-Identifier: MIT
//
// Options: every row can be set from both sides and reads back; nothing malformed is taken, and the
// message says what, where and what was expected; the document lists exactly the rows.
#include <obase/options.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <limits>
#include <set>
#include <sstream>

using namespace obase;

namespace {

bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST(options, defaults_are_those_of_the_papers) {
    const options defaults;
    EXPECT_EQ(defaults.mode, run_mode::move);
    EXPECT_EQ(defaults.window_seconds, 120);
    EXPECT_EQ(defaults.cold_threshold, 3u);
    EXPECT_EQ(defaults.promotion_target, 0.01);
    EXPECT_EQ(defaults.controller, controller_kind::additive);
    EXPECT_EQ(defaults.controller_factor, 2);
    EXPECT_TRUE(defaults.hint_cold);
    EXPECT_TRUE(defaults.hint_pageout);
    EXPECT_FALSE(defaults.hint_hugepage);
    EXPECT_TRUE(defaults.out_of_range().empty());
}

TEST(options, every_row_accepts_its_own_text_by_either_name) {
    const options defaults;
    for (const option_row& row : option_rows()) {
        options target;
        EXPECT_EQ(defaults.get(row.name), row.built_in);
        EXPECT_EQ(target.set(row.name, row.built_in), "");
        EXPECT_EQ(target.set(row.environment, row.built_in), "");
        EXPECT_EQ(target.get(row.environment), row.built_in);
        EXPECT_EQ(target.origin(row.name), option_origin::code);
    }
}

TEST(options, rows_are_unique_and_described) {
    std::set<std::string_view> names;
    for (const option_row& row : option_rows()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_TRUE(row.environment.starts_with("OBASE_")) << row.name;
        EXPECT_FALSE(row.help.empty()) << row.name;
        EXPECT_FALSE(row.expected.empty()) << row.name;
        EXPECT_EQ(row.help.find_first_of("\n|"), std::string_view::npos) << row.name;
    }
    EXPECT_EQ(names.size(), option_count);
}

TEST(options, accepted_values_reach_their_fields) {
    options target;
    const std::pair<const char*, const char*> given[] = {
        {"mode", "observe"},     {"window_seconds", "2.5"},    {"controller", "multiplicative"},
        {"hint_cold", "off"},    {"hint_hugepage", "1"},       {"cold_backing", "file:/mnt/a b"},
        {"heap_reserve", "3G"},  {"cold_threshold", "32"},     {"time_scale", "1000"},
        {"poison_freed", "yes"}, {"collector_cpu_share", "1"}, {"promotion_target", "5e-3"}};
    for (const auto& [name, value] : given) EXPECT_EQ(target.set(name, value), "") << name;
    EXPECT_EQ(target.mode, run_mode::observe);
    EXPECT_EQ(target.window_seconds, 2.5);
    EXPECT_EQ(target.controller, controller_kind::multiplicative);
    EXPECT_FALSE(target.hint_cold);
    EXPECT_TRUE(target.hint_hugepage);
    EXPECT_EQ(target.cold_directory(), "/mnt/a b");
    EXPECT_EQ(target.heap_reserve, std::uint64_t{3} << 30);
    EXPECT_EQ(target.get("heap_reserve"), "3G");
    EXPECT_EQ(target.cold_threshold, 32u);
    EXPECT_TRUE(target.poison_freed);
    EXPECT_EQ(target.collector_cpu_share, 1);
    EXPECT_EQ(target.promotion_target, 0.005);
    EXPECT_DOUBLE_EQ(target.scaled_window_seconds(), 0.0025);
    EXPECT_DOUBLE_EQ(target.scaled_minute_seconds(), 0.06);
    EXPECT_EQ(options().cold_directory(), "");
}

TEST(options, bytes_are_taken_in_powers_of_1024) {
    const std::pair<const char*, unsigned> given[] = {{"5", 0},   {"5K", 10}, {"5M", 20},
                                                      {"5G", 30}, {"5T", 40}, {"0", 64}};
    for (const auto& [value, shift] : given) {
        options target;
        EXPECT_EQ(target.set("heap_reserve", value), "");
        EXPECT_EQ(target.heap_reserve, shift == 64 ? 0 : std::uint64_t{5} << shift) << value;
        EXPECT_EQ(target.get("heap_reserve"), value) << "and read back";
    }
}

TEST(options, both_ends_of_a_range_are_inside) {
    const std::pair<const char*, const char*> given[] = {
        {"cold_threshold", "1"},   {"cold_threshold", "32"},    {"promotion_target", "0"},
        {"promotion_target", "1"}, {"window_seconds", "0.001"}, {"window_seconds", "1000000"},
        {"heap_reserve", "0"},     {"heap_reserve", "64T"},     {"policy", "a-name_of-9-"}};
    for (const auto& [name, value] : given) {
        options target;
        EXPECT_EQ(target.set(name, value), "") << name;
        EXPECT_EQ(target.get(name), value);
    }
}

TEST(options, units_are_written_in_any_way) {
    for (const char* text :
         {"4G", "4g", "4GB", "4gb", "4Gb", "4GiB", "4gib", "4096M", "4294967296"}) {
        options target;
        EXPECT_EQ(target.set("heap_reserve", text), "") << text;
        EXPECT_EQ(target.get("heap_reserve"), "4G");
        EXPECT_EQ(target.set("memory", text), "") << text;
    }
}

TEST(options, malformed_values_change_nothing_and_say_what_was_expected) {
    const std::pair<const char*, const char*> bad[] = {
        {"mode", "Move"},
        {"mode", ""},
        {"mode", "mov"},
        {"window_seconds", "abc"},
        {"window_seconds", "0"},
        {"window_seconds", "-1"},
        {"window_seconds", "nan"},
        {"window_seconds", "inf"},
        {"window_seconds", "1e999"},
        {"window_seconds", "12s"},
        {"window_seconds", " 12"},
        {"window_seconds", ""},
        {"window_seconds", "1,5"},
        {"window_seconds", "0x10"},
        {"cold_threshold", "33"},
        {"cold_threshold", "0"},
        {"cold_threshold", "3.0"},
        {"cold_threshold", "+3"},
        {"cold_threshold", "-3"},
        {"cold_threshold", "99999999999999999999"},
        {"hint_cold", "maybe"},
        {"hint_cold", "2"},
        {"hint_cold", ""},
        {"heap_reserve", "G"},
        {"heap_reserve", "B"},
        {"heap_reserve", "1B"},
        {"heap_reserve", "iB"},
        {"heap_reserve", "1iB"},
        {"heap_reserve", "KiB"},
        {"heap_reserve", "1KKB"},
        {"heap_reserve", "1Ki"},
        {"heap_reserve", "1K B"},
        {"heap_reserve", "1.5G"},
        {"heap_reserve", "20000000T"},
        {"heap_reserve", "16777217T"}, // 2^64 + 1T
        {"heap_reserve", "-1"},
        {"heap_reserve", "65T"},
        {"cold_backing", "file:"},
        {"cold_backing", "/tmp"},
        {"cold_backing", ""},
        {"collector_cpu_share", "0"},
        {"collector_cpu_share", "1.01"},
        {"controller", "MIAD"},
        {"policy", ""},
        {"policy", "Papers"},
        {"policy", "a b"},
        {"policy", "thirty-three-letters-are-too-many"}};
    for (const auto& [name, value] : bad) {
        options target;
        const std::string before = target.get(name);
        const std::string error = target.set(name, value);
        EXPECT_TRUE(error.starts_with(std::string(name) + ": '" + value + "' is not "))
            << name << "=" << value << " gave: " << error;
        EXPECT_EQ(target.get(name), before);
        EXPECT_EQ(target.origin(name), option_origin::built_in);
    }
    options target;
    EXPECT_EQ(target.set("cold_threshold", "99"),
              "cold_threshold: '99' is not a whole number from 1 to 32");
    EXPECT_EQ(target.set("mode", "x"), "mode: 'x' is not off, observe, move or hint");
    EXPECT_EQ(target.set("cold_backing", std::string("file:/a\0b", 9)),
              "cold_backing: 'file:/a\\x00b' is not anon or file:DIR");
    const std::string long_value(1000, 'x');
    EXPECT_LT(target.set("mode", long_value).size(), 200u);
}

TEST(options, unknown_names_are_refused_with_a_suggestion) {
    options target;
    EXPECT_TRUE(holds(target.set("window_second", "1"), "did you mean window_seconds?"));
    EXPECT_TRUE(holds(target.set("OBASE_MOD", "move"), "did you mean OBASE_MODE?"));
    const std::string far = target.set("zzzzzzzzzzzz", "1");
    EXPECT_TRUE(holds(far, "is not an option"));
    EXPECT_FALSE(holds(far, "did you mean"));
    EXPECT_EQ(target.get("zzzz"), "");
}

TEST(options, environment_sets_reports_and_keeps) {
    const char* const environment[] = {"PATH=/bin",
                                       "OBASE_WINDOW_SECONDS=5",
                                       "OBASE_COLD_THRESHOLD=many",
                                       "OBASE_MODE=hint",
                                       "OBASE_HINT_PAGOUT=off",
                                       "OBASE_TEST_TIER=ci",
                                       "OBASE_COLD_BACKING=file:/mnt/x=y",
                                       "OBASE_odd",
                                       nullptr};
    options target;
    const std::vector<std::string> messages = target.apply_environment(environment);
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(messages[0],
              "OBASE_COLD_THRESHOLD: 'many' is not a whole number from 1 to 32; keeping 3");
    EXPECT_TRUE(holds(messages[1], "did you mean OBASE_HINT_PAGEOUT?")) << messages[1];
    EXPECT_EQ(target.window_seconds, 5);
    EXPECT_EQ(target.mode, run_mode::hint);
    EXPECT_EQ(target.cold_directory(), "/mnt/x=y");
    EXPECT_EQ(target.origin("mode"), option_origin::environment);
    EXPECT_EQ(target.origin("cold_threshold"), option_origin::built_in);
    EXPECT_TRUE(target.apply_environment(nullptr).empty());
}

// A shell may export them for another program.
TEST(options, variables_of_handles_are_none_of_ours_and_known) {
    const char* const environment[] = {"OBASE_HANDLES=off",      "OBASE_HANDLES_STRESS=1",
                                       "OBASE_HANDLES_START=2",  "OBASE_HANDLES_STOP=2",
                                       "OBASE_HANDLES_SHARE=.1", "OBASE_HANDLES_TICK_MS=5",
                                       "OBASE_HANDLES_STRES=1",  nullptr};
    options target;
    const std::vector<std::string> messages = target.apply_environment(environment);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0], "'OBASE_HANDLES_STRES' is not a variable of obase; did you mean "
                           "OBASE_HANDLES_STRESS?");
}

TEST(options, of_two_entries_for_one_variable_the_later_counts) {
    const char* const environment[] = {"OBASE_WINDOW_SECONDS=5", "OBASE_WINDOW_SECONDS=6",
                                       "OBASE_WINDOW_SECONDS=soon", nullptr};
    options target;
    const std::vector<std::string> messages = target.apply_environment(environment);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_TRUE(messages[0].ends_with("; keeping 6")) << messages[0];
    EXPECT_EQ(target.window_seconds, 6);
    EXPECT_EQ(target.origin("window_seconds"), option_origin::environment);
}

TEST(options, later_settings_win_and_are_told_apart) {
    const char* const environment[] = {"OBASE_MODE=hint", "OBASE_VERBOSE=1", nullptr};
    options target;
    EXPECT_TRUE(target.apply_environment(environment).empty());
    EXPECT_EQ(target.set("mode", "observe"), "");
    target.window_seconds = 7; // a field leaves no trace but its value
    EXPECT_EQ(target.origin("mode"), option_origin::code);
    EXPECT_EQ(target.origin("verbose"), option_origin::environment);
    EXPECT_EQ(target.origin("window_seconds"), option_origin::code);
    EXPECT_EQ(target.origin("time_scale"), option_origin::built_in);
    const std::string text = target.text();
    EXPECT_TRUE(holds(text, "OBASE_MODE=observe [code]"));
    EXPECT_TRUE(holds(text, "OBASE_VERBOSE=on [environment]"));
    EXPECT_TRUE(holds(text, "OBASE_WINDOW_SECONDS=7 seconds [code]"));
    EXPECT_TRUE(holds(text, "OBASE_TIME_SCALE=1 [default]"));
    EXPECT_TRUE(text.starts_with("obase "));
    for (const option_row& row : option_rows()) {
        EXPECT_TRUE(holds(text, std::string(row.environment) + "=")) << row.name;
    }
}

TEST(options, fields_out_of_range_are_reported) {
    options target;
    target.window_seconds = std::numeric_limits<double>::quiet_NaN();
    target.cold_threshold = 0;
    target.cold_backing = "nowhere";
    target.mode = static_cast<run_mode>(9);
    EXPECT_EQ(target.out_of_range().size(), 4u);
}

RC_GTEST_PROP(options, numbers_read_back_exactly, ()) {
    options target;
    const double seconds = *rc::gen::inRange(1, 1000000000) / 1000.0;
    target.window_seconds = seconds;
    target.heap_reserve = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{64} << 40);
    options copy;
    RC_ASSERT(copy.set("window_seconds", target.get("window_seconds")).empty());
    RC_ASSERT(copy.set("heap_reserve", target.get("heap_reserve")).empty());
    RC_ASSERT(copy.window_seconds == seconds);
    RC_ASSERT(copy.heap_reserve == target.heap_reserve);
}

TEST(options_document, holds_the_table_as_it_is) {
    std::string table = "| variable | default | unit | takes | meaning |\n|---|---|---|---|---|\n";
    for (const option_row& row : option_rows()) {
        table += "| `" + std::string(row.environment) + "` | `" + std::string(row.built_in) +
                 "` | " + std::string(row.unit) + " | " + std::string(row.expected) + " | " +
                 std::string(row.help) + " |\n";
    }
    std::ifstream file(OBASE_OPTIONS_DOCUMENT);
    ASSERT_TRUE(file) << OBASE_OPTIONS_DOCUMENT;
    std::stringstream document;
    document << file.rdbuf();
    EXPECT_TRUE(holds(document.str(), "\n\n" + table + "\n"))
        << "docs/options.md must hold this table:\n"
        << table;
}

} // namespace
