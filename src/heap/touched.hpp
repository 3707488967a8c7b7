// SPDX-License-Identifier: MIT
//
// touched_map: which OS pages of one range held a touched object in this window.
//
// One bit per 4 KiB page, 16 to a run, with a summary bit per run, so that counting is incremental
// and clearing costs what was touched. Collector thread only, no locks, no atomics.
//
// What is resident is read in os/process.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/reserved_array.hpp"

namespace obase::heap {

struct touched {
    std::uint64_t pages = 0; // unique OS pages
    std::uint64_t bytes = 0; // sum of the sizes of the objects marked
};

class touched_map {
  public:
    bool create(std::size_t range_bytes) noexcept;
    void destroy() noexcept;
    // Marks [offset, offset+size) of the range. Without memory for the bits nothing is counted.
    void mark(std::size_t offset, std::size_t size) noexcept;
    touched totals() const noexcept { return totals_; }
    void clear() noexcept;
    bool run_touched(std::size_t offset) const noexcept;
    // Calls visit(context, first run, one past the last) for maximal stretches of touched runs.
    void walk(void (*visit)(void*, std::size_t, std::size_t), void* context) const;
    // The same of pages, counted from the range's first.
    void walk_pages(void (*visit)(void*, std::size_t, std::size_t), void* context) const;
    std::size_t metadata_bytes() const noexcept {
        return pages_.committed_bytes() + runs_.committed_bytes();
    }

  private:
    reserved_array<std::uint16_t> pages_; // per run
    reserved_array<std::uint64_t> runs_;  // one bit per run
    std::size_t words_ = 0;               // words of runs_ that may be nonzero
    touched totals_;
};

} // namespace obase::heap
