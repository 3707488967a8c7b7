// SPDX-License-Identifier: MIT
//
// What foreign code gives to the kernel: this program is foreign code, and its objects have moved. Each call is made with homes
// whose memory is elsewhere; without src/handles/system_calls.cpp its answer is EFAULT.
#include <obase/handles.h>

#include "handles/native.hpp"
#include "testing/test_directory.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <mntent.h>
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <threads.h>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <unistd.h>
#include <utime.h>

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
    for (const char* const name : {"read", "write", "fopen", "stat", "ioctl", "recvmsg",
                                   "pwritev64v2", "execle", "__read_chk"}) {
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
    const int other = open((own.path + "/other").c_str(), O_CREAT | O_RDWR, 0600);
    const int queue = msgget(IPC_PRIVATE, 0600);
    const int semaphore = semget(IPC_PRIVATE, 1, 0600);
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
        {"arc4random_buf",
         [&] {
             // Of glibc 2.36 and later.
             using function = void(void*, size_t);
             auto* const fill = reinterpret_cast<function*>(dlsym(RTLD_DEFAULT, "arc4random_buf"));
             char* const to = room(400);
             fill(to, 400);
             return std::string(to, 400) != std::string(400, '.');
         }},
        {"eventfd_read",
         [&] {
             const int made = eventfd(7, 0);
             auto* const to = of(eventfd_t{});
             return eventfd_read(made, to) == 0 && *to == 7 && close(made) == 0;
         }},
        {"getdents64",
         [&] {
             const int here = open(own.path.c_str(), O_RDONLY | O_DIRECTORY);
             return getdents64(here, room(1000), 1000) > 0 && close(here) == 0;
         }},
        {"vmsplice",
         [&] {
             int both[2];
             iovec from{text(words), words.size()};
             char* const to = room(words.size());
             const bool worked = pipe(both) == 0 && vmsplice(both[1], of(from), 1, 0) == n &&
                                 read(both[0], to, words.size()) == n &&
                                 std::string(to, words.size()) == words;
             close(both[0]);
             close(both[1]);
             return worked;
         }},
        {"messages of a queue",
         [&] {
             mq_attr about{};
             about.mq_maxmsg = 2;
             about.mq_msgsize = 64;
             char* const name = text("/obase-test-" + std::to_string(getpid()));
             const mqd_t made = mq_open(name, O_CREAT | O_RDWR, 0600, of(about));
             if (made < 0) return errno == ENOSYS || errno == EACCES; // no such queues here
             const timespec soon{1, 0};
             char* const to = room(64);
             const bool worked = mq_getattr(made, of(mq_attr{})) == 0 &&
                                 mq_setattr(made, of(about), of(about)) == 0 &&
                                 mq_send(made, text(words), words.size(), 1) == 0 &&
                                 mq_timedsend(made, text(words), words.size(), 1, of(soon)) == 0 &&
                                 mq_receive(made, to, 64, of(0U)) == n &&
                                 mq_timedreceive(made, to, 64, of(0U), of(soon)) == n &&
                                 std::string(to, words.size()) == words;
             return mq_unlink(text(name)) == 0 && mq_close(made) == 0 && worked;
         }},
        {"sendfile", [&] { return sendfile(other, file, of(off_t{5}), words.size()) == n; }},
        {"sendfile64", [&] { return sendfile64(other, file, of(off_t{5}), words.size()) == n; }},
        {"copy_file_range",
         [&] {
             return copy_file_range(other, of(off_t{0}), other, of(off_t{50}), words.size(), 0) ==
                    n;
         }},
        {"splice",
         [&] {
             int both[2];
             const bool worked = pipe(both) == 0 &&
                                 splice(file, of(off_t{5}), both[1], nullptr, words.size(), 0) == n;
             close(both[0]);
             close(both[1]);
             return worked;
         }},
        {"msgsnd", [&] { return msgsnd(queue, of(std::array<long, 2>{7, 8}), 8, 0) == 0; }},
        {"msgrcv",
         [&] {
             auto* const to = of(std::array<long, 2>{});
             return msgrcv(queue, to, 8, 0, 0) == 8 && (*to)[0] == 7 && (*to)[1] == 8;
         }},
        {"semop", [&] { return semop(semaphore, of(sembuf{0, 1, 0}), 1) == 0; }},
        {"semtimedop",
         [&] { return semtimedop(semaphore, of(sembuf{0, -1, 0}), 1, of(timespec{1, 0})) == 0; }},
        {"setvbuf",
         [&] {
             // The stream has it from now on, and moves are over.
             char* const buffer = room(4096);
             FILE* const made = std::fopen(path.c_str(), "w+");
             const bool worked = std::setvbuf(made, buffer, _IOFBF, 4096) == 0 &&
                                 obase_handles_move_all() + 1 > 0 &&
                                 obase_handles_address(buffer) == buffer &&
                                 std::fputs("x", made) >= 0;
             return std::fclose(made) == 0 && worked;
         }},
        {"setbuf",
         [&] {
             char* const buffer = room(BUFSIZ);
             FILE* const made = std::fopen(path.c_str(), "w+");
             std::setbuf(made, buffer);
             return obase_handles_address(buffer) == buffer && std::fclose(made) == 0;
         }},
        {"setbuffer",
         [&] {
             char* const buffer = room(100);
             FILE* const made = std::fopen(path.c_str(), "w+");
             setbuffer(made, buffer, 100);
             return obase_handles_address(buffer) == buffer && std::fclose(made) == 0;
         }},
    });
    std::fclose(stream);
    close(other);
    msgctl(queue, IPC_RMID, nullptr);
    semctl(semaphore, 0, IPC_RMID);
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
        {"renameat2", [&] { return renameat2(here, text("again"), here, text("last"), 0) == 0; }},
        {"unlink", [&] { return unlink(name("last")) == 0; }},
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
    const std::string file = at + "a"; // is there
    const utimbuf seconds{1, 2};
    const std::array<timeval, 2> micros{timeval{3, 0}, timeval{4, 0}};
    const std::array<timespec, 2> nanos{timespec{5, 0}, timespec{6, 0}};
    const int opened = open(file.c_str(), O_RDWR);
    const int watching = inotify_init1(0);
    const auto is_time = [&](time_t wanted) {
        return stat(file.c_str(), &about) == 0 && about.st_mtime == wanted;
    };
    // A file system may have none.
    const bool attributes = setxattr(file.c_str(), "user.obase", "x", 1, 0) == 0;
    const auto works = [&](auto result) { return attributes ? result >= 0 : errno == ENOTSUP; };
    expect_all({
        {"utime", [&] { return utime(text(file), of(seconds)) == 0 && is_time(2); }},
        {"utimes", [&] { return utimes(text(file), of(micros)->data()) == 0 && is_time(4); }},
        {"lutimes", [&] { return lutimes(text(file), of(micros)->data()) == 0; }},
        {"futimes", [&] { return futimes(opened, of(micros)->data()) == 0; }},
        {"futimens", [&] { return futimens(opened, of(nanos)->data()) == 0 && is_time(6); }},
        {"linkat", [&] { return linkat(here, text("a"), here, text("linked"), 0) == 0; }},
        {"symlinkat", [&] { return symlinkat(text("a"), here, text("symbolic")) == 0; }},
        {"mknod", [&] { return mknod(name("node"), S_IFIFO | 0600, 0) == 0; }},
        {"mknodat", [&] { return mknodat(here, text("node2"), S_IFIFO | 0600, 0) == 0; }},
        {"mkfifoat", [&] { return mkfifoat(here, text("fifo2"), 0600) == 0; }},
        {"fchmodat", [&] { return fchmodat(here, text("a"), 0640, 0) == 0; }},
        {"fchownat", [&] { return fchownat(here, text("a"), getuid(), getgid(), 0) == 0; }},
        {"euidaccess", [&] { return euidaccess(text(file), R_OK) == 0; }},
        {"pathconf", [&] { return pathconf(text(file), _PC_NAME_MAX) > 0; }},
        {"chroot", [&] { return chroot(text(file)) == -1 && errno != EFAULT; }},
        {"mkostemp", [&] { return is_closed(mkostemp(name("XXXXXX"), 0)); }},
        {"mkostemp64", [&] { return is_closed(mkostemp64(name("XXXXXX"), 0)); }},
        {"mkstemps", [&] { return is_closed(mkstemps(name("XXXXXX.t"), 2)); }},
        {"mkstemps64", [&] { return is_closed(mkstemps64(name("XXXXXX.t"), 2)); }},
        {"mkostemps", [&] { return is_closed(mkostemps(name("XXXXXX.t"), 2, 0)); }},
        {"mkostemps64", [&] { return is_closed(mkostemps64(name("XXXXXX.t"), 2, 0)); }},
        {"memfd_create", [&] { return is_closed(memfd_create(text("of an object"), 0)); }},
        {"inotify_add_watch",
         [&] { return inotify_add_watch(watching, text(file), IN_OPEN) >= 0; }},
        {"setxattr",
         [&] { return works(setxattr(text(file), text("user.obase"), text("yes"), 3, 0)); }},
        {"lsetxattr",
         [&] { return works(lsetxattr(text(file), text("user.obase"), text("yes"), 3, 0)); }},
        {"fsetxattr",
         [&] { return works(fsetxattr(opened, text("user.obase"), text("yes"), 3, 0)); }},
        {"getxattr", [&] { return works(getxattr(text(file), text("user.obase"), room(9), 9)); }},
        {"lgetxattr", [&] { return works(lgetxattr(text(file), text("user.obase"), room(9), 9)); }},
        {"fgetxattr", [&] { return works(fgetxattr(opened, text("user.obase"), room(9), 9)); }},
        {"listxattr", [&] { return listxattr(text(file), room(99), 99) >= 0 || !attributes; }},
        {"llistxattr", [&] { return llistxattr(text(file), room(99), 99) >= 0 || !attributes; }},
        {"flistxattr", [&] { return flistxattr(opened, room(99), 99) >= 0 || !attributes; }},
        {"fremovexattr", [&] { return works(fremovexattr(opened, text("user.obase"))); }},
        {"again", [&] { return works(setxattr(file.c_str(), "user.obase", "x", 1, 0)); }},
        {"removexattr", [&] { return works(removexattr(text(file), text("user.obase"))); }},
        {"and again", [&] { return works(setxattr(file.c_str(), "user.obase", "x", 1, 0)); }},
        {"lremovexattr", [&] { return works(lremovexattr(text(file), text("user.obase"))); }},
    });
    close(watching);
    close(opened);
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
        {"sendmmsg",
         [&] {
             const mmsghdr both[2] = {{*message_of(out()), 0}, {*message_of(out()), 0}};
             auto* const all = away_objects::copy<mmsghdr>(both, sizeof both);
             return sendmmsg(ends[0], all, 2, 0) == 2 && all[0].msg_len == n && all[1].msg_len == n;
         }},
        {"recvmmsg",
         [&] {
             iovec* const one = vector_of(room(words.size()), room(words.size()));
             char* const last = room(words.size());
             iovec* const other = vector_of(room(words.size()), last);
             const mmsghdr both[2] = {{*message_of(one), 0}, {*message_of(other), 0}};
             auto* const all = away_objects::copy<mmsghdr>(both, sizeof both);
             return recvmmsg(ends[1], all, 2, 0, of(timespec{1, 0})) == 2 && all[1].msg_len == n &&
                    std::memcmp(last, words.data(), words.size()) == 0;
         }},
        {"as many as there may be",
         [&] {
             const int count = IOV_MAX - 1; // more is too large to move
             const std::vector<iovec> all(count, iovec{text("x"), 1});
             return writev(file, away_objects::copy<iovec>(all.data(), count * sizeof(iovec)),
                           count) == count;
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

char** arguments(const char* script) {
    char* const each[4] = {text("sh"), text("-c"), text(script), nullptr};
    return away_objects::copy<char*>(each, sizeof each);
}
char** environment() {
    char* const each[2] = {text("OBASE_TEST=9"), nullptr};
    return away_objects::copy<char*>(each, sizeof each);
}
const char* const script = "exit 9";
const char* const variable = "exit $OBASE_TEST";

TEST_F(system_calls, shells) {
    expect_all({
        {"system", [&] { return WEXITSTATUS(system(text(script))) == 9; }},
        {"popen",
         [&] {
             FILE* const made = popen(text(script), text("r"));
             return made != nullptr && WEXITSTATUS(pclose(made)) == 9;
         }},
        {"the environment is the program's",
         [&] {
             char** const before = environ;
             environ = environment();
             int done = WEXITSTATUS(system(text(variable)));
             for (const bool by_path : {false, true})
                 done += status_of([&] {
                     if (by_path)
                         execvp(text("sh"), arguments(variable));
                     else
                         execv(text("/bin/sh"), arguments(variable));
                 });
             environ = before;
             return done == 27;
         }},
    });
}

TEST_F(system_calls, programs) {
    const auto status_of_spawned = [](int error, const pid_t* made) {
        int* const status = of(-1);
        return error == 0 && waitpid(*made, status, 0) == *made && WEXITSTATUS(*status) == 9;
    };
    expect_all({
        {"execve",
         [&] {
             return status_of(
                        [&] { execve(text("/bin/sh"), arguments(variable), environment()); }) == 9;
         }},
        {"execv",
         [&] { return status_of([&] { execv(text("/bin/sh"), arguments(script)); }) == 9; }},
        {"execvp", [&] { return status_of([&] { execvp(text("sh"), arguments(script)); }) == 9; }},
        {"execvpe",
         [&] {
             return status_of([&] { execvpe(text("sh"), arguments(variable), environment()); }) ==
                    9;
         }},
        {"fexecve",
         [&] {
             const int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
             return status_of([&] { fexecve(shell, arguments(variable), environment()); }) == 9 &&
                    close(shell) == 0;
         }},
        {"execveat",
         [&] {
             return status_of([&] {
                        execveat(AT_FDCWD, text("/bin/sh"), arguments(variable), environment(), 0);
                    }) == 9;
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
                                                  arguments(variable), environment()),
                                      made);
         }},
        {"posix_spawnp",
         [&] {
             auto* made = of(pid_t{});
             return status_of_spawned(posix_spawnp(made, text("sh"), nullptr, nullptr,
                                                   arguments(variable), environment()),
                                      made);
         }},
    });
}

TEST_F(system_calls, processes) {
    const auto of_child = [] { return fork(); };
    const auto is_closed = [](int made) { return made >= 0 && close(made) == 0; };
    struct sysinfo about_system{};
    expect_all({
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
        {"prctl",
         [&] {
             char* const to = room(16);
             return prctl(PR_GET_NAME, to) == 0 && to[0] != '.';
         }},
        {"clock_nanosleep",
         [&] {
             return clock_nanosleep(CLOCK_MONOTONIC, 0, of(timespec{0, 1}), of(timespec{})) == 0;
         }},
        {"getitimer", [&] { return getitimer(ITIMER_REAL, of(itimerval{})) == 0; }},
        {"setitimer",
         [&] { return setitimer(ITIMER_REAL, of(itimerval{}), of(itimerval{})) == 0; }},
        {"timers",
         [&] {
             timer_t timer{};
             const bool worked =
                 timer_create(CLOCK_MONOTONIC, nullptr, &timer) == 0 &&
                 timer_settime(timer, 0, of(itimerspec{{}, {100, 0}}), of(itimerspec{})) == 0 &&
                 timer_gettime(timer, of(itimerspec{})) == 0;
             return timer_delete(timer) == 0 && worked;
         }},
        {"sigprocmask",
         [&] {
             sigset_t none;
             sigemptyset(&none);
             return sigprocmask(SIG_BLOCK, of(none), of(none)) == 0 &&
                    pthread_sigmask(SIG_BLOCK, of(none), of(none)) == 0 &&
                    sigpending(of(none)) == 0 && is_closed(signalfd(-1, of(none), 0));
         }},
        {"signals",
         [&] {
             sigset_t one;
             sigemptyset(&one);
             sigaddset(&one, SIGUSR2);
             sigset_t before;
             pthread_sigmask(SIG_BLOCK, &one, &before);
             raise(SIGUSR2);
             bool worked = sigwait(of(one), of(0)) == 0;
             raise(SIGUSR2);
             worked = worked && sigwaitinfo(of(one), of(siginfo_t{})) == SIGUSR2;
             worked = worked && sigtimedwait(of(one), of(siginfo_t{}), of(timespec{0, 1})) == -1 &&
                      errno == EAGAIN;
             raise(SIGUSR2);
             struct sigaction action{}, was{};
             action.sa_handler = [](int) {};
             sigaction(SIGUSR2, &action, &was);
             worked = worked && sigsuspend(of(before)) == -1 && errno == EINTR;
             sigaction(SIGUSR2, &was, nullptr);
             pthread_sigmask(SIG_SETMASK, &before, nullptr);
             return worked;
         }},
        {"wait3",
         [&] {
             const pid_t child = of_child();
             if (child == 0) _exit(0);
             return wait3(of(1), 0, of(rusage{})) == child;
         }},
        {"clock_gettime",
         [&] {
             auto* to = of(timespec{-1, -1});
             return clock_gettime(CLOCK_THREAD_CPUTIME_ID, to) == 0 && to->tv_nsec >= 0;
         }},
        {"clock_getres", [&] { return clock_getres(CLOCK_MONOTONIC, of(timespec{})) == 0; }},
        // Nobody has this clock, and the kernel says so when it has read the time.
        {"clock_settime",
         [&] { return clock_settime(CLOCK_MONOTONIC, of(timespec{})) == -1 && errno == EINVAL; }},
        {"timer_create",
         [&] {
             sigevent event{};
             event.sigev_notify = SIGEV_NONE;
             auto* const made = of(timer_t{});
             return timer_create(CLOCK_MONOTONIC, of(event), made) == 0 && timer_delete(*made) == 0;
         }},
        {"getresuid",
         [&] {
             const uid_t none = 77;
             return getresuid(of(none), of(none), of(none)) == 0 &&
                    getresgid(of(none), of(none), of(none)) == 0;
         }},
        {"setgroups",
         [&] {
             std::vector<gid_t> now(static_cast<size_t>(getgroups(0, nullptr)) + 1);
             const auto count =
                 static_cast<size_t>(getgroups(static_cast<int>(now.size()), now.data()));
             auto* const all = away_objects::copy<gid_t>(now.data(), now.size() * sizeof(gid_t));
             return setgroups(count, all) == 0 || errno == EPERM;
         }},
        {"mincore",
         [&] {
             void* const page = reinterpret_cast<void*>(
                 reinterpret_cast<std::uintptr_t>(&about_system) & ~std::uintptr_t{4095});
             auto* const to = of(static_cast<unsigned char>(9));
             return mincore(page, 1, to) == 0 && *to == 1;
         }},
        {"pthread_setaffinity_np",
         [&] {
             auto* const set = of(cpu_set_t{});
             return pthread_getaffinity_np(pthread_self(), sizeof *set, set) == 0 &&
                    pthread_setaffinity_np(pthread_self(), sizeof *set,
                                           away_objects::copy<cpu_set_t>(set, sizeof *set)) == 0;
         }},
        {"pthread_setname_np",
         [&] {
             char* const to = room(16);
             return pthread_setname_np(pthread_self(), text("calls")) == 0 &&
                    pthread_getname_np(pthread_self(), to, 16) == 0 && std::string(to) == "calls";
         }},
        {"the name of another thread",
         [&] {
             std::atomic<bool> done{false};
             std::thread other([&] {
                 while (!done) sched_yield();
             });
             char* const to = room(16);
             const bool worked = pthread_setname_np(other.native_handle(), text("calls")) == 0 &&
                                 pthread_getname_np(other.native_handle(), to, 16) == 0 &&
                                 std::string(to) == "calls";
             done = true;
             other.join();
             return worked;
         }},
        {"sched_getparam", [&] { return sched_getparam(0, of(sched_param{9})) == 0; }},
        {"sched_setparam", [&] { return sched_setparam(0, of(sched_param{})) == 0; }},
        {"sched_setscheduler",
         [&] { return sched_setscheduler(0, SCHED_OTHER, of(sched_param{})) == 0; }},
        {"sched_rr_get_interval", [&] { return sched_rr_get_interval(0, of(timespec{})) == 0; }},
        {"sigaltstack",
         [&] {
             // The kernel has it from now on.
             auto* const stack = room(16000);
             auto* const before = of(stack_t{});
             const bool worked = sigaltstack(of(stack_t{stack, 0, 16000}), before) == 0 &&
                                 obase_handles_move_all() + 1 > 0 &&
                                 obase_handles_address(stack) == stack;
             return sigaltstack(before, nullptr) == 0 && worked;
         }},
        {"sysinfo", [&] { return sysinfo(of(about_system)) == 0; }},
        {"getgroups", [&] { return getgroups(100, of(std::array<gid_t, 100>{})->data()) >= 0; }},
        {"gethostname", [&] { return gethostname(room(100), 100) == 0; }},
        {"prlimit", [&] { return prlimit(0, RLIMIT_CORE, of(rlimit{}), of(rlimit{})) == 0; }},
        {"prlimit64",
         [&] { return prlimit64(0, RLIMIT_CORE, of(rlimit64{}), of(rlimit64{})) == 0; }},
    });
}

extern "C" int capget(void*, void*);
extern "C" int capset(void*, const void*);
// What only root may, or nobody should: the kernel reads what it is given, and has another objection.
TEST_F(system_calls, the_machine) {
    const auto is_read = [](long result) { return result != -1 || errno != EFAULT; };
    const auto nowhere = [] { return text("/nowhere/to/be/found"); };
    char host[200] = {};
    ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
    char domain[200] = {};
    ASSERT_EQ(getdomainname(domain, sizeof domain - 1), 0);
    expect_all({
        {"times", [&] { return times(of(tms{})) != -EFAULT && times(of(tms{})) != -1; }},
        {"thrd_sleep", [&] { return thrd_sleep(of(timespec{0, 1}), of(timespec{})) == 0; }},
        {"settimeofday", [&] { return is_read(settimeofday(of(timeval{0, 2'000'000}), nullptr)); }},
        {"adjtime", [&] { return is_read(adjtime(nullptr, of(timeval{}))); }},
        {"adjtimex", [&] { return is_read(adjtimex(of(timex{}))); }},
        {"ntp_adjtime", [&] { return is_read(ntp_adjtime(of(timex{}))); }},
        {"clock_adjtime", [&] { return is_read(clock_adjtime(CLOCK_REALTIME, of(timex{}))); }},
        {"sethostname", [&] { return is_read(sethostname(text(host), std::strlen(host))); }},
        {"setdomainname",
         [&] { return is_read(setdomainname(text(domain), std::strlen(domain))); }},
        {"mount", [&] { return is_read(mount(nowhere(), nowhere(), text("x"), 0, nowhere())); }},
        {"umount", [&] { return is_read(umount(nowhere())) && is_read(umount2(nowhere(), 0)); }},
        {"swapon", [&] { return is_read(swapon(nowhere(), 0)) && is_read(swapoff(nowhere())); }},
        {"acct", [&] { return is_read(acct(nowhere())); }},
        {"quotactl",
         [&] { return is_read(quotactl(QCMD(Q_GETINFO, 0), nowhere(), 0, room(200))); }},
        {"klogctl", [&] { return is_read(klogctl(3, room(10), 10)); }},
        {"capget",
         [&] {
             auto* const header = of(std::array<std::uint32_t, 2>{0x20080522, 0});
             auto* const to = of(std::array<std::uint32_t, 6>{});
             return capget(header->data(), to->data()) == 0 &&
                    capset(header->data(), to->data()) == 0;
         }},
        {"msgctl",
         [&] {
             const int made = msgget(IPC_PRIVATE, 0600);
             return msgctl(made, IPC_STAT, of(msqid_ds{})) == 0 &&
                    msgctl(made, IPC_RMID, nullptr) == 0;
         }},
        {"shmctl",
         [&] {
             const int made = shmget(IPC_PRIVATE, 4096, 0600);
             return shmctl(made, IPC_STAT, of(shmid_ds{})) == 0 &&
                    shmctl(made, IPC_RMID, nullptr) == 0;
         }},
        {"semctl",
         [&] {
             const int made = semget(IPC_PRIVATE, 2, 0600);
             return semctl(made, 0, GETALL, of(std::array<unsigned short, 2>{})) == 0 &&
                    semctl(made, 0, IPC_RMID) == 0;
         }},
        {"ftok", [&] { return ftok(text("/proc"), 1) != -1; }},
        {"setmntent",
         [&] {
             FILE* const made = setmntent(text("/proc/mounts"), text("r"));
             return made != nullptr && endmntent(made) == 1;
         }},
        {"name_to_handle_at",
         [&] {
             auto* const handle = reinterpret_cast<file_handle*>(room(200));
             handle->handle_bytes = 128;
             return is_read(name_to_handle_at(AT_FDCWD, text("/"), handle, of(0), 0));
         }},
        {"open_by_handle_at", [&] { return is_read(open_by_handle_at(-1, of(file_handle{}), 0)); }},
        {"fanotify_mark", [&] { return is_read(fanotify_mark(-1, 0, 0, AT_FDCWD, nowhere())); }},
        {"futimesat",
         [&] { return futimesat(AT_FDCWD, nowhere(), nullptr) == -1 && errno == ENOENT; }},
        {"getdirentries",
         [&] {
             const int here = open("/proc", O_RDONLY | O_DIRECTORY);
             return getdirentries(here, room(1000), 1000, of(off_t{})) > 0 && close(here) == 0;
         }},
        {"ptrace",
         [&] {
             const pid_t child = fork();
             if (child == 0) {
                 if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
                 raise(SIGSTOP);
                 _exit(0);
             }
             int status = 0;
             waitpid(child, &status, 0);
             if (WIFEXITED(status)) return WEXITSTATUS(status) == 77; // not allowed here
             auto* const to = of(user_regs_struct{});
             const bool worked = WIFSTOPPED(status) &&
                                 ptrace(PTRACE_GETREGS, child, nullptr, to) == 0 && to->rip != 0;
             ptrace(PTRACE_KILL, child, nullptr, nullptr);
             return waitpid(child, &status, 0) == child && worked;
         }},
        {"process_vm_readv",
         [&] {
             static const char here[] = "here";
             char* const to = room(5);
             const ssize_t done = process_vm_readv(getpid(), of(iovec{to, 5}), 1,
                                                   of(iovec{const_cast<char*>(here), 5}), 1, 0);
             return done == -1 ? errno != EFAULT : std::string(to) == "here";
         }},
    });
}

// As a library calls them that was compiled with another C library, or uses their other names.
extern "C" {
ssize_t __read(int, void*, size_t);
ssize_t __write(int, const void*, size_t);
int __open(const char*, int, ...);
int __open64(const char*, int, ...);
int __fcntl(int, int, ...);
int __pipe(int*);
int __poll(pollfd*, nfds_t, int);
int __nanosleep(const timespec*, timespec*);
int __statfs(const char*, struct statfs*);
int __xstat(int, const char*, struct stat*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __xmknod(int, const char*, mode_t, dev_t*);
}
TEST_F(system_calls, other_names) {
    const folder own;
    const auto is_closed = [](int made) { return made >= 0 && close(made) == 0; };
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    expect_all({
        {"__write", [&] { return __write(ends[1], text("xyz"), 3) == 3; }},
        {"__read", [&] { return __read(ends[0], room(3), 3) == 3; }},
        {"__open", [&] { return is_closed(__open(text("/dev/null"), O_RDONLY)); }},
        {"__open64", [&] { return is_closed(__open64(text("/dev/null"), O_RDONLY)); }},
        {"__fcntl",
         [&] { return __fcntl(ends[0], F_GETLK, of(flock{})) != -1 || errno != EFAULT; }},
        {"__pipe",
         [&] {
             int* const made = of(std::array<int, 2>{})->data();
             return __pipe(made) == 0 && is_closed(made[0]) && is_closed(made[1]);
         }},
        {"__poll", [&] { return __poll(of(pollfd{ends[1], POLLOUT, 0}), 1, 0) == 1; }},
        {"__nanosleep", [&] { return __nanosleep(of(timespec{0, 1}), of(timespec{})) == 0; }},
        {"__statfs", [&] { return __statfs(text("/"), empty<struct statfs>()) == 0; }},
        {"__xstat", [&] { return __xstat(1, text("/"), empty<struct stat>()) == 0; }},
        {"__lxstat64", [&] { return __lxstat64(1, text("/"), empty<struct stat64>()) == 0; }},
        {"__fxstat", [&] { return __fxstat(1, ends[0], empty<struct stat>()) == 0; }},
        {"__fxstatat",
         [&] { return __fxstatat(1, AT_FDCWD, text("/"), empty<struct stat>(), 0) == 0; }},
        {"__xmknod",
         [&] { return __xmknod(0, text(own.path + "/x"), S_IFREG | 0600, of(dev_t{})) == 0; }},
    });
    close(ends[0]);
    close(ends[1]);
}

// A configure script asks the linker which functions there are.
struct served_function {
    void* jump;
    const char* name;
    void* found;
};
extern "C" const served_function __start_obase_next[], __stop_obase_next[];
TEST_F(system_calls, are_all_of_the_c_library) {
    void* const library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    for (const served_function* each = __start_obase_next; each != __stop_obase_next; ++each)
        EXPECT_NE(dlsym(library, each->name), nullptr) << each->name;
    EXPECT_GT(__stop_obase_next - __start_obase_next, 300);
    dlclose(library);
}

// As a library calls them that was compiled with _FORTIFY_SOURCE.
extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
char* __getcwd_chk(char*, size_t, size_t);
int __gethostname_chk(char*, size_t, size_t);
int __getgroups_chk(int, gid_t*, size_t);
int __poll_chk(pollfd*, nfds_t, int, size_t);
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}
TEST_F(system_calls, fortified) {
    const folder own;
    const std::string path = own.path + "/file";
    const std::string large(12000, 'x');
    const int file = open(path.c_str(), O_CREAT | O_RDWR, 0600);
    ASSERT_EQ(write(file, large.data(), large.size()), static_cast<ssize_t>(large.size()));
    ASSERT_EQ(lseek(file, 0, SEEK_SET), 0);
    ASSERT_EQ(symlink("file", (own.path + "/link").c_str()), 0);
    const int here = open(own.path.c_str(), O_RDONLY | O_DIRECTORY);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(send(ends[0], "xx", 2, 0), 2);
    FILE* const stream = std::fopen(path.c_str(), "r");
    const auto is_closed = [](int made) { return made >= 0 && close(made) == 0; };
    sigset_t none;
    sigemptyset(&none);
    expect_all({
        {"read", [&] { return __read_chk(file, room(10), 10, 10) == 10; }},
        {"pread", [&] { return __pread_chk(file, room(10), 10, 1, 10) == 10; }},
        {"pread64", [&] { return __pread64_chk(file, room(10), 10, 1, 10) == 10; }},
        {"recv", [&] { return __recv_chk(ends[1], room(10), 10, 10, 0) == 2; }},
        {"recvfrom",
         [&] {
             return __recvfrom_chk(ends[1], room(10), 10, 10, 0,
                                   reinterpret_cast<sockaddr*>(of(sockaddr_un{})),
                                   of(socklen_t{sizeof(sockaddr_un)})) == 2;
         }},
        {"fread", [&] { return __fread_chk(room(6000), 6000, 1, 6000, stream) == 6000; }},
        {"fread_unlocked",
         [&] { return __fread_unlocked_chk(room(6000), 6000, 1, 6000, stream) == 6000; }},
        {"readlink",
         [&] { return __readlink_chk(text(own.path + "/link"), room(10), 10, 10) == 4; }},
        {"readlinkat", [&] { return __readlinkat_chk(here, text("link"), room(10), 10, 10) == 4; }},
        {"getcwd", [&] { return __getcwd_chk(room(500), 500, 500) != nullptr; }},
        {"gethostname", [&] { return __gethostname_chk(room(100), 100, 100) == 0; }},
        {"getgroups",
         [&] { return __getgroups_chk(100, of(std::array<gid_t, 100>{})->data(), 400) >= 0; }},
        {"poll", [&] { return __poll_chk(of(pollfd{ends[1], POLLOUT, 0}), 1, 0, 8) == 1; }},
        {"ppoll",
         [&] {
             return __ppoll_chk(of(pollfd{ends[1], POLLOUT, 0}), 1, of(timespec{}), of(none), 8) ==
                    1;
         }},
        {"open", [&] { return is_closed(__open_2(text(path), O_RDWR)); }},
        {"open64", [&] { return is_closed(__open64_2(text(path), O_RDWR)); }},
        {"openat", [&] { return is_closed(__openat_2(here, text("file"), O_RDWR)); }},
        {"openat64", [&] { return is_closed(__openat64_2(here, text("file"), O_RDWR)); }},
    });
    std::fclose(stream);
    for (const int each : {file, here, ends[0], ends[1]}) close(each);
}

// A library's own function of such a name gets the arguments that its callers give, all of them.
extern "C" double own_function_of_a_library(double first, const long (&others)[8]);
extern "C" double own_function_of_a_library_at_its_start;
TEST_F(system_calls, a_librarys_own_function_is_the_librarys) {
    EXPECT_EQ(own_function_of_a_library(.5, {1, 2, 3, 4, 5, 6, 7, 8}), 12345678.5);
    EXPECT_EQ(own_function_of_a_library_at_its_start, 87654321.5) << "called by its constructor";
}

// And one's variable would be code: the program says so and ends.
TEST_F(system_calls, a_librarys_variable_is_refused) {
    const std::string command = "LD_PRELOAD=" OBASE_OWN_VARIABLE_LIBRARY " /proc/" +
                                std::to_string(getpid()) + "/exe --gtest_list_tests 2>&1";
    FILE* const child = popen(command.c_str(), "r");
    ASSERT_NE(child, nullptr);
    std::string said;
    for (char line[500]; std::fgets(line, sizeof line, child) != nullptr;) said += line;
    EXPECT_EQ(WEXITSTATUS(pclose(child)), 1);
    EXPECT_NE(said.find("has a variable named 'eaccess'"), std::string::npos) << said;
    EXPECT_NE(said.find("--no-handles-system-calls"), std::string::npos) << said;
}

// What cannot be read is the kernel's error.
TEST_F(system_calls, bad_addresses_are_the_kernels_errors) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    const auto nowhere = [](auto* of) {
        std::uintptr_t volatile address = 4096;
        return reinterpret_cast<decltype(of)>(address);
    };
    msghdr message{};
    message.msg_iov = nowhere(message.msg_iov);
    message.msg_iovlen = 1;
    char* const freed = text(words);
    auto* const space = static_cast<iovec*>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(munmap(space + 4096 / sizeof(iovec), 4096), 0);
    iovec* const partly = space + 4096 / sizeof(iovec) - 1;
    *partly = {freed, 1};
    // Between runs that were never used and the heap's end, there are addresses of no object.
    auto* const unborn = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(freed) +
                                                 (std::uintptr_t{1} << 30));
    const auto is_fault = [](ssize_t result) { return result == -1 && errno == EFAULT; };
    expect_all({
        {"writev", [&] { return is_fault(writev(ends[0], nowhere(partly), 2)); }},
        {"readv", [&] { return is_fault(readv(ends[1], nowhere(partly), 2)); }},
        {"the second", [&] { return is_fault(writev(ends[0], partly, 2)); }},
        {"sendmsg", [&] { return is_fault(sendmsg(ends[0], nowhere(&message), 0)); }},
        {"recvmsg", [&] { return is_fault(recvmsg(ends[1], nowhere(&message), 0)); }},
        {"sendmsg's vector", [&] { return is_fault(sendmsg(ends[0], &message, 0)); }},
        {"the first of two messages",
         [&] {
             auto* const last =
                 reinterpret_cast<mmsghdr*>(reinterpret_cast<char*>(space) + 4096) - 1;
             *last = {};
             iovec one{text("x"), 1};
             last->msg_hdr.msg_iov = &one;
             last->msg_hdr.msg_iovlen = 1;
             char to[10];
             const bool worked =
                 sendmmsg(ends[0], last, 2, 0) == 1 && recv(ends[1], to, 10, 0) == 1;
             *partly = {freed, 1};
             return worked;
         }},
        {"sendmmsg",
         [&] {
             mmsghdr* const none = nullptr;
             return is_fault(sendmmsg(ends[0], nowhere(none), 2, 0));
         }},
        {"execv",
         [&] { return is_fault(execv(text("/bin/sh"), nowhere(static_cast<char**>(nullptr)))); }},
        {"no object", [&] { return is_fault(write(ends[0], unborn, 1)); }},
        {"a message that cannot be written",
         [&] {
             // The kernel's answer, too: it writes there at the end.
             auto* const constant = static_cast<msghdr*>(
                 mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
             char to[10];
             iovec one{to, sizeof to};
             constant->msg_iov = &one;
             constant->msg_iovlen = 1;
             mprotect(constant, 4096, PROT_READ);
             return send(ends[0], "x", 1, 0) == 1 && is_fault(recvmsg(ends[1], constant, 0));
         }},
    });
    munmap(space, 4096);
    close(ends[0]);
    close(ends[1]);
}

// In a thread that has SIGSEGV blocked a fault would be the end.
TEST_F(system_calls, vectors_are_read_without_faults) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    sigset_t fault, now;
    sigemptyset(&fault);
    sigaddset(&fault, SIGSEGV);
    const auto n = static_cast<ssize_t>(words.size());
    iovec* const from = of(iovec{text(words), words.size()});
    char* const target = room(words.size());
    iovec* const to = of(iovec{target, words.size()});
    msghdr about{};
    about.msg_iovlen = 1;
    about.msg_iov = of(iovec{text(words), words.size()});
    msghdr* const sent = of(about);
    about.msg_iov = to;
    mmsghdr many{};
    many.msg_hdr = about;
    mmsghdr* const received = of(many);
    std::thread other([&] {
        pthread_sigmask(SIG_BLOCK, &fault, nullptr);
        EXPECT_EQ(writev(ends[0], from, 1), n);
        EXPECT_EQ(readv(ends[1], to, 1), n);
        EXPECT_EQ(sendmsg(ends[0], sent, 0), n);
        EXPECT_EQ(recvmmsg(ends[1], received, 1, 0, nullptr), 1);
        // Foreign threads keep their mask.
        pthread_sigmask(SIG_BLOCK, nullptr, &now);
        EXPECT_EQ(sigismember(&now, SIGSEGV), 1);
        // Who runs compiled code is served.
        obase_handles_leave(obase_handles_enter());
        pthread_sigmask(SIG_BLOCK, nullptr, &now);
        EXPECT_EQ(sigismember(&now, SIGSEGV), 0);
    });
    other.join();
    const auto* const length = static_cast<mmsghdr*>(obase_handles_address(received));
    EXPECT_EQ(length->msg_len, words.size());
    EXPECT_EQ(std::string(static_cast<char*>(obase_handles_address(target)), words.size()), words);
    close(ends[0]);
    close(ends[1]);
}

// More of them at once than there are rooms.
TEST_F(system_calls, long_vectors_of_many_threads) {
    constexpr std::size_t parts = 40, callers = 9;
    std::array<char*, callers> homes{};
    for (char*& each : homes) each = room(parts);
    std::vector<std::thread> all;
    std::array<std::array<int, 2>, callers> pipes{};
    for (std::size_t i = 0; i < callers; ++i) {
        ASSERT_EQ(pipe(pipes[i].data()), 0);
        all.emplace_back([file = pipes[i][0], home = homes[i]] {
            std::vector<iovec> each(parts);
            for (std::size_t part = 0; part < parts; ++part) each[part] = {home + part, 1};
            EXPECT_EQ(readv(file, each.data(), parts), static_cast<ssize_t>(parts));
        });
    }
    usleep(20000);
    for (auto& ends : pipes)
        EXPECT_EQ(write(ends[1], std::string(parts, 'y').data(), parts),
                  static_cast<ssize_t>(parts));
    for (std::thread& each : all) each.join();
    for (char* const each : homes)
        EXPECT_EQ(std::string(static_cast<char*>(obase_handles_address(each)), parts),
                  std::string(parts, 'y'));
    for (auto& ends : pipes) close(ends[0]), close(ends[1]);
}

// Vectors as long as they may be, in a handler with little stack.
TEST_F(system_calls, handlers_have_small_stacks) {
    static const int file = memfd_create("small", 0);
    static std::vector<iovec> all(IOV_MAX, iovec{text("x"), 1});
    static ssize_t done = 0;
    const std::size_t size = 16384;
    auto* const stack = static_cast<char*>(
        mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(stack, size, PROT_NONE);
    const stack_t own{stack + size, 0, size};
    stack_t before{};
    sigaltstack(&own, &before);
    struct sigaction action{}, was{};
    action.sa_flags = SA_ONSTACK;
    action.sa_handler = [](int) { done = writev(file, all.data(), IOV_MAX); };
    sigaction(SIGUSR1, &action, &was);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &was, nullptr);
    sigaltstack(&before, nullptr);
    EXPECT_EQ(done, IOV_MAX);
    munmap(stack, 2 * size);
}

// A destructor of a thread that runs behind the runtime's.
TEST_F(system_calls, a_thread_that_has_ended_can_still_call) {
    static pthread_key_t key;
    static int rounds, ends[2];
    static char* first;
    static ssize_t written;
    ASSERT_EQ(pipe(ends), 0);
    first = text(words);
    written = 0;
    rounds = 0;
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* value) {
                                     // Each call has the runtime's destructor run again, up to
                                     // a last time.
                                     written += write(ends[1], first, words.size());
                                     if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
                                         pthread_setspecific(key, value);
                                 }),
              0);
    std::thread([] {
        (void)!write(ends[1], text("x"), 1);
        pthread_setspecific(key, &rounds);
    }).join();
    pthread_key_delete(key);
    EXPECT_EQ(written, static_cast<ssize_t>(words.size()) * PTHREAD_DESTRUCTOR_ITERATIONS);
    text("others still move");
    close(ends[0]);
    close(ends[1]);
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
    char* const one = text("x");
    errno = 77;
    EXPECT_EQ(write(ends[1], one, 1), 1);
    EXPECT_EQ(errno, 77) << "nothing went wrong";
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

// A handler's pin is where the object is; the thread does not wait for that to end.
TEST_F(system_calls, what_the_thread_has_pinned_away_is_given_as_it_lies) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    char* const home = text(words);
    const unsigned long mark = obase_handles_enter();
    const unsigned long handlers = obase_handles_enter();
    EXPECT_NE(obase_handles_pin(home), home);
    obase_handles_leave(handlers);
    obase_handles_leave(mark);
    EXPECT_EQ(write(ends[1], home, words.size()), static_cast<ssize_t>(words.size()));
    char to[64] = {};
    EXPECT_EQ(read(ends[0], to, sizeof to), static_cast<ssize_t>(words.size()));
    EXPECT_EQ(std::string(to), words);
    obase_handles_unpin(home);
    close(ends[0]);
    close(ends[1]);
}

// Handlers that come anywhere, while all objects are away from birth.
TEST_F(system_calls, DISABLED_handlers_everywhere) {
    static char* home;
    static int file;
    file = open("/dev/null", O_WRONLY);
    home = static_cast<char*>(obase_handles_malloc(words.size()));
    struct sigaction action{};
    action.sa_handler = [](int) {
        if (write(file, home, words.size()) != static_cast<ssize_t>(words.size())) abort();
    };
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 400}, {0, 400}};
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int i = 0; i < 60000; ++i) {
        void* const made = obase_handles_malloc(100);
        if (obase_handles_malloc_usable_size(made) < 100) abort();
        obase_handles_free(made);
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
}
TEST_F(system_calls, handlers_pin_in_the_midst_of_stress) {
    const std::string command =
        "OBASE_HANDLES_STRESS=3 /proc/" + std::to_string(getpid()) +
        "/exe --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_handlers_everywhere' 2>&1";
    FILE* const child = popen(command.c_str(), "r");
    ASSERT_NE(child, nullptr);
    std::string said;
    for (char line[500]; std::fgets(line, sizeof line, child) != nullptr;) said += line;
    EXPECT_EQ(WEXITSTATUS(pclose(child)), 0) << said;
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

// One that has come while the runtime was at work.
TEST_F(system_calls, a_handler_pins_in_the_midst_of_the_runtime) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    char* const home = text(words);
    {
        const obase::handles::runtime_memory in_the_runtime;
        EXPECT_EQ(write(ends[1], home, words.size()), static_cast<ssize_t>(words.size()));
    }
    close(ends[0]);
    close(ends[1]);
}

// A handler before each instruction of a pin's claim and end.
struct stepped {
    static inline void *home, *other;
    static inline long step, stop;
    static void on_step(int, siginfo_t*, void*) {
        if (++step != stop) return;
        const unsigned long mark = obase_handles_enter();
        obase_handles_pin(other);
        obase_handles_unpin(other);
        obase_handles_leave(mark);
    }
    static void steps(bool on) {
        if (on)
            asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
        else
            asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    }
};
TEST_F(system_calls, a_handler_between_a_pin_and_its_count) {
    using record = obase::handles::native_handles::record;
    struct sigaction action{}, before{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = stepped::on_step;
    sigaction(SIGTRAP, &action, &before);
    stepped::home = text(words);
    stepped::other = text(words);
    const unsigned long mark = obase_handles_enter();
    // At home, so that the steps are few.
    obase_handles_pin(stepped::home);
    obase_handles_unpin(stepped::home);
    const record& mine = *obase::handles::native_handles::own_record_if_any();
    const auto entries = [&] {
        std::vector<std::uint64_t> all;
        for (const auto& each : mine.pins.address)
            if (const std::uint64_t address = each.load_relaxed(); address != 0)
                all.push_back(address);
        return all;
    };
    ASSERT_TRUE(entries().empty());
    const std::vector<std::uint64_t> one{
        reinterpret_cast<std::uint64_t>(obase_handles_address(stepped::home))};
    long steps = 0;
    for (stepped::stop = 1; stepped::stop == 1 || steps >= stepped::stop - 1; ++stepped::stop) {
        stepped::step = 0;
        stepped::steps(true);
        obase_handles_pin(stepped::home);
        stepped::steps(false);
        ASSERT_EQ(entries(), one) << "a pin, stopped at " << stepped::stop;
        ASSERT_EQ(mine.pins_held, 1U);
        stepped::steps(true);
        obase_handles_unpin(stepped::home);
        stepped::steps(false);
        ASSERT_TRUE(entries().empty()) << "its end, stopped at " << stepped::stop;
        ASSERT_EQ(mine.pins_held, 0U);
        steps = stepped::step;
    }
    EXPECT_GT(steps, 50);
    obase_handles_leave(mark);
    sigaction(SIGTRAP, &before, nullptr);
}

// A foreign handler in the midst of compiled code: the translations of that stay good.
char* handlers_home;
int handlers_file;
ssize_t handlers_result;
bool handlers_folder_is_there;
iovec* handlers_vector;
char** handlers_arguments;
int handlers_status;
TEST_F(system_calls, a_handler_moves_nothing_under_compiled_code) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    handlers_home = text(words + '\0' + "/bin/sh");
    handlers_file = ends[1];
    handlers_vector = of(iovec{handlers_home, words.size()});
    handlers_arguments = arguments(script);
    away_objects::away(handlers_home);
    struct sigaction action{};
    static char* const folders_name = room(500);
    action.sa_handler = [](int) {
        handlers_result = write(handlers_file, handlers_home, words.size());
        handlers_folder_is_there = getcwd(folders_name, 500) == folders_name;
        handlers_result += writev(handlers_file, handlers_vector, 1);
        const pid_t child = fork();
        if (child == 0) {
            execv(handlers_home + words.size() + 1, handlers_arguments);
            _exit(7);
        }
        waitpid(child, &handlers_status, 0);
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
    EXPECT_EQ(handlers_result, static_cast<ssize_t>(2 * words.size()));
    EXPECT_TRUE(handlers_folder_is_there);
    EXPECT_EQ(WEXITSTATUS(handlers_status), 9);
    char to[64] = {};
    EXPECT_EQ(read(ends[0], to, sizeof to), static_cast<ssize_t>(2 * words.size()));
    EXPECT_EQ(std::string(to), words + words);
    sigaction(SIGUSR1, &before, nullptr);
    close(ends[0]);
    close(ends[1]);
}

} // namespace
