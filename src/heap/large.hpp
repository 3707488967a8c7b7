// SPDX-License-Identifier: MIT
//
// large_heap: where objects above 16 KiB are born, in extents of whole OS pages. The collector moves them to
// the dense classes (dense.hpp), but those above max_dense_size, which stay.
//
// First fit at the lowest address, free neighbours merge at once. Free extents form a treap ordered
// by address whose nodes carry the longest extent of their subtree, and whether one of them is dirty or has
// tables that can go back, so all searches are O(log n). Two side tables, an entry per page, reserved for the whole range and
// touched only at the ends of extents:
//   tags_   first and last page of every extent: used (with its exact size), free or claimed (with
//           its length)
//   nodes_  first page of every free extent: the treap node
// A free extent knows the pages between which some may be resident, its *dirty* part, and those between
// which their entries in the tables may be, its *full* part. Memory goes back from there in pieces. A piece is
// *claimed* meanwhile: an extent of its own, which is not in the treap and merges with no neighbour; at most one
// is. An allocation that fits nowhere else waits a moment for it.
//
// Invariants: no two free extents touch; every page below the frontier belongs to exactly one
// extent; the dirty and the full part of a free extent lie in it; dirty_pages_ is the sum of the dirty parts.
//
// Any thread may allocate and free; a mutex guards everything, and is not held across system calls:
// memory beyond the frontier is committed first, by each thread that needs some, and the first of them
// moves the frontier. size_of() of a live object needs no lock: its tag is written before the
// address is handed out, and from then on is the size that resize() gave it last, until it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/invalid_free.hpp"
#include "heap/pacer.hpp"
#include "heap/poison.hpp"
#include "heap/reserved_array.hpp"
#include "heap/size_class.hpp"
#include "os/platform.hpp"

namespace obase::heap {

struct large_counters {
    std::uint64_t live_bytes = 0;
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0; // pages used, or free and not returned
};

class large_heap {
  public:
    bool create(char* base, std::size_t bytes, poisoning poison_freed) noexcept;
    void destroy() noexcept;

    void* allocate(std::size_t size, unsigned set) noexcept;
    void free(void* object) noexcept;
    // Makes an object of another size where it is; its bytes stay, as far as it has them then. False: what lies behind it
    // is in use or just going back, or there is no memory, and nothing has changed. A smaller one never fails. `size`: above max_small_size, as allocate() has it.
    bool resize(void* object, std::size_t size) noexcept;
    // Frees what is the start of an object, and nothing else. LARGE does not remember what was there.
    free_result free_checked(void* object) noexcept;
    // 0 where no object begins.
    std::size_t size_of(const void* object) const noexcept;
    unsigned set_of(const void* object) const noexcept;

    // The collector, one at a time. Returns the bytes given back.
    std::size_t decommit_free_memory(pacer& ask) noexcept;
    large_counters counters() const noexcept;
    // Ever given to threads: memory that was not resident.
    std::uint64_t new_bytes() const noexcept { return new_bytes_.load_relaxed(); }
    std::size_t metadata_bytes() const noexcept;
    // visit(context, object, size, set) in address order. Holds the lock: visit must not allocate
    // here.
    void walk(void (*visit)(void*, char*, std::size_t, unsigned), void* context) const;
    const char* validate() const noexcept;

    void fork_prepare() noexcept { lock_.lock(); }
    void fork_parent() noexcept { lock_.unlock(); }
    void fork_child() noexcept;

  private:
    using index = std::uint32_t; // page number + 1; 0: none
    static constexpr std::size_t max_pages = UINT32_MAX - 1;
    static constexpr std::size_t full_enough = 1024; // pages, 44 KiB of the tables
    static constexpr unsigned naps_before_growing = 4;
    static constexpr std::uint64_t nap_ns = 50'000;

    struct node {
        index left;
        index right;
        std::uint32_t pages;
        std::uint32_t longest;     // in this subtree
        std::uint32_t dirty_first; // pages [dirty_first, dirty_end) may be resident; none if equal
        std::uint32_t dirty_end;
        std::uint32_t full_first; // pages [full_first, full_end) may have entries that are resident
        std::uint32_t full_end;
        bool any_dirty; // in this subtree
        bool any_full;  // in this subtree, full_enough pages
    };
    struct range { // of pages; empty if its ends are equal
        std::size_t first;
        std::size_t end;
        std::size_t pages() const noexcept { return end - first; }
        // What of it lies in [from, to).
        range within(std::size_t from, std::size_t to) const noexcept;
        void span(const range& other) noexcept;
    };
    struct extent {
        std::size_t page;
        std::size_t pages;
        range dirty; // as in node
        range full;
        std::size_t end() const noexcept { return page + pages; }
        extent part(std::size_t from, std::size_t to) const noexcept {
            return {from, to - from, dirty.within(from, to), full.within(from, to)};
        }
    };

    std::size_t page_of(const void* object) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(object) - base_) / os::page_size;
    }
    std::uint32_t longest(index at) const noexcept { return at == 0 ? 0 : nodes_[at - 1].longest; }
    void update(index at) noexcept;
    void split(index tree, index key, index* below, index* above) noexcept;
    index merge(index below, index above) noexcept;
    void insert_free(const extent& free) noexcept;
    extent remove_free(std::size_t page) noexcept;
    void insert_merged(extent free) noexcept;
    index first_fit(std::uint32_t pages) const noexcept;
    template <class Has>
    index first_with(bool node::* any, index tree, std::size_t from, const Has& has) const noexcept;
    void claim(const extent& from, std::size_t first, std::size_t end) noexcept;
    bool claim_piece(std::size_t from) noexcept;
    bool claim_full_piece(std::size_t from) noexcept;
    void decommit_tables(pacer& ask) noexcept;
    void end_claim() noexcept;
    bool grow(std::size_t pages, std::unique_lock<std::mutex>& hold) noexcept;
    bool take_behind(std::size_t end, std::size_t pages,
                     std::unique_lock<std::mutex>& hold) noexcept;
    bool commit_pages(std::size_t first, std::size_t chunk) noexcept;
    void advance_frontier(std::size_t end) noexcept;
    void free_extent(std::size_t page, std::uint64_t tag) noexcept;
    void set_tags(std::size_t page, std::size_t pages, std::uint64_t tag) noexcept;

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    poisoning poison_ = poisoning::none;
    mutable std::mutex lock_;
    reserved_array<os::native_platform::atomic<std::uint64_t>> tags_;
    reserved_array<node> nodes_;
    index root_ = 0;
    std::size_t frontier_ = 0; // pages [0, frontier_) are committed and in extents
    std::size_t used_pages_ = 0;
    std::size_t dirty_pages_ = 0;
    extent claimed_{}; // no pages: nothing is claimed
    std::uint64_t live_bytes_ = 0;
    std::uint64_t live_objects_ = 0;
    os::native_platform::atomic<std::uint64_t> new_bytes_;
};

} // namespace obase::heap
