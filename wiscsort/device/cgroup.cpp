// SPDX-License-Identifier: MIT
#include "wiscsort/device/cgroup.hpp"

#include "wiscsort/error.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace wiscsort::device {

memory_cgroup::memory_cgroup(std::uint64_t limit) {
    const std::string name = "/wiscsort-" + std::to_string(::getpid());
    struct version {
        const char *root, *limit;
    };
    for (const version& v : {version{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes"},
                             version{"/sys/fs/cgroup", "/memory.max"}}) {
        folder_ = v.root + name;
        if (::mkdir(folder_.c_str(), 0755) != 0) {
            problem_ = folder_ + ": " + describe_errno(errno);
            continue;
        }
        std::ofstream file(folder_ + v.limit);
        file << limit << std::flush;
        if (file) {
            problem_.clear();
            return;
        }
        problem_ = folder_ + v.limit + ": cannot be set";
        ::rmdir(folder_.c_str());
    }
    folder_.clear();
}

memory_cgroup::~memory_cgroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
}

} // namespace wiscsort::device
