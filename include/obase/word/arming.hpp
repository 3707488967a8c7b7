// SPDX-License-Identifier: MIT
//
// The arming word: one 64-bit slot that holds an object's address and, in its top bits, what the
// collector knows about it. Every transition that any thread may make on such a word is a function
// of this file; nothing else in obase stores into one.
//
//    63     62     61 ........ 48   47 ........................... 0
//   +------+------+---------------+---------------------------------+
//   |  U   |  B   |     stamp     |             address             |
//   +------+------+---------------+---------------------------------+
//
//   U: untouched. B: born.
//
//   null    all zero.
//   plain   top 16 bits zero, address nonzero: touched since the collector last looked. The word
//           *is* the address, so a dereference costs one test.
//   armed   bit 63 alone: untouched since the window whose number (mod 2^14) is the stamp.
//   born    bits 63 and 62: not yet seen by the collector in this slot. With stamp 0: constructed, never
//           touched. With stamp 1: touched, and made to report the next dereference by the debug mode.
//           With another stamp: the object has come from an armed slot, and was untouched there since that
//           window (`aged`).
//
// Every word that is not its own address has bit 63, the sign, and no other word has a bit above
// the address. So the test of a dereference is that of a sign: one instruction (`test` and `js` are
// fused) and no second register, where a test of the top 16 bits needs a copy and a shift.
// docs/benchmarks.md has the difference: it decides whether the loads of independent dereferences
// overlap as those of pointers do.
//
// Rights to write (rule R3): only the collector that owns the region writes an armed word, and it
// does so by compare-exchange. A born word is written by the thread that constructs or replaces a
// slot; so a slot that is put elsewhere keeps the age of its object without an armed word that the collector has not
// written. It is a state of its own, rather than an armed word, because of ABA: a candidate list holds
// exact armed words; a slot destroyed and built again at the same place, for an object at the same
// address, must not match one. As no thread but the collector can produce an armed word, it cannot.
//
// Internal: programs use guide<T>.
#pragma once

#include <cstdint>

namespace obase::word {

using bits = std::uint64_t;

struct arming {
    static constexpr unsigned address_bits = 48;
    static constexpr unsigned stamp_bits = 14;
    static constexpr bits address_mask = (bits{1} << address_bits) - 1;
    static constexpr bits untouched_bit = bits{1} << 63;
    static constexpr bits born_bit = bits{1} << 62;
    static constexpr bits stamp_mask = ((bits{1} << stamp_bits) - 1) << address_bits;

    static_assert((address_mask ^ stamp_mask ^ born_bit ^ untouched_bit) == ~bits{0},
                  "the fields cover the word");
    static_assert((address_mask & stamp_mask) == 0 &&
                      (stamp_mask & (born_bit | untouched_bit)) == 0,
                  "the fields are disjoint");

    // Null and plain alike: the word can be used as it stands. The hot path's only test.
    static constexpr bool is_plain(bits word) noexcept {
        return static_cast<std::int64_t>(word) >= 0;
    }
    static constexpr bool is_null(bits word) noexcept { return (word & address_mask) == 0; }
    static constexpr bool is_armed(bits word) noexcept {
        return (word & (untouched_bit | born_bit)) == untouched_bit;
    }
    static constexpr bool is_born(bits word) noexcept { return (word & born_bit) != 0; }
    static constexpr bits address(bits word) noexcept { return word & address_mask; }

    static constexpr bits make_armed(bits address, std::uint64_t window) noexcept {
        return untouched_bit | ((window << address_bits) & stamp_mask) | address;
    }
    static constexpr bits make_born(bits address) noexcept {
        return untouched_bit | born_bit | address;
    }
    static constexpr bits touched_stamp = bits{1} << address_bits;
    static constexpr bits make_born_touched(bits address) noexcept {
        return make_born(address) | touched_stamp;
    }
    // Of an object that leaves an armed slot. Stamps 0 and 1 mean something else in a born word: from those
    // windows it comes out one or two windows older.
    static constexpr bits make_aged(bits armed) noexcept {
        const bits stamp = armed & stamp_mask;
        return born_bit | untouched_bit | address(armed) |
               (stamp > touched_stamp ? stamp : stamp_mask);
    }
    static constexpr bool is_aged(bits word) noexcept {
        return is_born(word) && (word & stamp_mask) > touched_stamp;
    }
    // Dereferenced since the collector last looked.
    static constexpr bool is_touched(bits word) noexcept {
        return is_plain(word) || (is_born(word) && (word & stamp_mask) == touched_stamp);
    }

    // Windows since the word was armed, or since an aged one was, modulo 2^14. The collector re-stamps long before the stamp
    // comes round (restamp_age), and a wrong age could only misplace an object, never endanger it.
    static constexpr unsigned age(bits word, std::uint64_t window) noexcept {
        return static_cast<unsigned>((window - (word >> address_bits)) &
                                     ((bits{1} << stamp_bits) - 1));
    }
    static constexpr unsigned restamp_age = 1u << (stamp_bits - 1);
};

// What a touch found, for statistics and for the debug mode that arms again.
struct touch_result {
    bits address;  // plain address, 0 for null
    bool disarmed; // this call was the first touch
};

// any word -> plain.
//
// The address returned comes from a plain load or from the successful compare-exchange, never from
// the load that preceded it: between the two the collector may have published another address
// (rule R5 and mutant `address_from_the_first_load`). A compare-exchange and not an AND, because an
// optimistic reader may run this on memory that has become something else; a failed or mismatched
// compare-exchange leaves foreign bits alone.
//
// Order: acquire, pairs with the release of publish() (the object's bytes at the new address) and
// of replace() (the object's construction).
template <class Atomic>
touch_result touch(Atomic& slot) noexcept {
    bits seen = slot.load_acquire();
    while (!arming::is_plain(seen)) {
        const bits plain = arming::address(seen);
        if (slot.cas_acq_rel(seen, plain)) return {plain, true};
    }
    return {seen, false};
}

// The address in the slot, 0 for null, as every dereference of a program begins: a load and a test.
// A word that is not plain goes to first_touch(slot), which returns touch()'s address.
//
// Order: acquire, as touch().
template <class Atomic, class FirstTouch>
inline bits dereference(Atomic& slot, FirstTouch&& first_touch) noexcept {
    const bits seen = slot.load_acquire(); // pairs with publish() and replace()
    if (arming::is_plain(seen)) [[likely]]
        return seen;
    return first_touch(slot);
}

// plain -> armed, born -> armed, armed -> armed with a newer stamp. Collector only, inside a visit
// (hazard held, SODA bit seen). False if a thread got in between: then it was touched.
//
// Order: seq_cst, so that every arm precedes the epoch advance of the wait in one total order (R1).
template <class Atomic>
bool arm(Atomic& slot, bits seen, std::uint64_t window) noexcept {
    return slot.cas_seq_cst(seen, arming::make_armed(arming::address(seen), window));
}

// armed(source) -> armed(destination). Collector only, after the wait and the copy, inside a visit
// (R8). Exact-word: any touch, exchange or destruction since the arming has changed the word.
//
// Order: release, so the copied bytes are visible to a thread that reads the new address.
template <class Atomic>
bool publish(Atomic& slot, bits armed_source, bits armed_destination) noexcept {
    return slot.cas_acq_rel(armed_source, armed_destination);
}

// any word -> `plain_or_born`. Returns the old object's word for its next slot, plain or born; the
// caller becomes its owner. One exchange, never a load and a store (R12).
//
// An armed word comes out as born, with its age: changing slots is no access. R12 would store it plain;
// born is as safe, because a word that is not armed cannot be a candidate, and before the collector
// moves the object it arms the new slot and waits for every scope that is open by then, the one of
// the thread that changes slots included. The age is the collector's own stamp, which it reads again when it arms
// the slot, and nothing else follows from it: who was in a scope is asked by the wait, not by the age.
template <class Atomic>
bits replace(Atomic& slot, bits plain_or_born) noexcept {
    const bits old = slot.exchange_acq_rel(plain_or_born);
    if (arming::is_null(old)) return 0;
    return arming::is_armed(old) ? arming::make_aged(old) : old;
}

// any word with address `expected` -> `plain_or_born`; tag bits do not take part in the comparison.
// On failure the slot has been touched and `expected` holds its address, usable in the scope (R5:
// a failed compare-exchange gives out an address only because this path disarms).
template <class Atomic>
bool compare_replace(Atomic& slot, bits& expected, bits plain_or_born) noexcept {
    for (;;) {
        bits seen = slot.load_acquire();
        while (arming::address(seen) == expected) {
            if (slot.cas_acq_rel(seen, plain_or_born)) return true;
        }
        const bits current = touch(slot).address;
        if (current != expected) {
            expected = current;
            return false;
        }
        // Between the two looks the slot came back to `expected`: compare once more.
    }
}

} // namespace obase::word
