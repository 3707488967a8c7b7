// SPDX-License-Identifier: MIT
//
// backend::hints, the backend `kernel`: tells the kernel after a window which memory is cold and which
// is hot.
//
// By the roles of the tiers (in brackets those of the policy `papers`):
//   cold (COLD)
//          MADV_COLD on what is new there, was filled or was touched since it was last advised
//   reclaimable (COLD)
//          MADV_PAGEOUT on what the policy asks to leave and has not been paged out yet. What really
//          left is counted by looking which pages are resident before and after, and what stayed is
//          asked again in the next two windows. A page stays while the kernel uses it, and while it lies in
//          the list of new pages of a processor other than the collector's (up to 31 of each).
//   promoted to (HOT)
//          MADV_HUGEPAGE, by option, on new extents, whole 2 MiB units; then MADV_COLLAPSE, because
//          the mover has filled them with small pages by then, and the kernel's own thread
//          (khugepaged) makes only some 16 MiB of them huge in ten seconds. The units have no holes,
//          so no memory is added.
//   LARGE  objects that do not move: one in the role of a reclaimable tier is advised like what
//          lies there.
// Every hint has its own switch. A hint never changes what memory holds.
//
// The modes off, observe and move give no hints. Free memory is decommitted by
// heap::space::decommit_free_memory().
//
// File-backed COLD: MADV_PAGEOUT unmaps pages of a shared file mapping, but the page cache keeps
// them until they are clean and dropped. So: start the write-back of everything, then per piece
// wait for it, unmap, drop. The wait comes before the drop because a page whose write-back failed
// is marked clean, and dropping it would lose data: after any error the piece is left alone.
// After a fork COLD may lie over several files. What lies over a frozen one (heap/dense.hpp) is mapped
// privately; the same three steps are right for it: its clean pages go, and pages that were written
// since the fork are anonymous, which MADV_PAGEOUT swaps out or leaves and the other two do not see.
// Where this process has no descriptor of the file, MADV_COLD is all that is given.
//
// Failures: EIO or ENOSPC ends all hints for good with one message; a refusal that will repeat
// (EINVAL, EPERM, ENOSYS) ends that kind of hint with one message; anything else is counted and
// tried again in a later window. The program always goes on. MADV_COLLAPSE is an extra: that a
// kernel does not have it is worth no message, and that a unit cannot be made huge is no failure. Where
// that may pass (no free huge page, a page in use) it is tried again after the next window.
//
// What a fault costs is measured: in each window the time in which three pages come back that left in an
// earlier one (MADV_POPULATE_READ). They leave again.
//
// Pauses: work is cut into pieces of `piece_bytes`; between two pieces the caller's `may_continue`
// is asked, so that the collector can keep its share of the processor and obey a stop. What is left
// is done after the next window.
//
// Threads: the collector thread only.
#pragma once

#include "backend/backend.hpp"
#include "backend/intervals.hpp"

#include <obase/options.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace obase::backend {

struct hint_switches {
    bool cold = true;
    bool page_out = true;
    bool huge = false;
};

inline hint_switches hint_switches_of(const options& settings) noexcept {
    return {settings.hint_cold, settings.hint_pageout, settings.hint_hugepage};
}

class hints final : public backend {
  public:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t huge_bytes = std::size_t{2} << 20;
    static constexpr std::size_t piece_bytes = std::size_t{16} << 20;
    static constexpr std::uint64_t large_memory_windows = 64;
    static constexpr unsigned fault_samples = 3;   // in a window and tier
    static constexpr double fault_weight = 1. / 8; // of a window, in totals::fault_seconds
    static constexpr double slowest_fault = 20e-3; // seconds; what is longer is no fault's time

    explicit hints(messenger say) : say_(std::move(say)) {}

    // A large object that scans no longer visit is forgotten after large_memory_windows windows; nothing
    // is lost but the knowledge that it was advised.
    void after_window(const window_view& window, const options& settings,
                      const asker& may_continue) noexcept override;

    void page_out(policy::tier_id id, const tier_view& view, const options& settings,
                  const asker& may_continue) noexcept override;

    // Everything is forgotten, and advised again when hints come back.
    void skip_window() noexcept override;

    const totals& done() const noexcept override { return totals_; }

  private:
    enum kind : unsigned { kind_cold, kind_page_out, kind_huge, kind_count };
    static constexpr unsigned most_tries = 3; // until it is touched again
    struct outcome {
        intervals asked; // the calls succeeded
        intervals gone;  // part of it: not resident any more
    };
    struct tier_state {
        intervals advised;   // memory that MADV_COLD has seen in its present state
        intervals paged_out; // memory that MADV_PAGEOUT has taken in its present state, or will not
        std::array<intervals, 2> stayed; // that it did not take: once; twice
        intervals huge;                  // memory that MADV_HUGEPAGE has seen
        intervals collapsed;             // memory for which MADV_COLLAPSE has done what it can
    };
    struct large_state {
        std::size_t bytes = 0;
        std::uint64_t seen_in = 0; // window number
        bool advised = false;
        bool paged_out = false;
        std::uint8_t tries = 0;
    };
    // A tier, or a large object in its role, in the window being worked on.
    struct work {
        policy::tier_id id;
        const policy::tier& role;
        const hint_switches& switches;
        const asker& may_continue;
        bool advises_cold() const noexcept { return switches.cold && role.cold; }
    };

    void forget_all() noexcept;
    void forget() noexcept;
    bool usable(kind which) const noexcept { return !totals_.stopped && !refused_[which]; }
    bool accepted(const char* call, int error, bool* refused = nullptr);
    outcome advise(kind which, const intervals& todo, const work& now);
    outcome page_out_tier(const tier_view& view, const intervals& todo, const work& now);
    outcome page_out_file(const tier_view& view, const intervals& todo, const work& now);
    static intervals given_up(tier_state& state, const intervals& stayed);
    void hint_reclaimable(const tier_view& view, tier_state& state, const work& now);
    void measure_faults(tier_state& state, policy::tier_id id);
    double fault_time(tier_state& state);
    void hint_promoted(const tier_view& view, tier_state& state, const work& now);
    void collapse(const intervals& todo, tier_state& state, const work& now);
    void hint_large(const window_view& window, const hint_switches& switches,
                    const asker& may_continue);
    void hint_large_object(const large_view& seen, large_state& state, const work& now);

    messenger say_;
    totals totals_;
    bool refused_[kind_count] = {};
    bool no_populate_ = false; // the kernel has none
    std::minstd_rand random_;  // which pages are sampled
    std::array<tier_state, policy::max_tiers> tiers_;
    std::unordered_map<std::uintptr_t, large_state> large_;
    std::uint64_t window_ = 0;
};

} // namespace obase::backend
