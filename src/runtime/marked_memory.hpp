// SPDX-License-Identifier: MIT
//
// What marked_memory.cpp asks of either protocol, and they tell it.
#pragma once

#include <obase/export.hpp>

#include <cstddef>

namespace obase::runtime_internal {

// Memory that is not managed and need not wait, which the thread is about to free or has begun to: obase_memory_owner()
// says so at once, once. A program's free (compiler/driver/memory_functions.c) would look for slots again.
extern OBASE_TLS constinit thread_local const void* needs_no_wait;

// True if there are slots in memory that is not managed, or have been. Precondition: the protocol's engine exists.
// Threads: any.
bool had_arming_slots(const void* begin, std::size_t bytes) noexcept;
bool had_atc_slots(const void* begin, std::size_t bytes) noexcept;

} // namespace obase::runtime_internal
