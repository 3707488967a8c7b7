// SPDX-License-Identifier: MIT
//
// wait_point and blocking_lock: waiting that gives the processor to the thread waited for.
//
// A thread that waits for another one spins for a moment and then sleeps in the kernel. It never
// spins on sched_yield(): a real-time thread that does so keeps the processor from the thread it
// waits for, for ever.
//
// Example (`ready` is an atomic that another thread sets):
//     point.wait([&] { return ready.load_acquire(); });            // the waiter
//     ready.store_release(true); point.notify();                   // the other thread
//
// Cost where no thread waits: notify() is one load and a branch. The store before it may be plain,
// because the waiter pays for the fence that is missing between that store and that load:
//   waiter     announces itself in `waiters_` (seq_cst), then membarrier(), then asks done()
//   notifier   makes done() true, compiler fence, then reads `waiters_`
// Either the notifier's store came before its share of the barrier, and done() sees it, or its load
// comes after, and sees the waiter. Where membarrier fails the waiter sleeps for a bounded time, at
// most a millisecond, and asks again.
//
// Threads: wait() and notify() by any thread. The object outlives every call of either.
#pragma once

#include "os/platform.hpp"

#include <algorithm>
#include <cstdint>

namespace obase::os {

// All zero bytes are a wait point without waiters.
template <class P>
class wait_point {
  public:
    // Returns once done() has returned true. done() becomes true by a store that is followed by
    // notify(); it may be asked at any time, also when nothing has changed.
    template <class Done>
    void wait(Done&& done) noexcept {
        for (unsigned spins = 0; spins < P::spins_before_sleep; ++spins) {
            if (done()) return;
            P::pause();
        }
        sleep_until(done);
    }

    // After the store that made a waiter's done() true.
    void notify() noexcept {
        if (is_waited_for()) [[unlikely]]
            wake();
    }
    // After that store, by a thread that calls notify() then if it is so.
    bool is_waited_for() const noexcept {
        P::compiler_fence(); // pairs with sleep_until(), by its membarrier
        return waiters_.load_relaxed() != 0;
    }

    // Child of a fork: the threads that waited do not exist.
    void forget_waiters() noexcept { waiters_.store_relaxed(0); }

  private:
    static constexpr std::uint64_t first_nap_ns = 50'000; // without membarrier
    static constexpr std::uint64_t longest_nap_ns = 1'000'000;

    template <class Done>
    [[gnu::noinline]] void sleep_until(Done& done) noexcept {
        waiters_.fetch_add_seq_cst(1);
        std::uint64_t nap = first_nap_ns;
        for (;;) {
            // Before done() is asked: a wake() after that changes it, and the sleep does not begin.
            const std::uint32_t seen = generation_.load_acquire();
            const bool ordered = P::membarrier(); // pairs with notify()
            if (done()) break;
            if (ordered) {
                P::sleep_on(generation_, seen);
            } else {
                P::sleep_on_for(generation_, seen, nap);
                nap = std::min(2 * nap, longest_nap_ns);
            }
        }
        waiters_.fetch_sub_acq_rel(1);
    }

    [[gnu::noinline]] void wake() noexcept {
        generation_.fetch_add_seq_cst(1);
        P::wake_all(generation_);
    }

    typename P::template atomic<std::uint32_t> waiters_;
    typename P::template atomic<std::uint32_t> generation_;
};

// A lock for short sections that hold no system call. Locking is one compare-exchange, unlocking a
// plain store. Not recursive, not fair. All zero bytes are an unlocked one.
template <class P>
class blocking_lock {
  public:
    bool try_lock() noexcept {
        std::uint32_t unlocked = 0;
        return held_.cas_acq_rel(unlocked, 1);
    }
    void lock() noexcept {
        if (try_lock()) [[likely]]
            return;
        released_.wait([this] { return held_.load_relaxed() == 0 && try_lock(); });
    }
    void unlock() noexcept {
        held_.store_release(0);
        released_.notify();
    }
    // Child of a fork, by the thread that held the lock at the fork.
    void unlock_in_child() noexcept {
        released_.forget_waiters();
        held_.store_release(0);
    }

  private:
    typename P::template atomic<std::uint32_t> held_;
    wait_point<P> released_;
};

} // namespace obase::os
