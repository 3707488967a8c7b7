// SPDX-License-Identifier: MIT
//
// policy::placement: where should this object live, and how aggressive should the next window be?
//
// What it is: the interface between the collector, which sees words and addresses, and a policy,
// which sees one observation per object and window. A policy never touches memory that belongs to
// the heaps, so every decision can be tested without a runtime.
//
// When not to use it: for what the kernel is told (backend::hints decides that from `directives`).
//
// Threads: the collector thread only. decide() is called once per scanned guide and allocates
// nothing; the policies are `final` and decide() is inline, so a collector that knows the concrete
// type pays no indirect call.
#pragma once

#include <cstdint>

namespace obase::policy {

// What one scan learned about one object.
struct observation {
    unsigned cls = 0; // temperature class it lies in
    // CIW: consecutive windows without a touch, the one that just ended included. 0 when touched.
    unsigned inactive_windows = 0;
    bool touched = false;    // dereferenced since the last scan
    bool never_cold = false; // the per-object flag of heap::attributes
    bool newborn = false;    // seen by a scan for the first time: its window was not a whole one
};

struct decision {
    bool move = false;
    unsigned target = 0; // the class to move to, meaningful when `move`
    static constexpr decision stay() { return {}; }
    static constexpr decision to(unsigned cls) { return {true, cls}; }
    friend constexpr bool operator==(const decision&, const decision&) = default;
};

// What one window did, in the collector's own numbers.
struct window_facts {
    double length_seconds = 0;         // really elapsed since the end of the previous window
    std::uint64_t touched_pages = 0;   // unique managed pages touched: the working set
    std::uint64_t cold_pages = 0;      // those of them that lie in COLD
    std::uint64_t cold_live_bytes = 0; // live bytes in COLD at its end, after its moves
};

// What holds until the next end_of_window().
struct directives {
    unsigned cold_threshold = 0; // C_t
    double promotion_rate = 0;   // of the window that ended
    bool pageout_allowed = false;
    friend constexpr bool operator==(const directives&, const directives&) = default;
};

class placement {
  public:
    virtual ~placement() = default;
    virtual unsigned classes() const noexcept = 0; // how many temperature classes it places into
    virtual decision decide(const observation& seen) const noexcept = 0;
    // Called once per window, after the last decide() and before the hints of that window.
    virtual directives end_of_window(const window_facts& facts) noexcept = 0;
    virtual directives current() const noexcept = 0;
};

} // namespace obase::policy
