// SPDX-License-Identifier: MIT
#include "tools/ycsb/swap_space.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace obase::tools {
namespace {

constexpr const char* lock_file = "/run/lock/obase-swap.lock";
constexpr const char* hot_add = "/sys/class/zram-control/hot_add";
constexpr std::size_t page = 4096;

// The first swap that is on; "" if none is.
std::string swap_in_use() {
    std::ifstream in("/proc/swaps");
    std::string line, name;
    std::getline(in, line); // the heads of the columns
    in >> name;
    return name;
}

bool write_to(const std::string& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    return done;
}

// What mkswap writes: version, last page, bad pages; the signature ends the page.
bool write_swap_header(const std::string& device, std::uint64_t bytes) {
    std::array<char, page> header{};
    const std::uint32_t fields[] = {1, static_cast<std::uint32_t>(bytes / page - 1), 0};
    std::memcpy(&header[1024], fields, sizeof fields);
    std::memcpy(&header[page - 10], "SWAPSPACE2", 10);
    const int fd = ::open(device.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool done =
        ::write(fd, header.data(), page) == static_cast<ssize_t>(page) && ::fsync(fd) == 0;
    ::close(fd);
    return done;
}

std::string error_text() { return std::strerror(errno); }

std::string failed(const std::string& doing) {
    return fmt::format("no swap, and none can be made: {}: {}", doing, error_text());
}

// Before any other swap of the machine.
constexpr int highest_priority = SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK;

std::string format_and_use(const std::string& device, std::uint64_t bytes) {
    if (!write_swap_header(device, bytes)) return failed("formatting " + device);
    if (::swapon(device.c_str(), highest_priority) != 0) return failed("swapon " + device);
    return "";
}

} // namespace

swap_space::swap_space(const swap_request& request) {
    const std::string there = swap_in_use();
    switch (request.kind) {
    case swap_kind::as_it_is:
        device_ = there;
        return;
    case swap_kind::none:
        if (!there.empty())
            why_not_ = "there is swap: " + there;
        else if (::access("/run/lock", W_OK) == 0) // otherwise no session could make any
            why_not_ = lock(LOCK_SH);
        return;
    case swap_kind::zram:
        if (!there.empty() && !there.starts_with("/dev/zram"))
            why_not_ = "there is other swap: " + there;
        break;
    case swap_kind::file:
        if (!there.empty()) why_not_ = "there is other swap: " + there;
        break;
    case swap_kind::any:
        break;
    }
    if (!why_not_.empty()) return;
    if (there.empty() || request.kind != swap_kind::any) why_not_ = lock(LOCK_EX);
    if (!why_not_.empty()) return;
    device_ = there;
    if (there.empty()) why_not_ = make(request);
}

// The keeper holds the lock until all is undone.
swap_space::~swap_space() {
    keeper_.reset();
    if (lock_ >= 0) ::close(lock_);
}

std::string swap_space::lock(int how) {
    lock_ = ::open(lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ < 0) return failed(lock_file);
    if (::flock(lock_, how | LOCK_NB) != 0)
        return fmt::format("no swap of our own: {} is locked by another process", lock_file);
    return "";
}

std::string swap_space::make(const swap_request& request) {
    const bool zram = request.kind != swap_kind::file;
    if (zram && ::access(hot_add, R_OK) != 0) return failed(hot_add);
    keeper_.emplace(lock_);
    if (!keeper_->started()) return failed("no process to undo it");
    const std::string why = zram ? make_zram(request.bytes) : make_file(request);
    if (!why.empty()) keeper_.reset();
    return why;
}

// The number is known only once the device is there, so between that and the promise a SIGKILL leaves
// an empty device behind, and no swap.
std::string swap_space::make_zram(std::uint64_t bytes) {
    std::string number;
    std::ifstream(hot_add) >> number; // reading it makes a device
    if (number.empty()) return failed("adding a zram device");
    if (!keeper_->promise(keeper::what::zram, number))
        return failed("telling the process that undoes it");
    bytes = (bytes + page - 1) / page * page;
    if (!write_to("/sys/block/zram" + number + "/disksize", std::to_string(bytes)))
        return failed("sizing the zram device");
    const std::string device = "/dev/zram" + number;
    const std::string why = format_and_use(device, bytes);
    if (why.empty()) device_ = device;
    return why;
}

std::string swap_space::make_file(const swap_request& request) {
    const std::string path = fmt::format("{}/obase-swap-{}", request.directory, ::getpid());
    if (!keeper_->promise(keeper::what::swap_file, path))
        return failed("telling the process that undoes it");
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return failed(path);
    const std::uint64_t bytes = (request.bytes + page - 1) / page * page;
    // A file with holes is no swap.
    errno = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    const std::string no_room = errno != 0 ? failed(path) : "";
    ::close(fd);
    if (!no_room.empty()) return no_room;
    const std::string why = format_and_use(path, bytes);
    if (why.empty()) device_ = path;
    return why;
}

std::uint64_t page_out_everything() {
    // One call keeps the kernel's lock of the address space for as long as it takes.
    constexpr std::uintptr_t step = std::uintptr_t{2} << 20;
    std::ifstream file("/proc/self/maps");
    std::stringstream maps;
    maps << file.rdbuf(); // as it was before the calls
    std::uint64_t asked = 0;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        char access[5] = "";
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3 ||
            std::strcmp(access, "rw-p") != 0 || line.find("[stack]") != std::string::npos)
            continue;
        for (std::uintptr_t at = begin; at < end; at += step) {
            const std::size_t size = std::min(step, end - at);
            if (::madvise(reinterpret_cast<void*>(at), size, MADV_PAGEOUT) == 0) asked += size;
        }
    }
    return asked;
}

} // namespace obase::tools
