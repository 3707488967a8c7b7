// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the arming protocol: each function is one of obase::arming on
// the slot, plus what a plain C++ program does not do by itself: telling SODA about the slot, and
// having an object in two slots for a moment.
//
// Two slots for a moment. docs/protocol.md proves a publish safe because the armed word stands alone
// for its object: whoever gets the address without touching the word did so in a scope that the wait
// covers. If the object is in another slot, too, a thread that enters after the wait began can read
// the address there. Say an operation stores X, which it found in A, into B; the collector arms B and
// begins its wait; a reader enters and finds X in A, which is plain; the operation takes X out of A
// and ends; the wait ends. Nobody has touched B, but the reader uses X. So when an operation ends,
// each slot into which it stored an address is touched once more if it is armed. Then an armed word
// that survives was written after its operation's end, or before its beginning. After the end, who
// can have read A had entered before it was changed, hence before the arming, and is waited for.
// Before the beginning, B holds X without having been stored into; A must be the slot that the
// operation stored X into and took it out of again. If other threads could see it there meanwhile,
// that is what rule 2 of the header forbids; if they could not, A is nobody else's.
#include <obase/marked.h>

#include "runtime/arming_engine.hpp"

#include <obase/arming.hpp>
#include <obase/word/arming.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <malloc.h>
#include <new>
#include <utility>

namespace {

using obase::allocation;
using obase::arming;
using obase::runtime_internal::arming_engine;
using layout = obase::word::arming;
using obase::word::bits;

static_assert(sizeof(arming::slot) == sizeof(void*) && alignof(arming::slot) == alignof(void*));

// What malloc and operator new promise.
constexpr std::size_t usual_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

arming::slot& slot_of(void** field) noexcept { return *reinterpret_cast<arming::slot*>(field); }

bool is_managed(const void* address) noexcept {
    return arming_engine::instance().heap_of(address) >= 0;
}

// The slots into which the open operation of this thread has stored an address.
class stored_slots {
  public:
    bool open = false; // an operation is under way

    void add(arming::slot* slot) noexcept {
        if (count_ != 0 && begin()[count_ - 1] == slot) return;
        if (count_ == capacity_ && !make_room()) {
            // A slot that is not registered is never armed. The next store into it tries again.
            arming_engine::instance().directory().clear(slot);
            return;
        }
        begin()[count_++] = slot;
    }

    // The memory in [from, to) ends.
    void forget(const char* from, const char* to) noexcept {
        if (count_ == 0) return;
        arming::slot** const end =
            std::remove_if(begin(), begin() + count_, [=](const arming::slot* slot) {
                const auto* at = reinterpret_cast<const char*>(slot);
                return !std::less<>{}(at, from) && std::less<>{}(at, to);
            });
        count_ = static_cast<std::uint32_t>(end - begin());
    }

    // At the operation's end, still in its scope. A slot that another thread has ended meanwhile is
    // not registered any more, and its memory, if it was freed, is still there: obase_marked_free
    // retires it.
    void settle() noexcept {
        auto& directory = arming_engine::instance().directory();
        for (std::uint32_t i = 0; i < count_; ++i) {
            arming::slot* const slot = begin()[i];
            if (directory.test(slot) && layout::is_armed(slot->load_acquire()))
                obase::word::touch(*slot);
        }
        count_ = 0;
        if (more_ == nullptr) return;
        std::free(more_);
        more_ = nullptr;
        capacity_ = few;
    }
    bool empty() const noexcept { return count_ == 0; }

  private:
    static constexpr std::uint32_t few = 30;
    static constexpr std::uint32_t most = std::uint32_t{1} << 30;

    arming::slot** begin() noexcept { return more_ != nullptr ? more_ : first_; }

    // An operation that stores into few slots many times needs no more room for it.
    bool make_room() noexcept {
        std::sort(begin(), begin() + count_);
        count_ = static_cast<std::uint32_t>(std::unique(begin(), begin() + count_) - begin());
        if (count_ <= capacity_ / 2) return true;
        if (capacity_ >= most) return false;
        const std::size_t bytes = sizeof(arming::slot*) * 2 * capacity_;
        auto* fresh = static_cast<arming::slot**>(std::realloc(more_, bytes));
        if (fresh == nullptr) return count_ < capacity_;
        if (more_ == nullptr) std::copy(first_, first_ + count_, fresh);
        more_ = fresh;
        capacity_ *= 2;
        return true;
    }

    std::uint32_t count_ = 0;
    std::uint32_t capacity_ = few;
    arming::slot** more_ = nullptr; // while one operation has stored into more than a few slots
    arming::slot* first_[few] = {};
};

constinit thread_local stored_slots stored;

// A managed address is born: being stored is no access, and only the collector arms (R3).
bits word_of(const void* address, bool managed) noexcept {
    const auto plain = reinterpret_cast<bits>(address);
    return managed ? layout::make_born(plain) : plain;
}

// After a managed address was stored (R10: the word first, then the bit).
void note_stored(arming::slot& slot) noexcept {
    const arming::scope one_operation;
    auto& directory = arming_engine::instance().directory();
    if (!directory.test(&slot)) directory.set(&slot);
    if (stored.open) stored.add(&slot);
}

void forget(void* begin, std::size_t bytes) noexcept {
    char* const end = static_cast<char*>(begin) + bytes;
    stored.forget(static_cast<char*>(begin), end);
    arming::forget_range(begin, end);
}

bool has_slots(const void* begin, std::size_t bytes) noexcept {
    const arming::scope one_operation;
    return arming_engine::instance().directory().any_in(begin,
                                                        static_cast<const char*>(begin) + bytes);
}

using destroyer = void (*)(void*) noexcept;

// Frees memory of any origin; `plain` is how it is freed if it is not managed.
void release(void* address, std::size_t bytes, destroyer plain) noexcept {
    if (address == nullptr) return;
    if (is_managed(address)) {
        bytes = arming::usable_size(address);
        forget(address, bytes);
        arming::retire(address, [](void* object) noexcept { arming::deallocate(object); }, bytes);
        return;
    }
    if (bytes == 0) bytes = malloc_usable_size(address);
    if (!has_slots(address, bytes)) {
        plain(address);
        return;
    }
    forget(address, bytes);
    // Retired, because the operation of another thread that stored into one of the slots may still
    // be open: it looks at them when it ends.
    arming::retire(address, plain, bytes);
}

void free_plain(void* address) noexcept { std::free(address); }

// operator delete and operator delete[] for each alignment: what is retired takes no argument.
constexpr std::size_t alignments = 64;
template <std::size_t Log2>
void delete_aligned(void* address) noexcept {
    ::operator delete(address, std::align_val_t{std::size_t{1} << Log2});
}
template <std::size_t Log2>
void delete_array_aligned(void* address) noexcept {
    ::operator delete[](address, std::align_val_t{std::size_t{1} << Log2});
}
void delete_plain(void* address) noexcept { ::operator delete(address); }
void delete_array_plain(void* address) noexcept { ::operator delete[](address); }

template <std::size_t... Log2>
destroyer delete_for(std::size_t alignment, std::index_sequence<Log2...>) noexcept {
    static constexpr destroyer table[] = {&delete_aligned<Log2>...};
    return alignment <= usual_alignment ? &delete_plain : table[std::countr_zero(alignment)];
}
template <std::size_t... Log2>
destroyer delete_array_for(std::size_t alignment, std::index_sequence<Log2...>) noexcept {
    static constexpr destroyer table[] = {&delete_array_aligned<Log2>...};
    return alignment <= usual_alignment ? &delete_array_plain : table[std::countr_zero(alignment)];
}

void* managed(std::size_t bytes, std::size_t alignment) noexcept {
    allocation how;
    how.alignment = alignment;
    return arming_engine::instance().allocate_managed(bytes, how);
}

// Moves what is in `from` to fresh memory of at least `bytes`. Slots become slots there.
void relocate(void* to, void* from, std::size_t bytes) noexcept {
    const arming::scope one_operation;
    auto& directory = arming_engine::instance().directory();
    if (!directory.any_in(from, static_cast<char*>(from) + bytes)) {
        std::memcpy(to, from, bytes);
        return;
    }
    auto* target = static_cast<char*>(to);
    auto* source = static_cast<char*>(from);
    for (; bytes >= sizeof(bits); bytes -= sizeof(bits)) {
        auto* slot = reinterpret_cast<arming::slot*>(source);
        if (directory.test(slot)) {
            directory.clear(slot); // R10: from here on the word is nobody else's
            bits word = slot->load_acquire();
            if (layout::is_armed(word)) word = layout::make_born(layout::address(word)); // R3
            auto* fresh = ::new (static_cast<void*>(target)) arming::slot{};
            fresh->store_release(word);
            directory.set(fresh);
            if (stored.open) stored.add(fresh);
        } else {
            std::memcpy(target, source, sizeof(bits));
        }
        target += sizeof(bits);
        source += sizeof(bits);
    }
    std::memcpy(target, source, bytes);
}

// Beside the epoch in what enter returns; epochs count up from 1.
constexpr std::uint64_t outermost = std::uint64_t{1} << 63;

} // namespace

std::uint64_t obase_marked_enter(void) {
    const std::uint64_t outer = arming::enter();
    if (stored.open) return outer;
    stored.open = true;
    return outer | outermost;
}

void obase_marked_leave(std::uint64_t outer) {
    if ((outer & outermost) != 0) {
        if (!stored.empty()) stored.settle();
        stored.open = false;
    }
    arming::leave(outer & ~outermost);
}

void* obase_marked_load(void** slot) { return arming::dereference(slot_of(slot)); }

void obase_marked_store(void** slot, void* address) {
    const bool managed_object = address != nullptr && is_managed(address);
    slot_of(slot).store_release(word_of(address, managed_object));
    if (managed_object) note_stored(slot_of(slot));
}

void* obase_marked_exchange(void** slot, void* address) {
    const bool managed_object = address != nullptr && is_managed(address);
    const bits old = slot_of(slot).exchange_seq_cst(word_of(address, managed_object));
    if (managed_object) note_stored(slot_of(slot));
    return arming::address(old);
}

int obase_marked_compare_exchange(void** slot, void** expected, void* desired) {
    const bool managed_object = desired != nullptr && is_managed(desired);
    if (!arming::compare_exchange(slot_of(slot), *expected, word_of(desired, managed_object)))
        return 0;
    if (managed_object) note_stored(slot_of(slot));
    return 1;
}

void* obase_marked_malloc(std::size_t bytes) {
    void* object = managed(bytes, usual_alignment);
    return object != nullptr ? object : std::malloc(bytes);
}

void* obase_marked_calloc(std::size_t count, std::size_t bytes) {
    std::size_t all = 0;
    void* object =
        __builtin_mul_overflow(count, bytes, &all) ? nullptr : managed(all, usual_alignment);
    return object != nullptr ? std::memset(object, 0, all) : std::calloc(count, bytes);
}

void* obase_marked_aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* object = managed(bytes, alignment);
    return object != nullptr ? object : std::aligned_alloc(alignment, bytes);
}

void* obase_marked_new(std::size_t bytes) {
    void* object = managed(bytes, usual_alignment);
    return object != nullptr ? object : ::operator new(bytes);
}

void* obase_marked_new_nothrow(std::size_t bytes) {
    void* object = managed(bytes, usual_alignment);
    return object != nullptr ? object : ::operator new(bytes, std::nothrow);
}

void* obase_marked_new_aligned(std::size_t bytes, std::size_t alignment) {
    void* object = managed(bytes, alignment);
    return object != nullptr ? object : ::operator new(bytes, std::align_val_t{alignment});
}

void* obase_marked_new_array(std::size_t bytes) {
    void* object = managed(bytes, usual_alignment);
    return object != nullptr ? object : ::operator new[](bytes);
}

void obase_marked_free(void* address) { release(address, 0, &free_plain); }

void obase_marked_delete(void* address, std::size_t bytes, std::size_t alignment) {
    release(address, bytes, delete_for(alignment, std::make_index_sequence<alignments>{}));
}

void obase_marked_delete_array(void* address, std::size_t bytes, std::size_t alignment) {
    release(address, bytes, delete_array_for(alignment, std::make_index_sequence<alignments>{}));
}

void* obase_marked_realloc(void* address, std::size_t bytes) {
    if (address == nullptr) return std::realloc(nullptr, bytes);
    const bool was_managed = is_managed(address);
    const std::size_t before =
        was_managed ? arming::usable_size(address) : malloc_usable_size(address);
    if (!was_managed && !has_slots(address, before)) return std::realloc(address, bytes);
    if (bytes == 0) { // as glibc
        obase_marked_free(address);
        return nullptr;
    }
    if (bytes <= before && bytes >= before / 2) {
        forget(static_cast<char*>(address) + bytes, before - bytes);
        return address;
    }
    // Slots are moved one by one. An array of records that grows by one at a time, which costs little
    // where pages are remapped, would be moved each time; so it gets room for half as many more.
    const std::size_t room =
        !was_managed && bytes > before ? std::max(bytes, before + before / 2) : bytes;
    void* fresh = was_managed ? obase_marked_malloc(bytes) : std::malloc(room);
    if (fresh == nullptr) return nullptr;
    relocate(fresh, address, std::min(before, bytes));
    obase_marked_free(address);
    return fresh;
}

std::size_t obase_marked_usable_size(const void* address) {
    return address == nullptr ? 0 : arming::usable_size(address);
}

void obase_marked_forget(void* begin, std::size_t bytes) { forget(begin, bytes); }
