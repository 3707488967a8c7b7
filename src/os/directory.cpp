// SPDX-License-Identifier: MIT
#include "os/directory.hpp"

#include "os/memory.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

namespace obase::os {

directory_state read_directory(const char* path) noexcept {
    const int before = errno;
    directory_state state;
    struct stat entry{};
    if (::stat(path, &entry) == 0 && S_ISDIR(entry.st_mode)) {
        state.exists = true;
        int file = -1;
        state.open_error = open_temporary_file(path, &file);
        if (state.open_error == 0) close_file(file);
        struct statfs system{};
        if (::statfs(path, &system) == 0) {
            state.in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
            state.free_bytes = static_cast<std::uint64_t>(system.f_bavail) *
                               static_cast<std::uint64_t>(system.f_bsize);
        }
    }
    errno = before;
    return state;
}

} // namespace obase::os
