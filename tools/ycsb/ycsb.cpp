// SPDX-License-Identifier: MIT
#include "tools/ycsb/ycsb.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/ycsb/agreement.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/session.hpp"
#include "tools/ycsb/swap_space.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

struct goal {
    bound kind = bound::none;
    double value = 0;
};

void add(bench_result& result, const std::string& name, const std::string& unit, const json& value,
         const std::string& command, goal target = {}) {
    if (!value.is_number()) return;
    figure f = counted_figure(name, unit, value.get<double>(), command);
    f.kind = target.kind;
    f.target = target.value;
    result.figures.push_back(f);
}

double mib(const json& bytes) { return bytes.get<double>() / 1048576; }

// Of the plain pointers beside a run: what can be held against its own numbers.
json beside(const json& run) {
    json found;
    for (const char* key :
         {"command", "used_bytes", "rss_bytes", "base_bytes", "index_bytes", "compressed_bytes",
          "fault_share", "major_faults_per_op", "stall_share", "ideal_object_bytes", "ideal_bytes",
          "used_over_ideal", "objects_over_ideal", "throughput_ops", "latency_us", "swap",
          "paged_out_bytes", "skipped", "partial"})
        if (run.contains(key)) found[key] = run[key];
    return found;
}

// The numbers of a run that people look at first.
void summarize(bench_result& result, const json& run, const std::string& command) {
    const std::string what =
        fmt::format("{} {} {}: ", run["index"].get<std::string>(),
                    run["workload"].get<std::string>(), run["protocol"].get<std::string>());
    add(result, what + "throughput", "op/s", run["throughput_ops"], command);
    for (const char* q : {"p50", "p90", "p99", "p999"})
        add(result, what + "latency " + q, "us", run["latency_us"][q], command);
    for (const char* when : {"baseline", "start", "end", "end_2m", "kernel"})
        add(result, what + "page utilization " + when, "", run["page_utilization"][when], command);
    for (const char* when : {"start", "end"}) {
        add(result, what + "resident set " + when, "MiB", mib(run["rss_bytes"][when]), command);
        add(result, what + "used memory " + when, "MiB", mib(run["used_bytes"][when]), command);
    }
    add(result, what + "used memory peak", "MiB", mib(run["used_bytes"]["peak"]), command);
    add(result, what + "live", "MiB", mib(run["live_bytes"]), command);
    add(result, what + "index", "MiB", mib(run["index_bytes"]), command);
    for (const char* ratio : {"used_over_ideal", "objects_over_ideal"})
        add(result, what + ratio, "", run[ratio], command);
    add(result, what + "share of requests that fault", "", run["fault_share"], command);
    add(result, what + "collector", "cores", run["collector_cpu_share"], command);
}

std::string command_of(const ycsb_settings& s) {
    const ycsb_settings usual;
    std::string text = s.packages ? "obase bench packages" : "obase bench ycsb";
    const auto option = [&](const char* name, const auto& value, const auto& other) {
        if (value != other) text += fmt::format(" {} {}", name, value);
    };
    option("--index", s.index, "");
    option("--protocol", s.protocol, "");
    option("--packages", s.package_file, usual.package_file);
    option("--trace", s.trace, usual.trace);
    if (s.trace.empty() && !s.packages) option("--workload", s.workload, "");
    option("--distribution", s.distribution, usual.distribution);
    option("--live-share", s.live_share, usual.live_share);
    option("--records", s.records, usual.records);
    option("--threads", s.threads, usual.threads);
    option("--duration", s.duration_s, usual.duration_s);
    option("--key-size", s.key_size, usual.key_size);
    option("--value-size", s.value_size, usual.value_size);
    option("--seed", s.seed, usual.seed);
    option("--mode", s.mode, usual.mode);
    option("--window", s.window_s, usual.window_s);
    option("--time-scale", s.time_scale, usual.time_scale);
    option("--hints", s.hints, usual.hints);
    option("--cold", s.cold, usual.cold);
    option("--reclaim", s.reclaim, usual.reclaim);
    if (s.in_place) text += " --in-place";
    if (s.huge_pages) text += " --huge-pages";
    if (!s.baseline) text += " --no-baseline";
    if (s.beside_kernel) text += " --beside-kernel";
    return text;
}

// The page utilization of the same records and requests in plain pointers over this program's
// malloc.
json baseline_of(ycsb_settings settings) {
    settings.protocol = "none";
    settings.cold = "anon";
    return in_child_process("baseline", [&] {
        session plain(settings, make_load(settings), nullptr);
        return json(plain.baseline());
    });
}

json run_one(const ycsb_settings& settings, const json& baseline) {
    const own_control_group group;
    json run = in_child_process(command_of(settings), [&] {
        session s(settings, make_load(settings), &group.group());
        return s.run();
    });
    if (!baseline.is_null()) run["page_utilization"]["baseline"] = baseline;
    if (settings.packages) {
        run["source"] = "debian packages";
        run["packages"] = run["records"];
        run["key_size"] = run["value_size"] = nullptr; // they vary
    }
    run["command"] = command_of(settings);
    return run;
}

// Room for all that the process may have, twice: records, index, and what loading leaves behind.
std::uint64_t swap_bytes(const ycsb_settings& s) {
    constexpr std::uint64_t rest = std::uint64_t{512} << 20;
    return rest + 2 * s.records * (s.key_size + s.value_size + 128);
}

// Says which run it would have been.
json skipped_run(const ycsb_settings& s, const std::string& why) {
    json run = {{"index", s.index},           {"protocol", s.protocol},
                {"workload", s.workload},     {"records", s.records},
                {"threads", s.threads},       {"key_size", s.key_size},
                {"value_size", s.value_size}, {"time_scale", s.time_scale},
                {"reclaim", s.reclaim},       {"skipped", why},
                {"windows", json::array()},   {"command", command_of(s)}};
    const session_load load = make_load(s);
    run["distribution"] = load.distribution;
    run["live_share"] = load.distribution == "loop" ? json(s.live_share) : json(nullptr);
    return run;
}

// The kernel's reclaim needs swap, and only the plain run may have it: obase would page out to it, too.
json plain_under_the_kernel(ycsb_settings settings) {
    settings.protocol = "none";
    settings.mode.clear();
    settings.hints = "off";
    settings.cold = "anon";
    settings.reclaim = "pageout";
    settings.beside_kernel = false;
    settings.baseline = settings.huge_pages = false;
    const swap_space swap(swap_request{swap_kind::any, swap_bytes(settings)});
    if (!swap.why_not().empty()) return skipped_run(settings, swap.why_not());
    json run = run_one(settings, json());
    run["swap"] = swap.device();
    return run;
}

} // namespace

bench_result bench_ycsb(const ycsb_settings& settings) {
    if (const std::string why = why_not(settings); !why.empty()) throw std::invalid_argument(why);
    if (settings.beside_kernel && settings.protocol == "none")
        throw std::invalid_argument("--beside-kernel: with --protocol none there is nothing that "
                                    "plain pointers could stand beside");
    // Files are read here once before, so that what is wrong with them is said at once.
    if (make_load(settings).scans && !crestdb::store::ordered(settings.index))
        throw std::invalid_argument("--index " + settings.index +
                                    ": it has no order, and these requests scan");
    bench_result result;
    // Before the control group, which must be empty when it ends: the swap has a process of its own.
    std::optional<swap_space> swap;
    if (settings.reclaim != "off") {
        swap.emplace(swap_request{swap_kind::any, swap_bytes(settings)});
        if (!swap->why_not().empty()) {
            result.skipped = "--reclaim " + settings.reclaim + ": " + swap->why_not();
            result.json = skipped_run(settings, result.skipped);
            return result;
        }
    }
    json baseline;
    if (settings.protocol != "none" && settings.baseline) baseline = baseline_of(settings);
    result.json = run_one(settings, baseline);
    if (swap) result.json["swap"] = swap->device();
    result.partial = result.json["partial"].get<bool>();
    result.failure = disagreement(result.json);
    summarize(result, result.json, command_of(settings));
    if (settings.beside_kernel && !result.partial) try {
            json plain = plain_under_the_kernel(settings);
            if (result.failure.empty() && !plain.contains("skipped"))
                result.failure = disagreement(plain);
            result.json["plain"] = beside(plain);
            result.partial = plain.contains("partial") && plain["partial"].get<bool>();
            if (!plain.contains("skipped"))
                summarize(result, plain, plain["command"].get<std::string>());
        } catch (const interruption&) {
            result.partial = true;
        }
    return result;
}

bench_result bench_ycsb_targets(const std::string& directory, bool quick) {
    bench_result result;
    result.json["runs"] = json::array();
    struct target_case {
        const char* workload;
        double utilization;
    };
    for (const target_case c :
         {target_case{"C", 0.92}, target_case{"B", 0.85}, target_case{"A", 0.70}}) {
        if (interrupted()) break;
        ycsb_settings s;
        s.workload = c.workload;
        s.distribution = "loop";
        s.hints = "pageout";
        s.cold = "file:" + directory;
        // Fifteen windows of five seconds: cold after five, paged out two or three later.
        s.duration_s = 75;
        s.time_scale = 24;
        if (quick) {
            s.records = 50'000;
            s.duration_s = 6;
            s.time_scale = 240;
        }
        if (const std::string why = why_not(s); !why.empty()) throw std::invalid_argument(why);
        json run;
        try {
            run = run_one(s, baseline_of(s));
        } catch (const interruption&) {
            break;
        }
        const std::string command = command_of(s);
        add(result, fmt::format("page utilization, loop, {}", c.workload), "",
            run["page_utilization"]["end"], command, {bound::at_least, c.utilization});
        if (c.workload == std::string("C")) {
            const double used = run["used_bytes"]["end"].get<double>();
            add(result, "used memory end / start, loop, C", "",
                used / run["used_bytes"]["start"].get<double>(), command, {bound::at_most, 0.45});
            add(result, "used memory end / (live + index), loop, C", "",
                used / (run["live_bytes"].get<double>() + run["index_bytes"].get<double>()),
                command, {bound::at_most, 1.10});
        }
        summarize(result, run, command);
        if (result.failure.empty()) result.failure = disagreement(run);
        result.partial = result.partial || run["partial"].get<bool>();
        result.json["runs"].push_back(run);
    }
    result.partial = result.partial || interrupted();
    return result;
}

} // namespace obase::tools
