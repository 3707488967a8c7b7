// SPDX-License-Identifier: MIT
//
// policy::reuse_ages: of the 4 KiB pages of one tier, how old they are and at which age they were
// touched again, in one window.
//
// The age of a page is the number of windows in a row in which no object in it was touched, and since the
// mover last wrote to it. It counts whether or not the page is in memory, so the faults that any age limit
// would cost can be read from it:
//
//     pages that are out under the limit T    pages with age > T
//     faults in a window under the limit T    touched with age > T
//
// Filled by backend::window_log, read by policy::fault_price.
#pragma once

#include <array>
#include <cstdint>

namespace obase::policy {

struct reuse_ages {
    static constexpr unsigned oldest = 252; // ages stop here

    std::array<std::uint32_t, oldest + 1> pages{};   // by age at the end of the window
    std::array<std::uint32_t, oldest + 1> exposed{}; // by age at its beginning
    std::array<std::uint32_t, oldest + 1> touched{}; // those of `exposed` that were touched in it

    void clear() noexcept { *this = {}; }
};

} // namespace obase::policy
