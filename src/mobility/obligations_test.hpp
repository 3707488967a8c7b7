// SPDX-License-Identifier: MIT
//
// The obligations O1..O7 (docs/protocol.md), one body each, for every protocol: what a program may rely
// on while objects move. arming_obligations_test.cpp, atc_obligations_test.cpp and
// marked_obligations_test.cpp run them under the deterministic scheduler (random and priority
// schedules, x86 store buffers) and on OS threads. The mutant tables beside this file name what they
// must notice.
//
//     template <class E, template <class> class Protocol> void body();
//
// E says where it runs, Protocol what moves the objects (both: world_test.hpp).
#pragma once

#include "mobility/world_test.hpp"
#include "os/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace obase::mobility {

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

// One operation on an object that only this thread uses: the address stays good in an inner scope
// and after it (R2).
template <class World>
void update_in_scopes(World& w, typename World::user& u, typename World::slot& s, std::uint64_t id,
                      std::uint64_t& version) {
    const typename World::scope outer(w, u);
    auto* o = w.dereference(u, s);
    w.verify(o, id, version);
    w.update(o, id, ++version);
    {
        const typename World::scope inner(w, u);
        w.verify(w.dereference(u, s), id, version);
    }
    w.verify(o, id, version);
    w.update(o, id, ++version);
}

// O1, O2: what a thread reads through a raw address in its scope is what it wrote last, and what it
// writes there is never lost, however often the object moves; at the end nothing has leaked. Scopes
// nest, and several begin and end in one window.
template <class E, template <class> class Protocol>
void raw_addresses_last_as_long_as_the_scope() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    constexpr std::uint64_t threads = 2;
    typename world_type::holder* holders[threads];
    std::uint64_t version[threads] = {};
    for (std::uint64_t t = 0; t < threads; ++t)
        holders[t] = w.make_holder(self, w.make(100 + t, 0));
    for (std::uint64_t t = 0; t < threads; ++t)
        w.thread("writer", [&w, &holders, &version, t](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i)
                update_in_scopes(w, u, holders[t]->guide, 100 + t, version[t]);
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

// O1, R2: scopes inside a scope, which touch nothing, do not make the outer one look younger than it
// is.
template <class E, template <class> class Protocol>
void inner_scopes_do_not_hide_the_outer_one() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("nester", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope outer(w, u);
            auto* o = w.dereference(u, h->guide);
            for (int inner = 0; inner < 4; ++inner) {
                const typename world_type::scope in(w, u);
                w.verify(o, 1, version);
                w.verify(o, 1, version);
            }
            w.update(o, 1, ++version);
            w.verify(o, 1, version);
        }
    });
    w.collector();
    E::run();
    w.finish(self, h);
}

// O1: readers of an object that another thread updates in place see no version older than one whose
// write they know of.
template <class E, template <class> class Protocol>
void readers_follow_a_writer() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(7, 0));
    typename E::platform::template atomic<std::uint64_t> written(0);
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 1; i <= E::rounds(3, 3000); ++i) {
            const typename world_type::scope in(w, u);
            w.dereference(u, h->guide)->version.store_relaxed(i);
            written.store_release(i);
        }
    });
    for (int reader = 0; reader < 2; ++reader)
        w.thread("reader", [&](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const std::uint64_t known = written.load_acquire();
                const typename world_type::scope in(w, u);
                auto* o = w.dereference(u, h->guide);
                E::require(o->id.load_relaxed() == 7, "the object is the one that was put there");
                E::require(o->version.load_relaxed() >= known, "not older than what is known");
                E::require(o->version.load_relaxed() >= known, "and so until the scope ends");
            }
        });
    w.collector();
    E::run();
    w.finish(self, h);
}

// O2: an operation of a single write may begin and end within the copy of its object.
template <class E, template <class> class Protocol>
void a_short_operation_vetoes_a_copy() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(4, 5000); ++i) {
            const typename world_type::scope in(w, u);
            auto* o = w.dereference(u, h->guide);
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
    w.finish(self, h);
}

// O2: two threads that count in the same object lose no count.
template <class E, template <class> class Protocol>
void counts_are_not_lost() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(7, 0));
    for (int thread = 0; thread < 2; ++thread)
        w.thread("counter", [&](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope in(w, u);
                auto* o = w.dereference(u, h->guide);
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

// O3, O5: a slot may be destroyed, its object freed and its memory reused or unmapped at any moment
// of a window. A new slot at the same address with a new object at the old one's address is another
// slot: the mover, which may still hold the old candidate, leaves it alone (ABA).
template <class E, template <class> class Protocol>
void slots_die_and_are_born_again() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* bystander = w.make_holder(self, w.make(50, 0)); // shares the bitmap word
    w.thread("owner", [&](auto& u) {
        std::uint64_t version = 0;
        const unsigned rounds = E::rounds(2, 2000);
        for (unsigned i = 0; i <= rounds; ++i) {
            auto* o = w.make(1, version += 10); // where the old object was
            // Either where the old slot was, or in memory that goes back to the system.
            const bool mapped = i % 2 == 1;
            constexpr std::size_t bytes = sizeof(typename world_type::holder);
            auto* h = w.make_holder(u, o, mapped ? w.heap.map(bytes) : w.heap.allocate(bytes));
            {
                const typename world_type::scope in(w, u);
                o = w.dereference(u, h->guide);
                w.verify(o, 1, version);
                w.update(o, 1, ++version);
                w.verify(o, 1, version);
            }
            o = w.end_slot(u, h->guide);
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
    w.finish(self, bystander);
}

// O3: the slots of a range end at once, whatever they hold, and the range goes back to the system.
// Their objects stay, and are not the collector's any more.
template <class E, template <class> class Protocol>
void forgotten_ranges_go_back_to_the_system() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* bystander = w.make_holder(self, w.make(50, 0));
    w.thread("owner", [&](auto& u) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            constexpr std::size_t bytes = sizeof(typename world_type::holder);
            void* memory = w.heap.map(bytes);
            auto* h = w.make_holder(u, w.make(1, version), memory);
            typename world_type::object* o = nullptr;
            {
                const typename world_type::scope in(w, u);
                o = w.dereference(u, h->guide);
                w.update(o, 1, ++version);
                w.forget(u, memory, static_cast<char*>(memory) + bytes);
            }
            w.heap.unmap(memory, bytes);
            w.verify(o, 1, version);
            w.heap.free(o);
        }
    });
    w.collector();
    E::run();
    E::require(w.registered() == 1, "the forgotten slots are not registered");
    w.finish(self, bystander);
}

// O3, O5: as slots_die_and_are_born_again(), by another thread than the one that uses the slot: the
// scope of the latter ends later, and touches nothing that is not a slot any more. What is in the
// memory now keeps its value.
template <class E, template <class> class Protocol>
void scopes_end_after_their_slots() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    user_lock<typename E::platform> lock;
    auto& self = w.attach();
    typename world_type::holder* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    for (int thread = 0; thread < 2; ++thread)
        w.thread("user", [&](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
                const typename world_type::scope in(w, u);
                lock.lock();
                auto* o = w.dereference(u, h->guide);
                w.verify(o, 1, version);
                w.update(o, 1, ++version);
                lock.unlock();
            }
        });
    w.thread("replacer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, u);
            lock.lock();
            w.destroy(u, h);
            constexpr std::size_t bytes = sizeof(typename world_type::holder);
            // Where the slot was there is now something with ATC's bits: the high bits of a number.
            using cell = typename E::platform::template atomic<std::uint64_t>;
            constexpr std::uint64_t number = 0x0055'0000'0000'1234;
            auto* data = ::new (w.heap.allocate(bytes)) cell(number);
            typename E::platform::template atomic<std::uint64_t> elsewhere(1);
            elsewhere.fetch_add_relaxed(1); // time passes
            E::require(data->load_relaxed() == number, "no thread wrote into freed memory");
            w.heap.free(data);
            h = w.make_holder(u, w.make(1, ++version)); // a slot again, perhaps at the old place
            lock.unlock();
        }
    });
    w.collector();
    E::run();
    w.finish(self, h);
}

// O3: the memory around a destroyed slot may be given back to the system while scopes are open that
// have used the slot.
template <class E, template <class> class Protocol>
void containers_are_unmapped_before_scopes_end() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    user_lock<typename E::platform> lock;
    auto& self = w.attach();
    constexpr std::size_t bytes = sizeof(typename world_type::holder);
    auto* o = w.make(1, 0);
    typename world_type::holder* h = w.make_holder(self, o, w.heap.map(bytes));
    auto* bystander = w.make_holder(self, w.make(50, 0));
    w.thread("user", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(3, 2000); ++i) {
            const typename world_type::scope in(w, u);
            lock.lock();
            w.verify(w.dereference(u, bystander->guide), 50, 0);
            w.verify(w.dereference(u, h->guide), 1, 0);
            lock.unlock();
        }
    });
    w.thread("unmapper", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, u);
            lock.lock();
            auto* kept = w.end_slot(u, h->guide);
            w.heap.unmap(h, bytes);
            h = w.make_holder(u, kept, w.heap.map(bytes));
            lock.unlock();
        }
    });
    w.collector();
    E::run();
    auto* last = w.end_slot(self, h->guide);
    w.heap.unmap(h, bytes);
    w.finish(self, last, bystander);
}

// Gives the leaves of bitmaps that look empty back, as the collector does at the end of a window.
template <class World>
void retire_leaves(World& w) {
    w.slots.refresh();
    bool any = false;
    for (auto* leaf : w.slots.leaves())
        if (w.slots.looks_empty(*leaf)) {
            w.slots.begin_retire(*leaf);
            any = true;
        }
    if (!any && !w.slots.has_unlinked()) return;
    w.registry.wait_for_holders(1, nullptr, [](const auto&) { return false; });
    w.slots.finish_retire();
}

// O3: leaves end under threads that make and forget slots there. What a thread looks at in a leaf stays
// mapped until it is done: the rest of a range whose last slot it has just ended.
template <class E, template <class> class Protocol>
void leaves_end_under_the_threads() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    // Of many words of the bitmap. Natively a block holds no more than a holder.
    constexpr std::size_t bytes = E::deterministic ? 2048 : sizeof(typename world_type::holder);
    for (unsigned id = 1; id <= 2; ++id)
        w.thread("forgetter", [&w, id](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
                auto* memory = static_cast<char*>(w.heap.allocate(bytes));
                auto* h = w.make_holder(u, w.make(id, 0), memory);
                E::require(w.registered_in_scope(u, h->guide), "what was made a slot is one");
                typename world_type::object* o = nullptr;
                {
                    const typename world_type::scope in(w, u);
                    o = w.dereference(u, h->guide);
                }
                w.forget(u, memory, memory + bytes);
                w.heap.free(memory);
                w.heap.free(o);
            }
        });
    w.collector(4, [&](std::uint64_t) { retire_leaves(w); });
    E::run();
    E::require(w.registered() == 0, "no slot is registered that does not exist");
    E::require(w.heap.live_blocks() == 0, "no leak");
}

// O2, R3: a new object may be used by its maker before and after it is put into its slot, in one
// scope.
template <class E, template <class> class Protocol>
void a_replaced_word_is_a_new_word() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("owner", [&](auto& u) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, u);
            auto* old = w.exchange(u, h->guide, nullptr);
            w.verify(old, 1, version);
            w.heap.free(old);
            auto* o = w.make(1, ++version); // where the old one was
            E::require(w.exchange(u, h->guide, o) == nullptr, "the slot was empty");
            w.update(o, 1, ++version);
            w.verify(o, 1, version);
        }
    });
    w.collector();
    E::run();
    w.finish(self, h);
}

// O2, R12: objects change slots by exchange and are as untouched as before; a thread that uses one,
// by either slot, keeps it.
template <class E, template <class> class Protocol>
void objects_change_slots() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* one = w.make_holder(self, w.make(1, 0));
    auto* two = w.make_holder(self, w.make(2, 0));
    w.thread("owner", [&](auto& u) {
        std::uint64_t version[2] = {};
        for (unsigned i = 0; i < E::rounds(3, 3000); ++i) {
            const typename world_type::scope in(w, u);
            auto* o = w.dereference(u, i % 2 == 0 ? one->guide : two->guide);
            const std::uint64_t id = o->id.load_relaxed();
            E::require(id == 1 || id == 2, "one of the two");
            // Out, across and back in.
            auto* first = w.exchange(u, one->guide, nullptr);
            auto* second = w.exchange(u, two->guide, first);
            E::require(w.exchange(u, one->guide, second) == nullptr, "the slot was empty");
            // The address from before the change is still good.
            w.verify(o, id, version[id - 1]);
            w.update(o, id, ++version[id - 1]);
            w.verify(o, id, version[id - 1]);
        }
    });
    w.collector(3);
    E::run();
    w.finish(self, one, two);
}

// O2: an object goes from slot to slot while another thread, which found it in the first, is still
// using it.
template <class E, template <class> class Protocol>
void objects_change_slots_while_in_use() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* a = w.make_holder(self, w.make(1, 0));
    auto* b = w.make_holder(self, nullptr);
    typename E::platform::template atomic<std::uint64_t> uses;
    const unsigned rounds = E::rounds(2, 3000);
    w.thread("user", [&](auto& u) {
        for (unsigned i = 0; i < rounds; ++i) {
            const typename world_type::scope in(w, u);
            for (auto* h : {a, b}) {
                auto* o = w.dereference(u, h->guide);
                if (o == nullptr) continue;
                E::require(o->id.load_relaxed() == 1, "the object is alive");
                o->version.fetch_add_relaxed(1);
                uses.fetch_add_relaxed(1);
                E::require(o->id.load_relaxed() == 1, "and stays so");
            }
        }
    });
    w.thread("mover by hand", [&](auto& u) {
        for (unsigned i = 0; i < rounds; ++i)
            for (int back = 0; back < 2; ++back) {
                const typename world_type::scope in(w, u);
                auto& from = back == 0 ? a->guide : b->guide;
                auto& to = back == 0 ? b->guide : a->guide;
                auto* o = w.exchange(u, from, nullptr);
                E::require(w.exchange(u, to, o) == nullptr, "the other slot was empty");
            }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        auto* o = w.dereference(self, a->guide);
        E::require(o->version.load_relaxed() == uses.load_relaxed(), "no use was lost");
    }
    w.finish(self, a, b);
}

// O2, O5, R5, R12: exchange and compare-exchange race with each other and with publishes; each
// object is handed to exactly one caller, an address that a failed compare-exchange returns may be
// used until the scope ends, and a retired object outlives every scope that found it.
template <class E, template <class> class Protocol>
void exchanges_race_with_the_mover() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 5));
    w.thread("exchanger", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, u);
                auto* old = w.exchange(u, h->guide, w.make(1, 5));
                E::require(old->version.load_relaxed() == 5, "what was taken out is alive");
                w.retire(u, old);
            }
            w.free_retired();
        }
    });
    w.thread("comparer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            {
                const typename world_type::scope in(w, u);
                auto* expected = w.dereference(u, h->guide);
                auto* o = w.make(1, 5);
                E::require(expected->version.load_relaxed() == 5, "alive before");
                if (w.compare_exchange(u, h->guide, expected, o))
                    w.retire(u, expected);
                else
                    w.heap.free(o);
                E::require(expected->version.load_relaxed() == 5, "alive in the scope");
                E::require(expected->id.load_relaxed() == 1, "alive in the scope");
            }
            w.free_retired();
        }
    });
    w.collector();
    E::run();
    w.free_retired();
    w.free_retired();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "each object was freed once");
    E::require(w.reclaim.pending() == 0, "nothing is left retired");
    w.detach(self);
}

// O1, R5: a failed compare-exchange hands out an address that lasts. The expected address is never
// right here, so every call takes that path.
template <class E, template <class> class Protocol>
void failed_compares_return_usable_addresses() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("comparer", [&](auto& u) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, u);
            auto* expected = w.to_object(8);
            E::require(!w.compare_exchange(u, h->guide, expected, nullptr), "8 is no object");
            w.verify(expected, 1, version);
            w.update(expected, 1, ++version);
            w.verify(expected, 1, version);
        }
    });
    w.collector();
    E::run();
    w.finish(self, h);
}

// O1, marked pointers: an operation gives an object from one slot to another, so that it is in both for
// a moment, and the collector may look at the second then. A reader that enters later, and that one wait
// does not cover, may still find it in the first. With `tries`, another thread stores what it finds in
// the first into a slot that only this thread loads, and gives it up again while the collector waits for
// the second time. Programs that do not keep rules 1 and 2 (docs/protocol.md) are among the mutants.
template <class E, template <class> class Protocol>
void give_between_slots(bool fenced, bool tries = false) {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    w.registry.set_fenced(fenced);
    w.expect_addresses_in_two_slots();
    auto& self = w.attach();
    using holders = std::vector<typename world_type::holder*>;
    const holders shown = {w.make_holder(self, w.make(7, 0)), w.make_holder(self, nullptr)};
    const holders own = {w.make_holder(self, nullptr)};
    const auto now = [&w] { return w.registry.epoch().load_acquire(); };
    const epoch_number first = now();
    typename E::platform::template atomic<unsigned> stored(0), given(0), tried(0), read(0),
        collected(0);
    // Not before the first wait, which would cover the thread.
    const auto let_it_wait = [&] {
        while (E::deterministic && now() == first && given.load_acquire() == 0)
            E::platform::pause();
    };
    // In a schedule, and not for ever.
    const auto await = [&](auto&& event) {
        for (unsigned i = 0; E::deterministic && tries && i < 300 && !event(); ++i)
            E::platform::pause();
    };
    w.thread("giver", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            auto& from = shown[i % 2]->guide;
            auto& to = shown[1 - i % 2]->guide;
            const typename world_type::scope in(w, u);
            w.exchange(u, to, w.dereference(u, from));
            stored.store_release(1);
            await([&] { return tried.load_acquire() != 0; });
            w.exchange(u, from, nullptr); // rule 1
        }
        given.store_release(1);
    });
    if (tries)
        w.thread("trier", [&](auto& u) {
            let_it_wait();
            for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
                const typename world_type::scope in(w, u);
                w.exchange(u, own[0]->guide, w.dereference(u, shown[0]->guide));
                tried.store_release(1);
                await([&] { return read.load_acquire() != 0; });
                w.exchange(u, own[0]->guide, nullptr); // rule 1
            }
        });
    w.thread("reader", [&](auto& u) {
        const holders& loaded = shown; // rule 2
        let_it_wait();
        await([&] { return now() >= first + 2; });
        for (unsigned i = 0; i < E::rounds(1, 3000); ++i) {
            const epoch_number entered = now();
            const typename world_type::scope in(w, u);
            for (auto* h : loaded)
                if (auto* o = w.dereference(u, h->guide); o != nullptr) {
                    E::require(o->id.load_relaxed() == 7, "the object that was put there");
                    read.store_release(1);
                    // Until the collector has moved it, or waits for this scope.
                    while (E::deterministic && collected.load_acquire() == 0 && now() == entered)
                        E::platform::pause();
                    E::require(o->id.load_relaxed() == 7, "and so until the scope ends");
                }
        }
    });
    w.collector(1, [&](std::uint64_t window) {
        await([&] { return stored.load_acquire() != 0; });
        w.collect(window);
        collected.store_release(1);
    });
    E::run();
    for (auto* h : shown) w.destroy(self, h);
    for (auto* h : own) w.destroy(self, h);
    w.finish(self);
}
template <class E, template <class> class Protocol>
void addresses_are_in_two_slots_for_a_moment() {
    give_between_slots<E, Protocol>(false);
}
template <class E, template <class> class Protocol>
void addresses_are_given_up_where_no_other_thread_looks() {
    give_between_slots<E, Protocol>(false, true);
}

// O4, R11: an object that contains a slot and the object in that slot both move, while the child is
// updated, replaced and the parent destroyed with everything in it. The child's slot stays
// registered where it is, or its object would stay where it is for ever.
template <class E, template <class> class Protocol>
void parents_move_with_their_children() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    typename world_type::holder* h = nullptr;
    std::uint64_t version = 0;
    const auto make_family = [&](auto& u) {
        auto* parent = w.make(1, 0);
        w.give_nested(u, parent, w.make(2, version));
        h = w.make_holder(u, parent);
    };
    make_family(self);
    w.thread("owner", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            switch (E::choose(4)) {
            case 0: { // replaces the child
                const typename world_type::scope in(w, u);
                auto* parent = w.dereference(u, h->guide);
                auto* child = w.exchange(u, parent->nested, nullptr);
                w.verify(child, 2, version);
                w.heap.free(child);
                w.exchange(u, parent->nested, w.make(2, ++version));
                break;
            }
            case 1: // destroys parent and child
                w.destroy(u, h);
                version += 100;
                make_family(u);
                break;
            default: { // uses the child by way of the parent
                const typename world_type::scope in(w, u);
                auto* parent = w.dereference(u, h->guide);
                auto* child = w.dereference(u, parent->nested);
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
    w.finish(self, h);
    // What moved away, or was undone, has left no bits: R8, R11.
    E::require(w.registered() == 0, "no slot is registered that does not exist");
}

// O4, R8, R11: registered is what exists, where it lies now, whether families of slots come or go
// while others move: bits travel before the object can be reached, and are gone before its memory
// is.
template <class E, template <class> class Protocol>
void exactly_the_existing_slots_are_registered() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    const auto make_family = [&w](auto& u) {
        auto* parent = w.make(1, 0);
        w.give_nested(u, parent, w.make(2, 0));
        return w.make_holder(u, parent);
    };
    std::vector<typename world_type::holder*> families{make_family(self)};
    w.thread("owner", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(1, 2000); ++i) {
            if (E::choose(2) == 0) {
                w.destroy(u, families.back());
                families.pop_back();
            }
            if (families.size() < 4) families.push_back(make_family(u));
            if (families.size() == 4) {
                w.destroy(u, families.front());
                families.erase(families.begin());
            }
        }
    });
    w.collector(1);
    E::run();
    E::require(w.registered() == 2 * families.size(), "no slot is registered that does not exist");
    for (auto* h : families) {
        {
            const typename world_type::scope in(w, self);
            auto* parent = w.dereference(self, h->guide);
            E::require(w.slots.test(&parent->nested), "the nested slot is registered where it is");
            w.verify(parent, 1, 0);
            w.verify(w.dereference(self, parent->nested), 2, 0);
        }
        w.destroy(self, h);
    }
    w.finish(self);
}

// O4, R11: a thread that reaches the child by way of the parent keeps both, although the collector
// visits the child's slot in the same window. Here the parent is touched only now and then, so that
// it moves.
template <class E, template <class> class Protocol>
void children_are_used_while_parents_move() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    std::uint64_t version = 0;
    auto* parent = w.make(1, 0);
    w.give_nested(self, parent, w.make(2, version));
    auto* h = w.make_holder(self, parent);
    w.thread("user", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            const typename world_type::scope in(w, u);
            auto& nested = w.dereference(u, h->guide)->nested;
            auto* child = w.dereference(u, nested);
            w.verify(child, 2, version);
            w.update(child, 2, ++version);
            auto* fresh = w.make(2, ++version);
            w.heap.free(w.exchange(u, nested, fresh));
            w.verify(w.dereference(u, nested), 2, version);
        }
    });
    w.collector();
    E::run();
    {
        const typename world_type::scope in(w, self);
        auto& nested = w.dereference(self, h->guide)->nested;
        w.verify(w.dereference(self, nested), 2, version);
    }
    w.finish(self, h);
}

// O4: two threads use the child by way of the parent, so a scope may end after the parent has moved on
// and its old place holds another parent's nested slot, which the other thread uses.
template <class E, template <class> class Protocol>
void nested_slots_follow_each_other_in_memory() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    constexpr unsigned families = 2;
    typename world_type::holder* h[families];
    // The parents' slots lie below their nested slots: under ATC a scope counts out in the order of
    // addresses, so there is a time when it has left the parent and not yet the slot inside.
    for (auto& one : h) one = w.make_holder(self, nullptr);
    for (auto* one : h) {
        auto* parent = w.make(1, 0);
        w.give_nested(self, parent, w.make(2, 0));
        const typename world_type::scope in(w, self);
        w.exchange(self, one->guide, parent);
    }
    for (unsigned thread = 0; thread < 2; ++thread)
        w.thread("user", [&w, &h, thread](auto& u) {
            for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
                const typename world_type::scope in(w, u);
                for (unsigned f = 0; f < families; ++f) {
                    auto* parent = w.dereference(u, h[(f + thread) % families]->guide);
                    auto* child = w.dereference(u, parent->nested);
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
    w.finish(self);
}

// O2, R9: a pinned object stays where it is, beyond the scope, until the pin is released.
template <class E, template <class> class Protocol>
void pins_hold_objects_in_place() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("pinner", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(3, 3000); ++i) {
            typename world_type::pin_entry* pin = nullptr;
            typename world_type::object* o = nullptr;
            {
                const typename world_type::scope in(w, u);
                o = w.dereference(u, h->guide);
                pin = w.pin(u, o);
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
    w.finish(self, h);
}

// O2, R9: the same in other hands; also if its slot has been armed again meanwhile.
template <class E, template <class> class Protocol>
void pins_are_handed_over() {
    using world_type = shared_world<E, Protocol>;
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
    w.thread("pinner", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            typename world_type::pin_entry* pin = nullptr;
            {
                const typename world_type::scope in(w, u);
                pin = w.pin(u, w.dereference(u, h->guide));
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
        version = w.dereference(self, h->guide)->version.load_relaxed();
    }
    E::require(version % 2 == 0 && version >= 2 * E::rounds(2, 2000), "all counts are there");
    w.finish(self, h);
}

// O2, R9, R12: a retired object is freed after the scopes that found it, and after the pins that
// these scopes put on it.
template <class E, template <class> class Protocol>
void retired_objects_outlive_scopes_and_pins() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 5));
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, u);
            w.retire(u, w.exchange(u, h->guide, w.make(1, 5)));
        }
    });
    w.thread("reader", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            typename world_type::pin_entry* pin = nullptr;
            typename world_type::object* o = nullptr;
            {
                const typename world_type::scope in(w, u);
                o = w.dereference(u, h->guide);
                E::require(o->version.load_relaxed() == 5, "alive in the scope");
                if (i % 2 == 0) pin = w.pin(u, o);
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
        w.free_retired();
        w.collect(window);
        w.free_retired();
    });
    E::run();
    w.free_retired();
    w.free_retired();
    w.destroy(self, h);
    E::require(w.heap.live_blocks() == 0, "each object was freed once");
    w.detach(self);
}

// O2, R1, R6: windows follow each other without pause, and waits are given up at any point. What was
// a candidate then is none any more.
template <class E, template <class> class Protocol>
void given_up_waits_move_nothing() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i)
            update_in_scopes(w, u, h->guide, 1, version);
    });
    w.collector(3, [&](std::uint64_t window) {
        w.collect(window, nullptr, [](const auto&) { return E::choose(3) == 0; });
    });
    E::run();
    w.finish(self, h);
}

// O6: a thread may end, or be replaced by another that takes over its record, with its scope open;
// the scope ends with it.
template <class E, template <class> class Protocol>
void threads_end_inside_scopes() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* first = w.make_holder(self, w.make(1, 0));
    auto* second = w.make_holder(self, w.make(2, 0));
    const auto lives = [&w](typename world_type::slot& s, std::uint64_t id) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            auto& u = w.attach();
            update_in_scopes(w, u, s, id, version);
            w.enter(u);
            auto* o = w.dereference(u, s);
            w.verify(o, id, version);
            w.update(o, id, ++version);
            w.detach(u); // no leave()
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
    w.finish(self, first, second);
}

// O6: an exception may leave a scope, nested ones too; afterwards the thread is outside.
template <class E, template <class> class Protocol>
void exceptions_leave_scopes() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    w.thread("thrower", [&](auto& u) {
        std::uint64_t version = 0;
        for (unsigned i = 0; i < E::rounds(2, 500); ++i) {
            try {
                const typename world_type::scope in(w, u);
                update_in_scopes(w, u, h->guide, 1, version);
                const typename world_type::scope inner(w, u);
                throw std::runtime_error("leaves two scopes");
            } catch (const std::runtime_error&) {
                E::require(w.record_of(u).epoch.load_relaxed() == 0, "the thread is outside");
            }
        }
    });
    w.collector();
    E::run();
    w.destroy(self, h);
    w.detach(self);
}

// O6, R14: a collector that is in a scope of its own does not wait for itself.
template <class E, template <class> class Protocol>
void the_collector_does_not_wait_for_itself() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(1, 500); ++i)
            update_in_scopes(w, u, h->guide, 1, version);
    });
    auto& own = w.attach();
    w.collector(2, [&](std::uint64_t window) {
        const typename world_type::scope in(w, own);
        w.collect(window, &w.record_of(own), [](const auto&) { return false; });
    });
    E::run();
    w.destroy(self, h);
    w.detach(self);
}

// O7, R17: what lies outside the heaps never moves, and its slot is never armed: here a third of the
// objects of a structure whose others move.
template <class E, template <class> class Protocol>
void objects_outside_the_heaps_stay() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    typename world_type::object outside(3, 0);
    auto* one = w.make_holder(self, w.make(1, 0));
    auto* two = w.make_holder(self, w.make(2, 0));
    auto* h = w.make_holder(self, &outside);
    w.thread("user", [&](auto& u) {
        std::uint64_t version[4] = {};
        for (unsigned i = 0; i < E::rounds(2, 3000); ++i) {
            update_in_scopes(w, u, one->guide, 1, version[1]);
            update_in_scopes(w, u, two->guide, 2, version[2]);
            update_in_scopes(w, u, h->guide, 3, version[3]);
            const typename world_type::scope in(w, u);
            E::require(w.dereference(u, h->guide) == &outside, "it is where it was");
        }
    });
    w.collector();
    E::run();
    E::require(w.end_slot(self, h->guide) == &outside, "it is where it was");
    w.heap.free(h);
    w.finish(self, one, two);
}

// O6, R1, R2: with scopes that fence by themselves objects move as ever.
template <class E, template <class> class Protocol>
std::uint64_t moves_of_a_used_object(bool fenced) {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    w.registry.set_fenced(fenced);
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    std::uint64_t version = 0;
    w.thread("writer", [&](auto& u) {
        for (int i = 0; i < 2; ++i) update_in_scopes(w, u, h->guide, 1, version);
    });
    w.collector();
    E::run();
    const std::uint64_t moved = w.moves.load_relaxed();
    w.destroy(self, h);
    w.detach(self);
    return moved;
}

// O3: containers with slots in them are unmapped, for real, while the collector scans: a visit to
// memory that is gone would fault. Natively only.
template <class E, template <class> class Protocol>
void containers_are_unmapped_under_the_collector() {
    using world_type = exclusive_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    constexpr std::size_t pages = 2;
    constexpr std::size_t bytes = pages * os::page_size;
    // The address space is the test's for the whole run, so that nothing else appears there.
    auto* memory = static_cast<char*>(os::reserve(bytes, os::page_size));
    ASSERT_NE(memory, nullptr);
    w.thread("owner", [&](auto& u) {
        for (unsigned i = 0; i < 500; ++i) {
            E::require(os::commit(memory, bytes) == 0, "memory");
            std::vector<typename world_type::slot*> guides;
            for (unsigned k = 0; k < 8; ++k) {
                auto* s = ::new (memory + 8 * (k * 37 % 1024)) typename world_type::slot(0);
                w.give(u, *s, w.make(k, i));
                guides.push_back(s);
            }
            for (unsigned k = 0; k < 8; ++k) {
                const typename world_type::scope in(w, u);
                w.verify(w.dereference(u, *guides[k]), k, i);
            }
            std::vector<typename world_type::object*> objects;
            {
                // Touched first, because the range tells no addresses.
                const typename world_type::scope in(w, u);
                for (auto* s : guides) objects.push_back(w.dereference(u, *s));
                w.forget(u, memory, memory + bytes);
            }
            E::require(os::decommit(memory, bytes) == 0, "unmapped");
            for (auto* o : objects) w.heap.free(o);
        }
    });
    w.collector(0, [&](std::uint64_t window) {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        w.scan(window, begin, begin + bytes);
        w.mover.wait_for_grace_period(nullptr, [](const auto&) { return false; });
        w.moves.fetch_add_relaxed(w.move_all(window));
        w.mover.finish();
    });
    E::run();
    EXPECT_EQ(w.heap.live_blocks(), 0u);
    os::release(memory, bytes);
    w.detach(self);
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
    static void forget_handlers() {
        std::fill(std::begin(handler), std::end(handler), nullptr);
        std::fill(std::begin(handling), std::end(handling), false);
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
// it is over. In schedules only, of a platform of its own.
template <template <class> class Protocol>
void signal_handlers_open_scopes() {
    using interrupted = scheduled_as<interrupted_platform>;
    using world_type = exclusive_world<interrupted, Protocol>;
    interrupted_platform::forget_handlers();
    world_type w;
    auto& self = w.attach();
    auto* h = w.make_holder(self, w.make(1, 0));
    auto* of_handler = w.make_holder(self, w.make(2, 0));
    w.thread("interrupted", [&](auto& u) {
        std::uint64_t version = 0;
        std::uint64_t handled = 0;
        interrupted_platform::handler[testing::thread_index()] = [&] {
            const typename world_type::scope in(w, u);
            auto* o = w.dereference(u, of_handler->guide);
            w.verify(o, 2, handled);
            w.update(o, 2, ++handled);
        };
        for (int i = 0; i < 2; ++i) {
            update_in_scopes(w, u, h->guide, 1, version);
            testing::require(w.record_of(u).epoch.load_relaxed() == 0, "the thread is outside");
        }
        interrupted_platform::handler[testing::thread_index()] = nullptr;
    });
    w.collector();
    testing::run();
    w.destroy(self, h);
    w.destroy(self, of_handler);
}

} // namespace obase::mobility

// Every body that runs in schedules and on threads, with the number of schedules in ci.
#define OBASE_OBLIGATIONS(X)                                                                       \
    X(raw_addresses_last_as_long_as_the_scope, 1500)                                               \
    X(inner_scopes_do_not_hide_the_outer_one, 8000)                                                \
    X(readers_follow_a_writer, 1500)                                                               \
    X(a_short_operation_vetoes_a_copy, 4000)                                                       \
    X(counts_are_not_lost, 1500)                                                                   \
    X(slots_die_and_are_born_again, 3000)                                                          \
    X(forgotten_ranges_go_back_to_the_system, 2000)                                                \
    X(scopes_end_after_their_slots, 4000)                                                          \
    X(containers_are_unmapped_before_scopes_end, 3000)                                             \
    X(leaves_end_under_the_threads, 3000)                                                          \
    X(a_replaced_word_is_a_new_word, 3000)                                                         \
    X(objects_change_slots, 2000)                                                                  \
    X(objects_change_slots_while_in_use, 3000)                                                     \
    X(exchanges_race_with_the_mover, 2000)                                                         \
    X(failed_compares_return_usable_addresses, 1500)                                               \
    X(addresses_are_in_two_slots_for_a_moment, 4000)                                               \
    X(addresses_are_given_up_where_no_other_thread_looks, 4000)                                    \
    X(parents_move_with_their_children, 4000)                                                      \
    X(exactly_the_existing_slots_are_registered, 4000)                                             \
    X(children_are_used_while_parents_move, 2000)                                                  \
    X(nested_slots_follow_each_other_in_memory, 4000)                                              \
    X(pins_hold_objects_in_place, 3000)                                                            \
    X(pins_are_handed_over, 2000)                                                                  \
    X(retired_objects_outlive_scopes_and_pins, 2000)                                               \
    X(given_up_waits_move_nothing, 1500)                                                           \
    X(threads_end_inside_scopes, 1500)                                                             \
    X(exceptions_leave_scopes, 500)                                                                \
    X(the_collector_does_not_wait_for_itself, 300)                                                 \
    X(objects_outside_the_heaps_stay, 1000)

// The tests of one protocol: OBASE_OBLIGATION_TESTS(arming_obligations, arming_protocol).
#define OBASE_OBLIGATION_TESTS(suite, protocol)                                                    \
    OBASE_OBLIGATIONS(OBASE_OBLIGATION_TEST)                                                       \
    TEST(suite, addresses_are_in_two_slots_without_membarrier) {                                   \
        explore_schedules("two slots, fenced", 4000,                                               \
                          [] { give_between_slots<scheduled, protocol>(true); },                   \
                          {.membarrier = testing::membarrier_mode::missing});                      \
    }                                                                                              \
    TEST(suite, failing_membarrier_moves_nothing) {                                                \
        explore_schedules("unreliable membarrier", 3000,                                           \
                          raw_addresses_last_as_long_as_the_scope<scheduled, protocol>,            \
                          {.membarrier = testing::membarrier_mode::unreliable});                   \
        explore_schedules("missing membarrier", 300,                                               \
                          [] {                                                                     \
                              testing::require(                                                    \
                                  moves_of_a_used_object<scheduled, protocol>(false) == 0,         \
                                  "nothing moved");                                                \
                          },                                                                       \
                          {.membarrier = testing::membarrier_mode::missing});                      \
    }                                                                                              \
    TEST(suite, fenced_scopes_need_no_membarrier) {                                                \
        std::uint64_t moved = 0;                                                                   \
        explore_schedules(                                                                         \
            "fenced scopes", 3000,                                                                 \
            [&moved] { moved += moves_of_a_used_object<scheduled, protocol>(true); },              \
            {.membarrier = testing::membarrier_mode::missing});                                    \
        EXPECT_GT(moved, 0u);                                                                      \
    }                                                                                              \
    TEST(suite, signal_handlers_open_scopes) {                                                     \
        explore_schedules("signal handlers", 3000, signal_handlers_open_scopes<protocol>);         \
    }                                                                                              \
    TEST(suite, containers_are_unmapped_under_the_collector) {                                     \
        explore_threads("unmapped containers",                                                     \
                        containers_are_unmapped_under_the_collector<native, protocol>);            \
    }
