// SPDX-License-Identifier: MIT
//
// policy::placement: in which tier should each object live, and what may leave memory?
//
// The interface between the collector, which sees words and addresses, and a policy, which sees for
// each window what a scan learned. The policy gives the tiers and their roles (tiers.hpp). It is
// asked once per SODA word, that is for up to 64 slots at a time, and may keep up to 16 bits of state
// per slot: the collector stores them, moves them with their slots and drops them when a slot ends.
// A policy never touches memory that belongs to the heaps, so it is tested without a runtime.
//
// One window, in this order:
//     begin_window()    with the live bytes of each tier
//     decide()          for every word that has slots
//     end_of_window()   with what was touched, moved and freed
//     leaves()          for the pages and the large objects of tiers with the role `reclaimable`
//
// To add one: docs/architecture.md, "How to add a policy".
//
// Threads: the collector thread, and configure() while the collector is parked. No function of the
// interface may wait or throw.
#pragma once

#include "policy/reuse_ages.hpp"
#include "policy/tiers.hpp"

#include <obase/options.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace obase::policy {

// What a policy may ask about the objects of a word. Each costs a look into the heap's tables, so it
// is asked only where the answer decides. `slot` is a bit number of word_facts::seen.
class objects {
  public:
    virtual bool never_cold(unsigned slot) const noexcept = 0; // allocation asked for it
    virtual std::size_t size(unsigned slot) const noexcept = 0;
    // Of the 64 KiB run in which an object of the first tier lies, or of its own pages if it is large: the
    // share that live objects take.
    virtual double live_fraction_of_run(unsigned slot) const noexcept = 0;
    // The page in which the object begins was asked to leave memory after the window before. It may have been
    // touched since.
    virtual bool out(unsigned slot) const noexcept = 0;

  protected:
    ~objects() = default;
};

// What a scan learned about the slots of one SODA word. Bit i of a mask, and entry i of an array,
// belong to the same slot. Array entries without their bit in `seen` are undefined.
struct word_facts {
    std::uintptr_t base = 0; // address of the word's first slot
    std::uint64_t seen = 0;  // has a managed object; the other masks are parts of it
    std::uint64_t touched = 0;
    std::uint64_t newborn = 0; // first visit, and not touched: its window was not a whole one
    std::uint64_t movable = 0; // may be moved in this window
    std::uint64_t unmoved = 0; // too large to move; tier[i] is the number of tiers
    // What the program expected when it allocated them (obase/allocation_options.hpp), of objects that are where
    // they were born: a prior for what has not been seen yet.
    std::uint64_t expected_hot = 0, expected_cold = 0, expected_once = 0;
    tier_mask tiers = 0; // tiers in which an object of the word lies
    unsigned oldest = 0; // the largest idle[i]
    bool again = false;  // a second look in the same window: changes of the state are dropped
    std::array<std::uint8_t, 64> tier;
    // Consecutive windows without a touch, the one that just ended included. 0 when touched. Early windows
    // do not count: 0 also for what was touched since the last other window, as an early one has seen. Where words
    // count windows (ATC) that may be two too many.
    std::array<std::uint32_t, 64> idle;
    // The same with early windows, where the protocol can say (arming); else `idle`.
    std::array<std::uint32_t, 64> quiet;
    // The lowest state_bits() bits are kept. 0 for a slot that is new here. In and out.
    std::array<std::uint16_t, 64> state;
    const objects* about = nullptr;
};

// The answer. Entries of `to` count for the slots in `move` and, as the tier in whose role the object
// stays where it is, for those in word_facts::unmoved.
struct word_verdict {
    std::uint64_t move = 0;
    std::uint64_t held = 0; // for the statistics: left in the first tier though it was touched
    // Part of `move`: leaves the first tier at once, though what may be resident twice is used up.
    std::uint64_t sample = 0;
    std::array<std::uint8_t, 64> to;
    void send(unsigned slot, tier_id target) noexcept {
        move |= std::uint64_t{1} << slot;
        to[slot] = static_cast<std::uint8_t>(target);
    }
};

// An *early* window was begun before its time, because threads that allocate wait for memory. It says what was
// not touched for a moment, but not how often: what a policy learns by counting windows it leaves out.
struct window_beginning {
    bool moves = false; // false: decisions are counted only
    bool early = false;
    // Bytes that should leave memory so that threads need not wait; 0: none do.
    std::uint64_t wanted_bytes = 0;
    std::array<std::uint64_t, max_tiers> live_bytes{};
};

// What one window did, in the collector's own numbers.
struct window_facts {
    bool early = false;
    // Really elapsed since the end of the previous window; of the last that was not early, unless this one is.
    double length_seconds = 0;
    std::uint64_t touched_pages = 0; // unique managed 4 KiB pages touched, of large objects too
    struct tier_facts {
        std::uint64_t touched_pages = 0;
        std::uint64_t live_bytes = 0; // at its end, after its moves
        std::uint64_t live_objects = 0;
        std::uint64_t paged_out_bytes =
            0; // that really left memory at the end of the window before
        std::uint64_t out_bytes =
            0;                  // pages that left, and in which nothing was touched or filled since
        bool can_leave = false; // mode hint, and the tier lies in a file or there is swap
        // How long a thread waits for a page that is out, as measured; 0: not yet.
        double fault_seconds = 0;
        const reuse_ages* ages = nullptr; // null: not reclaimable
    };
    // Bytes by which the process takes more than its budget, or than lets threads go on that wait; < 0: it may
    // grow; -infinity: it has none. With a budget no more leaves memory than that, whatever the policy asks for.
    double excess_bytes = -std::numeric_limits<double>::infinity();
    // Of the program's threads, not the collector's, since the last window that was not early; 0 in early ones.
    double running_seconds = 0; // processor time
    std::uint64_t major_faults = 0;
    std::array<tier_facts, max_tiers> tiers{};
    std::array<std::array<std::uint64_t, max_tiers>, max_tiers> moved_bytes{}; // [from][to]
};

// What holds until the next end_of_window(): for the statistics, and for the collector's clock.
struct directives {
    unsigned cold_threshold = 0; // C_t
    double promotion_rate = 0;   // of the window that ended
    bool pageout_allowed = false;
    unsigned pageout_after =
        0; // windows below the promotion target that are missing; 0: not known, or none
    // Of the length that was asked for, how long the next window should be; at most 1.
    double window_factor = 1;
    // Predicted for the next window, of pages that are out; 0 where the policy does not predict.
    double faults = 0;
    double stall_seconds = 0;
    friend constexpr bool operator==(const directives&, const directives&) = default;
};

// A piece of a tier that could leave memory: pages of one age, or a large object.
struct place {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    // Windows since an object in it was touched, 0: touched in the last window; at most
    // reuse_ages::oldest for pages.
    unsigned idle_windows = 0;
};

class placement {
  public:
    virtual ~placement() = default;

    virtual const tier_table& tiers() const noexcept = 0;
    virtual unsigned state_bits() const noexcept { return 0; } // 0 to 16; never changes
    // The options have changed. Called between two windows, and before the first.
    virtual void configure(const options&) noexcept {}

    virtual void begin_window(const window_beginning&) noexcept {}
    virtual void decide(word_facts& word, word_verdict& verdict) noexcept = 0;
    virtual directives end_of_window(const window_facts& facts) noexcept = 0;
    // Runs behind the first tier whose live share is below this are evacuated. `asked`: the option
    // compaction_live_fraction, more than 0.
    virtual double compacted_below(double asked) const noexcept { return asked; }
    // True if the place, in the tier or in its role, should leave memory now.
    virtual bool leaves(tier_id id, const place& piece) const noexcept = 0;
};

} // namespace obase::policy
