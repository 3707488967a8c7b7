// SPDX-License-Identifier: MIT
#include "tools/ycsb/keeper.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace obase::tools {
namespace {

void write_to(const std::string& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (::write(fd, text.data(), text.size()) < 0) { // nothing is left to be done about it
    }
    ::close(fd);
}

constexpr int tries = 3000;
void nap() {
    const timespec moment{0, 10'000'000};
    ::nanosleep(&moment, nullptr);
}

// What a process that is about to end has in it must be read back for a moment, which its control group may
// not have the memory for (ENOMEM) until it has ended. EINVAL: it was never on.
void swap_off(const std::string& path) {
    for (int i = 0; i < tries && ::swapoff(path.c_str()) != 0; ++i) {
        if (errno != ENOMEM && errno != EINTR && errno != EAGAIN && errno != EBUSY) return;
        nap();
    }
}

void undo_zram(const std::string& number) {
    swap_off("/dev/zram" + number);
    write_to("/sys/block/zram" + number + "/reset", "1");
    write_to("/sys/class/zram-control/hot_remove", number);
}

void undo_swap_file(const std::string& path) {
    swap_off(path);
    ::unlink(path.c_str());
}

// Its processes end with the one that made it, but not before.
void undo_group(const std::string& path) {
    for (int i = 0; i < tries && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++i) nap();
}

void undo(const std::string& promise) {
    const std::string name = promise.substr(1);
    switch (static_cast<keeper::what>(promise[0])) {
    case keeper::what::zram:
        return undo_zram(name);
    case keeper::what::swap_file:
        return undo_swap_file(name);
    case keeper::what::group:
        return undo_group(name);
    }
}

// Until the other end of the pipe is closed; what came out of it are the promises, one in a line.
[[noreturn]] void keep(int pipe, int held) noexcept {
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE})
        ::signal(signal, SIG_IGN);
    // A reader of the parent's output must not wait for this process.
    for (int fd = 0; fd < 1024; ++fd)
        if (fd != pipe && fd != held) ::close(fd);
    std::string promises;
    for (;;) {
        char c = 0;
        const ssize_t n = ::read(pipe, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        promises += c;
    }
    // What was not told whole was not done.
    while (!promises.empty() && promises.back() != '\n') promises.pop_back();
    while (promises.size() > 1) {
        promises.pop_back();
        const std::size_t end = promises.rfind('\n');
        undo(promises.substr(end + 1)); // npos + 1 is 0
        promises.resize(end + 1);
    }
    ::_exit(0);
}

} // namespace

keeper::keeper(int held) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
        ::close(ends[1]);
        keep(ends[0], held);
    }
    ::close(ends[0]);
    pipe_ = ends[1];
}

keeper::~keeper() {
    if (pipe_ >= 0) ::close(pipe_);
    if (process_ > 0)
        while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
        }
}

bool keeper::promise(what kind, const std::string& name) const {
    const std::string line = static_cast<char>(kind) + name + "\n";
    return ::write(pipe_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

} // namespace obase::tools
