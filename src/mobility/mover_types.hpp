// SPDX-License-Identifier: MIT
//
// What a mover tells the collector about slots and moves. Common to the arming and the ATC
// protocol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::mobility {

// Of the window in which a visit is. One that does not count (an early one) makes no object older where words
// count windows (ATC). Where they have stamps (arming) it is a number like any other.
struct window_id {
    constexpr window_id(std::uint64_t which, bool is_counted = true) noexcept
        : number(which), counts(is_counted) {}
    std::uint64_t number;
    bool counts;
};

// What a visit saw of one slot.
struct observation {
    std::uint64_t address = 0; // 0: null or foreign, nothing to do
    bool foreign = false;      // an object outside of the managed ranges (R17)
    bool touched = false;      // since the last visit
    bool newborn = false;      // first visit, and no thread touched it before
    bool resettled = false; // first visit of this slot; the object was untouched in an earlier one
    bool movable = false;   // may become a candidate
    unsigned inactive_windows = 0; // since it was armed, in whichever slot, or as CIW has counted
    std::uint64_t word = 0;        // the exact word a candidate must still have
};

enum class move_result {
    moved,
    vetoed,    // a thread touched, replaced or destroyed the slot
    pinned,    // R9
    no_room,   // the target class is full, or its file, or the system
    not_alive, // the heap does not know the object any more: freed since the visit
};

struct moved_object {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::size_t bytes = 0;
    std::size_t nested_slots = 0; // slots inside the object, which moved with it
};

} // namespace obase::mobility
