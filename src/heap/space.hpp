// SPDX-License-Identifier: MIT
//
// space: the reserved address ranges of one runtime, and every object in them (the papers' SAMA).
//
//   base                                                   base + (classes + 1) * range_bytes
//   +----------------+----------------+----------------+-- .. --+--------------------+------------------+
//   | class 0        | class 1        | class 2        |        | LARGE              | NEAR             |
//   | slabs, threads | dense, filled by the collector, births  | extents of pages   | pages of groups  |
//   +----------------+----------------+----------------+-- .. --+--------------------+------------------+
//
// All ranges have the same power-of-two size, but for NEAR, which may be a fourth of it; so an address tells its class by a subtraction and a
// shift. The number of classes (2..15), and which of them lie in a file, are the caller's: a policy's
// tiers (policy/tiers.hpp). Objects are born in class 0; those above 16 KiB in LARGE, and those of which the program
// says what they are used with in NEAR (near.hpp). The last fourth of NEAR's range is for *runs of once*, like those of the
// dense classes, which births fill with what is to be used once. What is counted for class 0 counts NEAR, too. No object
// has a header.
//
// Failures: every allocation may return nullptr (reservation, RLIMIT_AS, overcommit, map count,
// disk or the tables' own memory used up); nothing is changed then, nothing aborts, failures()
// counts them.
//
// NEW is laid out for objects that will move on, so it is no general malloc.
//
// Example:
//     std::string why;
//     space* s = space::create({}, &why);
//     void* p = s->allocate(64, {});
//     void* q = s->allocate_dense(1, s->info(p).size, s->info(p).attr);   // collector
//     ... copy p to q, publish q ...
//     s->free(p);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "heap/begun_groups.hpp"
#include "heap/class_owner.hpp"
#include "heap/dense.hpp"
#include "heap/invalid_free.hpp"
#include "heap/large.hpp"
#include "heap/near.hpp"
#include "heap/poison.hpp"
#include "heap/size_class.hpp"
#include "heap/slab.hpp"
#include "heap/touched.hpp"
#include "os/platform.hpp"

namespace obase::heap {

inline constexpr unsigned new_class = 0; // objects are born here
inline constexpr unsigned max_classes = 15;
inline constexpr unsigned named_slots = 3; // of max_spaces: of both engines, and of handles

struct space_options {
    unsigned classes = 3; // 2..15, LARGE not counted
    // Bytes of address space per class, rounded up to a power of two >= 1 MiB. 0: the power of two
    // at or above 4 x RAM, at least 64 GiB and at most 4 TiB, halved until the reservation works,
    // not below 64 MiB.
    std::size_t range_bytes = 0;
    // Fills freed objects with `poison_byte`. Frees are slower.
    bool poison_freed = false;
    // The program ends at the first free of what is not an object, or was freed. Allocations and frees
    // are slower, and NEW has a bit more for each 8 bytes.
    bool check_frees = false;
    // Below named_slots: the space that the static functions allocate_at_hand() and free_at_hand() are about. At
    // most one at a time. A space that poisons or checks is none: what it does to all objects is not in them.
    unsigned thread_slot = any_slot;
    static constexpr unsigned any_slot = ~0U;
    // Not empty: the classes of `file_classes` each lie in an unnamed file in this directory.
    std::string cold_directory{};
    std::uint32_t file_classes = 1U << 2; // bit c: class c; without class 0
    // Likewise, for those of `hot_file_classes`, which are others.
    std::string hot_directory{};
    std::uint32_t hot_file_classes = 0;
};

class space {
  public:
    // nullptr: *why_not (may be null) says in one line what did not work. A directory that
    // cannot hold the file is such a failure; the caller may try again without it. *bad_directory (may be null) is
    // then the name of its option, else null.
    static space* create(const space_options& options, std::string* why_not,
                         const std::string space_options::** bad_directory = nullptr) noexcept;
    // For tests. Precondition: nothing uses the space, now or later; objects in it are gone.
    static void destroy(space* s) noexcept;

    space(const space&) = delete;
    space& operator=(const space&) = delete;

    // Before the first object of the dense class `cls` is made: from now on `owner`, which is never
    // destroyed, answers for the class, and allocate_dense() is not called for it.
    void give_class(unsigned cls, class_owner& owner) noexcept {
        owner_ = &owner;
        owned_class_ = cls;
    }

    // Before the first object is made: objects of which that is expected, and nothing else is said, are born in the
    // dense class `cls`, as far as allow_births() lets them, and otherwise in NEAR.
    void give_births(expectation what, unsigned cls) noexcept {
        born_[static_cast<unsigned>(what)] = &dense_[cls - 1];
    }
    // Any thread. How many bytes of runs of 64 KiB may be opened in the class for births, from now on; UINT64_MAX: any.
    // 0 at first, and when no run could be had. Returns how many still might have been.
    // Without `bytes`: more, once there is little left, as long as not too much of what was born is dead. That goes back when
    // the collector looks, so births take no more than 64 MiB or an eighth of what lives beyond what lives.
    void allow_births(unsigned cls) noexcept { allow_births(dense_[cls - 1]); }
    // Any thread. Likewise, of what is to be used once; false, as at first: it is born in NEAR's groups, whose places are
    // used again though no collector looks.
    void allow_births_of_once(bool may) noexcept;
    std::uint64_t allow_births(unsigned cls, std::uint64_t bytes) noexcept {
        return dense_[cls - 1].allow_births(bytes);
    }
    std::uint64_t births_allowed(unsigned cls) const noexcept {
        return dense_[cls - 1].births_allowed();
    }
    // Any thread. Bytes of full runs of births that take_births(memory) has not named yet.
    std::uint64_t births_in_memory(unsigned cls) const noexcept {
        return dense_[cls - 1].births_in_memory();
    }
    // The collector thread only. fn(char* begin, char* end) for runs of 64 KiB in which objects were born since the last
    // call for that purpose.
    template <class F>
    void take_births(unsigned cls, birth_news what, F&& fn) {
        dense_[cls - 1].take_births(what, fn);
    }

    // Any thread, O(1), no locks.

    // In any class, LARGE or NEAR; true also for addresses where no object is.
    bool contains(const void* address) const noexcept { return offset_of(address) < total_bytes_; }
    // Precondition: contains(address). large_class() for LARGE, near_class() for NEAR.
    unsigned class_of(const void* address) const noexcept {
        return static_cast<unsigned>(offset_of(address) >> shift_);
    }
    unsigned classes() const noexcept { return classes_; }
    unsigned large_class() const noexcept { return classes_; }
    unsigned near_class() const noexcept { return classes_ + 1; }

    // An object in NEW, or in LARGE when it needs more than max_small_size. Aligned as asked;
    // contents undefined. Size 0 counts as 1. NEW takes locks only when it needs a new run; LARGE
    // takes one.
    void* allocate(std::size_t size, attributes attr) noexcept {
        const std::size_t rounded = object_size(size, attr);
        if (rounded - 1 >= quick_allocate_bytes_) [[unlikely]]
            return allocate_elsewhere(size, attr);
        void* const block = slabs_.allocate(rounded, attribute_index(attr));
        if (block == nullptr) [[unlikely]]
            failures_.fetch_add_relaxed(1);
        return block;
    }
    // allocate(size, {}) of the space that space_options::thread_slot named, found without the space: from what
    // the calling thread has at hand, without a call, a lock or an atomic read-modify-write. nullptr:
    // allocate() may have a block, if there is a space.
    template <unsigned Slot>
    static void* allocate_at_hand(std::size_t size) noexcept {
        static_assert(Slot < named_slots);
        if (size > max_small_size) [[unlikely]]
            return nullptr;
        return heap::allocate_at_hand(*thread_heaps[Slot], size, attribute_index({}));
    }
    // What the program says of an object's use (obase/allocation_options.hpp).
    struct placement {
        const void* near = nullptr; // a live object of this space, beside which to lie
        group_name* in = nullptr;   // or the name of a group; used as an atomic
        expectation expect = expectation::nothing;
        bool guided = false; // may be born in another class (give_births())
    };
    enum class neighbour : std::uint8_t {
        none,     // was asked for
        found,    // the object lies with it
        missed,   // none that objects can lie with; the object is an ordinary one
        no_object // missed, and the address is in the space, where no object begins
    };
    // As allocate(), in NEAR, or where give_births() says. What cannot be placed (larger than max_near_size, a bad neighbour, no room in NEAR)
    // is an ordinary object. *found tells. Takes no lock where the calling thread goes on with a group that is its
    // own (near.hpp), else up to two.
    void* allocate_placed(std::size_t size, attributes attr, const placement& where,
                          neighbour* found) noexcept {
        const std::size_t rounded = object_size(size, attr);
        if (rounded - 1 < quick_near_bytes_) [[likely]] {
            const unsigned set = attribute_index(attr);
            void* object = nullptr;
            *found = neighbour::found;
            if (where.in == nullptr && where.near == nullptr) {
                *found = neighbour::none;
                if (auto* const heap = born_in(attr, where.expect, where.guided); heap != nullptr)
                    object = heap->born_at_hand(rounded, set);
            } else if (attr.log2_alignment <= 3) {
                object = where.in != nullptr
                             ? near_.join_at_hand(word_of(where.in), rounded, set,
                                                  static_cast<unsigned>(where.expect))
                             : near_.join_at_hand(where.near, rounded, set);
            }
            if (object != nullptr) [[likely]]
                return object;
        }
        return allocate_placed_elsewhere(size, attr, where.near, where.in, where.expect,
                                         where.guided, found);
    }
    // How the program expects the object to be used, while it lies in NEAR. Precondition: contains(object).
    expectation expected_of(const void* object) const noexcept {
        if (in_near(object)) return near_.expected_of(object);
        return in_once(object) ? expectation::once : expectation::nothing;
    }
    // malloc's twin: 16-byte alignment.
    void* allocate_raw(std::size_t size) noexcept { return allocate(size, attributes{4, false}); }

    // Any class, any thread, the collector too. Null is allowed. Precondition: contains(object).
    void free(void* object) noexcept {
        if (quick_free_bytes_ == 0 || !heap::free_at_hand(*thread_heaps[slot_], object))
            [[unlikely]]
            free_elsewhere(object);
    }
    // free() of any address, in the space that space_options::thread_slot named: if the object is in NEW and the
    // calling thread can keep its memory at hand, likewise. False: nothing was done.
    template <unsigned Slot>
    static bool free_at_hand(void* object) noexcept {
        static_assert(Slot < named_slots);
        return heap::free_at_hand(*thread_heaps[Slot], object);
    }
    // Any thread. Frees an object, and nothing else. Precondition: contains(object). What is found: wrong
    // addresses always, and what was freed before in LARGE; elsewhere, if check_frees is set, what was
    // freed before in any way, and else what was freed by this function, in NEW by this thread, not long ago.
    // Cost: a few loads more than free(); in the dense classes also an atomic read-modify-write.
    free_result free_checked(void* object) noexcept;
    // The size the object was rounded to: see object_info.
    std::size_t usable_size(const void* object) const noexcept {
        if (class_of(object) == new_class) [[likely]]
            return slabs_.size_of(object);
        return usable_size_elsewhere(object);
    }

    // Bytes of memory that was not resident, ever given to threads by allocate(): whole runs in NEW.
    std::uint64_t new_bytes() const noexcept {
        return slabs_.new_bytes() + large_.new_bytes() + near_.new_bytes() +
               born_bytes_.load_relaxed();
    }
    // How many allocations failed so far.
    std::uint64_t failures() const noexcept { return failures_.load_relaxed(); }

    // The collector thread only, one at a time.

    struct object_info {
        // What was asked for, rounded up to max(8, alignment) and above max_small_size also to large_granule;
        // 0: no object, leave it.
        std::size_t size;
        attributes attr;
    };
    // May race with a free of the object: the result is then meaningless but bounded, and
    // [object, object+size) readable.
    object_info info(const void* object) const noexcept;

    // An object in class cls >= 1, right behind the last one; in NEW, in a run that is not closed.
    // nullptr: no room, disk full, no memory, or larger than max_dense_size, in NEW max_small_size.
    void* allocate_dense(unsigned cls, std::size_t size, attributes attr) noexcept;
    // After a veto: only the collector has seen the object.
    void undo_allocate_dense(void* object) noexcept;

    // Makes an object of LARGE, of which the caller alone knows, longer or shorter where it is. False: it is none of LARGE, or
    // will be none, or has no room; nothing has changed.
    bool resize_large(void* object, std::size_t size) noexcept;
    // True if the object lies in a run that select_evacuation chose. False for NEW, LARGE and NEAR.
    bool evacuating(const void* object) const noexcept {
        const unsigned cls = class_of(object);
        return cls != new_class && cls < classes_ && dense_[cls - 1].evacuating(object);
    }
    // Share of the object's run that live objects take, about; in LARGE, of its pages, in NEAR, of its page.
    // Precondition: it is in NEW, LARGE or NEAR, where objects are born.
    double live_fraction_where_born(const void* object) const noexcept {
        if (class_of(object) == new_class) return slabs_.live_fraction_of_run(object);
        if (in_near(object)) return near_.live_fraction_of_page(object);
        if (in_once(object))
            return static_cast<double>(once_.bytes_in_run(once_.run_of(object))) /
                   double{run_bytes};
        const std::size_t size = std::max<std::size_t>(large_.size_of(object), 1);
        return static_cast<double>(size) / static_cast<double>(round_up(size, os::page_size));
    }
    // Emptying runs of a class other than LARGE and NEAR. Their numbers count from 0 in the order of addresses; a long
    // run of a dense class (dense.hpp) has that of its first 64 KiB.

    std::size_t run_of(const void* object) const noexcept {
        const unsigned cls = class_of(object);
        if (cls != new_class) return dense_[cls - 1].run_of(object);
        return offset_of(object) >> run_shift;
    }
    // In units of 64 KiB.
    std::size_t length_of_run(unsigned cls, std::size_t run) const noexcept {
        return cls == new_class ? 1 : dense_[cls - 1].length_of_run(run);
    }
    // Whether objects of a class in a file that are moved there from now on may leave something out, so that they lie on
    // no more pages than they need (dense.hpp). At first they may. Collector.
    void leave_gaps(unsigned cls, bool yes) noexcept {
        if (cls != new_class) dense_[cls - 1].leave_gaps(yes);
    }
    // What full runs have left out so.
    std::size_t gap_bytes(unsigned cls) const noexcept {
        return cls == new_class ? 0 : dense_[cls - 1].gap_bytes();
    }
    // Bytes that objects can take in it at most.
    std::size_t room_of_run(unsigned cls, std::size_t run) const noexcept {
        return cls == new_class ? run_bytes : dense_[cls - 1].room_of_run(run);
    }
    // Of a run of NEW that no thread is filling: bytes of its blocks that are in memory, handed out or not. Racy.
    std::size_t room_where_born(std::size_t run) const noexcept {
        return slabs_.room_in_memory(run);
    }
    // True if the object may reach beyond the 64 KiB in which it begins. Any thread. Precondition:
    // contains(object).
    bool may_be_long(const void* object) const noexcept {
        const unsigned cls = class_of(object);
        return cls != new_class && cls != near_class() &&
               (cls == classes_ || cls == owned_class_ || dense_[cls - 1].in_long_run(object));
    }

    std::size_t runs_of(unsigned cls) const noexcept {
        return cls == new_class ? slabs_.runs() : dense_[cls - 1].runs();
    }
    // Objects handed out, and their bytes, in NEW those of their blocks. Racy.
    std::size_t objects_in_run(unsigned cls, std::size_t run) const noexcept {
        return cls == new_class ? slabs_.blocks_in_use(run) : dense_[cls - 1].objects_in_run(run);
    }
    std::size_t bytes_in_run(unsigned cls, std::size_t run) const noexcept {
        return cls == new_class ? std::size_t{slabs_.blocks_in_use(run)} * slabs_.block_size(run)
                                : dense_[cls - 1].bytes_in_run(run);
    }
    // From now on no thread allocates from the runs for which wanted(run) is true, except those that
    // are being filled: run_closed() says which.
    template <class Wanted>
    void close_runs(unsigned cls, Wanted&& wanted) noexcept {
        if (cls != new_class) return; // only the one open run of each kind is filled
        slabs_.close_runs(
            slabs_.runs(),
            [](void* p, std::size_t run) {
                return (*static_cast<std::remove_reference_t<Wanted>*>(p))(run);
            },
            const_cast<void*>(static_cast<const void*>(std::addressof(wanted))));
    }
    bool run_closed(unsigned cls, std::size_t run) const noexcept {
        return cls == new_class ? slabs_.closed(run) : dense_[cls - 1].closed(run);
    }
    // Precondition: run_closed() of each; in ascending order. Empty ones go back to the system, in NEW
    // also pages of the others under no object; from the rest of NEW is allocated again. Returns the
    // bytes.
    std::size_t open_runs(unsigned cls, const std::uint32_t* runs, std::size_t count,
                          pacer& ask) noexcept {
        return cls == new_class ? slabs_.open_runs(runs, count, ask)
                                : dense_[cls - 1].return_runs(runs, count, ask);
    }

    // Chooses anew the runs of a class to empty: those whose live bytes are below the fraction of
    // the run, emptiest first, and as many more as it takes that the others have no more than holes_kept
    // bytes of holes, up to max_bytes of live bytes in all. The caller moves the objects like any others; a
    // run that is empty goes back at the next decommit_free_memory. Runs that `spared` names are chosen only when less than half of them is live:
    // for those whose memory is elsewhere, where holes cost little and reading them costs much.
    evacuation_choice select_evacuation(unsigned cls, double max_live_fraction,
                                        std::size_t max_bytes, run_filter spared = {},
                                        std::size_t holes_kept = ~std::size_t{0}) noexcept;
    // True if the last selection chose the run.
    bool run_evacuating(unsigned cls, std::size_t run) const noexcept {
        return cls != new_class && dense_[cls - 1].run_evacuating(run);
    }
    // True if the last selection for the class has runs that lie over frozen files (dense.hpp): their
    // objects should be found wherever their slots lie.
    bool evacuating_frozen_files(unsigned cls) const noexcept {
        return cls != new_class && dense_[cls - 1].evacuating_frozen_files();
    }
    // Gives free memory of all classes back to the system, neighbours together, in pieces (pacer.hpp);
    // returns bytes.
    std::size_t decommit_free_memory(pacer& ask) noexcept;
    std::size_t decommit_free_memory() noexcept {
        pacer never_stops;
        return decommit_free_memory(never_stops);
    }
    // The same of LARGE and NEAR alone.
    std::size_t decommit_large(pacer& ask) noexcept {
        const std::size_t bytes = large_.decommit_free_memory(ask);
        return ask.may_continue() ? bytes + decommit_near(ask) : bytes;
    }

    // Page accounting of a window. Mark each touched object once.
    void mark_touched(const void* object, std::size_t size) noexcept;
    // cls may be large_class().
    touched touched_in(unsigned cls) const noexcept {
        touched all = touched_[cls].totals();
        if (cls == new_class) {
            all.pages += touched_[near_class()].totals().pages;
            all.bytes += touched_[near_class()].totals().bytes;
        }
        return all;
    }
    void clear_touched() noexcept;
    // True if any object in the 64 KiB run around the address was marked.
    bool run_touched(const void* address) const noexcept;
    // fn(char* begin, char* end) for maximal stretches of touched runs, in address order.
    template <class F>
    void for_each_touched_run(unsigned cls, F&& fn) const {
        walk_touched(cls, &touched_map::walk, run_bytes, fn);
    }
    // The same for touched pages. Neither knows of NEAR.
    template <class F>
    void for_each_touched_page(unsigned cls, F&& fn) const {
        walk_touched(cls, &touched_map::walk_pages, os::page_size, fn);
    }

    // fn(char* begin, char* end): stretches of a class (not LARGE or NEAR) that hold objects, in address
    // order, page aligned. Stretches that touch are one.
    template <class F>
    void for_each_extent(unsigned cls, F&& fn) const {
        const auto visit = [](void* p, char* begin, char* end) {
            (*static_cast<std::remove_reference_t<F>*>(p))(begin, end);
        };
        void* const context = const_cast<void*>(static_cast<const void*>(std::addressof(fn)));
        if (cls == new_class) {
            slabs_.walk_extents(visit, context);
        } else {
            dense_[cls - 1].walk_extents(visit, context);
        }
    }
    // fn(char* object, std::size_t bytes, attributes) for every LARGE object, in address order. The
    // range is locked meanwhile: fn must not allocate or free LARGE objects.
    template <class F>
    void for_each_large(F&& fn) const {
        large_.walk(
            [](void* p, char* object, std::size_t bytes, unsigned set) {
                (*static_cast<std::remove_reference_t<F>*>(p))(object, bytes, attributes_at(set));
            },
            const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
    }

    // The collector thread only. fn(char* begin, char* end, int fd) for stretches of a class that
    // lie over one file, address p at offset p - range_begin(cls). None: anonymous memory. fd -1: a
    // file that a fork froze (dense.hpp) and that this process does not write back. The descriptors
    // are good until the collector's next call that allocates or returns memory.
    template <class F>
    void for_each_backing(unsigned cls, F&& fn) const {
        if (!file_backed(cls)) return;
        dense_[cls - 1].walk_backing(
            [](void* p, char* begin, char* end, int fd) {
                (*static_cast<std::remove_reference_t<F>*>(p))(begin, end, fd);
            },
            const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
    }
    // The collector thread only: of every class that lies in a file; see dense.hpp.
    void begin_write_back() noexcept {
        for (unsigned cls = 1; cls < classes_; ++cls)
            if (file_backed(cls)) dense_[cls - 1].begin_write_back();
    }
    bool file_backed(unsigned cls) const noexcept {
        return cls != new_class && cls < classes_ && dense_[cls - 1].file_backed();
    }

    // Any thread.

    char* range_begin(unsigned cls) const noexcept {
        return base_ + (static_cast<std::size_t>(cls) << shift_);
    }
    std::size_t range_bytes() const noexcept { return range_bytes_; }

    // NEW itself, for src/handles, which takes runs out of service (evacuated.hpp).
    slab_heap<native>& slabs() noexcept { return slabs_; }

    // A snapshot; each figure is right if no thread allocates or frees meanwhile. For NEW the live
    // bytes count whole blocks. cls may be large_class().
    struct class_counters {
        std::uint64_t live_bytes = 0;
        std::uint64_t live_objects = 0;
        std::uint64_t extent_bytes = 0; // memory used by objects, or free and not yet given back
        std::uint64_t hole_bytes = 0;   // extent_bytes - live_bytes
        std::uint64_t runs = 0;         // not free
        std::uint64_t evacuating_runs = 0;
    };
    class_counters counters(unsigned cls) const noexcept;
    // Committed bytes of all side tables.
    std::uint64_t metadata_bytes() const noexcept;

    // Gives the calling thread's runs to others. Threads need not call it: it runs at their exit.
    void thread_exit() noexcept { slabs_.thread_exit(); }

    // In this order around fork, in the forking thread; prepare parks no thread: the collector must
    // not be inside a call of this class, but where it asks its pacer. fork_child() false: objects
    // in the coldest class cannot be accessed in the child, because their memory could not be made
    // private before the fork; the child must not move objects.
    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    bool fork_child() noexcept;

    // Checks every invariant. Precondition: no other thread uses the space. False: *what (may be
    // null) says which one is broken.
    bool validate(std::string* what) const;

  private:
    static begun_groups::name_word& word_of(group_name* name) noexcept {
        static_assert(sizeof(begun_groups::name_word) == sizeof(group_name));
        return *reinterpret_cast<begun_groups::name_word*>(name);
    }
    [[gnu::noinline]] void* allocate_placed_elsewhere(std::size_t size, attributes attr,
                                                      const void* near, group_name* in,
                                                      expectation expect, bool guided,
                                                      neighbour* found) noexcept;
    // Where what is expected, and nothing else is said, is born. nullptr: in NEAR.
    dense_heap<native>* born_in(attributes attr, expectation expect, bool guided) noexcept {
        if (expect == expectation::once) return &once_;
        if (!guided || static_cast<unsigned>(expect) >= expectations ||
            (attr.never_cold && expect == expectation::cold))
            return nullptr;
        return born_[static_cast<unsigned>(expect)];
    }
    void* allocate_born(std::size_t size, attributes attr, expectation expect,
                        bool guided) noexcept;
    space() = default;
    ~space() = default;

    std::size_t offset_of(const void* address) const noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    }
    using touched_walk = void (touched_map::*)(void (*)(void*, std::size_t, std::size_t),
                                               void*) const;
    template <class F>
    void walk_touched(unsigned cls, touched_walk walk, std::size_t unit_bytes, F& fn) const {
        struct context {
            F& fn;
            char* begin;
            std::size_t unit_bytes;
        } c{fn, range_begin(cls), unit_bytes};
        (touched_[cls].*walk)(
            [](void* p, std::size_t first, std::size_t last) {
                auto& to = *static_cast<context*>(p);
                to.fn(to.begin + first * to.unit_bytes, to.begin + last * to.unit_bytes);
            },
            &c);
    }
    // The two parts of near_class(): pages of groups, and runs of once. Precondition: contains(object).
    bool in_near(const void* object) const noexcept {
        return class_of(object) == near_class() && !in_once(object);
    }
    bool in_once(const void* object) const noexcept { return offset_of(object) >= once_offset_; }
    bool has_once() const noexcept { return once_offset_ != total_bytes_; }
    free_result free_near(void* object) noexcept;
    static constexpr std::uint64_t least_births = std::uint64_t{64} << 20;
    // Bytes of runs that births may open now.
    static std::uint64_t births_at_once(const dense_counters& now) noexcept;
    static void allow_births(dense_heap<native>& heap) noexcept;
    std::size_t decommit_near(pacer& ask) noexcept;
    void* allocate_elsewhere(std::size_t size, attributes attr) noexcept;
    bool has_neighbours(const void* object) const noexcept;
    std::size_t usable_size_elsewhere(const void* object) const noexcept;
    void free_elsewhere(void* object) noexcept;
    bool set_up(const space_options& options, std::string* why_not,
                const std::string space_options::** bad_directory) noexcept;

    char* base_ = nullptr;
    std::size_t range_bytes_ = 0;
    std::size_t total_bytes_ = 0;
    std::size_t quick_free_bytes_ = 0; // range_bytes_, or 0 where frees are poisoned or checked
    std::size_t quick_allocate_bytes_ = max_small_size; // or 0: frees are checked, or bytes hidden
    std::size_t quick_near_bytes_ = 0;                  // likewise of join_at_hand()
    poisoning poison_ = poisoning::none;
    bool check_ = false;
    unsigned shift_ = 0;
    unsigned classes_ = 0;
    unsigned slot_ = 0;
    unsigned owned_class_ = ~0U;
    class_owner* owner_ = nullptr;
    slab_heap<native> slabs_;
    native::atomic<std::uint64_t> failures_;
    large_heap large_;
    near_heap<native> near_;
    dense_heap<native> once_;
    std::size_t once_offset_ = 0;
    begun_groups begun_;
    // Of what is expected alone, without a neighbour: groups that threads share.
    static constexpr unsigned expected_groups = 16;
    begun_groups::name_word expected_[expectations][expected_groups];
    dense_heap<native>* born_[expectations] = {}; // of what has a guide; nullptr: nowhere
    native::atomic<std::uint64_t> born_bytes_;    // of runs that births have opened
    dense_heap<native> dense_[max_classes - 1];
    touched_map touched_[max_classes + 2];
};

} // namespace obase::heap
