// SPDX-License-Identifier: MIT
//
// The rows of `obase bench memory --row NAME`: cells that belong together, with their targets.
#pragma once

#include "tools/bench/figure.hpp"
#include "tools/memory/settings.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace obase::tools {

struct cell_target {
    std::string member; // of the cell's JSON; a number or a flag
    bound kind = bound::at_most;
    double value = 0;
};

struct row_cell {
    memory_settings settings;
    std::vector<cell_target> targets{};
    // The cell of the row whose throughput this one's is a ratio to.
    std::optional<std::size_t> reference{};
};

struct memory_row {
    std::string name;
    std::string about;
    std::vector<row_cell> cells;
};

const std::vector<memory_row>& memory_rows();
// Throws std::invalid_argument, naming the rows, for another name.
const memory_row& row_named(const std::string& name);

// A size that ends within seconds and decides nothing.
memory_settings smoke_size(memory_settings settings);

} // namespace obase::tools
