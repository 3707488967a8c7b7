// SPDX-License-Identifier: MIT
//
// The command line of `obase bench kv`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_kv(CLI::App& bench);

} // namespace obase::tools
