// SPDX-License-Identifier: MIT
//
// What happens when a home is accessed whose memory is elsewhere: the kernel raises SIGSEGV.
//
// The thread is offline, or never ran compiled code: foreign code found the home in memory. Its object comes home, the
// others of the run with it, and the access is made again. The thread waits until the others have polled.
//
// The thread is inside: compiled code, or a function of the C library on its behalf, used a home without translating
// it, or one that was freed. That is a mistake, of the program or of the compiler, and waiting here could be for ever:
// a message says what was accessed, and the signal takes its course.
#include "handles/native.hpp"

#include "os/segment_fault.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace obase::handles {

namespace {

void name_place(const void* at, char (&text)[160]) noexcept {
    Dl_info found{};
    if (dladdr(const_cast<void*>(at), &found) != 0 && found.dli_fname != nullptr) {
        const char* const file = std::strrchr(found.dli_fname, '/');
        const auto offset = static_cast<unsigned long>(static_cast<const char*>(at) -
                                                       static_cast<const char*>(found.dli_fbase));
        std::snprintf(text, sizeof text, "%s (%s+0x%lx)",
                      found.dli_sname != nullptr ? found.dli_sname : "a function without a name",
                      file != nullptr ? file + 1 : found.dli_fname, offset);
        return;
    }
    std::snprintf(text, sizeof text, "%p", at);
}

struct retried_access {
    const void* address;
    std::uint64_t came_home;
    bool operator==(const retried_access&) const = default;
};
__thread retried_access retried;

} // namespace

void native_handles::tell(native::atomic<std::uint32_t>& told, const char* text) noexcept {
    std::uint32_t not_yet = 0;
    if (told.cas_acq_rel(not_yet, 1)) (void)!::write(STDERR_FILENO, text, std::strlen(text));
}

void native_handles::tell_no_memory() noexcept {
    tell(told_no_memory_, "obase: objects cannot come home: no memory, no address space, or "
                          "more mappings than vm.max_map_count\n");
}

// Precondition: in_homes(address).
native_handles::served native_handles::serve_fault(const void* address) noexcept {
    const auto home = reinterpret_cast<std::uint64_t>(address);
    const std::size_t run = (home - base_) >> heap::run_shift;
    if (inside_runtime != 0) return served::not_ours;
    if (away(run).load_acquire() == at_home) {
        // Another thread's fault may have brought it home since the access, which is made again, then. Without a
        // home-coming in between a second one is none that this serves.
        const retried_access now{address, came_home_.load_relaxed()};
        if (retried == now) return served::not_ours;
        retried = now;
        return served::done;
    }
    record* const self = own_record_if_any();
    if (self != nullptr && self->epoch.load_relaxed() != 0) return served::mistake;
    if (blind_.load_relaxed() != 0) return served::mistake;
    if (in_stress(address) && !stress_->find(home).live) return served::mistake;
    faults_.fetch_add_relaxed(1);
    const runtime_memory own;
    for (;;) {
        {
            const work mine(*this, self);
            if (!in_stress(address) && away(run).load_acquire() != open) return served::done;
            const home_result result =
                in_stress(address) ? come_home_stressed(home, self) : come_home(run, self);
            if (result == home_result::done) return served::done;
            if (result == home_result::no_memory) {
                tell_no_memory();
                return served::mistake;
            }
        }
        if (blind_.load_seq_cst() != 0) return served::mistake;
        native::yield();
    }
}

void native_handles::explain_fault(const void* address, const void* instruction) noexcept {
    const auto home = reinterpret_cast<std::uint64_t>(address);
    char where[160];
    name_place(instruction, where);
    char text[640];
    int length = 0;
    if (in_stress(address)) {
        const stress_heap::object object = stress_->find(home);
        char born[160];
        name_place(object.caller, born);
        if (object.size == 0 && object.home == 0)
            length =
                std::snprintf(text, sizeof text,
                              "obase: %s accessed %p, where no object was born\n", where, address);
        else
            length = std::snprintf(
                text, sizeof text,
                "obase: %s accessed byte %ld of an object of %zu bytes, allocated in %s, %s\n",
                where, static_cast<long>(home - object.home), object.size, born,
                object.live ? "by its home and not by a translation" : "which was freed");
    } else {
        length = std::snprintf(
            text, sizeof text,
            "obase: %s accessed %p, the home of an object that has moved, or was freed, and not a "
            "translation; OBASE_HANDLES_STRESS=1 finds which\n",
            where, address);
    }
    if (length > 0)
        (void)!::write(STDERR_FILENO, text,
                       std::min(static_cast<std::size_t>(length), sizeof text - 1));
}

void native_handles::serve_faults() noexcept {
    constexpr auto ours = [](const void* address) noexcept {
        native_handles* const all = if_made();
        return all != nullptr && all->in_homes(address);
    };
    os::serve_segment_faults(ours, [](const void* address, const void* instruction) noexcept {
        native_handles* const all = if_made();
        switch (all->serve_fault(address)) {
        case served::done:
            return true;
        case served::mistake:
            if (os::skips_faults_of(instruction)) return false;
            all->explain_fault(address, instruction);
            return false;
        case served::not_ours:
            return false;
        }
        return false;
    });
}

} // namespace obase::handles
