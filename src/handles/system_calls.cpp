// SPDX-License-Identifier: MIT
//
// The C library's functions that hand memory to the kernel, for foreign code.
//
// The kernel serves no fault: where foreign code has found the home of a moved object in memory and gives it to write(),
// the answer would be EFAULT. So the program has these functions itself, before the C library's: an object that they are
// given comes home, and stays there until the C library's function has returned. What is not of the heap, and what
// compiled code has pinned already, costs a comparison and a look at the thread's pins.
//
// Weak: a program's own function of such a name is the program's. A library of its own, which the driver links for
// --handles-system-calls, and not into static programs: the C library's function is found by the dynamic linker. A shared
// library that has a function of such a name with other arguments does not go with it.
//
// Not here: what the C library does inside with addresses that it finds in memory (aio_read, lio_listio, printf of a
// text as long as the stream's buffer), what libraries call that were compiled with _FORTIFY_SOURCE (__open_2, __read_chk, ...),
// waits for a mutex in moved memory, clock_gettime of a processor's time, and system calls by syscall() or without the C
// library.
#include "handles/native.hpp"

#include <obase/handles.h>

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <tuple>
#include <type_traits>

using obase::handles::inside_runtime;
using obase::handles::native;
using obase::handles::native_handles;

// The driver's name for this file.
extern "C" __attribute__((visibility("default"))) const char obase_handles_system_calls = 0;

namespace {

// A function of the C library's.
class next_function {
  public:
    explicit constexpr next_function(const char* name) noexcept : name_(name) {}

    template <class Result, class... Types>
    Result call(Types... arguments) {
        void* found = found_.load_relaxed();
        if (found == nullptr) [[unlikely]]
            found = find();
        if (found == nullptr) {
            errno = ENOSYS;
            if constexpr (std::is_pointer_v<Result>)
                return nullptr;
            else
                return static_cast<Result>(-1);
        }
        return reinterpret_cast<Result (*)(Types...)>(found)(arguments...);
    }
    void* find() noexcept {
        void* const found = ::dlsym(RTLD_NEXT, name_);
        found_.store_relaxed(found);
        return found;
    }

  private:
    const char* name_;
    native::atomic<void*> found_{nullptr};
};

// The runtime's own calls are given nothing that moves.
bool may_move(const native_handles& all, const void* home) noexcept {
    return inside_runtime == 0 && all.in_homes(home) && all.is_movable(home);
}

// An argument, for as long as the call lasts.
template <class T>
class argument {
  public:
    explicit argument(T value) noexcept : value_(value) {}
    T now() const noexcept { return value_; }
    template <class Other>
    Other given(Other result) const noexcept {
        return result;
    }

  private:
    T value_;
};
template <class T>
class argument<T*> {
  public:
    explicit argument(T* home) noexcept : home_(home), now_(home) {
        native_handles* const all = native_handles::if_made();
        if (all == nullptr || !may_move(*all, home)) return;
        const native_handles::foreign_pin made = all->pin_for_foreign(home);
        now_ = static_cast<T*>(made.now);
        pinned_ = made.is_new;
    }
    ~argument() {
        if (!pinned_) return;
        const int error = errno;
        native_handles::if_made()->unpin_for_foreign(home_);
        errno = error;
    }
    argument(const argument&) = delete;
    argument& operator=(const argument&) = delete;

    T* now() const noexcept { return now_; }
    template <class Other>
    Other given(Other result) const noexcept {
        if constexpr (std::is_same_v<Other, T*>)
            return result == now_ ? home_ : result;
        else
            return result;
    }

  private:
    T* home_;
    T* now_;
    bool pinned_ = false;
};

template <class Result, class... Types>
Result serve(next_function& next, Types... values) {
    std::tuple<argument<Types>...> pinned(values...);
    Result result = std::apply(
        [&](const argument<Types>&... each) { return next.call<Result>(each.now()...); }, pinned);
    if constexpr (std::is_pointer_v<Result>) // one of the arguments, or none of the heap's
        std::apply([&](const argument<Types>&... each) { ((result = each.given(result)), ...); },
                   pinned);
    return result;
}

// Buffers of which a vector tells. `room`: room_for(count) bytes of the caller's frame.
class argument_vector {
  public:
    static std::size_t room_for(std::size_t count) noexcept {
        return count > IOV_MAX
                   ? 0
                   : count * (sizeof(iovec) + sizeof(buffer)); // more: the kernel's error
    }
    argument_vector(const iovec* home, std::size_t count, void* room) : all_(home) {
        if (room_for(count) == 0) return;
        all_ = now_ = static_cast<iovec*>(room);
        buffers_ = reinterpret_cast<buffer*>(now_ + count);
        for (; made_ < count; ++made_) {
            const iovec one = home[made_];
            auto* const made = ::new (buffers_ + made_) buffer(static_cast<char*>(one.iov_base));
            now_[made_] = {made->now(), one.iov_len};
        }
    }
    ~argument_vector() {
        while (made_ > 0) buffers_[--made_].~buffer();
    }
    argument_vector(const argument_vector&) = delete;
    argument_vector& operator=(const argument_vector&) = delete;

    const iovec* now() const noexcept { return all_; }

  private:
    using buffer = argument<char*>;
    static_assert(alignof(buffer) <= alignof(iovec));

    const iovec* all_;
    iovec* now_ = nullptr;
    buffer* buffers_ = nullptr;
    std::size_t made_ = 0;
};

// A message, and what it tells of. The caller's is read and written where it is, by faults.
class message {
  public:
    message(const msghdr& home, void* room)
        : now_(home), name_(home.msg_name), control_(home.msg_control),
          buffers_(home.msg_iov, home.msg_iovlen, room) {
        now_.msg_name = name_.now();
        now_.msg_control = control_.now();
        now_.msg_iov = const_cast<iovec*>(buffers_.now());
    }
    msghdr* now() noexcept { return &now_; }
    void received(msghdr& home) const noexcept {
        home.msg_namelen = now_.msg_namelen;
        home.msg_controllen = now_.msg_controllen;
        home.msg_flags = now_.msg_flags;
    }

  private:
    msghdr now_;
    argument<void*> name_, control_;
    argument_vector buffers_;
};

// What a new program gets. A process that shares its memory with the one that made it may end here, so nothing is pinned.
void keep(const void* home) noexcept {
    native_handles* const all = native_handles::if_made();
    if (all != nullptr && may_move(*all, home)) all->keep_for_foreign(home);
}
void keep_texts(char* const* texts) noexcept {
    keep(texts);
    for (; texts != nullptr && *texts != nullptr; ++texts) keep(*texts);
}

} // namespace

// They lie beside each other, so that all are found before a handler needs one.
#define OBASE_NEXT(name)                                                                           \
    namespace {                                                                                    \
    __attribute__((section("obase_next"), used)) constinit next_function next_##name{#name};       \
    }
#define OBASE_SERVED_BY(result, name, parameters)                                                  \
    extern "C" __attribute__((                                                                     \
        weak, visibility("default"))) result served_##name parameters __asm__(#name);              \
    result served_##name parameters
#define OBASE_SERVED_AS(result, name, parameters)                                                  \
    OBASE_NEXT(name)                                                                               \
    OBASE_SERVED_BY(result, name, parameters)
#define OBASE_SERVED(result, name, parameters, ...)                                                \
    OBASE_SERVED_AS(result, name, parameters) { return serve<result>(next_##name, __VA_ARGS__); }

using std::size_t;
using address = void*;
using text = const char*;

// Data.
OBASE_SERVED(ssize_t, read, (int file, address to, size_t n), file, to, n)
OBASE_SERVED(ssize_t, write, (int file, const void* from, size_t n), file, from, n)
OBASE_SERVED(ssize_t, pread, (int file, address to, size_t n, off_t at), file, to, n, at)
OBASE_SERVED(ssize_t, pread64, (int file, address to, size_t n, off_t at), file, to, n, at)
OBASE_SERVED(ssize_t, pwrite, (int file, const void* from, size_t n, off_t at), file, from, n, at)
OBASE_SERVED(ssize_t, pwrite64, (int file, const void* from, size_t n, off_t at), file, from, n, at)
OBASE_SERVED(ssize_t, recv, (int file, address to, size_t n, int flags), file, to, n, flags)
OBASE_SERVED(ssize_t, send, (int file, const void* from, size_t n, int flags), file, from, n, flags)
OBASE_SERVED(ssize_t, recvfrom,
             (int file, address to, size_t n, int flags, sockaddr* whose, socklen_t* length), file,
             to, n, flags, whose, length)
OBASE_SERVED(ssize_t, sendto,
             (int file, const void* from, size_t n, int flags, const sockaddr* to,
              socklen_t length),
             file, from, n, flags, to, length)
OBASE_SERVED(size_t, fread, (address to, size_t each, size_t count, FILE* from), to, each, count,
             from)
OBASE_SERVED(size_t, fread_unlocked, (address to, size_t each, size_t count, FILE* from), to, each,
             count, from)
OBASE_SERVED(size_t, fwrite, (const void* from, size_t each, size_t count, FILE* to), from, each,
             count, to)
OBASE_SERVED(size_t, fwrite_unlocked, (const void* from, size_t each, size_t count, FILE* to), from,
             each, count, to)
OBASE_SERVED(int, fputs, (text line, FILE* to), line, to)
OBASE_SERVED(int, fputs_unlocked, (text line, FILE* to), line, to)
OBASE_SERVED(int, puts, (text line), line)
OBASE_SERVED(ssize_t, getrandom, (address to, size_t n, unsigned flags), to, n, flags)
OBASE_SERVED(int, getentropy, (address to, size_t n), to, n)

// Files and their names.
OBASE_SERVED(int, creat, (text name, mode_t mode), name, mode)
OBASE_SERVED(int, creat64, (text name, mode_t mode), name, mode)
OBASE_SERVED(FILE*, fopen, (text name, text how), name, how)
OBASE_SERVED(FILE*, fopen64, (text name, text how), name, how)
OBASE_SERVED(FILE*, freopen, (text name, text how, FILE* file), name, how, file)
OBASE_SERVED(FILE*, freopen64, (text name, text how, FILE* file), name, how, file)
OBASE_SERVED(address, opendir, (text name), name)
OBASE_SERVED(int, stat, (text name, address to), name, to)
OBASE_SERVED(int, stat64, (text name, address to), name, to)
OBASE_SERVED(int, lstat, (text name, address to), name, to)
OBASE_SERVED(int, lstat64, (text name, address to), name, to)
OBASE_SERVED(int, fstat, (int file, address to), file, to)
OBASE_SERVED(int, fstat64, (int file, address to), file, to)
OBASE_SERVED(int, fstatat, (int at, text name, address to, int flags), at, name, to, flags)
OBASE_SERVED(int, fstatat64, (int at, text name, address to, int flags), at, name, to, flags)
OBASE_SERVED(int, statx, (int at, text name, int flags, unsigned mask, address to), at, name, flags,
             mask, to)
OBASE_SERVED(int, statfs, (text name, address to), name, to)
OBASE_SERVED(int, statfs64, (text name, address to), name, to)
OBASE_SERVED(int, fstatfs, (int file, address to), file, to)
OBASE_SERVED(int, fstatfs64, (int file, address to), file, to)
OBASE_SERVED(int, statvfs, (text name, address to), name, to)
OBASE_SERVED(int, statvfs64, (text name, address to), name, to)
OBASE_SERVED(int, access, (text name, int how), name, how)
OBASE_SERVED(int, faccessat, (int at, text name, int how, int flags), at, name, how, flags)
OBASE_SERVED(int, unlink, (text name), name)
OBASE_SERVED(int, unlinkat, (int at, text name, int flags), at, name, flags)
OBASE_SERVED(int, remove, (text name), name)
OBASE_SERVED(int, rename, (text from, text to), from, to)
OBASE_SERVED(int, renameat, (int at, text from, int there, text to), at, from, there, to)
OBASE_SERVED(int, link, (text from, text to), from, to)
OBASE_SERVED(int, symlink, (text from, text to), from, to)
OBASE_SERVED(ssize_t, readlink, (text name, char* to, size_t n), name, to, n)
OBASE_SERVED(ssize_t, readlinkat, (int at, text name, char* to, size_t n), at, name, to, n)
OBASE_SERVED(int, mkdir, (text name, mode_t mode), name, mode)
OBASE_SERVED(int, mkdirat, (int at, text name, mode_t mode), at, name, mode)
OBASE_SERVED(int, mkfifo, (text name, mode_t mode), name, mode)
OBASE_SERVED(int, mkstemp, (char* name), name)
OBASE_SERVED(int, mkstemp64, (char* name), name)
OBASE_SERVED(char*, mkdtemp, (char* name), name)
OBASE_SERVED(int, rmdir, (text name), name)
OBASE_SERVED(int, chdir, (text name), name)
OBASE_SERVED(int, chmod, (text name, mode_t mode), name, mode)
OBASE_SERVED(int, chown, (text name, uid_t user, gid_t group), name, user, group)
OBASE_SERVED(int, lchown, (text name, uid_t user, gid_t group), name, user, group)
OBASE_SERVED(int, truncate, (text name, off_t size), name, size)
OBASE_SERVED(int, truncate64, (text name, off_t size), name, size)
OBASE_SERVED(int, utimensat, (int at, text name, const timespec* times, int flags), at, name, times,
             flags)
OBASE_SERVED(char*, getcwd, (char* to, size_t n), to, n)

// Who is ready, and what is connected.
OBASE_SERVED(int, poll, (pollfd * files, nfds_t count, int ms), files, count, ms)
OBASE_SERVED(int, ppoll,
             (pollfd * files, nfds_t count, const timespec* limit, const sigset_t* mask), files,
             count, limit, mask)
OBASE_SERVED(int, select, (int count, fd_set* in, fd_set* out, fd_set* other, timeval* limit),
             count, in, out, other, limit)
OBASE_SERVED(int, pselect,
             (int count, fd_set* in, fd_set* out, fd_set* other, const timespec* limit,
              const sigset_t* mask),
             count, in, out, other, limit, mask)
OBASE_SERVED(int, epoll_ctl, (int file, int what, int of, address event), file, what, of, event)
OBASE_SERVED(int, epoll_wait, (int file, address events, int count, int ms), file, events, count,
             ms)
OBASE_SERVED(int, epoll_pwait, (int file, address events, int count, int ms, const sigset_t* mask),
             file, events, count, ms, mask)
OBASE_SERVED(int, accept, (int file, sockaddr* whose, socklen_t* length), file, whose, length)
OBASE_SERVED(int, accept4, (int file, sockaddr* whose, socklen_t* length, int flags), file, whose,
             length, flags)
OBASE_SERVED(int, bind, (int file, const sockaddr* to, socklen_t length), file, to, length)
OBASE_SERVED(int, connect, (int file, const sockaddr* to, socklen_t length), file, to, length)
OBASE_SERVED(int, getsockname, (int file, sockaddr* to, socklen_t* length), file, to, length)
OBASE_SERVED(int, getpeername, (int file, sockaddr* to, socklen_t* length), file, to, length)
OBASE_SERVED(int, getsockopt, (int file, int level, int name, address to, socklen_t* length), file,
             level, name, to, length)
OBASE_SERVED(int, setsockopt, (int file, int level, int name, const void* from, socklen_t length),
             file, level, name, from, length)
OBASE_SERVED(int, socketpair, (int domain, int type, int protocol, int* made), domain, type,
             protocol, made)
OBASE_SERVED(int, pipe, (int* made), made)
OBASE_SERVED(int, pipe2, (int* made, int flags), made, flags)
OBASE_SERVED(int, timerfd_settime, (int file, int flags, const void* wanted, address before), file,
             flags, wanted, before)
OBASE_SERVED(int, timerfd_gettime, (int file, address to), file, to)

// Processes.
OBASE_SERVED(pid_t, waitpid, (pid_t whom, int* status, int how), whom, status, how)
OBASE_SERVED(pid_t, wait, (int* status), status)
OBASE_SERVED(pid_t, wait4, (pid_t whom, int* status, int how, address used), whom, status, how,
             used)
OBASE_SERVED(int, waitid, (int of, id_t whom, address to, int how), of, whom, to, how)
OBASE_SERVED(int, getrusage, (int whose, address to), whose, to)
OBASE_SERVED(int, getrlimit, (int of, address to), of, to)
OBASE_SERVED(int, getrlimit64, (int of, address to), of, to)
OBASE_SERVED(int, setrlimit, (int of, const void* wanted), of, wanted)
OBASE_SERVED(int, setrlimit64, (int of, const void* wanted), of, wanted)
OBASE_SERVED(int, uname, (address to), to)
OBASE_SERVED(int, nanosleep, (const timespec* wanted, timespec* left), wanted, left)
OBASE_SERVED(int, sched_setaffinity, (pid_t whom, size_t n, const cpu_set_t* set), whom, n, set)
OBASE_SERVED(int, sched_getaffinity, (pid_t whom, size_t n, cpu_set_t* set), whom, n, set)

// Vectors, messages.
#define OBASE_SERVED_VECTOR(name, parameters, ...)                                                 \
    OBASE_SERVED_AS(ssize_t, name, parameters) {                                                   \
        const auto buffer_count = static_cast<size_t>(count);                                      \
        const argument_vector buffers(vector, buffer_count,                                        \
                                      __builtin_alloca(argument_vector::room_for(buffer_count)));  \
        return next_##name.call<ssize_t>(file, buffers.now(), count __VA_OPT__(, ) __VA_ARGS__);   \
    }
OBASE_SERVED_VECTOR(readv, (int file, const iovec* vector, int count))
OBASE_SERVED_VECTOR(writev, (int file, const iovec* vector, int count))
OBASE_SERVED_VECTOR(preadv, (int file, const iovec* vector, int count, off_t at), at)
OBASE_SERVED_VECTOR(pwritev, (int file, const iovec* vector, int count, off_t at), at)
OBASE_SERVED_VECTOR(preadv64, (int file, const iovec* vector, int count, off_t at), at)
OBASE_SERVED_VECTOR(pwritev64, (int file, const iovec* vector, int count, off_t at), at)
OBASE_SERVED_VECTOR(preadv2, (int file, const iovec* vector, int count, off_t at, int flags), at,
                    flags)
OBASE_SERVED_VECTOR(pwritev2, (int file, const iovec* vector, int count, off_t at, int flags), at,
                    flags)
OBASE_SERVED_VECTOR(preadv64v2, (int file, const iovec* vector, int count, off_t at, int flags), at,
                    flags)
OBASE_SERVED_VECTOR(pwritev64v2, (int file, const iovec* vector, int count, off_t at, int flags),
                    at, flags)
OBASE_SERVED_AS(ssize_t, sendmsg, (int file, const msghdr* home, int flags)) {
    message now(*home, __builtin_alloca(argument_vector::room_for(home->msg_iovlen)));
    return next_sendmsg.call<ssize_t>(file, now.now(), flags);
}
OBASE_SERVED_AS(ssize_t, recvmsg, (int file, msghdr* home, int flags)) {
    message now(*home, __builtin_alloca(argument_vector::room_for(home->msg_iovlen)));
    const ssize_t done = next_recvmsg.call<ssize_t>(file, now.now(), flags);
    if (done >= 0) now.received(*home);
    return done;
}

// With an argument more than is declared: an address, a number or nothing.
#define OBASE_SERVED_OPEN(name, parameters, ...)                                                   \
    OBASE_SERVED_AS(int, name, parameters) {                                                       \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        const auto mode = va_arg(list, mode_t);                                                    \
        va_end(list);                                                                              \
        return serve<int>(next_##name, __VA_ARGS__, flags, mode);                                  \
    }
OBASE_SERVED_OPEN(open, (text name, int flags, ...), name)
OBASE_SERVED_OPEN(open64, (text name, int flags, ...), name)
OBASE_SERVED_OPEN(openat, (int at, text name, int flags, ...), at, name)
OBASE_SERVED_OPEN(openat64, (int at, text name, int flags, ...), at, name)
#define OBASE_SERVED_CONTROL(name, type)                                                           \
    OBASE_SERVED_AS(int, name, (int file, type what, ...)) {                                       \
        va_list list;                                                                              \
        va_start(list, what);                                                                      \
        address const more = va_arg(list, address);                                                \
        va_end(list);                                                                              \
        return serve<int>(next_##name, file, what, more);                                          \
    }
OBASE_SERVED_CONTROL(fcntl, int)
OBASE_SERVED_CONTROL(fcntl64, int)
OBASE_SERVED_CONTROL(ioctl, unsigned long)
// Other programs.
OBASE_SERVED_AS(int, execve, (text name, char* const* list, char* const* environment)) {
    keep(name), keep_texts(list), keep_texts(environment);
    return next_execve.call<int>(name, list, environment);
}
OBASE_SERVED_AS(int, execv, (text name, char* const* list)) {
    keep(name), keep_texts(list);
    return next_execv.call<int>(name, list);
}
OBASE_SERVED_AS(int, execvp, (text name, char* const* list)) {
    keep(name), keep_texts(list);
    return next_execvp.call<int>(name, list);
}
OBASE_SERVED_AS(int, execvpe, (text name, char* const* list, char* const* environment)) {
    keep(name), keep_texts(list), keep_texts(environment);
    return next_execvpe.call<int>(name, list, environment);
}
// The arguments as a list: up to a null, behind which execle has the environment.
#define OBASE_SERVED_LIST(name, with_vector, ...)                                                  \
    OBASE_SERVED_BY(int, name, (text file, text first, ...)) {                                     \
        va_list list;                                                                              \
        va_start(list, first);                                                                     \
        size_t count = 0;                                                                          \
        for (text each = first; each != nullptr; each = va_arg(list, text)) ++count;               \
        va_end(list);                                                                              \
        auto** const made = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));    \
        va_start(list, first);                                                                     \
        made[0] = const_cast<char*>(first);                                                        \
        for (size_t i = 1; i <= count; ++i) made[i] = va_arg(list, char*); /* and the null */      \
        return served_##with_vector(file, made __VA_OPT__(, ) __VA_ARGS__);                        \
    }
OBASE_SERVED_LIST(execl, execv)
OBASE_SERVED_LIST(execlp, execvp)
OBASE_SERVED_LIST(execle, execve, va_arg(list, char* const*))
// Faults are not served meanwhile: all signals are blocked.
OBASE_SERVED_AS(int, posix_spawn,
                (pid_t * made, text name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* list,
                 char* const* environment)) {
    keep(name), keep_texts(list), keep_texts(environment);
    return serve<int>(next_posix_spawn, made, name, actions, attributes, list, environment);
}
OBASE_SERVED_AS(int, posix_spawnp,
                (pid_t * made, text name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* list,
                 char* const* environment)) {
    keep(name), keep_texts(list), keep_texts(environment);
    return serve<int>(next_posix_spawnp, made, name, actions, attributes, list, environment);
}

extern "C" {
extern next_function __start_obase_next[], __stop_obase_next[];
}
__attribute__((constructor)) static void find_all() noexcept {
    for (next_function* each = __start_obase_next; each != __stop_obase_next; ++each) each->find();
}
