// SPDX-License-Identifier: MIT
//
// Recorded operations as a load: every key of the trace is a record, loaded before with the first
// length that the trace knows for it, and the operations are replayed in their order, each by one of
// the clients, over and over.
#pragma once

#include "tools/ycsb/load.hpp"

#include <string>

namespace obase::tools {

// Keys and values whose length the trace does not tell have the sizes of the settings. Throws
// std::runtime_error, naming file, line, what was expected and what came, for a trace that is torn.
session_load load_from_trace(const ycsb_settings& settings);

} // namespace obase::tools
