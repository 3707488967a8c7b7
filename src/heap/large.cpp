// SPDX-License-Identifier: MIT
#include "heap/large.hpp"

#include <algorithm>
#include <utility>

#include "os/memory.hpp"

namespace obase::heap {
namespace {

// A tag: bit 0 used; a used extent has its attribute set in 2..6, at its first page bit 7, and its exact
// size from bit 8; a free one and a claimed one their pages from bit 8. 0: no extent begins or ends here.
constexpr std::uint64_t used_bit = 1;
constexpr std::uint64_t free_bit = 2; // without used_bit
constexpr std::uint64_t first_bit = 1U << 7;
constexpr std::uint64_t used_tag(std::size_t size, unsigned set) noexcept {
    return used_bit | std::uint64_t{set} << 2 | std::uint64_t{size} << 8;
}
constexpr std::uint64_t free_tag(std::size_t pages) noexcept {
    return free_bit | std::uint64_t{pages} << 8;
}
constexpr std::uint64_t claimed_tag(std::size_t pages) noexcept {
    return std::uint64_t{pages} << 8;
}
constexpr std::uint64_t value_of(std::uint64_t tag) noexcept { return tag >> 8; }

constexpr bool is_used(std::uint64_t tag) noexcept { return (tag & used_bit) != 0; }
constexpr bool is_start(std::uint64_t tag) noexcept {
    return (tag & (used_bit | first_bit)) == (used_bit | first_bit);
}
constexpr bool is_free(std::uint64_t tag) noexcept {
    return (tag & (used_bit | free_bit)) == free_bit;
}

constexpr std::size_t piece_pages = piece_bytes / os::page_size;
// Of which the tables go back at once: 16 MiB, and 176 KiB of the tables. Their ends are such that an OS page of either
// table holds entries of one piece only.
constexpr std::size_t tables_piece_pages = 4096;
constexpr std::size_t tables_piece_alignment = 1024;

// Priorities of the treap: any fixed scrambling of the page number will do.
constexpr std::uint32_t priority(std::uint32_t at) noexcept {
    std::uint32_t x = at * 0x9E3779B1U;
    x ^= x >> 15;
    return x * 0x85EBCA77U;
}

} // namespace

bool large_heap::create(char* base, std::size_t bytes, poisoning poison_freed) noexcept {
    base_ = base;
    // The range beyond the numbers of pages stays unused.
    bytes_ = std::min(bytes, max_pages * os::page_size);
    poison_ = poison_freed;
    const std::size_t pages = bytes_ / os::page_size;
    return tags_.reserve(pages) && nodes_.reserve(pages);
}

void large_heap::destroy() noexcept {
    if (hides(poison_)) asan::show(base_, frontier_ * os::page_size);
    tags_.release();
    nodes_.release();
}

large_heap::range large_heap::range::within(std::size_t from, std::size_t to) const noexcept {
    const std::size_t low = std::clamp(first, from, to);
    return {low, std::max(low, std::clamp(end, from, to))};
}

void large_heap::range::span(const range& other) noexcept {
    if (other.first == other.end) return;
    *this = first == end ? other : range{std::min(first, other.first), std::max(end, other.end)};
}

// The treap. Depth is logarithmic in expectation, so recursion is shallow.

void large_heap::update(index at) noexcept {
    node& n = nodes_[at - 1];
    n.longest = std::max({n.pages, longest(n.left), longest(n.right)});
    const auto dirty = [this](index child) { return child != 0 && nodes_[child - 1].any_dirty; };
    const auto full = [this](index child) { return child != 0 && nodes_[child - 1].any_full; };
    n.any_dirty = n.dirty_first != n.dirty_end || dirty(n.left) || dirty(n.right);
    n.any_full = n.full_end - n.full_first >= full_enough || full(n.left) || full(n.right);
}

// Nodes with numbers below `key` to *below, the others to *above.
void large_heap::split(index tree, index key, index* below, index* above) noexcept {
    if (tree == 0) {
        *below = *above = 0;
        return;
    }
    node& n = nodes_[tree - 1];
    if (tree < key) {
        split(n.right, key, &n.right, above);
        *below = tree;
    } else {
        split(n.left, key, below, &n.left);
        *above = tree;
    }
    update(tree);
}

large_heap::index large_heap::merge(index below, index above) noexcept {
    if (below == 0) return above;
    if (above == 0) return below;
    if (priority(below) > priority(above)) {
        nodes_[below - 1].right = merge(nodes_[below - 1].right, above);
        update(below);
        return below;
    }
    nodes_[above - 1].left = merge(below, nodes_[above - 1].left);
    update(above);
    return above;
}

void large_heap::insert_free(const extent& free) noexcept {
    const auto at = static_cast<index>(free.page + 1);
    const auto pages = static_cast<std::uint32_t>(free.pages);
    nodes_[free.page] = {0,
                         0,
                         pages,
                         pages,
                         static_cast<std::uint32_t>(free.dirty.first),
                         static_cast<std::uint32_t>(free.dirty.end),
                         static_cast<std::uint32_t>(free.full.first),
                         static_cast<std::uint32_t>(free.full.end),
                         free.dirty.pages() != 0,
                         free.full.pages() >= full_enough};
    dirty_pages_ += free.dirty.pages();
    index below = 0;
    index above = 0;
    split(root_, at, &below, &above);
    root_ = merge(merge(below, at), above);
    set_tags(free.page, free.pages, free_tag(free.pages));
}

large_heap::extent large_heap::remove_free(std::size_t page) noexcept {
    const auto at = static_cast<index>(page + 1);
    index below = 0;
    index rest = 0;
    index here = 0;
    index above = 0;
    split(root_, at, &below, &rest);
    split(rest, at + 1, &here, &above);
    root_ = merge(below, above);
    const node& n = nodes_[page];
    set_tags(page, n.pages, 0);
    dirty_pages_ -= n.dirty_end - n.dirty_first;
    return {page, n.pages, {n.dirty_first, n.dirty_end}, {n.full_first, n.full_end}};
}

// With its free neighbours. The dirty part of the result spans those of the parts, and so does the full one.
void large_heap::insert_merged(extent free) noexcept {
    const auto join = [&free](const extent& other) {
        free.page = std::min(free.page, other.page);
        free.pages += other.pages;
        free.dirty.span(other.dirty);
        free.full.span(other.full);
    };
    const std::size_t end = free.end();
    if (end < frontier_ && is_free(tags_[end].load_relaxed())) join(remove_free(end));
    if (free.page > 0) {
        const std::uint64_t before = tags_[free.page - 1].load_relaxed();
        if (is_free(before)) join(remove_free(free.page - value_of(before)));
    }
    insert_free(free);
}

// The lowest free extent of at least `pages`.
large_heap::index large_heap::first_fit(std::uint32_t pages) const noexcept {
    index at = root_;
    if (longest(at) < pages) return 0;
    for (;;) {
        const node& n = nodes_[at - 1];
        if (longest(n.left) >= pages) {
            at = n.left;
        } else if (n.pages >= pages) {
            return at;
        } else {
            at = n.right;
        }
    }
}

void large_heap::set_tags(std::size_t page, std::size_t pages, std::uint64_t tag) noexcept {
    tags_[page].store_release(tag);
    tags_[page + pages - 1].store_release(tag);
}

// Makes more memory free at the end, for an extent of at least `pages`. False: there is none. The lock
// is not held meanwhile, and other threads may grow the heap as well: to commit pages twice changes
// nothing.
bool large_heap::grow(std::size_t pages, std::unique_lock<std::mutex>& hold) noexcept {
    const std::size_t first = frontier_;
    std::size_t before = 0; // pages of a free extent that ends at the frontier
    if (first > 0) {
        const std::uint64_t tag = tags_[first - 1].load_relaxed();
        if (is_free(tag)) before = value_of(tag);
    }
    const std::size_t missing = pages - std::min(before, pages);
    const std::size_t limit = bytes_ / os::page_size;
    if (missing > limit - first) return false;
    const std::size_t step = std::max<std::size_t>((4U << 20) / os::page_size, first / 8);
    std::size_t chunk = std::min(std::max(missing, step), limit - first);
    hold.unlock();
    bool committed = commit_pages(first, chunk);
    if (!committed && chunk != missing) {
        chunk = missing; // what is needed may still fit
        committed = commit_pages(first, chunk);
    }
    hold.lock();
    if (committed && first + chunk > frontier_) advance_frontier(first + chunk);
    return committed;
}

bool large_heap::commit_pages(std::size_t first, std::size_t chunk) noexcept {
    return tags_.commit_to(first + chunk) && nodes_.commit_to(first + chunk) &&
           os::commit(base_ + first * os::page_size, chunk * os::page_size) == 0;
}

void large_heap::advance_frontier(std::size_t end) noexcept {
    const std::size_t first = frontier_;
    frontier_ = end;
    if (hides(poison_)) asan::hide(base_ + first * os::page_size, (end - first) * os::page_size);
    insert_merged({first, end - first, {first, first}, {first, first}});
}

void* large_heap::allocate(std::size_t size, unsigned set) noexcept {
    if (size > bytes_) return nullptr;
    const std::size_t pages = round_up(size, os::page_size) / os::page_size;
    std::unique_lock hold(lock_);
    index at = 0;
    // Other threads may take what this one made free; or what it needs may be claimed just now, which is over in less
    // time than a new page takes.
    for (unsigned naps = 0; (at = first_fit(static_cast<std::uint32_t>(pages))) == 0;) {
        const bool claimed = claimed_.pages != 0;
        if ((!claimed || naps >= naps_before_growing) && grow(pages, hold)) continue;
        if (!claimed) return nullptr;
        ++naps;
        hold.unlock();
        os::native_platform::sleep_ns(nap_ns);
        hold.lock();
    }
    const std::size_t page = at - 1;
    const extent found = remove_free(page);
    const std::size_t dirty = found.dirty.within(page, page + pages).pages();
    new_bytes_.fetch_add_relaxed((pages - dirty) * os::page_size);
    if (found.pages > pages) insert_free(found.part(page + pages, found.end()));
    set_tags(page, pages, used_tag(size, set));
    tags_[page].store_release(used_tag(size, set) | first_bit);
    live_bytes_ += size;
    used_pages_ += pages;
    ++live_objects_;
    return base_ + page * os::page_size;
}

void large_heap::free(void* object) noexcept {
    if (poison_ != poisoning::none) poison(object, size_of(object), poison_);
    const std::lock_guard hold(lock_);
    const std::size_t page = page_of(object);
    const std::uint64_t tag = tags_[page].load_relaxed();
    os::native_platform::check(is_start(tag), "free of a large object that is not there");
    free_extent(page, tag);
}

// Pages [end, end + pages), from the free extent there. False: they are not free, and cannot be made.
bool large_heap::take_behind(std::size_t end, std::size_t pages,
                             std::unique_lock<std::mutex>& hold) noexcept {
    for (unsigned naps = 0;;) {
        const std::uint64_t tag = end < frontier_ ? tags_[end].load_relaxed() : 0;
        const std::size_t room = is_free(tag) ? value_of(tag) : 0;
        if (room >= pages) break;
        if (claimed_.pages != 0 && claimed_.page == end && naps < naps_before_growing) {
            ++naps; // it is over in less time than the copy that the caller would make
            hold.unlock();
            os::native_platform::sleep_ns(nap_ns);
            hold.lock();
            continue;
        }
        // Without the lock: others may take it, or what was made.
        if (end + room != frontier_ || !grow(pages, hold)) return false;
    }
    const extent found = remove_free(end);
    new_bytes_.fetch_add_relaxed((pages - found.dirty.within(end, end + pages).pages()) *
                                 os::page_size);
    if (found.pages > pages) insert_free(found.part(end + pages, found.end()));
    return true;
}

bool large_heap::resize(void* object, std::size_t size) noexcept {
    if (size > bytes_) return false;
    std::unique_lock hold(lock_);
    const std::size_t page = page_of(object);
    const std::uint64_t tag = tags_[page].load_relaxed();
    os::native_platform::check(is_start(tag), "resize of a large object that is not there");
    const std::size_t before = round_up(value_of(tag), os::page_size) / os::page_size;
    const std::size_t pages = round_up(size, os::page_size) / os::page_size;
    if (pages > before && !take_behind(page + before, pages - before, hold)) return false;
    // The first tag changes in one step: it is read without the lock. The last one lies on another page, for the object
    // has several, and is that of its extent alone.
    const auto set = static_cast<unsigned>(tag >> 2) & 31U;
    tags_[page + before - 1].store_release(0);
    tags_[page + pages - 1].store_release(used_tag(size, set));
    tags_[page].store_release(used_tag(size, set) | first_bit);
    live_bytes_ += size - value_of(tag);
    used_pages_ += pages - before;
    if (pages < before) {
        const range rest{page + pages, page + before};
        insert_merged({rest.first, rest.pages(), rest, rest});
    }
    return true;
}

free_result large_heap::free_checked(void* object) noexcept {
    const std::size_t page = page_of(object);
    if (static_cast<char*>(object) != base_ + page * os::page_size) return free_result::no_object;
    const std::lock_guard hold(lock_);
    if (page >= frontier_) return free_result::no_object;
    const std::uint64_t tag = tags_[page].load_relaxed();
    if (!is_start(tag)) return free_result::no_object;
    if (poison_ != poisoning::none) poison(object, value_of(tag), poison_);
    free_extent(page, tag);
    return free_result::done;
}

// Precondition: the lock is held; the tag is that of a used extent's first page.
void large_heap::free_extent(std::size_t page, std::uint64_t tag) noexcept {
    const std::size_t size = value_of(tag);
    const std::size_t pages = round_up(size, os::page_size) / os::page_size;
    set_tags(page, pages, 0);
    live_bytes_ -= size;
    used_pages_ -= pages;
    --live_objects_;
    insert_merged({page, pages, {page, page + pages}, {page, page + pages}});
}

std::size_t large_heap::size_of(const void* object) const noexcept {
    const std::size_t page = page_of(object);
    if (!tags_.committed(page)) return 0;
    const std::uint64_t tag = tags_[page].load_acquire();
    // The last page of another object, which was put here meanwhile, has its size, too.
    return is_start(tag) ? value_of(tag) : 0;
}

unsigned large_heap::set_of(const void* object) const noexcept {
    const std::size_t page = page_of(object);
    if (!tags_.committed(page)) return 0;
    return static_cast<unsigned>(tags_[page].load_acquire() >> 2) & 31U;
}

// The lowest free extent of the tree for which has(node) is true and that reaches beyond `from`. `any` says of which
// subtrees it may be true.
template <class Has>
large_heap::index large_heap::first_with(bool node::* any, index tree, std::size_t from,
                                         const Has& has) const noexcept {
    if (tree == 0 || !(nodes_[tree - 1].*any)) return 0;
    const node& n = nodes_[tree - 1];
    if (tree - 1 + n.pages > from) {
        if (const index below = first_with(any, n.left, from, has)) return below;
        if (has(n)) return tree;
    }
    return first_with(any, n.right, from, has);
}

// Makes pages [first, end) of what was free an extent that allocate() and free() leave alone.
void large_heap::claim(const extent& from, std::size_t first, std::size_t end) noexcept {
    if (from.page < first) insert_free(from.part(from.page, first));
    if (end < from.end()) insert_free(from.part(end, from.end()));
    claimed_ = from.part(first, end);
    set_tags(first, end - first, claimed_tag(end - first));
}

// Claims the first dirty pages at `from` or above. False: there are none. Precondition: nothing is claimed.
bool large_heap::claim_piece(std::size_t from) noexcept {
    const std::lock_guard hold(lock_);
    const index at = first_with(&node::any_dirty, root_, from, [from](const node& n) {
        return n.dirty_first != n.dirty_end && n.dirty_end > from;
    });
    if (at == 0) return false;
    const extent free = remove_free(at - 1);
    const std::size_t first = std::max(free.dirty.first, from);
    claim(free, first, std::min(free.dirty.end, first + piece_pages));
    return true;
}

// The first pages, likewise, of whose entries enough may be resident.
bool large_heap::claim_full_piece(std::size_t from) noexcept {
    const std::lock_guard hold(lock_);
    const index at = first_with(&node::any_full, root_, from, [from](const node& n) {
        return range{n.full_first, n.full_end}.within(from, SIZE_MAX).pages() >= full_enough;
    });
    if (at == 0) return false;
    const extent free = remove_free(at - 1);
    const std::size_t first = std::max(free.full.first, from);
    const std::size_t end = (first + tables_piece_pages) & ~(tables_piece_alignment - 1);
    claim(free, first, std::min(free.full.end, end));
    return true;
}

// Precondition: the lock is held, and something is claimed.
void large_heap::end_claim() noexcept {
    set_tags(claimed_.page, claimed_.pages, 0);
    insert_merged(std::exchange(claimed_, {}));
}

std::size_t large_heap::decommit_free_memory(pacer& ask) noexcept {
    std::size_t bytes = 0;
    // Upwards, so that what is freed meanwhile cannot keep this going for ever.
    for (std::size_t from = 0; claim_piece(from);) {
        // No other thread changes what is claimed.
        const std::size_t length = claimed_.pages * os::page_size;
        from = claimed_.end();
        ask.call_begins();
        const bool returned =
            os::advise(base_ + claimed_.page * os::page_size, length, os::advice::dontneed) == 0;
        ask.call_ends();
        if (returned) bytes += length;
        {
            const std::lock_guard hold(lock_);
            if (returned) claimed_.dirty = {claimed_.page, claimed_.page};
            end_claim();
        }
        if (!ask.may_continue()) return bytes;
    }
    decommit_tables(ask);
    return bytes;
}

// Of a free extent only the tags at its ends and the node of its first page say anything, and what says nothing is 0.
void large_heap::decommit_tables(pacer& ask) noexcept {
    for (std::size_t from = 0; claim_full_piece(from);) {
        const std::size_t end = from = claimed_.end();
        ask.call_begins();
        tags_.decommit(claimed_.page + 1, end - 1);
        nodes_.decommit(claimed_.page, end);
        ask.call_ends();
        {
            const std::lock_guard hold(lock_);
            claimed_.full = {claimed_.page, claimed_.page};
            end_claim();
        }
        if (!ask.may_continue()) break;
    }
}

// The collector, which claimed a piece, does not exist here. What it was giving back is as it was before, or not
// resident, which is as good.
void large_heap::fork_child() noexcept {
    if (claimed_.pages != 0) end_claim();
    lock_.unlock();
}

large_counters large_heap::counters() const noexcept {
    large_counters sum;

    const std::lock_guard hold(lock_);
    sum.live_bytes = live_bytes_;
    sum.live_objects = live_objects_;
    sum.extent_bytes = (used_pages_ + dirty_pages_ + claimed_.dirty.pages()) * os::page_size;
    return sum;
}

std::size_t large_heap::metadata_bytes() const noexcept {
    return tags_.committed_bytes() + nodes_.committed_bytes();
}

void large_heap::walk(void (*visit)(void*, char*, std::size_t, unsigned), void* context) const {
    const std::lock_guard hold(lock_);
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        if (is_used(tag)) {
            visit(context, base_ + page * os::page_size, value_of(tag),
                  static_cast<unsigned>(tag >> 2) & 31U);
            page += round_up(value_of(tag), os::page_size) / os::page_size;
        } else {
            page += value_of(tag);
        }
    }
}

const char* large_heap::validate() const noexcept {
    const std::lock_guard hold(lock_);
    bool free_before = false;
    bool full = false;
    std::uint64_t live = 0;
    std::uint32_t longest_free = 0;
    std::size_t used_pages = 0;
    std::size_t dirty_pages = 0;
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        if (tag == 0) return "a page of LARGE belongs to no extent";
        const std::size_t pages =
            is_used(tag) ? round_up(value_of(tag), os::page_size) / os::page_size : value_of(tag);
        if (pages == 0 || page + pages > frontier_) return "an extent of LARGE has a wrong length";
        if (is_used(tag) && !is_start(tag)) return "a used extent of LARGE does not begin";
        if (tags_[page + pages - 1].load_relaxed() != (tag & ~first_bit))
            return "tags of an extent disagree";
        for (std::size_t inner = page + 1; is_used(tag) && inner + 1 < page + pages; ++inner)
            if (tags_[inner].load_relaxed() != 0) return "a page within an object has a tag";
        if (is_used(tag)) {
            live += value_of(tag);
            used_pages += pages;
        } else if (is_free(tag)) {
            const node& n = nodes_[page];
            if (free_before) return "two free extents touch";
            if (n.pages != pages) return "node and tag of a free extent disagree";
            if (n.dirty_first > n.dirty_end ||
                (n.dirty_first != n.dirty_end &&
                 (n.dirty_first < page || n.dirty_end > page + pages)))
                return "the dirty part of a free extent lies outside of it";
            if (n.full_first > n.full_end ||
                (n.full_first != n.full_end && (n.full_first < page || n.full_end > page + pages)))
                return "the full part of a free extent lies outside of it";
            full |= n.full_end - n.full_first >= full_enough;
            dirty_pages += n.dirty_end - n.dirty_first;
            longest_free = std::max(longest_free, n.pages);
        } else if (page != claimed_.page || pages != claimed_.pages) {
            return "an extent is claimed and not noted";
        }
        free_before = is_free(tag);
        page += pages;
    }
    if (live != live_bytes_ || used_pages != used_pages_)
        return "live bytes of LARGE are miscounted";
    if (dirty_pages != dirty_pages_) return "dirty pages of LARGE are miscounted";
    if (full != (root_ != 0 && nodes_[root_ - 1].any_full))
        return "the tree does not know where tables can go back";
    return longest(root_) == longest_free ? nullptr : "the tree of free extents is wrong";
}

} // namespace obase::heap
