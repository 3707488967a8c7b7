// SPDX-License-Identifier: MIT
#include "tools/server/server_bench.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/server/servers.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace obase::tools {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

} // namespace

std::vector<std::string> server_systems() {
    return {"crestdb", "crestdb-none", "redis", "memcached"};
}

bench_result bench_server(const server_bench_settings& s) {
    bench_result result;
    const scratch_directory scratch;
    const std::string crestdb = crestdb_program();
    std::vector<std::unique_ptr<system_under_test>> systems;
    result.json["left_out"] = nlohmann::json::array();
    for (const std::string& name : s.systems) {
        const std::string socket = scratch.path() + "/" + name;
        std::vector<std::string> words;
        if (name.starts_with("crestdb")) {
            words = {
                crestdb, "--port",       "0",         "--unixsocket", socket,
                "--dir", scratch.path(), "--no-load", "--threads",    fmt::format("{}", s.threads)};
            if (name == "crestdb-none") words.insert(words.end(), {"--protocol", "none"});
            words = with_options(words, s.crestdb_options);
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
        } else {
            words = {in_path("memcached"),         "-s", socket, "-m", "8192", "-t",
                     fmt::format("{}", s.threads), "-c", "1024"};
            if (::geteuid() == 0) words.insert(words.end(), {"-u", "root"});
        }
        if (words[0].empty() || ::access(words[0].c_str(), X_OK) != 0) {
            result.json["left_out"].push_back(name);
            continue;
        }
        systems.push_back(
            std::make_unique<system_under_test>(name, words, socket, name != "memcached"));
    }
    for (auto& system : systems) {
        tell(fmt::format("loading {}", system->name()));
        fill(*system, s.records, s.value_bytes);
    }
    // [what, pipeline][system]: one entry per repetition.
    struct cell {
        std::vector<double> throughput, cpu_us, p50, p99, p999;
        std::uint64_t io = 0;
    };
    std::map<std::pair<std::string, unsigned>, std::map<std::string, cell>> cells;
    for (std::size_t pair = 0; pair < s.pairs && !interrupted(); ++pair)
        for (const unsigned pipeline : s.pipelines)
            for (const bool set : {true, false})
                for (std::size_t i = 0; i < systems.size(); ++i) {
                    // Who is first changes, so that nobody always follows the same one.
                    system_under_test& system = *systems[(i + pair) % systems.size()];
                    tell(fmt::format("{} of {}: {} {} P={}", pair + 1, s.pairs, system.name(),
                                     set ? "set" : "get", pipeline));
                    const std::uint64_t requests = s.requests * (pipeline > 1 ? 4 : 1);
                    run_result ran;
                    try {
                        load_request load{set, requests, s.clients, pipeline, s.value_bytes, 1, {}};
                        load.seed = pair * 1000 + pipeline;
                        load.next = [&](workload::random_stream& random, bool&) {
                            return random.below(s.records);
                        };
                        ran = ask(system, load);
                    } catch (const interruption&) {
                        break; // with what there is
                    }
                    std::sort(ran.latencies_us.begin(), ran.latencies_us.end());
                    cell& c = cells[{set ? "set" : "get", pipeline}][system.name()];
                    c.throughput.push_back(static_cast<double>(requests) / ran.seconds);
                    c.cpu_us.push_back(ran.cpu_seconds * 1e6 / static_cast<double>(requests));
                    c.p50.push_back(quantile(ran.latencies_us, .5));
                    c.p99.push_back(quantile(ran.latencies_us, .99));
                    c.p999.push_back(quantile(ran.latencies_us, .999));
                    c.io += ran.io_bytes;
                }
    result.partial = interrupted();
    result.json["cells"] = nlohmann::json::array();
    for (auto& [which, by_system] : cells)
        for (auto& system : systems) {
            const auto found = by_system.find(system->name());
            if (found == by_system.end()) continue;
            const cell& c = found->second;
            result.json["cells"].push_back({{"what", which.first},
                                            {"system", system->name()},
                                            {"clients", s.clients},
                                            {"pipeline", which.second},
                                            {"throughput_ops", median(c.throughput)},
                                            {"server_cpu_us_per_op", median(c.cpu_us)},
                                            {"p50_us", median(c.p50)},
                                            {"p99_us", median(c.p99)},
                                            {"p999_us", median(c.p999)},
                                            {"rss_bytes", system->rss()},
                                            {"used_bytes", system->used()},
                                            {"io_bytes", c.io}});
        }
    result.json["ratios"] = nlohmann::json::object();
    const std::string command = "obase bench server";
    const auto compare = [&](const std::string& a, const std::string& b) {
        for (auto& [which, by_system] : cells) {
            if (!by_system.contains(a) || !by_system.contains(b)) continue;
            const auto ratio = [&](const std::string& of, const std::vector<double>& x,
                                   const std::vector<double>& y, bound kind, double target) {
                std::vector<double> values;
                for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
                    if (y[i] > 0) values.push_back(x[i] / y[i]);
                const std::string name =
                    fmt::format("{} P={} {}: {} / {}", which.first, which.second, of, a, b);
                result.json["ratios"][name] = median(values);
                result.figures.push_back({name, "", spread_of(values), kind, target, command});
            };
            const cell &x = by_system[a], &y = by_system[b];
            const bool redis = a == "crestdb" && b == "redis";
            const bool one = which.second == 1;
            ratio("server CPU", x.cpu_us, y.cpu_us, redis ? bound::at_most : bound::none,
                  one ? 1.0 : .8);
            ratio("throughput", x.throughput, y.throughput,
                  redis || b == "crestdb-none" ? bound::at_least : bound::none,
                  redis ? (one ? 1.0 : 1.1) : .98);
            ratio("p99", x.p99, y.p99, redis ? bound::at_most : bound::none, 1.0);
        }
    };
    compare("crestdb", "redis");
    compare("crestdb", "crestdb-none");
    compare("crestdb", "memcached");
    for (auto& system : systems) {
        const double bytes = static_cast<double>(system->used()) / static_cast<double>(s.records);
        result.json["bytes_per_record"][system->name()] = bytes;
        result.figures.push_back(counted_figure(
            fmt::format("{}: bytes per record of 30 + {} bytes", system->name(), s.value_bytes),
            "bytes", bytes, command));
    }
    const auto bytes_of = [&](const std::string& name) {
        return result.json["bytes_per_record"].value(name, 0.0);
    };
    if (const double ours = bytes_of("crestdb"), theirs = bytes_of("redis");
        theirs > 0 && ours > 0) {
        // Key and value are in one object.
        const std::string name = "bytes per record: crestdb / redis";
        result.json["ratios"][name] = ours / theirs;
        result.figures.push_back(
            {name, "", spread_of({ours / theirs}), bound::at_most, .8, command});
    }
    result.json["records"] = s.records;
    result.json["value_bytes"] = s.value_bytes;
    result.json["pairs"] = s.pairs;
    if (std::none_of(systems.begin(), systems.end(), [](auto& x) { return x->name() == "redis"; }))
        result.skipped =
            "redis-server is not installed, or not asked for: there is nothing to compare with";
    return result;
}

} // namespace obase::tools
