// SPDX-License-Identifier: MIT
//
// Deferred frees: not before the scopes that were open and the pins, each exactly once, and all in
// the end, in calls of bounded work.
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

constexpr auto no_more = [](retired_object*) {}; // is to be done with a node
constexpr auto always = [] { return true; };

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

// When there is no room for another batch, what is retired stays where it is; each object waits for
// the scopes that were open when it was retired, and all go in the end.
TEST_F(reclaiming, more_takes_than_batches) {
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
    EXPECT_EQ(reclaim.share(self, [](retired_object*) {}).objects, 0u);
    reclaim.fork_parent();
    EXPECT_EQ(pass(), 1u);
}

// What another thread was destroying at a fork is lost in the child, and no longer counted there.
TEST_F(reclaiming, in_the_child_of_a_fork_forgets_what_others_were_destroying) {
    thing a, b, c;
    retire(a);
    retire(b);
    reclaim.reclaim(
        [&](retired_object*) {
            if (other.destroying.load_relaxed() == 0) return;
            retire(c);
            reclaim.fork_prepare();
            reclaim.fork_child(&self); // where `other` does not exist
            EXPECT_EQ(reclaim.pending(), 1u);
        },
        &other, [] { return true; });
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
void retire_next(void* object) noexcept {
    auto* c = static_cast<chained*>(object);
    if (c->next == nullptr) return;
    c->next->node = {nullptr, c->next, retire_next, 10};
    c->test->reclaim.retire(c->test->self, c->next->node);
}
TEST_F(reclaiming, in_destructors_goes_on) {
    std::vector<chained> chain(100);
    for (std::size_t i = 0; i < chain.size(); ++i)
        chain[i] = {{}, this, i + 1 < chain.size() ? &chain[i + 1] : nullptr};
    chain[0].node = {nullptr, &chain[0], chained::end, 10};
    reclaim.retire(self, chain[0].node);
    EXPECT_EQ(pass(), 1u);
    EXPECT_EQ(reclaim.pending(), 0u);
}

// A list whose nodes retire their successors goes in one call.
TEST_F(reclaiming, goes_on_while_destructors_retire) {
    std::vector<chained> chain(100);
    for (std::size_t i = 0; i < chain.size(); ++i)
        chain[i] = {{}, this, i + 1 < chain.size() ? &chain[i + 1] : nullptr};
    chain[0].node = {nullptr, &chain[0], retire_next, 10};
    reclaim.retire(self, chain[0].node);
    EXPECT_EQ(reclaim.reclaim_all(self, no_more, always).objects, 100u);
    EXPECT_EQ(reclaim.pending(), 0u);
}

// A thread's work is in shares: none destroys more than its limit, and a backlog shrinks by three
// objects for each one that is retired meanwhile.
TEST_F(reclaiming, in_shares_is_bounded_and_wins) {
    constexpr unsigned backlog = 40'000;
    std::vector<thing> things(3 * backlog);
    const reclaim_limits limits;
    unsigned next = 0;
    std::uint64_t most = 0;
    const auto retire_one = [&] {
        thing& t = things[next++];
        t.node = {nullptr, &t, [](void* o) noexcept { ++static_cast<thing*>(o)->ended; }, 10};
        if (reclaim.retire(self, t.node))
            most = std::max(most, reclaim.share(self, no_more).objects);
    };
    const auto outer = enter_scope(other, registry.epoch());
    while (next < backlog) retire_one();
    EXPECT_EQ(reclaim.pending(), backlog);
    exit_scope(other, outer);
    while (next < 2 * backlog) retire_one();
    EXPECT_LE(reclaim.pending(), 2 * limits.take.objects);
    EXPECT_LE(most, limits.share.objects);
    EXPECT_GT(most, 0u);
}

// Large objects: a share's limit is in bytes, too.
TEST_F(reclaiming, in_shares_is_bounded_in_bytes) {
    std::vector<thing> things(600);
    std::uint64_t most = 0;
    const auto outer = enter_scope(other, registry.epoch());
    for (std::size_t i = 0; i < things.size(); ++i) {
        if (i == 300) exit_scope(other, outer);
        things[i].node = {nullptr, &things[i],
                          [](void* o) noexcept { ++static_cast<thing*>(o)->ended; }, 1 << 20};
        if (reclaim.retire(self, things[i].node))
            most = std::max(most, reclaim.share(self, no_more).objects);
    }
    EXPECT_EQ(most, 8u);
    EXPECT_LE(reclaim.pending(), 16u);
}

// Short threads, each of which retires less than a thread may keep, leave nothing behind them.
TEST_F(reclaiming, by_threads_that_end) {
    constexpr unsigned each = 1000;
    for (const unsigned per : {1u, 20u, each}) {
        std::vector<thing> things(50 * per);
        std::uint64_t most = 0;
        for (unsigned t = 0; t < 50; ++t) {
            for (unsigned i = 0; i < per; ++i) {
                thing& one = things[t * per + i];
                one.node = {nullptr, &one,
                            [](void* o) noexcept { ++static_cast<thing*>(o)->ended; }, 10};
                if (reclaim.retire(self, one.node)) reclaim.share(self, no_more);
            }
            most = std::max(most, reclaim.leave(self, no_more).objects);
        }
        EXPECT_LE(reclaim.pending(), each) << per;
        EXPECT_LE(most, reclaim_limits{}.share.objects);
        pass();
    }
}

// The more threads, the less each of them keeps to itself.
TEST(reclaimer, many_threads_together_keep_a_bounded_number) {
    scope_registry<native> registry;
    reclaimer<native> reclaim(registry);
    std::vector<std::unique_ptr<thread_record<native>>> records(1000);
    for (auto& r : records) {
        r = std::make_unique<thread_record<native>>();
        registry.add(*r, 1);
    }
    std::vector<thing> things(records.size() * 900);
    const reclaim_limits limits;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < things.size(); ++i) {
        auto& r = *records[i % records.size()];
        things[i].node = {nullptr, &things[i], [](void*) noexcept {}, 10};
        if (reclaim.retire(r, things[i].node)) reclaim.share(r, [](retired_object*) {});
        most = std::max(most, reclaim.pending());
    }
    EXPECT_LE(most, limits.untaken.objects + 2 * limits.step.objects * records.size());
    reclaim.reclaim([](retired_object*) {});
}

TEST_F(reclaiming, shares_go_by_the_pins_as_of_the_scopes_while_memory_is_short) {
    if (!testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    // More than a share, so that the pinned one is ready in a second one.
    std::vector<thing> things(2 * reclaim_limits{}.share.objects);
    for (thing& t : things) retire(t, other);
    // Of the record that is looked at last.
    auto* pin = claim_pin<native>(self, reinterpret_cast<std::uint64_t>(&things.front()),
                                  [] { return static_cast<pin_chunk<native>*>(nullptr); });
    EXPECT_EQ(reclaim.leave(other, no_more).objects, reclaim_limits{}.share.objects);
    std::vector<pin_chunk<native>*> chunks; // so that the next list of pins needs more room
    for (unsigned i = 0; i < 200; ++i)
        claim_pin<native>(other, 8 + i, [&] {
            chunks.push_back(new pin_chunk<native>);
            return chunks.back();
        });
    thing late;
    retire(late, other);
    {
        const testing::heap_shortage none;
        reclaim.reclaim(no_more, &self, always); // tries to make `late` ready
    }
    EXPECT_EQ(things.front().ended, 0u) << "pinned";
    EXPECT_EQ(late.ended, 0u);
    release_pin(*pin);
    pass();
    EXPECT_EQ(reclaim.pending(), 0u);
    for (auto* chunk : chunks) delete chunk;
}

drain_end drained(reclaimer<native>& reclaim, thread_record<native>& self, unsigned patience = 3) {
    return reclaim.drain(self, no_more, [&](drain_end) { return patience-- != 0; });
}

TEST_F(reclaiming, drains_everything_or_says_why_not) {
    thing a, b;
    retire(a);
    retire(b, other);
    EXPECT_EQ(drained(reclaim, self), drain_end::done);
    EXPECT_EQ(a.ended + b.ended, 2u);
    EXPECT_EQ(drained(reclaim, self), drain_end::done) << "with nothing to do";

    thing c;
    retire(c, other);
    const auto own = enter_scope(self, registry.epoch());
    EXPECT_EQ(drained(reclaim, self), drain_end::in_scope);
    exit_scope(self, own);
    const auto outer = enter_scope(other, registry.epoch());
    EXPECT_EQ(drained(reclaim, self), drain_end::scope_open);
    EXPECT_EQ(c.ended, 0u);
    EXPECT_EQ(reclaim.drain(self, no_more,
                            [&](drain_end why) {
                                EXPECT_EQ(why, drain_end::scope_open);
                                exit_scope(other, outer);
                                return true;
                            }),
              drain_end::done);
    EXPECT_EQ(c.ended, 1u);

    thing d, e;
    auto* pin = claim_pin<native>(other, reinterpret_cast<std::uint64_t>(&d),
                                  [] { return static_cast<pin_chunk<native>*>(nullptr); });
    retire(d);
    retire(e);
    EXPECT_EQ(drained(reclaim, self), drain_end::pinned);
    EXPECT_EQ(d.ended, 0u);
    EXPECT_EQ(e.ended, 1u);
    release_pin(*pin);
    EXPECT_EQ(drained(reclaim, self), drain_end::done);
    EXPECT_EQ(d.ended, 1u);

    thing f;
    retire(f);
    os::membarrier_fail_for_tests(true);
    EXPECT_EQ(drained(reclaim, self), drain_end::no_membarrier);
    EXPECT_EQ(reclaim.drain(self, no_more,
                            [&](drain_end) {
                                os::membarrier_fail_for_tests(false);
                                return true;
                            }),
              drain_end::done)
        << "membarrier is asked again";
    EXPECT_EQ(f.ended, 1u);
}

TEST_F(reclaiming, drains_when_there_is_no_room_for_a_batch) {
    thing early[20], last;
    const auto outer = enter_scope(other, registry.epoch());
    for (thing& t : early) {
        retire(t);
        pass();
    }
    retire(last);
    EXPECT_EQ(drained(reclaim, self), drain_end::scope_open);
    exit_scope(other, outer);
    EXPECT_EQ(drained(reclaim, self), drain_end::done);
    EXPECT_EQ(last.ended, 1u);
    EXPECT_EQ(reclaim.pending(), 0u);
}

TEST_F(reclaiming, drains_what_destructors_retire) {
    std::vector<chained> chain(100);
    for (std::size_t i = 0; i < chain.size(); ++i)
        chain[i] = {{}, this, i + 1 < chain.size() ? &chain[i + 1] : nullptr};
    chain[0].node = {nullptr, &chain[0], retire_next, 10};
    reclaim.retire(self, chain[0].node);
    EXPECT_EQ(drained(reclaim, self, 1000), drain_end::done);
    EXPECT_EQ(reclaim.pending(), 0u);
    // Without end:
    static chained again;
    again = {{}, this, &again};
    again.node = {nullptr, &again, retire_next, 10};
    reclaim.retire(self, again.node);
    EXPECT_EQ(drained(reclaim, self), drain_end::retiring);
    again.next = nullptr;
    EXPECT_EQ(drained(reclaim, self), drain_end::done);
}

TEST_F(reclaiming, does_not_drain_in_a_destructor) {
    static reclaiming* test;
    static drain_end answer;
    test = this;
    thing a;
    a.node = {nullptr, &a, [](void*) noexcept { answer = drained(test->reclaim, test->self); }, 10};
    reclaim.retire(self, a.node);
    EXPECT_EQ(reclaim.reclaim_all(self, no_more, always).objects, 1u);
    EXPECT_EQ(answer, drain_end::in_destructor);
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
            switch (*rc::gen::inRange(0, 7)) {
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
            case 4:
                if (open[t] == 0) reclaim.leave(records[t], [](retired_object*) {});
                break;
            case 5:
                if (open[t] == 0)
                    drained(reclaim, records[t], static_cast<unsigned>(*rc::gen::inRange(0, 2)));
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

// R9: a pin that is claimed in a scope is seen by a thread that has waited for that scope, since
// the pins are read after the scopes.
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

// So that two objects already make a share and a take.
constexpr reclaim_limits small_limits{{1, 1 << 20}, {1, 1 << 20}, {1, 1 << 20}, {2, 1 << 20}};

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
    reclaimer<P> reclaim(registry, small_limits);
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
    const auto share = [&](thread_record<P>& r) {
        reclaim.share(r, [&](retired_object* node) {
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
                bool due = false;
                const auto outer = enter_scope(r, registry.epoch());
                item* found = current.load_acquire();
                threads::require(found->value.load_relaxed() == 1, "alive in the scope");
                if (t != 0) {
                    item* old = current.exchange_acq_rel(heap.template create<item>("item"));
                    made.fetch_add_relaxed(1);
                    due = reclaim.retire(
                        r, *new retired_object{nullptr, old, [](void*) noexcept {}, 8});
                }
                threads::require(found->value.load_relaxed() == 1, "alive to its end");
                exit_scope(r, outer);
                if (t == 0) pass();
                if (due) share(r);
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

// R12, two takes that overlap: the epoch of the first says nothing of the second one's lists. The
// threads wait for each other so that most schedules come near; membarrier may fail, so the second
// take may be left without an epoch of its own.
void takes_may_overlap() {
    using P = testing::deterministic_platform;
    using threads = testing::threads_for<P>;
    struct item {
        item() : value(1) {}
        P::atomic<std::uint64_t> value;
    };
    scope_registry<P> registry;
    thread_record<P> reader, writer, first;
    for (auto* r : {&reader, &writer, &first}) registry.add(*r, 1);
    reclaimer<P> reclaim(registry);
    threads::heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    P::atomic<item*> current(heap.create<item>("item"));
    P::atomic<bool> found_it(false), first_done(false);
    retired_object nodes[2] = {{nullptr, heap.create<item>("item"), [](void*) noexcept {}, 8}, {}};
    reclaim.retire(first, nodes[0]);
    const auto pass = [&] {
        reclaim.reclaim([&](retired_object* node) {
            static_cast<item*>(node->object)->value.store_relaxed(0);
            heap.destroy(static_cast<item*>(node->object));
        });
    };
    threads::spawn("first", [&] {
        pass();
        first_done.store_release(true);
    });
    threads::spawn("reader", [&] {
        while (registry.epoch().load_acquire() == 1) P::pause(); // the first take has its epoch
        const auto outer = enter_scope(reader, registry.epoch());
        item* found = current.load_acquire();
        found_it.store_release(true);
        while (!first_done.load_acquire()) P::pause();
        threads::require(found->value.load_relaxed() == 1, "alive in the scope");
        exit_scope(reader, outer);
    });
    threads::spawn("writer", [&] {
        while (!found_it.load_acquire()) P::pause();
        nodes[1] = {nullptr, current.exchange_acq_rel(nullptr), [](void*) noexcept {}, 8};
        reclaim.retire(writer, nodes[1]);
        pass();
    });
    threads::run();
    while (reclaim.pending() != 0) pass();
}
TEST(reclaimer, takes_may_overlap) {
    testing::exploration e;
    e.membarrier = testing::membarrier_mode::unreliable;
    explore_schedules("overlapping takes", 4000, takes_may_overlap, e);
}

// A library is unloaded after drain(): no destructor of what was retired before runs from then on,
// also none that another thread had begun, nor of what such destructors have retired.
template <class P>
void nothing_runs_after_a_drain() {
    using threads = testing::threads_for<P>;
    struct library {
        typename P::template atomic<std::uint32_t> loaded{1};
        typename P::template atomic<std::uint32_t> ended{0};
        reclaimer<P>* reclaim = nullptr;
        void* records = nullptr;
    };
    struct node {
        retired_object retired;
        library* owner = nullptr;
        node* child = nullptr;
        thread_record<P>* by = nullptr; // the thread that destroys it
    };
    static thread_local thread_record<P>* native_record;
    scope_registry<P> registry;
    thread_record<P> records[3];
    for (auto& r : records) registry.add(r, 1);
    reclaimer<P> reclaim(registry, small_limits);
    library code;
    code.reclaim = &reclaim;
    code.records = records;
    node nodes[4];
    constexpr auto end_node = [](void* object) noexcept {
        auto* n = static_cast<node*>(object);
        threads::require(n->owner->loaded.load_acquire() == 1, "the code is still there");
        if (n->child != nullptr) {
            auto* all = static_cast<thread_record<P>*>(n->owner->records);
            // The record of the thread that runs this: it is the one that reclaims, or one of them.
            thread_record<P>* self =
                threads::deterministic ? &all[threads::thread_index() - 1] : native_record;
            n->owner->reclaim->retire(*self, n->child->retired);
        }
        n->owner->ended.fetch_add_relaxed(1);
        threads::require(n->owner->loaded.load_acquire() == 1, "and stays to the end");
    };
    for (unsigned i = 0; i < 4; ++i) {
        nodes[i].owner = &code;
        nodes[i].retired = {nullptr, &nodes[i], end_node, 8};
    }
    nodes[0].child = &nodes[2];
    nodes[1].child = &nodes[3];
    reclaim.retire(records[0], nodes[0].retired);
    reclaim.retire(records[1], nodes[1].retired);
    const auto no_node = [](retired_object*) {};
    threads::spawn("shares", [&] {
        native_record = &records[0];
        reclaim.share(records[0], no_node);
    });
    threads::spawn("collector", [&] {
        native_record = &records[1];
        reclaim.reclaim_all(records[1], no_node, [] { return true; });
    });
    threads::spawn("drains", [&] {
        native_record = &records[2];
        const auto end = reclaim.drain(records[2], no_node, [](drain_end) {
            P::yield();
            return true;
        });
        threads::require(end == drain_end::done, "nothing is in the way for ever");
        threads::require(code.ended.load_relaxed() == 4, "all are destroyed");
        code.loaded.store_release(0);
    });
    threads::run();
    threads::require(reclaim.pending() == 0, "nothing is left");
}
TEST(reclaimer, nothing_runs_after_a_drain_scheduled) {
    explore_schedules("drain", 4000, nothing_runs_after_a_drain<testing::deterministic_platform>);
}
TEST(reclaimer, nothing_runs_after_a_drain_on_threads) {
    for (int i = 0; i < 50; ++i) explore_threads("drain", nothing_runs_after_a_drain<native>);
}

} // namespace
} // namespace obase::mobility
