// SPDX-License-Identifier: MIT
//
// Segmented hash table: the design of java.util.concurrent.ConcurrentHashMap in JDK 5 to 7 (Doug
// Lea; OBASE Table 2, "HashTable Java CHM"): segments with a lock and a bucket table each, searches
// that take no locks, and tables that grow segment by segment.
//
// Some bits of the hash choose a segment, others a bucket of its table, a bucket is a list. Who
// inserts or erases holds the segment's lock; new nodes are appended. When a segment has more keys
// than buckets its table is doubled; when it has fewer than one key for eight buckets, its table
// shrinks, but not below what the constructor was asked for. Both move nodes from table to table,
// bucket by bucket, while searches go on.
//
// Written once for all protocols: `Protocol` is obase::plain, obase::arming or obase::atc. Keys and
// values are guided byte strings, and move; with `Nodes` = movable_nodes (segmented_hash_nodes.hpp)
// the nodes move as well. A node has the hash of its key inline, so a search looks at key objects
// only where hashes are equal.
//
//     crestdb::segmented_hash_table<> table(1000);                         // grows to any size
//     crestdb::segmented_hash_table<obase::arming, crestdb::movable_nodes> small_values(1 << 20);
//
// The interface is that of crestdb/index.hpp.
//
// Limits: no scans. A segment that grows holds up its writers until all its nodes have been moved;
// there are at most 256 segments.
//
// Progress: put of a new key and erase of one that is there block on the segment's lock, which is
// held for the change, and for the move of the segment's table if it is due; it is never held while
// an object is allocated (a table is) or while modify's `make` runs. Replacing a value (put,
// update, modify) is lock-free once the key has been found. Searches take no locks. One that finds
// its key is done; one that does not waits and looks again if its bucket is being moved at this
// moment (a few nodes, not the table) or, with movable nodes, if the last node it met is being
// unlinked at this moment (from the exchange of its value to that of the link to it). What is retired
// under the lock costs an allocation of 32 bytes (obase/retire.hpp).
// Reclamation: nodes, keys, values and tables are retired; they are freed when no scope can see
// them. Each node is retired once, by its eraser, under the lock.
// Linearization: put at the link, or at the compare-exchange of the value, as update and modify;
// erase at the exchange that takes the value. get at the load of the value, or where the key was
// not there at some moment of the search (see find()).
// Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the source: a resize there copies the nodes whose successors change, so
// that readers of the old table keep their lists. Here a node owns its key and its value, which
// cannot be in two nodes, so the nodes themselves are moved, and a reader that finds nothing asks
// how far the move has come. Values are replaced without the lock. Nodes are appended, not put in
// front, because a guide that owns the list cannot pass it on to a new first node in one step.
// Tables shrink. There are 16 to 256 segments, by the expected number of keys; there, 16 unless
// told otherwise.
#pragma once

#include "crestdb/hash/segmented_hash_nodes.hpp"
#include "crestdb/index_operations.hpp"

#include <obase/bytes.hpp>
#include <obase/errors.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

namespace crestdb {

// The table's nodes and synchronization. Tests under the deterministic scheduler have one of their
// own.
struct segmented_hash_surroundings {
    template <class T>
    using atomic = obase::word::native_atomic<T>;
    using lock = std::mutex; // a resize takes long: its waiters sleep

    static constexpr std::size_t least_segments = 16;
    static constexpr std::size_t most_segments = 256;
    static constexpr std::size_t sparse = 8; // fewer than one key for so many buckets: shrinks

    static void* allocate(std::size_t bytes) { return ::operator new(bytes); }
    static void* allocate_or_null(std::size_t bytes) noexcept {
        return ::operator new(bytes, std::nothrow);
    }
    static void deallocate(void* memory, std::size_t) noexcept { ::operator delete(memory); }
    // For a writer that is in the middle of a few instructions.
    static void wait(unsigned attempt) noexcept {
        if (attempt < 64)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
    }
};

// For containers: operations with values of the caller's, which get back what comes out. Each in a scope
// of the caller's; what comes out may still be read by other threads, so it is to be retired.
struct segmented_hash_values {
    template <class Table, class Owner>
    static bool exchange(Table& table, std::string_view key, Owner& fresh) {
        return table.exchange(key, fresh);
    }
    template <class Table>
    static auto take(Table& table, std::string_view key) {
        return table.take(key);
    }
    template <class Table, class Like>
    static auto take_value(Table& table, std::uint64_t hash, Like&& is_it) {
        return table.take_value(hash, is_it);
    }
};

template <class Protocol = obase::arming, class Nodes = immobile_nodes,
          class Surroundings = segmented_hash_surroundings, class Value = obase::bytes>
class segmented_hash_table
    : public index_operations<segmented_hash_table<Protocol, Nodes, Surroundings, Value>, Protocol,
                              Value> {
    using operations = index_operations<segmented_hash_table, Protocol, Value>;
    friend operations;
    using nodes = typename Nodes::template of<Protocol, Surroundings, Value>;
    using node = typename nodes::node;

  public:
    using typename operations::owner; // of values
    using typename operations::scope;
    static constexpr const char* name =
        Nodes::movable ? "movable-segmented-hash-table" : "segmented-hash-table";
    static constexpr bool ordered = false;

    // Room for about this many keys before tables have to grow: 8 bytes each, up to twice that.
    explicit segmented_hash_table(std::size_t expected_keys)
        : segment_mask_(
              std::bit_ceil(std::clamp(expected_keys / keys_per_segment,
                                       Surroundings::least_segments, Surroundings::most_segments)) -
              1),
          least_buckets_(buckets_for(expected_keys / (segment_mask_ + 1))),
          segments_(std::make_unique<segment[]>(segment_mask_ + 1)) {
        for (std::size_t i = 0; i <= segment_mask_; ++i) {
            table* t = table::make(least_buckets_);
            if (t == nullptr) obase::errors::out_of_memory();
            segments_[i].current.store_relaxed(t);
        }
    }
    segmented_hash_table(const segmented_hash_table&) = delete;
    segmented_hash_table& operator=(const segmented_hash_table&) = delete;

    bool erase(std::string_view key) {
        const scope one_operation;
        owner value = take(key);
        const bool there = static_cast<bool>(value);
        obase::retire(std::move(value));
        return there;
    }

    static std::uint64_t hash_of(std::string_view key) noexcept { return sought(key).hash; }

    std::size_t size() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i <= segment_mask_; ++i) sum += segments_[i].keys.load_relaxed();
        return sum;
    }
    std::size_t segments() const noexcept { return segment_mask_ + 1; }
    std::size_t buckets() const noexcept {
        const scope tables_stay;
        std::size_t sum = 0;
        for (std::size_t i = 0; i <= segment_mask_; ++i)
            sum += segments_[i].current.load_acquire()->buckets();
        return sum;
    }
    std::size_t index_bytes() const noexcept {
        return segments() * (sizeof(segment) + sizeof(table)) + buckets() * sizeof(link) +
               size() * sizeof(node);
    }
    // Nodes that are managed objects, if nodes are.
    std::size_t managed_nodes() const noexcept { return Nodes::movable ? size() : 0; }

  private:
    friend segmented_hash_values;
    using link = typename nodes::link;
    using owned = typename nodes::owned;
    template <class T>
    using atomic = typename Surroundings::template atomic<T>;

    static constexpr std::size_t keys_per_segment = 1024;

    // Buckets, and how far they have been moved to the table that comes after this one. Buckets
    // move in ascending order, and never back:
    //
    //     progress <= 2 i      bucket i has not begun to move
    //     progress == 2 i + 1  it is being moved
    //     progress >  2 i + 1  it has been moved: its nodes are in the successor
    //
    // Order: every store to a link that a move makes is a release after the progress that announces
    // it, so a thread that has followed such a link with acquire sees at least that progress.
    class table {
      public:
        // Null if there is no memory.
        static table* make(std::size_t buckets) noexcept {
            void* memory = Surroundings::allocate_or_null(bytes_for(buckets));
            return memory != nullptr ? ::new (memory) table(buckets) : nullptr;
        }
        // `memory` is a table; what its buckets own is destroyed.
        static void end(void* memory) noexcept {
            table* t = static_cast<table*>(memory);
            const std::size_t buckets = t->buckets();
            for (std::size_t i = 0; i < buckets; ++i)
                while (nodes::pop(t->bucket(i))) { // not by recursion along the list
                }
            std::destroy_n(&t->bucket(0), buckets);
            t->~table();
            Surroundings::deallocate(memory, bytes_for(buckets));
        }
        static std::size_t bytes_for(std::size_t buckets) noexcept {
            return sizeof(table) + buckets * sizeof(link);
        }

        std::size_t buckets() const noexcept { return mask_ + 1; }
        std::size_t place_of(std::uint64_t hash) const noexcept { return hash & mask_; }
        link& bucket(std::size_t i) noexcept { return reinterpret_cast<link*>(this + 1)[i]; }

        atomic<table*> successor;
        atomic<std::size_t> progress;

      private:
        explicit table(std::size_t buckets) noexcept : mask_(buckets - 1) {
            std::uninitialized_value_construct_n(&bucket(0), buckets);
        }
        const std::size_t mask_;
    };

    struct alignas(64) segment {
        ~segment() {
            if (table* t = current.load_relaxed(); t != nullptr) table::end(t);
        }
        std::size_t buckets() const noexcept { return current.load_relaxed()->buckets(); }

        atomic<table*> current; // read by all
        // Of writers, away from what searches read.
        alignas(64) typename Surroundings::lock lock;
        atomic<std::size_t> keys;
    };

    struct sought {
        sought(std::string_view key) noexcept
            : text(key), hash(std::hash<std::string_view>{}(key)) {}
        std::string_view text;
        std::uint64_t hash;
    };

    // The hash does not give every segment the same number of keys: a little more than its share.
    static std::size_t buckets_for(std::size_t keys) noexcept {
        return std::bit_ceil(std::max<std::size_t>(keys + keys / 32, 1));
    }

    segment& segment_of(std::uint64_t hash) const noexcept {
        return segments_[hash >> 48 & segment_mask_]; // the low bits choose the bucket
    }

    template <class Read>
    static bool has_key(const node& n, const sought& key, const Read& read) {
        return n.hash == key.hash && read(n.key)->view() == key.text;
    }

    // The node with the key, or null; it may have been erased. Takes no lock. Precondition: inside
    // a scope.
    //
    // Call a node linked from the store that appends it to the one that unlinks it; the move of a
    // table does not change that. A key has at most one linked node, because both happen under the
    // segment's lock.
    //
    // A node that is found was linked at some moment of the search: the first one was when its
    // bucket was read. Let the search stand on n, linked at moment t of the search, and read from
    // its link the node m. If n is linked now, so is m: unlinking m would have changed the link. If
    // n was unlinked after t, its link has not been changed since then, and m was linked then. So a
    // value that is null was taken during the search or before, while the node was still linked
    // during it: at that moment there was no value and no other node with the key.
    //
    // A null that is believed is right: suppose a node k with the key was linked, with its value,
    // all the time. It is in the bucket, since its move has not begun (asked after the null was
    // read, see `table`). When the bucket was read k could be reached from there, and it can be
    // reached from every node the search goes on to: unlinking others leaves k reachable from all
    // nodes in the list; a node that is unlinked while the search stands on it either keeps its
    // link (immobile_nodes), or it has lost its successor, and then lost() says so (movable_nodes).
    // So the search cannot have come to the end without k.
    template <class Read>
    node* find(const sought& key, const Read& read) const {
        table* t = segment_of(key.hash).current.load_acquire(); // pairs with resize()
        for (unsigned attempt = 0;;) {
            const std::size_t bucket = t->place_of(key.hash);
            const node* last = nullptr;
            for (link* at = &t->bucket(bucket); node* n = at->follow(); at = &n->next) {
                if constexpr (Nodes::movable) read.pass(n, sizeof *n);
                if (has_key(*n, key, read)) return n;
                last = n;
            }
            if (last == nullptr || !nodes::lost(*last)) {
                const std::size_t progress = t->progress.load_acquire(); // pairs with resize()
                if (progress <= 2 * bucket) return nullptr;
                if (progress > 2 * bucket + 1) {
                    t = t->successor.load_relaxed();
                    continue;
                }
            }
            Surroundings::wait(attempt++);
        }
    }

    // The node with the key and the link to it, or null and the list's last link. Under the lock.
    struct place {
        link* link_to_it;
        node* found;
    };
    template <class Like>
    static place locate(table& t, std::uint64_t hash, const Like& is_it) {
        link* at = &t.bucket(t.place_of(hash));
        for (node* n; (n = at->follow()) != nullptr; at = &n->next)
            if (is_it(*n)) return {at, n};
        return {at, nullptr};
    }

    // The three of segmented_hash_values.

    // As put(); `fresh` has what was there before, if it was. Throws std::bad_alloc, and then `fresh`
    // is as before.
    bool exchange(std::string_view key, owner& fresh) {
        return place_value(key, fresh, true) == outcome::inserted;
    }
    // As erase(). The value; empty if the key was not there.
    owner take(std::string_view key) {
        const sought wanted(key);
        if (find(wanted, plain_access{}) == nullptr) return owner();
        return take_if(wanted.hash,
                       [&](const node& n) { return has_key(n, wanted, plain_access{}); });
    }
    // Erases the key with this hash whose value `is_it` likes, if there is one. The value that was
    // taken, which may be one that has replaced the liked one meanwhile.
    template <class Like>
    owner take_value(std::uint64_t hash, Like&& is_it) {
        return take_if(hash, [&](const node& n) {
            const Value* value = n.hash == hash ? n.value.get() : nullptr;
            return value != nullptr && is_it(*value);
        });
    }

    // Takes the value of the node that `is_it` likes, and the node out of its list. Precondition:
    // inside a scope.
    template <class Like>
    owner take_if(std::uint64_t hash, const Like& is_it) {
        segment& s = segment_of(hash);
        const std::lock_guard mine(s.lock);
        const place at = locate(*s.current.load_relaxed(), hash, is_it);
        if (at.found == nullptr) return owner();
        owner value = at.found->value.exchange(owner());
        nodes::unlink(*at.link_to_it); // at once: searches may be waiting, see lost()
        const std::size_t keys = s.keys.load_relaxed() - 1;
        s.keys.store_relaxed(keys);
        if (s.buckets() > least_buckets_ && Surroundings::sparse * keys < s.buckets())
            resize(s, std::max(least_buckets_, std::min(s.buckets() / 2, std::bit_ceil(2 * keys))));
        return value;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        const outcome done = place_value(key, fresh, insert);
        if (done == outcome::replaced) obase::retire(std::move(fresh));
        return done;
    }
    // write(), but what was replaced is in `fresh`.
    outcome place_value(std::string_view key, owner& fresh, bool insert) {
        for (auto there = this->look_up(key, plain_access{}); there.value != nullptr;) {
            // Null is for good, so no lock is needed.
            if (this->replace(key, there, fresh)) return outcome::replaced;
        }
        if (!insert) return outcome::absent;
        const sought wanted(key);
        owned added = nodes::make(wanted.hash, obase::make_bytes<Protocol>(key), fresh);
        segment& s = segment_of(wanted.hash);
        const std::lock_guard mine(s.lock);
        const place at = locate(*s.current.load_relaxed(), wanted.hash,
                                [&](const node& n) { return has_key(n, wanted, plain_access{}); });
        if (at.found != nullptr) {
            // It has a value: who takes it holds the lock until the node is out of the list.
            fresh = at.found->value.exchange(added->value.release());
            return outcome::replaced;
        }
        nodes::append(*at.link_to_it, std::move(added));
        const std::size_t keys = s.keys.load_relaxed() + 1;
        s.keys.store_relaxed(keys);
        if (keys > s.buckets()) resize(s, 2 * s.buckets());
        return outcome::inserted;
    }

    // Moves the segment's nodes to a table of another size. Without memory for it everything stays
    // as it is; the next insertion or erasure tries again. Under the lock.
    //
    // A larger table's bucket gets its nodes from one bucket only, and no reader looks into it
    // before that one has been moved; so its list may be made in any order. A smaller one's gets
    // them from several, and some of these may have been moved: it must never seem shorter than it
    // is, so nodes are appended.
    void resize(segment& s, std::size_t buckets) noexcept {
        table* from = s.current.load_relaxed();
        table* to = table::make(buckets);
        if (to == nullptr) return;
        from->successor.store_relaxed(to);
        for (std::size_t i = 0; i < from->buckets(); ++i) {
            from->progress.store_release(2 * i + 1);
            while (owned n = nodes::pop(from->bucket(i))) {
                link* at = &to->bucket(to->place_of(n->hash));
                if (buckets > from->buckets()) {
                    nodes::push(*at, std::move(n));
                } else {
                    while (node* next = at->follow()) at = &next->next;
                    nodes::append(*at, std::move(n));
                }
            }
            from->progress.store_release(2 * i + 2);
        }
        s.current.store_release(to);
        Protocol::retire(from, &table::end, table::bytes_for(from->buckets()));
    }

    const std::size_t segment_mask_;
    const std::size_t least_buckets_; // of a segment
    const std::unique_ptr<segment[]> segments_;
};

} // namespace crestdb
