// SPDX-License-Identifier: MIT
#include "os/thread.hpp"

#include <asm/hwcap2.h>
#include <asm/prctl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <obase/word/atomic.hpp>

namespace obase::os {
namespace {

using hook_function = void (*)() noexcept;

constinit word::native_atomic<hook_function> hooks[max_exit_hooks];

// glibc holds a lock of the thread meanwhile, and frees.
__thread bool asks_for_own_stack = false;

pthread_key_t key;
bool key_made = false;
pthread_once_t key_once = PTHREAD_ONCE_INIT;

// The C library calls a key's destructor again while destructors keep setting values, at least
// PTHREAD_DESTRUCTOR_ITERATIONS times in all; after that a value is dropped in silence.
__thread int rounds_used = 0;

void run_hooks(void* /*armed*/) noexcept {
    ++rounds_used;
    for (auto& slot : hooks) {
        if (hook_function const hook = slot.load_acquire()) hook();
    }
}

void make_key() noexcept { key_made = pthread_key_create(&key, run_hooks) == 0; }

std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t major_faults(int whose) noexcept {
    rusage usage{};
    return getrusage(whose, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_majflt) : 0;
}

std::uint64_t read_bytes(__rusage_who whose) noexcept {
    constexpr std::uint64_t block = 512;
    rusage use{};
    return getrusage(whose, &use) == 0 ? static_cast<std::uint64_t>(use.ru_inblock) * block : 0;
}

// The kernel's struct sched_attr, first version: the C library of Debian 12 has none.
struct scheduling {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
};
static_assert(sizeof(scheduling) == 48);

} // namespace

stack_range own_stack() noexcept {
    const no_cancellation to_the_end; // of the initial thread glibc reads /proc/self/maps
    asks_for_own_stack = true;
    stack_range found{nullptr, nullptr};
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        std::size_t bytes = 0;
        if (pthread_attr_getstack(&attributes, &found.low, &bytes) != 0) bytes = 0;
        pthread_attr_destroy(&attributes);
        found.high = static_cast<char*>(found.low) + bytes;
    }
    asks_for_own_stack = false;
    return found;
}

bool asks_for_stack() noexcept { return asks_for_own_stack; }

std::uint32_t thread_id() noexcept { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

std::uint64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

std::uint64_t process_cpu_ns() noexcept { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

std::uint64_t thread_major_faults() noexcept { return major_faults(RUSAGE_THREAD); }

std::uint64_t process_major_faults() noexcept { return major_faults(RUSAGE_SELF); }

std::uint64_t thread_read_bytes() noexcept { return read_bytes(RUSAGE_THREAD); }

std::uint64_t process_read_bytes() noexcept { return read_bytes(RUSAGE_SELF); }

std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

void sleep_ns(std::uint64_t duration) noexcept {
    const timespec request{static_cast<time_t>(duration / 1'000'000'000U),
                           static_cast<long>(duration % 1'000'000'000U)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &request, nullptr);
}

void prefer_short_turns() noexcept {
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    constexpr std::uint64_t shortest_turn = 100'000; // ns: what the kernel allows
    scheduling now{};
    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0) return;
    if (now.policy != SCHED_OTHER && now.policy != SCHED_BATCH) return; // the program has chosen
    now.size = sizeof now;
    now.flags = 0;
    now.runtime = shortest_turn;
    syscall(SYS_sched_setattr, 0, &now, 0);
}

blocked_signals::blocked_signals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
}
blocked_signals::~blocked_signals() {
    if (blocks_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

no_cancellation::no_cancellation() noexcept {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
}
no_cancellation::~no_cancellation() { pthread_setcancelstate(before_, nullptr); }

// By an instruction where the kernel allows it (5.9): a filter of system calls, which a program may have set up since, has
// no say in it.
bool set_gs_base_is_fast() noexcept {
    static constinit word::native_atomic<int> known; // 0: not yet; else 1 + the answer
    int answer = known.load_relaxed();
    if (answer == 0) {
        answer = 1 + ((getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0 ? 1 : 0);
        known.store_relaxed(answer);
    }
    return answer == 2;
}
bool set_gs_base(const void* address) noexcept {
    if (!set_gs_base_is_fast()) return syscall(SYS_arch_prctl, ARCH_SET_GS, address) == 0;
    __asm__ volatile("wrgsbase %0" : : "r"(address));
    return true;
}

void name_thread(const char* name) noexcept { prctl(PR_SET_NAME, name, 0, 0, 0); }

bool add_exit_hook(void (*hook)() noexcept) noexcept {
    pthread_once(&key_once, make_key);
    if (!key_made) return false;
    for (auto& slot : hooks) {
        hook_function seen = nullptr;
        if (slot.cas_acq_rel(seen, hook) || seen == hook) return true;
    }
    return false;
}

bool can_arm_exit_hooks() noexcept {
    pthread_once(&key_once, make_key);
    // One round is kept unused: an older C library may stop at exactly the minimum.
    return key_made && rounds_used < PTHREAD_DESTRUCTOR_ITERATIONS - 1;
}
bool arm_exit_hooks() noexcept {
    static char armed;
    return can_arm_exit_hooks() && pthread_setspecific(key, &armed) == 0;
}

} // namespace obase::os
