// SPDX-License-Identifier: MIT
//
// backend: hears after a window what is hot and cold, and takes out of memory what the policy asks
// for.
//
// A backend sees the tiers as views: where their objects lie, what was touched and filled in the
// window, which files lie beneath, and what should leave memory. It reports how many bytes of each tier
// really left; the policy is told at the end of the next window. hints.hpp (the backend `kernel`) is
// one implementation. To add one: docs/architecture.md, "How to add a backend".
//
// Threads: the collector thread only.
#pragma once

#include "backend/intervals.hpp"
#include "policy/tiers.hpp"

#include <obase/options.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace obase::backend {

// One tier as a backend sees it. Intervals are of addresses.
struct tier_view {
    policy::tier role;
    intervals extents;            // committed, not empty
    intervals touched;            // pages of objects touched in the window that ended
    intervals filled;             // written by the mover in that window
    intervals leaving;            // what the policy asks to leave memory; part of the extents
    std::uintptr_t file_base = 0; // address of offset 0 of each file
    struct file_stretch {
        std::uintptr_t begin;
        std::uintptr_t end;
        int fd; // -1: not to be written back from here
    };
    std::vector<file_stretch> files; // in address order; none: anonymous memory
};

// A large object that lies outside of the tiers, in the role of one: it is too large to move, or should have
// moved there in the window and could not.
struct large_view {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    policy::tier_id role = 0;
    bool leaving = false;
    bool touched = false; // in the window that ended
};

struct window_view {
    std::vector<tier_view> tiers; // by tier id
    std::vector<large_view> large;
};

// Since creation; the collector copies them into its statistics.
struct totals {
    std::uint64_t cold_bytes = 0;     // advised as cold
    std::uint64_t page_out_bytes = 0; // asked to leave
    std::uint64_t huge_bytes = 0;
    std::uint64_t collapsed_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t failures = 0;
    bool stopped = false; // for good, after an error
    // The bytes that really left memory, by tier; large objects count for their role.
    std::array<std::uint64_t, policy::max_tiers> paged_out_bytes{};
    // How long a page of the tier that left memory takes to come back, smoothed; 0: not measured.
    std::array<double, policy::max_tiers> fault_seconds{};
};

using asker = std::function<bool()>;                       // false = stop for this window
using messenger = std::function<void(const std::string&)>; // one line for the user

class backend {
  public:
    virtual ~backend() = default;
    // After a window in mode hint. Asks `may_continue` between two pieces of work, which may pause
    // in it; what is left is done after the next window.
    virtual void after_window(const window_view& window, const options& settings,
                              const asker& may_continue) noexcept = 0;
    // Between two windows, in mode hint: view.leaving was filled just now with what the program expects to be cold, and
    // should leave memory at once. A backend may leave that to a window.
    virtual void page_out(policy::tier_id, const tier_view&, const options&,
                          const asker&) noexcept {}
    // After a window in another mode, or one for which there was no memory to make the view: what was
    // told may have been touched, freed or filled since.
    virtual void skip_window() noexcept = 0;
    virtual const totals& done() const noexcept = 0;
};

} // namespace obase::backend
