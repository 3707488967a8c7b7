// SPDX-License-Identifier: MIT
//
// Skip lists whose searches take no lock, under the deterministic scheduler: small scenes of
// insertions, erasures and searches that meet in all ways, in memory that is reused at once and
// whose every use after its end is a failure. What all indexes have in common is tested by
// index_test.cpp.
#include "crestdb/fraser_skip_list.hpp"
#include "crestdb/herlihy_skip_list.hpp"

#include "testing/deterministic.hpp"
#include "testing/linearizability.hpp"
#include "testing/tier.hpp"
#include "testing/tracked_heap.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace testing = obase::testing;
using testing::key_operation;

// Memory and epochs of one execution.
struct world {
    world() { here = this; }
    ~world() { here = nullptr; }

    struct retired {
        void* object;
        void (*destroy)(void*) noexcept;
        std::uint32_t scopes; // bit t: the scope of thread t that was open then
    };

    static unsigned self() { return testing::thread_index(); }
    unsigned enter() { return depth[self()]++; }
    void leave() {
        // What this thread has stored is visible before its scope's end is.
        if (depth[self()] == 1) fence.exchange_seq_cst(0);
        if (--depth[self()] != 0) return;
        for (retired& r : waiting) r.scopes &= ~(1u << self());
        for (std::size_t i = 0; i < waiting.size();) {
            if (waiting[i].scopes != 0) {
                ++i;
                continue;
            }
            const retired done = waiting[i];
            waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
            done.destroy(done.object); // other threads run meanwhile
            i = 0;
        }
    }
    void retire(void* object, void (*destroy)(void*) noexcept) {
        for (const retired& r : waiting)
            testing::require(r.object != object, "an object was retired twice");
        std::uint32_t scopes = 0;
        for (unsigned t = 0; t < depth.size(); ++t) scopes |= (depth[t] != 0 ? 1u : 0u) << t;
        waiting.push_back({object, destroy, scopes});
    }

    static inline world* here = nullptr;
    testing::tracked_heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    std::array<unsigned, testing::max_threads> depth{};
    std::vector<retired> waiting;
    testing::deterministic_atomic<std::uint64_t> fence;
    std::uint64_t clock = 0;                              // threads are fibers
    std::array<unsigned, testing::max_threads> heights{}; // 0: any
};

// obase::plain over the scheduler's atomics and the world's memory.
struct scheduled {
    using slot = testing::deterministic_atomic<obase::word::bits>;
    using bits = obase::word::bits;
    [[maybe_unused]] static constexpr const char* name = "scheduled";
    [[maybe_unused]] static constexpr bool moves_objects = false;
    struct scope {
        scope() { world::here->enter(); }
        ~scope() { world::here->leave(); }
    };

    static void* dereference(slot& s) noexcept {
        void* object = address(s.load_acquire());
        if (object != nullptr) testing::access(object, sizeof(obase::bytes), false);
        return object;
    }
    static const void* peek(const slot& s) noexcept { return address(s.load_acquire()); }
    static bits newborn(void* object) noexcept { return reinterpret_cast<bits>(object); }
    static void* address(bits word) noexcept { return reinterpret_cast<void*>(word); }
    static void construct(slot& s, bits word) noexcept { s.store_release(word); }
    static void* destroy(slot& s) noexcept { return address(s.load_acquire()); }
    static bits exchange(slot& s, bits word) noexcept { return s.exchange_acq_rel(word); }
    static bool compare_exchange(slot& s, void*& expected, bits word) noexcept {
        bits seen = reinterpret_cast<bits>(expected);
        const bool done = s.cas_acq_rel(seen, word);
        expected = address(seen);
        return done;
    }
    static void* allocate(std::size_t bytes, const obase::allocation&) noexcept {
        return world::here->heap.allocate(bytes, "object");
    }
    static void deallocate(void* object) noexcept { world::here->heap.free(object); }
    static std::size_t usable_size(const void*) noexcept { return 0; }
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t) noexcept {
        world::here->retire(object, destroy);
    }
    static bool in_scope() noexcept { return world::here->depth[world::self()] != 0; }
};

struct scheduled_surroundings {
    static void* allocate(std::size_t bytes) { return world::here->heap.allocate(bytes, "node"); }
    static void deallocate(void* memory, std::size_t) noexcept { world::here->heap.free(memory); }
    // Heights 1, 2 and 3, unless the scene says otherwise.
    static std::uint64_t random() noexcept {
        const unsigned fixed = world::here->heights[world::self()];
        return std::uint64_t{1} << (fixed != 0 ? fixed - 1 : testing::choose(3));
    }
    template <class T>
    using atomic = testing::deterministic_atomic<T>;
    static void wait(unsigned) noexcept { testing::deterministic_platform::pause(); }
};

template <class List>
class skip_list : public ::testing::Test {};
using lists = ::testing::Types<crestdb::fraser_skip_list<scheduled, scheduled_surroundings>,
                               crestdb::herlihy_skip_list<scheduled, scheduled_surroundings>>;
struct names {
    template <class List>
    static std::string GetName(int) {
        return List::name;
    }
};
TYPED_TEST_SUITE(skip_list, lists, names);

// The last one is greater than the head of a node that has been freed and overwritten, so a search
// for it goes on from there and is caught: heads are no atomics, and comparing them is not watched.
const char* const key_names[] = {"a", "b", "\xff\xff\xff\xff"};

// One operation, remembered.
struct recorder {
    using history = std::vector<testing::timed<key_operation>>;

    template <class List>
    void perform(List& l, unsigned key, key_operation::kind kind) {
        testing::timed<key_operation> o;
        const std::string_view name = key_names[key];
        const char stored = static_cast<char>(++values);
        const std::string_view value(&stored, 1);
        const auto saw = [&](std::string_view v) {
            testing::access(v.data(), 1, false);
            o.what.seen = static_cast<unsigned char>(v[0]);
        };
        o.what.what = kind;
        o.what.stored = static_cast<unsigned char>(stored);
        // A step: without it the call would be as early as the end of the operation before.
        world::here->fence.load_relaxed();
        o.call = ++world::here->clock;
        switch (kind) {
        case key_operation::get:
            o.what.result = l.get(name, saw);
            break;
        case key_operation::put:
            o.what.result = l.put(name, value);
            break;
        case key_operation::update:
            o.what.result = l.update(name, value);
            break;
        case key_operation::modify:
            o.what.result = l.modify(name, [&](std::string_view old) {
                saw(old);
                return value;
            });
            break;
        case key_operation::erase:
            o.what.result = l.erase(name);
            break;
        }
        o.returned = ++world::here->clock;
        histories[key].push_back(o);
    }

    // At the end, one thread left.
    template <class List>
    void check(List& l) {
        std::size_t present = 0;
        for (unsigned key = 0; key < histories.size(); ++key) {
            perform(l, key, key_operation::get);
            present += histories[key].back().what.result;
            if (!testing::linearizable(testing::key_state{}, histories[key]))
                testing::fail(std::string("not linearizable: key ") + key_names[key] + "\n" +
                              to_text(histories[key]));
        }
        testing::require(l.size() == present, "the size is right");
        std::string_view last = "";
        std::string copy;
        const std::size_t scanned = l.scan("", 10, [&](std::string_view k, std::string_view) {
            testing::require(k > last, "ascending");
            copy = k;
            last = copy;
        });
        testing::require(scanned == present, "the scan finds them all");
    }

    std::array<history, 3> histories;
    unsigned char values = 0;
};

// Runs the scene: `scene(list, recorder)` spawns threads; run() and what must hold at the end are
// done here, and no memory may be left.
template <class List, class Scene>
void explore(const testing::exploration& e, Scene&& scene) {
    const testing::result r = testing::explore(e, [&] {
        world w;
        {
            List l(1);
            recorder record;
            scene(l, record);
            testing::run();
            record.check(l);
        }
        testing::require(w.waiting.empty(), "what was retired was freed");
        testing::require(w.heap.live_blocks() == 0, "no memory is left");
    });
    EXPECT_TRUE(r.ok) << r.report;
}

template <class List, class Scene>
void explore(const char* name, std::uint64_t seeds, Scene&& scene) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        testing::exploration e;
        e.seeds = seeds;
        e.strategy = strategy;
        e.name = name;
        e.depth = 4;
        explore<List>(e, scene);
    }
}

std::uint64_t seeds(std::uint64_t ci) { return testing::scaled(ci, 100 * ci, 10'000 * ci); }

// An inserter links upper levels, or waits for locks, while the key is erased and put by others.
TYPED_TEST(skip_list, insertions_and_erasures_of_one_key) {
    explore<TypeParam>("one key", seeds(10'000), [](TypeParam& l, recorder& record) {
        testing::spawn([&] {
            record.perform(l, 1, key_operation::put);
            record.perform(l, 1, key_operation::get);
        });
        testing::spawn([&] {
            record.perform(l, 1, key_operation::erase);
            record.perform(l, 1, key_operation::put);
        });
        testing::spawn([&] {
            record.perform(l, 1, key_operation::put);
            record.perform(l, 1, key_operation::erase);
        });
    });
}

// For Fraser's: an inserter that is held up before it links level 1, until its node has been erased
// and is gone from level 0; and held up again behind that. A search that descended from the node
// would miss what was inserted since. A new node with the key comes to stand in front of it, where
// it has to be unlinked all the same. All schedules with two preemptions.
TYPED_TEST(skip_list, a_node_that_is_linked_late) {
    testing::exploration e;
    e.seeds = seeds(400'000);
    e.strategy = testing::strategy::bounded_exhaustive;
    e.preemptions = 2;
    e.memory = testing::memory_model::sequential;
    for (const auto last : {key_operation::get, key_operation::put}) {
        e.name = last == key_operation::get ? "late, read" : "late, again";
        explore<TypeParam>(e, [&](TypeParam& l, recorder& record) {
            world::here->heights = {0, 2, 1, 2};
            testing::spawn([&] { record.perform(l, 1, key_operation::put); });
            testing::spawn([&] {
                record.perform(l, 1, key_operation::erase);
                record.perform(l, 2, key_operation::put);
            });
            testing::spawn([&] { record.perform(l, last == key_operation::get ? 2 : 1, last); });
        });
    }
}

// One erasure, one insertion and one operation of each kind on a key that is there, all schedules
// with two preemptions.
TYPED_TEST(skip_list, three_operations_on_one_key) {
    using kind = key_operation::kind;
    for (const kind third : {kind::get, kind::put, kind::update, kind::modify, kind::erase}) {
        testing::exploration e;
        e.seeds = seeds(400'000);
        e.strategy = testing::strategy::bounded_exhaustive;
        e.preemptions = 2;
        e.memory = testing::memory_model::sequential;
        e.name = "three, " + std::to_string(third);
        explore<TypeParam>(e, [&](TypeParam& l, recorder& record) {
            world::here->heights = {2, 2, 2, 2};
            record.perform(l, 1, kind::put);
            testing::spawn([&] { record.perform(l, 1, kind::erase); });
            testing::spawn([&] { record.perform(l, 1, kind::put); });
            testing::spawn([&] { record.perform(l, 1, third); });
        });
    }
}

// A key that is erased and inserted again, with neighbours on both sides that are erased too, and a
// reader: what it stands on may be long out of the lower levels.
TYPED_TEST(skip_list, a_reader_among_erasures) {
    explore<TypeParam>("reader", seeds(10'000), [](TypeParam& l, recorder& record) {
        for (const unsigned key : {0u, 1u, 2u}) record.perform(l, key, key_operation::put);
        testing::spawn([&] {
            record.perform(l, 0, key_operation::erase);
            record.perform(l, 1, key_operation::erase);
            record.perform(l, 1, key_operation::put);
        });
        testing::spawn([&] {
            record.perform(l, 1, key_operation::get);
            record.perform(l, 2, key_operation::get);
            record.perform(l, 1, key_operation::get);
        });
        testing::spawn([&] {
            record.perform(l, 0, key_operation::put);
            record.perform(l, 2, key_operation::erase);
        });
    });
}

// Everything at once, chosen by the scheduler.
TYPED_TEST(skip_list, any_operations) {
    explore<TypeParam>("any", seeds(20'000), [](TypeParam& l, recorder& record) {
        if (testing::choose(2) != 0) record.perform(l, 1, key_operation::put);
        for (int t = 0; t < 3; ++t) {
            testing::spawn([&] {
                for (int i = 0; i < 3; ++i)
                    record.perform(l, testing::choose(2),
                                   static_cast<key_operation::kind>(testing::choose(5)));
            });
        }
    });
}

// The scan sees what is there all the time, once and in order, whatever comes and goes around it.
TYPED_TEST(skip_list, scans_among_erasures) {
    explore<TypeParam>("scan", seeds(5'000), [](TypeParam& l, recorder& record) {
        for (const unsigned key : {0u, 1u, 2u}) record.perform(l, key, key_operation::put);
        testing::spawn([&] {
            std::string last;
            bool stays = false;
            l.scan("", 10, [&](std::string_view key, std::string_view value) {
                testing::access(key.data(), key.size(), false);
                testing::access(value.data(), value.size(), false);
                testing::require(key > last, "ascending, none twice");
                last = key;
                stays = stays || key == key_names[1];
            });
            testing::require(stays, "the scan missed a key that was there all the time");
        });
        testing::spawn([&] {
            record.perform(l, 0, key_operation::erase);
            record.perform(l, 0, key_operation::put);
        });
        testing::spawn([&] {
            record.perform(l, 2, key_operation::erase);
            record.perform(l, 1, key_operation::put); // a new value
            record.perform(l, 2, key_operation::put);
        });
    });
}

} // namespace
