// SPDX-License-Identifier: MIT
//
// The result of runtime::drain().
#pragma once

#include <cstdint>

namespace obase {

// Why drain() returned. Every value but `done` leaves objects behind. The numbers are those of
// obase_drain().
enum class drain_end {
    done = 0,                  // everything retired before the call is destroyed
    in_scope = 1,              // the caller is inside a scope: nothing was tried
    in_destructor = 2,         // a destructor of a retired object called: nothing was tried
    scope_open = 3,            // a scope of another thread stayed open
    pinned = 4,                // a pin names what is left
    destructor_running = 5,    // another thread is in a destructor of a retired object
    retiring = 6,              // destructors retired more and more objects
    no_membarrier = 7,         // membarrier fails at the moment
    no_memory = 8,             // none for the list of pins
    thread_without_record = 9, // a thread had no memory for its record: nothing is freed any more
};

struct drain_result {
    drain_end why;
    std::uint64_t left; // retired and not destroyed; other threads' since the call included
};

} // namespace obase
