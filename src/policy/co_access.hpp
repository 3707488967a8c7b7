// SPDX-License-Identifier: MIT
//
// co_access: of how many neighbouring slots the objects are used together.
//
//     co_access together;
//     together.note(residual, deviation, count);  // of some words: what was touched minus what was expected, and its
//                                                 // standard deviation, of their slots in order
//     together.end_window();
//     together.block()  // 1: each object for itself; else so many neighbours, a power of two up to 64
//
// Objects that were allocated together are often used together: those of a session, a block, a row. An estimate
// for each of them sorts them into different places, and then one use of all needs as many pages as there are objects.
// Where touches of neighbours come together their estimates should be one.
//
// For blocks of 2, 4 ... 64 neighbours the touches beyond what was expected are multiplied in pairs: over the
// product of their deviations that is the correlation, 0 where objects are used independently, whatever their rates
// are. Objects used in groups of g have the same correlation in all blocks up to g, and half of it in blocks of 2g. So the
// largest block is taken that has most of what the best one has. What all objects have in common (more load in this
// window) is the square of the mean, and does not count. Sums are kept for some eight windows.
//
// Source: simulation (docs/temperature.md). Threads: the collector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace obase::policy {

class co_access {
  public:
    static constexpr unsigned most = 64;
    static constexpr double least_correlation = 0.05;
    static constexpr double most_of_the_best = 0.6;
    static constexpr double nearly_most = 0.53; // blocks of twice the size of a group have .5
    static constexpr double enough = 256;       // products of deviations of pairs, to judge by

    void note(const double* residual, const double* deviation, unsigned count) noexcept {
        for (unsigned i = 0; i < count; ++i) {
            sum_ += residual[i];
            slots_ += 1;
        }
        unsigned size = 2;
        for (scale& at : scales_) {
            for (unsigned begin = 0; begin + size <= count; begin += size) {
                double sum = 0, squares = 0, deviations = 0, variances = 0;
                for (unsigned i = begin; i < begin + size; ++i) {
                    sum += residual[i];
                    squares += residual[i] * residual[i];
                    deviations += deviation[i];
                    variances += deviation[i] * deviation[i];
                }
                at.together += sum * sum - squares;
                at.apart += deviations * deviations - variances;
                at.pairs += size * (size - 1.);
            }
            size *= 2;
        }
    }

    void end_window() noexcept {
        const double common = slots_ == 0 ? 0 : sum_ / slots_;
        sum_ = slots_ = 0;
        std::array<double, scale_count> correlation{};
        double best = 0;
        for (std::size_t i = 0; i < scale_count; ++i) {
            scale& at = scales_[i];
            kept& all = kept_[i];
            all.together =
                all.together * weight_of_before + at.together - at.pairs * common * common;
            all.apart = all.apart * weight_of_before + at.apart;
            at = scale();
            correlation[i] = all.apart < enough ? 0 : all.together / all.apart;
            best = std::max(best, correlation[i]);
        }
        block_ = 1;
        joins_ = 1;
        if (best < least_correlation) return;
        for (std::size_t i = 0; i < scale_count; ++i)
            if (correlation[i] >= most_of_the_best * best) block_ = 2u << i;
        for (std::size_t i = 0; i < scale_count; ++i)
            if (correlation[i] >= nearly_most * best) joins_ |= 2u << i;
    }

    unsigned block() const noexcept { return block_; }
    // Blocks of so many, which others have, would do as well, as far as this can tell.
    bool joins(unsigned block) const noexcept { return (joins_ & block) != 0; }
    // Enough was seen of neighbours to say so.
    bool knows() const noexcept { return kept_[0].apart >= enough; }

  private:
    static constexpr std::size_t scale_count = 6; // 2, 4 ... 64
    static constexpr double weight_of_before = 7. / 8;

    struct scale {
        double together = 0, apart = 0, pairs = 0;
    };
    struct kept {
        double together = 0, apart = 0;
    };
    std::array<scale, scale_count> scales_{};
    std::array<kept, scale_count> kept_{};
    double sum_ = 0, slots_ = 0;
    unsigned block_ = 1;
    unsigned joins_ = 1; // sizes of blocks, a bit each
};

} // namespace obase::policy
