// SPDX-License-Identifier: MIT
//
// `obase bench huge-pages`: HOT in huge pages against none, and against huge pages for all heaps.
//
// Three stores with the same records and requests, each in a process of its own, converged, taking
// turns. `none`: no heap has huge pages; `hot`: obase asks for them for HOT, which is dense; `all`:
// all heaps are advised, which is what transparent huge pages for the whole process come to. Reported
// are throughput relative to `none`, and the memory of each.
//
// Where transparent huge pages are switched off, nothing differs.
#pragma once

#include "tools/bench/bench.hpp"
#include "tools/ycsb/settings.hpp"

namespace obase::tools {

bench_result bench_huge_pages(const ycsb_settings& settings, std::size_t pairs, double slice_s);

} // namespace obase::tools
