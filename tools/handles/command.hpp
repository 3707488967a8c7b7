// SPDX-License-Identifier: MIT
//
// The command line of `obase bench handles`, and what it has in common with that of `fragmentation`.
#pragma once

#include "tools/handles/scripts.hpp"
#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_handles(CLI::App& bench);

// --source and --directory.
void add_script_options(CLI::App& command, script_settings& settings);

} // namespace obase::tools
