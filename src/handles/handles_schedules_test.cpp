// SPDX-License-Identifier: MIT
//
// Handles under chosen schedules, and on threads: the library's own text of homes, threads, forwarding and evacuator,
// with the mover that moves all objects, in a world whose memory is cells. There is one run of homes, with three
// blocks; addresses are numbers, and an access to a home whose page is away is a failure, as it is a fault in a
// program.
#include "handles/evacuator.hpp"
#include "handles/judging.hpp"
#include "heap/schedules_test.hpp"
#include "os/platform.hpp"
#include "policy/three_temperatures.hpp"
#include "testing/deterministic.hpp"
#include "testing/native_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace obase::handles {

namespace {

constexpr std::size_t blocks = 3;
constexpr std::size_t block_bytes = 16384;
constexpr std::uint64_t homes_begin = 0x10'0000'0000;
constexpr std::uint64_t alias_begin = 0x20'0000'0000;
constexpr std::uint64_t dense_begin = 0x30'0000'0000;
constexpr std::size_t dense_places = 16;

constexpr std::uint64_t home_of_block(std::size_t block) noexcept {
    return homes_begin + block * block_bytes;
}

// What is in the objects.
using values = std::array<std::uint64_t, blocks>;
constexpr values first_values{100, 200, 300};

using heap::explore_schedules;

template <class P>
class world;

// The size of an object: makes the movers call the racy_copy() below.
template <class P>
struct cell_size {
    world<P>* in;
    std::size_t bytes;
    operator std::size_t() const noexcept { return bytes; }
};

template <class P>
class world {
    using threads_of_test = testing::threads_for<P>;

  public:
    template <class T>
    using atomic = typename P::template atomic<T>;
    using record = handles_record<P>;
    using table_type = forwarding_table<P>;

    struct uninterrupted {
        uninterrupted() noexcept {}
    };
    // What the mover sees.
    struct mover_heap {
        struct facts {
            cell_size<P> size;
            int attr;
        };
        world& all;
        bool contains(const void*) const noexcept { return true; }
        facts info(const void*) const noexcept { return {{&all, block_bytes}, 0}; }
        void* allocate_dense(unsigned to, std::size_t, int) noexcept {
            const std::size_t place = all.next_dense++;
            threads_of_test::require(place < dense_places, "the test has room for all moves");
            all.cls[place] = to;
            all.dense_live[place].store_seq_cst(1);
            return reinterpret_cast<void*>(dense_begin + place * block_bytes);
        }
        void undo_allocate_dense(void* p) noexcept {
            all.free_dense(reinterpret_cast<std::uint64_t>(p));
        }
        void free(void* p) noexcept {
            const auto address = reinterpret_cast<std::uint64_t>(p);
            if (!all.in_alias(address)) all.free_dense(address);
        }
    };
    static constexpr unsigned target_class = 1;

    world()
        : threads(*this, wanted), objects(*this), current{*this},
          collector(*this, threads, objects) {
        for (std::size_t i = 0; i < blocks; ++i) {
            out[i].store_seq_cst(1);
            home[i].store_seq_cst(first_values[i]);
        }
        accessible.store_seq_cst(1);
        for (record& r : records) threads.all().add(r, 1);
        for (auto& each : cached) each.store_seq_cst(no_block);
    }
    // When all threads have ended.
    ~world() {
        // All tables are retired, and die in the next round.
        collector.stop_tracking(0);
        collector.drop_paused(0);
        for (std::size_t i = 0; i < cached.size(); ++i) flush_cache(i);
        for (std::size_t i = 0; i < blocks; ++i)
            if (!ended[i] && out[i].load_relaxed() != 0) end(i);
        for (int i = 0; i < 3; ++i) go(1);
        if (!shrinks)
            threads_of_test::require(collector.table_memory_bytes() == 0, "tables leave no gaps");
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    round_result go(unsigned tries) {
        const std::uint32_t run = 0;
        const bool at_home_now = away_byte.load_relaxed() == at_home;
        return collector.round(&run, at_home_now ? 1 : 0, nullptr, tries,
                               [](const auto&) { return false; });
    }

    // Threads. What compiled code does.
    std::uint64_t address(std::size_t block) {
        const std::uint64_t born = home_of_block(block);
        if (away_byte.load_acquire() == at_home) return born;
        const std::uint64_t quickly = decltype(objects)::translate_quickly(*this, born);
        return quickly != 0 ? quickly : objects.translate(born);
    }
    atomic<std::uint64_t>& cell(std::uint64_t at) {
        if (at >= dense_begin) {
            const std::size_t place = (at - dense_begin) / block_bytes;
            threads_of_test::require(dense_live[place].load_seq_cst() != 0,
                                     "a translation leads to a live copy");
            return dense[place];
        }
        if (at >= alias_begin) {
            threads_of_test::require(ready.load_seq_cst() != 0,
                                     "a translation leads to pages that are there");
            return alias[(at - alias_begin) / block_bytes];
        }
        threads_of_test::require(accessible.load_seq_cst() != 0,
                                 "no translation leads to a page that is away");
        return home[(at - homes_begin) / block_bytes];
    }
    void poll(record& r) {
        if (wanted.load_relaxed() != 0) threads.poll(r);
    }
    // What a thread does in compiled code, from its entry on.
    template <class Body>
    void as_thread(std::size_t i, Body&& body) {
        record& mine = records[i];
        const thread_mark mark = threads.enter(mine);
        body(mine);
        threads.leave(mine, mark);
    }
    // Writes and reads back, several times between polls.
    void use(record& r, std::size_t block, std::uint64_t& value, unsigned times) {
        for (unsigned i = 0; i < times; ++i) {
            const std::uint64_t at = address(block);
            threads_of_test::require(cell(at).load_relaxed() == value, "no write is lost");
            cell(at).store_relaxed(++value);
            poll(r);
        }
    }
    void end(std::size_t block) {
        ended[block] = true;
        const std::uint64_t born = home_of_block(block);
        if (away_byte.load_acquire() == at_home)
            give(block);
        else
            threads_of_test::require(objects.free(born) == free_result::done, "a free is one");
    }
    void give(std::size_t block) {
        threads_of_test::require(out[block].exchange_seq_cst(0) == 1, "a block comes back once");
    }

    // Host.
    std::uint64_t base() const noexcept { return homes_begin; }
    std::uint64_t bytes() const noexcept { return heap::run_bytes; }
    atomic<std::uint8_t>& away(std::size_t) noexcept { return away_byte; }
    atomic<table_type*>& table(std::size_t) noexcept { return the_table; }
    bool in_alias(std::uint64_t at) const noexcept { return at - alias_begin < heap::run_bytes; }
    bool alias_ready(std::uint64_t) const noexcept { return ready.load_acquire() != 0; }
    void alias_is(std::uint64_t, bool now) noexcept { ready.store_release(now ? 1 : 0); }
    void free_to_run(std::uint64_t at) noexcept { give((at - homes_begin) / block_bytes); }
    void free_dense(std::uint64_t at) noexcept {
        threads_of_test::require(dense_live[(at - dense_begin) / block_bytes].exchange_seq_cst(0) ==
                                     1,
                                 "a copy is freed once");
    }
    void freed(std::uint64_t, std::uint64_t was) noexcept {
        if (was >= dense_begin) free_dense(was);
    }
    mover_heap& heap() noexcept { return current; }
    void close() noexcept {}
    bool closed(std::size_t) const noexcept { return true; }
    template <class Visit>
    std::size_t for_each_out(std::size_t, Visit&& visit) {
        for (std::size_t i = 0; i < blocks; ++i)
            if (out[i].load_seq_cst() != 0) visit(i);
        return blocks;
    }
    std::size_t block_size(std::size_t) const noexcept { return block_bytes; }
    std::uint64_t home_of(std::size_t) const noexcept { return homes_begin; }
    bool kept(std::size_t) noexcept { return keep.load_seq_cst() != 0; }
    void reopen(std::size_t) noexcept {}
    // Two steps, as the system calls are: from the first on no access, from the second on the bytes are there.
    bool take_pages(std::size_t, std::uint64_t) noexcept {
        accessible.store_seq_cst(0);
        for (std::size_t i = 0; i < blocks; ++i) {
            alias[i].store_seq_cst(home[i].load_seq_cst());
            home[i].store_seq_cst(~std::uint64_t{0});
        }
        return true;
    }
    std::uint64_t claim_alias(std::uint32_t) noexcept { return alias_begin; }
    void leave_alias(std::uint64_t) noexcept {
        if (ready.load_relaxed() == 0) return;
        for (auto& each : alias) each.store_seq_cst(~std::uint64_t{0});
        ready.store_seq_cst(0);
    }
    bool tables_may_shrink() const noexcept { return shrinks; }
    void evacuated(std::size_t) noexcept {}
    void release(std::size_t) noexcept {
        for (auto& each : out) each.store_seq_cst(0);
        accessible.store_seq_cst(1);
    }
    template <class CopyAll>
    bool put_back(std::size_t, CopyAll&& copy_all, const block_set& live) noexcept {
        copy_all(reinterpret_cast<char*>(homes_begin));
        for (std::size_t i = 0; i < blocks; ++i)
            if (!live.test(i)) out[i].store_seq_cst(0);
        accessible.store_seq_cst(1);
        return true;
    }
    unsigned tier_of(std::uint64_t at) const noexcept {
        return at < dense_begin ? 0 : cls[(at - dense_begin) / block_bytes];
    }
    std::size_t size_of(std::uint64_t) const noexcept { return block_bytes; }
    bool page_out(unsigned, std::uint64_t) const noexcept { return false; }
    void retired(table_type&) noexcept {}
    void moved(unsigned, unsigned, const mobility::moved_object&) noexcept {}
    std::uint64_t clock_ns() const noexcept { return 0; }
    void note_translation(std::uint64_t) noexcept {}
    void much_used() noexcept { alarm.store_seq_cst(1); }
    bool any_evacuating() const noexcept { return compacts; }
    bool evacuating(std::uint64_t) const noexcept { return compacts; }
    void flush_own() noexcept { flush_cache(testing_thread()); }
    void flush(record& r) noexcept { flush_cache(static_cast<std::size_t>(&r - records.data())); }
    void flush_cache(std::size_t of) noexcept {
        const std::uint64_t block = cached[of].load_relaxed();
        if (block == no_block) return;
        cached[of].store_relaxed(no_block);
        give(block);
    }
    // Records and caches are the threads' by their order; the collector's has none.
    std::size_t testing_thread() const { return threads_of_test::thread_index() - 1; }

    static constexpr std::uint64_t no_block = blocks;

    atomic<std::uint8_t> wanted;
    atomic<std::uint8_t> away_byte;
    atomic<table_type*> the_table;
    atomic<std::uint32_t> accessible, ready, keep;
    std::array<atomic<std::uint64_t>, blocks> home, alias;
    std::array<atomic<std::uint64_t>, dense_places> dense;
    std::array<atomic<std::uint32_t>, dense_places> dense_live;
    std::array<atomic<std::uint32_t>, blocks> out;
    std::array<atomic<std::uint64_t>, 3> cached;
    std::array<record, 3> records;
    bool shrinks = false;
    bool compacts = false;
    std::size_t next_dense = 0;
    std::array<unsigned, dense_places> cls{}; // the collector's
    atomic<std::uint32_t> alarm;
    std::array<bool, blocks> ended{}; // each written by one thread
    handles_threads<P, world> threads;
    homes<P, world> objects;
    mover_heap current;
    evacuator<P, world> collector;
};

template <class P>
void racy_copy(void* to, const void* from, cell_size<P> size) {
    world<P>& in = *size.in;
    const auto cell = [&](std::uint64_t at) -> typename P::template atomic<std::uint64_t>& {
        if (at >= dense_begin) return in.dense[(at - dense_begin) / block_bytes];
        if (at >= alias_begin) return in.alias[(at - alias_begin) / block_bytes];
        return in.home[(at - homes_begin) / block_bytes];
    };
    cell(reinterpret_cast<std::uint64_t>(to))
        .store_seq_cst(cell(reinterpret_cast<std::uint64_t>(from)).load_relaxed());
}

// A thread with the record of that number writes to the block of that number, and goes offline in between.
template <class P>
void spawn_user(world<P>& w, std::size_t i, std::uint64_t& value, unsigned times) {
    testing::threads_for<P>::spawn("user", [&w, &value, i, times] {
        w.as_thread(i, [&](auto& mine) {
            w.use(mine, i, value, times);
            w.threads.go_offline(mine);
            w.threads.go_online(mine);
            w.use(mine, i, value, 2);
        });
    });
}

// The first one frees the blocks 0 and 2, with so many polls in between; the second one uses block 1.
template <class P>
void spawn_one_that_frees_and_one_that_uses(world<P>& w, std::uint64_t& value, unsigned polls) {
    testing::threads_for<P>::spawn("frees", [&w, polls] {
        w.as_thread(0, [&](auto& mine) {
            w.end(0);
            for (unsigned i = 0; i < polls; ++i) w.poll(mine);
            w.end(2);
        });
    });
    testing::threads_for<P>::spawn(
        "uses", [&w, &value] { w.as_thread(1, [&](auto& mine) { w.use(mine, 1, value, 3); }); });
}

// When the threads have ended.
template <class P>
void require_written(world<P>& w, std::size_t block, std::uint64_t value) {
    w.as_thread(0, [&](auto&) {
        testing::threads_for<P>::require(w.cell(w.address(block)).load_relaxed() == value,
                                         "an object is what was written last");
    });
}
template <class P>
void require_written(world<P>& w, const values& all) {
    for (std::size_t i = 0; i < blocks; ++i) require_written(w, i, all[i]);
}

template <class P>
void require_one_copy_at_most(const world<P>& w) {
    std::size_t copies = 0;
    for (const auto& each : w.dense_live) copies += each.load_relaxed();
    testing::threads_for<P>::require(copies <= 1, "no copy of a freed object is left");
}

// Two threads use an object each; a third object is nobody's; the run is opened as often as it can be.
template <class P>
void objects_are_used_while_they_move() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    values value = first_values;
    for (std::size_t i = 0; i < 2; ++i) spawn_user(w, i, value[i], 3);
    threads_of_test::spawn("collector", [&w] {
        w.go(2);
        w.go(1);
    });
    threads_of_test::run();
    require_written(w, value);
}
IN_BOTH_WORLDS(handles_schedules, objects_are_used_while_they_move, 2'000)

// One thread frees, the other one uses, whatever the state of the run is.
template <class P>
void objects_are_freed_while_they_move() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    std::uint64_t value = first_values[1];
    spawn_one_that_frees_and_one_that_uses(w, value, 1);
    threads_of_test::spawn("collector", [&w] { w.go(2); });
    threads_of_test::run();
    require_written(w, 1, value);
    w.go(1);
    require_one_copy_at_most(w);
}
IN_BOTH_WORLDS(handles_schedules, objects_are_freed_while_they_move, 2'000)

// Tables become smaller when objects are freed, and the one that is left moves on.
template <class P>
void tables_shrink_while_objects_are_used() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    w.go(1);
    w.shrinks = w.compacts = true;
    std::uint64_t value = first_values[1];
    spawn_one_that_frees_and_one_that_uses(w, value, 1);
    threads_of_test::spawn("collector", [&w] {
        w.go(1);
        w.go(2);
    });
    threads_of_test::run();
    require_written(w, 1, value);
    const auto* const before = w.the_table.load_relaxed();
    threads_of_test::require(before != nullptr, "the run is open");
    w.go(1);
    threads_of_test::require(w.the_table.load_relaxed()->size() == 1, "a word for what lives");
    require_written(w, 1, value);
    require_one_copy_at_most(w);
}
IN_BOTH_WORLDS(handles_schedules, tables_shrink_while_objects_are_used, 2'000)

template <class P>
void objects_are_freed_while_their_table_shrinks() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    w.go(1);
    w.end(0);
    w.end(2);
    w.shrinks = true;
    threads_of_test::spawn("frees", [&w] { w.as_thread(0, [&](auto&) { w.end(1); }); });
    threads_of_test::spawn("collector", [&w] { w.go(1); });
    threads_of_test::run();
    w.go(1);
    for (const auto& each : w.dense_live)
        threads_of_test::require(each.load_relaxed() == 0, "no copy of a freed object is left");
    threads_of_test::require(w.away_byte.load_relaxed() == at_home, "an empty run is released");
}
IN_BOTH_WORLDS(handles_schedules, objects_are_freed_while_their_table_shrinks, 2'000)

// A block in a thread's cache is handed out again without a look at its run. The thread goes offline with it.
template <class P>
void cached_blocks_come_back_first() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    w.cached[0].store_seq_cst(2); // out, by the slab's books
    threads_of_test::spawn("caches", [&w] {
        auto& mine = w.records[0];
        thread_mark mark = w.threads.enter(mine);
        w.poll(mine);
        w.threads.go_offline(mine);
        w.threads.go_online(mine);
        if (w.cached[0].load_relaxed() !=
            w.no_block) { // malloc, which follows the link in the block
            w.cached[0].store_relaxed(w.no_block);
            (void)w.cell(home_of_block(2)).load_relaxed();
            std::uint64_t value = w.cell(w.address(2)).load_relaxed();
            w.use(mine, 2, value, 2);
        }
        w.threads.leave(mine, mark);
    });
    threads_of_test::spawn("collector", [&w] {
        w.go(1);
        w.go(1);
    });
    threads_of_test::run();
}
IN_BOTH_WORLDS(handles_schedules, cached_blocks_come_back_first, 2'000)

// One thread brings the run home in a moment in which the others have no translations.
template <class P>
void objects_come_home_in_a_stop() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    w.go(1);
    threads_of_test::require(w.away_byte.load_relaxed() == open, "nothing prevents the move");
    values value = first_values;
    spawn_user(w, 0, value[0], 4);
    threads_of_test::spawn("keeper", [&w] {
        w.as_thread(1, [&](auto& mine) {
            std::uint64_t objects = 0;
            threads_of_test::require(w.threads.stop(&mine, [](const auto&) { return false; }),
                                     "a stop");
            threads_of_test::require(w.collector.come_home(0, &objects) == home_result::done,
                                     "home");
            w.threads.go_on();
            threads_of_test::require(w.address(1) == home_of_block(1), "an object is at home");
        });
    });
    threads_of_test::run();
    for (std::size_t i = 0; i < blocks; ++i)
        threads_of_test::require(w.cell(home_of_block(i)).load_relaxed() == value[i],
                                 "all objects are at home");
}
IN_BOTH_WORLDS(handles_schedules, objects_come_home_in_a_stop, 2'000)

// What is pinned in time stays, offline or not.
template <class P>
void pinned_objects_stay() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    threads_of_test::spawn("blocks", [&w] {
        w.as_thread(0, [&](auto& mine) {
            const std::uint64_t at = w.address(0);
            w.threads.pin(mine, at, []() -> mobility::pin_chunk<P>* { return nullptr; });
            w.threads.go_offline(mine);
            w.cell(at).store_relaxed(7); // the system call
            P::yield();
            threads_of_test::require(w.cell(at).load_relaxed() == 7, "it writes where it was told");
            w.threads.go_online(mine);
            w.threads.unpin(mine, at);
            threads_of_test::require(w.cell(w.address(0)).load_relaxed() == 7, "and is seen");
        });
    });
    threads_of_test::spawn("collector", [&w] {
        w.go(2);
        w.go(1);
    });
    threads_of_test::run();
}
IN_BOTH_WORLDS(handles_schedules, pinned_objects_stay, 2'000)

// A foreign call has the address of an object that has moved; who asks for the run meanwhile is told so.
template <class P>
void pinned_objects_do_not_come_home() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    w.go(1);
    threads_of_test::require(w.away_byte.load_relaxed() == open, "nothing prevents the move");
    threads_of_test::spawn("blocks", [&w] {
        w.as_thread(0, [&](auto& mine) {
            const std::uint64_t at = w.address(0);
            w.threads.pin(mine, at, []() -> mobility::pin_chunk<P>* { return nullptr; });
            w.threads.go_offline(mine);
            w.cell(at).store_relaxed(7); // the system call
            P::yield();
            threads_of_test::require(w.cell(at).load_relaxed() == 7, "the object stays meanwhile");
            w.threads.go_online(mine);
            w.threads.unpin(mine, at);
        });
    });
    threads_of_test::spawn("keeper", [&w] {
        w.as_thread(1, [&](auto& mine) {
            threads_of_test::require(w.threads.stop(&mine, [](const auto&) { return false; }),
                                     "a stop");
            std::uint64_t objects = 0;
            const home_result result = w.collector.come_home(0, &objects);
            w.threads.go_on();
            threads_of_test::require(result == home_result::pinned ||
                                         w.address(1) == home_of_block(1),
                                     "an object is at home, or the run is pinned");
        });
    });
    threads_of_test::run();
    require_written(w, 0, 7);
}
IN_BOTH_WORLDS(handles_schedules, pinned_objects_do_not_come_home, 2'000)

// A handler's entry, poll and leave in the midst of code that has a translation.
template <class P>
void handlers_announce_nothing() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    threads_of_test::spawn("interrupted", [&w] {
        w.as_thread(0, [&](auto& mine) {
            const std::uint64_t at = w.address(0);
            const thread_mark handler = w.threads.enter(mine);
            for (int i = 0; i < 4; ++i) { // the collector waits twice
                w.threads.poll(mine);
                w.threads.go_offline(mine);
                P::yield();
                w.threads.go_online(mine);
            }
            w.threads.leave(mine, handler);
            w.cell(at).store_relaxed(7);
            threads_of_test::require(w.cell(w.address(0)).load_relaxed() == 7, "the write is seen");
        });
    });
    threads_of_test::spawn("collector", [&w] { w.go(2); });
    threads_of_test::run();
}
IN_BOTH_WORLDS(handles_schedules, handlers_announce_nothing, 2'000)

// What temperature.cpp does with one run, in windows that the test begins.
template <class P>
class watcher {
  public:
    using policy_type = policy::three_temperatures;
    using threads_of_test = testing::threads_for<P>;
    static constexpr auto waits = [](const auto&) { return false; };

    explicit watcher(world<P>& w) : w_(w), policy_(threshold_of_one()), judge_(w, policy_) {}

    void open() {
        const std::uint32_t run = 0;
        w_.collector.track(&run, 1, nullptr, waits, [](std::uint32_t) {});
    }
    void pause() { w_.collector.pause_tracking(0); }
    // A window ends. Returns the blocks of which the policy wants the objects in COLD.
    std::array<bool, blocks> look() {
        std::array<bool, blocks> cold{};
        w_.collector.begin_window();
        policy::window_beginning beginning;
        beginning.moves = true;
        policy_.begin_window(beginning);
        auto* table = w_.the_table.load_acquire();
        if (table == nullptr) table = w_.collector.paused_table(0);
        if (table == nullptr) return cold;
        judge_.look(*table, w_.collector.window(), [&](const auto& object) {
            const std::uint64_t at = word::arming::address(object.seen);
            if (object.to == policy_type::cold && at < alias_begin)
                cold[(at - homes_begin) / block_bytes] = true;
        });
        w_.collector.looked_at_paused(0);
        return cold;
    }
    void leave() {
        const std::uint32_t run = 0;
        w_.collector.settle(&run, 1, nullptr, 2, waits, waits, placing{*this});
    }
    bool is_tracked() const { return w_.collector.is_tracked(0); }

  private:
    struct placing {
        watcher& all;
        bool wants(std::uint32_t, bool) const { return true; }
        template <class Move>
        void visit(forwarding_table<P>& table, std::uint32_t, Move&& move) const {
            all.judge_.look_again(table, all.w_.collector.window(), [&](const auto& object) {
                if (!word::arming::is_armed(object.seen)) return;
                const bool at_alias = all.w_.in_alias(word::arming::address(object.seen));
                if (object.to != policy::no_tier)
                    move(object.slot, object.seen, object.to);
                else if (at_alias)
                    move(object.slot, object.seen, policy_type::hot);
            });
        }
        void moved(unsigned, unsigned, const mobility::moved_object&) const {}
    };
    static options threshold_of_one() {
        options settings;
        settings.cold_threshold = 1;
        settings.controller = controller_kind::fixed;
        return settings;
    }
    world<P>& w_;
    policy_type policy_;
    word_judge<P, world<P>> judge_;
};

// Two objects are used while the run is tracked, paused and tracked again, and leaves. The third one is nobody's, and it
// alone is cold.
template <class P>
void tracked_objects_are_told_apart() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    watcher<P> watch(w);
    values value = first_values;
    for (std::size_t i = 0; i < 2; ++i) spawn_user(w, i, value[i], 4);
    threads_of_test::spawn("collector", [&watch] {
        watch.open();
        watch.look();
        watch.pause();
        watch.look();
        watch.open();
        const auto cold = watch.look();
        threads_of_test::require(cold[2], "what nobody touched for two windows is cold");
        watch.leave();
        watch.look();
        watch.leave();
    });
    threads_of_test::run();
    // Used in a window of their own, so that they are in use.
    require_written(w, value);
}
IN_BOTH_WORLDS(handles_schedules, tracked_objects_are_told_apart, 2'000)

// The windows without other threads: what goes where, and how old it is.
template <class P>
void ages_outlast_a_pause() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    watcher<P> watch(w);
    const auto touch = [&](std::size_t block) {
        w.as_thread(0, [&](auto&) { (void)w.cell(w.address(block)).load_relaxed(); });
    };
    const auto require_cold = [](const std::array<bool, blocks>& cold, bool first, bool second,
                                 bool third) {
        threads_of_test::require(cold[0] == first && cold[1] == second && cold[2] == third,
                                 "the right objects are cold");
    };
    watch.open();
    touch(0);
    require_cold(watch.look(), false, false, false); // newborn
    watch.pause();
    threads_of_test::require(w.away_byte.load_relaxed() == at_home, "a paused run is at home");
    w.collector.begin_window(); // in which it is not seen
    w.collector.begin_window();
    watch.open();
    touch(0);
    touch(1);
    require_cold(watch.look(), false, false, false); // one window
    touch(0);
    touch(1);
    require_cold(watch.look(), false, false, true); // two of the third one, none of the others
    watch.leave();
    threads_of_test::require(!watch.is_tracked(), "the run is taken");
    std::array<unsigned, blocks> tier{};
    for (std::size_t i = 0; i < blocks; ++i)
        w.as_thread(0, [&](auto&) { tier[i] = w.tier_of(w.address(i)); });
    threads_of_test::require(tier[0] == 1 && tier[1] == 1, "what is in use is in HOT");
    threads_of_test::require(tier[2] == 2, "what is not is in COLD");
    // All three were just touched. One is used on.
    watch.look();
    watch.leave();
    threads_of_test::require(w.tier_of(w.address(2)) == 1, "what is used again comes back to HOT");
    for (int i = 0; i < 2; ++i) {
        touch(2);
        watch.look();
        watch.leave();
    }
    threads_of_test::require(w.tier_of(w.address(2)) == 1, "and stays there");
    unsigned in_cold = 0;
    for (std::size_t place = 0; place < dense_places; ++place)
        in_cold += w.dense_live[place].load_relaxed() != 0 && w.cls[place] == 2;
    threads_of_test::require(in_cold == 2, "the others have gone to COLD, each by itself");
}
TEST(handles_schedules, ages_outlast_a_pause) {
    explore_schedules<os::native_platform>("ages_outlast_a_pause",
                                           ages_outlast_a_pause<os::native_platform>, 1);
}

// Frees while the run is tracked, paused and tracked again: each block comes back once, and no word leads to it.
template <class P>
void tracked_objects_are_freed() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    watcher<P> watch(w);
    std::uint64_t value = first_values[1];
    spawn_one_that_frees_and_one_that_uses(w, value, 2);
    threads_of_test::spawn("collector", [&watch] {
        watch.open();
        watch.pause();
        watch.look();
        watch.open();
        watch.pause();
        watch.open();
        watch.look();
        watch.leave();
    });
    threads_of_test::run();
    watch.pause(); // if it was not taken
    require_written(w, 1, value);
    require_one_copy_at_most(w);
    if (w.away_byte.load_relaxed() == at_home)
        threads_of_test::require(w.out[0].load_relaxed() == 0 && w.out[2].load_relaxed() == 0,
                                 "blocks of a run at home are back");
}
IN_BOTH_WORLDS(handles_schedules, tracked_objects_are_freed, 2'000)

// Who keeps an object of a tracked run does not wait: the run is not taken from then on.
template <class P>
void kept_objects_of_tracked_runs_stay() {
    using threads_of_test = testing::threads_for<P>;
    world<P> w;
    watcher<P> watch(w);
    watch.open();
    threads_of_test::spawn("keeper", [&w] {
        w.as_thread(0, [&](auto& mine) {
            w.keep.store_seq_cst(1);
            auto* const table = w.the_table.load_acquire();
            const bool stays = table == nullptr || !table->is_taken();
            if (stays) {
                w.threads.go_offline(mine); // foreign code has the home
                w.cell(home_of_block(0)).store_relaxed(7);
                P::yield();
                threads_of_test::require(w.cell(home_of_block(0)).load_relaxed() == 7,
                                         "a kept object stays");
                w.threads.go_online(mine);
            }
        });
    });
    threads_of_test::spawn("collector", [&watch] {
        watch.leave();
        watch.leave();
    });
    threads_of_test::run();
}
IN_BOTH_WORLDS(handles_schedules, kept_objects_of_tracked_runs_stay, 2'000)

TEST(forwarding_table, finds_the_words_of_live_blocks_alone) {
    using table = forwarding_table<os::native_platform>;
    table_memory memory;
    for (const std::size_t size : {8UL, 16UL, 24UL, 48UL, 136UL, 4096UL, 16384UL})
        for (const std::size_t every : {1UL, 2UL, 7UL, 500UL}) {
            block_set live;
            const std::size_t count = heap::run_bytes / size;
            std::size_t words = 0;
            for (std::size_t i = 0; i < count; i += every, ++words) live.set(i);
            table* const t = table::make(memory, size, count, live, every != 2);
            ASSERT_NE(t, nullptr);
            EXPECT_EQ(t->size(), words);
            // 8 bytes for each, and the smaller one of 10 bits for each 8 blocks and 2 bytes for each word.
            EXPECT_LE(t->bytes(), 64 + 8 * words + std::min(count / 64 * 10 + 18, words * 2 + 8));
            t->for_each([](auto& word, std::size_t block) { word.store_relaxed(block + 1); });
            for (std::size_t offset = 0; offset < heap::run_bytes; ++offset) {
                auto* const word = t->word_of(offset);
                const std::size_t block = offset / size;
                ASSERT_EQ(t->block_of(offset), block);
                ASSERT_EQ(word != nullptr, block < count && live.test(block));
                ASSERT_EQ(t->word_of_block<true>(block), word);
                if (word != nullptr) {
                    ASSERT_EQ(word->load_relaxed(), block + 1);
                }
            }
            t->destroy(memory);
        }
    table* const empty = table::make(memory, 48, heap::run_bytes / 48, {}, true);
    ASSERT_NE(empty, nullptr);
    for (std::size_t offset = 0; offset < heap::run_bytes; ++offset)
        ASSERT_EQ(empty->word_of(offset), nullptr);
    empty->destroy(memory);
}

} // namespace

} // namespace obase::handles
