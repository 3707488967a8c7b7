// SPDX-License-Identifier: MIT
//
// spin_lock: one byte, for nodes that are locked for a few instructions.
//
// When not to use it: around anything that may block or take long; waiters yield after a short
// spin, but nobody queues.
#pragma once

#include <obase/word/atomic.hpp>

#include <cstdint>
#include <thread>

namespace crestdb {

class spin_lock {
  public:
    void lock() noexcept {
        for (unsigned spins = 0; held_.exchange_acq_rel(1) != 0;) { // pairs with unlock()
            while (held_.load_relaxed() != 0) {
                if (++spins < spins_before_yield)
                    __builtin_ia32_pause();
                else
                    std::this_thread::yield();
            }
        }
    }
    void unlock() noexcept { held_.store_release(0); }

  private:
    static constexpr unsigned spins_before_yield = 64;
    obase::word::native_atomic<std::uint8_t> held_;
};

} // namespace crestdb
