// SPDX-License-Identifier: MIT
//
// A B+tree whose readers lock nothing and write nothing (OBASE Table 2, "B+Tree OCC"): optimistic
// lock coupling (Leis, Scheibner, Kemper, Neumann, DaMoN 2016; Leis, Haubenschild, Neumann, IEEE Data
// Eng. Bull. 2019), with epochs for memory.
//
// Every node has a version (version_lock.hpp). A search notes the version of a node, looks, notes
// the version of the child and only then asks whether the first one is unchanged: so the child was
// the right one at a moment when its own version was already noted. A writer does the same and then
// locks the one leaf it changes, by compare-exchange from the version it noted, so that everything
// it has seen is still true. Splits and removals of nodes are prepared without locks, too; the
// locks of parent and child are held only to put the result in place.
//
//     crestdb::occ_btree<> tree(1 << 20);
//     tree.put("key", "value");
//     tree.scan("k", 10, [](std::string_view key, std::string_view value) { ... });
//
// Leaves hold guides to keys and values in fixed slots, and a sorted list of words of seven bytes of
// the key (a head) and a slot number. The heads are those behind what all keys of the leaf begin
// with, so a search dereferences the key it finds and, unless heads are equal, no other: neighbours
// of hot keys do not become hot. A new key is written into a free slot and its word into the list;
// guides never change slots but in a split. Inner nodes are ordinary memory (btree_routes.hpp).
//
// Limits: a hash table has a third of the cache misses where no order is needed. Keys of one leaf
// with equal heads (the same seven bytes behind the common prefix) are found by a binary search
// over key objects.
//
// Why an optimistic reader may dereference a slot (R5 of docs/protocol.md). Its word may have changed
// since the version was noted; it is nevertheless the word of a slot, and the object is that
//   slot's: * The node is memory of a leaf as long as the reader's scope is open: it was reached
//   from the
//     root inside that scope, and leaves are freed by retire() after they were taken out.
//   * All slots of a leaf are constructed with it and destroyed with it, so each is registered (R10)
//     and holds a guide, null or not, at every moment in between; slot numbers are masked to the
//     leaf. So the compare-exchange of a touch hits a guide's word and nothing else.
//   * An object leaves a slot by an exchange. Then it is retired, or it goes to a slot of another
//     leaf (a split; R12). A thread that has its address got it in a scope that is open: it is not
//     freed, and as its new word is armed only later, it does not move either before that scope
//     ends (R1).
//   * Null means that the entry was erased or moved after the version was noted: start again. While
//     the version is unchanged no listed slot is null.
// So what a late change costs is a wrong touch, never a wrong address; unchanged() decides whether
// what was read may be believed. The value that get() hands out was the key's when it was
// dereferenced, and remains an object until the scope ends even if it is erased in that moment.
//
// Values are replaced without the lock: put, update and modify dereference the value, find the
// version unchanged, and compare-exchange the guide from that object to the new one. As long as the
// scope is open the object is not freed, so its address names it: if it is still in the slot it is
// still the value of the key, whatever happened to the leaf. A split or an erasure takes it out
// first, and then the compare-exchange fails. So replacing a value disturbs no reader of the leaf.
//
// Erasures leave leaves as full as they are; an empty leaf is taken out of its parent, with parents
// that have no other child, and the tree gets lower when the root has one child left ("free at
// empty": merging half-full nodes is work that the next insertions undo, Johnson and Shasha, JCSS
// 1993). Erasing everything gives back all nodes but one leaf. Erasing all but every sixty-fourth
// key, in order, does not: a leaf is 1.6 KB.
//
// Progress: get, contains and scan write nothing and wait for no one but the holder of a leaf for
// the time of an insertion (some words), or of a split's last step; they start again when a change
// got in between. Replacing a value is lock-free except for that. Insertions and erasures lock one
// leaf. Linearization: get at the load of the value's word; contains, and a get that finds nothing,
// when the parent of the leaf was found unchanged; put, update and modify of an existing key at the
// compare-exchange of the value; put of a new key at the leaf's unlock; erase at the exchange of
// the value's word. Reclamation: keys, values, nodes, blocks of inner nodes and prefixes are
// retired.
//
// scan: leaf by leaf, each in a scope of its own. The keys of one leaf were there at the same moment,
// each with the value it is shown with at some moment; then the scan continues at the separator
// behind that leaf, so keys ascend and none comes twice whatever is split or removed meanwhile. Each
// pair was there at some moment of the scan; a key that was there during the whole scan is not
// missed. (The separator is older than the look at the leaf. What the leaf has got from beyond it
// since, because neighbours went, is left for the next step.)
//
// Threads: all operations by any thread; construction and destruction by one.
//
// Cost: a get among a million keys waits for four cache lines in turn: the leaf (its list is fetched
// with it), the slot, the key, and, fetched while the key is compared, the value. About 38 bytes of
// leaf per key after insertions in random order, 25 in ascending order; inner nodes below 1.
#pragma once

#include "crestdb/index_operations.hpp"
#include "crestdb/spin_lock.hpp"
#include "crestdb/tree/btree_entries.hpp"
#include "crestdb/tree/btree_routes.hpp"
#include "crestdb/version_lock.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/retire.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace crestdb {

// Sizes, and what the deterministic scheduler replaces.
struct occ_btree_shape : spinning {
    static constexpr unsigned leaf_entries = 64;
    static constexpr unsigned fanout = 256;
};

template <class Protocol, class Shape>
class basic_occ_btree : public index_operations<basic_occ_btree<Protocol, Shape>, Protocol>,
                        private btree_entries<Shape::leaf_entries> {
    using base = index_operations<basic_occ_btree, Protocol>;
    friend base;
    using words = btree_entries<Shape::leaf_entries>;
    using typename words::entry;
    using words::equal_bytes;
    using words::head_bytes;
    using words::head_of;
    using words::leaf_entries;
    using words::slot_bits;
    using words::slot_of;

  public:
    using typename base::scope;
    static constexpr const char* name = "occ-btree";
    static constexpr bool ordered = true;

    // The tree grows as it needs to; the number is not used.
    explicit basic_occ_btree(std::size_t /*expected_keys*/ = 0) {
        auto first = std::make_unique<leaf>();
        typename routes::template draft<Shape::fanout> d;
        d.add(first.get(), {});
        auto content = routes::make(d, true);
        count_bytes(sizeof(leaf) + content->bytes());
        root_.content.store_release(content.release());
        first.release();
    }
    ~basic_occ_btree() {
        const routes* r = root_.content.load_acquire();
        destroy_children(r);
        routes::destroy(r);
    }
    basic_occ_btree(const basic_occ_btree&) = delete;
    basic_occ_btree& operator=(const basic_occ_btree&) = delete;

    // True: the key was there.
    bool erase(std::string_view key) {
        const scope one_operation;
        for (unsigned attempt = 0;; start_again(attempt)) {
            spot at;
            place p;
            if (!descend(key, at) || !search(*at.node, key, plain_access{}, p)) continue;
            if (!p.there) {
                if (at.unchanged()) return false;
                continue;
            }
            if (!at.node->lock.lock_if(at.seen)) continue;
            auto [old_key, old_value] = at.node->remove(p);
            const bool empty = at.node->count.load_relaxed() == 0;
            at.node->lock.unlock();
            size_.fetch_sub_relaxed(1);
            obase::retire(std::move(old_key));
            obase::retire(std::move(old_value));
            if (empty) remove_empty_leaf(key);
            return true;
        }
    }

    // Calls use(key, value) for up to `limit` pairs with key >= from, ascending; see above for what
    // concurrent changes mean. Returns how many.
    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        std::string separator;
        std::size_t done = 0;
        for (unsigned attempt = 0; done < limit;) {
            const scope one_leaf;
            spot at;
            upper_bound end;
            found_pairs pairs;
            if (!descend(from, at, end) || !collect(at, from, end, limit - done, pairs)) {
                start_again(attempt);
                continue;
            }
            for (unsigned i = 0; i < pairs.count; ++i)
                use(pairs.key[i]->view(), pairs.value[i]->view());
            done += pairs.count;
            if (end.content == nullptr) break; // that was the last leaf
            std::string next = end.separator().text();
            separator.swap(next); // `from` may be what it held
            from = separator;
        }
        return done;
    }

    // Exact while no thread writes.
    std::size_t size() const noexcept { return size_.load_relaxed(); }
    // Leaves, inner nodes, separators and prefixes: all but keys and values.
    std::size_t index_bytes() const noexcept { return sizeof(root_) + bytes_.load_relaxed(); }

  private:
    using typename base::guide;
    using typename base::owner;
    template <class T>
    using atomic = typename Shape::template atomic<T>;
    using lock_word = version_lock<atomic<std::uint64_t>, Shape>;
    using version = typename lock_word::version;
    struct node;
    using routes = btree_routes<node>;

    struct node {
        lock_word lock;
    };
    struct inner : node {
        atomic<const routes*> content;
    };

    // The common prefix of a leaf's keys. Immutable; retired when replaced.
    struct text {
        std::size_t size;

        char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
        std::string_view view() const noexcept {
            return {reinterpret_cast<const char*>(this + 1), size};
        }
        std::size_t bytes() const noexcept { return sizeof(text) + size; }
        static void destroy(void* t) noexcept { ::operator delete(t); }
        struct deleter {
            void operator()(text* t) const noexcept { destroy(t); }
        };
    };
    using text_pointer = std::unique_ptr<text, typename text::deleter>;

    static text_pointer make_text(std::string_view contents) {
        if (contents.empty()) return nullptr;
        text_pointer made(::new (::operator new(sizeof(text) + contents.size()))
                              text{contents.size()});
        std::copy(contents.begin(), contents.end(), made->data());
        return made;
    }
    static std::size_t bytes_of(const text* t) noexcept { return t == nullptr ? 0 : t->bytes(); }

    static_assert(Shape::fanout >= 3);

    struct place {
        unsigned index; // in the list; if not there: where it would be among equal heads
        unsigned slot;  // if there
        bool there;
    };

    // Everything but `used` is read by optimistic readers.
    struct alignas(64) leaf : node {
        struct pair {
            guide key, value;
        };

        atomic<std::uint32_t> count;
        atomic<std::size_t> prefix_size; // all keys begin with so many bytes of the prefix
        atomic<text*> prefix;            // may be longer than that; null: none
        std::uint64_t used = 0;          // slots, a bit each; under the lock
        alignas(64) std::array<atomic<entry>, leaf_entries> entries;
        std::array<pair, leaf_entries> pairs;

        ~leaf() { text::destroy(prefix.load_acquire()); }

        // Under the lock; there is room, and index is where the key belongs.
        void insert(unsigned index, entry head, owner key, owner value) noexcept {
            const auto slot = static_cast<unsigned>(std::countr_one(used));
            used |= std::uint64_t{1} << slot;
            pairs[slot].key = std::move(key);
            pairs[slot].value = std::move(value);
            const std::uint32_t n = count.load_relaxed();
            for (unsigned i = n; i > index; --i)
                entries[i].store_release(entries[i - 1].load_relaxed());
            entries[index].store_release(head | slot);
            count.store_release(n + 1);
        }
        // Under the lock. Returns key and value, to be retired.
        std::pair<owner, owner> remove(const place& p) noexcept {
            const std::uint32_t n = count.load_relaxed();
            for (unsigned i = p.index + 1; i < n; ++i)
                entries[i - 1].store_release(entries[i].load_relaxed());
            count.store_release(n - 1);
            used &= ~(std::uint64_t{1} << p.slot);
            owner key = pairs[p.slot].key.release();
            return {std::move(key), pairs[p.slot].value.release()};
        }
        // Under the lock. The keys agree only in `size` bytes any more: heads begin earlier.
        void shorten_prefix(std::size_t size) noexcept {
            const std::size_t more = prefix_size.load_relaxed() - size;
            const std::uint32_t n = count.load_relaxed();
            if (n != 0) {
                const std::string_view gone =
                    prefix.load_relaxed()->view().substr(size, std::min<std::size_t>(more, 8));
                const entry front = head_of(gone, 0);
                for (unsigned i = 0; i < n; ++i)
                    entries[i].store_release(
                        words::begin_earlier(entries[i].load_relaxed(), front, more));
            }
            prefix_size.store_release(size);
        }
    };

    // A leaf and its version when its parent was found unchanged.
    struct spot {
        leaf* node;
        version seen;
        bool unchanged() const noexcept { return node->lock.unchanged(seen); }
    };

    struct step {
        inner* node;
        version seen;
        const routes* content;
        unsigned index; // of the child that was taken
    };
    // The inner nodes of one descent, the root first. A tree of depth d has had more than
    // (fanout / 2)^d insertions, so 64 are enough for any fanout.
    struct trail {
        unsigned depth = 0;
        std::array<step, 64> steps;
        void operator()(const step& s) noexcept { steps[depth++] = s; }
        void clear() noexcept { depth = 0; }
    };
    // The nearest separator to the right.
    struct upper_bound {
        const routes* content = nullptr; // null: there is none
        unsigned index = 0;
        void operator()(const step& s) noexcept {
            if (s.index + 1 == s.content->children_count()) return;
            content = s.content;
            index = s.index;
        }
        void clear() noexcept { content = nullptr; }
        joined_text separator() const noexcept { return content->separator(index); }
    };
    struct no_trail {
        void operator()(const step&) const noexcept {}
        void clear() const noexcept {}
    };

    static void start_again(unsigned& attempt) noexcept { Shape::wait(attempt++); }

    // Finds the leaf that `key` belongs to. False: something changed on the way; start again.
    bool descend(std::string_view key, spot& at) const noexcept {
        no_trail none;
        return descend(key, at, none);
    }
    template <class Trail>
    bool descend(std::string_view key, spot& at, Trail& note) const noexcept {
        note.clear();
        auto* here = const_cast<inner*>(&root_);
        version seen = here->lock.read();
        for (;;) {
            const routes* const content = here->content.load_acquire();
            const unsigned index = content->find(key);
            node* const child = content->child(index);
            const bool is_leaf = content->to_leaves();
            if (is_leaf) prefetch(child);
            const version of_child = child->lock.read();
            if (!here->lock.unchanged(seen)) return false;
            note({here, seen, content, index});
            if (is_leaf) {
                at = {static_cast<leaf*>(child), of_child};
                return true;
            }
            here = static_cast<inner*>(child);
            seen = of_child;
        }
    }
    // A binary search would wait for one line after the other. The last lines of a list are seldom
    // in use.
    static constexpr std::size_t bytes_searched = 64 + leaf_entries * sizeof(entry) * 3 / 4;
    static void prefetch(const node* n) noexcept {
        const char* lines = reinterpret_cast<const char*>(n);
        for (std::size_t at = 0; at < bytes_searched; at += 64) __builtin_prefetch(lines + at);
    }

    // Finds the key in a leaf. False: torn; start again. What it says is true if the leaf is then
    // found unchanged. `read` dereferences. `value_follows`: the value is going to be looked at, so
    // it may be fetched while the key is compared; that is no access.
    template <bool value_follows = false, class Read>
    static bool search(const leaf& l, std::string_view key, Read&& read, place& p) {
        const unsigned n = l.count.load_acquire();
        const entry head = head_of(key, l.prefix_size.load_acquire());
        // Heads below the key's; no branch depends on the comparisons.
        unsigned begin = 0;
        for (unsigned left = n; left != 0;) {
            const unsigned half = (left + 1) / 2;
            begin += l.entries[begin + half - 1].load_acquire() < head ? half : 0;
            left -= half;
        }
        unsigned end = begin;
        while (end < n && head_of(l.entries[end].load_acquire()) == head) ++end;
        // Equal heads, nearly always one.
        while (begin != end) {
            const unsigned middle = begin + (end - begin) / 2;
            const unsigned slot = slot_of(l.entries[middle].load_acquire());
            if constexpr (value_follows) __builtin_prefetch(l.pairs[slot].value.peek());
            const obase::bytes* candidate = read(l.pairs[slot].key);
            if (candidate == nullptr) return false;
            // The prefix is part of the key object, so it is compared here and not before.
            const int order = candidate->view().compare(key);
            if (order == 0) {
                p = {middle, slot, true};
                return true;
            }
            if (order < 0)
                begin = middle + 1;
            else
                end = middle;
        }
        p = {begin, 0, false};
        return true;
    }

    struct found_value {
        leaf* node;
        unsigned slot;
        obase::bytes* value; // null: the key is not there
    };

    template <class Read>
    bool find_value_once(std::string_view key, Read&& read, found_value& found) const {
        spot at;
        place p;
        if (!descend(key, at) || !search<true>(*at.node, key, read, p)) return false;
        found = {at.node, p.slot, nullptr};
        if (p.there) {
            found.value = read(at.node->pairs[p.slot].value);
            if (found.value == nullptr) return false;
        }
        return at.unchanged();
    }
    template <class Read>
    found_value look_up(std::string_view key, const Read& read) const {
        for (unsigned attempt = 0;; start_again(attempt)) {
            found_value found;
            if (find_value_once(key, read, found)) return found;
        }
    }
    // Does not touch the value.
    bool has(std::string_view key) const {
        for (unsigned attempt = 0;; start_again(attempt)) {
            spot at;
            place p;
            if (descend(key, at) && search(*at.node, key, plain_access{}, p) && at.unchanged())
                return p.there;
        }
    }

    struct found_pairs {
        unsigned count = 0;
        std::array<const obase::bytes*, leaf_entries> key, value;
    };

    // Up to `limit` pairs of a leaf, from `from` on. False: start again.
    static bool collect(const spot& at, std::string_view from, const upper_bound& end,
                        std::size_t limit, found_pairs& pairs) {
        const leaf& l = *at.node;
        place p;
        if (!search(l, from, plain_access{}, p)) return false;
        const unsigned n = l.count.load_acquire();
        if (const std::size_t skip = l.prefix_size.load_acquire(); skip != 0) {
            const text* prefix = l.prefix.load_acquire();
            if (!at.unchanged()) return false; // the text may be shorter than that prefix_size
            const int order = from.substr(0, skip).compare(prefix->view().substr(0, skip));
            if (order != 0) p.index = order < 0 ? 0 : n;
        }
        for (unsigned i = p.index; i < n && pairs.count < limit; ++i) {
            const typename leaf::pair& pair = l.pairs[slot_of(l.entries[i].load_acquire())];
            const obase::bytes *key = pair.key.get(), *value = pair.value.get();
            if (key == nullptr || value == nullptr) return false;
            __builtin_prefetch(key);
            __builtin_prefetch(value);
            pairs.key[pairs.count] = key;
            pairs.value[pairs.count++] = value;
        }
        if (!at.unchanged()) return false;
        // The separator is from before the leaf's version. If an empty neighbour was removed in
        // between, the leaf may have keys from beyond it, which are the next step's.
        if (end.content != nullptr)
            while (pairs.count != 0 && !(end.separator().above(pairs.key[pairs.count - 1]->view())))
                --pairs.count;
        return true;
    }

    // In the scope in which found.value was accessed. False: it is not the value any more; the slot
    // may even be another key's.
    static bool replace(found_value& found, owner& fresh) noexcept {
        return found.node->pairs[found.slot].value.compare_exchange(found.value, fresh);
    }
    bool replace(std::string_view key, found_value& found, owner& fresh) const {
        if (replace(found, fresh)) return true;
        found = look_up(key, plain_access{});
        return false;
    }

    outcome write(std::string_view key, owner& fresh, bool insert) {
        owner fresh_key;
        trail path;
        for (unsigned attempt = 0;; start_again(attempt)) {
            spot at;
            place p;
            if (!descend(key, at, path) || !search(*at.node, key, plain_access{}, p)) continue;
            if (p.there) {
                found_value found{at.node, p.slot, at.node->pairs[p.slot].value.get()};
                if (found.value == nullptr || !at.unchanged()) continue;
                if (!replace(found, fresh)) continue;
                obase::retire(std::move(fresh));
                return outcome::replaced;
            }
            if (!insert) {
                if (at.unchanged()) return outcome::absent;
                continue;
            }
            if (!fresh_key) fresh_key = obase::make_bytes<Protocol>(key);
            if (try_insert(path, at, p.index, key, fresh_key, fresh)) {
                return outcome::inserted;
            }
        }
    }

    // A consistent copy of what describes the keys of a leaf.
    struct leaf_image {
        unsigned count;
        std::size_t skip;
        const text* prefix;
        std::array<entry, leaf_entries> entries;

        std::string_view common() const noexcept {
            return skip == 0 ? std::string_view{} : prefix->view().substr(0, skip);
        }
    };
    static bool read_image(const spot& at, leaf_image& image) noexcept {
        image.count = std::min<unsigned>(at.node->count.load_acquire(), leaf_entries);
        image.skip = at.node->prefix_size.load_acquire();
        image.prefix = at.node->prefix.load_acquire();
        for (unsigned i = 0; i < image.count; ++i)
            image.entries[i] = at.node->entries[i].load_acquire();
        return at.unchanged();
    }

    // `key` is not in the leaf; `index` is where it would be if it had the prefix. False: start
    // again, something changed or was made ready.
    bool try_insert(trail& path, const spot& at, unsigned index, std::string_view key,
                    owner& fresh_key, owner& fresh) {
        leaf& l = *at.node;
        const unsigned n = l.count.load_acquire();
        const std::size_t skip = n == 0 ? 0 : l.prefix_size.load_acquire();
        std::size_t common = 0;
        if (skip != 0) {
            const text* prefix = l.prefix.load_acquire();
            if (!at.unchanged()) return false; // the text may be shorter than that prefix_size
            const std::string_view all_have = prefix->view().substr(0, skip);
            common = common_bytes(key, all_have);
            if (common < skip) index = key.substr(0, skip) < all_have ? 0 : n;
        }
        if (n == leaf_entries) {
            split(path, at, index);
            return false;
        }
        if (common == skip && n != 0) {
            const entry head = head_of(key, skip);
            const bool tie = (index < n && head_of(l.entries[index].load_acquire()) == head) ||
                             (index > 0 && head_of(l.entries[index - 1].load_acquire()) == head);
            if (tie && sharpen_heads(at, key)) return false;
        }
        if (!l.lock.lock_if(at.seen)) return false;
        if (common < l.prefix_size.load_relaxed()) l.shorten_prefix(common);
        l.insert(index, head_of(key, common), std::move(fresh_key), std::move(fresh));
        size_.fetch_add_relaxed(1); // before another thread can find it, erase it and count it out
        l.lock.unlock();
        return true;
    }

    // New heads for the entries [begin, end) of an image.
    struct sharper {
        std::size_t skip;
        text_pointer prefix;
        std::array<entry, leaf_entries> entries; // from 0 on
    };
    enum class sharpened { done, not_needed, torn };

    // Heads that agree in their first bytes decide little: if all keys agree in more bytes than the
    // prefix has, prepares heads from behind those. `also`: a key that will come. This dereferences
    // all keys; as it gains two bytes or more each time, it is rare.
    static sharpened sharpen(const leaf& l, const leaf_image& image, unsigned begin, unsigned end,
                             const std::string_view* also, sharper& result) {
        if (end - begin + (also != nullptr) < 2) return sharpened::not_needed;
        if (equal_bytes(image.entries[begin], image.entries[end - 1]) < worth_sharpening)
            return sharpened::not_needed;
        const auto key_at = [&](unsigned i) {
            return l.pairs[slot_of(image.entries[i])].key.get();
        };
        const obase::bytes *first = key_at(begin), *last = key_at(end - 1);
        if (first == nullptr || last == nullptr) return sharpened::torn;
        std::size_t skip = common_bytes(first->view(), last->view());
        if (also != nullptr) skip = std::min(skip, common_bytes(first->view(), *also));
        if (skip <= image.skip) return sharpened::not_needed;
        result.skip = skip;
        result.prefix = make_text(first->view().substr(0, skip));
        for (unsigned i = begin; i < end; ++i) {
            const obase::bytes* key = key_at(i);
            if (key == nullptr) return sharpened::torn;
            result.entries[i - begin] = head_of(key->view(), skip) | slot_of(image.entries[i]);
        }
        return sharpened::done;
    }
    static constexpr unsigned worth_sharpening = 2;

    // True: start again. False: there is nothing to gain.
    bool sharpen_heads(const spot& at, std::string_view key) {
        leaf_image image;
        if (!read_image(at, image)) return true;
        sharper better;
        switch (sharpen(*at.node, image, 0, image.count, &key, better)) {
        case sharpened::not_needed:
            return false;
        case sharpened::torn:
            return true;
        case sharpened::done:
            break;
        }
        if (!at.node->lock.lock_if(at.seen)) return true;
        text* old = install(*at.node, better, image.count);
        at.node->lock.unlock();
        retire_text(old);
        return true;
    }
    // Under the leaf's lock. Returns the old prefix, to be retired.
    text* install(leaf& l, sharper& better, unsigned count) noexcept {
        for (unsigned i = 0; i < count; ++i) l.entries[i].store_release(better.entries[i]);
        l.prefix_size.store_release(better.skip);
        text* const old = l.prefix.load_relaxed();
        count_bytes(better.prefix->bytes());
        l.prefix.store_release(better.prefix.release());
        return old;
    }

    // Locks of several nodes, each at the version it was seen with. What was not commit()ted
    // leaves no trace.
    class lock_set {
      public:
        lock_set() noexcept = default;
        ~lock_set() {
            for (unsigned i = 0; i < count_; ++i) nodes_[i]->lock.unlock_unchanged();
        }
        lock_set(const lock_set&) = delete;
        lock_set& operator=(const lock_set&) = delete;

        bool add(node& n, version seen) noexcept {
            if (!n.lock.lock_if(seen)) return false;
            nodes_[count_++] = &n;
            return true;
        }
        void commit() noexcept {
            for (unsigned i = 0; i < count_; ++i) nodes_[i]->lock.unlock();
            count_ = 0;
        }

      private:
        unsigned count_ = 0;
        std::array<node*, 65> nodes_; // a trail and a leaf
    };

    using routes_draft = typename routes::template draft<Shape::fanout>;

    // Content of the parent in which child `index` is followed by another one.
    static typename routes::pointer with_child(const routes& r, unsigned index,
                                               std::string_view separator, node* added) {
        routes_draft d;
        d.add(r, 0, index + 1);
        d.add(added, {separator, {}});
        d.add(r, index + 1, r.children_count());
        return routes::make(d, r.to_leaves());
    }

    // Moves the upper part of a full leaf to a new one. `index`: where a key is going to be
    // inserted. The caller starts again, whether it worked or not.
    void split(trail& path, const spot& at, unsigned index) {
        leaf_image image;
        if (!read_image(at, image)) return;
        const step& parent = path.steps[path.depth - 1];
        if (parent.content->children_count() == Shape::fanout) {
            split_inner(path);
            return;
        }
        constexpr unsigned n = leaf_entries;
        assert(image.count == n);
        const unsigned cut = choose_cut(image, index);
        std::string separator;
        if (!choose_separator(*at.node, image, cut, separator)) return;
        // The parts keep the prefix and the heads they have unless those decide too little.
        sharper lower, upper;
        const sharpened lower_is = sharpen(*at.node, image, 0, cut, nullptr, lower);
        const sharpened upper_is = sharpen(*at.node, image, cut, n, nullptr, upper);
        if (lower_is == sharpened::torn || upper_is == sharpened::torn) return;
        if (upper_is == sharpened::not_needed) {
            upper.skip = image.skip;
            upper.prefix = make_text(image.common());
            std::copy(image.entries.begin() + cut, image.entries.begin() + n,
                      upper.entries.begin());
        }
        auto right = std::make_unique<leaf>();
        auto content = with_child(*parent.content, parent.index, separator, right.get());

        lock_set held;
        if (!held.add(*parent.node, parent.seen) || !held.add(*at.node, at.seen)) return;
        leaf& left = *at.node;
        for (unsigned i = 0; i < n - cut; ++i) {
            typename leaf::pair& from = left.pairs[slot_of(upper.entries[i])];
            right->pairs[i].key = from.key.release();
            right->pairs[i].value = from.value.release();
            right->entries[i].store_release(head_of(upper.entries[i]) | i);
            left.used &= ~(std::uint64_t{1} << slot_of(upper.entries[i]));
        }
        right->used = ~std::uint64_t{0} >> (64 - (n - cut));
        right->count.store_release(n - cut);
        right->prefix_size.store_release(upper.skip);
        count_bytes(sizeof(leaf) + bytes_of(upper.prefix.get()));
        right->prefix.store_release(upper.prefix.release());
        left.count.store_release(cut);
        text* const old_text = lower_is == sharpened::done ? install(left, lower, cut) : nullptr;
        right.release();
        set_content(*parent.node, std::move(content));
        held.commit();
        retire_text(old_text);
        retire_routes(parent.content);
    }

    // The number of entries that stay. Keys that come in ascending or descending order would leave
    // half-empty leaves behind; else near the middle, where the shortest separator is.
    static unsigned choose_cut(const leaf_image& image, unsigned index) noexcept {
        constexpr unsigned n = leaf_entries;
        if (index == n) return n - 1;
        if (index == 0) return 1;
        unsigned best = n / 2;
        for (unsigned away = 1; away <= n / 8; ++away)
            for (const unsigned cut : {n / 2 - away, n / 2 + away})
                if (separator_bytes(image, cut) < separator_bytes(image, best)) best = cut;
        return best;
    }
    static unsigned separator_bytes(const leaf_image& image, unsigned cut) noexcept {
        return equal_bytes(image.entries[cut - 1], image.entries[cut]);
    }
    // The shortest string above entry cut - 1 and not above entry `cut`. Heads that differ say it
    // without a look at the keys. False: torn.
    static bool choose_separator(const leaf& l, const leaf_image& image, unsigned cut,
                                 std::string& separator) {
        if (separator_bytes(image, cut) < head_bytes) {
            separator =
                words::separator(image.common(), image.entries[cut - 1], image.entries[cut]);
            return true;
        }
        const obase::bytes* below = l.pairs[slot_of(image.entries[cut - 1])].key.get();
        const obase::bytes* above = l.pairs[slot_of(image.entries[cut])].key.get();
        if (below == nullptr || above == nullptr) return false;
        separator = above->view().substr(0, common_bytes(below->view(), above->view()) + 1);
        return true;
    }

    // Splits the lowest full inner node of the path whose parent is not full. One step; the caller
    // starts again.
    void split_inner(trail& path) {
        unsigned level = path.depth - 1;
        while (level != 0 && path.steps[level - 1].content->children_count() == Shape::fanout)
            --level;
        const step& full = path.steps[level];
        const unsigned n = full.content->children_count();
        const unsigned cut = full.index + 1 == n ? n - 1 : n / 2;
        const auto part = [&](unsigned from, unsigned to) {
            routes_draft d;
            d.add(*full.content, from, to);
            return routes::make(d, full.content->to_leaves());
        };
        auto lower = part(0, cut);
        auto upper = part(cut, n);
        const std::string separator = full.content->separator(cut - 1).text();
        auto right = std::make_unique<inner>();
        lock_set held;
        if (level == 0) { // the root stays where it is and gets two children
            auto left = std::make_unique<inner>();
            routes_draft d;
            d.add(left.get(), {});
            d.add(right.get(), {separator, {}});
            auto content = routes::make(d, false);
            if (!held.add(*full.node, full.seen)) return;
            set_content(*left.release(), std::move(lower));
            set_content(*right.release(), std::move(upper));
            count_bytes(2 * sizeof(inner));
            set_content(*full.node, std::move(content));
        } else {
            const step& parent = path.steps[level - 1];
            auto content = with_child(*parent.content, parent.index, separator, right.get());
            if (!held.add(*parent.node, parent.seen) || !held.add(*full.node, full.seen)) return;
            set_content(*full.node, std::move(lower));
            set_content(*right.release(), std::move(upper));
            count_bytes(sizeof(inner));
            set_content(*parent.node, std::move(content));
            held.commit();
            retire_routes(parent.content);
        }
        held.commit();
        retire_routes(full.content);
    }

    // The leaf of `key` was empty when its lock was given up. Without memory for the parent's new
    // content it stays, empty.
    void remove_empty_leaf(std::string_view key) noexcept {
        try {
            trail path;
            for (unsigned attempt = 0;; start_again(attempt)) {
                spot at;
                if (!descend(key, at, path)) continue;
                if (at.node->count.load_acquire() != 0) {
                    if (at.unchanged()) break;
                    continue;
                }
                if (unlink(path, at)) break;
            }
            while (lower_root()) {
            }
        } catch (const std::bad_alloc&) {
        }
    }

    // Takes the empty leaf out, and inner nodes that have no other child. False: start again.
    bool unlink(trail& path, const spot& at) {
        unsigned level = path.depth - 1;
        while (level != 0 && path.steps[level].content->children_count() == 1) --level;
        const step& parent = path.steps[level]; // the one that loses a child
        typename routes::pointer content;
        routes_draft d;
        const bool last_leaf = parent.content->children_count() == 1;
        if (last_leaf) {
            // All keys are gone: the root keeps this leaf.
            if (level + 1 == path.depth) return true;
            d.add(at.node, {});
            content = routes::make(d, true);
        } else {
            // A neighbour takes over the range: the left one, or for the first child the right one.
            d.add(*parent.content, 0, parent.index);
            d.add(*parent.content, parent.index + 1, parent.content->children_count());
            content = routes::make(d, parent.content->to_leaves());
        }
        lock_set held;
        for (unsigned i = level; i < path.depth; ++i)
            if (!held.add(*path.steps[i].node, path.steps[i].seen)) return false;
        if (!held.add(*at.node, at.seen)) return false; // still empty
        set_content(*parent.node, std::move(content));
        held.commit();
        retire_routes(parent.content);
        for (unsigned i = level + 1; i < path.depth; ++i) {
            retire_routes(path.steps[i].content);
            retire_inner(path.steps[i].node);
        }
        if (!last_leaf) retire_leaf(at.node);
        return true;
    }

    // A root with one inner node below takes over its content. True: look again.
    bool lower_root() {
        const version seen = root_.lock.read();
        const routes* const content = root_.content.load_acquire();
        if (content->children_count() != 1 || content->to_leaves()) return false;
        auto* const child = static_cast<inner*>(content->child(0));
        const version of_child = child->lock.read();
        const routes* const below = child->content.load_acquire();
        routes_draft d;
        d.add(*below, 0, below->children_count());
        auto copy = routes::make(d, below->to_leaves());
        lock_set held;
        if (!held.add(root_, seen) || !held.add(*child, of_child)) return true;
        set_content(root_, std::move(copy));
        held.commit();
        retire_routes(content);
        retire_routes(below);
        retire_inner(child);
        return true;
    }

    // Under the node's lock, or before others see it.
    void set_content(inner& n, typename routes::pointer content) noexcept {
        count_bytes(content->bytes());
        n.content.store_release(content.release()); // pairs with descend()
    }

    void count_bytes(std::size_t more) noexcept { bytes_.fetch_add_relaxed(more); }
    void retire_memory(void* memory, void (*end)(void*) noexcept, std::size_t bytes) noexcept {
        bytes_.fetch_sub_relaxed(bytes);
        Protocol::retire(memory, end, bytes);
    }
    void retire_text(text* t) noexcept {
        if (t != nullptr) retire_memory(t, &text::destroy, t->bytes());
    }
    void retire_routes(const routes* r) noexcept {
        retire_memory(const_cast<routes*>(r), &routes::destroy_retired, r->bytes());
    }
    void retire_inner(inner* n) noexcept { retire_memory(n, &destroy<inner>, sizeof(inner)); }
    void retire_leaf(leaf* l) noexcept {
        bytes_.fetch_sub_relaxed(bytes_of(l->prefix.load_acquire())); // goes with the leaf
        retire_memory(l, &destroy<leaf>, sizeof(leaf));
    }
    template <class T>
    static void destroy(void* object) noexcept {
        delete static_cast<T*>(object);
    }
    static void destroy_children(const routes* r) noexcept {
        for (unsigned i = 0; i < r->children_count(); ++i) {
            if (r->to_leaves()) {
                delete static_cast<leaf*>(r->child(i));
            } else {
                auto* child = static_cast<inner*>(r->child(i));
                const routes* below = child->content.load_acquire();
                destroy_children(below);
                routes::destroy(below);
                delete child;
            }
        }
    }

    inner root_;
    alignas(64) atomic<std::size_t> size_;
    atomic<std::size_t> bytes_;
};

template <class Protocol = obase::arming>
using occ_btree = basic_occ_btree<Protocol, occ_btree_shape>;

} // namespace crestdb
