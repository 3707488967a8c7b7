// SPDX-License-Identifier: MIT
#include "wiscsort/device/child.hpp"

#include "wiscsort/error.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

namespace wiscsort::device {

child_result run_child(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe for a child: {}", describe_errno(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> argv, envp;
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    // Programs take the first of a name, and shells the last.
    for (const std::string& e : environment) envp.push_back(const_cast<char*>(e.c_str()));
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string_view name =
            std::string_view(*e).substr(0, std::string_view(*e).find('='));
        if (std::none_of(environment.begin(), environment.end(), [&](const std::string& added) {
                return added.size() > name.size() && added[name.size()] == '=' &&
                       added.compare(0, name.size(), name) == 0;
            }))
            envp.push_back(*e);
    }
    envp.push_back(nullptr);
    const auto begin = std::chrono::steady_clock::now();
    pid_t child = 0;
    const int problem =
        ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (problem != 0) {
        ::close(ends[0]);
        fail("{}: cannot be started: {}", arguments[0], describe_errno(problem));
    }
    child_result result;
    char buffer[4096];
    for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) != 0;) {
        if (got < 0) {
            if (errno == EINTR) continue;
            break;
        }
        if (result.output.size() < sizeof buffer)
            result.output.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    rusage used{};
    while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    result.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
    result.read_bytes = static_cast<std::uint64_t>(used.ru_inblock) * 512;
    result.written_bytes = static_cast<std::uint64_t>(used.ru_oublock) * 512;
    return result;
}

} // namespace wiscsort::device
