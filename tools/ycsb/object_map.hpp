// SPDX-License-Identifier: MIT
//
// Where objects lie, and how well the pages are used that hold the touched ones. Computed from
// addresses alone: nothing here knows the collector, its statistics or its heaps, so that it can be
// their witness.
//
//   page utilization = bytes of the touched objects / (pages that hold any of them x page size)
//
// (OBASE 2.1.) An object counts once, with the bytes that the program asked for rounded up to whole
// words, however often it was touched and by how few bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace obase::tools {

struct placed_object {
    std::uintptr_t address = 0;
    std::uint32_t bytes = 0;
    bool touched = false;
};

// Sorts by address and joins duplicates; one that is touched anywhere is touched.
inline void sort_and_join(std::vector<placed_object>& objects) {
    std::sort(objects.begin(), objects.end(), [](const placed_object& a, const placed_object& b) {
        return a.address != b.address ? a.address < b.address : a.touched > b.touched;
    });
    objects.erase(std::unique(objects.begin(), objects.end(),
                              [](const placed_object& a, const placed_object& b) {
                                  return a.address == b.address;
                              }),
                  objects.end());
}

struct utilization {
    std::uint64_t bytes = 0; // of touched objects
    std::uint64_t pages = 0; // that hold any of those bytes
    double share = 0;        // 0 when nothing was touched
};

// Of sorted objects without duplicates.
inline utilization utilization_of(std::span<const placed_object> sorted, std::uint64_t page_bytes) {
    utilization result;
    std::uintptr_t next = 0; // no page below this one is counted again
    for (const placed_object& object : sorted) {
        if (!object.touched || object.bytes == 0) continue;
        result.bytes += object.bytes;
        const std::uintptr_t first = std::max(object.address / page_bytes, next);
        const std::uintptr_t last = (object.address + object.bytes - 1) / page_bytes;
        if (last >= first) {
            result.pages += last - first + 1;
            next = last + 1;
        }
    }
    if (result.pages != 0)
        result.share = static_cast<double>(result.bytes) /
                       (static_cast<double>(result.pages) * static_cast<double>(page_bytes));
    return result;
}

// A stretch of address space with objects, cut into cells of equal size.
struct heat_region {
    std::string name;
    std::uintptr_t begin = 0;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_per_cell = 0;
    std::vector<double> cells; // share of the cell's bytes that belong to touched objects
};

// Of sorted objects. A gap of `gap_bytes` begins a new region, and so does a change of
// name_of(address). All cells together are at most about `cells`.
std::vector<heat_region> heat_map_of(std::span<const placed_object> sorted, std::size_t cells,
                                     std::uint64_t gap_bytes,
                                     const std::function<std::string(std::uintptr_t)>& name_of);

} // namespace obase::tools
