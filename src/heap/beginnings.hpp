// SPDX-License-Identifier: MIT
//
// beginnings: where the objects of a dense run begin. All there is per object in the dense classes: an
// object's size is the distance to the next beginning, or to the run's fill mark.
//
// In one of two forms, which the run's size of objects decides:
//   a bit per `unit` bytes      units are a granule for small objects, 1/64 of the memory, or a large_granule in
//                               long runs
//   a byte per `place` bytes    for objects that are no smaller than a place, so at most one begins in each: 0, or
//                               which granule of the place it is, + 1. 1/512 of the memory, of which the bits
//                               would take 1/64, hardly any of them set. A *gap* may begin there instead: it ends
//                               the object before it, as a beginning does, and is none itself.
//
// Threads: set(), set_gap() and clear() are the collector's; test() and next() for any thread. set() and set_gap() release,
// next() and test() acquire: what was written before a beginning was set is seen by who finds it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.hpp"

namespace obase::heap {

template <class P>
class beginnings {
  public:
    using word = typename P::template atomic<std::uint64_t>;
    using byte = typename P::template atomic<std::uint8_t>;

    static constexpr std::size_t place = 512;                // bytes
    static constexpr std::size_t granules = place / granule; // a power of two
    static_assert(2 * granules < 256);

    beginnings(word* bits, std::size_t unit) noexcept // a power of two
        : bits_(bits), shift_(static_cast<unsigned>(std::countr_zero(unit))) {}
    explicit beginnings(byte* places) noexcept : beginnings(nullptr, granule) { places_ = places; }

    bool test(std::size_t offset) const noexcept {
        if ((offset >> shift_) << shift_ != offset) return false;
        if (places_ != nullptr)
            return places_[offset / place].load_acquire() == 1 + offset % place / granule;
        const std::size_t at = offset >> shift_;
        return (bits_[at / 64].load_acquire() >> (at % 64) & 1U) != 0;
    }

    // The first, or the first gap, in (after, limit); limit when there is none.
    std::size_t next(std::size_t after, std::size_t limit) const noexcept {
        return places_ != nullptr ? next_place(after, limit) : next_bit(after, limit);
    }

    // How many there are, gaps not counted. Precondition: none lies at `limit` or behind.
    std::size_t count(std::size_t limit) const noexcept {
        std::size_t all = 0;
        if (places_ != nullptr) {
            for (std::size_t at = 0; at * place < limit; ++at)
                all += places_[at].load_relaxed() - std::size_t{1} < granules;
            return all;
        }
        for (std::size_t word_at = 0; word_at * 64 << shift_ < limit; ++word_at)
            all += static_cast<std::size_t>(std::popcount(bits_[word_at].load_relaxed()));
        return all;
    }

    // Only one thread writes, so no read-modify-write is needed.
    void set(std::size_t offset) const noexcept {
        if (places_ != nullptr) {
            places_[offset / place].store_release(
                static_cast<std::uint8_t>(1 + offset % place / granule));
            return;
        }
        const std::size_t at = offset >> shift_;
        word& of = bits_[at / 64];
        of.store_release(of.load_relaxed() | std::uint64_t{1} << (at % 64));
    }
    // Precondition: places, and none that is to stay begins in the same one.
    void set_gap(std::size_t offset) const noexcept {
        places_[offset / place].store_release(
            static_cast<std::uint8_t>(1 + granules + offset % place / granule));
    }
    void clear(std::size_t offset) const noexcept {
        if (places_ != nullptr) {
            places_[offset / place].store_relaxed(0);
            return;
        }
        const std::size_t at = offset >> shift_;
        bits_[at / 64].fetch_and_relaxed(~(std::uint64_t{1} << (at % 64)));
    }

  private:
    std::size_t next_bit(std::size_t after, std::size_t limit) const noexcept {
        const std::size_t end = limit >> shift_;
        for (std::size_t at = (after >> shift_) + 1; at < end;) {
            const std::uint64_t found = bits_[at / 64].load_acquire() >> (at % 64);
            if (found != 0) {
                at += static_cast<unsigned>(std::countr_zero(found));
                return at < end ? at << shift_ : limit;
            }
            at = (at / 64 + 1) * 64;
        }
        return limit;
    }
    std::size_t next_place(std::size_t after, std::size_t limit) const noexcept {
        for (std::size_t at = after / place; at * place < limit; ++at) {
            const std::size_t there = places_[at].load_acquire();
            if (there == 0) continue;
            const std::size_t offset = at * place + (there - 1) % granules * granule;
            if (offset > after) return offset < limit ? offset : limit;
        }
        return limit;
    }

    word* bits_ = nullptr;
    byte* places_ = nullptr;
    unsigned shift_; // of a unit
};

} // namespace obase::heap
