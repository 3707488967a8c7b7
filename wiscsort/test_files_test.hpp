// SPDX-License-Identifier: MIT
//
// For tests: files of records of all formats, and what a sort must make of them.
#pragma once

#include "wiscsort/device/directory_test.hpp"
#include "wiscsort/wiscsort.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace wiscsort::testing {

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
