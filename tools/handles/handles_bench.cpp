// SPDX-License-Identifier: MIT
#include "tools/handles/handles_bench.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/handles/ratios.hpp"
#include "tools/handles/text_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;
using words_type = std::vector<std::string>;

struct group {
    std::string name; // and its script
    words_type programs;
};
const std::vector<group>& groups() {
    static const std::vector<group> all{
        {"own", {"list", "list-1m", "bst", "hash", "array", "pairs"}},
        {"sqlite", {"sqlite"}},
        {"sqlite64", {"sqlite64"}}, // in 64 GiB of address space, of which a tenth is open
        {"lua", {"lua-calls", "lua-trees", "lua-strings", "lua-sort", "lua-floats"}},
        // From folders that are given.
        {"embench",
         {"embench-aha-mont64", "embench-crc32", "embench-depthconv", "embench-edn",
          "embench-huffbench", "embench-matmult-int", "embench-md5sum", "embench-nettle-aes",
          "embench-nettle-sha256", "embench-nsichneu", "embench-picojpeg", "embench-qrduino",
          "embench-sglib-combined", "embench-slre", "embench-statemate", "embench-tarfind",
          "embench-ud", "embench-wikisort", "embench-xgboost"}},
        {"gapbs",
         {"gapbs-bc", "gapbs-bfs", "gapbs-cc", "gapbs-cc_sv", "gapbs-pr", "gapbs-pr_spmv",
          "gapbs-sssp", "gapbs-tc"}},
        {"npb", {"npb-bt", "npb-cg", "npb-ep", "npb-ft", "npb-is", "npb-lu", "npb-mg", "npb-sp"}},
    };
    return all;
}

struct manner {
    const char* linked; // which of the executables
    words_type environment;
};
const std::array<manner, ways>& manners() {
    static const std::array<manner, ways> all{{
        {"glibc", {}},
        {"same",
         {"OBASE_HANDLES=off"}}, // nothing in it may move; where a program fills space, nothing is looked at either
        {"handles", {"OBASE_HANDLES=off"}},
        {"handles", {"OBASE_HANDLES_START=1000"}},
        {"handles", {}},
        // The mover's rounds move it; the collector brings nothing home for being used.
        {"handles",
         {"OBASE_HANDLES_START=1000", "OBASE_HANDLES_USED=1", "HANDLES_BENCH_MOVE_ALL_MS=20"}},
    }};
    return all;
}

words_type words_of(const json& list) {
    words_type words;
    for (const json& word : list)
        words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
    return words;
}

// The lines that begin so.
std::string answer_in(const std::string& output, const std::string& beginning) {
    std::istringstream in(output);
    std::string answer;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(beginning)) answer += line + "\n";
    return answer;
}

finished_program run_or_throw(const words_type& words) {
    finished_program done = run_program(words);
    if (interrupted()) throw interruption("handles");
    if (done.exit_status != 0)
        throw std::runtime_error(fmt::format(
            "handles: '{}' ended with status {}:\n{}", fmt::join(words, " "), done.exit_status,
            done.output.substr(done.output.size() -
                               std::min<std::size_t>(done.output.size(), 2000))));
    return done;
}

class group_under_test {
  public:
    group_under_test(const group& which, const handles_settings& settings)
        : group_(which), settings_(settings),
          described_(describe_programs(settings.scripts, which.name)),
          figures_(folder_of(settings.scripts, which.name) + "/figures.json") {}

    const std::string& skipped() const noexcept { return described_.skipped; }

    // Compiles each unit by both in turns, and links.
    void build() {
        const json& builds = described_.json.at("builds");
        // What the compilers read is in memory, and what is measured is longer than a unit.
        const std::size_t repetitions =
            settings_.quick ? 1 : std::clamp<std::size_t>(settings_.pairs / 2, 1, 7);
        for (std::size_t i = 0; i < repetitions; ++i) {
            double plain = 0, handles = 0;
            for (std::size_t unit = 0; unit < builds.at("plain").at("compile").size(); ++unit) {
                tell(fmt::format("{}: compiling, {} of {}", group_.name, i + 1, repetitions));
                const auto compile = [&](const char* with) {
                    return run_or_throw(words_of(builds.at(with).at("compile").at(unit)))
                        .cpu_seconds;
                };
                // Each is first in half of them.
                if ((unit + i) % 2 == 0) plain += compile("plain");
                handles += compile("handles");
                if ((unit + i) % 2 != 0) plain += compile("plain");
            }
            compile_time_ratios_.push_back(handles / plain);
        }
        for (const json& link : described_.json.at("links")) run_or_throw(words_of(link));
        const auto text = [&](const char* with) {
            std::uint64_t sum = 0;
            for (const std::string& object : words_of(builds.at(with).at("objects")))
                sum += text_bytes(object);
            return static_cast<double>(sum);
        };
        text_ratio_ = text("handles") / text("plain");
    }

    // With fewer pairs than asked for when interrupted.
    measured_program measure(const std::string& name) {
        measured_program p;
        p.name = name;
        p.group = group_.name;
        p.text_ratio = text_ratio_;
        p.compile_time_ratios = compile_time_ratios_;
        p.times.ns.resize(ways);
        const json& asked = program(name);
        const std::string answer = asked.at("answer");
        try {
            for (const json& check : asked.at("checks")) {
                tell(fmt::format("{}: {}", name, fmt::join(words_of(check), " ")));
                const std::string wanted =
                    answer_in(run(asked, way::glibc, words_of(check)).output, answer);
                for (const state s : {state::home, state::policy, state::away})
                    compare(p, s, wanted,
                            answer_in(run(asked, way_of(s), words_of(check)).output, answer));
            }
            const json& counted = asked.at("count");
            const bool counts = !counted.is_null();
            if (counts) p.instructions_ratio = instructions_ratio(asked, words_of(counted));
            time(asked, p, words_of(settings_.quick && counts ? counted : asked.at("time")),
                 answer);
        } catch (const interruption&) { // with what there is
        }
        return p;
    }

  private:
    const json& program(const std::string& name) const {
        for (const json& p : described_.json.at("programs"))
            if (p.at("name") == name) return p;
        throw std::runtime_error(
            fmt::format("handles: the description of {} has no '{}'", group_.name, name));
    }

    // Its own executable, or the one of all programs of the description.
    std::string linked(const json& program, way w) const {
        const json& all = program.contains("linked") ? program : described_.json;
        return all.at("linked").at(manners()[static_cast<std::size_t>(w)].linked);
    }

    words_type command(const json& program, way w, const words_type& arguments,
                       const std::string& figures) const {
        words_type words{linked(program, w)};
        words.insert(words.end(), arguments.begin(), arguments.end());
        words_type environment = manners()[static_cast<std::size_t>(w)].environment;
        if (program.contains("environment"))
            for (std::string& its : words_of(program.at("environment")))
                environment.push_back(std::move(its));
        if (!figures.empty()) environment.push_back("HANDLES_BENCH_FIGURES=" + figures);
        return clean_command(environment, words);
    }
    finished_program run(const json& program, way w, const words_type& arguments) const {
        return run_or_throw(command(program, w, arguments, ""));
    }

    static void compare(measured_program& p, state s, const std::string& wanted,
                        const std::string& got) {
        if (wanted.empty()) return;
        measured_state& r = p.results[static_cast<std::size_t>(s)];
        ++r.tests;
        if (got == wanted) ++r.tests_passed;
    }

    // 0 without valgrind.
    double instructions_ratio(const json& program, const words_type& arguments) const {
        const std::string name = program.at("name");
        tell(fmt::format("{}: counting instructions", name));
        double counted[2] = {};
        for (const way w : {way::same, way::home}) {
            words_type words{"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"};
            const words_type counted_one = command(program, w, arguments, "");
            // env is not counted.
            const auto begin =
                std::find(counted_one.begin(), counted_one.end(), linked(program, w));
            words.insert(words.end(), begin, counted_one.end());
            words.insert(words.begin(), counted_one.begin(), begin);
            const finished_program done = run_program(words);
            if (interrupted()) throw interruption(name);
            constexpr std::string_view before = "Collected : ";
            const std::size_t found = done.output.find(before);
            if (done.exit_status != 0 || found == std::string::npos) return 0;
            const char* const digits = done.output.data() + found + before.size();
            std::from_chars(digits, done.output.data() + done.output.size(),
                            counted[w == way::home]);
        }
        return counted[0] > 0 ? counted[1] / counted[0] : 0;
    }

    void time(const json& program, measured_program& p, const words_type& arguments,
              const std::string& answer) const {
        const std::string wanted =
            answer_in(run(program, way::glibc, arguments).output, answer); // files are read
        for (std::size_t pair = 0; pair < settings_.pairs; ++pair) {
            std::array<double, ways> spent{};
            for (std::size_t i = 0; i < ways; ++i) {
                // Another one is first each time.
                const std::size_t which = (i + pair) % ways;
                const auto w = static_cast<way>(which);
                tell(fmt::format("{}: {} of {}", p.name, pair + 1, settings_.pairs));
                const finished_program done =
                    run_or_throw(command(program, w, arguments, figures_));
                const json figures = take_figures(figures_);
                // The thread that moves is the benchmark's own, and so is what fills the address space.
                const double run_ns = number_in(figures, "run_ns");
                spent[which] = run_ns > 0
                                   ? run_ns * 1e-9
                                   : done.cpu_seconds - number_in(figures, "mover_ns") * 1e-9;
                for (const state s : {state::home, state::policy, state::away})
                    if (way_of(s) == w) {
                        compare(p, s, wanted, answer_in(done.output, answer));
                        p.results[static_cast<std::size_t>(s)].moved =
                            static_cast<std::uint64_t>(number_in(figures, "moved"));
                    }
            }
            for (std::size_t which = 0; which < ways; ++which)
                p.times.ns[which].push_back(spent[which] * 1e9);
        }
    }
    static double number_in(const json& figures, const char* name) {
        return figures.is_object() ? figures.value(name, 0.0) : 0.0;
    }

    const group& group_;
    const handles_settings& settings_;
    described described_;
    std::string figures_;
    double text_ratio_ = 0;
    std::vector<double> compile_time_ratios_;
};

} // namespace

const words_type& handles_programs() {
    static const words_type all = [] {
        words_type names;
        for (const group& g : groups()) {
            names.insert(names.end(), g.programs.begin(), g.programs.end());
            if (std::find(names.begin(), names.end(), g.name) == names.end())
                names.push_back(g.name);
        }
        return names;
    }();
    return all;
}

bench_result bench_handles(const handles_settings& settings) {
    const auto wanted = [&](const group& g, const std::string& name) {
        return settings.programs.empty() ||
               std::any_of(
                   settings.programs.begin(), settings.programs.end(),
                   [&](const std::string& asked) { return asked == name || asked == g.name; });
    };
    std::vector<measured_program> programs;
    json left_out = json::object();
    bool partial = false;
    for (const group& g : groups()) {
        if (std::none_of(g.programs.begin(), g.programs.end(),
                         [&](const std::string& name) { return wanted(g, name); }))
            continue;
        try {
            group_under_test under_test(g, settings);
            if (!under_test.skipped().empty()) {
                left_out[g.name] = under_test.skipped();
                fmt::print(stderr, "obase: bench handles: {} is left out: {}\n", g.name,
                           under_test.skipped());
                continue;
            }
            under_test.build();
            for (const std::string& name : g.programs)
                if (wanted(g, name) && !interrupted()) programs.push_back(under_test.measure(name));
        } catch (const interruption&) {
            partial = true;
            break;
        }
    }
    bench_result result = handles_result(programs);
    result.json["left_out"] = left_out;
    result.partial = partial || interrupted();
    if (programs.empty() && !left_out.empty())
        result.skipped = left_out.begin()->get<std::string>();
    return result;
}

} // namespace obase::tools
