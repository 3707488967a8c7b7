// SPDX-License-Identifier: MIT
//
// Programs that others wrote, for the benchmarks of handles: the scripts of compiler/handles/programs fetch their sources and
// say how they are built and run.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace obase::tools {

struct script_settings {
    std::string
        source; // obase's source folder, which has the scripts; "": the one this was built from
    std::string directory; // where all is fetched and built; "": obase/handles in the user's cache
};

struct described {
    nlohmann::json json; // as compiler/handles/programs/handled.py writes it
    std::string skipped; // why there is none: a source that cannot be had
};

// Runs NAME.py, which may take minutes. Throws std::runtime_error, with the end of what the script said, if it fails,
// and interruption.
described describe_programs(const script_settings& settings, const std::string& name);

// The folder that describe_programs() gives the script.
std::string folder_of(const script_settings& settings, const std::string& name);

// What compiler/handles/programs/figures.c wrote; null if it did not, and the file is gone afterwards.
nlohmann::json take_figures(const std::string& path);

} // namespace obase::tools
