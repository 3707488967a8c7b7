// SPDX-License-Identifier: MIT
//
// immobile_nodes, movable_nodes: the nodes of segmented_hash_table, and the steps in which lists of
// them change while others read.
//
// Two answers to what a link is. With immobile_nodes it is a pointer; nodes are ordinary memory.
// With movable_nodes it is a guide: a bucket owns its first node, a node the next one, and the
// runtime moves nodes as it moves keys and values, so index memory is regrouped by use, too.
//
// A guide is the only owner of its object. This decides everything in which the two differ: a node
// comes out of one link before it is in another, so for a moment it is in none, and a reader finds
// null where there is more behind. lost() and the progress of a table's move tell it so; the
// argument is in segmented_hash_table.hpp.
//
// Why a node may move: it is reached through guides only, always from a bucket, inside a scope, and
// no thread keeps its address beyond the scope. There is no lock in it: locks are in the segments,
// which do not move. (There might be: a thread that holds a lock of a node has dereferenced its way
// to it in a scope that is still open, and while a scope may use an object's address the object
// stays.)
//
// movable_nodes gain little where values are large. Nodes are 32 bytes; beside values of a kilobyte
// regrouping them saves little, and every step of a search is a dereference.
//
// All but follow() and lost() are for the holder of the segment's lock, in a scope.
#pragma once

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/relocatable.hpp>
#include <obase/retire.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace crestdb {

// The table's requirements on a node. `Link` has node* follow().
template <class Protocol, class Link, class Value>
struct segmented_hash_node {
    using key_guide = obase::guide<obase::bytes, Protocol>;
    using key_owner = obase::owner<obase::bytes, Protocol>;
    using guide = obase::guide<Value, Protocol>;
    using owner = obase::owner<Value, Protocol>;

    segmented_hash_node(std::uint64_t h, key_owner&& k, owner&& v) noexcept
        : hash(h), key(std::move(k)), value(std::move(v)) {}

    Link next;
    const std::uint64_t hash;
    const key_guide key;
    guide value; // null: erased, for good
};

struct immobile_nodes {
    static constexpr bool movable = false;

    template <class Protocol, class Surroundings, class Value = obase::bytes>
    struct of {
        struct link;
        using node = segmented_hash_node<Protocol, link, Value>;
        struct link {
            typename Surroundings::template atomic<node*> to;
            node* follow() const noexcept { return to.load_acquire(); } // pairs with the stores
        };
        struct destroy {
            void operator()(node* n) const noexcept { end(n); }
        };
        using owned = std::unique_ptr<node, destroy>;

        static owned make(std::uint64_t hash, typename node::key_owner&& key,
                          typename node::owner& value) {
            void* memory = Surroundings::allocate(sizeof(node));
            return owned(::new (memory) node(hash, std::move(key), std::move(value)));
        }
        // A link keeps leading to its node until the node has another place: no search gets lost,
        // but a table's move may take it along.
        static bool lost(const node&) noexcept { return false; }

        // The last link of a list leads to the node.
        static void append(link& last, owned n) noexcept { last.to.store_release(n.release()); }
        // Takes the link's node out of the list, and retires it. Its own link stays as it is: who
        // stands on it goes on to what was its successor.
        static void unlink(link& at) noexcept {
            node* victim = at.to.load_relaxed();
            at.to.store_release(victim->next.to.load_relaxed());
            Protocol::retire(victim, &end, sizeof(node));
        }
        // A bucket's first node, out of the bucket, and leading nowhere.
        static owned pop(link& bucket) noexcept {
            owned first(bucket.to.load_relaxed());
            if (first) {
                bucket.to.store_release(first->next.to.load_relaxed());
                first->next.to.store_release(nullptr);
            }
            return first;
        }
        // Makes a node that leads nowhere the bucket's first.
        static void push(link& bucket, owned n) noexcept {
            n->next.to.store_release(bucket.to.load_relaxed());
            bucket.to.store_release(n.release());
        }

      private:
        static void end(void* n) noexcept {
            static_cast<node*>(n)->~node();
            Surroundings::deallocate(n, sizeof(node));
        }
    };
};

struct movable_nodes {
    static constexpr bool movable = true;

    template <class Protocol, class Surroundings, class Value = obase::bytes>
    struct of {
        struct link;
        using node = segmented_hash_node<Protocol, link, Value>;
        struct link {
            obase::guide<node, Protocol> to;
            node* follow() const noexcept { return to.get(); }
        };
        using owned = obase::owner<node, Protocol>;

        static owned make(std::uint64_t hash, typename node::key_owner&& key,
                          typename node::owner& value) {
            return obase::make_managed<node, Protocol>(hash, std::move(key), std::move(value));
        }
        // True if the null that was read from n.next before may hide a successor: an eraser takes
        // the value first and the successor afterwards, so a thread that has read the null that the
        // eraser left sees that there is no value. (The exchange in unlink() releases, the load in
        // follow() acquires.)
        static bool lost(const node& n) noexcept { return n.value == nullptr; }

        static void append(link& last, owned n) noexcept { last.to = std::move(n); }
        // Between the two exchanges the successors cannot be reached by any thread: readers wait.
        static void unlink(link& at) noexcept {
            owned successor = at.to->next.to.release();
            obase::retire(at.to.exchange(std::move(successor)));
        }
        static owned pop(link& bucket) noexcept {
            owned first = bucket.to.release();
            if (first) bucket.to = first->next.to.release();
            return first;
        }
        static void push(link& bucket, owned n) noexcept {
            n->next.to = bucket.to.release();
            bucket.to = std::move(n);
        }
    };
};

} // namespace crestdb

// Guides and numbers; only its guide has its address.
template <class Protocol, class Link, class Value>
struct obase::is_relocatable<crestdb::segmented_hash_node<Protocol, Link, Value>> : std::true_type {
};
