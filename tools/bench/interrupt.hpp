// SPDX-License-Identifier: MIT
//
// Ctrl-C, or SIGTERM to the program's process alone, ends a measurement early with what there is,
// marked as partial. The second one ends the program at once, and its worker with it.
//
// Cases run in processes of their own (child_process.hpp), so a signal that only the parent got is
// passed on to the worker. Threads: any; one worker at a time.
#pragma once

#include <csignal>
#include <stdexcept>

#include <sys/types.h>

namespace obase::tools {

// Also lets in those that were blocked when the program began (child_process.hpp).
void watch_for_interrupt() noexcept;
bool interrupted() noexcept;

// Thrown by what was interrupted before it had any result, such as while a store was loaded. The
// command then ends as after any interrupt, with the results that there are.
struct interruption : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// While it lives, the signals wait. Around fork, so that none is handled by a parent that does not
// know its worker yet, or by a child that still has the parent's handlers.
class interrupts_held {
  public:
    interrupts_held() noexcept;
    ~interrupts_held();
    interrupts_held(const interrupts_held&) = delete;
    interrupts_held& operator=(const interrupts_held&) = delete;
    // Before its time, in a child that never comes back.
    void let_go() const noexcept;

  private:
    sigset_t before_;
};

// The process that learns of interrupts as well; 0 for none. It must not have been waited for yet.
void pass_interrupts_to(pid_t process) noexcept;

// In a child that is about to execute another program.
void let_interrupts_end_this_process() noexcept;

} // namespace obase::tools
