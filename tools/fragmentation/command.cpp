// SPDX-License-Identifier: MIT
#include "tools/fragmentation/command.hpp"

#include "tools/bench/command_line.hpp"
#include "tools/fragmentation/fragmentation.hpp"
#include "tools/handles/command.hpp"

#include <memory>

namespace obase::tools {

store_bench add_fragmentation(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "fragmentation", "memory of a heap full of holes, beside other allocators");
    auto s = std::make_shared<fragmentation_settings>();
    command
        ->add_option(
            "--program", s->program,
            "synthetic: the load of a cache, without one; churn: a heap that is replaced for a "
            "day; redis: Redis 7.0.15, which is fetched and built")
        ->check(CLI::IsMember({"synthetic", "churn", "redis"}))
        ->capture_default_str();
    command
        ->add_option("--allocator", s->allocators,
                     "activedefrag is of redis; repeatable, or with commas; all unless given")
        ->check(CLI::IsMember(fragmentation_allocators()))
        ->delimiter(',');
    command->add_option("--at", s->seconds, "when resident memory is read, seconds after the load")
        ->check(CLI::Range(0, 3600))
        ->delimiter(',')
        ->capture_default_str();
    command
        ->add_option("--share", s->share,
                     "of a processor, what the collector of obase may take (OBASE_HANDLES_SHARE)")
        ->check(CLI::Range(.001, 1.));
    command->add_option("--hours", s->hours, "of --program churn")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command->add_option("--hour-seconds", s->hour_seconds, "that an hour is made to take")
        ->check(CLI::Range(.001, 3600.))
        ->capture_default_str();
    command->add_option("--scale", s->scale, "divides all counts")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    add_script_options(*command, s->scripts);
    return {command, [s, command](bool quick, std::size_t pairs) {
                fragmentation_settings settings = *s;
                settings.repetitions = rounds_of(*command, pairs);
                if (quick) {
                    settings.scale = std::max(settings.scale, 20U);
                    settings.seconds = {0, 1};
                    settings.hour_seconds = std::min(settings.hour_seconds, .05);
                }
                return bench_fragmentation(settings);
            }};
}

} // namespace obase::tools
