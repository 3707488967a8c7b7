// SPDX-License-Identifier: MIT
//
// crew: threads that stay while they are given one piece of work after the other, so that a slice
// of a measurement begins with threads that have run before (their caches in the heaps are filled).
//
//     crew workers(2);
//     workers.begin([&](unsigned number) { ... });
//     stop = true;
//     workers.wait();
//
// Threads: used by one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace obase::tools {

class crew {
  public:
    explicit crew(unsigned threads) {
        for (unsigned number = 0; number < threads; ++number)
            threads_.emplace_back([this, number] { serve(number); });
    }
    ~crew() {
        {
            const std::lock_guard guard(mutex_);
            end_ = true;
        }
        changed_.notify_all();
        for (std::thread& t : threads_) t.join();
    }
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    // work(number of the thread), once by each. Precondition: wait() has been called for the last.
    void begin(std::function<void(unsigned)> work) {
        {
            const std::lock_guard guard(mutex_);
            work_ = std::move(work);
            at_work_ = threads_.size();
            ++piece_;
        }
        changed_.notify_all();
    }
    // Until all have returned. Throws what one of them threw.
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return at_work_ == 0; });
        if (const std::exception_ptr failed = std::exchange(failed_, nullptr))
            std::rethrow_exception(failed);
    }

  private:
    void serve(unsigned number) {
        std::uint64_t last = 0;
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return end_ || piece_ != last; });
            if (piece_ == last) return;
            last = piece_;
            lock.unlock();
            std::exception_ptr failed;
            try {
                work_(number);
            } catch (...) {
                failed = std::current_exception();
            }
            lock.lock();
            if (failed) failed_ = failed;
            if (--at_work_ == 0) changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void(unsigned)> work_; // changes only while no thread is at work
    std::uint64_t piece_ = 0;
    std::size_t at_work_ = 0;
    bool end_ = false;
    std::exception_ptr failed_;
    std::vector<std::thread> threads_;
};

} // namespace obase::tools
