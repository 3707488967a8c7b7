// SPDX-License-Identifier: MIT
//
// masstree_layer: one layer of a Masstree, a B+tree of slices whose readers lock nothing: finding a
// border node, inserting with splits, taking out empty nodes (Mao, Kohler, Morris, EuroSys 2012,
// sections 4.4 to 4.6).
//
// Functions on nodes; a layer is no object. It is reached by a pointer to a node that is or once
// was its root: a root that is split becomes the leftmost node of its height, from which parents
// lead to the root of now.
//
// Readers go down by versions, hand over hand: note the version of a child, then find the parent
// unchanged; so the child was the right one when its version was noted. In a border node they look,
// and then find it unchanged; if it was split meanwhile, the key is there or further right, which the
// successors' lows tell (as in a B-link tree: Lehman, Yao, TODS 1981).
//
// Writers lock borders from left to right, then parents upwards, and never wait against that order:
//   insertion   the border node; if it is full its parent, and so on until one has room or the root
//               was reached. Then it makes all new nodes, and only then changes anything, so that
//               std::bad_alloc changes nothing. (The paper goes up with two locks at a time.)
//   removal     the predecessor, the empty border node, and parents up to the one that keeps other
//               children; if what went was the first of them, up to the one whose key changes (I3).
//
// A node whose range shrinks or which goes is marked as splitting, and so is the predecessor of a
// border node that goes. So a thread at the wrong node notices, and a scan that notes a node's
// entries and its successor under one version knows that they belong together. All marks are set
// before the first change and stay until the last one.
//
// Threads: any. Reclamation: nodes that go are retired; the caller has a scope open.
#pragma once

#include "crestdb/tree/masstree_nodes.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace crestdb {

template <class Protocol, class Shape>
struct masstree_layer {
    using nodes = masstree_nodes<Protocol, Shape>;
    using node = typename nodes::node;
    using border = typename nodes::border;
    using interior = typename nodes::interior;
    using tails = typename nodes::tails;
    using owner = typename nodes::owner;
    using snapshot = typename nodes::snapshot;
    using slice = typename nodes::slice;
    using permutation = typename nodes::permutation;
    using position = typename nodes::position;
    template <class T>
    using atomic = typename nodes::template atomic<T>;

    // Counts the bytes of nodes that are part of the tree.
    struct memory {
        atomic<std::size_t> bytes;

        static std::size_t of(const border& b) noexcept {
            return sizeof b + (b.more.load_relaxed() != nullptr ? sizeof(tails) : 0);
        }
        void add(std::size_t n) noexcept { bytes.fetch_add_relaxed(n); }
        void retire(node* n) noexcept {
            if (n->version.held().is_border())
                retire(nodes::as_border(n), of(*nodes::as_border(n)));
            else
                retire(nodes::as_interior(n), sizeof(interior));
        }

      private:
        template <class T>
        void retire(T* gone, std::size_t size) noexcept {
            bytes.fetch_sub_relaxed(size);
            constexpr auto end = [](void* object) noexcept { delete static_cast<T*>(object); };
            Protocol::retire(gone, end, size);
        }
    };

    // Locks that have been taken; given up at the end.
    class lock_set {
      public:
        lock_set() noexcept = default;
        ~lock_set() { unlock(); }
        lock_set(const lock_set&) = delete;
        lock_set& operator=(const lock_set&) = delete;

        void add(node* n) noexcept {
            assert(count_ < held_.size());
            held_[count_++] = n;
        }
        void lock(node* n) noexcept {
            n->version.lock();
            add(n);
        }
        void unlock() noexcept {
            while (count_ != 0) held_[--count_]->version.unlock();
        }

      private:
        unsigned count_ = 0;
        std::array<node*, 3 * 64> held_;
    };
    // A layer of height h has had more than 2^h insertions.
    static constexpr unsigned max_height = 64;

    // A border node and its version when it was the right one.
    struct place {
        border* at;
        snapshot seen;

        bool unchanged() const noexcept { return at->version.unchanged(seen); }
    };

    // The root of now. Null: the layer, or this part of it, has gone.
    static node* climb(node* from, snapshot& seen) noexcept {
        for (;;) {
            seen = from->version.stable();
            if (seen.is_deleted()) return nullptr;
            if (seen.is_root()) return from;
            // No parent: it has just become the root again.
            if (node* const up = from->parent.load_acquire(); up != nullptr) from = up;
        }
    }

    // The border node that is responsible for `s`. False: as climb().
    static bool find_border(node* from, slice s, place& found) noexcept {
        nodes::prefetch(from);
        for (;;) {
            snapshot seen;
            node* here = climb(from, seen);
            if (here == nullptr) return false;
            for (;;) {
                if (seen.is_border()) {
                    found = {nodes::as_border(here), seen};
                    return true;
                }
                const interior& inner = *nodes::as_interior(here);
                node* const child = inner.children[inner.find(s)].load_acquire();
                nodes::prefetch(child);
                const snapshot of_child = child->version.stable();
                if (inner.version.unchanged(seen)) {
                    here = child;
                    seen = of_child;
                    continue;
                }
                const snapshot now = inner.version.stable();
                if (now.split_since(seen)) break; // perhaps no longer responsible
                seen = now;
            }
        }
    }

    // After the node of a place has changed: the node that is responsible for `s` now, which is the
    // same or one further right. False: it was taken out; start at the top.
    static bool find_again(place& p, slice s) noexcept {
        p.seen = p.at->version.stable();
        for (;;) {
            if (p.seen.is_deleted()) return false;
            border* const next = p.at->next.load_acquire();
            if (next != nullptr && next->low <= s) {
                p.at = next;
            } else if (p.unchanged()) {
                return true;
            }
            p.seen = p.at->version.stable();
        }
    }

    // Locks the node that is responsible for `s`, which may be one further right than p.at. False:
    // it was taken out, and nothing is locked.
    static bool lock_responsible(const place& p, slice s, border*& locked) noexcept {
        locked = p.at;
        locked->version.lock();
        if (!locked->version.held().split_since(p.seen)) return true;
        for (;;) {
            if (locked->version.held().is_deleted()) {
                locked->version.unlock();
                return false;
            }
            border* const next = locked->next.load_acquire();
            if (next == nullptr || next->low > s) return true;
            locked->version.unlock();
            locked = next;
            locked->version.lock();
        }
    }

    // Inserts an entry into a border node that the caller has locked; unlocks it. `index` is where
    // lower_bound() says. Throws std::bad_alloc, having changed nothing but the lock; the owners are
    // emptied only otherwise. Returns true if the layer has another root now.
    static bool insert(border* b, unsigned index, position p, owner& key, owner& value,
                       memory& account) {
        lock_set held;
        held.add(b);
        if (!b->entries().full()) {
            if (key) need_tails(*b, account);
            b->insert(index, p, std::move(key), std::move(value));
            return false;
        }
        return split(b, index, p, key, value, held, account);
    }

    // Takes the empty border node with that low, not the layer's first, out of the layer, with
    // parents that have no other child; unless it is not empty any more, or has gone. False: `from`
    // has gone; start at the top.
    static bool remove_border(node* from, slice low, memory& account) noexcept {
        place before;
        border* left;
        do {
            if (!find_border(from, low - 1, before)) return false;
        } while (!lock_responsible(before, low - 1, left));
        lock_set held;
        held.add(left);
        border* const gone = left->next.load_acquire();
        if (gone == nullptr || gone->low != low) return true;
        held.lock(gone);
        if (gone->entries().empty()) take_out(left, gone, held, account);
        return true;
    }

    // Lets `link` point to the root of now, after making roots that have one child only disappear.
    // Returns that root. The caller holds the lock that guards `link`.
    static node* update_link(atomic<node*>& link, memory& account) noexcept {
        for (unsigned attempt = 0;; Shape::wait(attempt++)) {
            snapshot seen;
            // What a link points to goes under the lock of the link only.
            node* const root = climb(link.load_acquire(), seen);
            assert(root != nullptr);
            if (link.load_relaxed() != root) link.store_release(root);
            if (seen.is_border()) return root;
            interior& top = *nodes::as_interior(root);
            if (top.count.load_acquire() != 0) return root;
            node* const child = top.children[0].load_acquire();
            lock_set held;
            held.lock(child);
            if (child->parent.load_acquire() != root) continue;
            held.lock(root);
            if (!root->version.held().is_root() || top.count.load_relaxed() != 0) continue;
            child->version.set_root();
            root->version.mark_deleted();
            child->parent.store_release(nullptr);
            link.store_release(child); // pairs with find_border()'s callers
            held.unlock();
            account.retire(root);
        }
    }

    // Throws std::bad_alloc. Under the node's lock, or before others see it.
    static void need_tails(border& b, memory& account) {
        if (b.more.load_relaxed() != nullptr) return;
        b.need_tails();
        account.add(sizeof(tails));
    }

  private:
    // The child is locked, so it does not become a root or cease to be one; its parent may be split.
    static interior* lock_parent(node* child, lock_set& held) noexcept {
        for (;;) {
            node* const parent = child->parent.load_acquire();
            if (parent == nullptr) return nullptr;
            parent->version.lock();
            if (child->parent.load_acquire() == parent) {
                held.add(parent);
                return nodes::as_interior(parent);
            }
            parent->version.unlock();
        }
    }

    static bool split(border* b, unsigned index, position p, owner& key, owner& value,
                      lock_set& held, memory& account) {
        // Locks, from here up to the first node that has room.
        std::array<interior*, max_height> full;
        unsigned height = 0;
        node* top = b; // the last one that is split
        interior* has_room = lock_parent(b, held);
        for (; has_room != nullptr && has_room->full(); has_room = lock_parent(top, held))
            top = full[height++] = has_room;
        // Memory.
        const permutation entries = b->entries();
        const unsigned cut = choose_cut(*b, entries, index, p.at);
        const slice low = cut == entries.size() ? p.at : b->slice_of(entries.slot(cut));
        const bool goes_right = p.at >= low;
        auto right = std::make_unique<border>(low, false);
        if (b->more.load_relaxed() != nullptr || key) right->need_tails();
        std::array<std::unique_ptr<interior>, max_height> upper;
        for (unsigned i = 0; i < height; ++i) upper[i] = std::make_unique<interior>(false);
        std::unique_ptr<interior> root;
        if (has_room == nullptr) root = std::make_unique<interior>(true);
        if (key && !goes_right) need_tails(*b, account);
        // Marks.
        b->version.mark_splitting();
        for (unsigned i = 0; i < height; ++i) full[i]->version.mark_splitting();
        if (has_room != nullptr) has_room->version.mark_inserting();
        // Changes.
        b->move_to(*right, cut);
        if (goes_right)
            right->insert(index - cut, p, std::move(key), std::move(value));
        else
            b->insert(index, p, std::move(key), std::move(value));
        right->next.store_release(b->next.load_relaxed());
        account.add(memory::of(*right));
        node* added = right.get();
        slice separator = low;
        b->next.store_release(right.get()); // pairs with find_again()
        held.add(right.release());
        for (unsigned i = 0; i < height; ++i) {
            separator = split_interior(*full[i], *upper[i], separator, added);
            account.add(sizeof(interior));
            added = upper[i].get();
            held.add(upper[i].release());
        }
        if (has_room != nullptr) {
            has_room->insert(separator, added);
            return false;
        }
        interior* const grown = root.release();
        held.add(grown);
        account.add(sizeof(interior));
        grown->keys[0].store_release(separator);
        grown->count.store_release(1);
        grown->set_child(1, added);
        grown->set_child(0, top); // the former root last; pairs with climb()
        top->version.clear_root();
        return true;
    }

    // How many entries stay. Equal slices stay together. Near the middle; but keys that come in
    // ascending or descending order would leave half-empty nodes behind.
    static unsigned choose_cut(const border& b, permutation entries, unsigned index,
                               slice added) noexcept {
        const unsigned n = entries.size();
        const auto at = [&](unsigned i) { return b.slice_of(entries.slot(i)); };
        if (index == n && b.next.load_relaxed() == nullptr && at(n - 1) != added) return n;
        if (index == 0 && b.low == 0 && at(0) != added) return 0;
        for (unsigned away = 0; away < n; ++away) {
            const unsigned below = (n + 1) / 2 - std::min(away, (n + 1) / 2);
            const unsigned above = (n + 1) / 2 + away;
            if (below >= 1 && at(below - 1) != at(below)) return below;
            if (above < n && at(above - 1) != at(above)) return above;
        }
        // All have one slice, the new one another.
        assert(at(0) != added);
        return index == 0 ? 0 : n;
    }

    // Moves the upper keys and children of a full node, and the new one, to `right`, which is not
    // published yet. Returns the key between the two.
    static slice split_interior(interior& left, interior& right, slice key, node* child) noexcept {
        constexpr unsigned n = nodes::keys_of_interior;
        const unsigned index = left.find(key);
        std::array<slice, n + 1> keys;
        std::array<node*, n + 2> children;
        for (unsigned i = 0; i < n; ++i) keys[i < index ? i : i + 1] = left.keys[i].load_relaxed();
        keys[index] = key;
        for (unsigned i = 0; i <= n; ++i)
            children[i <= index ? i : i + 1] = left.children[i].load_relaxed();
        children[index + 1] = child;

        const unsigned cut = index == n ? n - 1 : (n + 1) / 2; // keys that stay
        right.parent.store_release(left.parent.load_relaxed());
        for (unsigned i = cut + 1; i <= n; ++i) right.keys[i - cut - 1].store_release(keys[i]);
        right.count.store_release(n - cut);
        for (unsigned i = cut + 1; i <= n + 1; ++i) right.set_child(i - cut - 1, children[i]);
        for (unsigned i = 0; i < cut; ++i) left.keys[i].store_release(keys[i]);
        for (unsigned i = 0; i <= cut; ++i) left.set_child(i, children[i]);
        left.set_no_keys(cut);
        left.count.store_release(cut);
        return keys[cut];
    }

    // `gone` is empty and the successor of `left`; both are locked.
    static void take_out(border* left, border* gone, lock_set& held, memory& account) noexcept {
        // Locks.
        std::array<node*, max_height> going;
        unsigned height = 0;
        going[height++] = gone;
        interior* stays = lock_parent(gone, held); // there is one that has other children, as the
        while (stays->count.load_relaxed() == 0) { // first border node stays
            going[height++] = stays;
            stays = lock_parent(stays, held);
        }
        const unsigned index = stays->index_of(going[height - 1]);
        // Where the first child goes, the node's range now begins at the second one's low, and so do
        // those of its parents, up to the one that has a key there.
        std::array<interior*, max_height> shrinking;
        unsigned above = 0, key_index = 0;
        if (index == 0) {
            interior* child = stays;
            do {
                interior* const parent = lock_parent(child, held);
                shrinking[above++] = parent;
                key_index = parent->index_of(child);
                child = parent;
            } while (key_index == 0);
        }
        // Marks.
        left->version.mark_splitting();
        for (unsigned i = 0; i < height; ++i) going[i]->version.mark_deleted();
        stays->version.mark_splitting();
        for (unsigned i = 0; i < above; ++i) shrinking[i]->version.mark_splitting();
        // Changes.
        left->next.store_release(gone->next.load_relaxed());
        if (index == 0)
            shrinking[above - 1]->keys[key_index - 1].store_release(stays->keys[0].load_relaxed());
        stays->erase(index);
        held.unlock();
        for (unsigned i = 0; i < height; ++i) account.retire(going[i]);
    }
};

} // namespace crestdb
