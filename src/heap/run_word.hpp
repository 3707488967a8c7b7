// SPDX-License-Identifier: MIT
//
// run_word: the one atomic word of a slab run: the thread that may allocate from it, and the blocks
// that others freed.
//
//   63          48 47          32 31                  2 1     0
//   +-------------+--------------+---------------------+-------+
//   | remote head | remote count |        owner        | state |
//   +-------------+--------------+---------------------+-------+
//
// remote head   block on top of the list of blocks freed by other threads, as (offset / 8) + 1;
//               0: the list is empty. The blocks are linked through their first bytes.
// remote count  length of that list; at most the run's capacity (<= 8192).
// owner         id of the thread heap, 1 .. 2^30-2; kept while DETACHED so that it may come back.
// state         FREE      no owner, in the pool. Owner and list are zero.
//               ATTACHED  the owner allocates and frees here without atomics.
//               DETACHED  full when it was detached; the owner leaves it alone, unless it frees one
//                         of its blocks and takes it back.
//               QUEUED    on the stack of partial runs of its bin, or about to be pushed there by
//                         the one thread whose transition made it QUEUED. The thread that pops it
//                         owns it.
//
//   FREE --attach--> ATTACHED --detach--> DETACHED --push at threshold--> QUEUED --take--> ATTACHED
//                    ATTACHED --queue--> QUEUED        (thread exit, or by the collector)
//                    ATTACHED --release--> FREE        QUEUED --release--> FREE
//                    DETACHED --reattach--> ATTACHED   (by its owner only)
//                    DETACHED --close_detached--> ATTACHED   (to no thread's heap, by the collector)
//
// Invariants, with L = blocks handed out and not yet returned:
//   DETACHED: count + L == capacity, so the push that brings count to the threshold exists.
//   Exactly one transition makes a run QUEUED, so it is pushed on a stack exactly once.
//
// Orders: a push releases the freer's last accesses to the block, and grab, take and reattach
// acquire them; every change is a read-modify-write, so all pushes since the last grab stay in one
// release sequence. The owner may look at the state relaxed, under the lock of its heap: only it
// makes its own ATTACHED, and only it ends that, or the collector under the same lock.
//
// Dense runs have no such word: they have no local list and need only a count.
#pragma once

#include <cstdint>

namespace obase::heap {

enum class run_state : std::uint8_t { free = 0, attached = 1, detached = 2, queued = 3 };

// The fields of the word, from one load.
struct run_view {
    run_state state;
    std::uint32_t owner;
    std::uint32_t count; // blocks on the remote list
    std::uint32_t head;  // 0, or (offset / 8) + 1
};

enum class push_result : std::uint8_t {
    pushed,
    queued // the caller made the run QUEUED and must push it on its bin's stack
};

// The word of a run that `owner` has, with an empty remote list.
constexpr std::uint64_t attached_word(std::uint32_t owner) noexcept {
    return std::uint64_t{owner} << 2 | static_cast<std::uint64_t>(run_state::attached);
}

template <class P>
class run_word {
  public:
    run_view view() const noexcept { return unpack(word_.load_acquire()); }
    run_view view_relaxed() const noexcept { return unpack(word_.load_relaxed()); }

    // FREE -> ATTACHED. Precondition: the caller popped the run from the pool or just made it.
    void attach(std::uint32_t owner) noexcept { word_.store_release(attached_word(owner)); }

    // ATTACHED or QUEUED: takes the remote list. Returns its head (0: it was empty) and its length.
    // Precondition: the caller is the owner, or popped the run off its stack.
    std::uint32_t grab(std::uint32_t* count) noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (;;) {
            const run_view now = unpack(seen);
            *count = now.count;
            if (now.count == 0) return 0;
            if (word_.cas_acq_rel(seen, pack(now.state, now.owner, 0, 0))) return now.head;
        }
    }

    // ATTACHED -> DETACHED, only while the remote list is empty; false: it is not, grab it.
    // Preconditions: the caller is the owner, and every block of the run is handed out.
    bool detach(std::uint32_t owner) noexcept {
        std::uint64_t expected = attached_word(owner);
        return word_.cas_acq_rel(expected, pack(run_state::detached, owner, 0, 0));
    }

    // DETACHED(owner) -> ATTACHED, and takes the remote list. False: no longer DETACHED.
    // Precondition: called by the owner.
    bool reattach(std::uint32_t owner, std::uint32_t* head, std::uint32_t* count) noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (;;) {
            const run_view now = unpack(seen);
            if (now.state != run_state::detached || now.owner != owner) return false;
            *head = now.head;
            *count = now.count;
            if (word_.cas_acq_rel(seen, attached_word(owner))) return true;
        }
    }

    // DETACHED -> ATTACHED(owner), keeping the remote list. False: no longer DETACHED. For a run that is
    // to be emptied: `owner` is no thread's.
    bool close_detached(std::uint32_t owner) noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (;;) {
            const run_view now = unpack(seen);
            if (now.state != run_state::detached) return false;
            if (word_.cas_acq_rel(seen, pack(run_state::attached, owner, now.count, now.head)))
                return true;
        }
    }

    // ATTACHED -> QUEUED, keeping the remote list; the caller then pushes the run on its stack.
    // Precondition: the caller is the owner and has left `free` and `used` of the run as they are
    // to be.
    void queue(std::uint32_t owner) noexcept { change_state(run_state::queued, owner); }

    // QUEUED -> ATTACHED, keeping the remote list. Precondition: the caller popped it off its
    // stack.
    void take(std::uint32_t owner) noexcept { change_state(run_state::attached, owner); }

    // -> FREE. Preconditions: the caller has the run for itself (owner of an ATTACHED run, or
    // popped it off its stack), and no block of it is handed out, so that no thread can push any
    // more.
    void release() noexcept { word_.store_release(0); }

    // Gives `blocks` blocks, linked with `first` on top, back from a thread that does not own the
    // run. `link(head)` stores the list's present head in the last of them; it may be called
    // several times. At `threshold` blocks a DETACHED run becomes QUEUED.
    template <class Link>
    push_result push_remote(std::uint32_t first, std::uint32_t blocks, std::uint32_t threshold,
                            Link&& link) noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (;;) {
            const run_view now = unpack(seen);
            P::check(now.state != run_state::free, "free of a block in a free run");
            link(now.head);
            const std::uint32_t count = now.count + blocks;
            const bool queues = now.state == run_state::detached && count >= threshold;
            const run_state next = queues ? run_state::queued : now.state;
            if (word_.cas_acq_rel(seen, pack(next, now.owner, count, first + 1))) {
                return queues ? push_result::queued : push_result::pushed;
            }
        }
    }

  private:
    static constexpr std::uint64_t pack(run_state state, std::uint32_t owner, std::uint32_t count,
                                        std::uint32_t head) noexcept {
        return static_cast<std::uint64_t>(state) | std::uint64_t{owner} << 2 |
               std::uint64_t{count} << 32 | std::uint64_t{head} << 48;
    }
    static constexpr run_view unpack(std::uint64_t word) noexcept {
        return {static_cast<run_state>(word & 3U),
                static_cast<std::uint32_t>(word >> 2) & 0x3FFF'FFFFU,
                static_cast<std::uint32_t>(word >> 32) & 0xFFFFU,
                static_cast<std::uint32_t>(word >> 48)};
    }

    void change_state(run_state state, std::uint32_t owner) noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (;;) {
            const run_view now = unpack(seen);
            if (word_.cas_acq_rel(seen, pack(state, owner, now.count, now.head))) return;
        }
    }

    typename P::template atomic<std::uint64_t> word_;
};

} // namespace obase::heap
