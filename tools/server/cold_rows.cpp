// SPDX-License-Identifier: MIT
#include "tools/server/cold_rows.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/server/moving_turns.hpp"
#include "tools/server/servers.hpp"
#include "tools/workload/distribution.hpp"
#include "tools/workload/power_law.hpp"
#include "tools/workload/scattered_ids.hpp"
#include "tools/ycsb/control_group.hpp"
#include "tools/ycsb/keeper.hpp"
#include "tools/ycsb/swap_space.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

namespace obase::tools {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t key_bytes = 30;

// Control groups of this process' servers, removed also when it is killed.
class groups {
  public:
    // Throws std::runtime_error where none can be made.
    const control_group& make(const std::string& name, std::uint64_t limit, bool may_swap) {
        all_.push_back(std::make_unique<control_group>(control_group::below_own(
            fmt::format("obase-server-{}-{}", ::getpid(), name), [this](const std::string& path) {
                if (!undo_.started() || !undo_.promise(keeper::what::group, path))
                    throw std::runtime_error("no process to remove a control group");
            })));
        const control_group& group = *all_.back();
        if (!group.made()) throw std::runtime_error("no control group can be made");
        if (const std::string why = group.set_limit(limit); !why.empty())
            throw std::runtime_error(why);
        if (may_swap) return group;
        // A kernel without accounts of swap has no such file.
        if (const std::string why = group.forbid_swap(); !why.empty())
            tell(fmt::format("{} may be swapped out: {}", name, why));
        return group;
    }

  private:
    keeper undo_;
    std::vector<std::unique_ptr<control_group>> all_;
};

std::vector<std::string> crestdb_words(const scratch_directory& scratch, const std::string& socket,
                                       const server_bench_settings& s,
                                       std::initializer_list<std::string> row) {
    std::vector<std::string> words = {crestdb_program(),
                                      "--port",
                                      "0",
                                      "--unixsocket",
                                      socket,
                                      "--dir",
                                      scratch.path(),
                                      "--no-load",
                                      "--threads",
                                      fmt::format("{}", s.threads),
                                      "--window",
                                      fmt::format("{}", s.window_seconds)};
    if (!s.policy.empty()) words.insert(words.end(), {"--policy", s.policy});
    words.insert(words.end(), row);
    return with_options(words, s.crestdb_options);
}

struct samples {
    std::vector<double> throughput, cpu_us, p50, p99, p999;
    std::uint64_t io_bytes = 0, faults = 0;

    void add(run_result& ran, std::uint64_t requests) {
        std::sort(ran.latencies_us.begin(), ran.latencies_us.end());
        throughput.push_back(static_cast<double>(requests) / ran.seconds);
        cpu_us.push_back(ran.cpu_seconds * 1e6 / static_cast<double>(requests));
        p50.push_back(quantile(ran.latencies_us, .5));
        p99.push_back(quantile(ran.latencies_us, .99));
        p999.push_back(quantile(ran.latencies_us, .999));
        io_bytes += ran.io_bytes;
    }
};

double middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

void add_cell(bench_result& result, const std::string& what, const std::string& name,
              const samples& c, const system_under_test& system, const server_bench_settings& s,
              unsigned pipeline) {
    result.json["cells"].push_back({{"what", what},
                                    {"system", name},
                                    {"clients", s.clients},
                                    {"pipeline", pipeline},
                                    {"throughput_ops", middle(c.throughput)},
                                    {"server_cpu_us_per_op", middle(c.cpu_us)},
                                    {"p50_us", middle(c.p50)},
                                    {"p99_us", middle(c.p99)},
                                    {"p999_us", middle(c.p999)},
                                    {"rss_bytes", system.rss()},
                                    {"used_bytes", system.used()},
                                    {"io_bytes", c.io_bytes},
                                    {"major_faults", c.faults}});
}

void add_ratio(bench_result& result, const std::string& name, const std::vector<double>& of,
               const std::vector<double>& to, bound kind, double target,
               const std::string& command) {
    std::vector<double> values;
    for (std::size_t i = 0; i < std::min(of.size(), to.size()); ++i)
        if (to[i] > 0) values.push_back(of[i] / to[i]);
    if (values.empty()) return;
    result.json["ratios"][name] = middle(values);
    result.figures.push_back({name, "", spread_of(values), kind, target, command});
}

bench_result empty_result() {
    bench_result result;
    result.json["cells"] = nlohmann::json::array();
    result.json["ratios"] = nlohmann::json::object();
    result.json["left_out"] = nlohmann::json::array();
    return result;
}

std::uint64_t records_for(const server_bench_settings& s) {
    const auto data = static_cast<double>(s.memory_mib * mebibyte) * s.data_times;
    return static_cast<std::uint64_t>(data) / (key_bytes + s.value_bytes);
}

using generator = std::function<std::uint64_t(workload::random_stream&, bool&)>;

std::map<std::string, generator> distributions(std::uint64_t records) {
    const workload::scattered_ids zipf(workload::power_law_ids(records, .99), records);
    const workload::scrambled_zipfian ycsb(records);
    // Every tenth record, in turn, again and again: what is asked for lies anywhere among what is not.
    auto at = std::make_shared<std::uint64_t>(0);
    const std::uint64_t part = std::max<std::uint64_t>(records / 10, 1);
    return {
        {"zipfian", [zipf](workload::random_stream& random, bool&) { return zipf.next(random); }},
        {"ycsb", [ycsb](workload::random_stream& random, bool&) { return ycsb.next(random); }},
        {"loop", [at, part](workload::random_stream&, bool&) { return (*at)++ % part * 10; }}};
}

// Requests until the servers have had some windows to sort what is hot from what is not.
void warm_up(system_under_test& system, const server_bench_settings& s, const generator& next,
             std::uint64_t seed) {
    load_request load{false, s.requests, s.clients, s.pipelines.front(), s.value_bytes, seed, next};
    ask(system, load);
}

// What writes to its file in the background drops items that come faster, and some that come slowly. So what is missing
// is written again, as the clients of a cache do. True if all are there in the end.
bool fill_slowly(system_under_test& system, std::uint64_t records, std::size_t value_bytes) {
    constexpr std::uint64_t at_once = 2'000;
    constexpr unsigned passes = 12;
    std::uint64_t at = 0;
    const generator in_turn = [&](workload::random_stream&, bool&) { return at++; };
    const auto all_there = [&](std::uint64_t begin, std::uint64_t count) {
        at = begin;
        try {
            ask(system, {false, count, 1, 16, value_bytes, 1, in_turn});
        } catch (const std::runtime_error&) {
            return false;
        }
        return true;
    };
    for (unsigned pass = 0; pass < passes; ++pass) {
        std::uint64_t written = 0;
        for (std::uint64_t begin = 0; begin < records && !interrupted(); begin += at_once) {
            const std::uint64_t count = std::min(at_once, records - begin);
            if (pass != 0 && all_there(begin, count)) continue;
            at = begin;
            ask(system, {true, count, 1, 16, value_bytes, 1, in_turn});
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            ++written;
        }
        if (written == 0) return true;
    }
    return false;
}

} // namespace

bench_result bench_server_memory(const server_bench_settings& s) {
    bench_result result = empty_result();
    const std::string command = "obase bench server --rows memory";
    const std::uint64_t limit = s.memory_mib * mebibyte;
    const std::uint64_t records = records_for(s);
    const swap_space swap({.kind = swap_kind::file,
                           .bytes = static_cast<std::uint64_t>(4 * s.data_times) * limit,
                           .directory = s.directory});
    if (!swap.why_not().empty()) {
        result.skipped = swap.why_not();
        return result;
    }
    const scratch_directory scratch;
    groups limits;
    std::vector<std::unique_ptr<system_under_test>> systems;
    for (const std::string& name : s.systems) {
        const std::string socket = scratch.path() + "/" + name;
        std::vector<std::string> words;
        if (name == "crestdb") {
            words = crestdb_words(
                scratch, socket, s,
                {"--cold", "file:" + s.directory, "--hints", "pageout", "--memory", "cgroup"});
        } else if (name == "redis") {
            words = {in_path("redis-server"),
                     "--port",
                     "0",
                     "--unixsocket",
                     socket,
                     "--save",
                     "",
                     "--dir",
                     scratch.path()};
        } else if (name == "memcached") {
            // What it keeps for itself, and the page cache of its file, is in the group, too.
            words = {in_path("memcached"),
                     "-s",
                     socket,
                     "-t",
                     fmt::format("{}", s.threads),
                     "-c",
                     "1024",
                     "-m",
                     fmt::format("{}", s.memory_mib * 6 / 10),
                     "-o",
                     fmt::format("slab_automove_window=3,slab_automove_ratio=0.5,ext_page_size=16,"
                                 "ext_threads=4,ext_path={}/extstore-{}:{}M",
                                 s.directory, ::getpid(),
                                 static_cast<std::uint64_t>(4 * s.data_times) * s.memory_mib)};
            if (::geteuid() == 0) words.insert(words.end(), {"-u", "root"});
        } else {
            continue;
        }
        if (words[0].empty()) {
            result.json["left_out"].push_back(name);
            continue;
        }
        const bool resp = name != "memcached";
        // The others have files for what they want out of memory, and choose it themselves.
        const bool may_swap = name == "redis";
        systems.push_back(std::make_unique<system_under_test>(name, words, socket, resp,
                                                              &limits.make(name, limit, may_swap)));
        tell(fmt::format("loading {}", name));
        if (resp) {
            fill(*systems.back(), records, s.value_bytes);
        } else if (!fill_slowly(*systems.back(), records, s.value_bytes)) {
            result.json["left_out"].push_back(name + " (it dropped items of the load)");
            systems.pop_back();
        }
        if (!resp) ::unlink(fmt::format("{}/extstore-{}", s.directory, ::getpid()).c_str());
    }
    const unsigned pipeline = s.pipelines.front();
    for (const auto& [what, next] : distributions(records)) {
        if (std::find(s.loads.begin(), s.loads.end(), what) == s.loads.end()) continue;
        std::map<std::string, samples> cells;
        for (auto& system : systems)
            for (std::size_t i = 0; i < s.warm_ups && !interrupted(); ++i) {
                tell(fmt::format("{}: {} warms up, {} of {}", what, system->name(), i + 1,
                                 s.warm_ups));
                warm_up(*system, s, next, 1000 + i);
            }
        for (std::size_t pair = 0; pair < s.pairs && !interrupted(); ++pair)
            for (std::size_t i = 0; i < systems.size(); ++i) {
                system_under_test& system = *systems[(i + pair) % systems.size()];
                tell(fmt::format("{}, {} of {}: {}", what, pair + 1, s.pairs, system.name()));
                load_request load{false,         s.requests, s.clients, pipeline,
                                  s.value_bytes, pair,       next};
                const std::uint64_t faults = system.major_faults();
                run_result ran = ask(system, load);
                cells[system.name()].add(ran, s.requests);
                cells[system.name()].faults += system.major_faults() - faults;
            }
        for (auto& system : systems)
            add_cell(result, what, system->name(), cells[system->name()], *system, s, pipeline);
        const auto compare = [&](const std::string& other, double target) {
            if (!cells.contains("crestdb") || !cells.contains(other)) return;
            const samples &x = cells["crestdb"], &y = cells[other];
            add_ratio(result, fmt::format("{} throughput: crestdb / {}", what, other), x.throughput,
                      y.throughput, bound::at_least, target, command);
            add_ratio(result, fmt::format("{} p99: crestdb / {}", what, other), x.p99, y.p99,
                      bound::none, 1.0, command);
        };
        compare("redis", 2.0);
        compare("memcached", 1.2);
    }
    result.json["records"] = records;
    result.json["memory_bytes"] = limit;
    result.json["pairs"] = s.pairs;
    result.partial = interrupted();
    return result;
}

bench_result bench_server_cold(const server_bench_settings& s) {
    bench_result result = empty_result();
    const std::string command = "obase bench server --rows cold";
    const std::uint64_t records = records_for(s);
    const std::uint64_t hot = std::max<std::uint64_t>(records / 50, 1);
    const scratch_directory scratch;
    groups limits;
    const std::string socket = scratch.path() + "/crestdb";
    // The budget alone: without swap a limit that the first load passes would end the server.
    system_under_test system("crestdb",
                             crestdb_words(scratch, socket, s,
                                           {"--cold", "file:" + s.directory, "--hints", "pageout",
                                            "--memory", fmt::format("{}M", s.memory_mib * 9 / 10)}),
                             socket, true);
    tell("loading");
    fill(system, records, s.value_bytes);
    const generator only_hot = [hot](workload::random_stream& random, bool&) {
        return random.below(hot);
    };
    const generator mixed = [hot, records](workload::random_stream& random, bool& apart) {
        apart = random.unit() < .1;
        return apart ? hot + random.below(records - hot) : random.below(hot);
    };
    for (std::size_t i = 0; i < s.warm_ups && !interrupted(); ++i) warm_up(system, s, only_hot, i);
    samples alone, beside;
    std::vector<double> cold_p99;
    const std::uint64_t reads = system.info("cold_reads");
    for (std::size_t pair = 0; pair < s.pairs && !interrupted(); ++pair)
        for (const bool with_cold : {pair % 2 == 0, pair % 2 != 0}) {
            tell(fmt::format("{} of {}: {}", pair + 1, s.pairs, with_cold ? "with cold" : "hot"));
            load_request load{
                false, s.requests, s.clients, 1, s.value_bytes, pair, with_cold ? mixed : only_hot};
            const std::uint64_t faults = system.major_faults(true);
            run_result ran = ask(system, load);
            (with_cold ? beside : alone).add(ran, s.requests);
            (with_cold ? beside : alone).faults += system.major_faults(true) - faults;
            std::sort(ran.apart_us.begin(), ran.apart_us.end());
            if (with_cold) cold_p99.push_back(quantile(ran.apart_us, .99));
        }
    const std::uint64_t waited = system.info("cold_reads") - reads;
    add_cell(result, "hot", "crestdb", alone, system, s, 1);
    add_cell(result, "hot beside cold", "crestdb", beside, system, s, 1);
    add_ratio(result, "p99 of hot keys: with 10 % cold / without", beside.p99, alone.p99,
              bound::at_most, 2.0, command);
    result.json["cold_p99_us"] = middle(cold_p99);
    result.json["cold_reads"] = waited;
    result.figures.push_back(counted_figure("requests that waited for cold data", "",
                                            static_cast<double>(waited), command));
    result.figures.push_back(counted_figure("p99 of cold keys", "us", middle(cold_p99), command));
    if (waited == 0) result.failure = "no request waited for cold data: nothing was cold";
    result.json["records"] = records;
    result.json["pairs"] = s.pairs;
    result.partial = interrupted();
    return result;
}

bench_result bench_server_moving(const server_bench_settings& s) {
    bench_result result = empty_result();
    const std::string command = "obase bench server --rows moving";
    samples cells[2];
    std::uint64_t moved = 0, asked = 0;
    constexpr double longest_without_moves = 8; // windows
    const workload::scattered_ids zipf(workload::power_law_ids(s.records, .99), s.records);
    for (std::size_t pair = 0; pair < s.pairs && !interrupted(); ++pair) {
        const scratch_directory scratch;
        std::vector<std::unique_ptr<system_under_test>> systems;
        for (const bool moves : {true, false}) {
            const std::string socket = scratch.path() + (moves ? "/moving" : "/still");
            const auto words = moves ? crestdb_words(scratch, socket, s, {})
                                     : crestdb_words(scratch, socket, s, {"--mode", "off"});
            systems.push_back(std::make_unique<system_under_test>("crestdb", words, socket, true));
        }
        tell(fmt::format("{} of {}: loading", pair + 1, s.pairs));
        for (auto& system : systems) fill(*system, s.records, s.value_bytes);
        constexpr std::uint64_t per_turn = 10'000;
        moving_turns turns = take_moving_turns(
            s.requests, per_turn,
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(longest_without_moves * s.window_seconds)),
            [&](std::size_t which, std::uint64_t turn) {
                const load_request load{
                    false,
                    per_turn,
                    s.clients,
                    1,
                    s.value_bytes,
                    turn,
                    [&](workload::random_stream& random, bool&) { return zipf.next(random); }};
                const system_under_test::stopped other(*systems[1 - which]);
                return ask(*systems[which], load);
            },
            [&] { return systems[0]->info("obase_moved_objects"); }, [] { return !interrupted(); });
        if (turns.requests == 0) break;
        moved += turns.moved;
        asked += turns.requests;
        for (const std::size_t which : {0u, 1u}) cells[which].add(turns.of[which], turns.requests);
        if (pair + 1 == s.pairs || interrupted())
            for (const std::size_t which : {0u, 1u})
                add_cell(result, which == 0 ? "get, objects move" : "get, no collector", "crestdb",
                         cells[which], *systems[which], s, 1);
    }
    add_ratio(result, "p99.9: objects move / no collector", cells[0].p999, cells[1].p999,
              bound::at_most, 1.2, command);
    add_ratio(result, "p99: objects move / no collector", cells[0].p99, cells[1].p99, bound::none,
              1.0, command);
    add_ratio(result, "throughput: objects move / no collector", cells[0].throughput,
              cells[1].throughput, bound::none, 1.0, command);
    result.json["moved_objects"] = moved;
    result.figures.push_back(
        counted_figure("objects moved, all repetitions", "", static_cast<double>(moved), command));
    result.json["requests"] = asked;
    if (moved == 0) result.failure = "nothing moved";
    result.json["records"] = s.records;
    result.json["pairs"] = s.pairs;
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
