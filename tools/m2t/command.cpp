// SPDX-License-Identifier: MIT
#include "tools/m2t/command.hpp"

#include "tools/bench/command_line.hpp"
#include "tools/m2t/m2t.hpp"

#include <memory>
#include <string>

namespace obase::tools {

store_bench add_m2t(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "m2t",
        "a table of long lists whose parts lie together or apart, with and without temperature");
    auto s = std::make_shared<m2t_settings>();
    const auto several = [](CLI::Option* option) { option->delimiter(','); };
    several(
        command->add_option("--layout", s->layouts, "repeatable, or with commas; all unless given")
            ->check(CLI::IsMember(m2t_layouts())));
    several(command
                ->add_option(
                    "--tier", s->tiers,
                    "dram: measured; limit: under a memory limit; model: modelled; all that can be "
                    "had unless given")
                ->check(CLI::IsMember({"dram", "limit", "model"})));
    several(command
                ->add_option("--transport", s->transports,
                             "of tier dram; memory: the table is called; tcp: it is served on "
                             "127.0.0.1 and asked by clients")
                ->check(CLI::IsMember({"memory", "tcp"}))
                ->capture_default_str());
    command->add_option("--clients", s->connections, "connections of transport tcp")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--server-threads", s->server_threads, "of the server of transport tcp")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    several(
        command
            ->add_option(
                "--hints", s->hints,
                "none, right, wrong: cells of expectations; repeatable; ratios are to none, and "
                "null without it; no, alone: no such cells")
            ->check(CLI::IsMember({"none", "right", "wrong", "no"}))
            ->capture_default_str());
    command
        ->add_option("--limit-share", s->limit_share,
                     "limit of tier limit, as a share of what malloc takes")
        ->check(CLI::Range(0.05, 1.0))
        ->capture_default_str();
    command
        ->add_option("--swap-directory", s->swap_directory,
                     "of tier limit: swap is a file there; unless given it is the machine's own, "
                     "or zram")
        ->check(CLI::ExistingDirectory);
    command->add_option("--cold", s->cold, "OBASE_COLD_BACKING of the cells of hints")
        ->capture_default_str();
    several(command->add_option("--records-per-bucket", s->per_bucket, "repeatable")
                ->check(CLI::Range(1, 1'000'000))
                ->capture_default_str());
    several(command->add_option("--workload", s->workloads, "YCSB's; repeatable")
                ->check(CLI::IsMember({"A", "B", "C", "D", "F"}))
                ->capture_default_str());
    command->add_option("--distribution", s->distribution, "the workload's own unless given")
        ->check(CLI::IsMember({"uniform", "zipfian", "latest", "hotspot", "loop"}));
    command->add_option("--theta", s->theta, "skew of Zipf's law; workload C only, unless .99")
        ->check(CLI::Range(0.01, 5.0))
        ->capture_default_str();
    command->add_option("--loop-share", s->loop_share, "of the records, that loop asks for")
        ->check(CLI::Range(0.001, 1.0))
        ->capture_default_str();
    command->add_option("--records", s->records, "that are loaded")
        ->check(CLI::Range(1'000, 200'000'000))
        ->capture_default_str();
    command->add_option("--value-bytes", s->value_bytes, "of each record")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command
        ->add_option("--operations", s->operations,
                     "of one repetition; 0: fewer where lists are long")
        ->check(not_negative)
        ->capture_default_str();
    command->add_option("--cache-bytes", s->cache_bytes, "of the modelled last-level cache")
        ->check(CLI::Range(1024, 1 << 30))
        ->capture_default_str();
    return {command, [s](bool quick, std::size_t pairs) {
                m2t_settings settings = *s;
                settings.pairs = pairs;
                if (settings.hints == std::vector<std::string>{"no"}) settings.hints.clear();
                if (quick) {
                    if (settings.tiers.empty())
                        settings.tiers = {"dram", "model"}; // no swap is made
                    settings.records = 8'000;
                    settings.operations = 4'000;
                    settings.cache_bytes = 64 << 10;
                    settings.pairs = std::min<std::size_t>(pairs, 2);
                }
                return bench_m2t(settings);
            }};
}

} // namespace obase::tools
