// SPDX-License-Identifier: MIT
#include "tools/handles/command.hpp"

#include "tools/handles/handles_bench.hpp"

#include <memory>

namespace obase::tools {

void add_script_options(CLI::App& command, script_settings& settings) {
    command
        .add_option("--source", settings.source,
                    "obase's source folder, whose scripts fetch and build programs of others; that "
                    "which this was built from, unless given")
        ->check(CLI::ExistingDirectory);
    command.add_option(
        "--directory", settings.directory,
        "where they are fetched and built; obase/handles in the user's cache, unless given");
}

store_bench add_handles(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "handles", "programs compiled with --handles beside clang -O3's: time, instructions, text, "
                   "compile time; needs obase-clang, python3, for instructions valgrind, and for "
                   "sqlite tclsh");
    auto s = std::make_shared<handles_settings>();
    command
        ->add_option("--program", s->programs,
                     "a program, or a group of them: own, lua, sqlite, sqlite64, embench, gapbs, "
                     "npb; repeatable, or with commas; all unless given")
        ->check(CLI::IsMember(handles_programs()))
        ->delimiter(',');
    add_script_options(*command, s->scripts);
    return {command, [s](bool quick, std::size_t pairs) {
                handles_settings settings = *s;
                settings.quick = quick;
                settings.pairs = pairs;
                return bench_handles(settings);
            }};
}

} // namespace obase::tools
