// SPDX-License-Identifier: MIT
//
// What is taken for granted of the C library (glibc, x86-64; checked where it can be): the word at a
// control block + 8 is the thread's vector of thread-local storage (the DTV of the ELF specification,
// which debuggers and sanitizers read, too), and every thread has registered its list of robust mutexes
// with the kernel, which lies at the same distance from each control block.
#include "os/thread_memory.hpp"

#include "os/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <new>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace obase::os {

namespace {

// The kernel keeps at least 128 MiB below the initial thread's stack free of other mappings.
constexpr std::uintptr_t surely_initial_stack = std::uintptr_t{64} << 20;
// More than any program has; a larger number says that what was read is no vector.
constexpr std::uintptr_t most_modules = std::uintptr_t{1} << 16;

#if defined(__GLIBC__)
constexpr bool understood = true;
#else
constexpr bool understood = false;
#endif

// True if the process's first thread by number is the one that the kernel started the program on. In the
// child of a fork the forking thread is the first, on whatever stack.
constinit bool leader_is_initial = true;

std::uintptr_t top_of_initial_stack() noexcept {
    return static_cast<std::uintptr_t>(getauxval(AT_RANDOM)); // lies there
}

bool on_initial_stack() noexcept {
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const std::uintptr_t top = top_of_initial_stack();
    return frame < top && top - frame < surely_initial_stack;
}

std::uintptr_t own_pointer() noexcept {
    std::uintptr_t pointer = 0;
    asm("mov %%fs:0, %0" : "=r"(pointer)); // the control block's first word is its address
    return pointer;
}

// The list head that a thread has registered. False: the kernel does not say.
bool robust_list_of(std::uint32_t id, std::uintptr_t* head) noexcept {
    std::size_t bytes = 0;
    *head = 0;
    if (syscall(SYS_get_robust_list, static_cast<pid_t>(id), head, &bytes) == 0) return true;
    return errno == ESRCH; // it has ended
}

// Of this process; false where there is none. A thread's control block may be gone when it is read.
bool read_own_memory(std::uintptr_t from, void* to, std::size_t bytes) noexcept {
    const iovec target{to, bytes};
    const iovec source{reinterpret_cast<void*>(from), bytes};
    const ssize_t got = process_vm_readv(getpid(), &target, 1, &source, 1, 0);
    if (got >= 0 || errno == EFAULT) return got == static_cast<ssize_t>(bytes);
    const int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC); // that call is not allowed here
    if (fd < 0) return false;
    const bool all = pread(fd, to, bytes, static_cast<off_t>(from)) == static_cast<ssize_t>(bytes);
    close(fd);
    return all;
}

// An entry of the vector. Entry -1 holds the number of entries in `block`, entry 0 something else.
struct storage {
    std::uintptr_t block;
    std::uintptr_t to_free; // 0: the block is part of the static storage, beside the control block
    bool allocated() const noexcept { return block != 0 && block != ~std::uintptr_t{0}; }
};

const storage* own_vector() noexcept {
    return *reinterpret_cast<const storage* const*>(own_pointer() + sizeof(void*));
}

// Calls visit(begin, end, anonymous and writable) for each mapping, in address order, until it returns
// false. False: there is no list.
template <class Visit>
bool for_each_mapping(Visit&& visit) noexcept {
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char text[8192];
    std::size_t have = 0;
    bool whole = false;
    for (;;) {
        const ssize_t got = read(fd, text + have, sizeof text - 1 - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            whole = got == 0 && have == 0;
            break;
        }
        have += static_cast<std::size_t>(got);
        text[have] = '\0';
        char* line = text;
        bool more = true;
        while (char* end = std::strchr(line, '\n')) {
            *end = '\0';
            char* at = line;
            const std::uintptr_t begin = std::strtoull(at, &at, 16);
            const std::uintptr_t stop = *at == '-' ? std::strtoull(at + 1, &at, 16) : 0;
            // "begin-end rw-p offset device inode  path"
            const bool writable = std::strncmp(at, " rw-p ", 6) == 0;
            const char* path = std::strchr(line, '/');
            more = visit(begin, stop, writable && path == nullptr);
            line = end + 1;
            if (!more) break;
        }
        if (!more) {
            whole = true;
            break;
        }
        have -= static_cast<std::size_t>(line - text);
        if (have == sizeof text - 1) break; // no path is that long
        std::memmove(text, line, have);
    }
    close(fd);
    return whole;
}

int note_module(dl_phdr_info* module, std::size_t bytes, void* to) noexcept {
    if (bytes < offsetof(dl_phdr_info, dlpi_tls_modid) + sizeof module->dlpi_tls_modid) return 1;
    auto& table = *static_cast<std::vector<std::size_t>*>(to);
    for (ElfW(Half) i = 0; i < module->dlpi_phnum; ++i) {
        if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
        const std::size_t number = module->dlpi_tls_modid;
        if (number >= most_modules) return 1;
        try {
            if (table.size() <= number) table.resize(number + 1);
        } catch (const std::bad_alloc&) {
            return 1;
        }
        table[number] = module->dlpi_phdr[i].p_memsz;
    }
    return 0;
}

struct sought_module {
    std::size_t number;
    std::size_t bytes; // of thread-local storage; 0: not found
};

int find_module(dl_phdr_info* module, std::size_t bytes, void* to) noexcept {
    if (bytes < offsetof(dl_phdr_info, dlpi_tls_modid) + sizeof module->dlpi_tls_modid) return 1;
    auto& sought = *static_cast<sought_module*>(to);
    if (module->dlpi_tls_modid != sought.number) return 0;
    for (ElfW(Half) i = 0; i < module->dlpi_phnum; ++i)
        if (module->dlpi_phdr[i].p_type == PT_TLS) sought.bytes = module->dlpi_phdr[i].p_memsz;
    return 1;
}

} // namespace

bool next_own_dynamic_storage(std::size_t* at, std::uintptr_t* begin,
                              std::uintptr_t* end) noexcept {
    if (!understood) return false;
    const storage* own = own_vector();
    const std::uintptr_t entries = own[-1].block;
    if (entries > most_modules) return false;
    while (*at <= entries) {
        const std::size_t number = (*at)++;
        if (!own[number].allocated() || own[number].to_free == 0) continue;
        sought_module sought{number, 0};
        dl_iterate_phdr(find_module, &sought);
        if (sought.bytes == 0) continue; // unloaded, and its storage with it
        *begin = own[number].block;
        *end = *begin + sought.bytes;
        return true;
    }
    return false;
}

thread_place own_place() noexcept {
    thread_place place;
    if (!understood) return place;
    if (on_initial_stack()) {
        place.pointer = own_pointer();
        return place;
    }
    const stack_range stack = own_stack();
    if (stack.low == nullptr) return place;
    place.pointer = own_pointer();
    const auto low = reinterpret_cast<std::uintptr_t>(stack.low);
    const auto high = reinterpret_cast<std::uintptr_t>(stack.high);
    const std::uintptr_t top = top_of_initial_stack();
    if (low <= top && top < high) return place; // a deep stack, or a fiber's
    place.stack_low = low;
    place.stack_high = high;
    return place;
}

bool threads_at_fork::list_threads() noexcept try {
    others_.clear();
    std::uintptr_t own_list = 0;
    if (!robust_list_of(0, &own_list) || own_list == 0) return false;
    const std::uintptr_t distance = own_list - own_pointer();
    DIR* tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return false;
    bool all = true;
    const std::uint32_t self = thread_id();
    const auto leader = static_cast<std::uint32_t>(getpid());
    while (const dirent* task = readdir(tasks)) {
        const auto id = static_cast<std::uint32_t>(std::strtoul(task->d_name, nullptr, 10));
        if (id == 0 || id == self || (id == leader && leader_is_initial)) continue;
        std::uintptr_t list = 0;
        if (!robust_list_of(id, &list)) {
            all = false;
            break;
        }
        // 0: it has not come to the program's first function, or is past its last.
        if (list != 0) others_.push_back({id, list - distance, false});
    }
    closedir(tasks);
    return all;
} catch (const std::bad_alloc&) {
    return false;
}

void threads_at_fork::note() noexcept {
    module_bytes_.clear();
    noted_ = understood && dl_iterate_phdr(note_module, &module_bytes_) == 0;
    noted_ = noted_ && list_threads();
}

// A thread that was not there when the threads were noted has begun since, or it is long gone and its
// record could not be given back: then its control block may be anything.
bool threads_at_fork::known_is_lost(std::uint32_t id, const thread_place& place,
                                    const consumer& lost) noexcept {
    bool noted = false;
    for (other& one : others_)
        if (one.id == id && one.pointer == place.pointer) noted = one.found = true;
    if (place.stack_low == place.stack_high) return true; // the initial thread
    lost(place.stack_low, place.stack_high);
    return dynamic_storage_is_lost(place.pointer, lost) || !noted;
}

// The mapping around a control block, with those of its kind right below, has the thread's stack in it:
// glibc puts the block at the stack's upper end, whether or not it allocated the stack. What else
// may be in it is only not moved.
bool threads_at_fork::others_are_lost(const consumer& lost) noexcept {
    leader_is_initial = on_initial_stack();
    bool complete = true;
    std::size_t left = 0;
    for (const other& one : others_) {
        if (one.found) continue;
        ++left;
        complete = dynamic_storage_is_lost(one.pointer, lost) && complete;
    }
    if (left == 0) return complete;
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    const bool listed = for_each_mapping([&](std::uintptr_t begin, std::uintptr_t end, bool stack) {
        if (!stack) {
            high = 0;
            return true;
        }
        if (begin != high) low = begin;
        high = end;
        for (const other& one : others_)
            if (!one.found && one.pointer >= begin && one.pointer < end) {
                lost(low, end);
                break;
            }
        return true;
    });
    return listed && complete;
}

// The thread does not run any more, so its vector is as the fork has found it. It may have been about to
// be replaced: then either the old one is complete, or the comparison below fails.
bool threads_at_fork::dynamic_storage_is_lost(std::uintptr_t pointer,
                                              const consumer& lost) const noexcept {
    std::uintptr_t vector = 0;
    storage head{};
    if (!read_own_memory(pointer + sizeof(void*), &vector, sizeof vector)) return false;
    if (!read_own_memory(vector - sizeof(storage), &head, sizeof head)) return false;
    const std::uintptr_t entries = head.block;
    if (entries > most_modules) return false;
    const storage* own = own_vector();
    const std::uintptr_t own_entries = own[-1].block;
    for (std::uintptr_t i = 1; i <= entries;) {
        storage some[64];
        const std::uintptr_t count = std::min<std::uintptr_t>(std::size(some), entries - i + 1);
        if (!read_own_memory(vector + i * sizeof(storage), some, count * sizeof(storage)))
            return false;
        for (std::uintptr_t k = 0; k < count; ++k, ++i) {
            const storage& one = some[k];
            if (!one.allocated()) continue;
            if (one.to_free == 0) {
                const bool comparable =
                    i <= own_entries && own[i].allocated() && own[i].to_free == 0;
                if (comparable && own[i].block - own_pointer() != one.block - pointer) return false;
            } else {
                if (i >= module_bytes_.size() || module_bytes_[i] == 0) return false;
                lost(one.block, one.block + module_bytes_[i]);
            }
        }
    }
    return true;
}

} // namespace obase::os
