// SPDX-License-Identifier: MIT
//
// atc_world: the ATC protocol without a runtime around it, for the deterministic scheduler and for
// OS threads. As world_test.hpp is for arming, whose heaps and ways of running it uses; the
// threads' half here is the product's own (atc_threads), and so is the index of threads.
//
// Its index has one place, so that every second thread collides.
#pragma once

#include "mobility/activity_index.hpp"
#include "mobility/atc_mover.hpp"
#include "mobility/atc_thread.hpp"
#include "mobility/world_test.hpp"

#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace obase::mobility {

template <class E, class Cell>
class atc_world {
  public:
    using P = typename E::platform;
    using slot = typename P::template atomic<std::uint64_t>;
    using entry = atc_entry<P>;
    using index_type = activity_index<P, entry, 1>;
    using layout = word::atc;

    struct heap_type : E::heap {
        unsigned class_of(const void*) const noexcept { return 1; }
    };
    using mover_type = atc_mover<P, heap_type>;

    struct object {
        object(std::uint64_t identity, std::uint64_t v)
            : nested(0), id(identity), version(v), check(identity ^ ~v) {}
        slot nested;
        Cell id;
        Cell version;
        Cell check;
    };
    // What a slot that is not inside an object lives in. Of an object's size, so that either may
    // follow the other in the same memory.
    struct holder {
        holder() : guide(0), spare{} {}
        slot guide;
        std::uint64_t spare[3];
    };
    static_assert(sizeof(object) == sizeof(holder));

    atc_world() {
        heap.object_bytes = sizeof(object);
        E::require(slots.open(), "room for the directory");
        E::require(mover.reserve(1000), "room for all slots of a test");
    }

    // A thread's life.
    entry& attach() {
        const std::uint32_t id = ids_.fetch_add_relaxed(1) + 1;
        entry* e = index.claim(registry, id, [this] {
            auto fresh = std::make_unique<typename index_type::place>();
            auto* p = fresh.get();
            const std::lock_guard lock(places_mutex_);
            places_.push_back(std::move(fresh));
            return p;
        });
        return *e;
    }
    void detach(entry& e) {
        threads.detach(e.context);
        registry.release(e.record);
    }

    class scope {
      public:
        scope(atc_world& w, entry& e)
            : world_(w), entry_(e), outer_(w.threads.enter(e.record, e.context)) {}
        ~scope() { world_.threads.leave(entry_.record, entry_.context, outer_); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        atc_world& world_;
        entry& entry_;
        epoch_number outer_;
    };

    static object* to_object(std::uint64_t address) { return reinterpret_cast<object*>(address); }
    static std::uint64_t to_address(object* o) { return reinterpret_cast<std::uint64_t>(o); }
    static std::uint64_t to_owned(object* o) {
        return o != nullptr ? layout::make_born(to_address(o)) : 0;
    }

    // In a scope.
    object* dereference(entry& e, slot& s) { return to_object(threads.dereference(e.context, s)); }
    object* exchange(slot& s, object* o) {
        return to_object(layout::address(threads.exchange(s, to_owned(o))));
    }

    // As the public compare-exchange does it: `expected` becomes an address that may be used.
    bool compare_exchange(entry& e, slot& s, std::uint64_t& expected, object* o) {
        for (;;) {
            if (threads.exchange_if(s, expected, to_owned(o))) return true;
            const std::uint64_t current = threads.dereference(e.context, s);
            if (current != expected) {
                expected = current;
                return false;
            }
        }
    }

    object* make(std::uint64_t id, std::uint64_t version) {
        return ::new (heap.allocate(sizeof(object))) object(id, version);
    }
    holder* make_holder(entry& e, object* o, void* memory) {
        const scope in(*this, e);
        auto* h = ::new (memory) holder;
        threads.construct(h->guide, to_owned(o));
        return h;
    }
    holder* make_holder(entry& e, object* o) {
        return make_holder(e, o, heap.allocate(sizeof(holder)));
    }
    void give_nested(entry& e, object* parent, object* child) {
        const scope in(*this, e);
        threads.construct(parent->nested, to_owned(child));
    }
    // Returns the object, whose owner is the caller.
    object* end_slot(entry& e, slot& s) {
        const scope in(*this, e);
        return to_object(threads.destroy(&e.context, s));
    }
    void destroy(entry& e, object* o) {
        if (o == nullptr) return;
        if (object* child = end_slot(e, o->nested); child != nullptr) destroy(e, child);
        heap.free(o);
    }
    void destroy(entry& e, holder* h) {
        object* o = end_slot(e, h->guide);
        heap.free(h);
        destroy(e, o);
    }

    // Exclusive objects: the caller is the only thread that uses this one.
    void verify(object* o, std::uint64_t id, std::uint64_t version) {
        E::require(o->id.load_relaxed() == id, "the object is the one that was put there");
        E::require(o->version.load_relaxed() == version, "no write lost, nothing stale read");
        E::require(o->check.load_relaxed() == (id ^ ~version), "the object is whole");
    }
    void update(object* o, std::uint64_t id, std::uint64_t version) {
        o->version.store_relaxed(version);
        o->check.store_relaxed(id ^ ~version);
    }

    // The collector. Visits all slots; whatever is movable becomes a candidate.
    void scan(std::uint64_t window = 0) {
        slots.refresh();
        for (auto* leaf : slots.leaves())
            slots.scan(*leaf, heap.begin(), heap.end(),
                       [&](std::uintptr_t base, std::uint64_t bits) {
                           for (; bits != 0; bits &= bits - 1) {
                               const auto bit = static_cast<unsigned>(std::countr_zero(bits));
                               slot& s = *reinterpret_cast<slot*>(base + 8u * bit);
                               const observation seen = mover.visit(s, window);
                               if (seen.movable) mover.add_candidate(s, seen, 1);
                           }
                       });
    }
    unsigned move_all() {
        unsigned moved = 0;
        for (const auto& c : std::vector(mover.candidates())) {
            moved_object result;
            moved += mover.move(c, 0, result) == move_result::moved;
        }
        mover.forget();
        return moved;
    }
    // A window of `batches` rounds, as the collector's batches and retries are: all but the first
    // visit slots in ACTIVE and do not wait.
    template <class GiveUp>
    unsigned collect(unsigned batches, GiveUp&& give_up) {
        unsigned moved = 0;
        mover.forget();
        for (unsigned i = 0; i < batches; ++i) {
            scan();
            if (mover.candidates().empty()) continue;
            if (mover.settle(nullptr, give_up) == wait_result::given_up) break;
            moved += move_all();
        }
        mover.finish();
        return moved;
    }
    unsigned collect(unsigned batches = 2) {
        return collect(batches, [](const thread_record<P>&) { return false; });
    }

    // Spawns a thread that is attached while `work(entry)` runs.
    template <class Work>
    void thread(const char* name, Work work) {
        busy.fetch_add_relaxed(1);
        E::spawn(name, [this, work] {
            entry& e = attach();
            work(e);
            detach(e);
            busy.fetch_sub_acq_rel(1);
        });
    }
    // Spawns the collector: `windows` of them in a schedule; natively until the others are done.
    void collector(unsigned windows = 2) {
        E::spawn("collector", [this, windows] {
            for (unsigned w = 1; E::deterministic ? w <= windows : busy.load_acquire() != 0; ++w)
                moves.fetch_add_relaxed(collect());
        });
    }

    scope_registry<P> registry;
    soda::directory<P> slots;
    heap_type heap;
    atc_state<P> state;
    atc_threads<P> threads{registry, slots, state};
    mover_type mover{registry, slots, heap, state};
    reclaimer<P> reclaim{registry};
    index_type index;
    typename P::template atomic<unsigned> busy;
    typename P::template atomic<std::uint64_t> moves;

  private:
    typename P::template atomic<std::uint32_t> ids_;
    std::mutex places_mutex_;
    std::vector<std::unique_ptr<typename index_type::place>> places_;
};

template <class E>
using exclusive_atc_world = atc_world<E, typename E::exclusive_cell>;
template <class E>
using shared_atc_world = atc_world<E, typename E::shared_cell>;

} // namespace obase::mobility
