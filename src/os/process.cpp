// SPDX-License-Identifier: MIT
#include "os/process.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/memory.hpp"

namespace obase::os {
namespace {

// A /proc file read whole into a fixed buffer: no allocation, so that it works when memory is
// short.
class small_file {
  public:
    explicit small_file(const char* path) noexcept {
        const int before = errno;
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            while (length_ < sizeof text_ - 1) {
                const ssize_t got = ::read(fd, text_ + length_, sizeof text_ - 1 - length_);
                if (got < 0 && errno == EINTR) continue;
                if (got <= 0) break;
                length_ += static_cast<std::size_t>(got);
            }
            ok_ = length_ > 0;
            ::close(fd);
        }
        text_[length_] = '\0';
        errno = before;
    }
    bool ok() const noexcept { return ok_; }
    const char* text() const noexcept { return text_; }

    // The number after a line's `key` ("MemTotal:"); `otherwise` when there is none.
    std::uint64_t after(const char* key, std::uint64_t otherwise) const noexcept {
        const std::size_t length = std::strlen(key);
        for (const char* line = text_; line != nullptr && *line != '\0';) {
            if (std::strncmp(line, key, length) == 0) return number(line + length, otherwise);
            line = std::strchr(line, '\n');
            if (line != nullptr) ++line;
        }
        return otherwise;
    }

    static std::uint64_t number(const char* from, std::uint64_t otherwise) noexcept {
        while (*from == ' ' || *from == '\t') ++from;
        if (*from < '0' || *from > '9') return otherwise;
        std::uint64_t value = 0;
        for (; *from >= '0' && *from <= '9'; ++from) {
            value = value * 10 + static_cast<std::uint64_t>(*from - '0');
        }
        return value;
    }

  private:
    char text_[8192];
    std::size_t length_ = 0;
    bool ok_ = false;
};

constexpr std::uint64_t kib = 1024;

} // namespace

std::uint64_t resident_bytes() noexcept {
    const small_file statm("/proc/self/statm");
    if (!statm.ok()) return 0;
    const char* const second = std::strchr(statm.text(), ' ');
    return second == nullptr ? 0 : small_file::number(second, 0) * page_size;
}

bool read_process_memory(process_memory* out) noexcept {
    const small_file rollup("/proc/self/smaps_rollup");
    if (!rollup.ok()) {
        out->rss = resident_bytes();
        return out->rss != 0;
    }
    out->rss = rollup.after("Rss:", 0) * kib;
    out->pss = rollup.after("Pss:", 0) * kib;
    out->swap = rollup.after("Swap:", 0) * kib;
    out->anonymous = rollup.after("Anonymous:", 0) * kib;
    out->anon_huge = rollup.after("AnonHugePages:", 0) * kib;
    return true;
}

bool read_residency(const void* begin, std::size_t pages, unsigned char* seen) noexcept {
    const int before = errno;
    const bool known = calls().mincore(const_cast<void*>(begin), pages * page_size, seen) == 0;
    errno = before;
    return known;
}

std::uint64_t resident_in(const void* begin, std::size_t bytes) noexcept {
    std::uint64_t pages = 0;
    unsigned char seen[4096];
    const auto* at = static_cast<const char*>(begin);
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t left = (bytes - done) / page_size;
        const std::size_t count = left < sizeof seen ? left : sizeof seen;
        if (count == 0 || !read_residency(at + done, count, seen)) break;
        for (std::size_t i = 0; i < count; ++i) pages += seen[i] & 1U;
        done += count * page_size;
    }
    return pages * page_size;
}

bool all_resident(const void* begin, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::uintptr_t first = address & ~std::uintptr_t{page_size - 1};
    const std::size_t pages = (address + bytes - first + page_size - 1) / page_size;
    return pages <= 64 && resident_in(reinterpret_cast<const void*>(first), pages * page_size) ==
                              pages * page_size;
}

std::uint64_t swapped_bytes() noexcept {
    const small_file status("/proc/self/status");
    return status.after("VmSwap:", 0) * kib;
}

std::uint64_t peak_resident_bytes() noexcept {
    const small_file status("/proc/self/status");
    return status.after("VmHWM:", 0) * kib;
}

bool read_machine(machine* out) noexcept {
    const small_file meminfo("/proc/meminfo");
    out->ram_bytes = meminfo.after("MemTotal:", 0) * kib;
    out->swap_total = meminfo.after("SwapTotal:", 0) * kib;
    out->swap_free = meminfo.after("SwapFree:", 0) * kib;
    const small_file swaps("/proc/swaps");
    out->zram_swap = swaps.ok() && std::strstr(swaps.text(), "/zram") != nullptr;
    const small_file overcommit("/proc/sys/vm/overcommit_memory");
    if (overcommit.ok()) {
        out->overcommit_memory = static_cast<int>(small_file::number(overcommit.text(), 0));
    }
    const small_file maps("/proc/sys/vm/max_map_count");
    if (maps.ok()) out->max_map_count = small_file::number(maps.text(), out->max_map_count);
    const small_file huge("/sys/kernel/mm/transparent_hugepage/enabled");
    out->transparent_huge_pages = huge.ok() && std::strstr(huge.text(), "[never]") == nullptr;
    return meminfo.ok();
}

std::uint64_t address_space_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

bool can_page_out(const machine& here) noexcept {
    return here.swap_total > 0 && here.swap_free > 0;
}

} // namespace obase::os
