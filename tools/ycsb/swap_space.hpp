// SPDX-License-Identifier: MIT
//
// Swap for a measurement: the machine's own where it has some, otherwise a zram device that is
// added, used and removed.
//
//     const swap_space swap(bytes);
//     if (!swap.why_not().empty()) ...  // no root, no zram in this kernel, another session has it
//
// Swap is the machine's, so a lock on a file in /run/lock lets one process at a time make some. What
// was made is undone by a process of its own, which waits for the end of the one that made it: after
// the destructor, an exception, a signal or SIGKILL. The undoing has ended when the destructor
// returns. Threads: none may have been started; it forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace obase::tools {

class swap_space {
  public:
    // `bytes`: of a device to make. Throws nothing but std::bad_alloc.
    explicit swap_space(std::uint64_t bytes);
    ~swap_space();
    swap_space(const swap_space&) = delete;
    swap_space& operator=(const swap_space&) = delete;

    // "" if there is swap, otherwise why there is none, in a sentence without its end.
    const std::string& why_not() const noexcept { return why_not_; }
    // The device or file, for reports; "" if there is none.
    const std::string& device() const noexcept { return device_; }

  private:
    bool start_keeper();
    std::string make(std::uint64_t bytes);
    void end_keeper();

    std::string device_;
    std::string why_not_;
    int lock_ = -1;
    int keeper_pipe_ = -1; // its other end is the keeper's, which undoes when it is closed
    pid_t keeper_ = -1;
};

// Asks the kernel to page out all private memory of the calling process that can be swapped, used or
// not (MADV_PAGEOUT). What is used is read back at its next use, so that what stays in memory
// afterwards is what was used since. Returns the bytes that it asked for; 0 if the kernel refused.
std::uint64_t page_out_everything();

} // namespace obase::tools
