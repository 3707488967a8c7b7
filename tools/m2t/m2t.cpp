// SPDX-License-Identifier: MIT
#include "tools/m2t/m2t.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/spread.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/bench/zipf.hpp"
#include "tools/m2t/table_client.hpp"
#include "tools/m2t/tiered_memory_model.hpp"
#include "tools/workload/distribution.hpp"
#include "tools/workload/key_format.hpp"
#include "tools/workload/loop_sequence.hpp"
#include "tools/workload/ycsb_mix.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/swap_space.hpp"

#include "crestdb/hash/chained_hash_table.hpp"
#include "crestdb/store_of.hpp"
#include "crestdb/store_server/store_server.hpp"
#include "os/process.hpp"

#include <obase/obase.hpp>
#include <obase/plain.hpp>

#include <fmt/format.h>

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

// glibc's own, wherever the program's malloc comes from.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* object);
}

namespace obase::tools {
namespace {

using nlohmann::json;

// Plain pointers, with memory from glibc's malloc.
struct from_glibc : plain {
    static void* allocate(std::size_t bytes, const allocation_options& how) noexcept {
        if (bytes > PTRDIFF_MAX) return nullptr;
        return how.alignment <= alignof(std::max_align_t) ? __libc_malloc(bytes)
                                                          : __libc_memalign(how.alignment, bytes);
    }
    static void deallocate(void* object) noexcept { __libc_free(object); }
    static std::size_t usable_size(const void*) noexcept {
        return 64;
    } // of what is retired: a guess
};

bool has_jemalloc() { return dlsym(RTLD_DEFAULT, "mallctl") != nullptr; }

struct layout {
    const char* name;
    bool temperature;
};
constexpr layout layouts[] = {{"malloc", false},     {"jemalloc", false},
                              {"near", false},       {"near-meta", false},
                              {"temperature", true}, {"near-meta+temperature", true}};

constexpr std::size_t key_bytes = 24;
using key_text = std::array<char, key_bytes>;
std::string_view key_of(key_text& into, std::uint64_t id) {
    workload::write_key(into, id);
    return {into.data(), into.size()};
}

struct cell_of {
    std::string layout;
    std::string workload;
    std::size_t per_bucket = 1;
    std::string tier = "dram";
    std::string transport = "memory";
    const control_group* group = nullptr; // of tier limit; the process is in it
    std::uint64_t limit = 0;              // 0: only what is charged is measured

    bool measured() const { return tier != "model"; }
};

// Lists cost a visit per record; a repetition is some seconds at most.
std::size_t operations_of(const m2t_settings& s, std::size_t per_bucket) {
    if (s.operations != 0) return s.operations;
    return std::clamp<std::size_t>(12'000'000 / (per_bucket / 2 + 1), 10'000, 600'000);
}

using request = table_request;

std::vector<request> requests_of(const m2t_settings& s, char letter, std::size_t count,
                                 std::uint64_t seed) {
    std::vector<request> made;
    made.reserve(count);
    const workload::ycsb_workload mix = *workload::ycsb(letter);
    const auto ids =
        s.distribution.empty() ? mix.ids : *workload::distribution_named(s.distribution);
    if (s.theta != workload::ycsb_theta) {
        // Which record is how popular is the same in every repetition.
        const auto drawn = zipf_sequence(s.records, count, s.theta, seed);
        for (const std::uint32_t id : drawn) made.push_back({workload::operation::read, id});
        return made;
    }
    workload::request_plan plan({.records = s.records,
                                 .operations = mix.operations,
                                 .ids = ids,
                                 .seed = seed,
                                 .live_share = s.loop_share,
                                 .expected_inserts = count / 10});
    workload::request_stream stream = plan.stream(0);
    for (std::size_t i = 0; i < count; ++i) {
        const workload::request one = stream.next();
        made.push_back({one.what, one.id});
        if (one.what == workload::operation::insert) stream.completed(one.id);
    }
    return made;
}

template <class Table>
void run(Table& table, const std::vector<request>& requests, const std::string& value,
         std::uint64_t& sum) {
    key_text text;
    const auto use = [&sum](std::string_view seen) {
        for (std::size_t i = 0; i < seen.size(); i += 64)
            sum += static_cast<unsigned char>(seen[i]);
    };
    for (const request& one : requests) {
        const std::string_view key = key_of(text, one.id);
        switch (one.what) {
        case workload::operation::read:
            if (!table.get(key, use)) throw std::runtime_error("a record is lost");
            break;
        case workload::operation::read_modify_write:
            table.modify(key, [&](std::string_view old) {
                use(old);
                return std::string_view(value);
            });
            break;
        default:
            table.put(key, value);
        }
    }
}

std::string value_of(const m2t_settings& s) { return std::string(s.value_bytes, 'v'); }

template <class Table>
json model_of(const m2t_settings& s, Table& table, const std::vector<request>& requests) {
    tiered_memory_model counting({});
    const std::size_t value = sizeof(bytes) + s.value_bytes;
    const auto touch_all = [&](tiered_memory_model& of) {
        table.visit_all(
            [&](const void* at, std::size_t n) { of.touch(at, n == sizeof(bytes) ? value : n); });
    };
    touch_all(counting);
    tiered_memory_model model(
        {.cache_bytes = s.cache_bytes, .footprint_pages = counting.footprint()});
    touch_all(model);
    key_text text;
    std::uint64_t visits = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (i == requests.size() / 2) { // the first half fills the caches
            model.clear();
            visits = 0;
        }
        const std::string_view key = key_of(text, requests[i].id);
        std::uint64_t seen = 0;
        table.visit_chain(key, [&](const void* at, std::size_t n) {
            model.access(at, n);
            ++seen;
        });
        visits += seen / 2;
        table.visit_path(key, [&](const void* at, std::size_t n) { model.access(at, n); });
        model.operation();
    }
    const auto& now = model.counts();
    const auto each = [&now](std::uint64_t n) {
        return static_cast<double>(n) /
               static_cast<double>(std::max<std::uint64_t>(now.operations, 1));
    };
    return {
        {"visits_per_op", each(visits)},
        {"llc_misses_per_op", each(now.cache_misses)},
        {"tlb_misses_per_op", each(now.tlb_misses)},
        {"pages_touched", now.pages},
        {"far_share", now.cache_misses == 0 ? 0.
                                            : static_cast<double>(now.far_misses) /
                                                  static_cast<double>(now.cache_misses)},
        {"cache_hit_share", 1 - static_cast<double>(now.cache_misses) /
                                    static_cast<double>(std::max<std::uint64_t>(now.accesses, 1))},
        {"migrated_pages", now.migrated_pages},
        {"modelled_ns_per_op",
         now.ns / static_cast<double>(std::max<std::uint64_t>(now.operations, 1))}};
}

std::uint64_t major_faults() {
    rusage now{};
    ::getrusage(RUSAGE_SELF, &now);
    return static_cast<std::uint64_t>(now.ru_majflt);
}

void check(const std::string& error) {
    if (!error.empty()) throw std::runtime_error(error);
}

// The kernel refuses a limit while it cannot reclaim as much in one go.
void set_limit(const control_group& group, std::uint64_t bytes) {
    std::string why;
    for (int tries = 0; tries < 100; ++tries)
        if (why = group.set_limit(bytes); why.empty()) return;
    check(why);
}

// In a process of its own.
template <class Protocol, class Placement>
json run_cell(const m2t_settings& s, const cell_of& cell, bool temperature, std::uint64_t seed) {
    if constexpr (Protocol::moves_objects) {
        options settings = runtime::get().settings();
        settings.mode = temperature ? run_mode::move : run_mode::off;
        settings.window_seconds = 1e6;
        check(runtime::get().configure(settings));
        if (temperature) check(runtime::get().start());
    }
    const std::string value = value_of(s);
    const std::uint64_t before = os::resident_bytes();
    crestdb::store_of<crestdb::basic_chained_hash_table<Protocol, Placement>> store(
        s.records, cell.per_bucket);
    auto& table = store.index();
    key_text text;
    for (std::size_t id = 0; id < s.records; ++id) {
        table.put_absent(key_of(text, id), value);
        if (id % 65'536 == 0 && interrupted()) throw interruption("while records were loaded");
    }
    const std::size_t count = operations_of(s, cell.per_bucket);
    const char letter = cell.workload[0];
    std::uint64_t sum = 0;
    json result;
    result["bytes_per_record"] =
        static_cast<double>(os::resident_bytes() - before) / static_cast<double>(s.records);
    if constexpr (Protocol::moves_objects) {
        // Until what is used and what is not has been told apart: C_t windows and some.
        const auto warm = requests_of(s, 'C', count, seed + 1000);
        for (int window = 0; temperature && window < 6; ++window) {
            run(table, warm, value, sum);
            if (runtime::get().collect_now() != collect_result::done)
                throw std::runtime_error("a window was given up");
        }
        result["bytes_per_record_settled"] =
            static_cast<double>(os::resident_bytes() - before) / static_cast<double>(s.records);
        result["near_missed"] = runtime::get().statistics().near_missed;
    }
    const auto requests = requests_of(s, letter, count, seed);
    if (!cell.measured()) {
        result.update(
            model_of(s, table, requests_of(s, 'C', std::min<std::size_t>(count, 100'000), seed)));
        return result;
    }
    if (cell.transport == "tcp") {
        crestdb::store_server server(store, {.threads = s.server_threads});
        server.start();
        const table_client clients({.port = server.port(),
                                    .connections = s.connections,
                                    .records = s.records,
                                    .value = value});
        if (!temperature) clients.ask(requests_of(s, 'C', count / 4 + 1, seed + 1));
        const double cpu = server.cpu_seconds(), began = wall_ns();
        clients.ask(requests);
        result["ns_per_op"] = (wall_ns() - began) / static_cast<double>(count);
        result["cpu_ns_per_op"] = (server.cpu_seconds() - cpu) * 1e9 / static_cast<double>(count);
        return result;
    }
    if (cell.group != nullptr) {
        result["charged_bytes"] = cell.group->charge();
        if (cell.limit == 0) return result;
        set_limit(*cell.group, cell.limit);
        result["limit_bytes"] = cell.limit;
        // Faults are counted in the steady state. The kernel does not know yet what is in use, so each value of a loop
        // may fault once: whole passes of it come first.
        const bool loops = s.distribution == "loop";
        const std::size_t warm =
            loops ? workload::loop_sequence(s.records, s.loop_share, 1).period() : count / 2 + 1;
        const auto before_faults = requests_of(s, 'C', warm, seed + 1);
        for (int pass = 0; pass < (loops ? 3 : 1); ++pass) run(table, before_faults, value, sum);
    } else if (!temperature)
        run(table, requests_of(s, 'C', count / 4 + 1, seed + 1), value, sum);
    const std::uint64_t faults = major_faults();
    const double began = cpu_ns();
    run(table, requests, value, sum);
    result["cpu_ns_per_op"] = (cpu_ns() - began) / static_cast<double>(count);
    if (cell.group != nullptr)
        result["major_faults_per_op"] =
            static_cast<double>(major_faults() - faults) / static_cast<double>(count);
    result["sum"] = sum % 2; // so that what was read counts
    return result;
}

json run_layout(const m2t_settings& s, const cell_of& cell, std::uint64_t seed) {
    const std::string& name = cell.layout;
    using namespace crestdb;
    if (name == "malloc") return run_cell<from_glibc, near_nothing>(s, cell, false, seed);
    if (name == "jemalloc") return run_cell<plain, near_nothing>(s, cell, false, seed);
    if (name == "near") return run_cell<arming, near_all>(s, cell, false, seed);
    if (name == "near-meta") return run_cell<arming, near_metadata>(s, cell, false, seed);
    if (name == "temperature") return run_cell<arming, near_nothing>(s, cell, true, seed);
    return run_cell<arming, near_metadata>(s, cell, true, seed);
}

std::string command_for(const m2t_settings& s, const cell_of& cell) {
    std::string text = fmt::format(
        "obase bench m2t --layout malloc,{} --records-per-bucket {} --workload {} "
        "--tier {} --records {} --value-bytes {}",
        cell.layout, cell.per_bucket, cell.workload, cell.tier, s.records, s.value_bytes);
    if (!s.distribution.empty()) text += " --distribution " + s.distribution;
    if (s.theta != workload::ycsb_theta) text += fmt::format(" --theta {}", s.theta);
    if (cell.tier == "limit" && !s.swap_directory.empty())
        text += " --swap-directory " + s.swap_directory;
    if (cell.transport == "tcp")
        text += fmt::format(" --transport tcp --clients {} --server-threads {}", s.connections,
                            s.server_threads);
    return text;
}

// The targets of issue "M2T" for the defaults; none for anything else.
double target_of(const m2t_settings& s, const cell_of& cell) {
    if (cell.tier != "dram" || cell.transport != "memory" || s.value_bytes != 1000 ||
        s.records < 1'000'000 || cell.layout != "near-meta" || !s.distribution.empty() ||
        s.theta != workload::ycsb_theta)
        return 0;
    const bool reads = cell.workload == "C";
    switch (cell.per_bucket) {
    case 1:
        return reads ? 1.05 : 0;
    case 8:
        return reads ? 1.2 : 0;
    case 64:
        return reads ? 4 : 0;
    case 1024:
        return reads ? 10 : 4.7;
    default:
        return 0;
    }
}

json cell_json(const m2t_settings& s, const cell_of& cell) {
    return {{"layout", cell.layout},
            {"records_per_bucket", cell.per_bucket},
            {"value_bytes", s.value_bytes},
            {"workload", cell.workload},
            {"distribution", s.distribution.empty() ? "default" : s.distribution},
            {"theta", s.theta},
            {"transport", cell.transport},
            {"tier", cell.tier},
            {"throughput_ops", nullptr},
            {"ratio", nullptr},
            {"ci95", nullptr},
            {"cpu_ns_per_op", nullptr},
            {"visits_per_op", nullptr},
            {"llc_misses_per_op", nullptr},
            {"tlb_misses_per_op", nullptr},
            {"pages_touched", nullptr},
            {"far_share", nullptr},
            {"modelled_ns_per_op", nullptr},
            {"major_faults_per_op", nullptr},
            {"migrated_pages", nullptr},
            {"bytes_per_record", nullptr}};
}

// All cells of one row, with their ratios to malloc.
class row {
  public:
    row(const m2t_settings& s, const std::vector<std::string>& names, std::size_t per_bucket,
        std::string letter, std::string tier, std::string transport)
        : s_(s), names_(names), per_bucket_(per_bucket), letter_(std::move(letter)),
          tier_(std::move(tier)), transport_(std::move(transport)), measured_(tier_ != "model") {}

    void run_all(bench_result& into) {
        std::optional<own_control_group> group;
        cell_of all{"malloc", letter_, per_bucket_, tier_, transport_};
        if (tier_ == "limit") {
            group.emplace();
            all.group = &group->group();
            tell(
                fmt::format("m2t malloc {} per bucket, {}: what is charged", per_bucket_, letter_));
            const json alone =
                in_child_process("m2t malloc", [&] { return run_layout(s_, all, 1); });
            all.limit = static_cast<std::uint64_t>(
                s_.limit_share *
                static_cast<double>(alone.at("charged_bytes").get<std::uint64_t>()));
        }
        const std::size_t pairs = measured_ ? std::max<std::size_t>(s_.pairs, 1) : 1;
        try {
            for (std::size_t pair = 0; pair < pairs && !interrupted(); ++pair)
                for (std::size_t i = 0; i < names_.size() && !interrupted(); ++i) {
                    // In turns, and each time another one first.
                    const std::string& name = names_[(i + pair) % names_.size()];
                    cell_of cell = all;
                    cell.layout = name;
                    tell(fmt::format("m2t {} {} per bucket, {} {}{}", name, per_bucket_, letter_,
                                     tier_, over_what()));
                    if (group) check(all.group->remove_limit());
                    results_[name].push_back(in_child_process(
                        "m2t " + name, [&] { return run_layout(s_, cell, 1 + pair); }));
                }
        } catch (const interruption&) { // while it was loaded
            into.partial = true;
        }
        if (interrupted()) into.partial = true;
        for (const std::string& name : names_) report(name, into);
    }

  private:
    const char* over_what() const { return transport_ == "tcp" ? ", TCP" : ""; }
    // Of an operation, in each repetition: processor time, the clients' by the clock, or modelled.
    std::vector<double> times(const std::string& name) const {
        std::vector<double> all;
        const auto found = results_.find(name);
        if (found == results_.end()) return all;
        for (const json& one : found->second) all.push_back(one.at(timed_by()).get<double>());
        return all;
    }
    const char* timed_by() const {
        if (!measured_) return "modelled_ns_per_op";
        return transport_ == "tcp" ? "ns_per_op" : "cpu_ns_per_op";
    }
    void report(const std::string& name, bench_result& into) {
        const auto found = results_.find(name);
        if (found == results_.end() || found->second.empty()) return;
        const cell_of cell{name, letter_, per_bucket_, tier_, transport_};
        json out = cell_json(s_, cell);
        for (const auto& [key, value] : found->second.front().items())
            if (key != "sum") out[key] = value;
        const std::vector<double> mine = times(name), base = times("malloc");
        const double typical = spread_of(mine).median;
        out[timed_by()] = typical;
        if (transport_ == "tcp") {
            std::vector<double> cpu;
            for (const json& one : found->second)
                cpu.push_back(one.at("cpu_ns_per_op").get<double>());
            out["cpu_ns_per_op"] = spread_of(cpu).median;
        }
        out["throughput_ops"] = 1e9 / typical;
        std::vector<double> ratios;
        for (std::size_t i = 0; i < std::min(mine.size(), base.size()); ++i)
            ratios.push_back(base[i] / mine[i]);
        if (!ratios.empty()) {
            const spread ratio = ratios.size() == 1
                                     ? spread{ratios[0], ratios[0], ratios[0], 1, false}
                                     : geometric_spread_of(ratios);
            out["ratio"] = ratio.median;
            out["ci95"] = {ratio.low, ratio.high};
            if (name != "malloc") {
                figure f;
                f.name =
                    fmt::format("m2t {}, {} per bucket, {} bytes, {}, {}{}: throughput to malloc",
                                name, per_bucket_, s_.value_bytes, letter_,
                                measured_ ? tier_ : "modelled", over_what());
                f.value = ratio;
                f.target = target_of(s_, cell);
                f.kind = f.target > 0 ? bound::at_least : bound::none;
                f.command = command_for(s_, cell);
                into.figures.push_back(f);
            }
        }
        if (tier_ == "limit" && name != "malloc") report_faults(cell, into);
        into.json["cells"].push_back(out);
    }
    // An operation's, of malloc to the layout's. Where there was none, one in all stands for it.
    void report_faults(const cell_of& cell, bench_result& into) const {
        const auto of = [this](const std::string& name) {
            double least = 1e9;
            const auto found = results_.find(name);
            if (found == results_.end()) return least;
            for (const json& one : found->second)
                least = std::min(least, one.at("major_faults_per_op").get<double>());
            return std::max(least, 1 / static_cast<double>(operations_of(s_, per_bucket_)));
        };
        if (!results_.contains("malloc")) return;
        const double ratio = of("malloc") / of(cell.layout);
        figure f;
        f.name =
            fmt::format("m2t {}, {} per bucket, limit of {:.2f}: major faults, malloc's to its",
                        cell.layout, per_bucket_, s_.limit_share);
        f.value = {ratio, ratio, ratio, 1, false};
        if (cell.layout == "near-meta+temperature" && s_.distribution == "loop" &&
            per_bucket_ == 8) {
            f.target = 3;
            f.kind = bound::at_least;
        }
        f.command = command_for(s_, cell);
        into.figures.push_back(f);
    }

    const m2t_settings& s_;
    const std::vector<std::string>& names_;
    std::size_t per_bucket_;
    std::string letter_;
    std::string tier_;
    std::string transport_;
    bool measured_;
    std::map<std::string, std::vector<json>> results_;
};

// What expectations are worth.

constexpr int hint_windows = 8;
constexpr int hints_are_overridden = 3 + 3; // windows: C_t + 3

// In a process of its own: a row for loading, and one for each window; fewer if it is interrupted.
json run_hints(const m2t_settings& s, const std::string& hints, std::uint64_t seed) {
    options settings = runtime::get().settings();
    settings.mode = run_mode::hint;
    settings.hint_cold = settings.hint_pageout = true;
    settings.cold_backing = s.cold;
    settings.window_seconds = 1e6;
    check(runtime::get().configure(settings));
    check(runtime::get().start());
    const workload::loop_sequence loop(s.records, s.loop_share, 1); // the same in every pair
    std::vector<expectation> expects(s.records, expectation::nothing);
    if (hints != "none") {
        const bool right = hints == "right";
        std::fill(expects.begin(), expects.end(), right ? expectation::cold : expectation::hot);
        for (const std::uint32_t id : loop.live())
            expects[id] = right ? expectation::hot : expectation::cold;
    }
    const std::string value = value_of(s);
    const double asked_for = static_cast<double>(loop.live().size() * s.value_bytes);
    std::vector<guide<bytes>> values(s.records);
    const std::uint64_t before = os::resident_bytes();
    json rows = json::array();
    const auto tell_window = [&](int window, double ns) {
        const auto used = static_cast<double>(os::resident_bytes() - before);
        rows.push_back({{"hints", hints},
                        {"window", window},
                        {"used_bytes", used},
                        {"page_utilization", asked_for / used},
                        {"cpu_ns_per_op", ns}});
    };
    for (std::size_t id = 0; id < s.records; ++id) {
        values[id] = make_bytes(value, {.expect = expects[id]});
        if (id % 65'536 == 0 && interrupted()) throw interruption("while values were loaded");
    }
    tell_window(0, 0);
    std::uint64_t sum = seed;
    std::size_t at = loop.period() / 7 * (seed % 7);
    for (int window = 1; window <= hint_windows && !interrupted(); ++window) {
        const double began = cpu_ns();
        for (std::size_t i = 0; i < loop.period(); ++i, at = loop.after(at)) {
            const scope one;
            const std::string_view seen = values[loop.ids()[at]]->view();
            for (std::size_t k = 0; k < seen.size(); k += 64)
                sum += static_cast<unsigned char>(seen[k]);
        }
        const double ns = (cpu_ns() - began) / static_cast<double>(loop.period());
        if (runtime::get().collect_now() != collect_result::done)
            throw std::runtime_error("a window was given up");
        tell_window(window, ns);
    }
    rows.back()["sum"] = sum % 2;
    return rows;
}

// All of them, with their ratios to none.
class hints_rows {
  public:
    explicit hints_rows(const m2t_settings& s) : s_(s) {}

    void run_all(bench_result& into) {
        for (std::size_t pair = 0; pair < std::max<std::size_t>(s_.pairs, 1); ++pair)
            for (const std::string& hints : s_.hints) {
                if (interrupted()) {
                    into.partial = true;
                    return;
                }
                tell("m2t hints: " + hints);
                results_[hints].push_back(in_child_process(
                    "m2t hints " + hints, [&] { return run_hints(s_, hints, 1 + pair); }));
            }
    }
    // What there is, also after an interrupt.
    void report_all(bench_result& into) const {
        for (const std::string& hints : s_.hints) report(hints, into);
        const std::string command =
            fmt::format("obase bench m2t --tier model --layout malloc --records-per-bucket 1 "
                        "--hints {} --records {} "
                        "--value-bytes {}",
                        fmt::join(s_.hints, ","), s_.records, s_.value_bytes);
        const auto add = [&](const std::string& name, const std::vector<double>& values, bound kind,
                             double target) {
            if (values.empty()) return;
            into.figures.push_back(
                {"m2t hints: " + name, "", spread_of(values), kind, target, command});
        };
        add("right, memory after loading to that after convergence",
            ratios("right", 0, "right", hint_windows, "used_bytes"), bound::at_most, 1.15);
        add("wrong to none, throughput after C_t + 3 windows", settled_speeds("wrong"),
            bound::at_least, .97);
        add("wrong to none, memory after C_t + 3 windows",
            ratios("wrong", hints_are_overridden, "none", hints_are_overridden, "used_bytes"),
            bound::at_most, 1.05);
    }

  private:
    // Nothing if an interrupt came first.
    std::optional<double> of(const std::string& hints, std::size_t pair, int window,
                             const char* what) const {
        const auto all = results_.find(hints);
        if (all == results_.end() || pair >= all->second.size()) return std::nullopt;
        const json& rows = all->second[pair];
        if (static_cast<std::size_t>(window) >= rows.size()) return std::nullopt;
        return rows[static_cast<std::size_t>(window)][what].get<double>();
    }
    std::vector<double> ratios(const std::string& over, int window_over, const std::string& under,
                               int window_under, const char* what) const {
        std::vector<double> all;
        for (std::size_t pair = 0; pair < std::max<std::size_t>(s_.pairs, 1); ++pair) {
            const auto a = of(over, pair, window_over, what);
            const auto b = of(under, pair, window_under, what);
            if (a && b) all.push_back(*a / *b);
        }
        return all;
    }
    // Of each pair: none's time to that of `hints`, of all windows from C_t + 3 on, so that one disturbed window decides
    // nothing. A pair that lacks one of them has no ratio.
    std::vector<double> settled_speeds(const std::string& hints) const {
        std::vector<double> all;
        for (std::size_t pair = 0; pair < std::max<std::size_t>(s_.pairs, 1); ++pair) {
            std::vector<double> of_windows;
            for (int window = hints_are_overridden; window <= hint_windows; ++window) {
                const auto base = of("none", pair, window, "cpu_ns_per_op");
                const auto mine = of(hints, pair, window, "cpu_ns_per_op");
                if (base && mine) of_windows.push_back(*base / *mine);
            }
            if (of_windows.size() == hint_windows - hints_are_overridden + 1)
                all.push_back(spread_of(of_windows).median);
        }
        return all;
    }
    void report(const std::string& hints, bench_result& into) const {
        const auto found = results_.find(hints);
        if (found == results_.end() || found->second.empty()) return;
        for (json row : found->second.front()) {
            const int window = row["window"].get<int>();
            row.erase("sum");
            row["throughput_ratio"] = nullptr;
            if (const auto all = ratios("none", window, hints, window, "cpu_ns_per_op");
                window != 0 && !all.empty())
                row["throughput_ratio"] = spread_of(all).median;
            into.json["hints"].push_back(row);
        }
    }

    const m2t_settings& s_;
    std::map<std::string, std::vector<json>> results_;
};

// The numbers of the paper, and what this run says of each.
class claims {
  public:
    explicit claims(const json& cells) : cells_(cells) {}

    json all() {
        // Our longest lists are the paper's: 2,460 misses for an operation.
        const json* base = longest("malloc", "dram");
        const json* best = nullptr;
        for (const char* name : {"near", "near-meta"})
            if (const json* one = longest(name, "dram");
                one != nullptr && !(*one)["ratio"].is_null() &&
                (best == nullptr || (*one)["ratio"] > (*best)["ratio"]))
                best = one;
        const bool long_lists =
            base != nullptr && (*base)["records_per_bucket"].get<std::size_t>() >= 1000;
        add("YCSB-C: throughput of NextTo to standard allocation (Fig. 2), lists as long as the "
            "paper's",
            "3.39-4.69", long_lists && best != nullptr ? &(*best)["ratio"] : nullptr, 3.39, 4.69);
        const json* served = nullptr;
        for (const char* name : {"near", "near-meta"})
            if (const json* one = longest(name, "dram", workload::ycsb_theta, "tcp");
                one != nullptr && (*one)["records_per_bucket"].get<std::size_t>() >= 1000 &&
                !(*one)["ratio"].is_null() &&
                (served == nullptr || (*one)["ratio"] > (*served)["ratio"]))
                served = one;
        add("the same through the server, over TCP", "3.39-4.69",
            served != nullptr ? &(*served)["ratio"] : nullptr, 3.39, 4.69);
        const json* near = longest("near", "dram");
        add("mnalloc alone, everything next to (Fig. 4)", "3.86-4.14",
            long_lists && near != nullptr ? &(*near)["ratio"] : nullptr, 3.86, 4.14);
        add("skew .25: throughput (Fig. 3)", "3.52-3.87", of_theta(.25), 3.52, 3.87);
        add("skew 2: throughput (Fig. 3)", "2.36-2.65", of_theta(2), 2.36, 2.65);
        add("L3 misses, skew .99 (Table I)", "3.14", modelled("llc_misses_per_op"), 3.14, 3.15);
        add("L3 misses, skew .25 (Table I)", "3", modelled("llc_misses_per_op", .25), 3, 3.03);
        add("TLB misses, skew .99 (Table I: 4.081e11 / 4.410e10 is 9.25; the prose says 9.51)",
            "9.25", modelled("tlb_misses_per_op"), 9.25, 9.51);
        add("TLB misses, skew .25 (the prose; Table I has 4.007e8 / 9.521e7, which is 4.21)",
            "9.25", modelled("tlb_misses_per_op", .25), 9.25, 9.51);
        add("share of accesses that hit a cache, to that of the baseline, skew .99 (Fig. 7; one "
            "level is modelled)",
            "1.3185", modelled("cache_hit_share", workload::ycsb_theta, true), 1.3185, 1.3185);
        add("the same, skew .25", "1.4124", modelled("cache_hit_share", .25, true), 1.4124, 1.4124);
        add("percent of accesses that go to far memory, skew .99 (Fig. 7)", "1.64", far_accesses(),
            1.64, 1.64);
        add("the same, skew .25", "2.14", far_accesses(.25), 2.14, 2.14);
        add("pages migrated (Fig. 5), promoted and demoted", "244, 211", modelled("migrated_pages"),
            211, 244);
        for (const char* what :
             {"L1 and L2 misses (Table I): 2.16 and 3.06, skew .25 2.2 and 3; no such caches are "
              "modelled",
              "miss rates (Table I): of all loads of a program, which are not counted",
              "TPP alone: 2.3-14 % (Fig. 4); needs two tiers of memory",
              "M2T beyond mnalloc: .05-.41 % (Fig. 4); needs two tiers of memory",
              "migration rate: 180-310 MB/s and 4-32 KB/s (Fig. 6); needs two tiers of memory",
              "accesses to caches at skew .25 less than at .99 by 6 and 2.22 % (Fig. 7); needs its "
              "counters"})
            list_.push_back({{"claim", what},
                             {"paper", nullptr},
                             {"ours", nullptr},
                             {"verdict", "not testable"}});
        return list_;
    }

  private:
    const json* longest(const std::string& layout, const std::string& tier,
                        double theta = workload::ycsb_theta,
                        const char* transport = "memory") const {
        const json* found = nullptr;
        for (const json& one : cells_)
            if (one["layout"] == layout && one["tier"] == tier && one["workload"] == "C" &&
                one["transport"] == transport && one["distribution"] == "default" &&
                one["theta"] == theta &&
                (found == nullptr || one["records_per_bucket"] > (*found)["records_per_bucket"]))
                found = &one;
        return found;
    }
    const json* of_theta(double theta) const {
        const json* one = longest("near", "dram", theta);
        return one != nullptr && !(*one)["ratio"].is_null() ? &(*one)["ratio"] : nullptr;
    }
    // Of the baseline to near, or the other way round.
    const json* modelled(const char* what, double theta = workload::ycsb_theta, bool more = false) {
        const json* base = longest("malloc", "model", theta);
        const json* near = longest("near", "model", theta);
        if (more) std::swap(base, near);
        if (base == nullptr || near == nullptr || (*near)[what].get<double>() == 0) return nullptr;
        return keep((*base)[what].get<double>() / (*near)[what].get<double>());
    }
    const json* far_accesses(double theta = workload::ycsb_theta) {
        const json* near = longest("near", "model", theta);
        if (near == nullptr) return nullptr;
        return keep(100 * (*near)["far_share"].get<double>() *
                    (1 - (*near)["cache_hit_share"].get<double>()));
    }
    const json* keep(double value) { return &kept_.emplace_back(value); }
    void add(const std::string& what, const char* paper, const json* ours, double low,
             double high) {
        const char* said = "not testable";
        if (ours != nullptr)
            said = ours->get<double>() > high * 1.05  ? "exceeded"
                   : ours->get<double>() >= low * .95 ? "reproduced"
                                                      : "not reproduced";
        list_.push_back({{"claim", what},
                         {"paper", paper},
                         {"ours", ours != nullptr ? *ours : json(nullptr)},
                         {"verdict", said}});
    }

    const json& cells_;
    json list_ = json::array();
    std::deque<json> kept_; // addresses are kept
};

// Makes swap, so that what malloc takes can be reclaimed.
std::string why_no_limit(const m2t_settings& s, std::optional<swap_space>& swap) {
    {
        const own_control_group group;
        if (!group.group().made()) return "no memory control group can be made";
    }
    swap.emplace(swap_request{.kind = s.swap_directory.empty() ? swap_kind::any : swap_kind::file,
                              .bytes = s.records * (s.value_bytes + 300) + (std::size_t{64} << 20),
                              .directory = s.swap_directory});
    return swap->why_not();
}

} // namespace

const std::vector<std::string>& m2t_layouts() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const layout& one : layouts) all.emplace_back(one.name);
        return all;
    }();
    return names;
}

bench_result bench_m2t(const m2t_settings& s) {
    for (const std::string& hints : s.hints)
        if (hints != "none" && hints != "right" && hints != "wrong")
            throw std::invalid_argument(
                "--hints " + hints +
                (hints == "no" ? " excludes others: it says that there are no cells of hints. What "
                                 "the others are compared with is none, the cell without hints"
                               : ": expected none, right or wrong"));
    if (s.theta != workload::ycsb_theta && s.workloads != std::vector<std::string>{"C"})
        throw std::invalid_argument(
            "--theta other than .99 is for workload C only (--workload says otherwise)");
    if (s.theta != workload::ycsb_theta && !s.distribution.empty())
        throw std::invalid_argument("--theta other than .99 and --distribution exclude each other");
    std::vector<std::string> names = s.layouts.empty() ? m2t_layouts() : s.layouts;
    bench_result result;
    result.json["cells"] = json::array();
    result.json["hints"] = json::array();
    result.json["skipped_layouts"] = json::array();
    result.json["skipped_tiers"] = json::array();
    if (const auto at = std::find(names.begin(), names.end(), "jemalloc");
        at != names.end() && !has_jemalloc()) {
        names.erase(at);
        result.json["skipped_layouts"].push_back("jemalloc: this program is not linked with it");
    }
    std::optional<swap_space> swap;
    std::string no_limit;
    const bool asks = std::find(s.tiers.begin(), s.tiers.end(), "limit") != s.tiers.end();
    if (asks || s.tiers.empty()) no_limit = why_no_limit(s, swap);
    if (!no_limit.empty()) {
        if (asks) throw std::runtime_error("tier limit: " + no_limit);
        result.json["skipped_tiers"].push_back("limit: " + no_limit);
    }
    for (const std::size_t per_bucket : s.per_bucket)
        for (const std::string& letter : s.workloads)
            for (const auto& [tier, transport] :
                 {std::pair<std::string, std::string>{"dram", "memory"},
                  {"dram", "tcp"},
                  {"limit", "memory"},
                  {"model", "memory"}}) {
                const bool asked =
                    (s.tiers.empty() ||
                     std::find(s.tiers.begin(), s.tiers.end(), tier) != s.tiers.end()) &&
                    (tier != "dram" || std::find(s.transports.begin(), s.transports.end(),
                                                 transport) != s.transports.end());
                // The model knows searches, whatever the workload writes.
                if (!asked || result.partial || (tier == "model" && letter != "C")) continue;
                if (tier == "limit" && !no_limit.empty()) continue;
                try {
                    row(s, names, per_bucket, letter, tier, transport).run_all(result);
                } catch (const interruption&) { // before it had a cell
                    result.partial = true;
                }
            }
    if (!s.hints.empty() && !result.partial) {
        hints_rows hints(s);
        try {
            hints.run_all(result);
        } catch (const interruption&) { // in a process that had no row yet
            result.partial = true;
        }
        result.partial = result.partial || interrupted();
        hints.report_all(result);
    }
    const json cells = result.json["cells"];
    result.json["claims"] = claims(cells).all();
    return result;
}

} // namespace obase::tools
