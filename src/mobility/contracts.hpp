// SPDX-License-Identifier: MIT
//
// What the parts of mobility ask of each other: `object_heap`, by the movers; `mover`, by the
// collector. Each is asserted where a type is given for one: the engines, and the tests' worlds.
// (What user code asks of a protocol is obase/protocol.hpp.)
//
// A concept checks names and types. What it cannot check stands beside it in words, and the
// obligations (src/mobility/obligations_test.hpp) test it.
#pragma once

#include "heap/scratch_list.hpp"
#include "mobility/mover_types.hpp"
#include "mobility/scope_registry.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace obase::mobility {

// A heap that a mover may take objects from and put objects into.
//   contains(p)        p lies in a managed range. Any address; the answer never changes (R17).
//   info(p)            of an object's first byte, also while its owner frees it: `size` 0 if there is
//                      none any more, else a size that may be copied from there without a fault; `attr`
//                      as allocate_dense() wants it. Read once for each move (R7).
//   allocate_dense(class, size, attr)   the mover thread only; null when there is no room. The memory
//                      holds no slots.
//   undo_allocate_dense(p)   the mover thread only, for what no other thread has seen: the last one
//                      allocated.
//   free(p)            any thread. The memory stays mapped and readable until the mover is past it.
template <class H>
concept object_heap = requires(H& h, const H& seen, const void* address, void* object, unsigned cls,
                               std::size_t size) {
    { seen.contains(address) } noexcept -> std::same_as<bool>;
    { seen.info(address) } noexcept;
    { seen.info(address).size } -> std::convertible_to<std::size_t>;
    { h.allocate_dense(cls, size, seen.info(address).attr) } -> std::same_as<void*>;
    { h.undo_allocate_dense(object) } -> std::same_as<void>;
    { h.free(object) } -> std::same_as<void>;
};

// The collector's half of a protocol. One thread uses it (R13), in this order, for each round:
//   visit(slot, window)        inside a SODA visit of the slot's bitmap word. Says what it saw, and makes
//                              the slot ready: from here on a use of the object shows.
//   add_candidate(slot, seen, target)   in the same visit, if seen.movable. False: the list is full,
//                              nothing has changed. Never allocates, because a hazard is held.
//   wait_for_grace_period(self, give_up)      outside of visits. Done: no scope, and no pin that
//                              move() does not know of, holds a candidate's address unnoticed (R1,
//                              R9). Given up: nothing may move, and candidates() is empty (R6).
//                              `self` is the collector's record or null, which is not waited for
//                              (R14).
//   move(candidate, window, result)   after wait_for_grace_period(). `moved`: the slot has the new
//                              address, no thread has the old one, the source's slots are
//                              unregistered and its memory is free. Anything else: the slot, the
//                              object and SODA are as before.
//   forget()                   the candidates die (R6).
//   finish()                   the round is over.
// reserve(count) is outside of visits; false: no memory.
template <class M>
concept mover =
    requires {
        typename M::platform;
        typename M::heap_type;
        { M::ages_are_stamps } -> std::convertible_to<bool>;
        { M::least_hot_batch } -> std::convertible_to<std::size_t>;
    } && requires(M& m, typename M::slot_atomic& slot, const observation& seen,
                  const typename M::candidate& chosen, const typename M::record* self,
                  bool (&give_up)(const typename M::record&), moved_object& result,
                  std::uint64_t window, std::size_t count, unsigned target) {
        { m.visit(slot, window) } noexcept -> std::same_as<observation>;
        { m.reserve(count) } noexcept -> std::same_as<bool>;
        { m.add_candidate(slot, seen, target) } noexcept -> std::same_as<bool>;
        { m.candidates() } noexcept -> std::same_as<heap::scratch_list<typename M::candidate>&>;
        { m.wait_for_grace_period(self, give_up) } noexcept -> std::same_as<wait_result>;
        { m.move(chosen, window, result) } noexcept -> std::same_as<move_result>;
        { m.forget() } noexcept;
        { m.finish() } noexcept;
        { chosen.slot } -> std::convertible_to<typename M::slot_atomic*>;
        { chosen.word } -> std::convertible_to<std::uint64_t>;
        { chosen.target } -> std::convertible_to<unsigned>;
    };

} // namespace obase::mobility
