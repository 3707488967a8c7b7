// SPDX-License-Identifier: MIT
//
// obase::arming: the default protocol of guides, as a policy class.
//
// The set of operations that guide, owner, scope, pin and retire are written with. There are three
// of the same shape: `plain` (ordinary pointers, nothing moves), `arming` (this one) and `atc` (the
// papers' protocol). A data structure that takes the protocol as a template parameter is therefore
// one source for all three.
//
//     template <class Protocol> struct node { obase::guide<obase::bytes, Protocol> key; };
//
// Programs use it directly only in a container whose slots are not guides. All functions but
// dereference() and the scope are calls into the library.
//
// The argument why any of this is safe is docs/protocol.md; the transitions are
// obase/word/arming.hpp.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/export.hpp>
#include <obase/mobility/scope_slot.hpp>
#include <obase/protocol.hpp>
#include <obase/word/arming.hpp>
#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace obase {

class runtime;

struct OBASE_EXPORT arming {
    using slot = word::native_atomic<word::bits>;
    using layout = word::arming;
    static constexpr const char* name = "arming";
    // Objects have to be movable byte by byte (R15).
    static constexpr bool moves_objects = true;

    // A thread's announcement; the library owns it.
    using record = mobility::scope_slot<word::native_atomic<mobility::epoch_number>>;
    struct thread_context {
        record* slot = nullptr;
        const word::native_atomic<mobility::epoch_number>* epoch = nullptr;
    };

    // The dynamic extent of one operation; see obase/scope.hpp.
    class scope {
      public:
        scope() noexcept : slot_(here()), outer_(mobility::enter_scope(*slot_, *context_.epoch)) {}
        ~scope() {
            mobility::leave_scope(*slot_, outer_, [this] { end_scope_with_work(*slot_); });
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        record* slot_;
        mobility::epoch_number outer_;
    };

    // The address of the slot's object, null if there is none. Counts as an access. Precondition:
    // inside a scope; the address is good until the outermost scope ends (O1). Cost: one load and
    // one predictable test when the object was touched in this window, else a compare-exchange.
    static void* dereference(slot& s) noexcept {
        return reinterpret_cast<void*>(
            word::dereference(s, [](slot& armed) { return first_touch(armed); }));
    }

    // The same address for comparison only: does not count as an access, needs no scope, and may be
    // stale at once.
    static const void* peek(const slot& s) noexcept {
        return reinterpret_cast<const void*>(layout::address(s.load_acquire()));
    }

    // The word of a new owner's object: no thread has touched it yet.
    static word::bits newborn(void* object) noexcept {
        return object == nullptr ? 0 : layout::make_born(reinterpret_cast<word::bits>(object));
    }
    static void* address(word::bits word) noexcept {
        return reinterpret_cast<void*>(layout::address(word));
    }

    // Makes `s` a slot: stores the word, then tells SODA (R10). Cost: an atomic read-modify-write.
    static void construct(slot& s, word::bits word) noexcept;
    // Ends the slot; afterwards the collector never touches its memory again (R10, O3). Returns the
    // address of the object, which the caller now owns.
    static void* destroy(slot& s) noexcept;
    // Ends all slots in [begin, end) without looking at them, for memory that is dropped in bulk.
    // Their objects are not freed.
    static void forget_range(void* begin, void* end) noexcept;

    // Replaces the slot's word in one exchange and returns the old object as an owner's word, which
    // the caller stores in another slot or destroys (R12). Leaving a slot is no access: what was
    // armed comes back as born, and keeps its age.
    static word::bits exchange(slot& s, word::bits word) noexcept;
    // If the slot's address is `expected`, replaces the word. Otherwise `expected` becomes the
    // current address, which has then been accessed. Precondition: inside a scope.
    static bool compare_exchange(slot& s, void*& expected, word::bits word) noexcept;

    // Memory for an object in NEW, or LARGE above 16 KiB; from malloc when the heaps have no room
    // (such an object never moves); null when there is none at all. Any thread.
    static void* allocate(std::size_t bytes, const allocation_options& how) noexcept {
        return how.usual() ? allocate_usual(bytes) : allocate_as(bytes, how);
    }
    static void deallocate(void* object) noexcept;
    static std::size_t usable_size(const void* object) noexcept;

    // A pin on an address obtained in this scope; null when there is no memory for it (R9).
    using pin_entry = word::native_atomic<std::uint64_t>;
    static pin_entry* pin(void* object) noexcept;
    static void unpin(pin_entry* entry) noexcept { entry->store_release(0); }

    // Calls destroy(object) when no scope that is open now and no pin can hold the address.
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept;

    // True if the calling thread is in a scope.
    static bool in_scope() noexcept {
        return context_.slot != nullptr && context_.slot->epoch.load_relaxed() != 0;
    }

    // The collector and heaps of this protocol.
    static runtime& runtime_of() noexcept;

    // Enter and leave by hand, for C and for the compiler's hooks: leave(enter()).
    static mobility::epoch_number enter() noexcept {
        record* self = here();
        return mobility::enter_scope(*self, *context_.epoch);
    }
    static void leave(mobility::epoch_number outer) noexcept {
        record& self = *context_.slot;
        mobility::leave_scope(self, outer, [&self] { end_scope_with_work(self); });
    }

    // The calling thread's announcement; the second one only if the thread has used obase before.
    static record* this_slot() noexcept { return here(); }
    static record* this_slot_if_any() noexcept { return context_.slot; }

  private:
    static record* here() noexcept {
        record* self = context_.slot;
        return self != nullptr ? self : attach_thread();
    }
    static record* attach_thread() noexcept;
    static void detach_thread() noexcept;
    static void end_scope_with_work(record& self) noexcept;
    static word::bits first_touch(slot& s) noexcept;
    static void* allocate_usual(std::size_t bytes) noexcept; // for how.usual()
    static void* allocate_as(std::size_t bytes, const allocation_options& how) noexcept;

    // Null pointers: a thread that has not used obase yet.
    static OBASE_TLS constinit thread_local thread_context context_;
};

static_assert(protocol<arming>);

} // namespace obase
