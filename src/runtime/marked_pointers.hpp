// SPDX-License-Identifier: MIT
//
// What the functions of obase/marked.h do, for any protocol: each is one of the protocol's on the
// slot, plus what a plain C++ program does not do by itself: telling SODA about the slot, and saying
// that an object may be in two slots for a moment, for which the mover waits twice
// (scope_registry::wait_for_holders()). Why that is enough: docs/protocol.md, docs/atc.md.
//
// `Kind` names the protocol and what differs:
//   protocol, engine       the policy class and its engine
//   hold(slot)             what is in the memory now, whatever it is, is not moved by way of this slot
//                          in a round of moves that has done its waiting
//   put(slot, word)        store: a born word (protocol::newborn) or one that is not managed
//   take(slot, word)       the same in one atomic step, seq_cst; returns the old word
//   owned(word)            the word of a slot that has ended, as protocol::construct() wants it
//   began(caller), ends()  an outermost scope was entered, is about to be left
//   left_by_jump(caller)   an operation that nobody leaves is about to be ended
//   slot_made(slot, caller), slot_moved(from, to), retired(object, caller)   for the audit, where there is
//                          one (audit/audit.hpp): a slot was registered, went along with its memory; an object
//                          was freed. `caller` is the address behind the call, everywhere below, too
//   ended(memory, bytes)   likewise: memory with slots, not managed, is about to be freed; no operation looks at it
//   short_of_memory()      an atomic flag, false at first: some slot is not known, or some memory left no
//                          trace, for want of memory. So all that is freed waits for the operations that
//                          are open, and a compare-exchange does not rely on a slot. Relaxed: the
//                          thread that frees the memory was given its address by the thread that
//                          set this.
// The slots and the flag are those of the Kind's platform, so the deterministic scheduler runs this text
// (marked_obligations_test.cpp).
#pragma once

#include "heap/size_class.hpp"
#include "os/thread.hpp"
#include "runtime/marked_memory.hpp"

#include <obase/allocation_options.hpp>
#include <obase/export.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <malloc.h>
#include <new>
#include <type_traits>
#include <utility>

namespace obase::runtime_internal {

// operator delete and operator delete[] for each alignment: what is retired takes no argument.
using destroyer = void (*)(void*) noexcept;
// What malloc and operator new promise.
constexpr std::size_t usual_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
constexpr std::size_t alignments = 64;

inline void free_plain(void* address) noexcept { std::free(address); }
inline void delete_plain(void* address) noexcept { ::operator delete(address); }
inline void delete_array_plain(void* address) noexcept { ::operator delete[](address); }
template <std::size_t Log2>
void delete_aligned(void* address) noexcept {
    ::operator delete(address, std::align_val_t{std::size_t{1} << Log2});
}
template <std::size_t Log2>
void delete_array_aligned(void* address) noexcept {
    ::operator delete[](address, std::align_val_t{std::size_t{1} << Log2});
}
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

template <class Kind>
class marked_pointers {
    using protocol = typename Kind::protocol;
    using scope = typename protocol::scope;
    using slot = typename protocol::slot;
    using bits = word::bits;

    static_assert(sizeof(slot) == sizeof(void*) && alignof(slot) == alignof(void*));

  public:
    using place = const void*;

    static std::uint64_t enter(place caller = nullptr) noexcept {
        const std::uint64_t outer = protocol::enter();
        if (outer == 0) Kind::began(caller);
        return outer;
    }

    static void leave(std::uint64_t outer) noexcept {
        if (outer == 0) Kind::ends();
        protocol::leave(outer);
    }

    static std::uint64_t depth() noexcept { return protocol::in_scope() ? 1 : 0; }
    // Frames between have gone without leaving. Nested operations leave nothing behind.
    static void returned(std::uint64_t depth_before, place caller) noexcept {
        // Slots of the frames that were left; none where this is no stack of the C library's.
        const os::stack_range stack = os::own_stack();
        char* const low = static_cast<char*>(stack.low);
        char* const here = static_cast<char*>(__builtin_frame_address(0));
        if (low <= here && here < static_cast<char*>(stack.high))
            end_slots(low, static_cast<std::size_t>(here - low));
        if (depth_before != 0 || !protocol::in_scope()) return;
        Kind::left_by_jump(caller);
        leave(0);
    }

    static void* load(void** field) noexcept { return protocol::dereference(slot_of(field)); }

    static void store(void** field, void* address, place caller = nullptr) noexcept {
        auto& engine = Kind::engine::instance();
        if (!engine.manages(address)) {
            Kind::put(slot_of(field), bits_of(address));
            return;
        }
        const scope until_stored;
        make_slot(engine, slot_of(field), caller);
        Kind::put(slot_of(field), protocol::newborn(address));
    }

    static void* exchange(void** field, void* address, place caller = nullptr) noexcept {
        auto& engine = Kind::engine::instance();
        if (!engine.manages(address))
            return protocol::address(Kind::take(slot_of(field), bits_of(address)));
        const scope until_stored;
        make_slot(engine, slot_of(field), caller);
        return protocol::address(Kind::take(slot_of(field), protocol::newborn(address)));
    }

    static int compare_exchange(void** field, void** expected, void* desired,
                                place caller = nullptr) noexcept {
        auto& engine = Kind::engine::instance();
        const bool managed_object = engine.manages(desired);
        const bits word = managed_object ? protocol::newborn(desired) : bits_of(desired);
        if (managed_object &&
            (!engine.manages(*expected) || Kind::short_of_memory().load_relaxed()))
            make_slot(engine, slot_of(field), caller);
        return protocol::compare_exchange(slot_of(field), *expected, word) ? 1 : 0;
    }

    // Managed memory; where the heaps have no room, what plain() returns or throws. Freeing it
    // waits for the operations that may have its address, so it has a trace before another thread
    // sees it.
    template <class Plain>
    static void* managed_or(std::size_t bytes, std::size_t alignment, place caller, Plain plain) {
        allocation_options how;
        how.alignment = alignment;
        void* object = Kind::engine::instance().allocate_managed(bytes, how, caller);
        if (object != nullptr) return object;
        object = plain();
        if (object != nullptr) leave_trace(object);
        return object;
    }

    static void* allocate(std::size_t bytes, place caller = nullptr) noexcept {
        return managed_or(bytes, usual_alignment, caller, [=] { return std::malloc(bytes); });
    }

    static void* allocate_zeroed(std::size_t count, std::size_t bytes,
                                 place caller = nullptr) noexcept {
        std::size_t all = 0;
        if (__builtin_mul_overflow(count, bytes, &all)) return std::calloc(count, bytes);
        void* object =
            managed_or(all, usual_alignment, caller, [=] { return std::calloc(count, bytes); });
        return is_managed(object) ? std::memset(object, 0, all) : object;
    }

    static void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                                  place caller = nullptr) noexcept {
        return managed_or(bytes, alignment, caller,
                          [=] { return std::aligned_alloc(alignment, bytes); });
    }

    // Frees memory of any origin; `plain` is how it is freed if it is not managed.
    static void release(void* address, std::size_t bytes, destroyer plain,
                        place caller = nullptr) noexcept {
        if (address == nullptr) return;
        const std::size_t size = Kind::engine::instance().managed_size(address);
        if (size == 0) {
            release_plain(address, bytes, plain);
            return;
        }
        end_slots(address, size);
        Kind::retired(address, caller);
        protocol::retire(address, &end_managed, size);
    }

    static void release_object(void* address, std::size_t bytes, std::size_t alignment,
                               place caller = nullptr) noexcept {
        release(address, bytes, delete_for(alignment, std::make_index_sequence<alignments>{}),
                caller);
    }
    static void release_array(void* address, std::size_t bytes, std::size_t alignment,
                              place caller = nullptr) noexcept {
        release(address, bytes, delete_array_for(alignment, std::make_index_sequence<alignments>{}),
                caller);
    }

    static void* reallocate(void* address, std::size_t bytes, place caller = nullptr) noexcept {
        if (address == nullptr) return std::realloc(nullptr, bytes);
        const bool was_managed = is_managed(address);
        const std::size_t before =
            was_managed ? protocol::usable_size(address) : malloc_usable_size(address);
        if (!was_managed && !must_wait(address, before)) {
            needs_no_wait = address;
            void* const fresh = std::realloc(address, bytes);
            needs_no_wait = nullptr;
            return fresh;
        }
        if (bytes == 0) { // as glibc
            release(address, 0, &free_plain, caller);
            return nullptr;
        }
        if (bytes <= before && bytes >= before / 2) {
            const bool had_slots = end_slots(static_cast<char*>(address) + bytes, before - bytes);
            if (had_slots && !was_managed) leave_trace(address);
            return address;
        }
        // Slots are moved one by one. An array of records that grows by one at a time, which costs
        // little where pages are remapped, would be moved each time; so it gets room for half as
        // many more.
        const std::size_t room =
            !was_managed && bytes > before ? std::max(bytes, before + before / 2) : bytes;
        void* fresh = was_managed ? allocate(bytes, caller) : std::malloc(room);
        if (fresh == nullptr) return nullptr;
        relocate(fresh, address, std::min(before, bytes));
        if (!was_managed) {
            leave_trace(address);
            leave_trace(fresh); // which may stand in for managed memory, too
        }
        release(address, 0, &free_plain, caller);
        return fresh;
    }

    static std::size_t usable_size(const void* address) noexcept {
        return address == nullptr ? 0 : protocol::usable_size(address);
    }

    // Of memory that is not managed: there are slots in it, or there have been, so whoever frees it waits for the
    // operations that may be looking at it. Cost: a load where no slot is within 16 MiB, a scope and four loads else.
    static bool had_slots(const void* begin, std::size_t bytes) noexcept {
        return has_leaf(begin, bytes) && has_slots_or_traces(begin, bytes);
    }

    static void forget(void* begin, std::size_t bytes) noexcept {
        if (end_slots(begin, bytes) && may_be_freed(begin)) leave_trace(begin);
    }

    // Slots that never held a managed address are none, but freeing the memory waits all the same.
    static void destroyed(void* object, std::size_t bytes) noexcept {
        end_slots(object, bytes);
        if (may_be_freed(object)) leave_trace(object);
    }

    static void thread_ends() noexcept {
        const os::stack_range stack = os::own_stack();
        end_slots(stack.low, static_cast<std::size_t>(static_cast<char*>(stack.high) -
                                                      static_cast<char*>(stack.low)));
    }

  private:
    static slot& slot_of(void** field) noexcept { return *reinterpret_cast<slot*>(field); }
    static bits bits_of(const void* address) noexcept { return reinterpret_cast<bits>(address); }
    static bool is_managed(const void* address) noexcept {
        return Kind::engine::instance().manages(address);
    }

    // In a scope, before a managed address is stored. A compare-exchange that removes one does not
    // need this: who stored that did this. (A store may find in memory that was never written what
    // its last owner left there. An exchange, too: the passes make one of a store that is seq_cst.)
    // Not after it, as R10 has it for guides: a thread that sees the address may take it out again
    // and end the memory, in which there would be a slot then. What the collector finds in the slot
    // until the store is no candidate of a move: it waits for this scope, and the store writes no
    // word that it has written.
    static void make_slot(typename Kind::engine& engine, slot& s, place caller) noexcept {
        if (!engine.directory().test(&s)) [[unlikely]]
            make_slot_for_the_first_time(engine, s, caller);
    }
    [[gnu::noinline]] static void make_slot_for_the_first_time(typename Kind::engine& engine,
                                                               slot& s, place caller) noexcept {
        Kind::slot_made(s, caller);
        engine.threads().expect_addresses_in_two_slots();
        Kind::hold(s);
        if (!engine.directory().set(&s)) Kind::short_of_memory().store_relaxed(true);
    }

    // True if there were any.
    static bool end_slots(void* begin, std::size_t bytes) noexcept {
        return has_leaf(begin, bytes) && end_slots_of_leaf(begin, bytes);
    }
    [[gnu::noinline]] static bool end_slots_of_leaf(void* begin, std::size_t bytes) noexcept {
        if (!has_slots(begin, bytes)) return false;
        protocol::forget_range(begin, static_cast<char*>(begin) + bytes);
        return true;
    }
    // For functions that free memory that is not managed.
    static void leave_trace(const void* begin) noexcept {
        const scope one_operation;
        if (!Kind::engine::instance().directory().leave_trace(begin))
            Kind::short_of_memory().store_relaxed(true);
    }
    // By a function that would look for traces: managed memory waits anyway, and frames are not
    // freed.
    static bool may_be_freed(const void* begin) noexcept {
        static constinit thread_local bool asked = false;
        static constinit thread_local os::stack_range stack{};
        if (!std::exchange(asked, true)) stack = os::own_stack();
        // Not the lower end: without a limit of the stack it is far below, and other memory between.
        const void* frame = __builtin_frame_address(0);
        const bool on_stack =
            frame >= stack.low && frame <= begin && begin < stack.high; // of this thread, in use
        return !on_stack && !is_managed(begin);
    }

    // A thread that was inside when the memory was retired may have stored into it since, a back
    // link say. So its slots end once more.
    static void end_managed(void* object) noexcept {
        auto& engine = Kind::engine::instance();
        if (engine.is_large(object) || has_leaf(object, 1)) end_slots_of_object(engine, object);
        engine.deallocate(object);
    }
    // Of most objects, strings say, the answer is no, and their sizes need not be looked up. Small ones
    // lie in one run, and so in one stretch that any_near() asks of.
    static_assert(heap::run_shift <=
                  std::remove_reference_t<
                      decltype(std::declval<typename Kind::engine&>().directory())>::page_shift);
    [[gnu::noinline]] static void end_slots_of_object(typename Kind::engine& engine,
                                                      void* object) noexcept {
        const scope one_operation;
        if (engine.is_large(object) || engine.directory().any_near(object))
            end_slots(object, engine.managed_size(object));
    }
    [[gnu::noinline]] static void release_plain(void* address, std::size_t bytes,
                                                destroyer plain) noexcept {
        if (bytes == 0) bytes = malloc_usable_size(address);
        if (!must_wait(address, bytes)) {
            free_at_once(address, plain);
            return;
        }
        end_slots(address, bytes);
        retire_plain(address, bytes, plain);
    }
    struct plain_memory {
        void* address;
        std::size_t bytes;
        destroyer plain;
    };
    static void end_plain(void* retired) noexcept {
        const plain_memory memory = *static_cast<plain_memory*>(retired);
        end_slots(memory.address, memory.bytes);
        remove_traces(memory.address, memory.bytes);
        std::free(retired);
        Kind::ended(memory.address, memory.bytes);
        free_at_once(memory.address, memory.plain);
    }
    static void free_at_once(void* address, destroyer plain) noexcept {
        needs_no_wait = address;
        plain(address);
        needs_no_wait = nullptr;
    }
    static void retire_plain(void* address, std::size_t bytes, destroyer plain) noexcept {
        if (void* retired = std::malloc(sizeof(plain_memory)); retired != nullptr)
            protocol::retire(::new (retired) plain_memory{address, bytes, plain}, &end_plain,
                             bytes);
        // Else it stays: what would have to end its slots cannot be written down.
    }

    static const char* end_of(const void* begin, std::size_t bytes) noexcept {
        return static_cast<const char*>(begin) + bytes;
    }
    // Saves most callers a scope.
    static bool has_leaf(const void* begin, std::size_t bytes) noexcept {
        return Kind::engine::instance().directory().has_leaf_in(begin, end_of(begin, bytes));
    }
    static bool has_slots(const void* begin, std::size_t bytes) noexcept {
        const scope one_operation;
        return Kind::engine::instance().directory().any_in(begin, end_of(begin, bytes));
    }
    // Of memory that is not managed: whether operations that are open may be looking at it.
    static bool must_wait(const void* begin, std::size_t bytes) noexcept {
        if (Kind::short_of_memory().load_relaxed()) return true;
        return had_slots(begin, bytes);
    }
    [[gnu::noinline]] static bool has_slots_or_traces(const void* begin,
                                                      std::size_t bytes) noexcept {
        const scope one_operation;
        auto& directory = Kind::engine::instance().directory();
        return directory.any_slot_or_trace_in(begin, end_of(begin, bytes));
    }
    static void remove_traces(const void* begin, std::size_t bytes) noexcept {
        const scope one_operation;
        Kind::engine::instance().directory().remove_traces(begin, end_of(begin, bytes));
    }

    // Moves what is in `from` to fresh memory of at least `bytes`. Slots become slots there.
    static void relocate(void* to, void* from, std::size_t bytes) noexcept {
        const scope one_operation;
        auto& directory = Kind::engine::instance().directory();
        auto* target = static_cast<char*>(to);
        auto* source = static_cast<char*>(from);
        if (!directory.any_in(from, source + bytes)) {
            std::memcpy(to, from, bytes);
            return;
        }
        for (std::size_t left = bytes; left >= sizeof(bits); left -= sizeof(bits)) {
            auto* old = reinterpret_cast<slot*>(source);
            if (directory.test(old)) {
                directory.clear(old); // R10: from here on the word belongs to this thread
                auto* fresh = ::new (static_cast<void*>(target)) slot{};
                protocol::construct(*fresh, Kind::owned(old->load_acquire()));
                Kind::slot_moved(*old, *fresh);
                if (!directory.test(fresh)) Kind::short_of_memory().store_relaxed(true);
            } else {
                std::memcpy(target, source, sizeof(bits));
            }
            target += sizeof(bits);
            source += sizeof(bits);
        }
        std::memcpy(target, source, bytes % sizeof(bits));
        // What the protocol does besides, before the memory goes.
        protocol::forget_range(from, static_cast<char*>(from) + bytes);
    }
};

} // namespace obase::runtime_internal
