// SPDX-License-Identifier: MIT
//
// Quiet bins: size classes of which a thread wants little between two looks of the collector.
//
// Why: NEW has 32 size classes per doubling, so that an object loses 3 % of its block. A thread that makes objects of all
// sizes, and of each size only some, would fill a run of 64 KiB in each class: what the collector moves away, or other
// threads free, comes back as blocks of the same run, and a current run keeps its pages. For two threads that is 26 MiB
// beside whatever lives.
//
//   A bin whose blocks are above fine_from *borrows* from the last bin of its eight, four of which make a doubling, where it
//   would have to start a run, until it has had half a run of blocks in the round. So 20 bins have runs, and those of
//   which more is asked for. An object in a borrowed block loses at most a fifth of it; once it is moved, or freed,
//   nothing of that is left.
//   Once in a round a thread gives back what it keeps of each bin: the blocks of the cache go to their runs, and a current
//   run of which little is out goes to those who need one, as if the thread had ended. Wholly free ones serve any bin then,
//   and the collector decommits what nobody takes.
//
// A *round* ends when the collector returns memory. Without it there is one round, in which nothing is borrowed. What
// a thread does for a round it does in its slow paths, some bins at a time, which costs as much as a few allocations
// from a new run; one that has none keeps what it has.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/slab.hpp"

namespace obase::heap {

namespace slab_detail {

inline constexpr unsigned lending_classes = 8;
static_assert(fine_per_doubling % lending_classes == 0);

// The class that one borrows from; itself: it does not.
constexpr unsigned lender_of(unsigned index) noexcept {
    if (index < fine_classes_begin) return index;
    return fine_classes_begin + ((index - fine_classes_begin) | (lending_classes - 1));
}

// What note_size() has to say fits in a byte.
constexpr bool slack_of_borrowed_fits() noexcept {
    for (unsigned index = fine_classes_begin; index < size_classes; ++index) {
        const std::size_t least = class_block_size(index - 1) + granule;
        if ((class_block_size(lender_of(index)) - least) / granule > UINT8_MAX) return false;
    }
    return true;
}
static_assert(slack_of_borrowed_fits());

// Bins that a thread looks at in one slow path.
inline constexpr unsigned bins_per_look = 4;

} // namespace slab_detail

// A run to take one block from. Null: the bin is to have its own, or there is none. Preconditions: as find_run(); the
// bin has no run with room.
template <class P>
slab_run<P>* slab_heap<P>::borrow(thread_heap& heap, unsigned number, bool urgent) noexcept {
    const unsigned index = number % size_classes;
    const unsigned lender = slab_detail::lender_of(index);
    const std::uint32_t round = rounds_.load_relaxed();
    if (lender == index || round == 0) return nullptr;
    const std::size_t alignment = std::size_t{1}
                                  << attributes_at(number / size_classes).log2_alignment;
    if (class_block_size(lender) % alignment != 0) return nullptr;
    thread_bin& bin = heap.bin[number];
    if (bin.borrowed_in != static_cast<std::uint8_t>(round)) {
        bin.borrowed_in = static_cast<std::uint8_t>(round);
        bin.borrowed = 0;
    }
    if (bin.borrowed >= run_bytes / class_block_size(index) / 2) return nullptr;
    ++bin.borrowed;
    const unsigned from = number - index + lender;
    use_bin(heap, from);
    return find_run(heap, from, urgent);
}

// Precondition: heap.lock is held, by its thread where it has one.
template <class P>
void slab_heap<P>::give_back_quiet_runs(thread_heap& heap) noexcept {
    const std::uint32_t round = rounds_.load_relaxed();
    if (heap.looked_in == round) return;
    for (unsigned looks = 0; heap.look_at < bins;) {
        const std::uint64_t left = heap.used_bins[heap.look_at / 64] >> (heap.look_at % 64);
        if (left == 0) {
            heap.look_at = (heap.look_at / 64 + 1) * 64;
            continue;
        }
        if (looks++ == slab_detail::bins_per_look) return; // the rest in the next slow path
        heap.look_at += static_cast<unsigned>(std::countr_zero(left));
        thread_bin& bin = heap.bin[heap.look_at++];
        flush(heap, bin, 0);
        slab_run* const run = bin.current;
        if (run == nullptr) continue;
        const std::uint32_t back = run->word.view().count + 1; // itself, as current
        if (!mostly_free(*run, run->used.load_relaxed() - back)) continue;
        leave_current(bin);
        release_run(*run, heap.id);
    }
    heap.look_at = 0;
    heap.looked_in = round;
}

} // namespace obase::heap
