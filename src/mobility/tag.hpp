// SPDX-License-Identifier: MIT
//
// base_delta_ptr_set: the set of slots that one operation has touched, which is what the papers'
// TAG (thread-local active scope guard) holds; their BaseDeltaPtrSet (OBASE 4.2).
//
// A set of 8-byte aligned addresses. A group is a base and up to 16 32-bit distances from it, in
// two cache lines; groups are ordered by address and their ranges do not overlap. The slots of one
// operation lie close together, so nearly every insertion is into the group used last: one range
// test and one comparison of 16 numbers. Another group is found by binary search, O(log G).
//
// Differences from the paper, which leaves them open: the distances are in words, so a group spans
// 32 GiB, half of it below its first address; a full group is split in the middle like a leaf of a
// B-tree, or, if the new address lies beyond all others, followed by a new one. Adding a group
// moves the index entries behind it (16 bytes each), which is why there are at most `max_groups`:
// without a bound, an operation that touches N slots at random addresses would move O(N^2) bytes.
//
// Memory: the first 4 groups (64 slots; the papers' operations have 3 to 12) are part of the
// object. More come from Memory::allocate, never from malloc, because an operation may run in a
// signal handler that interrupted malloc; 576 KiB at most. When there are none, or max_groups are
// in use, insert() says so and the set is unchanged; the caller must have another way to protect
// that slot.
//
// Addresses must be multiples of 8. clear() keeps the memory, so a set should be short-lived.
//
// Threads: the owner only. All zero bytes are an empty set, so it may live in zeroed memory.
#pragma once

#include "os/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>

namespace obase::mobility {

// Page-wise memory for sets that outgrow their own.
struct tag_pages {
    static void* allocate(std::size_t bytes) noexcept {
        bytes = round(bytes);
        void* memory = os::reserve(bytes, os::page_size);
        if (memory == nullptr || os::commit(memory, bytes) == 0) return memory;
        os::release(memory, bytes);
        return nullptr;
    }
    static void release(void* memory, std::size_t bytes) noexcept {
        os::release(memory, round(bytes));
    }

  private:
    static std::size_t round(std::size_t bytes) noexcept {
        return (bytes + os::page_size - 1) & ~(os::page_size - 1);
    }
};

template <class Memory = tag_pages>
class base_delta_ptr_set {
  public:
    enum class insert_result { inserted, present, no_room };

    static constexpr unsigned group_slots = 16;
    static constexpr std::uint32_t own_groups = 4;
    static constexpr std::uint32_t max_groups = 4096; // 32Ki to 64Ki slots

    base_delta_ptr_set() = default;
    base_delta_ptr_set(const base_delta_ptr_set&) = delete;
    base_delta_ptr_set& operator=(const base_delta_ptr_set&) = delete;
    ~base_delta_ptr_set() {
        if (more_ != nullptr) Memory::release(more_, bytes_for(capacity_));
    }

    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    std::uint32_t groups() const noexcept { return groups_; }

    void clear() noexcept { size_ = groups_ = last_ = 0; }

    insert_result insert(std::uintptr_t address) noexcept {
        if (groups_ == 0) {
            start_group(0, address);
            return insert_result::inserted;
        }
        std::uint32_t at = last_;
        if (!covers(at, address)) {
            at = position_of(address);
            if (!covers(at, address)) return insert_outside(address);
        }
        last_ = at;
        group& g = group_at(at);
        const std::uint32_t delta = delta_of(g, address);
        if (g.find(delta) != group_slots) return insert_result::present;
        if (g.count == group_slots) return insert_into_full(at, address);
        g.add(delta);
        ++size_;
        return insert_result::inserted;
    }

    bool contains(std::uintptr_t address) const noexcept {
        if (groups_ == 0) return false;
        const std::uint32_t at = covers(last_, address) ? last_ : position_of(address);
        const group& g = group_at(at);
        return covers(at, address) && g.find(delta_of(g, address)) != group_slots;
    }

    // True if it was there.
    bool remove(std::uintptr_t address) noexcept {
        if (groups_ == 0) return false;
        const std::uint32_t at = position_of(address);
        if (!covers(at, address)) return false;
        group& g = group_at(at);
        const unsigned i = g.find(delta_of(g, address));
        if (i == group_slots) return false;
        g.take(i); // a group that becomes empty stays: its range is still its range
        --size_;
        return true;
    }

    // visit(address) for each, group by group in ascending order: addresses of one group are near
    // each other, in no particular order. The set must not change meanwhile.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::uint32_t at = 0; at < groups_; ++at) {
            const group& g = group_at(at);
            for (unsigned i = 0; i < g.count; ++i)
                visit(g.base + std::uintptr_t{g.delta[i]} * granule);
        }
    }

    // Invariants:
    //   lows ascend strictly; every address of group i is in [low(i), low(i + 1));
    //   no address is there twice; size_ is the sum of the groups' counts;
    //   places beyond count hold `none`, which is no delta.
    // O(n log n) for n addresses.
    bool is_valid() const {
        std::size_t sum = 0;
        for (std::uint32_t at = 0; at < groups_; ++at) {
            const group& g = group_at(at);
            if (g.count > group_slots) return false;
            if (at != 0 && entries()[at - 1].low >= entries()[at].low) return false;
            for (unsigned i = 0; i < group_slots; ++i) {
                if ((g.delta[i] == none) != (i >= g.count)) return false;
                if (i >= g.count) continue;
                const std::uintptr_t address = g.base + std::uintptr_t{g.delta[i]} * granule;
                if (!covers(at, address)) return false;
                for (unsigned j = 0; j < i; ++j)
                    if (g.delta[j] == g.delta[i]) return false;
            }
            sum += g.count;
        }
        return sum == size_ && (groups_ == 0 || last_ < groups_);
    }

  private:
    static constexpr std::uintptr_t granule = 8;
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static constexpr std::uintptr_t span = std::uintptr_t{none} * granule; // of a group

    struct alignas(64) group {
        std::uint32_t delta[group_slots]; // a line of its own, compared as a whole
        std::uintptr_t base;
        std::uint32_t count;

        // All 16 at once; SSE2 is part of x86-64.
        unsigned find(std::uint32_t wanted) const noexcept {
            const auto* four = reinterpret_cast<const __m128i*>(delta);
            const __m128i all = _mm_set1_epi32(static_cast<int>(wanted));
            const __m128i low =
                _mm_packs_epi32(_mm_cmpeq_epi32(four[0], all), _mm_cmpeq_epi32(four[1], all));
            const __m128i high =
                _mm_packs_epi32(_mm_cmpeq_epi32(four[2], all), _mm_cmpeq_epi32(four[3], all));
            const auto hit = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
            return hit == 0 ? group_slots : static_cast<unsigned>(__builtin_ctz(hit));
        }
        void reset(std::uintptr_t new_base) noexcept {
            base = new_base;
            count = 0;
            std::fill_n(delta, group_slots, none);
        }
        void add(std::uint32_t d) noexcept { delta[count++] = d; }
        void take(unsigned i) noexcept {
            delta[i] = delta[--count];
            delta[count] = none;
        }
    };
    static_assert(sizeof(group) == 128, "a group is two cache lines");

    struct entry {
        std::uintptr_t low; // nothing below belongs to this group
        std::uint32_t index;
    };

    entry* entries() noexcept {
        return more_ != nullptr ? entries_of(more_, capacity_) : own_entry_;
    }
    const entry* entries() const noexcept {
        return more_ != nullptr ? entries_of(more_, capacity_) : own_entry_;
    }
    group& group_at(std::uint32_t at) noexcept {
        group* all = more_ != nullptr ? static_cast<group*>(more_) : own_group_;
        return all[entries()[at].index];
    }
    const group& group_at(std::uint32_t at) const noexcept {
        const group* all = more_ != nullptr ? static_cast<const group*>(more_) : own_group_;
        return all[entries()[at].index];
    }
    static entry* entries_of(void* memory, std::uint32_t capacity) noexcept {
        return reinterpret_cast<entry*>(static_cast<group*>(memory) + capacity);
    }
    static std::size_t bytes_for(std::uint32_t capacity) noexcept {
        return std::size_t{capacity} * (sizeof(group) + sizeof(entry));
    }
    std::uint32_t capacity() const noexcept { return more_ != nullptr ? capacity_ : own_groups; }

    static std::uint32_t delta_of(const group& g, std::uintptr_t address) noexcept {
        return static_cast<std::uint32_t>((address - g.base) / granule);
    }

    // The address belongs to group `at` if anywhere, and its distance can be written there.
    bool covers(std::uint32_t at, std::uintptr_t address) const noexcept {
        const entry* e = entries() + at;
        return address >= e->low && (at + 1 == groups_ || address < e[1].low) &&
               address - group_at(at).base < span;
    }

    // The last group whose low is not above the address; the first if there is none.
    std::uint32_t position_of(std::uintptr_t address) const noexcept {
        const entry* first = entries();
        const entry* found =
            std::upper_bound(first, first + groups_, address,
                             [](std::uintptr_t a, const entry& e) { return a < e.low; });
        return found == first ? 0 : static_cast<std::uint32_t>(found - first - 1);
    }

    // A new group at position `at` of the order, around the address. Room has been made sure of.
    void start_group(std::uint32_t at, std::uintptr_t address) noexcept {
        // Half of the span below, but not into the range of the group before.
        std::uintptr_t low = address > span / 2 ? address - (span / 2 & ~(granule - 1)) : 0;
        if (at != 0) {
            const group& before = group_at(at - 1);
            const std::uintptr_t end = before.base + span;
            low = std::max(low, std::min((end + granule - 1) & ~(granule - 1), address));
            for (unsigned i = 0; i < before.count; ++i)
                low = std::max(low, before.base + (std::uintptr_t{before.delta[i]} + 1) * granule);
            low = std::max(low, entries()[at - 1].low + granule);
        }
        group& g = open_group(at, low, low);
        g.add(delta_of(g, address));
        ++size_;
        last_ = at;
    }

    group& open_group(std::uint32_t at, std::uintptr_t low, std::uintptr_t base) noexcept {
        entry* e = entries();
        std::memmove(e + at + 1, e + at, (groups_ - at) * sizeof(entry));
        e[at] = {low, groups_};
        ++groups_;
        group& g = group_at(at);
        g.reset(base);
        return g;
    }

    // No group covers the address: it lies below all, or beyond the span of the one before it.
    insert_result insert_outside(std::uintptr_t address) noexcept {
        if (!make_room()) return insert_result::no_room;
        const std::uint32_t before = position_of(address);
        start_group(address < entries()[before].low ? 0 : before + 1, address);
        return insert_result::inserted;
    }

    insert_result insert_into_full(std::uint32_t at, std::uintptr_t address) noexcept {
        if (!make_room()) return insert_result::no_room;
        group& full = group_at(at);
        std::uint32_t sorted[group_slots];
        std::copy_n(full.delta, group_slots, sorted);
        std::sort(sorted, sorted + group_slots);
        const std::uint32_t delta = delta_of(full, address);
        const bool beyond_all = at + 1 == groups_ && delta > sorted[group_slots - 1];
        const unsigned keep = beyond_all ? group_slots : group_slots / 2;
        const std::uint32_t split = beyond_all ? delta : sorted[keep];
        const std::uintptr_t low = full.base + std::uintptr_t{split} * granule;
        // The upper part keeps its base, so every distance that could be written still can.
        group& upper = open_group(at + 1, low, beyond_all ? low : full.base);
        group& lower = group_at(at);
        const std::uintptr_t base = lower.base;
        lower.reset(base);
        for (unsigned i = 0; i < group_slots; ++i) (i < keep ? lower : upper).add(sorted[i]);
        group& target = delta < split ? lower : upper;
        target.add(delta_of(target, address));
        last_ = delta < split ? at : at + 1;
        ++size_;
        return insert_result::inserted;
    }

    // Room for one more group. False: no memory or too many groups, and nothing changed.
    bool make_room() noexcept {
        const std::uint32_t old = capacity();
        if (groups_ < old) return true;
        if (old >= max_groups) return false;
        const std::uint32_t wanted = old * 4;
        void* memory = Memory::allocate(bytes_for(wanted));
        if (memory == nullptr) return false;
        const group* all = more_ != nullptr ? static_cast<const group*>(more_) : own_group_;
        std::memcpy(memory, all, groups_ * sizeof(group));
        std::memcpy(entries_of(memory, wanted), entries(), groups_ * sizeof(entry));
        if (more_ != nullptr) Memory::release(more_, bytes_for(old));
        more_ = memory;
        capacity_ = wanted;
        return true;
    }

    std::uint32_t size_ = 0;
    std::uint32_t groups_ = 0;
    std::uint32_t last_ = 0;     // position of the group used last
    std::uint32_t capacity_ = 0; // groups in more_
    void* more_ = nullptr;       // groups and, behind them, entries; null: the own ones
    entry own_entry_[own_groups];
    group own_group_[own_groups];
};

} // namespace obase::mobility
