// SPDX-License-Identifier: MIT
#include "tools/fragmentation/redis.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/fragmentation/reading_client.hpp"
#include "tools/server/resp_client.hpp"
#include "tools/server/servers.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;
using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

// A field of /proc, in KiB there.
double mib_of(const std::string& file, std::string_view field) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(field))
            return std::strtod(line.c_str() + field.size(), nullptr) / 1024;
    throw std::runtime_error(fmt::format("fragmentation: {} has no {}", file, field));
}

constexpr std::string_view collector =
    "obase-handles"; // the thread that moves objects, where there is one

std::vector<std::string> words_for(const redis_servers& servers, const std::string& allocator,
                                   const std::string& socket, const std::string& directory,
                                   const std::string& figures, std::uint64_t bound,
                                   const fragmentation_settings& settings) {
    std::vector<std::string> environment = environment_of(allocator, settings);
    if (allocator.starts_with("obase")) environment.push_back("HANDLES_BENCH_FIGURES=" + figures);
    const bool defragments = allocator == "activedefrag";
    std::vector<std::string> words{allocator.starts_with("obase") ? servers.handles
                                   : defragments                  ? servers.activedefrag
                                                                  : servers.plain,
                                   "--port",
                                   "0",
                                   "--unixsocket",
                                   socket,
                                   "--dir",
                                   directory,
                                   "--save",
                                   "",
                                   "--maxmemory",
                                   std::to_string(bound),
                                   "--maxmemory-policy",
                                   "allkeys-lru",
                                   "--maxmemory-samples",
                                   "1",
                                   "--enable-debug-command",
                                   "yes"};
    if (defragments) words.insert(words.end(), {"--activedefrag", "yes"});
    words = clean_command(environment, words);
    words[0] = "/usr/bin/env";
    return words;
}

} // namespace

json run_redis(const redis_servers& servers, const std::string& allocator,
               const fragmentation_settings& settings) {
    const scratch_directory scratch;
    const std::string socket = scratch.path() + "/redis";
    const std::string figures = scratch.path() + "/figures.json";
    const std::uint64_t bound = (std::uint64_t{100} << 20) / settings.scale;
    system_under_test server(
        allocator, words_for(servers, allocator, socket, scratch.path(), figures, bound, settings),
        socket, true);
    resp_client client(socket);
    const std::uint64_t second = 170'000 / settings.scale;
    client.ask({"DEBUG", "POPULATE", std::to_string(700'000 / settings.scale), "a",
                std::to_string(reading_client::first_bytes)});
    client.ask({"DEBUG", "POPULATE", std::to_string(second), "b",
                std::to_string(reading_client::second_bytes)});
    // It evicts some at each command, and between them. What it leaves to clients it counts, and does not hold against
    // the bound.
    const std::uint64_t below = bound + bound / 100;
    std::uint64_t least = UINT64_MAX;
    auto progress = clock::now();
    for (std::uint64_t used; (used = server.info("used_memory")) > below; ::usleep(5'000)) {
        if (interrupted()) throw interruption(allocator);
        if (used < least) {
            least = used;
            progress = clock::now();
        }
        if (seconds_since(progress) > 60)
            throw std::runtime_error(
                fmt::format("fragmentation: redis, {}, stays at {} bytes with a maxmemory of {}",
                            allocator, used, bound));
    }

    json run{{"allocator", allocator}};
    const auto begin = clock::now();
    const double worked = cpu_seconds(server.process(), collector);
    reading_client reader(socket, second);
    std::vector<unsigned> seconds = settings.seconds;
    std::sort(seconds.begin(), seconds.end());
    double shares = 0;
    for (const unsigned at : seconds) {
        while (seconds_since(begin) < at) {
            if (interrupted()) throw interruption(allocator);
            std::this_thread::sleep_for(
                std::chrono::duration<double>(std::clamp(at - seconds_since(begin), 0.0, .1)));
        }
        // Who reads smaps_rollup has the lock of the server's address space meanwhile, and INFO is a command.
        const reading_client::pause not_measured(reader);
        const std::string proc = fmt::format("/proc/{}/", server.process());
        run["rss_mib"][std::to_string(at)] = mib_of(proc + "status", "VmRSS:");
        run["pss_mib"][std::to_string(at)] = mib_of(proc + "smaps_rollup", "Pss:");
        shares += static_cast<double>(server.info("active_defrag_running")) / 100;
    }
    const double took = std::max(seconds_since(begin), 1e-3);
    const double collected = cpu_seconds(server.process(), collector) - worked;
    reader.finish();
    if (reader.found == 0)
        throw std::runtime_error("fragmentation: redis has none of the values that came last");
    run["longest_stall_us"] = reader.longest_us;
    run["read"] = reader.found;
    run["wrong"] = reader.wrong;
    run["live_mib"] = static_cast<double>(server.info("used_memory")) / 1048576;
    run["moved"] = server.info("active_defrag_hits");
    run["vetoed"] = server.info("active_defrag_misses");
    // Activedefrag's work is in the server's only thread; it says how much of it it gives itself.
    run["cpu_share"] =
        collected / took + shares / static_cast<double>(std::max<std::size_t>(seconds.size(), 1));
    try {
        client.ask({"SHUTDOWN", "NOSAVE"});
    } catch (const std::runtime_error&) { // it says nothing more
    }
    if (!server.wait_for_end(10))
        throw std::runtime_error(fmt::format("fragmentation: redis, {}, does not end", allocator));
    if (const json counted = take_figures(figures); counted.is_object()) {
        run["moved"] = counted.at("moved");
        run["vetoed"] = counted.at("vetoed");
        run["table_mib"] = counted.at("table_memory_bytes").get<double>() / 1048576;
    } else if (allocator.starts_with("obase")) {
        throw std::runtime_error("fragmentation: redis with handles left no figures");
    }
    return run;
}

} // namespace obase::tools
