// SPDX-License-Identifier: MIT
//
// Deferred frees on the scopes' epochs: what retire() hands over is destroyed when no scope that
// could hold its address is open and no pin names it.
//
// An object passes through four places:
//   a thread's record   a list per thread, pushed by its owner
//   a batch             lists that were taken together, with the epoch that scopes must have passed
//   ready               batches that they have passed; one queue of lists
//   kept                what was pinned when it came out of ready; it is looked at again later
//
// The epoch of a batch is taken by the thread that takes the lists, after taking them, not by the
// thread that retired (R12): an object is unlinked before it is pushed, pushed before it is taken,
// and taken before the epoch advances, so a scope that shows the new epoch cannot have found the
// object.
//
// With a collector or without one, each thread that retires does a share of it after every
// limits::step objects (share()) and when it ends (leave()), whatever the backlog is. A share
// destroys up to four objects for each one retired since the last, so a backlog shrinks, and no
// call destroys more than limits::share of them. Lists are taken once a thread has retired
// limits::take objects; what all threads together have not yet handed over stays below
// limits::untaken, or one step per thread. The collector's thread does the rest (reclaim_all()).
//
// Threads: retire() by any thread on its own record; the others by any thread. lock_ is held for a
// bounded number of steps and never over a system call or a destructor: destructors run in the
// caller, outside of every lock and hazard of obase (R13). A caller inside a scope may reclaim too:
// its own scope counts and merely delays what it retired itself.
#pragma once

#include <obase/mobility/drain.hpp>

#include "mobility/pins.hpp"
#include "os/waiting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace obase::mobility {

// In objects and in bytes; whichever is reached first counts.
struct reclaim_limits {
    struct amount {
        std::uint64_t objects;
        std::uint64_t bytes;
    };
    amount step{32, std::uint64_t{128} << 10};   // retired by a thread between two shares
    amount share{128, std::uint64_t{1} << 20};   // destroyed in a share; bytes: or 8 x retired
    amount take{1024, std::uint64_t{128} << 10}; // retired by a thread between two takes, at most
    amount untaken{16384, std::uint64_t{64} << 20}; // of all threads, on average
};

template <class P>
class reclaimer {
  public:
    template <class T>
    using atomic = typename P::template atomic<T>;
    using record = thread_record<P>;

    explicit reclaimer(scope_registry<P>& registry, const reclaim_limits& limits = {}) noexcept
        : registry_(registry), limits_(limits) {}

    struct progress {
        std::uint64_t objects = 0;
        std::uint64_t bytes = 0;
    };

    // Hands `node` over. The object must be unreachable for scopes that open from now on. True: the
    // thread's share() is due once it is outside of scopes.
    bool retire(record& self, retired_object& node) noexcept {
        const std::size_t bytes = node.bytes; // once pushed, the node is another thread's to free
        push(self, node);
        // For drain(): before the end of the destructor that retires is announced.
        if (self.reclaiming) nested_.fetch_add_relaxed(1);
        self.retired_count += 1;
        self.retired_bytes += bytes;
        self.untaken_count += 1;
        self.untaken_bytes += bytes;
        return share_is_due(self);
    }
    // The same on a record that several threads share: counts nothing, no share is ever due.
    void push(record& shared, retired_object& node) noexcept {
        retired_object* head = shared.retired.load_relaxed();
        do {
            node.next = head;
        } while (!shared.retired.cas_acq_rel(head, &node)); // release: pairs with take_lists()
        pending_.fetch_add_relaxed(1);
    }
    bool share_is_due(const record& self) const noexcept {
        return !self.reclaiming && (self.retired_count >= limits_.step.objects ||
                                    self.retired_bytes >= limits_.step.bytes);
    }

    // The caller's share of the work, which is bounded and waits for no scope. `free_node(node)`
    // gets each node back after its object is gone. Outside of scopes, since destructors may want
    // locks.
    template <class FreeNode>
    progress share(record& self, FreeNode&& free_node) {
        if (self.reclaiming) return {}; // a destructor that retires
        const working now(self);
        const std::uint64_t bytes = std::max(limits_.share.bytes, 8 * self.retired_bytes);
        self.retired_count = 0;
        self.retired_bytes = 0;
        if (take_is_due(self)) take(self);
        // Another thread is at it. A share that is left out while much is pending would be missed.
        if (!lock_.try_lock()) {
            if (pending() < limits_.untaken.objects) return {};
            lock_.lock();
        }
        if (ready_.first == nullptr) find_ready();
        retired_object* out = pop({limits_.share.objects, bytes}, &self);
        lock_.unlock();
        return destroy(out, &self, free_node);
    }

    // The thread ends: a last share, with what it has not yet handed over.
    template <class FreeNode>
    progress leave(record& self, FreeNode&& free_node) {
        if (self.reclaiming || self.untaken_count == 0) return {};
        {
            const working now(self);
            take(self);
        }
        return share(self, free_node);
    }

    // Takes what is retired and destroys all that no scope and no pin holds, or until
    // may_continue() is false. Does not wait for scopes. `self`: the caller's record, null if it
    // has none.
    template <class FreeNode, class MayContinue>
    progress reclaim(FreeNode&& free_node, record* self, MayContinue&& may_continue) {
        if (self != nullptr && self->reclaiming) return {};
        const working now(self);
        take_lists();
        return destroy_ready(free_node, self, may_continue);
    }
    template <class FreeNode>
    progress reclaim(FreeNode&& free_node) {
        return reclaim(free_node, nullptr, [] { return true; });
    }

    // The same again and again while the destructors retire and something was destroyed.
    template <class FreeNode, class MayContinue>
    progress reclaim_all(record& self, FreeNode&& free_node, MayContinue&& may_continue) {
        progress total;
        for (;;) {
            const std::uint64_t nested = nested_.load_relaxed();
            const progress done = reclaim(free_node, &self, may_continue);
            total.objects += done.objects;
            total.bytes += done.bytes;
            if (done.objects == 0 || nested_.load_relaxed() == nested || !may_continue())
                return total;
        }
    }

    // Destroys everything that was retired before the call, with what the destructors retire, and
    // waits for destructors under way in other threads. Whenever that takes waiting or another
    // round, keep_waiting(why) is asked: it lets other threads run, or returns false to give up.
    template <class FreeNode, class KeepWaiting>
    drain_end drain(record& self, FreeNode&& free_node, KeepWaiting&& keep_waiting) {
        if (self.reclaiming) return drain_end::in_destructor;
        if (self.epoch.load_relaxed() != 0) return drain_end::in_scope;
        const working now(self);
        for (;;) {
            const std::uint64_t nested = nested_.load_acquire();
            if (const drain_end end = drain_once(self, free_node, keep_waiting);
                end != drain_end::done)
                return end;
            if (nested_.load_acquire() == nested) return drain_end::done;
            if (!keep_waiting(drain_end::retiring)) return drain_end::retiring;
        }
    }

    // From now on nothing is destroyed: some thread's scopes cannot be seen. Called before that
    // thread enters its first one, so a reclaimer that does not see the flag after looking at the
    // scopes is done with every address the thread could find.
    void stop() noexcept { stopped_.store_seq_cst(1); }

    // Objects that destructors have retired, ever.
    std::uint64_t retired_by_destructors() const noexcept { return nested_.load_relaxed(); }

    // Retired and not yet destroyed.
    std::uint64_t pending() const noexcept { return pending_.load_relaxed(); }

    // Around a fork: no thread is between two states of the lists (R14).
    void fork_prepare() noexcept { lock_.lock(); }
    void fork_parent() noexcept { lock_.unlock(); }
    // What other threads were destroying is lost, and no longer pending. `self` may be null.
    void fork_child(const record* self) noexcept {
        registry_.for_each_record([&](record& r) {
            if (&r == self || r.destroying.load_relaxed() == 0) return;
            pending_.fetch_sub_relaxed(r.destroying_count);
            r.destroying.store_relaxed(0);
        });
        lock_.unlock_in_child();
    }

  private:
    // A queue of lists; the nodes of a list are chained through `next`, the heads of the lists
    // through `next_list`. Every operation takes constant time.
    struct queue {
        retired_object* first = nullptr; // head of the first list
        retired_object* last = nullptr;  // head of the last list
        std::uint64_t lists = 0;

        void append(retired_object* list) noexcept {
            list->next_list = nullptr;
            (last != nullptr ? last->next_list : first) = list;
            last = list;
            ++lists;
        }
        void append(const queue& other) noexcept {
            if (other.first == nullptr) return;
            (last != nullptr ? last->next_list : first) = other.first;
            last = other.last;
            lists += other.lists;
        }
        retired_object* pop() noexcept {
            retired_object* node = first;
            if (retired_object* rest = node->next; rest != nullptr) {
                rest->next_list = node->next_list;
                if (last == node) last = rest;
                first = rest;
            } else {
                first = node->next_list;
                if (first == nullptr) last = nullptr;
                --lists;
            }
            return node;
        }
    };
    struct batch {
        queue lists;
        epoch_number epoch = 0;   // 0: not yet known, or membarrier failed
        std::uint64_t serial = 0; // of the take
    };
    static constexpr unsigned max_batches = 8;
    static constexpr std::uint64_t chunk =
        256; // objects destroyed between two looks at may_continue()

    // While one exists, the destructors that the thread runs do not reclaim.
    class working {
      public:
        explicit working(record& self) noexcept : working(&self) {}
        explicit working(record* self) noexcept : self_(self) {
            if (self_ != nullptr) self_->reclaiming = true;
        }
        ~working() {
            if (self_ != nullptr) self_->reclaiming = false;
        }
        working(const working&) = delete;
        working& operator=(const working&) = delete;

      private:
        record* self_;
    };

    bool take_is_due(const record& self) const noexcept {
        const std::uint64_t threads = std::max<std::uint64_t>(registry_.records(), 1);
        const auto part = [&](std::uint64_t all, std::uint64_t most, std::uint64_t least) {
            return std::max(std::min(all / threads, most), least);
        };
        return self.untaken_count >=
                   part(limits_.untaken.objects, limits_.take.objects, limits_.step.objects) ||
               self.untaken_bytes >=
                   part(limits_.untaken.bytes, limits_.take.bytes, limits_.step.bytes);
    }
    void take(record& self) noexcept {
        if (!take_lists()) return;
        self.untaken_count = 0;
        self.untaken_bytes = 0;
    }

    // All threads' lists become a batch, which gets its epoch. False: no room for a batch, the lists
    // stay where they are.
    bool take_lists() noexcept {
        lock_.lock();
        const bool room = batches_ != max_batches;
        if (room) {
            batch fresh;
            registry_.for_each_record([&](record& r) {
                if (r.retired.load_relaxed() == nullptr) return;
                if (retired_object* list = r.retired.exchange_acq_rel(nullptr); list != nullptr)
                    fresh.lists.append(list);
            });
            if (fresh.lists.first != nullptr) {
                fresh.serial = ++serial_;
                batch_[batches_++] = fresh;
            }
        }
        bool wanted = false;
        for (unsigned i = 0; i < batches_; ++i) wanted |= batch_[i].epoch == 0;
        const std::uint64_t serial = serial_;
        lock_.unlock();
        if (!wanted) return room;
        // R12: the epoch advances after the lists were taken, by this thread or by another one.
        const epoch_number epoch = registry_.advance();
        if (epoch == 0) return room;
        lock_.lock();
        for (unsigned i = 0; i < batches_; ++i)
            if (batch_[i].epoch == 0 && batch_[i].serial <= serial) batch_[i].epoch = epoch;
        lock_.unlock();
        return room;
    }

    // Batches that every scope has passed become ready, and what was kept is to be looked at again.
    // The pins are read after the scopes: one that was claimed in a scope that has ended is seen
    // (R9). For what is ready already the younger list of pins is as good. Returns what is in the
    // way of other batches. With lock_ held.
    drain_end find_ready() {
        if (batches_ == 0 && kept_ == nullptr) return drain_end::done;
        const epoch_number oldest = registry_.oldest_scope();
        if (stopped_.load_seq_cst() != 0) return drain_end::thread_without_record;
        try {
            collect_pins(registry_, pins_now_);
        } catch (const std::bad_alloc&) {
            return drain_end::no_memory; // what is ready keeps the list it has
        }
        pinned_.swap(pins_now_);
        drain_end in_the_way = drain_end::done;
        unsigned left = 0;
        for (unsigned i = 0; i < batches_; ++i) {
            const batch& b = batch_[i];
            if (b.epoch != 0 && b.epoch <= oldest) {
                add_ready(b.lists);
            } else {
                in_the_way = b.epoch == 0 ? drain_end::no_membarrier : drain_end::scope_open;
                batch_[left++] = b;
            }
        }
        batches_ = left;
        if (kept_ != nullptr) {
            queue kept;
            kept.append(std::exchange(kept_, nullptr));
            add_ready(kept);
        }
        return in_the_way;
    }
    void add_ready(const queue& lists) noexcept {
        ready_.append(lists);
        enqueued_ += lists.lists;
    }

    // Takes objects out of ready, less what is pinned, for destroy(). With lock_ held.
    retired_object* pop(reclaim_limits::amount most, record* self) noexcept {
        retired_object* out = nullptr;
        std::uint32_t objects = 0;
        std::uint64_t bytes = 0;
        for (std::uint64_t looks = 4 * most.objects;
             looks != 0 && ready_.first != nullptr && objects < most.objects && bytes < most.bytes;
             --looks) {
            retired_object* node = ready_.pop();
            const bool held = is_pinned(pinned_, reinterpret_cast<std::uintptr_t>(node->object));
            retired_object*& list = held ? kept_ : out;
            node->next = list;
            list = node;
            if (held) continue;
            ++objects;
            bytes += node->bytes;
        }
        if (objects != 0 && self != nullptr) {
            self->destroying_count = objects;
            self->destroying.store_release(++tickets_); // pairs with drain_once()
        }
        return out;
    }

    template <class FreeNode>
    progress destroy(retired_object* out, record* self, FreeNode&& free_node) {
        progress done;
        while (out != nullptr) {
            retired_object* node = std::exchange(out, out->next);
            node->destroy(node->object);
            ++done.objects;
            done.bytes += node->bytes;
            free_node(node);
        }
        if (done.objects == 0) return done;
        if (self != nullptr) self->destroying.store_release(0); // pairs with drain_once()
        pending_.fetch_sub_relaxed(done.objects);
        return done;
    }

    // All that is ready or can be, without what becomes ready meanwhile.
    template <class FreeNode, class MayContinue>
    progress destroy_ready(FreeNode&& free_node, record* self, MayContinue&& may_continue,
                           drain_end* in_the_way = nullptr) {
        progress total;
        lock_.lock();
        const drain_end found = find_ready();
        const std::uint64_t goal = enqueued_;
        if (in_the_way != nullptr) *in_the_way = found;
        for (;;) {
            const bool over = enqueued_ - ready_.lists >= goal;
            retired_object* out = over ? nullptr : pop({chunk, ~std::uint64_t{0}}, self);
            lock_.unlock();
            const progress done = destroy(out, self, free_node);
            total.objects += done.objects;
            total.bytes += done.bytes;
            if (over || !may_continue()) return total;
            lock_.lock();
        }
    }

    // Without what destructors retire meanwhile.
    template <class FreeNode, class KeepWaiting>
    drain_end drain_once(record& self, FreeNode&& free_node, KeepWaiting&& keep_waiting) {
        const auto always = [] { return true; };
        drain_end in_the_way = drain_end::done;
        // Everything in batches, which takes room for one.
        while (!take_lists()) {
            destroy_ready(free_node, &self, always, &in_the_way);
            if (in_the_way != drain_end::done && !keep_waiting(in_the_way)) return in_the_way;
        }
        lock_.lock();
        const std::uint64_t serial = serial_;
        lock_.unlock();
        for (;;) {
            destroy_ready(free_node, &self, always, &in_the_way);
            lock_.lock();
            bool left = kept_ != nullptr;
            if (left && in_the_way == drain_end::done) in_the_way = drain_end::pinned;
            for (unsigned i = 0; i < batches_; ++i) left |= batch_[i].serial <= serial;
            lock_.unlock();
            if (!left) break;
            if (!keep_waiting(in_the_way)) return in_the_way;
            if (in_the_way == drain_end::no_membarrier) take_lists(); // asks for an epoch again
        }
        // What other threads have taken out of ready. It was marked with lock_ held.
        lock_.lock();
        const std::uint64_t ticket = tickets_;
        lock_.unlock();
        bool given_up = false;
        registry_.for_each_record([&](const record& r) {
            if (&r == &self) return;
            for (;;) {
                const std::uint64_t seen = r.destroying.load_acquire(); // pairs with destroy()
                if (seen == 0 || seen > ticket || given_up) return;
                given_up = !keep_waiting(drain_end::destructor_running);
            }
        });
        return given_up ? drain_end::destructor_running : drain_end::done;
    }

    scope_registry<P>& registry_;
    const reclaim_limits limits_;
    os::blocking_lock<P> lock_;
    atomic<std::uint32_t> stopped_;
    atomic<std::uint64_t> pending_;
    atomic<std::uint64_t> nested_; // objects that destructors have retired
    // With lock_ held:
    batch batch_[max_batches]; // in the order of their serials
    unsigned batches_ = 0;
    queue ready_;
    retired_object* kept_ = nullptr;    // a list
    std::vector<std::uint64_t> pinned_; // as of the last find_ready()
    std::vector<std::uint64_t> pins_now_;
    std::uint64_t serial_ = 0;   // takes so far
    std::uint64_t enqueued_ = 0; // lists ever in ready_
    std::uint64_t tickets_ = 0;  // calls of pop() that took something
};

} // namespace obase::mobility
