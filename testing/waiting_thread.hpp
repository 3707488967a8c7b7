// SPDX-License-Identifier: MIT
//
// waiting_thread: a thread that has done something and waits, with it in its own frame, until it is
// told to end.
//
//     waiting_thread reader([](const auto& wait) {
//         const obase::scope s;
//         wait(); // the scope is open, the constructor returns
//     });
//     reader.end();
//
// Threads: end() by any one; the rest by the one that made it.
#pragma once

#include <atomic>
#include <thread>

namespace obase::testing {

class waiting_thread {
  public:
    // Returns when the thread is in wait(), which begin(wait) calls once.
    template <class Begin>
    explicit waiting_thread(Begin begin)
        : thread_([this, begin] { // the frame of `begin` stays until the end
              begin([this] {
                  ready_ = true;
                  while (!end_) std::this_thread::yield();
              });
          }) {
        while (!ready_) std::this_thread::yield();
    }
    ~waiting_thread() {
        if (thread_.joinable()) end();
    }
    waiting_thread(const waiting_thread&) = delete;
    waiting_thread& operator=(const waiting_thread&) = delete;

    // Returns when the thread has ended.
    void end() {
        end_ = true;
        thread_.join();
    }

  private:
    std::atomic<bool> ready_{false};
    std::atomic<bool> end_{false};
    std::thread thread_;
};

} // namespace obase::testing
