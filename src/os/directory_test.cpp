// SPDX-License-Identifier: MIT
//
// read_directory() against directories of every kind that can be had here.
#include "os/directory.hpp"

#include "os/memory.hpp"
#include "testing/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <linux/magic.h>
#include <string>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace obase::os {
namespace {

class directory : public ::testing::Test {
  protected:
    void SetUp() override { path_ = testing::make_directory("directory"); }
    void TearDown() override {
        use_memory_calls(nullptr);
        if (mounted_) umount2(path_.c_str(), MNT_DETACH);
        std::filesystem::remove_all(path_);
    }

    std::string path_;
    bool mounted_ = false;
};

TEST_F(directory, that_works_is_left_as_it_was) {
    errno = 4711;
    const directory_state state = read_directory(path_.c_str());
    EXPECT_EQ(errno, 4711);
    EXPECT_TRUE(state.exists);
    EXPECT_EQ(state.open_error, 0);
    struct statfs system{};
    ASSERT_EQ(statfs(path_.c_str(), &system), 0);
    EXPECT_EQ(state.in_memory, system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
    EXPECT_GT(state.free_bytes, 0u);
    EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(directory, that_is_none) {
    EXPECT_FALSE(read_directory((path_ + "/none").c_str()).exists);
    EXPECT_FALSE(read_directory("/dev/null").exists) << "a file";
    EXPECT_FALSE(read_directory("").exists);
}

TEST_F(directory, that_may_not_be_written) {
    chmod(path_.c_str(), 0555);
    const pid_t child = fork();
    if (child == 0) {
        // Root may write anywhere.
        if (getuid() == 0 && setuid(65534) != 0) _exit(2);
        const directory_state state = read_directory(path_.c_str());
        _exit(state.exists && state.open_error == EACCES ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(directory, whose_file_system_has_no_unnamed_files) {
    static memory_calls calls = real_memory_calls();
    calls.open = [](const char*, int, mode_t) {
        errno = EOPNOTSUPP;
        return -1;
    };
    use_memory_calls(&calls);
    const directory_state state = read_directory(path_.c_str());
    EXPECT_TRUE(state.exists);
    EXPECT_EQ(state.open_error, EOPNOTSUPP);
    EXPECT_GT(state.free_bytes, 0u) << "the other facts are still there";
}

TEST_F(directory, that_is_memory) {
    mounted_ = mount("none", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) GTEST_SKIP() << "may not mount here (needs root)";
    const directory_state state = read_directory(path_.c_str());
    EXPECT_TRUE(state.exists && state.in_memory);
    EXPECT_EQ(state.open_error, 0);
    EXPECT_LE(state.free_bytes, 1u << 20);
    EXPECT_GT(state.free_bytes, 1u << 19);
}

} // namespace
} // namespace obase::os
