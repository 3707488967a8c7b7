// SPDX-License-Identifier: MIT
//
// The ATC word: the slot of the papers' protocol (OBASE 4.1), which counts the threads that are
// inside an object. Every transition that any thread may make on such a word is a function of this
// file; nothing else in obase stores into one.
//
//    63     62       61 .. 60   59 ........ 55   54 ........ 48   47 ................ 0
//   +------+--------+----------+----------------+----------------+----------------------+
//   | lock | access |   heap   |      CIW       |      ATC       |       address        |
//   +------+--------+----------+----------------+----------------+----------------------+
//
//   address  of the object, 0 for null. The other fields belong to the slot and outlive the object.
//   ATC      active thread count: operations that touched the slot in a counting scope and have not
//            ended. 127 is *sticky*: the number of holders is not known any more, so it is never
//            counted up or down and only the collector sets it back to 0, when no counting scope is
//            open. A 128th thread thus makes the object unmovable for a while; it never carries
//            into CIW.
//   CIW      consecutive windows without an access, saturating at 31.
//   heap     0 NEW, 1 HOT, 2 COLD as of the last visit or move; 3: no visit since the address was
//            put here. The address itself tells the class; the 3 is what makes a slot that was
//            built again at the same place, for an object at the same address, differ from every
//            word of a candidate list.
//   access   dereferenced since the last visit.
//   lock     the mover is copying the object. A thread that increments the count clears it, and
//            that is the veto: the mover commits only over the very word that its lock made.
//
// Internal: programs use guide<T, atc>. Which transition a thread uses when is in
// mobility/atc_thread.hpp and docs/atc.md.
#pragma once

#include <cstdint>

namespace obase::word {

struct atc {
    using bits = std::uint64_t;

    static constexpr unsigned address_bits = 48;
    static constexpr unsigned count_shift = 48;
    static constexpr unsigned count_bits = 7;
    static constexpr unsigned idle_shift = 55;
    static constexpr unsigned idle_bits = 5;
    static constexpr unsigned heap_shift = 60;
    static constexpr unsigned heap_bits = 2;

    static constexpr bits address_mask = (bits{1} << address_bits) - 1;
    static constexpr bits count_one = bits{1} << count_shift;
    static constexpr bits count_mask = ((bits{1} << count_bits) - 1) << count_shift;
    static constexpr bits idle_one = bits{1} << idle_shift;
    static constexpr bits idle_mask = ((bits{1} << idle_bits) - 1) << idle_shift;
    static constexpr bits heap_mask = ((bits{1} << heap_bits) - 1) << heap_shift;
    static constexpr bits access_bit = bits{1} << 62;
    static constexpr bits lock_bit = bits{1} << 63;

    static constexpr unsigned sticky = (1u << count_bits) - 1;         // 127
    static constexpr unsigned idle_saturation = (1u << idle_bits) - 1; // 31
    static constexpr unsigned unvisited_heap = (1u << heap_bits) - 1;  // 3

    static_assert((address_mask ^ count_mask ^ idle_mask ^ heap_mask ^ access_bit ^ lock_bit) ==
                      ~bits{0},
                  "the fields cover the word and are disjoint");
    static_assert((address_mask | count_mask | idle_mask | heap_mask | access_bit | lock_bit) ==
                      ~bits{0},
                  "the fields cover the word");
    static_assert(count_mask + count_one == idle_one && idle_mask + idle_one == bits{1}
                                                                                    << heap_shift,
                  "the fields are neighbours: a count that wrapped would carry into CIW");

    static constexpr bits address(bits word) noexcept { return word & address_mask; }
    static constexpr bool is_null(bits word) noexcept { return address(word) == 0; }
    static constexpr unsigned count(bits word) noexcept {
        return static_cast<unsigned>((word & count_mask) >> count_shift);
    }
    static constexpr bool is_sticky(bits word) noexcept { return count(word) == sticky; }
    static constexpr unsigned inactive_windows(bits word) noexcept {
        return static_cast<unsigned>((word & idle_mask) >> idle_shift);
    }
    static constexpr unsigned heap(bits word) noexcept {
        return static_cast<unsigned>((word & heap_mask) >> heap_shift);
    }
    static constexpr bool is_visited(bits word) noexcept { return heap(word) != unvisited_heap; }
    static constexpr bool is_accessed(bits word) noexcept { return (word & access_bit) != 0; }
    static constexpr bool is_locked(bits word) noexcept { return (word & lock_bit) != 0; }

    // A slot that receives an address: not accessed (construction is no access), not visited.
    static constexpr bits make_born(bits address) noexcept { return heap_mask | address; }
    // Words of objects between slots: born if no thread has touched the object since the last visit, else the plain
    // address. Changing slots is no access, does not undo one, and leaves CIW as it is.
    static constexpr bits entering(bits owned) noexcept {
        const bits born = make_born(address(owned));
        if (is_null(owned)) return born;
        return is_visited(owned) ? born | access_bit : born | (owned & idle_mask);
    }
    static constexpr bits leaving(bits word) noexcept {
        if (is_null(word)) return 0;
        return is_accessed(word) ? address(word) : make_born(address(word)) | (word & idle_mask);
    }
    // Not visited in any slot. One that was, and left with CIW 0, cannot be told from it.
    static constexpr bool is_new(bits word) noexcept {
        return !is_visited(word) && inactive_windows(word) == 0;
    }
    static constexpr bits make_sticky(bits word) noexcept { return word | count_mask; }

    // One more holder. Saturates at `sticky`.
    static constexpr bits counted_in(bits word) noexcept {
        const bits counted = is_sticky(word) ? word : word + count_one;
        return (counted | access_bit) & ~lock_bit;
    }
    // One holder less. A sticky count stays; 0 stays 0.
    static constexpr bits counted_out(bits word) noexcept {
        return count(word) == 0 || is_sticky(word) ? word : word - count_one;
    }

    // The word after a visit: the access bit cleared, CIW up to date, the heap noted. `sweep` also
    // sets ATC to 0: only when no counting scope is open. A window that does not
    // count only tells what it saw untouched, CIW 1 or more, from what it did not.
    static constexpr bits visited(bits word, unsigned heap, bool sweep, bool counts) noexcept {
        bits next = word & ~(access_bit | heap_mask);
        next |= bits{heap} << heap_shift;
        if (sweep) next &= ~count_mask;
        if (is_accessed(word) || is_new(word)) return next & ~idle_mask;
        if (!counts && inactive_windows(word) != 0) return next;
        return inactive_windows(word) == idle_saturation ? next : next + idle_one;
    }

    // The word after a move. CIW stays: a move is not an access.
    static constexpr bits moved(bits locked, bits address, unsigned heap) noexcept {
        return (locked & idle_mask) | (bits{heap} << heap_shift) | address;
    }
};

// What a dereference found.
struct atc_touch {
    atc::bits address; // 0 for null
    bool changed;      // this call wrote the word
};

// any word -> access bit set; null stays as it is. For scopes that do not count: no mover is at
// work while one is open, so a word whose bit is set is used as loaded, without a write (OBASE
// 3.3).
//
// The address is that of the compare-exchange that succeeded or of a load that needed none: another
// thread may replace the object between the two (R5).
//
// Order: acquire, pairs with commit_move() (the bytes at the new address) and swap_object()
// (construction).
template <class Atomic>
atc_touch mark_access(Atomic& slot) noexcept {
    atc::bits seen = slot.load_acquire();
    for (;;) {
        if (atc::is_accessed(seen) || atc::is_null(seen)) return {atc::address(seen), false};
        if (slot.cas_acq_rel(seen, seen | atc::access_bit)) return {atc::address(seen), true};
    }
}

// The address in the slot, 0 for null, as every dereference of a program begins. A word whose access
// bit is set is used as loaded if the scope is silent(); in a counting one the bit says nothing about
// its count. All else goes to touch(slot), which returns the address.
//
// Order: acquire, as mark_access().
template <class Atomic, class Silent, class Touch>
inline atc::bits dereference_atc(Atomic& slot, Silent&& silent, Touch&& touch) noexcept {
    const atc::bits seen = slot.load_acquire(); // pairs with commit_move() and swap_object()
    if (atc::is_accessed(seen) && silent()) [[likely]]
        return atc::address(seen);
    return touch(slot);
}

// any word -> ATC + 1 (saturating), access bit set, lock cleared. The first touch of a slot in a
// counting scope, whether or not the access bit was set: skipping it on that account, as OBASE 3.3
// allows, would leave the mover without a veto. Null is counted as well: the slot is in the TAG.
//
// Order: acquire as above. The release half is for the lock: a mover that finds it gone goes no
// further. Pairs with commit_move().
template <class Atomic>
atc_touch count_in(Atomic& slot) noexcept {
    atc::bits seen = slot.load_acquire();
    while (!slot.cas_acq_rel(seen, atc::counted_in(seen))) {
    }
    return {atc::address(seen), true};
}

// any word -> sticky, access bit set, lock cleared: a touch that will not be counted out.
template <class Atomic>
atc_touch count_in_forever(Atomic& slot) noexcept {
    atc::bits seen = slot.load_acquire();
    while (!slot.cas_acq_rel(seen, atc::make_sticky(atc::counted_in(seen)))) {
    }
    return {atc::address(seen), true};
}

enum class count_out_result {
    counted,     // one holder less
    stays,       // sticky: it is not counted down
    not_counted, // 0: the slot was swept or built anew
};

// any word -> ATC - 1 unless it is 0 or sticky. The end of a counting scope; the caller has made
// sure that the memory is still a slot.
//
// Order: release, pairs with begin_move(): what the holder did to the object happens before its
// copy.
template <class Atomic>
count_out_result count_out(Atomic& slot) noexcept {
    atc::bits seen = slot.load_acquire();
    for (;;) {
        const atc::bits next = atc::counted_out(seen);
        if (next == seen)
            return atc::is_sticky(seen) ? count_out_result::stays : count_out_result::not_counted;
        if (slot.cas_acq_rel(seen, next)) return count_out_result::counted;
    }
}

// seen -> visited(seen). Collector only, inside a visit. False if a thread got in between.
//
// Order: acquire, pairs with count_out(): pins of those who left are read after this.
template <class Atomic>
bool record_visit(Atomic& slot, atc::bits& seen, atc::bits visited) noexcept {
    return slot.cas_acq_rel(seen, visited);
}

// unlocked(ATC = 0) -> locked. Mover only, inside a visit, in ACTIVE; the first CAS of a migration.
//
// Order: acquire, pairs with count_out().
template <class Atomic>
bool begin_move(Atomic& slot, atc::bits unlocked) noexcept {
    return slot.cas_acq_rel(unlocked, unlocked | atc::lock_bit);
}

// locked -> unlocked, if the lock is still ours. Mover only, inside a visit.
template <class Atomic>
bool cancel_move(Atomic& slot, atc::bits locked) noexcept {
    return slot.cas_acq_rel(locked, locked & ~atc::lock_bit);
}

// locked(source) -> moved(destination). Mover only, inside a visit; the second CAS. `locked` is the
// word that begin_move() wrote. (Algorithm 1 of the slides compares with the word read before the
// lock was set, which is not in the slot any more: it could never commit. OBASE 4.5 is right.)
//
// Order: release, so the copied bytes are visible to a thread that reads the new address.
template <class Atomic>
bool commit_move(Atomic& slot, atc::bits locked, atc::bits moved) noexcept {
    return slot.cas_acq_rel(locked, moved);
}

// any word -> entering(owned); ATC stays, or becomes sticky. Returns leaving(old word); the caller
// now owns the old object. `is_quiet()` says that no thread counts at this moment; it is asked
// after the word was read, each time, so that a word with a count is never taken for a quiet one.
template <class Atomic, class Quiet>
atc::bits swap_object(Atomic& slot, atc::bits owned, Quiet&& is_quiet) noexcept {
    atc::bits seen = slot.load_acquire();
    for (;;) {
        atc::bits next = atc::entering(owned) | (seen & atc::count_mask);
        if (!is_quiet()) next = atc::make_sticky(next);
        if (slot.cas_acq_rel(seen, next)) return atc::leaving(seen);
    }
}

// any word with address `expected` -> entering(owned), as swap_object(); the other fields take no
// part in the comparison. False: the address was another one at some moment; the slot was not
// touched, so the caller gets no address from here (R5).
template <class Atomic, class Quiet>
bool swap_object_if(Atomic& slot, atc::bits expected, atc::bits owned, Quiet&& is_quiet) noexcept {
    atc::bits seen = slot.load_acquire();
    while (atc::address(seen) == expected) {
        atc::bits next = atc::entering(owned) | (seen & atc::count_mask);
        if (!is_quiet()) next = atc::make_sticky(next);
        if (slot.cas_acq_rel(seen, next)) return true;
    }
    return false;
}

} // namespace obase::word
