// SPDX-License-Identifier: MIT
//
// What functions of the C library do with the addresses that they get. A function that is not here gets home addresses
// of objects that stay at home from then on, which is right whatever it does.
#include "handles.hpp"

#include <llvm/ADT/StringMap.h>

namespace obase::handles {

namespace {

using gives = known_function::gives;

// As it stands in the table: name, letters, result; then words.
//   =N  the address of argument N           @N  inside of argument N
//   b   blocks     p  polls     i  ISO C     w  the runtime's wrapper     n  returns no heap address
constexpr const char* table[] = {
    // string.h
    "memchr t-- @0 i", "memcmp tt- i", "bcmp tt-", "memcpy tt- =0 i", "memmove tt- =0 i",
    "memset t-- =0 i", "bzero t-", "memccpy tt-- @0", "mempcpy tt- @0", "memrchr t-- @0",
    "rawmemchr t- @0", "memmem t-t- @0", "strlen t i", "strnlen t-", "strcmp tt i",
    "strncmp tt- i", "strcasecmp tt", "strncasecmp tt-", "strcoll tt i", "strxfrm tt- i",
    "strcpy tt =0 i", "strncpy tt- =0 i", "strcat tt =0 i", "strncat tt- =0 i", "stpcpy tt @0",
    "stpncpy tt- @0", "strchr t- @0 i", "strrchr t- @0 i", "strchrnul t- @0", "index t- @0",
    "rindex t- @0", "strstr tt @0 i", "strcasestr tt @0", "strpbrk tt @0 i", "strspn tt i",
    "strcspn tt i", "strerror - i n", "strerror_r -t- =1", "__xpg_strerror_r -t-",
    "strsignal - n", "strdup h w", "strndup h- w", "strtok hh i w", "strtok_r hhh w",
    "strsep hh w", "__memcpy_chk tt-- =0 i", "__memmove_chk tt-- =0 i", "__memset_chk t--- =0 i",
    "__strcpy_chk tt- =0 i", "__strncpy_chk tt-- =0 i", "__strcat_chk tt- =0 i",
    "__strncat_chk tt-- =0 i", "__stpcpy_chk tt- @0 i",
    // wide characters
    "wcslen t i", "wcscmp tt i", "wcsncmp tt- i", "wcscpy tt =0 i", "wcsncpy tt- =0 i",
    "wcscat tt =0 i", "wcschr t- @0 i", "wcsrchr t- @0 i", "wcsstr tt @0 i", "wmemcpy tt- =0 i",
    "wmemmove tt- =0 i", "wmemset t-- =0 i", "wmemcmp tt- i", "wmemchr t-- @0 i",
    "wcscoll tt i", "wcsxfrm tt- i", "mbstowcs tt- i", "wcstombs tt- i", "mbtowc tt- i",
    "wctomb t- i", "mblen t- i", "mbrtowc tt-t i", "wcrtomb t-t i", "mbrlen t-t i",
    "mbsinit t i", "btowc - i", "wctob - i", "__ctype_get_mb_cur_max ", "nl_langinfo - n",
    // stdlib.h
    "atoi t i", "atol t i", "atoll t i", "atof t i", "strtol te- i", "strtoul te- i",
    "strtoll te- i", "strtoull te- i", "strtod te i", "strtof te i", "strtold te i",
    "strtoimax te- i", "strtoumax te- i", "wcstol te- i", "wcstod te i", "__isoc99_strtol te- i",
    "abs - i", "labs - i", "llabs - i", "div -- i", "ldiv -- i", "rand i", "srand - i",
    "random ", "srandom - ", "rand_r t", "drand48 ", "srand48 -", "lrand48 ", "mrand48 ",
    "getenv t i n", "secure_getenv t n", "setenv tt-", "unsetenv t", "mkstemp t", "mkdtemp t =0",
    "realpath tt =1", "abort i p", "exit - i p", "_exit -", "_Exit - i", "system t i b",
    "getloadavg t-", "__assert_fail tt-t p", "quick_exit - i p",
    // ctype.h, math.h and others without addresses
    "__ctype_b_loc  n", "__ctype_tolower_loc  n", "__ctype_toupper_loc  n", "__errno_location  n",
    "isalpha - i", "isdigit - i", "isalnum - i", "isspace - i", "isupper - i", "islower - i",
    "ispunct - i", "isprint - i", "isgraph - i", "iscntrl - i", "isxdigit - i", "isblank - i",
    "toupper - i", "tolower - i", "iswalpha - i", "iswdigit - i", "iswalnum - i", "iswspace - i",
    "iswupper - i", "iswlower - i", "iswpunct - i", "iswprint - i", "towupper - i",
    "towlower - i", "frexp -t i", "frexpf -t i", "frexpl -t i", "modf -t i", "modff -t i",
    "modfl -t i", "remquo --t i", "sincos -tt", "sincosf -tt", "sincosl -tt", "lgamma_r -t",
    // stdio.h
    "fopen tt i n", "fopen64 tt n", "freopen ttf i n", "freopen64 ttf n", "fdopen -t n",
    "fmemopen k-t n", "open_memstream kk n", "fclose f i b", "fflush f i", "fread t--f i b",
    "fread_unlocked t--f b", "fwrite t--f i", "fwrite_unlocked t--f", "fgets t-f =0 i b",
    "fgets_unlocked t-f =0 b", "fputs tf i", "fputs_unlocked tf", "puts t i", "putc -f i",
    "fputc -f i", "putchar - i", "putc_unlocked -f", "fputc_unlocked -f", "putchar_unlocked -",
    "getc f i b", "fgetc f i b", "getchar i b", "getc_unlocked f", "fgetc_unlocked f",
    "getchar_unlocked ", "ungetc -f i", "_IO_getc f b", "_IO_putc -f", "__uflow f", "__overflow f-",
    "fseek f-- i", "fseeko f--", "fseeko64 f--", "ftell f i", "ftello f", "ftello64 f",
    "rewind f i", "fgetpos ft i", "fsetpos ft i", "feof f i", "ferror f i", "clearerr f i",
    "feof_unlocked f", "ferror_unlocked f", "fileno f", "setvbuf fk-- i", "setbuf fk i",
    "setlinebuf f", "remove t i", "rename tt i", "tmpfile i n", "tmpfile64 n", "tmpnam t =0 i",
    "perror t i", "popen tt n", "pclose f b", "flockfile f b", "funlockfile f", "getline hhf w b",
    "getdelim hh-f w b", "fputwc -f i", "putwc -f i", "getwc f i b", "fgetwc f i b",
    "printf t i w", "fprintf ft i w", "sprintf tt i w", "snprintf t-t i w", "vprintf tt i w",
    "vfprintf ftt i w", "vsprintf ttt i w", "vsnprintf t-tt i w", "dprintf -t w", "vdprintf -tt w",
    "asprintf ht w", "vasprintf htt w", "__printf_chk -t i w", "__fprintf_chk f-t i w",
    "__sprintf_chk t--t i w", "__snprintf_chk t---t i w", "__vprintf_chk -tt i w",
    "__vfprintf_chk f-tt i w", "__vsprintf_chk t--tt i w", "__vsnprintf_chk t---tt i w",
    "syslog -t w", "vsyslog -tt w",
    "sscanf t i", "fscanf ft i b", "scanf t i b", "__isoc99_sscanf t i", "__isoc99_fscanf ft i b",
    "__isoc99_scanf t i b", "vsscanf ttt i w", "vfscanf ftt i w", "vscanf tt i w",
    "__isoc99_vsscanf ttt i w", "__isoc99_vfscanf ftt i w", "__isoc99_vscanf tt i w",
    // time.h
    "time t i", "localtime t i n", "gmtime t i n", "localtime_r tt =1", "gmtime_r tt =1",
    "mktime t i", "timegm t", "strftime t-tt i", "asctime t i n", "asctime_r tt =1", "ctime t i n",
    "ctime_r tt =1", "difftime -- i", "clock i", "clock_gettime -t", "clock_getres -t",
    "gettimeofday tt", "nanosleep tt b", "clock_nanosleep --tt b", "usleep - b", "sleep - b",
    "tzset ", "times t", "utime tt", "utimes tt", "utimensat -tt-", "futimens -t",
    // setjmp.h: what returns twice may have polled between
    "_setjmp t i p", "setjmp t i p", "__sigsetjmp t- i p", "sigsetjmp t- i p", "longjmp t- i p",
    "_longjmp t- i p", "siglongjmp t- i p", "__longjmp_chk t- i p",
    // locale.h, signal.h
    "setlocale -t i n", "localeconv i n", "newlocale -tf n", "uselocale f n", "freelocale f",
    "signal -h i", "raise - i p", "kill -- p", "sigaction -tt", "sigemptyset t", "sigfillset t",
    "sigaddset t-", "sigdelset t-", "sigismember t-", "sigprocmask -tt p",
    "pthread_sigmask -tt p", "sigsuspend t b p", "sigwait tt b", "sigpending t",
    "sigaltstack kt", "pthread_kill -- p", "setitimer -tt", "getitimer -t", "alarm -", "pause b p",
    // files
    "open t-", "open64 t-", "openat -t-", "openat64 -t-", "creat t-", "close -", "read -t- b",
    "write -t- b", "pread -t-- b", "pread64 -t-- b", "pwrite -t-- b", "pwrite64 -t-- b",
    "readv -h- w b", "writev -h- w b", "preadv -h-- w b", "pwritev -h-- w b", "sendmsg -h- w b",
    "recvmsg -h- w b", "lseek ---", "lseek64 ---", "stat tt", "stat64 tt", "fstat -t",
    "fstat64 -t", "lstat tt", "lstat64 tt", "fstatat -tt-", "fstatat64 -tt-", "statvfs tt",
    "fstatvfs -t", "statfs tt", "fstatfs -t", "access t-", "faccessat -t--", "unlink t",
    "unlinkat -t-", "mkdir t-", "rmdir t", "chdir t", "fchdir -", "getcwd t- =0", "readlink tt-",
    "symlink tt", "link tt", "chmod t-", "fchmod --", "chown t--", "fchown ---", "lchown t--",
    "truncate t-", "truncate64 t-", "ftruncate --", "ftruncate64 --", "posix_fallocate ---",
    "fsync - b", "fdatasync - b", "umask -", "mkfifo t-", "flock -- b", "fcntl --t b",
    "fcntl64 --t b", "ioctl --t b", "dup -", "dup2 --", "dup3 ---", "pipe t", "pipe2 t-", "isatty -",
    "ttyname - n", "opendir t n", "readdir f n", "readdir64 f n", "closedir f", "rewinddir f",
    "dirfd f", "realpath tt =1", "mmap h----- n", "mmap64 h----- n", "munmap f-", "mprotect f--",
    "msync f--", "madvise f--", "mremap f--- n",
    // network
    "socket ---", "socketpair ---t", "bind -t-", "listen --", "accept -tt b", "accept4 -tt- b",
    "connect -t- b", "send -t-- b", "recv -t-- b", "sendto -t--t- b", "recvfrom -t--tt b",
    "getsockopt ---tt", "setsockopt ---t-", "getsockname -tt", "getpeername -tt", "shutdown --",
    "poll t-- b", "ppoll t-tt b", "select -tttt b", "pselect -ttttt b", "epoll_create -",
    "epoll_create1 -", "epoll_ctl ---t", "epoll_wait -t-- b", "epoll_pwait -t--t b", "eventfd --",
    "htons -", "htonl -", "ntohs -", "ntohl -", "inet_ntop -tt- =2", "inet_pton -tt",
    "inet_addr t", "inet_aton tt", "gethostname t-",
    // processes
    "fork", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getpgrp", "setsid",
    "setuid -", "setgid -", "sysconf -", "getpagesize", "uname t", "getrusage -t", "getrlimit -t",
    "setrlimit -t", "getrlimit64 -t", "setrlimit64 -t", "waitpid -t- b", "wait t b", "wait4 -t-t b",
    "getpwuid - n", "getpwnam t n", "getgrgid - n", "getgrnam t n", "sched_yield", "prctl -----",
    "execv th w", "execve thh w", "execvp th w", "execvpe thh w", "dlsym ft n", "dlerror n",
    "dlclose f p", "getauxval -", "get_nprocs", "nice -", "getpriority --", "setpriority ---",
    // threads
    "pthread_create tthh", "pthread_join -t b", "pthread_detach -", "pthread_self", "pthread_exit h p",
    "pthread_equal --", "pthread_cancel -", "pthread_testcancel p", "pthread_setname_np -t",
    "pthread_attr_init t", "pthread_attr_destroy t", "pthread_attr_setdetachstate t-",
    "pthread_attr_setstacksize t-", "pthread_attr_getstacksize tt", "pthread_getattr_np -t",
    "pthread_attr_getstack ttt", "pthread_mutex_init tt", "pthread_mutex_destroy t",
    "pthread_mutex_lock h w b", "pthread_mutex_trylock t", "pthread_mutex_unlock t",
    "pthread_mutexattr_init t", "pthread_mutexattr_settype t-", "pthread_mutexattr_destroy t",
    "pthread_cond_init tt", "pthread_cond_destroy t", "pthread_cond_signal t",
    "pthread_cond_broadcast t", "pthread_cond_wait tt b", "pthread_cond_timedwait ttt b",
    "pthread_condattr_init t", "pthread_condattr_setclock t-", "pthread_condattr_destroy t",
    "pthread_rwlock_init tt", "pthread_rwlock_destroy t", "pthread_rwlock_rdlock t b",
    "pthread_rwlock_wrlock t b", "pthread_rwlock_tryrdlock t", "pthread_rwlock_trywrlock t",
    "pthread_rwlock_unlock t", "pthread_spin_init t-", "pthread_spin_lock t b",
    "pthread_spin_unlock t", "pthread_spin_destroy t", "pthread_barrier_init tt-",
    "pthread_barrier_wait t b", "pthread_barrier_destroy t", "pthread_key_create th",
    "pthread_key_delete -", "pthread_getspecific -", "pthread_setspecific -h", "sem_init t--",
    "sem_destroy t", "sem_wait t b", "sem_trywait t", "sem_timedwait tt b", "sem_post t",
    "sem_getvalue tt", "thrd_yield",
    // the compiler's own
    "__atomic_load -tt-", "__atomic_store -tt-", "__atomic_exchange -ttt-",
    "__atomic_compare_exchange -ttt--", "__stack_chk_fail p", "__cxa_atexit hhh", "atexit h i",
    "__cxa_guard_acquire t", "__cxa_guard_release t", "__cxa_guard_abort t",
};

// Functions of numbers alone; each also with f and l.
constexpr const char* mathematics[] = {
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "logb", "ilogb",
    "pow", "sqrt", "cbrt", "hypot", "floor", "ceil", "fmod", "fabs", "round", "lround", "llround",
    "trunc", "rint", "lrint", "llrint", "nearbyint", "ldexp", "scalbn", "scalbln", "erf", "erfc",
    "tgamma", "lgamma", "fmin", "fmax", "fdim", "fma", "copysign", "nextafter", "remainder",
    "__isnan", "__isinf", "__finite", "__fpclassify", "__signbit",
};

known_function parsed(llvm::StringRef line) {
    known_function made;
    llvm::SmallVector<llvm::StringRef, 8> words;
    line.split(words, ' ', -1, false);
    made.name = words[0];
    for (const llvm::StringRef word : llvm::ArrayRef(words).drop_front()) {
        if (word[0] == '=' || word[0] == '@') {
            made.result = word[0] == '=' ? gives::same : gives::inside;
            made.of = unsigned(word[1] - '0');
        } else if (word == "i") {
            made.iso = true;
        } else if (word == "b") {
            made.blocks = true;
        } else if (word == "p") {
            made.polls = true;
        } else if (word == "w") {
            made.wrapped = true;
        } else if (word == "n") {
            made.no_heap = true;
        } else {
            made.arguments = word;
        }
    }
    return made;
}

const llvm::StringMap<known_function>& functions() {
    static const auto made = [] {
        llvm::StringMap<known_function> all;
        for (const char* line : table) {
            const known_function one = parsed(line);
            all[one.name] = one;
        }
        known_function of_numbers;
        of_numbers.arguments = "-";
        of_numbers.iso = true;
        for (const llvm::StringRef name : mathematics)
            for (const char* suffix : {"", "f", "l"}) {
                const auto at = all.try_emplace((name + suffix).str(), of_numbers).first;
                at->second.name = at->first();
            }
        return all;
    }();
    return made;
}

// True if arguments of these types can be the function's: a name may be used by another one.
template <class Types>
bool fits(const known_function& known, const Types& types, bool variadic) {
    const llvm::StringRef letters = known.arguments;
    if (types.size() > letters.size() && !variadic) return false;
    if (types.size() < letters.size() && !variadic) return false;
    for (unsigned i = 0; i < types.size() && i < letters.size(); ++i) {
        const bool address = letters[i] != '-';
        if (types[i]->isPointerTy() != address && !(variadic && i + 1 == letters.size()))
            return false;
    }
    return true;
}

} // namespace

const known_function* look_up(llvm::StringRef name, const llvm::CallBase& call) {
    const auto found = functions().find(name);
    if (found == functions().end()) return nullptr;
    llvm::SmallVector<llvm::Type*, 8> types;
    for (const llvm::Use& argument : call.args()) types.push_back(argument->getType());
    const bool variadic = call.getFunctionType()->isVarArg();
    return fits(found->second, types, variadic) ? &found->second : nullptr;
}

const known_function* look_up(llvm::StringRef name, const llvm::FunctionType& type) {
    const auto found = functions().find(name);
    if (found == functions().end()) return nullptr;
    return fits(found->second, type.params(), type.isVarArg()) ? &found->second : nullptr;
}

} // namespace obase::handles
