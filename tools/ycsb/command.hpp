// SPDX-License-Identifier: MIT
//
// The command lines of `obase bench ycsb`, `packages`, `huge-pages` and `compare`.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/ycsb/compare.hpp"
#include "tools/ycsb/settings.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>

namespace obase::tools {

// What a subcommand was asked for, ready to run.
struct store_bench {
    CLI::App* command = nullptr;
    std::function<bench_result(bool quick, std::size_t pairs)> run;
};

store_bench add_ycsb(CLI::App& bench);
store_bench add_packages(CLI::App& bench);
store_bench add_huge_pages(CLI::App& bench);
store_bench add_compare(CLI::App& bench);
// Not for people: what compare runs under callgrind.
store_bench add_count_operations(CLI::App& bench);

} // namespace obase::tools
