// SPDX-License-Identifier: MIT
#include "runtime/why_not_freed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace obase::runtime_internal {

namespace {

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string((bytes + (1u << 19)) >> 20) + " MiB";
}
std::string percent(double fraction) {
    return std::to_string(static_cast<int>(std::lround(100 * fraction))) + " %";
}
std::string seconds(double count) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", count);
    return text;
}

// Live bytes of all heaps, of large objects (the last heap) and of the tiers whose memory may leave.
struct sizes {
    std::uint64_t all = 0, large = 0, cold = 0;
};
sizes sizes_of(const statistics& seen) {
    sizes found;
    for (unsigned cls = 0; cls < seen.heap_count; ++cls) {
        const std::uint64_t bytes = seen.heaps[cls].live_bytes;
        found.all += bytes;
        if (cls + 1 == seen.heap_count) found.large = bytes;
        if ((seen.reclaimable_tiers >> cls & 1U) != 0) found.cold += bytes;
    }
    return found;
}

bool has_swap(const system_facts& facts) {
    return facts.machine.swap_total != 0 && facts.container.swap_bytes != 0;
}

bool lies_in_file(const options& settings, const system_facts& facts) {
    return !settings.cold_directory().empty() && facts.cold_directory.exists &&
           facts.cold_directory.open_error == 0 && !facts.cold_directory.in_memory;
}

std::string because_of_mode(const options& settings, const system_facts& facts,
                            const statistics& seen) {
    const std::string remedy = lies_in_file(settings, facts)
                                   ? "OBASE_MODE=hint frees it"
                                   : "OBASE_MODE=hint OBASE_COLD_BACKING=file:DIR frees it";
    switch (settings.mode) {
    case run_mode::off:
        return "the mode is off: nothing is tracked and nothing moves";
    case run_mode::observe:
        return "mode observe moves nothing; laid out densely, the objects in use in a window would "
               "take " +
               std::to_string(seen.would_save_pages) + " of " +
               std::to_string(seen.working_set_pages) + " pages less; " + remedy;
    case run_mode::move:
        if (!has_swap(facts) && !lies_in_file(settings, facts))
            return "mode move leaves reclaiming to the system, which has no swap to put memory "
                   "in; " +
                   remedy;
        return "mode move leaves reclaiming to the system, which takes cold memory when it needs "
               "some; " +
               remedy;
    case run_mode::hint:
        break;
    }
    if (!settings.hint_pageout) return "hint_pageout is off: cold memory is not paged out";
    return "";
}

std::string because_of_means(const options& settings, const system_facts& facts,
                             const statistics& seen) {
    if (!facts.page_hints) return "the kernel refuses MADV_PAGEOUT";
    if (!lies_in_file(settings, facts) && !has_swap(facts)) {
        if (settings.cold_directory().empty())
            return "there is no swap, and COLD does not lie in a file on a disk "
                   "(OBASE_COLD_BACKING=file:DIR)";
        return "there is no swap, and COLD does not lie in a file on a disk: OBASE_COLD_BACKING=" +
               settings.cold_backing + " names no directory on a disk that can be written to";
    }
    if (seen.hints_stopped != 0) return "an I/O error has ended all hints";
    return "";
}

// Why nothing is in a tier whose memory may leave.
std::string because_nothing_is_cold(const options& settings, const statistics& seen) {
    if (seen.windows <= seen.cold_threshold)
        return "an object is cold after more than " + std::to_string(seen.cold_threshold) +
               " windows without use, and " + std::to_string(seen.windows) + " have ended";
    if (seen.abandoned_waits >= seen.windows)
        return "a scope stays open over windows, so that nothing can be moved (stuck_scopes)";
    if (seen.no_room_skips != 0)
        return "there was no room or no memory to move cold objects to (no_room_skips)";
    if (seen.write_limit_skips != 0)
        return "OBASE_COLD_WRITE_LIMIT=" + settings.get("cold_write_limit") +
               " lets no more move into the file (write_limit_skips)";
    const double touched = seen.scanned_guides == 0 ? 0
                                                    : static_cast<double>(seen.touched_guides) /
                                                          static_cast<double>(seen.scanned_guides);
    if (touched > 0.5)
        return "everything is hot: " + percent(touched) +
               " of the objects that were looked at had been used in the window before";
    return "no object has been unused for more than " + std::to_string(seen.cold_threshold) +
           " windows (cold_threshold)";
}

// Pages leave after some windows in a row in which the promotion rate is below its target.
std::string because_of_promotions(const options& settings, const statistics& seen,
                                  std::uint64_t pageout_after) {
    const std::string target = percent(settings.promotion_target);
    const bool all = seen.promotion_rate >= 1;
    if (seen.promotion_rate >= settings.promotion_target)
        return "too much of what is in COLD is used again: " +
               (all ? "the whole working set, or more,"
                    : percent(seen.promotion_rate) + " of the working set") +
               " per minute came from there in the last window, and pages leave only below " +
               target + " (promotion_target)";
    const std::string windows = pageout_after == 0 ? "some more windows"
                                : pageout_after == 1
                                    ? "one more window"
                                    : std::to_string(pageout_after) + " more windows";
    return mebibytes(sizes_of(seen).cold) + " are cold and may leave after " + windows +
           " in which less than " + target +
           " of the working set per minute comes from COLD (promotion_target)";
}

std::string because_of_objects(const options& settings, const system_facts& facts,
                               const statistics& seen, std::uint64_t pageout_after) {
    if (seen.windows == 0)
        return "no window has ended yet; one takes " +
               seconds(settings.window_seconds / settings.time_scale);
    const sizes live = sizes_of(seen);
    if (live.all == 0) return "there are no managed objects";
    // They are in anonymous memory, whatever COLD lies in.
    if (live.large > live.all / 2)
        return mebibytes(live.large) + " of " + mebibytes(live.all) +
               " are large objects (above 16 KiB) that have not moved: they are new or pinned, no "
               "guide "
               "leads to them, or they are above 4 MiB" +
               (has_swap(facts) ? "" : ", for which there is no swap");
    if (seen.reclaimable_tiers == 0)
        return "the policy '" + settings.policy + "' has no tier whose memory may leave";
    if (live.cold == 0) return because_nothing_is_cold(settings, seen);
    if (seen.budget_bytes != 0 && seen.budget_used_bytes <= seen.budget_bytes)
        return "the process is within its budget, " + mebibytes(seen.budget_used_bytes) + " of " +
               mebibytes(seen.budget_bytes) + " (OBASE_MEMORY=" + settings.memory + ")";
    if (seen.pageout_allowed == 0 && settings.policy == "graded")
        return "the policy expects more stall of any page that leaves than OBASE_STALL_TARGET=" +
               settings.get("stall_target") + " allows";
    if (seen.pageout_allowed == 0) return because_of_promotions(settings, seen, pageout_after);
    if (seen.hint_pageout_bytes != 0)
        return "the kernel kept most of what it was asked to page out: it is in use again, "
               "locked or shared (hint_pageout_bytes, paged_out_bytes)";
    return mebibytes(live.cold) + " are cold, but not for long enough to be paged out";
}

} // namespace

std::string why_not_freed(const options& settings, const system_facts& facts,
                          const statistics& seen, std::uint64_t pageout_after) {
    // Counted by looking: what the kernel was asked for says nothing.
    const std::uint64_t asked = seen.hint_pageout_bytes, left = seen.paged_out_bytes;
    if (left != 0 && left >= asked / 8) return "";
    std::string reason = because_of_mode(settings, facts, seen);
    if (reason.empty()) reason = because_of_means(settings, facts, seen);
    if (reason.empty()) reason = because_of_objects(settings, facts, seen, pageout_after);
    if (left == 0) return "no cold memory was freed: " + reason;
    return "little cold memory was freed, " + mebibytes(left) + ": " + reason;
}

std::string nothing_leaves_by_itself(const options& settings, const system_facts& facts) {
    if (settings.mode == run_mode::hint) return ""; // self_check() says what it lacks
    if (settings.mode == run_mode::move && (has_swap(facts) || lies_in_file(settings, facts)))
        return "";
    const std::string reason = settings.mode == run_mode::observe
                                   ? "mode observe moves nothing; OBASE_MODE=hint "
                                     "OBASE_COLD_BACKING=file:DIR frees it"
                                   : because_of_mode(settings, facts, {});
    return "no cold memory is freed: " + reason;
}

std::string what_was_freed(const statistics& seen, std::uint64_t resident) {
    return mebibytes(resident) + " are resident, " +
           mebibytes(std::max(seen.peak_resident_bytes, resident)) + " were at the peak; " +
           mebibytes(seen.paged_out_bytes) + " of cold pages have left memory";
}

} // namespace obase::runtime_internal
