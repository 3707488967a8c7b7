// SPDX-License-Identifier: MIT
#include "tools/memory/tier_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace obase::tools {
namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::uintptr_t run = 65'536; // no run belongs to two heaps
constexpr std::uint64_t present = std::uint64_t{1} << 63;

std::uint64_t present_bytes(int pagemap, std::uintptr_t begin, std::uintptr_t end) {
    std::array<std::uint64_t, run / page> words;
    const std::size_t pages = (end - begin) / page;
    const ssize_t got =
        ::pread(pagemap, words.data(), pages * 8, static_cast<off_t>(begin / page * 8));
    if (got < 0) return 0;
    return page * static_cast<std::uint64_t>(
                      std::count_if(words.begin(), words.begin() + got / 8,
                                    [](std::uint64_t w) { return (w & present) != 0; }));
}

} // namespace

std::vector<std::uint64_t> resident_bytes_of_tiers(const runtime& of, unsigned heaps) {
    std::vector<std::uint64_t> bytes(heaps);
    const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return bytes;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        char access[5] = "";
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3 ||
            std::strncmp(access, "rw", 2) != 0 ||
            of.heap_of(reinterpret_cast<const void*>(begin)) < 0)
            continue;
        for (std::uintptr_t at = begin; at < end;) {
            const std::uintptr_t next = std::min(end, (at / run + 1) * run);
            const int heap = of.heap_of(reinterpret_cast<const void*>(at));
            if (heap >= 0 && static_cast<unsigned>(heap) < heaps)
                bytes[static_cast<unsigned>(heap)] += present_bytes(pagemap, at, next);
            at = next;
        }
    }
    ::close(pagemap);
    return bytes;
}

} // namespace obase::tools
