// SPDX-License-Identifier: MIT
//
// Which pages the processor really touched, by the accessed bits of the page tables: cleared by
// /proc/self/clear_refs, read back as "Referenced" of /proc/self/smaps. The kernel's own view of
// what page utilization is about, and a witness that knows nothing of objects.
//
// Preconditions: no huge pages, whose one accessed bit stands for 512 small pages; no other thread
// touches memory that is not to be counted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace obase::tools {

// Clears the accessed bits of the whole process. False: the kernel does not allow it.
bool clear_page_touches();

// Bytes touched since, in the mappings that `wanted(begin, end)` chooses. Nothing if the kernel
// does not tell.
std::optional<std::uint64_t>
touched_page_bytes(const std::function<bool(std::uintptr_t, std::uintptr_t)>& wanted);

} // namespace obase::tools
