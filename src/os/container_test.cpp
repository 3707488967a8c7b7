// SPDX-License-Identifier: MIT
//
// read_container_limits() against the group this process is in and, where a group may be made,
// against one with known limits.
#include "os/container.hpp"
#include "testing/test_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
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

// A hierarchy of files that are none of the kernel's.
class fake_groups {
  public:
    fake_groups() = default;
    fake_groups(const fake_groups&) = delete;
    fake_groups& operator=(const fake_groups&) = delete;
    ~fake_groups() { std::filesystem::remove_all(root_); }

    void put(const std::string& name, const std::string& text) const {
        const std::filesystem::path path = root_ + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    container_memory read() const {
        return read_container_memory((root_ + "/groups").c_str(), root_.c_str());
    }

  private:
    std::string root_ = testing::make_directory("groups");
};

TEST(container, what_a_group_is_charged_for_is_without_clean_pages_of_files) {
    const fake_groups v2;
    v2.put("groups", "0::/service\n");
    v2.put("service/memory.max", "1000\n");
    v2.put("service/memory.high", "max\n");
    v2.put("service/memory.current", "900\n");
    v2.put("service/memory.stat",
           "anon 300\nfile 500\nshmem 50\nfile_dirty 30\nfile_writeback 20\n");
    EXPECT_EQ(v2.read().limit_bytes, 1000u);
    EXPECT_EQ(v2.read().charged_bytes, 500u) << "400 can be dropped";
    v2.put("service/memory.high", "800\n");
    EXPECT_EQ(v2.read().limit_bytes, 800u) << "what slows down is a limit, too";

    const fake_groups v1;
    v1.put("groups", "3:cpu:/\n5:memory:/service\n");
    v1.put("memory/service/memory.limit_in_bytes", "1000\n");
    v1.put("memory/service/memory.usage_in_bytes", "900\n");
    v1.put("memory/service/memory.stat", "cache 7\ntotal_cache 500\ntotal_shmem 50\n"
                                         "total_dirty 30\ntotal_writeback 20\n");
    EXPECT_EQ(v1.read().limit_bytes, 1000u);
    EXPECT_EQ(v1.read().charged_bytes, 500u);
    v1.put("memory/service/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(v1.read().limit_bytes, UINT64_MAX);
}

TEST(container, of_the_groups_on_the_way_to_the_root_the_one_with_the_least_room_counts) {
    const fake_groups groups;
    groups.put("groups", "0::/slice/service\n");
    EXPECT_EQ(groups.read().limit_bytes, UINT64_MAX) << "no file at all";
    groups.put("slice/service/memory.max", "1000\n");
    groups.put("slice/service/memory.current", "300\n");
    groups.put("slice/memory.max", "5000\n");
    groups.put("slice/memory.current", "4900\n"); // with others
    EXPECT_EQ(groups.read().limit_bytes, 5000u);
    EXPECT_EQ(groups.read().charged_bytes, 4900u);
    groups.put("slice/memory.current", "max\n"); // nonsense
    EXPECT_EQ(groups.read().limit_bytes, 1000u);
    groups.put("slice/memory.current", "2000\n");
    EXPECT_EQ(groups.read().limit_bytes, 1000u);
}

} // namespace
} // namespace obase::os
