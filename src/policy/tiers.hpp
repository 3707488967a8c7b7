// SPDX-License-Identifier: MIT
//
// policy::tier_table: the tiers that a policy places objects into, and the role of each.
//
// A tier is an address range of its own. Its id is its row in the table; the policy gives the number
// of rows, their order and their roles, and all other layers take them from here. Row 0 is the first
// tier: objects are born there, and nothing is ever moved into it. Large objects are born in a range of
// their own, LARGE: a policy sees them there as objects of the first tier, but for those that are too large to
// move. In arrays that go by heap the entry of LARGE follows the last tier.
//
//     static constexpr tier rows[] = {{.name = "new"},
//                                     {.name = "hot", .promoted_to = true},
//                                     {.name = "cold", .reclaimable = true, .cold = true}};
//     constexpr tier_table table{rows};
//     table.with(&tier::reclaimable); // a mask: bit 2
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace obase::policy {

using tier_id = unsigned;
using tier_mask = std::uint32_t; // bit t: tier t

inline constexpr tier_id first_tier = 0;
inline constexpr unsigned max_tiers = 15;
inline constexpr tier_id no_tier = ~0u;

struct tier {
    const char* name = ""; // static text, lower case, unique in the table
    // Objects on their way here are in use: few of them share a wait, so that few are touched
    // before they are published.
    bool promoted_to = false;
    bool reclaimable = false; // its memory may be asked to leave (placement::leaves)
    bool cold = false;        // so is all that lies here: backends may say so before it leaves
    bool file_backed = false; // lies in a file when the option cold_backing names one
    // Slots in this tier are visited only in runs where an object was touched (R16), so that a scan
    // does not read memory that is not resident. Objects that are reached from there only are not
    // seen by the policy meanwhile.
    bool lazy = false;
};

class tier_table {
  public:
    // The rows must outlive the table: they are static in every policy.
    constexpr explicit tier_table(std::span<const tier> rows) noexcept : rows_(rows) {}

    constexpr unsigned count() const noexcept { return static_cast<unsigned>(rows_.size()); }
    constexpr const tier& operator[](tier_id id) const noexcept { return rows_[id]; }

    constexpr tier_mask with(bool tier::* role) const noexcept {
        tier_mask found = 0;
        for (unsigned id = 0; id < count(); ++id) found |= tier_mask{rows_[id].*role} << id;
        return found;
    }
    constexpr tier_id named(std::string_view name) const noexcept {
        for (unsigned id = 0; id < count(); ++id)
            if (rows_[id].name == name) return id;
        return no_tier;
    }

    // True if the other layers can work with it: 2 to max_tiers rows with names of their own, and a
    // first tier that has no role.
    constexpr bool valid() const noexcept {
        if (count() < 2 || count() > max_tiers) return false;
        const tier& first = rows_[first_tier];
        if (first.promoted_to || first.reclaimable || first.cold || first.file_backed || first.lazy)
            return false;
        for (unsigned id = 0; id < count(); ++id)
            if (rows_[id].name == std::string_view() || named(rows_[id].name) != id) return false;
        return true;
    }

  private:
    std::span<const tier> rows_;
};

} // namespace obase::policy
