// SPDX-License-Identifier: MIT
//
// What functions of the C library, and of the runtime of C++, do with an address that they are
// handed. Of all others it is assumed that what they return may be an address inside of it.
#include "instrumentation.hpp"

#include <algorithm>

namespace obase::passes {

namespace {

constexpr known_function gives_argument(llvm::StringLiteral name, unsigned argument) {
    return {.name = name, .result = known_function::gives::argument, .of = argument};
}
constexpr known_function gives_part(llvm::StringLiteral name, unsigned argument) {
    return {.name = name, .result = known_function::gives::part, .of = argument};
}
constexpr known_function gives_other(llvm::StringLiteral name) {
    return {.name = name, .result = known_function::gives::other};
}
// Hands out, through the argument `end`, an address inside of what argument 0 points to.
constexpr known_function ends_at(llvm::StringLiteral name, unsigned end) {
    return {.name = name, .result = known_function::gives::other, .end = static_cast<int>(end)};
}
constexpr known_function keeps(llvm::StringLiteral name, unsigned argument) {
    return {.name = name, .keeps = 1u << argument};
}
constexpr known_function reads_all(llvm::StringLiteral name) {
    return {.name = name, .result = known_function::gives::other, .reads_variable_arguments = true};
}

// Without the prefixes and suffixes that headers give them (base_name).
constexpr known_function table[] = {
    // The argument itself.
    gives_argument("strcpy", 0),
    gives_argument("strncpy", 0),
    gives_argument("strcat", 0),
    gives_argument("strncat", 0),
    gives_argument("memcpy", 0),
    gives_argument("memmove", 0),
    gives_argument("memset", 0),
    gives_argument("wcscpy", 0),
    gives_argument("wcscat", 0),
    gives_argument("wmemcpy", 0),
    gives_argument("wmemset", 0),
    gives_argument("fgets", 0),
    gives_argument("fgetws", 0),
    gives_argument("getcwd", 0),
    gives_argument("realpath", 1),
    gives_argument("strerror_r", 1),
    gives_argument("inet_ntop", 2),
    gives_argument("ctime_r", 1),
    gives_argument("asctime_r", 1),
    gives_argument("localtime_r", 1),
    gives_argument("gmtime_r", 1),
    gives_argument("gettext", 0),
    gives_argument("dgettext", 1),
    gives_argument("dcgettext", 1),
    gives_argument("__dynamic_cast", 0),
    gives_argument("ether_ntoa_r", 1),
    // An address inside of it.
    gives_part("strchr", 0),
    gives_part("strrchr", 0),
    gives_part("strchrnul", 0),
    gives_part("index", 0),
    gives_part("rindex", 0),
    gives_part("strstr", 0),
    gives_part("strcasestr", 0),
    gives_part("strpbrk", 0),
    gives_part("strnstr", 0),
    gives_part("memchr", 0),
    gives_part("memrchr", 0),
    gives_part("rawmemchr", 0),
    gives_part("memmem", 0),
    gives_part("stpcpy", 0),
    gives_part("stpncpy", 0),
    gives_part("mempcpy", 0),
    gives_part("memccpy", 0),
    gives_part("basename", 0),
    gives_part("__xpg_basename", 0),
    gives_part("dirname", 0),
    {.name = "bsearch", .result = known_function::gives::part, .of = 1, .calls = 4},
    {.name = "qsort", .result = known_function::gives::other, .of = 0, .calls = 3},
    {.name = "qsort_r", .result = known_function::gives::other, .of = 0, .calls = 3},
    gives_part("lfind", 1),
    gives_part("lsearch", 1),
    gives_part("wcschr", 0),
    gives_part("wcsrchr", 0),
    gives_part("wcsstr", 0),
    gives_part("wmemchr", 0),
    ends_at("strtol", 1),
    ends_at("strtoul", 1),
    ends_at("strtoll", 1),
    ends_at("strtoull", 1),
    ends_at("strtoq", 1),
    ends_at("strtouq", 1),
    ends_at("strtoimax", 1),
    ends_at("strtoumax", 1),
    ends_at("strtod", 1),
    ends_at("strtof", 1),
    ends_at("strtold", 1),
    ends_at("wcstol", 1),
    ends_at("wcstoul", 1),
    ends_at("wcstod", 1),
    // Takes the text's address out of argument 0 and puts one inside of it there.
    {.name = "strsep", .result = known_function::gives::unknown},
    {.name = "strtok_r", .result = known_function::gives::part, .of = 0, .end = 2},
    // Something else.
    gives_other("strdup"),
    gives_other("strndup"),
    gives_other("wcsdup"),
    gives_other("fopen"),
    gives_other("fopen64"),
    gives_other("freopen"),
    gives_other("fdopen"),
    gives_other("popen"),
    gives_other("opendir"),
    gives_other("getenv"),
    gives_other("secure_getenv"),
    gives_other("setlocale"),
    gives_other("dlopen"),
    gives_other("dlsym"),
    gives_other("iconv_open"),
    gives_other("getpwnam"),
    gives_other("getgrnam"),
    gives_other("gethostbyname"),
    gives_other("getservbyname"),
    gives_other("getprotobyname"),
    gives_other("localtime"),
    gives_other("gmtime"),
    gives_other("asctime"),
    gives_other("ctime"),
    gives_other("crypt"),
    gives_other("mmap"),
    gives_other("tmpfile"),
    gives_other("tempnam"),
    gives_other("setmntent"),
    gives_other("sem_open"),
    gives_other("if_nameindex"),
    gives_other("inet_ntoa"),
    gives_other("strerror"),
    gives_other("strsignal"),
    gives_other("nl_langinfo"),
    gives_other("textdomain"),
    gives_other("bindtextdomain"),
    gives_other("signal"),
    gives_other("__errno_location"),
    gives_other("__ctype_b_loc"),
    // With variable arguments, none of which they keep or return.
    reads_all("printf"),
    reads_all("fprintf"),
    reads_all("sprintf"),
    reads_all("snprintf"),
    reads_all("dprintf"),
    reads_all("asprintf"),
    reads_all("obstack_printf"),
    reads_all("wprintf"),
    reads_all("fwprintf"),
    reads_all("swprintf"),
    reads_all("syslog"),
    reads_all("scanf"),
    reads_all("fscanf"),
    reads_all("sscanf"),
    reads_all("err"),
    reads_all("errx"),
    reads_all("warn"),
    reads_all("warnx"),
    reads_all("error"),
    reads_all("execl"),
    reads_all("execlp"),
    reads_all("execle"),
    // Still have it when they have returned: for another thread, for the thread's end, for the
    // program's, in a stream or a table. Of a variable that holds an address, what it holds.
    keeps("pthread_create", 3),
    keeps("thrd_create", 2),
    keeps("pthread_setspecific", 1),
    keeps("tss_set", 1),
    keeps("on_exit", 1),
    keeps("__cxa_atexit", 1),
    keeps("tsearch", 0),
    keeps("putenv", 0),
    keeps("setbuf", 1),
    keeps("setbuffer", 1),
    keeps("setvbuf", 1),
    keeps("insque", 0),
    keeps("epoll_ctl", 3),
    keeps("timer_create", 1),
    keeps("fmemopen", 0),
    keeps("openlog", 0),
    keeps("setstate", 0),
    keeps("initstate", 1),
    keeps("initstate_r", 1),
    keeps("sigaltstack", 0),
    keeps("getopt", 1),
    keeps("getopt_long", 1),
    keeps("getopt_long_only", 1),
    keeps("aio_read", 0),
    keeps("aio_write", 0),
    keeps("_pthread_cleanup_push", 2),
    keeps("_pthread_cleanup_push_defer", 2),
    keeps("pthread_attr_setstack", 1),
    keeps("sigqueue", 2),
    keeps("pthread_sigqueue", 2),
    keeps("mq_notify", 1),
    keeps("fopencookie", 0),
    {.name = "strtok", .keeps = 1, .result = known_function::gives::part, .of = 0},
    {.name = "hsearch", .keeps = 3},
    {.name = "hsearch_r", .keeps = 3},
};

// How headers call it: for a standard (__isoc99_sscanf), checked (__strcpy_chk), for both sizes of
// long double.
llvm::StringRef base_name(llvm::StringRef name) {
    name.consume_front("\01");
    name.consume_front("__isoc99_") || name.consume_front("__isoc23_");
    if (name.starts_with("__") && name.ends_with("_chk")) return name.drop_front(2).drop_back(4);
    return name;
}

// The library's own C++: methods and operators return their object or their stream, if an argument.
bool is_of_cxx_library(llvm::StringRef name) {
    constexpr llvm::StringLiteral begins[] = {
        "_ZNSt", "_ZNKSt", "_ZSt",  "_ZNSs",         "_ZNKSs",
        "_ZNSo", "_ZNSi",  "_ZNSd", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
    };
    return std::ranges::any_of(begins, [=](llvm::StringRef at) { return name.starts_with(at); });
}

} // namespace

known_function look_up(const llvm::Function& f) {
    const llvm::StringRef name = f.getName();
    for (const llvm::StringRef sought : {name, base_name(name)})
        if (const auto* row = std::ranges::find(table, sought, &known_function::name);
            row != std::end(table))
            return *row;
    // __attribute__((malloc))
    if (f.returnDoesNotAlias() || name.starts_with("__cxa_")) return gives_other("");
    if (is_of_cxx_library(name)) return gives_argument("", 0);
    return {};
}

} // namespace obase::passes
