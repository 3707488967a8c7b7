// SPDX-License-Identifier: MIT
//
// The command line of `obase bench index`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_index(CLI::App& bench);

} // namespace obase::tools
