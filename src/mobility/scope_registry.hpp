// SPDX-License-Identifier: MIT
//
// Scopes and epochs: which threads may still hold a raw address, and how the collector waits for
// them.
//
// The list of all threads' records and the global epoch. The entry half of the synchronization,
// with its argument, is obase/mobility/scope_slot.hpp; this is the waiting half. Deferred frees
// (reclaimer.hpp) wait on the same epochs. It is the papers' Thread Activity Index with a slot of
// its own for every thread, so no collision hides a thread.
//
// Invariants: records are never freed (R1), a thread that ends gives its record to the next one.
#pragma once

#include "os/thread_memory.hpp"

#include <obase/mobility/scope_slot.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace obase::mobility {

// Pins of one thread: an address each, 0 when free. Only the owning thread claims an entry; any
// thread releases one, by storing 0, because a pin may be handed over (R9). Chunks are never freed.
template <class P>
struct pin_chunk {
    static constexpr unsigned entries = 31;
    typename P::template atomic<std::uint64_t> address[entries];
    typename P::template atomic<pin_chunk*> next;
};

// An object whose destruction was put off until no scope can hold its address.
struct retired_object {
    retired_object* next;
    void* object;
    void (*destroy)(void* object) noexcept;
    std::size_t bytes;
    retired_object* next_list = nullptr; // of a list's head, in a queue of lists
};

template <class P>
struct alignas(64) thread_record : scope_slot<typename P::template atomic<epoch_number>> {
    template <class T>
    using atomic = typename P::template atomic<T>;

    bool reclaiming = false;         // owner only: no reclaim inside a reclaim
    bool owes_wait = false;          // owner only: for memory, when its scope ends
    std::uint32_t retired_count = 0; // owner only: since its last share of reclaiming
    std::uint64_t retired_bytes = 0; // owner only: likewise
    std::uint64_t untaken_bytes = 0; // owner only: since it last took all threads' lists
    std::uint32_t untaken_count = 0; // owner only: likewise
    // Owner only, except for the child of a fork: how many objects `destroying` stands for.
    std::uint32_t destroying_count = 0;
    atomic<retired_object*> retired;  // pushed by the owner, taken by any reclaimer
    atomic<std::uint64_t> destroying; // ticket of what the owner is destroying, 0: nothing

    alignas(64) atomic<std::uint32_t> in_use; // 1 while a thread owns the record
    atomic<std::uint32_t> thread_id;          // of the owner, for reports
    pin_chunk<P> pins;
    thread_record* next = nullptr; // written before the record is published, then constant
    void* protocol_data = nullptr; // owner only: what a protocol keeps per thread (ATC's TAG)
    void* rearm_list = nullptr;    // owner only: slots touched in this scope, in the debug mode
    // Owner only, and a forked child in which the owner does not exist. Its `pointer` is 0 while no
    // thread has the record.
    os::thread_place place;
};

enum class wait_result { done, given_up };

template <class P>
class scope_registry {
  public:
    template <class T>
    using atomic = typename P::template atomic<T>;
    using record = thread_record<P>;

    constexpr scope_registry() noexcept : epoch_(1) {}

    // What enter_scope() reads.
    const atomic<epoch_number>& epoch() const noexcept { return epoch_; }

    // Adds a record for a new thread: an unused one, or `fresh` which then belongs to the registry.
    // Never fails if `fresh` is given. Lock-free.
    record* find_unused(std::uint32_t thread_id) noexcept {
        for (record* r = head_.load_acquire(); r != nullptr; r = r->next) {
            std::uint32_t unused = 0;
            if (r->in_use.load_relaxed() == 0 && r->in_use.cas_acq_rel(unused, 1)) {
                r->thread_id.store_relaxed(thread_id);
                return r;
            }
        }
        return nullptr;
    }

    void add(record& fresh, std::uint32_t thread_id) noexcept {
        records_.fetch_add_relaxed(1);
        fresh.fenced = fenced_;
        fresh.in_use.store_relaxed(1);
        fresh.thread_id.store_relaxed(thread_id);
        record* head = head_.load_acquire();
        do {
            fresh.next = head;
        } while (!head_.cas_acq_rel(head, &fresh));
    }

    // The owner's thread ends. Objects it retired stay in the record for the next reclaimer; pins
    // that were handed over stay too. A scope left open by a killed thread ends here (O6).
    void release(record& self) noexcept {
        self.exit_work = false;
        self.place.pointer = 0;
        self.epoch.store_release(0);
        self.in_use.store_release(0); // pairs with find_unused()
    }

    // Starts a wait: after this returns E, a record that shows 0 or at least E belongs to a thread
    // that sees everything written before the call. 0 when membarrier failed: move nothing.
    epoch_number advance() noexcept {
        const epoch_number next = epoch_.fetch_add_seq_cst(1) + 1;
        return barrier() ? next : 0;
    }

    // Waits until every record but `self` is outside or at `target`. `give_up(record)` is asked
    // while one is not; true ends the wait (R6: then the candidates are dropped). Holds no hazard,
    // no lock.
    template <class GiveUp>
    wait_result wait_for(epoch_number target, const record* self, GiveUp&& give_up) const noexcept {
        for (record* r = head_.load_acquire(); r != nullptr; r = r->next) {
            if (r == self) continue; // R14: the collector never waits for its own scope
            while (!passed(*r, target)) {
                if (give_up(*r)) return wait_result::given_up;
                P::pause();
            }
        }
        return wait_result::done;
    }

    // For the mover, after it has looked at the slots: once done, a thread that holds the address
    // of an object has it from the slot that the mover looked at. `waits` is waits_for_holders() of
    // after that look, `self` and `give_up` as for wait_for(); given up also when membarrier failed
    // (R1).
    //
    // Where an object has one slot, one wait does. In an operation on marked pointers it may be in two
    // for a moment. The first wait outlasts the operations that had put it into the slot the mover looked
    // at, and so the time in which another slot still shows it; the second, those who found it there.
    template <class GiveUp>
    wait_result wait_for_holders(unsigned waits, const record* self, GiveUp&& give_up) noexcept {
        for (; waits != 0; --waits) {
            const epoch_number epoch = advance();
            if (epoch == 0 || wait_for(epoch, self, give_up) == wait_result::given_up)
                return wait_result::given_up;
        }
        return wait_result::done;
    }
    unsigned waits_for_holders() const noexcept {
        return in_two_slots_.load_relaxed() != 0 ? 2 : 1;
    }
    // From now on operations may have an address in two slots. Before the first such slot is registered:
    // a thread that has found the slot sees this, because registration is seq_cst.
    void expect_addresses_in_two_slots() noexcept {
        if (in_two_slots_.load_relaxed() == 0) in_two_slots_.store_release(1);
    }

    // The oldest epoch that an open scope shows, the caller's own included; the largest number if
    // none is open. Every scope has passed an epoch that is not above it.
    epoch_number oldest_scope() const noexcept {
        epoch_number oldest = ~epoch_number{0};
        for (record* r = head_.load_acquire(); r != nullptr; r = r->next) {
            const epoch_number seen = r->epoch.load_acquire(); // pairs with exit_scope()
            if (seen != 0) oldest = std::min(oldest, seen);
        }
        return oldest;
    }

    // Records made so far: the most threads that there were at a time.
    std::uint32_t records() const noexcept { return records_.load_relaxed(); }

    template <class F>
    void for_each_record(F&& visit) const {
        for (record* r = head_.load_acquire(); r != nullptr; r = r->next) visit(*r);
    }

    // Child of a fork: only the calling thread exists (R14).
    void forget_other_threads(const record* self) noexcept {
        for (record* r = head_.load_acquire(); r != nullptr; r = r->next) {
            if (r == self) continue;
            r->epoch.store_relaxed(0);
            r->place.pointer = 0;
            r->in_use.store_relaxed(0);
        }
    }

    // Without membarrier every enter_scope() must fence by itself. Set once, before threads
    // register.
    void set_fenced(bool fenced) noexcept { fenced_ = fenced; }
    bool fenced() const noexcept { return fenced_; }

  private:
    static bool passed(const record& r, epoch_number target) noexcept {
        const epoch_number seen = r.epoch.load_acquire(); // pairs with exit_scope()
        return seen == 0 || seen >= target;
    }

    bool barrier() const noexcept { return fenced_ || P::membarrier(); }

    // On a line of its own: every scope entry reads it, only advance() writes it.
    alignas(64) atomic<epoch_number> epoch_;
    alignas(64) atomic<record*> head_;
    atomic<std::uint32_t> records_;
    atomic<std::uint32_t> in_two_slots_; // 1: see wait_for_holders()
    bool fenced_ = false;
};

} // namespace obase::mobility
