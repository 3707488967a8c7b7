// SPDX-License-Identifier: MIT
//
// Masstree (OBASE Table 2): a trie of B+trees, each of which knows eight bytes of the key, whose
// readers lock nothing and write nothing (Mao, Kohler, Morris, Cache Craftiness for Fast Multicore
// Key-Value Storage, EuroSys 2012), with epochs for memory.
//
// Layer 0 is a B+tree of the first eight bytes of all keys. Where several keys have these eight
// bytes in common and go on, the entry links to a layer of their next eight bytes, and so on. So
// nodes compare numbers; what keys have in common is passed once and stored once; and the nodes
// spell the keys, so that a key needs an object of its own only if it goes on behind the slice in
// which it is alone. A search dereferences that key object, if there is one, and the value, and
// nothing else.
//
//     crestdb::masstree<> tree(1 << 20);
//     tree.put("key", "value");
//     tree.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// Four headers below this one: masstree_version.hpp (locks, validation), masstree_permutation.hpp
// (insertion by one store), masstree_nodes.hpp (nodes and their invariants), masstree_layer.hpp (one
// B+tree). Here: keys, layers that come and go, values. docs/indexes/masstree.md has the argument.
//
// Limit: long keys that have long beginnings in common with few others are slow and large. Each
// eight bytes of those are a node of 560 bytes and two or three cache lines of each search. (Two
// keys that differ behind 64 KiB make 8192 layers.)
//
// Values are replaced without the lock, as in occ_btree.hpp: put, update and modify dereference the
// value, find the node unchanged, and compare-exchange the guide from that object to the new one. As
// long as the scope is open the object is not freed, so its address names it: if it is still in the
// slot it is still the value of the key. A split, a new layer or an erasure takes it out first.
//
// Why an optimistic reader may dereference a slot (R5 of docs/protocol.md): as in occ_btree.hpp. The
// slots of a node, and those of its block of tails, are constructed and destroyed with it, and it is
// retired; an object leaves its slot by an exchange and is then retired or goes to another slot
// (R12). What a late change costs is a wrong touch, never a wrong address. Null in a listed slot means
// that an erasure is under way, or that the entry is elsewhere: look again.
//
// A new layer is made without locks: nodes for what the two keys have in common, then one with both.
// It is put in place, and the first key's value moved there, under the lock of the node. No mark is
// needed: readers see the one key and its value before, a layer with both afterwards, and in between
// null, and then they look again.
//
// Erasures give memory back. An empty border node goes, with parents that have no other child; a root
// with one child makes way for it; a layer whose last entry has gone goes, and then perhaps the node
// that linked to it. The first border node of a layer goes with the layer only. Nodes that are not
// empty are not merged, and a layer with one key left stays a layer, as in the paper.
//
// Progress: get, contains and scan write nothing; they wait for a thread that is splitting or
// removing nodes on their way, or using a slot again, for the time of some dozens of stores, and
// start again when a change got in between. Insertion into a slot that was never in use, which is
// most of them, disturbs no reader at all. Replacing a value is lock-free except for that.
// Insertions and erasures lock one border node; splits and removals lock parents, too.
// Linearization: get at the load of the value's word; contains, and a get that finds nothing, at the
// load of the permutation; put, update and modify of an existing key at the compare-exchange of the
// value; put of a new key and erase at the store of the permutation, or, of a key that made a node be
// split, at the unlock of its border node, of a key that made a layer be made, at the store of the
// slot's kind. (Between taking out the value and the store of the permutation, erase makes others look
// again.)
// Reclamation: keys, values and nodes are retired.
//
// scan: node by node, by the border nodes' successors and by layers, in scopes that end when they
// have shown some dozens of pairs; the next one starts at the top. The entries of one node were there
// at the same moment, each with the value it is shown with at some moment, and belong to the range
// that the successor's low ends; then the scan continues at that low. So keys ascend and none comes
// twice, whatever is split or removed meanwhile. Each pair was there at some moment of the scan; a key
// that was there during the whole scan is not missed. Keys without an object are spelled in a buffer.
//
// Differences from the paper, besides those named in the other headers:
//   * The version has 64 bits instead of 32. A slot that is becoming a layer has no "unstable" state:
//     its guides are null meanwhile, which says the same.
//   * The key suffix is the whole key as one managed object, so that objects of any size can move;
//     suffixes and links lie in a block beside the node, which nodes of short keys do not have.
//   * Values are objects, too. The paper's may be in the node, if they are small; guides are why not.
//   * No previous pointers: who takes out a node finds the predecessor by a search for low - 1, once
//     for some ten erasures. So a split has no third border node to lock or to change.
//   * An empty layer goes at once and by the thread that emptied it, not by a task of the reclaimer.
//   * Links to layers are brought up to date by the thread that split the root, right then.
//   * Nodes come from operator new: huge pages, pools and NUMA are the allocator's business.
//   * No multi-version values, no logging.
// As in the paper: width 15, whole nodes are fetched before they are searched, the search in a node
// is linear (here: all slices are compared, without branches).
//
// Threads: all operations by any thread; construction and destruction by one.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/tree/masstree_layer.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>
#include <obase/word/atomic.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace crestdb {

// Sizes, and what the deterministic scheduler replaces. Entries of one slice are of up to ten kinds,
// so border nodes must have ten slots; fewer will do where keys are known to be no such family.
struct masstree_shape {
    static constexpr unsigned border_width = 15;
    static constexpr unsigned interior_width = 14;

    template <class T>
    using atomic = obase::word::native_atomic<T>;
    // Throws std::bad_alloc.
    static constexpr std::size_t alignment = 64;
    static void* allocate(std::size_t bytes) {
        return ::operator new(bytes, std::align_val_t{alignment});
    }
    static void deallocate(void* memory, std::size_t) noexcept {
        ::operator delete(memory, std::align_val_t{alignment});
    }
    // A holder needs some instructions, unless it is not running.
    static void wait(unsigned attempt) noexcept {
        if (attempt < 64)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
    }
};

template <class Protocol, class Shape>
class basic_masstree : public index_operations<basic_masstree<Protocol, Shape>, Protocol> {
    using operations = index_operations<basic_masstree, Protocol>;
    friend operations;

  public:
    using typename operations::scope;
    static constexpr const char* name = "masstree";
    static constexpr bool ordered = true;
    static constexpr bool keys_inline = true;

    // The tree grows as it needs to; the number is not used.
    explicit basic_masstree(std::size_t /*expected_keys*/ = 0) {
        auto* const first = new border(0, true);
        account_.add(sizeof *first);
        first->version.unlock();
        root_version_.unlock();
        root_.store_release(first);
    }
    ~basic_masstree() { destroy(root_.load_acquire()); }
    basic_masstree(const basic_masstree&) = delete;
    basic_masstree& operator=(const basic_masstree&) = delete;

    // True: the key was there.
    bool erase(std::string_view key) {
        const scope one_operation;
        for (unsigned attempt = 0;; Shape::wait(attempt++)) {
            entry found;
            find<false>(key, plain_access{}, found);
            if (found.state != entry::there) return false;
            border* at;
            if (!layer::lock_responsible(found.where, found.sought.at, at)) continue;
            const typename border::found now = at->find(at->entries(), found.sought);
            // Another long key may have come in its place.
            if (now.slot == border::no_slot || now.kind == nodes::layer ||
                (now.kind == nodes::tail && at->tail_key(now.slot).peek() != found.key)) {
                at->version.unlock();
                continue;
            }
            auto old = at->erase(now.slot);
            const bool empty = at->entries().empty();
            at->version.unlock();
            size_.fetch_sub_relaxed(1);
            obase::retire(std::move(old.key));
            obase::retire(std::move(old.value));
            if (empty) tidy(key, found.depth);
            return true;
        }
    }

    // Calls use(key, value) for up to `limit` pairs with key >= from, ascending; see above for what
    // concurrent changes mean. Returns how many.
    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        cursor here;
        here.position = from;
        std::size_t done = 0;
        for (unsigned attempt = 0; done < limit && !here.at_end;) {
            const scope some_nodes;
            here.layers.assign(1, root_.load_acquire());
            here.next = nullptr;
            for (const std::size_t pause = done + pairs_in_a_scope;
                 done < pause && done < limit && !here.at_end;) {
                found_pairs pairs;
                what_follows behind;
                if (!collect(here, limit - done, pairs, behind)) {
                    Shape::wait(attempt++);
                    break;
                }
                const std::size_t offset = here.offset();
                for (unsigned i = 0; i < pairs.count; ++i) {
                    const obase::bytes* key = pairs.key[i];
                    if (key == nullptr) spell(here.position, offset, pairs.at[i]);
                    use(key != nullptr ? key->view() : std::string_view(here.position),
                        pairs.value[i]->view());
                }
                done += pairs.count;
                advance(here, pairs.count, behind);
            }
        }
        return done;
    }

    // Exact while no thread writes.
    std::size_t size() const noexcept { return size_.load_relaxed(); }
    // Nodes, with what they know of the keys: all but values and those key objects that there are.
    std::size_t index_bytes() const noexcept {
        return sizeof(*this) + account_.bytes.load_relaxed();
    }

  private:
    using nodes = masstree_nodes<Protocol, Shape>;
    using layer = masstree_layer<Protocol, Shape>;
    using node = typename nodes::node;
    using border = typename nodes::border;
    using interior = typename nodes::interior;
    using guide = typename nodes::guide;
    using owner = typename nodes::owner;
    using version = typename nodes::version;
    using snapshot = typename nodes::snapshot;
    using slice = typename nodes::slice;
    using position = typename nodes::position;
    using permutation = typename nodes::permutation;
    using place = typename layer::place;
    using memory = typename layer::memory;
    template <class T>
    using atomic = typename nodes::template atomic<T>;
    static constexpr std::size_t slice_bytes = nodes::slice_bytes;
    static constexpr unsigned width = nodes::width;

    // The result of a search. The node was unchanged afterwards.
    struct entry {
        enum { there, absent, in_the_way } state = absent;
        place where;
        std::size_t depth; // of the layer
        position sought;
        unsigned slot;
        obase::bytes* key;   // if the entry has one: the key's own, or the one in the way
        obase::bytes* value; // if it was asked for
    };

    // `in_the_way`: another key has the slice, and both go on. `read` dereferences.
    template <bool with_value, class Read>
    void find(std::string_view key, Read&& read, entry& found) const {
        for (unsigned attempt = 0; !find_once<with_value>(key, read, found);)
            Shape::wait(attempt++);
    }
    // False: start at the top again.
    template <bool with_value, class Read>
    bool find_once(std::string_view key, Read&& read, entry& found) const {
        node* root = root_.load_acquire();
        for (std::size_t depth = 0;; ++depth) {
            found.depth = depth;
            const position p = position::of(key, depth * slice_bytes);
            found.sought = p;
            if (!layer::find_border(root, p.at, found.where)) return false;
            root = nullptr;
            for (;;) {
                if (!look<with_value>(key, read, found, root)) return false;
                if (found.where.unchanged()) break;
                if (!layer::find_again(found.where, p.at)) return false;
            }
            if (root == nullptr) return true;
        }
    }
    // Looks into one node. True if it is then found unchanged. `link`: what the entry links to.
    template <bool with_value, class Read>
    static bool look(std::string_view key, Read&& read, entry& found, node*& link) {
        const border& b = *found.where.at;
        link = nullptr;
        found.key = found.value = nullptr;
        const typename border::found e = b.find(b.entries(), found.sought);
        found.slot = e.slot;
        if (e.slot == border::no_slot) {
            found.state = entry::absent;
            return true;
        }
        if (e.kind == nodes::layer) {
            link = b.link(e.slot);
            return true;
        }
        // That the value is going to be looked at is known: it may be fetched while the key is
        // compared, which is no access.
        if constexpr (with_value) __builtin_prefetch(b.values[e.slot].peek());
        found.state = entry::there;
        if (e.kind == nodes::tail) {
            found.key = read(b.tail_key(e.slot));
            if (found.key == nullptr) return false;
            // Layers and slice have said that the beginnings are equal.
            const std::size_t known = (found.depth + 1) * slice_bytes;
            if (found.key->size() != key.size() ||
                found.key->view().substr(known) != key.substr(known)) {
                found.state = entry::in_the_way;
                return true;
            }
        }
        if constexpr (with_value) {
            found.value = read(b.values[e.slot]);
            if (found.value == nullptr) return false;
        }
        return true;
    }
    template <class Read>
    entry look_up(std::string_view key, const Read& read) const {
        entry found;
        find<true>(key, read, found);
        if (found.state != entry::there) found.value = nullptr;
        return found;
    }
    bool has(std::string_view key) const {
        entry found;
        find<false>(key, plain_access{}, found);
        return found.state == entry::there;
    }

    // In the scope in which found.value was dereferenced. False: it is not the value any more.
    static bool replace(const entry& found, owner& fresh) noexcept {
        obase::bytes* seen = found.value;
        return found.where.at->values[found.slot].compare_exchange(seen, fresh);
    }
    // The value may have another place by now: below, in a new layer.
    bool replace(std::string_view key, entry& found, owner& fresh) const {
        if (replace(found, fresh)) return true;
        found = look_up(key, plain_access{});
        return false;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        for (unsigned attempt = 0;; Shape::wait(attempt++)) {
            entry found;
            find<true>(key, plain_access{}, found);
            if (found.state == entry::there) {
                if (!replace(found, fresh)) continue;
                obase::retire(std::move(fresh)); // it has the old one now
                return outcome::replaced;
            }
            if (!insert) return outcome::absent;
            if (found.state == entry::in_the_way ? add_layer(key, found, fresh)
                                                 : add_entry(key, found, fresh))
                return outcome::inserted;
        }
    }

    // False: something has changed; look again.
    bool add_entry(std::string_view key, const entry& found, owner& fresh) {
        const position p = found.sought;
        owner fresh_key;
        if (p.kind == nodes::tail) fresh_key = obase::make_bytes<Protocol>(key);
        border* at;
        if (!layer::lock_responsible(found.where, p.at, at)) return false;
        const permutation entries = at->entries();
        if (at->find(entries, p).slot != border::no_slot) {
            at->version.unlock();
            return false;
        }
        // Before another thread can find it, erase it and count it out.
        size_.fetch_add_relaxed(1);
        try {
            if (layer::insert(at, at->lower_bound(entries, p), p, fresh_key, fresh, account_))
                renew_link(key, found.depth);
        } catch (...) {
            size_.fetch_sub_relaxed(1);
            throw;
        }
        return true;
    }

    // A chain of border nodes, layer by layer, not published yet, for two keys: all but the last
    // have the link to the next one in their first slot.
    class new_layers {
      public:
        // They are different, agree in the first `offset` bytes, and go on.
        new_layers(std::string_view one, std::string_view other, std::size_t offset) {
            try {
                for (;; offset += slice_bytes) {
                    const position a = position::of(one, offset), b = position::of(other, offset);
                    const bool same = a.at == b.at && a.kind == b.kind;
                    auto next = std::make_unique<border>(0, true);
                    if (same || a.kind == nodes::tail || b.kind == nodes::tail) next->need_tails();
                    border* const made = next.release();
                    if (last_ == nullptr)
                        first_ = made;
                    else
                        last_->insert(0, before_, {}, {}, made);
                    last_ = made;
                    bytes_ += memory::of(*made);
                    before_ = a;
                    if (same) continue;
                    one_ = a;
                    other_ = b;
                    return;
                }
            } catch (...) {
                if (first_ != nullptr) destroy(first_);
                throw;
            }
        }
        ~new_layers() {
            if (first_ != nullptr) destroy(first_);
        }
        new_layers(const new_layers&) = delete;
        new_layers& operator=(const new_layers&) = delete;

        bool one_needs_key() const noexcept { return one_.kind == nodes::tail; }
        bool other_needs_key() const noexcept { return other_.kind == nodes::tail; }
        std::size_t bytes() const noexcept { return bytes_; }

        // Returns the first node, which is the caller's now. No keys where none are needed.
        border* fill(owner one_key, owner one, owner other_key, owner other) noexcept {
            last_->insert(0, one_, std::move(one_key), std::move(one));
            last_->insert(last_->lower_bound(last_->entries(), other_), other_,
                          std::move(other_key), std::move(other));
            for (border* b = first_;; b = nodes::as_border(b->link(0))) {
                b->version.unlock();
                if (b == last_) break;
            }
            return std::exchange(first_, nullptr);
        }

      private:
        border *first_ = nullptr, *last_ = nullptr;
        position one_{}, other_{}, before_{};
        std::size_t bytes_ = 0;
    };

    // The slot has another key: both go to a new layer. False: something has changed; look again.
    bool add_layer(std::string_view key, const entry& found, owner& fresh) {
        new_layers made(found.key->view(), key, (found.depth + 1) * slice_bytes);
        owner fresh_key;
        if (made.other_needs_key()) fresh_key = obase::make_bytes<Protocol>(key);
        border& b = *found.where.at;
        b.version.lock();
        // Its address names the key object as long as the scope is open: if it is still there, and
        // the entry a tail, it is the same entry. Else it was erased, or a split took it elsewhere.
        const unsigned slot = found.slot;
        if (!b.entries().lists(slot) || b.kind(slot) != nodes::tail ||
            b.tail_key(slot).peek() != found.key) {
            b.version.unlock();
            return false;
        }
        size_.fetch_add_relaxed(1);
        account_.add(made.bytes());
        owner old_key = b.more.load_relaxed()->keys[slot].release();
        owner moved_key;
        if (made.one_needs_key()) moved_key = std::move(old_key);
        b.set_link(slot, made.fill(std::move(moved_key), b.values[slot].release(),
                                   std::move(fresh_key), std::move(fresh)));
        b.version.unlock();
        obase::retire(std::move(old_key));
        return true;
    }

    // One step of a search for a layer: the layer's root as it was found, and the border node of
    // the key's slice in it.
    struct step {
        node* from;
        border* at;
    };
    // The last steps of a search.
    class trail {
      public:
        void clear() noexcept { size_ = 0; }
        void add(const step& s) noexcept { steps_[++size_ % kept] = s; }
        // Of the layer at a depth, which was passed and is one of the last ones.
        bool has(std::size_t depth) const noexcept {
            return depth < size_ && size_ - depth <= kept;
        }
        const step& operator[](std::size_t depth) const noexcept {
            return steps_[(depth + 1) % kept];
        }

      private:
        static constexpr std::size_t kept = 64;
        std::size_t size_ = 0;
        std::array<step, kept> steps_;
    };
    // To the layer at `depth`. False: there is no such layer for the key.
    bool walk(std::string_view key, std::size_t depth, trail& steps) const noexcept {
        for (unsigned attempt = 0;; Shape::wait(attempt++)) {
            steps.clear();
            node* root = root_.load_acquire();
            for (std::size_t d = 0;; ++d) {
                const position p = position::of(key, d * slice_bytes);
                place here;
                if (!layer::find_border(root, p.at, here)) break;
                steps.add({root, here.at});
                if (d == depth) return true;
                const typename border::found e = here.at->find(here.at->entries(), p);
                const bool is_link = e.slot != border::no_slot && e.kind == nodes::layer;
                node* const link = is_link ? here.at->link(e.slot) : nullptr;
                if (!here.unchanged()) break;
                if (link == nullptr) return false;
                root = link;
            }
        }
    }

    // Locks what guards the link to the layer at `depth`. Null: look again; nothing is locked.
    struct link_lock {
        version* held;
        atomic<node*>* link;
        border* upper; // null: the link is the tree's
        unsigned slot;
    };
    bool lock_link(std::string_view key, std::size_t depth, const trail& steps,
                   link_lock& l) noexcept {
        if (depth == 0) {
            root_version_.lock();
            l = {&root_version_, &root_, nullptr, 0};
            return true;
        }
        const position p = position::of(key, (depth - 1) * slice_bytes);
        // An old snapshot: look for a node further right.
        const place noted{steps[depth - 1].at, snapshot()};
        border* upper;
        if (!layer::lock_responsible(noted, p.at, upper)) return false;
        const typename border::found e = upper->find(upper->entries(), p);
        if (e.slot == border::no_slot || e.kind != nodes::layer) {
            upper->version.unlock();
            return false;
        }
        l = {&upper->version, &upper->more.load_relaxed()->links[e.slot], upper, e.slot};
        return true;
    }

    // The layer has got another root. (Searches find it by the old one.)
    void renew_link(std::string_view key, std::size_t depth) noexcept {
        trail steps;
        link_lock l;
        for (unsigned attempt = 0; walk(key, depth, steps); Shape::wait(attempt++)) {
            if (!lock_link(key, depth, steps, l)) continue;
            layer::update_link(*l.link, account_);
            l.held->unlock();
            return;
        }
    }

    // An erasure of `key` has left its border node, in the layer at `depth`, empty.
    void tidy(std::string_view key, std::size_t depth) noexcept {
        trail steps;
        for (unsigned attempt = 0;; Shape::wait(attempt++)) {
            if (!steps.has(depth) || (depth != 0 && !steps.has(depth - 1)))
                if (!walk(key, depth, steps)) return; // the thread that removed it goes on
            switch (tidy_layer(key, depth, steps)) {
            case tidied::layer_has_gone: // and the node that linked to it is empty
                --depth;
                break;
            case tidied::retry:
                steps.clear();
                break;
            case tidied::done:
                return;
            }
        }
    }
    enum class tidied { done, retry, layer_has_gone };
    tidied tidy_layer(std::string_view key, std::size_t depth, const trail& steps) noexcept {
        node* const from = steps[depth].from;
        place here;
        if (!layer::find_border(from, position::of(key, depth * slice_bytes).at, here))
            return tidied::retry;
        if (here.at->entries().empty()) {
            if (here.at->low != 0 && !layer::remove_border(from, here.at->low, account_))
                return tidied::retry;
        } else if (!here.unchanged()) {
            return tidied::retry;
        }
        // Is something to be done about the root? Also where the border node has keys: who took out
        // the one before may have looked at a root that was no longer one.
        snapshot seen;
        node* root = layer::climb(from, seen);
        if (root == nullptr) return tidied::retry;
        if (seen.is_border() ? depth == 0 || !is_nothing(*nodes::as_border(root))
                             : nodes::as_interior(root)->count.load_acquire() != 0)
            return tidied::done;
        link_lock l;
        if (!lock_link(key, depth, steps, l)) return tidied::retry;
        root = layer::update_link(*l.link, account_);
        bool upper_is_empty = false;
        if (l.upper != nullptr && root->version.held().is_border()) {
            border& last = *nodes::as_border(root);
            last.version.lock();
            // Still: it may have been filled, and split.
            const bool goes = last.version.held().is_root() && is_nothing(last);
            if (goes) {
                last.version.mark_deleted();
                l.upper->erase(l.slot);
                upper_is_empty = l.upper->entries().empty();
            }
            last.version.unlock();
            if (goes) account_.retire(&last);
        }
        l.held->unlock();
        return upper_is_empty ? tidied::layer_has_gone : tidied::done;
    }
    static bool is_nothing(const border& b) noexcept {
        return b.entries().empty() && b.next.load_acquire() == nullptr;
    }

    static constexpr std::size_t pairs_in_a_scope = 64;

    // Where a scan is.
    struct cursor {
        std::string position;      // above what was shown, not above the next key
        std::vector<node*> layers; // the roots, as found, of the layers on the way there
        border* next = nullptr;    // perhaps responsible for `position`; null: not known
        bool at_end = false;

        std::size_t offset() const noexcept { return (layers.size() - 1) * slice_bytes; }
    };
    struct found_pairs {
        unsigned count;
        std::array<position, width> at;
        std::array<const obase::bytes*, width> key, value; // key: null if there is no such object
    };
    // Behind the pairs. Apart from them: nodes are no managed objects, which those are.
    struct what_follows {
        node* link;        // a layer, if not null,
        slice link_at = 0; // of this slice,
        border* next;      // else this one
    };

    // The next pairs of the layer at the end of `here`, up to a link to another one. False: start at
    // the top again.
    static bool collect(const cursor& here, std::size_t limit, found_pairs& pairs,
                        what_follows& behind) {
        const std::size_t offset = here.offset();
        const position from = position::of(here.position, offset);
        place p;
        bool known = false;
        if (here.next != nullptr) {
            p = {here.next, here.next->version.stable()};
            known = !p.seen.is_deleted();
        }
        if (!known && !layer::find_border(here.layers.back(), from.at, p)) return false;
        for (;;) {
            if (!collect(*p.at, here.position, from, limit, pairs, behind)) return false;
            if (p.unchanged()) return true;
            if (!layer::find_again(p, from.at)) return false;
        }
    }
    // The result is valid if the node is then found unchanged. False: look again.
    static bool collect(const border& b, std::string_view from_key, position from,
                        std::size_t limit, found_pairs& pairs, what_follows& behind) {
        pairs.count = 0;
        behind.link = nullptr;
        behind.next = b.next.load_acquire();
        if (behind.next != nullptr) nodes::prefetch(behind.next);
        const permutation entries = b.entries();
        for (unsigned i = b.lower_bound(entries, from); i < entries.size(); ++i) {
            if (pairs.count == limit) break;
            const unsigned slot = entries.slot(i);
            const position at{b.slice_of(slot), b.kind(slot)};
            if (at.kind == nodes::layer) {
                behind.link = b.link(slot);
                behind.link_at = at.at;
                break;
            }
            const obase::bytes* key = nullptr;
            if (at.kind == nodes::tail) {
                key = b.tail_key(slot).get();
                if (key == nullptr) return false;
                if (at.at == from.at && key->view() < from_key) continue;
            }
            const obase::bytes* value = b.values[slot].get();
            if (value == nullptr) return false;
            __builtin_prefetch(value);
            pairs.at[pairs.count] = at;
            pairs.key[pairs.count] = key;
            pairs.value[pairs.count++] = value;
        }
        return true;
    }
    // The key of an entry: what leads to its layer, and as much of the slice as is its own.
    static void spell(std::string& key, std::size_t offset, position p) {
        key.resize(offset);
        for (unsigned i = 0; i < std::min<unsigned>(p.kind, slice_bytes); ++i)
            key.push_back(static_cast<char>(p.at >> (56 - 8 * i)));
    }
    // The lowest key that could have that slice.
    static void spell_lowest(std::string& key, std::size_t offset, slice s) {
        const auto zeros = s == 0 ? slice_bytes : static_cast<unsigned>(std::countr_zero(s)) / 8;
        spell(key, offset, {s, static_cast<unsigned>(slice_bytes - zeros)});
    }
    // Behind what was collected.
    static void advance(cursor& here, unsigned count, const what_follows& behind) {
        const std::size_t offset = here.offset();
        here.next = nullptr;
        if (behind.link != nullptr) {
            // Into the layer: where the position says, if it has led here, else to the beginning.
            const position from = position::of(here.position, offset);
            // (A key in the layer has another byte behind the slice; the slice alone is a key that
            // may have been shown.)
            if (count != 0 || from.at != behind.link_at || from.kind != nodes::tail) {
                spell(here.position, offset, {behind.link_at, nodes::layer});
                here.position.push_back('\0');
            }
            here.layers.push_back(behind.link);
        } else if (behind.next != nullptr) {
            spell_lowest(here.position, offset, behind.next->low);
            here.next = behind.next;
        } else {
            // Behind this layer, and behind those above that end with it.
            for (;;) {
                here.layers.pop_back();
                if (here.layers.empty()) {
                    here.at_end = true;
                    return;
                }
                const std::size_t above = here.offset();
                const slice left = detail::head_word(here.position, above);
                if (left == ~slice{0}) continue;
                spell_lowest(here.position, above, left + 1);
                return;
            }
        }
    }

    // Layers may be thousands deep: the nodes still to be destroyed hang on each other's parent
    // pointers.
    static void destroy(node* first) noexcept {
        node* todo = nullptr;
        const auto add = [&](node* n) {
            n->parent.store_release(todo);
            todo = n;
        };
        add(first);
        while (todo != nullptr) {
            node* const n = todo;
            todo = n->parent.load_relaxed();
            if (n->version.held().is_border()) {
                border* const b = nodes::as_border(n);
                const permutation entries = b->entries();
                for (unsigned i = 0; i < entries.size(); ++i)
                    if (b->kind(entries.slot(i)) == nodes::layer) {
                        snapshot seen;
                        add(layer::climb(b->link(entries.slot(i)), seen));
                    }
                delete b;
            } else {
                interior* const inner = nodes::as_interior(n);
                for (unsigned i = 0; i <= inner->count.load_relaxed(); ++i)
                    add(inner->children[i].load_relaxed());
                delete inner;
            }
        }
    }

    atomic<node*> root_;
    version root_version_{false, false}; // guards root_
    alignas(64) atomic<std::size_t> size_;
    memory account_;
};

template <class Protocol = obase::arming>
using masstree = basic_masstree<Protocol, masstree_shape>;

} // namespace crestdb
