// SPDX-License-Identifier: MIT
#include "tools/kv/command.hpp"

#include "tools/bench/command_line.hpp"
#include "tools/bench/result_file.hpp"
#include "tools/kv/kv.hpp"
#include "tools/ycsb/store_options.hpp"

#include "crestdb/store.hpp"
#include "policy/policies.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace obase::tools {

store_bench add_kv(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "kv", "a load that shifts, grows, churns or was measured elsewhere, at a given rate: "
              "memory, faults and hits, window by window");
    auto s = std::make_shared<kv_settings>();
    ycsb_settings& store = s->store;
    store.records = 100'000;
    command
        ->add_option("--workload", s->workload,
                     "NAME[:PARAMETER=VALUE,...]: A to F, uniform, zipf, hot, cachelib, mixgraph, "
                     "twitter or trace (docs/workloads.md)")
        ->capture_default_str();
    add_record_options(*command, store);
    add_index_options(*command, store);
    command
        ->add_option("--rate", s->rate,
                     "operations per second of all clients; 0: as fast as they can")
        ->check(not_negative)
        ->capture_default_str();
    command->add_option("--seconds", s->seconds, "of traffic; a recording is played to its end")
        ->capture_default_str();
    std::vector<std::string> policies;
    policy::policies().each([&](const char* name) { policies.emplace_back(name); });
    command->add_option("--policy", s->policy, "which decides where objects live")
        ->check(CLI::IsMember(policies));
    command->add_option("--protocol", store.protocol, "none: plain pointers")
        ->check(CLI::IsMember(crestdb::store::protocols()))
        ->capture_default_str();
    command->add_option("--hints", store.hints, "what the kernel is told")
        ->check(CLI::IsMember({"off", "cold", "pageout"}))
        ->capture_default_str();
    command->add_option("--cold", store.cold, "where COLD lies: anon, or file:DIRECTORY")
        ->capture_default_str();
    command
        ->add_option("--window", store.window_s, "seconds between two scans, before --time-scale")
        ->capture_default_str();
    command->add_option("--time-scale", store.time_scale, "divides every time constant")
        ->capture_default_str();
    command->add_option("--record", s->record, "also write the operations to FILE")
        ->type_name("FILE");
    command
        ->add_option("--replay", s->replay,
                     "play the operations of FILE; records and clients are those of the recording")
        ->type_name("FILE")
        ->excludes("--workload", "--records", "--key-size", "--value-size", "--seed", "--threads",
                   "--seconds");
    return {command, [command, s](bool quick, std::size_t) {
                const auto json_path = command->get_option("--json")->as<std::string>();
                if (same_file(json_path, s->record))
                    throw std::invalid_argument("--json " + json_path +
                                                ": expected another file than --record's");
                if (same_file(json_path, s->replay))
                    throw std::invalid_argument("--json " + json_path +
                                                ": expected another file than --replay's");
                if (quick) {
                    s->store.records = std::min<std::uint64_t>(s->store.records, 20'000);
                    s->seconds = std::min(s->seconds, 1.5);
                    s->store.time_scale = 600;
                    if (s->rate == 0) s->rate = 20'000;
                }
                return bench_kv(*s);
            }};
}

} // namespace obase::tools
