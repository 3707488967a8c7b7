// SPDX-License-Identifier: MIT
//
// word_judge: what the words of a forwarding table say about their objects, as a policy asks for it
// (policy/placement.hpp), and what the policy says about them. The handles' half of what the collector does with
// SODA's words.
//
//     judge.look(*table, window, [&](const auto& object) { ... object.at, object.to ... });
//     ... wait ...
//     judge.look_again(*table, window, the same);      // of the same window: counts and arms nothing
//
// look() is once per window and table. A plain word was touched: it is armed again, with the window's number. An
// armed one says how many windows ago that was. What a thread touches meanwhile stays where it is.
//
// What is armed since this window or the next one was opened in it (evacuator.hpp), which for the policy is newborn. In
// the second look it was touched, for opened runs are not looked at twice.
//
// Host: tier_of(address), size_of(address), page_out(tier, address). Threads: the collector.
#pragma once

#include "handles/forwarding.hpp"
#include "policy/placement.hpp"
#include "soda/slot_states.hpp"

#include <obase/word/arming.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace obase::handles {

template <class P, class Host>
class word_judge final : private policy::objects {
  public:
    using table_type = forwarding_table<P>;
    using word_type = typename table_type::word;
    using layout = word::arming;

    struct judged {
        word_type& slot;
        std::uint64_t seen; // as it is armed now, or plain
        policy::tier_id at;
        policy::tier_id to; // where it should live; no_tier: where it is
        bool touched;       // in the window that ended
    };

    word_judge(Host& host, policy::placement& placement)
        : host_(host), placement_(placement), states_(placement.state_bits()) {
        facts_.about = this;
    }

    template <class Use>
    void look(table_type& table, std::uint64_t window, Use&& use) {
        visit(table, window, false, use);
        ++table.looks;
    }
    template <class Use>
    void look_again(table_type& table, std::uint64_t window, Use&& use) {
        visit(table, window, true, use);
    }
    // The table ends.
    void forget(const table_type& table) noexcept {
        if (states_.bits() == 0) return;
        constexpr std::uintptr_t span = sizeof(word_type) * 64;
        const auto begin = reinterpret_cast<std::uintptr_t>(table.begin());
        const auto end = reinterpret_cast<std::uintptr_t>(table.end());
        // A word of states that another table has a part of is left; who begins there begins without.
        const std::uintptr_t first = (begin + span - 1) / span * span;
        const std::uintptr_t last = end / span * span;
        if (first < last) states_.erase(first, last);
    }
    std::size_t state_bytes() const noexcept {
        return states_.bits() != 0 ? states_.memory_bytes() : 0;
    }

  private:
    // Behind the window's own number; what is so young was stamped ahead.
    static constexpr unsigned ahead = 1U << (layout::stamp_bits - 1);

    template <class Use>
    void visit(table_type& table, std::uint64_t window, bool again, Use& use) {
        live_fraction_ = static_cast<double>(table.live() * table.block_size()) / heap::run_bytes;
        begin(0);
        facts_.again = again;
        table.for_each([&](word_type& slot, std::size_t) {
            const std::size_t at = reinterpret_cast<std::uintptr_t>(&slot) / sizeof(word_type);
            const std::uintptr_t base = (at & ~std::size_t{63}) * sizeof(word_type);
            if (base != facts_.base) {
                judge(table, again, use);
                begin(base);
            }
            see(slot, static_cast<unsigned>(at & 63), window, again);
        });
        judge(table, again, use);
    }

    void begin(std::uintptr_t base) noexcept {
        facts_.base = base;
        facts_.seen = facts_.touched = facts_.newborn = facts_.movable = 0;
        facts_.tiers = 0;
        facts_.oldest = 0;
    }

    void see(word_type& slot, unsigned bit, std::uint64_t window, bool again) noexcept {
        std::uint64_t seen = slot.load_acquire();
        if (layout::is_null(seen)) return;
        const std::uint64_t mask = std::uint64_t{1} << bit;
        unsigned idle = 0;
        if (layout::is_armed(seen)) {
            idle = layout::age(seen, window);
            if (idle >= ahead) idle = 0;
            if (again) {
                if (idle == 0) facts_.touched |= mask;
            } else if (idle == 0) {
                facts_.newborn |= mask;
            } else if (idle > restamp_age) { // before the stamp comes round
                idle = restamp_age;
                const std::uint64_t stamp = window - restamp_age / 2;
                if (!word::arm(slot, seen, stamp)) return;
                seen = layout::make_armed(layout::address(seen), stamp);
            }
            facts_.movable |= mask;
        } else {
            facts_.touched |= mask;
            if (!again && word::arm(slot, seen, window)) {
                seen = layout::make_armed(layout::address(seen), window);
                facts_.movable |= mask;
            }
        }
        const policy::tier_id tier = host_.tier_of(layout::address(seen));
        slots_[bit] = &slot;
        words_[bit] = seen;
        facts_.seen |= mask;
        facts_.tiers |= policy::tier_mask{1} << tier;
        facts_.tier[bit] = static_cast<std::uint8_t>(tier);
        facts_.idle[bit] = facts_.quiet[bit] = idle;
        facts_.oldest = std::max(facts_.oldest, idle);
    }

    template <class Use>
    void judge(table_type& table, bool again, Use& use) {
        if (facts_.seen == 0) return;
        verdict_.move = verdict_.held = verdict_.sample = 0;
        if (states_.bits() != 0) {
            states_.load(facts_.base, facts_.seen, facts_.state);
            if (!again && table.looks == 0) facts_.state.fill(0);
        }
        placement_.decide(facts_, verdict_);
        if (states_.bits() != 0 && !again) store_states(table);
        for (std::uint64_t left = facts_.seen; left != 0; left &= left - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(left));
            const bool moves = ((verdict_.move & facts_.movable) >> bit & 1) != 0;
            use(judged{*slots_[bit], words_[bit], policy::tier_id{facts_.tier[bit]},
                       moves ? policy::tier_id{verdict_.to[bit]} : policy::no_tier,
                       (facts_.touched >> bit & 1) != 0});
        }
    }

    // The first and the last words of a table may lie beside those of another one.
    void store_states(table_type& table) noexcept {
        const auto first = reinterpret_cast<std::uintptr_t>(table.begin());
        const auto last = reinterpret_cast<std::uintptr_t>(table.end());
        if (facts_.base < first || facts_.base + 64 * sizeof(word_type) > last) {
            const std::uint64_t mine = facts_.seen;
            soda::slot_states::values all{};
            states_.load(facts_.base, ~std::uint64_t{0}, all);
            for (std::uint64_t left = mine; left != 0; left &= left - 1) {
                const auto bit = static_cast<unsigned>(std::countr_zero(left));
                all[bit] = facts_.state[bit];
            }
            states_.store(facts_.base, ~std::uint64_t{0}, all);
            return;
        }
        states_.store(facts_.base, facts_.seen, facts_.state);
    }

    // policy::objects. What must never be cold is not movable, and has no table.
    bool never_cold(unsigned) const noexcept override { return false; }
    std::size_t size(unsigned bit) const noexcept override {
        return host_.size_of(layout::address(words_[bit]));
    }
    double live_fraction_of_run(unsigned) const noexcept override { return live_fraction_; }
    bool out(unsigned bit) const noexcept override {
        return host_.page_out(facts_.tier[bit], layout::address(words_[bit]));
    }

    static constexpr unsigned restamp_age = layout::restamp_age / 2;

    Host& host_;
    policy::placement& placement_;
    soda::slot_states states_;
    policy::word_facts facts_;
    policy::word_verdict verdict_;
    std::array<word_type*, 64> slots_{};
    std::array<std::uint64_t, 64> words_{};
    double live_fraction_ = 0;
};

} // namespace obase::handles
