// SPDX-License-Identifier: MIT
//
// window_log: what a backend has to be told of a window, gathered while it runs and turned into tier
// views at its end. Knows for each page of a reclaimable tier for how many windows no object in it was
// touched (page_ages.hpp), which is what the policy is asked about.
//
// Threads: the collector thread only. Without memory a window has no view, and the backend is told so.
#pragma once

#include "backend/backend.hpp"
#include "backend/page_ages.hpp"
#include "policy/placement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace obase::backend {

class window_log {
  public:
    explicit window_log(const policy::tier_table& tiers) noexcept : tiers_(tiers) {}

    // [begin, begin + bytes) in the tier was written by the mover.
    void note_filled(policy::tier_id id, const void* begin, std::size_t bytes) noexcept try {
        const auto at = reinterpret_cast<std::uintptr_t>(begin);
        filled_[id].add(at, at + bytes);
    } catch (const std::bad_alloc&) {
        incomplete_ = true;
    }
    // A large object lies where it was born, in the role of a tier (backend.hpp).
    void note_large(const void* object, std::size_t bytes, policy::tier_id role,
                    unsigned idle_windows) noexcept try {
        large_.push_back({reinterpret_cast<std::uintptr_t>(object), bytes, role, idle_windows});
    } catch (const std::bad_alloc&) {
        incomplete_ = true;
    }

    // Once per window, in every mode, before the touched pages are cleared. `early`: see page_ages.
    template <class Space>
    void end_window(Space& space, bool early = false) noexcept {
        for (policy::tier_id id = 0; id < tiers_.count(); ++id) {
            if (!tiers_[id].reclaimable) continue;
            try {
                ages_[id].end_window(space, id, filled_[id], early);
            } catch (const std::bad_alloc&) {
                ages_[id].clear(); // younger than it is: nothing leaves too early
                incomplete_ = true;
            }
            forget_returned(id, address(space.range_begin(id)));
        }
    }

    // After end_window(). Of what the policy asks to leave and is not out yet, no more than `may_leave` bytes, and the
    // rest of a large object: of the coldest tier first, and there what has been idle for longest. `large_leaves`: the
    // large objects here, which are in anonymous memory, can leave; else they are asked to, and do not count. False:
    // no memory, and the view is not to be used.
    template <class Space>
    bool view(Space& space, const policy::placement& placement, window_view& out,
              std::uint64_t may_leave = UINT64_MAX, bool large_leaves = true) noexcept try {
        if (incomplete_) return false;
        leavers_.clear();
        out.tiers.clear();
        for (policy::tier_id id = 0; id < tiers_.count(); ++id)
            out.tiers.push_back(view_of(space, placement, id, may_leave != UINT64_MAX));
        out.large.clear();
        for (const large_note& seen : large_)
            out.large.push_back(view_of(seen, placement, out.large.size()));
        choose_leavers(out, may_leave, large_leaves);
        for (policy::tier_id id = 0; id < tiers_.count(); ++id) note_out(id, out.tiers[id]);
        large_out_.clear();
        for (const large_view& one : out.large)
            if (one.leaving) large_out_.insert(one.begin);
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

    // True if the page, or half of the pages of the 64 KiB run, was told to leave, and neither touched nor filled in
    // the windows since that have ended.
    bool page_out(policy::tier_id id, std::size_t page) const noexcept {
        const std::size_t run = page / page_ages::pages_per_run;
        return run < out_[id].size() && (out_[id][run] >> page % page_ages::pages_per_run & 1) != 0;
    }
    bool run_out(policy::tier_id id, std::size_t run) const noexcept {
        return run < out_[id].size() &&
               std::popcount(out_[id][run]) >= static_cast<int>(page_ages::pages_per_run / 2);
    }
    // Of such pages. Cost: linear in the runs with such pages.
    std::size_t out_bytes(policy::tier_id id) const noexcept {
        std::size_t pages = 0;
        for (const std::uint16_t run : out_[id]) pages += static_cast<unsigned>(std::popcount(run));
        return pages * page_ages::page_bytes;
    }
    // True if most of the tier's memory is such pages.
    template <class Space>
    bool mostly_out(const Space& space, policy::tier_id id) const noexcept {
        return 2 * out_bytes(id) > space.counters(id).extent_bytes;
    }
    // Of those in which no object was touched in this window. Cost: in the touched pages, too.
    template <class Space>
    std::size_t untouched_out_bytes(const Space& space, policy::tier_id id) const noexcept {
        std::size_t pages = out_bytes(id) / page_ages::page_bytes;
        if (pages == 0) return 0;
        const std::uintptr_t base = address(space.range_begin(id));
        space.for_each_touched_page(id, [&](const char* begin, const char* end) {
            for (std::uintptr_t at = address(begin); at < address(end); at += page_ages::page_bytes)
                pages -= page_out(id, (at - base) / page_ages::page_bytes);
        });
        return pages * page_ages::page_bytes;
    }
    // Nothing of the tier can have left.
    void forget_out(policy::tier_id id) noexcept { out_[id].clear(); }
    // Nothing was asked to leave.
    void forget_out() noexcept {
        for (auto& tier : out_) tier.clear();
        large_out_.clear();
    }

    // Of a tier with the role `reclaimable`.
    const page_ages& ages(policy::tier_id id) const noexcept { return ages_[id]; }

  private:
    struct large_note {
        std::uintptr_t begin;
        std::size_t bytes;
        policy::tier_id role;
        unsigned idle_windows;
    };
    static constexpr std::size_t none = ~std::size_t{0};
    // What could leave, and is not out.
    struct leaver {
        policy::tier_id id;
        unsigned age;
        std::uintptr_t begin, end;
        std::size_t large; // its number in the view, or none
    };

    static std::uintptr_t address(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }

    template <class Space>
    tier_view view_of(Space& space, const policy::placement& placement, policy::tier_id id,
                      bool chosen) {
        tier_view view;
        view.role = tiers_[id];
        const auto add_to = [](intervals& set) {
            return [&set](const char* begin, const char* end) {
                set.add(address(begin), address(end));
            };
        };
        space.for_each_extent(id, add_to(view.extents));
        space.for_each_touched_page(id, add_to(view.touched));
        view.filled = filled_[id];
        view.file_base = address(space.range_begin(id));
        space.for_each_backing(id, [&](const char* begin, const char* end, int fd) {
            view.files.push_back({address(begin), address(end), fd});
        });
        if (!view.role.reclaimable) return view;
        intervals asked;
        ages_[id].for_each_stretch(
            view.file_base, [&](std::uintptr_t begin, std::uintptr_t end, unsigned age) {
                if (!placement.leaves(id, {begin, end, age})) return;
                if (!chosen) return asked.add(begin, end);
                for (std::uintptr_t at = begin; at < end; at += page_ages::page_bytes) {
                    const std::uintptr_t next = at + page_ages::page_bytes;
                    if (page_out(id, (at - view.file_base) / page_ages::page_bytes))
                        asked.add(at, next);
                    else
                        add_leaver({id, age, at, next, none});
                }
            });
        view.leaving = asked.common(view.extents);
        return view;
    }

    large_view view_of(const large_note& seen, const policy::placement& placement,
                       std::size_t number) {
        const std::uintptr_t end = seen.begin + seen.bytes;
        const bool asked = tiers_[seen.role].reclaimable &&
                           placement.leaves(seen.role, {seen.begin, end, seen.idle_windows});
        const bool out = large_out_.contains(seen.begin);
        if (asked && !out)
            leavers_.push_back({seen.role, seen.idle_windows, seen.begin, end, number});
        return {seen.begin, seen.bytes, seen.role, asked && out, seen.idle_windows == 0};
    }

    // Pages beside each other of one age are one.
    void add_leaver(const leaver& page) {
        if (!leavers_.empty()) {
            leaver& last = leavers_.back();
            if (last.end == page.begin && last.id == page.id && last.age == page.age) {
                last.end = page.end;
                return;
            }
        }
        leavers_.push_back(page);
    }

    void choose_leavers(window_view& out, std::uint64_t may_leave, bool large_leaves) {
        if (may_leave != UINT64_MAX)
            std::sort(leavers_.begin(), leavers_.end(), [](const leaver& a, const leaver& b) {
                return std::tuple(b.id, b.age, a.begin) < std::tuple(a.id, a.age, b.begin);
            });
        std::array<intervals, policy::max_tiers> chosen;
        for (const leaver& one : leavers_) {
            if (may_leave == 0) break;
            if (one.large != none) {
                out.large[one.large].leaving = true;
                if (large_leaves)
                    may_leave -= std::min<std::uint64_t>(may_leave, one.end - one.begin);
                continue;
            }
            const std::uint64_t pages =
                (may_leave + page_ages::page_bytes - 1) / page_ages::page_bytes;
            const std::uintptr_t end =
                one.begin +
                std::min<std::uint64_t>(one.end - one.begin, pages * page_ages::page_bytes);
            chosen[one.id].add(one.begin, end);
            may_leave -= std::min<std::uint64_t>(may_leave, end - one.begin);
        }
        for (policy::tier_id id = 0; id < tiers_.count(); ++id)
            if (!chosen[id].empty())
                out.tiers[id].leaving =
                    out.tiers[id].leaving.united(chosen[id].common(out.tiers[id].extents));
    }

    // What left, and was touched or filled since, is in memory.
    void forget_returned(policy::tier_id id, std::uintptr_t base) noexcept {
        std::vector<std::uint16_t>& out = out_[id];
        for (std::size_t run = 0; run < out.size(); ++run)
            for (unsigned left = out[run]; left != 0; left &= left - 1) {
                const auto bit = static_cast<unsigned>(std::countr_zero(left));
                if (ages_[id].age(run * page_ages::pages_per_run + bit) == 0)
                    out[run] = static_cast<std::uint16_t>(out[run] & ~(1u << bit));
            }
        for (const interval& item : filled_[id].items())
            for (std::uintptr_t page = (item.begin - base) / page_ages::page_bytes;
                 page <= (item.end - 1 - base) / page_ages::page_bytes; ++page)
                if (const std::size_t run = page / page_ages::pages_per_run; run < out.size())
                    out[run] = static_cast<std::uint16_t>(out[run] &
                                                          ~(1u << page % page_ages::pages_per_run));
    }

    void note_out(policy::tier_id id, const tier_view& view) {
        std::vector<std::uint16_t>& out = out_[id];
        for (const interval& item : view.leaving.items())
            for (std::uintptr_t at = item.begin; at < item.end; at += page_ages::page_bytes) {
                const std::size_t page = (at - view.file_base) / page_ages::page_bytes;
                const std::size_t run = page / page_ages::pages_per_run;
                if (out.size() <= run) out.resize(run + 1);
                out[run] =
                    static_cast<std::uint16_t>(out[run] | 1u << page % page_ages::pages_per_run);
            }
    }

    const policy::tier_table& tiers_;
    std::array<intervals, policy::max_tiers> filled_;
    std::array<page_ages, policy::max_tiers> ages_;                 // of reclaimable tiers
    std::array<std::vector<std::uint16_t>, policy::max_tiers> out_; // by run; a bit for each page
    std::vector<large_note> large_;
    std::vector<leaver> leavers_;
    std::unordered_set<std::uintptr_t> large_out_; // that were told to leave, and still are
    bool incomplete_ = false;
};

} // namespace obase::backend
