// SPDX-License-Identifier: MIT
//
// spin_lock: one byte, for nodes that are locked for a few instructions. spinning: how to wait for
// a thread that needs only those.
//
// For sections that neither block nor take long: waiters yield after a short spin, and there is no
// queue.
//
// `Atomic` is an 8-bit atomic with native_atomic's members, `Wait` has wait(unsigned attempt): both
// replaced under the deterministic scheduler.
#pragma once

#include <obase/word/atomic.hpp>

#include <cstdint>
#include <thread>

namespace crestdb {

struct spinning {
    template <class T>
    using atomic = obase::word::native_atomic<T>;
    // A holder needs some instructions, unless it is not running.
    static void wait(unsigned attempt) noexcept {
        if (attempt < 64)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
    }
};

template <class Atomic, class Wait>
class basic_spin_lock {
  public:
    void lock() noexcept {
        for (unsigned attempt = 0; held_.exchange_acq_rel(1) != 0;) // pairs with unlock()
            while (held_.load_relaxed() != 0) Wait::wait(attempt++);
    }
    void unlock() noexcept { held_.store_release(0); }

  private:
    Atomic held_;
};

using spin_lock = basic_spin_lock<spinning::atomic<std::uint8_t>, spinning>;

} // namespace crestdb
