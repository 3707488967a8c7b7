// SPDX-License-Identifier: MIT
//
// The threads' half of the arming protocol: scopes, dereferences, and the life of slots.
//
// One function per thing that a thread does, on the thread's record, templated on the platform.
// obase/arming.hpp is the public face and calls these; arming_mover.hpp is the collector's half;
// docs/protocol.md has the argument. The parts that are inlined into a program are
// word::dereference(), enter_scope() and leave_scope(), the same text here and there.
//
// `Host` is what the protocol stands in: the engine, or a test's world.
//   threads(), directory()          the registry of records; SODA
//   end_scope(record&)              ends an outermost scope whose record has exit_work set
//   rearms(), record_touch(record&, slot&)   the debug mode that arms again
//
// Threads: any, each with its own record. Signal handlers may open scopes and dereference (O6); they
// must not construct or destroy slots.
#pragma once

#include "mobility/scope_registry.hpp"
#include "soda/directory.hpp"

#include <obase/word/arming.hpp>

#include <cstdint>

namespace obase::mobility {

// A record for a new thread: an unused one, else what make() returns, which is never freed. Null
// when make() returns null.
template <class P, class Make>
thread_record<P>* claim_record(scope_registry<P>& registry, std::uint32_t thread_id,
                               Make&& make) noexcept {
    if (thread_record<P>* unused = registry.find_unused(thread_id); unused != nullptr)
        return unused;
    thread_record<P>* fresh = make();
    if (fresh != nullptr) registry.add(*fresh, thread_id);
    return fresh;
}

template <class P, class Host>
class arming_threads {
  public:
    using slot_atomic = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using layout = word::arming;

    explicit arming_threads(Host& host) noexcept : host_(host) {}

    // Returns what leave() must be given. Async-signal-safe.
    epoch_number enter(record& r) noexcept { return enter_scope(r, host_.threads().epoch()); }
    void leave(record& r, epoch_number outer) noexcept {
        leave_scope(r, outer, [this, &r] { host_.end_scope(r); });
    }

    // Precondition: inside a scope. The address of the slot's object, 0 for null; good until the
    // outermost scope ends (O1).
    std::uint64_t dereference(record& r, slot_atomic& slot) noexcept {
        return word::dereference(slot, [&](slot_atomic& armed) { return first_touch(&r, armed); });
    }

    // The slow path of dereference(): a word that is not plain. `r` is null for a thread that has
    // never opened a scope: an access outside of one, as the debugger's.
    std::uint64_t first_touch(record* r, slot_atomic& slot) noexcept {
        const word::touch_result touched = word::touch(slot); // R5
        if (touched.disarmed && host_.rearms() && r != nullptr && r->epoch.load_relaxed() != 0)
            host_.record_touch(*r, slot);
        return touched.address;
    }

    // Makes `slot` one, with that word. False: SODA has no memory for it, and its object stays where
    // it is.
    bool construct(record& r, slot_atomic& slot, std::uint64_t owned) noexcept {
        slot.store_release(owned); // R10: the word first, then the bit
        const one_scope until_set(*this, r);
        return host_.directory().set(&slot);
    }

    // Ends the slot: afterwards the collector does not touch its memory (R10, O3). Returns the
    // address of the object, now the caller's. The scope keeps the leaf with the bit in place
    // (docs/protocol.md, Retiring empty SODA leaves).
    std::uint64_t destroy(record& r, slot_atomic& slot) noexcept {
        const one_scope until_cleared(*this, r);
        host_.directory().clear(&slot); // R10: bit, hazard, and only then the word
        return layout::address(slot.load_acquire());
    }

    // Ends all slots in [begin, end).
    void forget_range(record& r, void* begin, void* end) noexcept {
        const one_scope until_cleared(*this, r);
        host_.directory().clear_range(begin, end);
    }

    // One atomic exchange of the slot's word; returns the old object's word for its next slot (R12).
    std::uint64_t exchange(slot_atomic& slot, std::uint64_t owned) noexcept {
        return word::replace(slot, owned);
    }

    // Precondition: inside a scope. If the slot's address is `expected`, replaces the word.
    // Otherwise `expected` becomes the slot's address, which has then been accessed (R5).
    bool compare_exchange(slot_atomic& slot, std::uint64_t& expected,
                          std::uint64_t owned) noexcept {
        return word::compare_replace(slot, expected, owned);
    }

  private:
    class one_scope {
      public:
        one_scope(arming_threads& threads, record& r) noexcept
            : threads_(threads), record_(r), outer_(threads.enter(r)) {}
        ~one_scope() { threads_.leave(record_, outer_); }
        one_scope(const one_scope&) = delete;
        one_scope& operator=(const one_scope&) = delete;

      private:
        arming_threads& threads_;
        record& record_;
        epoch_number outer_;
    };

    Host& host_;
};

} // namespace obase::mobility
