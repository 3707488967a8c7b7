// SPDX-License-Identifier: MIT
//
// slot_states: a few bits of state for each slot, kept beside SODA for the policy.
//
// A touch overwrites the tag of a slot's word, so what is remembered of a slot from window to window
// lies here. States are stored by rank: the states of a SODA word (64 positions, 512 bytes of memory)
// follow each other without gaps, one for each position that has one, so that a sparse word costs
// little. Threads set and clear SODA bits at any time; so the store has masks of its own, which say for
// which positions it has states, and the collector brings them up to date when it visits a word.
//
//     page (256 KiB of memory, as a page of SODA's bitmap)
//       kinds     one byte per word: which of the page's patterns is its mask
//       patterns  the different masks of the page, the empty one first; few, where slots are parts of
//                 equal nodes or of arrays. A page with more than 255 has a mask per word instead.
//       bytes     the states of all words in address order; those of a word begin at a byte
//
// Invariants
//   sizes of the words' states (bytes_of(mask)) add up to bytes.size()
//   a page without states is not there
//   cursor_byte == sum of bytes_of(mask) over the words before cursor_word
//
// Cost: `bits` per slot, 1 byte per word with slots nearby, up to 7 bits of padding per word; resident
// figures for several layouts are in docs/architecture.md. Access in address order is O(1) per word;
// out of order it counts through up to 512 words, and a word whose mask changed moves up to 64 KiB.
//
// Threads: the collector only. Without memory the states of a page are forgotten: its slots begin anew.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace obase::soda {

class slot_states {
  public:
    static constexpr unsigned word_shift = 9;  // as soda::directory
    static constexpr unsigned page_shift = 18; // 512 words
    static constexpr std::size_t words_per_page = std::size_t{1} << (page_shift - word_shift);
    static constexpr std::size_t word_span = std::size_t{1} << word_shift;
    using values = std::array<std::uint16_t, 64>;

    // `bits` per slot, 0 to 16. 0: nothing is ever stored.
    explicit slot_states(unsigned bits) noexcept : bits_(bits) {}

    unsigned bits() const noexcept { return bits_; }

    // out[i] for the slots in `wanted` of the word that covers [base, base + 512): the state, or 0 where
    // there is none.
    void load(std::uintptr_t base, std::uint64_t wanted, values& out) noexcept {
        page* p = find(base);
        const std::uint64_t mask = p != nullptr ? p->mask_of(word_in_page(base)) : 0;
        for (std::uint64_t left = wanted & ~mask; left != 0; left &= left - 1)
            out[lowest(left)] = 0;
        if ((mask & wanted) == 0) return;
        const std::uint8_t* at = p->bytes.data() + p->offset_of(word_in_page(base), bits_);
        if (bits_ == 16) {
            if (mask == wanted && (mask & (mask + 1)) == 0) { // the first ones
                std::memcpy(out.data(), at, bytes_of(mask, 16));
                return;
            }
            for (std::uint64_t left = mask; left != 0; left &= left - 1, at += 2)
                if ((wanted >> lowest(left) & 1) != 0) std::memcpy(&out[lowest(left)], at, 2);
            return;
        }
        bit_reader from(at, bits_);
        for (std::uint64_t left = mask; left != 0; left &= left - 1) {
            const std::uint16_t state = from.next();
            if ((wanted >> lowest(left) & 1) != 0) out[lowest(left)] = state;
        }
    }

    // From now on the word has states for exactly the slots in `slots`.
    void store(std::uintptr_t base, std::uint64_t slots, const values& in) noexcept {
        store(base, slots, in, 0);
    }
    // The same, by who trims the page soon.
    void store_in_turn(std::uintptr_t base, std::uint64_t slots, const values& in) noexcept {
        store(base, slots, in, std::max(usual_bytes_, std::size_t{64}));
    }

    // The words in [begin, end), whole ones, have no slots any more.
    void erase(std::uintptr_t begin, std::uintptr_t end) noexcept {
        while (begin < end) {
            const std::uintptr_t stop = std::min(end, page_end(begin));
            if (page* p = find(begin); p != nullptr) {
                p->erase(word_in_page(begin), word_in_page(begin) + ((stop - begin) >> word_shift),
                         bits_);
                if (p->used == 0) drop(begin);
            }
            begin = stop;
        }
    }

    // An object with slots has moved: their states follow them. What was known of the destination, of
    // slots that have ended there, is forgotten. The ranges do not overlap.
    void move(std::uintptr_t from, std::uintptr_t to, std::size_t size) noexcept {
        if (bits_ == 0) return;
        keep_outside(to, to + size);
        for (std::uintptr_t base = from & ~(word_span - 1); base < from + size;) {
            page* p = find(base);
            if (p == nullptr) {
                base = page_end(base);
                continue;
            }
            const std::uint64_t inside =
                p->mask_of(word_in_page(base)) & mask_of_range(base, from, from + size);
            if (inside != 0) {
                values states;
                load(base, inside, states);
                for (std::uint64_t left = inside; left != 0; left &= left - 1) {
                    const unsigned bit = lowest(left);
                    put(to + (base + 8 * bit - from), states[bit]);
                }
            }
            base += word_span;
        }
        keep_outside(from, from + size);
    }

    // Gives back what a page in [begin, end) has for growing.
    void trim(std::uintptr_t begin, std::uintptr_t end) noexcept {
        for (; begin < end; begin = page_end(begin))
            if (page* p = find(begin); p != nullptr) {
                p->trim();
                usual_bytes_ = p->bytes.size();
            }
    }

    // Forgets the pages for which gone(first address) is true.
    template <class Gone>
    void drop_if(Gone&& gone) noexcept {
        std::erase_if(pages_, [&](const auto& entry) { return gone(entry.first << page_shift); });
        last_ = nullptr;
    }

    // Memory in use. O(pages).
    std::size_t memory_bytes() const noexcept {
        std::size_t total = pages_.bucket_count() * sizeof(void*);
        for (const auto& [number, p] : pages_)
            total += sizeof(page) + node_overhead + p->bytes.capacity() +
                     p->patterns.capacity() * sizeof(std::uint64_t) +
                     (p->wide != nullptr ? words_per_page * sizeof(std::uint64_t) : words_per_page);
        return total;
    }

    // True if the invariants hold. For tests.
    bool validate() const noexcept {
        for (const auto& [number, p] : pages_)
            if (!p->validate(bits_)) return false;
        return true;
    }

  private:
    // Of an entry in the map: links, key, pointer and what malloc adds.
    static constexpr std::size_t node_overhead = 64;

    static unsigned lowest(std::uint64_t bits) noexcept {
        return static_cast<unsigned>(std::countr_zero(bits));
    }
    static std::size_t word_in_page(std::uintptr_t base) noexcept {
        return (base >> word_shift) & (words_per_page - 1);
    }
    static std::uintptr_t page_end(std::uintptr_t address) noexcept {
        return ((address >> page_shift) + 1) << page_shift;
    }
    static std::size_t bytes_of(std::uint64_t mask, unsigned bits) noexcept {
        return (static_cast<unsigned>(std::popcount(mask)) * bits + 7) / 8;
    }
    // Positions of the word at `base` that lie in [begin, end).
    static std::uint64_t mask_of_range(std::uintptr_t base, std::uintptr_t begin,
                                       std::uintptr_t end) noexcept {
        std::uint64_t mask = ~std::uint64_t{0};
        if (begin > base) mask <<= (begin - base + 7) / 8; // less than 64: the word overlaps
        if (end < base + word_span) mask &= (std::uint64_t{1} << ((end - base + 7) / 8)) - 1;
        return mask;
    }

    class bit_reader {
      public:
        bit_reader(const std::uint8_t* at, unsigned bits) noexcept : at_(at), bits_(bits) {}
        std::uint16_t next() noexcept {
            while (have_ < bits_) {
                ahead_ |= std::uint32_t{*at_++} << have_;
                have_ += 8;
            }
            const auto value = static_cast<std::uint16_t>(ahead_ & ((1u << bits_) - 1));
            ahead_ >>= bits_;
            have_ -= bits_;
            return value;
        }

      private:
        const std::uint8_t* at_;
        unsigned bits_;
        std::uint32_t ahead_ = 0;
        unsigned have_ = 0;
    };

    class bit_writer {
      public:
        bit_writer(std::uint8_t* at, unsigned bits) noexcept : at_(at), bits_(bits) {}
        void put(std::uint16_t value) noexcept {
            behind_ |= (std::uint32_t{value} & ((1u << bits_) - 1)) << have_;
            for (have_ += bits_; have_ >= 8; have_ -= 8) {
                *at_++ = static_cast<std::uint8_t>(behind_);
                behind_ >>= 8;
            }
        }
        void flush() noexcept {
            if (have_ > 0) *at_ = static_cast<std::uint8_t>(behind_);
        }

      private:
        std::uint8_t* at_;
        unsigned bits_;
        std::uint32_t behind_ = 0;
        unsigned have_ = 0;
    };

    struct page {
        static constexpr std::size_t most_patterns = 256;

        std::vector<std::uint8_t> bytes;
        std::vector<std::uint64_t> patterns{0}; // patterns[0] is the empty mask
        std::unique_ptr<std::uint8_t[]> kinds{new std::uint8_t[words_per_page]()};
        std::unique_ptr<std::uint64_t[]> wide; // masks by word, instead of kinds and patterns
        std::uint32_t used = 0;                // words with states
        std::uint32_t cursor_word = 0;
        std::size_t cursor_byte = 0;

        std::uint64_t mask_of(std::size_t word) const noexcept {
            return wide != nullptr ? wide[word] : patterns[kinds[word]];
        }
        std::size_t offset_of(std::size_t word, unsigned bits) noexcept {
            if (word < cursor_word) cursor_word = 0, cursor_byte = 0;
            for (; cursor_word < word; ++cursor_word)
                cursor_byte += bytes_of(mask_of(cursor_word), bits);
            return cursor_byte;
        }

        // Makes room for, or closes the gap of, a word whose mask changes.
        void resize(std::size_t word, std::uint64_t mask, unsigned bits, std::size_t usual) {
            const std::uint64_t before = mask_of(word);
            if (mask == before) return;
            const auto at = static_cast<std::ptrdiff_t>(offset_of(word, bits));
            const std::size_t had = bytes_of(before, bits), needs = bytes_of(mask, bits);
            set_mask(word, mask); // may throw: before the bytes change
            try {
                if (needs > had) {
                    grow(needs - had, usual);
                    bytes.insert(bytes.begin() + at, needs - had, 0);
                }
            } catch (const std::bad_alloc&) {
                set_mask(word, before); // has a place already
                throw;
            }
            if (needs < had)
                bytes.erase(bytes.begin() + at,
                            bytes.begin() + at + static_cast<std::ptrdiff_t>(had - needs));
            used = used + (mask != 0) - (before != 0);
        }
        // A page mostly has as many states as the one before it. What is reserved again and again in smaller steps is
        // memory that the program's malloc keeps.
        void grow(std::size_t by, std::size_t usual) {
            const std::size_t needs = bytes.size() + by;
            if (needs <= bytes.capacity()) return;
            bytes.reserve(needs <= usual ? usual
                                         : needs + bytes.size() / (usual != 0 ? 1 : 8) + 64);
        }

        void set_mask(std::size_t word, std::uint64_t mask) {
            if (wide != nullptr) {
                wide[word] = mask;
                return;
            }
            std::size_t kind = kind_of(mask);
            if (kind == patterns.size()) {
                if (patterns.size() == most_patterns) forget_unused_patterns();
                if (patterns.size() == most_patterns) {
                    widen();
                    wide[word] = mask;
                    return;
                }
                kind = patterns.size();
                patterns.push_back(mask);
            }
            kinds[word] = static_cast<std::uint8_t>(kind);
        }
        std::size_t kind_of(std::uint64_t mask) const noexcept {
            // Neighbours are mostly alike, and so is what came last.
            if (patterns.back() == mask) return patterns.size() - 1;
            return static_cast<std::size_t>(std::find(patterns.begin(), patterns.end(), mask) -
                                            patterns.begin());
        }
        void forget_unused_patterns() noexcept {
            std::array<bool, most_patterns> in_use{};
            in_use[0] = true;
            for (std::size_t word = 0; word < words_per_page; ++word) in_use[kinds[word]] = true;
            std::array<std::uint8_t, most_patterns> renamed{};
            std::size_t kept = 0;
            for (std::size_t kind = 0; kind < patterns.size(); ++kind) {
                if (!in_use[kind]) continue;
                renamed[kind] = static_cast<std::uint8_t>(kept);
                patterns[kept++] = patterns[kind];
            }
            patterns.resize(kept);
            for (std::size_t word = 0; word < words_per_page; ++word)
                kinds[word] = renamed[kinds[word]];
        }
        void widen() {
            std::unique_ptr<std::uint64_t[]> masks(new std::uint64_t[words_per_page]);
            for (std::size_t word = 0; word < words_per_page; ++word) masks[word] = mask_of(word);
            wide = std::move(masks);
            kinds.reset();
            std::vector<std::uint64_t>().swap(patterns);
        }

        void erase(std::size_t first, std::size_t last, unsigned bits) noexcept {
            while (first < last && mask_of(first) == 0) ++first;
            if (first == last) return;
            const std::size_t begin = offset_of(first, bits);
            std::size_t end = begin;
            for (std::size_t word = first; word < last; ++word) {
                const std::uint64_t mask = mask_of(word);
                if (mask == 0) continue;
                end += bytes_of(mask, bits);
                --used;
                if (wide != nullptr)
                    wide[word] = 0;
                else
                    kinds[word] = 0;
            }
            bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                        bytes.begin() + static_cast<std::ptrdiff_t>(end));
        }

        void trim() noexcept try {
            if (bytes.capacity() - bytes.size() > bytes.size() / 128 + 64) bytes.shrink_to_fit();
        } catch (const std::bad_alloc&) {
            // It stays as large as it is.
        }

        bool validate(unsigned bits) const noexcept {
            std::size_t total = 0, before_cursor = 0, words = 0;
            for (std::size_t word = 0; word < words_per_page; ++word) {
                if (word == cursor_word) before_cursor = total;
                total += bytes_of(mask_of(word), bits);
                words += mask_of(word) != 0;
            }
            return total == bytes.size() && words == used && used != 0 &&
                   (cursor_word >= words_per_page || before_cursor == cursor_byte);
        }
    };

    page* find(std::uintptr_t address) noexcept {
        const std::uintptr_t number = address >> page_shift;
        if (last_ != nullptr && last_number_ == number) return last_;
        const auto found = pages_.find(number);
        if (found == pages_.end()) return nullptr;
        last_number_ = number;
        return last_ = found->second.get();
    }
    page* find_or_make(std::uintptr_t address) {
        if (page* p = find(address); p != nullptr) return p;
        auto made = std::make_unique<page>();
        last_ = nullptr;
        page* p = made.get();
        pages_.emplace(address >> page_shift, std::move(made));
        return p;
    }
    void drop(std::uintptr_t address) noexcept {
        pages_.erase(address >> page_shift);
        last_ = nullptr;
    }

    // `usual`: bytes that a page which has less room may get at once, or else as many more as it has; 0: it is not trimmed
    // soon.
    void store(std::uintptr_t base, std::uint64_t slots, const values& in,
               std::size_t usual) noexcept try {
        if (bits_ == 0) return;
        page* p = slots != 0 ? find_or_make(base) : find(base);
        if (p == nullptr) return;
        p->resize(word_in_page(base), slots, bits_, usual);
        std::uint8_t* at = p->bytes.data() + p->offset_of(word_in_page(base), bits_);
        if (bits_ == 16 && slots != 0 && (slots & (slots + 1)) == 0) { // the first ones
            std::memcpy(at, in.data(), bytes_of(slots, 16));
        } else if (bits_ == 16) {
            for (std::uint64_t left = slots; left != 0; left &= left - 1, at += 2)
                std::memcpy(at, &in[lowest(left)], 2);
        } else {
            bit_writer to(at, bits_);
            for (std::uint64_t left = slots; left != 0; left &= left - 1) to.put(in[lowest(left)]);
            to.flush();
        }
        if (p->used == 0) drop(base);
    } catch (const std::bad_alloc&) {
        drop(base);
    }

    // One slot, in a word that may have others.
    void put(std::uintptr_t slot, std::uint16_t state) noexcept {
        const std::uintptr_t base = slot & ~(word_span - 1);
        const std::uint64_t bit = std::uint64_t{1} << (slot >> 3 & 63);
        const page* p = find(base);
        const std::uint64_t mask = p != nullptr ? p->mask_of(word_in_page(base)) : 0;
        values states;
        load(base, mask, states);
        states[lowest(bit)] = state;
        store(base, mask | bit, states, 0);
    }

    // Forgets the slots in [begin, end).
    void keep_outside(std::uintptr_t begin, std::uintptr_t end) noexcept {
        for (std::uintptr_t base = begin & ~(word_span - 1); base < end;) {
            const page* p = find(base);
            if (p == nullptr) {
                base = page_end(base);
                continue;
            }
            const std::uint64_t mask = p->mask_of(word_in_page(base));
            const std::uint64_t kept = mask & ~mask_of_range(base, begin, end);
            if (kept != mask) {
                values states;
                load(base, kept, states);
                store(base, kept, states, 0);
            }
            base += word_span;
        }
    }

    unsigned bits_;
    std::unordered_map<std::uintptr_t, std::unique_ptr<page>> pages_; // by address >> page_shift
    page* last_ = nullptr;                                            // the page found last
    std::uintptr_t last_number_ = 0;
    std::size_t usual_bytes_ = 0; // of the page that was trimmed last
};

} // namespace obase::soda
