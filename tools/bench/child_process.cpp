// SPDX-License-Identifier: MIT
#include "tools/bench/child_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace obase::tools {
namespace {

bool write_all(int fd, const std::string& text) noexcept {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

[[noreturn]] void run_and_exit(int fd, const std::function<nlohmann::json()>& work) noexcept {
    nlohmann::json answer;
    try {
        answer["result"] = work();
    } catch (const std::exception& error) {
        answer = {{"error", error.what()}};
    }
    const bool told = write_all(fd, answer.dump());
    std::fflush(nullptr);
    // Without destructors: objects in the millions are the kernel's to free.
    ::_exit(told ? 0 : 1);
}

} // namespace

nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(what + ": no pipe: " + std::strerror(errno));
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error(what + ": no process: " + std::strerror(errno));
    if (child == 0) {
        ::close(ends[0]);
        run_and_exit(ends[1], work);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[65536];
    for (;;) {
        const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        throw std::runtime_error(what + ": ended by signal " + std::to_string(WTERMSIG(status)) +
                                 " (" + strsignal(WTERMSIG(status)) + ")");
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    if (answer.is_discarded() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error(what + ": ended without a result");
    if (answer.contains("error"))
        throw std::runtime_error(what + ": " + answer.at("error").get<std::string>());
    return answer.at("result");
}

} // namespace obase::tools
