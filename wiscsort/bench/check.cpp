// SPDX-License-Identifier: MIT
#include "wiscsort/bench/check.hpp"

#include "wiscsort/device/input.hpp"
#include "wiscsort/error.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

namespace wiscsort::bench {

namespace {

using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

crc_tables make_tables() {
    crc_tables t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xEDB88320U : 0);
        t[0][i] = c;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t i = 0; i < 256; ++i)
            t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
    return t;
}

} // namespace

std::uint32_t crc32(const char* data, std::size_t size) {
    static const crc_tables t = make_tables();
    std::uint32_t c = ~0U;
    for (; size >= 8; size -= 8, data += 8) {
        std::uint64_t word;
        std::memcpy(&word, data, 8);
        word ^= c;
        c = 0;
        for (std::size_t k = 0; k < 8; ++k) c ^= t[7 - k][(word >> (8 * k)) & 255];
    }
    for (; size > 0; --size) c = (c >> 8) ^ t[0][(c ^ static_cast<unsigned char>(*data++)) & 255];
    return ~c;
}

std::string checked::checksum() const {
    return sum_high != 0 ? fmt::format("{:x}{:016x}", sum_high, sum_low)
                         : fmt::format("{:x}", sum_low);
}

checked check(const std::vector<std::string>& inputs, const record_format& format,
              const key_spec::options& key_options) {
    const key_spec keys(key_options, format);
    const char* const tmp = std::getenv("TMPDIR");
    device::scratch_space scratch({tmp != nullptr && *tmp != '\0' ? tmp : "/tmp"});
    const device::input_set input(inputs, {format, true}, scratch);
    checked result;
    std::string record, buffers[2];
    std::string_view last;
    for (const device::input_file& file : input.files()) {
        for (std::uint64_t at = file.begin; at < file.end();) {
            const record_view view = input.record_at(at, record);
            std::string& buffer = buffers[result.records & 1];
            const std::string_view key = keys.key_of(view.body, buffer);
            if (result.records > 0) {
                const int compared = keys.reverse() ? key.compare(last) : last.compare(key);
                if (compared == 0) ++result.duplicates;
                if (compared > 0 && result.sorted) {
                    result.sorted = false;
                    result.first_unsorted = result.records;
                    result.place = input.place(at);
                }
            }
            last = key;
            const std::uint32_t crc = crc32(view.stored.data(), view.stored.size());
            result.sum_low += crc;
            if (result.sum_low < crc) ++result.sum_high;
            result.sequence = (result.sequence ^ crc) * 0x9E3779B97F4A7C15ULL + 1;
            ++result.records;
            at += view.stored.size();
        }
    }
    result.bytes = input.bytes();
    input.verify_unchanged();
    return result;
}

} // namespace wiscsort::bench
