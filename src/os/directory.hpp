// SPDX-License-Identifier: MIT
//
// What a directory can do for a file-backed heap.
//
// One reading for the self-check, made by trying: permissions, quotas and file systems are judged
// by the kernel, not guessed. It leaves nothing behind.
//
// It cannot tell whether a later call will work; that call's own error decides.
#pragma once

#include <cstdint>

namespace obase::os {

struct directory_state {
    bool exists = false;
    int open_error = 0;           // errno of an unnamed file there (O_TMPFILE), 0 = it works
    bool in_memory = false;       // tmpfs or ramfs: its files are memory, and leave it only by swap
    std::uint64_t free_bytes = 0; // for an unprivileged writer
};

directory_state read_directory(const char* path) noexcept;

} // namespace obase::os
