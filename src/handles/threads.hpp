// SPDX-License-Identifier: MIT
//
// The threads' half of handles: scopes that never end by themselves, polls, and translations.
//
// A thread that runs compiled code is *inside* from its entry to its leave: its scope slot
// (obase/mobility/scope_slot.hpp) shows the epoch of its last poll. What it translated since then it may use, and
// nothing else (O1). So a poll is the end of one scope and the beginning of the next. A thread in foreign code that got
// no translation is *offline*, as outside of a scope.
//
//   enter()    was offline: as coming online. Was inside (a signal handler, a function that foreign code calls back in
//              the midst of translated code): only a depth; polls announce nothing until leave(), for the interrupted
//              code has translations.
//   poll()     the epoch of now goes into the slot. An older epoch would be right, too; the collector waits longer.
//   restore()  after a longjmp: depth, offline state and pins of what was left.
//
// Stopping. What must happen although objects are in use all the time (a home that foreign code is to keep, a foreign
// access to a moved object) needs a moment in which no thread has a translation: stop() asks for it, and the other
// threads wait in their polls, where they have none, or when they come online. Pins stay. Only
// a thread that is itself at a safepoint, or has no translations that matter, may stop the others.
//
// What the collector waits for besides epochs: that blocks in thread caches of closed runs are back in their runs. Each
// thread gives its own back in its next poll. For one that is offline the collector does it under `service`: a thread
// that comes online meanwhile finds `wanted` set, since its announcement and its look at `wanted` cannot both precede the
// collector's membarrier, and waits for that lock: a few microseconds, in a slow path.
//
// Host: what the thread's caches are.
//   flush_own()            the calling thread's blocks of movable objects go back to their runs
//   flush(record&)         the same for another thread, which is offline and stays so meanwhile
//   uninterrupted          while one exists, no signal's handler runs in the calling thread
// Templated on the platform; the tests run this text under the deterministic scheduler.
#pragma once

#include "mobility/arming_thread.hpp"
#include "mobility/pins.hpp"
#include "mobility/scope_registry.hpp"
#include "os/waiting.hpp"

#include <obase/mobility/scope_slot.hpp>

#include <cstdint>

namespace obase::handles {

template <class P>
struct handles_record : mobility::thread_record<P> {
    template <class T>
    using atomic = typename P::template atomic<T>;

    os::blocking_lock<P> service;  // held while the thread's caches are given back
    atomic<std::uint64_t> flushed; // the last request that was answered
    // Its owner's: the request at which it last let SIGSEGV through.
    static constexpr std::uint64_t never = UINT64_MAX;
    std::uint64_t unblocked = never;
    void* cache = nullptr; // Host's: whose caches; under `service`
    // Owner only.
    std::uint16_t nested = 0;                  // entries that found the thread inside
    std::uint8_t offline = 0;                  // calls without the other
    std::uint32_t pins_held = 0;               // never less than there are entries
    mobility::pin_chunk<P>* filling = nullptr; // those before it are full; null: it is the first
};

// enter(): what leave() puts back. state(): the same, and the number of pins.
struct thread_mark {
    std::uint16_t nested;
    std::uint8_t offline;
    bool inside;
    std::uint32_t pins;
};
static_assert(sizeof(thread_mark) == sizeof(std::uint64_t));

template <class P, class Host>
class handles_threads {
  public:
    template <class T>
    using atomic = typename P::template atomic<T>;
    using record = handles_record<P>;
    using registry = mobility::scope_registry<P>;

    // `wanted`: the byte that compiled code looks at.
    handles_threads(Host& host, atomic<std::uint8_t>& wanted) noexcept
        : host_(host), wanted_(wanted) {}

    registry& all() noexcept { return registry_; }

    // Threads.

    thread_mark enter(record& r) noexcept {
        const thread_mark before = state(r);
        if (before.inside) {
            ++r.nested;
        } else {
            r.offline = 0;
            r.nested = 0;
            come_online(r);
        }
        return before;
    }
    void leave(record& r, thread_mark before) noexcept {
        if (!before.inside) r.epoch.store_release(0); // pairs with wait_for()
        P::compiler_fence();
        r.nested = before.nested;
        r.offline = before.offline;
    }
    void go_offline(record& r) noexcept {
        if (r.offline++ == 0 && r.nested == 0) r.epoch.store_release(0); // pairs with wait_for()
    }
    void go_online(record& r) noexcept {
        if (--r.offline == 0 && r.nested == 0) come_online(r);
    }
    void poll(record& r) noexcept {
        if (r.nested != 0 || r.epoch.load_relaxed() == 0) return;
        if (stop_.load_acquire() != 0) wait_while_stopped(r);
        // Before the announcement: the collector takes a passed thread for one that has given its blocks back.
        give_blocks_back(r);
        r.epoch.exchange_seq_cst(
            registry_.epoch().load_acquire()); // pairs with advance(), wait_for()
        P::compiler_fence();
    }
    thread_mark state(const record& r) const noexcept {
        return {r.nested, r.offline, r.epoch.load_relaxed() != 0, r.pins_held};
    }
    // Gives back the pins beyond those of `before`, and whatever was entered since.
    void restore(record& r, thread_mark before) noexcept {
        if (r.pins_held > before.pins) release_pins(r, before.pins);
        r.nested = before.nested;
        r.offline = before.offline;
        if (!before.inside)
            r.epoch.store_release(0);
        else if (r.epoch.load_relaxed() == 0)
            come_online(r);
        else if (wanted_.load_relaxed() != 0)
            poll(r);
    }

    // Pins. A record's first free entry is taken, and the last one that has the address is left, so entries of
    // abandoned frames can be told by their number only. `make_chunk` as in mobility/pins.hpp.
    //
    // A handler may come anywhere. It finds a count that is no less than the entries, so none that it looks for, or
    // that restore() leaves, is beyond it; one that it abandons by a jump may stay until a frame before it ends.
    template <class MakeChunk>
    atomic<std::uint64_t>* pin(record& r, std::uint64_t address,
                               MakeChunk&& make_chunk) noexcept { // null: no memory
        ++r.pins_held;
        P::compiler_fence();
        mobility::pin_chunk<P>* chunk = r.filling != nullptr ? r.filling : &r.pins;
        auto* const entry = mobility::claim_pin_from<P>(chunk, address, make_chunk);
        P::compiler_fence();
        if (entry == nullptr)
            --r.pins_held;
        else
            r.filling = chunk;
        return entry;
    }
    void unpin(record& r, atomic<std::uint64_t>& entry) noexcept {
        mobility::release_pin(entry);
        P::compiler_fence();
        r.filling = nullptr;
        --r.pins_held;
    }
    void unpin(record& r, std::uint64_t address) noexcept {
        atomic<std::uint64_t>* found = nullptr;
        for_each_pin(r, [&](atomic<std::uint64_t>& entry, std::uint32_t number) {
            if (entry.load_relaxed() == address) found = &entry;
            return number + 1 < r.pins_held;
        });
        if (found != nullptr) unpin(r, *found); // else of an abandoned frame
    }
    bool has_pinned(record& r, std::uint64_t address) noexcept {
        bool found = false;
        if (r.pins_held == 0) return false;
        for_each_pin(r, [&](atomic<std::uint64_t>& entry, std::uint32_t number) {
            found = entry.load_relaxed() == address;
            return !found && number + 1 < r.pins_held;
        });
        return found;
    }

    // The collector, and who stops others.

    // `closing`: blocks in thread caches are to come back first. Returns what wait_for() returned; afterwards no
    // thread but `self` has a translation of before the call, nor a block of a run that was closed before it.
    template <class GiveUp>
    mobility::wait_result wait(record* self, bool closing, GiveUp&& give_up) noexcept {
        using mobility::wait_result;
        const std::uint64_t request =
            closing ? request_.fetch_add_seq_cst(1) + 1 : request_.load_relaxed();
        want(true);
        const mobility::epoch_number epoch = registry_.advance();
        wait_result result = wait_result::given_up;
        if (epoch != 0) result = registry_.wait_for(epoch, self, give_up);
        if (result == wait_result::done && closing) {
            if (self != nullptr) give_blocks_back(*self);
            registry_.for_each_record([&](mobility::thread_record<P>& other) {
                if (&other != self && result == wait_result::done &&
                    !flush(static_cast<record&>(other), request, give_up))
                    result = wait_result::given_up;
            });
        }
        want(false);
        return result;
    }

    // The mover's own wait, after it has armed.
    template <class Mover, class GiveUp>
    mobility::wait_result wait_for(Mover& mover, const record* self, GiveUp&& give_up) noexcept {
        want(true);
        const mobility::wait_result result = mover.wait_for_grace_period(self, give_up);
        want(false);
        return result;
    }

    // Returns true when every other thread is offline or waits in a poll, and none comes online until go_on(). One
    // thread at a time, which holds a lock that says so.
    template <class GiveUp>
    bool stop(const record* self, GiveUp&& give_up) noexcept {
        stop_.store_seq_cst(1);
        want(true);
        if (registry_.advance() != 0 && all_out(self, give_up)) return true;
        go_on();
        return false;
    }
    void go_on() noexcept {
        stop_.store_release(0);
        want(false);
        resumed_.notify();
    }
    // From here on compiled code calls poll() at each poll.
    void always_poll() noexcept {
        always_ = true;
        wanted_.store_seq_cst(1);
    }
    // Child of a fork, whose thread held the lock.
    void forget_others(record* self) noexcept {
        registry_.forget_other_threads(self);
        registry_.for_each_record([&](mobility::thread_record<P>& r) {
            auto& each = static_cast<record&>(r);
            each.service.unlock_in_child();
            if (&each == self) return;
            release_pins(each, 0);
            each.cache = nullptr; // in memory of a thread that is not there
        });
        stop_.store_relaxed(0);
        wanted_count_.store_relaxed(0);
        wanted_.store_relaxed(always_ ? 1 : 0);
        resumed_.forget_waiters();
    }

  private:
    void come_online(record& r) noexcept {
        mobility::enter_scope(r, registry_.epoch());
        // Pairs with stop() and wait(), by their membarrier.
        if (wanted_.load_relaxed() != 0) [[unlikely]]
            come_online_slowly(r);
    }
    [[gnu::noinline]] void come_online_slowly(record& r) noexcept {
        if (stop_.load_acquire() != 0) wait_while_stopped(r);
        give_blocks_back(r);
    }
    [[gnu::noinline]] void wait_while_stopped(record& r) noexcept {
        for (;;) {
            r.epoch.store_release(0); // pairs with all_out()
            resumed_.wait([this] { return stop_.load_acquire() == 0; });
            // Who stops again has stored stop_ before it reads the slot, and this thread the other way round.
            r.epoch.exchange_seq_cst(registry_.epoch().load_acquire());
            if (stop_.load_seq_cst() == 0) return;
        }
    }
    void give_blocks_back(record& r) noexcept {
        const std::uint64_t request = request_.load_acquire();
        if (r.flushed.load_relaxed() == request) return;
        const typename Host::uninterrupted here;
        r.service.lock();
        host_.flush_own();
        r.flushed.store_release(request);
        r.service.unlock();
    }
    template <class GiveUp>
    bool flush(record& r, std::uint64_t request, GiveUp&& give_up) noexcept {
        while (r.flushed.load_acquire() < request) {
            if (r.in_use.load_acquire() == 0) return true; // it gave all back when it ended
            r.service.lock();
            const bool out = r.epoch.load_acquire() == 0;
            if (out && r.flushed.load_relaxed() < request) {
                host_.flush(r);
                r.flushed.store_release(request);
            }
            r.service.unlock();
            if (!out) {
                if (give_up(r)) return false;
                P::pause();
            }
        }
        return true;
    }
    template <class GiveUp>
    bool all_out(const record* self, GiveUp& give_up) noexcept {
        bool ok = true;
        registry_.for_each_record([&](mobility::thread_record<P>& r) {
            if (&r == self) return;
            while (ok && r.epoch.load_acquire() != 0) { // pairs with wait_while_stopped(), leave()
                if (give_up(r)) ok = false;
                P::pause();
            }
        });
        return ok;
    }
    // Several may want polls at once.
    void want(bool more) noexcept {
        if (more) {
            wanted_count_.fetch_add_seq_cst(1);
            wanted_.store_seq_cst(1);
            return;
        }
        if (wanted_count_.fetch_sub_seq_cst(1) != 1 || always_) return;
        wanted_.store_seq_cst(0);
        if (wanted_count_.load_seq_cst() != 0) wanted_.store_seq_cst(1);
    }
    // Until `visit` returns false.
    template <class Visit>
    void for_each_pin(record& r, Visit&& visit) noexcept {
        std::uint32_t number = 0;
        for (mobility::pin_chunk<P>* chunk = &r.pins; chunk != nullptr;
             chunk = chunk->next.load_acquire())
            for (auto& entry : chunk->address)
                if (entry.load_relaxed() != 0 && !visit(entry, number++)) return;
    }
    // Entries fill from the front and frames end from the last, so those beyond the first `kept` are the abandoned.
    void release_pins(record& r, std::uint32_t kept) noexcept {
        for_each_pin(r, [&](atomic<std::uint64_t>& entry, std::uint32_t number) {
            if (number >= kept) mobility::release_pin(entry);
            return true;
        });
        P::compiler_fence();
        r.filling = nullptr;
        r.pins_held = kept;
    }

    Host& host_;
    atomic<std::uint8_t>& wanted_;
    registry registry_;
    atomic<std::uint64_t> request_; // thread caches: the last one
    atomic<std::uint32_t> stop_;
    atomic<std::uint32_t> wanted_count_;
    os::wait_point<P> resumed_;
    bool always_ = false;
};

} // namespace obase::handles
