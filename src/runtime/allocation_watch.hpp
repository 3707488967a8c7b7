// SPDX-License-Identifier: MIT
//
// allocation_watch: when threads that take new memory look at how much the process uses, and whether waiting
// for early windows pays.
//
//     if (watch.due(taken))                       // after an allocation that was not at hand
//         if (auto claim = watch.claim(taken)) {  // one thread of all
//             ... look, budget ...
//             watch.settle(*claim, watch.next_after(taken, budget));
//         }
//     watch.note_budget(budget);                  // the collector, when a window begins
//     watch.note_window(left, budget);            // the collector, after an early window
//
// `taken` is heap::space::new_bytes(): it only grows, and by whole runs. The next look is due when so much more
// has been taken as could not matter: 1/32 of what the process may still grow, at least 1 MiB. So a load from
// nothing to a budget takes about 32 looks for each halving of the room, and the room is what is left up to the
// limit, not the budget: the nearer to the limit, the more often threads wait.
//
// Windows after which nothing leaves memory are not worth waiting for. After `patience` of them in a row a thread that
// waits does so for one window, and after each further one twice as much may be taken until the next look. So a program
// that uses all of its memory waits a number of times that grows with the logarithm of what it allocates. All is as at
// the beginning when a window finds the process within its budget. For how long threads wait in all is wait_credit's to
// say.
//
// Threads: due(), claim(), settle(), next_after(), hopeless(), restart() by any; note_window() by the collector. No
// data is published by the words here: they say when, not what. Cost of due(): a load and a comparison.
#pragma once

#include "backend/memory_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace obase::runtime_internal {

using backend::memory_budget;

template <class P>
class allocation_watch {
  public:
    static constexpr std::uint64_t never = UINT64_MAX; // no budget, or nothing that could make room
    static constexpr std::uint64_t least_step = std::uint64_t{1} << 20;
    static constexpr std::uint64_t looks = 32; // for a halving of the room
    static constexpr unsigned patience = 4; // windows; the first one only arms what was just made

    bool due(std::uint64_t taken) const noexcept { return taken >= next_look_.load_relaxed(); }

    // For one of the threads for which a look is due: what it gives to settle().
    std::optional<std::uint64_t> claim(std::uint64_t taken) noexcept {
        std::uint64_t seen = next_look_.load_relaxed();
        const std::uint64_t mine = taken + least_step; // of a look that does not come to its end
        if (taken < seen || !next_look_.cas_relaxed(seen, mine)) return std::nullopt;
        return mine;
    }
    // The look is over. Nothing happens if it was asked to begin anew meanwhile, or another look is due.
    void settle(std::uint64_t claimed, std::uint64_t next) noexcept {
        next_look_.cas_relaxed(claimed, next);
    }
    std::uint64_t next_after(std::uint64_t taken, const memory_budget& now) const noexcept {
        if (now.allowed == 0) return never;
        const std::uint64_t step = std::max(now.may_grow() / looks, least_step);
        const unsigned useless = useless_.load_relaxed();
        if (now.excess() <= 0 || useless < patience) return taken + step;
        return taken + (step << std::min(useless - patience + 1, most_doublings));
    }

    // The next allocation that is not at hand looks: the options or the collector have changed.
    void restart() noexcept {
        useless_.store_relaxed(0);
        next_look_.store_relaxed(0);
    }
    // A window begins. So a budget that there was not, or that is less than it was, is seen, and room where there was
    // none.
    void note_budget(const memory_budget& now) noexcept {
        if (now.allowed == 0) return;
        std::uint64_t off = never;
        if (next_look_.cas_relaxed(off, 0)) return;
        if (now.excess() <= 0 && hopeless())
            restart();
        else if (now.excess() > 0 && !hopeless())
            next_look_.store_relaxed(0);
    }

    // An early window has ended, after which so many bytes left memory.
    void note_window(std::uint64_t left, const memory_budget& now) noexcept {
        useless_.store_relaxed(left >= worth_a_wait(now) ? 0 : useless_.load_relaxed() + 1);
    }
    static std::uint64_t worth_a_wait(const memory_budget& now) noexcept { // bytes
        return std::max(now.allowed / least_share, least_step);
    }
    bool hopeless() const noexcept { return useless_.load_relaxed() >= patience; }

  private:
    static constexpr std::uint64_t least_share = 256; // of the budget
    static constexpr unsigned most_doublings = 20;

    typename P::template atomic<std::uint64_t> next_look_; // a value of new_bytes()
    typename P::template atomic<std::uint32_t>
        useless_; // windows in a row that freed next to nothing
};

} // namespace obase::runtime_internal
