// SPDX-License-Identifier: MIT
//
// server::key_hash: the hash of keys, fields and members: XXH3 with a seed that is drawn when the
// process starts, so that a client cannot choose keys that collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace crestdb::server {

// Drawn from the kernel's random numbers before the first key.
extern const std::uint64_t hash_seed;

std::uint64_t key_hash(std::string_view key) noexcept;

inline std::uint32_t member_hash(std::string_view member) noexcept {
    return static_cast<std::uint32_t>(key_hash(member));
}

// The checksum of snapshots: the same function without a seed.
std::uint64_t checksum(const void* data, std::size_t bytes) noexcept;

} // namespace crestdb::server
