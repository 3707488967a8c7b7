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

std::string because_of_mode(const options& settings, const system_facts& facts) {
    const std::string remedy = lies_in_file(settings, facts)
                                   ? "OBASE_MODE=hint frees it"
                                   : "OBASE_MODE=hint OBASE_COLD_BACKING=file:DIR frees it";
    switch (settings.mode) {
    case run_mode::off:
        return "the mode is off: nothing is tracked and nothing moves";
    case run_mode::observe:
        return "mode observe moves nothing; " + remedy;
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

std::string because_of_objects(const options& settings, const system_facts& facts,
                               const statistics& seen) {
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
    if (seen.pageout_allowed == 0)
        return "the promotion rate is above its target, or has not been below it for long "
               "enough: " +
               percent(seen.promotion_rate) +
               " of the working set per minute comes from COLD, and " +
               percent(settings.promotion_target) + " may";
    if (seen.hint_pageout_bytes != 0)
        return "the kernel kept most of what it was asked to page out: it is in use again, "
               "locked or shared (hint_pageout_bytes, paged_out_bytes)";
    return mebibytes(live.cold) + " are cold, but not for long enough to be paged out";
}

} // namespace

std::string why_not_freed(const options& settings, const system_facts& facts,
                          const statistics& seen) {
    // Counted by looking: what the kernel was asked for says nothing.
    const std::uint64_t asked = seen.hint_pageout_bytes, left = seen.paged_out_bytes;
    if (left != 0 && left >= asked / 8) return "";
    std::string reason = because_of_mode(settings, facts);
    if (reason.empty()) reason = because_of_means(settings, facts, seen);
    if (reason.empty()) reason = because_of_objects(settings, facts, seen);
    if (left == 0) return "no cold memory was freed: " + reason;
    return "little cold memory was freed, " + mebibytes(left) + ": " + reason;
}

std::string what_was_freed(const statistics& seen, std::uint64_t resident) {
    return mebibytes(resident) + " are resident, " +
           mebibytes(std::max(seen.peak_resident_bytes, resident)) + " were at the peak; " +
           mebibytes(seen.paged_out_bytes) + " of cold pages have left memory";
}

} // namespace obase::runtime_internal
