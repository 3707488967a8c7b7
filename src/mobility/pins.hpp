// SPDX-License-Identifier: MIT
//
// Pins: addresses that must stay where they are beyond a scope (R9).
//
// A pin is an entry in its thread's record. It is claimed inside the scope in which the address was
// obtained, so the collector's wait for that scope also makes the entry visible: claim_pin() stores
// the entry before the scope's release store, collect_pins() reads it after the wait's acquire
// load. A thread that obtains the address after the wait has touched the word, and the publish
// fails.
//
// An entry is never copied to another one: a reader that looks at both in the wrong order would see
// neither. Handing a pin over hands over the entry itself.
#pragma once

#include "mobility/scope_registry.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace obase::mobility {

// In the thread's first free entry at or behind the beginning of `chunk`, which is that entry's afterwards.
// Precondition: inside a scope of the chunk's thread, which calls this. `make_chunk()` returns a
// zeroed chunk that will never be freed, or null. Null when there is none: the caller must not go
// on without a pin.
template <class P, class MakeChunk>
typename P::template atomic<std::uint64_t>*
claim_pin_from(pin_chunk<P>*& chunk, std::uint64_t address, MakeChunk&& make_chunk) {
    for (;;) {
        for (auto& entry : chunk->address) {
            // Acquire: pairs with release_pin() in another thread that was handed the pin.
            if (entry.load_acquire() != 0) continue;
            entry.store_release(address); // pairs with collect_pins(), by way of the scope's end
            return &entry;
        }
        pin_chunk<P>* next = chunk->next.load_acquire();
        if (next == nullptr) {
            next = make_chunk();
            if (next == nullptr) return nullptr;
            chunk->next.store_release(next);
        }
        chunk = next;
    }
}
template <class P, class MakeChunk>
typename P::template atomic<std::uint64_t>* claim_pin(thread_record<P>& self, std::uint64_t address,
                                                      MakeChunk&& make_chunk) {
    pin_chunk<P>* chunk = &self.pins;
    return claim_pin_from<P>(chunk, address, make_chunk);
}

// Any thread. What the holder did with the object happens before the collector moves it.
template <class Atomic>
void release_pin(Atomic& entry) noexcept {
    entry.store_release(0);
}

// The addresses pinned now, sorted. After a wait.
template <class P>
void collect_pins(const scope_registry<P>& registry, std::vector<std::uint64_t>& pinned) {
    pinned.clear();
    registry.for_each_record([&](const thread_record<P>& record) {
        for (const pin_chunk<P>* chunk = &record.pins; chunk != nullptr;
             chunk = chunk->next.load_acquire())
            for (const auto& entry : chunk->address)
                if (const std::uint64_t address = entry.load_acquire(); address != 0)
                    pinned.push_back(address);
    });
    std::sort(pinned.begin(), pinned.end());
}

inline bool is_pinned(const std::vector<std::uint64_t>& pinned, std::uint64_t address) noexcept {
    return !pinned.empty() && std::binary_search(pinned.begin(), pinned.end(), address);
}

} // namespace obase::mobility
