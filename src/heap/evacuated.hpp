// SPDX-License-Identifier: MIT
//
// Evacuated runs: the addresses of their blocks stay taken, the memory under them is gone (src/handles).
//
// An evacuated run is ATTACHED to an owner that is no thread's heap, as a closed one, and to another one than that, so
// that the child of a fork does not open it. It has no blocks by its books: who evacuated it knows which of the
// addresses are still objects' names, and sees to it that no thread frees them here.
//
// Invariant: used == 0, no lists, all pages decommitted; so the counters have nothing of it.
#pragma once

#include <mutex>

#include "heap/slab.hpp"

#include <obase/word/atomic.hpp>

namespace obase::heap {

template <class P>
void slab_heap<P>::flush_movable(thread_heap*& here) noexcept {
    // Its thread writes it as a plain variable, so that its own accesses cost nothing.
    const auto& owned = reinterpret_cast<const word::native_atomic<thread_heap*>&>(here);
    thread_heap* const seen = owned.load_relaxed();
    if (seen == &empty_thread_heap<P>) return;
    thread_heap& heap = *seen;
    const std::lock_guard hold(heap.lock);
    // Its thread ended before, and another one may have it.
    if (owned.load_relaxed() != seen) return;
    slab_detail::for_each_used_bin(heap, [&](thread_bin& bin, unsigned number) {
        if (!attributes_at(number / size_classes).never_cold) flush(heap, bin, 0);
    });
}

template <class P>
template <class Visit>
std::uint32_t slab_heap<P>::for_each_block_out(std::size_t number, Visit&& visit) const {
    const slab_run& run = runs_[number];
    const std::size_t size = run.block_size.load_relaxed();
    char* const memory = memory_of(run);
    slab_detail::block_set free;
    const auto note = [&](void* block) {
        for (; block != nullptr; block = next_of(block))
            free.set(static_cast<std::size_t>(static_cast<char*>(block) - memory) / size);
    };
    note(run.free.load_acquire());
    if (const std::uint32_t head = run.word.view().head; head != 0)
        note(memory + (head - 1) * granule);
    const std::uint32_t decommitted = run.decommitted_pages.load_relaxed();
    for (std::uint32_t i = 0; i < run.fresh; ++i)
        if (!free.test(i) && (pages_of_blocks(i, 1, size) & decommitted) == 0) visit(i);
    return run.fresh;
}

template <class P>
void slab_heap<P>::evacuated(std::size_t number) noexcept {
    slab_run& run = runs_[number];
    P::check(closed(number), "a run is evacuated that was not closed");
    run.free.store_relaxed(nullptr);
    run.used.store_relaxed(0);
    run.decommitted_pages.store_relaxed(0xFFFF);
    run.word.attach(evacuated_owner);
}

template <class P>
bool slab_heap<P>::is_evacuated(std::size_t number) const noexcept {
    const run_view now = runs_[number].word.view();
    return now.state == run_state::attached && now.owner == evacuated_owner;
}

template <class P>
void slab_heap<P>::release_evacuated(std::size_t number) noexcept {
    slab_run& run = runs_[number];
    P::check(is_evacuated(number), "a run is released that was not evacuated");
    run.word.release();
    run.returned.store_relaxed(true);
    returned_.push(static_cast<std::uint32_t>(number), next_link());
}

template <class P>
void slab_heap<P>::restore_evacuated(std::size_t number, bool (*out)(void*, std::size_t),
                                     void* context) noexcept {
    slab_run& run = runs_[number];
    P::check(is_evacuated(number), "a run is restored that was not evacuated");
    const std::size_t size = run.block_size.load_relaxed();
    std::uint32_t used = 0;
    void* list = nullptr;
    for (std::size_t i = run.fresh; i-- > 0;) {
        if (out(context, i)) {
            ++used;
            continue;
        }
        char* const block = memory_of(run) + i * size;
        set_next(block, list);
        list = block;
    }
    run.decommitted_pages.store_relaxed(0);
    run.used.store_relaxed(used);
    run.free.store_release(list);
    run.word.attach(closed_owner);
}

} // namespace obase::heap
