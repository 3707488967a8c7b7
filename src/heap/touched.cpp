// SPDX-License-Identifier: MIT
#include "heap/touched.hpp"

#include <bit>

namespace obase::heap {
namespace {
constexpr unsigned page_shift = 12;
constexpr std::size_t pages_per_run = run_bytes >> page_shift;
static_assert(os::page_size == std::size_t{1} << page_shift && pages_per_run == 16);
} // namespace

bool touched_map::create(std::size_t range_bytes) noexcept {
    const std::size_t runs = range_bytes >> run_shift;
    return pages_.reserve(runs) && runs_.reserve((runs + 63) / 64);
}

void touched_map::destroy() noexcept {
    pages_.release();
    runs_.release();
}

void touched_map::mark(std::size_t offset, std::size_t size) noexcept {
    if (size == 0) return;
    const std::size_t first = offset >> page_shift;
    const std::size_t last = (offset + size - 1) >> page_shift;
    const std::size_t last_run = last / pages_per_run;
    if (!pages_.commit_to(last_run + 1) || !runs_.commit_to(last_run / 64 + 1)) return;
    if (last_run / 64 + 1 > words_) words_ = last_run / 64 + 1;
    totals_.bytes += size;
    for (std::size_t page = first; page <= last;) {
        const std::size_t run = page / pages_per_run;
        const std::size_t from = page % pages_per_run;
        const std::size_t to = run == last_run ? last % pages_per_run : pages_per_run - 1;
        const unsigned mask = ((2U << to) - 1U) & ~((1U << from) - 1U);
        std::uint16_t& seen = pages_[run];
        if (const unsigned fresh = mask & ~unsigned{seen}; fresh != 0) { // few, of many objects
            totals_.pages += static_cast<unsigned>(std::popcount(fresh));
            seen = static_cast<std::uint16_t>(seen | fresh);
            runs_[run / 64] |= std::uint64_t{1} << (run % 64);
        }
        page = (run + 1) * pages_per_run;
    }
}

void touched_map::clear() noexcept {
    for (std::size_t word = 0; word < words_; ++word) {
        for (std::uint64_t left = runs_[word]; left != 0; left &= left - 1) {
            pages_[word * 64 + static_cast<unsigned>(std::countr_zero(left))] = 0;
        }
        runs_[word] = 0;
    }
    words_ = 0;
    totals_ = {};
}

bool touched_map::run_touched(std::size_t offset) const noexcept {
    const std::size_t run = offset >> run_shift;
    return run / 64 < words_ && (runs_[run / 64] >> (run % 64) & 1U) != 0;
}

void touched_map::walk(void (*visit)(void*, std::size_t, std::size_t), void* context) const {
    const auto is_set = [&](std::size_t run) { return (runs_[run / 64] >> (run % 64) & 1U) != 0; };
    const std::size_t end = words_ * 64;
    for (std::size_t run = 0; run < end;) {
        if (runs_[run / 64] == 0) {
            run = (run / 64 + 1) * 64;
        } else if (!is_set(run)) {
            ++run;
        } else {
            const std::size_t first = run;
            while (run < end && is_set(run)) ++run;
            visit(context, first, run);
        }
    }
}

void touched_map::walk_pages(void (*visit)(void*, std::size_t, std::size_t), void* context) const {
    std::size_t first = 0, end = 0; // the stretch that may go on
    for (std::size_t word = 0; word < words_; ++word)
        for (std::uint64_t left = runs_[word]; left != 0; left &= left - 1) {
            const std::size_t run = word * 64 + static_cast<unsigned>(std::countr_zero(left));
            for (unsigned seen = pages_[run]; seen != 0; seen &= seen - 1) {
                const std::size_t page =
                    run * pages_per_run + static_cast<unsigned>(std::countr_zero(seen));
                if (page != end) {
                    if (first != end) visit(context, first, end);
                    first = page;
                }
                end = page + 1;
            }
        }
    if (first != end) visit(context, first, end);
}

} // namespace obase::heap
