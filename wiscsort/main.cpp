// SPDX-License-Identifier: MIT
//
// The program wiscsort. Exit status: 0 done; 1 it failed, or `check` found records out of order; 2 the
// command line was not understood.
#include "wiscsort/bench/bench.hpp"
#include "wiscsort/bench/check.hpp"
#include "wiscsort/bench/gen.hpp"
#include "wiscsort/device/output.hpp"
#include "wiscsort/device/probe.hpp"
#include "wiscsort/report_json.hpp"
#include "wiscsort/units.hpp"
#include "wiscsort/wiscsort.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <sstream>

namespace wiscsort {

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

void print(const std::string& text, std::FILE* to) {
    if (std::fwrite(text.data(), 1, text.size(), to) != text.size() || std::fflush(to) != 0)
        fail("standard output: cannot be written: {}", describe_errno(errno));
}

// What the user sees while it works. Nothing depends on it: a terminal that is gone ends no sort.
void show(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stderr) == text.size()) std::fflush(stderr);
}

// Names of files and directories need not be UTF-8; JSON must.
std::string json_text(const nlohmann::json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A file that appears whole or not at all, as sorted data does. Made before the work that it tells of: where it cannot
// be, nothing is done.
class text_file {
  public:
    explicit text_file(const std::string& name) : file_(name, false) {}
    void write(const std::string& text) {
        file_.write(0, text.data(), text.size());
        file_.publish(text.size(), false);
    }

  private:
    device::output_file file_;
};

// Also by other names, and of files that are not there yet.
bool same_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    if (a == "-" || b == "-") return a == b;
    std::error_code ignored;
    if (fs::exists(a, ignored))
        return fs::is_regular_file(a, ignored) && fs::equivalent(a, b, ignored); // not of /dev/null
    const fs::path one = fs::weakly_canonical(a, ignored), other = fs::weakly_canonical(b, ignored);
    return !one.empty() && one == other;
}

// A whole number, without a sign.
template <class Number>
CLI::Option* add_count(CLI::App& command, const std::string& names, Number& value,
                       const std::string& what, std::uint64_t least, std::uint64_t most) {
    const std::string name = names.substr(names.rfind(',') + 1);
    return command
        .add_option_function<std::string>(
            names,
            [=, &value](const std::string& text) {
                const std::uint64_t count = parse_count(text, name);
                if (count < least || count > most)
                    refuse("{} {}: expected {} to {}", name, count, least, most);
                value = static_cast<Number>(count);
            },
            what)
        ->take_last()
        ->type_name("COUNT");
}

struct record_arguments {
    std::string format = "lines";
    std::vector<std::string> ranges, fields;
    bool numeric = false, reverse = false, stable = false, zero = false;
    std::optional<std::string>
        separator; // an option that is given is never taken for one that is not

    void add(CLI::App& command) {
        const auto one_each = [](CLI::Option* option) {
            option->type_size(1)->allow_extra_args(false)->group("Records and keys");
        };
        command.add_option("--format", format, "fixed:N, lines (the default), or prefixed:u32le")
            ->group("Records and keys");
        one_each(command.add_option("--key", ranges,
                                    "OFFSET:LENGTH, in bytes of a record; several make one key. "
                                    "Without it the whole record "
                                    "is the key. Lines that end early have shorter keys"));
        one_each(command.add_option("-k,--field-key", fields,
                                    "F[.C][bnr][,F[.C][bnr]], of lines: as sort(1)"));
        command
            .add_option("-t,--field-separator", separator, "one character between fields of lines")
            ->group("Records and keys");
        command.add_flag("-n,--numeric-sort", numeric, "lines: compare decimal numbers")
            ->group("Records and keys");
        command.add_flag("-r,--reverse", reverse, "largest key first; equal keys as they came")
            ->group("Records and keys");
        command
            .add_flag("-s,--stable", stable,
                      "lines with -k or -n: equal keys as they came, no comparison of whole lines")
            ->group("Records and keys");
        command.add_flag("-z,--zero-terminated", zero, "lines end with NUL")
            ->group("Records and keys");
    }
    record_format parsed_format() const {
        record_format parsed = record_format::parse(format);
        if (zero && parsed.kind != record_format::kinds::lines) refuse("-z is for --format lines");
        if (zero) parsed.terminator = '\0';
        return parsed;
    }
    key_spec::options parsed_keys() const {
        key_spec::options keys;
        keys.ranges = ranges;
        keys.fields = fields;
        keys.numeric = numeric;
        keys.reverse = reverse;
        keys.stable = stable;
        if (separator) {
            if (*separator == "\\0")
                keys.separator = '\0';
            else if (*separator == "\\t")
                keys.separator = '\t';
            else if (separator->size() == 1)
                keys.separator = separator->front();
            else
                refuse("-t: '{}' is not one character", *separator);
        }
        return keys;
    }
};

class progress_line {
  public:
    void operator()(const char* phase, double share) {
        const auto now = std::chrono::steady_clock::now();
        if (now - shown_ < std::chrono::milliseconds(100)) return;
        shown_ = now;
        show(fmt::format("\r\033[Kwiscsort: {} {:.0f} %", phase, 100 * share));
        visible_ = true;
    }
    ~progress_line() {
        if (visible_) show("\r\033[K");
    }

  private:
    std::chrono::steady_clock::time_point shown_{};
    bool visible_ = false;
};

struct sort_arguments {
    record_arguments records;
    std::vector<std::string> inputs, temp;
    std::string output = "-", plan = "auto", io = "auto";
    std::optional<std::string> memory, threads, json, profile;
    bool unique = false, explain = false, no_sync = false, uncontrolled = false;

    CLI::App* add(CLI::App& app) {
        CLI::App* command = app.add_subcommand(
            "sort", "Sorts records; stable; the output appears complete or not at all");
        records.add(*command);
        command->add_option("inputs", inputs, "files, or - for the standard input (the default)");
        command->add_option("-o,--output", output,
                            "the output, which may be an input; - (the default): standard output");
        command->add_flag("-u,--unique", unique, "of records with equal keys, only the first")
            ->group("Records and keys");
        command->add_option("--memory", memory,
                            "for all buffers, as 512M; default: half of what is available here and "
                            "in this control group. The process takes at most 24M more");
        command->add_option("--threads", threads, "default: one per processor");
        command
            ->add_option("--temp", temp,
                         "a directory for runs, several are used in turn; default: that of the "
                         "output, or $TMPDIR, or /tmp")
            ->type_size(1)
            ->allow_extra_args(false);
        command->add_option("--plan", plan, "auto, onepass, mergepass or ems")
            ->check(CLI::IsMember({"auto", "onepass", "mergepass", "ems"}));
        command
            ->add_option("--io", io,
                         "mmap: inputs are mapped; read: they are read; direct: large transfers "
                         "bypass the page cache; auto")
            ->check(CLI::IsMember({"auto", "mmap", "read", "direct"}));
        command->add_option(
            "--profile", profile,
            "the device's BRAID profile: a file that `probe` wrote, or one of pmem, "
            "bd, brd, bard, ad");
        command->add_flag("--explain", explain,
                          "say on standard error what each plan would cost, and why one is taken");
        command->add_option("--json", json, "write what was done, and how long it took, to a file");
        command->add_flag("--no-sync", no_sync, "do not wait until the output is on the device");
        command->add_flag("--uncontrolled", uncontrolled,
                          "all threads for every operation, reads and writes as they come (for "
                          "comparisons)");
        command->footer(
            "Examples:\n"
            "  wiscsort sort --format fixed:100 --key 0:10 --memory 1G -o sorted.dat in.dat\n"
            "  wiscsort sort -t : -k 3,3n /etc/passwd\n"
            "  zcat logs.gz | wiscsort sort -u -o names -\n\n"
            "Lines are ordered as by LC_ALL=C sort. A last line without newline gets one.\n"
            "Until the end the output has no name: when wiscsort is killed nothing is left, or, "
            "in\n"
            "the moment before the last step, .OUT.wiscsort-new, which the next run removes.");
        return command;
    }

    sort_options options() const {
        sort_options o;
        o.format = records.parsed_format();
        o.keys = records.parsed_keys();
        o.unique = unique;
        if (memory) {
            o.memory = parse_bytes(*memory, "--memory");
            if (o.memory == 0) refuse("--memory 0: too small; at least 1.00 MiB are needed");
        }
        if (threads) {
            const std::uint64_t count = parse_count(*threads, "--threads");
            if (count < 1 || count > 1024) refuse("--threads {}: expected 1 to 1024", count);
            o.threads = static_cast<unsigned>(count);
        }
        for (const std::string& directory : temp)
            if (directory.empty()) refuse("--temp: '' is no directory");
        o.temp = temp;
        using model::io_choice;
        using model::plan_choice;
        o.plan = plan == "onepass"     ? plan_choice::onepass
                 : plan == "mergepass" ? plan_choice::mergepass
                 : plan == "ems"       ? plan_choice::ems
                                       : plan_choice::automatic;
        o.io = io == "mmap"     ? io_choice::mmap
               : io == "read"   ? io_choice::read
               : io == "direct" ? io_choice::direct
                                : io_choice::automatic;
        o.sync = !no_sync;
        o.controlled = !uncontrolled;
        if (profile) o.profile = model::find_profile(*profile);
        return o;
    }

    int run() {
        sort_options o = options();
        progress_line line;
        if (::isatty(STDERR_FILENO) == 1)
            o.progress = [&line](const char* phase, double share) { line(phase, share); };
        if (inputs.empty()) inputs = {"-"};
        std::optional<text_file> report_file;
        if (json) {
            for (const std::string& input : inputs)
                if (same_file(*json, input)) refuse("--json: '{}' is an input, too", *json);
            if (same_file(*json, output)) refuse("--json: '{}' is the output, too", *json);
            report_file.emplace(*json);
        }
        const sort_report report = sort(inputs, output, o);
        if (explain) print(report.plan.why.substr(report.plan.why.find('\n') + 1), stderr);
        if (report_file) report_file->write(json_text(to_json(report), 2));
        return 0;
    }
};

struct check_arguments {
    record_arguments records;
    std::vector<std::string> inputs;
    bool unique = false, as_json = false;

    CLI::App* add(CLI::App& app) {
        CLI::App* command = app.add_subcommand(
            "check", "Counts records, checks their order, sums their CRC-32 as gensort does");
        records.add(*command);
        command->add_option("inputs", inputs, "files, or - for the standard input (the default)");
        command->add_flag("-u,--unique", unique, "equal keys are out of order, too");
        command->add_flag("--json", as_json, "print JSON");
        command->footer("Exit status: 0 in order, 1 not in order or unreadable, 2 usage.");
        return command;
    }
    int run() const {
        key_spec::options keys = records.parsed_keys();
        keys.unique = unique;
        const bench::checked c = bench::check(
            inputs.empty() ? std::vector<std::string>{"-"} : inputs, records.parsed_format(), keys);
        const bool good = c.sorted && (!unique || c.duplicates == 0);
        if (as_json) {
            nlohmann::json json{
                {"records", c.records},       {"bytes", c.bytes},
                {"duplicates", c.duplicates}, {"sorted", c.sorted},
                {"checksum", c.checksum()},   {"sequence", fmt::format("{:x}", c.sequence)}};
            if (!c.sorted) {
                // Equal keys were not side by side.
                json["duplicates"] = nullptr;
                json["first_unsorted"] = {{"record", c.first_unsorted}, {"place", c.place}};
            }
            // A file's name may be no UTF-8.
            print(json_text(json, 2), stdout);
        } else {
            print(fmt::format("records: {}\nchecksum: {}\n", c.records, c.checksum()), stdout);
            if (c.sorted) print(fmt::format("duplicate keys: {}\n", c.duplicates), stdout);
            print(c.sorted ? "in order\n"
                           : fmt::format("not in order: record {} ({}) is before the one in front "
                                         "of it\n",
                                         c.first_unsorted, c.place),
                  stdout);
        }
        return good ? 0 : exit_failure;
    }
};

struct gen_arguments {
    bench::gen_settings settings;
    std::string output = "-", records;

    CLI::App* add(CLI::App& app) {
        CLI::App* command =
            app.add_subcommand("gen", "Makes records: those of gensort, and others");
        command->add_option("records", records, "how many")->required();
        command->add_option("-o,--output", output, "the output; - (the default): standard output");
        add_count(*command, "-b,--first", settings.first, "number of the first record", 0,
                  UINT64_MAX);
        command->add_flag("-a,--ascii", settings.ascii, "printable records that end in CR LF");
        command->add_flag("-s,--skewed", settings.skewed,
                          "keys of a million, the n-th with a probability of about 1/n");
        add_count(*command, "--key-bytes", settings.key_bytes, "default: 10", 1, 64 * MiB);
        add_count(*command, "--value-bytes", settings.value_bytes, "default: 90", 0, 64 * MiB);
        return command;
    }
    int run() {
        settings.records = parse_count(records, "records");
        bench::generate(output, settings);
        return 0;
    }
};

struct probe_arguments {
    std::string directory, file_size = "256M";
    std::optional<std::string> output;
    device::probe_settings settings;

    CLI::App* add(CLI::App& app) {
        CLI::App* command = app.add_subcommand(
            "probe",
            "Measures the BRAID properties of a directory's device; prints a profile as JSON");
        command->add_option("directory", directory, "where to measure")->required();
        command->add_option("--file-size", file_size, "of the file that is read and written: 256M");
        command->add_option("--seconds", settings.seconds, "of each of some twenty measurements")
            ->check(CLI::Range(.01, 60.0));
        add_count(*command, "--threads", settings.most_threads, "try up to as many: 8", 1, 256);
        command->add_option("-o,--output", output, "write the profile to a file");
        command->footer("Use it by: wiscsort sort --profile FILE ...");
        return command;
    }
    int run() {
        settings.file_bytes = parse_bytes(file_size, "--file-size") / MiB * MiB;
        if (settings.file_bytes < MiB) refuse("--file-size: at least 1M is needed");
        // No range has a NaN outside.
        if (std::isnan(settings.seconds)) refuse("--seconds: expected .01 to 60");
        std::optional<text_file> file;
        if (output) file.emplace(*output);
        const std::string text = json_text(model::to_json(device::probe(directory, settings)), 2);
        if (file)
            file->write(text);
        else
            print(text, stdout);
        return 0;
    }
};

struct bench_arguments {
    bench::bench_settings settings;
    std::string memory = "8G", small_memory = "512M", cgroup = "110M", cgroup_memory = "50M";
    std::optional<std::string> json;
    bool only_real = false, only_emulated = false;

    CLI::App* add(CLI::App& app) {
        CLI::App* command = app.add_subcommand(
            "bench",
            "Strategies on emulated devices, and here beside GNU sort, DuckDB, Polars and STXXL");
        command->add_option("--json", json, "write all cells, ratios and claims to a file");
        command->add_option("--dir", settings.directory, "for the data; default: here");
        add_count(*command, "--records", settings.records, "here: 1000000", 1, UINT64_MAX);
        add_count(*command, "--value-bytes", settings.value_bytes, "behind 10 of key, here: 90", 1,
                  MiB);
        command->add_flag("--skewed", settings.skewed, "many equal keys, here");
        command
            ->add_option("--state", settings.states,
                         "cached, uncached or cgroup, here; several: all")
            ->check(CLI::IsMember({"cached", "uncached", "cgroup"}));
        command->add_option("--only", settings.only,
                            "here, only systems and strategies whose name contains TEXT; several");
        command->add_option("--shape", settings.shapes,
                            "emulated: only these, as 'pmem 10:90', and no claims; several");
        command->add_option("--cgroup", cgroup, "limit of the control group: 110M");
        command->add_option("--cgroup-memory", cgroup_memory, "--memory in it: 50M");
        add_count(*command, "--repeats", settings.repeats,
                  "rounds, in each of which everyone runs: 5", 1, 1000);
        add_count(*command, "--threads", settings.threads, "here: 2", 1, 1024);
        command->add_option("--memory", memory, "8G");
        command->add_option("--small-memory", small_memory, "512M");
        add_count(*command, "--emulated-bytes", settings.emulated_bytes,
                  "of the input on emulated devices: 40000000", 1000000, 10000000000);
        command->add_option("--python", settings.python, "an interpreter with duckdb and polars")
            ->envname("WISCSORT_PYTHON");
        command->add_flag("--real", only_real, "only here");
        command->add_flag("--emulated", only_emulated, "only emulated devices");
        return command;
    }
    int run() {
        const auto size = [](const std::string& text, const char* option) {
            const std::uint64_t bytes = parse_bytes(text, option);
            if (bytes < MiB) refuse("{} {}: at least 1M is needed", option, text);
            return bytes;
        };
        settings.memory = size(memory, "--memory");
        settings.small_memory = size(small_memory, "--small-memory");
        settings.cgroup_bytes = size(cgroup, "--cgroup");
        settings.cgroup_memory = size(cgroup_memory, "--cgroup-memory");
        settings.real = !only_emulated || only_real;
        settings.emulated = !only_real || only_emulated;
        settings.program = "/proc/self/exe";
        char path[4096];
        const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
        if (length > 0) settings.program.assign(path, static_cast<std::size_t>(length));
        if (::isatty(STDERR_FILENO) == 1)
            settings.say = [](const std::string& what) { show(what + "\n"); };
        std::optional<text_file> file;
        if (json) file.emplace(*json);
        const nlohmann::json result = bench::run_bench(settings);
        if (file) file->write(json_text(result, 1));
        print(bench::bench_text(result), stdout);
        return 0;
    }
};

int run_program(int argc, char** argv) {
    CLI::App app("Sorts files of records in the way that fits the device.", "wiscsort");
    app.require_subcommand(1);
    app.set_version_flag("--version", "wiscsort " WISCSORT_VERSION);
    app.footer("Exit status: 0 done, 1 failure (one message says which file, where, and what was\n"
               "expected; the output is untouched), 2 usage. docs/wiscsort.md has the rest.");
    sort_arguments sorting;
    check_arguments checking;
    gen_arguments generating;
    probe_arguments probing;
    bench_arguments benching;
    CLI::App* const sort_command = sorting.add(app);
    CLI::App* const check_command = checking.add(app);
    CLI::App* const gen_command = generating.add(app);
    CLI::App* const probe_command = probing.add(app);
    CLI::App* const bench_command = benching.add(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        // Help or the version. CLI11 does not say whether it could be written.
        std::ostringstream text;
        app.exit(asked, text, text);
        print(text.str(), stdout);
        return 0;
    } catch (const CLI::ParseError& problem) {
        // CLI11 says that a command is missing, not what came instead.
        if (argc > 1 && app.get_subcommands().empty() && argv[1][0] != '-')
            refuse("'{}' is no command; expected sort, check, gen, probe or bench", argv[1]);
        refuse("{}; 'wiscsort --help' has the command line", problem.what());
    }
    if (sort_command->parsed()) return sorting.run();
    if (check_command->parsed()) return checking.run();
    if (gen_command->parsed()) return generating.run();
    if (probe_command->parsed()) return probing.run();
    if (bench_command->parsed()) return benching.run();
    return exit_usage;
}

} // namespace

} // namespace wiscsort

int main(int argc, char** argv) {
    // A limit on file sizes is an error like others, not a signal.
    std::signal(SIGXFSZ, SIG_IGN);
    wiscsort::guard_against_cut_files("wiscsort");
    try {
        return wiscsort::run_program(argc, argv);
    } catch (const wiscsort::usage_error& problem) {
        // fmt::print would throw where stderr cannot be written.
        std::fputs(fmt::format("wiscsort: {}\n", problem.what()).c_str(), stderr);
        return wiscsort::exit_usage;
    } catch (const std::bad_alloc&) {
        std::fputs("wiscsort: out of memory; the output is untouched\n", stderr);
    } catch (const std::exception& problem) {
        std::fputs(fmt::format("wiscsort: {}\n", problem.what()).c_str(), stderr);
    }
    return wiscsort::exit_failure;
}
