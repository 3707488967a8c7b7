// SPDX-License-Identifier: MIT
//
// Fraser's skip list: an ordered index without locks (K. Fraser, Practical lock-freedom, 2004,
// section 4.3.3; OBASE Table 2, "SkipList Fraser").
//
// What it is: a sorted list of all nodes, and above it, level by level, lists of half as many. The
// lowest bit of a next pointer is a mark: the node that holds the pointer is being deleted, and the
// pointer never changes again. A key is erased by taking its value out of the node's value guide,
// which becomes null for good; then the node is marked from its top level down, and unlinked.
//
// Written once for all protocols: `Protocol` is obase::plain, obase::arming or obase::atc. Keys and
// values are guided byte strings, and move; the nodes stay. A node has the first 24 bytes of its
// key inline, so a search looks at key objects only where those are equal.
//
//     crestdb::fraser_skip_list<> list(1 << 20);
//     list.put("key", "value");
//     list.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// When not to use it: keys need no order (a hash table is several times as fast), or are many: a
// search visits about two nodes per level, each a cache miss below the topmost (a B+tree has far
// fewer).
//
// Progress: lock-free, all operations. A search that only reads never starts again.
// Reclamation: nodes, keys and values are retired; they are freed when no scope can see them.
// Linearization: a key is there while a node with it is linked at level 0 and holds a value. put at
// the link at level 0, or at the compare-exchange of the value, as update and modify; erase at the
// exchange of the value. get at the load of the value, or where the key was not there at some
// moment of the search (see find()). scan is no snapshot: see crestdb/index.hpp and scan().
// Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the source: reading searches do not descend from marked nodes (from one
// that has long been unlinked below they could miss keys that were inserted since), and a put that
// finds no need to unlink anything searches only once.
#pragma once

#include "crestdb/index.hpp"
#include "crestdb/key_head.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace crestdb {

// Where nodes and the heights of their towers come from. Tests under the deterministic scheduler
// have one of their own.
struct skip_list_surroundings {
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

template <class Protocol = obase::arming, class Surroundings = skip_list_surroundings>
class fraser_skip_list {
  public:
    using protocol = Protocol;
    using scope = obase::basic_scope<Protocol>;
    static constexpr const char* name = "fraser";
    static constexpr bool ordered = true;

    // The height of the towers does not depend on it.
    explicit fraser_skip_list([[maybe_unused]] std::size_t expected_keys)
        : head_(::new(construct_links(max_height)) tower) {}

    ~fraser_skip_list() {
        for (node* n = to_node(head_->next(0).load_relaxed()); n != nullptr;)
            destroy_node(std::exchange(n, to_node(n->next(0).load_relaxed())));
        destroy_links(head_, max_height, sizeof(tower));
    }
    fraser_skip_list(const fraser_skip_list&) = delete;
    fraser_skip_list& operator=(const fraser_skip_list&) = delete;

    template <class Use>
    bool get(std::string_view key, Use&& use) const {
        const scope one_operation;
        const node* n = find(sought(key), no_path{}, quiet{});
        const obase::bytes* value = n != nullptr ? n->value.get() : nullptr;
        if (value == nullptr) return false;
        use(value->view());
        return true;
    }
    bool contains(std::string_view key) const {
        const scope one_operation;
        const node* n = find(sought(key), no_path{}, quiet{});
        return n != nullptr && n->value != nullptr;
    }

    bool put(std::string_view key, std::string_view value) {
        return write(key, value, true) == outcome::inserted;
    }
    bool update(std::string_view key, std::string_view value) {
        return write(key, value, false) == outcome::replaced;
    }

    template <class Make>
    bool modify(std::string_view key, Make&& make) {
        const scope one_operation;
        node* n = find(sought(key), no_path{}, quiet{});
        obase::bytes* seen = n != nullptr ? n->value.get() : nullptr;
        while (seen != nullptr) {
            owner fresh = obase::make_bytes<Protocol>(make(seen->view()));
            // The address is enough: a value that this scope has seen is not freed, so no other
            // one can be there.
            if (n->value.compare_exchange(seen, fresh)) {
                obase::retire(std::move(fresh));
                return true;
            }
        }
        return false;
    }

    template <class Edit>
    bool edit_in_place(std::string_view key, Edit&& edit) {
        const scope one_operation;
        node* n = find(sought(key), no_path{}, quiet{});
        obase::bytes* value = n != nullptr ? n->value.get() : nullptr;
        if (value == nullptr) return false;
        edit(std::span<char>(value->data(), value->size()));
        return true;
    }

    bool erase(std::string_view key) {
        const scope one_operation;
        const sought wanted(key);
        node* victim = find(wanted, no_path{}, quiet{});
        if (victim == nullptr) return false;
        owner value = victim->value.exchange(owner());
        if (!value) return false; // somebody else's erase
        obase::retire(std::move(value));
        count(*victim, -1);
        mark(*victim);
        let_go(*victim, wanted);
        return true;
    }

    // Walks level 0, over deleted nodes too: whatever the walk follows was part of the list at some
    // moment of the scan (find() has the argument), so two neighbours of the walk had nothing
    // between them then, and a key that is there all the time has no place to hide. Pointers lead
    // to larger keys only, so none comes twice.
    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        const scope one_operation;
        lower_bound start;
        const node* at = find(sought(from), start, quiet{});
        if (at == nullptr) at = start.at;
        std::size_t found = 0;
        while (at != nullptr && found < limit) {
            const node* next = to_node(at->next(0).load_acquire());
            prefetch(next);
            if (const obase::bytes* value = at->value.get(); value != nullptr) {
                use(at->key->view(), value->view());
                ++found;
            }
            at = next;
        }
        return found;
    }

    template <class Visit>
    void visit_path(std::string_view key, Visit&& visit) const {
        const scope one_operation;
        const auto report = [&](const obase::bytes& object) -> const obase::bytes& {
            visit(static_cast<const void*>(&object), sizeof(obase::bytes) + object.size());
            return object;
        };
        const node* n = find(sought(key), no_path{},
                             [&](const guide& g) -> decltype(auto) { return report(*g); });
        if (n == nullptr) return;
        if (const obase::bytes* value = n->value.get(); value != nullptr) report(*value);
    }

    std::size_t size() const noexcept { return size_.load_relaxed(); }
    std::size_t index_bytes() const noexcept {
        return sizeof(tower) + max_height * sizeof(link) + size() * sizeof(node) +
               links_.load_relaxed() * sizeof(link);
    }

  private:
    using guide = obase::guide<obase::bytes, Protocol>;
    using owner = obase::owner<obase::bytes, Protocol>;
    using bits = obase::word::bits;
    // A word of the protocol's machine, without the protocol: a node's address and the mark.
    using link = typename Protocol::slot;

    static constexpr unsigned max_height = 24;
    static constexpr unsigned bits_per_level = 1; // a level has 1 in 2^this of the nodes below
    static constexpr bits marked = 1;

    // The links are in front of it, level 0 next to it and so to the head that is compared: a visit
    // at a low level touches one cache line or two neighbours.
    struct tower {
        link& next(unsigned level) noexcept {
            return *(reinterpret_cast<link*>(this) - 1 - static_cast<std::ptrdiff_t>(level));
        }
        const link& next(unsigned level) const noexcept {
            return const_cast<tower*>(this)->next(level);
        }
    };
    struct node : tower {
        node(const long_key_head& h, unsigned height, owner&& k, owner&& v) noexcept
            : head(h), height_and_hands(height * height_unit + (height > 1 ? 2 : 1)),
              value(std::move(v)), key(std::move(k)) {}

        // Whose steps must all be done before the node can be retired: the inserter's, who links
        // levels above 0, and the eraser's. A node without levels above 0 begins without the first.
        static constexpr bits height_unit = 256;
        unsigned height() const noexcept {
            return static_cast<unsigned>(height_and_hands.load_relaxed() / height_unit);
        }
        bool last_hand_lets_go() noexcept {
            // Acquires what the other hand did, so that its links are seen and unlinked.
            return height_and_hands.fetch_sub_acq_rel(1) % height_unit == 1;
        }

        const long_key_head head;
        link height_and_hands;
        guide value; // null: erased, for good
        const guide key;
    };

    struct sought {
        explicit sought(std::string_view key) noexcept : text(key), head(long_key_head::of(key)) {}
        std::string_view text;
        long_key_head head;
    };

    // What a search may leave behind: per level the last node before the key, and the one after.
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

    // How a search looks at key objects; visit_path() puts one that reports in its place.
    struct quiet {
        const obase::bytes& operator()(const guide& g) const noexcept { return *g; }
    };

    static node* to_node(bits word) noexcept {
        return static_cast<node*>(reinterpret_cast<tower*>(word & ~marked));
    }
    static bits to_word(const tower* t) noexcept { return reinterpret_cast<bits>(t); }
    static bool is_marked(bits word) noexcept { return (word & marked) != 0; }
    static void prefetch(const tower* t) noexcept { __builtin_prefetch(t); }

    template <class Read>
    static std::strong_ordering compare(const node& n, const sought& key, const Read& read) {
        if (const auto order = n.head <=> key.head; order != 0) return order;
        return read(n.key).view() <=> key.text;
    }

    // The node with the key, or null; it may have been erased. Writes nothing and never starts
    // again. A path is recorded down to level 0 if the result is null. In a scope.
    //
    // Why what it says was true at some moment of the search: call a node in the list at level i
    // while it can be reached there. A node with an unmarked link at level i that has been linked
    // there is in the list at level i. Nodes are linked from level 0 up and marked from the top
    // down, so one that is seen at level i with an unmarked link is in the list at level 0 as well.
    // The search descends only from such nodes. Let it stand on a node that was in the list at
    // level 0 at moment t of the search, and follow its link there. If the link is unmarked, the
    // successor is in the list now. If it was marked after t, the successor was in the list at that
    // moment, because the link has not changed since; if before t, at t. So at some moment of the
    // search the last node before the key and the first one not before it were in the list and
    // neighbours.
    template <class Path, class Read>
    node* find(const sought& key, Path&& way, const Read& read) const {
        tower* before = head_;
        const node* known_after = nullptr;
        for (unsigned level = levels(); level-- > 0;) {
            node* at = to_node(before->next(level).load_acquire());
            while (at != nullptr && at != known_after) {
                if (level > 0) prefetch(to_node(before->next(level - 1).load_relaxed()));
                const auto order = compare(*at, key, read);
                if (order > 0) {
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
        return nullptr;
    }

    // As find(), and unlinks the marked nodes it meets; the path's nodes were neighbours, unmarked,
    // at some moment. `past_equal`: goes on to the first node behind those with the key, so that
    // it meets all of those. Starts again when the node it stands on has been marked, which is
    // somebody else's progress.
    template <bool past_equal, class Path>
    node* unlink(const sought& key, Path&& way) {
    again:
        tower* before = head_;
        for (unsigned level = levels(); level-- > 0;) {
            for (;;) {
                bits first = before->next(level).load_acquire();
                if (is_marked(first)) goto again;
                node* at = to_node(first);
                for (bits next; at != nullptr && is_marked(next = at->next(level).load_acquire());)
                    at = to_node(next);
                // A whole run at once. Its links are frozen, so `at` is still behind it.
                if (at != to_node(first) && !before->next(level).cas_release(first, to_word(at)))
                    continue;
                const auto order =
                    at == nullptr ? std::strong_ordering::greater : compare(*at, key, quiet{});
                if (order < 0 || (past_equal && order == 0)) {
                    before = at;
                    continue;
                }
                way.record(level, before, at);
                if (level == 0 && order == 0) return at;
                break;
            }
        }
        return nullptr;
    }

    enum class outcome { inserted, replaced, absent };

    outcome write(std::string_view key, std::string_view value, bool insert) {
        const scope one_operation;
        const sought wanted(key);
        owner fresh = obase::make_bytes<Protocol>(value);
        path way;
        unsigned recorded = levels();
        node* there = find(wanted, way, quiet{});
        for (std::unique_ptr<node, unpublished> added;;) {
            if (there != nullptr) {
                for (obase::bytes* seen = there->value.get(); seen != nullptr;) {
                    if (there->value.compare_exchange(seen, fresh)) {
                        obase::retire(std::move(fresh));
                        return outcome::replaced;
                    }
                }
                if (!insert) return outcome::absent;
                // Being erased. It has to be out of level 0 before there is another one.
                mark(*there);
            } else {
                if (!insert) return outcome::absent;
                if (added == nullptr) {
                    added = make_node(wanted, fresh);
                    raise_levels(added->height());
                    for (; recorded < added->height(); ++recorded)
                        way.record(recorded, head_, nullptr);
                } else {
                    added->value = std::move(fresh);
                }
                for (unsigned level = 0; level < added->height(); ++level)
                    added->next(level).store_relaxed(to_word(way.after[level]));
                bits expected = to_word(way.after[0]);
                // Counted first: otherwise somebody else's erase might take the count below zero.
                count(*added, 1);
                if (way.before[0]->next(0).cas_release(expected, to_word(added.get()))) {
                    node& linked = *added.release();
                    if (linked.height() > 1) link_upper(linked, wanted, way);
                    return outcome::inserted;
                }
                count(*added, -1);
                fresh = added->value.release();
            }
            there = unlink<false>(wanted, way);
        }
    }

    // The inserter's second part.
    void link_upper(node& added, const sought& key, path& way) {
        for (unsigned level = 1; level < added.height(); ++level) {
            for (;;) {
                // Only its eraser changes the link of a node that is not linked at this level, to
                // mark it. Once it is marked, linking it further would be work for nothing, though
                // no harm: see let_go().
                const bits after = to_word(way.after[level]);
                bits next = added.next(level).load_acquire();
                if (is_marked(next) ||
                    (next != after && !added.next(level).cas_release(next, after)))
                    return let_go(added, key);
                bits expected = after;
                if (way.before[level]->next(level).cas_release(expected, to_word(&added))) break;
                unlink<false>(key, way);
            }
        }
        let_go(added, key);
    }

    // From the top down: a node that is unmarked at some level is unmarked below. Repeated by those
    // who help.
    static void mark(node& victim) noexcept {
        for (unsigned level = victim.height(); level-- > 0;)
            victim.next(level).fetch_or_acq_rel(marked);
    }

    // Ends the inserter's or the eraser's work on the node; who is last unlinks and retires it.
    //
    // Why nobody can get to the node afterwards. The inserter has done its last link and all levels
    // are marked. A node comes into a level's list once, by its inserter. Unlinking others does not
    // bring it back: that makes a link skip marked nodes, whose links are frozen, so it reaches
    // nothing that it did not reach before. So from here on the node can only leave lists, and one
    // walk per level over all nodes with its key is enough. Over all of them: at a level above 0
    // there can be a newer node with the same key in front of it, whose inserter saw the old
    // one there before it was marked, and linked its own before it.
    void let_go(node& n, const sought& key) {
        if (!n.last_hand_lets_go()) return;
        unlink<true>(key, no_path{});
        Protocol::retire(&n, &destroy_node, sizeof(node) + n.height() * sizeof(link));
    }

    void count(const node& n, int sign) noexcept {
        size_.fetch_add_relaxed(static_cast<bits>(sign));
        links_.fetch_add_relaxed(static_cast<bits>(sign * static_cast<int>(n.height())));
    }

    unsigned levels() const noexcept { return static_cast<unsigned>(levels_.load_relaxed()); }
    // Before the node is published, so who meets it searches all its levels.
    void raise_levels(unsigned height) noexcept {
        for (bits seen = levels_.load_relaxed(); seen < height;)
            if (levels_.cas_relaxed(seen, height)) break;
    }

    static unsigned random_height() noexcept {
        const auto zeros =
            static_cast<unsigned>(std::countr_zero(Surroundings::random() | 1ull << 63));
        return std::min(1 + zeros / bits_per_level, max_height);
    }

    // Memory for `height` links, made, and a tower behind them, not made.
    static void* construct_links(unsigned height, std::size_t tower_bytes = sizeof(tower)) {
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
    static void destroy_node(void* memory) noexcept {
        node* n = static_cast<node*>(memory);
        const unsigned height = n->height();
        n->~node();
        destroy_links(n, height, sizeof(node));
    }
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

    tower* const head_;
    link levels_{1}; // in use; only grows
    // Written by every insertion: away from what searches read.
    alignas(64) link size_;
    link links_;
};

} // namespace crestdb
