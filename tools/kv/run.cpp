// SPDX-License-Identifier: MIT
#include "tools/kv/run.hpp"

#include "tools/bench/bench.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/kv/recording.hpp"
#include "tools/ycsb/configured_store.hpp"
#include "tools/ycsb/verification.hpp"
#include "tools/ycsb/window_entry.hpp"

#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double seconds_between_samples = 0.1; // of used memory, for its peak

double seconds_now() { return wall_ns() * 1e-9; }

json faults_json(const page_faults& faults) {
    return {{"minor", faults.minor}, {"major", faults.major}};
}

json lateness_json(const workload::lateness& late) {
    return {{"late", late.late},
            {"mean_us", late.mean_ns() * 1e-3},
            {"worst_us", static_cast<double>(late.worst_ns) * 1e-3}};
}

options kv_options(const kv_settings& settings) {
    options made = options_of(settings.store);
    if (settings.policy.empty()) return made;
    if (const std::string why = made.set("policy", settings.policy); !why.empty())
        throw std::runtime_error(why);
    return made;
}

} // namespace

kv_run::kv_run(const kv_settings& settings, kv_load load, const control_group* group)
    : settings_(settings), load_(std::move(load)), options_(kv_options(settings)),
      ledger_(load_.session.records->count() + load_.session.room_for_inserts),
      meter_(settings.store.cold_directory(), group) {
    store_ = open_configured(settings_.store, options_, load_.session.records->count());
    runtime_ = store_->runtime();
}

kv_run::~kv_run() = default;

memory_sample kv_run::sample() {
    const memory_sample now = meter_.sample();
    peak_used_ = std::max(peak_used_, now.used);
    return now;
}

void kv_run::send_traffic(json& result) {
    tell(fmt::format("{} for {} s", settings_.workload, settings_.seconds));
    const run_mode mode = working_mode_of(settings_.store);
    statistics before;
    if (runtime_ != nullptr) {
        options_.mode = mode;
        runtime_->set_mode(mode);
        before = runtime_->statistics();
    }
    const statistics first = before;
    const bool by_collector = runtime_ != nullptr && mode != run_mode::off;
    json windows = json::array();

    traffic_->set_pace({.rate = settings_.rate,
                        .amplitude = load_.sine.amplitude,
                        .frequency = load_.sine.frequency,
                        .phase = load_.sine.phase});
    const page_faults faults_at_begin = page_faults_so_far();
    const double begin = seconds_now();
    double window_begin = begin, sampled = begin;
    std::uint64_t window_operations = 0;
    page_faults window_faults = faults_at_begin;
    const auto end_window = [&](double now, const statistics* current) {
        const std::uint64_t operations = traffic_->operations();
        const page_faults faults = page_faults_so_far();
        json entry = window_entry(now - begin, sample(), runtime_ != nullptr ? &before : nullptr,
                                  current, now - window_begin, operations - window_operations);
        entry["operations"] = operations - window_operations;
        entry["page_faults"] = faults_json(faults.since(window_faults));
        // How many operations are due and were not sent: of a constant rate.
        entry["behind"] = settings_.rate > 0 && load_.sine.amplitude == 0
                              ? json(std::max(0., settings_.rate * (now - begin) -
                                                      static_cast<double>(operations)))
                              : json(nullptr);
        tell(fmt::format("{:.0f} s: {:.0f} op/s, {:.0f} MiB used, {} major faults", now - begin,
                         entry["throughput_ops"].get<double>(),
                         entry["used_bytes"].get<double>() / 1048576,
                         faults.since(window_faults).major));
        windows.push_back(std::move(entry));
        if (current != nullptr) before = *current;
        window_begin = now;
        window_operations = operations;
        window_faults = faults;
    };

    traffic_->resume();
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const double now = seconds_now();
        if (interrupted()) partial_ = true;
        if (partial_ || traffic_->ended() || !traffic_->failure().empty() ||
            (settings_.replay.empty() && now - begin >= settings_.seconds))
            break;
        if (now - sampled >= seconds_between_samples) {
            sampled = now;
            sample();
        }
        if (by_collector) {
            const statistics current = runtime_->statistics();
            if (current.windows != before.windows) end_window(now, &current);
        } else if (now - window_begin >= settings_.store.real_window_s()) {
            end_window(now, nullptr);
        }
    }
    traffic_->pause();
    const double end = seconds_now();
    if (const std::string why = traffic_->failure(); !why.empty())
        throw std::runtime_error("a client gave up: " + why);

    const std::uint64_t operations = traffic_->operations();
    const client_counts counts = traffic_->counts();
    const latency_histogram latencies = traffic_->latencies();
    result["operations"] = operations;
    result["duration_s"] = end - begin;
    result["throughput_ops"] = static_cast<double>(operations) / (end - begin);
    result["latency_us"] = {{"p50", latencies.quantile_ns(0.5) / 1000},
                            {"p99", latencies.quantile_ns(0.99) / 1000},
                            {"p999", latencies.quantile_ns(0.999) / 1000}};
    result["lateness"] = settings_.rate > 0 ? lateness_json(traffic_->late()) : json(nullptr);
    const std::uint64_t hits = counts.reads - counts.misses;
    result["reads"] = counts.reads;
    result["hits"] = hits;
    result["hit_ratio"] = counts.reads == 0
                              ? json(nullptr)
                              : json(static_cast<double>(hits) / static_cast<double>(counts.reads));
    result["page_faults"] = faults_json(page_faults_so_far().since(faults_at_begin));
    result["windows"] = std::move(windows);
    for (const char* name : {"moved", "vetoed", "collector_cpu_share"}) result[name] = nullptr;
    if (runtime_ != nullptr) {
        const statistics last = runtime_->statistics();
        result["moved"] = moves(last) - moves(first);
        result["vetoed"] = last.vetoed_moves - first.vetoed_moves;
        result["collector_cpu_share"] =
            (last.collector_cpu_seconds - first.collector_cpu_seconds) / (end - begin);
    }
}

json kv_run::run() {
    session_load& load = load_.session;
    const ycsb_settings& s = settings_.store;
    std::shared_ptr<workload::operation_recorder> recorder;
    if (!settings_.record.empty()) {
        recorder = std::make_shared<workload::operation_recorder>(
            settings_.record, recording_header(settings_), s.threads);
        record(load, recorder);
    }
    tell(
        fmt::format("loading {} records into {} ({})", load.records->count(), s.index, s.protocol));
    fill(*store_, *load.records, ledger_, s.threads);
    std::vector<std::unique_ptr<client>> clients;
    for (unsigned t = 0; t < s.threads; ++t)
        clients.push_back(std::make_unique<client>(*store_, *load.records, ledger_, load.source(t),
                                                   client_options{}));
    traffic_ = std::make_unique<traffic>(std::move(clients));

    json result = {{"workload", settings_.workload},
                   {"label", load_.label.empty() ? json(nullptr) : json(load_.label)},
                   {"index", s.index},
                   {"protocol", s.protocol},
                   {"policy", runtime_ != nullptr ? json(options_.policy) : json(nullptr)},
                   {"records", load.records->count()},
                   {"threads", s.threads},
                   {"rate", settings_.rate},
                   {"window_s", s.window_s},
                   {"time_scale", s.time_scale},
                   {"hints", s.hints},
                   {"cold", s.cold},
                   {"replay", settings_.replay.empty() ? json(nullptr) : json(settings_.replay)}};
    const memory_sample start = sample();
    send_traffic(result);
    const memory_sample end = sample();
    result["rss_bytes"] = {{"start", start.rss}, {"end", end.rss}};
    result["used_bytes"] = {{"start", start.used}, {"peak", peak_used_}, {"end", end.used}};
    result["used_method"] = meter_.method();
    result["index_bytes"] = store_->index_bytes();

    if (recorder != nullptr) recorder->finish();
    client_counts counts = traffic_->counts();
    tell("verifying all records");
    counts.add(verify_all(*store_, *load.records, ledger_,
                          load.records_now ? load.records_now() : load.records->count(), s.threads,
                          false));
    result["lost_writes"] = counts.lost_writes;
    result["stale_reads"] = counts.stale_reads;
    result["corrupt_values"] = counts.corrupt;
    result["partial"] = partial_ || interrupted();
    return result;
}

} // namespace obase::tools
