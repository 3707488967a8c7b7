// SPDX-License-Identifier: MIT
//
// handoff_lock: the lock the collector holds while it works, and lends at its checkpoints.
//
// What it is: a ticket lock with one addition, lend(): the holder lets everybody who is waiting go
// first and takes the lock back behind them. Fork handlers and the debug mode that arms guides at
// the end of a scope take it to find the collector between two objects.
//
// When not to use it: where the wait is on a hot path; waiters spin and yield.
#pragma once

#include "os/platform.hpp"

#include <cstdint>

namespace obase::runtime_internal {

class handoff_lock {
  public:
    void lock() noexcept {
        const std::uint32_t mine = next_.fetch_add_acq_rel(1);
        while (serving_.load_acquire() != mine) os::native_platform::yield(); // pairs with unlock()
    }
    void unlock() noexcept { serving_.store_release(serving_.load_relaxed() + 1); }

    // Precondition: held.
    void lend() noexcept {
        if (next_.load_relaxed() == serving_.load_relaxed() + 1) return; // nobody waits
        unlock();
        lock();
    }

    // Child of a fork: the only thread holds it, whoever waited is gone.
    void hold_alone() noexcept {
        next_.store_relaxed(1);
        serving_.store_relaxed(0);
    }

  private:
    word::native_atomic<std::uint32_t> next_;
    word::native_atomic<std::uint32_t> serving_;
};

} // namespace obase::runtime_internal
