// SPDX-License-Identifier: MIT
#include "tools/ycsb/page_touches.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace obase::tools {

bool clear_page_touches() {
    std::ofstream out("/proc/self/clear_refs");
    out << "1" << std::flush;
    return out.good();
}

std::optional<std::uint64_t>
touched_page_bytes(const std::function<bool(std::uintptr_t, std::uintptr_t)>& wanted) {
    std::ifstream in("/proc/self/smaps");
    std::uint64_t sum = 0;
    bool counts = false, any = false;
    for (std::string line; std::getline(in, line);) {
        std::uintptr_t begin = 0, end = 0;
        std::uint64_t kib = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            counts = wanted(begin, end);
        else if (std::sscanf(line.c_str(), "Referenced: %" SCNu64, &kib) == 1) {
            any = true;
            if (counts) sum += kib * 1024;
        }
    }
    if (!any) return std::nullopt;
    return sum;
}

} // namespace obase::tools
