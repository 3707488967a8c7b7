// SPDX-License-Identifier: MIT
//
// tasks: what the kernel says about the threads of this process.
//
//     if (os::thread_without_library(&has_run) != 0) ...      // move nothing: it may be nobody's thread
//
// Readings of /proc/self/task. None fails: what the kernel does not tell counts as in order, and what
// cannot be read now, for want of a descriptor, as not known.
// Threads: any. Allocates nothing.
#pragma once

#include <cstdint>

namespace obase::os {

// A thread of this process that was made without the C library (a raw clone), so that its thread-local memory may be
// another thread's; or one that the library is just starting. 0: there is none. Threads that the kernel made for itself
// (io_uring), and threads that are ending, do not count. It is told by the list of robust mutexes, which the C library announces in each thread of its own.
// Cost: two system calls, and one for each thread. It opens files, so thread_count() is asked first.
// `has_run`: for so long that the library would have finished starting it.
std::uint32_t thread_without_library(bool* has_run) noexcept;

// How many threads the process has, those that are ending too. 0: it is not known. One system call, no descriptor.
std::uint32_t thread_count() noexcept;

// How long the process's first thread could have run and waited for a processor, since it began, in nanoseconds. 0: it is
// not known. Three system calls, and a descriptor meanwhile.
std::uint64_t first_thread_waited_ns() noexcept;

} // namespace obase::os
