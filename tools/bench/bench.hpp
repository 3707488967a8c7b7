// SPDX-License-Identifier: MIT
//
// The benchmarks of `obase bench`: what each is asked and what each answers.
#pragma once

#include "tools/bench/figure.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace obase::tools {

struct bench_settings {
    std::size_t pairs = 15;
    bool quick = false; // a size that ends within seconds and decides nothing
    // move; empty: the cases of the target table
    std::vector<std::string> protocols;
    std::vector<std::size_t> object_bytes;
    std::vector<unsigned> busy_threads;
    // alloc; empty: all
    std::vector<std::string> what;
    std::vector<std::string> sizes; // numbers, and "mixed"
    std::vector<unsigned> threads;
    std::vector<std::string> patterns;
};

struct bench_result {
    nlohmann::json json;         // the documented shape of this benchmark
    std::vector<figure> figures; // with spread; those of the target table have targets
    bool partial = false;        // interrupted
    std::string skipped;         // why nothing was measured; "" if it was
    std::string failure;         // what was measured, but must not be; "" if nothing
};

// Each throws std::runtime_error with one sentence when it cannot measure. In the calling process
// nothing of obase is used: cases run in processes of their own.
bench_result bench_guide(const bench_settings& settings);
bench_result bench_alloc(const bench_settings& settings);
bench_result bench_move(const bench_settings& settings);
bench_result bench_collector(const bench_settings& settings);
bench_result bench_latency(const bench_settings& settings);

// bench_alloc loads other allocators, which the dynamic linker allows only if it was told before
// the program began. Restarts the program if need be; call it first thing in main().
void restart_with_room_for_allocators(char** argv);

// A case of its own in alloc.
nlohmann::json measure_overhead(const bench_settings& settings);

// A line of progress, for terminals only.
void tell(const std::string& line);

inline std::vector<double> numbers_of(const nlohmann::json& j) {
    return j.get<std::vector<double>>();
}

} // namespace obase::tools
