// SPDX-License-Identifier: MIT
//
// mixgraph as a load: keys in the order of their numbers, values loaded with sizes of the model's
// distribution, requests by its formulas (tools/workload/mixgraph.hpp). Where the index has no order,
// seek=0 leaves the scans out.
#pragma once

#include "tools/kv/load_spec.hpp"
#include "tools/ycsb/load.hpp"

namespace obase::tools {

// Throws std::invalid_argument for parameters that make no sense.
session_load mixgraph_load(load_spec& spec, const ycsb_settings& settings);

} // namespace obase::tools
