// SPDX-License-Identifier: MIT
//
// obase::atc: the protocol of the OBASE paper as a policy class, beside obase::arming.
//
// Guides that count the operations inside an object while objects are being moved (ATC), and set an
// access bit otherwise. Of the same shape as obase::arming, with heaps and a collector of its own:
//
//     using scope = obase::basic_scope<obase::atc>;
//     obase::guide<account, obase::atc> g = obase::make_managed<account, obase::atc>(42);
//
// Slower than arming: every dereference masks the word and tests the mode of its scope, each first
// touch between two scans writes it, and in a round of moves each first touch of an operation is a
// read-modify-write that the end of the operation does again. It is here for comparison.
//
// Rules for users are those of guide.hpp. One more: an optimistic reader must not dereference a
// guide in memory that may have become something else; retire() what readers may still be looking
// at.
//
// The argument, and where the papers contradict themselves: docs/atc.md. The transitions:
// obase/word/atc.hpp.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/arming.hpp>
#include <obase/export.hpp>
#include <obase/mobility/atc_scope.hpp>
#include <obase/protocol.hpp>
#include <obase/word/atc.hpp>
#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace obase {

struct OBASE_EXPORT atc {
    using slot = word::native_atomic<word::bits>;
    using layout = word::atc;
    static constexpr const char* name = "atc";
    static constexpr bool moves_objects = true;

    // A thread's announcement; the library owns it.
    using record = mobility::scope_slot<word::native_atomic<mobility::epoch_number>>;
    using phase_word = mobility::atc_phase_word<word::native_atomic<mobility::atc_phase>>;
    struct thread_context {
        record* slot;
        const word::native_atomic<mobility::epoch_number>* epoch;
        const phase_word* phase;
        mobility::atc_mode* mode; // of this thread's scope; never null
    };

    // The dynamic extent of one operation; see obase/scope.hpp.
    class scope {
      public:
        scope() noexcept : outer_(enter()) {}
        ~scope() { leave(outer_); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        mobility::epoch_number outer_;
    };

    // As arming::dereference(). Cost outside of rounds of moves: a load, two tests and a mask if
    // the object was touched since the last scan, else a compare-exchange.
    static void* dereference(slot& s) noexcept {
        return reinterpret_cast<void*>(word::dereference_atc(
            s, [] { return is_silent(); }, [](slot& untouched) { return touch(untouched); }));
    }

    // The same address for comparison only: does not count as an access, needs no scope, and may be
    // stale at once.
    static const void* peek(const slot& s) noexcept { return address(s.load_acquire()); }

    // The word of a new owner's object: no thread has touched it yet.
    static word::bits newborn(void* object) noexcept {
        return object == nullptr ? 0 : layout::make_born(reinterpret_cast<word::bits>(object));
    }
    static void* address(word::bits word) noexcept {
        return reinterpret_cast<void*>(layout::address(word));
    }

    // As those of arming.
    static void construct(slot& s, word::bits word) noexcept;
    static void* destroy(slot& s) noexcept;
    static void forget_range(void* begin, void* end) noexcept;
    static word::bits exchange(slot& s, word::bits word) noexcept;
    static bool compare_exchange(slot& s, void*& expected, word::bits word) noexcept;
    static void* allocate(std::size_t bytes, const allocation_options& how) noexcept {
        return how.usual() ? allocate_usual(bytes) : allocate_as(bytes, how);
    }
    static void deallocate(void* object) noexcept;
    static std::size_t usable_size(const void* object) noexcept;
    using pin_entry = word::native_atomic<std::uint64_t>;
    static pin_entry* pin(void* object) noexcept;
    static void unpin(pin_entry* entry) noexcept { entry->store_release(0); }
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept;
    static runtime& runtime_of() noexcept;

    // True if the calling thread is in a scope.
    static bool in_scope() noexcept {
        return context_.slot != nullptr && context_.slot->epoch.load_relaxed() != 0;
    }

    // True if the open scope does not count: then a word whose access bit is set can be used as
    // loaded.
    static bool is_silent() noexcept { return *context_.mode == mobility::atc_mode::silent; }

    // Enter and leave by hand: leave(enter()).
    static mobility::epoch_number enter() noexcept {
        record* self = here();
        return mobility::enter_atc_scope(*self, *context_.mode, *context_.epoch, *context_.phase);
    }
    static void leave(mobility::epoch_number outer) noexcept {
        record& self = *context_.slot;
        mobility::leave_atc_scope(self, *context_.mode, outer,
                                  [&self] { end_scope_with_work(self); });
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
    static word::bits touch(slot& s) noexcept;
    static void* allocate_usual(std::size_t bytes) noexcept; // for how.usual()
    static void* allocate_as(std::size_t bytes, const allocation_options& how) noexcept;

    // Null slot: a thread that has not used obase yet.
    static OBASE_TLS constinit thread_local thread_context context_;
};

static_assert(protocol<atc>);

} // namespace obase
