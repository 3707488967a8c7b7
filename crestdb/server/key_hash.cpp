// SPDX-License-Identifier: MIT
#include "crestdb/server/key_hash.hpp"

#include <random>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace crestdb::server {

namespace {

std::uint64_t drawn() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

} // namespace

const std::uint64_t hash_seed = drawn();

std::uint64_t key_hash(std::string_view key) noexcept {
    return XXH3_64bits_withSeed(key.data(), key.size(), hash_seed);
}

std::uint64_t checksum(const void* data, std::size_t bytes) noexcept {
    return XXH3_64bits(data, bytes);
}

} // namespace crestdb::server
