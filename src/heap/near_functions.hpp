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
    // Of two chunks each, on average: beyond, there is no room.
    return pages_.reserve(pages) && groups_.reserve(pages * (near_chunks / 2) + stripes) &&
           units_.reserve(std::max<std::size_t>(bytes_ / near_unit_bytes, 1));
}

template <class P>
void near_heap<P>::destroy() noexcept {
    if (hides(poison_)) asan::show(base_, units_used_.load_relaxed() * near_unit_bytes);
    pages_.release();
    groups_.release();
    units_.release();
}

// Groups.

template <class P>
std::uint32_t near_heap<P>::new_group() noexcept {
    std::uint32_t number = 0;
    {
        const std::lock_guard hold(pool_);
        if (unused_group_ != 0) {
            number = unused_group_ - 1;
            unused_group_ = groups_[number].next;
        } else {
            if (!groups_.commit_to(std::size_t{groups_used_} + 1)) return 0;
            number = groups_used_++;
        }
    }
    // A thread with the name of a group that had the number before may be looking at it.
    stripe& its = stripe_of(number);
    const std::lock_guard hold(its.lock);
    its.groups.store_relaxed(its.groups.load_relaxed() + 1);
    group& made = groups_[number];
    made.used = true;
    made.newest = made.freed = made.objects = made.chunks = 0;
    made.cursor = made.limit = 0;
    return number + 1;
}

// With the group's lock held.
template <class P>
void near_heap<P>::end_if_empty(std::uint32_t number) noexcept {
    group& mine = groups_[number];
    if (mine.objects != 0) return;
    leave_newest(number);
    mine.count.store_release(mine.count.load_relaxed() + 1);
    mine.used = false;
    stripe& its = stripe_of(number);
    its.groups.store_relaxed(its.groups.load_relaxed() - 1);
    const std::lock_guard hold(pool_);
    mine.next = unused_group_;
    unused_group_ = number + 1;
}

template <class P>
void* near_heap<P>::begin_group(std::size_t size, unsigned set, group_name* name) noexcept {
    const std::uint32_t made = new_group();
    if (made == 0) return nullptr;
    const std::uint32_t number = made - 1;
    const std::lock_guard hold(stripe_of(number).lock);
    void* const object = allocate_in(number, 0, wish_of(size, set));
    if (object == nullptr)
        end_if_empty(number);
    else if (name != nullptr)
        *name = std::uint64_t{groups_[number].count.load_relaxed()} << 32 | made;
    return object;
}

template <class P>
void* near_heap<P>::join(const void* neighbour, std::size_t size, unsigned set) noexcept {
    if (!begins_at(neighbour)) return nullptr;
    const std::uint32_t owner = page_of(neighbour).owner[chunk_of(neighbour)].load_relaxed();
    if (owner == 0) return nullptr;
    const std::lock_guard hold(stripe_of(owner - 1).lock);
    // Freed meanwhile, or freed before and not yet seen.
    if (page_of(neighbour).owner[chunk_of(neighbour)].load_relaxed() != owner ||
        !begins_at(neighbour))
        return nullptr;
    return allocate_in(owner - 1, number_of(neighbour) + 1, wish_of(size, set));
}

template <class P>
void* near_heap<P>::join(typename P::template atomic<group_name>& name, std::size_t size,
                         unsigned set) noexcept {
    group_name seen = name.load_acquire(); // pairs with the exchange below
    for (;;) {
        if (const auto made = static_cast<std::uint32_t>(seen); made != 0) {
            const std::uint32_t number = made - 1;
            if (!groups_.committed(number)) return nullptr; // no name of this heap
            const std::lock_guard hold(stripe_of(number).lock);
            const group& named = groups_[number];
            if (named.used && named.count.load_relaxed() == seen >> 32) {
                void* const object = allocate_in(number, 0, wish_of(size, set));
                if (object == nullptr) end_if_empty(number);
                return object;
            }
        }
        const std::uint32_t made = new_group();
        if (made == 0) return nullptr;
        const group_name mine = std::uint64_t{groups_[made - 1].count.load_relaxed()} << 32 | made;
        if (name.cas_acq_rel(seen, mine)) {
            seen = mine;
            continue; // another thread may have ended it already: then once more
        }
        const std::lock_guard hold(stripe_of(made - 1).lock);
        end_if_empty(made - 1);
    }
}

// Places. All of them with the group's lock held.

template <class P>
void* near_heap<P>::allocate_in(std::uint32_t number, std::uint32_t neighbour, wish what) noexcept {
    group& mine = groups_[number];
    // That objects lie together is a promise, what is expected of them a guess.
    if (mine.objects == 0)
        mine.kind = static_cast<std::uint8_t>(what.kind());
    else
        what.set = what.set % attribute_sets + mine.kind * attribute_sets;
    char* const object = place(number, neighbour, what);
    if (object == nullptr) return nullptr;
    ++mine.objects;
    stripe& its = stripe_of(number);
    its.live_bytes.store_relaxed(its.live_bytes.load_relaxed() + what.granules * granule);
    its.live_objects.store_relaxed(its.live_objects.load_relaxed() + 1);
    return object;
}

template <class P>
char* near_heap<P>::place(std::uint32_t number, std::uint32_t neighbour,
                          const wish& what) noexcept {
    group& mine = groups_[number];
    char* object = nullptr;
    if (neighbour != 0 && neighbour != mine.newest) object = fill(number, neighbour - 1, what);
    if (object == nullptr && mine.newest != 0) {
        object = at_cursor(number, what);
        if (object == nullptr) object = fill(number, mine.newest - 1, what);
    }
    if (object == nullptr && mine.freed != 0 && mine.freed != mine.newest &&
        mine.freed != neighbour)
        object = fill(number, mine.freed - 1, what);
    return object != nullptr ? object : grow(number, what);
}

template <class P>
char* near_heap<P>::at_cursor(std::uint32_t number, const wish& what) noexcept {
    group& mine = groups_[number];
    if (mine.set != what.set) return nullptr;
    const unsigned first = what.aligned(mine.cursor);
    const unsigned end = first + what.granules;
    if (end > mine.limit && !extend(number, end, what)) return nullptr;
    const std::uint32_t at = mine.newest - 1;
    if (first != mine.cursor) note_room(pages_[at], first - mine.cursor);
    mine.cursor = static_cast<std::uint16_t>(end);
    mark(number, at, first, what);
    return memory_of(at, first);
}

// Claims what is behind the limit up to `end`.
template <class P>
bool near_heap<P>::extend(std::uint32_t number, unsigned end, const wish& what) noexcept {
    group& mine = groups_[number];
    if (end > near_granules) return false;
    const unsigned first = mine.limit / near_chunk_granules;
    const unsigned last = (end + near_chunk_granules - 1) / near_chunk_granules;
    const std::uint32_t wanted = mask_of(first, last - first);
    const std::uint32_t at = mine.newest - 1;
    {
        const std::lock_guard hold(pool_);
        if ((pages_[at].free & wanted) != wanted) return false;
        claim(number, at, wanted, what.set);
    }
    mine.limit = static_cast<std::uint16_t>(last * near_chunk_granules);
    return true;
}

// In a hole of the group's chunks in the page, or in chunks of it that are free.
template <class P>
char* near_heap<P>::fill(std::uint32_t number, std::uint32_t at, const wish& what) noexcept {
    group& mine = groups_[number];
    page& in = pages_[at];
    if (in.room.load_relaxed() < what.granules) return nullptr;
    unsigned begin = 0, length = 0; // of the granules in a row that can be had
    bool inside = false;
    for (unsigned chunk = 0; chunk < near_chunks; ++chunk) {
        const std::uint32_t owner = in.owner[chunk].load_relaxed();
        std::uint32_t used = 0xFFFF;
        if (owner == number + 1) {
            used = used_in(in.begins[chunk].load_relaxed(), in.ends[chunk].load_relaxed(), inside);
            if (in.set[chunk].load_relaxed() != what.set) used = 0xFFFF;
            if (at + 1 == mine.newest) { // what is from the cursor to the limit is not in holes
                const unsigned here = chunk * near_chunk_granules;
                const unsigned from = std::clamp<unsigned>(mine.cursor, here, here + 16) - here;
                const unsigned to = std::clamp<unsigned>(mine.limit, here, here + 16) - here;
                if (from < to) used |= mask_of(from, to - from);
            }
        } else if (owner == 0 && in.kind.load_relaxed() == what.kind()) {
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
                    return fill_found(number, at, first, what);
            }
            used >>= same;
            left -= same;
            i += same;
        }
    }
    in.room.store_relaxed(static_cast<std::uint16_t>(what.granules - 1));
    return nullptr;
}

template <class P>
char* near_heap<P>::fill_found(std::uint32_t number, std::uint32_t at, unsigned first,
                               const wish& what) noexcept {
    page& in = pages_[at];
    std::uint32_t wanted = 0;
    for (unsigned chunk = first / near_chunk_granules;
         chunk <= (first + what.granules - 1) / near_chunk_granules; ++chunk)
        if (in.owner[chunk].load_relaxed() == 0) wanted |= 1U << chunk;
    if (wanted != 0) {
        const std::lock_guard hold(pool_);
        // Another group was faster, or the whole page is free and belongs to no group.
        if ((in.free & wanted) != wanted || in.free == ~0U || in.kind.load_relaxed() != what.kind())
            return nullptr;
        claim(number, at, wanted, what.set);
    }
    mark(number, at, first, what);
    return memory_of(at, first);
}

// In a new place, which becomes the newest page.
template <class P>
char* near_heap<P>::grow(std::uint32_t number, const wish& what) noexcept {
    group& mine = groups_[number];
    const std::uint32_t before = mine.newest;
    leave_newest(number);
    unsigned chunks = std::clamp(mine.chunks, what.chunks(), near_chunks);
    if (chunks >= own_page_from) chunks = near_chunks;
    unsigned first = 0;
    std::uint32_t at = 0;
    {
        std::unique_lock hold(pool_);
        const bool spreads = chunks != near_chunks && what.kind() == 0 && may_spread();
        if (spreads) {
            at = second_half(chunks, &first);
        } else if (chunks != near_chunks) {
            at = shared_place(chunks, what, &first);
            if (at == 0 && what.chunks() < chunks) {
                at = shared_place(what.chunks(), what, &first);
                if (at != 0) chunks = what.chunks();
            }
        }
        while (at == 0) {
            at = fresh_page(before);
            if (at != 0) {
                first = 0;
                pages_[at - 1].kind.store_relaxed(static_cast<std::uint8_t>(what.kind()));
                if (spreads) half_ = at;
                break;
            }
            const std::uint32_t seen = units_used_.load_relaxed();
            hold.unlock();
            const bool more = more_units();
            hold.lock();
            if (more || units_used_.load_relaxed() != seen) continue;
            // The chunks of shared pages that are left.
            at = shared_place(chunks = what.chunks(), what, &first);
            if (at == 0) return nullptr;
        }
        claim(number, at - 1, mask_of(first, chunks), what.set);
    }
    mine.newest = at;
    mine.set = static_cast<std::uint8_t>(what.set);
    const unsigned begin = first * near_chunk_granules;
    mine.limit = static_cast<std::uint16_t>(begin + chunks * near_chunk_granules);
    mine.cursor = static_cast<std::uint16_t>(begin + what.granules);
    mark(number, at - 1, begin, what);
    return memory_of(at - 1, begin);
}

// Chunks that were claimed for later go back; what is left of one is a hole.
template <class P>
void near_heap<P>::leave_newest(std::uint32_t number) noexcept {
    group& mine = groups_[number];
    if (mine.newest == 0) return;
    const std::uint32_t at = mine.newest - 1;
    const unsigned whole = (mine.cursor + near_chunk_granules - 1U) / near_chunk_granules;
    const unsigned end = mine.limit / near_chunk_granules;
    std::uint32_t unused = whole < end ? mask_of(whole, end - whole) : 0;
    const unsigned part = mine.cursor / near_chunk_granules;
    const page& in = pages_[at];
    if (part < whole &&
        part < end) { // the cursor's own chunk, whose objects may all have been freed
        bool inside = false;
        std::uint32_t used = 0;
        for (unsigned chunk = 0; chunk <= part; ++chunk) {
            if (in.owner[chunk].load_relaxed() != number + 1) continue;
            used = used_in(in.begins[chunk].load_relaxed(), in.ends[chunk].load_relaxed(), inside);
        }
        if (used == 0) unused |= 1U << part;
    }
    if (mine.limit != mine.cursor)
        note_room(pages_[at], std::max<unsigned>(mine.limit - mine.cursor, near_chunk_granules));
    mine.newest = 0;
    mine.cursor = mine.limit = 0;
    if (unused == 0) return;
    const std::lock_guard hold(pool_);
    release(number, at, unused);
}

// The object's bits. The end first: who sees the beginning without the lock finds it.
template <class P>
void near_heap<P>::mark(std::uint32_t, std::uint32_t at, unsigned first,
                        const wish& what) noexcept {
    page& in = pages_[at];
    const unsigned last = first + what.granules - 1;
    auto& ends = in.ends[last / near_chunk_granules];
    ends.store_relaxed(
        static_cast<std::uint16_t>(ends.load_relaxed() | 1U << (last % near_chunk_granules)));
    auto& begins = in.begins[first / near_chunk_granules];
    begins.store_release(
        static_cast<std::uint16_t>(begins.load_relaxed() | 1U << (first % near_chunk_granules)));
}

template <class P>
free_result near_heap<P>::free(void* object) noexcept {
    if (!begins_at(object)) return free_result::no_object;
    page& in = page_of(object);
    const auto at = static_cast<unsigned>(granule_of(object));
    const unsigned chunk = at / near_chunk_granules;
    const std::uint32_t owner = in.owner[chunk].load_relaxed();
    if (owner == 0) return free_result::freed_before;
    const std::uint32_t number = owner - 1;
    stripe& lock = stripe_of(number);
    const std::lock_guard hold(lock.lock);
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
    lock.live_bytes.store_relaxed(lock.live_bytes.load_relaxed() - (last - at + 1) * granule);
    lock.live_objects.store_relaxed(lock.live_objects.load_relaxed() - 1);

    group& mine = groups_[number];
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
    bool page_left = false;
    if (empty != 0) {
        const std::lock_guard hold_pool(pool_);
        release(number, here, empty);
        page_left = in.free == ~0U;
    }
    if (!page_left) {
        in.room.store_relaxed(unknown_room);
        mine.freed = here + 1;
    } else {
        if (mine.freed == here + 1) mine.freed = 0;
        if (mine.newest == here + 1) mine.newest = mine.cursor = mine.limit = 0;
    }
    end_if_empty(number);
    return free_result::done;
}

// The pool. All of it with pool_ held.

template <class P>
void near_heap<P>::claim(std::uint32_t number, std::uint32_t at, std::uint32_t chunks,
                         unsigned set) noexcept {
    page& in = pages_[at];
    unlist_page(at);
    in.free &= ~chunks;
    list_page(at);
    near_detail::for_each_bit(chunks, [&](unsigned chunk) {
        in.set[chunk].store_relaxed(static_cast<std::uint8_t>(set));
        in.owner[chunk].store_relaxed(number + 1);
    });
    const auto count = static_cast<unsigned>(std::popcount(chunks));
    groups_[number].chunks += count;
    claimed_ += count;
}

template <class P>
void near_heap<P>::release(std::uint32_t number, std::uint32_t at, std::uint32_t chunks) noexcept {
    page& in = pages_[at];
    unlist_page(at);
    near_detail::for_each_bit(chunks, [&](unsigned chunk) { in.owner[chunk].store_relaxed(0); });
    in.free |= chunks;
    const auto count = static_cast<unsigned>(std::popcount(chunks));
    groups_[number].chunks -= count;
    claimed_ -= count;
    note_room(in, unknown_room);
    if (in.free != ~0U) {
        list_page(at);
    } else {
        --pages_in_use_;
        if (half_ == at + 1) half_ = 0;
        put_page(at, true);
    }
}

template <class P>
void near_heap<P>::list_page(std::uint32_t at) noexcept {
    page& in = pages_[at];
    const auto count = static_cast<unsigned>(std::popcount(in.free));
    if (count == 0 || count == near_chunks) return;
    slack_ += count;
    std::uint32_t& ring = shared_[in.kind.load_relaxed()][longest_run(in.free)];
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
void near_heap<P>::unlist_page(std::uint32_t at) noexcept {
    page& in = pages_[at];
    const auto count = static_cast<unsigned>(std::popcount(in.free));
    if (count == 0 || count == near_chunks) return;
    slack_ -= count;
    std::uint32_t& ring = shared_[in.kind.load_relaxed()][longest_run(in.free)];
    if (in.next == at + 1) {
        ring = 0;
        return;
    }
    if (ring == at + 1) ring = in.next;
    pages_[in.previous - 1].next = in.next;
    pages_[in.next - 1].previous = in.previous;
}

// How many free chunks lie in a row at most.
template <class P>
unsigned near_heap<P>::longest_run(std::uint32_t free) noexcept {
    unsigned length = 0;
    for (; free != 0; free &= free << 1) ++length;
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
    return (slack_ + near_chunks) * near_chunk_bytes <=
           least_slack_bytes + claimed_ * near_chunk_bytes / slack_per_claimed;
}

// Of a page that was begun by another group while groups spread. Page number + 1; 0: there is none.
template <class P>
std::uint32_t near_heap<P>::second_half(unsigned chunks, unsigned* first) noexcept {
    const std::uint32_t half = std::exchange(half_, 0);
    const std::uint32_t wanted = mask_of(near_chunks / 2, chunks);
    if (half == 0 || (pages_[half - 1].free & wanted) != wanted) return 0;
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
            *first = first_fit(pages_[at - 1].free, chunks, what.chunk_alignment());
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
    ++pages_in_use_;
    const std::uint32_t at = (unit - 1) * near_unit_pages + word * 64 + bit;
    pages_[at].room.store_relaxed(unknown_room);
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

// Without pool_. The memory is committed by each thread that needs some, and the first of them tells.
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
    for (unsigned i = 0; i < near_unit_pages; ++i)
        pages_[std::size_t{unit} * near_unit_pages + i].free = ~0U;
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

// The pages are in no map meanwhile, so no thread can have them.
template <class P>
std::size_t near_heap<P>::decommit_of_unit(std::uint32_t unit, pacer& ask) noexcept {
    near_unit& in = units_[unit];
    std::uint64_t leaving[near_unit_pages / 64];
    std::uint32_t count = 0;
    {
        const std::lock_guard hold(pool_);
        for (unsigned word = 0; word < near_unit_pages / 64; ++word) {
            leaving[word] = returned_pages_[word] = in.free[word] & in.dirty[word];
            count += static_cast<std::uint32_t>(std::popcount(leaving[word]));
        }
        if (count == 0) return 0;
        returning_ = unit + 1;
        for (unsigned word = 0; word < near_unit_pages / 64; ++word) {
            in.free[word] &= ~leaving[word];
            in.dirty[word] &= ~leaving[word];
        }
        in.free_pages -= count;
        if (in.free_pages == 0) unlist_unit(unit);
    }
    char* const begin = base_ + std::size_t{unit} * near_unit_bytes;
    ask.call_begins();
    near_detail::for_each_stretch(leaving, [&](std::size_t first, std::size_t end) {
        for (; first != end;) {
            const std::size_t part = std::min(end, first + piece_bytes / os::page_size);
            os::advise(begin + first * os::page_size, (part - first) * os::page_size,
                       os::advice::dontneed);
            first = part;
        }
    });
    ask.call_ends();
    const std::lock_guard hold(pool_);
    end_return(false);
    return std::size_t{count} * os::page_size;
}

// With pool_ held: the pages can be handed out again.
template <class P>
void near_heap<P>::end_return(bool dirty) noexcept {
    if (returning_ == 0) return;
    const std::uint32_t first = (returning_ - 1) * near_unit_pages;
    for (unsigned word = 0; word < near_unit_pages / 64; ++word)
        near_detail::for_each_bit(std::exchange(returned_pages_[word], 0), [&](unsigned bit) {
            put_page(first + word * 64 + bit, dirty);
            --dirty_pages_;
        });
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
    const std::lock_guard hold(pool_);
    now.extent_bytes = (pages_in_use_ + dirty_pages_) * os::page_size;
    now.claimed_bytes = claimed_ * near_chunk_bytes;
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

// Fork. All locks, in their order; a group is whole while its lock is held by this thread.

template <class P>
void near_heap<P>::fork_prepare() noexcept {
    for (stripe& one : stripes_) one.lock.lock();
    pool_.lock();
}

template <class P>
void near_heap<P>::fork_parent() noexcept {
    pool_.unlock();
    for (stripe& one : stripes_) one.lock.unlock();
}

// The collector of the parent may have been giving pages back, and does not exist here.
template <class P>
void near_heap<P>::fork_child() noexcept {
    end_return(true);
    pool_.unlock_in_child();
    for (stripe& one : stripes_) one.lock.unlock_in_child();
}

template <class P>
const char* near_heap<P>::validate_page(std::uint32_t at, std::uint64_t* objects,
                                        std::uint64_t* bytes) const noexcept {
    const page& in = pages_[at];
    std::uint32_t open =
        0; // owner of the chunk that the last object went on from; 0: it ended there
    std::size_t first = 0;
    for (unsigned chunk = 0; chunk < near_chunks; ++chunk) {
        const std::uint32_t owner = in.owner[chunk].load_relaxed();
        const unsigned begins = in.begins[chunk].load_relaxed();
        const unsigned ends = in.ends[chunk].load_relaxed();
        if ((owner == 0) != ((in.free >> chunk & 1) != 0)) return "near: free chunks and owners";
        if (owner == 0 && (begins != 0 || ends != 0)) return "near: an object in a free chunk";
        if (owner != 0) {
            if (owner > groups_used_ || !groups_[owner - 1].used) return "near: owner is no group";
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
    for (std::uint32_t unit = 0; unit < units_used_.load_relaxed(); ++unit) {
        const near_unit& in = units_[unit];
        std::uint32_t free_pages = 0;
        for (unsigned i = 0; i < near_unit_pages; ++i) {
            const std::uint32_t at = unit * near_unit_pages + i;
            const auto free = static_cast<unsigned>(std::popcount(pages_[at].free));
            const bool mapped = (in.free[i / 64] >> (i % 64) & 1) != 0;
            if (mapped != (free == near_chunks)) return "near: the map of a unit";
            free_pages += mapped;
            dirty += in.dirty[i / 64] >> (i % 64) & 1;
            if (!mapped) ++in_use;
            if (!mapped && (in.dirty[i / 64] >> (i % 64) & 1) != 0)
                return "near: a dirty page that is in use";
            claimed += near_chunks - free;
            if (free != 0 && free != near_chunks) {
                slack += free;
                ++shared;
            }
            if (const char* const broken = validate_page(at, &objects, &bytes)) return broken;
        }
        if (free_pages != in.free_pages) return "near: the free pages of a unit";
    }
    for (unsigned kind = 0; kind < expectations; ++kind)
        for (unsigned count = 1; count < near_chunks; ++count) {
            const std::uint32_t head = shared_[kind][count];
            for (std::uint32_t at = head; at != 0;) {
                const page& in = pages_[at - 1];
                ++listed;
                if (longest_run(in.free) != count || in.kind.load_relaxed() != kind)
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
    for (std::uint32_t i = 0; i < groups_used_; ++i) {
        if (!groups_[i].used) continue;
        ++groups;
        held += groups_[i].chunks;
        if (groups_[i].cursor > groups_[i].limit) return "near: a cursor beyond its limit";
    }
    if (objects != counted || bytes != live) return "near: live objects";
    if (claimed != claimed_ || held != claimed_) return "near: claimed chunks";
    if (slack != slack_) return "near: slack";
    if (in_use != pages_in_use_ || dirty != dirty_pages_) return "near: pages in use";
    if (groups != live_groups) return "near: groups";
    return nullptr;
}

} // namespace obase::heap
