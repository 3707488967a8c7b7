// SPDX-License-Identifier: MIT
#include "tools/fragmentation/churn.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace obase::tools {
namespace {

using nlohmann::json;
using runs_type = std::map<std::string, std::vector<json>>;

constexpr double most_tables = .12;
constexpr double most_resident = 1.10;

// The largest of an hour's.
template <class Value>
double most(const json& run, Value&& value) {
    double found = 0;
    for (const json& hour : run.at("hours")) found = std::max(found, value(hour));
    return found;
}

double sum_of_rss(const json& run) {
    double sum = 0;
    for (const json& hour : run.at("hours")) sum += hour.at("rss_mib").get<double>();
    return sum;
}

double rss_by_live(const json& hour) {
    return hour.at("rss_mib").get<double>() / hour.at("live_mib").get<double>();
}
double tables_by_live(const json& hour) {
    return (hour.at("tables_mib").get<double>() + hour.at("page_tables_mib").get<double>()) /
           hour.at("live_mib").get<double>();
}

const std::vector<json>& of(const runs_type& runs, const std::string& allocator) {
    static const std::vector<json> none;
    const auto found = runs.find(allocator);
    return found == runs.end() ? none : found->second;
}

} // namespace

std::vector<figure> churn_figures(const runs_type& runs, const fragmentation_settings& settings) {
    std::vector<figure> figures;
    const auto add = [&](const std::string& allocators, const std::string& name,
                         const std::vector<double>& values, double at_most) {
        if (values.empty()) return;
        figure f = counted_figure(
            name, "", values[0],
            fmt::format("obase bench fragmentation --pairs {} --program churn --allocator {} "
                        "--hours {} --hour-seconds {} --scale {}",
                        settings.repetitions, allocators, settings.hours, settings.hour_seconds,
                        settings.scale));
        if (values.size() > 1) f.value = spread_of(values);
        if (at_most > 0 && settings.scale == 1) {
            f.kind = bound::at_most;
            f.target = at_most;
        }
        figures.push_back(std::move(f));
    };
    std::vector<double> tables;
    for (const json& run : of(runs, "obase")) tables.push_back(most(run, tables_by_live));
    add("obase", "obase, tables and page tables / live, most of an hour's end", tables,
        most_tables);
    for (const char* const moves : {"obase-still", "obase"}) {
        std::vector<double> ratios;
        const auto& ours = of(runs, moves);
        const auto& theirs = of(runs, "jemalloc");
        for (std::size_t turn = 0; turn < std::min(ours.size(), theirs.size()); ++turn)
            ratios.push_back(sum_of_rss(ours[turn]) / sum_of_rss(theirs[turn]));
        add(fmt::format("jemalloc,{}", moves),
            fmt::format("{} / jemalloc, RSS, mean of the hours", moves), ratios,
            std::string_view(moves) == "obase-still" ? most_resident : 0);
    }
    for (const auto& [allocator, its] : runs) {
        std::vector<double> worst, last, share;
        for (const json& run : its) {
            worst.push_back(most(run, rss_by_live));
            last.push_back(rss_by_live(run.at("hours").back()));
            share.push_back(run.at("cpu_share"));
        }
        add(allocator, allocator + ", RSS / live, most of an hour's end", worst, 0);
        add(allocator, allocator + ", RSS / live, at the end", last, 0);
        if (allocator.starts_with("obase"))
            add(allocator, allocator + ", the collector's share of a processor", share, 0);
    }
    return figures;
}

} // namespace obase::tools
