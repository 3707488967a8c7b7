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
#include <cstdio>
#include <thread>

namespace {
std::atomic<bool> stop{false};
std::thread windows;
} // namespace

void begin_forcing() {
    windows = std::thread([] {
        while (!stop) (void)obase::runtime::of<FORCED>().collect_now();
    });
}

void wait_for_windows() {
    for (int i = 0; i < 2; ++i) (void)obase::runtime::of<FORCED>().collect_now();
}

void end_forcing() {
    stop = true;
    windows.join();
    const obase::statistics s = obase::runtime::of<FORCED>().statistics();
    const auto moved = s.moved_new_to_hot + s.moved_new_to_cold + s.moved_hot_to_cold +
                       s.moved_cold_to_hot + s.compacted + s.moved_other;
    std::fprintf(stderr, "objects moved: %llu\n", static_cast<unsigned long long>(moved));
}
#else
void begin_forcing() {}
void wait_for_windows() {}
void end_forcing() {}
#endif
