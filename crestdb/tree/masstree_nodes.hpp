// SPDX-License-Identifier: MIT
//
// The nodes of a Masstree layer (Mao, Kohler, Morris, EuroSys 2012, figure 2): a B+tree whose keys are
// slices, that is eight bytes of a key as a big-endian number, zero padded.
//
// A border node (leaf) has up to 15 entries, ordered by slice and then by kind:
//
//   kind 0..8  so many bytes of the slice are the rest of the key: the entry has the value, and needs
//              no key object, as slices and layers spell the key
//   tail       the key goes on behind the slice: the entry has the value and the whole key object
//   layer      more than one key goes on behind the slice: they are in the layer that it links to
//
// Of one slice there is at most one entry of each kind 0..8 and one of `tail` or `layer`; all are in
// the same node, so a slice decides which node.
//
// Rights to write: all of it with the node's lock; but `parent` with the parent's lock (and of a
// root its own), and an entry's value any thread by compare-exchange (masstree.hpp).
//
// Sizes: 320 bytes a border node, 256 an interior node, all of which is fetched before it is searched.
// Guides to key objects and links to layers are in a block beside the node that it gets with its first
// such entry (240 bytes): keys of eight bytes never pay for them.
//
// Invariants
//   I1  Every key in a border node has a slice >= low; low never changes; low of a layer's first
//       border node is 0.
//   I2  A border node is responsible for the slices from its low up to its successor's.
//   I3  keys[i] of an interior node is the low of the first border node below children[i + 1].
//   I4  The node without a parent is its layer's root and says so in its version.
//   I5  A slot that no entry has holds neither key nor value.
#pragma once

#include "crestdb/key_head.hpp"
#include "crestdb/tree/masstree_permutation.hpp"
#include "crestdb/tree/masstree_version.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace crestdb {

template <class Protocol, class Shape>
struct masstree_nodes {
    template <class T>
    using atomic = typename Shape::template atomic<T>;
    using guide = obase::guide<obase::bytes, Protocol>;
    using owner = obase::owner<obase::bytes, Protocol>;
    using version = masstree_version<atomic<std::uint64_t>, Shape>;
    using snapshot = typename version::snapshot;
    using slice = std::uint64_t;
    static constexpr unsigned width = Shape::border_width;
    static constexpr unsigned keys_of_interior = Shape::interior_width;
    using permutation = masstree_permutation<width>;

    static constexpr unsigned slice_bytes = 8;
    static constexpr unsigned tail = 9, layer = 10;

    // The slice of a key behind `offset` bytes, and the kind of the entry the key could have there:
    // `tail` stands for `layer` too.
    struct position {
        slice at;
        unsigned kind;

        static position of(std::string_view key, std::size_t offset) noexcept {
            const std::size_t rest = key.size() - offset;
            return {detail::head_word(key, offset),
                    rest > slice_bytes ? tail : static_cast<unsigned>(rest)};
        }
    };
    static constexpr unsigned rank(unsigned kind) noexcept { return std::min(kind, tail); }

    struct interior;

    struct in_shapes_memory {
        static void* operator new(std::size_t bytes) { return Shape::allocate(bytes); }
        static void operator delete(void* memory, std::size_t bytes) noexcept {
            Shape::deallocate(memory, bytes);
        }
    };
    struct node : in_shapes_memory {
        masstree_nodes::version version;
        atomic<node*> parent; // an interior node; null: the root of its layer

        node(bool is_border, bool is_root) noexcept : version(is_border, is_root) {}
    };

    struct alignas(Shape::alignment) interior : node {
        atomic<std::uint32_t> count; // keys
        std::array<atomic<slice>, keys_of_interior> keys;
        std::array<atomic<node*>, keys_of_interior + 1> children;

        explicit interior(bool is_root) noexcept : node(false, is_root) { set_no_keys(0); }

        bool full() const noexcept { return count.load_relaxed() == keys_of_interior; }
        // Keys that are not above `s`, which is the number of the child that is responsible. No
        // branch depends on the keys. Keys behind the last one are the highest there is.
        unsigned find(slice s) const noexcept {
            const unsigned not_above = [&]<std::size_t... I>(std::index_sequence<I...>) {
                return (static_cast<unsigned>(keys[I].load_acquire() <= s) + ...);
            }(std::make_index_sequence<keys_of_interior>());
            return std::min<unsigned>(not_above, count.load_acquire());
        }
        // Under the lock.
        unsigned index_of(const node* child) const noexcept {
            unsigned i = 0;
            while (children[i].load_relaxed() != child) ++i;
            assert(i <= count.load_relaxed());
            return i;
        }
        // Under the lock, or before others see the node. The child's parent pointer is this node's.
        // In this order: by the parent pointer of a former root a new root may be found
        // (masstree_layer::climb).
        void set_child(unsigned i, node* child) noexcept {
            children[i].store_release(child);
            child->parent.store_release(this);
        }
        // Under the lock; there is room. Whatever a reader finds meanwhile was a child a moment ago.
        void insert(slice key, node* child) noexcept {
            const std::uint32_t n = count.load_relaxed();
            const unsigned at = find(key);
            for (unsigned i = n; i > at; --i) {
                keys[i].store_release(keys[i - 1].load_relaxed());
                children[i + 1].store_release(children[i].load_relaxed());
            }
            keys[at].store_release(key);
            set_child(at + 1, child);
            count.store_release(n + 1);
        }
        // Under the lock. Takes out a child, and the key before it, or that behind the first child;
        // there is another child.
        void erase(unsigned index) noexcept {
            const std::uint32_t n = count.load_relaxed();
            for (unsigned i = index == 0 ? 0 : index - 1; i + 1 < n; ++i)
                keys[i].store_release(keys[i + 1].load_relaxed());
            for (unsigned i = index; i < n; ++i)
                children[i].store_release(children[i + 1].load_relaxed());
            set_no_keys(n - 1);
            count.store_release(n - 1);
        }
        // Under the lock. None from `begin` on.
        void set_no_keys(unsigned begin) noexcept {
            for (unsigned i = begin; i < keys_of_interior; ++i) keys[i].store_release(~slice{0});
        }
    };

    // The further fields of entries of kind tail and layer.
    struct tails : in_shapes_memory {
        std::array<guide, width> keys;
        std::array<atomic<node*>, width>
            links; // a root of the layer, or a former one (masstree.hpp)
    };

    struct alignas(Shape::alignment) border : node {
        atomic<std::uint64_t> order; // a permutation
        atomic<std::uint64_t> kinds; // four bits for each slot
        atomic<border*> next;
        atomic<tails*> more; // null as long as there was no such entry
        const slice low;
        std::uint64_t left = 0; // slots that entries have left since the last mark, a bit each
        std::array<atomic<slice>, width> slices;
        std::array<guide, width> values;

        border(slice from, bool is_root) noexcept
            : node(true, is_root), order(permutation().word()), low(from) {}
        ~border() { delete more.load_relaxed(); }

        permutation entries() const noexcept { return permutation(order.load_acquire()); }
        static unsigned kind_in(std::uint64_t all, unsigned slot) noexcept {
            return all >> (4 * slot) & 15;
        }
        unsigned kind(unsigned slot) const noexcept { return kind_in(kinds.load_acquire(), slot); }
        slice slice_of(unsigned slot) const noexcept { return slices[slot].load_acquire(); }
        // Of slots whose kind says that there is such a thing, and which hence were seen with it.
        const guide& tail_key(unsigned slot) const noexcept {
            return more.load_acquire()->keys[slot]; // pairs with need_tails()
        }
        node* link(unsigned slot) const noexcept {
            return more.load_acquire()
                ->links[slot]
                .load_acquire(); // pairs with insert(), set_link()
        }

        static constexpr unsigned no_slot = width;
        struct found {
            unsigned slot; // no_slot: there is none
            unsigned kind;
        };
        // The entry of `p`. All slices are compared, so that no branch depends on where it is.
        found find(permutation in_use, position p) const noexcept {
            unsigned equal = [&]<std::size_t... I>(std::index_sequence<I...>) {
                return ((static_cast<unsigned>(slices[I].load_acquire() == p.at) << I) | ...);
            }(std::make_index_sequence<width>());
            const std::uint64_t all = kinds.load_acquire();
            for (; equal != 0; equal &= equal - 1) {
                const auto slot = static_cast<unsigned>(std::countr_zero(equal));
                const unsigned k = kind_in(all, slot);
                if (rank(k) == p.kind && in_use.lists(slot)) return {slot, k};
            }
            return {no_slot, 0};
        }
        // How many entries are before `p`.
        unsigned lower_bound(permutation in_use, position p) const noexcept {
            const std::uint64_t all = kinds.load_acquire();
            unsigned i = 0;
            for (; i < in_use.size(); ++i) {
                const unsigned slot = in_use.slot(i);
                const slice s = slice_of(slot);
                if (s > p.at || (s == p.at && rank(kind_in(all, slot)) >= p.kind)) break;
            }
            return i;
        }

        // The rest under the lock, or before others see the node.

        // Throws std::bad_alloc.
        void need_tails() {
            if (more.load_relaxed() == nullptr) more.store_release(new tails);
        }
        void set_kind(unsigned slot, unsigned k) noexcept {
            const std::uint64_t others = kinds.load_relaxed() & ~(std::uint64_t{15} << (4 * slot));
            kinds.store_release(others | std::uint64_t{k} << (4 * slot));
        }
        // The entry becomes one of kind layer; key and value have been taken out. Who saw the kind as
        // it was finds null there.
        void set_link(unsigned slot, node* root) noexcept {
            more.load_relaxed()->links[slot].store_release(root);
            set_kind(slot, layer);
        }
        // A new entry at `index`; there is room, and a block of tails if it needs one.
        //
        // Readers see the entry with the store of the permutation, or not at all. Only if the slot
        // was in use before, a thread with an older permutation could take the new entry for the
        // old one: that is what the mark is for. It also makes an end of all older permutations, so
        // that all other free slots are as good as new.
        void insert(unsigned index, position p, owner key, owner value,
                    node* link = nullptr) noexcept {
            const permutation before = entries();
            const unsigned slot = before.free_slot();
            if ((left >> slot & 1) != 0) {
                this->version.mark_inserting();
                left = 0;
            }
            slices[slot].store_release(p.at);
            if (key) more.load_relaxed()->keys[slot] = std::move(key);
            if (link != nullptr) more.load_relaxed()->links[slot].store_release(link);
            if (value) values[slot] = std::move(value);
            set_kind(slot, link != nullptr ? layer : p.kind);
            order.store_release(before.inserted(index).word()); // pairs with entries()
        }
        // The former content of an entry; to be retired.
        struct leftovers {
            owner key, value;
        };
        // The value goes first: who finds none, and the node unchanged, looks again until the entry
        // is gone.
        leftovers erase(unsigned slot) noexcept {
            leftovers old;
            old.value = values[slot].release();
            const permutation before = entries();
            unsigned index = 0;
            while (before.slot(index) != slot) ++index;
            order.store_release(before.erased(index).word());
            left |= std::uint64_t{1} << slot;
            if (kind(slot) == tail) old.key = more.load_relaxed()->keys[slot].release();
            return old;
        }
        // Moves the entries from `index` on to an empty node that is not published yet; marked.
        void move_to(border& right, unsigned index) noexcept {
            const permutation before = entries();
            for (unsigned i = index; i < before.size(); ++i) {
                const unsigned slot = before.slot(i);
                const unsigned k = kind(slot);
                owner key;
                node* link = nullptr;
                if (k == tail) key = more.load_relaxed()->keys[slot].release();
                if (k == layer) link = more.load_relaxed()->links[slot].load_relaxed();
                right.insert(i - index, {slice_of(slot), k}, std::move(key), values[slot].release(),
                             link);
            }
            order.store_release(before.cut(index).word());
            left = 0;
        }
    };

    static border* as_border(node* n) noexcept { return static_cast<border*>(n); }
    static interior* as_interior(node* n) noexcept { return static_cast<interior*>(n); }

    // All lines at once: a search then waits once for each node.
    static void prefetch(const node* n) noexcept {
        const char* lines = reinterpret_cast<const char*>(n);
        for (std::size_t at = 0; at < std::max(sizeof(interior), sizeof(border)); at += 64)
            __builtin_prefetch(lines + at);
    }

    static_assert(keys_of_interior >= 2);
};

} // namespace crestdb
