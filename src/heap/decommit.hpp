// SPDX-License-Identifier: MIT
//
// Partial decommit: the pages of a partial run that hold only free blocks are given back while the
// run is in use.
//
// Why: every block in a thread's cache keeps a run, and only that thread can take it out. Once the
// collector has moved all objects away, a thread that loaded them and only reads from then on would
// hold as many runs as it has cached blocks, up to 64 of each bin.
//
// A page that was given back is *decommitted*, a bit in slab_run::decommitted_pages. A fresh block
// that lies in one, be it in part, is *decommitted* too: free, and on no list. recommit() takes
// pages one after the other, in the order of addresses, and lists the blocks that lie in none that
// is still decommitted.
//
// Invariants
//   A block that is handed out or on a list lies in no decommitted page. So the thread that frees a
//   block may write a link into it, and a list can be followed without touching decommitted pages.
//   A fresh block lies in each decommitted page: a run with decommitted pages has room.
//   `decommitted_pages` changes while one thread has the run: popped off its stack, under
//   decommitting_, or ATTACHED to a heap, under its lock. Fork holds both. So does the local list
//   of a run that is no thread's current one.
//   decommit_idle_runs() keeps one run at a time from those who allocate. Its pages become
//   decommitted, in the books, before they are given back: from then on no list leads there.
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
std::uint32_t slab_heap<P>::decommitted_blocks(const slab_run& run) const noexcept {
    const std::uint32_t decommitted = run.decommitted_pages.load_relaxed();
    if (decommitted == 0) return 0;
    const std::size_t size = run.block_size.load_relaxed();
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < run.fresh; ++i)
        count += (pages_of_blocks(i, 1, size) & decommitted) != 0 ? 1U : 0U;
    return count;
}

// Lists the blocks that need only the lowest decommitted page, or further ones if there are none.
// False: no block is decommitted. Preconditions: the caller has the run; its local list is empty.
template <class P>
bool slab_heap<P>::recommit(slab_run& run) noexcept {
    std::uint32_t decommitted = run.decommitted_pages.load_relaxed();
    if (decommitted == 0) return false;
    const std::size_t before = decommitted_bytes(run);
    const std::size_t size = run.block_size.load_relaxed();
    void* list = nullptr;
    while (decommitted != 0 && list == nullptr) {
        const std::size_t page =
            static_cast<std::size_t>(std::countr_zero(decommitted)) * os::page_size;
        decommitted &= decommitted - 1;
        const std::size_t first = page / size;
        const std::size_t last =
            std::min<std::size_t>(run.fresh, (page + os::page_size - 1) / size + 1);
        for (std::size_t i = last; i-- > first;) {
            if ((pages_of_blocks(i, 1, size) & decommitted) != 0)
                continue; // comes with a later page
            char* const block = memory_of(run) + i * size;
            set_next(block, list);
            list = block;
        }
    }
    run.decommitted_pages.store_relaxed(static_cast<std::uint16_t>(decommitted));
    new_bytes_.fetch_add_relaxed(before - decommitted_bytes(run));
    if (list != nullptr) run.free.store_release(list);
    return list != nullptr;
}

// True if the run is mostly free and has as many blocks in use as when this was last asked.
// Precondition: the caller popped the run off its stack.
template <class P>
bool slab_heap<P>::unchanged_since_last_scan(slab_run& run) noexcept {
    const std::uint32_t out = run.used.load_relaxed() - run.word.view().count;
    if (run.last_in_use == out) return mostly_free(run, out);
    run.last_in_use = static_cast<std::uint16_t>(out);
    return false;
}

// Looks at the idle runs that scavenge_partial() left on top of their stacks, at each once while it
// stays as it is: their lists are in their pages, and to follow them in each round would keep those
// in DRAM. Returns the bytes given back.
template <class P>
std::size_t slab_heap<P>::decommit_idle_runs(pacer& ask) noexcept {
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
            bytes += decommit_unused_pages(run, ask);
            idle_[bin].push(number, next_link());
            ++looks;
            if (!ask.may_continue()) return false;
        }
        return looks < slab_detail::max_looks;
    });
    return bytes;
}

// Precondition: the caller has the run, off its stack. Its lists become one, in the order of addresses.
template <class P>
std::size_t slab_heap<P>::decommit_unused_pages(slab_run& run, pacer& ask) noexcept {
    std::unique_lock hold(decommitting_); // fork waits: the child would find half a list
    const std::size_t size = run.block_size.load_relaxed();
    std::uint32_t decommitted = run.decommitted_pages.load_relaxed();
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
        if (!free.test(i) && (pages & decommitted) == 0) wanted |= pages;
    }
    std::uint32_t spare = pages_of_blocks(0, run.fresh, size) & ~wanted & ~decommitted;
    if (std::popcount(spare) < slab_detail::min_pages) spare = 0;
    decommitted |= spare;
    const auto list_blocks = [&] {
        void* list = nullptr;
        for (std::size_t i = run.fresh; i-- > 0;) {
            if (!free.test(i) || (pages_of_blocks(i, 1, size) & decommitted) != 0) continue;
            char* const block = memory + i * size;
            set_next(block, list);
            list = block;
        }
        run.free.store_release(list);
        run.decommitted_pages.store_relaxed(static_cast<std::uint16_t>(decommitted));
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
        decommitted &= ~kept;
        list_blocks();
    }
    return static_cast<std::size_t>(std::popcount(spare & ~kept)) * os::page_size;
}

} // namespace obase::heap
