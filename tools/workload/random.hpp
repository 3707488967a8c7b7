// SPDX-License-Identifier: MIT
//
// random_stream: 64-bit pseudorandom numbers for generators of load. A counter that grows by the
// golden ratio, each value scrambled by mix64 (S. Vigna's splitmix64: a bijection of the counter,
// so the period is 2^64 and different seeds give shifted copies of one sequence; seeds go through
// mix64 twice so that neighbouring seeds start far apart).
//
//     workload::random_stream random(seed);
//     if (random.unit() < 0.05) ...
//     auto id = random.below(records);
//
// Not cryptographic. Two streams of 2^32 draws overlap with probability 2^-31.
//
// Threads: one stream per thread. Cost: about 1 ns per number.
#pragma once

#include <cstdint>

namespace workload {

__extension__ typedef unsigned __int128 wide_uint;

// A bijection of 64-bit words in which every input bit changes every output bit about half the
// time.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

// Both halves of the 128-bit product, folded. Cheaper than mix64 (one multiplication), no
// bijection.
constexpr std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) noexcept {
    const wide_uint product = static_cast<wide_uint>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

class random_stream {
  public:
    using result_type = std::uint64_t; // with min, max and operator(): for std::shuffle

    explicit random_stream(std::uint64_t seed) noexcept
        : state_(mix64(mix64(seed ^ 0x6a09e667f3bcc908U) + 0xbb67ae8584caa73bU)) {}

    std::uint64_t next() noexcept { return mix64(state_ += 0x9e3779b97f4a7c15U); }

    // In [0, 1), a multiple of 2^-53.
    double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

    // In [0, n), n > 0. A number is favoured by at most n / 2^64.
    std::uint64_t below(std::uint64_t n) noexcept {
        return static_cast<std::uint64_t>((static_cast<wide_uint>(next()) * n) >> 64);
    }

    static constexpr std::uint64_t min() noexcept { return 0; }
    static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }
    std::uint64_t operator()() noexcept { return next(); }

  private:
    std::uint64_t state_;
};

} // namespace workload
