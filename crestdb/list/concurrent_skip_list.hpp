// SPDX-License-Identifier: MIT
//
// concurrent_skip_list: the operations that lists share whose searches take no lock: all but put
// and erase.
//
// A base class for lists in which a node's value guide is null from its erasure on, for good. So an
// erasure and a replacement of the value meet in one word, and the order in which they change it is
// the order in which they happened.
//
// A list says why what find() returns was true at some moment of the search, and has in its nodes
// inserted(), false as long as a node that can be met does not count as there. scan() needs this as
// well:
//   * The nodes that a search stands on were in the list at level 0 at some moment of the search,
//     and so were any two that it met one behind the other at level 0, as neighbours.
//
// Precondition: a search needs no lock and does not start again.
//
// Threads: all operations by any thread.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/list/skip_list_towers.hpp"

#include <cstddef>
#include <string_view>

namespace crestdb {

template <class List, class Protocol, class Surroundings, class Node, obase::word::bits Mark = 0>
class concurrent_skip_list : public index_operations<List, Protocol>,
                             protected skip_list_towers<Protocol, Surroundings, Node, Mark> {
    using towers = skip_list_towers<Protocol, Surroundings, Node, Mark>;
    using operations = index_operations<List, Protocol>;
    friend operations;

  public:
    static constexpr bool ordered = true;

    // Walks level 0, over erased nodes too. Two neighbours of the walk had nothing between them at
    // some moment of the scan, so a key that is there all the time has no place to hide. Links lead
    // to larger keys only, so none comes twice.
    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        const typename operations::scope one_operation;
        typename towers::lower_bound start;
        const node* at = towers::find(sought(from), start, plain_access{});
        if (at == nullptr) at = start.at;
        std::size_t shown = 0;
        while (at != nullptr && shown < limit) {
            const node* next = towers::to_node(at->next(0).load_acquire());
            towers::prefetch(next);
            if (const obase::bytes* value = value_of(*at, plain_access{}); value != nullptr) {
                use(at->key->view(), value->view());
                ++shown;
            }
            at = next;
        }
        return shown;
    }

    using towers::index_bytes;
    using towers::size;

  protected:
    using node = typename towers::node;
    using sought = typename towers::sought;
    using owner = typename operations::owner;

    // In the scope in which the value was accessed.
    static bool replace(node& n, obase::bytes*& value, owner& fresh) noexcept {
        while (value != nullptr)
            if (n.value.compare_exchange(value, fresh)) return true;
        return false;
    }

  private:
    using guide = typename operations::guide;

    struct found {
        node* at;
        obase::bytes* value;
    };

    template <class Read>
    static obase::bytes* value_of(const node& n, const Read& read) {
        return n.inserted() ? read(n.value) : nullptr;
    }

    template <class Read>
    found look_up(std::string_view key, const Read& read) const {
        node* n = towers::find(sought(key), typename towers::no_path{}, read);
        return {n, n != nullptr ? value_of(*n, read) : nullptr};
    }
    bool has(std::string_view key) const {
        const node* n = towers::find(sought(key), typename towers::no_path{}, plain_access{});
        return n != nullptr && n->inserted() && n->value != nullptr;
    }
    bool replace(std::string_view, found& at, owner& fresh) noexcept {
        return at.at->value.compare_exchange(at.value, fresh);
    }
};

} // namespace crestdb
