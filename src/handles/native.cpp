// SPDX-License-Identifier: MIT
#include "handles/native.hpp"

#include "handles/temperature.hpp"

#include "heap/slab_functions.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/segment_fault.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

unsigned char obase_handles_away[1U << 24];
unsigned char obase::handles::keeps_of_runs[1U << 24];
unsigned char obase_handles_poll_wanted;

namespace obase::handles {

__thread unsigned inside_runtime;

namespace {

__thread native_handles::record* record_of_thread;

constexpr std::size_t mib = std::size_t{1} << 20;
// Of each class. All of them together are to be shorter than the terabyte in which runs have bytes of their own.
constexpr std::size_t most_range = std::size_t{256} << 30;
constexpr std::size_t least_range = 64 * mib;
constexpr std::size_t most_addresses = std::size_t{1} << 40;

std::size_t first_range(unsigned classes) noexcept {
    os::machine here;
    os::read_machine(&here);
    std::size_t range = std::clamp<std::size_t>(std::bit_ceil(here.ram_bytes * 4),
                                                std::size_t{64} << 30, most_range);
    // LARGE is one more, and NEAR a fourth.
    const std::size_t ranges = classes + 2;
    while (range > least_range && ranges * range > most_addresses) range /= 2;
    // Of what there is, half: the program has other uses for its addresses.
    while (range > least_range && range > os::address_space_limit() / (2 * ranges)) range /= 2;
    return range;
}

// A home or an alias that differs from its neighbours is one mapping more, and cuts theirs in two.
constexpr std::size_t mappings_of_a_run = 2;

alignas(64) unsigned char storage[sizeof(native_handles)];
native::atomic<std::uint32_t> making; // 0 not yet, 1 a thread makes it, 2 made or impossible

void thread_end_hook() noexcept {
    if (record_of_thread == nullptr) return;
    native_handles::if_made()->thread_ends(*record_of_thread);
    record_of_thread = nullptr;
}

} // namespace

constinit native::atomic<native_handles*> native_handles::instance_{nullptr};

native_handles::native_handles() noexcept
    : threads_(*this, reinterpret_cast<native::atomic<std::uint8_t>&>(obase_handles_poll_wanted)),
      homes_(*this), current_(*this), evacuator_(*this, threads_, homes_) {}

native_handles* native_handles::make() noexcept {
    if (inside_runtime != 0) return nullptr;
    std::uint32_t not_yet = 0;
    if (!making.cas_acq_rel(not_yet, 1)) {
        while (making.load_acquire() == 1) native::yield();
        return instance_.load_acquire();
    }
    const runtime_memory own;
    learn_vector_state();
    choose_translation();
    auto* const fresh = ::new (storage) native_handles;
    if (fresh->set_up()) {
        instance_.store_release(fresh); // pairs with get()
        serve_faults();
        prepare_forks();
        if (fresh->settings_.show) std::atexit(&show_figures);
    }
    making.store_release(2);
    return instance_.load_acquire();
}

// At exit, as OBASE_SHOW_STATS=1 asks.
void native_handles::show_figures() noexcept {
    obase_handles_figures now{};
    if_made()->read_figures(now);
    const struct {
        const char* name;
        std::uint64_t value;
    } rows[] = {
        {"moved", now.moved},
        {"vetoed", now.vetoed},
        {"opened", now.opened},
        {"reopened", now.reopened},
        {"came_home", now.came_home},
        {"used_home", now.used_home},
        {"open_runs", now.open_runs},
        {"live_bytes", now.live_bytes},
        {"memory_bytes", now.memory_bytes},
        {"table_bytes", now.table_bytes},
        {"table_memory_bytes", now.table_memory_bytes},
        {"foreign_faults", now.foreign_faults},
        {"collector_ns", now.collector_ns},
        {"windows", now.windows},
        {"tracked_runs", now.tracked_runs},
        {"tracked_ever", now.tracked_ever},
        {"tracked_uses", now.tracked_uses},
        {"translation_ns", now.translation_ns},
        {"hot_bytes", now.hot_bytes},
        {"cold_bytes", now.cold_bytes},
        {"left_bytes", now.left_bytes},
        {"would_leave_bytes", now.would_leave_bytes},
    };
    for (const auto& row : rows)
        std::fprintf(stderr, "obase: handles: %s %lu\n", row.name,
                     static_cast<unsigned long>(row.value));
}

void native_handles::make_space(heap::space_options& options) {
    std::string why;
    for (std::size_t range = first_range(options.classes);
         space_ == nullptr && range >= least_range; range /= 2) {
        options.range_bytes = range;
        space_ = heap::space::create(options, &why);
        if (space_ == nullptr && range / 2 < least_range && !options.cold_directory.empty())
            temperature_->file_refused(why.c_str());
    }
}

bool native_handles::set_up() noexcept {
    threads_.all().set_fenced(!native::has_membarrier());
    heap::space_options options;
    options.classes = 2;
    options.file_classes = 0;
    options.thread_slot = thread_slot;
    try {
        if (!settings_.off && settings_.stress == 0)
            temperature_ = temperature::from_environment(*this, settings_);
        if (temperature_ != nullptr) temperature_->ask_for(options);
        make_space(options);
        if (space_ == nullptr && !options.cold_directory.empty()) {
            options.cold_directory.clear();
            make_space(options);
        }
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (space_ == nullptr) return false;
    os::machine here;
    os::read_machine(&here);
    most_mappings_ = settings_.mappings != 0 ? settings_.mappings : here.max_map_count / 4;
    away_shares_mappings_ = os::taken_pages_share_mappings();
    base_ = reinterpret_cast<std::uint64_t>(space_->range_begin(heap::new_class));
    bytes_ = space_->range_bytes();
    if (temperature_ != nullptr) temperature_->heap_is_made();
    if (settings_.stress != 0) {
        // The slab fills the range from its beginning.
        stress_ = new (std::nothrow)
            stress_heap(*this, base_ + bytes_ / 2, base_ + bytes_, settings_.stress);
        threads_.always_poll();
    }
    void* const aliases = os::reserve(alias_count << heap::run_shift, heap::run_bytes);
    aliases_ = reinterpret_cast<std::uint64_t>(aliases);
    scratch_ = os::reserve(heap::run_bytes, heap::run_bytes);
    return aliases != nullptr && tables_.reserve(bytes_ >> heap::run_shift) &&
           mapped_.reserve(bytes_ >> heap::run_shift) &&
           kept_.reserve(bytes_ / least_alignment / 64);
}

void* native_handles::allocate(std::size_t bytes, std::size_t alignment, bool movable,
                               const void* caller) noexcept {
    if (movable && stress_ != nullptr && bytes < heap::max_small_size) {
        const runtime_memory own;
        try {
            return reinterpret_cast<void*>(
                stress_->allocate(bytes, std::max(alignment, least_alignment), caller));
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    if (movable) start_collector();
    // One byte more, so that the address behind the object's end belongs to it.
    const std::size_t size = bytes + (movable && bytes <= heap::max_small_size ? 1 : 0);
    return space_->allocate(size, attributes_of(std::max(alignment, least_alignment), movable));
}

void native_handles::freed(std::uint64_t home, std::uint64_t was) noexcept {
    if (in_stress(reinterpret_cast<const void*>(home))) {
        const runtime_memory own;
        stress_->freed(home, was);
    } else if (was != home && !in_alias(was)) {
        free_dense(was);
    }
}

void native_handles::stress(record* self) noexcept {
    if (self->nested != 0 || self->epoch.load_relaxed() == 0 || !stress_->due()) return;
    const work mine(*this, self);
    if (blind_.load_seq_cst() != 0 || !threads_.stop(self, while_stopping())) return;
    try {
        std::vector<std::uint64_t> pinned;
        mobility::collect_pins(threads_.all(), pinned);
        stress_->move_some(pinned);
    } catch (const std::bad_alloc&) {
    }
    threads_.go_on();
}

home_result native_handles::come_home_stressed(std::uint64_t home, record* self) noexcept {
    if (blind_.load_seq_cst() != 0 || !threads_.stop(self, while_stopping()))
        return home_result::gave_up;
    std::uint64_t objects = 0;
    home_result result = home_result::no_memory;
    try {
        std::vector<std::uint64_t> pinned;
        mobility::collect_pins(threads_.all(), pinned);
        result = stress_->bring_home(stress_->find(home).home, pinned, &objects);
    } catch (const std::bad_alloc&) {
    }
    threads_.go_on();
    came_home_.fetch_add_relaxed(objects);
    return result;
}

bool native_handles::is_movable(const void* object) const noexcept {
    if (in_stress(object)) return true;
    return in_homes(object) && !heap::attributes_at(space_->slabs().set_of(object)).never_cold;
}

// Of an object that is being freed: what is born there next is another one.
void native_handles::forget_kept(std::uint64_t home) noexcept {
    const std::size_t granule = (home - base_) / least_alignment;
    if (keeps_at(home).load_relaxed() == 0 || !kept_.committed(granule / 64)) return;
    const std::uint64_t bit = std::uint64_t{1} << (granule % 64);
    if ((kept_[granule / 64].load_relaxed() & bit) != 0)
        kept_[granule / 64].fetch_and_seq_cst(~bit);
}

void native_handles::free(void* object) noexcept {
    const auto home = reinterpret_cast<std::uint64_t>(object);
    if (in_homes(object) && !in_stress(object)) forget_kept(home);
    if (in_homes(object) && away_at(home).load_acquire() != at_home) {
        homes_.free(home);
        return;
    }
    space_->free(object);
}

std::size_t native_handles::usable_size(const void* object) const noexcept {
    if (in_stress(object)) return stress_->find(reinterpret_cast<std::uint64_t>(object)).size;
    const std::size_t size = space_->usable_size(object);
    return is_movable(object) ? size - 1 : size;
}

bool native_handles::resize(void* object, std::size_t bytes) noexcept {
    if (in_stress(object)) return false;
    if (space_->resize_large(object, bytes)) return true;
    const std::size_t now = usable_size(object);
    if (!in_homes(object)) return bytes <= now && bytes >= now / 2;
    if (away_at(reinterpret_cast<std::uint64_t>(object)).load_acquire() != at_home)
        return bytes <= now && bytes >= now / 2;
    const heap::slab_heap<native>& slabs = space_->slabs();
    const std::size_t run = (reinterpret_cast<std::uint64_t>(object) - base_) >> heap::run_shift;
    const std::size_t block = slabs.block_size(run);
    const std::size_t size = bytes + (is_movable(object) ? 1 : 0);
    if (size > block || size < block / 2) return false;
    const std::size_t alignment = std::size_t{1}
                                  << heap::attributes_at(slabs.set_of(object)).log2_alignment;
    space_->slabs().note_size(object, heap::round_up(size, alignment));
    return true;
}

void native_handles::flush_own() noexcept {
    space_->slabs().flush_movable(heap::thread_heaps[thread_slot]);
}

void native_handles::flush(record& of) noexcept {
    if (of.cache == nullptr) return;
    auto** const heap = static_cast<heap::thread_heap<native>**>(of.cache);
    space_->slabs().flush_movable(*heap);
}

native_handles::record* native_handles::own_record_if_any() noexcept { return record_of_thread; }

native_handles::record* native_handles::own_record() noexcept {
    record* const mine = record_of_thread != nullptr ? record_of_thread : make_record();
    if (mine != nullptr && mine->unblocked == record::never) [[unlikely]] {
        // The program's mask is of before; what foreign code in this thread reaches is served by a handler.
        os::let_segment_faults_through();
        mine->unblocked = mine->flushed.load_relaxed();
    }
    return mine;
}

native_handles::record* native_handles::make_record() noexcept {
    const os::blocked_signals no_handlers;
    const runtime_memory own;
    if (!os::add_exit_hook(thread_end_hook) || !os::arm_exit_hooks()) {
        nothing_moves_any_more();
        return nullptr;
    }
    auto* const mine = static_cast<record*>(mobility::claim_record(
        threads_.all(), os::thread_id(), []() -> record* { return new (std::nothrow) record; }));
    if (mine == nullptr) {
        nothing_moves_any_more();
        return nullptr;
    }
    mine->nested = 0;
    mine->offline = 0;
    mine->pins_held = 0;
    mine->filling = nullptr;
    mine->unblocked = record::never;
    mine->service.lock();
    mine->cache = &heap::thread_heaps[thread_slot];
    mine->service.unlock();
    record_of_thread = mine;
    return mine;
}

// Who moves objects does not wait for the calling thread. So it waits for who does, and the next one finds `blind_`
// under the lock.
void native_handles::nothing_moves_any_more() noexcept {
    blind_.store_seq_cst(1);
    const work rounds_have_ended(*this, nullptr);
}

// Blocks of movable objects that are in the thread's caches go back while it is inside, as in a poll.
void native_handles::thread_ends(record& r) noexcept {
    const os::blocked_signals no_handlers;
    mobility::enter_scope(static_cast<mobility::thread_record<native>&>(r), threads_.all().epoch());
    space_->thread_exit();
    r.service.lock();
    r.cache = nullptr;
    r.service.unlock();
    threads_.restore(r, {0, 0, false, 0});
    threads_.all().release(r);
}

bool current_objects::contains(const void* address) const noexcept {
    return all_.space().contains(address) ||
           all_.in_alias(reinterpret_cast<std::uint64_t>(address));
}

heap::space::object_info current_objects::info(const void* object) const noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(object);
    if (!all_.in_alias(address)) return all_.space().info(object);
    const auto* const home = reinterpret_cast<const void*>(all_.home_of_alias(address));
    return all_.space().info(home);
}

void* current_objects::allocate_dense(unsigned cls, std::size_t size,
                                      heap::attributes attr) noexcept {
    return all_.space().allocate_dense(cls, size, attr);
}

void current_objects::undo_allocate_dense(void* object) noexcept {
    all_.space().undo_allocate_dense(object);
}

void current_objects::free(void* object) noexcept {
    if (!all_.in_alias(reinterpret_cast<std::uint64_t>(object))) all_.space().free(object);
}

bool native_handles::may_move(const void* address) const noexcept {
    if (!in_homes(address)) return false;
    const std::size_t run = (reinterpret_cast<std::uint64_t>(address) - base_) >> heap::run_shift;
    return in_stress(address) || (run < space_->slabs().runs() && is_movable(address));
}
std::uint64_t native_handles::beginning(std::uint64_t home) const noexcept {
    const std::uint64_t in_run = (home - base_) & (heap::run_bytes - 1);
    const std::size_t size = block_size((home - base_) >> heap::run_shift);
    return size == 0 ? home : home - in_run % size;
}

void native_handles::close() noexcept {
    heap::slab_heap<native>& slabs = space_->slabs();
    slabs.close_runs(
        slabs.runs(),
        [](void* all, std::size_t run) {
            return static_cast<native_handles*>(all)->away(run).load_relaxed() == closing;
        },
        this);
}

bool native_handles::closed(std::size_t run) const noexcept {
    if (!space_->slabs().closed(run)) return false;
    if (is_movable(reinterpret_cast<const void*>(home_of(run)))) return true;
    // It became another one since it was chosen.
    const auto number = static_cast<std::uint32_t>(run);
    heap::pacer never_stops;
    space_->slabs().open_runs(&number, 1, never_stops);
    return false;
}

bool native_handles::kept(std::size_t run) noexcept {
    if (keeps_at(home_of(run)).load_seq_cst() == 0) return false;
    const std::size_t first = (run << heap::run_shift) / least_alignment / 64;
    const std::size_t last = first + heap::run_bytes / least_alignment / 64;
    if (!kept_.committed(last - 1)) return true;
    const std::size_t size = block_size(run);
    bool found = false;
    block_set out;
    for_each_out(run, [&](std::size_t block) { out.set(block); });
    for (std::size_t at = first; at < last; ++at)
        for (std::uint64_t left = kept_[at].load_seq_cst(); left != 0; left &= left - 1) {
            const std::size_t granule =
                (at - first) * 64 + static_cast<std::size_t>(std::countr_zero(left));
            if (out.test(granule * least_alignment / size))
                found = true;
            else // freed since
                kept_[at].fetch_and_seq_cst(~(left & (~left + 1)));
        }
    return found;
}

void native_handles::reopen(std::uint32_t run) noexcept {
    heap::pacer never_stops;
    space_->slabs().open_runs(&run, 1, never_stops);
}

bool native_handles::take_pages(std::size_t run, std::uint64_t alias) noexcept {
    if (os::take_pages(reinterpret_cast<void*>(home_of(run)), reinterpret_cast<void*>(alias),
                       heap::run_bytes) == 0) {
        if (!away_shares_mappings_) count_mapping(run, away_in_its_own);
        return true;
    }
    // Another mapping of the process may be there now.
    alias_of_[(alias - aliases_) >> heap::run_shift] = lost_alias;
    return false;
}

void native_handles::count_mapping(std::size_t run, std::uint8_t state) noexcept {
    const std::uint8_t before = mapped_[run].load_relaxed();
    if (before == home_in_its_own) return; // it stays one: it will never be merged again
    mapped_[run].store_relaxed(state);
    if (before == shares_a_mapping && state != shares_a_mapping) mappings_ += mappings_of_a_run;
    if (before != shares_a_mapping && state == shares_a_mapping) mappings_ -= mappings_of_a_run;
}

bool native_handles::mappings_are_used_up() noexcept {
    // An alias, and the home.
    if (mappings_ + 2 * mappings_of_a_run <= most_mappings_) return false;
    tell(told_mappings_, "obase: no more objects move: runs have as many mappings of their own as "
                         "OBASE_HANDLES_MAPPINGS, or a quarter of vm.max_map_count, allows\n");
    return true;
}

std::uint64_t native_handles::claim_alias(std::uint32_t run) noexcept {
    if (mappings_are_used_up()) return 0;
    for (std::size_t i = 0; i < alias_count; ++i) {
        if (alias_of_[i] != 0) continue;
        alias_of_[i] = run + 1;
        mappings_ += mappings_of_a_run;
        return aliases_ + (i << heap::run_shift);
    }
    return 0;
}

void native_handles::leave_alias(std::uint64_t alias) noexcept {
    const std::size_t at = (alias - aliases_) >> heap::run_shift;
    if (alias_of_[at] == lost_alias) return;
    if (ready_[at].load_relaxed() != 0)
        os::decommit(reinterpret_cast<void*>(alias), heap::run_bytes);
    alias_of_[at] = 0;
    mappings_ -= mappings_of_a_run;
}

void native_handles::release(std::size_t run) noexcept {
    // Without: the run is lost, as an evacuated one without objects.
    if (os::recommit_taken(reinterpret_cast<void*>(home_of(run)), heap::run_bytes) != 0) return;
    count_mapping(run, shares_a_mapping);
    space_->slabs().release_evacuated(run);
}

char* native_handles::begin_put_back() noexcept {
    if (scratch_ == nullptr) scratch_ = os::reserve(heap::run_bytes, heap::run_bytes);
    if (scratch_ == nullptr || os::commit(scratch_, heap::run_bytes) != 0) return nullptr;
    return static_cast<char*>(scratch_);
}

bool native_handles::end_put_back(std::size_t run, char* scratch, const block_set& out) noexcept {
    if (os::put_pages(scratch, reinterpret_cast<void*>(home_of(run)), heap::run_bytes) != 0) {
        os::decommit(scratch, heap::run_bytes);
        return false;
    }
    count_mapping(run, home_in_its_own);
    scratch_ = os::reserve(heap::run_bytes, heap::run_bytes); // null: asked again when it is needed
    space_->slabs().restore_evacuated(
        run, [](void* set, std::size_t block) { return static_cast<block_set*>(set)->test(block); },
        const_cast<block_set*>(&out));
    return true;
}

native_handles::work::work(native_handles& all, record* self, urgency need) noexcept : all_(all) {
    if (need == urgency::none) {
        all.work_.lock();
        return;
    }
    all.hurry_.fetch_add_seq_cst(1);
    // The holder may wait for this thread to poll, which is at a safepoint here; in a handler it gives up instead.
    // What gives up for who can step out, too, may never get anywhere: two that stop in turn.
    const bool steps_out = self != nullptr && self->nested == 0 && self->epoch.load_relaxed() != 0;
    const bool is_stuck =
        !steps_out && record_of_thread != nullptr && record_of_thread->epoch.load_relaxed() != 0;
    if (is_stuck) all.stuck_.fetch_add_seq_cst(1);
    if (steps_out) all.threads_.go_offline(*self);
    all.work_.lock();
    if (is_stuck) all.stuck_.fetch_sub_seq_cst(1);
    all.hurry_.fetch_sub_seq_cst(1);
    if (steps_out) all.threads_.go_online(*self);
}

native_handles::work::~work() { all_.work_.unlock(); }

home_result native_handles::come_home(std::size_t run, record* self) noexcept {
    return come_home_unless(while_stopping(), run, self);
}

home_result native_handles::come_home_if_soon(std::size_t run) noexcept {
    return come_home_unless(while_stopping_briefly(), run, nullptr);
}

// What lies in a file is read before threads stand still for it. Under work_, so it stays where it is.
void native_handles::read_before_stop(std::size_t run) noexcept {
    if (temperature_ == nullptr) return;
    table_type* const table = tables_[run].load_acquire();
    if (table == nullptr || !table->is_taken()) return;
    table->for_each([&](auto& word, std::size_t) {
        const std::uint64_t at = word::arming::address(word.load_acquire());
        if (at != 0 && space_->file_backed(tier_of(at)))
            os::advise(reinterpret_cast<void*>(at & ~(os::page_size - 1)), os::page_size,
                       os::advice::populate);
    });
}

template <class GiveUp>
home_result native_handles::come_home_unless(GiveUp give_up, std::size_t run,
                                             record* self) noexcept {
    if (blind_.load_seq_cst() != 0) return home_result::gave_up;
    read_before_stop(run);
    if (!threads_.stop(self, give_up)) return home_result::gave_up;
    std::uint64_t objects = 0;
    home_result home = home_result::no_memory;
    try {
        home = evacuator_.come_home(run, &objects);
    } catch (const std::bad_alloc&) {
    }
    threads_.go_on();
    came_home_.fetch_add_relaxed(objects);
    if (temperature_ != nullptr && objects != 0) try {
            temperature_->came_home(static_cast<std::uint32_t>(run));
        } catch (const std::bad_alloc&) { // it does not rest
        }
    return home;
}

void native_handles::keep(const void* kept) noexcept {
    if (!in_homes(kept) || !is_movable(kept)) return;
    const auto home = reinterpret_cast<std::uint64_t>(kept);
    record* const self = own_record_if_any();
    // In a handler, or called back: the interrupted code has translations, so nothing comes home under it.
    const bool may_stop = self == nullptr || self->nested == 0;
    if (in_stress(kept)) {
        if (may_stop) until_at_home_stressed(home, self, true);
        return;
    }
    const std::size_t run = (home - base_) >> heap::run_shift;
    const std::size_t granule = (beginning(home) - base_) / least_alignment;
    {
        const runtime_memory own;
        if (!kept_.commit_to(granule / 64 + 1)) return;
    }
    kept_[granule / 64].fetch_or_seq_cst(std::uint64_t{1} << (granule % 64));
    if (keeps_at(home).load_relaxed() == 0) keeps_at(home).store_seq_cst(1);
    // A run that is being opened finds the bit, or this thread finds it opened.
    if (may_stop) until_at_home(run, self);
}

// `although_pinned`: it waits until the pins end.
void native_handles::until_at_home_stressed(std::uint64_t home, record* self,
                                            bool although_pinned) noexcept {
    while (blind_.load_seq_cst() == 0) {
        {
            const work mine(*this, self);
            const home_result result = come_home_stressed(home, self);
            if (result == home_result::no_memory) tell_no_memory();
            if (result == home_result::done || result == home_result::no_memory) return;
            if (result == home_result::pinned && !although_pinned) return;
        }
        native::yield();
    }
}

void native_handles::until_at_home(std::size_t run, record* self) noexcept {
    while (away(run).load_seq_cst() == open && blind_.load_seq_cst() == 0) {
        // A tracked run is at home, and is not taken while an object in it is kept: evacuator's take(). Tables are there
        // for who is inside, or has the lock.
        const auto is_at_home = [&] {
            const table_type* const table = tables_[run].load_acquire();
            return table == nullptr || !table->is_taken();
        };
        if (self != nullptr && self->epoch.load_relaxed() != 0 && is_at_home()) return;
        {
            const work mine(*this, self);
            if (away(run).load_seq_cst() != open || is_at_home()) return;
            const home_result result = come_home(run, self);
            if (result == home_result::no_memory) tell_no_memory();
            if (result == home_result::done || result == home_result::no_memory) return;
        }
        native::yield();
    }
}

// 0: the object was freed.
std::uint64_t native_handles::now_at(std::uint64_t home, std::uint64_t* begin) noexcept {
    std::uint64_t now = 0;
    if (away_at(home).load_acquire() == open) now = homes_.translate_object(home, begin);
    if (now == 0 && !in_stress(reinterpret_cast<const void*>(home))) now = *begin = beginning(home);
    return now;
}

native_handles::pin_made native_handles::pin(const void* home, int tries) noexcept {
    record* const self = own_record_if_any();
    const auto address = reinterpret_cast<std::uint64_t>(home);
    const pin_made not_at_all{const_cast<void*>(home), nullptr};
    if (self == nullptr || !in_homes(home)) return not_at_all;
    // A pin lasts as long as a foreign call, and no run whose memory is elsewhere comes home under one. So it comes
    // home first: nothing that another thread keeps or accesses there waits for the call.
    if (stress_ != nullptr) stress(self); // a safepoint, as what follows
    if (self->nested == 0) {
        if (!in_stress(home))
            until_at_home((address - base_) >> heap::run_shift, self);
        else if (std::uint64_t begin = 0; homes_.translate_object(address, &begin) != begin &&
                                          mappings_of_a_run * stress_->at_home() < most_mappings_)
            until_at_home_stressed(address, self, false);
    }
    std::uint64_t begin = 0;
    std::uint64_t now = now_at(address, &begin);
    if (now == 0) return not_at_all;
    auto* const entry = threads_.pin(*self, now, []() -> mobility::pin_chunk<native>* {
        const os::blocked_signals no_handlers; // one could come here, too
        const runtime_memory own;
        return new (std::nothrow) mobility::pin_chunk<native>();
    });
    if (entry == nullptr) { // no memory for it
        keep(home);
        now = now_at(address, &begin);
        if (now == 0) return not_at_all;
    } else if (now != begin && tries > 0 && self->nested == 0 && !in_stress(home) &&
               blind_.load_seq_cst() == 0) {
        // A tracked run was taken since it was asked about. Without memory to come home the last try keeps the alias.
        threads_.unpin(*self, *entry);
        return pin(home, tries - 1);
    }
    return {reinterpret_cast<void*>(now + (address - begin)), entry};
}

void native_handles::unpin(const void* home) noexcept {
    record* const self = own_record_if_any();
    const auto address = reinterpret_cast<std::uint64_t>(home);
    if (self == nullptr || !in_homes(home)) return;
    // Pinned, so it is where it was.
    std::uint64_t begin = 0;
    if (const std::uint64_t now = now_at(address, &begin); now != 0) threads_.unpin(*self, now);
}

native_handles::pin_made native_handles::pin_for_foreign(const void* home) noexcept {
    const pin_made not_at_all{const_cast<void*>(home), nullptr};
    record* self = own_record_if_any();
    if (self == nullptr) {
        if (!os::can_arm_exit_hooks()) {
            keep(home); // the thread ends, and nobody would take its record back
            return not_at_all;
        }
        // Its mask is the program's: it may never run compiled code.
        self = make_record();
        if (self == nullptr) return not_at_all; // nothing moves any more
    }
    // Beyond these one more is less work than to look for it.
    constexpr std::uint32_t few_pins = 8;
    const auto address = reinterpret_cast<std::uint64_t>(home);
    if (!in_stress(home) && self->pins_held <= few_pins &&
        threads_.has_pinned(*self, beginning(address)))
        return not_at_all;
    // Foreign code may be a handler in the midst of compiled code: nothing comes home under it.
    const thread_mark before = threads_.enter(*self);
    pin_made made{nullptr, nullptr};
    // What is away does not come home while this thread has pinned it there.
    if (self->pins_held != 0 && away_at(address).load_acquire() != at_home) {
        std::uint64_t begin = 0;
        const std::uint64_t now = now_at(address, &begin);
        if (now != 0 && threads_.has_pinned(*self, now))
            made.now = reinterpret_cast<void*>(now + (address - begin));
    }
    if (made.now == nullptr) made = pin(home);
    threads_.leave(*self, before);
    return made;
}

void native_handles::unpin_for_foreign(native::atomic<std::uint64_t>& entry) noexcept {
    record* const self = own_record_if_any();
    if (self != nullptr) threads_.unpin(*self, entry); // else it has ended, and its pins with it
}

void* native_handles::keep_for_foreign(const void* home) noexcept {
    void* now = const_cast<void*>(home);
    record* const self = own_record_if_any();
    if (self == nullptr) {
        keep(home);
        return now;
    }
    const thread_mark before = threads_.enter(*self);
    keep(home);
    if (before.inside) {
        const auto address = reinterpret_cast<std::uint64_t>(home);
        std::uint64_t begin = 0;
        if (const std::uint64_t at = now_at(address, &begin); at != 0)
            now = reinterpret_cast<void*>(at + (address - begin));
    }
    threads_.leave(*self, before);
    return now;
}

bool native_handles::page_out(unsigned cls, std::uint64_t address) const noexcept {
    return temperature_->page_out(cls, address);
}
void native_handles::moved(unsigned, unsigned to, const mobility::moved_object& object) noexcept {
    if (temperature_ != nullptr) temperature_->gathered(to, object);
}

void native_handles::retired(table_type& table) noexcept {
    if (temperature_ != nullptr) temperature_->table_ends(table);
}

void native_handles::add(const round_result& result) noexcept {
    moved_.fetch_add_relaxed(result.moved);
    vetoed_.fetch_add_relaxed(result.vetoed);
    opened_.fetch_add_relaxed(result.opened);
    reopened_.fetch_add_relaxed(result.reopened);
}

std::uint64_t native_handles::move_all(record* self) noexcept {
    heap::slab_heap<native>& slabs = space_->slabs();
    std::uint64_t moved = 0;
    if (settings_.off || stress_ != nullptr || blind_.load_seq_cst() != 0 ||
        !threads_are_known(1000))
        return 0;
    try {
        std::vector<std::uint32_t> runs;
        const auto end = static_cast<std::uint32_t>(slabs.runs());
        if (!commit_tables(end)) return 0;
        const auto flush = [&] {
            const round_result result =
                evacuator_.round(runs.data(), runs.size(), self, 3, while_waiting());
            add(result);
            moved += result.moved;
            runs.clear();
        };
        for (std::uint32_t run = 0; run < end; ++run) {
            const auto* const home = reinterpret_cast<const void*>(home_of(run));
            if (away(run).load_relaxed() != at_home || slabs.is_free(run) ||
                slabs.is_current(run) || !is_movable(home))
                continue;
            runs.push_back(run);
            if (runs.size() == alias_count / 2) flush();
        }
        flush();
    } catch (const std::bad_alloc&) {
    }
    return moved;
}

std::uint64_t native_handles::bring_home(record* self) noexcept {
    const std::uint64_t before = came_home_.load_relaxed();
    try {
        std::vector<std::uint32_t> runs;
        evacuator_.for_each_taken([&](std::uint32_t run) { runs.push_back(run); });
        for (const std::uint32_t run : runs) come_home(run, self);
    } catch (const std::bad_alloc&) {
    }
    return came_home_.load_relaxed() - before;
}

const void* native_handles::home_at(const void* address) noexcept {
    const auto wanted = reinterpret_cast<std::uint64_t>(address);
    if (in_alias(wanted)) {
        const std::uint32_t of = alias_of_[(wanted - aliases_) >> heap::run_shift];
        if (of == 0 || of == lost_alias) return address;
        return reinterpret_cast<const void*>(home_of_alias(wanted));
    }
    if (!space_->contains(address)) return address;
    const unsigned cls = space_->class_of(address);
    if (cls == heap::new_class || cls >= space_->classes()) return address;
    std::uint64_t found = wanted;
    evacuator_.for_each_taken([&](std::uint32_t run) {
        tables_[run].load_acquire()->for_each([&](auto& word, std::size_t block) {
            const std::uint64_t now = word::arming::address(word.load_acquire());
            if (now == 0 || wanted < now) return;
            const std::uint64_t home = home_of(run) + block * block_size(run);
            if (wanted - now < space_->info(reinterpret_cast<const void*>(now)).size)
                found = home + (wanted - now);
        });
    });
    return reinterpret_cast<const void*>(found);
}

void native_handles::read_figures(obase_handles_figures& to) noexcept {
    to = {};
    to.moved = moved_.load_relaxed();
    to.vetoed = vetoed_.load_relaxed();
    to.opened = opened_.load_relaxed();
    to.reopened = reopened_.load_relaxed();
    to.came_home = came_home_.load_relaxed();
    to.foreign_faults = faults_.load_relaxed();
    to.collector_ns = own_ns_.load_relaxed();
    to.used_home = used_home_.load_relaxed();
    const work mine(*this, own_record_if_any());
    to.open_runs = evacuator_.taken();
    to.table_bytes = evacuator_.table_bytes();
    to.table_memory_bytes = evacuator_.table_memory_bytes();
    if (temperature_ != nullptr) temperature_->read_figures(to);
    for (unsigned cls = heap::new_class; cls < space_->classes(); ++cls) {
        const heap::space::class_counters all = space_->counters(cls);
        to.live_bytes += all.live_bytes;
        to.memory_bytes += all.extent_bytes;
    }
    if (stress_ != nullptr)
        to.live_bytes = stress_->live_bytes(); // the space has their copies only
}

} // namespace obase::handles
