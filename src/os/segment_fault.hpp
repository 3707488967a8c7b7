// SPDX-License-Identifier: MIT
//
// A look at segmentation faults before the program sees them.
//
//     bool explain(const void* address, ...);      // true: it is mine, and I have said all
//     os::watch_segment_faults(&explain, stack + sizeof stack);
//
// The function runs on that stack, which must have room for it: a program's alternate one may have little more than the
// kernel itself needs. It runs in one thread at a time; others that fault meanwhile wait, and go on if the fault was not its.
//
// If the function returns true the process ends with status 1, without a core dump and without destructors. Otherwise the
// signal goes to the handler that was there before, or ends the process as it would have.
//
// A program may set a handler of its own at any time; calling the function again puts ours before it, and chains to it.
//
// Threads: one at a time may call this. Cost of a call where nothing has changed: one system call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::os {

// In a signal handler. `address` is null where the processor does not say it: it was not canonical.
using fault_explainer = bool (*)(const void* address, const void* instruction,
                                 const std::uint64_t* registers, std::size_t count,
                                 const void* stack) noexcept;
// `stack_end`, where the stack begins, is a multiple of 16.
void watch_segment_faults(fault_explainer explain, void* stack_end) noexcept;

// Faults that can be helped: `serve` makes the address accessible and returns true, and the access is made again. It is
// asked before explainers, about addresses for which `serves` is true, and installs the same handler. A handler that is
// on a stack of its own, which may be small, runs it on the interrupted code's: `serves` excludes that stack's end.
using fault_server = bool (*)(const void* address, const void* instruction) noexcept;
using fault_owner = bool (*)(const void* address) noexcept;
void serve_segment_faults(fault_owner serves, fault_server serve) noexcept;

// A fault of the instruction at `at` that nobody serves leads to `to`, as if it had done what it could. One of a program, for
// as long as it lasts.
void skip_faults_of(const void* at, const void* to) noexcept;
bool skips_faults_of(const void* instruction) noexcept;

// SIGSEGV of the calling thread is not blocked from here on.
void let_segment_faults_through() noexcept;

} // namespace obase::os
