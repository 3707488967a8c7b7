// SPDX-License-Identifier: MIT
//
// Deferred frees: not before the scopes that were open and the pins, each exactly once, and all in
// the end.
#include "mobility/world_test.hpp"
#include "testing/heap_shortage.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace obase::mobility {
namespace {

using native = os::native_platform;

// Objects that know how often they were destroyed.
struct thing {
    retired_object node;
    unsigned ended = 0;
};

struct reclaiming : ::testing::Test {
    reclaiming() {
        registry.add(self, 1);
        registry.add(other, 2);
    }
    void retire(thing& t, thread_record<native>& by) {
        t.node = {nullptr, &t, [](void* o) noexcept { ++static_cast<thing*>(o)->ended; }, 10};
        reclaim.retire(by, t.node);
    }
    void retire(thing& t) { retire(t, self); }
    // Returns how many were destroyed.
    std::uint64_t pass() {
        std::uint64_t nodes = 0;
        const auto done = reclaim.reclaim([&](retired_object*) { ++nodes; });
        EXPECT_EQ(done.objects, nodes);
        EXPECT_EQ(done.bytes, 10 * nodes);
        return done.objects;
    }

    scope_registry<native> registry;
    thread_record<native> self, other;
    reclaimer<native> reclaim{registry};
};

TEST_F(reclaiming, without_scopes_happens_at_once) {
    thing a, b;
    retire(a);
    retire(b, other);
    EXPECT_EQ(reclaim.pending(), 2u);
    EXPECT_EQ(pass(), 2u);
    EXPECT_EQ(a.ended, 1u);
    EXPECT_EQ(b.ended, 1u);
    EXPECT_EQ(reclaim.pending(), 0u);
    EXPECT_EQ(pass(), 0u);
}

TEST_F(reclaiming, waits_for_scopes_that_were_open) {
    thing a;
    const auto outer = enter_scope(other, registry.epoch());
    retire(a);
    EXPECT_EQ(pass(), 0u);
    EXPECT_EQ(pass(), 0u);
    // A scope that opens now cannot find it, and does not delay it.
    const auto later = enter_scope(self, registry.epoch());
    exit_scope(other, outer);
    EXPECT_EQ(pass(), 1u);
    EXPECT_EQ(a.ended, 1u);
    exit_scope(self, later);
}

TEST_F(reclaiming, own_scope_counts) {
    thing a;
    const auto outer = enter_scope(self, registry.epoch());
    retire(a);
    EXPECT_EQ(pass(), 0u);
    exit_scope(self, outer);
    EXPECT_EQ(pass(), 1u);
}

// R12: the epoch is that of the moment at which the list is taken.
TEST_F(reclaiming, scopes_between_retire_and_the_next_pass_count) {
    thing a;
    retire(a);
    registry.advance();
    const auto outer = enter_scope(other, registry.epoch());
    EXPECT_EQ(pass(), 0u) << "the scope may have found it before it was pushed";
    exit_scope(other, outer);
    EXPECT_EQ(pass(), 1u);
}

// More batches than there is room for are merged; what came last decides how long they wait.
TEST_F(reclaiming, merged_batches_wait_for_the_youngest) {
    thing early[20], last;
    const auto outer = enter_scope(other, registry.epoch());
    for (thing& t : early) {
        retire(t);
        EXPECT_EQ(pass(), 0u);
    }
    const auto younger = enter_scope(self, registry.epoch());
    retire(last);
    EXPECT_EQ(pass(), 0u);
    exit_scope(other, outer);
    pass();
    EXPECT_EQ(last.ended, 0u) << "the younger scope may have found it";
    exit_scope(self, younger);
    pass();
    EXPECT_EQ(last.ended, 1u);
    for (const thing& t : early) EXPECT_EQ(t.ended, 1u);
    EXPECT_EQ(reclaim.pending(), 0u);
}

TEST_F(reclaiming, waits_for_pins) {
    thing a, b;
    auto* pin = claim_pin<native>(other, reinterpret_cast<std::uint64_t>(&a),
                                  [] { return static_cast<pin_chunk<native>*>(nullptr); });
    retire(a);
    retire(b);
    EXPECT_EQ(pass(), 1u);
    EXPECT_EQ(b.ended, 1u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(pass(), 0u);
    release_pin(*pin);
    EXPECT_EQ(pass(), 1u);
    EXPECT_EQ(a.ended, 1u);
}

TEST_F(reclaiming, of_an_ended_thread_goes_on) {
    thing a;
    retire(a, other);
    registry.release(other);
    EXPECT_EQ(pass(), 1u);
}

TEST_F(reclaiming, waits_while_membarrier_fails) {
    thing a, b;
    os::membarrier_fail_for_tests(true);
    retire(a);
    EXPECT_EQ(pass(), 0u);
    retire(b);
    EXPECT_EQ(pass(), 0u);
    os::membarrier_fail_for_tests(false);
    EXPECT_EQ(pass(), 2u);
}

TEST_F(reclaiming, waits_while_there_is_no_memory_for_the_list_of_pins) {
    if (!testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    thing a, b;
    claim_pin<native>(other, reinterpret_cast<std::uint64_t>(&b),
                      [] { return static_cast<pin_chunk<native>*>(nullptr); });
    retire(a);
    {
        const testing::heap_shortage none;
        EXPECT_EQ(pass(), 0u);
    }
    EXPECT_EQ(pass(), 1u);
}

TEST_F(reclaiming, does_not_happen_during_a_fork) {
    thing a;
    retire(a);
    reclaim.fork_prepare();
    EXPECT_EQ(pass(), 0u);
    reclaim.fork_done();
    EXPECT_EQ(pass(), 1u);
}

// A destructor may retire what the object owned, and reclaim.
struct chained {
    retired_object node;
    reclaiming* test;
    chained* next;
    static void end(void* object) noexcept {
        auto* c = static_cast<chained*>(object);
        if (c->next == nullptr) return;
        c->next->node = {nullptr, c->next, end, 10};
        c->test->reclaim.retire(c->test->self, c->next->node);
        c->test->pass();
    }
};
TEST_F(reclaiming, in_destructors_goes_on) {
    std::vector<chained> chain(100);
    for (std::size_t i = 0; i < chain.size(); ++i)
        chain[i] = {{}, this, i + 1 < chain.size() ? &chain[i + 1] : nullptr};
    chain[0].node = {nullptr, &chain[0], chained::end, 10};
    reclaim.retire(self, chain[0].node);
    EXPECT_EQ(pass(), 1u);
    EXPECT_EQ(reclaim.pending(), 0u);
}

// Any sequence of scopes, pins, retirements and passes, against a model that remembers which scopes
// were open at each retirement.
TEST(reclaimer, keeps_what_scopes_and_pins_may_hold_and_nothing_for_ever) {
    EXPECT_TRUE(rc::check("reclaimer", [] {
        constexpr unsigned threads = 3;
        scope_registry<native> registry;
        thread_record<native> records[threads];
        for (auto& r : records) registry.add(r, 1);
        reclaimer<native> reclaim(registry);

        struct object {
            thing t;
            bool retired = false;
            std::set<std::uint64_t> scopes; // open at a moment when it was still retired, untaken
            word::native_atomic<std::uint64_t>* pin = nullptr;
        };
        std::vector<std::unique_ptr<object>> objects;
        std::uint64_t open[threads] = {}; // number of the scope, 0 if none
        std::uint64_t scopes = 0;
        const auto check = [&] {
            std::uint64_t pending = 0;
            for (const auto& o : objects) {
                RC_ASSERT(o->t.ended <= 1u);
                pending += o->retired && o->t.ended == 0;
                if (o->t.ended == 0) continue;
                RC_ASSERT(o->retired);
                RC_ASSERT(o->pin == nullptr);
                for (const std::uint64_t number : open) RC_ASSERT(o->scopes.count(number) == 0u);
            }
            RC_ASSERT(reclaim.pending() == pending);
        };
        const auto steps = *rc::gen::inRange(1, 150);
        for (int i = 0; i < steps; ++i) {
            const auto t = *rc::gen::inRange(0u, threads);
            switch (*rc::gen::inRange(0, 6)) {
            case 0: // opens or ends a scope
                if (open[t] == 0) {
                    enter_scope(records[t], registry.epoch());
                    open[t] = ++scopes;
                } else {
                    exit_scope(records[t], 0);
                    open[t] = 0;
                }
                break;
            case 1:
            case 2: { // a new object, pinned by a scope or not, retired
                objects.push_back(std::make_unique<object>());
                object& o = *objects.back();
                if (open[t] != 0 && *rc::gen::inRange(0, 4) == 0)
                    o.pin =
                        claim_pin<native>(records[t], reinterpret_cast<std::uint64_t>(&o.t),
                                          [] { return static_cast<pin_chunk<native>*>(nullptr); });
                o.retired = true;
                for (const std::uint64_t number : open)
                    if (number != 0) o.scopes.insert(number);
                o.t.node = {nullptr, &o.t,
                            [](void* p) noexcept { ++static_cast<thing*>(p)->ended; }, 1};
                reclaim.retire(records[t], o.t.node);
                break;
            }
            case 3: // releases a pin
                for (const auto& o : objects)
                    if (o->pin != nullptr) {
                        release_pin(*std::exchange(o->pin, nullptr));
                        break;
                    }
                break;
            default:
                reclaim.reclaim([](retired_object*) {});
            }
            check();
        }
        for (unsigned t = 0; t < threads; ++t)
            if (open[t] != 0) {
                exit_scope(records[t], 0);
                open[t] = 0;
            }
        for (const auto& o : objects)
            if (o->pin != nullptr) release_pin(*std::exchange(o->pin, nullptr));
        reclaim.reclaim([](retired_object*) {});
        reclaim.reclaim([](retired_object*) {});
        check();
        RC_ASSERT(reclaim.pending() == 0u);
    }));
}

// R9: a pin that is claimed in a scope is seen by whoever has waited for that scope, since the pins
// are read after the scopes.
template <class P>
void pins_of_ended_scopes_are_seen() {
    using threads = testing::threads_for<P>;
    struct item {
        item() : value(1) {}
        typename P::template atomic<std::uint64_t> value;
    };
    const unsigned rounds = threads::deterministic ? 1 : 3000;
    scope_registry<P> registry;
    thread_record<P> reader, writer;
    registry.add(reader, 1);
    registry.add(writer, 2);
    reclaimer<P> reclaim(registry);
    typename threads::heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    typename P::template atomic<item*> current(heap.template create<item>("item"));
    typename P::template atomic<bool> done(false);
    std::vector<retired_object> nodes(rounds); // the writer's, freed at the end
    const auto pass = [&] {
        reclaim.reclaim([&](retired_object* node) {
            static_cast<item*>(node->object)->value.store_relaxed(0);
            heap.destroy(static_cast<item*>(node->object));
        });
    };
    threads::spawn("reader", [&] {
        for (unsigned i = 0; i < rounds; ++i) {
            const auto outer = enter_scope(reader, registry.epoch());
            item* found = current.load_acquire();
            auto* pin = claim_pin<P>(reader, reinterpret_cast<std::uint64_t>(found),
                                     [] { return static_cast<pin_chunk<P>*>(nullptr); });
            exit_scope(reader, outer);
            threads::require(found->value.load_relaxed() == 1, "alive under the pin");
            threads::require(found->value.load_relaxed() == 1, "alive under the pin");
            release_pin(*pin);
        }
    });
    threads::spawn("writer", [&] {
        for (unsigned i = 0; i < rounds; ++i) {
            item* old = current.exchange_acq_rel(heap.template create<item>("item"));
            nodes[i] = {nullptr, old, [](void*) noexcept {}, 8};
            reclaim.retire(writer, nodes[i]);
        }
        done.store_release(true);
    });
    threads::spawn("reclaimer", [&] {
        for (unsigned i = 0; threads::deterministic ? i < 2 : !done.load_acquire(); ++i) pass();
    });
    threads::run();
    pass();
    pass();
    threads::require(reclaim.pending() == 0, "all are freed in the end");
    heap.destroy(current.load_relaxed());
}
TEST(reclaimer, pins_of_ended_scopes_are_seen_scheduled) {
    explore_schedules("pins of ended scopes", 4000,
                      pins_of_ended_scopes_are_seen<testing::deterministic_platform>);
}
TEST(reclaimer, pins_of_ended_scopes_are_seen_on_threads) {
    explore_threads("pins of ended scopes", pins_of_ended_scopes_are_seen<native>);
}

// Readers, writers that retire what they replace, and reclaimers everywhere, without a mover.
template <class P>
void replaced_things_outlive_their_readers() {
    using threads = testing::threads_for<P>;
    struct item {
        item() : value(1) {}
        typename P::template atomic<std::uint64_t> value;
    };
    scope_registry<P> registry;
    thread_record<P> records[3];
    for (auto& r : records) registry.add(r, 1);
    reclaimer<P> reclaim(registry);
    typename threads::heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    typename P::template atomic<item*> current(heap.template create<item>("item"));
    typename P::template atomic<std::uint64_t> made(0), freed(0);
    const auto pass = [&] {
        reclaim.reclaim([&](retired_object* node) {
            static_cast<item*>(node->object)->value.store_relaxed(0);
            heap.destroy(static_cast<item*>(node->object));
            delete node;
            freed.fetch_add_relaxed(1);
        });
    };
    const unsigned rounds = threads::deterministic ? 2 : 3000;
    for (unsigned t = 0; t < 3; ++t)
        threads::spawn([&, t] {
            for (unsigned i = 0; i < rounds; ++i) {
                auto& r = records[t];
                const auto outer = enter_scope(r, registry.epoch());
                item* found = current.load_acquire();
                threads::require(found->value.load_relaxed() == 1, "alive in the scope");
                if (t != 0) {
                    item* old = current.exchange_acq_rel(heap.template create<item>("item"));
                    made.fetch_add_relaxed(1);
                    reclaim.retire(r, *new retired_object{nullptr, old, [](void*) noexcept {}, 8});
                }
                threads::require(found->value.load_relaxed() == 1, "alive to its end");
                exit_scope(r, outer);
                if (t != 1) pass();
            }
        });
    threads::run();
    pass();
    pass();
    threads::require(freed.load_relaxed() == made.load_relaxed(), "each was freed once");
    heap.destroy(current.load_relaxed());
}
TEST(reclaimer, replaced_things_outlive_their_readers_scheduled) {
    explore_schedules("replaced", 2000,
                      replaced_things_outlive_their_readers<testing::deterministic_platform>);
}
TEST(reclaimer, replaced_things_outlive_their_readers_on_threads) {
    explore_threads("replaced", replaced_things_outlive_their_readers<native>);
}

} // namespace
} // namespace obase::mobility
