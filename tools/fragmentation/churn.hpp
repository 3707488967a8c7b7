// SPDX-License-Identifier: MIT
//
// The rows of `obase bench fragmentation --program churn`: what a heap that is replaced for a day takes beside what lives
// in it. Nothing is measured here: the runs are what churn.c prints.
#pragma once

#include "tools/fragmentation/fragmentation.hpp"

#include <map>
#include <string>
#include <vector>

namespace obase::tools {

// `runs`: of each allocator, in the order of their turns. An allocator without a run has no rows. Targets: what obase keeps of tables
// and the kernel of page tables, by what lives; and resident memory of obase-still by that of jemalloc.
std::vector<figure> churn_figures(const std::map<std::string, std::vector<nlohmann::json>>& runs,
                                  const fragmentation_settings& settings);

} // namespace obase::tools
