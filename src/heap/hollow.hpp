// SPDX-License-Identifier: MIT
//
// Hollow runs: the pages of a partial run under free blocks only are given back while the run lives.
//
// What it is for: every block on a thread's recent lists keeps a run, and nobody but that thread can
// take it off. Once the collector has moved all objects away, a thread that loaded them and only
// reads from then on would hold as many runs as it has recent blocks, up to 64 of each bin.
//
// A page that was given back is *absent*, a bit in slab_run::absent. A fresh block that lies in one,
// be it in part, is *away*: free, and on no list. bring_back() takes pages in one after the other, in
// the order of addresses, and lists the blocks that are then no longer away.
//
// Invariants
//   A block that is handed out or on a list lies in no absent page. So whoever frees a block may
//   write a link into it, and a list can be followed without touching absent pages.
//   A fresh block lies in each absent page: a run with absent pages has room.
//   `absent` changes while one thread has the run: popped off its stack, under hollowing_, or
//   ATTACHED to a heap, under its lock. Fork holds both. So does the local list of a run that is no
//   thread's current one.
//   hollow_idle_runs() keeps one run at a time from those who allocate. Its pages become absent, in
//   the books, before they are given back: from then on no list leads there.
#pragma once

#include <algorithm>
#include <bit>
#include <bitset>
#include <mutex>

#include "heap/slab.hpp"

namespace obase::heap {

namespace slab_detail {

// Fewer pages are not worth the calls, nor the faults if the run is used again.
inline constexpr int min_pages = 4;

// Runs: 64 MiB. A look costs 10 to 70 us.
inline constexpr unsigned max_looks = 1024;

using block_set = std::bitset<run_bytes / granule>;

} // namespace slab_detail

template <class P>
std::uint32_t slab_heap<P>::blocks_away(const slab_run& run) const noexcept {
    const std::uint32_t absent = run.absent.load_relaxed();
    if (absent == 0) return 0;
    const std::size_t size = run.block_size.load_relaxed();
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < run.fresh; ++i)
        count += (pages_of_blocks(i, 1, size) & absent) != 0 ? 1U : 0U;
    return count;
}

// Lists the blocks that come back with the lowest absent page, or with more if there are none. False:
// no block is away. Preconditions: the caller has the run; its local list is empty.
template <class P>
bool slab_heap<P>::bring_back(slab_run& run) noexcept {
    std::uint32_t absent = run.absent.load_relaxed();
    const std::size_t size = run.block_size.load_relaxed();
    void* list = nullptr;
    while (absent != 0 && list == nullptr) {
        const std::size_t page = static_cast<std::size_t>(std::countr_zero(absent)) * os::page_size;
        absent &= absent - 1;
        const std::size_t first = page / size;
        const std::size_t last =
            std::min<std::size_t>(run.fresh, (page + os::page_size - 1) / size + 1);
        for (std::size_t i = last; i-- > first;) {
            if ((pages_of_blocks(i, 1, size) & absent) != 0) continue; // comes with a later page
            char* const block = memory_of(run) + i * size;
            set_next(block, list);
            list = block;
        }
    }
    run.absent.store_relaxed(static_cast<std::uint16_t>(absent));
    if (list != nullptr) run.free.store_release(list);
    return list != nullptr;
}

// Whether little is out, and as much as when this was last asked. Precondition: the caller popped the
// run off its stack.
template <class P>
bool slab_heap<P>::is_as_before(slab_run& run) noexcept {
    const std::uint32_t out = run.used.load_relaxed() - run.word.view().count;
    if (run.last_out == out) return little_is_out(run, out);
    run.last_out = static_cast<std::uint16_t>(out);
    return false;
}

// Looks at the idle runs that scavenge_partial() left on top of their stacks, at each once while it
// stays as it is: their lists are in their pages, and to follow them in each round would keep those
// in DRAM. Returns the bytes given back.
template <class P>
std::size_t slab_heap<P>::hollow_idle_runs(pacer& ask) noexcept {
    std::size_t bytes = 0;
    unsigned looks = 0;
    while_bins([&](unsigned bin) {
        while (looks < slab_detail::max_looks) {
            const std::uint32_t number = partial_[bin].pop(next_link());
            if (number == partial_[bin].none) break;
            slab_run& run = runs_[number];
            if (!run.idle) {
                partial_[bin].push(number, next_link());
                break;
            }
            run.idle = false;
            bytes += hollow(run, ask);
            idle_[bin].push(number, next_link());
            ++looks;
            if (!ask.go_on()) return false;
        }
        return looks < slab_detail::max_looks;
    });
    return bytes;
}

// Precondition: the caller has the run, off its stack. Its lists become one, in the order of addresses.
template <class P>
std::size_t slab_heap<P>::hollow(slab_run& run, pacer& ask) noexcept {
    std::unique_lock hold(hollowing_); // fork waits: the child would find half a list
    const std::size_t size = run.block_size.load_relaxed();
    std::uint32_t absent = run.absent.load_relaxed();
    char* const memory = memory_of(run);

    slab_detail::block_set free;
    const auto note = [&](void* block) {
        for (; block != nullptr; block = next_of(block))
            free.set(static_cast<std::size_t>(static_cast<char*>(block) - memory) / size);
    };
    note(run.free.load_relaxed());
    std::uint32_t came_back = 0;
    if (const std::uint32_t head = run.word.grab(&came_back)) {
        note(memory + (head - 1) * granule);
        run.used.store_relaxed(run.used.load_relaxed() - came_back);
    }

    std::uint32_t wanted = 0; // pages of blocks that are handed out
    for (std::size_t i = 0; i < run.fresh; ++i) {
        const std::uint32_t pages = pages_of_blocks(i, 1, size);
        if (!free.test(i) && (pages & absent) == 0) wanted |= pages;
    }
    std::uint32_t spare = pages_of_blocks(0, run.fresh, size) & ~wanted & ~absent;
    if (std::popcount(spare) < slab_detail::min_pages) spare = 0;
    absent |= spare;
    const auto list_blocks = [&] {
        void* list = nullptr;
        for (std::size_t i = run.fresh; i-- > 0;) {
            if (!free.test(i) || (pages_of_blocks(i, 1, size) & absent) != 0) continue;
            char* const block = memory + i * size;
            set_next(block, list);
            list = block;
        }
        run.free.store_release(list);
        run.absent.store_relaxed(static_cast<std::uint16_t>(absent));
    };
    list_blocks();
    if (spare == 0) return 0;
    hold.unlock();

    ask.call_begins();
    std::uint32_t kept = 0; // the system would not take them
    for (std::uint32_t left = spare; left != 0;) {
        const int first = std::countr_zero(left);
        const int count = std::countr_one(left >> first);
        const std::uint32_t pages = ((1U << count) - 1) << first;
        if (os::advise(memory + static_cast<std::size_t>(first) * os::page_size,
                       static_cast<std::size_t>(count) * os::page_size, os::advice::dontneed) != 0)
            kept |= pages;
        left &= ~pages;
    }
    ask.call_ends();
    if (kept != 0) {
        hold.lock();
        absent &= ~kept;
        list_blocks();
    }
    return static_cast<std::size_t>(std::popcount(spare & ~kept)) * os::page_size;
}

} // namespace obase::heap
