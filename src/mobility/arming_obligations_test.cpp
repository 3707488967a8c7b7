// SPDX-License-Identifier: MIT
//
// The obligations O1..O5 and O7, and of O6 what concerns scopes, for the arming protocol. Each body
// states its property, and runs under the deterministic scheduler (random and priority
// schedules, x86 store buffers) and on OS threads. src/mobility/mutants.toml names what
// they must notice.
#include "mobility/world_test.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace obase::mobility {
namespace {

using scheduled = in_schedule<testing::deterministic_platform>;
using native = on_threads<os::native_platform>;

// A body under the name of its property: three tests.
#define OBASE_OBLIGATION(body, ci_seeds)                                                           \
    TEST(arming_obligations, body##_scheduled) {                                                   \
        explore_schedules(#body, ci_seeds, [] { body<scheduled>(); });                             \
    }                                                                                              \
    TEST(arming_obligations, body##_on_threads) {                                                  \
        explore_threads(#body, [] { body<native>(); });                                            \
    }

// O1, O2: what a thread reads through a raw address in its scope is what it wrote last, and what it
// writes there is never lost, however often the object moves; at the end nothing has leaked.
template <class World>
void update_in_scopes(World& w, typename World::record& r, typename World::slot& s,
                      std::uint64_t id, std::uint64_t& version) {
    const typename World::scope outer(w, r);
    auto* o = w.dereference(s);
    w.verify(o, id, version);
    w.update(o, id, ++version);
    {
        const typename World::scope inner(w, r); // R2: does not touch the outer one's epoch
        w.verify(w.dereference(s), id, version);
    }
    // The address from before is still good.
    w.verify(o, id, version);
    w.update(o, id, ++version);
}

template <class E>
void raw_addresses_last_as_long_as_the_scope() {
    using world_type = exclusive_world<E>;
    world_type w;
    typename world_type::record& self = w.attach();
    constexpr std::uint64_t threads = 2;
    typename world_type::holder* holders[threads];
    std::uint64_t version[threads] = {};
    for (std::uint64_t t = 0; t < threads; ++t)
        holders[t] = w.make_holder(self, w.make(100 + t, 0));
    for (std::uint64_t t = 0; t < threads; ++t)
        w.thread("writer", [&w, &holders, &version, t](auto& r) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i)
                update_in_scopes(w, r, holders[t]->guide, 100 + t, version[t]);
        });
    w.collector();
    E::run();
    for (std::uint64_t t = 0; t < threads; ++t) {
        {
            const typename world_type::scope in(w, self);
            w.verify(w.dereference(holders[t]->guide), 100 + t, version[t]);
        }
        w.destroy(self, holders[t]);
    }
    E::require(w.heap.live_blocks() == 0, "every old copy and every undone one was freed once");
    w.detach(self);
}
OBASE_OBLIGATION(raw_addresses_last_as_long_as_the_scope, 1500)

// O1: readers of an object that another thread updates in place see no version older than one whose
// write they know of.
template <class E>
void readers_follow_a_writer() {
    using world_type = shared_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(7, 0));
    typename E::platform::template atomic<std::uint64_t> written(0);
    w.thread("writer", [&](auto& r) {
        for (unsigned i = 1; i <= E::rounds(3, 3000); ++i) {
            const typename world_type::scope in(w, r);
            w.dereference(h->guide)->version.store_relaxed(i);
            written.store_release(i);
        }
    });
    for (int reader = 0; reader < 2; ++reader)
        w.thread("reader", [&](auto& r) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const std::uint64_t known = written.load_acquire();
                const typename world_type::scope in(w, r);
                auto* o = w.dereference(h->guide);
                E::require(o->id.load_relaxed() == 7, "the object is the one that was put there");
                E::require(o->version.load_relaxed() >= known, "not older than what is known");
                E::require(o->version.load_relaxed() >= known, "and so until the scope ends");
            }
        });
    w.collector();
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(readers_follow_a_writer, 1500)

// O2: two threads that count in the same object lose no count.
template <class E>
void counts_are_not_lost() {
    using world_type = shared_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(7, 0));
    for (int thread = 0; thread < 2; ++thread)
        w.thread("counter", [&](auto& r) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope in(w, r);
                auto* o = w.dereference(h->guide);
                o->version.fetch_add_relaxed(1);
                o->version.fetch_add_relaxed(1);
            }
        });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        E::require(w.dereference(h->guide)->version.load_relaxed() == 4 * E::rounds(2, 3000),
                   "all counts are there");
    }
    w.destroy(self, h);
    w.detach(self);
}
OBASE_OBLIGATION(counts_are_not_lost, 1500)

// O3, O5: a slot may be destroyed, its object freed and its memory reused or unmapped at any moment
// of a window. A new slot at the same address with a new object at the old one's address is another
// slot: the mover, which may still hold the old candidate, leaves it alone (ABA).
template <class E>
void slots_die_and_are_born_again() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* bystander = w.make_holder(self, w.make(50, 0)); // shares the bitmap word
    w.thread("owner", [&](auto& r) {
        std::uint64_t version = 0;
        const unsigned rounds = E::rounds(2, 2000);
        for (unsigned i = 0; i <= rounds; ++i) {
            auto* o = w.make(1, version += 10); // where the old object was
            // Either where the old slot was, or in memory that goes back to the system.
            const bool mapped = i % 2 == 1;
            constexpr std::size_t bytes = sizeof(typename world_type::holder);
            auto* h = w.make_holder(r, o, mapped ? w.heap.map(bytes) : w.heap.allocate(bytes));
            {
                const typename world_type::scope in(w, r);
                o = w.dereference(h->guide);
                w.verify(o, 1, version);
                w.update(o, 1, ++version);
                w.verify(o, 1, version);
            }
            o = w.end_slot(r, h->guide);
            w.verify(o, 1, version);
            if (mapped)
                w.heap.unmap(h, bytes);
            else
                w.heap.free(h);
            w.heap.free(o);
        }
    });
    w.collector();
    E::run();
    w.destroy(self, bystander);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(slots_die_and_are_born_again, 3000)

// R3: a new object may be used by its maker before and after it is put into its slot, in one scope.
// The born word that says "not yet seen" is in no candidate list.
template <class E>
void a_replaced_word_is_a_new_word() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("owner", [&](auto& r) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, r);
            auto* old = w.take(h->guide, 0);
            w.verify(old, 1, version);
            w.heap.free(old);
            auto* o = w.make(1, ++version); // where the old one was
            E::require(word::replace(h->guide, w.born(o)) == 0, "the slot was empty");
            w.update(o, 1, ++version);
            w.verify(o, 1, version);
        }
    });
    w.collector();
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(a_replaced_word_is_a_new_word, 3000)

// R12: objects change slots by exchange and are as untouched as before; whoever uses one, by
// whatever slot, keeps it.
template <class E>
void objects_change_slots() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* one = w.make_holder(self, w.make(1, 0));
    auto* two = w.make_holder(self, w.make(2, 0));
    w.thread("owner", [&](auto& r) {
        std::uint64_t version[2] = {};
        for (unsigned i = 0; i < E::rounds(3, 3000); ++i) {
            const typename world_type::scope in(w, r);
            const unsigned used = i % 2;
            auto* o = w.dereference(used == 0 ? one->guide : two->guide);
            const std::uint64_t id = o->id.load_relaxed();
            E::require(id == 1 || id == 2, "one of the two");
            // Out, across and back in; the third slot is empty, then not.
            const std::uint64_t first = word::replace(one->guide, 0);
            const std::uint64_t second = word::replace(two->guide, first);
            E::require(word::replace(one->guide, second) == 0, "the slot was empty");
            E::require(!word::arming::is_armed(first) && !word::arming::is_armed(second),
                       "only the collector makes armed words");
            // The address from before the change is still good.
            w.verify(o, id, version[id - 1]);
            w.update(o, id, ++version[id - 1]);
            w.verify(o, id, version[id - 1]);
        }
    });
    w.collector(3);
    E::run();
    w.destroy(self, one);
    w.destroy(self, two);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(objects_change_slots, 2000)

// What a thread needs to take an object out of a structure that others read.
template <class World>
struct retirement {
    explicit retirement(World& world) : w(world) {}

    void retire(typename World::record& r, typename World::object* o) {
        w.reclaim.retire(r, *new retired_object{nullptr, o, &ended, sizeof *o});
    }
    unsigned reclaim() {
        unsigned freed = 0;
        w.reclaim.reclaim([&](retired_object* node) {
            w.heap.free(node->object);
            delete node;
            ++freed;
        });
        return freed;
    }
    static void ended(void*) noexcept {}

    World& w;
};

// O2, O5, R5, R12: exchange and compare-exchange race with each other and with publishes; each
// object is handed to exactly one caller, an address that a failed compare-exchange returns may be
// used until the scope ends, and a retired object outlives every scope that found it.
template <class E>
void exchanges_race_with_the_mover() {
    using world_type = shared_world<E>;
    world_type w;
    retirement retired(w);
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 5));
    w.thread("exchanger", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, r);
                auto* old = w.take(h->guide, w.born(w.make(1, 5)));
                E::require(old->version.load_relaxed() == 5, "what was taken out is alive");
                retired.retire(r, old);
            }
            retired.reclaim();
        }
    });
    w.thread("comparer", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, r);
                auto expected = reinterpret_cast<std::uint64_t>(w.dereference(h->guide));
                auto* o = w.make(1, 5);
                E::require(w.to_object(expected)->version.load_relaxed() == 5, "alive before");
                if (word::compare_replace(h->guide, expected, w.born(o)))
                    retired.retire(r, w.to_object(expected));
                else
                    w.heap.free(o);
                E::require(w.to_object(expected)->version.load_relaxed() == 5,
                           "alive in the scope");
                E::require(w.to_object(expected)->id.load_relaxed() == 1, "alive in the scope");
            }
            retired.reclaim();
        }
    });
    w.collector();
    E::run();
    retired.reclaim();
    retired.reclaim();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "each object was freed once");
    E::require(w.reclaim.pending() == 0, "nothing is left retired");
    w.detach(self);
}
OBASE_OBLIGATION(exchanges_race_with_the_mover, 2000)

// R5: a failed compare-exchange hands out an address that lasts. The expected address is never
// right here, so every call takes that path, with words that the collector has armed.
template <class E>
void failed_compares_return_usable_addresses() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("comparer", [&](auto& r) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, r);
            std::uint64_t expected = 8;
            E::require(!word::compare_replace(h->guide, expected, 0), "8 is no object");
            w.verify(w.to_object(expected), 1, version);
            w.update(w.to_object(expected), 1, ++version);
            w.verify(w.to_object(expected), 1, version);
        }
    });
    w.collector();
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(failed_compares_return_usable_addresses, 1500)

// O1, marked pointers: an operation gives an object from one slot to another, so that it is in both for
// a moment, and the collector may look at the second then. A reader that enters later, and whom one wait
// does not cover, may still find it in the first.
template <class E>
void give_between_slots(bool fenced) {
    using world_type = shared_world<E>;
    world_type w;
    w.registry.set_fenced(fenced);
    w.registry.expect_addresses_in_two_slots();
    auto& self = w.attach();
    typename world_type::holder* holders[2] = {w.make_holder(self, w.make(7, 0)),
                                               w.make_holder(self, nullptr)};
    const epoch_number first = w.registry.epoch().load_acquire();
    typename E::platform::template atomic<unsigned> collected(0);
    w.thread("giver", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            const typename world_type::scope in(w, r);
            auto& from = holders[i % 2]->guide;
            auto& to = holders[1 - i % 2]->guide;
            to.exchange_seq_cst(w.born(w.dereference(from)));
            from.store_release(0);
        }
    });
    w.thread("reader", [&](auto& r) {
        const auto now = [&] { return w.registry.epoch().load_acquire(); };
        // Not before the first wait, which would cover it.
        while (E::deterministic && now() == first && w.busy.load_acquire() == 2)
            E::platform::pause();
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            const epoch_number entered = now();
            const typename world_type::scope in(w, r);
            for (auto* h : holders)
                if (auto* o = w.dereference(h->guide); o != nullptr) {
                    E::require(o->id.load_relaxed() == 7, "the object that was put there");
                    // Until the collector has moved it, or waits for this scope.
                    while (E::deterministic && collected.load_acquire() == 0 && now() == entered)
                        E::platform::pause();
                    E::require(o->id.load_relaxed() == 7, "and so until the scope ends");
                }
        }
    });
    w.collector(1, [&](std::uint64_t window) {
        w.collect(window);
        collected.store_release(1);
    });
    E::run();
    for (auto* h : holders) w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
template <class E>
void addresses_are_in_two_slots_for_a_moment() {
    give_between_slots<E>(false);
}
OBASE_OBLIGATION(addresses_are_in_two_slots_for_a_moment, 4000)

TEST(arming_obligations, addresses_are_in_two_slots_without_membarrier) {
    explore_schedules("two slots, fenced", 4000, [] { give_between_slots<scheduled>(true); },
                      {.membarrier = testing::membarrier_mode::missing});
}

// O4, R11: an object that contains a slot and the object in that slot both move, while the child is
// updated, replaced and the parent destroyed with everything in it. The child's slot stays
// registered wherever it is, or its object would stay where it is for ever.
template <class E>
void parents_move_with_their_children() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    typename world_type::holder* h = nullptr;
    std::uint64_t version = 0;
    const auto make_family = [&](auto& r) {
        auto* parent = w.make(1, 0);
        w.give_nested(r, parent, w.make(2, version));
        h = w.make_holder(r, parent);
    };
    make_family(self);
    w.thread("owner", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            switch (E::choose(4)) {
            case 0: { // replaces the child
                const typename world_type::scope in(w, r);
                auto* parent = w.dereference(h->guide);
                auto* child = w.take(parent->nested, 0);
                w.verify(child, 2, version);
                w.heap.free(child);
                word::replace(parent->nested, w.born(w.make(2, ++version)));
                break;
            }
            case 1: // destroys parent and child
                w.destroy(r, h);
                version += 100;
                make_family(r);
                break;
            default: { // uses the child, and the parent or not
                const typename world_type::scope in(w, r);
                auto* parent = w.dereference(h->guide);
                auto* child = w.dereference(parent->nested);
                w.verify(parent, 1, 0);
                w.verify(child, 2, version);
                w.update(child, 2, ++version);
                w.verify(child, 2, version);
            }
            }
        }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        auto* parent = w.dereference(h->guide);
        E::require(w.slots.test(&parent->nested), "the nested slot is registered where it is");
        w.verify(w.dereference(parent->nested), 2, version);
    }
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
    // What moved away, or was undone, has left no bits: R8, R11.
    unsigned left = 0;
    w.slots.refresh();
    for (auto* leaf : w.slots.leaves())
        w.slots.scan(*leaf, w.heap.begin(), w.heap.end(), [&](std::uintptr_t, std::uint64_t bits) {
            left += static_cast<unsigned>(std::popcount(bits));
        });
    E::require(left == 0, "no slot is registered that does not exist");
}
OBASE_OBLIGATION(parents_move_with_their_children, 4000)

// R8, R11: registered is what exists, wherever it lies now, whether families of slots come or go
// while others move: bits travel before the object can be reached, and are gone before its memory
// is.
template <class E>
void exactly_the_existing_slots_are_registered() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    const auto make_family = [&w](auto& r) {
        auto* parent = w.make(1, 0);
        w.give_nested(r, parent, w.make(2, 0));
        return w.make_holder(r, parent);
    };
    std::vector<typename world_type::holder*> families{make_family(self)};
    w.thread("owner", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(1, 2000); ++i) {
            if (E::choose(2) == 0) {
                w.destroy(r, families.back());
                families.pop_back();
            }
            if (families.size() < 4) families.push_back(make_family(r));
            if (families.size() == 4) {
                w.destroy(r, families.front());
                families.erase(families.begin());
            }
        }
    });
    w.collector(1);
    E::run();
    std::size_t registered = 0;
    w.slots.refresh();
    for (auto* leaf : w.slots.leaves())
        w.slots.scan(*leaf, w.heap.begin(), w.heap.end(), [&](std::uintptr_t, std::uint64_t bits) {
            registered += static_cast<std::size_t>(std::popcount(bits));
        });
    E::require(registered == 2 * families.size(), "no slot is registered that does not exist");
    for (auto* h : families) {
        {
            const typename world_type::scope in(w, self);
            auto* parent = w.dereference(h->guide);
            E::require(w.slots.test(&parent->nested), "the nested slot is registered where it is");
            w.verify(parent, 1, 0);
            w.verify(w.dereference(parent->nested), 2, 0);
        }
        w.destroy(self, h);
    }
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(exactly_the_existing_slots_are_registered, 4000)

// R11: a thread that reaches the child by way of the parent keeps both, although the collector
// visits the child's slot in the same window. Here the parent is touched only now and then, so that
// it moves.
template <class E>
void children_are_used_while_parents_move() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    std::uint64_t version = 0;
    auto* parent = w.make(1, 0);
    w.give_nested(self, parent, w.make(2, version));
    auto* h = w.make_holder(self, parent);
    w.thread("user", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, r);
            auto& nested = w.dereference(h->guide)->nested;
            auto* child = w.dereference(nested);
            w.verify(child, 2, version);
            w.update(child, 2, ++version);
            auto* fresh = w.make(2, ++version);
            w.heap.free(w.take(nested, w.born(fresh)));
            w.verify(w.dereference(nested), 2, version);
        }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        w.verify(w.dereference(w.dereference(h->guide)->nested), 2, version);
    }
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(children_are_used_while_parents_move, 2000)

// O2, R9: a pinned object stays where it is, beyond the scope and in other hands, until the pin is
// released; also if its slot has been armed again meanwhile.
template <class E>
void pins_hold_objects_in_place() {
    using world_type = shared_world<E>;
    using P = typename E::platform;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    // Mailbox: a pin that is handed over, with the object's address.
    typename P::template atomic<typename world_type::pin_entry*> handed(nullptr);
    typename P::template atomic<bool> done(false);
    const auto use = [](typename world_type::pin_entry* pin) {
        auto* o = world_type::to_object(pin->load_relaxed());
        E::require(o->id.load_relaxed() == 1, "the pinned object is where it was");
        o->version.fetch_add_relaxed(1);
        o->version.fetch_add_relaxed(1);
    };
    w.thread("pinner", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            typename world_type::pin_entry* pin = nullptr;
            {
                const typename world_type::scope in(w, r);
                pin = claim_pin<P>(r, reinterpret_cast<std::uint64_t>(w.dereference(h->guide)),
                                   [] { return static_cast<pin_chunk<P>*>(nullptr); });
                E::require(pin != nullptr, "a free entry");
            }
            use(pin);
            if (handed.load_acquire() == nullptr)
                handed.store_release(pin);
            else
                release_pin(*pin);
        }
        done.store_release(true);
    });
    w.thread("receiver", [&](auto&) {
        for (;;) {
            const bool last = done.load_acquire();
            if (auto* pin = handed.load_acquire(); pin != nullptr) {
                use(pin);
                release_pin(*pin);
                handed.store_release(nullptr);
            } else if (last) {
                break;
            }
            P::pause();
        }
    });
    w.collector(3);
    E::run();
    std::uint64_t version = 0;
    {
        const typename world_type::scope in(w, self);
        version = w.dereference(h->guide)->version.load_relaxed();
    }
    E::require(version % 2 == 0 && version >= 2 * E::rounds(2, 2000), "all counts are there");
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(pins_hold_objects_in_place, 2000)

// O2, R9, R12: a retired object is freed after the scopes that found it, and after the pins that
// these scopes put on it.
template <class E>
void retired_objects_outlive_scopes_and_pins() {
    using world_type = shared_world<E>;
    using P = typename E::platform;
    world_type w;
    retirement retired(w);
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 5));
    w.thread("writer", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, r);
            retired.retire(r, w.take(h->guide, w.born(w.make(1, 5))));
        }
    });
    w.thread("reader", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            typename world_type::pin_entry* pin = nullptr;
            typename world_type::object* o = nullptr;
            {
                const typename world_type::scope in(w, r);
                o = w.dereference(h->guide);
                E::require(o->version.load_relaxed() == 5, "alive in the scope");
                if (i % 2 == 0)
                    pin = claim_pin<P>(r, reinterpret_cast<std::uint64_t>(o),
                                       [] { return static_cast<pin_chunk<P>*>(nullptr); });
                E::require(o->id.load_relaxed() == 1, "alive in the scope");
            }
            if (pin != nullptr) {
                E::require(o->version.load_relaxed() == 5, "alive under the pin");
                E::require(o->id.load_relaxed() == 1, "alive under the pin");
                release_pin(*pin);
            }
        }
    });
    w.collector(3, [&](std::uint64_t window) {
        retired.reclaim();
        w.collect(window);
        retired.reclaim();
    });
    E::run();
    retired.reclaim();
    retired.reclaim();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "each object was freed once");
    w.detach(self);
}
OBASE_OBLIGATION(retired_objects_outlive_scopes_and_pins, 2000)

// O2, R6: windows follow each other without pause, and waits are given up at any point. What was a
// candidate then is none any more, although the words are still armed.
template <class E>
void given_up_waits_move_nothing() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i)
            update_in_scopes(w, r, h->guide, 1, version);
    });
    w.collector(3, [&](std::uint64_t window) {
        w.collect(window, nullptr, [](const auto&) { return E::choose(3) == 0; });
    });
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(given_up_waits_move_nothing, 1500)

// O6: a thread may end, or be replaced by another that takes over its record, with its scope open;
// the scope ends with it.
template <class E>
void threads_end_inside_scopes() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* first = w.make_holder(self, w.make(1, 0));
    auto* second = w.make_holder(self, w.make(2, 0));
    const auto lives = [&w](typename world_type::slot& s, std::uint64_t id) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            auto& r = w.attach();
            update_in_scopes(w, r, s, id, version);
            enter_scope(r, w.registry.epoch());
            auto* o = w.dereference(s);
            w.verify(o, id, version);
            w.update(o, id, ++version);
            w.detach(r); // no exit_scope()
        }
    };
    w.busy.store_relaxed(2);
    E::spawn("first", [&] {
        lives(first->guide, 1);
        w.busy.fetch_sub_acq_rel(1);
    });
    E::spawn("second", [&] {
        lives(second->guide, 2);
        w.busy.fetch_sub_acq_rel(1);
    });
    w.collector();
    E::run();
    w.destroy(self, first);
    w.destroy(self, second);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(threads_end_inside_scopes, 1500)

// O6: an exception may leave a scope, nested ones too; afterwards the thread is outside.
template <class E>
void exceptions_leave_scopes() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("thrower", [&](auto& r) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 500); ++i) {
            try {
                const typename world_type::scope in(w, r);
                update_in_scopes(w, r, h->guide, 1, version);
                const typename world_type::scope inner(w, r);
                throw std::runtime_error("leaves two scopes");
            } catch (const std::runtime_error&) {
                E::require(r.epoch.load_relaxed() == 0, "the thread is outside");
            }
        }
    });
    w.collector();
    E::run();
    w.destroy(self, h);
    w.detach(self);
}
OBASE_OBLIGATION(exceptions_leave_scopes, 500)

// R14: a collector that is in a scope of its own does not wait for itself.
template <class E>
void the_collector_does_not_wait_for_itself() {
    using world_type = exclusive_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& r) {
        for (unsigned i = 0; i < E::rounds(1, 500); ++i)
            update_in_scopes(w, r, h->guide, 1, version);
    });
    auto& own = w.attach();
    w.collector(2, [&](std::uint64_t window) {
        const typename world_type::scope in(w, own);
        w.collect(window, &own, [](const auto&) { return false; });
    });
    E::run();
    w.destroy(self, h);
    w.detach(self);
}
TEST(arming_obligations, the_collector_does_not_wait_for_itself_scheduled) {
    explore_schedules("own scope", 300, the_collector_does_not_wait_for_itself<scheduled>,
                      {.max_steps = 20'000});
}

// R1: where membarrier may fail, a window in which it fails moves nothing.
TEST(arming_obligations, failing_membarrier_moves_nothing) {
    explore_schedules("unreliable membarrier", 3000,
                      raw_addresses_last_as_long_as_the_scope<scheduled>,
                      {.membarrier = testing::membarrier_mode::unreliable});
    explore_schedules("missing membarrier", 300,
                      [] {
                          exclusive_world<scheduled> w;
                          auto& self = w.attach();
                          auto* h = w.make_holder(self, w.make(1, 0));
                          std::uint64_t version = 0;
                          w.thread("writer",
                                   [&](auto& r) { update_in_scopes(w, r, h->guide, 1, version); });
                          w.collector();
                          testing::run();
                          testing::require(w.moves.load_relaxed() == 0, "nothing moved");
                          w.destroy(self, h);
                      },
                      {.membarrier = testing::membarrier_mode::missing});
}

// R2: without membarrier, scopes fence by themselves, and objects move as ever.
TEST(arming_obligations, fenced_scopes_need_no_membarrier) {
    std::uint64_t moved = 0;
    explore_schedules("fenced scopes", 3000,
                      [&moved] {
                          exclusive_world<scheduled> w;
                          w.registry.set_fenced(true);
                          auto& self = w.attach();
                          auto* h = w.make_holder(self, w.make(1, 0));
                          std::uint64_t version = 0;
                          w.thread("writer", [&](auto& r) {
                              for (int i = 0; i < 2; ++i)
                                  update_in_scopes(w, r, h->guide, 1, version);
                          });
                          w.collector();
                          testing::run();
                          moved += w.moves.load_relaxed();
                          w.destroy(self, h);
                      },
                      {.membarrier = testing::membarrier_mode::missing});
    EXPECT_GT(moved, 0u);
}

// A platform on which a signal may arrive before any atomic operation of a thread that has a
// handler. The handler runs on that thread, between two of its instructions, as a real one does.
struct interrupted_platform : testing::deterministic_platform {
    static inline std::function<void()> handler[testing::max_threads + 1];
    static inline bool handling[testing::max_threads + 1];

    static void maybe_interrupt() noexcept {
        const unsigned self = testing::thread_index();
        if (!handler[self] || handling[self] || testing::choose(6) != 0) return;
        handling[self] = true;
        handler[self]();
        handling[self] = false;
    }

    template <class T>
    struct atomic : testing::deterministic_atomic<T> {
        using base = testing::deterministic_atomic<T>;
        using base::base;
        T load_relaxed() const noexcept { return interrupted().load_relaxed(); }
        T load_acquire() const noexcept { return interrupted().load_acquire(); }
        void store_relaxed(T value) noexcept { interrupted().store_relaxed(value); }
        void store_release(T value) noexcept { interrupted().store_release(value); }
        T exchange_seq_cst(T value) noexcept { return interrupted().exchange_seq_cst(value); }
        bool cas_acq_rel(T& expected, T desired) noexcept {
            return interrupted().cas_acq_rel(expected, desired);
        }

      private:
        base& interrupted() noexcept {
            maybe_interrupt();
            return *this;
        }
        const base& interrupted() const noexcept {
            maybe_interrupt();
            return *this;
        }
    };
};

// O6: a signal handler that opens a scope of its own may run between any two steps of entering,
// leaving and using one. The interrupted scope holds as if nothing had happened, and is over when
// it is over.
TEST(arming_obligations, signal_handlers_open_scopes) {
    using interrupted = scheduled_as<interrupted_platform>;
    using world_type = exclusive_world<interrupted>;
    explore_schedules("signal handlers", 3000, [] {
        std::fill(std::begin(interrupted_platform::handler),
                  std::end(interrupted_platform::handler), nullptr);
        std::fill(std::begin(interrupted_platform::handling),
                  std::end(interrupted_platform::handling), false);
        world_type w;
        auto& self = w.attach();
        auto* h = w.make_holder(self, w.make(1, 0));
        auto* of_handler = w.make_holder(self, w.make(2, 0));
        w.thread("interrupted", [&](auto& r) {
            std::uint64_t version = 0;
            std::uint64_t handled = 0;
            interrupted_platform::handler[testing::thread_index()] = [&] {
                const world_type::scope in(w, r);
                auto* o = w.dereference(of_handler->guide);
                w.verify(o, 2, handled);
                w.update(o, 2, ++handled);
            };
            for (int i = 0; i < 2; ++i) {
                update_in_scopes(w, r, h->guide, 1, version);
                testing::require(r.epoch.load_relaxed() == 0, "the thread is outside");
            }
            interrupted_platform::handler[testing::thread_index()] = nullptr;
        });
        w.collector();
        testing::run();
        w.destroy(self, h);
        w.destroy(self, of_handler);
    });
}

// O3: containers with slots in them are unmapped, for real, while the collector scans: a visit to
// memory that is gone would fault.
TEST(arming_obligations, containers_are_unmapped_under_the_collector) {
    using world_type = exclusive_world<native>;
    explore_threads("unmapped containers", [] {
        world_type w;
        auto& self = w.attach();
        constexpr std::size_t pages = 2;
        constexpr std::size_t bytes = pages * os::page_size;
        // The address space is the test's for the whole run, so that nothing else appears there.
        auto* memory = static_cast<char*>(os::reserve(bytes, os::page_size));
        ASSERT_NE(memory, nullptr);
        w.thread("owner", [&](auto& r) {
            for (unsigned i = 0; i < 500; ++i) {
                native::require(os::commit(memory, bytes) == 0, "memory");
                std::vector<typename world_type::slot*> guides;
                for (unsigned k = 0; k < 8; ++k) {
                    auto* s = new (memory + 8 * (k * 37 % 1024))
                        typename world_type::slot(w.born(w.make(k, i)));
                    const typename world_type::scope in(w, r);
                    w.slots.set(s);
                    guides.push_back(s);
                }
                for (unsigned k = 0; k < 8; ++k) {
                    const typename world_type::scope in(w, r);
                    w.verify(w.dereference(*guides[k]), k, i);
                }
                std::vector<typename world_type::object*> objects;
                {
                    // R10, in bulk: the bits first, then the words.
                    const typename world_type::scope in(w, r);
                    w.slots.clear_range(memory, memory + bytes);
                    for (auto* s : guides)
                        objects.push_back(w.to_object(word::arming::address(s->load_acquire())));
                }
                native::require(os::decommit(memory, bytes) == 0, "unmapped");
                for (auto* o : objects) w.heap.free(o);
            }
        });
        w.collector(0, [&](std::uint64_t window) {
            w.mover.forget();
            w.slots.refresh();
            const auto begin = reinterpret_cast<std::uintptr_t>(memory);
            for (auto* leaf : w.slots.leaves())
                w.slots.scan(*leaf, begin, begin + bytes,
                             [&](std::uintptr_t base, std::uint64_t bits) {
                                 for (; bits != 0; bits &= bits - 1) {
                                     auto& s = *reinterpret_cast<world_type::slot*>(
                                         base + 8u * static_cast<unsigned>(std::countr_zero(bits)));
                                     const observation seen = w.mover.visit(s, window);
                                     if (seen.movable) w.mover.add_candidate(s, seen, 1);
                                 }
                             });
            w.mover.settle(nullptr, [](const auto&) { return false; });
            w.moves.fetch_add_relaxed(w.move_all(window));
        });
        native::run();
        EXPECT_EQ(w.heap.live_blocks(), 0u);
        os::release(memory, bytes);
        w.detach(self);
    });
}

} // namespace
} // namespace obase::mobility
