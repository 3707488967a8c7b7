// SPDX-License-Identifier: MIT
//
// The command line of `obase bench server`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_server(CLI::App& bench);

} // namespace obase::tools
