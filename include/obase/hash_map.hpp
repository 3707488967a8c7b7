// SPDX-License-Identifier: MIT
//
// obase::hash_map<K, V>: a hash table for any number of threads, of which everything moves: the nodes,
// the keys and the values are managed objects, regrouped by use.
//
//     obase::hash_map<std::string, std::string> users;
//     users.put("ada", "Lovelace");
//     std::optional<std::string> name = users.get("ada");                     // a copy
//     users.visit("ada", [](std::string_view n) { std::puts(n.data()); });    // in place
//     users.erase("ada");
//
// Keys and values (obase/containers/elements.hpp): text goes in as std::string_view and comes out as
// std::string; other values are any relocatable type, other keys any that are equal exactly if their
// bytes are. There are no iterators and no references to elements: an address is good inside an
// operation only, where visit() shows it.
//
// Threads: all operations by any thread at any time; construction and destruction by one. Each
// operation is atomic. A search takes no locks; put of a new key and erase hold the lock of one of 16
// to 256 segments for the change, and for the move of that segment's table when it is due.
// Errors: std::bad_alloc from put and the constructor; nothing has changed then.
// Memory: per entry a node of 32 bytes, the key's object, the value's object, and a bucket of 8 to 16
// bytes (these do not move). Replaced and erased objects are retired (obase/retire.hpp).
// Cost: docs/indexes.md, movable-segmented-hash-table: it is CrestDB's segmented_hash_table.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>
#include <obase/containers/elements.hpp>
#include <obase/retire.hpp>

#include <crestdb/hash/segmented_hash_nodes.hpp>
#include <crestdb/hash/segmented_hash_table.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace obase {

template <class K, class V, class Protocol = arming,
          class Surroundings = crestdb::segmented_hash_surroundings>
class hash_map {
    using key = containers::key<K>;
    using value = containers::value<V>;

  public:
    using key_argument = typename key::argument;     // std::string_view for text, else const K&
    using value_argument = typename value::argument; // std::string_view for text, else V
    using value_copy = typename value::copy;         // std::string for text, else V

    // Room for this many entries before tables have to grow: 8 to 16 bytes each.
    explicit hash_map(std::size_t expected_entries = 0) : table_(expected_entries) {}

    // Inserts or replaces. True: the key is new.
    bool put(key_argument k, value_argument v) {
        const typename Protocol::scope one_operation;
        auto fresh = value::template make<Protocol>(std::move(v));
        const bool inserted = values::exchange(table_, key::bytes(k), fresh);
        obase::retire(std::move(fresh)); // what was there before
        return inserted;
    }
    // A copy of the value, if the key is there.
    std::optional<value_copy> get(key_argument k) const {
        std::optional<value_copy> result;
        visit(k, [&](const auto& v) { result.emplace(v); });
        return result;
    }
    // f(std::string_view) or f(const V&), if the key is there. What it is shown is good during the
    // call only. `f` should be short: what is retired meanwhile waits. It may use the map. True: the
    // key was there.
    template <class F>
    bool visit(key_argument k, F&& f) const {
        return table_.get_object(key::bytes(k), [&](const auto& kept) { f(value::shown(kept)); });
    }
    bool contains(key_argument k) const { return table_.contains(key::bytes(k)); }
    // True: the key was there.
    bool erase(key_argument k) { return table_.erase(key::bytes(k)); }
    // Exact while no other thread writes.
    std::size_t size() const noexcept { return table_.size(); }
    bool empty() const noexcept { return size() == 0; }

  private:
    using values = crestdb::segmented_hash_values;
    crestdb::segmented_hash_table<Protocol, crestdb::movable_nodes, Surroundings,
                                  typename value::kept>
        table_;
};

} // namespace obase
