// SPDX-License-Identifier: MIT
//
// Values that tell whether they are right. fill_value writes what record `id` holds in `version`:
// pseudorandom bytes, seeded by both, that a compressor halves, and in front a header with the
// checksum of all of it. check_value finds out from the bytes alone whether they are a whole value
// of that record, and of which version: a value torn between two writes, one of another record, and
// any changed byte are seen.
//
//   size       header                                       version kept
//   >= 24      checksum 8, version 8, id 8 bytes            all 64 bits
//   16 .. 23   checksum 8, version 8                        all 64 bits
//   8 .. 15    checksum 4, version 4                        modulo 2^32
//   4 .. 7     checksum 2, version 2                        modulo 2^16
//   2, 3       checksum 1, version 1                        modulo 2^8
//   1          version 1: nothing is checked                modulo 2^8
//   0          nothing                                      0
//
// Without room for the id it still goes into the checksum, so another record's value is seen except
// with probability 2^-(bits of the checksum); below 8 bytes that is often. A change within one
// aligned word of eight bytes behind a checksum of eight is always seen.
//
// Half of every 64 bytes is random, the rest zeros (in the first 64, zeros and what of the header
// is not random), so blocks of any size compress by half, whatever page or value a compressor looks
// at.
//
//     workload::fill_value(buffer, id, version);
//     if (auto version = workload::check_value(view, id)) ... // else: torn, foreign or corrupt
//
// The checksum is no MAC.
//
// Threads: pure functions; a value that others write meanwhile is a data race unless it was copied.
// Cost (workload_bench): for 1 KiB about 120 ns to fill and 60 ns to check.
#pragma once

#include "tools/workload/random.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace workload {

namespace value_detail {

static_assert(std::endian::native == std::endian::little, "values are written low byte first");

inline constexpr std::size_t line = 64;

struct header {
    std::size_t checksum, version, id; // bytes of each, in this order
    constexpr std::size_t size() const noexcept { return checksum + version + id; }
};

constexpr header header_of(std::size_t size) noexcept {
    if (size >= 24) return {8, 8, 8};
    if (size >= 16) return {8, 8, 0};
    if (size >= 8) return {4, 4, 0};
    if (size >= 4) return {2, 2, 0};
    if (size >= 2) return {1, 1, 0};
    return {0, size, 0};
}

constexpr std::uint64_t low_bytes(std::uint64_t word, std::size_t bytes) noexcept {
    return bytes == 8 ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

inline std::uint64_t load(const char* from, std::size_t bytes = 8) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    return word;
}
inline void store(char* to, std::uint64_t word, std::size_t bytes = 8) noexcept {
    std::memcpy(to, &word, bytes);
}

// Takes a word into a lane: a bijection of either for a given other, so one changed word always
// changes the lane.
constexpr std::uint64_t absorb(std::uint64_t lane, std::uint64_t word) noexcept {
    return std::rotl((lane ^ word) * 0x9fb21c651e98df25U, 29);
}

// Of the bytes and their owner. Four lanes, because one would wait for its multiplications.
inline std::uint64_t checksum(const char* at, std::size_t size, std::uint64_t id) noexcept {
    const std::uint64_t seed = mix64(id + 0xa0761d6478bd642fU) ^ size;
    std::uint64_t lanes[4] = {seed, ~seed, std::rotl(seed, 21), std::rotl(~seed, 43)};
    for (; size >= 32; at += 32, size -= 32) {
        lanes[0] = absorb(lanes[0], load(at));
        lanes[1] = absorb(lanes[1], load(at + 8));
        lanes[2] = absorb(lanes[2], load(at + 16));
        lanes[3] = absorb(lanes[3], load(at + 24));
    }
    for (; size >= 8; at += 8, size -= 8) lanes[0] = absorb(lanes[0], load(at));
    if (size > 0) lanes[0] = absorb(lanes[0], load(at, size));
    std::uint64_t sum = mix64(lanes[0]);
    for (const int lane : {1, 2, 3}) sum = mix64(sum ^ lanes[lane]);
    return sum;
}

} // namespace value_detail

// The version that check_value reports for one that was written into `size` bytes.
constexpr std::uint64_t kept_version(std::uint64_t version, std::size_t size) noexcept {
    return value_detail::low_bytes(version, value_detail::header_of(size).version);
}

inline void fill_value(std::span<char> out, std::uint64_t id, std::uint64_t version) noexcept {
    using namespace value_detail;
    char* const begin = out.data();
    const std::size_t size = out.size();
    const header fields = header_of(size);
    std::uint64_t state = mix64(id ^ std::rotl(version, 32)) + version;
    const auto next_word = [&state] {
        state += 0x9e3779b97f4a7c15U;
        return fold_multiply(state, state ^ 0xe7037ed1a0b428dbU);
    };
    const auto fill_line = [&](char* to, std::size_t bytes, std::size_t random) {
        std::size_t i = 0;
        for (; i + 8 <= random; i += 8) store(to + i, next_word());
        if (i < random) store(to + i, next_word(), random - i);
        std::memset(to + random, 0, bytes - random);
    };
    // Version and id will lie over random bytes of the first line and are none: as many more.
    const std::size_t first = std::min(size, line);
    fill_line(begin, first, std::min(first / 2 + fields.version + fields.id, first));
    std::size_t at = first;
    for (; at + line <= size; at += line) fill_line(begin + at, line, line / 2);
    if (at < size) fill_line(begin + at, size - at, (size - at) / 2);

    store(begin + fields.checksum, version, fields.version);
    store(begin + fields.checksum + fields.version, id, fields.id);
    store(begin, checksum(begin + fields.checksum, size - fields.checksum, id), fields.checksum);
}

// The version of the value, or nothing if the bytes are no whole value of record `id`. Use
// kept_version to compare it with the one that was written.
inline std::optional<std::uint64_t> check_value(std::string_view value, std::uint64_t id) noexcept {
    using namespace value_detail;
    const header fields = header_of(value.size());
    const char* const begin = value.data();
    const std::uint64_t sum = checksum(begin + fields.checksum, value.size() - fields.checksum, id);
    if (load(begin, fields.checksum) != low_bytes(sum, fields.checksum)) return std::nullopt;
    if (fields.id != 0 && load(begin + fields.checksum + fields.version) != id) return std::nullopt;
    return load(begin + fields.checksum, fields.version);
}

} // namespace workload
