// SPDX-License-Identifier: MIT
//
// Fraser's skip list: an ordered index without locks (K. Fraser, Practical lock-freedom, 2004,
// section 4.3.3; OBASE Table 2, "SkipList Fraser").
//
// A sorted list of all nodes, and above it, level by level, lists of half as many. The lowest bit
// of a next pointer is a mark: the node that holds the pointer is being deleted, and the pointer
// never changes again. A key is erased by taking its value out of the node's value guide, which
// becomes null for good; then the node is marked from its top level down, and unlinked.
//
// Written once for all protocols: `Protocol` is obase::plain, obase::arming or obase::atc. Keys and
// values are guided byte strings, and move; the nodes stay. A node has the first 24 bytes of its
// key inline, so a search looks at key objects only where those are equal.
//
//     crestdb::fraser_skip_list<> list(1 << 20);
//     list.put("key", "value");
//     list.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Limits: a hash table is several times as fast where keys need no order. A search visits about two
// nodes per level, each a cache miss below the topmost levels; a B+tree has far fewer.
//
// Progress: lock-free, all operations. A search that only reads never starts again.
// Reclamation: nodes, keys and values are retired; they are freed when no scope can see them.
// Linearization: a key is there while a node with it is linked at level 0 and holds a value. put at
// the link at level 0, or at the compare-exchange of the value, as update and modify; erase at the
// exchange of the value. get at the load of the value, or where the key was not there at some
// moment of the search (see find()). scan is no snapshot: see crestdb/index.hpp and scan().
// Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the source: reading searches do not descend from marked nodes (from one
// that has long been unlinked below they could miss keys that were inserted since), and a put that
// finds no need to unlink anything searches only once.
#pragma once

#include "crestdb/list/concurrent_skip_list.hpp"
#include "crestdb/list/skip_list_towers.hpp"

#include <obase/bytes.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>

#include <compare>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace crestdb {

namespace detail {
template <class Protocol>
struct fraser_node : skip_list_node<Protocol> {
    using base = skip_list_node<Protocol>;
    using typename base::owner;

    fraser_node(const long_key_head& h, unsigned height, owner&& k, owner&& v) noexcept
        : base(h, std::move(k), std::move(v)),
          height_and_references(height * height_unit + (height > 1 ? 2 : 1)) {}

    // Whose steps must all be done before the node can be retired: the inserter's, who links
    // levels above 0, and the eraser's. A node without levels above 0 begins without the first.
    static constexpr obase::word::bits height_unit = 256;
    unsigned height() const noexcept {
        return static_cast<unsigned>(height_and_references.load_relaxed() / height_unit);
    }
    bool drop_reference_was_last() noexcept {
        // Acquires what the other hand did, so that its links are seen and unlinked.
        return height_and_references.fetch_sub_acq_rel(1) % height_unit == 1;
    }
    // It counts as soon as it can be met.
    static constexpr bool inserted() noexcept { return true; }

    typename base::link height_and_references;
};
inline constexpr obase::word::bits fraser_mark = 1;
} // namespace detail

// find(): why what it says was true at some moment of the search. Call a node in the list at level
// i while it can be reached there. A node with an unmarked link at level i that has been linked
// there is in the list at level i. Nodes are linked from level 0 up and marked from the top down,
// so one that is seen at level i with an unmarked link is in the list at level 0 as well. The
// search descends only from such nodes. Let it stand on a node that was in the list at level 0 at
// moment t of the search, and follow its link there. If the link is unmarked, the successor is in
// the list now. If it was marked after t, the successor was in the list at that moment, because the
// link has not changed since; if before t, at t. So at some moment of the search the last node
// before the key and the first one not before it were in the list and neighbours.
template <class Protocol = obase::arming, class Surroundings = skip_list_surroundings>
class fraser_skip_list
    : public concurrent_skip_list<fraser_skip_list<Protocol, Surroundings>, Protocol, Surroundings,
                                  detail::fraser_node<Protocol>, detail::fraser_mark> {
    using base =
        concurrent_skip_list<fraser_skip_list<Protocol, Surroundings>, Protocol, Surroundings,
                             detail::fraser_node<Protocol>, detail::fraser_mark>;
    friend index_operations<fraser_skip_list, Protocol>;

  public:
    static constexpr const char* name = "fraser-skip-list";

    // The height of the towers does not depend on it.
    explicit fraser_skip_list([[maybe_unused]] std::size_t expected_keys) {}

    bool erase(std::string_view key) {
        const typename base::scope one_operation;
        const sought wanted(key);
        node* victim = find(wanted, no_path{}, plain_access{});
        if (victim == nullptr) return false;
        owner value = victim->value.exchange(owner());
        if (!value) return false; // another thread's erase
        obase::retire(std::move(value));
        count(*victim, -1);
        mark(*victim);
        drop_reference(*victim, wanted);
        return true;
    }

  private:
    using base::compare;
    using base::count;
    using base::find;
    using base::head_;
    using base::is_marked;
    using base::levels;
    using base::to_node;
    using base::to_word;
    using typename base::bits;
    using typename base::no_path;
    using typename base::node;
    using typename base::owner;
    using typename base::path;
    using typename base::sought;
    using typename base::tower;

    // As find(), and unlinks the marked nodes it meets; the path's nodes were neighbours, unmarked,
    // at some moment. `past_equal`: goes on to the first node behind those with the key, so that
    // it meets all of those. Starts again when the node it stands on has been marked, which is
    // another thread's progress.
    template <bool past_equal, class Path>
    node* unlink(const sought& key, Path&& way) {
    again:
        tower* before = head_;
        for (unsigned level = levels(); level-- > 0;) {
            for (;;) {
                bits first = before->next(level).load_acquire();
                if (is_marked(first)) goto again;
                node* at = to_node(first);
                for (bits next; at != nullptr && is_marked(next = at->next(level).load_acquire());)
                    at = to_node(next);
                // A whole run at once. Its links are frozen, so `at` is still behind it.
                if (at != to_node(first) && !before->next(level).cas_release(first, to_word(at)))
                    continue;
                const auto order = at == nullptr ? std::strong_ordering::greater
                                                 : compare(*at, key, plain_access{});
                if (order < 0 || (past_equal && order == 0)) {
                    before = at;
                    continue;
                }
                way.record(level, before, at);
                if (level == 0 && order == 0) return at;
                break;
            }
        }
        return nullptr;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        const sought wanted(key);
        path way;
        const unsigned recorded = levels();
        node* there = find(wanted, way, plain_access{});
        for (std::unique_ptr<node, typename base::unpublished> added;;) {
            if (there != nullptr) {
                obase::bytes* seen = there->value.get();
                if (base::replace(*there, seen, fresh)) {
                    obase::retire(std::move(fresh));
                    return outcome::replaced;
                }
                if (!insert) return outcome::absent;
                // Being erased. It has to be out of level 0 before there is another one.
                mark(*there);
            } else {
                if (!insert) return outcome::absent;
                if (added == nullptr) {
                    added = base::make_node(wanted, fresh);
                    base::raise_levels(added->height());
                    base::record_empty(way, recorded, added->height());
                } else {
                    added->value = std::move(fresh);
                }
                for (unsigned level = 0; level < added->height(); ++level)
                    added->next(level).store_relaxed(to_word(way.after[level]));
                bits expected = to_word(way.after[0]);
                // Counted first: otherwise another thread's erase might take the count below zero.
                count(*added, 1);
                if (way.before[0]->next(0).cas_release(expected, to_word(added.get()))) {
                    node& linked = *added.release();
                    if (linked.height() > 1) link_upper(linked, wanted, way);
                    return outcome::inserted;
                }
                count(*added, -1);
                fresh = added->value.release();
            }
            there = unlink<false>(wanted, way);
        }
    }

    // The inserter's second part.
    void link_upper(node& added, const sought& key, path& way) {
        for (unsigned level = 1; level < added.height(); ++level) {
            for (;;) {
                // Only its eraser changes the link of a node that is not linked at this level, to
                // mark it. Once it is marked, linking it further would be work for nothing, though
                // no harm: see drop_reference().
                const bits after = to_word(way.after[level]);
                bits next = added.next(level).load_acquire();
                if (is_marked(next) ||
                    (next != after && !added.next(level).cas_release(next, after)))
                    return drop_reference(added, key);
                bits expected = after;
                if (way.before[level]->next(level).cas_release(expected, to_word(&added))) break;
                unlink<false>(key, way);
            }
        }
        drop_reference(added, key);
    }

    // From the top down: a node that is unmarked at some level is unmarked below. Repeated by those
    // who help.
    static void mark(node& victim) noexcept {
        for (unsigned level = victim.height(); level-- > 0;)
            victim.next(level).fetch_or_acq_rel(detail::fraser_mark);
    }

    // Ends the inserter's or the eraser's work on the node; the last of the two unlinks and retires
    // it.
    //
    // Why no thread can reach the node afterwards. The inserter has done its last link and all
    // levels are marked. A node comes into a level's list once, by its inserter. Unlinking others
    // does not bring it back: that makes a link skip marked nodes, whose links are frozen, so it
    // reaches nothing that it did not reach before. So from here on the node can only leave lists,
    // and one walk per level over all nodes with its key is enough. Over all of them: at a level
    // above 0 there can be a newer node with the same key in front of it, whose inserter saw the
    // old one there before it was marked, and linked its own before it.
    void drop_reference(node& n, const sought& key) {
        if (!n.drop_reference_was_last()) return;
        unlink<true>(key, no_path{});
        base::retire_node(&n);
    }
};

} // namespace crestdb
