// SPDX-License-Identifier: MIT
//
// tier_facts: what the end of a window tells the policy about each tier (policy::window_facts::tiers), from the heaps, the
// window's log and the backend.
//
//     tier_facts all(tiers);
//     log.end_window(heaps);
//     all.gather(facts, heaps, log, done, {.given = true, .swap = false});
//
// Threads: the collector thread only.
#pragma once

#include "backend/backend.hpp"
#include "backend/window_log.hpp"
#include "policy/placement.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace obase::backend {

class tier_facts {
  public:
    explicit tier_facts(const policy::tier_table& tiers) noexcept : tiers_(tiers) {}

    struct hints_now {
        bool given; // mode hint
        bool swap;  // anonymous memory can leave
    };

    // After window_log::end_window(). Once per window.
    template <class Space>
    void gather(policy::window_facts& facts, Space& heaps, const window_log& log,
                const totals& done, hints_now hints) noexcept {
        can_leave_ = 0;
        for (policy::tier_id id = 0; id < tiers_.count(); ++id) {
            policy::window_facts::tier_facts& tier = facts.tiers[id];
            const auto counters = heaps.counters(id);
            tier.touched_pages = heaps.touched_in(id).pages;
            tier.live_bytes = counters.live_bytes;
            tier.live_objects = counters.live_objects;
            tier.fault_seconds = done.fault_seconds[id];
            const std::uint64_t left = done.paged_out_bytes[id];
            tier.paged_out_bytes = left - std::exchange(left_before_[id], left);
            tier.out_bytes = log.out_bytes(id);
            if (!tiers_[id].reclaimable) continue;
            tier.ages = &log.ages(id).window();
            tier.can_leave = hints.given && (hints.swap || heaps.file_backed(id));
            can_leave_ |= policy::tier_mask{tier.can_leave} << id;
        }
    }
    // Of the last gather().
    bool can_leave(policy::tier_id id) const noexcept { return (can_leave_ >> id & 1) != 0; }

  private:
    const policy::tier_table& tiers_;
    policy::tier_mask can_leave_ = 0;
    std::array<std::uint64_t, policy::max_tiers> left_before_{};
};

} // namespace obase::backend
