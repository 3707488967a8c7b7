// SPDX-License-Identifier: MIT
//
// misplaced_bytes: how much of what the kernel has put into swap should be in memory or in a file.
//
//     const std::uint64_t bytes = backend::misplaced_bytes(heaps, tiers, log, os::swapped_bytes());
//
// Where the cold tier lies in a file, objects of the other tiers that are in swap were put there by the kernel, which
// knows pages and not objects, unless it was told to (a policy whose hotter tiers may leave). What is used comes
// back, and what is not moves to the file, so neither is room for more. Pages of these tiers that are not resident and never were
// count, too, as far as the process has so much in swap.
//
// Cost: one bit for each page of these tiers, by mincore; nothing while the process has nothing in swap.
// Threads: the collector thread only.
#pragma once

#include "backend/window_log.hpp"
#include "os/process.hpp"
#include "policy/tiers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace obase::backend {

template <class Space>
std::uint64_t misplaced_bytes(const Space& heaps, const policy::tier_table& tiers,
                              const window_log& log, std::uint64_t swapped) noexcept {
    if (swapped == 0) return 0;
    std::uint64_t missing = 0;
    bool to_file = false;
    for (policy::tier_id id = 0; id < tiers.count(); ++id) {
        if (heaps.file_backed(id)) {
            to_file = to_file || tiers[id].cold;
            continue;
        }
        std::uint64_t here = 0;
        heaps.for_each_extent(id, [&](const char* begin, const char* end) {
            const auto bytes = static_cast<std::size_t>(end - begin);
            here += bytes - os::resident_in(begin, bytes);
        });
        missing += here - std::min<std::uint64_t>(here, log.out_bytes(id));
    }
    return to_file ? std::min(missing, swapped) : 0;
}

} // namespace obase::backend
