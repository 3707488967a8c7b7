// SPDX-License-Identifier: MIT
#include "tools/index/command.hpp"

#include "tools/index/index_bench.hpp"

#include "crestdb/store.hpp"

namespace obase::tools {

store_bench add_index(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "index",
        "the indexes as sets, as the literature measures them: operations per second, what "
        "guides add, and whether that grows with threads");
    auto s = std::make_shared<index_bench_settings>();
    const auto several = [](CLI::Option* option) { return option->delimiter(','); };
    several(
        command->add_option("--index", s->indexes, "repeatable, or with commas; all unless given")
            ->check(CLI::IsMember(crestdb::store::indexes())));
    several(command
                ->add_option("--protocol", s->protocols,
                             "repeatable; all unless given. none: plain "
                             "pointers, which the others are compared with")
                ->check(CLI::IsMember(crestdb::store::protocols())));
    several(command
                ->add_option("--key-kind", s->key_kinds,
                             "integer: 8 bytes, most significant first; string: 30 bytes; both "
                             "unless given")
                ->check(CLI::IsMember({"integer", "string"})));
    several(command->add_option("--threads", s->threads, "how many send operations; repeatable")
                ->check(CLI::Range(1, 256))
                ->capture_default_str());
    several(command
                ->add_option("--updates", s->updates,
                             "percent of the operations, half insertions and half removals; "
                             "repeatable")
                ->check(CLI::Range(0, 100))
                ->capture_default_str());
    command->add_option("--keys", s->keys, "in the set, out of a range of twice as many")
        ->check([](const std::string& text) {
            // CLI11 reads -5 as an unsigned number, a large one.
            return text.starts_with('-') ? "'" + text + "' is negative" : std::string();
        })
        ->capture_default_str();
    command
        ->add_option("--duration", s->duration_s, "seconds of a cell, in as many slices as --pairs")
        ->capture_default_str();
    return {command, [s](bool quick, std::size_t pairs) {
                s->pairs = pairs;
                if (quick) {
                    s->keys = 20'000;
                    s->duration_s = 0.02;
                }
                return bench_index(*s);
            }};
}

} // namespace obase::tools
