// SPDX-License-Identifier: MIT
//
// engine: the collector thread. For arming.cpp and atc.cpp, which
// instantiate engines.
#pragma once

#include "runtime/engine.hpp"
#include "runtime/marked_units.hpp"

namespace obase::runtime_internal {

template <class Binding>
void engine<Binding>::run() noexcept {
    os::name_thread(Binding::thread_name);
    os::prefer_short_turns(); // while it waits for a scope, everybody else goes on touching
    collector_thread_.store_release(os::thread_id());
    self_ = Binding::this_record();
    last_window_end_ = last_end_ = paid_at_ = now_seconds();
    last_cpu_ = 0;
    policy::window_facts before; // the first window begins now
    note_faults(before);
    time_ = {};
    active_before_ = active_seconds();
    looked_for_room_at_ = 0;

    bool more = false; // to reclaim, soon
    std::unique_lock lock(state_);
    window_settings_ = settings_;
    lock.unlock();
    park_.lock();
    look_at_units();
    park_.unlock();
    lock.lock();
    budget_ = backend::current_budget(window_settings_.memory);
    while (stopping_.load_relaxed() == 0) {
        allow_births(may_collect());
        const bool asked = requested_ > served_;
        const double now = now_seconds();
        const double next_window = this->next_window();
        const bool idle = settings_.mode == run_mode::off;
        if (!may_collect()) pressed_ = 0;
        const bool early = pressed_ != 0 && now >= paid_at_;
        const bool due = !idle && now >= next_window;
        double next_look = next_window;
        if (due && !asked && !early && might_rest(now)) {
            next_look = looked_for_room_at_ + settings_.scaled_window_seconds() / 8;
            if (now >= next_look) {
                window_settings_ = settings_;
                lock.unlock(); // files are opened
                has_room_ = budget_now().excess() <= 0;
                lock.lock();
                looked_for_room_at_ = now_seconds();
                continue; // much may have changed
            }
            if (!has_room_) next_look = now;
        }
        if (!asked && !early && (idle || now < next_look)) {
            // This thread is not woken when something is retired, so it polls.
            double rest = idle ? idle_tick_seconds : std::min(next_look - now, idle_tick_seconds);
            if (pressed_ != 0) rest = std::min(rest, paid_at_ - now);
            if (reclaimer_.pending() != 0)
                rest = std::min(rest, more ? short_tick_seconds : reclaim_tick_seconds);
            if (births_leave_.load_relaxed() != 0 && births_told_.exchange_acq_rel(0) != 0) {
                window_settings_ = settings_;
                lock.unlock();
                park_.lock();
                page_out_births();
                park_.unlock();
                lock.lock();
                births_limit_.store_relaxed(most_births);
                room_.notify_all();
                continue;
            }
            wake_.wait_for(lock, std::chrono::duration<double>(rest));
            more = false;
            if (reclaimer_.pending() == 0) continue;
            lock.unlock();
            more = reclaim_tick();
            lock.lock();
            continue;
        }
        const std::uint64_t ticket = requested_;
        const std::uint64_t pressed = pressed_;
        window_settings_ = settings_;
        in_window_ = true;
        if (settings_.cold_write_limit != 0) allow_births(false); // moving has what is left of it
        room_.notify_all();
        lock.unlock();
        const std::uint64_t left_before = paged_out_bytes();
        park_.lock();
        look_at_units();
        run_window(asked, !asked && now < next_window, pressed);
        park_.unlock();
        if (pressed != 0) end_early_window(paged_out_bytes() - left_before);
        more = reclaim_tick();
        lock.lock();
        in_window_ = false;
        if (asked) {
            served_ = ticket;
            last_result_ = given_up_ ? collect_result::abandoned : collect_result::done;
            finished_.notify_all();
        }
    }
    running_ = false;
    allow_births(false);
    pressed_ = 0;
    collector_thread_.store_release(0);
    finished_.notify_all();
    room_.notify_all();
}

// In a program with marked pointers, where something is about to move: who may not know of it. With park_ held, since a
// child goes on with what was seen.
template <class Binding>
void engine<Binding>::look_at_units() noexcept {
    if (!window_settings_.check_units || window_settings_.mode < run_mode::move ||
        !has_marked_units(Binding::name))
        return;
    try {
        units_.look([](void*, const char* line) { say(line); }, nullptr);
    } catch (const std::bad_alloc&) { // nothing is said of the rest
    }
}

// As the policy wants it, and what the last window took allows it; when it was asked for, if it is not sooner. Under
// state_.
template <class Binding>
double engine<Binding>::next_window() const noexcept {
    const double length = settings_.scaled_window_seconds();
    if (window_factor_ >= 1 || settings_.window_cpu_share == 0) return last_window_end_ + length;
    const double sooner = std::max(last_window_end_ + window_factor_ * length,
                                   window_began_ + window_cpu_ / settings_.window_cpu_share);
    return std::min(sooner, last_window_end_ + length);
}

// Under state_: it is time for a window, but the program has hardly done anything since the last one, and nothing else
// needs the next: the policy, which may want shorter ones, or a scope that was open when the last one began.
template <class Binding>
bool engine<Binding>::might_rest(double now) const noexcept {
    return budget_.allowed != 0 && settings_.mode >= run_mode::move && window_factor_ >= 1 &&
           open_scopes_.empty() &&
           time_.is_quiet(active_seconds() - active_before_, now - last_window_end_,
                          settings_.scaled_window_seconds());
}

// Of the program's threads, so far.
template <class Binding>
double engine<Binding>::active_seconds() noexcept {
    const auto own = static_cast<double>(os::thread_cpu_ns()),
               own_read = static_cast<double>(os::thread_read_bytes());
    const double running = static_cast<double>(os::process_cpu_ns()) - own;
    const double read = static_cast<double>(os::process_read_bytes()) - own_read;
    return running * 1e-9 + read / os::page_size * program_time::seconds_of_read;
}

// Of a window for which threads may wait, after which so many bytes left memory. They go on if there is room, or if
// windows make none; and for those that still wait the next one begins. What the program gave up itself is no reason to
// wait: it needs no window for it.
template <class Binding>
void engine<Binding>::end_early_window(std::uint64_t left) noexcept {
    const heap::space& heaps = *space_.load_relaxed();
    const memory_budget now = budget_now();
    if (early_) watch_.note_window(left, now);
    std::uint64_t live_bytes = 0;
    for (unsigned cls = 0; cls <= heaps.large_class(); ++cls)
        live_bytes += heaps.counters(cls).live_bytes;
    const std::lock_guard guard(state_);
    credit_.earn(live_bytes, watch_.worth_a_wait(now));
    if (now.excess() > 0 && !watch_.hopeless() && waiting_.load_relaxed() != 0) return;
    pressed_ = 0;
    ++reliefs_;
    room_.notify_all();
}

// The collector's part of reclaiming: goes on while destructors retire more, but not past the next
// window or stop(). True: destructors have retired something that is left, perhaps behind a short scope.
template <class Binding>
bool engine<Binding>::reclaim_tick() noexcept {
    if (degraded()) return false;
    const std::uint64_t before = reclaimer_.retired_by_destructors();
    const auto done = reclaimer_.reclaim_all(*self_, free_node, [this] {
        const std::lock_guard guard(state_);
        const bool early = pressed_ != 0 && now_seconds() >= paid_at_;
        return stopping_.load_relaxed() == 0 && requested_ <= served_ && !early;
    });
    count_reclaimed(done);
    return reclaimer_.retired_by_destructors() != before && reclaimer_.pending() != 0;
}

// With park_ held except for the moments it is lent.
template <class Binding>
void engine<Binding>::run_window(bool forced, bool early, std::uint64_t pressed) noexcept {
    forced_ = forced;
    early_ = early;
    given_up_ = false;
    window_began_ = now_seconds();
    pace_.begin(os::thread_cpu_ns(), os::monotonic_ns());
    report_stuck_scopes();
    collector::window_plan plan;
    plan.move = window_settings_.mode >= run_mode::move && !degraded();
    plan.live_fraction = window_settings_.compaction_live_fraction;
    plan.evacuate = plan.live_fraction > 0;
    plan.in_flight = window_settings_.move_in_flight;
    budget_ = plan.move ? budget_now() : memory_budget();
    plan.may_grow = budget_.may_grow();
    plan.may_return = budget_.may_return(early ? 0 : in_use_in_files_, exchange_share_.now());
    plan.early = early;
    if (pressed != 0)
        plan.wanted_bytes = budget_.wanted(pressed);
    else if (!early)
        plan.wanted_bytes = budget_.exchange(still_over_, refused_bytes_, exchange_share_.now());
    watch_.note_budget(budget_);
    if (early) recorder_.load_relaxed()->live.early_windows.add(1);
    plan.may_write = write_allowance();
    const std::uint64_t no_room = recorder_.load_relaxed()->live.no_room_skips.get();
    const std::uint64_t no_budget = recorder_.load_relaxed()->live.no_budget_skips.get();
    bool complete = false;
    try {
        complete = collector_->scan_and_move(plan, self_, *this);
    } catch (const std::bad_alloc&) {
        // Thrown between visits only, where nothing is half-done; the window ends here.
        collector_->abandon();
        say_once(said_cut_short_,
                 "the collector had no memory for its lists: windows are cut short");
    }
    charge_writes();
    if (!complete || collector_->abandoned()) given_up_ = true;
    if (collector_->abandoned() && !registry_.fenced() && !platform::membarrier())
        say_once(said_no_membarrier_,
                 "membarrier fails: nothing moves and nothing retired is freed "
                 "until it works again");
    if (recorder_.load_relaxed()->live.no_room_skips.get() != no_room)
        say_once(
            said_no_room_,
            "no room for objects in the heap they should move to (OBASE_HEAP_RESERVE, a limit "
            "on memory, or a full disk under COLD): they stay where they are; statistics count "
            "them");
    if (recorder_.load_relaxed()->live.no_budget_skips.get() != no_budget)
        say_once(said_no_budget_,
                 "memory is at its limit (OBASE_MEMORY): objects that are in use again stay in the "
                 "file under COLD until there is room; statistics count them");
    if (!early) {
        refused_bytes_ = collector_->refused_bytes();
        exchange_share_.note(refused_bytes_);
    }
    finish_window(*collector_, pressed != 0 ? plan.wanted_bytes : 0, pressed);
    window_cpu_ = static_cast<double>(pace_.used(os::thread_cpu_ns())) * 1e-9;
    paid_at_ = window_began_ + window_cpu_ / window_settings_.collector_cpu_share;
}

// Births are allowed while the collector moves objects: what was born cold and is used has to come home, and memory of what
// was used once has to go back. They write into COLD's file as moving does, within the same limit. And where there is a budget of memory nothing leaves before its time.
template <class Binding>
void engine<Binding>::allow_births(bool may) noexcept {
    heap::space* const heaps = space_.load_relaxed();
    if (heaps == nullptr) return;
    heaps->allow_births_of_once(may_collect()); // no limit on writes is about them
    const auto limit = static_cast<double>(settings_.cold_write_limit);
    for (const unsigned cls : {hot_births_, cold_births_}) {
        if (cls == 0) continue;
        const bool limited = limit != 0 && cls == cold_births_ && heaps->file_backed(cls);
        if (may && !limited) {
            heaps->allow_births(cls);
            if (cls == cold_births_) births_allowed_ = UINT64_MAX;
            continue;
        }
        const std::uint64_t left = heaps->allow_births(cls, 0);
        if (!limited) continue;
        if (births_allowed_ != UINT64_MAX)
            write_credit_.spend(births_allowed_ - std::min(births_allowed_, left));
        births_allowed_ = 0;
        if (!may) continue;
        if (credited_at_ == 0) {
            const double window = settings_.scaled_window_seconds();
            write_credit_.forget();
            write_credit_.earn(limit, window, window);
            credited_at_ = now_seconds();
        }
        births_allowed_ = write_credit_.bytes();
        heaps->allow_births(cls, births_allowed_);
    }
    births_leave_.store_relaxed(may && cold_births_ != 0 && settings_.mode == run_mode::hint &&
                                settings_.hint_pageout && budget_.allowed == 0);
}

// Between two windows, with park_ held.
template <class Binding>
void engine<Binding>::page_out_births() noexcept try {
    heap::space& heaps = *space_.load_relaxed();
    const auto address = [](const char* p) { return reinterpret_cast<std::uintptr_t>(p); };
    backend::tier_view view;
    view.role = policy_->tiers()[cold_births_];
    view.file_base = address(heaps.range_begin(cold_births_));
    heaps.take_births(cold_births_, heap::birth_news::memory, [&](char* begin, char* end) {
        view.leaving.add(address(begin), address(end));
    });
    heaps.for_each_backing(cold_births_, [&](const char* begin, const char* end, int fd) {
        view.files.push_back({address(begin), address(end), fd});
    });
    backend_->page_out(cold_births_, view, window_settings_, [this] {
        checkpoint();
        return !stop_requested();
    });
} catch (const std::bad_alloc&) {
    // They leave after a window.
}

// What the limit on writes leaves for this window.
template <class Binding>
std::uint64_t engine<Binding>::write_allowance() noexcept {
    const auto limit = static_cast<double>(window_settings_.cold_write_limit);
    if (limit == 0) {
        write_credit_.forget();
        credited_at_ = 0;
        return UINT64_MAX;
    }
    const double window = window_settings_.scaled_window_seconds();
    const double since = credited_at_ == 0 ? window : window_began_ - credited_at_;
    credited_at_ = window_began_;
    write_credit_.earn(limit, since, window);
    return write_credit_.bytes();
}

template <class Binding>
void engine<Binding>::charge_writes() noexcept {
    const heap::space& heaps = *space_.load_relaxed();
    std::uint64_t written = 0;
    for (policy::tier_id to = 0; to < policy_->tiers().count(); ++to)
        if (heaps.file_backed(to) && !policy_->tiers()[to].promoted_to)
            for (const auto& from : collector_->moved_bytes()) written += from[to];
    recorder_.load_relaxed()->live.file_moved_bytes.add(written);
    write_credit_.spend(written);
}

// So far, and really.
template <class Binding>
std::uint64_t engine<Binding>::paged_out_bytes() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t bytes : backend_->done().paged_out_bytes) all += bytes;
    return all;
}

template <class Binding>
void engine<Binding>::finish_window(const object_collector&, std::uint64_t wanted,
                                    std::uint64_t pressed) noexcept {
    heap::space& heaps = *space_.load_relaxed();
    telemetry::recorder& recorder = *recorder_.load_relaxed();
    auto& live = recorder.live;
    const double now = now_seconds();

    policy::window_facts facts;
    facts.early = early_;
    facts.length_seconds = now - (early_ ? last_end_ : last_window_end_);
    facts.moved_bytes = collector_->moved_bytes();
    const memory_budget budget = budget_.allowed == 0 ? budget_ : budget_now();
    facts.excess_bytes = wanted != 0 ? static_cast<double>(wanted) : budget.excess();
    if (!early_) {
        note_faults(facts);
        const double active = active_seconds();
        time_.note_window(active - std::exchange(active_before_, active), facts.length_seconds,
                          window_settings_.scaled_window_seconds());
    }
    window_log_->end_window(heaps, early_);
    os::machine here;
    const bool swap = gives_hints() && os::read_machine(&here) && os::can_page_out(here);
    const policy::tier_table& tiers = policy_->tiers();
    tier_facts_->gather(facts, heaps, *window_log_, backend_->done(), {gives_hints(), swap});
    std::uint64_t touched_bytes = 0, reclaimable_pages = 0;
    for (unsigned cls = 0; cls <= heaps.large_class(); ++cls) {
        const heap::touched in_class = heaps.touched_in(cls);
        facts.touched_pages += in_class.pages;
        touched_bytes += in_class.bytes;
        const auto counters = heaps.counters(cls);
        if (cls < tiers.count() && tiers[cls].reclaimable) reclaimable_pages += in_class.pages;
        heap_statistics& row = recorder.of_heap(cls);
        row.live_bytes = counters.live_bytes;
        row.live_objects = counters.live_objects;
        row.extent_bytes = counters.extent_bytes;
        row.hole_bytes = counters.hole_bytes;
        row.runs = counters.runs;
        row.evacuating_runs = counters.evacuating_runs;
        row.touched_pages = in_class.pages;
        row.touched_bytes = in_class.bytes;
    }
    const policy::directives next = policy_->end_of_window(facts);
    for (policy::tier_id id = 0; id < tiers.count(); ++id) {
        recorder.of_heap(id).leaves_after = leaves_after(id);
        recorder.of_heap(id).fault_seconds = facts.tiers[id].fault_seconds;
    }
    notify_backend(heaps, budget.may_leave(pressed), swap);
    if (!early_) {
        misplaced_.store_relaxed(
            budget.allowed == 0
                ? 0
                : backend::misplaced_bytes(heaps, tiers, *window_log_, os::swapped_bytes()));
        in_use_in_files_ = 0;
        for (policy::tier_id id = 0; id < tiers.count(); ++id)
            if (heaps.file_backed(id) && tiers[id].cold)
                in_use_in_files_ += facts.tiers[id].touched_pages * os::page_size;
        still_over_ = gives_hints() && window_settings_.hint_pageout ? budget_now().excess() : 0;
    }

    const std::uint64_t dense_pages = (touched_bytes + 4095) / 4096;
    live.window_seconds.set(facts.length_seconds);
    live.promotion_rate.set(next.promotion_rate);
    live.cold_threshold.set(next.cold_threshold);
    if (!early_) {
        live.predicted_faults.set(next.faults / facts.length_seconds);
        live.predicted_stall.set(
            facts.running_seconds > 0 ? next.stall_seconds / facts.running_seconds : 0);
        live.measured_faults.set(static_cast<double>(facts.major_faults) / facts.length_seconds);
    }
    live.pageout_allowed.set(next.pageout_allowed);
    live.pageout_after.set(next.pageout_after);
    window_factor_ = next.window_factor;
    live.budget_bytes.set(budget_.allowed);
    live.budget_used_bytes.set(budget_.used);
    live.working_set_pages.set(facts.touched_pages);
    live.cold_pages_touched.set(reclaimable_pages);
    live.would_save_pages.set(facts.touched_pages > dense_pages ? facts.touched_pages - dense_pages
                                                                : 0);
    live.pending_objects.set(reclaimer_.pending());
    live.failed_allocations.set(heaps.failures());
    live.invalid_frees.set(invalid_frees_.load_relaxed());
    live.near_missed.set(near_missed_.load_relaxed());
    live.heap_metadata_bytes.set(heaps.metadata_bytes());
    live.peak_resident_bytes.set(os::peak_resident_bytes());
    const backend::totals& hinted = backend_->done();
    live.paged_out_bytes.set(paged_out_bytes());
    live.hint_cold_bytes.set(hinted.cold_bytes);
    live.hint_pageout_bytes.set(hinted.page_out_bytes);
    live.hint_hugepage_bytes.set(hinted.huge_bytes);
    live.hint_collapsed_bytes.set(hinted.collapsed_bytes);
    live.hint_written_bytes.set(hinted.written_bytes);
    live.hint_failures.set(hinted.failures);
    live.hints_stopped.set(hinted.stopped);
    const double cpu = static_cast<double>(os::thread_cpu_ns()) * 1e-9;
    live.collector_cpu_seconds.add(cpu - last_cpu_);
    last_cpu_ = cpu;
    last_end_ = now;
    if (!early_) last_window_end_ = now;
    const std::chrono::duration<double> wall = std::chrono::system_clock::now().time_since_epoch();
    recorder.end_window(to_string(window_settings_.mode), wall.count(), early_);
}

template <class Binding>
memory_budget engine<Binding>::budget_now() const noexcept {
    return backend::current_budget(window_settings_.memory, misplaced_.load_relaxed());
}

// Of the program's threads, in the window.
template <class Binding>
void engine<Binding>::note_faults(policy::window_facts& facts) noexcept {
    const auto since = [](std::uint64_t& before, std::uint64_t now) {
        const std::uint64_t passed = now > before ? now - before : 0;
        before = now;
        return passed;
    };
    const std::uint64_t own_cpu = since(cpu_before_.own, os::thread_cpu_ns());
    const std::uint64_t all_cpu = since(cpu_before_.all, os::process_cpu_ns());
    const std::uint64_t own_faults = since(faults_before_.own, os::thread_major_faults());
    const std::uint64_t all_faults = since(faults_before_.all, os::process_major_faults());
    if (all_cpu > own_cpu) facts.running_seconds = static_cast<double>(all_cpu - own_cpu) * 1e-9;
    if (all_faults > own_faults) facts.major_faults = all_faults - own_faults;
}

// For the statistics: the least for which a page of the tier must have been idle.
template <class Binding>
std::uint64_t engine<Binding>::leaves_after(policy::tier_id id) const noexcept {
    unsigned idle = 0;
    if (!policy_->tiers()[id].reclaimable) return stays_in_memory;
    while (idle < stays_in_memory && !policy_->leaves(id, {0, 0, idle})) ++idle;
    return idle;
}

// What should leave memory is the policy's to say, by tier and place; how, is the backend's.
template <class Binding>
void engine<Binding>::notify_backend(heap::space& heaps, std::uint64_t may_leave,
                                     bool large_leaves) noexcept {
    const bool told =
        gives_hints() && window_log_->view(heaps, *policy_, window_view_, may_leave, large_leaves);
    window_log_->clear();
    if (told) {
        backend_->after_window(window_view_, window_settings_, [this] {
            checkpoint();
            throttle();
            return !stop_requested();
        });
        for (policy::tier_id id = 0; id < policy_->tiers().count(); ++id)
            if (!tier_facts_->can_leave(id)) window_log_->forget_out(id);
    } else {
        window_log_->forget_out();
        backend_->skip_window();
    }
}

// A scope seen open at the start of two windows with the same epoch has been open in between.
template <class Binding>
void engine<Binding>::report_stuck_scopes() noexcept try {
    // Scopes entered from here on announce `begun` or a later epoch, and are not looked at before the
    // next window. So two scopes of a busy thread never show the same epoch in two windows.
    const std::uint64_t begun = registry_.advance(); // 0: membarrier failed
    const double now = now_seconds();
    const double limit = static_cast<double>(window_settings_.stuck_scope_windows) *
                         window_settings_.scaled_window_seconds();
    registry_.for_each_record([&](record& r) {
        const std::uint64_t epoch = r.epoch.load_acquire();
        if (epoch == 0 || (begun != 0 && epoch >= begun)) {
            open_scopes_.erase(&r);
            return;
        }
        auto [entry, fresh] = open_scopes_.try_emplace(&r, open_scope{epoch, now, false});
        open_scope& scope = entry->second;
        if (!fresh && scope.epoch != epoch) scope = {epoch, now, false};
        if (scope.reported || now - scope.since < limit || fresh) return;
        scope.reported = true;
        recorder_.load_relaxed()->live.stuck_scopes.add(1);
        char line[160];
        std::snprintf(line, sizeof line,
                      "thread %u has kept a scope open for at least %.3g s; what was armed since "
                      "cannot move and what was retired since cannot be freed",
                      r.thread_id.load_relaxed(), now - scope.since);
        say(line);
    });
} catch (const std::bad_alloc&) {
    // No memory to remember a scope: it is seen in a later window.
}

// Keeps the thread under its share of the processor (processor_share.hpp). A forced window is not slowed down, nor is
// one while threads wait for memory: what it takes then is paid for before the next that is early.
template <class Binding>
void engine<Binding>::throttle() noexcept {
    if (forced_ || waiting_.load_relaxed() != 0) return;
    const double owed =
        pace_.owed(os::thread_cpu_ns(), os::monotonic_ns(), window_settings_.collector_cpu_share);
    if (owed < processor_share::worth_a_sleep) return;
    park_.unlock();
    {
        std::unique_lock lock(state_);
        wake_.wait_for(lock, std::chrono::nanoseconds(static_cast<std::int64_t>(owed)), [this] {
            return stopping_.load_relaxed() != 0 || waiting_.load_relaxed() != 0;
        });
    }
    park_.lock();
}

template <class Binding>
void engine<Binding>::wait_begins() noexcept {
    wait_began_ = now_seconds();
}

// Destructors may wait for a thread that forks.
template <class Binding>
void engine<Binding>::reclaim() noexcept {
    if (degraded() || reclaimer_.pending() == 0) return;
    park_.unlock();
    count_reclaimed(
        reclaimer_.reclaim(free_node, self_, [this] { return stopping_.load_relaxed() == 0; }));
    park_.lock();
}

template <class Binding>
void engine<Binding>::slots_moved(const mobility::moved_object& moved) noexcept {
    if (places_.load_relaxed() == nullptr) return;
    for (std::size_t at = 0; at + 8 <= moved.bytes; at += 8)
        if (const auto* to = reinterpret_cast<const void*>(moved.to + at); slots_.test(to))
            slot_moved(reinterpret_cast<const void*>(moved.from + at), to);
}

template <class Binding>
bool engine<Binding>::give_up(std::uint32_t, std::uint64_t) noexcept {
    const double limit =
        std::clamp(window_settings_.scaled_window_seconds(), 0.1, longest_wait_seconds);
    return degraded() || now_seconds() - wait_began_ > limit;
}

template <class Binding>
collect_result engine<Binding>::collect_now() noexcept {
    const record* self = Binding::this_record_if_any();
    if (self != nullptr && self->epoch.load_relaxed() != 0) return collect_result::in_scope;
    if (collector_thread_.load_acquire() == os::thread_id()) return collect_result::in_scope;
    const os::no_cancellation to_the_end;
    space(); // starts the thread if this is the first use
    std::unique_lock lock(state_);
    if (!running_ || settings_.mode == run_mode::off) return collect_result::not_running;
    const std::uint64_t ticket = ++requested_;
    wake_.notify_all();
    finished_.wait(lock, [&] { return served_ >= ticket || !running_; });
    return served_ >= ticket ? last_result_ : collect_result::not_running;
}

} // namespace obase::runtime_internal
