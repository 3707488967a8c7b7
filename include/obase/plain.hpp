// SPDX-License-Identifier: MIT
//
// obase::plain: the protocol of ordinary pointers, the baseline of every comparison.
//
// The same operations as `arming` with nothing behind them: a slot is an atomic pointer, memory
// comes from malloc, nothing is tracked and nothing moves. Its scope is the one of `arming`,
// because deferred frees need an epoch under any protocol; a structure that retires nothing can use
// `no_scope`.
//
// It is for measuring what the other protocols cost, and for running one source without obase's
// heaps.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>
#include <obase/protocol.hpp>

#include <cstdint>
#include <cstdlib>
#include <malloc.h>

namespace obase {

struct plain {
    using slot = word::native_atomic<word::bits>;
    static constexpr const char* name = "plain";
    static constexpr bool moves_objects = false;

    using scope = arming::scope;
    struct no_scope {
        no_scope() noexcept {}
        ~no_scope() {} // not trivial, so that an unused one is no warning
    };

    static void* dereference(slot& s) noexcept {
        return reinterpret_cast<void*>(s.load_acquire()); // pairs with exchange() and construct()
    }
    static const void* peek(const slot& s) noexcept {
        return reinterpret_cast<const void*>(s.load_acquire());
    }
    static word::bits newborn(void* object) noexcept {
        return reinterpret_cast<word::bits>(object);
    }
    static void* address(word::bits word) noexcept { return reinterpret_cast<void*>(word); }

    static void construct(slot& s, word::bits word) noexcept { s.store_release(word); }
    static void* destroy(slot& s) noexcept { return address(s.load_acquire()); }
    static void forget_range(void*, void*) noexcept {}

    static word::bits exchange(slot& s, word::bits word) noexcept {
        return s.exchange_acq_rel(word);
    }
    static bool compare_exchange(slot& s, void*& expected, word::bits word) noexcept {
        word::bits seen = reinterpret_cast<word::bits>(expected);
        const bool done = s.cas_acq_rel(seen, word);
        expected = address(seen);
        return done;
    }

    static void* allocate(std::size_t bytes, const allocation_options& how) noexcept {
        if (bytes > PTRDIFF_MAX) return nullptr; // rounded up it might be small
        if (how.alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
        return std::aligned_alloc(how.alignment,
                                  (bytes + how.alignment - 1) & ~(how.alignment - 1));
    }
    static void deallocate(void* object) noexcept { std::free(object); }
    static std::size_t usable_size(const void* object) noexcept {
        return malloc_usable_size(const_cast<void*>(object));
    }

    // Nothing moves, so every object is pinned; retire() still has to know.
    using pin_entry = arming::pin_entry;
    static pin_entry* pin(void* object) noexcept { return arming::pin(object); }
    static void unpin(pin_entry* entry) noexcept { arming::unpin(entry); }
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept {
        arming::retire(object, destroy, bytes);
    }
    static bool in_scope() noexcept { return arming::in_scope(); }
    static mobility::epoch_number enter() noexcept { return arming::enter(); }
    static void leave(mobility::epoch_number outer) noexcept { arming::leave(outer); }
};

static_assert(protocol<plain>);

} // namespace obase
