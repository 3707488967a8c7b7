// SPDX-License-Identifier: MIT
//
// The Object Collector (OBASE 3.1): one window after another, it scans the slots, lets the policy
// decide, moves what has to move, and tells telemetry and the kernel about it.
//
// The only place that knows all of slots, heap, mover, policy, telemetry and backend. Templated on
// the protocol's mover, which has the same face for arming and for ATC, and which says what the
// heap and the platform are: heap::space and the machine, or a test's.
//
// A window, in order:
//   1. choose sparse runs for evacuation;
//   2. scan every slot outside of lazy tiers, and in those only the runs whose objects were touched or
//      that may still wait for a child (R16); the policy is asked once per SODA word, and candidates
//      go to the mover, which settles and moves them in batches. Few bytes leave a tier in this way, as
//      many as may be resident twice; the rest is only counted. At the end of the scan what is in use
//      again where memory is paged out follows, as far as that stays out, and what leaves LARGE, whose
//      memory goes back batch by batch;
//   3. empty the tiers run by run (evacuation.hpp): find the slots of the chosen runs by another
//      scan, move what leaves and what stays out of as many runs as the same bound allows, return
//      their memory, go on with the next;
//   4. try the vetoed again, in small batches;
//   5. settle once more for empty SODA leaves, return free memory;
//   6. policy, statistics, backend.
//
// An early window, for which threads wait, is one like others, and a number of its own. Only it goes on to 4 when
// 3 has returned the memory that is wanted, and the policy is told ages that leave it out.
//
// Threads: the collector thread only (R13). Between small steps it asks its `control` whether to
// stop, whether a fork wants it parked, and whether it has used up its share of the processor. It
// holds no hazard and has no half-published object when it asks.
#pragma once

#include "backend/window_log.hpp"
#include "collector/allowance.hpp"
#include "collector/evacuation.hpp"
#include "collector/window_ages.hpp"
#include "heap/space.hpp"
#include "mobility/arming_mover.hpp"
#include "os/platform.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"
#include "policy/lot.hpp"
#include "policy/placement.hpp"
#include "soda/directory.hpp"
#include "soda/slot_states.hpp"
#include "telemetry/recorder.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace obase::collector {

// The collector's questions between two steps. Implemented by the runtime's collector thread.
class control {
  public:
    virtual ~control() = default;
    virtual bool stop_requested() noexcept = 0;
    virtual void checkpoint() noexcept = 0; // parks here while a fork is under way
    virtual void throttle() noexcept = 0;   // sleeps off what exceeds the processor share
    // Around a system call that a fork need not wait for.
    virtual void call_begins() noexcept = 0;
    virtual void call_ends() noexcept = 0;
    virtual void wait_begins() noexcept = 0;
    // Frees what is retired, as far as no scope holds it: nobody can move it, and one such object keeps the
    // memory of its run.
    virtual void reclaim() noexcept {}
    // An object has moved that has slots in it.
    virtual void slots_moved(const mobility::moved_object&) noexcept {}
    // A scope keeps the collector waiting. True: give this round of moves up.
    virtual bool give_up(std::uint32_t thread_id, std::uint64_t epoch) noexcept = 0;
};

// The heaps ask the same of it while they return memory.
class between_pieces final : public heap::pacer {
  public:
    explicit between_pieces(control& asked) noexcept : control_(asked) {}
    void call_begins() noexcept override { control_.call_begins(); }
    void call_ends() noexcept override { control_.call_ends(); }
    bool may_continue() noexcept override {
        control_.checkpoint();
        control_.throttle();
        return !control_.stop_requested();
    }

  private:
    control& control_;
};

struct window_plan {
    bool move = false;        // false: observe only
    bool evacuate = false;    // compaction of sparse runs
    double live_fraction = 0; // below this a run is sparse
    double in_flight = 0.02;  // share of what is resident that moving may keep twice
    std::size_t least_in_flight = std::size_t{1} << 20; // bytes; however little is resident
    std::size_t least_holes = std::size_t{1} << 20; // bytes that dense tiers may have in any case
    // Bytes by which memory may grow that the kernel cannot drop.
    std::uint64_t may_grow = UINT64_MAX;
    // Bytes that moving may take there from a tier in a file, whose pages the kernel can drop.
    std::uint64_t may_return = UINT64_MAX;
    // Bytes that moving may write into tiers in a file.
    std::uint64_t may_write = UINT64_MAX;
    // For the policy (policy/placement.hpp). An early window ends when runs have given back what is wanted.
    bool early = false;
    std::uint64_t wanted_bytes = 0;
};

template <class Mover>
class collector final : private policy::objects {
  public:
    using platform = typename Mover::platform;
    using heap_type = typename Mover::heap_type;
    using slots = soda::directory<platform>;
    using registry = mobility::scope_registry<platform>;
    using record = mobility::thread_record<platform>;
    using slot_atomic = typename Mover::slot_atomic;
    using candidate = typename Mover::candidate;

    collector(registry& threads, slots& directory, heap_type& space, Mover& mover,
              policy::placement& placement, telemetry::recorder& recorder, backend::window_log& log)
        : threads_(threads), slots_(directory), space_(space), mover_(mover), placement_(placement),
          tiers_(placement.tiers()), promoted_to_(tiers_.with(&policy::tier::promoted_to)),
          lazy_(tiers_.with(&policy::tier::lazy)), states_(placement.state_bits()),
          recorder_(recorder), log_(log) {
        word_.about = this;
    }

    // One window up to the point where the policy has its facts. False if it was stopped half-way.
    bool scan_and_move(const window_plan& plan, const record* self, control& control);

    // After scan_and_move() ended by std::bad_alloc. It throws outside of visits and moves only, so
    // no hazard is held and no object is half moved; what is left to do is what a stop leaves.
    void abandon() noexcept {
        mover_.finish();
        slots_.cancel_retire();
        vetoed_.clear();
        late_.clear();
        leaving_large_.clear();
        large_queued_ = 0;
        scanning_lazy_ = false;
        abandoned_ = true;
        phase_ = phase::scan;
        heap::pacer never_stops;
        open_closed_runs(never_stops);
        for (auto& tier : evacuation_) tier.end();
    }

    std::uint64_t window() const noexcept { return window_; }
    bool abandoned() const noexcept { return abandoned_; }
    // Bytes moved in the last window, [from][to].
    const auto& moved_bytes() const noexcept { return moved_bytes_; }
    // That should have left a tier in a file in the last window, and found no room (window_plan::may_return).
    std::uint64_t refused_bytes() const noexcept { return growth_.refused(); }

  private:
    static constexpr std::size_t batch_candidates = std::size_t{1} << 15;
    // Of slots that are scanned. After a step a full batch is moved; after `asked_bytes` the scan may pause; after
    // `trimmed_bytes`, a page of states, these give back what they have for growing.
    static constexpr std::uintptr_t step_bytes = std::uintptr_t{1} << 13;
    static constexpr std::uintptr_t asked_bytes = std::uintptr_t{1} << 15;
    static constexpr std::uintptr_t trimmed_bytes = std::uintptr_t{1} << 18;
    // Slots of a step, or to the least objects of a run.
    static constexpr std::size_t most_found_at_once = heap::run_bytes / 8;
    static constexpr std::size_t retry_batch = 512;
    static constexpr std::size_t least_retry_batch = 8;
    static constexpr unsigned retry_rounds = 3;
    static constexpr std::size_t retry_worth = 4;  // one of so many must move for another batch
    static constexpr unsigned retry_patience = 32; // least batches in a row that were not worth it
    static constexpr unsigned asks_before_nap = 100;
    static constexpr std::uint64_t nap_ns = 20'000;
    static constexpr std::size_t retry_limit = std::size_t{1} << 15; // beyond: the next window
    static constexpr std::size_t evacuation_bytes = std::size_t{256} << 20; // per class and window
    // Holes that runs above live_fraction may have together: a share of the tier's live bytes that are in
    // memory, and some more. They are memory like any other: without this bound a tier that objects leave
    // one by one would grow to live bytes / live_fraction.
    static constexpr double holes_kept_share = 0.02;
    // The same of NEW, whose free places threads use again: so more of them may be kept, since much of what is
    // compacted is filled by the next objects. What is denser than this is left as it is.
    static constexpr double places_kept_share = 0.02;
    static constexpr double full_enough = 0.94;
    // Objects leave runs that are not emptied until all dense tiers have holes of such a share of their live
    // bytes, of those that are in memory. The rest waits until some are compacted, or until a run is worth emptying.
    static constexpr double most_holes_share = 0.03;
    // In each window, whatever holes there are.
    static constexpr double least_room_share = 0.001;
    static constexpr std::size_t moves_per_checkpoint = 64;
    static constexpr std::uint64_t bytes_per_checkpoint = std::uint64_t{1} << 20;
    static constexpr std::size_t late_per_checkpoint = 1024;
    static constexpr unsigned evacuation_rounds = 6;
    static constexpr std::size_t most_list_scans = 8;
    static constexpr std::size_t prefetch_distance = 6;

    struct range {
        std::uintptr_t begin;
        std::uintptr_t end;
        bool contains(std::uintptr_t a) const noexcept { return a >= begin && a < end; }
    };

    static std::uintptr_t address_of(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    static const void* pointer_to(std::uintptr_t a) noexcept {
        return reinterpret_cast<const void*>(a);
    }

    range range_of(unsigned cls) const noexcept {
        const std::uintptr_t begin = address_of(space_.range_begin(cls));
        return {begin, begin + space_.range_bytes()};
    }

    // What an early window is for has been had.
    bool enough_returned() const noexcept {
        return plan_.early && returned_early_ >= plan_.wanted_bytes;
    }
    static std::uintptr_t run_of(std::uintptr_t address) noexcept {
        return address & ~std::uintptr_t{heap::run_bytes - 1};
    }

    static std::size_t share_of(std::size_t bytes, double share) noexcept {
        return static_cast<std::size_t>(share * static_cast<double>(bytes));
    }

    static double seconds_now() noexcept { return static_cast<double>(os::monotonic_ns()) * 1e-9; }

    // Holes in NEW count against the peak of a load that is sorted; those in dense tiers are left to
    // compaction.
    double least_gain(unsigned cls) const noexcept {
        return cls == policy::first_tier ? 1. / 32 : 1 - plan_.live_fraction;
    }
    void choose_sparse_runs(const policy::window_beginning& now) noexcept;
    void choose_sparse_runs_where_born() noexcept;
    bool sparse_where_born(std::size_t run) const noexcept {
        const std::size_t room = space_.room_where_born(run);
        return static_cast<double>(space_.bytes_in_run(policy::first_tier, run)) <
               sparse_where_born_ * static_cast<double>(room);
    }
    void note_births();
    void begin_evacuation();
    bool scan_outside_lazy(control& control);
    void limit_leaving();
    void count_staying(std::uint64_t bits) noexcept;
    void note_leaver(unsigned bit);
    bool empty_chosen_runs(control& control);
    bool choose_runs() noexcept;
    std::uint64_t left_new() const noexcept {
        std::uint64_t bytes = 0;
        for (policy::tier_id to = policy::first_tier + 1; to < tiers_.count(); ++to)
            bytes += moved_bytes_[policy::first_tier][to];
        return bytes;
    }
    bool new_stays_behind() const noexcept;
    bool empty_tier(control& control);
    // As window_log::run_out(), of a run of any length. What lies in a file the kernel may have dropped unasked.
    bool run_out(policy::tier_id id, std::size_t run) const noexcept {
        const std::size_t length = space_.length_of_run(id, run);
        std::size_t out = 0;
        for (std::size_t i = 0; i < length; ++i) out += log_.run_out(id, run + i);
        if (2 * out >= length && out != 0) return true;
        const std::size_t bytes = length * heap::run_bytes;
        return (in_files_ >> id & 1) != 0 &&
               2 * os::resident_in(space_.range_begin(id) + run * heap::run_bytes, bytes) < bytes;
    }
    bool in_tier(std::uintptr_t address) const noexcept {
        return range_of(tier_).contains(address);
    }
    void close_runs(std::size_t first, std::size_t last) noexcept;
    bool find_slots(control& control);
    bool empty_runs(std::size_t first, std::size_t last, control& control);
    void open_runs(std::size_t first, std::size_t last, heap::pacer& ask);
    void open_closed_runs(heap::pacer& ask) noexcept;
    void list_slot(slot_atomic& slot) noexcept;
    template <class Use>
    void with_run_of(const slot_atomic& slot, Use&& use) noexcept;
    void relocate_listed(const mobility::moved_object& moved);
    void visit_again(slot_atomic& slot);
    bool scan_leaf(typename slots::leaf& leaf, std::uintptr_t begin, std::uintptr_t end,
                   control& control);
    bool scan_eager(typename slots::leaf& leaf, control& control);
    bool scan_lazy(control& control);
    bool scan_lazy_range(std::uintptr_t begin, std::uintptr_t end, control& control);
    bool lies_in(const void* address, policy::tier_mask tiers) const noexcept {
        return space_.contains(address) && (tiers >> space_.class_of(address) & 1) != 0;
    }
    void visit_slots(std::uintptr_t base, std::uint64_t bits);
    struct visit_masks { // of word_facts, and resettled_
        std::uint64_t seen = 0, touched = 0, newborn = 0, movable = 0, resettled = 0;
        policy::tier_mask tiers = 0;
        unsigned oldest = 0, foreign = 0;
    };
    void visit_slot(unsigned bit, visit_masks& all);
    void note_expectation(unsigned bit) noexcept;
    void judge_word();
    void judge_again();
    void decide_with_states();
    void mark_touched();
    void look_for_pending();
    void queue_moves();
    bool leaves_file(policy::tier_id from, policy::tier_id to) const noexcept;
    // COLD's, in whose file little may be written. HOT's may be one that is made for it.
    bool enters_file(policy::tier_id to) const noexcept {
        return ((in_files_ & ~promoted_to_) >> to & 1) != 0;
    }
    bool leaves_hole(policy::tier_id from, policy::tier_id to, const void* object) const noexcept;
    bool plan_move(unsigned bit, policy::tier_id target) noexcept;
    bool fits(unsigned bit, policy::tier_id target) const noexcept;
    bool queue_hole(unsigned bit) noexcept;
    void take_allowances(policy::tier_id from, policy::tier_id to,
                         const mobility::moved_object& moved) noexcept;
    void leave_if_room(unsigned bit) noexcept;
    void postpone(unsigned bit, bool may_be_late);
    bool move_late(control& control);
    bool move_large(control& control);
    template <class SlotOf, class Wanted>
    bool move_set_aside(std::size_t count, SlotOf&& slot_of, Wanted&& wanted, control& control);
    unsigned lowest_seen() const noexcept {
        return static_cast<unsigned>(std::countr_zero(word_.seen));
    }
    // False: as much as may be resident twice is to leave LARGE already.
    bool fits_from_large(unsigned bit) const noexcept {
        return (in_large_ >> bit & 1) == 0 || large_queued_ == 0 ||
               large_queued_ + size(bit) <= in_flight_ / 2;
    }
    void rescan(std::uintptr_t begin, std::uintptr_t end) {
        for (std::uintptr_t run = run_of(begin); run < end; run += heap::run_bytes)
            runs_to_rescan_.insert(run);
    }
    void note_large();
    void note_left_in_large();
    // 0 if it is not in LARGE or NEAR, or not there any more.
    std::size_t bytes_in_large(const void* object) const noexcept {
        const bool there =
            space_.contains(object) && space_.class_of(object) >= space_.large_class();
        return there ? std::size_t{space_.info(object).size} : 0;
    }
    // Where the policy and the statistics have it.
    policy::tier_id tier_of(const void* object) const noexcept {
        const unsigned cls = space_.class_of(object);
        return cls >= space_.large_class() ? policy::first_tier : cls;
    }
    slot_atomic& slot_at(unsigned bit) const noexcept {
        return *reinterpret_cast<slot_atomic*>(word_base_ + 8u * bit);
    }
    const void* object_at(unsigned bit) const noexcept { return pointer_to(seen_[bit].address); }

    // policy::objects, of the word being judged
    bool never_cold(unsigned bit) const noexcept override {
        return space_.info(object_at(bit)).attr.never_cold;
    }
    std::size_t size(unsigned bit) const noexcept override {
        return space_.info(object_at(bit)).size;
    }
    double live_fraction_of_run(unsigned bit) const noexcept override {
        return phase_ == phase::empty ? live_when_chosen_
                                      : space_.live_fraction_where_born(object_at(bit));
    }
    bool out(unsigned bit) const noexcept override {
        const policy::tier_id id = word_.tier[bit];
        if (id == policy::first_tier) return false;
        const std::uintptr_t offset = seen_[bit].address - address_of(space_.range_begin(id));
        return log_.page_out(id, offset / backend::page_ages::page_bytes);
    }

    bool batch_is_full() noexcept {
        return mover_.candidates().size() >= batch_candidates || hot_queued_ >= hot_batch_;
    }
    bool flush(control& control);
    void adapt_hot_batch(double waited, double moving) noexcept;
    bool wait_for_grace_period(control& control);
    void sort_batch();
    bool may_pause_at(const candidate& c) const noexcept;
    double move_batch(control& control);
    void retry(control& control);
    void count(const candidate& c, mobility::move_result result,
               const mobility::moved_object& moved);

    registry& threads_;
    slots& slots_;
    heap_type& space_;
    Mover& mover_;
    policy::placement& placement_;
    const policy::tier_table& tiers_;
    const policy::tier_mask promoted_to_, lazy_;
    soda::slot_states states_;
    std::uintptr_t swept_ = 0; // of the states: words before it, in this step, are as the slots are
    telemetry::recorder& recorder_;
    backend::window_log& log_;

    std::uint64_t window_ = 0;
    window_ages ages_;
    window_plan plan_;
    const record* self_ = nullptr;
    bool abandoned_ = false; // a wait was given up in this window: no more moves
    bool scanning_lazy_ = false;
    bool pending_found_ = false; // the slots just visited have an object that may become lazy yet
    policy::tier_mask in_files_ = 0; // tiers that lie in a file
    allowance holes_;                // that objects leave behind, in dense tiers
    allowance growth_, writes_;      // out of the tiers in files, and into them
    // Bytes moved into files, that the kernel was not told to write yet. While memory is wanted they must not become
    // many: pages that are not written cannot be dropped, and at the limit of a control group without swap the
    // process is killed for them.
    static constexpr std::uint64_t unwritten_at_once = 1 << 20;
    std::uint64_t unwritten_ = 0;
    std::size_t holes_out_ = 0; // bytes of holes where runs are out
    // The word being visited or judged.
    std::uintptr_t word_base_ = 0;
    unsigned visited_ = 0, foreign_here_ = 0; // slots of it
    std::uint64_t in_large_ = 0;  // part of word_.seen: in LARGE or NEAR, and may leave it
    std::uint64_t resettled_ = 0; // likewise: objects that came from another slot
    policy::word_facts word_;
    policy::word_verdict verdict_;
    std::array<mobility::observation, 64> seen_;
    std::vector<slot_atomic*> vetoed_;
    std::vector<slot_atomic*> late_; // see postpone()
    struct large_leaver {
        slot_atomic* slot;
        std::uintptr_t object; // where it was
        policy::tier_id target;
        unsigned idle; // windows
        bool newborn;
    };
    std::vector<large_leaver> leaving_large_; // see move_large()
    bool late_newborn_ = false;    // the one that is judged again was newborn in the scan
    std::size_t large_queued_ = 0; // bytes
    // An object on its way to a tier with the role promoted_to (HOT) is in use, and a touch between its
    // arming and its publish keeps it where it is. So few of them are queued at a time, while idle
    // ones share a wait in great numbers. How few: see adapt_hot_batch().
    std::size_t hot_batch_ = Mover::least_hot_batch;
    std::size_t hot_queued_ = 0;
    std::uint64_t moved_ = 0; // in this window
    enum class phase : std::uint8_t { scan, late, list, empty, retry };
    phase phase_ = phase::scan;
    evacuation<slot_atomic*> evacuation_[heap::max_classes];
    unsigned tier_ = policy::first_tier; // that is being emptied
    std::size_t in_flight_ = 0;          // bytes that may be resident twice
    double sparse_where_born_ = 0;       // share of a run of NEW; what is sparser is compacted
    std::size_t leaves_at_once_ = 0;     // what may still leave a tier in the scan
    std::uint64_t returned_early_ = 0;
    std::uint64_t new_before_ = 0;      // extent bytes of NEW when it began to be emptied
    std::uint64_t left_new_before_ = 0; // bytes that had left NEW by then
    double live_when_chosen_ = 0;       // share of the run that is being emptied
    bool whole_ = false;                // what stays in it moves, too
    bool worth_emptying_ = false; // what leaves it may make holes: they are closed now, or soon
    bool judged_in_turn_ = false; // this is a later round
    bool born_since_ = false;     // a newborn object was seen in it
    std::vector<std::uint32_t> to_open_;
    std::array<std::array<std::uint64_t, policy::max_tiers>, policy::max_tiers> moved_bytes_{};
    // Runs of lazy tiers that may hold slots of objects that are in no lazy tier yet: they are visited
    // even though their parents are untouched, until a visit finds nothing left to bring after them.
    std::set<std::uintptr_t> runs_to_rescan_;
    std::set<std::uintptr_t> visited_lazy_; // runs of lazy tiers that this window looked into
    std::uint32_t evacuation_for_ = 0; // windows in a row in which a frozen file had to be emptied
    std::vector<const slot_atomic*> left_; // slots in lazy tiers whose objects left them now

    // Counted here, added to the recorder once per step.
    std::uint64_t scanned_ = 0, touched_ = 0, armed_ = 0, foreign_ = 0, held_ = 0;
    std::uint64_t would_move_ = 0, would_move_bytes_ = 0;
};

template <class Mover>
bool collector<Mover>::scan_and_move(const window_plan& plan, const record* self,
                                     control& control) {
    ++window_;
    ages_.begin_window(plan.early);
    plan_ = plan;
    if (plan.evacuate) plan_.live_fraction = placement_.compacted_below(plan.live_fraction);
    self_ = self;
    abandoned_ = false;
    scanned_ = touched_ = armed_ = foreign_ = held_ = would_move_ = would_move_bytes_ = 0;
    moved_bytes_ = {};
    policy::window_beginning beginning;
    beginning.moves = plan.move;
    beginning.early = plan.early;
    beginning.wanted_bytes = plan.wanted_bytes;
    for (policy::tier_id id = 0; id < tiers_.count(); ++id)
        beginning.live_bytes[id] = space_.counters(id).live_bytes;
    placement_.begin_window(beginning);
    mover_.forget(); // R6
    vetoed_.clear();
    late_.clear();
    leaving_large_.clear();
    visited_lazy_.clear();
    hot_queued_ = large_queued_ = 0;
    moved_ = 0;
    // A visit allocates nothing: room for what can be added to a list before it is asked whether it is full.
    if (!mover_.reserve(batch_candidates + most_found_at_once)) plan_.move = false;
    slots_.refresh();
    space_.clear_touched();
    in_files_ = 0;
    growth_.begin(plan_.may_return);
    writes_.begin(plan_.may_write);
    judged_in_turn_ = false;
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id) {
        in_files_ |= policy::tier_mask{space_.file_backed(id)} << id;
        space_.leave_gaps(id, log_.mostly_out(space_, id));
    }
    note_births();
    choose_sparse_runs(beginning);
    begin_evacuation();
    bool leaves_marked = false;
    bool complete = scan_outside_lazy(control) && scan_lazy(control);
    if (plan.move && complete) {
        flush(control);
        complete = move_late(control) && move_large(control) && empty_chosen_runs(control);
        phase_ = phase::retry;
        judged_in_turn_ = false;
        if (complete) retry(control);
        note_left_in_large();
    }
    phase_ = phase::scan;
    for (auto& tier : evacuation_) tier.end();
    mover_.finish();
    // A parent may have to stay in a lazy tier (a pin, no room, a veto) when its child leaves. Its run is
    // visited from now on until the child is back, touched or not.
    for (const slot_atomic* slot : left_)
        if (slots_.test(slot)) runs_to_rescan_.insert(run_of(address_of(slot)));
    left_.clear();

    // The last wait of the window: leaves that are empty now can go, and so can what the window
    // before unlinked.
    if (complete && !control.stop_requested()) {
        for (auto* leaf : slots_.leaves())
            if (slots_.looks_empty(*leaf)) {
                slots_.begin_retire(*leaf);
                leaves_marked = true;
            }
        if (leaves_marked || slots_.has_unlinked()) {
            if (wait_for_grace_period(control)) {
                slots_.finish_retire();
                states_.drop_if([this](std::uintptr_t at) {
                    return slots_.leaf_of(pointer_to(at)) == nullptr;
                });
            } else {
                slots_.cancel_retire();
            }
            mover_.finish();
        }
    }
    if (complete && plan_.move) control.reclaim();
    auto& live = recorder_.live;
    between_pieces ask(control);
    live.decommitted_bytes.add(returned_early_ + space_.decommit_free_memory(ask));
    live.scanned_guides.add(scanned_);
    live.touched_guides.add(touched_);
    live.armed_guides.add(armed_);
    live.deferred_promotions.add(held_);
    live.foreign_objects.set(foreign_);
    live.would_move_objects.set(would_move_);
    live.would_move_bytes.set(would_move_bytes_);
    live.soda_leaves.set(slots_.leaves().size());
    live.soda_bytes.set(slots_.bytes());
    live.slot_state_bytes.set(states_.bits() != 0 ? states_.memory_bytes() : 0);
    return complete;
}

// What was born in tiers behind the first, since the last window: it was written, as by the mover, and slots in it have not
// been visited, wherever they lie.
template <class Mover>
void collector<Mover>::note_births() {
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id)
        space_.take_births(id, heap::birth_news::window, [&](char* begin, char* end) {
            log_.note_filled(id, begin, static_cast<std::size_t>(end - begin));
            if ((lazy_ >> id & 1) != 0) rescan(address_of(begin), address_of(end));
        });
}

// Sparse runs are compacted in this window; what the holes of the others leave of their bound, objects that
// leave runs one by one may add.
template <class Mover>
void collector<Mover>::choose_sparse_runs(const policy::window_beginning& now) noexcept {
    bool frozen = false;
    std::size_t holes = 0, in_memory = 0;
    holes_out_ = 0;
    const std::size_t least_kept =
        plan_.least_holes / 2 / std::max<std::size_t>(tiers_.count() - std::size_t{1}, 1);
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id) {
        if (!plan_.move || !plan_.evacuate) break;
        // To compact what is out would read it back.
        const auto is_out = [this, id](std::size_t run) { return run_out(id, run); };
        const std::size_t live = now.live_bytes[id] + space_.gap_bytes(id); // out are whole pages
        const std::size_t here = live - std::min(live, log_.out_bytes(id));
        const heap::evacuation_choice choice = space_.select_evacuation(
            id, plan_.live_fraction, evacuation_bytes, heap::run_filter(is_out),
            share_of(here, holes_kept_share) + least_kept);
        holes += choice.hole_bytes;
        holes_out_ += choice.spared_hole_bytes;
        in_memory += here;
        frozen = frozen || space_.evacuating_frozen_files(id);
    }
    evacuation_for_ = frozen ? evacuation_for_ + 1 : 0;
    // More than what compaction leaves. And something in any case: there may be holes that it cannot close.
    const std::size_t most_holes = share_of(in_memory, most_holes_share) + plan_.least_holes;
    const std::size_t least_room = share_of(in_memory, least_room_share) + plan_.least_holes / 8;
    const std::size_t room = std::max(most_holes - std::min(most_holes, holes), least_room);
    // Without compaction nothing would close them.
    holes_.begin(plan_.evacuate ? room : allowance::unlimited);
}

// After the scan. Where values are replaced, what the freed ones leave is spread over all runs of NEW, and no run
// becomes empty: it would stay as large as it was when it had most objects.
template <class Mover>
void collector<Mover>::choose_sparse_runs_where_born() noexcept {
    constexpr std::size_t shares = 32;
    sparse_where_born_ = 0;
    if (!plan_.evacuate || plan_.early) return;
    std::array<std::size_t, shares> free_of{}; // bytes, by the share of the run that is in use
    std::size_t free_places = 0, live = 0;
    for (std::size_t run = 0; run < space_.runs_of(policy::first_tier); ++run) {
        const std::size_t room = space_.room_where_born(run);
        const std::size_t used = std::min(room, space_.bytes_in_run(policy::first_tier, run));
        if (room == 0) continue;
        live += used;
        free_places += room - used;
        free_of[std::min(used * shares / room, shares - 1)] += room - used;
    }
    const std::size_t kept = share_of(live, places_kept_share) + plan_.least_holes / 4;
    for (std::size_t i = 0; free_places > kept && i < shares; ++i) {
        const double below = static_cast<double>(i + 1) / shares;
        if (below > full_enough) break;
        sparse_where_born_ = below;
        free_places -= std::min(free_places, free_of[i]);
    }
}

template <class Mover>
bool collector<Mover>::scan_outside_lazy(control& control) {
    for (auto* leaf : slots_.leaves())
        if (!scan_eager(*leaf, control)) return false;
    return true;
}

// Scans one leaf in steps; flushes and pauses between them. False: stop.
template <class Mover>
bool collector<Mover>::scan_leaf(typename slots::leaf& leaf, std::uintptr_t begin,
                                 std::uintptr_t end, control& control) {
    bool found_any = false; // since it was asked
    for (std::uintptr_t at = begin; at < end; at += step_bytes) {
        const std::uintptr_t stop = std::min(at + step_bytes, end);
        swept_ = at;
        const bool found = slots_.scan(
            leaf, at, stop,
            [this](std::uintptr_t base, std::uint64_t bits) { visit_slots(base, bits); },
            [this] { judge_word(); });
        if (states_.bits() != 0 && phase_ != phase::list) {
            states_.erase(swept_, stop);
            if (stop % trimmed_bytes == 0 || stop == end) states_.trim(at, stop);
        }
        found_any = found_any || found;
        const bool full = batch_is_full();
        // Or nothing was done that a pause could be for.
        if (stop != end && !full && (stop % asked_bytes != 0 || !found_any)) continue;
        found_any = false;
        if (full) flush(control);
        control.checkpoint();
        control.throttle();
        if (control.stop_requested()) return false;
    }
    return true;
}

// The leaf without what lies in lazy tiers. A leaf may reach into several tiers: they may be smaller
// than it.
template <class Mover>
bool collector<Mover>::scan_eager(typename slots::leaf& leaf, control& control) {
    const std::uintptr_t end = leaf.base + (std::uintptr_t{1} << slots::leaf_shift);
    std::uintptr_t at = leaf.base;
    for (policy::tier_id id = 0; id < tiers_.count(); ++id) {
        if ((lazy_ >> id & 1) == 0) continue;
        const range skipped = range_of(id);
        if (!scan_leaf(leaf, at, std::clamp(skipped.begin, at, end), control)) return false;
        at = std::clamp(skipped.end, at, end);
    }
    return scan_leaf(leaf, at, end, control);
}

// R16: of lazy tiers only what was touched, found by what the other slots pointed to, and what was
// filled recently. Objects there may own others there, so this goes on until nothing new is found.
template <class Mover>
bool collector<Mover>::scan_lazy(control& control) {
    scanning_lazy_ = true;
    const auto for_each_lazy_tier = [this](auto&& use) {
        for (policy::tier_id id = 0; id < tiers_.count(); ++id)
            if ((lazy_ >> id & 1) != 0) use(id);
    };
    for (;;) {
        std::vector<std::uintptr_t> next;
        auto add_runs = [&](const char* begin, const char* end) {
            for (std::uintptr_t run = run_of(address_of(begin)); run < address_of(end);
                 run += heap::run_bytes)
                if (visited_lazy_.insert(run).second) next.push_back(run);
        };
        for_each_lazy_tier([&](policy::tier_id id) { space_.for_each_touched_run(id, add_runs); });
        for (const std::uintptr_t run : runs_to_rescan_)
            if (visited_lazy_.insert(run).second) next.push_back(run);
        // Memory over a frozen file keeps all of its storage. Slots in a lazy tier that no thread
        // touches may be what still holds it there, so they are all looked at; rarely, for it is
        // against R16.
        if (visited_lazy_.size() == next.size() && evacuation_for_ > 1 &&
            std::has_single_bit(evacuation_for_))
            for_each_lazy_tier([&](policy::tier_id id) { space_.for_each_extent(id, add_runs); });
        if (next.empty()) break;
        for (const std::uintptr_t run : next) {
            pending_found_ = false;
            if (!scan_lazy_range(run, run + heap::run_bytes, control)) {
                scanning_lazy_ = false;
                return false;
            }
            // Found by a touch: when it is over, nothing would lead to these children again.
            if (!pending_found_)
                runs_to_rescan_.erase(run);
            else if (plan_.move)
                runs_to_rescan_.insert(run);
        }
    }
    scanning_lazy_ = false;
    return true;
}

template <class Mover>
bool collector<Mover>::scan_lazy_range(std::uintptr_t begin, std::uintptr_t end, control& control) {
    auto* leaf = slots_.leaf_of(pointer_to(begin));
    return leaf == nullptr || scan_leaf(*leaf, begin, end, control);
}

// With the hazard held: no waiting, no user code, no allocation. What follows from the visit is
// worked out after it, in judge_word().
template <class Mover>
void collector<Mover>::visit_slots(std::uintptr_t base, std::uint64_t bits) {
    if (phase_ == phase::list) {
        for (; bits != 0; bits &= bits - 1)
            list_slot(*reinterpret_cast<slot_atomic*>(
                base + 8u * static_cast<unsigned>(std::countr_zero(bits))));
        return;
    }
    word_base_ = word_.base = base;
    word_.unmoved = in_large_ = 0;
    word_.expected_hot = word_.expected_cold = word_.expected_once = 0;
    visited_ = static_cast<unsigned>(std::popcount(bits));
    visit_masks all; // in registers: what is written to a slot could be a member
    for (; bits != 0; bits &= bits - 1)
        visit_slot(static_cast<unsigned>(std::countr_zero(bits)), all);
    word_.seen = all.seen;
    word_.touched = all.touched;
    word_.newborn = all.newborn;
    word_.movable = all.movable;
    resettled_ = all.resettled;
    word_.tiers = all.tiers;
    word_.oldest = all.oldest;
    foreign_here_ = all.foreign;
}

template <class Mover>
void collector<Mover>::visit_slot(unsigned bit, visit_masks& all) {
    mobility::observation& seen = seen_[bit];
    const mobility::window_id window(window_, !plan_.early);
    seen = phase_ == phase::scan ? mover_.visit(slot_at(bit), window)
                                 : mover_.revisit(slot_at(bit), window);
    if (seen.address == 0) {
        all.foreign += seen.foreign;
        return;
    }
    unsigned tier = space_.class_of(pointer_to(seen.address));
    if (tier > tiers_.count()) note_expectation(bit);
    if (tier >= tiers_.count()) { // LARGE or NEAR
        if (space_.info(pointer_to(seen.address)).size > heap::max_dense_size) {
            word_.unmoved |= std::uint64_t{1} << bit;
        } else {
            in_large_ |= std::uint64_t{1} << bit;
            tier = policy::first_tier;
        }
    }
    all.seen |= std::uint64_t{1} << bit;
    all.touched |= std::uint64_t{seen.touched} << bit;
    all.newborn |= std::uint64_t{seen.newborn} << bit;
    all.resettled |= std::uint64_t{seen.resettled} << bit;
    all.movable |= std::uint64_t{seen.movable} << bit;
    all.tiers |= policy::tier_mask{1} << tier;
    const unsigned quiet = seen.inactive_windows;
    const unsigned idle = Mover::ages_are_stamps ? ages_.whole(quiet) : quiet;
    all.oldest = std::max(all.oldest, idle);
    word_.tier[bit] = static_cast<std::uint8_t>(tier);
    word_.idle[bit] = idle;
    word_.quiet[bit] = quiet;
}

// Of an object in NEAR.
template <class Mover>
void collector<Mover>::note_expectation(unsigned bit) noexcept {
    const std::uint64_t mask = std::uint64_t{1} << bit;
    switch (space_.expected_of(object_at(bit))) {
    case heap::expectation::nothing:
        break;
    case heap::expectation::hot:
        word_.expected_hot |= mask;
        break;
    case heap::expectation::cold:
        word_.expected_cold |= mask;
        break;
    case heap::expectation::once:
        word_.expected_once |= mask;
        break;
    }
}

// After the visit, without the hazard: the objects may be freed meanwhile. Of them only addresses and
// the heap's own tables are used, and a candidate must still have its exact word when it moves (R8).
template <class Mover>
void collector<Mover>::judge_word() {
    if (phase_ == phase::list) return;
    scanned_ += visited_;
    foreign_ += foreign_here_;
    if (word_.seen == 0) return;
    touched_ += static_cast<std::uint64_t>(std::popcount(word_.touched));
    armed_ += static_cast<std::uint64_t>(
        std::popcount(word_.movable & (word_.touched | word_.newborn | resettled_)));
    mark_touched();
    verdict_.move = verdict_.held = verdict_.sample = 0;
    decide_with_states();
    if (word_.unmoved != 0) note_large();
    if (scanning_lazy_ && !pending_found_) look_for_pending();
    held_ += static_cast<std::uint64_t>(std::popcount(verdict_.held & word_.movable));
    verdict_.move &= ~word_.unmoved;
    verdict_.move &= word_.movable;
    if (plan_.move) limit_leaving();
    if (verdict_.move != 0) queue_moves();
}

// A slot that is seen for the first time may lie where another has ended since the last scan: it begins without state.
// Words that the scan passed over have no slots any more.
template <class Mover>
void collector<Mover>::decide_with_states() {
    if (states_.bits() == 0) {
        placement_.decide(word_, verdict_);
        return;
    }
    states_.erase(swept_, word_base_);
    swept_ = word_base_ + soda::slot_states::word_span;
    states_.load(word_base_, word_.seen, word_.state);
    for (std::uint64_t left = word_.newborn | resettled_; left != 0; left &= left - 1)
        word_.state[static_cast<unsigned>(std::countr_zero(left))] = 0;
    placement_.decide(word_, verdict_);
    states_.store_in_turn(word_base_, word_.seen, word_.state);
}

// In a scan little leaves a tier at once, unless the policy says that it must; the rest is counted for
// the evacuation of runs.
template <class Mover>
void collector<Mover>::limit_leaving() {
    const std::uint64_t counted = word_.seen & ~word_.unmoved;
    const std::uint64_t each = verdict_.move | word_.newborn | in_large_;
    count_staying(counted & ~each);
    for (std::uint64_t left = counted & each; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const policy::tier_id at = word_.tier[bit];
        const std::uint64_t mask = std::uint64_t{1} << bit;
        const bool wished = (verdict_.move & mask) != 0;
        if (wished && !plan_move(bit, verdict_.to[bit])) verdict_.move &= ~mask;
        const bool leaves = (verdict_.move & mask) != 0;
        if ((in_large_ & mask) != 0) {
            if (wished) note_leaver(bit);
            verdict_.move &= ~mask;
            continue;
        }
        const std::size_t run = space_.run_of(object_at(bit));
        // A run whose memory is elsewhere is not emptied: what stays would be read back.
        const bool out = leaves && run_out(at, run);
        const std::size_t bytes = leaves && !out ? size(bit) : 0;
        const bool at_once = leaves && ((verdict_.sample & mask) != 0 ||
                                        (bytes <= leaves_at_once_ && queue_hole(bit)));
        if (out && !at_once) postpone(bit, (lazy_ >> at & 1) != 0);
        evacuation_[at].note(run, at_once ? 0 : bytes, (word_.newborn & mask) != 0);
        if (at_once)
            leaves_at_once_ -= std::min(bytes, leaves_at_once_);
        else
            verdict_.move &= ~mask;
    }
}

// Neighbours mostly lie in one run, which is looked up once.
template <class Mover>
void collector<Mover>::count_staying(std::uint64_t bits) noexcept {
    while (bits != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(bits));
        const std::uintptr_t place = address_of(object_at(first)) >> heap::run_shift;
        const policy::tier_id at = word_.tier[first];
        unsigned count = 0;
        do {
            ++count;
            bits &= bits - 1;
        } while (bits != 0 &&
                 address_of(object_at(static_cast<unsigned>(std::countr_zero(bits)))) >>
                         heap::run_shift ==
                     place);
        evacuation_[at].note_staying(space_.run_of(object_at(first)), count);
    }
}

// What leaves LARGE or NEAR is listed. Objects in NEAR are many, and those beyond the list wait for another window.
template <class Mover>
void collector<Mover>::note_leaver(unsigned bit) {
    const bool near = space_.class_of(object_at(bit)) != space_.large_class();
    if (near && (leaving_large_.size() + 1) * sizeof(large_leaver) > in_flight_ / 2)
        recorder_.live.postponed_moves.add(1);
    else
        leaving_large_.push_back({&slot_at(bit), seen_[bit].address, verdict_.to[bit],
                                  word_.idle[bit], (word_.newborn >> bit & 1) != 0});
}

// An object that is in use again where a run of a lazy tier is out waits for the end of the scan, if there is
// room in the list. Then it is known how much is still out.
template <class Mover>
void collector<Mover>::postpone(unsigned bit, bool may_be_late) {
    if (may_be_late && (word_.touched >> bit & 1) != 0 &&
        (late_.size() + 1) * sizeof(slot_atomic*) <= in_flight_ / 16)
        late_.push_back(&slot_at(bit));
    else
        recorder_.live.postponed_moves.add(1);
}

// What is out, and was not touched, makes room for what is in use again. False: stop.
template <class Mover>
bool collector<Mover>::move_late(control& control) {
    if (late_.empty()) return true;
    std::size_t out = 0;
    for (policy::tier_id id = policy::first_tier + 1; id < tiers_.count(); ++id)
        out += log_.untouched_out_bytes(space_, id);
    holes_.add(out - std::min(out, holes_out_));
    const bool complete = move_set_aside(
        late_.size(), [this](std::size_t i) { return late_[i]; },
        [this](const void* object) { return lies_in(object, lazy_); }, control);
    std::vector<slot_atomic*>().swap(late_);
    return complete;
}

// What leaves LARGE or NEAR leaves memory as soon as it has moved. So a part at a time, as much as may be resident
// twice, or one object; in the order of addresses, so that neighbours that leave for one tier stay neighbours.
// False: stop.
template <class Mover>
bool collector<Mover>::move_large(control& control) {
    std::sort(leaving_large_.begin(), leaving_large_.end(),
              [](const large_leaver& a, const large_leaver& b) { return a.object < b.object; });
    return move_set_aside(
        leaving_large_.size(),
        [this](std::size_t i) {
            late_newborn_ = leaving_large_[i].newborn;
            return leaving_large_[i].slot;
        },
        [this](const void* object) { return !enough_returned() && bytes_in_large(object) != 0; },
        control);
}

// Of slots that the scan has set aside, those whose objects are where they were.
template <class Mover>
template <class SlotOf, class Wanted>
bool collector<Mover>::move_set_aside(std::size_t count, SlotOf&& slot_of, Wanted&& wanted,
                                      control& control) {
    phase_ = phase::late;
    judged_in_turn_ = false;
    bool complete = true;
    late_newborn_ = false;
    for (std::size_t i = 0; complete && i < count && !abandoned_; ++i) {
        slot_atomic* const slot = slot_of(i);
        if (slots_.begin_visit(slot)) {
            word_.seen = 0;
            if (wanted(pointer_to(Mover::layout::address(slot->load_relaxed()))))
                visit_again(*slot);
            slots_.end_visit();
            if (word_.seen != 0 && !fits_from_large(lowest_seen())) flush(control);
            judge_again();
        }
        const bool last = i + 1 == count;
        if (batch_is_full() || last) flush(control);
        if (i % late_per_checkpoint != 0 && !last) continue;
        control.checkpoint();
        control.throttle();
        complete = !control.stop_requested();
    }
    phase_ = phase::scan;
    return complete;
}

// In the same window, of one slot: its move was vetoed, or the run is emptied that its object lies in.
// It has been counted, and its touch marked.
template <class Mover>
void collector<Mover>::judge_again() {
    if ((word_.seen & word_.movable & ~word_.unmoved) == 0) return;
    const unsigned bit = lowest_seen();
    // The scan has armed what it saw newborn.
    if (phase_ == phase::late && late_newborn_ && word_.touched == 0) word_.newborn = word_.seen;
    // No newborn object was in the run when it was chosen, and none has been seen there since: an age of
    // 0 says touched in the window that ended. What is late of a lazy tier was touched; what was born in LARGE since
    // the scan is so now.
    if ((phase_ == phase::late || (phase_ == phase::empty && !born_since_)) &&
        seen_[bit].inactive_windows == 0 && word_.newborn == 0) {
        word_.touched = word_.seen;
        seen_[bit].touched = true; // the mover asks, too
    }
    verdict_.move = verdict_.held = verdict_.sample = 0;
    word_.again = true;
    if (states_.bits() != 0) states_.load(word_base_, word_.seen, word_.state);
    placement_.decide(word_, verdict_);
    word_.again = false;
    if (phase_ == phase::empty) {
        // Where it may not go it moves on with what stays.
        if (verdict_.move != 0 && !fits(bit, verdict_.to[bit])) verdict_.move = 0;
        if (verdict_.move == 0 && whole_ && word_.tier[bit] == tier_)
            verdict_.send(bit, tier_); // into another run
        else if (verdict_.move != 0 && !worth_emptying_)
            leave_if_room(bit);
    } else if (verdict_.move != 0) {
        leave_if_room(bit);
    } else if (((verdict_.move | verdict_.held) & word_.seen) == 0 &&
               space_.evacuating(object_at(bit))) {
        verdict_.send(bit, word_.tier[bit]);
    }
    if (verdict_.move != 0) queue_moves();
}

// Construction is no access, but it touches the object's pages, and the working set is made of pages.
// A newborn word outside of the first tier and LARGE is one of ATC that an idle guide left when it was moved, or of an object
// that was born there: where it was, or will be, filled.
template <class Mover>
void collector<Mover>::mark_touched() {
    std::uint64_t marked = word_.touched;
    for (std::uint64_t left = word_.newborn; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const policy::tier_id tier = word_.tier[bit];
        if (tier == policy::first_tier || tier == tiers_.count()) {
            marked |= std::uint64_t{1} << bit;
        } else if ((lazy_ >> tier & 1) != 0) {
            const std::uintptr_t born = address_of(object_at(bit)); // its slots may be filled since
            rescan(born, born + 1);
        }
    }
    for (; marked != 0; marked &= marked - 1) {
        const void* object = object_at(static_cast<unsigned>(std::countr_zero(marked)));
        space_.mark_touched(object, space_.info(object).size);
    }
}

// In a run of a lazy tier: an object that is in no lazy tier and may get there.
template <class Mover>
void collector<Mover>::look_for_pending() {
    if ((word_.tiers & ~lazy_) == 0) return;
    for (std::uint64_t left = word_.seen & ~word_.unmoved; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        if ((lazy_ >> word_.tier[bit] & 1) != 0 || never_cold(bit)) continue;
        pending_found_ = true;
        return;
    }
}

template <class Mover>
void collector<Mover>::queue_moves() {
    for (std::uint64_t left = verdict_.move; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const policy::tier_id target = verdict_.to[bit];
        if (!plan_.move) {
            ++would_move_;
            would_move_bytes_ += size(bit);
        } else if (!abandoned_ && fits(bit, target) &&
                   mover_.add_candidate(slot_at(bit), seen_[bit], target)) {
            hot_queued_ += promoted_to_ >> target & 1;
            if ((in_large_ >> bit & 1) != 0) large_queued_ += size(bit);
            if (leaves_file(word_.tier[bit], target)) growth_.queue(size(bit));
            if (enters_file(target)) writes_.queue(size(bit));
        }
    }
}

// Memory for a file's pages, which the kernel can drop.
template <class Mover>
bool collector<Mover>::leaves_file(policy::tier_id from, policy::tier_id to) const noexcept {
    // HOT's file may be one of memory.
    return (in_files_ >> from & 1) != 0 && !enters_file(to);
}

// In the scan, each wish once. False: there is no room outside of the object's file, or as much is to be
// written into files as may be.
template <class Mover>
bool collector<Mover>::plan_move(unsigned bit, policy::tier_id target) noexcept {
    const std::uint32_t lot = policy::lot_of(word_base_ / 8 + bit, window_);
    // Where not all can come back, those do that need not be read again.
    if (leaves_file(word_.tier[bit], target) &&
        ((growth_.limited() && !os::all_resident(object_at(bit), size(bit))) ||
         !growth_.plan(size(bit), lot))) {
        recorder_.live.no_budget_skips.add(1);
        return false;
    }
    if (enters_file(target) && !writes_.plan(size(bit))) {
        recorder_.live.write_limit_skips.add(1);
        return false;
    }
    return true;
}

template <class Mover>
bool collector<Mover>::fits(unsigned bit, policy::tier_id target) const noexcept {
    return fits_from_large(bit) &&
           (!leaves_file(word_.tier[bit], target) || growth_.fits(size(bit))) &&
           (!enters_file(target) || writes_.fits(size(bit)));
}

// A dense tier's run keeps the place of what leaves it until it is compacted. Not so if it is compacted now.
// NEW's are reused.
template <class Mover>
bool collector<Mover>::leaves_hole(policy::tier_id from, policy::tier_id to,
                                   const void* object) const noexcept {
    return from != policy::first_tier && from < tiers_.count() && from != to &&
           !space_.evacuating(object);
}

// False: there are holes enough, and the object stays for now.
template <class Mover>
bool collector<Mover>::queue_hole(unsigned bit) noexcept {
    if (!leaves_hole(word_.tier[bit], verdict_.to[bit], object_at(bit))) return true;
    if (!holes_.fits(size(bit))) return false;
    holes_.queue(size(bit));
    return true;
}

// What has moved. In a run that is emptied it leaves no hole.
template <class Mover>
void collector<Mover>::take_allowances(policy::tier_id from, policy::tier_id to,
                                       const mobility::moved_object& moved) noexcept {
    if (leaves_file(from, to)) growth_.take(moved.bytes);
    if (enters_file(to)) writes_.take(moved.bytes);
    if ((in_files_ >> to & 1) != 0) unwritten_ += moved.bytes;
    const void* const object = pointer_to(moved.from);
    if (leaves_hole(from, to, object) &&
        !(phase_ == phase::empty && evacuation_[from].run_is_worth_emptying(space_.run_of(object))))
        holes_.take(moved.bytes);
}

template <class Mover>
void collector<Mover>::leave_if_room(unsigned bit) noexcept {
    if (queue_hole(bit)) return;
    if (!judged_in_turn_) recorder_.live.postponed_moves.add(1);
    verdict_.move = 0;
}

template <class Mover>
void collector<Mover>::begin_evacuation() {
    returned_early_ = 0;
    phase_ = phase::scan;
    std::uint64_t resident = 0;
    for (unsigned cls = 0; cls <= space_.large_class(); ++cls)
        resident += space_.counters(cls).extent_bytes;
    in_flight_ = std::max(static_cast<std::size_t>(static_cast<double>(resident) * plan_.in_flight),
                          plan_.least_in_flight);
    // Near the limit two runs at a time: what leaves for a file is what makes room.
    in_flight_ = std::min(in_flight_, std::max<std::size_t>(plan_.may_grow, 2 * heap::run_bytes));
    leaves_at_once_ = in_flight_ / 2;
    if (!plan_.move) return;
    for (unsigned cls = 0; cls < space_.classes(); ++cls)
        evacuation_[cls].begin(space_.runs_of(cls), least_gain(cls));
}

// Runs are emptied tier by tier; one scan finds the slots for all of them, unless there are too many for
// their lists. False: stop. What is thrown here leaves closed runs to abandon().
template <class Mover>
bool collector<Mover>::empty_chosen_runs(control& control) {
    bool complete = true;
    choose_sparse_runs_where_born();
    new_before_ = space_.counters(policy::first_tier).extent_bytes;
    left_new_before_ = left_new();
    while (complete && !abandoned_ && !enough_returned() && choose_runs()) {
        complete = find_slots(control);
        phase_ = phase::empty;
        for (tier_ = 0; complete && !abandoned_ && tier_ < space_.classes(); ++tier_)
            complete = empty_tier(control);
        phase_ = phase::scan;
    }
    for (const auto& tier : evacuation_) recorder_.live.postponed_moves.add(tier.left_out());
    return complete || abandoned_;
}

// Each turn scans all slots once more. So lists may take a byte per object: then there are about
// `most_list_scans` turns, however small the objects are.
template <class Mover>
bool collector<Mover>::choose_runs() noexcept {
    std::size_t noted = 0;
    for (unsigned cls = 0; cls < space_.classes(); ++cls) noted += evacuation_[cls].noted();
    std::size_t list_bytes =
        std::max<std::size_t>({in_flight_ / 4, noted * sizeof(slot_atomic*) / most_list_scans, 1});
    bool any = false;
    for (unsigned cls = 0; cls < space_.classes(); ++cls) {
        const auto state_of = [this, cls](std::size_t run) {
            return typename evacuation<slot_atomic*>::run_state{
                space_.objects_in_run(cls, run), space_.bytes_in_run(cls, run),
                space_.room_of_run(cls, run),
                cls == policy::first_tier ? sparse_where_born(run)
                                          : space_.run_evacuating(cls, run)};
        };
        // Without room for holes a list for what may not leave is a scan for nothing.
        const bool holes_may_be_made =
            cls == policy::first_tier || holes_.left() > plan_.least_holes / 16;
        any = evacuation_[cls].choose(list_bytes, state_of, holes_may_be_made) || any;
        list_bytes -= std::min(list_bytes, evacuation_[cls].list_bytes());
    }
    return any;
}

// True if too little memory came back for what has left NEW: where values are replaced all the time, new ones fill
// runs that were to be emptied, and whatever else leaves would be in memory twice. The rest waits for the next window.
template <class Mover>
bool collector<Mover>::new_stays_behind() const noexcept {
    const std::uint64_t now = space_.counters(policy::first_tier).extent_bytes;
    const std::uint64_t left = left_new() - left_new_before_;
    return !plan_.early && now + left > new_before_ + std::max(in_flight_, plan_.least_in_flight);
}

// False: stop. Runs are closed for their turn only.
template <class Mover>
bool collector<Mover>::empty_tier(control& control) {
    auto& tier = evacuation_[tier_];
    if (tier.chosen_runs() == 0) return true;
    between_pieces ask(control);
    bool complete = true;
    to_open_.reserve(tier.chosen_runs());
    for (std::size_t first = 0; complete && !enough_returned() && first < tier.chosen_runs();) {
        std::size_t bytes = 0;
        std::size_t last = first;
        while (last < tier.chosen_runs() && (bytes == 0 || bytes + tier.bytes(last) <= in_flight_))
            bytes += tier.bytes(last++);
        close_runs(first, last);
        complete = empty_runs(first, last, control) && !abandoned_;
        open_runs(first, last, ask);
        first = last;
        if (tier_ == policy::first_tier && first < tier.chosen_runs() && new_stays_behind()) {
            tier.end(); // nothing of it is chosen again in this window
            break;
        }
    }
    return complete || abandoned_;
}

// For one group at a time: what threads free in closed runs is not allocated again until these are
// opened. A run over a frozen file cannot be closed, and is emptied for the file's sake.
template <class Mover>
void collector<Mover>::close_runs(std::size_t first, std::size_t last) noexcept {
    auto& tier = evacuation_[tier_];
    space_.close_runs(tier_, [&](std::size_t run) {
        return tier.run_is_whole(run) && run >= tier.run(first) && run <= tier.run(last - 1);
    });
    for (std::size_t i = first; i < last; ++i)
        if (!space_.run_closed(tier_, tier.run(i)) && !space_.run_evacuating(tier_, tier.run(i)))
            tier.leave_rest(i);
}

// The slots of the chosen runs, wherever the scan of this window looked.
template <class Mover>
bool collector<Mover>::find_slots(control& control) {
    phase_ = phase::list;
    visited_lazy_.insert(runs_to_rescan_.begin(), runs_to_rescan_.end());
    bool complete = scan_outside_lazy(control);
    for (auto run = visited_lazy_.begin(); complete && run != visited_lazy_.end(); ++run)
        complete = scan_lazy_range(*run, *run + heap::run_bytes, control);
    phase_ = phase::scan;
    return complete;
}

// use(evacuation of the tier, run), if the slot's object lies in a run.
template <class Mover>
template <class Use>
void collector<Mover>::with_run_of(const slot_atomic& slot, Use&& use) noexcept {
    const void* const object = pointer_to(Mover::layout::address(slot.load_relaxed()));
    if (!space_.contains(object)) return;
    const unsigned cls = space_.class_of(object);
    if (cls < space_.classes()) use(evacuation_[cls], space_.run_of(object));
}

template <class Mover>
void collector<Mover>::list_slot(slot_atomic& slot) noexcept {
    with_run_of(slot, [&slot](auto& tier, std::size_t run) { tier.list(run, &slot); });
}

// In rounds: an object may move with slots of others that are queued, and their new places are known in the
// next one only. And of what stays in the tier some is touched while it moves. Each round has less to move, so
// less is touched; one object that is left would keep the memory of its run. Before them what leaves the tier
// does, and shows which runs can be emptied: an object cannot move again when its slot has moved in this window
// (ATC), and then the rest need not move on.
template <class Mover>
bool collector<Mover>::empty_runs(std::size_t first, std::size_t last, control& control) {
    auto& tier = evacuation_[tier_];
    const std::size_t kept = vetoed_.size();
    for (unsigned round = 0; round <= evacuation_rounds; ++round) {
        vetoed_.resize(kept); // those of the round before are tried again now
        const std::uint64_t before = moved_;
        for (std::size_t i = first; i < last; ++i) {
            if (!tier.is_chosen(tier.run(i))) continue;
            whole_ = round != 0 && tier.rest_moves(i);
            worth_emptying_ = tier.worth_emptying(i);
            judged_in_turn_ = round != 0;
            std::size_t unmovable = 0;
            born_since_ = tier.born_since(i);
            live_when_chosen_ = static_cast<double>(tier.bytes(i)) / double{heap::run_bytes};
            for (slot_atomic* slot : tier.slots(i)) {
                if (!slots_.begin_visit(slot)) continue;
                word_.seen = 0;
                const std::uintptr_t address = Mover::layout::address(slot->load_relaxed());
                if (in_tier(address) && space_.run_of(pointer_to(address)) == tier.run(i))
                    visit_again(*slot);
                slots_.end_visit();
                unmovable += (word_.seen & ~word_.movable) != 0;
                born_since_ = born_since_ || (word_.seen & word_.newborn) != 0;
                judge_again();
            }
            if (born_since_) tier.note_birth(i);
            if (round == 0) tier.note_unmovable(i, unmovable);
            if (batch_is_full() && !flush(control)) return false;
            control.checkpoint();
            control.throttle();
            if (control.stop_requested()) return false;
        }
        if (!flush(control) || control.stop_requested()) return false;
        if (round != 0 && moved_ == before) break;
    }
    return true;
}

// In a visit, of a slot that this window has visited.
template <class Mover>
void collector<Mover>::visit_again(slot_atomic& slot) {
    const std::uintptr_t at = address_of(&slot);
    visit_slots(at & ~std::uintptr_t{511}, std::uint64_t{1} << (at >> 3 & 63));
}

template <class Mover>
void collector<Mover>::open_runs(std::size_t first, std::size_t last, heap::pacer& ask) {
    auto& tier = evacuation_[tier_];
    to_open_.clear();
    for (std::size_t i = first; i < last; ++i) {
        const std::size_t run = tier.run(i);
        const bool whole = tier.run_is_whole(run) && space_.run_closed(tier_, run);
        tier.drop(i);
        if (whole) to_open_.push_back(static_cast<std::uint32_t>(run)); // there is room
    }
    returned_early_ += space_.open_runs(tier_, to_open_.data(), to_open_.size(), ask);
}

// Those that were chosen and whose turn has not ended.
template <class Mover>
void collector<Mover>::open_closed_runs(heap::pacer& ask) noexcept {
    if (tier_ >= space_.classes()) return;
    auto& tier = evacuation_[tier_];
    for (std::size_t i = 0; i < tier.chosen_runs(); ++i) {
        const auto run = static_cast<std::uint32_t>(tier.run(i));
        const bool whole = tier.run_is_whole(run);
        tier.drop(i);
        if (whole && space_.run_closed(tier_, run))
            returned_early_ += space_.open_runs(tier_, &run, 1, ask);
    }
}

// An object moved with slots in it: where one leads into a chosen run, its new place is listed.
template <class Mover>
void collector<Mover>::relocate_listed(const mobility::moved_object& moved) {
    const auto visit = [&](std::uintptr_t base, std::uint64_t bits) {
        for (; bits != 0; bits &= bits - 1) {
            const std::uintptr_t to = base + 8u * static_cast<unsigned>(std::countr_zero(bits));
            auto* const slot = reinterpret_cast<slot_atomic*>(to);
            auto* const before = reinterpret_cast<slot_atomic*>(moved.from + (to - moved.to));
            with_run_of(*slot,
                        [&](auto& tier, std::size_t run) { tier.relocate(run, before, slot); });
        }
    };
    slots_.scan_range(moved.to, moved.to + moved.bytes, visit);
}

// What is too large to move is hinted where it is.
template <class Mover>
void collector<Mover>::note_large() {
    for (std::uint64_t left = word_.unmoved; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const std::size_t bytes = size(bit);
        if (bytes != 0) log_.note_large(object_at(bit), bytes, verdict_.to[bit], word_.idle[bit]);
    }
}

// So is what should have left LARGE and could not: a pin, no room. But not what an early window leaves there since enough
// has left.
template <class Mover>
void collector<Mover>::note_left_in_large() {
    if (enough_returned()) leaving_large_.clear();
    for (const large_leaver& one : leaving_large_) {
        if (!slots_.begin_visit(one.slot)) continue;
        const void* const object = pointer_to(Mover::layout::address(one.slot->load_relaxed()));
        slots_.end_visit();
        if (const std::size_t bytes = bytes_in_large(object);
            bytes != 0 && space_.class_of(object) == space_.large_class())
            log_.note_large(object, bytes, one.target, one.idle);
    }
    std::vector<large_leaver>().swap(leaving_large_);
}

template <class Mover>
bool collector<Mover>::wait_for_grace_period(control& control) {
    auto& live = recorder_.live;
    const double begin = seconds_now();
    control.wait_begins();
    unsigned asked = 0;
    const auto result = mover_.wait_for_grace_period(self_, [&](const record& waiting) {
        control.checkpoint();
        // A scope lasts microseconds, unless the kernel has put its thread aside, perhaps for this
        // one. Then that thread needs the processor, but not a whole turn of milliseconds, in which
        // all the others touch what has been armed: so a nap, and no yield.
        if (++asked > asks_before_nap) platform::sleep_ns(nap_ns);
        return control.stop_requested() ||
               control.give_up(waiting.thread_id.load_relaxed(), waiting.epoch.load_relaxed());
    });
    live.waits.add(1);
    live.wait_seconds.add(seconds_now() - begin);
    // A stop that came during the wait counts: after it a thread may have scopes that cannot be
    // seen.
    if (result == mobility::wait_result::done && !control.stop_requested()) return true;
    mover_.forget();
    live.abandoned_waits.add(1);
    abandoned_ = true;
    return false;
}

template <class Mover>
bool collector<Mover>::flush(control& control) {
    const std::size_t for_hot = std::exchange(hot_queued_, 0);
    const bool from_large = std::exchange(large_queued_, 0) != 0;
    for (allowance* of : {&holes_, &growth_, &writes_}) of->end_batch(); // move_batch() takes
    if (mover_.candidates().empty()) return true;
    sort_batch();
    const double begin = seconds_now();
    if (abandoned_ || !wait_for_grace_period(control)) {
        mover_.forget();
        return false;
    }
    const double settled = seconds_now();
    const double paused = move_batch(control);
    mover_.forget();
    if (from_large) {
        between_pieces ask(control);
        returned_early_ += space_.decommit_large(ask);
    }
    if (for_hot >= hot_batch_) adapt_hot_batch(settled - begin, seconds_now() - settled - paused);
    return true;
}

// A batch is exposed to touches for its wait and its copying. When the threads are many or the
// processors few, a wait takes milliseconds however small the batch is; then copying for as long as
// waiting doubles the exposure at most, and halves the time lost to waits. When waits are short, so
// are batches.
template <class Mover>
void collector<Mover>::adapt_hot_batch(double waited, double moving) noexcept {
    if (waited > moving)
        hot_batch_ = std::min(2 * hot_batch_, batch_candidates);
    else if (4 * waited < moving)
        hot_batch_ = std::max(hot_batch_ / 2, Mover::least_hot_batch);
}

// Before the wait, so that nothing is exposed for it.
template <class Mover>
void collector<Mover>::sort_batch() {
    auto& list = mover_.candidates();
    // Dense, in address order: keeping the source's order keeps the allocation's locality.
    std::sort(list.begin(), list.end(), [this](const candidate& a, const candidate& b) {
        const auto address = [](const candidate& c) { return Mover::layout::address(c.word); };
        // Objects that stay in their tier come last: no thread waits for them, and others may be
        // touched.
        const auto order = [this](const candidate& c) {
            return phase_ == phase::empty && c.target == tier_ ? heap::max_classes : c.target;
        };
        return a.target != b.target ? order(a) < order(b) : address(a) < address(b);
    });
}

// What threads use would be touched while the collector sleeps, and stay where it is.
template <class Mover>
bool collector<Mover>::may_pause_at(const candidate& c) const noexcept {
    return phase_ != phase::retry && (promoted_to_ >> c.target & 1) == 0;
}

// Seconds for which it slept.
template <class Mover>
double collector<Mover>::move_batch(control& control) {
    auto& list = mover_.candidates();
    double paused = 0;
    std::uint64_t bytes = 0; // since the last question
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i + prefetch_distance < list.size()) {
            const candidate& ahead = list[i + prefetch_distance];
            __builtin_prefetch(pointer_to(Mover::layout::address(ahead.word)));
            __builtin_prefetch(ahead.slot, 1);
        }
        if (i % moves_per_checkpoint == 0 || bytes >= bytes_per_checkpoint) {
            bytes = 0;
            if (plan_.wanted_bytes != 0 && unwritten_ >= unwritten_at_once) {
                unwritten_ = 0;
                space_.begin_write_back();
            }
            control.checkpoint();
            if (may_pause_at(list[i])) {
                const double begin = seconds_now();
                control.throttle();
                paused += seconds_now() - begin;
            }
            if (control.stop_requested()) return paused;
        }
        mobility::moved_object moved;
        const auto result = mover_.move(list[i], window_, moved);
        bytes += moved.bytes;
        count(list[i], result, moved);
        if (moved.nested_slots != 0) control.slots_moved(moved);
        if (result == mobility::move_result::vetoed && vetoed_.size() < retry_limit)
            vetoed_.push_back(list[i].slot);
    }
    return paused;
}

template <class Mover>
void collector<Mover>::count(const candidate& c, mobility::move_result result,
                             const mobility::moved_object& moved) {
    auto& live = recorder_.live;
    switch (result) {
    case mobility::move_result::moved: {
        const policy::tier_id from = tier_of(pointer_to(moved.from));
        live.count_move(from, c.target, moved.bytes);
        moved_bytes_[from][c.target] += moved.bytes;
        take_allowances(from, static_cast<policy::tier_id>(c.target), moved);
        ++moved_;
        if (moved.nested_slots != 0) states_.move(moved.from, moved.to, moved.bytes);
        if (phase_ == phase::empty && moved.nested_slots != 0) relocate_listed(moved);
        if (c.target != policy::first_tier)
            log_.note_filled(c.target, pointer_to(moved.to), moved.bytes);
        if ((lazy_ >> c.target & 1) != 0) {
            if (moved.nested_slots != 0) rescan(moved.to, moved.to + moved.bytes);
        } else if (lies_in(c.slot, lazy_)) {
            left_.push_back(c.slot);
        }
        break;
    }
    case mobility::move_result::vetoed:
    case mobility::move_result::not_alive:
        live.vetoed_moves.add(1);
        break;
    case mobility::move_result::pinned:
        live.pinned_skips.add(1);
        break;
    case mobility::move_result::no_room:
        live.no_room_skips.add(1);
        break;
    }
}

// A small batch is exposed for hardly more than its wait, so an object that is touched often has a
// better chance, and the smaller, the better. Where even the least batches are vetoed one after the
// other, what is left is touched more often than a wait takes: it stays where it is.
template <class Mover>
void collector<Mover>::retry(control& control) {
    std::size_t batch = retry_batch;
    unsigned poor = 0;
    for (unsigned round = 0; round < retry_rounds && !vetoed_.empty(); ++round) {
        std::vector<slot_atomic*> again;
        again.swap(vetoed_);
        for (std::size_t at = 0; at < again.size();) {
            const std::size_t end = std::min(at + batch, again.size());
            for (std::size_t i = at; i < end; ++i) {
                if (!slots_.begin_visit(again[i])) continue;
                visit_again(*again[i]);
                slots_.end_visit();
                judge_again();
            }
            const std::uint64_t before = moved_;
            if (!flush(control) || control.stop_requested()) return;
            if ((moved_ - before) * retry_worth >= end - at)
                poor = 0;
            else if (batch > least_retry_batch)
                batch /= 8;
            else if (++poor == retry_patience)
                return;
            at = end;
            control.throttle();
        }
    }
}

} // namespace obase::collector
