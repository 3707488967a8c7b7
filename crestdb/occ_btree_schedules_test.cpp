// SPDX-License-Identifier: MIT
//
// The B+tree under the deterministic scheduler: nodes of two entries, a few operations at a time,
// and a mover that follows the arming protocol between any two of their steps. What the operations
// returned must be what they return in some order that respects time, and no object may be used after it was moved away or freed.
#include "crestdb/occ_btree.hpp"

#include "testing/deterministic.hpp"
#include "testing/linearizability.hpp"
#include "testing/tier.hpp"

#include <obase/word/arming.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace obase {
namespace {

using platform = testing::deterministic_platform;

// Arming with everything around it reduced to what can be seen: scopes are numbers in a set, freed
// objects are filled with garbage and kept until the execution ends. Nodes are freed at the end
// (that a node is retired at all is what the tests on threads are for).
struct scheduled {
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
        testing::require(at != w.sizes.end(), "an object is freed twice");
        std::memset(object, 0xee, at->second);
        w.freed.emplace_back(static_cast<char*>(object), at->second);
        w.sizes.erase(at);
    }
    static std::size_t usable_size(const void*) noexcept { return 0; }
    static void retire(void* object, void (*end)(void*) noexcept, std::size_t) noexcept {
        world& w = *here();
        auto& list = end == &owner<bytes, scheduled>::destroy ? w.objects : w.nodes;
        list.push_back({object, end, w.next});
    }
    static void reclaim() {
        world& w = *here();
        const std::uint64_t oldest = w.open.empty() ? w.next : *w.open.begin();
        std::erase_if(w.objects, [&](const world::retired& r) {
            if (r.when > oldest) return false;
            r.destroy(r.object);
            return true;
        });
    }

    // One round of the collector: arm, wait, copy, publish, free.
    static void move_everything() {
        world& w = *here();
        const std::vector<slot*> slots(w.slots.begin(), w.slots.end());
        std::vector<std::pair<slot*, word::bits>> armed;
        ++w.window;
        for (slot* s : slots) {
            word::bits seen = s->load_acquire();
            if (layout::is_null(seen)) continue;
            if (word::arm(*s, seen, w.window))
                armed.emplace_back(s, layout::make_armed(layout::address(seen), w.window));
        }
        platform::membarrier();
        const std::uint64_t since = w.next;
        while (!w.open.empty() && *w.open.begin() < since) platform::pause();
        for (const auto& [s, seen] : armed) {
            void* source = address(seen);
            const auto at = w.sizes.find(source);
            if (at == w.sizes.end()) continue; // freed since
            const std::size_t size = at->second;
            void* target = allocate(size, {});
            std::memcpy(target, source, size);
            const bool done = word::publish(
                *s, seen, layout::make_armed(reinterpret_cast<word::bits>(target), w.window));
            deallocate(done ? source : target);
        }
    }
};

// One world per execution.
class execution {
  public:
    execution() {
        // An execution that failed was abandoned, its world with it.
        scheduled::here() = &world_;
    }
    ~execution() {
        for (const auto& n : world_.nodes) n.destroy(n.object);
        testing::require(world_.objects.empty(), "retired objects were not freed");
        testing::require(world_.sizes.empty(), "an object is left");
        testing::require(world_.slots.empty(), "a slot is left");
        for (const auto& [memory, size] : world_.freed) {
            for (std::size_t i = 0; i < size; ++i)
                testing::require(memory[i] == '\xee', "a freed object was written");
            std::free(memory);
        }
    }

  private:
    scheduled::world world_;
};

struct smallest_shape {
    static constexpr unsigned leaf_entries = 2;
    static constexpr unsigned fanout = 3;
    template <class T>
    using atomic = platform::atomic<T>;
    static void wait(unsigned) noexcept { platform::pause(); }
};
using tree_type = crestdb::basic_occ_btree<scheduled, smallest_shape>;

using testing::key_operation;
using event = std::pair<std::string, testing::timed<key_operation>>; // key, what happened
using contents = std::map<std::string, std::uint64_t>;

// Others may run before the bytes are looked at.
std::uint64_t number_in(std::string_view value) {
    const platform::atomic<int> somebody;
    somebody.load_relaxed();
    std::uint64_t number = 0;
    for (const char c : value) {
        testing::require(c >= '0' && c <= '9', "a value that was written, and not freed");
        number = 10 * number + static_cast<std::uint64_t>(c - '0');
    }
    return number;
}

event perform(tree_type& tree, key_operation::kind what, const std::string& key,
              std::uint64_t stored) {
    testing::timed<key_operation> t;
    key_operation& o = t.what;
    o.what = what;
    o.stored = stored;
    const std::string value = std::to_string(stored);
    const auto saw = [&](std::string_view v) { o.seen = number_in(v); };
    t.call = testing::now();
    switch (what) {
    case key_operation::get:
        o.result = tree.get(key, saw);
        break;
    case key_operation::put:
        o.result = tree.put(key, value);
        break;
    case key_operation::update:
        o.result = tree.update(key, value);
        break;
    case key_operation::modify:
        o.result = tree.modify(key, [&](std::string_view old) -> std::string_view {
            saw(old);
            return value;
        });
        break;
    case key_operation::erase:
        o.result = tree.erase(key);
        break;
    }
    t.returned = testing::now();
    return {key, t};
}

contents everything(const tree_type& tree) {
    contents all;
    std::string last;
    tree.scan("", SIZE_MAX, [&](std::string_view k, std::string_view v) {
        testing::require(all.empty() || last < k, "scan ascends");
        last = k;
        all.emplace(k, number_in(v));
    });
    testing::require(all.size() == tree.size(), "size() is the number of keys");
    for (const auto& [k, v] : all) {
        std::string copy;
        testing::require(tree.get(k, [&](std::string_view value) { copy = value; }) &&
                             copy == std::to_string(v),
                         "get() and scan() agree");
        testing::require(tree.contains(k), "get() and contains() agree");
    }
    return all;
}

struct scenario {
    std::vector<std::string> before; // keys there at the start
    std::vector<std::vector<std::pair<key_operation::kind, std::string>>> threads;
    bool mover = true;
};

void run_scenario(const scenario& s) {
    const execution world;
    tree_type tree;
    for (const std::string& key : s.before) tree.put(key, "0");
    std::vector<std::vector<event>> events(s.threads.size());
    for (std::size_t t = 0; t < s.threads.size(); ++t) {
        testing::spawn([&, t] {
            for (const auto& [what, key] : s.threads[t])
                events[t].push_back(perform(tree, what, key, 10 * (t + 1) + events[t].size()));
        });
    }
    if (s.mover) testing::spawn("mover", [] { scheduled::move_everything(); });
    testing::run();
    const contents last = everything(tree);
    std::map<std::string, std::vector<testing::timed<key_operation>>> histories;
    for (const std::string& key : s.before) histories[key];
    for (const auto& list : events)
        for (const auto& [key, operation] : list) histories[key].push_back(operation);
    std::size_t there = 0;
    for (const auto& [key, history] : histories) {
        testing::key_state first, end;
        if (std::find(s.before.begin(), s.before.end(), key) != s.before.end()) first = 0;
        if (const auto at = last.find(key); at != last.end()) end = at->second, ++there;
        testing::linearizability_search<testing::key_state, key_operation> search(history);
        testing::require(search.final_states(first).count(end) != 0,
                         "the history of each key is linearizable");
    }
    testing::require(there == last.size(), "no key from nowhere");
}

void explore_all_ways(const char* name, const std::function<void()>& body) {
    for (const auto how : {testing::strategy::random, testing::strategy::pct}) {
        const auto r = testing::explore(
            {.seeds = testing::scaled(3'000, 100'000, 5'000'000),
             .strategy = how,
             .name = std::string(name) + (how == testing::strategy::pct ? " pct" : ""),
             .max_steps = 200'000},
            body);
        ASSERT_TRUE(r.ok) << r.report;
    }
}

// The third key of a leaf splits it, and the third leaf the root.
TEST(btree_schedules, a_leaf_is_split_under_a_reader_and_a_writer) {
    explore_all_ways("leaf split", [] {
        run_scenario(
            {.before = {"b", "d"},
             .threads = {
                 {{key_operation::put, "c"}},
                 {{key_operation::put, "d"}, {key_operation::get, "d"}, {key_operation::get, "b"}},
                 {{key_operation::modify, "b"}, {key_operation::erase, "d"}}}});
    });
}

TEST(btree_schedules, the_root_grows_under_everybody) {
    explore_all_ways("root growth", [] {
        run_scenario({.before = {"a", "b", "c", "d", "e"},
                      .threads = {{{key_operation::put, "f"}, {key_operation::put, "g"}},
                                  {{key_operation::put, "bb"}, {key_operation::get, "e"}},
                                  {{key_operation::get, "a"},
                                   {key_operation::update, "e"},
                                   {key_operation::get, "g"}}}});
    });
}

TEST(btree_schedules, erased_and_inserted_again_in_the_same_slot) {
    explore_all_ways("slot reuse", [] {
        run_scenario({.before = {"a", "b"},
                      .threads = {{{key_operation::erase, "a"},
                                   {key_operation::put, "aa"},
                                   {key_operation::get, "aa"}},
                                  {{key_operation::put, "a"}, {key_operation::get, "a"}},
                                  {{key_operation::update, "a"}, {key_operation::modify, "a"}}}});
    });
}

TEST(btree_schedules, leaves_disappear_under_readers_and_insertions) {
    explore_all_ways("empty leaves", [] {
        run_scenario({.before = {"a", "b", "c", "d", "e", "f"},
                      .threads = {{{key_operation::erase, "c"},
                                   {key_operation::erase, "d"},
                                   {key_operation::erase, "e"}},
                                  {{key_operation::put, "cc"},
                                   {key_operation::erase, "cc"},
                                   {key_operation::get, "f"}},
                                  {{key_operation::get, "e"},
                                   {key_operation::put, "d"},
                                   {key_operation::get, "d"}}}});
    });
}

TEST(btree_schedules, everything_disappears) {
    explore_all_ways("all empty", [] {
        run_scenario({.before = {"a", "b", "c", "d"},
                      .threads = {{{key_operation::erase, "a"}, {key_operation::erase, "b"}},
                                  {{key_operation::erase, "d"}, {key_operation::erase, "c"}},
                                  {{key_operation::put, "x"},
                                   {key_operation::get, "a"},
                                   {key_operation::erase, "x"}}}});
    });
}

// Prefixes get longer and shorter, heads are equal.
TEST(btree_schedules, heads_change_under_a_reader) {
    const std::string same(20, 's'), zero(1, '\0');
    explore_all_ways("heads", [&] {
        run_scenario(
            {.before = {same, same + "b"},
             .threads = {{{key_operation::put, same + "a"}, {key_operation::put, "s"}},
                         {{key_operation::get, same + "b"}, {key_operation::put, same + zero}},
                         {{key_operation::get, same}, {key_operation::erase, same + "b"}}}});
    });
}

// Which operations on which keys is the scheduler's choice, too.
TEST(btree_schedules, any_operations) {
    explore_all_ways("any operations", [] {
        static const char* const keys[] = {"a", "aa", "b", "c"};
        scenario s;
        for (const char* key : keys)
            if (testing::choose(2) != 0) s.before.emplace_back(key);
        for (unsigned t = 0; t < 3; ++t) {
            s.threads.emplace_back();
            for (unsigned i = 0; i < 2; ++i)
                s.threads.back().emplace_back(static_cast<key_operation::kind>(testing::choose(5)),
                                              keys[testing::choose(4)]);
        }
        s.mover = testing::choose(2) != 0;
        run_scenario(s);
    });
}

// Keys that stay are reported once each and in order, whatever is split and removed beside them.
TEST(btree_schedules, scan_neither_misses_nor_repeats) {
    explore_all_ways("scan", [] {
        const execution world;
        tree_type tree;
        for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) tree.put(key, "0");
        testing::spawn([&] {
            tree.erase("c");
            tree.erase("d");
            tree.put("dd", "1");
        });
        testing::spawn([&] {
            tree.put("aa", "1");
            tree.put("ff", "1");
            tree.erase("f");
            tree.put("e", "1");
        });
        testing::spawn([&] {
            std::vector<std::string> seen;
            tree.scan("a", SIZE_MAX, [&](std::string_view k, std::string_view v) {
                testing::require(number_in(v) <= 1, "a value that was written");
                seen.emplace_back(k);
            });
            for (std::size_t i = 1; i < seen.size(); ++i)
                testing::require(seen[i - 1] < seen[i], "ascending, none twice");
            for (const char* key : {"a", "b", "e", "g"})
                testing::require(std::binary_search(seen.begin(), seen.end(), key),
                                 "a key that stays is not missed");
        });
        testing::spawn("mover", [] { scheduled::move_everything(); });
        testing::run();
        testing::require(everything(tree).size() == 7, "all changes are there"); // a aa b dd e ff g
    });
}

// A leaf's range grows when its neighbours have gone, also after a scan has noted where it ends.
TEST(btree_schedules, scan_of_a_leaf_whose_range_grows) {
    explore_all_ways("range grows", [] {
        const execution world;
        tree_type tree;
        for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) tree.put(key, "0");
        testing::spawn([&] {
            tree.erase("c");
            tree.erase("d");
            tree.put("c", "1");
        });
        testing::spawn([&] {
            std::string last;
            tree.scan("a", SIZE_MAX, [&](std::string_view k, std::string_view) {
                testing::require(last < k, "ascending, none twice");
                last = k;
            });
        });
        testing::run();
    });
}

} // namespace
} // namespace obase
