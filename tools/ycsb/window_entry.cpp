// SPDX-License-Identifier: MIT
#include "tools/ycsb/window_entry.hpp"

#include <string>

namespace obase::tools {

std::uint64_t touched_bytes(const statistics& s) {
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < s.heap_count; ++i) bytes += s.heaps[i].touched_bytes;
    return bytes;
}

double page_utilization(const statistics& s) {
    const std::uint64_t bytes = touched_bytes(s);
    return s.working_set_pages == 0
               ? 0
               : static_cast<double>(bytes) / (static_cast<double>(s.working_set_pages) * 4096);
}

std::uint64_t moves(const statistics& s) { return s.moved_objects + s.compacted; }

nlohmann::json window_entry(double now_s, const memory_sample& memory, const statistics* before,
                            const statistics* now, double seconds, std::uint64_t operations) {
    nlohmann::json record = {{"t_s", now_s},
                             {"throughput_ops", static_cast<double>(operations) / seconds},
                             {"rss_bytes", memory.rss},
                             {"used_bytes", memory.used},
                             {"compressed_bytes", memory.compressed}};
    for (const char* name :
         {"page_utilization", "promotion_rate", "cold_threshold", "moved", "vetoed", "heaps"})
        record[name] = nullptr;
    if (now == nullptr) return record;
    record["page_utilization"] = page_utilization(*now);
    record["promotion_rate"] = now->promotion_rate;
    record["cold_threshold"] = now->cold_threshold;
    record["moved"] = moves(*now) - moves(*before);
    record["vetoed"] = now->vetoed_moves - before->vetoed_moves;
    for (unsigned i = 0; i < now->heap_count; ++i) {
        const heap_statistics& c = now->heaps[i];
        record["heaps"][std::string(now->heap_name(i))] = {{"live_bytes", c.live_bytes},
                                                           {"extent_bytes", c.extent_bytes},
                                                           {"touched_pages", c.touched_pages},
                                                           {"touched_bytes", c.touched_bytes}};
    }
    return record;
}

} // namespace obase::tools
