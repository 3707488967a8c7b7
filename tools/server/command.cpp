// SPDX-License-Identifier: MIT
#include "tools/server/command.hpp"

#include "tools/server/cold_rows.hpp"
#include "tools/server/server_bench.hpp"

#include <memory>

namespace obase::tools {

store_bench add_server(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "server", "crestdb beside redis-server and memcached, over Unix sockets, interleaved");
    auto s = std::make_shared<server_bench_settings>();
    command->add_option("--systems", s->systems, "repeatable, or with commas")
        ->check(CLI::IsMember(server_systems()))
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--clients", s->clients, "connections")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--threads", s->threads, "of crestdb and memcached, that serve clients")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    command->add_option("--pipeline", s->pipelines, "requests that a client sends at a time")
        ->check(CLI::Range(1, 1000))
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--records", s->records, "keys")
        ->check(CLI::Range(1, 100'000'000))
        ->capture_default_str();
    command->add_option("--requests", s->requests, "requests of one repetition of a cell")
        ->check(CLI::Range(1, 1'000'000'000))
        ->capture_default_str();
    command->add_option("--value-bytes", s->value_bytes, "size of the values")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command->add_option("--server-options", s->crestdb_options,
                        "more options of crestdb, in every row; one in quotes, with blanks");
    command
        ->add_option("--rows", s->row,
                     "speed; memory: data of several times the memory; cold: hot requests beside "
                     "cold ones; moving: while objects move")
        ->check(CLI::IsMember({"speed", "memory", "cold", "moving"}))
        ->capture_default_str();
    command->add_option("--memory", s->memory_mib, "MiB of each server, with --rows memory or cold")
        ->check(CLI::Range(8, 1'000'000))
        ->capture_default_str();
    command->add_option("--data-times", s->data_times, "data by memory")
        ->check(CLI::Range(1.0, 100.0))
        ->capture_default_str();
    command->add_option("--loads", s->loads, "with --rows memory; repeatable, or with commas")
        ->check(CLI::IsMember({"loop", "ycsb", "zipfian"}))
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--directory", s->directory, "where cold files and swap lie")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    command->add_option("--warm-ups", s->warm_ups, "turns that are not measured")
        ->capture_default_str();
    command->add_option("--policy", s->policy, "crestdb's, with rows other than speed")
        ->check(CLI::IsMember({"papers", "graded"}));
    command->add_option("--window", s->window_seconds, "crestdb's, with rows other than speed")
        ->check(CLI::Range(.01, 1e6))
        ->capture_default_str();
    return {command, [s](bool quick, std::size_t pairs) {
                server_bench_settings settings = *s;
                settings.pairs = pairs;
                if (quick) {
                    settings.records = std::min<std::uint64_t>(settings.records, 2000);
                    settings.requests = std::min<std::uint64_t>(settings.requests, 4000);
                }
                if (settings.row == "memory") return bench_server_memory(settings);
                if (settings.row == "cold") return bench_server_cold(settings);
                if (settings.row == "moving") return bench_server_moving(settings);
                return bench_server(settings);
            }};
}

} // namespace obase::tools
