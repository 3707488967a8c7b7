// SPDX-License-Identifier: MIT
//
// slab_heap: its functions. For the files that instantiate it: slab.cpp, and tests for their platforms.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "heap/closed.hpp"
#include "heap/decommit.hpp"
#include "heap/poison.hpp"
#include "heap/quiet.hpp"
#include "heap/slab.hpp"
#include "heap/slab_checked.hpp"
#include "os/memory.hpp"

namespace obase::heap {

namespace slab_detail {

// How many partial runs of one bin a thread keeps for itself. More would hide memory from other
// threads; fewer would send a thread's own frees through the remote list.
inline constexpr std::uint32_t max_attached = 32;
inline constexpr std::uint32_t attached_looks = 4;

// How many blocks a thread caches per bin: at most 32 KiB of them, where that is not too few to
// pay.
constexpr std::uint32_t recent_limit(std::size_t block_size) noexcept {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(32768 / block_size, 8, 64));
}

// How many blocks that others freed bring a full run back to those who allocate. Until then their
// places are lost, half as many on average: of a quarter of the run an eighth of NEW, where values
// are replaced at random, and allocation was no faster for it. Fewer than three would not pay for
// the exchanges. Blocks of a page or more lose no page utilization while they wait, and there are so
// few in a run that each would cost several exchanges.
template <class P>
constexpr std::uint32_t threshold_of(const slab_run<P>& run) noexcept {
    const std::uint32_t quarter = std::max<std::uint32_t>(1, run.capacity / 4U);
    if (run.capacity <= run_bytes / os::page_size) return quarter;
    return std::max<std::uint32_t>(3, run.capacity / 32U);
}

// Bytes of blocks that are put on the local list at once: small, so that pages that are not needed
// yet stay untouched, but several blocks, so that the slow path is rare.
inline constexpr std::size_t extend_bytes = 4096;
inline constexpr std::size_t extend_blocks_min = 4;

constexpr std::size_t commit_chunk(std::size_t committed) noexcept {
    return std::clamp<std::size_t>(round_up(committed / 8, 2U << 20), 2U << 20, 64U << 20);
}

// Calls visit(bin, number). Precondition: heap.lock is held.
template <class P, class Visit>
void for_each_used_bin(thread_heap<P>& heap, Visit&& visit) {
    for (unsigned word = 0; word < std::size(heap.used_bins); ++word) {
        for (std::uint64_t left = heap.used_bins[word]; left != 0; left &= left - 1) {
            const unsigned number = word * 64 + static_cast<unsigned>(std::countr_zero(left));
            visit(heap.bin[number], number);
        }
    }
}

// Another thread may look which heap this one has (evacuated.hpp); reads by the thread itself are plain.
template <class Heap>
void set_heap(Heap*& here, Heap* heap) noexcept {
    reinterpret_cast<word::native_atomic<Heap*>&>(here).store_relaxed(heap);
}

} // namespace slab_detail

template <class P>
bool slab_heap<P>::create(char* base, std::size_t bytes, unsigned slot, bool tracks,
                          poisoning poison_freed) noexcept {
    base_ = base;
    tracks_ = tracks;
    poison_ = poison_freed;
    bytes_ = bytes;
    slot_ = slot;
    // A thread needs far more than 4 MiB before its heap (25 KiB, mostly untouched) matters.
    max_heaps_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes >> 22, 64, 65536));
    if (!runs_.reserve(bytes >> run_shift) || !slack_.reserve(bytes >> slack_shift) ||
        !fine_slack_.reserve(bytes >> fine_slack_shift) || !heaps_.reserve(max_heaps_ + 1) ||
        !heaps_.commit_to(2) || (tracks && !out_.reserve(bytes / granule / 64))) {
        return false;
    }
    heap_count_ = 1;
    shared_ = &heaps_[1];
    shared_->id = 1;
    view_ = {base_, bytes_, runs_.data(), slack_.data(), fine_slack_.data()};
    thread_memory<P>::enrol(slot, this);
    return true;
}

template <class P>
void slab_heap<P>::destroy() noexcept {
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        if (heap.home != nullptr) *heap.home = &empty_thread_heap<P>;
    }
    thread_memory<P>::enrol(slot_, nullptr);
    if (hides(poison_)) asan::show(base_, runs() << run_shift);
    heaps_.release();
    out_.release();
    fine_slack_.release();
    slack_.release();
    runs_.release();
}

// Threads.

template <class P>
thread_heap<P>* slab_heap<P>::heap_for_this_thread() noexcept {
    thread_heap*& here = thread_memory<P>::heap(slot_);
    thread_heap* mine = here;
    if (mine != &empty_thread_heap<P>) return mine;
    // Without a hook the heap would never come back: use the shared one.
    if (!thread_memory<P>::arm_exit()) return shared_;
    std::unique_lock hold(registry_);
    while (spare_ == 0 && heap_count_ < max_heaps_ && !heaps_.committed(heap_count_ + 1)) {
        const std::uint32_t next = heap_count_ + 1;
        hold.unlock(); // to commit is a system call
        if (!heaps_.commit_to(next + 1)) return shared_;
        hold.lock();
    }
    if (spare_ != 0) {
        mine = &heaps_[spare_];
        spare_ = mine->next_spare;
    } else {
        if (heap_count_ >= max_heaps_) return shared_;
        mine = &heaps_[++heap_count_];
        mine->id = heap_count_;
    }
    mine->home = &here;
    mine->view = view_;
    slab_detail::set_heap(here, mine);
    return mine;
}

template <class P>
void slab_heap<P>::thread_exit() noexcept {
    thread_heap*& here = thread_memory<P>::heap(slot_);
    thread_heap* const mine = here;
    if (mine == &empty_thread_heap<P>) return;
    {
        const std::lock_guard hold(mine->lock);
        release_runs(*mine);
        slab_detail::set_heap(
            here, &empty_thread_heap<P>); // who finds that knows that the cache is empty
    }
    const std::lock_guard hold(registry_);
    mine->home = nullptr;
    mine->next_spare = spare_;
    spare_ = mine->id;
}

// Precondition: heap.lock is held, and its thread does not use the heap.
template <class P>
void slab_heap<P>::release_runs(thread_heap& heap) noexcept {
    flush_all(heap);
    slab_detail::for_each_used_bin(heap, [&](thread_bin& bin, unsigned) {
        bin.limit = 0;
        if (slab_run* const run = bin.current) {
            leave_current(bin);
            release_run(*run, heap.id);
        }
        while (bin.attached != 0) {
            slab_run& run = runs_[bin.attached - 1];
            unlist_attached(heap, run);
            release_run(run, heap.id);
        }
    });
    std::fill(std::begin(heap.used_bins), std::end(heap.used_bins), 0);
}

// Precondition: the run is ATTACHED to `owner`, neither current nor listed.
template <class P>
void slab_heap<P>::release_run(slab_run& run, std::uint32_t owner) noexcept {
    for (;;) {
        if (run.free.load_relaxed() == nullptr) {
            std::uint32_t count = 0;
            if (const std::uint32_t head = run.word.grab(&count)) {
                adopt_list(run, head, count);
            }
        }
        if (run.used.load_relaxed() == 0) {
            add_to_pool(run);
            return;
        }
        if (run.free.load_relaxed() != nullptr || run.fresh < run.capacity ||
            run.decommitted_pages.load_relaxed() != 0) {
            run.word.queue(owner);
            partial_[run.bin.load_relaxed()].push(number_of(run), next_link());
            return;
        }
        if (run.word.detach(owner)) return; // full: its frees will queue it
    }
}

// Runs.

// Precondition: the local list is empty; the caller owns the run and just took this remote list.
template <class P>
void slab_heap<P>::adopt_list(slab_run& run, std::uint32_t head, std::uint32_t count) noexcept {
    run.free.store_release(memory_of(run) + (head - 1) * granule);
    run.used.store_relaxed(run.used.load_relaxed() - count);
}

// Precondition: the caller has the run for itself and nothing of it is handed out.
template <class P>
void slab_heap<P>::add_to_pool(slab_run& run) noexcept {
    run.word.release();
    run.free.store_relaxed(nullptr);
    run.returned.store_relaxed(false);
    dirty_.push(number_of(run), next_link());
}

template <class P>
bool slab_heap<P>::extend(slab_run& run) noexcept {
    if (recommit(run)) return true;
    if (run.fresh >= run.capacity) return false;
    const std::size_t size = run.block_size.load_relaxed();
    const std::size_t wanted =
        std::max(slab_detail::extend_bytes / size, slab_detail::extend_blocks_min);
    const std::size_t count = std::min<std::size_t>(wanted, run.capacity - run.fresh);
    char* const first = memory_of(run) + run.fresh * size;
    char* block = first;
    for (std::size_t i = 1; i < count; ++i, block += size) {
        set_next(block, block + size);
    }
    set_next(block, nullptr);
    run.fresh = static_cast<std::uint16_t>(run.fresh + count);
    run.free.store_release(first);
    return true;
}

// Makes the local list nonempty, if the run has anything. Precondition: the caller owns the run.
template <class P>
bool slab_heap<P>::refill(slab_run& run) noexcept {
    if (run.free.load_relaxed() != nullptr) return true;
    std::uint32_t count = 0;
    if (const std::uint32_t head = run.word.grab(&count)) {
        adopt_list(run, head, count);
        return true;
    }
    return extend(run);
}

template <class P>
void slab_heap<P>::make_current(thread_heap& heap, unsigned number, slab_run& run) noexcept {
    run.used.store_relaxed(run.used.load_relaxed() + 1);
    run.current.store_relaxed(true);
    run.last_in_use = 0;
    heap.bin[number].current = &run;
}

// The run stays ATTACHED. Precondition: the caller has the heap; the bin has a current run.
template <class P>
void slab_heap<P>::leave_current(thread_bin& bin) noexcept {
    slab_run& run = *std::exchange(bin.current, nullptr);
    run.current.store_relaxed(false);
    run.last_in_use = 0;
    run.used.store_relaxed(run.used.load_relaxed() - 1);
}

// Marks a bin as one that release_runs must visit, and opens its cache.
template <class P>
void slab_heap<P>::use_bin(thread_heap& heap, unsigned number) noexcept {
    heap.used_bins[number / 64] |= std::uint64_t{1} << (number % 64);
    // The shared heap has no thread, and so no fast paths.
    if (&heap != shared_) {
        heap.bin[number].limit =
            slab_detail::recent_limit(detail::block_table[number % size_classes]);
    }
}

// The list is a ring; `attached` is its oldest member.
template <class P>
void slab_heap<P>::list_attached(thread_heap& heap, slab_run& run) noexcept {
    thread_bin& bin = heap.bin[run.bin.load_relaxed()];
    const std::uint32_t number = number_of(run) + 1;
    if (bin.attached == 0) {
        run.attached_previous = run.attached_next = bin.attached = number;
    } else {
        slab_run& oldest = runs_[bin.attached - 1];
        run.attached_next = bin.attached;
        run.attached_previous = oldest.attached_previous;
        runs_[oldest.attached_previous - 1].attached_next = number;
        oldest.attached_previous = number;
    }
    ++bin.attached_count;
}

template <class P>
void slab_heap<P>::unlist_attached(thread_heap& heap, slab_run& run) noexcept {
    thread_bin& bin = heap.bin[run.bin.load_relaxed()];
    const std::uint32_t number = number_of(run) + 1;
    if (--bin.attached_count == 0) {
        bin.attached = 0;
        return;
    }
    runs_[run.attached_previous - 1].attached_next = run.attached_next;
    runs_[run.attached_next - 1].attached_previous = run.attached_previous;
    if (bin.attached == number) bin.attached = run.attached_next;
}

// A run off the attached list that is worth making current; null: none seen. A thread that frees
// and allocates in turns at random would otherwise, in a heap without room, run through a list of
// runs with one block each, at the price of two compare-exchanges per block: take those with an
// eighth free, and rather start another run.
template <class P>
slab_run<P>* slab_heap<P>::roomy_attached(thread_heap& heap, unsigned number) noexcept {
    thread_bin& bin = heap.bin[number];
    for (std::uint32_t left =
             std::min<std::uint32_t>(bin.attached_count, slab_detail::attached_looks);
         left > 0; --left) {
        slab_run& run = runs_[bin.attached - 1];
        const std::uint32_t room =
            run.capacity - run.used.load_relaxed() + run.word.view_relaxed().count;
        if (room * 8 >= run.capacity) {
            unlist_attached(heap, run);
            return &run;
        }
        bin.attached = run.attached_next;
    }
    return nullptr;
}

// Precondition: the run is the caller's, out of the pool or new.
template <class P>
void slab_heap<P>::start_run(slab_run& run, unsigned number, std::uint32_t owner) noexcept {
    const std::size_t size = class_block_size(number % size_classes);
    run.free.store_relaxed(nullptr);
    run.used.store_relaxed(0);
    run.block_size.store_relaxed(static_cast<std::uint32_t>(size));
    run.bin.store_relaxed(static_cast<std::uint16_t>(number));
    run.capacity = static_cast<std::uint16_t>(run_bytes / size);
    run.fresh = 0;
    run.last_in_use = 0;
    run.idle = false;
    run.decommitted_pages.store_relaxed(0);
    run.current.store_relaxed(false);
    if (hides(poison_)) asan::hide(memory_of(run), run_bytes);
    // Before the run can be on a stack of the bin; pairs with while_bins().
    auto& word = bins_with_runs_[number / 64];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    if ((word.load_relaxed() & bit) == 0) word.fetch_or_acq_rel(bit);
    run.word.attach(owner);
}

template <class P>
slab_run<P>* slab_heap<P>::free_run(bool urgent) noexcept {
    for (run_stack<P>* stack : {&dirty_, &sorted_, &returned_}) {
        const std::uint32_t number = stack->pop(next_link());
        if (number == stack->none) continue;
        if (stack == &returned_) new_bytes_.fetch_add_relaxed(run_bytes);
        return &runs_[number];
    }
    if (slab_run* const run = run_from_frontier()) return run;
    if (!urgent) return nullptr;
    // The range is used up: some partial runs may be wholly free by now.
    scavenge_partial(scavenge::urgent);
    const std::uint32_t number = dirty_.pop(next_link());
    return number == dirty_.none ? nullptr : &runs_[number];
}

template <class P>
slab_run<P>* slab_heap<P>::run_from_frontier() noexcept {
    std::uint32_t number = frontier_.load_relaxed();
    while (((std::size_t{number} + 1) << run_shift) <= committed_.load_acquire())
        if (frontier_.cas_acq_rel(number, number + 1)) {
            new_bytes_.fetch_add_relaxed(run_bytes);
            return &runs_[number];
        }
    return nullptr;
}

// For a run beyond those that are committed. False: there is no memory. System calls, so the caller
// holds no lock; to commit memory twice changes nothing, so several threads may be here.
template <class P>
bool slab_heap<P>::commit_more() noexcept {
    std::size_t committed = committed_.load_acquire();
    if (committed + run_bytes > bytes_) return false;
    std::size_t chunk = std::min(slab_detail::commit_chunk(committed), bytes_ - committed);
    const std::size_t runs = (committed + chunk) >> run_shift;
    if (!runs_.commit_to(runs) || !slack_.commit_to(runs << (run_shift - slack_shift)) ||
        !fine_slack_.commit_to(runs << (run_shift - fine_slack_shift)))
        return false;
    if (tracks_ && !out_.commit_to(runs * (run_bytes / granule / 64))) return false;
    if (os::commit(base_ + committed, chunk) != 0) {
        // Little may still fit where a chunk does not.
        chunk = run_bytes;
        if (os::commit(base_ + committed, chunk) != 0) return false;
    }
    const std::size_t target = committed + chunk;
    while (committed < target && !committed_.cas_acq_rel(committed, target)) {
    }
    return true;
}

// A run of the bin, or of one that it borrows from, ATTACHED to the heap, current and with a block on its list; null:
// exhausted, or not urgent and more memory has to be committed. Precondition: heap.lock is held.
template <class P>
slab_run<P>* slab_heap<P>::find_run(thread_heap& heap, unsigned number, bool urgent) noexcept {
    thread_bin& bin = heap.bin[number];
    if (slab_run* const run = bin.current) {
        for (;;) {
            if (refill(*run)) return run;
            // Everything is handed out: leave the run to those who free.
            leave_current(bin);
            if (run->word.detach(heap.id)) break;
            make_current(heap, number, *run); // a block came back meanwhile
        }
    }
    slab_run* run = roomy_attached(heap, number);
    if (run == nullptr) {
        std::uint32_t popped = partial_[number].pop(next_link());
        if (popped == partial_[number].none) popped = idle_[number].pop(next_link());
        if (popped != partial_[number].none) {
            run = &runs_[popped];
            run->word.take(heap.id);
            run->last_in_use = 0;
            run->idle = false;
        } else if (slab_run* const lender = borrow(heap, number, urgent); lender != nullptr) {
            return lender;
        } else if ((run = free_run(urgent)) != nullptr) {
            start_run(*run, number, heap.id);
        } else if (urgent && bin.attached != 0) {
            run = &runs_[bin.attached - 1];
            unlist_attached(heap, *run);
        } else {
            return nullptr;
        }
    }
    make_current(heap, number, *run);
    P::check(refill(*run), "a run with room has nothing to give");
    return run;
}

// The thread's lists have no block of the size, or it has no heap yet.
template <class P>
void* slab_heap<P>::allocate_slow(std::size_t size, unsigned set) noexcept {
    const unsigned index = size_class(size);
    const unsigned number = set * size_classes + index;
    thread_heap& heap = *heap_for_this_thread();
    std::unique_lock hold(heap.lock);
    give_back_quiet_runs(heap);
    use_bin(heap, number);
    slab_run* run = nullptr;
    for (bool urgent = false; (run = find_run(heap, number, urgent)) == nullptr;) {
        if (urgent) return nullptr;
        hold.unlock();
        urgent = !commit_more();
        hold.lock();
    }
    void* const block = run->free.load_relaxed();
    run->used.store_relaxed(run->used.load_relaxed() + 1);
    run->free.store_relaxed(next_of(block));
    view_.note_size(block, run->bin.load_relaxed() % size_classes, size);
    return block;
}

template <class P>
void* slab_heap<P>::allocate_packed(std::size_t size, unsigned set) noexcept {
    const unsigned index = size_class(size);
    thread_bin& bin = own_heap().bin[set * size_classes + index];
    void* const block = detail::allocate_from_run(bin);
    if (block == nullptr) return allocate_slow(size, set);
    view_.note_size(block, index, size);
    return block;
}

// The cache is full, or the thread frees into this bin for the first time.
template <class P>
void slab_heap<P>::free_slow(void* block) noexcept {
    thread_heap& heap = *heap_for_this_thread();
    slab_run& run = run_of(block);
    if (&heap == shared_) {
        push_remote_blocks(run, block, block, 1);
        return;
    }
    const unsigned number = run.bin.load_relaxed();
    const std::lock_guard hold(heap.lock);
    give_back_quiet_runs(heap);
    use_bin(heap, number);
    thread_bin& bin = heap.bin[number];
    if (bin.count.load_relaxed() >= bin.limit) flush(heap, bin, bin.limit / 2);
    set_next(block, bin.cached);
    P::compiler_fence();
    bin.cached = block;
    bin.count.store_relaxed(bin.count.load_relaxed() + 1);
}

template <class P>
void slab_heap<P>::free_poisoned(void* block) noexcept {
    poison(block, size_of(block), poison_); // what is beyond was never shown
    free(block);
}

// Returns all but the newest `keep` cached blocks to their runs. Precondition: heap.lock is held.
template <class P>
void slab_heap<P>::flush(thread_heap& heap, thread_bin& bin, std::uint32_t keep) noexcept {
    void* blocks = bin.cached;
    if (keep == 0) {
        bin.cached = nullptr;
    } else {
        void* last_kept = blocks;
        for (std::uint32_t i = 1; i < keep && last_kept != nullptr; ++i) {
            last_kept = next_of(last_kept);
        }
        if (last_kept == nullptr) return;
        blocks = next_of(last_kept);
        set_next(last_kept, nullptr);
    }
    std::uint32_t given = 0;
    while (blocks != nullptr) {
        // Neighbours on the list are often of one run: give them together.
        slab_run& run = run_of(blocks);
        void* last = blocks;
        std::uint32_t count = 1;
        void* next = next_of(last);
        while (next != nullptr && &run_of(next) == &run) {
            last = next;
            next = next_of(last);
            ++count;
        }
        return_blocks(heap, run, blocks, last, count);
        given += count;
        blocks = next;
    }
    bin.count.store_relaxed(bin.count.load_relaxed() - given);
}

template <class P>
void slab_heap<P>::flush_all(thread_heap& heap) noexcept {
    slab_detail::for_each_used_bin(heap, [&](thread_bin& bin, unsigned) { flush(heap, bin, 0); });
}

// Puts `count` linked blocks of one run, first to last, where they belong. Precondition: heap.lock
// is held.
template <class P>
void slab_heap<P>::return_blocks(thread_heap& heap, slab_run& run, void* first, void* last,
                                 std::uint32_t count) noexcept {
    const run_view now = run.word.view_relaxed();
    thread_bin& bin = heap.bin[run.bin.load_relaxed()];
    if (now.owner == heap.id && now.state == run_state::attached) {
        set_next(last, run.free.load_relaxed());
        run.free.store_release(first);
        const std::uint32_t used = run.used.load_relaxed() - count;
        run.used.store_relaxed(used);
        // One empty run stays: the next allocation after a burst of frees wants it. A current run
        // is never at 0.
        if (used == 0 && bin.attached_count > 1) {
            unlist_attached(heap, run);
            add_to_pool(run);
        }
        return;
    }
    if (now.owner == heap.id && now.state == run_state::detached &&
        bin.attached_count < slab_detail::max_attached) {
        std::uint32_t head = 0;
        std::uint32_t remote = 0;
        if (run.word.reattach(heap.id, &head, &remote)) {
            // On top of what others freed.
            set_next(last, head == 0 ? nullptr : memory_of(run) + (head - 1) * granule);
            run.free.store_release(first);
            const std::uint32_t used = run.used.load_relaxed() - remote - count;
            run.used.store_relaxed(used);
            if (used == 0 && bin.attached_count != 0) {
                add_to_pool(run);
            } else {
                list_attached(heap, run);
            }
            return;
        }
    }
    push_remote_blocks(run, first, last, count);
}

template <class P>
void slab_heap<P>::push_remote_blocks(slab_run& run, void* first, void* last,
                                      std::uint32_t count) noexcept {
    const unsigned number = run.bin.load_relaxed(); // any thread may have the run after the push
    const auto offset = static_cast<std::size_t>(static_cast<char*>(first) - memory_of(run));
    const auto link = [&](std::uint32_t head) {
        set_next(last, head == 0 ? nullptr : memory_of(run) + (head - 1) * granule);
    };
    if (run.word.push_remote(static_cast<std::uint32_t>(offset / granule), count,
                             slab_detail::threshold_of(run), link) == push_result::queued) {
        partial_[number].push(number_of(run), next_link());
    }
}

// Collector, and threads that urgently need a run.

// Moves partial runs whose every block came back to the pool. A run popped off its stack is the
// caller's; if all that is handed out is on its remote list no thread can push any more. Threads
// that find the stacks empty meanwhile start other runs, so nothing else is done here.
template <class P>
void slab_heap<P>::scavenge_partial(scavenge caller) noexcept {
    const auto sweep = [&](run_stack<P>& stack, auto&& keep) {
        if (stack.empty()) return;
        std::uint32_t number = stack.take_all();
        while (number != stack.none) {
            slab_run& run = runs_[number];
            const std::uint32_t next = run.next.load_relaxed();
            if (run.word.view().count == run.used.load_relaxed())
                add_to_pool(run);
            else
                keep(run, number);
            number = next;
        }
    };
    const bool ages = caller == scavenge::collector;
    while_bins([&](unsigned bin) {
        sweep(idle_[bin], [&](slab_run& run, std::uint32_t number) {
            (ages && !unchanged_since_last_scan(run) ? partial_ : idle_)[bin].push(number,
                                                                                   next_link());
        });
        std::uint32_t idle = partial_[bin].none; // for the top of the stack
        sweep(partial_[bin], [&](slab_run& run, std::uint32_t number) {
            if (ages) run.idle = unchanged_since_last_scan(run);
            if (run.idle) {
                run.next.store_relaxed(idle);
                idle = number;
            } else {
                partial_[bin].push(number, next_link());
            }
        });
        while (idle != partial_[bin].none) {
            const std::uint32_t next = runs_[idle].next.load_relaxed();
            partial_[bin].push(idle, next_link());
            idle = next;
        }
        return true;
    });
}

// Hands back what threads keep besides their current runs and of which little is out, as they would
// when they end. Local lists and `used` of such runs change under the heap's lock only.
template <class P>
void slab_heap<P>::scavenge_attached() noexcept {
    const std::lock_guard hold(registry_);
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        const std::lock_guard hold_heap(heap.lock);
        slab_detail::for_each_used_bin(heap, [&](thread_bin& bin, unsigned) {
            std::uint32_t number = bin.attached;
            for (std::uint32_t i = bin.attached_count; i != 0; --i) {
                slab_run& run = runs_[number - 1];
                number = run.attached_next;
                const std::uint32_t out = run.used.load_relaxed() - run.word.view().count;
                if (!mostly_free(run, out)) continue;
                unlist_attached(heap, run);
                release_run(run, heap.id);
            }
        });
    }
}

// Runs go back a few at a time, and a page of slack_ belongs to eight, of fine_slack_ to 32: those that are all back now
// have none. They are the caller's alone meanwhile, as in decommit_piece().
template <class P>
void slab_heap<P>::decommit_slack() noexcept {
    if (!slack_left_) return;
    slack_left_ = false;
    std::vector<std::uint32_t> runs;
    try {
        runs.reserve(frontier_.load_acquire());
    } catch (const std::bad_alloc&) {
        return;
    }
    for (std::uint32_t number = returned_.take_all(); number != returned_.none;
         number = runs_[number].next.load_relaxed())
        runs.push_back(number);
    std::sort(runs.begin(), runs.end());
    const auto decommit = [&runs](auto& table, unsigned shift) {
        const std::size_t in_page = os::page_size >> (run_shift - shift);
        for (std::size_t i = 0; i + in_page <= runs.size();) {
            const bool whole =
                runs[i] % in_page == 0 && runs[i + in_page - 1] == runs[i] + in_page - 1;
            if (whole)
                table.decommit(std::size_t{runs[i]} << (run_shift - shift),
                               std::size_t{runs[i] + in_page} << (run_shift - shift));
            i += whole ? in_page : 1;
        }
    };
    decommit(slack_, slack_shift);
    decommit(fine_slack_, fine_slack_shift);
    for (std::size_t i = runs.size(); i-- > 0;) returned_.push(runs[i], next_link());
}

// Puts what is dirty on sorted_, from where threads that need runs take them meanwhile. False: nothing
// is there.
template <class P>
bool slab_heap<P>::sort_dirty_runs() noexcept {
    std::vector<std::uint32_t> runs;
    std::uint32_t number = dirty_.take_all();
    try {
        while (number != dirty_.none) {
            runs.push_back(number);
            number = runs_[number].next.load_relaxed();
        }
    } catch (const std::bad_alloc&) {
        // The rest of the chain goes back as it is.
        while (number != dirty_.none) {
            const std::uint32_t next = runs_[number].next.load_relaxed();
            dirty_.push(number, next_link());
            number = next;
        }
    }
    std::sort(runs.begin(), runs.end());
    for (const std::uint32_t run : runs) sorted_.push(run, next_link());
    return !runs.empty();
}

// Neighbours, the highest first, which are the caller's alone: a fork finds them FREE, and so the
// child has them. From the top, so that the lowest run lies on top of the stack at the end.
template <class P>
std::size_t slab_heap<P>::decommit_piece(const std::uint32_t* runs, std::size_t count,
                                         pacer& ask) noexcept {
    const std::size_t lowest = runs[count - 1];
    ask.call_begins();
    const bool ok =
        os::advise(base_ + (lowest << run_shift), count << run_shift, os::advice::dontneed) == 0;
    // The slack of free blocks means nothing.
    if (ok)
        slack_.decommit(lowest << (run_shift - slack_shift), (lowest + count)
                                                                 << (run_shift - slack_shift));
    slack_left_ = true;
    ask.call_ends();
    std::size_t bytes = ok ? count << run_shift : 0;
    for (std::size_t i = 0; i < count; ++i) {
        slab_run& run = runs_[runs[i]];
        if (ok) bytes -= decommitted_bytes(run);
        run.returned.store_relaxed(ok);
        (ok ? returned_ : dirty_).push(runs[i], next_link());
    }
    return bytes;
}

template <class P>
std::size_t slab_heap<P>::decommit_free_memory(pacer& ask) noexcept {
    if (thread_heap& mine = own_heap(); &mine != &empty_thread_heap<P>) {
        const std::lock_guard hold(mine.lock);
        flush_all(mine);
    }
    rounds_.fetch_add_relaxed(1);
    scavenge_attached();
    scavenge_partial(scavenge::collector);
    std::size_t bytes = decommit_idle_runs(ask);
    if (!sort_dirty_runs()) {
        decommit_slack();
        return bytes;
    }
    // Pieces end where a page of slack_ does, so that those go back too.
    constexpr std::size_t most = piece_bytes >> run_shift;
    std::uint32_t next = sorted_.pop(next_link());
    while (next != sorted_.none) {
        std::uint32_t runs[most];
        std::size_t count = 0;
        do {
            runs[count++] = next;
            next = sorted_.pop(next_link());
        } while (next != sorted_.none && next + 1 == runs[count - 1] &&
                 next / most == runs[0] / most);
        // Any thread may take what is in no piece yet.
        if (next != sorted_.none) sorted_.push(next, next_link());
        bytes += decommit_piece(runs, count, ask);
        if (!ask.may_continue()) break;
        next = sorted_.pop(next_link());
    }
    for (std::uint32_t rest; (rest = sorted_.pop(next_link())) != sorted_.none;)
        dirty_.push(rest, next_link());
    decommit_slack();
    return bytes;
}

template <class P>
std::size_t slab_heap<P>::size_of_racy(const void* block) const noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(block) - base_);
    if ((offset >> run_shift) >= frontier_.load_acquire()) return 0;
    const slab_run& run = runs_[offset >> run_shift];
    std::size_t size = run.block_size.load_relaxed();
    if (size > max_exact_class) {
        const std::size_t slack = granule * slack_of(block, size).load_relaxed();
        if (slack >= size) return 0;
        size -= slack;
    }
    // A run that changed its bin meanwhile could make the object end in the next run.
    return (offset & (run_bytes - 1)) + size <= run_bytes ? size : 0;
}

template <class P>
slab_counters slab_heap<P>::counters() const noexcept {
    slab_counters sum;
    const std::uint32_t end = frontier_.load_acquire();
    for (std::uint32_t i = 0; i < end; ++i) {
        const slab_run& run = runs_[i];
        const run_view now = run.word.view();
        if (now.state == run_state::free) {
            if (!run.returned.load_relaxed())
                sum.extent_bytes += run_bytes - decommitted_bytes(run);
            continue;
        }
        ++sum.runs;
        sum.extent_bytes += run_bytes - decommitted_bytes(run);
        const std::uint32_t used = run.used.load_relaxed();
        const std::uint32_t gone = now.count + (run.current.load_relaxed() ? 1U : 0U);
        if (used <= gone) continue; // also when a racing change made the figures disagree
        sum.live_objects += used - gone;
        sum.live_bytes += std::uint64_t{used - gone} * run.block_size.load_relaxed();
    }
    // Cached blocks are free, though their runs count them as used.
    const std::lock_guard hold(registry_);
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        const std::lock_guard hold_heap(heap.lock);
        slab_detail::for_each_used_bin(heap, [&](thread_bin& bin, unsigned number) {
            const std::uint64_t recent =
                std::min<std::uint64_t>(bin.count.load_relaxed(), sum.live_objects);
            sum.live_objects -= recent;
            sum.live_bytes -= std::min<std::uint64_t>(
                recent * detail::block_table[number % size_classes], sum.live_bytes);
        });
    }
    return sum;
}

template <class P>
std::size_t slab_heap<P>::metadata_bytes() const noexcept {
    return runs_.committed_bytes() + slack_.committed_bytes() + fine_slack_.committed_bytes() +
           out_.committed_bytes() + heaps_.committed_bytes();
}

template <class P>
void slab_heap<P>::walk_extents(void (*visit)(void*, char*, char*), void* context) const {
    const std::uint32_t end = frontier_.load_acquire();
    for (std::uint32_t i = 0; i < end;) {
        if (runs_[i].word.view().state == run_state::free) {
            ++i;
            continue;
        }
        const std::uint32_t first = i;
        while (i < end && runs_[i].word.view().state != run_state::free) ++i;
        visit(context, base_ + (std::size_t{first} << run_shift),
              base_ + (std::size_t{i} << run_shift));
    }
}

// fork. All locks are held across it, so the lists of the heaps are whole in the child. What a
// thread of the parent may have been doing without a lock: one step of allocate or free on the
// local list of a run, or pushing or popping a run on a stack. The child repairs both from the
// runs' words; a block that was in a register of such a thread is lost to the child, like all
// memory that only that thread knew.

template <class P>
void slab_heap<P>::fork_prepare() noexcept {
    registry_.lock();
    for (std::uint32_t id = 1; id <= heap_count_; ++id) heaps_[id].lock.lock();
    decommitting_.lock();
}

template <class P>
void slab_heap<P>::fork_parent() noexcept {
    decommitting_.unlock();
    for (std::uint32_t id = 1; id <= heap_count_; ++id) heaps_[id].lock.unlock();
    registry_.unlock();
}

// The local list of a current run is whole at every instruction; `used` may be one off.
template <class P>
void slab_heap<P>::recount_after_fork(slab_run& run) noexcept {
    std::uint32_t listed = 0;
    for (void* block = run.free.load_relaxed(); block != nullptr; block = next_of(block)) {
        ++listed;
    }
    run.used.store_relaxed(run.fresh - decommitted_blocks(run) - listed +
                           (run.current.load_relaxed() ? 1U : 0U));
}

template <class P>
void slab_heap<P>::rebuild_stacks_after_fork() noexcept {
    dirty_.take_all();
    sorted_.take_all();
    returned_.take_all();
    for (auto& stack : partial_) stack.take_all();
    for (auto& stack : idle_) stack.take_all();
    for (std::uint32_t number = frontier_.load_relaxed(); number-- > 0;) {
        slab_run& run = runs_[number];
        const run_state state = run.word.view().state;
        if (closed(number)) {
            // The collector, which was about to empty it, does not exist here.
            release_run(run, closed_owner);
        } else if (state == run_state::free) {
            (run.returned.load_relaxed() ? returned_ : dirty_).push(number, next_link());
        } else if (state == run_state::queued) {
            partial_[run.bin.load_relaxed()].push(number, next_link());
        }
    }
}

template <class P>
void slab_heap<P>::fork_child() noexcept {
    decommitting_.unlock_in_child();
    rebuild_stacks_after_fork();
    const thread_heap* const mine = &own_heap();
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        // Threads of the parent do not exist here: their runs go to other threads. Their `home` is
        // not written, it lies in memory of a thread that is gone.
        if (&heap != mine && heap.home != nullptr) {
            for (thread_bin& bin : heap.bin) {
                if (bin.current != nullptr) recount_after_fork(*bin.current);
                std::uint32_t recent = 0;
                for (void* b = bin.cached; b != nullptr; b = next_of(b)) ++recent;
                bin.count.store_relaxed(recent);
            }
            release_runs(heap);
            heap.home = nullptr;
            heap.next_spare = spare_;
            spare_ = id;
        }
        heap.lock.unlock_in_child();
    }
    registry_.unlock_in_child();
}

template <class P>
const char* slab_heap<P>::validate() const noexcept {
    const std::uint32_t end = frontier_.load_acquire();
    for (std::uint32_t i = 0; i < end; ++i) {
        const slab_run& run = runs_[i];
        const run_view now = run.word.view();
        if (now.state == run_state::free) {
            if (now.count != 0 || now.head != 0) return "a free run has remote blocks";
            continue;
        }
        if (is_evacuated(i)) {
            if (now.count != 0 || run.used.load_relaxed() != 0)
                return "a block came back to an evacuated run";
            continue;
        }
        const std::size_t size = run.block_size.load_relaxed();
        if (size != class_block_size(run.bin.load_relaxed() % size_classes)) {
            return "block size and bin of a run disagree";
        }
        if (run.capacity != run_bytes / size || run.fresh > run.capacity) {
            return "capacity of a run is wrong";
        }
        const auto length = [&](const void* block) -> std::uint32_t {
            std::uint32_t count = 0;
            for (; block != nullptr && count <= run.capacity; block = next_of(block)) {
                const auto offset =
                    static_cast<std::size_t>(static_cast<const char*>(block) - memory_of(run));
                if (offset % size != 0 || offset / size >= run.fresh ||
                    (pages_of_blocks(offset / size, 1, size) &
                     run.decommitted_pages.load_relaxed()) != 0) {
                    return run.capacity + 1U;
                }
                ++count;
            }
            return count;
        };
        const std::uint32_t local = length(run.free.load_relaxed());
        const std::uint32_t remote =
            length(now.head == 0 ? nullptr : memory_of(run) + (now.head - 1) * granule);
        if (local > run.capacity) return "local list of a run is broken";
        if (remote > run.capacity) return "remote list of a run is broken";
        if (remote != now.count) return "remote list of a run and its count disagree";
        const std::uint32_t used = run.used.load_relaxed() - (run.current.load_relaxed() ? 1U : 0U);
        if ((run.decommitted_pages.load_relaxed() & ~pages_of_blocks(0, run.fresh, size)) != 0) {
            return "an decommitted page lies under no block";
        }
        if (local + used + decommitted_blocks(run) != run.fresh) {
            return "used blocks of a run are miscounted";
        }
        if (remote > used) return "more blocks came back than were out";
        if (now.state == run_state::detached && (local != 0 || run.fresh != run.capacity ||
                                                 run.decommitted_pages.load_relaxed() != 0)) {
            return "a detached run was not full";
        }
        if (now.state == run_state::queued && local + remote == 0 && run.fresh == run.capacity &&
            run.decommitted_pages.load_relaxed() == 0) {
            return "a queued run has no room";
        }
        if (now.state == run_state::detached && now.count >= slab_detail::threshold_of(run)) {
            return "a detached run is past its threshold";
        }
    }
    return nullptr;
}

} // namespace obase::heap

#include "heap/evacuated.hpp" // of functions above
