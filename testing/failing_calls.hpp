// SPDX-License-Identifier: MIT
//
// failing_calls: while one exists, the system calls beneath os/memory.hpp fail as `fault` says.
//
//     testing::failing_calls calls;
//     testing::fault.fallocate = ENOSPC;     // the disk is full
//     EXPECT_EQ(s.allocate_dense(cold_class, 64, {}), nullptr);
//     testing::fault = {};                   // and all is well again
//
// A call that is not to fail goes to the system.
//
// For failures at the n-th call of any kind, or of one thread only, see
// src/runtime/shortage_test.cpp.
//
// Threads: one changes `fault`; others may make calls meanwhile only where that is a constant.
#pragma once

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

#include "os/memory.hpp"

namespace obase::testing {

struct system_faults {
    // How many still succeed; -1: all.
    int mmaps_left = -1;
    int file_mmaps_left = -1; // those of files
    int remaps_left = -1;     // memory_calls::mmap_in_place
    int opens_left = -1;
    int open_error = EMFILE;
    // All of them.
    bool mprotect = false;
    bool madvise = false;
    int fallocate = 0; // the error, of those that allocate; 0: none
    bool punch = false;

    int remaps = 0; // how many were asked for
};
inline system_faults fault;

class failing_calls {
  public:
    failing_calls() {
        fault = {};
        calls_ = os::real_memory_calls();
        calls_.mmap = mmap;
        calls_.mmap_in_place = mmap_in_place;
        calls_.mprotect = mprotect;
        calls_.madvise = madvise;
        calls_.fallocate = fallocate;
        calls_.open = open;
        os::use_memory_calls(&calls_);
    }
    ~failing_calls() {
        os::use_memory_calls(nullptr);
        fault = {};
    }
    failing_calls(const failing_calls&) = delete;
    failing_calls& operator=(const failing_calls&) = delete;

  private:
    static const os::memory_calls& real() { return os::real_memory_calls(); }

    static bool fails(int& left, int error) {
        if (left == 0) errno = error;
        return left == 0 || (left > 0 && left-- == 0);
    }
    static bool fails(bool now, int error) {
        if (now) errno = error;
        return now;
    }

    static void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd,
                      off_t offset) {
        if (fails(fault.mmaps_left, ENOMEM)) return MAP_FAILED;
        if (fd >= 0 && fails(fault.file_mmaps_left, ENOMEM)) return MAP_FAILED;
        return real().mmap(at, bytes, protection, flags, fd, offset);
    }
    static void* mmap_in_place(void* at, std::size_t bytes, int protection, int flags, int fd,
                               off_t offset) {
        ++fault.remaps;
        if (fails(fault.remaps_left, ENOMEM)) return MAP_FAILED;
        return real().mmap_in_place(at, bytes, protection, flags, fd, offset);
    }
    static int mprotect(void* at, std::size_t bytes, int protection) {
        if (fails(fault.mprotect, ENOMEM)) return -1;
        return real().mprotect(at, bytes, protection);
    }
    static int madvise(void* at, std::size_t bytes, int advice) {
        if (fails(fault.madvise, EINVAL)) return -1;
        return real().madvise(at, bytes, advice);
    }
    static int fallocate(int fd, int mode, off_t offset, off_t bytes) {
        const bool punching = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
        if (punching ? fails(fault.punch, EIO) : fails(fault.fallocate != 0, fault.fallocate))
            return -1;
        return real().fallocate(fd, mode, offset, bytes);
    }
    static int open(const char* path, int flags, mode_t mode) {
        if (fails(fault.opens_left, fault.open_error)) return -1;
        return real().open(path, flags, mode);
    }

    os::memory_calls calls_{};
};

} // namespace obase::testing
