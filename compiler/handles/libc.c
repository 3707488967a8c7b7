// SPDX-License-Identifier: MIT
//
// Functions of the C library for instrumented code, where it is not enough to translate their arguments
// (compiler/handles/known.cpp, "w"). All of them get home addresses, and give home addresses. They are not instrumented
// themselves; a translation is good until the thread polls, which none of them does but where it goes offline.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>
#include <wchar.h>

#define API __attribute__((visibility("default")))
#define T(p) ((__typeof__(p))obase_handles_translate(p))

extern unsigned char obase_handles_away[1U << 24];
__attribute__((preserve_most)) void* obase_handles_translate(const void* home);
void obase_handles_offline(void);
void obase_handles_online(void);
void* obase_handles_pin(const void* home);
void obase_handles_unpin(const void* home);
void* obase_handles_malloc(size_t);
void* obase_handles_realloc(void*, size_t);
void obase_handles_free(void*);

// strtol and its like: the end of the number lies in the copy.
API void obase_handles_c_end(char** end, const char* home, const char* translated) {
    if (home == translated || end == NULL || *end == NULL) return;
    // A wrong base: it has not been written.
    if ((size_t)(*end - translated) <= strlen(translated)) *end = (char*)home + (*end - translated);
}

// Text that is allocated.

API char* obase_handles_c_strndup(const char* home, size_t most) {
    const size_t length = strnlen(T(home), most);
    char* made = obase_handles_malloc(length + 1);
    if (made == NULL) return NULL;
    char* to = T(made);
    memcpy(to, T(home), length);
    to[length] = 0;
    return made;
}
API char* obase_handles_c_strdup(const char* home) {
    return obase_handles_c_strndup(home, SIZE_MAX);
}

static char* token(char* home, const char* delimiters, char** saved) {
    if (home == NULL) home = *saved;
    if (home == NULL) return NULL;
    const char* between = T(delimiters);
    home += strspn(T(home), between);
    char* at = T(home);
    if (*at == 0) {
        *saved = home;
        return NULL;
    }
    const size_t length = strcspn(at, between);
    *saved = home + length;
    if (at[length] != 0) {
        at[length] = 0;
        ++*saved;
    }
    return home;
}
API char* obase_handles_c_strtok_r(char* home, const char* delimiters, char** saved) {
    return token(home, delimiters, T(saved));
}
API char* obase_handles_c_strtok(char* home, const char* delimiters) {
    static char* saved;
    return token(home, delimiters, &saved);
}
API char* obase_handles_c_strsep(char** text, const char* delimiters) {
    char** const variable = T(text);
    char* const home = *variable;
    if (home == NULL) return NULL;
    char* const at = T(home);
    const size_t length = strcspn(at, T(delimiters));
    *variable = at[length] != 0 ? home + length + 1 : NULL;
    at[length] = 0;
    return home;
}

API ssize_t obase_handles_c_getdelim(char** line, size_t* size, int end, FILE* from) {
    char* read = NULL;
    size_t room = 0;
    if (line == NULL || size == NULL) {
        errno = EINVAL;
        return -1;
    }
    obase_handles_offline();
    const ssize_t length = getdelim(&read, &room, end, from);
    const int error = errno;
    obase_handles_online();
    if (length >= 0) {
        char* home = *T(line);
        if (home == NULL || *T(size) < (size_t)length + 1) {
            const size_t wanted = length < 119 ? 120 : (size_t)length + 1;
            home = obase_handles_realloc(home, wanted);
            if (home == NULL) {
                free(read);
                errno = ENOMEM;
                return -1;
            }
            *T(line) = home;
            *T(size) = wanted;
        }
        memcpy(T(home), read, (size_t)length + 1);
    }
    free(read);
    errno = error;
    return length;
}
API ssize_t obase_handles_c_getline(char** line, size_t* size, FILE* from) {
    return obase_handles_c_getdelim(line, size, '\n', from);
}

// printf and scanf. The arguments are read as the format says, and laid down again in the memory area of a list of variable
// arguments: the registers' is used up.

struct argument_list { // as the x86-64 psABI has it
    unsigned gp_offset, fp_offset;
    void* overflow;
    void* registers;
};
enum { most_arguments = 128, all_gp = 48, all_fp = 176 };
struct laid_down {
    _Alignas(16) unsigned char memory[most_arguments * 16];
    size_t used;
    int failed;
};

static void lay(struct laid_down* to, const void* value, size_t size, size_t alignment) {
    const size_t at = (to->used + alignment - 1) & ~(alignment - 1);
    if (at + size > sizeof to->memory) {
        to->failed = 1;
        return;
    }
    memcpy(to->memory + at, value, size);
    to->used = at + (size < 8 ? 8 : size);
}
static void lay_word(struct laid_down* to, uint64_t value) { lay(to, &value, 8, 8); }
static void lay_address(struct laid_down* to, void* home) {
    lay_word(to, (uint64_t)(uintptr_t)T(home));
}

struct conversion {
    char letter;    // 0: none
    int length;     // h -1, hh -2, l 1, ll 2, L 3; j, z, t 1
    int position;   // of n$, else 0
    int stars[2];   // position of a width's or a precision's argument; -1: the next one; 0: none
    int suppressed; // scanf's *
    int allocates;  // scanf's m
};

static const char* number(const char* at, int* value) {
    *value = 0;
    while (*at >= '0' && *at <= '9') *value = *value * 10 + (*at++ - '0');
    return at;
}
static const char* position_of_star(const char* at, int* star) {
    int value = 0;
    const char* end = number(at, &value);
    *star = *end == '$' && value > 0 ? value : -1;
    return *end == '$' && value > 0 ? end + 1 : at;
}

// What stands behind a '%'.
static const char* read_conversion(const char* at, int scans, struct conversion* made) {
    memset(made, 0, sizeof *made);
    int value = 0;
    const char* end = number(at, &value);
    if (*end == '$' && value > 0) {
        made->position = value;
        at = end + 1;
    }
    if (scans) {
        if (*at == '*') made->suppressed = 1, ++at;
        while (*at == '\'' || *at == 'I') ++at;
        at = number(at, &value);
        if (*at == 'm') made->allocates = 1, ++at;
    } else {
        while (*at != 0 && strchr("#0- +'I", *at) != NULL) ++at;
        if (*at == '*')
            at = position_of_star(at + 1, &made->stars[0]);
        else
            at = number(at, &value);
        if (*at == '.') {
            ++at;
            if (*at == '*')
                at = position_of_star(at + 1, &made->stars[1]);
            else
                at = number(at + (*at == '-'), &value);
        }
    }
    for (;; ++at) {
        if (*at == 'h')
            --made->length;
        else if (*at == 'l' || *at == 'q')
            ++made->length;
        else if (*at == 'L')
            made->length = 3;
        else if (*at == 'j' || *at == 'z' || *at == 't' || *at == 'Z')
            made->length = 1;
        else
            break;
    }
    made->letter = *at;
    if (*at == 0) return at;
    ++at;
    if (scans && made->letter == '[') {
        if (*at == '^') ++at;
        if (*at == ']') ++at;
        while (*at != 0 && *at != ']') ++at;
        if (*at != 0) ++at;
    }
    return at;
}

// What kind of argument a conversion takes: i a word, d a double, D a long double, h an address that is printed as such,
// a one through which memory is reached, - none.
static char kind_of(const struct conversion* c, int scans) {
    if (c->letter == '%' || c->letter == 'm' || c->suppressed) return '-';
    if (scans) return 'a';
    switch (c->letter) {
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        return c->length == 3 ? 'D' : 'd';
    case 's':
    case 'S':
    case 'n':
        return 'a';
    case 'p':
        return 'h';
    default:
        return 'i';
    }
}

static void lay_next(struct laid_down* to, char kind, va_list from) {
    switch (kind) {
    case 'i':
        lay_word(to, va_arg(from, uint64_t));
        break;
    case 'h':
        lay_word(to, va_arg(from, uint64_t));
        break;
    case 'a':
        lay_address(to, va_arg(from, void*));
        break;
    case 'd': {
        const double value = va_arg(from, double);
        lay(to, &value, sizeof value, 8);
        break;
    }
    case 'D': {
        const long double value = va_arg(from, long double);
        lay(to, &value, sizeof value, 16);
        break;
    }
    default:
        break;
    }
}

// Lays down the arguments of the format, which is translated. 0 if there are too many.
static int lay_all(struct laid_down* to, const char* format, int scans, va_list from) {
    to->used = 0;
    to->failed = 0;
    char kinds[most_arguments + 1];
    memset(kinds, 0, sizeof kinds);
    int numbered = 0;
    for (const char* at = format; *at != 0;) {
        if (*at++ != '%') continue;
        struct conversion c;
        at = read_conversion(at, scans, &c);
        const char kind = c.letter == 0 ? '-' : kind_of(&c, scans);
        if (c.position > 0 || c.stars[0] > 0 || c.stars[1] > 0) {
            if (c.position > most_arguments || c.stars[0] > most_arguments ||
                c.stars[1] > most_arguments)
                return 0;
            for (int i = 0; i < 2; ++i)
                if (c.stars[i] > 0) kinds[c.stars[i]] = 'i';
            if (kind != '-') kinds[c.position] = kind;
            numbered = 1;
            continue;
        }
        for (int i = 0; i < 2; ++i)
            if (c.stars[i] < 0) lay_next(to, 'i', from);
        lay_next(to, kind, from);
    }
    if (numbered) // each once, in their order
        for (int i = 1; i <= most_arguments && kinds[i] != 0; ++i) lay_next(to, kinds[i], from);
    return !to->failed;
}

static void as_list(struct laid_down* laid, va_list* list) {
    struct argument_list made = {all_gp, all_fp, laid->memory, NULL};
    _Static_assert(sizeof made == sizeof(va_list), "the psABI's");
    memcpy(list, &made, sizeof made);
}

#define WITH_ARGUMENTS(format, scans, from, call)                                                  \
    struct laid_down laid;                                                                         \
    va_list copy;                                                                                  \
    va_copy(copy, from);                                                                           \
    const int fits = lay_all(&laid, format, scans, copy);                                          \
    va_end(copy);                                                                                  \
    if (!fits) {                                                                                   \
        errno = EOVERFLOW;                                                                         \
        return -1;                                                                                 \
    }                                                                                              \
    va_list list;                                                                                  \
    as_list(&laid, &list);                                                                         \
    return call

static int print(FILE* to, const char* format, va_list from) {
    const char* f = T(format);
    WITH_ARGUMENTS(f, 0, from, vfprintf(to, f, list));
}
static int print_into(char* to, size_t size, const char* format, va_list from) {
    const char* f = T(format);
    char* const text = T(to);
    WITH_ARGUMENTS(f, 0, from, vsnprintf(text, size, f, list));
}
static int print_unbounded(char* to, const char* format, va_list from) {
    const char* f = T(format);
    char* const text = T(to);
    WITH_ARGUMENTS(f, 0, from, vsprintf(text, f, list));
}
static int print_to_file(int to, const char* format, va_list from) {
    const char* f = T(format);
    WITH_ARGUMENTS(f, 0, from, vdprintf(to, f, list));
}
static int print_to_log(int priority, const char* format, va_list from) {
    const char* f = T(format);
    WITH_ARGUMENTS(f, 0, from, (vsyslog(priority, f, list), 0));
}
static int print_allocated(char** to, const char* format, va_list from) {
    const int length = print_into(NULL, 0, format, from);
    char* made = length >= 0 ? obase_handles_malloc((size_t)length + 1) : NULL;
    *T(to) = made;
    if (made == NULL) return -1;
    return print_into(made, (size_t)length + 1, format, from);
}
static int scan(FILE* stream, const char* format, va_list from) {
    const char* f = T(format);
    WITH_ARGUMENTS(f, 1, from, vfscanf(stream, f, list));
}
static int scan_text(const char* text, const char* format, va_list from) {
    const char* f = T(format);
    const char* const t = T(text);
    WITH_ARGUMENTS(f, 1, from, vsscanf(t, f, list));
}

#define VARIADIC(call)                                                                             \
    va_list list;                                                                                  \
    va_start(list, format);                                                                        \
    const int done = call;                                                                         \
    va_end(list);                                                                                  \
    return done

// A list that instrumented code has may itself be in the heap: what it holds is copied.
#define V(from) (*(va_list*)T((void*)(from)))

API int obase_handles_c_printf(const char* format, ...) { VARIADIC(print(stdout, format, list)); }
API int obase_handles_c_fprintf(FILE* to, const char* format, ...) {
    VARIADIC(print(to, format, list));
}
API int obase_handles_c_sprintf(char* to, const char* format, ...) {
    VARIADIC(print_unbounded(to, format, list));
}
API int obase_handles_c_snprintf(char* to, size_t size, const char* format, ...) {
    VARIADIC(print_into(to, size, format, list));
}
API int obase_handles_c_dprintf(int to, const char* format, ...) {
    VARIADIC(print_to_file(to, format, list));
}
API int obase_handles_c_asprintf(char** to, const char* format, ...) {
    VARIADIC(print_allocated(to, format, list));
}
API void obase_handles_c_syslog(int priority, const char* format, ...) {
    va_list list;
    va_start(list, format);
    print_to_log(priority, format, list);
    va_end(list);
}
API int obase_handles_c___printf_chk(int flag, const char* format, ...) {
    (void)flag;
    VARIADIC(print(stdout, format, list));
}
API int obase_handles_c___fprintf_chk(FILE* to, int flag, const char* format, ...) {
    (void)flag;
    VARIADIC(print(to, format, list));
}
API int obase_handles_c___sprintf_chk(char* to, int flag, size_t room, const char* format, ...) {
    (void)flag;
    (void)room;
    VARIADIC(print_unbounded(to, format, list));
}
API int obase_handles_c___snprintf_chk(char* to, size_t size, int flag, size_t room,
                                       const char* format, ...) {
    (void)flag;
    (void)room;
    VARIADIC(print_into(to, size, format, list));
}
API int obase_handles_c_vprintf(const char* format, void* list) {
    return print(stdout, format, V(list));
}
API int obase_handles_c_vfprintf(FILE* to, const char* format, void* list) {
    return print(to, format, V(list));
}
API int obase_handles_c_vsprintf(char* to, const char* format, void* list) {
    return print_unbounded(to, format, V(list));
}
API int obase_handles_c_vsnprintf(char* to, size_t size, const char* format, void* list) {
    return print_into(to, size, format, V(list));
}
API int obase_handles_c_vdprintf(int to, const char* format, void* list) {
    return print_to_file(to, format, V(list));
}
API int obase_handles_c_vasprintf(char** to, const char* format, void* list) {
    return print_allocated(to, format, V(list));
}
API void obase_handles_c_vsyslog(int priority, const char* format, void* list) {
    print_to_log(priority, format, V(list));
}
API int obase_handles_c___vprintf_chk(int flag, const char* format, void* list) {
    (void)flag;
    return print(stdout, format, V(list));
}
API int obase_handles_c___vfprintf_chk(FILE* to, int flag, const char* format, void* list) {
    (void)flag;
    return print(to, format, V(list));
}
API int obase_handles_c___vsprintf_chk(char* to, int flag, size_t room, const char* format,
                                       void* list) {
    (void)flag;
    (void)room;
    return print_unbounded(to, format, V(list));
}
API int obase_handles_c___vsnprintf_chk(char* to, size_t size, int flag, size_t room,
                                        const char* format, void* list) {
    (void)flag;
    (void)room;
    return print_into(to, size, format, V(list));
}
API int obase_handles_c_vscanf(const char* format, void* list) {
    return scan(stdin, format, V(list));
}
API int obase_handles_c_vfscanf(FILE* from, const char* format, void* list) {
    return scan(from, format, V(list));
}
API int obase_handles_c_vsscanf(const char* text, const char* format, void* list) {
    return scan_text(text, format, V(list));
}
API int obase_handles_c___isoc99_vscanf(const char* format, void* list) {
    return scan(stdin, format, V(list));
}
API int obase_handles_c___isoc99_vfscanf(FILE* from, const char* format, void* list) {
    return scan(from, format, V(list));
}
API int obase_handles_c___isoc99_vsscanf(const char* text, const char* format, void* list) {
    return scan_text(text, format, V(list));
}

// Vectors of buffers: each is pinned for as long as the call may wait.

static int pin_all(struct iovec* to, const struct iovec* home, int count) {
    if (count < 0 || count > IOV_MAX) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < count; ++i) {
        const struct iovec* from = T(home); // again: a pin is a safepoint
        to[i] = from[i];
        to[i].iov_base = obase_handles_pin(to[i].iov_base);
    }
    return 0;
}
// The program may have changed its vector meanwhile: the homes are kept here.
static void homes_of(void** to, const struct iovec* home, int count) {
    const struct iovec* from = T(home);
    for (int i = 0; i < count && i < IOV_MAX; ++i) to[i] = from[i].iov_base;
}
#define WITH_BUFFERS(vector, count, call)                                                          \
    struct iovec buffers[(count) > 0 && (count) <= IOV_MAX ? (count) : 1];                         \
    void* homes[(count) > 0 && (count) <= IOV_MAX ? (count) : 1];                                  \
    homes_of(homes, vector, count);                                                                \
    if (pin_all(buffers, vector, count) < 0) return -1;                                            \
    obase_handles_offline();                                                                       \
    const ssize_t done = call;                                                                     \
    const int error = errno;                                                                       \
    obase_handles_online();                                                                        \
    for (int i = 0; i < (count); ++i) obase_handles_unpin(homes[i]);                               \
    errno = error

API ssize_t obase_handles_c_readv(int file, const struct iovec* vector, int count) {
    WITH_BUFFERS(vector, count, readv(file, buffers, count));
    return done;
}
API ssize_t obase_handles_c_writev(int file, const struct iovec* vector, int count) {
    WITH_BUFFERS(vector, count, writev(file, buffers, count));
    return done;
}
API ssize_t obase_handles_c_preadv(int file, const struct iovec* vector, int count, off_t at) {
    WITH_BUFFERS(vector, count, preadv(file, buffers, count, at));
    return done;
}
API ssize_t obase_handles_c_pwritev(int file, const struct iovec* vector, int count, off_t at) {
    WITH_BUFFERS(vector, count, pwritev(file, buffers, count, at));
    return done;
}

API ssize_t obase_handles_c_sendmsg(int file, const struct msghdr* home, int flags) {
    struct msghdr message = *T(home);
    void* const name = message.msg_name;
    void* const control = message.msg_control;
    const int count = (int)message.msg_iovlen;
    message.msg_name = obase_handles_pin(name);
    message.msg_control = obase_handles_pin(control);
    const struct iovec* vector = message.msg_iov;
    WITH_BUFFERS(vector, count, (message.msg_iov = buffers, sendmsg(file, &message, flags)));
    obase_handles_unpin(name);
    obase_handles_unpin(control);
    return done;
}
API ssize_t obase_handles_c_recvmsg(int file, struct msghdr* home, int flags) {
    struct msghdr message = *T(home);
    void* const name = message.msg_name;
    void* const control = message.msg_control;
    const int count = (int)message.msg_iovlen;
    message.msg_name = obase_handles_pin(name);
    message.msg_control = obase_handles_pin(control);
    const struct iovec* vector = message.msg_iov;
    WITH_BUFFERS(vector, count, (message.msg_iov = buffers, recvmsg(file, &message, flags)));
    struct msghdr* to = T(home);
    to->msg_namelen = message.msg_namelen;
    to->msg_controllen = message.msg_controllen;
    to->msg_flags = message.msg_flags;
    obase_handles_unpin(name);
    obase_handles_unpin(control);
    return done;
}

// execve and its like: the texts, and the vectors. They return only if they fail, and nothing moves before.

static size_t texts_in(char* const* home) {
    char* const* at = T(home);
    size_t count = 0;
    while (at[count] != NULL) ++count;
    return count;
}
static void translate_texts(char** to, char* const* home, size_t count) {
    char* const* from = T(home);
    for (size_t i = 0; i < count; ++i) to[i] = T(from[i]);
    to[count] = NULL;
}
#define TEXTS(name, home)                                                                          \
    const size_t name##_count = texts_in(home);                                                    \
    char* name[name##_count + 1];                                                                  \
    translate_texts(name, home, name##_count)

API int obase_handles_c_execv(const char* path, char* const* arguments) {
    TEXTS(texts, arguments);
    return execv(T(path), texts);
}
API int obase_handles_c_execvp(const char* path, char* const* arguments) {
    TEXTS(texts, arguments);
    return execvp(T(path), texts);
}
API int obase_handles_c_execve(const char* path, char* const* arguments, char* const* environment) {
    TEXTS(texts, arguments);
    TEXTS(variables, environment);
    return execve(T(path), texts, variables);
}
API int obase_handles_c_execvpe(const char* path, char* const* arguments,
                                char* const* environment) {
    TEXTS(texts, arguments);
    TEXTS(variables, environment);
    return execvpe(T(path), texts, variables);
}

// A mutex that is free is taken at once, without going offline.
API int obase_handles_c_pthread_mutex_lock(pthread_mutex_t* home) {
    if (pthread_mutex_trylock(T(home)) == 0) return 0;
    pthread_mutex_t* const pinned = obase_handles_pin(home);
    obase_handles_offline();
    const int done = pthread_mutex_lock(pinned);
    obase_handles_online();
    obase_handles_unpin(home);
    return done;
}
