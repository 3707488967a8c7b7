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
//   3. the page of the group in which an object was freed last;
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
// Locks: `stripes`, each over the groups with its number modulo `stripes`: their cursors and the bits in their
// chunks; then `pool_`: which chunks and pages are free. Neither is held across a system call that gives memory
// back; a thread that needs a new unit commits it with its stripe held, and threads of other stripes go on.
//
// Invariants
//   a chunk is free (owner 0, bit in near_page::free) or claimed by one group; a free chunk has no bits
//   every claimed chunk but those from the cursor's to the limit's touches an object
//   begins and ends alternate within the chunks of a group, and no object leaves its page
//   a page is in a list by its longest run of free chunks if it has some and not only such; a page of free
//   chunks only is in its unit's map; units with such pages are in a list
//   slack_ == free chunks of shared pages; claimed_ == claimed chunks
//
// Memory: a page of free chunks only goes back at the next decommit_free_memory(). Nothing is allocated for a
// group but its entry of 32 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

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

template <class P>
struct alignas(64) near_page {
    // Bit g % 16 of word g / 16 belongs to granule g. Written under the lock of the owner of the chunk.
    typename P::template atomic<std::uint16_t> begins[near_chunks];
    typename P::template atomic<std::uint16_t> ends[near_chunks];
    typename P::template atomic<std::uint32_t> owner[near_chunks]; // group number + 1; 0: free
    typename P::template atomic<std::uint8_t> set[near_chunks];    // meaningful while claimed
    // No more than so many granules in a row can be had by a group that has chunks here. A hint.
    typename P::template atomic<std::uint16_t> room;
    // The next three under pool_.
    std::uint32_t free; // chunks, a bit each
    std::uint32_t next; // page numbers + 1, in the ring of pages with as long a run of free chunks
    std::uint32_t previous;
    typename P::template atomic<std::uint8_t> kind; // expectation of all in it, unless all is free
};

template <class P>
struct near_group {
    typename P::template atomic<std::uint32_t> count; // of the groups that had the number before
    bool used;
    std::uint8_t kind;    // expectation of its first object, and so of all
    std::uint8_t set;     // of the chunks from the cursor on
    std::uint16_t cursor; // granules in the newest page
    std::uint16_t limit;
    std::uint32_t newest; // page number + 1; 0: none
    std::uint32_t freed;  // page number + 1 of the last free that left others in their page
    std::uint32_t objects;
    std::uint32_t chunks;
    std::uint32_t next; // number + 1, in the list of those that are not used
};

struct near_unit {
    std::uint64_t free[near_unit_pages / 64]; // pages without claimed chunks that can be handed out
    std::uint64_t dirty[near_unit_pages / 64]; // those of them that may be resident
    std::uint32_t free_pages;
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
        return pages_.committed_bytes() + groups_.committed_bytes() + units_.committed_bytes();
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
    static constexpr std::uint16_t unknown_room = near_granules;

    struct alignas(64) stripe {
        os::blocking_lock<P> lock;
        typename P::template atomic<std::uint64_t> live_bytes, live_objects, groups;
    };
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
        inside = std::popcount(begins) + (inside ? 1 : 0) > std::popcount(ends);
        return ((ends << 1) + (inside ? 0x10000U : 0U) - from) & 0xFFFFU;
    }
    static std::uint32_t mask_of(unsigned first, unsigned count) noexcept {
        if (count == 0) return 0; // `first` may be 32 then
        return (count >= 32 ? ~0U : (1U << count) - 1) << first;
    }
    static unsigned longest_run(std::uint32_t free) noexcept;
    static unsigned first_fit(std::uint32_t free, unsigned count, unsigned alignment) noexcept;

    void* allocate_in(std::uint32_t number, std::uint32_t neighbour, wish what) noexcept;
    char* place(std::uint32_t number, std::uint32_t neighbour, const wish& what) noexcept;
    char* at_cursor(std::uint32_t number, const wish& what) noexcept;
    bool extend(std::uint32_t number, unsigned end, const wish& what) noexcept;
    char* fill(std::uint32_t number, std::uint32_t at, const wish& what) noexcept;
    char* fill_found(std::uint32_t number, std::uint32_t at, unsigned first,
                     const wish& what) noexcept;
    char* grow(std::uint32_t number, const wish& what) noexcept;
    void leave_newest(std::uint32_t number) noexcept;
    void mark(std::uint32_t number, std::uint32_t at, unsigned first, const wish& what) noexcept;
    bool may_spread() const noexcept;
    std::uint32_t second_half(unsigned chunks, unsigned* first) noexcept;
    std::uint32_t shared_place(unsigned chunks, const wish& what, unsigned* first) noexcept;
    std::uint32_t fresh_page(std::uint32_t near) noexcept;
    bool more_units() noexcept;
    void claim(std::uint32_t number, std::uint32_t at, std::uint32_t chunks, unsigned set) noexcept;
    void release(std::uint32_t number, std::uint32_t at, std::uint32_t chunks) noexcept;
    std::uint32_t new_group() noexcept;
    void end_if_empty(std::uint32_t number) noexcept;
    void list_page(std::uint32_t at) noexcept;
    void unlist_page(std::uint32_t at) noexcept;
    void list_unit(std::uint32_t unit) noexcept;
    void unlist_unit(std::uint32_t unit) noexcept;
    void put_page(std::uint32_t at, bool dirty) noexcept;
    void note_room(page& in, unsigned granules) noexcept {
        if (in.room.load_relaxed() < granules)
            in.room.store_relaxed(static_cast<std::uint16_t>(granules));
    }
    std::size_t decommit_of_unit(std::uint32_t unit, pacer& ask) noexcept;
    void end_return(bool dirty) noexcept;
    const char* validate_page(std::uint32_t at, std::uint64_t* objects,
                              std::uint64_t* bytes) const noexcept;

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    poisoning poison_ = poisoning::none;
    reserved_array<page> pages_;
    reserved_array<group> groups_;
    reserved_array<near_unit> units_;
    typename P::template atomic<std::uint64_t> new_bytes_;
    typename P::template atomic<std::uint32_t> units_used_; // units [0, units_used_) are committed
    mutable std::array<stripe, stripes> stripes_;

    alignas(64) mutable os::blocking_lock<P> pool_; // guards what follows
    std::uint32_t groups_used_ = 0;                 // numbers [0, groups_used_) have been used
    std::uint32_t unused_group_ = 0;                // number + 1
    std::uint32_t unit_ring_ = 0;                   // unit number + 1, of those with free pages
    std::uint32_t half_ = 0; // page number + 1 of a page whose second half waits for a group
    std::array<std::array<std::uint32_t, near_chunks>, expectations> shared_{}; // by longest run
    std::uint64_t slack_ = 0;
    std::uint64_t claimed_ = 0;
    std::uint64_t pages_in_use_ = 0;
    std::uint64_t dirty_pages_ = 0;
    // Pages that are being given back, in no map; of the unit with the number returning_ - 1.
    std::uint32_t returning_ = 0;
    std::array<std::uint64_t, near_unit_pages / 64> returned_pages_{};
};

// In near.cpp. Another platform's needs near_functions.hpp.
extern template class near_heap<os::native_platform>;

} // namespace obase::heap
