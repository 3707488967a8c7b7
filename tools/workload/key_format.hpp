// SPDX-License-Identifier: MIT
//
// Keys from record ids, of any size from 8 bytes, always the same key for the same id.
//
//   size      hashed (YCSB's insertorder=hashed)               by_id (insertorder=ordered)
//   >= 24     "user", zeros, YCSB's hash of the id in decimal  "user", zeros, the id in decimal
//   8 .. 23   "user", the id scattered, in base 64             "user", the id in base 64
//
// Sizes of 24 bytes and more are YCSB's keys with zeropadding = size - 4; a hash has up to 19
// digits, so the first five bytes and whatever is padded are always equal. Shorter ones have no
// room for it. Base 64 is digits of 6 bits in the order of their characters ("-0..9A..Z_a..z"),
// highest first; "scattered" is a bijection of the numbers that the digits can hold. So with by_id
// the order of keys is the order of ids, for scans that are to find neighbours.
//
// All ids below key_id_limit(size, order) have different keys. In hashed order from 24 bytes on
// that is what is known of YCSB's hash (see ycsb_hash.hpp).
//
//     std::array<char, 30> key;
//     workload::write_key(key, id);
//
// The id cannot be found from a key. Keys of real applications vary in length and share longer
// prefixes.
//
// Threads: pure functions. Cost: 12 ns for 30 bytes, half of it the hash.
#pragma once

#include "tools/workload/ycsb_hash.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

namespace workload {

enum class key_order { hashed, by_id };

inline constexpr std::size_t min_key_size = 8;
inline constexpr std::size_t min_ycsb_key_size = 24;

namespace key_detail {

inline constexpr std::size_t prefix = 4; // "user"

// Bits that the digits of a short key hold.
constexpr unsigned short_key_bits(std::size_t size) noexcept {
    return size - prefix >= 11 ? 64 : static_cast<unsigned>(6 * (size - prefix));
}

// A bijection of the numbers below 2^bits: odd factors and shifts to the right are invertible
// there.
constexpr std::uint64_t scatter(std::uint64_t id, unsigned bits) noexcept {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
    for (const std::uint64_t factor : {0x9e3779b97f4a7c15U, 0xd6e8feb86659fd93U}) {
        id = (id * factor) & mask;
        id ^= id >> (bits / 2);
    }
    return id;
}

inline constexpr char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                     "25262728293031323334353637383940414243444546474849"
                                     "50515253545556575859606162636465666768697071727374"
                                     "75767778798081828384858687888990919293949596979899";
inline constexpr char base64_digits[] =
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

// The last 20 characters before `end`; any 64-bit number fits.
inline void write_decimal20(char* end, std::uint64_t number) noexcept {
    // Two halves of ten digits: the divisions of one do not wait for those of the other.
    std::uint64_t high = number / 10'000'000'000U;
    std::uint64_t low = number % 10'000'000'000U;
    for (int pair = 0; pair < 5; ++pair) {
        end -= 2;
        std::memcpy(end, two_digits + 2 * (low % 100), 2);
        std::memcpy(end - 10, two_digits + 2 * (high % 100), 2);
        low /= 100;
        high /= 100;
    }
}

} // namespace key_detail

// Ids below this have different keys of this size (see above). Throws std::invalid_argument for a
// size that no key can have.
inline std::uint64_t key_id_limit(std::size_t size, key_order order = key_order::hashed) {
    if (size < min_key_size)
        throw std::invalid_argument("key size " + std::to_string(size) + ": at least " +
                                    std::to_string(min_key_size) + " bytes are needed");
    if (size >= min_ycsb_key_size)
        return order == key_order::hashed ? std::uint64_t{1} << 32 : ~std::uint64_t{0};
    const unsigned bits = key_detail::short_key_bits(size);
    return bits == 64 ? ~std::uint64_t{0} : std::uint64_t{1} << bits;
}

// Fills `out` with the key of `id`. Precondition, not checked: out.size() >= min_key_size and
// id < key_id_limit(out.size(), order).
inline void write_key(std::span<char> out, std::uint64_t id,
                      key_order order = key_order::hashed) noexcept {
    using namespace key_detail;
    std::memcpy(out.data(), "user", prefix);
    char* const digits = out.data() + prefix;
    const std::size_t count = out.size() - prefix;
    if (out.size() >= min_ycsb_key_size) {
        std::memset(digits, '0', count - 20);
        write_decimal20(digits + count, order == key_order::hashed ? ycsb_hash(id) : id);
        return;
    }
    std::uint64_t rest = order == key_order::hashed ? scatter(id, short_key_bits(out.size())) : id;
    for (std::size_t i = count; i > 0; --i, rest >>= 6) digits[i - 1] = base64_digits[rest & 63];
}

} // namespace workload
