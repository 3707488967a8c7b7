// SPDX-License-Identifier: MIT
#include "crestdb/server/settings.hpp"

#include "crestdb/server/config_file.hpp"
#include "crestdb/server/text.hpp"

#include <obase/options.hpp>
#include <obase/version.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>

namespace crestdb::server {

namespace {

template <class T>
std::string set_number(std::atomic<T>& field, std::string_view value, std::int64_t least,
                       std::int64_t most = INT64_MAX) {
    const auto parsed = parse_integer(value);
    if (!parsed) return "argument couldn't be parsed into an integer";
    if (*parsed < least || *parsed > most)
        return fmt::format("argument must be between {} and {} inclusive", least, most);
    field = static_cast<T>(*parsed);
    return "";
}

template <class T>
std::string set_bytes(std::atomic<T>& field, std::string_view value) {
    const auto parsed = parse_bytes(value);
    if (!parsed || *parsed > INT64_MAX) return "argument must be a memory value";
    field = static_cast<T>(*parsed);
    return "";
}

} // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    const auto number = parse_unsigned(text.substr(0, digits));
    if (!number) return std::nullopt;
    const std::string_view unit = text.substr(digits);
    std::uint64_t scale = 0;
    if (unit.empty() || equal_fold(unit, "b"))
        scale = 1;
    else if (equal_fold(unit, "k"))
        scale = 1000;
    else if (equal_fold(unit, "m"))
        scale = 1000 * 1000;
    else if (equal_fold(unit, "g"))
        scale = 1000 * 1000 * 1000;
    else if (equal_fold(unit, "kb"))
        scale = 1ull << 10;
    else if (equal_fold(unit, "mb"))
        scale = 1ull << 20;
    else if (equal_fold(unit, "gb"))
        scale = 1ull << 30;
    else if (equal_fold(unit, "tb"))
        scale = 1ull << 40;
    else
        return std::nullopt;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(*number, scale, &bytes)) return std::nullopt;
    return bytes;
}

std::string settings::set(std::string_view name, std::string_view value) {
    if (equal_fold(name, "maxmemory")) return set_bytes(maxmemory, value);
    if (equal_fold(name, "maxmemory-policy")) {
        const auto parsed = parse_eviction(lower(value));
        if (!parsed)
            return "argument(s) must be one of the following: volatile-lru, volatile-lfu, "
                   "volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, "
                   "noeviction";
        policy_of_eviction = *parsed;
        return "";
    }
    if (equal_fold(name, "maxclients")) return set_number(max_clients, value, 1, 1'000'000);
    if (equal_fold(name, "timeout")) return set_number(timeout_seconds, value, 0, 1 << 30);
    if (equal_fold(name, "proto-max-bulk-len")) {
        const auto parsed = parse_bytes(value);
        if (!parsed || *parsed < (1u << 20) || *parsed > record::most_value)
            return "argument must be between 1048576 and 536870912 inclusive";
        max_bulk = static_cast<std::size_t>(*parsed);
        return "";
    }
    if (equal_fold(name, "client-query-buffer-limit")) {
        // Not below what one read brings: a connection could not send a request.
        const auto parsed = parse_bytes(value);
        if (!parsed || *parsed < (1u << 20) || *parsed > INT64_MAX)
            return fmt::format("argument must be between {} and {} inclusive", 1u << 20, INT64_MAX);
        query_buffer_limit = static_cast<std::size_t>(*parsed);
        return "";
    }
    if (equal_fold(name, "client-output-buffer-limit")) {
        // "normal HARD SOFT SECONDS" as Redis has it, of which the hard limit counts; or bytes.
        std::string_view bytes = value;
        if (bytes.starts_with("normal ")) bytes.remove_prefix(7);
        bytes = bytes.substr(0, bytes.find(' '));
        const auto parsed = parse_bytes(bytes);
        if (!parsed || *parsed == 0) return "argument must be a memory value above 0";
        output_buffer_limit = static_cast<std::size_t>(*parsed);
        return "";
    }
    if (equal_fold(name, "slowlog-log-slower-than"))
        return set_number(slowlog_slower_than, value, -1);
    if (equal_fold(name, "slowlog-max-len")) return set_number(slowlog_max, value, 0, 1 << 20);
    if (equal_fold(name, "latency-monitor-threshold"))
        return set_number(latency_threshold, value, 0, INT64_MAX / 1000);
    if (equal_fold(name, "requirepass")) {
        if (value.empty() && has_password() && port != 0) // CONFIG SET takes it away
            for (const auto& address : bind)
                if (!address.starts_with("127.") && address != "::1")
                    return "--bind lets other machines in, which needs --requirepass";
        set_password(std::string(value));
        return "";
    }
    for (const auto& [known, now] : all())
        if (equal_fold(known, name)) return "can't set immutable config";
    return "unknown";
}

std::vector<std::pair<std::string, std::string>> settings::all() const {
    const std::size_t out_limit = output_buffer_limit;
    std::string addresses;
    for (const std::string& address : bind) addresses += (addresses.empty() ? "" : " ") + address;
    return {
        {"appendonly", "no"},
        {"bind", addresses},
        {"client-output-buffer-limit", fmt::format("normal {} 0 0", out_limit)},
        {"client-query-buffer-limit", std::to_string(query_buffer_limit.load())},
        {"cold", cold},
        {"cold-threads", std::to_string(cold_threads)},
        {"databases", std::to_string(keyspace::databases)},
        {"dbfilename", snapshot},
        {"dir", directory},
        {"hints", hints},
        {"io-threads", std::to_string(threads)},
        {"latency-monitor-threshold", std::to_string(latency_threshold.load())},
        {"maxclients", std::to_string(max_clients.load())},
        {"maxmemory", std::to_string(maxmemory.load())},
        {"maxmemory-policy", std::string(name_of(policy_of_eviction))},
        {"memory", memory},
        {"metrics-port", std::to_string(metrics_port)},
        {"policy", policy},
        {"port", std::to_string(port)},
        {"proto-max-bulk-len", std::to_string(max_bulk.load())},
        {"protocol", protocol},
        {"requirepass", password()},
        {"save", ""},
        {"slowlog-log-slower-than", std::to_string(slowlog_slower_than.load())},
        {"slowlog-max-len", std::to_string(slowlog_max.load())},
        {"timeout", std::to_string(timeout_seconds.load())},
        {"unixsocket", unix_socket},
        {"window", fmt::format("{}", window_seconds)},
    };
}

void parse_command_line(int argc, char** argv, settings& into) {
    CLI::App app{"A cache server for Redis clients whose cold data lies on a disk.", "crestdb"};
    app.set_version_flag("--version", std::string("crestdb ") + obase::version());
    app.get_help_ptr()->configurable(false);
    app.get_option("--version")->configurable(false);
    std::string config;
    app.add_option("--config", config, "read these options from a file: one 'name = value' a line")
        ->configurable(false);
    app.option_defaults()->always_capture_default();

    std::vector<std::pair<CLI::Option*, std::function<std::string()>>> later;
    std::deque<std::string> texts;
    const auto changeable = [&](const std::string& name, const std::string& built_in,
                                const std::string& help) {
        std::string& text = texts.emplace_back(built_in);
        CLI::Option* option = app.add_option("--" + name, text, help);
        later.emplace_back(option, [&into, &text, name] {
            const std::string why = into.set(name, text);
            const bool is_secret = name == "requirepass";
            return why.empty() || is_secret ? why : fmt::format("'{}': {}", text, why);
        });
    };
    const auto one_of = [](const std::string& expected) {
        return CLI::Validator(
            [expected](std::string& value) {
                for (const std::string& known : CLI::detail::split(expected, ' '))
                    if (value == known) return std::string();
                return fmt::format("expected one of {}, not '{}'", expected, value);
            },
            "");
    };
    // A value that obase's option `name` understands.
    const auto understood = [](const char* name) {
        return CLI::Validator(
            [name](std::string& value) {
                obase::options scratch;
                const std::string why = scratch.set(name, value);
                return why.substr(why.starts_with(std::string(name) + ": ") ? std::strlen(name) + 2
                                                                            : 0);
            },
            "");
    };

    app.add_option("--bind", into.bind, "addresses to listen on")->delimiter(',');
    app.add_option("--port", into.port, "TCP port; 0: no TCP")->check(CLI::Range(0, 65535));
    app.add_option("--unixsocket", into.unix_socket, "path of a Unix socket to listen on");
    std::string socket_mode = "700";
    app.add_option("--unixsocketperm", socket_mode, "mode of the Unix socket, octal");
    app.add_option("--threads", into.threads,
                   "threads that serve clients; 0: one for two processors")
        ->check(CLI::Range(0, 256));
    app.add_option("--tcp-backlog", into.backlog, "connections that may wait to be accepted");
    app.add_option("--metrics-port", into.metrics_port,
                   "port of the Prometheus endpoint on 127.0.0.1; 0: none")
        ->check(CLI::Range(0, 65535));
    app.add_option(
           "--memory", into.memory,
           "DRAM that the process may take: none, cgroup (.9 of the control group's limit), "
           "bytes (4G) or a percentage (40%); with --hints pageout what is over it leaves")
        ->check(understood("memory"));
    app.add_option("--cold", into.cold, "where cold data lies: anon (memory) or file:DIR")
        ->check(understood("cold_backing"));
    app.add_option(
           "--hints", into.hints,
           "what the kernel is told about cold data: none, cold, pageout (it leaves memory)")
        ->check(one_of("none cold pageout"));
    app.add_option("--cold-threads", into.cold_threads,
                   "threads that read what has left memory, with --hints pageout, where no I/O "
                   "thread begins the read itself")
        ->check(CLI::Range(1, 256));
    app.add_option("--protocol", into.protocol,
                   "how objects move: arming, atc, or none (they do not)")
        ->check(one_of("arming atc none"));
    app.add_option("--policy", into.policy, "which objects are cold: papers or graded")
        ->check(understood("policy"));
    app.add_option("--mode", into.mode,
                   "off, observe, move or hint; by default hint with --hints, else move")
        ->check(understood("mode"));
    app.add_option("--window", into.window_seconds, "seconds between two looks at what is used")
        ->check(CLI::Range(1e-3, 1e6));
    app.add_option("--dir", into.directory, "where the snapshot lies");
    app.add_option("--dbfilename", into.snapshot, "name of the snapshot");
    app.add_flag("--load,!--no-load", into.load_snapshot, "read the snapshot at the start");
    app.add_flag("--save-at-shutdown,!--no-save-at-shutdown", into.save_at_shutdown,
                 "write the snapshot when the server is stopped");
    app.add_option("--pidfile", into.pid_file, "file for the number of the process");
    app.add_option("--logfile", into.log_file, "file for messages; standard error without");
    changeable(
        "maxmemory", "0",
        "bytes of all data, in DRAM or not (4gb), beyond which keys are evicted; 0: no limit");
    changeable(
        "maxmemory-policy", "noeviction",
        "what is evicted: noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, "
        "volatile-lfu, volatile-random, volatile-ttl");
    changeable("maxclients", "10000", "connections at a time");
    changeable("timeout", "0", "seconds after which an idle client is closed; 0: never");
    changeable("requirepass", "", "password that clients must give");
    changeable("proto-max-bulk-len", "512mb", "largest argument");
    changeable("client-query-buffer-limit", "1gb", "most that is kept of one client's requests");
    changeable("client-output-buffer-limit", "1gb", "most that is kept of replies to one client");
    changeable("slowlog-log-slower-than", "10000",
               "microseconds from which SLOWLOG keeps a command");
    changeable("slowlog-max-len", "128", "how many it keeps");
    changeable("latency-monitor-threshold", "0", "milliseconds from which LATENCY keeps a command");

    const auto refuse = [](const std::string& why) {
        fmt::print(stderr, "crestdb: {}\n", why);
        std::exit(2);
    };
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) std::exit(app.exit(error)); // --help, --version
        refuse(fmt::format("{} (crestdb --help has all options)", error.what()));
    }
    option_places places;
    if (!config.empty())
        if (const std::string why = read_config_file(config, app, places); !why.empty())
            refuse(why);
    // "crestdb.conf:3: --port", or the option alone where the command line has set it.
    const auto named = [&](const CLI::Option* option) {
        const auto place = places.find(option);
        return (place == places.end() ? "" : place->second + ": ") + option->get_name();
    };
    for (const auto& [option, apply] : later)
        if (const std::string why = apply(); !why.empty())
            refuse(fmt::format("{}: {}", named(option), why));
    char* end = nullptr;
    into.unix_socket_mode = static_cast<unsigned>(std::strtoul(socket_mode.c_str(), &end, 8));
    if (socket_mode.empty() || *end != 0 || into.unix_socket_mode > 0777)
        refuse(fmt::format("{}: expected an octal mode such as 700, not '{}'",
                           named(app.get_option("--unixsocketperm")), socket_mode));
    if (into.snapshot.find('/') != std::string::npos || into.snapshot.empty())
        refuse(fmt::format("{}: expected the name of a file in --dir, not '{}'",
                           named(app.get_option("--dbfilename")), into.snapshot));
}

} // namespace crestdb::server
