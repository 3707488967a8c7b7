// SPDX-License-Identifier: MIT
#include "policy/fault_price.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>

namespace obase::policy {

// 0 to 7 for themselves, then four to an octave.
unsigned fault_price::cell_of(unsigned age) noexcept {
    if (age < single_ages) return age;
    const auto octave = static_cast<unsigned>(std::bit_width(age)) - 4; // 8..15: 0
    const unsigned quarter = (age >> (octave + 1)) & 3;
    return std::min(single_ages + 4 * octave + quarter, cells - 1);
}

int fault_price::oldest_page(const reuse_ages& ages) noexcept {
    int age = reuse_ages::oldest;
    while (age >= 0 && ages.pages[static_cast<unsigned>(age)] == 0) --age;
    return age;
}

double fault_price::hazard(const tier& t, unsigned age) noexcept {
    const cell& seen = t.learned[cell_of(age)];
    return (seen.touched + t.facts.assumed * assumed_pages) / (seen.exposed + assumed_pages);
}

void fault_price::begin() noexcept {
    for (tier& t : tiers_) t.ages = nullptr;
}

void fault_price::learn(tier_id id, const reuse_ages& ages, const tier_facts& facts,
                        bool counts) noexcept {
    tier& t = tiers_[id];
    t.ages = &ages;
    t.facts = facts;
    if (counts) add(t, ages);
    find_rates(t);
}

void fault_price::add(tier& t, const reuse_ages& ages) noexcept {
    std::array<bool, cells> added{};
    for (unsigned age = 0; age <= reuse_ages::oldest; ++age)
        if (ages.exposed[age] != 0) added[cell_of(age)] = true;
    for (unsigned i = 0; i < cells; ++i) {
        if (!added[i]) continue;
        t.learned[i].exposed *= kept;
        t.learned[i].touched *= kept;
    }
    for (unsigned age = 0; age <= reuse_ages::oldest; ++age) {
        cell& one = t.learned[cell_of(age)];
        one.exposed += ages.exposed[age];
        one.touched += ages.touched[age];
    }
}

// Of an age at which nothing was seen nothing is known: there the hazard of the next older one holds, and
// beyond the oldest the last goes on.
void fault_price::find_rates(tier& t) noexcept {
    const auto seen = [&t](unsigned age) { return t.learned[cell_of(age)].exposed >= 1; };
    unsigned oldest = reuse_ages::oldest;
    while (oldest > 0 && !seen(oldest)) --oldest;
    double touch = hazard(t, oldest);
    double windows = 1 / std::max(touch, 1e-9); // to the next touch
    for (unsigned age = reuse_ages::oldest;; --age) {
        if (age < oldest) {
            if (seen(age)) touch = hazard(t, age);
            windows = 1 + (1 - touch) * windows;
        }
        t.rate[age] = 1 / windows;
        if (age == 0) break;
    }
}

// What a window has under the limit: of pages that are out, those that are touched come back, and stay
// for half of it.
fault_price::point fault_price::under(const tier& t, int limit) const noexcept {
    point found{limit, 0, 0};
    double out = 0, next = 0; // pages, and their faults in the next window
    for (unsigned age = 0; age <= reuse_ages::oldest; ++age) {
        const double pages = t.ages->pages[age];
        if (static_cast<int>(age) <= limit) {
            found.resident += pages;
        } else {
            out += pages;
            next += pages * hazard(t, age);
        }
    }
    if (limit < never)
        found.faults = std::max(next, out * t.rate[static_cast<unsigned>(limit + 1)]);
    found.resident += found.faults / 2;
    return found;
}

fault_price::point fault_price::under_limits(const tier& t) const noexcept {
    point now = under(t, t.limit);
    const point lower = under(t, t.lower_limit);
    now.resident += (lower.resident - now.resident) * t.share_lower;
    now.faults += (lower.faults - now.faults) * t.share_lower;
    return now;
}

// Steps from no page out to all, each with more faults for a byte than the one before.
void fault_price::collect(tier_id id) {
    const tier& t = tiers_[id];
    hull_.clear();
    point now = under(t, never);
    double staying = now.resident, out = 0, next = 0;
    hull_.push_back(now);
    for (int limit = never - 1; limit >= -1; --limit) {
        const auto age = static_cast<unsigned>(limit + 1); // that leaves under this limit
        if (t.ages->pages[age] == 0) continue;
        staying -= t.ages->pages[age];
        out += t.ages->pages[age];
        next += t.ages->pages[age] * hazard(t, age);
        const double faults = std::max(next, out * t.rate[age]);
        now = {limit, staying + faults / 2, faults};
        if (now.resident >= hull_.back().resident) continue;
        while (hull_.size() > 1) {
            const point& last = hull_.back();
            const point& before = hull_[hull_.size() - 2];
            // The last is above the line from the one before to the new one.
            if ((last.faults - before.faults) * (before.resident - now.resident) <
                (now.faults - before.faults) * (before.resident - last.resident))
                break;
            hull_.pop_back();
        }
        hull_.push_back(now);
    }
    resident_ += hull_.front().resident;
    for (std::size_t i = 1; i < hull_.size(); ++i) {
        const double resident = hull_[i].resident - hull_[i - 1].resident;
        const double stall = (hull_[i].faults - hull_[i - 1].faults) * t.facts.fault_seconds;
        steps_.push_back({id, hull_[i].limit, resident, stall, stall / -resident});
    }
}

// Towards the limits that are wanted, as fast as they may change.
void fault_price::settle(tier& t, int limit, int lower, double share) noexcept {
    const int oldest = oldest_page(*t.ages);
    const auto towards = [oldest](int now, int wanted) {
        return std::clamp(wanted, (std::min(now, oldest) + 1) / 2 - 1,
                          std::min(2 * now + 2, never));
    };
    t.limit = towards(t.limit, limit);
    t.lower_limit = std::min(towards(t.lower_limit, lower), t.limit);
    t.share_lower = share;
    const point now = under_limits(t);
    faults_ += now.faults;
    stall_ += now.faults * t.facts.fault_seconds;
    resident_ += now.resident;
}

void fault_price::choose(const allowance& allowed) noexcept try {
    resident_ = 0;
    steps_.clear();
    for (tier_id id = 0; id < max_tiers; ++id)
        if (tiers_[id].ages != nullptr) collect(id);
    const bool budget = std::isfinite(allowed.excess_pages);
    const double may_stay = resident_ - allowed.out_pages - allowed.excess_pages;
    std::sort(steps_.begin(), steps_.end(), [](const step& a, const step& b) {
        if (a.price != b.price) return a.price < b.price;
        return a.id != b.id ? a.id < b.id : a.limit > b.limit;
    });
    std::array<int, max_tiers> wanted;
    wanted.fill(never);
    price_ = 0;
    double stall = 0, share = 0;
    const step* last = nullptr; // of which a share is taken
    for (const step& next : steps_) {
        const double taken = budget            ? (resident_ - may_stay) / -next.resident
                             : next.stall == 0 ? 1
                                               : (allowed.stall_seconds - stall) / next.stall;
        if (taken <= 0) break;
        price_ = next.price / page_bytes;
        if (taken < 1) {
            last = &next;
            share = taken;
            break;
        }
        stall += next.stall;
        resident_ += next.resident;
        wanted[next.id] = std::min(wanted[next.id], next.limit);
    }
    faults_ = stall_ = resident_ = 0;
    for (tier_id id = 0; id < max_tiers; ++id) {
        tier& t = tiers_[id];
        const bool split = last != nullptr && last->id == id;
        if (t.ages == nullptr)
            t.limit = t.lower_limit = never;
        else
            settle(t, wanted[id], split ? last->limit : wanted[id], split ? share : 0);
    }
} catch (const std::bad_alloc&) {
}

} // namespace obase::policy
