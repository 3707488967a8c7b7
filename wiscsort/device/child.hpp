// SPDX-License-Identifier: MIT
//
// Runs another program and measures it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wiscsort::device {

struct child_result {
    int exit_code = 0; // 128 + the signal that ended it
    double seconds = 0, cpu_seconds = 0;
    std::uint64_t read_bytes = 0, written_bytes = 0; // of block devices, as the kernel counts
    std::string output;                              // standard output and error, the first 4 KiB
};

// `arguments[0]` is found by PATH. `environment`: NAME=VALUE, added to this process's own or in place of what it has.
// Throws error if it cannot be started.
child_result run_child(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = {});

} // namespace wiscsort::device
