// SPDX-License-Identifier: MIT
//
// run_stack: a lock-free stack of run numbers (Treiber), for partial runs and free runs.
//
// One word, {tag 32, top run + 1: 32}. The link of a run lies in its metadata, which is never
// unmapped, so reading the link of a run that was popped meanwhile is harmless: the tag, which
// every change advances, makes the compare-exchange fail. A stall of exactly 2^32 changes between
// load and exchange would defeat it; at one change per microsecond that is 71 minutes inside two
// instructions.
//
// `next` arguments are functions from a run number to the atomic link of that run.
//
// Blocks inside of runs are listed in the run's own word instead.
#pragma once

#include <cstdint>

namespace obase::heap {

template <class P>
class run_stack {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // Precondition: the caller alone holds `run`. Releases what it wrote to the run's metadata.
    template <class Next>
    void push(std::uint32_t run, Next&& next) noexcept {
        std::uint64_t seen = top_.load_relaxed();
        for (;;) {
            next(run).store_relaxed(number(seen));
            if (top_.cas_acq_rel(seen, successor(seen, run))) return;
        }
    }

    // The run on top, now the caller's alone; `none` when empty. Pairs with push.
    template <class Next>
    std::uint32_t pop(Next&& next) noexcept {
        std::uint64_t seen = top_.load_acquire();
        for (;;) {
            const std::uint32_t run = number(seen);
            if (run == none) return none;
            if (top_.cas_acq_rel(seen, successor(seen, next(run).load_relaxed()))) return run;
        }
    }

    // Empties the stack; the result is the first run of a chain through `next`, the caller's alone.
    std::uint32_t take_all() noexcept {
        std::uint64_t seen = top_.load_acquire();
        for (;;) {
            if (number(seen) == none) return none;
            if (top_.cas_acq_rel(seen, successor(seen, none))) return number(seen);
        }
    }

    bool empty() const noexcept { return number(top_.load_relaxed()) == none; }

  private:
    static constexpr std::uint32_t number(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(word) - 1U; // an all-zero word is the empty stack
    }
    static constexpr std::uint64_t successor(std::uint64_t before, std::uint32_t run) noexcept {
        return ((before >> 32) + 1) << 32 | (run + 1U);
    }

    typename P::template atomic<std::uint64_t> top_;
};

} // namespace obase::heap
