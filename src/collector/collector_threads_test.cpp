// SPDX-License-Identifier: MIT
//
// The collector's whole windows while threads use, replace and free what it moves: each body under the
// deterministic scheduler and on OS threads, over both protocols. What single moves need is tested by
// mobility/obligations_test.hpp; here runs are listed, closed, emptied and given back meanwhile.
//
// Objects are so large that four fill a run of NEW, and what may be resident twice is a run: half of
// the objects leave in the scan, the others when their runs are emptied.
#include "collector/collected_test.hpp"

#include <gtest/gtest.h>

namespace obase::collector_test {
namespace {

constexpr std::size_t object_bytes = 16 * kib, per_run = run_bytes / object_bytes;
constexpr std::size_t objects = 3 * per_run + 1;

template <class E, template <class> class Protocol>
using world = collected<E, Protocol>;

template <class W>
void prepare(W& w) {
    w.plan.least_in_flight = run_bytes;
    w.window();
    for (std::size_t i = 0; i < w.count(); i += 2) w.use(w.main, i);
}

// When all threads have ended: what holds between windows, and that the windows to come do what is left.
template <class E, class W>
void finish(W& w) {
    w.check();
    w.control.stop_at = scripted_control::never;
    w.control.patience = scripted_control::never;
    for (int i = 0; i < 4; ++i) E::require(w.window(), "no reason to stop");
    w.check();
    E::require(w.in_tier(tier_new) == 0, "all have left the first tier");
    E::require(w.heap.counters(tier_new).live_objects == 0, "and are there no more");
    E::require(w.heap.counters(tier_hot).live_objects + w.heap.counters(tier_cold).live_objects ==
                   w.count(),
               "no object was lost or doubled");
}

template <class E, class W>
void spawn_collector(W& w, unsigned windows) {
    E::spawn("collector", [&w, windows] {
        for (unsigned i = 0; i < windows; ++i) w.window();
    });
}

// Each thread has the guides of its own number, mod 2.
template <class W, class Work>
void spawn_users(W& w, Work work) {
    for (std::size_t number = 0; number < 2; ++number)
        w.thread("user", [&w, work, number](auto& user) {
            for (std::size_t i = number; i < w.count(); i += 2) work(user, i);
        });
}

// No write is lost and no stale object read, wherever the object is on its way.
template <class E, template <class> class Protocol>
void users_while_runs_are_emptied() {
    world<E, Protocol> w(objects, object_bytes);
    prepare(w);
    spawn_users(w, [&w](auto& user, std::size_t i) {
        if (i % 3 == 0) w.use(user, i);
    });
    spawn_collector<E>(w, 2);
    E::run();
    finish<E>(w);
}

// O5: owners replace objects, and free the old ones at once, while the collector copies them.
template <class E, template <class> class Protocol>
void owners_replace_while_runs_are_emptied() {
    world<E, Protocol> w(objects, object_bytes);
    prepare(w);
    spawn_users(w, [&w](auto& user, std::size_t i) {
        if (i % 4 >= 2) return;
        auto* const fresh = w.make(i, ++w.version[i]);
        w.heap.free(w.exchange(user, w.guides[i], fresh));
        w.use(user, i);
    });
    spawn_collector<E>(w, 2);
    E::run();
    finish<E>(w);
}

// A stop, at any question, while threads use objects: they go on, and so do later windows.
template <class E, template <class> class Protocol>
void stops_come_at_any_time() {
    world<E, Protocol> w(objects, object_bytes);
    prepare(w);
    w.control.asked = 0;
    w.control.stop_at = 1 + E::choose(24);
    spawn_users(w, [&w](auto& user, std::size_t i) {
        if (i % 3 == 0) w.use(user, i);
    });
    spawn_collector<E>(w, 1);
    E::run();
    finish<E>(w);
}

// The collector gives up on scopes, or does not: what it had armed works on, and is not moved.
template <class E, template <class> class Protocol>
void waits_are_given_up() {
    world<E, Protocol> w(objects, object_bytes);
    prepare(w);
    w.control.patience = 1 + E::choose(3);
    spawn_users(w, [&w](auto& user, std::size_t i) {
        if (i > 3) return;
        const typename world<E, Protocol>::scope in(w, user);
        w.use_in_scope(user, i);
        w.use_in_scope(user, i);
    });
    spawn_collector<E>(w, 2);
    E::run();
    finish<E>(w);
}

// O4: parents and children in runs that are emptied: a slot that has moved with its parent is found
// where it is.
template <class E, template <class> class Protocol>
void parents_and_children_move() {
    using W = world<E, Protocol>;
    constexpr std::size_t parents = 2 * per_run;
    W w(parents, object_bytes);
    std::vector<std::uint64_t> written(parents, 0);
    for (std::size_t i = 0; i < parents; ++i) w.give_nested(w.main, w.peek(i), w.make(1000 + i, 0));
    prepare(w);
    const auto use_child = [&w, &written](auto& user, std::size_t i) {
        const typename W::scope in(w, user);
        w.use_in_scope(user, i);
        auto* const child = w.dereference(user, w.dereference(user, w.guides[i])->nested);
        w.verify(child, 1000 + i, written[i]);
        w.update(child, 1000 + i, ++written[i]);
    };
    spawn_users(w, [use_child](auto& user, std::size_t i) {
        if (i < 4) use_child(user, i);
    });
    spawn_collector<E>(w, 2);
    E::run();
    w.check();
    for (int i = 0; i < 5; ++i) E::require(w.window(), "no reason to stop");
    w.check();
    E::require(w.heap.counters(tier_new).live_objects == 0, "all have left the first tier");
    for (std::size_t i = 0; i < parents; ++i) use_child(w.main, i);
}

// O3: a slot ends between the scan that listed it and the emptying of its object's run, and its memory is
// something else then: the collector leaves it alone, even if it looks like an address.
template <class E, template <class> class Protocol>
void slots_end_while_runs_are_emptied() {
    world<E, Protocol> w(objects, object_bytes);
    prepare(w);
    std::vector<std::uint64_t> raw(objects, 0);
    spawn_users(w, [&](auto& user, std::size_t i) {
        if (i % 3 != 0) return;
        auto* const o = w.end_slot(user, w.guides[i]);
        raw[i] = w.to_address(o);
        w.guides[i].store_relaxed(raw[i]); // a number now, and the object is this thread's
        w.verify(o, i, w.version[i]);
    });
    spawn_collector<E>(w, 2);
    E::run();
    for (int i = 0; i < 2; ++i) w.window();
    w.check();
    for (std::size_t i = 0; i < objects; ++i)
        E::require(raw[i] == 0 || w.guides[i].load_relaxed() == raw[i],
                   "what is no slot any more is not written to");
}

template <class Kind>
class collector_with_threads : public ::testing::Test {
  public:
    static void explore(const char* name, std::uint64_t seeds, void (*in_schedule)(),
                        void (*natively)()) {
        mobility::explore_schedules(name, seeds, in_schedule, {.max_steps = 1'000'000});
        mobility::explore_threads(name, natively);
    }
};
using kinds = ::testing::Types<arming_kind, atc_kind>;
TYPED_TEST_SUITE(collector_with_threads, kinds);

TYPED_TEST(collector_with_threads, users_while_runs_are_emptied) {
    this->explore("users", 60,
                  users_while_runs_are_emptied<scheduled, TypeParam::template protocol>,
                  users_while_runs_are_emptied<on_threads, TypeParam::template protocol>);
}

TYPED_TEST(collector_with_threads, owners_replace_while_runs_are_emptied) {
    this->explore("owners", 60,
                  owners_replace_while_runs_are_emptied<scheduled, TypeParam::template protocol>,
                  owners_replace_while_runs_are_emptied<on_threads, TypeParam::template protocol>);
}

TYPED_TEST(collector_with_threads, stops_come_at_any_time) {
    this->explore("stops", 60, stops_come_at_any_time<scheduled, TypeParam::template protocol>,
                  stops_come_at_any_time<on_threads, TypeParam::template protocol>);
}

TYPED_TEST(collector_with_threads, waits_are_given_up) {
    this->explore("waits", 60, waits_are_given_up<scheduled, TypeParam::template protocol>,
                  waits_are_given_up<on_threads, TypeParam::template protocol>);
}

TYPED_TEST(collector_with_threads, slots_end_while_runs_are_emptied) {
    this->explore("ends", 60,
                  slots_end_while_runs_are_emptied<scheduled, TypeParam::template protocol>,
                  slots_end_while_runs_are_emptied<on_threads, TypeParam::template protocol>);
}

TYPED_TEST(collector_with_threads, parents_and_children_move) {
    this->explore("parents", 60, parents_and_children_move<scheduled, TypeParam::template protocol>,
                  parents_and_children_move<on_threads, TypeParam::template protocol>);
}

} // namespace
} // namespace obase::collector_test
