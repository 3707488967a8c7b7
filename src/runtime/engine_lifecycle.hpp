// SPDX-License-Identifier: MIT
//
// engine: how it comes to life, is configured, started, stopped and forked. For
// arming.cpp and atc.cpp, which instantiate engines.
#pragma once

#include "runtime/engine.hpp"

namespace obase::runtime_internal {

template <class Binding>
engine<Binding>& engine<Binding>::make() noexcept {
    // A static object's storage, so that making the engine needs no memory; guarded by the
    // compiler.
    alignas(engine) static unsigned char storage[sizeof(engine)];
    static engine* const made = [] {
        engine* fresh = ::new (storage) engine;
        fresh->registry_.add(fresh->emergency_record_, 0);
        // Before anything else: guides may be built long before the first object.
        fresh->slots_.open();
        os::keep_loaded(); // before handlers and threads run in it
        pthread_atfork(&fork_prepare, &fork_parent, &fork_child);
        std::atexit([] { instance().print_at_exit(); });
        return fresh;
    }();
    instance_.store_release(made); // pairs with instance()
    return *made;
}

template <class Binding>
heap::space* engine<Binding>::make_ready() noexcept {
    const os::no_cancellation to_the_end;
    const std::lock_guard lifecycle(lifecycle_);
    if (tried_.load_relaxed() == 0) {
        make_ready_locked();
        if (space_.load_relaxed() != nullptr && effective().mode != run_mode::off) start_locked();
    }
    return space_.load_relaxed();
}

template <class Binding>
void engine<Binding>::load_environment_locked() noexcept {
    if (configured_) return;
    configured_ = true;
    try {
        options from_environment = options::from_environment();
        // What moves is moved where operations end.
        if (audit_asked_) from_environment.mode = run_mode::off;
        const std::lock_guard guard(state_);
        settings_ = std::move(from_environment);
    } catch (const std::bad_alloc&) {
        // The built-in values it is.
    }
    rearm_.store_relaxed(settings_.debug_rearm);
}

template <class Binding>
void engine<Binding>::make_ready_locked() noexcept {
    load_environment_locked();
    may_wait_for_memory.add(&this_thread_may_wait);
    const options now = effective();
    try {
        std::string why;
        std::unique_ptr<policy::placement> placement =
            policy::make_policy(now, Binding::saturation, &why);
        if (placement == nullptr) { // from the environment: configure() refuses it
            say((why + "; objects are placed by 'papers'").c_str());
            options usual = now;
            usual.policy = options().policy;
            placement = policy::make_policy(usual, Binding::saturation, &why);
        }
        const auto say_line = [](const std::string& line) { say(line.c_str()); };
        std::unique_ptr<backend::backend> reclaim =
            backend::make_backend(now.backend, say_line, &why);
        if (reclaim == nullptr) {
            say((why + "; 'kernel' is told").c_str());
            reclaim = backend::make_backend(options().backend, say_line, &why);
        }
        const policy::tier_table& tiers = placement->tiers();
        heap::space_options heaps;
        heaps.classes = tiers.count();
        heaps.file_classes = tiers.with(&policy::tier::file_backed);
        heaps.range_bytes = now.heap_reserve;
        heaps.thread_slot = Binding::thread_slot;
        heaps.poison_freed = now.poison_freed;
        heaps.check_frees = now.check_frees ||
                            (debug_checks && now.origin("check_frees") == option_origin::built_in);
        checks_frees_.store_relaxed(heaps.check_frees);
        if (heaps.file_classes != 0) heaps.cold_directory = std::string(now.cold_directory());
        heaps.hot_file_classes = tiers.with(&policy::tier::promoted_to) & ~heaps.file_classes;
        if (heaps.hot_file_classes != 0) heaps.hot_directory = std::string(now.hot_directory());
        // What the self-check is to look at: what there is, not what was asked for. So a shortage
        // that has been reported here is not reported again in other words.
        options in_force = now;
        heap::space* made = nullptr;
        if (!os::is_first_copy()) {
            why =
                "another copy of obase is in use in this process (a program and a plugin that both "
                "link libobase.a?); objects of this copy come from malloc. Link both with "
                "libobase.so";
        } else if (!slots_.is_open()) {
            why = "no address space for the map of guides (64 MiB)";
        } else {
            const std::string heap::space_options::* bad = nullptr;
            while ((made = heap::space::create(heaps, &why, &bad)) == nullptr && bad != nullptr) {
                const bool cold = bad == &heap::space_options::cold_directory;
                say(((cold ? "COLD" : "HOT") + std::string(" stays in anonymous memory: ") + why)
                        .c_str());
                (cold ? in_force.cold_backing : in_force.hot_backing) = "anon";
                (cold ? heaps.cold_directory : heaps.hot_directory).clear();
            }
        }
        if (made == nullptr) say(("no migration: " + why).c_str());
        for (unsigned cls = 0; made != nullptr && cls < made->classes(); ++cls) {
            if (!made->file_backed(cls)) continue;
            const bool hot = (heaps.hot_file_classes >> cls & 1) != 0;
            const auto begin = reinterpret_cast<std::uintptr_t>(made->range_begin(cls));
            os::end_on_bus_error(begin, begin + made->range_bytes(),
                                 (hot ? "the file under HOT in " + heaps.hot_directory
                                      : "the file under COLD in " + heaps.cold_directory)
                                     .c_str());
        }
        if (made != nullptr) {
            const auto births = [&](heap::expectation what, policy::tier_mask in) -> unsigned {
                if (audit_asked_ || in == 0) return 0;
                const auto cls = static_cast<unsigned>(std::countr_zero(in));
                made->give_births(what, cls);
                return cls;
            };
            hot_births_ = births(heap::expectation::hot, tiers.with(&policy::tier::promoted_to));
            cold_births_ = births(heap::expectation::cold, tiers.with(&policy::tier::cold));
            births_limit_.store_relaxed(most_births);
            auto* recorder = new telemetry::recorder(now.history_windows, Binding::name);
            recorder->live.time_scale.set(now.time_scale);
            recorder->set_tiers(tiers);
            recorder_.store_release(recorder);
            policy_ = std::move(placement);
            backend_ = std::move(reclaim);
            window_log_.emplace(policy_->tiers());
            tier_facts_.emplace(policy_->tiers());
            Binding::emplace(mover_, registry_, slots_, *made);
            collector_.emplace(registry_, slots_, *made, *mover_, *policy_, *recorder,
                               *window_log_);
        }
        if (now.verbose) std::fprintf(stderr, "%s", now.text().c_str());
        if (made != nullptr && now.mode != run_mode::off)
            for (const std::string& line :
                 runtime_internal::self_check(in_force, gather_facts(in_force)))
                say(line.c_str());
        if (made != nullptr && now.show_stats && places_.load_relaxed() == nullptr)
            places_.store_release(new audit::slot_places);
        if (audit_asked_ && made != nullptr) start_audit_locked(*made);
        space_.store_release(made);
    } catch (const std::exception& error) {
        say("no migration: ", error.what());
    }
    tried_.store_release(1); // pairs with space()
}

template <class Binding>
void engine<Binding>::start_audit() noexcept {
    const os::no_cancellation to_the_end;
    const std::lock_guard lifecycle(lifecycle_);
    if (tried_.load_relaxed() != 0) return;
    audit_asked_ = true;
    make_ready_locked();
}

// Every operation is then entered and left by a call.
template <class Binding>
void engine<Binding>::start_audit_locked(heap::space& heaps) noexcept {
    if constexpr (Binding::bare_addresses) {
        const options now = effective();
        const char* why = "";
        const audit::settings asked{now.audit_report.c_str(), now.audit_known.c_str(),
                                    now.audit_strict};
        if (audit::auditor::start(registry_, slots_, heaps.range_begin(audited_class),
                                  heaps.range_bytes(), asked, &why) == nullptr) {
            say("no audit: ", why);
            return;
        }
        heaps.give_class(audited_class, audit::auditor::running()->memory());
        {
            const std::lock_guard guard(state_);
            settings_.mode = run_mode::off; // the audit is the one mover (R13)
        }
        rearm_.store_relaxed(1);
        registry_.set_fenced(true);
        registry_.for_each_record([](record& r) { r.fenced = r.exit_work = true; });
        audit::active = true;
    }
}

template <class Binding>
std::string engine<Binding>::configure(const options& settings) {
    const os::no_cancellation to_the_end;
    const std::lock_guard lifecycle(lifecycle_);
    for (const std::string& line : settings.out_of_range()) return line;
    if (backend::backends().find(settings.backend) == nullptr)
        return "backend (OBASE_BACKEND): " + backend::backends().unknown(settings.backend);
    if (policy::policies().find(settings.policy) == nullptr)
        return "policy (OBASE_POLICY): " + policy::policies().unknown(settings.policy);
    if (tried_.load_relaxed() != 0) {
        const options now = effective();
        for (const char* name : {"heap_reserve", "cold_backing", "hot_backing", "poison_freed",
                                 "check_frees", "history_windows", "policy", "backend"})
            if (now.get(name) != settings.get(name))
                return std::string(name) +
                       " cannot change after the first object was made: it is " + now.get(name) +
                       ", asked for " + settings.get(name);
    }
    configured_ = true;
    rearm_.store_relaxed(settings.debug_rearm || audits());
    if (policy_) {
        park_.lock(); // the collector is between two objects
        policy_->configure(settings);
        park_.unlock();
        recorder_.load_relaxed()->live.time_scale.set(settings.time_scale);
    }
    {
        const std::lock_guard guard(state_);
        settings_ = settings;
        if (audits()) settings_.mode = run_mode::off;
    }
    watch_.restart();
    wake_.notify_all();
    if (tried_.load_relaxed() != 0 && settings.mode != run_mode::off) return start_locked();
    return "";
}

template <class Binding>
std::string engine<Binding>::start() noexcept {
    const os::no_cancellation to_the_end;
    const std::lock_guard lifecycle(lifecycle_);
    if (tried_.load_relaxed() == 0) make_ready_locked();
    return start_locked();
}

template <class Binding>
std::string engine<Binding>::start_locked() noexcept try {
    if (!os::is_first_copy())
        return "no migration: another copy of obase is in use in this process";
    if (space_.load_relaxed() == nullptr) return "no migration: there are no heaps";
    if (audits()) return "the audit moves objects, and no collector does";
    if (cold_lost_) return "no migration: the fork left the objects in COLD behind";
    if (operations_lost_)
        return "no migration: at the fork another thread was in an operation on marked pointers, "
               "which never ends here";
    if (places_lost_)
        return "no migration: at the fork it could not be told which memory the other threads had "
               "for stacks and thread-local storage, where slots may have been";
    {
        const std::lock_guard guard(state_);
        stopping_.store_release(0); // a thread that waits in stop() for the end goes on
        if (running_) {
            finished_.notify_all();
            return "";
        }
        running_ = true;
    }
    try {
        // The thread before this one, if stop() has not come round to it yet, does nothing any
        // more.
        if (thread_.joinable()) thread_.detach();
        const os::blocked_signals inherited; // R13
        thread_ = std::thread([this] { run(); });
        watch_.restart();
        return "";
    } catch (const std::exception& error) {
        {
            const std::lock_guard guard(state_);
            running_ = false;
            finished_.notify_all(); // collect_now() may have seen it running
        }
        say("no migration: no collector thread: ", error.what());
        return std::string("no migration: no collector thread: ") + error.what();
    }
} catch (const std::bad_alloc&) {
    return "no memory"; // short enough to need none
}

template <class Binding>
void engine<Binding>::stop() noexcept {
    if (collector_thread_.load_acquire() == os::thread_id()) return; // a destructor it runs
    const os::no_cancellation to_the_end;
    // Waits without lifecycle_: the collector may be in a destructor of the user's, which may fork
    // or call any function of this class.
    {
        std::unique_lock lock(state_);
        stopping_.store_release(1);
        wake_.notify_all();
        finished_.wait(lock, [this] { return !running_ || stopping_.load_relaxed() == 0; });
    }
    std::thread ended;
    {
        const std::lock_guard lifecycle(lifecycle_);
        const std::lock_guard guard(state_);
        if (!running_) ended.swap(thread_); // else another thread started it again
    }
    if (ended.joinable()) ended.join();
}

template <class Binding>
void engine<Binding>::set_mode(run_mode mode) noexcept {
    const os::no_cancellation to_the_end;
    const std::lock_guard lifecycle(lifecycle_);
    load_environment_locked();
    if (audits()) mode = run_mode::off;
    {
        const std::lock_guard guard(state_);
        settings_.mode = mode;
    }
    watch_.restart();
    wake_.notify_all();
    if (mode != run_mode::off && tried_.load_relaxed() != 0) start_locked();
}

template <class Binding>
std::vector<std::string> engine<Binding>::self_check() {
    const os::no_cancellation to_the_end;
    const options now = settings();
    const system_facts facts = gather_facts(now);
    std::vector<std::string> found = runtime_internal::self_check(now, facts);
    const obase::statistics seen = statistics(); // one snapshot
    if (now.mode != run_mode::off && seen.windows != 0) {
        const std::uint64_t missing = recorder_.load_acquire()->live.pageout_after.get();
        std::string why = why_not_freed(now, facts, seen, missing);
        if (!why.empty()) found.push_back(std::move(why));
    }
    return found;
}

template <class Binding>
void engine<Binding>::print_at_exit() noexcept {
    stop();
    bool forked = false;
    {
        const std::lock_guard lifecycle(lifecycle_);
        forked = forked_;
    }
    if (!forked && recorder_.load_acquire() != nullptr && effective().show_stats) {
        const obase::statistics seen = statistics(); // one snapshot
        const options now = settings();
        // What the program destroyed at its end is judged as it was before.
        const telemetry::recorder& recorder = *recorder_.load_acquire();
        obase::statistics judged = recorder.last_with_objects();
        judged.hint_pageout_bytes = seen.hint_pageout_bytes;
        judged.paged_out_bytes = seen.paged_out_bytes;
        judged.hints_stopped = seen.hints_stopped;
        const std::uint64_t missing = recorder.live.pageout_after.get();
        std::string end = why_not_freed(now, gather_facts(now), judged, missing);
        if (end.empty()) end = what_was_freed(seen, os::resident_bytes());
        // Before the first window all numbers are 0.
        std::fprintf(stderr, "%s%s\n", seen.windows == 0 ? "" : seen.to_text().c_str(),
                     end.c_str());
        print_marks();
    }
}

// The collector has ended: the one visitor is this thread. Threads that go on make the numbers inexact.
template <class Binding>
void engine<Binding>::print_marks() noexcept {
    const heap::space* heaps = space_.load_relaxed();
    const audit::slot_places* places = places_.load_relaxed();
    if (heaps == nullptr || places == nullptr || audits()) return;
    auto counts = std::unique_ptr<audit::mark_counts>(new (std::nothrow) audit::mark_counts);
    if (counts == nullptr) return;
    const policy::tier_table& tiers = policy_->tiers();
    park_.lock();
    slots_.refresh();
    for (auto* leaf : slots_.leaves())
        slots_.scan(*leaf, leaf->base, leaf->base + (std::uintptr_t{1} << slots::leaf_shift),
                    [&](std::uintptr_t base, std::uint64_t bits) {
                        for (; bits != 0; bits &= bits - 1) {
                            const std::uintptr_t slot =
                                base + 8u * static_cast<unsigned>(std::countr_zero(bits));
                            const void* place = places->find(reinterpret_cast<const void*>(slot));
                            const auto* object = reinterpret_cast<const void*>(
                                reinterpret_cast<slot_atomic*>(slot)->load_relaxed() &
                                ((std::uint64_t{1} << 48) - 1));
                            if (place == nullptr || !heaps->contains(object)) continue;
                            const unsigned cls = heaps->class_of(object);
                            const bool moved = cls != heap::new_class && cls < heaps->large_class();
                            counts->add(place, reinterpret_cast<const void*>(slot),
                                        heaps->info(object).size, moved,
                                        cls < tiers.count() && tiers[cls].reclaimable);
                        }
                    });
    park_.unlock();
    counts->for_each([](const audit::mark_counts::row& r) {
        const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
        std::fprintf(
            stderr,
            "obase: mark %s: %llu objects, %llu bytes; %llu have moved, %llu hot, %llu cold\n",
            r.field, number(r.objects), number(r.bytes), number(r.moved), number(r.hot),
            number(r.cold));
    });
}

// R14. The order is that of the locks; the collector is between two objects once park_ is held.
template <class Binding>
void engine<Binding>::prepare_fork() noexcept {
    lifecycle_.lock();
    park_.lock();
    state_.lock();
    reclaimer_.fork_prepare();
    if (telemetry::recorder* recorder = recorder_.load_relaxed(); recorder != nullptr)
        recorder->fork_prepare();
    if (heap::space* heaps = space_.load_relaxed(); heaps != nullptr) heaps->fork_prepare();
    if (audits()) audit::auditor::running()->fork_prepare();
    if (audit::slot_places* places = places_.load_relaxed(); places != nullptr)
        places->fork_prepare();
    const os::no_cancellation to_the_end;
    threads_at_fork_.note(); // last: what threads do meanwhile is not seen
}

template <class Binding>
void engine<Binding>::resume_parent() noexcept {
    if (audit::slot_places* places = places_.load_relaxed(); places != nullptr)
        places->fork_parent();
    if (audits()) audit::auditor::running()->fork_parent();
    if (heap::space* heaps = space_.load_relaxed(); heaps != nullptr) heaps->fork_parent();
    if (telemetry::recorder* recorder = recorder_.load_relaxed(); recorder != nullptr)
        recorder->fork_parent();
    reclaimer_.fork_parent();
    state_.unlock();
    park_.unlock();
    lifecycle_.unlock();
}

template <class Binding>
void engine<Binding>::resume_child() noexcept {
    if (audit::slot_places* places = places_.load_relaxed(); places != nullptr)
        places->fork_child();
    if (audits()) audit::auditor::running()->fork_child();
    if (heap::space* heaps = space_.load_relaxed(); heaps != nullptr && !heaps->fork_child()) {
        // Not the end of the child, which may be about to execute another program.
        cold_lost_ = true;
        say("fork: objects in COLD cannot be accessed in the child, because no memory or no "
            "mapping "
            "could be had for its share of the file (vm.overcommit_memory, vm.max_map_count)");
    }
    if (telemetry::recorder* recorder = recorder_.load_relaxed(); recorder != nullptr)
        recorder->fork_child();
    // It may have an object in two slots, and no wait outlasts it.
    if (registry_.waits_for_holders() > 1)
        registry_.for_each_record([this](const record& r) {
            if (&r != Binding::this_record_if_any() && r.epoch.load_relaxed() != 0)
                operations_lost_ = true;
        });
    slots_.forget_visit();
    forget_slots_of_other_threads();
    registry_.forget_other_threads(Binding::this_record_if_any());
    Binding::forget_other_threads(Binding::this_record_if_any());
    registry_.for_each_record([](record& r) {
        // Its thread does not exist here.
        if (auto* touched = static_cast<touched_slots*>(r.rearm_list);
            touched != nullptr && &r != Binding::this_record_if_any())
            touched->count.store_relaxed(0);
    });
    // Shared, so it belongs to no thread: the end of one thread would not end the scope in it.
    emergency_record_.in_use.store_relaxed(1);
    reclaimer_.fork_child(Binding::this_record_if_any());
    // The collector thread does not exist here; what it waited on may remember it.
    ::new (&thread_) std::thread;
    ::new (&wake_) std::condition_variable;
    ::new (&finished_) std::condition_variable;
    ::new (&room_) std::condition_variable;
    waiting_.store_relaxed(0);
    pressed_ = 0;
    watch_.restart(); // a thread that is not here may have been looking
    collector_thread_.store_relaxed(0);
    running_ = false;
    in_window_ = false;
    allow_births(false);
    served_ = requested_; // those who wait for a window are not here
    forked_ = true;
    park_.lock_in_child();
    state_.unlock();
    park_.unlock();
    lifecycle_.unlock();
}

// R14. Stacks and thread-local storage of threads that are not here become other things; what they hold
// in the child stays where it is. Without a scope: there is no collector that could retire a leaf.
template <class Binding>
void engine<Binding>::forget_slots_of_other_threads() noexcept {
    const os::no_cancellation to_the_end;
    const record* self = Binding::this_record_if_any();
    const bool all = threads_at_fork_.for_each_lost_range(
        [&](auto&& known) {
            registry_.for_each_record([&](const record& r) {
                if (&r != self && r.place.pointer != 0) known(r.thread_id.load_relaxed(), r.place);
            });
        },
        [this](std::uintptr_t begin, std::uintptr_t end) {
            slots_.clear_range(reinterpret_cast<const void*>(begin),
                               reinterpret_cast<const void*>(end));
        });
    if (!all) places_lost_ = true;
}

template <class Binding>
void engine<Binding>::fork_prepare() noexcept {
    instance().prepare_fork();
}
template <class Binding>
void engine<Binding>::fork_parent() noexcept {
    instance().resume_parent();
}
template <class Binding>
void engine<Binding>::fork_child() noexcept {
    instance().resume_child();
}

} // namespace obase::runtime_internal
