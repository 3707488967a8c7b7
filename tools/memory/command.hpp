// SPDX-License-Identifier: MIT
//
// The command lines of `obase bench memory`, and of the process of one of its cells.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_memory(CLI::App& bench);
// Not for people.
store_bench add_memory_cell(CLI::App& bench);

} // namespace obase::tools
