// SPDX-License-Identifier: MIT
#pragma once

#include "tools/bench/interrupt.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace obase::tools {

// Runs work(first, last) over [0, count), in pieces, on several threads. Ends early when
// interrupted(), and when work throws, which it then throws too.
inline void in_parallel(unsigned threads, std::uint64_t count,
                        const std::function<void(std::uint64_t, std::uint64_t)>& work) {
    constexpr std::uint64_t piece = 4096;
    std::atomic<std::uint64_t> next{0};
    std::mutex mutex;
    std::exception_ptr failed;
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t)
        pool.emplace_back([&] {
            try {
                for (std::uint64_t at; (at = next.fetch_add(piece)) < count && !interrupted();)
                    work(at, std::min(at + piece, count));
            } catch (...) {
                const std::lock_guard guard(mutex);
                failed = std::current_exception();
                next = count;
            }
        });
    for (std::thread& t : pool) t.join();
    if (failed) std::rethrow_exception(failed);
}

} // namespace obase::tools
