// SPDX-License-Identifier: MIT
//
// obase::statistics: what the runtime counted, as plain numbers.
//
// A snapshot that belongs together, taken at the end of a window. Two tables (one for the runtime,
// one for each heap) generate the struct, the JSON text, the Prometheus text, the text of
// OBASE_SHOW_STATS=1 and (compared by a test) the tables in docs/statistics.md. How many tiers
// there are, and their names, are the policy's: objects moved are counted by the pair of tiers.
//
// The numbers change once per window; those of a window that is still running are not visible.
//
//     obase::statistics now = runtime.statistics();
//     std::puts(now.to_prometheus().c_str());
//     std::uint64_t promoted = now.moved("new", "hot");
#pragma once

#include <obase/language.hpp>

#include <obase/export.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace obase {

// A counter only grows (per-window records hold its growth); a gauge is a value of its window.
// Units are base units; names of bytes and seconds end in the unit.
// ROW(counter|gauge, whole|real, name, unit, help)
#define OBASE_STATISTICS(ROW)                                                                      \
    ROW(counter, whole, windows, "windows", "scans completed")                                     \
    ROW(counter, whole, early_windows, "windows",                                                  \
        "those of them that were begun before their time because memory was over its budget")      \
    ROW(gauge, real, window_seconds, "seconds", "length of the window that ended last")            \
    ROW(gauge, real, time_scale, "ratio", "what every time constant was divided by")               \
    ROW(counter, whole, scanned_guides, "guides", "guides visited by scans")                       \
    ROW(counter, whole, touched_guides, "guides", "visited guides that had been dereferenced")     \
    ROW(counter, whole, armed_guides, "guides", "guides set to report their next dereference")     \
    ROW(counter, whole, deferred_promotions, "objects",                                            \
        "touched objects left in NEW because what is promoted dies young there")                   \
    ROW(counter, whole, moved_objects, "objects", "objects moved from one tier to another")        \
    ROW(counter, whole, compacted, "objects",                                                      \
        "objects moved within their heap to fill it densely")                                      \
    ROW(counter, whole, moved_bytes, "bytes", "bytes of all moved objects")                        \
    ROW(counter, whole, vetoed_moves, "objects",                                                   \
        "moves given up because a thread touched the "                                             \
        "object")                                                                                  \
    ROW(counter, whole, pinned_skips, "objects", "moves not tried because the object was pinned")  \
    ROW(counter, whole, no_room_skips, "objects",                                                  \
        "moves not tried because the target heap had no "                                          \
        "room or no memory")                                                                       \
    ROW(counter, whole, no_budget_skips, "objects",                                                \
        "moves out of a file not tried because of the limit on memory")                            \
    ROW(counter, whole, write_limit_skips, "objects",                                              \
        "moves into a file not tried because of the limit on what is written there")               \
    ROW(counter, whole, file_moved_bytes, "bytes",                                                 \
        "bytes of objects moved into a file, or within it")                                        \
    ROW(counter, whole, postponed_moves, "objects",                                                \
        "moves not tried in a window because the holes in dense heaps were at their bound")        \
    ROW(gauge, whole, foreign_objects, "objects",                                                  \
        "guides of the last scan whose object lies "                                               \
        "outside the heaps and never moves")                                                       \
    ROW(counter, whole, waits, "waits", "waits for scopes that could still hold an old address")   \
    ROW(counter, real, wait_seconds, "seconds", "time spent in those waits")                       \
    ROW(counter, whole, abandoned_waits, "waits", "waits given up because a scope stayed open")    \
    ROW(counter, whole, stuck_scopes, "scopes", "scopes reported for staying open over windows")   \
    ROW(counter, whole, retired_objects, "objects", "objects handed to retire")                    \
    ROW(counter, whole, reclaimed_objects, "objects", "retired objects that were freed")           \
    ROW(gauge, whole, pending_objects, "objects", "retired objects not yet freed")                 \
    ROW(gauge, whole, would_move_objects, "objects",                                               \
        "observe mode: objects that would have moved")                                             \
    ROW(gauge, whole, would_move_bytes, "bytes", "observe mode: bytes of those objects")           \
    ROW(gauge, whole, would_save_pages, "pages",                                                   \
        "4 KiB pages by which the working set of the window would shrink if its objects lay "      \
        "densely")                                                                                 \
    ROW(gauge, real, promotion_rate, "fraction per minute",                                        \
        "share of the working set's pages "                                                        \
        "that were touched in COLD")                                                               \
    ROW(gauge, real, predicted_faults, "faults per second",                                        \
        "touches of pages that left memory, as the policy expects them; 0 if it does not say")     \
    ROW(gauge, real, predicted_stall, "fraction",                                                  \
        "time that threads wait for these, as a share of the time for which they run")             \
    ROW(gauge, real, measured_faults, "faults per second",                                         \
        "page faults of the last window that had to read, without the collector's")                \
    ROW(gauge, whole, budget_bytes, "bytes",                                                       \
        "memory that may be used, by the option memory; 0: as much as there is")                   \
    ROW(gauge, whole, budget_used_bytes, "bytes", "what counts against it")                        \
    ROW(counter, whole, allocation_waits, "waits",                                                 \
        "allocations that waited for an early window because memory was over its budget")          \
    ROW(counter, real, allocation_wait_seconds, "seconds",                                         \
        "time that threads spent in those waits")                                                  \
    ROW(gauge, whole, cold_threshold, "windows", "C_t in force for the next window")               \
    ROW(gauge, whole, working_set_pages, "pages",                                                  \
        "unique managed 4 KiB pages touched in the "                                               \
        "window")                                                                                  \
    ROW(gauge, whole, cold_pages_touched, "pages", "those of them in reclaimable tiers")           \
    ROW(gauge, whole, pageout_allowed, "flag",                                                     \
        "1 when the promotion rate has been below its "                                            \
        "target for long enough")                                                                  \
    ROW(counter, whole, hint_cold_bytes, "bytes", "memory advised with MADV_COLD")                 \
    ROW(counter, whole, hint_pageout_bytes, "bytes", "memory advised with MADV_PAGEOUT")           \
    ROW(counter, whole, paged_out_bytes, "bytes", "bytes found to have left memory after that")    \
    ROW(counter, whole, hint_hugepage_bytes, "bytes", "memory advised with MADV_HUGEPAGE")         \
    ROW(counter, whole, hint_collapsed_bytes, "bytes", "memory made huge with MADV_COLLAPSE")      \
    ROW(counter, whole, hint_written_bytes, "bytes",                                               \
        "bytes of the COLD file written back before "                                              \
        "their pages were dropped")                                                                \
    ROW(counter, whole, hint_failures, "calls", "hints that the kernel refused")                   \
    ROW(gauge, whole, hints_stopped, "flag", "1 after an I/O error ended all hints")               \
    ROW(counter, whole, decommitted_bytes, "bytes", "free pages given back to the kernel")         \
    ROW(counter, whole, failed_allocations, "objects", "allocations the heaps could not serve")    \
    ROW(counter, whole, near_missed, "objects",                                                    \
        "objects that were to lie near another one or in a group, and could not")                  \
    ROW(counter, whole, invalid_frees, "frees",                                                    \
        "frees without effect: no object begins there, or it was freed before")                    \
    ROW(gauge, whole, soda_leaves, "leaves", "leaves of the map of guides in use")                 \
    ROW(gauge, whole, soda_bytes, "bytes", "memory of the map of guides")                          \
    ROW(gauge, whole, slot_state_bytes, "bytes", "memory of what the policy remembers of guides")  \
    ROW(gauge, whole, heap_metadata_bytes, "bytes", "memory of the heaps' own tables")             \
    ROW(gauge, whole, peak_resident_bytes, "bytes",                                                \
        "most memory that the process has had resident so far, all of it, not the heaps' only")    \
    ROW(counter, real, collector_cpu_seconds, "seconds", "processor time used by the collector")

// Per heap. ROW(gauge, whole, name, unit, help)
#define OBASE_HEAP_STATISTICS(ROW)                                                                 \
    ROW(gauge, whole, live_bytes, "bytes", "bytes of live objects")                                \
    ROW(gauge, whole, live_objects, "objects", "live objects")                                     \
    ROW(gauge, whole, extent_bytes, "bytes", "memory committed and not given back")                \
    ROW(gauge, whole, hole_bytes, "bytes", "committed bytes that hold no live object")             \
    ROW(gauge, whole, runs, "runs", "64 KiB runs in use")                                          \
    ROW(gauge, whole, evacuating_runs, "runs", "runs being emptied by compaction")                 \
    ROW(gauge, whole, touched_pages, "pages", "unique 4 KiB pages touched in the window")          \
    ROW(gauge, whole, touched_bytes, "bytes", "bytes of the objects touched in the window")        \
    ROW(gauge, whole, leaves_after, "windows",                                                     \
        "idle windows after which the first pages leave memory now; 255: none does")               \
    ROW(gauge, real, fault_seconds, "seconds",                                                     \
        "how long a page that left takes to come back, as measured; 0: not measured")

// The field types behind `whole` and `real`.
namespace statistic_type {
using whole = std::uint64_t;
using real = double;
} // namespace statistic_type

#define OBASE_DECLARE_STATISTIC(kind, type, name, unit, help) statistic_type::type name = 0;

struct heap_statistics {
    OBASE_HEAP_STATISTICS(OBASE_DECLARE_STATISTIC)
};

struct OBASE_EXPORT statistics {
    static constexpr unsigned max_tiers = 15;
    static constexpr unsigned max_heaps = max_tiers + 1; // and the heap of large objects

    OBASE_STATISTICS(OBASE_DECLARE_STATISTIC)

    unsigned heap_count = 0; // entries of `heaps` in use; the last is the heap of large objects
    std::array<heap_statistics, max_heaps> heaps{};
    std::array<const char*, max_heaps> heap_names{}; // static texts: "new", "hot", ..., "large"
    std::uint32_t reclaimable_tiers = 0;             // bit t: memory of the tier heaps[t] may leave
    // Objects moved from a tier to another, [from][to]. A counter.
    std::array<std::array<std::uint64_t, max_tiers>, max_tiers> moved_between{};
    const char* mode = "";     // static text
    const char* protocol = ""; // static text

    unsigned tiers() const { return heap_count == 0 ? 0 : heap_count - 1; }
    // "new", "hot", "cold", "large" with the policy `papers`; "" beyond heap_count.
    std::string_view heap_name(unsigned cls) const {
        return cls < heap_count && heap_names[cls] != nullptr ? heap_names[cls] : "";
    }
    // Objects moved between the tiers of these names; 0 if there are no such tiers.
    std::uint64_t moved(std::string_view from, std::string_view to) const;

    std::string to_json() const;
    std::string to_prometheus() const;
    std::string to_text() const;
};
#undef OBASE_DECLARE_STATISTIC

// One window of the history that is not early, with the early ones before it: counters hold their growth within it.
struct window_record {
    std::uint64_t index = 0;     // counts from 1
    double end_unix_seconds = 0; // wall clock at the end of the window
    statistics values;
};

OBASE_EXPORT std::string to_json(const std::vector<window_record>& history);

// A row of the tables as text, for documents and generators.
struct statistic_row {
    std::string_view name;
    std::string_view kind; // "counter" or "gauge"
    std::string_view unit;
    std::string_view help;
};
OBASE_EXPORT std::vector<statistic_row> statistic_rows();
OBASE_EXPORT std::vector<statistic_row> heap_statistic_rows();

} // namespace obase
