// SPDX-License-Identifier: MIT
//
// fair_shared_mutex: a std::shared_mutex under which writers do not starve.
//
//     crestdb::fair_shared_mutex mutex;
//     { std::shared_lock reading(mutex); ... }
//     { std::unique_lock writing(mutex); ... }
//
// Writers queue at a gate, a mutex that the one whose turn it is keeps until it has finished. A
// reader that sees a writer wait goes through the gate, too, before it reads; the others pay one
// load. glibc's lock alone lets readers in as long as there are readers: with six threads that read
// all the time, on two cores, a seventh that wrote got nowhere at all (docs/indexes/coarse.md).
//
// Not recursive: a thread that locks it shared twice would wait for the writer that waits for it.
// For sections of a few instructions spin_lock.hpp is cheaper.
//
// Threads: as std::shared_mutex. As fair as std::mutex: no thread starves, but there is no order.
#pragma once

#include <obase/word/atomic.hpp>

#include <mutex>
#include <shared_mutex>

namespace crestdb {

class fair_shared_mutex {
  public:
    void lock() {
        gate_.lock();
        writer_waits_.store_relaxed(true); // a hint: who misses it is one more reader to wait for
        mutex_.lock();
        writer_waits_.store_relaxed(false);
    }
    void unlock() {
        mutex_.unlock();
        gate_.unlock();
    }
    void lock_shared() {
        if (writer_waits_.load_relaxed()) const std::lock_guard behind_the_writer(gate_);
        mutex_.lock_shared();
    }
    // False also if a writer waits.
    bool try_lock_shared() { return !writer_waits_.load_relaxed() && mutex_.try_lock_shared(); }
    void unlock_shared() { mutex_.unlock_shared(); }

  private:
    std::shared_mutex mutex_;
    obase::word::native_atomic<bool> writer_waits_;
    alignas(64) std::mutex gate_;
};

} // namespace crestdb
