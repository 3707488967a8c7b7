// SPDX-License-Identifier: MIT
//
// activity_index: the papers' TAI, "a small array indexed by thread-ID hash" (OBASE 4.5).
//
// The storage of the threads' records and of what the ATC protocol keeps per thread. The hash only
// says where the search for a free place begins: a place belongs to one thread at a time, a thread
// whose place is taken goes on to the next, and when the array is full, to a chain of places made
// on demand. (In the papers two threads with the same hash would share a slot: the exit of one
// clears it, and the collector takes the other, which is still inside, to be outside.)
//
// Places are never freed or moved (R1): the collector and destroyers read them at any time. It
// reaches them through the registry, into which a place is entered once, when it is first claimed.
//
// Protocols without ATC need only scope_registry.
//
// Threads: any. Lock-free. All zero bytes are an empty index.
#pragma once

#include "mobility/scope_registry.hpp"

#include <cstddef>
#include <cstdint>

namespace obase::mobility {

// Entry: default-constructible from zero bytes, with a `thread_record<P> record` and a `bind()`
// which is called once before another thread can see the record.
template <class P, class Entry, std::size_t Places>
class activity_index {
  public:
    static constexpr std::size_t places = Places;

    struct place : Entry {
        bool entered = false;  // in the registry; written by the thread that has taken the place
        place* next = nullptr; // in the chain; constant once it is there
    };

    constexpr activity_index() noexcept = default;
    activity_index(const activity_index&) = delete;
    activity_index& operator=(const activity_index&) = delete;

    // A place for a thread, its own until scope_registry::release(). `make_place()` returns a new
    // one that will never be freed, or null; it is called only when all others are taken. Null when
    // it returns null.
    template <class MakePlace>
    Entry* claim(scope_registry<P>& registry, std::uint32_t thread_id,
                 MakePlace&& make_place) noexcept {
        const std::size_t home = home_of(thread_id);
        for (std::size_t i = 0; i < Places; ++i) {
            place& p = array_[(home + i) % Places];
            if (take(p)) return &enter(p, registry, thread_id);
        }
        for (place* p = chain_.load_acquire(); p != nullptr; p = p->next)
            if (take(*p)) return &enter(*p, registry, thread_id);
        place* made = make_place();
        if (made == nullptr) return nullptr;
        made->record.in_use.store_relaxed(1);
        place* head = chain_.load_acquire();
        do {
            made->next = head;
        } while (!chain_.cas_acq_rel(head, made));
        return &enter(*made, registry, thread_id);
    }

    // Where the search for this thread's place begins.
    static std::size_t home_of(std::uint32_t thread_id) noexcept {
        return (thread_id * std::uint64_t{0x9e3779b97f4a7c15} >> 32) % Places;
    }

  private:
    static bool take(place& p) noexcept {
        std::uint32_t unused = 0; // pairs with scope_registry::release()
        return p.record.in_use.load_relaxed() == 0 && p.record.in_use.cas_acq_rel(unused, 1);
    }

    static Entry& enter(place& p, scope_registry<P>& registry, std::uint32_t thread_id) noexcept {
        if (!p.entered) {
            p.entered = true;
            p.bind();
            registry.add(p.record, thread_id);
        } else {
            p.record.thread_id.store_relaxed(thread_id);
        }
        return p;
    }

    place array_[Places];
    typename P::template atomic<place*> chain_;
};

} // namespace obase::mobility
