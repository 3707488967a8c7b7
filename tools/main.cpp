// SPDX-License-Identifier: MIT
//
// The `obase` command: benchmarks, the options in force, and what cannot work on this machine.
//
// Exit status: 0 done; 1 it failed, or self-check found something; 2 the command line or a setting
// was not understood; 77 this machine cannot be measured this way, and a result says why; 130
// interrupted, with a partial result written.
#include "tools/bench/bench.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/result_file.hpp"
#include "tools/fragmentation/command.hpp"
#include "tools/handles/command.hpp"
#include "tools/index/command.hpp"
#include "tools/kv/command.hpp"
#include "tools/m2t/command.hpp"
#include "tools/memory/command.hpp"
#include "tools/mrc/command.hpp"
#include "tools/server/command.hpp"
#include "tools/ycsb/command.hpp"

#include <obase/options.hpp>
#include <obase/version.hpp>

#include "backend/backends.hpp"
#include "policy/policies.hpp"
#include "runtime/self_check.hpp"
#include "runtime/why_not_freed.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace obase::tools {

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;
constexpr int exit_skipped = 77;
constexpr int exit_interrupted = 130;

using usage_error = std::invalid_argument;

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw std::runtime_error(fmt::format("cannot write to the standard output: {}",
                                             std::generic_category().message(errno)));
}

options effective_options() {
    options settings;
    std::vector<std::string> errors = settings.apply_environment(environ);
    // What the runtime would refuse, and only where it is used.
    if (policy::policies().find(settings.policy) == nullptr)
        errors.push_back("OBASE_POLICY: " + policy::policies().unknown(settings.policy));
    if (backend::backends().find(settings.backend) == nullptr)
        errors.push_back("OBASE_BACKEND: " + backend::backends().unknown(settings.backend));
    if (errors.empty()) return settings;
    std::string all;
    for (const std::string& error : errors)
        // Nothing is kept here: the command ends.
        all += (all.empty() ? "" : "\n") + error.substr(0, error.rfind("; keeping "));
    throw usage_error(all);
}

int run_options() {
    print(effective_options().text());
    return 0;
}

int run_self_check() {
    const options settings = effective_options();
    const runtime_internal::system_facts facts = runtime_internal::gather_facts(settings);
    const auto problems = runtime_internal::self_check(settings, facts);
    std::string text;
    for (const std::string& problem : problems) text += problem + "\n";
    if (problems.empty()) text = "everything that the options ask for can work here\n";
    // Not a problem of these options: they ask for no more.
    const std::string unfreed = runtime_internal::nothing_leaves_by_itself(settings, facts);
    if (!unfreed.empty()) text += unfreed + "\n";
    print(text);
    return problems.empty() ? 0 : exit_failure;
}

struct bench_arguments {
    bench_settings settings;
    std::string json_path;
};

struct named_bench {
    std::string name;
    std::function<bench_result(const bench_settings&)> run;
};

nlohmann::json finished(bench_result& result) {
    result.json["partial"] = result.partial;
    for (const figure& f : result.figures) result.json["figures"].push_back(to_json(f));
    return result.json;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    return fmt::format("{}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

// The JSON of several has one member for each.
int run_benches(const std::vector<named_bench>& benches, const bench_arguments& arguments) {
    std::unique_ptr<result_file> file;
    if (!arguments.json_path.empty()) file = std::make_unique<result_file>(arguments.json_path);
    watch_for_interrupt();
    const std::string machine = machine_line();
    nlohmann::json whole;
    std::vector<figure> figures;
    std::string failure, skipped;
    bool partial = false;
    for (const named_bench& bench : benches) {
        if (interrupted()) {
            partial = true;
            break;
        }
        bench_result result;
        try {
            result = bench.run(arguments.settings);
        } catch (const interruption&) {
            result.partial = true; // and all that there is
        }
        partial = partial || result.partial;
        if (failure.empty()) failure = result.failure;
        if (skipped.empty()) skipped = result.skipped;
        figures.insert(figures.end(), result.figures.begin(), result.figures.end());
        nlohmann::json part = finished(result);
        if (benches.size() > 1)
            whole[bench.name] = std::move(part);
        else
            whole = std::move(part);
    }
    whole["partial"] = partial;
    whole["quick"] = arguments.settings.quick;
    whole["machine"] = describe_machine();
    if (file) file->commit(whole.dump(2) + "\n");

    std::string text = today() + ", " + machine + "\n";
    if (!skipped.empty()) text += "skipped: " + skipped + "\n";
    if (arguments.settings.quick) text += "smoke size: these figures decide nothing\n";
    if (partial) text += "interrupted: partial result\n";
    print(text + "\n" + to_table(figures, !arguments.settings.quick));
    if (!failure.empty()) throw std::runtime_error(failure);
    if (!skipped.empty()) return exit_skipped;
    return partial ? exit_interrupted : 0;
}

// Adds the options that every benchmark has.
void add_common(CLI::App& bench, bench_arguments& arguments) {
    bench.add_option("--json", arguments.json_path, "also write the result to FILE, as JSON")
        ->type_name("FILE");
    bench.add_option("--pairs", arguments.settings.pairs, "interleaved repetitions of each case")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    bench.add_flag("--quick", arguments.settings.quick,
                   "a size that ends within seconds and decides nothing");
}

// obase-rewrite is a program of its own: it is made of clang, which `obase` is not linked with.
int run_rewriter(char** arguments) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("obase-rewrite").string();
    static char name[] = "obase-rewrite";
    arguments[0] = name;
    ::execv(program.c_str(), arguments);
    throw std::runtime_error(
        fmt::format("rewrite needs {}: {}; it is built where the development files of clang 19 are",
                    program, std::generic_category().message(errno)));
}

// So is obase-audit: its process, and what it begins, has no obase in it.
int run_audit(char** arguments) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("obase-audit").string();
    static char name[] = "obase-audit";
    arguments[0] = name;
    ::execv(program.c_str(), arguments);
    throw std::runtime_error(
        fmt::format("audit needs {}: {}", program, std::generic_category().message(errno)));
}

int dispatch(int argc, char** argv) {
    // Their arguments are their own.
    if (argc > 1 && std::string_view(argv[1]) == "audit") return run_audit(argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "rewrite") return run_rewriter(argv + 1);
    CLI::App app("obase: objects that move under running threads", "obase");
    app.set_version_flag("--version", fmt::format("obase {} ({})", version(), build()));
    app.require_subcommand(0, 1);
    app.set_help_all_flag("--help-all", "help of all commands");

    CLI::App& show_options = *app.add_subcommand(
        "options", "print every option of the runtime as the environment (OBASE_*) sets it");
    CLI::App& check = *app.add_subcommand(
        "self-check", "say what of the options cannot work on this machine; status 1 if anything");
    app.add_subcommand("audit", "run a command, a program's tests say, and show what outlives the "
                                "operations on its marked fields; arguments: audit --help");
    app.add_subcommand("rewrite",
                       "write a program with marked pointers (obase/marked.h) anew, for any "
                       "compiler; its arguments are those of obase-rewrite");
    CLI::App& bench = *app.add_subcommand("bench", "measure; without arguments the cases of the "
                                                   "target table of docs/benchmarks.md");
    bench.require_subcommand(0, 1);
    bench_arguments arguments;
    CLI::App& guide = *bench.add_subcommand("guide", "dereference, scope, first touch, TAG");
    CLI::App& alloc = *bench.add_subcommand("alloc", "allocation beside jemalloc and mimalloc; "
                                                     "memory overhead");
    CLI::App& move = *bench.add_subcommand("move", "moving objects, scanning slots");
    CLI::App& collector = *bench.add_subcommand("collector", "what a window costs, 20M guides");
    CLI::App& all = *bench.add_subcommand("all", "those above, one after the other");
    CLI::App& latency =
        *bench.add_subcommand("latency", "the longest operations, with the collector "
                                         "at work and at rest");
    const store_bench store_benches[] = {
        add_ycsb(bench),    add_packages(bench),    add_huge_pages(bench),
        add_compare(bench), add_index(bench),       add_kv(bench),
        add_memory(bench),  add_memory_cell(bench), add_count_operations(bench),
        add_m2t(bench),     add_server(bench),      add_fragmentation(bench),
        add_handles(bench)};
    for (CLI::App* one : {&guide, &alloc, &move, &collector, &all, &latency})
        add_common(*one, arguments);
    for (const store_bench& one : store_benches) add_common(*one.command, arguments);
    const store_bench mrc = add_mrc(app);
    add_common(*mrc.command, arguments);

    bench_settings& settings = arguments.settings;
    move.add_option("--protocol", settings.protocols, "arming, atc")
        ->check(CLI::IsMember({"arming", "atc"}))
        ->delimiter(',');
    move.add_option("--object-bytes", settings.object_bytes, "sizes of the objects")
        ->check(CLI::IsMember({16, 64, 256, 1024, 4096}))
        ->delimiter(',');
    move.add_option("--busy", settings.busy_threads, "threads that dereference meanwhile")
        ->check(CLI::Range(0, 256))
        ->delimiter(',');
    alloc.add_option("--what", settings.what, "raw, owner, slot")
        ->check(CLI::IsMember({"raw", "owner", "slot"}))
        ->delimiter(',');
    alloc.add_option("--size", settings.sizes, "bytes, or mixed")
        ->check(CLI::IsMember({"mixed"}) | CLI::Range(8, 16384))
        ->delimiter(',');
    alloc.add_option("--threads", settings.threads, "threads that allocate")
        ->check(CLI::Range(1, 256))
        ->delimiter(',');
    alloc.add_option("--pattern", settings.patterns, "immediate, lifo, replace, producer-consumer")
        ->check(CLI::IsMember({"immediate", "lifo", "replace", "producer-consumer"}))
        ->delimiter(',');
    for (CLI::App* one : {&move, &alloc})
        for (CLI::Option* option : one->get_options())
            if (option->get_delimiter() == ',')
                option->description(option->get_description() + "; repeatable, or with commas");

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        // Help or the version. CLI11 does not say whether it could be written.
        std::ostringstream text;
        app.exit(asked, text, text);
        print(text.str());
        return 0;
    } catch (const CLI::ParseError& error) {
        throw usage_error(error.what());
    }
    // What is missing is said here: CLI11 would not say what was expected, nor what came instead.
    const auto command_of = [](CLI::App& parent, const char* expected) {
        if (parent.get_subcommands().empty())
            throw usage_error(fmt::format("'{}' needs a command: {}", parent.get_name(), expected));
    };
    command_of(app, "audit, bench, mrc, options, rewrite or self-check");
    if (bench.parsed())
        command_of(bench,
                   "guide, alloc, move, collector, all, latency, ycsb, packages, huge-pages, "
                   "compare, index, kv, memory, m2t, server, fragmentation or handles");
    if (show_options.parsed()) return run_options();
    if (check.parsed()) return run_self_check();
    (void)effective_options(); // before anything is measured
    if (alloc.parsed() || all.parsed()) restart_with_room_for_allocators(argv);
    const auto run_one = [&](const store_bench& one) {
        return run_benches(
            {{one.command->get_name(),
              [&](const bench_settings& common) { return one.run(common.quick, common.pairs); }}},
            arguments);
    };
    if (mrc.command->parsed()) return run_one(mrc);
    for (const store_bench& one : store_benches)
        if (one.command->parsed()) return run_one(one);
    std::vector<named_bench> wanted;
    if (guide.parsed() || all.parsed()) wanted.push_back({"guide", bench_guide});
    if (alloc.parsed() || all.parsed()) wanted.push_back({"alloc", bench_alloc});
    if (move.parsed() || all.parsed()) wanted.push_back({"move", bench_move});
    if (collector.parsed() || all.parsed()) wanted.push_back({"collector", bench_collector});
    if (latency.parsed()) wanted.push_back({"latency", bench_latency});
    if (!wanted.empty()) return run_benches(wanted, arguments);
    return exit_usage;
}

} // namespace
} // namespace obase::tools

int main(int argc, char** argv) {
    try {
        return obase::tools::dispatch(argc, argv);
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "obase: {}\nTry 'obase --help'.\n", error.what());
        return obase::tools::exit_usage;
    } catch (const std::exception& error) {
        fmt::print(stderr, "obase: {}\n", error.what());
        return obase::tools::exit_failure;
    }
}
