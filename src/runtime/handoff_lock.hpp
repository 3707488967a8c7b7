// SPDX-License-Identifier: MIT
//
// handoff_lock: the lock the collector holds while it works, and yields at its checkpoints.
//
// A mutex with one addition, yield(): the holder lets a waiting thread go first and takes the lock
// back after it. Fork handlers and the debug mode that arms guides at the end of a scope take it to
// find the collector between two objects. Waiters sleep, and the one that runs first is served:
// with more threads than processors, a queue would wait for the one that sleeps.
//
// Where the holder has no checkpoints, a mutex is enough.
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
        waiting_.fetch_add_acq_rel(1); // seen by yield()
        mutex_.lock();
        waiting_.fetch_sub_acq_rel(1);
        served_.fetch_add_acq_rel(1); // ends the wait in yield()
        was_served_.notify();
    }
    void unlock() noexcept { mutex_.unlock(); }

    // Precondition: held.
    void yield() noexcept {
        if (waiting_.load_acquire() == 0) return;
        const std::uint32_t before = served_.load_acquire();
        mutex_.unlock();
        was_served_.wait(
            [&] { return waiting_.load_acquire() == 0 || served_.load_acquire() != before; });
        mutex_.lock();
    }

    // Child of a fork: the only thread holds it, waiting threads are gone.
    void lock_in_child() noexcept {
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
