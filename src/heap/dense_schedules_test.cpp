// SPDX-License-Identifier: MIT
//
// dense_heap's own text under the deterministic scheduler, and on threads: frees by any thread against the
// collector, which fills runs, undoes, and uses runs again.
//
// Four objects fill a run, two a long run, and the heap has two of either. The oracle is the test's: which
// objects are there, and how large each is.
#include "heap/dense_functions.hpp"

#include "heap/schedules_test.hpp"
#include "os/memory.hpp"
#include "testing/native_threads.hpp"

#include <array>
#include <cstdint>
#include <cstring>
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

template <class P>
class world {
    using threads = testing::threads_for<P>;

  public:
    explicit world(std::size_t bytes = 2 * run_bytes) : bytes_(bytes) {
        base_ = static_cast<char*>(os::reserve(bytes_, run_bytes));
        const char* what = "";
        threads::require(base_ != nullptr &&
                             dense.create(base_, bytes_, nullptr, poisoning::none, &what) == 0,
                         "a heap");
    }
    ~world() {
        dense.destroy();
        os::release(base_, bytes_);
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    // By the collector.
    void* make(std::size_t size) {
        void* const object = dense.allocate(size, 0);
        threads::require(object != nullptr, "there is room");
        return object;
    }
    void return_memory() {
        pacer goes_on;
        dense.decommit_free_memory(goes_on);
    }
    // When all threads have ended.
    void finish(std::size_t objects, std::size_t bytes) {
        const dense_counters now = dense.counters();
        threads::require(now.live_objects == objects, "as many objects as are there");
        threads::require(now.live_bytes == bytes, "as many bytes as they have");
        const char* const broken = dense.validate();
        threads::require(broken == nullptr, broken);
    }

    dense_heap<P> dense;

  private:
    std::size_t bytes_;
    char* base_ = nullptr;
};

// Property: the thread that frees the last object of a run that is being filled finds its end, while objects
// are put behind it, and taken back.
template <class P>
void frees_meet_filling() {
    using threads = testing::threads_for<P>;
    world<P> w;
    void* const first = w.make(104);
    threads::spawn("freer", [&] {
        threads::require(w.dense.size_of(first) == 104, "where the object ends");
        w.dense.free(first);
    });
    threads::spawn("collector", [&] {
        w.dense.undo(w.make(48));
        w.make(8);
        w.make(16);
    });
    threads::run();
    w.finish(2, 24);
}
IN_BOTH_WORLDS(dense_schedules, frees_meet_filling, 3'400)

// Property: a run is used again when its last object is gone, and not before.
template <class P>
void frees_meet_runs_that_are_used_again() {
    using threads = testing::threads_for<P>;
    constexpr std::size_t size = run_bytes / 4, per_run = 4;
    world<P> w;
    std::array<void*, per_run> objects;
    for (void*& object : objects) object = w.make(size);
    w.make(size); // seals the first run
    typename P::template atomic<std::uint32_t> freed;
    for (const std::size_t number : {std::size_t{0}, std::size_t{1}})
        threads::spawn("freer", [&, number] {
            for (std::size_t i = number; i < per_run; i += 2) {
                // Before the free: then the run may be used again at once.
                freed.fetch_add_acq_rel(1);
                w.dense.free(objects[i]);
            }
        });
    std::size_t made = 1;
    threads::spawn("collector", [&] {
        for (int window = 0; window < 3; ++window) {
            w.return_memory();
            const std::size_t first_run = reinterpret_cast<std::uintptr_t>(objects[0]) >> run_shift;
            // The second run has room for three more: what follows lies in the first.
            for (int i = 0; i < 4 && made < 2 * per_run; ++i) {
                void* const object = w.dense.allocate(size, 0);
                if (object == nullptr) break;
                ++made;
                if (reinterpret_cast<std::uintptr_t>(object) >> run_shift == first_run)
                    threads::require(freed.load_acquire() == per_run,
                                     "no object is put where another is");
            }
        }
    });
    threads::run();
    w.finish(made, made * size);
}
IN_BOTH_WORLDS(dense_schedules, frees_meet_runs_that_are_used_again, 3'400)

// Property: the same of a long run, whose memory is used for long and for other runs; and an object in it has
// its size until it is freed.
template <class P>
void frees_meet_long_runs_that_are_used_again() {
    using threads = testing::threads_for<P>;
    constexpr std::size_t size = 110 << 10, small = run_bytes / 4;
    constexpr std::size_t long_run = dense_heap<P>::long_run_bytes;
    world<P> w(2 * long_run);
    std::array<void*, 2> objects;
    for (void*& object : objects) object = w.make(size);
    w.make(size); // seals the first run
    typename P::template atomic<std::uint32_t> freed;
    for (void* const object : objects)
        threads::spawn("freer", [&, object] {
            threads::require(w.dense.size_of(object) == size, "where the object ends");
            freed.fetch_add_acq_rel(1); // before the free: then the run may be used again at once
            w.dense.free(object);
        });
    std::size_t made = 1, made_small = 0;
    threads::spawn("collector", [&] {
        const auto lies_in_first = [&](void* object) {
            return reinterpret_cast<std::uintptr_t>(object) -
                       reinterpret_cast<std::uintptr_t>(objects[0]) <
                   2 * size;
        };
        for (int window = 0; window < 3; ++window) {
            w.return_memory();
            void* const other = w.dense.allocate(small, 0);
            made_small += other != nullptr;
            void* const object = w.dense.allocate(size, 0);
            made += object != nullptr;
            for (void* const one : {other, object})
                if (one != nullptr && lies_in_first(one))
                    threads::require(freed.load_acquire() == objects.size(),
                                     "no object is put where another is");
        }
    });
    threads::run();
    w.finish(made + made_small, made * size + made_small * small);
}
IN_BOTH_WORLDS(dense_schedules, frees_meet_long_runs_that_are_used_again, 3'400)

// Property: what two threads give birth to lies nowhere else, neither in what the collector fills nor in a run whose
// memory goes back just then, and keeps its bytes; and the collector is told of each run once.
template <class P>
void births_meet_the_collector() {
    using threads = testing::threads_for<P>;
    constexpr std::size_t size = run_bytes / 4, each = 6;
    world<P> w(11 * run_bytes);
    w.dense.allow_births(UINT64_MAX);
    std::array<void*, 4> dead;
    for (void*& object : dead) object = w.make(size);
    std::memset(dead[0], 1, 4 * size);
    void* const kept = w.make(size); // seals the first run
    for (void* const object : dead) w.dense.free(object);
    std::array<std::array<unsigned char*, each>, 2> born{};
    for (std::size_t number = 0; number < born.size(); ++number)
        threads::spawn("births", [&, number] {
            for (unsigned char*& object : born[number]) {
                bool opened = false;
                object = static_cast<unsigned char*>(w.dense.allocate_born(size, 0, &opened));
                threads::require(object != nullptr, "there is room");
                std::memset(object, static_cast<int>(number) + 2, size);
            }
            w.dense.free(born[number].front());
        });
    std::array<void*, 5> moved{}; // in a run that has room for three, and in another
    std::size_t told = 0;
    const auto take = [&] {
        w.dense.take_births(birth_news::memory, [&](char* begin, char* end) {
            told += static_cast<std::size_t>(end - begin);
        });
    };
    threads::spawn("collector", [&] {
        w.return_memory();
        for (void*& object : moved) {
            object = w.make(size);
            std::memset(object, 9, size);
            take();
        }
        w.return_memory();
    });
    threads::run();
    for (std::size_t number = 0; number < born.size(); ++number)
        for (std::size_t i = 1; i < each; ++i)
            for (const std::size_t at : {std::size_t{0}, size - 1}) {
                threads::require(born[number][i][at] == number + 2, "what is born keeps its bytes");
                threads::require(w.dense.size_of(born[number][i]) == size, "and its size");
            }
    for (void* const object : moved)
        threads::require(*static_cast<unsigned char*>(object) == 9, "what has moved, too");
    take();
    // Twelve of four to a run, in two runs of each thread; or in three that they share, or one has after the other.
    threads::require(told == 2 * run_bytes, "two runs have no room left");
    threads::require(w.dense.births_in_memory() == 0, "and nothing is left to be told");
    std::size_t seen = 0;
    w.dense.take_births(birth_news::window, [&](char*, char*) { ++seen; });
    threads::require(seen == 3 || seen == 4, "all were born in");
    threads::require(kept != nullptr, "");
    w.finish(1 + 5 + 10, 16 * size);
}
IN_BOTH_WORLDS(dense_schedules, births_meet_the_collector, 2'000)

// Property: what is counted is never more than what was born, nor less than what will stay, whatever is freed of a run while
// its thread fills and seals it; a checked free finds what lives, and a fork finds a whole heap.
template <class P>
void births_meet_frees_and_counts() {
    using threads = testing::threads_for<P>;
    constexpr std::size_t size = run_bytes / 4, each = 6;
    world<P> w(8 * run_bytes);
    w.dense.allow_births(UINT64_MAX);
    std::array<typename P::template atomic<void*>, each> born;
    threads::spawn("births", [&] {
        for (auto& object : born) {
            bool opened = false;
            object.store_release(w.dense.allocate_born(size, 0, &opened));
        }
    });
    std::size_t freed = 0;
    threads::spawn("freer", [&] {
        for (const std::size_t i : {0U, 1U, 4U})
            if (void* const object = born[i].load_acquire(); object != nullptr) {
                threads::require(i == 1 ? w.dense.free_checked(object) == free_result::done
                                        : (w.dense.free(object), true),
                                 "what lives can be freed");
                ++freed;
            }
    });
    threads::spawn("counter", [&] {
        for (std::size_t run = 0; run < w.dense.runs(); ++run)
            threads::require(w.dense.bytes_in_run(run) <= run_bytes &&
                                 w.dense.objects_in_run(run) <= 4,
                             "no more lives in a run than there is room for");
        w.dense.fork_prepare();
        const char* const broken = w.dense.validate();
        threads::require(broken == nullptr, broken);
        const auto filled = [&] {
            std::size_t bytes = 0;
            w.dense.walk_extents(
                [](void* sum, char* begin, char* end) {
                    *static_cast<std::size_t*>(sum) += static_cast<std::size_t>(end - begin);
                },
                &bytes);
            return bytes;
        };
        const std::size_t before = filled();
        for (int i = 0; i < 3; ++i)
            threads::require(filled() == before, "nothing is born while a fork stops all threads");
        w.dense.fork_parent();
        const dense_counters now = w.dense.counters();
        threads::require(now.live_objects <= each && now.live_bytes <= each * size,
                         "no more lives than was born");
    });
    threads::run();
    w.finish(each - freed, (each - freed) * size);
}
IN_BOTH_WORLDS(dense_schedules, births_meet_frees_and_counts, 3'400)

// Property: no more runs are opened than births may, and none where there is no room; then births end until they are
// allowed again.
TEST(dense_births, are_as_many_as_are_allowed) {
    using P = os::native_platform;
    constexpr std::size_t size = run_bytes / 4;
    world<P> w(3 * run_bytes);
    bool opened = false;
    EXPECT_EQ(w.dense.allocate_born(size, 0, &opened), nullptr) << "not at first";
    EXPECT_EQ(w.dense.allow_births(2 * run_bytes), 0u);
    for (int i = 0; i < 8; ++i) {
        ASSERT_NE(w.dense.allocate_born(size, 0, &opened), nullptr);
        EXPECT_EQ(opened, i % 4 == 0);
        EXPECT_EQ(w.dense.births_allowed(), i < 4 ? run_bytes : 0);
    }
    EXPECT_EQ(w.dense.allocate_born(size, 0, &opened), nullptr);
    EXPECT_FALSE(opened);
    EXPECT_EQ(w.dense.allocate_born(max_small_size + 8, 0, &opened), nullptr) << "too large";
    EXPECT_EQ(w.dense.allow_births(UINT64_MAX), 0u);
    for (int i = 0; i < 4; ++i) ASSERT_NE(w.dense.allocate_born(size, 0, &opened), nullptr);
    EXPECT_EQ(w.dense.births_allowed(), UINT64_MAX);
    EXPECT_EQ(w.dense.allocate_born(size, 0, &opened), nullptr) << "no room";
    EXPECT_EQ(w.dense.births_allowed(), 0u);
    w.finish(12, 12 * size);
}

} // namespace
} // namespace obase::heap
