// SPDX-License-Identifier: MIT
//
// What one window of the collector does, what it leaves when it ends early, and what it asks its
// thread meanwhile. No runtime and one thread; collector_threads_test has the other threads.
#include "collector/collected_test.hpp"

#include "backend/hints.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"

#include <sys/mman.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OBASE_TEST_KEEP_NEW
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OBASE_TEST_KEEP_NEW
#endif
#endif

namespace {
// Allocations until one fails; negative: none does. `fails_on`: all after it fail, too.
long allocations_left = -1;
bool fails_on = false;
bool failed = false;

[[maybe_unused]] bool allocation_fails() {
    if (allocations_left < 0) return false;
    if (allocations_left > 0) {
        --allocations_left;
        return false;
    }
    failed = true;
    if (!fails_on) allocations_left = -1;
    return true;
}
} // namespace

#if !defined(OBASE_TEST_KEEP_NEW)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* p = allocation_fails() ? nullptr : std::malloc(bytes);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace obase::collector_test {
namespace {

template <class Kind>
class collector_of : public ::testing::Test {
  public:
    using world = collected<on_threads, Kind::template protocol>;

    // Failures of the world's own checks.
    void TearDown() override {
        const auto r = on_threads::explore({.name = "one thread", .native_rounds = 1}, [] {});
        EXPECT_TRUE(r.ok) << r.report;
    }
    static void use_even(world& w) {
        for (std::size_t i = 0; i < w.count(); i += 2) w.use(w.main, i);
    }
    // Three full runs and a part of one; the even half has been used, all have been seen once.
    static void load(world& w) {
        EXPECT_TRUE(w.window());
        EXPECT_EQ(w.moved(), 0u) << "no window of theirs has ended";
        use_even(w);
    }
    // All objects are moved to COLD, and stay there until they are used.
    static void all_in_cold(world& w) {
        w.policy.least_live = 0.9;
        w.policy.cold_leaves = false;
        for (int i = 0; i < 100 && w.in_tier(tier_cold) != w.count(); ++i) EXPECT_TRUE(w.window());
        ASSERT_EQ(w.in_tier(tier_cold), w.count());
        EXPECT_TRUE(w.window());
    }
    // All objects are moved to HOT, and will stay there.
    static std::uint64_t runs_when_all_are_hot(world& w) {
        EXPECT_TRUE(w.window());
        for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
        EXPECT_TRUE(w.window());
        EXPECT_EQ(w.in_tier(tier_hot), w.count());
        w.policy.cold_after = 100;
        return w.heap.counters(tier_hot).runs;
    }
    static std::size_t closed_runs(world& w) {
        std::size_t closed = 0;
        for (std::size_t run = 0; run < w.heap.runs_of(tier_new); ++run)
            closed += w.heap.run_closed(tier_new, run);
        return closed;
    }
    static constexpr std::size_t objects = 3 * 64 + 20;
};
using kinds = ::testing::Types<arming_kind, atc_kind>;
TYPED_TEST_SUITE(collector_of, kinds);

// Touched objects go to HOT, idle ones to COLD, with their contents, in the window in which that is
// known; the policy hears what lives where, telemetry which moves were made.
TYPED_TEST(collector_of, touched_goes_to_hot_and_idle_to_cold) {
    typename TestFixture::world w(this->objects);
    this->load(w);
    EXPECT_TRUE(w.window());
    w.check();
    for (std::size_t i = 0; i < w.count(); ++i)
        EXPECT_EQ(w.tier_of(i), i % 2 == 0 ? tier_hot : tier_cold) << i;
    EXPECT_EQ(w.moved(), w.count());
    EXPECT_EQ(w.gc.moved_bytes()[tier_new][tier_hot], w.count() / 2 * kib);
    EXPECT_EQ(w.gc.moved_bytes()[tier_new][tier_cold], w.count() / 2 * kib);
    EXPECT_EQ(w.recorder.live.scanned_guides.get(), 2 * w.count());
    EXPECT_GE(w.policy.beginning.live_bytes[tier_new], w.count() * kib);
    EXPECT_TRUE(w.policy.beginning.moves);
    EXPECT_GE(w.view.tiers[tier_cold].filled.bytes(), w.count() / 2 * kib);
    // One window later nothing has changed: nothing moves.
    this->use_even(w);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.moved(), w.count());
    EXPECT_EQ(w.gc.moved_bytes()[tier_new][tier_hot], 0u);
    EXPECT_EQ(w.policy.beginning.live_bytes[tier_hot], w.count() / 2 * kib);
}

// A window that only observes moves nothing, and says what it would have moved.
TYPED_TEST(collector_of, observing_moves_nothing) {
    typename TestFixture::world w(this->objects);
    w.plan.move = false;
    this->load(w);
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_EQ(w.moved(), 0u);
    EXPECT_EQ(w.in_tier(tier_new), w.count());
    EXPECT_EQ(w.recorder.live.would_move_objects.get(), w.count());
    EXPECT_EQ(w.recorder.live.would_move_bytes.get(), w.count() * kib);
    EXPECT_FALSE(w.policy.beginning.moves);
    EXPECT_EQ(w.control.waits, 0u) << "nothing to wait for";
}

// Wherever a window is stopped: no run stays closed, no candidate survives, ATC is off, the heap is
// valid and every object whole; and the windows after it do what is left.
TYPED_TEST(collector_of, may_be_stopped_at_every_question) {
    std::uint64_t stops = 0, after_a_move = 0, before_the_end = 0;
    for (std::uint64_t n = 1;; ++n) {
        typename TestFixture::world w(this->objects);
        this->load(w);
        w.control.asked = 0;
        w.control.stop_at = n;
        const bool complete = w.window();
        const bool stopped = w.control.asked >= n;
        w.check();
        w.control.stop_at = scripted_control::never;
        if (!stopped) {
            EXPECT_TRUE(complete);
            break;
        }
        ++stops;
        after_a_move += w.moved() != 0;
        before_the_end += w.moved() != 0 && w.moved() < w.count();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
        w.check();
        ASSERT_EQ(w.in_tier(tier_new), 0u) << "stopped at question " << n;
        EXPECT_EQ(w.heap.counters(tier_new).live_objects, 0u) << "no object is there twice";
    }
    EXPECT_GE(stops, 20u);
    EXPECT_GE(before_the_end, 5u) << "the test stops amid moves, too";
}

// The same where memory for a list is missing, once or from then on.
TYPED_TEST(collector_of, may_lack_memory_for_every_list) {
#if defined(OBASE_TEST_KEEP_NEW)
    GTEST_SKIP() << "operator new is the sanitizer's";
#endif
    for (const bool on : {false, true}) {
        unsigned cut = 0;
        for (long n = 0;; ++n) {
            typename TestFixture::world w(this->objects);
            this->load(w);
            failed = false;
            fails_on = on;
            allocations_left = n;
            const bool complete = w.window();
            allocations_left = -1;
            w.check();
            if (!failed) {
                EXPECT_TRUE(complete);
                break;
            }
            cut += !complete;
            for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
            w.check();
            ASSERT_EQ(w.in_tier(tier_new), 0u) << "without allocation " << n;
        }
        EXPECT_GE(cut, 1u) << "some of them end the window";
    }
}

// The same from the moment on at which runs are closed, with a thread that uses some of their objects: those
// are listed, to be tried again.
TYPED_TEST(collector_of, may_lack_memory_while_runs_are_closed) {
#if defined(OBASE_TEST_KEEP_NEW)
    GTEST_SKIP() << "operator new is the sanitizer's";
#endif
    unsigned cut = 0;
    for (long n = 0;; ++n) {
        typename TestFixture::world w(this->objects);
        this->load(w);
        failed = false;
        fails_on = false;
        long left = n;
        bool begun = false;
        w.control.at_checkpoint = [&] {
            if (this->closed_runs(w) == 0 || failed) return;
            if (begun) left = allocations_left;
            begun = true;
            allocations_left = -1; // the thread has memory
            for (std::size_t i = 0; i < w.count(); i += 8)
                if (w.tier_of(i) == tier_new) w.use(w.main, i);
            allocations_left = left;
        };
        const bool complete = w.window();
        allocations_left = -1;
        w.control.at_checkpoint = {};
        w.check();
        ASSERT_TRUE(begun);
        if (!failed) break;
        cut += !complete;
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
        w.check();
        ASSERT_EQ(w.in_tier(tier_new), 0u) << "without allocation " << n;
    }
    // Under ATC a use that has ended stops no move, so none is listed.
    if (std::is_same_v<TypeParam, arming_kind>) {
        EXPECT_GE(cut, 1u) << "some of them end the window";
    }
}

// While a scope lasts that began before the wait, and the collector's thread gives up: nothing moves,
// the words stay usable, and the next window does it.
TYPED_TEST(collector_of, a_wait_that_is_given_up_moves_nothing) {
    typename TestFixture::world w(this->objects);
    this->load(w);
    w.control.patience = 3;
    auto& other = w.attach();
    {
        const typename TestFixture::world::scope in(w, other);
        EXPECT_TRUE(w.window()) << "given up, not stopped";
        EXPECT_TRUE(w.gc.abandoned());
        w.check();
        EXPECT_EQ(w.moved(), 0u);
        EXPECT_EQ(w.in_tier(tier_new), w.count());
        EXPECT_EQ(w.recorder.live.abandoned_waits.get(), 1u) << "one wait, not one for each batch";
        EXPECT_GE(w.control.held, 3u);
    }
    w.detach(other);
    this->use_even(w);
    EXPECT_TRUE(w.window());
    EXPECT_FALSE(w.gc.abandoned());
    w.check();
    EXPECT_EQ(w.in_tier(tier_new), 0u);
    EXPECT_EQ(w.moved(), w.count());
}

// The same where the first wait succeeds and a later one does not: the runs that are being emptied are
// opened.
TYPED_TEST(collector_of, a_wait_that_is_given_up_opens_runs) {
    typename TestFixture::world w(this->objects);
    this->load(w);
    w.control.patience = 3;
    auto& other = w.attach();
    mobility::epoch_number outer = 0;
    bool open = false;
    w.control.at_checkpoint = [&] {
        if (w.moved() == 0 || open) return;
        outer = w.enter(other);
        open = true;
    };
    w.window();
    ASSERT_TRUE(open);
    w.check();
    w.leave(other, outer);
    w.detach(other);
    w.control.at_checkpoint = {};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_new), 0u);
    w.check();
}

// A stop that comes during the wait counts, though the wait succeeds.
TYPED_TEST(collector_of, a_stop_during_the_wait_moves_nothing) {
    typename TestFixture::world w(this->objects);
    this->load(w);
    auto& other = w.attach();
    w.stop_while_it_waits_for(other);
    w.window();
    EXPECT_NE(w.control.stop_at, scripted_control::never) << "it has waited";
    EXPECT_EQ(w.moved(), 0u);
    w.check();
}

// Without membarrier there is no wait, and nothing may move.
TYPED_TEST(collector_of, without_membarrier_nothing_moves) {
    if (!os::membarrier_available()) GTEST_SKIP() << "no membarrier on this machine";
    typename TestFixture::world w(this->objects);
    this->load(w);
    os::membarrier_fail_for_tests(true);
    w.window();
    os::membarrier_fail_for_tests(false);
    EXPECT_TRUE(w.gc.abandoned());
    EXPECT_EQ(w.moved(), 0u);
    w.check();
    EXPECT_TRUE(w.window());
}

// Pinned objects, and those for which there is no room, stay where they are, are counted, and move
// when that has passed.
TYPED_TEST(collector_of, pins_and_full_heaps_are_counted) {
    typename TestFixture::world w(4);
    this->load(w);
    w.heap.full = true;
    w.window();
    EXPECT_EQ(w.recorder.live.no_room_skips.get(), 4u);
    EXPECT_EQ(w.moved(), 0u);
    w.check();
    w.heap.full = false;
    auto* const pin = [&] {
        const typename TestFixture::world::scope in(w, w.main);
        return w.pin(w.main, w.peek(1));
    }();
    w.window();
    EXPECT_EQ(w.recorder.live.pinned_skips.get(), 1u);
    EXPECT_EQ(w.tier_of(1), tier_new);
    EXPECT_EQ(w.moved(), 3u);
    mobility::release_pin(*pin);
    w.window();
    EXPECT_EQ(w.tier_of(1), tier_cold);
    w.check();
}

// R17: null and objects of other heaps are left alone; the latter are counted.
TYPED_TEST(collector_of, null_and_foreign_guides_stay_as_they_are) {
    typename TestFixture::world w(3);
    alignas(16) static char elsewhere[kib];
    auto* const foreign = ::new (elsewhere) typename TestFixture::world::object(0, 0);
    auto* const first = w.exchange(w.main, w.guides[0], foreign);
    auto* const second = w.exchange(w.main, w.guides[1], nullptr);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.foreign_objects.get(), 1u);
    EXPECT_EQ(w.peek(0), foreign);
    EXPECT_EQ(w.peek(1), nullptr);
    EXPECT_EQ(w.tier_of(2), tier_cold);
    w.exchange(w.main, w.guides[0], first);
    w.exchange(w.main, w.guides[1], second);
}

// An object that is touched between its arming and its publish stays, and is tried again in the same
// window, where it is known to be in use.
TYPED_TEST(collector_of, vetoed_moves_are_tried_again) {
    typename TestFixture::world w(40);
    this->load(w);
    bool touched = false;
    w.control.at_checkpoint = [&] {
        if (touched || w.mover.candidates().empty() || w.control.waits == 0) return;
        touched = true; // in the first batch, which has been waited for
        for (std::size_t i = 1; i < w.count(); i += 4) w.use(w.main, i);
    };
    EXPECT_TRUE(w.window());
    EXPECT_TRUE(touched);
    w.check();
    EXPECT_EQ(w.recorder.live.vetoed_moves.get(), w.count() / 4);
    EXPECT_EQ(w.moved(), w.count());
    EXPECT_GE(w.policy.judged_again, w.count() / 4);
    for (std::size_t i = 1; i < w.count(); i += 4) EXPECT_EQ(w.tier_of(i), tier_hot) << i;
}

// R16: slots in COLD are visited only in runs where an object was touched.
TYPED_TEST(collector_of, settled_cold_is_not_rescanned) {
    constexpr std::size_t parents = 128, bytes = 4 * kib; // 16 to a run
    typename TestFixture::world w(parents, bytes);
    for (std::size_t i = 0; i < parents; ++i) {
        auto* const child = w.make(1000 + i, 0);
        w.give_nested(w.main, w.peek(i), child);
    }
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.window());
    ASSERT_EQ(w.in_tier(tier_cold), parents);
    for (std::size_t i = 0; i < parents; ++i)
        ASSERT_EQ(w.heap.class_of(w.to_object(TestFixture::world::protocol::layout::address(
                      w.peek(i)->nested.load_relaxed()))),
                  tier_cold);
    EXPECT_EQ(w.visited_in([&] { w.window(); }), parents) << "the guides outside of COLD";
    // A use of one parent: its run is looked through, 16 objects with a slot each at most.
    w.policy.cold_after = 100;
    w.use(w.main, 7);
    const auto visited = w.visited_in([&] { w.window(); });
    EXPECT_GT(visited, parents);
    EXPECT_LE(visited, parents + run_bytes / bytes);
    EXPECT_EQ(w.tier_of(7), tier_hot);
    // The parent's slot lies in HOT now, and is visited with the others.
    EXPECT_EQ(w.visited_in([&] { w.window(); }), parents + 1);
    w.check();
}

// A child that is in no lazy tier yet while its parent is: its slot is visited, though no thread
// touches the parent, until it has followed.
TYPED_TEST(collector_of, children_follow_into_cold) {
    typename TestFixture::world w(1, 4 * kib);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    ASSERT_EQ(w.tier_of(0), tier_cold);
    auto* const child = w.make(1000, 0);
    auto* const pin = [&] { // so that it is left behind
        const typename TestFixture::world::scope in(w, w.main);
        auto* const parent = w.dereference(w.main, w.guides[0]);
        w.give_nested(w.main, parent, child);
        return w.pin(w.main, child);
    }();
    const auto tier_of_child = [&] {
        return w.heap.class_of(w.to_object(
            TestFixture::world::protocol::layout::address(w.peek(0)->nested.load_relaxed())));
    };
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(w.window());
    ASSERT_EQ(w.tier_of(0), tier_cold) << "the parent is back";
    ASSERT_EQ(tier_of_child(), tier_new) << "its child is pinned";
    mobility::release_pin(*pin);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(tier_of_child(), tier_cold);
    EXPECT_EQ(w.visited_in([&] { w.window(); }), 1u) << "and then it is settled";
    w.check();
}

// The processor share: between two questions for it there is at most one step of slots, 32 KiB of
// them, or the slots of one run. The clock is the test's: a word of slots costs one unit, and a sleep
// makes up for what exceeds a tenth.
TYPED_TEST(collector_of, asks_for_its_share_after_every_step) {
    constexpr std::size_t count = 40'000, step_words = (32 * kib) / 512;
    typename TestFixture::world w(count, 32);
    std::uint64_t at_last = 0, longest = 0;
    double wall = 0;
    w.control.at_throttle = [&] {
        longest = std::max(longest, w.policy.words - at_last);
        at_last = w.policy.words;
        wall = std::max(wall, static_cast<double>(w.policy.words) * 10);
    };
    EXPECT_TRUE(w.window());
    EXPECT_GT(longest, 0u);
    EXPECT_LE(longest, step_words + 1) << "words scanned in a row";
    EXPECT_GE(w.control.throttles, count / 64 / step_words);
    EXPECT_GE(w.control.checkpoints, w.control.throttles) << "and a fork parks it there";
    EXPECT_GE(wall, static_cast<double>(w.policy.words - step_words) * 10) << "no step is free";
    // With moves and runs to empty: a slot of a run is judged at most once before the next question.
    this->use_even(w);
    longest = 0;
    EXPECT_TRUE(w.window());
    EXPECT_LE(longest, std::max<std::uint64_t>(step_words + 1, run_bytes / 32));
    EXPECT_EQ(w.in_tier(tier_new), 0u);
}

// A batch is no turn of its length: threads that share the processor would wait for it. But what threads use may be
// touched while the collector sleeps, so of those on their way to HOT a batch is small, and is not interrupted.
TYPED_TEST(collector_of, asks_for_its_share_between_moves_but_of_objects_in_use) {
    constexpr std::size_t count = 20'000;
    for (const bool in_use : {false, true}) {
        typename TestFixture::world w(count, 32);
        EXPECT_TRUE(w.window());
        for (std::size_t i = 0; in_use && i < w.count(); ++i) w.use(w.main, i);
        w.plan.least_in_flight = count * 32;
        w.policy.cold_after = 0;
        std::uint64_t last = w.moved(), longest = 0;
        w.control.at_throttle = [&] {
            const std::uint64_t now = w.moved();
            longest = std::max(longest, now - last);
            last = now;
        };
        EXPECT_TRUE(w.window());
        w.check();
        ASSERT_EQ(w.in_tier(in_use ? tier_hot : tier_cold), count);
        if (in_use) {
            const std::size_t least = std::is_same_v<TypeParam, arming_kind> ? 128 : 16'384;
            EXPECT_GE(longest, std::min(least, count / 2)) << "a whole batch";
            EXPECT_LE(longest, least + (8 * kib) / 8 + run_bytes / 32)
                << "and what a step or a run adds";
        } else {
            EXPECT_LE(longest, 64u) << "moves in a row";
        }
    }
}

// A collector asked to stop makes no further step.
TYPED_TEST(collector_of, a_stop_ends_the_scan) {
    constexpr std::size_t count = 40'000, step_words = (32 * kib) / 512;
    typename TestFixture::world w(count, 32);
    w.control.stop_at = 1;
    EXPECT_FALSE(w.window());
    EXPECT_GT(w.policy.words, 0u);
    EXPECT_LE(w.policy.words, step_words + 1);
    w.check();
}

// Checkpoints, where a fork parks it, come as
// often as the questions for the share, with no candidate half moved: the heap is valid there.
TYPED_TEST(collector_of, checkpoints_are_between_whole_steps) {
    typename TestFixture::world w(this->objects);
    this->load(w);
    std::uint64_t valid = 0;
    w.control.at_checkpoint = [&] {
        std::string what;
        valid += w.heap.validate(&what);
        for (std::size_t i = 0; i < w.count(); ++i) w.verify(w.peek(i), i, w.version[i]);
    };
    w.control.checkpoints = w.control.throttles = 0;
    EXPECT_TRUE(w.window());
    EXPECT_EQ(valid, w.control.checkpoints);
    EXPECT_GE(w.control.checkpoints, w.control.throttles / 2);
    EXPECT_GE(w.control.checkpoints, w.count() / 64) << "one for so many moves, too";
}

// While memory is wanted, what goes into a file is written soon: till then it cannot be dropped.
TYPED_TEST(collector_of, what_goes_into_a_file_is_written_while_memory_is_wanted) {
    constexpr std::size_t each = 4 * kib;
    for (const bool wanted : {false, true}) {
        typename TestFixture::world w(10 * 256, each); // 10 MiB, of which half is in use
        this->load(w);
        w.policy.cold_after = 0;
        w.heap.in_files = 1u << tier_cold;
        w.plan.wanted_bytes = wanted ? 1 : 0;
        EXPECT_TRUE(w.window());
        EXPECT_EQ(w.in_tier(tier_cold), w.count() / 2);
        // A MiB and what is moved between two looks.
        EXPECT_GE(w.heap.written_back, wanted ? 4 : 0);
        EXPECT_LE(w.heap.written_back, wanted ? 5 : 0);
        w.check();
    }
}

// What leaves a file for memory is limited; what is compacted in the file, or goes there, is not.
TYPED_TEST(collector_of, no_more_leaves_a_file_than_may) {
    typename TestFixture::world w(6 * 64);
    this->all_in_cold(w);
    w.heap.in_files = 1u << tier_cold;
    w.plan.may_return = 10 * kib + kib / 2;
    for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_hot), 10u);
    EXPECT_EQ(w.recorder.live.no_budget_skips.get(), w.count() - 10);
    w.plan.may_return = 0;
    for (std::size_t i = 0; i < w.count(); i += 3)
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    const auto compacted = w.recorder.live.compacted.get();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.window());
    EXPECT_GT(w.recorder.live.compacted.get(), compacted) << "within the file";
    EXPECT_EQ(w.in_tier(tier_hot), 0u) << "into the file";
    // What was refused in the scan is judged again in a run that is compacted.
    for (std::size_t i = 0; i < w.count(); ++i) {
        if (i % 3 == 1) w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
        if (i % 3 == 2) w.use(w.main, i);
    }
    w.plan.may_return = 10 * kib + kib / 2;
    EXPECT_TRUE(w.window());
    std::size_t hot = 0;
    for (std::size_t i = 2; i < w.count(); i += 3) hot += w.tier_of(i) == tier_hot;
    EXPECT_EQ(hot, 10u);
    w.check();
}

int nothing_resident(void*, std::size_t bytes, unsigned char* seen) {
    std::fill_n(seen, bytes / os::page_size, 0);
    return 0;
}

// Of a file the kernel drops pages that nobody told it to. What is there is not compacted unless it is mostly holes,
// and does not come back where not all can; else it would be read for that.
TYPED_TEST(collector_of, what_the_kernel_has_dropped_is_not_read_back) {
    typename TestFixture::world w(6 * 64);
    this->all_in_cold(w);
    os::memory_calls calls = os::real_memory_calls();
    calls.mincore = nothing_resident;
    os::use_memory_calls(&calls);
    w.heap.in_files = 1u << tier_cold;
    for (std::size_t i = 0; i < w.count(); i += 3)
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    const auto compacted = w.recorder.live.compacted.get();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.compacted.get(), compacted);
    w.plan.may_return = 100 * kib;
    for (std::size_t i = 1; i < w.count(); i += 3) w.use(w.main, i);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_hot), 0u);
    EXPECT_EQ(w.recorder.live.no_budget_skips.get(), w.count() / 3);
    EXPECT_EQ(w.gc.refused_bytes(), 0u) << "nothing has to make room for it";
    w.plan.may_return = UINT64_MAX;
    for (std::size_t i = 1; i < w.count(); i += 3) w.use(w.main, i);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_hot), w.count() / 3) << "there is room";
    os::use_memory_calls(nullptr);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.window());
    EXPECT_GT(w.recorder.live.compacted.get(), compacted) << "it is in memory";
    w.check();
}

// What is written into a file is limited, what moves within it, too; what leaves it is not.
TYPED_TEST(collector_of, no_more_is_written_into_a_file_than_may) {
    typename TestFixture::world w(6 * 64);
    this->runs_when_all_are_hot(w);
    w.policy.cold_leaves = false;
    w.policy.cold_after = 1;
    w.heap.in_files = 1u << tier_cold;
    w.plan.may_write = 10 * kib + kib / 2;
    EXPECT_TRUE(w.window()); // all are idle from now on
    for (std::size_t window = 1; window <= 2; ++window) {
        const auto skipped = w.recorder.live.write_limit_skips.get();
        const std::size_t before = w.in_tier(tier_cold);
        EXPECT_TRUE(w.window());
        EXPECT_EQ(w.in_tier(tier_cold), before + 10);
        EXPECT_EQ(w.gc.moved_bytes()[tier_hot][tier_cold], 10 * kib);
        EXPECT_EQ(w.recorder.live.write_limit_skips.get() - skipped, w.count() - before - 10);
    }
    w.plan.may_write = UINT64_MAX;
    while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
    w.policy.least_live = 0.9;
    for (std::size_t i = 0; i < w.count(); i += 3)
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    w.plan.may_write = 0;
    const auto compacted = w.recorder.live.compacted.get();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.compacted.get(), compacted);
    w.plan.may_write = 10 * kib + kib / 2;
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.compacted.get(), compacted + 10) << "within the file";
    w.plan.may_write = 0;
    for (std::size_t i = 1; i < w.count(); i += 3) w.use(w.main, i);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_hot), w.count() / 3) << "out of the file";
    w.check();
}

// Runs of NEW go back to the system as they are emptied, with what stays in them moved on; the rest
// waits for no later window.
TYPED_TEST(collector_of, runs_of_new_are_emptied_in_their_window) {
    typename TestFixture::world w(6 * 64);
    EXPECT_TRUE(w.window());
    this->use_even(w);
    w.policy.cold_after = 100; // the idle half stays
    const auto extent = w.heap.counters(tier_new).extent_bytes;
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_EQ(w.in_tier(tier_hot), w.count() / 2);
    EXPECT_EQ(w.in_tier(tier_new), w.count() / 2);
    EXPECT_GT(w.recorder.live.compacted.get(), 0u) << "survivors moved on";
    EXPECT_LE(w.heap.counters(tier_new).extent_bytes, extent - 2 * run_bytes);
    EXPECT_GE(w.recorder.live.decommitted_bytes.get(), 2 * run_bytes);
}

// Neighbours are told by it.
TYPED_TEST(collector_of, the_policy_is_told_where_words_lie) {
    typename TestFixture::world w(200);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    std::set<std::uintptr_t> bases;
    for (std::size_t i = 0; i < w.count(); ++i)
        bases.insert(reinterpret_cast<std::uintptr_t>(&w.guides[i]) & ~std::uintptr_t{511});
    EXPECT_EQ(w.policy.bases, bases);
}

// An object is as old as windows that are not early say, however many early ones there are. What was armed after the
// last of them has no age. Words that count windows count one more in the first early one.
TYPED_TEST(collector_of, early_windows_count_no_age) {
    constexpr bool stamps = TestFixture::world::mover_type::ages_are_stamps;
    typename TestFixture::world w(64);
    w.policy.cold_after = stamps ? 2 : 4;
    const auto windows = [&](int count, bool early) {
        w.plan.early = early;
        for (; count > 0; --count) EXPECT_TRUE(w.window());
        EXPECT_EQ(w.policy.beginning.early, early);
    };
    windows(1, false);
    windows(100, true);
    EXPECT_EQ(w.in_tier(tier_new), w.count());
    windows(1, false);
    EXPECT_EQ(w.in_tier(tier_new), w.count()) << "one window";
    windows(300, true);
    EXPECT_EQ(w.in_tier(tier_new), w.count());
    windows(stamps ? 1 : 2, false);
    EXPECT_EQ(w.in_tier(tier_cold), w.count()) << "two";
    // A touch that an early window sees makes the part of its window that is left no whole one.
    for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
    windows(1, true);
    EXPECT_EQ(w.in_tier(tier_hot), w.count());
    windows(100, true);
    windows(2, false);
    EXPECT_EQ(w.in_tier(tier_hot), w.count());
    windows(1, false);
    EXPECT_EQ(w.in_tier(tier_cold), w.count());
    // Where words count, to 31.
    w.policy.cold_leaves = false;
    for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
    windows(1, false);
    EXPECT_EQ(w.in_tier(tier_hot), w.count());
    w.policy.cold_after = stamps ? 200 : 31;
    windows(1, true);
    windows(stamps ? 199 : 29, false);
    EXPECT_EQ(w.in_tier(tier_hot), w.count());
    windows(1, false);
    EXPECT_EQ(w.in_tier(tier_cold), w.count());
    w.check();
}

// In an early window, what nobody touched since the last one of any kind may leave, and is told from what was
// touched also where its run is emptied.
TYPED_TEST(collector_of, an_early_window_ends_when_enough_has_been_returned) {
    typename TestFixture::world w(16 * 64);
    EXPECT_TRUE(w.window());
    w.policy.cold_after = 0;
    w.plan.early = true;
    w.plan.wanted_bytes = run_bytes;
    std::size_t before = 0;
    for (int window = 0; before < w.count(); ++window) {
        ASSERT_LT(window, 40);
        EXPECT_TRUE(w.window());
        EXPECT_EQ(w.policy.beginning.wanted_bytes, run_bytes);
        EXPECT_EQ(w.in_tier(tier_hot), 0u) << "nobody touched it";
        const std::size_t now = w.in_tier(tier_cold);
        EXPECT_GT(now, before);
        EXPECT_LE(now - before, std::size_t{4} * 64) << "two runs at a time, and some at once";
        w.check();
        before = now;
    }
}

// What is touched while its run is emptied is tried again in the same turn: if one object stayed, so would
// the memory of its run, and all of NEW would be there twice until the window ends.
TYPED_TEST(collector_of, what_is_touched_while_its_run_is_emptied_is_tried_in_its_turn) {
    typename TestFixture::world w(24 * 64);
    EXPECT_TRUE(w.window());
    this->use_even(w);
    w.policy.cold_after = 100; // the idle half stays, and is touched as it moves on
    const auto extents = [&] {
        std::uint64_t bytes = 0;
        for (unsigned tier = 0; tier < w.heap.classes(); ++tier)
            bytes += w.heap.counters(tier).extent_bytes;
        return bytes;
    };
    const std::uint64_t before = extents();
    std::uint64_t peak = 0, touched = 0, waits = 0;
    std::size_t turn_of = 0; // the first of the closed runs
    unsigned waits_in_turn = 0;
    w.control.at_checkpoint = [&] {
        peak = std::max(peak, extents());
        std::size_t closed = 0;
        while (closed < w.heap.runs_of(tier_new) && !w.heap.run_closed(tier_new, closed)) ++closed;
        if (closed == w.heap.runs_of(tier_new) || w.control.waits == waits) return;
        waits = w.control.waits;
        if (std::exchange(turn_of, closed) != closed) waits_in_turn = 0;
        if (++waits_in_turn > 4) return;
        bool every_other = false;
        for (std::size_t i = 1; i < w.count(); i += 2) {
            const auto* const o = reinterpret_cast<const char*>(w.peek(i));
            const auto run = static_cast<std::size_t>(o - w.heap.range_begin(tier_new)) / run_bytes;
            if (w.tier_of(i) != tier_new || !w.heap.run_closed(tier_new, run)) continue;
            every_other = !every_other;
            touched += every_other;
            if (every_other) w.use(w.main, i, true);
        }
    };
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_GE(touched, w.count() / 4);
    EXPECT_LE(peak, before + 6 * run_bytes);
}

// What threads free in a closed run is not allocated again until it is opened. So no more runs are closed
// at a time than are being emptied, however many wait for their turn.
TYPED_TEST(collector_of, runs_are_closed_for_their_turn_only) {
    typename TestFixture::world w(12 * 64);
    this->load(w);
    std::size_t most = 0;
    w.control.at_checkpoint = [&] { most = std::max(most, this->closed_runs(w)); };
    EXPECT_TRUE(w.window());
    EXPECT_GE(most, 1u);
    EXPECT_LE(most * run_bytes, w.plan.least_in_flight);
    EXPECT_GE(w.moved(), 11u * 64);
    w.check();
}

// While new objects take what is emptied no more leaves NEW than may be in memory twice. The rest does in another
// window.
TYPED_TEST(collector_of, new_is_emptied_as_far_as_memory_comes_back) {
    typename TestFixture::world w(24 * 64);
    this->load(w);
    std::vector<void*> more;
    std::uint64_t waits = w.control.waits;
    w.control.at_checkpoint = [&] {
        if (std::exchange(waits, w.control.waits) == w.control.waits) return;
        for (int i = 0; i < 3 * 64; ++i) more.push_back(w.heap.allocate(kib));
    };
    EXPECT_TRUE(w.window());
    EXPECT_GE(w.moved(), 2U * 64);
    EXPECT_LE(w.moved(), 12U * 64);
    w.control.at_checkpoint = nullptr;
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    EXPECT_GE(w.moved(), 23U * 64);
    for (void* const o : more) w.heap.free(o);
    w.check();
}

// Sparse runs of HOT are compacted.
TYPED_TEST(collector_of, sparse_runs_are_evacuated) {
    typename TestFixture::world w(6 * 64);
    const auto runs = this->runs_when_all_are_hot(w);
    for (std::size_t i = 0; i < w.count(); ++i) {
        if (i % 8 == 0) continue;
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    }
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    w.check();
    EXPECT_GT(w.recorder.live.compacted.get(), 0u);
    EXPECT_LE(w.heap.counters(tier_hot).runs, runs / 2);
    for (std::size_t i = 0; i < w.count(); i += 8) EXPECT_EQ(w.tier_of(i), tier_hot);
}

// Sparse runs are emptied one after the other: no more is resident twice than may be in flight, in a tier
// that is visited lazily, too.
TYPED_TEST(collector_of, compaction_needs_little_memory) {
    for (const policy::tier_id tier : {tier_hot, tier_cold}) {
        typename TestFixture::world w(32 * 64);
        w.policy.least_live = 0.9;
        w.policy.cold_leaves = false; // what is out is not compacted
        if (tier == tier_hot)
            this->runs_when_all_are_hot(w);
        else
            while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
        EXPECT_TRUE(w.window());
        for (std::size_t i = 0; i < w.count(); i += 8)
            w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
        const std::uint64_t before = w.heap.counters(tier).extent_bytes;
        std::uint64_t peak = 0;
        w.control.at_checkpoint = [&] {
            peak = std::max(peak, w.heap.counters(tier).extent_bytes);
        };
        EXPECT_TRUE(w.window());
        EXPECT_GE(w.recorder.live.compacted.get(), 24u * 56);
        EXPECT_LE(w.heap.counters(tier).extent_bytes, before - 3 * run_bytes);
        EXPECT_LE(peak, before + w.plan.least_in_flight + 2 * run_bytes) << "tier " << +tier;
        w.control.at_checkpoint = nullptr;
        w.check();
    }
}

// A policy may want its tiers denser than the option asks.
TYPED_TEST(collector_of, the_policy_says_what_is_sparse) {
    typename TestFixture::world w(6 * 64);
    const auto runs = this->runs_when_all_are_hot(w);
    for (std::size_t i = 0; i < w.count(); i += 3)
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.compacted.get(), 0u) << "two thirds live, half are asked for";
    w.policy.least_live = 0.9;
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    w.check();
    EXPECT_GT(w.recorder.live.compacted.get(), 0u);
    EXPECT_LT(w.heap.counters(tier_hot).runs, runs);
}

// To compact what is out of memory would read it back; until more of it is free than not.
TYPED_TEST(collector_of, runs_that_are_out_are_not_compacted) {
    typename TestFixture::world w(6 * 64);
    w.policy.least_live = 0.9;
    const auto free_every = [&](std::size_t nth, std::size_t first) {
        for (std::size_t i = first; i < w.count(); i += nth)
            if (w.peek(i) != nullptr) w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
    };
    while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.window());
    const auto compacted = w.recorder.live.compacted.get();
    free_every(3, 0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.compacted.get(), compacted) << "two thirds live";
    free_every(3, 1);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    w.check();
    EXPECT_GT(w.recorder.live.compacted.get(), compacted) << "one third lives";
}

// What leaves a run that is out leaves it alone: to empty the run would read the rest.
TYPED_TEST(collector_of, runs_that_are_out_are_not_emptied) {
    for (const bool out : {false, true}) {
        typename TestFixture::world w(6 * 64);
        this->runs_when_all_are_hot(w);
        w.policy.hot_leaves = out;
        w.policy.cold_after = 3;
        while (w.in_tier(tier_cold) == 0) {
            for (std::size_t i = 0; i < w.count();
                 ++i) // a quarter of each run, in pages of its own
                if (i % 64 < 16) w.use(w.main, i);
            ASSERT_TRUE(w.window());
        }
        w.check();
        EXPECT_EQ(w.in_tier(tier_cold), w.count() / 64 * 48);
        EXPECT_EQ(w.recorder.live.compacted.get() == 0, out);
    }
}

// What leaves runs that are not worth emptying makes holes: no more than the bound, whether it leaves in the
// scan, as its run has its turn, or a tier that is visited lazily. The rest waits until holes are closed.
TYPED_TEST(collector_of, holes_in_dense_tiers_are_bounded) {
    constexpr std::size_t runs = 32, leaving_of_each = 6;
    typename TestFixture::world w(runs * 64);
    this->runs_when_all_are_hot(w);
    w.policy.cold_leaves = false; // what is out has no holes that cost memory
    w.plan.least_holes = 40 * kib;
    const std::size_t bound = 40 + 64 * runs * 3 / 100;
    const auto window = [&] {
        for (std::size_t i = 0; i < w.count(); ++i)
            if (i % 64 >= leaving_of_each) w.use(w.main, i);
        EXPECT_TRUE(w.window());
    };
    for (int i = 0; i < 3; ++i) window();
    w.policy.cold_after = 2;
    const auto postponed = [&] { return w.recorder.live.postponed_moves.get(); };
    window();
    w.check();
    EXPECT_GT(w.in_tier(tier_cold), bound * 9 / 10);
    EXPECT_LE(w.in_tier(tier_cold), bound);
    EXPECT_EQ(postponed(), runs * leaving_of_each - w.in_tier(tier_cold));
    // Holes are closed, and there is room for the others.
    for (int i = 0; i < 8; ++i) {
        window();
        const auto hot = w.heap.counters(tier_hot);
        EXPECT_LE(hot.extent_bytes - hot.live_bytes, bound * kib + 2 * run_bytes) << i;
    }
    w.check();
    EXPECT_EQ(w.in_tier(tier_cold), runs * leaving_of_each);
    EXPECT_GT(w.recorder.live.compacted.get(), 0u);
    // And back: a third of them.
    const std::size_t cold = w.in_tier(tier_cold);
    w.policy.cold_after = 100;
    w.plan.least_holes = 0;
    window();
    for (std::size_t i = 0; i < w.count(); ++i)
        if (i % 64 < leaving_of_each / 3) w.use(w.main, i);
    const std::uint64_t before = postponed();
    window();
    w.check();
    const std::size_t returned = cold - w.in_tier(tier_cold);
    EXPECT_GT(returned, 0u);
    EXPECT_LE(returned, w.count() * 3 / 100);
    EXPECT_EQ(postponed() - before, cold / 3 - returned) << "the rest waits";
}

// A wish that cannot be carried out takes no room: HOT's idle objects, for which COLD has none, do not keep
// COLD's from coming back.
TYPED_TEST(collector_of, moves_that_find_no_room_leave_no_holes) {
    typename TestFixture::world w(16 * 64);
    w.policy.cold_leaves = false;
    constexpr std::size_t hot_runs = 12;
    EXPECT_TRUE(w.window());
    for (std::size_t i = 0; i < hot_runs * 64; ++i) w.use(w.main, i);
    EXPECT_TRUE(w.window());
    w.policy.cold_after = 100;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    ASSERT_EQ(w.in_tier(tier_cold), w.count() - hot_runs * 64);
    w.policy.cold_after = 1;
    w.plan.least_holes = 0;
    w.heap.full_tiers = 1u << tier_cold;
    const std::size_t used = w.count() * 3 / 100;
    for (std::size_t i = w.count() - used; i < w.count(); ++i) w.use(w.main, i);
    for (std::size_t i = 0; i < hot_runs * 64; ++i)
        if (i % 64 >= 4) w.use(w.main, i); // the rest, more than there may be holes, is to leave
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_GT(w.recorder.live.no_room_skips.get(), 0u);
    EXPECT_EQ(w.in_tier(tier_hot), hot_runs * 64 + used);
}

// Nor does one that was vetoed: what was touched as it moved is tried again.
TYPED_TEST(collector_of, moves_that_are_vetoed_leave_no_holes) {
    typename TestFixture::world w(16 * 64);
    w.policy.cold_leaves = false;
    while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
    w.plan.least_holes = 0;
    const std::size_t room = w.count() * 3 / 100;
    bool touched = false;
    w.control.at_checkpoint = [&] {
        if (w.control.waits == 0 || std::exchange(touched, true)) return;
        for (std::size_t i = 0; i < room; ++i) w.use(w.main, i, true);
    };
    for (std::size_t i = 0; i < room; ++i) w.use(w.main, i);
    w.control.waits = 0;
    EXPECT_TRUE(w.window());
    w.control.at_checkpoint = nullptr;
    w.check();
    EXPECT_TRUE(touched);
    EXPECT_EQ(w.in_tier(tier_hot), room);
}

// ATC moves an object that is in use although it is used again meanwhile (its first CAS takes the access bit
// along): also one that waited for the end of the scan, or for its run's turn.
TYPED_TEST(collector_of, what_is_in_use_moves_late_as_in_the_scan) {
    if constexpr (requires(typename TestFixture::world& w) { w.state.phase; }) {
        for (const bool late : {true, false}) {
            typename TestFixture::world w(16 * 64);
            w.plan.least_holes = late ? 0 : 1024 * kib;
            w.policy.cold_leaves = late;
            while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
            for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
            // By run: more than leaves at once, and too little to empty a run.
            const auto in_use = [late](std::size_t i) { return i % 64 < (late ? 4 : 16); };
            const auto use_all = [&] {
                for (std::size_t i = 0; i < w.count(); ++i)
                    if (in_use(i) && w.tier_of(i) == tier_cold) w.use(w.main, i, true);
            };
            use_all();
            std::uint64_t waits = w.control.waits;
            w.control.at_checkpoint = [&] {
                if (w.control.waits == std::exchange(waits, w.control.waits)) return;
                use_all(); // between a wait and the moves
            };
            const auto vetoed = w.recorder.live.vetoed_moves.get();
            EXPECT_TRUE(w.window());
            w.control.at_checkpoint = nullptr;
            w.check();
            EXPECT_EQ(w.in_tier(tier_hot), w.count() / 64 * (late ? 4 : 16)) << late;
            EXPECT_EQ(w.recorder.live.vetoed_moves.get(), vetoed) << late;
        }
    } else {
        GTEST_SKIP() << "arming gives up what is touched, and tries again";
    }
}

// A list of what waits for the end of the scan is worked off in small steps.
TYPED_TEST(collector_of, late_moves_are_made_in_small_steps) {
    constexpr std::size_t count = 20'000;
    typename TestFixture::world w(count, 32);
    w.plan.least_in_flight = std::size_t{16} << 20;
    while (w.in_tier(tier_cold) != count) ASSERT_TRUE(w.window());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    w.plan.least_holes = 0;
    for (std::size_t i = 0; i < count; ++i) w.use(w.main, i);
    std::uint64_t judged = 0, longest = 0;
    w.control.at_checkpoint = [&] {
        longest = std::max(longest, w.policy.judged_again - judged);
        judged = w.policy.judged_again;
    };
    EXPECT_TRUE(w.window());
    w.control.at_checkpoint = nullptr;
    w.check();
    EXPECT_GT(w.policy.judged_again, count / 2);
    EXPECT_LE(longest, 2048u);
}

// Holes that cannot be closed do not stop everything for ever.
TYPED_TEST(collector_of, holes_that_nothing_closes_leave_some_room) {
    typename TestFixture::world w(32 * 64);
    this->runs_when_all_are_hot(w);
    w.plan.least_holes = 32 * kib;
    // Every other object of the first half is freed, and the rest of it has owners that are no slots.
    std::vector<typename TestFixture::world::object*> held;
    for (std::size_t i = 0; i < w.count() / 2; ++i) {
        auto* const o = w.exchange(w.main, w.guides[i], nullptr);
        if (i % 2 == 0)
            w.heap.free(o);
        else
            held.push_back(o);
    }
    const auto window = [&] {
        for (std::size_t i = w.count() / 2; i < w.count(); ++i)
            if (i % 64 >= 2) w.use(w.main, i);
        EXPECT_TRUE(w.window());
    };
    for (int i = 0; i < 3; ++i) window();
    w.policy.cold_after = 2;
    for (int i = 0; i < 16; ++i) window();
    w.check();
    EXPECT_EQ(w.in_tier(tier_cold), 16u * 2);
    for (auto* o : held) w.heap.free(o);
}

// What is out of memory makes room for what is in use again, as far as it stays out.
TYPED_TEST(collector_of, what_is_out_makes_room) {
    constexpr std::size_t runs = 16;
    enum class load : std::uint8_t { all_out_some_used, all_out_all_used, none_out_some_used };
    for (const load kind :
         {load::all_out_some_used, load::all_out_all_used, load::none_out_some_used}) {
        const bool all = kind == load::all_out_all_used;
        typename TestFixture::world w(runs * 64);
        w.plan.least_holes = 8 * kib;
        w.plan.least_in_flight = 4 * run_bytes; // a list for all of them
        w.policy.cold_leaves = kind != load::none_out_some_used;
        while (w.in_tier(tier_cold) != w.count()) ASSERT_TRUE(w.window());
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
        const std::size_t in_use = all ? w.count() : runs * 64 / 8;
        for (std::size_t i = 0; i < w.count(); ++i)
            if (all || i % 64 < 8) w.use(w.main, i); // two pages of a run's sixteen
        EXPECT_TRUE(w.window());
        w.check();
        const auto postponed = w.recorder.live.postponed_moves.get();
        if (kind == load::all_out_some_used) {
            EXPECT_EQ(w.in_tier(tier_hot), in_use);
            EXPECT_EQ(postponed, 0u);
        } else {
            const std::size_t room = 8 + (all ? 0 : w.count() * 3 / 100);
            EXPECT_GT(w.in_tier(tier_hot), room * 3 / 4);
            EXPECT_LE(w.in_tier(tier_hot), room);
            EXPECT_EQ(postponed, in_use - w.in_tier(tier_hot));
        }
    }
}

// Where nothing would close them, holes are not counted.
TYPED_TEST(collector_of, without_compaction_holes_are_not_bounded) {
    typename TestFixture::world w(8 * 64);
    this->runs_when_all_are_hot(w);
    w.plan.least_holes = 0;
    w.plan.evacuate = false;
    w.policy.cold_after = 2;
    for (int window = 0; window < 4; ++window) {
        for (std::size_t i = 0; i < w.count(); ++i)
            if (i % 64 >= 6) w.use(w.main, i);
        EXPECT_TRUE(w.window());
    }
    w.check();
    EXPECT_EQ(w.in_tier(tier_cold), 8u * 6);
    EXPECT_EQ(w.recorder.live.postponed_moves.get(), 0u);
}

// An object that was allocated as never cold goes to HOT instead.
TYPED_TEST(collector_of, never_cold_is_kept) {
    typename TestFixture::world w(0);
    w.heap.attr.never_cold = true;
    typename TestFixture::world::slot guide{0};
    w.give(w.main, guide, w.make(5, 0));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.window());
    auto* const o =
        w.to_object(TestFixture::world::protocol::layout::address(guide.load_relaxed()));
    EXPECT_EQ(w.heap.class_of(o), tier_hot);
    w.verify(o, 5, 0);
    w.end_slot(w.main, guide);
}

// Large objects move as others do, a few at a time, and what they leave goes back before the next move.
TYPED_TEST(collector_of, large_objects_leave_the_place_where_they_were_born) {
    constexpr std::size_t each = 24 * kib; // in LARGE
    typename TestFixture::world w(60, 20 * kib + 4);
    EXPECT_EQ(w.in_tier(tier_large), 60u);
    this->load(w);
    const auto taken = [&w] {
        std::size_t bytes = 0;
        for (unsigned cls = 0; cls <= w.heap.large_class(); ++cls)
            bytes += w.heap.counters(cls).extent_bytes;
        return bytes;
    };
    const std::size_t before = taken();
    std::size_t most = 0;
    w.control.at_checkpoint = [&] { most = std::max(most, taken()); };
    EXPECT_TRUE(w.window());
    w.check();
    for (std::size_t i = 0; i < w.count(); ++i)
        EXPECT_EQ(w.tier_of(i), i % 2 == 0 ? tier_hot : tier_cold) << i;
    EXPECT_EQ(w.moved(), w.count());
    EXPECT_EQ(w.recorder.live.moved_between[tier_new][tier_hot].get(), 30u);
    EXPECT_EQ(w.recorder.live.moved_between[tier_new][tier_cold].get(), 30u);
    EXPECT_GE(w.gc.moved_bytes()[tier_new][tier_hot], 30 * 20 * kib);
    EXPECT_EQ(w.heap.counters(tier_large).extent_bytes, 0u);
    EXPECT_LE(most, before + w.plan.least_in_flight) << "half of it moves, and is returned";
    EXPECT_LE(taken(), before - 60 * 3 * kib) << "they need no pages of their own any more";
    EXPECT_EQ(w.recorder.live.decommitted_bytes.get(), 60 * each);
    EXPECT_TRUE(w.view.large.empty());
    // And on as their temperature changes.
    for (int i = 0; i < 3; ++i) {
        for (std::size_t n = 1; n < w.count(); n += 2) w.use(w.main, n);
        EXPECT_TRUE(w.window());
        w.check();
    }
    for (std::size_t i = 0; i < w.count(); ++i)
        EXPECT_EQ(w.tier_of(i), i % 2 == 1 ? tier_hot : tier_cold) << i;
}

// An early window moves no more of them than gives back what is wanted.
TYPED_TEST(collector_of, large_objects_leave_in_an_early_window_until_enough_has_been_returned) {
    constexpr std::size_t each = 24 * kib;
    typename TestFixture::world w(600, 20 * kib + 4);
    this->load(w);
    w.policy.cold_after = 0;
    w.plan.early = true;
    for (const std::size_t wanted : {1 * each, 90 * each}) {
        const std::uint64_t before = w.in_tier(tier_large);
        w.plan.wanted_bytes = wanted;
        EXPECT_TRUE(w.window());
        w.check();
        const std::size_t left = (before - w.in_tier(tier_large)) * each;
        EXPECT_GE(left, wanted);
        EXPECT_LE(left, wanted + w.plan.least_in_flight);
        EXPECT_TRUE(w.view.large.empty());
    }
    w.plan.early = false;
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_large), 0u);
    w.check();
}

// One that is larger than what may be resident twice moves alone.
TYPED_TEST(collector_of, large_objects_move_one_by_one_if_need_be) {
    typename TestFixture::world w(6, 700 * kib);
    this->load(w);
    const auto waits = w.control.waits;
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_EQ(w.in_tier(tier_large), 0u);
    EXPECT_GE(w.control.waits - waits, w.count());
    EXPECT_LE(w.heap.counters(tier_hot).extent_bytes, 3 * 704 * kib);
}

// Those that were in use when they were to move are tried again, and no more of them at a time.
TYPED_TEST(collector_of, large_objects_that_were_vetoed_move_later_a_few_at_a_time) {
    if constexpr (std::is_same_v<TypeParam, arming_kind>) {
        typename TestFixture::world w(40, 20 * kib);
        EXPECT_TRUE(w.window());
        for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
        const auto taken = [&w] {
            std::size_t bytes = 0;
            for (unsigned cls = 0; cls <= w.heap.large_class(); ++cls)
                bytes += w.heap.counters(cls).extent_bytes;
            return bytes;
        };
        const std::size_t before = taken();
        std::size_t most = 0;
        w.control.at_checkpoint = [&] {
            most = std::max(most, taken());
            if (w.control.waits == 0 || w.recorder.live.vetoed_moves.get() >= w.count()) return;
            for (std::size_t i = 0; i < w.count(); ++i) w.use(w.main, i);
        };
        EXPECT_TRUE(w.window());
        EXPECT_GE(w.recorder.live.vetoed_moves.get(), w.count());
        EXPECT_GT(w.in_tier(tier_hot), 0u);
        EXPECT_LE(most, before + w.plan.least_in_flight);
        w.check();
    } else {
        GTEST_SKIP() << "ATC moves what was used and left";
    }
}

// An object that was born between the scan and the move is no touched one.
TYPED_TEST(collector_of, a_large_object_that_was_born_since_the_scan_stays) {
    typename TestFixture::world w(10, 20 * kib);
    this->load(w);
    bool replaced = false;
    w.control.at_checkpoint = [&] {
        if (replaced || w.control.waits == 0) return;
        replaced = true;
        w.heap.free(w.exchange(w.main, w.guides[9], w.make(9, 0)));
    };
    EXPECT_TRUE(w.window());
    ASSERT_TRUE(replaced);
    EXPECT_NE(w.tier_of(9), tier_hot);
    w.check();
}

// What should leave LARGE and cannot is hinted where it is.
TYPED_TEST(collector_of, large_objects_without_room_are_noted) {
    typename TestFixture::world w(10, 20 * kib);
    this->load(w);
    w.heap.full_tiers = 1u << tier_cold;
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_EQ(w.in_tier(tier_hot), 5u);
    EXPECT_EQ(w.in_tier(tier_large), 5u);
    EXPECT_EQ(w.recorder.live.no_room_skips.get(), 5u);
    ASSERT_EQ(w.view.large.size(), 5u);
    for (const auto& seen : w.view.large) {
        EXPECT_EQ(seen.role, tier_cold);
        EXPECT_GE(seen.bytes, 20 * kib);
        EXPECT_TRUE(seen.leaving);
        EXPECT_FALSE(seen.touched);
    }
    w.heap.full_tiers = ~0u;
    w.use(w.main, 1);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(std::count_if(w.view.large.begin(), w.view.large.end(),
                            [](const auto& seen) { return seen.touched; }),
              1);
    w.heap.full_tiers = 0;
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.in_tier(tier_large), 0u);
    EXPECT_TRUE(w.view.large.empty());
    w.check();
}

// A window that is stopped while large objects move leaves the rest where it is.
TYPED_TEST(collector_of, large_objects_may_be_stopped_half_way) {
    for (const std::uint64_t stop : {1U, 5U, 20U, 60U, 100U}) {
        typename TestFixture::world w(40, 20 * kib);
        this->load(w);
        w.control.stop_at = w.control.asked + stop;
        w.window();
        w.check();
        w.control.stop_at = scripted_control::never;
        TestFixture::use_even(w);
        EXPECT_TRUE(w.window());
        EXPECT_TRUE(w.window());
        w.check();
        EXPECT_EQ(w.in_tier(tier_large), 0u) << stop;
    }
}

// What is too large is never moved, but the backend hears of it in the role that the policy gave it, and what
// is free of it goes back to the system.
TYPED_TEST(collector_of, objects_too_large_to_move_are_noted_and_go_back) {
    constexpr std::size_t bytes = heap::max_dense_size + 4 * kib;
    typename TestFixture::world w(2, bytes);
    EXPECT_TRUE(w.window());
    w.use(w.main, 0);
    auto* const idle = w.peek(1);
    EXPECT_TRUE(w.window());
    w.check();
    EXPECT_EQ(w.in_tier(tier_large), 2u);
    EXPECT_EQ(w.recorder.live.no_room_skips.get(), 0u) << "no move was tried";
    EXPECT_EQ(w.moved(), 0u);
    ASSERT_EQ(w.view.large.size(), 2u);
    for (const auto& seen : w.view.large) {
        EXPECT_EQ(seen.bytes, bytes);
        EXPECT_EQ(seen.role,
                  seen.begin == reinterpret_cast<std::uintptr_t>(idle) ? tier_cold : tier_hot);
        EXPECT_EQ(seen.leaving, seen.role == tier_cold);
    }
    EXPECT_EQ(w.heap.touched_in(tier_large).bytes, bytes) << "of the one that was used";
    const auto extent = w.heap.counters(tier_large).extent_bytes;
    const auto returned = w.recorder.live.decommitted_bytes.get();
    w.heap.free(w.exchange(w.main, w.guides[1], nullptr));
    EXPECT_TRUE(w.window());
    EXPECT_LE(w.heap.counters(tier_large).extent_bytes, extent - bytes);
    EXPECT_GE(w.recorder.live.decommitted_bytes.get(), returned + bytes);
}

// A world in which the objects of every `groups`-th guide lie together in NEAR.
template <class World>
void put_near(World& w, std::size_t groups) {
    std::vector<void*> first(groups);
    for (std::size_t i = 0; i < w.count(); ++i) {
        w.heap.free(w.exchange(w.main, w.guides[i], nullptr));
        // What an object of NEW begins, others join.
        w.heap.beside = first[i % groups];
        auto* const made = w.make(i, 0);
        if (first[i % groups] == nullptr) first[i % groups] = made;
        w.give(w.main, w.guides[i], made);
    }
    w.heap.beside = nullptr;
}

// Objects of NEAR leave it for the tiers that they belong to, and neighbours of one temperature stay neighbours.
TYPED_TEST(collector_of, near_objects_move_in_the_order_of_their_neighbours) {
    constexpr std::size_t groups = 16, members = 20;
    typename TestFixture::world w(groups * members, 64);
    put_near(w, groups);
    std::size_t in_near = 0;
    for (std::size_t i = 0; i < w.count(); ++i) in_near += w.heap.in_near(w.peek(i));
    EXPECT_EQ(in_near, w.count() - groups);
    w.check();
    const auto live = w.heap.counters(tier_new).live_objects;
    EXPECT_EQ(live, w.count());

    EXPECT_TRUE(w.window());
    const auto is_used = [](std::size_t i) { return i / groups % 2 == 1; };
    for (int k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < w.count(); ++i)
            if (is_used(i)) w.use(w.main, i);
        EXPECT_TRUE(w.window());
        w.check();
    }
    // Of 20 members 10 were used. Those of a group lie side by side.
    for (const unsigned tier : {tier_hot, tier_cold}) {
        std::map<void*, std::size_t> in_order;
        for (std::size_t i = groups; i < w.count(); ++i) {
            ASSERT_EQ(w.tier_of(i), is_used(i) ? tier_hot : tier_cold) << i;
            if (w.tier_of(i) == tier) in_order.emplace(w.peek(i), i % groups);
        }
        std::size_t changes = 0, last = groups;
        for (const auto& [object, group] : in_order) changes += std::exchange(last, group) != group;
        EXPECT_LE(changes, groups + groups / 4) << tier;
    }
    EXPECT_LE(w.heap.counters(tier_new).extent_bytes, run_bytes)
        << "NEW's open run, and nothing of NEAR";
}

// A window that is stopped while objects leave NEAR leaves the rest where it is.
TYPED_TEST(collector_of, near_objects_may_be_stopped_half_way) {
    for (const std::uint64_t stop : {1U, 3U, 9U, 30U}) {
        typename TestFixture::world w(200, 64);
        put_near(w, 5);
        EXPECT_TRUE(w.window());
        w.control.stop_at = w.control.asked + stop;
        w.window();
        w.check();
        w.control.stop_at = scripted_control::never;
        for (int k = 0; k < 3; ++k) EXPECT_TRUE(w.window());
        w.check();
        EXPECT_EQ(w.in_tier(tier_cold), w.count()) << stop;
    }
}

// The state of a slot goes on from window to window, wherever the slot's own object moves to, and
// begins anew where another slot begins.
TYPED_TEST(collector_of, slots_keep_their_state) {
    typename TestFixture::world w(16);
    for (std::size_t i = 0; i < w.count(); ++i)
        w.give_nested(w.main, w.peek(i), w.make(1000 + i, 0));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.window());
    EXPECT_EQ(w.policy.began, 2 * w.count()) << "each began once, moved parents' slots too";
    EXPECT_GE(w.policy.oldest_state, 3u);
    auto* const o = w.end_slot(w.main, w.guides[3]);
    w.give(w.main, w.guides[3], o);
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.policy.began, 2 * w.count() + 1) << "ended and begun at the same place";
    // A look again in the same window counts no window.
    const auto oldest = w.policy.oldest_state;
    EXPECT_TRUE(w.window());
    EXPECT_LE(w.policy.oldest_state, oldest + 1);
}

// Where the last slot of 16 MiB has ended, SODA's memory for it goes, unless the last wait is given up.
TYPED_TEST(collector_of, empty_leaves_go) {
    typename TestFixture::world w(1);
    w.policy.cold_after = 100;
    constexpr std::size_t span = std::size_t{1} << 25;
    void* const far = os::reserve(span, span);
    ASSERT_NE(far, nullptr);
    ASSERT_EQ(os::commit(far, os::page_size), 0);
    auto* const guide = ::new (far) typename TestFixture::world::slot(0);
    w.give(w.main, *guide, w.make(1, 0));
    EXPECT_TRUE(w.window());
    const auto leaves = w.recorder.live.soda_leaves.get();
    ASSERT_GE(leaves, 2u);
    w.end_slot(w.main, *guide);
    w.control.patience = 1;
    auto& other = w.attach();
    {
        const typename TestFixture::world::scope in(w, other);
        w.window();
        EXPECT_EQ(w.recorder.live.soda_leaves.get(), leaves) << "a thread may be about to use it";
        EXPECT_FALSE(w.slots.has_unlinked());
    }
    // Nor when a stop comes while the wait goes on, and it succeeds.
    w.control.patience = scripted_control::never;
    w.control.waits = 0;
    w.stop_while_it_waits_for(other);
    w.window();
    EXPECT_NE(w.control.stop_at, scripted_control::never) << "it has waited";
    EXPECT_EQ(w.recorder.live.soda_leaves.get(), leaves);
    EXPECT_FALSE(w.slots.has_unlinked());
    w.control.at_checkpoint = {};
    w.control.stop_at = scripted_control::never;
    EXPECT_TRUE(w.window());
    EXPECT_EQ(w.recorder.live.soda_leaves.get(), leaves - 1);
    EXPECT_TRUE(w.slots.has_unlinked()) << "unmapped after another wait";
    EXPECT_TRUE(w.window());
    EXPECT_FALSE(w.slots.has_unlinked());
    w.detach(other);
    os::release(far, span);
}

// The kernel, as far as hints ask it to page out.
std::vector<backend::interval> paged_out;
int note_page_out(void* at, std::size_t bytes, int what) {
    if (what == MADV_PAGEOUT) {
        const auto begin = reinterpret_cast<std::uintptr_t>(at);
        paged_out.push_back({begin, begin + bytes});
        return 0;
    }
    return what == MADV_COLD ? 0 : os::real_memory_calls().madvise(at, bytes, what);
}
// It takes what it is asked for.
int say_absent(void*, std::size_t bytes, unsigned char* seen) {
    std::memset(seen, 0, (bytes + os::page_size - 1) / os::page_size);
    return 0;
}

// Pages that were paged out, touched and idle again are paged out again; those that stayed idle are
// not asked for twice.
TYPED_TEST(collector_of, what_came_back_is_paged_out_again) {
    typename TestFixture::world w(4 * 64);
    os::memory_calls calls = os::real_memory_calls();
    calls.madvise = note_page_out;
    calls.mincore = say_absent;
    os::use_memory_calls(&calls);
    backend::hints hints([](const std::string&) {});
    options settings;
    settings.hint_cold = settings.hint_pageout = true;
    const auto window = [&] {
        paged_out.clear();
        EXPECT_TRUE(w.window());
        hints.after_window(w.view, settings, {});
        std::uint64_t bytes = 0;
        for (const auto& piece : paged_out) bytes += piece.bytes();
        return bytes;
    };
    const auto left = [&](std::size_t i) {
        const auto at = reinterpret_cast<std::uintptr_t>(w.peek(i));
        return std::any_of(paged_out.begin(), paged_out.end(), [at](const backend::interval& one) {
            return at >= one.begin && at < one.end;
        });
    };
    std::uint64_t out = 0;
    for (int i = 0; i < 4; ++i) out += window();
    ASSERT_EQ(w.in_tier(tier_cold), w.count());
    EXPECT_GE(out, w.count() * kib) << "all of COLD";
    EXPECT_EQ(window(), 0u) << "it is out";

    // In use for a window, without leaving COLD: a policy that holds it there.
    w.heap.full = true;
    w.use(w.main, 70);
    window();
    EXPECT_FALSE(left(70)) << "it is in use";
    w.heap.full = false;
    ASSERT_EQ(w.tier_of(70), tier_cold);
    std::set<std::size_t> again;
    for (int i = 0; i < 3; ++i) {
        window();
        for (std::size_t k = 0; k < w.count(); ++k)
            if (left(k)) again.insert(k);
    }
    EXPECT_TRUE(again.contains(70)) << "idle again, out again";
    EXPECT_LE(again.size(), run_bytes / kib + 4) << "its neighbours at most";
    os::use_memory_calls(nullptr);
    w.check();
}

} // namespace
} // namespace obase::collector_test
