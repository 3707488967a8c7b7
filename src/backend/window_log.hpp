// SPDX-License-Identifier: MIT
//
// window_log: what a backend has to be told of a window, gathered while it runs and turned into tier
// views at its end. Knows for each 64 KiB run of a tier for how many windows no object in it was
// touched, which is what the policy is asked about.
//
// Cost: a byte per run of a reclaimable tier (16 bytes per MiB), and per window a look at each.
//
// Threads: the collector thread only. Without memory a window has no view, and the backend is told so.
#pragma once

#include "backend/backend.hpp"
#include "policy/placement.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace obase::backend {

class window_log {
  public:
    static constexpr std::size_t run_bytes = 64 << 10; // that of the heaps
    static constexpr unsigned oldest = 255;            // ages stop here

    explicit window_log(const policy::tier_table& tiers) noexcept : tiers_(tiers) {}

    // [begin, begin + bytes) in the tier was written by the mover.
    void note_filled(policy::tier_id id, const void* begin, std::size_t bytes) noexcept try {
        const auto at = reinterpret_cast<std::uintptr_t>(begin);
        filled_[id].add(at, at + bytes);
    } catch (const std::bad_alloc&) {
        incomplete_ = true;
    }
    // A scan visited this large object.
    void note_large(const void* object, std::size_t bytes, policy::tier_id role,
                    unsigned idle_windows) noexcept try {
        large_.push_back({reinterpret_cast<std::uintptr_t>(object), bytes, role, idle_windows});
    } catch (const std::bad_alloc&) {
        incomplete_ = true;
    }

    // Once per window, in every mode, before the touched pages are cleared.
    template <class Space>
    void end_window(Space& space) noexcept {
        for (policy::tier_id id = 0; id < tiers_.count(); ++id)
            if (tiers_[id].reclaimable) increment_ages(space, id);
    }

    // After end_window(). False: no memory, and the view is not to be used.
    template <class Space>
    bool view(Space& space, const policy::placement& placement, window_view& out) noexcept try {
        if (incomplete_) return false;
        out.tiers.clear();
        for (policy::tier_id id = 0; id < tiers_.count(); ++id)
            out.tiers.push_back(view_of(space, placement, id));
        out.large.clear();
        for (const large_note& seen : large_) {
            const policy::place piece{seen.begin, seen.begin + seen.bytes, seen.idle_windows};
            const bool leaving =
                tiers_[seen.role].reclaimable && placement.leaves(seen.role, piece);
            out.large.push_back({seen.begin, seen.bytes, seen.role, leaving});
        }
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    // Forgets the window, not the ages.
    void clear() noexcept {
        for (intervals& set : filled_) set.clear();
        large_.clear();
        incomplete_ = false;
    }

    // Windows since an object in the run was touched; 0: in the last one.
    unsigned age(policy::tier_id id, std::size_t run) const noexcept {
        return run < ages_[id].size() ? ages_[id][run] : 0;
    }

  private:
    struct large_note {
        std::uintptr_t begin;
        std::size_t bytes;
        policy::tier_id role;
        unsigned idle_windows;
    };

    static std::uintptr_t address(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }

    // A run that holds nothing is young again: its next objects are others.
    template <class Space>
    void increment_ages(Space& space, policy::tier_id id) noexcept try {
        std::vector<std::uint8_t>& ages = ages_[id];
        const std::uintptr_t base = address(space.range_begin(id));
        std::size_t next = 0; // first run not looked at
        space.for_each_extent(id, [&](const char* begin, const char* end) {
            const std::size_t first = (address(begin) - base) / run_bytes;
            const std::size_t last = (address(end) - base + run_bytes - 1) / run_bytes;
            if (ages.size() < last) ages.resize(last);
            for (; next < first; ++next) ages[next] = 0;
            for (; next < last; ++next)
                ages[next] = static_cast<std::uint8_t>(std::min(ages[next] + 1u, oldest));
        });
        ages.resize(next);
        space.for_each_touched_run(id, [&](const char* begin, const char* end) {
            const std::size_t last = (address(end) - base + run_bytes - 1) / run_bytes;
            for (std::size_t run = (address(begin) - base) / run_bytes;
                 run < std::min(last, ages.size()); ++run)
                ages[run] = 0;
        });
    } catch (const std::bad_alloc&) {
        ages_[id].clear(); // younger than it is: nothing leaves too early
        incomplete_ = true;
    }

    template <class Space>
    tier_view view_of(Space& space, const policy::placement& placement, policy::tier_id id) {
        tier_view view;
        view.role = tiers_[id];
        const auto add_to = [](intervals& set) {
            return [&set](const char* begin, const char* end) {
                set.add(address(begin), address(end));
            };
        };
        space.for_each_extent(id, add_to(view.extents));
        space.for_each_touched_run(id, add_to(view.touched));
        view.filled = filled_[id];
        view.file_base = address(space.range_begin(id));
        space.for_each_backing(id, [&](const char* begin, const char* end, int fd) {
            view.files.push_back({address(begin), address(end), fd});
        });
        if (!view.role.reclaimable) return view;
        intervals asked;
        for (const interval& extent : view.extents.items()) {
            const std::size_t last = (extent.end - view.file_base + run_bytes - 1) / run_bytes;
            for (std::size_t run = (extent.begin - view.file_base) / run_bytes; run < last; ++run) {
                const std::uintptr_t begin = view.file_base + run * run_bytes;
                if (placement.leaves(id, {begin, begin + run_bytes, age(id, run)}))
                    asked.add(begin, begin + run_bytes);
            }
        }
        view.leaving = asked.common(view.extents);
        return view;
    }

    const policy::tier_table& tiers_;
    std::array<intervals, policy::max_tiers> filled_;
    std::array<std::vector<std::uint8_t>, policy::max_tiers> ages_; // by run; of reclaimable tiers
    std::vector<large_note> large_;
    bool incomplete_ = false;
};

} // namespace obase::backend
