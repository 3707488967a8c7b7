// SPDX-License-Identifier: MIT
//
// The texts of obase::statistics say what the struct holds, in the grammar of their formats, and
// the document lists exactly the rows of the tables.
#include <obase/statistics.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace obase;
using nlohmann::json;

namespace {

// A different number in every row, so that a swapped pair shows.
statistics numbered() {
    statistics made;
    std::uint64_t next = 1;
#define OBASE_NUMBER(kind, type, name, unit, help)                                                 \
    made.name = static_cast<statistic_type::type>(next++);
    OBASE_STATISTICS(OBASE_NUMBER)
    made.heap_count = 4;
    made.heap_names = {"new", "hot", "cold", "large"};
    for (unsigned from = 0; from < 3; ++from)
        for (unsigned to = 0; to < 3; ++to) made.moved_between[from][to] = next++;
    for (unsigned cls = 0; cls < made.heap_count; ++cls) {
        heap_statistics& heap = made.heaps[cls];
#define OBASE_NUMBER_CLASS(kind, type, name, unit, help)                                           \
    heap.name = static_cast<statistic_type::type>(next++);
        OBASE_HEAP_STATISTICS(OBASE_NUMBER_CLASS)
    }
    made.mode = "hint";
    made.protocol = "arming";
    made.promotion_rate = 0.0125;
    made.moved_bytes = std::numeric_limits<std::uint64_t>::max();
    return made;
}

// Checks that `object` holds every row of `from` with its value, and nothing else.
void expect_members(const json& object, const statistics& from, std::size_t others) {
    std::size_t rows = 0;
#define OBASE_EXPECT_MEMBER(kind, type, name, unit, help)                                          \
    EXPECT_EQ(object.at(#name).get<statistic_type::type>(), from.name) << #name;                   \
    ++rows;
    OBASE_STATISTICS(OBASE_EXPECT_MEMBER)
    EXPECT_EQ(object.at("mode"), from.mode);
    EXPECT_EQ(object.at("protocol"), from.protocol);
    EXPECT_EQ(object.size(), rows + 4 + others); // mode, protocol, moved, heaps
    std::set<std::string> directions;
    for (const json& one : object.at("moved")) {
        const auto source = one.at("from").get<std::string>();
        const auto target = one.at("to").get<std::string>();
        EXPECT_EQ(one.at("objects"), from.moved(source, target));
        directions.insert(source + " to " + target);
    }
    EXPECT_EQ(directions,
              (std::set<std::string>{"new to hot", "new to cold", "hot to cold", "cold to hot"}));
    EXPECT_EQ(from.moved("cold", "hot"), from.moved_between[2][1]);
    ASSERT_EQ(object.at("heaps").size(), from.heap_count);
    for (unsigned cls = 0; cls < from.heap_count; ++cls) {
        const json& heap = object.at("heaps")[cls];
        EXPECT_EQ(heap.at("heap"), from.heap_name(cls));
#define OBASE_EXPECT_CLASS_MEMBER(kind, type, name, unit, help)                                    \
    EXPECT_EQ(heap.at(#name).get<statistic_type::type>(), from.heaps[cls].name) << #name;
        OBASE_HEAP_STATISTICS(OBASE_EXPECT_CLASS_MEMBER)
    }
}

TEST(statistics_json, holds_every_row) {
    expect_members(json::parse(numbered().to_json()), numbered(), 0);
}

TEST(statistics_json, history_is_an_array_of_the_same_rows) {
    window_record first{1, 1700000000.25, numbered()}, second{2, 1700000120.5, numbered()};
    second.values.scanned_guides = 99;
    const json parsed = json::parse(to_json({first, second}));
    ASSERT_EQ(parsed.size(), 2u);
    EXPECT_EQ(parsed[0].at("index"), 1);
    EXPECT_EQ(parsed[1].at("end_unix_seconds"), 1700000120.5);
    expect_members(parsed[0], first.values, 2);
    expect_members(parsed[1], second.values, 2);
    EXPECT_EQ(json::parse(to_json({})), json::array());
}

struct sample {
    std::string labels;
    std::string value;
};
struct metric {
    std::string help, type;
    std::vector<sample> samples;
};

// A parser of the text exposition format 0.0.4 as strict as a scraper: HELP and TYPE once and
// before the samples, one group per metric, label syntax, numbers, a final newline.
std::map<std::string, metric> parse_prometheus(const std::string& text) {
    static const std::regex head(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
    static const std::regex line(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)+\})? ([^ ]+))re");
    std::map<std::string, metric> found;
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    std::string current;
    for (std::string one; std::getline(lines, one);) {
        std::smatch parts;
        if (std::regex_match(one, parts, head)) {
            const std::string name = parts[2];
            metric& entry = found[name];
            EXPECT_TRUE(entry.samples.empty()) << "after its samples: " << one;
            std::string& field = parts[1] == "HELP" ? entry.help : entry.type;
            EXPECT_TRUE(field.empty()) << "twice: " << one;
            field = parts[3];
            current = name;
        } else if (std::regex_match(one, parts, line)) {
            EXPECT_EQ(parts[1], current) << "outside its group: " << one;
            found[parts[1]].samples.push_back({parts[2], parts[5]});
        } else {
            ADD_FAILURE() << "not a line of the format: " << one;
        }
    }
    return found;
}

TEST(statistics_prometheus, is_well_formed_and_complete) {
    const statistics from = numbered();
    const auto metrics = parse_prometheus(from.to_prometheus());
    std::size_t rows = 1;
    for (const auto& [name, entry] : metrics) {
        EXPECT_TRUE(name.starts_with("obase_")) << name;
        EXPECT_FALSE(entry.help.empty()) << name;
        EXPECT_TRUE(entry.type == "counter" || entry.type == "gauge") << name;
        EXPECT_EQ(entry.type == "counter", name.ends_with("_total")) << name;
    }
#define OBASE_EXPECT_METRIC(kind, type_, name, unit, help_)                                        \
    {                                                                                              \
        const std::string full =                                                                   \
            std::string("obase_" #name) + (std::string(#kind) == "counter" ? "_total" : "");       \
        ASSERT_TRUE(metrics.contains(full)) << full;                                               \
        const metric& entry = metrics.at(full);                                                    \
        EXPECT_EQ(entry.type, #kind);                                                              \
        EXPECT_EQ(entry.help, help_);                                                              \
        ASSERT_EQ(entry.samples.size(), 1u);                                                       \
        EXPECT_EQ(entry.samples[0].labels, "");                                                    \
        std::istringstream number(entry.samples[0].value);                                         \
        statistic_type::type_ value{};                                                             \
        EXPECT_TRUE(number >> value) << full;                                                      \
        EXPECT_EQ(value, from.name) << full;                                                       \
        ++rows;                                                                                    \
    }
    OBASE_STATISTICS(OBASE_EXPECT_METRIC)
#define OBASE_EXPECT_HEAP_METRIC(kind, type_, name, unit, help_)                                   \
    {                                                                                              \
        ASSERT_TRUE(metrics.contains("obase_heap_" #name));                                        \
        const metric& entry = metrics.at("obase_heap_" #name);                                     \
        ASSERT_EQ(entry.samples.size(), from.heap_count);                                          \
        for (unsigned cls = 0; cls < from.heap_count; ++cls) {                                     \
            EXPECT_EQ(entry.samples[cls].labels,                                                   \
                      "{heap=\"" + std::string(from.heap_name(cls)) + "\"}");                      \
            std::istringstream number(entry.samples[cls].value);                                   \
            statistic_type::type_ value{};                                                         \
            EXPECT_TRUE(number >> value);                                                          \
            EXPECT_EQ(value, from.heaps[cls].name);                                                \
        }                                                                                          \
        ++rows;                                                                                    \
    }
    OBASE_HEAP_STATISTICS(OBASE_EXPECT_HEAP_METRIC)
    ASSERT_TRUE(metrics.contains("obase_moved_total"));
    const metric& moved = metrics.at("obase_moved_total");
    ASSERT_EQ(moved.samples.size(), 4u);
    EXPECT_EQ(moved.samples[0].labels, "{from=\"new\",to=\"hot\"}");
    EXPECT_EQ(moved.samples[0].value, std::to_string(from.moved("new", "hot")));
    ++rows;
    EXPECT_EQ(metrics.size(), rows);
    EXPECT_EQ(metrics.at("obase_info").samples[0].labels, "{mode=\"hint\",protocol=\"arming\"}");
}

TEST(statistics_prometheus, odd_numbers_and_labels_stay_parsable) {
    statistics odd = numbered();
    odd.promotion_rate = std::numeric_limits<double>::infinity();
    odd.wait_seconds = std::numeric_limits<double>::quiet_NaN();
    odd.mode = "a\"b\\c\nd";
    const auto metrics = parse_prometheus(odd.to_prometheus());
    EXPECT_EQ(metrics.at("obase_promotion_rate").samples[0].value, "+Inf");
    EXPECT_EQ(metrics.at("obase_wait_seconds_total").samples[0].value, "NaN");
}

TEST(statistics_text, has_a_line_for_every_row) {
    const std::string text = numbered().to_text();
    for (const statistic_row& row : statistic_rows()) {
        EXPECT_NE(text.find("  " + std::string(row.name) + " "), std::string::npos) << row.name;
    }
    EXPECT_NE(text.find("heap large\n"), std::string::npos);
    EXPECT_NE(text.find("  moved from cold to hot "), std::string::npos) << text;
    statistics few;
    few.hint_cold_bytes = 1536 * 1024;
    EXPECT_NE(few.to_text().find("1572864 bytes (1.5 MiB)"), std::string::npos);
}

TEST(statistics_tables, names_are_unique_and_carry_their_base_unit) {
    for (const auto& rows : {statistic_rows(), heap_statistic_rows()}) {
        std::set<std::string_view> names;
        for (const statistic_row& row : rows) {
            EXPECT_TRUE(names.insert(row.name).second) << row.name;
            EXPECT_EQ(row.unit == "bytes", row.name.ends_with("_bytes")) << row.name;
            EXPECT_EQ(row.unit == "seconds", row.name.ends_with("_seconds")) << row.name;
            EXPECT_FALSE(row.unit.empty()) << row.name;
            EXPECT_EQ(row.help.find_first_of("\n\\|"), std::string_view::npos) << row.name;
        }
    }
}

std::string table_of(const std::vector<statistic_row>& rows) {
    std::string text = "| name | kind | unit | meaning |\n|---|---|---|---|\n";
    for (const statistic_row& row : rows) {
        text += "| `" + std::string(row.name) + "` | " + std::string(row.kind) + " | " +
                std::string(row.unit) + " | " + std::string(row.help) + " |\n";
    }
    return text;
}

TEST(statistics_document, holds_the_tables_as_they_are) {
    std::ifstream file(OBASE_STATISTICS_DOCUMENT);
    ASSERT_TRUE(file) << OBASE_STATISTICS_DOCUMENT;
    std::stringstream document;
    document << file.rdbuf();
    for (const auto& rows : {statistic_rows(), heap_statistic_rows()}) {
        EXPECT_NE(document.str().find("\n\n" + table_of(rows) + "\n"), std::string::npos)
            << "docs/statistics.md must hold this table:\n"
            << table_of(rows);
    }
}

} // namespace
