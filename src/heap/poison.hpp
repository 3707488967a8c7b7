// SPDX-License-Identifier: MIT
//
// poison(): fills freed bytes with a pattern, so that a use after free shows.
#pragma once

#include <cstddef>
#include <cstring>

namespace obase::heap {

inline constexpr unsigned char poison_byte = 0xDB;

inline void poison(void* begin, std::size_t bytes) noexcept {
    std::memset(begin, poison_byte, bytes);
}

} // namespace obase::heap
