// SPDX-License-Identifier: MIT
//
// obase::protocol: what a class must have to stand for a way of moving objects.
//
// Containers take the protocol as a template parameter, so that one source serves `plain` (ordinary
// pointers), `arming` (the default) and `atc` (the papers' protocol):
//
//     template <obase::protocol Protocol = obase::arming>
//     struct node { obase::guide<obase::bytes, Protocol> key; };
//
// A new protocol has these members and keeps these promises; src/mobility/obligations_test.hpp tests
// them. A *slot* is the 64-bit word that holds an object's current address, a *word* its content, an
// *address* that of the object's first byte, null if there is none.
//
//   moves_objects            False: addresses never change, and types need not be movable by bytes.
//   scope                    RAII: the extent of one operation. Nests. enter() and leave() by hand.
//   dereference(slot)        Counts as an access. Precondition: inside a scope. The address is good
//                            until the outermost scope ends (O1).
//   peek(slot)               The address for comparison only. No scope, no access.
//   newborn(object)          The word of an object that no slot has held yet.
//   address(word)            The address in a word that exchange() returned.
//   construct(slot, word)    Makes memory a slot. Before that no other thread may look at it.
//   destroy(slot)            Ends it and returns its object, which is the caller's. From then on the
//                            collector does not touch the memory (O3).
//   forget_range(begin, end) Ends all slots in the range; their objects stay as they are (O3).
//   exchange(slot, word)     One atomic step. Returns the old object's word, the caller's now. No
//                            access.
//   compare_exchange(slot, expected, word)   Precondition: inside a scope. True: the slot held
//                            `expected` and holds the word. False: `expected` is the slot's
//                            address, good as from dereference().
//   allocate, deallocate, usable_size        Memory for objects; null when there is none.
//   pin(object), unpin(entry)                In a scope; keeps the object in place beyond it (O2). Null:
//                            no memory.
//   retire(object, destroy, bytes)           Calls destroy(object) when no scope that is open now, and
//                            no pin, can hold the address.
//
// Threads: all functions by any thread. Errors: none throws.
#pragma once

#include <obase/allocation_options.hpp>
#include <obase/word/arming.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace obase {

template <class P>
concept protocol =
    requires(typename P::slot& slot, const typename P::slot& seen, word::bits word, void* object,
             const void* address, void*& expected, void (*destroy)(void*) noexcept,
             std::size_t bytes, const allocation_options& how, typename P::pin_entry* pinned,
             std::uint64_t outer) {
        typename P::scope;
        { P::name } -> std::convertible_to<const char*>;
        { P::moves_objects } -> std::convertible_to<bool>;
        { P::enter() } noexcept -> std::same_as<std::uint64_t>;
        { P::leave(outer) } noexcept;
        { P::in_scope() } noexcept -> std::same_as<bool>;
        { P::dereference(slot) } noexcept -> std::same_as<void*>;
        { P::peek(seen) } noexcept -> std::same_as<const void*>;
        { P::newborn(object) } noexcept -> std::same_as<word::bits>;
        { P::address(word) } noexcept -> std::same_as<void*>;
        { P::construct(slot, word) } noexcept;
        { P::destroy(slot) } noexcept -> std::same_as<void*>;
        { P::forget_range(object, object) } noexcept;
        { P::exchange(slot, word) } noexcept -> std::same_as<word::bits>;
        { P::compare_exchange(slot, expected, word) } noexcept -> std::same_as<bool>;
        { P::allocate(bytes, how) } noexcept -> std::same_as<void*>;
        { P::deallocate(object) } noexcept;
        { P::usable_size(address) } noexcept -> std::same_as<std::size_t>;
        { P::pin(object) } noexcept -> std::same_as<typename P::pin_entry*>;
        { P::unpin(pinned) } noexcept;
        { P::retire(object, destroy, bytes) } noexcept;
        requires sizeof(typename P::slot) == sizeof(void*);
    };

} // namespace obase
