// SPDX-License-Identifier: MIT
#include "tools/bench/child_process.hpp"

#include "tools/bench/interrupt.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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

// What comes out of the pipe until its other end is closed.
std::string read_all(int fd) {
    std::string text;
    char buffer[65536];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return text;
        text.append(buffer, static_cast<std::size_t>(n));
    }
}

struct finished_worker {
    std::string text;
    int status = 0;
};

// Forks; the child closes the reading end and calls `begin` with the writing one, which does not
// return. Interrupts are passed on to the child until all that it writes has been read.
template <class Begin>
finished_worker run_worker(const std::string& what, const Begin& begin) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(what + ": no pipe: " + std::strerror(errno));
    std::fflush(nullptr);
    pid_t child = -1;
    int failure = 0;
    {
        const interrupts_held held;
        const pid_t parent = ::getpid();
        child = ::fork();
        failure = errno;
        if (child == 0) {
            ::close(ends[0]);
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);
            begin(ends[1], held);
        }
        if (child > 0) pass_interrupts_to(child);
    }
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        throw std::runtime_error(what + ": no process: " + std::strerror(failure));
    }
    finished_worker done{read_all(ends[0]), 0};
    ::close(ends[0]);
    // Once it is waited for, its number may be another process's.
    pass_interrupts_to(0);
    while (::waitpid(child, &done.status, 0) < 0 && errno == EINTR) {
    }
    return done;
}

} // namespace

nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work) {
    const auto [text, status] = run_worker(what, [&](int fd, const interrupts_held& held) {
        held.let_go();
        run_and_exit(fd, work);
    });
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

std::optional<std::string> output_of_program(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const auto [text, status] = run_worker(words.front(), [&](int fd, const interrupts_held& held) {
        let_interrupts_end_this_process();
        held.let_go();
        ::dup2(fd, STDOUT_FILENO);
        ::dup2(fd, STDERR_FILENO);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    });
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
    return text;
}

} // namespace obase::tools
