// SPDX-License-Identifier: MIT
#include "tools/ycsb/compare.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/traffic.hpp"

#include "tools/workload/ycsb_mix.hpp"

#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define OBASE_TOOLS_CALLGRIND 1
#endif

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double never = 1e6; // seconds: windows are asked for
constexpr std::size_t most_windows_to_converge = 12;
constexpr std::size_t most_windows_with_hints = 20;
constexpr double windows_before_hint = 3; // after an object has become cold
constexpr double still =
    0.01; // converged when a window moves fewer objects than this of the records

// How a store that moves its objects is set up.
struct arrangement {
    std::string protocol;
    std::string hints = "off"; // off, cold or pageout
    std::string cold = "anon"; // or file:DIR
    // With hints the window stands for the papers' 120 s, also for the minute of the promotion rate.
    double time_scale = 1;

    run_mode working_mode() const { return hints == "off" ? run_mode::move : run_mode::hint; }
};

void configure(const arrangement& how, run_mode mode, double window_s = never) {
    options o;
    o.mode = mode;
    o.time_scale = how.time_scale;
    o.window_seconds = std::min(window_s * how.time_scale, never);
    o.cold_backing = how.cold;
    o.hint_cold = how.hints != "off";
    o.hint_pageout = how.hints == "pageout";
    if (const std::string why = crestdb::store::runtime_of(how.protocol).configure(o); !why.empty())
        throw std::runtime_error(why);
}

// One store with its traffic.
class contestant {
  public:
    contestant(const ycsb_settings& settings, arrangement how)
        : settings_(settings), how_(std::move(how)), load_(make_load(settings)), ledger_(1) {
        if (how_.protocol != "none") configure(how_, run_mode::off);
        store_ = crestdb::store::open(
            {settings.index, how_.protocol, static_cast<std::size_t>(load_.records->count())});
        runtime_ = store_->runtime();
        fill_store(*store_, *load_.records, settings.threads);
        std::vector<std::unique_ptr<client>> clients;
        // Checks cost the same under every protocol, and would make the difference look smaller.
        for (unsigned t = 0; t < settings.threads; ++t)
            clients.push_back(std::make_unique<client>(*store_, *load_.records, ledger_,
                                                       load_.source(t),
                                                       client_options{settings.in_place, false}));
        traffic_ = std::make_unique<traffic>(std::move(clients));
    }

    // Operations per second of a slice; with a whole window somewhere in it, if asked for.
    double slice(double seconds, bool with_window) {
        const std::uint64_t before = traffic_->operations();
        const double begin = wall_ns();
        traffic_->resume();
        std::thread window;
        if (with_window && runtime_ != nullptr) window = std::thread([this] { collect(); });
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        if (window.joinable()) window.join();
        traffic_->pause();
        if (const std::string why = traffic_->failure(); !why.empty())
            throw std::runtime_error("a thread of the traffic gave up: " + why);
        return static_cast<double>(traffic_->operations() - before) / ((wall_ns() - begin) * 1e-9);
    }
    void collect() {
        if (runtime_ != nullptr) (void)runtime_->collect_now();
    }
    void switch_on() {
        if (runtime_ == nullptr) return;
        configure(how_, how_.working_mode());
        runtime_->set_mode(how_.working_mode());
    }
    // Operations per second of a turn as long as a window that the collector begins by itself, and
    // so keeps to its share of processor time in; it begins with the turn, and the turn lasts until
    // it has ended.
    double turn_with_window(double seconds) {
        const std::uint64_t windows = runtime_->statistics().windows;
        configure(how_, how_.working_mode(), seconds);
        const std::uint64_t before = traffic_->operations();
        const double begin = wall_ns();
        traffic_->resume();
        const auto passed = [&] { return (wall_ns() - begin) * 1e-9; };
        while (!interrupted() && (passed() < seconds || runtime_->statistics().windows == windows))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        traffic_->pause();
        const double rate = static_cast<double>(traffic_->operations() - before) / passed();
        configure(how_, how_.working_mode());
        return rate;
    }
    bool moves() const noexcept { return runtime_ != nullptr; }
    // Objects moved since the last call.
    std::uint64_t newly_moved() {
        const std::uint64_t all = runtime_->statistics().moved_objects;
        return all - std::exchange(moved_, all);
    }
    // True once what was cold from the beginning has been paged out, as far as the policy lets it:
    // the hint comes some windows after the move, and asks for less than 1 % of COLD in a window.
    bool hints_are_done(std::size_t window) {
        if (runtime_ == nullptr || how_.hints != "pageout") return true;
        const statistics s = runtime_->statistics();
        const std::uint64_t fresh =
            s.hint_pageout_bytes - std::exchange(paged_out_, s.hint_pageout_bytes);
        std::uint64_t held = 0;
        for (unsigned i = 0; i < s.heap_count; ++i) held += s.heaps[i].live_bytes;
        return static_cast<double>(window) >
                   static_cast<double>(s.cold_threshold) + windows_before_hint &&
               static_cast<double>(fresh) < still * static_cast<double>(held);
    }
    traffic& requests() noexcept { return *traffic_; }
    std::uint64_t records() const noexcept { return load_.records->count(); }

  private:
    const ycsb_settings settings_;
    const arrangement how_;
    session_load load_;
    value_ledger ledger_; // unused without checks
    std::unique_ptr<crestdb::store> store_;
    runtime* runtime_ = nullptr;
    std::uint64_t moved_ = 0;
    std::uint64_t paged_out_ = 0; // bytes that the kernel was asked to
    std::unique_ptr<traffic> traffic_;
};

// Until the first load has moved everywhere: a window of each, and as much of plain pointers as says
// how fast the machine is at that moment.
void move_the_first_load(const compare_settings& settings,
                         const std::vector<std::unique_ptr<contestant>>& all, json& result) {
    const std::size_t count = all.size();
    const double beside_s = std::min(settings.window_s, 4 * settings.slice_s);
    const std::size_t most =
        settings.load.hints == "pageout" ? most_windows_with_hints : most_windows_to_converge;
    for (std::size_t i = 0; i < most && !interrupted(); ++i) {
        std::vector<double> rates(count);
        std::vector<std::uint64_t> moved(count);
        bool converged = i > 0; // the first window may have seen no object at rest
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t which = (k + i) % count;
            contestant& c = *all[which];
            if (!c.moves()) {
                if (settings.moving) rates[which] = c.slice(beside_s, false);
                continue;
            }
            rates[which] = settings.moving ? c.turn_with_window(settings.window_s)
                                           : c.slice(settings.slice_s, true);
            moved[which] = c.newly_moved();
            converged = converged && static_cast<double>(moved[which]) <
                                         still * static_cast<double>(c.records());
            converged = c.hints_are_done(i) && converged;
        }
        if (interrupted()) return;
        if (settings.moving) {
            result["moving"].push_back(rates);
            result["moved"].push_back(moved);
        }
        if (converged) return;
    }
}

// A window of a store takes its own traffic's time once for each store, because they take turns.
arrangement arranged(const compare_settings& settings, const std::string& protocol,
                     std::size_t stores) {
    arrangement how{protocol, settings.load.hints, settings.load.cold, 1};
    constexpr double papers_window_s = 120;
    if (how.hints != "off")
        how.time_scale = papers_window_s / (settings.window_s * static_cast<double>(stores));
    return how;
}

json measure_cell(const compare_settings& settings, const ycsb_settings& load,
                  const std::vector<std::string>& protocols) {
    std::vector<std::unique_ptr<contestant>> all;
    for (const std::string& protocol : protocols)
        all.push_back(
            std::make_unique<contestant>(load, arranged(settings, protocol, protocols.size())));
    json result = {{"moving", json::array()},
                   {"moved", json::array()},
                   {"converged", json::array()},
                   {"p90_us", json::array()}};
    const std::size_t count = all.size();
    for (auto& c : all) c->slice(settings.slice_s, false); // page faults, caches
    for (auto& c : all) c->switch_on();

    move_the_first_load(settings, all, result);
    for (auto& c : all) c->requests().clear_latencies();
    const auto per_window =
        std::max<std::size_t>(1, static_cast<std::size_t>(settings.window_s / settings.slice_s));
    for (std::size_t i = 0; i < settings.pairs && !interrupted(); ++i) {
        std::vector<double> rates(count);
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t which = (k + i) % count;
            rates[which] = all[which]->slice(settings.slice_s, i % per_window == 0);
        }
        result["converged"].push_back(rates);
    }
    for (auto& c : all)
        result["p90_us"].push_back(c->requests().latencies().quantile_ns(0.9) / 1000);
    return result;
}

// Instructions per operation by callgrind; nothing if there is no valgrind.
std::optional<double> instructions_per_operation(const ycsb_settings& load,
                                                 const std::string& protocol) {
#if defined(OBASE_TOOLS_CALLGRIND)
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return std::nullopt;
    self[length] = 0;
    const auto output = output_of_program(
        {"valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
         self, "bench", "count-operations", "--index", load.index, "--workload", load.workload,
         "--protocol", protocol, "--key-size", std::to_string(load.key_size), "--value-size",
         std::to_string(load.value_size)});
    if (!output) return std::nullopt;
    std::optional<double> collected;
    std::uint64_t operations = 0;
    std::istringstream lines(*output);
    for (std::string line; std::getline(lines, line);) {
        unsigned long long number = 0;
        if (const std::size_t at = line.find("Collected : ");
            at != std::string::npos &&
            std::sscanf(line.c_str() + at, "Collected : %llu", &number) == 1)
            collected = static_cast<double>(number);
        if (std::sscanf(line.c_str(), "counted %llu operations", &number) == 1) operations = number;
    }
    if (!collected || operations == 0) return std::nullopt;
    return *collected / static_cast<double>(operations);
#else
    (void)load;
    (void)protocol;
    return std::nullopt;
#endif
}

// " NAME one,two"; nothing when nothing was asked for.
std::string several(const char* name, const std::vector<std::string>& values) {
    return values.empty() ? std::string() : fmt::format(" {} {}", name, fmt::join(values, ","));
}

// The name of the distribution that the requests of a cell have, also where it is the workload's own.
std::string distribution_of(const ycsb_settings& load) {
    if (!load.distribution.empty()) return load.distribution;
    return std::string(workload::name_of(workload::ycsb(load.workload[0])->ids));
}

// The options of a cell that were asked for: a figure is of one configuration, and says which.
std::string command_of(const compare_settings& s, const std::string& rest) {
    const ycsb_settings usual;
    std::string text = "obase bench compare" + rest;
    const auto option = [&](const char* name, const auto& value, const auto& other) {
        if (value != other) text += fmt::format(" {} {}", name, value);
    };
    option("--distribution", s.load.distribution, usual.distribution);
    option("--live-share", s.load.live_share, usual.live_share);
    option("--records", s.load.records, usual.records);
    option("--threads", s.load.threads, usual.threads);
    option("--key-size", s.load.key_size, usual.key_size);
    option("--value-size", s.load.value_size, usual.value_size);
    option("--hints", s.load.hints, usual.hints);
    option("--cold", s.load.cold, usual.cold);
    option("--window", s.window_s, compare_settings{}.window_s);
    option("--slice", s.slice_s, compare_settings{}.slice_s);
    option("--pairs", s.pairs, compare_settings{}.pairs);
    if (!s.moving) text += " --no-moving";
    // --quick, which its sizes stand for here, counts none.
    if (!s.instructions && !s.quick) text += " --no-instructions";
    return text;
}

} // namespace

std::vector<double> column_ratios(const json& slices, std::size_t which) {
    std::vector<double> result;
    for (const json& row : slices)
        result.push_back(row[which].get<double>() / row[0].get<double>());
    return result;
}

bench_result bench_compare(const compare_settings& settings) {
    if (const std::string why = why_not(settings.load); !why.empty())
        throw std::invalid_argument(why);
    bench_result result;
    result.json["cells"] = json::array();
    result.json["records"] = settings.load.records;
    result.json["threads"] = settings.load.threads;
    result.json["key_size"] = settings.load.key_size;
    result.json["value_size"] = settings.load.value_size;
    result.json["distribution"] = settings.load.distribution;
    result.json["hints"] = settings.load.hints;
    result.json["cold"] = settings.load.cold;
    result.json["slice_s"] = settings.slice_s;
    result.json["window_s"] = settings.window_s;
    std::vector<std::string> protocols = {"none"};
    for (const std::string& p : settings.protocols.empty()
                                    ? std::vector<std::string>{"arming", "atc"}
                                    : settings.protocols)
        protocols.push_back(p);
    const auto indexes = settings.indexes.empty() ? crestdb::store::indexes() : settings.indexes;
    const auto workloads =
        settings.workloads.empty() ? std::vector<std::string>{"A", "B", "C"} : settings.workloads;

    // [protocol][pair]: sums of logarithms over the cells, for the geometric mean of all.
    std::vector<std::vector<std::vector<double>>> converged(protocols.size()),
        moving(protocols.size());
    std::vector<std::vector<double>> instruction_ratios(protocols.size());
    std::size_t case_number = 0;
    for (const std::string& index : indexes)
        for (const std::string& workload : workloads) {
            if (interrupted()) break;
            ++case_number;
            if (workload == "E" && !crestdb::store::ordered(index)) continue;
            ycsb_settings load = settings.load;
            load.index = index;
            load.workload = workload;
            tell(fmt::format("{} of {}: {} {}", case_number, indexes.size() * workloads.size(),
                             index, workload));
            const json cell = in_child_process(fmt::format("{} {}", index, workload), [&] {
                return measure_cell(settings, load, protocols);
            });
            std::vector<std::optional<double>> instructions(protocols.size());
            if (settings.instructions && !interrupted())
                for (std::size_t p = 0; p < protocols.size(); ++p)
                    instructions[p] = instructions_per_operation(load, protocols[p]);
            for (std::size_t p = 1; p < protocols.size(); ++p)
                for (const char* phase : {"moving", "converged"}) {
                    const bool steady = phase == std::string("converged");
                    const std::vector<double> ratios = column_ratios(cell[phase], p);
                    if (ratios.empty()) continue;
                    (steady ? converged : moving)[p].push_back(ratios);
                    const spread s = geometric_spread_of(ratios);
                    json row = {{"index", index},
                                {"workload", workload},
                                {"protocol", protocols[p]},
                                {"phase", phase},
                                {"distribution", distribution_of(load)},
                                {"hints", load.hints},
                                {"cold", load.cold},
                                {"command", command_of(settings, " --index " + index +
                                                                     " --workload " + workload)},
                                {"throughput_ratio", s.median},
                                {"ci95", {s.low, s.high}},
                                {"samples", s.samples},
                                {"p90_ratio", nullptr},
                                {"instructions_ratio", nullptr}};
                    if (!steady) {
                        for (const json& window : cell["moved"]) row["moved"].push_back(window[p]);
                    } else {
                        row["p90_ratio"] =
                            cell["p90_us"][p].get<double>() / cell["p90_us"][0].get<double>();
                        if (instructions[0] && instructions[p]) {
                            row["instructions_ratio"] = *instructions[p] / *instructions[0];
                            row["instructions_per_op"] = *instructions[p];
                            instruction_ratios[p].push_back(*instructions[p] / *instructions[0]);
                        }
                        std::vector<double> plain;
                        for (const json& slice : cell[phase]) plain.push_back(slice[0]);
                        row["plain_ops"] = spread_of(plain).median;
                    }
                    figure f;
                    f.name = fmt::format("{} {} throughput, {} / none, {}", index, workload,
                                         protocols[p], phase);
                    f.value = s;
                    f.command =
                        command_of(settings, " --index " + index + " --workload " + workload);
                    result.figures.push_back(f);
                    result.json["cells"].push_back(std::move(row));
                }
        }

    // The geometric mean over cells, pair by pair, has a spread of its own.
    const auto mean_of_cells = [](const std::vector<std::vector<double>>& cells) {
        std::size_t pairs = std::numeric_limits<std::size_t>::max();
        for (const auto& cell : cells) pairs = std::min(pairs, cell.size());
        std::vector<double> means;
        for (std::size_t i = 0; i < pairs && !cells.empty(); ++i) {
            std::vector<double> row;
            for (const auto& cell : cells) row.push_back(cell[i]);
            means.push_back(geometric_mean(row));
        }
        return geometric_spread_of(means);
    };
    // While the first load moves each cell has windows of its own, as many as it needs, so the spread
    // is that over the cells.
    const auto mean_of_phases = [](const std::vector<std::vector<double>>& cells) {
        std::vector<double> means;
        for (const auto& cell : cells) means.push_back(geometric_mean(cell));
        return geometric_spread_of(means);
    };
    for (std::size_t p = 1; p < protocols.size(); ++p) {
        if (converged[p].empty()) continue;
        const bool ours = protocols[p] == "arming";
        figure f;
        f.name = fmt::format("throughput {} / none, converged, geometric mean", protocols[p]);
        f.value = mean_of_cells(converged[p]);
        if (ours) f.kind = bound::at_least, f.target = 0.99;
        f.command = command_of(settings, several("--index", settings.indexes) +
                                             several("--workload", settings.workloads));
        result.json["geomean"][protocols[p]] = f.value.median;
        result.json["geomean_ci95"][protocols[p]] = {f.value.low, f.value.high};
        result.figures.push_back(f);
        if (!moving[p].empty()) {
            f.name = fmt::format("throughput {} / none, moving the first load, geometric mean",
                                 protocols[p]);
            f.value = mean_of_phases(moving[p]);
            if (ours) f.target = 0.90;
            result.json["geomean_moving"][protocols[p]] = f.value.median;
            result.figures.push_back(f);
        }
        if (!instruction_ratios[p].empty()) {
            f.name =
                fmt::format("instructions per operation {} / none, geometric mean", protocols[p]);
            f.value = {};
            f.value.median = f.value.low = f.value.high = geometric_mean(instruction_ratios[p]);
            f.value.samples = instruction_ratios[p].size();
            f.value.trusted = true; // counted, not timed
            if (ours) f.kind = bound::at_most, f.target = 1.05;
            result.json["geomean_instructions"][protocols[p]] = f.value.median;
            result.figures.push_back(f);
        }
    }
    result.partial = interrupted();
    return result;
}

void count_operations(const ycsb_settings& asked) {
    ycsb_settings settings = asked;
    settings.records = 20'000;
    settings.threads = 1;
    constexpr std::uint64_t operations = 40'000;
    session_load load = make_load(settings);
    if (settings.protocol != "none") configure({settings.protocol}, run_mode::move);
    const auto store = crestdb::store::open({settings.index, settings.protocol, settings.records});
    fill_store(*store, *load.records, 1);
    value_ledger ledger(1);
    client requests(*store, *load.records, ledger, load.source(0), {settings.in_place, false});
    const auto send = [&] {
        for (const std::uint64_t end = requests.operations() + operations;
             requests.operations() < end;)
            requests.send_batch();
    };
    for (int window = 0; window < 8; ++window) {
        send();
        if (store->runtime() != nullptr) (void)store->runtime()->collect_now();
    }
    // Once more without counting: what a window's first touches cost is the collector's to answer
    // for, and depends on how long a window is.
    send();
#if defined(OBASE_TOOLS_CALLGRIND)
    CALLGRIND_START_INSTRUMENTATION;
    send();
    CALLGRIND_STOP_INSTRUMENTATION;
#endif
    const bool told =
        std::printf("counted %llu operations\n", static_cast<unsigned long long>(operations)) > 0 &&
        std::fflush(stdout) == 0;
    if (!told)
        throw std::runtime_error(std::string("cannot write to the standard output: ") +
                                 std::strerror(errno));
    ::_exit(0); // without destructors: millions of objects under valgrind
}

} // namespace obase::tools
