// SPDX-License-Identifier: MIT
#include "tools/fragmentation/fragmentation.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/fragmentation/churn.hpp"
#include "tools/fragmentation/redis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

// Where programs of the build, or of an installation, lie: beside this one.
std::string beside(const std::string& name) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) throw std::runtime_error("fragmentation: /proc/self/exe cannot be read");
    return (self.parent_path() / name).string();
}

std::vector<std::string> command_for(const std::string& load, const std::string& allocator,
                                     const fragmentation_settings& settings) {
    return clean_command(environment_of(allocator, settings),
                         {beside(load + (allocator.starts_with("obase") ? "-handles" : ""))});
}

json run_load(const std::string& allocator, const fragmentation_settings& settings) {
    const bool churn = settings.program == "churn";
    std::vector<std::string> words = command_for(
        churn ? "obase-fragmentation-churn" : "obase-fragmentation-load", allocator, settings);
    const std::string program = words.back();
    words.push_back(std::to_string(settings.scale));
    if (churn) {
        words.push_back(std::to_string(settings.hours));
        words.push_back(fmt::format("{}", settings.hour_seconds));
    } else {
        for (const unsigned at : settings.seconds) words.push_back(std::to_string(at));
    }
    const std::optional<std::string> text = output_of_program(words);
    if (!text.has_value()) {
        if (interrupted()) throw interruption(allocator);
        throw std::runtime_error(
            fmt::format("fragmentation: {} failed with {}; expected it beside this program",
                        program, allocator));
    }
    // The dynamic linker, too, may have something to say.
    const std::size_t begin = text->find('{');
    if (text->substr(0, begin).find("cannot be preloaded") != std::string::npos)
        throw std::runtime_error(fmt::format("fragmentation: {} is not installed", allocator));
    json run = json::parse(begin == std::string::npos ? "" : text->substr(begin), nullptr, false);
    if (run.is_discarded())
        throw std::runtime_error(
            fmt::format("fragmentation: with {} the load wrote '{}', which is no JSON", allocator,
                        text->substr(0, 200)));
    run["allocator"] = allocator;
    return run;
}

} // namespace

// The tool has an allocator of its own, and may have been told to load others (clean_command()).
std::vector<std::string> environment_of(const std::string& allocator,
                                        const fragmentation_settings& settings) {
    std::vector<std::string> environment;
    if (allocator == "jemalloc") environment.emplace_back("LD_PRELOAD=libjemalloc.so.2");
    if (allocator == "mimalloc") environment.emplace_back("LD_PRELOAD=libmimalloc.so.2");
    if (allocator == "obase-still") environment.emplace_back("OBASE_HANDLES_START=1000");
    if (allocator.starts_with("obase") && settings.share > 0)
        environment.push_back(fmt::format("OBASE_HANDLES_SHARE={}", settings.share));
    return environment;
}

const std::vector<std::string>& fragmentation_allocators() {
    static const std::vector<std::string> all{"glibc",        "jemalloc",    "mimalloc",
                                              "activedefrag", "obase-still", "obase"};
    return all;
}

std::vector<figure> fragmentation_figures(const std::vector<json>& runs,
                                          const fragmentation_settings& settings) {
    const std::string allocator = runs.front().at("allocator");
    std::string command =
        fmt::format("obase bench fragmentation --pairs {} --program {} --allocator {} --scale {}",
                    settings.repetitions, settings.program, allocator, settings.scale);
    if (settings.share > 0) command += fmt::format(" --share {}", settings.share);
    const auto figure_of = [&](const std::string& name, const std::string& unit, auto&& value) {
        std::vector<double> values;
        for (const json& run : runs) values.push_back(value(run));
        figure f = counted_figure(fmt::format("{}, {}", allocator, name), unit, values[0], command);
        if (values.size() > 1) f.value = spread_of(values);
        return f;
    };
    std::vector<figure> figures;
    for (const unsigned at : settings.seconds) {
        figure f = figure_of(fmt::format("RSS after {} s", at), "MiB", [&](const json& run) {
            return run.at("rss_mib").at(std::to_string(at)).get<double>();
        });
        if (settings.program == "redis" && settings.scale == 1 && allocator == "obase" &&
            (at == 3 || at == 10)) {
            f.kind = bound::at_most;
            f.target = at == 3 ? 130 : 125;
        }
        figures.push_back(std::move(f));
    }
    figures.push_back(figure_of("longest stall", "us", [](const json& run) {
        return run.at("longest_stall_us").get<double>();
    }));
    figures.push_back(figure_of("share of a processor", "",
                                [](const json& run) { return run.at("cpu_share").get<double>(); }));
    return figures;
}

bench_result bench_fragmentation(const fragmentation_settings& settings) {
    const bool redis = settings.program == "redis";
    std::vector<std::string> allocators = settings.allocators;
    if (allocators.empty()) {
        allocators = fragmentation_allocators();
        if (!redis) std::erase(allocators, "activedefrag");
    } else if (!redis && std::count(allocators.begin(), allocators.end(), "activedefrag") != 0) {
        throw std::invalid_argument("--allocator activedefrag is for --program redis");
    }
    bench_result result;
    result.json["program"] = settings.program;
    result.json["runs"] = json::array();
    redis_servers servers;
    if (redis) {
        const described built = describe_programs(settings.scripts, "redis");
        if (!built.skipped.empty()) {
            result.skipped = built.skipped;
            return result;
        }
        const json& paths = built.json.at("servers");
        servers = {paths.at("plain"), paths.at("handles"), paths.at("activedefrag")};
    }
    std::map<std::string, std::vector<json>> runs;
    for (std::size_t turn = 0; turn < settings.repetitions * allocators.size(); ++turn) {
        if (interrupted()) {
            result.partial = true;
            break;
        }
        const std::string& allocator = allocators[turn % allocators.size()];
        tell(fmt::format("{}, {}, {} of {}", settings.program, allocator,
                         turn / allocators.size() + 1, settings.repetitions));
        json run;
        try {
            run = redis ? run_redis(servers, allocator, settings) : run_load(allocator, settings);
        } catch (const interruption&) {
            result.partial = true;
            break;
        }
        if (run.value("wrong", 0) != 0 && result.failure.empty())
            result.failure = fmt::format("fragmentation: {}: {} values are wrong", allocator,
                                         run.at("wrong").get<std::uint64_t>());
        result.json["runs"].push_back(run);
        runs[allocator].push_back(std::move(run));
    }
    if (settings.program == "churn") {
        result.figures = churn_figures(runs, settings);
        return result;
    }
    for (const std::string& allocator : allocators)
        if (runs.contains(allocator))
            for (figure& f : fragmentation_figures(runs[allocator], settings))
                result.figures.push_back(std::move(f));
    std::vector<double> stalls; // of one turn each
    for (std::size_t i = 0; i < std::min(runs["obase"].size(), runs["obase-still"].size()); ++i)
        if (const double still = runs["obase-still"][i].at("longest_stall_us"); still > 0)
            stalls.push_back(runs["obase"][i].at("longest_stall_us").get<double>() / still);
    if (!stalls.empty()) {
        figure f = counted_figure(
            "longest stall, obase / the same without moving", "", stalls[0],
            fmt::format(
                "obase bench fragmentation --pairs {} --program {} --allocator obase-still,obase",
                settings.repetitions, settings.program));
        if (stalls.size() > 1) f.value = spread_of(stalls);
        f.kind = bound::at_most;
        f.target = 1;
        result.figures.push_back(std::move(f));
    }
    return result;
}

} // namespace obase::tools
