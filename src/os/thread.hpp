// SPDX-License-Identifier: MIT
//
// Threads as the operating system sees them.
//
// Identity, CPU time, name and signal mask of threads. Every call is about the calling thread
// unless it takes an id; none fails in a way the caller must handle.
#pragma once

#include <csignal>
#include <cstdint>
#include <utility>

namespace obase::os {

std::uint32_t thread_id() noexcept; // the kernel's id: what top and gdb show
// CPU time used by the calling thread so far, in nanoseconds.
std::uint64_t thread_cpu_ns() noexcept;
// Of all threads of the process, also of those that have ended.
std::uint64_t process_cpu_ns() noexcept;
// Page faults that had to read: of the calling thread, and of all threads of the process.
std::uint64_t thread_major_faults() noexcept;
std::uint64_t process_major_faults() noexcept;
// That were read from disks, swap included: by the calling thread, and by all threads of the process. 0 where the
// kernel does not count them.
std::uint64_t thread_read_bytes() noexcept;
std::uint64_t process_read_bytes() noexcept;
// Monotonic clock, in nanoseconds.
std::uint64_t monotonic_ns() noexcept;
// Lets other threads have the processor for about so long. The kernel may round up by its timer slack.
void sleep_ns(std::uint64_t duration) noexcept;
// Asks the scheduler for short turns of the calling thread: its share of the processor stays the same,
// but when it wakes it need not wait until another thread's turn of milliseconds is over; and for
// sleeps that end on time. Linux 6.12 for the former. Where it is refused, nothing changes.
void prefer_short_turns() noexcept;
// While one exists, the calling thread has every signal blocked that can be. Threads that it makes
// meanwhile inherit that, and keep it: a handler must not run on the mover (rule R13), not even before its
// first line, and a signal for the process must reach a thread that waits for it.
class blocked_signals {
  public:
    blocked_signals() noexcept;
    ~blocked_signals();
    // Within the thread, or to the copy of it that a fork makes: signals stay blocked as long as the new one exists.
    blocked_signals(blocked_signals&& other) noexcept
        : before_(other.before_), blocks_(std::exchange(other.blocks_, false)) {}
    blocked_signals& operator=(blocked_signals&&) = delete;

  private:
    sigset_t before_;
    bool blocks_ = true;
};
// %gs:0 is `address` from now on, in the calling thread and in those that it makes. The C library, compilers and the
// kernel leave that register to the program. False: the kernel refuses. Signal handlers may. Cost: a few ns if
// set_gs_base_is_fast(), else a system call.
bool set_gs_base(const void* address) noexcept;
bool set_gs_base_is_fast() noexcept;
// Shown by top and gdb; cut to 15 bytes.
void name_thread(const char* name) noexcept;
// While one exists, pthread_cancel() does not end the calling thread. For what waits, opens or reads
// inside noexcept functions: cancelling unwinds, and to unwind through noexcept ends the process.
class no_cancellation {
  public:
    no_cancellation() noexcept;
    ~no_cancellation();
    no_cancellation(const no_cancellation&) = delete;
    no_cancellation& operator=(const no_cancellation&) = delete;

  private:
    int before_;
};
// The memory of the calling thread's stack; empty if the C library cannot say.
struct stack_range {
    void* low;
    void* high;
};
stack_range own_stack() noexcept;
// True while the calling thread is in own_stack(). What glibc frees there must not come back to it: it
// holds a lock of the thread.
bool asks_for_stack() noexcept;
// How often obase::heap and others may use the hook below.
inline constexpr unsigned max_exit_hooks = 8;
// Registers `hook` to run in every thread that called arm_exit_hooks(), when that thread exits,
// after its C++ thread_local destructors. Registering the same function again changes nothing.
// False: no key or no room, the hook will never run.
bool add_exit_hook(void (*hook)() noexcept) noexcept;
// From now on the hooks run at the exit of the calling thread. A hook, or a destructor that runs
// after it, may call this again and is then called again, up to `exit_rounds_left` times. False:
// the rounds are used up, nothing will run any more, keep nothing in this thread.
bool arm_exit_hooks() noexcept;
// What arm_exit_hooks() would return if there is memory, changing nothing.
bool can_arm_exit_hooks() noexcept;

} // namespace obase::os
