// SPDX-License-Identifier: MIT
//
// policy::touch_rate: how often a slot's object is touched, estimated from one bit per window and kept
// in 12 bits.
//
//     rates.end_window(); // once, before the first slot of a window
//     state = rates.after(state, touched, idle_windows);
//     rates.sixteenths(state); // 16 * log2(touches per window / base_rate)
//
// The bits: 0..7 e, the share of windows with a touch: 0, or 2^-((255 - e) / 24); 8..11 a code for n, the
// windows it is made of, at most 64; 12..14 free, the owner's. n 0: nothing is known yet.
//
// e is the mean of the last n bits: e += (touched - e) / (n + 1). Beyond six windows not every n has a code,
// and n goes to the next by chance, so that it counts right on average. Rounding of e is stochastic, too: steps
// smaller than a unit are not lost. In one window chance is the same for all slots: objects that were touched in the same
// windows have the same state, and stay together. What a state says is as unlikely as 1 in 64 (a touch of what is hardly
// touched, or many windows without one) makes the estimate forget: n falls to a quarter, at least 3, and it
// learns again.
//
// How long estimates remember is found out: n is at most memory() windows. What the estimates expect of all
// slots in a window is compared with what happened, sum((touched - e)^2) with sum(e (1 - e)). Where the
// excess is more than estimates of that length have by chance, the load is changing, and the memory is
// halved, or set to 8 windows at once when the excess is a quarter; otherwise it grows by 15 % a window. So a
// load that does not change is ranked well and hardly moves, and a shift is followed within some 16 windows.
//
// Touches are taken for a Poisson process: a share p of windows means -ln(1 - p) touches per window.
// What n windows can tell is limited, so p is drawn towards a third by .45 of a window. What a state is worth is
// then measured: p is multiplied by the touches that slots with a state like it had over those they were
// expected to have, in a mean over some four windows. So one touch in six windows means little where most objects
// with one touch were touched by a pass over all of them, and are not touched again.
//
// In one window a state has two successors, by the touch: they are worked out where a state is met first, and how
// often it was met says at the end of the window all that is to be summed.
//
// Source: simulation (docs/temperature.md). Cost: a look and a count in a table of 64 KiB, of which a few hundred entries
// are in use; 4096 logarithms a window. Threads: the collector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace obase::policy {

class touch_rate {
  public:
    static constexpr unsigned most_windows = 64; // n counts no further
    static constexpr double least_memory = 8;    // windows
    static constexpr double base_rate = 0.03;    // touches per window at 0 octaves

    touch_rate() noexcept;

    // n
    static unsigned windows(std::uint16_t state) noexcept { return windows_of_[code(state)]; }

    void end_window() noexcept;
    // Another chance, as each window has.
    void draw() noexcept;
    double memory() const noexcept { return memory_; } // windows
    // Of the window that end_window() ended; 1: as expected. 0: no slot was known well enough.
    double misfit() const noexcept { return misfit_; }

    // One more window. `idle`: consecutive windows without a touch, this one included.
    std::uint16_t after(std::uint16_t state, bool touched, unsigned idle) noexcept {
        successor& s = successors_[(state & state_mask) * 2u + touched];
        if (s.met++ == 0) work_out(s, state, touched);
        const bool forgets = s.forgets_after != 0 && idle >= s.forgets_after;
        const unsigned next =
            forgets ? (s.next & 255u) | (unsigned{s.next} >> 12 << 8) : s.next & state_mask;
        return static_cast<std::uint16_t>((state & owners_bits) | next);
    }

    // The share of windows with a touch that is expected; of a state with n > 0.
    double expected(std::uint16_t state) const noexcept {
        return expected_[code(state)][state & 255];
    }
    // Of slots whose objects are used together: all get the mean of their e, rounded by chance, and of their n.
    struct sum {
        double shares = 0;
        unsigned codes = 0;
        unsigned count = 0;
    };
    void add(sum& all, std::uint16_t state) const noexcept {
        all.shares += share_[state & 255];
        all.codes += code(state);
        ++all.count;
    }
    std::uint16_t joined(std::uint16_t state, const sum& all) const noexcept; // all.count > 0
    // Of a bit that is set with a chance of expected(state).
    double deviation(std::uint16_t state) const noexcept {
        return deviation_[code(state)][state & 255];
    }

    // In sixteenths; of a state with n > 0.
    int sixteenths(std::uint16_t state) const noexcept {
        return octaves_[code(state)][state & 255];
    }

  private:
    static constexpr unsigned state_mask = 0xfff, owners_bits = 0x7000;
    static constexpr unsigned codes = 16;
    static constexpr std::array<std::uint8_t, codes> windows_of_{0,  1,  2,  3,  4,  5,  6,  8,
                                                                 10, 12, 16, 20, 26, 34, 48, 64};
    static unsigned code(std::uint16_t state) noexcept { return state >> 8 & 15; }
    static unsigned code_within(double windows) noexcept; // the largest that is not more
    // What a state becomes in this window.
    struct successor {
        std::uint32_t met = 0;           // slots, since the window began; 0: the rest is not known
        std::uint16_t forgets_after = 0; // windows without a touch; 0: it does not
        std::uint16_t next = 0; // the state; above it the code that it has instead if it forgets
    };
    static_assert(sizeof(successor) == 8);
    void work_out(successor& s, std::uint16_t state, bool touched) const noexcept;
    unsigned rounded(double share, unsigned chance) const noexcept;
    void sum_up() noexcept;
    void find_octaves() noexcept;

    std::uint32_t random() noexcept { // xorshift: Marsaglia 2003
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        return random_ ^= random_ << 5;
    }

    std::array<std::array<std::int16_t, 256>, codes> octaves_; // in sixteenths
    std::array<std::array<float, 256>, codes> expected_; // the share that is expected of a window
    std::array<std::array<float, 256>, codes> deviation_{};
    std::array<successor, 2 * (state_mask + 1)> successors_{}; // by state, and by touched
    struct experience { // touches of slots with states that are alike
        double expected = 0;
        double happened = 0;
    };
    static constexpr unsigned groups = 32; // of e
    static constexpr unsigned group_of(unsigned e) noexcept { return e * groups / 256; }
    std::array<std::array<experience, groups>, codes> experience_{};
    experience experience_of(unsigned n, unsigned e) const noexcept;
    // By e: untouched windows in a row that are as unlikely as 1 in 64; saturated.
    std::array<std::uint16_t, 256> surprising_idle_;
    std::uint8_t surprising_touch_ = 0; // e below this: a touch is as unlikely
    double memory_ = most_windows;
    unsigned last_code_ = codes - 1; // of memory_
    double misfit_ = 0;
    double off_ = 0, chance_ = 0; // squares, and those expected by chance; of what was summed up
    std::uint32_t random_ = 0x9e3779b9;
    std::uint32_t drawn_ = 0x9e3779b9; // of this window
    std::array<double, 256> share_{};  // by e
};

} // namespace obase::policy
