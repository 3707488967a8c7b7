// SPDX-License-Identifier: MIT
//
// What happens when a page of a mapped file cannot be read: the disk has an error, or somebody cut the file.
// The kernel sends SIGBUS to the thread that touched the page. There is no value to go on with.
//
//     os::end_on_bus_error(begin, end, "the file under COLD in /mnt/nvme");
//
// From then on a SIGBUS for an address in the range prints one line and ends the process with status 1, without a
// core dump and without running destructors: they would read the same page. All other SIGBUS are as before.
// Does nothing where the program has a handler of its own, and a handler that the program sets later
// takes the place of this one.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace obase::os {

// At most `bus_error_ranges` ranges; further ones are ignored. `what` is copied, up to 200 characters.
inline constexpr unsigned bus_error_ranges = 4;
void end_on_bus_error(std::uintptr_t begin, std::uintptr_t end, const char* what) noexcept;

} // namespace obase::os
