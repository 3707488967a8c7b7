// SPDX-License-Identifier: MIT
#include "tools/ycsb/page_touches.hpp"

#include <sys/mman.h>

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

namespace obase::tools {

namespace {

// The kernel clears the bits without telling the processors, which do not set the bit of a page again while they
// have its address at hand. To unmap more pages than it likes to tell of one by one makes it flush them all.
void forget_translations() {
    constexpr std::size_t bytes = 256 * 4096;
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pages != MAP_FAILED) ::munmap(pages, bytes);
}

} // namespace

bool clear_page_touches() {
    std::ofstream out("/proc/self/clear_refs");
    out << "1" << std::flush;
    forget_translations();
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
