// SPDX-License-Identifier: MIT
//
// For tests of policies: a SODA word of slots that are described one by one.
#pragma once

#include "policy/placement.hpp"

#include <algorithm>
#include <array>

namespace obase::policy {

struct slot_facts {
    tier_id tier = 0;
    bool touched = false;
    unsigned idle = 0;
    unsigned quiet = 0; // beyond idle
    bool newborn = false;
    bool never_cold = false;
    bool large = false;
    bool movable = true;
    double run_is_live = 1; // live_fraction_of_run
    bool out = false;
    std::size_t size = 64;
    enum { nothing, hot, cold, once } expect = nothing;
};

class word_builder final : public objects {
  public:
    explicit word_builder(const tier_table& tiers) : tiers_(tiers) { facts.about = this; }

    word_builder& put(unsigned slot, const slot_facts& what) {
        const std::uint64_t bit = std::uint64_t{1} << slot;
        facts.seen |= bit;
        if (what.touched) facts.touched |= bit;
        if (what.newborn) facts.newborn |= bit;
        if (what.movable) facts.movable |= bit;
        if (what.large) facts.unmoved |= bit;
        if (what.expect == slot_facts::hot) facts.expected_hot |= bit;
        if (what.expect == slot_facts::cold) facts.expected_cold |= bit;
        if (what.expect == slot_facts::once) facts.expected_once |= bit;
        const tier_id at = what.large ? tiers_.count() : what.tier;
        facts.tiers |= tier_mask{1} << at;
        facts.tier[slot] = static_cast<std::uint8_t>(at);
        facts.idle[slot] = what.touched ? 0 : what.idle;
        facts.quiet[slot] = what.touched ? 0 : what.idle + what.quiet;
        facts.oldest = std::max(facts.oldest, facts.idle[slot]);
        facts.state[slot] = 0;
        described_[slot] = what;
        return *this;
    }
    word_verdict ask(placement& policy) {
        word_verdict verdict;
        verdict.to.fill(0xff);
        policy.decide(facts, verdict);
        return verdict;
    }

    bool never_cold(unsigned slot) const noexcept override { return described_[slot].never_cold; }
    std::size_t size(unsigned slot) const noexcept override {
        ++sizes_asked;
        return described_[slot].size;
    }
    double live_fraction_of_run(unsigned slot) const noexcept override {
        return described_[slot].run_is_live;
    }
    bool out(unsigned slot) const noexcept override { return described_[slot].out; }

    word_facts facts;
    mutable unsigned sizes_asked = 0;

  private:
    const tier_table& tiers_;
    std::array<slot_facts, 64> described_{};
};

// What becomes of one slot that is alone in its word: no_tier when it stays.
inline tier_id target_of(placement& policy, const slot_facts& what, unsigned slot = 5) {
    const word_verdict verdict = word_builder(policy.tiers()).put(slot, what).ask(policy);
    return verdict.move == 0 ? no_tier : verdict.to[slot];
}

} // namespace obase::policy
