// SPDX-License-Identifier: MIT
#include "tools/bench/child_process.hpp"

#include "tools/bench/interrupt.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace obase::tools {
namespace {

bool is_left_out(std::string_view setting) noexcept {
    return setting.starts_with("OBASE_") || setting.starts_with("LD_PRELOAD=");
}

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
    } catch (const interruption& early) {
        answer = {{"interruption", early.what()}};
    } catch (const std::exception& error) {
        answer = {{"error", error.what()}};
    }
    const bool told = write_all(fd, answer.dump());
    std::fflush(nullptr);
    // Without destructors: objects in the millions are the kernel's to free.
    ::_exit(told ? 0 : 1);
}

// What comes out of the pipe until its other end is closed.
template <class Take>
void read_all(int fd, const Take& take) {
    char buffer[65536];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        take(std::string_view(buffer, static_cast<std::size_t>(n)));
    }
}

// Forks; the child closes the reading end and calls `begin` with the writing one, which does not
// return. Interrupts are passed on to the child until all that it writes has been read, piece by
// piece, by `take`. Returns how it ended, as waitpid() says, and leaves what it used in `used`.
template <class Begin, class Take>
int run_worker(const std::string& what, const Begin& begin, const Take& take,
               rusage* used = nullptr) {
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
    std::exception_ptr failed;
    try {
        read_all(ends[0], take);
    } catch (...) {
        failed = std::current_exception();
        ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    // Once it is waited for, its number may be another process's.
    pass_interrupts_to(0);
    int status = 0;
    while (::wait4(child, &status, 0, used) < 0 && errno == EINTR) {
    }
    if (failed) std::rethrow_exception(failed);
    return status;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

nlohmann::json in_child_process(const std::string& what,
                                const std::function<nlohmann::json()>& work) {
    std::string text;
    const int status = run_worker(
        what,
        [&](int fd, const interrupts_held& held) {
            held.let_go();
            run_and_exit(fd, work);
        },
        [&](std::string_view piece) { text += piece; });
    if (WIFSIGNALED(status))
        throw std::runtime_error(what + ": ended by signal " + std::to_string(WTERMSIG(status)) +
                                 " (" + strsignal(WTERMSIG(status)) + ")");
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    if (answer.is_discarded() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error(what + ": ended without a result");
    if (answer.contains("interruption"))
        throw interruption(answer.at("interruption").get<std::string>());
    if (answer.contains("error"))
        throw std::runtime_error(what + ": " + answer.at("error").get<std::string>());
    return answer.at("result");
}

std::vector<std::string> clean_environment() {
    std::vector<std::string> kept;
    for (char** setting = environ; *setting != nullptr; ++setting)
        if (!is_left_out(*setting)) kept.emplace_back(*setting);
    return kept;
}

std::vector<std::string> clean_command(const std::vector<std::string>& environment,
                                       const std::vector<std::string>& words) {
    std::vector<std::string> command{"env"};
    for (char** setting = environ; *setting != nullptr; ++setting) {
        const std::string_view text(*setting);
        if (!is_left_out(text)) continue;
        command.emplace_back("-u");
        command.emplace_back(text.substr(0, text.find('=')));
    }
    command.insert(command.end(), environment.begin(), environment.end());
    command.insert(command.end(), words.begin(), words.end());
    return command;
}

finished_program run_program(const std::vector<std::string>& words) {
    std::vector<char*> arguments = pointers_to(words);
    finished_program done;
    rusage used{};
    const int status = run_worker(
        words.front(),
        [&](int fd, const interrupts_held& held) {
            let_interrupts_end_this_process();
            held.let_go();
            ::dup2(fd, STDOUT_FILENO);
            ::dup2(fd, STDERR_FILENO);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        },
        [&](std::string_view piece) { done.output += piece; }, &used);
    if (WIFEXITED(status)) done.exit_status = WEXITSTATUS(status);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
        done.cpu_seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    return done;
}

std::optional<std::string> output_of_program(const std::vector<std::string>& words) {
    finished_program done = run_program(words);
    if (done.exit_status != 0) return std::nullopt;
    return std::move(done.output);
}

int run_this_program(const std::vector<std::string>& words, const std::function<bool()>& first,
                     const std::function<void(const std::string&)>& line) {
    std::vector<char*> arguments = pointers_to(words);
    std::string text;
    return run_worker(
        words.front(),
        [&](int fd, const interrupts_held&) {
            // What it inherits blocked it lets go of once it can handle it.
            let_interrupts_end_this_process();
            const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
            if (first() && ::dup2(nowhere, STDOUT_FILENO) >= 0 &&
                (fd == descriptor_of_lines ? ::fcntl(fd, F_SETFD, 0) == 0
                                           : ::dup2(fd, descriptor_of_lines) >= 0))
                ::execv("/proc/self/exe", arguments.data());
            ::_exit(127);
        },
        [&](std::string_view piece) {
            text += piece;
            for (std::size_t end; (end = text.find('\n')) != std::string::npos;) {
                line(text.substr(0, end));
                text.erase(0, end + 1);
            }
        });
}

bool write_line(const std::string& text) { return write_all(descriptor_of_lines, text + "\n"); }

} // namespace obase::tools
