// SPDX-License-Identifier: MIT
//
// slab_heap: the NEW class. Size-class slabs with a heap per thread, at allocator-grade speed. Templated on
// its platform: its tests run this text under the deterministic scheduler (slab_schedules_test.cpp).
//
// Words. *block*: what one object gets; all blocks of a run have one size. *bin*: (attributes, size
// class); a run serves one bin at a time. Per thread and bin: the *current* run, from which new
// blocks come; the *thread cache*, of a few blocks this thread freed last, of any thread's runs;
// the *attached list*, of further runs of this thread with room.
//
// allocate() takes a block of the thread cache (its bytes are still in the processor's), else pops
// the current run's local list. free() puts the block into the thread cache, or when that is full
// back to the current run. Neither needs an atomic read-modify-write. The rest (lists that ran dry
// or full, runs to give away) is in slab_functions.hpp, under the thread heap's lock, which only
// fork, counters() and the collector contend for. Life of a run: see run_word.hpp.
//
// A run per thread and size class is memory too: 160 classes above 512 bytes are 10 MiB for a thread that has an object or
// two of each. So such a bin has no run of its own before it has *borrowed*, since the collector was here last, some
// blocks of the largest class among its eight (quiet.hpp), and the current run of a bin that has become quiet goes back.
//
// Invariants of a run
//   ATTACHED: it is its owner's current run of its bin, or on the owner's attached list.
//   used == blocks handed out and not back on the local list, which includes those on the remote
//   list and in thread caches, + 1 while the run is current.
//   blocks on the local list + used - current + the decommitted ones (decommit.hpp) == fresh <=
//   capacity
//
// Sizes: classes up to 128 bytes hold one size. Above, the difference between block and object, in
// granules, is kept in one byte per 128 bytes of address, and for blocks above 512 in one byte per 512
// (blocks are larger than that, so no two share).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "heap/invalid_free.hpp"
#include "heap/pacer.hpp"
#include "heap/poison.hpp"
#include "heap/reserved_array.hpp"
#include "heap/run_stack.hpp"
#include "heap/run_word.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/waiting.hpp"

namespace obase::heap {

inline constexpr unsigned bins = attribute_sets * size_classes;
inline constexpr unsigned max_spaces = 16; // spaces alive at once in a process

using native = os::native_platform;

// A free block begins with the link to the next one of its list.
OBASE_SEES_HIDDEN inline void* next_of(const void* block) noexcept {
    return *static_cast<void* const*>(block);
}
OBASE_SEES_HIDDEN inline void set_next(void* block, void* next) noexcept {
    *static_cast<void**>(block) = next;
}

template <class P>
struct alignas(64) slab_run {
    run_word<P> word;
    typename P::template atomic<void*> free;               // local list, linked through the blocks
    typename P::template atomic<std::uint32_t> used;       // the collector reads it at any time
    typename P::template atomic<std::uint32_t> block_size; // constant while not FREE
    typename P::template atomic<std::uint16_t> bin;        // constant while not FREE
    std::uint16_t capacity;                                // constant while not FREE
    std::uint16_t fresh; // blocks ever put on the local list since FREE
    typename P::template atomic<bool> current;
    typename P::template atomic<bool> returned; // its pages were given back (meaningful while FREE)
    bool idle;                                  // the next for decommit_idle_runs()
    // Blocks out when the collector last saw it while it was no thread's current one; 0: it
    // did not.
    std::uint16_t last_in_use;
    typename P::template atomic<std::uint16_t>
        decommitted_pages;                           // given back while not FREE, a bit each
    typename P::template atomic<std::uint32_t> next; // link in a run_stack
    std::uint32_t attached_previous; // run numbers + 1, in the owner's ring of attached runs
    std::uint32_t attached_next;
};
static_assert(sizeof(slab_run<native>) == 64);

// True if a run should be taken from a thread that keeps it but may be idle, and its pages scanned.
template <class P>
bool mostly_free(const slab_run<P>& run, std::uint32_t blocks_in_use) noexcept {
    return blocks_in_use <= run.capacity / 4U;
}

template <class P>
std::size_t decommitted_bytes(const slab_run<P>& run) noexcept {
    return static_cast<std::size_t>(std::popcount(run.decommitted_pages.load_relaxed())) *
           os::page_size;
}

// The pages of its run that `count` blocks from the block `index` on lie in, a bit each.
// Preconditions: count > 0, index + count <= capacity.
constexpr std::uint32_t pages_of_blocks(std::size_t index, std::size_t count,
                                        std::size_t block_size) noexcept {
    static_assert(run_bytes / os::page_size == 16);
    const std::size_t first = index * block_size / os::page_size;
    const std::size_t last = ((index + count) * block_size - 1) / os::page_size;
    return (std::uint32_t{2} << last) - (std::uint32_t{1} << first);
}

// Held for a few instructions by its own thread; contended only by fork, by counters() and by the
// collector.
template <class P>
using heap_lock = os::blocking_lock<P>;

template <class P>
struct thread_bin {
    slab_run<P>* current;
    void* cached;                                     // linked through the blocks, newest first
    typename P::template atomic<std::uint32_t> count; // length of cached
    std::uint32_t limit;                              // of count; 0 until the bin is used
    std::uint32_t attached; // oldest run of the attached ring, number + 1; 0: none
    std::uint16_t attached_count;
    std::uint8_t borrowed;    // blocks of the lender's runs, in the round `borrowed_in`
    std::uint8_t borrowed_in; // modulo 256: after as many rounds without a block it borrows later
};
static_assert(sizeof(thread_bin<native>) == 32);

inline constexpr unsigned slack_shift = 7;
inline constexpr unsigned fine_slack_shift = 9;
static_assert(max_exact_class == 1u << slack_shift && fine_from == 1u << fine_slack_shift);

// What the fast paths need of the slab_heap: one load from the thread's memory leads to all of it. All zero
// in the empty heap, so that no address is in the range of a thread that has no heap.
template <class P>
struct thread_view {
    char* base;
    std::size_t bytes;
    slab_run<P>* runs;
    typename P::template atomic<std::uint8_t>* slack;
    typename P::template atomic<std::uint8_t>* fine_slack;

    std::size_t offset_of(const void* block) const noexcept {
        return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(base);
    }
    // For slab_heap::size_of().
    void note_size(void* block, unsigned index, std::size_t size) const noexcept {
        if (index < exact_classes) return;
        const std::size_t unused = detail::block_table[index] - round_up(size, granule);
        const bool fine = index >= fine_classes_begin;
        (fine ? fine_slack : slack)[offset_of(block) >> (fine ? fine_slack_shift : slack_shift)]
            .store_relaxed(static_cast<std::uint8_t>(unused / granule));
    }
};

template <class P>
struct thread_heap {
    std::uint32_t id;         // 0 in the empty heap
    std::uint32_t next_spare; // id of the next heap that no thread has
    thread_heap** home;       // the thread's pointer to this heap; null while no thread has it
    heap_lock<P> lock;        // held over every change except the two lists of the fast paths
    thread_view<P> view;
    std::uint32_t looked_in; // the last round in which it gave quiet runs back
    std::uint32_t look_at;   // the next bin of the round that is not
    std::uint64_t used_bins[(bins + 63) / 64];
    alignas(64) thread_bin<P> bin[bins];
};

// A block from the lists of the calling thread, whose heap is `mine`. It calls nothing, so that it costs its
// callers no registers. nullptr: they are empty. Precondition: as slab_heap::allocate(), but size need not be a
// multiple of 8.
template <class P>
[[gnu::always_inline]] inline void* allocate_at_hand(thread_heap<P>& mine, std::size_t size,
                                                     unsigned set) noexcept;
// Puts a block of the heap that `mine` is of onto the lists of the calling thread, whose heap is `mine`. It
// calls nothing. False: they are full, or the address is not in the range, and nothing was done.
template <class P>
[[gnu::always_inline]] inline bool free_at_hand(thread_heap<P>& mine, void* block) noexcept;

// The heap of a thread before its first allocation: no current runs, owner of nothing. Never
// written.
template <class P>
inline thread_heap<P> empty_thread_heap{};
template <>
inline constinit thread_heap<native> empty_thread_heap<native>{};

// One pointer per space. __thread, not thread_local: no initialisation check at each use.
extern __thread thread_heap<native>* thread_heaps[max_spaces]
    __attribute__((tls_model("initial-exec")));

template <class P>
class slab_heap;

// A thread's memory of its heaps, and of its end. Tests specialize it for their platforms.
template <class P>
struct thread_memory;
template <>
struct thread_memory<native> {
    // The heap of the calling thread in the space with this slot; the empty heap if it has none.
    static thread_heap<native>*& heap(unsigned slot) noexcept { return thread_heaps[slot]; }
    // The calling thread will call thread_exit() of all its spaces when it ends. False: it cannot.
    static bool arm_exit() noexcept;
    // The space in the slot, for threads that end; null: none any more.
    static void enrol(unsigned slot, slab_heap<native>* heap) noexcept;
};

struct slab_counters {
    std::uint64_t live_bytes = 0; // in blocks
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0;
    std::uint64_t runs = 0;
};

template <class P>
class slab_heap {
    using slab_run = heap::slab_run<P>;
    using thread_bin = heap::thread_bin<P>;
    using thread_view = heap::thread_view<P>;
    using thread_heap = heap::thread_heap<P>;

  public:
    // `slot` is the index in thread_heaps. `tracks`: the caller tells of each block that it is out.
    // False: no address space for the tables.
    bool create(char* base, std::size_t bytes, unsigned slot, bool tracks,
                poisoning poison_freed) noexcept;
    // Precondition: no thread uses the heap any more, now or later.
    void destroy() noexcept;

    // Precondition: size == object_size(...), <= max_small_size, a multiple of the alignment of
    // `set` (an attribute_index). nullptr: exhausted.
    void* allocate(std::size_t size, unsigned set) noexcept {
        if (void* const block = allocate_at_hand(own_heap(), size, set); block != nullptr)
            [[likely]]
            return block;
        return allocate_slow(size, set);
    }
    // As allocate(), but not from what the thread freed last.
    void* allocate_packed(std::size_t size, unsigned set) noexcept;

    // Precondition: block came from allocate and is freed once.
    void free(void* block) noexcept {
        if (!free_at_hand(own_heap(), block)) free_slow(block);
    }
    // The same, poisoning the block first.
    void free_poisoned(void* block) noexcept;
    // Frees a block, and nothing else (slab_checked.hpp). Without tracking, a second free of a block that
    // has left this thread's lists is not seen.
    free_result free_checked(void* block) noexcept;
    // Precondition: create() was told that blocks are tracked; the block was just allocated.
    void note_allocated(const void* block) noexcept;
    // True if a block of a run in use begins at the address, which lies in the range. It may be free.
    bool begins_block(const void* address) const noexcept;
    // True if it was told so and the block is not freed. Precondition: as note_allocated().
    bool is_out(const void* block) const noexcept;

    // Size of a live object.
    std::size_t size_of(const void* block) const noexcept {
        const slab_run& run = run_of(block);
        const std::size_t size = run.block_size.load_relaxed();
        return size <= max_exact_class ? size
                                       : size - granule * slack_of(block, size).load_relaxed();
    }
    // The object gets another size in its block. Preconditions: it fits, a multiple of its alignment.
    void note_size(void* block, std::size_t size) noexcept {
        view_.note_size(block, run_of(block).bin.load_relaxed() % size_classes, size);
    }
    unsigned set_of(const void* block) const noexcept {
        return run_of(block).bin.load_relaxed() / size_classes;
    }
    // Share of the block's run that live blocks take, 0..1. Racy: the counts may be a few behind.
    double live_fraction_of_run(const void* block) const noexcept {
        const slab_run& run = run_of(block);
        const std::uint32_t used = run.used.load_relaxed();
        const std::uint32_t remote = run.word.view_relaxed().count;
        const double blocks = used > remote ? used - remote : 0;
        return std::min(1.0, blocks * run.block_size.load_relaxed() / run_bytes);
    }
    // size_of for an object that may be freed at any moment: 0, or a size that ends inside its
    // run.
    std::size_t size_of_racy(const void* block) const noexcept;

    // Releases the calling thread's runs to other threads, and forgets the thread.
    void thread_exit() noexcept;

    // Collector only: gives free runs' pages back, and the caller's cached blocks to their runs;
    // returns bytes. Other threads' mostly free runs are released to all threads, and their pages
    // are decommitted once they are idle (decommit.hpp): a thread that does not allocate again
    // would keep them.
    std::size_t decommit_free_memory(pacer& ask) noexcept;

    // Emptying runs, for the collector (closed.hpp). Nothing is allocated from a *closed* run, and
    // what is freed in it stays in it.

    std::size_t runs() const noexcept { return frontier_.load_acquire(); }
    // Blocks handed out, those in thread caches included. Racy.
    std::uint32_t blocks_in_use(std::size_t run) const noexcept;
    std::uint32_t block_size(std::size_t run) const noexcept {
        return runs_[run].block_size.load_relaxed();
    }
    // Bytes of its blocks that are in memory, handed out or not. 0: it is free, or a thread's current one,
    // whose blocks come into memory as it is filled. Racy.
    std::size_t room_in_memory(std::size_t run) const noexcept;
    // Closes those runs below `end` for which wanted(context, run) is true, except for the current
    // ones of threads.
    void close_runs(std::size_t end, bool (*wanted)(void*, std::size_t), void* context) noexcept;
    bool closed(std::size_t run) const noexcept;
    // Precondition: closed(run), which ends. Gives what is empty back to the system: the whole of each
    // run, or its pages under no block, and lets the rest be allocated from. `runs` ascend. Returns the
    // bytes given back.
    std::size_t open_runs(const std::uint32_t* runs, std::size_t count, pacer& ask) noexcept;

    // Runs whose blocks are known elsewhere (src/handles): an *evacuated* run is closed, its memory is gone, and its
    // blocks' numbers stay taken. No thread frees into it any more.

    // Blocks of objects that may move (without the attribute never_cold) in the thread cache go back to their runs. The
    // heap's thread does not allocate or free such objects meanwhile, or is the calling one.
    void flush_movable(thread_heap*& here) noexcept;
    // Precondition: it is out, and the caller keeps it out of the calling thread's lists.
    void free_to_run(void* block) noexcept { push_remote_blocks(run_of(block), block, block, 1); }
    // Calls visit(number) for the blocks of a run that are out. Preconditions: closed(run), no thread frees into it
    // meanwhile, nor has blocks of it in its cache. Returns the number of blocks that it has had: they lie in front.
    template <class Visit>
    std::uint32_t for_each_block_out(std::size_t run, Visit&& visit) const;
    // closed -> evacuated.
    void evacuated(std::size_t run) noexcept;
    bool is_evacuated(std::size_t run) const noexcept;
    // evacuated -> free. Precondition: its memory is accessible again, and empty.
    void release_evacuated(std::size_t run) noexcept;
    // evacuated -> closed. Its memory is there again, with the blocks for which out(context, number) is true.
    void restore_evacuated(std::size_t run, bool (*out)(void*, std::size_t),
                           void* context) noexcept;
    // A run that a thread is filling, which close_runs() does not close.
    bool is_current(std::size_t run) const noexcept { return runs_[run].current.load_relaxed(); }
    bool is_free(std::size_t run) const noexcept {
        return runs_[run].word.view_relaxed().state == run_state::free;
    }

    slab_counters counters() const noexcept;
    // Ever given to threads: memory that was not resident. A run counts as a whole.
    std::uint64_t new_bytes() const noexcept { return new_bytes_.load_relaxed(); }
    std::size_t metadata_bytes() const noexcept;
    // Calls visit(context, begin, end) for maximal stretches of runs that are not FREE.
    void walk_extents(void (*visit)(void*, char*, char*), void* context) const;

    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    void fork_child() noexcept;

    // Checks the invariants above. Precondition: no other thread uses the heap. nullptr: all hold.
    const char* validate() const noexcept;

  private:
    thread_heap& own_heap() const noexcept { return *thread_memory<P>::heap(slot_); }
    std::size_t offset_of(const void* block) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(block) - base_);
    }
    std::size_t granule_of(const void* block) const noexcept { return offset_of(block) / granule; }
    std::uint64_t stamp_of(const void* block) const noexcept;
    bool may_be_free(const void* block, std::size_t block_size) const noexcept;
    bool listed_here(const slab_run& run, const void* block) const noexcept;
    slab_run& run_of(const void* block) const noexcept {
        return runs_[offset_of(block) >> run_shift];
    }
    // Of a block of that size, which is none that holds one size only.
    typename P::template atomic<std::uint8_t>& slack_of(const void* block,
                                                        std::size_t block_size) const noexcept {
        const std::size_t offset = offset_of(block);
        return block_size > fine_from ? fine_slack_[offset >> fine_slack_shift]
                                      : slack_[offset >> slack_shift];
    }
    std::uint32_t number_of(const slab_run& run) const noexcept {
        return static_cast<std::uint32_t>(&run - runs_.data());
    }
    char* memory_of(const slab_run& run) const noexcept {
        return base_ + (std::size_t{number_of(run)} << run_shift);
    }
    auto next_link() const noexcept {
        return [this](std::uint32_t number) ->
               typename P::template atomic<std::uint32_t>& { return runs_[number].next; };
    }

    // Calls visit(number) for the bins that have had runs, while it returns true.
    template <class Visit>
    void while_bins(Visit&& visit) const {
        for (unsigned word = 0; word < std::size(bins_with_runs_); ++word) {
            // Pairs with start_run().
            for (std::uint64_t left = bins_with_runs_[word].load_acquire(); left != 0;
                 left &= left - 1)
                if (!visit(word * 64 + static_cast<unsigned>(std::countr_zero(left)))) return;
        }
    }

    static constexpr std::uint32_t closed_owner = 0x3FFF'FFFE;    // no heap's id
    static constexpr std::uint32_t evacuated_owner = 0x3FFF'FFFD; // likewise

    [[gnu::noinline]] void* allocate_slow(std::size_t size, unsigned set) noexcept;
    [[gnu::noinline]] void free_slow(void* block) noexcept;

    thread_heap* heap_for_this_thread() noexcept;
    void flush(thread_heap& heap, thread_bin& bin, std::uint32_t keep) noexcept;
    void flush_all(thread_heap& heap) noexcept;
    void return_blocks(thread_heap& heap, slab_run& run, void* first, void* last,
                       std::uint32_t count) noexcept;
    void push_remote_blocks(slab_run& run, void* first, void* last, std::uint32_t count) noexcept;
    bool refill(slab_run& run) noexcept;
    bool extend(slab_run& run) noexcept;
    slab_run* find_run(thread_heap& heap, unsigned number, bool urgent) noexcept;
    slab_run* free_run(bool urgent) noexcept;
    bool commit_more() noexcept;
    slab_run* run_from_frontier() noexcept;
    void start_run(slab_run& run, unsigned number, std::uint32_t owner) noexcept;
    void make_current(thread_heap& heap, unsigned number, slab_run& run) noexcept;
    void use_bin(thread_heap& heap, unsigned number) noexcept;
    void list_attached(thread_heap& heap, slab_run& run) noexcept;
    void unlist_attached(thread_heap& heap, slab_run& run) noexcept;
    slab_run* roomy_attached(thread_heap& heap, unsigned number) noexcept;
    slab_run* borrow(thread_heap& heap, unsigned number, bool urgent) noexcept;
    void leave_current(thread_bin& bin) noexcept;
    void give_back_quiet_runs(thread_heap& heap) noexcept;
    void adopt_list(slab_run& run, std::uint32_t head, std::uint32_t count) noexcept;
    void add_to_pool(slab_run& run) noexcept;
    void release_runs(thread_heap& heap) noexcept;
    void release_run(slab_run& run, std::uint32_t owner) noexcept;
    void recount_after_fork(slab_run& run) noexcept;
    void rebuild_stacks_after_fork() noexcept;
    enum class scavenge : bool { urgent, collector };
    void scavenge_partial(scavenge caller) noexcept;
    void scavenge_attached() noexcept;
    bool unchanged_since_last_scan(slab_run& run) noexcept;
    std::size_t decommit_idle_runs(pacer& ask) noexcept;
    std::size_t decommit_unused_pages(slab_run& run, pacer& ask) noexcept;
    bool sort_dirty_runs() noexcept;
    void decommit_slack() noexcept;
    std::size_t decommit_piece(const std::uint32_t* runs, std::size_t count, pacer& ask) noexcept;
    bool recommit(slab_run& run) noexcept;
    std::uint32_t decommitted_blocks(const slab_run& run) const noexcept;

    char* base_ = nullptr;
    unsigned slot_ = 0;
    bool tracks_ = false;
    poisoning poison_ = poisoning::none;
    thread_view view_{}; // what all heaps of threads have
    reserved_array<slab_run> runs_;
    reserved_array<typename P::template atomic<std::uint8_t>> slack_, fine_slack_;
    reserved_array<typename P::template atomic<std::uint64_t>>
        out_; // if tracks_: a bit per granule, of blocks

    std::size_t bytes_ = 0;
    alignas(64) run_stack<P> dirty_; // FREE runs whose pages hold old bytes
    run_stack<P> sorted_;            // FREE runs that are to be returned, the highest on top
    run_stack<P> returned_;          // FREE runs without pages
    alignas(64)
        typename P::template atomic<std::uint32_t> frontier_; // runs [0, frontier_) have been used
    typename P::template atomic<std::size_t> committed_; // bytes of memory committed, never fewer
    typename P::template atomic<std::uint64_t> new_bytes_;
    typename P::template atomic<std::uint32_t>
        rounds_; // of the collector: a hint, no order is needed

    alignas(64) mutable heap_lock<P> registry_; // guards the following three
    reserved_array<thread_heap> heaps_;
    std::uint32_t heap_count_ = 0; // ids 1 .. heap_count_ exist
    std::uint32_t spare_ = 0;      // first of the heaps that no thread has
    std::uint32_t max_heaps_ = 0;
    thread_heap* shared_ = nullptr; // for threads that cannot have their own: under its lock

    bool slack_left_ = false; // collector: of returned runs, in pages that they share with others

    heap_lock<P>
        decommitting_; // held over each change of lists by decommit_unused_pages(), for fork

    typename P::template atomic<std::uint64_t> bins_with_runs_[(bins + 63) / 64]; // ever
    alignas(64) run_stack<P> partial_[bins];
    run_stack<P>
        idle_[bins]; // partial runs too, which decommit_unused_pages() has seen: the second choice
};

namespace detail {

// The address in one register: g++ else computes that of each member anew.
template <class P>
[[gnu::always_inline]] inline thread_bin<P>& bin_of(thread_heap<P>& mine,
                                                    unsigned number) noexcept {
    thread_bin<P>* bin = &mine.bin[number];
    asm("" : "+r"(bin));
    return *bin;
}

// A block on the local list of the bin's current run; nullptr: there is none.
template <class P>
[[gnu::always_inline]] inline void* allocate_from_run(thread_bin<P>& bin) noexcept {
    slab_run<P>* const run = bin.current;
    if (run == nullptr) [[unlikely]]
        return nullptr;
    void* const block = run->free.load_relaxed();
    if (block == nullptr) [[unlikely]]
        return nullptr;
    run->used.store_relaxed(run->used.load_relaxed() + 1);
    run->free.store_relaxed(next_of(block));
    return block;
}

} // namespace detail

template <class P>
void* allocate_at_hand(thread_heap<P>& mine, std::size_t size, unsigned set) noexcept {
    const unsigned index = size_class(size);
    thread_bin<P>& bin = detail::bin_of(mine, set * size_classes + index);
    void* block = bin.cached;
    if (block != nullptr) {
        bin.cached = next_of(block);
        bin.count.store_relaxed(bin.count.load_relaxed() - 1);
    } else if ((block = detail::allocate_from_run(bin)) == nullptr) {
        return nullptr;
    }
    mine.view.note_size(block, index, size);
    return block;
}

template <class P>
bool free_at_hand(thread_heap<P>& mine, void* block) noexcept {
    const std::size_t offset = mine.view.offset_of(block);
    if (offset >= mine.view.bytes) [[unlikely]]
        return false;
    slab_run<P>& run = mine.view.runs[offset >> run_shift];
    thread_bin<P>& bin = detail::bin_of(mine, run.bin.load_relaxed());
    // The thread cache first: a program that frees and allocates in turns then always takes the
    // same two branches, whichever run the block is of. The head of a list is stored after the
    // link, because fork may cut in between.
    if (const std::uint32_t count = bin.count.load_relaxed(); count < bin.limit) [[likely]] {
        set_next(block, bin.cached);
        P::compiler_fence();
        bin.cached = block;
        bin.count.store_relaxed(count + 1);
    } else if (&run == bin.current) {
        set_next(block, run.free.load_relaxed());
        run.free.store_release(block);
        run.used.store_relaxed(run.used.load_relaxed() - 1);
    } else {
        return false;
    }
    return true;
}

// In slab.cpp. Another platform's needs slab_functions.hpp.
extern template class slab_heap<native>;

} // namespace obase::heap
