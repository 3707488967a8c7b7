// SPDX-License-Identifier: MIT
#include "tools/kv/kv.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/result_file.hpp"
#include "tools/kv/load.hpp"
#include "tools/kv/recording.hpp"
#include "tools/kv/run.hpp"
#include "tools/ycsb/process_memory.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

std::string command_of(const kv_settings& s) {
    const kv_settings usual;
    std::string text = "obase bench kv";
    const auto option = [&](const char* name, const auto& value, const auto& other) {
        if (value != other) text += fmt::format(" {} {}", name, value);
    };
    option("--replay", s.replay, "");
    if (s.replay.empty()) {
        option("--workload", s.workload, "");
        option("--records", s.store.records, usual.store.records);
        option("--threads", s.store.threads, usual.store.threads);
        option("--seconds", s.seconds, usual.seconds);
        option("--key-size", s.store.key_size, usual.store.key_size);
        option("--value-size", s.store.value_size, usual.store.value_size);
        option("--seed", s.store.seed, usual.store.seed);
    }
    option("--index", s.store.index, "");
    option("--protocol", s.store.protocol, "");
    option("--policy", s.policy, usual.policy);
    option("--rate", s.rate, usual.rate);
    option("--window", s.store.window_s, usual.store.window_s);
    option("--time-scale", s.store.time_scale, usual.store.time_scale);
    option("--hints", s.store.hints, usual.store.hints);
    option("--cold", s.store.cold, usual.store.cold);
    option("--record", s.record, usual.record);
    return text;
}

// The numbers of a run that people look at first.
void summarize(bench_result& result, const json& run, const std::string& command) {
    const std::string what = run["workload"].get<std::string>() + ": ";
    const auto add = [&](const std::string& name, const char* unit, const json& value,
                         double scale = 1) {
        if (value.is_number())
            result.figures.push_back(
                counted_figure(what + name, unit, value.get<double>() * scale, command));
    };
    constexpr double mib = 1. / (1 << 20);
    add("throughput", "op/s", run["throughput_ops"]);
    if (!run["lateness"].is_null()) {
        add("late operations", "", run["lateness"]["late"]);
        add("longest delay", "us", run["lateness"]["worst_us"]);
    }
    add("hit ratio of reads", "", run["hit_ratio"]);
    add("minor faults", "", run["page_faults"]["minor"]);
    add("major faults", "", run["page_faults"]["major"]);
    for (const char* when : {"start", "peak", "end"})
        add(fmt::format("used memory {}", when), "MiB", run["used_bytes"][when], mib);
}

} // namespace

std::string why_not(const kv_settings& s) {
    if (!(std::isfinite(s.rate) && s.rate >= 0 && s.rate <= 1e9))
        return fmt::format("--rate {}: 0 to 1000000000 operations per second", s.rate);
    if (!(std::isfinite(s.seconds) && s.seconds > 0 && s.seconds <= 1e7))
        return fmt::format("--seconds {}: more than 0 and at most 10000000", s.seconds);
    if (!s.policy.empty() && s.store.protocol == "none")
        return fmt::format("--policy {}: not with --protocol none, which moves nothing", s.policy);
    if (!s.record.empty() && same_file(s.record, s.replay))
        return fmt::format("--record {}: expected another file than --replay's", s.record);
    return why_not(s.store);
}

bench_result bench_kv(const kv_settings& asked) {
    if (const std::string why = why_not(asked); !why.empty()) throw std::invalid_argument(why);
    // Files are read here once before, so that what is wrong with them is said at once, and what is
    // wrong with the command line as such.
    kv_settings settings = asked;
    const auto load_of = [&] {
        if (asked.replay.empty()) return make_kv_load(asked);
        replayed again = load_of_recording(asked);
        settings = again.settings;
        return std::move(again.load);
    };
    {
        const kv_load load = load_of();
        if (load.session.scans && !crestdb::store::ordered(settings.store.index))
            throw std::invalid_argument("--index " + settings.store.index +
                                        ": it has no order, and these requests scan");
        if (load.sine.amplitude > settings.rate)
            throw std::invalid_argument(
                fmt::format("--rate {}: at least the amplitude of the load's sine, {}, is expected",
                            settings.rate, load.sine.amplitude));
    }
    const own_control_group group;
    const std::string command = command_of(settings);
    bench_result result;
    result.json = in_child_process(command, [&] {
        kv_load load = load_of();
        return kv_run(settings, std::move(load), &group.group()).run();
    });
    result.json["command"] = command;
    result.partial = result.json["partial"].get<bool>();
    for (const char* what : {"lost_writes", "stale_reads", "corrupt_values"})
        if (const auto count = result.json[what].get<std::uint64_t>(); count != 0)
            result.failure += fmt::format("{}{}: {} {}", result.failure.empty() ? "" : "; ",
                                          command, count, what);
    summarize(result, result.json, command);
    return result;
}

} // namespace obase::tools
