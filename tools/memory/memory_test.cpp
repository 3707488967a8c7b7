// SPDX-License-Identifier: MIT
//
// What `obase bench memory` computes, on cases with known answers: when a series has settled,
// limits, and a cell's entry from the lines of its process.
#include "tools/bench/command_line.hpp"
#include "tools/memory/cell.hpp"
#include "tools/memory/limit.hpp"
#include "tools/memory/memory.hpp"
#include "tools/memory/open_files.hpp"
#include "tools/memory/settled.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace obase::tools;
using nlohmann::json;

TEST(settling, is_over_when_the_last_windows_hardly_differ) {
    settling used(3, .01);
    for (const std::uint64_t bytes : {2000U, 1000U, 1010U}) {
        EXPECT_FALSE(used.settled());
        used.add(bytes);
    }
    EXPECT_FALSE(used.settled()) << "2000 is among the last three";
    used.add(1005);
    EXPECT_TRUE(used.settled());
    used.add(1011);
    EXPECT_TRUE(used.settled());
    used.add(1016);
    EXPECT_FALSE(used.settled()) << "1016 is more than 1 % above 1005";
    EXPECT_EQ(used.windows_seen(), 6U);
}

TEST(settling, falls_and_rises_are_alike) {
    settling used(2, .1);
    used.add(100);
    used.add(89);
    EXPECT_FALSE(used.settled());
    used.add(100);
    EXPECT_FALSE(used.settled());
    used.add(91);
    EXPECT_TRUE(used.settled());
}

TEST(limits, are_bytes_or_a_percentage) {
    EXPECT_EQ(bytes_of_limit("4096", 1), 4096U);
    EXPECT_EQ(bytes_of_limit("2K", 1), 2048U);
    EXPECT_EQ(bytes_of_limit("1.5M", 1), 1'572'864U);
    EXPECT_EQ(bytes_of_limit("1G", 1), 1ULL << 30);
    EXPECT_EQ(bytes_of_limit("1T", 1), 1ULL << 40);
    EXPECT_EQ(bytes_of_limit("35%", 2000), 700U);
    for (const char* wrong : {"", "%", "-5", "0", "5X", "10%%", "1e99", "nan", "many", "5 K"})
        EXPECT_THROW(bytes_of_limit(wrong, 1000), std::invalid_argument) << wrong;
}

// The files of a control group, as a kernel would have them.
class fake_group {
  public:
    explicit fake_group(bool v2)
        : folder_(std::filesystem::temp_directory_path() /
                  ("obase-fake-group-" + std::to_string(::getpid()) + (v2 ? "-v2" : "-v1"))),
          v2_(v2) {
        std::filesystem::create_directory(folder_);
        if (v2) {
            set("memory.max", "max");
            set("memory.stat", "anon 1000\nfile 200\nkernel 7\nshmem 50\nswapcached 40\n"
                               "inactive_anon 300\nactive_anon 760\n");
            set("memory.current", "1300");
            set("memory.swap.max", "max");
            set("memory.events", "low 0\noom 3\noom_kill 2\n");
        } else {
            set("memory.limit_in_bytes", "9223372036854771712");
            set("memory.stat", "cache 200\nrss 1000\nshmem 50\nswapcached 40\n"
                               "inactive_anon 300\nactive_anon 760\ntotal_rss 5000\n");
            set("memory.usage_in_bytes", "1300");
            set("memory.swappiness", "60");
            set("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        }
        set("cgroup.procs", "");
    }
    ~fake_group() { std::filesystem::remove_all(folder_); }
    void set(const char* file, const std::string& text) const {
        std::ofstream(folder_ / file) << text << "\n";
    }
    void set_charge(const std::string& text) const {
        set(v2_ ? "memory.current" : "memory.usage_in_bytes", text);
    }
    std::string what_limits_swap() const {
        std::string text;
        std::ifstream(folder_ / (v2_ ? "memory.swap.max" : "memory.swappiness")) >> text;
        return text;
    }
    std::string path() const { return folder_.string(); }

  private:
    std::filesystem::path folder_;
    bool v2_;
};

class Groups : public ::testing::TestWithParam<bool> {};

TEST_P(Groups, TellWhatIsChargedAndKilled) {
    const fake_group files(GetParam());
    const control_group group(files.path());
    EXPECT_TRUE(group.made());
    // Of 40 in the swap cache 30 are mapped, which makes them anonymous memory.
    EXPECT_EQ(group.unmapped_swap_cache_bytes(), 10U);
    EXPECT_EQ(group.bytes(), 1000 + (200 - 40) + 10U);
    EXPECT_EQ(group.charge(), 1300U);
    EXPECT_EQ(group.kills(), 2U);
    EXPECT_EQ(group.limit(), std::nullopt);
    EXPECT_EQ(group.set_limit(1024), "");
    EXPECT_EQ(group.limit(), 1024U);
    EXPECT_EQ(group.remove_limit(), "");
    EXPECT_EQ(group.forbid_swap(), "");
    EXPECT_EQ(files.what_limits_swap(), "0");
}

TEST_P(Groups, ALimitWaitsUntilTheChargeHasComeDown) {
    const fake_group files(GetParam());
    const control_group group(files.path());
    limiter limit(group);
    EXPECT_EQ(limit.charge_or(5), 1300U);
    limit.ask_for(1000, false);
    EXPECT_EQ(limit.in_force(), std::nullopt);
    EXPECT_EQ(group.limit(), std::nullopt);
    files.set_charge("1000");
    limit.tighten();
    EXPECT_EQ(limit.in_force(), 1000U);
    EXPECT_EQ(group.limit(), 1000U);
}

TEST_P(Groups, ALimitThatIsInsistedOnIsNotBelowTheCharge) {
    const fake_group files(GetParam());
    const control_group group(files.path());
    limiter limit(group);
    limit.insist();
    EXPECT_EQ(limit.in_force(), std::nullopt) << "none was asked for";
    limit.ask_for(1000, false);
    limit.insist();
    EXPECT_EQ(limit.in_force(), 1300U);
    EXPECT_EQ(group.limit(), 1300U);
}

TEST_P(Groups, ALimitIsAtOnceInForceWhereThereIsSwap) {
    const fake_group files(GetParam());
    const control_group group(files.path());
    limiter limit(group);
    limit.ask_for(1000, true);
    EXPECT_EQ(limit.in_force(), 1000U);
    EXPECT_EQ(group.limit(), 1000U);
}

INSTANTIATE_TEST_SUITE_P(Versions, Groups, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "v2" : "v1"; });

TEST(groups, none_has_no_limit) {
    const control_group none;
    EXPECT_FALSE(none.made());
    EXPECT_NE(none.set_limit(1000), "");
    limiter limit(none);
    EXPECT_EQ(limit.charge_or(5), 5U);
    limit.ask_for(1000, true);
    EXPECT_EQ(limit.in_force(), std::nullopt);
    EXPECT_NE(control_group("/nonexistent").set_limit(1000), "");
    EXPECT_NE(none.forbid_swap(), "");
    EXPECT_NE(control_group("/nonexistent").forbid_swap(), "");
}

json loaded() {
    return {{"event", "loaded"},       {"used", 10'000},           {"base", 1000},
            {"key_object_bytes", 32},  {"value_object_bytes", 68}, {"index_bytes", 2000},
            {"used_method", "counted"}};
}

json window(std::uint64_t n, std::uint64_t used, std::uint64_t peak, double share) {
    return {{"event", "window"},
            {"n", n},
            {"seconds", 2.0},
            {"used", used},
            {"peak", peak},
            {"operations", 1000},
            {"fault_share", share},
            {"major_faults", 2000 * share},
            {"stall_ns", 2000 * share * 5000}};
}

memory_settings small_hotspot() {
    memory_settings s;
    s.load = "hotspot";
    s.hot_data = .2;
    s.hot_accesses = .9;
    s.records = 100;
    s.rate = 1000;
    s.threads = 2;
    s.time_scale = 50;
    s.policy = "papers";
    s.settle_windows = 2;
    return s;
}

TEST(memory_cell, is_made_of_the_last_windows) {
    const json end = {{"event", "end"},
                      {"settled", true},
                      {"partial", false},
                      {"wrong", 0},
                      {"index_bytes", 2000}};
    const json cell = memory_cell(small_hotspot(),
                                  {loaded(), window(1, 20'000, 21'000, .5),
                                   window(2, 7000, 21'000, .08), window(3, 7200, 21'000, .12), end},
                                  false);
    EXPECT_EQ(cell["policy"], "papers");
    EXPECT_EQ(cell["killed"], false);
    EXPECT_EQ(cell["start_bytes"], 10'000);
    EXPECT_EQ(cell["peak_bytes"], 21'000);
    EXPECT_DOUBLE_EQ(cell["peak_over_start"].get<double>(), 2.1);
    EXPECT_DOUBLE_EQ(cell["end_bytes"].get<double>(), 7100) << "the mean of the last two";
    EXPECT_DOUBLE_EQ(cell["fault_share"].get<double>(), .1);
    // The 20 hot records serve .9 of the accesses: 20 x 100 bytes, and the index.
    EXPECT_NEAR(cell["ideal_bytes"].get<double>(), 4000, 1e-6);
    EXPECT_NEAR(cell["live_bytes"].get<double>(), 10'000, 1e-6);
    // Without what the process had before there was a store.
    EXPECT_NEAR(cell["used_over_ideal"].get<double>(), 6100.0 / 4000, 1e-9);
    EXPECT_NEAR(cell["objects_over_ideal"].get<double>(), 4100.0 / 2000, 1e-9);
    EXPECT_NEAR(cell["used_over_live"].get<double>(), 6100.0 / 12'000, 1e-9);
    EXPECT_DOUBLE_EQ(cell["major_faults_per_op"].get<double>(), .2);
    EXPECT_DOUBLE_EQ(cell["faults_per_s"].get<double>(), 100);
    EXPECT_DOUBLE_EQ(cell["fault_us"].get<double>(), 5);
    // 400 faults of 5 us in 4 s of two clients.
    EXPECT_NEAR(cell["stall_share"].get<double>(), 400 * 5e-6 / 8, 1e-12);
    EXPECT_NEAR(cell["stall_share_over_scale"].get<double>(), 400 * 5e-6 / 8 / 50, 1e-12);
    EXPECT_DOUBLE_EQ(cell["throughput_ops"].get<double>(), 500);
    EXPECT_DOUBLE_EQ(cell["throughput_ratio"].get<double>(), .5);
    EXPECT_EQ(cell["settled"], true);
    EXPECT_EQ(cell["windows"].size(), 3U);
}

TEST(memory_cell, peak_is_that_of_all_windows) {
    const json cell = memory_cell(
        small_hotspot(), {loaded(), window(1, 9000, 30'000, 0), window(2, 7000, 8000, 0)}, false);
    EXPECT_EQ(cell["peak_bytes"], 30'000);
}

TEST(memory_cell, tells_the_files_at_their_most) {
    constexpr std::uint64_t mib = 1 << 20;
    const auto with_files = [](unsigned n, unsigned descriptors, double file_mib, double live_mib) {
        json line = window(n, 9000, 9000, 0);
        line["open_files"] = descriptors;
        line["file_bytes"] = file_mib * mib;
        line["tiers"] = {{{"live_bytes", 500 * mib}},
                         {{"live_bytes", live_mib * mib}},
                         {{"live_bytes", 100 * mib}}}; // of large objects
        return line;
    };
    const json cell = memory_cell(
        small_hotspot(),
        {loaded(), with_files(1, 9, 40, 4), with_files(2, 12, 30, 10), with_files(3, 10, 25, 20)},
        false);
    EXPECT_EQ(cell["open_files_peak"], 12);
    EXPECT_EQ(cell["file_peak_bytes"], 40 * mib);
    EXPECT_DOUBLE_EQ(cell["file_over_live_worst"].get<double>(), 3)
        << "the first window has too little in the file";
    const json without = memory_cell(small_hotspot(), {loaded(), window(1, 9000, 9000, 0)}, false);
    EXPECT_TRUE(without["open_files_peak"].is_null());
}

TEST(open_files, are_those_of_this_process) {
    const std::string directory = std::filesystem::temp_directory_path();
    const open_files before = files_of_this_process(directory);
    std::string name = directory + "/obase-open-files-XXXXXX";
    const int named = ::mkstemp(name.data());
    ASSERT_GE(named, 0);
    const std::vector<char> bytes(1 << 20, 'x');
    ASSERT_EQ(::write(named, bytes.data(), bytes.size()), ::ssize_t(bytes.size()));
    ASSERT_EQ(::fsync(named), 0);
    open_files now = files_of_this_process(directory);
    EXPECT_EQ(now.descriptors, before.descriptors + 1);
    EXPECT_EQ(now.unnamed_bytes, before.unnamed_bytes) << "it has a name";
    ::unlink(name.c_str());
    now = files_of_this_process(directory);
    EXPECT_GE(now.unnamed_bytes, before.unnamed_bytes + bytes.size());
    EXPECT_EQ(files_of_this_process("").unnamed_bytes, 0U);
    ::close(named);
    EXPECT_EQ(files_of_this_process(directory).descriptors, before.descriptors);
}

TEST(memory_cell, has_the_ratio_to_its_reference) {
    json cell = {{"throughput_ops", 300.0}, {"throughput_ratio", 1}};
    compare_with(cell, {{"throughput_ops", 200.0}});
    EXPECT_DOUBLE_EQ(cell["throughput_ratio"].get<double>(), 1.5);
    json killed = {{"throughput_ops", nullptr}, {"throughput_ratio", nullptr}};
    compare_with(killed, {{"throughput_ops", 200.0}});
    EXPECT_TRUE(killed["throughput_ratio"].is_null());
}

// Rounds are samples; one that was killed is not outvoted.
TEST(memory_figures, are_of_all_rounds) {
    json cell = memory_cell(small_hotspot(), {loaded(), window(1, 9000, 30'000, 0)}, false);
    std::vector<json> same;
    for (const double ratio : {1.3, 1.1, 1.2}) {
        cell["used_over_ideal"] = ratio;
        same.push_back(cell);
    }
    same[1]["killed"] = true;
    same[1]["throughput_ops"] = nullptr;
    const std::vector<cell_target> targets = {{"used_over_ideal", bound::at_most, 1.25},
                                              {"killed", bound::at_most, 0}};
    const std::vector<figure> figures = figures_of(same, targets);
    const auto find = [&](const std::string& name) {
        for (const figure& f : figures)
            if (f.name.ends_with(": " + name)) return f;
        ADD_FAILURE() << name;
        return figure{};
    };
    const figure ratio = find("used over ideal");
    EXPECT_DOUBLE_EQ(ratio.value.median, 1.2);
    EXPECT_DOUBLE_EQ(ratio.value.low, 1.1);
    EXPECT_DOUBLE_EQ(ratio.value.high, 1.3);
    EXPECT_EQ(ratio.value.samples, 3U);
    EXPECT_EQ(verdict(ratio), "undecided") << "three rounds are too few";
    EXPECT_EQ(verdict(find("killed")), "not met");
    EXPECT_EQ(find("throughput").value.samples, 2U);
    const figure peak = find("peak memory");
    EXPECT_DOUBLE_EQ(peak.value.median, 30'000 / 1048576.);
    EXPECT_EQ(verdict(figures_of({same[0]}, targets).front()), "not met") << "a single one decides";
    EXPECT_TRUE(figures_of({}, targets).empty());
    cell["throughput_ratio"] = 2;
    const figure timed = figures_of({cell}, {{"throughput_ratio", bound::at_least, 1.6}}).front();
    EXPECT_EQ(verdict(timed), "undecided") << "one that was timed does not";
}

TEST(memory_rounds, are_one_unless_asked_for) {
    std::size_t pairs = 15;
    CLI::App command;
    command.add_option("--pairs", pairs);
    command.parse("");
    EXPECT_EQ(rounds_of(command, pairs), 1U);
    command.parse("--pairs 7");
    EXPECT_EQ(rounds_of(command, pairs), 7U);
    EXPECT_EQ(rounds_of(CLI::App(), 7), 1U) << "a command without the option";
}

TEST(memory_rows, have_targets_that_cells_have) {
    const json cell = memory_cell(small_hotspot(), {}, false);
    for (const memory_row& row : memory_rows()) {
        EXPECT_EQ(&row_named(row.name), &row);
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            EXPECT_EQ(why_not(row.cells[i].settings), "") << row.name;
            EXPECT_LE(row.cells[i].reference.value_or(0), i) << row.name;
            for (const cell_target& target : row.cells[i].targets)
                EXPECT_TRUE(cell.contains(target.member)) << target.member;
        }
    }
    EXPECT_THROW(row_named("none"), std::invalid_argument);
}

TEST(memory_rows, are_told_apart_by_updates_and_limit) {
    memory_settings s = small_hotspot();
    const auto name = [&] {
        return figures_of({memory_cell(s, {}, true)}, {{"killed", bound::at_most, 0}}).front().name;
    };
    EXPECT_EQ(name(), "hotspot 0.2/0.9 papers: killed");
    s.update_share = .05;
    s.limit = "40%";
    EXPECT_EQ(name(), "hotspot 0.2/0.9, 0.05 updates, limit 40% papers: killed");
}

TEST(memory_cell, of_a_killed_process_has_what_it_told) {
    const json early = memory_cell(small_hotspot(), {}, true);
    EXPECT_EQ(early["killed"], true);
    EXPECT_TRUE(early["start_bytes"].is_null());
    EXPECT_TRUE(early["used_over_ideal"].is_null());
    const json later = memory_cell(
        small_hotspot(),
        {loaded(), {{"event", "limit"}, {"bytes", 12'500}}, window(1, 9000, 12'000, .1)}, true);
    EXPECT_EQ(later["killed"], true);
    EXPECT_EQ(later["settled"], false);
    EXPECT_EQ(later["limit_bytes"], 12'500);
    EXPECT_EQ(later["peak_bytes"], 12'000);
    EXPECT_NEAR(later["ideal_bytes"].get<double>(), 4000, 1e-6);
}

TEST(memory_cell, without_the_limit_that_was_asked_for_says_so) {
    const json end = {{"event", "end"},
                      {"settled", true},
                      {"partial", false},
                      {"wrong", 0},
                      {"index_bytes", 2000}};
    const json limit = {{"event", "limit"}, {"bytes", 12'500}};
    memory_settings s = small_hotspot();
    EXPECT_EQ(why_no_limit(memory_cell(s, {loaded(), window(1, 9000, 9000, 0), end}, false)), "");
    s.limit = "10%";
    EXPECT_NE(why_no_limit(memory_cell(s, {loaded(), window(1, 9000, 9000, 0), end}, false))
                  .find("--limit 10% never came into force"),
              std::string::npos);
    EXPECT_EQ(why_no_limit(memory_cell(s, {loaded(), limit, end}, false)), "");
    EXPECT_EQ(why_no_limit(memory_cell(s, {}, true)), "") << "killed while it was loading";
    json cut_short = end;
    cut_short["partial"] = true;
    EXPECT_EQ(why_no_limit(memory_cell(s, {loaded(), cut_short}, false)), "");
}

TEST(memory_settings, that_are_no_numbers_are_refused) {
    const double nan = std::nan(""), infinite = HUGE_VAL;
    const auto refused = [](double memory_settings::* member, double value) {
        memory_settings s = small_hotspot();
        s.*member = value;
        return why_not(s);
    };
    for (const double bad : {nan, infinite, -1.0}) {
        EXPECT_TRUE(refused(&memory_settings::settle_share, bad).starts_with("--settle-share "));
        EXPECT_TRUE(refused(&memory_settings::window_s, bad).starts_with("--window "));
        EXPECT_TRUE(refused(&memory_settings::time_scale, bad).starts_with("--time-scale "));
    }
    EXPECT_EQ(refused(&memory_settings::settle_share, 0), "");
}

TEST(memory_settings, with_a_limit_before_loading_have_a_limit) {
    memory_settings s = small_hotspot();
    s.limit_first = true;
    EXPECT_EQ(why_not(s), "--limit-first: needs --limit");
    s.limit = "50%";
    EXPECT_EQ(why_not(s), "");
    EXPECT_NE(command_of(s).find(" --limit 50% --limit-first"), std::string::npos) << command_of(s);
}

TEST(memory_settings, come_back_from_json) {
    memory_settings s = small_hotspot();
    s.limit = "35%";
    s.cold = "file:/somewhere";
    s.pageout_every = 3;
    s.pass = true;
    s.limit_first = true;
    EXPECT_EQ(json(json(s).get<memory_settings>()), json(s));
}

TEST(memory_options, the_environment_is_between_the_defaults_and_the_command_line) {
    ::setenv("OBASE_POLICY", "graded", 1);
    ::setenv("OBASE_WINDOW_SECONDS", "30", 1);
    ::setenv("OBASE_HINT_PAGEOUT", "off", 1);
    std::string error;
    memory_settings s;
    obase::options of_environment = options_of(s, error);
    EXPECT_EQ(error, "");
    EXPECT_EQ(of_environment.policy, "graded");
    EXPECT_EQ(of_environment.window_seconds, 30);
    EXPECT_EQ(of_environment.time_scale, 60) << "the command's own";
    EXPECT_EQ(of_environment.mode, obase::run_mode::hint);
    EXPECT_FALSE(of_environment.hint_pageout);
    s.policy = "papers";
    s.window_s = 10;
    s.hints = "pageout";
    obase::options of_command = options_of(s, error);
    EXPECT_EQ(of_command.policy, "papers");
    EXPECT_EQ(of_command.window_seconds, 10);
    EXPECT_TRUE(of_command.hint_pageout);
    ::setenv("OBASE_WINDOW_SECONDS", "soon", 1);
    options_of(s, error);
    EXPECT_NE(error.find("soon"), std::string::npos);
    for (const char* name : {"OBASE_POLICY", "OBASE_WINDOW_SECONDS", "OBASE_HINT_PAGEOUT"})
        ::unsetenv(name);
}

} // namespace
