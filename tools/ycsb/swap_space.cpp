// SPDX-License-Identifier: MIT
#include "tools/ycsb/swap_space.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace obase::tools {
namespace {

constexpr const char* lock_file = "/run/lock/obase-swap.lock";
constexpr const char* hot_add = "/sys/class/zram-control/hot_add";
constexpr const char* hot_remove = "/sys/class/zram-control/hot_remove";
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

void remove_device(const std::string& number) {
    ::swapoff(("/dev/zram" + number).c_str()); // fails if it was never on
    write_to("/sys/block/zram" + number + "/reset", "1");
    write_to(hot_remove, number);
}

// Until the other end of the pipe is closed; what came out of it is the number of the device.
[[noreturn]] void keep(int pipe, int lock) noexcept {
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE})
        ::signal(signal, SIG_IGN);
    // A reader of the parent's output must not wait for this process.
    for (int fd = 0; fd < 1024; ++fd)
        if (fd != pipe && fd != lock) ::close(fd);
    std::string number;
    for (;;) {
        char c = 0;
        const ssize_t n = ::read(pipe, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        number += c;
    }
    if (!number.empty()) remove_device(number);
    ::_exit(0);
}

std::string error_text() { return std::strerror(errno); }

} // namespace

swap_space::swap_space(std::uint64_t bytes) {
    device_ = swap_in_use();
    if (!device_.empty()) return;
    lock_ = ::open(lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ < 0)
        why_not_ = fmt::format("no swap, and none can be made: {}: {}", lock_file, error_text());
    else if (::flock(lock_, LOCK_EX | LOCK_NB) != 0)
        why_not_ = fmt::format("no swap of our own: {} is locked by another process", lock_file);
    else if (::access(hot_add, R_OK) != 0)
        why_not_ = fmt::format("no swap, and none can be made: {}: {}", hot_add, error_text());
    else if (!start_keeper())
        why_not_ = "no swap, and none can be made: no process to undo it: " + error_text();
    else
        why_not_ = make(bytes);
    if (!why_not_.empty()) end_keeper();
}

bool swap_space::start_keeper() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    std::fflush(nullptr);
    keeper_ = ::fork();
    if (keeper_ == 0) {
        ::close(ends[1]);
        keep(ends[0], lock_);
    }
    ::close(ends[0]);
    keeper_pipe_ = ends[1];
    return keeper_ > 0;
}

// The keeper learns the device's number at once, so between that and here a SIGKILL leaves an empty
// device behind, and no swap.
std::string swap_space::make(std::uint64_t bytes) {
    const auto failed = [](const char* doing) {
        return fmt::format("no swap, and none can be made: {}: {}", doing, error_text());
    };
    std::string number;
    std::ifstream(hot_add) >> number; // reading it makes a device
    if (number.empty()) return failed("adding a zram device");
    if (::write(keeper_pipe_, number.data(), number.size()) != static_cast<ssize_t>(number.size()))
        return failed("telling the process that undoes it");
    const std::string device = "/dev/zram" + number;
    bytes = (bytes + page - 1) / page * page;
    if (!write_to("/sys/block/zram" + number + "/disksize", std::to_string(bytes)))
        return failed("sizing the zram device");
    if (!write_swap_header(device, bytes)) return failed("formatting the zram device");
    if (::swapon(device.c_str(), 0) != 0) return failed("swapon");
    device_ = device;
    return "";
}

void swap_space::end_keeper() {
    if (keeper_pipe_ >= 0) ::close(keeper_pipe_);
    if (keeper_ > 0)
        while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
        }
    if (lock_ >= 0) ::close(lock_);
    keeper_pipe_ = lock_ = -1;
    keeper_ = -1;
}

swap_space::~swap_space() { end_keeper(); }

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
