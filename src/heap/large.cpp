// SPDX-License-Identifier: MIT
#include "heap/large.hpp"

#include <algorithm>

#include "heap/poison.hpp"
#include "os/memory.hpp"

namespace obase::heap {
namespace {

// A tag: bit 0 used; a used extent has its attribute set in 1..5 and its exact size from bit 8; a
// free one its pages from bit 8. 0: no extent begins or ends here.
constexpr std::uint64_t used_bit = 1;
constexpr std::uint64_t free_bit = 2;
constexpr std::uint64_t used_tag(std::size_t size, unsigned set) noexcept {
    return used_bit | std::uint64_t{set} << 2 | std::uint64_t{size} << 8;
}
constexpr std::uint64_t free_tag(std::size_t pages) noexcept {
    return free_bit | std::uint64_t{pages} << 8;
}
constexpr std::uint64_t value_of(std::uint64_t tag) noexcept { return tag >> 8; }

// Priorities of the treap: any fixed scrambling of the page number will do.
constexpr std::uint32_t priority(std::uint32_t at) noexcept {
    std::uint32_t x = at * 0x9E3779B1U;
    x ^= x >> 15;
    return x * 0x85EBCA77U;
}

} // namespace

bool large_heap::create(char* base, std::size_t bytes, bool poison_freed) noexcept {
    base_ = base;
    // What lies beyond the numbers of pages stays unused.
    bytes_ = std::min(bytes, max_pages * os::page_size);
    poison_ = poison_freed;
    const std::size_t pages = bytes_ / os::page_size;
    return tags_.reserve(pages) && nodes_.reserve(pages);
}

void large_heap::destroy() noexcept {
    tags_.release();
    nodes_.release();
}

// The treap. Depth is logarithmic in expectation, so recursion is shallow.

void large_heap::update(index at) noexcept {
    node& n = nodes_[at - 1];
    n.longest = std::max({n.pages, longest(n.left), longest(n.right)});
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

void large_heap::insert_free(std::size_t page, std::size_t pages, bool dirty) noexcept {
    const auto at = static_cast<index>(page + 1);
    nodes_[page] = {0, 0, static_cast<std::uint32_t>(pages), static_cast<std::uint32_t>(pages),
                    dirty};
    index below = 0;
    index above = 0;
    split(root_, at, &below, &above);
    root_ = merge(merge(below, at), above);
    set_tags(page, pages, free_tag(pages));
}

void large_heap::remove_free(std::size_t page) noexcept {
    const auto at = static_cast<index>(page + 1);
    index below = 0;
    index rest = 0;
    index here = 0;
    index above = 0;
    split(root_, at, &below, &rest);
    split(rest, at + 1, &here, &above);
    root_ = merge(below, above);
    set_tags(page, nodes_[page].pages, 0);
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

// Makes a free extent of at least `pages` at the end.
bool large_heap::grow(std::size_t pages) noexcept {
    std::size_t missing = pages;
    std::size_t first = frontier_;
    std::size_t before = 0; // pages of a free extent that ends at the frontier
    if (frontier_ > 0) {
        const std::uint64_t tag = tags_[frontier_ - 1].load_relaxed();
        if ((tag & free_bit) != 0) before = value_of(tag);
    }
    missing -= std::min(before, pages);
    const std::size_t limit = bytes_ / os::page_size;
    if (missing > limit - frontier_) return false;
    const std::size_t step = std::max<std::size_t>((4U << 20) / os::page_size, frontier_ / 8);
    std::size_t chunk = std::min(std::max(missing, step), limit - frontier_);
    for (;;) {
        if (tags_.commit_to(frontier_ + chunk) && nodes_.commit_to(frontier_ + chunk) &&
            os::commit(base_ + frontier_ * os::page_size, chunk * os::page_size) == 0) {
            break;
        }
        if (chunk == missing) return false;
        chunk = missing; // what is needed may still fit
    }
    bool dirty = false;
    frontier_ += chunk;
    if (before != 0) {
        first -= before;
        dirty = nodes_[first].dirty;
        remove_free(first);
    }
    insert_free(first, before + chunk, dirty);
    return true;
}

void* large_heap::allocate(std::size_t size, unsigned set) noexcept {
    if (size > bytes_) return nullptr;
    const std::size_t pages = round_up(size, os::page_size) / os::page_size;
    const std::lock_guard hold(lock_);
    index at = first_fit(static_cast<std::uint32_t>(pages));
    if (at == 0) {
        if (!grow(pages)) return nullptr;
        at = first_fit(static_cast<std::uint32_t>(pages));
    }
    const std::size_t page = at - 1;
    const std::size_t have = nodes_[page].pages;
    const bool dirty = nodes_[page].dirty;
    remove_free(page);
    if (have > pages) insert_free(page + pages, have - pages, dirty);
    set_tags(page, pages, used_tag(size, set));
    live_bytes_ += size;
    ++live_objects_;
    return base_ + page * os::page_size;
}

void large_heap::free(void* object) noexcept {
    if (poison_) poison(object, size_of(object));
    const std::lock_guard hold(lock_);
    std::size_t page = page_of(object);
    const std::uint64_t tag = tags_[page].load_relaxed();
    os::native_platform::check((tag & used_bit) != 0, "free of a large object that is not there");
    const std::size_t size = value_of(tag);
    std::size_t pages = round_up(size, os::page_size) / os::page_size;
    set_tags(page, pages, 0);
    live_bytes_ -= size;
    --live_objects_;
    if (page + pages < frontier_) {
        const std::uint64_t after = tags_[page + pages].load_relaxed();
        if ((after & free_bit) != 0) {
            remove_free(page + pages);
            pages += value_of(after);
        }
    }
    if (page > 0) {
        const std::uint64_t before = tags_[page - 1].load_relaxed();
        if ((before & free_bit) != 0) {
            page -= value_of(before);
            remove_free(page);
            pages += value_of(before);
        }
    }
    insert_free(page, pages, true);
}

std::size_t large_heap::size_of(const void* object) const noexcept {
    const std::size_t page = page_of(object);
    if (!tags_.committed(page)) return 0;
    const std::uint64_t tag = tags_[page].load_acquire();
    return (tag & used_bit) != 0 ? value_of(tag) : 0;
}

unsigned large_heap::set_of(const void* object) const noexcept {
    const std::size_t page = page_of(object);
    if (!tags_.committed(page)) return 0;
    return static_cast<unsigned>(tags_[page].load_acquire() >> 2) & 31U;
}

std::size_t large_heap::return_free_memory() noexcept {
    const std::lock_guard hold(lock_);
    std::size_t bytes = 0;
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        if ((tag & used_bit) != 0) {
            page += round_up(value_of(tag), os::page_size) / os::page_size;
            continue;
        }
        node& n = nodes_[page];
        const std::size_t length = std::size_t{n.pages} * os::page_size;
        if (n.dirty &&
            os::advise(base_ + page * os::page_size, length, os::advice::dontneed) == 0) {
            n.dirty = false;
            bytes += length;
        }
        page += n.pages;
    }
    return bytes;
}

large_counters large_heap::counters() const noexcept {
    large_counters sum;

    const std::lock_guard hold(lock_);
    sum.live_bytes = live_bytes_;
    sum.live_objects = live_objects_;
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        const bool used = (tag & used_bit) != 0;
        const std::size_t pages =
            used ? round_up(value_of(tag), os::page_size) / os::page_size : value_of(tag);
        if (used || nodes_[page].dirty) sum.extent_bytes += pages * os::page_size;
        page += pages;
    }
    return sum;
}

std::size_t large_heap::metadata_bytes() const noexcept {
    return tags_.committed_bytes() + nodes_.committed_bytes();
}

void large_heap::walk(void (*visit)(void*, char*, std::size_t, unsigned), void* context) const {
    const std::lock_guard hold(lock_);
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        if ((tag & used_bit) != 0) {
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
    std::uint64_t live = 0;
    std::uint32_t longest_free = 0;
    for (std::size_t page = 0; page < frontier_;) {
        const std::uint64_t tag = tags_[page].load_relaxed();
        if (tag == 0) return "a page of LARGE belongs to no extent";
        const bool used = (tag & used_bit) != 0;
        const std::size_t pages =
            used ? round_up(value_of(tag), os::page_size) / os::page_size : value_of(tag);
        if (pages == 0 || page + pages > frontier_) return "an extent of LARGE has a wrong length";
        if (tags_[page + pages - 1].load_relaxed() != tag) return "tags of an extent disagree";
        if (used) {
            live += value_of(tag);
        } else {
            if (free_before) return "two free extents touch";
            if (nodes_[page].pages != pages) return "node and tag of a free extent disagree";
            longest_free = std::max(longest_free, nodes_[page].pages);
        }
        free_before = !used;
        page += pages;
    }
    if (live != live_bytes_) return "live bytes of LARGE are miscounted";
    return longest(root_) == longest_free ? nullptr : "the tree of free extents is wrong";
}

} // namespace obase::heap
