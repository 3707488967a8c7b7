// SPDX-License-Identifier: MIT
//
// Deferred frees on the scopes' epochs: what retire() hands over is destroyed when no scope that
// could hold its address is open and no pin names it.
//
// The epoch of a batch is taken by whoever takes the list, after taking it, not by the thread that
// retired (R12): an object is unlinked before it is pushed, pushed before it is taken, and taken
// before the epoch advances, so a scope that shows the new epoch cannot have found the object.
//
// Threads: retire() by any thread; reclaim() by any thread, one at a time (others return at once).
// Destructors run in reclaim()'s caller, outside of every lock and hazard of obase (R13). A caller
// inside a scope may reclaim too: its own scope counts and merely delays what it retired itself.
#pragma once

#include "mobility/pins.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace obase::mobility {

template <class P>
class reclaimer {
  public:
    template <class T>
    using atomic = typename P::template atomic<T>;

    explicit reclaimer(scope_registry<P>& registry) noexcept : registry_(registry) {}

    struct progress {
        std::uint64_t objects = 0;
        std::uint64_t bytes = 0;
    };

    // Hands `node` over. The object must be unreachable for scopes that open from now on.
    void retire(thread_record<P>& self, retired_object& node) noexcept {
        retired_object* head = self.retired.load_relaxed();
        do {
            node.next = head;
        } while (!self.retired.cas_acq_rel(head, &node)); // release: pairs with take_all()
        pending_.fetch_add_relaxed(1);
    }

    // Takes what is retired, stamps it, and destroys every earlier batch whose scopes have ended.
    // `free_node(node)` gets each node back after its object is gone. Never blocks on scopes.
    template <class FreeNode>
    progress reclaim(FreeNode&& free_node) {
        if (busy_.exchange_acq_rel(1) != 0) return {};
        if (retired_object* taken = take_all(); taken != nullptr) {
            // R12: the epoch advances after the list was taken.
            const epoch_number epoch = registry_.advance();
            append_batch(taken, epoch);
        }
        retired_object* ready = collect_ready();
        busy_.store_release(0);

        progress done;
        while (ready != nullptr) {
            retired_object* node = std::exchange(ready, ready->next);
            node->destroy(node->object);
            ++done.objects;
            done.bytes += node->bytes;
            free_node(node);
        }
        if (done.objects != 0) pending_.fetch_sub_relaxed(done.objects);
        return done;
    }

    // From now on nothing is destroyed: some thread's scopes cannot be seen. Called before that
    // thread enters its first one, so a reclaimer that does not see the flag after looking at the
    // scopes is done with every address the thread could find.
    void stop() noexcept { stopped_.store_seq_cst(1); }

    // Retired and not yet destroyed.
    std::uint64_t pending() const noexcept { return pending_.load_relaxed(); }

    // Around a fork: no reclaim is between its two halves (R14).
    void fork_prepare() noexcept {
        while (busy_.exchange_acq_rel(1) != 0) P::yield();
    }
    void fork_done() noexcept { busy_.store_release(0); }

  private:
    // Batches wait in a list ordered by epoch; the nodes of a batch are chained through `next`.
    struct batch {
        retired_object* head = nullptr;
        epoch_number epoch = 0; // 0: membarrier failed, to be stamped again
    };
    static constexpr unsigned max_batches = 8;

    retired_object* take_all() noexcept {
        retired_object* all = nullptr;
        registry_.for_each_record([&](thread_record<P>& record) {
            if (record.retired.load_relaxed() == nullptr) return;
            retired_object* list = record.retired.exchange_acq_rel(nullptr);
            all = concatenate(list, all);
        });
        return all;
    }

    static retired_object* concatenate(retired_object* list, retired_object* rest) noexcept {
        if (list == nullptr) return rest;
        retired_object* last = list;
        while (last->next != nullptr) last = last->next;
        last->next = rest;
        return list;
    }

    void append_batch(retired_object* list, epoch_number epoch) noexcept {
        if (batches_ == max_batches) {
            // Merging into the youngest batch is safe if it takes the younger epoch.
            batch& youngest = batch_[batches_ - 1];
            youngest.head = concatenate(list, youngest.head);
            youngest.epoch = epoch;
        } else {
            batch_[batches_++] = {list, epoch};
        }
    }

    // Unlinks the batches whose epoch every scope has passed, less what is pinned, which waits for
    // another round (R9). The pins are read after the scopes: one that was claimed in a scope that
    // has ended is seen.
    retired_object* collect_ready() {
        unsigned passed = 0;
        bool is_passed[max_batches] = {};
        for (unsigned i = 0; i < batches_; ++i) {
            batch& b = batch_[i];
            if (b.epoch == 0) b.epoch = registry_.advance();
            is_passed[i] = b.epoch != 0 && registry_.all_passed(b.epoch);
            passed += is_passed[i];
        }
        if (passed == 0 || stopped_.load_seq_cst() != 0) return nullptr;
        try {
            collect_pins(registry_, pinned_);
        } catch (const std::bad_alloc&) {
            return nullptr; // everything stays retired
        }

        retired_object* ready = nullptr;
        retired_object* kept = nullptr;
        unsigned left = 0;
        for (unsigned i = 0; i < batches_; ++i) {
            if (!is_passed[i]) {
                batch_[left++] = batch_[i];
                continue;
            }
            for (retired_object* node = batch_[i].head; node != nullptr;) {
                retired_object* next = node->next;
                const bool held =
                    is_pinned(pinned_, reinterpret_cast<std::uintptr_t>(node->object));
                retired_object*& list = held ? kept : ready;
                node->next = list;
                list = node;
                node = next;
            }
        }
        batches_ = left;
        // No scope can reach these objects any more; any epoch will do for another look at the
        // pins.
        if (kept != nullptr) append_batch(kept, left != 0 ? batch_[left - 1].epoch : 1);
        return ready;
    }

    scope_registry<P>& registry_;
    atomic<std::uint32_t> busy_;
    atomic<std::uint32_t> stopped_;
    atomic<std::uint64_t> pending_;
    batch batch_[max_batches];          // under busy_
    unsigned batches_ = 0;              // under busy_
    std::vector<std::uint64_t> pinned_; // under busy_
};

} // namespace obase::mobility
