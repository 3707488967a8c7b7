// SPDX-License-Identifier: MIT
#include "os/platform.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace obase::os {
namespace {

enum class registration : int { unknown, done, refused };

constinit word::native_atomic<registration> state{registration::unknown};
constinit word::native_atomic<bool> fail_for_tests{false};

long call(int command) noexcept { return syscall(SYS_membarrier, command, 0U, 0); }

} // namespace

bool membarrier_available() noexcept {
    if (fail_for_tests.load_relaxed()) return false;
    registration now = state.load_acquire();
    if (now == registration::unknown) {
        // Registering twice is harmless, so two first callers need no lock.
        const long supported = call(MEMBARRIER_CMD_QUERY);
        const bool ok = supported >= 0 && (supported & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                        call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
        now = ok ? registration::done : registration::refused;
        state.store_release(now);
    }
    return now == registration::done;
}

bool membarrier() noexcept {
    return membarrier_available() && call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void membarrier_fail_for_tests(bool fail) noexcept { fail_for_tests.store_relaxed(fail); }

void yield() noexcept { sched_yield(); }

void invariant_broken(const char* what) noexcept {
    static constexpr char prefix[] = "obase: invariant broken: ";
    // write, not stdio: the caller may hold any lock.
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, prefix, sizeof prefix - 1);
    written = write(STDERR_FILENO, what, std::strlen(what));
    written = write(STDERR_FILENO, "\n", 1);
    std::abort();
}

} // namespace obase::os
