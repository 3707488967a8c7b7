// SPDX-License-Identifier: MIT
#include "os/copies.hpp"

#include "os/thread.hpp"

#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>

// Not there in a program that is linked statically as a whole, which loads no plugins.
#pragma weak dlopen
#pragma weak dladdr

namespace obase::os {

// What a note leads to. Version 1 of what two copies, maybe of two versions of obase, agree upon: two
// 32-bit words.
struct copy_state {
    word::native_atomic<std::uint32_t>
        lock; // of the copy whose module was loaded first: all use it
    word::native_atomic<std::uint32_t> started; // 1: this copy was the first to start
};
static_assert(sizeof(copy_state) == 8);

} // namespace obase::os

extern "C" {
[[gnu::used, gnu::visibility("hidden")]] constinit obase::os::copy_state obase_copy_state{};
}

// The distance from the description to the state.
asm(R"(
    .pushsection .note.obase, "a", @note
    .balign 4
    .long 6, 8, 1
    .asciz "obase"
    .balign 4
0:  .quad obase_copy_state - 0b
    .popsection
)");

namespace obase::os {

namespace {

copy_state* state_in(const char* note, const char* end) noexcept {
    while (end - note >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
        ElfW(Nhdr) head;
        std::memcpy(&head, note, sizeof head);
        const char* name = note + sizeof head;
        const char* description = name + ((head.n_namesz + 3U) & ~3U);
        const char* next = description + ((head.n_descsz + 3U) & ~3U);
        if (next > end) return nullptr;
        if (head.n_type == 1 && head.n_namesz == 6 && head.n_descsz == 8 &&
            std::memcmp(name, "obase", 6) == 0) {
            std::int64_t distance = 0;
            std::memcpy(&distance, description, sizeof distance);
            return reinterpret_cast<copy_state*>(reinterpret_cast<std::intptr_t>(description) +
                                                 distance);
        }
        note = next;
    }
    return nullptr;
}

struct search {
    copy_state* first = nullptr; // in the order of loading
    bool other_started = false;
};

int inspect_module(dl_phdr_info* module, std::size_t, void* context) noexcept {
    auto& found = *static_cast<search*>(context);
    for (ElfW(Half) i = 0; i < module->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = module->dlpi_phdr[i];
        if (part.p_type != PT_NOTE) continue;
        const char* notes = reinterpret_cast<const char*>(module->dlpi_addr + part.p_vaddr);
        copy_state* state = state_in(notes, notes + part.p_memsz);
        if (state == nullptr) continue;
        if (found.first == nullptr) found.first = state;
        if (state != &obase_copy_state && state->started.load_acquire() != 0)
            found.other_started = true;
        break;
    }
    return 0;
}

bool decide() noexcept {
    search before;
    dl_iterate_phdr(inspect_module, &before);
    if (before.first == nullptr) return true; // a linker that dropped the note
    // Held for a look at the list of modules; the module is not unloaded while it is held by another
    // copy, because that one is being started.
    auto& lock = before.first->lock;
    for (std::uint32_t open = 0; !lock.cas_acq_rel(open, 1); open = 0) sched_yield();
    search now;
    dl_iterate_phdr(inspect_module, &now);
    if (!now.other_started)
        obase_copy_state.started.store_release(1); // pairs with inspect_module()
    lock.store_release(0);
    return !now.other_started;
}

} // namespace

bool is_first_copy() noexcept {
    static const bool first = decide();
    return first;
}

void keep_loaded() noexcept {
    if (&dlopen == nullptr || &dladdr == nullptr) return;
    const no_cancellation to_the_end;
    Dl_info here{};
    if (dladdr(&obase_copy_state, &here) == 0 || here.dli_fname == nullptr) return;
    // Fails for the program itself, which stays anyway. The handle is kept on purpose.
    (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

} // namespace obase::os
