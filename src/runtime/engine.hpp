// SPDX-License-Identifier: MIT
//
// engine<Binding>: one protocol's registry, slots, heaps, mover and collector thread, put together.
//
// The implementation of obase::runtime and of the functions behind obase::arming and obase::atc.
// There is one object per protocol, made on first use and never destroyed, so that guides in static
// storage may end after main().
//
// This header declares it. Its functions are in engine_lifecycle.hpp, engine_collector.hpp and
// engine_threads.hpp, which only the files that instantiate an engine include: arming.cpp, atc.cpp.
//
// Life: bare (constructed; threads may attach and retire) -> ready (heaps exist; first allocation
// or start()) -> running (a collector thread). When heaps, slots or thread cannot be had the engine
// says so once and stays where it is: objects then come from malloc and nothing moves.
//
// Locks, in this order: lifecycle_ (configure, start, stop) < park_ (held by the collector while it
// works) < state_ (requests, mode, settings). User code runs under none of them.
#pragma once

#include "audit/audit.hpp"
#include "audit/mark_counts.hpp"
#include "audit/plain_units.hpp"
#include "audit/slot_places.hpp"
#include "backend/backends.hpp"
#include "backend/memory_budget.hpp"
#include "backend/misplaced.hpp"
#include "backend/tier_facts.hpp"
#include "backend/window_log.hpp"
#include "collector/collector.hpp"
#include "heap/address_sanitizer.hpp"
#include "heap/space.hpp"
#include "mobility/reclaimer.hpp"
#include "mobility/scope_registry.hpp"
#include "os/bus_error.hpp"
#include "os/copies.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"
#include "os/thread_memory.hpp"
#include "policy/exchange_share.hpp"
#include "policy/policies.hpp"
#include "policy/write_credit.hpp"
#include "runtime/allocation_watch.hpp"
#include "runtime/handoff_lock.hpp"
#include "runtime/other_engines.hpp"
#include "runtime/processor_share.hpp"
#include "runtime/program_time.hpp"
#include "runtime/self_check.hpp"
#include "runtime/wait_credit.hpp"
#include "runtime/why_not_freed.hpp"
#include "soda/directory.hpp"
#include "telemetry/recorder.hpp"

#include <obase/allocation_options.hpp>
#include <obase/runtime.hpp>
#include <obase/version.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

namespace obase::runtime_internal {

// `Binding` names what differs between protocols:
//   mover        the mover class template instance
//   name         "arming"
//   thread_name  of the collector, at most 15 characters
//   thread_slot  of its heaps: heap::space_options
//   saturation   the largest number of inactive windows that a word can count
//   bare_addresses   true if the word of an object of malloc's is its address
//   emplace(mover, registry, slots, space)   makes the mover
//   this_record(), this_record_if_any()      the calling thread's record
//   claim_record, detach, forget_other_threads   where records come from, and what a protocol keeps
//                                            in them at a thread's end and in a forked child
//   arm_again(slot, space)                   the debug mode's transition, inside a visit
template <class Binding>
class engine final : public obase::runtime, private collector::control {
  public:
    using platform = os::native_platform;
    using registry = mobility::scope_registry<platform>;
    using record = mobility::thread_record<platform>;
    using slots = soda::directory<platform>;
    using reclaimer = mobility::reclaimer<platform>;
    using mover = typename Binding::mover;
    using slot_atomic = typename mover::slot_atomic;
    using object_collector = collector::collector<mover>;

    // Made on first use; never destroyed.
    static engine& instance() noexcept {
        engine* made = instance_.load_acquire(); // pairs with make()
        return made != nullptr ? *made : make();
    }

    // The same, null before the first use.
    static engine* instance_if_any() noexcept { return instance_.load_acquire(); }

    // obase::runtime

    std::string configure(const options& settings) override;
    options settings() override {
        const std::lock_guard lifecycle(lifecycle_);
        load_environment_locked();
        return effective();
    }
    std::string start() noexcept override;
    void stop() noexcept override;
    void set_mode(run_mode mode) noexcept override;
    run_mode mode() const noexcept override {
        const std::lock_guard guard(state_);
        return settings_.mode;
    }
    collect_result collect_now() noexcept override;
    std::uint64_t reclaim_now() noexcept override;
    drain_result drain(double seconds) noexcept override;
    obase::statistics statistics() const override {
        const telemetry::recorder* recorder = recorder_.load_acquire();
        obase::statistics seen = recorder != nullptr ? recorder->snapshot() : obase::statistics{};
        if (seen.windows == 0) seen.mode = to_string(mode()); // no window has had one
        return seen;
    }
    // True if the address is in the heaps. Does not make the engine. Cost: a load and a comparison.
    static bool manages(const void* address) noexcept {
        const heap::space* heaps = space_.load_acquire();
        return heaps != nullptr && heaps->contains(address);
    }
    // manages() is also asked of a slot of the other protocol that begins: were it registered, that
    // protocol's collector would go on visiting the place when this one has moved the object around it. Such
    // a slot is left unregistered; its own object then stays where it is, and its word goes along with the
    // bytes around it.
    void say_once_of_mixing() noexcept {
        say_once(said_mixing_, "a guide lies in an object of the other protocol: what it refers to "
                               "does not move (obase/mixing.hpp)");
    }
    // How large the object at the address is, 0 if it is not in the heaps.
    std::size_t managed_size(const void* address) const noexcept {
        const heap::space* heaps = space_.load_acquire();
        return heaps != nullptr && heaps->contains(address) ? heaps->usable_size(address) : 0;
    }
    // True if the managed object may reach beyond the 64 KiB that it begins in.
    bool is_large(const void* object) const noexcept {
        return space_.load_acquire()->may_be_long(object);
    }
    int heap_of(const void* address) const noexcept override {
        if (!manages(address)) return -1;
        const heap::space& heaps = *space_.load_acquire();
        const unsigned cls = heaps.class_of(address);
        return static_cast<int>(cls == heaps.near_class() ? heap::new_class : cls);
    }
    std::vector<window_record> history() const override {
        const telemetry::recorder* recorder = recorder_.load_acquire();
        return recorder != nullptr ? recorder->history() : std::vector<window_record>{};
    }
    std::vector<std::string> self_check() override;

    // What the protocol's functions need.

    registry& threads() noexcept { return registry_; }
    slots& directory() noexcept { return slots_; }

    // The heaps, null when there are none. Makes them on the first call.
    heap::space* space() noexcept {
        heap::space* made = space_.load_acquire();
        return made != nullptr || tried_.load_acquire() != 0 ? made : make_ready();
    }

    record* attach_thread() noexcept;
    // The thread ends, and may still use its record: does a last share of reclaiming.
    void leave_thread(record& self) noexcept;
    // The thread ends, or has been told to forget its record.
    void detach_thread(record& self) noexcept;

    void* allocate(std::size_t bytes, const allocation_options& how) noexcept;
    // The same where how.usual(): a block that the thread has at hand, without a call.
    static void* allocate_usual(std::size_t bytes) noexcept {
        if (void* object = heap::space::allocate_at_hand<Binding::thread_slot>(bytes);
            object != nullptr) [[likely]]
            return object;
        return allocate_usual_elsewhere(bytes);
    }
    // The same from the heaps only: null, once with a message, when they have no room.
    // `caller` is for the audit.
    void* allocate_managed(std::size_t bytes, const allocation_options& how,
                           const void* caller = nullptr) noexcept;
    static void deallocate(void* object) noexcept {
        if (!heap::space::free_at_hand<Binding::thread_slot>(object)) [[unlikely]]
            deallocate_elsewhere(object);
    }
    // The same for the C interface: an invalid free has no effect and is counted, or ends the program
    // where frees are checked.
    void deallocate_checked(void* object) noexcept;
    // True if an object may begin at the address; else it is reported as an invalid free of it.
    bool expect_object(const void* address) noexcept;
    std::size_t usable_size(const void* object) noexcept;

    void retire(record& self, void* object, void (*destroy)(void*) noexcept,
                std::size_t bytes) noexcept;

    platform::atomic<std::uint64_t>* pin(record& self, void* object) noexcept {
        return mobility::claim_pin(self, reinterpret_cast<std::uint64_t>(object), make_pin_chunk);
    }

    // Debug mode: the slots whose first touch was in the open scope. What does not fit is not armed
    // again.
    struct touched_slots {
        static constexpr std::uint32_t capacity = 4096 / sizeof(void*) - 1;
        platform::atomic<std::uint32_t> count;
        slot_atomic* slots[capacity];
    };
    // Debug mode: remembers a slot whose first touch was in this scope.
    bool rearms() const noexcept { return rearm_.load_relaxed() != 0; }
    // False for atc.
    static bool audits() noexcept {
        if constexpr (Binding::bare_addresses)
            return audit::on();
        else
            return false;
    }
    // Remembers by which store a slot became one, where the statistics at exit are to say it (audit/mark_counts.hpp).
    void slot_made(const void* slot, const void* caller) noexcept {
        if (audit::slot_places* places = places_.load_acquire(); places != nullptr) [[unlikely]]
            places->put(slot, caller);
    }
    void slot_moved(const void* from, const void* to) noexcept {
        if (audit::slot_places* places = places_.load_acquire(); places != nullptr)
            places->move(from, to);
    }
    // From then on every operation's end is looked at (audit/audit.hpp). Before there is a second thread.
    void start_audit() noexcept;
    void record_touch(record& self, slot_atomic& slot) noexcept;
    // Outermost scope end with exit_work set: arms again, leaves the scope, reclaims.
    void end_scope(record& self) noexcept;

    // obase_*: whether nothing will ever move or be reclaimed because a thread has no record.
    bool degraded() const noexcept { return degraded_.load_acquire() != 0; }

  private:
    static constexpr unsigned audited_class = 1;        // of the heaps; the audit has it for itself
    static constexpr double reclaim_tick_seconds = 0.1; // while something is retired
    static constexpr double short_tick_seconds = 0.001; // after one whose destructors retired more
    static constexpr std::uint64_t first_drain_nap_ns = 20'000; // doubled from wait to wait
    static constexpr std::uint64_t longest_drain_nap_ns = 2'000'000;
    static constexpr double idle_tick_seconds = 1;    // while nothing is
    static constexpr double longest_wait_seconds = 5; // for scopes, per round of moves
    // Of a thread that allocates, for memory. Then it goes on: until the next look it takes a 32nd of the room
    // that is left, so even where no window ends the process is slowed down, and not stopped.
    static constexpr double longest_allocation_wait_seconds = 0.1;
    // What was born cold leaves memory so many bytes at a time, and threads wait where more is in memory.
    static constexpr std::uint64_t births_at_once = std::uint64_t{1} << 20;
    static constexpr std::uint64_t most_births = std::uint64_t{4} << 20;

    engine() : reclaimer_(registry_) { registry_.set_fenced(!platform::has_membarrier()); }

    options effective() const {
        const std::lock_guard guard(state_);
        return settings_;
    }
    static engine& make() noexcept;
    heap::space* make_ready() noexcept;
    void make_ready_locked() noexcept;
    std::string start_locked() noexcept;
    void start_audit_locked(heap::space& heaps) noexcept;
    void load_environment_locked() noexcept;
    void print_at_exit() noexcept;
    void print_marks() noexcept;
    // Needs no memory: most of what it has to say is that there is none.
    static void say(const char* line, const char* rest = "") noexcept {
        const os::no_cancellation to_the_end;
        std::fprintf(stderr, "obase: %s%s\n", line, rest);
    }
    // The first time only: a shortage that lasts would otherwise fill the log.
    static void say_once(platform::atomic<std::uint32_t>& said, const char* line) noexcept {
        if (said.load_relaxed() == 0 && said.exchange_acq_rel(1) == 0) say(line);
    }
    static constexpr unsigned stays_in_memory = 255; // heap_statistics::leaves_after
    static double now_seconds() noexcept { return static_cast<double>(os::monotonic_ns()) * 1e-9; }
    static mobility::pin_chunk<platform>* make_pin_chunk() noexcept {
        return static_cast<mobility::pin_chunk<platform>*>(
            zeroed_pages(sizeof(mobility::pin_chunk<platform>)));
    }
    static void* zeroed_pages(std::size_t bytes) noexcept {
        bytes = (bytes + 4095) & ~std::size_t{4095};
        void* memory = os::reserve(bytes, 4096);
        if (memory == nullptr) return nullptr;
        if (os::commit(memory, bytes) == 0) {
            heap::asan::add_leak_roots(memory, bytes); // what is retired is listed there
            return memory;
        }
        os::release(memory, bytes);
        return nullptr;
    }

    void* allocate_placed(heap::space& heaps, std::size_t bytes, heap::attributes attr,
                          const allocation_options& how) noexcept;
    [[gnu::noinline]] static void* allocate_usual_elsewhere(std::size_t bytes) noexcept;
    [[gnu::noinline]] static void deallocate_elsewhere(void* object) noexcept;
    void free_foreign(void* object) noexcept;
    void note_foreign(const void* object) noexcept;
    void invalid_free(const void* address, heap::free_result result) noexcept;
    static void free_node(mobility::retired_object* node) noexcept { std::free(node); }
    [[gnu::noinline]] void look_at_memory(std::uint64_t taken, std::uint64_t coming) noexcept;
    static bool this_thread_may_wait() noexcept;
    void ask_for_memory(std::uint64_t bytes, bool waits) noexcept;
    void wait_owed(record& self) noexcept;
    void reclaim_share(record& self) noexcept;
    void count_retired(const record& self) noexcept;
    void count_reclaimed(typename reclaimer::progress done) noexcept;

    void run() noexcept; // the collector thread
    void look_at_units() noexcept;
    bool reclaim_tick() noexcept;
    double next_window() const noexcept;
    void run_window(bool forced, bool early, std::uint64_t pressed) noexcept;
    void end_early_window(std::uint64_t left) noexcept;
    bool might_rest(double now) const noexcept;
    static double active_seconds() noexcept;
    bool may_collect() const noexcept { // under state_
        return running_ && stopping_.load_relaxed() == 0 && settings_.mode >= run_mode::move &&
               !degraded_.load_relaxed();
    }
    void allow_births(bool may) noexcept; // under state_
    void page_out_births() noexcept;
    void note_birth(const heap::space& heaps) noexcept;
    void wait_for_births(const heap::space& heaps) noexcept;
    std::uint64_t write_allowance() noexcept;
    void charge_writes() noexcept;
    std::uint64_t paged_out_bytes() const noexcept;
    void finish_window(const object_collector& done, std::uint64_t wanted,
                       std::uint64_t pressed) noexcept;
    void note_faults(policy::window_facts& facts) noexcept;
    std::uint64_t leaves_after(policy::tier_id id) const noexcept;
    bool gives_hints() noexcept { return window_settings_.mode == run_mode::hint && !degraded(); }
    memory_budget budget_now() const noexcept;
    void notify_backend(heap::space& heaps, std::uint64_t may_leave, bool large_leaves) noexcept;
    void report_stuck_scopes() noexcept;

    // collector::control
    bool stop_requested() noexcept override { return stopping_.load_acquire() != 0 || degraded(); }
    void checkpoint() noexcept override { park_.yield(); }
    void throttle() noexcept override;
    void call_begins() noexcept override { park_.unlock(); }
    void call_ends() noexcept override { park_.lock(); }
    void wait_begins() noexcept override;
    void reclaim() noexcept override;
    void slots_moved(const mobility::moved_object& moved) noexcept override;
    bool give_up(std::uint32_t thread_id, std::uint64_t epoch) noexcept override;

    static void fork_prepare() noexcept;
    static void fork_parent() noexcept;
    static void fork_child() noexcept;
    void prepare_fork() noexcept;
    void resume_parent() noexcept;
    void resume_child() noexcept;
    void forget_slots_of_other_threads() noexcept;

    static inline platform::atomic<engine*> instance_;
    // The heaps of the one engine: found without it. Null until make_ready() is over, or if there are none.
    static inline platform::atomic<heap::space*> space_;

    registry registry_;
    slots slots_;
    reclaimer reclaimer_;
    platform::atomic<std::uint32_t> tried_; // make_ready() is over, with or without heaps
    platform::atomic<std::uint32_t> degraded_;
    platform::atomic<std::uint32_t> rearm_;
    platform::atomic<std::uint32_t> said_foreign_, said_no_room_, said_no_budget_,
        said_no_membarrier_, said_not_retired_, said_cut_short_, said_mixing_, said_invalid_free_,
        said_waits_;
#if defined(OBASE_DEBUG_CHECKS)
    static constexpr bool debug_checks = true;
#else
    static constexpr bool debug_checks = false;
#endif
    platform::atomic<std::uint32_t> checks_frees_{debug_checks ? 1U : 0U};
    platform::atomic<std::uint64_t> invalid_frees_;
    platform::atomic<std::uint64_t> near_missed_;
    platform::atomic<std::uint32_t> said_no_neighbour_;
    platform::atomic<audit::slot_places*>
        places_; // while the statistics are to have them; never destroyed
    // Objects that malloc gave in the heaps' stead, by their addresses. Made for the first of them.
    platform::atomic<slots*> foreign_;
    platform::atomic<std::uint32_t> foreign_unknown_; // there was no memory to note one
    record emergency_record_; // shared by threads for which there is no memory

    std::mutex lifecycle_;
    std::vector<std::string> startup_messages_; // under lifecycle_
    bool configured_ = false;                   // under lifecycle_
    bool exit_hook_set_ = false;                // under lifecycle_
    bool forked_ = false;                       // under lifecycle_
    bool cold_lost_ = false;                    // under lifecycle_: in a child of a fork
    bool audit_asked_ = false;                  // under lifecycle_
    bool operations_lost_ = false;              // under lifecycle_: in a child of a fork
    bool places_lost_ = false;                  // under lifecycle_: in a child of a fork
    os::threads_at_fork threads_at_fork_;       // under lifecycle_
    std::thread thread_;                        // under lifecycle_
    std::optional<mover> mover_;
    std::optional<object_collector> collector_;
    std::unique_ptr<policy::placement> policy_; // made with the heaps, never replaced
    std::unique_ptr<backend::backend> backend_;
    std::optional<backend::window_log> window_log_;
    std::optional<backend::tier_facts> tier_facts_;
    platform::atomic<telemetry::recorder*> recorder_; // made once, never destroyed

    handoff_lock park_;

    mutable std::mutex state_;
    std::condition_variable wake_;     // the collector waits here
    std::condition_variable finished_; // collect_now() waits here
    std::condition_variable room_;     // threads that allocate wait here
    options settings_;                 // under state_
    bool running_ = false;             // under state_
    std::uint64_t requested_ = 0;      // under state_: windows asked for by collect_now()
    std::uint64_t served_ = 0;         // under state_
    collect_result last_result_ = collect_result::done; // under state_
    // Under state_: bytes that threads want that allocate, and a window at once; 0: none do.
    std::uint64_t pressed_ = 0;
    std::uint64_t reliefs_ = 0;                 // under state_: times when waits for it ended
    wait_credit credit_;                        // under state_
    platform::atomic<std::uint32_t> waiting_;   // threads in room_; changed under state_
    platform::atomic<std::uint64_t> misplaced_; // memory_use; by the collector, for any
    allocation_watch<platform> watch_;
    // Classes of the heaps in which what is expected to be hot and cold is born; 0: none. Made with the heaps.
    unsigned hot_births_ = 0, cold_births_ = 0;
    platform::atomic<std::uint32_t> births_leave_; // what is born cold leaves memory at once
    platform::atomic<std::uint32_t> births_told_;  // the collector knows that there are some
    // Bytes of them in memory beyond which threads wait. More than most_births after waits that were in vain.
    platform::atomic<std::uint64_t> births_limit_;
    bool in_window_ = false; // under state_
    platform::atomic<std::uint32_t> stopping_;
    platform::atomic<std::uint64_t> collector_thread_; // kernel id, 0 while there is none

    // The collector thread only.
    record* self_ = nullptr;
    options window_settings_;
    memory_budget budget_;  // when the window began
    double still_over_ = 0; // bytes over the budget, after the last window that was not early
    std::uint64_t in_use_in_files_ = 0; // bytes of COLD's pages, in that window
    std::uint64_t refused_bytes_ = 0;   // in that window: in use in a file, and no room elsewhere
    backend::window_view window_view_;
    struct collector_and_all {
        std::uint64_t own = 0, all = 0; // of the collector thread, of the process
    };
    program_time time_;
    double active_before_ = 0; // active_seconds(), at the end of the last window that was not early
    double looked_for_room_at_ = 0; // monotonic: whether there is room to rest in
    bool has_room_ = false;
    collector_and_all cpu_before_;    // nanoseconds, at the last finish_window()
    collector_and_all faults_before_; // major ones
    bool forced_ = false;
    bool early_ = false; // the window was begun before its time
    bool given_up_ = false;
    double paid_at_ = 0;       // monotonic: by then the last window is within collector_cpu_share
    double window_began_ = 0;  // monotonic
    double window_cpu_ = 0;    // seconds that the last window took
    double window_factor_ = 1; // policy::directives
    audit::plain_units units_;
    policy::exchange_share exchange_share_;
    policy::write_credit write_credit_{heap::max_dense_size}; // of option cold_write_limit
    double credited_at_ = 0;                                  // monotonic; 0: never
    // Under state_: what births in a file may still write, as it was said last; all, while there is no limit.
    std::uint64_t births_allowed_ = 0;
    double last_window_end_ = 0; // monotonic, of those that were not early
    double last_end_ = 0;        // monotonic, of any
    double last_cpu_ = 0;        // of the collector thread, at the last finish_window()
    processor_share pace_;       // of throttle()
    double wait_began_ = 0;
    struct open_scope {
        std::uint64_t epoch;
        double since;
        bool reported;
    };
    std::map<const record*, open_scope> open_scopes_;
};

} // namespace obase::runtime_internal
