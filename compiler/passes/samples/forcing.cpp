// SPDX-License-Identifier: MIT
//
// With FORCED, a protocol, a thread that asks for its windows; without it nothing. Compiled without the
// plugin.
#include "forcing.hpp"

#if defined(FORCED)
#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/runtime.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {
std::atomic<bool> stop{false};
std::thread windows;
} // namespace

void begin_forcing() {
    // A signal for the process is for the program's threads, which wait for it.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const char* asked = std::getenv("OBASE_TEST_PAUSE");
    const std::chrono::microseconds pause(asked != nullptr ? std::atoi(asked) : 0);
    windows = std::thread([pause] {
        while (!stop) {
            (void)obase::runtime::of<FORCED>().collect_now();
            if (pause.count() != 0) std::this_thread::sleep_for(pause);
        }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void wait_for_windows() {
    for (int i = 0; i < 2; ++i) (void)obase::runtime::of<FORCED>().collect_now();
}

void end_forcing() {
    stop = true;
    windows.join();
    const obase::statistics s = obase::runtime::of<FORCED>().statistics();
    const auto moved = s.moved_objects + s.compacted;
    std::fprintf(stderr, "objects moved: %llu\n", static_cast<unsigned long long>(moved));
}
#else
void begin_forcing() {}
void wait_for_windows() {}
void end_forcing() {}
#endif
