// SPDX-License-Identifier: MIT
#include "tools/memory/memory.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/spread.hpp"
#include "tools/curves/ideal.hpp"
#include "tools/memory/cell.hpp"
#include "tools/memory/limit.hpp"
#include "tools/ycsb/control_group.hpp"
#include "tools/ycsb/keeper.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/swap_space.hpp"

#include <obase/options.hpp>

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr const char* file_prefix = "file:";
// Before a policy can know anything; not part of the worst window.
constexpr std::size_t windows_to_learn = 20;

// Room for all that the process may have, twice: records, index, and what loading leaves behind.
std::uint64_t swap_bytes(const memory_settings& s) {
    constexpr std::uint64_t rest = std::uint64_t{512} << 20;
    return rest + 2 * s.records * (s.key_size + s.value_size + 128);
}

// Made and removed with this object, or with the process. No group where none can be made.
class cell_group {
  public:
    cell_group()
        : group_(control_group::below_own(
              fmt::format("obase-cell-{}", ::getpid()), [this](const std::string& path) {
                  if (!undo_.started() || !undo_.promise(keeper::what::group, path))
                      throw std::runtime_error("no process to remove a control group");
              })) {}
    const control_group& group() const noexcept { return group_; }

  private:
    keeper undo_;
    control_group group_;
};

swap_request swap_of(const memory_settings& s) {
    if (s.swap == "none") return {swap_kind::none};
    if (s.swap == "any") return {swap_kind::as_it_is};
    if (s.swap == "zram") return {swap_kind::zram, swap_bytes(s)};
    return {swap_kind::file, swap_bytes(s), s.swap.substr(std::strlen(file_prefix))};
}

std::string policy_of(const memory_settings& s) {
    std::string error;
    return s.plain() ? s.policy : options_of(s, error).policy;
}

double mib(const json& bytes) { return bytes.get<double>() / 1048576; }

void print_window(const json& line) {
    std::string text = fmt::format(
        "{:>4}  used {:7.1f} MiB  {:6.0f} op/s  {:7.1f} faults/s ({:.4f} of operations)",
        line["n"].get<std::uint64_t>(), mib(line["used"]),
        line["operations"].get<double>() / line["seconds"].get<double>(),
        line["major_faults"].get<double>() / line["seconds"].get<double>(),
        line["fault_share"].get<double>());
    if (line.contains("collector")) {
        const json& c = line["collector"];
        text += fmt::format("  moved {} compacted {} paged out {:.1f} MiB C_t {}",
                            c["moved"].get<std::uint64_t>(), c["compacted"].get<std::uint64_t>(),
                            mib(c["paged_out_bytes"]), c["cold_threshold"].get<std::uint64_t>());
        for (const json& tier : line["tiers"]) {
            if (tier["extent_bytes"] == 0) continue;
            text +=
                fmt::format(" | {}{} {:.1f}", tier["name"].get<std::string>(),
                            tier["reclaimable"].get<bool>() ? "*" : "", mib(tier["live_bytes"]));
            if (tier.contains("resident_bytes")) {
                const auto extent = tier["extent_bytes"].get<std::uint64_t>();
                const auto resident = tier["resident_bytes"].get<std::uint64_t>();
                text +=
                    fmt::format(" out {:.1f}",
                                static_cast<double>(extent - std::min(extent, resident)) / 1048576);
            }
        }
    }
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

// One value decides if it was counted, not timed. Of several there is a spread, but one that was killed is not made up for
// by others.
spread spread_of_values(std::vector<double> values, bool any, bool timed) {
    if (any || values.size() == 1) {
        const double most = *std::max_element(values.begin(), values.end());
        return {most, most, most, values.size(), any || !timed};
    }
    return spread_of(std::move(values));
}

// What tells the cells of a row apart.
std::string load_of(const json& cell) {
    std::string load = cell["load"].get<std::string>();
    if (cell["update_share"] != 0)
        load += fmt::format(", {:g} updates", cell["update_share"].get<double>());
    if (cell["limit"].is_string()) load += ", limit " + cell["limit"].get<std::string>();
    return load;
}

// `same`: one cell's results. Those without the member do not count.
void add(std::vector<figure>& figures, const std::vector<json>& same, const std::string& member,
         const std::string& name, const char* unit, double divisor = 1,
         const cell_target& target = {"", bound::none, 0}) {
    std::vector<double> values;
    bool flag = false;
    for (const json& cell : same) {
        const json& value = cell[member];
        if (value.is_null()) continue;
        flag = flag || value.is_boolean();
        values.push_back(
            (value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>()) /
            divisor);
    }
    if (values.empty()) return;
    figure f;
    f.name = fmt::format("{} {}: {}", load_of(same.front()),
                         same.front()["policy"].get<std::string>(), name);
    f.unit = unit;
    f.value = spread_of_values(std::move(values), flag, member.starts_with("throughput"));
    f.kind = target.kind;
    f.target = target.value;
    f.command = same.front()["command"].get<std::string>();
    figures.push_back(f);
}

std::string words_of(std::string member) {
    std::replace(member.begin(), member.end(), '_', ' ');
    return member;
}

// What the windows at the end add up to.
struct tail {
    double seconds = 0, operations = 0, faulting = 0, major_faults = 0, stall_ns = 0, used = 0;
    std::size_t windows = 0;
};

tail tail_of(const std::vector<json>& lines, std::size_t most) {
    tail sum;
    for (auto line = lines.rbegin(); line != lines.rend() && sum.windows < most; ++line) {
        if ((*line)["event"] != "window") continue;
        const double operations = (*line)["operations"].get<double>();
        ++sum.windows;
        sum.seconds += (*line)["seconds"].get<double>();
        sum.operations += operations;
        sum.faulting += (*line)["fault_share"].get<double>() * operations;
        sum.major_faults += (*line)["major_faults"].get<double>();
        sum.stall_ns += (*line)["stall_ns"].get<double>();
        sum.used += (*line)["used"].get<double>();
    }
    return sum;
}

// Of the coldest tier's file; windows in which hardly anything lies there say little of it.
void add_files(json& cell) {
    constexpr double enough_live = 8 << 20;
    double descriptors = 0, bytes = 0, over_live = 0;
    for (const json& line : cell["windows"]) {
        if (!line.contains("open_files")) return;
        descriptors = std::max(descriptors, line["open_files"].get<double>());
        const double file = line["file_bytes"].get<double>();
        bytes = std::max(bytes, file);
        // The last is the heap of large objects.
        if (!line.contains("tiers") || line["tiers"].size() < 2) continue;
        const json& coldest = line["tiers"][line["tiers"].size() - 2];
        const double live = coldest["live_bytes"].get<double>();
        if (live >= enough_live) over_live = std::max(over_live, file / live);
    }
    cell["open_files_peak"] = descriptors;
    cell["file_peak_bytes"] = bytes;
    if (over_live > 0) cell["file_over_live_worst"] = over_live;
}

const json* find(const std::vector<json>& lines, std::string_view event) {
    for (const json& line : lines)
        if (line["event"] == event) return &line;
    return nullptr;
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json measure(const memory_settings& settings) {
    cell_group group;
    if (!settings.limit.empty() && !group.group().made())
        throw std::runtime_error("--limit " + settings.limit +
                                 ": no control group can be made here");
    std::vector<json> lines;
    const int status = run_this_program(
        {"obase", "bench", "memory-cell", "--settings", json(settings).dump(), "--group",
         group.group().path()},
        [&] { return !group.group().made() || group.group().join(); },
        [&](const std::string& text) {
            json line = json::parse(text);
            if (settings.trace && line["event"] == "window") print_window(line);
            if (line["event"] == "window")
                tell(fmt::format("window {}: {:.0f} MiB used", line["n"].get<std::uint64_t>(),
                                 mib(line["used"])));
            lines.push_back(std::move(line));
        });
    if (const json* error = find(lines, "error"))
        throw std::runtime_error(command_of(settings) + ": " + (*error)["what"].get<std::string>());
    if (find(lines, "interrupted") != nullptr)
        throw interruption(command_of(settings) + ": interrupted while loading");
    const bool ended = find(lines, "end") != nullptr;
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
                        group.group().made() && group.group().kills() > 0;
    if (!killed && !ended)
        throw std::runtime_error(command_of(settings) + ": its process ended without a result");
    return memory_cell(settings, lines, killed);
}

json measure_with_swap(const memory_settings& settings) {
    const swap_space swap(swap_of(settings));
    json cell;
    if (swap.why_not().empty()) {
        cell = measure(settings);
        cell["swap_device"] = swap.device();
    } else {
        cell = memory_cell(settings, {}, false);
        cell["skipped"] = fmt::format("--swap {}: {}", settings.swap, swap.why_not());
    }
    return cell;
}

} // namespace

std::string why_not(const memory_settings& s) {
    if (const std::string why = why_no_popularity(s); !why.empty()) return why;
    if (!(s.update_share >= 0 && s.update_share <= 1))
        return fmt::format("--update-share {}: from 0 to 1", s.update_share);
    if (!(s.churn_share >= 0 && s.churn_share <= 1))
        return fmt::format("--churn-share {}: from 0 to 1", s.churn_share);
    if (!std::isfinite(s.rate) || s.rate > 1e9)
        return fmt::format("--rate {}: operations per second, at most 1000000000; 0: no limit",
                           s.rate);
    if (!(std::isfinite(s.settle_share) && s.settle_share >= 0))
        return fmt::format("--settle-share {}: 0 or more", s.settle_share);
    // 0 stands for the environment's here.
    if (!(std::isfinite(s.window_s) && s.window_s >= 0))
        return fmt::format("--window {}: more than 0 seconds", s.window_s);
    if (!(std::isfinite(s.time_scale) && s.time_scale >= 0))
        return fmt::format("--time-scale {}: more than 0", s.time_scale);
    if (s.settle_windows == 0 || s.max_windows == 0)
        return "--settle-windows, --max-windows: at least 1";
    if (!s.limit.empty()) bytes_of_limit(s.limit, 1); // throws
    if (s.limit_first && s.limit.empty()) return "--limit-first: needs --limit";
    if (s.swap != "none" && s.swap != "any" && s.swap != "zram" &&
        (!s.swap.starts_with(file_prefix) || s.swap == file_prefix))
        return fmt::format("--swap {}: none, any, zram or file:DIRECTORY", s.swap);
    if (s.shift_every != 0 && (s.load != "hotspot" || s.operations_per_second() <= 0))
        return fmt::format("--shift-every {}: only with --load hotspot at a --rate", s.shift_every);
    if ((s.load == "buckets") == s.popularity.empty())
        return "--load buckets and --popularity FOLDER belong together";
    if (s.pageout_every != 0 && !s.plain())
        return fmt::format("--pageout-every {}: only with --policy plain", s.pageout_every);
    if (s.pageout_every != 0 && s.swap == "none")
        return fmt::format("--pageout-every {}: needs --swap", s.pageout_every);
    std::string error;
    const options effective = options_of(s, error);
    if (!error.empty()) return error;
    ycsb_settings store; // what is checked there as well
    store.records = s.records;
    store.key_size = s.key_size;
    store.value_size = s.value_size;
    store.live_share = s.live_share;
    store.window_s = effective.window_seconds;
    store.time_scale = effective.time_scale;
    store.cold = effective.cold_backing;
    return why_not(store);
}

std::string command_of(const memory_settings& s) {
    const memory_settings usual;
    std::string text = fmt::format("obase bench memory --load {}", s.load);
    const auto option = [&](const char* name, const auto& value, const auto& other) {
        if (value != other) text += fmt::format(" {} {}", name, value);
    };
    if (s.load == "zipf") option("--theta", s.theta, usual.theta);
    if (s.load == "hotspot")
        text += fmt::format(" --hot-data {} --hot-accesses {}", s.hot_data, s.hot_accesses);
    if (s.load == "loop") option("--live-share", s.live_share, usual.live_share);
    if (s.load == "hotspot") option("--shift-every", s.shift_every, usual.shift_every);
    if (s.load == "buckets") option("--popularity", s.popularity, "");
    option("--update-share", s.update_share, usual.update_share);
    option("--churn-share", s.churn_share, usual.churn_share);
    option("--records", s.records, 0U);
    option("--key-size", s.key_size, usual.key_size);
    option("--value-size", s.value_size, 0U);
    option("--index", s.index, usual.index);
    option("--threads", s.threads, usual.threads);
    option("--rate", s.operations_per_second(), -1.0);
    option("--seed", s.seed, usual.seed);
    option("--policy", policy_of(s), "");
    option("--window", s.window_s, usual.window_s);
    option("--time-scale", s.time_scale, usual.time_scale);
    option("--hints", s.hints, usual.hints);
    option("--cold", s.cold, usual.cold);
    for (const std::string& one : s.set) option("--set", one, "");
    option("--limit", s.limit, usual.limit);
    if (s.limit_first) text += " --limit-first";
    option("--swap", s.swap, "");
    option("--pageout-every", s.pageout_every, usual.pageout_every);
    if (s.pass) text += " --pass";
    option("--settle-windows", s.settle_windows, usual.settle_windows);
    option("--settle-share", s.settle_share, usual.settle_share);
    option("--max-windows", s.max_windows, usual.max_windows);
    return text;
}

nlohmann::json memory_cell(const memory_settings& s, const std::vector<json>& lines, bool killed) {
    std::string error;
    const options effective = options_of(s, error);
    const double rate = s.operations_per_second();
    json cell = {{"load", popularity_of(s).name()},
                 {"policy", policy_of(s)},
                 {"limit", s.limit.empty() ? json(nullptr) : json(s.limit)},
                 {"swap", s.swap},
                 {"cold", effective.cold_backing},
                 {"records", s.records},
                 {"key_size", s.key_size},
                 {"value_size", s.value_size},
                 {"index", s.index},
                 {"update_share", s.update_share},
                 {"churn_share", s.churn_share},
                 {"threads", s.threads},
                 {"rate", rate},
                 {"seed", s.seed},
                 {"window_s", effective.window_seconds},
                 {"time_scale", effective.time_scale},
                 {"killed", killed},
                 {"command", command_of(s)}};
    for (const char* name : {"start_bytes",
                             "peak_bytes",
                             "end_bytes",
                             "base_bytes",
                             "index_bytes",
                             "ideal_bytes",
                             "ideal_object_bytes",
                             "live_bytes",
                             "used_over_ideal",
                             "objects_over_ideal",
                             "used_over_live",
                             "used_over_ideal_worst",
                             "peak_over_start",
                             "peak_over_allowed",
                             "faults_over_cold_accesses",
                             "after_pass_over_before",
                             "wrong",
                             "churned",
                             "fault_share",
                             "major_faults_per_op",
                             "faults_per_s",
                             "fault_us",
                             "stall_share",
                             "stall_share_over_scale",
                             "throughput_ops",
                             "throughput_ratio",
                             "limit_bytes",
                             "open_files_peak",
                             "file_peak_bytes",
                             "file_over_live_worst",
                             "pass"})
        cell[name] = nullptr;
    cell["windows"] = json::array();
    cell["settled"] = false;
    cell["partial"] = false;
    const json* const loaded = find(lines, "loaded");
    if (loaded == nullptr) return cell; // killed while it was loading
    const double base = (*loaded)["base"].get<double>();
    const double start = (*loaded)["used"].get<double>();
    double peak = start;
    for (const json& line : lines)
        if (line["event"] == "window") {
            cell["windows"].push_back(line);
            peak = std::max(peak, line["peak"].get<double>());
        }
    cell["start_bytes"] = start;
    cell["peak_bytes"] = peak;
    cell["peak_over_start"] = peak / start;
    cell["peak_over_allowed"] = peak / (1.05 * start + 8 * 1048576);
    cell["base_bytes"] = base;
    cell["used_method"] = (*loaded)["used_method"];
    double index = (*loaded)["index_bytes"].get<double>();
    if (const json* const end = find(lines, "end")) {
        index = (*end)["index_bytes"].get<double>();
        cell["settled"] = (*end)["settled"];
        cell["partial"] = (*end)["partial"];
        cell["wrong"] = (*end)["wrong"];
        if (end->contains("churned")) cell["churned"] = (*end)["churned"];
    }
    cell["index_bytes"] = index;
    if (const json* const limit = find(lines, "limit")) cell["limit_bytes"] = (*limit)["bytes"];
    if (const json* const passed = find(lines, "passed")) {
        cell["pass"] = *passed;
        cell["pass"].erase("event");
        cell["after_pass_over_before"] =
            (*passed)["after"].get<double>() / (*passed)["before"].get<double>();
    }
    // Without rest, of the second half.
    const tail last = tail_of(
        lines, cell["settled"] == true
                   ? s.settle_windows
                   : std::min<std::size_t>(s.settle_windows, (cell["windows"].size() + 1) / 2));
    if (last.windows == 0 || last.operations <= 0) return cell;

    const double fault_share = last.faulting / last.operations;
    const double end = last.used / static_cast<double>(last.windows);
    const double bytes =
        (*loaded)["key_object_bytes"].get<double>() + (*loaded)["value_object_bytes"].get<double>();
    const popularity asked = popularity_of(s);
    std::vector<cached_unit> objects;
    objects.reserve(asked.records());
    double live = 0;
    for (std::uint64_t record = 0; record < asked.records(); ++record) {
        objects.push_back({bytes, asked.probability(record)});
        if (asked.probability(record) > 0) live += bytes;
    }
    const miss_ratio_curve least = curve_of_hottest(std::move(objects));
    const memory_use use{end - base, index, ideal_object_bytes(least, fault_share)};
    cell["end_bytes"] = end;
    cell["ideal_object_bytes"] = use.ideal_objects;
    cell["ideal_bytes"] = use.ideal_objects + index;
    cell["live_bytes"] = live;
    cell["used_over_ideal"] = or_null(used_over_ideal(use));
    cell["objects_over_ideal"] = or_null(objects_over_ideal(use));
    double worst = 0;
    std::size_t nth = 0;
    for (const json& line : cell["windows"])
        if (++nth > windows_to_learn)
            worst = std::max(
                worst,
                used_over_ideal({line["used"].get<double>() - base, index,
                                 ideal_object_bytes(least, line["fault_share"].get<double>())})
                    .value_or(0));
    if (worst > 0) cell["used_over_ideal_worst"] = worst;
    add_files(cell);
    cell["used_over_live"] = use.used / (live + index);
    cell["fault_share"] = fault_share;
    if (s.load == "hotspot" && s.hot_accesses < 1)
        cell["faults_over_cold_accesses"] = fault_share / (1 - s.hot_accesses);
    cell["major_faults_per_op"] = last.major_faults / last.operations;
    cell["faults_per_s"] = last.major_faults / last.seconds;
    if (last.major_faults > 0) cell["fault_us"] = last.stall_ns / last.major_faults / 1000;
    cell["stall_share"] = last.stall_ns * 1e-9 / (last.seconds * s.threads);
    cell["stall_share_over_scale"] = cell["stall_share"].get<double>() / effective.time_scale;
    cell["throughput_ops"] = last.operations / last.seconds;
    if (rate > 0) cell["throughput_ratio"] = last.operations / last.seconds / rate;
    return cell;
}

std::string why_no_limit(const json& cell) {
    // What did not come to its end may have ended before the limit could come into force.
    if (cell["limit"].is_null() || !cell["limit_bytes"].is_null() || cell["killed"] == true ||
        cell["partial"] == true)
        return "";
    return fmt::format("--limit {} never came into force: the charge did not come down to it",
                       cell["limit"].get<std::string>());
}

void compare_with(json& cell, const json& reference) {
    if (cell["throughput_ops"].is_number() && reference["throughput_ops"].is_number())
        cell["throughput_ratio"] =
            cell["throughput_ops"].get<double>() / reference["throughput_ops"].get<double>();
}

std::vector<figure> figures_of(const std::vector<json>& same,
                               const std::vector<cell_target>& targets) {
    std::vector<figure> figures;
    if (same.empty()) return figures;
    const auto add_member = [&](const std::string& member) {
        add(figures, same, member, words_of(member), "");
    };
    for (const cell_target& target : targets)
        add(figures, same, target.member, words_of(target.member), "", 1, target);
    const auto has_target = [&](const char* member) {
        return std::any_of(targets.begin(), targets.end(),
                           [&](const cell_target& t) { return t.member == member; });
    };
    constexpr double mib_bytes = 1048576;
    for (const char* when : {"start", "peak", "end", "ideal"})
        add(figures, same, fmt::format("{}_bytes", when), fmt::format("{} memory", when), "MiB",
            mib_bytes);
    for (const char* member : {"used_over_ideal", "objects_over_ideal", "throughput_ratio"})
        if (!has_target(member)) add_member(member);
    add(figures, same, "fault_share", "share of operations that fault", "");
    add(figures, same, "faults_per_s", "faults", "/s");
    add(figures, same, "stall_share", "stall, share of the clients' time", "");
    add(figures, same, "file_peak_bytes", "file", "MiB", mib_bytes);
    add(figures, same, "open_files_peak", "open files", "");
    add(figures, same, "throughput_ops", "throughput", "op/s");
    if (!has_target("killed") && std::any_of(same.begin(), same.end(), [](const json& cell) {
            return cell["killed"] == true;
        }))
        add_member("killed");
    return figures;
}

namespace {

// The cells of a row, one after the other.
class round_of_cells {
  public:
    round_of_cells(bench_result& result, std::size_t round) : result_(result), round_(round) {}

    // False: interrupted.
    bool measure_all(const std::vector<row_cell>& cells) {
        for (const row_cell& one : cells)
            if (interrupted() || !measure_one(one)) return false;
        return true;
    }
    const std::vector<json>& done() const noexcept { return done_; }

  private:
    bool measure_one(const row_cell& one) {
        memory_settings settings = one.settings;
        const json* const reference = one.reference ? &done_[*one.reference] : nullptr;
        // Of what the other one was charged for: both have the same memory.
        if (reference != nullptr && (*reference)["limit"] == settings.limit &&
            (*reference)["limit_bytes"].is_number())
            settings.limit = std::to_string((*reference)["limit_bytes"].get<std::uint64_t>());
        if (settings.limit_first && reference != nullptr && (*reference)["start_bytes"].is_number())
            settings.limit = std::to_string(bytes_of_limit(
                settings.limit,
                static_cast<std::uint64_t>((*reference)["start_bytes"].get<double>())));
        tell(command_of(settings));
        json cell;
        try {
            cell = measure_with_swap(settings);
        } catch (const interruption&) {
            return false;
        }
        if (reference != nullptr) compare_with(cell, *reference);
        if (cell.contains("skipped"))
            result_.skipped = cell["skipped"].get<std::string>();
        else if (const json& wrong = cell["wrong"]; wrong.is_number() && wrong != 0)
            result_.failure = fmt::format("{}: {} reads found a wrong value, or none",
                                          command_of(settings), wrong.get<std::uint64_t>());
        else if (const std::string why = why_no_limit(cell); !why.empty())
            result_.failure = command_of(settings) + ": " + why;
        result_.partial = result_.partial || cell["partial"].get<bool>();
        cell["round"] = round_;
        done_.push_back(std::move(cell));
        return true;
    }

    bench_result& result_;
    std::size_t round_;
    std::vector<json> done_;
};

} // namespace

bench_result bench_memory(const std::vector<row_cell>& cells, std::size_t rounds) {
    for (const row_cell& one : cells)
        if (const std::string why = why_not(one.settings); !why.empty())
            throw std::invalid_argument(why);
    bench_result result;
    result.json["cells"] = json::array();
    std::vector<std::vector<json>> same(cells.size());
    for (std::size_t i = 0; i < rounds && !result.partial; ++i) {
        round_of_cells round(result, i);
        if (!round.measure_all(cells)) result.partial = true;
        for (std::size_t at = 0; at < round.done().size(); ++at) {
            result.json["cells"].push_back(round.done()[at]);
            same[at].push_back(round.done()[at]);
        }
    }
    for (std::size_t at = 0; at < cells.size(); ++at)
        for (figure& each : figures_of(same[at], cells[at].targets))
            result.figures.push_back(std::move(each));
    result.partial = result.partial || interrupted();
    return result;
}

} // namespace obase::tools
