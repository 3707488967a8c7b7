// SPDX-License-Identifier: MIT
//
// slab_heap: the NEW class. Size-class slabs with a heap per thread, at allocator-grade speed.
//
// Words. *block*: what one object gets; all blocks of a run have one size. *bin*: (attributes, size
// class); a run serves one bin at a time. *current*: the run a thread allocates from, per bin.
// *attached list*: further runs of that thread and bin with room.
//
// Life of a run: see run_word.hpp. Between a thread and a run it is ATTACHED to there are no atomic
// read-modify-writes: allocate pops the run's local list, free pushes to it. Everything else (a list that
// ran dry, a block of somebody else's run, a run that became empty) is in slab.cpp.
//
// Invariants of a run
//   ATTACHED: it is its owner's current run of its bin, or on the owner's attached list, and then it
//   has a local block, a remote block or a block never handed out.
//   used == blocks handed out and not back on the local list (so it includes the remote list)
//           + 1 while the run is current. The 1 keeps a lone allocate/free pair from emptying the run.
//   blocks on the local list + used - current == fresh <= capacity
//
// Sizes: classes up to 128 bytes hold one size. Above, the difference between block and object, in
// granules, is kept in one byte per 128 bytes of address (blocks are larger than that, so no two share).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/reserved_array.hpp"
#include "heap/run_stack.hpp"
#include "heap/run_word.hpp"
#include "heap/size_class.hpp"
#include "os/platform.hpp"

namespace obase::heap {

inline constexpr unsigned bins = attribute_sets * size_classes;
inline constexpr unsigned max_spaces = 16; // spaces alive at once in a process

using native = os::native_platform;

struct alignas(64) slab_run {
    run_word<native> word;
    native::atomic<void*> free;               // local list, linked through the blocks; owner only
    native::atomic<std::uint32_t> used;       // owner writes, the collector reads
    native::atomic<std::uint32_t> block_size; // constant while not FREE
    native::atomic<std::uint16_t> bin;        // constant while not FREE
    std::uint16_t capacity;                   // constant while not FREE
    std::uint16_t fresh;                      // blocks ever put on the local list since FREE
    native::atomic<bool> current;
    native::atomic<bool> returned;      // its pages were given back (meaningful while FREE)
    native::atomic<std::uint32_t> next; // link in a run_stack
    std::uint32_t attached_previous;    // run numbers, in the owner's attached list
    std::uint32_t attached_next;
};
static_assert(sizeof(slab_run) == 64);

// Held for a few instructions by its own thread; contended only by fork.
class heap_lock {
  public:
    void lock() noexcept {
        bool expected = false;
        while (!held_.cas_acq_rel(expected, true)) {
            expected = false;
            native::yield();
        }
    }
    void unlock() noexcept { held_.store_release(false); }

  private:
    native::atomic<bool> held_;
};

struct thread_heap {
    struct attached_list {
        std::uint32_t first; // run number + 1
        std::uint32_t count;
    };

    std::uint32_t tag;        // attached_tag(id), or no_owner_tag where free() must not be quick
    std::uint32_t id;         // 0 in the empty heap
    thread_heap** home;       // the thread's pointer to this heap; null while nobody has it
    std::uint32_t next_spare; // id of the next heap that nobody has
    heap_lock lock;           // held over every change of what follows, except current runs' lists
    std::uint64_t used_bins[(bins + 63) / 64];
    slab_run* current[bins];
    attached_list attached[bins];
};

// What a thread has before its first allocation: no current runs, owner of nothing. Never written.
extern thread_heap empty_thread_heap;

// One pointer per space. __thread, not thread_local: no initialisation check at each use.
extern __thread thread_heap* thread_heaps[max_spaces] __attribute__((tls_model("initial-exec")));

struct slab_counters {
    std::uint64_t live_bytes = 0; // in blocks
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0;
    std::uint64_t runs = 0;
};

class slab_heap {
  public:
    // `slot` is the index in thread_heaps. False: no address space for the tables.
    bool create(char* base, std::size_t bytes, unsigned slot, bool poison_freed) noexcept;
    // Precondition: no thread uses the heap any more, now or later.
    void destroy() noexcept;

    // Precondition: size == object_size(...), <= max_small_size, a multiple of the alignment of `set`
    // (an attribute_index). nullptr: exhausted.
    void* allocate(std::size_t size, unsigned set) noexcept {
        const unsigned index = size_class(size);
        const unsigned bin = set * size_classes + index;
        slab_run* run = thread_heaps[slot_]->current[bin];
        void* block = run != nullptr ? run->free.load_relaxed() : nullptr;
        if (block == nullptr) [[unlikely]] {
            block = allocate_slow(bin);
            if (block == nullptr) return nullptr;
            if (index >= exact_classes) note_slack(block, class_block_size(index) - size);
            return block;
        }
        // `used` first: if fork cuts in between, the child leaks a block and never shares one.
        run->used.store_relaxed(run->used.load_relaxed() + 1);
        run->free.store_relaxed(*static_cast<void**>(block));
        if (index >= exact_classes) note_slack(block, run->block_size.load_relaxed() - size);
        return block;
    }

    // Precondition: block came from allocate and is freed once.
    void free(void* block) noexcept {
        slab_run& run = run_of(block);
        if (run.word.is_mine(thread_heaps[slot_]->tag)) [[likely]] {
            *static_cast<void**>(block) = run.free.load_relaxed();
            run.free.store_release(block); // after the link, for a fork in between
            const std::uint32_t used = run.used.load_relaxed() - 1;
            run.used.store_relaxed(used);
            if (used == 0) [[unlikely]] emptied(run);
            return;
        }
        free_slow(block);
    }

    // Size of a live object.
    std::size_t size_of(const void* block) const noexcept {
        const slab_run& run = run_of(block);
        const std::size_t size = run.block_size.load_relaxed();
        return size <= max_exact_class ? size : size - granule * slack_of(block).load_relaxed();
    }
    unsigned set_of(const void* block) const noexcept {
        return run_of(block).bin.load_relaxed() / size_classes;
    }
    // The same for an object that may be freed at any moment: 0, or a size that ends inside its run.
    std::size_t size_of_racy(const void* block) const noexcept;

    // Hands the calling thread's runs to whoever needs them, and forgets the thread.
    void thread_exit() noexcept;

    // Collector only: gives free runs' pages back; returns bytes.
    std::size_t return_free_memory() noexcept;

    slab_counters counters() const noexcept;
    std::size_t metadata_bytes() const noexcept;
    // Calls visit(context, begin, end) for maximal stretches of runs that are not FREE.
    void walk_extents(void (*visit)(void*, char*, char*), void* context) const;

    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    void fork_child() noexcept;

    // Checks the invariants above. Precondition: nobody else touches the heap. nullptr: all hold.
    const char* validate() const noexcept;

  private:
    slab_run& run_of(const void* block) const noexcept {
        return runs_[static_cast<std::size_t>(static_cast<const char*>(block) - base_) >> run_shift];
    }
    native::atomic<std::uint8_t>& slack_of(const void* block) const noexcept {
        return slack_[static_cast<std::size_t>(static_cast<const char*>(block) - base_) >> 7];
    }
    void note_slack(void* block, std::size_t bytes) noexcept {
        slack_of(block).store_relaxed(static_cast<std::uint8_t>(bytes / granule));
    }
    std::uint32_t number_of(const slab_run& run) const noexcept {
        return static_cast<std::uint32_t>(&run - runs_.data());
    }
    char* memory_of(const slab_run& run) const noexcept {
        return base_ + (std::size_t{number_of(run)} << run_shift);
    }
    auto next_link() const noexcept {
        return [this](std::uint32_t number) -> native::atomic<std::uint32_t>& {
            return runs_[number].next;
        };
    }

    [[gnu::noinline]] void* allocate_slow(unsigned bin) noexcept;
    [[gnu::noinline]] void free_slow(void* block) noexcept;
    [[gnu::noinline]] void emptied(slab_run& run) noexcept;

    thread_heap* heap_for_this_thread() noexcept;
    void* pop_locked(thread_heap& heap, unsigned bin) noexcept;
    bool refill(slab_run& run, std::uint32_t owner) noexcept;
    bool extend(slab_run& run) noexcept;
    slab_run* find_run(thread_heap& heap, unsigned bin) noexcept;
    slab_run* free_run() noexcept;
    slab_run* run_from_frontier() noexcept;
    void start_run(slab_run& run, unsigned bin, std::uint32_t owner) noexcept;
    void make_current(thread_heap& heap, unsigned bin, slab_run& run) noexcept;
    void list_attached(thread_heap& heap, slab_run& run) noexcept;
    void unlist_attached(thread_heap& heap, slab_run& run) noexcept;
    void adopt_list(slab_run& run, std::uint32_t head, std::uint32_t count) noexcept;
    void to_pool(slab_run& run) noexcept;
    void hand_back(thread_heap& heap) noexcept;
    void hand_back_run(slab_run& run, std::uint32_t owner) noexcept;
    void recount_after_fork(slab_run& run) noexcept;
    void rebuild_stacks_after_fork() noexcept;
    void scavenge_partial() noexcept;

    char* base_ = nullptr;
    unsigned slot_ = 0;
    bool poison_ = false;
    reserved_array<slab_run> runs_;
    reserved_array<native::atomic<std::uint8_t>> slack_;

    std::size_t bytes_ = 0;
    alignas(64) run_stack<native> dirty_; // FREE runs whose pages hold old bytes
    run_stack<native> returned_;          // FREE runs without pages
    alignas(64) native::atomic<std::uint32_t> frontier_; // runs [0, frontier_) have been used
    std::mutex commit_;                                  // guards growth of all of the above
    std::size_t committed_ = 0;                          // bytes of memory committed

    alignas(64) std::mutex registry_; // guards the following three
    reserved_array<thread_heap> heaps_;
    std::uint32_t heap_count_ = 0; // ids 1 .. heap_count_ exist
    std::uint32_t spare_ = 0;      // first of the heaps that nobody has
    std::uint32_t max_heaps_ = 0;
    thread_heap* shared_ = nullptr; // for threads that cannot have their own: under its lock

    alignas(64) run_stack<native> partial_[bins];
};

} // namespace obase::heap
