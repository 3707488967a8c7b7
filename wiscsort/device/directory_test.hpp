// SPDX-License-Identifier: MIT
//
// For tests: a directory that is gone at the end, with the files in it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

namespace wiscsort::testing {

class temporary_directory {
  public:
    // Below /var/tmp where that can be written: what gtest takes may be a tmpfs, which refuses O_DIRECT.
    temporary_directory()
        : path_(
              (::access("/var/tmp", W_OK) == 0 ? std::string("/var/tmp/") : ::testing::TempDir()) +
              "wiscsort-test-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) std::abort();
    }
    ~temporary_directory() { std::filesystem::remove_all(path_); }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;

    const std::string& path() const { return path_; }
    std::string path(const std::string& name) const { return path_ + "/" + name; }
    // Returns the path.
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path(name), std::ios::binary) << bytes;
        return path(name);
    }
    std::string read(const std::string& name) const {
        std::ifstream file(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // Names in the directory, those with a dot in front too.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            all.push_back(entry.path().filename());
        std::sort(all.begin(), all.end());
        return all;
    }

  private:
    std::string path_;
};

} // namespace wiscsort::testing
