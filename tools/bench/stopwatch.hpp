// SPDX-License-Identifier: MIT
//
// Two clocks. `cpu_ns` is the time the calling thread has computed: what another process takes away
// from this thread is not in it, so ratios of short slices stay good on a shared machine. `wall_ns`
// is what a user waits.
#pragma once

#include <ctime>

namespace obase::tools {

inline double clock_ns(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
inline double cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
inline double wall_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

} // namespace obase::tools
