// SPDX-License-Identifier: MIT
//
// obase::lru_cache<K, V>: a cache for any number of threads that forgets what was not used for
// longest, and that moves whole: nodes, keys and values are managed objects. What is seldom asked
// for lies on pages that the system can take away.
//
//     obase::lru_cache<std::string, std::string> pages({.bytes = 1ull << 30});
//     if (auto page = pages.get(url)) return *page;      // a copy; counts as a use
//     std::string made = render(url);
//     pages.put(url, made);                              // may evict others
//
// Keys and values as in obase/hash_map.hpp, which this is plus the order of use. get() and visit()
// are uses, contains() is none.
//
// Threads: all operations by any thread; construction and destruction by one. Searches take no
// locks. The order of use has one lock, held for a few stores; a get() that finds it taken leaves the
// order as it is instead of waiting. So with one thread the order is exact, with several a use is
// sometimes not noted. While threads put at the same time there may be as many entries above the
// capacity as there are threads.
// Errors: std::bad_alloc from put and the constructor; nothing has changed then.
// Memory: that of a hash_map and 28 bytes per entry (36 with text). 24 of them, the order of use, do
// not move and are touched at each use. Evicting reads the node and the value of the entry that goes.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>
#include <obase/containers/elements.hpp>
#include <obase/containers/recency.hpp>
#include <obase/retire.hpp>

#include <crestdb/hash/segmented_hash_nodes.hpp>
#include <crestdb/hash/segmented_hash_table.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace obase {

// The limits of an lru_cache: entries, and bytes of nodes, keys and values as asked for, without
// what the allocator adds. The one that is reached first counts.
struct lru_capacity {
    std::size_t entries = SIZE_MAX;
    std::size_t bytes = SIZE_MAX;
};

namespace containers {

// A value and its slot in the order of use.
template <class V>
struct cached {
    cached(std::uint32_t s, V&& v) : slot(s), value(std::move(v)) {}
    const std::uint32_t slot;
    V value;
    const V& shown() const noexcept { return value; }
};
struct cached_text {
    // There is room for the text behind this.
    cached_text(std::uint32_t s, std::string_view text) noexcept : slot(s), size(text.size()) {
        if (!text.empty()) std::memcpy(static_cast<void*>(this + 1), text.data(), text.size());
    }
    cached_text(const cached_text&) = delete;
    cached_text& operator=(const cached_text&) = delete;
    const std::uint32_t slot;
    const std::size_t size;
    std::string_view shown() const noexcept {
        return {reinterpret_cast<const char*>(this + 1), size};
    }
};

template <class V>
struct cached_value {
    using argument = V;
    using kept = cached<V>;
    using copy = V;
    static std::size_t extra_bytes(const V&) noexcept { return 0; }
};
template <text V>
struct cached_value<V> {
    using argument = std::string_view;
    using kept = cached_text;
    using copy = std::string;
    static std::size_t extra_bytes(std::string_view v) noexcept { return v.size(); }
};

} // namespace containers

template <class V>
struct is_relocatable<containers::cached<V>> : is_relocatable<V> {};
template <>
struct is_relocatable<containers::cached_text> : std::true_type {};

template <class K, class V, class Protocol = arming,
          class Surroundings = crestdb::segmented_hash_surroundings>
class lru_cache {
    using key = containers::key<K>;
    using value = containers::cached_value<V>;
    using kept = typename value::kept;
    using scope = typename Protocol::scope;
    using order = containers::recency<Surroundings>;

  public:
    using key_argument = typename key::argument;     // std::string_view for text, else const K&
    using value_argument = typename value::argument; // std::string_view for text, else V
    using value_copy = typename value::copy;         // std::string for text, else V

    explicit lru_cache(lru_capacity capacity)
        : order_(capacity.entries, capacity.bytes), table_(0) {}

    // Inserts or replaces; the entry is the one used last. Then evicts until the capacity is kept;
    // an entry that is larger than the capacity goes at once. True: the key was not there.
    bool put(key_argument k, value_argument v) {
        const scope one_operation;
        const std::string_view name = key::bytes(k);
        const std::size_t extra = value::extra_bytes(v);
        reservation mine{order_, order_.reserve()};
        auto fresh =
            make_managed_with<kept, Protocol>({.extra_bytes = extra}, mine.slot, std::move(v));
        const bool inserted = values::exchange(table_, name, fresh);
        mine.kept = true;
        order_.list(mine.slot, table::hash_of(name),
                    node_bytes + sizeof(bytes) + name.size() + sizeof(kept) + extra);
        discard(std::move(fresh)); // what was there before
        evict();
        return inserted;
    }
    // A copy of the value, if the key is there: a use.
    std::optional<value_copy> get(key_argument k) {
        std::optional<value_copy> result;
        visit(k, [&](const auto& v) { result.emplace(v); });
        return result;
    }
    // f(std::string_view) or f(const V&), if the key is there: a use. What `f` is shown is good during
    // the call only; `f` should be short, and may use the cache. True: the key was there.
    template <class F>
    bool visit(key_argument k, F&& f) {
        return table_.get_object(key::bytes(k), [&](const kept& v) {
            order_.touch(v.slot);
            f(v.shown());
        });
    }
    // No use.
    bool contains(key_argument k) const { return table_.contains(key::bytes(k)); }
    // True: the key was there.
    bool erase(key_argument k) {
        const scope one_operation;
        return discard(values::take(table_, key::bytes(k)));
    }
    // Exact while no other thread writes.
    std::size_t size() const noexcept { return table_.size(); }
    bool empty() const noexcept { return size() == 0; }
    // Of nodes, keys and values, as they count for the capacity.
    std::size_t bytes_held() const noexcept { return order_.bytes(); }

  private:
    using values = crestdb::segmented_hash_values;
    using table =
        crestdb::segmented_hash_table<Protocol, crestdb::movable_nodes, Surroundings, kept>;
    using owner = typename table::owner;
    static constexpr std::size_t node_bytes = 32;

    // Of a slot, until its value is in the table.
    struct reservation {
        order& in;
        typename order::number slot;
        bool kept = false;
        ~reservation() {
            if (!kept) in.cancel(slot);
        }
    };

    // Ends a value that came out of the table. True if there was one.
    bool discard(owner&& gone) noexcept {
        if (!gone) return false;
        order_.drop(gone->slot);
        obase::retire(std::move(gone));
        return true;
    }
    void evict() noexcept {
        while (const auto oldest = order_.take_oldest()) {
            // If another thread has taken the value out it has dropped the slot, too. The value that
            // comes out may have replaced the oldest: then this one goes, with its own slot.
            discard(values::take_value(table_, oldest->hash,
                                       [&](const kept& v) { return v.slot == oldest->slot; }));
        }
    }

    order order_;
    table table_;
};

} // namespace obase
