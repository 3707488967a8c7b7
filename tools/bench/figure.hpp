// SPDX-License-Identifier: MIT
//
// figure: one measured number with its spread, its target and what can be said about the two.
#pragma once

#include "tools/bench/spread.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace obase::tools {

enum class bound { none, at_most, at_least };

struct figure {
    std::string name; // as in docs/results/
    std::string unit; // "" for a ratio
    spread value;
    bound kind = bound::none;
    double target = 0;
    std::string command; // what measures this figure again
};

// One that was counted, not timed: a single value without a spread.
figure counted_figure(const std::string& name, const std::string& unit, double value,
                      const std::string& command);

// "met" or "not met" when the whole interval lies on one side of the target; "undecided" when it
// straddles it or there are too few samples to have an interval; "" without a target.
std::string verdict(const figure& f);

// scripts/results.py makes the pages of docs/results/ of it.
nlohmann::json to_json(const figure& f);
figure figure_from_json(const nlohmann::json& j);

// For people: aligned columns.
// Where the figures decide nothing, no verdict is shown.
std::string to_table(const std::vector<figure>& figures, bool decides = true);

} // namespace obase::tools
