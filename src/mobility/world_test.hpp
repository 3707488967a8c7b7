// SPDX-License-Identifier: MIT
//
// world: a protocol without a runtime around it, small enough for the deterministic scheduler. The
// registry, the directory, both halves of the protocol and the reclaimer are the library's own text;
// the heap and the objects are the test's.
//
// One source runs in two ways: `in_schedule` under testing::deterministic_platform, where every
// operation is a step, freed memory is known and stores wait in store buffers; `on_threads` on OS
// threads, where ThreadSanitizer watches. The heap gives the address freed last to the next
// allocation, because a protocol that survives ABA survives everything easier.
//
// The oracle is the test's: each object carries an identity and a version, and the test knows which
// version it wrote last. Nothing of it is shared with the code under test.
#pragma once

#include "mobility/activity_index.hpp"
#include "mobility/arming_mover.hpp"
#include "mobility/arming_thread.hpp"
#include "mobility/atc_mover.hpp"
#include "mobility/atc_thread.hpp"
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
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
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

// Heaps. Both have what the movers ask for, and allocate(), free(), map() and unmap()
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
    unsigned class_of(const void*) const noexcept { return 1; }
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
    unsigned class_of(const void*) const noexcept { return 1; }
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

// The protocols of worlds: the shipped halves of one each, on the heap and the platform of E, and where
// its threads' records come from. Both have:
//   user                 what a thread is to the protocol
//   attach(), detach()   a thread's life
//   enter(), leave()     scopes
//   touch(), construct(), end(), forget(), exchange(), compare_exchange()
//                        the life of slots. touch() and compare_exchange() want a scope
//   expect_addresses_in_two_slots()   operations are about to do what those on marked pointers do
//   owned(), address()   the word of an object that is in no slot; the address in such a word
//   batches              rounds of moves in one window of a collector that is in no hurry

template <class E>
class arming_protocol {
  public:
    using P = typename E::platform;
    using slot = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using user = record;
    using layout = word::arming;
    using mover_type = arming_mover<P, typename E::heap>;
    static constexpr unsigned batches = 1;

    // The records are the world's, so attach() never fails.
    user& attach() {
        return *claim_record(registry, 1, [this] {
            const std::uint32_t i = used_records_.fetch_add_relaxed(1);
            if (i >= records_.size()) std::abort(); // the test has too many threads
            return &records_[i];
        });
    }
    void detach(user& u) { registry.release(u); }
    static record& record_of(user& u) { return u; }

    epoch_number enter(user& u) { return half_.enter(u); }
    void leave(user& u, epoch_number outer) { half_.leave(u, outer); }
    void expect_addresses_in_two_slots() { registry.expect_addresses_in_two_slots(); }

    std::uint64_t touch(user& u, slot& s) { return half_.dereference(u, s); }
    bool construct(user& u, slot& s, std::uint64_t word) { return half_.construct(u, s, word); }
    std::uint64_t end(user& u, slot& s) { return half_.destroy(u, s); }
    void forget(user& u, void* begin, void* end) { half_.forget_range(u, begin, end); }
    std::uint64_t exchange(user&, slot& s, std::uint64_t word) {
        const std::uint64_t old = half_.exchange(s, word);
        E::require(!layout::is_armed(old), "only the collector makes armed words");
        return old;
    }
    bool compare_exchange(user&, slot& s, std::uint64_t& expected, std::uint64_t word) {
        return half_.compare_exchange(s, expected, word);
    }
    static std::uint64_t address(std::uint64_t word) { return layout::address(word); }
    static std::uint64_t owned(std::uint64_t address) {
        return address != 0 ? layout::make_born(address) : 0;
    }

    // What arming_threads asks of the engine.
    scope_registry<P>& threads() noexcept { return registry; }
    soda::directory<P>& directory() noexcept { return slots; }
    void end_scope(record& r) noexcept {
        r.exit_work = false;
        exit_scope(r, 0);
    }
    static bool rearms() noexcept { return false; }
    static void record_touch(record&, slot&) noexcept {}

    scope_registry<P> registry;
    soda::directory<P> slots;
    typename E::heap heap;
    mover_type mover{registry, slots, heap};

  private:
    arming_threads<P, arming_protocol> half_{*this};
    std::array<record, 12> records_;
    typename P::template atomic<std::uint32_t> used_records_;
};

// Its index has one place, so that every second thread collides.
template <class E>
class atc_protocol {
  public:
    using P = typename E::platform;
    using slot = typename P::template atomic<std::uint64_t>;
    using record = thread_record<P>;
    using user = atc_entry<P>;
    using index_type = activity_index<P, user, 1>;
    using layout = word::atc;
    using heap_type = typename E::heap;
    using mover_type = atc_mover<P, heap_type>;
    // All but the first visit slots in ACTIVE and do not wait.
    static constexpr unsigned batches = 2;

    atc_protocol() { E::require(mover.reserve(1000), "room for all slots of a test"); }

    user& attach() {
        const std::uint32_t id = ids_.fetch_add_relaxed(1) + 1;
        return *index.claim(registry, id, [this] {
            auto fresh = std::make_unique<typename index_type::place>();
            auto* p = fresh.get();
            const std::lock_guard lock(places_mutex_);
            places_.push_back(std::move(fresh));
            return p;
        });
    }
    void detach(user& u) {
        threads.detach(u.context);
        registry.release(u.record);
    }
    static record& record_of(user& u) { return u.record; }

    epoch_number enter(user& u) { return threads.enter(u.record, u.context); }
    void leave(user& u, epoch_number outer) { threads.leave(u.record, u.context, outer); }
    void expect_addresses_in_two_slots() { registry.expect_addresses_in_two_slots(); }

    std::uint64_t touch(user& u, slot& s) { return threads.dereference(u.context, s); }
    bool construct(user& u, slot& s, std::uint64_t word) {
        const epoch_number outer = enter(u);
        threads.construct(s, word);
        leave(u, outer);
        return slots.test(&s);
    }
    std::uint64_t end(user& u, slot& s) {
        const epoch_number outer = enter(u);
        const std::uint64_t object = threads.destroy(&u.context, s);
        leave(u, outer);
        return object;
    }
    void forget(user& u, void* begin, void* end) {
        const epoch_number outer = enter(u);
        threads.forget_range(&u.context, begin, end);
        leave(u, outer);
    }
    std::uint64_t exchange(user& u, slot& s, std::uint64_t word) {
        const epoch_number outer = enter(u);
        const std::uint64_t old = threads.exchange(s, word);
        leave(u, outer);
        return old;
    }
    // As the public compare-exchange does it.
    bool compare_exchange(user& u, slot& s, std::uint64_t& expected, std::uint64_t word) {
        for (;;) {
            if (threads.exchange_if(s, expected, word)) return true;
            const std::uint64_t current = touch(u, s);
            if (current != expected) {
                expected = current;
                return false;
            }
        }
    }
    static std::uint64_t address(std::uint64_t word) { return layout::address(word); }
    static std::uint64_t owned(std::uint64_t address) {
        return address != 0 ? layout::make_born(address) : 0;
    }

    scope_registry<P> registry;
    soda::directory<P> slots;
    heap_type heap;
    atc_state<P> state;
    atc_threads<P> threads{registry, slots, state};
    mover_type mover{registry, slots, heap, state};
    index_type index;

  private:
    typename P::template atomic<std::uint32_t> ids_;
    std::mutex places_mutex_;
    std::vector<std::unique_ptr<typename index_type::place>> places_;
};

template <class E, class Cell, template <class> class Protocol>
class world : public Protocol<E> {
  public:
    using protocol = Protocol<E>;
    using P = typename E::platform;
    using slot = typename protocol::slot;
    using record = typename protocol::record;
    using user = typename protocol::user;
    static_assert(object_heap<typename E::heap>);
    static_assert(mover<typename protocol::mover_type>);
    using pin_entry = typename P::template atomic<std::uint64_t>;

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
        holder() : guide(0), spare{} {}
        slot guide;
        std::uint64_t spare[3]; // of an object's size, so that either may follow the other
    };
    static_assert(sizeof(object) == sizeof(holder));

    world() {
        this->heap.object_bytes = sizeof(object);
        E::require(this->slots.open(), "room for the directory");
    }

    class scope {
      public:
        scope(world& w, user& u) : world_(w), user_(u), outer_(w.enter(u)) {}
        ~scope() { world_.leave(user_, outer_); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        world& world_;
        user& user_;
        epoch_number outer_;
    };

    static object* to_object(std::uint64_t address) { return reinterpret_cast<object*>(address); }
    static std::uint64_t to_address(const object* o) { return reinterpret_cast<std::uint64_t>(o); }
    static std::uint64_t word_of(object* o) { return protocol::owned(to_address(o)); }

    // Precondition: inside a scope.
    object* dereference(user& u, slot& s) { return to_object(protocol::touch(u, s)); }
    // Takes the slot's object out and puts `o` in. The caller owns what comes out.
    object* exchange(user& u, slot& s, object* o) {
        return to_object(protocol::address(protocol::exchange(u, s, word_of(o))));
    }
    // Precondition: inside a scope.
    bool compare_exchange(user& u, slot& s, object*& expected, object* o) {
        std::uint64_t seen = to_address(expected);
        const bool done = protocol::compare_exchange(u, s, seen, word_of(o));
        expected = to_object(seen);
        return done;
    }

    object* make(std::uint64_t id, std::uint64_t version) {
        return ::new (this->heap.allocate(sizeof(object))) object(id, version);
    }
    holder* make_holder(user& u, object* o) {
        return make_holder(u, o, this->heap.allocate(sizeof(holder)));
    }
    holder* make_holder(user& u, object* o, void* memory) {
        auto* h = ::new (memory) holder;
        give(u, h->guide, o);
        return h;
    }
    void give_nested(user& u, object* parent, object* child) { give(u, parent->nested, child); }
    void give(user& u, slot& s, object* o) {
        E::require(protocol::construct(u, s, word_of(o)), "room for a leaf");
    }
    // Returns the object, whose owner is the caller.
    object* end_slot(user& u, slot& s) { return to_object(protocol::end(u, s)); }
    // An object that no other thread can reach, with what it owns.
    void destroy(user& u, object* o) {
        if (o == nullptr) return;
        if (object* child = end_slot(u, o->nested); child != nullptr) destroy(u, child);
        this->heap.free(o);
    }
    void destroy(user& u, holder* h) {
        object* o = end_slot(u, h->guide);
        this->heap.free(h);
        destroy(u, o);
    }
    // The end of a body: these are destroyed, nothing is left, and the thread ends.
    template <class... Ended>
    void finish(user& u, Ended*... ended) {
        (destroy(u, ended), ...);
        E::require(this->heap.live_blocks() == 0, "no leak");
        this->detach(u);
    }

    pin_entry* pin(user& u, object* o) {
        return claim_pin<P>(protocol::record_of(u), to_address(o),
                            [] { return static_cast<pin_chunk<P>*>(nullptr); });
    }
    void retire(user& u, object* o) {
        reclaim.retire(protocol::record_of(u),
                       *new retired_object{nullptr, o, [](void*) noexcept {}, sizeof *o});
    }
    void free_retired() {
        reclaim.reclaim([this](retired_object* node) {
            this->heap.free(node->object);
            delete node;
        });
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

    // The collector. Visits all slots in [begin, end); what is movable becomes a candidate.
    void scan(std::uint64_t window = window_step) {
        scan(window, this->heap.begin(), this->heap.end());
    }
    void scan(std::uint64_t window, std::uintptr_t begin, std::uintptr_t end) {
        this->mover.forget(); // R6
        this->slots.refresh();
        for (auto* leaf : this->slots.leaves())
            this->slots.scan(*leaf, begin, end, [&](std::uintptr_t base, std::uint64_t bits) {
                for (; bits != 0; bits &= bits - 1) {
                    const auto bit = static_cast<unsigned>(std::countr_zero(bits));
                    slot& s = *reinterpret_cast<slot*>(base + 8u * bit);
                    const observation seen = this->mover.visit(s, window);
                    if (seen.movable) this->mover.add_candidate(s, seen, 1);
                }
            });
    }
    // Moves what wait_for_grace_period() has left: nothing, if the wait was given up.
    unsigned move_all(std::uint64_t window = window_step) {
        unsigned moved = 0;
        for (const auto& c :
             std::vector(this->mover.candidates().begin(), this->mover.candidates().end())) {
            moved_object result;
            moved += this->mover.move(c, window, result) == move_result::moved;
        }
        this->mover.forget();
        return moved;
    }
    template <class GiveUp>
    unsigned collect(std::uint64_t window, unsigned rounds, const record* self, GiveUp&& give_up) {
        unsigned moved = 0;
        for (unsigned i = 0; i < rounds; ++i) {
            scan(window);
            if (this->mover.candidates().empty()) continue;
            if (this->mover.wait_for_grace_period(self, give_up) == wait_result::given_up) break;
            moved += move_all(window);
        }
        this->mover.finish();
        return moved;
    }
    template <class GiveUp>
    unsigned collect(std::uint64_t window, const record* self, GiveUp&& give_up) {
        return collect(window, protocol::batches, self, give_up);
    }
    unsigned collect(std::uint64_t window = window_step) {
        return collect(window, nullptr, [](const record&) { return false; });
    }
    // How many slots are registered in the heap. No threads.
    std::size_t registered() {
        std::size_t count = 0;
        this->slots.refresh();
        for (auto* leaf : this->slots.leaves())
            this->slots.scan(*leaf, this->heap.begin(), this->heap.end(),
                             [&](std::uintptr_t, std::uint64_t bits) {
                                 count += static_cast<std::size_t>(std::popcount(bits));
                             });
        return count;
    }

    bool registered_in_scope(user& u, const slot& s) {
        const scope in(*this, u);
        return this->slots.test(&s);
    }

    // Spawns a thread that is attached while `work(user)` runs.
    template <class Work>
    void thread(const char* name, Work work) {
        busy.fetch_add_relaxed(1);
        E::spawn(name, [this, work] {
            user& u = this->attach();
            work(u);
            this->detach(u);
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

    reclaimer<P> reclaim{this->registry};
    typename P::template atomic<unsigned> busy;
    typename P::template atomic<std::uint64_t> moves;
};

template <class E, template <class> class Protocol>
using exclusive_world = world<E, typename E::exclusive_cell, Protocol>;
template <class E, template <class> class Protocol>
using shared_world = world<E, typename E::shared_cell, Protocol>;

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
