// SPDX-License-Identifier: MIT
//
// The directory against a std::set, and its two conversations between threads and collector: the
// visit handshake (R8, R10) and the retirement of leaves.
#include "soda/directory.hpp"

#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/thread.hpp"
#include "testing/deterministic.hpp"
#include "testing/heap_shortage.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace obase::soda {
namespace {

using native_directory = directory<os::native_platform>;
using model = std::set<std::uintptr_t>;

void* at(std::uintptr_t a) { return reinterpret_cast<void*>(a); }

// Borders of every kind: of leaves (16 MiB), of bitmap pages (256 KiB of slots), of bitmap words
// (512 bytes). The directory never looks at the memory it describes, so nothing needs to be there.
constexpr std::uintptr_t leaf_border = std::uintptr_t{0x2a} << 24;
constexpr std::uintptr_t borders[] = {
    leaf_border,
    leaf_border + (std::uintptr_t{1} << 18),
    leaf_border + 0x6600,
    leaf_border + (std::uintptr_t{1} << 24),
};
constexpr std::uintptr_t lowest = leaf_border - 1024;
constexpr std::uintptr_t highest = leaf_border + (std::uintptr_t{1} << 24) + 4096;

rc::Gen<std::uintptr_t> any_address() {
    return rc::gen::apply(
        [](std::uintptr_t border, int offset) {
            return border + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(offset));
        },
        rc::gen::elementOf(std::vector<std::uintptr_t>(std::begin(borders), std::end(borders))),
        rc::gen::inRange(-1024, 1024));
}
rc::Gen<std::uintptr_t> any_slot() {
    return rc::gen::map(any_address(), [](std::uintptr_t a) { return a & ~std::uintptr_t{7}; });
}

model within(const model& m, std::uintptr_t begin, std::uintptr_t end) {
    return begin >= end ? model{} : model(m.lower_bound(begin), m.lower_bound(end));
}

// What scans find in [begin, end); also that they find it in order and once.
model scanned(native_directory& d, std::uintptr_t begin, std::uintptr_t end) {
    model found;
    std::uintptr_t last = 0;
    d.refresh();
    for (auto* leaf : d.leaves()) {
        bool called = false;
        const bool any = d.scan(*leaf, begin, end, [&](std::uintptr_t base, std::uint64_t bits) {
            called = true;
            RC_ASSERT(base % 512 == 0u);
            RC_ASSERT(bits != 0u);
            for (; bits != 0; bits &= bits - 1) {
                const std::uintptr_t slot =
                    base + 8u * static_cast<unsigned>(std::countr_zero(bits));
                RC_ASSERT(slot > last);
                last = slot;
                found.insert(slot);
            }
        });
        RC_ASSERT(any == called);
    }
    return found;
}

// Without the list of leaves.
model scanned_as_a_range(native_directory& d, std::uintptr_t begin, std::uintptr_t end) {
    model found;
    d.scan_range(begin, end, [&](std::uintptr_t base, std::uint64_t bits) {
        for (; bits != 0; bits &= bits - 1)
            found.insert(base + 8u * static_cast<unsigned>(std::countr_zero(bits)));
    });
    return found;
}

void check_equal(native_directory& d, const model& m) {
    RC_ASSERT(scanned(d, 0, ~std::uintptr_t{0}) == m);
    RC_ASSERT(scanned_as_a_range(d, lowest - (std::uintptr_t{1} << 24),
                                 highest + (std::uintptr_t{1} << 24)) == m);
    for (auto* leaf : d.leaves())
        RC_ASSERT(d.looks_empty(*leaf) ==
                  within(m, leaf->base, leaf->base + (std::uintptr_t{1} << 24)).empty());
}

// A slot is in a range when its address is, whatever the borders' alignment.
struct operations {
    native_directory& d;
    model& m;

    void set() {
        const auto slot = *any_slot();
        RC_ASSERT(d.set(at(slot)));
        m.insert(slot);
    }
    void clear() {
        const auto slot =
            m.empty() || *rc::gen::inRange(0, 3) == 0 ? *any_slot() : *rc::gen::elementOf(m);
        d.clear(at(slot));
        m.erase(slot);
    }
    void test() {
        const auto slot = *any_slot();
        RC_ASSERT(d.test(at(slot)) == (m.count(slot) == 1));
    }
    std::pair<std::uintptr_t, std::uintptr_t> range() {
        const auto a = *any_address();
        const auto b = *any_address();
        return {std::min(a, b), std::max(a, b)};
    }
    void clear_range() {
        const auto [begin, end] = range();
        d.clear_range(at(begin), at(end));
        m.erase(m.lower_bound(begin), m.lower_bound(end));
    }
    void any_in() {
        const auto [begin, end] = range();
        RC_ASSERT(d.any_in(at(begin), at(end)) == !within(m, begin, end).empty());
        if (begin < end)
            RC_ASSERT(d.any_slot_or_trace_in(at(begin), at(end)) == !within(m, begin, end).empty());
    }
    void scan() {
        const auto [begin, end] = range();
        RC_ASSERT(scanned(d, begin, end) == within(m, begin, end));
    }
    void copy() {
        const auto from = *any_slot();
        const auto size = 8 * *rc::gen::inRange<std::uintptr_t>(1, 200);
        const auto to = *rc::gen::suchThat(
            any_slot(), [&](std::uintptr_t t) { return t + size <= from || from + size <= t; });
        // Objects come into memory without slots.
        d.clear_unvisited(at(to), size);
        m.erase(m.lower_bound(to), m.lower_bound(to + size));
        const model moving = within(m, from, from + size);
        RC_ASSERT(d.copy_slots(at(from), at(to), size) ==
                  static_cast<std::ptrdiff_t>(moving.size()));
        for (const auto slot : moving) m.insert(slot - from + to);
    }
    // Single-threaded, so every wait is over at once.
    void retire_leaves() {
        d.refresh();
        const std::size_t before = d.leaves().size();
        std::size_t empty = 0;
        for (auto* leaf : d.leaves())
            if (d.looks_empty(*leaf)) {
                d.begin_retire(*leaf);
                ++empty;
            }
        const auto revived = *rc::gen::container<std::vector<std::uintptr_t>>(
            *rc::gen::inRange<std::size_t>(0, 3), any_slot());
        for (const auto slot : revived) {
            RC_ASSERT(d.set(at(slot)));
            m.insert(slot);
        }
        if (*rc::gen::inRange(0, 3) == 0) {
            d.cancel_retire();
            RC_ASSERT(d.leaves().size() == before);
            return;
        }
        const std::size_t unlinked = d.finish_retire();
        RC_ASSERT(d.has_unlinked() == (unlinked != 0));
        RC_ASSERT(d.leaves().size() + unlinked == before);
        RC_ASSERT(unlinked <= empty);
        if (revived.empty()) RC_ASSERT(unlinked == empty);
    }
};

TEST(directory, behaves_like_a_set_of_addresses) {
    const bool ok = rc::check("directory is a set", [] {
        native_directory d;
        RC_ASSERT(d.open());
        model m;
        operations o{d, m};
        const int steps = *rc::gen::inRange(1, 60);
        for (int i = 0; i < steps; ++i) {
            switch (*rc::gen::inRange(0, 13)) {
            case 0:
                o.clear();
                break;
            case 1:
                o.test();
                break;
            case 2:
                o.clear_range();
                break;
            case 3:
                o.scan();
                break;
            case 4:
                o.copy();
                break;
            case 5:
                o.retire_leaves();
                break;
            case 6:
                o.any_in();
                break;
            default:
                o.set();
                break;
            }
            if (i % 8 == 0) check_equal(d, m);
        }
        check_equal(d, m);
        d.clear_range(at(lowest), at(highest));
        check_equal(d, {});
    });
    EXPECT_TRUE(ok);
}

TEST(directory, traces_are_no_slots) {
    native_directory d;
    EXPECT_FALSE(d.has_leaf_in(at(lowest), at(highest))) << "before open()";
    EXPECT_FALSE(d.leave_trace(at(leaf_border))) << "before open()";
    ASSERT_TRUE(d.open());
    EXPECT_FALSE(d.has_leaf_in(at(lowest), at(highest)));
    ASSERT_TRUE(d.leave_trace(at(leaf_border + 20)));
    EXPECT_TRUE(d.any_trace_in(at(leaf_border + 16), at(leaf_border + 24)));
    EXPECT_FALSE(d.any_trace_in(at(leaf_border), at(leaf_border + 16)));
    EXPECT_FALSE(d.any_trace_in(at(leaf_border + 24), at(highest)));
    for (const std::uintptr_t end : {leaf_border + 24, leaf_border + 600, highest}) {
        EXPECT_TRUE(d.any_slot_or_trace_in(at(leaf_border + 16), at(end)));
        EXPECT_TRUE(d.any_slot_or_trace_in(at(lowest), at(end)));
        EXPECT_FALSE(d.any_slot_or_trace_in(at(leaf_border + 24), at(end + 8)));
    }
    EXPECT_FALSE(d.test(at(leaf_border + 16)));
    EXPECT_FALSE(d.any_in(at(lowest), at(highest)));
    EXPECT_EQ(scanned(d, 0, ~std::uintptr_t{0}), model{});

    ASSERT_TRUE(d.set(at(leaf_border + 16)));
    d.remove_traces(at(lowest), at(highest));
    EXPECT_FALSE(d.any_trace_in(at(lowest), at(highest)));
    EXPECT_TRUE(d.test(at(leaf_border + 16)));
    ASSERT_TRUE(d.leave_trace(at(leaf_border + 16)));
    d.clear_range(at(lowest), at(highest));
    EXPECT_TRUE(d.any_trace_in(at(lowest), at(highest))) << "slots leave them behind";

    // Their leaf stays until they have been removed.
    d.refresh();
    ASSERT_EQ(d.leaves().size(), 1u);
    EXPECT_FALSE(d.looks_empty(*d.leaves()[0]));
    d.remove_traces(at(lowest), at(highest));
    EXPECT_TRUE(d.looks_empty(*d.leaves()[0]));
    d.begin_retire(*d.leaves()[0]);
    ASSERT_TRUE(d.leave_trace(at(leaf_border + 16)));
    EXPECT_EQ(d.finish_retire(), 0u) << "who leaves one needs the leaf";
    d.remove_traces(at(lowest), at(highest));
    d.begin_retire(*d.leaves()[0]);
    EXPECT_EQ(d.finish_retire(), 1u);
    EXPECT_FALSE(d.has_leaf_in(at(lowest), at(highest)));
}

TEST(directory, leaves_are_found_wherever_they_are_in_a_range) {
    constexpr std::uintptr_t span = std::uintptr_t{1} << 24;
    for (std::uintptr_t leaf = 0; leaf < 4; ++leaf) {
        native_directory d;
        ASSERT_TRUE(d.open());
        ASSERT_TRUE(d.set(at(leaf_border + leaf * span + 8)));
        EXPECT_TRUE(d.has_leaf_in(at(leaf_border), at(leaf_border + 4 * span)));
        EXPECT_TRUE(
            d.has_leaf_in(at(leaf_border + leaf * span), at(leaf_border + leaf * span + 1)));
        for (std::uintptr_t other = 0; other < 4; ++other)
            EXPECT_EQ(
                d.has_leaf_in(at(leaf_border + other * span), at(leaf_border + (other + 1) * span)),
                other == leaf);
    }
    native_directory d;
    ASSERT_TRUE(d.open());
    EXPECT_FALSE(d.has_leaf_in(nullptr, nullptr)) << "an empty range";
    EXPECT_FALSE(d.has_leaf_in(at(leaf_border + 1), at(leaf_border)));
    EXPECT_FALSE(
        d.has_leaf_in(at((std::uintptr_t{1} << 47) - 8), at((std::uintptr_t{1} << 47) + 8)))
        << "no user address";
}

// Regression: a border in the last seven bytes of a bitmap word shifted by 64, and cleared the
// word.
TEST(directory, ranges_may_begin_in_the_last_bytes_of_a_bitmap_word) {
    native_directory d;
    ASSERT_TRUE(d.open());
    for (unsigned i = 0; i < 128; ++i) ASSERT_TRUE(d.set(at(leaf_border + 8 * i)));
    for (unsigned offset = 505; offset < 512; ++offset)
        d.clear_range(at(leaf_border + offset), at(leaf_border + 512 + 8));
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(d.test(at(leaf_border + 8 * i)), i != 64) << i;
}

TEST(directory, what_was_never_registered_is_no_slot) {
    native_directory d;
    int word = 0;
    EXPECT_FALSE(d.test(&word)) << "before open()";
    ASSERT_TRUE(d.open());
    EXPECT_FALSE(d.test(&word));
    EXPECT_FALSE(d.begin_visit(&word));
    d.clear(&word);
    d.clear_range(nullptr, at(~std::uintptr_t{0} >> 17));
    EXPECT_FALSE(d.set(at(std::uintptr_t{1} << 47))) << "no user address";
    EXPECT_FALSE(d.test(at(std::uintptr_t{1} << 47)));
    EXPECT_EQ(d.leaf_of(&word), nullptr);
    EXPECT_EQ(d.bytes(), 0u);
}

TEST(directory, bytes_grow_by_the_bitmap_pages_in_use) {
    native_directory d;
    ASSERT_TRUE(d.open());
    ASSERT_TRUE(d.set(at(leaf_border)));
    d.refresh();
    const std::size_t one = d.bytes();
    EXPECT_GE(one, 4096u);
    ASSERT_TRUE(d.set(at(leaf_border + 8)));
    EXPECT_EQ(d.bytes(), one) << "same bitmap page";
    ASSERT_TRUE(d.set(at(leaf_border + (std::uintptr_t{1} << 18))));
    EXPECT_EQ(d.bytes(), one + 4096);
    ASSERT_TRUE(d.leave_trace(at(leaf_border)));
    EXPECT_EQ(d.bytes(), one + 2 * 4096) << "a page of traces";
}

// Memory runs short.
thread_local unsigned maps_left = 0;
class scarce_memory {
  public:
    explicit scarce_memory(unsigned maps) {
        maps_left = maps;
        calls_ = os::real_memory_calls();
        calls_.mmap = [](void* a, std::size_t n, int p, int f, int fd, off_t o) -> void* {
            if (maps_left == 0) {
                errno = ENOMEM;
                return reinterpret_cast<void*>(~std::uintptr_t{0}); // MAP_FAILED
            }
            --maps_left;
            return os::real_memory_calls().mmap(a, n, p, f, fd, o);
        };
        os::use_memory_calls(&calls_);
    }
    ~scarce_memory() { os::use_memory_calls(nullptr); }

  private:
    os::memory_calls calls_;
};

TEST(directory, without_memory_nothing_is_registered) {
    native_directory unopened;
    {
        const scarce_memory none(0);
        EXPECT_FALSE(unopened.open());
    }
    EXPECT_FALSE(unopened.set(at(leaf_border)));
    EXPECT_FALSE(unopened.test(at(leaf_border)));

    native_directory d;
    ASSERT_TRUE(d.open());
    {
        const scarce_memory none(0);
        EXPECT_FALSE(d.set(at(leaf_border)));
    }
    EXPECT_FALSE(d.test(at(leaf_border)));
    EXPECT_TRUE(d.set(at(leaf_border))) << "and works again when there is memory";
}

TEST(directory, without_memory_for_its_lists_leaves_wait) {
    if (!testing::heap_shortage::possible) GTEST_SKIP() << "the sanitizer's operator new";
    native_directory d;
    ASSERT_TRUE(d.open());
    ASSERT_TRUE(d.set(at(leaf_border)));
    ASSERT_TRUE(d.set(at(leaf_border + (std::uintptr_t{1} << 24))));
    {
        const testing::heap_shortage none;
        d.refresh();
    }
    EXPECT_TRUE(d.leaves().empty());
    d.refresh();
    ASSERT_EQ(d.leaves().size(), 2u);
    EXPECT_LT(d.leaves()[0]->base, d.leaves()[1]->base);

    d.clear(at(leaf_border));
    d.begin_retire(*d.leaves()[0]);
    {
        const testing::heap_shortage none;
        EXPECT_EQ(d.finish_retire(), 0u);
    }
    EXPECT_EQ(d.leaves().size(), 2u);
    EXPECT_EQ(d.finish_retire(), 0u) << "that retirement was given up";
    d.begin_retire(*d.leaves()[0]);
    EXPECT_EQ(d.finish_retire(), 1u);
    EXPECT_TRUE(d.has_unlinked()) << "still mapped: a thread may have found it before";
    EXPECT_TRUE(d.test(at(leaf_border + (std::uintptr_t{1} << 24))));
}

// R11: all of an object's slots are registered at its destination or none.
TEST(directory, copying_slots_without_memory_leaves_none_behind) {
    native_directory d;
    ASSERT_TRUE(d.open());
    const std::uintptr_t from = leaf_border + 4096;
    for (unsigned i = 0; i < 100; ++i) ASSERT_TRUE(d.set(at(from + 8 * i)));
    // The destination lies across a leaf border; the first leaf exists, the second cannot be made.
    const std::uintptr_t to = leaf_border + (std::uintptr_t{1} << 24) - 400;
    {
        const scarce_memory none(0);
        EXPECT_EQ(d.copy_slots(at(from), at(to), 800), -1);
    }
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_FALSE(d.test(at(to + 8 * i)));
        EXPECT_TRUE(d.test(at(from + 8 * i)));
    }
    EXPECT_EQ(d.copy_slots(at(from), at(to), 800), 100);
}

// Conversations between threads. Each body runs under chosen schedules and on OS threads.

template <class P>
struct handshake {
    using threads = testing::threads_for<P>;
    using slot = typename P::template atomic<std::uint64_t>;

    handshake() {
        threads::require(d.open(), "room for the directory");
        // A schedule has few slots; natively malloc says where they are.
        probe = heap.template create<block>("probe");
        first = threads::deterministic ? reinterpret_cast<std::uintptr_t>(probe) : 0;
        last = threads::deterministic ? first + 1024 : ~std::uintptr_t{0};
    }
    ~handshake() { heap.destroy(probe); }
    handshake(const handshake&) = delete;
    handshake& operator=(const handshake&) = delete;

    struct block {
        block() : slots{} {}
        slot slots[3];
    };

    // As the mover does: look at each registered slot and write to it; later, visit again what was
    // seen, which may have gone meanwhile.
    void collect() {
        d.refresh();
        std::vector<slot*> seen;
        const auto visit = [](slot& s) {
            std::uint64_t word = s.load_acquire();
            threads::require(word == 1 || word == 2, "the slot holds what its owner stored");
            if (word == 1) s.cas_seq_cst(word, 2);
        };
        for (auto* leaf : d.leaves())
            d.scan(*leaf, first, last, [&](std::uintptr_t base, std::uint64_t bits) {
                for (; bits != 0; bits &= bits - 1) {
                    auto& s = *reinterpret_cast<slot*>(
                        base + 8u * static_cast<unsigned>(std::countr_zero(bits)));
                    visit(s);
                    seen.push_back(&s);
                }
            });
        for (slot* s : seen)
            if (d.begin_visit(s)) {
                visit(*s);
                d.end_visit();
            }
    }

    void run(unsigned owners, const std::function<void()>& owner) {
        busy.store_relaxed(owners);
        for (unsigned i = 0; i < owners; ++i)
            threads::spawn("owner", [&] {
                owner();
                busy.fetch_sub_acq_rel(1);
            });
        threads::spawn("collector", [&] {
            for (unsigned i = 0; threads::deterministic ? i < 2 : busy.load_acquire() != 0; ++i)
                collect();
        });
        threads::run();
    }
    static unsigned rounds() { return threads::deterministic ? 2 : 2000; }

    typename threads::heap heap{{.reuse = testing::address_reuse::last_freed_first}};
    directory<P> d;
    block* probe;
    std::uintptr_t first, last;
    typename P::template atomic<unsigned> busy;
};

// O3, R10: after clear() the collector does not touch the slot, so its memory may go; the next
// thing at that address may hold anything.
template <class P>
void a_cleared_slot_is_left_alone() {
    handshake<P> h;
    h.run(2, [&h] {
        for (unsigned i = 0; i < h.rounds(); ++i) {
            auto* b = h.heap.template create<typename handshake<P>::block>("slots");
            b->slots[0].store_relaxed(1);
            testing::threads_for<P>::require(h.d.set(&b->slots[0]), "room");
            h.d.clear(&b->slots[0]);
            b->slots[0].store_relaxed(77); // not a slot any more
            h.heap.destroy(b);
        }
    });
}

// The same for a range.
template <class P>
void a_cleared_range_is_left_alone() {
    handshake<P> h;
    h.run(2, [&h] {
        for (unsigned i = 0; i < h.rounds(); ++i) {
            auto* b = h.heap.template create<typename handshake<P>::block>("slots");
            for (auto& s : b->slots) {
                s.store_relaxed(1);
                testing::threads_for<P>::require(h.d.set(&s), "room");
            }
            h.d.clear_range(b, b + 1);
            for (auto& s : b->slots) s.store_relaxed(77);
            h.heap.destroy(b);
        }
    });
}

// Leaves come and go under the threads' hands. `scopes` stands for mobility's: an owner announces
// itself while it uses the directory, and the collector waits until each has been seen outside.
template <class P>
struct leaf_life {
    using threads = testing::threads_for<P>;
    using flag = typename P::template atomic<std::uint64_t>;
    static constexpr unsigned owners = 2;

    leaf_life() { threads::require(d.open(), "room for the directory"); }

    template <class Use>
    void in_scope(unsigned self, Use use) {
        scopes[self].exchange_seq_cst(1);
        use();
        scopes[self].store_release(0);
    }
    void wait_for_scopes() {
        for (auto& s : scopes)
            while (s.load_seq_cst() != 0) P::pause();
    }
    void collect() {
        d.refresh();
        bool marked = false;
        for (auto* leaf : d.leaves())
            if (d.looks_empty(*leaf)) {
                d.begin_retire(*leaf);
                marked = true;
            }
        if (!marked && !d.has_unlinked()) return;
        wait_for_scopes();
        if (threads::choose(4) == 0)
            d.cancel_retire();
        else
            d.finish_retire();
    }

    directory<P> d;
    std::array<flag, owners> scopes;
    typename P::template atomic<unsigned> busy;
};

template <class P>
void registered_slots_survive_the_retirement_of_leaves() {
    using threads = testing::threads_for<P>;
    leaf_life<P> life;
    life.busy.store_relaxed(life.owners);
    for (unsigned self = 0; self < life.owners; ++self)
        threads::spawn("owner", [&life, self] {
            // Own slots in a leaf that both share; and ranges that begin in the other's.
            void* slot = at(leaf_border + 8 * self);
            for (unsigned i = 0; i < (threads::deterministic ? 2u : 3000u); ++i) {
                life.in_scope(self, [&] { threads::require(life.d.set(slot), "room"); });
                life.in_scope(self, [&] {
                    threads::require(life.d.test(slot), "what was registered is registered");
                    if (i % 2 == 0)
                        life.d.clear(slot);
                    else
                        life.d.clear_range(slot, at(leaf_border + 8 * self + 8));
                });
                life.in_scope(self, [&] {
                    threads::require(!life.d.test(slot), "what was unregistered is not");
                });
            }
            life.in_scope(self, [&] { threads::require(life.d.set(slot), "room"); });
            life.busy.fetch_sub_acq_rel(1);
        });
    threads::spawn("collector", [&life] {
        for (unsigned i = 0; threads::deterministic ? i < 4 : life.busy.load_acquire() != 0; ++i)
            life.collect();
    });
    threads::run();
    life.d.refresh();
    threads::require(life.d.leaves().size() == 1, "one leaf is linked");
    for (unsigned self = 0; self < life.owners; ++self)
        threads::require(life.d.test(at(leaf_border + 8 * self)), "registered to the end");
}

constexpr unsigned slowdown =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    10;
#else
    1;
#endif
#else
    1;
#endif

void explore_schedules(const std::string& name, std::uint64_t seeds,
                       const std::function<void()>& body) {
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        const testing::result r = testing::explore(
            {.seeds = testing::scaled(seeds, 50 * seeds, 2000 * seeds) / slowdown,
             .strategy = strategy,
             .name = name + (strategy == testing::strategy::pct ? " pct" : " random"),
             .depth = 4},
            body);
        EXPECT_TRUE(r.ok) << r.report;
        if (!r.ok) return;
    }
}
void explore_threads(const std::string& name, const std::function<void()>& body) {
    const testing::result r = testing::threads_for<os::native_platform>::explore(
        {.name = name, .native_rounds = static_cast<unsigned>(testing::scaled(5, 100, 5000))},
        body);
    EXPECT_TRUE(r.ok) << r.report;
}

#define OBASE_CONVERSATION(body, seeds)                                                            \
    TEST(directory, body##_scheduled) {                                                            \
        explore_schedules(#body, seeds, body<testing::deterministic_platform>);                    \
    }                                                                                              \
    TEST(directory, body##_on_threads) { explore_threads(#body, body<os::native_platform>); }

OBASE_CONVERSATION(a_cleared_slot_is_left_alone, 3000)
OBASE_CONVERSATION(a_cleared_range_is_left_alone, 3000)
OBASE_CONVERSATION(registered_slots_survive_the_retirement_of_leaves, 1500)

// Owners in all corners of the address space, natively: each sees its own slots, whatever other
// threads make leaves at the same time.
TEST(directory, threads_share_leaves_and_words) {
    using threads = testing::threads_for<os::native_platform>;
    explore_threads("shared leaves", [] {
        native_directory d;
        threads::require(d.open(), "room");
        constexpr unsigned owners = 3, slots = 600;
        const auto slot_of = [](unsigned owner, unsigned i) {
            return at(leaf_border + i * 0x13000u + 8 * owner);
        };
        for (unsigned owner = 0; owner < owners; ++owner)
            threads::spawn([&, owner] {
                for (unsigned i = 0; i < slots; ++i)
                    threads::require(d.set(slot_of(owner, i)), "room");
                for (unsigned i = 0; i < slots; i += 2) d.clear(slot_of(owner, i));
                for (unsigned i = 0; i < slots; ++i)
                    threads::require(d.test(slot_of(owner, i)) == (i % 2 == 1), "as left");
            });
        threads::run();
        d.refresh();
        std::size_t found = 0;
        for (auto* leaf : d.leaves())
            d.scan(*leaf, 0, ~std::uintptr_t{0}, [&](std::uintptr_t, std::uint64_t bits) {
                found += static_cast<std::size_t>(std::popcount(bits));
            });
        threads::require(found == owners * slots / 2, "all are found");
    });
}

// A destroyer with a real-time priority on the collector's processor lets the collector go on. One
// that only yielded would use up the processor; the CPU time says which, however slow the machine.
TEST(directory, a_real_time_destroyer_sleeps_until_the_visit_has_ended) {
    native_directory slots;
    ASSERT_TRUE(slots.open());
    alignas(512) static std::uint64_t slot;
    ASSERT_TRUE(slots.set(&slot));
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    word::native_atomic<std::uint32_t> refused, used_ms, destroying;
    ASSERT_TRUE(slots.begin_visit(&slot));
    std::thread destroyer([&] {
        sched_param real_time{};
        real_time.sched_priority = 1;
        if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &real_time) != 0)
            refused.store_release(1);
        destroying.store_release(1);
        if (refused.load_relaxed() != 0) return;
        const std::uint64_t begin = os::thread_cpu_ns();
        slots.clear(&slot);
        used_ms.store_release(
            static_cast<std::uint32_t>((os::thread_cpu_ns() - begin) / 1'000'000));
    });
    while (destroying.load_acquire() == 0) os::sleep_ns(1'000'000);
    // What is left of the visit takes 20 ms of this processor.
    const std::uint64_t begin = os::thread_cpu_ns();
    while (refused.load_acquire() == 0 && os::thread_cpu_ns() - begin < 20'000'000) {
    }
    slots.end_visit();
    destroyer.join();
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    if (refused.load_acquire() != 0) GTEST_SKIP() << "no right to real-time priorities";
    EXPECT_LT(used_ms.load_acquire(), 15u);
}

} // namespace
} // namespace obase::soda
