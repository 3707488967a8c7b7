// SPDX-License-Identifier: MIT
#include "tools/memory/cell.hpp"

#include "runtime/program_time.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/memory/clients.hpp"
#include "tools/memory/limit.hpp"
#include "tools/memory/open_files.hpp"
#include "tools/memory/settled.hpp"
#include "tools/memory/tier_memory.hpp"
#include "tools/workload/cachelib_config.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/object_sizes.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/store_options.hpp"
#include "tools/ycsb/swap_space.hpp"

#include "crestdb/store.hpp"

#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// jemalloc's, where the program has it.
extern "C" int mallctl(const char*, void*, std::size_t*, void*, std::size_t)
    __attribute__((weak)); // NOLINT

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double seconds_between_samples = 0.1; // of used memory, for its peak
// A collector that is late does not hold up the measurement for longer than one in which the program rests
// (program_time.hpp).
constexpr double longest_window = runtime_internal::program_time::longest + 1; // of its length

double seconds_now() { return wall_ns() * 1e-9; }
void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Free memory that an allocator keeps is not in use.
void decommit_free_memory() {
    if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0); // all arenas
}

// One run; its parts in the order of their lives.
class cell {
  public:
    cell(const memory_settings& settings, const std::string& group_path,
         const std::function<void(const json&)>& tell)
        : settings_(settings), tell_(tell), asked_(popularity_of(settings)),
          load_(make_load(store_settings_of(settings))),
          group_(group_path.empty() ? control_group() : control_group(group_path)),
          options_(checked_options(settings)), limiter_(group_),
          used_(settings.settle_windows, settings.settle_share) {}

    void run() {
        if (settings_.limit_first) {
            limiter_.ask_for(
                bytes_of_limit(settings_.limit,
                               settings_.records * (settings_.key_size + settings_.value_size)),
                true);
            report_limit();
        }
        open();
        fill();
        runtime_ = store_->runtime();
        memory_clients clients(*store_, *load_.records, asked_, settings_);
        decommit_free_memory();
        report_loaded();
        if (!settings_.limit.empty() && !settings_.limit_first) {
            const std::uint64_t bytes = bytes_of_limit(settings_.limit, limiter_.charge_or(start_));
            limiter_.ask_for(bytes, settings_.swap != "none");
            aim_below(bytes);
            report_limit();
        }
        if (runtime_ != nullptr) configure(mode_);
        clients.start();
        watch(clients);
        if (settings_.pass && !interrupted()) pass(clients);
        clients.stop();
        if (const std::string why = clients.failure(); !why.empty())
            throw std::runtime_error("a client gave up: " + why);
        const client_totals totals = clients.counts();
        tell_({{"event", "end"},
               {"settled", used_.settled()},
               {"partial", interrupted()},
               {"wrong", totals.wrong},
               {"churned", totals.churned},
               {"index_bytes", store_->index_bytes()}});
    }

  private:
    static options checked_options(const memory_settings& settings) {
        std::string error;
        options made = options_of(settings, error);
        if (!error.empty()) throw std::runtime_error(error);
        return made;
    }

    void configure(run_mode mode) {
        options_.mode = mode;
        runtime& managed = crestdb::store::runtime_of(protocol());
        if (const std::string why = managed.configure(options_); !why.empty())
            throw std::runtime_error(why);
        managed.set_mode(mode);
    }

    const char* protocol() const { return settings_.plain() ? "none" : "arming"; }

    void open() {
        // Only streams are needed from here on; what is not needed is not to be counted.
        asked_.forget_probabilities();
        decommit_free_memory();
        meter_ = std::make_unique<memory_meter>(std::string(options_.cold_directory()), &group_);
        base_ = meter_->sample().used;
        mode_ = options_.mode;
        if (const std::string why =
                [&] {
                    options_.mode = settings_.limit_first ? mode_ : run_mode::off;
                    return crestdb::store::runtime_of(protocol()).configure(options_);
                }();
            !why.empty())
            throw std::runtime_error(why);
        store_ = crestdb::store::open(
            {settings_.index, protocol(), static_cast<std::size_t>(load_.records->count())});
    }

    void fill() {
        fill_store(*store_, *load_.records, settings_.threads);
        load_.records->forget_source();
        if (interrupted()) throw interruption("interrupted while loading");
    }

    void report_loaded() {
        std::vector<char> buffer(load_.records->largest_key());
        const object_sizes sizes = sizes_of(*store_, load_.records->key(0, buffer));
        start_ = peak_ = meter_->sample().used;
        tell_({{"event", "loaded"},
               {"used", start_},
               {"base", base_},
               {"key_object_bytes", sizes.key},
               {"value_object_bytes", sizes.value},
               {"index_bytes", store_->index_bytes()},
               {"used_method", meter_->method()}});
    }

    // A limit that cannot be in force yet, since the kernel would end the process, is nothing that obase could see: it
    // is its budget until then, of which it sees .9 in a group's limit too.
    void aim_below(std::uint64_t bytes) {
        if (settings_.plain() || limiter_.in_force() || options_.memory != options().memory) return;
        aims_ = true;
        if (const std::string why = options_.set("memory", std::to_string(bytes / 10 * 9));
            !why.empty())
            throw std::runtime_error(why);
    }

    void report_limit() {
        if (limit_told_ || !limiter_.in_force()) return;
        limit_told_ = true;
        if (std::exchange(aims_, false) && runtime_ != nullptr) {
            options_.memory = options().memory;
            configure(mode_);
        }
        tell_({{"event", "limit"}, {"bytes", *limiter_.in_force()}, {"window", windows_}});
    }

    void sample() {
        limiter_.tighten();
        report_limit();
        if (settings_.swap.starts_with("file:") && !limiter_.in_force()) drop_swap_cache();
        peak_ = std::max(peak_, meter_->sample().used);
    }

    // What was paged out to a file stays in memory, in the swap cache, until a limit wants the memory; a
    // fault there is no fault.
    void drop_swap_cache() {
        constexpr std::uint64_t not_worth_it = std::uint64_t{4} << 20;
        if (const std::uint64_t bytes = group_.made() ? group_.unmapped_swap_cache_bytes() : 0;
            bytes > not_worth_it)
            group_.reclaim(bytes);
    }

    bool collects() const { return runtime_ != nullptr && mode_ != run_mode::off; }

    // Until the used memory rests, or the last window is over.
    void watch(memory_clients& clients) {
        for (unsigned n = 0; n < settings_.max_windows; ++n) {
            if (!window(clients)) return;
            if (used_.settled()) return;
        }
    }

    // False: it was cut short.
    bool window(memory_clients& clients) {
        const double length = options_.scaled_window_seconds();
        const double begun = seconds_now();
        double sampled = begun;
        const client_totals before = clients.counts();
        const std::uint64_t windows_before = collects() ? runtime_->statistics().windows : 0;
        for (;;) {
            rest(std::min(0.01, length / 4));
            if (interrupted() || !clients.failure().empty()) return false;
            const double now = seconds_now();
            if (now - sampled >= seconds_between_samples) {
                sampled = now;
                sample();
            }
            if (now - begun >= longest_window * length) break;
            if (collects() ? runtime_->statistics().windows != windows_before
                           : now - begun >= length)
                break;
        }
        ++windows_;
        if (settings_.plain() && settings_.pageout_every != 0 &&
            windows_ % settings_.pageout_every == 0)
            page_out_everything();
        report_window(before, clients.counts(), seconds_now() - begun);
        return true;
    }

    void report_window(const client_totals& before, const client_totals& now, double seconds) {
        sample();
        const memory_sample memory = meter_->sample();
        peak_ = std::max(peak_, memory.used);
        used_.add(memory.used);
        const fault_counts faults = now.faults.since(before.faults);
        json line = {{"event", "window"},
                     {"n", windows_},
                     {"seconds", seconds},
                     {"used", memory.used},
                     {"peak", peak_},
                     {"rss", memory.rss},
                     {"compressed", memory.compressed},
                     {"witness", memory.witness},
                     {"operations", faults.operations},
                     {"fault_share", faults.share()},
                     {"major_faults", faults.major_faults_of_all()},
                     {"stall_ns", faults.stall_ns()},
                     {"late_ns", static_cast<double>(now.late.total_ns - before.late.total_ns)}};
        const open_files files = files_of_this_process(std::string(options_.cold_directory()));
        line["open_files"] = files.descriptors;
        line["file_bytes"] = files.unnamed_bytes;
        if (runtime_ != nullptr) add_statistics(line);
        tell_(line);
    }

    void add_statistics(json& line) {
        const statistics s = runtime_->statistics();
        line["collector"] = {{"windows", s.windows},
                             {"moved", s.moved_objects - last_.moved_objects},
                             {"compacted", s.compacted - last_.compacted},
                             {"vetoed", s.vetoed_moves - last_.vetoed_moves},
                             {"paged_out_bytes", s.paged_out_bytes - last_.paged_out_bytes},
                             {"pageout_allowed", s.pageout_allowed},
                             {"promotion_rate", s.promotion_rate},
                             {"cold_threshold", s.cold_threshold},
                             {"cpu_s", s.collector_cpu_seconds - last_.collector_cpu_seconds}};
        const std::vector<std::uint64_t> resident =
            settings_.trace ? resident_bytes_of_tiers(*runtime_, s.heap_count)
                            : std::vector<std::uint64_t>();
        json tiers = json::array();
        for (unsigned i = 0; i < s.heap_count; ++i) {
            const heap_statistics& h = s.heaps[i];
            json tier = {{"name", s.heap_name(i)},
                         {"live_bytes", h.live_bytes},
                         {"extent_bytes", h.extent_bytes},
                         {"touched_bytes", h.touched_bytes},
                         {"touched_pages", h.touched_pages},
                         {"reclaimable", (s.reclaimable_tiers >> i & 1U) != 0}};
            if (i < resident.size()) tier["resident_bytes"] = resident[i];
            tiers.push_back(std::move(tier));
        }
        line["tiers"] = std::move(tiers);
        last_ = s;
    }

    // One thread reads every record, as a backup would, while the load goes on; then some windows.
    void pass(memory_clients& clients) {
        constexpr unsigned windows_after = 5;
        limiter_.insist();
        report_limit();
        const std::uint64_t before = meter_->sample().used;
        peak_ = before;
        std::atomic<bool> done{false};
        std::thread reader([&] {
            clients.read_all();
            done = true;
        });
        const double begun = seconds_now();
        while (!done) window(clients);
        reader.join();
        const double seconds = seconds_now() - begun;
        for (unsigned n = 0; n < windows_after; ++n) window(clients);
        tell_({{"event", "passed"},
               {"before", before},
               {"peak", peak_},
               {"after", meter_->sample().used},
               {"seconds", seconds}});
    }

    const memory_settings settings_;
    const std::function<void(const json&)>& tell_;
    popularity asked_;
    session_load load_;
    control_group group_;
    options options_;
    run_mode mode_ = run_mode::off; // once it is loaded
    limiter limiter_;
    settling used_;
    std::unique_ptr<memory_meter> meter_;
    std::unique_ptr<crestdb::store> store_;
    runtime* runtime_ = nullptr; // null: plain pointers
    std::uint64_t base_ = 0;     // bytes used before there was a store
    std::uint64_t start_ = 0;
    std::uint64_t peak_ = 0;
    std::uint64_t windows_ = 0;
    bool limit_told_ = false;
    bool aims_ = false; // the budget is the limit that is to come
    statistics last_;
};

} // namespace

popularity popularity_of(const memory_settings& s) {
    if (s.load == "hotspot" && s.shift_every != 0) {
        std::string ignored;
        const double operations = s.operations_per_second() * s.shift_every *
                                  options_of(s, ignored).scaled_window_seconds();
        return popularity::shifting_hotspot(
            s.records, s.hot_data, s.hot_accesses,
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(operations)), s.seed);
    }
    if (s.load == "buckets") {
        const workload::cachelib_config measured = workload::read_cachelib_config(s.popularity);
        return popularity::buckets(s.records, measured.bucket_keys, measured.bucket_weights,
                                   s.seed);
    }
    if (s.load == "hotspot")
        return popularity::hotspot(s.records, s.hot_data, s.hot_accesses, s.seed);
    if (s.load == "uniform") return popularity::uniform(s.records, s.seed);
    if (s.load == "loop") return popularity::loop(s.records, s.live_share, s.seed);
    return popularity::zipfian(s.records, s.theta, s.seed);
}

options options_of(const memory_settings& s, std::string& error) {
    constexpr double usual_scale = 60, usual_window_s = 60;
    options made;
    made.mode = run_mode::hint;
    made.window_seconds = usual_window_s;
    made.time_scale = usual_scale;
    if (const auto errors = made.apply_environment(environ); !errors.empty())
        error = errors.front();
    if (s.window_s > 0) made.window_seconds = s.window_s;
    if (s.time_scale > 0) made.time_scale = s.time_scale;
    if (!s.policy.empty() && !s.plain()) made.policy = s.policy;
    if (!s.cold.empty()) made.cold_backing = s.cold;
    if (!s.hints.empty()) {
        made.hint_cold = s.hints != "off";
        made.hint_pageout = s.hints == "pageout";
    }
    for (const std::string& one : s.set) {
        const std::size_t equals = one.find('=');
        const std::string why = equals == std::string::npos
                                    ? "--set " + one + ": NAME=VALUE is expected"
                                    : made.set(one.substr(0, equals), one.substr(equals + 1));
        if (!why.empty() && error.empty()) error = why;
    }
    // Plain pointers have no heaps, so nothing of theirs lies in a file.
    if (s.plain()) made.cold_backing = "anon";
    return made;
}

void run_cell(const memory_settings& settings, const std::string& group_path,
              const std::function<void(const json&)>& tell) {
    cell(settings, group_path, tell).run();
}

} // namespace obase::tools
