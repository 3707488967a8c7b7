// SPDX-License-Identifier: MIT
#include "os/bus_error.hpp"

#include "os/platform.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace obase::os {

namespace {

// Filled before `known` counts it (release); the handler reads `known` first (acquire).
struct range {
    std::uintptr_t begin = 0, end = 0;
    char what[256] = "";
};
range ranges[bus_error_ranges];
native_platform::atomic<unsigned> known;
std::mutex filling;

// Only what may be called in a signal handler.
void on_bus_error(int, siginfo_t* info, void*) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const unsigned count = known.load_acquire();
    for (unsigned i = 0; i < count; ++i) {
        if (at < ranges[i].begin || at >= ranges[i].end) continue;
        const char* const text = ranges[i].what;
        [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
        _exit(1);
    }
    // The access is tried again, and ends the process as it would have without this handler.
    signal(SIGBUS, SIG_DFL);
}

} // namespace

void end_on_bus_error(std::uintptr_t begin, std::uintptr_t end, const char* what) noexcept {
    const std::lock_guard guard(filling);
    const unsigned count = known.load_relaxed();
    if (count == bus_error_ranges) return;
    struct sigaction now{};
    if (sigaction(SIGBUS, nullptr, &now) != 0) return;
    const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_bus_error;
    const bool usual = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
    if (!ours && !usual) return;
    ranges[count].begin = begin;
    ranges[count].end = end;
    std::snprintf(ranges[count].what, sizeof ranges[count].what,
                  "obase: %.200s cannot be read; the process ends\n", what);
    known.store_release(count + 1);
    if (ours) return;
    struct sigaction handler{};
    handler.sa_sigaction = &on_bus_error;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&handler.sa_mask);
    sigaction(SIGBUS, &handler, nullptr);
}

} // namespace obase::os
