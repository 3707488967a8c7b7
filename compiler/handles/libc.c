// SPDX-License-Identifier: MIT
//
// Functions of the C library for instrumented code, where it is not enough to translate their arguments
// (compiler/handles/known.cpp, "w"). All of them get home addresses, and give home addresses. They are not instrumented
// themselves; a translation is good until the thread polls, which none of them does but where it goes offline.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <syslog.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>

#define API __attribute__((visibility("default")))
#define T(p) ((__typeof__(p))translated(p))

extern unsigned char obase_handles_away[1U << 24];
__attribute__((preserve_most)) void* obase_handles_translate(const void* home);
static inline void* translated(const void* home) {
    return obase_handles_away[(uintptr_t)home >> 16 & 0xFFFFFF] != 0 ? obase_handles_translate(home)
                                                                     : (void*)(uintptr_t)home;
}
void obase_handles_offline(void);
void obase_handles_online(void);
void* obase_handles_pin(const void* home);
void obase_handles_unpin(const void* home);
void* obase_handles_keep(const void* home);
void* obase_handles_malloc(size_t);
void* obase_handles_realloc(void*, size_t);
void obase_handles_free(void*);

// A thread that is cancelled in a call that waits is unwound from here: what was done is undone then, too, so cleanups and
// destructors of the program run online (-fexceptions).
static void come_online(const char* unused) {
    (void)unused;
    const int error = errno;
    obase_handles_online();
    errno = error;
}
#define OFFLINE                                                                                    \
    obase_handles_offline();                                                                       \
    __attribute__((cleanup(come_online), unused)) const char is_offline = 0
static void unpin(void* const* home) {
    const int error = errno;
    obase_handles_unpin(*home);
    errno = error;
}
#define PINNED(name, of)                                                                           \
    __attribute__((cleanup(unpin), unused)) void* const name##_home = (void*)(uintptr_t)(of);      \
    __typeof__(of) const name = obase_handles_pin(name##_home)

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

static ssize_t wait_for_line(char** read, size_t* room, int end, FILE* from) {
    OFFLINE;
    return getdelim(read, room, end, from);
}
API ssize_t obase_handles_c_getdelim(char** line, size_t* size, int end, FILE* from) {
    char* read = NULL;
    size_t room = 0;
    if (line == NULL || size == NULL) {
        errno = EINVAL;
        return -1;
    }
    const ssize_t length = wait_for_line(&read, &room, end, from);
    const int error = errno;
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

// True if a conversion of printf's reaches memory.
static int reaches_memory(const char* format) {
    while ((format = strchrnul(format, '%'), *format != 0)) {
        ++format;
        format += strspn(format, "#0- +'I123456789$*.hlqLjztZ");
        if (*format == 's' || *format == 'S' || *format == 'n') return 1;
        if (*format != 0) ++format;
    }
    return 0;
}

// Lays down the arguments of the format, which is translated. 0 if there are too many.
static int lay_all(struct laid_down* to, const char* format, int scans, va_list from) {
    to->used = 0;
    to->failed = 0;
    char kinds[most_arguments + 1];
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
            if (!numbered) memset(kinds, 0, sizeof kinds);
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

// Writes to a stream. Inside only if it waits for nobody: no other thread has the stream, and the bytes fit into its
// buffer. Otherwise offline, from where nothing moves; returns how many bytes were written.
static size_t put_out(const void* home, size_t size, FILE* to) {
    if (ftrylockfile(to) == 0) {
        const size_t room = __fbufsize(to), pending = __fpending(to);
        const int fits = __fwriting(to) && !__flbf(to) && pending + size < room;
        const size_t done = fits ? fwrite_unlocked(T(home), 1, size, to) : 0;
        funlockfile(to);
        if (fits) return done;
    }
    char copy[4096];
    if (size <= sizeof copy) {
        memcpy(copy, T(home), size);
        OFFLINE;
        return fwrite(copy, 1, size, to);
    }
    PINNED(from, home);
    OFFLINE;
    return fwrite(from, 1, size, to);
}

API size_t obase_handles_c_fwrite(const void* home, size_t size, size_t count, FILE* to) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0) return 0;
    const size_t done = put_out(home, bytes, to);
    return done == bytes ? count : done / size;
}
API int obase_handles_c_fputs(const char* home, FILE* to) {
    const size_t length = strlen(T(home));
    return length == 0 || put_out(home, length, to) == length ? 1 : EOF;
}
API int obase_handles_c_puts(const char* home) {
    const size_t length = strlen(T(home));
    if (length < 4096) {
        char line[4097];
        memcpy(line, T(home), length);
        line[length] = '\n';
        return put_out(line, length + 1, stdout) == length + 1 ? (int)length + 1 : EOF;
    }
    PINNED(text, home);
    OFFLINE;
    return puts(text);
}
API int obase_handles_c_fputc(int c, FILE* to) {
    const unsigned char byte = (unsigned char)c;
    if (ftrylockfile(to) == 0) {
        const int fits =
            __fwriting(to) && !(__flbf(to) && byte == '\n') && __fpending(to) + 1 < __fbufsize(to);
        const int done = fits ? putc_unlocked(byte, to) : 0;
        funlockfile(to);
        if (fits) return done;
    }
    OFFLINE;
    return putc(byte, to);
}
API int obase_handles_c_putc(int c, FILE* to) { return obase_handles_c_fputc(c, to); }
API int obase_handles_c__IO_putc(int c, FILE* to) { return obase_handles_c_fputc(c, to); }
API int obase_handles_c_putchar(int c) { return obase_handles_c_fputc(c, stdout); }

// What printf makes is made here, and written as fwrite does it.
static int made_text(char** to, size_t room, const char* format, va_list from);
static int print(FILE* to, const char* format, va_list from) {
    char near[512];
    char* text = near;
    const int length = made_text(&text, sizeof near, format, from);
    const int done =
        length > 0 && put_out(text, (size_t)length, to) != (size_t)length ? -1 : length;
    if (text != near) free(text);
    return done;
}
static int made_from(char* to, size_t size, const char* format, va_list from) {
    const char* f = T(format);
    if (!reaches_memory(f)) {
        va_list again;
        va_copy(again, from);
        const int length = vsnprintf(to, size, f, again);
        va_end(again);
        return length;
    }
    WITH_ARGUMENTS(f, 0, from, vsnprintf(to, size, f, list));
}
static int print_into(char* to, size_t size, const char* format, va_list from) {
    return made_from(T(to), size, format, from);
}
static int print_unbounded(char* to, const char* format, va_list from) {
    const char* f = T(format);
    char* const text = T(to);
    WITH_ARGUMENTS(f, 0, from, vsprintf(text, f, list));
}
// The text at *to, or elsewhere (malloc) if that has no room.
static int made_text(char** to, size_t room, const char* format, va_list from) {
    const int length = made_from(*to, room, format, from);
    if (length < 0 || (size_t)length < room) return length;
    char* made = malloc((size_t)length + 1);
    if (made == NULL) return -1;
    *to = made;
    const int again =
        made_from(made, (size_t)length + 1, format, from); // longer by now, it ends there
    return again < length ? again : length;
}
static int write_all(int to, const char* text, int length) {
    OFFLINE;
    for (int at = 0; at < length;) {
        const ssize_t done = write(to, text + at, (size_t)(length - at));
        if (done < 0) return -1;
        at += (int)done;
    }
    return length;
}
static int print_to_file(int to, const char* format, va_list from) {
    char near[512];
    char* text = near;
    const int length = made_text(&text, sizeof near, format, from);
    const int done = length > 0 ? write_all(to, text, length) : length;
    if (text != near) free(text);
    return done;
}
static void write_log(int priority, const char* text) {
    OFFLINE;
    syslog(priority, "%s", text);
}
static int print_to_log(int priority, const char* format, va_list from) {
    char near[512];
    char* text = near;
    if (made_text(&text, sizeof near, format, from) >= 0) write_log(priority, text);
    if (text != near) free(text);
    return 0;
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

struct buffers {
    int count;
    struct iovec* now;
    void** homes;
};
static void unpin_all(struct buffers* all) {
    const int error = errno;
    for (int i = 0; i < all->count; ++i) obase_handles_unpin(all->homes[i]);
    errno = error;
}
static void pin_all(struct buffers* to, const struct iovec* home, int count) {
    // The program may change its vector meanwhile: the homes are kept here. A pin is a safepoint.
    const struct iovec* from = T(home);
    for (int i = 0; i < count; ++i) {
        to->now[i] = from[i];
        to->homes[i] = from[i].iov_base;
    }
    for (; to->count < count; ++to->count)
        to->now[to->count].iov_base = obase_handles_pin(to->homes[to->count]);
}
#define ROOM(count) ((count) > 0 && (count) <= IOV_MAX ? (count) : 1)
#define WITH_BUFFERS(name, vector, wanted)                                                         \
    if ((wanted) < 0 || (wanted) > IOV_MAX) {                                                      \
        errno = EINVAL;                                                                            \
        return -1;                                                                                 \
    }                                                                                              \
    struct iovec name##_now[ROOM(wanted)];                                                         \
    void* name##_homes[ROOM(wanted)];                                                              \
    __attribute__((cleanup(unpin_all))) struct buffers name = {0, name##_now, name##_homes};       \
    pin_all(&name, vector, wanted)

#define ON_BUFFERS(function, parameters, ...)                                                      \
    API ssize_t obase_handles_c_##function parameters {                                            \
        WITH_BUFFERS(buffers, vector, count);                                                      \
        OFFLINE;                                                                                   \
        return function(file, buffers.now, count, ##__VA_ARGS__);                                  \
    }
#define VECTOR int file, const struct iovec *vector, int count
API ssize_t obase_handles_c_readv(VECTOR) {
    WITH_BUFFERS(buffers, vector, count);
    OFFLINE;
    return readv(file, buffers.now, count);
}
API ssize_t obase_handles_c_writev(VECTOR) {
    WITH_BUFFERS(buffers, vector, count);
    OFFLINE;
    return writev(file, buffers.now, count);
}
ON_BUFFERS(preadv, (VECTOR, off_t at), at)
ON_BUFFERS(pwritev, (VECTOR, off_t at), at)
ON_BUFFERS(preadv64, (VECTOR, off64_t at), at)
ON_BUFFERS(pwritev64, (VECTOR, off64_t at), at)
ON_BUFFERS(preadv2, (VECTOR, off_t at, int flags), at, flags)
ON_BUFFERS(pwritev2, (VECTOR, off_t at, int flags), at, flags)
ON_BUFFERS(preadv64v2, (VECTOR, off64_t at, int flags), at, flags)
ON_BUFFERS(pwritev64v2, (VECTOR, off64_t at, int flags), at, flags)
// The pages may be in the pipe after the call: they stay.
API ssize_t obase_handles_c_vmsplice(int file, const struct iovec* vector, size_t count,
                                     unsigned flags) {
    for (size_t i = 0; i < count && i < IOV_MAX; ++i) obase_handles_keep(T(vector)[i].iov_base);
    WITH_BUFFERS(buffers, vector, (int)(count > INT_MAX ? INT_MAX : count));
    OFFLINE;
    return vmsplice(file, buffers.now, count, flags);
}

API ssize_t obase_handles_c_sendmsg(int file, const struct msghdr* home, int flags) {
    struct msghdr message = *T(home);
    const int count = (int)message.msg_iovlen;
    PINNED(name, message.msg_name);
    PINNED(control, message.msg_control);
    WITH_BUFFERS(buffers, message.msg_iov, count);
    message.msg_name = name;
    message.msg_control = control;
    message.msg_iov = buffers.now;
    OFFLINE;
    return sendmsg(file, &message, flags);
}
static ssize_t wait_for_message(int file, struct msghdr* message, int flags) {
    const int count = (int)message->msg_iovlen;
    struct msghdr now = *message;
    PINNED(name, message->msg_name);
    PINNED(control, message->msg_control);
    WITH_BUFFERS(buffers, message->msg_iov, count);
    now.msg_name = name;
    now.msg_control = control;
    now.msg_iov = buffers.now;
    OFFLINE;
    const ssize_t done = recvmsg(file, &now, flags);
    message->msg_namelen = now.msg_namelen;
    message->msg_controllen = now.msg_controllen;
    message->msg_flags = now.msg_flags;
    return done;
}
API ssize_t obase_handles_c_recvmsg(int file, struct msghdr* home, int flags) {
    struct msghdr message = *T(home);
    const ssize_t done = wait_for_message(file, &message, flags);
    struct msghdr* to = T(home);
    to->msg_namelen = message.msg_namelen;
    to->msg_controllen = message.msg_controllen;
    to->msg_flags = message.msg_flags;
    return done;
}
// One message after another, as the kernel does it.
API int obase_handles_c_sendmmsg(int file, struct mmsghdr* home, unsigned count, int flags) {
    for (unsigned i = 0; i < count; ++i) {
        const ssize_t done = obase_handles_c_sendmsg(file, &home[i].msg_hdr, flags);
        if (done < 0) return i > 0 ? (int)i : -1;
        T(home)[i].msg_len = (unsigned)done;
    }
    return (int)count;
}
// As the kernel does it, but that the time limit is looked at when nothing came only: a message that is waited for in vain
// is waited for without limit there, too.
API int obase_handles_c_recvmmsg(int file, struct mmsghdr* home, unsigned count, int flags,
                                 struct timespec* limit) {
    struct timespec begin, now;
    if (limit != NULL) clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned i = 0; i < count; ++i) {
        const int for_this = i > 0 && (flags & MSG_WAITFORONE) != 0 ? flags | MSG_DONTWAIT : flags;
        const ssize_t done =
            obase_handles_c_recvmsg(file, &home[i].msg_hdr, for_this & ~MSG_WAITFORONE);
        if (done < 0) return i > 0 ? (int)i : -1;
        T(home)[i].msg_len = (unsigned)done;
        if (limit == NULL) continue;
        clock_gettime(CLOCK_MONOTONIC, &now);
        const struct timespec most = *T(limit);
        const int64_t passed =
            (now.tv_sec - begin.tv_sec) * INT64_C(1000000000) + now.tv_nsec - begin.tv_nsec;
        if (passed >= most.tv_sec * INT64_C(1000000000) + most.tv_nsec) return (int)i + 1;
    }
    return (int)count;
}

// Addresses behind addresses, in calls that do not wait.

static struct sock_fprog filter_of(const void* home) {
    struct sock_fprog made = *(const struct sock_fprog*)T(home);
    made.filter = T(made.filter);
    return made;
}
API int obase_handles_c_setsockopt(int file, int level, int name, const void* home,
                                   socklen_t size) {
    if (level == SOL_SOCKET && size >= sizeof(struct sock_fprog) &&
        (name == SO_ATTACH_FILTER || name == SO_ATTACH_REUSEPORT_CBPF)) {
        const struct sock_fprog filter = filter_of(home);
        return setsockopt(file, level, name, &filter, size);
    }
    return setsockopt(file, level, name, T(home), size);
}
API int obase_handles_c_prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    unsigned long a[4];
    for (int i = 0; i < 4; ++i) a[i] = (unsigned long)T((void*)va_arg(list, unsigned long));
    va_end(list);
    if (option == PR_SET_SECCOMP && a[0] == 2 /* a filter */) {
        const struct sock_fprog filter = filter_of((void*)a[1]);
        return prctl(option, a[0], (unsigned long)&filter, a[2], a[3]);
    }
    return prctl(option, a[0], a[1], a[2], a[3]);
}
API int obase_handles_c_ioctl(int file, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void* const home = va_arg(list, void*);
    va_end(list);
    if (request == SIOCGIFCONF) {
        struct ifconf* at = T((struct ifconf*)home);
        struct ifconf now = *at;
        now.ifc_buf = T(now.ifc_buf);
        const int done = ioctl(file, request, &now);
        at->ifc_len = now.ifc_len;
        return done;
    }
    PINNED(argument, home);
    OFFLINE;
    return ioctl(file, request, argument);
}
// Any argument may be an address, and may be kept (set_robust_list, io_setup); of those that move data, none is.
API long obase_handles_c_syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    void* a[6];
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, void*);
    va_end(list);
    for (int i = 0; i < 6; ++i) obase_handles_keep(a[i]);
    OFFLINE;
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
// Stacks stay where they are.
API int obase_handles_c_sigaltstack(const stack_t* home, stack_t* old) {
    if (home != NULL) obase_handles_keep(T(home)->ss_sp);
    return sigaltstack(T(home), T(old));
}
// The context is linked to by others, and switched to at its home.
API void obase_handles_c_makecontext(ucontext_t* home, void (*function)(void), int count, ...) {
    va_list list;
    va_start(list, count);
    long a[12] = {0};
    for (int i = 0; i < count && i < 12; ++i) a[i] = va_arg(list, long);
    va_end(list);
    obase_handles_keep(home);
    obase_handles_keep(home->uc_stack.ss_sp);
    obase_handles_keep(home->uc_link);
    makecontext(home, function, count, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                a[10], a[11]);
}

// execve and its like: the texts, and the vectors. They return only if they fail, and nothing moves before.

static size_t texts_in(char* const* home) {
    if (home == NULL) return 0;
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

// For functions that walk the program's environment: it stays at home.
static void keep_environment(void) {
    if (environ == NULL) return;
    obase_handles_keep(environ);
    for (char** at = environ; *at != NULL; ++at) obase_handles_keep(*at);
}
API int obase_handles_c_system(const char* home) {
    keep_environment();
    PINNED(command, home);
    OFFLINE;
    return system(command);
}
API FILE* obase_handles_c_popen(const char* command, const char* type) {
    keep_environment();
    return popen(T(command), T(type));
}
API int obase_handles_c_posix_spawn(pid_t* made, const char* path,
                                    const posix_spawn_file_actions_t* actions,
                                    const posix_spawnattr_t* attributes, char* const* arguments,
                                    char* const* environment) {
    TEXTS(texts, arguments);
    TEXTS(variables, environment);
    return posix_spawn(T(made), T(path), T(actions), T(attributes), texts, variables);
}
API int obase_handles_c_posix_spawnp(pid_t* made, const char* path,
                                     const posix_spawn_file_actions_t* actions,
                                     const posix_spawnattr_t* attributes, char* const* arguments,
                                     char* const* environment) {
    keep_environment(); // it looks for PATH there
    TEXTS(texts, arguments);
    TEXTS(variables, environment);
    return posix_spawnp(T(made), T(path), T(actions), T(attributes), texts, variables);
}
#define LISTED(first)                                                                              \
    va_list list;                                                                                  \
    va_start(list, first);                                                                         \
    size_t count = 1;                                                                              \
    while (va_arg(list, char*) != NULL) ++count;                                                   \
    va_end(list);                                                                                  \
    char* texts[count + 1];                                                                        \
    texts[0] = T((char*)(first));                                                                  \
    va_start(list, first);                                                                         \
    for (size_t i = 1; i <= count; ++i) texts[i] = T(va_arg(list, char*))
API int obase_handles_c_execl(const char* path, const char* first, ...) {
    keep_environment();
    LISTED(first);
    va_end(list);
    return execv(T(path), texts);
}
API int obase_handles_c_execlp(const char* path, const char* first, ...) {
    keep_environment();
    LISTED(first);
    va_end(list);
    return execvp(T(path), texts);
}
API int obase_handles_c_execle(const char* path, const char* first, ...) {
    LISTED(first);
    char* const* environment = va_arg(list, char* const*);
    va_end(list);
    TEXTS(variables, environment);
    return execve(T(path), texts, variables);
}
API int obase_handles_c_execv(const char* path, char* const* arguments) {
    keep_environment();
    TEXTS(texts, arguments);
    return execv(T(path), texts);
}
API int obase_handles_c_execvp(const char* path, char* const* arguments) {
    keep_environment();
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
    keep_environment();
    TEXTS(texts, arguments);
    TEXTS(variables, environment);
    return execvpe(T(path), texts, variables);
}

// A mutex that is free is taken at once, without going offline.
API int obase_handles_c_pthread_mutex_lock(pthread_mutex_t* home) {
    // Whose owner has died is taken, too.
    const int taken = pthread_mutex_trylock(T(home));
    if (taken != EBUSY) return taken;
    PINNED(mutex, home);
    OFFLINE;
    return pthread_mutex_lock(mutex);
}
