// SPDX-License-Identifier: MIT
#include "tools/mrc/command.hpp"

#include "tools/bench/command_line.hpp"
#include "tools/mrc/mrc.hpp"
#include "tools/ycsb/store_options.hpp"

#include "crestdb/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace obase::tools {
namespace {

void refuse_options_of_other_loads(const CLI::App& command, const std::string& load) {
    for (const auto& [option, of] :
         {std::pair{"--theta", "zipf"}, {"--hot-data", "hotspot"}, {"--hot-accesses", "hotspot"}})
        if (command.count(option) != 0 && load != of)
            throw std::invalid_argument(
                fmt::format("{}: only with --load {}; found --load {}", option, of, load));
}

} // namespace

store_bench add_mrc(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "mrc", "miss-ratio curves of a store's objects and of its pages, and how much larger the "
               "pages are (inflation), for each layout; without options the target table's cases");
    auto s = std::make_shared<mrc_settings>();
    command->add_option("--load", s->load, "which records are read")
        ->check(CLI::IsMember({"zipf", "hotspot", "uniform", "trace"}))
        ->capture_default_str();
    command->add_option("--theta", s->theta, "zipf: its exponent")->capture_default_str();
    command->add_option("--hot-data", s->hot_data, "hotspot: share of the records")
        ->capture_default_str();
    command->add_option("--hot-accesses", s->hot_accesses, "hotspot: share of the accesses")
        ->capture_default_str();
    command->add_option("--trace", s->trace,
                        "trace: a recorded run (docs/workloads.md has the formats)");
    add_record_options(*command, *s);
    add_index_options(*command, *s);
    command->add_option("--layout", s->layouts, "repeatable, or with commas; all unless given")
        ->check(CLI::IsMember(mrc_layouts()))
        ->delimiter(',');
    command
        ->add_option("--accesses-per-object", s->accesses_per_object,
                     "how long each layout had to learn; repeatable, or with commas")
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--window-accesses", s->window_accesses, "reads per record in a window")
        ->capture_default_str();
    command->add_option("--page-bytes", s->page_bytes, "repeatable, or with commas")
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--lru-requests", s->lru_requests, "for the curves of LRU; 0: none")
        ->check(not_negative)
        ->capture_default_str();
    return {command, [command, s](bool quick, std::size_t) {
                if (!any_given(*command)) return measure_mrc_targets(quick);
                refuse_options_of_other_loads(*command, s->load);
                if (quick) s->records = std::min<std::uint64_t>(s->records, 20'000);
                return measure_mrc(*s);
            }};
}

} // namespace obase::tools
