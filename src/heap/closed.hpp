// SPDX-License-Identifier: MIT
//
// Closed runs: the collector empties them (collector/evacuation.hpp).
//
// A closed run is ATTACHED to an owner that is no thread's heap. So all threads give blocks back to its
// remote list, which no thread looks at, and none allocates from it. Only the collector's thread opens it
// again, or the child of a fork, in which the collector does not exist.
//
// Invariant: a closed run is no thread's current one, on no attached list and on no stack.
#pragma once

#include <algorithm>
#include <mutex>

#include "heap/slab.hpp"

namespace obase::heap {

template <class P>
std::uint32_t slab_heap<P>::blocks_in_use(std::size_t number) const noexcept {
    const slab_run& run = runs_[number];
    const run_view now = run.word.view();
    if (now.state == run_state::free) return 0;
    const std::uint32_t used = run.used.load_relaxed();
    const std::uint32_t back = now.count + (run.current.load_relaxed() ? 1U : 0U);
    return used > back ? used - back : 0;
}

template <class P>
std::size_t slab_heap<P>::room_in_memory(std::size_t number) const noexcept {
    const slab_run& run = runs_[number];
    if (run.word.view().state == run_state::free || run.current.load_relaxed()) return 0;
    const std::size_t size = run.block_size.load_relaxed();
    return run_bytes / size * size - std::min(run_bytes / size * size, decommitted_bytes(run));
}

template <class P>
bool slab_heap<P>::closed(std::size_t number) const noexcept {
    const run_view now = runs_[number].word.view();
    return now.state == run_state::attached && now.owner == closed_owner;
}

template <class P>
void slab_heap<P>::close_runs(std::size_t end, bool (*wanted)(void*, std::size_t),
                              void* context) noexcept {
    const auto close = [](slab_run& run) {
        run.last_in_use = 0;
        run.idle = false;
        run.word.take(closed_owner);
    };
    {
        const std::lock_guard hold(registry_);
        for (std::uint32_t id = 1; id <= heap_count_; ++id) {
            thread_heap& heap = heaps_[id];
            const std::lock_guard hold_heap(heap.lock);
            for (thread_bin& bin : heap.bin) {
                std::uint32_t number = bin.attached;
                for (std::uint32_t i = bin.attached_count; i != 0; --i) {
                    slab_run& run = runs_[number - 1];
                    const bool mine = wanted(context, number - 1);
                    number = run.attached_next;
                    if (!mine) continue;
                    unlist_attached(heap, run);
                    close(run);
                }
            }
        }
    }
    while_bins([&](unsigned bin) {
        for (run_stack<P>* const stacks : {partial_, idle_}) {
            run_stack<P>& stack = stacks[bin];
            if (stack.empty()) continue;
            // Turned round twice, the rest lies as it did.
            std::uint32_t turned = stack.none;
            for (std::uint32_t number = stack.take_all(); number != stack.none;) {
                slab_run& run = runs_[number];
                const std::uint32_t next = run.next.load_relaxed();
                if (wanted(context, number)) {
                    close(run);
                } else {
                    run.next.store_relaxed(turned);
                    turned = number;
                }
                number = next;
            }
            while (turned != stack.none) {
                const std::uint32_t next = runs_[turned].next.load_relaxed();
                stack.push(turned, next_link());
                turned = next;
            }
        }
        return true;
    });
    end = std::min<std::size_t>(end, frontier_.load_acquire());
    for (std::size_t number = 0; number < end; ++number)
        if (wanted(context, number)) runs_[number].word.close_detached(closed_owner);
}

template <class P>
std::size_t slab_heap<P>::open_runs(const std::uint32_t* runs, std::size_t count,
                                    pacer& ask) noexcept {
    if (thread_heap& mine = own_heap(); &mine != &empty_thread_heap<P>) {
        const std::lock_guard hold(mine.lock);
        flush_all(mine);
    }
    constexpr std::size_t most = piece_bytes >> run_shift;
    std::size_t bytes = 0;
    std::uint32_t piece[most];
    std::size_t in_piece = 0;
    const auto return_it = [&] {
        if (in_piece == 0) return;
        bytes += decommit_piece(piece, in_piece, ask);
        in_piece = 0;
        (void)ask.may_continue(); // all are opened, also if the collector is to stop
    };
    // From the top, as in decommit_free_memory().
    for (std::size_t i = count; i-- > 0;) {
        slab_run& run = runs_[runs[i]];
        if (run.word.view().count != run.used.load_relaxed()) {
            bytes += decommit_unused_pages(run, ask);
            release_run(run, closed_owner);
            continue;
        }
        const bool neighbour = in_piece != 0 && runs[i] + 1 == piece[in_piece - 1] &&
                               runs[i] / most == piece[0] / most;
        if (!neighbour) return_it();
        run.word.release();
        run.free.store_relaxed(nullptr);
        run.returned.store_relaxed(false);
        piece[in_piece++] = runs[i];
    }
    return_it();
    return bytes;
}

} // namespace obase::heap
