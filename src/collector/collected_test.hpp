// SPDX-License-Identifier: MIT
//
// collected: the shipped collector over a world (mobility/world_test.hpp) without a runtime. The
// slots, both halves of the protocol, the heap and the window log are the library's own; the policy,
// what the collector asks its thread (control) and the objects are the test's.
//
// The heap is heap::space in both ways of running. Under the deterministic scheduler its own
// operations are one step each, and freed objects are poisoned, so that a late read shows; a copy is
// made word by word where an object's contents lie.
#pragma once

#include "backend/window_log.hpp"
#include "collector/collector.hpp"
#include "heap/space.hpp"
#include "mobility/world_test.hpp"
#include "policy/placement.hpp"
#include "telemetry/recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace obase::testing {

// The size of an object whose first words are copied one by one, each a step of the schedule.
struct size_with_head {
    std::size_t bytes;
    operator std::size_t() const noexcept { return bytes; }
};
inline void racy_copy(void* to, const void* from, size_with_head size) {
    const std::size_t head = std::min<std::size_t>(size.bytes, 64);
    testing::racy_copy(to, from, head);
    std::memcpy(static_cast<char*>(to) + head, static_cast<const char*>(from) + head,
                size.bytes - head);
}

} // namespace obase::testing

namespace obase::collector_test {

inline constexpr std::size_t kib = 1024;
using heap::run_bytes;

// heap::space in the shape of a world's heap.
template <class E>
class space_heap {
  public:
    using size_type = std::conditional_t<E::deterministic, testing::size_with_head, std::size_t>;
    struct facts {
        size_type size;
        heap::attributes attr;
    };

    space_heap() {
        heap::space_options options;
        options.range_bytes = std::size_t{16} << 20;
        options.poison_freed = true;
        std::string why;
        space_ = heap::space::create(options, &why);
        E::require(space_ != nullptr, "a heap");
    }
    ~space_heap() { heap::space::destroy(space_); }
    space_heap(const space_heap&) = delete;
    space_heap& operator=(const space_heap&) = delete;

    void* allocate(std::size_t size) {
        return beside != nullptr ? allocate_near(beside, size, expect)
                                 : space_->allocate(std::max(size, block_bytes), attr);
    }
    void free(void* p) { space_->free(p); }

    bool contains(const void* p) const noexcept { return space_->contains(p); }
    facts info(const void* p) const noexcept {
        const auto known = space_->info(p);
        return {{known.size}, known.attr};
    }
    void* allocate_dense(unsigned cls, std::size_t size, heap::attributes wanted) {
        return full || (full_tiers >> cls & 1) != 0 ? nullptr
                                                    : space_->allocate_dense(cls, size, wanted);
    }
    void undo_allocate_dense(void* p) { space_->undo_allocate_dense(p); }

    // What the collector and the window log ask besides.
    unsigned class_of(const void* p) const noexcept { return space_->class_of(p); }
    unsigned classes() const noexcept { return space_->classes(); }
    unsigned large_class() const noexcept { return space_->large_class(); }
    heap::expectation expected_of(const void* p) const noexcept { return space_->expected_of(p); }
    // In NEAR, beside `neighbour` (null: beside those that are expected to be used so).
    void* allocate_near(const void* neighbour, std::size_t size, heap::expectation wanted) {
        heap::space::neighbour found;
        return space_->allocate_placed(std::max(size, block_bytes), attr,
                                       {neighbour, nullptr, wanted}, &found);
    }
    template <class F>
    void take_births(unsigned cls, heap::birth_news what, F&& fn) {
        space_->take_births(cls, what, fn);
    }
    bool in_near(const void* p) const { return space_->class_of(p) == space_->near_class(); }
    char* range_begin(unsigned cls) const noexcept { return space_->range_begin(cls); }
    std::size_t range_bytes() const noexcept { return space_->range_bytes(); }
    auto counters(unsigned cls) const noexcept { return space_->counters(cls); }
    bool evacuating(const void* p) const noexcept { return space_->evacuating(p); }
    bool file_backed(unsigned cls) const noexcept {
        return (in_files >> cls & 1) != 0 || space_->file_backed(cls);
    }
    unsigned in_files = 0; // tiers, for what asks
    void begin_write_back() { ++written_back; }
    int written_back = 0; // times
    bool run_evacuating(unsigned cls, std::size_t run) const noexcept {
        return space_->run_evacuating(cls, run);
    }
    double live_fraction_where_born(const void* p) const noexcept {
        return space_->live_fraction_where_born(p);
    }
    std::size_t run_of(const void* p) const noexcept { return space_->run_of(p); }
    std::size_t length_of_run(unsigned cls, std::size_t run) const noexcept {
        return space_->length_of_run(cls, run);
    }
    std::size_t gap_bytes(unsigned cls) const noexcept { return space_->gap_bytes(cls); }
    void leave_gaps(unsigned cls, bool yes) noexcept { space_->leave_gaps(cls, yes); }
    std::size_t room_of_run(unsigned cls, std::size_t run) const noexcept {
        return space_->room_of_run(cls, run);
    }
    std::size_t room_where_born(std::size_t run) const noexcept {
        return space_->room_where_born(run);
    }
    std::size_t decommit_large(heap::pacer& ask) noexcept { return space_->decommit_large(ask); }
    std::size_t runs_of(unsigned cls) const noexcept { return space_->runs_of(cls); }
    std::size_t objects_in_run(unsigned cls, std::size_t run) const noexcept {
        return space_->objects_in_run(cls, run);
    }
    std::size_t bytes_in_run(unsigned cls, std::size_t run) const noexcept {
        return space_->bytes_in_run(cls, run);
    }
    template <class Wanted>
    void close_runs(unsigned cls, Wanted&& wanted) noexcept {
        space_->close_runs(cls, wanted);
    }
    bool run_closed(unsigned cls, std::size_t run) const noexcept {
        return space_->run_closed(cls, run);
    }
    std::size_t open_runs(unsigned cls, const std::uint32_t* runs, std::size_t count,
                          heap::pacer& ask) noexcept {
        return space_->open_runs(cls, runs, count, ask);
    }
    heap::evacuation_choice select_evacuation(unsigned cls, double fraction, std::size_t bytes,
                                              heap::run_filter spared,
                                              std::size_t holes_kept) noexcept {
        return space_->select_evacuation(cls, fraction, bytes, spared, holes_kept);
    }
    bool evacuating_frozen_files(unsigned cls) const noexcept {
        return space_->evacuating_frozen_files(cls);
    }
    std::size_t decommit_free_memory(heap::pacer& ask) noexcept {
        return space_->decommit_free_memory(ask);
    }
    void mark_touched(const void* p, std::size_t size) noexcept { space_->mark_touched(p, size); }
    void clear_touched() noexcept { space_->clear_touched(); }
    auto touched_in(unsigned cls) const noexcept { return space_->touched_in(cls); }
    template <class F>
    void for_each_touched_run(unsigned cls, F&& fn) const {
        space_->for_each_touched_run(cls, fn);
    }
    template <class F>
    void for_each_touched_page(unsigned cls, F&& fn) const {
        space_->for_each_touched_page(cls, fn);
    }
    template <class F>
    void for_each_extent(unsigned cls, F&& fn) const {
        space_->for_each_extent(cls, fn);
    }
    template <class F>
    void for_each_backing(unsigned cls, F&& fn) const {
        space_->for_each_backing(cls, fn);
    }
    bool validate(std::string* what) const { return space_->validate(what); }

    // Of the world.
    std::uintptr_t begin() const noexcept {
        return reinterpret_cast<std::uintptr_t>(space_->range_begin(0));
    }
    std::uintptr_t end() const noexcept {
        return begin() + (space_->classes() + 2) * space_->range_bytes();
    }
    const void* beside = nullptr; // objects are born beside this one
    heap::expectation expect = heap::expectation::nothing;
    std::size_t object_bytes = 0;
    std::size_t block_bytes = 0; // objects are at least so large
    heap::attributes attr;
    bool full = false;
    unsigned full_tiers = 0;

  private:
    heap::space* space_ = nullptr;
};

struct scheduled : mobility::in_schedule<testing::deterministic_platform> {
    using heap = space_heap<testing::threads_for<testing::deterministic_platform>>;
};
struct on_threads : mobility::on_threads<os::native_platform> {
    using heap = space_heap<testing::threads_for<os::native_platform>>;
};

inline constexpr policy::tier_id tier_new = 0, tier_hot = 1, tier_cold = 2, tier_large = 3;

// Touched: to HOT. Idle for so many windows: to COLD. Each slot's state counts the windows in which
// it was judged, up to 15.
class script final : public policy::placement {
  public:
    static constexpr policy::tier rows[] = {
        {.name = "new"},
        {.name = "hot", .promoted_to = true, .reclaimable = true},
        {.name = "cold", .reclaimable = true, .lazy = true}};
    static constexpr policy::tier_table table{rows};
    static_assert(table.valid());

    const policy::tier_table& tiers() const noexcept override { return table; }
    unsigned state_bits() const noexcept override { return 4; }
    void begin_window(const policy::window_beginning& now) noexcept override { beginning = now; }
    void decide(policy::word_facts& word, policy::word_verdict& verdict) noexcept override {
        ++words;
        bases.insert(word.base);
        judged_again += word.again;
        for (std::uint64_t left = word.seen; left != 0; left &= left - 1) {
            const auto slot = static_cast<unsigned>(std::countr_zero(left));
            const std::uint64_t bit = left & -left;
            began += word.state[slot] == 0;
            oldest_state = std::max<unsigned>(oldest_state, word.state[slot]);
            word.state[slot] =
                static_cast<std::uint16_t>(std::min<unsigned>(word.state[slot] + 1u, 15));
            const bool touched = (word.touched & bit) != 0;
            const bool idle =
                !touched && (word.newborn & bit) == 0 && word.idle[slot] >= cold_after;
            const policy::tier_id target =
                touched || word.about->never_cold(slot) ? tier_hot : tier_cold;
            if ((word.unmoved & bit) != 0)
                verdict.to[slot] = static_cast<std::uint8_t>(idle ? tier_cold : tier_hot);
            else if ((touched || idle) && word.tier[slot] != target)
                verdict.send(slot, target);
        }
    }
    policy::directives end_of_window(const policy::window_facts&) noexcept override { return {}; }
    double compacted_below(double asked) const noexcept override {
        return std::max(asked, least_live);
    }
    bool leaves(policy::tier_id id, const policy::place& piece) const noexcept override {
        return ((id == tier_cold && cold_leaves) || (id == tier_hot && hot_leaves)) &&
               piece.idle_windows >= 1;
    }

    unsigned cold_after = 1;
    double least_live = 0;
    bool hot_leaves = false, cold_leaves = true; // memory, when it is idle
    std::uint64_t words = 0, judged_again = 0, began = 0;
    unsigned oldest_state = 0;
    std::set<std::uintptr_t> bases; // of the words
    policy::window_beginning beginning;
};

// Says stop from the n-th question on, and lets a test act where the collector asks.
class scripted_control final : public collector::control {
  public:
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    bool stop_requested() noexcept override { return ++asked >= stop_at; }
    void checkpoint() noexcept override {
        ++checkpoints;
        if (at_checkpoint) at_checkpoint();
    }
    void throttle() noexcept override {
        ++throttles;
        if (at_throttle) at_throttle();
    }
    void call_begins() noexcept override { ++calls_open; }
    void call_ends() noexcept override { --calls_open; }
    void wait_begins() noexcept override { ++waits; }
    bool give_up(std::uint32_t, std::uint64_t) noexcept override { return ++held >= patience; }

    std::uint64_t asked = 0, stop_at = never;
    std::uint64_t held = 0,
                  patience = never; // questions about scopes that keep the collector waiting
    std::uint64_t checkpoints = 0, throttles = 0, waits = 0;
    int calls_open = 0;
    std::function<void()> at_checkpoint, at_throttle;
};

template <class E, template <class> class Protocol>
class collected : public mobility::exclusive_world<E, Protocol> {
  public:
    using base = mobility::exclusive_world<E, Protocol>;
    using typename base::object;
    using typename base::scope;
    using typename base::slot;
    using typename base::user;
    using object_collector = collector::collector<typename Protocol<E>::mover_type>;

    // `count` guides, each to an object of `bytes`. The thread that calls this is `main`.
    explicit collected(std::size_t count, std::size_t bytes = kib)
        : main(this->attach()), guides(std::make_unique<slot[]>(count)), count_(count),
          version(count, 0) {
        this->heap.block_bytes = bytes;
        for (std::size_t i = 0; i < count; ++i) this->give(main, guides[i], this->make(i, 0));
        plan.move = true;
        plan.evacuate = true;
        plan.live_fraction = 0.5;
        plan.in_flight = 0;
        plan.least_in_flight = 2 * run_bytes;
    }

    // False: stopped half-way, or without memory.
    bool window() {
        bool complete = false;
        try {
            complete = gc.scan_and_move(plan, nullptr, control);
        } catch (const std::bad_alloc&) { // as the engine does it
            gc.abandon();
        }
        log.end_window(this->heap);
        log.view(this->heap, policy, view);
        log.clear();
        return complete;
    }

    // A use of the guide's object, in a scope; a write unless `reads`.
    void use(user& u, std::size_t i, bool reads = false) {
        const scope in(*this, u);
        use_in_scope(u, i, reads);
    }
    void use_in_scope(user& u, std::size_t i, bool reads = false) {
        object* const o = this->dereference(u, guides[i]);
        this->verify(o, i, version[i]);
        if (!reads) this->update(o, i, ++version[i]);
    }
    // Of the guide's object, without a touch. No threads.
    object* peek(std::size_t i) {
        return base::to_object(base::protocol::layout::address(guides[i].load_relaxed()));
    }
    unsigned tier_of(std::size_t i) { return this->heap.class_of(peek(i)); }
    std::size_t in_tier(unsigned tier) {
        std::size_t found = 0;
        for (std::size_t i = 0; i < count_; ++i) found += tier_of(i) == tier;
        return found;
    }
    auto moved() { return recorder.live.moved_objects.get(); }
    // Slots judged in the window that `window` is.
    template <class Window>
    std::uint64_t visited_in(Window&& run) {
        const auto before = recorder.live.scanned_guides.get();
        run();
        return recorder.live.scanned_guides.get() - before;
    }

    // What holds between two windows, however the last one ended. No threads.
    void check() {
        E::require(this->mover.candidates().empty(), "R6: no candidate survives its window");
        E::require(control.calls_open == 0, "each call that began has ended");
        if constexpr (requires { this->state.phase; }) {
            const auto phase = this->state.phase.load_relaxed();
            E::require(phase != mobility::atc_phase::prepare &&
                           phase != mobility::atc_phase::active,
                       "scopes need not count between two rounds");
        }
        for (unsigned tier = 0; tier < this->heap.classes(); ++tier)
            for (std::size_t run = 0; run < this->heap.runs_of(tier); ++run)
                E::require(!this->heap.run_closed(tier, run) || tier != tier_new,
                           "no run stays closed");
        std::string what;
        E::require(this->heap.validate(&what), "the heap is as it should be");
        for (std::size_t i = 0; i < count_; ++i)
            if (peek(i) != nullptr) this->verify(peek(i), i, version[i]);
    }
    std::size_t count() const { return count_; }

    user& main;
    std::unique_ptr<slot[]> guides;

  private:
    std::size_t count_;

  public:
    std::vector<std::uint64_t> version;
    script policy;
    // `other` is in a scope from now on, and leaves it when the collector waits for it, just before a stop.
    template <class User>
    void stop_while_it_waits_for(User& other) {
        control.at_checkpoint = [this, &other, outer = this->enter(other), open = true]() mutable {
            if (control.waits == 0 || !open) return;
            this->leave(other, outer);
            open = false;
            control.stop_at = control.asked + 2; // the wait's own question is answered with no
        };
    }

    scripted_control control;
    telemetry::recorder recorder{8, "test"};
    backend::window_log log{script::table};
    backend::window_view view;
    collector::window_plan plan;
    object_collector gc{this->registry, this->slots, this->heap, this->mover,
                        policy,         recorder,    log};
};

// The protocols, as types for the lists of typed tests.
struct arming_kind {
    template <class E>
    using protocol = mobility::arming_protocol<E>;
};
struct atc_kind {
    template <class E>
    using protocol = mobility::atc_protocol<E>;
};

} // namespace obase::collector_test
