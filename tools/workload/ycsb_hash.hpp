// SPDX-License-Identifier: MIT
//
// YCSB's hash of a number (site.ycsb.Utils.fnvhash64): FNV-1a with 64 bits over the eight bytes of
// the number, lowest first, and then the absolute value of the result as a signed number, because
// Java has no unsigned one. It scatters popular records over the id space (scrambled Zipfian) and
// makes keys from ids.
//
// Different numbers below 2^32 have different hashes: two that differ last in byte k collide only
// if the states before byte k agree in their upper 56 bits (or, for the absolute value, agree
// negated), and no two of the 2^24 states after three bytes do; ycsb_hash_test computes them all in
// the long tier. Beyond 2^32 nothing is promised.
//
// Not a hash for tables: the low bits of neighbouring numbers are related.
//
// Source: YCSB 0.17, core/src/main/java/site/ycsb/Utils.java (the definition, not its text);
// Fowler, Noll, Vo. Threads: a pure function. Cost: eight dependent multiplications, 8 ns.
#pragma once

#include <cstdint>

namespace workload {

inline constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325U;
inline constexpr std::uint64_t fnv_prime = 1099511628211U;

constexpr std::uint64_t fnv1a64(std::uint64_t number) noexcept {
    std::uint64_t hash = fnv_offset;
    for (int byte = 0; byte < 8; ++byte, number >>= 8) hash = (hash ^ (number & 0xff)) * fnv_prime;
    return hash;
}

constexpr std::uint64_t ycsb_hash(std::uint64_t number) noexcept {
    const std::uint64_t hash = fnv1a64(number);
    return hash >> 63 != 0 ? 0 - hash : hash;
}

} // namespace workload
