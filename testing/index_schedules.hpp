// SPDX-License-Identifier: MIT
//
// Indexes of CrestDB under the deterministic scheduler: a protocol whose words, scopes, memory and
// mover are all steps of the schedule, and a recorder that asks whether what the operations
// returned is what they return in some order.
//
// Scheduled_protocol<word_kind::plain> is obase::plain, scheduled_protocol< word_kind::arming> is
// obase::arming with everything around the word reduced to what can be seen: a set of slots for
// SODA, a bit per thread for scopes, and a mover that arms, waits, copies and publishes between any
// two steps of the operations, slots inside of objects included (R11). Memory is a tracked_heap
// that reuses addresses at once, so what is used after its end is a failure.
//
//     using protocol = testing::scheduled_protocol<testing::word_kind::arming>;
//     using table = crestdb::harris_hash_table<protocol, testing::scheduled_surroundings>;
//     testing::explore_index<table>(e, 1, {"a", "b"}, [](table& t, auto& record) {
//         testing::spawn([&] { record.perform(t, 0, testing::key_operation::put); });
//         testing::spawn_mover<protocol>();
//     });
//
// Nodes that an index takes from elsewhere than its surroundings, and retires, end with the execution:
// their use after that is not noticed, that of what they own is.
//
// It does not test the protocols: scopes begin and end at once here, and the mover is one that
// keeps its rules. src/mobility tests those.
#pragma once

#include "testing/deterministic.hpp"
#include "testing/linearizability.hpp"
#include "testing/tier.hpp"
#include "testing/tracked_heap.hpp"

#include <obase/allocation_options.hpp>
#include <obase/bytes.hpp>
#include <obase/word/arming.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace obase::testing {

enum class word_kind { plain, arming };

// Memory, scopes and slots of one execution.
struct scheduled_world {
    using slot = deterministic_atomic<word::bits>;

    scheduled_world() { here = this; }
    ~scheduled_world() { here = nullptr; }

    static unsigned self() { return thread_index(); }
    void enter() {
        if (depth[self()]++ == 0) ++begun[self()];
    }
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
            if (!heap.live(done.object)) {
                elsewhere.push_back(done);
                continue;
            }
            done.destroy(done.object); // other threads run meanwhile
            i = 0;
        }
    }
    // At the end, one thread left.
    void end_elsewhere() {
        for (const retired& r : elsewhere) r.destroy(r.object);
        elsewhere.clear();
    }
    void retire(void* object, void (*destroy)(void*) noexcept) {
        // What unlinked it is visible before: retire() pushes by a compare-exchange.
        fence.exchange_seq_cst(0);
        for (const auto* list : {&waiting, &elsewhere})
            for (const retired& r : *list)
                require(r.object != object, "an object was retired twice");
        std::uint32_t scopes = 0;
        for (unsigned t = 0; t < depth.size(); ++t) scopes |= (depth[t] != 0 ? 1u : 0u) << t;
        waiting.push_back({object, destroy, scopes});
    }

    void* allocate(std::size_t bytes) {
        bytes = (bytes + 7) & ~std::size_t{7};
        void* object = heap.allocate(bytes, "object");
        objects[object] = bytes;
        return object;
    }
    void deallocate(void* object) {
        objects.erase(object);
        heap.free(object);
    }

    // One round of the collector: arm, wait, copy, publish, free.
    void move_everything() {
        ++window;
        std::vector<std::pair<slot*, word::bits>> candidates;
        for (slot* s : std::vector<slot*>(slots.begin(), slots.end())) {
            if (!begin_visit(s)) continue;
            const word::bits seen = s->load_acquire();
            if (!word::arming::is_null(seen) && word::arm(*s, seen, window))
                candidates.emplace_back(
                    s, word::arming::make_armed(word::arming::address(seen), window));
            visited = nullptr;
        }
        deterministic_platform::membarrier();
        const auto depth_then = depth;
        const auto begun_then = begun;
        for (unsigned t = 0; t < depth.size(); ++t)
            while (depth_then[t] != 0 && depth[t] != 0 && begun[t] == begun_then[t])
                deterministic_platform::pause();
        for (const auto& [s, seen] : candidates) move(s, seen);
    }

    static inline scheduled_world* here = nullptr;
    tracked_heap heap{{.reuse = address_reuse::last_freed_first}};
    std::set<slot*> slots;                 // what SODA knows; none under the plain word
    static inline std::uint64_t moves = 0; // of all executions

    struct retired {
        void* object;
        void (*destroy)(void*) noexcept;
        std::uint32_t scopes; // bit t: the scope of thread t that was open then
    };
    std::vector<retired> waiting;
    std::vector<retired> elsewhere; // not in the heap
    std::array<unsigned, max_threads> depth{};
    std::array<std::uint64_t, max_threads> begun{}; // outermost scopes
    deterministic_atomic<std::uint64_t> fence;
    const slot* visited = nullptr; // the mover's hazard

  private:
    bool begin_visit(slot* s) {
        if (slots.count(s) == 0) return false;
        visited = s; // no step in between
        return true;
    }
    void move(slot* s, word::bits seen) {
        void* source = reinterpret_cast<void*>(word::arming::address(seen));
        const auto at = objects.find(source);
        if (at == objects.end()) return; // freed since
        const std::size_t size = at->second;
        void* target = allocate(size);
        racy_copy(target, source, size);
        bool done = false;
        if (begin_visit(s)) {
            const auto inside = slots_in(source, size);
            const auto shifted = [&](slot* from) {
                return reinterpret_cast<slot*>(
                    static_cast<char*>(target) +
                    (reinterpret_cast<char*>(from) - static_cast<char*>(source)));
            };
            for (slot* from : inside) slots.insert(shifted(from));
            done = word::publish(
                *s, seen, word::arming::make_armed(reinterpret_cast<word::bits>(target), window));
            for (slot* from : inside) slots.erase(done ? from : shifted(from));
            visited = nullptr;
        }
        moves += done;
        deallocate(done ? source : target);
    }
    std::vector<slot*> slots_in(void* object, std::size_t size) {
        return {slots.lower_bound(static_cast<slot*>(object)),
                slots.lower_bound(reinterpret_cast<slot*>(static_cast<char*>(object) + size))};
    }

    std::map<void*, std::size_t> objects; // that live
    std::uint64_t window = 1;
};

template <word_kind Kind>
struct scheduled_protocol {
    using slot = scheduled_world::slot;
    using bits = word::bits;
    using layout = word::arming;
    static constexpr bool arms = Kind == word_kind::arming;
    [[maybe_unused]] static constexpr const char* name = arms ? "scheduled arming" : "scheduled";
    [[maybe_unused]] static constexpr bool moves_objects = arms;

    struct scope {
        scope() { scheduled_world::here->enter(); }
        ~scope() { scheduled_world::here->leave(); }
    };
    static bool in_scope() noexcept {
        return scheduled_world::here->depth[scheduled_world::self()] != 0;
    }

    static void* dereference(slot& s) noexcept {
        void* object = arms ? address(word::touch(s).address) : address(s.load_acquire());
        if (object != nullptr) access(object, sizeof(bytes), false);
        return object;
    }
    static const void* peek(const slot& s) noexcept { return address(s.load_acquire()); }
    static bits newborn(void* object) noexcept {
        const auto plain = reinterpret_cast<bits>(object);
        return arms && object != nullptr ? layout::make_born(plain) : plain;
    }
    static void* address(bits word) noexcept {
        return reinterpret_cast<void*>(layout::address(word));
    }
    static void construct(slot& s, bits word) noexcept {
        s.store_release(word);
        if (arms) scheduled_world::here->slots.insert(&s);
    }
    static void* destroy(slot& s) noexcept {
        if (arms) {
            scheduled_world::here->slots.erase(&s);
            while (scheduled_world::here->visited == &s) deterministic_platform::pause();
        }
        return address(s.load_acquire());
    }
    static bits exchange(slot& s, bits word) noexcept {
        return arms ? word::replace(s, word) : s.exchange_acq_rel(word);
    }
    static bool compare_exchange(slot& s, void*& expected, bits word) noexcept {
        bits seen = reinterpret_cast<bits>(expected);
        const bool done = arms ? word::compare_replace(s, seen, word) : s.cas_acq_rel(seen, word);
        expected = address(seen);
        return done;
    }
    static void* allocate(std::size_t size, const allocation_options&) noexcept {
        return scheduled_world::here->allocate(size);
    }
    static void deallocate(void* object) noexcept { scheduled_world::here->deallocate(object); }
    static std::size_t usable_size(const void*) noexcept { return 0; }
    static void retire(void* object, void (*end)(void*) noexcept, std::size_t) noexcept {
        scheduled_world::here->retire(object, end);
    }
};

// What the indexes' own `Surroundings` are for.
struct scheduled_surroundings {
    template <class T>
    using atomic = deterministic_atomic<T>;
    static void* allocate(std::size_t bytes) {
        return scheduled_world::here->heap.allocate(bytes, "node");
    }
    static void* allocate_or_null(std::size_t bytes) noexcept { return allocate(bytes); }
    static void deallocate(void* memory, std::size_t) noexcept {
        scheduled_world::here->heap.free(memory);
    }
    static void wait(unsigned) noexcept { deterministic_platform::pause(); }
    class spin_lock {
      public:
        void lock() noexcept {
            while (held_.exchange_acq_rel(1) != 0) deterministic_platform::pause();
        }
        bool try_lock() noexcept { return held_.exchange_acq_rel(1) == 0; }
        void unlock() noexcept { held_.store_release(0); }

      private:
        deterministic_atomic<unsigned> held_;
    };
    using lock = spin_lock;
};

template <class Protocol>
void spawn_mover() {
    if (Protocol::arms) spawn("mover", [] { scheduled_world::here->move_everything(); });
}

// All keys of an ordered index. One that shows a key twice, or out of order, fails.
template <class Index>
std::vector<std::string> scanned(const Index& index) {
    std::vector<std::string> found;
    index.scan("", SIZE_MAX, [&](std::string_view key, std::string_view value) {
        if constexpr (!requires { Index::keys_inline; }) access(key.data(), key.size(), false);
        require(value.size() == 1, "a value that was written");
        access(value.data(), 1, false);
        require(found.empty() || found.back() < key, "ascending, none twice");
        found.emplace_back(key);
    });
    return found;
}

// Performs operations on a few keys and remembers them.
template <class Index>
class index_recorder {
  public:
    explicit index_recorder(std::vector<std::string> keys) : keys_(std::move(keys)) {
        histories_.resize(keys_.size());
    }

    void perform(Index& index, std::size_t key, key_operation::kind kind) {
        timed<key_operation> o;
        const char stored = static_cast<char>(++values_);
        const std::string_view value(&stored, 1), name = keys_[key];
        const auto saw = [&](std::string_view v) {
            access(v.data(), 1, false);
            o.what.seen = static_cast<unsigned char>(v[0]);
        };
        o.what.what = kind;
        o.what.stored = static_cast<unsigned char>(stored);
        // A step: without it the call would be as early as the end of the operation before.
        scheduled_world::here->fence.load_relaxed();
        o.call = ++clock_;
        switch (kind) {
        case key_operation::get:
            o.what.result = index.get(name, saw);
            break;
        case key_operation::put:
            o.what.result = index.put(name, value);
            break;
        case key_operation::update:
            o.what.result = index.update(name, value);
            break;
        case key_operation::modify:
            o.what.result = index.modify(name, [&](std::string_view old) {
                saw(old);
                return value;
            });
            break;
        case key_operation::erase:
            o.what.result = index.erase(name);
            break;
        }
        o.returned = ++clock_;
        histories_[key].push_back(o);
    }

    // Which of the keys it is.
    std::size_t number_of(std::string_view key) const {
        const auto at = std::find(keys_.begin(), keys_.end(), key);
        require(at != keys_.end(), "a key of the scene");
        return static_cast<std::size_t>(at - keys_.begin());
    }

    // At the end, one thread left.
    void check(Index& index) {
        std::vector<std::string> present;
        for (std::size_t key = 0; key < keys_.size(); ++key) {
            perform(index, key, key_operation::get);
            const bool there = histories_[key].back().what.result;
            if (there) present.push_back(keys_[key]);
            require(index.contains(keys_[key]) == there, "get() and contains() agree");
            if (!linearizable(key_state{}, histories_[key]))
                fail("not linearizable: key " + keys_[key] + "\n" + to_text(histories_[key]));
        }
        require(index.size() == present.size(), "the size is right");
        if constexpr (Index::ordered) {
            std::sort(present.begin(), present.end());
            require(scanned(index) == present, "scan() and get() agree");
        }
    }

  private:
    std::vector<std::string> keys_;
    std::vector<std::vector<timed<key_operation>>> histories_;
    std::uint64_t clock_ = 0; // threads are fibers
    unsigned char values_ = 0;
};

// Explores the scene: `scene(index, recorder)` spawns threads; run() and what must hold at the end
// are done here, and no memory may be left.
template <class Index, class Scene>
[[nodiscard]] result explore_index(const exploration& e, std::size_t expected_keys,
                                   const std::vector<std::string>& keys, Scene&& scene) {
    return explore(e, [&] {
        scheduled_world w;
        {
            Index index(expected_keys);
            index_recorder<Index> record(keys);
            scene(index, record);
            run();
            record.check(index);
        }
        require(w.waiting.empty(), "what was retired was freed");
        w.end_elsewhere();
        require(w.heap.live_blocks() == 0, "no memory is left");
        require(w.slots.empty(), "no slot is left");
    });
}

// The same with seeded schedules, of both strategies. The first result that is not right.
template <class Index, class Scene>
[[nodiscard]] result explore_index_at_random(const std::string& name, std::uint64_t seeds,
                                             const std::vector<std::string>& keys, Scene&& scene) {
    result r;
    for (const auto how : {strategy::random, strategy::pct}) {
        exploration e;
        e.seeds = scaled_schedules(seeds, 100 * seeds, 10'000 * seeds);
        e.strategy = how;
        e.name = name + (how == strategy::pct ? " pct" : "");
        e.depth = 4;
        e.max_steps = 400'000;
        r = explore_index<Index>(e, 1, keys, scene);
        if (!r.ok) break;
    }
    return r;
}

// The same with all schedules of two preemptions, at most `schedules` of them.
template <class Index, class Scene>
[[nodiscard]] result explore_index_fully(const std::string& name, std::uint64_t schedules,
                                         const std::vector<std::string>& keys, Scene&& scene) {
    exploration e;
    e.seeds = schedules;
    e.strategy = strategy::bounded_exhaustive;
    e.preemptions = 2;
    e.memory = memory_model::sequential;
    e.name = name;
    return explore_index<Index>(e, 1, keys, scene);
}

// A scene that is a list of operations.
struct scenario {
    std::vector<std::string> before; // keys there at the start
    std::vector<std::vector<std::pair<key_operation::kind, std::string>>> threads;
    bool mover = true;

    std::vector<std::string> keys() const {
        std::set<std::string> all(before.begin(), before.end());
        for (const auto& operations : threads)
            for (const auto& [what, key] : operations) all.insert(key);
        return {all.begin(), all.end()};
    }
};

template <class Index>
void play(const scenario& s, Index& index, index_recorder<Index>& record) {
    for (const std::string& key : s.before)
        record.perform(index, record.number_of(key), key_operation::put);
    for (const auto& operations : s.threads)
        spawn([&index, &record, operations] {
            for (const auto& [what, key] : operations)
                record.perform(index, record.number_of(key), what);
        });
    if (s.mover) spawn_mover<typename Index::protocol>();
}

// Three threads with two operations each; what they do, on which of the keys, and which of these are
// there before, is chosen by the scheduler. In a scene.
inline scenario any_scenario(const std::vector<std::string>& keys) {
    const auto count = static_cast<unsigned>(keys.size());
    scenario s;
    for (const std::string& key : keys)
        if (choose(2) != 0) s.before.push_back(key);
    for (unsigned t = 0; t < 3; ++t) {
        s.threads.emplace_back();
        for (unsigned i = 0; i < 2; ++i)
            s.threads.back().emplace_back(static_cast<key_operation::kind>(choose(5)),
                                          keys[choose(count)]);
    }
    s.mover = choose(2) != 0;
    return s;
}

} // namespace obase::testing
