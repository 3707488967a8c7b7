// SPDX-License-Identifier: MIT
//
// The obligations O1..O5 for the ATC protocol, between threads. Each body states its property, and
// runs under the deterministic scheduler (random and priority schedules, x86 store buffers) and on
// OS threads. src/mobility/atc_mutants.toml names what they must notice.
#include "mobility/atc_world_test.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

namespace obase::mobility {
namespace {

using scheduled = in_schedule<testing::deterministic_platform>;
using native = on_threads<os::native_platform>;

// A body under the name of its property: two tests.
#define OBASE_OBLIGATION(body, ci_seeds)                                                           \
    TEST(atc_obligations, body##_scheduled) {                                                      \
        explore_schedules(#body, ci_seeds, [] { body<scheduled>(); });                             \
    }                                                                                              \
    TEST(atc_obligations, body##_on_threads) {                                                     \
        explore_threads(#body, [] { body<native>(); });                                            \
    }

// A lock of the user's own, as data structures have them. Its holder's writes happen before the
// next holder's reads.
template <class P>
class user_lock {
  public:
    void lock() noexcept {
        while (word_.exchange_acq_rel(1) != 0) P::pause();
    }
    void unlock() noexcept { word_.store_release(0); }

  private:
    typename P::template atomic<std::uint32_t> word_;
};

// O1, O2: what a thread reads through a raw address in its scope is what it wrote last, and what it
// writes there is never lost, however often the object moves; at the end nothing has leaked. Scopes
// nest, and several begin and end in one window.
template <class E>
void raw_addresses_last_as_long_as_the_scope() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    constexpr std::uint64_t threads = 2;
    typename world_type::holder* holders[threads];
    std::uint64_t version[threads] = {};
    for (std::uint64_t t = 0; t < threads; ++t)
        holders[t] = w.make_holder(self, w.make(100 + t, 0));
    for (std::uint64_t t = 0; t < threads; ++t)
        w.thread("writer", [&w, &holders, &version, t](auto& e) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope outer(w, e);
                auto& s = holders[t]->guide;
                auto* o = w.dereference(e, s);
                w.verify(o, 100 + t, version[t]);
                w.update(o, 100 + t, ++version[t]);
                {
                    const typename world_type::scope inner(w, e);
                    w.verify(w.dereference(e, s), 100 + t, version[t]);
                }
                w.verify(o, 100 + t, version[t]); // the address from before is still good
                w.update(o, 100 + t, ++version[t]);
            }
        });
    w.collector();
    E::run();
    for (std::uint64_t t = 0; t < threads; ++t) {
        {
            const typename world_type::scope in(w, self);
            w.verify(w.dereference(self, holders[t]->guide), 100 + t, version[t]);
        }
        w.destroy(self, holders[t]);
    }
    E::require(w.heap.live_blocks() == 0, "every old copy and every undone one was freed once");
    w.detach(self);
}
OBASE_OBLIGATION(raw_addresses_last_as_long_as_the_scope, 1500)

// R2: scopes inside a scope, which touch nothing, do not make the outer one look younger than it
// is: what it found before a round began is what it goes on to use, uncounted.
template <class E>
void inner_scopes_do_not_hide_the_outer_one() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("nester", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope outer(w, e);
            auto* o = w.dereference(e, h->guide);
            for (int inner = 0; inner < 4; ++inner) {
                const typename world_type::scope in(w, e);
                w.verify(o, 1, version);
                w.verify(o, 1, version);
            }
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
OBASE_OBLIGATION(inner_scopes_do_not_hide_the_outer_one, 8000)

// O2: an operation of a single write may begin and end within the copy of its object, and leaves
// the count as it was and the access bit as it was: the lock is all that tells.
template <class E>
void a_short_operation_vetoes_a_copy() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(4, 5000); ++i) {
            const typename world_type::scope in(w, e);
            auto* o = w.dereference(e, h->guide);
            w.verify(o, 1, version);
            w.update(o, 1, ++version);
        }
    });
    w.collector(1);
    E::run();
    {
        const typename world_type::scope in(w, self);
        w.verify(w.dereference(self, h->guide), 1, version);
    }
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(a_short_operation_vetoes_a_copy, 4000)

// O2: two threads that count in the same object lose no count.
template <class E>
void counts_are_not_lost() {
    using world_type = shared_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(7, 0));
    for (int thread = 0; thread < 2; ++thread)
        w.thread("counter", [&](auto& e) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope in(w, e);
                auto* o = w.dereference(e, h->guide);
                o->version.fetch_add_relaxed(1);
                o->version.fetch_add_relaxed(1);
            }
        });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        E::require(w.dereference(self, h->guide)->version.load_relaxed() == 4 * E::rounds(2, 3000),
                   "all counts are there");
    }
    w.destroy(self, h);
    w.detach(self);
}
OBASE_OBLIGATION(counts_are_not_lost, 1500)

// O3, O5: a slot may be destroyed, its object freed and its memory reused or unmapped at any moment
// of a window, by another thread than the one that counted in it: the scope of the latter ends
// later, and touches nothing that is not a slot any more. What is in the memory now keeps its
// value.
template <class E>
void scopes_end_after_their_slots() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    user_lock<typename E::platform> lock;
    auto& self = w.attach();
    typename world_type::holder* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    for (int thread = 0; thread < 2; ++thread)
        w.thread("user", [&](auto& e) {
            for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
                const typename world_type::scope in(w, e);
                lock.lock();
                auto* o = w.dereference(e, h->guide);
                w.verify(o, 1, version);
                w.update(o, 1, ++version);
                lock.unlock();
            }
        });
    w.thread("replacer", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, e);
            lock.lock();
            w.destroy(e, h);
            constexpr std::size_t bytes = sizeof(typename world_type::holder);
            // Where the slot was there is now something with ATC's bits: the high bits of a number.
            using cell = typename E::platform::template atomic<std::uint64_t>;
            constexpr std::uint64_t number = 0x0055'0000'0000'1234;
            auto* data = ::new (w.heap.allocate(bytes)) cell(number);
            typename E::platform::template atomic<std::uint64_t> elsewhere(1);
            elsewhere.fetch_add_relaxed(1); // time passes
            E::require(data->load_relaxed() == number, "nobody wrote into freed memory");
            w.heap.free(data);
            h = w.make_holder(e, w.make(1, ++version)); // a slot again, perhaps at the old place
            lock.unlock();
        }
    });
    w.collector();
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(scopes_end_after_their_slots, 4000)

// O3: the memory around a destroyed slot may be given back to the system.
template <class E>
void containers_are_unmapped_before_scopes_end() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    user_lock<typename E::platform> lock;
    auto& self = w.attach();
    constexpr std::size_t bytes = sizeof(typename world_type::holder);
    auto* o = w.make(1, 0);
    typename world_type::holder* h = w.make_holder(self, o, w.heap.map(bytes));
    auto* bystander = w.make_holder(self, w.make(50, 0));
    w.thread("user", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(3, 2000); ++i) {
            const typename world_type::scope in(w, e);
            lock.lock();
            w.verify(w.dereference(e, bystander->guide), 50, 0);
            w.verify(w.dereference(e, h->guide), 1, 0);
            lock.unlock();
        }
    });
    w.thread("unmapper", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, e);
            lock.lock();
            auto* kept = w.end_slot(e, h->guide);
            w.heap.unmap(h, bytes);
            h = w.make_holder(e, kept, w.heap.map(bytes));
            lock.unlock();
        }
    });
    w.collector();
    E::run();
    auto* last = w.end_slot(self, h->guide);
    w.heap.unmap(h, bytes);
    w.destroy(self, last);
    w.destroy(self, bystander);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(containers_are_unmapped_before_scopes_end, 3000)

// O2, I2: an object goes from slot to slot while another thread, which found it in the first, is
// still using it. That thread is counted in a slot where the object is no longer.
template <class E>
void objects_change_slots_while_in_use() {
    using world_type = shared_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* a = w.make_holder(self, w.make(1, 0));
    auto* b = w.make_holder(self, nullptr);
    typename E::platform::template atomic<std::uint64_t> uses;
    const unsigned rounds = E::rounds(2, 3000);
    w.thread("user", [&](auto& e) {
        for (unsigned i = 0; i < rounds; ++i) {
            const typename world_type::scope in(w, e);
            for (auto* h : {a, b}) {
                auto* o = w.dereference(e, h->guide);
                if (o == nullptr) continue;
                E::require(o->id.load_relaxed() == 1, "the object is alive");
                o->version.fetch_add_relaxed(1);
                uses.fetch_add_relaxed(1);
                E::require(o->id.load_relaxed() == 1, "and stays so");
            }
        }
    });
    w.thread("mover by hand", [&](auto& e) {
        for (unsigned i = 0; i < rounds; ++i)
            for (int back = 0; back < 2; ++back) {
                const typename world_type::scope in(w, e);
                auto& from = back == 0 ? a->guide : b->guide;
                auto& to = back == 0 ? b->guide : a->guide;
                auto* o = w.exchange(from, nullptr);
                E::require(w.exchange(to, o) == nullptr, "the other slot was empty");
            }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        auto* o = w.dereference(self, a->guide);
        E::require(o->version.load_relaxed() == uses.load_relaxed(), "no use was lost");
    }
    w.destroy(self, a);
    w.destroy(self, b);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(objects_change_slots_while_in_use, 3000)

// O1, marked pointers: an operation gives an object from one slot to another, so that it is in both for
// a moment, and the collector may look at the second then. A reader that enters later, and whom one wait
// does not cover, may still find it in the first, and is counted there.
template <class E>
void addresses_are_in_two_slots_for_a_moment() {
    using world_type = shared_atc_world<E>;
    world_type w;
    w.registry.expect_addresses_in_two_slots();
    auto& self = w.attach();
    typename world_type::holder* holders[2] = {w.make_holder(self, w.make(7, 0)),
                                               w.make_holder(self, nullptr)};
    const epoch_number first = w.registry.epoch().load_acquire();
    typename E::platform::template atomic<unsigned> collected(0);
    w.thread("giver", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            const typename world_type::scope in(w, e);
            auto& from = holders[i % 2]->guide;
            auto& to = holders[1 - i % 2]->guide;
            w.exchange(to, w.dereference(e, from));
            w.exchange(from, nullptr);
        }
    });
    w.thread("reader", [&](auto& e) {
        const auto now = [&] { return w.registry.epoch().load_acquire(); };
        // Not before the first wait, which would cover it.
        while (E::deterministic && now() == first && w.busy.load_acquire() == 2)
            E::platform::pause();
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            const epoch_number entered = now();
            const typename world_type::scope in(w, e);
            for (auto* h : holders)
                if (auto* o = w.dereference(e, h->guide); o != nullptr) {
                    E::require(o->id.load_relaxed() == 7, "the object that was put there");
                    // Until the collector has moved it, or waits for this scope.
                    while (E::deterministic && collected.load_acquire() == 0 && now() == entered)
                        E::platform::pause();
                    E::require(o->id.load_relaxed() == 7, "and so until the scope ends");
                }
        }
    });
    E::spawn("collector", [&] {
        do {
            w.collect();
            collected.store_release(1);
        } while (!E::deterministic && w.busy.load_acquire() != 0);
    });
    E::run();
    for (auto* h : holders) w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(addresses_are_in_two_slots_for_a_moment, 4000)

// O4, R11: an object that contains a slot and the object in that slot both move, while the child is
// updated, replaced and the parent destroyed with everything in it.
template <class E>
void parents_move_with_their_children() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    typename world_type::holder* h = nullptr;
    std::uint64_t version = 0;
    const auto make_family = [&](auto& e) {
        auto* parent = w.make(1, 0);
        w.give_nested(e, parent, w.make(2, version));
        h = w.make_holder(e, parent);
    };
    make_family(self);
    w.thread("owner", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            switch (E::choose(4)) {
            case 0: { // replaces the child
                const typename world_type::scope in(w, e);
                auto* parent = w.dereference(e, h->guide);
                auto* child = w.exchange(parent->nested, nullptr);
                w.verify(child, 2, version);
                w.heap.free(child);
                w.exchange(parent->nested, w.make(2, ++version));
                break;
            }
            case 1: // destroys parent and child
                w.destroy(e, h);
                version += 100;
                make_family(e);
                break;
            default: { // uses the child by way of the parent
                const typename world_type::scope in(w, e);
                auto* parent = w.dereference(e, h->guide);
                auto* child = w.dereference(e, parent->nested);
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
        auto* parent = w.dereference(self, h->guide);
        E::require(w.slots.test(&parent->nested), "the nested slot is registered where it is");
        w.verify(w.dereference(self, parent->nested), 2, version);
    }
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
    unsigned left = 0;
    w.slots.refresh();
    for (auto* leaf : w.slots.leaves())
        w.slots.scan(*leaf, w.heap.begin(), w.heap.end(), [&](std::uintptr_t, std::uint64_t bits) {
            left += static_cast<unsigned>(std::popcount(bits));
        });
    E::require(left == 0, "no slot is registered that does not exist");
}
OBASE_OBLIGATION(parents_move_with_their_children, 3000)

// I2: two threads use the child by way of the parent, so a scope may end, naming the nested slot in
// its TAG, while the parent has moved on and its old place holds another parent's nested slot, in
// which the other thread is counted.
template <class E>
void nested_slots_follow_each_other_in_memory() {
    using world_type = shared_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    constexpr unsigned families = 2;
    typename world_type::holder* h[families];
    // The parents' slots lie below their nested slots: a scope counts out in the order of
    // addresses, so there is a time when it has left the parent and not yet the slot inside.
    for (auto& one : h) one = w.make_holder(self, nullptr);
    for (auto* one : h) {
        auto* parent = w.make(1, 0);
        w.give_nested(self, parent, w.make(2, 0));
        const typename world_type::scope in(w, self);
        w.exchange(one->guide, parent);
    }
    for (unsigned thread = 0; thread < 2; ++thread)
        w.thread("user", [&w, &h, thread](auto& e) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope in(w, e);
                for (unsigned f = 0; f < families; ++f) {
                    auto* parent = w.dereference(e, h[(f + thread) % families]->guide);
                    auto* child = w.dereference(e, parent->nested);
                    E::require(child->id.load_relaxed() == 2, "the child is alive");
                    child->version.fetch_add_relaxed(1);
                    E::require(child->id.load_relaxed() == 2, "and stays so");
                }
            }
        });
    w.collector();
    E::run();
    std::uint64_t uses = 0;
    for (auto* one : h) {
        {
            const typename world_type::scope in(w, self);
            auto* parent = w.dereference(self, one->guide);
            uses += w.dereference(self, parent->nested)->version.load_relaxed();
        }
        w.destroy(self, one);
    }
    E::require(uses == 2 * families * E::rounds(2, 3000), "no use was lost");
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(nested_slots_follow_each_other_in_memory, 4000)

// O2, R5, R12: exchange and compare-exchange race with each other and with commits; each object is
// handed to exactly one caller, an address that a failed compare-exchange returns may be used until
// the scope ends, and a retired object outlives every scope that found it.
template <class E>
void exchanges_race_with_the_mover() {
    using world_type = shared_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 5));
    const auto retire = [&w](auto& e, typename world_type::object* o) {
        w.reclaim.retire(e.record,
                         *new retired_object{nullptr, o, [](void*) noexcept {}, sizeof *o});
    };
    const auto reclaim = [&w] {
        w.reclaim.reclaim([&](retired_object* node) {
            w.heap.free(node->object);
            delete node;
        });
    };
    w.thread("exchanger", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, e);
                auto* old = w.exchange(h->guide, w.make(1, 5));
                E::require(old->version.load_relaxed() == 5, "what was taken out is alive");
                retire(e, old);
            }
            reclaim();
        }
    });
    w.thread("comparer", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, e);
                auto expected = w.to_address(w.dereference(e, h->guide));
                auto* o = w.make(1, 5);
                E::require(w.to_object(expected)->version.load_relaxed() == 5, "alive before");
                if (w.compare_exchange(e, h->guide, expected, o))
                    retire(e, w.to_object(expected));
                else
                    w.heap.free(o);
                E::require(w.to_object(expected)->version.load_relaxed() == 5,
                           "alive in the scope");
                E::require(w.to_object(expected)->id.load_relaxed() == 1, "alive in the scope");
            }
            reclaim();
        }
    });
    w.collector();
    E::run();
    reclaim();
    reclaim();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "each object was freed once");
    w.detach(self);
}
OBASE_OBLIGATION(exchanges_race_with_the_mover, 2000)

// O2, R9: a pinned object stays where it is, beyond the scope, until the pin is released.
template <class E>
void pins_hold_objects_in_place() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("pinner", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(3, 3000); ++i) {
            typename E::platform::template atomic<std::uint64_t>* pin = nullptr;
            typename world_type::object* o = nullptr;
            {
                const typename world_type::scope in(w, e);
                o = w.dereference(e, h->guide);
                pin = claim_pin(e.record, w.to_address(o),
                                []() -> pin_chunk<typename E::platform>* { return nullptr; });
            }
            w.verify(o, 1, version);
            w.update(o, 1, ++version);
            w.verify(o, 1, version);
            release_pin(*pin);
        }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        w.verify(w.dereference(self, h->guide), 1, version);
    }
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(pins_hold_objects_in_place, 3000)

// R1, R6: the wait is given up at any moment, and the mover goes on with the next window.
template <class E>
void waits_are_given_up() {
    using world_type = exclusive_atc_world<E>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& e) {
        for (unsigned i = 0; i < E::rounds(3, 3000); ++i) {
            const typename world_type::scope in(w, e);
            auto* o = w.dereference(e, h->guide);
            w.verify(o, 1, version);
            w.update(o, 1, ++version);
            w.verify(o, 1, version);
        }
    });
    w.busy.fetch_add_relaxed(1);
    E::spawn("collector", [&] {
        for (unsigned i = 0; i < E::rounds(3, 500); ++i)
            w.collect(2, [](const auto&) { return E::choose(3) == 0; });
        w.busy.fetch_sub_acq_rel(1);
    });
    E::run();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "no leak");
    w.detach(self);
}
OBASE_OBLIGATION(waits_are_given_up, 2000)

// R1: where membarrier is missing, entry is an exchange; where it fails, nothing moves.
TEST(atc_obligations, without_membarrier) {
    for (const auto mode :
         {testing::membarrier_mode::missing, testing::membarrier_mode::unreliable}) {
        explore_schedules(mode == testing::membarrier_mode::missing ? "missing" : "unreliable", 800,
                          [mode] {
                              using world_type = exclusive_atc_world<scheduled>;
                              world_type w;
                              w.registry.set_fenced(mode == testing::membarrier_mode::missing);
                              auto& self = w.attach();
                              auto* h = w.make_holder(self, w.make(1, 0));
                              std::uint64_t version = 0;
                              w.thread("writer", [&](auto& e) {
                                  for (unsigned i = 0; i < 3; ++i) {
                                      const typename world_type::scope in(w, e);
                                      auto* o = w.dereference(e, h->guide);
                                      w.verify(o, 1, version);
                                      w.update(o, 1, ++version);
                                      w.verify(o, 1, version);
                                  }
                              });
                              w.collector();
                              scheduled::run();
                              w.destroy(self, h);
                              w.detach(self);
                          },
                          {.membarrier = mode});
    }
}

} // namespace
} // namespace obase::mobility
