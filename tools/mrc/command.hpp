// SPDX-License-Identifier: MIT
//
// The command line of `obase mrc`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_mrc(CLI::App& app);

} // namespace obase::tools
