// SPDX-License-Identifier: MIT
//
// What calls.S saves of the processor besides general registers: x87, SSE, AVX and AVX-512. Tiles of AMX are not used by
// the runtime, nor by what it calls.
#include "handles/native.hpp"

#include <cpuid.h>

#include <algorithm>
#include <cstdint>

// Of xsave: the size of its area, a multiple of 64, 0 where there is no xsave; and which parts.
extern "C" {
std::uint64_t obase_handles_state_bytes = 0;
std::uint32_t obase_handles_state_parts = 0;
}

namespace obase::handles {

namespace {

constexpr unsigned parts_leaf = 0xD;
constexpr unsigned first_extended_part = 2;
constexpr unsigned last_part = 7;
constexpr std::uint32_t parts_saved = 0b1110'0111;
constexpr std::uint32_t legacy_bytes = 512 + 64; // x87, SSE and the header

std::uint32_t enabled_parts() noexcept {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

} // namespace

void learn_vector_state() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return;
    const std::uint32_t parts = enabled_parts() & parts_saved;
    std::uint32_t bytes = legacy_bytes;
    for (unsigned part = first_extended_part; part <= last_part; ++part) {
        if ((parts >> part & 1) == 0) continue;
        if (__get_cpuid_count(parts_leaf, part, &a, &b, &c, &d) == 0) return;
        bytes = std::max(bytes, a + b); // its size and its place
    }
    obase_handles_state_parts = parts;
    obase_handles_state_bytes = heap::round_up(bytes, 64);
}

} // namespace obase::handles
