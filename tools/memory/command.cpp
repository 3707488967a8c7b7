// SPDX-License-Identifier: MIT
#include "tools/memory/command.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/command_line.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/memory/cell.hpp"
#include "tools/memory/memory.hpp"
#include "tools/memory/rows.hpp"
#include "tools/ycsb/store_options.hpp"

#include "policy/policies.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace obase::tools {
namespace {

std::vector<std::string> policies_and_plain() {
    std::vector<std::string> all{"plain"};
    policy::policies().each([&](const char* name) { all.emplace_back(name); });
    return all;
}

void add_load(CLI::App& command, memory_settings& s) {
    command.add_option("--load", s.load, "which records are asked for")
        ->check(CLI::IsMember({"zipf", "hotspot", "uniform", "loop", "buckets"}))
        ->capture_default_str();
    command.add_option("--theta", s.theta, "zipf: its exponent")->capture_default_str();
    command.add_option("--hot-data", s.hot_data, "hotspot: share of the records")
        ->capture_default_str();
    command.add_option("--hot-accesses", s.hot_accesses, "hotspot: share of the accesses")
        ->capture_default_str();
    command.add_option("--shift-every", s.shift_every,
                       "hotspot: another hot set after so many windows; 0: never");
    command.add_option("--popularity", s.popularity,
                       "buckets: a folder with a config.json of CacheLib's cachebench");
    command.add_option("--live-share", s.live_share, "loop: share of the records")
        ->capture_default_str();
    command.add_option("--update-share", s.update_share, "of the operations; the others read")
        ->capture_default_str();
    command
        .add_option("--churn-share", s.churn_share,
                    "of the operations: a record that is drawn evenly is deleted, and put again")
        ->capture_default_str();
    add_record_options(command, s);
    add_index_options(command, s);
    command
        .add_option("--rate", s.rate,
                    "operations per second of all clients; 0: as fast as they can; half the number "
                    "of records unless given")
        ->check(not_negative);
}

void add_surroundings(CLI::App& command, memory_settings& s) {
    command.add_option("--policy", s.policy, "plain: plain pointers; OBASE_POLICY unless given")
        ->check(CLI::IsMember(policies_and_plain()));
    command
        .add_option("--window", s.window_s,
                    "seconds between two scans, before --time-scale; OBASE_WINDOW_SECONDS, or 60")
        ->check(above_zero);
    command
        .add_option("--time-scale", s.time_scale,
                    "divides every time constant; OBASE_TIME_SCALE, or 60")
        ->check(above_zero);
    command
        .add_option("--hints", s.hints, "what the kernel is told; pageout unless OBASE_* says so")
        ->check(CLI::IsMember({"off", "cold", "pageout"}));
    command.add_option("--cold", s.cold,
                       "where COLD lies: anon, or file:DIRECTORY; OBASE_COLD_BACKING unless given");
    command.add_option("--set", s.set, "another option of obase, as NAME=VALUE; repeatable");
    command.add_option("--limit", s.limit,
                       "of the control group, once the store is full: bytes, or a percentage of "
                       "what it is charged for then");
    command.add_flag("--limit-first", s.limit_first,
                     "the limit is in force while the store is filled, and the collector runs; a "
                     "percentage is of the records' bytes");
    command
        .add_option(
            "--swap", s.swap,
            "of the machine: none; any: what there is; zram or file:DIRECTORY, made for as long as "
            "it is measured; status 77 where there is other swap")
        ->capture_default_str();
    command.add_option("--pageout-every", s.pageout_every,
                       "plain: the kernel is asked to page everything out once in so many windows");
    command.add_flag("--pass", s.pass, "once it has settled, every record is read once");
    command
        .add_option("--settle-windows", s.settle_windows,
                    "it ends when the used memory has not changed in so many windows")
        ->capture_default_str();
    command.add_option("--settle-share", s.settle_share, "by more than this")
        ->capture_default_str();
    command.add_option("--max-windows", s.max_windows, "or after so many")->capture_default_str();
    command.add_flag("--trace", s.trace, "print a line for each window");
}

// Of a row, a policy's cells may be chosen.
std::vector<row_cell> cells_of_row(const CLI::App& command, const std::string& name,
                                   const memory_settings& given) {
    for (const CLI::Option* option : command.get_options())
        if (const std::string other = option->get_name();
            option->count() != 0 && other != "--row" && other != "--policy" && other != "--trace" &&
            other != "--json" && other != "--quick" && other != "--pairs")
            throw std::invalid_argument("--row " + name + ": its cells have their own " + other);
    const memory_row& row = row_named(name);
    std::vector<row_cell> cells;
    std::vector<std::size_t> became(row.cells.size());
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
        const row_cell& one = row.cells[i];
        const auto is_reference = [&](const row_cell& other) {
            return other.reference == i && other.settings.policy == given.policy;
        };
        if (!given.policy.empty() && one.settings.policy != given.policy &&
            std::none_of(row.cells.begin(), row.cells.end(), is_reference))
            continue;
        became[i] = cells.size();
        cells.push_back(one);
        cells.back().settings.trace = given.trace;
        if (one.reference) cells.back().reference = became[*one.reference];
    }
    return cells;
}

} // namespace

store_bench add_memory(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "memory", "how much memory a load takes under a policy, and the faults that this costs, "
                  "beside the least with which the same share of faults is possible");
    auto s = std::make_shared<memory_settings>();
    auto row = std::make_shared<std::string>();
    auto list = std::make_shared<bool>(false);
    add_load(*command, *s);
    add_surroundings(*command, *s);
    command->add_option("--row", *row, "the cells of a row of the target table, with its targets");
    command->add_flag("--list", *list, "print the names of the rows")->excludes("--row");
    return {command, [command, s, row, list](bool quick, std::size_t pairs) {
                if (*list) {
                    for (const memory_row& one : memory_rows())
                        std::printf("%-16s %s\n", one.name.c_str(), one.about.c_str());
                    return bench_result{};
                }
                std::vector<row_cell> cells{{*s}};
                if (!row->empty()) cells = cells_of_row(*command, *row, *s);
                if (quick)
                    for (row_cell& one : cells) one.settings = smoke_size(one.settings);
                return bench_memory(cells, rounds_of(*command, pairs));
            }};
}

store_bench add_memory_cell(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand("memory-cell", "");
    command->group(""); // not shown
    auto settings = std::make_shared<std::string>();
    auto group = std::make_shared<std::string>();
    command->add_option("--settings", *settings);
    command->add_option("--group", *group);
    return {command, [settings, group](bool, std::size_t) -> bench_result {
                const auto tell = [](const nlohmann::json& line) { write_line(line.dump()); };
                try {
                    run_cell(nlohmann::json::parse(*settings).get<memory_settings>(), *group, tell);
                } catch (const interruption&) {
                    tell({{"event", "interrupted"}});
                } catch (const std::exception& error) {
                    tell({{"event", "error"}, {"what", error.what()}});
                }
                std::fflush(nullptr);
                // Without destructors: objects in the millions are the kernel's to free.
                ::_exit(0);
            }};
}

} // namespace obase::tools
