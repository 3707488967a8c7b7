// SPDX-License-Identifier: MIT
//
// A directory of a test's own in /tmp: make_directory(), remove_empty_directory(), is_on_disk().
//
//     void SetUp() override { path = testing::make_directory("cold"); }
//     void TearDown() override { testing::remove_empty_directory(path); }
//
// For tests whose files have no names: whatever shows in the directory at the end was left behind.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <linux/magic.h>
#include <string>
#include <sys/vfs.h>
#include <system_error>

#include <gtest/gtest.h>

namespace obase::testing {

// /tmp/obase-NAME-XXXXXX, with letters for the last six. Throws std::system_error, which fails the test.
inline std::string make_directory(const std::string& name) {
    std::string path = "/tmp/obase-" + name + "-XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
        throw std::system_error(errno, std::generic_category(), path);
    return path;
}

// With what is in it, which is an error of the test's.
inline void remove_empty_directory(const std::string& path) {
    EXPECT_TRUE(std::filesystem::is_empty(path)) << "a file was left behind";
    std::filesystem::remove_all(path);
}

// False where the files of the directory are memory themselves.
inline bool is_on_disk(const std::string& path) {
    struct statfs system{};
    if (statfs(path.c_str(), &system) != 0)
        throw std::system_error(errno, std::generic_category(), path);
    return system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC;
}

} // namespace obase::testing
