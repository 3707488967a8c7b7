// SPDX-License-Identifier: MIT
//
// policy::touch_rate: how often a slot's object is touched, estimated from one bit per window and kept
// in 12 bits.
//
//     state = rates.after(state, touched, idle_windows);
//     rates.sixteenths(state); // 16 * log2(touches per window / base_rate)
//
// The bits: 0..7 e, the share of windows with a touch: 0, or 2^-((255 - e) / 16); 8..11 n, the windows it
// is made of, at most 15; 12..14 free, the owner's. n 0: nothing is known yet.
//
// e is the mean of the last n bits, and beyond 15 windows a moving average: e += (touched - e) / n, with
// n capped at 16. Rounding is stochastic, so that steps smaller than an octave's sixteenth are not lost.
// What a state says is as unlikely as 1 in 64 (a touch of what is hardly touched, or many windows
// without one) makes the estimate forget: n falls to a quarter, at least 3, and it learns again.
//
// Touches are taken for a Poisson process: a share p of windows means -ln(1 - p) touches per window.
// What n windows can tell is limited, so p is drawn towards a third by .45 of a window.
//
// Source: simulation (docs/temperature.md). Cost: two looks into tables of 17 and 8 KiB, and a random
// number. Threads: the collector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace obase::policy {

class touch_rate {
  public:
    static constexpr unsigned most_windows = 16; // n counts no further; stored as 15
    static constexpr double base_rate = 0.03;    // touches per window at 0 octaves

    touch_rate() noexcept;

    static unsigned windows(std::uint16_t state) noexcept { return state >> 8 & 15; }

    // One more window. `idle`: consecutive windows without a touch, this one included.
    std::uint16_t after(std::uint16_t state, bool touched, unsigned idle) noexcept;

    // In sixteenths; of a state with n > 0.
    int sixteenths(std::uint16_t state) const noexcept {
        return octaves_[windows(state)][state & 255];
    }

  private:
    static constexpr std::uint16_t stored_windows = 15;

    std::uint32_t random() noexcept { // xorshift: Marsaglia 2003
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        return random_ ^= random_ << 5;
    }

    // By n after the window, touched or not, and e before: the next e, and in the low byte the chance
    // in 256 of one more.
    std::array<std::array<std::array<std::uint16_t, 256>, 2>, most_windows + 1> next_;
    std::array<std::array<std::int16_t, 256>, stored_windows + 1> octaves_;
    // By e: untouched windows in a row that are as unlikely as 1 in 64; saturated.
    std::array<std::uint16_t, 256> surprising_idle_;
    std::uint8_t surprising_touch_ = 0; // e below this: a touch is as unlikely
    std::uint32_t random_ = 0x9e3779b9;
};

} // namespace obase::policy
