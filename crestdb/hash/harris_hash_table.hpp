// SPDX-License-Identifier: MIT
//
// Harris' hash table: buckets that are sorted linked lists without locks (T. Harris, A Pragmatic
// Implementation of Non-Blocking Linked-Lists, DISC 2001; OBASE Table 2, "HashTable Harris").
//
// Per bucket a list ordered by hash, then key. The lowest bit of a next pointer is a mark: the node
// that holds the pointer is being deleted, and the pointer never changes again. A key is erased by
// taking its value out of the node's value guide, which becomes null for good; then the node is
// marked, and unlinked, by its eraser or by a search that writes and meets it: a run of marked
// nodes at once. The number of buckets is fixed at construction.
//
// Written once for all protocols: `Protocol` is obase::plain, obase::arming or obase::atc. Keys and
// values are guided byte strings, and move; the nodes stay. A node has the hash of its key inline,
// so a search looks at key objects only where hashes are equal.
//
//     crestdb::harris_hash_table<> table(1 << 20);
//     table.put("key", "value");
//     table.get("key", [](std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Limits: the number of buckets is fixed, so `expected_keys` must be right within an order of
// magnitude (segmented_hash_table.hpp resizes). No scans.
//
// Progress: lock-free, all operations. get, contains and edit_in_place write no pointers and never
// start again. Reclamation: nodes, keys and values are retired; they are freed when no scope can
// see them. Each node is retired once, by the one whose exchange took its value.
// Linearization: a key is there while a node with it is linked and holds a value. put at the link,
// or at the compare-exchange of the value, as update and modify; erase at the exchange of the
// value. get at the load of the value, or where the key was not there at some moment of the search
// (see find()). Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the source: Harris' lists hold keys alone, and a key is gone when its node
// is marked. Here nodes have values that are replaced, and a replacement must not succeed on a key
// that is gone; so a key is gone when its value is, and a thread that inserts it again before the
// node is marked marks the node first. Harris' searches all unlink; here those of get and contains
// only read, through marked nodes as well. Memory is freed by retire() instead of Harris' reference
// counts or deferred frees. (Unlinking node by node, as M. Michael's hazard pointers need it, is
// not needed with epochs.)
#pragma once

#include "crestdb/index_operations.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace crestdb {

// Where nodes come from. Tests under the deterministic scheduler have one of their own.
struct harris_surroundings {
    static void* allocate(std::size_t bytes) { return ::operator new(bytes); }
    static void deallocate(void* memory, std::size_t) noexcept { ::operator delete(memory); }
};

template <class Protocol = obase::arming, class Surroundings = harris_surroundings>
class harris_hash_table
    : public index_operations<harris_hash_table<Protocol, Surroundings>, Protocol> {
    using operations = index_operations<harris_hash_table, Protocol>;
    friend operations;

  public:
    static constexpr const char* name = "harris-hash-table";
    static constexpr bool ordered = false;

    // A bucket per expected key, rounded up to a power of two. Fewer keys waste 8 bytes each, more
    // make lists longer.
    explicit harris_hash_table(std::size_t expected_keys)
        : mask_(bucket_per_key(expected_keys) - 1), heads_(std::make_unique<link[]>(mask_ + 1)) {}

    ~harris_hash_table() {
        for (std::size_t i = 0; i <= mask_; ++i)
            for (node* n = to_node(heads_[i].load_relaxed()); n != nullptr;)
                destroy_node(std::exchange(n, to_node(n->next.load_relaxed())));
    }
    harris_hash_table(const harris_hash_table&) = delete;
    harris_hash_table& operator=(const harris_hash_table&) = delete;

    bool erase(std::string_view key) {
        const typename operations::scope one_operation;
        const sought wanted(key);
        const place at = locate(wanted);
        if (at.found == nullptr) return false;
        node& victim = *at.found;
        owner value = victim.value.exchange(owner());
        if (!value) return false; // another thread's erase
        obase::retire(std::move(value));
        size_.fetch_sub_relaxed(1);
        // Harris' short way: nothing has changed around the node. Otherwise a search for the key
        // unlinks it, if no other thread has: it passes the node's place, and what it passes was
        // unmarked, so in the list, and had nothing between it and its successor. No thread links a
        // marked node, and unlinking others makes a link skip marked nodes, whose links are frozen,
        // so it reaches nothing that it did not reach before: what is out stays out.
        bits linked = to_word(&victim);
        if (!at.before->cas_release(linked, mark(victim))) locate(wanted);
        Protocol::retire(&victim, &destroy_node, sizeof(node));
        return true;
    }

    std::size_t size() const noexcept { return size_.load_relaxed(); }
    std::size_t buckets() const noexcept { return mask_ + 1; }
    std::size_t index_bytes() const noexcept {
        return buckets() * sizeof(link) + size() * sizeof(node);
    }

  private:
    using guide = typename operations::guide;
    using owner = typename operations::owner;
    using bits = obase::word::bits;
    // A word of the protocol's machine, without the protocol: a node's address and the mark.
    using link = typename Protocol::slot;

    static constexpr bits marked = 1;

    struct node {
        node(std::uint64_t h, owner&& k, owner&& v) noexcept
            : hash(h), key(std::move(k)), value(std::move(v)) {}
        link next;
        const std::uint64_t hash;
        const guide key;
        guide value; // null: erased, for good
    };

    struct sought {
        sought(std::string_view key) noexcept
            : text(key), hash(std::hash<std::string_view>{}(key)) {}
        std::string_view text;
        std::uint64_t hash;
    };

    static node* to_node(bits word) noexcept { return reinterpret_cast<node*>(word & ~marked); }
    static bits to_word(const node* n) noexcept { return reinterpret_cast<bits>(n); }
    static bool is_marked(bits word) noexcept { return (word & marked) != 0; }

    link& head_of(const sought& key) const noexcept { return heads_[key.hash & mask_]; }

    template <class Read>
    static std::strong_ordering compare(const node& n, const sought& key, const Read& read) {
        if (const auto order = n.hash <=> key.hash; order != 0) return order;
        return read(n.key)->view() <=> key.text;
    }

    // The node with the key, or null; it may have been erased. Writes nothing. Precondition: inside
    // a scope.
    //
    // Why what it says was true at some moment of the search: a node is in the list while it can be
    // reached from the bucket. One that has been linked and is unmarked is. Let the search stand on
    // a node that was in the list at moment t of the search, and follow its link. If the link is
    // unmarked, the successor is in the list now. If it was marked after t, the successor was in
    // the list at that moment, because the link has not changed since; if before t, at t. So
    // whatever the search stands on was in the list at some moment of it, and its successor with
    // it, with nothing between them. While a node with the key is in the list there is no other
    // (put() unlinks an erased one first), so one whose value is null tells that the key is not
    // there.
    template <class Read>
    node* find(const sought& key, const Read& read) const {
        for (node* at = to_node(head_of(key).load_acquire()); at != nullptr;
             at = to_node(at->next.load_acquire())) {
            const auto order = compare(*at, key, read);
            if (order > 0) return nullptr;
            if (order == 0) return at;
        }
        return nullptr;
    }

    // Harris' search: the last link before the key's place and the node it led to, neighbours at
    // some moment, and neither of them marked then. What was marked between them is unlinked.
    struct place {
        link* before;
        node* after;
        node* found; // `after` if it has the key, else null
    };

    // Starts again when the node it stands on has been marked, which is another thread's progress.
    place locate(const sought& key) {
    again:
        link* before = &head_of(key);
        for (;;) {
            bits first = before->load_acquire();
            if (is_marked(first)) goto again;
            node* at = to_node(first);
            for (bits next; at != nullptr && is_marked(next = at->next.load_acquire());)
                at = to_node(next);
            // A whole run at once. Its links are frozen, so `at` is still behind it. Release: who
            // follows the link sees what is behind it, as through those links.
            if (at != to_node(first) && !before->cas_release(first, to_word(at))) continue;
            const auto order =
                at == nullptr ? std::strong_ordering::greater : compare(*at, key, plain_access{});
            if (order >= 0) return {before, at, order == 0 ? at : nullptr};
            before = &at->next;
        }
    }

    // Freezes the node's link, which it returns. Repeated by those who help.
    static bits mark(node& victim) noexcept {
        return victim.next.fetch_or_acq_rel(marked) & ~marked;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        const sought wanted(key);
        for (std::unique_ptr<node, unpublished> added;;) {
            const place at = locate(wanted);
            if (at.found != nullptr) {
                for (obase::bytes* seen = at.found->value.get(); seen != nullptr;) {
                    if (at.found->value.compare_exchange(seen, fresh)) {
                        obase::retire(std::move(fresh));
                        return outcome::replaced;
                    }
                }
                if (!insert) return outcome::absent;
                mark(*at.found); // being erased; it has to be out before there is another one
                continue;
            }
            if (!insert) return outcome::absent;
            if (added == nullptr)
                added = make_node(wanted, fresh);
            else
                added->value = std::move(fresh);
            added->next.store_relaxed(to_word(at.after));
            // Counted first: otherwise another thread's erase might take the count below zero.
            size_.fetch_add_relaxed(1);
            bits expected = to_word(at.after);
            if (at.before->cas_release(expected, to_word(added.get()))) { // pairs with find()
                static_cast<void>(added.release());
                return outcome::inserted;
            }
            size_.fetch_sub_relaxed(1);
            fresh = added->value.release();
        }
    }

    static void destroy_node(void* memory) noexcept {
        static_cast<node*>(memory)->~node();
        Surroundings::deallocate(memory, sizeof(node));
    }
    struct unpublished {
        void operator()(node* n) const noexcept { destroy_node(n); }
    };
    static std::unique_ptr<node, unpublished> make_node(const sought& key, owner& value) {
        owner text = obase::make_bytes<Protocol>(key.text);
        void* memory = Surroundings::allocate(sizeof(node));
        return std::unique_ptr<node, unpublished>(
            ::new (memory) node(key.hash, std::move(text), std::move(value)));
    }

    const std::size_t mask_;
    const std::unique_ptr<link[]> heads_;
    // Written by every insertion: away from what searches read.
    alignas(64) link size_;
};

} // namespace crestdb
