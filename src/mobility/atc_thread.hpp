// SPDX-License-Identifier: MIT
//
// The threads' half of the ATC protocol: scopes, dereferences, and the life of slots.
//
// One function per thing that a thread does, on an explicit per-thread context, templated on the
// platform. obase/atc.hpp is the public face, atc_mover.hpp the collector's half, docs/atc.md the
// argument and the list of what the papers say otherwise.
//
// A scope has a mode, fixed at the outermost entry for its whole duration, and the protocol has
// phases; both are explained in obase/mobility/atc_scope.hpp, with the argument for the entry.
//
// Three invariants carry everything else:
//   I1  While a counting scope is open the phase is not INACTIVE.
//   I2  A slot that comes to life, or receives an object, while the phase is not INACTIVE is
//       sticky. Threads may hold the object by way of its old slot, and a TAG may still name a dead
//       slot that was at this address: they count nothing here, and can take nothing away.
//   I3  ATC is set to 0 only in INACTIVE.
//
// Signal handlers may open scopes and dereference (O6), at any instruction: a handler that finds
// the mode undecided or the TAG in the middle of a change makes what it touches sticky instead. It
// must not construct or destroy slots.
#pragma once

#include "mobility/activity_index.hpp"
#include "mobility/scope_registry.hpp"
#include "mobility/tag.hpp"
#include "os/waiting.hpp"
#include "soda/directory.hpp"

#include <obase/mobility/atc_scope.hpp>
#include <obase/word/atc.hpp>

#include <cstddef>
#include <cstdint>

namespace obase::mobility {

template <class P>
using atc_state = atc_phase_word<typename P::template atomic<atc_phase>>;

// The protocol's state of a thread. All zero bytes are a thread outside of scopes.
template <class P>
struct atc_context {
    atc_mode mode = atc_mode::undecided; // owner only; undecided outside of scopes
    bool changing = false;               // owner only: the TAG is being changed
    std::uint32_t exits = 0;             // owner only: numbers the exit hazards
    base_delta_ptr_set<> tag;            // owner only: slots counted in by the open scope
    // The bitmap word whose slots the end of a scope is counting out, with a sequence number; 0:
    // none.
    alignas(64) typename P::template atomic<std::uint64_t> exit_hazard;
    os::wait_point<P> exit_ended; // exit_hazard names another word, or none
};

template <class P>
struct atc_entry {
    thread_record<P> record;
    atc_context<P> context;
    void bind() noexcept { record.protocol_data = &context; }
};

// Waits until no other thread is counting out a slot in [begin, end), whose SODA bits the caller
// has cleared. The other half is atc_threads::count_out_all(): as in SODA's own handshake, of the
// four seq_cst operations (clear, read hazards | set hazard, read bits) one pair sees the other.
template <class P>
void wait_for_exits(const scope_registry<P>& registry, const atc_context<P>* self,
                    const void* begin, const void* end) noexcept;

template <class P>
class atc_threads {
  public:
    using slot_atomic = typename P::template atomic<std::uint64_t>;
    using context = atc_context<P>;
    using record = thread_record<P>;
    using directory = soda::directory<P>;

    atc_threads(scope_registry<P>& registry, directory& slots, const atc_state<P>& state) noexcept
        : registry_(registry), slots_(slots), state_(state) {}

    // Returns what leave() must be given. Async-signal-safe.
    epoch_number enter(record& r, context& self) noexcept {
        return enter_atc_scope(r, self.mode, registry_.epoch(), state_);
    }

    void leave(record& r, context& self, epoch_number outer) noexcept {
        leave_atc_scope(r, self.mode, outer, [&] {
            end_operation(self);
            exit_scope(r, outer);
        });
    }

    // The end of a scope that may have counted, before the record says so. The TAG is empty and the
    // mode undecided before the announcement ends, so that a handler in between finds a scope whose
    // mode it does not know.
    void end_operation(context& self) noexcept {
        if (self.mode == atc_mode::counting && !self.tag.empty()) count_out_all(self);
        P::compiler_fence();
        self.mode = atc_mode::undecided;
        P::compiler_fence();
    }

    // Precondition: inside a scope. The address of the slot's object, 0 for null; good until the
    // outermost scope ends (O1).
    std::uint64_t dereference(context& self, slot_atomic& slot) noexcept {
        return word::dereference_atc(
            slot, [&] { return self.mode == atc_mode::silent; },
            [&](slot_atomic& untouched) { return touch(self, untouched); });
    }

    // What dereference() does with a word that cannot be used as loaded.
    std::uint64_t touch(context& self, slot_atomic& slot) noexcept {
        if (self.mode == atc_mode::silent) return word::mark_access(slot).address;
        if (self.mode == atc_mode::counting && !self.changing) return count(self, slot);
        // A handler interrupted entry, exit or a change of the TAG.
        return state_.counts() ? word::count_in_forever(slot).address
                               : word::mark_access(slot).address;
    }

    // Precondition: inside a scope. Makes memory a slot for an object between slots: first the
    // word, then the bit (R10).
    void construct(slot_atomic& slot, std::uint64_t owned) noexcept {
        const std::uint64_t born = word::atc::entering(owned);
        slot.store_release(is_quiet() ? born : word::atc::make_sticky(born)); // I2
        slots_.set(&slot);
    }

    // Precondition: inside a scope. Ends the slot (R10): afterwards neither the collector nor the
    // exit of another scope touches its memory (O3). Returns the address of the object, now the
    // caller's. `self` may be null.
    std::uint64_t destroy(context* self, slot_atomic& slot) noexcept {
        slots_.clear(&slot);
        // I1: in INACTIVE no TAG holds anything.
        if (!is_quiet()) {
            wait_for_exits(registry_, self, &slot, &slot + 1);
            if (self != nullptr) forget_touch(*self, slot);
        }
        return word::atc::address(slot.load_acquire());
    }

    // Precondition: inside a scope. Ends all slots in [begin, end).
    void forget_range(context* self, void* begin, void* end) noexcept {
        slots_.clear_range(begin, end);
        if (!is_quiet()) wait_for_exits(registry_, self, begin, end);
    }

    // Precondition: inside a scope. One atomic exchange (R12) of objects between slots.
    std::uint64_t exchange(slot_atomic& slot, std::uint64_t owned) noexcept {
        return word::swap_object(slot, owned, [this] { return is_quiet(); }); // I2
    }

    // Precondition: inside a scope. If the slot's address is `expected`, replaces it. Otherwise the
    // slot has not been touched: a thread that wants to use the current address dereferences it
    // (R5).
    bool exchange_if(slot_atomic& slot, std::uint64_t expected, std::uint64_t owned) noexcept {
        return word::swap_object_if(slot, expected, owned, [this] { return is_quiet(); }); // I2
    }

    // The thread ends, perhaps inside a scope (O6).
    void detach(context& self) noexcept { end_operation(self); }

    // Child of a fork (R14): the others are gone, and what they counted stays until it is swept.
    void forget_other_threads(const context* self) noexcept {
        registry_.for_each_record([self](const record& r) {
            auto* other = static_cast<context*>(r.protocol_data);
            if (other == nullptr) return;
            other->exit_ended.forget_waiters();
            if (other == self) return;
            other->exit_hazard.store_relaxed(0);
            other->tag.clear();
            other->mode = atc_mode::undecided;
            other->changing = false;
        });
    }

  private:
    bool is_quiet() const noexcept { return state_.is_quiet(); }

    // A destroyed slot need not be looked at again when the scope ends.
    static void forget_touch(context& self, slot_atomic& slot) noexcept {
        if (self.mode != atc_mode::counting || self.changing) return;
        self.changing = true;
        P::compiler_fence();
        self.tag.remove(reinterpret_cast<std::uintptr_t>(&slot));
        P::compiler_fence();
        self.changing = false;
    }

    // First touch: counted, noted, and the lock cleared, whatever the access bit says. Later
    // touches: the slot has our count, or is sticky, until the scope ends, and so has whatever
    // object it holds: exchange() keeps ATC, and a slot that was built anew at this address is
    // sticky (I2). While ATC is not 0 the mover does not lock, so a plain load is enough.
    std::uint64_t count(context& self, slot_atomic& slot) noexcept {
        if (word::atc::is_null(slot.load_acquire())) return 0;
        // Until the count is made the slot is not to be found in the TAG by a handler.
        self.changing = true;
        P::compiler_fence();
        std::uint64_t address = 0;
        switch (self.tag.insert(reinterpret_cast<std::uintptr_t>(&slot))) {
        case base_delta_ptr_set<>::insert_result::inserted:
            address = word::count_in(slot).address;
            break;
        case base_delta_ptr_set<>::insert_result::present:
            address = word::mark_access(slot).address;
            break;
        case base_delta_ptr_set<>::insert_result::no_room:
            address = word::count_in_forever(slot).address;
            break;
        }
        P::compiler_fence();
        self.changing = false;
        return address;
    }

    // Takes back every count. A slot may have been destroyed since, and its memory unmapped: so
    // announce the bitmap word, look whether the slot is still one, and only then touch it. A
    // destroyer clears the bit first and then waits for the announcement to go.
    void count_out_all(context& self) noexcept {
        self.changing = true;
        P::compiler_fence();
        std::uint64_t announced = 0;
        self.tag.for_each([&](std::uintptr_t address) {
            const std::uint64_t key = exit_key(address);
            if (key != announced) {
                announced = key;
                ++self.exits;
                self.exit_hazard.exchange_seq_cst((std::uint64_t{self.exits} << exit_key_bits) |
                                                  key);
                self.exit_ended.notify();
            }
            auto* slot = reinterpret_cast<slot_atomic*>(address);
            if (slots_.test(slot)) word::count_out(*slot);
        });
        self.exit_hazard.store_release(0); // pairs with wait_for_exits()
        self.exit_ended.notify();
        self.tag.clear();
        P::compiler_fence();
        self.changing = false;
    }

  public:
    // Exit hazards name bitmap words of SODA. Key 0 is the first 512 bytes of memory: no slots
    // there.
    static constexpr unsigned exit_key_bits = directory::address_bits - directory::word_shift;
    static std::uint64_t exit_key(std::uintptr_t address) noexcept {
        return address >> directory::word_shift;
    }

  private:
    scope_registry<P>& registry_;
    directory& slots_;
    const atc_state<P>& state_;
};

template <class P>
void wait_for_exits(const scope_registry<P>& registry, const atc_context<P>* self,
                    const void* begin, const void* end) noexcept {
    using threads = atc_threads<P>;
    constexpr std::uint64_t key_mask = (std::uint64_t{1} << threads::exit_key_bits) - 1;
    const std::uint64_t first = threads::exit_key(reinterpret_cast<std::uintptr_t>(begin));
    const std::uint64_t last = threads::exit_key(reinterpret_cast<std::uintptr_t>(end) - 1);
    registry.for_each_record([&](const thread_record<P>& r) {
        auto* other = static_cast<atc_context<P>*>(r.protocol_data);
        if (other == nullptr || other == self) return;
        const std::uint64_t seen = other->exit_hazard.load_seq_cst();
        const std::uint64_t key = seen & key_mask;
        if (seen == 0 || key < first || key > last) return;
        // pairs with count_out_all()
        other->exit_ended.wait([&] { return other->exit_hazard.load_acquire() != seen; });
    });
}

} // namespace obase::mobility
