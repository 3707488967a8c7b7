// SPDX-License-Identifier: MIT
#include "tools/ycsb/control_group.hpp"

#include "tools/ycsb/proc_numbers.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace obase::tools {
namespace {

// One write, as these files want it. "" or the reason.
std::string write_to(const std::string& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0) return fmt::format("{}: {}", file, std::strerror(errno));
    const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int failure = errno;
    ::close(fd);
    return done ? "" : fmt::format("{}: writing {}: {}", file, text, std::strerror(failure));
}

// The path of this process in the hierarchy whose line of /proc/self/cgroup holds `controller`.
std::string group_path(std::string_view controller) {
    std::ifstream in("/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string list = "," + line.substr(first + 1, second - first - 1) + ",";
        if (list == fmt::format(",{},", controller) ||
            (!controller.empty() &&
             list.find(fmt::format(",{},", controller)) != std::string::npos))
            return line.substr(second + 1);
    }
    return "";
}

bool is_there(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

} // namespace

control_group::control_group(const std::string& path)
    : path_(path), v2_(!is_there(path + "/memory.limit_in_bytes")) {}

control_group control_group::below_own(const std::string& name,
                                       const std::function<void(const std::string&)>& before) {
    struct hierarchy {
        const char* mount;
        const char* controller;
    };
    for (const hierarchy h :
         {hierarchy{"/sys/fs/cgroup/memory", "memory"}, hierarchy{"/sys/fs/cgroup", ""}}) {
        const std::string path = fmt::format("{}{}/{}", h.mount, group_path(h.controller), name);
        if (before) before(path);
        if (::mkdir(path.c_str(), 0755) != 0) continue;
        if (is_there(path + "/memory.stat")) return control_group(path);
        ::rmdir(path.c_str());
    }
    return {};
}

bool control_group::join() const {
    return made() && write_to(path_ + "/cgroup.procs", std::to_string(::getpid())).empty();
}

void control_group::leave() const {
    if (made())
        write_to(path_.substr(0, path_.rfind('/')) + "/cgroup.procs", std::to_string(::getpid()));
}

bool control_group::remove() {
    if (!made() || ::rmdir(path_.c_str()) != 0) return false;
    path_.clear();
    return true;
}

std::uint64_t control_group::stat(const char* name) const {
    return number_in(path_ + "/memory.stat", std::string(name) + " ");
}

// The kernel counts a page of the swap cache as page cache, and as anonymous memory too if it is mapped.
std::uint64_t control_group::bytes() const {
    const std::uint64_t mapped = stat(v2_ ? "anon" : "rss");
    const std::uint64_t cache = stat(v2_ ? "file" : "cache");
    return mapped + cache - std::min(cache, stat("swapcached")) + unmapped_swap_cache_bytes();
}

// Pages on the lists of anonymous memory that are not mapped, apart from shared memory.
std::uint64_t control_group::unmapped_swap_cache_bytes() const {
    if (stat("swapcached") == 0) return 0;
    const std::uint64_t listed = stat("active_anon") + stat("inactive_anon");
    const std::uint64_t mapped = stat(v2_ ? "anon" : "rss") + stat("shmem");
    return listed > mapped ? listed - mapped : 0;
}

std::uint64_t control_group::charge() const {
    return number_in(path_ + (v2_ ? "/memory.current" : "/memory.usage_in_bytes"), "");
}

std::string control_group::limit_file() const {
    return path_ + (v2_ ? "/memory.max" : "/memory.limit_in_bytes");
}

std::string control_group::set_limit(std::uint64_t bytes) const {
    return made() ? write_to(limit_file(), std::to_string(bytes)) : "no control group";
}

std::string control_group::remove_limit() const {
    return made() ? write_to(limit_file(), v2_ ? "max" : "-1") : "no control group";
}

std::optional<std::uint64_t> control_group::limit() const {
    // v1 has the largest number of whole pages for none.
    constexpr std::uint64_t none = std::uint64_t{1} << 62;
    const std::uint64_t bytes = number_in(limit_file(), "");
    if (bytes == 0 || bytes >= none) return std::nullopt;
    return bytes;
}

std::string control_group::forbid_swap() const {
    if (!made()) return "no control group";
    return write_to(path_ + (v2_ ? "/memory.swap.max" : "/memory.swappiness"), "0");
}

void control_group::reclaim(std::uint64_t bytes) const {
    if (!made() || v2_) return;
    const std::optional<std::uint64_t> before = limit();
    const std::uint64_t now = charge();
    set_limit(now > bytes ? now - bytes : 0);
    if (before)
        set_limit(*before);
    else
        remove_limit();
}

std::uint64_t control_group::kills() const {
    return number_in(path_ + (v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill ");
}

std::string control_group::method() const {
    return v2_ ? "control group v2, memory.stat: anon + file, the swap cache once"
               : "control group v1, memory.stat: rss + cache, the swap cache once";
}

} // namespace obase::tools
