// SPDX-License-Identifier: MIT
//
// memory_budget: how much memory the process may take, by the option memory, here and now.
//
//     const memory_budget budget = current_budget("4G"); // opens files, but for "none"
//     budget.excess() > 0                                                // so many bytes must leave
//
// "none" has no budget. BYTES and PERCENT% are about the resident memory of this process, PERCENT% of its
// control group's limit or else of the machine's memory. "cgroup" is about the control group, with all of its
// processes: .9 of its limit; each process takes the share of the excess that it has of the use. A group
// without a limit has no budget. What is used of a group is all that the kernel charges but clean pages of
// files. What the kernel has put into swap though objects that are not in use have a file to go to is used memory,
// too: it is not room for others.
//
// Threads: any. Source: docs/temperature.md, "A budget".
#pragma once

#include "options/memory_limit.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace obase::backend {

struct memory_use { // bytes
    std::uint64_t process = 0;
    // Of this process, that is in swap though it should be in memory or in COLD's file.
    std::uint64_t misplaced = 0;
    std::uint64_t machine = 0;
    std::uint64_t group_charged = 0;
    std::uint64_t group_limit = UINT64_MAX; // UINT64_MAX: none
};

// What a limit of this kind is about; the rest is left as it is.
memory_use gather_memory_use(memory_limit::of kind) noexcept;

struct memory_budget {         // bytes
    std::uint64_t allowed = 0; // 0: there is no budget
    std::uint64_t used = 0;
    double share = 1;         // of the excess, that this process takes
    bool files_count = false; // `used` has clean pages of files

    // By which this process should shrink; < 0: by which it may grow; -infinity: as much as it likes.
    double excess() const noexcept {
        if (allowed == 0) return -std::numeric_limits<double>::infinity();
        return (static_cast<double>(used) - static_cast<double>(allowed)) * share;
    }
    // What may leave memory at the end of a window, for which threads wait that want so many bytes, or for which none
    // does (0): nothing while there is room. All that the policy asks for while threads wait: they go on to allocate. Else a little more than is over the budget, so that it is not passed again
    // at once.
    std::uint64_t may_leave(std::uint64_t pressed) const noexcept {
        if (allowed == 0) return UINT64_MAX;
        const double room =
            static_cast<double>(pressed) + static_cast<double>(allowed / 16) * share;
        if (pressed != 0) return excess() + room > 0 ? UINT64_MAX : 0;
        if (excess() <= 0) return 0;
        return static_cast<std::uint64_t>(excess() + static_cast<double>(allowed / 64) * share);
    }
    std::uint64_t part_of_budget(double part) const noexcept {
        return static_cast<std::uint64_t>(static_cast<double>(allowed) * part * share);
    }
    // Up to half of what is between the budget of a control group and its limit.
    std::uint64_t may_grow() const noexcept {
        if (allowed == 0) return UINT64_MAX;
        const std::uint64_t most = allowed + allowed / 18;
        return used >= most ? 0
                            : static_cast<std::uint64_t>(static_cast<double>(most - used) * share);
    }
    // What may leave files for memory that the kernel cannot drop: within the budget all, and beyond it `part` of
    // the budget, no more than may_grow(). `in_use`: bytes of pages of files in which objects were in use in the last
    // window. Where those count as used themselves, what leaves them takes their place.
    std::uint64_t may_return(std::uint64_t in_use, double part) const noexcept {
        if (allowed == 0) return UINT64_MAX;
        const std::uint64_t most = part_of_budget(part);
        const auto room = static_cast<std::uint64_t>(std::max(-excess(), 0.));
        const std::uint64_t instead = files_count ? std::min(in_use, most) : 0;
        return std::max(std::min(may_grow(), room + most), instead);
    }
    // What should become cold in a window like others: what was still over the budget after the last one, and of what
    // was in use in a file and found no room `part` of the budget.
    std::uint64_t exchange(double still_over, std::uint64_t no_room, double part) const noexcept {
        if (allowed == 0) return 0;
        return static_cast<std::uint64_t>(std::max(still_over, 0.)) +
               std::min(no_room, part_of_budget(part));
    }
    // What should leave memory while threads wait that want so many bytes, so that they need not wait again at once.
    std::uint64_t wanted(std::uint64_t bytes) const noexcept {
        return static_cast<std::uint64_t>(std::max(excess(), static_cast<double>(bytes)) +
                                          static_cast<double>(allowed / 16) * share);
    }
};

inline constexpr double group_target = 0.9; // of the limit

memory_budget budget_of(const memory_limit& asked, const memory_use& use) noexcept;
memory_budget current_budget(const memory_limit& asked, std::uint64_t misplaced = 0) noexcept;
memory_budget current_budget(std::string_view memory_option, std::uint64_t misplaced = 0) noexcept;

} // namespace obase::backend
