// SPDX-License-Identifier: MIT
//
// near_heap: its functions. For the files that instantiate it: near.cpp, and tests for their platforms.
#pragma once

#include <bit>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "heap/near.hpp"

namespace obase::heap {

namespace near_detail {

// fn(number) for the bits of a mask, the lowest first.
template <class F>
void for_each_bit(std::uint64_t bits, F&& fn) {
    for (; bits != 0; bits &= bits - 1) fn(static_cast<unsigned>(std::countr_zero(bits)));
}

// The stretches of set bits of a map, the lowest first: fn(first, one past the last).
template <std::size_t Words, class F>
void for_each_stretch(const std::uint64_t (&map)[Words], F&& fn) {
    const auto at = [&map](std::size_t i) { return (map[i / 64] >> (i % 64) & 1) != 0; };
    for (std::size_t i = 0; i < Words * 64;) {
        if (!at(i)) {
            ++i;
            continue;
        }
        std::size_t end = i + 1;
        while (end < Words * 64 && at(end)) ++end;
        fn(i, end);
        i = end;
    }
}

} // namespace near_detail

template <class P>
bool near_heap<P>::create(char* base, std::size_t bytes, poisoning poison_freed) noexcept {
    base_ = base;
    bytes_ = bytes & ~(near_unit_bytes - 1);
    poison_ = poison_freed;
    const std::size_t pages = std::max<std::size_t>(bytes_ / os::page_size, 1);
    // Of two chunks each, on average: beyond, there is no room. And domains that threads have begun.
    const std::size_t domains =
        pages * (near_chunks / 2) / domain_groups + 2 * thread_number<P>::at_once;
    return pages_.reserve(pages) && domains_.reserve(domains) &&
           groups_.reserve(domains * domain_groups) &&
           units_.reserve(std::max<std::size_t>(bytes_ / near_unit_bytes, 1));
}

template <class P>
void near_heap<P>::destroy() noexcept {
    if (hides(poison_)) asan::show(base_, units_used_.load_relaxed() * near_unit_bytes);
    pages_.release();
    groups_.release();
    domains_.release();
    units_.release();
}

// Calls attempt(more) until it wants no unit, and makes one in between, when nothing is held.
template <class P>
template <class Attempt>
void* near_heap<P>::with_units(Attempt&& attempt) noexcept {
    for (units more = units::may_be_asked_for;;) {
        void* const object = attempt(more);
        if (more != units::wanted) return object;
        more = more_units() ? units::may_be_asked_for : units::cannot_be_had;
    }
}

// Groups.

// One that the thread has at hand. In its section.
template <class P>
std::uint32_t near_heap<P>::unused_number(thread& mine) noexcept {
    if (mine.unused_group != 0) {
        const std::uint32_t number = mine.unused_group - 1;
        mine.unused_group = groups_[number].next;
        return number;
    }
    return mine.fresh_group != 0 ? take_fresh(mine) : no_group;
}

// One of a shared domain. Unless `any` will do, only if so many are unused that the table would grow for nothing.
template <class P>
std::uint32_t near_heap<P>::shared_number(bool any) noexcept {
    const std::lock_guard hold(pool_);
    if (unused_group_ != 0 && (any || unused_groups_ > domains_used_ * domain_groups / 2)) {
        const std::uint32_t number = unused_group_ - 1;
        unused_group_ = groups_[number].next;
        --unused_groups_;
        return number;
    }
    return fresh_group_ != fresh_end_ ? fresh_group_++ : no_group;
}

// For the calling thread if it can own one, else for all. False: no memory.
template <class P>
bool near_heap<P>::new_domain() noexcept {
    for (;;) {
        std::uint32_t wanted = 0;
        if (owners_.enter()) {
            const bool taken = take_domain(&own(), &wanted);
            owners_.leave();
            if (taken) return true;
        } else if (take_domain(nullptr, &wanted)) {
            return true;
        }
        // In this order: a name of a group that there is not is looked up if there is an entry.
        if (!domains_.commit_to(std::size_t{wanted} + 1) ||
            !groups_.commit_to((std::size_t{wanted} + 1) * domain_groups))
            return false;
    }
}

// False: the tables must be committed for *wanted first.
template <class P>
bool near_heap<P>::take_domain(thread* mine, std::uint32_t* wanted) noexcept {
    const std::lock_guard hold(pool_);
    const std::uint32_t domain = *wanted = domains_used_;
    const std::uint32_t first = domain * domain_groups;
    if (!domains_.committed(domain) || !groups_.committed(first + domain_groups - 1)) return false;
    const std::uint32_t owner = mine != nullptr ? owners_.owner_for_caller() : 0;
    if (owner == 0 && fresh_group_ != fresh_end_) return true; // another thread made one
    ++domains_used_;
    domains_[domain].store_relaxed(owner);
    if (owner != 0) {
        mine->fresh_group = first + 1;
    } else {
        fresh_group_ = first;
        fresh_end_ = first + domain_groups;
    }
    return true;
}

// In a section over the number, which is no group's.
template <class P>
void near_heap<P>::make_group(section& in) noexcept {
    group& made = in.its();
    made.used.store_relaxed(true);
    made.newest = made.with_holes = made.objects = made.chunks = 0;
    made.cursor = made.limit = 0;
    add(*in.counts().groups, 1);
}

template <class P>
void near_heap<P>::end_if_empty(section& in) noexcept {
    group& mine = in.its();
    if (mine.objects != 0) return;
    leave_newest(in);
    mine.count.store_release(mine.count.load_relaxed() + 1);
    mine.used.store_relaxed(false);
    add(*in.counts().groups, ~std::uint64_t{0});
    if (thread* const owner = in.mine(); owner != nullptr) {
        mine.next = owner->unused_group;
        owner->unused_group = in.number() + 1;
        return;
    }
    const std::lock_guard hold(pool_);
    mine.next = unused_group_;
    unused_group_ = in.number() + 1;
    ++unused_groups_;
}

template <class P>
void* near_heap<P>::first_object(section& in, const wish& what, group_name* name,
                                 units& more) noexcept {
    make_group(in);
    void* const object = allocate_in(in, 0, what, more);
    if (object == nullptr)
        end_if_empty(in);
    else if (name != nullptr)
        *name = name_of(in.its(), in.number());
    return object;
}

template <class P>
void* near_heap<P>::begin_group(std::size_t size, unsigned set, group_name* name) noexcept {
    const wish what = wish_of(size, set);
    return with_units([&](units& more) { return begin(what, name, more); });
}

template <class P>
void* near_heap<P>::begin(const wish& what, group_name* name, units& more) noexcept {
    section in = begin_section();
    return in.number() == no_group ? nullptr : first_object(in, what, name, more);
}

// Over a number that is no group's. None: no memory.
template <class P>
auto near_heap<P>::begin_section() noexcept -> section {
    if (owners_.enter()) {
        thread& mine = own();
        const std::uint32_t number = unused_number(mine);
        if (number != no_group && owners_.owns(domains_[number / domain_groups])) [[likely]]
            return section(*this, number, mine);
        owners_.leave();
        if (number != no_group) return section(*this, number); // of a domain that is shared now
    }
    const std::uint32_t number = number_elsewhere();
    return number == no_group ? section(*this) : section(*this, number);
}

// For the calling thread alone; no_group: no memory.
template <class P>
std::uint32_t near_heap<P>::number_elsewhere() noexcept {
    for (bool any = false;; any = true) {
        if (const std::uint32_t number = shared_number(any); number != no_group) return number;
        if (!new_domain() && any) return no_group;
        if (owners_.enter()) {
            const std::uint32_t number = unused_number(own());
            owners_.leave();
            if (number != no_group) return number;
        }
    }
}

template <class P>
void* near_heap<P>::join(const void* neighbour, std::size_t size, unsigned set) noexcept {
    if (!begins_at(neighbour)) return nullptr;
    const std::uint32_t owner = page_of(neighbour).owner[chunk_of(neighbour)].load_relaxed();
    if (owner == 0) return nullptr;
    const wish what = wish_of(size, set);
    return with_units([&](units& more) -> void* {
        section in(*this, owner - 1);
        // Freed meanwhile, or freed before and not yet seen.
        if (page_of(neighbour).owner[chunk_of(neighbour)].load_relaxed() != owner ||
            !begins_at(neighbour)) {
            more = units::cannot_be_had;
            return nullptr;
        }
        return allocate_in(in, number_of(neighbour) + 1, what, more);
    });
}

template <class P>
void* near_heap<P>::join(typename P::template atomic<group_name>& name, std::size_t size,
                         unsigned set) noexcept {
    const wish what = wish_of(size, set);
    return with_units([&](units& more) { return join_named(name, what, more); });
}

template <class P>
void* near_heap<P>::join_named(typename P::template atomic<group_name>& name, const wish& what,
                               units& more) noexcept {
    group_name seen = name.load_acquire(); // pairs with the exchange below
    for (;;) {
        if (const auto made = static_cast<std::uint32_t>(seen); made != 0) {
            if (!groups_.committed(made - 1)) return nullptr; // no name of this heap
            section in(*this, made - 1);
            const group& named = in.its();
            if (named.used.load_relaxed() && named.count.load_relaxed() == seen >> 32) {
                void* const object = allocate_in(in, 0, what, more);
                if (object == nullptr) end_if_empty(in);
                return object;
            }
        }
        section in = begin_section();
        if (in.number() == no_group) return nullptr;
        make_group(in);
        const group_name mine = name_of(in.its(), in.number());
        if (name.cas_acq_rel(seen, mine)) {
            void* const object = allocate_in(in, 0, what, more);
            if (object == nullptr) end_if_empty(in);
            return object;
        }
        end_if_empty(in);
    }
}

// Places. All of them in a section over the group.

template <class P>
void* near_heap<P>::allocate_in(section& in, std::uint32_t neighbour, wish what,
                                units& more) noexcept {
    group& mine = in.its();
    // That objects lie together is a promise, what is expected of them a guess.
    if (mine.objects == 0)
        mine.kind = static_cast<std::uint8_t>(what.kind());
    else
        what.set = what.set % attribute_sets + mine.kind * attribute_sets;
    char* const object = place(in, neighbour, what, more);
    if (object == nullptr) return nullptr;
    ++mine.objects;
    const live_counters counts = in.counts();
    add(*counts.bytes, what.granules * granule);
    add(*counts.objects, 1);
    if (const std::uint32_t at = number_of(object); in.mine() != nullptr && mine.newest == at + 1)
        note_last(*in.mine(), mine, name_of(mine, in.number()), pages_[at], memory_of(at, 0),
                  object, mine.set % attribute_sets);
    return object;
}

// The group's newest page is another from here on, or none.
template <class P>
void near_heap<P>::forget_last(section& in) noexcept {
    if (thread* const owner = in.mine(); owner != nullptr && owner->last_owner() == in.number() + 1)
        owner->last_set = thread::no_set;
}

template <class P>
char* near_heap<P>::place(section& in, std::uint32_t neighbour, const wish& what,
                          units& more) noexcept {
    const group& mine = in.its();
    char* object = nullptr;
    if (neighbour != 0 && neighbour != mine.newest) object = fill(in, neighbour - 1, what);
    if (object == nullptr && mine.newest != 0) {
        object = at_cursor(in, what);
        if (object == nullptr) object = fill(in, mine.newest - 1, what);
    }
    if (object == nullptr && mine.with_holes != 0) object = fill_listed(in, neighbour, what);
    return object != nullptr ? object : grow(in, what, more);
}

template <class P>
char* near_heap<P>::at_cursor(section& in, const wish& what) noexcept {
    group& mine = in.its();
    if (mine.set != what.set) return nullptr;
    const unsigned first = what.aligned(mine.cursor);
    const unsigned end = first + what.granules;
    if (end > mine.limit && !extend(in, end, what)) return nullptr;
    const std::uint32_t at = mine.newest - 1;
    if (first != mine.cursor) forget_search(in.number(), pages_[at]);
    mine.cursor = static_cast<std::uint16_t>(end);
    mark(pages_[at], first, first + what.granules - 1);
    return memory_of(at, first);
}

template <class P>
char* near_heap<P>::join_newest_page(row& me, const void* neighbour, std::size_t size) noexcept {
    thread& mine = me.own;
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(neighbour) -
                                  reinterpret_cast<std::uintptr_t>(mine.last_memory);
    if (offset >= os::page_size || offset % granule != 0) return nullptr;
    const page& in = *mine.last_table;
    const std::size_t at = offset / granule, chunk = at / near_chunk_granules;
    const auto inside = owners::look_in(me);
    if (owners::is_wanted(inside)) return give_way(me);
    if (in.owner[chunk].load_relaxed() != mine.last_owner() ||
        (in.begins[chunk].load_relaxed() >> (at % near_chunk_granules) & 1) == 0) {
        owners::leave(inside);
        return nullptr;
    }
    check_at_hand(me, mine.last_owner());
    mine.last_neighbour = neighbour;
    return extend_and_join(me, size);
}

// In a section over what the thread used last, which is left.
template <class P>
char* near_heap<P>::extend_and_join(row& me, std::size_t size) noexcept {
    thread& mine = me.own;
    group& its = *mine.last_entry;
    const unsigned first = its.cursor;
    const unsigned end = first + static_cast<unsigned>(size / granule);
    char* object = nullptr;
    if (end <= its.limit || extend_reserved(mine, its, *mine.last_table, mine.last_owner(), end))
        object = at_cursor(mine, its, first, end);
    owners::leave(me);
    return object;
}

template <class P>
char* near_heap<P>::give_way(row& me) noexcept {
    thread& mine = me.own;
    const std::uint32_t number = std::max(mine.last_owner(), 1U) - 1; // 0 if there has been none
    if (!owners_.owns_after_all(me, domains_[number / domain_groups]))
        mine.last_set = thread::no_set;
    owners::leave(me);
    return nullptr;
}

// The first object of a group, which the word names then, in chunks that the thread has reserved, or can. nullptr: that
// takes more, and nothing was done.
template <class P>
char* near_heap<P>::begin_at_hand(row& me, typename P::template atomic<group_name>& name,
                                  std::size_t size, unsigned attributes_set,
                                  unsigned kind) noexcept {
    if (kind >= expectations) return nullptr;
    const auto granules = static_cast<unsigned>(size / granule);
    const unsigned chunks = (granules + near_chunk_granules - 1) / near_chunk_granules;
    const auto inside = owners::look_in(me);
    if (owners::is_wanted(inside)) return give_way(me);
    thread& mine = me.own;
    const bool again = mine.unused_group != 0;
    const std::uint32_t number = (again ? mine.unused_group : mine.fresh_group) - 1;
    if (number == no_group || // 0 - 1
        ((mine.page == 0 || mine.spreads || mine.kind != kind ||
          mine.next + chunks > unsigned{mine.end}) &&
         !reserve(mine, chunks, kind))) {
        owners::leave(inside);
        return nullptr;
    }
    const unsigned next = mine.next;
    group& made = groups_[number];
    group_name none = 0;
    const group_name made_name = name_of(made, number);
    // Who finds the name waits until the thread has left its section. The number may be one of a domain that is shared.
    if (!owners_.owns(domains_[number / domain_groups], owners_.number_of(me)) ||
        !name.cas_acq_rel(none, made_name)) {
        owners::leave(inside);
        return nullptr;
    }
    check_at_hand(me, number + 1);
    if (again)
        mine.unused_group = made.next;
    else
        take_fresh(mine);
    const unsigned first = next * near_chunk_granules, last = first + granules - 1;
    const unsigned set = kind * attribute_sets + attributes_set;
    made.used.store_relaxed(true);
    made.kind = static_cast<std::uint8_t>(kind);
    made.set = static_cast<std::uint8_t>(set);
    made.cursor = static_cast<std::uint16_t>(last + 1);
    made.limit = static_cast<std::uint16_t>(first + chunks * near_chunk_granules);
    made.newest = mine.page;
    made.with_holes = 0;
    made.objects = 1;
    made.chunks = 0;
    page& in = pages_[mine.page - 1];
    char* const memory = memory_of(mine.page - 1, 0);
    take_reserved(mine, made, in, number + 1, chunks, set);
    // As mark() does; chunks that were not claimed have no bits.
    in.ends[last / near_chunk_granules].store_relaxed(
        static_cast<std::uint16_t>(1U << (last % near_chunk_granules)));
    in.begins[next].store_release(1);
    add(mine.groups, 1);
    add(mine.uncounted, one_uncounted + granules);
    note_last(mine, made, made_name, in, memory, memory + first * granule, attributes_set);
    owners::leave(inside);
    return memory + first * granule;
}

// Claims what is behind the limit up to `end`.
template <class P>
bool near_heap<P>::extend(section& in, unsigned end, const wish& what) noexcept {
    group& mine = in.its();
    if (end > near_granules) return false;
    const unsigned first = mine.limit / near_chunk_granules;
    const unsigned last = (end + near_chunk_granules - 1) / near_chunk_granules;
    if (in.mine() != nullptr &&
        extend_reserved(*in.mine(), mine, pages_[mine.newest - 1], in.number() + 1, end))
        return true;
    if (!extend_from_pool(in, first, last, what)) return false;
    mine.limit = static_cast<std::uint16_t>(last * near_chunk_granules);
    return true;
}

// And reserves as much again as the group has, if nothing is reserved: it may be alone in growing.
template <class P>
bool near_heap<P>::extend_from_pool(section& in, unsigned first, unsigned last,
                                    const wish& what) noexcept {
    group& mine = in.its();
    const std::uint32_t at = mine.newest - 1;
    const std::uint32_t wanted = mask_of(first, last - first);
    thread* const owner = in.mine();
    const std::lock_guard hold(pool_);
    if (owner != nullptr && owner->page == at + 1) unreserve(*owner);
    if (owner != nullptr && owner->freed_page == at + 1) give_back_freed(*owner);
    const std::uint32_t free = pages_[at].free.load_relaxed();
    if ((free & wanted) != wanted) return false;
    P::check(free != ~0U, "a group's newest page is in the map of free pages");
    unsigned end = last;
    if (owner != nullptr && owner->page == 0)
        while (end < near_chunks && end - last < std::min(mine.chunks, reserved_at_most) &&
               (free >> end & 1) != 0)
            ++end;
    claim_and_reserve(in, at, first, last, end, true, what.set);
    return true;
}

// In a hole of the group's chunks in the page, or in chunks of it that are free.
template <class P>
char* near_heap<P>::fill(section& into, std::uint32_t at, const wish& what) noexcept {
    const std::uint32_t number = into.number();
    const group& mine = into.its();
    page& in = pages_[at];
    if (thread* const owner = into.mine(); owner != nullptr && owner->freed_page == at + 1) {
        const std::lock_guard hold(pool_); // what it has freed can be had again
        give_back_freed(*owner);
    }
    const std::uint64_t search = searched_for(number, what);
    const std::uint64_t in_vain = in.searched.load_relaxed();
    if (in_vain >> 16 == search >> 16 && in_vain <= search) return nullptr;
    const std::uint32_t free = in.free.load_relaxed();
    const bool may_claim = in.kind.load_relaxed() == what.kind();
    unsigned begin = 0, length = 0; // of the granules in a row that can be had
    bool inside = false;
    for (unsigned chunk = 0; chunk < near_chunks; ++chunk) {
        std::uint32_t used = 0xFFFF;
        if (in.owner[chunk].load_relaxed() == number + 1) {
            used = used_in(in.begins[chunk].load_relaxed(), in.ends[chunk].load_relaxed(), inside);
            if (in.set[chunk].load_relaxed() != what.set) used = 0xFFFF;
            if (at + 1 == mine.newest) { // what is from the cursor to the limit is not in holes
                const unsigned here = chunk * near_chunk_granules;
                const unsigned from = std::clamp<unsigned>(mine.cursor, here, here + 16) - here;
                const unsigned to = std::clamp<unsigned>(mine.limit, here, here + 16) - here;
                if (from < to) used |= mask_of(from, to - from);
            }
        } else if (may_claim && (free >> chunk & 1) != 0) {
            used = 0;
        }
        for (unsigned left = near_chunk_granules, i = chunk * near_chunk_granules; left != 0;) {
            const bool taken = (used & 1) != 0;
            const unsigned same =
                std::min<unsigned>(left, static_cast<unsigned>(taken ? std::countr_one(used)
                                                                     : std::countr_zero(used)));
            if (taken) {
                length = 0;
            } else {
                if (length == 0) begin = i;
                length = i + same - begin;
                const unsigned first = what.aligned(begin);
                if (first + what.granules <= begin + length)
                    return fill_found(into, at, first, what);
            }
            used >>= same;
            left -= same;
            i += same;
        }
    }
    if (what.alignment != 1) return nullptr;
    in.searched.exchange_seq_cst(search);
    // Chunks that became free meanwhile; pairs with put_to_free(), which forgets the search after that.
    if ((in.free.load_seq_cst() & ~free) != 0) in.searched.store_relaxed(0);
    return nullptr;
}

template <class P>
char* near_heap<P>::fill_found(section& into, std::uint32_t at, unsigned first,
                               const wish& what) noexcept {
    const page& in = pages_[at];
    std::uint32_t wanted = 0;
    for (unsigned chunk = first / near_chunk_granules;
         chunk <= (first + what.granules - 1) / near_chunk_granules; ++chunk)
        if (in.owner[chunk].load_relaxed() != into.number() + 1) wanted |= 1U << chunk;
    if (wanted != 0) {
        const std::lock_guard hold(pool_);
        const std::uint32_t free = in.free.load_relaxed();
        // Another group was faster, or the whole page is free and belongs to no group.
        if ((free & wanted) != wanted || free == ~0U || in.kind.load_relaxed() != what.kind())
            return nullptr;
        claim(into, at, wanted, what.set);
    }
    mark(pages_[at], first, first + what.granules - 1);
    return memory_of(at, first);
}

// In one of the pages with holes. Where the object finds no place the page leaves the list, and comes back
// when another object is freed in it.
template <class P>
char* near_heap<P>::fill_listed(section& into, std::uint32_t neighbour, const wish& what) noexcept {
    group& mine = into.its();
    for (unsigned tried = 0; mine.with_holes != 0 && tried < pages_with_holes_tried; ++tried) {
        const std::uint32_t at = mine.with_holes;
        page& in = pages_[at - 1];
        if (in.holes_of.load_relaxed() != into.number() + 1) { // it was free in between
            mine.with_holes = 0;
            break;
        }
        if (at != mine.newest && at != neighbour)
            if (char* const object = fill(into, at - 1, what); object != nullptr) return object;
        mine.with_holes = in.next_with_holes.load_relaxed();
        in.holes_of.store_relaxed(0);
    }
    return nullptr;
}

// A page is in one list at most; in a shared one the holes of other groups are found by their neighbours.
template <class P>
void near_heap<P>::list_holes(section& into, std::uint32_t at) noexcept {
    group& mine = into.its();
    page& in = pages_[at];
    std::uint32_t of = in.holes_of.load_relaxed();
    if (of == into.number() + 1) return;
    if (of != 0 && groups_[of - 1].used.load_relaxed()) return;
    if (!in.holes_of.cas_relaxed(of, into.number() + 1)) return;
    in.next_with_holes.store_relaxed(mine.with_holes);
    mine.with_holes = at + 1;
}

// In a new place, which becomes the newest page.
template <class P>
char* near_heap<P>::grow(section& in, const wish& what, units& more) noexcept {
    group& mine = in.its();
    const std::uint32_t before = mine.newest;
    leave_newest(in);
    unsigned chunks = std::clamp(mine.chunks, what.chunks(), near_chunks);
    if (chunks >= own_page_from) chunks = near_chunks;
    unsigned first = 0;
    std::uint32_t at = 0;
    thread* const owner = in.mine();
    if (owner != nullptr && owner->page != 0 && !owner->spreads && what.kind() == owner->kind &&
        what.chunk_alignment() == 1 && chunks <= unsigned{owner->end} - owner->next) {
        at = owner->page;
        first = owner->next;
        take_reserved(*owner, mine, pages_[at - 1], in.number() + 1, chunks, what.set);
    } else {
        const std::lock_guard hold(pool_);
        at = place_in_pool(in, before, what, more, &first, &chunks);
        if (at == 0) return nullptr;
    }
    mine.newest = at;
    mine.set = static_cast<std::uint8_t>(what.set);
    const unsigned begin = first * near_chunk_granules;
    mine.limit = static_cast<std::uint16_t>(begin + chunks * near_chunk_granules);
    mine.cursor = static_cast<std::uint16_t>(begin + what.granules);
    mark(pages_[at - 1], begin, begin + what.granules - 1);
    return memory_of(at - 1, begin);
}

// Chunks that were claimed for later go back; what is left of one is a hole.
template <class P>
void near_heap<P>::leave_newest(section& from) noexcept {
    group& mine = from.its();
    if (mine.newest == 0) return;
    const std::uint32_t at = mine.newest - 1;
    const unsigned whole = (mine.cursor + near_chunk_granules - 1U) / near_chunk_granules;
    const unsigned end = mine.limit / near_chunk_granules;
    std::uint32_t unused = whole < end ? mask_of(whole, end - whole) : 0;
    const unsigned part = mine.cursor / near_chunk_granules;
    page& in = pages_[at];
    if (part < whole &&
        part < end) { // the cursor's own chunk, whose objects may all have been freed
        bool inside = false;
        std::uint32_t used = 0;
        for (unsigned chunk = mine.objects == 0 ? part + 1 : 0; chunk <= part; ++chunk) {
            if (in.owner[chunk].load_relaxed() != from.number() + 1) continue;
            used = used_in(in.begins[chunk].load_relaxed(), in.ends[chunk].load_relaxed(), inside);
        }
        if (used == 0) unused |= 1U << part;
    }
    if (mine.limit != mine.cursor) {
        forget_search(from.number(), in);
        if (mine.objects != 0) list_holes(from, at);
    }
    mine.newest = 0;
    mine.cursor = mine.limit = 0;
    forget_last(from);
    if (unused != 0) give_up(from, at, unused);
}

template <class P>
free_result near_heap<P>::free(void* object) noexcept {
    if (!begins_at(object)) return free_result::no_object;
    page& in = page_of(object);
    const auto at = static_cast<unsigned>(granule_of(object));
    const unsigned chunk = at / near_chunk_granules;
    const std::uint32_t owner = in.owner[chunk].load_relaxed();
    if (owner == 0) return free_result::freed_before;
    section of(*this, owner - 1);
    if (in.owner[chunk].load_relaxed() != owner || !begins_at(object))
        return free_result::freed_before;
    const auto last = static_cast<unsigned>(end_of(in, at));
    const unsigned last_chunk = last / near_chunk_granules;
    if (poison_ != poisoning::none) poison(object, (last - at + 1) * granule, poison_);
    auto& begins = in.begins[chunk];
    begins.store_relaxed(
        static_cast<std::uint16_t>(begins.load_relaxed() & ~(1U << (at % near_chunk_granules))));
    auto& ends = in.ends[last_chunk];
    ends.store_relaxed(
        static_cast<std::uint16_t>(ends.load_relaxed() & ~(1U << (last % near_chunk_granules))));
    if (thread* const its = of.mine(); its != nullptr) { // which joins near these without a look
        if (its->last_neighbour == object) its->last_neighbour = its->last_object;
        if (its->last_object == object) forget_last(of);
    }
    const live_counters counts = of.counts();
    add(*counts.bytes, -std::uint64_t{(last - at + 1) * granule});
    add(*counts.objects, ~std::uint64_t{0});

    group& mine = of.its();
    --mine.objects;
    const std::uint32_t here = number_of(object);
    // The middle of the object was its own. At its two ends a chunk without bits is empty: another object
    // that reached over all of it would have overlapped this one.
    std::uint32_t empty = last_chunk > chunk + 1 ? mask_of(chunk + 1, last_chunk - chunk - 1) : 0;
    for (const unsigned end : {chunk, last_chunk}) {
        if (in.begins[end].load_relaxed() != 0 || in.ends[end].load_relaxed() != 0) continue;
        empty |= 1U << end;
    }
    if (here + 1 == mine.newest) // from the cursor's on they are kept
        empty &= ~mask_of(mine.cursor / near_chunk_granules,
                          mine.limit / near_chunk_granules - mine.cursor / near_chunk_granules);
    const bool page_left = empty != 0 && give_up(of, here, empty);
    // A page in which the group has nothing left can become anybody's at any time.
    if (empty != 0 && here + 1 == mine.newest && mine.cursor == mine.limit &&
        in.owner[(mine.limit - 1U) / near_chunk_granules].load_relaxed() != owner &&
        !has_chunks_in(of.number(), in)) {
        mine.newest = mine.cursor = mine.limit = 0;
        forget_last(of);
    }
    if (!page_left && mine.objects != 0) {
        forget_search(of.number(), in);
        list_holes(of, here);
    }
    end_if_empty(of);
    return free_result::done;
}

// What a thread has reserved. In its section, and with pool_ held.

template <class P>
void near_heap<P>::unreserve(thread& mine) noexcept {
    const std::uint32_t chunks = reserved_by(mine);
    if (chunks == 0) return;
    const std::uint32_t at = std::exchange(mine.page, 0) - 1;
    put_to_free(at, chunks);
}

template <class P>
void near_heap<P>::tell(thread& mine) noexcept {
    claimed_ += static_cast<std::int32_t>(mine.claimed.load_relaxed());
    mine.claimed.store_relaxed(0);
    give_back_freed(mine);
}

template <class P>
void near_heap<P>::give_back_freed(thread& mine) noexcept {
    if (mine.freed_page == 0) return;
    const std::uint32_t at = std::exchange(mine.freed_page, 0) - 1;
    put_to_free(at, std::exchange(mine.freed, 0));
}

// The pool. All of it with pool_ held.

// Number + 1 of a page in which `chunks` are free from `first` on; 0: there is none. `before`: the group's page so far.
template <class P>
std::uint32_t near_heap<P>::find_place(std::uint32_t before, const wish& what, bool spreads,
                                       unsigned* first, unsigned* chunks) noexcept {
    std::uint32_t at = 0;
    if (spreads) {
        at = second_half(*chunks, first);
    } else if (*chunks != near_chunks) {
        at = shared_place(*chunks, what, first);
        if (at == 0 && what.chunks() < *chunks) {
            at = shared_place(what.chunks(), what, first);
            if (at != 0) *chunks = what.chunks();
        }
    }
    if (at != 0) return at;
    at = fresh_page(before);
    *first = 0;
    if (at != 0) {
        pages_[at - 1].kind.store_relaxed(static_cast<std::uint8_t>(what.kind()));
        if (spreads) half_ = at;
    }
    return at;
}

// Up to where chunks can be reserved in a page, of which a place ends before chunk `from`.
template <class P>
unsigned near_heap<P>::end_to_reserve(const page& in, unsigned from, bool spreads) noexcept {
    const std::uint32_t free = in.free.load_relaxed();
    const unsigned most = spreads ? (from <= near_chunks / 2 ? near_chunks / 2 : near_chunks)
                                  : std::min(near_chunks, from + reserved_at_most);
    unsigned end = from;
    while (end < most && (free >> end & 1) != 0) ++end;
    return end;
}

// Number + 1 of a page in which `chunks` are the group's from `first` on; 0: there is none.
template <class P>
std::uint32_t near_heap<P>::place_in_pool(section& in, std::uint32_t before, const wish& what,
                                          units& more, unsigned* first, unsigned* chunks) noexcept {
    thread* const owner = in.mine();
    if (owner != nullptr) tell(*owner);
    const bool shares = *chunks != near_chunks;
    const bool spreads = shares && what.kind() == 0 && may_spread();
    const bool reserves = owner != nullptr && shares;
    if (reserves) unreserve(*owner);
    std::uint32_t at = find_place(before, what, spreads, first, chunks);
    if (at == 0 && more == units::may_be_asked_for) {
        more = units::wanted;
        return 0;
    }
    // The chunks of shared pages that are left.
    if (at == 0) at = shared_place(*chunks = what.chunks(), what, first);
    if (at == 0) return 0;
    const unsigned from = *first + *chunks;
    const unsigned end = reserves ? end_to_reserve(pages_[at - 1], from, spreads) : from;
    claim_and_reserve(in, at - 1, *first, from, end, spreads, what.set);
    return at;
}

// For a new group of the thread's. False: there is no place, or that takes more.
template <class P>
bool near_heap<P>::reserve(thread& mine, unsigned chunks, unsigned kind) noexcept {
    if (chunks >= own_page_from) return false;
    const wish what{chunks * near_chunk_granules, 1, kind * attribute_sets};
    const std::lock_guard hold(pool_);
    tell(mine);
    unreserve(mine);
    const bool spreads = kind == 0 && may_spread();
    unsigned first = 0;
    const std::uint32_t at = find_place(0, what, spreads, &first, &chunks);
    if (at == 0) return false;
    const unsigned end = end_to_reserve(pages_[at - 1], first + chunks, spreads);
    take_from_free(at - 1, mask_of(first, end - first));
    note_reserved(mine, at, first, end, spreads, kind);
    return true;
}

template <class P>
void near_heap<P>::own_chunks(section& in, std::uint32_t at, std::uint32_t chunks,
                              unsigned set) noexcept {
    page& its = pages_[at];
    near_detail::for_each_bit(chunks, [&](unsigned chunk) {
        its.set[chunk].store_relaxed(static_cast<std::uint8_t>(set));
        its.owner[chunk].store_relaxed(in.number() + 1);
    });
    in.its().chunks += count_of(chunks);
}

template <class P>
void near_heap<P>::claim(section& in, std::uint32_t at, std::uint32_t chunks,
                         unsigned set) noexcept {
    take_from_free(at, chunks);
    own_chunks(in, at, chunks, set);
    claimed_ += count_of(chunks);
}

// Chunks [first, last) for the group, and those up to `end`, if any, for its thread, which has none.
template <class P>
void near_heap<P>::claim_and_reserve(section& in, std::uint32_t at, unsigned first, unsigned last,
                                     unsigned end, bool spreads, unsigned set) noexcept {
    take_from_free(at, mask_of(first, end - first));
    own_chunks(in, at, mask_of(first, last - first), set);
    claimed_ += last - first;
    if (end == last) return;
    note_reserved(*in.mine(), at + 1, last, end, spreads, set / attribute_sets);
}

template <class P>
void near_heap<P>::release(section& in, std::uint32_t at, std::uint32_t chunks) noexcept {
    page& its = pages_[at];
    near_detail::for_each_bit(chunks, [&](unsigned chunk) { its.owner[chunk].store_relaxed(0); });
    in.its().chunks -= count_of(chunks);
    claimed_ -= count_of(chunks);
    put_to_free(at, chunks);
}

// Chunks of a group. Where its thread owns it they are given back when the thread frees chunks of another page, or has
// pool_ anyway, or when nothing else is left of the page: so a lock is taken for a page and not for each of its chunks.
// True: the page is free as a whole, and can become anybody's. Without pool_.
template <class P>
bool near_heap<P>::give_up(section& in, std::uint32_t at, std::uint32_t chunks) noexcept {
    page& its = pages_[at];
    thread* const owner = in.mine();
    if (owner == nullptr) {
        const std::lock_guard hold(pool_);
        release(in, at, chunks);
        return its.free.load_relaxed() == ~0U;
    }
    near_detail::for_each_bit(chunks, [&](unsigned chunk) { its.owner[chunk].store_relaxed(0); });
    const unsigned count = count_of(chunks);
    in.its().chunks -= count;
    owner->claimed.store_relaxed(owner->claimed.load_relaxed() - count);
    if (owner->freed_page != at + 1) {
        if (owner->freed_page != 0) {
            const std::lock_guard hold(pool_);
            give_back_freed(*owner);
        }
        owner->freed_page = at + 1;
    }
    owner->freed |= chunks;
    const std::uint32_t reserved = owner->page == at + 1 ? reserved_by(*owner) : 0;
    // Other threads may give chunks of the page back just now: then it is whole a little later.
    if ((its.free.load_relaxed() | owner->freed | reserved) != ~0U) return false;
    const std::lock_guard hold(pool_);
    give_back_freed(*owner);
    if (reserved != 0 && (its.free.load_relaxed() | reserved) == ~0U) unreserve(*owner);
    return its.free.load_relaxed() == ~0U;
}

template <class P>
void near_heap<P>::take_from_free(std::uint32_t at, std::uint32_t chunks) noexcept {
    set_free(at, pages_[at].free.load_relaxed() & ~chunks);
}

template <class P>
void near_heap<P>::put_to_free(std::uint32_t at, std::uint32_t chunks) noexcept {
    page& in = pages_[at];
    set_free(at, in.free.load_relaxed() | chunks);
    in.searched.store_release(0); // after the chunks; pairs with fill()
    if (in.free.load_relaxed() != ~0U) return;
    --pages_in_use_;
    if (half_ == at + 1) half_ = 0;
    put_page(at, true);
}

template <class P>
void near_heap<P>::set_free(std::uint32_t at, std::uint32_t now) noexcept {
    page& in = pages_[at];
    const auto shared = [](std::uint32_t free) { return free != ~0U ? free : 0; };
    const std::uint32_t before = shared(in.free.load_relaxed()), after = shared(now);
    slack_ += count_of(after);
    slack_ -= count_of(before);
    in.free.store_relaxed(now);
    const unsigned was = longest_run(before), is = longest_run(after);
    if (was == is) return;
    if (was != 0) unlist_page(at, was);
    if (is != 0) list_page(at, is);
}

template <class P>
void near_heap<P>::list_page(std::uint32_t at, unsigned longest) noexcept {
    page& in = pages_[at];
    std::uint32_t& ring = shared_[in.kind.load_relaxed()][longest];
    if (ring == 0) {
        in.next = in.previous = at + 1;
    } else {
        page& head = pages_[ring - 1];
        in.next = ring;
        in.previous = head.previous;
        pages_[head.previous - 1].next = at + 1;
        head.previous = at + 1;
    }
    ring = at + 1;
}

template <class P>
void near_heap<P>::unlist_page(std::uint32_t at, unsigned longest) noexcept {
    page& in = pages_[at];
    std::uint32_t& ring = shared_[in.kind.load_relaxed()][longest];
    if (in.next == at + 1) {
        ring = 0;
        return;
    }
    if (ring == at + 1) ring = in.next;
    pages_[in.previous - 1].next = in.next;
    pages_[in.next - 1].previous = in.previous;
}

// How many free chunks lie in a row at most. ends_of[i]: bits at which 2^i in a row end.
template <class P>
unsigned near_heap<P>::longest_run(std::uint32_t free) noexcept {
    if (free == 0) return 0;
    std::uint32_t ends_of[5] = {free};
    for (unsigned i = 1; i < 5; ++i)
        ends_of[i] = ends_of[i - 1] & ends_of[i - 1] << (1U << (i - 1));
    unsigned length = 0;
    std::uint32_t ends = ~0U; // at which `length` in a row end
    for (unsigned i = 5; i-- > 0;)
        if (const std::uint32_t longer = ends & ends_of[i] << length; longer != 0) {
            ends = longer;
            length += 1U << i;
        }
    return length;
}

// The first of `count` chunks in a row; near_chunks if there are none.
template <class P>
unsigned near_heap<P>::first_fit(std::uint32_t free, unsigned count, unsigned alignment) noexcept {
    for (unsigned first = 0; first + count <= near_chunks; first += alignment)
        if (const std::uint32_t wanted = mask_of(first, count); (free & wanted) == wanted)
            return first;
    return near_chunks;
}

template <class P>
bool near_heap<P>::may_spread() const noexcept {
    const auto claimed = static_cast<std::uint64_t>(std::max<std::int64_t>(claimed_, 0));
    return (slack_ + near_chunks) * near_chunk_bytes <=
           least_slack_bytes + claimed * near_chunk_bytes / slack_per_claimed;
}

// Of a page that was begun by another group while groups spread. Page number + 1; 0: there is none.
template <class P>
std::uint32_t near_heap<P>::second_half(unsigned chunks, unsigned* first) noexcept {
    const std::uint32_t half = std::exchange(half_, 0);
    const std::uint32_t wanted = mask_of(near_chunks / 2, chunks);
    if (half == 0 || (pages_[half - 1].free.load_relaxed() & wanted) != wanted) return 0;
    *first = near_chunks / 2;
    return half;
}

// In the page with the shortest run of free chunks that is long enough. Page number + 1; 0: none of those looked at
// has one that lies as aligned as it must.
template <class P>
std::uint32_t near_heap<P>::shared_place(unsigned chunks, const wish& what,
                                         unsigned* first) noexcept {
    unsigned tried = 0;
    for (unsigned count = chunks; count < near_chunks; ++count) {
        std::uint32_t at = shared_[what.kind()][count];
        for (const std::uint32_t head = at; at != 0;) {
            *first = first_fit(pages_[at - 1].free.load_relaxed(), chunks, what.chunk_alignment());
            if (*first != near_chunks) return at;
            if (++tried == pages_tried) return 0;
            at = pages_[at - 1].next;
            if (at == head) break;
        }
    }
    return 0;
}

// A page that is wholly free, as near to page `near` - 1 as can be found in its unit. Number + 1; 0: none.
template <class P>
std::uint32_t near_heap<P>::fresh_page(std::uint32_t near) noexcept {
    std::uint32_t unit = unit_ring_;
    unsigned from = 0;
    if (near != 0 && units_[(near - 1) / near_unit_pages].free_pages != 0) {
        unit = (near - 1) / near_unit_pages + 1;
        from = (near - 1) % near_unit_pages;
    }
    if (unit == 0) return 0;
    near_unit& in = units_[unit - 1];
    constexpr unsigned words = near_unit_pages / 64;
    unsigned word = from / 64;
    std::uint64_t bits = in.free[word] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) {
        word = (word + 1) % words;
        bits = in.free[word];
    }
    const auto bit = static_cast<unsigned>(std::countr_zero(bits));
    const std::uint64_t mask = std::uint64_t{1} << bit;
    in.free[word] &= ~mask;
    if ((in.dirty[word] & mask) != 0) {
        in.dirty[word] &= ~mask;
        --dirty_pages_;
    } else {
        new_bytes_.fetch_add_relaxed(os::page_size);
    }
    if (--in.free_pages == 0) unlist_unit(unit - 1);
    in.full = true;
    ++pages_in_use_;
    const std::uint32_t at = (unit - 1) * near_unit_pages + word * 64 + bit;
    pages_[at].holes_of.store_relaxed(0);
    return at + 1;
}

// A page of free chunks goes into its unit's map.
template <class P>
void near_heap<P>::put_page(std::uint32_t at, bool dirty) noexcept {
    const std::uint32_t unit = at / near_unit_pages;
    near_unit& in = units_[unit];
    const unsigned word = at % near_unit_pages / 64;
    const std::uint64_t mask = std::uint64_t{1} << (at % 64);
    in.free[word] |= mask;
    if (dirty) {
        in.dirty[word] |= mask;
        ++dirty_pages_;
    }
    if (in.free_pages++ == 0) list_unit(unit);
}

template <class P>
void near_heap<P>::list_unit(std::uint32_t unit) noexcept {
    near_unit& in = units_[unit];
    if (unit_ring_ == 0) {
        in.next = in.previous = unit + 1;
    } else {
        near_unit& head = units_[unit_ring_ - 1];
        in.next = unit_ring_;
        in.previous = head.previous;
        units_[head.previous - 1].next = unit + 1;
        head.previous = unit + 1;
    }
    if (unit_ring_ == 0 || unit + 1 < unit_ring_) unit_ring_ = unit + 1;
}

template <class P>
void near_heap<P>::unlist_unit(std::uint32_t unit) noexcept {
    near_unit& in = units_[unit];
    if (in.next == unit + 1) {
        unit_ring_ = 0;
        return;
    }
    if (unit_ring_ == unit + 1) unit_ring_ = in.next;
    units_[in.previous - 1].next = in.next;
    units_[in.next - 1].previous = in.previous;
}

// With nothing held. The memory is committed by each thread that needs some, and the first of them tells.
template <class P>
bool near_heap<P>::more_units() noexcept {
    const std::uint32_t unit = units_used_.load_acquire();
    const std::size_t begin = std::size_t{unit} * near_unit_bytes;
    if (begin + near_unit_bytes > bytes_) return false;
    if (!pages_.commit_to((std::size_t{unit} + 1) * near_unit_pages) ||
        !units_.commit_to(std::size_t{unit} + 1) || os::commit(base_ + begin, near_unit_bytes) != 0)
        return false;
    const std::lock_guard hold(pool_);
    if (units_used_.load_relaxed() != unit) return true; // another thread was first
    if (hides(poison_)) asan::hide(base_ + begin, near_unit_bytes);
    near_unit& made = units_[unit];
    for (std::uint64_t& word : made.free) word = ~std::uint64_t{0};
    made.free_pages = near_unit_pages;
    list_unit(unit);
    units_used_.store_release(unit + 1); // pairs with begins_at()
    return true;
}

// Memory that goes back.

template <class P>
std::size_t near_heap<P>::decommit_free_memory(pacer& ask) noexcept {
    std::size_t bytes = 0;
    for (std::uint32_t unit = units_used_.load_acquire(); unit-- > 0;) {
        bytes += decommit_of_unit(unit, ask);
        if (!ask.may_continue()) break;
    }
    return bytes;
}

// The pages are in no map meanwhile, so no thread can have them. All of a unit are taken where its tables go back.
template <class P>
std::size_t near_heap<P>::decommit_of_unit(std::uint32_t unit, pacer& ask) noexcept {
    near_unit& in = units_[unit];
    std::uint64_t dirty[near_unit_pages / 64];
    std::uint32_t count = 0;
    bool tables = false;
    {
        const std::lock_guard hold(pool_);
        tables = in.full && in.free_pages == near_unit_pages;
        std::uint32_t taken = 0;
        for (unsigned word = 0; word < near_unit_pages / 64; ++word) {
            dirty[word] = returned_dirty_[word] = in.free[word] & in.dirty[word];
            returned_pages_[word] = tables ? in.free[word] : dirty[word];
            count += static_cast<std::uint32_t>(std::popcount(dirty[word]));
            taken += static_cast<std::uint32_t>(std::popcount(returned_pages_[word]));
        }
        if (taken == 0) return 0;
        returning_ = unit + 1;
        for (unsigned word = 0; word < near_unit_pages / 64; ++word) {
            in.free[word] &= ~returned_pages_[word];
            in.dirty[word] &= ~dirty[word];
        }
        in.free_pages -= taken;
        if (in.free_pages == 0) unlist_unit(unit);
    }
    char* const begin = base_ + std::size_t{unit} * near_unit_bytes;
    ask.call_begins();
    near_detail::for_each_stretch(dirty, [&](std::size_t first, std::size_t end) {
        for (; first != end;) {
            const std::size_t part = std::min(end, first + piece_bytes / os::page_size);
            os::advise(begin + first * os::page_size, (part - first) * os::page_size,
                       os::advice::dontneed);
            first = part;
        }
    });
    if (tables)
        pages_.decommit(std::size_t{unit} * near_unit_pages,
                        (std::size_t{unit} + 1) * near_unit_pages);
    ask.call_ends();
    const std::lock_guard hold(pool_);
    if (tables) in.full = false;
    end_return(false);
    return std::size_t{count} * os::page_size;
}

// With pool_ held: the pages can be handed out again.
template <class P>
void near_heap<P>::end_return(bool dirty) noexcept {
    if (returning_ == 0) return;
    const std::uint32_t first = (returning_ - 1) * near_unit_pages;
    for (unsigned word = 0; word < near_unit_pages / 64; ++word) {
        const std::uint64_t were_dirty = std::exchange(returned_dirty_[word], 0);
        dirty_pages_ -= static_cast<std::uint64_t>(std::popcount(were_dirty));
        near_detail::for_each_bit(std::exchange(returned_pages_[word], 0), [&](unsigned bit) {
            put_page(first + word * 64 + bit, dirty && (were_dirty >> bit & 1) != 0);
        });
    }
    returning_ = 0;
}

template <class P>
near_counters near_heap<P>::counters() const noexcept {
    near_counters now;
    for (const stripe& one : stripes_) {
        now.live_bytes += one.live_bytes.load_relaxed();
        now.live_objects += one.live_objects.load_relaxed();
        now.groups += one.groups.load_relaxed();
    }
    // With pool_ held no chunk is given back and no thread tells, so what has been claimed is at least what has been
    // given back. Threads come after stripes: an object that a stripe takes off was added by a thread before.
    const std::lock_guard hold(pool_);
    std::int64_t claimed = 0;
    for (const row& its : owners_.all()) {
        const thread& one = its.own;
        // First: what is counted meanwhile is counted twice then, and not missed. Pairs with count_uncounted().
        const std::uint64_t uncounted = one.uncounted.load_acquire();
        now.live_bytes += uncounted % one_uncounted * granule;
        now.live_objects += uncounted / one_uncounted;
        now.live_bytes += one.live_bytes.load_relaxed();
        now.live_objects += one.live_objects.load_relaxed();
        now.groups += one.groups.load_relaxed();
        claimed += static_cast<std::int32_t>(one.claimed.load_relaxed());
    }
    now.extent_bytes = (pages_in_use_ + dirty_pages_) * os::page_size;
    now.claimed_bytes = static_cast<std::uint64_t>(claimed_ + claimed) * near_chunk_bytes;
    return now;
}

template <class P>
void near_heap<P>::walk_extents(void (*visit)(void*, char*, char*), void* context) const {
    const std::size_t end = std::size_t{units_used_.load_acquire()} * near_unit_pages;
    near_unit seen{};
    const auto in_use = [&](std::size_t at) {
        if (at % near_unit_pages == 0) {
            const std::lock_guard hold(pool_);
            seen = units_[at / near_unit_pages];
        }
        return (seen.free[at % near_unit_pages / 64] >> (at % 64) & 1) == 0;
    };
    for (std::size_t at = 0; at < end;) {
        if (!in_use(at)) {
            ++at;
            continue;
        }
        const std::size_t first = at;
        while (at < end && in_use(at)) ++at;
        visit(context, base_ + first * os::page_size, base_ + at * os::page_size);
    }
}

// Fork. All sections and locks, in their order; a group is whole while no thread is in a section over it.

template <class P>
void near_heap<P>::fork_prepare() noexcept {
    owners_.stop();
    for (stripe& one : stripes_) one.lock.lock();
    pool_.lock();
}

template <class P>
void near_heap<P>::fork_parent() noexcept {
    pool_.unlock();
    for (stripe& one : stripes_) one.lock.unlock();
    owners_.let_go();
}

// The collector of the parent may have been giving pages back, and does not exist here.
template <class P>
void near_heap<P>::fork_child() noexcept {
    end_return(true);
    pool_.unlock_in_child();
    for (stripe& one : stripes_) one.lock.unlock_in_child();
    owners_.only_caller_is_left();
    owners_.let_go();
}

template <class P>
const char* near_heap<P>::validate_page(std::uint32_t at, std::uint32_t reserved,
                                        std::uint64_t* objects,
                                        std::uint64_t* bytes) const noexcept {
    const page& in = pages_[at];
    std::uint32_t open =
        0; // owner of the chunk that the last object went on from; 0: it ended there
    std::size_t first = 0;
    for (unsigned chunk = 0; chunk < near_chunks; ++chunk) {
        const std::uint32_t owner = in.owner[chunk].load_relaxed();
        const unsigned begins = in.begins[chunk].load_relaxed();
        const unsigned ends = in.ends[chunk].load_relaxed();
        const bool free = (in.free.load_relaxed() >> chunk & 1) != 0;
        if ((owner == 0) != (free || (reserved >> chunk & 1) != 0) ||
            (free && (reserved >> chunk & 1) != 0))
            return "near: free chunks and owners";
        if (owner == 0 && (begins != 0 || ends != 0)) return "near: an object in a free chunk";
        if (owner != 0) {
            if (owner > domains_used_ * domain_groups || !groups_[owner - 1].used.load_relaxed())
                return "near: owner is no group";
            if (in.set[chunk].load_relaxed() / attribute_sets != in.kind.load_relaxed())
                return "near: expectations share a page";
        }
        if (open != 0 && open != owner) return "near: an object leaves the chunks of its group";
        bool touches = open != 0;
        for (unsigned i = 0; i < near_chunk_granules; ++i) {
            if ((begins >> i & 1) != 0) {
                if (open != 0) return "near: objects overlap";
                open = owner;
                first = chunk * near_chunk_granules + i;
                touches = true;
            }
            if ((ends >> i & 1) != 0) {
                if (open == 0) return "near: an end without a beginning";
                open = 0;
                ++*objects;
                *bytes += (chunk * near_chunk_granules + i - first + 1) * granule;
            }
        }
        if (owner != 0 && !touches) {
            const group& mine = groups_[owner - 1];
            const unsigned here = chunk * near_chunk_granules;
            if (mine.newest != at + 1 || here + near_chunk_granules <= mine.cursor ||
                here >= mine.limit)
                return "near: a claimed chunk is empty";
        }
    }
    return open == 0 ? nullptr : "near: an object leaves its page";
}

template <class P>
const char* near_heap<P>::validate() const noexcept {
    std::uint64_t objects = 0, bytes = 0, claimed = 0, slack = 0, in_use = 0, dirty = 0;
    std::uint64_t listed = 0, shared = 0;
    std::array<const thread*, thread_number<P>::at_once> reserving;
    unsigned reserving_threads = 0;
    for (const row& its : owners_.all())
        if (its.own.page != 0 || its.own.freed_page != 0) reserving[reserving_threads++] = &its.own;
    const auto reserved_in = [&](std::uint32_t at) {
        std::uint32_t chunks = 0;
        for (unsigned i = 0; i < reserving_threads; ++i)
            chunks |= (reserving[i]->page == at + 1 ? reserved_by(*reserving[i]) : 0) |
                      freed_by(*reserving[i], at);
        return chunks;
    };
    for (std::uint32_t unit = 0; unit < units_used_.load_relaxed(); ++unit) {
        const near_unit& in = units_[unit];
        std::uint32_t free_pages = 0;
        for (unsigned i = 0; i < near_unit_pages; ++i) {
            const std::uint32_t at = unit * near_unit_pages + i;
            const auto free = static_cast<unsigned>(std::popcount(pages_[at].free.load_relaxed()));
            const std::uint32_t reserved = reserved_in(at);
            const bool mapped = (in.free[i / 64] >> (i % 64) & 1) != 0;
            if (mapped != (free == near_chunks)) return "near: the map of a unit";
            free_pages += mapped;
            dirty += in.dirty[i / 64] >> (i % 64) & 1;
            if (!mapped) ++in_use;
            if (!mapped && (in.dirty[i / 64] >> (i % 64) & 1) != 0)
                return "near: a dirty page that is in use";
            claimed += near_chunks - free - static_cast<unsigned>(std::popcount(reserved));
            if (free != 0 && free != near_chunks) {
                slack += free;
                ++shared;
            }
            if (const char* const broken = validate_page(at, reserved, &objects, &bytes))
                return broken;
        }
        if (free_pages != in.free_pages) return "near: the free pages of a unit";
    }
    for (unsigned kind = 0; kind < expectations; ++kind)
        for (unsigned count = 1; count < near_chunks; ++count) {
            const std::uint32_t head = shared_[kind][count];
            for (std::uint32_t at = head; at != 0;) {
                const page& in = pages_[at - 1];
                ++listed;
                if (longest_run(in.free.load_relaxed()) != count || in.kind.load_relaxed() != kind)
                    return "near: a page in the wrong list";
                if (pages_[in.next - 1].previous != at) return "near: a broken list";
                at = in.next == head ? 0 : in.next;
            }
        }
    if (listed != shared) return "near: shared pages and lists";
    std::uint64_t counted = 0, live = 0, held = 0, groups = 0, live_groups = 0;
    for (const stripe& one : stripes_) {
        counted += one.live_objects.load_relaxed();
        live += one.live_bytes.load_relaxed();
        live_groups += one.groups.load_relaxed();
    }
    auto told = static_cast<std::uint64_t>(claimed_);
    for (const row& its : owners_.all()) {
        const thread& one = its.own;
        const std::uint64_t uncounted = one.uncounted.load_relaxed();
        counted += one.live_objects.load_relaxed() + uncounted / one_uncounted;
        live += one.live_bytes.load_relaxed() + uncounted % one_uncounted * granule;
        live_groups += one.groups.load_relaxed();
        told += static_cast<std::uint64_t>(static_cast<std::int32_t>(one.claimed.load_relaxed()));
    }
    for (std::uint32_t i = 0; i < domains_used_ * domain_groups; ++i) {
        if (!groups_[i].used.load_relaxed()) continue;
        ++groups;
        held += groups_[i].chunks;
        if (groups_[i].cursor > groups_[i].limit) return "near: a cursor beyond its limit";
        if (groups_[i].newest != 0 && !has_chunks_in(i, pages_[groups_[i].newest - 1]))
            return "near: a group has nothing in its newest page";
    }
    if (objects != counted || bytes != live) return "near: live objects";
    if (claimed != told || held != told) return "near: claimed chunks";
    if (slack != slack_) return "near: slack";
    if (in_use != pages_in_use_ || dirty != dirty_pages_) return "near: pages in use";
    if (groups != live_groups) return "near: groups";
    return nullptr;
}

} // namespace obase::heap
