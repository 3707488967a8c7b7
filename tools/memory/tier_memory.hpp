// SPDX-License-Identifier: MIT
//
// How much of each of a runtime's heaps is in memory: its mapped pages that /proc/self/pagemap shows
// as present. What is compressed, in swap, or in the page cache without being mapped, is not.
#pragma once

#include <obase/runtime.hpp>

#include <cstdint>
#include <vector>

namespace obase::tools {

// By number of the heap, in bytes; zeros where the kernel does not tell. Reads 8 bytes for every page
// of the heaps.
std::vector<std::uint64_t> resident_bytes_of_tiers(const runtime& of, unsigned heaps);

} // namespace obase::tools
