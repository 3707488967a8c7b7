// SPDX-License-Identifier: MIT
//
// The lazy skip list: an ordered index with a lock per node and searches that take none (M.
// Herlihy, Y. Lev, V. Luchangco, N. Shavit, A Simple Optimistic Skiplist Algorithm, SIROCCO 2007;
// OBASE Table 2, "SkipList Herlihy").
//
// A sorted list of all nodes, and above it, level by level, lists of half as many. An insertion
// searches without locking, locks the predecessors of all its levels, sees whether they are still
// that (neither erased nor separated by a new node) or else starts again, links the node from the
// bottom up and then says that it is fully linked: now it is there. An erasure first marks the
// node, from when on it is not there; then it locks the predecessors in the same way and unlinks
// the node from the top down.
//
//     crestdb::herlihy_skip_list<> list(1 << 20);
//     list.put("key", "value");
//     list.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// The interface is that of crestdb/index.hpp.
//
// Limits: a hash table is several times as fast where keys need no order. A search visits about two
// nodes per level, each a cache miss below the topmost levels; a B+tree has far fewer. A thread
// that loses its core while it holds locks stops its neighbours' writers (fraser_skip_list.hpp has
// no locks).
//
// The mark is the value: a node's value guide is null from its erasure on, for good. So an erasure
// and a replacement of the value meet in one word, which decides who was first: put, update and
// modify of an existing key are compare-exchanges of the value and take no lock.
//
// Why there is no deadlock: every thread locks in the order of strictly descending keys. An erasure
// begins with its node, whose predecessors have smaller keys. Predecessors are locked from level 0
// up; the path that a search leaves behind goes strictly to larger keys from the top down, so the
// predecessor at a higher level is the same node (and not locked twice) or has a smaller key. The
// head, which comes before all keys, is last. So in a circle of threads that wait for each other's
// locks keys would descend all the way round. A put that waits for another thread's insertion or
// erasure of the same key to end holds no lock.
//
// Why an erased node is unreachable when it is retired: while the predecessors are locked, unmarked
// and lead to it, they are the only nodes of their levels' lists that do. Afterwards none does, and
// none will: a node is linked only behind unmarked nodes that lead to its successor at that moment.
// A node that was unlinked earlier may lead to it for ever, but only a search whose scope was open
// before that one was retired stands there.
//
// Why what a search says was true at some moment of the search (find() in skip_list_towers.hpp): a
// node that is linked at any level is linked at level 0, since nodes are linked from the bottom up
// and unlinked from the top down; and the links of a node that is unlinked do not change, since
// they change only under its lock and with its mark not set, or to be unlinked. Let a search stand
// on a node that was in the list at some moment of the search, and follow its link. If the node is
// in the list now, so is the successor. If not, it left during the search, and the link is what it
// was then, so the successor was in the list at that moment. Thus every node the search meets was
// in the list at some moment of the search; and where it ends, the two nodes with the key between
// them were neighbours at level 0 at one.
// If a node with the key is marked, or not yet fully linked, the key was not there at some moment
// of the search, too, because as long as that node is in the list there is no other one.
//
// Progress: get, contains, edit_in_place, scan and visit_path never wait and never start again (as
// long as keys are finitely many, they are wait-free); modify and update neither, but that their
// compare-exchange of the value may fail, which is another's success. put blocks when it inserts or
// meets a node with the key that is coming or going; erase blocks. Locks are held for the linking,
// never for an allocation or a callback.
// Reclamation: nodes, keys and values are retired; they are freed when no scope can see them.
// Linearization: put of a new key when its node is declared fully linked; put, update and modify of
// an existing key at the compare-exchange of the value; erase at the exchange of the value. get at
// the load of the value, or where the key was not there at some moment of the search. scan is no
// snapshot: see crestdb/index.hpp and concurrent_skip_list.hpp.
// Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the source: the mark; put also replaces; an insertion does not ask whether
// its successors are marked (they may become so as soon as one has asked, and it would not matter:
// the erasure finds the new node in front of its own when it looks for predecessors); erase does
// not ask at which level the node was found, and repeats its search instead. So fully_linked makes
// the moment of an insertion one store, and no more than that: an erasure waits for the inserter's
// locks anyway.
#pragma once

#include "crestdb/list/concurrent_skip_list.hpp"
#include "crestdb/list/skip_list_towers.hpp"
#include "crestdb/spin_lock.hpp"

#include <obase/bytes.hpp>
#include <obase/retire.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace crestdb {

namespace detail {
// The part that the head has, too.
template <class Protocol, class Surroundings>
struct herlihy_tower : skip_list_tower<Protocol> {
    using flag = typename Surroundings::template atomic<std::uint8_t>;

    herlihy_tower() noexcept : is_head(true), levels(0) {}
    explicit herlihy_tower(unsigned height) noexcept
        : is_head(false), levels(static_cast<std::uint8_t>(height)) {}

    basic_spin_lock<flag, Surroundings> lock; // of its links
    flag fully_linked;
    const bool is_head;
    const std::uint8_t levels;
};
template <class Protocol, class Surroundings>
struct herlihy_node : skip_list_node<Protocol, herlihy_tower<Protocol, Surroundings>> {
    using base = skip_list_node<Protocol, herlihy_tower<Protocol, Surroundings>>;
    using typename base::owner;

    herlihy_node(const long_key_head& h, unsigned height, owner&& k, owner&& v) noexcept
        : base(h, std::move(k), std::move(v), height) {}
    unsigned height() const noexcept { return base::levels; }
    bool inserted() const noexcept { return base::fully_linked.load_acquire() != 0; }
};
} // namespace detail

template <class Protocol = obase::arming, class Surroundings = skip_list_surroundings>
class herlihy_skip_list
    : public concurrent_skip_list<herlihy_skip_list<Protocol, Surroundings>, Protocol, Surroundings,
                                  detail::herlihy_node<Protocol, Surroundings>> {
    using base = concurrent_skip_list<herlihy_skip_list<Protocol, Surroundings>, Protocol,
                                      Surroundings, detail::herlihy_node<Protocol, Surroundings>>;
    friend index_operations<herlihy_skip_list, Protocol>;

  public:
    static constexpr const char* name = "herlihy-skip-list";

    // The height of the towers does not depend on it.
    explicit herlihy_skip_list([[maybe_unused]] std::size_t expected_keys) {}

    bool erase(std::string_view key) {
        const typename base::scope one_operation;
        const sought wanted(key);
        path way;
        const unsigned recorded = base::levels();
        node* victim = base::template find<true>(wanted, way, plain_access{});
        if (victim == nullptr || !victim->inserted() || victim->value == nullptr) return false;
        owner value;
        {
            const std::lock_guard own(victim->lock);
            value = victim->value.exchange(owner());
            if (!value) return false; // another thread's erase
            base::record_empty(way, recorded, victim->height());
            for (unsigned attempt = 0; !unlink(*victim, way);) {
                Surroundings::wait(attempt++);
                base::template find<true>(wanted, way, plain_access{});
            }
        }
        base::count(*victim, -1);
        obase::retire(std::move(value));
        base::retire_node(victim);
        return true;
    }

  private:
    using base::to_word;
    using typename base::node;
    using typename base::owner;
    using typename base::path;
    using typename base::sought;
    using typename base::tower;

    // Locks of predecessors, from level 0 up.
    class lock_set {
      public:
        lock_set() noexcept = default;
        ~lock_set() {
            for (unsigned i = 0; i < count_; ++i) towers_[i]->lock.unlock();
        }
        lock_set(const lock_set&) = delete;
        lock_set& operator=(const lock_set&) = delete;

        void add(tower* t) noexcept {
            if (count_ != 0 && towers_[count_ - 1] == t) return;
            t->lock.lock();
            towers_[count_++] = t;
        }

      private:
        unsigned count_ = 0;
        std::array<tower*, base::max_height> towers_;
    };

    static bool is_erased(const tower* t) noexcept {
        return !t->is_head && static_cast<const node*>(t)->value == nullptr;
    }
    // Locks what the path has before the node, or its place, and says whether it is still that.
    static bool lock_before(lock_set& held, const path& way, unsigned height,
                            const node* const* after) noexcept {
        for (unsigned level = 0; level < height; ++level, ++after) {
            tower* before = way.before[level];
            held.add(before);
            // Under its lock: it is in the list, and stays there.
            if (is_erased(before) || before->next(level).load_relaxed() != to_word(*after))
                return false;
        }
        return true;
    }

    // From the bottom up: a node linked at some level is linked below. False: the path is out of
    // date.
    bool link(node& added, const path& way) noexcept {
        const unsigned height = added.height();
        for (unsigned level = 0; level < height; ++level)
            added.next(level).store_relaxed(to_word(way.after[level]));
        lock_set held;
        if (!lock_before(held, way, height, way.after)) return false;
        base::count(added, 1); // before another thread can erase it and count it out
        for (unsigned level = 0; level < height; ++level)
            way.before[level]->next(level).store_release(to_word(&added)); // pairs with find()
        added.fully_linked.store_release(1);                               // pairs with inserted()
        return true;
    }

    // From the top down. Under the victim's lock: no thread links anything behind it.
    bool unlink(node& victim, const path& way) noexcept {
        const unsigned height = victim.height();
        std::array<const node*, base::max_height> all;
        std::fill_n(all.begin(), height, &victim);
        lock_set held;
        if (!lock_before(held, way, height, all.data())) return false;
        for (unsigned level = height; level-- > 0;)
            way.before[level]->next(level).store_release(victim.next(level).load_relaxed());
        return true;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        const sought wanted(key);
        std::unique_ptr<node, typename base::unpublished> added;
        for (unsigned attempt = 0;; Surroundings::wait(attempt++)) {
            path way;
            const unsigned recorded = base::levels();
            node* there = base::find(wanted, way, plain_access{});
            if (there != nullptr && there->inserted()) {
                obase::bytes* seen = there->value.get();
                if (base::replace(*there, seen, fresh)) {
                    obase::retire(std::move(fresh));
                    return outcome::replaced;
                }
            }
            if (!insert) return outcome::absent;
            if (there != nullptr) continue; // until its inserter or its eraser has finished
            if (added == nullptr) {
                added = base::make_node(wanted, fresh);
                base::raise_levels(added->height());
            } else {
                added->value = std::move(fresh);
            }
            base::record_empty(way, recorded, added->height());
            if (link(*added, way)) {
                added.release();
                return outcome::inserted;
            }
            fresh = added->value.release();
        }
    }
};

} // namespace crestdb
