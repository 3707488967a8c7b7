// SPDX-License-Identifier: MIT
//
// A control group with a limit on memory, for programs that are measured under one.
//
//     memory_cgroup group(110 << 20);
//     if (group.problem().empty()) ... // write a process's number to group.processes()
#pragma once

#include <cstdint>
#include <string>

namespace wiscsort::device {

class memory_cgroup {
  public:
    // Version 1 or 2, whichever has the memory controller. Needs to be root; otherwise problem() says so.
    explicit memory_cgroup(std::uint64_t limit);
    // Nobody may be in it any more.
    ~memory_cgroup();
    memory_cgroup(const memory_cgroup&) = delete;
    memory_cgroup& operator=(const memory_cgroup&) = delete;

    const std::string& problem() const { return problem_; }
    std::string processes() const { return folder_ + "/cgroup.procs"; }

  private:
    std::string folder_, problem_;
};

} // namespace wiscsort::device
