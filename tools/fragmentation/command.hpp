// SPDX-License-Identifier: MIT
//
// The command line of `obase bench fragmentation`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_fragmentation(CLI::App& bench);

} // namespace obase::tools
