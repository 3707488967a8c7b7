// SPDX-License-Identifier: MIT
#include "tools/ycsb/session.hpp"

#include "tools/bench/bench.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/curves/ideal.hpp"
#include "tools/ycsb/configured_store.hpp"
#include "tools/ycsb/in_parallel.hpp"
#include "tools/ycsb/object_sizes.hpp"
#include "tools/ycsb/page_touches.hpp"
#include "tools/ycsb/swap_space.hpp"
#include "tools/ycsb/verification.hpp"
#include "tools/ycsb/window_entry.hpp"

#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

// jemalloc's, where the program has it.
extern "C" int mallctl(const char*, void*, std::size_t*, void*, std::size_t)
    __attribute__((weak)); // NOLINT

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr std::size_t heat_cells = 4096;
constexpr std::uint64_t heat_gap = std::uint64_t{4} << 20;
constexpr double seconds_between_samples = 0.1; // of used memory, for its peak

double seconds_now() { return wall_ns() * 1e-9; }

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

json optional_number(const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
}

// Free memory that an allocator keeps is not in use: the lists of a measurement should not count.
void decommit_free_memory() {
    if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0); // all arenas
}

json regions(const std::vector<heat_region>& heat) {
    json list = json::array();
    for (const heat_region& r : heat) {
        json cells = json::array();
        for (const double c : r.cells) cells.push_back(std::round(c * 1000) / 1000);
        list.push_back({{"name", r.name},
                        {"begin", fmt::format("{:#x}", r.begin)},
                        {"bytes", r.bytes},
                        {"bytes_per_cell", r.bytes_per_cell},
                        {"cells", cells}});
    }
    return list;
}

// The two counts of memory differ by the pages that this process shares with the one that forked
// it: they are charged to the other until they are written.
constexpr double shared_pages = 2 << 20;

bool near(std::uint64_t a, std::uint64_t b) {
    return agree(static_cast<double>(a), static_cast<double>(b), shared_pages);
}

} // namespace

session::session(const ycsb_settings& settings, session_load load, const control_group* group)
    : settings_(settings), load_(std::move(load)),
      ledger_(load_.records->count() + load_.room_for_inserts), accesses_(ledger_.capacity()),
      meter_(settings.cold_directory(), group) {
    options_ = options_of(settings_);
    const std::uint64_t used = meter_.sample().used;
    base_ = used - std::min<std::uint64_t>(used, load_.records->source_bytes());
    store_ = open_configured(settings_, options_, static_cast<std::size_t>(load_.records->count()));
    runtime_ = store_->runtime();
}

session::~session() = default;

void session::configure(run_mode mode, double window_s) {
    if (runtime_ == nullptr) return;
    options_.mode = mode;
    options_.window_seconds = window_s;
    if (const std::string why = runtime_->configure(options_); !why.empty())
        throw std::runtime_error(why);
    runtime_->set_mode(mode);
}

void session::collect() {
    if (runtime_ == nullptr) return;
    if (const collect_result result = runtime_->collect_now(); result != collect_result::done)
        throw std::runtime_error("a window could not be completed: a thread kept its scope open, "
                                 "or membarrier failed");
}

std::string session::heap_name(std::uintptr_t address) const {
    if (runtime_ == nullptr) return mallctl != nullptr ? "jemalloc" : "malloc";
    const int heap = runtime_->heap_of(reinterpret_cast<const void*>(address));
    if (heap < 0) return "elsewhere";
    return std::string(runtime_->statistics().heap_name(static_cast<unsigned>(heap)));
}

void session::fill() {
    const record_set& records = *load_.records;
    tell(fmt::format("loading {} records into {} ({})", records.count(), settings_.index,
                     settings_.protocol));
    tools::fill(*store_, *load_.records, ledger_, settings_.threads);
    decommit_free_memory();
    std::vector<std::unique_ptr<client>> clients;
    for (unsigned t = 0; t < settings_.threads; ++t)
        clients.push_back(std::make_unique<client>(*store_, records, ledger_, load_.source(t),
                                                   client_options{settings_.in_place, true}));
    traffic_ = std::make_unique<traffic>(std::move(clients));
}

session::layout session::measure_layout() {
    tell("measuring the layout");
    layout result;
    constexpr double never = 1e6;
    configure(run_mode::observe, never);
    collect(); // arms everything

    auto log = std::make_unique<touch_log>(ledger_.capacity());
    traffic_->set_log(log.get());
    const bool kernel_sees = clear_page_touches();
    const std::uint64_t begun_at = traffic_->operations();
    const double begun = seconds_now();
    traffic_->resume();
    // A sequence is repeated until every thread has been through its part.
    const std::uint64_t enough = 2 * load_.period;
    const double window = std::min(settings_.real_window_s(), 10.0);
    while (!interrupted() && traffic_->failure().empty() &&
           (traffic_->operations() - begun_at < enough || seconds_now() - begun < window))
        rest(0.01);
    traffic_->pause();
    traffic_->set_log(nullptr);

    std::optional<std::uint64_t> kernel_bytes;
    if (kernel_sees && runtime_ != nullptr)
        kernel_bytes = touched_page_bytes([&](std::uintptr_t begin, std::uintptr_t end) {
            return runtime_->heap_of(reinterpret_cast<const void*>(begin)) >= 0 &&
                   runtime_->heap_of(reinterpret_cast<const void*>(end - 1)) >= 0;
        });
    collect();
    if (runtime_ != nullptr && !interrupted()) {
        const statistics seen = runtime_->statistics();
        result.answers.seen = page_utilization(seen);
        result.answers.seen_bytes = touched_bytes(seen);
    }

    // Where everything lies. The searches are accesses, which the collection at the end forgets.
    std::vector<placed_object> objects;
    std::mutex mutex;
    const record_set& records = *load_.records;
    in_parallel(settings_.threads, records_now(), [&](std::uint64_t first, std::uint64_t last) {
        std::vector<char> buffer(records.largest_key());
        std::vector<placed_object> found;
        for (std::uint64_t record = first; record < last; ++record) {
            if (ledger_.look(record) == 0) continue; // never inserted
            store_->visit_path(
                records.key(record, buffer),
                [&, touched = log->was_touched(record)](const void* object, std::size_t bytes) {
                    found.push_back({reinterpret_cast<std::uintptr_t>(object),
                                     static_cast<std::uint32_t>((bytes + 7) & ~7UL), touched});
                });
        }
        const std::lock_guard guard(mutex);
        objects.insert(objects.end(), found.begin(), found.end());
    });
    sort_and_join(objects);
    if (log->scanned.load_relaxed() == 0 && !interrupted()) {
        result.answers.exact = log->inserted.load_relaxed() == 0;
        result.answers.written = log->written.load_relaxed() != 0;
        const utilization small = utilization_of(objects, 4096);
        result.answers.by_address = small.share;
        result.by_address_2m = utilization_of(objects, std::uint64_t{2} << 20).share;
        result.answers.touched_bytes = small.bytes;
        if (kernel_bytes && *kernel_bytes != 0)
            result.answers.by_kernel =
                static_cast<double>(small.bytes) / static_cast<double>(*kernel_bytes);
        result.heat = heat_map_of(objects, heat_cells, heat_gap,
                                  [this](std::uintptr_t address) { return heap_name(address); });
    }
    objects = {};
    log.reset();
    collect();
    decommit_free_memory();
    return result;
}

void session::send_traffic(json& result) {
    tell(fmt::format("traffic for {} s", settings_.duration_s));
    configure(working_mode_of(settings_), settings_.window_s);
    json windows = json::array();
    statistics last;
    if (runtime_ != nullptr) last = runtime_->statistics();
    const statistics first = last;
    const client_counts counts_before = traffic_->counts();
    traffic_->clear_latencies();

    const double begin = seconds_now();
    const std::uint64_t operations_at_begin = traffic_->operations();
    double window_begin = begin, half = 0, sampled = begin;
    std::uint64_t window_operations = operations_at_begin, half_operations = 0;
    traffic_->resume();
    for (;;) {
        rest(0.01);
        const double now = seconds_now();
        const bool over = now - begin >= settings_.duration_s;
        if (interrupted()) partial_ = true;
        if (over || partial_ || !traffic_->failure().empty()) break;
        if (now - sampled >= seconds_between_samples) {
            sampled = now;
            note_peak(meter_.sample());
        }
        if (half == 0 && now - begin >= settings_.duration_s / 2) {
            if (settings_.reclaim == "pageout") {
                tell("paging everything out");
                result["paged_out_bytes"] = page_out_everything();
            }
            // What counts as converged: the second half.
            traffic_->pause();
            traffic_->clear_latencies();
            traffic_->set_accesses(&accesses_);
            half = seconds_now();
            half_operations = traffic_->operations();
            traffic_->resume();
        }
        statistics current;
        if (runtime_ != nullptr && working_mode_of(settings_) != run_mode::off) {
            current = runtime_->statistics();
            if (current.windows == last.windows) continue;
        } else if (now - window_begin < settings_.real_window_s()) {
            continue;
        }
        const std::uint64_t operations = traffic_->operations();
        const memory_sample memory = meter_.sample();
        note_peak(memory);
        windows.push_back(window_entry(now - begin, memory, runtime_ != nullptr ? &last : nullptr,
                                       runtime_ != nullptr ? &current : nullptr, now - window_begin,
                                       operations - window_operations));
        tell(fmt::format(
            "{:.0f} s: {:.2f} Mop/s, {:.0f} MiB used", now - begin,
            static_cast<double>(operations - window_operations) / (now - window_begin) * 1e-6,
            static_cast<double>(windows.back()["used_bytes"].get<std::uint64_t>()) / 1048576));
        last = current;
        window_begin = now;
        window_operations = operations;
    }
    traffic_->pause();
    traffic_->set_accesses(nullptr);
    const double end = seconds_now();
    if (half != 0) counted_s_ = end - half;
    if (const std::string why = traffic_->failure(); !why.empty())
        throw std::runtime_error("a thread of the traffic gave up: " + why);
    const double from = half != 0 ? half : begin;
    const std::uint64_t measured =
        traffic_->operations() - (half != 0 ? half_operations : operations_at_begin);
    result["throughput_ops"] = static_cast<double>(measured) / (end - from);
    const latency_histogram latencies = traffic_->latencies();
    result["latency_us"] = {{"p50", latencies.quantile_ns(0.5) / 1000},
                            {"p90", latencies.quantile_ns(0.9) / 1000},
                            {"p99", latencies.quantile_ns(0.99) / 1000},
                            {"p999", latencies.quantile_ns(0.999) / 1000}};
    result["windows"] = std::move(windows);
    result["misses"] = traffic_->counts().misses - counts_before.misses;
    for (const char* name :
         {"promotion_rate", "cold_threshold", "moved", "vetoed", "collector_cpu_share"})
        result[name] = nullptr;
    if (runtime_ != nullptr) {
        const statistics now = runtime_->statistics();
        result["promotion_rate"] = now.promotion_rate;
        result["cold_threshold"] = now.cold_threshold;
        result["moved"] = moves(now) - moves(first);
        result["vetoed"] = now.vetoed_moves - first.vetoed_moves;
        result["collector_cpu_share"] =
            (now.collector_cpu_seconds - first.collector_cpu_seconds) / (end - begin);
        result["hints_stopped"] = now.hints_stopped != 0;
        result["no_room_skips"] = now.no_room_skips;
    }
    if (load_.period != 0) {
        // What makes the touched set of every window the same.
        const double window_operations_expected =
            static_cast<double>(measured) / (end - from) * settings_.real_window_s();
        result["period_fits_window"] =
            static_cast<double>(load_.period) <= window_operations_expected;
    }
}

void session::verify(client_counts& counts) {
    tell("verifying all records");
    counts.add(verify_all(*store_, *load_.records, ledger_, records_now(), settings_.threads,
                          settings_.in_place));
    if (interrupted()) partial_ = true;
}

// The records' objects as they are now: whoever replaces values by larger ones is allowed more.
void session::add_ideal(json& result, std::uint64_t used) {
    for (const char* name : {"fault_share", "major_faults_per_op", "stall_share", "ideal_bytes",
                             "ideal_object_bytes", "used_over_ideal", "objects_over_ideal"})
        result[name] = nullptr;
    result["base_bytes"] = base_;
    const fault_counts faults = traffic_->faults();
    if (faults.looked_at == 0) return;
    result["fault_share"] = faults.share();
    result["major_faults_per_op"] = faults.major_faults_per_operation();
    result["stall_share"] = faults.stall_ns() * 1e-9 / (counted_s_ * settings_.threads);
    if (!accesses_.complete() || partial_) return;

    std::vector<cached_unit> units;
    std::mutex mutex;
    const record_set& records = *load_.records;
    in_parallel(settings_.threads, records_now(), [&](std::uint64_t first, std::uint64_t last) {
        std::vector<char> buffer(records.largest_key());
        std::vector<cached_unit> found;
        for (std::uint64_t record = first; record < last; ++record) {
            const std::uint32_t asked = accesses_.of(record);
            if (asked == 0) continue;
            const object_sizes sizes = sizes_of(*store_, records.key(record, buffer));
            if (sizes.both() != 0)
                found.push_back({static_cast<double>(sizes.both()), static_cast<double>(asked)});
        }
        const std::lock_guard guard(mutex);
        units.insert(units.end(), found.begin(), found.end());
    });
    const double index = static_cast<double>(store_->index_bytes());
    const memory_use use{static_cast<double>(used - std::min(used, base_)), index,
                         ideal_object_bytes(curve_of_hottest(std::move(units)), faults.share())};
    result["ideal_object_bytes"] = use.ideal_objects;
    result["ideal_bytes"] = use.ideal_objects + index;
    result["used_over_ideal"] = optional_number(used_over_ideal(use));
    result["objects_over_ideal"] = optional_number(objects_over_ideal(use));
}

double session::baseline() {
    fill();
    return measure_layout().answers.by_address.value_or(0);
}

json session::run() {
    fill();
    const memory_sample memory_at_start = meter_.sample();
    note_peak(memory_at_start);
    const layout start = measure_layout();

    json result;
    result["index"] = settings_.index;
    result["workload"] = !settings_.trace.empty() ? "trace"
                         : settings_.packages     ? "packages"
                                                  : settings_.workload;
    result["protocol"] = settings_.protocol;
    result["mode"] = runtime_ != nullptr ? json(options_.get("mode")) : json(nullptr);
    result["records"] = load_.records->count();
    result["threads"] = settings_.threads;
    result["duration_s"] = settings_.duration_s;
    result["window_s"] = settings_.window_s;
    result["time_scale"] = settings_.time_scale;
    result["real_window_s"] = settings_.real_window_s();
    result["distribution"] = load_.distribution;
    result["live_share"] = load_.distribution == "loop" ? json(settings_.live_share) : nullptr;
    result["period"] = load_.period != 0 ? json(load_.period) : json(nullptr);
    result["key_size"] = settings_.key_size;
    result["value_size"] = settings_.value_size;
    result["update"] = settings_.in_place ? "in place" : "new object";
    result["hints"] = settings_.hints;
    result["reclaim"] = settings_.reclaim;
    result["cold"] = settings_.cold;

    send_traffic(result);
    if (runtime_ != nullptr) result["mode"] = options_.get("mode");
    const memory_sample memory_at_end = meter_.sample();
    note_peak(memory_at_end);
    // Interrupted, there is no window to measure.
    const layout end = partial_ ? layout{} : measure_layout();
    client_counts counts = traffic_->counts();
    verify(counts);
    add_ideal(result, memory_at_end.used);

    result["page_utilization"] = {
        {"baseline",
         runtime_ == nullptr ? optional_number(start.answers.by_address) : json(nullptr)},
        {"start",
         optional_number(runtime_ != nullptr ? start.answers.seen : start.answers.by_address)},
        {"end", optional_number(runtime_ != nullptr ? end.answers.seen : end.answers.by_address)},
        {"end_2m", optional_number(end.by_address_2m)},
        {"kernel", optional_number(end.answers.by_kernel)}};
    result["rss_bytes"] = {{"start", memory_at_start.rss}, {"end", memory_at_end.rss}};
    result["used_bytes"] = {
        {"start", memory_at_start.used}, {"peak", peak_used_}, {"end", memory_at_end.used}};
    result["compressed_bytes"] = {{"start", memory_at_start.compressed},
                                  {"end", memory_at_end.compressed}};
    result["used_method"] = meter_.method();
    result["live_bytes"] = end.answers.touched_bytes;
    result["index_bytes"] = store_->index_bytes();
    result["heat_map"] = {{"before", regions(start.heat)}, {"after", regions(end.heat)}};

    std::uint64_t paths = 0, objects = 0;
    std::vector<char> buffer(load_.records->largest_key());
    const std::uint64_t step = std::max<std::uint64_t>(1, load_.records->count() / 10'000);
    for (std::uint64_t record = 0; record < load_.records->count(); record += step, ++paths)
        store_->visit_path(load_.records->key(record, buffer),
                           [&](const void*, std::size_t) { ++objects; });
    result["guides_per_op"] = static_cast<double>(objects) / static_cast<double>(paths);

    const std::optional<bool> same_utilization =
        both(utilization_agrees(start.answers), utilization_agrees(end.answers));
    const std::optional<bool> same_for_kernel =
        both(kernel_agrees(start.answers), kernel_agrees(end.answers));
    const bool same_memory = near(memory_at_end.used, memory_at_end.witness) &&
                             near(memory_at_start.used, memory_at_start.witness);
    result["witness"] = {{"page_utilization", optional_number(end.answers.by_address)},
                         {"page_utilization_start", optional_number(start.answers.by_address)},
                         {"used_bytes", memory_at_end.witness},
                         {"used_bytes_start", memory_at_start.witness},
                         {"used_method", meter_.witness_method()},
                         {"lost_writes", counts.lost_writes},
                         {"stale_reads", counts.stale_reads},
                         {"corrupt_values", counts.corrupt},
                         {"utilization_agrees", flag_or_null(same_utilization)},
                         {"kernel_agrees", flag_or_null(same_for_kernel)},
                         {"used_agrees", same_memory},
                         {"agrees", same_utilization.value_or(true) &&
                                        same_for_kernel.value_or(true) && same_memory &&
                                        counts.lost_writes == 0 && counts.stale_reads == 0 &&
                                        counts.corrupt == 0}};
    result["partial"] = partial_ || interrupted();
    result["machine"] = describe_machine();
    return result;
}

} // namespace obase::tools
