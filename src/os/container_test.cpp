// SPDX-License-Identifier: MIT
//
// read_container_limits() against the group this process is in and, where a group may be made,
// against one with known limits.
#include "os/container.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <linux/magic.h>
#include <string>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace obase::os {
namespace {

constexpr std::uint64_t mib = 1U << 20;

TEST(container, reading_changes_nothing_and_gives_the_same_twice) {
    errno = 4711;
    const container_limits first = read_container_limits();
    EXPECT_EQ(errno, 4711);
    const container_limits second = read_container_limits();
    EXPECT_EQ(first.memory_bytes, second.memory_bytes);
    EXPECT_EQ(first.swap_bytes, second.swap_bytes);
    EXPECT_GT(first.memory_bytes, mib) << "this process fits in";
}

// Only what is there: a file made by mistake would not be a control group's.
bool write_file(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return ok;
}

bool is_control_group(const std::string& path) {
    struct statfs system{};
    return statfs(path.c_str(), &system) == 0 &&
           (system.f_type == CGROUP2_SUPER_MAGIC || system.f_type == CGROUP_SUPER_MAGIC);
}

// The directory of the memory controller's group that this process is in; "" if there is none.
// `unified`: version 2.
std::string own_group(bool& unified) {
    std::ifstream file("/proc/self/cgroup");
    std::string found;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        if (controllers == "memory" && is_control_group("/sys/fs/cgroup/memory" + group)) {
            unified = false;
            return "/sys/fs/cgroup/memory" + group;
        }
        if (controllers.empty() && is_control_group("/sys/fs/cgroup" + group)) {
            unified = true;
            found = "/sys/fs/cgroup" + group;
        }
    }
    return found;
}

// A group inside ours, with a limit far above what the child needs.
class known_group {
  public:
    known_group(const std::string& parent, const char* limit_file)
        : path_(parent + "/obase-test-" + std::to_string(getpid())) {
        made_ = mkdir(path_.c_str(), 0755) == 0;
        usable_ = made_ && write_file(path_ + "/" + limit_file, std::to_string(768 * mib));
    }
    known_group(const known_group&) = delete;
    known_group& operator=(const known_group&) = delete;
    ~known_group() {
        if (made_) rmdir(path_.c_str());
    }
    bool usable() const { return usable_; }

    // What a process in the group reads. False: it could not enter.
    bool read_inside(container_limits& out) const {
        int ends[2];
        if (pipe(ends) != 0) return false;
        const pid_t child = fork();
        if (child == 0) {
            if (!write_file(path_ + "/cgroup.procs", std::to_string(getpid()))) _exit(2);
            const container_limits limits = read_container_limits();
            _exit(write(ends[1], &limits, sizeof limits) == sizeof limits ? 0 : 3);
        }
        close(ends[1]);
        const bool got = read(ends[0], &out, sizeof out) == sizeof out;
        close(ends[0]);
        waitpid(child, nullptr, 0);
        return got;
    }

  private:
    std::string path_;
    bool made_ = false;
    bool usable_ = false;
};

TEST(container, limits_of_a_group_are_seen_from_inside) {
    bool unified = false;
    const std::string own = own_group(unified);
    if (own.empty()) GTEST_SKIP() << "no memory controller is mounted here";
    const known_group group(own, unified ? "memory.max" : "memory.limit_in_bytes");
    container_limits inside;
    if (!group.usable() || !group.read_inside(inside))
        GTEST_SKIP() << "no group may be made inside " << own << " (needs root)";
    EXPECT_EQ(inside.memory_bytes, std::min(768 * mib, read_container_limits().memory_bytes));
}

} // namespace
} // namespace obase::os
