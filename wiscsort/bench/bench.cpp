// SPDX-License-Identifier: MIT
#include "wiscsort/bench/bench.hpp"

#include "wiscsort/bench/check.hpp"
#include "wiscsort/bench/gen.hpp"
#include "wiscsort/device/cgroup.hpp"
#include "wiscsort/device/child.hpp"
#include "wiscsort/device/emulated.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"
#include "wiscsort/wiscsort.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace wiscsort::bench {

namespace {

using model::plan_choice;
using nlohmann::json;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// 0: of a peer that takes no limit.
std::string memory_text(std::uint64_t bytes) { return bytes == 0 ? "no limit" : bytes_text(bytes); }

// Of the median, by order statistics: below six values all of them.
json interval(std::vector<double> values) {
    if (values.empty()) return json::array({0, 0});
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    const double half = 1.96 * std::sqrt(n) / 2;
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)));
    const auto high = static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
    return json::array({values[low], values[high]});
}

// What the records of a file are, whatever their order.
struct expected {
    std::uint64_t records = 0;
    std::string checksum;
};

bool is_right(const std::string& output, const record_format& format, const key_spec::options& keys,
              const expected& input, std::uint64_t* sequence) {
    const checked c = check({output}, format, keys);
    if (sequence != nullptr) *sequence = c.sequence;
    return c.sorted && c.records == input.records && c.checksum() == input.checksum;
}

class benches {
  public:
    explicit benches(const bench_settings& settings) : s_(settings) {
        folder_ = s_.directory + "/wiscsort-bench-" + std::to_string(::getpid());
        std::error_code problem;
        std::filesystem::create_directory(folder_, problem);
        if (problem) fail("--dir: {}: cannot be made: {}", folder_, problem.message());
        result_ = {{"cells", json::array()},
                   {"ratios", json::array()},
                   {"planner", json::array()},
                   {"claims", json::array()},
                   {"skipped", json::array()}};
    }
    ~benches() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    benches(const benches&) = delete;
    benches& operator=(const benches&) = delete;

    json run() {
        if (s_.emulated) emulated();
        if (s_.real) real();
        if (s_.real && !anyone_)
            refuse("--only: no system and strategy has any of '{}' in its name",
                   fmt::join(s_.only, "', '"));
        return std::move(result_);
    }

  private:
    void say(const std::string& what) const {
        if (s_.say) s_.say(what);
    }

    // ---- emulated devices

    // Bytes of keys and values.
    static constexpr std::pair<unsigned, unsigned> shapes[] = {
        {10, 10}, {10, 40}, {10, 90}, {10, 990}, {10, 4086}};

    struct variant {
        const char* name;
        plan_choice plan;
        bool controlled;
        bool roomy; // memory for all keys
    };

    void emulated() {
        for (const std::string& shape : s_.shapes)
            if (std::none_of(model::shipped_profiles().begin(), model::shipped_profiles().end(),
                             [&](const model::profile& p) {
                                 return std::any_of(
                                     std::begin(shapes), std::end(shapes), [&](const auto& kv) {
                                         return shape == shape_name(p.name, kv.first, kv.second);
                                     });
                             }))
                refuse("--shape: '{}' is unknown; expected a device and the bytes of keys and "
                       "values, as 'pmem 10:90'",
                       shape);
        for (const auto& [key_bytes, value_bytes] : shapes) {
            const std::uint64_t size = key_bytes + value_bytes;
            const auto wanted = [&](const std::string& device) {
                return s_.shapes.empty() ||
                       std::find(s_.shapes.begin(), s_.shapes.end(),
                                 shape_name(device, key_bytes, value_bytes)) != s_.shapes.end();
            };
            if (std::none_of(model::shipped_profiles().begin(), model::shipped_profiles().end(),
                             [&](const model::profile& p) { return wanted(p.name); }))
                continue;
            gen_settings g;
            g.records = s_.emulated_bytes / size;
            g.key_bytes = key_bytes;
            g.value_bytes = value_bytes;
            const std::string input = folder_ + "/emulated";
            generate(input, g);
            const record_format format = record_format::parse(fmt::format("fixed:{}", size));
            const expected in{g.records, check({input}, format, {}).checksum()};
            for (const model::profile& profile : model::shipped_profiles())
                if (wanted(profile.name))
                    emulated_shape(profile, input, format, in, key_bytes, value_bytes);
            if (s_.shapes.empty() && key_bytes == 10 && value_bytes == 90) skewed(format);
        }
        if (s_.shapes.empty()) paper_claims();
    }

    // The shape's virtual seconds by variant, which claims are made of.
    static std::string shape_name(const std::string& device, unsigned k, unsigned v) {
        return fmt::format("{} {}:{}", device, k, v);
    }

    void emulated_shape(const model::profile& profile, const std::string& input,
                        const record_format& format, const expected& in, unsigned key_bytes,
                        unsigned value_bytes) {
        const std::string shape = shape_name(profile.name, key_bytes, value_bytes);
        say("emulated " + shape);
        const unsigned threads = 20;
        const std::uint64_t bytes = in.records * (key_bytes + value_bytes);
        // Tight: EMS makes some eight runs, and keys do not fit.
        const std::uint64_t tight = std::max<std::uint64_t>(
            bytes / 8, model::least_memory(plan_choice::ems, {.largest_record = format.size}));
        const std::uint64_t roomy = in.records * 22 + bytes / 8 + 2 * MiB;
        std::map<std::string, sort_report> reports;
        for (const variant& v : {variant{"onepass", plan_choice::onepass, true, true},
                                 {"onepass uncontrolled", plan_choice::onepass, false, true},
                                 {"mergepass", plan_choice::mergepass, true, false},
                                 {"ems", plan_choice::ems, true, false},
                                 {"ems uncontrolled", plan_choice::ems, false, false}}) {
            device::emulated_device device(profile);
            sort_options o = options(format, key_bytes, v.roomy ? roomy : tight, threads);
            o.plan = v.plan;
            o.controlled = v.controlled;
            o.profile = profile;
            o.device = &device;
            const std::string output = folder_ + "/out";
            const sort_report r = wiscsort::sort({input}, output, o);
            const bool good = is_right(output, format, o.keys, in, nullptr);
            json cell = cell_of("wiscsort", v.name, profile.name, "uncached", in.records, key_bytes,
                                value_bytes, o.memory, threads);
            cell["seconds"] = r.seconds;
            cell["ci95"] = {r.seconds, r.seconds};
            cell["virtual"] = true;
            cell["phases"] = phases_of(r);
            cell["requested_read_bytes"] = r.traffic.requested_read;
            cell["requested_write_bytes"] = r.traffic.requested_write;
            cell["device_read_bytes"] = r.traffic.moved_read;
            cell["device_write_bytes"] = r.traffic.moved_write;
            cell["peak_anon_bytes"] = r.peak_buffers;
            cell["checked"] = good;
            result_["cells"].push_back(cell);
            if (!good) fail("{} {}: the output is wrong", shape, v.name);
            reports[v.name] = r;
        }
        for (const char* name : {"onepass", "mergepass"}) {
            for (const char* baseline : {"ems", "ems uncontrolled"})
                ratio(fmt::format("{} {}", shape, name), fmt::format("{} {}", shape, baseline),
                      {reports.at(name).seconds / reports.at(baseline).seconds});
        }
        ratio(shape + " ems", shape + " ems uncontrolled",
              {reports.at("ems").seconds / reports.at("ems uncontrolled").seconds});
        // What auto takes with each memory, beside the best of what is possible there.
        for (const bool has_room : {true, false}) {
            std::map<std::string, double> seconds;
            if (has_room)
                seconds["onepass"] = reports.at("onepass").seconds;
            else
                seconds = {{"mergepass", reports.at("mergepass").seconds},
                           {"ems", reports.at("ems").seconds}};
            for (const plan_choice plan :
                 {plan_choice::onepass, plan_choice::mergepass, plan_choice::ems}) {
                if (seconds.contains(model::name_of(plan))) continue;
                device::emulated_device device(profile);
                sort_options o = options(format, key_bytes, has_room ? roomy : tight, threads);
                o.plan = plan;
                o.profile = profile;
                o.device = &device;
                try {
                    seconds[model::name_of(plan)] =
                        wiscsort::sort({input}, folder_ + "/out", o).seconds;
                } catch (const usage_error&) {
                    // The memory is too small for this one.
                }
            }
            device::emulated_device device(profile);
            sort_options o = options(format, key_bytes, has_room ? roomy : tight, threads);
            o.profile = profile;
            o.device = &device;
            regret(fmt::format("{}, {}", shape, has_room ? "roomy" : "an eighth of the input"),
                   model::name_of(explain({input}, folder_ + "/out", o).plan), seconds);
        }
        seconds_[shape] = std::move(reports);
    }

    // Many equal keys, on one device: order and stability are what is checked.
    void skewed(const record_format& format) {
        gen_settings g;
        g.records = s_.emulated_bytes / 100 / 4;
        g.skewed = true;
        const std::string input = folder_ + "/skewed";
        generate(input, g);
        const expected in{g.records, check({input}, format, {}).checksum()};
        std::optional<std::uint64_t> sequence;
        for (const plan_choice plan :
             {plan_choice::onepass, plan_choice::mergepass, plan_choice::ems}) {
            const model::profile pmem = model::find_profile("pmem");
            device::emulated_device device(pmem);
            sort_options o =
                options(format, 10, plan == plan_choice::onepass ? 64 * MiB : 4 * MiB, 20);
            o.plan = plan;
            o.profile = pmem;
            o.device = &device;
            const sort_report r = wiscsort::sort({input}, folder_ + "/out", o);
            std::uint64_t now = 0;
            bool good = is_right(folder_ + "/out", format, o.keys, in, &now);
            // A stable order is the same for every strategy.
            good = good && (!sequence || *sequence == now);
            sequence = now;
            json cell = cell_of("wiscsort", std::string(model::name_of(plan)) + " skewed", "pmem",
                                "uncached", in.records, 10, 90, o.memory, 20);
            cell["seconds"] = r.seconds;
            cell["ci95"] = {r.seconds, r.seconds};
            cell["virtual"] = true;
            cell["phases"] = phases_of(r);
            cell["checked"] = good;
            result_["cells"].push_back(cell);
            if (!good) fail("skewed {}: the output is wrong or not stable", model::name_of(plan));
        }
    }

    void paper_claims() {
        const auto seconds = [&](const char* shape, const char* kind) {
            return seconds_.at(shape).at(kind).seconds;
        };
        const auto traffic = [&](const char* shape, const char* kind) {
            const device::traffic t = seconds_.at(shape).at(kind).traffic;
            return static_cast<double>(t.requested_read + t.requested_write);
        };
        const char* const pmem = "pmem 10:90";
        const auto at_least = [&](const char* what, const char* paper, double ours, double target) {
            claim(what, paper, fmt::format("{:.2f}", ours), ours >= target,
                  fmt::format(">= {}", target));
        };
        const auto at_most = [&](const char* what, const char* paper, double ours, double target) {
            claim(what, paper, fmt::format("{:.2f}", ours), ours <= target,
                  fmt::format("<= {}", target));
        };
        at_least("pmem 10:90: EMS uncontrolled / OnePass", "2-7",
                 seconds(pmem, "ems uncontrolled") / seconds(pmem, "onepass"), 2.1);
        at_least("pmem 10:90: EMS controlled / OnePass", "<= 3",
                 seconds(pmem, "ems") / seconds(pmem, "onepass"), 1.4);
        at_least("pmem 10:90: EMS controlled / MergePass", "<= 2",
                 seconds(pmem, "ems") / seconds(pmem, "mergepass"), 1.3);
        at_least("pmem 10:990: EMS controlled / OnePass", "",
                 seconds("pmem 10:990", "ems") / seconds("pmem 10:990", "onepass"), 1.75);
        at_least("pmem 10:990: EMS controlled / MergePass", "",
                 seconds("pmem 10:990", "ems") / seconds("pmem 10:990", "mergepass"), 1.7);
        at_most("pmem 10:90: EMS controlled / uncontrolled", ".74",
                seconds(pmem, "ems") / seconds(pmem, "ems uncontrolled"), .75);
        at_most("requested traffic, OnePass against EMS, change", "-.50",
                traffic(pmem, "onepass") / traffic(pmem, "ems") - 1, -.47);
        at_most("requested traffic, MergePass against EMS, change", "-.425",
                traffic(pmem, "mergepass") / traffic(pmem, "ems") - 1, -.39);
        const double small = seconds("pmem 10:10", "mergepass") / seconds("pmem 10:10", "ems");
        at_least("pmem 10:10: MergePass / EMS (MergePass loses at V:K <= 1)", "> 1", small, 1);
        at_most("pmem 10:90: MergePass / EMS (wins above 4)", "< 1",
                seconds(pmem, "mergepass") / seconds(pmem, "ems"), 1);
        for (const char* device : {"bd 10:90", "ad 10:90"})
            at_most(fmt::format("{}: EMS / the better of OnePass and MergePass", device).c_str(),
                    "< 1",
                    seconds(device, "ems") /
                        std::min(seconds(device, "onepass"), seconds(device, "mergepass")),
                    1);
    }

    void claim(const std::string& what, const std::string& paper, const std::string& ours, bool met,
               const std::string& target) {
        result_["claims"].push_back({{"claim", what},
                                     {"paper", paper},
                                     {"ours", ours},
                                     {"target", target},
                                     {"verdict", met ? "met" : "missed"}});
    }

    void regret(const std::string& cell, const std::string& chosen,
                const std::map<std::string, double>& seconds) {
        const auto best =
            std::min_element(seconds.begin(), seconds.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        const auto taken = seconds.find(chosen);
        if (taken == seconds.end()) fail("{}: {} was not measured", cell, chosen);
        const double found = taken->second / best->second;
        result_["planner"].push_back({{"cell", cell},
                                      {"chosen", chosen},
                                      {"best", best->first},
                                      {"regret", found},
                                      {"seconds", seconds}});
        regrets_.push_back(found);
    }

    void ratio(const std::string& what, const std::string& against,
               const std::vector<double>& all) {
        result_["ratios"].push_back({{"what", what},
                                     {"against", against},
                                     {"time_ratio", median(all)},
                                     {"ci95", interval(all)}});
    }

    sort_options options(const record_format& format, unsigned key_bytes, std::uint64_t memory,
                         unsigned threads) const {
        sort_options o;
        o.format = format;
        o.keys.ranges = {fmt::format("0:{}", key_bytes)};
        o.memory = memory;
        o.threads = threads;
        o.sync = false;
        o.temp = {folder_};
        return o;
    }

    static json phases_of(const sort_report& r) {
        const auto sum = [&](std::initializer_list<const char*> names) {
            double all = 0;
            for (const char* name : names)
                if (const auto found = r.phases.find(name); found != r.phases.end())
                    all += found->second;
            return all;
        };
        return {{"read", sum({"scan", "load"})},
                {"sort", sum({"sort"})},
                {"write", sum({"write", "runs"})},
                {"merge", sum({"merge"})},
                {"gather", sum({"gather"})}};
    }

    static json cell_of(const std::string& system, const std::string& strategy,
                        const std::string& device, const std::string& state, std::uint64_t records,
                        unsigned key_bytes, unsigned value_bytes, std::uint64_t memory,
                        unsigned threads) {
        return {{"system", system},
                {"strategy", strategy},
                {"device", device},
                {"state", state},
                {"records", records},
                {"key_bytes", key_bytes},
                {"value_bytes", value_bytes},
                {"memory_bytes", memory},
                {"threads", threads},
                {"seconds", 0},
                {"cpu_seconds", nullptr},
                {"sync_seconds", nullptr},
                {"ci95", {0, 0}},
                {"virtual", false},
                {"phases", json::object()},
                {"requested_read_bytes", nullptr},
                {"requested_write_bytes", nullptr},
                {"device_read_bytes", nullptr},
                {"device_write_bytes", nullptr},
                {"peak_anon_bytes", nullptr},
                {"checked", false}};
    }

    // ---- this machine

    struct contestant {
        std::string system, strategy;
        std::uint64_t memory = 0;
        unsigned threads = 1;
        std::vector<std::string> command;
        std::vector<std::string> environment;
        bool ours = false;
        std::vector<double> seconds, cpu, sync;
        device::child_result last;
        json report;
        bool ended = false;  // before it was done
        std::string failure; // of a peer: why it has no figures
        // As it is told apart from the others of a state.
        std::string name() const {
            return fmt::format("{} {}, {}, {} threads", system, strategy, memory_text(memory),
                               threads);
        }
    };

    void real() {
        gen_settings g;
        g.records = s_.records;
        g.text_lines = true;
        g.value_bytes = s_.value_bytes;
        g.skewed = s_.skewed;
        generate(input(), g);
        key_spec::options keys;
        keys.ranges = {"0:10"};
        const record_format format =
            record_format::parse(fmt::format("fixed:{}", 10 + s_.value_bytes));
        const expected in{g.records, check({input()}, format, keys).checksum()};
        for (const std::string& state : s_.states) {
            std::vector<contestant> all = state == "cgroup" ? in_cgroup() : contestants(state);
            for (unsigned repeat = 0; repeat < s_.repeats; ++repeat)
                for (contestant& c : all) {
                    if (!c.failure.empty()) continue;
                    say(fmt::format("{} {} {} {}/{}", state, c.system, c.strategy, repeat + 1,
                                    s_.repeats));
                    run_once(c, state, format, keys, in);
                    if (!c.failure.empty())
                        result_["skipped"].push_back(fmt::format("{} {}: round {} of {}: {}", state,
                                                                 c.name(), repeat + 1, s_.repeats,
                                                                 c.failure));
                }
            // What it does in some rounds only is no figure.
            std::erase_if(all, [](const contestant& c) { return !c.failure.empty(); });
            report(all, state, in);
        }
    }

    // Leaves those that --only names.
    void keep_wanted(std::vector<contestant>& all) {
        std::erase_if(all, [&](const contestant& c) {
            return !s_.only.empty() &&
                   std::none_of(s_.only.begin(), s_.only.end(), [&](const std::string& t) {
                       return (c.system + " " + c.strategy).find(t) != std::string::npos;
                   });
        });
        anyone_ = anyone_ || !all.empty();
    }

    contestant ours(const std::string& name, std::uint64_t memory, unsigned threads,
                    std::vector<std::string> more) const {
        contestant c;
        c.system = "wiscsort";
        c.strategy = name;
        c.memory = memory;
        c.threads = threads;
        c.ours = true;

        c.command = {s_.program,
                     "sort",
                     "--format",
                     fmt::format("fixed:{}", 10 + s_.value_bytes),
                     "--key",
                     "0:10",
                     "--no-sync",
                     "--memory",
                     std::to_string(memory),
                     "--threads",
                     std::to_string(threads),
                     "--json",
                     folder_ + "/report",
                     "--temp",
                     scratch(),
                     "-o",
                     output()};
        c.command.insert(c.command.end(), more.begin(), more.end());
        c.command.push_back(input());
        return c;
    }

    std::vector<contestant> contestants(const std::string& state) {
        std::vector<contestant> all;
        all.push_back(ours("auto buffered", s_.memory, s_.threads, {"--io", "mmap"}));
        all.push_back(ours("auto direct", s_.memory, s_.threads, {"--io", "direct"}));
        all.push_back(ours("auto", s_.small_memory, s_.threads, {}));
        all.push_back(ours("onepass", s_.memory, s_.threads, {"--plan", "onepass"}));
        all.push_back(ours("mergepass", s_.memory, s_.threads, {"--plan", "mergepass"}));
        all.push_back(ours("ems", s_.small_memory, s_.threads, {"--plan", "ems"}));
        all.push_back(ours("ems uncontrolled", s_.small_memory, s_.threads,
                           {"--plan", "ems", "--uncontrolled"}));
        if (state == "cached") all.push_back(ours("auto buffered", s_.memory, 1, {"--io", "mmap"}));
        add_peers(all, s_.memory, s_.small_memory);
        keep_wanted(all);
        remove_absent(all);
        return all;
    }

    // As a formatted string of Python.
    static constexpr const char* duckdb_sql =
        "COPY (SELECT l FROM read_csv({files[0]}, header=false, delim='\\x01', quote='', "
        "escape='', "
        "auto_detect=false, columns={{'l': 'VARCHAR'}}) ORDER BY substr(l, 1, 10)) TO {files[1]} "
        "(FORMAT csv, HEADER false, DELIMITER '\\x01', QUOTE '', ESCAPE '')";

    // The others; with two sizes of memory where their authors recommend much and we compare with little.
    void add_peers(std::vector<contestant>& all, std::uint64_t large, std::uint64_t small) const {
        contestant gnu;
        gnu.system = "GNU sort";
        gnu.strategy = "merge sort";
        gnu.memory = large;
        gnu.threads = s_.threads;

        gnu.command = {"sort",
                       "-s",
                       "-k1.1,1.10",
                       "-S",
                       fmt::format("{}b", large),
                       fmt::format("--parallel={}", s_.threads),
                       "-T",
                       scratch(),
                       "-o",
                       output(),
                       input()};
        gnu.environment = {"LC_ALL=C"};
        all.push_back(gnu);
        std::vector<std::uint64_t> memories = {large};
        if (small != large) memories.push_back(small);
        for (const std::uint64_t memory : memories) {
            contestant duck;
            duck.system = "DuckDB";
            duck.strategy = "ORDER BY";
            duck.memory = memory;
            duck.threads = s_.threads;

            // The files' names come as arguments: Python quotes them for SQL.
            duck.command = {
                s_.python,
                "-c",
                fmt::format("import duckdb, sys\n"
                            "files = [\"'\" + a.replace(\"'\", \"''\") + \"'\" for a in "
                            "sys.argv[1:]]\n"
                            "c = duckdb.connect()\n"
                            "c.execute('SET enable_progress_bar=false')\n"
                            "c.execute('SET threads={}')\n"
                            "c.execute(\"SET memory_limit='{}B'\")\n"
                            "c.execute('SET temp_directory=' + files[2])\n"
                            "c.execute(f\"\"\"{}\"\"\")\n",
                            s_.threads, memory, duckdb_sql),
                input(),
                output(),
                scratch()};
            all.push_back(duck);
        }
        contestant polars;
        polars.system = "Polars";
        polars.strategy = "sort";
        polars.memory = 0;
        polars.threads = s_.threads;

        polars.command = {s_.python, "-c",
                          "import polars as p, sys; d = p.read_csv(sys.argv[1], has_header=False, "
                          "separator='\\x01', quote_char=None, new_columns=['l'], "
                          "schema_overrides={'l': p.String}); d.sort(p.col('l').str.slice(0, 10), "
                          "maintain_order=True).write_csv(sys.argv[2], include_header=False, "
                          "separator='\\x01', quote_style='never')",
                          input(), output()};
        polars.environment = {fmt::format("POLARS_MAX_THREADS={}", s_.threads)};
        all.push_back(polars);
        contestant stxxl;
        stxxl.system = "STXXL";
        stxxl.strategy = "sort";
        stxxl.memory = small;
        stxxl.threads = s_.threads;
        stxxl.command = {stxxl_program(), input(), output(), std::to_string(small),
                         scratch() + "/stxxl"};
        // Its records have the size that it was compiled for, and its blocks two megabytes.
        if (s_.value_bytes == 90 && small >= 64 * MiB) all.push_back(stxxl);
    }

    // Those that are not installed are skipped, and it says what is missing.
    void remove_absent(std::vector<contestant>& all) {
        const auto absent = [&](const contestant& c) {
            if (c.ours) return false;
            std::string reason;
            const char* const module = c.system == "DuckDB"   ? "duckdb"
                                       : c.system == "Polars" ? "polars"
                                                              : nullptr;
            try {
                if (c.system == "STXXL") {
                    if (::access(c.command[0].c_str(), X_OK) != 0)
                        reason =
                            "no wiscsort-stxxl beside wiscsort (it is built where libstxxl-dev is)";
                } else if (module != nullptr &&
                           device::run_child({s_.python, "-c", std::string("import ") + module})
                                   .exit_code != 0)
                    reason = fmt::format("{} has no module {}", s_.python, module);
                else if (module == nullptr &&
                         device::run_child({"sort", "--version"}).exit_code != 0)
                    reason = "no sort(1)";
            } catch (const error& problem) {
                reason = problem.what();
            }
            if (reason.empty()) return false;
            const std::string line = fmt::format("{}: {}", c.system, reason);
            json& skipped = result_["skipped"];
            if (std::find(skipped.begin(), skipped.end(), line) == skipped.end())
                skipped.push_back(line);
            return true;
        };
        std::erase_if(all, absent);
        if (std::any_of(all.begin(), all.end(),
                        [](const contestant& c) { return c.system == "DuckDB"; }))
            result_["duckdb_sql"] = as_sql(duckdb_sql);
    }

    // What Python makes of the text, with names for the files.
    static std::string as_sql(std::string text) {
        for (const auto& [from, to] : {std::pair<std::string, std::string>{"{files[0]}", "'IN'"},
                                       {"{files[1]}", "'OUT'"},
                                       {"{{", "{"},
                                       {"}}", "}"}})
            for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;
                 at += to.size())
                text.replace(at, from.size(), to);
        return text;
    }

    // Beside this program.
    std::string stxxl_program() const {
        return std::filesystem::path(s_.program).parent_path() / "wiscsort-stxxl";
    }

    // Every plan, auto and the others in a control group that can hold the memory and little else.
    std::vector<contestant> in_cgroup() {
        std::vector<contestant> all;
        for (const char* plan : {"auto", "ems", "mergepass", "onepass"})
            all.push_back(ours(plan, s_.cgroup_memory, s_.threads, {"--plan", plan}));
        add_peers(all, s_.cgroup_memory, s_.cgroup_memory);
        keep_wanted(all);
        remove_absent(all);
        if (all.empty()) return all;
        if (!cgroup_) cgroup_.emplace(s_.cgroup_bytes);
        if (!cgroup_->problem().empty()) {
            result_["skipped"].push_back("cgroup: " + cgroup_->problem());
            return {};
        }
        for (contestant& c : all) {
            // What takes this long is no choice; GNU's timeout ends it.
            const std::vector<std::string> enter = {
                "sh", "-c", "echo $$ > \"$0\" && exec timeout 60 \"$@\"", cgroup_->processes()};
            c.command.insert(c.command.begin(), enter.begin(), enter.end());
        }
        return all;
    }

    std::string input() const { return folder_ + "/lines"; }
    std::string output() const { return folder_ + "/out"; }
    std::string scratch() const { return folder_ + "/scratch"; } // temporary data of one run

    bool output_is_right(const record_format& format, const key_spec::options& keys,
                         const expected& in) const {
        try {
            return is_right(output(), format, keys, in, nullptr);
        } catch (const error&) {
            return false; // there is none, or a torn record in it
        }
    }

    // The line of what a peer said that tells why: not its traceback, nor the advice behind it.
    static std::string reason_of(const device::child_result& ended) {
        const std::string& said = ended.output;
        for (std::size_t at = 0; at < said.size();) {
            const std::size_t end = std::min(said.find('\n', at), said.size());
            std::string line = said.substr(at, end - at);
            // Progress is written over.
            line.erase(0, line.rfind('\r') + 1);
            if (!line.empty() && line[0] != ' ' && line[0] != '\t' &&
                line.rfind("Traceback ", 0) != 0)
                return line;
            at = end + 1;
        }
        return ended.exit_code > 128 ? fmt::format("signal {}", ended.exit_code - 128)
                                     : "it said nothing";
    }

    // One run, checked. A peer that fails has a `failure` then; if we fail ourselves the bench does.
    void run_once(contestant& c, const std::string& state, const record_format& format,
                  const key_spec::options& keys, const expected& in) {
        std::filesystem::remove(output());
        // What one that was killed has left there is no burden of the next.
        std::filesystem::remove_all(scratch());
        std::filesystem::create_directory(scratch());
        prepare_cache(input(), state == "cached");
        c.last = device::run_child(c.command, c.environment);
        if (state == "cgroup" && c.last.exit_code == 124) {
            // Not done in time: the time is a bound.
            c.seconds.push_back(c.last.seconds);
            c.cpu.push_back(c.last.cpu_seconds);
            c.ended = true;
            return;
        }
        if (c.last.exit_code != 0) {
            if (c.ours)
                fail("{}: exit status {}: {}", c.name(), c.last.exit_code, reason_of(c.last));
            c.failure = fmt::format("exit status {}: {}", c.last.exit_code, reason_of(c.last));
            return;
        }
        const double sync = sync_seconds(output());
        if (!output_is_right(format, keys, in)) {
            if (c.ours) fail("{}: the output is wrong", c.name());
            c.failure = "the output is wrong";
            return;
        }
        c.seconds.push_back(c.last.seconds);
        c.cpu.push_back(c.last.cpu_seconds);
        c.sync.push_back(sync);
        if (c.ours) std::ifstream(folder_ + "/report") >> c.report;
    }

    // What it takes until the output is on the device. Nobody's time has it, and nobody writes another's output.
    static double sync_seconds(const std::string& path) {
        const auto begin = std::chrono::steady_clock::now();
        if (const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
            ::fdatasync(fd);
            ::close(fd);
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    // All of it in the page cache, or nothing.
    static void prepare_cache(const std::string& path, bool cached) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) fail("{}: {}", path, describe_errno(errno));
        if (cached) {
            std::vector<char> buffer(1 << 20);
            while (::read(fd, buffer.data(), buffer.size()) > 0) {
            }
        } else {
            ::fdatasync(fd);
            ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
        ::close(fd);
    }

    void report(std::vector<contestant>& all, const std::string& state, const expected& in) {
        for (const contestant& c : all) {
            json cell = cell_of(c.system, c.strategy, "real", state, in.records, 10, s_.value_bytes,
                                c.memory, c.threads);
            cell["skewed"] = s_.skewed;
            cell["seconds"] = median(c.seconds);
            cell["ci95"] = interval(c.seconds);
            cell["cpu_seconds"] = median(c.cpu);
            if (!c.sync.empty()) cell["sync_seconds"] = median(c.sync);
            cell["device_read_bytes"] = c.last.read_bytes;
            cell["device_write_bytes"] = c.last.written_bytes;
            cell["checked"] = !c.ended;
            if (c.ended) cell["ended"] = true;
            if (c.ours && !c.report.is_null()) {
                cell["requested_read_bytes"] = c.report["requested_read_bytes"];
                cell["requested_write_bytes"] = c.report["requested_write_bytes"];
                cell["peak_anon_bytes"] = c.report["peak_buffer_bytes"];
                cell["chosen"] = c.report["strategy"];
                const json& p = c.report["phases"];
                const auto at = [&](const char* name) { return p.value(name, 0.0); };
                cell["phases"] = {{"read", at("scan") + at("load")},
                                  {"sort", at("sort")},
                                  {"write", at("write") + at("runs")},
                                  {"merge", at("merge")},
                                  {"gather", at("gather")}};
            }
            result_["cells"].push_back(cell);
        }
        const auto find = [&](const std::string& system, const std::string& strategy,
                              std::uint64_t memory, unsigned threads) -> const contestant* {
            for (const contestant& c : all)
                if (c.system == system && c.strategy == strategy && c.memory == memory &&
                    c.threads == threads)
                    return &c;
            return nullptr;
        };
        // Pairs of one round, so that what else the machine does is in both.
        const auto compare = [&](const contestant* a, const contestant* b, double target) {
            if (a == nullptr || b == nullptr) return;
            std::vector<double> ratios;
            for (std::size_t i = 0; i < a->seconds.size(); ++i)
                ratios.push_back(a->seconds[i] / b->seconds[i]);
            const auto name = [&](const contestant& c) { return state + " " + c.name(); };
            ratio(name(*a), name(*b), ratios);
            if (target > 0)
                claim(fmt::format("{} / {}", name(*a), name(*b)), "",
                      fmt::format("{:.2f}", median(ratios)), median(ratios) <= target,
                      fmt::format("<= {}", target));
        };
        const contestant* buffered = find("wiscsort", "auto buffered", s_.memory, s_.threads);
        const contestant* direct = find("wiscsort", "auto direct", s_.memory, s_.threads);
        const contestant* small = find("wiscsort", "auto", s_.small_memory, s_.threads);
        const contestant* duck = find("DuckDB", "ORDER BY", s_.memory, s_.threads);
        // The targets are for records of 100 bytes with uniform keys.
        const bool targets = s_.value_bytes == 90 && !s_.skewed;
        const auto target = [&](double most, const char* of = "cached") {
            return targets && state == of ? most : 0;
        };
        compare(buffered, duck, target(.40));
        compare(direct, duck, target(.35));
        compare(small, find("DuckDB", "ORDER BY", s_.small_memory, s_.threads), target(.25));
        compare(buffered, find("GNU sort", "merge sort", s_.memory, s_.threads), target(.15));
        compare(buffered, find("Polars", "sort", 0, s_.threads), 0);
        compare(small, find("STXXL", "sort", s_.small_memory, s_.threads), 0);
        compare(buffered, find("wiscsort", "auto buffered", s_.memory, 1),
                s_.threads == 2 ? target(.75) : 0);
        const contestant* squeezed = find("wiscsort", "auto", s_.cgroup_memory, s_.threads);
        if (state == "cgroup") {
            compare(squeezed, find("wiscsort", "ems", s_.cgroup_memory, s_.threads),
                    target(1.1, "cgroup"));
            compare(squeezed, find("GNU sort", "merge sort", s_.cgroup_memory, s_.threads), 0);
            compare(squeezed, find("DuckDB", "ORDER BY", s_.cgroup_memory, s_.threads), 0);
        }
        compare(find("wiscsort", "ems", s_.small_memory, s_.threads),
                find("wiscsort", "ems uncontrolled", s_.small_memory, s_.threads), 0);
        std::map<std::string, double> seconds;
        for (const char* plan : {"onepass", "mergepass"})
            if (const contestant* c = find("wiscsort", plan, s_.memory, s_.threads))
                seconds[plan] = median(c->seconds);
        if (const contestant* c = find("wiscsort", "ems", s_.small_memory, s_.threads))
            seconds["ems"] = median(c->seconds);
        const std::string cell = fmt::format("real 10:{}{}, {} records, {}", s_.value_bytes,
                                             s_.skewed ? " skewed" : "", in.records, state);
        if (state == "cgroup") {
            seconds.clear();
            for (const char* plan : {"onepass", "mergepass", "ems"})
                if (const contestant* c = find("wiscsort", plan, s_.cgroup_memory, s_.threads))
                    seconds[plan] = median(c->seconds);
            if (squeezed != nullptr && !squeezed->report.is_null())
                real_regret(cell, squeezed->report.value("strategy", ""), seconds);
        } else if (buffered != nullptr) {
            real_regret(cell, buffered->report.value("strategy", ""), seconds);
        }
    }

    // Where --only left out the one that was chosen there is nothing to compare.
    void real_regret(const std::string& cell, const std::string& chosen,
                     const std::map<std::string, double>& seconds) {
        if (seconds.contains(chosen) && seconds.size() > 1) regret(cell, chosen, seconds);
    }

    bench_settings s_;
    std::string folder_;
    std::optional<device::memory_cgroup> cgroup_;
    json result_;
    bool anyone_ = false; // has something to do here
    std::vector<double> regrets_;
    std::map<std::string, std::map<std::string, sort_report>> seconds_;
};

} // namespace

json run_bench(const bench_settings& settings) { return benches(settings).run(); }

std::string bench_text(const json& result) {
    std::string text;
    for (const json& cell : result["cells"])
        if (!cell["virtual"].get<bool>())
            text += fmt::format(
                "{:<9} {:<16} {:<9} {:>10} {:>2} threads {:8.3f} s [{:.3f}, {:.3f}]{}\n",
                cell["system"].get<std::string>(), cell["strategy"].get<std::string>(),
                cell["state"].get<std::string>(),
                memory_text(cell["memory_bytes"].get<std::uint64_t>()),
                cell["threads"].get<unsigned>(), cell["seconds"].get<double>(),
                cell["ci95"][0].get<double>(), cell["ci95"][1].get<double>(),
                cell["sync_seconds"].is_null()
                    ? ""
                    : fmt::format(" and {:.3f} s of sync", cell["sync_seconds"].get<double>()));
    if (result.contains("duckdb_sql"))
        text += "DuckDB: " + result["duckdb_sql"].get<std::string>() + "\n";
    for (const json& skipped : result["skipped"])
        text += "skipped: " + skipped.get<std::string>() + "\n";
    for (const json& claim : result["claims"])
        text += fmt::format("{:<6} {} = {} (target {}{})\n", claim["verdict"].get<std::string>(),
                            claim["claim"].get<std::string>(), claim["ours"].get<std::string>(),
                            claim["target"].get<std::string>(),
                            claim["paper"].get<std::string>().empty()
                                ? ""
                                : ", paper " + claim["paper"].get<std::string>());
    std::vector<double> regrets;
    for (const json& row : result["planner"]) regrets.push_back(row["regret"].get<double>());
    if (!regrets.empty())
        text += fmt::format("planner's regret: median {:.3f}, worst {:.3f}, of {} cells\n",
                            median(regrets), *std::max_element(regrets.begin(), regrets.end()),
                            regrets.size());
    return text;
}

} // namespace wiscsort::bench
