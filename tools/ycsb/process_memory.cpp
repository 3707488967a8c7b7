// SPDX-License-Identifier: MIT
#include "tools/ycsb/process_memory.hpp"

#include "tools/ycsb/proc_numbers.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace obase::tools {
namespace {

constexpr std::uint64_t kib = 1024;

// A mapping of the unnamed file that COLD lies in.
struct mapping {
    std::uintptr_t begin, end;
    std::uint64_t rss;
};

// Mappings of unnamed files in `directory`, and what of the rest of the process is anonymous.
struct maps_summary {
    std::vector<mapping> cold;
    std::uint64_t anonymous = 0; // bytes
};

maps_summary read_smaps(const std::string& directory) {
    maps_summary sum;
    std::ifstream in("/proc/self/smaps");
    bool in_cold = false;
    for (std::string line; std::getline(in, line);) {
        std::uintptr_t begin = 0, end = 0;
        int path_at = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end,
                        &path_at) >= 2) {
            const std::string_view path = std::string_view(line).substr(
                std::min<std::size_t>(static_cast<std::size_t>(path_at), line.size()));
            in_cold = !directory.empty() && path.starts_with(directory + "/") &&
                      path.ends_with("(deleted)");
            if (in_cold) sum.cold.push_back({begin, end, 0});
            continue;
        }
        std::uint64_t number = 0;
        if (std::sscanf(line.c_str(), "Anonymous: %" SCNu64, &number) == 1)
            sum.anonymous += number * kib;
        if (in_cold && std::sscanf(line.c_str(), "Rss: %" SCNu64, &number) == 1)
            sum.cold.back().rss = number * kib;
    }
    return sum;
}

// Of /proc/self/maps only: cheaper than smaps, which walks the page tables.
std::vector<mapping> cold_mappings(const std::string& directory) {
    std::vector<mapping> result;
    if (directory.empty()) return result;
    std::ifstream in("/proc/self/maps");
    for (std::string line; std::getline(in, line);) {
        if (!line.ends_with("(deleted)") || line.find(directory + "/") == std::string::npos)
            continue;
        mapping m{};
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &m.begin, &m.end) == 2)
            result.push_back(m);
    }
    return result;
}

std::uint64_t cached_bytes(const std::vector<mapping>& mappings) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t pages = 0;
    std::vector<unsigned char> resident;
    for (const mapping& m : mappings) {
        resident.resize((m.end - m.begin) / page);
        if (::mincore(reinterpret_cast<void*>(m.begin), m.end - m.begin, resident.data()) == 0)
            pages += static_cast<std::uint64_t>(std::count_if(
                resident.begin(), resident.end(), [](unsigned char c) { return (c & 1U) != 0; }));
    }
    return pages * page;
}

std::uint64_t compressed_bytes() {
    std::uint64_t sum = 0;
    for (int device = 0; device < 8; ++device) {
        std::ifstream in(fmt::format("/sys/block/zram{}/mm_stat", device));
        std::uint64_t original = 0, compressed = 0, used = 0;
        if (in >> original >> compressed >> used) sum += used;
    }
    std::ifstream zswap("/sys/kernel/debug/zswap/pool_total_size");
    std::uint64_t pool = 0;
    if (zswap >> pool) sum += pool;
    return sum;
}

} // namespace

own_control_group::own_control_group()
    : group_(control_group::below_own(
          fmt::format("obase-bench-{}", ::getpid()),
          [this](const std::string& path) { undo_.promise(keeper::what::group, path); })) {
    if (group_.made() && !group_.join()) group_.remove();
}

own_control_group::~own_control_group() {
    group_.leave();
    group_.remove();
}

memory_meter::memory_meter(std::string cold_directory, const control_group* group)
    : cold_directory_(std::move(cold_directory)),
      group_(group != nullptr && group->made() ? group : nullptr) {
    compressed_before_ = compressed_bytes();
    if (char* real = ::realpath(cold_directory_.c_str(), nullptr); real != nullptr) {
        cold_directory_ = real;
        ::free(real);
    }
    if (group_ != nullptr) {
        // Memory from before the process joined its group is charged to the old one.
        const memory_sample now = sample();
        group_before_ = now.used;
        own_before_ = now.witness;
    }
}

std::uint64_t memory_meter::compressed_growth() const {
    const std::uint64_t now = compressed_bytes();
    return now > compressed_before_ ? now - compressed_before_ : 0;
}

memory_sample memory_meter::sample() const {
    const std::uint64_t compressed = compressed_growth();
    const std::string status = "/proc/self/status";
    memory_sample result;
    result.compressed = compressed;
    result.rss = number_in(status, "VmRSS:") * kib;
    const std::uint64_t own =
        (number_in(status, "RssAnon:") + number_in(status, "RssShmem:")) * kib +
        cached_bytes(cold_mappings(cold_directory_)) + compressed;
    if (group_ != nullptr) {
        result.used = group_->bytes() + compressed;
        result.witness = own;
        if (own_before_ > group_before_) result.used += own_before_ - group_before_;
        return result;
    }
    const maps_summary maps = read_smaps(cold_directory_);
    std::uint64_t mapped = 0;
    for (const mapping& m : maps.cold) mapped += m.rss;
    result.used = own;
    // What is cached, but not mapped, only mincore knows.
    result.witness = maps.anonymous + std::max(mapped, cached_bytes(maps.cold)) + compressed;
    return result;
}

std::string memory_meter::method() const {
    const std::string tail = compressed_before_ != 0 ? " + growth of compressed swap" : "";
    if (group_ != nullptr) return group_->method() + tail;
    return "RssAnon + RssShmem + cached pages of the COLD file (mincore)" + tail;
}

std::string memory_meter::witness_method() const {
    return group_ != nullptr ? "RssAnon + RssShmem + cached pages of the COLD file (mincore)"
                             : "smaps: Anonymous + cached pages of the COLD file (mincore)";
}

} // namespace obase::tools
