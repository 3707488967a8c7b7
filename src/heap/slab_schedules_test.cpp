// SPDX-License-Identifier: MIT
//
// slab_heap's own text under the deterministic scheduler, and on threads: frees by other threads, ends of
// threads, closed runs and memory that goes back, each against the others.
//
// Objects are so large that four fill a run, and the heap has four runs. The oracle is the test's: a word for
// each place says whether an object is there, and the object's bytes say which. When all threads have ended,
// every place can be allocated, once.
#include "heap/slab_functions.hpp"

#include "heap/schedules_test.hpp"
#include "os/memory.hpp"
#include "testing/native_threads.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace obase::heap {

using testing::deterministic_platform;

// The pointers of virtual threads: one world at a time, with one space. A thread with the number of one
// that ran before goes on as that thread, unless it has ended.
template <>
struct thread_memory<deterministic_platform> {
    using heap_pointer = thread_heap<deterministic_platform>*;
    static inline std::array<heap_pointer, testing::max_threads> pointers;

    static heap_pointer& heap(unsigned) noexcept { return pointers[testing::thread_index()]; }
    static bool arm_exit() noexcept { return true; }
    // All threads are new to a heap that begins.
    static void enrol(unsigned, slab_heap<deterministic_platform>*) noexcept {
        pointers.fill(&empty_thread_heap<deterministic_platform>);
    }
};

namespace {

constexpr std::size_t object_bytes = max_small_size, per_run = run_bytes / object_bytes;
constexpr std::size_t runs = 4, places = runs * per_run;
constexpr unsigned set_of_test = 0;
// On threads: no space has this one in the process of this test.
constexpr unsigned slot_of_test = max_spaces - 1;

template <class P>
class world {
    using threads = testing::threads_for<P>;

  public:
    world() {
        base_ = static_cast<char*>(os::reserve(runs * run_bytes, run_bytes));
        threads::require(base_ != nullptr && slabs.create(base_, runs * run_bytes, slot_of_test,
                                                          false, poisoning::none),
                         "a heap");
    }
    ~world() {
        slabs.destroy();
        os::release(base_, runs * run_bytes);
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    // A thread that uses the heap, and ends.
    template <class Body>
    void user(const char* name, Body body) {
        threads::spawn(name, [this, body] {
            body();
            slabs.thread_exit();
        });
    }

    // SIZE_MAX: there is no room at present.
    std::size_t make() {
        std::array<bool, runs> was_shut;
        for (std::size_t run = 0; run < runs; ++run) was_shut[run] = shut_[run].load_acquire() != 0;
        char* const object = static_cast<char*>(slabs.allocate(object_bytes, set_of_test));
        if (object == nullptr) return SIZE_MAX;
        const auto at = static_cast<std::size_t>(object - base_) / object_bytes;
        threads::require(at < places && object == base_ + at * object_bytes, "a place");
        threads::require(!was_shut[at / per_run] || shut_[at / per_run].load_acquire() == 0,
                         "nothing is allocated from a closed run");
        threads::require(held_[at].exchange_acq_rel(1) == 0, "a place is handed out once");
        std::memcpy(object + object_bytes - sizeof at, &at, sizeof at);
        std::memcpy(object + sizeof at, &at, sizeof at);
        return at;
    }
    void end(std::size_t at) {
        if (at == SIZE_MAX) return;
        check(at);
        threads::require(held_[at].exchange_acq_rel(0) == 1, "an object is freed once");
        slabs.free(base_ + at * object_bytes);
    }
    // Close what can be closed, and open it again.
    void empty_runs() {
        slabs.close_runs(slabs.runs(), [](void*, std::size_t) { return true; }, nullptr);
        std::vector<std::uint32_t> closed;
        for (std::uint32_t run = 0; run < slabs.runs(); ++run) {
            if (!slabs.closed(run)) continue;
            closed.push_back(run);
            shut_[run].store_seq_cst(1);
        }
        for (const std::uint32_t run : closed) shut_[run].store_seq_cst(0);
        pacer goes_on;
        slabs.open_runs(closed.data(), closed.size(), goes_on);
    }
    void return_memory() {
        pacer goes_on;
        slabs.decommit_free_memory(goes_on);
    }

    // When all threads have ended.
    void finish() {
        std::size_t held = 0;
        for (std::size_t at = 0; at < places; ++at) {
            if (held_[at].load_relaxed() == 0) continue;
            check(at);
            ++held;
        }
        require_valid();
        threads::require(slabs.counters().live_objects == held, "as many objects as are counted");
        while (make() != SIZE_MAX) ++held;
        threads::require(held == places, "no place is lost");
        require_valid();
    }

    slab_heap<P> slabs;

  private:
    void check(std::size_t at) const {
        for (const std::size_t offset : {sizeof at, object_bytes - sizeof at}) {
            std::size_t found;
            std::memcpy(&found, base_ + at * object_bytes + offset, sizeof found);
            threads::require(found == at, "an object keeps its bytes");
        }
    }
    void require_valid() const {
        const char* const broken = slabs.validate();
        threads::require(broken == nullptr, broken);
    }

    char* base_ = nullptr;
    typename P::template atomic<std::uint32_t> held_[places];
    typename P::template atomic<std::uint32_t> shut_[runs]; // closed, for certain
};

// A heap in which thread 1 has made `count` objects; they are at the places 0, 1, ... of their runs.
template <class P>
std::vector<std::size_t> made_by_thread_1(world<P>& w, std::size_t count) {
    std::vector<std::size_t> made;
    testing::threads_for<P>::spawn("maker", [&] {
        for (std::size_t i = 0; i < count; ++i) made.push_back(w.make());
    });
    testing::threads_for<P>::run();
    return made;
}

// Property: what other threads free comes back to a thread that allocates from the run at the same time, or
// gives it up because it is full.
template <class P>
void frees_by_others_meet_the_owner() {
    using threads = testing::threads_for<P>;
    world<P> w;
    const std::vector<std::size_t> made = made_by_thread_1(w, 3);
    w.user("owner", [&] {
        for (int i = 0; i < 3; ++i) w.make();
    });
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}})
        threads::spawn("freer", [&, first] {
            for (std::size_t i = first; i < made.size(); i += 2) {
                w.end(made[i]);
                w.slabs.thread_exit(); // gives back what it has at hand
            }
        });
    threads::run();
    w.finish();
}
IN_BOTH_WORLDS(slab_schedules, frees_by_others_meet_the_owner, 2'000)

// Property: a run is lost neither to a thread's end nor to frees at the same time, whether it is full, partly
// used or empty then.
template <class P>
void frees_meet_the_end_of_the_owner() {
    using threads = testing::threads_for<P>;
    world<P> w;
    const std::vector<std::size_t> made =
        made_by_thread_1(w, per_run + 1 + threads::choose(per_run));
    w.user("owner", [&] { w.end(made[0]); });
    threads::spawn("freer", [&] {
        for (std::size_t i = 1; i < made.size(); ++i) {
            w.end(made[i]);
            w.slabs.thread_exit();
        }
    });
    w.user("maker", [&] {
        for (int i = 0; i < 3; ++i) w.make();
    });
    threads::run();
    w.finish();
}
IN_BOTH_WORLDS(slab_schedules, frees_meet_the_end_of_the_owner, 2'000)

// Property: from a closed run nothing is allocated, and what is freed in it is there when it is opened.
template <class P>
void closing_meets_frees_and_allocation() {
    using threads = testing::threads_for<P>;
    world<P> w;
    const std::vector<std::size_t> made = made_by_thread_1(w, 2 * per_run + 1);
    w.user("owner", [&] {
        for (int i = 0; i < 2; ++i) w.make();
    });
    threads::spawn("freer", [&] {
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}, per_run}) {
            w.end(made[i]);
            w.slabs.thread_exit();
        }
    });
    w.user("collector", [&] { w.empty_runs(); });
    threads::run();
    w.finish();
}
IN_BOTH_WORLDS(slab_schedules, closing_meets_frees_and_allocation, 2'000)

// Property: memory goes back only from under free places, be it whole runs or pages of runs that live on, and
// each place is there again for who wants it.
template <class P>
void returning_memory_meets_frees_and_allocation() {
    using threads = testing::threads_for<P>;
    world<P> w;
    std::vector<std::size_t> made = made_by_thread_1(w, 2 * per_run);
    // Most of what is in both runs is gone, and they lie where all threads take them from.
    w.user("owner", [&] {
        for (std::size_t i = 0; i < made.size(); ++i)
            if (i % per_run != 1) w.end(made[i]);
    });
    threads::run();
    w.user("freer", [&] {
        w.end(made[1]);
        w.slabs.thread_exit();
        w.end(w.make());
    });
    w.user("maker", [&] {
        for (int i = 0; i < 2; ++i) w.make();
    });
    w.user("collector", [&] {
        for (int i = 0; i < 3; ++i) w.return_memory();
    });
    threads::run();
    w.finish();
}
IN_BOTH_WORLDS(slab_schedules, returning_memory_meets_frees_and_allocation, 1'000)

// Blocks that the calling thread has at hand.
template <class P>
std::size_t at_hand() {
    std::size_t blocks = 0;
    slab_detail::for_each_used_bin(
        *thread_memory<P>::heap(slot_of_test),
        [&](thread_bin<P>& bin, unsigned) { blocks += bin.count.load_relaxed(); });
    return blocks;
}

// Property: a flush for a thread that is offline leaves alone what another one has at hand, though the thread ends
// meanwhile and the other one gets its heap.
template <class P>
void a_flush_spares_the_heap_s_next_thread() {
    using threads = testing::threads_for<P>;
    world<P> w;
    typename P::template atomic<thread_heap<P>**> of_first;
    typename P::template atomic<std::uint32_t> flushed;
    threads::spawn("first", [&] {
        w.end(w.make());
        of_first.store_release(&thread_memory<P>::heap(slot_of_test));
        w.slabs.thread_exit();
        while (flushed.load_acquire() == 0) P::yield(); // its memory stays
    });
    threads::spawn("collector", [&] {
        while (of_first.load_acquire() == nullptr) P::yield();
        w.slabs.flush_movable(*of_first.load_acquire());
        flushed.store_release(1);
    });
    w.user("next", [&] {
        while (of_first.load_acquire() == nullptr) P::yield();
        w.end(w.make());
        const std::size_t before = at_hand<P>();
        P::yield();
        threads::require(at_hand<P>() == before, "nobody takes what a running thread has at hand");
    });
    threads::run();
    w.finish();
}
IN_BOTH_WORLDS(slab_schedules, a_flush_spares_the_heap_s_next_thread, 2'000)

} // namespace
} // namespace obase::heap
