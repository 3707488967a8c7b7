// SPDX-License-Identifier: MIT
//
// The Debian package index as a load: its stanzas stored under the packages' names, and read by
// walking the dependencies of every package installed on this machine, over and over. libc6 is in
// nearly every walk, most packages are in none.
//
// The walks are made once, before the traffic, and replayed: what is measured is the store, not the
// parser of dependencies.
#pragma once

#include "tools/ycsb/load.hpp"

namespace obase::tools {

// Throws std::runtime_error when there is no package index here (settings.package_file "": `apt-cache
// dumpavail` is run), or when the file is none.
session_load load_from_packages(const ycsb_settings& settings);

} // namespace obase::tools
