// SPDX-License-Identifier: MIT
//
// The collector's thread of handles: looks at the fragmentation at each tick, and gathers while the policy
// (policy/fragmentation.hpp) wants it; gives pages back in which nothing lives, also while it does not; and does the work
// of temperature.hpp. And fork, which parks it between two rounds.
#include "handles/native.hpp"

#include "handles/temperature.hpp"
#include "heap/slab_functions.hpp"
#include "os/tasks.hpp"
#include "os/thread.hpp"

#include <malloc.h>
#include <pthread.h>

#include <cstdio>
#include <new>
#include <utility>
#include <vector>

namespace obase::handles {

namespace {

constexpr std::size_t most_runs = 48; // of a round
constexpr std::uint64_t rounds_uncompacted = 16;
constexpr std::size_t most_in_a_stop = 16; // of runs that are always in use
constexpr double sparse_dense =
    0.7; // runs of the dense class with a smaller part in use are emptied
constexpr std::size_t dense_bytes = 8U << 20;  // of them, in a round
constexpr std::size_t runs_for_a_thread = 32;  // with fewer, there is nothing to gather
constexpr std::uint64_t free_pages_ticks = 64; // between two looks, where nothing is gathered
constexpr std::uint64_t longest_rest = 2'000'000'000;
constexpr std::uint64_t look_again_ns = 2'000'000;
// A thread that waits for a processor is told of at the end of its wait.
constexpr std::uint64_t least_of_uses_ns = 300'000'000;
constexpr std::size_t most_used_home = 48; // runs that come home at a time because they are used

} // namespace

void native_handles::start_collector() noexcept {
    if (settings_.off || stress_ != nullptr || space_->slabs().runs() < runs_for_a_thread) return;
    std::uint32_t not_yet = 0;
    if (!collector_started_.cas_acq_rel(not_yet, 1)) return;
    const runtime_memory own;
    const os::blocked_signals inherited;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int error = pthread_create(
        &thread, &attributes,
        [](void* all) -> void* {
            static_cast<native_handles*>(all)->collect();
            return nullptr;
        },
        this);
    pthread_attr_destroy(&attributes);
    if (error != 0) std::fprintf(stderr, "obase: nothing moves: no thread for the collector\n");
}

void native_handles::collect() noexcept {
    const runtime_memory own;
    os::name_thread("obase-handles");
    os::prefer_short_turns();
    policy::fragmentation_limits limits = settings_.limits;
    if (is_child_)
        limits.ns_per_byte = 0; // its memory is not new, and to copy what is shared costs it pages
    policy::fragmentation control(limits);
    policy::used_runs used(settings_.used);
    // What is left when somebody waits for the lock goes back at another time.
    struct while_nobody_waits final : heap::pacer {
        explicit while_nobody_waits(native_handles& of) : all(of) {}
        bool may_continue() noexcept override { return all.hurry_.load_relaxed() == 0; }
        native_handles& all;
    } ask(*this);
    const std::uint64_t tick_ns = settings_.tick_ms * 1'000'000;
    const std::uint64_t uses_ns = std::max(tick_ns, least_of_uses_ns);
    std::uint64_t ticked_ns = os::monotonic_ns();
    std::uint64_t judged_ns = ticked_ns; // uses of runs whose objects have moved
    std::uint64_t gave_back_ns = ticked_ns;
    std::uint64_t waited_before_ns = os::first_thread_waited_ns();
    std::uint64_t rested_ns = ticked_ns;
    bool gathers = false; // the last round moved something
    for (;;) {
        const bool busy =
            temperature_ != nullptr && blind_.load_relaxed() == 0 && temperature_->has_work();
        if (!busy && !gathers) native::sleep_on_for(alarm_, 0, tick_ns);
        while (hurry_.load_relaxed() != 0) native::yield();
        const bool alarmed = alarm_.exchange_acq_rel(0) != 0;
        const std::uint64_t before = os::thread_cpu_ns();
        const std::uint64_t now = os::monotonic_ns();
        try {
            const work mine(*this, nullptr, urgency::none);
            const bool ticks = now - ticked_ns >= tick_ns;
            if (ticks) {
                if (temperature_ != nullptr) temperature_->earn(now - ticked_ns);
                ticked_ns = now;
                if (now - judged_ns >= uses_ns) {
                    // What uses cost is a share of the time in which the program can run: where it waits for a
                    // processor they would cost it more.
                    const std::uint64_t wall = now - std::exchange(judged_ns, now);
                    // 0: it could not be read, or there is nothing to judge.
                    const bool any = evacuator_.taken() + evacuator_.tracked() != 0;
                    const std::uint64_t waited = any ? os::first_thread_waited_ns() : 0;
                    const std::uint64_t lost =
                        waited_before_ns == 0 ? 0 : waited - std::min(waited, waited_before_ns);
                    waited_before_ns = waited;
                    const std::uint64_t elapsed = std::max(wall - std::min(lost, wall), wall / 16);
                    used.set_price(price_.ns());
                    const std::uint64_t uses = bring_used_home(control, used, elapsed);
                    if (temperature_ != nullptr) temperature_->note_taken(wall, elapsed, uses);
                }
            }
            if (ticks || gathers) {
                const gathered done = gather(control);
                // What tables were, and is free in the C library's heap.
                if (gathers && done.opened == 0) ::malloc_trim(0);
                gathers = done.opened != 0;
                if (done.gave_back) {
                    gave_back_ns = now;
                } else if (now - gave_back_ns >= free_pages_ticks * tick_ns) {
                    gave_back_ns = now;
                    space_->decommit_free_memory(ask);
                }
            }
            if (temperature_ != nullptr && (ticks || alarmed)) temperature_->tick();
            if (busy && !gives_up()) temperature_->step();
        } catch (const std::bad_alloc&) {
            gathers = false;
            compacts_ = true;
        }
        const std::uint64_t took = os::thread_cpu_ns() - before;
        own_ns_.fetch_add_relaxed(took);
        const std::uint64_t ended = os::monotonic_ns();
        const std::uint64_t since = ended - std::exchange(rested_ns, ended);
        os::sleep_ns(std::min(control.rest_ns(took, since), longest_rest));
    }
}

policy::fragmented native_handles::measure(std::vector<policy::run_to_gather>& runs) {
    heap::slab_heap<native>& slabs = space_->slabs();
    policy::fragmented now;
    const auto end = static_cast<std::uint32_t>(slabs.runs());
    for (std::uint32_t run = 0; run < end; ++run) {
        if (away(run).load_relaxed() != at_home || slabs.is_free(run)) continue;
        if (!is_movable(reinterpret_cast<const void*>(home_of(run)))) continue;
        const std::size_t live = std::min(slabs.blocks_in_use(run) * slabs.block_size(run),
                                          std::uint32_t{heap::run_bytes});
        const std::size_t memory = slabs.room_in_memory(run);
        now.live_bytes += live;
        now.memory_bytes += std::max(live, memory);
        if (memory == 0) continue; // a thread fills it
        runs.push_back({run, static_cast<std::uint32_t>(std::min(live, memory)),
                        static_cast<std::uint32_t>(memory)});
    }
    for (unsigned cls = dense_class; cls < space_->classes(); ++cls) {
        const heap::space::class_counters dense = space_->counters(cls);
        now.live_bytes += dense.live_bytes;
        // To gather would not close the gaps of a file's pages.
        now.memory_bytes += dense.extent_bytes -
                            std::min<std::uint64_t>(dense.extent_bytes, space_->gap_bytes(cls));
    }
    return now;
}

// A thread that was made by clone has another one's thread-local memory, or none: it is not waited for. Looked for
// before each round, so one that is made later runs beside that round.
bool native_handles::threads_are_known(int patience) noexcept {
    for (int looks = 0;; ++looks) {
        // As many threads as have records, and the collector. A thread's record ends before it does.
        std::uint32_t known = collector_started_.load_relaxed() != 0 ? 1 : 0;
        threads_.all().for_each_record([&](mobility::thread_record<native>& r) {
            if (r.in_use.load_acquire() != 0) ++known;
        });
        if (os::thread_count() == known) return true;
        bool has_run = false;
        if (os::thread_without_library(&has_run) == 0) return true;
        if (has_run)
            tell(told_thread_, "obase: nothing moves: the process has a thread that was made "
                               "without pthread_create\n");
        if (has_run || looks >= patience || gives_up()) return false;
        os::sleep_ns(look_again_ns); // it may be just starting
    }
}

// What a slow translation costs is bounded.
std::uint64_t native_handles::bring_used_home(policy::fragmentation& control,
                                              const policy::used_runs& used,
                                              std::uint64_t elapsed_ns) {
    std::vector<policy::used_run> runs;
    std::uint64_t uses = 0;
    evacuator_.for_each_taken([&](std::uint32_t run) {
        table_type* const table = tables_[run].load_acquire();
        if (table == nullptr) return;
        runs.push_back({run, table->uses()});
        uses += table->uses();
        table->forget_uses();
    });
    used.choose(runs, elapsed_ns, most_used_home);
    if (runs.empty() || !threads_are_known(0)) return uses;
    for (const policy::used_run& r : runs) {
        const home_result result = come_home_if_soon(r.number);
        if (result == home_result::gave_up)
            break; // the thread that is late is late for all of them
        if (result != home_result::done) continue;
        control.used_too_often(r.number);
        used_home_.fetch_add_relaxed(1);
    }
    return uses;
}

// To read back what is out would cost more than its holes.
bool native_handles::select_sparse_dense() noexcept {
    bool found = false;
    for (unsigned cls = dense_class; cls < space_->classes(); ++cls) {
        if (temperature_ != nullptr && space_->file_backed(cls)) continue; // compacted in windows
        const auto is_out = [this, cls](std::size_t run) {
            return temperature_ != nullptr && temperature_->run_out(cls, run);
        };
        found = space_->select_evacuation(cls, sparse_dense, dense_bytes, heap::run_filter(is_out))
                        .live_bytes != 0 ||
                found;
    }
    return found;
}

native_handles::gathered native_handles::gather(policy::fragmentation& control) {
    std::vector<policy::run_to_gather> runs;
    gathered done;
    if (blind_.load_seq_cst() != 0) return done;
    policy::fragmented now = measure(runs);
    if (!control.wants(now) || !threads_are_known(0) || !commit_tables(space_->slabs().runs()))
        return done;
    done.gave_back = true;
    // Memory that is free goes back first.
    space_->decommit_free_memory();
    runs.clear();
    now = measure(runs);
    // No mapping is left for a run: those that are out go on being emptied and given back.
    if (mappings_are_used_up()) runs.clear();
    control.choose(runs, most_runs, now);
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint32_t> stubborn;
    for (const policy::run_to_gather& r : runs) {
        const bool by_force = control.is_stubborn(r.number);
        if (by_force && stubborn.size() == most_in_a_stop) continue;
        (by_force ? stubborn : numbers).push_back(r.number);
    }
    // While whole rounds of homes are left these come first: to compact costs a look at all that has moved.
    const bool compacts =
        numbers.size() < most_runs / 2 || control.round() % rounds_uncompacted == 0;
    const bool sparse = compacts && select_sparse_dense();
    const auto round = [&](const std::vector<std::uint32_t>& wanted, unsigned tries) {
        const round_result result = evacuator_.round(wanted.data(), wanted.size(), nullptr, tries,
                                                     while_waiting(), while_stopping_briefly());
        add(result);
        done.opened += result.opened;
        for (const std::uint32_t run : wanted) {
            if (away(run).load_relaxed() == open)
                control.moved(run);
            else
                control.refused(run);
        }
    };
    compacts_ = compacts;
    if (!numbers.empty() || sparse || mappings_are_used_up()) round(numbers, 3);
    if (!stubborn.empty()) round(stubborn, 0);
    compacts_ = true;
    control.end_of_round();
    space_->decommit_free_memory();
    return done;
}

// fork. The collector, and threads that move objects, hold `work_` throughout; they give up their waits.

void native_handles::fork_prepare() noexcept {
    native_handles& all = *if_made();
    // No handler meets what this holds, here or in the child.
    os::blocked_signals signals;
    ++inside_runtime;
    all.hurry_.fetch_add_seq_cst(1);
    all.stuck_.fetch_add_seq_cst(1);
    all.work_.lock();
    all.stuck_.fetch_sub_seq_cst(1);
    all.hurry_.fetch_sub_seq_cst(1);
    all.signals_of_fork_.emplace(std::move(signals));
    if (all.stress_ != nullptr) all.stress_->lock();
    all.homes_.lock_all();
    all.space_->fork_prepare();
}

void native_handles::fork_parent() noexcept {
    native_handles& all = *if_made();
    all.space_->fork_parent();
    all.homes_.unlock_all();
    if (all.stress_ != nullptr) all.stress_->unlock();
    const os::blocked_signals signals = std::move(*all.signals_of_fork_);
    all.work_.unlock();
    --inside_runtime;
}

void native_handles::fork_child() noexcept {
    native_handles& all = *if_made();
    if (!all.space_->fork_child()) {
        // Not the end of the child, which may be about to execute another program.
        all.blind_.store_relaxed(1);
        tell(all.told_cold_,
             "obase: fork: objects in COLD cannot be accessed in the child, because no memory or "
             "no mapping could be had for its share of the file\n");
    }
    all.evacuator_.forget_tracked_in_child();
    if (all.temperature_ != nullptr) all.temperature_->fork_child();
    all.homes_.unlock_all_in_child();
    if (all.stress_ != nullptr) all.stress_->unlock();
    all.threads_.forget_others(own_record_if_any());
    all.hurry_.store_relaxed(0);
    all.stuck_.store_relaxed(0);
    all.is_child_ = true;
    all.collector_started_.store_relaxed(0); // the next thread that needs memory starts one
    const os::blocked_signals signals = std::move(*all.signals_of_fork_);
    all.work_.unlock_in_child();
    --inside_runtime;
}

void native_handles::prepare_forks() noexcept {
    pthread_atfork(&fork_prepare, &fork_parent, &fork_child);
}

} // namespace obase::handles
