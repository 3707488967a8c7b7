// SPDX-License-Identifier: MIT
//
// The C library's functions that hand memory to the kernel, for foreign code.
//
// The kernel serves no fault: where foreign code has found the home of a moved object in memory and gives it to write(),
// the answer would be EFAULT. So the program has these functions itself, before the C library's: an object that they are
// given comes home, and stays there until the C library's function has returned. What is not of the heap, and what
// compiled code has pinned already, costs a comparison and a look at the thread's pins.
//
// Each name is a jump to such a function, or, if the dynamic linker finds a function of that name elsewhere than in the C
// library, to that one, with all registers as they were: a library has a send() of its own, with arguments of its own. This
// is found out before the constructors of libraries run. A library's variable of such a name would be the jump: that
// ends the program, with a message. The jumps are weak: a program's own function of such a name is the program's. They
// are a library of their own, which the driver links for --handles, but not into static programs: the C library's
// functions are found by the dynamic linker.
//
// A vector or a message is read before the call. What lies at no address is EFAULT, as the kernel says, unless SIGSEGV is
// blocked or the program's own.
//
// Not here: what the C library does inside with addresses that it finds in memory (aio_read, lio_listio, printf of a
// text as long as the stream's buffer, glob, nftw), waits for a mutex in moved memory, and system calls by syscall() or
// without the C library.
#include "handles/native.hpp"

#include "os/memory.hpp"
#include "os/segment_fault.hpp"

#include <obase/handles.h>

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <type_traits>

using obase::handles::native;
using obase::handles::native_handles;

// The driver's name for this file.
extern "C" __attribute__((visibility("default"))) const char obase_handles_system_calls = 0;

namespace {

// Where the C library lies: one object since glibc 2.34. (dladdr() goes through all symbols, at each call.)
struct c_library {
    std::uintptr_t begin, end; // the second 0: not looked for yet
};
constinit c_library library{};

void find_c_library() noexcept {
    if (library.end != 0) return;
    const auto within =
        reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    ::dl_iterate_phdr(
        [](dl_phdr_info* one, std::size_t, void* address) {
            c_library found{one->dlpi_addr, 0};
            for (int i = 0; i < one->dlpi_phnum; ++i)
                if (const auto& part = one->dlpi_phdr[i]; part.p_type == PT_LOAD)
                    found.end = std::max(found.end, found.begin + part.p_vaddr + part.p_memsz);
            const auto of_it = *static_cast<const std::uintptr_t*>(address);
            if (of_it - found.begin >= found.end - found.begin) return 0;
            library = found;
            return 1;
        },
        const_cast<std::uintptr_t*>(&within));
}
bool is_c_librarys(const void* function) noexcept {
    find_c_library();
    return reinterpret_cast<std::uintptr_t>(function) - library.begin < library.end - library.begin;
}

// A function that is called by a name of the C library's. Assembly makes it (OBASE_SERVED_AS): its jump goes to the
// function here at first.
class next_function {
  public:
    template <class Result, class... Types>
    Result call(Types... arguments) {
        void* found = found_.load_relaxed();
        if (found == nullptr) [[unlikely]]
            found = find();
        if (found == nullptr) {
            errno = ENOSYS;
            if constexpr (std::is_void_v<Result>)
                return;
            else if constexpr (std::is_pointer_v<Result>)
                return nullptr;
            else
                return static_cast<Result>(-1);
        }
        return reinterpret_cast<Result (*)(Types...)>(found)(arguments...);
    }
    void* find() noexcept {
        void* const found = ::dlsym(RTLD_NEXT, name_);
        found_.store_relaxed(found);
        if (found != nullptr && !is_c_librarys(found)) {
            expect_function(found);
            jump_.store_relaxed(found);
        }
        return found;
    }

  private:
    void expect_function(const void* found) const noexcept {
        Dl_info about{};
        void* symbol = nullptr;
        if (::dladdr1(found, &about, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr ||
            ELF64_ST_TYPE(static_cast<const ElfW(Sym)*>(symbol)->st_info) != STT_OBJECT)
            return;
        char text[400];
        const int length = std::snprintf(
            text, sizeof text,
            "obase: %s has a variable named '%s', and the program a function, which the library "
            "would take for it: link with --no-handles-system-calls\n",
            about.dli_fname, name_);
        if (length > 0)
            (void)!::write(STDERR_FILENO, text,
                           std::min(static_cast<std::size_t>(length), sizeof text - 1));
        ::_exit(1);
    }

    native::atomic<void*> jump_;
    const char* name_;
    native::atomic<void*> found_;
};
static_assert(std::is_standard_layout_v<next_function> && sizeof(next_function) == 24);

// Null: nothing moves.
native_handles* movers() noexcept { return native_handles::if_made(); }

// Copies, unless the kernel could not: false then.
extern "C" std::size_t obase_handles_copy_readable(void* to, const void* from,
                                                   std::size_t bytes) noexcept;
extern "C" const char obase_handles_copy_fault[], obase_handles_copy_faulted[];
__asm__(R"(
    .pushsection .text
    .type obase_handles_copy_readable, @function
obase_handles_copy_readable:
    .cfi_startproc
    movq %rdx, %rcx
obase_handles_copy_fault:
    rep movsb
obase_handles_copy_faulted:
    movq %rcx, %rax
    ret
    .cfi_endproc
    .size obase_handles_copy_readable, . - obase_handles_copy_readable
    .popsection
)");
bool copy(void* to, const void* from, std::size_t bytes) noexcept {
    return obase_handles_copy_readable(to, from, bytes) == 0;
}

// Pins make no system call that sets errno, but bringing an object home may.
native_handles::pin_made pin(const void* home) noexcept {
    native_handles* const all = movers();
    if (all == nullptr || !all->may_move(home)) return {const_cast<void*>(home), nullptr};
    const int error = errno;
    const native_handles::pin_made made = all->pin_for_foreign(home);
    errno = error;
    return made;
}
void unpin(native_handles::pin_made made) noexcept {
    if (made.entry != nullptr) native_handles::if_made()->unpin_for_foreign(*made.entry);
}

// One of them, for as long as the call lasts.
class argument {
  public:
    explicit argument(const void* home) noexcept : made_(pin(home)) {}
    ~argument() { unpin(made_); }
    argument(const argument&) = delete;
    argument& operator=(const argument&) = delete;

    void* now() const noexcept { return made_.now; }

  private:
    native_handles::pin_made made_;
};

bool copy_from(void* to, const void* home, std::size_t bytes) noexcept {
    const argument from(home);
    return copy(to, from.now(), bytes);
}

// Arguments as the registers have them. A function that takes fewer does not look at the others.
using word = unsigned long;
constexpr std::size_t most_arguments = 7;
class arguments {
  public:
    // Nothing is made empty before: that would take longer than most of the calls here.
    arguments(const word (&homes)[most_arguments], unsigned pointers) noexcept : homes_(homes) {
        for (unsigned i = 0; i < most_arguments; ++i) now_[i] = homes[i];
        for (; pointers != 0; pointers &= pointers - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(pointers));
            const native_handles::pin_made made = pin(reinterpret_cast<const void*>(homes[i]));
            now_[i] = reinterpret_cast<word>(made.now);
            if (made.entry == nullptr) continue;
            entry_[i] = made.entry;
            pinned_ |= 1U << i;
        }
    }
    ~arguments() {
        for (unsigned left = pinned_; left != 0; left &= left - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(left));
            unpin({reinterpret_cast<void*>(now_[i]), entry_[i]});
        }
    }
    arguments(const arguments&) = delete;
    arguments& operator=(const arguments&) = delete;

    const word* now() const noexcept { return now_; }
    word home_of(word result) const noexcept {
        for (unsigned left = pinned_; left != 0; left &= left - 1)
            if (const auto i = static_cast<unsigned>(std::countr_zero(left)); now_[i] == result)
                return homes_[i];
        return result;
    }

  private:
    const word (&homes_)[most_arguments];
    word now_[most_arguments];
    native::atomic<std::uint64_t>* entry_[most_arguments];
    unsigned pinned_ = 0; // a bit each
};
[[gnu::noinline]] word serve_pinned(next_function& next, const word (&homes)[most_arguments],
                                    unsigned pointers, bool gives_pointer) {
    const arguments pinned(homes, pointers);
    const word* const now = pinned.now();
    const word result = next.call<word>(now[0], now[1], now[2], now[3], now[4], now[5], now[6]);
    // One of the arguments, or none of the heap's.
    return gives_pointer ? pinned.home_of(result) : result;
}

// Of the objects that the C library makes none moves.
template <class T>
constexpr bool may_be_home = std::is_pointer_v<T> && !std::is_same_v<T, FILE*>;
template <class T>
word as_word(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<word>(value);
    else
        return static_cast<word>(value);
}
template <class T>
bool is_home(const native_handles& all, T value) noexcept {
    if constexpr (may_be_home<T>)
        return all.in_homes(value);
    else
        return false;
}
template <class Result, class... Types>
Result serve(next_function& next, Types... values) {
    static_assert(sizeof...(Types) <= most_arguments);
    if (const native_handles* const all = movers();
        all == nullptr || !(is_home(*all, values) || ...))
        return next.call<Result>(values...);
    const word homes[most_arguments] = {as_word(values)...};
    unsigned pointers = 0, at = 0;
    ((pointers |= unsigned{may_be_home<Types>} << at++), ...);
    const word result = serve_pinned(next, homes, pointers, std::is_pointer_v<Result>);
    if constexpr (std::is_void_v<Result>)
        return;
    else if constexpr (std::is_pointer_v<Result>)
        return reinterpret_cast<Result>(result);
    else
        return static_cast<Result>(result);
}

// Room for long arrays that fits in few places, each of which belongs to one call at a time. Handlers take some, too.
class rooms {
  public:
    static constexpr std::size_t bytes = IOV_MAX * sizeof(iovec);
    static void* take() noexcept { // null: all are taken
        for (unsigned i = 0; i < count; ++i) {
            std::uint32_t free = 0;
            if (taken_[i].cas_acq_rel(free, 1)) return all_[i];
        }
        return nullptr;
    }
    static bool give_back(const void* room) noexcept { // false: it is none
        const std::size_t offset =
            reinterpret_cast<std::uintptr_t>(room) - reinterpret_cast<std::uintptr_t>(&all_[0][0]);
        if (offset >= sizeof all_) return false;
        taken_[offset / bytes].store_release(0); // pairs with take()
        return true;
    }

  private:
    static constexpr unsigned count = 4;
    alignas(64) static inline std::byte all_[count][bytes];
    static inline native::atomic<std::uint32_t> taken_[count];
};

// Room for arrays: of the frame as long as they are small, for signal handlers have small stacks.
template <class T, std::size_t Few>
class array_room {
  public:
    array_room() noexcept = default;
    explicit array_room(std::size_t count) noexcept { make(count); }
    // Once.
    void make(std::size_t count) noexcept {
        if (count <= Few) {
            all_ = reinterpret_cast<T*>(few_);
            return;
        }
        bytes_ = obase::heap::round_up(count * sizeof(T), obase::os::page_size);
        void* made = bytes_ <= rooms::bytes ? rooms::take() : nullptr;
        if (made == nullptr) {
            made = obase::os::reserve(bytes_, obase::os::page_size);
            if (made != nullptr && obase::os::commit(made, bytes_) != 0) {
                obase::os::release(made, bytes_);
                made = nullptr;
            }
        }
        all_ = static_cast<T*>(made);
    }
    ~array_room() {
        if (bytes_ != 0 && all_ != nullptr && !rooms::give_back(all_))
            obase::os::release(all_, bytes_);
    }
    array_room(const array_room&) = delete;
    array_room& operator=(const array_room&) = delete;

    T* data() const noexcept { return all_; } // nullptr: no memory

  private:
    T* all_ = nullptr;
    std::size_t bytes_ = 0; // 0: of the frame
    alignas(T) std::byte few_[Few * sizeof(T)];
};

// Buffers of which a vector tells. If it cannot be read, or is longer than the kernel takes, the kernel says so.
class argument_vector {
  public:
    argument_vector(const iovec* home, std::size_t count) noexcept
        : all_(home), vectors_(readable(home, count)), buffers_(readable(home, count)) {
        if (readable(home, count) == 0) return;
        iovec* const now = vectors_.data();
        if (now == nullptr || buffers_.data() == nullptr ||
            !copy_from(now, home, count * sizeof(iovec)))
            return;
        all_ = now;
        for (; made_ < count; ++made_)
            now[made_].iov_base =
                (::new (buffers_.data() + made_) argument(now[made_].iov_base))->now();
    }
    ~argument_vector() {
        while (made_ > 0) buffers_.data()[--made_].~argument();
    }
    argument_vector(const argument_vector&) = delete;
    argument_vector& operator=(const argument_vector&) = delete;

    const iovec* now() const noexcept { return all_; }

  private:
    static constexpr std::size_t few = 16;
    static std::size_t readable(const iovec* home, std::size_t count) noexcept {
        return home == nullptr || count > IOV_MAX || movers() == nullptr ? 0 : count;
    }

    const iovec* all_;
    array_room<iovec, few> vectors_;
    array_room<argument, few> buffers_;
    std::size_t made_ = 0;
};

// A message, and what it tells of.
class message {
  public:
    // `at` is where the caller's is, pinned; `read` a copy.
    message(msghdr* at, const msghdr& read) noexcept
        : at_(at), now_(read), name_(read.msg_name), control_(read.msg_control),
          buffers_(read.msg_iov, read.msg_iovlen) {
        now_.msg_name = name_.now();
        now_.msg_control = control_.now();
        now_.msg_iov = const_cast<iovec*>(buffers_.now());
    }
    msghdr* now() noexcept { return &now_; }
    // What the kernel has written. False: it cannot be.
    bool received() noexcept {
        return received(&at_->msg_namelen, now_.msg_namelen) &&
               received(&at_->msg_controllen, now_.msg_controllen) &&
               received(&at_->msg_flags, now_.msg_flags);
    }
    template <class T>
    static bool received(T* at, const T& now) noexcept {
        return copy(at, &now, sizeof now);
    }

  private:
    msghdr* at_;
    msghdr now_;
    argument name_, control_;
    argument_vector buffers_;
};

// Several messages. As the kernel, no more than IOV_MAX at once.
class messages {
  public:
    messages(mmsghdr* home, unsigned count) noexcept
        : pinned_(home), at_(static_cast<mmsghdr*>(pinned_.now())),
          count_(home == nullptr || movers() == nullptr ? 0 : std::min(count, most)),
          headers_(count_), all_(count_) {
        if (headers_.data() == nullptr || all_.data() == nullptr) count_ = 0;
        if (count_ != 0 && !copy(headers_.data(), at_, count_ * sizeof(mmsghdr))) {
            // As the kernel, up to the first that cannot be read.
            unsigned readable = 0;
            while (readable < count_ &&
                   copy(headers_.data() + readable, at_ + readable, sizeof(mmsghdr)))
                ++readable;
            count_ = readable;
        }
        for (unsigned i = 0; i < count_; ++i) {
            mmsghdr& now = headers_.data()[i];
            auto* const made = ::new (all_.data() + i) message(&at_[i].msg_hdr, now.msg_hdr);
            now.msg_hdr = *made->now();
        }
    }
    ~messages() {
        for (unsigned i = count_; i-- > 0;) all_.data()[i].~message();
    }
    messages(const messages&) = delete;
    messages& operator=(const messages&) = delete;

    // The kernel's error for what could not be read.
    mmsghdr* now() noexcept { return count_ == 0 ? at_ : headers_.data(); }
    unsigned count(unsigned asked) const noexcept { return count_ == 0 ? asked : count_; }
    // The first `done` of them.
    void were(bool received, unsigned done) noexcept {
        for (unsigned i = 0; i < std::min(done, count_); ++i) {
            const mmsghdr& now = headers_.data()[i];
            message::received(&at_[i].msg_len, now.msg_len);
            if (!received) continue;
            *all_.data()[i].now() = now.msg_hdr;
            (void)all_.data()[i].received();
        }
    }

  private:
    static constexpr unsigned most = IOV_MAX;
    argument pinned_;
    mmsghdr* at_;
    unsigned count_;
    array_room<mmsghdr, 1> headers_;
    array_room<message, 1> all_;
};

// What lasts longer than the call: a new program's, for a process that shares its memory with the one that made it may end
// there, so nothing is pinned; and what the C library keeps.
void* keep(const void* home) noexcept {
    native_handles* const all = movers();
    if (all == nullptr || !all->may_move(home)) return const_cast<void*>(home);
    const int error = errno;
    void* const now = all->keep_for_foreign(home);
    errno = error;
    return now;
}
const char* keep_text(const char* home) noexcept { return static_cast<const char*>(keep(home)); }

// A list of texts up to a null, kept. In a handler in the midst of compiled code they may be elsewhere: then it is a
// copy of the list that says where.
class kept_texts {
  public:
    explicit kept_texts(char* const* home) noexcept : now_(home) {
        if (home == nullptr || movers() == nullptr) return;
        auto* const list = static_cast<char* const*>(keep(home));
        std::size_t count = 0;
        bool moved = false;
        for (char* one = nullptr;; ++count) {
            if (!copy(&one, list + count, sizeof one)) return; // the kernel's error
            if (one == nullptr) break;
            moved = keep(one) != one || moved;
        }
        now_ = list;
        if (!moved) return;
        copies_.make(count + 1);
        char** const copies = copies_.data();
        if (copies == nullptr) return;
        for (std::size_t i = 0; i < count; ++i) copies[i] = static_cast<char*>(keep(list[i]));
        copies[count] = nullptr;
        now_ = copies;
    }
    char* const* now() const noexcept { return now_; }

  private:
    char* const* now_;
    array_room<char*, 16> copies_;
};

} // namespace

// They lie beside each other, so that all are found before a handler needs one.
#define OBASE_SERVED_AS(result, name, parameters)                                                  \
    extern "C" __attribute__((visibility("hidden"))) result obase_served_##name parameters;        \
    extern "C" __attribute__((visibility("hidden"))) next_function next_##name __asm__(            \
        "obase_next_" #name);                                                                      \
    __asm__(".pushsection obase_next, \"aw\"\n"                                                    \
            "    .balign 8\n"                                                                      \
            "obase_next_" #name ":\n"                                                              \
            "    .quad obase_served_" #name ", 1f, 0\n"                                            \
            ".section .rodata.str1.1, \"aMS\", @progbits, 1\n"                                     \
            "1:  .asciz \"" #name "\"\n"                                                           \
            ".text\n"                                                                              \
            ".weak " #name "\n"                                                                    \
            ".type " #name ", @function\n" #name ":\n"                                             \
            "    .cfi_startproc\n"                                                                 \
            "    jmp *obase_next_" #name "(%rip)\n"                                                \
            "    .cfi_endproc\n"                                                                   \
            ".size " #name ", . - " #name "\n"                                                     \
            ".popsection");                                                                        \
    result obase_served_##name parameters
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
#if __GLIBC_PREREQ(2, 36)
OBASE_SERVED(void, arc4random_buf, (address to, size_t n), to, n)
#endif
OBASE_SERVED(int, eventfd_read, (int file, uint64_t* to), file, to)
OBASE_SERVED(ssize_t, getdents64, (int file, address to, size_t n), file, to, n)
OBASE_SERVED(int, mq_send, (int queue, const char* from, size_t n, unsigned priority), queue, from,
             n, priority)
OBASE_SERVED(ssize_t, mq_receive, (int queue, char* to, size_t n, unsigned* priority), queue, to, n,
             priority)
OBASE_SERVED(int, mq_timedsend,
             (int queue, const char* from, size_t n, unsigned priority, const timespec* limit),
             queue, from, n, priority, limit)
OBASE_SERVED(ssize_t, mq_timedreceive,
             (int queue, char* to, size_t n, unsigned* priority, const timespec* limit), queue, to,
             n, priority, limit)
OBASE_SERVED(int, mq_unlink, (text name), name)
OBASE_SERVED(int, mq_getattr, (int queue, address to), queue, to)
OBASE_SERVED(int, mq_setattr, (int queue, const void* wanted, address before), queue, wanted,
             before)
OBASE_SERVED(ssize_t, sendfile, (int to, int from, off_t* at, size_t n), to, from, at, n)
OBASE_SERVED(ssize_t, sendfile64, (int to, int from, off_t* at, size_t n), to, from, at, n)
OBASE_SERVED(ssize_t, splice,
             (int from, off_t* from_at, int to, off_t* to_at, size_t n, unsigned flags), from,
             from_at, to, to_at, n, flags)
OBASE_SERVED(ssize_t, copy_file_range,
             (int from, off_t* from_at, int to, off_t* to_at, size_t n, unsigned flags), from,
             from_at, to, to_at, n, flags)
OBASE_SERVED(int, msgsnd, (int queue, const void* from, size_t n, int flags), queue, from, n, flags)
OBASE_SERVED(ssize_t, msgrcv, (int queue, address to, size_t n, long type, int flags), queue, to, n,
             type, flags)
OBASE_SERVED(int, semop, (int of, address operations, size_t count), of, operations, count)
OBASE_SERVED(int, semtimedop, (int of, address operations, size_t count, const timespec* limit), of,
             operations, count, limit)

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
OBASE_SERVED(int, renameat2, (int at, text from, int there, text to, unsigned flags), at, from,
             there, to, flags)
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
OBASE_SERVED(int, futimesat, (int at, text name, const timeval* times), at, name, times)
OBASE_SERVED(int, utime, (text name, const void* times), name, times)
OBASE_SERVED(int, utimes, (text name, const timeval* times), name, times)
OBASE_SERVED(int, lutimes, (text name, const timeval* times), name, times)
OBASE_SERVED(int, futimes, (int file, const timeval* times), file, times)
OBASE_SERVED(int, futimens, (int file, const timespec* times), file, times)
OBASE_SERVED(char*, getcwd, (char* to, size_t n), to, n)
OBASE_SERVED(int, linkat, (int at, text from, int there, text to, int flags), at, from, there, to,
             flags)
OBASE_SERVED(int, symlinkat, (text from, int at, text to), from, at, to)
OBASE_SERVED(int, mknod, (text name, mode_t mode, dev_t device), name, mode, device)
OBASE_SERVED(int, mknodat, (int at, text name, mode_t mode, dev_t device), at, name, mode, device)
OBASE_SERVED(int, mkfifoat, (int at, text name, mode_t mode), at, name, mode)
OBASE_SERVED(int, fchmodat, (int at, text name, mode_t mode, int flags), at, name, mode, flags)
OBASE_SERVED(int, fchownat, (int at, text name, uid_t user, gid_t group, int flags), at, name, user,
             group, flags)
OBASE_SERVED(int, euidaccess, (text name, int how), name, how)
OBASE_SERVED(int, eaccess, (text name, int how), name, how)
OBASE_SERVED(long, pathconf, (text name, int what), name, what)
OBASE_SERVED(int, chroot, (text name), name)
OBASE_SERVED(int, mkostemp, (char* name, int flags), name, flags)
OBASE_SERVED(int, mkostemp64, (char* name, int flags), name, flags)
OBASE_SERVED(int, mkstemps, (char* name, int tail), name, tail)
OBASE_SERVED(int, mkstemps64, (char* name, int tail), name, tail)
OBASE_SERVED(int, mkostemps, (char* name, int tail, int flags), name, tail, flags)
OBASE_SERVED(int, mkostemps64, (char* name, int tail, int flags), name, tail, flags)
OBASE_SERVED(int, memfd_create, (text name, unsigned flags), name, flags)
OBASE_SERVED(key_t, ftok, (text name, int project), name, project)
OBASE_SERVED(FILE*, setmntent, (text name, text how), name, how)
OBASE_SERVED(int, name_to_handle_at, (int at, text name, address to, int* mount, int flags), at,
             name, to, mount, flags)
OBASE_SERVED(int, open_by_handle_at, (int mount, address handle, int flags), mount, handle, flags)
OBASE_SERVED(ssize_t, getdirentries, (int file, char* to, size_t n, off_t* at), file, to, n, at)
OBASE_SERVED(ssize_t, getdirentries64, (int file, char* to, size_t n, off_t* at), file, to, n, at)
OBASE_SERVED(int, fanotify_mark, (int file, unsigned flags, uint64_t mask, int at, text name), file,
             flags, mask, at, name)
OBASE_SERVED(int, inotify_add_watch, (int file, text name, uint32_t mask), file, name, mask)
OBASE_SERVED(ssize_t, getxattr, (text name, text which, address to, size_t n), name, which, to, n)
OBASE_SERVED(ssize_t, lgetxattr, (text name, text which, address to, size_t n), name, which, to, n)
OBASE_SERVED(ssize_t, fgetxattr, (int file, text which, address to, size_t n), file, which, to, n)
OBASE_SERVED(ssize_t, listxattr, (text name, char* to, size_t n), name, to, n)
OBASE_SERVED(ssize_t, llistxattr, (text name, char* to, size_t n), name, to, n)
OBASE_SERVED(ssize_t, flistxattr, (int file, char* to, size_t n), file, to, n)
OBASE_SERVED(int, setxattr, (text name, text which, const void* from, size_t n, int flags), name,
             which, from, n, flags)
OBASE_SERVED(int, lsetxattr, (text name, text which, const void* from, size_t n, int flags), name,
             which, from, n, flags)
OBASE_SERVED(int, fsetxattr, (int file, text which, const void* from, size_t n, int flags), file,
             which, from, n, flags)
OBASE_SERVED(int, removexattr, (text name, text which), name, which)
OBASE_SERVED(int, lremovexattr, (text name, text which), name, which)
OBASE_SERVED(int, fremovexattr, (int file, text which), file, which)

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
#if __GLIBC_PREREQ(2, 35)
OBASE_SERVED(int, epoll_pwait2,
             (int file, address events, int count, const timespec* limit, const sigset_t* mask),
             file, events, count, limit, mask)
#endif
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
OBASE_SERVED(pid_t, wait3, (int* status, int how, address used), status, how, used)
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
OBASE_SERVED(int, clock_nanosleep,
             (clockid_t clock, int flags, const timespec* wanted, timespec* left), clock, flags,
             wanted, left)
OBASE_SERVED(int, clock_gettime, (clockid_t clock, timespec* to), clock, to)
OBASE_SERVED(int, clock_settime, (clockid_t clock, const timespec* wanted), clock, wanted)
OBASE_SERVED(int, clock_getres, (clockid_t clock, timespec* to), clock, to)
OBASE_SERVED(int, timer_create, (clockid_t clock, address event, address made), clock, event, made)
OBASE_SERVED(int, getitimer, (int which, address to), which, to)
OBASE_SERVED(int, setitimer, (int which, const void* wanted, address before), which, wanted, before)
OBASE_SERVED(int, timer_gettime, (timer_t which, address to), which, to)
OBASE_SERVED(int, timer_settime, (timer_t which, int flags, const void* wanted, address before),
             which, flags, wanted, before)
OBASE_SERVED(int, sigprocmask, (int how, const sigset_t* set, sigset_t* before), how, set, before)
OBASE_SERVED(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* before), how, set,
             before)
OBASE_SERVED(int, sigpending, (sigset_t * to), to)
OBASE_SERVED(int, sigsuspend, (const sigset_t* set), set)
OBASE_SERVED(int, sigwaitinfo, (const sigset_t* set, siginfo_t* to), set, to)
OBASE_SERVED(int, sigtimedwait, (const sigset_t* set, siginfo_t* to, const timespec* limit), set,
             to, limit)
OBASE_SERVED(int, sigwait, (const sigset_t* set, int* to), set, to)
OBASE_SERVED(int, signalfd, (int file, const sigset_t* set, int flags), file, set, flags)
OBASE_SERVED(clock_t, times, (address to), to)
OBASE_SERVED(int, thrd_sleep, (const timespec* wanted, timespec* left), wanted, left)
OBASE_SERVED(int, sysinfo, (address to), to)
OBASE_SERVED(int, capget, (address header, address to), header, to)
OBASE_SERVED(int, capset, (address header, const void* wanted), header, wanted)
OBASE_SERVED(int, msgctl, (int of, int what, address about), of, what, about)
OBASE_SERVED(int, shmctl, (int of, int what, address about), of, what, about)
#if __GLIBC_PREREQ(2, 36)
OBASE_SERVED(int, pidfd_send_signal, (int whom, int signal, const void* about, unsigned flags),
             whom, signal, about, flags)
// Of the addresses that it names none is read.
OBASE_SERVED(ssize_t, process_madvise,
             (int whom, const iovec* vector, size_t count, int what, unsigned flags), whom, vector,
             count, what, flags)
#endif

// The machine.
OBASE_SERVED(int, settimeofday, (const timeval* wanted, const void* zone), wanted, zone)
OBASE_SERVED(int, adjtime, (const timeval* by, timeval* before), by, before)
OBASE_SERVED(int, adjtimex, (address about), about)
OBASE_SERVED(int, __adjtimex, (address about), about)
OBASE_SERVED(int, ntp_adjtime, (address about), about)
OBASE_SERVED(int, clock_adjtime, (clockid_t clock, address about), clock, about)
OBASE_SERVED(int, sethostname, (text name, size_t n), name, n)
OBASE_SERVED(int, setdomainname, (text name, size_t n), name, n)
OBASE_SERVED(int, mount, (text what, text where, text kind, unsigned long flags, const void* more),
             what, where, kind, flags, more)
OBASE_SERVED(int, umount, (text where), where)
OBASE_SERVED(int, umount2, (text where, int flags), where, flags)
OBASE_SERVED(int, pivot_root, (text root, text before), root, before)
OBASE_SERVED(int, swapon, (text name, int flags), name, flags)
OBASE_SERVED(int, swapoff, (text name), name)
OBASE_SERVED(int, acct, (text name), name)
OBASE_SERVED(int, quotactl, (int what, text device, int of, address about), what, device, of, about)
OBASE_SERVED(int, klogctl, (int what, char* to, int n), what, to, n)
OBASE_SERVED(int, getgroups, (int count, gid_t* to), count, to)
OBASE_SERVED(int, setgroups, (size_t count, const gid_t* from), count, from)
OBASE_SERVED(int, getresuid, (uid_t * real, uid_t* effective, uid_t* saved), real, effective, saved)
OBASE_SERVED(int, getresgid, (gid_t * real, gid_t* effective, gid_t* saved), real, effective, saved)
// The first is where the pages are, not what is there.
OBASE_SERVED(int, mincore, (word pages, size_t n, unsigned char* to), pages, n, to)
OBASE_SERVED(int, gethostname, (char* to, size_t n), to, n)
OBASE_SERVED(int, prlimit, (pid_t whom, int of, const void* wanted, address before), whom, of,
             wanted, before)
OBASE_SERVED(int, prlimit64, (pid_t whom, int of, const void* wanted, address before), whom, of,
             wanted, before)
OBASE_SERVED(int, sched_setaffinity, (pid_t whom, size_t n, const cpu_set_t* set), whom, n, set)
OBASE_SERVED(int, sched_getaffinity, (pid_t whom, size_t n, cpu_set_t* set), whom, n, set)
OBASE_SERVED(int, pthread_setaffinity_np, (pthread_t whom, size_t n, const cpu_set_t* set), whom, n,
             set)
OBASE_SERVED(int, pthread_getaffinity_np, (pthread_t whom, size_t n, cpu_set_t* set), whom, n, set)
OBASE_SERVED(int, pthread_setname_np, (pthread_t whom, text name), whom, name)
OBASE_SERVED(int, pthread_getname_np, (pthread_t whom, char* to, size_t n), whom, to, n)
OBASE_SERVED(int, sched_getparam, (pid_t whom, sched_param* to), whom, to)
OBASE_SERVED(int, sched_setparam, (pid_t whom, const sched_param* wanted), whom, wanted)
OBASE_SERVED(int, sched_setscheduler, (pid_t whom, int how, const sched_param* wanted), whom, how,
             wanted)
OBASE_SERVED(int, sched_rr_get_interval, (pid_t whom, timespec* to), whom, to)

// By their other names.
OBASE_SERVED(ssize_t, __read, (int file, address to, size_t n), file, to, n)
OBASE_SERVED(ssize_t, __write, (int file, const void* from, size_t n), file, from, n)
OBASE_SERVED(ssize_t, __pread64, (int file, address to, size_t n, off_t at), file, to, n, at)
OBASE_SERVED(ssize_t, __pwrite64, (int file, const void* from, size_t n, off_t at), file, from, n,
             at)
OBASE_SERVED(ssize_t, __send, (int file, const void* from, size_t n, int flags), file, from, n,
             flags)
OBASE_SERVED(int, __connect, (int file, const sockaddr* to, socklen_t length), file, to, length)
OBASE_SERVED(int, __poll, (pollfd * files, nfds_t count, int ms), files, count, ms)
OBASE_SERVED(int, __select, (int count, fd_set* in, fd_set* out, fd_set* other, timeval* limit),
             count, in, out, other, limit)
OBASE_SERVED(int, __pipe, (int* made), made)
OBASE_SERVED(pid_t, __wait, (int* status), status)
OBASE_SERVED(pid_t, __waitpid, (pid_t whom, int* status, int how), whom, status, how)
OBASE_SERVED(int, __nanosleep, (const timespec* wanted, timespec* left), wanted, left)
OBASE_SERVED(int, __statfs, (text name, address to), name, to)
// stat() and mknod() of what was compiled before glibc 2.33.
OBASE_SERVED(int, __xstat, (int version, text name, address to), version, name, to)
OBASE_SERVED(int, __xstat64, (int version, text name, address to), version, name, to)
OBASE_SERVED(int, __lxstat, (int version, text name, address to), version, name, to)
OBASE_SERVED(int, __lxstat64, (int version, text name, address to), version, name, to)
OBASE_SERVED(int, __fxstat, (int version, int file, address to), version, file, to)
OBASE_SERVED(int, __fxstat64, (int version, int file, address to), version, file, to)
OBASE_SERVED(int, __fxstatat, (int version, int at, text name, address to, int flags), version, at,
             name, to, flags)
OBASE_SERVED(int, __fxstatat64, (int version, int at, text name, address to, int flags), version,
             at, name, to, flags)
OBASE_SERVED(int, __xmknod, (int version, text name, mode_t mode, dev_t* device), version, name,
             mode, device)
OBASE_SERVED(int, __xmknodat, (int version, int at, text name, mode_t mode, dev_t* device), version,
             at, name, mode, device)

// What they are with _FORTIFY_SOURCE: `room` is what the caller knows of the buffer.
OBASE_SERVED(ssize_t, __read_chk, (int file, address to, size_t n, size_t room), file, to, n, room)
OBASE_SERVED(ssize_t, __pread_chk, (int file, address to, size_t n, off_t at, size_t room), file,
             to, n, at, room)
OBASE_SERVED(ssize_t, __pread64_chk, (int file, address to, size_t n, off_t at, size_t room), file,
             to, n, at, room)
OBASE_SERVED(ssize_t, __recv_chk, (int file, address to, size_t n, size_t room, int flags), file,
             to, n, room, flags)
OBASE_SERVED(ssize_t, __recvfrom_chk,
             (int file, address to, size_t n, size_t room, int flags, sockaddr* whose,
              socklen_t* length),
             file, to, n, room, flags, whose, length)
OBASE_SERVED(size_t, __fread_chk, (address to, size_t room, size_t each, size_t count, FILE* from),
             to, room, each, count, from)
OBASE_SERVED(size_t, __fread_unlocked_chk,
             (address to, size_t room, size_t each, size_t count, FILE* from), to, room, each,
             count, from)
OBASE_SERVED(ssize_t, __readlink_chk, (text name, char* to, size_t n, size_t room), name, to, n,
             room)
OBASE_SERVED(ssize_t, __readlinkat_chk, (int at, text name, char* to, size_t n, size_t room), at,
             name, to, n, room)
OBASE_SERVED(char*, __getcwd_chk, (char* to, size_t n, size_t room), to, n, room)
OBASE_SERVED(int, __gethostname_chk, (char* to, size_t n, size_t room), to, n, room)
OBASE_SERVED(int, __getgroups_chk, (int count, gid_t* to, size_t room), count, to, room)
OBASE_SERVED(int, __poll_chk, (pollfd * files, nfds_t count, int ms, size_t room), files, count, ms,
             room)
OBASE_SERVED(int, __ppoll_chk,
             (pollfd * files, nfds_t count, const timespec* limit, const sigset_t* mask,
              size_t room),
             files, count, limit, mask, room)
OBASE_SERVED(int, __open_2, (text name, int flags), name, flags)
OBASE_SERVED(int, __open64_2, (text name, int flags), name, flags)
OBASE_SERVED(int, __openat_2, (int at, text name, int flags), at, name, flags)
OBASE_SERVED(int, __openat64_2, (int at, text name, int flags), at, name, flags)

// Vectors, messages.
#define OBASE_SERVED_VECTOR(name, parameters, ...)                                                 \
    OBASE_SERVED_AS(ssize_t, name, parameters) {                                                   \
        const argument_vector buffers(vector, static_cast<size_t>(count));                         \
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
OBASE_SERVED_AS(ssize_t, vmsplice, (int file, const iovec* vector, size_t count, unsigned flags)) {
    const argument_vector buffers(vector, count);
    return next_vmsplice.call<ssize_t>(file, buffers.now(), count, flags);
}
#define OBASE_SERVED_REMOTE(name)                                                                  \
    OBASE_SERVED_AS(ssize_t, name,                                                                 \
                    (pid_t whom, const iovec* vector, size_t count, const iovec* theirs,           \
                     size_t their_count, size_t flags)) {                                          \
        const argument_vector buffers(vector, count);                                              \
        const argument others(theirs);                                                             \
        return next_##name.call<ssize_t>(whom, buffers.now(), count, others.now(), their_count,    \
                                         flags);                                                   \
    }
OBASE_SERVED_REMOTE(process_vm_readv)
OBASE_SERVED_REMOTE(process_vm_writev)
OBASE_SERVED_AS(ssize_t, sendmsg, (int file, msghdr* home, int flags)) {
    msghdr read;
    const argument pinned(home);
    auto* const at = static_cast<msghdr*>(pinned.now());
    if (movers() == nullptr || !copy(&read, at, sizeof read))
        return next_sendmsg.call<ssize_t>(file, at, flags);
    message now(at, read);
    return next_sendmsg.call<ssize_t>(file, now.now(), flags);
}
OBASE_SERVED_AS(ssize_t, recvmsg, (int file, msghdr* home, int flags)) {
    msghdr read;
    const argument pinned(home);
    auto* const at = static_cast<msghdr*>(pinned.now());
    if (movers() == nullptr || !copy(&read, at, sizeof read))
        return next_recvmsg.call<ssize_t>(file, at, flags);
    message now(at, read);
    const ssize_t done = next_recvmsg.call<ssize_t>(file, now.now(), flags);
    if (done >= 0 && !now.received()) {
        errno = EFAULT;
        return -1;
    }
    return done;
}
OBASE_SERVED_AS(int, sendmmsg, (int file, mmsghdr* home, unsigned count, int flags)) {
    messages now(home, count);
    const int done = next_sendmmsg.call<int>(file, now.now(), now.count(count), flags);
    if (done > 0) now.were(false, static_cast<unsigned>(done));
    return done;
}
OBASE_SERVED_AS(int, recvmmsg,
                (int file, mmsghdr* home, unsigned count, int flags, timespec* limit)) {
    messages now(home, count);
    const argument until(limit);
    const int done = next_recvmmsg.call<int>(file, now.now(), now.count(count), flags,
                                             static_cast<timespec*>(until.now()));
    if (done > 0) now.were(true, static_cast<unsigned>(done));
    return done;
}

// The stack is the kernel's from here on.
OBASE_SERVED_AS(int, sigaltstack, (const stack_t* wanted, stack_t* before)) {
    if (stack_t read; wanted != nullptr && copy_from(&read, wanted, sizeof read) &&
                      (read.ss_flags & SS_DISABLE) == 0)
        keep(read.ss_sp);
    return serve<int>(next_sigaltstack, wanted, before);
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
OBASE_SERVED_OPEN(__open, (text name, int flags, ...), name)
OBASE_SERVED_OPEN(__open64, (text name, int flags, ...), name)
OBASE_SERVED_OPEN(openat, (int at, text name, int flags, ...), at, name)
OBASE_SERVED_OPEN(openat64, (int at, text name, int flags, ...), at, name)
OBASE_SERVED_AS(int, mq_open, (text name, int flags, ...)) {
    va_list list;
    va_start(list, flags);
    const auto mode = va_arg(list, mode_t);
    address const about = va_arg(list, address);
    va_end(list);
    return serve<int>(next_mq_open, name, flags, mode, about);
}
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
OBASE_SERVED_CONTROL(__fcntl, int)
OBASE_SERVED_AS(int, semctl, (int of, int number, int what, ...)) {
    va_list list;
    va_start(list, what);
    address const more = va_arg(list, address);
    va_end(list);
    return serve<int>(next_semctl, of, number, what, more);
}
// The first address is the other process's.
OBASE_SERVED_AS(long, ptrace, (int what, ...)) {
    va_list list;
    va_start(list, what);
    const auto whom = va_arg(list, pid_t);
    const auto theirs = va_arg(list, word);
    address const more = va_arg(list, address);
    va_end(list);
    return serve<long>(next_ptrace, what, whom, theirs, more);
}
OBASE_SERVED_CONTROL(ioctl, unsigned long)
OBASE_SERVED_AS(int, prctl, (int what, ...)) {
    va_list list;
    va_start(list, what);
    address more[4];
    for (address& each : more) each = va_arg(list, address);
    va_end(list);
    return serve<int>(next_prctl, what, more[0], more[1], more[2], more[3]);
}

// Memory that a stream has from here on.
OBASE_SERVED_AS(int, setvbuf, (FILE * file, char* buffer, int how, size_t n)) {
    keep(buffer);
    return next_setvbuf.call<int>(file, buffer, how, n);
}
OBASE_SERVED_AS(void, setbuf, (FILE * file, char* buffer)) {
    keep(buffer);
    next_setbuf.call<void>(file, buffer);
}
OBASE_SERVED_AS(void, setbuffer, (FILE * file, char* buffer, size_t n)) {
    keep(buffer);
    next_setbuffer.call<void>(file, buffer, n);
}

// Other programs.
OBASE_SERVED_AS(int, execve, (text name, char* const* list, char* const* environment)) {
    const kept_texts texts(list), others(environment);
    return next_execve.call<int>(keep_text(name), texts.now(), others.now());
}
OBASE_SERVED_AS(int, execvpe, (text name, char* const* list, char* const* environment)) {
    const kept_texts texts(list), others(environment);
    return next_execvpe.call<int>(keep_text(name), texts.now(), others.now());
}
OBASE_SERVED_AS(int, execv, (text name, char* const* list)) {
    const kept_texts texts(list), others(environ);
    if (others.now() != environ)
        return next_execve.call<int>(keep_text(name), texts.now(), others.now());
    return next_execv.call<int>(keep_text(name), texts.now());
}
OBASE_SERVED_AS(int, execvp, (text name, char* const* list)) {
    const kept_texts texts(list), others(environ);
    if (others.now() != environ)
        return next_execvpe.call<int>(keep_text(name), texts.now(), others.now());
    return next_execvp.call<int>(keep_text(name), texts.now());
}
OBASE_SERVED_AS(int, fexecve, (int file, char* const* list, char* const* environment)) {
    const kept_texts texts(list), others(environment);
    return next_fexecve.call<int>(file, texts.now(), others.now());
}
OBASE_SERVED_AS(int, execveat,
                (int at, text name, char* const* list, char* const* environment, int flags)) {
    const kept_texts texts(list), others(environment);
    return next_execveat.call<int>(at, keep_text(name), texts.now(), others.now(), flags);
}
// The arguments as a list: up to a null, behind which execle has the environment.
#define OBASE_SERVED_LIST(name, with_vector, ...)                                                  \
    OBASE_SERVED_AS(int, name, (text file, text first, ...)) {                                     \
        va_list list;                                                                              \
        va_start(list, first);                                                                     \
        size_t count = 0;                                                                          \
        for (text each = first; each != nullptr; each = va_arg(list, text)) ++count;               \
        va_end(list);                                                                              \
        auto** const made = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));    \
        va_start(list, first);                                                                     \
        made[0] = const_cast<char*>(first);                                                        \
        for (size_t i = 1; i <= count; ++i) made[i] = va_arg(list, char*); /* and the null */      \
        return obase_served_##with_vector(file, made __VA_OPT__(, ) __VA_ARGS__);                  \
    }
OBASE_SERVED_LIST(execl, execv)
OBASE_SERVED_LIST(execlp, execvp)
OBASE_SERVED_LIST(execle, execve, va_arg(list, char* const*))
// Faults are not served meanwhile: all signals are blocked.
#define OBASE_SERVED_SPAWN(name)                                                                   \
    OBASE_SERVED_AS(int, name,                                                                     \
                    (pid_t * made, text file, const posix_spawn_file_actions_t* actions,           \
                     const posix_spawnattr_t* attributes, char* const* list,                       \
                     char* const* environment)) {                                                  \
        const kept_texts texts(list), others(environment);                                         \
        return serve<int>(next_##name, made, keep_text(file), actions, attributes, texts.now(),    \
                          others.now());                                                           \
    }
OBASE_SERVED_SPAWN(posix_spawn)
OBASE_SERVED_SPAWN(posix_spawnp)

OBASE_SERVED_AS(int, system, (text command)) {
    const kept_texts others(environ);
    return next_system.call<int>(keep_text(command));
}
OBASE_SERVED_AS(FILE*, popen, (text command, text how)) {
    const kept_texts others(environ);
    return serve<FILE*>(next_popen, keep_text(command), how);
}

extern "C" {
extern next_function __start_obase_next[], __stop_obase_next[];
}
static void find_all() noexcept {
    obase::os::skip_faults_of(obase_handles_copy_fault, obase_handles_copy_faulted);
    for (next_function* each = __start_obase_next; each != __stop_obase_next; ++each) each->find();
}
// Before the constructors of libraries.
__attribute__((section(".preinit_array"), used)) static void (*const find_first)() = find_all;
