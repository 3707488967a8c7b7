// SPDX-License-Identifier: MIT
//
// What foreign code gives to the kernel: this program is foreign code, and its objects have moved. Each call is made with homes
// whose memory is elsewhere; without src/handles/system_calls.cpp its answer is EFAULT.
#include <obase/handles.h>

#include "testing/test_directory.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

// Objects that are away.
class away_objects {
  public:
    // The home of a copy of `bytes` bytes. It may come home and move again.
    template <class T = char>
    static T* copy(const void* from, std::size_t bytes) {
        // The run from which the thread allocates stays: one of three.
        std::vector<void*> all(3 * 65536 / (bytes + 1) + 3);
        for (void*& each : all) each = obase_handles_malloc(bytes);
        void* found = nullptr;
        for (int tries = 0; tries < 100 && found == nullptr; ++tries) {
            obase_handles_move_all();
            for (void* const each : all)
                if (obase_handles_address(each) != each) found = each;
        }
        EXPECT_NE(found, nullptr);
        for (void* const each : all)
            if (each != found) obase_handles_free(each);
        if (found == nullptr) found = obase_handles_malloc(bytes);
        std::memcpy(obase_handles_address(found), from, bytes);
        given_.push_back(found);
        return static_cast<T*>(found);
    }
    // What is kept keeps its run at home.
    static void free_all() {
        for (void* const each : given_) obase_handles_free(each);
        given_.clear();
    }
    static char* text(const std::string& text) { return copy(text.c_str(), text.size() + 1); }
    template <class T>
    static T* of(const T& value) {
        return copy<T>(&value, sizeof value);
    }
    static void* away(void* home) {
        for (int tries = 0; tries < 100 && obase_handles_address(home) == home; ++tries)
            obase_handles_move_all();
        EXPECT_NE(obase_handles_address(home), home);
        return home;
    }

  private:
    static inline std::vector<void*> given_;
};
char* text(const std::string& from) { return away_objects::text(from); }
template <class T>
T* of(const T& value) {
    return away_objects::of(value);
}
template <class T>
T* empty() {
    return of(T{});
}
char* room(std::size_t bytes) { return away_objects::copy(std::string(bytes, '.').data(), bytes); }

struct folder {
    std::string path = obase::testing::make_directory("calls");
    folder() = default;
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder() { std::filesystem::remove_all(path); }
};

struct call {
    const char* name;
    std::function<bool()> works;
};
void expect_all(const std::vector<call>& calls) {
    for (const call& each : calls) {
        errno = 0;
        EXPECT_TRUE(each.works()) << each.name << ": " << std::strerror(errno);
    }
}

class system_calls : public testing::Test {
  protected:
    void TearDown() override { away_objects::free_all(); }
};

const std::string words = "words for the kernel";

TEST_F(system_calls, are_the_programs) {
    Dl_info mine{};
    ASSERT_NE(dladdr(reinterpret_cast<const void*>(&obase_handles_read_figures), &mine), 0);
    for (const char* const name :
         {"read", "write", "fopen", "stat", "ioctl", "recvmsg", "pwritev64v2", "execle"}) {
        Dl_info found{};
        ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &found), 0) << name;
        EXPECT_EQ(found.dli_fbase, mine.dli_fbase) << name;
    }
}

TEST_F(system_calls, data) {
    const int file = memfd_create("data", 0);
    const auto n = static_cast<ssize_t>(words.size());
    const auto read_back = [&](auto&& read) {
        char* const to = room(words.size() + 1);
        const ssize_t done = read(to);
        return done == n && std::memcmp(to, words.data(), words.size()) == 0;
    };
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    const folder own;
    const std::string path = own.path + "/stream";
    FILE* const stream = std::fopen(path.c_str(), "w+");
    ASSERT_NE(stream, nullptr);
    const std::size_t many = 12000; // beyond the stream's buffer
    const std::string large(many, 'x');
    expect_all({
        {"write", [&] { return write(file, text(words), words.size()) == n; }},
        {"pread",
         [&] { return read_back([&](char* to) { return pread(file, to, words.size(), 0); }); }},
        {"pread64",
         [&] { return read_back([&](char* to) { return pread64(file, to, words.size(), 0); }); }},
        {"lseek", [&] { return lseek(file, 0, SEEK_SET) == 0; }},
        {"read", [&] { return read_back([&](char* to) { return read(file, to, words.size()); }); }},
        {"pwrite", [&] { return pwrite(file, text(words), words.size(), 5) == n; }},
        {"pread at 5",
         [&] { return read_back([&](char* to) { return pread(file, to, words.size(), 5); }); }},
        {"pwrite64", [&] { return pwrite64(file, text(words), words.size(), 7) == n; }},
        {"send", [&] { return send(ends[0], text(words), words.size(), 0) == n; }},
        {"recv",
         [&] { return read_back([&](char* to) { return recv(ends[1], to, words.size(), 0); }); }},
        {"sendto", [&] { return sendto(ends[0], text(words), words.size(), 0, nullptr, 0) == n; }},
        {"recvfrom",
         [&] {
             auto* const whose = of(sockaddr_un{});
             auto* const length = of(socklen_t{sizeof(sockaddr_un)});
             return read_back([&](char* to) {
                 return recvfrom(ends[1], to, words.size(), 0, reinterpret_cast<sockaddr*>(whose),
                                 length);
             });
         }},
        {"fwrite", [&] { return std::fwrite(text(large), 1, many, stream) == many; }},
        {"fwrite_unlocked", [&] { return fwrite_unlocked(text(large), 1, many, stream) == many; }},
        {"fputs", [&] { return std::fputs(text(large), stream) >= 0; }},
        {"fputs_unlocked", [&] { return fputs_unlocked(text(large), stream) >= 0; }},
        {"rewind", [&] { return std::fseek(stream, 0, SEEK_SET) == 0; }},
        {"fread",
         [&] {
             char* const to = room(many);
             return std::fread(to, 1, many, stream) == many && std::string(to, many) == large;
         }},
        {"fread_unlocked", [&] { return fread_unlocked(room(many), 1, many, stream) == many; }},
        {"getrandom", [&] { return getrandom(room(40), 40, 0) == 40; }},
        {"getentropy", [&] { return getentropy(room(40), 40) == 0; }},
    });
    std::fclose(stream);
    for (const int each : {file, ends[0], ends[1]}) close(each);
}

TEST_F(system_calls, names) {
    const folder own;
    const std::string at = own.path + "/";
    const auto name = [&](const char* of) { return text(at + of); };
    const auto is_closed = [](int file) { return file >= 0 && close(file) == 0; };
    const auto stream_is_closed = [](FILE* file) {
        return file != nullptr && std::fclose(file) == 0;
    };
    FILE* again = std::fopen((at + "again").c_str(), "w");
    struct stat about{};
    const int here = open(at.c_str(), O_RDONLY | O_DIRECTORY);
    const auto is_a_file = [](const auto* home) { return S_ISREG(home->st_mode); };
    expect_all({
        {"open", [&] { return is_closed(open(name("a"), O_CREAT | O_RDWR, 0600)); }},
        {"mode", [&] { return stat(name("a"), &about) == 0 && (about.st_mode & 0777) == 0600; }},
        {"open64", [&] { return is_closed(open64(name("a"), O_RDWR)); }},
        {"openat", [&] { return is_closed(openat(here, text("a"), O_RDWR)); }},
        {"openat64", [&] { return is_closed(openat64(here, text("a"), O_RDWR)); }},
        {"creat", [&] { return is_closed(creat(name("b"), 0600)); }},
        {"creat64", [&] { return is_closed(creat64(name("b"), 0600)); }},
        {"fopen", [&] { return stream_is_closed(std::fopen(name("a"), text("r"))); }},
        {"fopen64", [&] { return stream_is_closed(fopen64(name("a"), text("r"))); }},
        {"freopen", [&] { return (again = std::freopen(name("a"), text("r"), again)) != nullptr; }},
        {"freopen64", [&] { return (again = freopen64(name("a"), text("r"), again)) != nullptr; }},
        {"opendir",
         [&] {
             DIR* const made = opendir(name(""));
             return made != nullptr && closedir(made) == 0;
         }},
        {"stat",
         [&] {
             auto* to = of(about);
             return stat(name("a"), to) == 0 && is_a_file(to);
         }},
        {"lstat",
         [&] {
             auto* to = of(about);
             return lstat(name("a"), to) == 0 && is_a_file(to);
         }},
        {"fstat", [&] { return fstat(here, of(about)) == 0; }},
        {"fstatat",
         [&] {
             auto* to = of(about);
             return fstatat(here, text("a"), to, 0) == 0 && is_a_file(to);
         }},
        {"stat64", [&] { return stat64(name("a"), empty<struct stat64>()) == 0; }},
        {"lstat64", [&] { return lstat64(name("a"), empty<struct stat64>()) == 0; }},
        {"fstat64", [&] { return fstat64(here, empty<struct stat64>()) == 0; }},
        {"fstatat64", [&] { return fstatat64(here, text("a"), empty<struct stat64>(), 0) == 0; }},
        {"statx",
         [&] { return statx(here, text("a"), 0, STATX_BASIC_STATS, empty<struct statx>()) == 0; }},
        {"statfs", [&] { return statfs(name("a"), empty<struct statfs>()) == 0; }},
        {"statfs64", [&] { return statfs64(name("a"), empty<struct statfs64>()) == 0; }},
        {"fstatfs", [&] { return fstatfs(here, empty<struct statfs>()) == 0; }},
        {"fstatfs64", [&] { return fstatfs64(here, empty<struct statfs64>()) == 0; }},
        {"statvfs", [&] { return statvfs(name("a"), empty<struct statvfs>()) == 0; }},
        {"statvfs64", [&] { return statvfs64(name("a"), empty<struct statvfs64>()) == 0; }},
        {"access", [&] { return access(name("a"), R_OK) == 0; }},
        {"faccessat", [&] { return faccessat(here, text("a"), R_OK, 0) == 0; }},
        {"chmod", [&] { return chmod(name("a"), 0640) == 0; }},
        {"chown", [&] { return chown(name("a"), getuid(), getgid()) == 0; }},
        {"lchown", [&] { return lchown(name("a"), getuid(), getgid()) == 0; }},
        {"truncate", [&] { return truncate(name("a"), 10) == 0; }},
        {"truncate64", [&] { return truncate64(name("a"), 10) == 0; }},
        {"utimensat",
         [&] {
             const timespec now[2] = {};
             return utimensat(here, text("a"), away_objects::copy<timespec>(now, sizeof now), 0) ==
                    0;
         }},
        {"link", [&] { return link(name("a"), name("linked")) == 0; }},
        {"symlink", [&] { return symlink(text("a"), name("symbolic")) == 0; }},
        {"readlink",
         [&] {
             char* to = room(9);
             return readlink(name("symbolic"), to, 9) == 1 && *to == 'a';
         }},
        {"readlinkat",
         [&] {
             char* to = room(9);
             return readlinkat(here, text("symbolic"), to, 9) == 1 && *to == 'a';
         }},
        {"rename", [&] { return rename(name("linked"), name("renamed")) == 0; }},
        {"renameat", [&] { return renameat(here, text("renamed"), here, text("again")) == 0; }},
        {"unlink", [&] { return unlink(name("again")) == 0; }},
        {"unlinkat", [&] { return unlinkat(here, text("symbolic"), 0) == 0; }},
        {"remove", [&] { return std::remove(name("b")) == 0; }},
        {"mkdir", [&] { return mkdir(name("folder"), 0700) == 0; }},
        {"mkdirat", [&] { return mkdirat(here, text("second"), 0700) == 0; }},
        {"mkfifo", [&] { return mkfifo(name("pipe"), 0600) == 0; }},
        {"rmdir", [&] { return rmdir(name("second")) == 0; }},
        {"mkstemp", [&] { return is_closed(mkstemp(name("XXXXXX"))); }},
        {"mkstemp64", [&] { return is_closed(mkstemp64(name("XXXXXX"))); }},
        {"mkdtemp",
         [&] {
             char* const made = name("XXXXXX");
             return mkdtemp(made) == made;
         }},
        {"chdir", [&] { return chdir(name("folder")) == 0; }},
        {"getcwd",
         [&] {
             char* const to = room(500);
             return getcwd(to, 500) == to && to == at + "folder";
         }},
        {"back", [&] { return chdir("/") == 0; }},
    });
    std::fclose(again);
    close(here);
}

TEST_F(system_calls, vectors_and_messages) {
    const int file = memfd_create("vectors", 0);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    const auto n = static_cast<ssize_t>(2 * words.size());
    // Each buffer is an object of its own, and so is the vector.
    const auto vector_of = [](char* one, char* other) {
        const iovec both[2] = {{one, words.size()}, {other, words.size()}};
        return away_objects::copy<iovec>(both, sizeof both);
    };
    const auto out = [&] { return vector_of(text(words), text(words)); };
    const auto arrives = [&](auto&& read) {
        char* const one = room(words.size());
        char* const other = room(words.size());
        iovec* const vector = vector_of(one, other);
        return read(vector) == n && std::memcmp(one, words.data(), words.size()) == 0 &&
               std::memcmp(other, words.data(), words.size()) == 0;
    };
    const auto message_of = [](iovec* vector) {
        msghdr made{};
        made.msg_iov = vector;
        made.msg_iovlen = 2;
        return of(made);
    };
    expect_all({
        {"writev", [&] { return writev(file, out(), 2) == n; }},
        {"lseek", [&] { return lseek(file, 0, SEEK_SET) == 0; }},
        {"readv", [&] { return arrives([&](iovec* to) { return readv(file, to, 2); }); }},
        {"pwritev", [&] { return pwritev(file, out(), 2, 1) == n; }},
        {"preadv", [&] { return arrives([&](iovec* to) { return preadv(file, to, 2, 1); }); }},
        {"pwritev64", [&] { return pwritev64(file, out(), 2, 2) == n; }},
        {"preadv64", [&] { return arrives([&](iovec* to) { return preadv64(file, to, 2, 2); }); }},
        {"pwritev2", [&] { return pwritev2(file, out(), 2, 3, 0) == n; }},
        {"preadv2", [&] { return arrives([&](iovec* to) { return preadv2(file, to, 2, 3, 0); }); }},
        {"pwritev64v2", [&] { return pwritev64v2(file, out(), 2, 4, 0) == n; }},
        {"preadv64v2",
         [&] { return arrives([&](iovec* to) { return preadv64v2(file, to, 2, 4, 0); }); }},
        {"sendmsg", [&] { return sendmsg(ends[0], message_of(out()), 0) == n; }},
        {"recvmsg",
         [&] { return arrives([&](iovec* to) { return recvmsg(ends[1], message_of(to), 0); }); }},
        {"a message cut short",
         [&] {
             msghdr* const message = message_of(vector_of(room(words.size()), room(words.size())));
             message->msg_iovlen = 1;
             away_objects::away(message);
             return sendmsg(ends[0], message_of(out()), 0) == n &&
                    recvmsg(ends[1], message, 0) == n / 2 && (message->msg_flags & MSG_TRUNC) != 0;
         }},
        {"no buffers", [&] { return writev(file, out(), 0) == 0; }},
        {"a count below none",
         [&] {
             volatile int count = -1;
             return writev(file, out(), count) == -1 && errno == EINVAL;
         }},
        {"too many", [&] { return writev(file, out(), IOV_MAX + 1) == -1 && errno == EINVAL; }},
    });
    for (const int each : {file, ends[0], ends[1]}) close(each);
}

TEST_F(system_calls, who_is_ready) {
    int* const ends = of(std::array<int, 2>{})->data();
    const auto now = timespec{};
    sigset_t none;
    sigemptyset(&none);
    const int waiting = epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLOUT;
    event.data.u64 = 77;
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    int first = -1, second = -1;
    const int locked = memfd_create("locked", 0);
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const auto length = [] { return of(socklen_t{sizeof(sockaddr_in)}); };
    const auto as_address = [](sockaddr_in* home) { return reinterpret_cast<sockaddr*>(home); };
    fd_set out_set;
    expect_all({
        {"pipe", [&] { return pipe(ends) == 0; }},
        {"poll",
         [&] {
             auto* files = of(pollfd{ends[1], POLLOUT, 0});
             return poll(files, 1, 0) == 1 && files->revents == POLLOUT;
         }},
        {"ppoll",
         [&] { return ppoll(of(pollfd{ends[1], POLLOUT, 0}), 1, of(now), of(none)) == 1; }},
        {"select",
         [&] {
             FD_ZERO(&out_set);
             FD_SET(ends[1], &out_set);
             return select(ends[1] + 1, nullptr, of(out_set), nullptr, of(timeval{})) == 1;
         }},
        {"pselect",
         [&] {
             return pselect(ends[1] + 1, nullptr, of(out_set), nullptr, of(now), of(none)) == 1;
         }},
        {"epoll_ctl", [&] { return epoll_ctl(waiting, EPOLL_CTL_ADD, ends[1], of(event)) == 0; }},
        {"epoll_wait",
         [&] {
             auto* to = of(epoll_event{});
             return epoll_wait(waiting, to, 1, 0) == 1 && to->data.u64 == 77;
         }},
        {"epoll_pwait",
         [&] { return epoll_pwait(waiting, of(epoll_event{}), 1, 0, of(none)) == 1; }},
        {"setsockopt",
         [&] { return setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, of(1), sizeof(int)) == 0; }},
        {"getsockopt",
         [&] {
             auto* to = of(0);
             return getsockopt(listening, SOL_SOCKET, SO_REUSEADDR, to,
                               of(socklen_t{sizeof(int)})) == 0 &&
                    *to == 1;
         }},
        {"bind",
         [&] {
             return bind(listening, as_address(of(any)), sizeof any) == 0 &&
                    listen(listening, 4) == 0;
         }},
        {"getsockname",
         [&] {
             auto* to = of(sockaddr_in{});
             const bool done = getsockname(listening, as_address(to), length()) == 0;
             any.sin_port = to->sin_port;
             return done && any.sin_port != 0;
         }},
        {"connect",
         [&] {
             first = socket(AF_INET, SOCK_STREAM, 0);
             return connect(first, as_address(of(any)), sizeof any) == 0;
         }},
        {"accept",
         [&] {
             second = accept(listening, as_address(of(sockaddr_in{})), length());
             return second >= 0 && close(second) == 0 && close(first) == 0;
         }},
        {"connect again",
         [&] {
             first = socket(AF_INET, SOCK_STREAM, 0);
             return connect(first, as_address(of(any)), sizeof any) == 0;
         }},
        {"accept4",
         [&] {
             second = accept4(listening, as_address(of(sockaddr_in{})), length(), SOCK_CLOEXEC);
             return second >= 0;
         }},
        {"getpeername",
         [&] {
             auto* to = of(sockaddr_in{});
             return getpeername(first, as_address(to), length()) == 0 &&
                    to->sin_port == any.sin_port;
         }},
        {"socketpair",
         [&] {
             int* made = of(std::array<int, 2>{})->data();
             return socketpair(AF_UNIX, SOCK_STREAM, 0, made) == 0 && close(made[0]) == 0 &&
                    close(made[1]) == 0;
         }},
        {"pipe2",
         [&] {
             int* made = of(std::array<int, 2>{})->data();
             return pipe2(made, O_CLOEXEC) == 0 && close(made[0]) == 0 && close(made[1]) == 0;
         }},
        {"timerfd_settime",
         [&] {
             return timerfd_settime(timer, 0, of(itimerspec{{}, {1000, 0}}), of(itimerspec{})) == 0;
         }},
        {"timerfd_gettime",
         [&] {
             auto* to = of(itimerspec{});
             return timerfd_gettime(timer, to) == 0 && to->it_value.tv_sec > 0;
         }},
        {"fcntl",
         [&] {
             struct flock lock{};
             lock.l_type = F_WRLCK;
             return fcntl(waiting, F_GETFD) >= 0 && fcntl(locked, F_SETLK, of(lock)) == 0;
         }},
        {"fcntl64", [&] { return fcntl64(waiting, F_GETFD) >= 0; }},
        {"ioctl",
         [&] {
             auto* to = of(-1);
             return ioctl(ends[0], FIONREAD, to) == 0 && *to == 0;
         }},
    });
    for (const int each : {ends[0], ends[1], waiting, listening, first, second, locked, timer})
        close(each);
}

// The exit status of a child that runs `ends`.
int status_of(const std::function<void()>& ends) {
    const pid_t child = fork();
    if (child == 0) {
        ends();
        _exit(99);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(system_calls, processes) {
    const auto list = [](const char* script) {
        char* const each[4] = {text("sh"), text("-c"), text(script), nullptr};
        return away_objects::copy<char*>(each, sizeof each);
    };
    const auto environment = [] {
        char* const each[2] = {text("OBASE_TEST=9"), nullptr};
        return away_objects::copy<char*>(each, sizeof each);
    };
    const auto status_of_spawned = [](int error, const pid_t* made) {
        int* const status = of(-1);
        return error == 0 && waitpid(*made, status, 0) == *made && WEXITSTATUS(*status) == 9;
    };
    const char* const script = "exit 9";
    const char* const variable = "exit $OBASE_TEST";
    const auto of_child = [] { return fork(); };
    expect_all({
        {"execve",
         [&] {
             return status_of([&] { execve(text("/bin/sh"), list(variable), environment()); }) == 9;
         }},
        {"execv", [&] { return status_of([&] { execv(text("/bin/sh"), list(script)); }) == 9; }},
        {"execvp", [&] { return status_of([&] { execvp(text("sh"), list(script)); }) == 9; }},
        {"execvpe",
         [&] {
             return status_of([&] { execvpe(text("sh"), list(variable), environment()); }) == 9;
         }},
        {"execl",
         [&] {
             return status_of([&] {
                        execl(text("/bin/sh"), text("sh"), text("-c"), text(script), nullptr);
                    }) == 9;
         }},
        {"execlp",
         [&] {
             return status_of([&] {
                        execlp(text("sh"), text("sh"), text("-c"), text(script), nullptr);
                    }) == 9;
         }},
        {"execle",
         [&] {
             return status_of([&] {
                        execle(text("/bin/sh"), text("sh"), text("-c"), text(variable), nullptr,
                               environment());
                    }) == 9;
         }},
        {"posix_spawn",
         [&] {
             auto* made = of(pid_t{});
             return status_of_spawned(posix_spawn(made, text("/bin/sh"), nullptr, nullptr,
                                                  list(variable), environment()),
                                      made);
         }},
        {"posix_spawnp",
         [&] {
             auto* made = of(pid_t{});
             return status_of_spawned(
                 posix_spawnp(made, text("sh"), nullptr, nullptr, list(variable), environment()),
                 made);
         }},
        {"wait",
         [&] {
             const pid_t child = of_child();
             if (child == 0) _exit(0);
             return wait(of(1)) == child;
         }},
        {"wait4",
         [&] {
             const pid_t child = of_child();
             if (child == 0) _exit(0);
             return wait4(child, of(1), 0, of(rusage{})) == child;
         }},
        {"waitid",
         [&] {
             const pid_t child = of_child();
             if (child == 0) _exit(0);
             return waitid(P_PID, static_cast<id_t>(child), of(siginfo_t{}), WEXITED) == 0;
         }},
        {"getrusage", [&] { return getrusage(RUSAGE_SELF, of(rusage{})) == 0; }},
        {"getrlimit", [&] { return getrlimit(RLIMIT_CORE, of(rlimit{})) == 0; }},
        {"getrlimit64", [&] { return getrlimit64(RLIMIT_CORE, of(rlimit64{})) == 0; }},
        {"setrlimit", [&] { return setrlimit(RLIMIT_CORE, of(rlimit{})) == 0; }},
        {"setrlimit64", [&] { return setrlimit64(RLIMIT_CORE, of(rlimit64{})) == 0; }},
        {"uname",
         [&] {
             auto* to = of(utsname{});
             return uname(to) == 0 && std::string(to->sysname) == "Linux";
         }},
        {"nanosleep", [&] { return nanosleep(of(timespec{0, 1}), of(timespec{})) == 0; }},
        {"sched_getaffinity",
         [&] { return sched_getaffinity(0, sizeof(cpu_set_t), of(cpu_set_t{})) >= 0; }},
        {"sched_setaffinity",
         [&] {
             cpu_set_t now;
             return sched_getaffinity(0, sizeof now, &now) >= 0 &&
                    sched_setaffinity(0, sizeof now, of(now)) == 0;
         }},
    });
}

TEST_F(system_calls, errors_are_the_kernels) {
    char* const to = room(10);
    errno = 0;
    EXPECT_EQ(read(-1, to, 10), -1);
    EXPECT_EQ(errno, EBADF);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const void* volatile nowhere = reinterpret_cast<const void*>(8);
    EXPECT_EQ(write(ends[1], nowhere, 10), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(read(ends[0], nullptr, 0), 0);
    EXPECT_EQ(std::fopen(text("/nowhere/to/be/found"), "r"), nullptr);
    EXPECT_EQ(errno, ENOENT);
    close(ends[0]);
    close(ends[1]);
}

// What was pinned for the call may move again, and once only: what the thread has pinned itself stays so.
TEST_F(system_calls, pins_end_with_the_call) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    char* const home = text(words);
    EXPECT_EQ(write(ends[1], home, words.size()), static_cast<ssize_t>(words.size()));
    EXPECT_EQ(obase_handles_address(home), home); // it came home
    away_objects::away(home);
    const unsigned long mark = obase_handles_enter();
    obase_handles_pin(home);
    obase_handles_offline();
    EXPECT_EQ(write(ends[1], home, words.size()), static_cast<ssize_t>(words.size()));
    obase_handles_move_all();
    EXPECT_EQ(obase_handles_address(home), home); // still pinned
    obase_handles_online();
    obase_handles_unpin(home);
    obase_handles_leave(mark);
    away_objects::away(home);
    close(ends[0]);
    close(ends[1]);
}

// A call waits while everything is moved; what comes goes to where the object is.
TEST_F(system_calls, nothing_moves_while_a_call_waits) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    char* const to = room(words.size());
    std::atomic<bool> waits{false};
    std::thread reader([&] {
        waits = true;
        EXPECT_EQ(read(ends[0], to, words.size()), static_cast<ssize_t>(words.size()));
    });
    while (!waits) sched_yield();
    usleep(20000);
    for (int i = 0; i < 5; ++i) obase_handles_move_all();
    EXPECT_EQ(write(ends[1], words.data(), words.size()), static_cast<ssize_t>(words.size()));
    reader.join();
    EXPECT_EQ(std::string(static_cast<char*>(obase_handles_address(to)), words.size()), words);
    close(ends[0]);
    close(ends[1]);
}

TEST_F(system_calls, while_everything_moves_all_the_time) {
    const int rounds = 2000;
    std::atomic<bool> done{false};
    std::thread mover([&] {
        while (!done) obase_handles_move_all();
    });
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 2; ++caller)
        callers.emplace_back([&, caller] {
            int ends[2];
            ASSERT_EQ(pipe(ends), 0);
            auto* const from = static_cast<long*>(obase_handles_malloc(64));
            auto* const to = static_cast<long*>(obase_handles_malloc(64));
            for (long i = 0; i < rounds; ++i) {
                const long value = i * 2 + caller;
                *from = value; // by its home: foreign code
                if (write(ends[1], from, sizeof *from) != sizeof *from ||
                    read(ends[0], to, sizeof *to) != sizeof *to || *to != value) {
                    ADD_FAILURE() << "round " << i << ": " << std::strerror(errno);
                    break;
                }
            }
            obase_handles_free(from);
            obase_handles_free(to);
            close(ends[0]);
            close(ends[1]);
        });
    for (std::thread& each : callers) each.join();
    done = true;
    mover.join();
}

// A thread that is cancelled in a call gives its pins back.
TEST_F(system_calls, a_cancelled_call_leaves_no_pin) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    struct shared {
        int file;
        char* to;
        std::atomic<bool> waits;
    } both{ends[0], room(10), false};
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* all) -> void* {
                      auto* const mine = static_cast<shared*>(all);
                      mine->waits = true;
                      (void)!read(mine->file, mine->to, 10);
                      return nullptr;
                  },
                  &both),
              0);
    while (!both.waits) sched_yield();
    usleep(20000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    away_objects::away(both.to);
    close(ends[0]);
    close(ends[1]);
}

// A foreign handler in the midst of compiled code: the translations of that stay good.
char* handlers_home;
int handlers_file;
ssize_t handlers_result;
bool handlers_folder_is_there;
TEST_F(system_calls, a_handler_moves_nothing_under_compiled_code) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    handlers_home = text(words);
    handlers_file = ends[1];
    struct sigaction action{};
    static char* const folders_name = room(500);
    action.sa_handler = [](int) {
        handlers_result = write(handlers_file, handlers_home, words.size());
        handlers_folder_is_there = getcwd(folders_name, 500) == folders_name;
    };
    struct sigaction before{};
    sigaction(SIGUSR1, &action, &before);
    const unsigned long mark = obase_handles_enter();
    auto* const now = static_cast<char*>(obase_handles_address(handlers_home));
    ASSERT_NE(now, handlers_home);
    raise(SIGUSR1);
    EXPECT_EQ(obase_handles_address(handlers_home), now);
    EXPECT_EQ(std::string(now), words);
    obase_handles_leave(mark);
    EXPECT_EQ(handlers_result, static_cast<ssize_t>(words.size()));
    EXPECT_TRUE(handlers_folder_is_there);
    char to[64] = {};
    EXPECT_EQ(read(ends[0], to, sizeof to), static_cast<ssize_t>(words.size()));
    EXPECT_EQ(std::string(to), words);
    sigaction(SIGUSR1, &before, nullptr);
    close(ends[0]);
    close(ends[1]);
}

} // namespace
