// SPDX-License-Identifier: MIT
//
// The client of `obase bench fragmentation --program redis`, which measures how long a reply takes while the server
// defragments, and can be stopped while something else asks the server or the kernel about it.
#pragma once

#include "tools/server/resp_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace obase::tools {

// Asks for one value after the other, of `values` of the second load, until finish() or its end, in a thread of its
// own. Threads: one at a time.
class reading_client {
  public:
    // Of the values: those of the first load, and those that came last.
    static constexpr std::size_t first_bytes = 240, second_bytes = 492;

    reading_client(const std::string& socket, std::uint64_t values)
        : thread_([this, socket, values] { read(socket, values); }) {}
    ~reading_client() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    reading_client(const reading_client&) = delete;
    reading_client& operator=(const reading_client&) = delete;

    // Ends it. Throws what the thread met.
    void finish() {
        stop_ = true;
        thread_.join();
        if (failed_) std::rethrow_exception(failed_);
    }
    // While one exists, nothing is asked for and no wait is measured.
    class pause {
      public:
        explicit pause(reading_client& its) : its_(its) {
            std::unique_lock hold(its_.lock_);
            its_.pauses_ = true;
            its_.changed_.wait(hold, [&] { return its_.paused_ || its_.ended_; });
        }
        ~pause() {
            {
                const std::lock_guard hold(its_.lock_);
                its_.pauses_ = false;
            }
            its_.changed_.notify_all();
        }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;

      private:
        reading_client& its_;
    };
    // After finish(): the longest wait for a reply in microseconds; values that were there, and of them those that
    // were other ones.
    double longest_us = 0;
    std::uint64_t found = 0, wrong = 0;

  private:
    void read(const std::string& socket, std::uint64_t values) {
        try {
            resp_client client(socket);
            for (std::uint64_t i = 0; !stop_; i = (i + 7919) % values) {
                wait_while_paused();
                const std::string key = fmt::format("b:{}", i);
                const auto begin = std::chrono::steady_clock::now();
                const std::optional<std::string> value = client.ask({"GET", key});
                const std::chrono::duration<double, std::micro> took =
                    std::chrono::steady_clock::now() - begin;
                longest_us = std::max(longest_us, took.count());
                if (!value.has_value()) continue;
                ++found;
                if (value->size() != second_bytes ||
                    !value->starts_with(fmt::format("value:{}", i)))
                    ++wrong;
            }
        } catch (...) {
            failed_ = std::current_exception();
        }
        {
            const std::lock_guard hold(lock_);
            ended_ = true;
        }
        changed_.notify_all();
    }
    void wait_while_paused() {
        std::unique_lock hold(lock_);
        if (!pauses_) return;
        paused_ = true;
        changed_.notify_all();
        changed_.wait(hold, [this] { return !pauses_; });
        paused_ = false;
    }

    std::mutex lock_;
    std::condition_variable changed_;
    bool pauses_ = false, paused_ = false, ended_ = false; // under lock_

    std::atomic<bool> stop_ = false;
    std::exception_ptr failed_;
    std::thread thread_; // last: the others are there when it begins
};

} // namespace obase::tools
