// SPDX-License-Identifier: MIT
#include "tools/ycsb/command.hpp"

#include "tools/bench/command_line.hpp"
#include "tools/ycsb/huge_pages.hpp"
#include "tools/ycsb/store_options.hpp"
#include "tools/ycsb/ycsb.hpp"

#include "crestdb/store.hpp"

#include <stdexcept>
#include <vector>

namespace obase::tools {
namespace {

void add_records(CLI::App& command, ycsb_settings& s) {
    add_record_options(command, s);
    command.add_flag("--in-place", s.in_place,
                     "updates write into the value instead of making a "
                     "new one");
    command
        .add_option("--distribution", s.distribution,
                    "of the requests; the workload's own (zipfian, D: latest) unless given")
        ->check(CLI::IsMember({"zipfian", "loop", "hotspot", "uniform", "latest"}));
    command
        .add_option("--live-share", s.live_share,
                    "loop: share of the records that the sequence asks for")
        ->capture_default_str();
}

void add_session(CLI::App& command, ycsb_settings& s) {
    add_index_options(command, s);
    command.add_option("--protocol", s.protocol, "none: plain pointers")
        ->check(CLI::IsMember(crestdb::store::protocols()))
        ->capture_default_str();
    command
        .add_option("--duration", s.duration_s,
                    "seconds of traffic, of which the second half counts as converged")
        ->capture_default_str();
    command.add_option("--mode", s.mode, "of obase; hint if --hints is given, else move")
        ->check(CLI::IsMember({"off", "observe", "move", "hint"}));
    command.add_option("--window", s.window_s, "seconds between two scans, before --time-scale")
        ->capture_default_str();
    command
        .add_option("--time-scale", s.time_scale,
                    "divides every time constant: the window and the minute of the promotion rate")
        ->capture_default_str();
    command.add_option("--hints", s.hints, "what the kernel is told")
        ->check(CLI::IsMember({"off", "cold", "pageout"}))
        ->capture_default_str();
    command.add_option("--cold", s.cold, "where COLD lies: anon, or file:DIRECTORY")
        ->capture_default_str();
    command
        .add_option("--reclaim", s.reclaim,
                    "with --protocol none: pageout has the kernel page everything out once, before "
                    "the half of the traffic that counts; status 77 where no swap can be had")
        ->check(CLI::IsMember({"off", "pageout"}))
        ->capture_default_str();
    command.add_flag("--beside-kernel", s.beside_kernel,
                     "then the same load on plain pointers under the kernel's reclaim, as with "
                     "--protocol none --reclaim pageout");
    command.add_flag("--huge-pages", s.huge_pages, "HOT asks for huge pages");
    command.add_flag_callback(
        "--no-baseline", [&s] { s.baseline = false; },
        "do not measure the page utilization of plain pointers beside it");
}

} // namespace

store_bench add_ycsb(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "ycsb", "a key-value workload on one store: throughput, page utilization, used memory; "
                "without options the cases of the target table");
    auto s = std::make_shared<ycsb_settings>();
    command->add_option("--workload", s->workload, "YCSB's core workload")
        ->check(CLI::IsMember({"A", "B", "C", "D", "E", "F"}))
        ->capture_default_str();
    add_records(*command, *s);
    command->add_option("--trace", s->trace,
                        "replay recorded operations (op,keyid,keylen,vallen as CSV, also .zst, "
                        ".xz, .gz) instead of a workload");
    add_session(*command, *s);
    return {command, [command, s](bool quick, std::size_t) {
                return any_given(*command) ? bench_ycsb(*s) : bench_ycsb_targets("/var/tmp", quick);
            }};
}

store_bench add_packages(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "packages", "the Debian package index in a store, read by walking the dependencies of the "
                    "packages installed here");
    auto s = std::make_shared<ycsb_settings>();
    s->packages = true;
    command->add_option("--packages", s->package_file,
                        "a file of what `apt-cache dumpavail` prints; that command is run unless "
                        "given");
    add_session(*command, *s);
    return {command, [s](bool, std::size_t) { return bench_ycsb(*s); }};
}

store_bench add_huge_pages(CLI::App& bench) {
    CLI::App* command =
        bench.add_subcommand("huge-pages", "HOT in huge pages against none and against huge pages "
                                           "for all heaps: throughput and memory");
    auto s = std::make_shared<ycsb_settings>();
    s->distribution = "loop";
    command->add_option("--index", s->index, "the index")
        ->check(CLI::IsMember(crestdb::store::indexes()))
        ->capture_default_str();
    command->add_option("--workload", s->workload, "YCSB's core workload")
        ->check(CLI::IsMember({"A", "B", "C", "D", "F"}))
        ->capture_default_str();
    command->add_option("--threads", s->threads, "clients")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    add_records(*command, *s);
    return {command, [s](bool quick, std::size_t pairs) {
                if (quick) s->records = 20'000;
                return bench_huge_pages(*s, pairs, quick ? 0.05 : 1);
            }};
}

store_bench add_compare(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "compare", "throughput, latency and instructions of guides beside plain pointers");
    auto s = std::make_shared<compare_settings>();
    command->add_option("--index", s->indexes, "repeatable, or with commas; all unless given")
        ->check(CLI::IsMember(crestdb::store::indexes()))
        ->delimiter(',');
    command->add_option("--workload", s->workloads, "repeatable; A, B and C unless given")
        ->check(CLI::IsMember({"A", "B", "C", "D", "E", "F"}))
        ->delimiter(',');
    command->add_option("--protocol", s->protocols, "repeatable; arming and atc unless given")
        ->check(CLI::IsMember({"arming", "atc"}))
        ->delimiter(',');
    command->add_option("--threads", s->load.threads, "clients")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    add_records(*command, s->load);
    command
        ->add_option("--hints", s->load.hints,
                     "what the kernel is told; a window then stands for 120 s")
        ->check(CLI::IsMember({"off", "cold", "pageout"}))
        ->capture_default_str();
    command->add_option("--cold", s->load.cold, "where COLD lies: anon, or file:DIRECTORY")
        ->capture_default_str();
    command->add_option("--slice", s->slice_s, "seconds of a turn")
        ->check(above_zero)
        ->capture_default_str();
    command->add_option("--window", s->window_s, "seconds of a store's own traffic per window")
        ->check(above_zero)
        ->capture_default_str();
    command->add_flag_callback(
        "--no-instructions", [&on = s->instructions] { on = false; }, "do not count instructions");
    command->add_flag_callback(
        "--no-moving", [&on = s->moving] { on = false; },
        "do not measure while the first load moves (a minute or more per cell)");
    return {command, [s](bool quick, std::size_t pairs) {
                s->pairs = pairs;
                s->quick = quick;
                if (quick) {
                    s->load.records = 20'000;
                    s->slice_s = 0.05;
                    s->window_s = 0.2;
                    s->instructions = false;
                }
                return bench_compare(*s);
            }};
}

store_bench add_count_operations(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand("count-operations", "");
    command->group(""); // not shown
    auto s = std::make_shared<ycsb_settings>();
    command->add_option("--index", s->index)->check(CLI::IsMember(crestdb::store::indexes()));
    command->add_option("--workload", s->workload);
    command->add_option("--protocol", s->protocol)
        ->check(CLI::IsMember(crestdb::store::protocols()));
    command->add_option("--key-size", s->key_size);
    command->add_option("--value-size", s->value_size);
    return {command, [s](bool, std::size_t) {
                count_operations(*s);
                return bench_result{};
            }};
}

} // namespace obase::tools
