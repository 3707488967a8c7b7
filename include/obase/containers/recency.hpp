// SPDX-License-Identifier: MIT
//
// containers::recency: the order in which a cache's entries were last used, for lru_cache.
//
// A doubly linked list in arrays of slots, 24 bytes per entry, addressed by number. It knows
// nothing of keys and values: the value object of an entry has its slot's number, the slot has the
// key's hash. The table is the authority: whichever thread takes a value out of it drops the
// value's slot, exactly once, and a slot is used again only after that.
//
//     unused -> reserved      reserve(): before the value is made
//     reserved -> listed      list(): the value is in the table
//     reserved -> removed     drop(): another thread took the value out before list() was called
//     removed -> unused       list()
//     listed -> leaving       take_oldest(): to be evicted
//     listed, leaving -> unused   drop()
//     reserved -> unused      cancel(): the value never was in the table
//
// One lock, held for a few stores, never over an allocation or a call out of this class. touch() does
// not wait for it: a use that meets another thread's change is not noted.
#pragma once

#include <obase/language.hpp>

#include <obase/errors.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace obase::containers {

template <class Surroundings>
class recency {
  public:
    using number = std::uint32_t;
    struct oldest {
        number slot;
        std::uint64_t hash;
    };

    recency(std::size_t most_entries, std::size_t most_bytes) noexcept
        : most_entries_(most_entries), most_bytes_(most_bytes) {}
    recency(const recency&) = delete;
    recency& operator=(const recency&) = delete;
    ~recency() {
        for (std::size_t k = 0; k < chunks_.size(); ++k)
            if (chunks_[k] != nullptr) Surroundings::deallocate(chunks_[k], chunk_bytes(k));
    }

    // A slot for a value that is about to be made. Throws std::bad_alloc.
    number reserve() {
        for (;;) {
            std::size_t grown;
            {
                const std::lock_guard mine(lock_);
                if (free_ != none) {
                    const number n = free_;
                    free_ = at(n).next;
                    at(n).state = reserved;
                    return n;
                }
                if (used_ < room_) {
                    const number n = used_++;
                    at(n) = {};
                    at(n).state = reserved;
                    return n;
                }
                grown = chunk_count_;
            }
            if (grown == chunks_.size()) errors::out_of_memory();
            // Not under the lock. Another thread may be faster.
            void* memory = Surroundings::allocate_or_null(chunk_bytes(grown));
            if (memory == nullptr) errors::out_of_memory();
            const std::lock_guard mine(lock_);
            if (chunk_count_ == grown) {
                chunks_[chunk_count_++] = static_cast<slot*>(memory);
                room_ += static_cast<number>(chunk_bytes(grown) / sizeof(slot));
            } else {
                Surroundings::deallocate(memory, chunk_bytes(grown));
            }
        }
    }
    // The value has never been in the table.
    void cancel(number n) noexcept {
        const std::lock_guard mine(lock_);
        release(n);
    }
    // The value has been put into the table: the entry is the latest one.
    void list(number n, std::uint64_t hash, std::size_t bytes) noexcept {
        const std::lock_guard mine(lock_);
        if (at(n).state == removed) {
            release(n);
            return;
        }
        at(n).state = listed;
        at(n).hash = hash;
        at(n).bytes = bytes & most_slot_bytes;
        ++entries_;
        bytes_ += at(n).bytes;
        push_front(n);
    }
    // The entry has been used. `n` may by now be the slot of another entry: then that one counts as
    // used.
    void touch(number n) noexcept {
        std::unique_lock mine(lock_, std::try_to_lock);
        if (!mine.owns_lock() || at(n).state != listed || first_ == n) return;
        unlink(n);
        push_front(n);
    }
    // The value has been taken out of the table.
    void drop(number n) noexcept {
        const std::lock_guard mine(lock_);
        switch (at(n).state) {
        case reserved:
            at(n).state = removed;
            return;
        case listed:
            forget(n);
            break;
        default:
            break; // leaving
        }
        release(n);
    }
    // If there are more entries or bytes than may be: the entry that was not used for longest, which
    // no longer counts and is to be taken out of the table.
    std::optional<oldest> take_oldest() noexcept {
        const std::lock_guard mine(lock_);
        if ((entries_ <= most_entries_ && bytes_ <= most_bytes_) || last_ == none)
            return std::nullopt;
        const number n = last_;
        forget(n);
        at(n).state = leaving;
        return oldest{n, at(n).hash};
    }

    std::size_t entries() const noexcept {
        const std::lock_guard mine(lock_);
        return entries_;
    }
    std::size_t bytes() const noexcept {
        const std::lock_guard mine(lock_);
        return bytes_;
    }

  private:
    enum phase : std::uint64_t { unused, reserved, listed, removed, leaving };
    static constexpr number none = UINT32_MAX;
    static constexpr std::uint64_t most_slot_bytes = (std::uint64_t{1} << 60) - 1;
    struct slot {
        std::uint64_t hash = 0;
        std::uint64_t bytes : 60 = 0;
        std::uint64_t state : 4 = unused;
        number previous = none; // the one used next after this
        number next = none;     // the one used last before this; of an unused slot: the next unused
    };
    static_assert(sizeof(slot) == 24);

    // Chunk k has first_slots << k slots, so that slots never move.
    static constexpr number first_slots = 1024;
    static constexpr std::size_t chunk_bytes(std::size_t k) noexcept {
        return (std::size_t{first_slots} << k) * sizeof(slot);
    }
    slot& at(number n) noexcept {
        const std::size_t k = static_cast<std::size_t>(std::bit_width(n / first_slots + 1)) - 1;
        return chunks_[k][n - first_slots * ((number{1} << k) - 1)];
    }

    // All that follow: under the lock.
    void release(number n) noexcept {
        at(n).state = unused;
        at(n).next = free_;
        free_ = n;
    }
    void forget(number n) noexcept {
        unlink(n);
        --entries_;
        bytes_ -= at(n).bytes;
    }
    void unlink(number n) noexcept {
        slot& s = at(n);
        (s.previous == none ? first_ : at(s.previous).next) = s.next;
        (s.next == none ? last_ : at(s.next).previous) = s.previous;
    }
    void push_front(number n) noexcept {
        at(n).previous = none;
        at(n).next = first_;
        (first_ == none ? last_ : at(first_).previous) = n;
        first_ = n;
    }

    const std::size_t most_entries_;
    const std::size_t most_bytes_;
    mutable typename Surroundings::lock lock_;
    std::array<slot*, 21> chunks_{}; // 2^31 slots
    std::size_t chunk_count_ = 0;
    number room_ = 0; // slots in chunks
    number used_ = 0; // slots that have ever been reserved
    number free_ = none;
    number first_ = none; // used last
    number last_ = none;  // used longest ago
    std::size_t entries_ = 0;
    std::size_t bytes_ = 0;
};

} // namespace obase::containers
