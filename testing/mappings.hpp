// SPDX-License-Identifier: MIT
//
// mappings_of(): what /proc/self/smaps says about some of this process's mappings, added up.
//
//     testing::mapping_sum cold = testing::mappings_of([](auto& m) { return m.path.find("/cold/")
//     != npos; });
//
// For a total, os/process.hpp does not parse every mapping.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace obase::testing {

struct mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string path;  // "" for anonymous memory
    std::string flags; // VmFlags, each with a space before it: " rd wr"
};

struct mapping_sum { // bytes
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::uint64_t swapped = 0;
    std::uint64_t huge = 0; // anonymous, of what is resident
    std::vector<mapping> found;
};

template <class Wanted>
mapping_sum mappings_of(Wanted&& wanted) {
    mapping_sum sum;
    std::ifstream smaps("/proc/self/smaps");
    bool counts = false;
    for (std::string line; std::getline(smaps, line);) {
        std::istringstream words(line);
        std::string first;
        words >> first;
        if (first.find('-') != std::string::npos && first.back() != ':') {
            mapping here;
            std::string permissions, offset, device, inode;
            words >> permissions >> offset >> device >> inode;
            std::getline(words >> std::ws, here.path);
            here.begin = std::stoull(first, nullptr, 16);
            here.end = std::stoull(first.substr(first.find('-') + 1), nullptr, 16);
            counts = wanted(here);
            if (counts) {
                sum.size += here.end - here.begin;
                sum.found.push_back(here);
            }
            continue;
        }
        if (counts && first == "VmFlags:") sum.found.back().flags = line.substr(first.size());
        std::uint64_t kib = 0;
        if (!counts || !(words >> kib)) continue;
        if (first == "Rss:") sum.resident += kib * 1024;
        if (first == "Swap:") sum.swapped += kib * 1024;
        if (first == "AnonHugePages:") sum.huge += kib * 1024;
    }
    return sum;
}

} // namespace obase::testing
