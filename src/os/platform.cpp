// SPDX-License-Identifier: MIT
#include "os/platform.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace obase::os {
namespace {

enum class registration : int { unknown, done, refused };

constinit word::native_atomic<registration> state{registration::unknown};
constinit word::native_atomic<bool> fail_for_tests{false};

// A scope's end or a slot's destructor in a signal handler leaves errno as it was.
class preserved_errno {
  public:
    preserved_errno() noexcept : before_(errno) {}
    ~preserved_errno() { errno = before_; }
    preserved_errno(const preserved_errno&) = delete;
    preserved_errno& operator=(const preserved_errno&) = delete;

  private:
    int before_;
};

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

void sleep_on(const word::native_atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    const preserved_errno keep;
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void sleep_on_for(const word::native_atomic<std::uint32_t>& word, std::uint32_t expected,
                  std::uint64_t nanoseconds) noexcept {
    const preserved_errno keep;
    const timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000U),
                         static_cast<long>(nanoseconds % 1'000'000'000U)};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void wake_all(const word::native_atomic<std::uint32_t>& word) noexcept {
    const preserved_errno keep;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void invariant_broken(const char* what) noexcept {
    static constexpr char prefix[] = "obase: invariant broken: ";
    // write, not stdio: the caller may hold any lock.
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, prefix, sizeof prefix - 1);
    written = write(STDERR_FILENO, what, std::strlen(what));
    written = write(STDERR_FILENO, "\n", 1);
    std::abort();
}

} // namespace obase::os
