// SPDX-License-Identifier: MIT
//
// near_heap: the NEAR range. Objects are placed by what they are used with, not by their sizes (M2T, section
// III.A): those of one group lie on one page while it has room, and else on as few as can be had.
//
//     unit 2 MiB   | page | page | page | ...                              512 pages
//     page 4 KiB   | A A A A B B . . . . . . C C C C . . . |                32 chunks of 128 bytes
//     chunk        | node key value node key ............. |                16 granules of 8 bytes
//
// Words. *group*: objects that are to lie together; it has a number, which is used again when the last of them
// is freed. *chunk*: what a group claims of a page; a claimed chunk holds objects of one group and one
// attribute set, of any sizes, without headers. *cursor*: where the group goes on in its newest page, up to
// *limit*, the end of what it has claimed there. *shared page*: one with free and with claimed chunks.
//
// Where an object goes, each step in bounded time:
//   1. its neighbour's page, if that may have room: a hole in the group's chunks, or a free chunk;
//   2. the group's newest page: at the cursor, else by claiming the chunk behind the limit, else in a hole;
//   3. pages in which objects of the group were freed, of which it has a list;
//   4. a new place: as many chunks as the group has had before (so groups grow by doubling), in a shared page,
//      or from half a page on in a page of its own, in the unit of the group's newest page if that has one.
// A new group would grow best in a page of its own, and would cost least in the fullest page there is. Both are
// had while *slack* (free chunks of shared pages) is small beside what is claimed: until then two groups
// share a fresh page, half each, and from there on groups begin in the fullest pages.
//
// Tables. For each granule a bit says whether an object begins there, and another whether one ends there. What
// is in use is a subtraction (used_in()), and the size of a live object can be read without a lock, since no
// other thread writes the bits between its two ends. (Bits of use instead of ends would be changed by the
// neighbours' frees while they are read.) A page's table takes 320 bytes.
//
// Who may change what. Numbers of groups come in *domains* of 1,024, and a domain belongs to the thread that began
// its groups, until another thread allocates or frees in one of them: then it is shared (biased.hpp). What
// belongs to a group (its entry, and the bits in its chunks) is changed in a section over its domain, or, once that
// is shared, under the group's stripe, one of 64 locks. `pool_` guards which chunks and pages are free; it
// comes after either. So that it is not needed for each chunk a thread *reserves* some in a row: they are not
// free, have no owner, and are claimed in its sections one after the other; and it keeps those that it *freed* of one
// page until it frees in another, takes pool_ anyway, or nothing else of the page is left (give_up()). None of these is
// held across a system call but those that wait for pool_.
//
// At hand. A thread goes on with the group that it used last (near_thread::last_*) without a look at the neighbour's
// page, the group's domain or the pool: it is its own until another thread says that it wants something
// (biased.hpp), and whoever frees what is at hand, or takes the newest page from the group, forgets it
// (forget_last()): that is the thread itself, in a section, or one that has shared the domain. What is allocated so is
// counted once in some thousand objects (near_thread::uncounted).
//
// Invariants
//   a chunk is free (owner 0, bit in near_page::free), reserved or freed by one thread (owner 0, no bit) or claimed by
//   one group; one that is not claimed has no bits
//   a group has a claimed chunk in its newest page
//   every claimed chunk but those from the cursor's to the limit's touches an object
//   begins and ends alternate within the chunks of a group, and no object leaves its page
//   a page is in a list by its longest run of free chunks if it has some and not only such; a page of free
//   chunks only is in its unit's map; units with such pages are in a list
//   slack_ == free chunks of shared pages; claimed_ + what threads have not told yet == claimed chunks
//   searched: no object of so many granules and that set can be had by that group in the page
//
// Memory: a page of free chunks only goes back at the next decommit_free_memory(), and so do the tables of a unit of
// such pages only, which are zero bytes then. Nothing is allocated for a
// group but its entry of 32 bytes. A thread keeps at most 31 chunks reserved, and 31 freed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <type_traits>

#include "heap/biased.hpp"
#include "heap/invalid_free.hpp"
#include "heap/pacer.hpp"
#include "heap/poison.hpp"
#include "heap/reserved_array.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"
#include "os/waiting.hpp"

namespace obase::heap {

inline constexpr std::size_t max_near_size = os::page_size;
inline constexpr std::size_t near_unit_bytes = std::size_t{2} << 20;
inline constexpr std::size_t near_chunk_bytes = 128;
inline constexpr unsigned near_chunks = os::page_size / near_chunk_bytes;    // of a page
inline constexpr unsigned near_granules = os::page_size / granule;           // of a page
inline constexpr unsigned near_chunk_granules = near_chunk_bytes / granule;  // of a chunk
inline constexpr unsigned near_unit_pages = near_unit_bytes / os::page_size; // of a unit
// How an object will be used, as far as the program knows (obase::expectation).
enum class expectation : std::uint8_t { nothing, hot, cold, once };
inline constexpr unsigned expectations = 4;
// Objects of different sets never share a chunk, those of different expectations no page. A group has the
// expectation of its first object.
inline constexpr unsigned near_sets = attribute_sets * expectations;

constexpr unsigned near_set(attributes attr, expectation expect) noexcept {
    return static_cast<unsigned>(expect) * attribute_sets + attribute_index(attr);
}

// Where the objects of one group are: its number + 1, and a count that tells whether the group is still the
// one that was meant. 0: none.
using group_name = std::uint64_t;

// Which chunks of a page are free, a bit each. Zero bytes: all are.
template <class P>
class near_free_chunks {
  public:
    std::uint32_t load_relaxed() const noexcept { return ~taken_.load_relaxed(); }
    std::uint32_t load_seq_cst() const noexcept { return ~taken_.load_seq_cst(); }
    void store_relaxed(std::uint32_t free) noexcept { taken_.store_relaxed(~free); }

  private:
    typename P::template atomic<std::uint32_t> taken_;
};

// Zero bytes: a page of free chunks only.
template <class P>
struct alignas(64) near_page {
    // Bit g % 16 of word g / 16 belongs to granule g. Written with the owner of the chunk.
    typename P::template atomic<std::uint16_t> begins[near_chunks];
    typename P::template atomic<std::uint16_t> ends[near_chunks];
    typename P::template atomic<std::uint32_t>
        owner[near_chunks]; // group number + 1; 0: free or reserved
    typename P::template atomic<std::uint8_t> set[near_chunks]; // meaningful while claimed
    // Group number + 1, set and granules of the last search in vain (searched_for()); 0: nothing is known.
    typename P::template atomic<std::uint64_t> searched;
    // The page is in the list of pages with holes of the group with this number + 1, if that has reached it; 0: of
    // none. The link is that group's.
    typename P::template atomic<std::uint32_t> holes_of;
    typename P::template atomic<std::uint32_t> next_with_holes; // page number + 1
    // The next three are written under pool_.
    near_free_chunks<P> free;
    std::uint32_t next; // page numbers + 1, in the ring of pages with as long a run of free chunks
    std::uint32_t previous;
    typename P::template atomic<std::uint8_t> kind; // expectation of all in it, unless all is free
};

template <class P>
struct near_group {
    typename P::template atomic<std::uint32_t> count; // of the groups that had the number before
    typename P::template atomic<bool> used;
    std::uint8_t kind;    // expectation of its first object, and so of all
    std::uint8_t set;     // of the chunks from the cursor on
    std::uint16_t cursor; // granules in the newest page
    std::uint16_t limit;
    std::uint32_t newest;     // page number + 1; 0: none
    std::uint32_t with_holes; // page number + 1: the first in the list; 0: none
    std::uint32_t objects;
    std::uint32_t chunks;
    std::uint32_t next; // number + 1, in a list of those that are not used
};
static_assert(sizeof(near_group<os::native_platform>) == 32);
static_assert(sizeof(near_page<os::native_platform>) == 320);

// What the thread with a number has. It is changed in its sections.
template <class P>
struct near_thread {
    // What is at hand: the group of the thread's that it allocated in last, its newest page, and two live objects there:
    // the last one, and the last neighbour that was looked for. last_set is no_set: there is none of this.
    const void* last_object = nullptr;
    const void* last_neighbour = nullptr;
    char* last_memory = nullptr;
    near_page<P>* last_table = nullptr;
    near_group<P>* last_entry = nullptr;
    // Objects << 32 | granules that were allocated at hand, and are not counted below yet.
    typename P::template atomic<std::uint64_t> uncounted;
    group_name last_name = 0;
    unsigned last_set = no_set; // attributes alone, of the chunks from the cursor on
    static constexpr unsigned no_set = ~0U;
    std::uint32_t last_owner() const noexcept { // the group's number + 1
        return static_cast<std::uint32_t>(last_name);
    }

    // Chunks that are reserved: [next, end) of a page, whose number + 1 it is.
    std::uint32_t page = 0;
    std::uint8_t next = 0;
    std::uint8_t end = 0;
    std::uint8_t kind = 0;          // of the page's objects
    bool spreads = false;           // what is left of them goes back before the next group begins
    std::uint32_t unused_group = 0; // number + 1; the rest through near_group::next
    std::uint32_t fresh_group =
        0; // number + 1 that never was a group's; so are those behind it, up to its domain's end
    // Chunks that it freed and has not given back: of the page whose number + 1 it is.
    std::uint32_t freed_page = 0, freed = 0;
    // Added to those of stripes and pool.
    typename P::template atomic<std::uint32_t>
        claimed; // chunks, less those that were given up; what has been told (tell()) is not in it
    typename P::template atomic<std::uint64_t> live_bytes, live_objects, groups;
};

struct near_unit {
    std::uint64_t free[near_unit_pages / 64]; // pages without claimed chunks that can be handed out
    std::uint64_t dirty[near_unit_pages / 64]; // those of them that may be resident
    std::uint32_t free_pages;
    bool full;          // its pages' tables may be resident
    std::uint32_t next; // unit numbers + 1, in the ring of units with free pages
    std::uint32_t previous;
};

struct near_counters {
    std::uint64_t live_bytes = 0;
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0; // pages with objects, and free ones that may be resident
    std::uint64_t groups = 0;
    std::uint64_t claimed_bytes = 0;
};

template <class P>
class near_heap {
    using page = near_page<P>;
    using group = near_group<P>;
    using thread = near_thread<P>;
    using owners = biased_sections<P, thread>;
    using owner_word = typename owners::owner_word;
    using row = typename owners::holder; // of a thread

  public:
    static constexpr unsigned stripes = 64;

    // Precondition: base lies on a unit, bytes is a multiple of one, or less than one and none can be
    // allocated. False: no address space for the tables.
    bool create(char* base, std::size_t bytes, poisoning poison_freed) noexcept;
    void destroy() noexcept;

    // Any thread, in all of what follows, unless it says otherwise. `size` is a multiple of 8 and of the
    // alignment in `set`, at most max_near_size. nullptr: no memory, or what each says.

    // The first object of a new group. *name is its name, if not null.
    void* begin_group(std::size_t size, unsigned set, group_name* name) noexcept;
    // Near a live object of this heap. Null also if no live object begins at the address.
    void* join(const void* neighbour, std::size_t size, unsigned set) noexcept;
    // The same, as far as the calling thread can do it alone and at once: the neighbour is in the newest page of the
    // group of the thread's that it used last, and there is room at the cursor. nullptr: nothing was done.
    // `attributes_set`: an attribute_index() with the usual alignment.
    // A function without calls but last ones, so that all it needs is in registers.
    [[gnu::noinline]] void* join_at_hand(const void* neighbour, std::size_t size,
                                         unsigned attributes_set) noexcept {
        row* const its = row_at_hand();
        if (its == nullptr) [[unlikely]]
            return nullptr;
        const thread& mine = its->own;
        if (mine.last_set != attributes_set) [[unlikely]]
            return nullptr;
        if (neighbour != mine.last_object && neighbour != mine.last_neighbour) [[unlikely]]
            return join_newest_page(*its, neighbour, size);
        return join_last(*its, size);
    }
    // The same in the group that the word names, if that is the one of before; or in a new one, if the word names none
    // and the thread has a number and chunks for it. `kind`: what is expected; nothing is begun for others than the four.
    [[gnu::noinline]] void* join_at_hand(typename P::template atomic<group_name>& name,
                                         std::size_t size, unsigned attributes_set,
                                         unsigned kind) noexcept {
        row* const its = row_at_hand();
        if (its == nullptr) [[unlikely]]
            return nullptr;
        const thread& mine = its->own;
        const group_name seen = name.load_acquire(); // pairs with begin_at_hand()
        if (seen == 0) return begin_at_hand(*its, name, size, attributes_set, kind);
        if (mine.last_name != seen || mine.last_set != attributes_set) return nullptr;
        return join_last(*its, size);
    }
    // In the group that the word names; a new one, which it names then, if it names none or one whose objects
    // have all been freed.
    void* join(typename P::template atomic<group_name>& name, std::size_t size,
               unsigned set) noexcept;

    // Frees what is a live object of this heap, and nothing else.
    free_result free(void* object) noexcept;

    // Precondition: the object is live.
    std::size_t size_of(const void* object) const noexcept {
        const std::size_t at = granule_of(object);
        return (end_of(page_of(object), at) - at + 1) * granule;
    }
    // 0 if no object begins at the address. May race with a free: then a size that ends inside the page.
    std::size_t size_of_racy(const void* address) const noexcept {
        return begins_at(address) ? size_of(address) : 0;
    }
    // Precondition: an object begins there, or did a moment ago.
    unsigned set_of(const void* object) const noexcept {
        return page_of(object).set[chunk_of(object)].load_relaxed() % attribute_sets;
    }
    // Nothing if no object begins at the address.
    expectation expected_of(const void* object) const noexcept {
        if (!begins_at(object)) return expectation::nothing;
        return static_cast<expectation>(page_of(object).set[chunk_of(object)].load_relaxed() /
                                        attribute_sets);
    }
    // Share of the object's page that claimed chunks take. Racy.
    double live_fraction_of_page(const void* object) const noexcept {
        unsigned claimed = 0;
        for (const auto& owner : page_of(object).owner) claimed += owner.load_relaxed() != 0;
        return static_cast<double>(claimed) / near_chunks;
    }

    // Collector only: gives back the pages without claimed chunks; returns bytes.
    std::size_t decommit_free_memory(pacer& ask) noexcept;

    near_counters counters() const noexcept;
    // Ever given to threads: memory that was not resident.
    std::uint64_t new_bytes() const noexcept { return new_bytes_.load_relaxed(); }
    std::size_t metadata_bytes() const noexcept {
        return pages_.committed_bytes() + groups_.committed_bytes() + units_.committed_bytes() +
               domains_.committed_bytes();
    }
    // Calls visit(context, begin, end) for maximal stretches of pages with claimed chunks.
    void walk_extents(void (*visit)(void*, char*, char*), void* context) const;

    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    void fork_child() noexcept;

    // Checks the invariants above. Precondition: no other thread uses the heap. nullptr: all hold.
    const char* validate() const noexcept;

  private:
    // While others may begin in the fullest pages, so many free bytes of shared pages may be used for spreading.
    static constexpr std::size_t least_slack_bytes = std::size_t{4} << 20;
    static constexpr std::size_t slack_per_claimed = 4; // and a fourth of what is claimed
    static constexpr unsigned own_page_from = near_chunks / 2;
    static constexpr unsigned pages_tried = 8;
    static constexpr unsigned pages_with_holes_tried = 2;
    static constexpr unsigned reserved_at_most = near_chunks - 1;
    // near_thread::uncounted: an object, and how many of them are counted at last.
    static constexpr std::uint64_t one_uncounted = std::uint64_t{1} << 32;
    static constexpr std::uint64_t most_uncounted = 4096 * one_uncounted;
    static constexpr std::uint32_t domain_groups = 1024;
    static constexpr std::uint32_t no_group = ~std::uint32_t{0};
    // std::popcount() is a call where the processor may lack the instruction.
    static constexpr unsigned count_of(std::uint32_t bits) noexcept {
        bits -= bits >> 1 & 0x55555555U;
        bits = (bits & 0x33333333U) + (bits >> 2 & 0x33333333U);
        return (((bits + (bits >> 4)) & 0x0F0F0F0FU) * 0x01010101U) >> 24;
    }

    struct live_counters {
        typename P::template atomic<std::uint64_t>*bytes, *objects, *groups;
    };
    struct alignas(64) stripe {
        os::blocking_lock<P> lock;
        typename P::template atomic<std::uint64_t> live_bytes, live_objects, groups;
    };
    // While one exists, the calling thread alone may change the group.
    class section {
      public:
        section(near_heap& heap, std::uint32_t number) noexcept : heap_(heap), number_(number) {
            owner_word& owner = heap.domains_[number / domain_groups];
            if (heap.owners_.enter(owner)) [[likely]]
                mine_ = &heap.own();
            else
                lock(owner);
        }
        // None: number() is no_group.
        explicit section(near_heap& heap) noexcept : heap_(heap), number_(no_group) {}
        // In a section that has been entered, over a group of the calling thread's.
        section(near_heap& heap, std::uint32_t number, thread& mine) noexcept
            : heap_(heap), mine_(&mine), number_(number) {}
        ~section() {
            if (mine_ != nullptr)
                heap_.owners_.leave();
            else if (number_ != no_group)
                heap_.stripe_of(number_).lock.unlock();
        }
        section(const section&) = delete;
        section& operator=(const section&) = delete;

        std::uint32_t number() const noexcept { return number_; }
        // What the thread has that owns the group; null: the group is shared.
        thread* mine() const noexcept { return mine_; }
        group& its() const noexcept { return heap_.groups_[number_]; }
        live_counters counts() const noexcept {
            if (mine_ != nullptr) return {&mine_->live_bytes, &mine_->live_objects, &mine_->groups};
            stripe& its = heap_.stripe_of(number_);
            return {&its.live_bytes, &its.live_objects, &its.groups};
        }

      private:
        [[gnu::noinline]] void lock(owner_word& owner) noexcept {
            heap_.owners_.share(owner);
            heap_.stripe_of(number_).lock.lock();
        }
        near_heap& heap_;
        thread* mine_ = nullptr;
        std::uint32_t number_;
    };
    // What an allocation may do if there is no page: ask its caller, who holds nothing, for another unit.
    enum class units : std::uint8_t { may_be_asked_for, wanted, cannot_be_had };
    // What is asked for, in granules.
    struct wish {
        unsigned granules;
        unsigned alignment;
        unsigned set;
        unsigned kind() const noexcept { return set / attribute_sets; }
        unsigned chunks() const noexcept {
            return (granules + near_chunk_granules - 1) / near_chunk_granules;
        }
        // Chunks lie on multiples of their size.
        unsigned chunk_alignment() const noexcept {
            return std::max(alignment / near_chunk_granules, 1U);
        }
        unsigned aligned(unsigned at) const noexcept {
            return (at + alignment - 1) & ~(alignment - 1);
        }
    };
    static wish wish_of(std::size_t size, unsigned set) noexcept {
        return {static_cast<unsigned>(size / granule),
                1U << (attributes_at(set % attribute_sets).log2_alignment - 3U), set};
    }

    std::size_t offset_of(const void* address) const noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    }
    std::uint32_t number_of(const void* address) const noexcept { // of its page
        return static_cast<std::uint32_t>(offset_of(address) / os::page_size);
    }
    page& page_of(const void* address) const noexcept { return pages_[number_of(address)]; }
    std::size_t granule_of(const void* address) const noexcept {
        return offset_of(address) % os::page_size / granule;
    }
    std::size_t chunk_of(const void* address) const noexcept {
        return offset_of(address) % os::page_size / near_chunk_bytes;
    }
    char* memory_of(std::uint32_t number, unsigned at) const noexcept {
        return base_ + std::size_t{number} * os::page_size + at * granule;
    }
    stripe& stripe_of(std::uint32_t number) noexcept { return stripes_[number % stripes]; }
    bool begins_at(const void* address) const noexcept {
        const std::size_t offset = offset_of(address);
        if (offset % granule != 0 || offset / near_unit_bytes >= units_used_.load_acquire())
            return false;
        const std::size_t at = granule_of(address);
        return (page_of(address).begins[at / near_chunk_granules].load_acquire() >>
                    (at % near_chunk_granules) &
                1) != 0;
    }
    // The last granule of the object that begins at `at`; of the page if there is no end.
    std::size_t end_of(const page& in, std::size_t at) const noexcept {
        std::size_t word = at / near_chunk_granules;
        unsigned bits = in.ends[word].load_relaxed() & (0xFFFFU << (at % near_chunk_granules));
        while (bits == 0) {
            if (++word == near_chunks) return near_granules - 1;
            bits = in.ends[word].load_relaxed();
        }
        return word * near_chunk_granules + static_cast<unsigned>(std::countr_zero(bits));
    }
    // The granules of a chunk that objects take. `inside`: the last chunk's last object goes on into this one;
    // in and out.
    static std::uint32_t used_in(std::uint32_t begins, std::uint32_t ends, bool& inside) noexcept {
        // An object from granule b to e is 2^(e+1) - 2^b.
        const std::uint32_t from = begins + (inside ? 1 : 0);
        inside = count_of(begins) + (inside ? 1 : 0) > count_of(ends);
        return ((ends << 1) + (inside ? 0x10000U : 0U) - from) & 0xFFFFU;
    }
    static std::uint32_t mask_of(unsigned first, unsigned count) noexcept {
        if (count == 0) return 0; // `first` may be 32 then
        return (count >= 32 ? ~0U : (1U << count) - 1) << first;
    }
    static unsigned longest_run(std::uint32_t free) noexcept;
    static unsigned first_fit(std::uint32_t free, unsigned count, unsigned alignment) noexcept;

    static group_name name_of(const group& its, std::uint32_t number) noexcept {
        return std::uint64_t{its.count.load_relaxed()} << 32 | (number + 1);
    }
    thread& own() noexcept { return owners_.of_number(thread_number<P>::of_caller()).own; }
    // The calling thread's. nullptr: it has not been looked for, or there is none.
    row* row_at_hand() noexcept {
        const unsigned me = thread_number<P>::at_hand();
        if (me == no_thread_number) [[unlikely]]
            return nullptr;
        row* its = &owners_.of_number(me);
        asm("" : "+r"(its)); // one register for all in it
        if (its == nullptr) __builtin_unreachable();
        return its;
    }
    static std::uint64_t searched_for(std::uint32_t number, const wish& what) noexcept {
        return std::uint64_t{number + 1} << 32 | std::uint64_t{what.set} << 16 | what.granules;
    }
    static bool has_chunks_in(std::uint32_t number, const page& in) noexcept {
        return std::any_of(std::begin(in.owner), std::end(in.owner), [number](const auto& owner) {
            return owner.load_relaxed() == number + 1;
        });
    }
    // Precondition: in a section of the group's.
    static void forget_search(std::uint32_t number, page& in) noexcept {
        if (in.searched.load_relaxed() >> 32 == number + 1) in.searched.store_relaxed(0);
    }
    static void add(typename P::template atomic<std::uint64_t>& to, std::uint64_t what) noexcept {
        to.store_relaxed(to.load_relaxed() + what);
    }

    template <class Attempt>
    void* with_units(Attempt&& attempt) noexcept;
    void* begin(const wish& what, group_name* name, units& more) noexcept;
    void make_group(section& in) noexcept;
    void* first_object(section& in, const wish& what, group_name* name, units& more) noexcept;
    std::uint32_t unused_number(thread& mine) noexcept;
    std::uint32_t shared_number(bool any) noexcept;
    bool new_domain() noexcept;
    bool take_domain(thread* mine, std::uint32_t* wanted) noexcept;
    section begin_section() noexcept;
    std::uint32_t number_elsewhere() noexcept;
    void* join_named(typename P::template atomic<group_name>& name, const wish& what,
                     units& more) noexcept;
    void* allocate_in(section& in, std::uint32_t neighbour, wish what, units& more) noexcept;
    char* place(section& in, std::uint32_t neighbour, const wish& what, units& more) noexcept;
    char* at_cursor(section& in, const wish& what) noexcept;
    bool extend(section& in, unsigned end, const wish& what) noexcept;
    static void forget_last(section& in) noexcept;
    bool extend_from_pool(section& in, unsigned first, unsigned last, const wish& what) noexcept;
    char* fill(section& in, std::uint32_t at, const wish& what) noexcept;
    char* fill_found(section& in, std::uint32_t at, unsigned first, const wish& what) noexcept;
    char* fill_listed(section& in, std::uint32_t neighbour, const wish& what) noexcept;
    void list_holes(section& in, std::uint32_t at) noexcept;
    char* grow(section& in, const wish& what, units& more) noexcept;
    std::uint32_t find_place(std::uint32_t before, const wish& what, bool spreads, unsigned* first,
                             unsigned* chunks) noexcept;
    static unsigned end_to_reserve(const page& in, unsigned from, bool spreads) noexcept;
    std::uint32_t place_in_pool(section& in, std::uint32_t before, const wish& what, units& more,
                                unsigned* first, unsigned* chunks) noexcept;
    void leave_newest(section& in) noexcept;
    // The object's bits. The end first: who sees the beginning without the lock finds it.
    static void mark(page& in, unsigned first, unsigned last) noexcept {
        auto& ends = in.ends[last / near_chunk_granules];
        ends.store_relaxed(
            static_cast<std::uint16_t>(ends.load_relaxed() | 1U << (last % near_chunk_granules)));
        auto& begins = in.begins[first / near_chunk_granules];
        begins.store_release(static_cast<std::uint16_t>(begins.load_relaxed() |
                                                        1U << (first % near_chunk_granules)));
    }
    // The object of granules [first, end) in what the thread used last, up to the limit there.
    char* at_cursor(thread& mine, group& its, unsigned first, unsigned end) noexcept {
        its.cursor = static_cast<std::uint16_t>(end);
        mark(*mine.last_table, first, end - 1);
        ++its.objects;
        add(mine.uncounted, one_uncounted + (end - first));
        char* const object = mine.last_memory + first * granule;
        mine.last_object = object;
        return object;
    }
    [[gnu::always_inline]] void* join_last(row& me, std::size_t size) noexcept {
        const auto inside = owners::look_in(me);
        if (owners::is_wanted(inside)) [[unlikely]]
            return give_way(me);
        check_at_hand(me, me.own.last_owner());
        thread& mine = me.own;
        group& its = *mine.last_entry;
        const unsigned first = its.cursor;
        const unsigned end = first + static_cast<unsigned>(size / granule);
        if (end > its.limit) [[unlikely]]
            return extend_and_join(me, size);
        char* const object = at_cursor(mine, its, first, end);
        if (!owners::leave_unless_waited_for(inside)) [[unlikely]]
            return left_with(me, object);
        return object;
    }
    // In the section, before the group with that number + 1 is changed.
    void check_at_hand(const row& me, std::uint32_t owner) const noexcept {
        if constexpr (owners::checks) owners_.check_own(domains_[(owner - 1) / domain_groups], me);
    }
    // The rest of join_at_hand(): another neighbour, room behind the limit, a new group, and what comes next.
    [[gnu::noinline]] char* join_newest_page(row& me, const void* neighbour,
                                             std::size_t size) noexcept;
    [[gnu::noinline]] char* extend_and_join(row& me, std::size_t size) noexcept;
    [[gnu::noinline]] char* begin_at_hand(row& me, typename P::template atomic<group_name>& name,
                                          std::size_t size, unsigned attributes_set,
                                          unsigned kind) noexcept;
    // Another thread wants something of this one's, perhaps what is at hand.
    [[gnu::noinline]] char* give_way(row& me) noexcept;
    [[gnu::noinline]] static char* left_with(row& me, char* object) noexcept {
        me.left.notify();
        return object;
    }
    // The object, which lies in the newest page of a group of the thread's, is at hand.
    static void note_last(thread& mine, group& its, group_name name, page& in, char* memory,
                          const void* object, unsigned attributes_set) noexcept {
        // Between two calls less than a page is added.
        if (mine.uncounted.load_relaxed() >= most_uncounted) [[unlikely]]
            count_uncounted(mine);
        mine.last_object = mine.last_neighbour = object;
        mine.last_memory = memory;
        mine.last_table = &in;
        mine.last_entry = &its;
        mine.last_name = name;
        mine.last_set = attributes_set;
    }
    [[gnu::noinline]] static void count_uncounted(thread& mine) noexcept {
        const std::uint64_t these = mine.uncounted.load_relaxed();
        add(mine.live_bytes, these % one_uncounted * granule);
        add(mine.live_objects, these / one_uncounted);
        mine.uncounted.store_release(0); // after them; pairs with counters()
    }
    // Claims what is behind the limit up to `end` of what the thread has reserved, and of what is left there a fourth
    // of what the group has. False: that is elsewhere.
    bool extend_reserved(thread& mine, group& its, page& in, std::uint32_t owner,
                         unsigned end) noexcept {
        const unsigned first = its.limit / near_chunk_granules;
        unsigned last = (end + near_chunk_granules - 1) / near_chunk_granules;
        if (mine.page != its.newest || mine.next != first || last > mine.end) return false;
        last = std::min<unsigned>(std::max(last, first + its.chunks / 4), mine.end);
        take_reserved(mine, its, in, owner, last - first, its.set);
        its.limit = static_cast<std::uint16_t>(last * near_chunk_granules);
        return true;
    }
    // `owner`: the group's number + 1. Precondition: count > 0.
    void take_reserved(thread& mine, group& its, page& in, std::uint32_t owner, unsigned count,
                       unsigned set) noexcept {
        unsigned chunk = mine.next;
        const unsigned last = chunk + count;
        do {
            in.set[chunk].store_relaxed(static_cast<std::uint8_t>(set));
            in.owner[chunk].store_relaxed(owner);
        } while (++chunk != last);
        its.chunks += count;
        mine.claimed.store_relaxed(mine.claimed.load_relaxed() + count);
        mine.next = static_cast<std::uint8_t>(last);
        if (last == mine.end) mine.page = 0;
    }
    static void note_reserved(thread& mine, std::uint32_t page_plus_one, unsigned first,
                              unsigned end, bool spreads, unsigned kind) noexcept {
        mine.page = page_plus_one;
        mine.next = static_cast<std::uint8_t>(first);
        mine.end = static_cast<std::uint8_t>(end);
        mine.spreads = spreads;
        mine.kind = static_cast<std::uint8_t>(kind);
    }
    bool reserve(thread& mine, unsigned chunks, unsigned kind) noexcept;
    void unreserve(thread& mine) noexcept;
    void tell(thread& mine) noexcept;
    void give_back_freed(thread& mine) noexcept;
    bool give_up(section& in, std::uint32_t at, std::uint32_t chunks) noexcept;
    std::uint32_t take_fresh(thread& mine) noexcept {
        const std::uint32_t number = mine.fresh_group - 1;
        mine.fresh_group = (number + 1) % domain_groups == 0 ? 0 : number + 2;
        return number;
    }
    static std::uint32_t freed_by(const thread& one, std::uint32_t at) noexcept {
        return one.freed_page == at + 1 ? one.freed : 0;
    }
    std::uint32_t reserved_by(const thread& one) const noexcept {
        return one.page == 0 ? 0 : mask_of(one.next, one.end - one.next);
    }
    bool may_spread() const noexcept;
    std::uint32_t second_half(unsigned chunks, unsigned* first) noexcept;
    std::uint32_t shared_place(unsigned chunks, const wish& what, unsigned* first) noexcept;
    std::uint32_t fresh_page(std::uint32_t near) noexcept;
    bool more_units() noexcept;
    void own_chunks(section& in, std::uint32_t at, std::uint32_t chunks, unsigned set) noexcept;
    void claim(section& in, std::uint32_t at, std::uint32_t chunks, unsigned set) noexcept;
    void claim_and_reserve(section& in, std::uint32_t at, unsigned first, unsigned last,
                           unsigned end, bool spreads, unsigned set) noexcept;
    void release(section& in, std::uint32_t at, std::uint32_t chunks) noexcept;
    void take_from_free(std::uint32_t at, std::uint32_t chunks) noexcept;
    void put_to_free(std::uint32_t at, std::uint32_t chunks) noexcept;
    void set_free(std::uint32_t at, std::uint32_t now) noexcept;
    void end_if_empty(section& in) noexcept;
    void list_page(std::uint32_t at, unsigned longest) noexcept;
    void unlist_page(std::uint32_t at, unsigned longest) noexcept;
    void list_unit(std::uint32_t unit) noexcept;
    void unlist_unit(std::uint32_t unit) noexcept;
    void put_page(std::uint32_t at, bool dirty) noexcept;
    std::size_t decommit_of_unit(std::uint32_t unit, pacer& ask) noexcept;
    void end_return(bool dirty) noexcept;
    const char* validate_page(std::uint32_t at, std::uint32_t reserved, std::uint64_t* objects,
                              std::uint64_t* bytes) const noexcept;

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    poisoning poison_ = poisoning::none;
    reserved_array<page> pages_;
    reserved_array<group> groups_;
    reserved_array<near_unit> units_;
    reserved_array<owner_word> domains_;
    owners owners_;
    static_assert(sizeof(row) == 128 || !std::is_same_v<P, os::native_platform>);
    typename P::template atomic<std::uint64_t> new_bytes_;
    typename P::template atomic<std::uint32_t> units_used_; // units [0, units_used_) are committed
    mutable std::array<stripe, stripes> stripes_;

    alignas(64) mutable os::blocking_lock<P> pool_; // guards what follows
    std::uint32_t domains_used_ = 0; // numbers [0, domains_used_ * domain_groups) can be groups'
    std::uint32_t unused_group_ = 0; // number + 1, of shared domains
    std::uint32_t unused_groups_ = 0;
    std::uint32_t fresh_group_ = 0,
                  fresh_end_ = 0; // numbers of a shared domain that were no group's
    std::uint32_t unit_ring_ = 0; // unit number + 1, of those with free pages
    std::uint32_t half_ = 0;      // page number + 1 of a page whose second half waits for a group
    std::array<std::array<std::uint32_t, near_chunks>, expectations> shared_{}; // by longest run
    std::uint64_t slack_ = 0;
    std::int64_t claimed_ = 0; // less than 0 while threads have not told what they claimed
    std::uint64_t pages_in_use_ = 0;
    std::uint64_t dirty_pages_ = 0;
    // Pages that are being given back, in no map; of the unit with the number returning_ - 1. Those that may be resident
    // are in dirty_pages_ still.
    std::uint32_t returning_ = 0;
    std::array<std::uint64_t, near_unit_pages / 64> returned_pages_{}, returned_dirty_{};
};

// In near.cpp. Another platform's needs near_functions.hpp.
extern template class near_heap<os::native_platform>;

} // namespace obase::heap
