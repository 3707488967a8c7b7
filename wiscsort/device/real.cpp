// SPDX-License-Identifier: MIT
#include "wiscsort/device/device.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace wiscsort::device {

void real_device::parallel(unsigned threads, const std::function<void(unsigned)>& body) {
    std::mutex lock;
    std::exception_ptr first;
    const auto run = [&](unsigned number) {
        try {
            body(number);
        } catch (...) {
            const std::lock_guard hold(lock);
            if (!first) first = std::current_exception();
        }
    };
    std::vector<std::thread> started;
    started.reserve(threads);
    unsigned number = 1;
    try {
        for (; number < threads; ++number) started.emplace_back(run, number);
    } catch (const std::system_error&) {
        // No more threads to be had: this one does what is left.
    }
    run(0);
    for (; number < threads; ++number) run(number);
    for (std::thread& thread : started) thread.join();
    if (first) std::rethrow_exception(first);
}

double real_device::now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace wiscsort::device
