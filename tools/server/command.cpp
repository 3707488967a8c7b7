// SPDX-License-Identifier: MIT
#include "tools/server/command.hpp"

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
    command->add_option("--server-options", s->crestdb_options, "more options of crestdb");
    return {command, [s](bool quick, std::size_t pairs) {
                server_bench_settings settings = *s;
                settings.pairs = pairs;
                if (quick) {
                    settings.records = std::min<std::uint64_t>(settings.records, 2000);
                    settings.requests = std::min<std::uint64_t>(settings.requests, 4000);
                }
                return bench_server(settings);
            }};
}

} // namespace obase::tools
