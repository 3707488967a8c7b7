// SPDX-License-Identifier: MIT
//
// arenas: where the objects of an audited program live, so that a use of an address that is no longer
// an object's faults where it happens.
//
// Objects lie one behind the other in arenas of 64 KiB (one that needs more than half of that has arenas of
// its own). An arena is filled once. When every object of it has moved away or was freed it is *dead*: its
// pages become inaccessible, and what is known of its objects is kept for as long as it is among the
// youngest `quarantine` dead ones. Arenas are taken from the address range in a round, so an address is used
// again as late as can be. Neighbours that are dead are one mapping, as are neighbours that are not.
//
// Beside the range lies a table with a record for each 16 bytes: that of an object is at its first byte. A record also
// says, of the two words beneath it, where they became slots.
//
// Invariants: live of an arena == its objects that were neither freed nor moved away; an arena is dead only
// if it is closed; records of a dead arena do not change until they are dropped.
//
// Threads: any; one lock, which is held for a few instructions or a system call. find() takes none: it is
// for the handler of a fault.
#pragma once

#include "heap/class_owner.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"
#include "os/platform.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace obase::audit {

using place = const void*; // an address in the program's code; null: not known

enum class life : std::uint8_t {
    none,    // no object begins here
    live,    //
    retired, // freed by the program, and waiting until no operation can hold it
    freed,   //
    moved,   // it lives elsewhere
};

inline constexpr std::size_t grain = 16; // objects begin at its multiples

struct record {
    std::uint32_t grains; // of its size
    life state;
    bool stays; // moving it would hide what was found
    std::uint8_t log2_alignment;
    std::uint8_t moves;      // so far, up to 255
    place allocated;         // the call
    place freed;             // likewise
    place stored;            // the store by which the slot it was last seen in became one
    place operation;         // where the operation began that last touched it
    std::uint64_t elsewhere; // moved: where to
    std::uint64_t slot;      // that it was last seen in
    std::uint32_t seen;      // number of the audit that did
    std::uint32_t round;     // of the audit, in which it moved here
    place slots[2];          // what made slots of the words at offsets 0 and 8; null: none

    std::size_t size() const noexcept { return std::size_t{grains} * grain; }
};

class arenas final : public heap::class_owner {
  public:
    static constexpr std::size_t unit = std::size_t{64} << 10;
    static constexpr std::size_t grain = audit::grain;
    static constexpr std::size_t most_bytes = std::size_t{16} << 30; // of the range that are used
    static constexpr std::size_t quarantine = 1024;                  // dead arenas with records

    // `base`, reserved and never committed by anybody else. False: no address space for the records.
    bool create(char* base, std::size_t bytes) noexcept;

    bool contains(const void* address) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(address) - base_) < bytes_;
    }
    // Null: no room, or the alignment is larger than a page.
    void* allocate(std::size_t bytes, std::size_t alignment, place caller) noexcept;
    // One that nobody but the caller has seen.
    void undo(void* object) noexcept;
    // An object begins at `object` and is live or retired.
    std::size_t size_of(const void* object) const noexcept override;
    void free(void* object) noexcept override { end(object, life::freed, 0); }
    void moved_away(void* object, void* to) noexcept {
        end(object, life::moved, reinterpret_cast<std::uint64_t>(to));
    }
    // Between the two calls what dies stays readable, and its records stay: the auditor copies meanwhile, and who frees by
    // an owner waits for nobody.
    void keep_dead() noexcept;
    void bury_dead() noexcept;
    // From now on allocations go to a fresh arena, so that what lives now can all move out.
    void close() noexcept;

    // The record of what begins there, or of nothing. Precondition: contains(address).
    record& at(const void* address) const noexcept {
        return records_[static_cast<std::size_t>(static_cast<const char*>(address) - base_) /
                        grain];
    }
    // Where the object of the record lives, or lived, since it moved. Null if the record was dropped meanwhile.
    const void* moved_to(const record& old) const noexcept {
        const auto* object = reinterpret_cast<const void*>(old.elsewhere); // read once
        return contains(object) ? object : nullptr;
    }
    // The object, of any state, that has or had the address; null if none is known. Async-signal-safe.
    record* find(const void* address, const char** begin) const noexcept;

    // Where the slot became one; null if it lies elsewhere.
    place* slot_place(const void* slot) const noexcept {
        if (!contains(slot)) return nullptr;
        return &at(slot).slots[reinterpret_cast<std::uintptr_t>(slot) / 8 % 2];
    }

    std::size_t dead() const noexcept { return dead_; }
    std::size_t unprotected() const noexcept { return unprotected_; }

    // Where the range of memory that is the audit's own and has the address ends; 0: none has it. For those who search
    // for addresses.
    std::uintptr_t own_end(std::uintptr_t address) const noexcept {
        const auto in = [=](const void* range, std::size_t bytes) {
            const auto begin = reinterpret_cast<std::uintptr_t>(range);
            return address - begin < bytes ? begin + bytes : 0;
        };
        const std::uintptr_t end = in(base_, bytes_);
        return end != 0 ? end : std::max(in(records_, record_bytes_), in(arenas_, arena_bytes_));
    }

    // Around fork, in the forking thread.
    void fork_prepare() noexcept { lock_.lock(); }
    void fork_parent() noexcept { lock_.unlock(); }
    void fork_child() noexcept { ::new (&lock_) std::mutex; }

  private:
    enum class arena_state : std::uint8_t { unused, open, closed, dead };
    struct arena {
        std::uint32_t live;
        std::uint32_t fill;   // bytes; of one that waits for its burial the next such, a number + 1
        std::uint32_t length; // units; 0: belongs to one that begins before
        arena_state state;
    };

    std::size_t number_of(const void* address) const noexcept {
        const std::size_t n =
            static_cast<std::size_t>(static_cast<const char*>(address) - base_) / unit;
        std::size_t head = n;
        while (head > 0 && arenas_[head].length == 0 && arenas_[head].state != arena_state::unused)
            --head;
        return head;
    }
    char* memory_of(std::size_t number) const noexcept { return base_ + number * unit; }
    std::size_t open(std::size_t units) noexcept;
    void close_locked(std::size_t number) noexcept;
    void died(std::size_t number) noexcept;
    void bury(std::size_t number) noexcept;
    void drop(std::size_t number) noexcept;
    void end(void* object, life how, std::uint64_t elsewhere) noexcept;

    static constexpr std::size_t none = ~std::size_t{0};

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    record* records_ = nullptr;
    std::size_t record_bytes_ = 0;
    arena* arenas_ = nullptr;
    std::size_t arena_bytes_ = 0;
    std::size_t count_ = 0;
    std::size_t next_ = 0;
    std::size_t open_ = none;
    std::uint32_t graves_[quarantine] = {}; // a ring of numbers + 1, oldest at dead_ % quarantine
    bool keeping_ = false;
    std::uint32_t kept_ = 0; // the first of a list of numbers + 1
    std::size_t dead_ = 0;
    std::size_t unprotected_ = 0; // dead ones whose pages the system would not protect
    mutable std::mutex lock_;
};

} // namespace obase::audit
