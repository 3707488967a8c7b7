// SPDX-License-Identifier: MIT
//
// handoff_lock: the lock the collector holds while it works, and lends at its checkpoints.
//
// What it is: a mutex with one addition, lend(): the holder lets somebody who is waiting go first and
// takes the lock back behind him. Fork handlers and the debug mode that arms guides at the end of a
// scope take it to find the collector between two objects. Waiters sleep, and whoever of them runs
// first is served: with more threads than processors, a queue would wait for the one that sleeps.
//
// When not to use it: where the holder has no checkpoints; take the mutex.
#pragma once

#include "os/platform.hpp"
#include "os/waiting.hpp"

#include <cstdint>
#include <mutex>
#include <new>

namespace obase::runtime_internal {

class handoff_lock {
  public:
    void lock() noexcept {
        waiting_.fetch_add_acq_rel(1); // seen by lend()
        mutex_.lock();
        waiting_.fetch_sub_acq_rel(1);
        served_.fetch_add_acq_rel(1); // ends the wait in lend()
        was_served_.notify();
    }
    void unlock() noexcept { mutex_.unlock(); }

    // Precondition: held.
    void lend() noexcept {
        if (waiting_.load_acquire() == 0) return;
        const std::uint32_t before = served_.load_acquire();
        mutex_.unlock();
        was_served_.wait(
            [&] { return waiting_.load_acquire() == 0 || served_.load_acquire() != before; });
        mutex_.lock();
    }

    // Child of a fork: the only thread holds it, whoever waited is gone.
    void hold_alone() noexcept {
        waiting_.store_relaxed(0);
        was_served_.forget_waiters();
        ::new (&mutex_) std::mutex;
        mutex_.lock();
    }

  private:
    std::mutex mutex_;
    word::native_atomic<std::uint32_t> waiting_;
    word::native_atomic<std::uint32_t> served_;
    os::wait_point<os::native_platform> was_served_; // waiting_ or served_ has changed
};

} // namespace obase::runtime_internal
