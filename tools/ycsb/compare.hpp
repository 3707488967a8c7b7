// SPDX-License-Identifier: MIT
//
// `obase bench compare`: what guides cost. The same records in a store of plain pointers, one under
// arming and one under atc, all in one process; the same requests to each in turns, a slice of time
// each, so that whatever else the machine does hits all of them alike.
//
// Two phases. `moving`: from the first window on, until hardly anything moves any more. A turn of a
// store that moves objects is as long as a window and has one, which the collector begins by itself,
// with its limit on processor time, as in production; a turn of plain pointers is shorter. `moved`
// says how many objects each window moved. `converged`: slices; one window per ten seconds of a
// store's own traffic, at the beginning of one of its slices, so that all of the collector's work is
// charged to the store that it is done for.
//
// throughput_ratio: operations per second over those of plain pointers; more is better; geometric
// mean over the pairs, and its 95 % interval by Student's t over their logarithms. p90_ratio and
// instructions_ratio: over those of plain pointers; less is better. Instructions are counted by
// callgrind in a smaller run of its own with one thread and no collector; null without valgrind.
//
// With hints and --cold the stores are set up as those of `obase bench ycsb`, and only then is the
// ratio the price of the memory that the same options save there. A window stands for the papers'
// 120 s then, and `moving` lasts until the paging out has slowed down as well.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/ycsb/settings.hpp"

#include <string>
#include <vector>

namespace obase::tools {

struct compare_settings {
    std::vector<std::string> indexes;   // empty: all
    std::vector<std::string> workloads; // empty: A, B and C
    std::vector<std::string> protocols; // empty: arming and atc
    ycsb_settings load;                 // what each store is filled with and asked for
    std::size_t pairs = 15;
    double slice_s = 0.5;
    double window_s = 10; // of a store's own traffic
    bool quick = false;   // a size that ends within a minute and decides nothing
    bool instructions = true;
    bool moving = true; // measure that phase; without it the load moves in forced windows
};

// Throws std::runtime_error when it cannot measure. Stores live in processes of their own.
bench_result bench_compare(const compare_settings& settings);

// Of slices [pair][protocol], the first protocol being plain pointers: operations per second of
// protocol number `which` over those of plain pointers, pair by pair. More is better.
std::vector<double> column_ratios(const nlohmann::json& slices, std::size_t which);

// A fixed number of operations with one thread, for callgrind: run by bench_compare.
void count_operations(const ycsb_settings& settings);

} // namespace obase::tools
