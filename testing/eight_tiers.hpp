// SPDX-License-Identifier: MIT
//
// eight_tiers: a policy with eight tiers and 12 bits of state per slot, for tests. Not a good one: it
// shows that a policy may have any number of tiers and remember something of each slot.
//
// State: bits 0..7 a moving average of touches (255: touched in every window), bits 8..10 how many
// windows it is made of, bit 11 always set. An object leaves the first tier when its average is made of
// four windows; t1 is for the hottest, t7 for what is hardly touched.
#pragma once

#include "policy/placement.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

namespace obase::testing {

class eight_tiers final : public policy::placement {
  public:
    static constexpr policy::tier rows[] = {
        {.name = "new"},
        {.name = "t1", .promoted_to = true},
        {.name = "t2"},
        {.name = "t3"},
        {.name = "t4"},
        {.name = "t5"},
        {.name = "t6"},
        {.name = "t7", .reclaimable = true, .cold = true, .file_backed = true, .lazy = true}};
    static constexpr policy::tier_table table{rows};
    static_assert(table.valid() && table.count() == 8);
    static constexpr unsigned windows_to_prove = 4;

    static std::unique_ptr<policy::placement> make(const options&, unsigned) {
        return std::make_unique<eight_tiers>();
    }

    const policy::tier_table& tiers() const noexcept override { return table; }
    unsigned state_bits() const noexcept override { return 12; }

    void decide(policy::word_facts& word, policy::word_verdict& verdict) noexcept override {
        for (std::uint64_t left = word.seen; left != 0; left &= left - 1) {
            const auto slot = static_cast<unsigned>(std::countr_zero(left));
            std::uint16_t& state = word.state[slot];
            if (!word.again) state = after(state, (word.touched >> slot & 1) != 0);
            const policy::tier_id target = tier_of(state);
            const bool proven = (state >> 8 & 7) >= windows_to_prove;
            if ((word.unmoved >> slot & 1) != 0)
                verdict.to[slot] = static_cast<std::uint8_t>(target);
            else if (proven && target != word.tier[slot])
                verdict.send(slot, target);
        }
    }
    policy::directives end_of_window(const policy::window_facts& facts) noexcept override {
        left_bytes_seen += facts.tiers[7].paged_out_bytes;
        return {};
    }
    bool leaves(policy::tier_id id, const policy::place& piece) const noexcept override {
        return id == 7 && piece.idle_windows >= 2;
    }

    static policy::tier_id tier_of(std::uint16_t state) noexcept {
        return 1 + (255u - (state & 255u)) * 7 / 256;
    }

    // Of all windows of the process: slots whose state was 0, which after() never leaves.
    static inline std::uint64_t began = 0;
    static inline std::uint64_t left_bytes_seen = 0;

  private:
    static std::uint16_t after(std::uint16_t state, bool touched) noexcept {
        began += state == 0;
        const unsigned windows = std::min((state >> 8 & 7u) + 1, 7u);
        unsigned average = state & 255;
        if (state == 0)
            average = touched ? 255 : 0;
        else if (touched)
            average += (255 - average + 3) / 4;
        else
            average -= (average + 3) / 4;
        return static_cast<std::uint16_t>(1u << 11 | windows << 8 | average);
    }
};

} // namespace obase::testing
