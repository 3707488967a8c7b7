// SPDX-License-Identifier: MIT
//
// A B+tree under one lock (R. Bayer, E. McCreight, Organization and Maintenance of Large Ordered
// Indexes, Acta Informatica 1972; D. Comer, The Ubiquitous B-Tree, ACM Computing Surveys 1979),
// shared by the threads through a reader-writer lock (coarse_index.hpp; OBASE Table 2, "B+Tree
// Coarse").
//
// All keys are in leaves, which are linked in order; inner nodes lead to them. All leaves are
// equally deep. A node that is full is split; one that has become too empty borrows from a
// neighbour or is merged with it, so that every node but the root is at least 3/8 full and memory
// is given back as keys go.
//
//     crestdb::coarse_btree<> tree(1 << 20);
//     tree.put("key", "value");
//     tree.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Leaves have a sorted list of words, each with seven bytes of a key, in front of the guides
// (btree_entries.hpp). The bytes are those behind what all keys of the leaf begin with. A leaf
// knows only how many those are: they are what its lower and its upper separator have in common, so
// they need not be compared, and no insertion can make them fewer (G. Graefe, Modern B-Tree
// Techniques, 2011, calls the separators fences). Inner nodes are blocks of ordinary memory
// (btree_routes.hpp), each change makes a new one. So a search dereferences the key it finds and,
// unless heads are equal, no other.
//
// Limits: it does not scale with threads (in occ_btree.hpp readers lock nothing). Slow are keys
// that agree in more than seven bytes behind the separators of their leaf, or that are in the first
// or the last leaf, which have only one separator, and agree in their first seven: there a search
// is a binary search over key objects.
//
// Progress, linearization, scan, threads: coarse_index.hpp. Reclamation: keys and values are
// retired; nodes are freed at once, because no thread is in one without the lock.
//
// Where it differs from the source: nodes may be 3/8 full instead of half, so that a split is not
// undone by the next erasure, and neighbours are merged if 1/8 is free afterwards; they share their
// entries evenly when they do not fit into one. Separators are no keys but shortest strings between
// them (Bayer, Unterauer, TODS 1977). A full inner node is split before its child is, and the
// insertion starts again, so that whatever fails for want of memory leaves a tree.
//
// Cost: a get among a million keys waits for four cache lines in turn: the leaf (its list is
// fetched with it), the slot, the key, and, fetched while the key is compared, the value.
#pragma once

#include "crestdb/coarse_index.hpp"
#include "crestdb/tree/btree_entries.hpp"
#include "crestdb/tree/btree_routes.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/retire.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crestdb {

struct coarse_btree_shape {
    static constexpr unsigned leaf_entries = 64;
    static constexpr unsigned fanout = 128;
};

// For one thread that changes it, or any number that only search.
template <class Protocol, class Shape>
class basic_sequential_btree : private btree_entries<Shape::leaf_entries> {
    using words = btree_entries<Shape::leaf_entries>;
    using typename words::entry;
    using words::head_of;
    using words::leaf_entries;
    using words::slot_of;

  public:
    using guide = obase::guide<obase::bytes, Protocol>;
    using owner = obase::owner<obase::bytes, Protocol>;
    static constexpr const char* name = "coarse-btree";

    // The tree grows as it needs to; the number is not used.
    explicit basic_sequential_btree(std::size_t /*expected_keys*/ = 0)
        : root_(new leaf), bytes_(sizeof(leaf)) {}
    ~basic_sequential_btree() { destroy(root_, depth_); }
    basic_sequential_btree(const basic_sequential_btree&) = delete;
    basic_sequential_btree& operator=(const basic_sequential_btree&) = delete;

    template <class Read>
    guide* find(std::string_view key, const Read& read) const {
        no_trail none;
        leaf& l = descend(key, none);
        const place p = search<true>(l, key, read);
        return p.there ? &l.pairs[p.slot].value : nullptr;
    }

    guide* insert(std::string_view key, owner& value) {
        for (;;) {
            trail path;
            leaf& l = descend(key, path);
            const place p = search(l, key, plain_access{});
            if (p.there) return &l.pairs[p.slot].value;
            if (l.count != leaf_entries) {
                l.insert(p.index, head_of(key, l.skip), obase::make_bytes<Protocol>(key),
                         std::move(value));
                ++size_;
                return nullptr;
            }
            make_room(path, l, p.index);
        }
    }

    bool remove(std::string_view key) {
        trail path;
        leaf& l = descend(key, path);
        const place p = search(l, key, plain_access{});
        if (!p.there) return false;
        l.remove(p);
        --size_;
        if (l.count < few_entries) {
            try {
                balance(path);
            } catch (const std::bad_alloc&) {
                // The node stays as empty as it is.
            }
        }
        return true;
    }

    template <class Take>
    void walk(std::string_view from, Take&& take) const {
        no_trail none;
        const leaf* l = &descend(from, none);
        unsigned i = search(*l, from, plain_access{}).index;
        for (; l != nullptr; l = l->next, i = 0) {
            for (; i < l->count; ++i) {
                const typename leaf::pair& pair = l->pairs[slot_of(l->entries[i])];
                if (!take(pair.key, pair.value)) return;
            }
        }
    }

    std::size_t size() const noexcept { return size_; }
    std::size_t index_bytes() const noexcept { return sizeof(*this) + bytes_; }

    // True if all invariants above hold, for tests. `short_of_memory`: it was, and nodes may be
    // emptier than they should be. Precondition: inside a scope.
    bool well_formed(bool short_of_memory = false) const {
        audit a{short_of_memory};
        return well_formed(root_, 0, {}, a) && a.last == nullptr && a.size == size_ &&
               a.bytes == bytes_;
    }

  private:
    struct node {};
    using routes = btree_routes<node>;
    using content_pointer = typename routes::pointer;
    using routes_draft = typename routes::template draft<Shape::fanout>;

    // No node but the root has fewer, unless memory was short. What a split leaves is not fewer.
    static constexpr unsigned few_entries = leaf_entries / 2 - leaf_entries / 8;
    static constexpr unsigned few_children = Shape::fanout / 2 - Shape::fanout / 8;
    // Of two neighbours that are made one.
    static constexpr unsigned most_merged_entries = leaf_entries * 7 / 8;
    static constexpr unsigned most_merged_children = Shape::fanout * 7 / 8;
    static_assert(leaf_entries >= 4 && Shape::fanout >= 4);

    struct inner : node {
        content_pointer content;
    };

    struct place {
        unsigned index; // in the list; if not there: where it would be
        unsigned slot;  // if there
        bool there;
    };

    struct alignas(64) leaf : node {
        struct pair {
            guide key, value;
        };

        unsigned count = 0;
        // Where heads begin. At most what the leaf's two separators have in common; 0 without one.
        std::size_t skip = 0;
        std::uint64_t used = 0; // slots, a bit each
        leaf* next = nullptr;
        alignas(64) std::array<entry, leaf_entries> entries;
        std::array<pair, leaf_entries> pairs;

        void insert(unsigned index, entry head, owner key, owner value) noexcept {
            const auto slot = static_cast<unsigned>(std::countr_one(used));
            used |= std::uint64_t{1} << slot;
            pairs[slot].key = std::move(key);
            pairs[slot].value = std::move(value);
            open(index, 1);
            entries[index] = head | slot;
        }
        void remove(const place& p) noexcept {
            close(p.index, 1);
            used &= ~(std::uint64_t{1} << p.slot);
            obase::retire(pairs[p.slot].key.release());
            obase::retire(pairs[p.slot].value.release());
        }
        // Entries [begin, end) of another leaf, whose heads begin where these do.
        void take(unsigned index, leaf& from, unsigned begin, unsigned end) noexcept {
            assert(skip == from.skip && count + (end - begin) <= leaf_entries);
            open(index, end - begin);
            for (unsigned i = begin; i < end; ++i, ++index) {
                const unsigned old_slot = slot_of(from.entries[i]);
                const auto slot = static_cast<unsigned>(std::countr_one(used));
                used |= std::uint64_t{1} << slot;
                from.used &= ~(std::uint64_t{1} << old_slot);
                pairs[slot].key = from.pairs[old_slot].key.release();
                pairs[slot].value = from.pairs[old_slot].value.release();
                entries[index] = head_of(from.entries[i]) | slot;
            }
            from.close(begin, end - begin);
        }
        // The keys agree only in `size` bytes any more; `common`: in which they did.
        void shorten_skip(std::size_t size, joined_text common) noexcept {
            const std::size_t more = skip - size;
            if (more == 0) return;
            std::array<char, words::head_bytes> gone;
            const std::size_t seen = std::min(more, gone.size());
            for (std::size_t i = 0; i < seen; ++i) gone[i] = common[size + i];
            const entry front = head_of(std::string_view(gone.data(), seen), 0);
            for (unsigned i = 0; i < count; ++i)
                entries[i] = words::begin_earlier(entries[i], front, more);
            skip = size;
        }

      private:
        void open(unsigned index, unsigned n) noexcept {
            std::copy_backward(entries.begin() + index, entries.begin() + count,
                               entries.begin() + count + n);
            count += n;
        }
        void close(unsigned index, unsigned n) noexcept {
            std::copy(entries.begin() + index + n, entries.begin() + count,
                      entries.begin() + index);
            count -= n;
        }
    };

    static leaf& as_leaf(node* n) noexcept { return *static_cast<leaf*>(n); }
    static inner& as_inner(node* n) noexcept { return *static_cast<inner*>(n); }

    struct step {
        inner* node;
        unsigned index; // of the child that was taken
    };
    // The inner nodes of a descent, the root first. Each has two children at least.
    struct trail {
        unsigned depth = 0;
        std::array<step, 64> steps;
        void operator()(const step& s) noexcept { steps[depth++] = s; }
    };
    struct no_trail {
        void operator()(const step&) const noexcept {}
    };

    template <class Trail>
    leaf& descend(std::string_view key, Trail& note) const noexcept {
        node* here = root_;
        for (unsigned level = 0; level != depth_; ++level) {
            inner& i = as_inner(here);
            const unsigned index = i.content->find(key);
            here = i.content->child(index);
            if (level + 1 == depth_) prefetch(here);
            note({&i, index});
        }
        return as_leaf(here);
    }
    // A binary search would wait for one line after the other. The last lines of a list are seldom
    // in use.
    static void prefetch(const node* n) noexcept {
        constexpr std::size_t searched = 64 + leaf_entries * sizeof(entry) * 3 / 4;
        const char* lines = reinterpret_cast<const char*>(n);
        for (std::size_t at = 0; at < searched; at += 64) __builtin_prefetch(lines + at);
    }

    static void prefetch(const guide& g) noexcept {
        if constexpr (requires { g.prefetch(); })
            g.prefetch(); // of a plain pointer, whose load would be an access
        else
            __builtin_prefetch(g.peek());
    }

    // The key begins with what all keys of the leaf begin with: it is between the same separators.
    // `value_follows`: the value is going to be looked at, so it may be fetched while the key is
    // compared; that is no access.
    template <bool value_follows = false, class Read>
    static place search(const leaf& l, std::string_view key, const Read& read) {
        const entry head = head_of(key, l.skip);
        // Heads below the key's; no branch depends on the comparisons.
        unsigned begin = 0;
        for (unsigned left = l.count; left != 0;) {
            const unsigned half = (left + 1) / 2;
            begin += l.entries[begin + half - 1] < head ? half : 0;
            left -= half;
        }
        unsigned end = begin;
        while (end != l.count && head_of(l.entries[end]) == head) ++end;
        // Equal heads, nearly always one.
        while (begin != end) {
            const unsigned middle = begin + (end - begin) / 2;
            const unsigned slot = slot_of(l.entries[middle]);
            if constexpr (value_follows) prefetch(l.pairs[slot].value);
            const int order = read(l.pairs[slot].key)->view().compare(key);
            if (order == 0) return {middle, slot, true};
            if (order < 0)
                begin = middle + 1;
            else
                end = middle;
        }
        return {begin, 0, false};
    }

    // The separators on both sides of a node or of neighbours.
    struct fences {
        std::optional<joined_text> lower, upper;

        std::size_t common() const noexcept {
            return lower && upper ? common_bytes(*lower, *upper) : 0;
        }
    };
    // Of children [first, last] of the inner node at `level` of a path.
    static fences fences_of(const trail& path, unsigned level, unsigned first, unsigned last) {
        fences f;
        for (;;) {
            const routes& r = *path.steps[level].node->content;
            if (!f.lower && first != 0) f.lower = r.separator(first - 1);
            if (!f.upper && last + 1 != r.children_count()) f.upper = r.separator(last);
            if (level-- == 0 || (f.lower && f.upper)) return f;
            first = last = path.steps[level].index;
        }
    }

    // The separator of the entries cut - 1 and cut. `common`: the common prefix of the leaf's keys.
    static std::string separator_at(const leaf& l, const std::optional<joined_text>& common,
                                    unsigned cut) {
        const entry below = l.entries[cut - 1], above = l.entries[cut];
        if (head_of(below) != head_of(above))
            return words::separator(l.skip == 0 ? std::string() : common->text().substr(0, l.skip),
                                    below, above);
        const std::string_view low = l.pairs[slot_of(below)].key->view();
        const std::string_view high = l.pairs[slot_of(above)].key->view();
        return std::string(high.substr(0, common_bytes(low, high) + 1));
    }

    // Heads that agree in their first bytes decide little: begins them behind what the separators
    // have in common, if that is more. This dereferences all keys; as it gains two bytes or more
    // each time, it is rare.
    static void sharpen(leaf& l, const fences& f) noexcept {
        if (l.count < 2 || words::equal_bytes(l.entries[0], l.entries[l.count - 1]) < 2) return;
        const std::size_t common = f.common();
        if (common <= l.skip) return;
        l.skip = common;
        for (unsigned i = 0; i < l.count; ++i) {
            const unsigned slot = slot_of(l.entries[i]);
            l.entries[i] = head_of(l.pairs[slot].key->view(), common) | slot;
        }
    }

    // Splits the leaf, or if inner nodes above it are full, the topmost that has no full one above.
    void make_room(const trail& path, leaf& full, unsigned index) {
        unsigned level = path.depth;
        while (level != 0 && children_of(path, level - 1) == Shape::fanout) --level;
        if (level == path.depth)
            split_leaf(path, full, index);
        else
            split_inner(path, level);
    }
    static unsigned children_of(const trail& path, unsigned level) noexcept {
        return path.steps[level].node->content->children_count();
    }

    // The routes above two nodes that were one, at `level`: the parent's content, or a new root.
    struct growth {
        content_pointer content;
        std::unique_ptr<inner> root;
    };
    growth grow(const trail& path, unsigned level, node* left, node* right,
                std::string_view separator) const {
        growth g;
        routes_draft d;
        if (level == 0) {
            g.root = std::make_unique<inner>();
            d.add(left, {});
            d.add(right, {separator, {}});
        } else {
            const auto& [parent, index] = path.steps[level - 1];
            d.add(*parent->content, 0, index + 1);
            d.add(right, {separator, {}});
            d.add(*parent->content, index + 1, parent->content->children_count());
        }
        g.content = routes::make(d, level == depth_);
        return g;
    }
    void put_in_place(const trail& path, unsigned level, growth g) noexcept {
        if (level != 0) {
            set_content(*path.steps[level - 1].node, std::move(g.content));
            return;
        }
        bytes_ += sizeof(inner);
        set_content(*g.root, std::move(g.content));
        root_ = g.root.release();
        ++depth_;
    }
    void set_content(inner& n, content_pointer content) noexcept {
        bytes_ += content->bytes();
        if (n.content) bytes_ -= n.content->bytes();
        n.content = std::move(content);
    }

    // `index`: where a key is going to be inserted.
    void split_leaf(const trail& path, leaf& full, unsigned index) {
        constexpr unsigned n = leaf_entries;
        const unsigned level = path.depth;
        fences f;
        if (level != 0) {
            const unsigned self = path.steps[level - 1].index;
            f = fences_of(path, level - 1, self, self);
        }
        const unsigned cut = choose_cut(full, index);
        const std::string separator = separator_at(full, f.lower, cut);
        auto added = std::make_unique<leaf>();
        growth above = grow(path, level, &full, added.get(), separator);
        // From here on nothing fails.
        leaf& right = *added.release();
        bytes_ += sizeof(leaf);
        right.skip = full.skip;
        right.take(0, full, cut, n);
        right.next = std::exchange(full.next, &right);
        sharpen(full, {f.lower, joined_text{separator, {}}});
        sharpen(right, {joined_text{separator, {}}, f.upper});
        put_in_place(path, level, std::move(above));
    }
    // Keys that come in ascending or descending order leave behind leaves as full as may be; else
    // near the middle, where the shortest separator is.
    static unsigned choose_cut(const leaf& full, unsigned index) noexcept {
        constexpr unsigned n = leaf_entries;
        if (index == n) return n - few_entries;
        if (index == 0) return few_entries;
        const auto bytes = [&](unsigned cut) {
            return words::equal_bytes(full.entries[cut - 1], full.entries[cut]);
        };
        unsigned best = n / 2;
        for (unsigned away = 1; away <= n / 2 - few_entries; ++away)
            for (const unsigned cut : {n / 2 - away, n / 2 + away})
                if (bytes(cut) < bytes(best)) best = cut;
        return best;
    }

    void split_inner(const trail& path, unsigned level) {
        inner& full = *path.steps[level].node;
        const routes& r = *full.content;
        const unsigned n = r.children_count(), cut = n / 2;
        const auto part = [&](unsigned from, unsigned to) {
            routes_draft d;
            d.add(r, from, to);
            return routes::make(d, r.to_leaves());
        };
        content_pointer lower = part(0, cut), upper = part(cut, n);
        auto right = std::make_unique<inner>();
        growth above = grow(path, level, &full, right.get(), r.separator(cut - 1).text());
        // From here on nothing fails.
        bytes_ += sizeof(inner);
        set_content(full, std::move(lower));
        set_content(*right.release(), std::move(upper));
        put_in_place(path, level, std::move(above));
    }

    // The leaf at the end of the path has too few entries. Each step leaves a tree.
    void balance(const trail& path) {
        for (unsigned level = path.depth; level-- != 0;) {
            // A lone child has no sibling to borrow from. Only want of memory leaves one.
            if (const unsigned n = children_of(path, level); n != 1) {
                const unsigned index = path.steps[level].index;
                const unsigned left = index == 0 ? 0 : index - 1;
                if (level + 1 == path.depth)
                    balance_leaves(path, level, left);
                else
                    balance_inners(path, level, left);
            }
            if (children_of(path, level) >= few_children) break;
        }
        while (depth_ != 0 && as_inner(root_).content->children_count() == 1) {
            inner* old = &as_inner(root_);
            root_ = old->content->child(0);
            --depth_;
            delete_inner(old);
        }
    }

    // A node's content without child `index` + 1, or with another separator in front of it.
    static content_pointer without(const routes& r, unsigned index) {
        routes_draft d;
        d.add(r, 0, index + 1);
        d.add(r, index + 2, r.children_count());
        return routes::make(d, r.to_leaves());
    }
    static content_pointer with_separator(const routes& r, unsigned index,
                                          std::string_view separator) {
        routes_draft d;
        d.add(r, 0, index + 1);
        d.add(r.child(index + 1), {separator, {}});
        d.add(r, index + 2, r.children_count());
        return routes::make(d, r.to_leaves());
    }

    // Children `at` and `at` + 1 of the inner node at `level`.
    void balance_leaves(const trail& path, unsigned level, unsigned at) {
        inner& parent = *path.steps[level].node;
        const routes& above = *parent.content;
        leaf &left = as_leaf(above.child(at)), &right = as_leaf(above.child(at + 1));
        const unsigned total = left.count + right.count;
        const fences f = fences_of(path, level, at, at + 1);
        // What the outer separators have in common is the least of what either has in common with
        // the one between them.
        const std::size_t skip = std::min(left.skip, right.skip);
        // A leaf that has to begin its heads earlier has two separators.
        if (left.skip != skip) left.shorten_skip(skip, *f.lower);
        if (right.skip != skip) right.shorten_skip(skip, above.separator(at));
        if (total <= most_merged_entries) {
            content_pointer content = without(above, at);
            // From here on nothing fails.
            left.take(left.count, right, 0, right.count);
            left.next = right.next;
            delete &right;
            bytes_ -= sizeof(leaf);
            sharpen(left, f);
            set_content(parent, std::move(content));
            return;
        }
        const unsigned cut = total / 2;
        const std::string separator = cut > left.count
                                          ? separator_at(right, f.lower, cut - left.count)
                                          : separator_at(left, f.lower, cut);
        content_pointer content = with_separator(above, at, separator);
        // From here on nothing fails.
        if (cut > left.count)
            left.take(left.count, right, 0, cut - left.count);
        else
            right.take(0, left, cut, left.count);
        sharpen(left, {f.lower, joined_text{separator, {}}});
        sharpen(right, {joined_text{separator, {}}, f.upper});
        set_content(parent, std::move(content));
    }

    void balance_inners(const trail& path, unsigned level, unsigned at) {
        inner& parent = *path.steps[level].node;
        const routes& above = *parent.content;
        inner &left = as_inner(above.child(at)), &right = as_inner(above.child(at + 1));
        const routes &low = *left.content, &high = *right.content;
        const unsigned boundary = low.children_count();
        const unsigned total = boundary + high.children_count();
        // As if the two were one.
        const auto separator_before = [&](unsigned i) {
            return i < boundary    ? low.separator(i - 1)
                   : i == boundary ? above.separator(at)
                                   : high.separator(i - boundary - 1);
        };
        const auto part = [&](unsigned from, unsigned to) {
            routes_draft d;
            for (unsigned i = from; i < to; ++i)
                d.add(i < boundary ? low.child(i) : high.child(i - boundary),
                      i == 0 ? joined_text{} : separator_before(i));
            return routes::make(d, low.to_leaves());
        };
        if (total <= most_merged_children) {
            content_pointer merged = part(0, total);
            content_pointer content = without(above, at);
            // From here on nothing fails.
            set_content(left, std::move(merged));
            delete_inner(&right);
            set_content(parent, std::move(content));
            return;
        }
        const unsigned cut = total / 2;
        content_pointer lower = part(0, cut), upper = part(cut, total);
        content_pointer content = with_separator(above, at, separator_before(cut).text());
        // From here on nothing fails.
        set_content(left, std::move(lower));
        set_content(right, std::move(upper));
        set_content(parent, std::move(content));
    }

    void delete_inner(inner* n) noexcept {
        bytes_ -= sizeof(inner) + n->content->bytes();
        delete n;
    }
    static void destroy(node* n, unsigned depth) noexcept {
        if (depth == 0) {
            delete &as_leaf(n);
            return;
        }
        const inner& i = as_inner(n);
        for (unsigned c = 0; c < i.content->children_count(); ++c)
            destroy(i.content->child(c), depth - 1);
        delete &i;
    }

    struct audit {
        bool may_be_empty;
        const leaf* last = nullptr; // where the last leaf's link leads
        bool first = true;
        std::size_t size = 0, bytes = 0;
    };
    bool well_formed(node* n, unsigned level, const fences& f, audit& a) const {
        const bool full_enough_anyway = level == 0 || a.may_be_empty;
        if (level == depth_) {
            const leaf& l = as_leaf(n);
            a.size += l.count;
            a.bytes += sizeof(leaf);
            bool ok = (a.first || a.last == &l) && l.skip <= f.common() &&
                      (full_enough_anyway || l.count >= few_entries) &&
                      static_cast<unsigned>(std::popcount(l.used)) == l.count;
            a.first = false;
            a.last = l.next;
            std::string_view last;
            for (unsigned i = 0; i < l.count; ++i) {
                const unsigned slot = slot_of(l.entries[i]);
                const std::string_view key = l.pairs[slot].key->view();
                ok = ok && (i == 0 || last < key) && (!f.upper || f.upper->above(key)) &&
                     (!f.lower || !f.lower->above(key)) &&
                     head_of(l.entries[i]) == head_of(key, l.skip) && (l.used >> slot & 1) != 0 &&
                     l.pairs[slot].value != nullptr;
                last = key;
            }
            return ok;
        }
        const routes& r = *as_inner(n).content;
        a.bytes += sizeof(inner) + r.bytes();
        const unsigned children = r.children_count();
        if (children > Shape::fanout || r.to_leaves() != (level + 1 == depth_)) return false;
        if (!full_enough_anyway && children < few_children) return false;
        if (level == 0 && !a.may_be_empty && children < 2) return false;
        for (unsigned i = 0; i < children; ++i) {
            fences of_child = f;
            if (i != 0) of_child.lower = r.separator(i - 1);
            if (i + 1 != children) of_child.upper = r.separator(i);
            if (!well_formed(r.child(i), level + 1, of_child, a)) return false;
        }
        return true;
    }

    node* root_;
    unsigned depth_ = 0; // inner nodes on the way to a leaf
    std::size_t size_ = 0;
    std::size_t bytes_;
};

template <class Protocol>
using sequential_btree = basic_sequential_btree<Protocol, coarse_btree_shape>;
template <class Protocol = obase::arming>
using coarse_btree = coarse_index<sequential_btree, Protocol>;

} // namespace crestdb
