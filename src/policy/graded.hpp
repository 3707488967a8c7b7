// SPDX-License-Identifier: MIT
//
// policy::graded: the policy `graded`. Eight tiers by how often an object is touched for its size, each twice as
// often as the next: a touched bit per window cannot rank a heavy tail, an estimate of the rate can.
//
//   new                  where objects are born; they stay for `windows_to_prove` windows, of which the first,
//                        in which they are made, says nothing about them
//   rate7 .. rate0       class k: 2^(k-1) to 2^k times touch_rate::base_rate touches per window, for an object
//                        of the mean size, for one of twice that size twice as many (size_scale.hpp); rate7 all
//                        above, rate0 all below
//
// An object leaves its class when its rate is half an octave above the class or beyond half an octave
// below it, in two windows more than not. Moves between classes are limited to `move_budget` of the
// objects in a window, those with the farthest to go first: what is near its class is often a guess.
//
// What leaves memory: of each class the pages that have been idle for longer than the class's own age
// limit, all limits at one price of stall per byte (fault_price.hpp). The price is the highest at which the
// stall that is predicted stays within the option stall_target, a share of the time that the program's
// threads run; where the process has a budget of memory, the one at which it is just within it. What its
// faults really were corrects the prediction.
//
// Where neighbouring slots are used together (co_access.hpp) their objects have one estimate, the mean of all, and
// go the same way. That is found out for each `region_bytes` of slots, and where one says too little for all together:
// what is allocated in the same phase of a program lies together, and groups in one place say nothing of others.
//
// An object whose page is out of memory moves to a hotter class only.
//
// Windows are shorter than asked for where nearly all objects are touched in one (window_length.hpp).
//
// What the program expects of an object (obase/allocation_options.hpp) holds until it is proven: one that is expected
// to be hot goes to rate7 at once, and one that is expected to be cold to rate0 unless it was touched; there they
// are judged like others. One that is to be used once stays in the first tier while it is used.
//
// While threads that allocate wait for memory, objects in NEW that were not touched go to the coldest class at
// once, those idle for longest first (relief.hpp). An early window does nothing else: no rate, no age and no
// hazard changes, and what it saw touched counts in the next one that is not early.
//
// Where nothing but the coldest class can leave (its file, and no swap), the price has no say over the rest. So in
// a process that is over its budget, or for whose cold objects in use there is no room, the coldest class reaches up to
// the *cut*: the rate below which the bytes lie that should leave, those in NEW with the others. It is never so high that
// what is touched in more than half of the windows would go, and falls again, an eighth of an octave in a window, while
// there is room.
//
// State per slot: 16 bits. touch_rate's; three more: in the first tier for how many windows the object has been
// seen there, else how far the rate has been outside of the class, -3 to 3, plus 4; and whether an early window has
// seen it touched since the last one that was not.
//
// Threads: the collector.
#pragma once

#include "policy/co_access.hpp"
#include "policy/fault_price.hpp"
#include "policy/placement.hpp"
#include "policy/relief.hpp"
#include "policy/size_scale.hpp"
#include "policy/touch_rate.hpp"
#include "policy/window_length.hpp"

#include <array>
#include <cstdint>

namespace obase::policy {

class graded final : public placement {
  public:
    static constexpr unsigned classes = 8;
    static constexpr tier rows[] = {
        {.name = "new"},
        {.name = "rate7", .promoted_to = true, .reclaimable = true},
        {.name = "rate6", .reclaimable = true},
        {.name = "rate5", .reclaimable = true},
        {.name = "rate4", .reclaimable = true},
        {.name = "rate3", .reclaimable = true},
        {.name = "rate2", .reclaimable = true},
        {.name = "rate1", .reclaimable = true},
        {.name = "rate0", .reclaimable = true, .cold = true, .file_backed = true, .lazy = true}};
    static constexpr tier_table table{rows};
    static_assert(table.valid() && table.count() == classes + 1);
    static constexpr tier_id hottest = 1;
    static constexpr tier_id coldest = classes;

    static constexpr unsigned windows_to_prove = 7;
    static constexpr double move_budget = 0.05; // of the objects, per window
    // Objects change their class for ever, so holes never stop coming; each counts as inflation.
    static constexpr double dense_enough = 0.94;
    static constexpr double usual_fault_seconds = 100e-6; // before one was measured
    // A program that hardly runs may have a few faults nevertheless: it is taken to run for at least
    // this share of the time.
    static constexpr double least_running = 0.02;

    explicit graded(const options& settings, unsigned saturation = ~0u) noexcept;

    const tier_table& tiers() const noexcept override { return table; }
    unsigned state_bits() const noexcept override { return 16; }
    void configure(const options& settings) noexcept override;
    void begin_window(const window_beginning& now) noexcept override;
    void decide(word_facts& word, word_verdict& verdict) noexcept override;
    directives end_of_window(const window_facts& facts) noexcept override;
    double compacted_below(double asked) const noexcept override {
        return asked > dense_enough ? asked : dense_enough;
    }
    bool leaves(tier_id id, const place& piece) const noexcept override {
        return id >= hottest && id <= coldest && price_.leaves(id, piece);
    }

    static constexpr unsigned class_of(tier_id id) noexcept { return coldest - id; }
    static constexpr tier_id tier_of(unsigned cls) noexcept { return coldest - cls; }
    // The tier for a rate in sixteenths of an octave.
    static tier_id tier_of_rate(int sixteenths) noexcept;

  private:
    static constexpr unsigned outside_shift = 12;
    static constexpr std::uint16_t touched_early = 0x8000;
    static_assert(windows_to_prove < 8);
    static constexpr int outside_zero = 4;
    static constexpr int outside_enough = 2;
    static constexpr int outside_most = 3;

    static constexpr std::uintptr_t region_bytes = 128 << 10;
    static constexpr std::size_t regions =
        128; // regions that are a multiple of so many apart are one
    static std::size_t region_of(const word_facts& word) noexcept {
        return word.base / region_bytes % regions;
    }
    unsigned block_of(const word_facts& word) const noexcept {
        const co_access& here = by_region_[region_of(word)];
        const unsigned all = together_.block();
        return !here.knows() ? all : here.block() == 1 ? 1 : here.joins(all) ? all : here.block();
    }

    int outside_by(int rate, tier_id at) const noexcept;
    void find_inside() noexcept;
    static int outside_of(std::uint16_t state) noexcept;
    static std::uint16_t older(std::uint16_t state) noexcept;
    bool relieves(const word_facts& word, unsigned slot) noexcept;
    static bool may_become_hotter(const word_facts& word, unsigned slot) noexcept;
    static bool in_use(const word_facts& word, unsigned slot) noexcept {
        return (word.touched >> slot & 1) != 0 || (word.state[slot] & touched_early) != 0;
    }
    void watch_neighbours(const word_facts& word) noexcept;
    void join_neighbours(word_facts& word) noexcept;
    void count_windows(word_facts& word) noexcept;
    void count_window(word_facts& word, unsigned slot) noexcept;
    void judge(word_facts& word, unsigned slot) noexcept;
    void judge_by_size(word_facts& word, unsigned slot, int rate) noexcept;
    int size_of(const word_facts& word, unsigned slot) noexcept;
    void note_a_size(const word_facts& word) noexcept;
    static tier_id expected_tier(const word_facts& word, unsigned slot) noexcept;
    tier_id wanted_tier(const word_facts& word, unsigned slot) noexcept;
    void count_kept(const word_facts& word, unsigned slot) noexcept;
    void set_cut(const window_facts& facts) noexcept;
    bool within_budget(unsigned distance, const word_facts& word, unsigned slot) const noexcept;
    void set_budget() noexcept;
    void correct(double measured, double predicted) noexcept;
    double assumed_hazard(tier_id id) const noexcept;
    double cold_hazard(const reuse_ages& ages, double assumed, bool counts) noexcept;

    touch_rate rates_;
    co_access together_; // all regions
    std::array<co_access, regions> by_region_;
    std::uint32_t words_ = 0; // of this window
    relief relief_;
    size_scale sizes_;
    window_length length_;
    std::uint64_t used_ = 0, born_ = 0; // objects of this window
    bool early_ = false;
    // Where only the coldest class can leave and memory is short, what has a rate below this belongs there; in sixteenths
    // of an octave, 0: the end of the coldest class.
    int cut_ = 0;
    static constexpr int cut_step = 4; // kept_ counts by so many
    // What is touched in more than half of the windows (ln 2 touches per window are 4.5 octaves) stays: it would be back in
    // the next. So if that alone is over the budget, the process is.
    static constexpr int highest_cut = 16 * 9 / 2;
    // Of each tier: rates, in sixteenths, that are within it whatever the object's size.
    struct bounds {
        int least = 1, most = 0;
    };
    std::array<bounds, classes + 1> inside_{};
    bool counts_kept_ = false;
    std::uint64_t wanted_bytes_ = 0;
    // Of this window: bytes in other classes than the coldest, by the rate; the last: all that is not below highest_cut.
    std::array<std::uint64_t, highest_cut / cut_step + 1> kept_{};
    double allowed_stall_ = 0; // seconds, as the last window that was not early says
    double stall_target_ = 0;
    double minute_seconds_ = 60;

    // Of this window and the one before.
    std::uint64_t seen_ = 0;
    std::array<std::uint64_t, classes> wanted_{}; // moves between classes, by distance
    unsigned least_distance_ = 1;                 // that moves
    double share_at_least_ = 1;                   // of the moves of just that distance
    std::uint32_t turn_ = 0;                      // which of them, changes with the window

    fault_price price_;
    struct {
        double exposed = 0, touched = 0; // pages of the coldest class
    } cold_;
    double correction_ = 1; // of predicted faults
    directives current_;
};

} // namespace obase::policy
