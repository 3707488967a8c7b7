// SPDX-License-Identifier: MIT
//
// world: the arming protocol without a runtime around it, small enough for the deterministic
// scheduler. It has the real registry, directory, mover and reclaimer; the heap, the threads' half
// of the protocol (written here as the runtime writes it) and the objects are the test's own.
//
// One source runs in two ways: `in_schedule` under testing::deterministic_platform, where every
// operation is a step, freed memory is known and stores wait in store buffers; `on_threads` on OS
// threads, where ThreadSanitizer watches. The heap gives the address freed last to the next
// allocation, because a protocol that survives ABA survives everything easier.
//
// The oracle is the test's: each object carries an identity and a version, and the test knows which
// version it wrote last. Nothing of it is shared with the code under test.
#pragma once

#include "mobility/arming_mover.hpp"
#include "mobility/pins.hpp"
#include "mobility/reclaimer.hpp"
#include "mobility/scope_registry.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/thread.hpp"
#include "soda/directory.hpp"
#include "testing/deterministic.hpp"
#include "testing/native_threads.hpp"
#include "testing/tier.hpp"
#include "testing/tracked_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace obase::testing {

// The size of an object in the deterministic heap. Being of this namespace, it makes the mover call
// the racy_copy() below, which copies word by word, each a step of the schedule.
struct tracked_size {
    std::size_t bytes;
    operator std::size_t() const noexcept { return bytes; }
};
inline void racy_copy(void* to, const void* from, tracked_size size) {
    testing::racy_copy(to, from, size.bytes);
}

} // namespace obase::testing

namespace obase::mobility {

struct no_attributes {};

// The window numbers of these tests are multiples of 2^14, so all stamps are zero: a stamp that has
// come round to the same value is the worst case for an exact-word comparison.
inline constexpr std::uint64_t window_step = std::uint64_t{1} << word::arming::stamp_bits;

// Heaps. Both have what arming_mover asks for, and allocate(), free(), map() and unmap()
// for threads.

template <class P>
class scheduled_heap {
  public:
    struct facts {
        testing::tracked_size size;
        no_attributes attr;
    };

    scheduled_heap() : blocks_({.reuse = testing::address_reuse::last_freed_first}) {}

    void* allocate(std::size_t size) { return include(blocks_.allocate(size, "block"), size); }
    void free(void* p) { blocks_.free(p); }
    // Memory that goes back to the system with what is in it: every later access is a failure.
    void* map(std::size_t size) { return include(mapped_.allocate(size, "mapped"), size); }
    void unmap(void* p, std::size_t size) {
        mapped_.free(p);
        mapped_.unmap(p, size);
    }

    bool contains(const void* p) const noexcept {
        const auto a = reinterpret_cast<std::uintptr_t>(p);
        return a >= begin_ && a < end_;
    }
    facts info(const void* p) const noexcept { return {{blocks_.live(p) ? object_bytes : 0}, {}}; }
    void* allocate_dense(unsigned, std::size_t size, no_attributes) {
        return full ? nullptr : allocate(size);
    }
    void undo_allocate_dense(void* p) { free(p); }

    std::size_t live_blocks() const { return blocks_.live_blocks() + mapped_.live_blocks(); }
    std::uintptr_t begin() const noexcept { return begin_; }
    std::uintptr_t end() const noexcept { return end_; }

    bool full = false;
    std::size_t object_bytes = 0;

  private:
    void* include(void* p, std::size_t size) noexcept {
        const auto a = reinterpret_cast<std::uintptr_t>(p);
        begin_ = std::min(begin_, a);
        end_ = std::max(end_, a + size);
        return p;
    }

    testing::tracked_heap blocks_;
    testing::tracked_heap mapped_;
    std::uintptr_t begin_ = ~std::uintptr_t{0};
    std::uintptr_t end_ = 0;
};

template <class P>
class native_heap {
  public:
    struct facts {
        std::size_t size;
        no_attributes attr;
    };
    static constexpr std::size_t block_bytes = 64;
    static constexpr std::size_t blocks = 8192; // what two preempted threads retire meanwhile

    native_heap() : arena_(static_cast<char*>(os::reserve(blocks * block_bytes, os::page_size))) {
        if (arena_ == nullptr || os::commit(arena_, blocks * block_bytes) != 0)
            throw std::bad_alloc();
        for (std::size_t i = blocks; i-- != 0;) unused_.push_back(i);
    }
    ~native_heap() { os::release(arena_, blocks * block_bytes); }
    native_heap(const native_heap&) = delete;
    native_heap& operator=(const native_heap&) = delete;

    void* allocate(std::size_t) {
        const std::lock_guard lock(mutex_);
        if (unused_.empty()) std::abort(); // the test leaks
        const std::size_t i = unused_.back();
        unused_.pop_back();
        size_[i].store_release(static_cast<std::uint32_t>(object_bytes));
        return arena_ + i * block_bytes;
    }
    void free(void* p) {
        const std::size_t i = index_of(p);
        if (size_[i].exchange_acq_rel(0) == 0) std::abort(); // second free
        std::memset(p, 0xdd, block_bytes);
        const std::lock_guard lock(mutex_);
        unused_.push_back(i);
    }
    // Real pages are unmapped in containers_are_unmapped_under_the_collector.
    void* map(std::size_t size) { return allocate(size); }
    void unmap(void* p, std::size_t) { free(p); }

    bool contains(const void* p) const noexcept {
        return p >= arena_ && p < arena_ + blocks * block_bytes;
    }
    facts info(const void* p) const noexcept { return {size_[index_of(p)].load_acquire(), {}}; }
    void* allocate_dense(unsigned, std::size_t size, no_attributes) {
        return full ? nullptr : allocate(size);
    }
    void undo_allocate_dense(void* p) { free(p); }

    std::size_t live_blocks() {
        const std::lock_guard lock(mutex_);
        return blocks - unused_.size();
    }
    std::uintptr_t begin() const noexcept { return reinterpret_cast<std::uintptr_t>(arena_); }
    std::uintptr_t end() const noexcept { return begin() + blocks * block_bytes; }

    bool full = false;
    std::size_t object_bytes = 0;

  private:
    std::size_t index_of(const void* p) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(p) - arena_) / block_bytes;
    }

    char* arena_;
    std::mutex mutex_;
    std::vector<std::size_t> unused_;
    std::array<word::native_atomic<std::uint32_t>, blocks> size_{};
};

// A word that one thread at a time uses, by the test's design: ThreadSanitizer holds the protocol
// to the happens-before that ordinary user data needs.
class plain_cell {
  public:
    plain_cell() = default;
    explicit plain_cell(std::uint64_t value) : value_(value) {}
    std::uint64_t load_relaxed() const noexcept { return value_; }
    void store_relaxed(std::uint64_t value) noexcept { value_ = value; }

  private:
    std::uint64_t value_ = 0;
};

template <class P>
struct in_schedule : testing::threads_for<P> {
    using platform = P;
    using heap = scheduled_heap<P>;
    using exclusive_cell = typename P::template atomic<std::uint64_t>;
    using shared_cell = exclusive_cell;
    static unsigned rounds(unsigned scheduled, unsigned) { return scheduled; }
};

template <class P>
struct on_threads : testing::threads_for<P> {
    using platform = P;
    using heap = native_heap<P>;
    using exclusive_cell = plain_cell;
    using shared_cell = typename P::template atomic<std::uint64_t>;
    static unsigned rounds(unsigned, unsigned native) { return native; }
};

// threads_for is specialized for the deterministic platform itself; platforms derived from it are
// scheduled likewise.
template <class Derived>
struct scheduled_as : in_schedule<testing::deterministic_platform> {
    using platform = Derived;
    using heap = scheduled_heap<Derived>;
    using exclusive_cell = typename Derived::template atomic<std::uint64_t>;
    using shared_cell = exclusive_cell;
};

template <class E, class Cell>
class world {
  public:
    using P = typename E::platform;
    using slot = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using pin_entry = typename P::template atomic<std::uint64_t>;
    using mover_type = arming_mover<P, typename E::heap>;

    struct object {
        object(std::uint64_t identity, std::uint64_t v)
            : nested(0), id(identity), version(v), check(identity ^ ~v) {}
        slot nested;
        Cell id;
        Cell version;
        Cell check; // of exclusive objects
    };
    // What a slot that is not inside an object lives in.
    struct holder {
        explicit holder(std::uint64_t word) : guide(word), spare{} {}
        slot guide;
        std::uint64_t spare[3]; // of an object's size, so that either may follow the other
    };
    static_assert(sizeof(object) == sizeof(holder));

    world() {
        heap.object_bytes = sizeof(object);
        E::require(slots.open(), "room for the directory");
    }

    // A thread's life. The records are the world's, so attach() never fails.
    record& attach() {
        record* r = registry.find_unused(1);
        if (r != nullptr) return *r;
        const std::uint32_t i = used_records_.fetch_add_relaxed(1);
        if (i >= records_.size()) std::abort(); // the test has too many threads
        registry.add(records_[i], 1);
        return records_[i];
    }
    void detach(record& r) { registry.release(r); }

    class scope {
      public:
        scope(world& w, record& r) : record_(r), outer_(enter_scope(r, w.registry.epoch())) {}
        ~scope() { exit_scope(record_, outer_); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        record& record_;
        epoch_number outer_;
    };

    // In a scope.
    object* dereference(slot& s) { return to_object(word::touch(s).address); }

    // Takes the slot's object out and puts `word` in. The caller owns the object.
    static object* take(slot& s, std::uint64_t word) {
        return to_object(word::arming::address(word::replace(s, word)));
    }

    object* make(std::uint64_t id, std::uint64_t version) {
        return ::new (heap.allocate(sizeof(object))) object(id, version);
    }
    static std::uint64_t born(object* o) {
        return word::arming::make_born(reinterpret_cast<std::uint64_t>(o));
    }
    static object* to_object(std::uint64_t word) {
        return reinterpret_cast<object*>(word::arming::address(word));
    }

    // R10: the word first, then the bit.
    holder* make_holder(record& r, object* o) {
        return make_holder(r, o, heap.allocate(sizeof(holder)));
    }
    holder* make_holder(record& r, object* o, void* memory) {
        const scope in(*this, r);
        auto* h = ::new (memory) holder(o == nullptr ? 0 : born(o));
        E::require(slots.set(&h->guide), "room for a leaf");
        return h;
    }
    void give_nested(record& r, object* parent, object* child) {
        const scope in(*this, r);
        parent->nested.store_release(born(child));
        E::require(slots.set(&parent->nested), "room for a leaf");
    }
    // R10: the bit first, then the word. Returns the object, whose owner is the caller.
    object* end_slot(record& r, slot& s) {
        const scope in(*this, r);
        slots.clear(&s);
        return to_object(word::arming::address(s.load_acquire()));
    }
    // An object nobody else can reach, with what it owns.
    void destroy(record& r, object* o) {
        if (o == nullptr) return;
        if (object* child = end_slot(r, o->nested); child != nullptr) destroy(r, child);
        heap.free(o);
    }
    void destroy(record& r, holder* h) {
        object* o = end_slot(r, h->guide);
        heap.free(h);
        destroy(r, o);
    }

    // Exclusive objects: the caller is the only thread that uses this one.
    void verify(object* o, std::uint64_t id, std::uint64_t version) {
        E::require(o->id.load_relaxed() == id, "the object is the one that was put there");
        E::require(o->version.load_relaxed() == version, "no write lost, nothing stale read");
        E::require(o->check.load_relaxed() == (id ^ ~version), "the object is whole");
    }
    void update(object* o, std::uint64_t id, std::uint64_t version) {
        o->version.store_relaxed(version);
        o->check.store_relaxed(id ^ ~version);
    }

    // The collector. Visits all slots; whatever is movable becomes a candidate.
    void scan(std::uint64_t window) {
        mover.forget(); // R6
        slots.refresh();
        for (auto* leaf : slots.leaves())
            slots.scan(*leaf, heap.begin(), heap.end(),
                       [&](std::uintptr_t base, std::uint64_t bits) {
                           for (; bits != 0; bits &= bits - 1) {
                               const auto bit = static_cast<unsigned>(std::countr_zero(bits));
                               slot& s = *reinterpret_cast<slot*>(base + 8u * bit);
                               const observation seen = mover.visit(s, window);
                               if (seen.movable) mover.add_candidate(s, seen, 1);
                           }
                       });
    }
    // Moves what settle() has left: nothing, if the wait was given up.
    unsigned move_all(std::uint64_t window) {
        unsigned moved = 0;
        for (const auto& c : std::vector(mover.candidates())) {
            moved_object result;
            moved += mover.move(c, window, result) == move_result::moved;
        }
        mover.forget();
        return moved;
    }
    template <class GiveUp>
    unsigned collect(std::uint64_t window, const record* self, GiveUp&& give_up) {
        scan(window);
        mover.settle(self, give_up);
        return move_all(window);
    }
    unsigned collect(std::uint64_t window) {
        return collect(window, nullptr, [](const record&) { return false; });
    }

    // Spawns a thread that is attached while `work(record)` runs.
    template <class Work>
    void thread(const char* name, Work work) {
        busy.fetch_add_relaxed(1);
        E::spawn(name, [this, work] {
            record& r = attach();
            work(r);
            detach(r);
            busy.fetch_sub_acq_rel(1);
        });
    }
    // Spawns the collector: `windows` of them in a schedule; natively until the others are done.
    template <class Window>
    void collector(unsigned windows, Window window) {
        E::spawn("collector", [this, windows, window] {
            for (std::uint64_t w = 1; E::deterministic ? w <= windows : busy.load_acquire() != 0;
                 ++w)
                window(w * window_step);
        });
    }
    void collector(unsigned windows = 2) {
        collector(windows, [this](std::uint64_t w) { moves.fetch_add_relaxed(collect(w)); });
    }

    scope_registry<P> registry;
    soda::directory<P> slots;
    typename E::heap heap;
    mover_type mover{registry, slots, heap};
    reclaimer<P> reclaim{registry};
    typename P::template atomic<unsigned> busy;
    typename P::template atomic<std::uint64_t> moves;

  private:
    std::array<record, 12> records_;
    typename P::template atomic<std::uint32_t> used_records_;
};

template <class E>
using exclusive_world = world<E, typename E::exclusive_cell>;
template <class E>
using shared_world = world<E, typename E::shared_cell>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr unsigned sanitizer_slowdown = 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr unsigned sanitizer_slowdown = 10;
#else
inline constexpr unsigned sanitizer_slowdown = 1;
#endif
#else
inline constexpr unsigned sanitizer_slowdown = 1;
#endif

// How many schedules of a body, relative to the usual number.
inline std::uint64_t seeds(std::uint64_t ci) {
    return std::max<std::uint64_t>(testing::scaled(ci, ci * 50, ci * 2000) / sanitizer_slowdown,
                                   20);
}

// Runs `body` under both strategies.
inline void explore_schedules(const std::string& name, std::uint64_t ci_seeds,
                              const std::function<void()>& body, testing::exploration e = {}) {
    e.seeds = seeds(ci_seeds);
    for (const auto strategy : {testing::strategy::random, testing::strategy::pct}) {
        e.strategy = strategy;
        e.depth = 4;
        e.name = name + (strategy == testing::strategy::pct ? " pct" : " random");
        const testing::result r = testing::explore(e, body);
        EXPECT_TRUE(r.ok) << r.report;
        if (!r.ok) return;
    }
}

inline void explore_threads(const std::string& name, const std::function<void()>& body) {
    const testing::result r = testing::threads_for<os::native_platform>::explore(
        {.name = name, .native_rounds = static_cast<unsigned>(testing::scaled(3, 50, 2000))}, body);
    EXPECT_TRUE(r.ok) << r.report;
}

} // namespace obase::mobility
