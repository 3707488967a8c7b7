// SPDX-License-Identifier: MIT
//
// skip_list_towers: what CrestDB's skip lists have in common: how nodes lie in memory, how high
// they are, and how a key is searched (W. Pugh, Skip Lists: A Probabilistic Alternative to Balanced
// Trees, CACM 1990).
//
// A sorted list of all nodes at level 0, and above it, level by level, lists of half as many. A
// node's links lie in front of it, level 0 next to it:
//
//    next(height - 1) ... next(1) next(0) | tower | head of the key | value | key
//
// so that a visit at a low level touches one cache line or two neighbours. A node has the first 24
// bytes of its key inline, so a search looks at key objects only where those are equal.
//
// A list is made of a `Tower` (this base, and what all towers of that list need, such as a lock)
// and a `Node` (a skip_list_node with that tower). If a list marks the nodes it deletes in their
// links, `Mark` is the bit.
//
// Internal to the two concurrent skip lists, which are both searched as below.
//
// Threads: those of the list. Links are atomics, because lists without locks share this code; their
// type is that of the protocol's words, so that tests can put the scheduler's in its place.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/key_head.hpp"
#include "crestdb/spin_lock.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace crestdb {

// Where nodes and the heights of their towers come from, and what waiting is. Tests under the
// deterministic scheduler have one of their own.
struct skip_list_surroundings : spinning {
    static void* allocate(std::size_t bytes) { return ::operator new(bytes); }
    static void deallocate(void* memory, std::size_t) noexcept { ::operator delete(memory); }
    // Uniformly distributed bits; xorshift64.
    static std::uint64_t random() noexcept {
        static constinit thread_local std::uint64_t state = 0;
        if (state == 0) // the address tells threads apart
            state = reinterpret_cast<std::uint64_t>(&state) * 0x9e3779b97f4a7c15u | 1;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

template <class Protocol>
struct skip_list_tower {
    // A word of the protocol's machine, without the protocol: a tower's address, and the mark.
    using link = typename Protocol::slot;

    link& next(unsigned level) noexcept {
        return *(reinterpret_cast<link*>(this) - 1 - static_cast<std::ptrdiff_t>(level));
    }
    const link& next(unsigned level) const noexcept {
        return const_cast<skip_list_tower*>(this)->next(level);
    }
};

template <class Protocol, class Tower = skip_list_tower<Protocol>>
struct skip_list_node : Tower {
    using tower = Tower;
    using guide = obase::guide<obase::bytes, Protocol>;
    using owner = obase::owner<obase::bytes, Protocol>;

    template <class... OfTower>
    skip_list_node(const long_key_head& h, owner&& k, owner&& v, OfTower... of_tower) noexcept
        : Tower(of_tower...), head(h), value(std::move(v)), key(std::move(k)) {}

    const long_key_head head;
    guide value;
    const guide key;
};

template <class Protocol, class Surroundings, class Node, obase::word::bits Mark = 0>
class skip_list_towers {
  protected:
    using node = Node;
    using tower = typename Node::tower;
    using link = typename tower::link;
    using bits = obase::word::bits;
    using guide = typename Node::guide;
    using owner = typename Node::owner;

    static constexpr unsigned max_height = 24;
    static constexpr unsigned bits_per_level = 1; // a level has 1 in 2^this of the nodes below

    skip_list_towers() : head_(::new(construct_links(max_height, sizeof(tower))) tower()) {}
    ~skip_list_towers() {
        for (node* n = to_node(head_->next(0).load_relaxed()); n != nullptr;)
            destroy_node(std::exchange(n, to_node(n->next(0).load_relaxed())));
        std::destroy_at(head_);
        destroy_links(head_, max_height, sizeof(tower));
    }
    skip_list_towers(const skip_list_towers&) = delete;
    skip_list_towers& operator=(const skip_list_towers&) = delete;

    struct sought {
        explicit sought(std::string_view key) noexcept : text(key), head(long_key_head::of(key)) {}
        std::string_view text;
        long_key_head head;
    };

    // The path of a search: per level the last node before the key, and the one after.
    struct no_path {
        void record(unsigned, tower*, node*) noexcept {}
    };
    struct lower_bound {
        void record(unsigned, tower*, node* n) noexcept { at = n; }
        node* at = nullptr;
    };
    struct path {
        void record(unsigned level, tower* b, node* a) noexcept {
            before[level] = b;
            after[level] = a;
        }
        tower* before[max_height];
        node* after[max_height];
    };

    static node* to_node(bits word) noexcept {
        return static_cast<node*>(reinterpret_cast<tower*>(word & ~Mark));
    }
    static bits to_word(const tower* t) noexcept { return reinterpret_cast<bits>(t); }
    static bool is_marked(bits word) noexcept { return (word & Mark) != 0; }
    static void prefetch(const tower* t) noexcept { __builtin_prefetch(t); }

    template <class Read>
    static std::strong_ordering compare(const node& n, const sought& key, const Read& read) {
        if (const auto order = n.head <=> key.head; order != 0) return order;
        return read(n.key)->view() <=> key.text;
    }

    // The node with the key, or null; it may have been erased. Writes nothing and never starts
    // again. A path is recorded down to level 0 if the result is null, or if the search goes on
    // `to_the_bottom` when it has found the key; then level 0 decides. Precondition: inside a
    // scope.
    template <bool to_the_bottom = false, class Path, class Read>
    node* find(const sought& key, Path&& way, const Read& read) const {
        tower* before = head_;
        const node* known_after = nullptr;
        node* at = nullptr;
        const node* same = nullptr;
        for (unsigned level = levels(); level-- > 0;) {
            at = to_node(before->next(level).load_acquire());
            while (at != nullptr && at != known_after) {
                if (level > 0) prefetch(to_node(before->next(level - 1).load_relaxed()));
                const auto order = compare(*at, key, read);
                if (to_the_bottom && order == 0) same = at;
                if (order > 0 || (to_the_bottom && order == 0)) {
                    known_after = at;
                    break;
                }
                if (order == 0) {
                    // An erased one may still be linked at a high level when the key's new node is
                    // in the list below.
                    if (level == 0 || at->value != nullptr) return at;
                    break;
                }
                const bits next = at->next(level).load_acquire();
                if (!is_marked(next)) before = at;
                at = to_node(next);
            }
            way.record(level, before, at);
        }
        return at == same ? at : nullptr;
    }

    unsigned levels() const noexcept { return static_cast<unsigned>(levels_.load_relaxed()); }
    // Before the node is published, so who meets it searches all its levels.
    void raise_levels(unsigned height) noexcept {
        for (bits seen = levels_.load_relaxed(); seen < height;)
            if (levels_.cas_relaxed(seen, height)) break;
    }
    // Levels [recorded, height), which a search did not have: they were empty then.
    void record_empty(path& way, unsigned recorded, unsigned height) const noexcept {
        for (; recorded < height; ++recorded) way.record(recorded, head_, nullptr);
    }

    // A node that no other thread has yet.
    struct unpublished {
        void operator()(node* n) const noexcept { destroy_node(n); }
    };
    static std::unique_ptr<node, unpublished> make_node(const sought& key, owner& value) {
        owner text = obase::make_bytes<Protocol>(key.text);
        const unsigned height = random_height();
        void* memory = construct_links(height, sizeof(node));
        return std::unique_ptr<node, unpublished>(
            ::new (memory) node(key.head, height, std::move(text), std::move(value)));
    }
    static void destroy_node(void* memory) noexcept {
        node* n = static_cast<node*>(memory);
        const unsigned height = n->height();
        n->~node();
        destroy_links(n, height, sizeof(node));
    }
    // When no search that begins now can reach it.
    static void retire_node(node* n) noexcept {
        Protocol::retire(n, &destroy_node, sizeof(node) + n->height() * sizeof(link));
    }

    void count(const node& n, int sign) noexcept {
        size_.fetch_add_relaxed(static_cast<bits>(sign));
        links_.fetch_add_relaxed(static_cast<bits>(sign * static_cast<int>(n.height())));
    }

  public:
    std::size_t size() const noexcept { return size_.load_relaxed(); }
    std::size_t index_bytes() const noexcept {
        return sizeof(tower) + max_height * sizeof(link) + size() * sizeof(node) +
               links_.load_relaxed() * sizeof(link);
    }

  private:
    static unsigned random_height() noexcept {
        const auto zeros =
            static_cast<unsigned>(std::countr_zero(Surroundings::random() | 1ull << 63));
        return std::min(1 + zeros / bits_per_level, max_height);
    }

    // Memory for `height` links, made, and a tower behind them, not made.
    static void* construct_links(unsigned height, std::size_t tower_bytes) {
        static_assert(alignof(node) <= alignof(link));
        auto* first =
            static_cast<link*>(Surroundings::allocate(height * sizeof(link) + tower_bytes));
        std::uninitialized_value_construct_n(first, height);
        return first + height;
    }
    static void destroy_links(tower* t, unsigned height, std::size_t tower_bytes) noexcept {
        link* first = reinterpret_cast<link*>(t) - height;
        std::destroy_n(first, height);
        Surroundings::deallocate(first, height * sizeof(link) + tower_bytes);
    }

  protected:
    tower* const head_;

  private:
    link levels_{1}; // in use; only grows
    // Written by every insertion: away from what searches read.
    alignas(64) link size_;
    link links_;
};

} // namespace crestdb
