// SPDX-License-Identifier: MIT
//
// forwarding_table: where the objects of one open run are now. A word of obase/word/arming.hpp for each block that
// was live when the run was opened.
//
//     auto* table = forwarding_table<P>::make(memory, block_size, blocks, live, may_be_copied);
//     auto* word = table->word_of(offset_in_run);       // null: no object that was live then
//     table->destroy(memory);
//
// Two forms. *Indexed*: a bit per block says which have words, and a count per 64 blocks leads to them: 8 bytes for
// each object, 1.25 bits for each block. *Listed*, where few survive: the sorted numbers of their blocks, 10 bytes for
// each. The smaller one is made: a single object of 16 bytes costs 10 bytes and not the 640 of 4096 blocks.
//
// The words are the only thing in it that changes. Blocks that were not live at the opening have no word, and none is
// allocated while the run is open; so a home in such a block names no object.
//
// Threads: word_of() by any thread inside a scope that began when the table was published, everything else by the
// collector. Cost of word_of(): a multiplication for the block's number, two loads, a count of bits.
#pragma once

#include <obase/word/arming.hpp>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <new>

#include "handles/table_memory.hpp"
#include "heap/size_class.hpp"

namespace obase::handles {

inline constexpr std::size_t least_block = 8;
inline constexpr std::size_t most_blocks = heap::run_bytes / least_block;
using block_set = std::bitset<most_blocks>; // of one run, by number

template <class P>
class forwarding_table {
  public:
    using word = typename P::template atomic<std::uint64_t>;

    // Of `live` the first `blocks`. Each word is null: set_word() of all comes before other threads see the table.
    // nullptr: no memory. Preconditions: block_size is a class's, blocks * block_size <= 64 KiB.
    static forwarding_table* make(table_memory& memory, std::size_t block_size, std::size_t blocks,
                                  const block_set& live, bool may_be_copied) noexcept {
        std::size_t count = 0;
        for (std::size_t i = 0; i < blocks; ++i)
            if (live.test(i)) ++count;
        const std::size_t groups = (blocks + 63) / 64;
        const bool indexed = groups * group_bytes <= count * sizeof(std::uint16_t);
        const std::size_t index_bytes =
            heap::round_up(indexed ? groups * group_bytes : count * sizeof(std::uint16_t), 8);
        const std::size_t bytes = sizeof(forwarding_table) + index_bytes + count * sizeof(word);
        static_assert(sizeof(forwarding_table) +
                          most_blocks * (sizeof(word) + sizeof(std::uint16_t)) <=
                      table_memory::most_bytes);
        void* const place = memory.allocate(bytes, may_be_copied);
        if (place == nullptr) return nullptr;
        auto* const table = ::new (place)
            forwarding_table(block_size, count, indexed ? groups : 0, index_bytes, bytes);
        table->may_be_copied_ = may_be_copied;
        table->fill_index(blocks, live);
        for (std::size_t i = 0; i < count; ++i) ::new (&table->words()[i]) word();
        return table;
    }
    void destroy(table_memory& memory) noexcept {
        for (std::size_t i = 0; i < count_; ++i) words()[i].~word();
        const std::size_t bytes = bytes_;
        const bool may_be_copied = may_be_copied_;
        this->~forwarding_table();
        memory.free(this, bytes, may_be_copied);
    }
    forwarding_table(const forwarding_table&) = delete;
    forwarding_table& operator=(const forwarding_table&) = delete;

    std::size_t bytes() const noexcept { return bytes_; }
    bool lies_between_gaps(const table_memory& memory) const noexcept {
        return may_be_copied_ && memory.is_sparse(this);
    }
    std::size_t size() const noexcept { return count_; } // words
    std::size_t block_size() const noexcept { return block_size_; }

    std::size_t block_of(std::size_t offset) const noexcept {
        return offset * reciprocal_ >> reciprocal_bits;
    }
    std::size_t begin_of(std::size_t block) const noexcept { return block * block_size_; }

    // Of the block around the byte at the offset from the run's beginning, which is below 64 KiB.
    word* word_of(std::size_t offset) noexcept { return word_of_block<>(block_of(offset)); }
    // The same by the block's number. `popcnt`: this processor has the instruction.
    template <bool popcnt = false>
    word* word_of_block(std::size_t block) noexcept {
        std::size_t at = 0;
        if (groups_ != 0) {
            const std::size_t number = block / 64;
            if (number >= groups_) return nullptr; // behind the last block
            const std::uint64_t bits = bits_of(number);
            const std::uint64_t bit = std::uint64_t{1} << (block % 64);
            if ((bits & bit) == 0) return nullptr;
            at = before(number) + count_of<popcnt>(bits & (bit - 1));
        } else {
            // All before `at` are smaller, and the block is among the next `left`, if it is there.
            for (std::size_t left = count_; left > 1;) {
                const std::size_t half = left / 2;
                if (listed()[at + half - 1] < block) at += half;
                left -= half;
            }
            if (count_ == 0 || listed()[at] != block) return nullptr;
        }
        return &words()[at];
    }

    // visit(word, block) in the order of addresses.
    template <class Visit>
    void for_each(Visit&& visit) {
        if (groups_ == 0) {
            for (std::size_t i = 0; i < count_; ++i) visit(words()[i], std::size_t{listed()[i]});
            return;
        }
        std::size_t at = 0;
        for (std::size_t g = 0; g < groups_; ++g)
            for (std::uint64_t left = bits_of(g); left != 0; left &= left - 1)
                visit(words()[at++], g * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }

    // Objects that are not freed. The run's lock is held.
    std::size_t live() const noexcept { return live_.load_relaxed(); }
    void one_less() noexcept { live_.store_relaxed(live_.load_relaxed() - 1); }

    // Slow translations since the collector last asked, about: it counts without a read-modify-write. Returns how many.
    std::uint32_t note_use() noexcept {
        const std::uint32_t now = uses_.load_relaxed() + 1;
        uses_.store_relaxed(now);
        return now;
    }
    // Likewise, but not the last one of each so many, a power of two: false.
    bool note_use_but_each(std::uint32_t many) noexcept {
        const std::uint32_t now = uses_.load_relaxed() + 1;
        if (now % many == 0) return false;
        uses_.store_relaxed(now);
        return true;
    }
    // Whether the collector wants to hear of so many; asked of multiples of homes::uses_timed only.
    bool tells(std::uint32_t uses) const noexcept { return (uses & tell_at_.load_relaxed()) == 0; }
    // A power of two; 0: never, which is so at first.
    void tell_each(std::uint32_t uses) noexcept { tell_at_.store_relaxed(uses - 1); }
    std::uint32_t uses() const noexcept { return uses_.load_relaxed(); }
    void forget_uses() noexcept { uses_.store_relaxed(0); }

    // The run's memory has gone, or is about to. Written by the collector.
    bool is_taken() const noexcept { return taken_.load_seq_cst() != 0; }
    void set_taken(bool now) noexcept { taken_.store_seq_cst(now ? 1 : 0); }

    // The words, for who keeps something by their addresses.
    const word* begin() const noexcept {
        return reinterpret_cast<const word*>(reinterpret_cast<const char*>(this + 1) +
                                             index_bytes_);
    }
    const word* end() const noexcept { return begin() + count_; }
    // The collector's: looks at the words since the run was opened.
    std::uint32_t looks = 0;

  private:
    // std::popcount would be a call where the processor need not have the instruction.
    template <bool popcnt>
    static std::size_t count_of(std::uint64_t bits) noexcept {
        if constexpr (popcnt) return static_cast<std::size_t>(std::popcount(bits));
        bits -= bits >> 1 & 0x5555'5555'5555'5555;
        bits = (bits & 0x3333'3333'3333'3333) + (bits >> 2 & 0x3333'3333'3333'3333);
        bits = (bits + (bits >> 4)) & 0x0F0F'0F0F'0F0F'0F0F;
        return bits * 0x0101'0101'0101'0101 >> 56;
    }
    // Per 64 blocks: their bits, and how many words the blocks before them have.
    static constexpr std::size_t group_bytes = sizeof(std::uint64_t) + sizeof(std::uint16_t);
    static constexpr unsigned reciprocal_bits = 32;

    forwarding_table(std::size_t block_size, std::size_t count, std::size_t groups,
                     std::size_t index_bytes, std::size_t bytes) noexcept
        : reciprocal_(((std::uint64_t{1} << reciprocal_bits) + block_size - 1) / block_size),
          block_size_(static_cast<std::uint32_t>(block_size)),
          count_(static_cast<std::uint16_t>(count)), groups_(static_cast<std::uint16_t>(groups)),
          index_bytes_(static_cast<std::uint32_t>(index_bytes)),
          bytes_(static_cast<std::uint32_t>(bytes)) {
        live_.store_relaxed(static_cast<std::uint32_t>(count));
        tell_at_.store_relaxed(~std::uint32_t{0});
    }
    ~forwarding_table() = default;

    void fill_index(std::size_t blocks, const block_set& live) noexcept {
        std::size_t at = 0;
        if (groups_ == 0) {
            for (std::size_t i = 0; i < blocks; ++i)
                if (live.test(i)) listed()[at++] = static_cast<std::uint16_t>(i);
            return;
        }
        for (std::size_t g = 0; g < groups_; ++g) {
            bits_of(g) = 0;
            before(g) = static_cast<std::uint16_t>(at);
            for (std::size_t i = g * 64; i < std::min(blocks, g * 64 + 64); ++i)
                if (live.test(i)) bits_of(g) |= std::uint64_t{1} << (i % 64);
            at += static_cast<std::size_t>(std::popcount(bits_of(g)));
        }
    }
    char* behind() noexcept { return reinterpret_cast<char*>(this + 1); }
    std::uint64_t& bits_of(std::size_t group) noexcept {
        return reinterpret_cast<std::uint64_t*>(behind())[group];
    }
    std::uint16_t& before(std::size_t group) noexcept {
        return reinterpret_cast<std::uint16_t*>(behind() + groups_ * sizeof(std::uint64_t))[group];
    }
    std::uint16_t* listed() noexcept { return reinterpret_cast<std::uint16_t*>(behind()); }
    word* words() noexcept { return reinterpret_cast<word*>(behind() + index_bytes_); }

    // offset / block_size for an offset below 2^16, exactly: the reciprocal is at most 1 too large, and so the
    // product by less than 2^16 of 2^32, which is below 1 / block_size.
    std::uint64_t reciprocal_;
    std::uint32_t block_size_;
    std::uint16_t count_;
    std::uint16_t groups_; // 0: listed
    typename P::template atomic<std::uint32_t> uses_;
    typename P::template atomic<std::uint32_t> tell_at_;
    typename P::template atomic<std::uint32_t> taken_;
    typename P::template atomic<std::uint32_t> live_;
    std::uint32_t index_bytes_;
    std::uint32_t bytes_;
    bool may_be_copied_ = false;
};

} // namespace obase::handles
