// SPDX-License-Identifier: MIT
//
// lot: draws some of many objects, the same whenever it is asked in a window, and others in the next.
//
//     if (drawn(lot_of(place, window), share)) ...
//
// `place`: an address over its alignment, or any number of which no two objects have the same.
#pragma once

#include <cstdint>

namespace obase::policy {

constexpr std::uint32_t lot_of(std::uintptr_t place, std::uint64_t turn) noexcept {
    return (static_cast<std::uint32_t>(place) + static_cast<std::uint32_t>(turn) * 0x85ebca6bu) *
           0x9e3779b1u;
}
constexpr bool drawn(std::uint32_t lot, double share) noexcept { return lot < share * 0x1p32; }

} // namespace obase::policy
