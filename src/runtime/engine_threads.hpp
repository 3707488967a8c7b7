// SPDX-License-Identifier: MIT
//
// engine: what application threads call. For arming.cpp and atc.cpp, which
// instantiate engines.
#pragma once

#include "runtime/engine.hpp"

namespace obase::runtime_internal {

template <class Binding>
auto engine<Binding>::attach_thread() noexcept -> record* {
    const std::uint32_t id = os::thread_id();
    record* self = Binding::claim_record(registry_, id, zeroed_pages);
    if (self == nullptr) {
        // The record is shared from now on and says nothing reliable about anyone's scope. The
        // flag is set before the thread's first scope: a collector that does not see it sees
        // the words still armed that this thread is going to touch.
        reclaimer_.stop();
        if (degraded_.exchange_seq_cst(1) == 0)
            say("no memory for a thread's record: nothing moves and nothing retired is freed "
                "from now on");
        return &emergency_record_;
    }
    self->exit_work = audits();
    self->reclaiming = false;
    self->owes_wait = false;
    // Before the thread's first slot. The pointer last: a fork may cut in between.
    const os::thread_place place = os::own_place();
    self->place = {0, place.stack_low, place.stack_high};
    platform::compiler_fence();
    self->place.pointer = place.pointer;
    return self;
}

template <class Binding>
void engine<Binding>::leave_thread(record& self) noexcept {
    // A thread that ends in a scope leaves what it retired to the next thread with its record.
    if (&self == &emergency_record_ || self.epoch.load_relaxed() != 0 || degraded()) return;
    count_retired(self);
    count_reclaimed(reclaimer_.leave(self, free_node));
}

template <class Binding>
void engine<Binding>::detach_thread(record& self) noexcept {
    if (&self == &emergency_record_) return;
    Binding::detach(self);
    registry_.release(self);
}

// Of an object. Not std::has_single_bit(), which is a call where the processor may lack popcnt.
constexpr bool is_alignment(std::size_t bytes) noexcept {
    return bytes != 0 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

// An object begins on such an address.
inline bool is_granule(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address) % heap::granule == 0;
}

template <class Binding>
void* engine<Binding>::allocate_managed(std::size_t bytes, const allocation_options& how,
                                        [[maybe_unused]] const void* caller) noexcept {
    if (!is_alignment(how.alignment)) return nullptr;
    heap::space* heaps = space();
    if (heaps == nullptr) return nullptr;
    if constexpr (Binding::bare_addresses)
        if (audit::on()) [[unlikely]]
            return audit::auditor::running()->memory().allocate(bytes, how.alignment, caller);
    heap::attributes attributes;
    attributes.log2_alignment =
        static_cast<std::uint8_t>(std::max(3, std::countr_zero(how.alignment)));
    attributes.never_cold = how.never_cold;
    void* object = how.placed() ? allocate_placed(*heaps, bytes, attributes, how)
                                : heaps->allocate(bytes, attributes);
    if (const std::uint64_t taken = heaps->new_bytes(); watch_.due(taken)) [[unlikely]]
        look_at_memory(taken, bytes > heap::max_small_size && object != nullptr ? bytes : 0);
    // else no allocator has room, and there is no shortage
    if (object == nullptr && bytes <= PTRDIFF_MAX)
        say_once(said_foreign_,
                 "no room in the heaps for a new object (OBASE_HEAP_RESERVE, or a limit on "
                 "memory): such objects come from malloc and never move; statistics count them");
    return object;
}

static_assert(static_cast<int>(obase::expectation::once) ==
                  static_cast<int>(heap::expectation::once) &&
              static_cast<int>(obase::expectation::cold) ==
                  static_cast<int>(heap::expectation::cold));
static_assert(sizeof(group) == sizeof(heap::group_name));

// A bad neighbour costs its locality, and is counted.
template <class Binding>
void* engine<Binding>::allocate_placed(heap::space& heaps, std::size_t bytes, heap::attributes attr,
                                       const allocation_options& how) noexcept {
    heap::space::neighbour found;
    void* const object =
        heaps.allocate_placed(bytes, attr,
                              {how.near, how.in != nullptr ? &how.in->name : nullptr,
                               static_cast<heap::expectation>(how.expect), how.guided},
                              &found);
    if (how.guided && how.expect == obase::expectation::cold && births_leave_.load_relaxed() != 0)
        note_birth(heaps);
    if (found == heap::space::neighbour::none || found == heap::space::neighbour::found)
        return object;
    near_missed_.fetch_add_relaxed(1);
    if (found == heap::space::neighbour::no_object && checks_frees_.load_relaxed() != 0 &&
        said_no_neighbour_.load_relaxed() == 0 && said_no_neighbour_.exchange_acq_rel(1) == 0) {
        char line[160];
        std::snprintf(line, sizeof line,
                      "an object was to lie near %p, where there is none: was it freed? "
                      "Statistics count such calls (near_missed)",
                      how.near);
        say(line);
    }
    return object;
}

// The collector takes births out of memory as they come. It may be slower than threads are: they wait then, as long as that
// makes room.
template <class Binding>
void engine<Binding>::note_birth(const heap::space& heaps) noexcept {
    const std::uint64_t bytes = heaps.births_in_memory(cold_births_);
    if (bytes < births_at_once) return;
    const bool waits = bytes >= births_limit_.load_relaxed();
    if (!waits && births_told_.load_relaxed() != 0) return;
    births_told_.store_relaxed(1);
    wait_for_births(heaps);
}

template <class Binding>
void engine<Binding>::wait_for_births(const heap::space& heaps) noexcept {
    const os::no_cancellation to_the_end;
    std::unique_lock lock(state_);
    if (!may_collect() || in_window_) return;
    wake_.notify_all();
    const auto in_memory = [&] { return heaps.births_in_memory(cold_births_); };
    if (in_memory() < births_limit_.load_relaxed() || !may_wait_for_memory.all()) return;
    room_.wait_for(lock, std::chrono::duration<double>(longest_allocation_wait_seconds), [&] {
        return in_memory() < births_limit_.load_relaxed() || !may_collect() || in_window_;
    });
    // Not for each object: the next wait is when so much more is in memory.
    if (const std::uint64_t now = in_memory(); now >= births_limit_.load_relaxed())
        births_limit_.store_relaxed(now + births_at_once);
}

// `coming`: bytes of a large object that were taken just now, and not touched yet. The object has no slot, so the
// collector does not know of it, and does not wait for it.
template <class Binding>
void engine<Binding>::look_at_memory(std::uint64_t taken, std::uint64_t coming) noexcept {
    const auto claimed = watch_.claim(taken);
    if (!claimed) return;
    const os::no_cancellation to_the_end;
    memory_limit asked;
    {
        const std::lock_guard guard(state_);
        if (may_collect()) asked = parse_memory_limit(settings_.memory).value_or(memory_limit());
    }
    memory_budget now = backend::current_budget(asked, misplaced_.load_relaxed());
    now.used += coming;
    watch_.settle(*claimed, watch_.next_after(taken, now));
    if (now.excess() <= 0) return;
    record* const self = static_cast<record*>(Binding::this_record_if_any());
    if (self != nullptr && self->epoch.load_relaxed() != 0)
        self->owes_wait = self->exit_work = true;
    ask_for_memory(static_cast<std::uint64_t>(std::ceil(now.excess())), may_wait_for_memory.all());
}

// The window may have to wait for a scope. In a destructor there may be anything above.
template <class Binding>
bool engine<Binding>::this_thread_may_wait() noexcept {
    const record* const self = Binding::this_record_if_any();
    if (self != nullptr && (self->epoch.load_relaxed() != 0 || self->reclaiming)) return false;
    return instance().collector_thread_.load_acquire() != os::thread_id();
}

// A window at once, if there is a collector. Whoever waits is in no scope, and holds none of obase's locks: so
// nothing that the window waits for waits for it, unless the program makes it so; then the wait ends by time.
template <class Binding>
void engine<Binding>::ask_for_memory(std::uint64_t bytes, bool waits) noexcept {
    const double began = now_seconds();
    {
        std::unique_lock lock(state_);
        if (!may_collect()) return;
        pressed_ = std::max(pressed_, bytes);
        waits = waits && credit_.any(began);
        if (waits) waiting_.fetch_add_relaxed(1); // before the collector wakes: it hurries
        wake_.notify_all();
        if (!waits) return;
        const std::uint64_t seen = reliefs_;
        room_.wait_for(lock, std::chrono::duration<double>(longest_allocation_wait_seconds),
                       [&] { return reliefs_ != seen || !may_collect(); });
        waiting_.fetch_sub_relaxed(1);
        credit_.spend(began, now_seconds());
    }
    auto& live = recorder_.load_acquire()->live;
    live.allocation_waits.add(1);
    live.allocation_wait_seconds.add(now_seconds() - began);
    say_once(said_waits_,
             "memory is over its budget (OBASE_MEMORY): threads that allocate wait for the "
             "collector, for .1 s at most; statistics count them");
}

// Its scope has ended. If there is room by now it goes on.
template <class Binding>
void engine<Binding>::wait_owed(record& self) noexcept {
    self.owes_wait = false;
    const os::no_cancellation to_the_end;
    std::uint64_t pressed = 0;
    {
        const std::lock_guard guard(state_);
        pressed = pressed_;
    }
    if (pressed != 0 && may_wait_for_memory.all()) ask_for_memory(pressed, true);
}

template <class Binding>
void* engine<Binding>::allocate(std::size_t bytes, const allocation_options& how) noexcept {
    if (void* object = allocate_managed(bytes, how); object != nullptr) return object;
    // R17: a foreign object is never armed and never moves; all else works.
    if (!is_alignment(how.alignment)) return nullptr;
    if (bytes > PTRDIFF_MAX) return nullptr; // rounded up it might be small
    void* const object =
        how.alignment <= alignof(std::max_align_t)
            ? std::malloc(bytes)
            : std::aligned_alloc(how.alignment, (bytes + how.alignment - 1) & ~(how.alignment - 1));
    if (object != nullptr) note_foreign(object);
    return object;
}

template <class Binding>
void* engine<Binding>::allocate_usual_elsewhere(std::size_t bytes) noexcept {
    return instance().allocate(bytes, allocation_options{});
}

template <class Binding>
void engine<Binding>::deallocate_elsewhere(void* object) noexcept {
    heap::space* heaps = space_.load_acquire();
    if (heaps != nullptr && heaps->contains(object))
        heaps->free(object);
    else
        instance().free_foreign(object);
}

template <class Binding>
void engine<Binding>::deallocate_checked(void* object) noexcept {
    heap::space* heaps = space_.load_acquire();
    if (heaps == nullptr || !heaps->contains(object)) {
        free_foreign(object);
    } else if (const heap::free_result result = heaps->free_checked(object);
               result != heap::free_result::done) {
        invalid_free(object, result);
    }
}

template <class Binding>
bool engine<Binding>::expect_object(const void* address) noexcept {
    heap::space* heaps = space_.load_acquire();
    if (heaps != nullptr && heaps->contains(address)) {
        if (heaps->info(address).size != 0) return true;
        invalid_free(address, heap::free_result::no_object);
        return false;
    }
    const slots* noted = foreign_.load_acquire();
    if (noted != nullptr && is_granule(address) && noted->test(address)) return true;
    if (foreign_unknown_.load_relaxed() != 0) return true;
    invalid_free(address, heap::free_result::foreign);
    return false;
}

// The directory's leaves stay: no collector knows of it, so no scopes are needed.
template <class Binding>
void engine<Binding>::note_foreign(const void* object) noexcept {
    if constexpr (!Binding::bare_addresses) heap::asan::never_leaked(object);
    slots* noted = foreign_.load_acquire();
    if (noted == nullptr) {
        auto* made = new (std::nothrow) slots;
        if (made != nullptr && made->open() && foreign_.cas_acq_rel(noted, made))
            noted = made;
        else
            delete made; // no memory, or another thread was first
    }
    if (noted == nullptr || !noted->set(object)) foreign_unknown_.store_relaxed(1);
}

// An address that is not in the heaps. malloc gave it if it is noted, or if not all could be noted.
template <class Binding>
void engine<Binding>::free_foreign(void* object) noexcept {
    if (object == nullptr) return;
    slots* noted = foreign_.load_acquire();
    if ((noted != nullptr && is_granule(object) && noted->take(object)) ||
        foreign_unknown_.load_relaxed() != 0)
        std::free(object);
    else
        invalid_free(object, heap::free_result::foreign);
}

template <class Binding>
void engine<Binding>::invalid_free(const void* address, heap::free_result result) noexcept {
    space(); // reads the settings, if the program's first call is this one
    if (checks_frees_.load_relaxed() != 0) heap::stop_at_invalid_free(address, result);
    invalid_frees_.fetch_add_relaxed(1);
    if (said_invalid_free_.load_relaxed() != 0 || said_invalid_free_.exchange_acq_rel(1) != 0)
        return;
    char line[224];
    std::snprintf(
        line, sizeof line,
        "invalid free of %p: %s. It is ignored, as are others; statistics count them, and "
        "OBASE_CHECK_FREES=1 ends the program at the first",
        address, heap::words_for(result));
    say(line);
}

template <class Binding>
std::size_t engine<Binding>::usable_size(const void* object) noexcept {
    return manages(object) ? managed_size(object) : malloc_usable_size(const_cast<void*>(object));
}

template <class Binding>
void engine<Binding>::retire(record& self, void* object, void (*destroy)(void*) noexcept,
                             std::size_t bytes) noexcept {
    using node = mobility::retired_object;
    void* memory = std::malloc(sizeof(node));
    if (memory == nullptr && self.epoch.load_relaxed() == 0) { // in a scope: see below
        reclaim_now();
        memory = std::malloc(sizeof(node));
    }
    if (memory == nullptr) {
        say_once(said_not_retired_,
                 "no memory to retire an object: it will never be freed, nor will "
                 "others while this lasts");
        return;
    }
    node& retired = *::new (memory) node{nullptr, object, destroy, bytes};
    if (&self == &emergency_record_) { // several threads' at once; nothing is freed any more
        reclaimer_.push(self, retired);
        return;
    }
    if (!reclaimer_.retire(self, retired)) return;
    // In a scope the caller may hold locks that a destructor wants: wait for the scope's end.
    if (self.epoch.load_relaxed() != 0)
        self.exit_work = true;
    else
        reclaim_share(self);
}

template <class Binding>
void engine<Binding>::count_retired(const record& self) noexcept {
    if (telemetry::recorder* recorder = recorder_.load_acquire(); recorder != nullptr)
        recorder->live.retired_objects.add(self.retired_count);
}

template <class Binding>
void engine<Binding>::count_reclaimed(typename reclaimer::progress done) noexcept {
    if (done.objects == 0) return;
    if (telemetry::recorder* recorder = recorder_.load_acquire(); recorder != nullptr)
        recorder->live.reclaimed_objects.add(done.objects);
}

template <class Binding>
void engine<Binding>::reclaim_share(record& self) noexcept {
    if (degraded()) return;
    count_retired(self);
    count_reclaimed(reclaimer_.share(self, free_node));
}

template <class Binding>
std::uint64_t engine<Binding>::reclaim_now() noexcept {
    record* self = Binding::this_record();
    if (degraded()) return 0;
    const auto done = reclaimer_.reclaim_all(*self, free_node, [] { return true; });
    count_reclaimed(done);
    return done.objects;
}

template <class Binding>
drain_result engine<Binding>::drain(double seconds) noexcept {
    record* self = Binding::this_record();
    if (degraded()) return {drain_end::thread_without_record, reclaimer_.pending()};
    const os::no_cancellation to_the_end;
    const double end = now_seconds() + seconds;
    std::uint64_t nap = first_drain_nap_ns;
    std::uint64_t destroyed = 0;
    const drain_end why = reclaimer_.drain(
        *self,
        [&](mobility::retired_object* node) {
            ++destroyed;
            free_node(node);
        },
        [&](drain_end what) {
            // Written so that NaN ends the wait.
            if (!(now_seconds() < end)) return false;
            if (what == drain_end::retiring) return true; // another round, no waiting
            os::sleep_ns(nap);
            nap = std::min(2 * nap, longest_drain_nap_ns);
            return true;
        });
    count_reclaimed({destroyed, 0});
    return {why, why == drain_end::done ? 0 : reclaimer_.pending()};
}

template <class Binding>
void engine<Binding>::record_touch(record& self, slot_atomic& slot) noexcept {
    if (&self == &emergency_record_) return; // several threads' at once: no place for a list
    if (audits()) {
        if constexpr (Binding::bare_addresses) audit::auditor::running()->touched(slot);
        return;
    }
    // A signal handler may do the same at any instruction: no malloc, and one step takes a place.
    if (self.rearm_list == nullptr) self.rearm_list = zeroed_pages(sizeof(touched_slots));
    auto* touched = static_cast<touched_slots*>(self.rearm_list);
    if (touched == nullptr) return; // no slot that reports a missed decode early
    const std::uint32_t place = touched->count.fetch_add_relaxed(1);
    if (place < touched_slots::capacity) touched->slots[place] = &slot;
    self.exit_work = true;
}

// The debug mode writes born words, not armed ones: R3 and with it every candidate list stay as
// they are. It visits like the collector does, and holds the collector's lock to be the only
// visitor.
template <class Binding>
void engine<Binding>::end_scope(record& self) noexcept {
    self.exit_work = audits();
    if (auto* touched = static_cast<touched_slots*>(self.rearm_list);
        touched != nullptr && touched->count.load_relaxed() != 0) {
        const heap::space* heaps = space_.load_acquire();
        park_.lock();
        const std::uint32_t count =
            std::min(touched->count.load_relaxed(), touched_slots::capacity);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!slots_.begin_visit(touched->slots[i])) continue;
            if (heaps != nullptr) Binding::arm_again(*touched->slots[i], *heaps);
            slots_.end_visit();
        }
        park_.unlock();
        touched->count.store_relaxed(0);
    }
    mobility::exit_scope(self, 0);
    if (reclaimer_.share_is_due(self)) reclaim_share(self);
    if (self.owes_wait) wait_owed(self);
    if (audits() && std::exchange(audit::operation_ends, false)) {
        // What was freed goes at once, or it would keep its arena, and a use of it would not fault.
        if (!self.reclaiming && reclaimer_.pending() != 0) reclaim_now();
        // The one visitor: no collector scans, and nothing is armed again by the debug mode.
        if constexpr (Binding::bare_addresses) audit::auditor::running()->operation_ended(self);
    }
}

} // namespace obase::runtime_internal
