// SPDX-License-Identifier: MIT
//
// How an entry begins, which is how an indirect call knows one:
//
//     0f 1f 84 00 'o' 'b' 'h' '1'        nopl 0x3168626f(%rax,%rax)
//     0f 1f 84 00 distance               nopl distance(%rax,%rax)      from the entry to the body, in bytes
#pragma once

#include <cstdint>

namespace obase::handles::prologue {

inline constexpr std::uint32_t nop = 0x0084'1f0f;
inline constexpr std::uint64_t word = std::uint64_t{0x3168'626f} << 32 | nop;
inline constexpr unsigned distance_at = 12;

} // namespace obase::handles::prologue
