// SPDX-License-Identifier: MIT
//
// A skip list under one lock: the sequential algorithm (W. Pugh, Skip Lists: A Probabilistic
// Alternative to Balanced Trees, CACM 1990), shared by the threads through a reader-writer lock
// (coarse_index.hpp; OBASE Table 2, "SkipList Coarse").
//
// A sorted list of all nodes, and above it, level by level, lists of half as many. A search goes
// along each level as far as it may and then down one. A new node gets as many levels as a coin
// shows heads in a row; nothing is ever balanced.
//
//     crestdb::coarse_skip_list<> list(1 << 20);
//     list.put("key", "value");
//     list.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Limits: it does not scale with threads (fraser_skip_list.hpp and herlihy_skip_list.hpp have no
// common lock), and a search has far more cache misses than in coarse_btree.hpp.
//
// Progress, linearization, scan, threads: coarse_index.hpp. Reclamation: nodes, which hold the
// keys, and values are retired: no search stands on a node that is removed, but a scan's user may
// be looking at its key.
//
// Where it differs from the source: the coin is fair (the paper recommends one in four, for memory;
// the other lists here have 1 in 2, and are to be compared); levels grow with the list, and the
// head has all of them.
#pragma once

#include "crestdb/coarse_index.hpp"
#include "crestdb/list/skip_list_towers.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

namespace crestdb {

namespace detail {
template <class Protocol>
struct sequential_node : skip_list_node<Protocol> {
    using base = skip_list_node<Protocol>;
    using typename base::owner;

    sequential_node(const long_key_head& h, unsigned height, owner&& k, owner&& v) noexcept
        : base(h, std::move(k), std::move(v)), height_(height) {}
    unsigned height() const noexcept { return height_; }

  private:
    const unsigned height_;
};
} // namespace detail

// For one thread that changes it, or any number that only search.
template <class Protocol>
class sequential_skip_list : protected skip_list_towers<Protocol, skip_list_surroundings,
                                                        detail::sequential_node<Protocol>> {
    using towers =
        skip_list_towers<Protocol, skip_list_surroundings, detail::sequential_node<Protocol>>;
    using typename towers::lower_bound;
    using typename towers::no_path;
    using typename towers::node;
    using typename towers::path;
    using typename towers::sought;

  public:
    using typename towers::guide;
    using typename towers::owner;
    static constexpr const char* name = "coarse-skip-list";

    // The height of the towers does not depend on it.
    explicit sequential_skip_list([[maybe_unused]] std::size_t expected_keys) {}

    template <class Read>
    guide* find(std::string_view key, const Read& read) const {
        node* n = towers::find(sought(key), no_path{}, read);
        return n != nullptr ? &n->value : nullptr;
    }

    guide* insert(std::string_view key, owner& value) {
        const sought wanted(key);
        path way;
        const unsigned recorded = towers::levels();
        if (node* there = towers::find(wanted, way, plain_access{}); there != nullptr)
            return &there->value;
        node& added = *towers::make_node(wanted, value).release();
        towers::raise_levels(added.height());
        towers::record_empty(way, recorded, added.height());
        for (unsigned level = 0; level < added.height(); ++level) {
            added.next(level).store_relaxed(towers::to_word(way.after[level]));
            way.before[level]->next(level).store_relaxed(towers::to_word(&added));
        }
        towers::count(added, 1);
        return nullptr;
    }

    bool remove(std::string_view key) {
        path way;
        node* victim = towers::template find<true>(sought(key), way, plain_access{});
        if (victim == nullptr) return false;
        for (unsigned level = 0; level < victim->height(); ++level)
            way.before[level]->next(level).store_relaxed(victim->next(level).load_relaxed());
        towers::count(*victim, -1);
        towers::retire_node(victim);
        return true;
    }

    template <class Take>
    void walk(std::string_view from, Take&& take) const {
        lower_bound start;
        const node* at = towers::find(sought(from), start, plain_access{});
        if (at == nullptr) at = start.at;
        while (at != nullptr) {
            const node* next = towers::to_node(at->next(0).load_relaxed());
            towers::prefetch(next);
            if (!take(at->key, at->value)) return;
            at = next;
        }
    }

    using towers::index_bytes;
    using towers::size;
};

template <class Protocol = obase::arming>
using coarse_skip_list = coarse_index<sequential_skip_list, Protocol>;

} // namespace crestdb
