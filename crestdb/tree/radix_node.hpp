// SPDX-License-Identifier: MIT
//
// radix_node: the nodes of an adaptive radix tree (Leis, Kemper, Neumann, ICDE 2013): leaves and
// inner nodes for 4, 16, 48 and 256 children.
//
// A header that tells which kind it is, and behind it, in the same block, what that kind has:
//
//    leaf      the last eight bytes of the key | guides of key and value
//    node4     version | prefix | link to the key that ends here | 4 bytes of keys | 4 links
//    node16    the same with 16
//    node48    ... | for each byte the number of a link, or none | 48 links
//    node256   ... | 256 links
//
// A prefix is what all keys below the node have in common behind its parent's byte. Up to eight bytes
// are in the node, more in a block of ordinary memory of their own. Keys may be prefixes of each
// other: the one that ends behind the prefix has a link of its own, so no byte is a terminator.
//
// Bytes of node4 and node16 are in the order of their insertion, not sorted as in the paper: a link
// never changes its place within a node, which for guides would be an exchange each, and the search
// compares all sixteen at once anyway. Scans look for the next greater one.
//
// Invariants
//   node4, node16   bit i of `used`: links[i] is the child for byte i of `keys`; no byte twice
//   node48          used = children; bit i of `taken`: one index[b] is i + 1
//   node256         used = children
//   inner           version odd: its holder changes it; all of it is then any mixture. A link that is
//                   not in use is empty.
//   leaf            immutable, except for the value
//
// Optimistic readers (version_lock.hpp) load everything with acquire, also the sixteen bytes of a
// node16, as two words: a search in registers and no load that races. No mixture leads out of the
// node: the numbers of index and `used` are those of links whatever else they are. A prefix in a
// block of its own is followed only when the node was found unchanged.
//
// Internal to adaptive_radix_tree.hpp.
#pragma once

#include "crestdb/key_head.hpp"
#include "crestdb/node_links.hpp"
#include "crestdb/version_lock.hpp"

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/word/atomic.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace crestdb {

// Bytes [at, at + 8) of the key as a big-endian number, zeros where the key has ended. As head_word,
// without a copy of variable size unless the whole key is shorter than a word.
inline std::uint64_t key_word(std::string_view key, std::size_t at) noexcept {
    constexpr std::size_t word_bytes = sizeof(std::uint64_t);
    if (key.size() >= at + word_bytes || key.size() < word_bytes) return detail::head_word(key, at);
    if (at >= key.size()) return 0;
    const std::size_t last = key.size() - word_bytes;
    return detail::head_word(key, last) << (8 * (at - last));
}

// The next symbol of a search: a byte, or the end of the key.
using radix_symbol = unsigned;
inline constexpr radix_symbol key_ends = 256;
inline radix_symbol symbol_at(std::string_view key, std::size_t at) noexcept {
    return at < key.size() ? static_cast<unsigned char>(key[at]) : key_ends;
}

// A prefix: up to eight bytes as a big-endian word, or more as a block of memory. This is the one
// that is not in a node.
class radix_prefix {
  public:
    static constexpr std::size_t inline_bytes = sizeof(std::uint64_t);

    struct block {
        std::size_t size;
        char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
        std::string_view view() const noexcept {
            return {reinterpret_cast<const char*>(this + 1), size};
        }
        static std::size_t bytes(std::size_t size) noexcept { return sizeof(block) + size; }
        static void destroy(void* b) noexcept { ::operator delete(b); }
    };

    radix_prefix() noexcept = default;
    // The parts, one behind the other. Throws std::bad_alloc.
    explicit radix_prefix(std::string_view a, std::string_view b = {}, std::string_view c = {})
        : size_(static_cast<std::uint32_t>(a.size() + b.size() + c.size())) {
        if (size_ > inline_bytes) {
            block* const made = ::new (::operator new(block::bytes(size_))) block{size_};
            join(made->data(), a, b, c);
            word_ = reinterpret_cast<std::uint64_t>(made);
        } else {
            std::array<char, inline_bytes> text{};
            join(text.data(), a, b, c);
            word_ = detail::head_word({text.data(), text.size()}, 0);
        }
    }
    radix_prefix(radix_prefix&& other) noexcept { *this = std::move(other); }
    radix_prefix& operator=(radix_prefix&& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(word_, other.word_);
        return *this;
    }
    ~radix_prefix() {
        if (is_block()) block::destroy(as_block());
    }

    // A node with these fields; takes over the block.
    static radix_prefix restore(std::uint32_t size, std::uint64_t word) noexcept {
        radix_prefix p;
        p.size_ = size;
        p.word_ = word;
        return p;
    }
    std::uint64_t release() noexcept {
        size_ = 0;
        return std::exchange(word_, 0);
    }

    std::uint32_t size() const noexcept { return size_; }
    bool is_block() const noexcept { return size_ > inline_bytes; }
    block* as_block() const noexcept { return reinterpret_cast<block*>(word_); }
    // Memory besides the node's.
    std::size_t bytes() const noexcept { return is_block() ? block::bytes(size_) : 0; }

  private:
    static void join(char* to, std::string_view a, std::string_view b, std::string_view c) {
        to = std::copy(a.begin(), a.end(), to);
        to = std::copy(b.begin(), b.end(), to);
        std::copy(c.begin(), c.end(), to);
    }
    std::uint32_t size_ = 0;
    std::uint64_t word_ = 0;
};

enum class radix_kind : std::uint8_t { leaf, node4, node16, node48, node256 };

template <class Protocol, class Links, class Shape>
class alignas(8) radix_node {
  public:
    template <class T>
    using atomic = typename Shape::template atomic<T>;
    using link = typename Links::template link<radix_node, Protocol, Shape>;
    using owner = typename Links::template owner<radix_node, Protocol>;
    using lock_word = version_lock<atomic<std::uint64_t>, Shape>;
    using version = typename lock_word::version;
    using guide = obase::guide<obase::bytes, Protocol>;
    using key_owner = obase::owner<obase::bytes, Protocol>;

    struct leaf_part {
        std::uint64_t tail; // the last bytes of the key, big-endian; zeros behind a shorter one
        guide key, value;   // value: null once the key is erased, for good

        leaf_part(std::uint64_t last, key_owner k) noexcept : tail(last), key(std::move(k)) {}
    };
    struct inner_part {
        lock_word lock;
        atomic<std::uint64_t> prefix;
        link ends; // the leaf of the key that ends behind the prefix
    };

    // Throws std::bad_alloc. Without a value.
    static owner make_leaf(std::string_view key) {
        key_owner object = obase::make_bytes<Protocol>(key);
        owner made = Links::template make<radix_node, Protocol>(
            sizeof(leaf_part), static_cast<std::uint32_t>(key.size()), tail_of(key));
        made->leaf().key = std::move(object);
        return made;
    }
    static owner make_inner(radix_kind kind) {
        return Links::template make<radix_node, Protocol>(bytes_of(kind) - sizeof(radix_node),
                                                          kind);
    }

    // For Links::make(), with room for the part behind it.
    radix_node(std::uint32_t key_size, std::uint64_t tail) noexcept
        : kind_(radix_kind::leaf), size_(key_size) {
        ::new (static_cast<void*>(this + 1)) leaf_part(tail, key_owner{});
    }
    explicit radix_node(radix_kind kind) noexcept : kind_(kind) {
        visit_part(kind, [this]<class Part>(Part*) { ::new (static_cast<void*>(this + 1)) Part; });
    }
    ~radix_node() {
        if (is_leaf()) {
            std::destroy_at(&leaf());
        } else {
            radix_prefix last = take_prefix();
            visit_part(kind_, [this]<class Part>(Part*) {
                std::destroy_at(&this->template part<Part>());
            });
        }
    }
    radix_node(const radix_node&) = delete;
    radix_node& operator=(const radix_node&) = delete;

    radix_kind kind() const noexcept { return kind_; }
    bool is_leaf() const noexcept { return kind_ == radix_kind::leaf; }
    std::size_t bytes() const noexcept { return bytes_of(kind_); }
    static std::size_t bytes_of(radix_kind kind) noexcept {
        std::size_t result = sizeof(radix_node) + sizeof(leaf_part);
        if (kind != radix_kind::leaf)
            visit_part(
                kind, [&result]<class Part>(Part*) { result = sizeof(radix_node) + sizeof(Part); });
        return result;
    }

    // Leaves.

    leaf_part& leaf() noexcept { return part<leaf_part>(); }
    const leaf_part& leaf() const noexcept { return part<leaf_part>(); }
    std::size_t key_size() const noexcept { return size_.load_relaxed(); }
    static std::uint64_t tail_of(std::string_view key) noexcept {
        return key_word(key, key.size() < tail_bytes ? 0 : key.size() - tail_bytes);
    }
    static constexpr std::size_t tail_bytes = sizeof(std::uint64_t);
    // True if the tail holds the whole key except its first `depth` bytes.
    bool tail_suffices(std::size_t depth) const noexcept {
        return key_size() <= depth + tail_bytes;
    }

    // Inner nodes, by optimistic readers.

    inner_part& inner() noexcept { return part<inner_part>(); }
    const inner_part& inner() const noexcept { return part<inner_part>(); }

    // How many bytes of the prefix the key has at `depth`, and how many there are.
    struct agreement {
        std::size_t agreed, size;
    };
    // False: the node has changed since `seen`.
    bool compare_prefix(std::string_view key, std::size_t depth, version seen,
                        agreement& a) const noexcept {
        const std::size_t size = size_.load_acquire();
        const std::uint64_t word = inner().prefix.load_acquire();
        a = {size, size};
        if (size == 0) return true;
        const std::size_t left = key.size() - depth;
        if (size <= radix_prefix::inline_bytes) {
            const std::uint64_t different =
                (key_word(key, depth) ^ word) >> (8 * (radix_prefix::inline_bytes - size));
            if (different == 0 && left >= size) [[likely]]
                return true;
            // Of `size` bytes the first ones are the highest.
            const std::size_t equal =
                different == 0 ? size
                               : static_cast<std::size_t>(std::countl_zero(different)) / 8 -
                                     (radix_prefix::inline_bytes - size);
            a.agreed = std::min(equal, left);
            return true;
        }
        if (!inner().lock.unchanged(seen)) return false;
        const std::string_view all = reinterpret_cast<const radix_prefix::block*>(word)->view();
        const std::string_view rest = key.substr(depth);
        if (left >= size && std::memcmp(all.data(), rest.data(), size) == 0) return true;
        a.agreed = common_bytes(all, rest);
        return true;
    }
    // The prefix as text, good as long as the scope; `buffer` has inline_bytes. False: changed.
    bool prefix_text(version seen, char* buffer, std::string_view& text) const noexcept {
        const std::size_t size = size_.load_acquire();
        const std::uint64_t word = inner().prefix.load_acquire();
        if (!inner().lock.unchanged(seen)) return false;
        if (size > radix_prefix::inline_bytes) {
            text = reinterpret_cast<const radix_prefix::block*>(word)->view();
        } else {
            const std::uint64_t in_order = __builtin_bswap64(word);
            std::memcpy(buffer, &in_order, radix_prefix::inline_bytes);
            text = {buffer, size};
        }
        return true;
    }

    // The link for a symbol; null if the node has none for it. The link may be empty.
    link* find(radix_symbol symbol) noexcept {
        if (symbol == key_ends) return &inner().ends;
        switch (kind_) {
        case radix_kind::node4:
            return part<part4>().find(used_.load_acquire(), symbol);
        case radix_kind::node16:
            return part<part16>().find(used_.load_acquire(), symbol);
        case radix_kind::node48: {
            auto& p = part<part48>();
            const unsigned number = p.index[symbol].load_acquire();
            return number == 0 ? nullptr : &p.links[number - 1];
        }
        default:
            return &part<part256>().links[symbol];
        }
    }

    // A child and its byte.
    struct child {
        radix_symbol symbol;
        link* at; // null: there is none
    };
    // The child with the smallest byte not below `from`.
    child next(radix_symbol from) noexcept {
        switch (kind_) {
        case radix_kind::node4:
            return part<part4>().next(used_.load_acquire(), from);
        case radix_kind::node16:
            return part<part16>().next(used_.load_acquire(), from);
        case radix_kind::node48: {
            auto& p = part<part48>();
            for (; from < 256; ++from)
                if (const unsigned number = p.index[from].load_acquire(); number != 0)
                    return {from, &p.links[number - 1]};
            break;
        }
        default: {
            auto& p = part<part256>();
            for (; from < 256; ++from)
                if (p.links[from]) return {from, &p.links[from]};
        }
        }
        return {256, nullptr};
    }

    // Children, without the key that ends here.
    unsigned children() const noexcept {
        const unsigned used = used_.load_acquire();
        return kind_ <= radix_kind::node16 ? static_cast<unsigned>(std::popcount(used)) : used;
    }
    bool full() const noexcept {
        return kind_ != radix_kind::node256 && children() == capacity(kind_);
    }
    // It should become smaller, or go.
    bool sparse() const noexcept {
        switch (kind_) {
        case radix_kind::node4:
            return children() + (inner().ends ? 1 : 0) <= 1;
        // A few less than the smaller kind holds, so that a node at the limit does not change its
        // kind with every operation.
        case radix_kind::node16:
            return children() <= 3;
        case radix_kind::node48:
            return children() <= 12;
        default:
            return children() <= 37;
        }
    }
    static radix_kind larger(radix_kind k) noexcept {
        return static_cast<radix_kind>(static_cast<int>(k) + 1);
    }
    static radix_kind smaller(radix_kind k) noexcept {
        return static_cast<radix_kind>(static_cast<int>(k) - 1);
    }

    // Inner nodes, under the lock or before others see them.

    // There is room, and nothing for the symbol yet.
    void add(radix_symbol symbol, owner&& n) noexcept {
        if (symbol == key_ends) {
            inner().ends = std::move(n);
            return;
        }
        const unsigned used = used_.load_relaxed();
        switch (kind_) {
        case radix_kind::node4:
            used_.store_release(part<part4>().add(used, symbol, std::move(n)));
            return;
        case radix_kind::node16:
            used_.store_release(part<part16>().add(used, symbol, std::move(n)));
            return;
        case radix_kind::node48: {
            auto& p = part<part48>();
            const auto i = static_cast<unsigned>(std::countr_one(p.taken));
            p.taken |= std::uint64_t{1} << i;
            p.links[i] = std::move(n);
            p.index[symbol].store_release(static_cast<std::uint8_t>(i + 1));
            break;
        }
        default:
            part<part256>().links[symbol] = std::move(n);
        }
        used_.store_release(static_cast<std::uint16_t>(used + 1));
    }
    // There is one.
    owner remove(radix_symbol symbol) noexcept {
        owner taken = find(symbol)->release();
        if (symbol == key_ends) return taken;
        const unsigned used = used_.load_relaxed();
        switch (kind_) {
        case radix_kind::node4:
            used_.store_release(part<part4>().without(used, symbol));
            return taken;
        case radix_kind::node16:
            used_.store_release(part<part16>().without(used, symbol));
            return taken;
        case radix_kind::node48: {
            auto& p = part<part48>();
            p.taken &= ~(std::uint64_t{1} << (p.index[symbol].load_relaxed() - 1));
            p.index[symbol].store_release(0);
            break;
        }
        default:
            break;
        }
        used_.store_release(static_cast<std::uint16_t>(used - 1));
        return taken;
    }
    // Everything to an empty node that has room. Readers of this one may find it half empty.
    void move_to(radix_node& other) noexcept {
        for (child c = next(0); c.at != nullptr; c = next(c.symbol + 1))
            other.add(c.symbol, c.at->release());
        other.inner().ends = inner().ends.release();
        other.set_prefix(take_prefix());
    }

    // Returns the old one, which readers may be looking at.
    radix_prefix set_prefix(radix_prefix p) noexcept {
        radix_prefix old = take_prefix();
        const std::uint32_t size = p.size();
        inner().prefix.store_release(p.release());
        size_.store_release(size);
        return old;
    }
    radix_prefix take_prefix() noexcept {
        radix_prefix old =
            radix_prefix::restore(size_.load_relaxed(), inner().prefix.load_relaxed());
        size_.store_release(0);
        return old;
    }
    // Memory besides the node's; of one that is not in the tree any more.
    std::size_t prefix_bytes() const noexcept {
        const std::size_t size = is_leaf() ? 0 : size_.load_relaxed();
        return size > radix_prefix::inline_bytes ? radix_prefix::block::bytes(size) : 0;
    }

  private:
    template <unsigned Slots>
    struct small_part : inner_part {
        static constexpr unsigned words = (Slots + 7) / 8;
        std::array<atomic<std::uint64_t>, words> keys;
        std::array<link, Slots> links;

        link* find(unsigned used, radix_symbol symbol) noexcept {
            const unsigned found = equal(symbol) & used;
            return found == 0 ? nullptr : &links[static_cast<unsigned>(std::countr_zero(found))];
        }
        child next(unsigned used, radix_symbol from) noexcept {
            const std::uint64_t low = keys[0].load_acquire();
            const std::uint64_t high = words == 2 ? keys[words - 1].load_acquire() : 0;
            child best{256, nullptr};
            for (used &= (1u << Slots) - 1; used != 0; used &= used - 1) {
                const auto i = static_cast<unsigned>(std::countr_zero(used));
                const unsigned symbol = ((i < 8 ? low : high) >> (8 * (i % 8))) & 0xff;
                if (symbol >= from && symbol < best.symbol) best = {symbol, &links[i]};
            }
            return best;
        }
        std::uint16_t add(unsigned used, radix_symbol symbol, owner&& n) noexcept {
            const auto i = static_cast<unsigned>(std::countr_one(used));
            const unsigned shift = 8 * (i % 8);
            const std::uint64_t others =
                keys[i / 8].load_relaxed() & ~(std::uint64_t{0xff} << shift);
            keys[i / 8].store_release(others | std::uint64_t{symbol} << shift);
            links[i] = std::move(n);
            return static_cast<std::uint16_t>(used | 1u << i);
        }
        std::uint16_t without(unsigned used, radix_symbol symbol) const noexcept {
            return static_cast<std::uint16_t>(used & ~(equal(symbol) & used));
        }

      private:
        // A bit for each of the sixteen bytes.
        unsigned equal(radix_symbol symbol) const noexcept {
            const std::uint64_t low = keys[0].load_acquire();
            const std::uint64_t high = words == 2 ? keys[words - 1].load_acquire() : 0;
            const __m128i all =
                _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
            const __m128i sought = _mm_set1_epi8(static_cast<char>(symbol));
            return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(all, sought)));
        }
    };
    using part4 = small_part<4>;
    using part16 = small_part<16>;
    struct part48 : inner_part {
        std::uint64_t taken = 0; // under the lock
        std::array<atomic<std::uint8_t>, 256> index;
        std::array<link, 48> links;
    };
    struct part256 : inner_part {
        std::array<link, 256> links;
    };
    static_assert(alignof(part4) <= 8 && alignof(part256) <= 8 && alignof(leaf_part) <= 8);

    static constexpr unsigned capacity(radix_kind kind) noexcept {
        constexpr std::array<unsigned, 5> of_kind{0, 4, 16, 48, 256};
        return of_kind[static_cast<unsigned>(kind)];
    }

    template <class Use>
    static void visit_part(radix_kind kind, Use&& use) noexcept {
        switch (kind) {
        case radix_kind::node4:
            return use(static_cast<part4*>(nullptr));
        case radix_kind::node16:
            return use(static_cast<part16*>(nullptr));
        case radix_kind::node48:
            return use(static_cast<part48*>(nullptr));
        default:
            return use(static_cast<part256*>(nullptr));
        }
    }
    template <class Part>
    Part& part() noexcept {
        return *std::launder(reinterpret_cast<Part*>(this + 1));
    }
    template <class Part>
    const Part& part() const noexcept {
        return *std::launder(reinterpret_cast<const Part*>(this + 1));
    }

    const radix_kind kind_;
    atomic<std::uint16_t> used_; // node4, node16: a bit for each link; else the number of children
    atomic<std::uint32_t> size_; // of a leaf's key; of an inner node's prefix
};

} // namespace crestdb

// Its links are guides or addresses of what does not move, and no thread keeps its address.
template <class Protocol, class Links, class Shape>
struct obase::is_relocatable<crestdb::radix_node<Protocol, Links, Shape>> : std::true_type {};
