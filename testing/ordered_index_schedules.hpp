// SPDX-License-Identifier: MIT
//
// Indexes under the deterministic scheduler: a protocol of guides whose scopes, reclamation and
// mover are reduced to what can be seen, and scenarios whose histories are checked.
//
//     using tree_type = some_index<obase::testing::scheduled, shape_with_platform_atomics>;
//     obase::testing::explore_all_ways("a name", [] {
//         obase::testing::run_scenario<tree_type>(
//             {.before = {"a"}, .threads = {{{key_operation::put, "b"}}, {{key_operation::get, "a"}}}});
//     });
//
// What is checked: what the operations returned is what they return in some order that respects time;
// no object is used after it was moved away or freed; nothing is left at the end.
#pragma once

#include "testing/deterministic.hpp"
#include "testing/linearizability.hpp"
#include "testing/tier.hpp"

#include <obase/bytes.hpp>
#include <obase/owner.hpp>
#include <obase/word/arming.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace obase::testing {

// Arming. Scopes are numbers in a set; freed objects are filled with garbage and kept until the
// execution ends. Memory that is not an object (immobile nodes) is freed at the end; that it is
// retired at all is what the tests on threads are for.
struct scheduled {
    using platform = deterministic_platform;
    using slot = platform::atomic<word::bits>;
    using layout = word::arming;
    [[maybe_unused]] static constexpr const char* name = "scheduled";
    [[maybe_unused]] static constexpr bool moves_objects = true;

    struct world {
        std::uint64_t next = 1; // scopes that open get ascending numbers
        std::multiset<std::uint64_t> open;
        std::uint64_t window = 1;
        struct retired {
            void* object;
            void (*destroy)(void*) noexcept;
            std::uint64_t when;
        };
        std::vector<retired> objects, nodes;
        std::set<slot*> slots;
        const slot* visited = nullptr;      // by the mover: its memory has to stay
        std::map<void*, std::size_t> sizes; // of objects that live
        std::vector<std::pair<char*, std::size_t>> freed;
    };
    static world*& here() {
        static world* current = nullptr;
        return current;
    }

    struct scope {
        scope() : mine(here()->next++) { here()->open.insert(mine); }
        ~scope() {
            world& w = *here();
            w.open.erase(w.open.find(mine));
            reclaim();
        }
        std::uint64_t mine;
    };
    static bool in_scope() { return !here()->open.empty(); }

    static void* dereference(slot& s) noexcept {
        return reinterpret_cast<void*>(word::touch(s).address);
    }
    static const void* peek(const slot& s) noexcept { return address(s.load_acquire()); }
    static word::bits newborn(void* object) noexcept {
        return layout::make_born(reinterpret_cast<word::bits>(object));
    }
    static void* address(word::bits w) noexcept {
        return reinterpret_cast<void*>(layout::address(w));
    }
    static void construct(slot& s, word::bits w) noexcept {
        s.store_release(w);
        here()->slots.insert(&s);
    }
    static void* destroy(slot& s) noexcept {
        here()->slots.erase(&s);
        while (here()->visited == &s) platform::pause();
        return address(s.load_acquire());
    }
    static word::bits exchange(slot& s, word::bits w) noexcept { return word::replace(s, w); }
    static bool compare_exchange(slot& s, void*& expected, word::bits w) noexcept {
        auto seen = reinterpret_cast<word::bits>(expected);
        const bool done = word::compare_replace(s, seen, w);
        expected = reinterpret_cast<void*>(seen);
        return done;
    }
    static void* allocate(std::size_t bytes, const allocation&) noexcept {
        void* object = std::malloc(bytes);
        here()->sizes[object] = bytes;
        return object;
    }
    static void deallocate(void* object) noexcept {
        world& w = *here();
        const auto at = w.sizes.find(object);
        require(at != w.sizes.end(), "an object is freed twice");
        std::memset(object, 0xee, at->second);
        w.freed.emplace_back(static_cast<char*>(object), at->second);
        w.sizes.erase(at);
    }
    static std::size_t usable_size(const void*) noexcept { return 0; }
    static void retire(void* object, void (*end)(void*) noexcept, std::size_t) noexcept {
        world& w = *here();
        auto& list = w.sizes.count(object) != 0 ? w.objects : w.nodes;
        list.push_back({object, end, w.next});
    }
    static void reclaim() {
        world& w = *here();
        const std::uint64_t oldest = w.open.empty() ? w.next : *w.open.begin();
        // Out of the list first: destructors are steps, and others retire meanwhile.
        std::vector<world::retired> ready;
        std::erase_if(w.objects, [&](const world::retired& r) {
            if (r.when > oldest) return false;
            ready.push_back(r);
            return true;
        });
        for (const world::retired& r : ready) r.destroy(r.object);
    }

    // One round of the collector: arm, wait, copy, publish, free. Slots inside of an object that moves
    // move with it (R11).
    static void move_everything() {
        world& w = *here();
        const std::vector<slot*> slots(w.slots.begin(), w.slots.end());
        std::vector<std::pair<slot*, word::bits>> armed;
        ++w.window;
        for (slot* s : slots) {
            if (!begin_visit(s)) continue;
            if (word::bits seen = s->load_acquire(); !layout::is_null(seen))
                if (word::arm(*s, seen, w.window))
                    armed.emplace_back(s, layout::make_armed(layout::address(seen), w.window));
            w.visited = nullptr;
        }
        platform::membarrier();
        const std::uint64_t since = w.next;
        while (!w.open.empty() && *w.open.begin() < since) platform::pause();
        platform::membarrier(); // the end of a scope is a release
        for (const auto& [s, seen] : armed) {
            char* const source = static_cast<char*>(address(seen));
            const auto at = w.sizes.find(source);
            if (at == w.sizes.end() || !begin_visit(s)) continue; // freed since
            const std::size_t size = at->second;
            char* const target = static_cast<char*>(allocate(size, {}));
            std::memcpy(target, source, size);
            const std::vector<slot*> inside = slots_in(source, size);
            for (slot* child : inside) w.slots.insert(moved(child, source, target));
            const bool done = word::publish(
                *s, seen, layout::make_armed(reinterpret_cast<word::bits>(target), w.window));
            w.visited = nullptr;
            for (slot* child : inside) w.slots.erase(done ? child : moved(child, source, target));
            deallocate(done ? source : target);
        }
    }

  private:
    static bool begin_visit(const slot* s) {
        world& w = *here();
        if (w.slots.count(const_cast<slot*>(s)) == 0) return false;
        w.visited = s;
        return true;
    }
    static std::vector<slot*> slots_in(char* begin, std::size_t size) {
        const std::set<slot*>& all = here()->slots;
        return {
            all.lower_bound(reinterpret_cast<slot*>(begin)),
            all.lower_bound(reinterpret_cast<slot*>(begin + size / sizeof(slot) * sizeof(slot)))};
    }
    static slot* moved(slot* s, char* from, char* to) {
        return reinterpret_cast<slot*>(to + (reinterpret_cast<char*>(s) - from));
    }
};

// One world per execution. An execution that failed is abandoned, its world with it.
class scheduled_execution {
  public:
    scheduled_execution() { scheduled::here() = &world_; }
    ~scheduled_execution() {
        for (const auto& n : world_.nodes) n.destroy(n.object);
        require(world_.objects.empty(), "retired objects were not freed");
        require(world_.sizes.empty(), "an object is left");
        require(world_.slots.empty(), "a slot is left");
        for (const auto& [memory, size] : world_.freed) {
            for (std::size_t i = 0; i < size; ++i)
                require(memory[i] == '\xee', "a freed object was written");
            std::free(memory);
        }
    }

  private:
    scheduled::world world_;
};

using event = std::pair<std::string, timed<key_operation>>; // key, what happened
using contents = std::map<std::string, std::uint64_t>;

// Others may run before the bytes are looked at.
inline std::uint64_t number_in(std::string_view value) {
    const deterministic_platform::atomic<int> somebody;
    somebody.load_relaxed();
    std::uint64_t number = 0;
    for (const char c : value) {
        require(c >= '0' && c <= '9', "a value that was written, and not freed");
        number = 10 * number + static_cast<std::uint64_t>(c - '0');
    }
    return number;
}

template <class Index>
event perform(Index& index, key_operation::kind what, const std::string& key,
              std::uint64_t stored) {
    timed<key_operation> t;
    key_operation& o = t.what;
    o.what = what;
    o.stored = stored;
    const std::string value = std::to_string(stored);
    const auto saw = [&](std::string_view v) { o.seen = number_in(v); };
    t.call = now();
    switch (what) {
    case key_operation::get:
        o.result = index.get(key, saw);
        break;
    case key_operation::put:
        o.result = index.put(key, value);
        break;
    case key_operation::update:
        o.result = index.update(key, value);
        break;
    case key_operation::modify:
        o.result = index.modify(key, [&](std::string_view old) -> std::string_view {
            saw(old);
            return value;
        });
        break;
    case key_operation::erase:
        o.result = index.erase(key);
        break;
    }
    t.returned = now();
    return {key, t};
}

// Of an ordered index.
template <class Index>
contents everything(const Index& index) {
    contents all;
    std::string last;
    index.scan("", SIZE_MAX, [&](std::string_view k, std::string_view v) {
        require(all.empty() || last < k, "scan ascends");
        last = k;
        all.emplace(k, number_in(v));
    });
    require(all.size() == index.size(), "size() is the number of keys");
    for (const auto& [k, v] : all) {
        std::string copy;
        require(index.get(k, [&](std::string_view value) { copy = value; }) &&
                    copy == std::to_string(v),
                "get() and scan() agree");
        require(index.contains(k), "get() and contains() agree");
    }
    return all;
}

struct scenario {
    std::vector<std::string> before; // keys there at the start
    std::vector<std::vector<std::pair<key_operation::kind, std::string>>> threads;
    bool mover = true;
};

template <class Index>
void run_scenario(const scenario& s) {
    const scheduled_execution world;
    Index index;
    for (const std::string& key : s.before) index.put(key, "0");
    std::vector<std::vector<event>> events(s.threads.size());
    for (std::size_t t = 0; t < s.threads.size(); ++t) {
        spawn([&, t] {
            for (const auto& [what, key] : s.threads[t])
                events[t].push_back(perform(index, what, key, 10 * (t + 1) + events[t].size()));
        });
    }
    if (s.mover) spawn("mover", [] { scheduled::move_everything(); });
    run();
    const contents last = everything(index);
    std::map<std::string, std::vector<timed<key_operation>>> histories;
    for (const std::string& key : s.before) histories[key];
    for (const auto& list : events)
        for (const auto& [key, operation] : list) histories[key].push_back(operation);
    std::size_t there = 0;
    for (const auto& [key, history] : histories) {
        key_state first, end;
        if (std::find(s.before.begin(), s.before.end(), key) != s.before.end()) first = 0;
        if (const auto at = last.find(key); at != last.end()) end = at->second, ++there;
        linearizability_search<key_state, key_operation> search(history);
        require(search.final_states(first).count(end) != 0,
                "the history of each key is linearizable");
    }
    require(there == last.size(), "no key from nowhere");
}

inline void explore_all_ways(const char* name, const std::function<void()>& body,
                             std::uint64_t seeds = scaled(3'000, 100'000, 5'000'000)) {
    for (const auto how : {strategy::random, strategy::pct}) {
        const auto r = explore({.seeds = seeds,
                                .strategy = how,
                                .name = std::string(name) + (how == strategy::pct ? " pct" : ""),
                                .max_steps = 200'000},
                               body);
        ASSERT_TRUE(r.ok) << r.report;
    }
}

} // namespace obase::testing
