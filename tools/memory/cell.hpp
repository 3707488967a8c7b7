// SPDX-License-Identifier: MIT
//
// The process of one cell: fills a store, sends its load, and tells what it sees in lines of JSON, so
// that what was told stays known when the kernel kills it.
//
//     {"event": "loaded", ...}   the store is full, nothing has moved
//     {"event": "limit", ...}    it is in force
//     {"event": "window", ...}   one for each window of the collector; without one, for each of its length
//     {"event": "passed", ...}   every record was read once
//     {"event": "end", ...}      or {"event": "error", "what": "..."}
//
// Precondition: the process has not used obase before. It configures the runtime.
#pragma once

#include "tools/memory/settings.hpp"
#include "tools/mrc/popularity.hpp"

#include <obase/options.hpp>

#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace obase::tools {

// What the load asks for. The same in every process.
popularity popularity_of(const memory_settings& settings);

// The options under which the cell runs: the command's own, then OBASE_*, then what `settings` say.
// `errors` gets what was not understood.
options options_of(const memory_settings& settings, std::string& error);

// `group_path`: the control group that the process is in, "" if it has none of its own. Throws
// std::runtime_error with one sentence.
void run_cell(const memory_settings& settings, const std::string& group_path,
              const std::function<void(const nlohmann::json&)>& tell);

} // namespace obase::tools
