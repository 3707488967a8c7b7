// SPDX-License-Identifier: MIT
//
// policy::fault_price: how long may a page of each tier be idle before it leaves memory?
//
// One price for all tiers, in seconds of stall per byte of memory: an age limit that saves a byte
// more cheaply elsewhere is never chosen. An LRU, or one age for all pages, keeps the page of a cold tier
// that was touched by chance, and drops the page of a hot one that was not.
//
//     fault_price price;
//     each window: price.begin();
//                  for each tier that may leave: price.learn(tier, ages, {...});
//                  price.choose({.stall_seconds = ..., .excess_pages = ...});
//     price.leaves(tier, place)
//
// What is learned of a tier: of a page that has been idle for a windows, how likely it is that the next
// touches it (the hazard), from touches and exposures that fade by 1/8 in each window that adds to them. Ages
// beyond 8 share four cells an octave. `assumed` is what is believed before anything was seen, and weighs as much as
// `assumed_pages` pages that were watched for a window.
//
// What leaves stays out until it is touched. So pages that are out under a limit T count with the faults of the
// next window, or with one fault each in the windows that a page needs, on the mean, from the age T + 1 to its
// next touch, whichever is more. The first alone would call the quiet time of pages that come back together a
// bargain; the second takes all pages of a tier for alike.
//
// From these rates and the ages of the pages now follows for every limit T what is resident and how many
// faults a window has; half of what comes back in a window counts as resident. Of each tier's points
// (resident, stall) the lower convex hull is kept, and of all tiers' steps along their hulls those are taken
// that save a byte at the least stall: without a budget as long as the stall that all of them cost is allowed, with
// one while more is resident than may be, and no longer. What may be is said as a difference from what is resident now,
// so that what pages outside of these tiers take counts, too. Of the last step as many pages leave as are allowed, by
// their addresses; its stall per byte is the price.
//
// A limit falls at most to half of what it is, or of the oldest page's age if that is less, in a window, and
// rises at most to twice as much and two.
//
// Source: docs/temperature.md. Cost: some 10,000 steps a window; 40 KiB. Threads: the collector.
#pragma once

#include "policy/placement.hpp"
#include "policy/tiers.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace obase::policy {

class fault_price {
  public:
    static constexpr int never = reuse_ages::oldest; // as a limit: no page is older
    static constexpr double page_bytes = 4096;
    static constexpr double assumed_pages = 32;

    struct tier_facts {
        double assumed = 0;       // hazard of a page per window, 0 to 1
        double fault_seconds = 0; // how long a thread waits for a page of this tier that is out
    };
    struct allowance {
        double stall_seconds = 0; // by all faults of a window; counts without a budget
        // By which fewer should be resident in all tiers that may leave; < 0: so many more may; -infinity: there
        // is no budget.
        double excess_pages = -std::numeric_limits<double>::infinity();
        double out_pages = 0; // of these tiers, that are not resident now
    };

    // Tiers that are not told of until choose() keep all of their pages. `ages` must live until then. Of a
    // window that does not count only the ages of the pages now are taken.
    void begin() noexcept;
    void learn(tier_id id, const reuse_ages& ages, const tier_facts& facts,
               bool counts = true) noexcept;
    // Without memory for the steps the limits stay as they are.
    void choose(const allowance& allowed) noexcept;

    bool leaves(tier_id id, const place& piece) const noexcept {
        const tier& t = tiers_[id];
        const auto idle = static_cast<int>(piece.idle_windows);
        return idle > t.limit || (idle > t.lower_limit && drawn(piece.begin) < t.share_lower);
    }
    // Pages of the tier that are older leave; -1: all do; `never`: none does. A share of them leaves under
    // a lower limit.
    int limit(tier_id id) const noexcept { return tiers_[id].limit; }
    int lower_limit(tier_id id) const noexcept { return tiers_[id].lower_limit; }
    // As chosen last. Stall per byte, both per window; 0: no page leaves, or what leaves costs nothing.
    double stall_per_byte() const noexcept { return price_; }
    // Of all tiers, under the limits, in a window.
    double faults() const noexcept { return faults_; }
    double stall_seconds() const noexcept { return stall_; }
    double resident_pages() const noexcept { return resident_; }

  private:
    static constexpr unsigned single_ages = 8; // that have a cell of their own
    static constexpr unsigned cells = single_ages + 4 * 5;
    static constexpr double kept = 7. / 8; // of what was learned, from one window to the next

    struct cell {
        double exposed = 0;
        double touched = 0;
    };
    struct tier {
        std::array<cell, cells> learned{};
        // Faults per window of a page that left at the age.
        std::array<double, reuse_ages::oldest + 1> rate{};
        const reuse_ages* ages = nullptr; // of this window; null: not told of
        tier_facts facts;
        int limit = never;
        int lower_limit = never; // of a share of the runs
        double share_lower = 0;
    };
    struct point { // under one limit
        int limit;
        double resident;
        double faults;
    };
    struct step { // along the hull of a tier
        tier_id id;
        int limit;              // after it
        double resident, stall; // changes
        double price;           // stall for a page
    };

    static unsigned cell_of(unsigned age) noexcept;
    static int oldest_page(const reuse_ages& ages) noexcept; // -1: there is none
    static double hazard(const tier& t, unsigned age) noexcept;
    static void add(tier& t, const reuse_ages& ages) noexcept;
    static void find_rates(tier& t) noexcept;
    // In [0, 1), by the 64 KiB run of the address.
    static double drawn(std::uintptr_t address) noexcept {
        const auto run = static_cast<std::uint32_t>(address >> 16);
        return static_cast<double>((run * 0x9e3779b1u) >> 8) / double{1u << 24};
    }
    void settle(tier& t, int limit, int lower, double share) noexcept;
    void collect(tier_id id);
    point under(const tier& t, int limit) const noexcept;
    point under_limits(const tier& t) const noexcept; // of the tier, as they are

    std::array<tier, max_tiers> tiers_;
    std::vector<point> hull_;
    std::vector<step> steps_;
    double price_ = 0, faults_ = 0, stall_ = 0, resident_ = 0;
};

} // namespace obase::policy
