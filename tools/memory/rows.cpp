// SPDX-License-Identifier: MIT
#include "tools/memory/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace obase::tools {
namespace {

const std::string in_file = "file:/var/tmp";

memory_settings cold_in_file() {
    memory_settings s;
    s.cold = in_file;
    return s;
}

memory_settings hotspot(double data, double accesses) {
    memory_settings s = cold_in_file();
    s.load = "hotspot";
    s.hot_data = data;
    s.hot_accesses = accesses;
    return s;
}

memory_settings loop(double update_share) {
    memory_settings s = cold_in_file();
    s.load = "loop";
    s.update_share = update_share;
    return s;
}

memory_settings uniform() {
    memory_settings s = cold_in_file();
    s.load = "uniform";
    return s;
}

memory_settings with_zram(memory_settings s) {
    s.cold = "anon";
    s.swap = "zram";
    return s;
}

memory_settings under(std::string policy, memory_settings s) {
    s.policy = std::move(policy);
    return s;
}

// Under both policies, and plain beside them where the kernel is to be compared.
std::vector<row_cell> both(const memory_settings& s, const std::vector<cell_target>& targets) {
    return {{under("papers", s), targets}, {under("graded", s), targets}};
}

std::vector<row_cell> all(const memory_settings& s, const std::vector<cell_target>& targets) {
    std::vector<row_cell> cells = both(s, targets);
    cells.push_back({under("plain", s)});
    return cells;
}

// What the kernel's reclaim does with plain pointers: everything paged out now and then.
row_cell plain_paged_out(memory_settings s) {
    s.pageout_every = 4;
    return {under("plain", s)};
}

std::vector<row_cell> joined(std::vector<std::vector<row_cell>> lists) {
    std::vector<row_cell> cells;
    for (auto& list : lists)
        for (row_cell& cell : list) cells.push_back(std::move(cell));
    return cells;
}

const cell_target not_killed{"killed", bound::at_most, 0};

cell_target used_over_ideal_at_most(double value) {
    return {"used_over_ideal", bound::at_most, value};
}

// The first cell is the one that the others are compared with.
std::vector<row_cell> against_the_first(std::vector<row_cell> cells) {
    for (std::size_t i = 1; i < cells.size(); ++i) cells[i].reference = 0;
    return cells;
}

std::vector<row_cell> against_own_without_limit(const memory_settings& s,
                                                const std::vector<cell_target>& targets) {
    std::vector<row_cell> cells;
    for (const char* policy : {"papers", "graded"}) {
        memory_settings free = under(policy, s);
        free.limit.clear();
        cells.push_back({free});
        cells.push_back({under(policy, s), targets, cells.size() - 1});
    }
    return cells;
}

memory_settings full_speed_under_a_limit(memory_settings s, std::string limit) {
    s.rate = 0;
    s.limit = std::move(limit);
    return s;
}

memory_settings swapping(memory_settings s) {
    s.swap = in_file;
    return s;
}

memory_settings small_values(memory_settings s) {
    s.value_size = 128;
    s.index = "movable-segmented-hash-table";
    s.records = 400'000;
    return s;
}

memory_settings passed_under(std::string limit, std::uint64_t seed) {
    memory_settings s = hotspot(.2, .999);
    s.limit = std::move(limit);
    s.pass = true;
    s.seed = seed;
    return s;
}

std::vector<row_cell> passes(const std::string& limit) {
    constexpr std::uint64_t repetitions = 20;
    const std::vector<cell_target> targets{not_killed,
                                           {"after_pass_over_before", bound::at_most, 1.1}};
    std::vector<row_cell> cells;
    for (const char* policy : {"papers", "graded"})
        for (std::uint64_t seed = 1; seed <= repetitions; ++seed)
            cells.push_back({under(policy, passed_under(limit, seed)), targets});
    return cells;
}

// What is loaded without a limit says how much half of it is.
std::vector<row_cell> loads(const std::string& limit) {
    memory_settings s = cold_in_file();
    std::vector<row_cell> cells{{under("papers", s)}};
    s.limit = limit;
    s.limit_first = true;
    for (const char* policy : {"papers", "graded"})
        cells.push_back({under(policy, s), {not_killed}, 0});
    return cells;
}

memory_settings large_objects() {
    memory_settings s = hotspot(.2, 1);
    s.records = 30'000;
    s.value_size = 20'480;
    return s;
}

memory_settings a_day() {
    memory_settings s = hotspot(.2, .99);
    s.shift_every = 20;
    s.churn_share = .02;
    s.max_windows = 720; // of two minutes
    s.settle_windows = 720;
    return s;
}

std::vector<memory_row> make_rows() {
    const cell_target peak{"peak_over_allowed", bound::at_most, 1};
    const cell_target cold_faults{"faults_over_cold_accesses", bound::at_most, 1.1};
    const auto used_over_live = [](double value) {
        return cell_target{"used_over_live", bound::at_most, value};
    };
    const auto speed = [](double value) {
        return cell_target{"throughput_ratio", bound::at_least, value};
    };
    const memory_settings zipf = cold_in_file();
    const memory_settings limited = full_speed_under_a_limit(swapping(zipf), "35%");
    // It hardly comes to rest: by then what it does in a second has been the same for some time.
    memory_settings limited_small = small_values(limited);
    limited_small.max_windows = 25;
    return {
        {"hot-20-999", "20 % of the records take .999 of the accesses",
         all(hotspot(.2, .999), {used_over_ideal_at_most(1.10), cold_faults})},
        {"hot-20-99", "20 % of the records take .99 of the accesses",
         all(hotspot(.2, .99), {used_over_ideal_at_most(1.25), cold_faults})},
        {"zipf", "Zipf .99 over zram",
         joined({both(with_zram(zipf), {used_over_ideal_at_most(1.15)}),
                 {plain_paged_out(with_zram(zipf))}})},
        {"hotspot-80-20", "20 % of the records take .8 of the accesses, over zram",
         joined({both(with_zram(hotspot(.2, .8)), {used_over_ideal_at_most(1.15)}),
                 {plain_paged_out(with_zram(hotspot(.2, .8)))}})},
        {"loop-C", "a fixed live set, reads", all(loop(0), {used_over_live(1.07)})},
        {"loop-B", "a fixed live set, .05 updates", all(loop(.05), {used_over_live(1.12)})},
        {"loop-A", "a fixed live set, .5 updates", all(loop(.5), {used_over_live(1.12)})},
        {"peak", "the most that each load takes",
         joined({both(zipf, {peak}), both(hotspot(.2, .8), {peak}), both(uniform(), {peak}),
                 both(loop(0), {peak}), both(loop(.5), {peak})})},
        {"pass-90", "every record is read once, limit 90 %, no swap, 20 times", passes("90%")},
        {"pass-50", "every record is read once, limit 50 %, no swap, 20 times", passes("50%")},
        {"load-50", "loading with a limit of 50 % in force, no swap, COLD in a file", loads("50%")},
        {"limit-35", "Zipf .99, limit 35 %, a swap file, COLD in a file; to plain",
         against_the_first({{under("plain", limited)},
                            {under("papers", limited), {speed(1.6), not_killed}},
                            {under("graded", limited), {speed(1.6), not_killed}}})},
        {"limit-35-small", "the same with values of 128 bytes and nodes that move",
         against_the_first({{under("plain", limited_small)},
                            {under("papers", limited_small), {speed(2.3), not_killed}},
                            {under("graded", limited_small), {speed(2.3), not_killed}}})},
        {"limit-40-loop", "a fixed live set, limit 40 %, COLD in a file; to itself without a limit",
         against_own_without_limit(full_speed_under_a_limit(loop(0), "40%"),
                                   {speed(.9), not_killed})},
        {"large", "30,000 records of 20 KiB, a fifth of them asked for",
         all(large_objects(), {used_over_ideal_at_most(1.1)})},
        {"day", "a day of windows, the hot set shifts every 20, .02 of the operations are churn",
         both(a_day(), {{"used_over_ideal_worst", bound::at_most, 1.5},
                        {"peak_over_allowed", bound::at_most, 1},
                        {"file_over_live_worst", bound::at_most, 2}})},
    };
}

} // namespace

const std::vector<memory_row>& memory_rows() {
    static const std::vector<memory_row> rows = make_rows();
    return rows;
}

const memory_row& row_named(const std::string& name) {
    std::string all;
    for (const memory_row& row : memory_rows()) {
        if (row.name == name) return row;
        all += (all.empty() ? "" : ", ") + row.name;
    }
    throw std::invalid_argument(
        fmt::format("--row {}: there is no such row; there are: {}", name, all));
}

memory_settings smoke_size(memory_settings s) {
    constexpr double window_s = 12; // of .2 s with the usual scale
    s.records = std::min<std::uint64_t>(s.records,
                                        20'000 * 1024 / std::max<std::size_t>(s.value_size, 1024));
    s.settle_windows = std::min(s.settle_windows, 3U);
    s.max_windows = std::min(s.max_windows, 8U);
    if (s.window_s <= 0) s.window_s = window_s;
    return s;
}

} // namespace obase::tools
