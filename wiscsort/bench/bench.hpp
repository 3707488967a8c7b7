// SPDX-License-Identifier: MIT
//
// `wiscsort bench`: strategies on emulated devices, and on this machine beside other systems, in one
// run and interleaved; the paper's claims beside what came out.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace wiscsort::bench {

struct bench_settings {
    std::string directory = ".";     // for data
    std::uint64_t records = 1000000; // on this machine
    std::uint64_t emulated_bytes = 40000000;
    unsigned repeats = 5;
    unsigned threads = 2;
    std::uint64_t memory = 8ULL << 30, small_memory = 512ULL << 20;
    std::vector<std::string> shapes; // emulated: "pmem 10:90"; none: all, and the claims
    unsigned value_bytes = 90;       // here
    bool skewed = false;             // here
    bool real = true, emulated = true;
    std::vector<std::string> states = {"cached", "uncached", "cgroup"}; // here
    // Here: only those whose system and strategy contain one of these; none: all.
    std::vector<std::string> only;
    std::uint64_t cgroup_bytes = 110ULL << 20, cgroup_memory = 50ULL << 20;
    std::string program;                         // this one, to be run as a child
    std::string python = "python3";              // with DuckDB and Polars, where they are installed
    std::function<void(const std::string&)> say; // progress
};

// Every output is checked. Throws error.
nlohmann::json run_bench(const bench_settings& settings);
// The ratios and claims as a table of text.
std::string bench_text(const nlohmann::json& result);

} // namespace wiscsort::bench
