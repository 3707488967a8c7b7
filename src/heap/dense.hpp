// SPDX-License-Identifier: MIT
//
// dense_heap: a class that the collector fills: HOT, COLD and whatever lies between; and objects can be born in it, in NEAR's
// runs of once nothing else. Templated on its platform, as slab_heap.
//
// Objects lie without gaps, in the order in which the collector moved them, in 64 KiB runs that are
// bump-filled. One run is open per attribute set, and another one for objects from `least_middle_size`
// bytes, whose beginnings take less memory (beginnings.hpp): all there is per object. Its size is the
// distance to the next beginning, or to the run's fill mark. Freed objects leave holes that are never filled; sparse runs are evacuated by the
// collector, and a run without live bytes goes back. New runs are taken at the lowest free address,
// so extents stay dense.
//
// Objects above max_small_size lie in *long runs*: `long_run_bytes` of neighbouring runs, or as many as one
// object needs, that are opened, filled, evacuated and freed as one. The first, the *head*, has what is
// known of all of them, and its number is that of the long run; the others say how far it is. What a long
// run has not been filled with takes no memory: its pages have never been touched, and whole runs behind
// the last object are free again when it is full.
//
// Births. What the program says it expects can be born here, by any thread: allocate_born() fills runs of its own, which
// the collector neither fills nor empties before they are full. They are runs like others then. Where births are not
// allowed, or no run can be had, the object is born elsewhere. A thread with a number (thread_number.hpp) fills runs that
// are its own, without a lock: one for small objects and one for larger ones, of the attribute set that it used first; the
// next thread with the number goes on with them. All else that is born goes into runs that threads share, under lock_.
//
// A thread's own run. It is filled in a section of the thread's (biased.hpp), which a fork waits for, and opened and sealed
// with lock_ held, too. While it is filled (`born`) its live word has what was freed of it alone, so that no
// read-modify-write is needed for a birth: what was handed out is what is marked below the fill mark (live_of()).
//
// Threads: allocate, undo, evacuation, return and what is told of births are the collector's alone; free(), size_of(),
// allocate_born() and allow_births() are for any thread. `lock_` guards what they share: which runs are free and how many there are, the file, and the
// runs in which objects are born. It may be held while a run's memory or storage is got (mprotect, fallocate, mmap), and
// not while memory goes back: runs that do (*returning*) are not taken by births meanwhile.
//
// Invariants
//   live bytes of a run (live_of()) == sum of the sizes of its objects that were not freed <= fill <= its length
//   the beginning of every object allocated since the run was opened stays marked, freed or not
//   when the last allocation is undone its mark stays and the fill mark goes back to it: a free()
//   of the object before it, at the same time, still finds where that object ends
//
// A file may lie beneath (class COLD). Storage is allocated before a run is opened, so a full disk
// means "no room", never SIGBUS.
//
// Whole pages. Where pages leave memory one by one, an object on two pages is read by two faults: of objects of 1 KiB a
// fourth are. With fit_to_pages() an object of at least `least_middle_size` bytes that would lie on one page more than it
// needs begins on the next page instead, if what is skipped (a *gap*, beginnings.hpp) is no more than `most_skipped`. Gaps
// are no holes: to evacuate the run would make them anew, so they are no room of the run. What threads fill runs of their
// own with (births) is laid without gaps, until it moves, and so is all of a heap while most of it is in memory
// (leave_gaps()), where a gap costs what an object does.
//
// fork and the file. The *current* file is mapped shared, by one process. fork_prepare() freezes it:
// what is mapped over it becomes a private mapping of the same pages, in place. A frozen file is
// not written, punched or truncated any more, and every store since then goes to a private page, so
// that the kernel's copy-on-write makes the child's snapshot as it does for all other memory,
// without copying anything. Parent and child each begin a file of their own at the first run that
// they need. A *frozen run* is one whose file is not the current one:
//   it is never filled further; its objects are read, written and freed where they are, or moved
//   out like any others;
//   when it is empty, the current file is mapped over it, and from then on it is an ordinary free
//   run; its storage in the frozen file cannot be punched, since another process may still need it;
//   the storage of a frozen file goes when the last mapping of it goes, in whatever process. So that
//   this comes about, select_evacuation() empties frozen files when what is kept for nothing in them
//   exceeds half of the live bytes, or when there are more than `files_kept` of them.
// The counters say what is kept: extent_bytes has the whole storage of a frozen file until the last
// run has left it, and hole_bytes what of that is dead. Private copies of pages are not counted. Parent
// and child both count a file that both have.
//
// A limit: pages of a frozen run that are written become private memory, which nothing but swap can
// page out until the run has been evacuated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "heap/beginnings.hpp"
#include "heap/biased.hpp"
#include "heap/invalid_free.hpp"
#include "heap/pacer.hpp"
#include "heap/poison.hpp"
#include "heap/reserved_array.hpp"
#include "heap/size_class.hpp"
#include "os/platform.hpp"
#include "os/waiting.hpp"

namespace obase::heap {

// joined: belongs to the long run that begins before it. born: a thread fills it, without a lock.
enum class dense_state : std::uint8_t { unused, open, sealed, joined, born };

template <class P>
struct dense_run {
    using state = dense_state;

    typename P::template atomic<std::uint64_t> live; // {objects 32, bytes 32}; see live_of()
    typename P::template atomic<std::uint32_t> fill; // bytes handed out from the front
    std::uint32_t high = 0;                          // marks may be set up to here (>= fill)
    typename P::template atomic<state> status;
    std::uint8_t set = 0;    // attribute_index of its objects
    bool returned = false;   // unused, and its pages or storage were given back; under lock_
    bool evacuating = false; // the collector is moving its objects out
    typename P::template atomic<std::uint32_t> file;   // number of the file beneath
    bool shared = false;                               // mapped shared, as long as no fork froze it
    typename P::template atomic<std::uint8_t> births;  // birth_news
    typename P::template atomic<std::uint16_t> before; // runs from the head of its long run; else 0
    typename P::template atomic<std::uint16_t> length; // of the head of a long run: runs; else 0
    typename P::template atomic<bool> middle;          // has objects from least_middle_size bytes
    // Of a full run: bytes in gaps, in units of large_granule, rounded down.
    typename P::template atomic<std::uint8_t> gaps;
};
static_assert(sizeof(dense_run<os::native_platform>) == 32);

// Objects were born in the run since the last take_births() of the same purpose.
enum class birth_news : std::uint8_t {
    window = 1, // it was not looked at by the collector since
    memory = 2, // it takes memory that could leave
};

struct dense_counters {
    std::uint64_t live_bytes = 0;
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0;
    std::uint64_t hole_bytes = 0;
    std::uint64_t runs = 0;
    std::uint64_t evacuating_runs = 0;
};

// Names runs of a class: none, or those for which a function of the run's number is true. Refers to the
// function.
class run_filter {
  public:
    run_filter() = default;
    template <class Named>
    explicit run_filter(const Named& named) noexcept
        : named_(&named), ask_([](const void* f, std::size_t run) -> bool {
              return (*static_cast<const Named*>(f))(run);
          }) {}
    bool names(std::size_t run) const { return named_ != nullptr && ask_(named_, run); }

  private:
    const void* named_ = nullptr;
    bool (*ask_)(const void*, std::size_t) = nullptr;
};

// What a selection for evacuation found.
struct evacuation_choice {
    std::size_t live_bytes = 0; // in the chosen runs
    std::size_t hole_bytes = 0; // in all full runs that are not spared, the chosen ones included
    std::size_t spared_hole_bytes = 0; // in those that are
};

template <class P>
class dense_heap {
    using dense_run = heap::dense_run<P>;
    using beginnings = heap::beginnings<P>;

  public:
    static constexpr std::size_t least_middle_size = beginnings::place;

    // `directory` nullptr: anonymous memory. Returns 0 or an errno value; *what says which step
    // failed.
    int create(char* base, std::size_t bytes, const char* directory, poisoning poison_freed,
               const char** what) noexcept;
    void destroy() noexcept;
    // Before the first object.
    void fit_to_pages() noexcept {
        fits_pages_ = true;
        leaves_gaps_.store_relaxed(1);
    }
    // Collector. Whether it does from now on, where it may. In a heap of which most is in memory gaps are, too.
    void leave_gaps(bool yes) noexcept { leaves_gaps_.store_relaxed(yes && fits_pages_ ? 1 : 0); }
    // A third of a page: so objects up to that size all find whole pages, and a file is at most half as large again.
    static constexpr std::size_t most_skipped = os::page_size / 3;
    static_assert(run_bytes / os::page_size * most_skipped / large_granule <= UINT8_MAX);

    // Collector. size == object_size(...), at most max_dense_size. nullptr: no room, disk full, or commit
    // failed.
    void* allocate(std::size_t size, unsigned set) noexcept;
    // Collector, before another thread saw the object.
    void undo(void* object) noexcept;
    // Any thread. size == object_size(...). nullptr: as allocate(), larger than max_small_size, or more runs would be
    // opened than births may. Where no run can be had none is opened any more, until allow_births(). *opened: a run was
    // opened. Cost: once in a run, and where the thread has no run of its own, a lock.
    void* allocate_born(std::size_t size, unsigned set, bool* opened) noexcept {
        *opened = false;
        void* const object = born_at_hand(size, set);
        return object != nullptr ? object : allocate_born_elsewhere(size, set, opened);
    }
    // The same in the calling thread's own run, if that has room. A function without calls but last ones.
    void* born_at_hand(std::size_t size, unsigned set) noexcept {
        owners* const all = owners_.load_acquire(); // pairs with make_owners()
        const unsigned me = thread_number<P>::at_hand();
        if (all == nullptr || !births_on_.load_relaxed() || me == no_thread_number) return nullptr;
        row& its = all->of_number(me);
        const auto inside = owners::look_in(its);
        if (owners::is_wanted(inside)) [[unlikely]]
            return give_way(its);
        const bool middle = size >= least_middle_size;
        const std::uint32_t number = its.own.run[middle];
        if (number == 0 || its.own.set[middle] != set) [[unlikely]]
            return left_without(its);
        dense_run& run = runs_[number - 1];
        const std::uint32_t begin = run.fill.load_relaxed();
        if (begin + size > run_bytes) [[unlikely]]
            return left_without(its);
        char* const object = fill_own(number - 1, middle, begin, size);
        if (!owners::leave_unless_waited_for(inside)) [[unlikely]]
            its.left.notify();
        return object;
    }
    // Any thread. How many bytes of runs may be opened for births from now on; UINT64_MAX: no limit; 0, as at first: what
    // is open is not filled either. Returns how many still might have been.
    std::uint64_t allow_births(std::uint64_t bytes) noexcept {
        if (bytes != 0) make_owners();
        const std::lock_guard hold(lock_);
        const std::uint64_t left =
            births_allowed_.load_relaxed() + std::exchange(births_refused_, 0); // one of them is 0
        births_allowed_.store_relaxed(bytes);
        births_on_.store_relaxed(bytes != 0);
        return left;
    }
    std::uint64_t births_allowed() const noexcept { return births_allowed_.load_relaxed(); }
    // Of full ones that take_births(memory) has not named yet.
    std::uint64_t births_in_memory() const noexcept { return births_in_memory_.load_relaxed(); }
    // Collector. visit(begin, end) for runs with such news, which are none then; for `memory`, of full runs.
    template <class Visit>
    void take_births(birth_news what, Visit&& visit) {
        const auto bit = static_cast<std::uint8_t>(what);
        std::size_t i = 0;
        if (what == birth_news::memory) {
            const std::lock_guard hold(lock_);
            i = std::exchange(news_from_, SIZE_MAX);
        }
        // Afterwards: what has news lies before it.
        const std::size_t end = frontier_.load_acquire();
        try {
            for (; i < end; ++i)
                if (take_birth(i, bit)) visit(memory_of(i), memory_of(i) + run_bytes);
        } catch (...) {
            const std::lock_guard hold(lock_);
            news_from_ = 0;
            throw;
        }
    }
    // Any thread.
    void free(void* object) noexcept;
    // Any thread. Frees what is the start of an object and was not freed by this function; or, if the
    // run's last object is gone, by any other.
    free_result free_checked(void* object) noexcept;
    // Any thread, of an object that is live or was (until its run is opened again).
    std::size_t size_of(const void* object) const noexcept;
    // Collector; 0 when no object begins there.
    std::size_t size_of_racy(const void* object) const noexcept;
    unsigned set_of(const void* object) const noexcept { return runs_[run_of(object)].set; }

    // A run's number counts from 0 in the order of addresses. Of what lies in a long run it is that of the head.
    std::size_t run_of(const void* object) const noexcept {
        const std::size_t run = run_number(object);
        return run - runs_[run].before.load_acquire();
    }
    bool in_long_run(const void* object) const noexcept {
        return runs_[run_of(object)].length.load_acquire() != 0;
    }
    // How many runs of 64 KiB are the run with this number.
    std::size_t length_of_run(std::size_t run) const noexcept {
        const std::size_t length = runs_[run].length.load_acquire();
        return length == 0 ? 1 : length;
    }
    // Bytes of the run, gaps with it. Of a long run what it was filled with, in whole pages.
    std::size_t extent_of_run(std::size_t run) const noexcept {
        return runs_[run].length.load_relaxed() == 0 ? run_bytes
                                                     : round_up(runs_[run].high, os::page_size);
    }
    // Bytes that live objects can have in the run at most, holes closed, gaps kept.
    std::size_t room_of_run(std::size_t run) const noexcept {
        return extent_of_run(run) - gaps_of(run);
    }
    bool run_evacuating(std::size_t run) const noexcept { return runs_[run].evacuating; }
    bool evacuating(const void* object) const noexcept { return run_evacuating(run_of(object)); }
    // Frozen files that have to be emptied first, then sparse runs, emptiest first, and then as many below
    // `dense_enough` as it takes that all others have no more than `holes_kept` bytes of holes. Of the runs
    // that `spared` names, only those with less live bytes than half of the run. Emptiest: by share.
    evacuation_choice select_evacuation(double max_live_fraction, std::size_t max_bytes,
                                        run_filter spared = {},
                                        std::size_t holes_kept = ~std::size_t{0}) noexcept;
    // Of what is denser much is copied for little.
    static constexpr double dense_enough = 0.97;
    // True if the last selection has frozen runs: their objects should be found wherever their
    // slots lie.
    bool evacuating_frozen_files() const noexcept { return evacuation_; }
    std::size_t decommit_free_memory(pacer& ask) noexcept;

    std::size_t runs() const noexcept { return frontier_.load_acquire(); }
    std::size_t objects_in_run(std::size_t run) const noexcept { return live_now(run) >> 32; }
    std::size_t bytes_in_run(std::size_t run) const noexcept { return live_now(run) & 0xFFFF'FFFF; }
    // True if the run is full, and its memory would go back if it were empty.
    bool closed(std::size_t run) const noexcept {
        return runs_[run].status.load_relaxed() == dense_run::state::sealed && !frozen(runs_[run]);
    }
    // Gives those of the runs back that are empty; they ascend. Returns bytes.
    std::size_t return_runs(const std::uint32_t* runs, std::size_t count, pacer& ask) noexcept;

    // Of full runs, the bytes in gaps that live objects come with. Cost: linear in the runs.
    std::size_t gap_bytes() const noexcept;

    bool file_backed() const noexcept { return directory_[0] != 0; }
    // Collector. Has the kernel begin to write what is new in the current file. May wait for the device's queue.
    void begin_write_back() noexcept {
        const int fd = [this] { // which a birth may open
            const std::lock_guard hold(lock_);
            return fd_;
        }();
        constexpr std::uint64_t to_its_end = 0;
        if (fd >= 0) os::write_back_file(fd, 0, to_its_end, false);
    }
    // Collector. visit(context, begin, end, fd) for stretches over one file. fd -1: a frozen file
    // that this process does not write back.
    void walk_backing(void (*visit)(void*, char*, char*, int), void* context) const;
    dense_counters counters() const noexcept;
    std::size_t metadata_bytes() const noexcept;
    void walk_extents(void (*visit)(void*, char*, char*), void* context) const;
    const char* validate() const noexcept;

    // In the forking thread, the collector parked.
    void fork_prepare() noexcept;
    void fork_parent() noexcept {
        lock_.unlock();
        if (owners* const all = owners_.load_acquire(); all != nullptr) all->let_go();
    }
    // False: not all of the class could be taken along. What is missing cannot be accessed here, and
    // no objects of this class may be moved.
    bool fork_child() noexcept;

    static constexpr std::size_t files_kept = 8;     // frozen ones, before they are evacuated
    static constexpr std::size_t pieces_kept = 1024; // mappings; free frozen runs add no more
    static constexpr std::size_t long_run_bytes = 4 * run_bytes;

  private:
    // Of a thread: the numbers + 1 of the runs that it fills, by `middle`, and the sets of what is born in them. Written with
    // lock_ held, too.
    struct own_runs {
        std::uint32_t run[2];
        std::uint8_t set[2];
    };
    using owners = biased_sections<P, own_runs>;
    using row = typename owners::holder;

    static constexpr std::size_t words_per_run = run_bytes / granule / 64;
    static constexpr std::size_t long_words_per_run = run_bytes / large_granule / 64;
    static constexpr std::size_t places_per_run = run_bytes / beginnings::place;
    static_assert(max_dense_size >> run_shift <= UINT16_MAX);

    std::size_t run_number(const void* object) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(object) - base_) >> run_shift;
    }
    char* memory_of(std::size_t run) const noexcept { return base_ + (run << run_shift); }
    std::size_t offset_in(std::size_t run, const void* object) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(object) - memory_of(run));
    }
    beginnings beginnings_of(std::size_t run) const noexcept {
        if (runs_[run].length.load_acquire() != 0)
            return {long_starts_.data() + run * long_words_per_run, large_granule};
        if (runs_[run].middle.load_acquire())
            return beginnings(middle_starts_.data() + run * places_per_run);
        return {starts_.data() + run * words_per_run, granule};
    }
    // Which run is open for objects of the size.
    std::uint32_t& open_for(std::size_t size, unsigned set) noexcept {
        if (size > max_small_size) return open_long_[set];
        return size < least_middle_size ? open_[set] : open_middle_[set];
    }
    // For births likewise.
    std::uint32_t& born_for(std::size_t size, unsigned set) noexcept {
        return size < least_middle_size ? born_[set] : born_middle_[set];
    }
    char* fill(std::uint32_t number, std::size_t size) noexcept;
    std::size_t skipped(std::uint32_t run, std::size_t at, std::size_t size) const noexcept;
    void note_gaps(std::size_t run) noexcept;
    std::size_t gaps_of(std::size_t run) const noexcept {
        return runs_[run].gaps.load_relaxed() * large_granule;
    }
    // What so many live bytes of the run take when they have moved, with the gaps that come with them.
    std::size_t with_gaps(std::size_t run, std::size_t live) const noexcept {
        const std::size_t gaps = gaps_of(run);
        return gaps == 0 ? live : live + live * gaps / (run_bytes - gaps);
    }
    // Precondition: there is room at `begin`, the fill mark, and the run is the calling thread's own. No marks lie behind.
    char* fill_own(std::uint32_t number, bool middle, std::uint32_t begin,
                   std::size_t size) noexcept {
        dense_run& run = runs_[number];
        if (middle)
            beginnings(middle_starts_.data() + number * places_per_run).set(begin);
        else
            beginnings(starts_.data() + number * words_per_run, granule).set(begin);
        run.fill.store_release(static_cast<std::uint32_t>(begin + size)); // pairs with size_of
        note_birth(run);
        return memory_of(number) + begin;
    }
    // After the fill mark. Who is told at the same time (take_birth()) may be told of this birth then or the next time.
    static void note_birth(dense_run& run) noexcept {
        constexpr auto window = static_cast<std::uint8_t>(birth_news::window);
        if ((run.births.load_relaxed() & window) == 0) run.births.fetch_or_relaxed(window);
    }
    // {objects, bytes} that live in the run. With lock_ held: no run is sealed meanwhile.
    std::uint64_t live_of(std::size_t number) const noexcept {
        const dense_run& run = runs_[number];
        const std::uint64_t live = run.live.load_acquire(); // before what was handed out
        return run.status.load_relaxed() == dense_state::born ? live + handed_out_of(number) : live;
    }
    // The same without it.
    std::uint64_t live_now(std::size_t number) const noexcept {
        const dense_run& run = runs_[number];
        if (run.status.load_acquire() != dense_state::born) return run.live.load_relaxed();
        const std::lock_guard hold(lock_);
        return live_of(number);
    }
    std::uint64_t handed_out_of(std::size_t number) const noexcept {
        const std::uint64_t fill = runs_[number].fill.load_acquire();
        return std::uint64_t{beginnings_of(number).count(fill)} << 32 | fill;
    }
    [[gnu::noinline]] void* allocate_born_elsewhere(std::size_t size, unsigned set,
                                                    bool* opened) noexcept;
    void* allocate_born_in(std::uint32_t& open, std::size_t size, unsigned set, dense_state filled,
                           bool* opened) noexcept;
    [[gnu::noinline]] void* give_way(row& its) noexcept;
    [[gnu::noinline]] static void* left_without(row& its) noexcept {
        owners::leave(its);
        return nullptr;
    }
    void make_owners() noexcept;
    unsigned filling_threads(std::size_t run) const noexcept;
    bool open_run_for(std::size_t size, unsigned set) noexcept;
    bool open_run(std::uint32_t& open, bool middle, unsigned set, std::size_t number,
                  dense_state filled) noexcept;
    bool open_born_run(std::uint32_t& open, bool middle, unsigned set, dense_state filled) noexcept;
    void seal_born(std::uint32_t number) noexcept;
    bool take_birth(std::size_t run, std::uint8_t what) noexcept;
    void forget_beginnings(std::size_t run, bool middle) noexcept;
    bool open_long_run_for(std::size_t size, unsigned set) noexcept;
    bool open_long_run(unsigned set, std::size_t length, bool may_grow) noexcept;
    std::size_t free_neighbours(std::size_t count, bool may_grow) noexcept;
    std::size_t stretch_of_free(std::size_t count, std::size_t* at_end) const noexcept;
    bool make_ready(std::size_t run) noexcept;
    void forget_frees(std::size_t run) noexcept;
    void seal(std::uint32_t number) noexcept;
    void seal_long_runs() noexcept;
    void end_run(std::size_t number) noexcept;
    bool grow() noexcept;
    bool returnable(std::size_t run) noexcept;
    std::size_t decommit_range(std::size_t first, std::size_t count, pacer& ask) noexcept;
    int return_memory(std::size_t first, std::size_t count, pacer& ask) noexcept;
    void set_free_bit(std::size_t run, bool free) noexcept;
    std::size_t lowest_free() noexcept;

    struct frozen_file {
        std::uint32_t last = 0;  // numbers up to this, and above those of the entry before
        int fd = -1;             // to write it back; -1: left to the kernel
        std::size_t runs = 0;    // that have it beneath
        std::size_t storage = 0; // bytes, when it was frozen
    };
    // More than one is added only while the collector does not look.
    static constexpr std::size_t frozen_limit = 64;

    bool frozen(const dense_run& run) const noexcept {
        return run.file.load_relaxed() != file_.load_relaxed();
    }
    bool open_file() noexcept;
    bool map_current(std::size_t offset, std::size_t bytes) noexcept;
    std::size_t freeze_current_file() noexcept;
    bool make_private(std::size_t offset, std::size_t bytes, int fd) noexcept;
    std::size_t entry_of(std::uint32_t file) const noexcept;
    void merge_oldest() noexcept;
    void leave_file(dense_run& run) noexcept;
    std::size_t adopt_free_runs() noexcept;
    std::size_t select_frozen(std::size_t max_bytes) noexcept;

    static constexpr std::uint32_t no_run = ~std::uint32_t{0};

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    poisoning poison_ = poisoning::none;
    char directory_[1024] = {};
    int fd_ = -1;                                     // of the current file; -1: none yet
    typename P::template atomic<std::uint32_t> file_; // its number; 0 for anonymous memory
    bool strict_commit_ = false;
    bool fits_pages_ = false; // there may be gaps
    typename P::template atomic<std::uint32_t>
        leaves_gaps_; // 1: and more are made; read by who fills
    bool evacuation_ = false;
    bool adoptable_ = false;      // free frozen runs have not been looked at since the fork
    std::size_t frozen_free_ = 0; // frozen runs that are unused
    frozen_file frozen_[frozen_limit];
    std::size_t frozen_count_ = 0;
    typename P::template atomic<std::size_t> frozen_storage_; // of all entries, for counters()
    reserved_array<dense_run> runs_;
    reserved_array<typename P::template atomic<std::uint64_t>> starts_;
    reserved_array<typename P::template atomic<std::uint64_t>> long_starts_; // of long runs
    reserved_array<typename P::template atomic<std::uint8_t>>
        middle_starts_; // of those with `middle`
    // Laid out as starts_: objects that free_checked() has freed. Committed when the first of them is.
    reserved_array<typename P::template atomic<std::uint64_t>> freed_;
    reserved_array<std::uint64_t> free_; // one bit per run that may be opened again
    std::size_t lowest_word_ = 0;        // no set bit of free_ before this word
    std::size_t free_runs_ = 0;
    typename P::template atomic<std::size_t> frontier_; // runs [0, frontier_) have been used
    std::size_t committed_ = 0;                         // bytes
    std::uint32_t open_[attribute_sets] = {};
    std::uint32_t open_middle_[attribute_sets] = {};
    std::uint32_t open_long_[attribute_sets] = {};

    alignas(64) mutable os::blocking_lock<P> lock_;
    std::uint32_t born_[attribute_sets] = {}; // runs that births fill
    std::uint32_t born_middle_[attribute_sets] = {};
    std::size_t returning_ = 0, returning_end_ = 0; // runs whose memory goes back just now
    std::uint64_t births_refused_ = 0; // bytes that births might have opened, had there been a run
    std::size_t news_from_ = SIZE_MAX; // no run before it has news of memory
    reserved_array<owners> owners_memory_;        // one, once births have been allowed
    typename P::template atomic<owners*> owners_; // nullptr: no thread has runs
    typename P::template atomic<bool> births_on_;
    typename P::template atomic<std::uint64_t> births_allowed_;
    typename P::template atomic<std::uint64_t> births_in_memory_;
};

// In dense.cpp. Another platform's needs dense_functions.hpp.
extern template class dense_heap<os::native_platform>;

} // namespace obase::heap
