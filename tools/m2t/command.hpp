// SPDX-License-Identifier: MIT
//
// The command line of `obase bench m2t`.
#pragma once

#include "tools/ycsb/command.hpp"

namespace obase::tools {

store_bench add_m2t(CLI::App& bench);

} // namespace obase::tools
