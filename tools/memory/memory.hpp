// SPDX-License-Identifier: MIT
//
// `obase bench memory`: how much memory a load takes under a policy, with the faults that it costs,
// beside the least with which the same share of faults is possible (ideal.hpp).
//
// A cell is a process of its own (cell.hpp), in a control group of its own where one can be made. A
// cell that the kernel kills for its limit is a result.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/memory/rows.hpp"
#include "tools/memory/settings.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <vector>

namespace obase::tools {

// Measures one cell after the other, all of them in each round. Throws std::invalid_argument for settings that make no sense,
// std::runtime_error when it cannot measure.
bench_result bench_memory(const std::vector<row_cell>& cells, std::size_t rounds = 1);

// What settings cannot be measured, in a sentence; "" if all is well.
std::string why_not(const memory_settings& settings);

// The cell's entry of the result, from the lines that its process told. Public for tests.
nlohmann::json memory_cell(const memory_settings& settings,
                           const std::vector<nlohmann::json>& lines, bool killed);
// Why a cell was measured without the limit that it was to have, in a sentence; "" if it had it, or
// had none to have. Public for tests.
std::string why_no_limit(const nlohmann::json& cell);
// What the results of one cell, a round each, amount to: medians and their spread. Public for tests.
std::vector<figure> figures_of(const std::vector<nlohmann::json>& same,
                               const std::vector<cell_target>& targets);
// Sets throughput_ratio of a cell that has a reference.
void compare_with(nlohmann::json& cell, const nlohmann::json& reference);

// The command line that measures the cell again.
std::string command_of(const memory_settings& settings);

} // namespace obase::tools
