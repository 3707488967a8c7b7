// SPDX-License-Identifier: MIT
#include "telemetry/packed_record.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace obase::telemetry {
namespace {

static_assert(std::is_trivially_copyable_v<window_record>);
static_assert(sizeof(window_record) % sizeof(std::uint64_t) == 0);
constexpr std::size_t words = sizeof(window_record) / sizeof(std::uint64_t);
constexpr std::size_t group = 8; // words that a byte tells of
using as_words = std::array<std::uint64_t, words>;

as_words words_of(const window_record& record) noexcept {
    as_words all;
    std::memcpy(all.data(), &record, sizeof record);
    return all;
}

} // namespace

std::string pack(const window_record& record, const window_record& reference) {
    const as_words now = words_of(record), other = words_of(reference);
    std::array<char, words + words / group + 1 + sizeof record> bytes; // at most
    std::size_t end = 0;
    for (std::size_t first = 0; first < words; first += group) {
        const std::size_t mask_at = end++;
        unsigned mask = 0;
        for (std::size_t i = first; i < words && i < first + group; ++i) {
            std::uint64_t left = now[i] ^ other[i];
            if (left == 0) continue;
            mask |= 1u << (i - first);
            const std::size_t length_at = end++;
            for (; left != 0; left >>= 8) bytes[end++] = static_cast<char>(left & 0xFF);
            bytes[length_at] = static_cast<char>(end - length_at - 1);
        }
        bytes[mask_at] = static_cast<char>(mask);
    }
    return std::string(bytes.data(), end);
}

window_record unpack(std::string_view bytes, const window_record& reference) noexcept {
    as_words all = words_of(reference);
    std::size_t at = 0;
    const auto next = [&] { return static_cast<unsigned char>(bytes[at++]); };
    for (std::size_t first = 0; first < words; first += group) {
        const unsigned mask = next();
        for (std::size_t i = first; i < words && i < first + group; ++i) {
            if ((mask >> (i - first) & 1) == 0) continue;
            const unsigned length = next();
            for (unsigned byte = 0; byte < length; ++byte)
                all[i] ^= std::uint64_t{next()} << (8 * byte);
        }
    }
    window_record record;
    std::memcpy(static_cast<void*>(&record), all.data(), sizeof record);
    return record;
}

} // namespace obase::telemetry
