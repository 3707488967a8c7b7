// SPDX-License-Identifier: MIT
//
// The texts of obase::statistics. Each function walks the two tables of statistics.hpp; a new row
// appears in all of them by itself.
#include <obase/statistics.hpp>

#include "telemetry/json_writer.hpp"

#include <cmath>

namespace obase {

namespace {

using telemetry::json_writer;

enum class row_kind { counter, gauge };
constexpr std::string_view kind_name(row_kind kind) {
    return kind == row_kind::counter ? "counter" : "gauge";
}

// use(from, to) for the pairs of tiers between which objects can move: none moves to where they are
// born.
template <class Use>
void for_each_direction(const statistics& of, Use&& use) {
    for (unsigned from = 0; from < of.tiers(); ++from)
        for (unsigned to = 1; to < of.tiers(); ++to)
            if (from != to) use(from, to);
}

void members(json_writer& json, const statistics& from) {
    json.member("mode", std::string_view(from.mode));
    json.member("protocol", std::string_view(from.protocol));
#define OBASE_JSON_MEMBER(kind, type, name, unit, help) json.member(#name, from.name);
    OBASE_STATISTICS(OBASE_JSON_MEMBER)
    json.key("moved");
    json.begin_array();
    for_each_direction(from, [&](unsigned source, unsigned target) {
        json.begin_object();
        json.member("from", from.heap_name(source));
        json.member("to", from.heap_name(target));
        json.member("objects", from.moved_between[source][target]);
        json.end_object();
    });
    json.end_array();
    json.key("heaps");
    json.begin_array();
    for (unsigned cls = 0; cls < from.heap_count; ++cls) {
        const heap_statistics& heap = from.heaps[cls];
        json.begin_object();
        json.member("heap", from.heap_name(cls));
#define OBASE_JSON_CLASS_MEMBER(kind, type, name, unit, help) json.member(#name, heap.name);
        OBASE_HEAP_STATISTICS(OBASE_JSON_CLASS_MEMBER)
        json.end_object();
    }
    json.end_array();
}

// Prometheus text exposition format 0.0.4.
std::string escaped_label(std::string_view value) {
    std::string text;
    for (const char c : value) {
        if (c == '\n') {
            text += "\\n";
            continue;
        }
        if (c == '\\' || c == '"') text += '\\';
        text += c;
    }
    return text;
}

std::string prometheus_number(std::uint64_t value) { return std::to_string(value); }
std::string prometheus_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return telemetry::shortest_decimal(value);
}

std::string prometheus_head(const std::string& name, row_kind kind, std::string_view help) {
    return "# HELP " + name + " " + std::string(help) + "\n# TYPE " + name + " " +
           std::string(kind_name(kind)) + "\n";
}

std::string prometheus_name(std::string_view prefix, std::string_view name, row_kind kind) {
    return std::string(prefix) + std::string(name) + (kind == row_kind::counter ? "_total" : "");
}

// Bytes also in a unit a reader can judge.
std::string readable(std::uint64_t value, std::string_view unit) {
    if (unit != "bytes" || value < 1024) return std::to_string(value) + " " + std::string(unit);
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double scaled = static_cast<double>(value) / 1024;
    std::size_t at = 0;
    while (scaled >= 1024) {
        scaled /= 1024;
        ++at;
    }
    const auto tenths = static_cast<std::uint64_t>(std::llround(scaled * 10));
    return std::to_string(value) + " bytes (" + std::to_string(tenths / 10) + "." +
           std::to_string(tenths % 10) + " " + units[at] + ")";
}
std::string readable(double value, std::string_view unit) {
    return telemetry::shortest_decimal(value) + " " + std::string(unit);
}

std::string text_line(std::string_view name, const std::string& value) {
    constexpr std::size_t width = 28;
    std::string line = "  " + std::string(name);
    line.append(line.size() < width ? width - line.size() : 1, ' ');
    return line + value + "\n";
}

} // namespace

std::uint64_t statistics::moved(std::string_view from, std::string_view to) const {
    std::uint64_t objects = 0;
    for_each_direction(*this, [&](unsigned source, unsigned target) {
        if (heap_name(source) == from && heap_name(target) == to)
            objects += moved_between[source][target];
    });
    return objects;
}

std::string statistics::to_json() const {
    json_writer json;
    json.begin_object();
    members(json, *this);
    json.end_object();
    return std::move(json).text();
}

std::string to_json(const std::vector<window_record>& history) {
    json_writer json;
    json.begin_array();
    for (const window_record& record : history) {
        json.begin_object();
        json.member("index", record.index);
        json.member("end_unix_seconds", record.end_unix_seconds);
        members(json, record.values);
        json.end_object();
    }
    json.end_array();
    return std::move(json).text();
}

std::string statistics::to_prometheus() const {
    std::string text = prometheus_head("obase_info", row_kind::gauge, "what runs") +
                       "obase_info{mode=\"" + escaped_label(mode) + "\",protocol=\"" +
                       escaped_label(protocol) + "\"} 1\n";
    std::string metric;
#define OBASE_PROMETHEUS_LINE(kind, type, name, unit, help)                                        \
    metric = prometheus_name("obase_", #name, row_kind::kind);                                     \
    text += prometheus_head(metric, row_kind::kind, help) + metric + " " +                         \
            prometheus_number(name) + "\n";
    OBASE_STATISTICS(OBASE_PROMETHEUS_LINE)
    metric = prometheus_name("obase_", "moved", row_kind::counter);
    text += prometheus_head(metric, row_kind::counter, "objects moved, by the pair of tiers");
    for_each_direction(*this, [&](unsigned from, unsigned to) {
        text += metric + "{from=\"" + escaped_label(heap_name(from)) + "\",to=\"" +
                escaped_label(heap_name(to)) + "\"} " + prometheus_number(moved_between[from][to]) +
                "\n";
    });
#define OBASE_PROMETHEUS_CLASS_LINES(kind, type, name, unit, help)                                 \
    metric = prometheus_name("obase_heap_", #name, row_kind::kind);                                \
    text += prometheus_head(metric, row_kind::kind, help);                                         \
    for (unsigned cls = 0; cls < heap_count; ++cls) {                                              \
        text += metric + "{heap=\"" + escaped_label(heap_name(cls)) + "\"} " +                     \
                prometheus_number(heaps[cls].name) + "\n";                                         \
    }
    OBASE_HEAP_STATISTICS(OBASE_PROMETHEUS_CLASS_LINES)
    return text;
}

std::string statistics::to_text() const {
    std::string text = "obase statistics (mode " + std::string(mode) + ", protocol " +
                       std::string(protocol) + ")\n";
#define OBASE_TEXT_LINE(kind, type, name, unit, help)                                              \
    text += text_line(#name, readable(name, unit));
    OBASE_STATISTICS(OBASE_TEXT_LINE)
    for_each_direction(*this, [&](unsigned from, unsigned to) {
        text += text_line("moved from " + std::string(heap_name(from)) + " to " +
                              std::string(heap_name(to)),
                          readable(moved_between[from][to], "objects"));
    });
    for (unsigned cls = 0; cls < heap_count; ++cls) {
        text += "heap " + std::string(heap_name(cls)) + "\n";
#define OBASE_TEXT_CLASS_LINE(kind, type, name, unit, help)                                        \
    text += text_line(#name, readable(heaps[cls].name, unit));
        OBASE_HEAP_STATISTICS(OBASE_TEXT_CLASS_LINE)
    }
    return text;
}

#define OBASE_ROW_AS_TEXT(kind, type, name, unit, help)                                            \
    {#name, kind_name(row_kind::kind), unit, help},

std::vector<statistic_row> statistic_rows() { return {OBASE_STATISTICS(OBASE_ROW_AS_TEXT)}; }
std::vector<statistic_row> heap_statistic_rows() {
    return {OBASE_HEAP_STATISTICS(OBASE_ROW_AS_TEXT)};
}

} // namespace obase
