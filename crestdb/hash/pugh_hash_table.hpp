// SPDX-License-Identifier: MIT
//
// Pugh's hash table: buckets that are sorted linked lists with a lock per node and searches that
// take none (W. Pugh, Concurrent Maintenance of Skip Lists, 1990; OBASE Table 2, "HashTable Pugh").
//
// Per bucket a list ordered by hash, then key. A search follows next pointers without locking. An
// insertion locks the predecessor; a deletion locks predecessor and victim, unlinks the victim, and
// turns the victim's next pointer back to the predecessor: a thread at a deleted node walks back
// into the list instead of out of it, and a lock attempt that ends up on one sees a smaller key
// behind it and goes on. The number of buckets is fixed at construction.
//
// Written once for all protocols: `Protocol` is obase::plain, obase::arming or obase::atc. Keys and
// values are guided byte strings, and move; the nodes stay.
//
//     crestdb::pugh_hash_table<> table(1 << 20);
//     table.put("key", "value");
//     table.get("key", [](std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Limits: the number of buckets is fixed, so `expected_keys` must be right within an order of
// magnitude (segmented_hash_table.hpp resizes). No scans.
//
// Progress: get, contains, edit_in_place and visit_path are lock-free (they step back only when a
// deletion has made progress); put, update, modify and erase block on node locks, which are held
// for the change itself, and by put of a new key while it allocates; never while modify's `make`
// runs. Reclamation: nodes, keys and values are retired; they are freed when no scope can see them.
// Linearization: get at the load of the pointer that decides, or of the value; put at the link or
// the exchange of the value; modify at its compare-exchange; erase at the unlink. Threads: all
// operations by any thread; construction and destruction by one.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/spin_lock.hpp"

#include <obase/bytes.hpp>
#include <obase/retire.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace crestdb {

template <class Protocol = obase::arming>
class pugh_hash_table : public index_operations<pugh_hash_table<Protocol>, Protocol> {
    using base = index_operations<pugh_hash_table, Protocol>;
    friend base;

  public:
    using typename base::scope;
    static constexpr const char* name = "pugh-hash-table";
    static constexpr bool ordered = false;

    // A bucket per expected key, rounded up to a power of two. Fewer keys waste 16 bytes each, more
    // make lists longer.
    explicit pugh_hash_table(std::size_t expected_keys)
        : mask_(bucket_per_key(expected_keys) - 1), heads_(std::make_unique<link[]>(mask_ + 1)) {}

    ~pugh_hash_table() {
        for (std::size_t i = 0; i <= mask_; ++i)
            for (link* l = heads_[i].next.load_relaxed(); l != nullptr;)
                delete as_node(std::exchange(l, l->next.load_relaxed()));
    }
    pugh_hash_table(const pugh_hash_table&) = delete;
    pugh_hash_table& operator=(const pugh_hash_table&) = delete;

    bool erase(std::string_view key) {
        const scope one_operation;
        const std::uint64_t hash = hash_of(key);
        std::unique_lock before = lock_before(hash, key);
        link* victim = before.mutex()->next.load_relaxed();
        if (!matches(victim, hash, key, plain_access{})) return false;
        {
            const std::lock_guard own(*victim); // no thread inserts behind it any more
            before.mutex()->next.store_release(victim->next.load_relaxed());
            victim->next.store_release(before.mutex());
        }
        before.unlock();
        size_.fetch_sub_relaxed(1);
        Protocol::retire(as_node(victim), &destroy_node, sizeof(node));
        return true;
    }

    std::size_t size() const noexcept { return size_.load_relaxed(); }
    std::size_t buckets() const noexcept { return mask_ + 1; }
    std::size_t index_bytes() const noexcept {
        return buckets() * sizeof(link) + size() * sizeof(node);
    }

  private:
    using typename base::guide;
    using typename base::owner;

    // A bucket's head, or the base of a node. The lock guards `next`.
    struct link : spin_lock {
        explicit link(bool head = true) noexcept : is_head(head) {}
        obase::word::native_atomic<link*> next;
        const bool is_head;
    };
    struct node : link {
        node(std::uint64_t h, owner k, owner v) noexcept
            : link(false), hash(h), key(std::move(k)), value(std::move(v)) {}
        const std::uint64_t hash;
        const guide key;
        guide value; // never null
    };

    static node* as_node(link* l) noexcept { return static_cast<node*>(l); }
    static const node* as_node(const link* l) noexcept { return static_cast<const node*>(l); }
    static void destroy_node(void* n) noexcept { delete static_cast<node*>(n); }
    static std::uint64_t hash_of(std::string_view key) noexcept {
        return std::hash<std::string_view>{}(key);
    }

    // True if the link comes before (hash, key) in its list. The key is looked at only for equal
    // hashes.
    template <class Read>
    static bool precedes(const link* l, std::uint64_t hash, std::string_view key,
                         const Read& read) {
        if (l == nullptr) return false;
        if (l->is_head) return true; // behind a deleted first node
        const node* n = as_node(l);
        return n->hash != hash ? n->hash < hash : read(n->key)->view() < key;
    }
    template <class Read>
    static bool matches(const link* l, std::uint64_t hash, std::string_view key, const Read& read) {
        return l != nullptr && !l->is_head && as_node(l)->hash == hash &&
               read(as_node(l)->key)->view() == key;
    }

    // The key's node, or null. Takes no lock. Precondition: inside a scope.
    template <class Read>
    const node* find(std::string_view key, const Read& read) const {
        const std::uint64_t hash = hash_of(key);
        const link* at = heads_[hash & mask_].next.load_acquire();
        while (precedes(at, hash, key, read)) at = at->next.load_acquire();
        return matches(at, hash, key, read) ? as_node(at) : nullptr;
    }

    struct found {
        obase::bytes* value;
    };
    template <class Read>
    found look_up(std::string_view key, const Read& read) const {
        const node* n = find(key, read);
        return {n != nullptr ? read(n->value) : nullptr};
    }
    bool has(std::string_view key) const { return find(key, plain_access{}) != nullptr; }

    // Pugh's getLock: locks the last link before (hash, key). What it returns is in the list: a
    // deleted link's next precedes the key, and then the loop goes on from there.
    std::unique_lock<link> lock_before(std::uint64_t hash, std::string_view key) {
        link* at = &heads_[hash & mask_];
        for (link* next; precedes(next = at->next.load_acquire(), hash, key, plain_access{});)
            at = next;
        std::unique_lock locked(*at);
        for (link* next;
             precedes(next = locked.mutex()->next.load_acquire(), hash, key, plain_access{});) {
            locked.unlock();
            locked = std::unique_lock(*next);
        }
        return locked;
    }

    // What the look without a lock found may be gone or replaced by now.
    bool replace(std::string_view key, found& seen, owner& fresh) {
        const std::uint64_t hash = hash_of(key);
        const std::unique_lock before = lock_before(hash, key);
        link* at = before.mutex()->next.load_relaxed();
        if (matches(at, hash, key, plain_access{}))
            return as_node(at)->value.compare_exchange(seen.value, fresh);
        seen.value = nullptr;
        return false;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        const std::uint64_t hash = hash_of(key);
        std::unique_lock before = lock_before(hash, key);
        link* at = before.mutex()->next.load_relaxed();
        if (matches(at, hash, key, plain_access{})) {
            // The predecessor's lock keeps the node from being deleted.
            fresh = as_node(at)->value.exchange(std::move(fresh));
            before.unlock();
            obase::retire(std::move(fresh));
            return outcome::replaced;
        }
        if (!insert) return outcome::absent;
        link* added = new node(hash, obase::make_bytes<Protocol>(key), std::move(fresh));
        added->next.store_relaxed(at);
        before.mutex()->next.store_release(added);
        size_.fetch_add_relaxed(1);
        return outcome::inserted;
    }

    const std::size_t mask_;
    const std::unique_ptr<link[]> heads_;
    obase::word::native_atomic<std::size_t> size_;
};

} // namespace crestdb
