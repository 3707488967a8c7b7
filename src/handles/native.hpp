// SPDX-License-Identifier: MIT
//
// native_handles: handles of this process. The heap, the threads, the table of open runs and the collector, tied
// together; the functions of obase/handles.h and of malloc are thin over it.
//
// The heap is a heap::space. In its class NEW are the homes; movable and immovable objects never share a run, because
// they differ in an attribute (never_cold says here: never moved). Class 1, dense, has what moved. LARGE does not move.
// What the space cannot serve, and what the runtime itself needs, comes from the C library's malloc.
//
// Made at the first allocation, without allocating; never destroyed.
#pragma once

#include "handles/evacuator.hpp"
#include "handles/homes.hpp"
#include "handles/price.hpp"
#include "handles/settings.hpp"
#include "handles/stress.hpp"
#include "handles/threads.hpp"
#include "heap/reserved_array.hpp"
#include "heap/space.hpp"
#include "os/platform.hpp"
#include "os/thread.hpp"
#include "policy/fragmentation.hpp"
#include "policy/used_runs.hpp"

#include <obase/handles.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace obase::handles {

using native = os::native_platform;

inline constexpr unsigned thread_slot = 2; // of heap::named_slots
inline constexpr unsigned dense_class = 1;
inline constexpr std::size_t least_alignment = 16;
inline constexpr unsigned movable_set = heap::attribute_index({4, false});
inline constexpr unsigned immovable_set = heap::attribute_index({4, true});
constexpr heap::attributes attributes_of(std::size_t alignment, bool movable) noexcept {
    return {static_cast<std::uint8_t>(std::countr_zero(alignment)), !movable};
}

// As obase_handles_away: not 0 if an object of the run was kept once.
extern unsigned char keeps_of_runs[1U << 24];

// Before the first thread needs it (vector_state.cpp).
void learn_vector_state() noexcept;
// translate.cpp: which code translates on this processor.
void choose_translation() noexcept;

// Nonzero in threads of the runtime, and while it is being made: malloc is then the C library's.
extern __thread unsigned inside_runtime __attribute__((tls_model("initial-exec")));
class runtime_memory {
  public:
    runtime_memory() noexcept { ++inside_runtime; }
    ~runtime_memory() { --inside_runtime; }
    runtime_memory(const runtime_memory&) = delete;
    runtime_memory& operator=(const runtime_memory&) = delete;
};

class native_handles;
class temperature;

// Objects by their current addresses, for the mover.
class current_objects {
  public:
    explicit current_objects(native_handles& all) noexcept : all_(all) {}
    bool contains(const void* address) const noexcept;
    heap::space::object_info info(const void* object) const noexcept;
    void* allocate_dense(unsigned cls, std::size_t size, heap::attributes attr) noexcept;
    void undo_allocate_dense(void* object) noexcept;
    void free(void* object) noexcept; // what was at an alias takes no memory of its own

  private:
    native_handles& all_;
};

class native_handles {
  public:
    using mover_heap = current_objects;
    static constexpr unsigned target_class = dense_class;
    using evacuator_type = evacuator<native, native_handles>;
    using record = handles_record<native>;
    using threads_type = handles_threads<native, native_handles>;
    using homes_type = homes<native, native_handles>;
    using table_type = forwarding_table<native>;

    // nullptr: there is no address space, or it is being made by this thread.
    static native_handles* get() noexcept {
        native_handles* const made = instance_.load_acquire();
        return made != nullptr ? made : make();
    }
    static native_handles* if_made() noexcept { return instance_.load_acquire(); }

    // Allocation, the part behind the fast paths. nullptr: there is none, errno is ENOMEM.
    void* allocate(std::size_t bytes, std::size_t alignment, bool movable,
                   const void* caller) noexcept;
    void free(void* object) noexcept; // any of the space's, inside a scope if it may be movable
    bool contains(const void* address) const noexcept { return space_->contains(address); }
    bool is_movable(const void* object) const noexcept; // Precondition: contains(object)
    bool may_move(const void* address) const noexcept;  // any address
    bool in_homes(const void* address) const noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - base_ < bytes_;
    }
    bool in_stress(const void* address) const noexcept {
        return stress_ != nullptr && stress_->contains(reinterpret_cast<std::uintptr_t>(address));
    }
    bool commit_tables(std::size_t runs) noexcept {
        return tables_.commit_to(runs) && mapped_.commit_to(runs);
    }
    // A poll, in stress mode. The calling thread has no translations.
    void stress(record* self) noexcept;
    bool stresses() const noexcept { return stress_ != nullptr; }
    // A tracked run is used so much that the collector is to look at once. Any thread, also in a handler.
    void much_used() noexcept {
        alarm_.store_relaxed(1);
        native::wake_all(alarm_);
    }
    static std::uint64_t clock_ns() noexcept { return os::monotonic_ns(); }
    void note_translation(std::uint64_t ns) noexcept { price_.note(ns); }
    unsigned tier_of(std::uint64_t address) const noexcept {
        if (address - base_ < bytes_ || in_alias(address)) return heap::new_class;
        return space_->class_of(reinterpret_cast<const void*>(address));
    }
    std::size_t size_of(std::uint64_t address) const noexcept {
        return current_.info(reinterpret_cast<const void*>(address)).size;
    }
    bool page_out(unsigned cls, std::uint64_t address) const noexcept;
    void retired(table_type& table) noexcept;
    void moved(unsigned from, unsigned to, const mobility::moved_object& object) noexcept;
    // What the program may use of it. Precondition: contains(object).
    std::size_t usable_size(const void* object) const noexcept;
    void forget_kept(std::uint64_t home) noexcept;
    // Makes the object `bytes` long where it is. False: it does not fit there, or would leave too much unused.
    // Precondition: as usable_size(); inside a scope if it may be movable.
    bool resize(void* object, std::size_t bytes) noexcept;

    threads_type& threads() noexcept { return threads_; }
    homes_type& objects() noexcept { return homes_; }
    heap::space& space() noexcept { return *space_; }

    // The calling thread's record, made at first. nullptr: there is no memory for it, and nothing moves any more.
    record* own_record() noexcept;
    record* make_record() noexcept;
    static record* own_record_if_any() noexcept;

    // Host of homes, threads and evacuator.
    std::uint64_t base() const noexcept { return base_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    native::atomic<std::uint8_t>& away(std::size_t run) const noexcept {
        return away_at(base_ + (run << heap::run_shift));
    }
    static native::atomic<std::uint8_t>& away_at(std::uint64_t address) noexcept {
        static_assert(sizeof(native::atomic<std::uint8_t>) == 1);
        return reinterpret_cast<native::atomic<std::uint8_t>&>(
            obase_handles_away[address >> heap::run_shift & 0xFFFFFF]);
    }
    native::atomic<table_type*>& table(std::size_t run) noexcept { return tables_[run]; }
    // Not 0: an object of the run was kept once. Of any address, as away_at().
    static native::atomic<std::uint8_t>& keeps_at(std::uint64_t address) noexcept {
        return reinterpret_cast<native::atomic<std::uint8_t>&>(
            keeps_of_runs[address >> heap::run_shift & 0xFFFFFF]);
    }
    bool in_alias(std::uint64_t address) const noexcept {
        return address - aliases_ < alias_count << heap::run_shift;
    }
    bool alias_ready(std::uint64_t address) const noexcept {
        return ready_[(address - aliases_) >> heap::run_shift].load_acquire() != 0;
    }
    void free_to_run(std::uint64_t home) noexcept {
        space_->slabs().free_to_run(reinterpret_cast<void*>(home));
    }
    void freed(std::uint64_t home, std::uint64_t was) noexcept;
    void free_dense(std::uint64_t address) noexcept {
        space_->free(reinterpret_cast<void*>(address));
    }
    current_objects& heap() noexcept { return current_; }
    void close() noexcept;
    bool closed(std::size_t run) const noexcept;
    template <class Visit>
    std::size_t for_each_out(std::size_t run, Visit&& visit) const {
        return space_->slabs().for_each_block_out(run, visit);
    }
    std::size_t block_size(std::size_t run) const noexcept {
        return space_->slabs().block_size(run);
    }
    std::uint64_t home_of(std::size_t run) const noexcept {
        return base_ + (run << heap::run_shift);
    }
    bool kept(std::size_t run) noexcept;
    void reopen(std::uint32_t run) noexcept;
    void reopen(std::size_t run) noexcept { reopen(static_cast<std::uint32_t>(run)); }
    bool take_pages(std::size_t run, std::uint64_t alias) noexcept;
    std::uint64_t claim_alias(std::uint32_t run) noexcept;
    // Mappings that runs may have of their own: a part of what the kernel lets the process have. Beyond it no run's memory is
    // taken; it comes home nevertheless.
    bool mappings_are_used_up() noexcept; // says so, once
    void alias_is(std::uint64_t alias, bool ready) noexcept {
        ready_[(alias - aliases_) >> heap::run_shift].store_release(ready ? 1 : 0);
    }
    void leave_alias(std::uint64_t alias) noexcept;
    // The home of the object at an alias.
    std::uint64_t home_of_alias(std::uint64_t address) const noexcept {
        const std::uint64_t offset = address - aliases_;
        return home_of(alias_of_[offset >> heap::run_shift] - 1) + (offset & (heap::run_bytes - 1));
    }
    bool tables_may_shrink() const noexcept { return temperature_ == nullptr; }
    void evacuated(std::size_t run) noexcept { space_->slabs().evacuated(run); }
    void release(std::size_t run) noexcept;
    template <class CopyAll>
    bool put_back(std::size_t run, CopyAll&& copy_all, const block_set& out) noexcept {
        char* const scratch = begin_put_back();
        if (scratch == nullptr) return false;
        copy_all(scratch);
        return end_put_back(run, scratch, out);
    }

    // Collector's work. One thread at a time, which holds it. Threads that need it make the holder give up its waits.
    enum class urgency : bool { none, hurries };
    class work {
      public:
        work(native_handles& all, record* self, urgency need = urgency::hurries) noexcept;
        ~work();
        work(const work&) = delete;
        work& operator=(const work&) = delete;

      private:
        // First made: a handler, or a cancellation, could need what this holds.
        const os::blocked_signals no_handlers_;
        const os::no_cancellation not_cancelled_;
        native_handles& all_;
        const runtime_memory own_;
    };
    using uninterrupted = os::blocked_signals;
    // The object of the home stays there until it is freed. Precondition: the calling thread is at a safepoint.
    void keep(const void* home) noexcept;
    struct pin_made {
        void* now;
        native::atomic<std::uint64_t>* entry; // to be given back; null: nothing
    };
    pin_made pin(const void* home, int tries = 3) noexcept;
    void unpin(const void* home) noexcept;
    // The same for foreign code, in any thread and any state. An address that the calling thread has pinned already may
    // stay so once.
    pin_made pin_for_foreign(const void* home) noexcept;
    void unpin_for_foreign(native::atomic<std::uint64_t>& entry) noexcept;
    // Where it is: at home, except in a handler in the midst of compiled code. Then it stays there until that goes on.
    void* keep_for_foreign(const void* home) noexcept;
    // Preconditions: the calling thread holds `work`, and is at a safepoint.
    std::uint64_t move_all(record* self) noexcept;
    std::uint64_t bring_home(record* self) noexcept;
    void read_figures(obase_handles_figures& to) noexcept;
    // collector.cpp
    void start_collector() noexcept; // if there is none yet and it would have something to do
    bool evacuating(std::uint64_t address) const noexcept {
        return space_->evacuating(reinterpret_cast<const void*>(address));
    }
    // Whether there is anything to compact in dense classes, and it is the time to: it takes a look at each word of each
    // taken run.
    bool any_evacuating() const noexcept {
        if (!compacts_) return false;
        for (unsigned cls = dense_class; cls < space_->classes(); ++cls)
            if (space_->counters(cls).evacuating_runs != 0) return true;
        return false;
    }

    // faults.cpp
    enum class served : std::uint8_t { done, mistake, not_ours };
    served serve_fault(const void* address) noexcept;
    void explain_fault(const void* address, const void* instruction) noexcept;
    static void serve_faults() noexcept;
    const void* home_at(const void* address) noexcept;

    void flush_own() noexcept;
    void flush(record& of) noexcept;

    void thread_ends(record& r) noexcept;

  private:
    friend class temperature;
    static constexpr std::size_t alias_count = 1024;

    native_handles() noexcept;
    static native_handles* make() noexcept;
    bool set_up() noexcept;
    void make_space(heap::space_options& options);
    char* begin_put_back() noexcept;
    // Asked by who waits for other threads: whether to stop that. A thread that is late is often not running, and
    // needs this one's processor.
    auto while_waiting() noexcept {
        return [this, looks = 0U](const auto&) mutable {
            if (++looks > spins_of_a_wait) os::sleep_ns(nap_of_a_wait_ns);
            return gives_up();
        };
    }
    static constexpr unsigned spins_of_a_wait = 200;
    static constexpr std::uint64_t nap_of_a_wait_ns = 20'000;
    // The same for a stop that must be reached: who waits for `work` offline does not end it.
    auto while_stopping() noexcept {
        return [this, looks = 0U](const auto&) mutable {
            if (++looks > spins_of_a_wait) os::sleep_ns(nap_of_a_wait_ns);
            return stuck_.load_relaxed() != 0 || blind_.load_relaxed() != 0;
        };
    }
    // For a stop that can be had another time: threads stand in their polls for as long as another one is late.
    auto while_stopping_briefly() noexcept {
        return [this, looks = 0U](const auto&) mutable {
            if (++looks > spins_of_a_wait) os::sleep_ns(nap_of_a_wait_ns);
            return gives_up() || looks > spins_of_a_wait + naps_of_a_brief_stop;
        };
    }
    static constexpr unsigned naps_of_a_brief_stop = 100;
    bool end_put_back(std::size_t run, char* scratch, const block_set& out) noexcept;
    home_result come_home(std::size_t run, record* self) noexcept;
    home_result come_home_if_soon(std::size_t run) noexcept; // collector
    void read_before_stop(std::size_t run) noexcept;
    template <class GiveUp>
    home_result come_home_unless(GiveUp give_up, std::size_t run, record* self) noexcept;
    home_result come_home_stressed(std::uint64_t home, record* self) noexcept;
    // A thread without a record will run compiled code. Afterwards nothing moves, for ever.
    void nothing_moves_any_more() noexcept;
    void tell_no_memory() noexcept;                                                   // once
    static void tell(native::atomic<std::uint32_t>& told, const char* text) noexcept; // once
    // False: a thread runs that nothing can be said about, so nothing may move.
    // `patience`: how often it looks again at threads that may be just starting.
    bool threads_are_known(int patience) noexcept;
    void count_mapping(std::size_t run, std::uint8_t state) noexcept;
    std::uint64_t now_at(std::uint64_t home, std::uint64_t* begin) noexcept;
    // Or there is no memory for it. Precondition: the calling thread is at a safepoint.
    void until_at_home(std::size_t run, record* self) noexcept;
    void until_at_home_stressed(std::uint64_t home, record* self, bool although_pinned) noexcept;
    // The object's first byte, by its slab. Precondition: in_homes(home).
    std::uint64_t beginning(std::uint64_t home) const noexcept;
    void add(const round_result& result) noexcept;
    void collect() noexcept;
    policy::fragmented measure(std::vector<policy::run_to_gather>& runs);
    struct gathered {
        std::uint64_t opened = 0; // runs
        bool gave_back = false;   // free pages
    };
    gathered gather(policy::fragmentation& control);
    // Returns how many slow translations runs whose objects have moved have had since it was asked last.
    std::uint64_t bring_used_home(policy::fragmentation& control, const policy::used_runs& used,
                                  std::uint64_t elapsed_ns);
    // False: none are sparse.
    bool select_sparse_dense() noexcept;
    static void show_figures() noexcept;
    static void prepare_forks() noexcept;
    static void fork_prepare() noexcept;
    static void fork_parent() noexcept;
    static void fork_child() noexcept;

    static constinit native::atomic<native_handles*> instance_;

    const settings settings_ = settings::from_environment();
    heap::space* space_ = nullptr;
    native::atomic<std::uint32_t> collector_started_;
    translation_price price_;
    bool compacts_ = true;                // under work_
    bool is_child_ = false;               // of a fork
    native::atomic<std::uint32_t> alarm_; // 1: the collector is to look at once
    temperature* temperature_ = nullptr;  // null: objects have none
    std::uint64_t base_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t aliases_ = 0;
    native::atomic<std::uint32_t> ready_[alias_count];
    heap::reserved_array<native::atomic<table_type*>> tables_; // by run
    heap::reserved_array<native::atomic<std::uint64_t>>
        kept_; // a bit per 16 bytes: an object there must stay
    // By run, under work_: whether its home is a mapping of its own, and why.
    enum : std::uint8_t { shares_a_mapping, away_in_its_own, home_in_its_own };
    heap::reserved_array<native::atomic<std::uint8_t>> mapped_;
    std::size_t mappings_ = 0; // of such homes, and of aliases in use; under work_
    std::size_t most_mappings_ = 0;
    bool away_shares_mappings_ = false;
    std::optional<os::blocked_signals> signals_of_fork_; // under work_
    threads_type threads_;
    homes_type homes_;
    current_objects current_;
    stress_heap* stress_ = nullptr;
    evacuator_type evacuator_;
    static constexpr std::uint32_t lost_alias = 0xFFFF'FFFF;
    std::uint32_t alias_of_[alias_count]{}; // run + 1; 0: unused; lost_alias: no memory of ours
    os::blocking_lock<native> work_;
    native::atomic<std::uint32_t> hurry_; // threads that wait for work_
    native::atomic<std::uint32_t> stuck_; // of those: that cannot be offline meanwhile
    native::atomic<std::uint32_t> told_no_memory_, told_mappings_, told_thread_, told_cold_;
    void* scratch_ = nullptr;             // reserved for the next run that comes home; under work_
    native::atomic<std::uint32_t> blind_; // 1: a thread has no record, so nothing may move any more
    bool gives_up() const noexcept {
        return hurry_.load_relaxed() != 0 || blind_.load_relaxed() != 0;
    }
    native::atomic<std::uint64_t> moved_, vetoed_, opened_, reopened_, came_home_, faults_, own_ns_,
        used_home_;
};

} // namespace obase::handles
