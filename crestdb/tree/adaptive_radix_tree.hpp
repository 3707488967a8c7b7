// SPDX-License-Identifier: MIT
//
// An adaptive radix tree (Leis, Kemper, Neumann, The adaptive radix tree: ARTful indexing for
// main-memory databases, ICDE 2013; OBASE Table 2) with optimistic lock coupling (Leis, Scheibner,
// Kemper, Neumann, The ART of practical synchronization, DaMoN 2016).
//
// A trie over the bytes of the keys. An inner node consumes the bytes that all keys below it have
// in common (path compression) and then branches on one byte; it has room for 4, 16, 48 or 256
// children, as many as it needs (radix_node.hpp). A key that shares its further bytes with no other
// has its leaf there, however long the rest (lazy expansion). The height depends on the keys, not
// on how many there are.
//
//     crestdb::adaptive_radix_tree<> tree(1 << 20);
//     tree.put("key", "value");
//     tree.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
//
// A leaf holds the guides of key and value, the key's size and its last eight bytes. Prefixes are
// compared in full on the way down (the paper's pessimistic path compression), so a leaf's key is
// the sought one if the sizes are equal and so is what the way has not decided yet. If that is
// in the last eight bytes, as with all keys of eight bytes, the key object is not looked at; else
// it is, after the last eight bytes were found equal. So a get touches the value, at most the sought
// key, and of other keys none but those that have the same size and end alike. The paper's
// hybrid compares eight bytes and leaves the rest to the leaf: then every search looks at a key
// object, also one for a key that is not there, and an insertion that finds a difference has to fetch
// some other key from below to see where it is. What the choice costs is the memory of prefixes of
// more than eight bytes, one block for each node that has one.
//
// Limits: where order does not matter and keys are long, a hash table needs fewer cache lines. Of
// keys such as a, aa, aaa, ... each is a level.
//
// Why optimistic lock coupling, and not ROWEX of the same paper, whose readers never start again:
// ROWEX lets a reader go on in a node that was replaced while it was there, so a replaced node must
// keep its links. Here a link may be the guide that owns the child (movable nodes), and then the
// children leave the old node for the new one. Also, ROWEX keeps a node's depth beside its prefix
// and repairs what a reader skipped by a look at the key: exactly the look that pessimistic path
// compression does without.
//
// A search notes the version of a node (version_lock.hpp), looks, notes the version of the child and
// then asks whether the first one is unchanged. A writer does the same and then locks the nodes it
// changes, by compare-exchange from the version it noted: the node that gets or loses a leaf; that
// node and the one above if it is replaced by a larger or smaller one; that one and the one below
// if a prefix is divided or joined. What a writer needs is allocated before. The top is a link with
// a version of its own, as if it were in a node.
//
// Invariant: while a node's version is unchanged, the bytes that lead to it are, too. (They change
// only when its prefix does, at either end, or when it leaves the tree; for each it is locked.) So
// what a search knows about the beginning of the keys below stays true as long as the last version.
//
// The value's guide is the key's state: it is not null while the key is there, and null for good
// when it was erased. put, update and modify of an existing key replace it by compare-exchange
// without a lock. Erasing takes it out under the lock of the node that has the leaf, then takes the
// leaf out.
//
// Why an optimistic reader may dereference a guide (R5 of docs/protocol.md): the node is a node as
// long as the scope is open, for it was reached in it and is freed by retire(); all its links and
// guides are constructed with it and destroyed with it, so each word read as a slot is one. If a node
// is movable it stays where it is, too, while the scope is open (O1). An empty link means that
// something was moved away, and then the version has changed.
//
// Erasures make nodes smaller again, at fewer children than the smaller kind holds. A node with
// one child is joined with it, or gives its place to the leaf; an empty one goes. That is done behind
// the erasure as a change of its own, and left undone if there is no memory for it; the next erasure
// there tries again. Erasing everything gives everything back.
//
// Progress: get, contains and scan write nothing; they wait for the holder of a node, for the time
// of an insertion into it or of moving its children to another node, and start again when a
// change got in between. Replacing a value is lock-free except for that. Insertions lock one to two
// nodes, removals of nodes up to three, never waiting for one while holding another. Linearization:
// get at the load of the value's word; contains at the look at it; either, when the key is not
// found, where the last version was found unchanged (or where the value was null); put, update and
// modify of an existing key at the compare-exchange of the value; put of a new key at the unlock of
// the node whose link leads to the leaf, or to what was put between them; erase at the exchange of
// the value's word. Reclamation: leaves (with their keys), values, nodes and prefixes are retired.
//
// scan: walks the tree with the nodes above on a stack, their versions noted; each pair is one that
// its node had when found unchanged afterwards. If a node has changed, or after 64 pairs, it starts
// again behind the last key, in a new scope. As all the bytes that lead to a node are what they were,
// keys ascend and none is missed that was there all the time.
//
// Depth is bounded by the length of keys, up to 65536 nodes for keys that are all prefixes of each
// other: nothing here recurses.
//
// Threads: all operations by any thread; construction and destruction by one.
//
// Where it differs from the papers: keys may be any bytes and prefixes of each other, without a
// terminator; bytes of small nodes are not sorted; values are replaced without a lock; nodes that
// were replaced need no mark, see version_lock.hpp.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/node_links.hpp"
#include "crestdb/spin_lock.hpp"
#include "crestdb/tree/radix_node.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace crestdb {

template <class Protocol = obase::arming, class Links = immobile_links, class Shape = spinning>
class adaptive_radix_tree
    : public index_operations<adaptive_radix_tree<Protocol, Links, Shape>, Protocol> {
    using operations = index_operations<adaptive_radix_tree, Protocol>;
    friend operations;

  public:
    using typename operations::scope;
    static constexpr const char* name =
        Links::movable ? "movable-adaptive-radix-tree" : "adaptive-radix-tree";
    static constexpr bool ordered = true;

    // The tree grows as it needs to; the number is not used.
    explicit adaptive_radix_tree(std::size_t /*expected_keys*/ = 0) noexcept {}
    ~adaptive_radix_tree() { dismantle(top_.first.release()); }
    adaptive_radix_tree(const adaptive_radix_tree&) = delete;
    adaptive_radix_tree& operator=(const adaptive_radix_tree&) = delete;

    // True: the key was there.
    bool erase(std::string_view key) {
        const scope one_operation;
        for (unsigned attempt = 0;; start_again(attempt)) {
            place p;
            const end found = search(key, plain_access{}, p);
            if (found == end::torn) continue;
            if (found != end::sought) return false;
            if (!p.at.lock->lock_if(p.at.seen)) continue;
            value_owner value = p.child->leaf().value.release();
            node_owner leaf = take(p.at);
            const bool sparse = p.at.holder != nullptr && p.at.holder->sparse();
            p.at.lock->unlock();
            size_.fetch_sub_relaxed(1);
            obase::retire(std::move(value));
            retire_node(std::move(leaf));
            if (sparse) tidy(key);
            return true;
        }
    }

    // Calls use(key, value) for up to `limit` pairs with key >= from, ascending; see above for what
    // concurrent changes mean. Returns how many.
    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        std::string next;
        std::vector<level> stack;
        std::size_t done = 0;
        for (unsigned attempt = 0; done < limit;) {
            const scope one_walk;
            found_pairs pairs;
            const walk how = collect(from, limit - done, stack, pairs);
            if (how == walk::torn && pairs.count == 0) {
                start_again(attempt);
                continue;
            }
            for (unsigned i = 0; i < pairs.count; ++i)
                use(pairs.key[i]->view(), pairs.value[i]->view());
            done += pairs.count;
            if (how == walk::finished || done == limit) break;
            // The smallest string above the last key. `from` may be what `next` held.
            std::string behind(pairs.key[pairs.count - 1]->view());
            behind.push_back('\0');
            next.swap(behind);
            from = next;
        }
        return done;
    }

    // Exact while no thread writes.
    std::size_t size() const noexcept { return size_.load_relaxed(); }
    // Nodes, leaves and prefixes: all but keys and values.
    std::size_t index_bytes() const noexcept { return sizeof(*this) + bytes_.load_relaxed(); }

    // Nodes and leaves that are managed objects. Exact while no thread writes.
    std::size_t managed_nodes() const noexcept
        requires Links::movable
    {
        return nodes_.load_relaxed();
    }

  private:
    using node = radix_node<Protocol, Links, Shape>;
    using node_owner = typename node::owner;
    using link = typename node::link;
    using lock_word = typename node::lock_word;
    using version = typename node::version;
    using typename operations::guide;
    using value_owner = typename operations::owner;
    template <class T>
    using atomic = typename Shape::template atomic<T>;

    struct no_counter {};
    // The link to the uppermost node.
    struct top {
        lock_word lock;
        link first;
    };

    // A link, or where one would be, and the version of what holds it.
    struct spot {
        node* holder = nullptr; // null: the top
        lock_word* lock = nullptr;
        version seen = 0;
        radix_symbol symbol = 0; // of the holder, that leads to the link
        link* at = nullptr;      // null: the holder has no link for the symbol

        bool unchanged() const noexcept { return lock->unchanged(seen); }
    };
    // Where a search ended.
    struct place {
        spot at, above;    // above.at refers to at.holder, if that is a node
        node* child;       // what at.at refers to
        std::size_t depth; // bytes of the key that the way to at.at has decided
        // If child is an inner node with another prefix:
        version of_child;
        std::size_t agreed; // bytes of its prefix that are the key's
    };
    enum class end {
        torn,     // something changed; start again
        nothing,  // at.at is empty or null
        leaf,     // child is a leaf
        diverges, // child is an inner node; the key has not all of its prefix
        sought    // child is the leaf of the key
    };

    static void start_again(unsigned& attempt) noexcept { Shape::wait(attempt++); }

    // Follows the key as far as there are inner nodes that agree with it. What it says (but for torn)
    // was true at a moment during the call, and is as long as at.lock is at at.seen.
    template <class Read>
    end descend(std::string_view key, const Read& read, place& p) const {
        auto& first = const_cast<top&>(top_);
        p.above = {};
        p.at = {nullptr, &first.lock, first.lock.read(), 0, &first.first};
        p.depth = 0;
        for (;;) {
            node* const n = p.at.at != nullptr ? p.at.at->get() : nullptr;
            p.child = n;
            if (n == nullptr) return p.at.unchanged() ? end::nothing : end::torn;
            if constexpr (Links::movable) read.pass(n, n->bytes());
            prefetch(*n);
            if (n->is_leaf()) return p.at.unchanged() ? end::leaf : end::torn;
            const version seen = n->inner().lock.read();
            if (!p.at.unchanged()) return end::torn; // n was the child when it had that version
            typename node::agreement a;
            if (!n->compare_prefix(key, p.depth, seen, a)) return end::torn;
            if (a.agreed != a.size) {
                p.of_child = seen;
                p.agreed = a.agreed;
                return n->inner().lock.unchanged(seen) ? end::diverges : end::torn;
            }
            p.depth += a.size;
            p.above = p.at;
            const radix_symbol symbol = symbol_at(key, p.depth);
            p.at = {n, &n->inner().lock, seen, symbol, n->find(symbol)};
            p.depth += symbol != key_ends ? 1 : 0;
        }
    }
    // A node16 has its links in three lines, and which one is needed is known after the first. For
    // a leaf or a node4 that is a line or two too many, at the same time.
    static void prefetch(const node& n) noexcept {
        const char* lines = reinterpret_cast<const char*>(&n);
        __builtin_prefetch(lines + 64);
        __builtin_prefetch(lines + 128);
    }
    // The same, with a look at the leaf.
    template <class Read>
    end search(std::string_view key, const Read& read, place& p) const {
        const end found = descend(key, read, p);
        return found == end::leaf && is_leaf_of(key, p.depth, *p.child, read) ? end::sought : found;
    }
    // The first `depth` bytes of the leaf's key are those of `key`.
    template <class Read>
    static bool is_leaf_of(std::string_view key, std::size_t depth, const node& n,
                           const Read& read) {
        if (n.key_size() != key.size() || n.leaf().tail != node::tail_of(key)) return false;
        if (n.tail_suffices(depth)) return true;
        __builtin_prefetch(n.leaf().value.peek()); // no access
        const std::size_t rest = key.size() - node::tail_bytes;
        return read(n.leaf().key)->view().substr(depth, rest - depth) ==
               key.substr(depth, rest - depth);
    }

    // The leaf's content; null: the key is not there. A leaf that is returned is the key's,
    // whatever has changed since.
    template <class Read>
    typename node::leaf_part* find(std::string_view key, const Read& read) const {
        for (unsigned attempt = 0;; start_again(attempt)) {
            place p;
            const end found = search(key, read, p);
            if (found != end::torn) return found == end::sought ? &p.child->leaf() : nullptr;
        }
    }

    outcome write(std::string_view key, value_owner& fresh, bool insert) {
        node_owner leaf;
        for (unsigned attempt = 0;; start_again(attempt)) {
            place p;
            const end found = search(key, plain_access{}, p);
            if (found == end::torn) continue;
            if (found == end::sought) {
                guide& current = p.child->leaf().value;
                for (obase::bytes* seen = current.get(); seen != nullptr;) {
                    if (!current.compare_exchange(seen, fresh)) continue;
                    obase::retire(std::move(fresh)); // it has the old one now
                    return outcome::replaced;
                }
                if (insert) continue; // the eraser is about to take the leaf out
            }
            if (!insert) return outcome::absent;
            if (!leaf) leaf = node::make_leaf(key);
            if (try_insert(found, p, key, leaf, fresh)) return outcome::inserted;
        }
    }

    // Locks of several nodes, each at the version it was seen with. What was not commit()ted leaves
    // no trace.
    class lock_set {
      public:
        lock_set() noexcept = default;
        ~lock_set() {
            for (unsigned i = 0; i < count_; ++i) locks_[i]->unlock_unchanged();
        }
        lock_set(const lock_set&) = delete;
        lock_set& operator=(const lock_set&) = delete;

        bool add(lock_word& lock, version seen) noexcept {
            if (!lock.lock_if(seen)) return false;
            locks_[count_++] = &lock;
            return true;
        }
        bool add(const spot& s) noexcept { return add(*s.lock, s.seen); }
        void commit() noexcept {
            for (unsigned i = 0; i < count_; ++i) locks_[i]->unlock();
            count_ = 0;
        }

      private:
        unsigned count_ = 0;
        std::array<lock_word*, 3> locks_;
    };

    // False: start again; `leaf` and `fresh` are what they were.
    bool try_insert(end found, place& p, std::string_view key, node_owner& leaf,
                    value_owner& fresh) {
        switch (found) {
        case end::nothing:
            if (p.at.holder != nullptr && p.at.at == nullptr && p.at.holder->full())
                return grow(p, leaf, fresh);
            return add(p, leaf, fresh);
        case end::leaf:
            return fork_leaf(p, key, leaf, fresh);
        default:
            return fork_prefix(p, key, leaf, fresh);
        }
    }
    // Under the locks, before the leaf is put where others find it.
    node_owner complete(node_owner& leaf, value_owner& fresh) noexcept {
        leaf->leaf().value = std::move(fresh);
        count_node(*leaf);
        size_.fetch_add_relaxed(1); // before another thread can find it, erase it and count it out
        return std::move(leaf);
    }

    bool add(place& p, node_owner& leaf, value_owner& fresh) noexcept {
        lock_set held;
        if (!held.add(p.at)) return false;
        node_owner whole = complete(leaf, fresh);
        if (p.at.holder == nullptr)
            *p.at.at = std::move(whole);
        else
            p.at.holder->add(p.at.symbol, std::move(whole));
        held.commit();
        return true;
    }

    // A larger node takes the place of a full one.
    bool grow(place& p, node_owner& leaf, value_owner& fresh) {
        node_owner larger = node::make_inner(node::larger(p.at.holder->kind()));
        lock_set held;
        if (!held.add(p.above) || !held.add(p.at)) return false;
        count_node(*larger);
        p.at.holder->move_to(*larger);
        larger->add(p.at.symbol, complete(leaf, fresh));
        node_owner old = exchange(*p.above.at, std::move(larger));
        held.commit();
        retire_node(std::move(old));
        return true;
    }

    // There is a leaf of another key with the same first p.depth bytes: both get a node.
    bool fork_leaf(place& p, std::string_view key, node_owner& leaf, value_owner& fresh) {
        std::array<char, node::tail_bytes> buffer;
        const std::string_view mine = key.substr(p.depth);
        const std::string_view its = rest_of_key(*p.child, p.depth, buffer);
        const std::size_t common = common_bytes(mine, its);
        radix_prefix prefix(mine.substr(0, common));
        node_owner fork = node::make_inner(radix_kind::node4);
        lock_set held;
        if (!held.add(p.at)) return false;
        count_node(*fork);
        count_bytes(prefix.bytes());
        fork->set_prefix(std::move(prefix));
        fork->add(symbol_at(its, common), p.at.at->release());
        fork->add(symbol_at(mine, common), complete(leaf, fresh));
        *p.at.at = std::move(fork);
        held.commit();
        return true;
    }
    // The rest of a leaf's key behind the first `depth` bytes.
    static std::string_view rest_of_key(const node& leaf, std::size_t depth,
                                        std::array<char, node::tail_bytes>& buffer) noexcept {
        if (!leaf.tail_suffices(depth)) return leaf.leaf().key.get()->view().substr(depth);
        const std::uint64_t in_order = __builtin_bswap64(leaf.leaf().tail);
        std::memcpy(buffer.data(), &in_order, buffer.size());
        const std::size_t last = std::min(leaf.key_size(), buffer.size());
        const std::size_t rest = leaf.key_size() - depth;
        return {buffer.data() + last - rest, rest};
    }

    // The key leaves the way within the prefix of an inner node: a node comes between.
    bool fork_prefix(place& p, std::string_view key, node_owner& leaf, value_owner& fresh) {
        node& low = *p.child;
        std::array<char, radix_prefix::inline_bytes> buffer;
        std::string_view whole;
        if (!low.prefix_text(p.of_child, buffer.data(), whole)) return false;
        radix_prefix front(whole.substr(0, p.agreed)), back(whole.substr(p.agreed + 1));
        const radix_symbol to_low = symbol_at(whole, p.agreed);
        node_owner fork = node::make_inner(radix_kind::node4);
        lock_set held;
        if (!held.add(p.at) || !held.add(low.inner().lock, p.of_child)) return false;
        count_node(*fork);
        count_bytes(front.bytes() + back.bytes());
        fork->set_prefix(std::move(front));
        radix_prefix old = low.set_prefix(std::move(back));
        fork->add(to_low, p.at.at->release());
        fork->add(symbol_at(key, p.depth + p.agreed), complete(leaf, fresh));
        *p.at.at = std::move(fork);
        held.commit();
        retire_prefix(std::move(old));
        return true;
    }

    // Under the lock of what holds the link.
    static node_owner exchange(link& l, node_owner with) noexcept {
        node_owner old = l.release();
        l = std::move(with);
        return old;
    }
    static node_owner take(const spot& s) noexcept {
        return s.holder == nullptr ? s.at->release() : s.holder->remove(s.symbol);
    }

    // The node that `key` leads to may have become sparse. The change cannot be seen through the
    // interface.
    void tidy(std::string_view key) noexcept {
        try {
            for (unsigned attempt = 0;; start_again(attempt)) {
                place p;
                if (descend(key, plain_access{}, p) == end::torn) continue;
                node* const n = p.at.holder;
                if (n == nullptr) return;
                if (!n->sparse()) {
                    if (p.at.unchanged()) return;
                    continue;
                }
                if (make_smaller(p)) return;
            }
        } catch (const std::bad_alloc&) {
        }
    }
    // One step at p.at.holder. False: look again.
    bool make_smaller(place& p) {
        node& n = *p.at.holder;
        const unsigned children = n.children();
        const bool ends = static_cast<bool>(n.inner().ends);
        if (children == 0 && !ends) {
            lock_set held;
            if (!held.add(p.above) || !held.add(p.at)) return false;
            node_owner old = take(p.above);
            held.commit();
            retire_node(std::move(old));
            return false; // the one above may be sparse now
        }
        if (children == 0) return put_in_place(p, key_ends);
        if (children == 1 && !ends) {
            const typename node::child only = n.next(0);
            node* const below = only.at != nullptr ? only.at->get() : nullptr;
            if (below == nullptr || !p.at.unchanged()) return false;
            return below->is_leaf() ? put_in_place(p, only.symbol) : join(p, only.symbol, *below);
        }
        if (n.kind() == radix_kind::node4) return true;
        node_owner smaller = node::make_inner(node::smaller(n.kind()));
        lock_set held;
        if (!held.add(p.above) || !held.add(p.at)) return false;
        count_node(*smaller);
        n.move_to(*smaller);
        node_owner old = exchange(*p.above.at, std::move(smaller));
        held.commit();
        retire_node(std::move(old));
        return true;
    }
    // A leaf, the only one, takes the place of its node.
    bool put_in_place(place& p, radix_symbol symbol) noexcept {
        lock_set held;
        if (!held.add(p.above) || !held.add(p.at)) return false;
        node_owner old = exchange(*p.above.at, p.at.holder->remove(symbol));
        held.commit();
        retire_node(std::move(old));
        return true;
    }
    // An inner node, the only child, takes the place of its node, whose prefix and byte it gets.
    bool join(place& p, radix_symbol symbol, node& below) {
        const version seen = below.inner().lock.read();
        std::array<char, radix_prefix::inline_bytes> buffers[2];
        std::string_view front, back;
        if (!p.at.holder->prefix_text(p.at.seen, buffers[0].data(), front)) return false;
        if (!below.prefix_text(seen, buffers[1].data(), back)) return false;
        const char byte = static_cast<char>(symbol);
        radix_prefix joined(front, {&byte, 1}, back);
        lock_set held;
        if (!held.add(p.above) || !held.add(p.at) || !held.add(below.inner().lock, seen))
            return false;
        count_bytes(joined.bytes());
        radix_prefix old_prefix = below.set_prefix(std::move(joined));
        node_owner old = exchange(*p.above.at, p.at.holder->remove(symbol));
        held.commit();
        retire_prefix(std::move(old_prefix));
        retire_node(std::move(old));
        return true;
    }

    static constexpr unsigned pairs_at_once = 64;
    struct found_pairs {
        unsigned count = 0;
        std::array<const obase::bytes*, pairs_at_once> key, value;
    };
    // A node on the way, and what in it comes next: 0 the key that ends there, else a byte + 1.
    struct level {
        node* n;
        version seen;
        unsigned next;

        bool unchanged() const noexcept { return n->inner().lock.unchanged(seen); }
    };
    enum class walk {
        torn,    // start again behind the pairs, if there are any
        more,    // there may be more behind the pairs
        finished // no more
    };

    // Up to `limit` pairs from `from` on, each looked at and its node then found unchanged.
    walk collect(std::string_view from, std::size_t limit, std::vector<level>& stack,
                 found_pairs& pairs) const {
        const unsigned most = limit < pairs_at_once ? static_cast<unsigned>(limit) : pairs_at_once;
        stack.clear();
        if (!enter(from, stack, pairs)) return walk::torn;
        while (!stack.empty()) {
            if (pairs.count >= most) return walk::more;
            level& here = stack.back();
            typename node::child c{key_ends, nullptr};
            if (here.next == 0 && here.n->inner().ends)
                c.at = &here.n->inner().ends;
            else
                c = here.n->next(here.next == 0 ? 0 : here.next - 1);
            if (c.at == nullptr) {
                if (!here.unchanged()) return walk::torn;
                stack.pop_back();
                continue;
            }
            node* const n = c.at->get();
            if (n == nullptr) return walk::torn;
            here.next = c.at == &here.n->inner().ends ? 1 : c.symbol + 2;
            if (n->is_leaf()) {
                if (!note(*n, pairs) || !here.unchanged()) return drop_last(pairs);
            } else {
                const version seen = n->inner().lock.read();
                if (!here.unchanged()) return walk::torn;
                stack.push_back({n, seen, 0});
            }
        }
        return walk::finished;
    }
    static walk drop_last(found_pairs& pairs) noexcept {
        --pairs.count;
        return walk::torn;
    }
    // Counts the pair in any case. False: it is being erased.
    static bool note(const node& leaf, found_pairs& pairs) noexcept {
        const obase::bytes *key = leaf.leaf().key.get(), *value = leaf.leaf().value.get();
        pairs.key[pairs.count] = key;
        pairs.value[pairs.count++] = value;
        if (value == nullptr) return false;
        __builtin_prefetch(key);
        __builtin_prefetch(value);
        return true;
    }
    // Makes the stack for the first key >= from; a leaf where `from` leads to is noted at once. False:
    // torn.
    bool enter(std::string_view from, std::vector<level>& stack, found_pairs& pairs) const {
        spot at{nullptr, &const_cast<top&>(top_).lock, top_.lock.read(), 0,
                &const_cast<top&>(top_).first};
        for (std::size_t depth = 0;;) {
            node* const n = at.at != nullptr ? at.at->get() : nullptr;
            if (n == nullptr) return at.unchanged();
            if (n->is_leaf()) {
                if (!at.unchanged()) return false;
                // No other key is looked at than one that may be reported.
                if (n->leaf().key.get()->view() < from) return true;
                if (note(*n, pairs) && at.unchanged()) return true;
                --pairs.count;
                return false;
            }
            const version seen = n->inner().lock.read();
            if (!at.unchanged()) return false;
            typename node::agreement a;
            if (!n->compare_prefix(from, depth, seen, a)) return false;
            if (a.agreed != a.size) {
                std::array<char, radix_prefix::inline_bytes> buffer;
                std::string_view prefix;
                if (!n->prefix_text(seen, buffer.data(), prefix)) return false;
                if (from.substr(depth) < prefix) stack.push_back({n, seen, 0});
                return true;
            }
            depth += a.size;
            const radix_symbol symbol = symbol_at(from, depth);
            if (symbol == key_ends) {
                stack.push_back({n, seen, 0});
                return true;
            }
            ++depth;
            stack.push_back({n, seen, symbol + 2});
            at = {n, &n->inner().lock, seen, symbol, n->find(symbol)};
        }
    }

    void count_bytes(std::size_t more) noexcept { bytes_.fetch_add_relaxed(more); }
    void count_node(const node& n) noexcept {
        if constexpr (Links::movable) nodes_.fetch_add_relaxed(1);
        count_bytes(n.bytes());
    }
    void retire_node(node_owner taken) noexcept {
        if constexpr (Links::movable) nodes_.fetch_sub_relaxed(1);
        const std::size_t bytes = taken->bytes();
        bytes_.fetch_sub_relaxed(bytes + taken->prefix_bytes()); // it goes with the node
        Links::retire(std::move(taken), bytes);
    }
    void retire_prefix(radix_prefix taken) noexcept {
        if (!taken.is_block()) return;
        const std::size_t bytes = taken.bytes();
        bytes_.fetch_sub_relaxed(bytes);
        Protocol::retire(reinterpret_cast<void*>(taken.release()), &radix_prefix::block::destroy,
                         bytes);
    }

    // Without recursion and without memory: the link `ends` of a node that is being emptied is the
    // way back.
    static void dismantle(node_owner here) noexcept {
        while (here) {
            node_owner below;
            if (!here->is_leaf()) {
                for (typename node::child c = here->next(0); c.at != nullptr && !below;
                     c = here->next(c.symbol + 1))
                    below = c.at->release();
            }
            if (below && below->is_leaf()) {
                below.reset();
            } else if (below) {
                below->inner().ends = std::move(here);
                here = std::move(below);
            } else {
                node_owner back = here->is_leaf() ? node_owner{} : here->inner().ends.release();
                here = std::move(back);
            }
        }
    }

    alignas(64) top top_;
    alignas(64) atomic<std::size_t> size_;
    atomic<std::size_t> bytes_;
    [[no_unique_address]] std::conditional_t<Links::movable, atomic<std::size_t>, no_counter>
        nodes_;
};

} // namespace crestdb
