// SPDX-License-Identifier: MIT
//
// obase/handles.h, and malloc and its family, as C functions over native_handles.
//
// What the C library's malloc has given out (before the heap was made, to the runtime itself, where the heap had no
// room) is known by its address, and goes back to it.
#include "handles/native.hpp"

#include <obase/handles.h>

#include "os/memory.hpp"
#include "os/segment_fault.hpp"
#include "os/thread.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using obase::handles::immovable_set;
using obase::handles::inside_runtime;
using obase::handles::least_alignment;
using obase::handles::movable_set;
using obase::handles::native;
using obase::handles::native_handles;
using obase::handles::thread_mark;
using obase::handles::thread_slot;

namespace heap = obase::heap;
namespace os = obase::os;

extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

constexpr std::size_t most_bytes = PTRDIFF_MAX;

std::uint64_t address_of(const void* p) noexcept { return reinterpret_cast<std::uint64_t>(p); }

unsigned long to_long(thread_mark mark) noexcept { return std::bit_cast<std::uint64_t>(mark); }
thread_mark to_mark(unsigned long value) noexcept {
    return std::bit_cast<thread_mark>(std::uint64_t{value});
}

// Of blocks from the space: that of the thread.
heap::thread_heap<native>& own_heap() noexcept { return *heap::thread_heaps[thread_slot]; }

constexpr std::size_t block_bytes(std::size_t bytes, bool movable) noexcept {
    return heap::round_up(bytes + (movable || bytes == 0 ? 1 : 0), least_alignment);
}

// Reads the away byte of a home.
bool is_away(const void* home) noexcept {
    return native_handles::away_at(address_of(home)).load_acquire() != obase::handles::at_home;
}
const void* now_at(const void* home) noexcept {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr || !is_away(home)) return home;
    return reinterpret_cast<const void*>(all->objects().translate(address_of(home)));
}

// The calling thread is inside while one exists: in functions that foreign code may call.
class short_visit {
  public:
    explicit short_visit(native_handles& all) noexcept : all_(all), record_(all.own_record()) {
        if (record_ != nullptr) before_ = all.threads().enter(*record_);
    }
    ~short_visit() {
        if (record_ != nullptr) all_.threads().leave(*record_, before_);
    }
    short_visit(const short_visit&) = delete;
    short_visit& operator=(const short_visit&) = delete;

  private:
    native_handles& all_;
    native_handles::record* record_;
    thread_mark before_{};
};

[[gnu::noinline]] void* allocate_slowly(std::size_t bytes, std::size_t alignment, bool movable,
                                        const void* caller) noexcept {
    void* found = nullptr;
    if (bytes > most_bytes) {
        errno = ENOMEM;
        return nullptr;
    }
    if (inside_runtime == 0 && alignment <= os::page_size)
        if (native_handles* const all = native_handles::get(); all != nullptr)
            found = all->allocate(bytes, alignment, movable, caller);
    if (found != nullptr) return found;
    return alignment <= least_alignment ? __libc_malloc(bytes) : __libc_memalign(alignment, bytes);
}

template <bool Movable>
[[gnu::always_inline]] inline void* allocate(std::size_t bytes) noexcept {
    if (bytes < heap::max_small_size) [[likely]] {
        void* const block = heap::allocate_at_hand(own_heap(), block_bytes(bytes, Movable),
                                                   Movable ? movable_set : immovable_set);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes, least_alignment, Movable, __builtin_return_address(0));
}

// Fresh extents of LARGE are empty pages, but which are fresh is not known: from here on the system makes them so.
constexpr std::size_t empty_by_system = std::size_t{256} << 10;

void make_zero(void* object, std::size_t bytes) noexcept {
    if (bytes < empty_by_system) {
        std::memset(object, 0, bytes);
        return;
    }
    char* const begin = static_cast<char*>(object);
    char* const first = reinterpret_cast<char*>(heap::round_up(address_of(begin), os::page_size));
    char* const last = reinterpret_cast<char*>((address_of(begin) + bytes) & ~(os::page_size - 1));
    if (os::advise(first, static_cast<std::size_t>(last - first), os::advice::dontneed) != 0) {
        std::memset(begin, 0, bytes);
        return;
    }
    std::memset(begin, 0, static_cast<std::size_t>(first - begin));
    std::memset(last, 0, static_cast<std::size_t>(begin + bytes - last));
}

template <bool Movable>
void* allocate_zero(std::size_t count, std::size_t each) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    if (inside_runtime != 0) return __libc_calloc(count, each);
    void* const object = allocate<Movable>(bytes);
    if (object != nullptr) make_zero(const_cast<void*>(now_at(object)), bytes);
    return object;
}

// Of an object of the space whose thread-local fast path has failed, or none of the space's.
[[gnu::noinline]] void free_slowly(void* object) noexcept {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr || !all->contains(object))
        __libc_free(object);
    else
        all->free(object);
}
[[gnu::noinline]] void free_by_foreign_code(void* object) noexcept {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr || !all->is_movable(object)) {
        free_slowly(object);
        return;
    }
    const short_visit inside(*all);
    all->free(object);
}

template <bool Movable>
void* resize(void* object, std::size_t bytes) noexcept {
    if (object == nullptr) return allocate<Movable>(bytes);
    native_handles* const all = native_handles::if_made();
    if (all == nullptr || !all->contains(object)) return __libc_realloc(object, bytes);
    const short_visit inside(*all);
    if (bytes == 0) {
        all->free(object);
        return nullptr;
    }
    if (all->resize(object, bytes)) return object;
    const std::size_t before = all->usable_size(object);
    // What foreign code makes longer stays what it was: it may have come from compiled code.
    void* const longer = all->is_movable(object) ? allocate<true>(bytes) : allocate<Movable>(bytes);
    if (longer == nullptr) return nullptr;
    std::memcpy(const_cast<void*>(now_at(longer)), now_at(object), std::min(before, bytes));
    all->free(object);
    return longer;
}

std::size_t usable_size(const void* object) noexcept {
    if (object == nullptr) return 0;
    native_handles* const all = native_handles::if_made();
    if (all != nullptr && all->contains(object)) return all->usable_size(object);
    // The C library's: its size lies before it, with two flags and the mark of a mapping of its own.
    const std::size_t header = static_cast<const std::size_t*>(object)[-1];
    return (header & ~std::size_t{7}) - ((header & 2) != 0 ? 16 : 8);
}

template <bool Movable>
void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (alignment <= least_alignment) return allocate<Movable>(bytes);
    if (alignment > most_bytes / 2 + 1) {
        errno = EINVAL;
        return nullptr;
    }
    return allocate_slowly(bytes, std::bit_ceil(alignment), Movable, __builtin_return_address(0));
}

template <bool Movable>
int allocate_aligned_to(void** to, std::size_t alignment, std::size_t bytes) noexcept {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    const int before = errno;
    void* const object = allocate_aligned<Movable>(alignment, bytes);
    errno = before;
    if (object == nullptr) return ENOMEM;
    *to = object;
    return 0;
}

template <bool Movable>
void* resize_array(void* object, std::size_t count, std::size_t each) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return resize<Movable>(object, bytes);
}

char* copy_text(const char* text, std::size_t length) noexcept {
    auto* const copy = static_cast<char*>(allocate<true>(length + 1));
    if (copy == nullptr) return nullptr;
    auto* const at = static_cast<char*>(const_cast<void*>(now_at(copy)));
    std::memcpy(at, text, length);
    at[length] = 0;
    return copy;
}

} // namespace

// malloc's family, for foreign code.

#define OBASE_MALLOC extern "C" __attribute__((visibility("default")))

OBASE_MALLOC void* malloc(std::size_t bytes) noexcept { return allocate<false>(bytes); }
OBASE_MALLOC void* calloc(std::size_t count, std::size_t bytes) noexcept {
    return allocate_zero<false>(count, bytes);
}
OBASE_MALLOC void* realloc(void* object, std::size_t bytes) noexcept {
    return resize<false>(object, bytes);
}
OBASE_MALLOC void* reallocarray(void* object, std::size_t count, std::size_t bytes) noexcept {
    return resize_array<false>(object, count, bytes);
}
OBASE_MALLOC void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    return allocate_aligned<false>(alignment, bytes);
}
OBASE_MALLOC void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    return allocate_aligned<false>(alignment, bytes);
}
OBASE_MALLOC int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
    return allocate_aligned_to<false>(to, alignment, bytes);
}
OBASE_MALLOC void* valloc(std::size_t bytes) noexcept {
    return allocate_aligned<false>(os::page_size, bytes);
}
OBASE_MALLOC void* pvalloc(std::size_t bytes) noexcept {
    if (bytes > most_bytes) { // rounded up it could be 0
        errno = ENOMEM;
        return nullptr;
    }
    return allocate_aligned<false>(os::page_size, heap::round_up(bytes, os::page_size));
}
OBASE_MALLOC std::size_t malloc_usable_size(void* object) noexcept { return usable_size(object); }
OBASE_MALLOC void free(void* object) noexcept {
    if (object == nullptr) return;
    if (is_away(object)) {
        free_by_foreign_code(object);
        return;
    }
    heap::thread_heap<native>& mine = own_heap();
    const std::size_t offset = mine.view.offset_of(object);
    if (offset < mine.view.bytes) [[likely]] {
        const unsigned bin = mine.view.runs[offset >> heap::run_shift].bin.load_relaxed();
        if (heap::attributes_at(bin / heap::size_classes).never_cold &&
            heap::free_at_hand(mine, object)) [[likely]]
            return;
    }
    free_by_foreign_code(object);
}

// The same for compiled code.

void* obase_handles_malloc(std::size_t bytes) { return allocate<true>(bytes); }
void* obase_handles_calloc(std::size_t count, std::size_t bytes) {
    return allocate_zero<true>(count, bytes);
}
void* obase_handles_realloc(void* home, std::size_t bytes) { return resize<true>(home, bytes); }
void* obase_handles_reallocarray(void* home, std::size_t count, std::size_t bytes) {
    return resize_array<true>(home, count, bytes);
}
void* obase_handles_aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return allocate_aligned<true>(alignment, bytes);
}
void* obase_handles_memalign(std::size_t alignment, std::size_t bytes) {
    return allocate_aligned<true>(alignment, bytes);
}
int obase_handles_posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
    return allocate_aligned_to<true>(static_cast<void**>(const_cast<void*>(now_at(to))), alignment,
                                     bytes);
}
char* obase_handles_strdup(const char* text) {
    const auto* const now = static_cast<const char*>(now_at(text));
    return copy_text(now, std::strlen(now));
}
char* obase_handles_strndup(const char* text, std::size_t longest) {
    const auto* const now = static_cast<const char*>(now_at(text));
    return copy_text(now, strnlen(now, longest));
}
std::size_t obase_handles_malloc_usable_size(const void* home) { return usable_size(home); }
void obase_handles_free(void* home) {
    if (home == nullptr) return;
    if (!is_away(home) && native_handles::keeps_at(address_of(home)).load_relaxed() == 0 &&
        heap::free_at_hand(own_heap(), home)) [[likely]]
        return;
    free_slowly(home);
}

// Translations and polls. What keeps registers (the pass's convention) is in calls.S, and comes here.

extern "C" void* obase_handles_translate_here(const void* home) noexcept {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr) return const_cast<void*>(home);
    return reinterpret_cast<void*>(all->objects().translate(address_of(home)));
}
// Once a round: the program may have blocked it since.
static void let_faults_through(native_handles::record& mine) noexcept {
    const std::uint64_t now = mine.flushed.load_relaxed();
    if (mine.unblocked == now) [[likely]]
        return;
    mine.unblocked = now;
    os::let_segment_faults_through();
}
extern "C" void obase_handles_poll_here() noexcept {
    native_handles::record* const mine = native_handles::own_record_if_any();
    if (mine == nullptr) return;
    native_handles& all = *native_handles::if_made();
    if (all.stresses()) all.stress(mine);
    all.threads().poll(*mine);
    let_faults_through(*mine);
}

void obase_handles_offline() {
    native_handles::record* const mine = native_handles::own_record_if_any();
    if (mine != nullptr) native_handles::if_made()->threads().go_offline(*mine);
}
void obase_handles_online() {
    native_handles::record* const mine = native_handles::own_record_if_any();
    if (mine == nullptr) return;
    native_handles::if_made()->threads().go_online(*mine);
    let_faults_through(*mine);
}
// Compiled code finds the table at %gs:0, in a register of its own, so that it takes none of the others. A thread has it
// from the one that made it, but not if that was before the first thread entered. By an instruction it is set at each
// entry: a child of vfork has the parent's thread-local memory, and a register of its own.
static void let_table_be_found() noexcept {
    static __thread bool is_found __attribute__((tls_model("initial-exec")));
    if (is_found && !os::set_gs_base_is_fast()) return;
    is_found = os::set_gs_base(obase_handles_away);
    if (is_found) [[likely]]
        return;
    static constexpr char text[] =
        "obase: the kernel refuses arch_prctl(ARCH_SET_GS), and compiled code needs it\n";
    (void)!::write(STDERR_FILENO, text, sizeof text - 1);
    std::abort();
}
unsigned long obase_handles_enter() {
    let_table_be_found();
    native_handles* const all = native_handles::get();
    native_handles::record* const mine = all == nullptr ? nullptr : all->own_record();
    return mine == nullptr ? 0 : to_long(all->threads().enter(*mine));
}
void obase_handles_leave(unsigned long mark) {
    native_handles::record* const mine = native_handles::own_record_if_any();
    if (mine != nullptr) native_handles::if_made()->threads().leave(*mine, to_mark(mark));
}
unsigned long obase_handles_jump_save() {
    native_handles::record* const mine = native_handles::own_record_if_any();
    return mine == nullptr ? 0 : to_long(native_handles::if_made()->threads().state(*mine));
}
void obase_handles_jump_restore(unsigned long state) {
    native_handles::record* const mine = native_handles::own_record_if_any();
    if (mine != nullptr) native_handles::if_made()->threads().restore(*mine, to_mark(state));
}

void* obase_handles_keep(const void* home) {
    if (native_handles* const all = native_handles::if_made(); all != nullptr) all->keep(home);
    return const_cast<void*>(home);
}
void* obase_handles_pin(const void* home) {
    native_handles* const all = native_handles::if_made();
    return all == nullptr ? const_cast<void*>(home) : all->pin(home).now;
}
void obase_handles_unpin(const void* home) {
    if (native_handles* const all = native_handles::if_made(); all != nullptr) all->unpin(home);
}
void* obase_handles_home(const void* address) {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr) return const_cast<void*>(address);
    const native_handles::work mine(*all, nullptr);
    return const_cast<void*>(all->home_at(address));
}
unsigned long obase_handles_move_all() {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr) return 0;
    const native_handles::work mine(*all, native_handles::own_record_if_any());
    return all->move_all(native_handles::own_record_if_any());
}
unsigned long obase_handles_come_home() {
    native_handles* const all = native_handles::if_made();
    if (all == nullptr) return 0;
    const native_handles::work mine(*all, native_handles::own_record_if_any());
    return all->bring_home(native_handles::own_record_if_any());
}
void obase_handles_read_figures(obase_handles_figures* to) {
    *to = {};
    if (native_handles* const all = native_handles::if_made(); all != nullptr)
        all->read_figures(*to);
}
