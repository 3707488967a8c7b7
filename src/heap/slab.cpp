// SPDX-License-Identifier: MIT
#include "heap/slab.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <vector>

#include "heap/poison.hpp"
#include "os/thread.hpp"

namespace obase::heap {

// The tag equals the word of no run, so a thread without a heap never frees the quick way.
constinit thread_heap empty_thread_heap{.tag = no_owner_tag,
                                        .id = 0,
                                        .home = nullptr,
                                        .next_spare = 0,
                                        .lock = {},
                                        .used_bins = {},
                                        .current = {},
                                        .attached = {}};

#define OBASE_FOUR_EMPTY                                                                           \
    &empty_thread_heap, &empty_thread_heap, &empty_thread_heap, &empty_thread_heap
__thread thread_heap* thread_heaps[max_spaces] = {OBASE_FOUR_EMPTY, OBASE_FOUR_EMPTY,
                                                  OBASE_FOUR_EMPTY, OBASE_FOUR_EMPTY};
#undef OBASE_FOUR_EMPTY
static_assert(max_spaces == 16);

namespace {

// Spaces alive, for the thread-exit hook. Taken and left under this lock.
std::mutex spaces_lock;
slab_heap* spaces[max_spaces];

void exit_hook() noexcept {
    for (unsigned slot = 0; slot < max_spaces; ++slot) {
        if (thread_heaps[slot] == &empty_thread_heap) continue;
        // The space lives: destroying it requires that no thread uses it, and this one does.
        spaces[slot]->thread_exit();
    }
}

constexpr std::uint32_t fast_tag(std::uint32_t id, bool poison) noexcept {
    return poison ? no_owner_tag : attached_tag(id);
}

// How many partial runs of one bin a thread keeps for itself. More would hide memory from other threads;
// fewer would send a thread's own frees through the remote list.
constexpr std::uint32_t max_attached = 32;

constexpr std::uint32_t threshold_of(const slab_run& run) noexcept {
    return std::max<std::uint32_t>(1, run.capacity / 4U);
}

// Bytes of blocks that are put on the local list at once: small, so that pages nobody needs yet stay
// untouched, but several blocks, so that the slow path is rare.
constexpr std::size_t extend_bytes = 4096;
constexpr std::size_t extend_blocks_min = 4;

constexpr std::size_t commit_chunk(std::size_t committed) noexcept {
    return std::clamp<std::size_t>(round_up(committed / 8, 2U << 20), 2U << 20, 64U << 20);
}

} // namespace

bool slab_heap::create(char* base, std::size_t bytes, unsigned slot, bool poison_freed) noexcept {
    base_ = base;
    bytes_ = bytes;
    slot_ = slot;
    poison_ = poison_freed;
    // A thread needs far more than 4 MiB before its heap (25 KiB, mostly untouched) matters.
    max_heaps_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes >> 22, 64, 65536));
    if (!runs_.reserve(bytes >> run_shift) || !slack_.reserve(bytes >> 7) ||
        !heaps_.reserve(max_heaps_ + 1) || !heaps_.commit_to(2)) {
        return false;
    }
    heap_count_ = 1;
    shared_ = &heaps_[1];
    shared_->id = 1;
    shared_->tag = no_owner_tag;
    {
        const std::lock_guard hold(spaces_lock);
        spaces[slot] = this;
    }
    return true;
}

void slab_heap::destroy() noexcept {
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        if (heap.home != nullptr) *heap.home = &empty_thread_heap;
    }
    {
        const std::lock_guard hold(spaces_lock);
        spaces[slot_] = nullptr;
    }
    heaps_.release();
    slack_.release();
    runs_.release();
}

// Threads.

thread_heap* slab_heap::heap_for_this_thread() noexcept {
    thread_heap* mine = thread_heaps[slot_];
    if (mine != &empty_thread_heap) return mine;
    // Without a hook the heap would never come back: use the shared one.
    if (!os::add_exit_hook(exit_hook) || !os::arm_exit_hooks()) return shared_;
    const std::lock_guard hold(registry_);
    if (spare_ != 0) {
        mine = &heaps_[spare_];
        spare_ = mine->next_spare;
    } else {
        if (heap_count_ >= max_heaps_ || !heaps_.commit_to(heap_count_ + 2)) return shared_;
        mine = &heaps_[++heap_count_];
        mine->id = heap_count_;
        mine->tag = fast_tag(mine->id, poison_);
    }
    mine->home = &thread_heaps[slot_];
    thread_heaps[slot_] = mine;
    return mine;
}

void slab_heap::thread_exit() noexcept {
    thread_heap* const mine = thread_heaps[slot_];
    if (mine == &empty_thread_heap) return;
    thread_heaps[slot_] = &empty_thread_heap;
    {
        const std::lock_guard hold(mine->lock);
        hand_back(*mine);
    }
    const std::lock_guard hold(registry_);
    mine->home = nullptr;
    mine->next_spare = spare_;
    spare_ = mine->id;
}

// Precondition: heap.lock is held, and its thread does not use the heap.
void slab_heap::hand_back(thread_heap& heap) noexcept {
    for (unsigned word = 0; word < std::size(heap.used_bins); ++word) {
        for (std::uint64_t left = heap.used_bins[word]; left != 0; left &= left - 1) {
            const unsigned bin = word * 64 + static_cast<unsigned>(std::countr_zero(left));
            if (slab_run* const run = heap.current[bin]) {
                heap.current[bin] = nullptr;
                run->current.store_relaxed(false);
                run->used.store_relaxed(run->used.load_relaxed() - 1);
                hand_back_run(*run, heap.id);
            }
            while (heap.attached[bin].first != 0) {
                slab_run& run = runs_[heap.attached[bin].first - 1];
                unlist_attached(heap, run);
                hand_back_run(run, heap.id);
            }
        }
        heap.used_bins[word] = 0;
    }
}

// Precondition: the run is ATTACHED to `owner`, neither current nor listed.
void slab_heap::hand_back_run(slab_run& run, std::uint32_t owner) noexcept {
    for (;;) {
        if (run.free.load_relaxed() == nullptr) {
            std::uint32_t count = 0;
            if (const std::uint32_t head = run.word.grab(owner, &count)) {
                adopt_list(run, head, count);
            }
        }
        if (run.used.load_relaxed() == 0) {
            to_pool(run);
            return;
        }
        if (run.free.load_relaxed() != nullptr || run.fresh < run.capacity) {
            run.word.queue(owner);
            partial_[run.bin.load_relaxed()].push(number_of(run), next_link());
            return;
        }
        if (run.word.detach(owner)) return; // full: its frees will queue it
    }
}

// Runs.

// Precondition: the local list is empty; the caller owns the run and just took this remote list.
void slab_heap::adopt_list(slab_run& run, std::uint32_t head, std::uint32_t count) noexcept {
    run.free.store_release(memory_of(run) + (head - 1) * granule);
    run.used.store_relaxed(run.used.load_relaxed() - count);
}

// Precondition: the caller has the run for itself and nothing of it is handed out.
void slab_heap::to_pool(slab_run& run) noexcept {
    run.word.release();
    run.free.store_relaxed(nullptr);
    run.returned.store_relaxed(false);
    dirty_.push(number_of(run), next_link());
}

bool slab_heap::extend(slab_run& run) noexcept {
    if (run.fresh >= run.capacity) return false;
    const std::size_t size = run.block_size.load_relaxed();
    const std::size_t wanted = std::max(extend_bytes / size, extend_blocks_min);
    const std::size_t count = std::min<std::size_t>(wanted, run.capacity - run.fresh);
    char* const first = memory_of(run) + run.fresh * size;
    char* block = first;
    for (std::size_t i = 1; i < count; ++i, block += size) {
        *reinterpret_cast<void**>(block) = block + size;
    }
    *reinterpret_cast<void**>(block) = nullptr;
    run.fresh = static_cast<std::uint16_t>(run.fresh + count);
    run.free.store_release(first);
    return true;
}

// Makes the local list nonempty, if the run has anything. Precondition: `owner` owns the run.
bool slab_heap::refill(slab_run& run, std::uint32_t owner) noexcept {
    if (run.free.load_relaxed() != nullptr) return true;
    std::uint32_t count = 0;
    if (const std::uint32_t head = run.word.grab(owner, &count)) {
        adopt_list(run, head, count);
        return true;
    }
    return extend(run);
}

void slab_heap::make_current(thread_heap& heap, unsigned bin, slab_run& run) noexcept {
    run.used.store_relaxed(run.used.load_relaxed() + 1);
    run.current.store_relaxed(true);
    heap.used_bins[bin / 64] |= std::uint64_t{1} << (bin % 64);
    heap.current[bin] = &run;
}

void slab_heap::list_attached(thread_heap& heap, slab_run& run) noexcept {
    const unsigned bin = run.bin.load_relaxed();
    thread_heap::attached_list& list = heap.attached[bin];
    const std::uint32_t number = number_of(run) + 1;
    run.attached_previous = 0;
    run.attached_next = list.first;
    if (list.first != 0) runs_[list.first - 1].attached_previous = number;
    list.first = number;
    ++list.count;
    heap.used_bins[bin / 64] |= std::uint64_t{1} << (bin % 64);
}

void slab_heap::unlist_attached(thread_heap& heap, slab_run& run) noexcept {
    thread_heap::attached_list& list = heap.attached[run.bin.load_relaxed()];
    if (run.attached_previous != 0) {
        runs_[run.attached_previous - 1].attached_next = run.attached_next;
    } else {
        list.first = run.attached_next;
    }
    if (run.attached_next != 0) {
        runs_[run.attached_next - 1].attached_previous = run.attached_previous;
    }
    --list.count;
}

// Precondition: the run is the caller's, out of the pool or new.
void slab_heap::start_run(slab_run& run, unsigned bin, std::uint32_t owner) noexcept {
    const std::size_t size = class_block_size(bin % size_classes);
    run.free.store_relaxed(nullptr);
    run.used.store_relaxed(0);
    run.block_size.store_relaxed(static_cast<std::uint32_t>(size));
    run.bin.store_relaxed(static_cast<std::uint16_t>(bin));
    run.capacity = static_cast<std::uint16_t>(run_bytes / size);
    run.fresh = 0;
    run.current.store_relaxed(false);
    run.word.attach(owner);
}

slab_run* slab_heap::free_run() noexcept {
    std::uint32_t number = dirty_.pop(next_link());
    if (number == dirty_.none) number = returned_.pop(next_link());
    if (number != dirty_.none) return &runs_[number];
    if (slab_run* const run = run_from_frontier()) return run;
    // The range is used up: some partial runs may be wholly free by now.
    scavenge_partial();
    number = dirty_.pop(next_link());
    return number == dirty_.none ? nullptr : &runs_[number];
}

slab_run* slab_heap::run_from_frontier() noexcept {
    const std::lock_guard hold(commit_);
    const std::uint32_t number = frontier_.load_relaxed();
    const std::size_t end = (std::size_t{number} + 1) << run_shift;
    if (end > bytes_) return nullptr;
    if (end > committed_) {
        std::size_t chunk = std::min(commit_chunk(committed_), bytes_ - committed_);
        const std::size_t runs = (committed_ + chunk) >> run_shift;
        if (!runs_.commit_to(runs) || !slack_.commit_to(runs << (run_shift - 7))) return nullptr;
        if (os::commit(base_ + committed_, chunk) != 0) {
            // Little may still fit where a chunk does not.
            chunk = run_bytes;
            if (os::commit(base_ + committed_, chunk) != 0) return nullptr;
        }
        committed_ += chunk;
    }
    frontier_.store_release(number + 1);
    return &runs_[number];
}

// A run of the bin, ATTACHED to the heap, current and with a block on its list; null: exhausted.
// Precondition: heap.lock is held.
slab_run* slab_heap::find_run(thread_heap& heap, unsigned bin) noexcept {
    if (slab_run* const run = heap.current[bin]) {
        for (;;) {
            if (refill(*run, heap.id)) return run;
            // Everything is handed out: leave the run to those who free.
            heap.current[bin] = nullptr;
            run->current.store_relaxed(false);
            run->used.store_relaxed(run->used.load_relaxed() - 1);
            if (run->word.detach(heap.id)) break;
            make_current(heap, bin, *run); // a block came back meanwhile
        }
    }
    while (heap.attached[bin].first != 0) {
        slab_run& run = runs_[heap.attached[bin].first - 1];
        unlist_attached(heap, run);
        make_current(heap, bin, run);
        native::check(refill(run, heap.id), "an attached run has nothing to give");
        return &run;
    }
    const std::uint32_t number = partial_[bin].pop(next_link());
    if (number != partial_[bin].none) {
        slab_run& run = runs_[number];
        run.word.take(heap.id);
        make_current(heap, bin, run);
        native::check(refill(run, heap.id), "a queued run has nothing to give");
        return &run;
    }
    slab_run* const run = free_run();
    if (run == nullptr) return nullptr;
    start_run(*run, bin, heap.id);
    make_current(heap, bin, *run);
    extend(*run);
    return run;
}

void* slab_heap::pop_locked(thread_heap& heap, unsigned bin) noexcept {
    slab_run* const run = find_run(heap, bin);
    if (run == nullptr) return nullptr;
    void* const block = run->free.load_relaxed();
    run->used.store_relaxed(run->used.load_relaxed() + 1);
    run->free.store_relaxed(*static_cast<void**>(block));
    return block;
}

void* slab_heap::allocate_slow(unsigned bin) noexcept {
    thread_heap& heap = *heap_for_this_thread();
    const std::lock_guard hold(heap.lock);
    return pop_locked(heap, bin);
}

void slab_heap::free_slow(void* block) noexcept {
    slab_run& run = run_of(block);
    if (poison_) poison(block, run.block_size.load_relaxed());
    thread_heap& heap = *thread_heaps[slot_];
    const run_view now = run.word.view_relaxed();
    if (now.owner == heap.id && heap.id != 0) {
        if (now.state == run_state::attached) { // only with poison: free() does it otherwise
            *static_cast<void**>(block) = run.free.load_relaxed();
            run.free.store_release(block);
            const std::uint32_t used = run.used.load_relaxed() - 1;
            run.used.store_relaxed(used);
            if (used == 0) emptied(run);
            return;
        }
        const unsigned bin = run.bin.load_relaxed();
        if (now.state == run_state::detached && heap.attached[bin].count < max_attached) {
            const std::lock_guard hold(heap.lock);
            std::uint32_t head = 0;
            std::uint32_t count = 0;
            if (run.word.reattach(heap.id, &head, &count)) {
                // The block goes on top of what others freed.
                *static_cast<void**>(block) =
                    head == 0 ? nullptr : memory_of(run) + (head - 1) * granule;
                run.free.store_release(block);
                const std::uint32_t used = run.used.load_relaxed() - count - 1;
                run.used.store_relaxed(used);
                if (used == 0) {
                    to_pool(run);
                } else {
                    list_attached(heap, run);
                }
                return;
            }
        }
    }
    const auto offset = static_cast<std::size_t>(static_cast<char*>(block) - memory_of(run));
    const auto number = static_cast<std::uint32_t>(offset / granule);
    const auto link = [&](std::uint32_t head) {
        *static_cast<void**>(block) =
            head == 0 ? nullptr : memory_of(run) + (head - 1) * granule;
    };
    if (run.word.push_remote(number, threshold_of(run), link) == push_result::queued) {
        partial_[run.bin.load_relaxed()].push(number_of(run), next_link());
    }
}

// The last block of a run of this thread came back, and the run is not current.
void slab_heap::emptied(slab_run& run) noexcept {
    thread_heap& heap = *thread_heaps[slot_];
    const std::lock_guard hold(heap.lock);
    // One empty run stays: the next allocation after a burst of frees wants it.
    if (heap.attached[run.bin.load_relaxed()].count <= 1) return;
    unlist_attached(heap, run);
    to_pool(run);
}

// Collector, and threads in need.

// Moves partial runs whose every block came back to the pool. A run popped off its stack is the caller's;
// if all that is handed out is on its remote list nobody can push any more.
void slab_heap::scavenge_partial() noexcept {
    for (auto& stack : partial_) {
        if (stack.empty()) continue;
        std::uint32_t number = stack.take_all();
        while (number != stack.none) {
            slab_run& run = runs_[number];
            const std::uint32_t next = run.next.load_relaxed();
            if (run.word.view().count == run.used.load_relaxed()) {
                to_pool(run);
            } else {
                stack.push(number, next_link());
            }
            number = next;
        }
    }
}

std::size_t slab_heap::return_free_memory() noexcept {
    scavenge_partial();
    std::vector<std::uint32_t> runs;
    std::size_t bytes = 0;
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
    // From the top, so that the lowest run lies on top of the stack at the end.
    for (std::size_t last = runs.size(); last > 0;) {
        std::size_t first = last - 1;
        while (first > 0 && runs[first - 1] + 1 == runs[first]) --first;
        const std::size_t length = (last - first) << run_shift;
        char* const begin = base_ + (std::size_t{runs[first]} << run_shift);
        const bool ok = os::advise(begin, length, os::advice::dontneed) == 0;
        if (ok) bytes += length;
        for (std::size_t i = last; i > first; --i) {
            runs_[runs[i - 1]].returned.store_relaxed(ok);
            (ok ? returned_ : dirty_).push(runs[i - 1], next_link());
        }
        last = first;
    }
    return bytes;
}

std::size_t slab_heap::size_of_racy(const void* block) const noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(block) - base_);
    if ((offset >> run_shift) >= frontier_.load_acquire()) return 0;
    const slab_run& run = runs_[offset >> run_shift];
    std::size_t size = run.block_size.load_relaxed();
    if (size > max_exact_class) {
        const std::size_t slack = granule * slack_of(block).load_relaxed();
        if (slack >= size) return 0;
        size -= slack;
    }
    // A run that changed its bin meanwhile could make the object end in the next run.
    return (offset & (run_bytes - 1)) + size <= run_bytes ? size : 0;
}

slab_counters slab_heap::counters() const noexcept {
    slab_counters sum;
    const std::uint32_t end = frontier_.load_acquire();
    for (std::uint32_t i = 0; i < end; ++i) {
        const slab_run& run = runs_[i];
        const run_view now = run.word.view();
        if (now.state == run_state::free) {
            if (!run.returned.load_relaxed()) sum.extent_bytes += run_bytes;
            continue;
        }
        ++sum.runs;
        sum.extent_bytes += run_bytes;
        const std::uint32_t used = run.used.load_relaxed();
        const std::uint32_t gone = now.count + (run.current.load_relaxed() ? 1U : 0U);
        if (used <= gone) continue; // also when a racing change made the figures disagree
        sum.live_objects += used - gone;
        sum.live_bytes += std::uint64_t{used - gone} * run.block_size.load_relaxed();
    }
    return sum;
}

std::size_t slab_heap::metadata_bytes() const noexcept {
    return runs_.committed_bytes() + slack_.committed_bytes() + heaps_.committed_bytes();
}

void slab_heap::walk_extents(void (*visit)(void*, char*, char*), void* context) const {
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

// fork. All locks are held across it, so the lists of the heaps are whole in the child. What a thread of
// the parent may have been doing without a lock: one step of allocate or free on the local list of a run,
// or pushing or popping a run on a stack. The child repairs both from the runs' words; a block that was in
// a register of such a thread is lost to the child, like all memory that only that thread knew.

void slab_heap::fork_prepare() noexcept {
    registry_.lock();
    for (std::uint32_t id = 1; id <= heap_count_; ++id) heaps_[id].lock.lock();
    commit_.lock();
}

void slab_heap::fork_parent() noexcept {
    commit_.unlock();
    for (std::uint32_t id = 1; id <= heap_count_; ++id) heaps_[id].lock.unlock();
    registry_.unlock();
}

// The list is whole at every instruction; `used` may be one too high.
void slab_heap::recount_after_fork(slab_run& run) noexcept {
    std::uint32_t listed = 0;
    for (void* block = run.free.load_relaxed(); block != nullptr; block = *static_cast<void**>(block)) {
        ++listed;
    }
    run.used.store_relaxed(run.fresh - listed + (run.current.load_relaxed() ? 1U : 0U));
}

void slab_heap::rebuild_stacks_after_fork() noexcept {
    dirty_.take_all();
    returned_.take_all();
    for (auto& stack : partial_) stack.take_all();
    for (std::uint32_t number = frontier_.load_relaxed(); number-- > 0;) {
        const slab_run& run = runs_[number];
        const run_state state = run.word.view().state;
        if (state == run_state::free) {
            (run.returned.load_relaxed() ? returned_ : dirty_).push(number, next_link());
        } else if (state == run_state::queued) {
            partial_[run.bin.load_relaxed()].push(number, next_link());
        }
    }
}

void slab_heap::fork_child() noexcept {
    commit_.unlock();
    rebuild_stacks_after_fork();
    const thread_heap* const mine = thread_heaps[slot_];
    for (std::uint32_t id = 1; id <= heap_count_; ++id) {
        thread_heap& heap = heaps_[id];
        // Threads of the parent do not exist here: their runs go to whoever needs them. Their `home`
        // is not written, it lies in memory of a thread that is gone.
        if (&heap != mine && heap.home != nullptr) {
            for (unsigned bin = 0; bin < bins; ++bin) {
                if (heap.current[bin] != nullptr) recount_after_fork(*heap.current[bin]);
                for (std::uint32_t at = heap.attached[bin].first; at != 0;) {
                    slab_run& run = runs_[at - 1];
                    recount_after_fork(run);
                    at = run.attached_next;
                }
            }
            hand_back(heap);
            heap.home = nullptr;
            heap.next_spare = spare_;
            spare_ = id;
        }
        heap.lock.unlock();
    }
    registry_.unlock();
}

const char* slab_heap::validate() const noexcept {
    const std::uint32_t end = frontier_.load_acquire();
    for (std::uint32_t i = 0; i < end; ++i) {
        const slab_run& run = runs_[i];
        const run_view now = run.word.view();
        if (now.state == run_state::free) {
            if (now.count != 0 || now.head != 0) return "a free run has remote blocks";
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
            for (; block != nullptr && count <= run.capacity;
                 block = *static_cast<void* const*>(block)) {
                const auto offset =
                    static_cast<std::size_t>(static_cast<const char*>(block) - memory_of(run));
                if (offset % size != 0 || offset / size >= run.fresh) return run.capacity + 1U;
                ++count;
            }
            return count;
        };
        const std::uint32_t local = length(run.free.load_relaxed());
        const std::uint32_t remote =
            length(now.head == 0 ? nullptr : memory_of(run) + (now.head - 1) * granule);
        if (local > run.capacity) return "local list of a run is broken";
        if (remote != now.count) return "remote list of a run and its count disagree";
        const std::uint32_t used = run.used.load_relaxed() - (run.current.load_relaxed() ? 1U : 0U);
        if (local + used != run.fresh) return "used blocks of a run are miscounted";
        if (remote > used) return "more blocks came back than were out";
        if (now.state == run_state::detached && (local != 0 || run.fresh != run.capacity)) {
            return "a detached run was not full";
        }
        if (now.state == run_state::detached && now.count >= threshold_of(run)) {
            return "a detached run is past its threshold";
        }
    }
    return nullptr;
}

} // namespace obase::heap
