// SPDX-License-Identifier: MIT
//
// btree_routes: what an inner node of a B+tree knows: children and the separators between them, in
// one immutable block of ordinary memory.
//
// Child i has the keys k with separator(i - 1) <= k < separator(i). Separators are shortest strings
// that separate (Bayer, Unterauer, Prefix B-Trees, TODS 1977), index-owned bytes and not key
// objects, so no search touches a key on its way down. What they all begin with is kept once; the
// eight bytes behind it are kept as numbers and searched first.
//
//    header | heads[n] | children[n + 1] | ends[n] (of the suffixes) | common prefix, suffixes
//
// A change of the inner node makes a new block (one per split of a child, that is one per some thirty
// insertions) and the old one is retired. So a reader never sees half of a change, and the search is
// one of plain memory.
//
// Every change copies the node's routes, so they are for nodes that change rarely.
//
// Threads: immutable; publish and retire as any such thing.
#pragma once

#include "crestdb/key_head.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace crestdb {

// A string in two pieces.
struct joined_text {
    std::string_view front, back;

    std::size_t size() const noexcept { return front.size() + back.size(); }
    char operator[](std::size_t i) const noexcept {
        return i < front.size() ? front[i] : back[i - front.size()];
    }
    std::string text() const {
        std::string whole(front);
        whole.append(back);
        return whole;
    }
    bool above(std::string_view key) const noexcept {
        const int order = key.substr(0, front.size()).compare(front);
        return order < 0 || (order == 0 && key.substr(front.size()) < back);
    }
    // Bytes [from, size()) to `to`; returns the end.
    char* copy_from(std::size_t from, char* to) const noexcept {
        for (const std::string_view piece : {front, back}) {
            const std::size_t left_out = std::min(from, piece.size());
            to = std::copy(piece.begin() + left_out, piece.end(), to);
            from -= left_out;
        }
        return to;
    }
};

inline std::size_t common_bytes(const joined_text& a, const joined_text& b) noexcept {
    const std::size_t limit = std::min(a.size(), b.size());
    std::size_t n = 0;
    while (n < limit && a[n] == b[n]) ++n;
    return n;
}

template <class Node>
class btree_routes {
  public:
    struct deleter {
        void operator()(const btree_routes* r) const noexcept { destroy(r); }
    };
    using pointer = std::unique_ptr<const btree_routes, deleter>;

    // A list of children and separators to make a block of.
    template <unsigned Fanout>
    struct draft {
        unsigned children = 0;
        std::array<Node*, Fanout + 1> child;
        std::array<joined_text, Fanout> separator; // of children i and i + 1

        void add(Node* c, joined_text before) noexcept {
            if (children != 0) separator[children - 1] = before;
            child[children++] = c;
        }
        // Children [from, to) of a block.
        void add(const btree_routes& r, unsigned from, unsigned to) noexcept {
            for (unsigned i = from; i < to; ++i)
                add(r.child(i), i == 0 ? joined_text{} : r.separator(i - 1));
        }
    };

    // Throws std::bad_alloc. `to_leaves`: the children are leaves.
    template <unsigned Fanout>
    static pointer make(const draft<Fanout>& d, bool to_leaves) {
        assert(d.children != 0);
        const unsigned n = d.children - 1;
        const std::size_t common = n == 0 ? 0 : common_bytes(d.separator[0], d.separator[n - 1]);
        std::size_t text = 0;
        for (unsigned i = 0; i < n; ++i) text += d.separator[i].size();
        if (n != 0) text -= (n - 1) * common;
        const std::size_t bytes = sizeof(btree_routes) + n * (8 + 8 + 4) + sizeof(Node*) + text;
        if (text > UINT32_MAX) throw std::bad_alloc();
        auto* r = ::new (::operator new(bytes)) btree_routes(n, common, bytes, to_leaves);
        for (unsigned i = 0; i <= n; ++i) r->children()[i] = d.child[i];
        char* const begin = r->text();
        char* end = begin;
        for (std::size_t i = 0; i < common; ++i) *end++ = d.separator[0][i];
        for (unsigned i = 0; i < n; ++i) {
            const char* suffix = end;
            end = d.separator[i].copy_from(common, end);
            r->ends()[i] = static_cast<std::uint32_t>(end - begin);
            r->heads()[i] = detail::head_word({suffix, static_cast<std::size_t>(end - suffix)}, 0);
        }
        return pointer(r);
    }
    static void destroy(const btree_routes* r) noexcept {
        ::operator delete(const_cast<btree_routes*>(r));
    }
    // For obase::retire.
    static void destroy_retired(void* r) noexcept { destroy(static_cast<btree_routes*>(r)); }

    unsigned children_count() const noexcept { return separators_ + 1; }
    std::size_t bytes() const noexcept { return bytes_; }
    bool to_leaves() const noexcept { return to_leaves_; }
    Node* child(unsigned i) const noexcept { return children()[i]; }
    joined_text separator(unsigned i) const noexcept { return {prefix(), suffix(i)}; }

    // The child that has `key`: as many separators as are not above it.
    unsigned find(std::string_view key) const noexcept {
        if (prefix_size_ != 0) {
            const int order = key.substr(0, prefix_size_).compare(prefix());
            if (order != 0) return order < 0 ? 0 : separators_;
        }
        const std::uint64_t head = detail::head_word(key, prefix_size_);
        const std::uint64_t* const all = heads();
        // Heads below the key's; no branch depends on the comparisons.
        const std::uint64_t* from = all;
        for (unsigned left = separators_; left != 0;) {
            const unsigned half = (left + 1) / 2;
            from += from[half - 1] < head ? half : 0;
            left -= half;
        }
        unsigned at = static_cast<unsigned>(from - all);
        if (at == separators_ || all[at] != head) return at;
        unsigned end = at;
        while (end != separators_ && all[end] == head) ++end;
        const std::string_view rest = key.substr(prefix_size_);
        while (at != end) {
            const unsigned middle = at + (end - at) / 2;
            if (suffix(middle) <= rest)
                at = middle + 1;
            else
                end = middle;
        }
        return at;
    }

  private:
    btree_routes(unsigned separators, std::size_t prefix, std::size_t bytes,
                 bool to_leaves) noexcept
        : separators_(separators), prefix_size_(static_cast<std::uint32_t>(prefix)), bytes_(bytes),
          to_leaves_(to_leaves) {}

    std::uint64_t* heads() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* heads() const noexcept {
        return reinterpret_cast<const std::uint64_t*>(this + 1);
    }
    Node** children() noexcept { return reinterpret_cast<Node**>(heads() + separators_); }
    Node* const* children() const noexcept {
        return reinterpret_cast<Node* const*>(heads() + separators_);
    }
    std::uint32_t* ends() noexcept {
        return reinterpret_cast<std::uint32_t*>(children() + separators_ + 1);
    }
    const std::uint32_t* ends() const noexcept {
        return reinterpret_cast<const std::uint32_t*>(children() + separators_ + 1);
    }
    char* text() noexcept { return reinterpret_cast<char*>(ends() + separators_); }
    const char* text() const noexcept {
        return reinterpret_cast<const char*>(ends() + separators_);
    }
    std::string_view prefix() const noexcept { return {text(), prefix_size_}; }
    std::string_view suffix(unsigned i) const noexcept {
        const std::size_t begin = i == 0 ? prefix_size_ : ends()[i - 1];
        return {text() + begin, ends()[i] - begin};
    }

    std::uint32_t separators_;
    std::uint32_t prefix_size_;
    std::size_t bytes_;
    bool to_leaves_;
};

} // namespace crestdb
