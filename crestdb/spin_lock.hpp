// SPDX-License-Identifier: MIT
//
// spin_lock: one byte, for nodes that are locked for a few instructions.
//
// When not to use it: around anything that may block or take long; waiters yield after a short spin, but
// nobody queues.
#pragma once

#include <atomic>
#include <thread>

namespace crestdb {

class spin_lock {
  public:
    void lock() noexcept {
        for (unsigned spins = 0; held_.test_and_set(std::memory_order_acquire); ++spins) {
            while (held_.test(std::memory_order_relaxed)) {
                if (++spins < spins_before_yield)
                    __builtin_ia32_pause();
                else
                    std::this_thread::yield();
            }
        }
    }
    void unlock() noexcept { held_.clear(std::memory_order_release); }

  private:
    static constexpr unsigned spins_before_yield = 64;
    std::atomic_flag held_;
};

} // namespace crestdb
