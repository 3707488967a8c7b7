// SPDX-License-Identifier: MIT
//
// near_heap's own text under the deterministic scheduler, and on threads: two threads that grow one group, frees
// by another thread, a group that ends while it is named, memory that goes back, and forks, each against the others;
// and biased_sections alone.
//
// The oracle is the test's: which objects are there, and which bytes they have.
#include "heap/near_functions.hpp"

#include "heap/schedules_test.hpp"
#include "os/memory.hpp"
#include "testing/native_threads.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace obase::heap {

// A virtual thread with the index of one that ran before goes on with its row.
template <>
struct thread_number<testing::deterministic_platform> {
    static constexpr unsigned at_once = testing::max_threads;
    static unsigned of_caller() noexcept { return testing::thread_index(); }
    static unsigned at_hand() noexcept { return of_caller(); }
    static void only_caller_is_left() noexcept {}
};

namespace {

constexpr unsigned usual = near_set({}, expectation::nothing);

template <class P>
class world {
    using threads = testing::threads_for<P>;

  public:
    explicit world(std::size_t units = 1) : bytes_(units * near_unit_bytes) {
        base_ = static_cast<char*>(os::reserve(bytes_, near_unit_bytes));
        threads::require(base_ != nullptr && heap.create(base_, bytes_, poisoning::none), "a heap");
    }
    ~world() {
        heap.destroy();
        os::release(base_, bytes_);
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    void* filled(void* object, std::size_t size) {
        threads::require(object != nullptr, "there is room");
        std::memset(object, static_cast<int>(size / 8 & 0xFF), size);
        return object;
    }
    // As the space does.
    void* join(const void* neighbour, std::size_t size, unsigned set) {
        void* const made = heap.join_at_hand(neighbour, size, set % attribute_sets);
        return made != nullptr ? made : heap.join(neighbour, size, set);
    }
    void* join(typename P::template atomic<group_name>& name, std::size_t size, unsigned set) {
        void* const made =
            heap.join_at_hand(name, size, set % attribute_sets, set / attribute_sets);
        return made != nullptr ? made : heap.join(name, size, set);
    }
    void end(void* object) {
        const std::size_t size = heap.size_of(object);
        const auto* const bytes = static_cast<const unsigned char*>(object);
        threads::require(bytes[0] == (size / 8 & 0xFF) && bytes[size - 1] == (size / 8 & 0xFF),
                         "an object keeps its bytes and its size");
        threads::require(heap.free(object) == free_result::done, "an object is freed once");
    }
    // When all threads have ended.
    void finish(std::size_t objects, std::size_t groups) {
        const char* const broken = heap.validate();
        threads::require(broken == nullptr, broken);
        const near_counters now = heap.counters();
        threads::require(now.live_objects == objects, "as many objects as are there");
        threads::require(now.groups == groups, "as many groups as have objects");
    }

    near_heap<P> heap;

  private:
    std::size_t bytes_;
    char* base_ = nullptr;
};

// Property: two threads that put objects near one get places of their own, on one page while that has room.
template <class P>
void two_threads_grow_one_group() {
    using threads = testing::threads_for<P>;
    world<P> w;
    void* const first = w.filled(w.heap.begin_group(48, usual, nullptr), 48);
    std::vector<void*> made[2];
    for (auto& mine : made)
        threads::spawn("grower", [&] {
            for (const std::size_t size : {104U, 48U, 600U})
                mine.push_back(w.filled(w.join(first, size, usual), size));
        });
    threads::run();
    w.finish(7, 1);
    const auto page = [](void* object) { return reinterpret_cast<std::uintptr_t>(object) >> 12; };
    for (auto& mine : made)
        for (void* const object : mine) {
            threads::require(page(object) == page(first), "one page");
            w.end(object);
        }
    w.end(first);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, two_threads_grow_one_group, 200)

// Property: what another thread frees is reused or given back, and no place twice.
template <class P>
void frees_by_others_meet_the_group_that_grows() {
    using threads = testing::threads_for<P>;
    world<P> w;
    std::vector<void*> made;
    void* const first = w.filled(w.heap.begin_group(128, usual, nullptr), 128);
    for (int i = 0; i < 4; ++i) made.push_back(w.filled(w.join(first, 120, usual), 120));
    for (const std::size_t half : {0U, 2U})
        threads::spawn("freer", [&, half] {
            w.end(made[half]);
            w.end(made[half + 1]);
        });
    std::vector<void*> later;
    threads::spawn("grower", [&] {
        for (const std::size_t size : {120U, 256U, 120U})
            later.push_back(w.filled(w.join(first, size, usual), size));
    });
    threads::run();
    w.finish(4, 1);
    for (void* const object : later) w.end(object);
    w.end(first);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, frees_by_others_meet_the_group_that_grows, 200)

// Property: a neighbour that is freed meanwhile is none, or one that was still there; nothing is put into a group
// that has ended, and the number of one that ended is another's without a trace.
template <class P>
void a_neighbour_s_end_meets_its_group() {
    using threads = testing::threads_for<P>;
    world<P> w;
    void* const first = w.filled(w.heap.begin_group(48, usual, nullptr), 48);
    void* joined = nullptr;
    void* stranger = nullptr;
    threads::spawn("owner", [&] {
        w.end(first);
        stranger = w.filled(w.heap.begin_group(64, usual, nullptr), 64);
    });
    threads::spawn("other", [&] {
        joined = w.join(first, 72, usual);
        if (joined != nullptr) w.filled(joined, 72);
    });
    threads::run();
    // Another group's object at the very place is a neighbour like others.
    const std::size_t objects = joined != nullptr ? 2 : 1;
    w.finish(objects, stranger == first ? w.heap.counters().groups : objects);
    w.end(stranger);
    if (joined != nullptr) w.end(joined);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, a_neighbour_s_end_meets_its_group, 200)

// Property: threads that name one group at once, and empty it, agree on which group it is.
template <class P>
void threads_name_a_group_at_once() {
    using threads = testing::threads_for<P>;
    world<P> w;
    typename P::template atomic<group_name> name;
    void* kept[2] = {};
    for (void*& mine : kept)
        threads::spawn("namer", [&] {
            w.end(w.filled(w.join(name, 48, usual), 48));
            mine = w.filled(w.join(name, 72, usual), 72);
        });
    threads::run();
    w.finish(2, 1);
    for (void* const object : kept) w.end(object);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, threads_name_a_group_at_once, 200)

// The same of threads that have groups and chunks of their own, and so begin one at hand.
template <class P>
void threads_with_groups_name_one_at_once() {
    using threads = testing::threads_for<P>;
    world<P> w;
    typename P::template atomic<group_name> own[2], name;
    std::vector<void*> kept[2];
    for (const unsigned me : {0U, 1U})
        threads::spawn("namer", [&, me] {
            kept[me].push_back(w.filled(w.join(own[me], 48, usual), 48));
            kept[me].push_back(w.filled(w.join(name, 64, usual), 64));
            kept[me].push_back(w.filled(w.join(name, 72, usual), 72));
        });
    threads::run();
    w.finish(6, 3);
    for (auto& mine : kept)
        for (void* const object : mine) w.end(object);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, threads_with_groups_name_one_at_once, 200)

// Property: what a thread has begun is its own at hand only until another one wants any of its groups: those that it begins
// later in the same thousand are shared, too.
template <class P>
void what_is_shared_is_not_at_hand() {
    using threads = testing::threads_for<P>;
    world<P> w;
    typename P::template atomic<group_name> names[3];
    typename P::template atomic<void*> given;
    std::vector<void*> kept[2];
    threads::spawn("owner", [&] {
        for (auto& name : names) {
            for (const std::size_t size : {48U, 56U, 64U})
                kept[0].push_back(w.filled(w.join(name, size, usual), size));
            given.store_release(kept[0].back());
        }
    });
    threads::spawn("other", [&] {
        for (int i = 0; i < 3; ++i)
            if (void* const found = given.load_acquire(); found != nullptr)
                kept[1].push_back(w.filled(w.join(found, 72, usual), 72));
    });
    threads::run();
    w.finish(9 + kept[1].size(), 3);
    for (auto& mine : kept)
        for (void* const object : mine) w.end(object);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, what_is_shared_is_not_at_hand, 200)

// Property: pages go back to the system only while they have no objects.
template <class P>
void memory_goes_back_while_groups_come_and_go() {
    using threads = testing::threads_for<P>;
    world<P> w(2); // there is room while a unit's pages and tables go back, all at once
    void* const before = w.filled(w.heap.begin_group(2048, usual, nullptr), 2048);
    threads::spawn("freer", [&] { w.end(before); });
    threads::spawn("collector", [&] {
        pacer goes_on;
        for (int i = 0; i < 2; ++i) w.heap.decommit_free_memory(goes_on);
    });
    void* after = nullptr;
    threads::spawn("maker",
                   [&] { after = w.filled(w.heap.begin_group(1024, usual, nullptr), 1024); });
    threads::run();
    w.end(after);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, memory_goes_back_while_groups_come_and_go, 200)

// Property: the thread that began groups goes on with them while others allocate and free in them, and nothing is
// lost or handed out twice when they become shared.
template <class P>
void groups_are_shared_while_their_thread_uses_them() {
    using threads = testing::threads_for<P>;
    world<P> w;
    typename P::template atomic<void*> given[2];
    std::vector<void*> kept;
    threads::spawn("owner", [&] {
        void* const first = w.filled(w.heap.begin_group(64, usual, nullptr), 64);
        given[0].store_release(first);
        // By then the other may have freed it, which leaves no neighbour.
        void* second = w.join(first, 200, usual);
        if (second == nullptr) second = w.heap.begin_group(200, usual, nullptr);
        w.filled(second, 200);
        void* const other = w.filled(w.heap.begin_group(48, usual, nullptr), 48);
        given[1].store_release(other);
        kept.push_back(w.filled(w.join(second, 128, usual), 128));
        w.end(second);
        kept.push_back(w.filled(w.join(kept.back(), 56, usual), 56));
    });
    std::vector<void*> joined[2];
    for (const unsigned i : {0U, 1U})
        threads::spawn("other", [&, i] {
            void* const found = given[i].load_acquire();
            if (found == nullptr) return;
            joined[i].push_back(w.filled(w.join(found, 96, usual), 96));
            w.end(found);
            given[i].store_release(nullptr);
        });
    threads::run();
    std::size_t objects = kept.size();
    for (auto& one : given) objects += one.load_relaxed() != nullptr;
    for (auto& mine : joined) objects += mine.size();
    w.finish(objects, w.heap.counters().groups);
    for (auto& one : given)
        if (void* const left = one.load_relaxed(); left != nullptr) w.end(left);
    for (auto& mine : joined)
        for (void* const object : mine) w.end(object);
    for (void* const object : kept) w.end(object);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, groups_are_shared_while_their_thread_uses_them, 200)

// Property: between fork_prepare() and fork_parent() the heap is whole, whatever the other threads were about to do.
template <class P>
void a_fork_finds_a_whole_heap() {
    using threads = testing::threads_for<P>;
    world<P> w;
    std::vector<void*> made[2];
    for (auto& mine : made)
        threads::spawn("maker", [&] {
            mine.push_back(w.filled(w.heap.begin_group(64, usual, nullptr), 64));
            mine.push_back(w.filled(w.join(mine.back(), 120, usual), 120));
            w.end(mine.front());
            mine.erase(mine.begin());
        });
    threads::spawn("forker", [&] {
        w.heap.fork_prepare();
        const char* const broken = w.heap.validate();
        threads::require(broken == nullptr, broken);
        w.heap.fork_parent();
    });
    threads::run();
    w.finish(2, 2);
    for (auto& mine : made)
        for (void* const object : mine) w.end(object);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, a_fork_finds_a_whole_heap, 15, 2'000'000)

// Property: a hole that is found by one group is no less there for another: what a group looks for in vain says
// nothing of the others in the page, nor of chunks that become free meanwhile.
template <class P>
void searches_in_vain_meet_frees_by_other_groups() {
    using threads = testing::threads_for<P>;
    world<P> w;
    // A page that is full: two groups, of which one has its last object at the end.
    void* const mine = w.filled(w.heap.begin_group(1920, usual, nullptr), 1920);
    void* const theirs = w.filled(w.heap.begin_group(1024, usual, nullptr), 1024);
    void* const last = w.filled(w.join(theirs, 1024, usual), 1024);
    const auto page = [](void* object) { return reinterpret_cast<std::uintptr_t>(object) >> 12; };
    threads::require(page(mine) == page(theirs) && page(last) == page(mine), "one page");
    std::vector<void*> more;
    threads::spawn("searcher", [&] { more.push_back(w.filled(w.join(mine, 512, usual), 512)); });
    threads::spawn("freer", [&] { w.end(last); });
    threads::run();
    // The chunks are free now, and found whatever the search saw.
    more.push_back(w.filled(w.join(mine, 512, usual), 512));
    threads::require(page(more[1]) == page(mine),
                     "chunks that became free during a search are found");
    for (void* const object : more) w.end(object);
    w.end(mine);
    w.end(theirs);
    w.finish(0, 0);
}
IN_BOTH_WORLDS(near_schedules, searches_in_vain_meet_frees_by_other_groups, 200)

// Property: over a thing with an owner no two threads are in a section at once, also when two threads share it.
template <class P>
void one_thread_is_in_a_section() {
    using threads = testing::threads_for<P>;
    struct shared {
        biased_sections<P> sections;
        typename biased_sections<P>::owner_word owner;
        os::blocking_lock<P> lock;
        typename P::template atomic<unsigned> inside;
    } s;
    const auto look = [&] {
        threads::require(s.inside.exchange_acq_rel(1) == 0, "one thread at a time");
        s.inside.store_release(0);
    };
    const auto visit = [&] {
        if (s.sections.enter(s.owner)) {
            look();
            s.sections.leave();
            return;
        }
        s.sections.share(s.owner);
        s.lock.lock();
        look();
        s.lock.unlock();
    };
    // In two halves, as near_heap goes on at hand with what was its own before.
    const auto visit_at_hand = [&](bool& mine) {
        const unsigned me = thread_number<P>::of_caller();
        const auto in = s.sections.look_in(me);
        const bool stays = mine && !s.sections.is_wanted(in);
        if (stays)
            look();
        else if (mine)
            mine = s.sections.owns_after_all(*in.its, s.owner);
        if (!s.sections.leave_unless_waited_for(in)) s.sections.leave(in);
        if (!stays) visit();
    };
    threads::spawn("owner", [&] {
        s.owner.store_release(s.sections.owner_for_caller());
        bool mine = s.sections.enter(s.owner);
        if (mine) s.sections.leave();
        for (int i = 0; i < 3; ++i) visit_at_hand(mine);
    });
    for (int i = 0; i < 2; ++i)
        threads::spawn("other", [&] {
            if (s.owner.load_acquire() != 0) visit();
        });
    threads::spawn("forker", [&] {
        s.sections.stop();
        s.sections.let_go();
    });
    threads::run();
}
IN_BOTH_WORLDS(biased_sections, one_thread_is_in_a_section, 1'000)

// Property: while a fork stops all threads none goes in at hand, also one that has already given way to it and has met no
// section since that waits for its end.
template <class P>
void a_fork_finds_nobody_at_hand() {
    using threads = testing::threads_for<P>;
    struct shared {
        biased_sections<P> sections;
        typename biased_sections<P>::owner_word owner;
        typename P::template atomic<unsigned> inside;
    } s;
    threads::spawn("owner", [&] {
        const unsigned me = thread_number<P>::of_caller();
        s.owner.store_release(s.sections.owner_for_caller());
        bool mine = s.sections.enter(s.owner);
        if (mine) s.sections.leave();
        for (int i = 0; mine && i < 4; ++i) {
            const auto in = s.sections.look_in(me);
            if (s.sections.is_wanted(in)) {
                mine = s.sections.owns_after_all(*in.its, s.owner);
            } else {
                s.inside.store_release(1);
                s.inside.store_release(0);
            }
            s.sections.leave(in);
        }
    });
    threads::spawn("forker", [&] {
        s.sections.stop();
        for (int i = 0; i < 3; ++i)
            threads::require(s.inside.load_acquire() == 0, "no thread is in a section");
        s.sections.let_go();
    });
    threads::run();
}
IN_BOTH_WORLDS(biased_sections, a_fork_finds_nobody_at_hand, 1'000)

// As it is where a filter of system calls is set while the program runs.
struct losing_platform : testing::deterministic_platform {
    static inline bool lost = false; // no membarrier from here on
    static bool has_membarrier() noexcept {
        return !lost && deterministic_platform::has_membarrier();
    }
    static bool membarrier() noexcept { return !lost && deterministic_platform::membarrier(); }
};

} // namespace

template <>
struct thread_number<losing_platform> : thread_number<testing::deterministic_platform> {};

namespace {

// Property: a fork waits for sections over what got its owner while there was a membarrier. (Without stores that
// are kept back: how long those are is a matter of time then.)
TEST(biased_sections, a_fork_waits_for_owners_from_before_membarrier_was_lost) {
    using P = losing_platform;
    const testing::exploration e{.seeds = testing::scaled_schedules(300, 3'000, 30'000),
                                 .name = "lost",
                                 .memory = testing::memory_model::sequential};
    const testing::result r = testing::explore(e, [] {
        P::lost = false;
        struct shared {
            biased_sections<P> sections;
            biased_sections<P>::owner_word owner;
            P::atomic<unsigned> inside;
        } s;
        testing::spawn([&] {
            s.owner.store_release(s.sections.owner_for_caller());
            P::lost = true;
            for (int i = 0; i < 3; ++i) {
                if (!s.sections.enter(s.owner)) continue;
                s.inside.store_release(1);
                s.inside.store_release(0);
                s.sections.leave();
            }
        });
        testing::spawn([&] {
            s.sections.stop();
            testing::require(s.inside.load_acquire() == 0, "no thread is in a section");
            s.sections.let_go();
        });
        testing::run();
    });
    EXPECT_TRUE(r.ok) << r.report;
}

TEST(biased_sections, that_nest_are_reported) {
    const testing::result r = testing::explore({.seeds = 1, .name = "nest"}, [] {
        using P = testing::deterministic_platform;
        biased_sections<P> sections;
        testing::spawn([&] {
            (void)sections.enter();
            (void)sections.enter();
        });
        testing::run();
    });
    EXPECT_FALSE(r.ok);
    EXPECT_NE(r.failure.find("sections nest"), std::string::npos) << r.failure;
}

} // namespace
} // namespace obase::heap
