// SPDX-License-Identifier: MIT
//
// chained_hash_table: a fixed array of buckets, each a doubly linked list of nodes, the newest first, with key and
// value allocated apart; the key-value store's table of M2T (Aboytes and Mehra, section III.C). What its parts lie
// next to is a template parameter.
//
//     crestdb::chained_hash_table<> table(1 << 20);                       // a bucket per key, nodes and keys near
//     crestdb::basic_chained_hash_table<obase::arming, crestdb::near_all> other(1 << 20, 64);
//
// A search walks its bucket's list and compares keys, so it reads a node and a key for each record before the one
// that it seeks: with long lists, where they lie is all there is to its speed. The nodes have no hash of the
// key, since the paper's have none. For few records per bucket there are better tables
// (segmented_hash_table.hpp); a bucket per key beats every other row here, wherever things lie (docs/placement.md).
//
// Placement
//   near_metadata     the nodes and keys of a bucket lie together, values elsewhere; the default
//   near_all          values, too: the paper's
//   near_nothing      every object by itself
//
// Only values have guides: what moves by temperature are values, and nodes and keys stay beside each other. So
// visit_path() shows values alone.
//
// The interface is that of crestdb/index.hpp. Limits: the number of buckets is fixed. No scans.
//
// Progress: blocking. A reader-writer lock (fair_shared_mutex.hpp) guards a 256th of the buckets each; it is held
// alone by put of a new key and by erase, else shared, and never while user code runs. Reclamation: values are
// retired; nodes and keys, which are used under the lock only, are freed at once. Linearization: anywhere under the
// lock, of a value that is replaced at the exchange or the load of its guide. Threads: all operations by any
// thread; construction and destruction by one.
#pragma once

#include "crestdb/fair_shared_mutex.hpp"
#include "crestdb/index_operations.hpp"

#include <obase/allocation_options.hpp>
#include <obase/bytes.hpp>
#include <obase/errors.hpp>
#include <obase/retire.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string_view>
#include <utility>

namespace crestdb {

struct near_nothing {
    static constexpr bool nodes = false, values = false;
};
struct near_metadata {
    static constexpr bool nodes = true, values = false;
};
struct near_all {
    static constexpr bool nodes = true, values = true;
};

template <class Protocol = obase::arming, class Placement = near_metadata>
class basic_chained_hash_table
    : public index_operations<basic_chained_hash_table<Protocol, Placement>, Protocol> {
    using base = index_operations<basic_chained_hash_table, Protocol>;
    friend base;

  public:
    using typename base::scope;
    static constexpr const char* name = "chained-hash-table";
    static constexpr bool ordered = false;

    explicit basic_chained_hash_table(std::size_t expected_keys)
        : basic_chained_hash_table(bucket_per_key(expected_keys), 1) {}
    // `per_bucket`: keys in a bucket on average, at least 1.
    basic_chained_hash_table(std::size_t expected_keys, std::size_t per_bucket)
        : buckets_(std::max<std::size_t>(expected_keys / std::max<std::size_t>(per_bucket, 1), 1)),
          table_(std::make_unique<bucket[]>(buckets_)) {}

    ~basic_chained_hash_table() {
        for (std::size_t i = 0; i < buckets_; ++i)
            while (table_[i].first != nullptr) destroy(unlink(table_[i], table_[i].first));
    }
    basic_chained_hash_table(const basic_chained_hash_table&) = delete;
    basic_chained_hash_table& operator=(const basic_chained_hash_table&) = delete;

    bool put(std::string_view key, std::string_view value) {
        const scope one_operation;
        owner fresh = new_value(key, value);
        return write(key, fresh, true) == outcome::inserted;
    }
    bool update(std::string_view key, std::string_view value) {
        const scope one_operation;
        owner fresh = new_value(key, value);
        return write(key, fresh, false) == outcome::replaced;
    }
    template <class Make>
    bool modify(std::string_view key, Make&& make) {
        const scope one_operation;
        for (found now = look_up(key, plain_access{}); now.value != nullptr;) {
            owner fresh = new_value(key, make(now.value->view()));
            if (replace(key, now, fresh)) {
                obase::retire(std::move(fresh));
                return true;
            }
        }
        return false;
    }

    // put() of a key that is not there, without a search for it: to load long lists.
    // Precondition: it is not there, and no other thread puts it.
    void put_absent(std::string_view key, std::string_view value) {
        const scope one_operation;
        owner fresh = new_value(key, value);
        bucket& in = bucket_of(key);
        const std::unique_lock alone(lock_of(in));
        insert(in, key, fresh);
    }

    bool erase(std::string_view key) {
        const scope one_operation;
        bucket& in = bucket_of(key);
        node* victim = nullptr;
        {
            const std::unique_lock alone(lock_of(in));
            victim = find(in, key);
            if (victim == nullptr) return false;
            unlink(in, victim);
        }
        size_.fetch_sub_relaxed(1);
        obase::retire(std::move(victim->value));
        destroy(victim);
        return true;
    }

    // Shown when the lock has been given back; the scope keeps it.
    template <class Visit>
    void visit_path(std::string_view key, Visit&& visit) const {
        const scope one_operation;
        const obase::bytes* const value = look_up(key, plain_access{}).value;
        if (value != nullptr)
            visit(static_cast<const void*>(value), sizeof(obase::bytes) + value->size());
    }
    // visit(const void*, std::size_t) for the node and the key of each record that get(key) would look at, under the
    // bucket's lock: for models of caches.
    template <class Visit>
    void visit_chain(std::string_view key, Visit&& visit) const {
        const scope one_operation;
        const bucket& in = bucket_of(key);
        visit(static_cast<const void*>(&in), sizeof(bucket));
        const std::shared_lock shared(lock_of(in));
        for (const node* n = in.first; n != nullptr; n = n->next) {
            visit(static_cast<const void*>(n), sizeof(node));
            visit(static_cast<const void*>(n->key), sizeof(obase::bytes) + n->key->size());
            if (n->key->view() == key) return;
        }
    }

    // visit() as in visit_chain(), and with the value, for every record. No thread writes meanwhile.
    template <class Visit>
    void visit_all(Visit&& visit) const {
        const scope one_operation;
        for (std::size_t i = 0; i < buckets_; ++i)
            for (const node* n = table_[i].first; n != nullptr; n = n->next) {
                visit(static_cast<const void*>(n), sizeof(node));
                visit(static_cast<const void*>(n->key), sizeof(obase::bytes) + n->key->size());
                const obase::bytes* const value = n->value.peek();
                visit(static_cast<const void*>(value), sizeof(obase::bytes));
            }
    }

    std::size_t size() const noexcept { return size_.load_relaxed(); }
    std::size_t managed_nodes() const noexcept { return size(); }
    std::size_t buckets() const noexcept { return buckets_; }
    std::size_t index_bytes() const noexcept {
        return buckets_ * sizeof(bucket) + size() * sizeof(node);
    }

  private:
    using typename base::guide;
    using typename base::owner;
    static constexpr std::size_t locks = 256;

    struct node {
        explicit node(owner v) noexcept : value(std::move(v)) {}
        node* next = nullptr;
        node* previous = nullptr;
        obase::bytes* key = nullptr;
        guide value; // never null while the node is in a list
    };
    struct bucket {
        node* first = nullptr;
        obase::group objects; // of the bucket, as far as the placement puts them together
    };
    struct found {
        obase::bytes* value;
    };

    static std::uint64_t hash_of(std::string_view key) noexcept {
        return std::hash<std::string_view>{}(key);
    }
    bucket& bucket_of(std::string_view key) const noexcept {
        return table_[hash_of(key) % buckets_];
    }
    fair_shared_mutex& lock_of(const bucket& in) const noexcept {
        return locks_[static_cast<std::size_t>(&in - table_.get()) % locks];
    }

    static obase::allocation_options placed(bucket& in, bool together) noexcept {
        obase::allocation_options how;
        if (together && Protocol::moves_objects) how.in = &in.objects;
        return how;
    }
    owner new_value(std::string_view key, std::string_view value) {
        return obase::make_bytes<Protocol>(value, placed(bucket_of(key), Placement::values));
    }

    // Memory of a node that is not in a list yet.
    struct unlinked {
        void operator()(node* n) const noexcept { destroy(n); }
    };
    // Takes the value when nothing can fail any more.
    static node* make_node(bucket& in, std::string_view key, owner& value) {
        obase::allocation_options how = placed(in, Placement::nodes);
        how.alignment = alignof(node);
        void* const memory = Protocol::allocate(sizeof(node), how);
        if (memory == nullptr) obase::errors::out_of_memory();
        std::unique_ptr<node, unlinked> made(::new (memory) node(owner()));
        owner copy = obase::make_bytes<Protocol>(key, placed(in, Placement::nodes));
        made->key = copy.get();
        copy.release_word();
        made->value = std::move(value);
        return made.release();
    }
    static void destroy(node* n) noexcept {
        if (n->key != nullptr) Protocol::deallocate(n->key);
        n->~node();
        Protocol::deallocate(n);
    }
    void insert(bucket& in, std::string_view key, owner& value) {
        node* const added = make_node(in, key, value);
        added->next = in.first;
        if (in.first != nullptr) in.first->previous = added;
        in.first = added;
        size_.fetch_add_relaxed(1);
    }
    static node* unlink(bucket& in, node* n) noexcept {
        (n->previous != nullptr ? n->previous->next : in.first) = n->next;
        if (n->next != nullptr) n->next->previous = n->previous;
        return n;
    }

    // Precondition: the bucket's lock is held.
    static node* find(const bucket& in, std::string_view key) noexcept {
        node* n = in.first;
        while (n != nullptr && n->key->view() != key) n = n->next;
        return n;
    }
    template <class Read>
    found look_up(std::string_view key, const Read& read) const {
        const bucket& in = bucket_of(key);
        const std::shared_lock shared(lock_of(in));
        const node* const n = find(in, key);
        return {n != nullptr ? read(n->value) : nullptr};
    }
    bool has(std::string_view key) const {
        const bucket& in = bucket_of(key);
        const std::shared_lock shared(lock_of(in));
        return find(in, key) != nullptr;
    }
    bool replace(std::string_view key, found& seen, owner& fresh) {
        const bucket& in = bucket_of(key);
        const std::shared_lock shared(lock_of(in));
        node* const n = find(in, key);
        if (n != nullptr) return n->value.compare_exchange(seen.value, fresh);
        seen.value = nullptr;
        return false;
    }
    outcome write(std::string_view key, owner& fresh, bool insert) {
        bucket& in = bucket_of(key);
        bool there = false;
        {
            const std::shared_lock shared(lock_of(in));
            if (node* const n = find(in, key); n != nullptr) {
                there = true;
                fresh = n->value.exchange(std::move(fresh));
            }
        }
        if (there) return retired(fresh);
        return insert ? insert_or_replace(in, key, fresh) : outcome::absent;
    }
    static outcome retired(owner& old) {
        obase::retire(std::move(old));
        return outcome::replaced;
    }
    outcome insert_or_replace(bucket& in, std::string_view key, owner& fresh) {
        {
            const std::unique_lock alone(lock_of(in));
            if (node* const n = find(in, key); n != nullptr) {
                fresh = n->value.exchange(std::move(fresh));
            } else {
                insert(in, key, fresh);
                return outcome::inserted;
            }
        }
        return retired(fresh);
    }

    const std::size_t buckets_;
    const std::unique_ptr<bucket[]> table_;
    obase::word::native_atomic<std::size_t> size_;
    mutable std::array<fair_shared_mutex, locks> locks_;
};

// For where a class template with one parameter is asked for.
template <class Protocol = obase::arming>
using chained_hash_table = basic_chained_hash_table<Protocol>;

} // namespace crestdb
