// SPDX-License-Identifier: MIT
#include "tools/bench/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace obase::tools {
namespace {

std::string number(double value) {
    const double size = std::fabs(value);
    if (size >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
    if (size >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
    if (size >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
    if (size >= 100) return fmt::format("{:.0f}", value);
    return fmt::format("{:.3f}", value);
}

// Times are told in the unit in which the median has at most four digits.
figure in_readable_unit(figure f) {
    static constexpr const char* units[] = {"ns", "us", "ms", "s"};
    for (std::size_t i = 0; i + 1 < std::size(units); ++i) {
        if (f.unit != units[i] || std::fabs(f.value.median) < 1e4) continue;
        f.unit = units[i + 1];
        for (double* value : {&f.value.median, &f.value.low, &f.value.high, &f.target})
            *value /= 1000;
    }
    return f;
}

std::array<std::string, 5> cells(const figure& measured, bool decides) {
    const figure f = in_readable_unit(measured);
    const std::string unit = f.unit.empty() ? "" : " " + f.unit;
    std::string target;
    if (f.kind != bound::none)
        target = (f.kind == bound::at_most ? "<= " : ">= ") + number(f.target) + unit;
    return {f.name, number(f.value.median) + unit,
            f.value.samples == 1 ? std::string("1 sample")
                                 : fmt::format("[{}, {}], n = {}", number(f.value.low),
                                               number(f.value.high), f.value.samples),
            target, decides || f.kind == bound::none ? verdict(f) : "not judged"};
}

} // namespace

figure counted_figure(const std::string& name, const std::string& unit, double value,
                      const std::string& command) {
    figure f;
    f.name = name;
    f.unit = unit;
    f.value.median = f.value.low = f.value.high = value;
    f.value.samples = 1;
    f.value.trusted = true;
    f.command = command;
    return f;
}

std::string verdict(const figure& f) {
    if (f.kind == bound::none) return "";
    if (!f.value.trusted) return "undecided";
    const bool at_most = f.kind == bound::at_most;
    const double worst = at_most ? f.value.high : f.value.low;
    const double best = at_most ? f.value.low : f.value.high;
    const auto good = [&](double value) { return at_most ? value <= f.target : value >= f.target; };
    if (good(worst)) return "met";
    return good(best) ? "undecided" : "not met";
}

nlohmann::json to_json(const figure& f) {
    nlohmann::json j = {{"name", f.name},
                        {"unit", f.unit},
                        {"median", f.value.median},
                        {"low", f.value.low},
                        {"high", f.value.high},
                        {"samples", f.value.samples},
                        {"trusted", f.value.trusted},
                        {"command", f.command}};
    if (f.kind != bound::none) {
        j[f.kind == bound::at_most ? "at_most" : "at_least"] = f.target;
        j["verdict"] = verdict(f);
    }
    return j;
}

figure figure_from_json(const nlohmann::json& j) {
    figure f;
    f.name = j.at("name");
    f.unit = j.at("unit");
    f.value = {j.at("median"), j.at("low"), j.at("high"), j.at("samples"), j.at("trusted")};
    f.command = j.at("command");
    if (j.contains("at_most")) {
        f.kind = bound::at_most;
        f.target = j.at("at_most");
    } else if (j.contains("at_least")) {
        f.kind = bound::at_least;
        f.target = j.at("at_least");
    }
    return f;
}

std::string to_table(const std::vector<figure>& figures, bool decides) {
    std::vector<std::array<std::string, 5>> rows{
        {"what", "median", "95 % interval", "target", "verdict"}};
    for (const figure& f : figures) rows.push_back(cells(f, decides));
    std::array<std::size_t, 5> width{};
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    std::string text;
    for (const auto& row : rows) {
        std::string line =
            fmt::format("{:<{}}  {:>{}}  {:<{}}  {:<{}}  {}", row[0], width[0], row[1], width[1],
                        row[2], width[2], row[3], width[3], row[4]);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

} // namespace obase::tools
