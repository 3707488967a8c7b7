// SPDX-License-Identifier: MIT
#include "tools/memory/open_files.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace obase::tools {

open_files files_of_this_process(const std::string& directory) {
    open_files found;
    struct stat home{};
    const bool on_disk = !directory.empty() && ::stat(directory.c_str(), &home) == 0;
    std::error_code error;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        struct stat file{};
        if (::stat(one.path().c_str(), &file) != 0)
            continue; // the one that reads the directory may be gone
        ++found.descriptors;
        if (on_disk && S_ISREG(file.st_mode) && file.st_nlink == 0 && file.st_dev == home.st_dev)
            found.unnamed_bytes += static_cast<std::uint64_t>(file.st_blocks) * 512;
    }
    return found;
}

} // namespace obase::tools
