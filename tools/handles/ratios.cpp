// SPDX-License-Identifier: MIT
#include "tools/handles/ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr std::array<state, states> all_states{state::home, state::policy, state::away};

std::size_t at(way w) noexcept { return static_cast<std::size_t>(w); }

std::vector<double> ratios(const measured_program& p, way of, way to) {
    return p.times.ratios(at(of), at(to));
}

// Pair by pair, of the programs that are chosen; as many pairs as all of them have.
template <class Chosen>
std::vector<double> geometric_means(const std::vector<const measured_program*>& programs, way of,
                                    way to, const Chosen& chosen) {
    std::vector<std::vector<double>> all;
    std::size_t pairs = SIZE_MAX;
    for (const measured_program* p : programs)
        if (chosen(*p)) {
            all.push_back(ratios(*p, of, to));
            pairs = std::min(pairs, all.back().size());
        }
    std::vector<double> means;
    for (std::size_t pair = 0; !all.empty() && pair < pairs; ++pair) {
        std::vector<double> one;
        for (const std::vector<double>& values : all) one.push_back(values[pair]);
        means.push_back(geometric_mean(one));
    }
    return means;
}

// Of the programs' medians. Nothing without programs.
json geometric_mean_of(const std::vector<const measured_program*>& programs, way of, way to) {
    std::vector<double> medians;
    for (const measured_program* p : programs)
        medians.push_back(spread_of(ratios(*p, of, to)).median);
    return medians.empty() ? json(nullptr) : json(geometric_mean(medians));
}

json row(const measured_program& p, state s) {
    const measured_state& r = p.results[static_cast<std::size_t>(s)];
    const spread time = spread_of(ratios(p, way_of(s), way::same));
    const bool counted = s == state::home && p.instructions_ratio > 0;
    return {{"name", p.name},
            {"state", name_of(s)},
            {"time_ratio", time.median},
            {"ci95", {time.low, time.high}},
            {"instructions_ratio", counted ? json(p.instructions_ratio) : json(nullptr)},
            {"text_ratio", p.text_ratio},
            {"compile_time_ratio", spread_of(p.compile_time_ratios).median},
            {"tests_passed", r.tests_passed},
            {"tests", r.tests},
            {"moved", r.moved}};
}

struct target {
    std::string_view what; // a program's name, or a group's
    way of, to;
    double at_most;
};
// Those of lists and trees, of sqlite and Lua; the last is of malloc and free in pairs.
constexpr target targets[] = {
    {"list", way::home, way::same, 1.10},        {"list-1m", way::home, way::same, 1.10},
    {"bst", way::home, way::same, 1.25},         {"sqlite", way::home, way::same, 1.20},
    {"lua", way::home, way::same, 1.20},         {"sqlite", way::policy, way::same, 1.25},
    {"lua", way::policy, way::same, 1.25},       {"sqlite", way::away, way::same, 2.0},
    {"lua", way::away, way::same, 2.5},          {"pairs", way::policy, way::glibc, 1.0},
    {"sqlite64", way::watched, way::same, 1.25}, {"embench", way::home, way::same, 1.05},
    {"gapbs", way::home, way::same, 1.05},       {"npb", way::home, way::same, 1.05},
};
constexpr double most_text = 1.7;         // sqlite's
constexpr double most_compile_time = 2.0; // sqlite's

std::string_view name_of(way w) noexcept {
    constexpr std::string_view names[ways] = {"clang",   "clang",  "home",
                                              "watched", "policy", "away"};
    return names[at(w)];
}
std::string_view beside(way w) noexcept {
    return w == way::glibc ? "clang -O3 with glibc's malloc" : "clang -O3, same allocator";
}

figure time_figure(std::string_view what, way of, way to, std::vector<double> values) {
    figure f;
    f.name = fmt::format("{}, {}: time / {}", what, name_of(of), beside(to));
    f.value = spread_of(std::move(values));
    return f;
}

} // namespace

std::string_view name_of(state s) noexcept {
    constexpr std::string_view names[states] = {"home", "policy", "away"};
    return names[static_cast<std::size_t>(s)];
}

way way_of(state s) noexcept {
    constexpr way of[states] = {way::home, way::policy, way::away};
    return of[static_cast<std::size_t>(s)];
}

bench_result handles_result(const std::vector<measured_program>& programs) {
    bench_result result;
    std::vector<const measured_program*> complete;
    for (const measured_program& p : programs)
        if (p.times.ns.size() == ways && !p.times.ns[0].empty()) complete.push_back(&p);

    json& j = result.json;
    j["programs"] = json::array();
    j["beside_glibc"] = json::array();
    for (const measured_program* p : complete)
        for (const state s : all_states) {
            j["programs"].push_back(row(*p, s));
            const spread time = spread_of(ratios(*p, way_of(s), way::glibc));
            j["beside_glibc"].push_back({{"name", p->name},
                                         {"state", name_of(s)},
                                         {"time_ratio", time.median},
                                         {"ci95", {time.low, time.high}}});
        }
    for (const state s : all_states)
        j["geomean"][name_of(s)] = geometric_mean_of(complete, way_of(s), way::same);
    j["tracking_ratio"] = geometric_mean_of(complete, way::watched, way::home);

    const auto add = [&](figure f, const std::string& program) {
        f.command = fmt::format("obase bench handles --program {}", program);
        result.figures.push_back(std::move(f));
    };
    for (const target& t : targets) {
        std::vector<double> values =
            geometric_means(complete, t.of, t.to, [&](const measured_program& p) {
                return p.name == t.what || p.group == t.what;
            });
        if (values.empty()) continue;
        figure f = time_figure(t.what, t.of, t.to, std::move(values));
        f.kind = bound::at_most;
        f.target = t.at_most;
        add(std::move(f), std::string(t.what));
    }
    for (const measured_program* p : complete) {
        if (p->name == "sqlite") {
            figure text = counted_figure("sqlite: text / clang -O3", "", p->text_ratio, "");
            text.kind = bound::at_most;
            text.target = most_text;
            add(std::move(text), p->name);
            figure compile;
            compile.name = "sqlite: compile time / clang -O3";
            compile.value = spread_of(p->compile_time_ratios);
            compile.kind = bound::at_most;
            compile.target = most_compile_time;
            add(std::move(compile), p->name);
        }
        if (p->instructions_ratio > 0)
            add(counted_figure(
                    fmt::format("{}, home: instructions / clang -O3, same allocator", p->name), "",
                    p->instructions_ratio, ""),
                p->name);
        for (const state s : all_states)
            for (const way to : {way::same, way::glibc})
                add(time_figure(p->name, way_of(s), to, ratios(*p, way_of(s), to)), p->name);
    }
    // What has a target is there already.
    std::vector<figure> once;
    for (figure& f : result.figures)
        if (std::none_of(once.begin(), once.end(),
                         [&](const figure& g) { return g.name == f.name; }))
            once.push_back(std::move(f));
    result.figures = std::move(once);

    for (const measured_program& p : programs)
        for (const state s : all_states) {
            const measured_state& r = p.results[static_cast<std::size_t>(s)];
            if (r.tests_passed != r.tests && result.failure.empty())
                result.failure = fmt::format(
                    "handles: {}, {}: {} of {} answers are not those of clang's program", p.name,
                    name_of(s), r.tests - r.tests_passed, r.tests);
        }
    return result;
}

} // namespace obase::tools
