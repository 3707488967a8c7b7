// SPDX-License-Identifier: MIT
//
// For tests: a directory that is gone at the end, files in it, and records of all formats.
#pragma once

#include "wiscsort/wiscsort.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace wiscsort::testing {

class temporary_directory {
  public:
    temporary_directory() {
        std::string name = ::testing::TempDir() + "wiscsort-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path_ = name;
    }
    ~temporary_directory() { std::filesystem::remove_all(path_); }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;

    std::string path(const std::string& name) const { return path_ + "/" + name; }
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

// What a sort must give: the records by their keys, equal ones as they came.
inline std::string sorted_by_reference(const std::vector<std::string>& files,
                                       const record_format& format,
                                       const key_spec::options& options, bool unique) {
    const key_spec keys(options, format);
    struct item {
        std::string stored, key;
        std::size_t number;
    };
    std::vector<item> items;
    for (const std::string& file : files)
        for (std::size_t at = 0; at < file.size();) {
            record_view view;
            EXPECT_EQ(find_record(format, file.data() + at, file.size() - at, view), found::whole);
            std::string buffer;
            item one{std::string(view.stored), std::string(keys.key_of(view.body, buffer)),
                     items.size()};
            if (view.written_size != view.stored.size()) one.stored += format.terminator;
            items.push_back(one);
            at += view.stored.size();
        }
    // Not std::stable_sort: clang warns of what libstdc++ 12 has inside of it.
    std::sort(items.begin(), items.end(), [&](const item& a, const item& b) {
        if (a.key == b.key) return a.number < b.number;
        return keys.reverse() ? b.key < a.key : a.key < b.key;
    });
    std::string all;
    const item* last = nullptr;
    for (const item& one : items) {
        if (!unique || last == nullptr || last->key != one.key) all += one.stored;
        last = &one;
    }
    return all;
}

} // namespace wiscsort::testing
