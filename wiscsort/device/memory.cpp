// SPDX-License-Identifier: MIT
#include "wiscsort/device/memory.hpp"

#include "wiscsort/device/calls.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#define WISCSORT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WISCSORT_THREAD_SANITIZER 1
#endif
#endif

namespace wiscsort::device {

namespace {

std::atomic<std::uint64_t> held{0}, most_held{0};

void count_block(std::size_t before, std::size_t after) {
    const std::uint64_t now = (held += after - before);
    std::uint64_t most = most_held.load();
    while (now > most && after > before && !most_held.compare_exchange_weak(most, now)) {
    }
}

} // namespace

std::uint64_t blocks_now() { return held.load(); }
std::uint64_t blocks_peak() { return most_held.load(); }
void reset_blocks_peak() { most_held = held.load(); }

memory_block::memory_block(std::size_t bytes, bool huge) {
    if (bytes == 0) return;
    size_ = round_up(bytes, page_size);
    void* at = map(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        const int number = errno;
        const std::size_t wanted = std::exchange(size_, 0);
        fail("no memory for a buffer of {}: {}", bytes_text(wanted), describe_errno(number));
    }
    data_ = static_cast<char*>(at);
    count_block(0, size_);
    // Refused by kernels without huge pages, which is no loss but time.
    if (huge && size_ >= 2 * MiB) ::madvise(at, size_, MADV_HUGEPAGE);
}

memory_block::~memory_block() {
    unmap(data_, size_);
    count_block(size_, 0);
}

memory_block::memory_block(memory_block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

memory_block& memory_block::operator=(memory_block&& other) noexcept {
    if (this != &other) {
        unmap(data_, size_);
        count_block(size_, 0);
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void memory_block::grow(std::size_t bytes) {
    bytes = round_up(bytes, page_size);
    if (bytes <= size_) return;
    if (data_ == nullptr) {
        *this = memory_block(bytes);
        return;
    }
#ifdef WISCSORT_THREAD_SANITIZER
    // It does not know mremap: what other threads did at an address would seem to be about this block.
    memory_block larger(bytes);
    std::memcpy(larger.data_, data_, size_);
    *this = std::move(larger);
#else
    void* at = ::mremap(data_, size_, bytes, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        fail("no memory to grow a buffer to {}: {}", bytes_text(bytes), describe_errno(errno));
    data_ = static_cast<char*>(at);
    count_block(size_, bytes);
    size_ = bytes;
    if (size_ >= 2 * MiB) ::madvise(at, size_, MADV_HUGEPAGE);
#endif
}

std::size_t entry_array::reserve_more(std::size_t count) {
    const std::size_t wanted = std::min(capacity_, size_ + count);
    if (wanted * sizeof(entry) > block_.size()) {
        const std::size_t doubled = std::min(capacity_, std::max(wanted, size_ + size_ / 2));
        block_.grow(doubled * sizeof(entry));
    }
    return wanted - size_;
}

namespace {

// The first number in a file, or `otherwise`; "max" is otherwise too.
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
    std::ifstream file(path);
    std::uint64_t value;
    return file >> value ? value : otherwise;
}

// The value behind `name` in a file of lines "name value".
std::uint64_t named_number(const std::string& path, const std::string& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        std::uint64_t value;
        if (words >> word >> value && word == name) return value;
    }
    return 0;
}

// The tightest limit from `path` up to the root of the hierarchy at `root`.
void look_at_group(const std::string& root, std::string path, const char* limit_file,
                   const char* usage_file, const char* inactive, machine_memory& memory) {
    for (;;) {
        const std::string folder = root + path;
        const std::uint64_t limit = number_in(folder + "/" + limit_file, UINT64_MAX);
        if (limit < (1ULL << 62)) {
            const std::uint64_t used = number_in(folder + "/" + usage_file, 0);
            const std::uint64_t clean = named_number(folder + "/memory.stat", inactive);
            const std::uint64_t busy = used - std::min(used, clean);
            const std::uint64_t left = limit - std::min(limit, busy);
            if (left < memory.available) memory = {left, true};
        }
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos || path == "/") break;
        path.resize(slash);
    }
}

} // namespace

machine_memory look_at_memory() {
    machine_memory memory;
    memory.available = named_number("/proc/meminfo", "MemAvailable:") * KiB;
    if (memory.available == 0) memory.available = GiB;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (controllers == ",,")
            look_at_group("/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file",
                          memory);
        else if (controllers.find(",memory,") != std::string::npos)
            look_at_group("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                          "memory.usage_in_bytes", "total_inactive_file", memory);
    }
    return memory;
}

unsigned processors() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

} // namespace wiscsort::device
