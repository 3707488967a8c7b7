// SPDX-License-Identifier: MIT
//
// Numbers in the text files of /proc and of control groups.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace obase::tools {

// The number behind `name` in a file of lines "name number"; 0 if there is none.
inline std::uint64_t number_in(const std::string& file, std::string_view name) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(name)) continue;
        std::istringstream rest(line.substr(name.size()));
        std::uint64_t number = 0;
        if (rest >> number) return number;
    }
    return 0;
}

} // namespace obase::tools
